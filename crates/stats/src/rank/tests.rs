//! What campaigns claim, by hand and by simulated blocks.

use super::super::floor::Control;
use super::*;

/// So many targets, each slower than the one before it by a factor, with a little noise that differs by block.
fn stairs(factors: &[f64], blocks: usize) -> Vec<Vec<f64>> {
    let noise = |target: usize, block: usize| 1.0 + ((target * 7 + block * 13) % 11) as f64 / 1e4;
    let costs = |(target, factor): (usize, &f64)| (0..blocks).map(|block| factor * noise(target, block)).collect();
    factors.iter().enumerate().map(costs).collect()
}

/// Of an A/A control whose interval is as wide as this to either side.
fn quiet(width: f64) -> AaNoise {
    let interval = Interval::Exact { low: 1.0 / (1.0 + width), high: 1.0 + width };
    AaNoise::of([Control { interval, length_s: 1.0 }], false)
}

fn of(costs: Vec<Vec<f64>>, noise: &AaNoise) -> Option<Campaign> {
    let lengths_s = vec![1.0; costs.len()];
    Campaign::new(costs, &lengths_s, noise)
}

#[test]
fn claims_and_ranks_of_targets_that_differ() {
    let campaign = of(stairs(&[1.0, 1.5, 1.501, 2.0], 9), &quiet(0.0)).unwrap();
    assert_eq!(campaign.ranks(), [(1, 1), (2, 3), (2, 3), (4, 4)]);
    let pair = campaign.pair(3, 0).unwrap();
    assert_eq!((pair.one, pair.other, pair.claim), (3, 0, Some(Claim::Slower)));
    assert!((pair.ratio.estimate - 2.0).abs() < 0.01);
    let back = campaign.pair(0, 3).unwrap();
    assert_eq!((back.claim, back.p), (Some(Claim::Faster), pair.p));
    assert_eq!(campaign.pair(1, 2).unwrap().claim, None);
    assert_eq!((campaign.pair(1, 1), campaign.pair(0, 4)), (None, None));
    let pairs: Vec<(usize, usize)> = campaign.pairs().iter().map(|pair| (pair.one, pair.other)).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    assert_eq!(campaign.costs(), stairs(&[1.0, 1.5, 1.501, 2.0], 9));
}

#[test]
fn no_claim_below_four_blocks_nor_below_the_floor() {
    let ranks = |factors: &[f64], blocks, floor| of(stairs(factors, blocks), &quiet(floor)).unwrap().ranks();
    let (apart, together) = ([(1, 1), (2, 2)], [(1, 2), (1, 2)]);
    assert_eq!(ranks(&[1.0, 1.5], 3, 0.0), together);
    assert_eq!(ranks(&[1.0, 1.5], 4, 0.0), apart);
    assert_eq!(ranks(&[1.0, 1.015], 10, 0.0), together, "1.5 % is never claimed");
    assert_eq!(ranks(&[1.0, 1.03], 10, 0.0), apart);
    assert_eq!(ranks(&[1.0, 1.03], 10, 0.04), together, "the same target was 4 % from itself");
    assert_eq!(ranks(&[1.0], 10, 0.0), [(1, 1)]);
}

#[test]
fn without_a_control_nothing_is_claimed_and_noise_leaves_what_is_far_beyond_it() {
    let claim = |factor, noise: &AaNoise| of(stairs(&[1.0, factor], 9), noise).unwrap().pair(1, 0).unwrap();
    assert_eq!(claim(46.0, &AaNoise::default()).claim, None);
    let noisy = quiet(0.34);
    assert_eq!(claim(1.3, &noisy).claim, None);
    let found = claim(2.0, &noisy);
    assert!(found.claim == Some(Claim::Slower) && found.bar.unwrap().is_noisy);
    assert!(!claim(2.0, &quiet(0.01)).bar.unwrap().is_noisy);
}

