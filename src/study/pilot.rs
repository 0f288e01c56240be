//! How large a job fits into a budget: a small block tells what each target costs, and the rest is a rule of three; a
//! larger block follows while that is much more than what was tried.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::controls;
use super::gated::{Gates, Tell, Tried, Unclear};
use crate::lab::plan::{Plan, Took};
use crate::lab::signals::Interrupt;
use crate::lab::timing::Timer;
use crate::lab::trial::Bench;
use crate::words::effort::Blocks;
use crate::words::record::{Outcome, Record};

/// Units of the first pilot's job: enough to see a trial's own cost beside its starting and stopping.
const PILOT_UNITS: u64 = 250;
/// Most of the time of so small a job may be what does not grow with it (threads, first connections, empty caches):
/// what fits is found low, and the next pilot is as large as that.
const PILOTS: usize = 3;
/// A job's time grows a little faster than its units where values grow with it (`fans`, 250 to 10,000 profiles: 1.1).
const GROWTH: f64 = 1.1;
/// The share of what is left that is planned for: trials of the pilot are too short to be trusted to the last second.
const TRUST: f64 = 0.65;

/// A pilot warms the machine up for a job that is up to so many times as large.
const WARMED: u64 = 2;

/// The longest that a store's small trial may take, with starting and stopping, for a place in a look that names none:
/// some twenty targets are looked at six times in a minute.
const QUICK: Duration = Duration::from_millis(1500);

/// What one block of small trials took.
#[derive(Default)]
struct Cost {
    /// Starting, checking and stopping, which do not grow with the job.
    fixed_s: f64,
    /// The job itself, and reading its answers back where there are the more of them the larger it is.
    growing_s: f64,
    /// Stores that took too long, of which one target was tried.
    slow: Vec<&'static str>,
    /// Targets that did not finish, by their labels.
    failed: Vec<String>,
    /// What each of the others took, by label.
    took: Vec<(String, Took)>,
}

impl Cost {
    /// A/A controls are run once more in each block.
    fn add_controls(&mut self, small: &Plan) {
        if !small.twin {
            return;
        }
        let took = |place: usize| controls::by_label(&self.took, &small.chosen[place].target.label);
        let controls: Vec<Took> = controls::choose(small, took, |_| true).into_iter().filter_map(took).collect();
        for took in controls {
            self.growing_s += took.job_s;
            self.fixed_s += (took.all_s - took.job_s).max(0.0);
        }
    }
}

/// Sets the plan's units so that the pilot and the least blocks fit into `budget`, at most the job's default.
///
/// Targets that do not finish a pilot are left in the plan: their rows say why. Where `only_quick` is asked for,
/// stores that are not are taken out of it; says which. What the machine disturbed each time is not called slow:
/// `gates` know it then. `tell` hears of each pilot's units.
pub fn fit_into(
    budget: Duration,
    plan: &mut Plan,
    only_quick: bool,
    scratch: &Path,
    interrupt: &Interrupt,
    (gates, tell): (&mut Gates, &mut dyn FnMut(u64)),
) -> Result<Vec<&'static str>> {
    // A program of the user's is as large as it is.
    let Some(kind) = plan.kind else { return Ok(Vec::new()) };
    let timer = Timer::start();
    let mut tried = PILOT_UNITS.min(kind.default_units);
    tell(tried);
    let longest = only_quick.then_some(QUICK);
    let first = Plan { timeout: longest.unwrap_or(plan.timeout), ..small(plan, tried) };
    let mut cost = block_cost(&first, longest, scratch, interrupt, gates)?;
    let slow = std::mem::take(&mut cost.slow);
    // Something is better than nothing: where all are slow, all stay.
    if plan.chosen.iter().any(|chosen| !slow.contains(&chosen.adapter.name)) {
        plan.chosen.retain(|chosen| !slow.contains(&chosen.adapter.name));
    }
    let fits = |plan: &Plan, cost: &Cost, tried| {
        fit(cost, tried, growth(plan), timer.left_of(budget) / blocks(plan), kind.default_units)
    };
    let (mut units, mut failed) = (fits(plan, &cost, tried), Vec::new());
    for _ in 1..PILOTS {
        // Nobody waits twice for who never comes.
        failed.append(&mut cost.failed);
        let mut larger = small(plan, units);
        larger.chosen.retain(|chosen| !failed.contains(&chosen.target.label));
        if units <= WARMED * tried || larger.chosen.is_empty() {
            break;
        }
        tried = units;
        tell(tried);
        cost = block_cost(&larger, None, scratch, interrupt, gates)?;
        units = fits(plan, &cost, tried);
    }
    plan.piloted = cost.took;
    plan.job.units = Some(units);
    plan.warm = units <= WARMED * tried;
    Ok(slow)
}

