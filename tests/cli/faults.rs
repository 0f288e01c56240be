//! The store that lies, drops, stalls and dies on purpose: every one of its faults is noticed, and told as what it is.

use crate::common::desk::{Desk, Said};

fn run(desk: &Desk, fault: &str, more: &[&str]) -> Said {
    let target = format!("faulty?fault={fault}&name=faulty");
    let base = ["run", "fans", "--profiles", "60", "--blocks", "2", "--timeout", "1s", "ram", &target];
    desk.run(&[&base, more].concat())
}

#[test]
fn wrong_answers_are_failed_with_the_first_key_and_exit_code_4() {
    for fault in [
        "drop&after=100",
        "corrupt&after=100&every=50",
        "stale&after=100",
        "extra&every=7",
        "corrupt&clients=3",
        "evict&after=200&every=100",
        "stray&after=100&every=40",
    ] {
        let (fault, clients) = fault.split_once("&clients=").unwrap_or((fault, "1"));
        let desk = Desk::new();
        let said = run(&desk, fault, &["--clients", clients]);
        said.exits(4).shows("faulty FAILED: wrong answers (").shows("first \"").shows("faulty gave wrong answers");
        let record = desk.record("faulty");
        let verdict = &record["verdict"];
        assert_eq!(verdict["kind"], "wrong", "{fault}");
        for part in ["key", "expected", "found"] {
            assert!(verdict["first"][part].as_str().is_some_and(|text| !text.is_empty()), "{fault}: {verdict}");
        }
        assert_ne!(verdict["first"]["expected"], verdict["first"]["found"], "{fault}");
        let of = |target: &str| desk.records().iter().filter(|record| record["target"]["label"] == target).count();
        assert_eq!((of("ram"), of("faulty")), (2, 1), "who was wrong is not run again");
        desk.run(&["show", "--json"]).exits(4);
        let rows = desk.rows();
        let row = rows.iter().find(|row| row["target"] == "faulty").expect("a row");
        assert!(row["took_s"].is_null() && row["ops"].is_null(), "a wrong answer is no number: {row}");
    }
}

/// What was expected is what the job's data says, told by a program that knows nothing of kvfair's records.
#[test]
fn the_first_wrong_key_is_told_with_what_it_should_have_held() {
    let desk = Desk::new();
    desk.file("two.tsv", "a\tTea\tRain\nb\tTea\n");
    let said = desk.run(&["run", "fans", "--input", "two.tsv", "--blocks", "1", "faulty?fault=drop&after=5"]);
    said.exits(4).shows("(1 key); first \"Tea\": expected {\"fans\":2,\"also\":{\"Rain\":1}}, found {\"fans\":1,");
    let said = desk.run(&["run", "fans", "--input", "two.tsv", "--blocks", "1", "faulty?fault=extra"]);
    said.exits(4).shows("first \"(count of records)\": expected 2, found 5");
}

#[test]
fn counters_that_are_wrong_are_found_too() {
    let desk = Desk::new();
    for fault in ["drop", "corrupt", "extra"] {
        let target = format!("faulty?fault={fault}&after=40&name={fault}");
        desk.run(&["run", "ngrams", "--messages", "30", "--blocks", "1", &target]).exits(4);
        assert_eq!(desk.record(fault)["verdict"]["kind"], "wrong", "{fault}");
    }
}

/// One write in a hundred thousand.
#[test]
fn a_store_that_rarely_loses_a_write_is_found() {
    let desk = Desk::new();
    let target = "faulty?fault=drop&every=100000&name=rare";
    desk.run(&["run", "ngrams", "--messages", "8000", "--blocks", "1", target]).exits(4).shows("(1 key); first");
}

/// Slow is not wrong.
#[test]
fn a_store_that_is_slow_is_right() {
    let desk = Desk::new();
    desk.run(&["run", "ngrams", "--messages", "50", "--blocks", "1", "faulty?fault=slow"]).exits(0);
}

#[test]
fn a_store_without_a_fault_is_right() {
    let desk = Desk::new();
    run(&desk, "none", &[]).exits(0);
    assert_eq!(desk.record("faulty")["verdict"]["kind"], "right");
}

#[test]
fn a_store_that_stalls_is_cut_off() {
    let desk = Desk::new();
    run(&desk, "stall&after=200", &[]).exits(1).shows("faulty > 1 s, ").shows(" % done");
    let outcome = &desk.record("faulty")["outcome"];
    assert!(outcome["done_share"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{outcome}");
    assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
}

#[test]
fn a_store_that_stalls_while_its_answers_are_read_back() {
    let desk = Desk::new();
    run(&desk, "none", &[]).exits(0);
    let ops = desk.record("faulty")["stream"]["ops"].as_u64().expect("a count");
    run(&desk, &format!("stall&after={ops}"), &[]).exits(1);
    assert_eq!(desk.reason("faulty"), "failed: stopped answering while its answers were read back");
}

#[test]
fn a_store_that_breaks_is_a_failed_row() {
    let faults = [
        ("die&after=100", "the trial's process died: killed by SIGABRT"),
        ("refuse&after=100", "refused: faulty: refuses op 101"),
        ("garble&after=100", "garbled answer: faulty: garbles op 101"),
    ];
    for (fault, words) in faults {
        let desk = Desk::new();
        run(&desk, fault, &[]).exits(1).shows("faulty failed: ").shows(words);
        let reason = desk.reason("faulty");
        assert!(reason.contains(words), "{fault}: {reason}");
        assert_eq!(desk.record("faulty")["verdict"]["kind"], "not_reached", "{fault}");
        assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
    }
}

/// With several clients one that fails must not leave the others waiting for ever.
#[test]
fn one_client_that_fails_stops_all() {
    let desk = Desk::new();
    run(&desk, "refuse&after=500", &["--clients", "8"]).exits(1);
    assert!(desk.reason("faulty").contains("refuses op"), "{}", desk.reason("faulty"));
}
