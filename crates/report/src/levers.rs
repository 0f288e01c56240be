//! What the records of `kvfair levers` tell: what each lever gains, which few are enough, and what the durability
//! levels cost.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::standing::{self, Counted};
use super::{aa, cells, costs, store_stats, typed, words};
use kvfair_core::levers::{LeverPart, LeverRun, RunLever, TriedValue, UntriedLever};
use kvfair_core::record::{Outcome, Record};
use kvfair_core::trial::Durability;
use kvfair_stats::floor::AaNoise;
use kvfair_stats::levers::{self as stats, Confirmation, Confirmed, Contrast, Gain, LeverSet, SetCosts};
use kvfair_stats::paired::{LogRatios, Ratio};
use kvfair_stats::sample::Sample;

pub mod picture;
#[cfg(test)]
mod tests;
pub mod text;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeverCost {
    /// The time of the job.
    Seconds,
    /// CPU of client and server: times are not told, since the machine disturbed most blocks, or the durability level
    /// cannot hold.
    CpuSeconds,
}

impl LeverCost {
    fn of(self) -> fn(&Record) -> Option<f64> {
        match self {
            LeverCost::Seconds => Record::cost,
            LeverCost::CpuSeconds => costs::cpu_s,
        }
    }
}

/// What the blocks of gains tell.
pub struct GainsSeen {
    pub run: LeverRun,
    pub cost: LeverCost,
    /// Those that go together.
    pub all: LeverSet,
    pub gains: Vec<Gain>,
    pub blocks: usize,
}

impl GainsSeen {
    /// What is changed in a set.
    fn changes(&self, set: LeverSet) -> Vec<String> {
        set.places().map(|place| self.run.levers[place].change.clone()).collect()
    }
}

/// A set in fresh blocks.
pub struct Attempt {
    pub set: LeverSet,
    /// Base against it.
    pub gain: Option<Gain>,
    pub confirmation: Option<Confirmation>,
}

/// All that is printed, as `--json` prints it.
#[derive(Serialize)]
pub struct LeverReport {
    #[serde(skip)]
    pub headline: String,
    /// `kvfair levers` as it was typed, or as it would ask the same as an advice: without its levers and its time.
    #[serde(skip)]
    pub asked: Vec<String>,
    /// Each lever was measured alone: by `kvfair advise`.
    pub is_advice: bool,
    pub base: String,
    pub job: String,
    pub cost: LeverCost,
    pub blocks: usize,
    pub levers: Vec<LeverRow>,
    /// Base against all that go together.
    pub together: Option<Gain>,
    pub enough: EnoughLevers,
    /// In their order.
    #[serde(skip)]
    pub tried_sets: Vec<TriedSet>,
    /// What each lever gains on set/get alone, where that was measured.
    pub synthetic: Option<SyntheticAnswer>,
    pub durability: Vec<LevelRow>,
    pub left_out: Vec<UntriedLever>,
}

/// One lever.
#[derive(Clone, Serialize)]
pub struct LeverRow {
    pub name: String,
    pub change: String,
    pub pays: String,
    pub tried: Vec<TriedValue>,
    pub alone: Option<Gain>,
    /// All but it against all.
    pub last: Option<Gain>,
    /// Alone on set/get alone: see [`SyntheticAnswer`].
    pub synthetic: Option<Gain>,
    /// Why it is not among all.
    pub not_in_all: Option<String>,
    /// Why its own target has no number.
    pub failed: Option<String>,
    /// "commands 1,474,142 -> 33".
    pub counters: Vec<String>,
}

/// Levers on a job of requests that does nothing else.
#[derive(Serialize)]
pub struct SyntheticAnswer {
    /// Its name.
    pub job: String,
    pub blocks: usize,
    /// The share of its time that the user's job waits for the store, as it is now: what it does besides, no lever of a
    /// store changes.
    pub waiting_share: Option<f64>,
}

/// What is changed in a set that was tried in fresh blocks, and what those say.
#[derive(Clone, Debug)]
pub struct TriedSet {
    pub levers: Vec<String>,
    pub found: Option<Confirmed>,
}

/// The smallest set of levers that is as fast as all of them, as far as can be told.
#[derive(Serialize)]
pub struct EnoughLevers {
    /// What is changed in it; empty where nothing helps.
    pub levers: Vec<String>,
    /// It is all of those that go together.
    pub is_all: bool,
    /// Base against it: of fresh blocks where there are any.
    pub gain: Option<Gain>,
    pub confirmation: Option<Confirmation>,
}

