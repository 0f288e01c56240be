//! Where a store or a disk can hold no more: the row names the limit, and nothing else is lost.

use std::fmt::Write;

use crate::common::desk::{Desk, Said, Started};

/// A hub that everybody likes, and pages with long names that only one likes: the hub's record grows past 1 MB.
fn hub() -> String {
    let mut text = String::new();
    for person in 0..150 {
        write!(text, "user{person}\thub").expect("memory takes what is written");
        (0..30).for_each(|page| write!(text, "\t{person:03}-{page:02}-{}", "x".repeat(230)).expect("memory"));
        text.push('\n');
    }
    text
}

#[test]
fn a_value_over_the_limit_of_memcached() {
    let desk = Desk::new();
    desk.file("hub.tsv", hub());
    let said = desk.run(&["run", "fans", "--input", "hub.tsv", "--blocks", "1", "redis", "memcached", "ram"]);
    said.exits(1).shows("items are limited to 1 MiB unless the server is started with -I");
    let reason = desk.reason("memcached");
    assert!(reason.contains("\"hub\"") && reason.contains("object too large for cache"), "{reason}");
    for target in ["redis", "ram"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

/// Every byte below the blank, quotes, a backslash, DEL, letters of two to four bytes, and two long names.
fn odd_names() -> String {
    let names: Vec<String> = (0u8..32)
        .map(|byte| format!("a\\u{byte:04x}b"))
        .chain(
            [
                "say \\\"hi\\\"",
                "back\\\\slash",
                "del\u{7f}",
                " blank ",
                "é",
                "日本",
                "🦀",
                "a,b",
                "%41",
                "\\ud83e\\udd80!",
            ]
            .map(String::from),
        )
        .chain([format!("long {}", "日".repeat(75)), "x".repeat(250)])
        .collect();
    let people = names.windows(5).map(|likes| {
        let likes: Vec<String> = likes.iter().map(|name| format!("\"{name}\"")).collect();
        format!("{{\"likes\": [{}]}}\n", likes.join(", "))
    });
    people.collect()
}

/// Stores that take names of tens of thousands of bytes.
const ROOMY: &[&str] = &["redis", "ram", "sqlite", "redb", "fjall"];

fn run(desk: &Desk, file: &str, targets: &[&str]) -> Said {
    desk.run(&[&["run", "fans", "--blocks", "1", "--input", file], targets].concat())
}

#[test]
fn odd_names_are_right_everywhere() {
    let desk = Desk::new();
    desk.file("odd.jsonl", odd_names());
    run(&desk, "odd.jsonl", &[ROOMY, &["memcached", "lmdb"]].concat()).exits(0);
    let records = desk.records();
    assert_eq!(records.len(), ROOMY.len() + 2);
    records.iter().for_each(|record| assert_eq!(record["verdict"]["kind"], "right", "{}", record["target"]));
}

#[test]
fn names_over_a_limit_are_refused_by_name() {
    let desk = Desk::new();
    let likes = |bytes: usize| format!("u\tTea\t{}\n", "n".repeat(bytes));
    run(&desk, desk.file("300.tsv", likes(300)), &[ROOMY, &["memcached+unix", "lmdb"]].concat()).exits(1);
    let reason = desk.reason("memcached+unix");
    assert!(reason.starts_with("refused: ") && reason.contains("at most 250 bytes"), "{reason}");
    for target in ROOMY.iter().chain(&["lmdb"]) {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
    run(&desk, desk.file("60k.tsv", likes(60_000)), &[ROOMY, &["lmdb"]].concat()).exits(1);
    let reason = desk.reason("lmdb");
    assert!(reason.starts_with("refused: ") && reason.contains("511 bytes"), "{reason}");
    for target in ROOMY {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

/// What is over every store's own limits must be refused by name as well, never cut.
#[test]
fn a_name_of_100_kilobytes() {
    let desk = Desk::new();
    run(&desk, desk.file("100k.tsv", format!("u\tTea\t{}\n", "n".repeat(100_000))), ROOMY).exits(1);
    for target in ["redis", "ram", "sqlite", "redb"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
    let reason = desk.reason("fjall");
    assert!(reason.starts_with("refused: ") && reason.contains("65535 bytes"), "{reason}");
}

/// Runs kvfair in a mount namespace of its own, where `place` (below its home) is a disk of that size.
///
/// What it leaves there is told at the end of standard output, for nobody outside can see it.
#[cfg(target_os = "linux")]
pub fn run_on_disk(desk: &Desk, place: &str, size: &str, prepare: &str, arguments: &[&str]) -> Said {
    std::fs::create_dir_all(desk.home().join(place)).expect("a place to mount on");
    let script = format!(
        "mount -t tmpfs -o size={size} tmpfs {place} && {prepare}\n\"$@\"\ncode=$?\n\
         echo left: $(ls -A {place})\nexit $code"
    );
    let kvfair = env!("CARGO_BIN_EXE_kvfair");
    let mut all = vec!["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh", kvfair];
    all.extend(arguments);
    let mut command = desk.command("unshare", &all);
    if prepare.contains("TMPDIR") {
        command.env("TMPDIR", desk.home().join(place));
    }
    Started::new(command).wait()
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_stores_files() {
    let desk = Desk::new();
    for target in FILED.iter().copied() {
        let run = ["run", "fans", "--profiles", "500", "--blocks", "1", "--keep", "full/kept", "--durability", "crash"];
        run_on_disk(&desk, "full", "2m", ":", &[&run[..], &[target]].concat()).exits(1);
        let reason = desk.reason(target);
        let words = if target == "sqlite" { "disk is full" } else { "No space left on device" };
        assert!(reason.starts_with("failed: after ") && reason.contains(words), "{target}: {reason}");
    }
}

/// One large commit is cut short by the disk's end, which LMDB takes for an error of the device.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_in_the_middle_of_a_commit_of_lmdb() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "1500", "--blocks", "1", "--keep", "full/kept", "lmdb"];
    run_on_disk(&desk, "full", "4m", ":", &run).exits(1);
    let reason = desk.reason("lmdb");
    assert!(reason.contains("commit: disk full: ") && !reason.contains("connection"), "{reason}");
}

/// The trial's own directory goes with it, so that a later one has room again.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_costs_only_the_trial_that_filled_it() {
    let desk = Desk::new();
    let data = desk.run(&["data", "fans", "--profiles", "1500"]);
    desk.file("people.jsonl", &data.out);
    let run = ["run", "fans", "--input", "people.jsonl", "--blocks", "1", "--seed", "1"];
    let said = run_on_disk(&desk, "full", "4m", ": TMPDIR", &[&run[..], &["lmdb", "ram", "sqlite"]].concat());
    said.exits(1).shows("left:");
    assert!(said.out.trim_end().ends_with("left:"), "{}", said.out);
    assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
    for target in ["lmdb", "sqlite"] {
        assert!(desk.reason(target).starts_with("failed: after "), "{}", desk.reason(target));
    }
}

/// Stores that keep files.
#[cfg(target_os = "linux")]
pub const FILED: &[&str] = &["redis", "lmdb", "sqlite", "redb", "fjall"];

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_scratch_directory() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "5000", "--blocks", "1", "ram"];
    let said = run_on_disk(&desk, "full", "1m", ": TMPDIR", &run);
    said.exits(1).complains("No space left on device").shows("left:");
    assert!(said.out.trim_end().ends_with("left:"), "{}", said.out);
    assert!(desk.records().is_empty());
}

/// The trial was done: it is shown, though it could not be saved.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_results() {
    let desk = Desk::new();
    let fill = "dd if=/dev/zero of=full/filler bs=1k count=1024 2>/dev/null";
    let run = ["run", "ngrams", "--messages", "50", "--blocks", "9", "--output", "full/out.jsonl", "ram"];
    let said = run_on_disk(&desk, "full", "1m", fill, &run);
    said.exits(1).complains("cannot write results to full/out.jsonl: No space left on device");
    said.shows("ngrams, 50 messages").shows("1 block, no claim").shows("ram");
}

/// A failure does not hide that the records are gone.
#[test]
#[cfg(target_os = "linux")]
fn results_that_are_lost_before_the_disk_is_full_are_said_to_be_lost() {
    let desk = Desk::new();
    let at = desk.home().join("full");
    let spoil = format!("rm -f '{0}/out.jsonl'; dd if=/dev/zero of='{0}/filler' bs=1k 2>/dev/null", at.display());
    desk.wrap("redis-server", &format!("case \"$*\" in *--version*) ;; *) {spoil};; esac\nexec \"$real\" \"$@\""));
    let run = ["run", "ngrams", "--messages", "50", "--blocks", "9", "--output", "full/out.jsonl", "redis+unix"];
    let said = run_on_disk(&desk, "full", "1m", ":", &run);
    said.exits(1).complains("kvfair: cannot write results to full/out.jsonl: No space left on device");
    said.complains("kvfair: the results are lost: full/out.jsonl was removed or replaced during the run");
}

/// Nor are the steps of a search lost.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_the_results_of_a_search() {
    let desk = Desk::new();
    let fill = "dd if=/dev/zero of=full/filler bs=1k count=1024 2>/dev/null";
    let find = ["find-max", "mixed", "redis+unix", "lmdb", "--records", "100", "--clients", "1", "--step", "1"];
    let find = [&find[..], &["--slo", "p99:9s", "--output", "full/out.jsonl"]].concat();
    let said = run_on_disk(&desk, "full", "1m", fill, &find);
    said.exits(1).complains("kvfair: cannot write results to full/out.jsonl: No space left on device");
    said.shows("mixed, ").shows("redis+unix unclear: the search ended after ");
    assert!(!said.out.contains("No target"), "nothing was found out of the promise: {}", said.out);
    assert!(!said.err.contains("lmdb"), "the search goes on without its results: {}", said.err);
}

/// Nor is the rate of a target whose search had come to its end: one without a server, for less work.
#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_is_full_after_the_first_target_of_a_search() {
    let desk = Desk::new();
    let filler = desk.home().join("full/filler");
    let fill = format!("dd if=/dev/zero of='{}' bs=1k 2>/dev/null", filler.display());
    desk.wrap("valkey-server", &format!("case \"$*\" in *--version*) ;; *) {fill};; esac\nexec \"$real\" \"$@\""));
    let find = ["find-max", "mixed", "lmdb", "valkey+unix", "--output", "full/out.jsonl"];
    // A promise that nothing keeps: the search of the first target ends at once.
    let how = ["--records", "100", "--clients", "1", "--step", "1", "--slo", "p50:1us"];
    let find = [&find[..], &how].concat();
    let said = run_on_disk(&desk, "full", "4m", ":", &find);
    said.exits(1).complains("kvfair: cannot write results to full/out.jsonl: No space left on device");
    said.shows("lmdb").shows("breaks the promise at ").shows("valkey+unix unclear: the search ended after ");
}

/// A connection is an open file: the limit is raised as far as we may, and else it is said with the way out.
#[test]
fn more_clients_than_files_may_be_open() {
    let run = |limit: &str| {
        let desk = Desk::new();
        let kvfair = env!("CARGO_BIN_EXE_kvfair");
        let line = format!(
            "ulimit {limit} && exec {kvfair} run getset redis+unix --only get --clients 400 --blocks 1 --requests 800 --records 50"
        );
        Started::new(desk.command("/bin/sh", &["-c", &line])).wait()
    };
    run("-Sn 256").exits(0).shows("every get was right");
    run("-n 256").exits(1).shows("400 clients need 500 open files, and 256 are allowed here: ulimit -n 500");
}
