//! Whether true differences are found, and whether "at least so much" is true of them.

use kvfair_stats::rank::Claim;

use super::binomial::lower_bound;
use super::equal::{median, plus_minus};
use super::noise::Noise;
use super::run::{Design, SECOND, Stop, Target};
use super::{CAMPAIGNS, THOROUGH, each};

/// What a campaign says of target 1, which costs so many times what the others do.
struct One {
    is_found: bool,
    /// It is claimed on a noisy run, so that the near end of the interval is told.
    is_told: bool,
    /// It is slower, and by as much as the near end at least.
    is_true: bool,
    is_inside: bool,
    plus_minus: f64,
}

/// The same of many campaigns.
struct Seen {
    found: u64,
    told: u64,
    true_told: u64,
    inside: u64,
    plus_minus: f64,
}

fn one(design: &Design, seed: u64, ratio: f64) -> One {
    let run = design.run(seed, |_, _| 1.0);
    let pair = run.judged().pair(1, 0).unwrap();
    let is_slower = pair.claim == Some(Claim::Slower);
    One {
        is_found: is_slower,
        is_told: pair.claim.is_some() && pair.bar.unwrap().is_noisy,
        is_true: is_slower && 1.0 + pair.ratio.interval.near_end().unwrap() <= ratio,
        is_inside: pair.ratio.interval.contains(ratio),
        plus_minus: plus_minus(&run),
    }
}

fn seen(campaigns: u64, targets: usize, ratio: f64, (noise, strength): (Noise, f64), blocks: usize) -> Seen {
    let mut all = vec![SECOND; targets];
    all[1] = Target { cost: ratio, ..SECOND };
    let design = Design { strength, ..Design::new(all, noise, Stop::Blocks(blocks)) };
    let all = each(campaigns, |seed| one(&design, seed, ratio));
    let count = |is: fn(&One) -> bool| all.iter().filter(|one| is(one)).count() as u64;
    Seen {
        found: count(|one| one.is_found),
        told: count(|one| one.is_told),
        true_told: count(|one| one.is_told && one.is_true),
        inside: count(|one| one.is_inside),
        plus_minus: median(all.iter().map(|one| one.plus_minus)),
    }
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// True ratio, noise with its strength, blocks, and the percentage that must be found at least. The strengths are those
/// whose A/A intervals come to ± 9, 34 and 54 %.
const STEPS: [(f64, (Noise, f64), usize, f64); 16] = [
    (1.05, (Noise::Quiet, 1.0), 15, 90.0),
    (1.5, (Noise::Quiet, 2.92), 10, 98.0),
    (1.5, (Noise::HeavyTailed, 2.92), 10, 96.0),
    (1.5, (Noise::Regimes, 1.55), 10, 96.0),
    (1.5, (Noise::Recorded, 0.85), 10, 90.0),
    (1.5, (Noise::Periodic, 0.36), 10, 96.0),
    (2.0, (Noise::Quiet, 9.9), 10, 90.0),
    (2.0, (Noise::HeavyTailed, 9.82), 10, 82.0),
    (2.0, (Noise::Regimes, 5.2), 10, 65.0),
    (2.0, (Noise::Recorded, 2.86), 10, 70.0),
    (2.0, (Noise::Periodic, 1.22), 10, 75.0),
    (5.0, (Noise::Quiet, 14.63), 10, 98.0),
    (5.0, (Noise::HeavyTailed, 14.63), 10, 93.0),
    (5.0, (Noise::Regimes, 7.72), 10, 85.0),
    (5.0, (Noise::Recorded, 4.26), 10, 85.0),
    (5.0, (Noise::Periodic, 1.8), 10, 90.0),
];

fn steps(campaigns: u64) {
    for (ratio, noise, blocks, least) in STEPS {
        let seen = seen(campaigns, 2, ratio, noise, blocks);
        let (found, inside) = (percent(seen.found, campaigns), percent(seen.inside, campaigns));
        let name = format!("{ratio}x slower, {:?} x {}, {blocks} blocks", noise.0, noise.1);
        let width = seen.plus_minus * 100.0;
        eprintln!("{name}: A/A ± {width:.1} %, found {found:.1} %, interval with the true ratio {inside:.1} %");
        assert!(found >= least && (93.0..=97.0).contains(&inside), "{name}");
    }
}

/// Of noisy runs: the near end is wrong in at most 5 of 100 runs, and of 100 claims where most such runs claim. Where
/// claims are rare, those that are made are of runs in which chance helped, so that more of them are wrong.
fn near_ends(campaigns: u64) {
    let noises = [
        (Noise::Quiet, 10.0),
        (Noise::HeavyTailed, 10.0),
        (Noise::Regimes, 3.0),
        (Noise::Recorded, 3.0),
        (Noise::Periodic, 1.0),
    ];
    let (mut told, mut true_told) = (0, 0);
    for noise in noises {
        for (targets, blocks) in [(2, 6), (2, 10), (8, 10)] {
            for ratio in [1.25, 1.5, 2.0, 5.0] {
                let seen = seen(campaigns, targets, ratio, noise, blocks);
                let name = format!("{ratio}x slower, {:?} x {}, {targets} targets, {blocks} blocks", noise.0, noise.1);
                let is_true = percent(seen.true_told, seen.told);
                eprintln!("{name}: near end told {:.1} %, true {is_true:.1} % of these", percent(seen.told, campaigns));
                let wrong = seen.told - seen.true_told;
                assert!(lower_bound(wrong, campaigns) <= 0.05, "{name}");
                assert!(2 * seen.told < campaigns || lower_bound(wrong, seen.told) <= 0.05, "{name}");
                (told, true_told) = (told + seen.told, true_told + seen.true_told);
            }
        }
    }
    eprintln!("near ends told in all these runs: {told}, true {:.1} % of them", percent(true_told, told));
    assert!(percent(true_told, told) >= 95.0);
}

#[test]
fn differences_are_found() {
    steps(CAMPAIGNS);
}

#[test]
fn what_is_told_of_a_noisy_run_is_a_lower_bound() {
    near_ends(CAMPAIGNS);
}

#[test]
#[ignore = "10,000 campaigns a cell"]
fn differences_are_found_in_many_runs() {
    steps(THOROUGH);
    near_ends(THOROUGH);
}