/// The base at a durability level.
#[derive(Serialize)]
pub struct LevelRow {
    pub level: Durability,
    /// How its store keeps it.
    pub keeps: String,
    /// How many times as long it takes as at the run's own level; none of that one itself.
    pub ratio: Option<Ratio>,
    pub blocks: usize,
    /// Why it has no number.
    pub failed: Option<String>,
}

impl LeverRow {
    /// What it is sorted by: its gain alone as far as it is claimed. What failed stands last.
    fn worth(&self) -> f64 {
        let alone = self.alone.as_ref().filter(|_| self.failed.is_none());
        alone.map_or(0.0, |gain| if gain.effect.is_some() { gain.ratio.estimate } else { 1.0 })
    }
}

impl LeverReport {
    /// It is told which levers are enough, or that none is seen to help.
    pub fn is_clear(&self) -> bool {
        let is_judged = |gain: &Gain| gain.p.is_some() && gain.bar.is_some();
        if self.is_advice {
            let is_seen = |lever: &LeverRow| lever.alone.as_ref().is_some_and(is_judged);
            return self.cost == LeverCost::Seconds && self.levers.iter().any(is_seen);
        }
        let confirmed = self.enough.confirmation.is_some_and(|seen| seen.found == Confirmed::Enough);
        let known = self.together.as_ref().is_some_and(is_judged);
        self.cost == LeverCost::Seconds && known && (confirmed || self.enough.is_all || self.enough.levers.is_empty())
    }
}

/// The records of each part: gains, sets in fresh blocks, and each durability level by itself.
pub fn parts(records: &[Record]) -> Vec<Vec<Record>> {
    let mut parts: Vec<Vec<Record>> = Vec::new();
    let key = |record: &Record| (record.levers.as_ref().map(|levers| levers.part), record.durability);
    for record in records {
        match parts.iter_mut().find(|part| key(&part[0]) == key(record)) {
            Some(part) => part.push(record.clone()),
            None => parts.push(vec![record.clone()]),
        }
    }
    parts
}

/// The records of the blocks of gains.
pub fn of_gains(records: &[Record]) -> Vec<Record> {
    // As those of a run, they are shown by targets.
    let mut records = of_part(records, |part| part == LeverPart::Gains);
    records.iter_mut().for_each(|record| record.levers = None);
    records
}

fn of_part(records: &[Record], is: impl Fn(LeverPart) -> bool) -> Vec<Record> {
    let is_one = |record: &&Record| record.levers.as_ref().is_some_and(|levers| is(levers.part));
    records.iter().filter(is_one).cloned().collect()
}

/// None where there are no such blocks.
pub fn seen(records: &[Record]) -> Option<GainsSeen> {
    let records = of_part(records, |part| part == LeverPart::Gains);
    let mut run = records.first()?.run.levers.clone()?;
    run.levers.truncate(LeverSet::MOST);
    let counted = Counted::of(&records);
    let is_refused = standing::standings(&records).refused.is_some();
    let cost = if is_refused || counted.is_noisy() { LeverCost::CpuSeconds } else { LeverCost::Seconds };
    let levers = run.levers.iter().enumerate();
    let all = LeverSet::of(levers.filter(|(_, lever)| lever.not_in_all.is_none()).map(|(place, _)| place));
    let contrasts = stats::contrasts(run.levers.len(), all);
    let (costs, lengths_s, noise) = judged_by(&records, &run, &counted, cost);
    let gains = stats::gains(&contrasts, &costs, &lengths_s, &noise);
    Some(GainsSeen { gains, blocks: counted.blocks.len(), run, cost, all })
}

type Judged = (SetCosts, BTreeMap<LeverSet, f64>, AaNoise);

/// Costs and lengths by set, and the noise of the A/A controls.
fn judged_by(records: &[Record], run: &LeverRun, counted: &Counted, cost: LeverCost) -> Judged {
    let set = |label: &str| {
        let record = records.iter().find(|record| record.target.label == label);
        record.map_or(LeverSet::BASE, |record| set_of(record, run))
    };
    let by_label = standing::by_target(records, counted, cost.of(), |_| true);
    let costs = by_label.into_iter().map(|(label, costs)| (set(label), costs)).collect();
    let lengths_s = standing::lengths_s(records, counted).into_iter().map(|(label, s)| (set(label), s)).collect();
    (costs, lengths_s, aa::noise(records, counted, cost.of()))
}

