//! Children that are this same program under its hidden command `child`: started on a leash, told a task, heard line by
//! line. What is told stands in `task`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;

use super::machine;
use super::process::{self, Leashed, in_words};
use super::task::{AgentOrder, Event, Task};
use crate::model::op::readable;

/// The hidden command. The name of the task follows it, so that a list of processes shows what a child does.
const COMMAND: &str = "child";
/// How long a child may take to end once it has said its last word or its standard input is closed.
const ENDING: Duration = Duration::from_secs(5);
/// The most bytes of an event: what another machine says may have no end.
const LONGEST: u64 = 64 << 20;
/// How much is shown of what is no event.
const SHOWN_BYTES: usize = 120;

/// A child at its task. It does not outlive this value: its standard input is closed, then it is killed.
pub struct Child {
    /// Open as long as it is to go on.
    pipe: Option<ChildStdin>,
    leash: Leashed,
    heard: mpsc::Receiver<Event>,
    log: PathBuf,
}

impl Child {
    /// Started by the command `under`, if that is one. Its error output goes to the file `log`.
    pub(super) fn start(under: &[String], task: &Task, log: &Path) -> Result<Child> {
        let name = task.name();
        // A path that is no text cannot be told.
        let mut line = serde_json::to_vec(task).with_context(|| format!("cannot write the task of a {name}"))?;
        line.push(b'\n');
        let program = std::env::current_exe().context("cannot find our own program")?;
        // Its trials would be of another kvfair.
        if !program.exists() {
            bail!("kvfair's own program was replaced or deleted while it ran\nhint: start the run again");
        }
        let mut command = process::under(under, &program);
        if task.runs_users_program() {
            command = process::of_user(command);
        }
        command.args([COMMAND, name]);
        let spawn = if task.is_supervisor() { Leashed::spawn_supervisor } else { Leashed::spawn };
        let child = Child::spawn(command, spawn, log);
        let mut child = child.with_context(|| format!("cannot start the process of a {name}"))?;
        // An error means that the child is dead: `next` finds that, and its caller tells how it ended.
        let _ = child.write(&line);
        Ok(child)
    }

    /// A command of the user's that connects its standard input and output to those of an agent.
    pub(super) fn launch(line: &str, log: &Path) -> Result<Child> {
        let mut command = process::program("sh");
        command.args(["-c", line]);
        Child::spawn(command, Leashed::spawn, log)
    }

    fn spawn(mut command: Command, spawn: fn(&mut Command) -> io::Result<Leashed>, log: &Path) -> Result<Child> {
        let errors = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut leash = spawn(&mut command)?;
        let pipe = leash.child().stdin.take();
        let heard = listen(leash.child().stdout.take().expect("stdout is piped"));
        Ok(Child { pipe, leash, heard, log: log.to_path_buf() })
    }

    /// Tells an agent what to do.
    pub(super) fn order(&mut self, order: &AgentOrder) {
        let mut line = serde_json::to_vec(order).expect("an order is plain data");
        line.push(b'\n');
        // An error means that it is dead, which `next` notices.
        let _ = self.write(&line);
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(line))
    }

    pub(super) fn id(&self) -> u32 {
        self.leash.id()
    }

    /// What it tells next.
    pub(super) fn next(&self, within: Duration) -> Result<Event, RecvTimeoutError> {
        self.heard.recv_timeout(within)
    }

    /// Lets it go on where it waits.
    pub(super) fn go(&mut self) {
        // An error means that it is dead, which `next` notices.
        let _ = self.write(b"go\n");
    }

    pub(super) fn kill(&mut self) {
        self.leash.kill();
    }

    /// Whether it was ended from outside: by a user, or by the kernel where memory is short. A program that crashes
    /// ends by another signal or by an exit code.
    pub(super) fn was_killed(&mut self) -> bool {
        let signal = self.leash.ended().and_then(|status| status.signal());
        let outside = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];
        signal.is_some_and(|signal| outside.iter().any(|other| *other as i32 == signal))
    }

    /// Closes its standard input and gives it time to end by itself.
    pub(super) fn end(&mut self) {
        drop(self.pipe.take());
        self.leash.wait_at_most(ENDING);
    }

    /// How it ended, and what it complained of, for a message's end.
    pub(super) fn ending(&mut self) -> String {
        let ending = self.leash.wait_at_most(ENDING).map_or_else(|| "it does not end".to_string(), in_words);
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
        if last.is_empty() { ending } else { format!("{ending}; it said: {}", last.join(" | ")) }
    }
}

/// Reads a child's events on a thread of its own, so that the listener can look up in between.
fn listen(output: ChildStdout) -> mpsc::Receiver<Event> {
    let (speak, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut output, mut line) = (BufReader::new(output), Vec::new());
        while (&mut output).take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let told = serde_json::from_slice(&line);
            let is_event = told.is_ok();
            let told = told.unwrap_or_else(|_| Event::Strange(readable(line.trim_ascii(), SHOWN_BYTES)));
            if speak.send(told).is_err() || !is_event {
                break;
            }
            line.clear();
        }
    });
    heard
}

/// In the child: what it is to do.
pub fn task() -> io::Result<Task> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// In the child: what a server says may fill no more than a share of the machine's free memory. What a store in this
/// process needs depends on its data, and has no limit.
pub fn limit_memory(task: &Task) {
    /// What a thread of each client may reserve: its stack and its heap.
    const CLIENT_BYTES: u64 = 4 << 20;
    /// A right trial must not end where little is free.
    const LEAST_BYTES: u64 = 512 << 20;
    let Some(launch) = task.asks_servers() else { return };
    let Some(free) = machine::own_memory_bytes(machine::MEMORY_SHARE) else { return };
    let limit = free.max(LEAST_BYTES) + u64::from(launch.clients) * CLIENT_BYTES;
    // Where the system has no such limit it is not bounded.
    let _ = setrlimit(Resource::RLIMIT_DATA, limit, limit);
}

/// In the child: sends an event to the parent, in one write. The child ends if the parent is gone.
pub fn tell(event: &Event) {
    let mut line = serde_json::to_vec(event).expect("an event is plain data");
    line.push(b'\n');
    let mut out = io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// In the child: a panic on any thread ends it, which is one failed record; a client that died alone would hang the
/// others.
pub(super) fn abort_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::task::ProxyTask;

    #[test]
    fn a_child_that_dies_before_it_has_read_its_task_is_a_child_that_died() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        // More than a pipe holds, so that the task cannot be written whole before the child ends.
        let server = crate::stores::Place::Path(PathBuf::from("x".repeat(1 << 20)));
        let task = Task::Proxy(ProxyTask {
            server,
            delay: Duration::ZERO,
            clients: 1,
            lets_in: None,
            directory: directory.path().to_path_buf(),
        });
        let killed = ["sh", "-c", "echo short of memory >&2; kill -9 $$"].map(String::from);
        let mut child = Child::start(&killed, &task, &log).expect("it was started");
        assert!(matches!(child.next(ENDING), Err(RecvTimeoutError::Disconnected)));
        let ending = child.ending();
        assert!(ending.ends_with("; it said: short of memory"), "{ending}");
        assert!(child.was_killed(), "{ending}");
    }
}
