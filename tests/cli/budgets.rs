//! The time that a run is given is kept: what would outlast it is cut off or not begun, and rows say so.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started, one_line, wait_for};

/// A store that stands still after the pilot: 250 profiles are some 6,700 ops, 400 some 10,700.
#[test]
fn a_trial_that_would_outlast_the_budget_is_cut_off() {
    let desk = Desk::new();
    let stuck = "faulty?fault=stall&after=8000&name=stuck";
    let said = desk.run(&["run", "fans", stuck, "--profiles", "400", "--budget", "12s"]);
    said.exits(1).shows("stuck > ").complains("stopped: no further block fitted into the time");
    let record = desk.record("stuck");
    let (outcome, after_s) = (&record["outcome"], record["outcome"]["after_s"].as_f64().expect("seconds"));
    assert!(outcome["kind"] == "timed_out" && after_s < 12.0, "{outcome}");
}

/// A program that takes longer than all the time there is ends with it, and everything that it has started.
#[test]
fn a_program_that_would_outlast_the_budget_is_ended() {
    let desk = Desk::new();
    let stuck = ["run", "--exec", "echo waiting; setsid sleep 1000", "--budget", "8s", "lmdb", "sqlite"];
    // A hang would last longer than a test may.
    let said = desk.run(&stuck);
    // Whichever is the first is cut off, and the second one has no time left.
    let kinds: BTreeSet<String> = desk.records().iter().map(|record| record["outcome"]["kind"].to_string()).collect();
    assert_eq!(kinds, ["\"timed_out\"", "\"left_out\""].map(str::to_string).into(), "{}", said.out);
    said.exits(1).shows(" s, 0 % done").shows("not run: the time of the run was over before its turn");
    desk.no_process_is_left();
}

/// One that stands still in the pilot takes no more than its part of the time; the others get the rest. Whether that
/// suffices for a verdict depends on the machine, and so does the exit code.
#[test]
fn who_takes_half_of_the_time_for_a_pilot_is_left_out_and_says_so() {
    let desk = Desk::new();
    let said = desk.run(&["run", "fans", "lmdb", "faulty?fault=stall&name=stuck", "--budget", "16s"]);
    said.shows("stuck not run: 250 profiles took over 8.0 s with its start and its stop");
    said.complains("block 1 of ");
    assert_eq!(one_line(&said.out).matches("too slow for the time").count(), 1, "{}", said.out);
    let shown = desk.run(&["show"]);
    assert_eq!(shown.out, said.out, "the same from the file");
}

/// Where the least blocks do not fit, it is said before they begin: how long each takes, and what to leave out.
#[test]
fn what_does_not_fit_is_said_before_it_starts() {
    let desk = Desk::new();
    desk.wrap("redis-server", "case \"$*\" in *--version*) ;; *) sleep 5;; esac\nexec \"$real\" \"$@\"");
    let run = ["run", "fans", "lmdb", "redis+unix", "--profiles", "60", "--budget", "30s"];
    let said = desk.run(&run);
    said.complains("kvfair: 6 blocks take about").complains("a trial takes about: lmdb ");
    // How much more depends on how fast this machine is.
    said.complains("hint: leave out redis+unix, or give it more time: --budget ");
    let (before, _) = said.err.split_once("block 1 of").expect("a block was run");
    assert!(before.contains("a trial takes about") && !before.contains("warm-up done"), "{}", said.err);
    said.shows("no claim");
    // It stands there before the first trial: nobody needs to wait for the end.
    let run = ["run", "fans", "lmdb", "--profiles", "60", "--budget", "200s", "--output", "out.jsonl"];
    let started = Started::new(desk.kvfair(&run));
    wait_for("a record", || {
        std::fs::metadata(desk.home().join("out.jsonl")).is_ok_and(|file| file.len() > 0).then_some(())
    });
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130).complains("for 6 blocks and a warm-up");
}

#[test]
fn what_programs_take_is_said_after_their_first_block() {
    let desk = Desk::new();
    let command = "test $KVFAIR_TARGET = lmdb || sleep 2";
    let said = desk.run(&["run", "--exec", command, "lmdb", "sqlite", "--budget", "9s"]);
    said.complains("kvfair: 6 blocks take about").complains("hint: leave out sqlite, or give it");
    let (before, _) = said.err.split_once("a trial takes about").expect("it is said");
    assert!(before.contains("warm-up done") && !before.contains("block 1 "), "{}", said.err);
}
