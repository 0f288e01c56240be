//! Versions of a store in the same blocks, and results files over time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::common::desk::{Desk, one_line, real, records_in};
use crate::common::slower::slower_redis;

const OUT: &str = "out.jsonl";
const METHOD: u32 = kvfair::model::trial::METHOD;
/// A job that is over at once.
const SMALL: &[&str] = &["--only", "set", "--clients", "1", "--requests", "600", "--records", "100"];

fn measured(desk: &Desk, versions: &[&str], more: &[&str]) -> crate::common::desk::Said {
    let said = desk.run(&[&["history", "getset"], versions, SMALL, more, &["--output", OUT]].concat());
    let told = desk.json(&[OUT]);
    // Without a verdict only where the machine was noisy, as the file says too.
    let code = if told["cost"] == "seconds" { Some(0) } else { told["verdict"]["exit_code"].as_i64() };
    said.exits(code.and_then(|code| i32::try_from(code).ok()).filter(|code| [0, 6].contains(code)).expect("a code"));
    said
}

/// What has to be said of a step.
fn words_of(told: &Value, step: &Value) -> String {
    match &told["unjudged"] {
        _ if !step["claim"].is_null() && told["cost"] == "seconds" => " takes ".to_string(),
        _ if !step["claim"].is_null() => "as much CPU as ".to_string(),
        Value::String(why) => format!(" nothing can be said: {why}"),
        _ if step["depends_on_data"] == true => ": which is faster depends on the data".to_string(),
        _ => " no step is seen".to_string(),
    }
}

/// Version numbers are those that the servers tell.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn two_versions_of_redis_run_in_the_same_blocks() {
    let desk = Desk::new();
    let old = format!("redis+unix?program={}", real("redis-server-6.2").display());
    let more = ["--blocks", "4", "--html", "page.html", "--svg", "steps.svg"];
    let said = measured(&desk, &[&old, "redis+unix"], &more);
    said.shows("redis 6.2.").shows("versions in their order").complains("redis+unix: ");
    let told = desk.json(&[OUT]);
    let words = words_of(&told, &told["steps"][0]);
    assert!(one_line(&said.out).contains(&words), "{words}: {}", said.out);
    // The run's own tables call them by their versions too; the command that goes on has what was typed.
    let (above, _) = said.out.split_once("versions in their order").expect("both parts");
    assert!(above.lines().all(|line| line.starts_with("next") || !line.contains("program=")), "{above}");
    let records = records_in(&desk.home().join(OUT));
    assert!(records.iter().all(|record| record["verdict"]["kind"] == "right"), "{records:?}");
    let versions = |block: u64| {
        let of = records.iter().filter(|record| record["block"] == block && record["aa_control"] != true);
        of.map(|record| record["store"]["version"].to_string()).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((1..=4).map(versions).collect::<Vec<_>>(), [2; 4]);
    let read = |name: &str| fs::read_to_string(desk.home().join(name)).expect("it was written");
    assert!(read("page.html").contains("<h2>Versions</h2>") && read("steps.svg").contains("redis 6.2."));
    assert_eq!(desk.run(&["show", OUT]).out, said.out, "the same again");
}

/// Each write burns 60 us of CPU more than in the first version, whatever else the machine does.
#[cfg(target_os = "linux")]
#[test]
fn a_slower_build_has_a_larger_ratio_to_the_first_one() {
    let desk = Desk::with_only(&["redis-server"]);
    let slower = slower_redis(&desk, 60);
    measured(&desk, &["redis+unix", "redis+unix?name=same", &slower], &["--blocks", "4", "--json"]);
    let told = desk.json(&[OUT]);
    let versions = told["versions"].as_array().expect("versions");
    let names: Vec<&str> = versions.iter().map(|row| row["name"].as_str().expect("a name")).collect();
    // All of one version: they are called by their targets.
    assert_eq!(names, ["redis+unix", "same", "slower"]);
    let ratio = versions[2]["cpu_versus_first"]["ratio"].as_f64().expect("a ratio");
    assert!(ratio > 1.5, "{told}");
    assert!(versions[0]["seconds_versus_first"].is_null());
    let steps = told["steps"].as_array().expect("steps");
    let between: Vec<[&Value; 2]> = steps.iter().map(|step| [&step["from"], &step["to"]]).collect();
    assert_eq!(between, [[&json!(0), &json!(1)], [&json!(1), &json!(2)]]);
}

