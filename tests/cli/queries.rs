//! `fans --queries`: what was built is asked for, every answer is checked, and its time is a number of its own.

use serde_json::Value;

use crate::cli::answers::expected;
use crate::common::desk::{Desk, Said};

fn run(desk: &Desk, arguments: &[&str], targets: &[&str]) -> Said {
    desk.run(&[&["run", "fans", "--blocks", "1"], arguments, targets].concat())
}

fn phase<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    record["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == name)
}

/// Names with quotes, blanks and escapes; "tea" has the most fans.
const MINE: &str = r#"{"user": "a", "likes": ["tea", "rain", "a \"b\" c"]}
{"user": "b", "likes": ["tea", "rain", "été, 2 \\ 3"]}
{"user": "c", "likes": ["tea", "alone"]}
{"user": "d", "likes": []}
{"user": "e", "likes": ["single"]}
"#;

#[test]
fn every_store_answers_what_it_built() {
    let targets = expected();
    // Over either transport the same is asked.
    let is_nearest = |target: &&String| !targets.contains(&format!("{target}+unix"));
    let stores = targets.iter().filter(is_nearest).map(String::as_str);
    let targets: Vec<&str> = stores.chain(["cached:redis", "null"]).collect();
    assert!(targets.len() > 8, "{targets:?}");
    let desk = Desk::new();
    run(&desk, &["--profiles", "30", "--queries", "25"], &targets).exits(0);
    let records = desk.records();
    assert_eq!(records.len(), targets.len());
    for record in &records {
        let label = &record["target"]["label"];
        let verdict = if record["target"]["store"] == "null" { "baseline" } else { "right" };
        assert_eq!(record["verdict"]["kind"], verdict, "{label}: {}", record["outcome"]);
        let phases = record["phases"].as_array().expect("phases");
        let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
        assert_eq!(names, ["run", "final_flush", "ask"], "{label}");
        let ask = phase(record, "ask").expect("it was asked");
        assert_eq!((&ask["units"], &ask["ops"]), (&25.into(), &25.into()), "{label}");
    }
}

/// By each way, shared by several clients, of made data and one's own.
#[test]
fn each_way_of_building_is_asked_for() {
    let desk = Desk::new();
    desk.file("mine.jsonl", MINE);
    let ways = "portable,batch,native,cas";
    for data in [["--profiles", "60"], ["--input", "mine.jsonl"]] {
        let queries = if data[0] == "--input" { "6" } else { "101" };
        for clients in ["1", "3"] {
            let how = ["--via", ways, "--clients", clients, "--queries", queries];
            run(&desk, &[&data[..], &how].concat(), &["redis", "sqlite", "ram"]).exits(0);
        }
    }
    let records = desk.records();
    assert_eq!(records.len(), 2 * 2 * 3 * 4);
    for record in &records {
        let label = &record["target"]["label"];
        assert_eq!(record["verdict"]["kind"], "right", "{label}: {}", record["outcome"]);
        let ask = phase(record, "ask").expect("it was asked");
        assert_eq!(
            (&ask["clients"], &ask["units"]),
            (&record["clients"], &record["job"]["fans"]["queries"]),
            "{label}"
        );
    }
}

#[test]
fn what_asking_took_stands_in_every_form_and_in_no_other_number() {
    let desk = Desk::new();
    let targets = ["lmdb", "redis+unix", "null"];
    let said = run(&desk, &["--profiles", "100", "--queries", "300", "--html", "asked.html"], &targets);
    said.exits(0).shows("then 300 queries").shows("asked in").shows("ask p50").shows("ask p99");
    let page = std::fs::read_to_string(desk.home().join("asked.html")).expect("a page");
    assert!(page.contains("asked in") && page.contains("then 300 queries"));
    desk.run(&["show"]).exits(0).shows("ask p99");
    desk.run(&["show", "--markdown"]).exits(0).shows("asked in | ask p50 | ask p99");
    let csv = desk.run(&["show", "--csv"]);
    csv.exits(0).shows("ask_s,ask_us_p50,ask_us_p99");
    desk.run(&["show", "--json"]).exits(0);
    let rows = desk.rows();
    assert_eq!(rows.len(), targets.len());
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"));
        let record = desk.record(row["target"].as_str().expect("a target"));
        let took_s = |name: &str| phase(&record, name).expect("it was measured")["took_s"].as_f64().expect("seconds");
        assert_eq!(number("ask_s"), took_s("ask"));
        assert!((number("took_s") - took_s("run") - took_s("final_flush")).abs() < 1e-9);
        // One op in so many is timed, and of few there is no 99th percentile.
        let p99 = row["ask_us_p99"].as_f64().unwrap_or(f64::MAX);
        assert!(number("ask_us_p50") > 0.0 && p99 >= number("ask_us_p50"));
    }
    let said = run(&desk, &["--profiles", "100"], &targets);
    assert!(!said.exits(0).out.contains("asked in"), "nothing was asked");
    desk.run(&["show", "--json"]).exits(0);
    let rows = desk.rows();
    assert!(rows.len() == targets.len() && rows.iter().all(|row| row["ask_s"].is_null()), "{rows:?}");
}

