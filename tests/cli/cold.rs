//! `lookup` of stores that are cold or that several processes read, and of stores that another job has filled.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::common::desk::{Desk, Said};

fn run(desk: &Desk, arguments: &[&str], targets: &[&str]) -> Said {
    desk.run(&[&["run", "lookup", "--blocks", "1"], arguments, targets].concat())
}

/// The files of a cold store come from the disk during the lookups, and what is in memory does not.
#[test]
fn a_cold_store_tells_what_it_read_from_the_disk() {
    let desk = Desk::new();
    let targets = ["lmdb", "sqlite", "postgres+unix", "memcached", "ram", "null"];
    let cold = ["--messages", "4000", "--durability", "none", "--cold"];
    run(&desk, &cold, &targets).exits(0).shows("read/lookup");
    desk.run(&["show", "--json"]).exits(0);
    let rows = desk.rows();
    let row = |target: &str| rows.iter().find(|row| row["target"] == target).expect("a row");
    for target in ["lmdb", "sqlite", "postgres+unix"] {
        let (read, lookups) = (row(target)["read_bytes"].as_u64(), &row(target)["read_bytes_per_lookup"]);
        let record = desk.record(target);
        assert!(read > Some(100_000), "{target}: {read:?}\n{record}");
        let all = record["stream"]["model"]["lookups"].as_f64().expect("lookups");
        assert!((lookups.as_f64().expect("bytes") * all / read.expect("bytes") as f64 - 1.0).abs() < 0.01, "{target}");
        let share = record["still_cached_share"].as_f64().expect("a share");
        assert!((0.0..=0.01).contains(&share), "{target}: {share}");
    }
    for target in ["memcached", "ram", "null"] {
        assert!(row(target)["read_bytes"].as_u64() < Some(100_000), "{target}: {}", row(target));
        assert!(desk.record(target)["still_cached_share"].is_null(), "{target}");
    }
    run(&desk, &["--messages", "400"], &["lmdb"]).exits(0);
    assert!(desk.record("lmdb")["still_cached_share"].is_null(), "it was not to be cold");
}

/// Another process that has a store's files mapped keeps their pages in memory.
#[test]
fn pages_that_stay_are_told() {
    let desk = Desk::new();
    run(&desk, &["--messages", "3000", "--keep", "kept"], &["lmdb"]).exits(0);
    let read = ["run", "lookup", "--blocks", "1", "--messages", "3000", "--cold", "lmdb:kept/lmdb"];
    let said = desk.run(&read);
    assert!(!said.exits(0).out.contains("warning (cold)"), "{}", said.out);
    let script = "import mmap, sys\nfile = open('kept/lmdb/data.mdb', 'rb')\n\
                  held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n\
                  print(sum(held[at] for at in range(0, len(held), 4096)), flush=True)\nsys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", script])
        .current_dir(desk.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line).expect("it has read the file");
    let said = desk.run(&read);
    holder.stdin.take().expect("a pipe").flush().expect("it ends");
    holder.wait().expect("it ends");
    said.exits(0).shows("warning (cold): ").shows("of the files of lmdb:kept/lmdb stayed in the page cache");
    assert!(desk.record("lmdb:kept/lmdb")["still_cached_share"].as_f64() > Some(0.5));
}

/// RocksDB is opened read-only by each process, also where its log of writes is not empty; LevelDB cannot be.
#[test]
fn several_processes_read_rocksdb_and_leveldb_says_why_not() {
    let desk = Desk::new();
    for durability in ["none", "crash"] {
        let readers = ["--messages", "300", "--readers", "3", "--durability", durability];
        run(&desk, &readers, &["rocksdb", "lmdb"]).exits(0).shows("3 processes read at once");
        for target in ["rocksdb", "lmdb"] {
            let record = desk.record(target);
            assert_eq!(record["verdict"]["kind"], "right", "{target} {durability}: {}", record["outcome"]);
        }
        let scores = |target: &str| desk.record(target)["verdict"]["answer"]["sha256 scores"].clone();
        assert_eq!(scores("rocksdb"), scores("lmdb"));
    }
    run(&desk, &["--messages", "100", "--readers", "2"], &["leveldb"]).exits(1);
    let reason = desk.reason("leveldb");
    assert!(reason.contains("by design one process at a time has its files open"), "{reason}");
    run(&desk, &["--messages", "100"], &["leveldb"]).exits(0);
}

/// Its counts are those of all messages, also of those that are scored.
#[test]
fn what_ngrams_has_kept_is_refused_with_the_reason() {
    let desk = Desk::new();
    desk.run(&["run", "ngrams", "--messages", "100", "--blocks", "1", "--keep", "counted", "lmdb"]).exits(0);
    run(&desk, &["--messages", "100"], &["lmdb:counted/lmdb"]).exits(1);
    let reason = desk.reason("lmdb:counted/lmdb");
    for words in [
        "holds the counts of all messages",
        "scores one message in ten by the counts of the others",
        "`kvfair run lookup lmdb --keep DIR` fills one",
    ] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    desk.run(&["lookup", "lmdb:counted/lmdb", "ba"]).exits(0).shows("ba");
}
