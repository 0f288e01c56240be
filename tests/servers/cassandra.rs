//! Cassandra from its own jars: the contract, what is in force, and what is peculiar to it. It takes a gigabyte and ten
//! seconds to start, so one test at a time has one.

use std::sync::{Mutex, MutexGuard};

use kvfair::model::op::{KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::Launch;

use super::{get, noise, set, version_of};
use crate::common::contract::contract;
use crate::common::pool::shared;
use crate::common::{Running, session, start_at};

/// What it has no means for, in the order of the checks: an order of keys, an empty key, a key of 70,000 bytes.
const GAPS: [&str; 3] = ["scan", "set", "set"];

static ONE: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The one that tests share, each alone.
pub fn one() -> (&'static Running, MutexGuard<'static, ()>) {
    let turn = turn();
    (shared("cassandra", Transport::Tcp, Durability::None), turn)
}

#[test]
fn it_keeps_the_contract_and_what_is_peculiar_to_it() {
    let (server, _turn) = one();
    assert_eq!(server.facts.settings["commitlog_sync"], "periodic");
    let power = Launch { durability: Durability::Power, ..server.launch.clone() };
    let words = (server.adapter.open)(&power).unwrap().facts().unwrap_err().to_string();
    assert!(words.contains("commitlog_sync periodic") && words.contains("batch"), "{words}");
    let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{what}"));
    let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
    assert_eq!(found, GAPS);
    conditions_and_plain_writes_keep_their_order(server);
    counters_begin_again_after_they_were_deleted(server);
    large_ops_are_split(server);
}

/// A write under a condition has another clock than a plain one.
fn conditions_and_plain_writes_keep_their_order(server: &Running) {
    let store = server.open();
    let mut session = session(store.as_ref());
    for round in 0..100_u32 {
        let value = round.to_string();
        set(session.as_mut(), b"mixed", value.as_bytes());
        assert_eq!(session.ask(&Op::Delete(b"mixed")).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::SetIfAbsent { key: b"mixed", value: b"absent" }).unwrap(), Reply::Done);
        let version = version_of(session.as_mut(), b"mixed");
        assert_eq!(session.ask(&Op::Cas { key: b"mixed", version, value: b"changed" }).unwrap(), Reply::Done);
        set(session.as_mut(), b"mixed", value.as_bytes());
        assert_eq!(get(session.as_mut(), b"mixed").as_deref(), Some(value.as_bytes()), "round {round}");
    }
}

fn counters_begin_again_after_they_were_deleted(server: &Running) {
    let store = server.open();
    let mut session = session(store.as_ref());
    for by in 1..100 {
        assert_eq!(session.ask(&Op::Increment { key: b"again", by }).unwrap(), Reply::Number(by));
        assert_eq!(session.ask(&Op::Delete(b"again")).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::Number(b"again")).unwrap(), Reply::Missing);
    }
    let (record, field): (KeyList, KeyList) =
        ([&b"a record"[..]].into_iter().collect(), [&b"f"[..]].into_iter().collect());
    for by in 1..30 {
        let op = Op::Tally { records: record.lend(), fields: field.lend(), by };
        assert_eq!(session.ask(&op).unwrap(), Reply::Done);
        match session.ask(&Op::ReadTally(b"a record")).unwrap() {
            Reply::Rows(rows) => assert_eq!(rows.iter().next(), Some((&b"f"[..], by.to_string().as_bytes()))),
            other => panic!("read-tally answered {other:?}"),
        }
        assert_eq!(session.ask(&Op::Delete(b"a record")).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::ReadTally(b"a record")).unwrap(), Reply::Missing);
    }
}

fn large_ops_are_split(server: &Running) {
    let store = server.open();
    let mut session = session(store.as_ref());
    let names: Vec<String> = (0..3_000).map(|index| format!("a name of some length {index:012}")).collect();
    let keys: KeyList = names.iter().map(String::as_bytes).collect();
    let values: Vec<Vec<u8>> = (0..3_000).map(|index| noise(index % 300)).collect();
    let list: KeyList = values.iter().map(Vec::as_slice).collect();
    let pairs = Pairs { keys: keys.lend(), values: list.lend() };
    assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
    match session.ask(&Op::GetMany(keys.lend())).unwrap() {
        Reply::Values(found) => assert!(found.iter().eq(values.iter().map(|value| Some(value.as_slice())))),
        other => panic!("get-many answered {other:?}"),
    }
    let records: KeyList = [&b"record 1"[..], b"record 2"].into_iter().collect();
    for _ in 0..2 {
        let op = Op::Tally { records: records.lend(), fields: keys.lend(), by: 21 };
        assert_eq!(session.ask(&op).unwrap(), Reply::Done);
    }
    match session.ask(&Op::ReadTally(b"record 2")).unwrap() {
        Reply::Rows(rows) => assert!(rows.iter().len() == 3_000 && rows.iter().all(|(_, count)| count == b"42")),
        other => panic!("read-tally answered {other:?}"),
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_where_the_class_says_so() {
    let _turn = turn();
    let server = start_at("cassandra", Transport::Tcp, Durability::Crash);
    assert_eq!(server.facts.settings["commitlog_sync"], "batch");
    {
        let store = server.open();
        let mut session = session(store.as_ref());
        for index in 0..200_i64 {
            set(session.as_mut(), &index.to_be_bytes(), b"acknowledged");
            session.ask(&Op::Increment { key: b"n", by: index }).unwrap();
        }
    }
    let server = server.kill_and_start_again();
    let store = server.open();
    assert_eq!(store.count().unwrap(), Some(201));
    assert_eq!(session(store.as_ref()).ask(&Op::Number(b"n")).unwrap(), Reply::Number(199 * 200 / 2));
}
