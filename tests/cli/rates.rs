//! Requests at a rate, on engines in the process, client libraries and servers; and the highest rate that keeps a
//! promise.

use kvfair::model::record::{Open, Record};
use serde_json::Value;

use crate::common::desk::Desk;

const RATED: [&str; 5] = ["run", "mixed", "--blocks", "1", "--records=300"];

fn phase<'a>(record: &'a Value, name: &str, rate: u64) -> &'a Value {
    let phases = record["phases"].as_array().expect("phases");
    let at = |phase: &&Value| phase["name"] == name && phase["open"]["rate"] == rate;
    phases.iter().find(at).unwrap_or_else(|| panic!("no {name} at {rate}/s"))
}

#[test]
fn rates_are_kept_alike_on_every_kind_of_store_and_every_answer_is_looked_at() {
    let desk = Desk::new();
    let targets =
        ["ram", "null", "lmdb", "redis", "memcached+unix?protocol=binary", "mariadb+unix", "cached:redis?memory=1MB"];
    let rates = ["--rate", "1k,4k", "--requests", "1000", "--clients", "7", "--writes", "20"];
    let said = desk.run(&[&RATED[..], &rates, &targets].concat());
    said.exits(0)
        .shows("response of a request, from when it was due to its answer: median")
        .shows("7 clients, 1,000, 4,000/s independent of each other")
        .shows("every get was right");
    let rows = desk.rows();
    for target in targets {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], if target == "null" { "baseline" } else { "right" }, "{target}");
        for (rate, seconds) in [(1_000, 1.0), (4_000, 0.25)] {
            let run = phase(&record, "run", rate);
            assert_eq!((run["units"].as_u64(), run["ops"].as_u64()), (Some(1000), Some(1000)), "{target}");
            let (took_s, due_s) = (run["took_s"].as_f64().unwrap(), run["open"]["due_s"].as_f64().unwrap());
            assert!(
                (0.85 * seconds..1.15 * seconds).contains(&due_s) && took_s > due_s - 0.05,
                "{target}: {took_s} {due_s}"
            );
            assert!(run["open"]["late"].is_null(), "{target}");
            let is_it = |row: &&Value| row["target"] == target && row["rate_per_s"] == rate;
            let row = rows.iter().find(is_it).expect("a row");
            // Whether the machine let it be kept is another question.
            assert_eq!(row["rate_kept"], took_s <= 1.01 * due_s + 0.1, "{row}");
            assert!(row["response_us_p50"].as_f64().unwrap() >= row["lag_us_p50"].as_f64().unwrap(), "{row}");
        }
    }
    let due = |target: &str| phase(&desk.record(target), "run", 1_000)["open"]["due_s"].as_f64().expect("seconds");
    assert!(targets.iter().all(|target| due(target) == due("ram")), "the same moments for all");
    desk.run(&["show", "--svg", "rates.svg", "--histograms", "full"]).exits(0);
    let drawn = std::fs::read_to_string(desk.home().join("rates.svg")).expect("a picture");
    assert!(drawn.contains("response of a request, p99 in us") && drawn.contains("requests per second"));
    for kind in ["response", "service", "lag"] {
        let text = std::fs::read_to_string(desk.home().join(format!("full/lmdb.run.7.1000.{kind}.hgrm")));
        assert!(text.expect("a histogram").contains("Total count    =         1000]"), "{kind}");
    }
}

/// The time from sending to answer leaves the wait out: no column calls it latency, and CSV has it with all columns.
#[test]
fn at_a_rate_only_the_response_is_a_latency() {
    let desk = Desk::new();
    desk.run(&[&RATED[..], &["--rate", "2k", "--requests", "2000", "--writes", "20", "redis+unix"]].concat()).exits(0);
    let csv = |wide: &[&str]| {
        let out = desk.run(&[&["show", "--csv"], wide].concat()).exits(0).out.clone();
        let lines: Vec<Vec<String>> = out.lines().map(|line| line.split(',').map(str::to_string).collect()).collect();
        move |name: &str| {
            let place = lines[0].iter().position(|heading| heading == name)?;
            Some(lines[1][place].parse::<f64>().ok())
        }
    };
    let (usual, wide) = (csv(&[]), csv(&["--wide"]));
    let response = usual("response_us_p99").flatten().expect("a number");
    for name in ["latency_us_p50", "latency_us_p99", "latency_us_max"] {
        assert_eq!(usual(name), Some(None), "{name} is empty at a rate");
    }
    assert_eq!(usual("service_us_p99"), None, "it is no usual column");
    let service = wide("service_us_p99").flatten().expect("a number");
    assert!(0.0 < service && service <= 1.01 * response, "{service} us of {response} us");
    let row = &desk.rows()[0];
    assert!(row["latency_us_p99"].is_null() && row["service_us_p99"].as_f64() == Some(service), "{row}");
}

