//! The forms in which a results file is shown: as they were when the file was new, on any machine; all that is known in
//! every one; and of one run only.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use serde_json::Value;

use crate::common::desk::Desk;
use crate::common::golden::are_golden;

/// What `show` is asked, and the ending of what it answered.
const FORMS: &[(&[&str], &str)] = &[
    (&[], "txt"),
    (&["--wide"], "wide.txt"),
    (&["--all"], "all.txt"),
    (&["--csv"], "csv"),
    (&["--all", "--csv"], "all.csv"),
    (&["--markdown"], "md"),
    (&["--all", "--markdown"], "all.md"),
    (&["--json"], "json"),
    (&["--all", "--json"], "all.json"),
];

/// Results of runs of another day, one of which was too noisy for ranks (their commands stand in CONTRIBUTING.md).
const RESULTS: &[&str] = &["fans", "noisy", "getset", "rates"];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/shown").join(name)
}

/// The records of one of them.
pub fn results(name: &str) -> String {
    let file = fs::File::open(golden(&format!("{name}.jsonl.gz"))).expect("results");
    let mut text = String::new();
    MultiGzDecoder::new(BufReader::new(file)).read_to_string(&mut text).expect("results");
    text
}

#[test]
fn golden_results_of_another_day_are_shown_as_they_were_then() {
    let desk = Desk::with_only(&[]);
    let mut forms = Vec::new();
    for name in RESULTS {
        let file = format!("{name}.jsonl");
        desk.file(&file, results(name));
        for (form, ending) in FORMS {
            let said = desk.run(&[&["show", file.as_str()], *form].concat());
            forms.push((format!("tests/golden/shown/{name}.{ending}"), said.exits(0).out.clone()));
        }
    }
    are_golden(forms.iter().map(|(name, now)| (name.clone(), now.as_str())));
}

/// The names and cells of the rows in the two forms.
fn csv_and_json(name: &str, ending: &str, rows: &str) -> [Vec<Vec<String>>; 2] {
    let csv = csv::ReaderBuilder::new().has_headers(false).from_path(golden(&format!("{name}.{ending}csv")));
    let cells = |record: Result<csv::StringRecord, csv::Error>| record.unwrap().iter().map(str::to_string).collect();
    let csv = csv.unwrap().into_records().map(cells).collect();
    let text = fs::read_to_string(golden(&format!("{name}.{ending}json"))).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let mut told = vec![text_of_names(&text, rows)];
    for row in json[rows].as_array().expect("rows") {
        told.push(told[0].iter().map(|name| cell(&row[name])).collect());
    }
    [csv, told]
}

/// The names of the first row's fields in the order in which they stand.
fn text_of_names(text: &str, rows: &str) -> Vec<String> {
    let (_, row) = text.split_once(&format!("\n  \"{rows}\": [")).expect("rows");
    let lines =
        row.lines().skip_while(|line| line.trim() != "{").skip(1).take_while(|line| !line.trim().starts_with('}'));
    lines.filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once('"')?.0.to_string())).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    }
}

/// One shape for jobs, sweeps and rates, and one table of columns for both forms.
#[test]
fn csv_and_json_tell_the_same_in_one_shape() {
    let mut names = BTreeSet::new();
    for name in RESULTS {
        for (ending, rows) in [("", "rows"), ("all.", "trials")] {
            let [csv, json] = csv_and_json(name, ending, rows);
            assert!(json.len() > 2 && json[0].len() > 20, "{name}: {:?}", json[0]);
            // JSON has all columns, and CSV has these only with --wide.
            let usual: Vec<bool> = json[0].iter().map(|name| !name.starts_with("service_us_")).collect();
            let usual = |row: &Vec<String>| -> Vec<String> {
                row.iter().zip(&usual).filter(|(_, usual)| **usual).map(|(cell, _)| cell.clone()).collect()
            };
            assert_eq!(csv, json.iter().map(usual).collect::<Vec<_>>(), "{name} {rows}");
            names.insert((rows, json[0].clone()));
        }
    }
    assert_eq!(names.len(), 2, "one shape of rows and one of trials");
    let units = ["_s", "_us", "_bytes", "_byte", "_share", "_per_s"];
    let (_, rows) = names.iter().find(|(rows, _)| *rows == "rows").expect("rows");
    assert!(!rows.iter().any(|name| name.contains("_ns")), "times of requests are in microseconds: {rows:?}");
    assert!(rows.iter().filter(|name| units.iter().any(|unit| name.contains(unit))).count() > 30, "{rows:?}");
}

