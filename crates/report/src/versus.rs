//! A ratio of two costs with its interval, and how it is written.

use serde::Serialize;

use kvfair_core::units;
use kvfair_stats::paired::{Interval, Ratio};

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

    /// How far the end of the interval that is nearer to 1 is from it, as a share; 0 where it holds 1, or is none.
    pub fn near_end(&self) -> f64 {
        self.low.zip(self.high).map_or(0.0, |(low, high)| (low - 1.0).max(1.0 / high - 1.0).max(0.0))
    }
}

/// What stands before a ratio of too few blocks for an exact interval, which is rough.
const ROUGH: &str = "about ";
/// No ratio is written with more places: nearer to 1 it is 1.
const PLACES_MAX: usize = 6;

/// "3.4x [3.3-3.5]", "about 3.4x [3.1-3.8]": no more digits than the interval supports, and two at least. Without an
/// interval "1.00x".
pub(super) fn versus(versus: Versus) -> String {
    let alone = without_interval(versus);
    match versus.low.zip(versus.high) {
        Some((low, high)) if low < high => {
            let [low, high] = [low, high].map(|end| digits(end, places_of(high - low, versus.ratio)));
            format!("{alone} [{low}-{high}]")
        }
        _ => alone,
    }
}

/// "3.4x", "about 3.4x".
fn without_interval(versus: Versus) -> String {
    let width = versus.low.zip(versus.high).map_or(0.0, |(low, high)| high - low);
    let rough = if versus.preliminary && width > 0.0 { ROUGH } else { "" };
    format!("{rough}{}x", digits(versus.ratio, places_of(width, versus.ratio)))
}

/// The same of a target that was run twice, with two digits: what is claimed is beyond the far end of these.
pub(super) fn of_twice(versus: Versus) -> String {
    let end = |ratio: f64| digits(ratio, 2);
    let ends = versus.low.zip(versus.high);
    let ends = ends.map_or_else(String::new, |(low, high)| format!(" [{}-{}]", end(low), end(high)));
    format!("{}x{ends}", end(versus.ratio))
}

/// With so many places, or with more where two digits take more, or the side of 1 on which it lies: only 1 itself is
/// written as 1, and nothing as 0.
pub(super) fn digits(ratio: f64, places: usize) -> String {
    let is_seen = |places: usize| {
        let scale = libm::exp10(places as f64);
        ((ratio * scale).round() / scale).total_cmp(&1.0) == ratio.total_cmp(&1.0)
    };
    let places = (places.max(places_of_two(ratio))..PLACES_MAX).find(|places| is_seen(*places)).unwrap_or(PLACES_MAX);
    format!("{ratio:.places$}")
}

/// "at least 36x": the end of an interval above 1, rounded down and not onto 1.
pub(super) fn at_least(ratio: f64) -> String {
    format!("at least {}", rounded_down(ratio))
}

/// "at most 0.83x": the end of an interval below 1, rounded up and not onto 1.
pub(super) fn at_most(ratio: f64) -> String {
    format!("at most {}", rounded_up(ratio))
}

fn rounded_down(ratio: f64) -> String {
    let places = match ratio {
        10.0.. => 0,
        1.1.. => 1,
        _ => 2,
    };
    format!("{}x", rounded(ratio, places, f64::floor))
}

fn rounded_up(ratio: f64) -> String {
    format!("{}x", rounded(ratio, places_of_two(ratio).max(2), f64::ceil))
}

/// What is claimed of a ratio: of a noisy run only the end of its interval that is nearer to 1, "at least 1.2x" or "at
/// most 0.83x".
pub(super) fn claimed(ratio: Versus, is_noisy: bool) -> String {
    match ratio.low.zip(ratio.high).filter(|_| is_noisy) {
        Some((low, _)) if low > 1.0 => at_least(low),
        Some((_, high)) if high < 1.0 => at_most(high),
        _ => versus(ratio),
    }
}

