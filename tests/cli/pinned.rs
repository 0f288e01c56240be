//! `--pin`: servers and clients have processors of their own, and everybody is told.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::{Value, json};

use crate::common::desk::{Desk, Started};
use crate::common::needs::{Need, needs};

/// The processors that a process may run on, as the kernel lists them.
fn allowed(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("the kernel tells").trim().to_string()
}

/// "0-2,5" as numbers.
fn numbers(list: &str) -> Vec<u64> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let ranges = list.split(',').map(|range| range.split_once('-').unwrap_or((range, range)));
    ranges.flat_map(|(from, to)| number(from)..=number(to)).collect()
}

fn halves(record: &Value) -> (Vec<u64>, Vec<u64>) {
    let of = |side: &str| {
        let list = record["run"]["pinned"][side].as_array().expect("processors");
        list.iter().map(|number| number.as_u64().expect("a number")).collect()
    };
    (of("server"), of("clients"))
}

#[test]
fn a_job_and_its_server_are_apart() {
    needs!(Need::processors(2));
    let desk = Desk::new();
    let run = ["run", "fans", "redis+unix", "lmdb", "--profiles", "800", "--blocks", "1", "--pin"];
    let started = Started::new(desk.kvfair(&run));
    let trial = desk.wait_until_busy(Desk::trials, 0.05);
    let seen = numbers(&allowed(trial));
    let said = started.wait();
    said.exits(0).shows("server on processor").shows("client on processor");
    let (server, clients) = halves(&desk.record("redis+unix"));
    assert!(!server.is_empty() && seen == clients && server.iter().all(|number| !clients.contains(number)));
    assert_eq!(halves(&desk.record("lmdb")), (server, clients));
    desk.run(&["run", "fans", "redis+unix", "--profiles", "200", "--blocks", "1"]).exits(0);
    assert_eq!(desk.record("redis+unix")["run"]["pinned"], json!(null));
}

/// A program sees where it runs, and where its server does.
#[test]
fn a_program_and_its_server_are_apart() {
    needs!(Need::processors(2));
    let desk = Desk::new();
    let command = "process=$(redis-cli -u {url} info server | tr -d '\\r' | sed -n 's/^process_id://p'); \
                   for one in self $process; do sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/$one/status; done | tr '\\n' ' '";
    desk.run(&["run", "--exec", command, "redis", "--blocks", "1", "--pin"]).exits(0);
    let record = desk.record("redis");
    let ends = record["verdict"]["ends"].as_str().expect("what it printed").to_string();
    let lists: Vec<Vec<u64>> = ends.split_whitespace().map(numbers).collect();
    let (server, clients) = halves(&record);
    assert_eq!(lists, [clients, server]);
}

#[test]
fn somebody_elses_server_stays_where_it_is() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["run", "fans", "redis://127.0.0.1:6379", "--pin"]);
    said.exits(2).complains("--pin: ").complains("kvfair did not start").complains("name `redis`");
}

/// What was pinned is never held against what was not.
#[test]
fn pinned_runs_are_compared_with_their_like() {
    needs!(Need::processors(2));
    let desk = Desk::new();
    for (out, pin) in [("apart.jsonl", &["--pin"][..]), ("together.jsonl", &[])] {
        let run = ["run", "fans", "redis+unix", "--profiles", "100", "--blocks", "1", "--output", out];
        desk.run(&[&run[..], pin].concat()).exits(0);
    }
    desk.run(&["compare", "apart.jsonl", "together.jsonl"]).shows("another pinning: server on processor");
}
