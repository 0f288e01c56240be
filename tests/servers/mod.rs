//! The served stores against real servers: every op, awkward keys and values, logins, conflicts, limits.

#[cfg(feature = "cassandra")]
mod cassandra;
mod cluster;
mod memcached;
mod memcachedb;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(feature = "mongodb")]
mod mongodb;
mod prepared;
mod protocols;
mod redis;
mod sql;
mod store_stats;
mod strange;
mod tokyotyrant;

use std::time::{Duration, Instant};

use crate::common::pool::{apart, shared};
use crate::common::session;
use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::Session;

const BOTH: [Transport; 2] = [Transport::Unix, Transport::Tcp];
const SERVED: [&str; 3] = ["redis", "valkey", "memcached"];

fn set(session: &mut dyn Session, key: &[u8], value: &[u8]) {
    assert_eq!(session.ask(&Op::Set { key, value, ttl_s: None }).unwrap(), Reply::Done);
}

fn get(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    match session.ask(&Op::Get(key)).unwrap() {
        Reply::Value(value) => Some(value.to_vec()),
        Reply::Missing => None,
        other => panic!("get answered {other:?}"),
    }
}

fn version_of(session: &mut dyn Session, key: &[u8]) -> u64 {
    match session.ask(&Op::GetVersion(key)).unwrap() {
        Reply::Versioned(_, version) => version,
        other => panic!("get-version answered {other:?}"),
    }
}

