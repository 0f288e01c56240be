//! `lookup`: the same scores from every store, by each way, and what is refused or wrong.

use serde_json::Value;

use crate::cli::answers::expected;
use crate::common::desk::{Desk, Said, Started, records_in};
use crate::common::needs::{Need, needs};

fn run(desk: &Desk, arguments: &[&str], targets: &[&str]) -> Said {
    desk.run(&[&["run", "lookup", "--blocks", "1"], arguments, targets].concat())
}

/// What an independent program says of the data that was made for these arguments.
fn told(desk: &Desk, messages: &str, order: &str) -> Vec<(String, String)> {
    let data = desk.run(&["data", "lookup", "--messages", messages]);
    let file = desk.file("data.txt", &data.exits(0).out);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/lookup.py");
    let ran = std::process::Command::new("python3")
        .args([program, file, order])
        .current_dir(desk.home())
        .output()
        .expect("python3");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let out = String::from_utf8(ran.stdout).expect("UTF-8");
    out.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, told)| (name.to_string(), told.to_string()))
        .collect()
}

#[test]
fn every_store_gives_the_same_scores_one_by_one_and_many_at_once() {
    let targets = expected();
    let stores: Vec<&str> =
        targets.iter().map(String::as_str).chain(["cached:redis", "dict", "bisect", "fst", "null"]).collect();
    let desk = Desk::new();
    // A server with two transports is asked one by one over TCP, and many at once over a Unix socket.
    let has_unix = |store: &str| stores.contains(&format!("{store}+unix").as_str());
    let by_one: Vec<&str> = stores.iter().copied().filter(|store| !store.ends_with("+unix")).collect();
    let at_once: Vec<&str> = stores.iter().copied().filter(|store| !has_unix(store)).collect();
    assert!(by_one.len() == at_once.len() && by_one.len() > 10, "{by_one:?} {at_once:?}");
    run(&desk, &["--messages", "60", "--via", "portable", "--output", "one.jsonl"], &by_one).exits(0);
    run(&desk, &["--messages", "60", "--via", "batch", "--output", "many.jsonl"], &at_once).exits(0);
    let records = ["one.jsonl", "many.jsonl"].map(|file| records_in(&desk.home().join(file))).concat();
    assert_eq!(records.len(), by_one.len() + at_once.len());
    let told = told(&desk, "60", "2");
    let of = |name: &str| told.iter().find(|(told, _)| told == name).expect("it is told").1.clone();
    for record in &records {
        let label = &record["target"]["label"];
        let verdict = if record["target"]["store"] == "null" { "baseline" } else { "right" };
        assert_eq!(record["verdict"]["kind"], verdict, "{label}: {}", record["outcome"]);
        if verdict == "right" {
            assert_eq!(record["verdict"]["answer"]["sha256 scores"], of("scores"), "{label}");
        }
        let model = &record["stream"]["model"];
        for name in ["lookups", "found", "entries"] {
            assert_eq!(model[name].to_string(), of(name), "{label}: {name}");
        }
        assert_eq!(model["scored"], 6, "{label}");
        let phases = record["phases"].as_array().expect("phases");
        let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
        assert_eq!(names, ["load", "load", "run", "final_flush"], "{label}");
        let ops = if record["job"]["via"] == "batch" { &model["scored"] } else { &model["lookups"] };
        assert_eq!((&phases[2]["ops"], &phases[2]["units"]), (ops, &model["scored"]), "{label}");
    }
}

/// Longer runs, characters, several clients and data of one's own.
#[test]
fn scores_follow_order_unit_and_data() {
    let desk = Desk::new();
    for order in ["1", "3", "5"] {
        run(&desk, &["--messages", "200", "--order", order, "--clients", "3"], &["lmdb", "redis"]).exits(0);
        let told = told(&desk, "200", order);
        for target in ["lmdb", "redis"] {
            assert_eq!(desk.record(target)["verdict"]["answer"]["sha256 scores"], *told[0].1, "{order}: {target}");
        }
    }
    run(&desk, &["--messages", "100", "--unit", "char", "--order", "4"], &["ram", "sqlite"]).exits(0);
    desk.file("mine.jsonl", "{\"text\": \"Tea in the rain\"}\n{\"text\": \"tea, in rain\"}\n{\"text\": \"!\"}\n");
    let said = run(&desk, &["--input", "mine.jsonl", "--via", "batch"], &["ram", "lmdb"]);
    said.exits(0).shows("lookups/s").shows("memory/entry").shows("disk/entry");
    let model = &desk.record("lmdb batch")["stream"]["model"];
    // Of "tea in the rain" the other message has tea, in, rain and "tea in".
    assert_eq!((&model["lookups"], &model["found"], &model["entries"]), (&7.into(), &4.into(), &5.into()));
}

