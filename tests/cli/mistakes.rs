//! What was typed wrong, or names what is not here: the message says what was probably meant, or how to get it.

use crate::common::desk::{Desk, Started};

#[test]
fn what_is_unknown_is_a_usage_error_that_names_the_nearest() {
    let typed: &[(&[&str], &str)] = &[
        (&["run", "fnas"], "did you mean `fans`?"),
        (&["run", "ngram", "ram"], "did you mean `ngrams`?"),
        (&["run", "wordcount", "ram"], "there are fans, ngrams"),
        (&["data", "fan"], "did you mean `fans`?"),
        (&["run", "fans", "reddis"], "did you mean `redis`?"),
        (&["run", "fans", "memcachd+unix"], "did you mean `memcached+unix`?"),
        (&["run", "fans", "oracle://h"], "there is no store 'oracle'"),
        (&["query", "redsi://h", "page"], "did you mean `redis`?"),
        (&["run", "fans", "ram?naem=x"], "did you mean `name`?"),
        (&["run", "fans", "redis?cache=1MB"], "redis has no setting 'cache'"),
        (&["run", "fans", "ram+unix"], "ram runs in process: it has no Unix socket"),
        (&["run", "fans", "redis://h/first"], "the URL's path is no database number"),
        (&["run", "fans", "--profils", "3"], "a similar argument exists: '--profiles'"),
        (&["runn", "fans"], "'run'"),
        (&["run", "fans", "--durability", "lots"], "none, crash or power"),
        (&["run", "fans", "--timeout", "5 parsecs"], "is no unit of time"),
        (&["run", "fans", "--clients", "0"], "--clients"),
        (&["run", "fans", "--verify", "some"], "full or sample"),
        (&["run", "ngrams", "ram", "--profiles", "5"], "it has --messages"),
        (&["run", "fans", "ram", "--messages", "5"], "it has --profiles"),
        (&["data", "ngrams", "--profiles", "5"], "it has --messages"),
        (&["run", "getset", "ram", "--messages", "5"], "it has --requests"),
        (&["run", "getset", "ram", "--clients", "1,5,5"], "5 clients are named twice"),
        (&["run", "getset", "ram", "--clients", "9..3"], "ends before it begins"),
        (&["run", "getset", "ram", "--clients", "10001"], "no number from 1 to 10000"),
        (&["run", "getset", "ram", "--depth", "1001"], "1001 is not in 1..=1000"),
        (&["run", "getset", "ram", "--only", "put"], "neither set nor get"),
        (&["run", "getset", "ram", "--depth", "1000", "--values", "100000"], "more than 64 MiB at once"),
        (&["run", "getset", "ram", "--input", "x"], "reads no input"),
        (&["run", "getset", "ram", "--reads", "5"], "kvfair run mixed has it"),
        (&["run", "fans", "ram", "--records", "5"], "kvfair run getset has it"),
        (&["run", "ycsb-d", "ram", "--clients", "1,2"], "inserts records and takes one number of clients"),
        (&["run", "ycsb-a", "ram", "--reads", "1"], "kvfair run mixed has it"),
        (&["run", "mixed", "ram", "--only", "set"], "kvfair run getset has it"),
        (&["run", "mixed", "ram", "--reads", "0", "--writes", "0"], "leave nothing to ask"),
        (&["run", "mixed", "ram", "--keys", "zipf:11"], "no exponent from 0.001 to 10"),
        (&["run", "mixed", "ram", "--keys", "hotspot:0/80"], "not two parts of 100"),
        (&["run", "mixed", "ram", "--keys", "random"], "no choice of keys"),
        (&["run", "mixed", "ram", "--keys", "latest", "--records", "20000000"], "16777216 --records at most"),
        (&["run", "fans", "ram", "--depth", "4"], "--depth is no option of the job fans"),
        (&["run", "fans", "ram", "--clients", "1,2"], "takes one number"),
        (&["compare", "a.jsonl", "b.jsonl", "--budget", "5m"], "--budget is an option of runs"),
        (&["compare", "a.jsonl", "b.jsonl", "-o", "c.jsonl"], "--output is an option of runs"),
        (&["compare", "a.jsonl", "b.jsonl", "--config", "shipped"], "--config is an option of runs"),
        (&["run", "mixed", "127.0.0.1:6379"], "it names no store hint: redis://127.0.0.1:6379"),
        (&["run", "fans", "cached:ram?items=0"], "?items=0 is no number of records, which is 1 or more"),
        (&["run", "fans", "cached:ram?items=-1"], "?items=-1 is no number of records, which is 1 or more"),
        (&["run", "mixed", "localhost:11211"], "it names no store hint: memcached://localhost:11211"),
        (&["run", "mixed", "localhost:6379/2"], "it names no store hint: redis://localhost:6379/2"),
        (&["run", "mixed", "[::1]:6379"], "target '[::1]:6379': it names no store hint: redis://[::1]:6379"),
        (&["run", "mixed", "127.0.0.1:7399"], "hint: name the store too: redis://127.0.0.1:7399, "),
        (&["run", "mixed", "redis?prog=./redis-server"], "did you mean `program`?"),
        (&["run", "mixed", "rediss://h:6380"], "rediss:// is a connection with TLS, which kvfair does not support yet"),
        (&["run", "mixed", "ram", "--clients", "-1"], "'-1' is no number from 1 to 10000"),
        (&["run", "mixed", "ram", "--clients", "0"], "'0' is no number from 1 to 10000"),
        (&["run", "mixed", "ram", "--depth", "-1"], "1..=1000"),
        (&["run", "fans", "ram", "ram"], "two targets are called 'ram' hint: name one of them: 'ram?name=other'"),
    ];
    are_mistakes(typed);
    // Where TLS was asked for, nothing without it is proposed.
    let said = Desk::new().run(&["run", "mixed", "rediss://h:6380"]);
    assert!(!said.err.contains("redis://"), "{}", said.err);
}

