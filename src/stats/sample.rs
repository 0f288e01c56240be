//! A sample of numbers that can be asked for its middle and its ends without further checks.

/// At least one number, none of them NaN, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// `None` where there is no number, or where one is none.
    pub fn new(mut numbers: Vec<f64>) -> Option<Sample> {
        if numbers.is_empty() || numbers.iter().any(|number| number.is_nan()) {
            return None;
        }
        numbers.sort_unstable_by(f64::total_cmp);
        Some(Sample(numbers))
    }

    /// The middle number, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len().is_multiple_of(2) { (self.0[middle - 1] + self.0[middle]) / 2.0 } else { self.0[middle] }
    }

    pub fn lowest(&self) -> f64 {
        self.0[0]
    }

    pub fn highest(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

/// The ranks, counted from 1, between which a quantile of what a sample was drawn from lies, 95 times in 100 (order
/// statistics by the normal approximation: Lancet, ATC 2019, section 3).
pub fn rank_bounds(count: u64, quantile: f64) -> (u64, u64) {
    let (middle, spread) = (count as f64 * quantile, 1.96 * (count as f64 * quantile * (1.0 - quantile)).sqrt());
    let (lower, upper) = ((middle - spread).floor().max(1.0), (middle + spread).ceil() + 1.0);
    (lower as u64, (upper as u64).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_quantile() {
        // 10,000 x 0.99 = 9,900, and 1.96 x sqrt(99) = 19.5.
        assert_eq!(rank_bounds(10_000, 0.99), (9_880, 9_921));
        assert_eq!(rank_bounds(10, 0.99), (9, 10));
        assert_eq!(rank_bounds(0, 0.5), (1, 0));
    }

    #[test]
    fn medians() {
        assert_eq!(Sample::new(vec![3.0, 1.0, 2.0]).unwrap().median(), 2.0);
        assert_eq!(Sample::new(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median(), 2.5);
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    }
}
