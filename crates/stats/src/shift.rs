//! Whether a target stays as fast as it was: within a trial, and from block to block.

use serde::Serialize;

use super::holm;
use super::sample::{Sample, place};
use super::unpaired::orders;

/// Which way a target goes as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// It gets slower.
    Slowing,
    /// It gets faster.
    Warming,
}

/// By how much the rate of a trial's last third differs from its first third's, as a part of the latter: -0.2 for a
/// fifth less. The interval is true 95 times in 100 of slices that have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    pub change: f64,
    pub low: f64,
    pub high: f64,
}

/// A smaller shift is none: a third of a trial is as far from another by the machine's noise alone, the more so as
/// neighbouring slices share it and the interval does not know that.
pub const LEAST_SHIFT: f64 = 0.05;

/// More slices than so many are merged with their neighbours before they are compared. Ten a third are enough for the
/// interval, and longer slices have less to do with each other.
const MOST_SLICES: usize = 30;

/// More blocks than so many are merged with their neighbours before their trend is looked for: all orders of them are
/// counted, which grows with the third power, and means of neighbours drift as their blocks do, with less noise.
const MOST_BLOCKS: usize = 60;

/// Compares the first and the last third of a trial's rates: the median of all differences between the two (Hodges and
/// Lehmann, 1963), with the exact interval by Mann's and Whitney's U (Annals of Mathematical Statistics 18, 1947;
/// Hollander, Wolfe and Chicken, 2014, sections 4.2 and 4.3).
///
/// `rates` are those of slices of equal length, in their order. `None` below twelve, since of two times three slices
/// any order is likely; where one is no number; and where the first third stood still, to which nothing is relative.
pub fn within(rates: &[f64]) -> Option<Shift> {
    let slices = merged(rates, rates.len().div_ceil(MOST_SLICES));
    let third = slices.len() / 3;
    let (first, last) = (&slices[..third], &slices[slices.len() - third..]);
    let differences = last.iter().flat_map(|late| first.iter().map(move |early| late - early)).collect();
    let usual = Sample::new(first.to_vec())?.median();
    let differences = Sample::new(differences)?;
    let (low, high) = differences.bounds(place(orders(third, third))?)?;
    let part = |difference: f64| difference / usual;
    (usual > 0.0).then(|| Shift { change: part(differences.median()), low: part(low), high: part(high) })
}

/// The means of so many neighbours each, the last one of what is left.
fn merged(series: &[f64], neighbours: usize) -> Vec<f64> {
    series.chunks(neighbours.max(1)).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

impl Shift {
    /// Where the trial had no steady rate: the shift is large enough, and surely there.
    pub fn course(self) -> Option<Course> {
        let sure = self.low > 0.0 || self.high < 0.0;
        (sure && self.change.abs() > LEAST_SHIFT).then(|| course(-self.change))
    }
}

/// What got worse goes up.
fn course(cost: f64) -> Course {
    if cost > 0.0 { Course::Slowing } else { Course::Warming }
}

/// A target that got slower or faster from block to block, so that no single number tells what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    pub course: Course,
    /// Its cost in one block, in that of the block before: 1.2 for a fifth more each.
    pub a_block: f64,
}

/// Of runs in which no target drifts, at most so many have one flagged.
pub const LEVEL: f64 = 0.01;

/// A drift that changes the cost by less than this over all blocks does a median little harm.
pub const LEAST_DRIFT: f64 = 0.10;

/// A target by itself is measured with its machine, and a busy machine's speed changes by half within minutes: only
/// what comes to twice the cost is worth a word then (`tests/campaigns`).
pub const LEAST_DRIFT_ALONE: f64 = 1.0;

/// For each target whether its cost drifts. `costs[target][block]` has as many blocks for each target, all costs above
/// 0 and finite.
///
/// It does where three things hold. Its cost relative to the others' (to the median of theirs, block by block on
/// logarithms) has a trend by Mann's and Kendall's test (Mann, Econometrica 13, 1945; Kendall, "Rank correlation
/// methods", 1975), whose distribution is exact where blocks could as well stand in any other order; p-values are
/// adjusted for the number of targets. By the median of the slopes between any two blocks (Theil, 1950; Sen, JASA 63,
/// 1968) this comes to [`LEAST_DRIFT`] over the run. And at least half of it is the target's own: of two targets each
/// drifts from the other, but only one gets slower.
///
/// A machine that slows down under all of them is thus nobody's drift. A target by itself cannot be told from its
/// machine: it takes [`LEAST_DRIFT_ALONE`] then, and the drift may be either's.
///
/// It takes six blocks for up to three targets and seven for up to 25: with fewer not even costs that rise in each
/// block are as sure a sign as [`LEVEL`] asks for.
pub fn across(costs: &[Vec<f64>]) -> Vec<Option<Drift>> {
    let neighbours = costs.first().map_or(1, |costs| costs.len().div_ceil(MOST_BLOCKS));
    let logs = |costs: &Vec<f64>| merged(&costs.iter().map(|cost| cost.ln()).collect::<Vec<_>>(), neighbours);
    let logs: Vec<Vec<f64>> = costs.iter().map(logs).collect();
    let relative: Vec<Vec<f64>> = (0..logs.len()).map(|target| relative(&logs, target)).collect();
    let p_values: Vec<f64> = relative.iter().map(|series| trend(series)).collect();
    let judged = holm::adjusted(&p_values).into_iter().zip(relative.iter().zip(&logs));
    let least = if logs.len() == 1 { LEAST_DRIFT_ALONE } else { LEAST_DRIFT };
    judged.map(|(p, (relative, own))| if p <= LEVEL { drift(relative, own, least, neighbours) } else { None }).collect()
}

