//! What a killed run left on a server that is not ours is removed by `kvfair clean`, and nothing else: neither
//! foreign keys, nor foreign values under the run's own names.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use kvfair::harness::clean::{self, Deleted};
use kvfair::harness::plan::{Chosen, TargetClients};
use kvfair::harness::signals::Interrupt;
use kvfair::harness::visits;
use kvfair::jobs::keyed::values::{Values, version};
use kvfair::model::trial::{Transport, Via};
use kvfair::stores::{self, Login};
use nix::sys::signal::Signal;

use crate::cli::strangers::port_of;
use crate::common::desk::{Desk, Said, Started, wait_for};
use crate::common::{self, Running};

const OUT: &str = "out.jsonl";

/// A delay that makes work last without work for the processors.
const SLOW: [&str; 2] = ["--rtt", "1ms"];

/// Runs a job on a URL, and kills all of kvfair in the middle of a trial's work: once `held` tells that the server has
/// so many keys of it, with so many trials finished before.
fn killed(desk: &Desk, url: &str, job: &[&str], finished: usize, held: impl Fn() -> u64, keys: u64) {
    let command = desk.kvfair(&[&["run"], job, &SLOW, &["--output", OUT, url]].concat());
    killed_of(desk, command, finished, held, keys);
}

fn killed_of(desk: &Desk, command: Command, finished: usize, held: impl Fn() -> u64, keys: u64) {
    let started = Started::new(command);
    let records = || std::fs::read_to_string(desk.home().join(OUT)).unwrap_or_default().lines().count();
    wait_for("finished trials", || (records() >= finished).then_some(()));
    wait_for("keys of a trial", || (held() >= keys).then_some(()));
    started.interrupt(Signal::SIGKILL);
    started.wait().exits(-1);
    desk.no_process_is_left();
    assert_eq!(records(), finished, "killed in the middle of the next trial");
}

fn cleaned(desk: &Desk, url: &str) -> Said {
    desk.run(&["clean", url, "--of", OUT, "--yes"])
}

/// The answer to one command, as Redis sends it.
fn redis(server: &Running, database: u32, parts: &[&[u8]]) -> String {
    let mut request = format!("SELECT {database}\r\n*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        request.extend([format!("${}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
    }
    request.extend(b"QUIT\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    stream.write_all(&request).expect("the test's own server");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the test's own server");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.strip_prefix("+OK\r\n").and_then(|rest| rest.strip_suffix("+OK\r\n")).expect("an answer").to_string()
}

fn count(server: &Running, database: u32) -> u64 {
    integer(&redis(server, database, &[b"DBSIZE"]))
}

fn integer(answer: &str) -> u64 {
    answer.trim().trim_start_matches(':').parse().expect("a number")
}

/// Some key that the run has left.
fn some_key(server: &Running, database: u32, not: &[&str]) -> String {
    wait_for("another key", || {
        let answer = redis(server, database, &[b"RANDOMKEY"]);
        let key = answer.split("\r\n").nth(1).expect("a key").to_string();
        (!not.contains(&key.as_str())).then_some(key)
    })
}

/// Sets keys, cleans, and asserts that these, and no others, are left as they were set.
fn assert_leaves(desk: &Desk, server: &Running, url: &str, database: u32, planted: &[(&str, &[u8])], named: u64) {
    for (key, value) in planted {
        assert_eq!(redis(server, database, &[b"SET", key.as_bytes(), value]), "+OK\r\n");
    }
    let held = count(server, database);
    let ours = held - planted.len() as u64;
    assert!(ours > 10, "{ours} keys are there to be removed");
    let said = cleaned(desk, url);
    said.exits(0).shows(&format!("{} keys hold what this run may have written", thousands(ours)));
    let others = match named {
        0 => {
            let s = if planted.len() == 1 { "" } else { "s" };
            format!("{} keys deleted; it holds {} record{s} now", thousands(ours), planted.len())
        }
        1 => "; 1 key of its names holds something else and stays".to_string(),
        named => format!("; {named} keys of its names hold something else and stay"),
    };
    said.shows(&others).shows(&format!("{} keys deleted", thousands(ours)));
    assert_eq!(count(server, database), planted.len() as u64, "{}", said.out);
    for (key, value) in planted {
        let held = redis(server, database, &[b"GET", key.as_bytes()]);
        assert_eq!(held, format!("${}\r\n{}\r\n", value.len(), String::from_utf8_lossy(value)), "{key}");
    }
    assert!(!Path::new(&desk.home().join("out.jsonl.guest")).exists(), "all is taken back");
}

fn thousands(number: u64) -> String {
    kvfair::model::units::thousands(number)
}

#[test]
fn killed_in_the_first_trial_of_fans() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/3", port_of(&server));
    killed(&desk, &url, &["fans", "--profiles", "300", "--blocks", "1"], 0, || count(&server, 3), 50);
    let all = count(&server, 3);
    let first = some_key(&server, 3, &[]);
    let second = some_key(&server, 3, &[&first]);
    let third = some_key(&server, 3, &[&first, &second]);

    // A run that is not asked about writes nothing, and says how to get rid of the rest.
    let again = desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", &url]);
    again.exits(1).shows("records that are not ours").shows("kvfair clean");
    let refused = desk.run(&["clean", &url, "--of", OUT]);
    refused.exits(2).shows("keys hold what this run may have written").complains("hint: --yes deletes them");
    assert_eq!(count(&server, 3), all, "nothing was deleted unasked");
    let elsewhere = desk.run(&["clean", &url.replace("/3", "/4"), "--of", OUT, "--yes"]);
    elsewhere.exits(1).complains("nothing of it was run on").complains(&format!("hint: its run wrote to {url}"));

    // A record as the job writes them, of other pages; one that says more than it can; and no record at all.
    let planted: [(&str, &[u8]); 4] = [
        (&first, b"{\"fans\":1,\"also\":{\"strange page\":1}}"),
        (&second, b"{\"fans\":999999,\"also\":{}}"),
        (&third, b"stranger's"),
        ("stranger's key", b"1"),
    ];
    assert_leaves(&desk, &server, &url, 3, &planted, 3);
}

