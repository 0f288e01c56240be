//! Recorded traffic: the misses that others published, the same end state from every store, and what a store may have
//! dropped by its own account; bad input by row.

use std::fmt::Write;

use kvfair::model::trial::Transport;
use serde_json::Value;
use sha2::Digest;

use crate::common;
use crate::common::desk::{Desk, Said};
use crate::common::needs::{self, Need, needs};

/// Misses of the least recently used order, by libCacheSim's own tests on its own sample, at 128, 256, ... 1024 MiB.
const PUBLISHED: [u64; 8] = [93_374, 89_783, 83_572, 81_722, 72_494, 72_104, 71_972, 71_704];

fn run(desk: &Desk, arguments: &[&str]) -> Said {
    desk.run(&[&["run", "trace", "--blocks", "1"], arguments].concat())
}

fn misses_of(record: &Value) -> u64 {
    record["phases"][0]["misses"].as_u64().expect("a count")
}

#[test]
fn the_misses_are_those_that_others_published() {
    needs!(Need::published("cloudphysics.oracleGeneral.bin"));
    let file = needs::published("cloudphysics.oracleGeneral.bin");
    let desk = Desk::new();
    let sizes = (1..=8).map(|step| step * 128);
    let targets: Vec<String> = sizes.map(|mib| format!("cached:null?memory={mib}MiB&count=values")).collect();
    let mut arguments = vec!["--input", file.to_str().expect("UTF-8"), "--answers-only", "ram"];
    arguments.extend(targets.iter().map(String::as_str));
    run(&desk, &arguments).exits(0);
    let found: Vec<u64> = targets.iter().map(|target| misses_of(&desk.record(target))).collect();
    assert_eq!(found, PUBLISHED);
    let ram = desk.record("ram");
    assert_eq!((misses_of(&ram), &ram["stream"]["traced"]["misses"]), (48_974, &Value::from(48_974)));
    let bytes_out = desk.record(&targets[0])["phases"][0]["bytes_out"].as_u64().expect("a count");
    assert!(bytes_out < 4_368_040_448 + 113_872 * 60, "no more than was requested, and keys: {bytes_out}");
}

/// All operations on some keys, in an order that matters: each key is set, deleted, added to and got again and again.
fn mixed_up(rows: u64) -> String {
    let mut text = String::new();
    let mut random = 7_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    const OPERATIONS: [&str; 11] =
        ["get", "gets", "set", "add", "replace", "cas", "delete", "append", "prepend", "incr", "decr"];
    for row in 0..rows {
        let (key, bytes, operation) = (draw(40), draw(4) * draw(300), OPERATIONS[draw(11) as usize]);
        writeln!(text, "{},key {key},6,{bytes},{},{operation},0", row / 100, draw(9)).expect("memory");
    }
    text
}

#[test]
fn every_kind_of_store_holds_what_was_set_last() {
    let desk = Desk::new();
    desk.file("all.csv", mixed_up(6_000));
    let targets = ["ram", "redis+unix", "memcached", "lmdb", "sqlite", "cached:redis?memory=5kB", "null"];
    for clients in ["1", "4"] {
        let arguments = [&["--input", "all.csv", "--format", "twitter", "--clients", clients][..], &targets].concat();
        let said = run(&desk, &arguments);
        said.exits(0)
            .shows("skipped (append, prepend, incr, decr)")
            .shows("gets that found nothing")
            .shows("requests/s");
        for target in targets {
            let record = desk.record(target);
            let kind = if target == "null" { "baseline" } else { "right" };
            assert_eq!(record["verdict"]["kind"], kind, "{target}: {}", record["outcome"]);
            let (stream, run) = (&record["stream"], &record["phases"][0]);
            assert_eq!(stream["units"].as_u64().unwrap() + stream["traced"]["unasked"].as_u64().unwrap(), 6_000);
            assert_eq!(run["ops"].as_u64().unwrap(), run["units"].as_u64().unwrap() + misses_of(&record), "{target}");
            let all_missed = if target == "null" { &stream["traced"]["gets"] } else { &stream["traced"]["misses"] };
            assert_eq!(misses_of(&record), all_missed.as_u64().unwrap(), "{target}");
        }
    }
}

