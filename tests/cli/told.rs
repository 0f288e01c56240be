//! What commands say of files and stores that they cannot show: the cause, and what to do.

use serde_json::{Value, json};

use crate::cli::forms::results;
use crate::common::desk::Desk;

/// Golden results with a change in each record.
fn changed(name: &str, change: impl Fn(&mut Value)) -> String {
    let records =
        results(name).lines().map(|line| serde_json::from_str(line).expect("a record")).collect::<Vec<Value>>();
    let lines = records.into_iter().map(|mut record| {
        change(&mut record);
        format!("{record}\n")
    });
    lines.collect()
}

/// A run in which the machine disturbed every trial.
fn disturbed() -> String {
    changed("fans", |record| record["discarded"] = true.into())
}

#[test]
fn a_site_passes_over_a_run_of_which_nothing_can_be_shown() {
    let desk = Desk::with_only(&[]);
    desk.file("fans.jsonl", results("fans"));
    desk.file("disturbed.jsonl", disturbed());
    let said = desk.run(&["site", "site", "disturbed.jsonl", "fans.jsonl"]);
    said.exits(0).complains("skipped disturbed.jsonl: the machine disturbed every trial").complains("(1 page)");
    assert!(desk.home().join("site/fans.html").exists() && !desk.home().join("site/disturbed.html").exists());
    let said = desk.run(&["site", "other", "disturbed.jsonl"]);
    said.exits(6).complains("none of the files has results to show");
    assert!(!desk.home().join("other").exists());
    desk.file("broken.jsonl", "{\n");
    desk.run(&["site", "other", "fans.jsonl", "broken.jsonl"]).exits(1).complains("broken.jsonl");
    desk.run(&["site", "other", "fans.jsonl", "none.jsonl"]).exits(1).complains("none.jsonl");
    desk.run(&["show", "disturbed.jsonl"]).exits(6).complains("the machine disturbed every trial");
}

#[test]
fn the_page_of_a_growth_that_failed_is_said_to_be_that() {
    let desk = Desk::with_only(&[]);
    let failed = changed("growth", |record| {
        if record["target"]["label"] == "bad" {
            record["outcome"] = json!({ "kind": "refused", "reason": "it would not start" });
            record["phases"] = json!([]);
        }
    });
    std::fs::create_dir(desk.home().join("kvfair-results")).expect("a folder");
    desk.file("kvfair-results/20260101T000000Z-growth.jsonl", failed);
    let said = desk.run(&["show", "--html", "page.html"]);
    said.exits(1)
        .complains("results: kvfair-results/20260101T000000Z-growth.jsonl")
        .complains("kvfair: not measured: bad: ")
        .complains("page: page.html");
}

#[test]
fn a_folder_without_results_has_a_hint_that_works() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["show"]);
    said.exits(1).complains("no results yet: there is no ./kvfair-results here hint: `kvfair run fans` makes some");
    assert!(!said.err.contains("os error"), "{}", said.err);
    desk.run(&["run", "fans", "--profiles", "50", "--blocks", "1", "lmdb"]).exits(0);
    desk.run(&["show"]).exits(0);
}

#[test]
fn fans_of_a_store_of_n_grams_are_refused_with_the_command_that_counts() {
    let desk = Desk::with_only(&[]);
    desk.run(&[
        "run",
        "ngrams",
        "--messages",
        "50",
        "--blocks",
        "1",
        "--durability",
        "crash",
        "--keep",
        "kept",
        "lmdb",
    ])
    .exits(0);
    let said = desk.run(&["query", "lmdb:kept/lmdb", "Michael Jackson"]);
    said.exits(1)
        .complains("it holds what the job ngrams wrote, and no fans of pages hint: kvfair lookup lmdb:kept/lmdb WORD");
    desk.run(&["lookup", "lmdb:kept/lmdb", "the"]).exits(0).shows("the");
}

#[test]
fn a_binary_file_is_not_text() {
    let desk = Desk::with_only(&[]);
    let elf: Vec<u8> = [b"\x7fELF\x02\x01\x01".to_vec(), vec![0; 9], (0..=255).collect(), b"\n,\n".to_vec()].concat();
    desk.file("program", elf);
    for job in ["fans", "ngrams", "lookup"] {
        let said = desk.run(&["run", job, "--input", "program", "--blocks", "1", "ram"]);
        said.exits(1).complains("program: this is not text: byte 8 is 0").complains("expected ");
    }
    desk.file("words", "a b\n");
    desk.run(&["run", "ngrams", "--input", "words", "--blocks", "1", "ram"]).exits(0);
}

/// 4 rows set a value that is to live for a minute.
const OF_A_MINUTE: &str = "0,a,1,5,1,set,60\n0,b,1,5,1,set,60\n1,a,1,5,1,get,0\n1,c,1,5,1,set,60\n2,a,1,7,1,set,60\n";

#[test]
fn times_to_live_that_a_store_cannot_keep_are_a_row_and_refused_where_strict() {
    let desk = Desk::new();
    desk.file("trace.csv", OF_A_MINUTE);
    let run = ["run", "trace", "--input", "trace.csv", "--format", "twitter", "--blocks", "1"];
    let said = desk.run(&[&run[..], &["lmdb", "redis+unix"]].concat());
    said.exits(0).shows("lmdb lets nothing expire: 4 times to live were left out (--strict refuses it)");
    assert!(!said.out.contains("redis+unix lets nothing expire"), "{}", said.out);
    desk.run(&["show"]).exits(0).shows("4 times to live were left out");
    desk.run(&["show", "--markdown"]).exits(0).shows("4 times to live were left out");
    let said = desk.run(&[&run[..], &["--strict", "lmdb", "redis+unix"]].concat());
    said.exits(1).shows("lmdb refused: ").shows("it lets nothing expire");
    assert_eq!(desk.record("redis+unix")["outcome"]["kind"], "finished");
    assert_eq!(desk.record("lmdb")["outcome"]["kind"], "refused");
    desk.run(&["run", "mixed", "--strict", "lmdb"]).exits(2).complains("--strict is no option of the job mixed");
}

#[test]
fn duplicate_pairs_of_a_csv_are_counted() {
    let desk = Desk::with_only(&[]);
    desk.file("likes.csv", "user,page\nann,Tea\nann,Rain\nbob,Tea\nann,Tea\nbob,Rain\nbob,Tea\n");
    let said = desk.run(&["run", "fans", "--input", "likes.csv", "--blocks", "1", "ram"]);
    said.exits(0).complains("2 users, 2 pages, 4 pairs, 2 duplicate pairs dropped");
    desk.file("once.csv", "user,page\nann,Tea\nann,Rain\nbob,Tea\n");
    let said = desk.run(&["run", "fans", "--input", "once.csv", "--blocks", "1", "ram"]);
    said.exits(0).complains("3 pairs");
    assert!(!said.err.contains("duplicate"), "{}", said.err);
}
