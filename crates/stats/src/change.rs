//! Change points: where the numbers of a series of runs changed their level, if they did.
//!
//! The statistic is that of E-divisive (Matteson and James, Journal of the American Statistical Association 109, 2014):
//! the energy distance of what stands before a split and what stands behind it, the largest over all splits.
//! Permutations of the series tell how large it is by chance. They know no order: runs that depend on the runs before
//! them raise false alarms (docs/statistics.md has how many).

use serde::Serialize;

use super::floor::{LEAST_DIFFERENCE, beyond_one};
use super::paired::{Ratio, logs};
use super::{holm, parallel, unpaired};

/// With fewer runs nothing is looked for.
pub const LEAST_RUNS: usize = 10;
/// So many runs stand on either side of a split at least.
pub const LEAST_SIDE: usize = 5;

/// Of histories without any change a share of at most so many has one: a history is read as a list of alarms, and many
/// are read. It is stricter than what stores are compared by.
pub const LEVEL: f64 = 0.02;

/// A baseline has moved where a test by itself, of this level, says so: this takes claims back, so it is not adjusted.
const MOVED_LEVEL: f64 = 0.05;

/// Permutations of each series for each series that is judged beside it: enough for p-values of a twentieth of what is
/// asked for after Holm's adjustment.
const PERMUTATIONS: usize = 1_000;
const PERMUTATIONS_LEAST: usize = 1_999;
/// Of all permutations of a long series, in pairs of numbers: about a second.
const WORK_MAX: usize = 1_000_000_000;
/// Permutations end once so many of them are as extreme as the series: then the p-value is known well enough (Besag and
/// Clifford, Biometrika 78, 1991).
const AS_EXTREME: usize = 20;
/// Permutations come from this seed: the same series has the same p-value.
const SEED: u64 = 0x6b76_6661_6972;

/// A series of one number a run, in the order of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSeries {
    /// All above 0 and finite.
    pub numbers: Vec<f64>,
    /// What a change must exceed, as a share beyond 1: what the same target differs by in a run. At least
    /// [`LEAST_DIFFERENCE`] is asked for in any case.
    pub margin: f64,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The place of the first number behind it.
    pub at: usize,
    /// What numbers behind it are of those before it, up to the next change on either side.
    pub ratio: Ratio,
    /// Of "no change", adjusted for all series.
    pub p: f64,
}

/// The changes of each series, in order. A series is split at most once a round; the parts of those that were split are
/// series of the next round. Holm's adjustment is over all series of a round: a round that follows none but true splits
/// has its own level.
pub fn changes(all: &[RunSeries]) -> Vec<Vec<Change>> {
    let mut found: Vec<Vec<Change>> = vec![Vec::new(); all.len()];
    let mut parts: Vec<(usize, usize, usize)> =
        all.iter().enumerate().map(|(series, one)| (series, 0, one.numbers.len())).collect();
    while !parts.is_empty() {
        let splits = splits_of(all, &parts);
        let adjusted = holm::adjusted(&splits.iter().map(|(_, split)| split.p).collect::<Vec<_>>());
        parts = Vec::new();
        for (((series, from, to), split), p) in splits.into_iter().zip(adjusted) {
            let (numbers, at) = (&all[series].numbers, from + split.at);
            let Some(ratio) = unpaired::ratio(&numbers[at..to], &numbers[from..at]) else { continue };
            let margin = all[series].margin.max(LEAST_DIFFERENCE);
            if p <= LEVEL && beyond_one(ratio.estimate) > margin {
                found[series].push(Change { at, ratio, p });
                parts.extend([(series, from, at), (series, at, to)]);
            }
        }
    }
    for (series, changes) in all.iter().zip(&mut found) {
        changes.sort_by_key(|change| change.at);
        told_between(&series.numbers, changes);
    }
    found
}

/// The best split of each part that is long enough.
fn splits_of(all: &[RunSeries], parts: &[(usize, usize, usize)]) -> Vec<((usize, usize, usize), Split)> {
    let splits = parallel::map(parts, true, |&(series, from, to)| {
        split(&all[series].numbers[from..to], PERMUTATIONS * parts.len())
    });
    parts.iter().zip(splits).filter_map(|(part, split)| Some((*part, split?))).collect()
}