/// What is read on the way may be longer than all that is left in the end.
#[test]
fn a_large_value_that_is_gone_in_the_end_is_no_garbled_answer() {
    let desk = Desk::new();
    let rows = ["set", "get", "delete"].map(|operation| format!("0,key,3,10000000,1,{operation},0\n"));
    desk.file("gone.twitter", rows.concat());
    for verify in ["full", "sample"] {
        run(&desk, &["--input", "gone.twitter", "--verify", verify, "redis+unix"]).exits(0);
        assert_eq!(desk.record("redis+unix")["verdict"]["kind"], "right", "{verify}");
    }
}

/// With one key for each row nothing could come in another order; with few keys and many clients, the last write of
/// each is what all of them together leave.
#[test]
fn each_keys_requests_stay_in_order_however_many_clients_there_are() {
    let desk = Desk::new();
    let mut text = String::new();
    (0..20_000).for_each(|row| writeln!(text, "0,{},1,{},1,set,0", row % 7, 20 + row % 50).expect("memory"));
    desk.file("sets.twitter", text);
    run(&desk, &["--input", "sets.twitter", "--clients", "8", "redis+unix", "redis"]).exits(0);
    for target in ["redis+unix", "redis"] {
        assert_eq!(desk.record(target)["verdict"]["keys"], 7, "{target}");
    }
}

#[test]
fn what_a_store_loses_or_spoils_is_found() {
    let desk = Desk::new();
    desk.file("all.csv", mixed_up(3_000));
    let cases = [
        ("drop&after=100&every=100", "first \""),
        ("drop&after=1500&every=9", "first \""),
        ("corrupt&after=100&every=50", "a whole value that was set under this key, or none, found"),
        ("stale&after=1000&every=3", "first \""),
        ("extra&every=100", "(count of records)"),
    ];
    for (fault, words) in cases {
        let target = format!("faulty?fault={fault}");
        run(&desk, &["--input", "all.csv", "--format", "twitter", &target])
            .exits(4)
            .shows("FAILED: wrong")
            .shows(words);
    }
    // The third write is lost, and the get that finds nothing heals it: the number of misses still tells.
    let set = |key: &str| format!("0,{key},1,20,1,set,0\n");
    desk.file("healed.twitter", [set("b"), set("c"), set("a"), set("a").replace("set", "get"), set("a")].concat());
    let said = run(&desk, &["--input", "healed.twitter", "faulty?fault=drop&every=3"]);
    said.exits(4).shows("(gets that found nothing, and keys that are missing)").shows("expected 0, found 1");
    run(&desk, &["--input", "healed.twitter", "faulty"]).exits(0);
}

/// As it is shipped, memcached has 64 MB: what it drops to make room it says, and only then may keys be missing.
#[test]
fn what_was_evicted_by_a_stores_own_account_is_counted_and_is_not_wrong() {
    let desk = Desk::new();
    let mut text = String::new();
    for round in 0..2 {
        (0..700).for_each(|key| writeln!(text, "{round},key {key},7,200000,1,get,0").expect("memory"));
    }
    desk.file("large.twitter", text);
    run(&desk, &["--input", "large.twitter", "--config", "shipped", "memcached+unix", "ram"]).exits(0);
    let verdict = &desk.record("memcached+unix")["verdict"];
    assert_eq!((&verdict["kind"], &verdict["keys_expected"]), (&"right".into(), &700.into()));
    assert!(verdict["keys"].as_u64().is_some_and(|keys| (100..500).contains(&keys)), "{verdict}");
    assert!(misses_of(&desk.record("memcached+unix")) > 1_000);
    let evictions = &desk.record("memcached+unix")["store_stats"]["evictions"];
    assert!(evictions[0] == 0.0 && evictions[1].as_f64().is_some_and(|count| count > 1_000.0), "{evictions}");
    desk.run(&["show", "--wide"]).exits(0).shows("memcached+unix: records dropped to make room +1,");
    assert_eq!(misses_of(&desk.record("ram")), 700);
}

