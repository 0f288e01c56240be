//! What only MongoDB's protocol has: one collection for all, tallies as documents, another's name. Real servers only:
//! `mongod` where it is on PATH, and FerretDB.

use kvfair::model::op::{KeyList, Op, Pairs, Reply};
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{Launch, Login, Place, find};

use super::{BOTH, get, lacks, noise, refusal, set, version_of};
use crate::common::contract::contract;
use crate::common::needs::servers_here;
use crate::common::pool::{Apart, apart, shared};
use crate::common::{launch_at, session, start_at};

/// A server that lets in one user only, as FerretDB has it on request; gone with the test.
struct Guarded(std::process::Child, u16);

impl Guarded {
    fn start(directory: &std::path::Path) -> Guarded {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.expect("a free port").port();
        let at = directory.display();
        let mut command = std::process::Command::new("ferretdb");
        command.args(["--handler=sqlite", "--telemetry=disable", "--debug-addr=-", "--test-enable-new-auth"]);
        command.args([format!("--sqlite-url=file:{at}/"), format!("--state-dir={at}")]);
        command.args([&format!("--listen-addr=127.0.0.1:{port}"), "--setup-username=me", "--setup-password=right"]);
        command.arg("--setup-database=admin").stderr(std::process::Stdio::null());
        let guarded = Guarded(command.spawn().expect("ferretdb"), port);
        let began = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed().as_secs() < 60, "it does not start");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        guarded
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Missing or wrong: what was said, and the URL that has a login.
#[test]
fn a_login_is_asked_for_by_url() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Guarded::start(directory.path());
    let place = Place::Tcp { host: "127.0.0.1".to_string(), port: server.1 };
    let asked = |user: Option<&str>, password: Option<&str>| {
        let login = Login { user: user.map(str::to_string), password: password.map(str::to_string), database: None };
        let launch = Launch { login, ..launch_at(place.clone(), Durability::None) };
        (find("ferretdb").unwrap().open)(&launch).and_then(|store| store.facts())
    };
    for (user, password) in [(None, None), (Some("me"), None), (Some("me"), Some("wrong"))] {
        let words = asked(user, password).unwrap_err().to_string();
        let url =
            format!("ferretdb at {place} needs a password: ferretdb://USER:PASSWORD@{place}, or KVFAIR_PASSWORD (");
        assert!(words.contains(&url), "{user:?} {password:?}: {words}");
    }
}

/// A database of its own, of which FerretDB changes records for one client only.
fn alone(store: &str, transport: Transport, durability: Durability) -> Apart {
    let server = apart(store, transport, durability);
    Apart { launch: Launch { clients: 1, ..server.launch.clone() }, ..server }
}

#[test]
fn they_keep_the_contract_over_both_transports() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        for (transport, level) in BOTH.into_iter().zip([Durability::None, Durability::Power]) {
            let server = alone(store, transport, level);
            let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{what}"));
            let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
            assert_eq!(found, ["set with a time to live"], "{store} over {transport} at {level}");
        }
    }
}

#[test]
fn they_say_what_is_in_force_and_who_they_are() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        let server = shared(store, Transport::Tcp, Durability::None);
        assert_eq!(server.facts.process_id, Some(server.id()), "{store}");
        assert!(server.facts.settings["writeConcern"].contains("\"j\": false"), "{:?}", server.facts.settings);
        // The same server, asked for under each name.
        for name in ["mongodb", "ferretdb"] {
            let facts = (find(name).unwrap().open)(&server.launch).unwrap().facts().unwrap();
            assert_eq!(facts.product.as_deref(), (name != store).then_some(store));
            assert_eq!(facts.version, server.facts.version);
        }
    }
}

#[test]
fn a_tally_keeps_fields_of_every_kind_apart() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        let store = alone(store, Transport::Unix, Durability::None).open();
        let mut session = session(store.as_ref());
        let fields: [&[u8]; 9] = [b"", b"a.b", b"a", b"$inc", b"%2e", b"_id", b"7", b"nul\0", b"\xff\xfe"];
        let list: KeyList = fields.into_iter().collect();
        let records: KeyList = [&b"r.1"[..], b"r2"].into_iter().collect();
        for by in [1, 1 << 40] {
            let op = Op::Tally { records: records.lend(), fields: list.lend(), by };
            assert_eq!(session.ask(&op).unwrap(), Reply::Done);
        }
        assert_eq!(session.commands(), Some(2), "all records in one command");
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = match session.ask(&Op::ReadTally(b"r.1")).unwrap() {
            Reply::Rows(pairs) => pairs.iter().map(|(field, count)| (field.to_vec(), count.to_vec())).collect(),
            other => panic!("read-tally answered {other:?}"),
        };
        rows.sort();
        let sum = ((1_u64 << 40) + 1).to_string().into_bytes();
        let mut expected = fields.map(|field| (field.to_vec(), sum.clone())).to_vec();
        expected.sort();
        assert_eq!(rows, expected);
        set(session.as_mut(), b"text", b"no tally");
        assert!(refusal(session.as_mut(), Op::ReadTally(b"text")).contains("no tally"));
        assert!(refusal(session.as_mut(), Op::Get(b"r2")).contains("tally"));
        assert!(refusal(session.as_mut(), Op::Number(b"text")).contains("no counter"));
        assert_eq!(session.ask(&Op::Delete(b"r2")).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::ReadTally(b"r2")).unwrap(), Reply::Missing);
    }
}

