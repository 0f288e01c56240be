//! Every embedded store keeps the one contract at each class that it says it keeps, alone and with several clients; and
//! the contract catches a store that lies.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::contract::contract;
use kvfair::stores::{self, Adapter, Launch, Login, Place, Role};
use kvfair::words::op::{Op, Reply};
use kvfair::words::trial::Durability;

/// What a store has no means for, in the order of the checks. A new gap must be written down here.
const GAPS: &[(&str, &[&str])] = &[
    ("ram", &["set with a time to live", "scan"]),
    ("lmdb", &["set with a time to live", "read-tally", "set", "set", "set"]),
    ("sqlite", &["set with a time to live"]),
    ("redb", &["set with a time to live", "read-tally"]),
    ("fjall", &["set with a time to live", "read-tally", "set", "set"]),
    ("berkeleydb", &["set with a time to live", "read-tally", "scan"]),
    ("leveldb", &["set with a time to live", "read-tally"]),
    ("rocksdb", &["set with a time to live", "read-tally"]),
    ("tokyocabinet", &["set with a time to live", "read-tally", "scan"]),
    ("kyotocabinet", &["set with a time to live", "read-tally", "scan"]),
    ("tkrzw", &["set with a time to live", "read-tally", "scan"]),
    ("faulty", &["set with a time to live", "read-tally"]),
];

#[test]
fn every_embedded_store_keeps_the_contract() {
    for adapter in embedded() {
        for class in Durability::ALL.into_iter().filter(|class| (adapter.keeps)(*class).is_ok()) {
            for clients in [1, 4] {
                let place = tempfile::tempdir().expect("a directory");
                let found =
                    contract(adapter, &launch(place.path(), class, clients)).unwrap_or_else(|what| panic!("{what}"));
                let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
                let known = GAPS.iter().find(|(name, _)| *name == adapter.name).expect("a line in GAPS").1;
                assert_eq!(found, known, "{} at {class} with {clients} clients", adapter.name);
            }
        }
    }
}

#[test]
fn the_contract_catches_a_liar() {
    let faulty = stores::find("faulty").expect("it is built in");
    let cases = [("drop", "7"), ("corrupt", "7"), ("stale", "7"), ("extra", "1"), ("refuse", "1"), ("garble", "1")];
    for (fault, every) in cases {
        let mut launch = launch(Path::new("/nowhere"), Durability::None, 1);
        for (name, value) in [("fault", fault), ("after", "20"), ("every", every)] {
            launch.settings.insert(name.to_string(), value.to_string());
        }
        let caught = contract(faulty, &launch).expect_err(&format!("?fault={fault} went unnoticed"));
        assert!(caught.starts_with("faulty at none: "), "{fault}: {caught}");
    }
}

#[test]
fn a_store_refuses_a_class_that_it_cannot_keep() {
    for name in ["null", "ram"] {
        let adapter = stores::find(name).expect("it is built in");
        assert!((adapter.keeps)(Durability::None).is_ok());
        for class in [Durability::Crash, Durability::Power] {
            assert!((adapter.keeps)(class).expect_err("memory is gone with its process").contains(name));
        }
    }
}

/// What was acknowledged at `crash` and `power` is there after the process was killed in the middle of its work.
#[test]
fn acknowledged_writes_outlive_a_kill() {
    for adapter in embedded().filter(|adapter| adapter.role == Role::Store) {
        for class in [Durability::Crash, Durability::Power] {
            let place = tempfile::tempdir().expect("a directory");
            let acknowledged = write_until_killed(adapter.name, class, place.path());
            let store = (adapter.open)(&launch(place.path(), class, 1)).expect("it opens again");
            let mut session = store.session().expect("a session");
            for index in 0..=acknowledged {
                let found = session.ask(Op::Number(format!("key {index}").as_bytes())).expect("an answer");
                assert_eq!(found, Reply::Number(index + 1), "{} at {class}: {acknowledged} acknowledged", adapter.name);
            }
        }
    }
}

/// Starts this test program once more as a writer, kills it after some hundred writes, and says which was the last
/// acknowledged.
fn write_until_killed(store: &str, class: Durability, place: &Path) -> i64 {
    let mut writer = Command::new(std::env::current_exe().expect("our own program"))
        .args(["--exact", "a_writer_to_be_killed", "--ignored", "--nocapture"])
        .env(WRITER, format!("{store} {class} {}", place.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines();
    let acknowledged =
        lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("wrote ")?.parse().ok()).nth(300);
    writer.kill().expect("it is killed");
    writer.wait().expect("it is gone");
    acknowledged.expect("it wrote until it was killed")
}

const WRITER: &str = "KVFAIR_TEST_WRITER";

/// Not a test: the other process of `acknowledged_writes_outlive_a_kill`.
#[test]
#[ignore = "started by acknowledged_writes_outlive_a_kill"]
fn a_writer_to_be_killed() {
    let Ok(order) = std::env::var(WRITER) else { return };
    let mut order = order.splitn(3, ' ');
    let mut next = || order.next().expect("store, class, place");
    let (adapter, class, place) = (stores::find(next()).expect("a store"), next().parse().expect("a class"), next());
    let store = (adapter.open)(&launch(Path::new(place), class, 1)).expect("it opens");
    let mut session = store.session().expect("a session");
    for index in 0.. {
        let key = format!("key {index}");
        session.ask(Op::Increment { key: key.as_bytes(), by: index + 1 }).expect("an answer");
        println!("wrote {index}");
    }
}

/// A single client's session has the whole of `ram` to itself: a second one must be told so, not left to wait for ever.
#[test]
fn ram_for_one_client_has_one_session_at_a_time() {
    let ram = stores::find("ram").expect("it is built in");
    let store = (ram.open)(&launch(Path::new("/nowhere"), Durability::None, 1)).expect("it opens");
    let mut first = store.session().expect("the first session");
    assert!(store.session().is_err());
    assert_eq!(store.count().expect("an answer"), None);
    assert_eq!(first.ask(Op::Increment { key: b"k", by: 2 }).expect("an answer"), Reply::Number(2));
    drop(first);
    assert_eq!(store.count().expect("an answer"), Some(1));
    let mut second = store.session().expect("the second session");
    assert_eq!(second.ask(Op::Get(b"k")).expect("an answer"), Reply::Value(b"2"));
}

/// A target may name the file itself, where a store is one file.
#[test]
fn one_file_stores_open_a_file_by_its_name() {
    for name in ["sqlite", "redb"] {
        let Some(adapter) = stores::find(name) else { continue };
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("mine.db");
        for expected in [1, 2] {
            let store = (adapter.open)(&launch(&file, Durability::Crash, 1)).expect("it opens");
            let mut session = store.session().expect("a session");
            assert_eq!(session.ask(Op::Increment { key: b"k", by: 1 }).expect("an answer"), Reply::Number(expected));
        }
        assert!(file.is_file(), "{name} did not use {}", file.display());
    }
}

fn embedded() -> impl Iterator<Item = &'static Adapter> {
    let chosen = |adapter: &&Adapter| adapter.server.is_none() && adapter.name != "null";
    stores::ALL.iter().copied().filter(chosen)
}

fn launch(place: &Path, durability: Durability, clients: u32) -> Launch {
    Launch {
        place: Place::Path(place.to_path_buf()),
        durability,
        configuration: Default::default(),
        settings: BTreeMap::new(),
        login: Login::default(),
        clients,
        data_bytes: None,
        patience: Duration::from_secs(10),
    }
}
