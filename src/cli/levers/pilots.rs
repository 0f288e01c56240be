//! What pilots decide before anything is measured: the value of each lever, how many levers there is time for, and the
//! size of the job.

use std::time::Duration;

use anyhow::{Result, anyhow};

use super::GAINS;
use super::choices::{Ground, Lever, LeverValue};
use super::parts::LeverSession;
use crate::cli::{Usage, complain, foretold};
use crate::harness::plan::{Chosen, Plan};
use crate::harness::trial::Bench;
use crate::model::effort::{Blocks, CLAIM_BLOCKS};
use crate::model::levers::{TriedValue, UntriedLever};
use crate::model::trial::Data;
use crate::model::units::{seconds, thousands};
use crate::scheduler::gated::Gates;
use crate::scheduler::pilot::{self, Freedom};
use crate::scheduler::values::{self, PilotTime};
use crate::stats::levers::{self as stats, LeverSet};

/// The job of the first pilot, in units, and how long one of the next ones should take.
const FIRST_UNITS: u64 = 250;
const TRIAL_S: f64 = 0.5;
/// Trials of each value, and the share of what is left that they take at most: below that they are fewer.
const TRIALS: u32 = 3;
const VALUES: f64 = 0.2;
/// The job of the blocks may be so much smaller than that of the pilot, where there is no time for more.
const SMALLER: f64 = 0.5;
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
    left_out: &mut Vec<UntriedLever>,
) -> Result<(Vec<Lever>, PilotTimes)> {
    let mut gates = Gates::new(session.end.left() / REPEATED);
    let small = |units: u64, chosen: Vec<Chosen>| {
        let mut small = Plan { chosen, blocks: Blocks::exactly(1), ..plan.clone() };
        small.job.units = plan.kind.map(|_| units);
        small
    };
    // A program of the user's is as large as it is.
    let most = plan.job.units.unwrap_or(ground.kind.map_or(1, |kind| kind.default_units)).max(1);
    let first = FIRST_UNITS.min(most);
    let place = (session.scratch, session.interrupt);
    let once = values::times(&small(first, vec![ground.base().clone()]), 1, place, &mut gates)?.remove(0);
    let factor = once.job_s.map_or(1.0, |took_s| TRIAL_S / took_s.max(1e-4));
    let units = ((first as f64 * factor) as u64).clamp(first, most);
    let size = ground.kind.map_or(String::new(), |kind| format!(" of {} {}s", thousands(units), kind.unit));
    complain(&format!("kvfair: a pilot{size} on each lever"));
    let mut chosen = vec![ground.base().clone()];
    for lever in &levers {
        for value in &lever.values {
            let one = Lever { values: vec![value.clone()], ..lever.clone() };
            let mut with = ground.with(&[one], LeverSet::of([0]));
            with.target.label = format!("{} with {}", with.target.label, value.words);
            chosen.push(with);
        }
    }
    let trial_s = once.all_s + once.job_s.map_or(0.0, |job_s| job_s * (units as f64 / first as f64 - 1.0));
    let round_s = trial_s * chosen.len() as f64;
    // A trial of the blocks takes no less than this one.
    fits(session, ground, Duration::from_secs_f64(round_s), once.all_s)?;
    let trials = trials_in(session.end.left().mul_f64(VALUES), round_s);
    let mut rest = values::times(&small(units, chosen), trials, place, &mut gates)?.into_iter();
    let base = rest.next().unwrap_or_default();
    let mut best: Vec<(Lever, PilotTime)> = levers.into_iter().map(|lever| with_its_best(lever, &mut rest)).collect();
    // Where base cannot do it, that is told of all.
    let (out, mut best) = match base.cannot {
        None => best.drain(..).partition(|(_, time)| time.cannot.is_some()),
        Some(_) => (Vec::new(), best),
    };
    left_out.extend(out.into_iter().map(|(Lever { name, .. }, time): (Lever, PilotTime)| UntriedLever {
        name,
        reason: first_line(&time.cannot.unwrap_or_default()),
    }));
    best.sort_by(|one, other| took_s(&one.1).total_cmp(&took_s(&other.1)));
    let (levers, alone) = best.into_iter().unzip();
    Ok((levers, PilotTimes { base, alone }))
}

