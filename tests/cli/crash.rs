//! Is it kept? Stores that lie are found, each for what it is; stores that keep their word pass; and whatever is killed
//! in the middle, nothing is left.
#![cfg(target_os = "linux")]

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::limits::{FILED, run_on_disk};
use crate::common::desk::{Desk, Said, Started, command_line, signal, wait_for};

/// Both kills of this seed come within 0.3 s after the first acknowledged write.
const SOON: &str = "432";

/// What `crash --json` says of one target.
fn seen(said: &Said) -> Value {
    let all: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no JSON:\n{}{}", said.out, said.err));
    all["rows"][0].clone()
}

fn tried(fault: &str, level: &str, code: i32) -> Value {
    let desk = Desk::new();
    let target = format!("faulty?fault={fault}");
    let said = desk.run(&["crash", &target, "--durability", level, "--kills", "2", "--seed", SOON, "--json"]);
    said.exits(code);
    let seen = seen(&said);
    assert_eq!(seen["tried"]["kills"].as_array().map(Vec::len), Some(2), "{seen}");
    seen
}

fn sum(seen: &Value, what: &str) -> u64 {
    let kills = seen["tried"]["kills"].as_array().expect("kills");
    kills.iter().map(|kill| kill[what].as_u64().expect("a count")).sum()
}

#[test]
fn a_store_that_keeps_its_word_passes() {
    let kept = tried("kept", "power", 0);
    assert_eq!(kept["keeps"], "power (syncs counted)", "two emulated losses of power are no test");
    assert_eq!(kept["tried"]["outages"]["emulated"].as_array().map(Vec::len), Some(2));
    assert_eq!(kept["tried"]["audit"]["counted"]["writes"], 999);
    assert_eq!((sum(&kept, "lost"), sum(&kept, "holes"), sum(&kept, "corrupt")), (0, 0, 0));
    for kill in kept["tried"]["kills"].as_array().expect("kills") {
        assert!(kill["acknowledged"].as_u64() >= Some(10), "{kill}");
        let (after_s, recovery_s) = (kill["after_s"].as_f64(), kill["recovery_s"].as_f64());
        assert!(after_s >= Some(0.2) && recovery_s > Some(0.0), "{kill}");
    }
}

#[test]
fn who_acknowledges_before_writing_is_found() {
    let seen = tried("unwritten", "crash", 4);
    assert_eq!(seen["keeps"], "none (claimed crash)");
    assert!(sum(&seen, "lost") > 0 && sum(&seen, "corrupt") == 0, "{seen}");
}

/// What no kill can show: the kernel keeps what it was handed.
#[test]
fn who_syncs_once_a_second_is_found_by_counting() {
    let seen = tried("lazy", "power", 4);
    assert_eq!(seen["keeps"], "crash (claimed power)");
    assert_eq!((sum(&seen, "lost"), sum(&seen, "corrupt")), (0, 0));
    let counted = seen["tried"]["audit"]["counted"]["by"].as_object().expect("counts");
    assert!(counted.values().map(|count| count.as_u64().expect("a count")).sum::<u64>() < 100, "{seen}");
    assert_eq!(tried("lazy", "crash", 0)["keeps"], "crash (claimed: 2 kills)");
}

#[test]
fn who_loses_the_newest_is_found() {
    let seen = tried("newest", "power", 4);
    assert_eq!(seen["keeps"], "none (claimed power)");
    assert!(sum(&seen, "lost") > 0 && sum(&seen, "corrupt") == 0, "{seen}");
}

#[test]
fn a_hole_is_found() {
    let seen = tried("hole", "power", 4);
    assert!(sum(&seen, "holes") >= 2 && sum(&seen, "holes") == sum(&seen, "lost"), "{seen}");
}

#[test]
fn a_torn_record_is_found() {
    let seen = tried("torn", "power", 4);
    assert!(sum(&seen, "corrupt") >= 2 && sum(&seen, "lost") == 0, "{seen}");
}

#[test]
fn a_wrong_value_is_found() {
    let seen = tried("swapped", "power", 4);
    assert!(sum(&seen, "corrupt") >= 2 && sum(&seen, "lost") == 0, "{seen}");
}

#[test]
fn real_stores_pass_at_what_they_claim() {
    let desk = Desk::new();
    let said = desk.run(&["crash", "redis+unix", "sqlite", "--kills", "2", "--seed", SOON]);
    said.exits(0).shows("crash (claimed: 2 kills)").shows("power (syncs counted)").shows("0 of 2 kills lost anything");
    said.shows("redis+unix, crash:").shows("sqlite, power:").shows("at most 78 % would at 95 %");
    let widest = said.out.lines().map(|line| line.chars().count()).max();
    assert!((50..=100).contains(&widest.expect("lines")), "{}", said.out);
}

