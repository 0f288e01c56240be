//! An axis: which numbers it spans, whether in equal steps or in equal ratios, and where its ticks stand.

use kvfair_core::units;

/// From so many times the smallest number on, what was swept is drawn in equal ratios.
const LOGARITHMIC_SWEEP: f64 = 10.0;
/// The same for what was measured: beyond it the smallest would lie on the floor.
const LOGARITHMIC_MEASURE: f64 = 50.0;
/// Beyond this a tick a power of ten is enough.
const POWERS_ALONE: f64 = 1000.0;
/// Below this ticks in equal steps are nearer to each other than 1, 2 and 5.
const EVEN_STEPS: f64 = 3.5;
const TICKS_MAX: f64 = 6.0;
/// Less than this across would draw noise large.
const RATIO_LEAST: f64 = 1.2;
/// Ticks nearer to each other than this share of the axis would touch.
const TICK_SHARE: f64 = 0.08;
/// Room beyond the first and the last point, as a share of the axis.
const MARGIN_SHARE: f64 = 0.04;

/// An axis from `low` to `high`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    pub logarithmic: bool,
    pub ticks: Vec<f64>,
    /// Behind its numbers: "x", " s".
    unit: &'static str,
}

impl Axis {
    /// Of what was swept: the ticks are the values themselves, as far as there is room. At least one value.
    pub fn of_sweep(values: &[f64]) -> Axis {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let (first, last) = (values[0], values[values.len() - 1]);
        let logarithmic = first > 0.0 && last / first > LOGARITHMIC_SWEEP;
        let (low, high) = if logarithmic {
            let ratio = (last / first).powf(MARGIN_SHARE);
            (first / ratio, last * ratio)
        } else {
            // A single value stands in the middle.
            let margin = ((last - first) * MARGIN_SHARE).max(if first == last { 1.0 } else { 0.0 });
            (first - margin, last + margin)
        };
        let axis = Axis { low, high, logarithmic, ticks: Vec::new(), unit: "" };
        let mut ticks: Vec<f64> = Vec::new();
        for value in values {
            let near = |tick: &f64| axis.share(value) - axis.share(*tick) < TICK_SHARE;
            if value == last && ticks.len() > 1 && ticks.last().is_some_and(near) {
                ticks.pop();
            }
            if !ticks.last().is_some_and(near) {
                ticks.push(value);
            }
        }
        Axis { ticks, ..axis }
    }

    /// Of so many places beside each other, the first one at 0, with a tick at each `step` of them.
    pub fn of_places(count: usize, step: usize) -> Axis {
        let ticks = (0..count).step_by(step.max(1)).map(|place| place as f64).collect();
        Axis { low: -0.5, high: count.max(1) as f64 - 0.5, logarithmic: false, ticks, unit: "" }
    }

    /// Of what was measured: from nothing on, or in equal ratios where the numbers are too far apart for that; round
    /// ticks. Numbers are not negative.
    pub fn of_measure(numbers: &[f64]) -> Axis {
        let most = numbers.iter().copied().fold(0.0, f64::max);
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        if least > 0.0 && most / least > LOGARITHMIC_MEASURE {
            return Axis::of_ratios(least / 1.3, most * 1.3, "");
        }
        let high = if most > 0.0 { most * 1.05 } else { 1.0 };
        Axis { low: 0.0, high, logarithmic: false, ticks: even_steps(0.0, high), unit: "" }
    }

    /// Of numbers above 0 in equal ratios, with a round number at both ends.
    pub fn of_latencies(numbers: &[f64]) -> Axis {
        let most = numbers.iter().copied().fold(1e-3, f64::max);
        let least = numbers.iter().copied().fold(most, f64::min).max(1e-3);
        let round = |power: i32| [1.0, 2.0, 5.0].map(|times| times * 10_f64.powi(power));
        let powers = (least.log10().floor() as i32 - 1)..=(most.log10().ceil() as i32 + 1);
        let all: Vec<f64> = powers.flat_map(round).collect();
        let low = all.iter().copied().rfind(|tick| *tick <= least).unwrap_or(least);
        let high = all.iter().copied().find(|tick| *tick >= most && *tick > low).unwrap_or(most);
        Axis { ticks: round_numbers(low * 0.999, high * 1.001), ..Axis::of_ratios(low * 0.999, high * 1.001, "") }
    }