#[test]
fn sweeps_that_mean_nothing_are_usage_errors() {
    are_mistakes(&[
        (&["run", "fans", "ram", "--rate", "5"], "kvfair run getset has it"),
        (&["run", "fans", "ram", "--replay", "asap"], "kvfair run trace has it"),
        (&["run", "trace", "ram", "--replay", "fast"], "asap, recorded, or 0.01x to 1000000x"),
        (&["run", "getset", "ram", "--values", "1k,65MiB"], "no number from 1 to 67108864 of bytes"),
        (&["run", "getset", "ram", "--batch", "0"], "no number from 1 to 10000 of keys"),
        (&["run", "getset", "ram", "--batch", "10000", "--values", "1M"], "more than 64 MiB at once"),
        (&["run", "getset", "ram", "--batch", "5", "--depth", "2"], "--batch and --depth exclude each other"),
        (&["run", "getset", "ram", "--values", "1,2", "--batch", "1,2"], "sweeps over one of them"),
        (&["run", "getset", "ram", "--values", "1,2", "--clients", "1,2"], "takes one number of --clients"),
        (&["run", "mixed", "ram", "--batch", "5"], "kvfair run getset has it"),
        (&["run", "ycsb-d", "ram", "--values", "5,6"], "takes one size"),
        (&["run", "mixed", "ram", "--rate", "0"], "no whole number of requests a second"),
        (&["run", "mixed", "ram", "--rate", "11M"], "from 1 to 10M"),
        (&["run", "mixed", "ram", "--rate", "10%,100%"], "no part from 1% to 94%"),
        (&["run", "mixed", "ram", "--rate", "1k,50%"], "no part from 1% to 94%"),
        (&["run", "mixed", "ram", "--rate", "1k", "--depth", "4"], "--depth and --rate exclude each other"),
        (&["run", "mixed", "ram", "--rate", "1k", "--clients", "1,5"], "takes one number of --clients"),
        (&["run", "mixed", "ram", "--rate", "10", "--requests", "10000"], "a longer --timeout"),
        (&["run", "mixed", "ram", "--rate", "1M", "--requests", "200000000"], "at most 100000000 --requests"),
        (&["run", "mixed", "ram", "--arrivals", "constant"], "name one"),
        (&["run", "mixed", "ram", "--rate", "1k", "--arrivals", "bursts"], "poisson or constant"),
        (&["run", "ycsb-d", "ram", "--rate", "1k,2k"], "inserts records and takes one rate"),
        (&["find-max", "fans", "ram"], "the job fans has no rate"),
        (&["find-max", "mixed", "ram", "--rate", "5"], "--rate is no option of find-max"),
        (&["find-max", "mixed", "ram", "--wide"], "--wide is no option of find-max"),
        (&["find-max", "mixed", "ram", "--depth", "4"], "--depth is no option of find-max"),
        (&["find-max", "mixed", "ram", "-i", "x"], "--input is no option of find-max: only jobs of requests"),
        (&["find-max", "mixed", "ram", "--no-warn", "short"], "--no-warn is no option of find-max"),
        (&["compare", "a", "b", "--all"], "--all is no option of compare"),
        (&["run", "fans", "ram", "--no-warn", "shrot"], "'short'"),
        (&["find-max", "mixed", "ram", "--clients", "1,5"], "find-max takes one number of --clients"),
        (&["find-max", "mixed", "ram", "--slo", "99:1ms"], "no promise such as p99:1ms"),
        (&["find-max", "mixed", "ram", "--slo", "p100:1ms"], "from p50 to p99.9"),
        (&["find-max", "mixed", "ram", "--step", "100"], "--timeout would cut it off"),
        (&["find-max", "mixed", "ram"], "ram is a baseline: find-max searches the highest rate of a store"),
    ]);
}