/// What a store does not claim is said in its row, and the others are tried all the same.
#[test]
fn a_store_that_claims_nothing_is_a_row_beside_the_others() {
    let desk = Desk::new();
    let said = desk.run(&["crash", "memcached", "sqlite", "--kills", "1", "--seed", SOON, "--durability", "crash"]);
    said.exits(1).shows("memcached, crash: not tried: memcached claims no durability crash");
    said.shows("sqlite, crash: 0 of 1 kill lost anything");
    let both = desk.run(&["crash", "memcached", "ram", "--kills", "1"]);
    both.exits(2).complains("memcached claims no durability crash").complains("ram claims no durability crash");
}

/// Without a tracer nothing is guessed.
#[test]
fn without_strace_power_is_unknown() {
    let desk = Desk::with_only(&["redis-server"]);
    let said = desk.run(&["crash", "redis", "--kills", "1", "--seed", SOON, "--durability", "power"]);
    said.exits(6).shows("power (claimed)").shows("syncs unknown: no strace; 0 of 1").shows("power cannot be said");
    let said = desk.run(&["crash", "redis", "--kills", "1", "--seed", SOON, "--durability", "crash"]);
    said.exits(0).shows("crash (claimed: 1 kill)");
}

#[test]
fn a_tracer_that_may_not_trace_is_unknown_too() {
    let desk = Desk::new();
    desk.wrap("strace", "echo 'strace: ptrace(PTRACE_TRACEME): Operation not permitted' >&2; exit 1");
    let said = desk.run(&["crash", "faulty?fault=kept", "--kills", "1", "--seed", SOON, "--durability", "power"]);
    said.exits(6).shows("strace may not trace here").shows("Operation not permitted");
}

