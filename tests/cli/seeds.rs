//! A careful run has made data of several seeds in turn, and claims only what holds for each of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::desk::Desk;

const CAREFUL: &[&str] =
    &["run", "fans", "faulty?name=one", "faulty?name=other", "--profiles", "60", "--effort", "careful"];

fn seed(record: &Value) -> u64 {
    record["job"]["data"]["recipe"]["seed"].as_u64().expect("a seed")
}

/// So many blocks are the least that a careful run of data of three seeds claims anything from.
const BLOCKS: u64 = 12;

/// The records of a careful run that has at least this block. It gets more time where the machine is slow.
fn careful_until(desk: &Desk, least: u64, more: &[&str]) -> Vec<Value> {
    let budgets = [("4s", "4.jsonl"), ("40s", "40.jsonl"), ("200s", "200.jsonl")];
    let records = budgets.into_iter().find_map(|(budget, out)| {
        desk.run(&[CAREFUL, &["--budget", budget, "--output", out], more].concat());
        let records = crate::common::desk::records_in(&desk.home().join(out));
        (records.iter().filter_map(block).max() >= Some(least)).then_some(records)
    });
    records.unwrap_or_else(|| panic!("block {least} did not begin within 200 s"))
}

/// A careful run of two targets that are the same. Blocks that it had no time for are copies of those before.
fn careful(desk: &Desk) -> Vec<Value> {
    let mut records = careful_until(desk, 4, &[]);
    let last = records.iter().filter_map(block).max().expect("blocks") - 1;
    records.retain(|record| block(record) <= Some(last));
    for copy in last + 1..=BLOCKS {
        let of_seed = records.iter().filter(|record| block(record) == Some(1 + (copy - 1) % 3)).cloned();
        let copies = of_seed.map(|mut record| {
            record["block"] = copy.into();
            record
        });
        let copies: Vec<Value> = copies.collect();
        records.extend(copies);
    }
    written(desk, "out.jsonl", &records);
    records
}

fn block(record: &Value) -> Option<u64> {
    record["block"].as_u64()
}

#[test]
fn blocks_have_the_data_of_each_seed_in_turn_and_each_must_agree_with_a_claim() {
    let desk = Desk::new();
    let records = careful(&desk);
    let mut digests: BTreeMap<u64, Value> = BTreeMap::new();
    for record in &records {
        assert_eq!(seed(record), record["block"].as_u64().expect("a number") % 3);
        assert_eq!(record["run"]["seeds"]["data"], json!([0, 1, 2]));
        assert!(
            record["verdict"]["kind"] == "right",
            "each seed has an expected state of its own: {}",
            record["verdict"]
        );
        let digest = &record["stream"]["sha256"];
        assert_eq!(digests.entry(seed(record)).or_insert_with(|| digest.clone()), digest);
    }
    let distinct: std::collections::BTreeSet<String> = digests.values().map(Value::to_string).collect();
    assert_eq!(distinct.len(), 3, "{digests:?}");
    desk.run(&["show", "out.jsonl", "--wide"])
        .shows("blocks of 3 data sets")
        .shows("seeds 0, 1, 2 in turn")
        .shows("the answer to the data of seed 0");
    // The same seed with other data is no part of that run.
    let mut changed = records.clone();
    changed.last_mut().expect("records")["stream"]["sha256"] = json!("0".repeat(64));
    desk.run(&["show", written(&desk, "changed.jsonl", &changed)]).exits(1).complains("another data");
    what_one_seed_denies_is_not_claimed(&desk, &records);
}

/// The other one takes half as long again, as results files tell it; then less with the data of one seed.
fn what_one_seed_denies_is_not_claimed(desk: &Desk, records: &[Value]) {
    let told = |name: &'static str, factors: [f64; 3]| {
        let mut records = records.to_vec();
        for record in &mut records {
            let factor = match record["target"]["label"] == "other" {
                true => factors[seed(record) as usize],
                false => 1.0,
            };
            record["noise"] = quiet();
            let block = record["block"].as_u64().expect("a number") as f64;
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase["took_s"] = json!(factor * (1.0 + block / 1e4));
            }
        }
        desk.run(&["show", "--wide", written(desk, name, &records)])
    };
    told("all.jsonl", [1.5, 1.4, 1.6]).exits(0).shows(" is faster than other, which takes 1.5");
    let said = told("some.jsonl", [1.5, 0.9, 1.6]);
    said.exits(0).shows("Whether one or other is faster depends on the data");
    assert!(!said.out.contains("is faster than"), "{}", said.out);
}

fn written<'a>(desk: &Desk, name: &'a str, records: &[Value]) -> &'a str {
    desk.file(name, records.iter().map(|record| format!("{record}\n")).collect::<String>())
}

/// A machine that did nothing besides: no block is discarded.
pub fn quiet() -> Value {
    let nothing = ["foreign_share", "kernel_share", "unclaimed_share", "steal_share", "server_delay_share"];
    let mut noise: BTreeMap<&str, Value> = nothing.map(|name| (name, Value::Null)).into();
    noise.extend([("client_delay_share", Value::Null), ("disk_sync_ns", Value::Null)]);
    noise.extend([("seen_s", json!(1.0)), ("cpus", json!(2)), ("processor_probe_ns", json!(1_000_000))]);
    json!(noise)
}

#[test]
fn a_seed_that_was_asked_for_is_kept() {
    let desk = Desk::new();
    let records = careful_until(&desk, 1, &["--seed", "5"]);
    assert!(records.iter().all(|record| seed(record) == 5 && record["run"]["seeds"]["data"].is_null()));
}

/// Who leaves out the reference's second time is told what is not known then.
#[test]
fn a_reference_that_is_not_run_twice_is_warned_of() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "--messages", "60", "--blocks", "4", "lmdb", "sqlite"];
    desk.run(&[&run[..], &["--no-aa"]].concat());
    let mut records = desk.records();
    assert!(records.len() >= 8 && records.iter().all(|record| record["aa_control"] == false));
    records.iter_mut().for_each(|record| record["noise"] = quiet());
    let said = desk.run(&["show", written(&desk, "quiet.jsonl", &records), "--wide"]);
    said.exits(0).shows("warning (no-aa): no target was run twice").shows("No claim: no store was run twice");
    assert!(!said.out.contains("same store twice"), "{}", said.out);
}