/// The records are right: only what is answered at the end is not.
#[test]
fn a_wrong_answer_fails_the_trial() {
    let desk = Desk::new();
    desk.file("mine.jsonl", MINE);
    let own = ["--input", "mine.jsonl", "--queries", "6"];
    run(&desk, &own, &["ram"]).exits(0);
    let ops = desk.record("ram")["stream"]["ops"].as_u64().expect("ops");
    for (fault, code, words) in [("stray", 4, " fans"), ("garble", 1, "")] {
        let target = format!("faulty?fault={fault}&after={}&name=faulty", ops + 2);
        run(&desk, &own, &["ram", &target]).exits(code);
        let record = desk.record("faulty");
        assert!(phase(&record, "final_flush").is_some() && phase(&record, "ask").is_none(), "{fault}");
        if !words.is_empty() {
            let (kind, first) = (&record["verdict"]["kind"], &record["verdict"]["first"]);
            assert_eq!(*kind, "wrong", "{fault}: {record}");
            let of = |name: &str| first[name].as_str().expect("it is told").to_string();
            assert!(of("expected").contains(words) && of("expected") != of("found"), "{fault}: {first}");
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let desk = Desk::new();
    desk.file("mine.jsonl", MINE);
    run(&desk, &["--queries", "0"], &["ram"]).exits(2).complains("0 is not in 1..=");
    let many = run(&desk, &["--input", "mine.jsonl", "--queries", "7"], &["ram"]);
    many.exits(1).complains("mine.jsonl: --queries 7: it has 6 pages").complains("hint: ");
    let made = run(&desk, &["--profiles", "2", "--queries", "1000"], &["ram"]);
    made.exits(1).complains("--queries 1,000: it has").complains("hint: ");
    run(&desk, &["--queries", "5", "--verify", "sample"], &["ram"]).exits(2).complains("every answer is compared");
    desk.run(&["run", "ngrams", "--queries", "5", "ram"])
        .exits(2)
        .complains("--queries is no option of the job ngrams");
    desk.run(&["run", "--exec", "true", "--queries", "5", "ram"]).exits(2).complains("--queries");
    assert!(desk.records().is_empty(), "nothing was run");
}

/// The same answers from records in JSON and in few bytes, each a row of its own.
#[test]
fn records_may_be_written_in_few_bytes() {
    let desk = Desk::new();
    desk.file("mine.jsonl", MINE);
    let how = ["--encoding", "json,binary", "--via", "portable,batch,cas", "--clients", "2"];
    for data in [["--profiles", "60", "--queries", "50"], ["--input", "mine.jsonl", "--queries", "6"]] {
        let said = run(&desk, &[&data[..], &how].concat(), &["redis", "sqlite", "ram"]);
        said.exits(0).shows("redis batch binary").shows("via batch, binary records (compared within this group only)");
    }
    let records = desk.records();
    assert_eq!(records.len(), 2 * 3 * 3 * 2);
    for record in &records {
        let label = record["target"]["label"].as_str().expect("a label");
        assert_eq!(record["verdict"]["kind"], "right", "{label}: {}", record["outcome"]);
        assert!(phase(record, "ask").is_some(), "{label}");
        let encoding = record["job"]["fans"]["encoding"].as_str().expect("an encoding");
        assert_eq!(label.ends_with(" binary"), encoding == "binary", "{label}");
        let data = &record["stream"]["sha256"];
        let is_other = |other: &&Value| {
            other["target"]["label"] == label.trim_end_matches(" binary") && other["stream"]["sha256"] == *data
        };
        let json = records.iter().find(is_other).expect("the same in JSON");
        let bytes =
            |record: &Value| record["verdict"]["checked"]["bytes"].as_u64().or(record["verdict"]["bytes"].as_u64());
        assert_eq!(encoding == "binary", bytes(record).expect("bytes") < bytes(json).expect("bytes"), "{label}");
        assert_eq!(record["verdict"]["answer"], json["verdict"]["answer"], "{label}");
    }
    let keep = ["--input", "mine.jsonl", "--encoding", "binary", "--keep", "kept"];
    run(&desk, &keep, &["lmdb"]).exits(0).complains("kvfair query");
    desk.run(&["query", "lmdb:kept/lmdb_binary", "tea"]).exits(0).shows("3 fans; also fans of: rain 2");
}

#[test]
fn wrong_records_in_few_bytes_are_found() {
    for fault in ["corrupt&after=40&every=7", "drop&after=40", "stray&after=40&every=3"] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}&name=faulty");
        run(&desk, &["--profiles", "60", "--encoding", "binary"], &["ram", &target]).exits(4);
        assert_eq!(desk.record("faulty binary")["verdict"]["kind"], "wrong", "{fault}");
    }
}