/// The estimate is 1.5, and the near end of its interval 1.2.
#[test]
fn where_most_blocks_were_discarded_the_near_end_must_be_beyond_the_far_end() {
    let costs = || vec![vec![1.0; 6], vec![1.2, 1.3, 1.45, 1.55, 1.7, 1.8]];
    let claim = |width: f64, most_discarded| {
        let controls = quiet(width).controls().to_vec();
        of(costs(), &AaNoise::of(controls, most_discarded)).unwrap().pair(1, 0).unwrap().claim
    };
    assert_eq!(claim(0.3, false), Some(Claim::Slower));
    assert_eq!(claim(0.3, true), None);
    assert_eq!(claim(0.19, true), Some(Claim::Slower));
}

#[test]
fn blocks_are_enough_where_the_smallest_p_value_is_just_small_enough() {
    // 2 * 8 / 2^6 = 0.25.
    assert_eq!([8, 9].map(|comparisons| blocks_for(comparisons, 0.25)), [6, 7]);
}

/// Twelve blocks in which the second target costs 30 % more with two kinds of data and 10 % less with the third.
#[test]
fn a_claim_that_some_data_denies_is_none() {
    let factor = |block: usize| if block % 3 == 2 { 0.9 } else { 1.3 };
    let noise = |block: usize| 1.0 + (block * 13 % 11) as f64 / 1e4;
    let costs: Vec<Vec<f64>> = vec![
        (0..12).map(noise).collect(),
        (0..12).map(|block| factor(block) * noise(block)).collect(),
        (0..12).map(|block| 2.0 * noise(block + 5)).collect(),
    ];
    let in_turn: Vec<u64> = (0..12).map(|block| block % 3).collect();
    let campaign = of(costs, &quiet(0.0)).unwrap();
    assert_eq!(campaign.ranks(), [(1, 1), (2, 2), (3, 3)], "over all blocks the first is faster");
    assert_eq!(campaign.clone().holding_for_each(&[]), campaign);
    assert_eq!(campaign.clone().holding_for_each(&[7; 12]), campaign);
    let campaign = campaign.holding_for_each(&in_turn);
    assert_eq!(campaign.ranks(), [(1, 2), (1, 2), (3, 3)]);
    let depends = |one, other| campaign.pair(one, other).unwrap().depends_on_data;
    assert!(depends(0, 1) && depends(1, 0) && !depends(0, 2) && !depends(1, 2));
    let slower =
        of(vec![(0..12).map(|block| 2.0 * noise(block + 5)).collect(), (0..12).map(noise).collect()], &quiet(0.0));
    let slower = slower.unwrap();
    assert_eq!(slower.ranks(), [(2, 2), (1, 1)]);
    assert_eq!(slower.clone().holding_for_each(&in_turn), slower, "no data denies it");
}

/// One target takes 1.5 times as long with the first data and as long with the second. It is named first or second.
#[test]
fn equal_costs_with_some_data_leave_no_claim_in_either_order() {
    let data: Vec<u64> = (0..20).map(|block| u64::from(block >= 15)).collect();
    let slow: Vec<f64> = data.iter().map(|data| if *data == 0 { 1.5 } else { 1.0 }).collect();
    for costs in [vec![slow.clone(), vec![1.0; 20]], vec![vec![1.0; 20], slow]] {
        let campaign = of(costs, &quiet(0.0)).unwrap();
        assert!(campaign.pairs()[0].claim.is_some());
        let held = campaign.holding_for_each(&data).pairs()[0];
        assert_eq!((held.claim, held.depends_on_data), (None, true));
    }
}

