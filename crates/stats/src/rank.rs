//! Who is faster than whom: every pair of targets compared, with claims that hold for all pairs together.

use std::collections::BTreeSet;

use serde::Serialize;

use super::floor::{AaNoise, Bar, beyond_one};
use super::holm;
use super::paired::{LEAST_BLOCKS, LogRatios, Ratio, logs};
use super::parallel;

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
/// where blocks are out of line. How many blocks there are decides, never what they showed.
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
    use super::super::paired::Interval;
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