/// What was asked until then must have been done all the same.
#[test]
fn a_rate_that_cannot_be_kept_is_given_up_said_and_checked() {
    let desk = Desk::new();
    let rate = ["run", "getset", "--only", "set", "--blocks", "1", "--records", "200", "--rate", "10M,1k"];
    let said = desk.run(&[&rate[..], &["--requests", "2000000", "redis+unix", "lmdb"]].concat());
    said.exits(2).complains("take 2000 s");
    let rate = ["run", "getset", "--only", "set", "--blocks", "1", "--records", "200", "--rate", "10M,5M"];
    let said = desk.run(&[&rate[..], &["--requests", "2000000", "redis+unix", "lmdb"]].concat());
    said.exits(0).shows("redis+unix could not keep 10,000,000 sets/s: ").shows(" late, ended").shows("overload");
    said.shows("No rate was kept.");
    for target in ["redis+unix", "lmdb"] {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], "right", "{target}");
        let set = phase(&record, "set", 10_000_000);
        assert!(set["units"].as_u64().unwrap() < 2_000_000 && set["open"]["late"].as_u64().unwrap() > 100, "{target}");
    }
}

#[test]
fn a_store_that_loses_or_changes_values_has_no_rates() {
    for (fault, said) in [("drop&after=600", "found an older value"), ("corrupt&after=600&every=50", "bytes")] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}");
        let rate = ["--rate", "5k,4k", "--requests", "3000", "--writes", "50", &target];
        desk.run(&[&RATED[..], &rate].concat()).exits(4).shows("FAILED: wrong answers").shows(said);
    }
}

#[test]
fn rates_can_be_parts_of_what_the_slowest_does() {
    let desk = Desk::new();
    let said = desk.run(&[&RATED[..], &["--rate", "1%,2%", "--requests", "500", "redis+unix", "ram"]].concat());
    said.exits(0).complains("kvfair: the slowest, redis+unix, does ").complains("/s with 10 clients: ");
    let rates = |target: &str| desk.record(target)["job"]["load"]["rates"].clone();
    assert_eq!(rates("redis+unix").as_array().map(Vec::len), Some(2));
    assert_eq!(rates("redis+unix"), rates("ram"));
}

#[test]
fn records_can_be_inserted_at_a_rate() {
    let desk = Desk::new();
    let insert = ["run", "ycsb-d", "--blocks", "1", "--records", "300", "--requests", "2000", "--rate", "4k"];
    desk.run(&[&insert[..], &["redis", "lmdb", "mariadb+unix"]].concat()).exits(0).shows("every get was right");
    for target in ["redis", "lmdb", "mariadb+unix"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

/// A read whose record is then written is one request: it is answered when the write is.
#[test]
fn what_was_read_is_written_at_a_rate() {
    let desk = Desk::new();
    let run = ["run", "ycsb-f", "--blocks", "1", "--records", "300", "--requests", "1000", "--rate", "2k,4k"];
    let targets = ["redis+unix", "memcached", "lmdb", "mariadb+unix", "cached:redis"];
    desk.run(&[&run[..], &targets].concat()).exits(0).shows("every get was right");
    for target in targets {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], "right", "{target}");
        for rate in [2_000, 4_000] {
            let run = phase(&record, "run", rate);
            let open: Open = serde_json::from_value(run["open"].clone()).expect("a rate's own");
            assert_eq!(
                (run["units"].as_u64(), open.response_ns.times().unwrap().count()),
                (Some(1000), 1000),
                "{target}"
            );
            assert!((1_400..1_600).contains(&run["ops"].as_u64().unwrap()), "{target}: half of them write as well");
        }
    }
    let desk = Desk::new();
    let faulty = ["--rate", "4k", "faulty?fault=drop&after=1100"];
    desk.run(&[&run[..8], &faulty].concat()).exits(4).shows("found an older value");
}