/// The pairs of a table of old and new names.
fn renamed(table: &str) -> Vec<(&'static str, &'static str)> {
    let source = include_str!("../../src/cli/renamed.rs");
    let (_, rest) = source.split_once(table).expect("the table");
    let (pairs, _) = rest.split_once("];").expect("its end");
    let words: Vec<&str> = pairs.split('"').skip(1).step_by(2).collect();
    words.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn old_names_are_refused_with_the_new_ones() {
    let (settings, warnings) = (renamed("const SETTINGS"), renamed("const WARNINGS"));
    assert!(!settings.is_empty() && warnings.len() > 1);
    for (old, new) in settings {
        let target = format!("memcached?{old}=binary");
        Desk::new().run(&["run", "fans", &target]).exits(2).complains(&format!("now called '{new}'"));
    }
    for (old, new) in warnings {
        let said = Desk::new().run(&["run", "fans", "ram", "--no-warn", old]);
        said.exits(2).complains(&format!("now called {new}"));
    }
}

/// Records of a version whose fields had other names are told as that, not as broken.
#[test]
fn results_of_an_older_version_are_refused_by_its_name() {
    let desk = Desk::new();
    desk.run(&["run", "fans", "ram", "--profiles", "5", "--blocks", "1", "--output", "new.jsonl"]).exits(0);
    let new = std::fs::read_to_string(desk.home().join("new.jsonl")).expect("results");
    let ours = format!("\"kvfair\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(new.contains(&ours) && new.contains("\"seeds\""));
    let old = new.replace(&ours, "\"kvfair\":\"0.1.0\"").replace("\"seeds\"", "\"seed\"");
    desk.file("old.jsonl", &old);
    desk.run(&["show", "old.jsonl"]).exits(1).complains("old.jsonl:1: written by kvfair 0.1.0");
}

fn are_mistakes(typed: &[(&[&str], &str)]) {
    let desk = Desk::new();
    for (arguments, words) in typed {
        let said = desk.run(arguments);
        said.exits(2).complains(words);
        assert_eq!(said.out, "", "{arguments:?}");
    }
    assert!(desk.records().is_empty(), "nothing was run");
}

