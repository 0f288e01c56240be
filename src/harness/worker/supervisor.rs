//! Keeps a program of the user's: starts it, waits for its end and that of all that it has started, and knows what it
//! answered and what it used up.
//!
//! Every process that the program starts ends up as a child of this one when its own parent is gone, so that none is
//! missed: neither when CPU is counted nor when everything must end. It ends it all when the parent is no longer there
//! (its end of standard input is closed then), which nothing else could do after a kill -9.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};

use super::entry::{must_be_empty, must_have_room};
use super::{Early, Event, TrialTask, flushed, phase, reach, tell};
use crate::harness::gates::queue::{self, Waits};
use crate::harness::process::{self, in_words};
use crate::harness::program::{BatchProgram, Program};
use crate::harness::watch::{self, Peaks};
use crate::jobs;
use crate::loadgen::LoadStats;
use crate::model::logins;
use crate::model::metrics::Metrics;
use crate::model::op::{Fault, readable};
use crate::model::part::Part;
use crate::model::record::{Answered, Usage, Verdict};
use crate::model::trial::Answer;
use crate::model::units;
use crate::stores::store_stats::StoreStats;
use crate::stores::{self, Facts, Store};

/// How often its processes are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long what was killed may take to go.
const GOING: Duration = Duration::from_secs(5);
/// Of what it writes the last bytes are kept, whatever it writes.
const TAIL_BYTES: usize = 8 * 1024;
/// So many of its last lines are told, of standard error and of standard output.
const LINES: [usize; 2] = [4, 2];
/// And of each so many bytes.
const LINE_BYTES: usize = 300;
/// ru_oublock counts in these (getrusage(2), include/linux/task_io_accounting_ops.h).
const BLOCK_BYTES: u64 = 512;
/// What speaks to the store is the program.
const CLIENT_LIBRARY: &str = "the program's own";

/// The plot of a program's trial.
pub fn carry_out(trial: &TrialTask, program: &Program) -> Result<(), Early> {
    adopt_orphans()?;
    let parent = ParentPipe::listen();
    let (store, first) =
        if program.served { open(trial).map(|(store, facts)| (Some(store), facts))? } else { (None, Facts::default()) };
    let store = store.as_deref();
    if let Some(store) = store.filter(|_| trial.guest) {
        let unknown = || Err(Early::Refused(format!("{} cannot say whether it is empty", trial.launch.place)));
        must_be_empty(store, trial, unknown)?;
        must_have_room(store, trial)?;
    }
    let stats = store.map(Store::stats);
    program.batch.iter().for_each(|batch| tell(&Event::Facts(facts_of(batch))));
    let before = answer_file(program).map(identity);
    parent.boundary(&Event::Begins(Part::Run));
    let limit = Duration::from_secs_f64(trial.limit_s.unwrap_or(f64::from(u32::MAX)));
    let ran = Ran::of(program, limit, &parent).map_err(|why| Early::Failed(format!("the command: {why}")))?;
    let ended = ran.judged(program, limit);
    let ended = and_left(ended, trial, store);
    tell(&Event::Peak(ran.peaks.peak));
    let batch = program.batch.as_ref();
    let (units, ops) = batch.map_or((1, 1), |batch| (batch.units, batch.ops));
    let metrics = Metrics { units, ops, ..Metrics::default() };
    let seen = LoadStats { metrics, threads: 1, took_s: ran.took_s, timed_one_in: 1, ..LoadStats::default() };
    let mut run = phase(Part::Run, 1, seen, Vec::new());
    run.client = ran.usage;
    parent.boundary(&Event::Ended(Box::new(run), ran.waits));
    ended?;
    final_flush(store, &parent)?;
    if let Some(batch) = batch {
        return compare(trial, batch);
    }
    if let (Some(store), Some(stats)) = (store, stats) {
        let stats = stats.and_then(|before| Ok(StoreStats::until(&before, &store.stats()?)));
        tell(&Event::StoreStats(stats.map_err(|fault| fault.to_string())));
    }
    store.map_or(Ok(()), |store| is_the_same(store, &first)).map_err(Early::Failed)?;
    let answered = answered(program, ran.out, before).map_err(Early::Failed)?;
    tell(&Event::Verdict(Verdict::Answered(answered), None));
    Ok(())
}