/// What was written follows from what the user's file was turned into: from the same file it is made again.
#[test]
fn killed_in_fans_of_pairs_from_a_file_and_from_standard_input() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/3", port_of(&server));
    let pair = |number: u64| format!("user {},\"page, {}\"\n", number * 7 % 3_001, number * number % 4_999);
    desk.file("pairs.csv", (0..6_000).map(pair).collect::<String>());
    killed(&desk, &url, &["fans", "--blocks", "1", "--input", "pairs.csv"], 0, || count(&server, 3), 50);
    assert_leaves(&desk, &server, &url, 3, &[("stranger's key", b"1")], 0);
    redis(&server, 3, &[b"FLUSHDB"]);
    std::fs::remove_file(desk.home().join(OUT)).expect("no record was written");

    let data = || std::fs::File::open(desk.home().join("pairs.csv")).expect("it was written");
    let run = [&["run", "fans", "--blocks", "1", "--input", "-", "--output", OUT, &url], &SLOW[..]].concat();
    let mut command = desk.kvfair(&run);
    command.stdin(data());
    killed_of(&desk, command, 0, || count(&server, 3), 50);
    let left = count(&server, 3);
    assert!(left > 10, "{left} keys are there to be removed");
    cleaned(&desk, &url).exits(1).complains("--input -: is empty");
    let mut command = desk.kvfair(&["clean", &url, "--of", OUT, "--yes"]);
    command.stdin(data());
    Started::new(command).wait().exits(0).shows(&format!("{} keys deleted; it holds 0 records now", thousands(left)));
}

#[test]
fn killed_in_a_later_trial_of_mixed() {
    let (server, desk) = (common::start("valkey", Transport::Tcp), Desk::new());
    let url = format!("valkey://127.0.0.1:{}/5", port_of(&server));
    let size = ["--records", "500", "--values", "200", "--requests", "10000", "--writes", "50", "--blocks", "3"];
    killed(&desk, &url, &[&["mixed"], &size[..]].concat(), 1, || count(&server, 5), 500);
    // Values of this very job: with a byte that is another, of a client's request that sets another record, and of a
    // client that there never was.
    let values = Values::new(1, 200);
    let value = |record, version| {
        let mut value = values.blank();
        values.write(record, version, &mut value);
        value
    };
    let mut spoilt = value(7, version(0, 0, 0));
    spoilt[150] ^= 1;
    let planted: [(&str, &[u8]); 5] = [
        ("key:000000000007", &spoilt),
        ("key:000000000008", &value(8, version(1, 200, 0))),
        ("key:000000000009", &value(9, version(1, 0, 1 << 30))),
        ("key:000000000010", &value(11, version(0, 0, 0))),
        ("stranger's key", b"1"),
    ];
    assert_leaves(&desk, &server, &url, 5, &planted, 4);
    // All records of the run are there, and nothing is left: that is said, and no failure.
    cleaned(&desk, &url).exits(0).shows("no key holds what this run may have written; 4 keys of its names");
}