#[test]
fn what_cannot_be_encoded_is_refused() {
    let desk = Desk::new();
    run(&desk, &["--encoding", "xml"], &["ram"]).exits(2).complains("'xml' is no encoding: json or binary");
    run(&desk, &["--encoding", "binary", "--via", "native"], &["ram"]).exits(2).complains("no record is written");
    run(&desk, &["--encoding", "json,json"], &["ram"]).exits(2).complains("two targets are called 'ram'");
    let other = desk.run(&["run", "ngrams", "--encoding", "binary", "ram"]);
    other.exits(2).complains("--encoding is no option of the job ngrams");
    desk.run(&["levers", "fans", "ram", "--encoding", "binary"]).exits(2).complains("--encoding");
    desk.run(&["run", "--exec", "true", "--encoding", "binary", "ram"]).exits(2).complains("--encoding");
}

/// Twenty queries over 100 ms take 2 s of each trial, and there are fourteen. All else takes 57 s, nearly all of it for
/// round trips. What a pilot asked for is not what is asked for then.
#[test]
fn a_forecast_contains_the_queries() {
    let desk = Desk::new();
    let size = ["run", "fans", "redis", "--profiles", "5", "--via", "batch", "--queries", "20"];
    let said = desk.run(&[&size[..], &["--rtt", "100ms", "--budget", "12s"]].concat());
    // The last trial may be cut off.
    let records = desk.records();
    assert!(!records.is_empty() && records.iter().all(|record| record["outcome"]["kind"] != "failed"), "{}", said.out);
    let words = said.err.lines().find_map(|line| line.split_once("blocks take about ")).expect("a forecast").1;
    let (number, unit) = words.split_once(' ').expect("a number and a unit");
    let seconds = if unit.starts_with("minutes") { 60.0 } else { 1.0 };
    let foretold_s = seconds * number.parse::<f64>().expect("a number");
    assert!(foretold_s > 65.0, "{foretold_s} s");
}

/// A pilot of data that nobody has made asks for one page: there may be no more.
#[test]
fn data_of_two_pages_has_pilots() {
    let desk = Desk::new();
    desk.file(
        "two.jsonl",
        "{\"user\": \"a\", \"likes\": [\"tea\", \"rain\"]}\n{\"user\": \"b\", \"likes\": [\"rain\", \"tea\"]}\n",
    );
    let size = ["run", "fans", "ram", "--input", "two.jsonl", "--queries", "2", "--budget", "5s"];
    desk.run(&size);
    let record = desk.record("ram");
    assert_eq!((&record["outcome"]["kind"], &record["verdict"]["kind"]), (&"finished".into(), &"right".into()));
}
