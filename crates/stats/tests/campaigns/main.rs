//! The statistics tried on thousands of runs whose true differences are known: equal targets are not claimed to differ,
//! differences are found, and each step of the design is needed. Behind
//! `cargo test --package kvfair-stats --test campaigns --`, `--nocapture` tries 2,000 runs a cell, and
//! `--ignored --nocapture` tries 10,000 and prints what docs/statistics.md quotes. Seeds are counted from 1; none was
//! chosen.

mod best;
mod binomial;
mod equal;
mod files;
mod history;
mod levers;
mod noise;
mod power;
mod run;

use kvfair_stats::paired::LogRatios;
use kvfair_stats::parallel;
use kvfair_stats::rank::Campaign;
use kvfair_stats::shift::{self, Course, Drift};

use noise::{Machine, Noise, PIECES, UNQUIET};
use run::{Design, Order, Run, Stop};

/// In a quick cell, and in one of those that are ignored unless asked for.
const CAMPAIGNS: u64 = 2_000;
const THOROUGH: u64 = 10_000;

/// What is seen in each campaign, by its seed.
fn each<T: Send>(campaigns: u64, seen: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let seeds: Vec<u64> = (1..=campaigns).collect();
    parallel::map(&seeds, true, |seed| seen(*seed))
}

/// Of all campaigns the shares in which each of some things was seen.
fn shares<const THINGS: usize>(
    campaigns: u64,
    name: &str,
    seen: impl Fn(u64) -> [bool; THINGS] + Sync,
) -> [f64; THINGS] {
    let all = each(campaigns, seen);
    let count = |thing: usize| all.iter().filter(|seen| seen[thing]).count();
    let shares = std::array::from_fn(|thing| count(thing) as f64 / campaigns as f64);
    eprintln!("{name}: {}", shares.map(|share: f64| format!("{:.1} %", share * 100.0)).join(", "));
    shares
}

fn share(name: &str, seen: impl Fn(u64) -> bool + Sync) -> f64 {
    shares(CAMPAIGNS, name, |seed| [seen(seed)])[0]
}

/// More than 5 in 100 of so many campaigns, 99 times in 100.
fn is_above_level(share: f64, campaigns: u64) -> bool {
    binomial::lower_bound((share * campaigns as f64).round() as u64, campaigns) > 0.05
}

/// All targets cost the same in every block.
fn same(_: usize, _: usize) -> f64 {
    1.0
}

fn claims(campaign: &Campaign) -> bool {
    campaign.pairs().iter().any(|pair| pair.claim.is_some())
}

/// Whether a claim was made about two targets that are the same, and whether their interval leaves out 1.
fn is_wrong(run: &Run) -> [bool; 2] {
    let campaign = run.judged();
    [claims(&campaign), !campaign.pairs()[0].ratio.interval.contains(1.0)]
}

fn two_the_same(noise: Noise, order: Order, stop: Stop) -> [f64; 2] {
    let design = Design { order, ..Design::same(2, noise, stop) };
    let name = format!("two the same, {noise:?}, {order:?}, {stop:?}: claimed, outside the interval");
    shares(THOROUGH, &name, |seed| is_wrong(&design.run(seed, same)))
}

/// Half-widths that are reached after anything from six to thirty blocks.
const WIDTHS: [(Noise, f64); 7] = [
    (Noise::Drifting, 0.02),
    (Noise::Bursty, 0.05),
    (Noise::HeavyTailed, 0.03),
    (Noise::Contaminated, 0.05),
    (Noise::Regimes, 0.3),
    (Noise::Recorded, 0.1),
    (Noise::Periodic, 0.3),
];

/// However many blocks, and also where the run ends by itself once its intervals are narrow.
#[test]
fn two_that_are_the_same_are_not_told_apart_whatever_the_noise() {
    for (noise, width) in WIDTHS {
        for stop in [Stop::Blocks(4), Stop::Blocks(10), Stop::Width(width)] {
            let [claimed, outside] = two_the_same(noise, Order::Shuffled, stop);
            assert!(
                ![claimed, outside].into_iter().any(|share| is_above_level(share, THOROUGH)),
                "{noise:?}, {stop:?}"
            );
        }
    }
}

/// Blocks in the reverse order of the one before cancel a steady drift, but they run a target twice in a row: what hits
/// both of its trials looks like two blocks that agree.
#[test]
fn orders_that_are_drawn_are_no_worse_than_orders_that_are_mirrored() {
    for noise in UNQUIET {
        let [claimed, mirrored] = two_the_same(noise, Order::Mirrored, Stop::Blocks(10));
        assert!(!is_above_level(claimed, THOROUGH) && mirrored <= 0.075, "{noise:?}");
        if noise == Noise::Recorded {
            let [_, drawn] = two_the_same(noise, Order::Shuffled, Stop::Blocks(10));
            assert!(mirrored > drawn);
        }
    }
}

