//! A primary is killed, and a replica takes its place: what is lost is counted, with and without waiting for replicas.
#![cfg(target_os = "linux")]

use serde_json::Value;

use crate::cli::limits::run_on_disk;
use crate::common::desk::{Desk, Said};
use crate::common::needs::{Need, needs};

/// Both kills of this seed come within 0.6 s after writes of each client were acknowledged.
const CRASH: &[&str] = &["crash", "--failover", "--seed", "716"];
/// The first kill of this seed comes after two seconds.
const LATE: &[&str] = &["crash", "--failover", "--seed", "7"];
/// Stops a replica as soon as it has a write of some client.
const STOP: &str = "until ask dbsize | grep -q '[1-9]'; do sleep 0.02; done; kill -STOP $$";

/// Starts each Redis that follows another with a shell script beside it, in which `ask` is redis-cli; each other Redis
/// after `primary`.
fn beside_replicas(desk: &Desk, script: &str, primary: &str) {
    let replica = format!(
        "cat > config; secret=$(sed -n 's/^requirepass //p' config)
        port=$(printf '%s' \"$*\" | sed 's/.*--port \\([0-9]*\\).*/\\1/')
        ask() {{ REDISCLI_AUTH=\"$secret\" redis-cli -p \"$port\" \"$@\" 2>/dev/null; }}
        ( {script} ) >/dev/null 2>&1 &
        exec \"$real\" \"$@\" < config"
    );
    desk.wrap(
        "redis-server",
        &format!("case \"$*\" in *replicaof*)\n{replica};; *) {primary};; esac\nexec \"$real\" \"$@\""),
    );
}

fn seen(said: &Said) -> Vec<Value> {
    let json: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no JSON:\n{}{}", said.out, said.err));
    json["rows"].as_array().expect("rows").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// What holds of every kill, whatever is lost.
fn check_kills(target: &Value, count: usize) {
    let kills = target["kills"].as_array().expect("kills");
    assert_eq!(kills.len(), count, "{target}");
    for kill in kills {
        assert!(number(&kill["acknowledged"]) >= 20.0 && number(&kill["after_s"]) >= 0.5, "{kill}");
        assert!(number(&kill["acknowledged_later"]) >= 4.0 && kill["lost_later"] == 0, "{kill}");
        let (detected_s, promoted_s) = (number(&kill["detected_s"]), number(&kill["promoted_s"]));
        assert!(detected_s >= 0.0 && promoted_s > detected_s, "{kill}");
        assert!(number(&kill["accepted_s"]) >= promoted_s, "{kill}");
        assert!(kill["promoted"].as_str().is_some_and(|name| name.starts_with("replica ")), "{kill}");
        let followers = kill["followers"].as_array().expect("followers");
        assert_eq!(followers.len(), 1, "{kill}");
        assert!(followers[0]["in_sync_s"].is_f64() && followers[0]["differs"] == 0, "{kill}");
        assert!(followers[0]["name"] != kill["promoted"], "{kill}");
    }
    assert_eq!((&target["wrong"], &target["fault"]), (&Value::from(0), &Value::Null), "{target}");
}

#[test]
fn behind_a_slow_link_writes_are_lost_unless_they_wait_for_a_replica() {
    let desk = Desk::new();
    needs!(Need::server("valkey"));
    let (alone, waits) = ("valkey?replicas=2&link-delay=300ms", "valkey?replicas=2&link-delay=300ms&wait=1");
    let said = desk.run(&[CRASH, &["--kills", "2", "--json", alone, waits]].concat());
    said.exits(0);
    let seen = seen(&said);
    assert_eq!((&seen[0]["target"], &seen[1]["target"]), (&Value::from(alone), &Value::from(waits)));
    check_kills(&seen[0], 2);
    check_kills(&seen[1], 2);
    for kill in seen[0]["kills"].as_array().expect("kills") {
        // All that was acknowledged within the delay was under way, and arrived until the promotion.
        let lost = number(&kill["lost"]);
        assert!(lost > 0.0 || number(&kill["promoted_s"]) > 0.25, "{kill}");
        assert!(lost < number(&kill["acknowledged"]), "{kill}");
        // Negative where a client noted the acknowledgement after the first signal.
        let oldest_lost_s = kill["oldest_lost_s"].as_f64();
        assert_eq!(oldest_lost_s.is_some(), lost > 0.0, "{kill}");
        assert!(oldest_lost_s <= kill["after_s"].as_f64(), "{kill}");
    }
    assert_eq!(number(&seen[0]["lost_share"]) > 0.0, number(&seen[0]["lost"]) > 0.0, "{}", seen[0]);
    assert_eq!((&seen[1]["lost"], &seen[1]["wait"]), (&Value::from(0), &Value::from(1)), "{}", seen[1]);
    desk.no_process_is_left();
}

#[test]
fn both_variants_stand_beside_each_other() {
    let desk = Desk::new();
    let (alone, waits) = ("redis?replicas=2", "redis?replicas=2&wait=1");
    let said = desk.run(&[CRASH, &["--kills", "1", alone, waits]].concat());
    said.exits(0).shows("failover: 1 kill of each primary at durability crash, 4 clients, seed 716");
    said.shows("target writes/s lost oldest accepted worst followed");
    said.shows(&format!("{alone}: The primary alone acknowledges a write."));
    said.shows(&format!("{waits}: A write is acknowledged when 1 replica has it. 0 of 1 kill lost any of"));
    said.shows("The other replicas followed the new primary after 1 of 1 kill, in sync");
    said.shows("No key held a value that was never written there.");
    desk.no_process_is_left();
    desk.is_swept();
}

/// Standbys: `pg_promote`, and `synchronous_commit` where writes wait.
#[test]
fn a_standby_is_promoted_and_the_other_follows_it() {
    needs!(Need::server("postgres"));
    let desk = Desk::new();
    let targets = ["postgres?replicas=2", "postgres?replicas=2&link-delay=50ms&wait=1"];
    let said = desk.run(&[CRASH, &["--kills", "1", "--json"], &targets[..]].concat());
    said.exits(0);
    let seen = seen(&said);
    check_kills(&seen[0], 1);
    check_kills(&seen[1], 1);
    assert_eq!(seen[1]["lost"], 0, "{}", seen[1]);
    desk.no_process_is_left();
}

/// The new primary is written to by somebody else: a key of a client that writes no more holds what it never wrote.
#[test]
fn a_value_that_was_never_written_is_a_fault_and_no_loss() {
    let desk = Desk::new();
    let meddle = "until ask info replication | grep -q role:master; do sleep 0.02; done
        ask set kvfair:crash:0:0 meddled";
    beside_replicas(&desk, meddle, ":");
    let said = desk.run(&[CRASH, &["--kills", "1", "redis?replicas=2&wait=1"]].concat());
    said.exits(4).shows("1 key held a value that was never written there");
    said.shows("This must not happen: client 0: key 0 holds a value that was never written there");
}

#[test]
fn a_replica_that_refuses_to_be_promoted_is_named_and_the_others_go_on() {
    let desk = Desk::new();
    let script =
        "case \"$*\" in *replicaof*) set -- \"$@\" --rename-command REPLICAOF GONE;; esac\nexec \"$real\" \"$@\"";
    desk.wrap("redis-server", script);
    let whole = desk.home().join("whole");
    std::os::unix::fs::symlink(crate::common::desk::real("redis-server"), &whole).expect("a link of the test");
    let other = "redis?program=./whole&replicas=2&name=whole";
    let said = desk.run(&[CRASH, &["--kills", "1", "redis?replicas=1", other]].concat());
    said.exits(1).shows("redis?replicas=1 not tried").shows("replica 1 cannot be promoted: refused: redis at");
    said.shows("whole: The primary alone acknowledges a write. ");
    desk.no_process_is_left();
}

/// It is stopped as soon as it has a write, so that it answers nobody.
#[test]
fn a_replica_that_is_not_promoted_in_time_is_named() {
    let desk = Desk::new();
    let starts = desk.home().join("starts");
    let note = format!("echo >> {}", starts.display());
    beside_replicas(&desk, &format!("{note}; {STOP}"), &format!("case \"$*\" in *--port*) {note};; esac"));
    let said = desk.run(&[LATE, &["--kills", "2", "redis?replicas=1"]].concat());
    said.exits(1).shows("no replica was promoted within 20 s: replica 1: ");
    let starts = std::fs::read_to_string(starts).expect("servers were started");
    assert_eq!(starts.lines().count(), 2, "a primary and a replica: there is no second kill");
    desk.no_process_is_left();
}

/// It is stopped before the primary is killed, and goes on a second afterwards.
#[test]
fn the_time_until_writes_are_accepted_holds_the_time_of_the_promotion() {
    let desk = Desk::new();
    let primary = desk.home().join("primary");
    let primary = primary.display();
    let late = format!("{STOP}; while kill -0 $(cat {primary}); do sleep 0.02; done; sleep 1; kill -CONT $$");
    beside_replicas(&desk, &late, &format!("echo $$ > {primary}"));
    let said = desk.run(&[LATE, &["--kills", "1", "--json", "redis?replicas=1"]].concat());
    said.exits(0);
    let target = &seen(&said)[0];
    let kill = &target["kills"][0];
    let (accepted_s, promoted_s) = (number(&kill["accepted_s"]), number(&kill["promoted_s"]));
    assert!(accepted_s >= promoted_s && promoted_s >= 0.95, "{kill}");
    assert!(number(&kill["detected_s"]) < promoted_s, "{kill}");
    assert_eq!(number(&target["accepted_s_worst"]), accepted_s, "{target}");
    desk.no_process_is_left();
}

#[test]
fn targets_without_a_replica_to_promote_are_refused_with_a_hint() {
    let desk = Desk::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        let said = desk.run(&[&["crash", "--failover"], arguments].concat());
        words.iter().fold(said.exits(2), |said, words| said.complains(words));
    };
    refused(&[], &["--failover needs a target with replicas", "hint: kvfair crash --failover 'redis?replicas=2'"]);
    refused(&["redis"], &["redis has no replica to promote", "hint: 'redis?replicas=2'"]);
    refused(&["lmdb"], &["lmdb is opened in a process of kvfair", "hint: stores with replicas: redis, valkey"]);
    refused(&["memcached"], &["kvfair starts no replicas of memcached", "hint: stores with replicas: redis, valkey"]);
    refused(&["redis://127.0.0.1:1"], &["only stores that are started here are killed"]);
    refused(&["redis?replicas=1&wait=1"], &["too few for ?wait=1", "hint: ?replicas=2"]);
    for (target, what) in [("redis?replicas=2&wait=9", "2 replicas"), ("redis?replicas=1&wait=9", "1 replica")] {
        refused(&[target], &[&format!("{what} cannot have what 9 must have"), "hint: redis?replicas=2&wait=1"]);
    }
    refused(&["redis?wait=1"], &["?wait= is for a store with replicas", "hint: redis?replicas=2&wait=..."]);
    refused(&["redis?replicas=2&wait=0"], &["a number of replicas from 1 to 100"]);
    refused(&["redis?replicas=0"], &["a number of replicas from 1 to 100"]);
    refused(&["redis?replicas=2"; 2], &["two targets are called 'redis?replicas=2'", "'redis?replicas=2&name=other'"]);
    refused(&["redis?replicas=2", "--kills", "0"], &["--kills"]);
    let said = desk.run(&["crash", "redis?replicas=2"]);
    said.exits(2).complains("crash kills one server").complains("kvfair crash --failover 'redis?replicas=2'");
}

/// The lever costs time in a run, and its answers are right.
#[test]
fn a_run_can_wait_for_replicas_too() {
    let desk = Desk::new();
    let few = ["--records", "100", "--clients", "2", "--requests", "400", "--blocks", "1"];
    let target = "redis?replicas=2&wait=2";
    desk.run(&[&["run", "mixed", target], &few[..]].concat()).exits(0);
    assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{}", desk.record(target)["outcome"]);
}

/// On a small disk writes are refused until the disk has room. Nothing is waited for, and the disk is named.
#[test]
fn a_full_disk_is_named_and_not_waited_for() {
    let desk = Desk::new();
    let crash = ["crash", "--failover", "redis?replicas=1", "--durability", "crash", "--kills", "3", "--seed", "7"];
    let said = run_on_disk(&desk, "full", "3m", ": TMPDIR", &crash);
    said.exits(1).shows("proves nothing").complains("hint: make room on the disk of");
    assert!(!said.out.contains("within"), "it was waited for: {}", said.out);
}