#[test]
fn what_is_told_of_lookups_stands_in_every_form() {
    let desk = Desk::new();
    run(&desk, &["--messages", "300"], &["lmdb", "redis+unix", "ram", "null"]).exits(0).shows("us/lookup");
    desk.run(&["show"]).exits(0).shows("us/lookup").shows("op p99");
    let said = desk.run(&["show", "--wide"]);
    said.exits(0).shows("filled in").shows("entries").shows("found");
    let rows = desk.rows();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"));
        assert!(number("lookups_per_s") > 0.0 && number("fill_s") >= 0.0 && number("latency_us_p50") > 0.0);
        assert!(number("memory_bytes_per_entry") > 0.0);
        assert_eq!(row["disk_bytes_per_entry"].is_null(), row["disk_bytes"].is_null());
    }
}

/// A store that answers one question otherwise than it should.
#[test]
fn a_lookup_that_finds_another_count_fails_the_trial() {
    for (fault, ways) in [
        ("corrupt&after=100&every=50", &["portable", "batch"][..]),
        ("drop&after=100", &["portable", "batch"]),
        ("evict&after=100&every=40", &["portable", "batch"]),
        ("stray&after=400&every=40", &["portable"]),
    ] {
        for via in ways {
            let desk = Desk::new();
            let target = format!("faulty?fault={fault}&name=faulty");
            run(&desk, &["--messages", "400", "--via", via], &["ram", &target]).exits(4);
            let label = if *via == "batch" { "faulty batch" } else { "faulty" };
            let verdict = &desk.record(label)["verdict"];
            assert_eq!(verdict["kind"], "wrong", "{fault} {via}");
            let of = |name: &str| verdict["first"][name].as_str().map(str::to_string);
            assert!(of("key").is_some() && of("expected") != of("found"), "{fault} {via}: {verdict}");
        }
    }
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let desk = Desk::new();
    run(&desk, &["--order", "9"], &["ram"]).exits(2).complains("9 is not in 1..=5");
    run(&desk, &["--via", "native"], &["ram"]).exits(2).complains("the job lookup has no way 'native'");
    run(&desk, &["--verify", "sample"], &["ram"]).exits(2).complains("compares every answer");
    run(&desk, &["--messages", "1"], &["ram"]).exits(1).complains("nothing to count in its 1 messages");
    desk.file("one.txt", "!\ntea\n");
    run(&desk, &["--input", "one.txt"], &["ram"]).exits(1).complains("nothing in it to ask a store");
    let rows: Vec<Value> = desk.records();
    assert!(rows.is_empty(), "nothing was run");
}

/// Baselines for counts that are only read have a file, and are for no other job.
#[test]
fn counts_that_are_only_read_stand_beside_stores() {
    let desk = Desk::new();
    let said = run(&desk, &["--messages", "500", "--cold", "--clients", "2"], &["lmdb", "dict", "bisect", "fst"]);
    said.exits(0).shows("Baselines: ");
    let bytes = |target: &str| desk.record(target)["bytes_on_disk"].as_u64().expect("a file");
    assert!(bytes("fst") < bytes("bisect") && bytes("bisect") < bytes("dict") && bytes("dict") < bytes("lmdb"));
    for target in ["dict", "bisect", "fst"] {
        desk.run(&["run", "ngrams", target]).exits(2).complains("is filled once and then only read");
        desk.run(&["check", target]).exits(2).complains("is filled once and then only read");
    }
    let listed = desk.run(&["run", "lookup", "--list", "--blocks", "1"]);
    listed.exits(0).shows("on fst");
    assert!(!desk.run(&["run", "ngrams", "--list", "--blocks", "1"]).exits(0).out.contains("on fst"));
}

/// A directory that `--keep` left is read again, and is what it was afterwards.
#[test]
fn what_was_kept_is_read_without_filling() {
    let desk = Desk::new();
    let fill = ["--messages", "200", "--durability", "crash", "--keep", "kept"];
    let said = run(&desk, &fill, &["lmdb", "sqlite", "redis"]);
    said.exits(0).complains("kept: kvfair run lookup lmdb:kept/lmdb");
    let read = ["lmdb:kept/lmdb", "sqlite:kept/sqlite", "redis:kept/redis"];
    for _ in 0..2 {
        run(&desk, &["--messages", "200", "--durability", "crash", "--via", "batch"], &read).exits(0);
    }
    for target in read {
        let record = desk.record(&format!("{target} batch"));
        let phases = record["phases"].as_array().expect("phases");
        let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
        assert_eq!(names, ["run", "final_flush"], "{target}");
        assert_eq!(record["verdict"]["kind"], "right", "{target}");
    }
    let told = told(&desk, "200", "2");
    assert_eq!(desk.record("lmdb")["verdict"]["answer"]["sha256 scores"], *told[0].1);
}

