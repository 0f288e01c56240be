//! A run of one job at several sizes: how times grow, and whose order changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cli::seeds::quiet;
use crate::common::desk::{Desk, one_line};

const SIZES: &[&str] = &["run", "fans", "lmdb", "redis+unix", "null", "--profiles", "60,240"];

fn units(record: &Value) -> u64 {
    record["job"]["units"].as_u64().expect("a size")
}

#[test]
fn each_block_has_all_sizes_and_one_table_tells_how_times_grow() {
    let desk = Desk::new();
    let said = desk.run(&[SIZES, &["--blocks", "2"]].concat());
    said.exits(0).shows("fans, 60, 240 profiles").shows("grows with").shows("2 blocks, no claim");
    let records = desk.records();
    assert_eq!(records.len(), 2 * 2 * 3);
    for block in [1, 2] {
        let here = records.iter().filter(|record| record["block"] == block);
        let seen: BTreeSet<(String, u64)> =
            here.map(|record| (record["target"]["label"].to_string(), units(record))).collect();
        assert_eq!(seen.len(), 6, "each target at each size");
    }
    assert!(records.iter().all(|record| record["stream"]["units"] == record["job"]["units"]));
    assert!(records.iter().all(|record| record["run"]["sizes"] == json!([60, 240])));
    assert_eq!(desk.run(&["show"]).exits(0).out, said.out, "the same from the file");
    let rows = desk.rows();
    let lmdb = |size: u64| rows.iter().find(|row| row["target"] == "lmdb" && row["units"] == size).expect("a row");
    let took_s = |size: u64| lmdb(size)["took_s"].as_f64().expect("seconds");
    let exponent = (took_s(240) / took_s(60)).ln() / 4_f64.ln();
    assert!((lmdb(60)["growth_exponent"].as_f64().expect("a number") - exponent).abs() < 1e-9, "{:?}", lmdb(60));
    let csv = desk.run(&["show", "--csv"]).exits(0).out.clone();
    assert!(csv.starts_with("target,store,") && csv.lines().count() == 1 + 6, "{csv}");
    let csv = desk.run(&["show", "--all", "--csv"]).exits(0).out.clone();
    assert!(csv.starts_with("block,position,") && csv.lines().count() == 1 + 12, "{csv}");
    desk.run(&["show", "--all"]).exits(0).shows("target block place size seconds");
    desk.run(&["show", "--markdown"]).exits(0).shows("| target | 60 | vs best | 240 | vs best | grows with |");
    desk.run(&["show", "--wide"]).exits(0).shows("60 profiles:").shows("240 profiles:");
    desk.run(&["show", "--svg", "chart.svg"]).exits(1).complains("several sizes");
}

/// The other one takes half as long again at the smaller size and less at the larger one, as a results file tells it.
#[test]
fn whose_order_changes_between_sizes_is_said() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "faulty?name=one", "faulty?name=other", "--messages", "60,120", "--blocks", "6"];
    desk.run(&[&run[..], &["--output", "out.jsonl"]].concat());
    let records = crate::common::desk::records_in(&desk.home().join("out.jsonl"));
    let aa_controls: BTreeSet<u64> = records.iter().filter(|record| record["aa_control"] == true).map(units).collect();
    assert_eq!(aa_controls, [60, 120].into(), "each size has an A/A control of its own");
    let told = |name: &'static str, at_60: f64, at_120: f64| {
        let mut records = records.clone();
        for record in &mut records {
            let of_other = if units(record) == 60 { at_60 } else { at_120 };
            let factor = if record["target"]["label"] == "other" { of_other } else { 1.0 };
            record["noise"] = quiet();
            let size = units(record) as f64;
            let block = record["block"].as_u64().expect("a number") as f64;
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase["took_s"] = json!(size * factor * (1.0 + block / 1e4));
            }
        }
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        one_line(&desk.run(&["show", "--wide", desk.file(name, lines)]).out)
    };
    let words = told("crossed.jsonl", 1.5, 0.7);
    assert!(words.contains("other is faster than one at 120 messages, and slower at 60"), "{words}");
    let words = told("same.jsonl", 3.0, 1.5);
    assert!(words.contains("By the medians the order of targets is the same from 60 to 120 messages"), "{words}");
    assert!(
        words.contains(
            "The gap of other to the best shrinks with size: 3.00x [3.00-3.00] at 60, 1.50x [1.50-1.50] at 120."
        ),
        "{words}"
    );
}

#[test]
fn a_list_of_sizes_is_a_mistake_where_it_makes_no_sense() {
    let desk = Desk::with_only(&[]);
    let run = |more: &[&str]| desk.run(more);
    run(&["run", "fans", "lmdb", "--profiles", "60,60"]).exits(2).complains("--profiles: 60 is named twice");
    run(&["run", "fans", "lmdb", "--profiles", "60,0"])
        .exits(2)
        .complains("'0' is no whole number from 1 to 10 billion, as in 20000 or 20k");
    run(&["run", "fans", "lmdb", "--profiles", "60,240", "--keep", "kept"])
        .exits(2)
        .complains("takes one of --profiles");
    run(&["run", "--exec", "true", "lmdb", "--profiles", "60,240"])
        .exits(2)
        .complains("--profiles is an option of jobs");
    run(&["find-max", "mixed", "lmdb", "--slo", "p99:1ms", "--profiles", "60,240"]).exits(2).complains("--profiles");
    let sides = ["--base", "lmdb", "--head", "sqlite", "--profiles", "60,240"];
    run(&[&["compare", "fans"], &sides[..]].concat()).exits(2).complains("compare takes one size");
    run(&["data", "fans", "--profiles", "60,240"]).exits(2).complains("--profiles takes one number here");
    run(&["run", "fans", "lmdb", "--profiles", "60,240", "--blocks", "1", "--list"])
        .exits(0)
        .shows("fans of 240 on lmdb");
    desk.run(&["run", "fans", "lmdb", "--profiles", "60,240", "--blocks", "1", "--output", "a.jsonl"]).exits(0);
    desk.run(&["compare", "a.jsonl", "a.jsonl"]).exits(1).complains("several sizes is several comparisons");
}
