//! What grows out of proportion is found where it was planted, real stores are not blamed, and the budget is kept.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::page::lines;
use crate::common::desk::{Desk, Said, Started, records_in, wait_for};

/// All growths of one command: it ends with 6 where one of them is unclear.
fn grown(said: &Said) -> Vec<Value> {
    let json: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no JSON:\n{}{}", said.out, said.err));
    let grown = json["rows"].as_array().expect("rows").clone();
    let is_unclear = grown.iter().any(|one| one["verdict"]["unclear"].is_string());
    said.exits(if is_unclear { 6 } else { 0 });
    grown
}

/// "faulty get batch", of each that is out of proportion.
fn found(grown: &[Value]) -> Vec<String> {
    let is_out = |one: &&Value| one["verdict"] == "out_of_proportion";
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let name = |one: &Value| [&one["target"], &one["part"], &one["over"]].map(text).join(" ");
    grown.iter().filter(is_out).map(name).collect()
}

/// One trial has measured what many keys in one question cost: repeated in the file, its CPU decides.
#[test]
fn a_planted_fault_is_found_by_the_cpu_of_its_trial() {
    let desk = Desk::new();
    let growth = ["growth", "faulty?fault=many-square&name=bad", "--budget", "100s", "--output", "out.jsonl"];
    let started = Started::new(desk.kvfair(&growth));
    let has_batches = |record: &Value| record["job"]["load"]["batches"].as_array().is_some_and(|all| all.len() > 1);
    let pilot = wait_for("a trial of many keys at once", || {
        let text = std::fs::read_to_string(desk.home().join("out.jsonl")).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = &text[..text.rfind('\n')? + 1];
        let mut records = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        records.find(has_batches)
    });
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    let repeated = (0..=6).map(|block| {
        let mut record = pilot.clone();
        record["block"] = block.into();
        // What the machine did meanwhile is no part of the CPU.
        record.as_object_mut().expect("a record").remove("noise");
        for phase in record["phases"].as_array_mut().expect("phases") {
            phase.as_object_mut().expect("a phase").remove("noise");
        }
        record
    });
    desk.file("repeated.jsonl", lines(&repeated.collect::<Vec<_>>()));
    let grown = desk.json(&["repeated.jsonl"])["rows"].as_array().expect("growths").clone();
    assert!(found(&grown).contains(&"bad get batch".to_string()), "{grown:?}");
    let get = grown.iter().find(|one| one["part"] == "get" && one["over"] == "batch").expect("of a get-many");
    // Each of the n keys costs n times as much.
    let exponent = get["fit"]["exponent"].as_f64().expect("an exponent");
    assert!((1.2..2.5).contains(&exponent), "{get}");
}

#[test]
#[ignore = "takes minutes on a quiet machine and up to 17 on a noisy one: cargo test --test cli growth -- --ignored"]
fn planted_faults_are_found_each_where_it_is_within_the_budget() {
    let planted = [
        ("many-square", &["bad get batch"][..]),
        ("value-square", &["bad set value_bytes"]),
        ("keys-square", &["bad get keys"]),
        ("clients-square", &["bad set clients", "bad get clients"]),
    ];
    for (fault, expected) in planted {
        let desk = Desk::new();
        let grown = measured(&desk, &format!("faulty?fault={fault}&name=bad"), expected);
        assert_eq!(found(&grown), expected, "{grown:?}");
        let fits = grown.iter().filter(|one| one["verdict"] == "out_of_proportion").map(|one| &one["fit"]);
        for fit in fits {
            assert!(fit["low"].as_f64() > Some(1.2) && fit["exponent"].as_f64() < Some(2.2), "{fit}");
        }
    }
}

/// A machine with much else to do has few repetitions in a short budget: then a longer one.
fn measured(desk: &Desk, target: &str, expected: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    for budget_s in [20, 60, 180] {
        let (budget, file) = (format!("{budget_s}s"), format!("{budget_s}.jsonl"));
        let said = desk.run(&["growth", target, "--budget", &budget, "--seed", "1", "--json", "--output", &file]);
        assert!(!records_in(&desk.home().join(&file)).is_empty(), "what was measured is kept");
        all = grown(&said);
        let found = found(&all);
        assert!(found.iter().all(|one| expected.contains(&one.as_str())), "{}", said.out);
        if found.len() == expected.len() {
            break;
        }
    }
    all
}

/// Its pilots alone take longer.
#[test]
fn a_budget_that_tells_nothing_is_refused_with_one_that_would() {
    let desk = Desk::new();
    let said = desk.run(&["growth", "lmdb", "--budget", "200ms"]);
    said.exits(2).complains("the budget has no time for 4 repetitions").complains("hint: --budget ");
    assert_eq!(said.out, "", "nothing is told of pilots");
    // A request of each pilot of the second store takes 7 s. Twice the time that the first store needs now is too short
    // for that, and nothing of the first one is measured.
    let (_, needed) = said.err.split_once("hint: --budget ").expect("a hint");
    let needed_s: u32 = needed.split_once('s').and_then(|(seconds, _)| seconds.parse().ok()).expect("seconds");
    let budget = format!("{}s", (2 * needed_s).min(200));
    let said = desk.run(&["growth", "lmdb", "faulty?fault=late&after=5&name=slow", "--budget", &budget]);
    said.exits(2).complains("slow: the budget has no time for 4 repetitions").complains("hint: --budget ");
    assert_eq!(said.out, "", "nothing is told of pilots");
    assert!(desk.records().iter().all(|record| record["block"] == 0), "only pilots were run");
    let advise = desk.run(&["advise", "fans", "redis", "--levers", "via", "--budget", "1s"]);
    advise.exits(2).complains("--budget: 1 s have no time for 4 blocks of one lever: a trial takes ");
    assert!(advise.err.contains("0s would do") && advise.out.is_empty(), "{}{}", advise.out, advise.err);
}

#[test]
fn what_cannot_be_asked_is_refused_or_named() {
    let desk = Desk::new();
    desk.run(&["growth"]).exits(2).complains("<TARGETS>");
    desk.run(&["growth", "redis://localhost:1"]).exits(2).complains("only stores that are started here");
    desk.run(&["growth", "reddis"]).exits(2).complains("did you mean `redis`?");
    desk.run(&["growth", "redis?program=/nowhere/redis-server"])
        .exits(2)
        .complains("/nowhere/redis-server is no program");
    assert!(!desk.home().join("kvfair-results").exists(), "nothing was run");
}
