//! Batch engines beside stores: the same counts, their rows, and what is refused or wrong.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::desk::{Desk, Said, Started};
use crate::common::needs::{Need, are_met, tools};

const ENGINES: [&str; 3] = ["duckdb", "polars", "sort"];

/// The Python libraries of the engines.
fn libraries() -> PathBuf {
    tools().join("python")
}

fn engines() -> [Need; 2] {
    ["python/duckdb", "python/polars"].map(Need::tool)
}

fn ngrams(desk: &Desk, arguments: &[&str]) -> Said {
    let mut kvfair = desk.kvfair(&[&["run", "ngrams"], arguments].concat());
    kvfair.env("PYTHONPATH", libraries());
    Started::new(kvfair).wait()
}

fn terms(record: &Value) -> &Value {
    &record["verdict"]["answer"]["sha256 terms"]
}

#[test]
fn every_engine_counts_what_a_store_counts() {
    if !are_met(&engines()) {
        return;
    }
    let runs: [&[&str]; 4] = [&[], &["--order", "3"], &["--order", "1"], &["--unit", "char", "--order", "4"]];
    for options in runs {
        let desk = Desk::new();
        // It counts words alone.
        let engines = if options.contains(&"char") { &ENGINES[..2] } else { &ENGINES };
        let targets = [&["lmdb"], engines].concat();
        let said = ngrams(&desk, &[&["--messages", "300", "--blocks", "1"], options, &targets].concat());
        said.exits(0).shows("Batch engines: no store, never ranked");
        said.shows("Counting incrementally in lmdb took ").shows(" as long as the batch count by ");
        let records = desk.records();
        let store = &records.iter().find(|record| record["target"]["store"] == "lmdb").expect("the store's record");
        assert_eq!(records.len(), targets.len());
        for record in &records {
            let label = &record["target"]["label"];
            assert_eq!(record["verdict"]["kind"], "right", "{options:?} {label}: {}", record["outcome"]);
            assert_eq!(terms(record), terms(store), "{options:?} {label}");
            assert_eq!(record["verdict"]["keys"], store["verdict"]["keys"], "{options:?} {label}");
            assert_ne!(record["store"]["version"], "", "{label}");
        }
        desk.is_swept();
    }
}

/// Letters with accents, white space of every kind, control characters, quotes and separators of CSV.
#[test]
fn engines_split_odd_messages_as_kvfair_does() {
    if !are_met(&engines()) {
        return;
    }
    let odd = "Na\u{ef}ve K\u{212a} caf\u{e9} \u{130}x \u{df}\n\n \u{85}a\u{2028}b\u{a0}\u{3000}c \u{1c}d\u{1}e\n\
        \"q,u\"\"ote\";'\\n' don't #Tag @ME\n\t\n,\n\"\none\rtwo\r\n\u{65e5}\u{672c} \u{1f600}A\u{301}Z z\n";
    for unit in ["word", "char"] {
        let desk = Desk::new();
        let input = desk.file("odd.txt", odd);
        let engines = if unit == "char" { &ENGINES[..2] } else { &ENGINES };
        let options = ["--input", input, "--format", "text", "--unit", unit, "--order", "3", "--blocks", "1"];
        ngrams(&desk, &[&options[..], &["lmdb"], engines].concat()).exits(0);
        let records = desk.records();
        assert_eq!(records.len(), 1 + engines.len());
        for record in records {
            assert_eq!(record["verdict"]["kind"], "right", "{unit} {}", record["verdict"]);
        }
    }
}

/// An engine is asked in no way: it stands once beside a store that is asked in several, and bad lines are passed over
/// for all.
#[test]
fn an_engine_stands_once_and_reads_the_good_lines() {
    let desk = Desk::new();
    let input = desk.file("messages.txt", b"one two\n\xff\xfe\nthree two\nnever read\n");
    let options = ["--input", input, "--format", "text", "--skip-bad", "1", "--messages", "2", "--blocks", "1"];
    ngrams(&desk, &[&options[..], &["--via", "portable,batch", "lmdb", "sort"]].concat()).exits(0);
    let labels: Vec<String> =
        desk.records().iter().map(|record| record["target"]["label"].as_str().expect("a label").to_string()).collect();
    assert_eq!(labels.iter().filter(|label| label.starts_with("sort")).count(), 1, "{labels:?}");
    assert_eq!(labels.len(), 3, "{labels:?}");
    assert_eq!(terms(&desk.record("sort")), terms(&desk.record("lmdb batch")));
    assert_eq!(desk.record("sort")["verdict"]["keys"], 5);
}

#[test]
fn a_wrong_count_fails_the_trial() {
    let desk = Desk::new();
    desk.wrap("uniq", "\"$real\" \"$@\" | awk 'NR == 3 { $1 += 1 } { print }'");
    let said = ngrams(&desk, &["--messages", "50", "--blocks", "1", "lmdb", "sort"]);
    said.exits(4);
    let verdict = &desk.record("sort")["verdict"];
    assert_eq!((&verdict["kind"], &verdict["wrong_keys"]), (&"wrong".into(), &1.into()), "{verdict}");
    let [expected, found] = ["expected", "found"].map(|name| {
        let count = verdict["first"][name].as_str().and_then(|text| text.parse::<u64>().ok());
        count.expect("a number")
    });
    assert_eq!(expected + 1, found);
    assert_eq!(desk.record("lmdb")["verdict"]["kind"], "right");
}