fn refusal(session: &mut dyn Session, op: Op<'_>) -> String {
    match session.ask(&op) {
        Err(Fault::Refused(words)) => words,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn lacks(session: &mut dyn Session, op: Op<'_>) -> String {
    match session.ask(&op) {
        Err(Fault::Unsupported(what)) => what,
        other => panic!("expected unsupported, got {other:?}"),
    }
}

/// Bytes without a pattern that a misplaced length could hide in; the same for the same size.
fn noise(size: usize) -> Vec<u8> {
    let mut state = size as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size).map(|_| next()).collect()
}

#[test]
fn every_server_starts_by_its_recipe_and_says_what_is_in_force() {
    for store in SERVED {
        for transport in BOTH {
            let server = shared(store, transport, Durability::None);
            let facts = &server.facts;
            assert_eq!(facts.process_id, Some(server.id()), "{store}");
            let printed = std::process::Command::new(server.adapter.server.unwrap().programs[0])
                .arg(server.adapter.server.unwrap().version_argument)
                .output()
                .unwrap();
            let printed = String::from_utf8(printed.stdout).unwrap();
            assert_eq!((server.adapter.server.unwrap().version)(&printed).as_deref(), Some(facts.version.as_str()));
            assert!(!facts.client_library.is_empty() && !facts.increment.is_empty());
            let needed: &[(&str, &str)] = match store {
                "memcached" => &[("item_size_max", "1048576"), ("evictions", "0"), ("maxbytes", "1073741824")],
                _ => &[("save", ""), ("appendonly", "no"), ("maxmemory", "0"), ("maxmemory-policy", "noeviction")],
            };
            for (name, value) in needed {
                assert_eq!(facts.settings.get(*name).map(String::as_str), Some(*value), "{store} {name}");
            }
            server.open().final_flush().unwrap();
        }
    }
}

#[test]
fn every_op_of_every_served_store() {
    for store in SERVED {
        for transport in BOTH {
            let server = apart(store, transport, Durability::None);
            let store = server.open();
            let mut session = session(store.as_ref());
            common_ops(session.as_mut());
            many_ops(session.as_mut());
            counters(session.as_mut());
            check_and_set(session.as_mut());
            assert_eq!(store.count().unwrap(), Some(11), "{}", server.adapter.name);
            assert!(session.commands().unwrap() >= 40);
        }
    }
}

/// Leaves one record.
fn common_ops(session: &mut dyn Session) {
    assert_eq!(get(session, b"a"), None);
    set(session, b"a", b"1st");
    set(session, b"a", b"2nd");
    assert_eq!(get(session, b"a").as_deref(), Some(&b"2nd"[..]));
    assert_eq!(session.ask(&Op::SetIfAbsent { key: b"a", value: b"3rd" }).unwrap(), Reply::Conflict);
    assert_eq!(session.ask(&Op::SetIfAbsent { key: b"b", value: b"4th" }).unwrap(), Reply::Done);
    assert_eq!(get(session, b"a").as_deref(), Some(&b"2nd"[..]));
    assert_eq!(get(session, b"b").as_deref(), Some(&b"4th"[..]));
    assert_eq!(session.ask(&Op::Delete(b"b")).unwrap(), Reply::Done);
    assert_eq!(session.ask(&Op::Delete(b"b")).unwrap(), Reply::Missing);
    assert_eq!(get(session, b"b"), None);
    let began = Instant::now();
    assert_eq!(session.ask(&Op::Set { key: b"gone", value: b"x", ttl_s: Some(1) }).unwrap(), Reply::Done);
    let found = get(session, b"gone");
    // memcached counts whole seconds of its own.
    assert!(found.as_deref() == Some(&b"x"[..]) || began.elapsed() > Duration::from_millis(900), "{found:?}");
    while get(session, b"gone").is_some() {
        assert!(began.elapsed() < Duration::from_secs(90), "a time to live of 1 s never ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    session.flush().unwrap();
}

/// Leaves five records.
fn many_ops(session: &mut dyn Session) {
    let keys: KeyList = [&b"m1"[..], b"m2", b"m3", b"m4", b"m5"].into_iter().collect();
    let values: KeyList = [&b"one"[..], b"", b"END\r\n", b"$-1\r\n", b"\x00\xff"].into_iter().collect();
    let pairs = Pairs { keys: keys.lend(), values: values.lend() };
    assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
    let asked: KeyList = [&b"no"[..], b"m2", b"m1", b"nor", b"m5", b"m5", b"m4", b"m3", b"not"].into_iter().collect();
    let found: Vec<Option<Vec<u8>>> = match session.ask(&Op::GetMany(asked.lend())).unwrap() {
        Reply::Values(values) => values.iter().map(|value| value.map(<[u8]>::to_vec)).collect(),
        other => panic!("get-many answered {other:?}"),
    };
    let expected: [Option<&[u8]>; 9] = [
        None,
        Some(b""),
        Some(b"one"),
        None,
        Some(b"\x00\xff"),
        Some(b"\x00\xff"),
        Some(b"$-1\r\n"),
        Some(b"END\r\n"),
        None,
    ];
    assert_eq!(found, expected.map(|value| value.map(<[u8]>::to_vec)));
    let nothing: KeyList = [&b"no"[..], b"nor"].into_iter().collect();
    match session.ask(&Op::GetMany(nothing.lend())).unwrap() {
        Reply::Values(values) => assert!(values.len() == 2 && values.iter().all(|value| value.is_none())),
        other => panic!("get-many answered {other:?}"),
    }
    lacks(session, Op::GetMany(KeyList::default().lend()));
    lacks(session, Op::SetMany(Pairs::default()));
}

/// Leaves four records.
fn counters(session: &mut dyn Session) {
    assert_eq!(session.ask(&Op::Number(b"n")).unwrap(), Reply::Missing);
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: 1 }).unwrap(), Reply::Number(1));
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: 99 }).unwrap(), Reply::Number(100));
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: -1 }).unwrap(), Reply::Number(99));
    assert_eq!(session.ask(&Op::Number(b"n")).unwrap(), Reply::Number(99));
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: -99 }).unwrap(), Reply::Number(0));
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: 0 }).unwrap(), Reply::Number(0));
    assert_eq!(session.ask(&Op::Increment { key: b"top", by: i64::MAX }).unwrap(), Reply::Number(i64::MAX));
    assert_eq!(session.ask(&Op::Number(b"top")).unwrap(), Reply::Number(i64::MAX));
    set(session, b"n9", b"9");
    let asked: KeyList = [&b"n"[..], b"none", b"n9", b"top"].into_iter().collect();
    let expected = [Some(0), None, Some(9), Some(i64::MAX)];
    assert_eq!(session.ask(&Op::NumberMany(asked.lend())).unwrap(), Reply::Numbers(&expected));
    set(session, b"word", b"no number");
    assert!(refusal(session, Op::Number(b"word")).contains("no number"));
    let asked: KeyList = [&b"n"[..], b"word", b"n9"].into_iter().collect();
    assert!(refusal(session, Op::NumberMany(asked.lend())).contains("no number"));
    refusal(session, Op::Increment { key: b"word", by: 1 });
    assert_eq!(session.ask(&Op::Number(b"n9")).unwrap(), Reply::Number(9));
}

