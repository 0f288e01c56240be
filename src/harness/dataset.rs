//! A job's data with the expected state about it: both made before anything is started, once for each seed of a run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Result, bail};

use super::child::Child;
use super::input::{self, PreparedInput};
use super::machine;
use super::oracle::{OracleTask, Summary};
use super::plan::Plan;
use super::signals::{self, Interrupt};
use super::task::{Event, Task};
use super::timing::Timer;
use crate::jobs;
use crate::model::record::Stream;
use crate::model::trial::{Data, JobSettings, Verify};
use crate::model::units::{bytes, thousands};

/// How soon a Ctrl-C is seen.
const LOOK: Duration = Duration::from_millis(20);

/// The process that computes the expected state may take as long as a trial, or so long where that is more: a short
/// time-out shows how far a store comes.
const TIMEOUT_MIN: Duration = Duration::from_secs(30);

/// What the process that computes the expected state may take.
#[derive(Clone, Copy)]
struct Bounds {
    timeout: Duration,
    /// "by --timeout", or that this one is shorter.
    by: &'static str,
    /// Nothing where it is not known what is free.
    memory_bytes: Option<u64>,
}

impl Bounds {
    fn of(plan: &Plan) -> Bounds {
        let by = match plan.timeout < TIMEOUT_MIN {
            true => "the least that it gets whatever --timeout says",
            false => "by --timeout",
        };
        let memory_bytes = machine::own_memory_bytes(machine::MEMORY_SHARE);
        Bounds { timeout: plan.timeout.max(TIMEOUT_MIN), by, memory_bytes }
    }
}

/// What the trials of a block have in common: all targets get the same.
#[derive(Clone)]
pub struct DataSet {
    /// The job with this data.
    pub job: JobSettings,
    /// Where the data lies.
    pub input: PathBuf,
    /// Where the expected state lies.
    pub expected: PathBuf,
    pub summary: Summary,
    bounds: Bounds,
}

/// The same of a job whose data has this summary.
pub fn longest_answer(job: &JobSettings, summary: &Summary) -> Option<u64> {
    /// What may stand around each value of an answer, its key included.
    const AROUND: u64 = 1 << 10;
    match &job.load {
        Some(load) if load.read_only => None,
        Some(load) => Some(u64::from(load.values_at_once()).saturating_mul(load.longest_value() + AROUND)),
        // A protocol may need several bytes for each of a name or number.
        None => Some(summary.data_bytes.max(summary.longest_value).saturating_mul(4)),
    }
}

impl DataSet {
    /// Bytes of the longest answer that a right store can give in the job: of as many of its largest values as it may
    /// have to tell at once, or of all that its data leaves behind, or of the largest value on the way there. Nothing
    /// where others have written the values.
    pub fn longest_answer(&self) -> Option<u64> {
        longest_answer(&self.job, &self.summary)
    }

    /// Prepares the data and computes the expected state, in a process of its own.
    pub fn prepare(plan: &Plan, job: JobSettings, scratch: &Path, interrupt: &Interrupt) -> Result<DataSet> {
        // Which version of a record is right depends on who may have set it.
        let (seed, units, clients) = (job.seed(), job.units.unwrap_or(0), plan.clients);
        let (order, queries) = (job.ngrams.order, job.fans.queries);
        let expected = scratch.join(format!("expected-{seed}-{units}-{order}-{queries}-{clients}"));
        let Some(kind) = plan.kind else {
            let (input, summary, bounds) = (PathBuf::new(), run_of_a_program(), Bounds::of(plan));
            return Ok(DataSet { job, input, expected, summary, bounds });
        };
        let PreparedInput { path: input, skipped } = input::prepare(kind, &job, scratch, interrupt)?;
        let mut set = DataSet { job, input, expected, summary: Summary::default(), bounds: Bounds::of(plan) };
        set.summary = set.ask_oracle(plan.verify, None, scratch, interrupt)?;
        if matches!(set.job.data, Data::File { .. }) {
            let Stream { units, ops, skipped_lines, .. } = set.summary.stream;
            let unusable = || format!("{} of its lines cannot be used", thousands(skipped_lines));
            let nothing = || "nothing in it to ask a store".to_string();
            let what = (skipped_lines > units).then(unusable).or_else(|| (ops == 0).then(nothing));
            what.map_or(Ok(()), |what| Err(input::explained(kind, &set.job, scratch, interrupt, &what)))?;
        }
        // These were judged when the file was turned into what is read here: a line of it need not be a unit.
        set.summary.stream.skipped_lines += skipped;
        Ok(set)
    }

    /// Replays the job; with a key, to learn what that one should have held.
    pub fn ask_oracle(
        &self,
        verify: Verify,
        explain: Option<Vec<u8>>,
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<Summary> {
        let (job, input, out) = (self.job.clone(), self.input.clone(), self.expected.clone());
        let Bounds { timeout, by, memory_bytes } = self.bounds;
        let timer = Timer::start();
        let task = Task::ExpectedState(OracleTask { job, input, verify, out, explain, memory_bytes });
        let mut child = Child::start(&[], &task, &scratch.join("expected-state.log"))?;
        loop {
            match child.next(LOOK) {
                Ok(Event::ExpectedState(summary)) => return Ok(*summary),
                Ok(Event::Failed(reason)) => bail!(reason),
                Ok(told) => bail!("the process of the expected state said {told:?}"),
                Err(RecvTimeoutError::Timeout) if interrupt.is_set() => bail!(signals::INTERRUPTED),
                Err(RecvTimeoutError::Timeout) if timer.left_of(timeout).is_zero() => {
                    let limit_s = timeout.as_secs();
                    bail!("the expected state was not computed within {limit_s} s, {by}\n{}", self.way_out());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ending = child.ending();
                    if ending.contains(NO_MEMORY) {
                        let share = machine::MEMORY_SHARE * 100.0;
                        let limit = bytes(memory_bytes.unwrap_or_default());
                        bail!(
                            "the expected state needs more memory than the {limit} that it may have here ({share:.0} % \
                             of what is free, or what `ulimit -d` allows)\n{}",
                            self.way_out()
                        );
                    }
                    bail!(self.died(&ending, child.was_killed()));
                }
            }
        }
    }

    /// What is said where the process of the expected state did not come to its end.
    fn died(&self, ending: &str, was_killed: bool) -> String {
        let (job, input) = (&self.job.name, self.input.display());
        let (why, hint) = match was_killed {
            true => (", as the kernel does where memory is short", self.way_out()),
            false => ("", "hint: this is an error of kvfair: please report it".to_string()),
        };
        format!(
            "the expected state of {job} could not be computed from {input}, before any store was asked: its process \
             died: {ending}{why}\n{hint}"
        )
    }

    /// What makes the expected state smaller.
    fn way_out(&self) -> String {
        let scale = jobs::find(&self.job.name).map_or("requests", |kind| kind.scale);
        format!(
            "hint: fewer of them (--{scale} N), --verify sample, or a --timeout of more than {} s",
            TIMEOUT_MIN.as_secs()
        )
    }
}

/// What Rust says of memory that it does not get, before it ends the process.
const NO_MEMORY: &str = "memory allocation of ";

/// What is known of a program of the user's before it is run: its run is one unit, and taken as one op.
fn run_of_a_program() -> Summary {
    let stream = Stream { unit: "run".to_string(), units: 1, ops: 1, ..Stream::default() };
    Summary { stream, ..Summary::default() }
}
