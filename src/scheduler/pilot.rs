//! How large a job fits into a budget: a small block tells what each target costs, and the rest is a rule of three; a
//! larger block follows while that is much more than what was tried.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::controls;
use super::gated::{GatedTrial, Gates};
pub use super::size::{Expected, Foreseen};
use super::size::{JobSize, LEAST_UNITS as PILOT_UNITS, TriedBlock};
use crate::harness::plan::{Chosen, Plan, Took};
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::timing::Timer;
use crate::harness::trial::Bench;
use crate::model::effort::Blocks;
use crate::model::part::Part;
use crate::model::record::{Outcome, Record};
use crate::model::shell;
use crate::model::trial::{Data, Seeds};
use crate::model::units;

/// Most of the time of so small a job may be what does not grow with it (threads, first connections, empty caches):
/// what fits is found low, and the next pilot is as large as that.
const PILOTS: usize = 3;
/// A job's time grows a little faster than its units where values grow with it (`fans`, 250 to 10,000 profiles: 1.1).
const GROWTH: f64 = 1.1;

/// A pilot warms the machine up for a job that is up to so many times as large.
const WARMED: u64 = 2;

/// The longest that a store's small trial may take, with starting and stopping, for a place in a look that names none:
/// some twenty targets are looked at six times in a minute.
const QUICK: Duration = Duration::from_millis(1500);

/// The share of what is left that one small trial of a target may take that was asked for by name.
const PATIENCE: f64 = 0.5;
/// A second pilot tells how times grow, of so many times the units, where it takes less than a share of what is left.
const SECOND: u64 = 4;
const SECOND_SHARE: f64 = 0.1;
/// What two small trials may be believed of that growth.
const GROWTHS: (f64, f64) = (0.9, 1.5);
/// The first requests of a trial are slow: a pilot of requests is followed by one of so many times as many.
const WARM_REQUESTS: u64 = 16;
/// Queries of a pilot whose data is made: its pages are more. Other data may have but one page.
const PILOT_QUERIES: u64 = 100;

/// What one small trial took of a target.
#[derive(Clone, Debug)]
struct Piloted {
    label: String,
    /// Starting, checking and stopping, which do not grow with the job, and all that is asked at its end.
    fixed_s: f64,
    /// The job itself, what fills a store for it, and reading its answers back where there are the more of them the
    /// larger it is.
    growing_s: f64,
    /// The job itself.
    measured_s: f64,
    /// One query at the job's end.
    query_s: f64,
    /// The power of the job's units that it grows with.
    growth: f64,
    /// How often a block has it: A/A controls are run twice, and at each round-trip time.
    times: f64,
    failed: bool,
    /// Of a trial that was right.
    took: Option<Took>,
}

/// What one block of small trials took.
#[derive(Default)]
struct Cost {
    each: Vec<Piloted>,
    /// Targets that took too long, and their stores: of one that was not asked for by name one target is tried.
    slow: Vec<(String, &'static str)>,
}

impl Cost {
    /// All of it, of a job of so many units.
    fn sum(&self, units: u64, growth: f64) -> TriedBlock {
        let sum = |part: fn(&Piloted) -> f64| self.each.iter().map(|tried| part(tried) * tried.times).sum();
        TriedBlock {
            units,
            growth,
            fixed_s: sum(|tried| tried.fixed_s),
            growing_s: sum(|tried| tried.growing_s),
            measured_s: sum(|tried| tried.measured_s),
        }
    }

    /// So many queries follow the job, however large it is.
    fn add_queries(mut self, queries: u64) -> Cost {
        self.each.iter_mut().for_each(|tried| tried.fixed_s += tried.query_s * queries as f64);
        self
    }

    /// What a trial of each target took that was right, by label.
    fn took(&self) -> Vec<(String, Took)> {
        self.each.iter().filter_map(|tried| Some((tried.label.clone(), tried.took?))).collect()
    }

