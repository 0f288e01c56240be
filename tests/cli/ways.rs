//! The ways in which `fans` and `ngrams` ask, the cache, the durability levels and the configurations: the same answer
//! from every store by each of them, or a refusal that names what the store lacks.

use kvfair::model::trial::Durability;
use kvfair::stores::{self, Means};
use serde_json::Value;

use crate::cli::answers::expected;
use crate::common::desk::{Desk, Said};

/// What a row may say that has no right answer: that the store, or the cache, has no such op.
const LACKS: &str = " has no ";
/// These take longer than all the rest, to start or for each op: they are asked less.
const SLOW: &[&str] = &["cassandra", "ferretdb", "mariadb", "postgres"];

fn quick() -> Vec<String> {
    expected().into_iter().filter(|target| !SLOW.iter().any(|slow| target.starts_with(slow))).collect()
}

/// Those that have the means; who has not is refused by name, and nothing is run.
fn able(targets: &[String], means: Option<(Means, &str)>) -> Vec<String> {
    let lacks = |target: &&String| {
        let (name, query) = target.split_once('?').unwrap_or((target, ""));
        let settings = query.split('&').filter_map(|setting| setting.split_once('='));
        let settings = settings.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let adapter = stores::find(name.trim_end_matches("+unix")).expect("a store of ours");
        means.is_some_and(|(means, _)| (adapter.lacks)(&settings).contains(&means))
    };
    let (unable, able): (Vec<_>, Vec<_>) = targets.iter().partition(lacks);
    if let (Some((means, via)), false) = (means, unable.is_empty()) {
        let desk = Desk::new();
        let unable: Vec<String> = unable.into_iter().cloned().collect();
        let said = run(&desk, &["fans", "--profiles", "10", "--via", via], &unable);
        said.exits(2).complains(&format!(" {}, which --via {via} needs", means.missing()));
        assert!(desk.records().is_empty(), "nothing was run");
    }
    able.into_iter().cloned().collect()
}

fn run(desk: &Desk, arguments: &[&str], targets: &[String]) -> Said {
    let targets = targets.iter().map(String::as_str);
    desk.run(&["run", "--blocks", "1"].into_iter().chain(arguments.iter().copied()).chain(targets).collect::<Vec<_>>())
}

/// Every record is right, or says what the store lacks. How many were right.
fn check(records: &[Value]) -> usize {
    let mut right = 0;
    for record in records {
        let (label, outcome) = (&record["target"]["label"], &record["outcome"]);
        match outcome["kind"].as_str() {
            Some("finished") => {
                let verdict = record["verdict"]["kind"].as_str();
                assert!(matches!(verdict, Some("right" | "baseline")), "{label}: {}", record["verdict"]);
                right += 1;
            }
            Some("refused") => {
                let reason = outcome["reason"].as_str().unwrap_or_default();
                assert!(reason.contains(LACKS) || reason.starts_with("durability "), "{label}: {reason}");
            }
            _ => panic!("{label}: {outcome}"),
        }
    }
    right
}

/// Increments, adds one by one and a message at a time, and check-and-set come to the same counts, also behind a cache
/// that merges in between.
#[test]
fn each_way_of_counting_gives_the_same_answer() {
    let targets = quick();
    for (via, means) in [("portable,batch,native", None), ("cas", Some((Means::Versions, "cas")))] {
        let desk = Desk::new();
        let lacks = |target: &&String| {
            let name = target.split('?').next().unwrap_or_default().trim_end_matches("+unix");
            let adapter = stores::find(name).expect("a store of ours");
            means.is_some_and(|(means, _)| (adapter.lacks)(&Default::default()).contains(&means))
        };
        let mut able: Vec<String> = targets.iter().filter(|target| !lacks(target)).cloned().collect();
        able.extend(["cached:ram", "cached:redis?merge=10", "cached:ram?memory=64KB"].map(str::to_string));
        run(&desk, &["ngrams", "--messages", "100", "--via", via], &able).exits(0);
        let records = desk.records();
        assert_eq!(records.len(), via.split(',').count() * able.len());
        let right = check(&records);
        assert!(right == records.len() && able.len() > 6, "{via}: {right} right of {}", records.len());
    }
}

