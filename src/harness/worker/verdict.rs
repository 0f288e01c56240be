//! The verdict of a trial: the end state, read back and compared with the expected state.

use super::Early;
use crate::harness::child::tell;
use crate::harness::oracle::{self, Compared, Played};
use crate::harness::task::{Event, TrialTask};
use crate::jobs::{EndState, JobKind};
use crate::model::record::{Answered, Verdict};
use crate::stores::{Adapter, Role, Store};

/// Tells the verdict on what a store holds that no client of this process filled.
pub(super) fn compare(trial: &TrialTask, adapter: &Adapter, kind: &JobKind, store: &dyn Store) -> Result<(), Early> {
    tell_verdict(judge(trial, adapter, kind, store, oracle::TrialCounts::default(), &[])?);
    Ok(())
}

pub(super) fn tell_verdict(compared: Compared) {
    tell(&Event::Verdict(compared.verdict, compared.wrong_key));
}

/// Reads the end state back through a fresh session and compares it with the expected state.
pub(super) fn judge(
    trial: &TrialTask,
    adapter: &Adapter,
    kind: &JobKind,
    store: &dyn Store,
    asked: oracle::TrialCounts,
    played: &[Played],
) -> Result<Compared, Early> {
    let read_only = trial.job.load.as_ref().is_some_and(|load| load.read_only);
    if read_only || adapter.role == Role::Null {
        let unchecked = if read_only { Verdict::Answered(Answered::default()) } else { Verdict::Baseline };
        return Ok(Compared { verdict: unchecked, wrong_key: None });
    }
    let heard = |keys| tell(&Event::Verifying(keys));
    let compared = match kind.left_by(&trial.job) {
        EndState::Versions => oracle::versions(&trial.job, played, store, heard),
        EndState::Recorded => oracle::recorded(&trial.expected, trial.verify, asked, store, heard),
        end_state => oracle::compare(&trial.expected, trial.verify, end_state, store, heard),
    };
    compared.map_err(Early::Failed)
}
