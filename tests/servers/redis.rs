//! What only the speakers of RESP have: watches, tallies, logins, databases, durability, a name of their own.

use std::time::Duration;

use kvfair::model::op::{KeyList, Op, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::protocol::resp::{self, Value, command};
use kvfair::stores::blocking::BlockingConnection;
use kvfair::stores::{Launch, find};

use super::{get, lacks, refusal, set, version_of};
use crate::common::pool::{apart, shared};
use crate::common::{session, start, start_at};

const SPEAKERS_OF_RESP: [&str; 2] = ["redis", "valkey"];

#[test]
fn a_version_from_before_an_exec_never_writes() {
    for store in SPEAKERS_OF_RESP {
        let store = apart(store, Transport::Unix, Durability::None).open();
        let mut session = session(store.as_ref());
        set(session.as_mut(), b"x", b"x0");
        set(session.as_mut(), b"y", b"y0");
        let of_x = version_of(session.as_mut(), b"x");
        let of_y = version_of(session.as_mut(), b"y");
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_x, value: b"x1" }).unwrap(), Reply::Done);
        let of_x = version_of(session.as_mut(), b"x");
        assert_eq!(session.ask(&Op::Cas { key: b"y", version: of_y, value: b"y1" }).unwrap(), Reply::Conflict);
        assert_eq!(get(session.as_mut(), b"y").as_deref(), Some(&b"y0"[..]));
        // The watch of x is younger than that, and still good; but not for the version before it.
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_x - 1, value: b"x9" }).unwrap(), Reply::Conflict);
        assert_eq!(get(session.as_mut(), b"x").as_deref(), Some(&b"x1"[..]));
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_x, value: b"x2" }).unwrap(), Reply::Done);
        // Reading versions for ever and setting nothing does not pile up watches, and the last version is good.
        for _ in 0..1000 {
            version_of(session.as_mut(), b"x");
        }
        let of_y = version_of(session.as_mut(), b"y");
        assert_eq!(session.ask(&Op::Cas { key: b"y", version: of_y, value: b"y2" }).unwrap(), Reply::Done);
        assert_eq!(get(session.as_mut(), b"y").as_deref(), Some(&b"y2"[..]));
    }
}

#[test]
fn a_tally_adds_to_every_field_of_every_record() {
    for store in SPEAKERS_OF_RESP {
        let store = apart(store, Transport::Unix, Durability::None).open();
        let mut session = session(store.as_ref());
        let records: KeyList = [&b"r1"[..], b"r2", b"r 3"].into_iter().collect();
        let fields: KeyList = [&b"f1"[..], b"f\r\n2"].into_iter().collect();
        let before = session.commands().expect("a count");
        for by in [1, 41] {
            let op = Op::Tally { records: records.lend(), fields: fields.lend(), by };
            assert_eq!(session.ask(&op).unwrap(), Reply::Done);
        }
        assert_eq!(session.commands(), Some(before + 12));
        for record in [&b"r1"[..], b"r2", b"r 3"] {
            let mut rows: Vec<(Vec<u8>, Vec<u8>)> = match session.ask(&Op::ReadTally(record)).unwrap() {
                Reply::Rows(pairs) => pairs.iter().map(|(field, count)| (field.to_vec(), count.to_vec())).collect(),
                other => panic!("read-tally answered {other:?}"),
            };
            rows.sort();
            assert_eq!(rows, [(b"f\r\n2".to_vec(), b"42".to_vec()), (b"f1".to_vec(), b"42".to_vec())]);
        }
        assert_eq!(session.ask(&Op::ReadTally(b"r4")).unwrap(), Reply::Missing);
        set(session.as_mut(), b"r2", b"no hash");
        let words = refusal(session.as_mut(), Op::Tally { records: records.lend(), fields: fields.lend(), by: 1 });
        assert!(words.starts_with("WRONGTYPE"), "{words}");
        assert!(refusal(session.as_mut(), Op::Get(b"r1")).starts_with("WRONGTYPE"));
        assert_eq!(get(session.as_mut(), b"r2").as_deref(), Some(&b"no hash"[..]));
        assert!(lacks(session.as_mut(), Op::Scan { from: b"", limit: 1 }).contains("no order"));
        assert!(
            lacks(session.as_mut(), Op::Tally { records: records.lend(), fields: Default::default(), by: 1 })
                .contains("tally")
        );
    }
}

