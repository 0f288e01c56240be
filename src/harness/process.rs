//! Child processes on a leash: in a group of their own, so that Ctrl-C reaches only us, and killed when we die or let
//! go.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgid, getpgrp};

use super::watch;
use crate::stores;

/// Where a password for servers by URL may stand.
pub const PASSWORD_VARIABLE: &str = "KVFAIR_PASSWORD";

/// The ids of all children on a leash.
static LEASHED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// Whether every other child of ours descends from one of these.
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// How long killed processes may take to disappear.
const GOING: Duration = Duration::from_secs(2);

/// A child that does not outlive this value, nor this process.
pub struct Leashed {
    child: Child,
    /// It was waited for: its id, which is its group's too, may be another process's by now.
    is_reaped: bool,
    /// It starts programs that may leave its process group.
    is_supervisor: bool,
}

impl Leashed {
    pub fn spawn(command: &mut Command) -> std::io::Result<Leashed> {
        die_with_parent(command);
        Leashed::start(command, false)
    }

    /// One whose group ends with it and with us (Linux): for a program that has others do its work, whose own parents
    /// would not be told. The process that is watched stands before the program and keeps its group.
    pub fn spawn_group(command: &mut Command) -> std::io::Result<Leashed> {
        group_dies_with_parent(command);
        Leashed::start(command, false)
    }

    /// One that ends itself when its standard input is closed, since it has more to end than the kernel would.
    pub fn spawn_supervisor(command: &mut Command) -> std::io::Result<Leashed> {
        Leashed::start(command, true)
    }

    fn start(command: &mut Command, is_supervisor: bool) -> std::io::Result<Leashed> {
        let child = command.process_group(0).spawn()?;
        leashed().insert(child.id());
        Ok(Leashed { child, is_reaped: false, is_supervisor })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it has. It is not waited for: until its group is killed its id must remain its own.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.is_reaped { self.child.try_wait().ok().flatten() } else { ended(&mut self.child) }
    }