#[test]
fn what_has_a_time_to_live_may_go_and_come_back() {
    let desk = Desk::new();
    let text = format!("0,short,5,30,1,set,1\n0,long,4,30,1,set,9999\n{}", "0,short,5,40,1,get,0\n".repeat(300_000));
    desk.file("brief.twitter", text);
    run(&desk, &["--input", "brief.twitter", "redis", "ram"]).exits(0);
    assert_eq!(misses_of(&desk.record("redis")), 1, "it expired and was set again");
    assert_eq!(desk.record("ram")["counters"]["times to live left out"], 2);
}

#[test]
fn somebody_elses_store_is_left_empty() {
    let desk = Desk::new();
    desk.file("all.twitter", mixed_up(500));
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}", server.launch.place);
    run(&desk, &["--input", "all.twitter", "--clients", "2", &url]).exits(0);
    assert_eq!(server.open().count().unwrap(), Some(0));
}

#[test]
fn a_part_of_a_trace_and_what_is_packed() {
    let desk = Desk::new();
    let text = "9 2 0 0\n5 3 0 1\n".repeat(100);
    desk.file("P1.lis", &text);
    desk.file("P1.lis.zst", zstd::encode_all(text.as_bytes(), 1).expect("memory"));
    for file in ["P1.lis", "P1.lis.zst"] {
        let said = run(&desk, &["--input", file, "--requests", "250", "ram"]);
        said.exits(0).shows("trace, 250 requests").shows("misses 5 of 250 (2.0 %)");
    }
    let read = sha2::Sha256::digest(&text.as_bytes()[..text.len() / 2]);
    let sha256: String = read.iter().map(|byte| format!("{byte:02x}")).collect();
    let records = desk.records();
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record["stream"]["sha256"], sha256, "of what was read, not of its packing nor of what follows");
    }
    run(&desk, &["--input", "P1.lis", "--verify", "sample", "ram"]).exits(0).shows("answers: ");
}

#[test]
fn bad_input_is_named_and_nothing_is_measured() {
    let desk = Desk::new();
    let good = "1,k,1,2,3,get,0\n";
    let fails = |arguments: &[&str], code: i32, words: &str| {
        run(&desk, &[arguments, &["ram"]].concat()).exits(code).complains(words);
    };
    fails(&[], 2, "the job trace replays what was recorded hint: --input FILE (twitter, libcachesim, oracle, arc;");
    desk.file("t.csv", good);
    fails(&["--input", "t.csv", "--format", "arc"], 1, "t.csv:1: 1 field instead of 4: start_block, count");
    fails(&["--input", desk.file("none.twitter", "")], 1, "none.twitter: is empty");
    fails(&["--input", desk.file("incr.twitter", "1,k,1,2,3,incr,0\n")], 1, "incr.twitter: no request in it");
    // Four billion requests of one line are no trace but a mistake, or worse.
    let blocks = desk.file("blocks.lis", "42 4000000000 0 0\n");
    fails(&["--input", blocks], 1, "blocks.lis:1: count: 4,000,000,000 blocks in one request, of at most 1,048,576");
    let text = desk.file("text", "the quick brown fox\n");
    fails(&["--input", text], 1, "text: none of its first lines is a row of recorded traffic its first line (1): the");
    fails(&["--input", text], 1, "0,key7,4,512,1,get,0");
    let mostly = format!("{good}{}", "1,k\n".repeat(2));
    fails(&["--input", desk.file("mostly.csv", mostly), "--skip-bad", "9"], 1, "2 of its lines cannot be used");
    fails(&["--input", "t.csv", "--columns", "1,2"], 1, "--columns: recorded traffic has no columns");
    let comma = format!("{good}1,k,1,2,3,get,0\n1,a,b,3,2,3,get,0\n{good}");
    fails(&["--input", desk.file("comma.twitter", comma)], 1, "comma.twitter:3: 8 fields instead of 7");
    fails(
        &["--input", desk.file("op.twitter", format!("{good}1,k,1,2,3,touch,0\n"))],
        1,
        "op.twitter:2: operation: 'touch'",
    );
    let large = format!("{good}1,k,1,99999999999,3,get,0\n");
    fails(
        &["--input", desk.file("large.twitter", large)],
        1,
        "large.twitter:2: value size: a value of 99,999,999,999 bytes",
    );
    let cut = [0_u8; 60];
    fails(&["--input", desk.file("cut.oracleGeneral.bin", cut)], 1, "cut.oracleGeneral.bin:3: only 12 of the 24 bytes");
    let packed = zstd::encode_all(&[1_u8; 24_000][..], 1).expect("memory");
    fails(&["--input", desk.file("cut.oracleGeneral.zst", &packed[..packed.len() - 5])], 1, "cannot read on: ");
    assert!(desk.records().is_empty(), "nothing was measured");
    run(&desk, &["--input", "comma.twitter", "--skip-bad", "1", "--clients", "2", "ram"])
        .exits(0)
        .shows("1 bad line skipped");
    desk.run(&["data", "trace"]).exits(2).complains("the job trace has no data of its own");
    desk.run(&["jobs"]).exits(0).shows("files --input FILE: twitter, libcachesim, oracle, arc, each also .gz or .zst");
}

