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

    /// The numbers at this place from the low end and from the high end, counted from 1; `None` where they would cross.
    pub fn bounds(&self, place: usize) -> Option<(f64, f64)> {
        let (low, high) = (place.checked_sub(1)?, self.0.len().checked_sub(place)?);
        (low <= high).then(|| (self.0[low], self.0[high]))
    }

    /// Between which two of the numbers the median of what they were drawn from lies, at least 95 times in 100: the
    /// order statistics whose ranks a fair coin thrown for each number gives (Conover, "Practical nonparametric
    /// statistics", 1999, section 3.2). `None` below six numbers, of which not even the ends lie so far apart.
    pub fn median_bounds(&self) -> Option<(f64, f64)> {
        let count = self.0.len();
        let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
        let heads = (0..count).map(|heads| {
            let this = chance;
            chance *= (count - heads) as f64 / (heads + 1) as f64;
            this
        });
        self.bounds(place(heads)?)
    }
}

/// What may lie beyond each end of an interval that holds the true value 95 times in 100.
pub const TAIL: f64 = 0.025;

/// How far from either end of a sorted list an exact interval begins, counted from 1: one more than the greatest value
/// of a statistic that is reached or undercut with a chance of at most [`TAIL`]. `chances` are those of the values 0,
/// 1, 2, ... of a statistic whose distribution is symmetric; `None` where 0 is already too likely.
pub fn place(chances: impl IntoIterator<Item = f64>) -> Option<usize> {
    place_at(chances, TAIL)
}

/// The same with another chance than [`TAIL`] beyond each end.
pub fn place_at(chances: impl IntoIterator<Item = f64>, tail: f64) -> Option<usize> {
    let sums = chances.into_iter().scan(0.0, |sum, chance| {
        *sum += chance;
        Some(*sum)
    });
    let place = sums.take_while(|sum| *sum <= tail).count();
    (place > 0).then_some(place)
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

    /// The ranks of the table of the sign test (Dixon and Mood, JASA 41, 1946): at 5 %, 0 of 6, 1 of 9, 2 of 12, 5 of
    /// 20 and 17 of 50 signs are still too few.
    #[test]
    fn bounds_of_a_median_are_those_of_the_sign_test() {
        for (count, few) in [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5), (25, 7), (50, 17)] {
            let ranks = Sample::new((1..=count).map(f64::from).collect()).unwrap();
            let expected = (f64::from(few + 1), f64::from(count - few));
            assert_eq!(ranks.median_bounds(), Some(expected), "{count}");
        }
        assert_eq!(Sample::new(vec![1.0; 5]).unwrap().median_bounds(), None);
    }

    #[test]
    fn bounds_never_cross() {
        let three = Sample::new(vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(three.bounds(1), Some((1.0, 3.0)));
        assert_eq!(three.bounds(2), Some((2.0, 2.0)));
        assert_eq!((three.bounds(3), three.bounds(4), three.bounds(0)), (None, None, None));
        assert_eq!((three.lowest(), three.highest()), (1.0, 3.0));
    }

    /// 100 x 0.5 = 50, and 1.96 x sqrt(25) = 9.8.
    #[test]
    fn bounds_of_the_middle_are_further_apart() {
        assert_eq!(rank_bounds(100, 0.5), (40, 61));
    }

    #[test]
    fn the_ends_are_the_first_and_the_last() {
        let sample = Sample::new(vec![5.0, 2.5, 4.0]).unwrap();
        assert_eq!((sample.lowest(), sample.highest()), (2.5, 5.0));
    }

    #[test]
    fn a_chance_that_comes_to_the_tail_is_not_above_it() {
        assert_eq!(place_at([0.25, 0.25, 0.25, 0.25], 0.5), Some(2));
        assert_eq!(place_at([0.25, 0.75], 0.2), None);
    }
}
