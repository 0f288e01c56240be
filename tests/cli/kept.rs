//! Data that is left in place by `--keep`, and asked for by the command that was printed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::common::desk::{Desk, Said, Started};
use crate::common::needs::{Need, needs};

const PAGE: &str = "Michael Jackson";

fn keep(desk: &Desk, more: &[&str]) -> Said {
    desk.run(&[&["run", "fans", "--profiles", "300", "--blocks", "2", "--keep", "kept"], more].concat())
}

/// The commands that were printed after "kept:".
fn printed(said: &Said) -> Vec<String> {
    said.err.lines().filter_map(|line| line.strip_prefix("kept: ")).map(str::to_string).collect()
}

/// Types a printed command into a shell that knows kvfair.
fn type_in(desk: &Desk, command: &str) -> Said {
    let kvfair = desk.home().parent().expect("the desk").join("bin/kvfair");
    if !kvfair.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kvfair"), &kvfair).expect("a link");
    }
    Started::new(desk.command("sh", &["-c", command])).wait()
}

/// The page's fans and what they like besides, counted straight from the data.
fn counted(desk: &Desk) -> (u64, BTreeMap<String, u64>) {
    let data = desk.run(&["data", "fans", "--profiles", "300"]);
    let (mut fans, mut also) = (0, BTreeMap::new());
    for line in data.exits(0).out.lines() {
        let profile: Value = serde_json::from_str(line).expect("a profile");
        let likes: Vec<&str> = profile["likes"].as_array().expect("likes").iter().filter_map(Value::as_str).collect();
        if likes.contains(&PAGE) {
            fans += 1;
            likes.iter().filter(|page| **page != PAGE).for_each(|page| *also.entry(page.to_string()).or_insert(0) += 1);
        }
    }
    (fans, also)
}

/// Runs the printed commands twice each, for asking must not change what is kept.
fn ask_all(desk: &Desk, said: &Said, targets: usize) {
    let (fans, also) = counted(desk);
    assert!(fans > 2, "the page has {fans} fans");
    let commands = printed(said);
    assert_eq!(commands.len(), targets, "{}", said.err);
    for command in commands.iter().chain(&commands) {
        type_in(desk, command).exits(0).shows(&format!("{fans} fans; also fans of: "));
        let json: Value = serde_json::from_str(&type_in(desk, &format!("{command} --json")).out).expect("JSON");
        assert_eq!((&json["page"], &json["fans"]), (&PAGE.into(), &fans.into()), "{command}");
        assert_eq!(json["also"], serde_json::to_value(&also).expect("plain data"), "{command}");
    }
}

#[test]
fn embedded_stores_are_asked_after_the_run() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "300", "--blocks", "2", "--keep", "kept here"];
    let said = desk.run(&[&run[..], &["lmdb", "sqlite", "redb", "fjall", "ram"]].concat());
    said.exits(1);
    assert!(desk.reason("ram").contains("keeps nothing after a stop"), "{}", desk.reason("ram"));
    ask_all(&desk, &said, 4);
    type_in(&desk, "kvfair query 'lmdb:kept here/lmdb' 'No such page'")
        .exits(1)
        .complains("holds no page \"No such page\"");
}

#[test]
fn a_server_is_started_again_on_what_it_kept() {
    let desk = Desk::new();
    let said = keep(&desk, &["--durability", "crash", "redis", "redis+unix", "valkey?name=mine"]);
    said.exits(0);
    ask_all(&desk, &said, 3);
}

#[test]
fn what_keeps_nothing_is_refused_and_the_class_that_would_is_named() {
    let desk = Desk::new();
    keep(&desk, &["redis", "memcached", "redis://127.0.0.1:1"]).exits(1);
    let reason = desk.reason("redis");
    assert!(reason.starts_with("refused: keeps nothing after a stop at durability level none"), "{reason}");
    assert!(reason.contains("--durability crash would"), "{reason}");
    assert!(desk.reason("memcached").contains("no durability level would"), "{}", desk.reason("memcached"));
    assert!(desk.reason("redis://127.0.0.1:1").contains("not for servers by URL"));
    assert!(!desk.home().join("kept").exists(), "nothing was kept");
}

/// Of one's own data the page is one's own, and what is refused takes none of the time for pilots.
#[test]
fn what_is_refused_has_no_pilot_and_the_hint_names_no_page_of_others() {
    let desk = Desk::new();
    desk.file("likes.csv", "user,page\na,x\na,y\nb,x\n");
    let run = ["run", "fans", "--input", "likes.csv", "--keep", "kept", "--budget", "5s", "lmdb", "redis+unix"];
    let said = desk.run(&run);
    said.exits(1).complains("kept: kvfair query lmdb:kept/lmdb PAGE");
    assert!(!said.err.contains("redis+unix"), "{}", said.err);
}

/// As root, PostgreSQL runs as another user, who may not enter a directory that is closed to others.
#[test]
fn who_cannot_enter_the_directory_is_named() {
    needs!(Need::root());
    let desk = Desk::new();
    std::fs::create_dir(desk.home().join("closed")).expect("it is ours");
    std::fs::set_permissions(desk.home().join("closed"), std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    desk.run(&["run", "fans", "--profiles", "5", "--blocks", "1", "--keep", "closed/kept", "postgres+unix"]).exits(3);
    let reason = desk.reason("postgres+unix");
    assert!(reason.contains("as root it runs as user postgres, who must be able to enter"), "{reason}");
}

#[test]
fn what_was_kept_is_never_overwritten() {
    let desk = Desk::new();
    let said = keep(&desk, &["lmdb"]);
    said.exits(0);
    keep(&desk, &["lmdb"]).exits(1).complains("kept/lmdb is there already, and data is never overwritten");
    ask_all(&desk, &said, 1);
}

#[test]
fn a_place_that_cannot_be_made_is_a_failed_row() {
    let desk = Desk::new();
    desk.file("kept", "a file");
    keep(&desk, &["lmdb"]).exits(1);
    assert!(desk.reason("lmdb").starts_with("failed: cannot make kept/lmdb: "), "{}", desk.reason("lmdb"));
}

#[test]
fn questions_without_an_answer() {
    let desk = Desk::new();
    desk.run(&["run", "ngrams", "--messages", "200", "--blocks", "1", "--durability", "crash", "--keep", "k", "redis"])
        .exits(0);
    desk.run(&["query", "redis:k/redis", "ba"]).exits(1).complains("it holds what the job ngrams wrote");
    desk.run(&["query", "redis:k/none", "ba"]).exits(1).complains("there is nothing at k/none");
    desk.run(&["query", "redis", "ba"]).exits(1).complains("redis names no store that holds anything");
    for store in ["redis", "mysql", "postgres", "memcached"] {
        desk.run(&["query", &format!("{store}://127.0.0.1:1"), "ba"]).exits(1).complains(": connection refused");
    }
    desk.file("junk", "no database");
    desk.run(&["query", "sqlite:.", "ba"]).exits(1);
    let without = Desk::with_only(&[]);
    std::fs::create_dir(without.home().join("k")).expect("a directory");
    without.file("k/kvfair-kept.json", r#"{"durability":"none","settings":{}}"#);
    without.run(&["query", "redis:k", "ba"]).exits(3).complains("apt install redis-server");
}