/// Leaves one record.
fn check_and_set(session: &mut dyn Session) {
    assert_eq!(session.ask(&Op::GetVersion(b"c")).unwrap(), Reply::Missing);
    set(session, b"c", b"old");
    let version = match session.ask(&Op::GetVersion(b"c")).unwrap() {
        Reply::Versioned(b"old", version) => version,
        other => panic!("get-version answered {other:?}"),
    };
    let again = |value| Op::Cas { key: b"c", version, value };
    assert_eq!(session.ask(&again(b"new")).unwrap(), Reply::Done);
    assert_eq!(get(session, b"c").as_deref(), Some(&b"new"[..]));
    assert_eq!(session.ask(&again(b"newer")).unwrap(), Reply::Conflict, "a version serves once");
    assert_eq!(get(session, b"c").as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_change_by_another_session_is_a_conflict() {
    for store in SERVED {
        let server = apart(store, Transport::Unix, Durability::None);
        let store = server.open();
        let (mut ours, mut theirs) = (session(store.as_ref()), session(store.as_ref()));
        set(ours.as_mut(), b"k", b"1");
        let version = version_of(ours.as_mut(), b"k");
        set(theirs.as_mut(), b"k", b"2");
        assert_eq!(ours.ask(&Op::Cas { key: b"k", version, value: b"3" }).unwrap(), Reply::Conflict);
        assert_eq!(get(ours.as_mut(), b"k").as_deref(), Some(&b"2"[..]));

        let version = version_of(ours.as_mut(), b"k");
        assert_eq!(theirs.ask(&Op::Delete(b"k")).unwrap(), Reply::Done);
        assert_eq!(ours.ask(&Op::Cas { key: b"k", version, value: b"3" }).unwrap(), Reply::Conflict);
        assert_eq!(get(ours.as_mut(), b"k"), None);

        set(theirs.as_mut(), b"k", b"4");
        let version = version_of(ours.as_mut(), b"k");
        assert_eq!(ours.ask(&Op::Cas { key: b"k", version, value: b"5" }).unwrap(), Reply::Done);
        assert_eq!(get(theirs.as_mut(), b"k").as_deref(), Some(&b"5"[..]));
    }
}

#[test]
fn values_of_every_awkward_size_come_back_as_they_were() {
    for store in SERVED {
        for transport in BOTH {
            let server = apart(store, transport, Durability::None);
            let store = server.open();
            let mut session = session(store.as_ref());
            let around = |size: usize| size - 1..=size + 1;
            let mut sizes = vec![0, 1, 2, 170_000, 1_000_000];
            sizes.extend(
                around(1024).chain(around(4096)).chain(around(16384)).chain(around(32768)).chain(around(65536)),
            );
            sizes.extend(around(131_072));
            if server.adapter.name != "memcached" {
                sizes.extend(around(1 << 20).chain(around(8 << 20)));
            }
            for size in sizes {
                let value = noise(size);
                set(session.as_mut(), b"value", &value);
                let found = get(session.as_mut(), b"value");
                assert!(found.as_deref() == Some(&value[..]), "{size} bytes came back otherwise");
            }
            for value in
                [&b"END\r\n"[..], b"$-1\r\n", b"STORED\r\n", b"\r\n", b"+OK\r\n", b"VALUE a 0 1\r\n", b"*1\r\n"]
            {
                set(session.as_mut(), b"value", value);
                assert_eq!(get(session.as_mut(), b"value").as_deref(), Some(value));
            }
        }
    }
}

#[test]
fn keys_of_every_kind_are_told_apart() {
    for store in SERVED {
        let server = apart(store, Transport::Unix, Durability::None);
        let store = server.open();
        let mut session = session(store.as_ref());
        let longest = vec![b'k'; 250];
        let keys: [&[u8]; 13] = [
            b"a b",
            b"a%20b",
            b"a%2520b",
            b"a\tb",
            b"a\r\nb",
            b"a\0b",
            b"\x7f",
            b"%",
            b" ",
            "Beyonc\u{e9} \u{1F3B5}".as_bytes(),
            b"\xff\xfe",
            b"a_b",
            &longest,
        ];
        for (index, key) in keys.iter().enumerate() {
            set(session.as_mut(), key, &[index as u8]);
        }
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(get(session.as_mut(), key), Some(vec![index as u8]), "{key:?}");
        }
        let list: KeyList = keys.iter().copied().collect();
        match session.ask(&Op::GetMany(list.lend())).unwrap() {
            Reply::Values(values) => {
                assert_eq!(values.len(), keys.len());
                assert!(values.iter().enumerate().all(|(index, value)| value == Some(&[index as u8][..])))
            }
            other => panic!("get-many answered {other:?}"),
        }
        assert_eq!(session.ask(&Op::Increment { key: b"count of\r\n", by: 3 }).unwrap(), Reply::Number(3));
        assert_eq!(session.ask(&Op::Delete(b"a\r\nb")).unwrap(), Reply::Done);
        assert_eq!(store.count().unwrap(), Some(keys.len() as u64));
    }
}

#[test]
fn a_large_op_of_many_commands_and_a_large_answer_go_through() {
    // Far more answers than a socket buffers, so that a client that only wrote would wait for a server that
    // waits for it.
    const COUNT: usize = 30_000;
    for store in SERVED {
        for transport in BOTH {
            let server = apart(store, transport, Durability::None);
            let store = server.open();
            let mut session = session(store.as_ref());
            let names: Vec<String> = (0..COUNT).map(|index| format!("key:{index:012}")).collect();
            let values: Vec<Vec<u8>> = (0..COUNT).map(|index| noise(index % 300)).collect();
            let keys: KeyList = names.iter().map(String::as_bytes).collect();
            let list: KeyList = values.iter().map(Vec::as_slice).collect();
            let pairs = Pairs { keys: keys.lend(), values: list.lend() };
            assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
            match session.ask(&Op::GetMany(keys.lend())).unwrap() {
                Reply::Values(found) => {
                    assert!(found.iter().eq(values.iter().map(|value| Some(value.as_slice()))))
                }
                other => panic!("get-many answered {other:?}"),
            }
            assert_eq!(store.count().unwrap(), Some(COUNT as u64));
        }
    }
}
