//! The noise floor: how far apart the same target came out from itself in the same run (the A/A controls), and what a
//! difference must therefore exceed before it is claimed.

use serde::Serialize;

use super::paired::Interval;

/// Smaller differences are never claimed, however sure: they do not outlive another compiler, kernel or start.
pub const LEAST_DIFFERENCE: f64 = 0.02;

/// Up to this ± an A/A interval that holds 1 is that of a quiet run (`tests/campaigns` has what follows from it).
pub const QUIET: f64 = 0.05;

/// Two trials of one target in each block: what they differ by is noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Control {
    /// Of the second trial's cost to the first one's.
    pub interval: Interval,
    /// How long a trial of it takes, in seconds: where costs are CPU or a percentile, this is still its time.
    pub length_s: f64,
}

impl Control {
    /// max(2 %, ±) where ± is at most 5 % and the interval holds 1; otherwise max(2 %, far end). `None` where there are
    /// too few blocks for an interval.
    pub fn floor(&self) -> Option<f64> {
        let floor = if self.is_noisy() { self.interval.far_end()? } else { self.interval.plus_minus()? };
        Some(floor.max(LEAST_DIFFERENCE))
    }

    /// The same target differs from itself, or may differ by more than a quiet run's does.
    pub fn is_noisy(&self) -> bool {
        !self.interval.contains(1.0) || self.interval.plus_minus().is_some_and(|half| half > QUIET)
    }
}

/// What a run's A/A controls say: one or two, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AaNoise {
    controls: Vec<Control>,
    /// More blocks were discarded than kept. Then all blocks are used, and claims must be beyond any doubt.
    most_discarded: bool,
}

/// What a pair must exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The ratio itself, as a share beyond 1.
    pub floor: f64,
    /// The near end of its interval, as a share beyond 1; 0 where leaving out 1 is enough.
    pub near_end: f64,
    /// In words only the near end is told: "at least 36x".
    pub is_noisy: bool,
}

impl AaNoise {
    /// Of the controls that have an interval, in any order; those without are left out.
    pub fn of(controls: impl IntoIterator<Item = Control>, most_discarded: bool) -> AaNoise {
        let mut controls: Vec<Control> =
            controls.into_iter().filter(|control| control.interval.bounds().is_some()).collect();
        controls.sort_by(|one, other| one.length_s.total_cmp(&other.length_s));
        AaNoise { controls, most_discarded }
    }

    pub fn controls(&self) -> &[Control] {
        &self.controls
    }

    pub fn most_discarded(&self) -> bool {
        self.most_discarded
    }

    /// The widest floor of any control; 0 without one.
    pub fn floor(&self) -> f64 {
        self.controls.iter().filter_map(Control::floor).fold(0.0, f64::max)
    }

    /// What two targets whose trials take so long must exceed to be claimed; `None` without a control: then nothing is
    /// claimed. Noise is a larger share of short trials: where both are at least as long as the longer control, only
    /// that one counts, and otherwise the wider of the two.
    pub fn bar(&self, one_s: f64, other_s: f64) -> Option<Bar> {
        let longest = self.controls.last()?;
        let counting = match one_s.min(other_s) >= longest.length_s {
            true => std::slice::from_ref(longest),
            false => self.controls.as_slice(),
        };
        let widest = |of: fn(&Control) -> Option<f64>| counting.iter().filter_map(of).fold(0.0, f64::max);
        let far_end = widest(|control| control.interval.far_end());
        Some(Bar {
            floor: widest(Control::floor),
            near_end: if self.most_discarded { far_end } else { 0.0 },
            is_noisy: self.most_discarded || counting.iter().any(Control::is_noisy),
        })
    }
}

impl Bar {
    /// What both ask for, where either may be right: two runs each have a bar of their own.
    pub fn higher(self, other: Bar) -> Bar {
        Bar {
            floor: self.floor.max(other.floor),
            near_end: self.near_end.max(other.near_end),
            is_noisy: self.is_noisy || other.is_noisy,
        }
    }
}

