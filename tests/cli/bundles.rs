//! Bundles: the same bytes each time, nothing that must not be told, and every bundle that is not as kvfair made it
//! refused by name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cli::forms::results;
use crate::cli::page::{is_of, lines, records};
use crate::common::desk::{Desk, Said, Started, command_line, wait_for};

/// The files of an archive, in their order.
pub fn unpacked(path: &Path) -> Vec<(String, Vec<u8>)> {
    let plain = zstd::Decoder::new(File::open(path).expect("a bundle")).expect("zstd");
    let mut archive = tar::Archive::new(plain);
    let each = archive.entries().expect("tar").map(|entry| {
        let mut entry = entry.expect("an entry");
        let header = entry.header();
        let of_nobody = [header.uid(), header.gid(), header.mtime()].map(|number| number.expect("a number"));
        assert_eq!(of_nobody, [0, 0, 0]);
        let (name, mut bytes) = (entry.path().expect("a name").display().to_string(), Vec::new());
        entry.read_to_end(&mut bytes).expect("its bytes");
        (name, bytes)
    });
    each.collect()
}

fn header(name: &str, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    // As it is: the library itself writes no path that leads elsewhere.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// Writes an archive of these files.
pub fn pack(path: &Path, files: &[(String, Vec<u8>)]) {
    let mut builder = tar::Builder::new(zstd::Encoder::new(File::create(path).expect("a file"), 1).expect("zstd"));
    for (name, bytes) in files {
        builder.append(&header(name, tar::EntryType::Regular, bytes.len() as u64), bytes.as_slice()).expect("written");
    }
    builder.into_inner().and_then(|zstd| zstd.finish()).expect("written");
}

pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A bundle of the golden results of `fans`, and its files.
fn bundle_of_fans(desk: &Desk) -> Vec<(String, Vec<u8>)> {
    desk.file("fans.jsonl", results("fans"));
    desk.run(&["bundle", "fans.jsonl"]).exits(0).complains("bundle: fans.tar.zst");
    unpacked(&desk.home().join("fans.tar.zst"))
}

/// Packs the files anew, once they were changed, and runs them again.
fn rerun_changed(desk: &Desk, files: &[(String, Vec<u8>)]) -> Said {
    pack(&desk.home().join("changed.tar.zst"), files);
    desk.run(&["rerun", "changed.tar.zst"])
}

fn manifest(files: &[(String, Vec<u8>)]) -> Value {
    let (_, bytes) = files.iter().find(|(name, _)| name == "manifest.json").expect("a manifest");
    serde_json::from_slice(bytes).expect("JSON")
}

fn with_manifest(files: &[(String, Vec<u8>)], manifest: &Value) -> Vec<(String, Vec<u8>)> {
    let changed = |(name, bytes): &(String, Vec<u8>)| {
        (name.clone(), if name == "manifest.json" { manifest.to_string().into_bytes() } else { bytes.clone() })
    };
    files.iter().map(changed).collect()
}

/// Its data is read again, which takes a while.
#[test]
fn a_bundle_that_is_hung_up_on_leaves_nothing() {
    let desk = Desk::new();
    desk.file("people.jsonl", desk.run(&["data", "fans", "--profiles", "20000"]).out);
    let run =
        ["run", "fans", "--input", "people.jsonl", "--profiles", "5000", "--blocks", "1", "--output", "run.jsonl"];
    desk.run(&[&run[..], &["ram", "null"]].concat()).exits(0);
    let started = Started::new(desk.kvfair(&["bundle", "run.jsonl"]));
    let reads = |pid: &u32| command_line(*pid).ends_with("\0child\0expected-state\0");
    wait_for("the data is read", || desk.processes().into_iter().find(reads));
    started.interrupt(nix::sys::signal::Signal::SIGHUP);
    started.wait().exits(130).complains("no bundle was written");
    assert!(!desk.home().join("run.tar.zst").exists());
}

#[test]
fn a_bundle_has_the_same_bytes_each_time_and_every_digest() {
    let desk = Desk::with_only(&[]);
    let files = bundle_of_fans(&desk);
    desk.run(&["bundle", "fans.jsonl", "--output", "again.tar.zst"]).exits(0);
    let read = |name: &str| fs::read(desk.home().join(name)).expect("a bundle");
    assert_eq!(read("fans.tar.zst"), read("again.tar.zst"));
    desk.run(&["bundle", "fans.jsonl"]).exits(1).complains("fans.tar.zst is there already");
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["README.md", "manifest.json", "page.html", "records.jsonl", "servers.json"]);
    let manifest = manifest(&files);
    assert_eq!((&manifest["form"], &manifest["kvfair"], &manifest["method"]), (&json!(1), &json!("0.1.0"), &json!(2)));
    let origin = "recipe likes10k, seed 797";
    assert_eq!((&manifest["data"]["origin"], &manifest["data"]["file"]), (&json!(origin), &Value::Null));
    for (name, bytes) in files.iter().filter(|(name, _)| name != "manifest.json") {
        assert_eq!(manifest["files"][name], json!({"bytes": bytes.len(), "sha256": hex(bytes)}), "{name}");
    }
    let servers: Value = serde_json::from_slice(&files[4].1).expect("JSON");
    assert_eq!(servers["redis"]["version"], records("fans")[0]["store"]["version"]);
    assert!(servers["redis"]["command"][0].as_str().is_some_and(|program| program.ends_with("redis-server")));
}