/// Both series have a number for so many neighbouring blocks.
fn drift(relative: &[f64], own: &[f64], least: f64, neighbours: usize) -> Option<Drift> {
    let (relative, own, steps) = (slope(relative)?, slope(own)?, relative.len() as f64 - 1.0);
    let large = relative.abs() * steps > least.ln_1p();
    let is_its_own = own / relative >= 0.5;
    (large && is_its_own).then(|| Drift { course: course(own), a_block: (own / neighbours as f64).exp() })
}

/// The target's logarithms less the median of the others'; its own where it has no others.
fn relative(logs: &[Vec<f64>], target: usize) -> Vec<f64> {
    let others = |block: usize| {
        let others = logs.iter().enumerate().filter(|(index, _)| *index != target).map(|(_, logs)| logs[block]);
        Sample::new(others.collect()).map_or(0.0, |others| others.median())
    };
    logs[target].iter().enumerate().map(|(block, log)| log - others(block)).collect()
}

/// The p-value of "no trend", both sides: how many pairs are in the lesser order. Equal numbers count half for either.
fn trend(series: &[f64]) -> f64 {
    let pairs = || pairs(series).map(|(_, early, late)| early.total_cmp(&late));
    let (rising, falling) =
        (pairs().filter(|order| order.is_lt()).count(), pairs().filter(|order| order.is_gt()).count());
    let equal = pairs().count() - rising - falling;
    let tail: f64 = inversions(series.len(), rising.min(falling) + equal.div_ceil(2)).iter().sum();
    (2.0 * tail).min(1.0)
}

/// The median of the slopes between any two; `None` of fewer than two.
fn slope(series: &[f64]) -> Option<f64> {
    Some(Sample::new(pairs(series).map(|(apart, early, late)| (late - early) / apart as f64).collect())?.median())
}

/// Every two numbers of a series: how far apart they stand, the earlier, the later.
fn pairs(series: &[f64]) -> impl Iterator<Item = (usize, f64, f64)> {
    let after = move |first: usize| {
        (first + 1..series.len()).map(move |second| (second - first, series[first], series[second]))
    };
    (0..series.len()).flat_map(after)
}