/// Of 28 pairs some will always seem to differ: that is what the correction is for.
#[test]
fn eight_that_are_the_same_are_told_apart_only_without_the_correction() {
    for (noise, blocks) in [(Noise::Quiet, 9), (Noise::Recorded, 11)] {
        let design = Design::same(8, noise, Stop::Blocks(blocks));
        let seen = |seed| {
            let campaign = design.run(seed, same).judged();
            [claims(&campaign), campaign.pairs().iter().any(|pair| !pair.ratio.interval.contains(1.0))]
        };
        let name = format!("eight the same, {noise:?}, {blocks} blocks: claimed, pair by pair");
        let [claimed, pair_by_pair] = shares(CAMPAIGNS, &name, seen);
        assert!(!is_above_level(claimed, CAMPAIGNS) && pair_by_pair >= 0.35, "{name}");
    }
}

/// Of each target whether it drifts, in a run where the last one gets slower by a factor a block.
fn drifts(design: &Design, seed: u64, a_block: f64) -> Vec<Option<Drift>> {
    let last = design.targets.len() - 1;
    let cost = |target: usize, block: usize| if target == last { a_block.powi(block as i32) } else { 1.0 };
    shift::across(&design.run(seed, cost).costs)
}

#[test]
fn a_target_that_slows_down_by_a_fifth_a_block_is_flagged_and_no_other() {
    for (targets, blocks, noise) in [
        (1, 6, Noise::Quiet),
        (2, 6, Noise::Quiet),
        (3, 6, Noise::Drifting),
        (8, 7, Noise::Quiet),
        (2, 10, Noise::Bursty),
        (3, 10, Noise::Recorded),
    ] {
        let design = Design::same(targets, noise, Stop::Blocks(blocks));
        let seen = |seed| {
            let drifts = drifts(&design, seed, 1.2);
            let (last, others) = drifts.split_last().unwrap();
            [last.is_some_and(|drift| drift.course == Course::Slowing), others.iter().any(Option::is_some)]
        };
        let name = format!("slower by a fifth a block, {targets} targets, {blocks} blocks, {noise:?}: flagged, others");
        let [flagged, others] = shares(CAMPAIGNS, &name, seen);
        assert!(flagged >= 0.9 && others <= 0.01, "{name}");
    }
}

#[test]
fn a_machine_that_changes_is_no_targets_drift() {
    for noise in UNQUIET {
        for (targets, blocks) in [(1, 10), (2, 6), (3, 10)] {
            let design = Design::same(targets, noise, Stop::Blocks(blocks));
            let name = format!("nothing drifts, {targets} targets, {blocks} blocks, {noise:?}: flagged");
            let flagged = share(&name, |seed| drifts(&design, seed, 1.0).iter().any(Option::is_some));
            // Of a single target what its machine does looks like its own.
            assert!(flagged <= if targets == 1 { 0.05 } else { 0.01 }, "{name}");
        }
    }
}

/// A trial whose machine drifts has no steady rate either: within one trial the two cannot be told apart, and a single
/// trial says nothing about a target.
#[test]
fn slices_of_a_trial_are_steady_where_the_machine_is() {
    for noise in [Noise::Quiet].into_iter().chain(UNQUIET) {
        let flagged = share(&format!("twenty slices of a trial, {noise:?}: not steady"), |seed| {
            let mut machine = Machine::new(noise, 1.0, 3, seed);
            let rates: Vec<f64> = (0..20).map(|_| 1.0 / machine.trial(PIECES)).collect();
            shift::within(&rates).unwrap().course().is_some()
        });
        let is_steady = matches!(noise, Noise::Quiet | Noise::HeavyTailed | Noise::Contaminated);
        assert!(if is_steady { flagged <= 0.02 } else { flagged > 0.05 }, "{noise:?}");
    }
}

/// The same analysis of all trials of one target, then all of the other: what the machine did meanwhile is taken for
/// the targets'.
#[test]
fn one_target_after_the_other_tells_apart_what_is_the_same() {
    for (noise, least) in [(Noise::Drifting, 0.6), (Noise::Bursty, 0.08), (Noise::Recorded, 0.15)] {
        let apart = share(&format!("one after the other, {noise:?}, 10 trials each: outside the interval"), |seed| {
            let mut machine = Machine::new(noise, 1.0, 2, seed);
            let one: Vec<f64> = (0..10).map(|_| machine.trial(PIECES)).collect();
            let other: Vec<f64> = (0..10).map(|_| machine.trial(PIECES)).collect();
            !LogRatios::of(&one, &other).unwrap().ratio().interval.contains(1.0)
        });
        assert!(apart >= least, "{noise:?}");
    }
}

/// The same tests asked after each block whether there is a difference yet.
#[test]
fn stopping_at_the_first_significance_tells_apart_what_is_the_same() {
    let design = Design::same(2, Noise::Quiet, Stop::Blocks(30));
    let apart = share("until it is significant, 5 to 30 blocks: claimed", |seed| {
        let run = design.run(seed, same);
        let p = |blocks: usize| LogRatios::of(&run.costs[1][..blocks], &run.costs[0][..blocks])?.student();
        (5..=30).any(|blocks| p(blocks).unwrap() <= 0.05)
    });
    assert!(apart >= 0.15);
}