#[test]
fn stores_are_listed_with_their_versions_or_with_how_to_get_them() {
    let desk = Desk::with_only(&["redis-server"]);
    let said = desk.run(&["stores"]);
    assert!(said.exits(0).out.lines().all(|line| line.chars().count() <= 100), "a line each: {}", said.out);
    let (here, missing) = said.out.split_once("missing:").expect("something is missing");
    assert!(here.contains("redis") && missing.contains("valkey"), "{}", said.out);
    let json: serde_json::Value = serde_json::from_str(&desk.run(&["stores", "--json"]).out).expect("JSON");
    let redis = json["rows"].as_array().unwrap().iter().find(|store| store["store"] == "redis").expect("redis");
    // Not every distribution has it.
    let full = |name: &str| desk.run(&["stores", name]).exits(0).out.clone();
    assert!(!full("valkey").contains("get it: apt install valkey"), "{}", full("valkey"));
    let of_memcached = desk.run(&["stores", "memcached"]);
    of_memcached.shows("there is no memcached on PATH; get it: apt install memcached").shows("also called memcache");
    assert!(full("redis").contains("?") && full("redis").contains("keeps none"), "{}", full("redis"));
    assert!(!full("postgres").contains("also called unix"), "{}", full("postgres"));
    desk.run(&["stores", "redsi"]).exits(2).complains("did you mean `redis`?");
    desk.run(&["run", "fans", "--list", "--blocks", "1", "memcache", "memcache+unix", "postgresql://h"])
        .exits(0)
        .shows("on memcache+unix");
    assert!(redis["version"].as_str().is_some_and(|version| version.contains('.')), "{redis}");
}

#[test]
fn without_a_place_for_scratch_files_nothing_begins() {
    let desk = Desk::new();
    let mut command = desk.kvfair(&["run", "ngrams", "ram"]);
    command.env("TMPDIR", "/no/such/place");
    let said = Started::new(command).wait();
    said.exits(1).complains("cannot make a scratch directory in /no/such/place hint: set TMPDIR");
}

/// A program that is there but is no server is told from one that is missing.
#[test]
fn a_program_that_does_not_start_is_no_store_that_is_here() {
    let desk = Desk::with_only(&[]);
    desk.wrap("redis-server", "exit 1");
    let said = desk.run(&["stores", "redis"]);
    said.exits(0).shows("redis-server --version says no version");
}

#[test]
fn what_cannot_be_reached_or_entered_is_said_in_plain_words() {
    let desk = Desk::new();
    let run = |url: &str| desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", url]);
    for store in ["redis", "memcached", "postgres", "tokyotyrant"] {
        let said = run(&format!("{store}://127.0.0.1:1"));
        said.exits(1).complains("127.0.0.1:1: connection refused").complains("cannot connect to ");
        said.complains("no target can be reached: nothing was run");
        assert!(!said.err.contains("os error") && !said.err.contains("connection lost"), "{}", said.err);
    }
    run("unix:///nowhere/redis.sock").exits(1).complains("/nowhere/redis.sock: no such file or directory");
    assert!(desk.records().is_empty(), "nothing was run");
    // Its data would take minutes of a processor.
    let few_s = |arguments: &[&str]| {
        let limited = "ulimit -t 5; exec \"$0\" \"$@\"";
        let all = [&["-c", limited, env!("CARGO_BIN_EXE_kvfair")], arguments].concat();
        Started::new(desk.command("/bin/sh", &all)).wait().exits(1).complains("no target can be reached");
    };
    let swept = ["run", "getset", "--records", "100000000", "--clients", "1,2", "redis://127.0.0.1:1"];
    few_s(&swept);
    let sought = ["find-max", "mixed", "redis://127.0.0.1:1"];
    few_s(&sought);
    let large = ["run", "fans", "--profiles", "1000000", "--blocks", "1", "redis://127.0.0.1:1"];
    few_s(&large);
}