#[test]
fn what_was_kept_must_be_what_is_asked_for() {
    let desk = Desk::new();
    run(&desk, &["--messages", "100", "--keep", "kept"], &["lmdb"]).exits(0);
    let refused = |arguments: &[&str], target: &str, words: &str| {
        run(&desk, arguments, &[target]).exits(1);
        let reason = desk.reason(target);
        assert!(reason.starts_with("refused: ") && reason.contains(words), "{arguments:?}: {reason}");
    };
    let kept = "lmdb:kept/lmdb";
    refused(&["--messages", "100", "--order", "3"], kept, "was filled with --order 2 --unit word, and --order 3");
    refused(&["--messages", "100", "--unit", "char"], kept, "and --order 2 --unit char is asked for");
    refused(&["--messages", "110"], kept, "was filled with other data (100 messages)");
    refused(&["--messages", "100", "--durability", "crash"], kept, "was filled with --durability none");
    desk.run(&["run", "fans", "--profiles", "20", "--blocks", "1", "--keep", "built", "lmdb"]).exits(0);
    refused(&["--messages", "100"], "lmdb:built/lmdb", "holds nothing that the job lookup left");
    run(&desk, &["--messages", "100"], &["lmdb:nothing"]).exits(1);
    assert!(desk.reason("lmdb:nothing").contains("there is nothing at nothing"), "{}", desk.reason("lmdb:nothing"));
    run(&desk, &["--keep", "more"], &[kept]).exits(2).complains("is kept already");
    // The note is there, and the counts are gone.
    for entry in std::fs::read_dir(desk.home().join("kept/lmdb")).expect("what was kept").flatten() {
        if entry.file_name() != "kvfair-kept.json" {
            std::fs::remove_file(entry.path()).expect("a file of the store");
        }
    }
    refused(&["--messages", "100"], kept, "is empty, so that there is nothing to look up");
}

/// Files that are dropped are read again; what is in memory only stays as it is and is a group of its own.
#[test]
fn a_cold_store_is_restarted_and_one_in_memory_is_marked() {
    let desk = Desk::new();
    let said = run(&desk, &["--messages", "200", "--cold"], &["lmdb", "sqlite", "redis", "memcached", "ram"]);
    said.exits(0).shows("cold: restarted").shows("in memory only, so it stays warm (compared within this group only)");
    for (target, is_warm) in [("lmdb", false), ("sqlite", false), ("redis", true), ("memcached", true), ("ram", true)] {
        let record = desk.record(target);
        assert_eq!(record["is_warm"] == true, is_warm, "{target}");
        assert_eq!(record["verdict"]["kind"], "right", "{target}");
    }
    run(&desk, &["--messages", "200", "--cold", "--durability", "crash"], &["redis", "postgres+unix"]).exits(0);
    for target in ["redis", "postgres+unix"] {
        let record = desk.record(target);
        assert!(record["is_warm"].is_null() && record["verdict"]["kind"] == "right", "{target}");
    }
}

#[test]
fn what_cannot_be_cold_is_refused() {
    let desk = Desk::new();
    desk.run(&["run", "ngrams", "--cold", "ram"]).exits(2).complains("--cold is no option of the job ngrams");
    let url = "redis://127.0.0.1:1";
    run(&desk, &["--cold"], &[url]).exits(2).complains("did not start redis://127.0.0.1:1 and cannot restart it");
    needs!(Need::new("/dev/shm", std::path::Path::new("/dev/shm").is_dir(), "run the tests on Linux"));
    let in_memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let run = ["run", "lookup", "--blocks", "1", "--messages", "100", "--cold", "lmdb"];
    let mut command = desk.kvfair(&run);
    command.env("TMPDIR", in_memory.path());
    Started::new(command).wait().exits(1);
    let reason = desk.reason("lmdb");
    assert!(reason.contains("lies in memory (tmpfs or ramfs)") && reason.contains("set TMPDIR to"), "{reason}");
}