/// Children of children whose parents are gone become ours, for as long as we live.
fn adopt_orphans() -> Result<(), Early> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| Early::Failed(format!("cannot keep a program's children: {error}")))?;
    Ok(())
}

fn open(trial: &TrialTask) -> Result<(Box<dyn Store>, Facts), Early> {
    let adapter = stores::find(&trial.store).ok_or_else(|| Early::Failed(format!("no store {}", trial.store)))?;
    let store = (adapter.open)(&trial.launch).map_err(|fault| reach(&trial.launch.place, &fault))?;
    let facts = store.facts().map_err(|fault| reach(&trial.launch.place, &fault))?;
    tell(&Event::Facts(Facts {
        client_library: CLIENT_LIBRARY.to_string(),
        increment: CLIENT_LIBRARY.to_string(),
        ..facts.clone()
    }));
    Ok((store, facts))
}

fn facts_of(batch: &BatchProgram) -> Facts {
    Facts {
        version: batch.version.clone(),
        client_library: CLIENT_LIBRARY.to_string(),
        increment: "none: everything is counted at once".to_string(),
        ..Facts::default()
    }
}

/// What a batch engine counted must be the expected state, as what a store holds must.
fn compare(trial: &TrialTask, batch: &BatchProgram) -> Result<(), Early> {
    if !batch.counts.exists() {
        return Err(Early::Failed("the command ended well and wrote no counts".to_string()));
    }
    let kind = jobs::find(&trial.job.name).ok_or_else(|| Early::Failed(format!("no job {}", trial.job.name)))?;
    let adapter = stores::find(&trial.store).ok_or_else(|| Early::Failed(format!("no store {}", trial.store)))?;
    let counted = (adapter.open)(&trial.launch).map_err(|fault| Early::Failed(format!("its counts: {fault}")))?;
    super::compare(trial, adapter, kind, counted.as_ref())
}

/// The server must still be there, and must never have gone: what a program did on a server that died under it, or that
/// it started again, is no measurement of that store.
fn is_the_same(store: &dyn Store, first: &Facts) -> Result<(), String> {
    let now = store.facts().map_err(|fault| format!("the server was asked after the command had ended: {fault}"))?;
    let [was, is] = [first, &now].map(|facts| (facts.process_id, &facts.started));
    if was == is { Ok(()) } else { Err("the server was started again while the command ran".to_string()) }
}

/// Returns when what a server acknowledged meets its durability level. An embedded store is the program's to flush.
fn final_flush(store: Option<&dyn Store>, parent: &ParentPipe) -> Result<(), Early> {
    parent.boundary(&Event::Begins(Part::FinalFlush));
    let began = Instant::now();
    store.map_or(Ok(()), Store::final_flush).map_err(|fault| Early::Failed(format!("final flush: {fault}")))?;
    let took_s = if store.is_some() { began.elapsed().as_secs_f64() } else { 0.0 };
    parent.boundary(&Event::Ended(Box::new(flushed(Part::FinalFlush, took_s)), Waits::new()));
    Ok(())
}

/// A store by URL was empty, and must be again: which keys are the program's only the program knows.
fn and_left(ended: Result<(), Early>, trial: &TrialTask, store: Option<&dyn Store>) -> Result<(), Early> {
    let count = match store.filter(|_| trial.guest).map(Store::count) {
        Some(Ok(Some(count))) => count,
        Some(Err(Fault::Lost(error))) => return ended.and(Err(Early::Failed(format!("asking for keys: {error}")))),
        _ => 0,
    };
    if count == 0 {
        return ended;
    }
    let what = format!(
        "it left {} at {}: kvfair cannot know which keys are a program's, so that in a store by URL it \
         must delete them itself",
        units::counted(count, "record"),
        trial.launch.place
    );
    Err(ended.err().map_or_else(|| Early::Failed(what.clone()), |early| early.and(&what)))
}

