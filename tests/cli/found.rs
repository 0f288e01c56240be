//! What commands find that run no job: a results file, every form of it, and the same again by `show`.

use std::fs;

use serde_json::Value;

use crate::cli::comment::two_runs;
use crate::cli::forms::results;
use crate::common::desk::{Desk, one_line};
use crate::common::needs::{Need, needs};
use crate::common::output;

/// A kill within half a second after the first write.
const SOON: &str = "432";

/// The lines of a results file, each by its schema.
fn findings(desk: &Desk, file: &str) -> Vec<Value> {
    let schema = serde_json::from_str(include_str!("../../schema/finding.schema.json")).expect("the schema");
    let schema = jsonschema::validator_for(&schema).expect("the schema is one");
    let text = fs::read_to_string(desk.home().join(file)).expect("results");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    lines.iter().for_each(|line| assert!(schema.is_valid(line), "{line}"));
    lines
}

/// Every form of a results file, which all tell of that target; and the JSON.
fn every_form(desk: &Desk, shown: &[&str], target: &str) -> Value {
    let run = |more: &[&str]| desk.run(&[shown, more].concat());
    let json = run(&["--json"]);
    let object = output::object(&json.out, json.code);
    assert_eq!(object["rows"][0]["target"], target, "{object}");
    let csv = run(&["--csv"]).exits(json.code).out.clone();
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let headings = csv.headers().expect("a line of names").clone();
    let row = csv.records().next().expect("a row").expect("a row");
    for (name, cell) in headings.iter().zip(&row) {
        let Some(value) = object["rows"][0].get(name) else { continue };
        let as_text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => number.as_f64().expect("a number").to_string(),
            other => other.to_string(),
        };
        assert!(cell == as_text || (value.is_null() && cell.is_empty()), "{name}: {cell} and {value}");
    }
    let escaped = target.replace('_', "\\_");
    assert!(run(&["--markdown"]).exits(json.code).out.contains(&escaped));
    run(&["--html", "page.html"]).exits(json.code).complains("page: page.html");
    let page = fs::read_to_string(desk.home().join("page.html")).expect("a page");
    let at = target.replace('&', "&amp;");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(&at), "{page}");
    assert!(page.contains(concat!("kvfair ", env!("CARGO_PKG_VERSION"))) && page.contains("<code>kvfair "), "{page}");
    run(&["--html", "page.html"]).exits(1).complains("page.html is there already");
    fs::remove_file(desk.home().join("page.html")).expect("it is there");
    object
}

#[test]
fn what_check_and_crash_find_is_shown_again_in_every_form() {
    needs!(Need::server("redis"));
    let desk = Desk::new();
    let commands: [(&str, &[&str], &str, i32); 4] = [
        ("check", &["check", "lmdb"], "lmdb", 0),
        ("check", &["check", "faulty?fault=undelete"], "faulty?fault=undelete", 4),
        ("crash", &["crash", "lmdb", "--durability", "crash", "--kills", "1", "--seed", SOON], "lmdb", 0),
        ("failover", &["crash", "--failover", "--kills", "1", "redis?replicas=1"], "redis?replicas=1", 0),
    ];
    for (name, typed, target, code) in commands {
        let said = desk.run(&[typed, &["--output", "found.jsonl"]].concat());
        said.exits(code).complains("results: found.jsonl");
        let lines = findings(&desk, "found.jsonl");
        assert!(lines.len() == 1 && lines[0][name].is_object(), "{lines:?}");
        assert_eq!(desk.run(&["show", "found.jsonl"]).exits(code).out, said.out, "{name}");
        every_form(&desk, &["show", "found.jsonl"], target);
        fs::remove_file(desk.home().join("found.jsonl")).expect("it is there");
    }
}

