//! An axis: which numbers it spans, whether in equal steps or in equal ratios, and where its ticks stand.

use crate::model::units;

/// From so many times the smallest number on, what was swept is drawn in equal ratios.
const LOGARITHMIC_SWEEP: f64 = 10.0;
/// The same for what was measured: beyond it the smallest would lie on the floor.
const LOGARITHMIC_MEASURE: f64 = 50.0;
/// Beyond this a tick a power of ten is enough.
const POWERS_ALONE: f64 = 1000.0;
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
        let axis = Axis { low, high, logarithmic, ticks: Vec::new() };
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

    /// Of what was measured: from nothing on, or in equal ratios where the numbers are too far apart for that; round
    /// ticks. Numbers are not negative.
    pub fn of_measure(numbers: &[f64]) -> Axis {
        let most = numbers.iter().copied().fold(0.0, f64::max);
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        if least > 0.0 && most / least > LOGARITHMIC_MEASURE {
            return Axis::of_ratios(least / 1.3, most * 1.3);
        }
        let high = if most > 0.0 { most * 1.05 } else { 1.0 };
        let power = 10_f64.powf((high / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| high / step <= 6.0);
        let step = step.unwrap_or(high);
        let ticks = (0..).map(|count| f64::from(count) * step).take_while(|tick| *tick <= high).collect();
        Axis { low: 0.0, high, logarithmic: false, ticks }
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
        Axis::of_ratios(low * 0.999, high * 1.001)
    }

    fn of_ratios(low: f64, high: f64) -> Axis {
        let times: &[f64] = if high / low > POWERS_ALONE { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        let ticks = powers.flat_map(|power| times.iter().map(move |times| times * 10_f64.powi(power)));
        Axis { low, high, logarithmic: true, ticks: ticks.filter(|tick| (low..=high).contains(tick)).collect() }
    }

    /// How far along the axis a number lies, from 0 to 1.
    pub fn share(&self, number: f64) -> f64 {
        let share = if self.logarithmic {
            (number / self.low).ln() / (self.high / self.low).ln()
        } else {
            (number - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// A number of the axis in words: "0.05", "2.5", "5,000", "20 k".
    pub fn words(&self, number: f64) -> String {
        match number {
            number if number >= 10_000.0 => units::count(number),
            number if number >= 1000.0 => units::thousands(number.round() as u64),
            // Ticks are round: what stands in further places is only how binary numbers are added.
            number => format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_string(),
        }
    }

    /// What an axis in equal ratios adds to its title.
    pub fn scale(&self) -> &'static str {
        if self.logarithmic { " (logarithmic)" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_was_measured_begins_at_nothing_unless_it_is_too_far_apart() {
        let axis = Axis::of_measure(&[90_000.0, 210_000.0]);
        assert_eq!((axis.low, axis.logarithmic), (0.0, false));
        let told: Vec<String> = axis.ticks.iter().map(|tick| axis.words(*tick)).collect();
        assert_eq!(told, ["0", "50 k", "100 k", "150 k", "200 k"]);
        let axis = Axis::of_measure(&[0.3, 0.11]);
        let told: Vec<String> = axis.ticks.iter().map(|tick| axis.words(*tick)).collect();
        assert_eq!(told, ["0", "0.1", "0.2", "0.3"]);
        let axis = Axis::of_measure(&[3000.0, 400_000.0]);
        let told: Vec<String> = axis.ticks.iter().map(|tick| axis.words(*tick)).collect();
        assert_eq!(told, ["5,000", "10 k", "20 k", "50 k", "100 k", "200 k", "500 k"]);
        assert_eq!(Axis::of_measure(&[0.0]).share(0.0), 0.0);
    }

    #[test]
    fn an_axis_of_latencies_ends_at_round_numbers() {
        let axis = Axis::of_latencies(&[33.0, 41.0]);
        let told: Vec<String> = axis.ticks.iter().map(|tick| axis.words(*tick)).collect();
        assert!(axis.logarithmic);
        assert_eq!(told, ["20", "50"]);
        let told = Axis::of_latencies(&[0.0, 7_000.0]).ticks;
        assert_eq!((told[0], told[told.len() - 1]), (0.001, 10_000.0));
    }
}
