//! What did not happen in so many tries: how often it may happen all the same.

/// The highest probability of something that did not happen in `tries` independent tries, at 95 %: the exact one-sided
/// bound of Clopper and Pearson (1934), 1 - 0.05^(1/n), which the rule of three approaches. 1 for no tries.
pub fn at_most(tries: usize) -> f64 {
    // Without tries the exponent is infinite, and the power is 0.
    1.0 - 0.05_f64.powf(1.0 / tries as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_exact_and_the_rule_of_three_comes_close() {
        assert_eq!(at_most(0), 1.0);
        assert!((at_most(1) - 0.95).abs() < 1e-12);
        assert!((at_most(20) - 0.1391).abs() < 1e-4, "0 of 20, at most 14 %");
        assert!((at_most(1000) - 3.0 / 1000.0).abs() < 1e-5);
    }
}
