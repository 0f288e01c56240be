//! Who is faster than whom: every pair of targets compared, with claims that hold for all pairs together.

use std::collections::BTreeSet;

use serde::Serialize;

use super::floor::{AaNoise, Bar, beyond_one};
use super::holm;
use super::paired::{Interval, LEAST_BLOCKS, LogRatios, Ratio, logs};
use super::parallel;
use super::sample::TAIL;

/// Of runs whose targets are all the same, at most so many claim any difference.
pub const LEVEL: f64 = 0.05;

/// All targets that may be ranked together, with what each cost in each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    costs: Vec<Vec<f64>>,
    pairs: Vec<Pair>,
}

/// One target as seen from another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The targets' places in what the campaign was made of, from 0.
    pub one: usize,
    pub other: usize,
    /// What `one` costs, in what `other` costs.
    pub ratio: Ratio,
    /// Of "neither is faster", adjusted for all pairs of the campaign; none below [`LEAST_BLOCKS`].
    pub p: Option<f64>,
    pub claim: Option<Claim>,
    /// What a claim had to exceed; none where the run has no A/A control.
    pub bar: Option<Bar>,
    /// A claim was taken back, since the other one costs less in the blocks of some of the data.
    pub depends_on_data: bool,
}

/// What may be said of `one`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Faster,
    Slower,
}

impl Claim {
    /// Whether a ratio lies on the side of 1 that is claimed. Exactly 1 lies on neither.
    pub fn is_shown_by(self, ratio: f64) -> bool {
        match self {
            Claim::Faster => ratio < 1.0,
            Claim::Slower => ratio > 1.0,
        }
    }
}

/// How two targets stand to each other where none is claimed to be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaimed {
    /// The interval of their ratio lies within the noise floor: no difference that would be claimed is left.
    Tied,
    /// There may be one. So many blocks in all would tell, as far as these do; none where no number of blocks would, or
    /// where these should have been enough.
    NotSeparated { blocks: Option<usize> },
}

impl Campaign {
    /// `costs[target][block]`, less is better: at least one target and one block, as many blocks for each target, all
    /// costs above 0 and finite; `None` otherwise. `lengths_s` is how long a trial of each target takes, in seconds.
    /// `noise` is what the run's A/A controls say: without any nothing is claimed.
    pub fn new(costs: Vec<Vec<f64>>, lengths_s: &[f64], noise: &AaNoise) -> Option<Campaign> {
        if lengths_s.len() != costs.len() {
            return None;
        }
        let logs: Vec<Vec<f64>> = costs.iter().map(|costs| logs(costs)).collect::<Option<_>>()?;
        let first = logs.first()?;
        // Against the first, the first itself included: what may be compared with it may be with all.
        logs.iter().try_for_each(|logs| LogRatios::between(logs, first).map(|_| ()))?;
        let mut compared = Vec::new();
        for one in 0..logs.len() {
            for other in one + 1..logs.len() {
                compared.push((one, other, LogRatios::between(&logs[one], &logs[other])?));
            }
        }
        let bar = |one: usize, other: usize| noise.bar(lengths_s[one], lengths_s[other]);
        let pairs = judged(&compared, costs.len(), bar);
        Some(Campaign { costs, pairs })
    }

    /// The same with claims that hold for all of the data, where blocks had different data: `data[block]` tells which.
    /// A pair has a claim only if its estimate is on the claimed side of 1 in the blocks of each data. Without `data`,
    /// which has as many entries as there are blocks or none, all blocks had the same.
    pub fn holding_for_each(mut self, data: &[u64]) -> Campaign {
        let kinds: BTreeSet<u64> = if data.len() == self.blocks() { data.iter().copied().collect() } else { [].into() };
        let part = |costs: &[f64], kind: u64| -> Vec<f64> {
            costs.iter().zip(data).filter(|(_, of)| **of == kind).map(|(cost, _)| *cost).collect()
        };
        for pair in &mut self.pairs {
            let Some(claim) = pair.claim else { continue };
            let (one, other) = (&self.costs[pair.one], &self.costs[pair.other]);
            let of_kind =
                |kind: &u64| LogRatios::of(&part(one, *kind), &part(other, *kind)).expect("costs were checked");
            if !kinds.iter().all(|kind| claim.is_shown_by(of_kind(kind).ratio().estimate)) {
                (pair.claim, pair.depends_on_data) = (None, true);
            }
        }
        self
    }

