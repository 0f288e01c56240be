//! However a run ends, what was finished is kept and shown, and nothing is left: no server, no trial, no scratch
//! directory (every desk looks for them when its test ends).
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use kvfair::model::trial::Transport;
use nix::sys::signal::Signal;

use crate::common;
use crate::common::desk::{Desk, Started, records_in, signal, wait_for};
use crate::common::needs::{Need, needs};

/// A run long enough to be stopped in its middle. Redis behind a delay takes seconds, but little of the processors.
const LONG: &[&str] =
    &["run", "fans", "--profiles", "60", "--rtt", "1ms", "--blocks", "5", "--output", "out.jsonl", "ram", "redis"];

fn finished(desk: &Desk) -> usize {
    std::fs::read_to_string(desk.home().join("out.jsonl")).unwrap_or_default().lines().count()
}

/// Waits for a trial on Redis, and gives the server's process.
fn wait_for_a_trial_on_redis(desk: &Desk) -> u32 {
    wait_for("a trial on redis", || {
        let server = desk.processes_named("redis-server").first().copied()?;
        (desk.trials().len() == 1).then_some(server)
    })
}

fn interrupted_by(what: Signal) {
    let desk = Desk::new();
    let started = Started::new(desk.kvfair(LONG));
    wait_for("two records", || (finished(&desk) >= 2).then_some(()));
    wait_for_a_trial_on_redis(&desk);
    started.interrupt(what);
    let said = started.wait();
    let records = records_in(&desk.home().join("out.jsonl"));
    said.exits(130).complains(&format!("interrupted; {} trials were finished", records.len()));
    said.complains("results: out.jsonl").shows("fans, 60 profiles").shows("ram");
    assert!(
        records.len() >= 2 && records.iter().all(|record| record["outcome"]["kind"] == "finished"),
        "only finished trials are kept"
    );
    desk.run(&["show", "out.jsonl"]).exits(0).shows("fans, 60 profiles");
}

#[test]
fn ctrl_c_keeps_and_shows_what_was_finished() {
    interrupted_by(Signal::SIGINT);
}

#[test]
fn a_plain_kill_does_the_same() {
    interrupted_by(Signal::SIGTERM);
}

#[test]
fn quit_does_the_same() {
    interrupted_by(Signal::SIGQUIT);
}

/// In a directory that all users share anybody may make a directory of any name, with anything in it.
#[test]
fn what_another_user_puts_into_tmpdir_stops_nothing() {
    needs!(Need::root(), Need::program("python3"));
    let desk = Desk::new();
    std::fs::set_permissions(desk.tmp(), std::fs::Permissions::from_mode(0o1777)).expect("as /tmp is");
    let plant = "for name in kvfair-fifo other-fifo; do mkdir $name; mkfifo $name/kvfair.lock; done\n\
        mkdir kvfair-link kvfair-to-fifo kvfair-socket kvfair-marker\n\
        ln -s /dev/tty kvfair-link/kvfair.lock; ln -s ../kvfair-fifo/kvfair.lock kvfair-to-fifo/kvfair.lock\n\
        touch kvfair-marker/kvfair.lock; mkfifo kvfair-marker/kvfair.scratch; mkfifo kvfair-itself\n\
        python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('kvfair-socket/kvfair.lock')\"\n\
        mkdir kvfair-device\n";
    let planted = std::process::Command::new("sh").args(["-ec", plant]).current_dir(desk.tmp()).uid(65_534).status();
    assert!(planted.expect("a shell").success());
    // Only root makes one, and not in every container.
    let device = desk.tmp().join("kvfair-device/kvfair.lock");
    let _ = std::process::Command::new("mknod").arg(&device).args(["c", "5", "0"]).status();
    let before = desk.scratch().len();
    desk.run(&["run", "ngrams", "--messages", "5", "--blocks", "1", "--output", "out.jsonl", "ram"]).exits(0);
    desk.run(&["check", "ram"]).exits(0);
    assert_eq!(desk.scratch().len(), before, "nothing of theirs is removed");
    std::fs::remove_dir_all(desk.tmp()).and_then(|()| std::fs::create_dir(desk.tmp())).expect("an empty TMPDIR");
}