#[test]
fn a_bundle_tells_no_password_home_or_host() {
    let desk = Desk::with_only(&[]);
    let label = "redis://me:PLANTED@db.planted.example:6379/9";
    let mut all = records("fans");
    for record in &mut all {
        if !is_of(record, "redis") {
            record["target"]["label"] = label.into();
        }
        record["run"]["command"] = json!(["run", "fans", label, "--password", "PLANTED", "-i", "/home/planted/a.csv"]);
        record["job"]["data"] = json!({"file": {"path": "/home/planted/a.csv"}});
        record["machine"]["filesystem"] = "nfs4 on planted:/root/planted".into();
        record["store"]["command"] = json!(["/root/planted", "--requirepass", "PLANTED"]);
        record["store"]["settings"] =
            json!({"requirepass": "PLANTED", "dir": "/Users/planted/data", "hostname": "planted", "save": "no"});
        record["target"]["settings"] = json!({"program": "/home/planted/redis-server"});
    }
    desk.file("planted.jsonl", lines(&all));
    let said = desk.run(&["bundle", "planted.jsonl"]);
    said.exits(0).complains("the data (a.csv) is not in the bundle: it cannot be read");
    for (name, bytes) in unpacked(&desk.home().join("planted.tar.zst")) {
        let text = String::from_utf8(bytes).expect("text");
        for secret in ["PLANTED", "db.planted", "/home/", "/Users/", "/root", "//me", "on planted"] {
            assert!(!text.contains(secret), "{name}: {secret}");
        }
        let text = text.replace("~/planted", "");
        assert!(!text.contains("planted"), "{name}: {text}");
        if name == "records.jsonl" {
            assert!(text.contains("redis://***@host1:6379/9") && text.contains("~/redis-server"), "{text}");
        }
    }
}

