//! `getset` and `mixed`: requests by many clients, on engines in the process and on servers.

use kvfair::model::trial::Transport;
use serde_json::Value;

use crate::common;
use crate::common::desk::Desk;

const SWEEP: [&str; 7] = ["run", "getset", "--blocks", "1", "--requests", "2000", "--records=1000"];

/// Everything that the post's curve is made of, for whatever store.
#[test]
fn a_sweep_has_a_point_for_each_number_of_clients_and_every_answer_is_looked_at() {
    let desk = Desk::new();
    let targets =
        ["ram", "null", "lmdb", "redis", "redis+unix", "memcached+unix", "memcached?protocol=meta", "tokyotyrant+unix"];
    let said = desk.run(&[&SWEEP[..], &["--clients", "1,3..5:2,40"], &targets].concat());
    said.exits(0).shows("sets per second").shows("CPU us per get, client + server").shows("every get was right");
    let ceilings = ["array", "array+unix", "array+unix?protocol=text"];
    let records = desk.records();
    assert_eq!(records.len(), targets.len() + ceilings.len());
    for record in records {
        let target = &record["target"]["label"];
        let kind = if target == "null" { "baseline" } else { "right" };
        assert_eq!(record["verdict"]["kind"], kind, "{target}");
        let phases = record["phases"].as_array().expect("phases");
        let mut points: Vec<(u64, &str)> = Vec::new();
        // With many processors the most clients ask once more.
        let plain = phases.iter().filter(|phase| phase["doubled"] != true);
        for phase in plain.filter(|phase| phase["name"] != "load" && phase["name"] != "final_flush") {
            assert_eq!((phase["units"].as_u64(), phase["ops"].as_u64()), (Some(2000), Some(2000)), "{target}");
            points.push((phase["clients"].as_u64().unwrap(), phase["name"].as_str().unwrap()));
        }
        points.sort_unstable();
        let expected = [1, 3, 5, 40].into_iter().flat_map(|clients| [(clients, "get"), (clients, "set")]);
        assert_eq!(points, expected.collect::<Vec<_>>(), "{target}");
    }
    desk.run(&["show", "--stat", "best"]).exits(0).shows("best block: nothing is claimed");
    desk.run(&["show", "--stat", "mean"]).exits(2).complains("neither median nor best");
    let rows = desk.rows();
    assert!(rows.iter().all(|point| point["units_per_s"].as_f64().unwrap() > 0.0));
    // Beside each way to a server that is spoken by our own codecs stands what that way allows.
    assert_eq!(rows.len(), 8 * (targets.len() + ceilings.len()));
    for row in rows {
        let target = row["target"].as_str().unwrap();
        assert_eq!(
            row["ceiling_share"].is_number(),
            ["redis", "redis+unix", "memcached+unix"].contains(&target),
            "{row}"
        );
        assert!(row["ceiling_share"].as_f64().is_none_or(|share| share > 0.01 && share < 10.0), "{row}");
    }
    for ceiling in ceilings {
        assert_eq!(desk.record(ceiling)["verdict"]["kind"], "right", "{ceiling}");
    }
}

#[test]
fn many_requests_of_one_client_are_under_way_where_there_is_a_line() {
    let desk = Desk::new();
    let sweep = [&SWEEP[..], &["--clients", "2,50", "--depth", "16"]].concat();
    let said = desk.run(&[&sweep[..], &["redis+unix", "memcached", "memcached?protocol=binary", "ram"]].concat());
    said.exits(1).shows("ram refused: ram answers one question at a time: it has no --depth");
    for target in ["redis+unix", "memcached", "memcached?protocol=binary"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

/// What a store loses or changes on its own is no number.
#[test]
fn a_store_that_loses_or_changes_values_has_no_points() {
    for (fault, said) in [
        ("drop&after=1500", "found an older value"),
        ("corrupt&after=1500&every=50", "32 bytes"),
        ("stale&after=1500", "0 bytes"),
    ] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}");
        let run = desk.run(&[&SWEEP[..], &["--clients", "2", &target]].concat());
        run.exits(4).shows("FAILED: wrong answers").shows(said);
    }
}

#[test]
fn somebody_elses_server_is_left_as_empty_as_it_was() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}", server.launch.place);
    desk.run(&[&SWEEP[..], &["--clients", "5", "--depth", "3", &url]].concat()).exits(0);
    assert_eq!(server.open().count().unwrap(), Some(0));
}

const MIXED: [&str; 7] = ["run", "mixed", "--blocks", "1", "--requests", "5000", "--records=500"];