/// Ratios between the changes on either side: the first splits were found before the others were known.
fn told_between(numbers: &[f64], changes: &mut [Change]) {
    let places: Vec<usize> = changes.iter().map(|change| change.at).collect();
    for (place, change) in changes.iter_mut().enumerate() {
        let from = if place == 0 { 0 } else { places[place - 1] };
        let to = places.get(place + 1).copied().unwrap_or(numbers.len());
        let ratio = unpaired::ratio(&numbers[change.at..to], &numbers[from..change.at]);
        change.ratio = ratio.unwrap_or(change.ratio);
    }
}

/// Whether numbers moved from one side of a known place to the other, by more than the margin.
pub fn moved(before: &[f64], after: &[f64], margin: f64) -> bool {
    let Some(ratio) = unpaired::ratio(after, before) else { return false };
    let is_far = beyond_one(ratio.estimate) > margin.max(LEAST_DIFFERENCE);
    is_far && unpaired::p_value(after, before) <= MOVED_LEVEL
}

/// Where a series is split best, whether or not there is a change.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    at: usize,
    p: f64,
}

/// `None` of a series that is too short, or has numbers without a logarithm.
fn split(numbers: &[f64], permutations: usize) -> Option<Split> {
    if numbers.len() < LEAST_RUNS {
        return None;
    }
    let logs = logs(numbers)?;
    let distances = Distances::of(&logs);
    let mut order: Vec<usize> = (0..logs.len()).collect();
    let (at, seen) = distances.best(&order);
    let most = permutations.min(WORK_MAX / (logs.len() * logs.len())).max(PERMUTATIONS_LEAST);
    let mut random = Random(SEED);
    let mut as_extreme = 0;
    for tried in 1..=most {
        random.shuffle(&mut order);
        // Sums in another order differ in their last bits.
        if distances.best(&order).1 >= seen * (1.0 - 1e-9) {
            as_extreme += 1;
        }
        if as_extreme == AS_EXTREME {
            return Some(Split { at, p: AS_EXTREME as f64 / tried as f64 });
        }
    }
    Some(Split { at, p: (as_extreme + 1) as f64 / (most + 1) as f64 })
}

/// How far apart any two numbers are.
struct Distances {
    between: Vec<f64>,
    count: usize,
}

impl Distances {
    fn of(numbers: &[f64]) -> Distances {
        let between = numbers.iter().flat_map(|one| numbers.iter().map(move |other| (one - other).abs())).collect();
        Distances { between, count: numbers.len() }
    }

    /// The split of the numbers in this order whose parts are farthest apart, and how far: 2 E|X - Y| - E|X - X'| -
    /// E|Y - Y'|, times mn / (m + n).
    fn best(&self, order: &[usize]) -> (usize, f64) {
        let row = |one: usize| &self.between[one * self.count..(one + 1) * self.count];
        let sum = |one: usize, others: &[usize]| -> f64 {
            let row = row(one);
            others.iter().map(|other| row[*other]).sum()
        };
        // Sums over pairs, each counted once.
        let (mut before, mut across) = (0.0, 0.0);
        let mut after: f64 = (0..order.len()).map(|place| sum(order[place], &order[place + 1..])).sum();
        let mut best = (LEAST_SIDE, f64::NEG_INFINITY);
        for at in 1..=order.len() - LEAST_SIDE {
            let (one, left, right) = (order[at - 1], &order[..at - 1], &order[at..]);
            let (to_left, to_right) = (sum(one, left), sum(one, right));
            before += to_left;
            after -= to_right;
            across += to_right - to_left;
            if at < LEAST_SIDE {
                continue;
            }
            let (m, n) = (at as f64, (order.len() - at) as f64);
            let within = |sum: f64, count: f64| 2.0 * sum / (count * (count - 1.0));
            let energy = 2.0 * across / (m * n) - within(before, m) - within(after, n);
            let weighted = energy * m * n / (m + n);
            if weighted > best.1 {
                best = (at, weighted);
            }
        }
        best
    }
}

