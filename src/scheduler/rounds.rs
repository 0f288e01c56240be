//! Blocks of trials: one trial of each target in random order, block after block, until differences are known well
//! enough or the time is over.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use anyhow::Result;

use super::{controls, gated};
use crate::harness::plan::{Chosen, Plan, Took};
use crate::harness::timing::Timer;
use crate::harness::trial::{Bench, Interrupted, Live};
use crate::model::answers::{self, Given};
use crate::model::disturbed::Disturbed;
use crate::model::noise::{Noise, discarded_blocks};
use crate::model::record::{Outcome, Record, Verdict};
use crate::stats::paired::LogRatios;

/// Something that happened, for whoever saves or watches.
pub enum RunEvent<'a> {
    /// A trial is under way: which one of how many, on which target, how far.
    Live {
        trial: u32,
        trials: u32,
        target: &'a str,
        live: Live,
    },
    Finished(&'a Record),
    /// A trial that the machine disturbed, and how: it is run again.
    Discarded(&'a Record, &'a Disturbed),
    /// That block of the run is whole.
    Block(u32),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunEnd {
    AllBlocks,
    /// Each target has failed, or was too slow.
    NoTargets,
    /// All intervals against the reference are as narrow as they were to be: the widest, to either side.
    Narrow(f64),
    /// The least blocks were run of what nothing is compared with.
    Alone,
    /// Another block would not have fitted into the budget.
    Budget,
    /// As many blocks were discarded as were to be run.
    Noise,
}

/// How a run ended, or what cut it off.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Stopped(RunEnd),
    /// And what could not be cleaned up.
    Interrupted(Option<String>),
}

/// The time that a run has: no block begins that would outlast it.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub left: Duration,
    /// For the least blocks: what is under way then is cut off.
    pub at_most: Duration,
}

/// A processor that is slower than at its best in the run is waited for so long.
const QUIET_WITHIN: Duration = Duration::from_secs(60);