/// By hand, of logarithms: three targets have 3 pairs, so that each interval is one of 1 - 0.05 / 3. Seven blocks
/// are enough, and its ends are the first averages from either end.
#[test]
fn intervals_beside_the_best_are_the_greatest_of_those_beside_each() {
    let costs: Vec<Vec<f64>> = vec![
        (0..7).map(|block| 1.0 + f64::from(block) / 100.0).collect(),
        vec![1.02; 7],
        (0..7).map(|block| 2.0 + f64::from(block) / 10.0).collect(),
    ];
    let seen = of(costs, &quiet(0.0)).unwrap().versus_best(|_| true);
    let bounds: Vec<(f64, f64)> = seen.iter().map(|ratio| ratio.interval.bounds().unwrap()).collect();
    let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() + (one.1 - other.1).abs() < 1e-9;
    // Of the first beside the second: 1 / 1.02 to 1.06 / 1.02, and what it is beside the third is below 1.
    assert!(near(bounds[0], (1.0, 1.06 / 1.02)), "{bounds:?}");
    assert!(near(bounds[1], (1.0, 1.02)), "{bounds:?}");
    // Beside the second 2 / 1.02 to 2.6 / 1.02, beside the first 2 to 2.6 / 1.06.
    assert!(near(bounds[2], (2.0, 2.6 / 1.02)), "{bounds:?}");
    assert!(seen.iter().all(|ratio| matches!(ratio.interval, Interval::Exact { .. })));
    assert!(seen.iter().all(|ratio| ratio.estimate >= 1.0 && ratio.interval.contains(ratio.estimate)));
}

/// Eight targets need 11 blocks for exact intervals, and one that is no candidate may cost less than they do.
#[test]
fn intervals_beside_the_best_are_preliminary_of_few_blocks_and_of_others_too() {
    let kind = |blocks| of(stairs(&[1.0; 8], blocks), &quiet(0.0)).unwrap().versus_best(|_| true)[0].interval;
    assert!(matches!(kind(11), Interval::Exact { .. }));
    assert!(matches!(kind(10), Interval::Preliminary { .. }));
    assert_eq!(kind(3), Interval::None);
    let seen = of(stairs(&[1.0, 2.0, 4.0], 8), &quiet(0.0)).unwrap().versus_best(|target| target > 0);
    let (low, high) = seen[0].interval.bounds().unwrap();
    assert!(low < 0.5 && 0.5 < high && high < 0.51, "{low} {high}");
    assert_eq!(of(stairs(&[1.0], 8), &quiet(0.0)).unwrap().versus_best(|_| true)[0].interval, Interval::None);
}

/// Four blocks in which one of three takes 1.56 to 2.08 times as long are no tie, and more would tell.
#[test]
fn a_tie_lies_within_the_noise_floor() {
    let of = |second: [f64; 4], floor| of(vec![vec![1.0; 4], second.to_vec(), vec![9.0; 4]], &quiet(floor)).unwrap();
    let wide = [1.56, 2.08, 1.60, 2.00];
    let campaign = of(wide, 0.9);
    assert_eq!(campaign.pair(0, 1).unwrap().claim, None);
    assert!(matches!(campaign.unclaimed(0, 1, 1_000), Some(Unclaimed::NotSeparated { blocks: Some(5..) })));
    assert_eq!(campaign.unclaimed(0, 2, 1_000), None, "that is a claim");
    assert_eq!(of([1.01, 1.0, 1.015, 1.005], 0.04).unclaimed(0, 1, 1_000), Some(Unclaimed::Tied));
    let far = of([1.0, 3.0, 0.9, 2.6], 0.02);
    let Some(Unclaimed::NotSeparated { blocks: Some(blocks) }) = far.unclaimed(1, 0, 1_000) else { panic!() };
    assert!((8..40).contains(&blocks), "{blocks}");
    assert_eq!(far.unclaimed(1, 0, blocks - 1), Some(Unclaimed::NotSeparated { blocks: None }));
}

/// Eleven blocks of eight targets can be ranked by Wilcoxon, ten only by Student's t.
#[test]
fn any_number_of_blocks_can_tell_targets_apart() {
    let factors: Vec<f64> = (0..8).map(|step| 1.1_f64.powi(step)).collect();
    for blocks in [4, 5, 6, 10, 11] {
        let campaign = of(stairs(&factors, blocks), &quiet(0.0)).unwrap();
        let expected: Vec<(usize, usize)> = (1..=8).map(|place| (place, place)).collect();
        assert_eq!(campaign.ranks(), expected, "{blocks} blocks");
    }
}

