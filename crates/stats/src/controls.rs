//! Which targets are run twice in each block (the A/A controls): they tell how far two trials of the same target come
//! out from each other on this machine.

/// The longer control costs at most so much of a block without controls.
const COSTS: f64 = 0.25;

/// Which targets to run twice in each block, by their places: the shortest, whose noise is the largest share of a
/// trial, and the longest that costs at most a quarter of a block of `block_s` seconds. That one is left out where it
/// is the shortest itself, or where none is so cheap. Nothing where there are no targets.
///
/// `job_s` is what the job of each target took, and `all_s` the same with starting, checking and stopping.
pub fn among_these(job_s: &[f64], all_s: &[f64], block_s: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..job_s.len()).collect();
    order.sort_by(|one, other| job_s[*one].total_cmp(&job_s[*other]));
    let shortest = order.first().copied();
    let longest = order.iter().rev().copied().find(|place| all_s[*place] <= block_s * COSTS);
    shortest.into_iter().chain(longest.filter(|longest| Some(*longest) != shortest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(job_s: &[f64]) -> Vec<usize> {
        let all_s: Vec<f64> = job_s.iter().map(|job_s| job_s + 0.1).collect();
        among_these(job_s, &all_s, all_s.iter().sum())
    }

    #[test]
    fn the_shortest_and_the_longest_that_a_quarter_of_a_block_pays_for() {
        assert_eq!(chosen(&[1.0, 0.012, 2.0, 9.0]), [1, 2], "the longest costs most of a block");
        assert_eq!(chosen(&[1.0, 1.0, 1.0, 1.0]), [0, 3]);
        assert_eq!(chosen(&[0.01, 5.0, 5.0, 5.0]), [0], "none is cheap enough but the shortest itself");
        assert_eq!(chosen(&[1.0, 2.0]), [0]);
        assert_eq!(chosen(&[1.0]), [0]);
        assert_eq!(chosen(&[]), [] as [usize; 0]);
    }

    #[test]
    fn a_quarter_of_a_block_and_no_more_is_paid() {
        let chosen = |all_s: f64| among_these(&[1.0, 2.0], &[1.0, all_s], 100.0);
        assert_eq!([chosen(25.0), chosen(26.0)], [vec![0, 1], vec![0]]);
    }
}
