//! Clusters of Redis and of Valkey, of three real servers: keys are split by slot, commands follow a slot that moves,
//! and what cannot be trusted or is not whole is refused by name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply, SumList};
use kvfair::model::trial::{Durability, Transport};
use kvfair::protocol::resp::{self, Value, command, slot};
use kvfair::stores::blocking::BlockingConnection;
use kvfair::stores::{Launch, Place, Session, Store, find};

use super::{get, set, version_of};
use crate::common::{Running, session, start, start_set};

const PRODUCTS: [&str; 2] = ["redis", "valkey"];

fn started(product: &str) -> Running {
    start_set(product, Transport::Tcp, Durability::None, &[("cluster", "3")])
}

fn nodes_of(cluster: &Running) -> Vec<Place> {
    std::iter::once(&cluster.launch.place).chain(&cluster.launch.peers).cloned().collect()
}

fn by_url(place: &Place) -> Result<Box<dyn Store>, Fault> {
    let adapter = find("redis-cluster").expect("it is there");
    (adapter.open)(&Launch::at(place.clone(), Duration::from_secs(2)))
}

fn line(place: &Place) -> BlockingConnection {
    BlockingConnection::open("admin", &Launch::at(place.clone(), Duration::from_secs(10))).expect("a node")
}

fn tell(place: &Place, words: &str) -> Value {
    let parts: Vec<&[u8]> =
        words.split(' ').map(|part| if part == "''" { &b""[..] } else { part.as_bytes() }).collect();
    let mut request = Vec::new();
    command(&parts, &mut request);
    match line(place).exchange(&request, resp::values()).expect("an answer") {
        Value::Error(error) => panic!("{words}: {error}"),
        value => value,
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Text(text) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

fn port(place: &Place) -> u16 {
    match place {
        Place::Tcp { port, .. } => *port,
        other => panic!("{other}"),
    }
}

/// The node that has the slot of this key, and the one after it.
fn owner_and_next(cluster: &Running, key: &[u8]) -> (Place, Place) {
    let nodes = nodes_of(cluster);
    let place = usize::from(slot(key)) * nodes.len() / 16_384;
    (nodes[place].clone(), nodes[(place + 1) % nodes.len()].clone())
}

/// Begins to move the slot of this key from its node to the next one.
fn begin_to_move(cluster: &Running, key: &[u8]) -> (Place, Place) {
    let (from, to) = owner_and_next(cluster, key);
    let slot = slot(key);
    tell(&to, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", text(tell(&from, "CLUSTER MYID"))));
    tell(&from, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", text(tell(&to, "CLUSTER MYID"))));
    (from, to)
}

fn hand_over(from: &Place, to: &Place, key: &str) {
    assert_eq!(text(tell(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 5000", port(to)))), "OK");
}

#[test]
fn keys_of_one_question_are_split_by_slot() {
    for product in PRODUCTS {
        let cluster = started(product);
        let facts = cluster.facts.clone();
        assert_eq!((&*facts.settings["cluster nodes"], &*facts.settings["cluster slots"]), ("3", "5461, 5461, 5462"));
        let store = cluster.open();
        let mut session = session(store.as_ref());
        let session = session.as_mut();
        let (mut keys, mut values) = (KeyList::default(), KeyList::default());
        for number in 0..100 {
            keys.push(format!("key-{number}").as_bytes());
            values.push("v".repeat(number).as_bytes());
        }
        let pairs = Pairs { keys: keys.lend(), values: values.lend() };
        assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
        let slots: std::collections::BTreeSet<u16> = keys.lend().iter().map(slot).collect();
        assert_eq!(session.commands(), Some(slots.len() as u64), "one for each slot");
        let mut asked = keys.clone();
        asked.push(b"missing");
        match session.ask(&Op::GetMany(asked.lend())).unwrap() {
            Reply::Values(found) => {
                assert!(found.iter().take(100).eq(values.lend().iter().map(Some)));
                assert_eq!((found.len(), found.get(100)), (101, None));
            }
            other => panic!("{other:?}"),
        }
        let before = session.commands().unwrap();
        let tagged: KeyList = [&b"{t}a"[..], b"{t}b", b"x{t}"].into_iter().collect();
        assert!(matches!(session.ask(&Op::GetMany(tagged.lend())).unwrap(), Reply::Values(found) if found.len() == 3));
        assert_eq!(session.commands(), Some(before + 1), "they share a slot");
        assert_eq!(store.count().unwrap(), Some(100));
        assert!(nodes_of(&cluster).iter().all(|node| matches!(tell(node, "DBSIZE"), Value::Number(20..))));
        assert_eq!(nodes_of(&cluster).len(), 3);
        let words = session.ask(&Op::GetMany(Default::default())).unwrap_err().to_string();
        assert!(words.contains("get-many of nothing"), "{words}");
        counts(session);
        versions(session);
    }
}

fn counts(session: &mut dyn Session) {
    let mut sums = SumList::default();
    let keys: KeyList = [&b"n1"[..], b"n2", b"n3", b"n4"].into_iter().collect();
    keys.lend().iter().zip(1..).for_each(|(key, by)| sums.push(key, by));
    for _ in 0..2 {
        assert_eq!(session.ask(&Op::AddMany(sums.lend())).unwrap(), Reply::Done);
    }
    assert_eq!(
        session.ask(&Op::NumberMany(keys.lend())).unwrap(),
        Reply::Numbers(&[Some(2), Some(4), Some(6), Some(8)])
    );
    assert_eq!(session.ask(&Op::Increment { key: b"n1", by: -3 }).unwrap(), Reply::Number(-1));
    assert_eq!(session.ask(&Op::Number(b"n9")).unwrap(), Reply::Missing);
    let (records, fields): (KeyList, KeyList) =
        ([&b"r1"[..], b"r2"].into_iter().collect(), [&b"f1"[..], b"f2"].into_iter().collect());
    for _ in 0..3 {
        let op = Op::Tally { records: records.lend(), fields: fields.lend(), by: 2 };
        assert_eq!(session.ask(&op).unwrap(), Reply::Done);
    }
    match session.ask(&Op::ReadTally(b"r2")).unwrap() {
        Reply::Rows(pairs) => assert!(pairs.iter().all(|(_, count)| count == b"6") && pairs.iter().len() == 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(session.ask(&Op::Delete(b"n1")).unwrap(), Reply::Done);
    assert_eq!(session.ask(&Op::Delete(b"n1")).unwrap(), Reply::Missing);
}

fn versions(session: &mut dyn Session) {
    for key in [&b"k1"[..], b"k2", b"k3", b"k4"] {
        set(session, key, b"before");
        let version = version_of(session, key);
        assert_eq!(session.ask(&Op::Cas { key, version, value: b"after" }).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::Cas { key, version, value: b"again" }).unwrap(), Reply::Conflict);
        assert_eq!(get(session, key).as_deref(), Some(&b"after"[..]));
    }
}

#[test]
fn a_command_follows_a_slot_that_has_moved() {
    for product in PRODUCTS {
        let cluster = started(product);
        let store = cluster.open();
        let mut old = session(store.as_ref());
        let old = old.as_mut();
        set(old, b"k", b"v");
        assert_eq!(old.ask(&Op::Increment { key: b"{k}n", by: 1 }).unwrap(), Reply::Number(1));
        let version = version_of(old, b"k");
        let moved = store.relocate(b"k").expect("it is ours").unwrap();
        assert_eq!(moved, 2, "both share a slot");
        let before = old.commands().unwrap();
        assert_eq!(old.ask(&Op::Increment { key: b"{k}n", by: 1 }).unwrap(), Reply::Number(2), "once");
        assert_eq!(old.commands(), Some(before + 2), "MOVED, and the command again");
        assert_eq!(get(old, b"k").as_deref(), Some(&b"v"[..]));
        assert_eq!(old.commands(), Some(before + 3), "it knows the slot's node now");
        assert_eq!(old.ask(&Op::Cas { key: b"k", version, value: b"w" }).unwrap(), Reply::Conflict, "of another node");
        let newer = version_of(old, b"k");
        let of_older = Op::Cas { key: b"k", version, value: b"x" };
        assert_eq!(old.ask(&of_older).unwrap(), Reply::Conflict, "each node counts its watches by itself");
        assert_eq!(old.ask(&Op::Cas { key: b"k", version: newer, value: b"w" }).unwrap(), Reply::Done);
        assert_eq!(get(old, b"k").as_deref(), Some(&b"w"[..]));
    }
}

#[test]
fn a_command_asks_for_a_slot_that_is_on_its_way() {
    for product in PRODUCTS {
        let cluster = started(product);
        let store = cluster.open();
        let mut session = session(store.as_ref());
        let session = session.as_mut();
        ["{k}a", "{k}b", "{k}n"].iter().for_each(|key| set(session, key.as_bytes(), b"1"));
        let (from, to) = begin_to_move(&cluster, b"k");
        hand_over(&from, &to, "{k}a");
        hand_over(&from, &to, "{k}n");
        assert_eq!(get(session, b"{k}a").as_deref(), Some(&b"1"[..]), "it is there");
        assert_eq!(get(session, b"{k}b").as_deref(), Some(&b"1"[..]), "it is still here");
        assert_eq!(session.ask(&Op::Increment { key: b"{k}n", by: 1 }).unwrap(), Reply::Number(2), "once");
        set(session, b"{k}new", b"2");
        let one: KeyList = [&b"{k}a"[..]].into_iter().collect();
        let mut sums = SumList::default();
        sums.push(b"{k}n", 5);
        assert_eq!(session.ask(&Op::AddMany(sums.lend())).unwrap(), Reply::Done);
        assert!(
            matches!(session.ask(&Op::GetMany(one.lend())).unwrap(), Reply::Values(v) if v.get(0) == Some(&b"1"[..]))
        );
        // Some keys here and some there: it waits until the slot has moved. So does a version.
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                is_done.store(true, Ordering::SeqCst);
                hand_over(&from, &to, "{k}b");
                thread::sleep(Duration::from_millis(200));
                let id = text(tell(&to, "CLUSTER MYID"));
                for node in [&to, &from] {
                    tell(node, &format!("CLUSTER SETSLOT {} NODE {id}", slot(b"k")));
                }
            });
            let both: KeyList = [&b"{k}a"[..], b"{k}b", b"{k}new"].into_iter().collect();
            match session.ask(&Op::GetMany(both.lend())).unwrap() {
                Reply::Values(found) => assert!(found.iter().flatten().eq([b"1", b"1", b"2"])),
                other => panic!("{other:?}"),
            }
            assert!(is_done.load(Ordering::SeqCst), "it waited");
            // A watch holds on one node only.
            let version = version_of(session, b"{k}n");
            assert_eq!(session.ask(&Op::Cas { key: b"{k}n", version, value: b"9" }).unwrap(), Reply::Done);
        });
        assert_eq!(session.ask(&Op::Number(b"{k}n")).unwrap(), Reply::Number(9));
    }
}

#[test]
fn a_node_that_kvfair_did_not_start_is_not_connected_to() {
    let cluster = started("redis");
    let store = cluster.open();
    let mut session = session(store.as_ref());
    set(session.as_mut(), b"k", b"v");
    let (_, to) = owner_and_next(&cluster, b"k");
    store.relocate(b"k").expect("it is ours").unwrap();
    // RFC 5737: an address of documentation. Every node hears of it before long.
    tell(&to, "CONFIG SET cluster-announce-ip 192.0.2.1");
    let words = soon(|| {
        let mut session = store.session().expect("connections to the nodes as they were");
        session.ask(&Op::Get(b"k")).err()
    });
    let named = format!("MOVED {} 192.0.2.1:{}", slot(b"k"), port(&to));
    assert!(words.contains(&named) && words.contains("kvfair did not start that"), "{words}");
    let words = soon(|| (cluster.adapter.open)(&cluster.launch).err());
    assert!(words.contains("kvfair did not start that"), "{words}");
}

/// The first refusal: nodes hear of each other's addresses one after the other.
fn soon(mut ask: impl FnMut() -> Option<Fault>) -> String {
    let began = Instant::now();
    loop {
        match ask() {
            Some(fault) => return fault.to_string(),
            None => assert!(began.elapsed() < Duration::from_secs(90), "nobody names the other address"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_slot_without_a_node_is_named() {
    let cluster = started("valkey");
    assert!(by_url(&cluster.launch.place).unwrap().facts().is_ok());
    tell(&cluster.launch.place, "CLUSTER DELSLOTSRANGE 100 200");
    let fault = by_url(&cluster.launch.place).err().expect("refused");
    assert!(matches!(fault, Fault::Unsupported(_)));
    let words = fault.to_string();
    assert!(words.contains("slots 100 to 200 have no node: give them one"), "{words}");
}

#[test]
fn a_single_server_and_a_node_are_told_apart() {
    let alone = start("redis", Transport::Tcp);
    let words = by_url(&alone.launch.place).err().expect("refused").to_string();
    assert!(words.contains("is a single server and no node of a cluster"), "{words}");
    let cluster = started("redis");
    let adapter = find("redis").expect("it is there");
    let store = (adapter.open)(&Launch::at(cluster.launch.place.clone(), Duration::from_secs(2))).unwrap();
    let words = store.facts().unwrap_err().to_string();
    assert!(words.contains(&format!("redis-cluster://{}", cluster.launch.place)), "{words}");
    let launch = |settings: &[(&str, &str)], database: Option<&str>| {
        let mut launch = cluster.launch.clone();
        launch.settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        launch.login.database = database.map(str::to_string);
        (adapter.open)(&launch).err().expect("refused").to_string()
    };
    assert!(launch(&[("counters", "hash")], None).contains("leave ?counters=hash out"));
    assert!(launch(&[], Some("3")).contains("a cluster has database 0 only"));
    // Another's cluster is never changed.
    assert!(by_url(&cluster.launch.place).unwrap().relocate(b"k").is_none());
}
