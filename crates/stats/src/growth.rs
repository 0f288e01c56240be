//! How a cost grows with a size: the exponent of a power, fitted to what grows.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::paired::LEAST_BLOCKS;
use super::sample::Sample;
use super::student;

/// A cost that has grown less than so many times is told apart from its fixed part by noise alone.
const GROWN: f64 = 1.5;

/// The exponent e of `cost = fixed + c * size^e`, by least squares over logarithms of what cost and size have grown by
/// since the cheapest size, so that its own share of what grows does no harm. Sizes whose cost is not half as much
/// again say nothing of growth. `None` where fewer than two are left.
///
/// `points` are (size, cost), in any order, all above 0.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let &(least, fixed) = points.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let grown = points.iter().filter(|(size, cost)| *cost >= fixed * GROWN && *size > least);
    let logs: Vec<(f64, f64)> = grown.map(|(size, cost)| (libm::log(size - least), libm::log(cost - fixed))).collect();
    slope(&logs)
}

/// The exponent e of `cost = c * size^e`, by least squares over logarithms; `None` for fewer than two sizes.
///
/// `points` are (size, cost), in any order, all above 0.
pub fn power(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| (libm::log(*size), libm::log(*cost))).collect();
    slope(&logs)
}

/// Of the line through these points, by least squares; `None` for fewer than two.
pub fn slope(logs: &[(f64, f64)]) -> Option<f64> {
    let count = logs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (size, cost) = (mean(&|log| log.0), mean(&|log| log.1));
    let both: f64 = logs.iter().map(|log| (log.0 - size) * (log.1 - cost)).sum();
    let spread: f64 = logs.iter().map(|log| (log.0 - size).powi(2)).sum();
    // No point and a single one have no spread.
    (spread > 0.0).then(|| both / spread)
}

/// A power is fitted to so many sizes at least: two only show a step, as between two caches.
const LEAST_SIZES: usize = 3;

/// A fitted power, of the sizes from `from` on, the last of which is so many times as large.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    pub from: f64,
    pub times: f64,
    pub exponent: f64,
    pub low: f64,
    pub high: f64,
}

/// The exponent e of `cost = fixed + c * size^e` from each size on that has two more behind it, each with an interval.
///
/// A repetition is (size, cost) at all sizes, in ascending order, the same sizes in each, all above 0. The fixed part
/// is the median cost at the smallest size, over all repetitions. Each repetition then has an exponent of its own, by
/// [`exponent`]'s least squares, and the interval is Student's of their mean: mean +- t * s / sqrt(n), n - 1 degrees of
/// freedom (NIST/SEMATECH e-Handbook of statistical methods, 1.3.5.2), with `tail` beyond either end. Sizes from which
/// on the cost has not half grown again in at least four repetitions and most of all have no fit.
pub fn fits(repetitions: &[Vec<(f64, f64)>], tail: f64) -> Vec<Fit> {
    let sizes = repetitions.first().map_or(0, Vec::len);
    let Some(fixed) = Sample::new(repetitions.iter().filter_map(|one| Some(one.first()?.1)).collect()) else {
        return Vec::new();
    };
    let fixed = fixed.median();
    (1..(sizes + 1).saturating_sub(LEAST_SIZES))
        .filter_map(|from| {
            let all: Vec<f64> = repetitions.iter().filter_map(|one| grown_from(one, from, fixed)).collect();
            let freedom = NonZeroUsize::new(all.len().checked_sub(1)?)?;
            if all.len() < LEAST_BLOCKS || 2 * all.len() <= repetitions.len() {
                return None;
            }
            let count = all.len() as f64;
            let exponent = all.iter().sum::<f64>() / count;
            let squares: f64 = all.iter().map(|one| (one - exponent).powi(2)).sum();
            let half = student::quantile(1.0 - tail, freedom) * (squares / freedom.get() as f64 / count).sqrt();
            let (first, last) = (repetitions[0][from].0, repetitions[0][sizes - 1].0);
            let (low, high) = (exponent - half, exponent + half);
            Some(Fit { from: first, times: last / first, exponent, low, high })
        })
        .collect()
}

