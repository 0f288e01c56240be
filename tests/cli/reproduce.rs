//! `kvfair reproduce`: a post's command on real servers, its sentences judged by what the blocks show, and bad input.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli::forms;
use crate::common::desk::{Desk, one_line, records_in};
use crate::common::golden::are_golden;

const JUDGEMENTS: [&str; 4] = ["still_so", "reversed", "cannot_be_told", "cannot_be_run"];

fn judged(json: &str) -> Vec<(String, String, String)> {
    let all: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("no JSON:\n{json}"));
    let posts = all["posts"].as_array().expect("posts").iter();
    let sentences = posts.flat_map(|post| post["sentences"].as_array().expect("sentences"));
    let text = |value: &Value| value.as_str().expect("text").to_string();
    sentences.map(|one| (text(&one["says"]), text(&one["judgement"]), text(&one["why"]))).collect()
}

/// The judgement of the sentence that begins so, and why.
fn of<'a>(all: &'a [(String, String, String)], says: &str) -> (&'a str, &'a str) {
    let found = all.iter().find(|(known, ..)| known.starts_with(says)).unwrap_or_else(|| panic!("{says}: {all:?}"));
    (&found.1, &found.2)
}

fn results(desk: &Desk) -> Vec<PathBuf> {
    let entries = fs::read_dir(desk.home().join("kvfair-results")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}

/// Results of another day as if they were the first post's, each target by another name.
fn as_if_of_the_first_post(desk: &Desk, file: &str, renamed: &dyn Fn(&str) -> String) {
    as_if_of(("fans", "000"), desk, file, renamed);
}

/// The same of other results and another post.
pub fn as_if_of((name, number): (&str, &str), desk: &Desk, file: &str, renamed: &dyn Fn(&str) -> String) {
    let results = forms::results(name);
    let lines = results.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).expect("a record");
        record["run"]["command"] = serde_json::json!(["reproduce", number]);
        let label = record["target"]["label"].as_str().expect("a label").to_string();
        record["target"]["label"] = renamed(&label).into();
        format!("{record}\n")
    });
    desk.file(file, lines.collect::<String>());
}

#[test]
fn a_post_is_run_on_real_stores_and_its_sentences_are_judged() {
    let desk = Desk::new();
    let said = desk.run(&["reproduce", "002", "--budget", "20s", "--json", "--html", "posts.html"]);
    said.exits(0).complains("page: posts.html").complains("post 002: at most 20 s");
    let all = judged(&said.out);
    assert_eq!(all.len(), 7, "{all:?}");
    assert!(all.iter().all(|(_, judgement, _)| JUDGEMENTS.contains(&judgement.as_str())), "{all:?}");
    // A hash map beside a server: whatever else the machine does, it is not slower.
    assert_ne!(of(&all, "A dictionary in the process").0, "reversed");
    let (judgement, why) = of(&all, "Tokyo Tyrant is faster by its own protocol");
    assert_eq!(judgement == "cannot_be_run", why.contains("tokyotyrant is not installed"), "{why}");
    // The file is a run's own: it is known for the post's, and tells all that the command told.
    let files = results(&desk);
    let [file] = files.as_slice() else { panic!("one file: {files:?}") };
    let file = file.to_str().expect("a name");
    assert!(file.ends_with("-reproduce-002.jsonl"), "{file}");
    let records = records_in(&desk.home().join(file));
    assert_eq!(records[0]["run"]["command"], serde_json::json!(["reproduce", "002"]));
    assert!(records.iter().all(|record| record["verdict"]["kind"] != "wrong"));
    let again = desk.run(&["reproduce", "--from", file, "--json"]);
    let shown = judged(&again.exits(0).out);
    let judgements = |all: &[(String, String, String)]| all.iter().map(|one| one.1.clone()).collect::<Vec<_>>();
    assert_eq!(judgements(&shown), judgements(&all));
    let page = fs::read_to_string(desk.home().join("posts.html")).expect("a page");
    for words in ["default-src 'none'", "then: a single run", "cannot be run here", "gettext catalogues", "<svg"] {
        assert!(page.contains(words), "{words}");
    }
    desk.no_process_is_left();
}

/// Redis over a Unix socket was faster than over TCP in these records: by other names it was slower.
#[test]
fn a_sentence_is_still_so_or_reversed_by_the_records_alone() {
    let desk = Desk::with_only(&[]);
    let claim = "A Unix socket is faster than TCP";
    as_if_of_the_first_post(&desk, "as-it-was.jsonl", &str::to_string);
    let said = desk.run(&["reproduce", "--from", "as-it-was.jsonl", "--json"]);
    let all = judged(&said.exits(0).out);
    let (judgement, why) = of(&all, claim);
    assert_eq!(judgement, "still_so", "{why}");
    assert!(why.starts_with("1 of 2 comparisons hold, 1 cannot be run here"), "{why}");
    assert_eq!(of(&all, "MySQL is slower").0, "cannot_be_run");
    as_if_of_the_first_post(&desk, "swapped.jsonl", &|label| match label {
        "redis" => "redis+unix".to_string(),
        "redis+unix" => "redis".to_string(),
        label => label.to_string(),
    });
    let all = judged(&desk.run(&["reproduce", "--from", "swapped.jsonl", "--json"]).exits(0).out);
    assert_eq!(of(&all, claim).0, "reversed", "{all:?}");
    assert_eq!(of(&all, "Redis over a Unix socket is the fastest").0, "reversed", "{all:?}");
    // One block has no interval.
    let lines = fs::read_to_string(desk.home().join("as-it-was.jsonl")).expect("records");
    let is_first = |line: &&str| serde_json::from_str::<Value>(line).expect("a record")["block"] == 1;
    let first: Vec<&str> = lines.lines().filter(is_first).collect();
    desk.file("once.jsonl", format!("{}\n", first.join("\n")));
    let all = judged(&desk.run(&["reproduce", "--from", "once.jsonl", "--json"]).exits(0).out);
    let (judgement, why) = of(&all, claim);
    assert_eq!(judgement, "cannot_be_told", "{why}");
    assert!(why.contains("1 block: an interval needs 4"), "{why}");
}