/// How far a ratio is from 1, as a share, the same from either side: max(r, 1 / r) - 1.
pub fn beyond_one(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(low: f64, high: f64, length_s: f64) -> Control {
        Control { interval: Interval::Exact { low, high }, length_s }
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_quiet_interval_gives_its_half_width_and_any_other_its_far_end() {
        let floor = |low, high| control(low, high, 1.0).floor().unwrap();
        assert!(near(floor(0.99, 1.01), 0.02), "never below 2 %");
        assert!(near(floor(0.97, 1.03), (1.03_f64 / 0.97).sqrt() - 1.0));
        assert!(near(floor(1.08, 1.12), 0.12), "narrow, and yet the same store differed from itself");
        assert!(near(floor(0.88, 0.92), 1.0 / 0.88 - 1.0));
        assert!(near(floor(0.8, 1.1), 0.25), "wide");
        assert_eq!(Control { interval: Interval::None, length_s: 1.0 }.floor(), None);
    }

    #[test]
    fn long_trials_are_held_against_the_long_control_alone() {
        let (short, long) = (control(0.7, 1.4, 0.01), control(0.97, 1.03, 2.0));
        let noise = AaNoise::of([long, short], false);
        assert_eq!(noise.controls(), [short, long]);
        let bar = |one, other| noise.bar(one, other).unwrap();
        assert!(near(noise.floor(), short.floor().unwrap()) && near(AaNoise::default().floor(), 0.0));
        assert!(near(bar(2.0, 9.0).floor, long.floor().unwrap()) && !bar(2.0, 9.0).is_noisy);
        assert!(near(bar(1.9, 9.0).floor, short.floor().unwrap()) && bar(1.9, 9.0).is_noisy);
        let wide = AaNoise::of([control(0.98, 1.02, 0.01), control(0.7, 1.4, 2.0)], false);
        assert!(near(wide.bar(0.01, 0.02).unwrap().floor, 1.0 / 0.7 - 1.0), "the wider of the two");
    }

    #[test]
    fn without_a_control_there_is_no_bar_and_where_most_is_discarded_a_high_one() {
        assert_eq!(AaNoise::default().bar(1.0, 1.0), None);
        assert_eq!(AaNoise::of([Control { interval: Interval::None, length_s: 1.0 }], false).bar(1.0, 1.0), None);
        let bar = AaNoise::of([control(0.98, 1.01, 1.0)], true).bar(1.0, 1.0).unwrap();
        assert!(near(bar.near_end, 1.0 / 0.98 - 1.0) && bar.is_noisy);
        assert_eq!(AaNoise::of([control(0.98, 1.01, 1.0)], false).bar(1.0, 1.0).unwrap().near_end, 0.0);
    }

    #[test]
    fn distances_from_1_are_the_same_from_either_side() {
        assert!(near(beyond_one(1.25), 0.25) && near(beyond_one(0.8), 0.25) && near(beyond_one(1.0), 0.0));
    }

    #[test]
    fn a_control_wider_than_five_in_a_hundred_is_noisy() {
        let is_noisy = |half: f64| control(1.0 / (1.0 + half), 1.0 + half, 1.0).is_noisy();
        assert!(!is_noisy(0.049) && is_noisy(0.051));
    }

    #[test]
    fn the_shorter_trial_of_two_decides_whichever_it_is() {
        let noise = AaNoise::of([control(0.7, 1.4, 0.01), control(0.97, 1.03, 2.0)], false);
        assert_eq!(noise.bar(1.9, 9.0), noise.bar(9.0, 1.9));
        assert_ne!(noise.bar(9.0, 1.9), noise.bar(9.0, 2.0));
    }

    #[test]
    fn of_two_bars_each_part_is_the_higher_one() {
        let one = Bar { floor: 0.02, near_end: 0.3, is_noisy: false };
        let other = Bar { floor: 0.1, near_end: 0.0, is_noisy: true };
        let both = Bar { floor: 0.1, near_end: 0.3, is_noisy: true };
        assert_eq!((one.higher(other), other.higher(one), one.higher(one)), (both, both, one));
    }

    #[test]
    fn most_discarded_is_what_was_given() {
        assert_eq!([false, true].map(|most| AaNoise::of([], most).most_discarded()), [false, true]);
    }
}