#[test]
fn an_archive_that_leads_elsewhere_is_refused() {
    let desk = Desk::with_only(&[]);
    let path = desk.home().join("evil.tar.zst");
    let kinds = [
        ("../evil", tar::EntryType::Regular, "a path with `..`, which leads out of the bundle"),
        ("data/../../evil", tar::EntryType::Regular, "a path with `..`"),
        ("/tmp/evil", tar::EntryType::Regular, "an absolute path, which leads out of the bundle"),
        ("records.jsonl", tar::EntryType::Symlink, "a link, which may lead anywhere"),
        ("data/x", tar::EntryType::Link, "a link, which may lead anywhere"),
        ("data/x", tar::EntryType::Char, "a device or pipe"),
        ("data/x", tar::EntryType::Fifo, "a device or pipe"),
        ("data", tar::EntryType::Directory, "no plain file"),
        ("././@LongLink", tar::EntryType::GNULongName, "no plain file"),
        ("evil.sh", tar::EntryType::Regular, "no file of a bundle"),
        ("data/.evil", tar::EntryType::Regular, "no file of a bundle"),
    ];
    for (name, kind, why) in kinds {
        let mut builder = tar::Builder::new(zstd::Encoder::new(File::create(&path).expect("a file"), 1).expect("zstd"));
        let size = if kind == tar::EntryType::Regular { 4 } else { 0 };
        builder.append(&header(name, kind, size), &b"evil"[..size as usize]).expect("written");
        builder.into_inner().and_then(|zstd| zstd.finish()).expect("written");
        let said = desk.run(&["rerun", "evil.tar.zst"]);
        said.exits(1).complains("evil.tar.zst is refused").complains(why).complains(name);
    }
    assert_eq!(fs::read_dir(desk.home()).expect("a directory").count(), 1, "nothing else was written");
}

#[test]
fn ten_gigabytes_of_zeros_are_refused() {
    let desk = Desk::with_only(&[]);
    let size: u64 = 10 << 30;
    let zeros = zstd::encode_all(&vec![0; 64 << 20][..], 1).expect("zstd");
    for (name, why) in [
        ("records.jsonl", "10737418240 bytes, and at most 1073741824 are unpacked of it"),
        ("data/zeros", "10737418240 bytes, and at most 20971520 are unpacked of it"),
        ("", "it has no manifest.json"),
    ] {
        let mut file = File::create(desk.home().join("bomb.tar.zst")).expect("a file");
        let first =
            if name.is_empty() { Vec::new() } else { header(name, tar::EntryType::Regular, size).as_bytes().to_vec() };
        file.write_all(&zstd::encode_all(&first[..], 1).expect("zstd")).expect("written");
        // Frames of zstd may follow each other.
        (0..size / (64 << 20)).for_each(|_| file.write_all(&zeros).expect("written"));
        assert!(file.metadata().expect("a file").len() < 2 << 20);
        desk.run(&["rerun", "bomb.tar.zst"]).exits(1).complains(why);
        assert_eq!(fs::read_dir(desk.home()).expect("a directory").count(), 1, "nothing of it is unpacked");
        assert!(desk.scratch().is_empty(), "nothing of it is unpacked");
    }
}

#[test]
fn what_was_changed_in_a_bundle_is_named() {
    let desk = Desk::with_only(&[]);
    let files = bundle_of_fans(&desk);
    let changed = |of: &str, change: &dyn Fn(&mut String)| -> Vec<(String, Vec<u8>)> {
        let each = files.iter().map(|(name, bytes)| {
            let mut text = String::from_utf8(bytes.clone()).expect("text");
            if name == of {
                change(&mut text);
            }
            (name.clone(), text.into_bytes())
        });
        each.collect()
    };
    let tampered = changed("records.jsonl", &|text| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines[2] = lines[2].replacen("\"took_s\":", "\"took_s\":1", 1);
        *text = lines.join("\n") + "\n";
    });
    rerun_changed(&desk, &tampered).exits(1).complains("records.jsonl:3: this record was changed");
    let fewer = changed("records.jsonl", &|text| text.truncate(text.trim_end().rfind('\n').expect("lines") + 1));
    rerun_changed(&desk, &fewer).exits(1).complains("records.jsonl was changed: it has");
    rerun_changed(&desk, &changed("page.html", &|text| text.push(' '))).exits(1).complains("page.html was changed");
    let without: Vec<(String, Vec<u8>)> = files.iter().filter(|(name, _)| name != "servers.json").cloned().collect();
    rerun_changed(&desk, &without).exits(1).complains("servers.json is in the manifest and not in the bundle");
    let twice: Vec<(String, Vec<u8>)> = files.iter().chain(&files[..1]).cloned().collect();
    rerun_changed(&desk, &twice).exits(1).complains("it is there twice");
    let mut other = manifest(&files);
    other["form"] = 9.into();
    other["kvfair"] = "7.0.0".into();
    let said = rerun_changed(&desk, &with_manifest(&files, &other));
    said.exits(1).complains("manifest.json has form 9 (kvfair 7.0.0), and this kvfair reads form 1");
    let mut missing = manifest(&files);
    missing["data"]["file"] = "data/likes.csv".into();
    rerun_changed(&desk, &with_manifest(&files, &missing)).exits(1).complains("data/likes.csv is missing");
    missing["files"]["data/likes.csv"] = json!({"bytes": 1, "sha256": hex(b"x")});
    let said = rerun_changed(&desk, &with_manifest(&files, &missing));
    said.exits(1).complains("data/likes.csv is in the manifest and not in the bundle");
    let cut: Vec<u8> = fs::read(desk.home().join("fans.tar.zst")).expect("a bundle");
    desk.file("cut.tar.zst", &cut[..cut.len() / 2]);
    desk.run(&["rerun", "cut.tar.zst"]).exits(1).complains("cut.tar.zst is refused");
}

