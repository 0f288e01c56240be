//! Every embedded store keeps the one contract at each class that it says it keeps, alone and with several clients; and
//! the contract catches a store that lies.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::contract::contract;
use kvfair::stores::{self, Adapter, Launch, Login, Place, Role, Session};
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

/// What was acknowledged at `crash` and `power` is there after the process was killed in the middle of its work, again
/// and again, most of which was to overwrite values by longer and shorter ones.
#[test]
fn acknowledged_writes_outlive_kills() {
    let stores = embedded().filter(|adapter| adapter.role == Role::Store).map(|adapter| adapter.name);
    for target in stores.chain(["tokyocabinet?type=tree", "berkeleydb?type=btree"]) {
        for class in [Durability::Crash, Durability::Power] {
            let place = tempfile::tempdir().expect("a directory");
            let (adapter, launch) = target_of(target, place.path(), class);
            if (adapter.keeps)(class).is_err() {
                continue;
            }
            let mut before = Kept::default();
            for kill in 1..=KILLS {
                let acknowledged = write_until_killed(target, class, place.path(), before.count);
                let store = (adapter.open)(&launch).expect("it opens again");
                let found = Kept::read(store.session().expect("a session").as_mut());
                before.check(&found, acknowledged).unwrap_or_else(|lost| {
                    panic!("{target} at {class}, kill {kill}: {lost}; {acknowledged} acknowledged")
                });
                before = found;
            }
        }
    }
}

/// A store with at most one setting, and how it is opened.
fn target_of(target: &str, place: &Path, class: Durability) -> (&'static Adapter, Launch) {
    let (name, setting) = target.split_once('?').unwrap_or((target, ""));
    let mut launch = launch(place, class, 1);
    launch.settings =
        setting.split_once('=').map(|(name, value)| (name.to_string(), value.to_string())).into_iter().collect();
    (stores::find(name).expect("a store"), launch)
}

const KILLS: usize = 5;
const KEYS: i64 = 60;

/// What a writer writes in its step of that number, besides adding 1 to the count of steps.
fn step(number: i64) -> (i64, Vec<u8>) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64).cast_unsigned();
    let length = 20 + (mixed >> 20) as usize % 3_000;
    ((mixed >> 40) as i64 % KEYS, number.to_le_bytes().into_iter().cycle().take(length).collect())
}

fn name(key: i64) -> Vec<u8> {
    format!("key {key}").into_bytes()
}

/// What a store holds of the writers' work.
#[derive(Default)]
struct Kept {
    /// Steps whose addition is there.
    count: i64,
    values: Vec<Option<Vec<u8>>>,
}

impl Kept {
    fn read(session: &mut dyn Session) -> Kept {
        let count = match session.ask(Op::Number(b"count")).expect("an answer") {
            Reply::Number(count) => count,
            other => panic!("the count is {other:?}"),
        };
        let value = |key| match session.ask(Op::Get(&name(key))).expect("an answer") {
            Reply::Value(value) => Some(value.to_vec()),
            _ => None,
        };
        Kept { count, values: (0..KEYS).map(value).collect() }
    }

    /// All that was acknowledged must be there, and at most one step more, whole or in part.
    fn check(&self, found: &Kept, acknowledged: i64) -> Result<(), String> {
        let under_way = acknowledged + 1;
        if !(under_way..=under_way + 1).contains(&found.count) {
            return Err(format!("the count is {}", found.count));
        }
        let mut expected = self.values.clone();
        expected.resize(KEYS as usize, None);
        for number in self.count..under_way {
            let (key, value) = step(number);
            expected[key as usize] = Some(value);
        }
        let (next, value) = step(under_way);
        for (key, (expected, found)) in expected.iter().zip(&found.values).enumerate() {
            if expected != found && (key as i64 != next || found.as_ref() != Some(&value)) {
                return Err(format!("the value of key {key} is not the last one"));
            }
        }
        Ok(())
    }
}

/// Starts this test program once more as a writer, kills it after some hundred steps, and says which was the last
/// acknowledged.
fn write_until_killed(store: &str, class: Durability, place: &Path, from: i64) -> i64 {
    let mut writer = Command::new(std::env::current_exe().expect("our own program"))
        .args(["--exact", "a_writer_to_be_killed", "--ignored", "--nocapture"])
        .env(WRITER, format!("{store} {class} {from} {}", place.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines();
    let mut acknowledged =
        lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("wrote ")?.parse::<i64>().ok());
    let at_least = acknowledged.nth(200);
    writer.kill().expect("it is killed");
    writer.wait().expect("it is gone");
    // What it said before it was killed is in the pipe still.
    acknowledged.last().or(at_least).expect("it wrote until it was killed")
}

const WRITER: &str = "KVFAIR_TEST_WRITER";

/// Not a test: the other process of `acknowledged_writes_outlive_kills`.
#[test]
#[ignore = "started by acknowledged_writes_outlive_kills"]
fn a_writer_to_be_killed() {
    let Ok(order) = std::env::var(WRITER) else { return };
    let mut order = order.splitn(4, ' ');
    let mut next = || order.next().expect("store, class, first step, place");
    let (target, class) = (next(), next().parse().expect("a class"));
    let (from, place) = (next().parse().expect("a number"), next());
    let (adapter, launch) = target_of(target, Path::new(place), class);
    let store = (adapter.open)(&launch).expect("it opens");
    let mut session = store.session().expect("a session");
    for number in from.. {
        let (key, value) = step(number);
        session.ask(Op::Increment { key: b"count", by: 1 }).expect("an answer");
        session.ask(Op::Set { key: &name(key), value: &value, ttl_s: None }).expect("an answer");
        println!("wrote {number}");
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