/// splitmix64 (Steele, Lea and Flood, OOPSLA 2014; constants of Vigna's splitmix64.c).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`; what is not uniform of it is less than one part in 2^40 for any series that fits memory.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for place in (1..order.len()).rev() {
            order.swap(place, self.below(place + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels one after the other, each of so many runs, with a little noise that is the same every time.
    fn series(levels: &[(f64, usize)]) -> RunSeries {
        let mut random = Random(1);
        let mut noise = || 1.0 + 0.02 * (random.below(1_000_001) as f64 / 1e6 - 0.5);
        let numbers = levels.iter().flat_map(|(level, runs)| vec![*level; *runs]).map(|level| level * noise());
        RunSeries { numbers: numbers.collect(), margin: 0.0 }
    }

    fn places(series: &RunSeries) -> Vec<usize> {
        changes(std::slice::from_ref(series))[0].iter().map(|change| change.at).collect()
    }

    /// By its definition, one split at a time.
    #[test]
    fn the_statistic_is_that_of_e_divisive() {
        let numbers = [0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6, 0.5, 0.35, 0.8, 0.97];
        let mean = |one: &[f64], other: &[f64], pairs: f64| -> f64 {
            one.iter().flat_map(|one| other.iter().map(move |other| (one - other).abs())).sum::<f64>() / pairs
        };
        let at = |at: usize| {
            let (one, other) = numbers.split_at(at);
            let (m, n) = (one.len() as f64, other.len() as f64);
            let energy =
                2.0 * mean(one, other, m * n) - mean(one, one, m * (m - 1.0)) - mean(other, other, n * (n - 1.0));
            energy * m * n / (m + n)
        };
        let best = (LEAST_SIDE..=numbers.len() - LEAST_SIDE).max_by(|one, other| at(*one).total_cmp(&at(*other)));
        let order: Vec<usize> = (0..numbers.len()).collect();
        let (found, energy) = Distances::of(&numbers).best(&order);
        assert_eq!(Some(found), best);
        assert!((energy - at(found)).abs() < 1e-12, "{energy}");
    }

    #[test]
    fn steps_are_found_where_they_are() {
        assert_eq!(places(&series(&[(1.0, 15), (1.1, 15)])), [15]);
        assert_eq!(places(&series(&[(1.0, 12), (1.2, 12), (0.9, 12)])), [12, 24]);
        let two = changes(&[series(&[(1.0, 12), (1.2, 12), (0.9, 12)])]).remove(0);
        assert!((two[0].ratio.estimate - 1.2).abs() < 0.01, "{two:?}");
        assert!((two[1].ratio.estimate - 0.75).abs() < 0.01, "{two:?}");
        assert!(two.iter().all(|change| change.p <= LEVEL));
    }

    #[test]
    fn no_change_is_found_where_there_is_none_or_where_it_is_small_or_near_an_end() {
        assert_eq!(places(&series(&[(1.0, 30)])), [0; 0]);
        assert_eq!(places(&series(&[(1.0, 15), (1.015, 15)])), [0; 0], "less than 2 %");
        let wide = RunSeries { margin: 0.2, ..series(&[(1.0, 15), (1.1, 15)]) };
        assert_eq!(places(&wide), [0; 0], "less than the same target differs by");
        assert_eq!(places(&series(&[(1.0, 4), (1.5, 5)])), [0; 0], "nine runs");
        assert_eq!(places(&series(&[(1.0, 5), (1.5, 5)])), [5]);
        for at in places(&series(&[(1.0, 27), (1.5, 3)])) {
            assert!((LEAST_SIDE..=30 - LEAST_SIDE).contains(&at));
        }
    }

    #[test]
    fn equal_numbers_are_no_change_and_bad_ones_no_series() {
        assert_eq!(places(&RunSeries { numbers: vec![2.0; 40], margin: 0.0 }), [0; 0]);
        assert_eq!(split(&[1.0; 20], 0).map(|split| split.p), Some(1.0));
        assert_eq!(split(&[&[1.0; 19][..], &[0.0]].concat(), 0), None);
        assert_eq!(changes(&[]), Vec::<Vec<Change>>::new());
    }

    /// Of many series with a small step one by itself would be told.
    #[test]
    fn the_more_series_the_more_a_change_must_show() {
        let one = series(&[(1.0, 15), (1.1, 15)]);
        let alone = changes(std::slice::from_ref(&one))[0][0].p;
        let many: Vec<RunSeries> = std::iter::once(one).chain(vec![series(&[(1.0, 30)]); 20]).collect();
        let among = changes(&many).remove(0)[0].p;
        assert!((alone - 1.0 / 2_000.0).abs() < 1e-9 && (among - 21.0 / 21_001.0).abs() < 1e-9, "{alone} {among}");
    }

    #[test]
    fn a_baseline_that_moved_is_seen() {
        let step = series(&[(1.0, 8), (1.1, 8)]).numbers;
        assert!(moved(&step[..8], &step[8..], 0.0));
        assert!(!moved(&step[..8], &step[..8], 0.0) && !moved(&step[..8], &step[8..], 0.2));
        assert!(!moved(&[], &step, 0.0));
        assert!(!moved(&[1.0, 1.01], &[2.0, 2.02], 0.0), "two and two numbers may be in this order by chance");
    }

    /// The first numbers that splitmix64.c gives from this seed.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    /// Also those that leave a place as it was.
    #[test]
    fn every_order_comes_as_often() {
        let (mut random, mut seen) = (Random(7), std::collections::BTreeMap::new());
        for _ in 0..6_000 {
            let mut order = [0, 1, 2];
            random.shuffle(&mut order);
            *seen.entry(order).or_insert(0) += 1;
        }
        assert!(seen.len() == 6 && seen.values().all(|count| (850..1_150).contains(count)), "{seen:?}");
    }

    /// No order of a gross step is as extreme as its own: the p-value tells how many orders were tried.
    #[test]
    fn a_long_series_is_tried_in_fewer_orders() {
        const RUNS: usize = 100;
        let numbers: Vec<f64> = (0..RUNS).map(|run| if run < RUNS / 2 { 1.0 } else { 9.0 }).collect();
        let tried = 1.0 / split(&numbers, usize::MAX).expect("a long series").p - 1.0;
        assert_eq!(tried.round() as usize, WORK_MAX / (RUNS * RUNS));
    }

    /// Of ten runs in two halves one in 126 ways to halve them is as extreme.
    #[test]
    fn orders_are_tried_until_twenty_are_as_extreme() {
        let numbers = [1.0, 1.01, 0.99, 1.02, 0.98, 2.0, 2.1, 1.9, 2.05, 1.95];
        let tried = 20.0 / split(&numbers, 100_000).unwrap().p;
        assert!((tried - tried.round()).abs() < 1e-9 && (1_500.0..4_000.0).contains(&tried), "{tried}");
    }

    #[test]
    fn fewer_runs_than_a_side_has_are_no_series() {
        for runs in 0..LEAST_SIDE {
            assert_eq!(split(&vec![1.0; runs], 0), None, "{runs} runs");
        }
    }

    /// The median of all ratios is that to the third of the five before it.
    #[test]
    fn the_ratio_of_a_change_is_of_all_runs_on_either_side_and_of_no_other() {
        let numbers = vec![1.0, 2.0, 3.0, 4.0, 5.0, 30.0, 30.0, 30.0, 30.0, 30.0];
        let found = changes(&[RunSeries { numbers, margin: 0.0 }]).remove(0);
        assert_eq!(found.iter().map(|change| change.at).collect::<Vec<_>>(), [5]);
        assert!((found[0].ratio.estimate - 10.0).abs() < 1e-9, "{found:?}");
    }

    /// The median of all ratios is 1.4; with a run from behind the change among those before it, it would be 1.3.
    #[test]
    fn a_margin_is_held_against_the_runs_before_the_change_alone() {
        let numbers = vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2, 1.4, 1.4, 1.4];
        let mut series = RunSeries { numbers, margin: 0.35 };
        assert_eq!(places(&series), [5]);
        let estimate = changes(std::slice::from_ref(&series))[0][0].ratio.estimate;
        assert!((estimate - 1.4).abs() < 1e-9, "{estimate}");
        series.margin = beyond_one(estimate);
        assert_eq!(places(&series), [0; 0], "what comes to the margin does not exceed it");
    }

    /// One number above all of 39 others has the p-value 2 / 40, and above all of 38 has 2 / 39.
    #[test]
    fn a_baseline_moves_at_five_in_a_hundred_and_beyond_the_margin() {
        let before: Vec<f64> = (0..39).map(|run| 1.0 + f64::from(run) / 1e4).collect();
        assert!(moved(&before, &[2.0], 0.0) && !moved(&before[1..], &[2.0], 0.0));
        let margin = beyond_one(unpaired::ratio(&[2.0], &before).unwrap().estimate);
        assert!(!moved(&before, &[2.0], margin) && moved(&before, &[2.0], margin - 1e-9));
        assert!(!moved(&before, &[1.015], 0.0), "less than 2 %");
    }

    /// Five times 0, five times 1, five times 0.
    #[test]
    fn of_two_splits_that_are_as_far_apart_the_first_is_told() {
        let numbers: Vec<f64> = (0..15).map(|run| f64::from(run / 5 % 2)).collect();
        let order: Vec<usize> = (0..15).collect();
        assert_eq!(Distances::of(&numbers).best(&order).0, 5);
    }
}
