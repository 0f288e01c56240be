//! Counters of `redis?counters=hash`: the same end state as of counters that are keys, by every way and at every URL.

use kvfair::model::trial::Transport;

use crate::cli::strangers::port_of;
use crate::common;
use crate::common::desk::Desk;

#[test]
fn counters_in_one_hash_are_the_same_by_every_way() {
    let desk = Desk::new();
    let targets = ["redis+unix", "redis+unix?counters=hash", "valkey+unix?counters=hash", "cached:redis?counters=hash"];
    let ways = ["--via", "portable,batch,native,cas", "--messages", "60", "--blocks", "1"];
    desk.run(&[&["run", "ngrams"], &ways[..], &targets].concat()).exits(0);
    let records = desk.records();
    assert_eq!(records.len(), 16);
    for record in &records {
        let label = &record["target"]["label"];
        assert_eq!(record["verdict"]["kind"], "right", "{label}: {}", record["outcome"]);
        assert_eq!(record["verdict"]["extra_keys"], 0, "{label}");
        let hash = label.as_str().is_some_and(|label| label.contains("counters=hash"));
        let how = if hash { "HINCRBY" } else { "INCRBY" };
        assert!(
            record["store"]["increment"].as_str().is_some_and(|told| told.contains(how)),
            "{label}: {}",
            record["store"]
        );
    }
    assert!(desk.record("redis+unix?counters=hash")["store_stats"].to_string().contains("cmdstat_hincrby"));
}

#[test]
fn a_kept_hash_of_counters_is_read_and_asked() {
    let desk = Desk::new();
    let size = ["--messages", "200", "--blocks", "1"];
    let kept = ["--durability", "crash", "--keep", "kept", "redis?counters=hash&name=mine"];
    desk.run(&[&["run", "ngrams"], &size[..], &kept].concat()).exits(0);
    desk.run(&[&["run", "lookup"], &size[..], &["--durability", "crash", "redis?counters=hash"]].concat()).exits(0);
    let asked = desk.run(&["lookup", "redis:kept/mine", "ba"]);
    asked.exits(0).shows("ba");
}

/// Dragonfly's own server comes with no package: a stand-in that takes its flags answers.
#[test]
fn dragonfly_keeps_counters_in_one_hash() {
    let desk = Desk::new();
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/dragonfly.py");
    let target = format!("dragonfly?program={stand_in}&counters=hash&name=mine");
    for (job, ways) in [("ngrams", "portable,batch,native"), ("lookup", "portable,batch")] {
        desk.run(&["run", job, "--messages", "100", "--blocks", "1", "--via", ways, &target, "ram"]).exits(0);
    }
    let records = desk.records();
    let of_dragonfly: Vec<_> = records.iter().filter(|record| record["target"]["store"] == "dragonfly").collect();
    assert_eq!(of_dragonfly.len(), 3 + 2, "a record for each way");
    for record in of_dragonfly {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
        assert!(record["store"]["increment"].as_str().is_some_and(|told| told.contains("HINCRBY")), "{record}");
    }
}

/// A check passes, and a run leaves nothing at a URL.
#[test]
fn a_hash_of_counters_is_taken_back_from_a_url() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://127.0.0.1:{}/2?counters=hash", port_of(&server));
    desk.run(&["check", "redis?counters=hash", &url]).exits(0);
    for job in ["ngrams", "lookup"] {
        desk.run(&["run", job, "--messages", "100", "--blocks", "1", "--via", "batch,portable", &url]).exits(0);
    }
    // Only an empty store is worked on.
    desk.run(&["run", "ngrams", "--messages", "100", "--blocks", "1", &url]).exits(0);
    desk.run(&["run", "ngrams", "redis?counters=list"]).exits(2).complains("?counters=list: keys or hash");
}