#[test]
fn a_version_that_does_not_start_is_named_with_its_message_and_nothing_is_measured() {
    let desk = Desk::new();
    let program = desk.home().join("broken");
    fs::write(&program, "#!/bin/sh\necho 'cannot load libssl.so.1.1' >&2\nexit 1\n").expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let words = ["history", "getset", "redis+unix", "redis+unix?program=./broken"];
    let said = desk.run(&[&words[..], SMALL].concat());
    said.exits(3).complains("redis+unix?program=./broken does not start").complains("cannot load libssl.so.1.1");
    said.complains("hint: nothing was measured");
    assert!(desk.records().is_empty() && said.out.is_empty(), "{}", said.out);
    let said = desk.run(&["history", "getset", "redis+unix", "redis+unix?program=./nothing"]);
    said.exits(2).complains("/nothing is no program that can be run");
}

#[test]
fn what_is_no_history_is_refused_before_anything_is_measured() {
    let desk = Desk::new();
    let refused = |words: &[&str], what: &str| {
        desk.run(&[&["history"], words].concat()).exits(2).complains(what);
    };
    refused(&["getset", "redis"], "one version has no history: 'redis' has nothing beside it");
    refused(&["getset"], "no version is named");
    refused(&["getsett", "redis", "valkey"], "'getsett' is no job and no file");
    refused(&["getset", "redis", "redis"], "two targets are called 'redis'");
    refused(&["getset", "redis", "valkey", "--clients", "1,10"], "versions are compared at one point");
    refused(&["mixed", "redis", "valkey", "--rate", "5k"], "--rate is no option of history");
    refused(&["--blocks", "4"], "--blocks is for versions");
    desk.run(&["history"]).exits(1).complains("no results yet");
    assert!(desk.records().is_empty(), "nothing was run");
}

/// The records of a small run, which all tests share.
fn measured_once() -> &'static [Value] {
    static RECORDS: OnceLock<Vec<Value>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let desk = Desk::new();
        let run = ["run", "fans", "redis+unix", "ram", "--profiles", "30", "--blocks", "4", "--output", "one.jsonl"];
        desk.run(&run).exits(0);
        records_in(&desk.home().join("one.jsonl"))
    })
}

