//! Scratch directories: only a run's own are ever deleted, no other user can look into them, and nothing that others
//! put beside them can stop a run.
#![cfg(target_os = "linux")]

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started, real, signal, wait_for};
use crate::common::needs::{Need, needs};

/// Short, and it sweeps what killed runs have left.
const SHORT: &[&str] = &["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"];
/// Waits for a file called `on`.
const WAITS: &str = "until test -e on; do sleep 0.02; done; ls {dir}";

fn waiting(desk: &Desk) -> Started {
    let started = Started::new(desk.kvfair(&["run", "--blocks", "1", "--exec", WAITS, "lmdb"]));
    wait_for("its program", || desk.processes_named("sleep").first().copied());
    started
}

#[test]
fn a_directory_of_the_users_stays_whatever_it_is_called() {
    let desk = Desk::new();
    let gone = 2_000_000_000; // No process has such a number.
    let names = ["kvfair-2024-results".to_string(), format!("kvfair-{gone}-x"), "kvfair-".to_string()];
    for name in &names {
        std::fs::create_dir(desk.tmp().join(name)).expect("a directory");
        std::fs::write(desk.tmp().join(name).join("mine"), "precious").expect("a file");
    }
    desk.run(SHORT).exits(0);
    for name in &names {
        let path = desk.tmp().join(name);
        assert_eq!(std::fs::read_to_string(path.join("mine")).expect("the user's file"), "precious");
        std::fs::remove_dir_all(path).expect("our own directory");
    }
}

/// There a run that lives seems to be gone: no process has its number.
#[test]
fn a_run_in_another_pid_namespace_leaves_the_files_of_this_one() {
    let desk = Desk::new();
    let unshare = |arguments: &[&str]| {
        let own = [&["--pid", "--fork", "--mount-proc"][..], arguments].concat();
        let own =
            if nix::unistd::geteuid().is_root() { own } else { [&["--user", "--map-root-user"][..], &own].concat() };
        Started::new(desk.command("unshare", &own)).wait()
    };
    needs!(Need::new("PID namespaces", unshare(&["true"]).code == 0, "run the tests where unshare is permitted"));
    let mut started = waiting(&desk);
    let scratch = desk.scratch();
    assert_eq!(scratch.len(), 1, "{scratch:?}");
    unshare(&[&[env!("CARGO_BIN_EXE_kvfair")][..], SHORT].concat()).exits(0);
    assert_eq!(desk.scratch(), scratch, "the files of a run that lives");
    assert!(started.is_running());
    desk.file("on", "");
    started.wait().exits(0);
}

/// What a run has started may outlive it. As long as it does, it may use the run's files.
#[test]
fn a_killed_runs_files_stay_until_its_last_process_is_gone() {
    let desk = Desk::new();
    let command = "sh -c 'setsid sleep 1000 &'; until test -e on; do sleep 0.02; done";
    let started = Started::new(desk.kvfair(&["run", "--blocks", "1", "--exec", command, "redis"]));
    let survivor = wait_for("the survivor", || {
        let sleeps = desk.processes_named("sleep");
        sleeps.into_iter().find(|pid| crate::common::desk::command_line(*pid).contains("1000"))
    });
    // First the supervisor, which would end all that it keeps, and its parent before that sees it.
    signal(started.id(), Signal::SIGSTOP);
    desk.trials().into_iter().for_each(|supervisor| signal(supervisor, Signal::SIGKILL));
    signal(started.id(), Signal::SIGKILL);
    started.wait().exits(-1);
    desk.file("on", "");
    wait_for("all but one to go", || (desk.processes() == [survivor]).then_some(()));
    let scratch = desk.scratch();
    desk.run(SHORT).exits(0);
    assert_eq!(desk.scratch(), scratch, "a process of that run still lives");
    signal(survivor, Signal::SIGKILL);
    desk.no_process_is_left();
    desk.run(SHORT).exits(0);
    assert_eq!(desk.scratch(), Vec::<String>::new());
}