#[test]
fn a_store_that_does_not_come_back_fails() {
    let desk = Desk::new();
    desk.wrap("redis-server", "test -e started && exit 9; touch started; exec \"$real\" \"$@\"");
    let said = desk.run(&["crash", "redis", "--kills", "3", "--seed", SOON, "--durability", "crash"]);
    said.exits(4).shows("1 of 1 kill lost something; the first: it did not come back").shows("exit code 9");
    said.shows("none (claimed crash)");
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_starts() {
    let desk = Desk::new();
    for url in ["redis://me:secret@localhost:1", "lmdb:./somewhere", "redis+unix:///run/redis.sock"] {
        let said = desk.run(&["crash", url]);
        said.exits(2).complains("only stores that are started here are killed");
        assert!(!said.err.contains("secret"), "{}", said.err);
    }
    desk.run(&["crash", "memcached"]).exits(2).complains("memcached claims no durability crash");
    desk.run(&["crash", "cached:redis"]).exits(2).complains("a cache in front of a store keeps nothing");
    desk.run(&["crash", "redis", "--durability", "none"]).exits(2).complains("durability none promises nothing");
    desk.run(&["crash", "reddis"]).exits(2).complains("did you mean `redis`?");
    desk.run(&["crash", "redis", "redis"]).exits(2).complains("two targets are called 'redis'");
    let gone = desk.run(&["crash", "redis?program=/nowhere/redis-server", "--kills", "1"]);
    gone.exits(2).complains("/nowhere/redis-server is no program that can be run: no such file");
    assert!(!desk.home().join("kvfair-results").exists(), "nothing was tried");
}

/// Wherever it is: at its start, while clients write, while the store is read again, under strace, and where power is
/// lost.
#[test]
fn ctrl_c_at_any_moment_leaves_nothing() {
    for target in ["redis+unix", "lmdb"] {
        for moment in ["", "\0ledger\0", "killed", "strace\0", "\0outage\0"] {
            let desk = Desk::new();
            let started = Started::new(desk.kvfair(&["crash", target, "--kills", "1", "--seed", SOON]));
            let finds = |words: &str| desk.processes().into_iter().find(|pid| command_line(*pid).contains(words));
            match moment {
                "killed" => {
                    let first = wait_for("clients that write", || finds("\0ledger\0"));
                    wait_for("clients that read", || finds("\0ledger\0").filter(|pid| *pid != first));
                }
                words => _ = wait_for(moment, || finds(words)),
            }
            started.interrupt_at_once(Signal::SIGINT);
            started.wait().exits(130);
        }
    }
}

#[test]
fn kill_9_leaves_no_process_and_the_next_run_removes_its_files() {
    for what in ["ledger", "strace"] {
        let desk = Desk::new();
        let started =
            Started::new(desk.kvfair(&["crash", "redis", "--kills", "1", "--seed", SOON, "--durability", "power"]));
        let is = |pid: &u32| match what {
            "strace" => command_line(*pid).starts_with("strace\0") || command_line(*pid).contains("/strace\0"),
            _ => command_line(*pid).ends_with("\0ledger\0"),
        };
        wait_for(what, || desk.processes().into_iter().find(is));
        signal(started.id(), Signal::SIGKILL);
        started.wait().exits(-1);
        desk.no_process_is_left();
        assert_eq!(desk.scratch().len(), 1, "there is something to be swept");
        desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"]).exits(0);
        assert_eq!(desk.scratch(), Vec::<String>::new());
    }
}

/// On a disk of 3 MB writes are refused before anything is killed.
#[test]
fn a_full_disk_is_no_verdict() {
    let desk = Desk::new();
    for target in FILED {
        // Its kills come late: by then the disk is full.
        let crash = ["crash", target, "--durability", "crash", "--kills", "2", "--seed", "7"];
        let said = run_on_disk(&desk, "full", "3m", ": TMPDIR", &crash);
        said.exits(1).shows("crash: not tried: a disk with little room (").shows("MB free) proves nothing: ");
        said.complains("hint: make room on the disk of").complains("or set TMPDIR");
        assert!(!said.out.contains("lost something"), "{target}: {}", said.out);
    }
    let kept = desk.home().join("kvfair-results/durability.ndjson");
    assert!(!kept.exists(), "{}", std::fs::read_to_string(&kept).unwrap_or_default());
}

/// A disk may have been full for a moment only, so that what is lost on a small one proves nothing.
#[test]
fn a_loss_on_a_disk_with_little_room_is_no_verdict() {
    let desk = Desk::new();
    let crash = ["crash", "faulty?fault=newest", "--durability", "crash", "--kills", "1", "--seed", SOON];
    let said = run_on_disk(&desk, "small", "63m", ": TMPDIR", &crash);
    said.exits(1).shows("MB free) proves nothing: client ");
    desk.run(&crash).exits(4).shows("none (claimed crash)");
}

#[test]
fn a_full_disk_under_the_verified_classes_loses_neither_these_nor_what_was_seen() {
    let desk = Desk::new();
    let crash = ["crash", "sqlite", "--durability", "crash", "--kills", "1", "--seed", SOON];
    desk.run(&crash).exits(0);
    let text = std::fs::read_to_string(desk.home().join("kvfair-results/durability.ndjson")).expect("it was kept");
    desk.file("before", &text);
    // The disk holds the file as it is and not one page more. What becomes of it is told on standard error.
    let prepare = "cp before kvfair-results/durability.ndjson\n\
                   dd if=/dev/zero of=kvfair-results/filler bs=1k count=64 2>/dev/null\n\
                   trap 'cmp before kvfair-results/durability.ndjson && echo the same >&2' EXIT";
    let said = run_on_disk(&desk, "kvfair-results", "64k", prepare, &crash);
    said.exits(1).shows("crash (claimed: 1 kill)").shows("left: durability.ndjson filler");
    said.complains("cannot write the verified durability levels")
        .complains("No space left on device")
        .complains("the same");
}

/// An earlier kvfair took a refused write for a loss.
#[test]
fn a_verdict_without_evidence_is_passed_over_and_any_is_forgotten_when_asked() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "--durability", "crash", "sqlite"];
    desk.run(&["crash", "sqlite", "--durability", "crash", "--kills", "1", "--seed", SOON]).exits(0);
    let path = desk.home().join("kvfair-results/durability.ndjson");
    let mut line: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("kept")).expect("a line");
    line["kills"][0]["wrong"] = "client 0: write 7 is gone".into();
    std::fs::write(&path, line.to_string()).expect("written");
    desk.run(&run).exits(0).shows("none (claimed crash)");
    line["kills"][0]["acknowledged"] = 0.into();
    std::fs::write(&path, line.to_string()).expect("written");
    let said = desk.run(&run);
    said.exits(0).shows("durability crash (claimed)").complains("durability.ndjson:1: a verdict without evidence");
    assert_eq!(said.err.matches("without evidence").count(), 1, "{}", said.err);

    desk.run(&["crash", "--forget", "sqlit"]).exits(2).complains("nothing is kept of 'sqlit'");
    let said = desk.run(&["crash", "--forget", "sqlite"]);
    said.exits(0).shows("forgotten: sqlite, a verdict without evidence");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "");
    desk.run(&["crash", "--forget", "sqlite", "redis"]).exits(2).complains("cannot be used with");
    assert!(!desk.run(&run).exits(0).err.contains("durability.ndjson"));
}

