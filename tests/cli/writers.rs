//! Many writers of one store: the messages of `ngrams` are split over agents, and what they count together is what one
//! writer counts.
#![cfg(target_os = "linux")]

use std::time::Duration;

use kvfair::model::trial::Transport;
use serde_json::Value;

use crate::cli::agents::url_of;
use crate::cli::check::broken_clients::relay;
use crate::cli::strangers::{ask, port_of};
use crate::common;
use crate::common::desk::{Desk, Said, Started, wait_for};
use crate::common::needs::{Need, needs, servers_here, tools};

/// One block, whose records are the only ones of a results file.
fn ngrams(desk: &Desk, results: &str, arguments: &[&str]) -> Said {
    let run = ["run", "ngrams", "--blocks", "1", "--no-aa", "--output", results];
    let mut kvfair = desk.kvfair(&[&run[..], arguments].concat());
    kvfair.env("PYTHONPATH", tools().join("python"));
    Started::new(kvfair).wait()
}

fn is_right(record: &Value) {
    assert_eq!(record["verdict"]["kind"], "right", "{} {}", record["outcome"], record["verdict"]);
}

fn terms(record: &Value) -> &Value {
    &record["verdict"]["answer"]["sha256 terms"]
}

fn run_of(record: &Value) -> &Value {
    let phases = record["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == "run").expect("it has run")
}

/// The units of each agent.
fn shares(record: &Value) -> Vec<u64> {
    let agents = run_of(record)["agents"].as_array().expect("agents");
    agents.iter().map(|agent| agent["units"].as_u64().expect("a count")).collect()
}

#[test]
fn a_hundred_thousand_messages_by_four_writers_are_counted_as_by_one_and_by_duckdb() {
    needs!(Need::tool("python/duckdb"));
    let desk = Desk::new();
    let with = |results: &str, arguments: &[&str]| {
        let said = ngrams(&desk, results, &[&["--messages", "100000"], arguments].concat());
        said.exits(0);
        let record = desk.record_in(results);
        is_right(&record);
        (said, record)
    };
    let (said, many) = with("many.jsonl", &["redis+unix", "--via", "batch", "--agents", "4", "--wide"]);
    said.shows("4 clients").shows("agents: 4 on one machine drove the clients");
    assert_eq!(shares(&many), [25_000; 4]);
    let (_, one) = with("one.jsonl", &["ram"]);
    assert_eq!((terms(&many), &many["verdict"]["keys"]), (terms(&one), &one["verdict"]["keys"]));
    let (_, duckdb) = with("duckdb.jsonl", &["duckdb"]);
    assert_eq!(terms(&many), terms(&duckdb));
    desk.is_swept();
}

/// Few words, so that writers meet.
const REPEATED: &str = "a b a c a\n";

#[test]
fn writers_by_check_and_set_count_their_conflicts() {
    let desk = Desk::new();
    let input = desk.file("messages.txt", REPEATED.repeat(6_001));
    let arguments = ["--input", input, "--format", "text", "redis+unix", "--via", "cas", "--agents", "3"];
    let said = ngrams(&desk, "cas.jsonl", &arguments);
    said.exits(0).shows("contention: ").shows("% of the ops were wasted, about");
    let record = &desk.record_in("cas.jsonl");
    is_right(record);
    assert_eq!(shares(record), [2_000, 2_000, 2_001]);
    let number = |name: &str| run_of(record)[name].as_u64().expect("a count");
    assert!(number("conflicts") > 0);
    // A get and a set for each term, and both once more after a conflict.
    let terms = record["stream"]["ops"].as_u64().expect("a count");
    assert_eq!(number("ops"), 2 * (terms + number("conflicts")));
}

/// The first session makes a server's tables: eight agents that made them at the same time would fail. What they ask
/// first is slow on its way.
#[test]
fn eight_writers_begin_on_a_server_without_tables() {
    let desk = Desk::new();
    let wait = |_: &[u8], piece| Duration::from_millis(if piece < 80 { 100 } else { 0 });
    for store in servers_here(&["postgres", "mariadb", "cassandra"]) {
        let server = common::start(store, Transport::Tcp);
        let url = format!("{store}://127.0.0.1:{}", relay(port_of(&server), wait, Box::new(|said| said)));
        let results = format!("{store}.jsonl");
        let said = ngrams(&desk, &results, &[&url, "--messages", "80", "--via", "batch", "--agents", "8"]);
        said.exits(0);
        let record = &desk.record_in(&results);
        is_right(record);
        assert_eq!(shares(record), [10; 8], "{store}");
    }
}

/// By URL the terms are deleted again. Agents pass over the bad line that one writer passes over.
#[test]
fn writers_share_a_server_by_url_and_leave_it_as_it_was() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = url_of(&server);
    let text =
        [b"one two\n\xff\xfe\n\n".as_slice(), "three two one\n".repeat(40_000).as_bytes(), b"never read\n"].concat();
    let input = desk.file("messages.txt", text);
    let size = ["--input", input, "--format", "text", "--skip-bad", "1", "--messages", "40002"];
    for via in ["portable", "batch"] {
        let results = format!("{via}.jsonl");
        ngrams(&desk, &results, &[&size[..], &[&url, "--via", via, "--agents", "2"]].concat()).exits(0);
        let record = desk.record_in(&results);
        is_right(&record);
        assert_eq!((shares(&record), &record["stream"]["skipped_lines"]), (vec![20_001, 20_001], &1.into()), "{via}");
        assert_eq!(record["verdict"]["keys"], 6, "{via}");
        assert_eq!(ask(&server, "DBSIZE"), ":0", "{via}");
    }
}

