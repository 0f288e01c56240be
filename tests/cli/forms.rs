//! The forms in which a results file is shown: as they were when the file was new, on any machine; all that is known in
//! every one; and of one run only.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use serde_json::Value;

use crate::desk::Desk;

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
];

/// Results of runs of another day, one of which was too loud for ranks (their commands stand in CONTRIBUTING.md).
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

/// `KVFAIR_GOLDEN=write` writes them anew, to be read in the diff.
#[test]
fn results_of_another_day_are_shown_as_they_were_then() {
    let desk = Desk::with_only(&[]);
    let writes = std::env::var_os("KVFAIR_GOLDEN").is_some_and(|what| what == "write");
    for name in RESULTS {
        let file = format!("{name}.jsonl");
        desk.file(&file, results(name));
        for (form, ending) in FORMS {
            let said = desk.run(&[&["show", file.as_str()], *form].concat());
            let file = golden(&format!("{name}.{ending}"));
            if writes {
                fs::write(&file, &said.exits(0).out).expect("written");
            }
            let before = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert_eq!(said.exits(0).out, before, "{name} {form:?}");
        }
    }
}

/// The leaves of a JSON object, by the last parts of their paths.
fn leaves(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            leaves(value, &inner, found);
        }),
        Value::Array(_) | Value::Null => {}
        _ => {
            found.insert(path.to_string());
        }
    }
}

/// What is called otherwise in a table of one line a row.
const CALLED: &[(&str, &str)] = &[
    ("cpu_beside.vs_best.ratio", "cpu_vs_least"),
    ("cpu_beside.vs_best.low", "cpu_vs_least_low"),
    ("cpu_beside.vs_best.high", "cpu_vs_least_high"),
    ("cpu_beside.vs_best.preliminary", "cpu_vs_least_preliminary"),
    ("cpu_beside.slower", "cpu_more"),
    ("cpu_beside.noise_floor", "cpu_noise_floor"),
    ("cpu_beside.noisy", "cpu_noisy"),
    ("status.kind", "status"),
    ("vs_best.ratio", "vs_best"),
    ("vs_best.preliminary", "vs_best_preliminary"),
    ("cpu_vs_least.ratio", "cpu_vs_least"),
    ("rated.rate", "rate_per_s"),
    ("rated.kept", "rate_kept"),
];

/// What says which columns there are, or is told by another one.
const LEFT_OUT: &[&str] =
    &["of_requests", "of_trace", "beside.blocks", "beside.is_best", "cpu_beside.blocks", "cpu_beside.is_best"];

#[test]
fn a_csv_file_tells_all_that_the_json_tells() {
    for name in RESULTS {
        let json: Value = serde_json::from_str(&fs::read_to_string(golden(&format!("{name}.json"))).unwrap()).unwrap();
        let csv = fs::read_to_string(golden(&format!("{name}.csv"))).unwrap();
        let columns: BTreeSet<&str> = csv.lines().next().unwrap().split(',').collect();
        let rows = json.as_array().unwrap();
        assert_eq!(csv.lines().count(), 1 + rows.len(), "{name}");
        let mut found = BTreeSet::new();
        rows.iter().for_each(|row| leaves(row, "", &mut found));
        assert!(found.len() > 25, "{name}: {found:?}");
        for path in found {
            let is_left_out = LEFT_OUT.contains(&path.as_str());
            let called = CALLED.iter().find(|(end, _)| path.ends_with(end)).map(|(_, name)| name.to_string());
            let parts: Vec<&str> = path.split('.').collect();
            let versus = |part: &str| part.starts_with("vs_") || part.ends_with("_least") || part == "cut_off";
            let column = match parts.as_slice() {
                [.., outer, last] if versus(outer) => format!("{outer}_{last}"),
                [.., last] => last.to_string(),
                [] => String::new(),
            };
            let column = called.unwrap_or(column);
            assert!(is_left_out || columns.contains(column.as_str()), "{name}: no column {column} for {path}");
        }
    }
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
        desk.run(&["show", "power.jsonl"]).exits(0).out.clone()
    };
    let (on_disk, in_memory) = (shown(false), shown(true));
    assert!(on_disk.contains(" rank ") && !on_disk.contains("tmpfs"), "{on_disk}");
    assert!(
        in_memory.contains("What the class promises cannot hold here (tmpfs): times are not ranked."),
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
    desk.run(&["compare", "--base", "ram", "--head", "null", "--csv"]).exits(2).complains("--csv is no option of");
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
