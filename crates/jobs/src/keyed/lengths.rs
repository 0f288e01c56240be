//! How long the values of a job are: all alike, or each key's its own.

use kvfair_core::load::Spread;
use kvfair_draw::mix;

/// Lengths are drawn from so many equally likely ones, sorted: a table instead of arithmetic for each question.
const QUANTILES: usize = 1 << 16;
/// Makes a number of a key's that its place among the random bytes does not share.
const OTHER: u64 = 0x3c6e_f372_fe94_f82b;

/// The shares of values of 0 to 14 bytes in the pool ETC of Facebook's memcached (Atikoglu and others, "Workload
/// analysis of a large-scale key-value store", SIGMETRICS 2012, as Leverich's mutilate has them). An empty one is made
/// of one byte here: not every store has empty values.
const ETC_SHORT: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837, 0.08989,
    0.00092, 0.00326, 0.01980,
];
/// Where its longer values begin, their scale and shape: a generalised Pareto distribution.
const ETC_LONG: (f64, f64, f64) = (15.0, 214.476, 0.348_238);

/// The lengths of all keys' values.
pub struct Lengths {
    same: u32,
    /// Empty where all are the same.
    quantiles: Vec<u32>,
}

impl Lengths {
    pub fn new(same: u32, spread: Option<Spread>) -> Lengths {
        let at = |index: usize| (index as f64 + 0.5) / QUANTILES as f64;
        let of = |share: f64| match spread {
            Some(Spread::Range { low, high }) => low + (share * f64::from(high - low + 1)) as u32,
            Some(Spread::Etc) => etc(share),
            None => same,
        };
        let quantiles = spread.map_or_else(Vec::new, |_| (0..QUANTILES).map(|index| of(at(index))).collect());
        Lengths { same, quantiles }
    }

    #[inline(always)]
    pub fn are_same(&self) -> bool {
        self.quantiles.is_empty()
    }

    /// Of a key's value, in bytes, whichever version.
    #[inline(always)]
    pub fn of(&self, record: u64) -> usize {
        if self.are_same() {
            return self.same as usize;
        }
        self.quantiles[(mix(record ^ OTHER) >> 48) as usize] as usize
    }

    /// The longest there can be.
    pub fn most(&self) -> usize {
        self.quantiles.last().copied().unwrap_or(self.same) as usize
    }

    /// The shortest there can be.
    pub fn least(&self) -> usize {
        self.quantiles.first().copied().unwrap_or(self.same) as usize
    }

    /// Bytes of a value on average.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.quantiles.iter().map(|&length| u64::from(length)).sum();
        if self.are_same() { f64::from(self.same) } else { sum as f64 / QUANTILES as f64 }
    }
}

/// The length that a share of ETC's values does not exceed.
fn etc(share: f64) -> u32 {
    let mut below = 0.0;
    for (length, part) in (0..).zip(ETC_SHORT) {
        below += part;
        if share < below {
            return u32::max(length, 1);
        }
    }
    let (begin, scale, shape) = ETC_LONG;
    let left = (1.0 - share) / (1.0 - below);
    (begin + scale * (libm::pow(left, -shape) - 1.0) / shape) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(lengths: &Lengths, is: impl Fn(usize) -> bool) -> f64 {
        (0..200_000).filter(|&record| is(lengths.of(record))).count() as f64 / 200_000.0
    }

    #[test]
    fn lengths_of_a_range_are_all_as_often() {
        let lengths = Lengths::new(0, Some(Spread::Range { low: 10, high: 19 }));
        (10..20).for_each(|length| assert!((share(&lengths, |found| found == length) - 0.1).abs() < 0.005));
        assert_eq!((lengths.most(), lengths.of(7)), (19, lengths.of(7)));
        assert!((lengths.mean() - 14.5).abs() < 0.01);
        assert_eq!(Lengths::new(32, None).of(5), 32);
    }

    #[test]
    fn lengths_of_etc_are_those_that_were_published() {
        let lengths = Lengths::new(0, Some(Spread::Etc));
        for (length, expected) in [(1, 0.00583), (2, 0.17820), (3, 0.09239), (11, 0.08989), (14, 0.01980)] {
            let found = share(&lengths, |found| found == length);
            assert!((found - expected).abs() < 0.003, "{found} of {length} bytes");
        }
        // Of the longer ones half are below 15 + 214.476 (2^0.348238 - 1) / 0.348238 = 183.2 bytes.
        let (long, below) = (share(&lengths, |found| found >= 15), share(&lengths, |found| (15..183).contains(&found)));
        assert!((long - 0.55845).abs() < 0.005 && (below / long - 0.5).abs() < 0.01, "{long} {below}");
        assert!(lengths.most() < 1 << 20, "{}", lengths.most());
    }
}
