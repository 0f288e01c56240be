//! Levers: what each gains alone and as the last one, and which few of them are enough.
//!
//! Planned contrasts alone are judged, with Holm's adjustment over them: base against each lever alone, all but each
//! one against all, and base against all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::floor::{AaNoise, Bar};
use super::paired::Ratio;
use super::planned::{self, Costs, JudgedContrast};
use super::rank::{self, Claim};

/// Levers by their places in a run, 32 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeverSet(u32);

impl LeverSet {
    /// No lever: the base.
    pub const BASE: LeverSet = LeverSet(0);

    /// A run has so many levers at most.
    pub const MOST: usize = u32::BITS as usize;

    pub fn of(places: impl IntoIterator<Item = usize>) -> LeverSet {
        places.into_iter().fold(LeverSet::BASE, LeverSet::with)
    }

    pub fn with(self, place: usize) -> LeverSet {
        LeverSet(self.0 | 1 << place)
    }

    pub fn without(self, place: usize) -> LeverSet {
        LeverSet(self.0 & !(1 << place))
    }

    pub fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..Self::MOST).filter(move |place| self.has(*place))
    }
}

/// Two sets of levers, of which the second has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contrast {
    pub before: LeverSet,
    pub after: LeverSet,
}

impl Contrast {
    pub fn alone(place: usize) -> Contrast {
        Contrast { before: LeverSet::BASE, after: LeverSet::BASE.with(place) }
    }

    pub fn last(place: usize, all: LeverSet) -> Contrast {
        Contrast { before: all.without(place), after: all }
    }

    pub fn together(all: LeverSet) -> Contrast {
        Contrast { before: LeverSet::BASE, after: all }
    }
}

/// The sets that are measured, each once: base, each of the first `levers` alone, all, all but each one. At most
/// 2k + 2. `all` need not have every lever: some cannot be combined.
pub fn sets(levers: usize, all: LeverSet) -> Vec<LeverSet> {
    let alone = (0..levers).map(|place| LeverSet::BASE.with(place));
    let all_but = all.places().map(|place| all.without(place));
    let mut sets = Vec::new();
    for set in [LeverSet::BASE].into_iter().chain(alone).chain([all]).chain(all_but) {
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

/// The contrasts that are planned between them, each once: at most 2k + 1.
pub fn contrasts(levers: usize, all: LeverSet) -> Vec<Contrast> {
    let last = all.places().map(|place| Contrast::last(place, all));
    let mut contrasts: Vec<Contrast> =
        (0..levers).map(Contrast::alone).chain(last).chain([Contrast::together(all)]).collect();
    contrasts.retain(|contrast| contrast.before != contrast.after);
    contrasts.sort();
    contrasts.dedup();
    contrasts
}

/// Of runs whose levers do nothing, at most so many claim anything. A run has few levers that matter among many that do
/// not, and is read as a list of them: this is stricter than what stores are compared by.
pub const LEVEL: f64 = 0.02;

/// How many blocks it takes until the exact test can claim any of the contrasts, six at least.
pub fn needed_blocks(levers: usize, all: LeverSet) -> usize {
    rank::blocks_for(contrasts(levers, all).len(), LEVEL)
}

/// What was seen of one contrast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    #[serde(skip)]
    pub contrast: Contrast,
    /// How many times as fast it is with the more levers: cost before / cost after.
    pub ratio: Ratio,
    pub blocks: usize,
    /// Of "no effect", adjusted for all contrasts; none where there are too few blocks.
    pub p: Option<f64>,
    /// What a claim had to exceed; none without an A/A control.
    pub bar: Option<Bar>,
    pub effect: Option<LeverEffect>,
}

/// What may be said of a contrast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeverEffect {
    Helps,
    Hurts,
}

impl Gain {
    /// The largest effect that may still be there unseen, as a share: the far end of the interval, and the noise floor
    /// at least. None where nothing is known.
    pub fn unseen(&self) -> Option<f64> {
        Some(self.ratio.interval.far_end()?.max(self.bar?.floor))
    }

