//! The first look: every store that is here, a row each, and how ratios change with the job's size. Trials of a larger
//! job, as a first look runs them, in a file.

use serde_json::Value;

use crate::common::desk::{Desk, one_line};

/// It takes a minute, and most of it waits. Beside other tests it must end and say the same.
#[test]
fn a_first_look_says_how_the_gap_changes_with_size_and_leaves_nothing_out_in_silence() {
    let desk = Desk::with_only(&["redis-server"]);
    // One that is far too slow for a minute.
    desk.wrap("valkey-server", "case \"$*\" in *--version*) ;; *) /bin/sleep 3;; esac\nexec \"$real\" \"$@\"");
    let said = desk.run(&[]);
    said.shows("too slow for a first look (--wide): ").shows("next, ");
    let lines = said.out.lines().count();
    assert!(lines <= 20, "{lines} lines:\n{}", said.out);
    let whole = desk.run(&["show", "--wide"]);
    whole.shows("valkey not run: 250 profiles took over 1.5 s with its start and its stop, too slow for a first look");
    let records = desk.records();
    let phases = records.iter().flat_map(|record| record["phases"].as_array().expect("phases"));
    assert!(phases.map(|phase| phase["took_s"].as_f64().expect("seconds")).sum::<f64>() > 0.0);
    let (ahead, counting): (Vec<&Value>, Vec<&Value>) = records.iter().partition(|record| record["ahead"] == true);
    // Fewer are run where the machine is slower than it was for the pilots.
    said.complains("block 1 of 6 to 10 done");
    let units = |record: &Value| record["job"]["units"].as_u64().expect("a size");
    assert!(ahead.iter().all(|record| units(record) == 4 * units(counting[0])));
    let blocks = counting.iter().filter(|record| record["target"]["label"] == "lmdb" && record["block"] != 0).count();
    assert!(blocks >= 2, "{blocks}");
    let words = one_line(&whole.out);
    // Three where there is time for them.
    let is_told = [" trials there): ", " (one trial there): "].iter().any(|trials| words.contains(trials));
    let is_asked = is_told && words.contains("`kvfair run fans --profiles 10000 ");
    let is_expected = words.contains(" At 10,000 expect ") && words.contains("x for redis");
    let is_hidden = words.contains("The noise hides what to expect at 10,000");
    // On a machine that is slow enough no server is looked at, and nothing is told of its gap.
    let no_server = words.contains(" redis not run: 250 profiles took over 1.5 s");
    assert!(if no_server { !is_told } else { is_asked && (is_expected || is_hidden) }, "{words}");
    let least = if no_server { 1 } else { 2 };
    assert!(ahead.len() >= least, "an embedded store and a server: {}", said.err);
    // The larger job is in no row, and the file says the same.
    let shown = desk.run(&["show"]);
    assert_eq!((shown.code, &shown.out), (said.code, &said.out));
    let rows = desk.rows();
    let lmdb = rows.iter().find(|row| row["target"] == "lmdb").expect("a row");
    let counted = lmdb["units_per_s"].as_f64().expect("a rate") * lmdb["took_s"].as_f64().unwrap();
    assert_eq!(counted.round() as u64, units(counting[0]));
    desk.run(&["show", "--all"]).shows("larger");
    desk.run(&["show", "--all", "--csv"]).shows("larger");
}

/// Two sizes in one file are a mistake, unless the larger one is said to be that.
#[test]
fn a_larger_job_is_no_excuse_for_other_data() {
    let desk = Desk::new();
    desk.run(&["run", "ngrams", "--messages", "60", "--blocks", "1", "--output", "one.jsonl", "lmdb"]).exits(0);
    let mut record: Value = crate::common::desk::records_in(&desk.home().join("one.jsonl")).remove(0);
    let first = record.to_string();
    let shows =
        |name: &'static str, record: &Value| desk.run(&["show", desk.file(name, format!("{first}\n{record}\n"))]);
    record["stream"]["units"] = 240.into();
    record["stream"]["sha256"] = "0".repeat(64).into();
    shows("mixed.jsonl", &record).exits(1).complains("another data");
    record["ahead"] = true.into();
    shows("ahead.jsonl", &record).exits(0);
    record["job"]["data"]["recipe"]["seed"] = 99.into();
    shows("other.jsonl", &record).exits(1).complains("another data");
}