/// How long the least blocks of a plan will take whose input has so many units, by a block of small trials.
pub fn foresee(plan: &Plan, units: u64, scratch: &Path, interrupt: &Interrupt, gates: &mut Gates) -> Result<Duration> {
    let small = small(plan, PILOT_UNITS.min(units.max(1)));
    let cost = block_cost(&small, None, scratch, interrupt, gates)?;
    let times = plan.units_of_a_trial(units) as f64 / small.units_of_a_trial(PILOT_UNITS.min(units.max(1))) as f64;
    let growing_s = cost.growing_s * times.powf(growth(plan));
    Ok(Duration::from_secs_f64((cost.fixed_s + growing_s) * f64::from(blocks(plan))))
}

/// The power of a job's units that its time grows with. Requests take as long each, however many there are.
fn growth(plan: &Plan) -> f64 {
    if plan.job.load.is_some() { 1.0 } else { GROWTH }
}

/// The plan with a job of so many units, once.
fn small(plan: &Plan, units: u64) -> Plan {
    let twin = plan.has_controls();
    let mut small = Plan { blocks: Blocks::exactly(1), keep: None, data_seeds: Vec::new(), twin, ..plan.clone() };
    small.job.units = Some(units);
    small
}

/// Blocks that are run at least, the one that is counted nowhere among them.
fn blocks(plan: &Plan) -> u32 {
    plan.blocks.least + 1 - plan.first_block()
}

/// Sets the plan's rates to these hundredths of what its slowest target can do: the lesser of its parts, all clients
/// asking as soon as they are answered, in one trial each. Says what that was.
///
/// Targets that do not finish it have no part in it: their rows will say why. Where the machine disturbed one each
/// time, that is an [`Unclear`].
pub fn rate_by_share(
    shares: &[u32],
    plan: &mut Plan,
    scratch: &Path,
    interrupt: &Interrupt,
    tell: Tell<'_>,
) -> Result<String> {
    let (mut once, clients) = (plan.clone(), plan.clients);
    once.blocks = Blocks::exactly(1);
    once.data_seeds.clear();
    let trials = closed(&once, scratch, interrupt, tell)?;
    if let Some((record, what)) = trials.iter().find_map(|tried| Some((&tried.record, tried.disturbed.as_ref()?))) {
        return Err(Unclear { target: record.target.label.clone(), what: what.clone() }.into());
    }
    let rates = trials.iter().filter_map(|tried| Some((&tried.record.target.label, at_most(&tried.record)?)));
    let slowest = rates.min_by(|one, other| one.1.total_cmp(&other.1));
    let (target, most) = slowest.ok_or_else(|| anyhow!("no target finished the trial that tells how fast it is"))?;
    let load = plan.job.load.as_mut().ok_or_else(|| anyhow!("the job {} has no rates", plan.job.name))?;
    load.rates = shares.iter().map(|&share| rounded(most * f64::from(share) / 100.0)).collect();
    load.rates.dedup();
    let rates: Vec<String> = load.rates.iter().map(|rate| format!("{rate}/s")).collect();
    let clients = if clients == 1 { "1 client".to_string() } else { format!("{clients} clients") };
    Ok(format!("the slowest, {target}, does {}/s with {clients}: {}", rounded(most), rates.join(", ")))
}