/// The chance of 0 to `most` pairs out of order, where so many numbers stand in any order: the n-th stands before none
/// to all of those before it (Knuth, "The art of computer programming" 3, section 5.1.1).
fn inversions(count: usize, most: usize) -> Vec<f64> {
    let mut chances = vec![0.0; most + 1];
    chances[0] = 1.0;
    for number in 1..=count {
        let before = chances.clone();
        let mut sum = 0.0;
        for inversions in 0..=most {
            sum += before[inversions] - if inversions >= number { before[inversions - number] } else { 0.0 };
            chances[inversions] = sum / number as f64;
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest U that is significant at 5 %, both sides, of two samples of 4 to 10 (Mann and Whitney's tables as
    /// extended by Auble, 1953).
    #[test]
    fn orders_are_those_of_the_table() {
        for (size, critical) in (4..).zip([0, 2, 5, 8, 13, 17, 23]) {
            assert_eq!(place(orders(size, size)), Some(critical + 1), "two times {size}");
        }
        assert_eq!((place(orders(3, 3)), place(orders(0, 0))), (None, None));
        assert!((orders(10, 10).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// Kendall's table of S (1975, table 1): of 6 numbers S >= 13 has the chance 0.0083, of 8 S >= 16 0.031, of 10
    /// S >= 21 0.036; S is all pairs less twice those out of order.
    #[test]
    fn inversions_are_those_of_the_table() {
        for (count, s, chance) in [(4, 4, 0.167), (6, 13, 0.0083), (8, 16, 0.031), (10, 21, 0.036)] {
            let most = (count * (count - 1) / 2 - s) / 2;
            assert!((inversions(count, most).iter().sum::<f64>() - chance).abs() < 6e-4, "{count} numbers");
        }
        assert!((inversions(7, 21).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    fn steady(count: usize) -> Vec<f64> {
        (0..count).map(|slice| 1_000.0 + ((slice * 7) % 5) as f64).collect()
    }

    #[test]
    fn a_trial_that_gets_slower_has_no_steady_rate() {
        assert_eq!(within(&steady(20)).unwrap().course(), None);
        let falling: Vec<f64> =
            steady(20).iter().enumerate().map(|(slice, rate)| rate * 0.98_f64.powi(slice as i32)).collect();
        let shift = within(&falling).unwrap();
        assert_eq!(shift.course(), Some(Course::Slowing));
        // From the middle of the first third to the middle of the last it is 14 slices: 0.98^14 is 0.754.
        assert!((shift.change + 0.246).abs() < 0.02 && shift.low < shift.change && shift.change < shift.high);
        let rising: Vec<f64> = falling.into_iter().rev().collect();
        assert_eq!(within(&rising).unwrap().course(), Some(Course::Warming));
        let little: Vec<f64> =
            steady(20).iter().enumerate().map(|(slice, rate)| rate * 0.998_f64.powi(slice as i32)).collect();
        assert_eq!(within(&little).unwrap().course(), None, "sure, but small");
    }

    #[test]
    fn a_shift_that_may_be_none_is_none() {
        let wild = |slice: u32| [700.0, 1_300.0, 800.0, 1_200.0][slice as usize % 4];
        let rates: Vec<f64> = (0..12).map(|slice| wild(slice) * if slice < 8 { 1.0 } else { 0.9 }).collect();
        let shift = within(&rates).unwrap();
        assert!(shift.change < -LEAST_SHIFT && shift.high > 0.0 && shift.course().is_none());
    }

    #[test]
    fn long_trials_are_merged_and_short_ones_tell_nothing() {
        assert!(within(&steady(12)).is_some() && within(&steady(1_000)).is_some());
        assert_eq!((within(&steady(11)), within(&[]), within(&[0.0; 20])), (None, None, None));
        // Shorter slices of the same trial make nothing surer.
        let halves: Vec<f64> = steady(30).into_iter().flat_map(|rate| [rate, rate]).collect();
        assert_eq!(within(&halves), within(&steady(30)));
        // A stall at the end is no drift, however long the trial.
        let mut stalled = steady(600);
        stalled[590..].fill(0.0);
        assert_eq!(within(&stalled).unwrap().course(), None);
    }

    /// Costs of so many targets over some blocks: noise of 1 %, times what each of them does by itself.
    fn drifts(blocks: usize, targets: &[f64], machine: f64) -> Vec<Option<Course>> {
        let noise = |target: usize, block: usize| 1.0 + ((target * 31 + block * 17) % 13) as f64 / 1_300.0;
        let cost = |target: usize, block: usize| noise(target, block) * (targets[target] * machine).powi(block as i32);
        let costs: Vec<Vec<f64>> =
            (0..targets.len()).map(|target| (0..blocks).map(|block| cost(target, block)).collect()).collect();
        let drifts = across(&costs);
        drifts.into_iter().map(|drift| drift.map(|drift| drift.course)).collect()
    }

    #[test]
    fn a_target_that_slows_down_is_told_from_the_others() {
        let slowing = Some(Course::Slowing);
        assert_eq!(drifts(6, &[1.2], 1.0), [slowing]);
        assert_eq!(drifts(6, &[1.2, 1.0], 1.0), [slowing, None]);
        assert_eq!(drifts(6, &[1.0, 1.2, 1.0], 1.0), [None, slowing, None]);
        assert_eq!(drifts(7, &[1.0, 1.2, 1.0, 1.0, 0.9], 1.0), [None, slowing, None, None, Some(Course::Warming)]);
        assert_eq!(drifts(5, &[1.2, 1.0], 1.0), [None, None], "five blocks are too few");
        assert_eq!(drifts(10, &[1.005, 1.0], 1.0), [None, None], "sure, but small");
    }

    #[test]
    fn a_machine_that_slows_down_is_nobodys_drift() {
        assert_eq!(drifts(10, &[1.0, 1.0, 1.0], 1.1), [None; 3]);
        assert_eq!(drifts(10, &[1.2, 1.0], 1.02), [Some(Course::Slowing), None]);
    }

    #[test]
    fn how_much_a_block_is_told() {
        let costs: Vec<Vec<f64>> = vec![(0..8).map(|block| 3.0 * 1.2_f64.powi(block)).collect()];
        let drift = across(&costs)[0].unwrap();
        assert!((drift.a_block - 1.2).abs() < 1e-9);
    }

    #[test]
    fn thousands_of_blocks_are_merged() {
        assert_eq!(drifts(6_000, &[1.0001, 1.0], 1.0), [Some(Course::Slowing), None]);
        assert_eq!(drifts(6_000, &[1.0, 1.0, 1.0], 1.0001), [None; 3]);
        let costs: Vec<Vec<f64>> = vec![(0..3_000).map(|block| 3.0 * 1.001_f64.powi(block)).collect()];
        let drift = across(&costs)[0].unwrap();
        assert!((drift.a_block - 1.001).abs() < 1e-9);
    }

    #[test]
    fn more_than_thirty_slices_are_merged() {
        let halves: Vec<f64> = steady(20).into_iter().flat_map(|rate| [rate, rate]).collect();
        assert_eq!(within(&halves), within(&steady(20)));
    }

    #[test]
    fn the_unit_of_the_rates_does_not_matter() {
        let falling: Vec<f64> = (0..12).map(|slice| 2.0_f64.powi(-slice)).collect();
        let small: Vec<f64> = falling.iter().map(|rate| rate / 1_024.0).collect();
        assert!(within(&falling).is_some());
        assert_eq!(within(&small), within(&falling));
    }

    #[test]
    fn a_shift_has_a_course_where_its_interval_leaves_out_0_and_it_is_above_five_in_a_hundred() {
        let course = |change, low, high| Shift { change, low, high }.course();
        assert_eq!([course(0.2, 0.01, 0.4), course(0.2, 0.0, 0.4)], [Some(Course::Warming), None]);
        assert_eq!([course(-0.2, -0.4, -0.01), course(-0.2, -0.4, 0.0)], [Some(Course::Slowing), None]);
        assert_eq!([course(0.051, 0.01, 0.4), course(0.05, 0.01, 0.4)], [Some(Course::Warming), None]);
    }

    /// Six blocks in which a cost grows by equal factors, to so many times of what it was in the first.
    #[test]
    fn a_target_by_itself_drifts_from_twice_the_cost_on() {
        let drift = |times: f64| {
            let costs: Vec<f64> = (0..6).map(|block| times.powf(f64::from(block) / 5.0)).collect();
            [across(std::slice::from_ref(&costs))[0].is_some(), across(&[costs, vec![1.0; 6]])[0].is_some()]
        };
        assert_eq!([1.095, 1.105].map(|times| drift(times)[1]), [false, true]);
        assert_eq!([1.95, 2.05].map(|times| drift(times)[0]), [false, true]);
    }

    #[test]
    fn of_two_that_move_apart_as_fast_each_drifts() {
        let doubling: Vec<f64> = (0..6).map(|block| 2.0_f64.powi(block)).collect();
        let halving: Vec<f64> = (0..6).map(|block| 2.0_f64.powi(-block)).collect();
        let courses: Vec<Option<Course>> =
            across(&[doubling, halving]).into_iter().map(|drift| drift.map(|drift| drift.course)).collect();
        assert_eq!(courses, [Some(Course::Slowing), Some(Course::Warming)]);
    }

    /// 3 times 2 / 6! is 0.0083 and 4 times is 0.011; 25 times 2 / 7! is 0.0099 and 26 times is 0.0103.
    #[test]
    fn six_blocks_are_enough_for_three_targets_and_seven_for_twenty_five() {
        let first = |blocks, targets: usize| drifts(blocks, &[&[1.2][..], &vec![1.0; targets - 1]].concat(), 1.0)[0];
        assert_eq!([first(6, 3), first(6, 4)], [Some(Course::Slowing), None]);
        assert_eq!([first(7, 25), first(7, 26)], [Some(Course::Slowing), None]);
    }

    /// Of 24 orders of four, 1, 3, 5, 6 have 0, 1, 2, 3 pairs out of order. Three equal pairs are two of them at least.
    #[test]
    fn equal_numbers_count_half_for_either_order() {
        let near = |series: &[f64], p: f64| (trend(series) - p).abs() < 1e-12;
        assert!(near(&[1.0, 2.0, 3.0, 4.0], 2.0 / 24.0) && near(&[4.0, 3.0, 2.0, 1.0], 2.0 / 24.0));
        assert!(near(&[1.0, 1.0, 2.0, 3.0], 2.0 * 4.0 / 24.0));
        assert!(near(&[1.0, 1.0, 1.0, 2.0], 2.0 * 9.0 / 24.0) && near(&[2.0, 1.0, 1.0, 1.0], 2.0 * 9.0 / 24.0));
        assert_eq!((trend(&[1.0, 1.0]), trend(&[1.0])), (1.0, 1.0));
    }
}