#[test]
fn a_key_over_a_stores_limit_is_refused() {
    let desk = Desk::new();
    desk.file("long.twitter", format!("1,{},300,20,1,get,0\n", "k".repeat(300)));
    run(&desk, &["--input", "long.twitter", "memcached", "ram"]).exits(1);
    assert!(desk.reason("memcached").contains("at most 250 bytes"), "{}", desk.reason("memcached"));
    assert_eq!(desk.record("ram")["verdict"]["kind"], "right");
}

/// `mixed_up` has a hundred rows a second: 600 rows are 6 seconds, or half a second at twelve times the speed.
#[test]
fn recorded_times_are_kept_and_scaled() {
    let desk = Desk::new();
    let file = desk.file("mixed.csv", mixed_up(600)).to_string();
    let replayed = ["--input", &file, "--format", "twitter", "--replay", "12x", "--clients", "3"];
    let said = run(&desk, &[&replayed[..], &["ram", "redis+unix", "memcached", "null"]].concat());
    said.exits(0).shows("12 times as fast as recorded").shows("response of a request").shows("misses ");
    let asap = run(&desk, &["--input", &file, "--format", "twitter", "--replay", "asap", "ram?name=asap"]);
    asap.exits(0);
    for target in ["ram", "redis+unix", "memcached", "null"] {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], if target == "null" { "baseline" } else { "right" }, "{target}");
        assert_eq!(record["job"]["replay_percent"], 1200);
        let (run, fast) = (&record["phases"][0], &desk.record("asap")["phases"][0]);
        assert_eq!(run["units"], fast["units"], "{target}");
        let (took_s, due_s) = (run["took_s"].as_f64().unwrap(), run["open"]["due_s"].as_f64().unwrap());
        assert!((0.4..0.5).contains(&due_s) && took_s > due_s - 0.05, "{target}: {due_s} {took_s}");
        assert_eq!(run["open"]["arrivals"], "recorded");
    }
    assert_eq!(misses_of(&desk.record("ram")), misses_of(&desk.record("asap")), "the order of each key is kept");
    let bad = desk.file("bad.csv", format!("{}not a row\n", mixed_up(300))).to_string();
    let said = run(&desk, &["--input", &bad, "--format", "twitter", "--replay", "12x", "ram"]);
    said.exits(1).complains("bad.csv:301");
}
