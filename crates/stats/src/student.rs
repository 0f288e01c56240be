//! Student's t for whole degrees of freedom, in closed form.

use std::num::NonZeroUsize;

/// How likely a t at least so far from 0 is, on either side: the p-value of a t (Abramowitz and Stegun, "Handbook of
/// mathematical functions", 26.7.3 and 26.7.4). Exact to the last digits of the 1 that it is subtracted from.
pub fn beyond(t: f64, freedom: NonZeroUsize) -> f64 {
    let freedom = freedom.get();
    // Of `libm`, so that an interval is the same on any machine.
    let angle = libm::atan2(t.abs(), (freedom as f64).sqrt());
    let (sine, cosine) = libm::sincos(angle);
    // Odd powers of the cosine for odd degrees of freedom, even ones for even, up to freedom - 2; each term follows
    // from the one before.
    let odd = freedom % 2;
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for power in (odd..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= (power + 1) as f64 / (power + 2) as f64 * cosine * cosine;
    }
    let within = if odd == 1 { (angle + sine * sum) / std::f64::consts::FRAC_PI_2 } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// The chance of a t of at most this.
pub fn below(t: f64, freedom: NonZeroUsize) -> f64 {
    let half = beyond(t, freedom) / 2.0;
    if t < 0.0 { half } else { 1.0 - half }
}

/// The t that is undercut with this chance, above 0 and below 1; by bisection, to the last digit but a few.
pub fn quantile(chance: f64, freedom: NonZeroUsize) -> f64 {
    if chance < 0.5 {
        return -quantile(1.0 - chance, freedom);
    }
    // Doubled until it is too far; a chance of 1 has no t, and stops at the largest number.
    let mut high = 1.0;
    while below(high, freedom) < chance && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if below(middle, freedom) < chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upper points of t by degrees of freedom: 90, 95, 97.5, 99 and 99.5 of 100 lie below (Fisher and Yates,
    /// "Statistical tables", table III; NIST/SEMATECH e-Handbook of statistical methods, 1.3.6.7.2).
    const TABLE: &[(usize, [f64; 5])] = &[
        (1, [3.078, 6.314, 12.706, 31.821, 63.657]),
        (2, [1.886, 2.920, 4.303, 6.965, 9.925]),
        (3, [1.638, 2.353, 3.182, 4.541, 5.841]),
        (4, [1.533, 2.132, 2.776, 3.747, 4.604]),
        (5, [1.476, 2.015, 2.571, 3.365, 4.032]),
        (6, [1.440, 1.943, 2.447, 3.143, 3.707]),
        (7, [1.415, 1.895, 2.365, 2.998, 3.499]),
        (8, [1.397, 1.860, 2.306, 2.896, 3.355]),
        (9, [1.383, 1.833, 2.262, 2.821, 3.250]),
        (10, [1.372, 1.812, 2.228, 2.764, 3.169]),
        (15, [1.341, 1.753, 2.131, 2.602, 2.947]),
        (20, [1.325, 1.725, 2.086, 2.528, 2.845]),
        (29, [1.311, 1.699, 2.045, 2.462, 2.756]),
        (30, [1.310, 1.697, 2.042, 2.457, 2.750]),
        (60, [1.296, 1.671, 2.000, 2.390, 2.660]),
        (100, [1.290, 1.660, 1.984, 2.364, 2.626]),
    ];
    const CHANCES: [f64; 5] = [0.90, 0.95, 0.975, 0.99, 0.995];

    #[test]
    fn quantiles_are_those_of_the_table() {
        for (freedom, row) in TABLE {
            let freedom = NonZeroUsize::new(*freedom).unwrap();
            for (chance, expected) in CHANCES.iter().zip(row) {
                assert!((quantile(*chance, freedom) - expected).abs() < 6e-4, "{chance} of {freedom}");
                assert!((quantile(1.0 - chance, freedom) + expected).abs() < 6e-4, "{chance} of {freedom}");
            }
        }
    }

    #[test]
    fn chances_and_quantiles_are_each_others_inverse() {
        for freedom in (1..=64).filter_map(NonZeroUsize::new) {
            for chance in [1e-6, 0.01, 0.3, 0.5, 0.8, 0.999] {
                assert!((below(quantile(chance, freedom), freedom) - chance).abs() < 1e-12, "{chance} of {freedom}");
            }
            assert_eq!(beyond(0.0, freedom), 1.0);
            assert!(beyond(f64::INFINITY, freedom) < 1e-14);
        }
    }

    /// Cauchy's distribution: the chance beyond t, on one side, is 1 / (pi * t) where t is large.
    #[test]
    fn one_degree_of_freedom_has_quantiles_far_out() {
        let freedom = NonZeroUsize::new(1).unwrap();
        let expected = 2.0_f64.powi(40) / std::f64::consts::PI;
        assert!((quantile(1.0 - 0.5_f64.powi(40), freedom) / expected - 1.0).abs() < 1e-3);
    }
}
