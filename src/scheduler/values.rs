//! What a trial of each target takes, by a few small trials: enough to choose among values, and no result.

use std::path::Path;

use anyhow::Result;

use super::gated::{GatedTrial, Gates};
use crate::harness::plan::Plan;
use crate::harness::signals::Interrupt;
use crate::harness::trial::Bench;
use crate::model::record::Outcome;
use crate::stats::sample::Sample;

/// What one target took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PilotTime {
    /// The median of its trials that were right, in seconds; none where one was not.
    pub job_s: Option<f64>,
    /// One trial with starting, checking and stopping, in seconds: the mean.
    pub all_s: f64,
    /// Why it cannot do the job at all: a limit of the store, an op that it lacks, a server that does not start so.
    pub cannot: Option<String>,
}

/// So many trials of each of the plan's targets, in their order in the plan. A target that fails is not tried again.
pub fn times(
    plan: &Plan,
    trials: u32,
    (scratch, interrupt): (&Path, &Interrupt),
    gates: &mut Gates,
) -> Result<Vec<PilotTime>> {
    let bench = Bench::set_up(plan, scratch, interrupt)?;
    let mut took: Vec<Took> = vec![Default::default(); plan.chosen.len()];
    for block in 1..=trials {
        for (position, place) in (1..).zip(plan.order(block, plan.chosen.len())) {
            let seen = &mut took[place];
            if seen.failed || plan.is_over() {
                continue;
            }
            let chosen = &plan.chosen[place];
            let tried = gates.trial(&bench, chosen, (block, position), None, &mut |_, _| Ok(()))?;
            let GatedTrial { record, took, .. } = tried;
            seen.failed = record.outcome != Outcome::Finished || !record.is_right();
            seen.jobs_s.extend(record.took_s());
            seen.all_s.push(took.as_secs_f64());
            seen.cannot = cannot(plan, record.outcome);
        }
    }
    let time = |Took { jobs_s, all_s, failed, cannot }: Took| PilotTime {
        job_s: Sample::new(jobs_s).filter(|_| !failed).map(|sample| sample.median()),
        all_s: all_s.iter().sum::<f64>() / all_s.len().max(1) as f64,
        cannot,
    };
    Ok(took.into_iter().map(time).collect())
}

/// What was seen of one target so far.
#[derive(Clone, Default)]
struct Took {
    jobs_s: Vec<f64>,
    all_s: Vec<f64>,
    failed: bool,
    cannot: Option<String>,
}

/// A user's program that fails cannot do it either: nobody knows why it does.
fn cannot(plan: &Plan, outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused { reason } | Outcome::Missing { reason, .. } => Some(reason),
        Outcome::Failed { reason } if plan.kind.is_none() => Some(reason),
        _ => None,
    }
}
