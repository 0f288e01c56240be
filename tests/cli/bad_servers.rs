//! Servers of our own that do not start, do not answer, are not ours, or die: a row with the reason, and the other
//! targets keep their numbers.

use std::fs;
use std::net::TcpListener;

use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started, signal};

/// A short run on a wrapped redis-server and on two bystanders that must not suffer.
fn run(desk: &Desk, more: &[&str]) -> crate::common::desk::Said {
    let target = if more.contains(&"redis+unix") { "memcached" } else { "redis" };
    let base = ["run", "ngrams", "--messages", "20", "--blocks", "1", "ram", "memcached+unix", target];
    desk.run(&[&base, more].concat())
}

#[track_caller]
fn bystanders_are_right(desk: &Desk) {
    for target in ["ram", "memcached+unix"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

#[test]
fn a_port_that_somebody_holds() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port to hold");
    let port = holder.local_addr().expect("its address").port();
    let desk = Desk::new();
    desk.wrap("redis-server", &format!("exec \"$real\" \"$@\" --port {port}"));
    run(&desk, &[]).exits(3).shows("redis would not start:");
    let reason = desk.reason("redis");
    assert!(reason.starts_with("missing: ") && reason.contains("ended before it answered: exit code 1"), "{reason}");
    assert!(reason.contains("in use"), "{reason}");
    bystanders_are_right(&desk);
}

#[test]
fn a_server_that_dies_at_its_start_has_the_last_word() {
    let desk = Desk::new();
    desk.wrap("redis-server", "exec \"$real\" \"$@\" --no-such-option yes");
    run(&desk, &[]).exits(3);
    let reason = desk.reason("redis");
    assert!(reason.contains("exit code 1; its last words: ") && reason.contains("no-such-option"), "{reason}");
    bystanders_are_right(&desk);
}

/// The sleeper is a child of the script: it must go when the script goes.
#[test]
fn a_server_that_never_answers() {
    let desk = Desk::new();
    desk.wrap("redis-server", "sleep 1000 & wait");
    run(&desk, &["--timeout", "2s"]).exits(3);
    let reason = desk.reason("redis");
    assert!(reason.contains("did not answer within 2 s"), "{reason}");
    bystanders_are_right(&desk);
}

/// Its greeting never ends, and no piece of it is late: kvfair itself must not wait for the last one.
#[test]
fn a_server_whose_first_answer_never_ends() {
    let desk = Desk::new();
    let drips = "import socket, sys, time\n\
        server = socket.create_server(('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])))\n\
        while True:\n\
        \x20   client, _ = server.accept()\n\
        \x20   try:\n\
        \x20       client.recv(4096); client.sendall(b'$100000\\r\\n')\n\
        \x20       while True: client.sendall(b'x'); time.sleep(0.1)\n\
        \x20   except OSError: pass\n";
    let script = desk.home().join(desk.file("drips.py", drips));
    desk.wrap("redis-server", &format!("exec python3 {} \"$@\"", script.display()));
    run(&desk, &["--timeout", "2s"]).exits(3);
    let reason = desk.reason("redis");
    assert!(reason.contains("did not answer within 2 s") && reason.contains("has not finished an answer"), "{reason}");
    bystanders_are_right(&desk);
}

/// The script stays, as the child that we watch, and something else answers: a number would be of the wrong process.
#[test]
fn a_server_that_is_not_our_child() {
    let desk = Desk::new();
    let note = desk.home().join("pid");
    let script = format!("\"$real\" \"$@\" --daemonize yes --pidfile {}; exec sleep 1000", note.display());
    desk.wrap("redis-server", &script);
    let said = run(&desk, &[]);
    let daemon: u32 = fs::read_to_string(&note).expect("a daemon").trim().parse().expect("its process id");
    signal(daemon, Signal::SIGKILL);
    said.exits(3);
    let reason = desk.reason("redis");
    assert!(reason.contains(&format!("is process {daemon}, not ours")), "{reason}");
    bystanders_are_right(&desk);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_others_can_reach() {
    let desk = Desk::new();
    desk.wrap("redis-server", "exec \"$real\" \"$@\" --bind 0.0.0.0");
    run(&desk, &[]).exits(3);
    let reason = desk.reason("redis");
    assert!(reason.contains("listens on 0.0.0.0:") && reason.contains("which others can reach"), "{reason}");
    bystanders_are_right(&desk);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_listens_elsewhere_besides() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let desk = Desk::new();
    desk.wrap("redis-server", &format!("exec \"$real\" \"$@\" --bind 127.0.0.1 --port {port}"));
    run(&desk, &["redis+unix"]).exits(3);
    let reason = desk.reason("redis+unix");
    assert!(reason.contains(&format!("listens on 127.0.0.1:{port} besides ")), "{reason}");
    bystanders_are_right(&desk);
}

/// The system's limit of a socket's path is no fault of the server.
#[test]
fn a_scratch_directory_with_too_long_a_path() {
    let desk = Desk::new();
    let deep = desk.tmp().join("deep".repeat(30));
    fs::create_dir(&deep).expect("a directory");
    let mut command = desk.kvfair(&["run", "ngrams", "--messages", "20", "--blocks", "1", "redis", "redis+unix"]);
    command.env("TMPDIR", &deep);
    Started::new(command).wait().exits(3);
    let reason = desk.reason("redis+unix");
    assert!(reason.contains("at most 103 work: set TMPDIR to a shorter one"), "{reason}");
    assert_eq!(desk.record("redis")["verdict"]["kind"], "right");
    assert_eq!(fs::read_dir(&deep).expect("it is there").count(), 0);
    fs::remove_dir(&deep).expect("it is empty");
}

/// As the kernel's out-of-memory killer does.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_dies_in_the_middle() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "1000", "--blocks", "2", "ram", "redis", "memcached+unix"];
    let started = Started::new(desk.kvfair(&run));
    let server = desk.wait_until_busy(|desk| desk.processes_named("redis-server"), 0.05);
    signal(server, Signal::SIGKILL);
    started.wait().exits(1).shows("redis failed: ").shows("the server ended: killed by SIGKILL");
    let reason = desk.reason("redis");
    assert!(reason.starts_with("failed: after ") && reason.contains("connection"), "{reason}");
    bystanders_are_right(&desk);
    let of = |target: &str| desk.records().iter().filter(|record| record["target"]["label"] == target).count();
    assert_eq!((of("ram"), of("redis"), of("memcached+unix")), (2, 1, 2), "who failed is not run again");
}

/// An embedded store dies with the trial's own process.
#[test]
#[cfg(target_os = "linux")]
fn a_trial_that_dies_in_the_middle() {
    let desk = Desk::new();
    let started = Started::new(desk.kvfair(&["run", "fans", "--profiles", "1000", "--blocks", "1", "redis", "ram"]));
    let busy = desk.wait_until_busy(Desk::trials, 0.08);
    let store = if desk.processes_named("redis-server").is_empty() { "ram" } else { "redis" };
    signal(busy, Signal::SIGKILL);
    started.wait().exits(1).shows("the trial's process died: killed by SIGKILL");
    let reason = desk.reason(store);
    assert!(reason.contains("the trial's process died: killed by SIGKILL"), "{reason}");
    let other = if store == "ram" { "redis" } else { "ram" };
    assert_eq!(desk.record(other)["verdict"]["kind"], "right");
}
