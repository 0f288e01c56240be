//! Which trials count, and where the targets stand: differences that may be claimed, ranks, and how far apart the same
//! store came out when it was run twice.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::versus::{self, Versus};
use super::{aa, costs};
use kvfair_core::effort::{BLOCKS_MAX, CLAIM_BLOCKS};
use kvfair_core::noise::discarded_blocks;
use kvfair_core::preflight::Severity;
use kvfair_core::record::{Outcome, Record};
use kvfair_stats::floor::{AaNoise, Bar, Control};
use kvfair_stats::parallel;
use kvfair_stats::rank::{Campaign, Claim, Pair, Unclaimed};
use kvfair_stats::sample::Sample;
use kvfair_stats::shift::{self, Drift};

/// Most is more than half.
const DISCARDED_SHARE_MAX: f64 = 0.5;

/// The blocks of a run, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Those that count.
    pub blocks: BTreeSet<u32>,
    /// Those that were discarded by what the machine did besides.
    pub discarded: BTreeSet<u32>,
    /// The seed of each block's data, where blocks had data of several in turn.
    pub seeds: BTreeMap<u32, u64>,
}

impl Counted {
    pub fn of(records: &[Record]) -> Counted {
        // Of a block that was cut off there may be no more than the second trial of an A/A control.
        let all = || records.iter().filter(|record| record.block > 0 && !record.aa_control);
        // Where nothing is claimed nothing need be discarded.
        let claims = records.first().is_some_and(|record| record.run.blocks >= CLAIM_BLOCKS);
        let discarded = discarded_blocks(records.iter().map(|record| (record.block, &record.noise)).filter(|_| claims));
        let quiet: BTreeSet<u32> =
            all().map(|record| record.block).filter(|block| !discarded.contains(block)).collect();
        if quiet.is_empty() && discarded.is_empty() {
            // Nothing else was finished: what there is is shown, and nothing is ranked.
            return Counted { blocks: BTreeSet::from([0]), discarded, seeds: BTreeMap::new() };
        }
        let in_turn = records.iter().filter(|record| !record.run.seeds.data.is_empty());
        let seeds = in_turn.map(|record| (record.block, record.job.seed())).collect();
        let quiet_ones = Counted { blocks: quiet, discarded, seeds };
        // Of a machine that was noisy for most of the time a few quiet moments are no fair sample: all blocks are used,
        // and claims must be beyond the far end of the A/A interval.
        match quiet_ones.is_noisy() {
            true => Counted { blocks: &quiet_ones.blocks | &quiet_ones.discarded, ..quiet_ones },
            false => quiet_ones,
        }
    }

    /// Whether what it came to is counted: not in the block before the first, not the reference's second time.
    pub fn has(&self, record: &Record) -> bool {
        self.blocks.contains(&record.block) && !record.aa_control
    }

    /// Most blocks were discarded.
    pub fn is_noisy(&self) -> bool {
        let all = self.blocks.union(&self.discarded).count();
        self.discarded.len() as f64 > all as f64 * DISCARDED_SHARE_MAX
    }
}

/// Everything that is known of differences in a run.
pub struct Standings<'a> {
    records: &'a [Record],
    pub counted: Counted,
    /// The A/A controls by seconds, the shortest first.
    pub repeated: Vec<aa::Repeated<'a>>,
    /// What they say of seconds.
    pub noise: AaNoise,
    /// Seconds, by group; baselines have no part in it.
    pub groups: BTreeMap<String, Standing<'a>>,
    /// Why times are not ranked.
    pub refused: Option<Refused>,
}

/// What the durability level promises cannot hold on this machine: times are not ranked, however many blocks there are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// The reason's name.
    pub finding: &'static str,
}

impl Refused {
    pub fn in_words(&self) -> String {
        format!("What the durability level promises cannot hold here ({}): times are not ranked.", self.finding)
    }
}

/// Compares the targets of a run with each other.
pub fn standings(records: &[Record]) -> Standings<'_> {
    let counted = Counted::of(records);
    let repeated = aa::repeated(records, &counted, Record::cost);
    let noise = AaNoise::of(repeated.iter().map(aa::Repeated::control), counted.is_noisy());
    let mut labels: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.target.baseline) {
        labels.entry(costs::group(record)).or_default().insert(&record.target.label);
    }
    let lengths_s = lengths_s(records, &counted);
    let standing = |labels: BTreeSet<&str>| {
        let costs = by_target(records, &counted, Record::cost, |label| labels.contains(label));
        Standing::new(costs, &lengths_s, &noise, &counted.seeds)
    };
    let groups = labels.into_iter().filter_map(|(group, labels)| Some((group, standing(labels)?))).collect();
    Standings { records, refused: machine(records), counted, repeated, noise, groups }
}