/// One repetition's exponent from that size on; none where the cost is not half grown again at one of them.
fn grown_from(points: &[(f64, f64)], from: usize, fixed: f64) -> Option<f64> {
    let (least, grown) = (points[0].0, &points[from..]);
    let has_grown = grown.iter().all(|(size, cost)| *cost >= fixed * GROWN && *size > least);
    let logs = || -> Vec<(f64, f64)> {
        grown.iter().map(|(size, cost)| (libm::log(size - least), libm::log(cost - fixed))).collect()
    };
    has_grown.then(|| slope(&logs())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];

    /// Six repetitions, each a few per cent off.
    fn repeated(cost: impl Fn(f64) -> f64, noise: f64) -> Vec<Vec<(f64, f64)>> {
        let off = |block: usize, place: usize| 1.0 + noise * (((block * 7 + place * 5) % 11) as f64 / 5.0 - 1.0);
        let points = |block| (0..).zip(SIZES).map(|(place, size)| (size, cost(size) * off(block, place))).collect();
        (0..6).map(points).collect()
    }

    #[test]
    fn what_turns_quadratic_later_on_is_found_from_there_on() {
        let fits = fits(&repeated(|keys| 10.0 + keys + (keys / 4.0).powi(2), 0.03), 0.001);
        let last = fits.last().expect("the largest sizes have grown");
        assert_eq!((last.from, last.times), (64.0, 16.0));
        assert!(last.low > 1.7 && last.high < 2.0, "{fits:?}");
        let whole = fits.first().expect("a fit");
        assert!(whole.exponent < last.exponent, "{fits:?}");
    }

    #[test]
    fn what_grows_in_proportion_or_less_has_an_interval_around_that() {
        for (cost, about) in [(1.0, 1.0), (0.5, 0.5)] {
            for fit in fits(&repeated(|size| 0.1 + size.powf(cost), 0.03), 0.025 / 20.0) {
                assert!((fit.exponent - about).abs() < 0.1 && fit.high < about + 0.2, "{fit:?}");
            }
        }
    }

    /// By hand: exponents 1.0, 1.1, 1.2, 1.3 have the mean 1.15 and the standard error 0.0645497; t is 3.182446.
    #[test]
    fn intervals_are_students() {
        let of = |power: f64| SIZES[..4].iter().map(|size| (*size, 1.0 + 10.0 * (size - 1.0).powf(power))).collect();
        let fits = fits(&[1.0, 1.1, 1.2, 1.3].map(of), 0.025);
        assert_eq!(fits.len(), 1);
        let fit = fits[0];
        assert!((fit.exponent - 1.15).abs() < 1e-9 && (fit.from, fit.times) == (4.0, 16.0), "{fit:?}");
        assert!((fit.high - 1.15 - 3.182446 * 0.0645497).abs() < 1e-6, "{fit:?}");
        assert!((1.15 - fit.low - 3.182446 * 0.0645497).abs() < 1e-6, "{fit:?}");
    }

    #[test]
    fn noise_widens_the_interval_and_few_repetitions_have_none() {
        let width =
            |noise| fits(&repeated(|size| size, noise), 0.025).iter().map(|fit| fit.high - fit.low).sum::<f64>();
        assert!(width(0.2) > 3.0 * width(0.02));
        assert_eq!(fits(&repeated(|size| size, 0.1)[..3], 0.025), []);
        assert_eq!(fits(&[], 0.025), []);
        assert_eq!(fits(&repeated(|_| 7.0, 0.1), 0.025), [], "what does not grow has no exponent");
    }

    fn of(cost: impl Fn(f64) -> f64) -> Option<f64> {
        exponent(&[32.0, 1e3, 3.2e4, 1e6].map(|size| (size, cost(size))))
    }

    #[test]
    fn a_fixed_part_does_not_hide_how_the_rest_grows() {
        assert!((of(|size| 10.0 + size / 1e3).unwrap() - 1.0).abs() < 0.01);
        assert!((of(|size| 10.0 + (size / 1e4).powi(2)).unwrap() - 2.0).abs() < 0.01);
        assert!((of(|size| size.sqrt()).unwrap() - 0.5).abs() < 0.1);
        let near = |cost: fn(f64) -> f64| exponent(&[1.0, 2.0, 4.0, 8.0].map(|size| (size, cost(size)))).unwrap();
        assert!((near(|size| 3.0 * size) - 1.0).abs() < 1e-9, "in proportion from the first size on");
        assert!(near(|size| size * size) > 1.25);
        // The second cost is not half as much again as the first.
        let large = [(1.0, 1_000.0), (2.0, 1_200.0), (11.0, 11_000.0), (101.0, 101_000.0)];
        assert!((exponent(&large).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_power_is_found_from_two_sizes_on() {
        let power = |points: &[(f64, f64)]| power(points).map(|power| (power * 1000.0).round() / 1000.0);
        assert_eq!(power(&[(500.0, 1.0), (2_000.0, 4.0)]), Some(1.0));
        assert_eq!(power(&[(1.0, 3.0), (10.0, 300.0), (100.0, 30_000.0)]), Some(2.0));
        assert_eq!(power(&[(500.0, 1.0)]), None);
        assert_eq!(power(&[(500.0, 1.0), (500.0, 2.0)]), None);
    }

    #[test]
    fn what_does_not_grow_has_no_exponent() {
        assert_eq!(of(|_| 10.0), None);
        assert_eq!(of(|size| if size > 1e5 { 20.0 } else { 10.0 }), None, "one size alone tells nothing");
        assert_eq!(exponent(&[]), None);
    }

    /// By half at least.
    #[test]
    fn a_cost_that_has_hardly_grown_has_no_exponent() {
        let exponent = |second: f64| grown_from(&[(1.0, 10.0), (4.0, second), (16.0, 400.0)], 1, 10.0);
        assert_eq!(exponent(14.9), None);
        assert!(exponent(15.1) > Some(1.0));
    }

    #[test]
    fn what_has_grown_by_just_half_counts() {
        let (two, three) = ([(1.0, 10.0), (4.0, 15.0)], [(1.0, 10.0), (4.0, 15.0), (16.0, 40.0)]);
        assert_eq!(exponent(&two), None);
        assert!(exponent(&three).is_some() && grown_from(&three, 1, 10.0).is_some());
    }

    /// 3 and 27 more at sizes 3 and 27 above the smallest.
    #[test]
    fn the_smallest_size_once_more_does_no_harm() {
        let found = exponent(&[(1.0, 2.0), (1.0, 4.0), (4.0, 5.0), (28.0, 29.0)]).unwrap();
        assert!((found - 1.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn sizes_that_are_close_together_have_a_slope_too() {
        let found = power(&[(1.0, 1.0), (1.1, 1.1_f64.powi(2))]).unwrap();
        assert!((found - 2.0).abs() < 1e-9, "{found}");
    }

    /// Four repetitions that have grown, among others that have not.
    #[test]
    fn a_fit_takes_most_repetitions() {
        let of = |count: usize| {
            let cost = |index: usize, size: f64| if index < 4 { 10.0 * size } else { 10.0 };
            let points = |index| SIZES[..4].iter().map(|size| (*size, cost(index, *size))).collect();
            fits(&(0..count).map(points).collect::<Vec<_>>(), 0.025).len()
        };
        assert_eq!([7, 8].map(of), [1, 0]);
    }
}