    /// Around these numbers in equal ratios; what is not above 0 has no place.
    pub fn around(numbers: impl Iterator<Item = f64>, unit: &'static str) -> Axis {
        let all = numbers.filter(|number| *number > 0.0 && number.is_finite());
        let span = all.map(|number| (number, number)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let (low, high) = span.unwrap_or((1.0, 1.0));
        let missing = (RATIO_LEAST / (high / low)).max(1.0).sqrt();
        let (low, high) = (low / missing, high * missing);
        let margin = libm::pow(high / low, MARGIN_SHARE);
        Axis::of_ratios(low / margin, high * margin, unit)
    }

    fn of_ratios(low: f64, high: f64, unit: &'static str) -> Axis {
        let ticks = if high / low < EVEN_STEPS { even_steps(low, high) } else { round_numbers(low, high) };
        Axis { low, high, logarithmic: true, ticks, unit }
    }

    /// How far along the axis a number lies, from 0 to 1: at an end what lies beyond it.
    pub fn share(&self, number: f64) -> f64 {
        let share = if self.logarithmic {
            libm::log(number.max(f64::MIN_POSITIVE) / self.low) / libm::log(self.high / self.low)
        } else {
            (number - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    pub fn has(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    /// Whether a number is that of what all others are times of.
    pub fn is_origin(&self, number: f64) -> bool {
        self.unit == "x" && number == 1.0
    }

    /// A number of the axis in words: "0.05", "2.5", "5,000", "20 k", "1.5x".
    pub fn words(&self, number: f64) -> String {
        match number {
            number if number >= 10_000.0 && self.unit.is_empty() => units::count(number),
            number if number >= 1000.0 => format!("{}{}", units::thousands(number.round() as u64), self.unit),
            number => format!("{}{}", trimmed(number), self.unit),
        }
    }

    /// What an axis in equal ratios adds to its title.
    pub fn scale(&self) -> &'static str {
        if self.logarithmic { " (logarithmic)" } else { "" }
    }
}

/// Ticks are round: what stands behind the sixth digit is only how binary numbers are added.
fn trimmed(number: f64) -> String {
    let places = (5.0 - libm::log10(number.max(1e-12)).floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{number:.places$}");
    // Without a point a nought at the end counts.
    if places == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_string() }
}

/// Multiples of 1, 2 or 5 times a power of ten, few enough.
fn even_steps(low: f64, high: f64) -> Vec<f64> {
    let span = high - low;
    let power = libm::exp10(libm::log10(span / TICKS_MAX).floor());
    // What is short of it by rounding is enough.
    let is_enough = |step: &f64| span / step <= TICKS_MAX + 1e-6;
    let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(is_enough).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    (first..).map(|count| count as f64 * step).take_while(|tick| *tick <= high).collect()
}

/// 1, 2 and 5 times powers of ten; the powers alone where they are many.
fn round_numbers(low: f64, high: f64) -> Vec<f64> {
    let times: &[f64] = if high / low > POWERS_ALONE { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let ticks = powers.flat_map(|power| times.iter().map(move |times| times * 10_f64.powi(power)));
    ticks.filter(|tick| (low..=high).contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(axis: &Axis) -> String {
        axis.ticks.iter().map(|tick| axis.words(*tick)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_wide_sweep_is_drawn_in_equal_ratios() {
        let axis = Axis::of_sweep(&[100.0, 1.0, 10.0, 10.0]);
        assert!(axis.logarithmic);
        assert!((axis.share(10.0) - 0.5).abs() < 1e-9, "{}", axis.share(10.0));
        assert_eq!(axis.ticks, [1.0, 10.0, 100.0]);
        let narrow = Axis::of_sweep(&[10.0, 20.0, 30.0]);
        assert!(!narrow.logarithmic && (narrow.share(20.0) - 0.5).abs() < 1e-9);
        assert!((Axis::of_sweep(&[7.0]).share(7.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ticks_of_a_sweep_do_not_touch_and_the_last_one_stays() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let axis = Axis::of_sweep(&values);
        assert!(axis.ticks.windows(2).all(|pair| axis.share(pair[1]) - axis.share(pair[0]) >= TICK_SHARE));
        assert_eq!((axis.ticks[0], axis.ticks[axis.ticks.len() - 1]), (1.0, 100.0));
    }

    #[test]
    fn places_have_equal_room() {
        let axis = Axis::of_places(4, 2);
        let shares: Vec<f64> = (0..4).map(|place| axis.share(f64::from(place))).collect();
        assert_eq!((shares, axis.ticks.as_slice()), (vec![0.125, 0.375, 0.625, 0.875], &[0.0, 2.0][..]));
    }

    #[test]
    fn what_was_measured_begins_at_nothing_unless_it_is_too_far_apart() {
        let axis = Axis::of_measure(&[90_000.0, 210_000.0]);
        assert_eq!((axis.low, axis.logarithmic), (0.0, false));
        assert_eq!(told(&axis), "0 50 k 100 k 150 k 200 k");
        assert_eq!(told(&Axis::of_measure(&[0.3, 0.11])), "0 0.1 0.2 0.3");
        assert_eq!(told(&Axis::of_measure(&[3000.0, 400_000.0])), "5,000 10 k 20 k 50 k 100 k 200 k 500 k");
        assert_eq!(Axis::of_measure(&[0.0]).share(0.0), 0.0);
    }

    #[test]
    fn an_axis_of_latencies_ends_at_round_numbers() {
        let axis = Axis::of_latencies(&[33.0, 41.0]);
        assert!(axis.logarithmic);
        assert_eq!(told(&axis), "20 50");
        let ticks = Axis::of_latencies(&[0.0, 7_000.0]).ticks;
        assert_eq!((ticks[0], ticks[ticks.len() - 1]), (0.001, 10_000.0));
    }

    #[test]
    fn ticks_of_ratios_are_round_and_have_room() {
        for (low, high, expected) in [
            (0.95, 1.16, "0.95x 1x 1.05x 1.1x 1.15x"),
            (0.9, 1.51, "1x 1.2x 1.4x"),
            (0.9, 2.1, "1x 1.2x 1.4x 1.6x 1.8x 2x"),
            (0.1, 12.0, "0.1x 0.2x 0.5x 1x 2x 5x 10x"),
            (0.05, 5000.0, "0.1x 1x 10x 100x 1,000x"),
        ] {
            assert_eq!(told(&Axis::of_ratios(low, high, "x")), expected);
        }
        assert_eq!([1.05, 0.0125, 3.0, 500.0, 0.0].map(trimmed), ["1.05", "0.0125", "3", "500", "0"]);
    }

    #[test]
    fn equal_ratios_are_equal_lengths_and_what_lies_beyond_is_at_the_end() {
        let axis = Axis::of_ratios(0.5, 8.0, "x");
        let lengths = [axis.share(2.0) - axis.share(1.0), axis.share(4.0) - axis.share(2.0)];
        assert!((lengths[0] - lengths[1]).abs() < 1e-9 && axis.share(8.0) == 1.0, "{lengths:?}");
        assert!(axis.has(8.0) && !axis.has(9.0) && axis.share(9.0) == 1.0 && axis.share(0.0) == 0.0);
        let around = Axis::around([3.0, f64::NAN, 0.0, 1.0].into_iter(), "x");
        assert!(around.has(1.0) && around.has(3.0) && !around.has(0.5) && around.is_origin(1.0));
        let seconds = Axis::around([0.02, 0.08].into_iter(), " s");
        assert!(seconds.has(0.08) && !seconds.has(1.0) && !seconds.is_origin(1.0), "seconds have no origin");
        let nothing = Axis::around(std::iter::empty(), "");
        assert!(nothing.ticks.len() > 1 && nothing.share(1.0).is_finite());
    }
}
