//! A server that is not ours loses nothing, by eviction either: what does not fit is refused before the first write,
//! and a run stops at the first eviction.

use std::io::{Read, Write};
use std::net::TcpStream;

use kvfair::model::trial::Transport;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::strangers::{ask, ask_info, port_of};
use crate::common::desk::{Desk, Said, Started, command_line, wait_for};
use crate::common::{self, Running};

/// What a Redis and a Valkey have for a small job of ours.
const REDISES: [&str; 2] = ["redis", "valkey"];
/// The keys that a server's owner has in it, with values of 100 bytes.
const KEYS: usize = 5_001;

/// All that the server answers to these commands, one a line.
fn told(server: &Running, commands: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    let mut asking = stream.try_clone().expect("a socket");
    let commands = format!("{commands}\r\nquit\r\n");
    std::thread::spawn(move || asking.write_all(commands.as_bytes()));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the test's own server");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The number of that name in what a server tells of itself.
#[track_caller]
fn number(told: &str, name: &str) -> u64 {
    let line = told.lines().find_map(|line| line.trim_start_matches("STAT ").strip_prefix(name));
    let text = line.map(|rest| rest.trim_start_matches([':', ' ']).trim_end());
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {told}"))
}

/// A Redis with its owner's keys, its limit so many bytes above what it uses.
fn filled(store: &str, policy: &str, left: u64) -> Running {
    let server = common::start(store, Transport::Tcp);
    let sets: Vec<String> = (0..KEYS).map(|key| format!("SET key:{key} {}", "v".repeat(100))).collect();
    told(&server, &sets.join("\r\n"));
    let used = number(&told(&server, "INFO memory"), "used_memory");
    assert_eq!(ask(&server, &format!("CONFIG SET maxmemory-policy {policy}")), "+OK");
    assert_eq!(ask(&server, &format!("CONFIG SET maxmemory {}", used + left)), "+OK");
    assert_eq!(ask(&server, "CONFIG RESETSTAT"), "+OK");
    assert_eq!(ask_info(&server), format!("db0:keys={KEYS}"));
    server
}

#[track_caller]
fn is_untouched(server: &Running) {
    assert_eq!(ask_info(server), format!("db0:keys={KEYS}"));
    assert_eq!(number(&told(server, "INFO stats"), "evicted_keys"), 0);
}

fn url(server: &Running, rest: &str) -> String {
    format!("{}://127.0.0.1:{}{rest}", server.adapter.name, port_of(server))
}

#[test]
fn what_does_not_fit_is_refused_before_the_first_write() {
    for (store, policy) in [("redis", "allkeys-lru"), ("valkey", "volatile-ttl"), ("redis", "noeviction")] {
        let server = filled(store, policy, 1_500_000);
        let desk = Desk::new();
        let (whole, fifth) = (url(&server, ""), url(&server, "/5"));
        let commands: [&[&str]; 4] = [
            &["check", &whole],
            &commands_of_a_run(&fifth),
            &["run", "mixed", &fifth, "--records", "2000", "--requests", "2000", "--accept-unchecked"],
            &["find-max", "mixed", &fifth, "--records", "2000", "--step", "1"],
        ];
        for command in commands {
            let said = desk.run(command);
            said.exits(1).shows("bytes of memory left (limit").shows("and this may take").shows(policy);
            said.shows(if policy == "noeviction" { "refuses its owner's writes" } else { "drops records" });
            said.shows("5,001 records in all databases").shows("raise the limit");
            is_untouched(&server);
        }
        let commands = told(&server, "INFO commandstats");
        let wrote = ["cmdstat_set", "cmdstat_del", "cmdstat_incr", "cmdstat_unlink", "cmdstat_eval"];
        assert!(!wrote.iter().any(|name| commands.contains(name)), "{commands}");
        // Whatever the moment.
        for command in [&commands_of_a_run(&fifth)[..], &["check", &whole]] {
            is_refused_or_interrupted(interrupted_once_it_asks(&desk, &server, command));
            is_untouched(&server);
        }
    }
}

/// Connections that the server has taken so far.
fn connections(server: &Running) -> u64 {
    match server.adapter.name {
        "memcached" => number(&told(server, "stats"), "total_connections"),
        _ => number(&told(server, "INFO stats"), "total_connections_received"),
    }
}

/// Interrupts kvfair as soon as it has connected to the server.
fn interrupted_once_it_asks(desk: &Desk, server: &Running, command: &[&str]) -> Said {
    // To ask is a connection too.
    let (before, mut asked) = (connections(server), 0);
    let started = Started::new(desk.kvfair(command));
    while connections(server) == before + asked + 1 {
        asked += 1;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    started.interrupt_at_once(Signal::SIGINT);
    started.wait()
}

/// The signal may come when all was said.
fn is_refused_or_interrupted(said: Said) {
    match said.err.contains("interrupted") {
        true => said.exits(130),
        false => said.exits(1).shows("bytes of memory left"),
    };
}

/// Four megabytes of values.
fn commands_of_a_run(url: &str) -> [&str; 9] {
    ["run", "mixed", url, "--records", "2000", "--requests", "2000", "--blocks", "1"]
}

#[test]
fn with_room_all_databases_are_as_they_were() {
    for store in REDISES {
        let server = filled(store, "allkeys-lru", 40 << 20);
        let desk = Desk::new();
        let (whole, fifth) = (url(&server, ""), url(&server, "/5"));
        if store == "redis" {
            desk.run(&["check", &whole]).exits(0).shows("all right");
            is_untouched(&server);
        }
        desk.run(&["run", "mixed", &fifth, "--records", "1000", "--requests", "2000", "--blocks", "2"]).exits(0);
        is_untouched(&server);
        let room = &desk.record(&fifth)["room"];
        assert_eq!(room["policy"], "allkeys-lru");
        assert_eq!(room["records"], KEYS as u64);
        assert!(room["free_bytes"].as_u64() >= room["need_bytes"].as_u64(), "{room}");

        let long = ["--records", "1000", "--rate", "500", "--requests", "100000", "--blocks", "1"];
        let started = Started::new(desk.kvfair(&[&["run", "mixed", &fifth], &long[..]].concat()));
        wait_for("all records", || ask_info(&server).contains("db5:keys=1000").then_some(()));
        started.interrupt(Signal::SIGINT);
        started.wait().exits(130);
        is_untouched(&server);
        if store == "valkey" {
            let started = Started::new(desk.kvfair(&["check", &whole]));
            desk.wait_until_busy(probers, 0.1);
            started.interrupt(Signal::SIGINT);
            started.wait().exits(130);
            is_untouched(&server);
        }
    }
}

fn probers(desk: &Desk) -> Vec<u32> {
    desk.processes().into_iter().filter(|pid| command_line(*pid).ends_with("\0probe\0")).collect()
}

/// A memcached of the usual 64 MB with so many items of a megabyte in it.
fn filled_memcached(items: usize) -> Running {
    let server = common::start_shipped("memcached", Transport::Tcp);
    let value = "v".repeat(1_000_000);
    let sets: Vec<String> = (0..items).map(|key| format!("set key:{key} 0 0 {}\r\n{value}", value.len())).collect();
    told(&server, &sets.join("\r\n"));
    assert_eq!(held(&server), [items as u64, 0]);
    server
}

/// Items, and those that were dropped.
fn held(server: &Running) -> [u64; 2] {
    let stats = told(server, "stats");
    ["curr_items", "evictions"].map(|name| number(&stats, name))
}

#[test]
fn a_memcached_needs_whole_pages() {
    let desk = Desk::new();
    let server = filled_memcached(40);
    let whole = url(&server, "");
    let full = ["bytes of memory left (limit 67,108,864", "40 records in all databases", "drops records"];
    let said = desk.run(&["check", &whole]);
    said.exits(1);
    full.iter().for_each(|words| _ = said.shows(words));
    desk.run(&commands_of_a_run(&whole)).exits(1).shows("holds 40 records that are not ours");
    assert_eq!(held(&server), [40, 0]);
    let said = interrupted_once_it_asks(&desk, &server, &["check", &whole]);
    is_refused_or_interrupted(said);
    assert_eq!(held(&server), [40, 0]);
    // Free chunks are not for items of another size.
    let deletes: Vec<String> = (0..40).map(|key| format!("delete key:{key}")).collect();
    told(&server, &deletes.join("\r\n"));
    assert_eq!(held(&server), [0, 0]);
    let large = ["run", "mixed", &whole, "--records", "20000", "--requests", "20000", "--blocks", "1"];
    desk.run(&large).exits(1).shows("0 records in all databases");

    let server = filled_memcached(1);
    let whole = url(&server, "");
    desk.run(&["check", &whole]).exits(0);
    assert_eq!(held(&server), [1, 0]);
    // Its pages are taken by the check before.
    is_refused_or_interrupted(interrupted_once_it_asks(&desk, &server, &["check", &whole]));
    assert_eq!(held(&server), [1, 0]);
}

/// Trials of a run use the pages that those before them took.
#[test]
fn a_run_goes_on_in_the_pages_that_it_took_itself() {
    let server = common::start_shipped("memcached", Transport::Tcp);
    let desk = Desk::new();
    desk.run(&["run", "mixed", &url(&server, ""), "--requests", "1000", "--blocks", "3"]).exits(0);
    assert_eq!(held(&server), [0, 0]);
}

#[test]
fn a_server_that_does_not_tell_is_refused_unless_that_is_accepted() {
    for store in REDISES {
        let server = common::start(store, Transport::Tcp);
        let desk = Desk::new();
        let (whole, fifth) = (url(&server, ""), url(&server, "/5"));
        let run = ["run", "mixed", &fifth, "--records", "100", "--requests", "1000", "--blocks", "1"];
        // The limit by CONFIG GET: none of its own.
        assert_eq!(ask(&server, "ACL SETUSER default -info"), "+OK");
        desk.run(&run).exits(0);
        assert_eq!(ask(&server, "ACL SETUSER default -config"), "+OK");
        let commands: [&[&str]; 2] = [&run, &["check", &whole]];
        for command in commands {
            let said = desk.run(command);
            said.exits(1).shows("does not tell how much memory it has left").shows("--accept-unchecked");
            said.shows("NOPERM");
            assert_eq!(ask(&server, "DBSIZE"), ":0");
            if store == "redis" && command[0] == "check" {
                continue; // Long, and the same code as on Valkey.
            }
            let wide: &[&str] = if command[0] == "run" { &["--wide"] } else { &[] };
            let said = desk.run(&[command, &["--accept-unchecked"], wide].concat());
            said.exits(0).shows("unknown (limit -, used -, policy -, - records in all databases)");
        }
    }
}

#[test]
fn a_run_stops_at_the_first_eviction() {
    for store in REDISES {
        let server = filled(store, "allkeys-lru", 200 << 20);
        let desk = Desk::new();
        let fifth = url(&server, "/5");
        let long = ["--records", "1000", "--rate", "500", "--requests", "100000", "--writes", "50", "--blocks", "1"];
        let started = Started::new(desk.kvfair(&[&["run", "mixed", &fifth], &long[..]].concat()));
        wait_for("all records", || ask_info(&server).contains("db5:keys=1000").then_some(()));
        // Its owner needs it for something else.
        assert_eq!(ask(&server, "CONFIG SET maxmemory 3000000"), "+OK");
        let said = started.wait();
        said.exits(1).complains("records to make room while kvfair wrote to it").complains("0 trials were finished");
        assert!(!ask_info(&server).contains("db5"), "what was written is taken back: {}", ask_info(&server));
        assert_eq!(desk.records().len(), 0);
    }
    let server = common::start_shipped("memcached", Transport::Tcp);
    let desk = Desk::new();
    let whole = url(&server, "");
    let long = ["--records", "500", "--rate", "500", "--requests", "100000", "--blocks", "1"];
    let started = Started::new(desk.kvfair(&[&["run", "mixed", &whole], &long[..]].concat()));
    wait_for("all records", || (held(&server)[0] == 500).then_some(()));
    let value = "v".repeat(500_000);
    let sets: Vec<String> = (0..200).map(|key| format!("set mine:{key} 0 0 {}\r\n{value}", value.len())).collect();
    told(&server, &sets.join("\r\n"));
    assert!(held(&server)[1] > 0, "the test drives items out: {:?}", held(&server));
    started.wait().exits(1).complains("records to make room while kvfair wrote to it");
    assert_eq!(told(&server, "get key:000000000001").trim(), "END", "what was written is taken back");
}

#[test]
fn no_store_is_called_wrong_for_what_was_evicted() {
    for store in REDISES {
        let server = filled(store, "allkeys-lru", 40 << 20);
        let desk = Desk::new();
        let started = Started::new(desk.kvfair(&["check", &url(&server, "")]));
        desk.wait_until_busy(probers, 0.05);
        // From now on nothing stays.
        assert_eq!(ask(&server, "CONFIG SET maxmemory 1"), "+OK");
        let said = started.wait();
        said.exits(1).complains("records to make room while kvfair wrote to it").complains("0 targets were checked");
        assert!(!said.out.contains("WRONG"), "{}", said.out);
    }
}

/// What a server had at most, above what it had before.
fn took(server: &Running, before: u64) -> u64 {
    match server.adapter.name {
        "memcached" => number(&told(server, "stats slabs"), "total_malloced").saturating_sub(before),
        _ => number(&told(server, "INFO memory"), "used_memory_peak").saturating_sub(before),
    }
}

#[test]
fn nothing_takes_more_than_it_asked_for() {
    for store in ["redis", "valkey", "memcached"] {
        let desk = Desk::new();
        // Redis and Valkey have one adapter, and a check is long.
        if store != "redis" {
            let server = common::start(store, Transport::Tcp);
            let room = server.open().room().expect("it tells").expect("it has a limit");
            desk.run(&["check", &url(&server, "")]).exits(0);
            let (took, asked) = (self::took(&server, room.used_bytes.expect("it tells")), room.check_bytes);
            println!("check {store}: took {took} of {asked}");
            assert!(took > 0 && took <= asked, "check {store}: took {took} of {asked}");
        }
        let jobs: [&[&str]; 6] = [
            &["mixed", "--records", "3000", "--requests", "3000", "--writes", "50"],
            &["getset", "--records", "5000", "--requests", "5000", "--clients", "1,50"],
            &["getset", "--records", "50", "--requests", "200", "--clients", "2", "--values", "32,1k,32k"],
            &["fans", "--profiles", "100"],
            &["fans", "--profiles", "100", "--via", "native"],
            &["ngrams", "--messages", "300"],
        ];
        for job in jobs.into_iter().filter(|job| store != "memcached" || !job.contains(&"native")) {
            let server = common::start(store, Transport::Tcp);
            let used = server.open().room().expect("it tells").and_then(|room| room.used_bytes).expect("it tells");
            let target = format!("{}?name=it", url(&server, ""));
            desk.run(&[&["run"], job, &["--blocks", "1", &target]].concat()).exits(0);
            // A way stands behind the name.
            let is_it =
                |record: &Value| record["target"]["label"].as_str().is_some_and(|label| label.starts_with("it"));
            let record = desk.records().into_iter().rfind(is_it).expect("a record");
            let asked = record["room"]["need_bytes"].as_u64().expect("a number");
            let took = self::took(&server, used);
            println!("{job:?} {store}: took {took} of {asked}");
            assert!(took > 0 && took <= asked, "{job:?} {store}: took {took} of {asked}");
        }
    }
}
