//! What a table and its sentences say agrees with the records, as a program of its own computes it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::forms::results;
use crate::cli::reproduce::as_if_of;
use crate::common::desk::{Desk, Said, Started, records_in};
use crate::common::needs::{Need, needs};

/// What `tests/sentences.py` says of a results file and of a text.
fn judged(desk: &Desk, records: &str, shown: &str) -> Said {
    program(desk, shown, &[records, "shown.txt"])
}

/// The same of what `kvfair reproduce` shows of a post.
fn judged_post(desk: &Desk, records: &str, shown: &str) -> Said {
    program(desk, shown, &["--posts", "shown.txt", records])
}

/// What `show` prints of these records, whole and in brief, agrees with them.
fn agrees(desk: &Desk, records: &str) {
    let mut shown = desk.run(&["show", "--wide", records]).out.clone();
    // Of several round-trip times the tables of each are left out: the text is that of all.
    if let Some((start, end)) = shown.find("\n0 ms:\n").zip(shown.find("\nthe answer")) {
        shown.replace_range(start..end, "");
    }
    judged(desk, records, &shown).exits(0).shows("sentences and");
    let shown = desk.run(&["show", records]).out.clone();
    program(desk, &shown, &["--brief", records, "shown.txt"]).exits(0).shows("sentences and");
}

fn program(desk: &Desk, shown: &str, arguments: &[&str]) -> Said {
    desk.file("shown.txt", shown);
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sentences.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(program).args(arguments).current_dir(desk.home());
    Started::new(command).wait()
}

#[test]
fn golden_results_say_what_their_records_give_and_a_changed_number_is_noticed() {
    needs!(Need::program("python3"));
    let desk = Desk::with_only(&["python3"]);
    for name in ["fans", "getset", "noisy", "rates"] {
        let file = format!("{name}.jsonl");
        desk.file(&file, results(name));
        agrees(&desk, &file);
    }
    let shown = desk.run(&["show", "--wide", "fans.jsonl"]).exits(0).out.clone();
    for (said, other) in [("1.18x [1.14-1.27]", "1.28x [1.14-1.37]"), ("7 of 17 blocks", "6 of 17 blocks")] {
        assert!(shown.contains(said), "no {said}: {shown}");
        judged(&desk, "fans.jsonl", &shown.replace(said, other)).exits(1).shows(other);
    }
    let brief = desk.run(&["show", "fans.jsonl"]).exits(0).out.clone();
    for (said, other) in [("53 of 53 answers", "52 of 53 answers"), ("noise floor 4.4", "noise floor 6.4")] {
        assert!(brief.contains(said), "no {said}: {brief}");
        program(&desk, &brief.replace(said, other), &["--brief", "fans.jsonl", "shown.txt"]).exits(1).shows(other);
    }
}

#[test]
fn posts_say_what_their_records_give_and_a_changed_number_is_noticed() {
    needs!(Need::program("python3"));
    let desk = Desk::with_only(&["python3"]);
    let swapped = |label: &str| match label {
        "redis" => "redis+unix".to_string(),
        "redis+unix" => "redis".to_string(),
        "lmdb" => "memcached".to_string(),
        label => label.to_string(),
    };
    for (results, number) in [("fans", "000"), ("getset", "001")] {
        let file = format!("{number}.jsonl");
        as_if_of((results, number), &desk, &file, &swapped);
        let shown = desk.run(&["reproduce", "--from", &file]).exits(0).out.clone();
        judged_post(&desk, &file, &shown).exits(0).shows(" sentences and ").shows("agree with the records");
        // A judgement, a count, and a number of today.
        let today = shown.split_once(" today").and_then(|(before, _)| before.rsplit_once(' ')).expect("a ratio").1;
        for (said, other) in
            [("  reversed: ", "  still so: "), (" of 2 comparisons", " of 3 comparisons"), (today, "9.9]")]
        {
            assert!(shown.contains(said), "no {said}: {shown}");
            judged_post(&desk, &file, &shown.replacen(said, other, 1)).exits(1).shows("disagreements in");
        }
    }
}

/// What `check` and `crash` found: their tables and sentences, beside the lines of their files.
#[test]
fn what_is_found_without_a_job_is_what_its_lines_give() {
    needs!(Need::program("python3"), Need::server("redis"));
    let desk = Desk::new();
    let commands: [&[&str]; 3] = [
        &["check", "lmdb", "faulty?fault=undelete"],
        &["crash", "sqlite", "faulty?fault=unwritten", "--kills", "2", "--seed", "432"],
        &["crash", "--failover", "redis?replicas=2&link-delay=20ms", "redis?replicas=2&wait=1", "--kills", "2"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let file = format!("found-{number}.jsonl");
        let shown = desk.run(&[command, &["--output", &file]].concat()).out.clone();
        judged(&desk, &file, &shown).exits(0).shows(" sentences and ");
        let (digit, other) = if number == 0 { (" probes, ", "1 probes, ") } else { (" of 2 kills", "1 of 2 kills") };
        assert!(shown.contains(digit), "{shown}");
        judged(&desk, &file, &shown.replacen(digit, other, 1)).exits(1).shows("disagreements in");
    }
}

/// Of what is measured here and now: tables of stores, of round-trip times, and of replicas at rates.
#[test]
fn results_of_today_say_what_their_records_give() {
    needs!(Need::program("python3"), Need::server("redis"));
    let desk = Desk::new();
    let stores = ["ram", "lmdb", "redis", "redis+unix"];
    let replicas = ["redis?replicas=2&read=all", "redis?replicas=2&read=all&link-delay=5ms"];
    let rates = ["--rate", "600,2k", "--requests", "400", "--reads", "3", "--writes", "1", "--records", "20"];
    let runs = [
        ("ngrams", &stores[..], &["--messages", "100"][..]),
        ("fans", &stores, &["--profiles", "100"]),
        ("fans", &["redis", "ram"], &["--profiles", "10", "--rtt", "0,1ms"]),
        ("mixed", &replicas, &[&rates[..], &["--accept-noise"]].concat()),
    ];
    for (number, (job, targets, more)) in runs.into_iter().enumerate() {
        let file = format!("{job}-{number}.jsonl");
        desk.run(&[&["run", job, "--blocks", "4", "--output", &file], targets, more].concat());
        agrees(&desk, &file);
    }
    desk.file("apart.jsonl", a_replica_used_more(records_in(&desk.home().join("mixed-3.jsonl"))));
    let shown = desk.run(&["show", "--wide", "apart.jsonl"]).exits(0).shows("the CPU of its first").out.clone();
    judged(&desk, "apart.jsonl", &shown).exits(0).shows("sentences and");
}

/// The same records, and in second trials of A/A controls the last replica used a second of CPU more.
fn a_replica_used_more(mut records: Vec<Value>) -> String {
    for record in records.iter_mut().filter(|record| record["aa_control"] == json!(true)) {
        for phase in record["phases"].as_array_mut().expect("phases") {
            let replica = phase["replicas"].as_array_mut().and_then(|replicas| replicas.last_mut()).expect("a replica");
            replica["user_s"] = json!(replica["user_s"].as_f64().expect("seconds") + 1.0);
        }
    }
    records.iter().map(|record| format!("{record}\n")).collect()
}
