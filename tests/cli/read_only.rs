//! `--read-only`: keys of a server that is not ours are read, and it is left as it was.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use kvfair::model::trial::Transport;

use crate::cli::strangers::{ask, ask_info, port_of};
use crate::common::desk::{Desk, Started, wait_for};
use crate::common::needs::{Need, needs};
use crate::common::{self, Running};

const STRINGS: u64 = 300;

/// A server with keys of all types, which is not empty.
fn filled(store: &str) -> Running {
    let server = common::start(store, Transport::Tcp);
    let mut commands = String::new();
    (0..STRINGS).for_each(|number| commands.push_str(&format!("SET string:{number} {}\r\n", "v".repeat(100))));
    for number in 0..50 {
        commands.push_str(&format!("RPUSH list:{number} 1\r\nHSET hash:{number} f 1\r\nSADD set:{number} 1\r\n"));
    }
    commands.push_str("CONFIG RESETSTAT\r\n");
    told(&server, &commands);
    server
}

/// All that is answered to these commands.
fn told(server: &Running, commands: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    stream.write_all(format!("{commands}QUIT\r\n").as_bytes()).expect("the test's own server");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the test's own server");
    answer
}

/// The commands that the server has seen since its counters began anew.
fn commands_seen(server: &Running) -> Vec<String> {
    let stats = told(server, "INFO commandstats\r\n");
    let names = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
    names.map(|(name, _)| name.to_string()).collect()
}

