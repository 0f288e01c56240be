//! Two samples that have no blocks in common: runs of different days.

use super::normal;
use super::paired::{Interval, Ratio, logs};
use super::sample::{Sample, place};

/// Up to so many pairs of one sample's number with the other's, sixty of each, the distribution of U is exact. Beyond,
/// it would take minutes, and the normal distribution is as right as for signed ranks.
const MOST_EXACT: usize = 3_600;

/// How many times as much one sample's numbers are as the other's: the median of all ratios between the two (Hodges and
/// Lehmann, 1963, on logarithms), with the exact interval by Mann's and Whitney's U (Annals of Mathematical Statistics
/// 18, 1947; Hollander, Wolfe and Chicken, 2014, sections 4.2 and 4.3). No interval where the samples are so small that
/// any order of the two is likely; `None` where a number is not above 0, or there is none.
pub fn ratio(one: &[f64], other: &[f64]) -> Option<Ratio> {
    let (ones, others) = (logs(one)?, logs(other)?);
    let differences = ones.iter().flat_map(|one| others.iter().map(move |other| one - other)).collect();
    let differences = Sample::new(differences)?;
    let bounds = interval_place(one.len(), other.len()).and_then(|place| differences.bounds(place));
    let interval =
        bounds.map_or(Interval::None, |(low, high)| Interval::Exact { low: libm::exp(low), high: libm::exp(high) });
    Some(Ratio { estimate: libm::exp(differences.median()), interval })
}

/// How far from either end of the sorted differences the interval begins, counted from 1.
fn interval_place(first: usize, second: usize) -> Option<usize> {
    if first * second <= MOST_EXACT {
        return place(orders(first, second));
    }
    // Hollander, Wolfe and Chicken, section 4.3; half a pair as in `nearly`.
    let (pairs, all) = ((first * second) as f64, (first + second) as f64);
    Some((pairs / 2.0 - normal::UPPER * (pairs * (all + 1.0) / 12.0).sqrt() + 0.5) as usize)
}

/// The p-value of "they are drawn from the same", both sides, by U; pairs that are equal count half.
pub fn p_value(one: &[f64], other: &[f64]) -> f64 {
    let above = |one: f64| {
        other
            .iter()
            .map(move |other| {
                if one > *other {
                    1.0
                } else if one == *other {
                    0.5
                } else {
                    0.0
                }
            })
            .sum::<f64>()
    };
    let u: f64 = one.iter().map(|one| above(*one)).sum();
    if one.len() * other.len() > MOST_EXACT {
        return nearly(one, other, u);
    }
    let least = u.min((one.len() * other.len()) as f64 - u).floor() as usize;
    let beyond: f64 = orders(one.len(), other.len()).iter().take(least + 1).sum();
    (2.0 * beyond).min(1.0)
}

/// The p-value of a U by the normal distribution of the same mean and variance, ties counted, half a pair nearer to the
/// mean (Hollander, Wolfe and Chicken, equation 4.9 and comment 6 of section 4.1).
fn nearly(one: &[f64], other: &[f64], u: f64) -> f64 {
    let mut all = [one, other].concat();
    all.sort_unstable_by(f64::total_cmp);
    let cubes = all.chunk_by(|one, other| one == other).map(|equal| (equal.len() as f64).powi(3) - equal.len() as f64);
    let (pairs, count) = ((one.len() * other.len()) as f64, all.len() as f64);
    let variance = pairs / 12.0 * (count + 1.0 - cubes.sum::<f64>() / (count * (count - 1.0)));
    let away = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
    // Where all are equal nothing varies, and nothing is away from anything.
    if variance > 0.0 { normal::beyond(away / variance.sqrt()) } else { 1.0 }
}

