//! Levers tried on stores whose costs are known: the levers that remove a cost are found, and no other one is claimed.

use std::collections::BTreeMap;

use kvfair_stats::levers::{
    Confirmation, Confirmed, Gain, LeverSet, confirmation, contrasts, first_set, gains, next_set, sets,
};

use super::each;
use super::noise::Noise;
use super::run::{Design, Run, SECOND, Stop};

const CAMPAIGNS: u64 = 50;
const BLOCKS: usize = 11;
const FRESH: usize = 8;
const ATTEMPTS: usize = 3;

/// What a job costs besides its own work, in seconds, each removed by one lever: a fixed delay an op, a cost a byte, a
/// cost a connection, a sync. The next two levers remove nothing.
struct Planted {
    name: &'static str,
    removed_s: [f64; LEVERS],
}

const LEVERS: usize = 6;
const OWN_S: f64 = 1.0;

const PLANTED: [Planted; 4] = [
    Planted { name: "a delay an op and a sync", removed_s: [1.0, 0.0, 0.0, 0.8, 0.0, 0.0] },
    Planted { name: "a cost a byte", removed_s: [0.0, 0.6, 0.0, 0.0, 0.0, 0.0] },
    Planted { name: "all four", removed_s: [1.5, 0.6, 0.7, 3.0, 0.0, 0.0] },
    Planted { name: "a cost a connection and a byte", removed_s: [0.0, 0.7, 0.6, 0.0, 0.0, 0.0] },
];

impl Planted {
    fn cost_s(&self, set: LeverSet) -> f64 {
        OWN_S + (0..LEVERS).filter(|place| !set.has(*place)).map(|place| self.removed_s[place]).sum::<f64>()
    }

    fn needed(&self) -> LeverSet {
        LeverSet::of((0..LEVERS).filter(|place| self.removed_s[*place] > 0.0))
    }

    /// A run of these sets in blocks on a machine of its own.
    fn run(&self, sets: &[LeverSet], noise: Noise, blocks: usize, seed: u64) -> Run {
        let design = Design::new(vec![SECOND; sets.len()], noise, Stop::Blocks(blocks));
        design.run(seed, |target, _| self.cost_s(sets[target]))
    }
}

fn by_set(sets: &[LeverSet], run: &Run) -> BTreeMap<LeverSet, BTreeMap<u32, f64>> {
    let of = |costs: &Vec<f64>| (1..).zip(costs.iter().copied()).collect();
    sets.iter().copied().zip(run.costs.iter().map(of)).collect()
}

/// What a campaign comes to: the set, what fresh blocks say of it, and all gains.
fn campaign(planted: &Planted, noise: Noise, seed: u64) -> (LeverSet, Option<Confirmation>, Vec<Gain>) {
    let all = LeverSet::of(0..LEVERS);
    let measured = sets(LEVERS, all);
    let run = planted.run(&measured, noise, BLOCKS, seed);
    let judged = gains(&contrasts(LEVERS, all), &by_set(&measured, &run), &BTreeMap::new(), &run.noise());
    let (mut set, mut found) = (first_set(all, &judged), None);
    for attempt in 0..ATTEMPTS {
        if set == all || set == LeverSet::BASE {
            break;
        }
        let fresh = [LeverSet::BASE, all, set];
        let run = planted.run(&fresh, noise, FRESH, seed + 1_000 * (attempt as u64 + 1));
        found = confirmation(set, all, &by_set(&fresh, &run), &BTreeMap::new(), &run.noise());
        if found.is_none_or(|found| found.found != Confirmed::Short) {
            break;
        }
        (set, found) = (next_set(set, all, &judged).unwrap_or(all), None);
    }
    (set, found, judged)
}

/// Whether a lever that removes nothing is claimed to do anything.
fn claims_another(planted: &Planted, judged: &[Gain]) -> bool {
    let changed = |gain: &Gain| {
        let (before, after) = (gain.contrast.before, gain.contrast.after);
        LeverSet::of(after.places().filter(|place| !before.has(*place)))
    };
    let is_idle = |gain: &Gain| changed(gain).places().all(|place| planted.removed_s[place] == 0.0);
    judged.iter().any(|gain| gain.effect.is_some() && is_idle(gain))
}

#[test]
fn planted_levers_are_found_and_no_other_is_claimed() {
    for planted in &PLANTED {
        for noise in [Noise::Quiet, Noise::HeavyTailed, Noise::Contaminated] {
            let seen = each(CAMPAIGNS, |seed| {
                let (set, found, judged) = campaign(planted, noise, seed);
                let confirmed = found.is_some_and(|found| found.found == Confirmed::Enough);
                (set == planted.needed(), confirmed, claims_another(planted, &judged))
            });
            let found = seen.iter().filter(|(found, ..)| *found).count();
            let confirmed = seen.iter().filter(|(_, confirmed, _)| *confirmed).count();
            let none_else = seen.iter().filter(|(.., other)| !other).count();
            eprintln!(
                "levers, {}, {noise:?}: of {CAMPAIGNS} campaigns found {found}, confirmed {confirmed}, no other claimed {none_else}",
                planted.name
            );
            assert!(found >= 45, "{}, {noise:?}: {found}", planted.name);
            assert!(none_else >= 48, "{}, {noise:?}: {none_else}", planted.name);
        }
    }
}

/// Without Holm's adjustment over the contrasts levers that do nothing are claimed: that is what it is for.
#[test]
fn levers_that_do_nothing_are_rarely_claimed_together() {
    let idle = Planted { name: "nothing", removed_s: [0.0; LEVERS] };
    let seen = each(1_000, |seed| {
        let (set, _, judged) = campaign(&idle, Noise::Quiet, seed);
        let alone: Vec<bool> = judged.iter().map(|gain| !gain.ratio.interval.contains(1.0)).collect();
        (claims_another(&idle, &judged), set == LeverSet::BASE, alone.contains(&true))
    });
    let share = |is: fn(&(bool, bool, bool)) -> bool| seen.iter().filter(|seen| is(seen)).count() as f64 / 1e3;
    let (claimed, none, unadjusted) = (share(|seen| seen.0), share(|seen| seen.1), share(|seen| seen.2));
    eprintln!("levers that do nothing: claimed {claimed}, none needed {none}, outside the interval {unadjusted}");
    assert!(claimed <= 0.07 && none >= 0.95 && unadjusted >= 0.15);
}
