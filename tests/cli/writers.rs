//! Many writers of one store: the messages of `ngrams` are split over agents, and what they count together is what one
//! writer counts.

use std::path::{Path, PathBuf};

use kvfair::model::trial::Transport;
use serde_json::Value;

use crate::common;
use crate::desk::{Desk, Said, Started};

/// Where ./test puts DuckDB.
fn libraries() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools/python")
}

fn ngrams(desk: &Desk, arguments: &[&str]) -> Said {
    let mut kvfair = desk.kvfair(&[&["run", "ngrams", "--blocks", "1", "--no-aa"], arguments].concat());
    kvfair.env("PYTHONPATH", libraries());
    Started::new(kvfair).wait()
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
fn a_hundred_thousand_messages_by_four_writers_are_counted_as_by_one() {
    let desk = Desk::new();
    let size = ["--messages", "100000", "--via", "batch"];
    let many = ngrams(&desk, &[&size[..], &["redis+unix", "--agents", "4", "--output", "many.jsonl"]].concat());
    many.exits(0).shows("4 clients");
    ngrams(&desk, &[&size[..], &["ram", "--output", "one.jsonl"]].concat()).exits(0);
    let (many, one) = (desk.record_in("many.jsonl"), desk.record_in("one.jsonl"));
    for record in [&many, &one] {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
    }
    assert_eq!(terms(&many), terms(&one));
    assert_eq!(many["verdict"]["keys"], one["verdict"]["keys"]);
    assert_eq!(shares(&many), [25_000; 4]);
    desk.is_swept();
}

/// Few words, so that writers meet.
const REPEATED: &str = "a b a c a\n";

#[test]
fn writers_by_check_and_set_count_their_conflicts() {
    let desk = Desk::new();
    let input = desk.file("messages.txt", REPEATED.repeat(3_001));
    let arguments = ["--input", input, "--format", "text", "redis+unix", "--via", "cas", "--agents", "3"];
    let said = ngrams(&desk, &arguments);
    said.exits(0).shows("contention: ").shows("% of the ops were asked for nothing");
    let record = &desk.records()[0];
    assert_eq!(record["verdict"]["kind"], "right", "{}", record["verdict"]);
    assert_eq!(shares(record), [1_000, 1_000, 1_001]);
    let number = |name: &str| run_of(record)[name].as_u64().expect("a count");
    assert!(number("conflicts") > 0);
    // A get and a set each, and both once more after a conflict.
    let terms = record["stream"]["ops"].as_u64().expect("a count");
    assert_eq!(number("ops"), 2 * (terms + number("conflicts")));
}

/// By URL, where the terms are taken away again, and of bad lines as many are passed over as by one writer.
#[test]
fn writers_share_a_server_by_url_and_leave_it_as_it_was() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}", server.launch.place);
    let text = [b"one two\n\xff\xfe\n\n".as_slice(), "three two one\n".repeat(20_000).as_bytes(), b"never read\n"].concat();
    let input = desk.file("messages.txt", text);
    let size = ["--input", input, "--format", "text", "--skip-bad", "1", "--messages", "20002"];
    for via in ["portable", "batch"] {
        ngrams(&desk, &[&size[..], &[&url, "--via", via, "--agents", "2"]].concat()).exits(0);
    }
    for record in desk.records() {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["verdict"]);
        assert_eq!((shares(&record), &record["stream"]["skipped_lines"]), (vec![10_001, 10_001], &1.into()));
        assert_eq!(record["verdict"]["keys"], 6);
    }
    assert_eq!(server.open().count().expect("it counts"), Some(0));
}

#[test]
fn what_many_writers_cannot_do_is_refused() {
    let desk = Desk::new();
    for (arguments, words) in [
        (
            &["ngrams", "cached:redis", "--agents", "2"][..],
            "cached:redis: the cache is in one process\nhint: leave cached: out",
        ),
        (&["ngrams", "lmdb", "--agents", "2"], "lmdb is in one process, which agents cannot share"),
        (&["ngrams", "redis", "--agents", "3", "--clients", "2"], "3 agents cannot share 2 clients"),
        (&["fans", "redis", "--agents", "2"], "agents cannot share the job fans"),
    ] {
        let run = [&["run"], arguments].concat();
        desk.run(&run).exits(2).complains(words);
    }
    assert!(desk.records().is_empty(), "nothing was run");
    ngrams(&desk, &["redis+unix", "--messages", "3", "--agents", "4"]).exits(1);
    let reason = desk.reason("redis+unix");
    assert!(reason.contains("3 messages are too few for 4 agents\nhint: --agents 3"), "{reason}");
}

/// About 11 million terms, and DuckDB's count of them.
#[test]
#[ignore = "takes many minutes and some GB: ./test slow"]
fn three_million_messages_by_four_writers_are_counted_as_by_duckdb() {
    let desk = Desk::new();
    let size = ["--messages", "3000000", "--timeout", "3600"];
    for arguments in [
        &["redis+unix", "--via", "batch", "--agents", "4", "--output", "many.jsonl"][..],
        &["duckdb", "--output", "duckdb.jsonl"],
    ] {
        let said = ngrams(&desk, &[&size[..], arguments].concat());
        said.exits(0);
        eprintln!("{}", said.out);
    }
    let (many, duckdb) = (desk.record_in("many.jsonl"), desk.record_in("duckdb.jsonl"));
    for record in [&many, &duckdb] {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
        assert_eq!(record["stream"]["units"], 3_000_000);
    }
    assert_eq!(terms(&many), terms(&duckdb));
    assert_eq!(shares(&many), [750_000; 4]);
}