#[test]
fn comparisons_and_growth_have_every_form() {
    let desk = Desk::with_only(&[]);
    two_runs(&desk, &[("redis", 1.6)], |_| {});
    let rows = every_form(&desk, &["compare", "base.jsonl", "head.jsonl"], "redis");
    assert!(rows["rows"].as_array().is_some_and(|rows| rows.len() > 1), "{rows}");
    desk.file("growth.jsonl", results("growth"));
    let csv = desk.run(&["show", "growth.jsonl", "--csv"]);
    csv.exits(6).shows("target,cpu_of,part,over,from,to,repetitions,exponent,").shows("in_proportion");
    let csv = desk.run(&["history", "base.jsonl", "head.jsonl", "--csv"]);
    csv.exits(0).shows("job,target,of,began,file,version,status,number,").shows("head.jsonl");
}

#[test]
fn findings_are_no_run_and_are_passed_over_by_what_needs_one() {
    let desk = Desk::with_only(&[]);
    desk.run(&["check", "ram"]).exits(0).complains("results: kvfair-results/");
    let found = fs::read_dir(desk.home().join("kvfair-results")).expect("results").next().expect("a file");
    let found = found.expect("a file").file_name().into_string().expect("a name");
    assert!(found.ends_with("-check.jsonl"), "{found}");
    let path = format!("kvfair-results/{found}");
    // The newest results are these.
    desk.run(&["show"]).exits(0).shows("ram ").shows("probes, all right");
    let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "ram", "--output", "run.jsonl"];
    desk.run(&run).exits(0);
    for command in [&["compare", &path, "run.jsonl"][..], &["bundle", &path], &["rerun", &path]] {
        let said = desk.run(command);
        assert!(said.code != 0 && said.out.is_empty(), "{command:?}: {}", said.err);
    }
    let said = desk.run(&["compare", &path, "run.jsonl"]);
    said.exits(1).complains("found by `kvfair check`, which runs no job").complains("hint: `kvfair show` prints it");
    desk.run(&["site", "site", &path, "run.jsonl"]).exits(0).complains("kvfair: skipped kvfair-results/");
    desk.run(&["show", &path, "--svg", "x.svg"])
        .exits(1)
        .complains("--svg: results of `kvfair check` have no such form")
        .complains("hint: --html is a page");
}

/// Another user may have written the file.
#[test]
fn a_file_of_findings_is_one_commands_and_its_bad_lines_are_named() {
    let desk = Desk::with_only(&[]);
    desk.run(&["check", "ram", "--output", "one.jsonl"]).exits(0);
    let line = fs::read_to_string(desk.home().join("one.jsonl")).expect("results");
    let shown = desk.run(&["show", "one.jsonl"]).exits(0).out.clone();
    // A crash cut off the last line.
    desk.file("cut.jsonl", format!("{line}{}", &line[..40]));
    assert_eq!(desk.run(&["show", "cut.jsonl"]).exits(0).out, shown);
    desk.file("bad.jsonl", format!("{line}no JSON\n"));
    desk.run(&["show", "bad.jsonl"]).exits(1).complains("bad.jsonl:2: ");
    desk.file("mixed.jsonl", format!("{line}{}", line.replace("\"began\":\"2", "\"began\":\"1")));
    desk.run(&["show", "mixed.jsonl"]).exits(1).complains("mixed.jsonl:2: found by another command");
    let mut hostile: Value = serde_json::from_str(&line).expect("a line of JSON");
    hostile["check"]["target"] = "a\u{1b}[2Jb\n c <script>".into();
    hostile["check"]["wrong"] = serde_json::json!([
        {"kind": "answer", "probe": "p\u{1b}]0;x", "sent": "s", "came": "c\n\nd", "cause": null, "others": []}
    ]);
    desk.file("hostile.jsonl", format!("{hostile}\n"));
    let said = desk.run(&["show", "hostile.jsonl", "--html", "page.html"]);
    said.exits(4);
    assert!(!said.out.contains('\u{1b}') && one_line(&said.out).contains("1 WRONG"), "{}", said.out);
    let page = fs::read_to_string(desk.home().join("page.html")).expect("a page");
    assert!(!page.contains('\u{1b}') && page.contains("&lt;script&gt;"), "{page}");
}
