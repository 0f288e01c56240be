//! Whether equal targets are claimed to differ: by number of targets and blocks, by noise, and where targets differ in
//! length or in how noisy they are.

use kvfair_stats::sample::Sample;

use super::binomial::lower_bound;
use super::noise::Noise;
use super::run::{Design, Run, SECOND, Stop, Target};
use super::{CAMPAIGNS, THOROUGH, each};

/// With the strength of each.
const NOISES: [(Noise, f64); 14] = [
    (Noise::Quiet, 1.0),
    (Noise::Quiet, 10.0),
    (Noise::HeavyTailed, 1.0),
    (Noise::HeavyTailed, 10.0),
    (Noise::Contaminated, 1.0),
    (Noise::Drifting, 1.0),
    (Noise::Bursty, 1.0),
    (Noise::Regimes, 1.0),
    (Noise::Recorded, 1.0),
    (Noise::Recorded, 3.0),
    (Noise::Recorded, 10.0),
    (Noise::Periodic, 1.0),
    (Noise::Periodic, 3.0),
    (Noise::Periodic, 10.0),
];

/// What targets have in common.
struct Kind {
    name: &'static str,
    design: fn(targets: usize, noise: Noise, blocks: usize) -> Design,
    /// Targets and blocks, of the quick test, and what the thorough one adds.
    quick: &'static [(usize, usize)],
    more: &'static [(usize, usize)],
    /// Targets are not equal in a run, and no number of trials can tell: printed, and not judged.
    is_exempt: bool,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "all alike",
        design: |targets, noise, blocks| Design::same(targets, noise, Stop::Blocks(blocks)),
        quick: &[(2, 4), (2, 6), (2, 10), (4, 5), (4, 10), (8, 6), (8, 9)],
        more: &[(2, 5), (2, 8), (2, 14), (3, 6), (5, 14), (8, 4), (8, 14), (14, 6), (14, 14)],
        is_exempt: false,
    },
    Kind {
        name: "noise of their own, 2 and 10 %",
        design: |targets, noise, blocks| {
            alternating(targets, [Target { own: 0.02, ..SECOND }, Target { own: 0.1, ..SECOND }], noise, blocks)
        },
        quick: &[(2, 10), (4, 6)],
        more: &[(4, 4), (8, 10)],
        is_exempt: false,
    },
    Kind {
        name: "0.08 and 4 s long",
        design: |targets, noise, blocks| {
            alternating(targets, [Target { pieces: 4, ..SECOND }, Target { pieces: 200, ..SECOND }], noise, blocks)
        },
        quick: &[(4, 6), (4, 10)],
        more: &[(4, 4), (8, 10)],
        is_exempt: false,
    },
    Kind {
        name: "most blocks discarded",
        design: |targets, noise, blocks| Design {
            most_discarded: true,
            ..Design::same(targets, noise, Stop::Blocks(blocks))
        },
        quick: &[(2, 10), (4, 6)],
        more: &[(4, 4), (8, 10)],
        is_exempt: false,
    },
    Kind {
        name: "one favoured by 3 %",
        design: |targets, noise, blocks| Design { bias: 0.03, ..Design::same(targets, noise, Stop::Blocks(blocks)) },
        quick: &[(2, 10)],
        more: &[(8, 10)],
        is_exempt: true,
    },
];

fn alternating(targets: usize, of: [Target; 2], noise: Noise, blocks: usize) -> Design {
    Design::new((0..targets).map(|target| of[target % 2]).collect(), noise, Stop::Blocks(blocks))
}

/// Whether any two that cost the same were claimed to differ.
fn is_wrong(design: &Design, run: &Run) -> bool {
    let true_cost = |target: usize| design.targets[target].true_cost();
    let campaign = run.judged();
    campaign.pairs().iter().any(|pair| pair.claim.is_some() && true_cost(pair.one) == true_cost(pair.other))
}

/// The widest ± of a run's A/A intervals.
pub fn plus_minus(run: &Run) -> f64 {
    let noise = run.noise();
    noise.controls().iter().filter_map(|control| control.interval.plus_minus()).fold(0.0, f64::max)
}

pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    Sample::new(numbers.into_iter().collect()).unwrap().median()
}

/// Of one cell: the share of false claims, and the median ± of its A/A intervals.
struct Seen {
    wrong: u64,
    plus_minus: f64,
}

fn seen(design: &Design, campaigns: u64) -> Seen {
    let all = each(campaigns, |seed| {
        let run = design.run(seed, |_, _| 1.0);
        (is_wrong(design, &run), plus_minus(&run))
    });
    let wrong = all.iter().filter(|(wrong, _)| *wrong).count() as u64;
    Seen { wrong, plus_minus: median(all.into_iter().map(|(_, plus_minus)| plus_minus)) }
}

/// A line for each cell and one for each noise: the worst cell of each kind.
fn try_all(campaigns: u64, sizes: impl Fn(&Kind) -> Vec<(usize, usize)>) {
    let percent = |count: u64| 100.0 * count as f64 / campaigns as f64;
    let (mut rows, mut too_many) = (Vec::new(), Vec::new());
    for (noise, strength) in NOISES {
        let (mut narrowest, mut widest) = (f64::MAX, 0.0_f64);
        let mut row = format!("| {noise:?} x {strength} |");
        for kind in &KINDS {
            let mut worst = 0;
            for (targets, blocks) in sizes(kind) {
                let seen = seen(&Design { strength, ..(kind.design)(targets, noise, blocks) }, campaigns);
                let width = seen.plus_minus * 100.0;
                let name = format!("{noise:?} x {strength}, {targets} targets, {blocks} blocks, {}", kind.name);
                eprintln!("{name}: A/A ± {width:.0} %, claimed to differ {:.1} %", percent(seen.wrong));
                if !kind.is_exempt && lower_bound(seen.wrong, campaigns) > 0.05 {
                    too_many.push(name);
                }
                (worst, narrowest, widest) = (worst.max(seen.wrong), narrowest.min(width), widest.max(width));
            }
            row += &format!(" {:.1} % |", percent(worst));
        }
        rows.push(format!("{row} ± {narrowest:.0} to {widest:.0} % |"));
    }
    let kinds = KINDS.map(|kind| kind.name).join(" | ");
    eprintln!("claimed to differ, the worst cell of each kind: | noise | {kinds} | A/A |");
    rows.iter().for_each(|row| eprintln!("{row}"));
    assert!(too_many.is_empty(), "more than 5 %: {too_many:?}");
}

#[test]
fn equal_targets_are_seldom_claimed_to_differ() {
    try_all(CAMPAIGNS, |kind| kind.quick.to_vec());
}

#[test]
#[ignore = "10,000 campaigns a cell"]
fn equal_targets_are_seldom_claimed_to_differ_in_many_runs() {
    try_all(THOROUGH, |kind| [kind.quick, kind.more].concat());
}
