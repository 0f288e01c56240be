//! Stores with replicas: how old what they answer is, what each server used, and that all hold the end state.

use serde_json::{Value, json};

use crate::common::desk::Desk;
use crate::common::needs::{Need, needs, servers_here};

/// Two servers and more on few processors: what is tested is what is said, not how fast it is.
const MIXED: &[&str] = &["run", "mixed", "--blocks", "1", "--reads", "1", "--writes", "1"];

fn phase<'a>(record: &'a Value, name: &str) -> &'a Value {
    let phases = record["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no {name} in {}", record["outcome"]))
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number")).collect()
}

fn cpu_s(usage: &Value) -> f64 {
    usage["user_s"].as_f64().expect("seconds") + usage["system_s"].as_f64().expect("seconds")
}

/// Half of 200 requests a second write the one key there is: a new version every 10 ms, which a replica has half a
/// second later.
#[test]
fn a_delayed_link_makes_reads_as_old_as_the_delay_and_a_primary_is_never_stale() {
    for store in servers_here(&["redis", "postgres"]) {
        let fresh = format!("{store}?replicas=1&read=all");
        reads_are_as_old_as_the_delay(&format!("{fresh}&link-delay=500ms"), &fresh);
    }
}

fn reads_are_as_old_as_the_delay(all: &str, fresh: &str) {
    let desk = Desk::new();
    let one_key = ["--records", "1", "--clients", "1", "--requests", "600", "--rate", "200", "--arrivals", "constant"];
    // At `none` PostgreSQL sends its log up to 0.2 s later.
    let said = desk.run(&[MIXED, &one_key, &["--durability", "crash", all, fresh]].concat());
    said.exits(0).shows("reads from replicas that were stale").shows("stale reads: how far behind, p50 / p99 / worst");
    for target in [all, fresh] {
        let record = desk.record(target);
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
        let seen = &phase(&record, "run")["staleness"];
        let (reads, stale) = (numbers(&seen["reads"]), numbers(&seen["stale"]));
        assert!(reads.len() == 2 && reads.iter().all(|count| *count > 120), "in turn: {seen}");
        assert_eq!(stale[0], 0, "the primary has what it has acknowledged");
        // The delay is beyond what a request takes: all but the first reads are stale.
        assert!(target != all || stale[1] * 10 > reads[1] * 9, "{seen}");
    }
    let rows = desk.rows();
    let row = |target: &str| rows.iter().find(|row| row["target"] == target).expect("a row");
    // A busy machine may stop the writer for a while, which makes the reads of that while younger.
    let [max_ms, max_versions] =
        ["stale_ms_max", "stale_versions_max"].map(|name| row(all)[name].as_f64().expect(name));
    assert!(max_ms >= 450.0, "{}", row(all));
    assert!(max_versions >= 25.0, "one every 10 ms: {}", row(all));
    let share = |target| row(target)["stale_share"].as_f64().expect("a share");
    assert!(share(all) > 0.9 && share(fresh) < share(all), "{} and {}", row(all), row(fresh));
    desk.run(&["show", "--csv"]).exits(0).shows("stale_share,stale_ms_p50,stale_ms_p99,stale_ms_max");
    desk.run(&["show", "--html", "page.html"]).exits(0);
    let page = std::fs::read_to_string(desk.home().join("page.html")).expect("a page");
    assert!(page.contains("reads from replicas that were stale"), "{page}");
}

/// Nobody writes while getset reads, and every phase begins in sync: nothing newer was acknowledged.
#[test]
fn where_nothing_newer_was_acknowledged_no_read_is_stale() {
    let desk = Desk::new();
    let few = ["--records", "300", "--clients", "3", "--requests", "900", "--blocks", "1"];
    let target = "redis?replicas=1&read=replicas&link-delay=20ms";
    desk.run(&[&["run", "getset", target], &few[..]].concat()).exits(0);
    let record = desk.record(target);
    let seen = &phase(&record, "get")["staleness"];
    assert_eq!((numbers(&seen["reads"]), numbers(&seen["stale"])), (vec![0, 900], vec![0, 0]));
    assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
}

