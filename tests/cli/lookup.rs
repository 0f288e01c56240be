//! `lookup`: the same scores from every store, by each way, and what is refused or wrong.

use serde_json::Value;

use crate::answers::expected;
use crate::desk::{Desk, Said};

fn run(desk: &Desk, arguments: &[&str], targets: &[&str]) -> Said {
    desk.run(&[&["run", "lookup", "--blocks", "1"], arguments, targets].concat())
}

/// What an independent program says of the data that was made for these arguments.
fn told(desk: &Desk, messages: &str, order: &str) -> Vec<(String, String)> {
    let data = desk.run(&["data", "lookup", "--messages", messages]);
    let file = desk.file("data.txt", &data.exits(0).out);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/lookup.py");
    let ran = std::process::Command::new("python3")
        .args([program, file, order])
        .current_dir(desk.home())
        .output()
        .expect("python3");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let out = String::from_utf8(ran.stdout).expect("UTF-8");
    out.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, told)| (name.to_string(), told.to_string()))
        .collect()
}

#[test]
fn every_store_gives_the_same_scores_one_by_one_and_many_at_once() {
    let targets = expected();
    let targets: Vec<&str> = targets.iter().map(String::as_str).chain(["cached:redis", "null"]).collect();
    let desk = Desk::new();
    run(&desk, &["--messages", "60", "--via", "portable,batch"], &targets).exits(0);
    let records = desk.records();
    assert_eq!(records.len(), 2 * targets.len());
    let told = told(&desk, "60", "2");
    let of = |name: &str| told.iter().find(|(told, _)| told == name).expect("it is told").1.clone();
    for record in &records {
        let label = &record["target"]["label"];
        let verdict = if record["target"]["store"] == "null" { "baseline" } else { "right" };
        assert_eq!(record["verdict"]["kind"], verdict, "{label}: {}", record["outcome"]);
        if verdict == "right" {
            assert_eq!(record["verdict"]["answer"]["sha256 scores"], of("scores"), "{label}");
        }
        let model = &record["stream"]["model"];
        for name in ["lookups", "found", "entries"] {
            assert_eq!(model[name].to_string(), of(name), "{label}: {name}");
        }
        assert_eq!(model["scored"], 6, "{label}");
        let phases = record["phases"].as_array().expect("phases");
        let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
        assert_eq!(names, ["load", "load", "run", "final_flush"], "{label}");
        let ops = if record["job"]["via"] == "batch" { &model["scored"] } else { &model["lookups"] };
        assert_eq!((&phases[2]["ops"], &phases[2]["units"]), (ops, &model["scored"]), "{label}");
    }
}

/// Longer runs, characters, several clients and data of one's own.
#[test]
fn scores_follow_order_unit_and_data() {
    let desk = Desk::new();
    for order in ["1", "3", "5"] {
        run(&desk, &["--messages", "200", "--order", order, "--clients", "3"], &["lmdb", "redis"]).exits(0);
        let told = told(&desk, "200", order);
        for target in ["lmdb", "redis"] {
            assert_eq!(desk.record(target)["verdict"]["answer"]["sha256 scores"], *told[0].1, "{order}: {target}");
        }
    }
    run(&desk, &["--messages", "100", "--unit", "char", "--order", "4"], &["ram", "sqlite"]).exits(0);
    desk.file("mine.jsonl", "{\"text\": \"Tea in the rain\"}\n{\"text\": \"tea, in rain\"}\n{\"text\": \"!\"}\n");
    let said = run(&desk, &["--input", "mine.jsonl", "--via", "batch"], &["ram", "lmdb"]);
    said.exits(0).shows("lookups/s").shows("memory/entry").shows("disk/entry");
    let model = &desk.record("lmdb batch")["stream"]["model"];
    // Of "tea in the rain" the other message has tea, in, rain and "tea in".
    assert_eq!((&model["lookups"], &model["found"], &model["entries"]), (&7.into(), &4.into(), &5.into()));
}

#[test]
fn what_is_told_of_lookups_stands_in_every_form() {
    let desk = Desk::new();
    run(&desk, &["--messages", "300"], &["lmdb", "redis+unix", "ram", "null"]).exits(0).shows("us/lookup");
    let said = desk.run(&["show", "--wide"]);
    said.exits(0).shows("filled in").shows("entries").shows("found");
    desk.run(&["show", "--json"]).exits(0);
    for row in desk.rows() {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"));
        assert!(number("lookups_per_s") > 0.0 && number("fill_s") >= 0.0 && number("latency_us_p50") > 0.0);
        assert!(number("memory_bytes_per_entry") > 0.0);
        assert_eq!(row["disk_bytes_per_entry"].is_null(), row["disk_bytes"].is_null());
    }
}

/// A store that answers one question otherwise than it should.
#[test]
fn a_lookup_that_finds_another_count_fails_the_trial() {
    for (fault, ways) in [
        ("corrupt&after=100&every=50", &["portable", "batch"][..]),
        ("drop&after=100", &["portable", "batch"]),
        ("evict&after=100&every=40", &["portable", "batch"]),
        ("stray&after=400&every=40", &["portable"]),
    ] {
        for via in ways {
            let desk = Desk::new();
            let target = format!("faulty?fault={fault}&name=faulty");
            run(&desk, &["--messages", "400", "--via", via], &["ram", &target]).exits(4);
            let label = if *via == "batch" { "faulty batch" } else { "faulty" };
            let verdict = &desk.record(label)["verdict"];
            assert_eq!(verdict["kind"], "wrong", "{fault} {via}");
            let of = |name: &str| verdict["first"][name].as_str().map(str::to_string);
            assert!(of("key").is_some() && of("expected") != of("found"), "{fault} {via}: {verdict}");
        }
    }
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let desk = Desk::new();
    run(&desk, &["--order", "9"], &["ram"]).exits(2).complains("9 is not in 1..=5");
    run(&desk, &["--via", "native"], &["ram"]).exits(2).complains("the job lookup has no way 'native'");
    run(&desk, &["--verify", "sample"], &["ram"]).exits(2).complains("compares every answer");
    run(&desk, &["--messages", "1"], &["ram"]).exits(1).complains("nothing to count in its 1 messages");
    desk.file("one.txt", "!\ntea\n");
    run(&desk, &["--input", "one.txt"], &["ram"]).exits(1).complains("nothing in it to ask a store");
    let rows: Vec<Value> = desk.records();
    assert!(rows.is_empty(), "nothing was run");
}
