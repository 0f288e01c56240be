//! Walsh's averages: the means of all pairs of numbers, and the numbers themselves. Of a thousand numbers they are half
//! a million, so that none of them is written down: what stands at a place is found by counting.

/// At least one number, none of them NaN, in ascending order; asked for the means of its pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Averages(Vec<f64>);

impl Averages {
    /// `None` where there is no number, or where one is none.
    pub fn new(mut numbers: Vec<f64>) -> Option<Averages> {
        if numbers.is_empty() || numbers.iter().any(|number| number.is_nan()) {
            return None;
        }
        numbers.sort_unstable_by(f64::total_cmp);
        Some(Averages(numbers))
    }

    pub fn count(&self) -> usize {
        self.0.len() * (self.0.len() + 1) / 2
    }

    /// The middle average, or the mean of the two in the middle: the estimate of Hodges and Lehmann (Annals of
    /// Mathematical Statistics 34, 1963).
    pub fn median(&self) -> f64 {
        let [one, other] = self.at(self.middle());
        (one + other) / 2.0
    }

    /// The median, and the averages at this place from the low end and from the high end, counted from 1; `None` where
    /// these would cross.
    pub fn median_and_bounds(&self, place: usize) -> Option<(f64, (f64, f64))> {
        let from_high = (self.count() + 1).checked_sub(place).filter(|from_high| (1..=*from_high).contains(&place))?;
        let [left, right] = self.middle();
        let [low, one, other, high] = self.at([place, left, right, from_high]);
        Some(((one + other) / 2.0, (low, high)))
    }

    /// The ranks in the middle; one and the same where their number is odd.
    fn middle(&self) -> [usize; 2] {
        [self.count().div_ceil(2), self.count() / 2 + 1]
    }

    /// The averages of these ranks, counted from 1 and ascending as they are, to the last bit.
    fn at<const COUNT: usize>(&self, ranks: [usize; COUNT]) -> [f64; COUNT] {
        let mut found = [0.0; COUNT];
        let (lowest, highest) = (self.0[0].next_down(), self.0[self.0.len() - 1]);
        self.search(Span { low: lowest, below: 0, high: highest, up_to: self.count() }, &ranks, &mut found);
        found
    }

    /// A span is halved until it holds hardly more averages than there are numbers, and those are written down (after
    /// Johnson and Mizoguchi, SIAM Journal on Computing 7, 1978, who choose their halves otherwise).
    fn search(&self, span: Span, ranks: &[usize], found: &mut [f64]) {
        if ranks.is_empty() {
            return;
        }
        let middle = span.low / 2.0 + span.high / 2.0;
        if middle <= span.low || middle >= span.high {
            // Neighbours: all that are left are equal.
            return found.fill(span.high);
        }
        if span.up_to - span.below <= 2 * self.0.len() {
            let mut averages = self.between(span.low, span.high);
            for (found, rank) in found.iter_mut().zip(ranks) {
                *found = *averages.select_nth_unstable_by(rank - span.below - 1, f64::total_cmp).1;
            }
            return;
        }
        let count = self.at_most(middle);
        let here = ranks.partition_point(|rank| *rank <= count);
        let (low, high) = found.split_at_mut(here);
        self.search(Span { high: middle, up_to: count, ..span }, &ranks[..here], low);
        self.search(Span { low: middle, below: count, ..span }, &ranks[here..], high);
    }

    /// How many averages are no higher than this. The higher one of a pair is, the lower the other may be.
    fn at_most(&self, limit: f64) -> usize {
        let (mut count, mut end) = (0, self.0.len());
        for (index, one) in self.0.iter().enumerate() {
            while end > index && average(*one, self.0[end - 1]) > limit {
                end -= 1;
            }
            if end <= index {
                break;
            }
            count += end - index;
        }
        count
    }

    /// All averages above one number and no higher than another.
    fn between(&self, low: f64, high: f64) -> Vec<f64> {
        let numbers = &self.0;
        let mut found = Vec::with_capacity(numbers.len());
        let mut end = numbers.len();
        for (index, one) in numbers.iter().enumerate() {
            while end > index && average(*one, numbers[end - 1]) > high {
                end -= 1;
            }
            let others = numbers[index..end.max(index)].iter().rev();
            found.extend(others.map(|other| average(*one, *other)).take_while(|average| *average > low));
        }
        found
    }
}

/// The averages that are above one number and at most another, and how many are not above either.
#[derive(Clone, Copy)]
struct Span {
    low: f64,
    below: usize,
    high: f64,
    up_to: usize,
}

/// Halves first, so that the sum of two large numbers is no infinity.
fn average(one: f64, other: f64) -> f64 {
    one / 2.0 + other / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    /// All of them, written down.
    fn all(numbers: &[f64]) -> Sample {
        let pairs = numbers
            .iter()
            .enumerate()
            .flat_map(|(index, one)| numbers[index..].iter().map(move |other| average(*one, *other)));
        Sample::new(pairs.collect()).unwrap()
    }

    fn numbers(count: usize, of: impl Fn(u64) -> f64) -> Vec<f64> {
        let mut state = count as u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            of(state >> 33)
        };
        (0..count).map(|_| draw()).collect()
    }

    #[test]
    fn what_is_found_by_counting_is_what_stands_there() {
        let kinds: [fn(u64) -> f64; 5] = [
            |draw| draw as f64 / 1e9 - 1.0,
            |draw| (draw % 7) as f64 - 3.0,
            |_| 0.25,
            |draw| if draw % 10 == 0 { draw as f64 * 1e290 } else { 0.0 },
            |draw| (draw as f64 / 1e9).powi(9),
        ];
        for kind in kinds {
            for count in [1, 2, 3, 6, 7, 59, 60, 61, 200] {
                let numbers = numbers(count, kind);
                let (expected, found) = (all(&numbers), Averages::new(numbers.clone()).unwrap());
                assert_eq!(found.median(), expected.median(), "{count} of {:?}", &numbers[..count.min(5)]);
                for place in [0, 1, 2, count, found.count() / 3, found.count() / 2 + 1, found.count(), usize::MAX] {
                    let bounds = found.median_and_bounds(place).map(|(_, bounds)| bounds);
                    assert_eq!(bounds, expected.bounds(place), "{place} of {count}");
                }
            }
        }
    }

    #[test]
    fn nothing_and_what_is_no_number_have_no_averages() {
        assert_eq!(Averages::new(vec![]), None);
        assert_eq!(Averages::new(vec![1.0, f64::NAN]), None);
    }
}
