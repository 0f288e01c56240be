//! How sure a share of some campaigns is.

/// The chance of so many successes or more in `trials`, each with this chance.
fn at_least(successes: u64, trials: u64, chance: f64) -> f64 {
    let log_factorial = |count: u64| libm::lgamma(count as f64 + 1.0);
    let of = |count: u64| {
        let ways = log_factorial(trials) - log_factorial(count) - log_factorial(trials - count);
        (ways + count as f64 * chance.ln() + (trials - count) as f64 * (-chance).ln_1p()).exp()
    };
    (successes..=trials).map(of).sum()
}

/// The exact lower bound of the true chance, right 99 times in 100: the chance with which so many successes or more
/// come in 1 of 100 cases (Clopper and Pearson, Biometrika 26, 1934, one-sided); by bisection.
pub fn lower_bound(successes: u64, trials: u64) -> f64 {
    if successes == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, successes as f64 / trials as f64);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if at_least(successes, trials, middle) < 0.01 { low = middle } else { high = middle }
    }
    low
}

/// In closed form where none, one or all succeed.
#[test]
fn bounds_are_exact() {
    assert_eq!(lower_bound(0, 2_000), 0.0);
    for trials in [2, 20, 2_000] {
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        assert!(near(lower_bound(1, trials), 1.0 - 0.99_f64.powf(1.0 / trials as f64)), "one of {trials}");
        assert!(near(lower_bound(trials, trials), 0.01_f64.powf(1.0 / trials as f64)), "all of {trials}");
    }
    // The least that is too many where 5 in 100 are expected (sums of the binomial distribution, computed in Python).
    for (trials, too_many) in [(2_000, 124), (10_000, 552)] {
        assert!(lower_bound(too_many - 1, trials) < 0.05 && lower_bound(too_many, trials) > 0.05, "{trials}");
    }
}
