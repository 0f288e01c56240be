//! Child processes on a leash: in a group of their own, so that Ctrl-C reaches only us, and killed when we die or let
//! go.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Where a password for servers by URL may stand. No process that we start inherits it: a trial is told by a pipe.
pub const PASSWORD_VARIABLE: &str = "KVFAIR_PASSWORD";

/// A child that does not outlive this value, nor this process.
pub struct Leashed {
    child: Child,
}

impl Leashed {
    pub fn spawn(command: &mut Command) -> std::io::Result<Leashed> {
        command.process_group(0);
        die_with_parent(command);
        Ok(Leashed { child: command.spawn()? })
    }

    /// One that ends itself when its standard input is closed, since it has more to end than the kernel would.
    pub fn spawn_keeper(command: &mut Command) -> std::io::Result<Leashed> {
        command.process_group(0);
        Ok(Leashed { child: command.spawn()? })
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
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.kill();
    }
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
