//! `kvfair show` as it writes files: a sweep drawn, and histograms for other tools.

use std::collections::BTreeMap;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use kvfair::model::hist::Times;
use kvfair::model::record::Record;

use crate::common::desk::Desk;

const SWEEP: [&str; 7] =
    ["run", "getset", "--blocks=2", "--requests=1000", "--records=500", "--clients=1,3,20", "--output"];
const NGRAMS: [&str; 5] = ["run", "ngrams", "--messages=30", "--blocks=2", "--output"];

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn names_in(desk: &Desk, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(desk.home().join(directory)).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

#[test]
fn a_sweep_is_drawn_beside_its_table() {
    let desk = Desk::new();
    let hostile = "ram?name=%3Cscript%3E%26%22";
    let run = desk.run(&[&SWEEP[..], &["sweep.jsonl", hostile, "null", "redis+unix"]].concat());
    run.exits(0);
    std::fs::create_dir(desk.home().join("new")).expect("a directory");
    let said = desk.run(&["show", "sweep.jsonl", "--svg", "new/sweep.svg"]);
    said.exits(0).complains("chart: new/sweep.svg");
    assert_eq!(said.out, run.out, "the table is printed all the same");
    let svg = read(&desk, "new/sweep.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    // Baselines are in the four plots of the sweep, and not in the two of latencies.
    for (text, panels) in [("&lt;script&gt;&amp;&quot;", 4), ("redis+unix", 6), ("array+unix", 4), ("null", 4)] {
        assert_eq!(svg.matches(&format!(">{text}</text>")).count(), panels, "{text}");
    }
    for text in
        ["sets per second", "CPU us per set, client + server", "gets per second", "CPU us per get, client + server"]
    {
        let is_title = |end: &str| svg.contains(&format!(">{text}{end}</text>"));
        assert!(is_title("") || is_title(" (logarithmic)"), "{text}");
    }
    assert!(
        svg.contains("getset, 1,000 requests · data fits in memory · durability none")
            && svg.contains("bands: lowest to")
    );
    assert!(!svg.contains("<script"), "{svg}");

    desk.run(&["show", "sweep.jsonl", "--svg", "new/sweep.svg"]).exits(1).complains("new/sweep.svg is there already");
    assert_eq!(read(&desk, "new/sweep.svg"), svg);
    desk.run(&["show", "sweep.jsonl", "--svg", "/proc/nowhere/a.svg"]).exits(1).complains("/proc/nowhere");
    desk.run(&["show", "sweep.jsonl", "--svg", "sweep.jsonl/a.svg"]).exits(1).complains("sweep.jsonl");
    assert_eq!(names_in(&desk, "new"), ["sweep.svg"], "nothing else is left behind");
}

/// The picture that a page begins with.
#[test]
fn what_is_no_sweep_is_drawn_as_targets_beside_each_other() {
    let desk = Desk::new();
    desk.run(&[&NGRAMS[..], &["ngrams.jsonl", "ram", "lmdb"]].concat()).exits(0);
    desk.run(&["show", "ngrams.jsonl", "--svg", "ngrams.svg"]).exits(0);
    let svg = read(&desk, "ngrams.svg");
    assert!([">ram<", ">lmdb<", "1.00x"].iter().all(|word| svg.contains(word)), "{svg}");
}

#[test]
fn what_has_no_number_is_not_drawn() {
    let desk = Desk::new();
    desk.run(&[&NGRAMS[..], &["ngrams.jsonl", "null"]].concat());
    let said = desk.run(&["show", "ngrams.jsonl", "--svg", "ngrams.svg"]);
    said.exits(1).complains("ngrams.jsonl: there is no sweep to draw").complains("hint: `kvfair run getset --clients");
    assert_eq!((said.out.as_str(), names_in(&desk, ".")), ("", vec!["ngrams.jsonl".to_string()]));
}

/// What the records hold, by the names that files and tags should have.
fn in_records(desk: &Desk, results: &str) -> BTreeMap<String, Times> {
    let mut all: BTreeMap<String, Times> = BTreeMap::new();
    for line in read(desk, results).lines() {
        let record: Record = serde_json::from_str(line).expect("a record");
        for phase in record.measured() {
            let times = phase.times_ns.times().expect("a histogram");
            if times.count() == 0 {
                continue;
            }
            let name = format!("{}.{}.{}", record.target.label, phase.part, phase.clients);
            all.entry(name).or_default().merge(&times);
        }
    }
    all
}

fn in_log(desk: &Desk, log: &str) -> BTreeMap<String, Histogram<u64>> {
    let text = read(desk, log);
    let entries = IntervalLogIterator::new(text.as_bytes()).map(|entry| entry.expect("an entry"));
    let intervals = entries.filter_map(|entry| if let LogEntry::Interval(found) = entry { Some(found) } else { None });
    let decoded = intervals.map(|interval| {
        let bytes = STANDARD.decode(interval.encoded_histogram()).expect("base64");
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
        (interval.tag().expect("a tag").as_str().to_string(), histogram)
    });
    decoded.collect()
}

#[test]
fn histograms_are_what_was_recorded() {
    let desk = Desk::new();
    desk.run(&[&SWEEP[..], &["sweep.jsonl", "ram", "lmdb"]].concat()).exits(0);
    desk.run(&[&NGRAMS[..], &["ngrams.jsonl", "ram", "null"]].concat()).exits(0);
    for (results, count) in [("sweep.jsonl", 12), ("ngrams.jsonl", 2)] {
        let directory = format!("of/{results}");
        let said = desk.run(&["show", results, "--histograms", &directory]);
        said.exits(0).complains(&format!("histograms: {count} in {directory}"));
        let (recorded, logged) = (in_records(&desk, results), in_log(&desk, &format!("{directory}/histograms.hlog")));
        assert_eq!(recorded.len(), count);
        assert_eq!(logged.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
        assert_eq!(names_in(&desk, &directory).len(), count + 1);
        for (name, times) in &recorded {
            assert_eq!(logged[name], *times.histogram(), "{name}");
            let text = read(&desk, &format!("{directory}/{name}.hgrm"));
            assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{text}");
            let last = text.lines().rfind(|line| !line.starts_with('#')).expect("rows");
            let last: Vec<&str> = last.split_whitespace().collect();
            let max_us = format!("{:.3}", times.max_ns() as f64 / 1000.0);
            assert_eq!(last, [max_us.as_str(), "1.000000000000", &times.count().to_string()], "{name}");
        }
    }
}

#[test]
fn histograms_are_written_over_nothing_and_only_where_there_are_some() {
    let desk = Desk::new();
    desk.run(&[&NGRAMS[..], &["ngrams.jsonl", "ram"]].concat()).exits(0);
    fs::create_dir(desk.home().join("taken")).expect("a directory");
    desk.file("taken/histograms.hlog", "precious\n");
    let said = desk.run(&["show", "ngrams.jsonl", "--histograms", "taken"]);
    said.exits(1).complains("taken/histograms.hlog is there already");
    assert_eq!((read(&desk, "taken/histograms.hlog").as_str(), names_in(&desk, "taken").len()), ("precious\n", 1));
    desk.run(&["show", "ngrams.jsonl", "--histograms", "ngrams.jsonl"]).exits(1).complains("ngrams.jsonl");
    desk.run(&[&NGRAMS[..], &["untimed.jsonl", "--answers-only", "ram"]].concat()).exits(0);
    let said = desk.run(&["show", "untimed.jsonl", "--histograms", "none"]);
    said.exits(1).complains("no op times to write");
    assert!(!desk.home().join("none").exists());
}
