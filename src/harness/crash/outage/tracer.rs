//! The tracer: it stops a store's threads at each call to the kernel and notes what was made safe. It is a process of
//! its own in a group of its own, so that it outlives the store that is killed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::calls::{self, Call};
use super::disk::{Disk, FilePart, Moment, PathState, is_gone};
use super::{COMMAND, OutageOrder, Report};
use crate::harness::process;
use crate::model::crash::calls::{RING, SUBMITTED};

/// Has a tracer look on, and becomes the program: its process id is the one that everybody knows. Returns only when
/// that cannot be done.
pub fn become_traced(order: &OutageOrder, program: &[std::ffi::OsString]) -> io::Error {
    let Some((first, rest)) = program.split_first() else { return io::Error::other("there is no program to run") };
    match start_tracer(order) {
        Ok(()) => process::program(first).args(rest).exec(),
        Err(error) => error,
    }
}

fn start_tracer(order: &OutageOrder) -> io::Result<()> {
    process::let_be_traced();
    let mut tracer = process::program(std::env::current_exe()?);
    tracer.arg(COMMAND).args(["--owner", &order.owner.to_string(), "--of", &getpid().to_string()]);
    tracer.args([&order.data, &order.report]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut tracer = tracer.spawn()?;
    let mut line = String::new();
    BufReader::new(tracer.stdout.take().expect("stdout is piped")).read_line(&mut line)?;
    if line == READY { Ok(()) } else { Err(io::Error::other("the tracer may not trace here")) }
}

const READY: &str = "ready\n";

/// Traces that process and all that it starts until none of them is left; rolls the files back where it was killed.
pub fn trace(order: &OutageOrder, main: i32) -> io::Result<()> {
    let main = Pid::from_raw(main);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options)?;
    ptrace::interrupt(main)?;
    waitpid(main, Some(WaitPidFlag::__WALL))?;
    let mut tracer = Tracer::new(Disk::new(&order.data)?, main);
    ptrace::syscall(main, None)?;
    io::stdout().write_all(READY.as_bytes())?;
    tracer.follow()?;
    // Where the store runs as somebody else, so do we, and may not signal the owner: it is there all the same.
    if kill(Pid::from_raw(order.owner), None) == Err(Errno::ESRCH) {
        return Ok(());
    }
    if tracer.report.rolled_back
        && let Err(error) = tracer.disk.roll_back()
    {
        tracer.report.unknown = Some(format!("its files could not be rolled back: {error}"));
    }
    write_whole(&order.report, &serde_json::to_vec(&tracer.report)?)
}

/// Nobody sees half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(new, path)
}

/// What a thread is in the middle of.
enum Asked {
    /// What was there when it asked is safe when it is answered; and what stands where, if that changed.
    Sync(Moment, Vec<FilePart>, Option<Vec<PathState>>),
    /// A write that is safe when it is answered.
    Write {
        file: u64,
        at: Option<u64>,
    },
    Names,
    /// What cannot be followed, and why.
    Hidden(&'static str),
}

struct Tracer {
    disk: Disk,
    main: Pid,
    threads: HashSet<Pid>,
    asked: HashMap<Pid, Asked>,
    /// Whether names have changed since they were last made safe.
    renamed: bool,
    /// How often we have looked at what is there.
    looks: Moment,
    report: Report,
}

impl Tracer {
    fn new(disk: Disk, main: Pid) -> Tracer {
        let (threads, asked) = (HashSet::from([main]), HashMap::new());
        Tracer { disk, main, threads, asked, renamed: false, looks: 0, report: Report::default() }
    }

    /// Until nobody is left. Threads that die under our hands are an error of ptrace that is none.
    fn follow(&mut self) -> io::Result<()> {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(Errno::ECHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let (thread, signal) = match status {
                WaitStatus::PtraceSyscall(thread) => {
                    self.look(thread);
                    (thread, None)
                }
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, _, _) => (thread, None),
                WaitStatus::Exited(thread, _) => {
                    self.gone(thread, false);
                    continue;
                }
                WaitStatus::Signaled(thread, signal, _) => {
                    self.gone(thread, signal == Signal::SIGKILL);
                    continue;
                }
                _ => continue,
            };
            self.threads.insert(thread);
            let _ = ptrace::syscall(thread, signal);
        }
    }

    /// When the store itself is gone, so is all that it started: that is how power is lost.
    fn gone(&mut self, thread: Pid, killed: bool) {
        self.threads.remove(&thread);
        self.asked.remove(&thread);
        if thread == self.main {
            self.report.rolled_back = killed;
            for thread in &self.threads {
                let _ = kill(*thread, Signal::SIGKILL);
            }
        }
    }