#[test]
fn a_program_of_a_bundle_is_started_by_nobody_who_was_not_asked() {
    let desk = Desk::with_only(&[]);
    let commands = [
        json!(["run", "--exec", "touch evil", "redis", "redis+unix"]),
        json!(["run", "fans", "redis?program=./evil", "redis+unix"]),
    ];
    for (place, command) in commands.iter().enumerate() {
        let mut all = records("fans");
        all.iter_mut().for_each(|record| record["run"]["command"] = command.clone());
        let name = format!("exec{place}.jsonl");
        desk.file(&name, lines(&all));
        desk.run(&["bundle", &name]).exits(0);
        let said = desk.run(&["rerun", &name.replace("jsonl", "tar.zst")]);
        said.exits(2).complains("it names programs, which would run with your rights").complains("--yes starts them");
    }
    assert!(!desk.home().join("evil").exists());
}

/// What else stands in a command of a stranger's is not done.
#[test]
fn a_command_of_a_bundle_writes_nowhere() {
    let desk = Desk::with_only(&[]);
    let bad = [
        (json!(["clean", "redis://h", "--of", "x", "--yes"]), "cannot judge another run of that command"),
        (json!(["levers", "fans", "redis"]), "it claims nothing"),
        (json!(["run", "fans", "redis://***@host1/1", "lmdb:/tmp"]), "none of its targets can run here"),
        (json!(["run", "fans", "--no-such-option", "redis"]), "it is not understood"),
        (json!(["run", "fans", "--input", "/etc/passwd", "redis", "lmdb"]), "leave --input out"),
    ];
    for (command, why) in bad {
        let mut all = records("fans");
        all.iter_mut().for_each(|record| record["run"]["command"] = command.clone());
        desk.file("bad.jsonl", lines(&all));
        desk.run(&["bundle", "bad.jsonl"]).exits(0);
        desk.run(&["rerun", "bad.tar.zst"]).exits(1).complains(why);
        fs::remove_file(desk.home().join("bad.tar.zst")).expect("our own file");
    }
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for entry in fs::read_dir(desk.home()).expect("a directory").flatten() {
        names.insert(entry.file_name().display().to_string(), 0);
    }
    assert_eq!(names.keys().collect::<Vec<_>>(), ["bad.jsonl"]);
}

#[test]
fn results_without_a_claim_are_bundled_and_judge_nothing() {
    let desk = Desk::with_only(&[]);
    let mut all = records("fans");
    all.retain(|record| record["block"] == 1 && record["aa_control"] == false);
    all.iter_mut().for_each(|record| record["run"]["blocks"] = 1.into());
    desk.file("one.jsonl", lines(&all));
    desk.run(&["bundle", "one.jsonl"]).exits(0).complains("these results claim nothing");
    desk.run(&["rerun", "one.tar.zst"]).exits(1).complains("it claims nothing, so nothing can be reproduced");
    desk.file("none.jsonl", "");
    desk.run(&["bundle", "none.jsonl"]).exits(1).complains("none.jsonl holds no records");
    desk.run(&["bundle", "gone.jsonl"]).exits(1).complains("gone.jsonl");
}