/// What was seen before the run and rules out what is asked for.
fn machine(records: &[Record]) -> Option<Refused> {
    let (record, preflight) = records.iter().find_map(|record| Some((record, record.machine.preflight.as_ref()?)))?;
    let mut findings = preflight.findings(record.durability).into_iter();
    let refusing = findings.find(|finding| finding.weight == Severity::Refuse)?;
    Some(Refused { finding: refusing.id })
}

impl<'a> Standings<'a> {
    /// CPU of client and server for an op, in all groups and baselines too: what is used up does not wait. Found out
    /// anew, for the few who ask.
    pub fn cpu(&self) -> Option<Standing<'a>> {
        self.by(costs::cpu_s, |_| true)
    }

    /// By any cost, of the targets that `of` names: in the blocks in which all of them have it.
    pub fn by(
        &self,
        cost: impl Fn(&Record) -> Option<f64> + Copy + Sync,
        of: impl Fn(&str) -> bool + Sync,
    ) -> Option<Standing<'a>> {
        let (records, counted) = (self.records, &self.counted);
        let noise = aa::noise(records, counted, cost);
        let costs = by_target(records, counted, cost, of);
        Standing::new(costs, &lengths_s(records, counted), &noise, &counted.seeds)
    }

    /// Blocks that count.
    pub fn blocks(&self) -> usize {
        self.counted.blocks.len()
    }

    /// Whether times may be ranked at all: enough blocks, and a target that was run twice in each.
    pub fn may_rank(&self) -> bool {
        self.refused.is_none() && self.blocks() >= CLAIM_BLOCKS as usize && !self.noise.controls().is_empty()
    }

    /// Most blocks were discarded, or an A/A interval is wide or leaves out 1.
    pub fn is_noisy(&self) -> bool {
        self.noise.most_discarded() || self.noise.controls().iter().any(Control::is_noisy)
    }
}

/// The targets of one group against each other, in whole blocks.
pub struct Standing<'a> {
    pub targets: Vec<&'a str>,
    pub blocks: usize,
    campaign: Campaign,
}

/// A target's costs by block.
type Costs<'a> = BTreeMap<&'a str, BTreeMap<u32, f64>>;

