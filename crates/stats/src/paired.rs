//! Two targets compared block by block: a ratio with an interval, from logarithms of paired ratios.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::averages::Averages;
use super::{sample::TAIL, student, wilcoxon};

/// With so many blocks there is an interval at all, and a claim may be made.
pub const LEAST_BLOCKS: usize = 4;

/// Logarithms of the ratios of two targets, one a block: finite, at least one.
///
/// What a machine does over minutes meets both trials of a block, and cancels in their ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRatios(Vec<f64>);

impl LogRatios {
    /// Of `one` to `other`, block by block. `None` unless both have as many numbers, at least one, all above 0 and
    /// finite.
    pub fn of(one: &[f64], other: &[f64]) -> Option<LogRatios> {
        LogRatios::between(&logs(one)?, &logs(other)?)
    }

    /// The same of what are logarithms already.
    pub(super) fn between(one: &[f64], other: &[f64]) -> Option<LogRatios> {
        // A difference of logarithms is the same from either side to the last bit, and a ratio's logarithm is not.
        let ratios = || one.iter().zip(other).map(|(one, other)| one - other).collect();
        (!one.is_empty() && one.len() == other.len()).then(|| LogRatios(ratios()))
    }

    pub fn blocks(&self) -> usize {
        self.0.len()
    }

    /// The estimate is Hodges and Lehmann's, the median of all means of two blocks, however few blocks there are: one
    /// block out of line moves it little, and it says nothing else when the next block comes. It always lies inside the
    /// interval of Student's t, since a median is no further from its mean than their standard deviation.
    pub fn ratio(&self) -> Ratio {
        self.ratio_at(TAIL)
    }

    /// The same with an interval that has the true ratio beyond either end with the chance `tail`: exact where there
    /// are enough blocks for that, else Student's.
    pub fn ratio_at(&self, tail: f64) -> Ratio {
        let averages = Averages::new(self.0.clone()).expect("there is at least one, and all are finite");
        let place = wilcoxon::interval_place(self.blocks(), tail);
        let exact = place.and_then(|place| averages.median_and_bounds(place));
        let (median, interval) = match exact {
            Some((median, (low, high))) => (median, Interval::Exact { low: libm::exp(low), high: libm::exp(high) }),
            None => (averages.median(), self.preliminary(tail)),
        };
        Ratio { estimate: libm::exp(median), interval }
    }

    /// Student's t of the logarithms: below six blocks no exact interval of 95 in 100 is to be had.
    fn preliminary(&self, tail: f64) -> Interval {
        let Some((freedom, mean, error)) = self.mean_and_error().filter(|_| self.blocks() >= LEAST_BLOCKS) else {
            return Interval::None;
        };
        let half = student::quantile(1.0 - tail, freedom) * error;
        Interval::Preliminary { low: libm::exp(mean - half), high: libm::exp(mean + half) }
    }

    /// So many blocks would have an interval at this `tail` that reaches less far than `gap`, a logarithm, from its
    /// middle: as far as the deviation of these tells, by Student's t. `None` where more than `most` would be needed,
    /// or where there is a single block.
    pub fn blocks_for(&self, gap: f64, tail: f64, most: usize) -> Option<usize> {
        let (_, _, error) = self.mean_and_error()?;
        let deviation = error * (self.blocks() as f64).sqrt();
        let is_wide = |blocks: &usize| {
            let freedom = NonZeroUsize::new(blocks - 1).expect("four blocks at least");
            student::quantile(1.0 - tail, freedom) * deviation / (*blocks as f64).sqrt() >= gap
        };
        let all: Vec<usize> = (LEAST_BLOCKS..=most).collect();
        all.get(all.partition_point(is_wide)).copied()
    }

    /// The p-value of "neither is faster" by Wilcoxon's signed ranks, exact, both sides.
    pub fn wilcoxon(&self) -> f64 {
        wilcoxon::p_value(&self.0)
    }

    /// The same by Student's t; `None` for a single block.
    pub fn student(&self) -> Option<f64> {
        let (freedom, mean, error) = self.mean_and_error()?;
        // Blocks that all tell the same leave no doubt, whichever it is that they tell.
        let t = if mean == 0.0 { 0.0 } else { mean / error };
        Some(student::beyond(t, freedom))
    }

    /// Degrees of freedom, mean and its standard error.
    fn mean_and_error(&self) -> Option<(NonZeroUsize, f64, f64)> {
        let freedom = NonZeroUsize::new(self.blocks() - 1)?;
        let count = self.blocks() as f64;
        let mean = self.0.iter().sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|log| (log - mean).powi(2)).sum();
        Some((freedom, mean, (squares / freedom.get() as f64 / count).sqrt()))
    }
}

/// The logarithm of each cost, the same on any machine; `None` unless all are above 0 and finite.
pub(super) fn logs(costs: &[f64]) -> Option<Vec<f64>> {
    costs.iter().map(|cost| (cost.is_finite() && *cost > 0.0).then(|| libm::log(*cost))).collect()
}

/// How many times as much one target costs as another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub estimate: f64,
    pub interval: Interval,
}