    pub fn costs(&self) -> &[Vec<f64>] {
        &self.costs
    }

    pub fn targets(&self) -> usize {
        self.costs.len()
    }

    pub fn blocks(&self) -> usize {
        self.costs[0].len()
    }

    /// Every pair once, the target named first as `one`.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The pair as seen from `one`; `None` for a target and itself, and for targets that are none of the campaign.
    pub fn pair(&self, one: usize, other: usize) -> Option<Pair> {
        let (first, second) = (one.min(other), one.max(other));
        let pair = self.pairs.iter().find(|pair| (pair.one, pair.other) == (first, second))?;
        Some(if one == first { *pair } else { pair.turned() })
    }

    /// What each target costs of the one among these that costs least, whichever that is: a ratio to the best, whose
    /// intervals hold all together 95 times in 100. The best is no fixed reference: it is chosen by the same blocks.
    /// Therefore the intervals are those of multiple comparisons with the best (Hsu, Annals of Statistics 12, 1984):
    /// from intervals of a target's ratios to each of the others, which hold all together (Bonferroni over the pairs),
    /// the greatest lower end and the greatest upper end, and never below 1 where the target is among these itself.
    pub fn versus_best(&self, is_in: impl Fn(usize) -> bool) -> Vec<Ratio> {
        let pairs: Vec<&Pair> = self.pairs.iter().filter(|pair| is_in(pair.one) || is_in(pair.other)).collect();
        let tail = LEVEL / 2.0 / pairs.len().max(1) as f64;
        let ratios = parallel::map(&pairs, self.blocks() >= MANY_BLOCKS, |pair| {
            let ratios = LogRatios::of(&self.costs[pair.one], &self.costs[pair.other]);
            ratios.expect("costs were checked").ratio_at(tail)
        });
        let seen_from = |target: usize| {
            let both = pairs
                .iter()
                .zip(&ratios)
                .flat_map(|(pair, ratio)| [(pair.one, pair.other, *ratio), (pair.other, pair.one, ratio.inverse())]);
            both.filter(|(one, other, _)| *one == target && is_in(*other)).map(|(.., ratio)| ratio).collect::<Vec<_>>()
        };
        (0..self.targets()).map(|target| greatest(&seen_from(target), is_in(target))).collect()
    }

    /// How the two stand to each other where none is claimed to be faster. `most` blocks may be run at the most.
    pub fn unclaimed(&self, one: usize, other: usize, most: usize) -> Option<Unclaimed> {
        let pair = self.pair(one, other).filter(|pair| pair.claim.is_none() && !pair.depends_on_data)?;
        let Some(bar) = pair.bar else { return Some(Unclaimed::NotSeparated { blocks: None }) };
        if pair.ratio.interval.far_end().is_some_and(|far| far <= bar.floor) {
            return Some(Unclaimed::Tied);
        }
        let ratios = LogRatios::of(&self.costs[one], &self.costs[other])?;
        let (apart, floor) = (libm::log(pair.ratio.estimate).abs(), libm::log(1.0 + bar.floor));
        let blocks = match apart > floor {
            // The smallest p-value of Holm's adjustment is one of all pairs.
            true => {
                let tail = LEVEL / 2.0 / self.pairs.len() as f64;
                let clear = apart - libm::log(1.0 + bar.near_end);
                ratios.blocks_for(clear, tail, most).map(|blocks| blocks.max(needed_blocks(self.targets())))
            }
            false => ratios.blocks_for(floor - apart, TAIL, most),
        };
        Some(Unclaimed::NotSeparated { blocks: blocks.filter(|blocks| *blocks > self.blocks()) })
    }

    /// For each target the best and the worst place that it may have, from 1: no better than behind those that are
    /// surely faster, no worse than before those that are surely slower.
    pub fn ranks(&self) -> Vec<(usize, usize)> {
        let mut ranks = vec![(1, self.targets()); self.targets()];
        for pair in &self.pairs {
            let (winner, loser) = match pair.claim {
                Some(Claim::Faster) => (pair.one, pair.other),
                Some(Claim::Slower) => (pair.other, pair.one),
                None => continue,
            };
            ranks[winner].1 -= 1;
            ranks[loser].0 += 1;
        }
        ranks
    }
}