fn set_of(record: &Record, run: &LeverRun) -> LeverSet {
    let changed = record.levers.iter().flat_map(|levers| &levers.changed);
    let place = |name: &String| run.levers.iter().position(|lever| lever.name == *name);
    LeverSet::of(changed.filter_map(place))
}

/// The sets that were tried in fresh blocks, in their order.
pub fn attempts(records: &[Record]) -> Vec<Attempt> {
    let Some(GainsSeen { run, all, cost, .. }) = seen(records) else { return Vec::new() };
    let of = |number: u32| {
        let fresh = of_part(records, |part| part == LeverPart::Confirm { attempt: number });
        let is_set = |set: &LeverSet| *set != LeverSet::BASE && *set != all;
        let set = fresh.iter().map(|record| set_of(record, &run)).find(is_set)?;
        let counted = Counted::of(&fresh);
        let (costs, lengths_s, noise) = judged_by(&fresh, &run, &counted, cost);
        let gain = stats::gains(&[Contrast::together(set)], &costs, &lengths_s, &noise).pop();
        Some(Attempt { set, gain, confirmation: stats::confirmation(set, all, &costs, &lengths_s, &noise) })
    };
    (1..).map_while(of).collect()
}

/// None of records that are of no such run.
pub fn report(records: &[Record]) -> Result<Option<LeverReport>> {
    let Some(seen) = seen(records) else { return Ok(None) };
    let mut gains = of_part(records, |part| part == LeverPart::Gains);
    // The headline tells of the first one: what base is asked.
    gains.sort_by_key(|record| set_of(record, &seen.run) != LeverSet::BASE);
    let (synthetic, synthetic_gains) = synthetic(records, &gains, &seen);
    let mut levers = Vec::new();
    for (place, lever) in seen.run.levers.iter().enumerate() {
        let synthetic = stats::gain(&synthetic_gains, Contrast::alone(place)).copied();
        levers.push(LeverRow { synthetic, ..row(lever, place, &seen, &gains)? });
    }
    levers.sort_by(|one, other| other.worth().total_cmp(&one.worth()));
    let mut attempts = attempts(records);
    let tried = |attempt: &Attempt| TriedSet {
        levers: seen.changes(attempt.set),
        found: attempt.confirmation.map(|confirmation| confirmation.found),
    };
    Ok(Some(LeverReport {
        headline: words::headline(&gains, &standing::standings(&gains)),
        asked: asked(&gains[0], &seen.run.base),
        is_advice: seen.all == LeverSet::BASE,
        base: seen.run.base.clone(),
        job: gains[0].job.name.clone(),
        cost: seen.cost,
        blocks: seen.blocks,
        levers,
        together: stats::gain(&seen.gains, Contrast::together(seen.all)).copied(),
        tried_sets: attempts.iter().map(tried).collect(),
        enough: enough(&seen, attempts.pop()),
        synthetic,
        durability: levels(records),
        left_out: seen.run.left_out.clone(),
    }))
}

fn asked(record: &Record, base: &str) -> Vec<String> {
    if record.run.command.is_empty() {
        return typed::words(&["levers", &record.job.name, base]);
    }
    let mut asked = typed::again(&record.run.command);
    asked[0] = "levers".to_string();
    asked.retain(|word| word != "--json");
    ["--levers", "--budget"].iter().fold(asked, |asked, option| typed::without(asked, option))
}

fn row(lever: &RunLever, place: usize, seen: &GainsSeen, records: &[Record]) -> Result<LeverRow> {
    let counted = Counted::of(records).blocks;
    let of = |set: LeverSet, counts: &dyn Fn(&Record) -> bool| -> Vec<&Record> {
        let all = records.iter().filter(|record| set_of(record, &seen.run) == set && !record.aa_control);
        all.filter(|record| counts(record)).collect()
    };
    let alone = LeverSet::BASE.with(place);
    let gain = |contrast| stats::gain(&seen.gains, contrast).copied();
    let last = seen.all.has(place).then(|| gain(Contrast::last(place, seen.all))).flatten();
    let failed = of(alone, &|_| true).iter().find_map(|record| failure(record));
    let counts = |record: &Record| counted.contains(&record.block);
    Ok(LeverRow {
        name: lever.name.clone(),
        change: lever.change.clone(),
        pays: lever.pays.clone(),
        tried: lever.tried.clone(),
        alone: gain(Contrast::alone(place)),
        last,
        synthetic: None,
        not_in_all: lever.not_in_all.clone(),
        failed,
        counters: store_stats::changed(&of(LeverSet::BASE, &counts), &of(alone, &counts), COUNTERS)?,
    })
}