#[test]
fn a_program_that_fails_or_writes_nonsense_has_no_number() {
    for (script, words) in [
        ("echo no room left >&2; exit 3", "no room left"),
        ("cat >/dev/null; echo nonsense", "line 1 is no term and count"),
    ] {
        let desk = Desk::new();
        desk.wrap("sed", script);
        ngrams(&desk, &["--messages", "50", "--blocks", "1", "lmdb", "sort"]).exits(1);
        let reason = desk.reason("sort");
        assert!(reason.contains(words), "{reason}");
    }
}

#[test]
fn an_engine_that_is_not_installed_is_named_with_how_to_get_it() {
    let desk = Desk::new();
    // The real Python without the libraries of anybody.
    desk.wrap("python3", "exec \"$real\" -I -S \"$@\"");
    let run = ["--messages", "50", "--blocks", "1", "lmdb", "duckdb", "polars"];
    let refused = ngrams(&desk, &run);
    let said = ngrams(&desk, &[&run[..], &["--skip-missing"]].concat());
    refused.exits(3);
    said.exits(0);
    for (name, said) in ["duckdb", "polars"].into_iter().flat_map(|name| [(name, &refused), (name, &said)]) {
        said.complains(&format!("{name} is not here")).complains(&format!("No module named '{name}'"));
        said.complains(&format!("pip install {name}"));
    }
    assert_eq!(desk.record("lmdb")["verdict"]["kind"], "right");
}

#[test]
fn what_an_engine_cannot_do_is_refused_before_anything_starts() {
    let desk = Desk::new();
    for (arguments, words) in [
        (&["run", "fans", "duckdb"][..], "duckdb counts n-grams, all at once"),
        (&["run", "--exec", "true", "sort"], "hint: kvfair run ngrams sort"),
        (&["check", "polars"], "polars counts n-grams, all at once"),
        (&["run", "ngrams", "cached:duckdb"], "hint: leave cached: out"),
        (&["run", "ngrams", "duckdb", "--keep", "kept"], "has no data that could be kept"),
        (&["run", "ngrams", "sort", "--unit", "char"], "counts words, not characters"),
        (&["run", "ngrams", "duckdb:/tmp"], "takes no address and no directory"),
        (&["run", "ngrams", "duckdb?threads=1"], "has no setting 'threads'"),
    ] {
        desk.run(arguments).exits(2).complains(words);
    }
}

/// A row for each target and order, with terms, bytes and seconds.
#[test]
fn orders_of_a_list_are_compared_each_by_itself() {
    let desk = Desk::new();
    let size = ["--messages", "300", "--blocks", "1", "--order", "1,3,2", "--via", "portable,batch"];
    let said = ngrams(&desk, &[&size[..], &["lmdb", "redis", "sort"]].concat());
    said.exits(0).shows("runs of 1 to 1, 3, 2 words").shows("bytes/term");
    let records = desk.records();
    assert_eq!(records.len(), 15);
    // The usual order is not told.
    let order_of = |record: &Value| record["job"]["ngrams"]["order"].as_u64().unwrap_or(2);
    let of = |order: u64| records.iter().filter(move |record| order_of(record) == order);
    let mut keys = Vec::new();
    for order in [1, 2, 3] {
        let first = of(order).next().expect("a record");
        assert!(of(order).all(|record| record["verdict"]["kind"] == "right" && terms(record) == terms(first)));
        let count = first["verdict"]["keys"].as_u64().expect("a number");
        let told = kvfair::model::units::thousands(count);
        let rows: Vec<&str> = said.out.lines().filter(|line| line.contains(&format!("  {order}  {told:>5}"))).collect();
        assert_eq!(rows.len(), 5, "order {order}, {told} terms: {}", said.out);
        keys.push(count);
    }
    assert!(keys.is_sorted() && keys[0] < keys[1] && keys[1] < keys[2], "{keys:?}");
    let rows = desk.json(&[])["rows"].as_array().expect("rows").clone();
    assert_eq!(rows.iter().filter(|row| row["order"] == 3).count(), 5);
    desk.run(&["show", "--csv"]).exits(0).shows("order");
    for (arguments, words) in [
        (&["run", "ngrams", "lmdb", "--order", "2,2"][..], "--order: 2 is named twice"),
        (&["run", "ngrams", "lmdb", "--order", "1,9"], "9 is not in 1..=5"),
        (&["run", "ngrams", "lmdb", "--order", "1,2", "--keep", "kept"], "it takes one --order"),
        (&["run", "ngrams", "lmdb", "--order", "1,2", "--messages", "5,6"], "each has a table of its own"),
        (&["run", "lookup", "lmdb", "--order", "1,2"], "hint: kvfair run ngrams has lists"),
    ] {
        desk.run(arguments).exits(2).complains(words);
    }
}

/// Two stores and DuckDB agree about runs of three words of a million messages.
#[test]
#[ignore = "takes many minutes and some GB: ./test slow"]
fn a_million_messages_are_counted_alike_by_two_stores_and_duckdb() {
    assert!(are_met(&engines()));
    let desk = Desk::new();
    let size = ["--messages", "1000000", "--order", "3", "--blocks", "1", "--no-aa", "--timeout", "3600"];
    let said = ngrams(&desk, &[&size[..], &["--via", "batch", "rocksdb", "redis+unix", "duckdb"]].concat());
    said.exits(0);
    eprintln!("{}", said.out);
    let records = desk.records();
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record["verdict"]["kind"], "right", "{}: {}", record["target"]["label"], record["outcome"]);
        assert_eq!(terms(record), terms(&records[0]));
        assert_eq!(record["stream"]["units"], 1_000_000);
    }
}