    /// A thread stands before a call or behind it.
    fn look(&mut self, thread: Pid) {
        let Ok(info) = ptrace::syscall_info(thread) else { return };
        let Ok(registers) = ptrace::getregs(thread) else { return };
        let looked = match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                let (number, arguments) = calls::asked(&registers);
                calls::call(number, &arguments).map_or(Ok(()), |call| self.before(thread, call))
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                let answer = calls::answer(&registers);
                self.asked.remove(&thread).map_or(Ok(()), |asked| self.after(thread, asked, answer))
            }
            _ => Ok(()),
        };
        if let Err(error) = looked {
            self.report.unknown.get_or_insert(format!("the tracer could not follow: {error}"));
        }
    }

    /// What a sync promises is what was written before it was asked for.
    fn before(&mut self, thread: Pid, call: Call) -> io::Result<()> {
        let parts = match call {
            Call::Names => {
                self.asked.insert(thread, Asked::Names);
                return Ok(());
            }
            Call::Ring => {
                self.asked.insert(thread, Asked::Hidden(RING));
                return Ok(());
            }
            Call::Submit { count, list } => {
                if calls::submits_sync(thread, count, list) {
                    self.asked.insert(thread, Asked::Hidden(SUBMITTED));
                }
                return Ok(());
            }
            Call::Write { file, at, is_sync } => {
                if self.is_ours(thread, file) && (is_sync || calls::mode(thread, file).is_some_and(|mode| mode.0)) {
                    self.asked.insert(thread, Asked::Write { file, at });
                }
                return Ok(());
            }
            Call::File(file) if !self.is_ours(thread, file) => return Ok(()),
            Call::File(file) => {
                let file = calls::open(thread, file)?;
                // A directory's sync is one of its names.
                if file.metadata()?.is_dir() { Vec::new() } else { vec![FilePart::read(&file, None)?] }
            }
            Call::Mapped { address, bytes } => {
                let mapped =
                    calls::mapped(thread, address, bytes).into_iter().filter(|(path, ..)| self.disk.holds(path));
                let read =
                    |(path, from, to): (PathBuf, u64, u64)| FilePart::read(&fs::File::open(path)?, Some((from, to)));
                // A file that is mapped and has no name any more is nowhere to be found afterwards.
                mapped.map(read).filter(|part| !is_gone(part)).collect::<io::Result<_>>()?
            }
            Call::All => self.disk.all_now()?,
        };
        let (moment, names) = (self.moment(), self.new_names()?);
        self.asked.insert(thread, Asked::Sync(moment, parts, names));
        Ok(())
    }

    fn moment(&mut self) -> Moment {
        self.looks += 1;
        self.looks
    }

    /// What stands where, if that has changed.
    fn new_names(&mut self) -> io::Result<Option<Vec<PathState>>> {
        if std::mem::take(&mut self.renamed) { self.disk.names_now().map(Some) } else { Ok(None) }
    }

    fn is_ours(&self, thread: Pid, file: u64) -> bool {
        calls::path(thread, file).is_some_and(|path| self.disk.holds(&path))
    }

    /// `answer` is none where the call failed.
    fn after(&mut self, thread: Pid, asked: Asked, answer: Option<u64>) -> io::Result<()> {
        match (asked, answer) {
            (Asked::Sync(moment, parts, names), Some(_)) => self.keep(moment, parts, names),
            (Asked::Sync(_, _, names), None) => self.renamed |= names.is_some(),
            (Asked::Write { file, at }, Some(written)) => {
                let end = at.map(|at| at + written).or_else(|| calls::mode(thread, file).map(|mode| mode.1));
                let end = end.ok_or_else(|| io::Error::other("a file's position is unknown"))?;
                let part = FilePart::read(&calls::open(thread, file)?, Some((end.saturating_sub(written), end)))?;
                let (moment, names) = (self.moment(), self.new_names()?);
                self.keep(moment, vec![part], names);
            }
            (Asked::Names, Some(_)) => self.renamed = true,
            (Asked::Hidden(why), Some(_)) => {
                self.report.unknown.get_or_insert(why.to_string());
            }
            (Asked::Write { .. } | Asked::Names | Asked::Hidden(_), None) => {}
        }
        Ok(())
    }

    fn keep(&mut self, moment: Moment, parts: Vec<FilePart>, names: Option<Vec<PathState>>) {
        self.report.syncs += 1;
        parts.into_iter().for_each(|part| self.disk.keep(moment, part));
        if let Some(names) = names {
            self.disk.keep_names(moment, names);
        }
    }
}
