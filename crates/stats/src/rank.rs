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
    /// A pair whose estimate points the other way in the blocks of some of it has no claim. Without `data`, which has
    /// as many entries as there are blocks or none, all blocks had the same.
    pub fn holding_for_each(mut self, data: &[u64]) -> Campaign {
        let kinds: BTreeSet<u64> = if data.len() == self.blocks() { data.iter().copied().collect() } else { [].into() };
        let part = |costs: &[f64], kind: u64| -> Vec<f64> {
            costs.iter().zip(data).filter(|(_, of)| **of == kind).map(|(cost, _)| *cost).collect()
        };
        for pair in self.pairs.iter_mut().filter(|pair| pair.claim.is_some()) {
            let (one, other) = (&self.costs[pair.one], &self.costs[pair.other]);
            let of_kind =
                |kind: &u64| LogRatios::of(&part(one, *kind), &part(other, *kind)).expect("costs were checked");
            let is_less = pair.claim == Some(Claim::Faster);
            if kinds.iter().any(|kind| (of_kind(kind).ratio().estimate < 1.0) != is_less) {
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

/// What a ratio shows by itself: its interval has no room for 1, it is beyond the noise floor, and its near end is
/// beyond what is asked of that.
pub fn claim(ratio: Ratio, bar: Bar) -> Option<Claim> {
    let far = beyond_one(ratio.estimate) > bar.floor;
    let clear = ratio.interval.near_end().is_some_and(|near| near > bar.near_end);
    if !far || !clear || ratio.interval.contains(1.0) {
        return None;
    }
    Some(if ratio.estimate < 1.0 { Claim::Faster } else { Claim::Slower })
}

#[cfg(test)]
mod tests {
    use super::super::floor::Control;
    use super::*;

    /// So many targets, each slower than the one before it by a factor, with a little noise that differs by block.
    fn stairs(factors: &[f64], blocks: usize) -> Vec<Vec<f64>> {
        let noise = |target: usize, block: usize| 1.0 + ((target * 7 + block * 13) % 11) as f64 / 1e4;
        let costs = |(target, factor): (usize, &f64)| (0..blocks).map(|block| factor * noise(target, block)).collect();
        factors.iter().enumerate().map(costs).collect()
    }

    /// Of an A/A control whose interval is as wide as this to either side.
    fn quiet(width: f64) -> AaNoise {
        let interval = Interval::Exact { low: 1.0 / (1.0 + width), high: 1.0 + width };
        AaNoise::of([Control { interval, length_s: 1.0 }], false)
    }

    fn of(costs: Vec<Vec<f64>>, noise: &AaNoise) -> Option<Campaign> {
        let lengths_s = vec![1.0; costs.len()];
        Campaign::new(costs, &lengths_s, noise)
    }

    #[test]
    fn claims_and_ranks_of_targets_that_differ() {
        let campaign = of(stairs(&[1.0, 1.5, 1.501, 2.0], 9), &quiet(0.0)).unwrap();
        assert_eq!(campaign.ranks(), [(1, 1), (2, 3), (2, 3), (4, 4)]);
        let pair = campaign.pair(3, 0).unwrap();
        assert_eq!((pair.one, pair.other, pair.claim), (3, 0, Some(Claim::Slower)));
        assert!((pair.ratio.estimate - 2.0).abs() < 0.01);
        let back = campaign.pair(0, 3).unwrap();
        assert_eq!((back.claim, back.p), (Some(Claim::Faster), pair.p));
        assert_eq!(campaign.pair(1, 2).unwrap().claim, None);
        assert_eq!((campaign.pair(1, 1), campaign.pair(0, 4)), (None, None));
    }

    #[test]
    fn no_claim_below_four_blocks_nor_below_the_floor() {
        let ranks = |factors: &[f64], blocks, floor| of(stairs(factors, blocks), &quiet(floor)).unwrap().ranks();
        let (apart, together) = ([(1, 1), (2, 2)], [(1, 2), (1, 2)]);
        assert_eq!(ranks(&[1.0, 1.5], 3, 0.0), together);
        assert_eq!(ranks(&[1.0, 1.5], 4, 0.0), apart);
        assert_eq!(ranks(&[1.0, 1.015], 10, 0.0), together, "1.5 % is never claimed");
        assert_eq!(ranks(&[1.0, 1.03], 10, 0.0), apart);
        assert_eq!(ranks(&[1.0, 1.03], 10, 0.04), together, "the same target was 4 % from itself");
        assert_eq!(ranks(&[1.0], 10, 0.0), [(1, 1)]);
    }

    #[test]
    fn without_a_control_nothing_is_claimed_and_noise_leaves_what_is_far_beyond_it() {
        let claim = |factor, noise: &AaNoise| of(stairs(&[1.0, factor], 9), noise).unwrap().pair(1, 0).unwrap();
        assert_eq!(claim(46.0, &AaNoise::default()).claim, None);
        let noisy = quiet(0.34);
        assert_eq!(claim(1.3, &noisy).claim, None);
        let found = claim(2.0, &noisy);
        assert!(found.claim == Some(Claim::Slower) && found.bar.unwrap().is_noisy);
        assert!(!claim(2.0, &quiet(0.01)).bar.unwrap().is_noisy);
    }

    /// The estimate is 1.5, and the near end of its interval 1.2.
    #[test]
    fn where_most_blocks_were_discarded_the_near_end_must_be_beyond_the_far_end() {
        let costs = || vec![vec![1.0; 6], vec![1.2, 1.3, 1.45, 1.55, 1.7, 1.8]];
        let claim = |width: f64, most_discarded| {
            let controls = quiet(width).controls().to_vec();
            of(costs(), &AaNoise::of(controls, most_discarded)).unwrap().pair(1, 0).unwrap().claim
        };
        assert_eq!(claim(0.3, false), Some(Claim::Slower));
        assert_eq!(claim(0.3, true), None);
        assert_eq!(claim(0.19, true), Some(Claim::Slower));
    }

    #[test]
    fn blocks_are_enough_where_the_smallest_p_value_is_just_small_enough() {
        // 2 * 8 / 2^6 = 0.25.
        assert_eq!([8, 9].map(|comparisons| blocks_for(comparisons, 0.25)), [6, 7]);
    }

    /// Twelve blocks in which the second target costs 30 % more with two kinds of data and 10 % less with the third.
    #[test]
    fn a_claim_that_some_data_denies_is_none() {
        let factor = |block: usize| if block % 3 == 2 { 0.9 } else { 1.3 };
        let noise = |block: usize| 1.0 + (block * 13 % 11) as f64 / 1e4;
        let costs: Vec<Vec<f64>> = vec![
            (0..12).map(noise).collect(),
            (0..12).map(|block| factor(block) * noise(block)).collect(),
            (0..12).map(|block| 2.0 * noise(block + 5)).collect(),
        ];
        let in_turn: Vec<u64> = (0..12).map(|block| block % 3).collect();
        let campaign = of(costs, &quiet(0.0)).unwrap();
        assert_eq!(campaign.ranks(), [(1, 1), (2, 2), (3, 3)], "over all blocks the first is faster");
        assert_eq!(campaign.clone().holding_for_each(&[]), campaign);
        assert_eq!(campaign.clone().holding_for_each(&[7; 12]), campaign);
        let campaign = campaign.holding_for_each(&in_turn);
        assert_eq!(campaign.ranks(), [(1, 2), (1, 2), (3, 3)]);
        let depends = |one, other| campaign.pair(one, other).unwrap().depends_on_data;
        assert!(depends(0, 1) && depends(1, 0) && !depends(0, 2) && !depends(1, 2));
        let slower =
            of(vec![(0..12).map(|block| 2.0 * noise(block + 5)).collect(), (0..12).map(noise).collect()], &quiet(0.0));
        let slower = slower.unwrap();
        assert_eq!(slower.ranks(), [(2, 2), (1, 1)]);
        assert_eq!(slower.clone().holding_for_each(&in_turn), slower, "no data denies it");
    }

    /// By hand, of logarithms: three targets have 3 pairs, so that each interval is one of 1 - 0.05 / 3. Seven blocks
    /// are enough, and its ends are the first averages from either end.
    #[test]
    fn intervals_beside_the_best_are_the_greatest_of_those_beside_each() {
        let costs: Vec<Vec<f64>> = vec![
            (0..7).map(|block| 1.0 + f64::from(block) / 100.0).collect(),
            vec![1.02; 7],
            (0..7).map(|block| 2.0 + f64::from(block) / 10.0).collect(),
        ];
        let seen = of(costs, &quiet(0.0)).unwrap().versus_best(|_| true);
        let bounds: Vec<(f64, f64)> = seen.iter().map(|ratio| ratio.interval.bounds().unwrap()).collect();
        let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() + (one.1 - other.1).abs() < 1e-9;
        // Of the first beside the second: 1 / 1.02 to 1.06 / 1.02, and what it is beside the third is below 1.
        assert!(near(bounds[0], (1.0, 1.06 / 1.02)), "{bounds:?}");
        assert!(near(bounds[1], (1.0, 1.02)), "{bounds:?}");
        // Beside the second 2 / 1.02 to 2.6 / 1.02, beside the first 2 to 2.6 / 1.06.
        assert!(near(bounds[2], (2.0, 2.6 / 1.02)), "{bounds:?}");
        assert!(seen.iter().all(|ratio| matches!(ratio.interval, Interval::Exact { .. })));
        assert!(seen.iter().all(|ratio| ratio.estimate >= 1.0 && ratio.interval.contains(ratio.estimate)));
    }

    /// Eight targets need 11 blocks for exact intervals, and one that is no candidate may cost less than they do.
    #[test]
    fn intervals_beside_the_best_are_preliminary_of_few_blocks_and_of_others_too() {
        let kind = |blocks| of(stairs(&[1.0; 8], blocks), &quiet(0.0)).unwrap().versus_best(|_| true)[0].interval;
        assert!(matches!(kind(11), Interval::Exact { .. }));
        assert!(matches!(kind(10), Interval::Preliminary { .. }));
        assert_eq!(kind(3), Interval::None);
        let seen = of(stairs(&[1.0, 2.0, 4.0], 8), &quiet(0.0)).unwrap().versus_best(|target| target > 0);
        let (low, high) = seen[0].interval.bounds().unwrap();
        assert!(low < 0.5 && 0.5 < high && high < 0.51, "{low} {high}");
        assert_eq!(of(stairs(&[1.0], 8), &quiet(0.0)).unwrap().versus_best(|_| true)[0].interval, Interval::None);
    }

    /// Four blocks in which one of three takes 1.56 to 2.08 times as long are no tie, and more would tell.
    #[test]
    fn a_tie_lies_within_the_noise_floor() {
        let of =
            |second: [f64; 4], floor| of(vec![vec![1.0; 4], second.to_vec(), vec![9.0; 4]], &quiet(floor)).unwrap();
        let wide = [1.56, 2.08, 1.60, 2.00];
        let campaign = of(wide, 0.9);
        assert_eq!(campaign.pair(0, 1).unwrap().claim, None);
        assert!(matches!(campaign.unclaimed(0, 1, 1_000), Some(Unclaimed::NotSeparated { blocks: Some(5..) })));
        assert_eq!(campaign.unclaimed(0, 2, 1_000), None, "that is a claim");
        assert_eq!(of([1.01, 1.0, 1.015, 1.005], 0.04).unclaimed(0, 1, 1_000), Some(Unclaimed::Tied));
        let far = of([1.0, 3.0, 0.9, 2.6], 0.02);
        let Some(Unclaimed::NotSeparated { blocks: Some(blocks) }) = far.unclaimed(1, 0, 1_000) else { panic!() };
        assert!((8..40).contains(&blocks), "{blocks}");
        assert_eq!(far.unclaimed(1, 0, blocks - 1), Some(Unclaimed::NotSeparated { blocks: None }));
    }

    /// Eleven blocks of eight targets can be ranked by Wilcoxon, ten only by Student's t.
    #[test]
    fn any_number_of_blocks_can_tell_targets_apart() {
        let factors: Vec<f64> = (0..8).map(|step| 1.1_f64.powi(step)).collect();
        for blocks in [4, 5, 6, 10, 11] {
            let campaign = of(stairs(&factors, blocks), &quiet(0.0)).unwrap();
            let expected: Vec<(usize, usize)> = (1..=8).map(|place| (place, place)).collect();
            assert_eq!(campaign.ranks(), expected, "{blocks} blocks");
        }
    }

    /// Against the distribution itself: n blocks that all agree are significant, one block fewer is not.
    #[test]
    fn needed_blocks_are_the_least_that_can_be_significant() {
        for targets in 2..=40 {
            let pairs = targets * (targets - 1) / 2;
            let smallest = |blocks: usize| {
                let agreed: Vec<f64> = (0..blocks).map(|block| 2.0 + block as f64).collect();
                LogRatios::of(&agreed, &vec![1.0; blocks]).unwrap().wilcoxon() * pairs as f64
            };
            let needed = needed_blocks(targets);
            assert!(smallest(needed) <= LEVEL, "{targets} targets, {needed} blocks");
            assert!(smallest(needed - 1) > LEVEL, "{targets} targets, {needed} blocks");
        }
        assert_eq!([1, 2, 3, 5, 8, 12].map(needed_blocks), [6, 6, 7, 9, 11, 12]);
    }

    #[test]
    fn what_is_no_campaign_is_none() {
        let of = |costs| of(costs, &quiet(0.0));
        assert_eq!(of(vec![]), None);
        assert_eq!(of(vec![vec![]]), None);
        assert_eq!(of(vec![vec![1.0], vec![1.0, 2.0]]), None);
        assert_eq!(of(vec![vec![0.0]]), None);
        assert_eq!(Campaign::new(vec![vec![1.0]], &[], &quiet(0.0)), None);
    }

    #[test]
    fn the_number_of_blocks_decides_which_test_is_asked() {
        let ratios = |blocks: usize| {
            let costs: Vec<f64> = (0..blocks).map(|block| 2.0 + block as f64).collect();
            LogRatios::of(&costs, &vec![1.0; blocks]).unwrap()
        };
        let (few, enough) = (ratios(needed_blocks(2) - 1), ratios(needed_blocks(2)));
        assert_eq!(p_value(&ratios(LEAST_BLOCKS - 1), 2), None);
        assert!(few.student().is_some() && few.student() != Some(few.wilcoxon()));
        assert_eq!((p_value(&few, 2), p_value(&enough, 2)), (few.student(), Some(enough.wilcoxon())));
    }
}
