//! Many tests at once: Holm's step-down, by which at most 5 runs in 100 see any difference where there is none,
//! whatever the tests have to do with each other.

/// Each p-value as if it stood alone: the smallest times their number, the next times one less, and so on; none below
/// one before it, none above 1 (Holm, Scandinavian Journal of Statistics 6, 1979). In the order given.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut greatest = 0.0_f64;
    for (left, index) in (1..=p_values.len()).rev().zip(order) {
        greatest = greatest.max(p_values[index] * left as f64);
        adjusted[index] = greatest.min(1.0);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What R's `p.adjust(c(0.01, 0.02, 0.03, 0.04), "holm")` gives, and in another order.
    #[test]
    fn adjusted_as_elsewhere() {
        let near = |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-12);
        assert!(near(&adjusted(&[0.01, 0.02, 0.03, 0.04]), &[0.04, 0.06, 0.06, 0.06]));
        assert!(near(&adjusted(&[0.04, 0.01, 0.5, 0.02]), &[0.08, 0.04, 0.5, 0.06]));
        assert_eq!(adjusted(&[0.7, 0.6]), [1.0, 1.0]);
        assert_eq!(adjusted(&[]), [0.0; 0]);
    }
}