/// Redis was limited at one client in these records. Nothing is said of times there, as in every sweep, whatever CPU it
/// used.
#[test]
fn nothing_is_said_of_times_that_the_load_generator_limits() {
    let desk = Desk::with_only(&[]);
    as_if_of(("getset", "001"), &desk, "out.jsonl", &|label| match label {
        "redis+unix" => "redis".to_string(),
        "lmdb" => "memcached".to_string(),
        label => label.to_string(),
    });
    let all = judged(&desk.run(&["reproduce", "--from", "out.jsonl", "--json"]).exits(0).out);
    let (judgement, why) = of(&all, "With one client Redis and memcached are level");
    assert_eq!(judgement, "cannot_be_told", "{why}");
    assert!(why.contains("limited by the load generator"), "{why}");
    let (judgement, why) = of(&all, "Both use the same CPU");
    assert_eq!(judgement, "reversed", "{why}");
}

/// A store that is not here is another thing than one for which the run had no time.
#[test]
fn what_was_left_out_cannot_be_told_and_what_is_not_here_cannot_be_run() {
    let desk = Desk::with_only(&[]);
    as_if_of_the_first_post(&desk, "out.jsonl", &str::to_string);
    let lines = fs::read_to_string(desk.home().join("out.jsonl")).expect("records");
    for (reason, absent, expected) in [
        ("the time was over", false, "cannot_be_told"),
        ("redis is not installed: apt install redis", true, "cannot_be_run"),
    ] {
        let changed = lines.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("a record");
            if record["target"]["label"] == "redis" {
                record["outcome"] = serde_json::json!({ "kind": "left_out", "reason": reason, "absent": absent });
            }
            format!("{record}\n")
        });
        let file = format!("{expected}.jsonl");
        desk.file(&file, changed.collect::<String>());
        let all = judged(&desk.run(&["reproduce", "--from", &file, "--json"]).exits(0).out);
        let (judgement, why) = of(&all, "A Unix socket is faster than TCP");
        assert_eq!(judgement, expected, "{why}");
        assert!(why.contains(reason), "{why}");
    }
}

#[test]
fn golden_text_and_page_are_as_they_were() {
    let desk = Desk::with_only(&[]);
    as_if_of_the_first_post(&desk, "out.jsonl", &str::to_string);
    let said = desk.run(&["reproduce", "--from", "out.jsonl", "--html", "page.html"]);
    let page = fs::read_to_string(desk.home().join("page.html")).expect("a page");
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    let forms = [("txt", &said.exits(0).out), ("html", &page)];
    are_golden(forms.map(|(ending, now)| (format!("tests/golden/shown/reproduce.{ending}"), now.as_str())));
    let form = |option: &str| desk.run(&["reproduce", "--from", "out.jsonl", option]);
    form("--csv").exits(0).shows("post,panel,store,target,stand_in,unit,then,then_ratio,today,").shows("000,");
    form("--markdown").exits(0).shows("| store | then | ratio then |").shows("- sentences:");
}

#[test]
fn an_unknown_post_is_refused_with_the_five() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["reproduce", "007"]);
    said.exits(2).complains("there is no post '007'");
    for number in ["000", "001", "002", "003", "004"] {
        said.complains(&format!("{number} "));
    }
}

#[test]
fn a_post_without_a_store_here_says_what_to_install_and_measures_nothing() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["reproduce", "001"]);
    said.exits(3)
        .complains("post 001: no store of its table is installed here")
        .complains("memcached is not installed");
    assert!(!desk.home().join("kvfair-results").exists());
    desk.run(&["reproduce", "001", "--list"]).exits(0).shows("kvfair run getset").shows("redis is not installed");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let desk = Desk::new();
    desk.file("there.html", "mine");
    desk.run(&["reproduce", "002", "--html", "there.html"]).exits(1).complains("is there already");
    desk.run(&["reproduce", "002", "--html", "there.html/page.html"]).exits(1).complains("cannot write");
    assert!(!desk.home().join("kvfair-results").exists());
    assert_eq!(fs::read_to_string(desk.home().join("there.html")).expect("a file"), "mine");
}

#[test]
fn a_file_of_another_command_is_no_post() {
    let desk = Desk::with_only(&[]);
    desk.file("fans.jsonl", forms::results("fans"));
    let said = desk.run(&["reproduce", "--from", "fans.jsonl"]);
    said.exits(1).complains("no results of `kvfair reproduce`").complains("kvfair show fans.jsonl");
    desk.run(&["reproduce", "--from", "not-here.jsonl"]).exits(1).complains("not-here.jsonl");
    let both = desk.run(&["reproduce", "000", "--from", "fans.jsonl"]);
    both.exits(2);
    assert!(one_line(&both.err).contains("cannot be used with"), "{}", both.err);
}