/// One number of clients: rows as of any other job.
#[test]
fn gets_and_sets_come_mixed_and_the_end_state_is_looked_at() {
    let desk = Desk::new();
    let targets = ["ram", "null", "lmdb", "redis+unix", "memcached", "tokyotyrant+unix", "cached:redis?memory=1MB"];
    for keys in ["uniform", "zipf:1.2", "latest", "hotspot:10/90", "sequential"] {
        let said = desk.run(&[&MIXED[..], &["--writes", "20", "--keys", keys], &targets].concat());
        said.exits(0).shows("every get was right");
        let records = desk.records();
        for record in &records[records.len() - targets.len()..] {
            let target = record["target"]["label"].as_str().unwrap();
            let kind = if target == "null" { "baseline" } else { "right" };
            assert_eq!(record["verdict"]["kind"], kind, "{target}");
            assert_eq!(record["job"]["load"]["keys"], keys);
            let names: Vec<&str> =
                record["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["load", "run", "final_flush"], "{target}");
            let run = &record["phases"][1];
            assert_eq!((run["clients"].as_u64(), run["units"].as_u64()), (Some(10), Some(5000)), "{target}");
            // 20 sets to 50 gets of 2,048 bytes: what goes out is a fraction of what comes in.
            let (out, came) = (run["bytes_out"].as_u64().unwrap(), run["bytes_in"].as_u64().unwrap());
            assert!((2_500_000..3_500_000).contains(&out), "{target}: {out} bytes out");
            assert!(target == "null" || (6_800_000..7_800_000).contains(&came), "{target}: {came} bytes in");
        }
    }
}

#[test]
fn mixed_requests_can_be_swept_and_pipelined() {
    let desk = Desk::new();
    let said = desk.run(&[&MIXED[..], &["--clients", "2,30", "--depth", "8", "redis", "memcached+unix"]].concat());
    said.exits(0).shows(" requests per second").shows("every get was right");
}

#[test]
fn a_store_that_loses_or_changes_values_has_no_mixed_numbers() {
    for (fault, said) in [("drop&after=600", "found an older value"), ("corrupt&after=600&every=50", "bytes")] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}");
        desk.run(&[&MIXED[..], &["--writes", "50", &target]].concat())
            .exits(4)
            .shows("FAILED: wrong answers")
            .shows(said);
    }
}

/// A server that we started, one on this machine that we did not start and may look at, an engine in our process.
#[test]
fn a_store_is_watched_by_the_second() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}", server.launch.place);
    // At this rate the requests take 2.5 s, however fast the store is.
    let rated = ["run", "mixed", "--blocks", "1", "--records", "500", "--rate", "2000", "--requests", "5000"];
    desk.run(&[&rated[..], &["redis", &url, "lmdb"]].concat()).exits(0);
    let records = desk.records();
    assert_eq!(records.len(), 3);
    for record in &records {
        let run = &record["phases"][1];
        let (took_s, seconds) = (run["took_s"].as_f64().unwrap(), run["store_by_second"].as_array().unwrap());
        let target = record["target"]["label"].as_str().unwrap();
        assert!(
            took_s > 2.2 && (2..=took_s as usize + 1).contains(&seconds.len()),
            "{target}: {seconds:?} of {took_s}"
        );
        let numbers = |name: &str| -> Vec<f64> {
            seconds.iter().map(|second| second[name].as_f64().expect("a number")).collect()
        };
        let cpu_s: f64 = numbers("cpu_s").iter().sum();
        // In a process of its own, or in the trial's.
        let usage = if target == "lmdb" { &run["client"] } else { &run["server"] };
        let all_s = usage["user_s"].as_f64().unwrap() + usage["system_s"].as_f64().unwrap();
        assert!(cpu_s > 0.0 && cpu_s <= all_s + 0.1, "{target}: {cpu_s} s by the second of {all_s} s");
        assert!(numbers("anonymous_bytes").iter().all(|bytes| *bytes > f64::from(1 << 20)), "{target}: {seconds:?}");
    }
}

