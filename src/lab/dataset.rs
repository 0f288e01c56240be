//! A job's data with the truth about it: both made before anything is started, once for each seed of a run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::child::{last_words, listen, spawn_self};
use super::input;
use super::plan::Plan;
use super::process::in_words;
use super::signals::{self, Interrupt};
use super::truth::{Question, Summary};
use crate::words::record::Stream;
use crate::words::trial::{JobSettings, Verify};

/// How soon a Ctrl-C is seen.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process that has closed its mouth may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// What the trials of a block have in common: all targets get the same.
pub struct DataSet {
    /// The job with this data.
    pub job: JobSettings,
    /// Where the data lies.
    pub input: PathBuf,
    /// Where the truth lies.
    pub truth: PathBuf,
    pub summary: Summary,
}

impl DataSet {
    /// Prepares the data and computes the truth, in a process of its own.
    pub fn prepare(plan: &Plan, job: JobSettings, scratch: &Path, interrupt: &Interrupt) -> Result<DataSet> {
        let truth = scratch.join(format!("truth-{}-{}", job.seed(), job.units.unwrap_or(0)));
        let Some(kind) = plan.kind else {
            return Ok(DataSet { job, input: PathBuf::new(), truth, summary: run_of_a_program() });
        };
        let input = input::prepare(kind, &job, scratch, interrupt)?;
        let mut set = DataSet { job, input, truth, summary: Summary::default() };
        set.summary = set.ask_truth(plan.verify, None, scratch, interrupt)?;
        Ok(set)
    }

    /// Replays the job; with a key, to learn what that one should have held.
    pub fn ask_truth(
        &self,
        verify: Verify,
        explain: Option<Vec<u8>>,
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<Summary> {
        let (job, input, out) = (self.job.clone(), self.input.clone(), self.truth.clone());
        let question = Question { job, input, verify, out, explain };
        let log = scratch.join("truth.log");
        let mut child = spawn_self("truth", &log)?;
        let mut pipe = child.child().stdin.take().expect("stdin is piped");
        pipe.write_all(&serde_json::to_vec(&question)?).context("the truth's process does not listen")?;
        drop(pipe);
        let heard = listen::<Result<Summary, String>>(child.child().stdout.take().expect("stdout is piped"));
        loop {
            match heard.recv_timeout(LOOK) {
                Ok(told) => return told.map_err(|reason| anyhow!(reason)),
                Err(RecvTimeoutError::Timeout) if interrupt.is_set() => bail!(signals::INTERRUPTED),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ending = child.wait_at_most(ENDING).map_or_else(|| "is stuck".to_string(), in_words);
                    bail!("the truth could not be computed: its process died: {ending}{}", last_words(&log));
                }
            }
        }
    }
}

/// What is known of a program of the user's before it is run: its run is one unit, and taken as one op.
fn run_of_a_program() -> Summary {
    let stream = Stream { unit: "run".to_string(), units: 1, ops: 1, ..Stream::default() };
    Summary { stream, ..Summary::default() }
}
