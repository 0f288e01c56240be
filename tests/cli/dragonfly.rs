//! Dragonfly by a stand-in that takes its flags and answers in its form: by URL and started by kvfair it has its own
//! name, version and counters, and what it lacks is refused.

use std::net::{TcpListener, TcpStream};

use kvfair::model::op::Op;
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{Place, Store, find};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::check::broken_clients::before;
use crate::cli::check::checked;
use crate::common::contract::contract;
use crate::common::desk::{Desk, Started, signal, wait_for};
use crate::common::needs::stood_in;
use crate::common::{launch_at, session, start_set};

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/dragonfly.py");
/// INFO has `df-v` before it.
const VERSION: &str = "1.27.1-stand-in";
/// What RESP has no means for, in the order of the contract's checks: nothing of nothing, and no order of keys.
const GAPS: &[&str] = &["get-many", "scan"];
const SMALL: [&str; 6] = ["run", "fans", "--profiles", "100", "--blocks", "1"];

/// A target that kvfair starts, which its table calls `mine`.
fn ours(name: &str) -> String {
    format!("{name}?program={STAND_IN}&name=mine")
}

/// A stand-in that kvfair does not start.
struct Theirs {
    server: Started,
    port: u16,
}

impl Theirs {
    fn start(desk: &Desk, flags: &[&str]) -> Theirs {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let address = ["--bind=127.0.0.1".to_string(), format!("--port={port}")];
        let flags: Vec<&str> = address.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let server = Started::new(desk.command(STAND_IN, &flags));
        wait_for("the stand-in", || TcpStream::connect(("127.0.0.1", port)).ok());
        Theirs { server, port }
    }

    fn url(&self) -> String {
        format!("dragonfly://127.0.0.1:{}", self.port)
    }

    fn open(&self, store: &str) -> Box<dyn Store> {
        let place = Place::Tcp { host: "127.0.0.1".to_string(), port: self.port };
        (find(store).expect("it is built in").open)(&launch_at(place, Durability::None)).expect("opening asks nothing")
    }

    fn end(self) {
        signal(self.server.id(), Signal::SIGTERM);
        self.server.wait().exits(0);
    }
}

/// Its own version, settings and counters, and nothing that only Redis has.
#[track_caller]
fn is_its_own(record: &Value) {
    let (store, stats) = (&record["store"], &record["store_stats"]);
    assert_eq!(record["verdict"]["kind"], "right", "{record}");
    assert_eq!((&record["target"]["store"], &store["version"]), (&"dragonfly".into(), &VERSION.into()));
    let settings = &store["settings"];
    for (name, value) in [("cache_mode", "store"), ("maxmemory_policy", "noeviction"), ("thread_count", "1")] {
        assert_eq!(settings[name], value, "{settings}");
    }
    for name in ["save", "appendonly", "appendfsync", "maxmemory-policy", "io-threads", "mem_allocator"] {
        assert!(settings.get(name).is_none(), "{name}: {settings}");
    }
    let count = |name: &str, place: usize| stats[name][place].as_f64().unwrap_or_else(|| panic!("no {name}: {stats}"));
    assert!(count("total_commands_processed", 1) > count("total_commands_processed", 0) + 100.0);
    assert!(count("cmdstat_get.calls", 1) > count("cmdstat_get.calls", 0), "{stats}");
    assert!(stats.get("aof_current_size").is_none(), "{stats}");
}

#[test]
fn by_url_it_is_checked_and_measured_under_its_own_name() {
    stood_in("a real dragonfly");
    let desk = Desk::new();
    let theirs = Theirs::start(&desk, &[]);
    let url = theirs.url();
    let checked = desk
        .run(&["check", &format!("dragonfly://127.0.0.1:{}?name=theirs", before(theirs.port, Box::new(|said| said)))]);
    checked.exits(0).shows(&format!("theirs {VERSION} by resp")).shows("all right");
    checked.shows("dragonfly keeps its keys in no order: it has no scan");
    desk.run(&[&SMALL[..], &[&url]].concat()).exits(0);
    let record = desk.record(&url);
    is_its_own(&record);
    assert_eq!(record["room"]["policy"], "noeviction");
    assert_eq!(theirs.open("dragonfly").count().expect("an answer"), Some(0), "only our keys were there");
    theirs.end();
}

