//! What only the SQL servers have: the contract over both transports, durability levels that outlive a kill, keys that
//! blanks and letters' case tell apart, tables in somebody else's database, other products under a store's name.

use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Configuration, Durability, Transport};
use kvfair::stores::{Launch, Login, find};

use super::{BOTH, get, lacks, noise, refusal, set, version_of};
use crate::common::contract::contract;
use crate::common::needs::servers_here;
use crate::common::pool::{apart, shared};
use crate::common::{launch_at, session, start_at, start_guarded, start_shipped};

const SPEAKERS_OF_SQL: [&str; 2] = ["mariadb", "postgres"];
/// What they have no means for, in the order of the contract's checks: a time to live, a key of 70,000 bytes.
const GAPS: [&str; 2] = ["set with a time to live", "set"];

#[test]
fn every_class_keeps_the_contract() {
    for store in SPEAKERS_OF_SQL {
        for durability in Durability::ALL {
            let transport = if durability == Durability::None { Transport::Tcp } else { Transport::Unix };
            let server = apart(store, transport, durability);
            let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{what}"));
            let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
            assert_eq!(found, GAPS, "{store} at {durability}");
        }
    }
}

#[test]
fn servers_start_by_their_recipes_and_say_what_is_in_force() {
    for store in SPEAKERS_OF_SQL {
        for transport in BOTH {
            let server = shared(store, transport, Durability::Power);
            let recipe = server.adapter.server.unwrap();
            let program = kvfair::harness::serve::program(recipe).unwrap();
            let printed = std::process::Command::new(program).arg(recipe.version_argument).output().unwrap();
            let printed = String::from_utf8(printed.stdout).unwrap();
            assert_eq!((recipe.version)(&printed).as_deref(), Some(server.facts.version.as_str()));
            let needed: &[(&str, &str)] = match store {
                "postgres" => &[("fsync", "on"), ("synchronous_commit", "on"), ("shared_buffers", "1GB")],
                _ => &[
                    ("innodb_flush_log_at_trx_commit", "1"),
                    ("innodb_doublewrite", "ON"),
                    ("innodb_buffer_pool_size", "1073741824"),
                    ("log_bin", "OFF"),
                ],
            };
            for (name, value) in needed {
                assert_eq!(server.facts.settings.get(*name).map(String::as_str), Some(*value), "{store} {name}");
            }
            assert_eq!(server.facts.product, None);
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_where_the_class_says_so() {
    for store in SPEAKERS_OF_SQL {
        for durability in [Durability::Crash, Durability::Power] {
            let server = start_at(store, Transport::Unix, durability);
            {
                let store = server.open();
                let mut session = session(store.as_ref());
                for index in 0..200_u32 {
                    set(session.as_mut(), &index.to_be_bytes(), b"acknowledged");
                    session.ask(&Op::Increment { key: b"n", by: 1 }).unwrap();
                }
            }
            let server = server.kill_and_start_again();
            assert_eq!(server.open().count().unwrap(), Some(201), "{store} at {durability}");
            let open = server.open();
            assert_eq!(session(open.as_ref()).ask(&Op::Number(b"n")).unwrap(), Reply::Number(200));
        }
    }
}

#[test]
fn a_server_that_does_not_keep_the_class_is_refused_by_name() {
    for (store, setting) in [("mariadb", "innodb_flush_log_at_trx_commit 2"), ("postgres", "fsync off")] {
        let server = shared(store, Transport::Unix, Durability::Crash);
        let power = Launch { durability: Durability::Power, ..server.launch.clone() };
        let words = (server.adapter.open)(&power).unwrap().facts().unwrap_err().to_string();
        assert!(words.contains(setting) && words.contains(store), "{words}");
    }
    // Tables that were made at `none` are not taken over for a durability level that needs their log.
    let server = apart("postgres", Transport::Unix, Durability::None);
    set(session(server.open().as_ref()).as_mut(), b"k", b"v");
    let crash = Launch { durability: Durability::Crash, ..server.launch.clone() };
    let words = (server.adapter.open)(&crash).unwrap().session().err().unwrap().to_string();
    assert!(words.contains("kvfair_records"), "{words}");
}

#[test]
fn ops_on_awkward_keys_and_values() {
    for store in SPEAKERS_OF_SQL {
        let open = apart(store, Transport::Unix, Durability::None).open();
        let mut session = session(open.as_ref());
        let session = session.as_mut();
        let keys: [&[u8]; 10] =
            [b"", b" ", b"a", b"A", b"a ", b"a  ", b"a\0", "\u{e4}".as_bytes(), b"\xff\xfe", b"'\\\""];
        for (index, key) in keys.iter().enumerate() {
            set(session, key, &[index as u8]);
        }
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(get(session, key), Some(vec![index as u8]), "{store} {key:?}");
        }
        assert_eq!(open.count().unwrap(), Some(10), "{store}");
        for size in [0, 8000, 65_536, (1 << 20) + 1, (8 << 20) + 1, (17 << 20) + 1] {
            let value = noise(size);
            set(session, b"value", &value);
            assert!(get(session, b"value") == Some(value), "{store}: {size} bytes came back otherwise");
        }
        // Of two equal keys in one op the last one counts.
        let keys: KeyList = [&b"m2"[..], b"m1", b"m2"].into_iter().collect();
        let values: KeyList = [&b"first"[..], b"1", b"last"].into_iter().collect();
        session.ask(&Op::SetMany(Pairs { keys: keys.lend(), values: values.lend() })).unwrap();
        assert_eq!(get(session, b"m2").as_deref(), Some(&b"last"[..]));
        // A counter is told from a value, and either takes the other's place.
        assert_eq!(session.ask(&Op::Increment { key: b"n", by: -3 }).unwrap(), Reply::Number(-3));
        assert_eq!(session.ask(&Op::Increment { key: b"n", by: 0 }).unwrap(), Reply::Number(-3));
        assert_eq!(get(session, b"n").as_deref(), Some(&b"-3"[..]));
        assert!(refusal(session, Op::GetVersion(b"n")).contains("counter"));
        set(session, b"n", b"9");
        for by in [0, 1] {
            assert!(refusal(session, Op::Increment { key: b"n", by }).contains("no counter"));
        }
        assert!(refusal(session, Op::Number(b"n")).contains("no counter"));
        session.ask(&Op::Increment { key: b"top", by: i64::MAX }).unwrap();
        assert!(refusal(session, Op::Increment { key: b"top", by: 1 }).contains("out of range"));
        assert_eq!(session.ask(&Op::Number(b"top")).unwrap(), Reply::Number(i64::MAX));
        // A check-and-set to the same value is one all the same.
        set(session, b"c", b"same");
        let version = version_of(session, b"c");
        assert_eq!(session.ask(&Op::Cas { key: b"c", version, value: b"same" }).unwrap(), Reply::Done);
    }
}

#[test]
fn large_ops_go_through_and_limits_have_names() {
    const COUNT: usize = 5_000;
    for store in SPEAKERS_OF_SQL {
        let open = apart(store, Transport::Tcp, Durability::None).open();
        let mut session = session(open.as_ref());
        let session = session.as_mut();
        let names: Vec<String> = (0..COUNT).map(|index| format!("key:{:05}", (index * 7919) % COUNT)).collect();
        let keys: KeyList = names.iter().map(String::as_bytes).collect();
        assert_eq!(session.ask(&Op::SetMany(Pairs { keys: keys.lend(), values: keys.lend() })).unwrap(), Reply::Done);
        match session.ask(&Op::GetMany(keys.lend())).unwrap() {
            Reply::Values(found) => {
                assert!(found.iter().eq(names.iter().map(|name| Some(name.as_bytes()))))
            }
            other => panic!("get-many answered {other:?}"),
        }
        let longest = if store == "postgres" { 2692 } else { 3072 };
        set(session, &noise(longest), b"fits");
        let words = lacks(session, Op::Get(&noise(longest + 1)));
        assert!(words.contains(&longest.to_string()) && words.contains(&(longest + 1).to_string()), "{words}");
        let before = session.commands().unwrap();
        let fields: KeyList = names[..100].iter().map(String::as_bytes).collect();
        for by in [1, 41] {
            let op = Op::Tally { records: fields.lend(), fields: fields.lend(), by };
            assert_eq!(session.ask(&op).unwrap(), Reply::Done);
        }
        assert_eq!(session.commands().unwrap(), before + 2, "a tally is one statement");
        match session.ask(&Op::ReadTally(b"key:00000")).unwrap() {
            Reply::Rows(rows) => {
                assert!(rows.keys.len() == 100 && rows.values.iter().eq([b"42"; 100]))
            }
            other => panic!("read-tally answered {other:?}"),
        }
        let half = longest / 2 - 6;
        let halves: KeyList = [&noise(half)[..]].into_iter().collect();
        let op = Op::Tally { records: halves.lend(), fields: halves.lend(), by: 1 };
        assert_eq!(session.ask(&op).unwrap(), Reply::Done);
    }
}

#[test]
fn somebody_elses_database_is_left_as_it_was() {
    for store in SPEAKERS_OF_SQL {
        let server = apart(store, Transport::Unix, Durability::None);
        let open = server.open();
        open.facts().unwrap();
        assert_eq!(open.count().unwrap(), Some(0), "asking makes no tables");
        open.leave().unwrap();
        set(session(open.as_ref()).as_mut(), b"k", b"v");
        assert_eq!(open.count().unwrap(), Some(1));
        open.leave().unwrap();
        assert_eq!(open.count().unwrap(), Some(0));
        let elsewhere = Login { database: Some("no such".to_string()), ..Login::default() };
        let launch = Launch { login: elsewhere, ..server.launch.clone() };
        let words = (server.adapter.open)(&launch).unwrap().facts().unwrap_err().to_string();
        assert!(words.contains("no such") && words.contains("HOST/DATABASE"), "{words}");
    }
}

#[test]
fn a_wrong_login_is_refused_and_never_told() {
    let server = shared("mariadb", Transport::Tcp, Durability::None);
    let words = server.open_as(Some("nobody"), Some("s3cret"), None).facts().unwrap_err().to_string();
    assert!(words.contains("Access denied") && !words.contains("s3cret"), "{words}");
    let server = shared("postgres", Transport::Tcp, Durability::None);
    let words = server.open_as(Some("nobody"), Some("s3cret"), None).facts().unwrap_err().to_string();
    assert!(words.contains("nobody") && !words.contains("s3cret"), "{words}");
}

/// Missing or wrong: what was said, and the URL that has a login.
#[test]
fn a_login_is_asked_for_by_url() {
    for store in servers_here(&["mariadb", "mysql", "postgres"]) {
        let said = if store == "postgres" { "password" } else { "Access denied" };
        let server = start_guarded(store);
        let place = &server.launch.place;
        for password in [None, Some("wrong")] {
            let words = server.open_as(None, password, None).facts().unwrap_err().to_string();
            let url =
                format!("{store} at {place} needs a password: {store}://USER:PASSWORD@{place}, or KVFAIR_PASSWORD (");
            assert!(words.contains(&url) && words.contains(said), "{words}");
        }
    }
}

#[test]
fn mariadb_at_mysqls_door_is_told_by_its_name() {
    let server = apart("mariadb", Transport::Unix, Durability::None);
    let open = (find("mysql").unwrap().open)(&server.launch).unwrap();
    assert_eq!(open.facts().unwrap().product.as_deref(), Some("mariadb"));
    set(session(open.as_ref()).as_mut(), b"k", b"v");
}

#[test]
fn nobody_there_is_said_with_the_address() {
    for store in ["mysql", "mariadb", "postgres"] {
        let places = [
            kvfair::stores::Place::Tcp { host: "127.0.0.1".to_string(), port: 1 },
            kvfair::stores::Place::Unix("/nonexistent/.s.PGSQL.1".into()),
        ];
        for place in places {
            let open = (find(store).unwrap().open)(&launch_at(place.clone(), Durability::None)).unwrap();
            match open.facts() {
                Err(Fault::Lost(error)) => {
                    assert!(error.to_string().contains(&format!("{store} at {place}")), "{error}")
                }
                other => panic!("no process is there, but {other:?}"),
            }
        }
    }
}

#[test]
fn as_shipped_they_keep_the_contract_too() {
    for store in SPEAKERS_OF_SQL {
        let server = start_shipped(store, Transport::Unix);
        assert_eq!(server.launch.configuration, Configuration::Shipped);
        let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{what}"));
        assert_eq!(found.len(), GAPS.len(), "{store}: {found:?}");
    }
}
