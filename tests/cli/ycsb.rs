//! YCSB's workloads: reads, updates, inserts, scans, and writes of what was read.

use kvfair::model::trial::Transport;

use crate::common;
use crate::common::desk::Desk;

const SMALL: [&str; 5] = ["--blocks", "1", "--requests=2000", "--records=700", "--values=200"];

#[test]
fn every_workload_runs_on_every_kind_of_store_and_its_end_state_is_looked_at() {
    let targets = ["null", "ram", "lmdb", "sqlite", "redis+unix", "memcached", "mariadb+unix"];
    for workload in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-f"] {
        let desk = Desk::new();
        desk.run(&[&["run", workload], &SMALL[..], &targets].concat()).exits(0);
        let records = desk.records();
        assert_eq!(records.len(), targets.len());
        for record in records {
            let target = record["target"]["label"].as_str().unwrap();
            let kind = if target == "null" { "baseline" } else { "right" };
            assert_eq!(record["verdict"]["kind"], kind, "{workload} on {target}");
            let run = &record["phases"][1];
            assert_eq!(run["units"].as_u64(), Some(2000), "{workload} on {target}");
            let ops = run["ops"].as_u64().unwrap();
            let expected = if workload == "ycsb-f" { 2_850..3_150 } else { 2_000..2_001 };
            assert!(expected.contains(&ops), "{workload} on {target}: {ops} ops");
            let keys = record["verdict"]["keys"].as_u64().unwrap_or(700);
            let expected = if workload == "ycsb-d" && target != "null" { 750..850 } else { 700..701 };
            assert!(expected.contains(&keys), "{workload} on {target}: {keys} keys");
        }
    }
}

#[test]
fn scans_are_for_stores_that_keep_their_keys_in_order() {
    let desk = Desk::new();
    let ordered = ["lmdb", "sqlite", "redb", "fjall", "mariadb+unix", "postgres+unix"];
    desk.run(&[&["run", "ycsb-e"], &SMALL[..], &ordered, &["null"]].concat()).exits(0);
    for target in ordered {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], "right", "{target}: {}", record["outcome"]);
        // 50 records a scan on average, each with its key.
        let came = record["phases"][1]["bytes_in"].as_u64().unwrap();
        assert!((17_000_000..22_000_000).contains(&came), "{target}: {came} bytes came");
    }
}

/// What was named and cannot do the job is a mistake that is told before anything starts; what was not named is left
/// out.
#[test]
fn who_has_no_scans_is_refused_by_name_and_left_out_otherwise() {
    let desk = Desk::with_only(&["redis-server"]);
    for target in ["redis", "ram", "tokyotyrant", "berkeleydb"] {
        let said = desk.run(&[&["run", "ycsb-e"], &SMALL[..], &["lmdb", target]].concat());
        said.exits(2).complains(&format!("{target}: {target} cannot read keys in order, which the job ycsb-e needs"));
        said.complains("hint: stores that can: lmdb, sqlite");
    }
    let cached = desk.run(&[&["run", "ycsb-e"], &SMALL[..], &["cached:lmdb"]].concat());
    cached.exits(2).complains("cached:lmdb: the job ycsb-e scans, and a cache does not know the order of keys");
    assert!(desk.records().is_empty(), "nothing was run");
    let all = desk.run(&[&["run", "ycsb-e", "--list"], &SMALL[..]].concat());
    all.exits(0).complains("left out: redis+unix: redis cannot read keys").complains("left out: ram: ram cannot read");
    all.shows("ycsb-e on lmdb").shows("ycsb-e on sqlite");
    assert!(!all.out.contains("redis") && !all.out.contains("ram"), "{}", all.out);
}

#[test]
fn what_is_read_is_written_with_many_questions_under_way() {
    let desk = Desk::new();
    let many = ["--depth", "16", "--clients", "20", "redis+unix", "memcached"];
    for workload in ["ycsb-a", "ycsb-d", "ycsb-f"] {
        desk.run(&[&["run", workload], &SMALL[..], &many].concat()).exits(0).shows("every get was right");
    }
}

#[test]
fn a_store_that_loses_or_changes_records_has_no_numbers() {
    for workload in ["ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f"] {
        for fault in ["drop&after=750", "corrupt&after=750&every=20"] {
            let desk = Desk::new();
            let target = format!("faulty?fault={fault}");
            let said = desk.run(&[&["run", workload], &SMALL[..], &[&target]].concat());
            said.exits(4).shows("FAILED: wrong answers");
        }
    }
}

#[test]
fn what_was_inserted_into_somebody_elses_store_is_taken_away_too() {
    for (store, workload) in [("redis", "ycsb-d"), ("mariadb", "ycsb-e")] {
        let desk = Desk::new();
        let server = common::start(store, Transport::Tcp);
        let url = format!("{store}://{}", server.launch.place);
        desk.run(&[&["run", workload], &SMALL[..], &[&url]].concat()).exits(0);
        assert_eq!(server.open().count().unwrap(), Some(0), "{store}");
    }
}