/// There it cannot be known whether a run still lives.
#[test]
fn where_files_cannot_be_locked_nothing_of_an_earlier_run_is_removed() {
    let desk = Desk::new();
    let kvfair = env!("CARGO_BIN_EXE_kvfair");
    let without_locks = |arguments: &[&str]| {
        let inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOLCK", kvfair];
        Started::new(desk.command("strace", &[&inject[..], arguments].concat()))
    };
    // One run without locks, and one with them, both killed. The second begins when the program of the first runs:
    // before that, a trial that starts a program is two processes for a moment.
    let first = without_locks(&["run", "--blocks", "1", "--exec", WAITS, "lmdb"]);
    wait_for("its program", || desk.processes_named("sleep").first().copied());
    let second = Started::new(desk.kvfair(&["run", "--blocks", "1", "--exec", WAITS, "lmdb"]));
    wait_for("both trials", || (desk.trials().len() == 2 && desk.scratch().len() == 2).then_some(()));
    let kvfairs = desk.processes_named("kvfair");
    kvfairs.into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
    [first, second].into_iter().for_each(|run| drop(run.wait()));
    desk.file("on", "");
    desk.no_process_is_left();
    let both = desk.scratch();
    without_locks(SHORT).wait().exits(0);
    assert_eq!(desk.scratch(), both, "nothing is known of either");
    // The kernel releases the lock of a killed process some moments after it has closed the process's directory.
    let left = wait_for("the one that could be locked is gone", || {
        desk.run(SHORT).exits(0);
        Some(desk.scratch()).filter(|left| left.len() == 1)
    });
    std::fs::remove_dir_all(desk.tmp().join(&left[0])).expect("our own directory");
}

/// Permissions and owner of the scratch directory while a target's server is up.
fn scratch_is(desk: &Desk, target: &str) -> String {
    let command = "cd {dir}/../.. && test -e kvfair.lock && stat -c '%a %u %g' .";
    let under_umask = format!("umask 0; exec \"$0\" run --blocks 1 --output {target}.jsonl --exec \"$1\" \"$2\"");
    let arguments = ["-c", &under_umask, env!("CARGO_BIN_EXE_kvfair"), command, target];
    Started::new(desk.command("sh", &arguments)).wait().exits(0);
    desk.record_in(&format!("{target}.jsonl"))["verdict"]["ends"].as_str().expect("a line").to_string()
}

#[test]
fn scratch_directories_are_closed_to_others() {
    let desk = Desk::new();
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    assert_eq!(scratch_is(&desk, "redis"), format!("700 {user} {group}"));
    needs!(Need::root());
    let output = Command::new("id").args(["-g", "postgres"]).output().expect("id");
    let postgres = String::from_utf8_lossy(&output.stdout).trim().to_string();
    assert_eq!(scratch_is(&desk, "postgres"), format!("710 {user} {postgres}"));
}

/// As root, postgres is let through to its files: never by opening what is above our own directory.
#[test]
fn an_empty_tmpdir_is_no_reason_to_change_other_directories() {
    let desk = Desk::new();
    let before = std::fs::metadata(desk.home()).expect("the test's home").permissions().mode();
    let mut command = desk.kvfair(&["run", "ngrams", "--messages", "5", "--blocks", "1", "redis"]);
    command.env("TMPDIR", "");
    Started::new(command).wait().exits(0);
    assert_eq!(std::fs::metadata(desk.home()).expect("the test's home").permissions().mode(), before);
    let left: Vec<_> = std::fs::read_dir(desk.home()).expect("the test's home").flatten().collect();
    assert_eq!(left.len(), 1, "only results: {left:?}");
}

/// Any user can bind a socket to any name, and all names stand in one list.
#[test]
fn odd_names_of_sockets_and_directories_stop_no_run() {
    let desk = Desk::new();
    let odd: [&[u8]; 4] = [b"a\nb", b"a b c", b"x\n0000000000000000: 0 0 00010000 1 1 7 y", b"\xff\xfe\n\n"];
    let paths: Vec<PathBuf> = odd.iter().map(|name| desk.home().join(std::ffi::OsStr::from_bytes(name))).collect();
    let _sockets: Vec<_> = paths.iter().map(|path| UnixListener::bind(path).expect("a socket")).collect();
    let tmp = desk.tmp().join("with a space");
    std::fs::create_dir(&tmp).expect("a directory");
    real("memcached");
    let run = ["run", "ngrams", "--messages", "20", "--blocks", "1"];
    let targets = ["redis", "redis+unix", "memcached", "memcached+unix", "valkey+unix"];
    let mut command = desk.kvfair(&[&run[..], &targets].concat());
    command.env("TMPDIR", &tmp);
    Started::new(command).wait().exits(0);
    assert_eq!(std::fs::read_dir(&tmp).expect("TMPDIR").count(), 0);
    std::fs::remove_dir(&tmp).expect("it is empty");
}
