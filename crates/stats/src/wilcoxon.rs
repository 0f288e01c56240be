//! Wilcoxon's signed ranks, exactly: of differences ranked by their size, the ranks of those above 0 are a random
//! subset where neither sign is more likely (Wilcoxon, Biometrics Bulletin 1, 1945; Hollander, Wolfe and Chicken,
//! "Nonparametric statistical methods", 2014, section 3.1). Of very many differences, as nearly as the normal
//! distribution tells.

use super::normal;
use super::sample::place_at;

/// Up to so many differences the distribution is exact: the most blocks that any effort asks for. Beyond, it would take
/// seconds, and the normal distribution is right to the third digit of what matters.
const MOST_EXACT: usize = 60;

/// The p-value of differences for "as likely above 0 as below", both sides.
///
/// Equal sizes share the mean of their ranks, and differences of 0 are ranked and then left out, as Pratt has it (JASA
/// 54, 1959): where they are left out first, a difference more can make a shift less certain. The distribution is that
/// of these very ranks, so that p is right with ties and zeros too.
pub fn p_value(differences: &[f64]) -> f64 {
    let ranks = doubled_ranks(differences);
    let total = |wanted: fn(&f64) -> bool| -> usize {
        differences.iter().zip(&ranks).filter(|(difference, _)| wanted(difference)).map(|(_, rank)| rank).sum()
    };
    let least = total(|difference| *difference > 0.0).min(total(|difference| *difference < 0.0));
    let signed: Vec<usize> =
        differences.iter().zip(&ranks).filter(|(difference, _)| **difference != 0.0).map(|(_, rank)| *rank).collect();
    if signed.len() > MOST_EXACT {
        return nearly(&signed, least);
    }
    let tail: f64 = chances(signed, least).iter().sum();
    (2.0 * tail).min(1.0)
}

/// The p-value of a sum of so many doubled ranks at most, by the normal distribution of the same mean and variance,
/// half a rank nearer to the mean (Hollander, Wolfe and Chicken, equation 3.9 with ties; Cureton, JASA 62, 1967, with
/// zeros).
fn nearly(ranks: &[usize], least: usize) -> f64 {
    let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
    let deviation = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>().sqrt() / 2.0;
    normal::beyond((mean - least as f64 - 1.0).max(0.0) / deviation)
}

/// How far from either end of the sorted averages the interval begins that has the true value beyond either end with
/// the chance `tail`, counted from 1; `None` of so few differences that they could all be above 0 by that chance: below
/// six where `tail` is 2.5 in 100.
pub fn interval_place(differences: usize, tail: f64) -> Option<usize> {
    if differences > MOST_EXACT {
        let count = differences as f64;
        // Hollander, Wolfe and Chicken, section 3.3; half a rank as above.
        let (mean, variance) = (count * (count + 1.0) / 4.0, count * (count + 1.0) * (2.0 * count + 1.0) / 24.0);
        let place = (mean - normal::upper(tail) * variance.sqrt() + 0.5) as usize;
        return (place > 0).then_some(place);
    }
    // The place is below the middle, so that half of the sums are enough.
    place_at(chances(1..=differences, differences * (differences + 1) / 4), tail)
}