#[test]
fn started_here_it_is_checked_and_measured_under_its_own_name() {
    for (name, address) in [("dragonfly", "--bind=127.0.0.1"), ("dragonfly+unix", "--port=0")] {
        let desk = Desk::new();
        // Over TCP it is checked by URL, above.
        if name == "dragonfly+unix" {
            checked(&desk, &[&ours(name)]).exits(0).shows(&format!("mine {VERSION} by resp")).shows("all right");
        }
        desk.run(&[&SMALL[..], &[&ours(name)]].concat()).exits(0);
        let record = desk.record("mine");
        is_its_own(&record);
        let command = record["store"]["command"].to_string();
        for flag in [address, "--version_check=false", "--logtostderr=true", "--dbfilename=", "--cache_mode=false"] {
            assert!(command.contains(&format!("\"{flag}\"")), "{flag}: {command}");
        }
        assert_eq!(record["keeps"], "dbfilename '' (no snapshots)");
        assert_eq!(record["store"]["settings"]["dbfilename"], "");
    }
}

#[test]
fn its_adapter_keeps_the_contract() {
    for transport in [Transport::Unix, Transport::Tcp] {
        let server = start_set("dragonfly", transport, Durability::None, &[("program", STAND_IN)]);
        let found = contract(server.adapter, &server.launch).unwrap_or_else(|what| panic!("{what}"));
        let found: Vec<_> = found.iter().map(|gap| gap.split_once(':').expect("op: words").0).collect();
        assert_eq!(found, GAPS);
        assert_eq!(server.facts.process_id, None, "it tells no process");
        let again = server.open().facts().expect("facts");
        assert!(again.started.is_some() && again.started == server.facts.started, "{again:?}");
    }
}

#[test]
fn its_counters_grow_with_what_it_is_asked() {
    let server = start_set("dragonfly", Transport::Unix, Durability::None, &[("program", STAND_IN)]);
    let store = server.open();
    let before = store.stats().expect("counters");
    let mut session = session(store.as_ref());
    for key in 0..20_u32 {
        session.ask(&Op::Set { key: &key.to_be_bytes(), value: b"some value", ttl_s: None }).expect("an answer");
    }
    let grown = before.until(&store.stats().expect("counters"));
    let of = |name: &str| grown.get(name).map(|[before, after]| after - before);
    assert_eq!(of("cmdstat_set.calls"), Some(20.0), "{grown:?}");
    assert_eq!(of("evicted_keys"), None, "it has dropped nothing: {grown:?}");
}

/// Its password stands in a file of its data directory, and in no command line.
#[test]
#[cfg(target_os = "linux")]
fn over_tcp_it_lets_nobody_else_in() {
    crate::cli::guarded::lets_nobody_else_in(&ours("dragonfly"), "dragonfly", "python3", "--port=");
}

#[test]
fn what_it_lacks_is_refused_by_name() {
    let desk = Desk::new();
    let theirs = Theirs::start(&desk, &[]);
    for target in [theirs.url(), ours("dragonfly")] {
        for level in ["crash", "power"] {
            let said = desk.run(&[&SMALL[..], &["--durability", level, &target]].concat());
            said.exits(1).shows(&format!("durability {level}: dragonfly has snapshots and no log"));
        }
        let with = format!("{target}{}appendonly=no", if target.contains('?') { '&' } else { '?' });
        desk.run(&[&SMALL[..], &[&with]].concat()).exits(2).complains("dragonfly has no setting 'appendonly'");
    }
    let scans = ["run", "ycsb-e", "--records", "100", "--requests", "100", "--blocks", "1"];
    desk.run(&[&scans[..], &[&ours("dragonfly")]].concat()).exits(2).complains("cannot read keys in order");
    theirs.end();
}

/// It tells clients of Redis a version of Redis, and is none.
#[test]
fn a_url_of_redis_tells_what_answers_there() {
    let desk = Desk::new();
    let theirs = Theirs::start(&desk, &[]);
    let facts = theirs.open("redis").facts().expect("facts");
    assert_eq!(facts.version, format!("dragonfly {VERSION}"));
    theirs.end();
}

/// It knows no CLIENT NO-TOUCH, and in its cache mode a get changes what it drops next.
#[test]
fn in_cache_mode_it_drops_by_use() {
    let desk = Desk::new();
    let theirs = Theirs::start(&desk, &["--cache_mode=true"]);
    let store = theirs.open("dragonfly");
    store.leave_no_trace().expect("an answer");
    let settings = store.facts().expect("facts").settings;
    assert_eq!(
        settings["times of last use"], "renewed by each get, and maxmemory-policy eviction evicts by them",
        "{settings:?}"
    );
    let room = store.room().expect("an answer").expect("its memory");
    assert!(room.evicts && room.policy.as_deref() == Some("eviction"), "{room:?}");
    theirs.end();
}
