//! Trials of a larger job, as a first look runs them, in a file.

use serde_json::Value;

use crate::common::desk::Desk;

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
