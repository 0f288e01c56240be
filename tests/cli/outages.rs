//! What a loss of power would leave: told apart from what a kill leaves, by real servers and by stores that lie.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::desk::{Desk, Said, Started, command_line, signal, wait_for};

/// Its first two kills come within 0.3 s after the first acknowledged write, and the third and fourth within 0.5 s.
const SOON: &str = "597";
/// Its first kill comes after 0.2 s, its second one after 1.3 s: in between Redis has synced, as it does each second.
const SOON_AND_LATE: &str = "183";

/// What `crash --json` says of one target at a durability level.
fn tried(target: &str, level: &str, kills: &str, code: i32) -> Value {
    let desk = Desk::new();
    let said = crash(&desk, target, level, kills, SOON);
    said.exits(code);
    seen(&said)
}

fn crash(desk: &Desk, target: &str, level: &str, kills: &str, seed: &str) -> Said {
    desk.run(&["crash", target, "--durability", level, "--kills", kills, "--seed", seed, "--json"])
}

fn seen(said: &Said) -> Value {
    let all: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no JSON:\n{}{}", said.out, said.err));
    all["rows"][0].clone()
}

/// Of each loss of power the share of what was written since the one before.
fn lost_shares(seen: &Value) -> Vec<f64> {
    let outages =
        seen["tried"]["outages"]["emulated"].as_array().unwrap_or_else(|| panic!("no losses of power: {seen}"));
    let number = |kill: &Value, what: &str| kill[what].as_f64().expect("a count");
    for kill in outages {
        assert!(number(kill, "records") >= 10.0, "{kill}");
    }
    outages.iter().map(|kill| number(kill, "lost") / number(kill, "records")).collect()
}

/// No kill can tell these apart: the kernel keeps what it was handed.
#[test]
fn the_three_ways_of_redis_are_told_apart() {
    let always = tried("redis+unix", "power", "2", 0);
    assert_eq!(always["keeps"], "power (syncs counted)");
    assert_eq!(lost_shares(&always), [0.0, 0.0]);
    let said = crash(&Desk::new(), "redis+unix?appendfsync=everysec", "crash", "2", SOON_AND_LATE);
    let everysec = seen(&said);
    // While a sync is under way Redis holds its writes back: then a kill takes some of them too.
    let kills = everysec["tried"]["kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 2, "{everysec}");
    said.exits(if kills.iter().any(|kill| !kill["wrong"].is_null()) { 4 } else { 0 });
    let shares = lost_shares(&everysec);
    assert!(shares.iter().any(|share| *share > 0.0) && shares.iter().any(|share| *share < 1.0), "{shares:?}");
    let never = tried("redis+unix", "crash", "2", 0);
    assert_eq!(
        never["keeps"], "crash (claimed: 2 kills)",
        "a loss of power breaks no promise of this durability level"
    );
    assert_eq!(lost_shares(&never), [1.0, 1.0]);
}

/// By each of their ways: synced logs, mapped files, pages that are written synced.
#[test]
fn embedded_stores_keep_what_they_say() {
    for target in ["lmdb", "sqlite", "redb", "fjall"] {
        let seen = tried(target, "power", "2", 0);
        assert_eq!((seen["keeps"].as_str(), lost_shares(&seen)), (Some("power (syncs counted)"), vec![0.0, 0.0]));
    }
}

/// It syncs as often as it must, so that counting cannot find it.
#[test]
fn who_syncs_too_early_is_found() {
    let seen = tried("faulty?fault=early", "power", "4", 4);
    let syncs = seen["tried"]["audit"]["counted"]["by"]["fdatasync"].as_u64();
    assert!(syncs >= Some(999), "{seen}");
    assert_eq!(seen["keeps"], "crash (claimed power)");
    assert!(lost_shares(&seen).iter().any(|share| *share > 0.0), "{seen}");
    let kept = tried("faulty?fault=kept", "power", "4", 0);
    assert_eq!((kept["keeps"].as_str(), lost_shares(&kept)), (Some("power (syncs counted)"), vec![0.0; 4]));
}

/// What is asked through a ring is not seen, and then nothing is said.
#[test]
fn it_is_said_in_the_table_and_what_cannot_be_seen_is_unknown() {
    let desk = Desk::new();
    let said = desk.run(&["crash", "redis+unix", "--durability", "crash", "--kills", "1", "--seed", SOON]);
    said.exits(0).shows("outage").shows("1 of 1 emulated loss of power lost something, at the median all");
    let ring = "python3 -c 'import ctypes; ctypes.CDLL(None).syscall(425, 1, (ctypes.c_char * 120)())'";
    desk.wrap("redis-server", &format!("{ring}; exec \"$real\" \"$@\""));
    let said = desk.run(&["crash", "redis+unix", "--durability", "crash", "--kills", "1", "--seed", SOON]);
    said.exits(0).shows("what a loss of power takes is unknown: io_uring was seen, whose syncs no tracer sees");
}

#[test]
fn a_killed_kvfair_leaves_no_tracer() {
    for what in ["--of\0", "redis-server"] {
        let desk = Desk::new();
        let started =
            Started::new(desk.kvfair(&["crash", "redis", "--kills", "1", "--seed", SOON, "--durability", "crash"]));
        let traced = || desk.processes().into_iter().find(|pid| command_line(*pid).contains("\0outage\0--owner\0"));
        wait_for("a tracer", traced);
        wait_for(what, || desk.processes().into_iter().find(|pid| command_line(*pid).contains(what)));
        signal(started.id(), Signal::SIGKILL);
        started.wait().exits(-1);
        desk.no_process_is_left();
        desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"]).exits(0);
        assert_eq!(desk.scratch(), Vec::<String>::new());
    }
}
