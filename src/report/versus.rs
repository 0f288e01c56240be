//! A ratio of two costs with its interval, and how it is written.

use serde::Serialize;

use crate::stats::paired::{Interval, Ratio};

/// A ratio with the interval that it has: none below 4 blocks, Student's to 5, exact from 6 on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Versus {
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub preliminary: bool,
}

impl From<Ratio> for Versus {
    fn from(ratio: Ratio) -> Versus {
        let (low, high) = ratio.interval.bounds().unzip();
        let preliminary = matches!(ratio.interval, Interval::Preliminary { .. });
        Versus { ratio: ratio.estimate, low, high, preliminary }
    }
}

impl Versus {
    /// Half of the interval's width, to either side, as a share: what cannot be told apart here. 0 where there is none.
    pub fn plus_minus(&self) -> f64 {
        self.low.zip(self.high).map_or(0.0, |(low, high)| (high / low).sqrt() - 1.0)
    }
}

/// What stands before a ratio of 4 or 5 blocks, whose interval is rough.
const ROUGH: &str = "about ";

/// "3.4x [3.3-3.5]", "about 3.4x [3.1-3.8]": no more digits than the interval supports. The best itself has none.
pub(super) fn versus(versus: Versus) -> String {
    match versus.low.zip(versus.high) {
        Some((low, high)) if low < high => {
            let places = places_of(high - low, versus.ratio);
            let rough = if versus.preliminary { ROUGH } else { "" };
            format!("{rough}{:.places$}x [{low:.places$}-{high:.places$}]", versus.ratio)
        }
        _ => format!("{:.*}x", places_of(0.0, versus.ratio), versus.ratio),
    }
}

/// The same of a target that was run twice, with two digits: what is claimed is beyond the far end of these.
pub(super) fn of_twice(versus: Versus) -> String {
    let ends = versus.low.zip(versus.high).map_or_else(String::new, |(low, high)| format!(" [{low:.2}-{high:.2}]"));
    format!("{:.2}x{ends}", versus.ratio)
}

/// "at least 36x": the end of an interval, rounded down.
pub(super) fn at_least(ratio: f64) -> String {
    let places = if ratio >= 10.0 {
        0
    } else if ratio >= 1.1 {
        1
    } else {
        2
    };
    let scale = 10_f64.powi(places);
    format!("at least {:.*}x", places as usize, (ratio * scale).floor() / scale)
}

/// A ratio that was written as above, in a sentence: "1.18 times as long [1.14-1.27]", "at least 36 times as long".
pub(super) fn in_a_sentence(ratio: &str, as_what: &str) -> String {
    ratio.replacen('x', &format!(" times {as_what}"), 1)
}

/// To the first digit of half the interval, and three digits in all; two of a ratio below 0.1, which two places would
/// show as nothing.
fn places_of(width: f64, ratio: f64) -> usize {
    let size = libm::log10(ratio.max(1e-9)).floor();
    let most = if size < -1.0 { 1.0 - size } else { (2.0 - size).clamp(0.0, 2.0) };
    let supported = if width > 0.0 { (-libm::log10(width / 2.0).floor()).max(0.0) } else { most };
    supported.min(most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_ratio_is_not_nothing() {
        let of = |ratio, low, high| versus(Versus { ratio, low, high, preliminary: false });
        assert_eq!(of(0.0029, Some(0.0019), Some(0.0042)), "0.003x [0.002-0.004]");
        assert_eq!(of(0.0107, None, None), "0.011x");
        assert_eq!(of(0.021, Some(0.0201), Some(0.0259)), "0.021x [0.020-0.026]");
        assert_eq!(of(0.14, None, None), "0.14x");
        assert_eq!(of(1.18, Some(1.14), Some(1.27)), "1.18x [1.14-1.27]");
    }
}