/// Whatever an op of the way of asking is, CPU is shown for an op of the job: it compares all rows.
#[test]
fn an_op_of_the_cpu_column_is_the_same_in_every_way_and_for_batch_engines() {
    let desk = Desk::new();
    let targets = ["lmdb", "redis+unix", "sort"].map(str::to_string);
    run(&desk, &["ngrams", "--messages", "300", "--via", "portable,batch,cas"], &targets).exits(0);
    let rows = desk.rows();
    assert_eq!(rows.len(), 7, "{rows:?}");
    for row in &rows {
        let record = desk.record(row["target"].as_str().expect("a target"));
        let increments = record["stream"]["ops"].as_f64().expect("a count");
        let of_phase = |phase: &Value| {
            let used = |who: &str| {
                phase[who]["user_s"].as_f64().unwrap_or(0.0) + phase[who]["system_s"].as_f64().unwrap_or(0.0)
            };
            used("client") + used("server")
        };
        let phases = record["phases"].as_array().expect("phases").iter().filter(|phase| phase["name"] != "load");
        let cpu_us = 1e6 * phases.map(of_phase).sum::<f64>();
        let told = |who: &str| row[format!("{who}_cpu_us_per_op")].as_f64().unwrap_or(0.0);
        let shown_us = (told("client") + told("server")) * increments;
        assert!((shown_us / cpu_us - 1.0).abs() < 1e-6, "{}: {shown_us} of {cpu_us} us", row["target"]);
    }
}

/// Longer runs, and runs of characters, are counted as they are told beforehand, and say so above the table.
#[test]
fn runs_of_each_order_and_unit_are_counted() {
    let desk = Desk::new();
    for (order, unit, headline) in
        [("1", "word", "1 to 1 words"), ("5", "word", "1 to 5 words"), ("3", "char", "1 to 3 chars")]
    {
        let arguments = ["ngrams", "--messages", "100", "--order", order, "--unit", unit, "--via", "portable,batch"];
        let said = run(&desk, &arguments, &["lmdb".to_string(), "redis".to_string()]);
        said.exits(0).shows(headline);
    }
    assert_eq!(check(&desk.records()), 12);
    desk.run(&["run", "ngrams", "--order", "9", "ram"]).exits(2).complains("9 is not in 1..=5");
    desk.run(&["run", "ngrams", "--unit", "line", "ram"]).exits(2).complains("word or char");
    desk.run(&["run", "fans", "--order", "3", "ram"]).exits(2).complains("--order is no option of the job fans");
}

/// Clients who count the same terms do not lose any by any way that has versions or adds.
#[test]
fn several_clients_count_the_same_terms() {
    let desk = Desk::new();
    let able = ["redis", "lmdb", "rocksdb", "memcached", "cached:redis?merge=7"].map(str::to_string);
    let arguments = ["ngrams", "--messages", "200", "--clients", "4", "--via", "portable,batch,native,cas"];
    run(&desk, &arguments, &able).exits(0);
    assert_eq!(check(&desk.records()), 4 * able.len());
}

#[test]
fn each_way_gives_the_same_answer() {
    let targets = quick();
    // A store may lack versions or its own way of counting; whole values, one or many, every store has.
    for (via, means) in
        [("portable,batch", None), ("native", Some((Means::Tally, "native"))), ("cas", Some((Means::Versions, "cas")))]
    {
        let (desk, able) = (Desk::new(), able(&targets, means));
        run(&desk, &["fans", "--profiles", "100", "--via", via], &able).exits(0);
        let records = desk.records();
        assert_eq!(records.len(), via.split(',').count() * able.len());
        let right = check(&records);
        assert!(right == records.len() && able.len() > 3, "{via}: {right} right");
    }
}

#[test]
fn a_cache_in_front_changes_no_answer() {
    let desk = Desk::new();
    let targets: Vec<String> = quick().iter().map(|target| format!("cached:{target}?memory=200kB")).collect();
    run(&desk, &["fans", "--profiles", "100", "--via", "portable,batch"], &targets).exits(0);
    run(&desk, &["ngrams", "--messages", "200", "--clients", "2"], &targets);
    let records = desk.records();
    assert_eq!(records.len(), 3 * targets.len());
    assert_eq!(check(&records), records.len());
    for record in records.iter().filter(|record| record["outcome"]["kind"] == "finished") {
        assert!(record["counters"]["cache hits"].as_u64().expect("a count") > 0, "{}", record["target"]["label"]);
    }
    for target in ["cached:ram", "cached:lmdb?memory=1MB"] {
        let said = desk.run(&["run", "fans", "--profiles", "20", "--via", "native", "ram", target]);
        said.exits(2).complains("--via native has the store count by itself, and a cache cannot see that");
    }
}