/// Against the distribution itself: n blocks that all agree are significant, one block fewer is not.
#[test]
fn needed_blocks_are_the_least_that_can_be_significant() {
    for targets in 2..=40 {
        let pairs = targets * (targets - 1) / 2;
        let smallest = |blocks: usize| {
            let agreed: Vec<f64> = (0..blocks).map(|block| 2.0 + block as f64).collect();
            LogRatios::of(&agreed, &vec![1.0; blocks]).unwrap().wilcoxon() * pairs as f64
        };
        let needed = needed_blocks(targets);
        assert!(smallest(needed) <= LEVEL, "{targets} targets, {needed} blocks");
        assert!(smallest(needed - 1) > LEVEL, "{targets} targets, {needed} blocks");
    }
    assert_eq!([1, 2, 3, 5, 8, 12].map(needed_blocks), [6, 6, 7, 9, 11, 12]);
}

#[test]
fn what_is_no_campaign_is_none() {
    let of = |costs| of(costs, &quiet(0.0));
    assert_eq!(of(vec![]), None);
    assert_eq!(of(vec![vec![]]), None);
    assert_eq!(of(vec![vec![1.0], vec![1.0, 2.0]]), None);
    assert_eq!(of(vec![vec![0.0]]), None);
    assert_eq!(Campaign::new(vec![vec![1.0]], &[], &quiet(0.0)), None);
}

#[test]
fn the_number_of_blocks_decides_which_test_is_asked() {
    let ratios = |blocks: usize| {
        let costs: Vec<f64> = (0..blocks).map(|block| 2.0 + block as f64).collect();
        LogRatios::of(&costs, &vec![1.0; blocks]).unwrap()
    };
    let (few, enough) = (ratios(needed_blocks(2) - 1), ratios(needed_blocks(2)));
    assert_eq!(p_value(&ratios(LEAST_BLOCKS - 1), 2), None);
    assert!(few.student().is_some() && few.student() != Some(few.wilcoxon()));
    assert_eq!((p_value(&few, 2), p_value(&enough, 2)), (few.student(), Some(enough.wilcoxon())));
}

#[test]
fn what_was_not_claimed_depends_on_no_data() {
    let costs = vec![vec![1.0; 12], (0..12).map(|block| [0.99, 1.01][block % 2]).collect()];
    let campaign = of(costs, &quiet(0.0)).unwrap();
    let in_turn: Vec<u64> = (0..12).map(|block| block % 2).collect();
    assert_eq!(campaign.pair(0, 1).unwrap().claim, None);
    assert_eq!(campaign.clone().holding_for_each(&in_turn), campaign);
}

/// Of seven blocks an end is exact down to 1 / 2^7: for three pairs with one candidate, and not for all six pairs.
/// Of six blocks it is for the one pair of two targets.
#[test]
fn intervals_beside_the_best_hold_for_the_pairs_with_candidates() {
    let of = |factors: &[f64], blocks, first| {
        of(stairs(factors, blocks), &quiet(0.0)).unwrap().versus_best(|target| target >= first)[0]
    };
    assert!(matches!(of(&[1.0; 4], 7, 3).interval, Interval::Exact { .. }));
    assert!(matches!(of(&[1.0; 4], 7, 0).interval, Interval::Preliminary { .. }));
    assert!(matches!(of(&[1.0; 2], 6, 0).interval, Interval::Exact { .. }));
    let cheap = of(&[1.0, 8.0], 8, 1);
    assert!((cheap.estimate - 0.125).abs() < 0.001 && cheap.interval.bounds().unwrap().0 < 0.125, "{cheap:?}");
}

/// A p-value of 4 / 2^7 is enough for one pair and not for three.
#[test]
fn the_more_pairs_the_more_a_difference_must_show() {
    let costs = || vec![vec![1.0; 7], [-0.01, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0].map(f64::exp).to_vec()];
    let pair = of(costs(), &quiet(0.0)).unwrap().pair(1, 0).unwrap();
    assert_eq!((pair.p, pair.claim), (Some(1.0 / 32.0), Some(Claim::Slower)));
    let pair = of([costs(), vec![vec![1.0; 7]]].concat(), &quiet(0.0)).unwrap().pair(1, 0).unwrap();
    assert_eq!((pair.p, pair.claim), (Some(3.0 / 32.0), None));
    assert!(!pair.ratio.interval.contains(1.0));
}