/// Values of each size are other records: all are loaded anew, and the last size is what the end state is judged by.
#[test]
fn sizes_of_values_and_batches_can_be_swept() {
    let desk = Desk::new();
    let targets = ["ram", "lmdb", "redis+unix", "memcached", "tokyotyrant+unix", "mariadb+unix"];
    let sizes = ["--values", "20,1k,50k", "--clients", "3", "--records", "50", "--requests", "600"];
    let said = desk.run(&[&["run", "getset", "--blocks", "1", "--wide"], &sizes[..], &targets].concat());
    said.exits(0).shows(" bytes ").shows(" 50,000 ").shows("50 records hold some client's").shows(" of 50,000 bytes");
    let batches = ["--batch", "1,7,100", "--clients", "3", "--records", "500", "--requests", "600"];
    let said = desk.run(&[&["run", "getset", "--blocks", "1"], &batches[..], &targets].concat());
    said.exits(0).shows(" batch ").shows("every get was right").shows(" keys at once");
    let records = desk.records();
    let is_named = |record: &&Value| record["target"]["baseline"] == false || record["target"]["label"] == "ram";
    let kinds: Vec<&Value> = records.iter().filter(is_named).map(|record| &record["verdict"]["kind"]).collect();
    assert_eq!(kinds, ["right"].repeat(2 * targets.len()));
    let (sized, batched) = records.split_at(records.len() / 2);
    for record in sized.iter().filter(|record| record["target"]["label"] == "lmdb") {
        let loads: Vec<u64> = bytes(record, "load").collect();
        assert_eq!(loads.iter().sum::<u64>(), 50 * (3 * 16 + 20 + 1_000 + 50_000), "{loads:?}");
    }
    for record in batched.iter().filter(|record| record["target"]["label"] == "redis+unix") {
        let ops = |part: &str| {
            let phases = record["phases"].as_array().unwrap().iter().filter(|phase| phase["name"] == part);
            let mut ops: Vec<u64> = phases.map(|phase| phase["ops"].as_u64().unwrap()).collect();
            ops.sort_unstable();
            ops
        };
        // Each of three clients asks for 200 keys: two batches of 100, 29 of 7.
        assert_eq!((ops("set"), ops("get")), (vec![6, 87, 600], vec![6, 87, 600]));
    }
}

/// Each key has a length of its own, which every read and the end state are held to.
#[test]
fn lengths_of_values_can_differ_from_key_to_key() {
    let desk = Desk::new();
    for (values, mean) in [("etc", 100.0..400.0), ("1-2k", 950.0..1_050.0)] {
        let targets = ["ram", "lmdb", "redis+unix", "memcached", "tokyotyrant+unix"];
        let said = desk.run(&[&SWEEP[..], &["--clients", "4", "--values", values], &targets].concat());
        said.exits(0).shows("every get was right").shows("bytes");
        let loaded: u64 = bytes(&desk.record("lmdb"), "load").sum();
        assert!(mean.contains(&(loaded as f64 / 1_000.0 - 16.0)), "{values}: {loaded} bytes");
    }
    let faulty =
        desk.run(&[&SWEEP[..], &["--values", "16-400", "--clients", "2", "faulty?fault=drop&after=1500"]].concat());
    faulty.exits(4).shows("found an older value");
}

/// One batch is the same at every number of clients.
#[test]
fn many_clients_can_ask_for_many_keys_at_once() {
    let desk = Desk::new();
    let said = desk.run(&[&SWEEP[..], &["--clients", "2,5", "--batch", "10", "redis+unix", "ram"]].concat());
    said.exits(0).shows("2 to 5 clients in a closed loop, 10 keys at once");
    let record = desk.record("redis+unix");
    let phases = record["phases"].as_array().unwrap().iter().filter(|phase| phase["name"] == "set");
    let phases = phases.filter(|phase| phase["doubled"] != true);
    let mut points: Vec<(u64, u64)> =
        phases.map(|phase| (phase["clients"].as_u64().unwrap(), phase["ops"].as_u64().unwrap())).collect();
    points.sort_unstable();
    assert_eq!(points, [(2, 200), (5, 200)]);
}

fn bytes<'a>(record: &'a Value, part: &'a str) -> impl Iterator<Item = u64> + 'a {
    let phases = record["phases"].as_array().unwrap().iter().filter(move |phase| phase["name"] == part);
    phases.map(|phase| phase["bytes_out"].as_u64().unwrap())
}

#[test]
fn a_store_that_loses_or_changes_values_has_no_sizes_or_batches() {
    for (fault, sweep, said) in [
        ("drop&after=3000", ["--values", "20,300"], "found an older value"),
        ("corrupt&after=1000&every=50", ["--values", "20,300"], "bytes"),
        ("corrupt&after=250&every=5", ["--batch", "10,20"], "bytes"),
    ] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}");
        let run =
            ["run", "getset", "--blocks", "1", "--clients", "2", "--records", "200", "--requests", "1000", &target];
        desk.run(&[&run[..], &sweep].concat()).exits(4).shows("FAILED: wrong answers").shows(said);
    }
}

