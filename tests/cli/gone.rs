//! `--exec`: a program under which its server died, or was started again, is no measurement of that store.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::desk::{Desk, Said, Started, copy_program, one_line, real, wait_for};

fn exec(desk: &Desk, command: &str, targets: &[&str]) -> Said {
    Started::new(desk.kvfair(&[&["run", "--blocks", "1", "--exec", command][..], targets].concat())).wait()
}

/// The id of a process that listens at a port or socket is found by the name of the server's own directory.
const FIND: &str = "for one in /proc/[0-9]*; do case $(readlink $one/cwd) in $PWD/../tmp/*|$tmp/*) \
    case $(cat $one/comm) in redis-server|memcached) echo ${one#/proc/};; esac;; esac; done";

fn killing(desk: &Desk) -> String {
    format!("tmp={}; for pid in $({FIND}); do kill -9 $pid; done; sleep 0.1; echo 42", desk.tmp().display())
}

#[test]
fn a_server_that_its_program_kills_is_a_failed_trial() {
    let desk = Desk::new();
    let kill = killing(&desk);
    let targets = ["redis", "redis+unix", "memcached", "memcached+unix"];
    exec(&desk, &kill, &targets).exits(1);
    for target in targets {
        let reason = desk.reason(target);
        assert!(reason.contains("the server was asked after the command had ended"), "{target}: {reason}");
        assert!(reason.contains("the server ended: killed by SIGKILL"), "{target}: {reason}");
    }
}

/// Another one at the same address, of whatever parent, is not ours.
#[test]
fn a_server_that_its_program_kills_and_starts_again_is_a_failed_trial() {
    let desk = Desk::new();
    for (target, start) in [
        ("redis", "redis-server --port {port} --save '' --daemonize yes"),
        ("memcached", "memcached -u root -d -l {host} -p {port}"),
    ] {
        let command = format!("{} >/dev/null; {start} >/dev/null; sleep 0.3; echo 42", killing(&desk));
        exec(&desk, &command, &[target]).exits(1);
        assert!(desk.reason(target).contains("the server ended: killed by SIGKILL"), "{}", desk.reason(target));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port()
}

/// A server that somebody else keeps alive.
fn start(program: &str, arguments: &[&str], port: u16, directory: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("the server starts");
    wait_for("the server", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    child
}

/// By URL: the program has it killed, and its owner starts it again at the same address before the program ends.
#[test]
fn a_server_by_url_that_is_started_again_is_a_failed_trial() {
    for (program, scheme) in [("redis-server", "redis"), ("memcached", "memcached")] {
        let (desk, directory) = (Desk::new(), tempfile::tempdir().expect("a directory for the server"));
        let port = free_port();
        let number = port.to_string();
        let arguments: Vec<&str> = match scheme {
            "redis" => vec!["--port", &number, "--save", ""],
            _ => vec!["-u", "root", "-l", "127.0.0.1", "-p", &number],
        };
        let mut server = start(program, &arguments, port, directory.path());
        let url = format!("{scheme}://127.0.0.1:{port}");
        exec(&desk, "echo 42", &[&url, "--output", "same.jsonl"]).exits(0);
        let command = "touch kill; until test -e again; do sleep 0.02; done; echo 42";
        let started = Started::new(desk.kvfair(&["run", "--blocks", "1", "--exec", command, &url]));
        wait_for("the program", || desk.home().join("kill").exists().then_some(()));
        server.kill().and_then(|()| server.wait()).expect("our own child");
        let mut server = start(program, &arguments, port, directory.path());
        desk.file("again", "");
        let said = started.wait();
        server.kill().and_then(|()| server.wait()).expect("our own child");
        said.exits(1).shows("the server was started again while the command ran");
    }
}

/// The same process, as a container's first one always is: only the server itself knows.
#[test]
fn a_redis_that_starts_again_in_the_same_process_is_found() {
    let (desk, directory) = (Desk::new(), tempfile::tempdir().expect("a directory for the server"));
    let port = free_port();
    let number = port.to_string();
    let arguments = ["--port", &number, "--save", "", "--enable-debug-command", "yes"];
    // It starts itself by the name by which it was started.
    let mut server = start(&real("redis-server").display().to_string(), &arguments, port, directory.path());
    let id = server.id();
    let command = format!(
        "redis-cli -p {port} DEBUG RESTART >&2; sleep 0.5; \
         redis-cli -p {port} INFO server | tr -d '\\r' | grep -x process_id:{id}"
    );
    let said = exec(&desk, &command, &[&format!("redis://127.0.0.1:{port}/3")]);
    server.kill().and_then(|()| server.wait()).expect("our own child");
    said.exits(1).shows("the server was started again while the command ran");
}

/// As a build does that goes on beside a run.
#[test]
fn a_program_that_is_deleted_while_it_runs_says_so() {
    let desk = Desk::new();
    let copy = desk.home().join("kvfair");
    copy_program(env!("CARGO_BIN_EXE_kvfair"), &copy);
    let run = ["run", "fans", "null", "lmdb", "--profiles", "100", "--blocks", "5", "--output", "out.jsonl"];
    let started = Started::new(desk.command(&copy.display().to_string(), &run));
    let out = desk.home().join("out.jsonl");
    wait_for("a record", || std::fs::metadata(&out).is_ok_and(|file| file.len() > 0).then_some(()));
    std::fs::remove_file(&copy).expect("our own file");
    let said = started.wait();
    said.exits(1);
    let told = one_line(&format!("{}{}", said.out, said.err));
    assert!(told.contains("kvfair's own program was replaced or deleted while it ran"), "{told}");
}