/// A stranger takes one increment away while the writers count: the trial has no number.
#[test]
fn a_lost_increment_fails_the_trial() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = url_of(&server);
    let input = desk.file("messages.txt", "one two\n".repeat(100_000));
    let run = ["run", "ngrams", "--input", input, "--format", "text", &url, "--agents", "2", "--blocks", "1"];
    let started = Started::new(desk.kvfair(&run));
    wait_for("the first terms", || (ask(&server, "DBSIZE") == ":3").then_some(()));
    assert!(ask(&server, "DECR two").starts_with(':'));
    started.wait().exits(4);
    let record = &desk.record(&url);
    assert_eq!(record["verdict"]["kind"], "wrong", "{record}");
    assert_eq!(record["verdict"]["first"]["key"], "two");
}

#[test]
fn what_many_writers_cannot_do_is_refused() {
    let desk = Desk::new();
    for (arguments, words) in [
        (
            &["ngrams", "cached:redis", "--agents", "2"][..],
            "cached:redis: the cache is in one process hint: leave cached: out",
        ),
        (&["ngrams", "lmdb", "--agents", "2"], "lmdb is in one process, which agents cannot share"),
        (&["ngrams", "redis", "--agents", "3", "--clients", "2"], "3 agents cannot share 2 clients"),
        (&["fans", "redis", "--agents", "2"], "agents cannot share the job fans"),
    ] {
        let run = [&["run"], arguments].concat();
        desk.run(&run).exits(2).complains(words);
    }
    assert!(desk.records().is_empty(), "nothing was run");
    desk.run(&["run", "ngrams", "redis+unix", "--messages", "3", "--agents", "4"]).exits(1);
    let reason = desk.reason("redis+unix");
    assert!(reason.contains("3 messages are too few for 4 agents\nhint: --agents 3"), "{reason}");
}

/// DuckDB counts the same messages.
#[test]
#[ignore = "takes many minutes and some GB: ./test slow"]
fn three_million_messages_by_four_writers_are_counted_as_by_duckdb() {
    let desk = Desk::new();
    let with = |results: &str, arguments: &[&str]| {
        let said = ngrams(&desk, results, &[&["--messages", "3000000", "--timeout", "3600s"], arguments].concat());
        said.exits(0);
        eprintln!("{}", said.out);
        let record = desk.record_in(results);
        is_right(&record);
        assert_eq!(record["stream"]["units"], 3_000_000);
        record
    };
    let many = with("many.jsonl", &["redis+unix", "--via", "batch", "--agents", "4"]);
    let duckdb = with("duckdb.jsonl", &["duckdb"]);
    assert_eq!(terms(&many), terms(&duckdb));
    assert_eq!(shares(&many), [750_000; 4]);
}
