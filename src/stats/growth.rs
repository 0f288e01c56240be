//! How a cost grows with a size: the exponent of a power, fitted to what grows.

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
    if logs.len() < 2 {
        return None;
    }
    let count = logs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (size, cost) = (mean(&|log| log.0), mean(&|log| log.1));
    let both: f64 = logs.iter().map(|log| (log.0 - size) * (log.1 - cost)).sum();
    let spread: f64 = logs.iter().map(|log| (log.0 - size).powi(2)).sum();
    (spread > 0.0).then(|| both / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn what_does_not_grow_has_no_exponent() {
        assert_eq!(of(|_| 10.0), None);
        assert_eq!(of(|size| if size > 1e5 { 20.0 } else { 10.0 }), None, "one size alone tells nothing");
        assert_eq!(exponent(&[]), None);
    }
}