#[test]
fn the_object_says_what_was_run_and_what_may_be_said_of_it() {
    let of = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(golden(&format!("{name}.json"))).unwrap()).unwrap()
    };
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    for name in RESULTS {
        let told = of(name);
        assert_eq!(keys(&told), ["claims", "rows", "run", "verdict", "warnings"], "{name}");
        let text = fs::read_to_string(golden(&format!("{name}.wide.txt"))).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = told["verdict"]["sentence"].as_str().expect("a sentence");
        assert!(!sentence.is_empty() && text.contains(sentence), "{name}: the table's own sentence: {sentence}");
        for claim in told["claims"].as_array().expect("claims") {
            let (ratio, floor) = (claim["ratio"].as_f64().unwrap(), claim["noise_floor"].as_f64().unwrap());
            assert!(ratio - 1.0 > floor && claim["low"].as_f64() > Some(1.0), "{name}: {claim}");
        }
    }
    let claimed = |name: &str| of(name)["claims"].as_array().expect("claims").len();
    // What the sentence calls noise is no claim.
    assert!(claimed("fans") > 0 && claimed("noisy") > 0 && claimed("getset") == 0, "{RESULTS:?}");
    assert!(of("fans")["verdict"]["same_store_twice"][0]["ratio"].is_number());
}

/// On a disk the same run is ranked; in memory nothing outlives a loss of power, however quick it is.
#[test]
fn where_the_class_cannot_hold_nothing_is_ranked() {
    let desk = Desk::with_only(&[]);
    let ranked = results("fans");
    let shown = |in_memory: bool| {
        let records = ranked.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("a record");
            record["durability"] = "power".into();
            if record["machine"]["preflight"].is_object() {
                record["machine"]["preflight"]["in_memory"] = in_memory.into();
            }
            format!("{record}\n")
        });
        desk.file("power.jsonl", records.collect::<String>());
        desk.run(&["show", "power.jsonl"]).exits(if in_memory { 6 } else { 0 }).out.clone()
    };
    let (on_disk, in_memory) = (shown(false), shown(true));
    assert!(on_disk.contains(" rank ") && !on_disk.contains("tmpfs"), "{on_disk}");
    assert!(
        in_memory.contains("What the durability level promises cannot hold here (tmpfs): times are not ranked."),
        "{in_memory}"
    );
    assert!(!in_memory.contains(" rank "), "{in_memory}");
}

#[test]
fn two_runs_are_not_shown_together() {
    let desk = Desk::new();
    let run = |output: &str| {
        let small = ["run", "ngrams", "--messages", "30", "--blocks", "2", "ram", "null"];
        desk.run(&[&small[..], &["--output", output]].concat()).exits(0);
        fs::read_to_string(desk.home().join(output)).expect("results")
    };
    let one = run("one.jsonl");
    // Runs are told apart by the second in which they began, and by their seeds.
    std::thread::sleep(Duration::from_millis(1_100));
    let other = run("other.jsonl");
    let said = desk.run(&["show", desk.file("both.jsonl", format!("{one}{other}"))]);
    said.exits(1).complains("both.jsonl:5: another run: ").complains("hint: show each run's own file");
    assert_eq!(said.out, "");
    let said = desk.run(&["show", desk.file("twice.jsonl", format!("{one}{one}"))]);
    said.exits(1).complains("twice.jsonl:5: the same trial once more: ");
    let said = desk.run(&["compare", "both.jsonl", "one.jsonl"]);
    said.exits(1).complains("both.jsonl:5: another run: ");
}

#[test]
fn one_form_is_asked_for_at_a_time() {
    let desk = Desk::with_only(&[]);
    desk.run(&["show", "--json", "--csv"]).exits(2).complains("cannot be used with");
    desk.run(&["show", "--markdown", "--csv"]).exits(2).complains("cannot be used with");
    desk.run(&["compare", "--base", "ram", "--head", "null", "--all"]).exits(2).complains("--all is no option of");
}

/// What is broken in a histogram is said by whoever needs it, and by nobody else.
#[test]
fn a_broken_histogram_is_named_where_its_times_are_told() {
    let desk = Desk::with_only(&[]);
    let mut lines: Vec<Value> =
        results("noisy").lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let is_it = |line: &&mut Value| line["block"] == 2 && line["target"]["label"] == "redis";
    let broken = lines.iter_mut().find(is_it).expect("redis in block 2");
    let phases = broken["phases"].as_array_mut().expect("phases");
    let run = phases.iter_mut().find(|phase| phase["name"] == "run").expect("a run");
    run["times_ns"] = "HISTFAAAAB".into();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = desk.file("broken.jsonl", text);
    desk.run(&["show", file]).exits(0);
    for form in ["--wide", "--csv", "--json"] {
        let said = desk.run(&["show", file, form]);
        said.exits(1).complains("broken.jsonl: the op times of redis in block 2, phase run, cannot be read: ");
    }
}
