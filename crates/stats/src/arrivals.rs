//! Whether moments came as independent ones do: the test of Anderson and Darling for exponential gaps.

/// The 1 % point of the statistic where the mean is taken from the sample (D'Agostino and Stephens, "Goodness-of-fit
/// techniques", 1986, table 4.14).
pub const CRITICAL: f64 = 1.959;

/// The statistic A*^2 = A^2 (1 + 0.6 / n) of gaps against the exponential distribution of their own mean; `None` for
/// fewer than ten, or where all are 0. Small is good: independent arrivals exceed [`CRITICAL`] once in a hundred times.
pub fn a_squared(gaps: &[f64]) -> Option<f64> {
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    if gaps.len() < 10 || mean <= 0.0 {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // A gap of nothing has no logarithm: the clock's grain is as small as a gap gets.
    let scaled = |gap: f64| (gap / mean).max(1e-9);
    let terms = sorted.iter().zip(sorted.iter().rev()).zip(1_u32..).map(|((low, high), rank)| {
        let below = libm::log(-libm::expm1(-scaled(*low)));
        let above = -scaled(*high);
        f64::from(2 * rank - 1) * (below + above)
    });
    let a_squared = -count - terms.sum::<f64>() / count;
    Some(a_squared * (1.0 + 0.6 / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps at the middle of each of so many equally likely ranges.
    fn exponential(count: u32) -> Vec<f64> {
        (0..count).map(|rank| -(1.0 - (f64::from(rank) + 0.5) / f64::from(count)).ln()).collect()
    }

    #[test]
    fn exponential_gaps_pass_and_others_do_not() {
        assert!(a_squared(&exponential(1_000)).unwrap() < 0.1);
        let equal = vec![5.0; 1_000];
        assert!(a_squared(&equal).unwrap() > 100.0);
        // Sent in bursts of two: every other gap is nothing.
        let bursts: Vec<f64> = exponential(500).into_iter().flat_map(|gap| [gap, 0.0]).collect();
        assert!(a_squared(&bursts).unwrap() > 100.0);
        assert_eq!(a_squared(&[1.0; 9]), None);
        assert_eq!(a_squared(&[0.0; 100]), None);
    }

    /// The formula by hand, of ten gaps 1 to 10: the mean is 5.5.
    #[test]
    fn the_statistic_is_the_books() {
        let gaps: Vec<f64> = (1..=10).map(f64::from).collect();
        let below = |gap: f64| 1.0 - (-gap / 5.5).exp();
        let sum: f64 = (1..=10)
            .map(|rank| {
                f64::from(2 * rank - 1) * (below(f64::from(rank)).ln() + (1.0 - below(f64::from(11 - rank))).ln())
            })
            .sum();
        let expected = (-10.0 - sum / 10.0) * 1.06;
        assert!((a_squared(&gaps).unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn the_unit_of_time_does_not_matter() {
        let of = |unit: f64| a_squared(&(1..=10).map(|gap| f64::from(gap) * unit).collect::<Vec<_>>()).unwrap();
        assert!((of(1e-6) - of(1.0)).abs() < 1e-9 && (of(1e6) - of(1.0)).abs() < 1e-9);
    }

    /// The formula by hand, of ten gaps 0 to 9: the mean is 4.5, and 1 - exp(-1e-9) is 1e-9.
    #[test]
    fn a_gap_of_nothing_counts_as_a_billionth_of_the_mean() {
        let gaps: Vec<f64> = (0..10).map(f64::from).collect();
        let below = |gap: f64| if gap == 0.0 { 1e-9_f64.ln() } else { (1.0 - (-gap / 4.5).exp()).ln() };
        let above = |gap: f64| if gap == 0.0 { -1e-9 } else { -gap / 4.5 };
        let term = |place: u32| f64::from(2 * place + 1) * (below(f64::from(place)) + above(f64::from(9 - place)));
        let expected = (-10.0 - (0..10).map(term).sum::<f64>() / 10.0) * 1.06;
        assert!((a_squared(&gaps).unwrap() - expected).abs() < 1e-6);
    }

    #[test]
    fn the_order_of_the_gaps_does_not_matter() {
        let gaps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        let mixed = [7.0, 1.0, 10.0, 3.0, 9.0, 2.0, 6.0, 8.0, 4.0, 5.0];
        assert_eq!(a_squared(&mixed), a_squared(&gaps));
    }
}
