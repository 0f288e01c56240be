//! `kvfair compare OLD NEW`: two runs on one machine at different times, in which every target is the same.

use kvfair_stats::across::{TwoRuns, TwoRunsTarget, across};
use kvfair_stats::sample::Sample;

use super::binomial::lower_bound;
use super::noise::Noise;
use super::run::{Design, Run, Stop};
use super::{CAMPAIGNS, THOROUGH, each};

/// Targets and how many of them are baselines, and blocks of either run; more in the thorough test.
const QUICK: [(usize, usize, usize, usize); 3] = [(1, 0, 6, 6), (2, 0, 10, 10), (4, 1, 10, 6)];
const MORE: [(usize, usize, usize, usize); 4] = [(2, 0, 4, 4), (3, 1, 10, 10), (8, 2, 9, 9), (8, 2, 14, 6)];

/// With the strength of each. Each block is as slow as any other: the machine of one file is that of the other.
const STEADY: [(Noise, f64); 5] = [
    (Noise::Quiet, 1.0),
    (Noise::Quiet, 10.0),
    (Noise::HeavyTailed, 1.0),
    (Noise::HeavyTailed, 10.0),
    (Noise::Contaminated, 1.0),
];

/// What lasts for many blocks moves whole files against each other, which only baselines can tell from the targets.
const SHIFTING: [(Noise, f64); 5] = [
    (Noise::Drifting, 1.0),
    (Noise::Bursty, 1.0),
    (Noise::Regimes, 1.0),
    (Noise::Recorded, 1.0),
    (Noise::Periodic, 1.0),
];

fn two_files(design: [&Design; 2], baselines: usize, seed: u64) -> (bool, TwoRuns) {
    let length_s = |costs: &Vec<f64>| Sample::new(costs.clone()).unwrap().median();
    let [base, head] = [0, 1].map(|half| design[half].run(2 * seed + half as u64, |_, _| 1.0));
    let bar = |run: &Run, target: usize| run.noise().bar(length_s(&run.costs[target]), length_s(&run.costs[target]));
    let targets: Vec<TwoRunsTarget> = (0..base.costs.len())
        .map(|target| TwoRunsTarget {
            base: base.costs[target].clone(),
            head: head.costs[target].clone(),
            bar: bar(&base, target).zip(bar(&head, target)).map(|(base, head)| base.higher(head)),
            is_baseline: target < baselines,
        })
        .collect();
    let (moved, machine) = across(&targets);
    (machine == TwoRuns::Same && moved.iter().any(|moved| moved.claim.is_some()), machine)
}

/// The share of false claims in the worst of some cells.
fn worst(noise: (Noise, f64), sizes: &[(usize, usize, usize, usize)], campaigns: u64) -> f64 {
    let mut worst = 0.0_f64;
    for (targets, baselines, base, head) in sizes {
        let design = |blocks| Design { strength: noise.1, ..Design::same(*targets, noise.0, Stop::Blocks(blocks)) };
        let all = each(campaigns, |seed| two_files([&design(*base), &design(*head)], *baselines, seed));
        let count = |is: fn(&(bool, TwoRuns)) -> bool| all.iter().filter(|one| is(one)).count() as u64;
        let (wrong, changed) = (count(|one| one.0), count(|one| one.1 != TwoRuns::Same));
        let percent = |count: u64| 100.0 * count as f64 / campaigns as f64;
        let name = format!(
            "two files, {:?} x {}, {targets} targets with {baselines} baselines, {base} and {head} blocks",
            noise.0, noise.1
        );
        eprintln!(
            "{name}: claimed to differ {:.1} %, the machine has changed {:.1} %",
            percent(wrong),
            percent(changed)
        );
        assert!(!STEADY.contains(&noise) || lower_bound(wrong, campaigns) <= 0.05, "{name}");
        worst = worst.max(percent(wrong));
    }
    worst
}

#[test]
fn equal_targets_of_two_files_are_seldom_claimed_to_differ() {
    for noise in STEADY {
        worst(noise, &QUICK, CAMPAIGNS);
    }
}

/// Where the machine shifts between the files the shares are printed, and nothing is asserted.
#[test]
#[ignore = "10,000 campaigns a cell"]
fn equal_targets_of_two_files_are_seldom_claimed_to_differ_in_many_runs() {
    let all = [STEADY, SHIFTING].concat();
    let rows = all.into_iter().map(|noise| {
        let sizes = |has_baseline: bool| -> Vec<(usize, usize, usize, usize)> {
            [&QUICK[..], &MORE[..]].concat().into_iter().filter(|size| (size.1 > 0) == has_baseline).collect()
        };
        let [without, with] = [false, true].map(|has| worst(noise, &sizes(has), THOROUGH));
        format!("| {:?} x {} | {without:.1} % | {with:.1} % |", noise.0, noise.1)
    });
    let rows: Vec<String> = rows.collect();
    eprintln!("two files, claimed to differ, the worst cell: | noise | without baselines | with baselines |");
    rows.iter().for_each(|row| eprintln!("{row}"));
}