/// What did not finish is the slowest.
fn took_s(time: &PilotTime) -> f64 {
    time.job_s.unwrap_or(f64::MAX)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

/// So many trials of each value, where all of them once take so long.
fn trials_in(time: Duration, round_s: f64) -> u32 {
    ((time.as_secs_f64() / round_s.max(1e-9)) as u32).clamp(1, TRIALS)
}

/// The lever with its best value first; of one value nothing is told.
fn with_its_best(mut lever: Lever, times: &mut impl Iterator<Item = PilotTime>) -> (Lever, PilotTime) {
    let mut timed: Vec<_> = lever.values.drain(..).zip(times).collect();
    if timed.len() > 1 {
        let told =
            |(value, time): &(LeverValue, PilotTime)| TriedValue { change: value.words.clone(), took_s: time.job_s };
        lever.tried = timed.iter().map(told).collect();
    }
    timed.sort_by(|one, other| took_s(&one.1).total_cmp(&took_s(&other.1)));
    let time = timed[0].1.clone();
    lever.values = timed.into_iter().map(|(value, _)| value).collect();
    (lever, time)
}

/// Refuses a budget in which not even one lever can be claimed to do anything: `first` comes before its blocks, whose
/// trials take so long.
fn fits(session: &LeverSession<'_>, ground: &Ground<'_>, first: Duration, trial_s: f64) -> Result<()> {
    let (budget, is_over) = (session.budget, session.end.left().is_zero());
    // A pilot that was cut off would have taken longer still.
    let trial_s = if is_over { trial_s.max(budget.as_secs_f64()) } else { trial_s };
    let blocks = ground.args.how.blocks.map_or(CLAIM_BLOCKS, |blocks| blocks.min(CLAIM_BLOCKS));
    let of_one = Duration::from_secs_f64(takes_s(LeverSet::of([0]), 1, blocks, trial_s) / GAINS);
    let past = session.budget.saturating_sub(session.end.left());
    if past + first + of_one <= session.budget {
        return Ok(());
    }
    let needed_s = tens((past + first + of_one).as_secs_f64());
    let what = format!("--budget: {:.0} s have no time for {blocks} blocks of one lever", budget.as_secs_f64());
    let at_hand = format!("a trial takes {} s", seconds(trial_s));
    Err(anyhow!(Usage(format!("{what}: {at_hand}\nhint: --budget {needed_s}s would do"))))
}

/// As many levers as there is time for, those that gain least left out.
pub fn that_fit(
    session: &LeverSession<'_>,
    ground: &Ground<'_>,
    (levers, tried): (Vec<Lever>, &PilotTimes),
    together: impl Fn(LeverSet) -> LeverSet,
    left_out: &mut Vec<UntriedLever>,
) -> Result<Vec<Lever>> {
    let may_be_smaller = ground.plan.job.units.is_none() && matches!(ground.plan.job.data, Data::Recipe { .. });
    let smaller = if may_be_smaller { SMALLER } else { 1.0 };
    let of_trials = [&tried.base].into_iter().chain(&tried.alone);
    let trials_s: Vec<f64> = of_trials.map(|time| time.all_s - time.job_s.unwrap_or(0.0) * (1.0 - smaller)).collect();
    let trial_s = trials_s.iter().sum::<f64>() / trials_s.len() as f64;
    fits(session, ground, Duration::ZERO, trial_s)?;
    let time = session.end.left().mul_f64(GAINS);
    let most = levers.len().min(LEVERS_MAX);
    let count = count_in(time, trial_s, most, ground.args.how.blocks, together);
    let mut levers = levers;
    for lever in levers.split_off(count.min(levers.len())) {
        let reason =
            "not enough time, and in a pilot it gained less than the others: give a longer --budget".to_string();
        left_out.push(UntriedLever { name: lever.name, reason });
    }
    Ok(levers)
}

/// How many of the first levers fit into this time, by the blocks that they need and what a trial takes: one at least.
fn count_in(
    time: Duration,
    trial_s: f64,
    most: usize,
    blocks: Option<u32>,
    together: impl Fn(LeverSet) -> LeverSet,
) -> usize {
    let takes_s = |count: usize| {
        let all = together(LeverSet::of(0..count));
        takes_s(all, count, blocks.unwrap_or(stats::needed_blocks(count, all) as u32), trial_s)
    };
    (1..=most).rev().find(|count| takes_s(*count) <= time.as_secs_f64()).unwrap_or(1)
}

/// What so many blocks of so many levers take: two targets are run twice in each, and pilots of the job's size take
/// about as long as one block.
fn takes_s(all: LeverSet, levers: usize, blocks: u32, trial_s: f64) -> f64 {
    (stats::sets(levers, all).len() + 2) as f64 * f64::from(blocks + 1) * trial_s
}

/// Seconds as they are typed: whole tens, above these.
fn tens(seconds: f64) -> u64 {
    (seconds / 10.0).ceil() as u64 * 10
}

/// The job's size: by a pilot where the data is made and none was asked for; else it is said how long it takes.
pub fn size(session: &LeverSession<'_>, ground: &Ground<'_>, plan: &mut Plan, time: Duration) -> Result<()> {
    if plan.kind.is_none() {
        return Ok(());
    }
    let may_size = plan.job.units.is_none() && matches!(plan.job.data, Data::Recipe { .. });
    if may_size {
        return size_at_most(session, plan, time, None);
    }
    let units = match plan.job.units {
        Some(units) => units,
        None => Bench::data_of(plan, session.scratch, session.interrupt)?[0].summary.stream.units,
    };
    let mut gates = Gates::new(time / REPEATED);
    let place = (session.scratch, session.interrupt);
    let foreseen = pilot::foresee(plan, &[units], time, place, &mut gates)?;
    let apart = session.budget.saturating_sub(time);
    foretold::foretell(plan, &foreseen, (time, apart), ground.args.how.blocks.is_none());
    Ok(())
}

/// By a pilot, and no larger than `most`.
pub fn size_at_most(session: &LeverSession<'_>, plan: &mut Plan, time: Duration, most: Option<u64>) -> Result<()> {
    let unit = plan.kind.map_or("unit", |kind| kind.unit);
    let mut tell = |units| complain(&format!("kvfair: a pilot of {} {unit}s on each target", thousands(units)));
    let mut gates = Gates::new(time / REPEATED);
    let (scratch, interrupt) = (session.scratch, session.interrupt);
    let freedom = Freedom { only_quick: false, fewer_blocks: false, most };
    let foreseen = pilot::fit_into(time, plan, freedom, scratch, interrupt, (&mut gates, &mut tell))?;
    foretold::foretell(plan, &foreseen, (time, session.budget.saturating_sub(time)), false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a budget once values were tried.
    fn left_of(budget_s: u64) -> Duration {
        Duration::from_secs(budget_s).mul_f64(1.0 - VALUES).mul_f64(GAINS)
    }

    #[test]
    fn three_minutes_have_time_for_two_levers_and_more_time_for_more() {
        let together = |all| all;
        let count = |budget_s, trial_s| count_in(left_of(budget_s), trial_s, 8, None, together);
        assert!(count(180, 0.5) >= 2 && count(180, 1.0) >= 2, "{} {}", count(180, 0.5), count(180, 1.0));
        assert!(count(900, 1.0) > count(180, 1.0));
        assert_eq!(count(10, 5.0), 1, "one at least");
    }

    /// The blocks that are planned fit into the share of the time that they have.
    #[test]
    fn an_advice_is_planned_within_two_minutes() {
        let alone = |_| LeverSet::BASE;
        for trial_s in [0.1, 0.3, 0.6, 1.0, 2.0] {
            let count = count_in(left_of(120), trial_s, 12, None, alone);
            let blocks = stats::needed_blocks(count, LeverSet::BASE) + 1;
            let planned_s = (stats::sets(count, LeverSet::BASE).len() + 2) as f64 * blocks as f64 * trial_s;
            assert!(count == 1 || planned_s <= 120.0 * GAINS, "{count} levers of {trial_s} s take {planned_s} s");
        }
        assert!(count_in(left_of(120), 0.5, 12, None, alone) >= 3);
        assert_eq!(count_in(left_of(120), 0.1, 12, Some(4), alone), 12);
    }

    #[test]
    fn values_are_tried_three_times_or_as_often_as_there_is_time_for() {
        assert_eq!([1.0, 8.0, 15.0, 90.0].map(|round_s| trials_in(Duration::from_secs(24), round_s)), [3, 3, 1, 1]);
    }
}
