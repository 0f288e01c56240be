//! The cache in front of a store: nothing is lost on eviction, at the final flush, or when a write fails; and what it
//! misses is what others found that the least recently used order misses.

use std::collections::HashMap;
use std::time::Duration;

use kvfair::model::op::{Fault, Op, Reply};
use kvfair::model::trial::{Cache, CacheCounts};
use kvfair::stores::cached::Cached;
use kvfair::stores::{self, Launch, Place, Session, Store};

use crate::common::needs::{self, Need, needs};

fn open(store: &str, settings: &[(&str, &str)]) -> Box<dyn Store> {
    let adapter = stores::find(store).expect("it is built in");
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let launch = Launch { settings, clients: 4, ..Launch::at(Place::Memory, Duration::from_secs(1)) };
    (adapter.open)(&launch).expect("it opens")
}

fn cached(inner: Box<dyn Store>, memory_bytes: u64, clients: u32) -> Cached {
    Cached::new(inner, Cache { memory_bytes, counts: CacheCounts::Entries, items: None, merge: None }, clients)
}

fn get(session: &mut dyn Session, key: &str) -> Option<Vec<u8>> {
    match session.ask(&Op::Get(key.as_bytes())).expect("an answer") {
        Reply::Value(value) => Some(value.to_vec()),
        Reply::Missing => None,
        other => panic!("get was answered by {other:?}"),
    }
}

fn set(session: &mut dyn Session, key: &str, value: &[u8]) -> Result<(), Fault> {
    session.ask(&Op::Set { key: key.as_bytes(), value, ttl_s: None }).map(drop)
}

/// A small generator of its own: the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Random ops on a cache much too small for them are answered as a map answers them, and afterwards the store itself
/// holds what the map holds.
#[test]
fn a_cache_that_is_too_small_answers_as_a_map_would() {
    for (clients, memory_bytes) in [(1, 4_000), (4, 40_000)] {
        let cached = cached(open("ram", &[]), memory_bytes, clients);
        let (mut values, mut numbers) = (HashMap::new(), HashMap::new());
        let mut random = Random(7);
        let mut session = cached.session().expect("a session");
        for step in 0..20_000 {
            let key = format!("key {}", random.below(60));
            let counter = format!("counter {}", random.below(60));
            match random.below(8) {
                7 => {
                    *numbers.entry(counter.clone()).or_insert(0) += 2;
                    let answer = session.ask(&Op::Add { key: counter.as_bytes(), by: 2 }).expect("an answer");
                    assert_eq!(answer, Reply::Done, "{counter} at {step}");
                }
                0 | 1 => {
                    let value = vec![step as u8; random.below(300) as usize];
                    set(session.as_mut(), &key, &value).expect("it is set");
                    values.insert(key, value);
                }
                2 | 3 => assert_eq!(get(session.as_mut(), &key), values.get(&key).cloned(), "{key} at {step}"),
                4 => {
                    let number = numbers.entry(counter.clone()).or_insert(0);
                    *number += 3;
                    let answer = session.ask(&Op::Increment { key: counter.as_bytes(), by: 3 }).expect("an answer");
                    assert_eq!(answer, Reply::Number(*number), "{counter} at {step}");
                }
                5 => {
                    let answer = session.ask(&Op::Delete(key.as_bytes())).expect("an answer");
                    let expected = if values.remove(&key).is_some() { Reply::Done } else { Reply::Missing };
                    assert_eq!(answer, expected, "{key} at {step}");
                }
                _ => {
                    let answer =
                        session.ask(&Op::SetIfAbsent { key: key.as_bytes(), value: b"new" }).expect("an answer");
                    let expected = if values.contains_key(&key) { Reply::Conflict } else { Reply::Done };
                    assert_eq!(answer, expected, "{key} at {step}");
                    values.entry(key).or_insert_with(|| b"new".to_vec());
                }
            }
        }
        drop(session);
        assert!(cached.counters()["cache evictions"] > 500, "{:?}", cached.counters());
        cached.final_flush().expect("it flushes");
        let inner = cached.into_inner();
        let mut session = inner.session().expect("a session");
        for (key, value) in &values {
            assert_eq!(get(session.as_mut(), key).as_ref(), Some(value), "{key} in the store");
        }
        for (key, number) in &numbers {
            assert_eq!(session.ask(&Op::Number(key.as_bytes())).expect("an answer"), Reply::Number(*number));
        }
        drop(session);
        assert_eq!(inner.count().expect("a count"), Some((values.len() + numbers.len()) as u64));
    }
}

