//! Requests at a rate, on engines in the process, client libraries and servers; and the highest rate that keeps a
//! promise.

use serde_json::Value;

use crate::desk::Desk;

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
        ["ram", "null", "lmdb", "redis", "memcached+unix?mouth=binary", "mariadb+unix", "cached:redis?memory=1MB"];
    let rates = ["--rate", "500,2k", "--requests", "1000", "--clients", "7", "--writes", "20"];
    let said = desk.run(&[&RATED[..], &rates, &targets].concat());
    said.exits(0)
        .shows("response of a request, from when it was due to its answer: median")
        .shows("7 clients, 500, 2,000/s independent of each other")
        .shows("300 records hold some client's");
    for target in targets {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], if target == "null" { "control" } else { "right" }, "{target}");
        for (rate, seconds) in [(500, 2.0), (2_000, 0.5)] {
            let run = phase(&record, "run", rate);
            assert_eq!((run["units"].as_u64(), run["ops"].as_u64()), (Some(1000), Some(1000)), "{target}");
            let (took_s, due_s) = (run["took_s"].as_f64().unwrap(), run["open"]["due_s"].as_f64().unwrap());
            assert!(
                due_s > seconds * 0.85 && due_s < seconds * 1.15 && took_s > due_s - 0.05,
                "{target}: {took_s} {due_s}"
            );
            assert!(run["open"]["late"].is_null(), "{target}");
        }
    }
    let due = |target: &str| phase(&desk.record(target), "run", 500)["open"]["due_s"].as_f64();
    assert!(targets.iter().all(|target| due(target) == due("ram")), "the same moments for all");
    let rows: Value = serde_json::from_str(&desk.run(&["show", "--json"]).out).expect("JSON");
    for row in rows.as_array().expect("rows") {
        let (response, lag) = (&row["rated"]["response_ns_p50"], &row["rated"]["lag_ns_p50"]);
        assert!(response.as_u64().unwrap() >= lag.as_u64().unwrap() && row["rated"]["kept"] == true, "{row}");
    }
    desk.run(&["show", "--svg", "rates.svg", "--histograms", "full"]).exits(0);
    let drawn = std::fs::read_to_string(desk.home().join("rates.svg")).expect("a picture");
    assert!(drawn.contains("response of a request, p99 in us") && drawn.contains("requests a second"));
    for kind in ["response", "service", "lag"] {
        let text = std::fs::read_to_string(desk.home().join(format!("full/lmdb.run.7.500.{kind}.hgrm")));
        assert!(text.expect("a histogram").contains("Total count    =         1000]"), "{kind}");
    }
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
        assert!(
            set["units"].as_u64().unwrap() < 2_000_000 && set["open"]["late"].as_u64().unwrap() > 1_000,
            "{target}"
        );
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
    desk.run(&[&insert[..], &["redis", "lmdb", "mariadb+unix"]].concat()).exits(0).shows("hold some client's");
    desk.records()
        .iter()
        .for_each(|record| assert_eq!(record["verdict"]["kind"], "right", "{}", record["target"]["label"]));
}

#[test]
fn the_highest_rate_that_keeps_a_promise_is_found() {
    let desk = Desk::new();
    let find = ["find-max", "mixed", "--records", "300", "--step", "1", "--slo", "p50:400ms"];
    let said = desk.run(&[&find[..], &["redis+unix", "faulty?fault=corrupt&after=2000"]].concat());
    // Wrong answers are no rate.
    said.exits(4).shows("p50 at most 400 ms").shows("/s (fails at ").shows("With p50 at most 400 ms: redis+unix ");
    let kept: Vec<Value> =
        desk.records().into_iter().filter(|record| record["target"]["label"] == "redis+unix").collect();
    assert!(kept.len() >= 5, "{} steps", kept.len());
    assert!(kept.iter().all(|record| record["verdict"]["kind"] == "right"));
}