/// The same in one word or two: "1.18x", "about 1.2x", "≥1.2x", "≤0.83x".
pub(super) fn claimed_in_brief(ratio: Versus, is_noisy: bool) -> String {
    match ratio.low.zip(ratio.high).filter(|_| is_noisy) {
        Some((low, _)) if low > 1.0 => format!("≥{}", rounded_down(low)),
        Some((_, high)) if high < 1.0 => format!("≤{}", rounded_up(high)),
        _ => without_interval(ratio),
    }
}

fn rounded(ratio: f64, places: usize, round: fn(f64) -> f64) -> String {
    let at = |places: usize| {
        let scale = libm::exp10(places as f64);
        round(ratio * scale) / scale
    };
    let places = (places..PLACES_MAX).find(|places| at(*places) != 1.0).unwrap_or(PLACES_MAX);
    format!("{:.places$}", at(places))
}

/// The places that two digits take.
fn places_of_two(ratio: f64) -> usize {
    (1.0 - libm::log10(ratio.max(1e-9)).floor()).max(0.0) as usize
}

/// A ratio that was written as above, in a sentence: "1.18 times as long [1.14-1.27]", "at least 36 times as long".
pub(super) fn in_a_sentence(ratio: &str, as_what: &str) -> String {
    ratio.replacen('x', &format!(" times {as_what}"), 1)
}

/// To the first digit of half the interval, and three digits in all.
fn places_of(width: f64, ratio: f64) -> usize {
    let most = (2.0 - libm::log10(ratio.max(1e-9)).floor()).clamp(0.0, 2.0);
    let supported = if width > 0.0 { (-libm::log10(width / 2.0).floor()).max(0.0) } else { most };
    supported.min(most) as usize
}

/// "1 block is too few", "3 fresh blocks are too few".
pub(crate) fn too_few(count: usize, what: &str) -> String {
    format!("{} {} too few", units::counted(count as u64, what), if count == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_is_too_few_and_three_are() {
        assert_eq!(too_few(1, "block"), "1 block is too few");
        assert_eq!(too_few(3, "fresh block"), "3 fresh blocks are too few");
    }

    fn of(ratio: f64, low: f64, high: f64) -> String {
        versus(Versus { ratio, low: Some(low), high: Some(high), preliminary: false })
    }

    #[test]
    fn a_ratio_has_two_digits_at_least_and_is_never_0() {
        assert_eq!(of(1.1, 0.034, 4.2), "1.1x [0.034-4.2]");
        assert_eq!(of(2.0, 1.2, 5.1), "2.0x [1.2-5.1]");
        assert_eq!(of(31.2, 29.1, 33.3), "31x [29-33]");
        assert_eq!(of(3.42, 3.31, 3.52), "3.4x [3.3-3.5]");
        assert_eq!(of(0.0021, 0.0012, 0.0045), "0.0021x [0.0012-0.0045]");
        assert_eq!(of(120.0, 60.0, 300.0), "120x [60-300]");
    }

    #[test]
    fn a_ratio_is_never_rounded_onto_1_or_over_it() {
        assert_eq!(of(1.2, 1.004, 1.4), "1.2x [1.004-1.4]");
        assert_eq!(of(0.98, 0.7, 0.9996), "0.98x [0.70-0.9996]");
        assert_eq!(of(1.0, 1.0, 1.03), "1.00x [1.00-1.03]");
        assert_eq!(digits(1.04, 1), "1.04");
        assert_eq!(digits(0.97, 1), "0.97");
        assert_eq!(at_least(1.004), "at least 1.004x");
        assert_eq!(at_least(1.19), "at least 1.1x");
        assert_eq!(at_most(0.9996), "at most 0.9996x");
        assert_eq!(at_most(0.0341), "at most 0.035x");
        let noisy =
            |low, high| claimed(Versus { ratio: 1.0, low: Some(low), high: Some(high), preliminary: false }, true);
        assert_eq!([noisy(0.6, 0.8), noisy(1.25, 1.5)], ["at most 0.80x", "at least 1.2x"]);
        assert!(noisy(0.9, 1.1).starts_with("1.0x ["), "{}", noisy(0.9, 1.1));
    }
}