#[test]
fn killed_in_getset_with_values_too_short_for_a_version() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let size = ["--records", "300", "--values", "8,300", "--clients", "5", "--requests", "20000", "--blocks", "1"];
    killed(&desk, &url, &[&["getset"], &size[..]].concat(), 0, || count(&server, 0), 200);
    let planted: [(&str, &[u8]); 2] = [("key:000000000007", b"stranger"), ("key:000000000008", b"12345678")];
    assert_leaves(&desk, &server, &url, 0, &planted, 2);
}

#[test]
fn killed_in_ngrams_whose_counters_may_be_anything_up_to_the_last_count() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/1", port_of(&server));
    killed(&desk, &url, &["ngrams", "--messages", "500", "--blocks", "1"], 0, || count(&server, 1), 50);
    let first = some_key(&server, 1, &[]);
    let second = some_key(&server, 1, &[&first]);
    let planted: [(&str, &[u8]); 3] = [(&first, b"1000000000"), (&second, b"0"), ("rt @stranger", b"words")];
    assert_leaves(&desk, &server, &url, 1, &planted, 2);
}

/// Counters in one hash: what is kept under a term itself is somebody else's.
#[test]
fn killed_in_ngrams_whose_counters_are_in_one_hash() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/1?counters=hash", port_of(&server));
    let counters = || integer(&redis(&server, 1, &[b"HLEN", b"kvfair:counters"]));
    killed(&desk, &url, &["ngrams", "--messages", "500", "--blocks", "1"], 0, counters, 50);
    assert_eq!(some_key(&server, 1, &[]), "kvfair:counters");
    assert_eq!(redis(&server, 1, &[b"SET", b"ba", b"1"]), "+OK\r\n");
    let said = cleaned(&desk, &url);
    said.exits(0).shows("keys hold what this run may have written").shows("it holds 1 record now");
    assert_eq!(redis(&server, 1, &[b"KEYS", b"*"]), "*1\r\n$2\r\nba\r\n");
    assert!(!Path::new(&desk.home().join("out.jsonl.guest")).exists(), "all is taken back");
}

/// The store's own means of counting, and clients in no known order: records are looked at number by number.
#[test]
fn killed_in_the_other_ways_of_fans() {
    for way in [&["--via", "native"][..], &["--via", "cas", "--split", "profiles", "--clients", "3"]] {
        let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
        let url = format!("redis://127.0.0.1:{}", port_of(&server));
        killed(
            &desk,
            &url,
            &[&["fans", "--profiles", "300", "--blocks", "1"], way].concat(),
            0,
            || count(&server, 0),
            50,
        );
        let (first, all) = (some_key(&server, 0, &[]), count(&server, 0));
        let second = some_key(&server, 0, &[&first]);
        match way[1] {
            "native" => {
                redis(&server, 0, &[b"HSET", first.as_bytes(), b"strange page", b"1"]);
                // As if the kill had come before the fans of this page were counted.
                let third = wait_for("a page with fans and another field", || {
                    let key = some_key(&server, 0, &[&first, &second]);
                    let has_fans = redis(&server, 0, &[b"HEXISTS", key.as_bytes(), key.as_bytes()]) == ":1\r\n";
                    (has_fans && integer(&redis(&server, 0, &[b"HLEN", key.as_bytes()])) > 1).then_some(key)
                });
                redis(&server, 0, &[b"HDEL", third.as_bytes(), third.as_bytes()]);
            }
            _ => drop(redis(&server, 0, &[b"SET", first.as_bytes(), b"{\"fans\":1,\"also\":{\"strange page\":1}}"])),
        }
        // Of another type altogether.
        redis(&server, 0, &[b"DEL", second.as_bytes()]);
        redis(&server, 0, &[b"LPUSH", second.as_bytes(), b"1"]);
        let said = cleaned(&desk, &url);
        said.exits(0).shows("2 keys of its names hold something else and stay");
        said.shows(&format!("{} keys deleted; it holds 2 records now", thousands(all - 2)));
        let left = redis(&server, 0, &[b"KEYS", b"*"]);
        assert!(count(&server, 0) == 2 && left.contains(&first) && left.contains(&second), "{left}");
    }
}

