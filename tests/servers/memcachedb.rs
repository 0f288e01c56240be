//! MemcacheDB where it is on PATH; its adapter's ops against memcached everywhere, whose first commands it borrowed.

use kvfair::model::op::{KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{Launch, Session, find};

use super::{BOTH, get, lacks, set};
use crate::common::needs::{Need, needs};
use crate::common::{session, start, start_at};

/// What every borrower of memcached's first commands can do.
pub fn borrowed_ops(session: &mut dyn Session) {
    assert_eq!(get(session, b"a"), None);
    set(session, b"a", b"1st");
    set(session, b"a", b"END\r\n");
    assert_eq!(get(session, b"a").as_deref(), Some(&b"END\r\n"[..]));
    assert_eq!(session.ask(&Op::SetIfAbsent { key: b"a", value: b"2nd" }).unwrap(), Reply::Conflict);
    assert_eq!(session.ask(&Op::SetIfAbsent { key: b"a b", value: b"3rd" }).unwrap(), Reply::Done);
    let keys: KeyList = [&b"no"[..], b"a b", b"a%20b", b"a"].into_iter().collect();
    match session.ask(&Op::GetMany(keys.lend())).unwrap() {
        Reply::Values(values) => assert!(values.iter().eq([None, Some(&b"3rd"[..]), None, Some(b"END\r\n")])),
        other => panic!("get-many answered {other:?}"),
    }
    let pairs = Pairs { keys: keys.lend(), values: keys.lend() };
    assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
    assert_eq!(get(session, b"a%20b").as_deref(), Some(&b"a%20b"[..]));
    assert_eq!(session.ask(&Op::Delete(b"a b")).unwrap(), Reply::Done);
    assert_eq!(session.ask(&Op::Delete(b"a b")).unwrap(), Reply::Missing);
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: 7 }).unwrap(), Reply::Number(7));
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: 1 << 40 }).unwrap(), Reply::Number(7 + (1 << 40)));
    assert_eq!(session.ask(&Op::Number(b"n")).unwrap(), Reply::Number(7 + (1 << 40)));
    assert_eq!(session.ask(&Op::Number(b"none")).unwrap(), Reply::Missing);
    for op in [
        Op::GetVersion(b"a"),
        Op::Cas { key: b"a", version: 1, value: b"v" },
        Op::Set { key: b"a", value: b"v", ttl_s: Some(9) },
        Op::Increment { key: b"n", by: -1 },
    ] {
        lacks(session, op);
    }
}

#[test]
fn the_adapter_of_memcachedb_asks_only_what_memcached_had_first() {
    let adapter = find("memcachedb").unwrap();
    let server = start("memcached", Transport::Unix);
    let store = (adapter.open)(&Launch { ..server.launch.clone() }).unwrap();
    borrowed_ops(session(store.as_ref()).as_mut());
    assert!((adapter.keeps)(Durability::Crash).unwrap().contains("synced"));
    // memcached has no statistics of Berkeley DB: what it keeps is unknown, so that no durability level is believed.
    assert!(store.facts().is_ok());
    let asked = Launch { durability: Durability::Crash, ..server.launch.clone() };
    let fault = (adapter.open)(&asked).unwrap().facts().unwrap_err();
    assert!(fault.to_string().contains("does not tell txn_nosync"), "{fault}");
}

#[test]
fn memcachedb_itself_keeps_what_it_says() {
    needs!(Need::server("memcachedb"));
    for transport in BOTH {
        borrowed_ops(session(start("memcachedb", transport).open().as_ref()).as_mut());
    }
    for durability in [Durability::Crash, Durability::Power] {
        let server = start_at("memcachedb", Transport::Unix, durability);
        assert_eq!(server.facts.settings.get("txn_nosync").map(String::as_str), Some("0"));
        for index in 0..200_u32 {
            set(session(server.open().as_ref()).as_mut(), format!("{index}").as_bytes(), b"acknowledged");
        }
        let server = server.kill_and_start_again();
        for index in 0..200_u32 {
            assert!(get(session(server.open().as_ref()).as_mut(), format!("{index}").as_bytes()).is_some());
        }
    }
}