impl Ratio {
    /// Seen from the other target's side.
    pub fn inverse(self) -> Ratio {
        Ratio { estimate: 1.0 / self.estimate, interval: self.interval.inverse() }
    }
}

/// Where the true ratio lies, 95 times in 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Interval {
    /// Of three blocks or fewer: nothing is known.
    None,
    /// Of four or five, or of too few for an exact one, by Student's t: true if the noise is that of the normal
    /// distribution.
    Preliminary { low: f64, high: f64 },
    /// Of six or more, by Wilcoxon's signed ranks: true of any noise that favours neither target.
    Exact { low: f64, high: f64 },
}

impl Interval {
    pub fn bounds(self) -> Option<(f64, f64)> {
        match self {
            Interval::None => None,
            Interval::Preliminary { low, high } | Interval::Exact { low, high } => Some((low, high)),
        }
    }

    /// By how much the ends are more and less than their middle, as a part of it: 0.03 of [0.97, 1.03]. The middle is
    /// the geometric one, so that it is the same from either target's side: sqrt(high / low) - 1.
    pub fn plus_minus(self) -> Option<f64> {
        self.bounds().map(|(low, high)| (high / low).sqrt() - 1.0)
    }

    /// How far the end that is further from 1 is from it, as a share: max(high, 1 / low) - 1.
    pub fn far_end(self) -> Option<f64> {
        self.bounds().map(|(low, high)| high.max(1.0 / low) - 1.0)
    }

    /// How far the end that is nearer to 1 is from it, as a share: low - 1 or 1 / high - 1; 0 where 1 lies inside.
    pub fn near_end(self) -> Option<f64> {
        self.bounds().map(|(low, high)| (low - 1.0).max(1.0 / high - 1.0).max(0.0))
    }

    /// Whether the true ratio may be this; where nothing is known it may be any.
    pub fn contains(self, ratio: f64) -> bool {
        self.bounds().is_none_or(|(low, high)| low <= ratio && ratio <= high)
    }

