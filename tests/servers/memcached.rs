//! What only memcached has: limits of its own, and records that it drops.

use kvfair::model::op::{KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::blocking::BlockingConnection;

use super::{BOTH, get, lacks, noise, refusal, set};
use crate::common::{Running, session, start};

#[test]
fn memcached_refuses_a_value_that_is_too_large_and_the_next_answer_is_right() {
    for transport in BOTH {
        let server = start("memcached", transport);
        let store = server.open();
        let mut session = session(store.as_ref());
        set(session.as_mut(), b"before", b"kept");
        for size in [1 << 20, (1 << 20) + 1, 5 << 20] {
            let value = noise(size);
            let words = refusal(session.as_mut(), Op::Set { key: b"big", value: &value, ttl_s: None });
            assert!(
                words.contains("too large") && words.contains(&size.to_string()) && words.contains("-I"),
                "{words}"
            );
            assert_eq!(get(session.as_mut(), b"before").as_deref(), Some(&b"kept"[..]));
            refusal(session.as_mut(), Op::SetIfAbsent { key: b"big", value: &value });
            assert_eq!(get(session.as_mut(), b"big"), None);
        }
        let big = noise(2 << 20);
        let keys: KeyList = [&b"s1"[..], b"s2", b"s3"].into_iter().collect();
        let values: KeyList = [&b"1"[..], &big, b"3"].into_iter().collect();
        let words = refusal(session.as_mut(), Op::SetMany(Pairs { keys: keys.lend(), values: values.lend() }));
        assert!(words.contains("too large"), "{words}");
        assert_eq!(get(session.as_mut(), b"s3").as_deref(), Some(&b"3"[..]));
        // Just below the limit, with its key and head, an item goes in.
        let most = noise((1 << 20) - 1024);
        set(session.as_mut(), b"most", &most);
        assert!(get(session.as_mut(), b"most").as_deref() == Some(&most[..]));
    }
}

#[test]
fn memcached_names_its_limits() {
    let server = start("memcached", Transport::Unix);
    let store = server.open();
    let mut session = session(store.as_ref());
    let long = vec![b'k'; 251];
    let what = lacks(session.as_mut(), Op::Get(&long));
    assert!(what.contains("250") && what.contains("251"), "{what}");
    let spaces = vec![b' '; 84];
    let what = lacks(session.as_mut(), Op::Set { key: &spaces, value: b"", ttl_s: None });
    assert!(what.contains("250") && what.contains("84") && what.contains("252"), "{what}");
    set(session.as_mut(), &spaces[..83], b"fits");
    assert!(lacks(session.as_mut(), Op::Get(b"")).contains("empty"));
    let keys: KeyList = [&b"fine"[..], &long].into_iter().collect();
    lacks(session.as_mut(), Op::GetMany(keys.lend()));
    lacks(session.as_mut(), Op::SetMany(Pairs { keys: keys.lend(), values: keys.lend() }));
    assert_eq!(get(session.as_mut(), b"fine"), None);
    for ttl_s in [0, 30 * 24 * 60 * 60 + 1] {
        let what = lacks(session.as_mut(), Op::Set { key: b"k", value: b"", ttl_s: Some(ttl_s) });
        assert!(what.contains("time to live"), "{what}");
    }
    let month = Op::Set { key: b"k", value: b"v", ttl_s: Some(30 * 24 * 60 * 60) };
    assert_eq!(session.ask(&month).unwrap(), Reply::Done);
    assert_eq!(get(session.as_mut(), b"k").as_deref(), Some(&b"v"[..]));
    assert!(lacks(session.as_mut(), Op::Scan { from: b"", limit: 1 }).contains("scan"));
    assert!(lacks(session.as_mut(), Op::ReadTally(b"r")).contains("tally"));
    let below = refusal(session.as_mut(), Op::Increment { key: b"below", by: -5 });
    assert!(below.contains("below 0") && below.contains("-5"), "{below}");
    assert_eq!(session.ask(&Op::Increment { key: b"low", by: 2 }).unwrap(), Reply::Number(2));
    assert!(refusal(session.as_mut(), Op::Increment { key: b"low", by: -3 }).contains("-1"));
    for durability in [Durability::Crash, Durability::Power] {
        assert!((server.adapter.keeps)(durability).is_err());
    }
    let words = server.open_as(Some("me"), Some("s3cret"), None).session().err().unwrap().to_string();
    assert!(words.contains("login") && !words.contains("s3cret"), "{words}");
}

#[test]
fn memcached_counts_what_it_still_holds_and_tells_what_it_dropped() {
    let server: Running = start("memcached", Transport::Unix);
    let store = server.open();
    let mut session = session(store.as_ref());
    let mut fill = |range: std::ops::Range<u32>| {
        range.for_each(|index| set(session.as_mut(), index.to_string().as_bytes(), &noise(100_000)));
    };
    fill(0..40);
    assert_eq!(store.count().unwrap(), Some(40));
    // A running server may be given less memory: here so little that it must drop records.
    let mut admin = BlockingConnection::open("admin", &server.launch).unwrap();
    let answer = admin.exchange(b"cache_memlimit 8\r\n", |bytes| Ok(bytes.starts_with(b"OK\r\n").then_some((4, ()))));
    answer.unwrap();
    fill(40..400);
    let count = store.count().unwrap().expect("memcached can say how many");
    let dropped: u64 = store.facts().unwrap().settings["evictions"].parse().unwrap();
    assert!(count < 400 && dropped > 0, "{count} records, {dropped} dropped");
    assert_eq!(count + dropped, 400);
    assert_eq!(store.stats().unwrap().get("evictions"), Some(dropped as f64));
    assert_eq!(store.evicted().unwrap(), Some(dropped));
}