#[test]
fn a_server_that_is_read_is_left_as_it_was() {
    let server = filled("redis");
    let (desk, keyspace) = (Desk::new(), ask_info(&server));
    assert_eq!(keyspace, format!("db0:keys={}", STRINGS + 150));
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let getset = ["run", "getset", "--only", "get", "--read-only", "--clients", "1,5", "--requests", "2000"];
    let said = desk.run(&[&getset[..], &["--blocks", "2", "--wide", &url]].concat());
    said.exits(0).shows("answers not checked").shows(&format!("{STRINGS} keys"));
    said.shows("nothing was written");
    let mixed = ["run", "mixed", "--read-only", "--clients", "3", "--requests", "5000", "--records", "100"];
    desk.run(&[&mixed[..], &["--blocks", "1", &url]].concat())
        .exits(0)
        .shows("answers: not checked; 100 keys were drawn");
    let rated = ["run", "mixed", "--read-only", "--rate", "500", "--requests", "1000", "--keys", "zipf:0.99"];
    desk.run(&[&rated[..], &["--blocks", "1", &url]].concat()).exits(0).shows("answers not checked");

    assert_eq!(ask_info(&server), keyspace);
    let harmless = ["get", "scan", "info", "ping", "quit", "select", "config|get", "config|resetstat", "command|info"];
    let seen = commands_seen(&server);
    assert!(seen.iter().any(|name| name == "get"), "{seen:?}");
    let others: Vec<&String> = seen.iter().filter(|name| !harmless.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
    let records = desk.records();
    let schema = serde_json::from_str(include_str!("../../schema/record.schema.json")).expect("the schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    records.iter().for_each(|record| validator.validate(record).expect("valid by the schema"));
    assert!(records.len() >= 2 && records.iter().all(|record| record["job"]["load"]["read_only"] == true));
    for record in &records {
        let phases = record["phases"].as_array().unwrap();
        assert!(!phases.is_empty() && phases.iter().all(|phase| phase["misses"] == 0), "{record}");
    }
    desk.run(&["show"]).exits(0).shows("answers not checked");
    assert!(
        !std::fs::read_dir(desk.home().join("kvfair-results"))
            .unwrap()
            .flatten()
            .any(|file| { file.path().extension().is_some_and(|end| end == "guest") })
    );
}

/// Valkey knows how to read without a trace: no key is younger than its last use by its owner.
#[test]
fn no_key_is_touched_where_the_server_knows_how() {
    let server = filled("valkey");
    let since = Instant::now();
    std::thread::sleep(Duration::from_secs(4));
    let desk = Desk::new();
    let url = format!("valkey://127.0.0.1:{}", port_of(&server));
    desk.run(&["run", "mixed", "--read-only", "--requests", "5000", "--blocks", "1", &url]).exits(0);
    let idle: Vec<u64> = (0..STRINGS)
        .map(|number| ask(&server, &format!("OBJECT IDLETIME string:{number}")))
        .map(|answer| answer.trim_start_matches(':').parse().expect("seconds"))
        .collect();
    // Clocks of seconds on both sides.
    let idle_s = 3..=since.elapsed().as_secs() + 1;
    assert!(idle.len() as u64 == STRINGS && idle.iter().all(|seconds| idle_s.contains(seconds)), "{idle:?}");
    assert!(commands_seen(&server).iter().any(|name| name == "get"));
    assert_eq!(desk.record(&url)["store"]["settings"]["times of last use"], "kept by CLIENT NO-TOUCH");
}

/// Redis 7.0 does not know how. Its owner's counters of errors stay as they are, and where it evicts by use, a warning
/// says so.
#[test]
fn a_server_that_renews_times_of_last_use_is_not_asked_in_vain_and_it_is_said() {
    let server = filled("redis");
    let is_old = !told(&server, "COMMAND INFO client|no-touch\r\n").contains("no-touch");
    needs!(Need::new("redis before 7.2", is_old, "put one on PATH"));
    let (desk, url) = (Desk::new(), format!("redis://127.0.0.1:{}", port_of(&server)));
    let run = |name: &str| {
        let run =
            ["run", "mixed", "--read-only", "--requests", "2000", "--blocks", "2", "--wide", "--output", name, &url];
        let said = desk.run(&run);
        said.exits(0);
        said
    };
    assert!(!run("quiet.jsonl").out.contains("warning (touch)"), "nothing is evicted");
    assert_eq!(ask(&server, "CONFIG SET maxmemory-policy allkeys-lru"), "+OK");
    run("lru.jsonl").shows("warning (touch)").shows("renewed by each get, and maxmemory-policy allkeys-lru evicts by");
    let stats = told(&server, "INFO stats\r\nINFO commandstats\r\n");
    assert!(stats.contains("total_error_replies:0"), "{stats}");
    let scans = stats.lines().find_map(|line| line.strip_prefix("cmdstat_scan:calls="));
    let scans: u64 = scans.and_then(|line| line.split(',').next()?.parse().ok()).expect("a count");
    let all_keys = STRINGS + 150;
    assert!(scans <= 2 * all_keys.div_ceil(500) + 2, "{scans} scans: keys are listed once a run, not once a trial");
}

/// What goes away between the drawing and the reading is a miss, and no fault.
#[test]
fn a_key_that_is_gone_is_a_miss() {
    let server = filled("redis");
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let run = ["run", "mixed", "--read-only", "--requests", "300000", "--clients", "2", "--blocks", "1", &url];
    let started = Started::new(desk.kvfair(&run));
    wait_for("the first reads", || commands_seen(&server).contains(&"get".to_string()).then_some(()));
    let gone: String = (0..STRINGS / 2).map(|number| format!("PEXPIRE string:{number} 1\r\n")).collect();
    told(&server, &gone);
    started.wait().exits(0).shows("gets found nothing");
    let phases = desk.record(&url)["phases"].clone();
    assert!(phases[0]["misses"].as_u64().expect("a count") > 0, "{phases}");
}

#[test]
fn what_cannot_be_read_only_is_refused_with_a_reason() {
    let (server, cache, desk) =
        (common::start("redis", Transport::Tcp), common::start("memcached", Transport::Tcp), Desk::new());
    assert_eq!(ask(&server, "RPUSH list 1"), ":1");
    let (url, cached) =
        (format!("redis://127.0.0.1:{}", port_of(&server)), format!("memcached://127.0.0.1:{}", port_of(&cache)));
    let mixed = |more: &[&str]| desk.run(&[&["run", "mixed", "--read-only", "--blocks", "1"], more].concat());
    mixed(&[&url]).exits(1).shows("holds no keys of strings");
    mixed(&[&cached]).exits(1).shows("memcached cannot list its keys");
    mixed(&["redis"]).exits(2).complains("name a store by URL");
    mixed(&[&url, "--writes", "1"]).exits(2).complains("--writes");
    mixed(&[&url, "--values", "10"]).exits(2).complains("--values");
    mixed(&[&url, "--records", "100001"]).exits(2).complains("100,000");
    desk.run(&["run", "getset", "--read-only", &url]).exits(2).complains("--only get");
    desk.run(&["run", "fans", "--read-only", &url]).exits(2).complains("--read-only is no option of the job fans");
    assert_eq!(ask_info(&server), "db0:keys=1");
}
