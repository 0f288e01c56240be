//! Tokyo Tyrant by both of its protocols: the real ttserver where it is on PATH, else the stand-in that ./test builds.

use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{Launch, find};

use super::memcachedb::borrowed_ops;
use super::{BOTH, refusal};
use crate::common::contract::contract;
use crate::common::needs::{Need, needs, stood_in};
use crate::common::{session, start, start_set};

/// What it has no means for, in the order of the contract's checks: nothing of nothing, counters of more than 32 bits.
const GAPS: &[&str] =
    &["get-many", "increment", "increment", "get-version", "set with a time to live", "read-tally", "scan"];

#[test]
fn every_database_keeps_the_contract() {
    needs!(Need::server("tokyotyrant"));
    for (database, transport) in [("memory", Transport::Tcp), ("hash", Transport::Unix), ("tree", Transport::Tcp)] {
        let server = start_set("tokyotyrant", transport, Durability::None, &[("db", database)]);
        let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{database}: {what}"));
        let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
        assert_eq!(found, GAPS, "{database}");
    }
}

#[test]
fn it_says_what_is_in_force_and_a_stand_in_what_it_is() {
    needs!(Need::server("tokyotyrant"));
    for transport in BOTH {
        let server = start("tokyotyrant", transport);
        let facts = &server.facts;
        assert_eq!(facts.process_id, Some(server.id()));
        assert_eq!(facts.settings["type"], "on-memory hash");
        assert_eq!((facts.client_library.as_str(), facts.increment.as_str()), ("tyrant", "addint (32 bits)"));
        let printed = std::process::Command::new("ttserver").arg("--version").output().unwrap().stdout;
        let stand_in = String::from_utf8(printed).unwrap().contains("tokyotyrant-test");
        assert_eq!(facts.product.as_deref(), stand_in.then_some("tokyotyrant-test"));
        if stand_in && transport == Transport::Tcp {
            stood_in("a real ttserver");
        }
        // A server that kvfair did not start with another database than the target asks for.
        let settings = [("db".to_string(), "tree".to_string())].into_iter().collect();
        let launch = Launch { settings, ..server.launch.clone() };
        let words = (server.adapter.open)(&launch).unwrap().facts().unwrap_err().to_string();
        assert!(words.contains("asked for was: B+ tree") && words.contains("on-memory hash"), "{words}");
    }
}

#[test]
fn it_refuses_the_classes_that_it_was_seen_to_break() {
    let adapter = find("tokyotyrant").unwrap();
    assert!((adapter.keeps)(Durability::None).is_ok());
    for level in [Durability::Crash, Durability::Power] {
        assert!((adapter.keeps)(level).unwrap_err().contains("in place"));
    }
}

#[test]
fn a_counter_that_wraps_is_told() {
    needs!(Need::server("tokyotyrant"));
    let server = start("tokyotyrant", Transport::Unix);
    let store = server.open();
    let mut session = session(store.as_ref());
    let most = i64::from(i32::MAX);
    assert_eq!(session.ask(&Op::Increment { key: b"n", by: most }).unwrap(), Reply::Number(most));
    assert_eq!(session.ask(&Op::Number(b"n")).unwrap(), Reply::Number(most));
    let words = refusal(session.as_mut(), Op::Increment { key: b"n", by: 2 });
    assert!(words.contains("past 2147483647") && words.contains("32 bits"), "{words}");
    // One more than the most is the library's own sign of a failure.
    assert_eq!(session.ask(&Op::Increment { key: b"m", by: most }).unwrap(), Reply::Number(most));
    let words = refusal(session.as_mut(), Op::Increment { key: b"m", by: 1 });
    assert!(words.contains("-2147483648"), "{words}");
    assert_eq!(session.ask(&Op::Increment { key: b"below", by: -3 }).unwrap(), Reply::Number(-3));
    assert_eq!(session.ask(&Op::Number(b"below")).unwrap(), Reply::Number(-3));
}

#[test]
fn memcacheds_text_is_answered_on_the_same_port() {
    needs!(Need::server("tokyotyrant"));
    for transport in BOTH {
        let server = start_set("tokyotyrant", transport, Durability::None, &[("protocol", "memcache")]);
        assert_eq!(server.facts.client_library, "memcache text");
        borrowed_ops(session(server.open().as_ref()).as_mut());
    }
}