/// A library that makes syncs do nothing is found, and says nothing of the store without it.
#[test]
fn a_verdict_with_a_preloaded_library_is_none_without_it() {
    let desk = Desk::new();
    let library = desk.home().join("nosync.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/nosync.c");
    let mut build = std::process::Command::new("cc");
    build.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    assert!(build.status().expect("a C compiler").success());
    let with = |arguments: &[&str]| {
        let mut command = desk.kvfair(arguments);
        command.env("LD_PRELOAD", &library);
        Started::new(command).wait()
    };
    let crash = ["crash", "sqlite", "--durability", "power", "--kills", "1", "--seed", SOON];
    let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "--durability", "power", "sqlite"];

    let liar = with(&crash);
    liar.exits(4).shows("crash (claimed power)").shows("preloaded: ").shows("nosync.so sha256 ");
    desk.run(&run).exits(0).shows("durability power (claimed)");
    assert!(!desk.run(&["stores", "sqlite"]).exits(0).out.contains("keeps only crash"));

    let honest = desk.run(&crash);
    honest.exits(0).shows("power (syncs counted)");
    assert!(
        !honest.err.contains("still counts after") && !honest.out.contains("preloaded"),
        "{}{}",
        honest.out,
        honest.err
    );
    desk.run(&run).exits(0).shows("durability power (syncs counted)");
    with(&run).exits(0).shows("crash (claimed power)");
    // The verdict with the library stands beside.
    with(&["stores", "sqlite"]).exits(0).shows("keeps only crash");
    let kept = std::fs::read_to_string(desk.home().join("kvfair-results/durability.ndjson")).expect("kept");
    assert_eq!(kept.lines().count(), 2, "{kept}");
}

/// What was found out is kept beside the results and shown wherever the durability level is.
#[test]
fn what_was_tested_is_kept_and_shown_and_what_failed_is_demoted() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "--messages", "5", "--blocks", "1", "--durability", "crash", "sqlite", "redb"];
    desk.run(&run).exits(0).shows("durability crash (claimed)");
    desk.run(&["crash", "sqlite", "--durability", "crash", "--kills", "1", "--seed", SOON]).exits(0);
    let one = "durability crash (claimed: redb; claimed (1 kill, up to 95 % of kills could lose): sqlite)";
    desk.run(&run).exits(0).shows(one);
    let kept = desk.home().join("kvfair-results/durability.ndjson");
    let mut line: Value = serde_json::from_str(&std::fs::read_to_string(&kept).expect("kept")).expect("a line");
    line["kills"] = vec![line["kills"][0].clone(); 20].into();
    std::fs::write(&kept, format!("{line}\n")).expect("written");
    let enough = "durability crash (claimed: redb; tested (20 kills, up to 14 % of kills could lose): sqlite)";
    desk.run(&run).exits(0).shows(enough);
    desk.run(&["show"]).exits(0).shows(enough);
    let said = desk.run(&["stores", "sqlite"]);
    said.exits(0).shows("crash: journal_mode=WAL, synchronous=OFF (tested 2").shows(": 20 kills, up to 14 % of kills");
    let none = desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "sqlite"]);
    none.exits(0).shows("durability none");

    let text = std::fs::read_to_string(&kept).expect("it was kept");
    assert_eq!(text.lines().count(), 1);
    let lost = text.replace("\"wrong\":null", "\"wrong\":\"client 0: write 7 is gone\"");
    std::fs::write(&kept, format!("{{\"store\":\"sqlite\"}}\n{lost}")).expect("written");
    let said = desk.run(&run);
    said.exits(0).shows("crash (claimed: redb; claimed, tested none: sqlite)");
    said.shows("none (claimed crash) (compared within this group only)")
        .complains("durability.ndjson:1: not a verified durability level");
    desk.run(&["stores", "sqlite"]).exits(0).shows("(claimed, but keeps only none: tested 2");
    // Of another version nothing is known.
    std::fs::write(&kept, lost.replace("\"version\":\"", "\"version\":\"1")).expect("written");
    desk.run(&run).exits(0).shows("durability crash (claimed)");
}
