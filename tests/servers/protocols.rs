//! memcached by each of its protocols: the same ops, the same answers, and records that the others find.

use kvfair::model::op::{KeyList, Op, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{Launch, Store};

use super::{BOTH, check_and_set, common_ops, counters, get, lacks, many_ops, noise, refusal, set};
use crate::common::{Running, session, start_set};

const PROTOCOLS: [&str; 3] = ["text", "meta", "binary"];

fn by(protocol: &str, transport: Transport) -> Running {
    start_set("memcached", transport, Durability::None, &[("protocol", protocol)])
}

/// Another door to a server that runs.
fn door(server: &Running, protocol: &str) -> Box<dyn Store> {
    let settings = [("protocol".to_string(), protocol.to_string())].into_iter().collect();
    (server.adapter.open)(&Launch { settings, ..server.launch.clone() }).unwrap()
}

#[test]
fn every_protocol_does_every_op_and_says_which_it_is() {
    for protocol in PROTOCOLS {
        for transport in BOTH {
            let server = by(protocol, transport);
            assert_eq!(server.facts.client_library, format!("memcache {protocol}"));
            let store = server.open();
            let mut session = session(store.as_ref());
            common_ops(session.as_mut());
            many_ops(session.as_mut());
            counters(session.as_mut());
            check_and_set(session.as_mut());
            assert_eq!(store.count().unwrap(), Some(11), "{protocol}");
            let below = refusal(session.as_mut(), Op::Increment { key: b"below", by: -5 });
            assert!(below.contains("below 0") && below.contains("-5"), "{below}");
            assert!(lacks(session.as_mut(), Op::Scan { from: b"", limit: 1 }).contains("scan"));
            let big = noise(2 << 20);
            let words = refusal(session.as_mut(), Op::Set { key: b"big", value: &big, ttl_s: None });
            assert!(words.contains("2097152") && words.contains("-I"), "{protocol}: {words}");
            assert_eq!(get(session.as_mut(), b"a").as_deref(), Some(&b"2nd"[..]), "{protocol}");
        }
    }
}

#[test]
fn an_increment_of_a_missing_counter_is_two_commands_more_by_text_and_none_otherwise() {
    for (protocol, first) in [("text", 3), ("meta", 1), ("binary", 1)] {
        let server = by(protocol, Transport::Unix);
        let store = server.open();
        let mut session = session(store.as_ref());
        for (sum, commands) in [(3, first), (6, first + 1)] {
            assert_eq!(session.ask(&Op::Increment { key: b"k", by: 3 }).unwrap(), Reply::Number(sum));
            assert_eq!(session.commands(), Some(commands), "{protocol}");
        }
    }
}

#[test]
fn the_two_text_protocols_find_each_others_records_and_no_key_is_another() {
    let server = by("text", Transport::Unix);
    let keys: [&[u8]; 8] =
        [b"a b", b"a%20b", b"a%2520b", b"%", b"%25", b"a\r\nb", b"a%0D%0Ab", "Beyonc\u{e9}".as_bytes()];
    for (from, to) in [("text", "meta"), ("meta", "text"), ("binary", "binary")] {
        let (one, other) = (door(&server, from), door(&server, to));
        let (mut one, mut other) = (session(one.as_ref()), session(other.as_ref()));
        for (index, key) in keys.iter().enumerate() {
            set(one.as_mut(), key, &[index as u8]);
        }
        let list: KeyList = keys.iter().copied().collect();
        match other.ask(&Op::GetMany(list.lend())).unwrap() {
            Reply::Values(values) => {
                assert_eq!(values.len(), keys.len());
                assert!(values.iter().enumerate().all(|(index, value)| value == Some(&[index as u8][..])))
            }
            other => panic!("get-many answered {other:?}"),
        }
        for key in keys {
            assert_eq!(other.ask(&Op::Delete(key)).unwrap(), Reply::Done, "{from} to {to}");
        }
    }
}