/// The chance of each U of two samples of these sizes: in how many pairs the second is the smaller, where all orders of
/// the two are as likely. U is the sum of the first sample's ranks less the least that it could be.
pub(super) fn orders(first: usize, second: usize) -> Vec<f64> {
    let most = first * second;
    // Ways to choose so many of the ranks with such a sum above the least; one more rank is taken or not.
    let mut ways = vec![vec![0.0; most + 1]; first + 1];
    ways[0][0] = 1.0;
    for rank in 0..first + second {
        for chosen in (1..=first.min(rank + 1)).rev() {
            // As the chosen-th smallest its least would be chosen - 1.
            let above = rank + 1 - chosen;
            for sum in above..=most {
                ways[chosen][sum] += ways[chosen - 1][sum - above];
            }
        }
    }
    let all: f64 = ways[first].iter().sum();
    ways[first].iter().map(|ways| ways / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two and three any of ten orders is as likely: 1, 1, 2, 2, 2, 1, 1 of them have U 0 to 6.
    #[test]
    fn orders_are_counted() {
        let chances: Vec<f64> = orders(2, 3).iter().map(|chance| (chance * 10.0).round()).collect();
        assert_eq!(chances, [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        assert_eq!(orders(3, 2), orders(2, 3));
    }

    /// The greatest U that is significant at 5 %, both sides, of samples of different sizes (Mann and Whitney's tables
    /// as extended by Auble, 1953).
    #[test]
    fn places_are_the_tables() {
        for (first, second, greatest) in [(4, 6, 2), (5, 8, 6), (6, 10, 11), (8, 10, 17)] {
            assert_eq!(place(orders(first, second)), Some(greatest + 1), "{first} {second}");
        }
    }

    #[test]
    fn many_numbers_are_told_nearly_as_exactly() {
        for (first, second) in [(61, 61), (40, 100), (20, 200), (80, 80)] {
            let exact = place(orders(first, second)).unwrap();
            assert!(
                interval_place(first, second).unwrap().abs_diff(exact) <= first * second / 1_000,
                "{first} {second}"
            );
        }
    }

    /// Elsewhere: SciPy 1.17's `mannwhitneyu(..., method="asymptotic", use_continuity=True)`.
    #[test]
    fn many_ties_as_elsewhere() {
        let one: Vec<f64> = (0..90).map(|index| f64::from(index * 7 % 23) / 4.0).collect();
        let other: Vec<f64> = (0..70).map(|index| f64::from(index * 5 % 19) / 4.0 + 1.0).collect();
        assert!((p_value(&one, &other) - 0.079_380_944_551_876_72).abs() < 1e-14, "{}", p_value(&one, &other));
        assert!((p_value(&other, &one) - p_value(&one, &other)).abs() < 1e-14);
        assert_eq!(p_value(&[2.0; 70], &[2.0; 70]), 1.0);
    }

    #[test]
    fn what_is_twice_as_much_is_found_and_what_overlaps_is_not() {
        let (one, other) = ([1.0, 1.1, 0.9, 1.05, 0.95, 1.02], [2.0, 2.2, 1.8, 2.1, 1.9, 2.04]);
        let found = ratio(&other, &one).unwrap();
        assert!((found.estimate - 2.0).abs() < 0.05 && !found.interval.contains(1.0), "{found:?}");
        assert!(p_value(&one, &other) < 0.005, "twice one of the 924 orders");
        assert!(p_value(&one, &one) > 0.99);
        assert!(ratio(&one, &one).unwrap().interval.contains(1.0));
        assert_eq!(ratio(&one[..2], &other[..2]).unwrap().interval, Interval::None, "any order of four is likely");
        assert_eq!(ratio(&[0.0], &one), None);
        assert_eq!(ratio(&[], &one), None);
    }

    /// Of two and 1,800 the sums of at most 400 above the least are 201^2 of 1,622,701 orders, 2.49 in 100, and those
    /// of at most 401 are 201 * 202, 2.502 in 100. With one more it is 1801 - 1.96 * sqrt(3602 * 1804 / 12) + 0.5.
    #[test]
    fn the_interval_is_exact_up_to_3600_pairs() {
        assert_eq!(interval_place(2, 1_800), Some(401));
        assert_eq!(interval_place(2, 1_801), Some(359));
    }

    /// By the formula: 19 * 191 is 1319.90, 19 * 192 is 1326.93, 19 * 196 is 1355.05.
    #[test]
    fn places_of_many_numbers_are_those_of_the_formula() {
        for (second, place) in [(191, 1_319), (192, 1_326), (196, 1_355)] {
            assert_eq!(interval_place(19, second), Some(place), "19 and {second}");
        }
    }

    /// All of one above all of the other, of 60 and 60, is two of 120! / 60!^2 orders, which are about 1e35.
    #[test]
    fn chances_are_exact_up_to_3600_pairs() {
        let (one, other): (Vec<f64>, Vec<f64>) = ((0..60).map(f64::from).collect(), (60..120).map(f64::from).collect());
        assert!(p_value(&one, &other) < 1e-34);
        assert!(p_value(&one, &[&other[..], &[200.0]].concat()) > 1e-30, "more pairs are approximated");
    }

    /// Of two and three, 1, 2, 4 of ten orders have a U of at most 0, 1, 2.
    #[test]
    fn equal_numbers_count_half_and_half_a_pair_counts_as_none() {
        let near = |one: &[f64], other: &[f64], p: f64| (p_value(one, other) - p).abs() < 1e-12;
        assert!(near(&[1.0, 2.0], &[3.0, 4.0, 5.0], 0.2) && near(&[1.0, 2.0], &[2.0, 3.0, 4.0], 0.2));
        assert!(near(&[1.0, 3.0], &[2.0, 4.0, 5.0], 0.4) && near(&[3.0, 2.0], &[2.0, 3.0, 4.0], 0.8));
        assert_eq!(p_value(&[1.0, 2.0], &[1.0, 2.0]), 1.0);
    }

    #[test]
    fn many_numbers_beside_themselves_are_no_difference() {
        let many: Vec<f64> = (0..70).map(f64::from).collect();
        assert_eq!(p_value(&many, &many), 1.0);
    }
}
