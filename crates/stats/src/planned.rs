//! Planned contrasts: pairs that were chosen before anything was measured. They alone are judged, with Holm's
//! adjustment over them.

use std::collections::BTreeMap;

use super::floor::{AaNoise, Bar};
use super::paired::{LEAST_BLOCKS, LogRatios, Ratio};
use super::rank::{self, Claim};
use super::{holm, sample::Sample};

/// What each of them cost in each block; less is better.
pub type Costs<K> = BTreeMap<K, BTreeMap<u32, f64>>;

/// What was seen of one contrast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedContrast<K> {
    /// What the ratio is of, and what it is to.
    pub one: K,
    pub other: K,
    /// What `one` costs, in what `other` costs.
    pub ratio: Ratio,
    pub blocks: usize,
    /// Of "no difference", adjusted for all contrasts; none where there are too few blocks.
    pub p: Option<f64>,
    /// What a claim had to exceed; none without an A/A control.
    pub bar: Option<Bar>,
    pub claim: Option<Claim>,
}

/// Judges the contrasts, in their order; those without a common block are left out. `lengths_s` is how long a trial of
/// each takes, in seconds: the median of its costs where it is not named. Of runs without any difference a share
/// `level` claims one.
pub fn judged<K: Copy + Ord>(
    contrasts: &[(K, K)],
    costs: &Costs<K>,
    lengths_s: &BTreeMap<K, f64>,
    noise: &AaNoise,
    level: f64,
) -> Vec<JudgedContrast<K>> {
    let seen: Vec<(K, K, LogRatios)> =
        contrasts.iter().filter_map(|&(one, other)| Some((one, other, paired(one, other, costs)?))).collect();
    // The number of blocks decides on the test: see `rank`.
    let least = seen.iter().map(|(.., ratios)| ratios.blocks()).min().unwrap_or(0);
    let p_value = |ratios: &LogRatios| match least {
        blocks if blocks >= rank::blocks_for(contrasts.len(), level) => Some(ratios.wilcoxon()),
        blocks if blocks >= LEAST_BLOCKS => ratios.student(),
        _ => None,
    };
    let p_values: Option<Vec<f64>> = seen.iter().map(|(.., ratios)| p_value(ratios)).collect();
    let adjusted = p_values.map(|mut p_values| {
        // One that could not be seen is a test all the same.
        p_values.resize(contrasts.len(), 1.0);
        holm::adjusted(&p_values)
    });
    let length_s = |of: K| {
        let median = || Sample::new(costs.get(&of)?.values().copied().collect()).map(|sample| sample.median());
        lengths_s.get(&of).copied().or_else(median).unwrap_or_default()
    };
    let judged = seen.iter().enumerate().map(|(place, (one, other, ratios))| {
        let ratio = ratios.ratio();
        let p = adjusted.as_ref().map(|adjusted| adjusted[place]);
        let bar = noise.bar(length_s(*one), length_s(*other));
        let claim = p.filter(|p| *p <= level).zip(bar).and_then(|(_, bar)| rank::claim(ratio, bar));
        JudgedContrast { one: *one, other: *other, ratio, blocks: ratios.blocks(), p, bar, claim }
    });
    judged.collect()
}