/// What prepares a data directory has other programs do it, and the kernel ends only that program with kvfair.
#[test]
fn kill_9_while_a_data_directory_is_prepared_leaves_no_process() {
    needs!(Need::program("mariadbd"), Need::program("mariadb-install-db"));
    let desk = Desk::new();
    // The one beside the server is run.
    desk.wrap("mariadbd", "exec \"$real\" \"$@\"");
    desk.wrap("mariadb-install-db", "sleep 1000 & wait");
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--messages", "20", "mariadb"]));
    wait_for("the program of the program", || desk.processes_named("sleep").first().copied());
    signal(started.id(), Signal::SIGKILL);
    started.wait().exits(-1);
    desk.no_process_is_left();
    desk.is_swept();
}

#[test]
fn ctrl_c_before_anything_was_finished() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "60", "--rtt", "1ms", "--blocks", "1", "--output", "out.jsonl", "redis"];
    let started = Started::new(desk.kvfair(&run));
    wait_for_a_trial_on_redis(&desk);
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130).complains("interrupted; 0 trials were finished");
    assert!(!desk.home().join("out.jsonl").exists(), "an empty results file would be in the way");
}

#[test]
fn ctrl_c_while_a_server_starts() {
    let desk = Desk::new();
    desk.wrap("redis-server", "exec sleep 1000");
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--messages", "20", "redis"]));
    wait_for("the server", || desk.processes_named("sleep").first().copied());
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
}

/// A large recipe's data takes its time, and nobody wants to wait for it who has changed his mind.
#[test]
fn ctrl_c_while_data_is_made() {
    let desk = Desk::new();
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--messages", "500000000", "ram"]));
    wait_for("some data", || {
        let scratch = desk.scratch().into_iter().next()?;
        std::fs::read_dir(desk.tmp().join(scratch))
            .ok()?
            .flatten()
            .find(|file| file.metadata().is_ok_and(|meta| meta.len() > 100_000))
    });
    started.interrupt(Signal::SIGINT);
    // All of it would take far longer than the test waits.
    started.wait().exits(130);
}

#[test]
fn ctrl_c_while_the_expected_state_is_computed() {
    let desk = Desk::new();
    let text: String = (0..300_000).map(|number| format!("word{number} ")).collect();
    desk.file("much.txt", format!("{text}\n").repeat(5));
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--input", "much.txt", "ram"]));
    let is_oracle = |pid: &u32| crate::common::desk::command_line(*pid).ends_with("\0expected-state\0");
    let expected = wait_for("the process of the expected state", || desk.processes().into_iter().find(is_oracle));
    // It will never answer now: nobody may wait for it.
    signal(expected, Signal::SIGSTOP);
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
    assert!(desk.records().is_empty());
}

/// As the kernel does where memory is short: no store has been asked by then.
#[test]
fn an_expected_state_whose_process_is_killed_names_its_job_and_the_cause() {
    let desk = Desk::new();
    let text: String = (0..300_000).map(|number| format!("word{number} ")).collect();
    desk.file("much.txt", format!("{text}\n").repeat(5));
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--input", "much.txt", "ram"]));
    let is_oracle = |pid: &u32| crate::common::desk::command_line(*pid).ends_with("\0expected-state\0");
    let expected = wait_for("the process of the expected state", || desk.processes().into_iter().find(is_oracle));
    signal(expected, Signal::SIGKILL);
    let said = started.wait();
    said.exits(1).complains("the expected state of ngrams could not be computed from ").complains("much.txt");
    said.complains("before any store was asked: its process died: killed by SIGKILL, as the kernel does where memory");
    said.complains("hint: fewer of them");
}

/// Interrupts twice: the second time while the server is waited for, which does not stop when it is asked to.
fn interrupted_twice(desk: &Desk) {
    let mut started = Started::new(desk.kvfair(LONG));
    wait_for("a record", || (finished(desk) >= 1).then_some(()));
    signal(wait_for_a_trial_on_redis(desk), Signal::SIGSTOP);
    let began = Instant::now();
    started.interrupt(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(700));
    assert!(started.is_running(), "it waits for its server to stop");
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130).complains("results: out.jsonl").shows("fans, 60 profiles");
    assert!(began.elapsed() < Duration::from_secs(15), "the server's 15 s were waited for");
}