    pub fn helps(&self) -> bool {
        self.effect == Some(LeverEffect::Helps)
    }
}

/// What each set cost in each block; less is better.
pub type SetCosts = Costs<LeverSet>;

/// Judges the contrasts, in their order; those without a common block are left out. `lengths_s` is how long a trial of
/// each set takes, in seconds: the median of its costs where it is not named.
pub fn gains(
    contrasts: &[Contrast],
    costs: &SetCosts,
    lengths_s: &BTreeMap<LeverSet, f64>,
    noise: &AaNoise,
) -> Vec<Gain> {
    let pairs: Vec<(LeverSet, LeverSet)> = contrasts.iter().map(|contrast| (contrast.before, contrast.after)).collect();
    let judged = planned::judged(&pairs, costs, lengths_s, noise, LEVEL).into_iter();
    let gain = |seen: JudgedContrast<LeverSet>| {
        let JudgedContrast { one: before, other: after, ratio, blocks, p, bar, claim } = seen;
        let effect = claim.map(|claim| match claim {
            Claim::Slower => LeverEffect::Helps,
            Claim::Faster => LeverEffect::Hurts,
        });
        Gain { contrast: Contrast { before, after }, ratio, blocks, p, bar, effect }
    };
    judged.map(gain).collect()
}

pub fn gain(gains: &[Gain], contrast: Contrast) -> Option<&Gain> {
    gains.iter().find(|gain| gain.contrast == contrast)
}

/// From so much on, as a share, a gain counts where the order of levers is chosen.
const COUNTS: f64 = 0.03;

/// The set that may be enough: the levers that help as the last one. Where none does although all together help, or one
/// alone, each may stand in for another: then the one that gains most alone. Empty where nothing helps.
///
/// It is chosen by the data that it came from, so that its own gain must be seen in fresh blocks.
pub fn first_set(all: LeverSet, gains: &[Gain]) -> LeverSet {
    let helps = |contrast| gain(gains, contrast).is_some_and(Gain::helps);
    let needed = LeverSet::of(all.places().filter(|place| helps(Contrast::last(*place, all))));
    let gains_at_all = helps(Contrast::together(all)) || all.places().any(|place| helps(Contrast::alone(place)));
    if needed.count() > 0 || !gains_at_all {
        return needed;
    }
    next_set(needed, all, gains).unwrap_or(needed)
}