    /// A/A controls are run once more in each block.
    fn add_controls(&mut self, small: &Plan) {
        if !small.aa_control {
            return;
        }
        let all = self.took();
        let label = |place: usize| small.chosen[place].target.label.as_str();
        let controls = controls::choose(small, |place| controls::by_label(&all, label(place)), |_| true);
        let labels: Vec<&str> = controls.into_iter().map(label).collect();
        self.each.iter_mut().filter(|tried| labels.contains(&tried.label.as_str())).for_each(|tried| tried.times = 2.0);
    }

    /// What is reached over a network runs at each of several round-trip times; the pilot is at the longest, so that no
    /// other takes longer.
    fn add_round_trip_times(&mut self, small: &Plan) {
        let of = |label: &str| small.chosen.iter().find(|chosen| chosen.target.label == label);
        for tried in &mut self.each {
            if of(&tried.label).is_some_and(|chosen| small.network_of(chosen).is_some()) {
                tried.times *= small.rtts_us.len() as f64;
            }
        }
    }

    /// Of a job so many times as large.
    fn foreseen(&self, times: f64) -> Foreseen {
        let one = |tried: &Piloted| Expected {
            label: tried.label.clone(),
            took_s: tried.fixed_s + tried.growing_s * libm::pow(times, tried.growth),
            times: tried.times,
        };
        Foreseen(self.each.iter().map(one).collect())
    }
}

/// What may be done so that a plan fits into its time.
#[derive(Clone, Copy, Debug)]
pub struct Freedom {
    /// Stores that are not quick are left out.
    pub only_quick: bool,
    /// There are fewer blocks where the job would be a small one.
    pub fewer_blocks: bool,
    /// The most units of the job and of its pilots; `None` is the job's default.
    pub most: Option<u64>,
}

/// Sets the plan's units so that the pilots and the least blocks fit into `budget`. The job and its pilots have at most
/// `most` units. Says how long the blocks take.
///
/// Targets that do not finish a pilot are left in the plan: their rows say why. Targets that take far too long for the
/// budget are left out of it, and their rows say so; where `only_quick` is asked for, so are stores that are not. What
/// the machine disturbed each time is not called slow: `gates` know it then. `tell` hears of each pilot's units.
pub fn fit_into(
    budget: Duration,
    plan: &mut Plan,
    Freedom { only_quick, fewer_blocks, most }: Freedom,
    scratch: &Path,
    interrupt: &Interrupt,
    (gates, tell): (&mut Gates, &mut dyn FnMut(u64)),
) -> Result<Foreseen> {
    // A program of the user's is as large as it is.
    let Some(kind) = plan.kind else { return Ok(Foreseen::default()) };
    let timer = Timer::start();
    let most = most.unwrap_or(kind.default_units);
    let mut tried = PILOT_UNITS.min(most);
    tell(tried);
    let longest = if only_quick { QUICK } else { budget.mul_f64(PATIENCE).min(plan.timeout) };
    let first = Plan { timeout: longest, ..small(plan, tried) };
    let queries = plan.job.fans.queries;
    let mut cost = block_cost(&first, Some((longest, only_quick)), scratch, interrupt, gates)?.add_queries(queries);
    leave_out(plan, &cost.slow, only_quick, &format!("{tried} {}s", kind.unit), longest);
    // Whoever names blocks, or has data of several seeds in turn, has them.
    let may_lower = fewer_blocks && plan.blocks.plus_minus.is_some() && plan.seeds.data.is_empty();
    let fits = |plan: &Plan, cost: &Cost, tried| {
        let blocks = (plan.blocks.least, 1 - plan.first_block());
        cost.sum(tried, growth(plan)).choose(timer.left_of(budget), blocks, most, may_lower)
    };
    let (mut size, mut failed) = (fits(plan, &cost, tried), Vec::new());
    for _ in 1..PILOTS {
        // Nobody waits twice for who never comes.
        failed.extend(cost.each.iter().filter(|tried| tried.failed).map(|tried| tried.label.clone()));
        let JobSize { units, .. } = size;
        let mut larger = small(plan, units);
        larger.chosen.retain(|chosen| !failed.contains(&chosen.target.label));
        if units <= WARMED * tried || larger.chosen.is_empty() {
            break;
        }
        tried = units;
        tell(tried);
        cost = block_cost(&larger, None, scratch, interrupt, gates)?.add_queries(queries);
        size = fits(plan, &cost, tried);
    }
    let JobSize { units, least } = size;
    plan.piloted = cost.took();
    plan.job.units = Some(units);
    plan.blocks.least = least;
    plan.warm = units <= WARMED * tried;
    Ok(cost.foreseen(units as f64 / tried as f64))
}

/// Takes what is too slow out of the plan, with the reason. Something is better than nothing: where all are, all stay.
fn leave_out(plan: &mut Plan, slow: &[(String, &'static str)], only_quick: bool, job: &str, longest: Duration) {
    let is_slow = |chosen: &Chosen| {
        slow.iter().any(|(label, store)| *label == chosen.target.label || (only_quick && *store == chosen.adapter.name))
    };
    if !plan.chosen.iter().any(|chosen| !chosen.target.baseline && !is_slow(chosen)) {
        return;
    }
    let (out, stay): (Vec<Chosen>, Vec<Chosen>) = plan.chosen.drain(..).partition(is_slow);
    plan.chosen = stay;
    let took = format!("{job} took over {:.1} s with its start and its stop", longest.as_secs_f64());
    plan.left_out.extend(out.into_iter().map(|chosen| {
        let why = match only_quick {
            true => {
                let alone = shell::command(["run", &plan.job.name, &chosen.target.label]);
                format!("{took}, too slow for a first look; {alone}")
            }
            false => format!("{took}, too slow for the time of this run: give it a longer --budget"),
        };
        (chosen, Outcome::left_out(why))
    }));
}

/// How long a trial of each target takes at each of these sizes of the job, in units, where so much time is left.
pub fn foresee(
    plan: &Plan,
    sizes: &[u64],
    left: Duration,
    (scratch, interrupt): (&Path, &Interrupt),
    gates: &mut Gates,
) -> Result<Foreseen> {
    let timeout = plan.timeout.min(left.mul_f64(PATIENCE));
    let pilot = |units| Plan { timeout, ..small(plan, units) };
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let first = PILOT_UNITS.min(sizes.iter().copied().min().unwrap_or(1).max(1));
    let queries = plan.job.fans.queries;
    let share_s = left.as_secs_f64() * SECOND_SHARE;
    let mut cost = block_cost(&pilot(first), None, scratch, interrupt, gates)?.add_queries(queries);
    let mut tried = first;
    let warmed = first * WARM_REQUESTS;
    if plan.job.load.is_some() && warmed < largest && cost.foreseen(WARM_REQUESTS as f64).block_s() <= share_s {
        cost = block_cost(&pilot(warmed), None, scratch, interrupt, gates)?.add_queries(queries);
        tried = warmed;
    }
    let second = first * SECOND;
    let would_take_s = cost.foreseen(SECOND as f64).block_s();
    if plan.job.load.is_none() && second < largest && would_take_s <= share_s {
        let larger = block_cost(&pilot(second), None, scratch, interrupt, gates)?;
        for tried in &mut cost.each {
            let same = larger.each.iter().find(|other| other.label == tried.label && !other.failed);
            let grown = same.filter(|_| tried.growing_s > 0.0).map(|other| other.growing_s / tried.growing_s);
            let power = grown.map(|grown| libm::log(grown.max(1e-9)) / libm::log(SECOND as f64));
            tried.growth = power.map_or(tried.growth, |power| power.clamp(GROWTHS.0, GROWTHS.1));
        }
    }
    let of = |&size: &u64| {
        let mut each = cost.foreseen(times_as_large(plan, size, tried)).0;
        if sizes.len() > 1 {
            each.iter_mut().for_each(|one| one.label = format!("{} at {}", one.label, units::thousands(size)));
        }
        each
    };
    Ok(Foreseen(sizes.iter().flat_map(of).collect()))
}

/// How many times as many units a trial of the plan has as its pilot of `tried` units, where its input has `size`.
fn times_as_large(plan: &Plan, size: u64, tried: u64) -> f64 {
    plan.units_of_a_trial(size) as f64 / small(plan, tried).units_of_a_trial(tried) as f64
}

/// The power of a job's units that its time grows with. Requests take as long each, however many there are.
fn growth(plan: &Plan) -> f64 {
    if plan.job.load.is_some() { 1.0 } else { GROWTH }
}

/// So many times as large is the job that a first look tries at its end, and so often.
const AHEAD: u64 = 4;
const AHEAD_TRIALS: u32 = 3;

/// A few trials each of the larger job, on the targets of these labels, while there is time. A target that does not
/// finish it in time has no record of it.
pub fn ahead(plan: &Plan, labels: &[String], scratch: &Path, interrupt: &Interrupt) -> Result<Vec<Record>> {
    let units = plan.job.units.unwrap_or(PILOT_UNITS) * AHEAD;
    let mut larger = Plan { blocks: plan.blocks, ..small(plan, units) };
    let mut found = Vec::new();
    if larger.is_over() || labels.is_empty() {
        return Ok(found);
    }
    larger.chosen.retain(|chosen| labels.contains(&chosen.target.label));
    larger.chosen.sort_by_key(|chosen| labels.iter().position(|label| *label == chosen.target.label));
    let bench = Bench::set_up(&larger, scratch, interrupt)?;
    for block in 1..=AHEAD_TRIALS {
        for (position, chosen) in (1..).zip(&larger.chosen) {
            if larger.is_over() {
                return Ok(found);
            }
            let record = bench.trial(chosen, block, position, &mut |_| {});
            let record = Record { ahead: true, ..record.map_err(|_| anyhow!(INTERRUPTED))? };
            if !matches!(record.outcome, Outcome::LeftOut { .. } | Outcome::TimedOut { .. }) {
                found.push(record);
            }
        }
    }
    Ok(found)
}

/// The plan with a job of so many units, once.
fn small(plan: &Plan, units: u64) -> Plan {
    let aa_control = plan.has_controls();
    let mut small = Plan {
        blocks: Blocks::exactly(1),
        keep: None,
        seeds: Seeds { data: Vec::new(), ..plan.seeds.clone() },
        aa_control,
        ..plan.clone()
    };
    small.job.units = Some(units);
    small.agents.judges_start = false;
    // It may have fewer pages than are asked for.
    let is_made = matches!(plan.job.data, Data::Recipe { .. }) && units >= PILOT_UNITS;
    small.job.fans.queries = plan.job.fans.queries.min(if is_made { PILOT_QUERIES } else { 1 });
    // What is refused for another reason than the pilot's own takes none of the time; its row says why.
    let may_run = |chosen: &Chosen| plan.may_run(chosen).is_ok();
    if plan.chosen.iter().any(may_run) {
        small.chosen.retain(may_run);
    }
    small
}

/// What the small trials took of those targets that were quick enough; with whether the rest of a slow store's are left
/// untried.
fn block_cost(
    small: &Plan,
    longest: Option<(Duration, bool)>,
    scratch: &Path,
    interrupt: &Interrupt,
    gates: &mut Gates,
) -> Result<Cost> {
    let bench = Bench::set_up(small, scratch, interrupt)?;
    let mut cost = Cost::default();
    for (position, place) in (1..).zip(small.order(1, small.chosen.len())) {
        let chosen = &small.chosen[place];
        let is_slow = |(_, store): &(String, &str)| *store == chosen.adapter.name;
        if longest.is_some_and(|(_, whole_store)| whole_store) && cost.slow.iter().any(is_slow) {
            continue;
        }
        let GatedTrial { record, took, disturbed } =
            gates.trial(&bench, chosen, (1, position), None, &mut |_, _| Ok(()))?;
        if disturbed.is_none() && longest.is_some_and(|(longest, _)| took > longest) {
            cost.slow.push((chosen.target.label.clone(), chosen.adapter.name));
            continue;
        }
        cost.each.push(tried(small, place, &record, took.as_secs_f64()));
    }
    cost.add_controls(small);
    cost.add_round_trip_times(small);
    Ok(cost)
}

/// What a small trial took of its target.
fn tried(small: &Plan, place: usize, record: &Record, took_s: f64) -> Piloted {
    // Records are as many however many requests there are.
    let is_filled = small.job.load.is_none();
    let filled_s =
        || record.phases.iter().filter(|phase| phase.part == Part::Load).map(|phase| phase.took_s).sum::<f64>();
    let measured_s = match record.outcome {
        Outcome::Finished => record.took_s().unwrap_or(0.0),
        Outcome::TimedOut { after_s, done_share } => after_s / done_share.max(0.01),
        _ => 0.0,
    };
    let is_finished = record.outcome == Outcome::Finished;
    let besides_s = if is_finished && is_filled { filled_s() + record.checked_s() } else { 0.0 };
    let growing_s = measured_s + besides_s;
    let asked = record.asked().filter(|_| is_finished);
    let asked_s = asked.map_or(0.0, |asked| asked.took_s);
    Piloted {
        // By what it was asked for: a server may say that it is another product.
        label: small.chosen[place].target.label.clone(),
        fixed_s: (took_s - growing_s - asked_s).max(0.0),
        growing_s,
        measured_s,
        query_s: asked_s / small.job.fans.queries.max(1) as f64,
        growth: growth(small),
        times: 1.0,
        failed: !is_finished,
        took: record.took_s().filter(|_| record.is_right()).map(|job_s| Took { job_s, all_s: took_s }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::plan::tests::plan;
    use crate::model::load::Load;

    fn cost(each: &[(f64, f64)]) -> Cost {
        let one = |(place, &(fixed_s, growing_s)): (usize, &(f64, f64))| Piloted {
            label: place.to_string(),
            fixed_s,
            growing_s,
            measured_s: growing_s,
            query_s: 0.0,
            growth: 1.0,
            times: if place == 0 { 2.0 } else { 1.0 },
            failed: false,
            took: None,
        };
        let mut each: Vec<Piloted> = each.iter().enumerate().map(one).collect();
        if let [only] = each.as_mut_slice() {
            only.times = 1.0;
        }
        Cost { each, slow: Vec::new() }
    }

    #[test]
    fn as_many_blocks_are_planned_as_there_is_time_for() {
        let quick = Plan { blocks: Blocks { least: 6, most: 10, plus_minus: Some(0.05) }, ..plan(None) };
        // A block takes 2 * 1 + 8 = 10 s.
        let foreseen = cost(&[(0.5, 0.05), (3.0, 0.5)]).foreseen(10.0);
        assert_eq!(foreseen.block_s(), 10.0);
        let fewer = |time_s| foreseen.fewer_blocks(&quick, Duration::from_secs(time_s));
        assert_eq!(fewer(70), None, "with the one that is not counted");
        assert_eq!(fewer(60), Some(Blocks { least: 5, ..quick.blocks }));
        assert_eq!(fewer(40), Some(Blocks::exactly(3)), "three, and one that is not counted, claim nothing");
        assert_eq!(fewer(20), Some(Blocks::exactly(2)), "of nine seconds, where nothing is run twice");
        assert_eq!(fewer(1), Some(Blocks::exactly(1)));
    }

    /// A number of requests that the user names holds for the trial, and not for its pilot.
    #[test]
    fn a_trial_of_requests_is_so_many_times_its_pilot() {
        let mut asked = plan(Some(Load { clients: vec![5], ..Load::default() }));
        asked.job.units = Some(1_000_000);
        assert_eq!(times_as_large(&asked, 1_000_000, 1_000), 1_000.0);
        assert_eq!(times_as_large(&plan(None), 45_000, 1_000), 45.0);
    }

    #[test]
    fn queries_take_their_time_however_large_the_job_is() {
        let mut asked = cost(&[(0.5, 0.05), (3.0, 0.5)]);
        asked.each[0].query_s = 0.001;
        let block_s = |queries, times| asked_of(&asked, queries).foreseen(times).block_s();
        assert_eq!(block_s(1_000, 10.0), block_s(0, 10.0) + 2.0, "of the one that is run twice");
        assert_eq!(block_s(1_000, 50.0), block_s(0, 50.0) + 2.0);
        let sum = asked_of(&asked, 1_000).sum(250, 1.0);
        assert_eq!((sum.fixed_s, sum.growing_s), (6.0, 0.6));
    }

    fn asked_of(cost: &Cost, queries: u64) -> Cost {
        Cost { each: cost.each.clone(), slow: Vec::new() }.add_queries(queries)
    }
}