#[test]
fn a_claim_is_beyond_the_floor_and_its_near_end_beyond_what_is_asked_of_it() {
    let ratio = Ratio { estimate: 1.25, interval: Interval::Exact { low: 1.125, high: 1.5 } };
    let claim = |floor, near_end| claim(ratio, Bar { floor, near_end, is_noisy: false });
    assert_eq!([claim(0.249, 0.0), claim(0.25, 0.0)], [Some(Claim::Slower), None]);
    assert_eq!([claim(0.0, 0.124), claim(0.0, 0.125)], [Some(Claim::Slower), None]);
}

/// Four blocks of two targets: the middle and the deviation of their logarithms are such, and the latter is 0.1.
fn around(middle: f64) -> Vec<Vec<f64>> {
    let half = 0.1 * 0.75_f64.sqrt();
    vec![vec![1.0; 4], [half, -half, half, -half].map(|off| f64::exp(middle + off)).to_vec()]
}

fn blocks(costs: Vec<Vec<f64>>, noise: &AaNoise) -> Option<usize> {
    let Some(Unclaimed::NotSeparated { blocks }) = of(costs, noise).unwrap().unclaimed(1, 0, 1_000) else { panic!() };
    blocks
}

/// By hand, t * 0.1 / sqrt(n): 0.124 of 5 blocks, 0.1049 of 6, 0.0925 of 7.
#[test]
fn the_blocks_that_would_tell_are_those_of_the_gap_between_interval_and_bar() {
    // A tie: up to the logarithm of 1.1, 0.0953.
    assert_eq!(blocks(around(0.0), &quiet(0.1)), Some(7));
    // A claim: down to 1, and where most blocks were discarded down to 1.02, whose logarithm is 0.0198.
    assert_eq!(blocks(around(0.12), &quiet(0.0)), Some(6));
    let discarded = AaNoise::of(quiet(0.02).controls().to_vec(), true);
    assert_eq!(blocks(around(0.12), &discarded), Some(7));
}

/// By hand, for three pairs, with t beyond which 0.05 / 6 lies: 0.124 of 7 blocks, 0.1106 of 8. A difference of 0.2
/// is clear of five blocks by Student's t, and Wilcoxon's test needs seven.
#[test]
fn the_blocks_that_would_tell_are_more_for_more_pairs() {
    let three = |middle| [around(middle), vec![vec![1.0; 4]]].concat();
    assert_eq!(blocks(three(0.112), &quiet(0.0)), Some(8));
    assert_eq!(blocks(three(0.2), &quiet(0.0)), Some(7));
}

/// One of six blocks tells the opposite, so that the p-value is 4 / 2^6. Student's t would have been content.
#[test]
fn where_these_blocks_should_have_been_enough_no_number_is_told() {
    let costs = vec![vec![1.0; 6], [-0.01, 0.1, 0.1, 0.1, 0.1, 0.1].map(f64::exp).to_vec()];
    assert_eq!(blocks(costs, &quiet(0.0)), None);
}

#[test]
fn an_interval_that_comes_to_the_floor_is_a_tie() {
    let costs = || vec![vec![1.0; 6], vec![0.8, 0.9, 1.0, 1.0, 1.1, 1.2]];
    let interval = of(costs(), &quiet(0.0)).unwrap().pair(1, 0).unwrap().ratio.interval;
    let unclaimed = |interval| {
        let noise = AaNoise::of([Control { interval, length_s: 1.0 }], false);
        of(costs(), &noise).unwrap().unclaimed(1, 0, 1_000)
    };
    assert_eq!(unclaimed(interval), Some(Unclaimed::Tied));
    let narrower = Interval::Exact { low: 0.801, high: 1.2 };
    assert!(matches!(unclaimed(narrower), Some(Unclaimed::NotSeparated { .. })));
}