    fn inverse(self) -> Interval {
        match self {
            Interval::None => Interval::None,
            Interval::Preliminary { low, high } => Interval::Preliminary { low: 1.0 / high, high: 1.0 / low },
            Interval::Exact { low, high } => Interval::Exact { low: 1.0 / high, high: 1.0 / low },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[f64]) -> Ratio {
        LogRatios::of(ratios, &vec![1.0; ratios.len()]).unwrap().ratio()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn few_blocks_have_no_interval_and_some_more_a_preliminary_one() {
        let ratios = [1.10, 1.20, 1.15, 1.12, 1.18, 1.16];
        for (blocks, kind) in [(1, "None"), (3, "None"), (4, "Preliminary"), (5, "Preliminary"), (6, "Exact")] {
            assert!(format!("{:?}", of(&ratios[..blocks]).interval).starts_with(kind), "{blocks} blocks");
        }
    }

    /// Of six blocks the interval is the whole range; of seven the ends are the third averages from either end.
    #[test]
    fn exact_intervals_are_averages_counted_from_the_ends() {
        let six = of(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]);
        let (low, high) = six.interval.bounds().unwrap();
        assert!(near(low, 1.0) && near(high, 1.5));
        let powers: Vec<f64> = (0..7).map(|power| f64::exp(f64::from(power))).collect();
        let seven = of(&powers);
        // Averages of 0 to 6: 0, 0.5, 1, 1, ...; the middle one is 3.
        let (low, high) = seven.interval.bounds().unwrap();
        assert!(near(low.ln(), 1.0) && near(high.ln(), 5.0) && near(seven.estimate.ln(), 3.0));
        assert!(near(seven.interval.plus_minus().unwrap(), f64::exp(2.0) - 1.0));
    }

    #[test]
    fn the_far_end_of_an_interval_is_as_far_from_either_side() {
        let far = |low, high| Interval::Exact { low, high }.far_end().unwrap();
        assert!(near(far(0.8, 0.9), 0.25) && near(far(0.8, 1.1), 0.25) && near(far(0.9, 1.25), 0.25));
        assert_eq!(Interval::None.far_end(), None);
    }

    #[test]
    fn an_interval_the_other_way_round_has_the_inverse_ends() {
        assert_eq!(Interval::Exact { low: 0.5, high: 0.8 }.inverse(), Interval::Exact { low: 1.25, high: 2.0 });
        let preliminary = Interval::Preliminary { low: 0.5, high: 0.8 };
        assert_eq!(preliminary.inverse(), Interval::Preliminary { low: 1.25, high: 2.0 });
        assert_eq!(Interval::None.inverse(), Interval::None);
    }

    /// By hand: logarithms 0.1, 0.2, 0.3, 0.4 have the mean 0.25 and the standard error 0.0645497; t is 3.182446.
    #[test]
    fn preliminary_intervals_are_students() {
        let four: Vec<f64> = [0.1_f64, 0.2, 0.3, 0.4].iter().map(|log| log.exp()).collect();
        let (low, high) = of(&four).interval.bounds().unwrap();
        assert!((low.ln() - (0.25 - 3.182446 * 0.0645497)).abs() < 1e-6);
        assert!((high.ln() - (0.25 + 3.182446 * 0.0645497)).abs() < 1e-6);
        let p = LogRatios::of(&four, &[1.0; 4]).unwrap().student().unwrap();
        // t is 3.873; R's 2 * pt(-3.872983, 3) is 0.03046617.
        assert!((p - 0.030466).abs() < 1e-5, "{p}");
    }

    /// By hand: a deviation of 0.1 and t of 1.984 at 100 blocks make 0.0198, and of 1.984 at 99 blocks 0.0199.
    #[test]
    fn the_blocks_that_would_do_are_those_of_students_t() {
        let logs = [0.3, 0.2, 0.1, 0.3 - 0.1732050807568877];
        let mean = logs.iter().sum::<f64>() / 4.0;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
        let ratios: Vec<f64> = logs.iter().map(|log| (log * 0.1 / deviation).exp()).collect();
        let ratios = LogRatios::of(&ratios, &[1.0; 4]).unwrap();
        assert_eq!(ratios.blocks_for(0.0199, TAIL, 1_000), Some(100));
        assert_eq!(ratios.blocks_for(0.0199, TAIL, 100), Some(100));
        assert_eq!(ratios.blocks_for(0.0199, TAIL, 99), None);
        // t of 2.776 at 5 blocks make 0.124, and of 2.571 at 6 blocks 0.1049.
        assert_eq!([0.12, 0.1055].map(|gap| ratios.blocks_for(gap, TAIL, 1_000)), [Some(6), Some(6)]);
        assert_eq!(ratios.blocks_for(1.0, TAIL, 1_000), Some(4));
    }

    #[test]
    fn the_estimate_lies_inside_its_interval_and_a_block_out_of_line_moves_it_little() {
        for blocks in 4..12 {
            let mut ratios = vec![1.0; blocks];
            ratios[0] = 3.0;
            let ratio = of(&ratios);
            assert!(ratio.interval.contains(ratio.estimate));
            assert!(ratio.estimate < 1.05, "{blocks} blocks: {}", ratio.estimate);
        }
    }

    #[test]
    fn either_side_tells_the_same() {
        let (one, other) = ([3.1, 2.9, 3.3, 3.0, 3.05, 2.7, 3.2], [2.0, 2.2, 2.1, 1.9, 2.05, 2.3, 2.15]);
        let there = LogRatios::of(&one, &other).unwrap();
        let back = LogRatios::of(&other, &one).unwrap();
        assert_eq!((there.wilcoxon(), there.student()), (back.wilcoxon(), back.student()));
        let (ratio, inverse) = (there.ratio(), back.ratio().inverse());
        assert!(near(ratio.estimate, inverse.estimate));
        let (bounds, inverse) = (ratio.interval.bounds().unwrap(), inverse.interval.bounds().unwrap());
        assert!(near(bounds.0, inverse.0) && near(bounds.1, inverse.1));
        assert!(!ratio.interval.contains(1.0) && Interval::None.contains(1.0));
    }

    /// Or blocks that tell the opposite would not share a rank.
    #[test]
    fn logarithms_are_the_same_from_either_side_to_the_last_bit() {
        for (one, other) in (1..100).map(|step| (f64::from(step) / 7.0, f64::from(step * step) / 3.0)) {
            let logs = LogRatios::of(&[one, other], &[other, one]).unwrap().0;
            assert_eq!(logs[0], -logs[1]);
        }
    }

    #[test]
    fn what_has_no_logarithm_or_no_partner_is_no_ratio() {
        assert_eq!(LogRatios::of(&[], &[]), None);
        assert_eq!(LogRatios::of(&[1.0], &[1.0, 2.0]), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(LogRatios::of(&[1.0, bad], &[1.0, 1.0]), None);
            assert_eq!(LogRatios::of(&[1.0, 1.0], &[bad, 1.0]), None);
        }
    }

    #[test]
    fn blocks_that_all_tell_the_same_leave_no_doubt() {
        assert_eq!(LogRatios::of(&[2.0; 4], &[1.0; 4]).unwrap().student(), Some(0.0));
        assert_eq!(LogRatios::of(&[2.0; 4], &[2.0; 4]).unwrap().student(), Some(1.0));
        assert_eq!(LogRatios::of(&[2.0], &[1.0]).unwrap().student(), None);
    }

    #[test]
    fn the_near_end_of_an_interval_is_as_far_from_either_side_and_nothing_around_1() {
        let near_end = |low, high| Interval::Exact { low, high }.near_end();
        assert_eq!([near_end(1.25, 2.0), near_end(0.5, 0.8)], [Some(0.25); 2]);
        assert_eq!([near_end(0.9, 1.1), near_end(1.0, 2.0), near_end(0.5, 1.0)], [Some(0.0); 3]);
        assert_eq!(near_end(1.125, 1.5), Some(0.125));
        assert_eq!(Interval::None.near_end(), None);
    }

    #[test]
    fn an_interval_contains_its_ends() {
        let interval = Interval::Exact { low: 0.5, high: 2.0 };
        assert!(interval.contains(0.5) && interval.contains(2.0));
        assert!(!interval.contains(0.499) && !interval.contains(2.001));
    }
}