#[test]
fn killed_in_a_trace_on_memcached() {
    let (server, desk) = (common::start("memcached", Transport::Tcp), Desk::new());
    let url = format!("memcached://127.0.0.1:{}", port_of(&server));
    let row = |number: u64| format!("{number},key{},9,{},1,set,0\n", number % 20_000, number % 40);
    desk.file("twitter.csv", (0..60_000).map(row).collect::<String>());
    let job = ["trace", "--input", "twitter.csv", "--format", "twitter", "--blocks", "1"];
    let curr_items = || {
        let stats = memcached(&server, "stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("STAT curr_items "));
        line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count")
    };
    killed(&desk, &url, &job, 0, curr_items, 2_000);
    for (key, value) in [("key7", "stranger's"), ("key8", "xxxxxxxxxxxxxxxxxxxx"), ("mine", "1")] {
        assert!(memcached(&server, &format!("set {key} 0 0 {}\r\n{value}", value.len())).contains("STORED"));
    }
    let ours = curr_items() - 3;
    assert!(ours > 1_000, "{ours}");
    // Other data under the same name would have other keys.
    let rows = std::fs::read_to_string(desk.home().join("twitter.csv")).unwrap();
    desk.file("twitter.csv", rows.replacen("key0,", "key1,", 1));
    cleaned(&desk, &url).exits(1).complains("is not what the run had: its sha256 was");
    desk.file("twitter.csv", &rows);
    let said = cleaned(&desk, &url);
    said.exits(0).shows(&format!("{} keys deleted; it holds 3 records now", thousands(ours)));
    said.shows("2 keys of its names hold something else and stay");
    assert_eq!(curr_items(), 3);
    let left = ["key7", "key8", "mine"].map(|key| memcached(&server, &format!("get {key}")));
    assert!(left[0].contains("stranger's") && left[1].contains("xxxx") && left[2].contains("\r\n1\r\n"), "{left:?}");
}

fn memcached(server: &Running, asked: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(server))).expect("the test's own server");
    stream.write_all(format!("{asked}\r\nquit\r\n").as_bytes()).expect("the test's own server");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the test's own server");
    answer
}

/// A value is compared once more right before its deletion.
#[test]
fn what_is_changed_after_it_was_found_stays() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let job = ["mixed", "--records", "500", "--clients", "2", "--requests", "20000", "--blocks", "1"];
    killed(&desk, &url, &job, 0, || count(&server, 0), 500);
    let visits = visits::left(&visits::beside(&desk.home().join(OUT))).expect("what the run wrote down");
    let [visit] = visits.as_slice() else { panic!("{visits:?}") };
    let chosen = Chosen {
        target: visit.target.clone(),
        adapter: stores::find("redis").expect("it is there"),
        kept: None,
        place: visit.place.clone(),
        login: Login::default(),
        via: Via::default(),
        encoding: Default::default(),
        asking: TargetClients::default(),
        changed: Vec::new(),
        first_used: Default::default(),
    };
    let interrupt = Interrupt::default();
    let found = clean::find(&chosen, &visits, &desk.home(), &interrupt).expect("keys");
    assert_eq!((found.ours(), found.others()), (500, 0));
    redis(&server, 0, &[b"SET", b"key:000000000003", b"stranger's"]);
    redis(&server, 0, &[b"DEL", b"key:000000000004"]);
    let deleted = clean::delete(&chosen, &visits, &found, &interrupt).expect("deleted");
    assert_eq!(deleted, Deleted { deleted: 498, changed: 2, left: Some(1) });
    assert_eq!(redis(&server, 0, &[b"GET", b"key:000000000003"]), "$10\r\nstranger's\r\n");
    desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"]).exits(0);
}

/// What a run could take back by itself is no business of `clean`, and nothing is left beside the results.
#[test]
fn a_run_that_ended_leaves_no_visit() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/2", port_of(&server));
    desk.run(&["run", "fans", "--profiles", "50", "--blocks", "2", "--output", OUT, &url, "ram"]).exits(0);
    assert!(!desk.home().join("out.jsonl.guest").exists());
    cleaned(&desk, &url).exits(0).shows("no key holds what this run may have written");
    desk.run(&["clean", "ram", "--of", OUT, "--yes"]).exits(2).complains("ram is not named by URL");
    desk.run(&["clean", "redis://127.0.0.1:1", "--of", OUT, "--yes"]).exits(1).complains(&url);
}