/// Until the cache must, it asks the store for nothing but what a counter was before; then one increment goes out for
/// many.
#[test]
fn increments_gather_and_go_out_as_one() {
    let cached = cached(open("ram", &[]), 1 << 20, 4);
    let mut session = cached.session().expect("a session");
    for _ in 0..1_000 {
        session.ask(&Op::Increment { key: b"n", by: 2 }).expect("an answer");
    }
    drop(session);
    assert_eq!((cached.counters()["cache hits"], cached.counters()["cache misses"]), (999, 1));
    assert_eq!(cached.count().expect("a count"), Some(0));
    cached.final_flush().expect("it flushes");
    let inner = cached.into_inner();
    assert_eq!(inner.session().expect("a session").ask(&Op::Number(b"n")).expect("an answer"), Reply::Number(2_000));
}

/// An add asks the store for nothing until the cache must: not even what a counter was before.
#[test]
fn adds_read_nothing_and_go_out_together() {
    let cached = cached(open("ram", &[]), 1 << 20, 1);
    let mut session = cached.session().expect("a session");
    for turn in 0..1_000_u32 {
        let key = (turn % 250).to_be_bytes();
        assert_eq!(session.ask(&Op::Add { key: &key, by: 2 }).expect("an answer"), Reply::Done);
    }
    assert_eq!(cached.count().expect("a count"), Some(0));
    // Who asks for a sum hears all of it, although nothing was read before.
    let key = 7_u32.to_be_bytes();
    assert_eq!(session.ask(&Op::Increment { key: &key, by: 1 }).expect("an answer"), Reply::Number(9));
    assert_eq!(session.ask(&Op::Increment { key: &key, by: -10 }).expect("an answer"), Reply::Number(-1));
    drop(session);
    assert_eq!((cached.counters()["cache hits"], cached.counters()["cache misses"]), (751, 251));
    cached.final_flush().expect("it flushes");
    let inner = cached.into_inner();
    assert_eq!(inner.count().expect("a count"), Some(250));
    let mut session = inner.session().expect("a session");
    for (key, sum) in [(7_u32, -1), (8, 8)] {
        assert_eq!(session.ask(&Op::Number(&key.to_be_bytes())).expect("an answer"), Reply::Number(sum));
    }
}

/// After so many units the sums are in the store, and what is added next is added to them.
#[test]
fn a_merge_sends_what_was_added_and_forgets_it() {
    for clients in [1, 4] {
        let limit = Cache { memory_bytes: 1 << 20, counts: CacheCounts::Entries, items: None, merge: Some(3) };
        let cached = Cached::new(open("ram", &[]), limit, clients);
        let mut session = cached.session().expect("a session");
        for unit in 1..=7_i64 {
            session.ask(&Op::Add { key: b"n", by: 1 }).expect("an answer");
            session.flush().expect("it flushes");
            assert_eq!(cached.count().expect("a count"), Some(u64::from(unit >= 3)), "unit {unit}");
        }
        assert_eq!(cached.counters()["cache misses"], 3, "the first add after each merge");
        assert_eq!(session.ask(&Op::Number(b"n")).expect("an answer"), Reply::Number(7));
        drop(session);
        cached.final_flush().expect("it flushes");
        let inner = cached.into_inner();
        let answer = inner.session().expect("a session").ask(&Op::Number(b"n")).map(|reply| reply == Reply::Number(7));
        assert!(answer.expect("an answer"));
    }
}

/// A write that the store refuses is told, and what it would have written is still there to be read and written later.
#[test]
fn what_could_not_be_written_stays() {
    // Of the store's ops every second one is refused.
    let cached = cached(open("faulty", &[("fault", "refuse"), ("every", "2")]), 400, 1);
    let mut session = cached.session().expect("a session");
    let mut refused = 0;
    for index in 0..200 {
        let key = format!("key {index}");
        while set(session.as_mut(), &key, b"value").is_err() {
            refused += 1;
            assert!(refused < 1_000, "the cache never gets rid of anything");
        }
    }
    drop(session);
    assert!(refused > 50, "{refused}");
    let flushed = (0..10).any(|_| cached.final_flush().is_ok());
    assert!(flushed, "it never flushed");
    let inner = cached.into_inner();
    let mut session = inner.session().expect("a session");
    for index in 0..200 {
        let key = format!("key {index}");
        // This op too may be one that is refused.
        let found = (0..2).find_map(|_| match session.ask(&Op::Get(key.as_bytes())) {
            Ok(reply) => Some(reply == Reply::Value(b"value")),
            Err(_) => None,
        });
        assert_eq!(found, Some(true), "{key}");
    }
}