/// What one costs in what the other costs, in the blocks that have both.
pub fn paired<K: Ord>(one: K, other: K, costs: &Costs<K>) -> Option<LogRatios> {
    let (ones, others) = (costs.get(&one)?, costs.get(&other)?);
    let (ones, others): (Vec<f64>, Vec<f64>) =
        ones.iter().filter_map(|(block, cost)| Some((*cost, *others.get(block)?))).unzip();
    LogRatios::of(&ones, &others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::Control;
    use crate::paired::Interval;

    fn quiet() -> AaNoise {
        AaNoise::of([Control { interval: Interval::Exact { low: 0.99, high: 1.01 }, length_s: 1.0 }], false)
    }

    /// Versions whose cost in each block is their factor, with a little of the block's own.
    fn versions(factors: &[f64], blocks: u32) -> Costs<usize> {
        let of = |(place, factor): (usize, &f64)| {
            let costs =
                (1..=blocks).map(|block| (block, factor * (1.0 + f64::from(block * (place as u32 + 3) % 7) / 2e3)));
            (place, costs.collect())
        };
        factors.iter().enumerate().map(of).collect()
    }

    fn steps(factors: &[f64], blocks: u32, noise: &AaNoise) -> Vec<Option<Claim>> {
        let neighbours: Vec<(usize, usize)> = (1..factors.len()).map(|place| (place, place - 1)).collect();
        let judged = judged(&neighbours, &versions(factors, blocks), &BTreeMap::new(), noise, rank::LEVEL);
        judged.into_iter().map(|one| one.claim).collect()
    }

    #[test]
    fn a_step_is_claimed_where_one_is_and_nowhere_else() {
        let found = steps(&[1.0, 1.0, 1.2, 1.2, 0.9], 8, &quiet());
        assert_eq!(found, [None, Some(Claim::Slower), None, Some(Claim::Faster)]);
    }

    #[test]
    fn nothing_is_claimed_of_too_few_blocks_or_without_a_control() {
        assert_eq!(steps(&[1.0, 2.0], 3, &quiet()), [None]);
        assert_eq!(steps(&[1.0, 2.0], 8, &AaNoise::default()), [None]);
        assert_eq!(steps(&[1.0, 2.0], 4, &quiet()), [Some(Claim::Slower)]);
    }

    /// One step among seven contrasts must show more than it would alone.
    #[test]
    fn holm_adjusts_over_the_contrasts() {
        let mut costs = versions(&[1.0; 8], 6);
        let ratios = [1.005, 1.01, 1.03, 1.06, 1.06, 1.03];
        let later = (1..).zip(&ratios).map(|(block, ratio)| (block, costs[&6][&block] * ratio));
        let later: BTreeMap<u32, f64> = later.collect();
        costs.insert(7, later);
        let of = |contrasts: &[(usize, usize)]| {
            let judged = judged(contrasts, &costs, &BTreeMap::new(), &quiet(), rank::LEVEL);
            judged.into_iter().find(|one| one.one == 7).and_then(|one| one.claim)
        };
        let neighbours: Vec<(usize, usize)> = (1..8).map(|place| (place, place - 1)).collect();
        assert_eq!((of(&[(7, 6)]), of(&neighbours)), (Some(Claim::Slower), None));
    }

    #[test]
    fn what_has_no_block_in_common_is_left_out_and_counts_as_a_test() {
        let mut costs = versions(&[1.0, 1.2, 1.0], 6);
        costs.insert(1, [(99, 1.0)].into());
        let found = judged(&[(1, 0), (2, 1), (2, 0)], &costs, &BTreeMap::new(), &quiet(), rank::LEVEL);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].one, found[0].other, found[0].claim), (2, 0, None));
    }

    /// Six blocks that agree have Wilcoxon's p-value 2 / 2^6: enough at that very level, and below it Student's t is
    /// asked. Three blocks have none.
    #[test]
    fn the_level_and_the_number_of_blocks_decide_which_test_is_asked() {
        let at = |blocks: u32, level: f64| {
            let costs = versions(&[1.0, 2.0], blocks);
            let found = judged(&[(1, 0)], &costs, &BTreeMap::new(), &quiet(), level).remove(0);
            (found.p, found.claim, paired(1, 0, &costs).unwrap().student())
        };
        let (p, claim, student) = at(6, 1.0 / 32.0);
        assert_eq!((p, claim), (Some(1.0 / 32.0), Some(Claim::Slower)));
        assert_ne!(p, student);
        let (p, _, student) = at(6, 1.0 / 33.0);
        assert_eq!(p, student);
        assert_eq!(at(3, 0.05).0, None);
    }

    /// Seven blocks that agree have the p-value 2 / 2^7.
    #[test]
    fn a_contrast_that_was_not_seen_makes_the_others_less_sure() {
        let mut costs = versions(&[1.0, 2.0], 7);
        costs.insert(2, [(99, 1.0)].into());
        let p = |contrasts: &[(usize, usize)]| {
            judged(contrasts, &costs, &BTreeMap::new(), &quiet(), rank::LEVEL).remove(0).p
        };
        assert_eq!([p(&[(1, 0)]), p(&[(1, 0), (2, 0)])], [Some(1.0 / 64.0), Some(1.0 / 32.0)]);
    }
}
