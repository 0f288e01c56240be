//! What pilots decide before anything is measured: the value of each lever, how many levers there is time for, and the
//! size of the job.

use std::time::Duration;

use anyhow::Result;

use super::choices::{Ground, Lever, LeverValue};
use super::parts::LeverSession;
use crate::cli::{complain, foretold};
use crate::harness::plan::{Chosen, Plan};
use crate::harness::trial::Bench;
use crate::model::effort::Blocks;
use crate::model::levers::{TriedValue, UntriedLever};
use crate::model::trial::Data;
use crate::model::units::thousands;
use crate::scheduler::gated::Gates;
use crate::scheduler::pilot;
use crate::scheduler::values::{self, PilotTime};
use crate::stats::levers::{self as stats, LeverSet};

/// The job of the first pilot, in units, and how long one of the next ones should take.
const FIRST_UNITS: u64 = 250;
const TRIAL_S: f64 = 0.5;
/// Trials of each value.
const TRIALS: u32 = 3;
/// The share of what is left that the blocks of gains are planned to take.
const PLANNED: f64 = 0.5;
/// Repeats of pilots that the machine disturbed take such a part of the time at the most.
const REPEATED: u32 = 20;
/// A lever set is made of so many at most.
const LEVERS_MAX: usize = 30;

/// What the pilot of values saw.
pub struct PilotTimes {
    /// What base and each lever with its best value took.
    base: PilotTime,
    alone: Vec<PilotTime>,
}

/// Each lever with the value that was best, the lever that gains most first.
pub fn best_values(
    session: &mut LeverSession<'_>,
    ground: &Ground<'_>,
    plan: &Plan,
    levers: Vec<Lever>,
) -> Result<(Vec<Lever>, PilotTimes)> {
    let mut gates = Gates::new(session.end.left() / REPEATED);
    let small = |units: u64, chosen: Vec<Chosen>| {
        let mut small = Plan { chosen, blocks: Blocks::exactly(1), ..plan.clone() };
        small.job.units = Some(units);
        small
    };
    let most = plan.job.units.unwrap_or(ground.kind.default_units).max(1);
    let first = FIRST_UNITS.min(most);
    let place = (session.scratch, session.interrupt);
    let once = values::times(&small(first, vec![ground.base().clone()]), 1, place, &mut gates)?;
    let factor = once[0].job_s.map_or(1.0, |took_s| TRIAL_S / took_s.max(1e-4));
    let units = ((first as f64 * factor) as u64).clamp(first, most);
    let unit = ground.kind.unit;
    complain(&format!("kvfair: a pilot of {} {unit}s on each lever", thousands(units)));
    let mut chosen = vec![ground.base().clone()];
    for lever in &levers {
        for value in &lever.values {
            let one = Lever { values: vec![value.clone()], ..lever.clone() };
            let mut with = ground.with(&[one], LeverSet::of([0]));
            with.target.label = format!("{} with {}", with.target.label, value.words);
            chosen.push(with);
        }
    }
    let times = values::times(&small(units, chosen), TRIALS, place, &mut gates)?;
    let mut rest = times[1..].iter().copied();
    let mut best: Vec<(Lever, PilotTime)> = levers.into_iter().map(|lever| with_its_best(lever, &mut rest)).collect();
    let took_s = |time: &PilotTime| time.job_s.unwrap_or(f64::MAX);
    best.sort_by(|one, other| took_s(&one.1).total_cmp(&took_s(&other.1)));
    let (levers, alone) = best.into_iter().unzip();
    Ok((levers, PilotTimes { base: times[0], alone }))
}

/// The lever with its best value first; of one value nothing is told.
fn with_its_best(mut lever: Lever, times: &mut impl Iterator<Item = PilotTime>) -> (Lever, PilotTime) {
    let mut timed: Vec<_> = lever.values.drain(..).zip(times).collect();
    if timed.len() > 1 {
        let told =
            |(value, time): &(LeverValue, PilotTime)| TriedValue { change: value.words.clone(), took_s: time.job_s };
        lever.tried = timed.iter().map(told).collect();
    }
    let took_s = |time: &PilotTime| time.job_s.unwrap_or(f64::MAX);
    timed.sort_by(|one, other| took_s(&one.1).total_cmp(&took_s(&other.1)));
    let time = timed[0].1;
    lever.values = timed.into_iter().map(|(value, _)| value).collect();
    (lever, time)
}

/// As many levers as there is time for, those that gain least left out.
pub fn that_fit(
    session: &LeverSession<'_>,
    ground: &Ground<'_>,
    (levers, tried): (Vec<Lever>, &PilotTimes),
    together: impl Fn(LeverSet) -> LeverSet,
    left_out: &mut Vec<UntriedLever>,
) -> Result<Vec<Lever>> {
    let time_s = session.end.left().as_secs_f64() * PLANNED;
    let trials: f64 = tried.alone.iter().map(|time| time.all_s).sum::<f64>() + tried.base.all_s;
    let mean_s = trials / (tried.alone.len() + 1) as f64;
    let takes_s = |count: usize| {
        let all = together(LeverSet::of(0..count));
        let needed = stats::needed_blocks(count, all) as u32;
        let blocks = ground.args.how.blocks.unwrap_or(needed) + 1;
        // Two targets are run twice.
        (stats::sets(count, all).len() + 2) as f64 * f64::from(blocks) * mean_s
    };
    let most = levers.len().min(LEVERS_MAX);
    let count = (1..=most).rev().find(|count| takes_s(*count) <= time_s).unwrap_or(1);
    let mut levers = levers;
    for lever in levers.split_off(count.min(levers.len())) {
        let reason =
            "no time for it, and a pilot saw less of it than of the others: give a longer --budget".to_string();
        left_out.push(UntriedLever { name: lever.name, reason });
    }
    Ok(levers)
}

/// The job's size: by a pilot where the data is made and none was asked for; else it is said how long it takes.
pub fn size(session: &LeverSession<'_>, ground: &Ground<'_>, plan: &mut Plan, time: Duration) -> Result<()> {
    let may_size = plan.job.units.is_none() && matches!(plan.job.data, Data::Recipe { .. });
    if may_size {
        return fitted(session, plan, time);
    }
    let units = match plan.job.units {
        Some(units) => units,
        None => Bench::data_of(plan, session.scratch, session.interrupt)?[0].summary.stream.units,
    };
    let mut gates = Gates::new(time / REPEATED);
    let place = (session.scratch, session.interrupt);
    let foreseen = pilot::foresee(plan, &[units], time, place, &mut gates)?;
    foretold::foretell(plan, &foreseen, time, ground.args.how.blocks.is_none());
    Ok(())
}

/// By a pilot, and no larger than `most`.
pub fn size_at_most(session: &LeverSession<'_>, plan: &mut Plan, time: Duration, most: Option<u64>) -> Result<()> {
    fitted(session, plan, time)?;
    if let (Some(units), Some(most)) = (plan.job.units, most) {
        plan.job.units = Some(units.min(most));
    }
    Ok(())
}

fn fitted(session: &LeverSession<'_>, plan: &mut Plan, time: Duration) -> Result<()> {
    let unit = plan.kind.map_or("unit", |kind| kind.unit);
    let mut tell = |units| complain(&format!("kvfair: a pilot of {} {unit}s on each target", thousands(units)));
    let mut gates = Gates::new(time / REPEATED);
    let (scratch, interrupt) = (session.scratch, session.interrupt);
    let foreseen = pilot::fit_into(time, plan, false, scratch, interrupt, (&mut gates, &mut tell))?;
    foretold::foretell(plan, &foreseen, time, false);
    Ok(())
}