#[test]
fn an_older_version_is_still_good_while_the_value_is_the_same() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        let store = alone(store, Transport::Unix, Durability::None).open();
        let mut session = session(store.as_ref());
        set(session.as_mut(), b"x", b"x0");
        set(session.as_mut(), b"y", b"y0");
        let (of_x, of_y) = (version_of(session.as_mut(), b"x"), version_of(session.as_mut(), b"y"));
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_y, value: b"x9" }).unwrap(), Reply::Conflict);
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_x, value: b"x1" }).unwrap(), Reply::Done);
        assert_eq!(session.ask(&Op::Cas { key: b"x", version: of_x, value: b"x2" }).unwrap(), Reply::Conflict);
        assert_eq!(session.ask(&Op::Cas { key: b"y", version: of_y, value: b"y1" }).unwrap(), Reply::Done);
        assert_eq!(get(session.as_mut(), b"x").as_deref(), Some(&b"x1"[..]));
    }
}

#[test]
fn too_large_for_a_document_is_refused_and_too_large_for_a_command_is_split() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        let server = apart(store, Transport::Unix, Durability::None);
        let store = server.open();
        let mut session = session(store.as_ref());
        let words = lacks(session.as_mut(), Op::Set { key: b"k", value: &vec![0; 16 << 20], ttl_s: None });
        assert!(words.contains("16777217") && words.contains(server.adapter.name), "{words}");
        let names: Vec<String> = (0..5).map(|index| format!("large {index}")).collect();
        let large: Vec<Vec<u8>> = (0..5).map(|index| noise((5 << 20) + index)).collect();
        let keys: KeyList = names.iter().map(String::as_bytes).collect();
        let values: KeyList = large.iter().map(Vec::as_slice).collect();
        let pairs = Pairs { keys: keys.lend(), values: values.lend() };
        assert_eq!(session.ask(&Op::SetMany(pairs)).unwrap(), Reply::Done);
        assert_eq!(session.commands(), Some(3));
        match session.ask(&Op::GetMany(keys.lend())).unwrap() {
            Reply::Values(found) => assert!(found.iter().eq(large.iter().map(|value| Some(value.as_slice())))),
            other => panic!("get-many answered {other:?}"),
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_where_the_class_says_so() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        for durability in [Durability::Crash, Durability::Power] {
            let server = start_at(store, Transport::Tcp, durability);
            for index in 0..100_u32 {
                set(session(server.open().as_ref()).as_mut(), &index.to_be_bytes(), b"acknowledged");
            }
            let server = server.kill_and_start_again();
            assert_eq!(server.open().count().unwrap(), Some(100), "{store} at {durability}");
        }
    }
}

#[test]
fn changes_that_could_undo_one_another_are_refused() {
    let server = apart("ferretdb", Transport::Unix, Durability::None);
    // By either name: it is the server that counts.
    for name in ["ferretdb", "mongodb"] {
        let store = (find(name).unwrap().open)(&server.launch).unwrap();
        let mut session = session(store.as_ref());
        set(session.as_mut(), b"k", b"v");
        let version = version_of(session.as_mut(), b"k");
        let words = lacks(session.as_mut(), Op::Cas { key: b"k", version, value: b"w" });
        assert!(words.contains(" has no ") && words.contains("4 clients"), "{words}");
        lacks(session.as_mut(), Op::Increment { key: b"n", by: 1 });
        assert_eq!(get(session.as_mut(), b"k").as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn somebody_elses_server_is_left_as_it_was() {
    for store in servers_here(&["ferretdb", "mongodb"]) {
        let [theirs, ours] = [(); 2].map(|()| apart(store, Transport::Tcp, Durability::None).open());
        set(session(theirs.as_ref()).as_mut(), b"k", b"v");
        assert_eq!(ours.count().unwrap(), Some(0), "databases are apart");
        set(session(ours.as_ref()).as_mut(), b"k", b"v");
        ours.leave().unwrap();
        assert_eq!((ours.count().unwrap(), theirs.count().unwrap()), (Some(0), Some(1)));
    }
}