#[test]
fn a_login_is_taken_or_refused_by_name_and_never_told() {
    for store in SPEAKERS_OF_RESP {
        let server = start(store, Transport::Tcp);
        let address = server.launch.place.to_string();
        let mut admin = BlockingConnection::open("admin", &server.launch).unwrap();
        tell(&mut admin, &[b"ACL", b"SETUSER", b"alice", b"on", b">s3cret-of-alice", b"~*", b"+@all"]);
        tell(&mut admin, &[b"CONFIG", b"SET", b"requirepass", b"s3cret-of-all"]);

        for (user, password) in [(Some("alice"), "s3cret-of-alice"), (None, "s3cret-of-all")] {
            let open = server.open_as(user, Some(password), None);
            set(session(open.as_ref()).as_mut(), b"k", b"v");
            assert_eq!(open.facts().unwrap().process_id, Some(server.id()));
        }
        for (user, password) in
            [(Some("alice"), "s3cret-wrong"), (None, "s3cret-wrong"), (Some("bob"), "s3cret-of-all")]
        {
            let open = server.open_as(user, Some(password), None);
            let words = open.session().err().expect("a wrong login is refused").to_string();
            assert!(words.contains(&format!("{store} at {address} refused the login: WRONGPASS")), "{words}");
            assert!(!words.contains("s3cret"), "{words}");
        }
        let words = server.open().facts().unwrap_err().to_string();
        assert!(words.contains("NOAUTH") && words.contains(&address), "{words}");
        let words = refusal(session(server.open().as_ref()).as_mut(), Op::Get(b"k"));
        assert!(words.starts_with("NOAUTH"), "{words}");
    }
}

fn tell(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Value {
    let mut request = Vec::new();
    command(parts, &mut request);
    match connection.exchange(&request, resp::values()).unwrap() {
        Value::Error(words) => panic!("{words}"),
        value => value,
    }
}

#[test]
fn databases_are_apart_and_counted_apart() {
    for store in SPEAKERS_OF_RESP {
        let server = start(store, Transport::Unix);
        let (first, ninth) = (server.open(), server.open_as(None, None, Some(9)));
        set(session(first.as_ref()).as_mut(), b"k", b"in 0");
        assert_eq!(get(session(ninth.as_ref()).as_mut(), b"k"), None);
        set(session(ninth.as_ref()).as_mut(), b"k", b"in 9");
        set(session(ninth.as_ref()).as_mut(), b"l", b"in 9");
        assert_eq!(get(session(first.as_ref()).as_mut(), b"k").as_deref(), Some(&b"in 0"[..]));
        assert_eq!((first.count().unwrap(), ninth.count().unwrap()), (Some(1), Some(2)));
        let words = server.open_as(None, None, Some(99)).session().err().expect("no such database").to_string();
        assert!(words.contains("SELECT"), "{words}");
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_where_the_class_says_so() {
    for store in SPEAKERS_OF_RESP {
        for durability in [Durability::None, Durability::Crash, Durability::Power] {
            let server = start_at(store, Transport::Unix, durability);
            for index in 0..200_u32 {
                set(session(server.open().as_ref()).as_mut(), &index.to_be_bytes(), b"acknowledged");
            }
            server.open().final_flush().unwrap();
            let server = server.kill_and_start_again();
            let expected = if durability == Durability::None { 0 } else { 200 };
            assert_eq!(server.open().count().unwrap(), Some(expected), "{store} at {durability}");
            assert_eq!((server.adapter.stays)(durability), durability != Durability::None);
        }
    }
}

#[test]
fn a_server_that_does_not_keep_the_class_is_refused_by_name() {
    let server = shared("redis", Transport::Unix, Durability::Crash);
    let power = Launch { durability: Durability::Power, ..server.launch.clone() };
    let words = (server.adapter.open)(&power).unwrap().facts().unwrap_err().to_string();
    assert!(words.contains("appendfsync no") && words.contains("always"), "{words}");
}

#[test]
fn a_server_of_another_name_is_told_by_its_own() {
    let server = shared("valkey", Transport::Unix, Durability::None);
    let facts = (find("redis").unwrap().open)(&server.launch).unwrap().facts().unwrap();
    assert_eq!(facts.version, format!("valkey {}", server.facts.version));
}

/// What too few replicas have is not acknowledged, though the primary has it.
#[test]
fn a_write_that_too_few_replicas_have_is_not_acknowledged() {
    for store in SPEAKERS_OF_RESP {
        let server = apart(store, Transport::Tcp, Durability::None);
        let settings = [("replicas".to_string(), "1".to_string()), ("wait".to_string(), "1".to_string())].into();
        let launch = Launch { settings, patience: Duration::from_millis(400), ..server.launch.clone() };
        let waits = (server.adapter.open)(&launch).unwrap();
        let mut waiting = session(waits.as_ref());
        let words = refusal(waiting.as_mut(), Op::Set { key: b"x", value: b"1", ttl_s: None });
        assert!(words.contains("0 of 1 replicas had the write after 200 ms"), "{words}");
        assert_eq!(get(waiting.as_mut(), b"x").as_deref(), Some(&b"1"[..]), "reads do not wait");
        assert!(waits.connection().is_none(), "no connection skips the wait");
    }
}