/// The records of a small run, as often as there are days, with times of their own: `of` gives those of a day's targets
/// in seconds, the method, the processors of the machine, and the store's version.
fn days(desk: &Desk, days: u32, of: impl Fn(u32) -> (f64, u32, u32, &'static str)) {
    let records = measured_once();
    let directory = desk.home().join("kvfair-results");
    fs::create_dir_all(&directory).expect("a directory");
    for day in 1..=days {
        let (took_s, method, cpus, version) = of(day);
        let edited = records.iter().map(|record| {
            let mut record = record.clone();
            let block = record["block"].as_u64().expect("a block");
            let is_redis = record["target"]["label"] == "redis+unix";
            // A little of the day's and the block's own, the same for both targets.
            let wobble = 1.0 + ((u64::from(day) * 7 + block * 3) % 11) as f64 / 2e3;
            for phase in record["phases"].as_array_mut().expect("phases") {
                phase.as_object_mut().expect("a phase").remove("noise");
                phase["took_s"] = json!(if is_redis { took_s } else { 0.1 } * wobble);
            }
            // What the machine did while the records were made is no part of this.
            record.as_object_mut().expect("a record").remove("noise");
            record["run"]["began"] = json!(format!("202611{day:02}T020000Z"));
            record["method"] = json!(method);
            record["machine"]["cpus"] = json!(cpus);
            if is_redis {
                record["store"]["version"] = json!(version);
                record["store"]["command"] = json!([format!("/opt/redis-{version}/redis-server")]);
            }
            format!("{record}\n")
        });
        let name = format!("202611{day:02}T020000Z-fans.jsonl");
        fs::write(directory.join(name), edited.collect::<String>()).expect("a results file");
    }
}

#[test]
fn a_change_over_time_is_found_with_the_command_that_decides() {
    let desk = Desk::new();
    days(&desk, 20, |day| if day > 10 { (0.3, METHOD, 2, "2.0") } else { (0.25, METHOD, 2, "1.0") });
    desk.file("kvfair-results/broken.jsonl", "{}\n");
    let said = desk.run(&["history", "--html", "page.html", "--svg", "time.svg"]);
    said.exits(0)
        .shows("1 change may be a store's")
        .shows("redis+unix: maybe since 2026-11-11 02:00 1.20 times as much");
    said.shows("redis 1.0 -> redis 2.0")
        .shows("seconds, ratio to ram")
        .complains("skipped kvfair-results/broken.jsonl");
    let base = "--base 'redis+unix?program=/opt/redis-1.0/redis-server'";
    let head = "--head 'redis+unix?program=/opt/redis-2.0/redis-server'";
    said.shows(&format!("decide: kvfair compare fans {base} {head} --profiles 30 --blocks 4"));
    let read = |name: &str| fs::read_to_string(desk.home().join(name)).expect("it was written");
    assert!(read("page.html").contains("<h2>fans, redis+unix</h2>") && read("time.svg").contains("fans, redis+unix"));
    let told = desk.run(&["history", "--json", "--measure", "seconds"]);
    let told: Value = serde_json::from_str(&told.exits(0).out).expect("JSON");
    assert_eq!(told["setups"][0]["series"].as_array().expect("series").len(), 2, "{told}");
    desk.run(&["history", "--markdown"]).exits(0).shows("| redis+unix ");
    desk.run(&["history", "--svg", "time.svg"]).exits(1).complains("is there already");
}

#[test]
fn histories_of_two_methods_and_of_two_machines_end_their_lines() {
    let desk = Desk::new();
    days(&desk, 20, |day| (0.25, if day > 10 { METHOD } else { 1 }, 2, "1.0"));
    // What another method measured cannot be read, and is no part of a line.
    let said = desk.run(&["history"]);
    said.exits(0).shows("10 of 10").shows("10 runs, 2026-11-11 to 2026-11-20");
    said.complains("skipped kvfair-results/20261101T020000Z-fans.jsonl:1: measured by method 1");
    said.shows("The lines of fans break where method 1 measured (10 runs, the last 2026-11-10 02:00)");
    desk.run(&["history", "--svg", "methods.svg"]).exits(0);
    let svg = std::fs::read_to_string(desk.home().join("methods.svg")).expect("a picture");
    assert!(svg.contains("method 1: not comparable"), "{svg}");
    let desk = Desk::new();
    days(&desk, 8, |day| (0.25, METHOD, if day > 4 { 64 } else { 2 }, "1.0"));
    let said = desk.run(&["history"]);
    said.exits(0).shows("end at another machine: ").shows("4 of 10 runs; until then: kvfair compare ");
}

#[test]
fn one_run_is_no_history_yet() {
    let desk = Desk::new();
    days(&desk, 1, |_| (0.25, METHOD, 2, "1.0"));
    let said = desk.run(&["history", "kvfair-results/20261101T020000Z-fans.jsonl", "--html", "page.html"]);
    said.exits(0).shows("1 of 10 runs").shows("a second one can be compared with it");
    desk.file("empty.jsonl", "");
    desk.run(&["history", "empty.jsonl"]).exits(1).complains("no results file has a run that can be followed");
    desk.run(&["history", "kvfair-results/nothing.jsonl"]).exits(2).complains("is no job and no file");
}