/// A list of ways is no demand that each store has all of them.
#[test]
fn a_list_of_ways_leaves_out_what_a_store_lacks_and_names_it() {
    let desk = Desk::new();
    let fans = ["run", "fans", "--profiles", "20", "--blocks", "1", "--via"];
    let said = desk.run(&[&fans[..], &["portable,native,cas", "ram", "cached:ram", "lmdb"]].concat());
    said.exits(0).complains("left out: cached:ram native: --via native has the store count by itself");
    said.complains("left out: lmdb native: lmdb ");
    let labels: std::collections::BTreeSet<String> =
        desk.records().iter().map(|record| record["target"]["label"].as_str().expect("a label").to_string()).collect();
    let expected = ["cached:ram", "cached:ram cas", "lmdb", "lmdb cas", "ram", "ram cas", "ram native"];
    assert_eq!(Vec::from_iter(labels), expected);
    // A target that has none of them is a mistake.
    let said = desk.run(&[&fans[..], &["native,cas", "ram", "tokyotyrant"]].concat());
    said.exits(2).complains("tokyotyrant native: tokyotyrant ").complains(", which --via native needs");
}

/// Clients who share profiles meet at the same records: what they count must be all there.
#[test]
fn clients_who_meet_at_the_same_records_lose_nothing() {
    let desk = Desk::new();
    for (via, means) in [("cas", Means::Versions), ("native", Means::Tally)] {
        let shared = ["fans", "--profiles", "100", "--clients", "4", "--split", "profiles", "--via", via];
        run(&desk, &shared, &able(&quick(), Some((means, via)))).exits(0);
    }
    let records = desk.records();
    assert!(records.len() > 6 && check(&records) == records.len(), "{} records", records.len());
}

#[test]
fn every_class_that_a_store_keeps_gives_the_same_answer() {
    let keeps = |target: &String, level: Durability| {
        let adapter = stores::find(target.trim_end_matches("+unix")).expect("a store of ours");
        (adapter.keeps)(level).is_ok()
    };
    for level in [Durability::Crash, Durability::Power] {
        let (desk, name) = (Desk::new(), level.to_string());
        run(&desk, &["fans", "--profiles", "20", "--durability", &name], &quick());
        run(&desk, &["ngrams", "--messages", "20", "--durability", &name], &quick());
        let (records, keepers) = (desk.records(), quick().iter().filter(|target| keeps(target, level)).count());
        assert_eq!((check(&records), records.len()), (2 * keepers, 2 * quick().len()), "{level}");
        assert!(keepers > 6, "{level}: {keepers} keep it");
    }
}

#[test]
fn as_shipped_no_class_is_asked_for() {
    let desk = Desk::new();
    let said = run(&desk, &["fans", "--profiles", "50", "--config", "shipped"], &quick());
    said.shows("as shipped, durability not matched");
    assert_eq!(check(&desk.records()), quick().len());
    let said = desk.run(&["run", "fans", "--config", "shipped", "--durability", "crash", "ram"]);
    said.exits(2).complains("leave --durability out");
}

#[test]
fn what_would_lose_data_or_means_nothing_is_refused() {
    let desk = Desk::new();
    let sharing = ["run", "fans", "--split", "profiles", "--clients", "2", "ram"];
    desk.run(&sharing).exits(2).complains("would overwrite each other's records");
    desk.run(&["run", "getset", "--via", "native", "ram"]).exits(2).complains("the job getset has no way 'native'");
    desk.run(&["run", "ngrams", "--split", "profiles", "ram"])
        .exits(2)
        .complains("--split is no option of the job ngrams");
    desk.run(&["run", "fans", "--via", "swift", "ram"]).exits(2).complains("is no way");
    desk.run(&["run", "fans", "cached:ram?memory=much"]).exits(2).complains("is no size");
    for merge in ["0", "often"] {
        let target = format!("cached:ram?merge={merge}");
        desk.run(&["run", "ngrams", &target]).exits(2).complains("is no number of messages, which is 1 or more");
    }
    desk.run(&["run", "fans", "cached:ram?count=beans"]).exits(2).complains("entries or values");
    desk.run(&["run", "fans", "ram?memory=1MB"]).exits(2).complains("no setting 'memory'");
}

/// Pages counted by a store's own means can be asked for as records can.
#[test]
fn what_was_counted_natively_can_be_queried() {
    let desk = Desk::new();
    desk.run(&[
        "run",
        "fans",
        "--profiles",
        "300",
        "--blocks",
        "1",
        "--keep",
        "kept",
        "--via",
        "portable,native",
        "sqlite",
    ])
    .exits(0);
    let portable = desk.run(&["query", "sqlite:kept/sqlite", "Michael Jackson", "--json"]);
    let native = desk.run(&["query", "sqlite:kept/sqlite_native", "Michael Jackson", "--json"]);
    let answers = [portable, native].map(|said| {
        let json: serde_json::Value = serde_json::from_str(&said.exits(0).out).expect("JSON");
        (json["fans"].clone(), json["also"].clone())
    });
    assert!(answers[0] == answers[1] && answers[0].0.is_u64(), "{answers:?}");
}