/// A second Ctrl-C means now: nothing is waited for any more, and what was finished is still shown.
#[test]
fn a_second_ctrl_c_ends_it_at_once_and_cleans_up() {
    let desk = Desk::new();
    interrupted_twice(&desk);
    assert_eq!(desk.scratch(), Vec::<String>::new());
}

/// `timeout` signals its child and then the child's group, and a terminal that is closed hangs up twice: that is one
/// wish to stop, and what was written to somebody's server is taken back.
#[test]
fn signals_that_come_together_are_one_and_keys_are_taken_back() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    let url = format!("redis://{}", server.launch.place);
    let run = ["run", "mixed", "--records", "2000", "--rate", "1000", "--requests", "100000", "--blocks", "1", &url];
    let held = || {
        let mut asking = std::net::TcpStream::connect(server.launch.place.to_string()).expect("the test's own server");
        asking.write_all(b"DBSIZE\r\nQUIT\r\n").expect("it reads");
        let mut held = String::new();
        asking.read_to_string(&mut held).expect("it answers");
        held
    };
    for what in [Signal::SIGTERM, Signal::SIGHUP] {
        let started = Started::new(desk.kvfair(&run));
        wait_for("all records", || held().starts_with(":2000\r\n").then_some(()));
        signal(started.id(), what);
        std::thread::sleep(Duration::from_millis(10));
        started.interrupt(what);
        started.wait().exits(130);
        assert!(held().starts_with(":0\r\n"), "{what}: {}", held());
    }
}

/// Also where the main thread cannot go on: here it opens a pipe that nobody reads.
#[test]
fn a_second_ctrl_c_cleans_up_for_a_run_that_hangs() {
    let (server, desk) = (common::start("redis", Transport::Tcp), Desk::new());
    Started::new(desk.command("mkfifo", &["out.jsonl.guest"])).wait().exits(0);
    let url = format!("redis://{}", server.launch.place);
    let started = Started::new(desk.kvfair(&["run", "ngrams", "--messages", "20", "--output", "out.jsonl", &url]));
    wait_for("a trial", || desk.trials().first().copied());
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..2 {
        started.interrupt(Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(700));
    }
    let began = Instant::now();
    started.wait().exits(130);
    assert!(began.elapsed() > Duration::from_secs(2), "it ended by itself: nothing hung");
    assert_eq!(desk.scratch(), Vec::<String>::new());
}

#[test]
fn kill_9_leaves_no_process_and_the_next_run_removes_its_files() {
    let desk = Desk::new();
    let started = Started::new(desk.kvfair(LONG));
    wait_for_a_trial_on_redis(&desk);
    signal(started.id(), Signal::SIGKILL);
    started.wait().exits(-1);
    desk.no_process_is_left();
    assert_eq!(desk.scratch().len(), 1, "there is something to be swept");
    next_run_sweeps(&desk);
}

fn next_run_sweeps(desk: &Desk) {
    desk.no_process_is_left();
    desk.is_swept();
}

/// A reader of the table who leaves early must not leave our files behind.
#[test]
fn a_pipe_that_is_closed_before_the_table() {
    let desk = Desk::new();
    let script = "{ \"$0\" run ngrams --messages 20 --blocks 1 ram; echo $? >code; } | true";
    Started::new(desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair")])).wait().exits(0);
    let code = wait_for("the exit code", || {
        std::fs::read_to_string(desk.home().join("code")).ok().filter(|code| code.ends_with('\n'))
    });
    assert_eq!(code, "0\n");
}

#[test]
fn a_trial_that_takes_too_long_is_a_row_that_says_how_far_it_came() {
    let desk = Desk::new();
    let slow = ["--profiles", "60", "--rtt", "1ms", "--blocks", "2", "--timeout", "1s"];
    let said = desk.run(&[&["run", "fans"], &slow[..], &["redis", "null"]].concat());
    said.exits(1).shows("redis > 1 s, ").shows(" % done").shows("--timeout 30m");
    let outcome = &desk.record("redis")["outcome"];
    assert_eq!((outcome["kind"].as_str(), outcome["after_s"].as_f64()), (Some("timed_out"), Some(1.0)));
    let share = outcome["done_share"].as_f64().expect("a share");
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert_eq!(desk.records().iter().filter(|record| record["verdict"]["kind"] == "baseline").count(), 2, "null's two");
}