/// What the levers gain on set/get alone; `gains` are the records of the blocks of gains.
fn synthetic(records: &[Record], gains: &[Record], seen: &GainsSeen) -> (Option<SyntheticAnswer>, Vec<Gain>) {
    let records = of_part(records, |part| part == LeverPart::Synthetic);
    let Some(first) = records.first() else { return (None, Vec::new()) };
    let counted = Counted::of(&records);
    let (costs, lengths_s, noise) = judged_by(&records, &seen.run, &counted, seen.cost);
    let contrasts: Vec<Contrast> =
        costs.keys().filter(|set| set.count() == 1).map(|set| Contrast::together(*set)).collect();
    let is_base = |record: &&Record| set_of(record, &seen.run) == LeverSet::BASE && failure(record).is_none();
    let waiting: Vec<f64> = gains.iter().filter(is_base).filter_map(cells::waiting_share).collect();
    let answer = SyntheticAnswer {
        job: first.job.name.clone(),
        blocks: counted.blocks.len(),
        waiting_share: Sample::new(waiting).map(|sample| sample.median()),
    };
    (Some(answer), stats::gains(&contrasts, &costs, &lengths_s, &noise))
}

/// So many counters stand beside a lever.
const COUNTERS: usize = 2;

pub(super) fn failure(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Finished if record.is_right() => None,
        Outcome::Finished => Some("wrong answers".to_string()),
        Outcome::TimedOut { after_s, .. } => Some(format!("cut off after {after_s:.0} s")),
        Outcome::Refused { reason } | Outcome::Failed { reason } | Outcome::LeftOut { reason, .. } => {
            Some(reason.clone())
        }
        Outcome::Missing { reason, .. } => Some(reason.clone()),
    }
}

fn enough(seen: &GainsSeen, attempt: Option<Attempt>) -> EnoughLevers {
    let together = || stats::gain(&seen.gains, Contrast::together(seen.all)).copied();
    let words = |set| seen.changes(set);
    let is_short = |attempt: &Attempt| attempt.confirmation.is_some_and(|one| one.found == Confirmed::Short);
    match attempt {
        // What fell short and was not tried with one more is no answer: all are.
        Some(attempt) if !is_short(&attempt) => EnoughLevers {
            levers: words(attempt.set),
            is_all: false,
            gain: attempt.gain,
            confirmation: attempt.confirmation,
        },
        Some(attempt) => {
            EnoughLevers { levers: words(seen.all), is_all: true, gain: together(), confirmation: attempt.confirmation }
        }
        None => {
            let set = stats::first_set(seen.all, &seen.gains);
            let gain = if set == seen.all { together() } else { None };
            EnoughLevers { levers: words(set), is_all: set == seen.all && set.count() > 0, gain, confirmation: None }
        }
    }
}

/// The levels that were measured, the run's own first.
fn levels(records: &[Record]) -> Vec<LevelRow> {
    let records = of_part(records, |part| part == LeverPart::Durability);
    let mut parts = parts(&records);
    parts.sort_by_key(|part| part[0].durability);
    let costs = |part: &[Record]| {
        let counted = Counted::of(part);
        standing::by_target(part, &counted, Record::cost, |_| true).into_values().next().unwrap_or_default()
    };
    let Some(first) = parts.first().map(|part| costs(part)) else { return Vec::new() };
    let level = |(place, part): (usize, &Vec<Record>)| {
        let these = costs(part);
        let both = these.iter().filter_map(|(block, cost)| Some((*cost, *first.get(block)?)));
        let (these, others): (Vec<f64>, Vec<f64>) = both.unzip();
        let ratio = LogRatios::of(&these, &others).filter(|_| place > 0).map(|ratios| ratios.ratio());
        let failed = if these.is_empty() { part.iter().find_map(failure) } else { None };
        LevelRow { level: part[0].durability, keeps: part[0].keeps.clone(), ratio, blocks: these.len(), failed }
    };
    parts.iter().enumerate().map(level).collect()
}