/// What one point takes too long for says nothing of the others, and what it has written is looked at all the same.
#[test]
fn a_point_that_exceeds_its_time_out_is_marked_and_the_others_go_on() {
    let desk = Desk::new();
    let small = ["run", "getset", "--blocks", "1", "--clients", "3", "--records", "20", "--requests", "8000"];
    let targets = ["ram", "lmdb", "redis+unix"];
    let said = desk.run(&[&small[..], &["--values", "20,8M", "--timeout", "2s"], &targets].concat());
    said.exits(1)
        .shows("Highest set rates measured: ")
        .shows("> 2 s")
        .shows("redis+unix, set of 8,000,000 bytes: > 2 s, ")
        .shows("every get was right");
    for target in targets {
        let record = desk.record(target);
        let kinds = (&record["outcome"]["kind"], &record["verdict"]["kind"]);
        assert_eq!(kinds, (&"finished".into(), &"right".into()), "{target}");
        for phase in record["phases"].as_array().unwrap().iter().filter(|phase| phase["point"] != 0) {
            let (cut_off, units) = (&phase["cut_off"], phase["units"].as_u64().unwrap());
            match phase["point"].as_u64() {
                Some(2) => {
                    let share = cut_off["done_share"].as_f64().unwrap();
                    assert!((share - units as f64 / 8000.0).abs() < 1e-9 && units < 8000, "{target}: {share} {units}");
                    assert_eq!(cut_off["after_s"].as_f64(), Some(2.0));
                }
                _ => assert!(cut_off.is_null() && units == 8000, "{target}: {cut_off} {units}"),
            }
        }
    }
    desk.run(&["show"]).exits(1).shows("> 2 s");
}

/// However many questions were under way, and whatever they were.
#[test]
fn what_was_cut_off_has_the_right_end_state() {
    for run in [
        &["getset", "--clients", "2,9", "--depth", "16"][..],
        &["getset", "--clients", "3", "--batch", "50"],
        &["mixed", "--clients", "2,5", "--writes", "50"],
        &["ycsb-f", "--clients", "2,5", "--depth", "7", "--keys", "uniform"],
        &["ycsb-f", "--clients", "2,5", "--keys", "uniform"],
    ] {
        let desk = Desk::new();
        let small = ["--blocks", "1", "--records", "300", "--requests", "90000000", "--timeout", "1s"];
        // What stands in this process is answered alike: one such store also where each is driven by itself.
        let targets = match run {
            run if run.contains(&"--depth") => &["redis+unix"][..],
            ["mixed", ..] => &["redis+unix", "ram", "lmdb"],
            _ => &["redis+unix", "lmdb"],
        };
        let said = desk.run(&[&["run"], run, &small[..], targets].concat());
        said.exits(1).shows("> 1 s").shows("No point came to its end within its time-out.");
        for target in targets {
            let record = desk.record(target);
            assert_eq!(record["verdict"]["kind"], "right", "{run:?} {target}: {}", record["outcome"]);
        }
    }
    let desk = Desk::new();
    let small = ["run", "mixed", "--clients", "2,5", "--blocks", "1", "--records", "300", "--requests", "90000000"];
    let said = desk.run(&[&small[..], &["--timeout", "1s", "--writes", "50", "faulty?fault=drop&after=5000"]].concat());
    said.exits(4).shows("found an older value");
}

/// What does not end itself is cut off as a whole.
#[test]
fn a_store_that_hangs_in_a_sweep_is_cut_off() {
    let desk = Desk::new();
    let said =
        desk.run(&[&SWEEP[..], &["--clients", "2,3", "--timeout", "1s", "faulty?fault=stall&after=1500"]].concat());
    said.exits(1).shows("> 1 s, ").shows(" % done");
    assert_eq!(desk.records()[0]["outcome"]["kind"], "timed_out");
}

#[test]
fn values_compress_as_far_as_is_asked() {
    let desk = Desk::new();
    let small = ["run", "getset", "--blocks", "1", "--records", "300", "--requests", "300", "--values", "4000"];
    for (percent, packed) in [("0", 90..=101), ("50", 48..=56), ("100", 0..=9)] {
        desk.run(&[&small[..], &["--compressible", percent, "leveldb"]].concat()).exits(0);
        let record = desk.record("leveldb");
        let share = (record["stream"]["zstd_share"].as_f64().expect("a share") * 100.0).round() as u64;
        assert!(packed.contains(&share), "{percent}: {share}");
        desk.run(&["show", "--wide"]).exits(0).shows(&format!("values that zstd packs to {share} %"));
        assert_eq!(record["verdict"]["kind"], "right", "{percent}");
    }
    desk.run(&["run", "fans", "--compressible", "10", "ram"]).exits(2).complains("--compressible is no option of");
}