impl<'a> Standing<'a> {
    /// Of so many targets that each have a cost in the same blocks; `None` where they have no block in common.
    /// `lengths_s` is how long a trial of each takes. What is claimed holds for each of the seeds that blocks had their
    /// data of.
    pub fn new(
        costs: Costs<'a>,
        lengths_s: &BTreeMap<&str, f64>,
        noise: &AaNoise,
        seeds: &BTreeMap<u32, u64>,
    ) -> Option<Standing<'a>> {
        let whole = common_blocks(&costs)?;
        let lengths_s: Vec<f64> = costs.keys().map(|label| lengths_s.get(label).copied().unwrap_or_default()).collect();
        let seeds: Vec<u64> = whole.iter().filter_map(|block| seeds.get(block).copied()).collect();
        let table = costs.values().map(|by_block| whole.iter().map(|block| by_block[block]).collect()).collect();
        let campaign = Campaign::new(table, &lengths_s, noise)?.holding_for_each(&seeds);
        Some(Standing { targets: costs.into_keys().collect(), blocks: whole.len(), campaign })
    }

    /// What one costs of what the other costs, where both are known.
    pub fn versus(&self, one: &str, other: &str) -> Option<Versus> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        if one == other {
            return Some(Versus { ratio: 1.0, low: None, high: None, preliminary: false });
        }
        Some(self.campaign.pair(one, other)?.ratio.into())
    }

    /// What each costs of whichever of these costs least, with intervals that hold all together: of the best one too,
    /// since another one may be it.
    pub fn versus_best(&self, is_in: impl Fn(&str) -> bool) -> BTreeMap<&'a str, Versus> {
        let ratios = self.campaign.versus_best(|place| is_in(self.targets[place]));
        self.targets.iter().copied().zip(ratios.into_iter().map(Versus::from)).collect()
    }

    /// The one costs less, and would tomorrow.
    pub fn is_less(&self, one: &str, other: &str) -> bool {
        self.pair(one, other).is_some_and(|pair| pair.claim == Some(Claim::Faster))
    }

    /// Whether any target is claimed to cost less than another.
    pub fn claims_any(&self) -> bool {
        self.campaign.pairs().iter().any(|pair| pair.claim.is_some())
    }

    /// Which of the two costs less was another one for another seed's data.
    pub fn depends_on_data(&self, one: &str, other: &str) -> bool {
        self.pair(one, other).is_some_and(|pair| pair.depends_on_data)
    }

    /// How the two stand to each other where none is claimed to cost less, whatever the data.
    pub fn unclaimed(&self, one: &str, other: &str) -> Option<Unclaimed> {
        self.campaign.unclaimed(self.place(one)?, self.place(other)?, BLOCKS_MAX as usize)
    }

    /// What one costs of what the other costs, in words: "1.29x [1.23-1.34]"; where the noise allows to tell no more
    /// than the near end, "at least 36x".
    pub fn in_words(&self, one: &str, other: &str) -> Option<String> {
        Some(versus::claimed(self.pair(one, other)?.ratio.into(), self.is_noisy(one, other)))
    }

    /// The same in one word or two: "1.29x", "≥36x".
    pub fn in_brief(&self, one: &str, other: &str) -> Option<String> {
        Some(versus::claimed_in_brief(self.pair(one, other)?.ratio.into(), self.is_noisy(one, other)))
    }

    /// Whether the noise allows to tell no more of the two than the near end.
    pub fn is_noisy(&self, one: &str, other: &str) -> bool {
        self.pair(one, other).and_then(|pair| pair.bar).is_some_and(|bar| bar.is_noisy)
    }

    /// The noise allows to tell no more than the near end of some pair.
    pub fn has_noise(&self) -> bool {
        self.campaign.pairs().iter().any(|pair| pair.bar.is_some_and(|bar| bar.is_noisy))
    }

    /// The run has an A/A control: differences may be claimed.
    pub fn has_controls(&self) -> bool {
        self.campaign.pairs().iter().all(|pair| pair.bar.is_some())
    }

    /// What a difference of the two must exceed; none without an A/A control.
    pub fn bar(&self, one: &str, other: &str) -> Option<Bar> {
        self.pair(one, other)?.bar
    }

    fn pair(&self, one: &str, other: &str) -> Option<Pair> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        self.campaign.pair(one, other)
    }

    /// The best and the worst place that a target may have among the others.
    pub fn rank(&self, target: &str) -> Option<(usize, usize)> {
        Some(self.campaign.ranks()[self.place(target)?])
    }

    /// The targets whose cost goes one way from block to block.
    pub fn drifts(&self) -> Vec<(&'a str, Drift)> {
        let drifts = shift::across(self.campaign.costs());
        self.targets.iter().zip(drifts).filter_map(|(target, drift)| Some((*target, drift?))).collect()
    }

    /// Whoever costs least at the median.
    pub fn fastest(&self) -> Option<&'a str> {
        let median = |costs: &Vec<f64>| Sample::new(costs.clone()).map_or(f64::MAX, |sample| sample.median());
        let named = self.targets.iter().zip(self.campaign.costs());
        named.min_by(|one, other| median(one.1).total_cmp(&median(other.1))).map(|(target, _)| *target)
    }

    fn place(&self, target: &str) -> Option<usize> {
        self.targets.iter().position(|name| *name == target)
    }
}

fn common_blocks(costs: &Costs<'_>) -> Option<Vec<u32>> {
    let mut all = costs.values();
    let first: BTreeSet<u32> = all.next()?.keys().copied().collect();
    let whole = all.fold(first, |blocks, by_block| blocks.into_iter().filter(|b| by_block.contains_key(b)).collect());
    Some(whole.into_iter().collect()).filter(|whole: &Vec<u32>| !whole.is_empty())
}

/// What every right trial that counts cost, by target.
pub fn by_target<'a>(
    records: &'a [Record],
    counted: &Counted,
    cost: impl Fn(&Record) -> Option<f64> + Sync,
    of: impl Fn(&str) -> bool + Sync,
) -> Costs<'a> {
    let is_right = |record: &Record| record.outcome == Outcome::Finished && record.is_right() && counted.has(record);
    let each = parallel::map(records, costs::is_many(records), |record| {
        if is_right(record) && of(&record.target.label) { cost(record) } else { None }
    });
    let mut costs = Costs::new();
    for (record, cost) in records.iter().zip(each) {
        if let Some(cost) = cost {
            costs.entry(&record.target.label).or_default().insert(record.block, cost);
        }
    }
    costs
}

/// How long a trial of each target takes: the median of those that count, in seconds.
pub fn lengths_s<'a>(records: &'a [Record], counted: &Counted) -> BTreeMap<&'a str, f64> {
    let took = by_target(records, counted, Record::took_s, |_| true).into_iter();
    let median = |took_s: BTreeMap<u32, f64>| Some(Sample::new(took_s.into_values().collect())?.median());
    took.filter_map(|(label, took_s)| Some((label, median(took_s)?))).collect()
}