/// A trial of each target that is no control, all clients asking as soon as they are answered; and what disturbed it
/// each time that it was run.
pub fn closed(plan: &Plan, scratch: &Path, interrupt: &Interrupt, tell: Tell<'_>) -> Result<Vec<Tried>> {
    let bench = Bench::set_up(plan, scratch, interrupt)?;
    let (mut found, mut gates) = (Vec::new(), Gates::new(Duration::MAX));
    for (position, place) in (1..).zip(plan.order(1, plan.chosen.len())) {
        let chosen = &plan.chosen[place];
        if !chosen.target.control {
            found.push(gates.trial(&bench, chosen, (1, position), None, tell)?);
        }
    }
    Ok(found)
}

/// Requests a second of a trial's slower part; none where it did not finish or was wrong.
pub fn at_most(record: &Record) -> Option<f64> {
    if record.outcome != Outcome::Finished || !record.is_right() {
        return None;
    }
    let parts = record.phases.iter().filter(|phase| !matches!(phase.name.as_str(), "load" | "settle"));
    parts.map(|phase| phase.units as f64 / phase.took_s.max(1e-9)).min_by(f64::total_cmp)
}

/// To two digits, downwards, and at least 1.
fn rounded(rate: f64) -> u64 {
    let whole = rate.max(1.0) as u64;
    let magnitude = 10_u64.pow(whole.ilog10().saturating_sub(1));
    whole / magnitude * magnitude
}

/// What the small trials took of those stores that were quick enough.
fn block_cost(
    small: &Plan,
    longest: Option<Duration>,
    scratch: &Path,
    interrupt: &Interrupt,
    gates: &mut Gates,
) -> Result<Cost> {
    let bench = Bench::set_up(small, scratch, interrupt)?;
    let mut cost = Cost::default();
    for (position, place) in (1..).zip(small.order(1, small.chosen.len())) {
        let chosen = &small.chosen[place];
        if cost.slow.contains(&chosen.adapter.name) {
            continue;
        }
        let Tried { record, took, disturbed } = gates.trial(&bench, chosen, (1, position), None, &mut |_, _| Ok(()))?;
        if disturbed.is_none() && longest.is_some_and(|longest| took > longest) {
            cost.slow.push(chosen.adapter.name);
            continue;
        }
        let growing_s = if record.outcome == Outcome::Finished {
            // Records are as many however many requests there are.
            record.took_s().unwrap_or(0.0) + if small.job.load.is_some() { 0.0 } else { record.checked_s() }
        } else {
            cost.failed.push(record.target.label.clone());
            0.0
        };
        cost.growing_s += growing_s;
        cost.fixed_s += (took.as_secs_f64() - growing_s).max(0.0);
        if let Some(job_s) = record.took_s().filter(|_| record.is_right()) {
            cost.took.push((record.target.label.clone(), Took { job_s, all_s: took.as_secs_f64() }));
        }
    }
    cost.add_controls(small);
    Ok(cost)
}

/// The largest job of which a block takes no longer than is trusted of `block`, rounded down to two digits, where one
/// of `tried` units took so much.
fn fit(cost: &Cost, tried: u64, growth: f64, block: Duration, most: u64) -> u64 {
    let growing_s = (block.as_secs_f64() * TRUST - cost.fixed_s).max(0.0);
    let times = (growing_s / cost.growing_s.max(1e-6)).powf(1.0 / growth);
    let units = (tried as f64 * times).min(most as f64) as u64;
    rounded(units as f64).max(PILOT_UNITS.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_grows_with_what_is_left_but_never_beyond_its_default() {
        let cost = Cost { fixed_s: 1.0, growing_s: 0.5, ..Cost::default() };
        let units = |tried, growth, seconds| fit(&cost, tried, growth, Duration::from_secs(seconds) / 6, 10_000);
        assert_eq!(units(250, GROWTH, 8), 250, "nothing fits: the smallest job there is");
        assert_eq!(units(250, GROWTH, 60), 2_200);
        assert_eq!(units(250, 1.0, 60), 2_700, "requests take as long each");
        assert_eq!(units(500, 1.0, 60), 5_500, "twice as many took as long");
        assert_eq!(units(250, GROWTH, 100_000), 10_000);
    }
}