#[test]
fn what_a_cache_cannot_answer_is_said() {
    let cached = cached(open("ram", &[]), 1_000, 4);
    let mut session = cached.session().expect("a session");
    for op in [
        Op::ReadTally(b"k"),
        Op::Scan { from: b"k", limit: 1 },
        Op::Set { key: b"k", value: b"v", ttl_s: Some(1) },
        Op::Tally { records: Default::default(), fields: Default::default(), by: 1 },
    ] {
        assert!(matches!(session.ask(&op), Err(Fault::Unsupported(_))), "{}", op.name());
    }
}

/// So many records and no more, whatever their size: against a list that is kept by hand.
#[test]
fn a_cache_may_be_limited_by_records() {
    for items in [1, 2, 7, 30] {
        let limit = Cache { memory_bytes: 1 << 30, counts: CacheCounts::Entries, items: Some(items), merge: None };
        let cached = Cached::new(open("null", &[]), limit, 1);
        let mut session = cached.session().expect("a session");
        let (mut order, mut misses, mut random) = (Vec::new(), 0, Random(3));
        for _ in 0..5_000 {
            // Small numbers more often.
            let number = random.below(40).min(random.below(40));
            let key = format!("key {number}");
            let place = order.iter().position(|known| *known == number);
            let found = session.ask(&Op::Get(key.as_bytes())).expect("an answer") != Reply::Missing;
            assert_eq!(found, place.is_some(), "{key} with {items}");
            match place {
                Some(place) => drop(order.remove(place)),
                None => {
                    misses += 1;
                    let value = vec![1; random.below(2_000) as usize];
                    set(session.as_mut(), &key, &value).expect("it is set");
                    // A change of what is there drives nothing out.
                    set(session.as_mut(), &key, b"smaller").expect("it is set");
                }
            }
            order.push(number);
            let beyond = order.len().saturating_sub(items as usize);
            order.drain(..beyond);
        }
        drop(session);
        assert_eq!(cached.counters()["cache misses"], misses, "with {items}");
    }
}

/// However many clients share it, so many records are in it and no more.
#[test]
fn a_limit_by_records_is_held_by_several_clients_too() {
    for (items, clients) in [(1, 2), (10, 2), (10, 50), (33, 4), (1_001, 7), (10_000, 50)] {
        let limit = Cache { memory_bytes: 1 << 30, counts: CacheCounts::Entries, items: Some(items), merge: None };
        let cached = Cached::new(open("null", &[]), limit, clients);
        let mut session = cached.session().expect("a session");
        // So many that each part of it is full.
        let sets = 10 * items.max(1_000);
        for number in 0..sets {
            set(session.as_mut(), &format!("key {number}"), b"value").expect("it is set");
        }
        drop(session);
        assert_eq!(sets - cached.counters()["cache evictions"], items, "{clients} clients");
    }
}

/// libCacheSim's own test of the least recently used order, on its own trace: see the data's README.
#[test]
fn misses_are_those_that_others_published() {
    needs!(Need::published("cloudphysics.oracleGeneral.bin"));
    let trace = std::fs::read(needs::published("cloudphysics.oracleGeneral.bin")).expect("the trace");
    let published = [93_374, 89_783, 83_572, 81_722, 72_494, 72_104, 71_972, 71_704];
    for (index, expected) in published.into_iter().enumerate() {
        let memory_bytes = (index as u64 + 1) * (128 << 20);
        let cached = Cached::new(
            open("null", &[]),
            Cache { memory_bytes, counts: CacheCounts::Values, items: None, merge: None },
            1,
        );
        let mut session = cached.session().expect("a session");
        let value = vec![0; 1 << 20];
        for request in trace.chunks_exact(24) {
            let key = &request[4..12];
            let size = u32::from_le_bytes(request[12..16].try_into().expect("four bytes")) as usize;
            if session.ask(&Op::Get(key)).expect("an answer") == Reply::Missing {
                session.ask(&Op::Set { key, value: &value[..size], ttl_s: None }).expect("an answer");
            }
        }
        drop(session);
        assert_eq!(cached.counters()["cache misses"], expected, "at {} MiB", memory_bytes >> 20);
    }
}
