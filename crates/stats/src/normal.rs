//! The normal distribution, which the sums of many ranks come near to.

/// What lies so many standard deviations above the mean is exceeded 2.5 times in 100.
pub const UPPER: f64 = 1.959_963_984_540_054;

/// What is exceeded with this chance, below a half: so many standard deviations above the mean; by bisection.
pub fn upper(chance: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if beyond(middle) / 2.0 > chance { low = middle } else { high = middle }
    }
    high
}

/// The p-value of a number so many standard deviations from its mean, both sides.
pub fn beyond(deviations: f64) -> f64 {
    libm::erfc(deviations.abs() / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::TAIL;

    /// R's `2 * pnorm(-z)`.
    #[test]
    fn tails_are_those_of_the_tables() {
        for (deviations, expected) in [(0.0, 1.0), (1.0, 0.317_310_507_862_914), (-3.0, 0.002_699_796_063_260)] {
            assert!((beyond(deviations) - expected).abs() < 1e-14, "{deviations}");
        }
        assert!((beyond(UPPER) - 2.0 * TAIL).abs() < 1e-15);
        assert!((upper(TAIL) - UPPER).abs() < 1e-12);
        // R's `qnorm(0.45, lower.tail = FALSE)`.
        assert!((upper(0.45) - 0.125_661_346_855_074).abs() < 1e-12);
        // R's `qnorm(1e-6, lower.tail = FALSE)`.
        assert!((upper(1e-6) - 4.753_424_308_822_899).abs() < 1e-9);
    }
}