/// The way to the parent: when it says go, and whether it is still there.
struct ParentPipe {
    go: Receiver<()>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The program may have processes.
    running: bool,
    /// Nobody listens to us any more.
    alone: bool,
}

impl ParentPipe {
    fn listen() -> ParentPipe {
        let (say, go) = mpsc::channel();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let mut line = String::new();
            while io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
                // Who does not wait for it any more does not need it.
                let _ = say.send(());
            }
            let mut state = shared.lock().expect("no thread panics with it");
            state.alone = true;
            if !state.running {
                std::process::exit(1);
            }
            drop(state);
            // Whoever waits for the program reaps them, and then ends this process.
            loop {
                kill_all(&below());
                std::thread::sleep(LOOK);
            }
        });
        ParentPipe { go, state }
    }

    /// Tells, and waits until the parent has looked and says go.
    fn boundary(&self, told: &Event) {
        tell(told);
        if self.go.recv().is_err() {
            std::process::exit(1);
        }
    }

    /// Nothing is started once the parent is gone.
    fn start<T>(&self, start: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock().expect("no thread panics with it");
        state.running = true;
        start()
    }

    /// All are gone.
    fn stopped(&self) {
        let mut state = self.state.lock().expect("no thread panics with it");
        state.running = false;
        if state.alone {
            std::process::exit(1);
        }
    }
}

/// What was seen of a program from its start to its end.
struct Ran {
    status: ExitStatus,
    took_s: f64,
    timed_out: bool,
    usage: Usage,
    peaks: Peaks,
    waits: Waits,
    out: Heard,
    err: Heard,
}