/// Nobody waits for ever: what took 10 s is counted and said, whatever else the rate was.
#[test]
fn answers_that_come_too_late_for_their_users_are_counted_and_said() {
    let desk = Desk::new();
    let rate = ["--rate", "2k,3k", "--requests", "2000", "redis+unix"];
    desk.run(&[&RATED[..], &rate].concat()).exits(0);
    let mut record: Record = serde_json::from_value(desk.record("redis+unix")).expect("a record");
    let is_it = |open: &&mut Open| open.rate == 2_000;
    let open = record.phases.iter_mut().filter_map(|phase| phase.open.as_mut()).find(is_it).expect("a rate");
    let mut response_ns = open.response_ns.times().unwrap();
    response_ns.record(12_000_000_000);
    open.response_ns = response_ns.into();
    let shown = |record: &Record| {
        let line = serde_json::to_string(record).expect("a record");
        desk.run(&["show", desk.file("late.jsonl", line + "\n"), "--wide"])
    };
    let said = shown(&record);
    said.shows("warning (timeout): redis+unix at 2,000/s: 1 of 2,001 requests (0.05 %) took 10 s or longer");
    said.shows("requests that were answered after 10 s or later");
    assert!(!said.out.contains("at 3,000/s: "), "{}", said.out);
}

#[test]
fn the_highest_rate_that_keeps_a_promise_is_found() {
    let desk = Desk::new();
    let find = ["find-max", "mixed", "--records", "300", "--step", "1", "--slo", "p50:30ms", "--html", "page.html"];
    let said = desk.run(&[&find[..], &["redis+unix", "faulty?fault=corrupt&after=2000"]].concat());
    // Wrong answers are no rate.
    said.exits(4).shows("p50 at most 30 ms").shows("/s (fails at ").shows("With p50 at most 30 ms: redis+unix ");
    let kept: Vec<Value> =
        desk.records().into_iter().filter(|record| record["target"]["label"] == "redis+unix").collect();
    assert!(kept.len() >= 5, "{} steps", kept.len());
    assert!(kept.iter().all(|record| record["verdict"]["kind"] == "right"));
    // Its file tells the same, and what each trial was.
    let again = desk.run(&["show"]);
    again.exits(4);
    assert_eq!(again.out, said.out);
    desk.run(&["show", "--csv"])
        .shows("target,rate_per_s,fails_at_per_s,response_us,closed_per_s")
        .shows("redis+unix,");
    desk.run(&["show", "--all"]).shows("redis+unix");
    desk.run(&["show", "--html", "again.html"]);
    let page = std::fs::read_to_string(desk.home().join("again.html")).expect("a page of the file");
    assert!(page.contains("<h1>With p50 at most 30 ms: redis+unix "), "{page}");
    let page = std::fs::read_to_string(desk.home().join("page.html")).expect("a page");
    let found = ["<h1>With p50 at most 30 ms: redis+unix ", "/s (fails at ", "FAILED: wrong answers from faulty"];
    for words in
        [&found[..], &["<caption>the highest rate that keeps the promise: p50 at most 30 ms</caption>"]].concat()
    {
        assert!(page.contains(words), "{words}\n{page}");
    }
}

/// Each step takes a second at least.
#[test]
fn a_search_ends_with_its_time() {
    let desk = Desk::new();
    let said = desk.run(&["find-max", "mixed", "redis+unix", "--records", "300", "--step", "1", "--budget", "3s"]);
    said.exits(6).shows("redis+unix unclear: the time was over after ").shows("a longer --budget");
    said.shows("The time was over: no result for redis+unix.");
    let (_, rest) = said.out.split_once("the time was over after ").expect("it is told");
    let steps: u32 = rest.split(' ').next().and_then(|steps| steps.parse().ok()).expect("a number");
    assert!(steps <= 3, "{}", said.out);
}
