//! What one run tells of a target: a number, or why there is none that counts.

use super::{Dot, DotSeen, HistoryMeasure, HistoryRun};
use crate::levers::failure;
use crate::standing::{self, Counted, Standings};
use crate::{aa, costs, growth, versions};
use kvfair_core::record::{Record, Verdict};
use kvfair_stats::floor::{AaNoise, Control};
use kvfair_stats::planned;
use kvfair_stats::sample::Sample;

/// What holds of a whole run.
pub struct RunFacts<'a> {
    records: &'a [Record],
    counted: Counted,
    standings: Standings<'a>,
}

impl<'a> RunFacts<'a> {
    pub fn of(run: &'a HistoryRun) -> RunFacts<'a> {
        let standings = standing::standings(&run.records);
        RunFacts { records: &run.records, counted: Counted::of(&run.records), standings }
    }

    fn noise(&self, cost: fn(&Record) -> Option<f64>) -> AaNoise {
        aa::noise(self.records, &self.counted, cost)
    }

    /// Why its numbers count for nothing.
    fn noisy(&self, measure: HistoryMeasure, noise: &AaNoise) -> Option<String> {
        if measure != HistoryMeasure::Cpu
            && let Some(refused) = self.standings.refused
        {
            return Some(refused.in_words());
        }
        match () {
            () if noise.most_discarded() => Some("most blocks were disturbed".to_string()),
            () if noise.controls().iter().any(Control::is_noisy) => {
                Some("the same store run twice did not come out the same".to_string())
            }
            () => None,
        }
    }
}

pub fn cost_of(measure: HistoryMeasure) -> fn(&Record) -> Option<f64> {
    match measure {
        HistoryMeasure::Ratio | HistoryMeasure::Seconds => Record::cost,
        HistoryMeasure::Cpu => costs::cpu_us_per_op,
    }
}

/// The baseline that most runs have; of several the last by name.
pub fn baseline<'a>(facts: &[RunFacts<'a>], targets: &[(&'a str, bool)]) -> Option<&'a str> {
    let has = |target: &str| facts.iter().filter(|run| numbers(run, target, None, Record::cost).is_some()).count();
    let baselines = targets.iter().filter(|(_, is_baseline)| *is_baseline).map(|(target, _)| (has(target), *target));
    baselines.filter(|(runs, _)| *runs > 0).max().map(|(_, target)| target)
}

/// A number and its interval: of the target, or of its ratio to a baseline of the run.
pub fn numbers(
    run: &RunFacts<'_>,
    target: &str,
    to: Option<&str>,
    cost: fn(&Record) -> Option<f64>,
) -> Option<(f64, Option<f64>, Option<f64>)> {
    let is_wanted = |label: &str| label == target || to == Some(label);
    let costs = standing::by_target(run.records, &run.counted, cost, is_wanted);
    if let Some(to) = to {
        let ratio = planned::paired(target, to, &costs)?.ratio();
        let (low, high) = ratio.interval.bounds().unzip();
        return Some((ratio.estimate, low, high));
    }
    let sample = Sample::new(costs.get(target)?.values().copied().collect())?;
    let (low, high) = sample.median_bounds().unzip();
    Some((sample.median(), low, high))
}

pub fn dot(run: &RunFacts<'_>, target: &str, to: Option<&str>, measure: HistoryMeasure) -> Dot {
    let cost = cost_of(measure);
    let version = versions::version(run.records, target);
    let of_target = || run.records.iter().filter(|record| record.target.label == target);
    let seen = match numbers(run, target, to, cost) {
        // What failed in some blocks has a number of the others; what was wrong once has none.
        _ if of_target().any(|record| matches!(record.verdict, Verdict::Wrong { .. })) => {
            DotSeen::Failed { why: "wrong answers".to_string() }
        }
        None => of_target().find_map(failure).map_or(DotSeen::Absent, |why| DotSeen::Failed { why }),
        Some((number, low, high)) => {
            let noise = run.noise(cost);
            let length_s = standing::lengths_s(run.records, &run.counted).get(target).copied().unwrap_or_default();
            match run.noisy(measure, &noise) {
                Some(why) => DotSeen::Noisy { number, why },
                None => DotSeen::Used { number, low, high, floor: noise.bar(length_s, length_s).map(|bar| bar.floor) },
            }
        }
    };
    Dot { version, seen }
}

/// Why the records of a file are no run that can be followed; nothing where they are.
pub fn no_run(records: &[Record]) -> Option<&'static str> {
    let first = records.first()?;
    let run = &first.run;
    match () {
        () if first.levers.is_some() => Some("of `kvfair levers`"),
        () if growth::is_of(first) => Some("of `kvfair growth`"),
        () if run.answers_only => Some("it timed nothing"),
        () if !run.sizes.is_empty() || !run.orders.is_empty() || run.rtts_us.len() > 1 => {
            Some("a run of several sizes")
        }
        () if records.iter().all(|record| record.cost().is_none()) => {
            Some("no trial has a time: rates are not followed")
        }
        () => None,
    }
}
