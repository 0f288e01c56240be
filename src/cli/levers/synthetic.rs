//! The same levers on set/get alone: what a benchmark of requests alone would say of them, beside what the job says.

use std::time::Duration;

use anyhow::Result;

use super::choices::{Ground, Lever};
use super::parts::LeverSession;
use super::{labelled, pilots};
use crate::cli::refusals::{self, Intent};
use crate::cli::{complain, load};
use crate::harness::plan::{Chosen, Plan};
use crate::jobs::{self, JobKind};
use crate::model::effort::Blocks;
use crate::model::levers::LeverPart;
use crate::model::trial::{Data, JobSettings, Seeds, Verify, Via};
use crate::scheduler::rounds::{Ended, RunEnd};
use crate::stats::levers::LeverSet;

/// The job whose answer stands beside that of the user's job.
const JOB: &str = "getset";
/// It is short: few records, and so many requests at most.
const RECORDS: u64 = 10_000;
const REQUESTS: u64 = 10_000;
const BLOCKS: u32 = 6;
/// The share of the whole run that it takes at most, and of what is left.
const OF_ALL: f64 = 0.15;
const OF_REST: f64 = 0.5;

/// Blocks of base and of each lever alone that such a job can have. Nothing where the user's job is that job, or where
/// it can have none of them.
pub fn synthetic(
    session: &mut LeverSession<'_>,
    ground: &Ground<'_>,
    plan: &Plan,
    (levers, all): (&[Lever], LeverSet),
) -> Result<Ended> {
    let whole = Ended::Stopped(RunEnd::AllBlocks);
    let time = time_of(session.budget, session.end.left());
    let Some(mut plan) = plan_of(ground, plan, levers, all).filter(|_| !time.is_zero()) else { return Ok(whole) };
    complain(&format!("kvfair: the same levers on the job {JOB}"));
    pilots::size_at_most(session, &mut plan, time, Some(REQUESTS))?;
    session.blocks(&[plan], time_of(session.budget, session.end.left()).min(time))
}

fn time_of(budget: Duration, left: Duration) -> Duration {
    budget.mul_f64(OF_ALL).min(left.mul_f64(OF_REST))
}

fn plan_of(ground: &Ground<'_>, plan: &Plan, levers: &[Lever], all: LeverSet) -> Option<Plan> {
    let kind = jobs::find(JOB)?;
    if ground.kind.is_none_or(|own| own.name == kind.name) {
        return None;
    }
    let alone = (0..levers.len()).filter(|place| levers[*place].is_of_any_job()).map(|place| LeverSet::of([place]));
    let asked = |set| Chosen { via: Via::default(), ..labelled(ground, levers, set, all) };
    let may = |chosen: &Chosen| refusals::why(chosen, &Intent::Job(ground.args, kind)).is_none();
    let chosen: Vec<Chosen> = [LeverSet::BASE].into_iter().chain(alone).map(asked).filter(may).collect();
    let has_base = chosen.first().is_some_and(|first| first.changed.is_empty());
    let run = plan.levers.as_ref().map(|(run, _)| (run.clone(), LeverPart::Synthetic));
    (has_base && chosen.len() > 1).then(|| Plan {
        chosen,
        kind: Some(kind),
        job: job_of(kind, plan.clients),
        verify: Verify::Full,
        blocks: Blocks::exactly(ground.args.how.blocks.unwrap_or(BLOCKS).min(BLOCKS)),
        seeds: Seeds { data: Vec::new(), ..plan.seeds.clone() },
        levers: run,
        left_out: Vec::new(),
        piloted: Vec::new(),
        ..plan.clone()
    })
}

/// As `kvfair run getset` has it, with fewer records and as many clients as the user's job.
fn job_of(kind: &JobKind, clients: u32) -> JobSettings {
    JobSettings {
        name: kind.name.to_string(),
        data: Data::Recipe { name: kind.recipe.to_string(), seed: kind.default_seed },
        format: String::new(),
        read_as: None,
        units: None,
        skip_bad: 0,
        via: Via::default(),
        split: Default::default(),
        load: load::usual(kind, RECORDS, clients),
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_a_small_share_of_the_run_and_leaves_time_for_the_rest() {
        let seconds = Duration::from_secs;
        assert_eq!(time_of(seconds(900), seconds(600)), seconds(135));
        assert_eq!(time_of(seconds(180), seconds(20)), seconds(10));
        assert!(time_of(seconds(180), seconds(0)).is_zero());
    }
}