/// The chance of each sum from 0 to `most` of a random subset of these ranks, each of which is in it or not like the
/// fall of a coin.
fn chances(ranks: impl IntoIterator<Item = usize>, most: usize) -> Vec<f64> {
    let mut chances = vec![0.0; most + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    chances
}

/// Twice each difference's rank by size: means of ranks are whole numbers then.
fn doubled_ranks(differences: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..differences.len()).collect();
    order.sort_unstable_by(|one, other| differences[*one].abs().total_cmp(&differences[*other].abs()));
    let mut ranks = vec![0; differences.len()];
    let mut smaller = 0;
    for equal in order.chunk_by(|one, other| differences[*one].abs() == differences[*other].abs()) {
        equal.iter().for_each(|place| ranks[*place] = 2 * smaller + equal.len() + 1);
        smaller += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::averages::Averages;
    use crate::sample::{TAIL, place};

    /// The greatest sums that are significant at 5 %, both sides, by the number of differences from 6 on (Wilcoxon and
    /// Wilcox, "Some rapid approximate statistical procedures", 1964; McCornack, JASA 60, 1965).
    const CRITICAL: [usize; 25] =
        [0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89, 98, 107, 116, 126, 137];

    #[test]
    fn places_are_those_of_the_table() {
        for (count, critical) in (6..).zip(CRITICAL) {
            assert_eq!(interval_place(count, TAIL), Some(critical + 1), "{count} differences");
        }
        assert_eq!((1..6).find_map(|count| interval_place(count, TAIL)), None);
    }

    /// Where the exact distribution ends, the other one goes on: places are the same or next to it, chances the same to
    /// two digits where it matters.
    #[test]
    fn many_differences_are_told_nearly_as_exactly() {
        for count in MOST_EXACT + 1..=150 {
            let exact = place(chances(1..=count, count * (count + 1) / 4)).unwrap();
            assert!(interval_place(count, TAIL).unwrap().abs_diff(exact) <= 1, "{count} differences");
            let ranks: Vec<usize> = (1..=count).map(|rank| 2 * rank).collect();
            for place in [exact - 1, exact, exact + exact / 8] {
                let exactly = 2.0 * chances(1..=count, place).iter().sum::<f64>();
                let nearly = nearly(&ranks, 2 * place);
                assert!((nearly / exactly - 1.0).abs() < 0.02, "{count} differences: {nearly} for {exactly}");
            }
        }
    }

    /// Elsewhere: SciPy 1.17's `wilcoxon(..., zero_method="pratt", correction=True, method="asymptotic")`.
    #[test]
    fn many_ties_and_zeros_as_elsewhere() {
        let differences: Vec<f64> = (0..90).map(|index| f64::from(index * 7 % 13) - 4.0).collect();
        assert!((p_value(&differences) - 2.038193717551002e-5).abs() < 1e-16, "{}", p_value(&differences));
        assert_eq!(p_value(&[0.5; 1_000]), nearly(&[1_001; 1_000], 0));
        assert!(p_value(&[0.5; 1_000]) < 1e-100);
    }

    /// A level below the usual one takes more differences, and its place is nearer to the ends.
    #[test]
    fn places_at_other_levels_are_those_of_the_distribution() {
        for (count, tail) in [(6, 0.025), (7, 0.01), (11, 0.025 / 28.0), (13, 0.025 / 91.0)] {
            assert_eq!(interval_place(count, tail), Some(place_by_hand(count, tail)), "{count} at {tail}");
            assert_eq!(interval_place(count, 0.9 / 2_f64.powi(count as i32)), None, "{count} differences");
        }
        for count in [61, 100, 150] {
            for tail in [0.025, 0.025 / 28.0, 0.025 / 4_950.0] {
                let exact = place_by_hand(count, tail);
                // Far out the normal distribution has more: the interval is a little wider.
                let nearly = interval_place(count, tail).unwrap();
                assert!(nearly <= exact + 1 && nearly + exact / 10 >= exact, "{count} at {tail}: {nearly}, {exact}");
            }
        }
    }

    fn place_by_hand(count: usize, tail: f64) -> usize {
        let chances = chances(1..=count, count * (count + 1) / 4);
        (0..chances.len()).find(|place| chances[..=*place].iter().sum::<f64>() > tail).unwrap()
    }

    /// All falls of the coins, counted one by one.
    fn by_counting(differences: &[f64]) -> f64 {
        let ranks = doubled_ranks(differences);
        let signed: Vec<(f64, usize)> =
            differences.iter().copied().zip(ranks).filter(|(difference, _)| *difference != 0.0).collect();
        let total: usize = signed.iter().map(|(_, rank)| rank).sum();
        let above = |sum: usize| sum.min(total - sum);
        let seen: usize = signed.iter().filter(|(difference, _)| *difference > 0.0).map(|(_, rank)| rank).sum();
        let falls = 0..1_u32 << signed.len();
        let as_far = falls.clone().filter(|fall| {
            let chosen = signed.iter().enumerate().filter(|(index, _)| fall >> index & 1 == 1);
            above(chosen.map(|(_, (_, rank))| rank).sum()) <= above(seen)
        });
        as_far.count() as f64 / falls.count() as f64
    }

    #[test]
    fn p_values_are_those_of_counting_all_signs() {
        let mut state = 1_u64;
        let mut draw = |range: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % range
        };
        for count in (1..=10).flat_map(|count| [count; 20]) {
            // Few sizes, so that ties and zeros are among them.
            let differences: Vec<f64> = (0..count).map(|_| draw(13) as f64 - 4.0).collect();
            let (exact, counted) = (p_value(&differences), by_counting(&differences));
            assert!((exact - counted).abs() < 1e-12, "{differences:?}: {exact}, by counting {counted}");
            let turned: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            assert_eq!(p_value(&turned), exact);
        }
    }

    /// Hollander and Wolfe's example 3.1, depression scores of nine patients under a tranquilizer: T+ is 5, one-sided
    /// p 0.0195.
    #[test]
    fn a_worked_example_comes_out_as_in_the_book() {
        let before = [1830.0, 500.0, 1620.0, 2480.0, 1680.0, 1880.0, 1550.0, 3060.0, 1300.0];
        let after = [878.0, 647.0, 598.0, 2050.0, 1060.0, 1290.0, 1060.0, 3140.0, 1290.0];
        let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
        assert!((p_value(&differences) - 2.0 * 0.01953125).abs() < 1e-12);
        // The book's scores are a thousandth of these, and its estimate is -0.46.
        assert_eq!(Averages::new(differences).unwrap().median(), -460.0);
    }

    /// Elsewhere: SciPy 1.17's `wilcoxon(..., zero_method="pratt")` with all permutations.
    #[test]
    fn ties_and_zeros_as_elsewhere() {
        assert_eq!(p_value(&[1.0, 2.0, 2.0, -3.0, 4.0, 5.0, 0.0, 0.0, -1.0, 6.0]), 0.125);
    }

    #[test]
    fn nothing_differs_where_all_are_equal() {
        assert_eq!(p_value(&[0.0; 8]), 1.0);
        assert_eq!(p_value(&[]), 1.0);
    }

    #[test]
    fn the_unit_of_the_differences_does_not_matter() {
        let differences = [1.0, 2.0, -3.0, 4.0, 5.0, 6.0];
        assert_eq!(p_value(&differences.map(|difference| difference / 1_024.0)), p_value(&differences));
    }

    /// Of 60 differences one order of the signs in 2^60 has none below 0.
    #[test]
    fn p_values_are_exact_up_to_sixty_differences() {
        let above = |count: usize| p_value(&vec![1.0; count]);
        assert_eq!(above(60), 2.0 / 2_f64.powi(60));
        assert!(above(61) > 2.0 / 2_f64.powi(50));
        // The distribution's places at 1 in 1,000 are 502 and 522; the normal one's is 945.5 - 3.0902 * 139.22 + 0.5.
        assert_eq!([60, 61].map(|count| interval_place(count, 1e-3)), [Some(502), Some(515)]);
    }

    /// 2047.5 - 1.959964 * sqrt(90 * 91 * 181 / 24) + 0.5 is 1560.89.
    #[test]
    fn places_of_many_differences_are_those_of_the_formula() {
        assert_eq!(interval_place(90, TAIL), Some(1_560));
        // 945.5 - 6.7844 * 139.22 + 0.5 is 1.47. Further out nothing is left.
        assert_eq!([5.83e-12, 1e-14].map(|tail| interval_place(61, tail)), [Some(1), None]);
    }

    /// Of the 2^10 subsets of 1 to 10 a share of 0.4609 has a sum of at most 26, and a half one of at most 27.
    #[test]
    fn places_go_up_to_the_middle() {
        assert_eq!([0.46, 0.47, 0.49].map(|tail| interval_place(10, tail)), [Some(26), Some(27), Some(27)]);
    }

    /// Each size comes with either sign.
    #[test]
    fn many_differences_that_cancel_are_no_difference() {
        let differences: Vec<f64> = (1..=31).flat_map(|size| [f64::from(size), -f64::from(size)]).collect();
        assert_eq!(p_value(&differences), 1.0);
    }
}