/// Each process scores its share, and all that they share in memory is counted once.
#[test]
fn several_processes_read_one_store() {
    let desk = Desk::new();
    let targets = ["lmdb", "sqlite", "redis+unix", "fst", "dict"];
    let said = run(&desk, &["--messages", "300", "--readers", "3", "--via", "portable,batch"], &targets);
    said.exits(0).shows("3 processes read at once");
    let told = told(&desk, "300", "2");
    let records = desk.records();
    assert_eq!(records.len(), 2 * targets.len());
    for record in records {
        let label = &record["target"]["label"];
        assert_eq!(record["verdict"]["kind"], "right", "{label}: {}", record["outcome"]);
        assert_eq!(record["verdict"]["answer"]["sha256 scores"], *told[0].1, "{label}");
        let run = record["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == "run");
        let run = run.expect("a run");
        assert_eq!((&run["clients"], &run["threads"], &run["units"]), (&3.into(), &3.into(), &30.into()), "{label}");
        assert!(
            run["client"]["user_s"].as_f64().expect("CPU") + run["client"]["system_s"].as_f64().expect("CPU") > 0.0
        );
    }
    run_wrong(&desk);
}

fn run_wrong(desk: &Desk) {
    run(desk, &["--readers", "2"], &["ram"]).exits(2).complains("several processes read only what kvfair has filled");
    run(desk, &["--readers", "2", "--clients", "2"], &["lmdb"]).exits(2).complains("each reader is one client");
    run(desk, &["--readers", "0"], &["lmdb"]).exits(2).complains("0 is not in 1..=256");
    desk.run(&["run", "ngrams", "--readers", "2", "lmdb"])
        .exits(2)
        .complains("--readers is no option of the job ngrams");
    // A file that one process locks for itself cannot be read by another.
    run(desk, &["--messages", "100", "--readers", "2"], &["redb"]).exits(1);
    assert!(desk.record("redb")["outcome"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn words_are_looked_up_by_hand() {
    let desk = Desk::new();
    desk.file("mine.txt", "nothing\nTea in the rain\ntea in June\n");
    for (job, target) in [("lookup", "lmdb"), ("ngrams", "sqlite")] {
        let keep = ["run", job, "--blocks", "1", "--input", "mine.txt", "--keep", job, target];
        let said = desk.run(&keep);
        // What is printed is what can be typed.
        match job {
            "lookup" => said.exits(0).complains("kept: kvfair run lookup lmdb:lookup/lmdb --input mine.txt"),
            _ => said.exits(0).complains("kept: kvfair lookup sqlite:ngrams/sqlite WORD"),
        };
        let place = format!("{target}:{job}/{target}");
        let said = desk.run(&["lookup", &place, "TEA", "in", "april"]);
        assert_eq!(
            said.exits(0).out,
            "        2  tea\n        2  tea in\n        2  in\n        0  in april\n        0  april\n"
        );
        desk.run(&["lookup", &place, "!"]).exits(1).complains("no word in '!'");
        desk.run(&["query", &place, ""]).exits(1).complains(&format!("hint: kvfair lookup {place} WORD"));
    }
    desk.run(&["lookup", "lmdb:lookup/lmdb"]).exits(2);
    desk.run(&["lookup", "lmdb:none", "tea"]).exits(1).complains("there is nothing at none");
    std::fs::create_dir(desk.home().join("empty")).expect("a directory");
    desk.run(&["lookup", "lmdb:empty", "tea"]).exits(1).complains("lmdb:empty: it is empty");
    // Nothing is made where nothing is asked for.
    std::fs::create_dir(desk.home().join("plain")).expect("a directory");
    desk.file("plain/note.txt", "mine");
    for store in ["rocksdb", "sqlite", "redis", "lmdb"] {
        let words = "`kvfair run --keep` did not fill this directory";
        desk.run(&["lookup", &format!("{store}:plain"), "tea"]).exits(1).complains(words);
        desk.run(&["query", &format!("{store}:plain"), "tea"]).exits(1).complains(words);
    }
    let files = |directory: &str| std::fs::read_dir(desk.home().join(directory)).expect("a directory").count();
    let before = files("lookup/lmdb");
    desk.run(&["lookup", "sqlite:lookup/lmdb", "tea"]).exits(1).complains("lmdb filled lookup/lmdb, not sqlite");
    assert_eq!((files("empty"), files("plain"), files("lookup/lmdb")), (0, 1, before));
    desk.run(&["run", "fans", "--profiles", "5", "--blocks", "1", "--keep", "fans", "lmdb"]).exits(0);
    desk.run(&["lookup", "lmdb:fans/lmdb", "tea"]).exits(1).complains("it holds no counts of n-grams");
}