impl Ran {
    fn of(program: &Program, limit: Duration, parent: &ParentPipe) -> Result<Ran, String> {
        let mut command = process::program("/bin/sh");
        if program.batch.is_none() {
            command = process::of_user(command);
        }
        command.args(["-c", &program.line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in &program.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let began = Instant::now();
        let mut child = parent.start(|| process::spawn_beside(&mut command)).map_err(|error| error.to_string())?;
        let (out, err) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
        let (out, err) = (std::thread::spawn(|| Heard::of(out)), std::thread::spawn(|| Heard::of(err)));
        let (stop, stopped) = mpsc::channel::<()>();
        let watcher = std::thread::spawn(move || watch(began, limit, &stopped));
        let status = child.wait().map_err(|error| error.to_string());
        let took_s = began.elapsed().as_secs_f64();
        drop(stop);
        let watched = watcher.join().expect("the watcher does not panic");
        end_all()?;
        parent.stopped();
        let heard = |thread: std::thread::JoinHandle<io::Result<Heard>>| {
            thread.join().expect("a reader does not panic").map_err(|error| format!("its output: {error}"))
        };
        let (peaks, waits, timed_out) = watched;
        Ok(Ran {
            status: status?,
            took_s,
            timed_out,
            usage: usage()?,
            peaks,
            waits,
            out: heard(out)?,
            err: heard(err)?,
        })
    }

    /// Whether it ended well, in time; else its last words.
    fn judged(&self, program: &Program, limit: Duration) -> Result<(), Early> {
        let how = match self.status.success() {
            _ if self.timed_out => {
                // What is left of the run's time has many digits.
                let limit_s = (limit.as_secs_f64() * 10.0).round() / 10.0;
                format!("did not end within {limit_s} s (--timeout)")
            }
            true => return Ok(()),
            false => format!("ended with {}", in_words(self.status)),
        };
        let last = [(&self.err, LINES[0]), (&self.out, LINES[1])].map(|(heard, lines)| heard.last(lines, program));
        let last = last.concat();
        let said = if last.is_empty() { "it said nothing".to_string() } else { last.join(" | ") };
        Err(Early::Failed(format!("the command {how}; its last lines: {said}")))
    }
}

/// Looks at its processes until told to stop, and ends them where they take too long.
fn watch(began: Instant, limit: Duration, stopped: &Receiver<()>) -> (Peaks, Waits, bool) {
    let (mut peaks, mut waits, mut timed_out) = (Peaks::default(), Waits::new(), false);
    // Once at the very beginning: it may be a short one.
    let mut pause = Duration::from_millis(1);
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
        let processes = below();
        peaks.look_at(&processes);
        waits.extend(queue::waits_of(&processes));
        timed_out = timed_out || began.elapsed() >= limit;
        if timed_out {
            kill_all(&processes);
        }
        pause = (pause * 2).min(LOOK);
    }
    (peaks, waits, timed_out)
}

/// Everything that descends from us and has not been reaped.
fn below() -> Vec<u32> {
    watch::family(std::process::id()).split_off(1)
}

fn kill_all(processes: &[u32]) {
    for &pid in processes {
        // An error means that it is gone, or not ours to kill: then `end_all` says so.
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
}

/// Ends what the program has left behind and reaps it, so that its CPU is counted. Who forks meanwhile is found in the
/// next round.
fn end_all() -> Result<(), String> {
    let began = Instant::now();
    loop {
        let left = below();
        kill_all(&left);
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => break,
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINTR) | Ok(_) => {}
                Err(error) => return Err(format!("waiting for its children: {error}")),
            }
        }
        if began.elapsed() > GOING {
            return Err(format!("its children cannot be ended: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What all children that were waited for have used up, and theirs, to the microsecond: the program is all that was
/// started here.
fn usage() -> Result<Usage, String> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    Ok(Usage {
        user_s: used.user_time().num_microseconds() as f64 / 1e6,
        system_s: used.system_time().num_microseconds() as f64 / 1e6,
        bytes_written: u64::try_from(used.block_writes()).ok().map(|blocks| blocks * BLOCK_BYTES),
        bytes_read: u64::try_from(used.block_reads()).ok().map(|blocks| blocks * BLOCK_BYTES),
        run_delay_s: None,
    })
}

/// What came out of a pipe or stands in a file: its digest, its length and its end.
struct Heard {
    sha256: String,
    bytes: u64,
    tail: Vec<u8>,
}

impl Heard {
    fn of(mut source: impl Read) -> io::Result<Heard> {
        let (mut digest, mut bytes, mut tail) = (Sha256::new(), 0, Vec::new());
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => &buffer[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            digest.update(read);
            bytes += read.len() as u64;
            tail.extend_from_slice(read);
            tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        }
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Heard { sha256, bytes, tail })
    }

    /// Its last lines that are not empty, readable and without secrets.
    fn last(&self, count: usize, program: &Program) -> Vec<String> {
        let text = logins::hidden(&String::from_utf8_lossy(&self.tail), &program.secrets);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(count)..].iter();
        last.map(|line| readable(line.trim_end().as_bytes(), LINE_BYTES)).collect()
    }
}

fn answer_file(program: &Program) -> Option<&Path> {
    if let Answer::File(path) = &program.answer { Some(path) } else { None }
}

/// What tells one writing of a file from another.
fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// The answer in short. A file must be this trial's: one that was there before and is as it was is no answer.
fn answered(program: &Program, out: Heard, before: Option<Option<(u64, u64, i64, i64)>>) -> Result<Answered, String> {
    let heard = match &program.answer {
        Answer::None => return Ok(Answered::default()),
        Answer::Stdout => out,
        Answer::File(path) => {
            let no_answer = |why: &str| format!("--answer {}: {why}", path.display());
            let meta = fs::metadata(path).map_err(|error| no_answer(&error.to_string()))?;
            if !meta.is_file() {
                return Err(no_answer("is no file"));
            }
            if before.flatten().is_some_and(|before| identity(path) == Some(before)) {
                return Err(no_answer("is as it was before: the command has not written it"));
            }
            File::open(path).and_then(Heard::of).map_err(|error| no_answer(&error.to_string()))?
        }
    };
    let ends = heard.last(1, program).pop().unwrap_or_default();
    Ok(Answered { sha256: Some(heard.sha256), bytes: heard.bytes, ends })
}
