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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PilotTime {
    /// The median of its trials that were right, in seconds; none where one was not.
    pub job_s: Option<f64>,
    /// One trial with starting, checking and stopping, in seconds: the mean.
    pub all_s: f64,
}

/// So many trials of each of the plan's targets, in their order in the plan. A target that fails is not tried again.
pub fn times(
    plan: &Plan,
    trials: u32,
    (scratch, interrupt): (&Path, &Interrupt),
    gates: &mut Gates,
) -> Result<Vec<PilotTime>> {
    let bench = Bench::set_up(plan, scratch, interrupt)?;
    let mut took: Vec<(Vec<f64>, f64, u32, bool)> = vec![Default::default(); plan.chosen.len()];
    for block in 1..=trials {
        for (position, place) in (1..).zip(plan.order(block, plan.chosen.len())) {
            let (jobs_s, all_s, count, failed) = &mut took[place];
            if *failed || plan.is_over() {
                continue;
            }
            let chosen = &plan.chosen[place];
            let tried = gates.trial(&bench, chosen, (block, position), None, &mut |_, _| Ok(()))?;
            let GatedTrial { record, took, .. } = tried;
            *failed = record.outcome != Outcome::Finished || !record.is_right();
            jobs_s.extend(record.took_s());
            *all_s += took.as_secs_f64();
            *count += 1;
        }
    }
    let time = |(jobs_s, all_s, count, failed): (Vec<f64>, f64, u32, bool)| PilotTime {
        job_s: Sample::new(jobs_s).filter(|_| !failed).map(|sample| sample.median()),
        all_s: all_s / f64::from(count.max(1)),
    };
    Ok(took.into_iter().map(time).collect())
}