    /// Waits for its end, but not for ever.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.ended();
            if status.is_some() || Instant::now() >= deadline {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks it to stop, and kills it and all its group when it does not within `patience`. True if it stopped by
    /// itself.
    pub fn stop(&mut self, patience: Duration) -> bool {
        let pid = Pid::from_raw(self.id() as i32);
        let asked = self.ended().is_some() || kill(pid, Signal::SIGTERM).is_ok();
        let stopped = asked && self.wait_at_most(patience).is_some();
        self.kill();
        stopped
    }

    /// Kills what is left of its group, and reaps it. Once.
    pub fn kill(&mut self) {
        if self.is_reaped {
            return;
        }
        // An error means that nothing is left of the group, which is what we want.
        let _ = killpg(Pid::from_raw(self.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
        self.is_reaped = true;
        leashed().remove(&self.id());
        if self.is_supervisor {
            end_orphans();
        } else {
            orphans().into_iter().for_each(reap);
        }
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended. It is not reaped: until it is, no other process gets its id.
#[cfg(target_os = "linux")]
fn ended(child: &mut Child) -> Option<ExitStatus> {
    use nix::sys::wait::{Id, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    // As wait(2) has it: the exit code above eight bits, the signal in them.
    match waitid(Id::Pid(Pid::from_raw(child.id() as i32)), flags) {
        Ok(WaitStatus::Exited(_, code)) => Some(ExitStatus::from_raw(code << 8)),
        Ok(WaitStatus::Signaled(_, signal, has_core)) => {
            Some(ExitStatus::from_raw(signal as i32 | if has_core { 0x80 } else { 0 }))
        }
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn ended(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}

fn leashed() -> MutexGuard<'static, BTreeSet<u32>> {
    LEASHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a process below us whose own parent dies becomes our child, so that it can be ended (Linux). Not where
/// we are the first process or have children already: then processes of others could be among them.
pub fn adopt_orphans() {
    let us = std::process::id();
    #[cfg(target_os = "linux")]
    if us != 1 && watch::family(us).len() == 1 {
        ADOPTS.store(nix::sys::prctl::set_child_subreaper(true).is_ok(), Ordering::Relaxed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = us;
}

/// Children of ours whose own parents are gone. Programs that we run and wait for are in our own process group.
fn orphans() -> Vec<u32> {
    if !ADOPTS.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let (leashed, group) = (leashed(), getpgrp());
    let is_orphan = |pid: &u32| !leashed.contains(pid) && getpgid(Some(Pid::from_raw(*pid as i32))) != Ok(group);
    watch::children(std::process::id()).into_iter().filter(is_orphan).collect()
}

/// Ends orphans with all that descends from them, also those in sessions of their own.
fn end_orphans() {
    let began = Instant::now();
    loop {
        let orphans = orphans();
        if orphans.is_empty() || began.elapsed() > GOING {
            return;
        }
        for pid in &orphans {
            kill_family(*pid);
        }
        orphans.into_iter().for_each(reap);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills all that we have started. Who waits for it reaps it.
pub fn kill_all() {
    let leashed = leashed().clone();
    for root in leashed.into_iter().chain(orphans()) {
        kill_family(root);
    }
}

/// Kills a process and all below it.
fn kill_family(root: u32) {
    kill_each(&watch::family(root));
}

/// Kills them one after another, and tells when the first of them was killed.
pub fn kill_each(family: &[u32]) -> SystemTime {
    let killed_at = SystemTime::now();
    for pid in family {
        // An error means that it is gone.
        let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGKILL);
    }
    killed_at
}

/// Waits until none of these runs any more, but not for ever: one that was killed has memory and ports a moment longer.
pub fn wait_until_gone(family: &[u32]) {
    let began = Instant::now();
    while family.iter().any(|pid| watch::runs(*pid)) && began.elapsed() < GOING {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn reap(pid: u32) {
    // One that still lives is reaped later.
    let _ = waitpid(Pid::from_raw(pid as i32), Some(WaitPidFlag::WNOHANG));
}

/// A child in our own group, so that whoever kills the group has it too. It does not outlive us; what it starts may.
pub fn spawn_beside(command: &mut Command) -> std::io::Result<Child> {
    die_with_parent(command);
    command.spawn()
}

/// Has the kernel kill the child when the thread that spawns it dies, however it dies: we spawn from the main thread.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let leash = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // We may have died between the fork and the line above.
        if nix::unistd::getppid() != parent { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only two system calls are made, prctl and getppid, both safe after a fork; nothing
    // is allocated or locked. Tested by tests/cli, which kills kvfair with -9 and looks for what is left.
    unsafe { command.pre_exec(leash) };
}

/// Elsewhere a kvfair killed with -9 leaves its children behind; any other end takes them along.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

#[cfg(not(target_os = "linux"))]
fn group_dies_with_parent(_: &mut Command) {}

/// Has the kernel tell the child when the thread that spawns it dies. The child then kills its group: it does not
/// become the program, but is the parent of a child that does, and ends as that ends.
#[cfg(target_os = "linux")]
fn group_dies_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let leash = move || keep_group(parent);
    // SAFETY: between fork and exec only system calls are made, all of them safe after a fork; nothing is allocated or
    // locked. Tested by tests/cli/clean_up.rs, which kills kvfair with -9 while a data directory is prepared.
    unsafe { command.pre_exec(leash) };
}

/// In the child of a fork. Returns in the program's process alone.
#[cfg(target_os = "linux")]
fn keep_group(parent: Pid) -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
    use nix::unistd::{ForkResult, fork, getpid, getppid};
    let mut heard = SigSet::empty();
    heard.add(Signal::SIGTERM);
    heard.add(Signal::SIGCHLD);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&heard), Some(&mut before))?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
    // We may have died between the fork and the line above.
    if getppid() != parent {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    }
    let between = getpid();
    // SAFETY: the child makes system calls until it is the program.
    match unsafe { fork()? } {
        ForkResult::Child => {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
            if getppid() == between { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
        }
        ForkResult::Parent { child } => wait_for_program(child, &heard),
    }
}

/// Ends as the program does, and kills the group where it is told to end.
#[cfg(target_os = "linux")]
fn wait_for_program(program: Pid, heard: &nix::sys::signal::SigSet) -> ! {
    use nix::libc;
    use nix::sys::wait::WaitStatus;
    // SAFETY: nothing of this process uses a file any more. Pipes that stay open would never end for their readers.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    loop {
        let told = heard.wait();
        match waitpid(program, Some(WaitPidFlag::WNOHANG)) {
            // SAFETY: it ends this process at once, without what a program of Rust does at its end.
            Ok(WaitStatus::Exited(_, code)) => unsafe { libc::_exit(code) },
            Ok(WaitStatus::Signaled(..)) => _ = kill(Pid::from_raw(0), Signal::SIGKILL),
            _ if told == Ok(Signal::SIGTERM) => _ = kill(Pid::from_raw(0), Signal::SIGKILL),
            _ => {}
        }
    }
}

/// Lets a child of ours trace us where only parents may (Yama's ptrace_scope 1).
#[cfg(target_os = "linux")]
pub fn let_be_traced() {
    // SAFETY: with these arguments prctl reads and writes no memory of ours; nix has no function for it. Tested by
    // tests/cli/outages.rs, where nothing could be traced without it on a machine that has Yama.
    unsafe { nix::libc::prctl(nix::libc::PR_SET_PTRACER, nix::libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_program(file))
}

pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A program that is to be started. All programs that kvfair starts are made here. None inherits a password: what a
/// trial or server needs it is told by a pipe.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    stores::password_variables().chain([PASSWORD_VARIABLE]).for_each(|variable| _ = command.env_remove(variable));
    command
}

/// The same for a program of the user's (`--exec`): the stores' own clients in it may read their own variables.
pub fn of_user(mut command: Command) -> Command {
    for variable in stores::password_variables() {
        std::env::var_os(variable).into_iter().for_each(|value| _ = command.env(variable, value));
    }
    command
}

/// A program, or the command `under` that starts it.
pub fn under(under: &[String], program: &Path) -> Command {
    let Some((first, rest)) = under.split_first() else { return self::program(program) };
    let mut command = self::program(first);
    command.args(rest).arg(program);
    command
}

/// How a process ended, in words: "exit code 1", "killed by SIGKILL".
pub fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal().and_then(|number| Signal::try_from(number).ok())) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Another process could have its id else, and would be killed with its group.
    #[test]
    fn a_child_that_has_ended_keeps_its_id_until_its_group_is_killed() {
        let mut leash = Leashed::spawn(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        let status = leash.wait_at_most(Duration::from_secs(60)).expect("it ends");
        assert_eq!(in_words(status), "exit code 3");
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", leash.id())).unwrap_or_default();
        assert!(stat().contains(") Z "), "it is not reaped: '{}'", stat());
        leash.kill();
        let reaped = std::fs::exists(format!("/proc/{}", leash.id()));
        assert!(!reaped.expect("an answer"), "it is waited for");
        assert_eq!(leash.ended().map(in_words).as_deref(), Some("exit code 3"), "and how it ended is still known");
        let mut killed = Leashed::spawn(Command::new("sleep").arg("60")).unwrap();
        kill(Pid::from_raw(killed.id() as i32), Signal::SIGTERM).unwrap();
        let status = killed.wait_at_most(Duration::from_secs(60)).expect("it ends");
        assert_eq!(in_words(status), "killed by SIGTERM");
    }

    #[test]
    fn a_program_in_a_kept_group_ends_as_it_ends_and_with_its_group() {
        let run = |script: &str| Leashed::spawn_group(Command::new("sh").args(["-c", script])).unwrap();
        let status = run("exit 3").wait_at_most(Duration::from_secs(60)).expect("it ends");
        assert_eq!(in_words(status), "exit code 3");
        let missing = Leashed::spawn_group(&mut Command::new("/no/such/program"));
        assert_eq!(missing.err().map(|error| error.kind()), Some(std::io::ErrorKind::NotFound));
        let mut leash = run("sleep 60 & sleep 60");
        let began = Instant::now();
        while watch::family(leash.id()).len() < 4 && began.elapsed() < GOING {
            std::thread::sleep(Duration::from_millis(5));
        }
        let family = watch::family(leash.id());
        assert_eq!(family.len(), 4, "the process between, the shell and both of its children");
        // As the kernel does when kvfair is gone.
        kill(Pid::from_raw(leash.id() as i32), Signal::SIGTERM).unwrap();
        wait_until_gone(&family[1..]);
        assert!(!family[1..].iter().any(|pid| watch::runs(*pid)));
        leash.kill();
    }

    /// A server's processes may be in sessions of their own, as PostgreSQL's are: no signal to its group reaches them.
    #[test]
    fn what_is_killed_is_gone_with_all_below_it() {
        let mut shell = Command::new("sh");
        let mut leash = Leashed::spawn(shell.args(["-c", "setsid sleep 60 & sleep 60"])).unwrap();
        let began = Instant::now();
        let family = loop {
            let family = watch::family(leash.id());
            if family.len() == 3 || began.elapsed() > GOING {
                break family;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(family.len(), 3, "the shell and both of its children");
        assert!(family.iter().all(|pid| watch::runs(*pid)));
        kill_each(&family);
        leash.kill();
        wait_until_gone(&family);
        assert!(!family.iter().any(|pid| watch::runs(*pid)));
    }
}