/// Runs the blocks. A target that did not finish once is not run again: it has no number to better.
///
/// With `time` no block begins that would outlast it, going by the longest one so far; the first one always does. Where
/// that is the one before the first, and no other fits, it is what is shown.
///
/// `benches` are the parts of one plan, as of each size of its job: a block has them all, and each is compared by
/// itself.
pub fn run(
    benches: &[Bench<'_>],
    time: Option<Time>,
    tell: &mut dyn FnMut(RunEvent<'_>) -> Result<()>,
) -> Result<Ended> {
    let plan = benches[0].plan;
    let mut seen: Vec<Seen> = benches.iter().map(|_| Seen::default()).collect();
    let mut longest = Duration::ZERO;
    let timer = Timer::start();
    for block in plan.first_block().. {
        let is_over = |time: Time| {
            let time =
                if seen.iter().any(|seen| seen.counted() < plan.blocks.least) { time.at_most } else { time.left };
            timer.left_of(time) < longest
        };
        if block > plan.first_block() && (plan.is_over() || time.is_some_and(is_over)) {
            return Ok(Ended::Stopped(RunEnd::Budget));
        }
        let began = Timer::start();
        if let Err(ended) = run_block(benches, block, &mut seen, tell)? {
            return Ok(ended);
        }
        longest = longest.max(began.elapsed());
        if plan.blocks.may_claim() && seen.iter().any(|seen| seen.discarded().contains(&block)) {
            // What has slowed the processor down may be over soon; the run's time goes on.
            let left = time.map_or(QUIET_WITHIN, |time| timer.left_of(time.left).min(QUIET_WITHIN));
            benches[0].processor_probe.wait_until_quiet(left, benches[0].interrupt);
        }
        tell(RunEvent::Block(block))?;
        let end = if plan.is_over() { RunEnd::Budget } else { RunEnd::NoTargets };
        let is_out = |(seen, bench): (&Seen, &Bench<'_>)| seen.out.len() >= bench.plan.chosen.len();
        let all_out = seen.iter().zip(benches).all(is_out).then_some(end);
        if let Some(stopped) = all_out.or_else(|| stops(&seen, benches)) {
            return Ok(Ended::Stopped(stopped));
        }
    }
    unreachable!("a run ends before its blocks have no number")
}

/// Why a run ends: once there is a reason in each part, the widest interval or what is not that.
fn stops(all: &[Seen], benches: &[Bench<'_>]) -> Option<RunEnd> {
    let each: Option<Vec<RunEnd>> = all.iter().zip(benches).map(|(seen, bench)| seen.stops(bench.plan)).collect();
    each?.into_iter().reduce(|one, other| match (one, other) {
        (RunEnd::Narrow(one), RunEnd::Narrow(other)) => RunEnd::Narrow(one.max(other)),
        (RunEnd::Narrow(_), other) => other,
        (one, _) => one,
    })
}

/// What was seen in one part of the targets so far, by their places in its plan; second trials of A/A controls are
/// behind the last.
#[derive(Default)]
struct Seen {
    out: HashSet<usize>,
    /// What a trial of each target took in the block that warms up.
    took: BTreeMap<usize, Took>,
    /// What each trial cost, by block.
    costs: BTreeMap<usize, BTreeMap<u32, f64>>,
    /// What else went on in each trial of a block.
    noise: Vec<(u32, Noise)>,
    /// What programs of the user's answered: target and digest.
    answers: Vec<(String, String)>,
    /// Whole blocks, discarded ones among them; not the one before the first.
    blocks: u32,
}

/// All trials of one block; `Err` where the run is interrupted.
fn run_block(
    benches: &[Bench<'_>],
    block: u32,
    seen: &mut [Seen],
    tell: &mut dyn FnMut(RunEvent<'_>) -> Result<()>,
) -> Result<Result<(), Ended>> {
    let controls = |(seen, bench): (&Seen, &Bench<'_>)| seen.controls(bench.plan, block);
    let repeated: Vec<Vec<usize>> = seen.iter().zip(benches).map(controls).collect();
    let of_part = |part: usize| {
        let count = benches[part].plan.chosen.len() + repeated[part].len();
        (0..count).map(move |place| (part, place))
    };
    let all: Vec<(usize, usize)> = (0..benches.len()).flat_map(of_part).collect();
    let order = benches[0].plan.order(block, all.len()).into_iter().map(|index| all[index]);
    let order: Vec<(usize, usize)> = order.filter(|(part, place)| !seen[*part].out.contains(place)).collect();
    let trials = order.len() as u32;
    for (position, &(part, place)) in (1..).zip(&order) {
        let (bench, seen) = (&benches[part], &mut seen[part]);
        let plan = bench.plan;
        let second_of = place.checked_sub(plan.chosen.len()).map(|place| repeated[part][place]);
        let chosen: &Chosen = &plan.chosen[second_of.unwrap_or(place)];
        let began = Timer::start();
        let mut record = match run_trial(bench, chosen, (block, position, trials), tell)? {
            Ok(record) => record,
            Err(Interrupted { left_behind }) => return Ok(Err(Ended::Interrupted(left_behind))),
        };
        if plan.is_over() && record.outcome != Outcome::Finished {
            if seen.blocks > 0 {
                // Every target has its row from whole blocks.
                return Ok(Err(Ended::Stopped(RunEnd::Budget)));
            }
            record = if plan.levers.is_some() { unmeasured(record) } else { record };
        }
        record.aa_control = second_of.is_some();
        if let Some(given) = answers::given(&record) {
            seen.answers.push((chosen.target.label.clone(), given.digest.to_string()));
        }
        tell(RunEvent::Finished(&record))?;
        seen.noise.push((block, record.noise));
        if record.outcome != Outcome::Finished || !record.is_right() {
            seen.out.insert(place);
        } else if let (0, Some(job_s)) = (block, record.took_s()) {
            seen.took.insert(place, Took { job_s, all_s: began.elapsed().as_secs_f64() });
        } else if let Some(cost) = record.cost() {
            seen.costs.entry(place).or_default().insert(block, cost);
        }
    }
    for (seen, bench) in seen.iter_mut().zip(benches) {
        seen.blocks += u32::from(block > 0);
        seen.drop_wrong(bench.plan);
    }
    Ok(Ok(()))
}

/// The time of a run of levers may be over before a part of it was measured, which is no failure of the target.
fn unmeasured(mut record: Record) -> Record {
    if matches!(record.outcome, Outcome::TimedOut { .. } | Outcome::Failed { .. })
        && !matches!(record.verdict, Verdict::Wrong { .. })
    {
        record.outcome = Outcome::left_out("the time of the run was over before it was measured");
    }
    record
}

/// One trial of so many, again where it must be.
fn run_trial(
    bench: &Bench<'_>,
    chosen: &Chosen,
    (block, position, trials): (u32, u32, u32),
    tell: &mut dyn FnMut(RunEvent<'_>) -> Result<()>,
) -> Result<Result<Record, Interrupted>> {
    let target = chosen.target.label.as_str();
    for repeats in 0.. {
        let mut failure = Ok(());
        let mut watch = |live| {
            if failure.is_ok() {
                failure = tell(RunEvent::Live { trial: position, trials, target, live });
            }
        };
        let mut record = match bench.trial(chosen, block, position, &mut watch) {
            Ok(record) => record,
            Err(interrupted) => return Ok(Err(interrupted)),
        };
        failure?;
        let Some(disturbed) = gated::again(bench.plan, &record, repeats) else { return Ok(Ok(record)) };
        record.discarded = true;
        tell(RunEvent::Discarded(&record, &disturbed))?;
    }
    unreachable!("a trial is run again a few times")
}

impl Seen {
    /// The places of the targets that are run twice: none that failed, and none in the block that is counted nowhere,
    /// which shows how long each takes where no pilot did.
    fn controls(&self, plan: &Plan, block: u32) -> Vec<usize> {
        if !plan.has_controls() || block == 0 {
            return Vec::new();
        }
        let by_pilot = |place: usize| controls::by_label(&plan.piloted, &plan.chosen[place].target.label);
        let took = |place: usize| self.took.get(&place).copied().or_else(|| by_pilot(place));
        controls::choose(plan, took, |place| !self.out.contains(&place))
    }

    /// Who answered otherwise than the others is not run again either.
    fn drop_wrong(&mut self, plan: &Plan) {
        let given = self.answers.iter().map(|(target, digest)| Given { target, block: 0, digest, ends: "" });
        let wrong = answers::wrong(&given.collect::<Vec<_>>());
        let is_wrong = |place: &usize| wrong.contains_key(plan.chosen[*place].target.label.as_str());
        self.out.extend((0..plan.chosen.len()).filter(is_wrong));
    }

    fn discarded(&self) -> BTreeSet<u32> {
        discarded_blocks(self.noise.iter().map(|(block, noise)| (*block, noise)))
    }

    fn counted(&self) -> u32 {
        self.blocks - self.discarded().len() as u32
    }

    /// Only widths, blocks and noise end a run; never what is faster.
    fn stops(&self, plan: &Plan) -> Option<RunEnd> {
        let blocks = plan.blocks;
        // With so few blocks that nothing is claimed nothing is discarded either.
        let discarded = if blocks.may_claim() { self.discarded().len() as u32 } else { 0 };
        let counted = self.blocks - discarded;
        if counted >= blocks.most {
            return Some(RunEnd::AllBlocks);
        }
        if discarded >= blocks.most {
            return Some(RunEnd::Noise);
        }
        let limit = blocks.plus_minus.filter(|_| counted >= blocks.least)?;
        let widest = self.widths(plan)?.into_iter().reduce(f64::max);
        widest.map_or(Some(RunEnd::Alone), |widest| (widest <= limit).then_some(RunEnd::Narrow(widest)))
    }

    /// What two targets cost in the blocks that count.
    fn in_common(&self, one: usize, other: usize) -> (Vec<f64>, Vec<f64>) {
        let discarded = self.discarded();
        let of = |place: usize| self.costs.get(&place).into_iter().flatten();
        let counted = of(one).filter(|(block, _)| **block > 0 && !discarded.contains(block));
        let both = counted.filter_map(|(block, cost)| Some((*cost, *self.costs.get(&other)?.get(block)?)));
        both.unzip()
    }

    /// The interval of each store against the reference, to either side, and of the reference alone that of its
    /// aa_control; nothing where one has none.
    fn widths(&self, plan: &Plan) -> Option<Vec<f64>> {
        let reference = plan.reference(|place| !self.out.contains(&place))?;
        let mut others: Vec<usize> = (0..plan.chosen.len())
            .filter(|place| *place != reference && !self.out.contains(place) && !plan.chosen[*place].target.baseline)
            .collect();
        let aa_control = plan.chosen.len();
        others.extend((others.is_empty() && self.costs.contains_key(&aa_control)).then_some(aa_control));
        let widths = others.into_iter().map(|place| {
            let (ones, others) = self.in_common(place, reference);
            LogRatios::of(&ones, &others)?.ratio().interval.plus_minus()
        });
        widths.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::plan::tests::plan_of;

    const STEADY: &[f64] = &[1.0, 1.01, 0.99, 1.0, 1.01, 0.99];
    const ALIKE: &[f64] = &[1.01, 1.0, 1.0, 0.99, 1.0, 1.01];
    const WILD: &[f64] = &[1.0, 2.0, 0.5, 3.0, 0.3, 1.0];

    /// What each place cost in the blocks from the first on.
    fn seen(costs: &[&[f64]]) -> Seen {
        let by_block = |costs: &&[f64]| (1..).zip(costs.iter().copied()).collect();
        let blocks = costs[0].len() as u32;
        Seen { costs: costs.iter().map(by_block).enumerate().collect(), blocks, ..Seen::default() }
    }

    fn is_narrow(stopped: Option<RunEnd>) -> bool {
        matches!(stopped, Some(RunEnd::Narrow(widest)) if widest > 0.0 && widest <= 0.1)
    }

    #[test]
    fn one_store_alone_ends_by_its_aa_control() {
        for alone in [plan_of(&[("one", false)]), plan_of(&[("one", false), ("null", true)])] {
            let control = vec![WILD; alone.chosen.len() - 1];
            let stops = |aa_control: &[&[f64]]| seen(&[&[STEADY], &control[..], aa_control].concat()).stops(&alone);
            assert!(is_narrow(stops(&[ALIKE])));
            assert_eq!(stops(&[WILD]), None, "the same store twice differs too much yet");
            assert_eq!(stops(&[]), Some(RunEnd::Alone), "without a aa_control");
        }
    }

    #[test]
    fn several_end_by_the_widest_of_them_and_not_by_the_aa_control() {
        let three = plan_of(&[("one", false), ("two", false), ("three", false)]);
        assert!(is_narrow(seen(&[STEADY, ALIKE, ALIKE, WILD]).stops(&three)));
        assert_eq!(seen(&[STEADY, ALIKE, WILD, ALIKE]).stops(&three), None);
        let out = Seen { out: HashSet::from([2]), ..seen(&[STEADY, ALIKE, WILD, ALIKE]) };
        assert!(is_narrow(out.stops(&three)), "who has failed is waited for no more");
        let few = Seen { blocks: 5, ..seen(&[STEADY, ALIKE, ALIKE]) };
        assert_eq!(few.stops(&three), None, "not before the least");
    }
}
