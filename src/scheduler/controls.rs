//! Which targets are run twice in each block (the A/A controls): they tell how far two trials of the same target come
//! out from each other on this machine.

use crate::harness::plan::{Plan, Took};
use crate::stats::controls::among_these;

/// The places of the plan's A/A controls, two at most. Baselines are none of them where there is anything else.
///
/// `took` is what a trial of each target took, by its place, in a pilot or in the block that warms up; `may_be` tells
/// those that still run. Nothing is known of results that count when this is asked.
pub fn choose(plan: &Plan, took: impl Fn(usize) -> Option<Took>, may_be: impl Fn(usize) -> bool) -> Vec<usize> {
    let is_baseline = |place: &usize| plan.chosen[*place].target.baseline;
    let (baselines, stores): (Vec<usize>, Vec<usize>) =
        (0..plan.chosen.len()).filter(|place| may_be(*place)).partition(is_baseline);
    let among = if stores.is_empty() { &baselines } else { &stores };
    if plan.is_paced() {
        // All take equally long.
        return among.first().copied().into_iter().collect();
    }
    let known: Vec<(usize, Took)> = among.iter().filter_map(|place| Some((*place, took(*place)?))).collect();
    let block_s: f64 = (0..plan.chosen.len()).filter_map(&took).map(|took| took.all_s).sum();
    let (job_s, all_s): (Vec<f64>, Vec<f64>) = known.iter().map(|(_, took)| (took.job_s, took.all_s)).unzip();
    let controls = among_these(&job_s, &all_s, block_s);
    if controls.is_empty() {
        return among.first().copied().into_iter().collect();
    }
    controls.into_iter().map(|index| known[index].0).collect()
}

/// What a target took, of some that are known by their labels.
pub fn by_label(all: &[(String, Took)], label: &str) -> Option<Took> {
    all.iter().find(|(of, _)| of == label).map(|(_, took)| *took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::plan::tests::plan_of;
    use crate::model::load::Load;

    fn chosen(targets: &[(&str, bool)], took_s: &[f64]) -> Vec<usize> {
        let took = |place: usize| Some(Took { job_s: took_s[place], all_s: took_s[place] + 0.1 });
        choose(&plan_of(targets), took, |_| true)
    }

    #[test]
    fn baselines_are_controls_only_among_themselves() {
        let with = [("null", true), ("a", false), ("ram", true), ("b", false), ("c", false), ("d", false)];
        assert_eq!(chosen(&with, &[0.001, 1.0, 0.01, 1.1, 1.2, 9.0]), [1, 4]);
        assert_eq!(chosen(&[("null", true), ("ram", true)], &[0.1, 0.2]), [0]);
        assert_eq!(chosen(&[], &[]), [] as [usize; 0]);
    }

    #[test]
    fn a_target_that_failed_is_replaced_and_without_times_it_is_the_first() {
        let three = plan_of(&[("a", false), ("b", false), ("c", false)]);
        let took = |place: usize| Some(Took { job_s: [1.0, 2.0, 3.0][place], all_s: [1.0, 2.0, 3.0][place] });
        assert_eq!(choose(&three, took, |place| place != 0), [1]);
        assert_eq!(choose(&three, |_| None, |_| true), [0]);
    }

    #[test]
    fn at_a_rate_all_take_equally_long() {
        let mut plan = plan_of(&[("null", true), ("a", false), ("b", false)]);
        plan.job.load = Some(Load { rates: vec![500], ..Load::default() });
        let took = |place: usize| Some(Took { job_s: [9.0, 3.0, 1.0][place], all_s: 1.0 });
        assert_eq!(choose(&plan, took, |_| true), [1]);
    }
}