#[test]
fn each_server_is_in_the_record_and_holds_the_end_state() {
    let desk = Desk::new();
    let few = ["--records", "500", "--values", "100", "--clients", "4"];
    for store in servers_here(&["redis", "valkey"]) {
        let target = format!("{store}?replicas=2&read=all");
        let said = desk.run(&[MIXED, &few, &["--rate", "500,1k", "--requests", "1000", &target]].concat());
        said.exits(0).shows("reads from replicas that were stale").shows("every get was right");
        said.shows("server, in its first trial CPU s memory mapped disk written in sync after").shows("replica 2");
        let record = desk.record(&target);
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
        assert_eq!(record["job"]["load"]["one_writer"], true);
        let replicas = record["replicas"].as_array().expect("replicas");
        assert_eq!(replicas.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["replica 1", "replica 2"]);
        for replica in replicas {
            assert!(replica["memory"]["anonymous_bytes"].as_u64().is_some_and(|bytes| bytes > 100_000), "{replica}");
            assert!(replica["bytes_on_disk"].is_u64() && replica["caught_up_s"].is_f64(), "{replica}");
            let command = replica["command"].as_array().expect("a command");
            assert!(command.contains(&json!("--replicaof")), "{replica}");
        }
        let run = phase(&record, "run");
        assert_eq!(run["replicas"].as_array().map(Vec::len), Some(2));
        assert!(run["replicas"].as_array().expect("two").iter().all(|one| cpu_s(one) > 0.0), "{run}");
        let reads = numbers(&run["staleness"]["reads"]);
        assert!(reads.len() == 3 && reads.iter().all(|count| *count > 50), "{reads:?}");
    }
    // A table of rows tells it below.
    let target = "redis?replicas=2&read=replicas";
    let said = desk.run(&[MIXED, &few, &["--requests", "3000", target, "redis?replicas=1"]].concat());
    said.exits(0).shows("reads from replicas (p50 / p99 / worst of stale reads): redis?replicas=2&read=replicas");
    let reads = |target: &str| numbers(&phase(&desk.record(target), "run")["staleness"]["reads"]);
    assert!(reads(target)[0] == 0 && reads(target)[1] > 500, "{:?}", reads(target));
    assert!(reads("redis?replicas=1")[1] == 0, "by default only the primary is read");
    assert_eq!(desk.run(&["show"]).exits(0).out, said.out, "the same from the file");
    desk.no_process_is_left();
}

