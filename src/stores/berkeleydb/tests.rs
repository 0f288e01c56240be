//! What is set is read back, and the log stays small.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::model::op::{Op, Reply};
use crate::stores::Place;

fn launch(place: &Path, level: Durability, settings: &[(&str, &str)]) -> Launch {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let launch = Launch::at(Place::Path(place.to_path_buf()), Duration::from_secs(1));
    Launch { durability: level, settings, ..launch }
}

/// The functions are called at places that were written down by hand: what is set by one must be read by another.
/// (Type, flags and the log's configuration are compared at every opening.)
#[test]
fn what_is_set_is_read_back() {
    for (level, env) in [(Durability::None, "no"), (Durability::None, "yes"), (Durability::Crash, "no")] {
        for (kind, cache, bytes) in [("hash", "64MiB", 64 << 20), ("btree", "3GiB", 3 << 30)] {
            let place = tempfile::tempdir().expect("a directory");
            let settings = [("type", kind), ("cache", cache), ("env", env)];
            let store = open(&launch(place.path(), level, &settings)).expect("it opens");
            let told: BTreeMap<_, _> = store.facts().expect("facts").settings;
            // A small one is made a quarter larger, for what the library keeps beside the pages.
            let found: u64 = told["cache"].parse().expect("a number");
            assert!((bytes..=bytes * 5 / 4 + 65_536).contains(&found), "{cache} became {found}");
            let mut session = store.session().expect("a session");
            for key in [b"one", b"two"] {
                session.ask(&Op::Set { key, value: &[7; 9_000], ttl_s: None }).expect("an answer");
            }
            assert_eq!(session.ask(&Op::Delete(b"one")).expect("an answer"), Reply::Done);
            assert_eq!(session.ask(&Op::Get(b"two")).expect("an answer"), Reply::Value(&[7; 9_000]));
            assert_eq!(store.count().expect("an answer"), Some(1));
        }
    }
}

/// The log must not hold every change ever made.
#[test]
fn the_log_is_trimmed() {
    let place = tempfile::tempdir().expect("a directory");
    let store = open(&launch(place.path(), Durability::Crash, &[])).expect("it opens");
    let mut session = store.session().expect("a session");
    let value = vec![7; 1 << 20];
    // Old and new values are both in the log: some 600 MB.
    for turn in 0..300_u32 {
        let key = (turn % 3).to_be_bytes();
        session.ask(&Op::Set { key: &key, value: &value, ttl_s: None }).expect("an answer");
    }
    let logs = std::fs::read_dir(place.path()).expect("a directory").flatten();
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("log."));
    let bytes: u64 = logs.map(|entry| entry.metadata().expect("a file").len()).sum();
    assert!((1..200_000_000).contains(&bytes), "{bytes} bytes of log");
}