/// The set with one lever more: the one that gains most as the last one, or alone where no other gains as the last one.
/// None where there are no more.
pub fn next_set(set: LeverSet, all: LeverSet, gains: &[Gain]) -> Option<LeverSet> {
    let estimate = |contrast| gain(gains, contrast).map_or(1.0, |gain| gain.ratio.estimate);
    let worth = |place: usize| {
        let (last, alone) = (estimate(Contrast::last(place, all)), estimate(Contrast::alone(place)));
        if last > 1.0 + COUNTS { (1, last) } else { (0, alone) }
    };
    let others = all.places().filter(|place| !set.has(*place));
    let best = others.max_by(|one, other| {
        let (one, other) = (worth(*one), worth(*other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    best.map(|place| set.with(place))
}

/// What fresh blocks say of a set against all levers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confirmation {
    /// How many times as fast all are as the set.
    pub all: Gain,
    pub found: Confirmed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmed {
    /// All are not told apart from the set, and faster by at most [`NEAR`] or the noise floor.
    Enough,
    /// They are not told apart, and a larger difference cannot be ruled out.
    Open,
    /// All are faster.
    Short,
}

/// So much faster, as a share, all levers may be than a set that is enough.
pub const NEAR: f64 = 0.05;

/// None where no block has both.
pub fn confirmation(
    set: LeverSet,
    all: LeverSet,
    costs: &SetCosts,
    lengths_s: &BTreeMap<LeverSet, f64>,
    noise: &AaNoise,
) -> Option<Confirmation> {
    let contrast = Contrast { before: set, after: all };
    let all = *gains(&[contrast], costs, lengths_s, noise).first()?;
    let near = all.bar.map_or(NEAR, |bar| bar.floor.max(NEAR));
    let found = match all.ratio.interval.bounds() {
        _ if all.helps() => Confirmed::Short,
        Some((_, high)) if all.bar.is_some() && high <= 1.0 + near => Confirmed::Enough,
        _ => Confirmed::Open,
    };
    Some(Confirmation { all, found })
}

#[cfg(test)]
mod tests {
    use super::super::floor::Control;
    use super::super::paired::Interval;
    use super::*;

    /// Of an A/A control that is quiet.
    fn quiet() -> AaNoise {
        AaNoise::of([Control { interval: Interval::Exact { low: 0.99, high: 1.01 }, length_s: 1.0 }], false)
    }

    /// So many blocks in which a set costs so much, with a little noise that differs by block.
    fn costs(sets: &[LeverSet], cost: impl Fn(LeverSet) -> f64, blocks: u32) -> SetCosts {
        let noise = |set: LeverSet, block: u32| 1.0 + f64::from((set.0 * 7 + block * 13) % 11) / 1e4;
        let of = |set: &LeverSet| (*set, (1..=blocks).map(|block| (block, cost(*set) * noise(*set, block))).collect());
        sets.iter().map(of).collect()
    }

    fn judged(levers: usize, all: LeverSet, cost: impl Fn(LeverSet) -> f64) -> Vec<Gain> {
        let costs = costs(&sets(levers, all), cost, 10);
        gains(&contrasts(levers, all), &costs, &BTreeMap::new(), &quiet())
    }

    #[test]
    fn a_run_has_two_sets_a_lever_and_two_more_and_none_twice() {
        for levers in 3..8 {
            let all = LeverSet::of(0..levers);
            assert_eq!((sets(levers, all).len(), contrasts(levers, all).len()), (2 * levers + 2, 2 * levers + 1));
        }
        let two = LeverSet::of(0..2);
        assert_eq!(sets(2, two).len(), 4, "all but one is the other one alone");
        assert_eq!(contrasts(2, two).len(), 5);
        assert_eq!((sets(1, LeverSet::of([0])).len(), contrasts(1, LeverSet::of([0])).len()), (2, 1));
        let (levers, all) = (3, LeverSet::of([0, 1]));
        assert_eq!(sets(levers, all).len(), 5, "one that cannot be combined is measured alone");
        assert_eq!(contrasts(levers, all).len(), 6);
        assert_eq!(contrasts(1, LeverSet::BASE), [Contrast::alone(0)]);
        let alone = [Contrast::alone(0), Contrast::alone(1)];
        assert_eq!(contrasts(2, LeverSet::of([0])), alone, "the first alone is the last one, and all together");
    }

    #[test]
    fn gains_are_told_from_none_and_have_a_direction() {
        let all = LeverSet::of(0..3);
        // The first halves the cost, the second does nothing, the third makes all a tenth slower.
        let gains = judged(3, all, |set| (if set.has(0) { 1.0 } else { 2.0 }) * (if set.has(2) { 1.1 } else { 1.0 }));
        let effect = |contrast| gain(&gains, contrast).unwrap().effect;
        for contrast in [Contrast::alone, |place| Contrast::last(place, LeverSet::of(0..3))] {
            let found = [0, 1, 2].map(|place| effect(contrast(place)));
            assert_eq!(found, [Some(LeverEffect::Helps), None, Some(LeverEffect::Hurts)]);
        }
        let halved = gain(&gains, Contrast::alone(0)).unwrap();
        assert!((halved.ratio.estimate - 2.0).abs() < 0.01 && halved.blocks == 10);
        let nothing = gain(&gains, Contrast::alone(1)).unwrap();
        assert!(nothing.unseen().unwrap() >= 0.02, "the noise floor at least");
        assert_eq!(first_set(all, &gains), LeverSet::of([0]));
    }

    /// Either of the first two removes the same cost: neither gains as the last one.
    #[test]
    fn of_levers_that_stand_in_for_each_other_one_is_enough() {
        let all = LeverSet::of(0..3);
        let gains = judged(3, all, |set| if set.has(0) || set.has(1) { 1.0 } else { 3.0 });
        assert!(!gain(&gains, Contrast::last(0, all)).unwrap().helps());
        let first = first_set(all, &gains);
        assert!(first == LeverSet::of([0]) || first == LeverSet::of([1]));
        assert_eq!(next_set(all, all, &gains), None);
    }

    /// Alone either of the first two gains more than the third.
    #[test]
    fn what_still_gains_as_the_last_one_comes_before_what_gains_alone() {
        let all = LeverSet::of(0..3);
        let cost =
            |set: LeverSet| (if set.has(0) || set.has(1) { 1.0 } else { 3.0 }) * (if set.has(2) { 1.0 } else { 1.5 });
        let gains = judged(3, all, cost);
        assert_eq!(next_set(LeverSet::BASE, all, &gains), Some(LeverSet::of([2])));
    }

    #[test]
    fn where_nothing_helps_no_set_is_needed() {
        let all = LeverSet::of(0..4);
        assert_eq!(first_set(all, &judged(4, all, |_| 1.0)), LeverSet::BASE);
    }

    #[test]
    fn fresh_blocks_confirm_a_set_that_is_near_and_deny_one_that_is_not() {
        let (set, all) = (LeverSet::of([0]), LeverSet::of([0, 1]));
        let found = |factor: f64, blocks: u32| {
            let costs = costs(&[set, all], |one| if one == set { factor } else { 1.0 }, blocks);
            confirmation(set, all, &costs, &BTreeMap::new(), &quiet()).unwrap().found
        };
        assert_eq!(
            [1.0, 1.01, 1.3].map(|factor| found(factor, 6)),
            [Confirmed::Enough, Confirmed::Enough, Confirmed::Short]
        );
        assert_eq!(found(1.0, 3), Confirmed::Open, "three blocks have no interval");
        let mut wide = costs(&[set, all], |_| 1.0, 6);
        let factor = |block: u32| if block.is_multiple_of(2) { 1.2 } else { 1.0 / 1.2 };
        wide.get_mut(&set).unwrap().iter_mut().for_each(|(block, cost)| *cost *= factor(*block));
        let unclear = confirmation(set, all, &wide, &BTreeMap::new(), &quiet()).unwrap().found;
        assert_eq!(unclear, Confirmed::Open, "all may be much faster");
        let without = confirmation(set, all, &costs(&[set, all], |_| 1.0, 6), &BTreeMap::new(), &AaNoise::default());
        assert_eq!(without.unwrap().found, Confirmed::Open, "no A/A control, no claim");
    }

    #[test]
    fn blocks_are_needed_by_the_number_of_contrasts() {
        // The lever alone is the lever as the last one: 2 / 2^7 <= 0.02.
        assert_eq!(needed_blocks(1, LeverSet::of([0])), 7);
        // Three alone, three as the last one, all together: 2 * 7 / 2^10 <= 0.02.
        assert_eq!(needed_blocks(3, LeverSet::of(0..3)), 10);
        // Five alone and four as the last one, 2 * 10 / 2^10 <= 0.02; five as the last one, 2 * 11 / 2^11 <= 0.02.
        assert_eq!([4, 5].map(|last| needed_blocks(5, LeverSet::of(0..last))), [10, 11]);
    }

    #[test]
    fn an_effect_may_be_unseen_below_the_floor_and_within_the_interval() {
        let gain = judged(1, LeverSet::of([0]), |_| 1.0)[0];
        let far = gain.ratio.interval.far_end().expect("ten blocks");
        let with = |floor: f64| Gain { bar: gain.bar.map(|bar| Bar { floor, ..bar }), ..gain };
        assert_eq!((with(0.0).unseen(), with(0.5).unseen()), (Some(far), Some(0.5)));
        assert_eq!(Gain { bar: None, ..gain }.unseen(), None);
    }

    #[test]
    fn a_lever_that_is_there_already_stays() {
        assert_eq!(LeverSet::of([1, 2, 1]), LeverSet::of([1, 2]));
    }

    #[test]
    fn all_that_help_as_the_last_one_are_needed() {
        let all = LeverSet::of(0..3);
        let cost = |set: LeverSet| [2.0, 1.0][usize::from(set.has(0))] * [1.5, 1.0][usize::from(set.has(2))];
        assert_eq!(first_set(all, &judged(3, all, cost)), LeverSet::of([0, 2]));
    }

    /// The first lever helps alone. The second one does not, and it takes the gain of the first away.
    #[test]
    fn one_that_helps_alone_is_chosen_where_all_together_do_not() {
        let all = LeverSet::of(0..2);
        let gains = judged(2, all, |set| if set == LeverSet::of([0]) { 1.0 } else { 2.0 });
        assert!(!gain(&gains, Contrast::together(all)).unwrap().helps());
        assert_eq!(first_set(all, &gains), LeverSet::of([0]));
    }

    /// The first lever gains most alone, the second so much as the last one, and nothing is known of the third.
    #[test]
    fn a_gain_as_the_last_one_counts_from_three_in_a_hundred_on() {
        let all = LeverSet::of(0..3);
        let any = judged(1, LeverSet::of([0]), |_| 1.0)[0];
        let told = |contrast, estimate| Gain { contrast, ratio: Ratio { estimate, ..any.ratio }, ..any };
        let next = |last: f64| {
            let gains = [told(Contrast::alone(0), 1.2), told(Contrast::last(1, all), last)];
            next_set(LeverSet::BASE, all, &gains)
        };
        assert_eq!((next(1.029), next(1.031)), (Some(LeverSet::of([0])), Some(LeverSet::of([1]))));
        assert_eq!(next(1.0 + COUNTS), Some(LeverSet::of([0])));
    }

    /// Six blocks, in which all are between so many times as fast and as slow as the set: that is their interval.
    #[test]
    fn a_set_is_enough_within_five_in_a_hundred_or_the_floor() {
        let (set, all) = (LeverSet::of([0]), LeverSet::of([0, 1]));
        let wide = AaNoise::of([Control { interval: Interval::Exact { low: 0.9, high: 1.1 }, length_s: 1.0 }], false);
        let found = |high: f64, noise: &AaNoise| {
            let cost = |block: u32| if block.is_multiple_of(2) { high } else { 1.0 / high };
            let costs = [
                (set, (1..=6).map(|block| (block, cost(block))).collect()),
                (all, (1..=6).map(|block| (block, 1.0)).collect()),
            ];
            confirmation(set, all, &costs.into(), &BTreeMap::new(), noise).unwrap().found
        };
        assert_eq!([1.049, 1.051].map(|high| found(high, &quiet())), [Confirmed::Enough, Confirmed::Open]);
        // The far end of the control is 1 / 0.9 - 1.
        assert_eq!([1.11, 1.12].map(|high| found(high, &wide)), [Confirmed::Enough, Confirmed::Open]);
    }

    /// The control is as far from itself as all may be from the set.
    #[test]
    fn a_set_that_comes_to_the_floor_is_enough() {
        let (set, all) = (LeverSet::of([0]), LeverSet::of([0, 1]));
        let of = |costs: [f64; 6]| (1..).zip(costs).collect::<BTreeMap<u32, f64>>();
        let costs = [(set, of([1.25, 0.9, 1.0, 1.0, 1.1, 0.95])), (all, of([1.0; 6]))].into();
        let confirmed = |noise: &AaNoise| confirmation(set, all, &costs, &BTreeMap::new(), noise).unwrap();
        let interval = confirmed(&quiet()).all.ratio.interval;
        let same = AaNoise::of([Control { interval, length_s: 1.0 }], false);
        assert_eq!([quiet(), same].map(|noise| confirmed(&noise).found), [Confirmed::Open, Confirmed::Enough]);
    }
}