/// The greatest of these ratios, with the greatest of either ends: 1 at least where the target is one of those that it
/// is compared with.
fn greatest(ratios: &[Ratio], is_in: bool) -> Ratio {
    let least = if is_in { 1.0 } else { 0.0 };
    let greatest = |of: &dyn Fn(&Ratio) -> Option<f64>| ratios.iter().filter_map(of).fold(least, f64::max);
    let low = greatest(&|ratio| Some(ratio.interval.bounds()?.0));
    let high = greatest(&|ratio| Some(ratio.interval.bounds()?.1));
    let interval = match ratios.first().map(|ratio| ratio.interval) {
        Some(Interval::Exact { .. }) => Interval::Exact { low, high },
        Some(Interval::Preliminary { .. }) => Interval::Preliminary { low, high },
        Some(Interval::None) | None => Interval::None,
    };
    Ratio { estimate: greatest(&|ratio| Some(ratio.estimate)), interval }
}

impl Pair {
    /// The same, seen from the other side.
    pub fn turned(self) -> Pair {
        let claim = self.claim.map(|claim| match claim {
            Claim::Faster => Claim::Slower,
            Claim::Slower => Claim::Faster,
        });
        Pair { one: self.other, other: self.one, ratio: self.ratio.inverse(), claim, ..self }
    }
}

/// How many blocks it takes until Wilcoxon's signed ranks can tell any two of so many targets apart, six at least. The
/// smallest p-value of n blocks is 2 / 2^n, and Holm asks the smallest of m pairs to be at most 0.05 / m: with fewer
/// blocks no difference, however large, could ever be claimed.
pub fn needed_blocks(targets: usize) -> usize {
    blocks_for(targets * targets.saturating_sub(1) / 2, LEVEL)
}

/// The same of so many planned comparisons, of which any is to be claimed wrongly in a share `level` of runs.
pub fn blocks_for(comparisons: usize, level: f64) -> usize {
    // 2 / 2^n <= level / m; six is where the exact interval begins.
    let enough = |blocks: &usize| 2.0 * comparisons as f64 <= level * libm::exp2(*blocks as f64);
    (6..128).find(enough).expect("comparisons are counted in 64 bits")
}

fn judged(
    compared: &[(usize, usize, LogRatios)],
    targets: usize,
    bar: impl Fn(usize, usize) -> Option<Bar>,
) -> Vec<Pair> {
    let many = compared.iter().any(|(_, _, ratios)| ratios.blocks() >= MANY_BLOCKS);
    let p_values = parallel::map(compared, many, |(_, _, ratios)| p_value(ratios, targets));
    let p_values: Option<Vec<f64>> = p_values.into_iter().collect();
    let adjusted = p_values.map(|p_values| holm::adjusted(&p_values));
    let ratios = parallel::map(compared, many, |(_, _, ratios)| ratios.ratio());
    let pairs = compared.iter().zip(ratios).enumerate().map(|(index, ((one, other, _), ratio))| {
        let p = adjusted.as_ref().map(|adjusted| adjusted[index]);
        let bar = bar(*one, *other);
        let claim = p.filter(|p| *p <= LEVEL).zip(bar).and_then(|(_, bar)| claim(ratio, bar));
        Pair { one: *one, other: *other, ratio, p, claim, bar, depends_on_data: false }
    });
    pairs.collect()
}

/// From so many blocks on a pair takes longer than starting a thread.
const MANY_BLOCKS: usize = 200;

/// By Wilcoxon where it can say anything at all, else by Student's t, which can, and which errs on the side of silence
/// where blocks are out of line. The number of blocks decides. Where a run ends by itself that number depends on how
/// wide the intervals are, and on nothing else that the blocks showed: `tests/campaigns` tries such runs.
fn p_value(ratios: &LogRatios, targets: usize) -> Option<f64> {
    match ratios.blocks() {
        blocks if blocks >= needed_blocks(targets) => Some(ratios.wilcoxon()),
        blocks if blocks >= LEAST_BLOCKS => ratios.student(),
        _ => None,
    }
}

/// What a ratio shows by itself: it is beyond the noise floor, and the near end of its interval is further from 1 than
/// is asked of that.
pub fn claim(ratio: Ratio, bar: Bar) -> Option<Claim> {
    let far = beyond_one(ratio.estimate) > bar.floor;
    let clear = ratio.interval.near_end().is_some_and(|near| near > bar.near_end);
    if !far || !clear {
        return None;
    }
    Some(if ratio.estimate < 1.0 { Claim::Faster } else { Claim::Slower })
}

#[cfg(test)]
mod tests;