/// A standby is a copy of its primary that follows its log.
#[test]
fn standbys_are_read_and_hold_the_end_state() {
    needs!(Need::server("postgres"));
    let desk = Desk::new();
    let few = ["--records", "300", "--values", "100", "--clients", "3", "--rate", "400", "--requests", "400"];
    let target = "postgres?replicas=2&read=all";
    desk.run(&[MIXED, &few, &[target]].concat()).exits(0).shows("reads from replicas that were stale");
    let record = desk.record(target);
    assert_eq!(record["verdict"]["kind"], "right", "{}", record["outcome"]);
    let run = phase(&record, "run");
    let (reads, stale) = (numbers(&run["staleness"]["reads"]), numbers(&run["staleness"]["stale"]));
    assert!(reads.len() == 3 && reads.iter().all(|count| *count > 50) && stale[0] == 0, "{reads:?} {stale:?}");
    let replicas = record["replicas"].as_array().expect("replicas");
    assert_eq!(replicas.len(), 2, "{record}");
    for replica in replicas {
        assert!(replica["memory"]["anonymous_bytes"].as_u64().is_some_and(|bytes| bytes > 100_000), "{replica}");
        assert!(replica["bytes_on_disk"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{replica}");
        assert!(replica["caught_up_s"].is_f64(), "{replica}");
        assert!(!replica["command"].to_string().contains("password="), "{replica}");
    }
    desk.no_process_is_left();
}

#[test]
fn a_replica_that_never_syncs_is_named_in_time() {
    let desk = Desk::new();
    let script = "case \"$*\" in *replica-2*) set -- \"$@\" --masterauth wrong;; esac\nexec \"$real\" \"$@\"";
    desk.wrap("redis-server", script);
    let run = ["--records", "100", "--clients", "2", "--requests", "100", "--timeout", "3s", "redis?replicas=2"];
    desk.run(&[MIXED, &run].concat()).exits(3);
    let reason = desk.reason("redis?replicas=2");
    assert!(reason.contains("replica 2 was not in sync within 3."), "{reason}");
    assert!(reason.contains("no working link to its primary"), "{reason}");
    desk.no_process_is_left();
}

/// Somebody writes to a replica alone: no client reads that key, and the end state there is wrong.
#[test]
fn an_end_state_that_is_wrong_on_one_replica_is_found_and_the_replica_named() {
    let desk = Desk::new();
    let meddle = "secret=$(sed -n 's/^requirepass //p' config)\n\
        port=$(printf '%s' \"$*\" | sed 's/.*--port \\([0-9]*\\).*/\\1/')\n\
        ask() { REDISCLI_AUTH=\"$secret\" redis-cli -p \"$port\" \"$@\" 2>/dev/null; }\n\
        ( until ask info replication | grep -q master_link_status:up; do sleep 0.05; done; sleep 0.5\n\
          ask config set replica-read-only no; ask set meddled yes ) >/dev/null 2>&1 &\n";
    let meddled = format!("cat > config\n{meddle}exec \"$real\" \"$@\" < config");
    let script = format!("case \"$*\" in *replica-2*)\n{meddled};; esac\nexec \"$real\" \"$@\"");
    desk.wrap("redis-server", &script);
    let run = ["--records", "100", "--clients", "2", "--rate", "300", "--requests", "600", "redis?replicas=2"];
    desk.run(&[MIXED, &run].concat()).exits(4).shows("on replica 2");
    let verdict = &desk.record("redis?replicas=2")["verdict"];
    assert_eq!(verdict["kind"], "wrong", "{verdict}");
    assert_eq!(verdict["first"]["found"], "101 on replica 2", "{verdict}");
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let desk = Desk::new();
    let refused = |target: &str, words: &str| {
        desk.run(&["run", "mixed", target]).exits(2).complains(words);
    };
    refused("redis?replicas=0", "?replicas=0: a number of replicas from 1 to 100");
    refused("redis?replicas=two", "a number of replicas from 1 to 100");
    refused("redis?replicas=2&read=any", "?read=any: primary, replicas or all");
    refused("redis?replicas=2&link-delay=9s", "a time from 0ms to 500ms");
    refused("redis?read=replicas", "?read= is for a store with replicas");
    refused("redis?link-delay=5ms", "?link-delay= is for a store with replicas");
    refused("redis://127.0.0.1:1?replicas=2", "?replicas= is for a server that is started here");
    refused("redis+unix?replicas=2", "replicas of redis follow it over tcp");
    refused("cached:redis?replicas=2", "a cache in the client would hide");
    refused("lmdb?replicas=2", "lmdb has no setting 'replicas'");
    refused("memcached?replicas=2", "memcached has no setting 'replicas'");
}

#[test]
fn work_that_replicas_cannot_share_is_refused() {
    let desk = Desk::new();
    let target = "redis?replicas=2&read=all";
    let refused = |arguments: &[&str], words: &str| {
        desk.run(&[arguments, &[target]].concat()).exits(2).complains(words);
    };
    refused(&["run", "fans"], "each key has one writer, and the job fans has no such keys");
    refused(&["run", "fans"], "jobs that can: ");
    refused(&["run", "ngrams"], "each key has one writer");
    refused(&["run", "mixed", "--depth", "2"], "--depth: a client of several servers");
    refused(&["run", "getset", "--batch", "5"], "--batch: a client of several servers");
    refused(&["run", "mixed", "--reconnect"], "--reconnect: a client of several servers");
    refused(&["run", "mixed", "--rtt", "1ms"], "--rtt: it delays the way to one server");
    refused(&["run", "mixed", "--records", "3", "--clients", "4"], "3 records are too few for 4 clients");
    refused(&["run", "mixed", "--values", "8"], "each value carries its version: 8 bytes are too few");
    refused(&["run", "mixed", "--values", "1-100"], "each value carries its version: 1 bytes are too few");
    refused(&["check"], "check asks one server");
    refused(&["crash"], "crash kills one server");
    refused(&["growth"], "growth fills one server");
    refused(&["run", "--exec", "true {host} {port}"], "a program is told the place of one server");
}
