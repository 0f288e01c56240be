//! Child processes on a leash: in a group of their own, so that Ctrl-C reaches only us, and killed when we die or let
//! go.

use std::collections::BTreeSet;
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

/// Where a password for servers by URL may stand. No process that we start inherits it: a trial is told by a pipe.
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
    /// It starts programs that may leave its process group.
    is_supervisor: bool,
}

impl Leashed {
    pub fn spawn(command: &mut Command) -> std::io::Result<Leashed> {
        die_with_parent(command);
        Leashed::start(command, false)
    }

    /// One that ends itself when its standard input is closed, since it has more to end than the kernel would.
    pub fn spawn_supervisor(command: &mut Command) -> std::io::Result<Leashed> {
        Leashed::start(command, true)
    }

    fn start(command: &mut Command, is_supervisor: bool) -> std::io::Result<Leashed> {
        let child = command.process_group(0).spawn()?;
        leashed().insert(child.id());
        Ok(Leashed { child, is_supervisor })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
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

    /// Kills what is left of its group, and reaps it.
    pub fn kill(&mut self) {
        // An error means that nothing is left of the group, which is what we want.
        let _ = killpg(Pid::from_raw(self.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
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

/// A program, or the command `under` that starts it.
pub fn under(under: &[String], program: &Path) -> Command {
    let Some((first, rest)) = under.split_first() else { return Command::new(program) };
    let mut command = Command::new(first);
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
