//! Targets of two runs that have no blocks in common: what moved between them, and whether it was the machine.

use super::floor::{Bar, beyond_one};
use super::paired::Ratio;
use super::rank::{self, Claim, LEVEL};
use super::{holm, unpaired};

/// One target that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoRunsTarget {
    /// What it cost in each block of either run.
    pub base: Vec<f64>,
    pub head: Vec<f64>,
    /// What a difference must exceed: the higher one of both runs; none without A/A controls.
    pub bar: Option<Bar>,
    /// No store: the same in both runs.
    pub is_baseline: bool,
}

/// What became of one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// What it costs at the head, in what it cost at the base; none where it has too few costs for an interval.
    pub ratio: Option<Ratio>,
    pub claim: Option<Claim>,
}

/// What the two runs may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoRuns {
    /// Nothing speaks against comparing them.
    Same,
    /// A baseline moved beyond the noise floor, so that nothing is said of stores.
    MovedBaseline,
    /// All targets did: so that nothing is said of any.
    MovedAll(Claim),
}

/// So many at least, and all of them moved the same way: the machine.
const MOVED_TOGETHER: usize = 3;

/// Of each target what became of it, by Mann's and Whitney's U, adjusted for all of them (Holm), and what the machine
/// did: claims stand only where it is the same.
pub fn across(targets: &[TwoRunsTarget]) -> (Vec<Moved>, TwoRuns) {
    let p_values: Vec<f64> = targets.iter().map(|target| unpaired::p_value(&target.head, &target.base)).collect();
    let adjusted = holm::adjusted(&p_values);
    let moved: Vec<Moved> = targets.iter().zip(adjusted).map(|(target, p)| moved(target, p)).collect();
    let machine = machine(targets, &moved);
    (moved, machine)
}

fn moved(target: &TwoRunsTarget, p: f64) -> Moved {
    let ratio = unpaired::ratio(&target.head, &target.base).filter(|ratio| ratio.interval.bounds().is_some());
    let shown = || rank::claim(ratio?, target.bar?);
    Moved { ratio, claim: shown().filter(|_| p <= LEVEL) }
}

/// A baseline speaks by itself: no p-value is asked of it.
fn machine(targets: &[TwoRunsTarget], moved: &[Moved]) -> TwoRuns {
    let has_moved = |(target, moved): (&TwoRunsTarget, &Moved)| {
        let beyond = |(ratio, bar): (Ratio, Bar)| {
            ratio.interval.near_end().is_some_and(|near| near > 0.0) && beyond_one(ratio.estimate) > bar.floor
        };
        target.is_baseline && moved.ratio.zip(target.bar).is_some_and(beyond)
    };
    if targets.iter().zip(moved).any(has_moved) {
        return TwoRuns::MovedBaseline;
    }
    match moved.first().and_then(|first| first.claim) {
        Some(way) if moved.len() >= MOVED_TOGETHER && moved.iter().all(|one| one.claim == Some(way)) => {
            TwoRuns::MovedAll(way)
        }
        _ => TwoRuns::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 6] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002];

    fn target(times: f64, is_baseline: bool) -> TwoRunsTarget {
        let bar = Some(Bar { floor: 0.02, near_end: 0.0, is_noisy: false });
        TwoRunsTarget { base: BASE.to_vec(), head: BASE.map(|cost| cost * times).to_vec(), bar, is_baseline }
    }

    fn of(times: &[f64]) -> (Vec<Option<Claim>>, TwoRuns) {
        let targets: Vec<TwoRunsTarget> = times.iter().map(|times| target(*times, false)).collect();
        let (moved, machine) = across(&targets);
        (moved.into_iter().map(|moved| moved.claim).collect(), machine)
    }

    #[test]
    fn what_moved_less_than_the_noise_floor_is_no_difference() {
        assert_eq!(of(&[1.019]), (vec![None], TwoRuns::Same));
        assert_eq!(of(&[1.05]), (vec![Some(Claim::Slower)], TwoRuns::Same));
        assert_eq!(of(&[0.9, 1.0]), (vec![Some(Claim::Faster), None], TwoRuns::Same));
    }

    #[test]
    fn without_a_floor_or_with_few_costs_nothing_is_claimed() {
        let without = TwoRunsTarget { bar: None, ..target(2.0, false) };
        let few = TwoRunsTarget { base: vec![1.0; 2], head: vec![2.0; 2], ..target(1.0, false) };
        let (moved, _) = across(&[without, few]);
        assert!(moved[0].ratio.is_some() && moved[0].claim.is_none());
        assert_eq!(moved[1], Moved { ratio: None, claim: None });
    }

    #[test]
    fn where_a_baseline_moves_or_all_do_it_is_the_machine() {
        let (_, machine) = across(&[target(1.0, false), target(1.05, true)]);
        assert_eq!(machine, TwoRuns::MovedBaseline);
        assert_eq!(across(&[target(1.05, false), target(1.01, true)]).1, TwoRuns::Same);
        assert_eq!(of(&[1.1, 1.2, 1.05]).1, TwoRuns::MovedAll(Claim::Slower));
        assert_eq!(of(&[0.9, 0.8, 0.7]).1, TwoRuns::MovedAll(Claim::Faster));
        assert_eq!(of(&[1.1, 1.2]).1, TwoRuns::Same, "two may both be slower");
        assert_eq!(of(&[1.1, 1.2, 0.9]).1, TwoRuns::Same);
        assert_eq!(of(&[1.1, 1.2, 1.0]).1, TwoRuns::Same);
    }

    /// All six above all six have the p-value 2 / 924: times 23 it is 0.0498, times 24 it is 0.0519. One above all of
    /// 39 has 2 / 40.
    #[test]
    fn the_more_targets_the_more_a_difference_must_show() {
        let with = |targets: usize| of(&[&[1.2][..], &vec![1.0; targets - 1]].concat()).0[0];
        assert_eq!((with(23), with(24)), (Some(Claim::Slower), None));
        let base: Vec<f64> = (0..39).map(|block| 1.0 + f64::from(block) / 1e4).collect();
        let one = TwoRunsTarget { base, head: vec![2.0], ..target(1.0, false) };
        assert_eq!(across(&[one]).0[0].claim, Some(Claim::Slower), "0.05 is not above 0.05");
    }

    #[test]
    fn a_baseline_moves_surely_and_beyond_its_floor_or_not_at_all() {
        let machine = |one: TwoRunsTarget| across(&[one]).1;
        let small = target(1.015, true);
        assert!(!unpaired::ratio(&small.head, &small.base).unwrap().interval.contains(1.0));
        assert_eq!(machine(small), TwoRuns::Same, "surely, but within the floor");
        let unsure = TwoRunsTarget { head: vec![0.9, 1.2, 0.95, 1.15, 1.1, 1.08], ..target(1.0, true) };
        let ratio = unpaired::ratio(&unsure.head, &unsure.base).unwrap();
        assert!(ratio.estimate > 1.02 && ratio.interval.contains(1.0));
        assert_eq!(machine(unsure), TwoRuns::Same, "beyond the floor, but not surely");
        let mut even = target(1.05, true);
        let floor = beyond_one(unpaired::ratio(&even.head, &even.base).unwrap().estimate);
        even.bar = even.bar.map(|bar| Bar { floor, ..bar });
        assert_eq!(machine(even), TwoRuns::Same, "as far as the floor");
    }
}
