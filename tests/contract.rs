//! Every embedded store keeps the one contract at each durability level that it says it keeps, alone and with several
//! clients; and the contract catches a store that lies.

#[path = "../examples/contributing/btree.rs"]
mod btree;
mod killed;
mod store_stats;

use std::path::Path;

use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::Durability;
use kvfair::stores;
// What the store of CONTRIBUTING.md imports from where it would stand.
use kvfair::stores::{Adapter, Facts, Launch, Means, Role, Session, Store};

use crate::common::contract::contract;
use crate::common::embedded::{launch, shapes};

/// What a store has no means for, in the order of the checks. A new gap must be written down here.
const GAPS: &[(&str, &[&str])] = &[
    ("ram", &["set with a time to live", "scan"]),
    ("lmdb", &["set with a time to live", "read-tally", "set", "set", "set"]),
    ("sqlite", &["set with a time to live"]),
    ("redb", &["set with a time to live", "read-tally"]),
    ("fjall", &["set with a time to live", "read-tally", "set", "set"]),
    ("berkeleydb", &["set with a time to live", "read-tally", "scan"]),
    ("berkeleydb?env=yes", &["set with a time to live", "read-tally", "scan"]),
    ("berkeleydb?type=btree", &["set with a time to live", "read-tally"]),
    ("leveldb", &["set with a time to live", "read-tally"]),
    ("rocksdb", &["set with a time to live", "read-tally"]),
    ("tokyocabinet", &["set with a time to live", "read-tally", "scan"]),
    ("tokyocabinet?type=tree", &["set with a time to live", "read-tally"]),
    ("kyotocabinet", &["set with a time to live", "read-tally", "scan"]),
    ("tkrzw", &["set with a time to live", "read-tally", "scan"]),
    ("faulty", &["read-tally"]),
];

#[test]
fn every_embedded_store_keeps_the_contract() {
    for shape in shapes() {
        for level in Durability::ALL.into_iter().filter(|level| (shape.adapter.keeps)(*level).is_ok()) {
            for clients in [1, 4] {
                let place = tempfile::tempdir().expect("a directory");
                let found = contract(shape.adapter, &shape.launch(place.path(), level, clients))
                    .unwrap_or_else(|what| panic!("{what}"));
                let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
                let known = GAPS.iter().find(|(name, _)| *name == shape.name()).expect("a line in GAPS").1;
                assert_eq!(found, known, "{} at {level} with {clients} clients", shape.name());
            }
        }
    }
}

/// With the line of [`GAPS`] that is shown there.
#[test]
fn the_store_of_contributing_keeps_the_contract() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/CONTRIBUTING.md");
    let text = std::fs::read_to_string(page).expect("the document");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for clients in [1, 4] {
        let launch = launch(Path::new("/nowhere"), Durability::None, clients);
        let found = contract(&btree::BTREE, &launch).unwrap_or_else(|what| panic!("{what}"));
        let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
        let line = format!("(\"btree\", &{found:?}),");
        assert!(text.contains(&line), "CONTRIBUTING.md does not show {line}");
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
        for level in [Durability::Crash, Durability::Power] {
            assert!((adapter.keeps)(level).expect_err("memory is gone with its process").contains(name));
        }
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
    assert_eq!(first.ask(&Op::Increment { key: b"k", by: 2 }).expect("an answer"), Reply::Number(2));
    drop(first);
    assert_eq!(store.count().expect("an answer"), Some(1));
    let mut second = store.session().expect("the second session");
    assert_eq!(second.ask(&Op::Get(b"k")).expect("an answer"), Reply::Value(b"2"));
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
            assert_eq!(session.ask(&Op::Increment { key: b"k", by: 1 }).expect("an answer"), Reply::Number(expected));
        }
        assert!(file.is_file(), "{name} did not use {}", file.display());
    }
}
