//! Two runs, or two targets of one run, held against each other: what got faster, what slower, what cannot be told, and
//! what may not be compared at all.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::alike::unlike;
use super::standing::{self, Counted, Standing};
use super::table::TableLine;
use super::versus::{self, Versus, too_few};
use super::{aa, costs};
use kvfair_core::record::{Outcome, Record};
use kvfair_stats::across::{self, Moved, TwoRuns, TwoRunsTarget};
use kvfair_stats::floor::{AaNoise, Bar};
use kvfair_stats::rank::Claim;

/// One target, or one against another: what it costs at the head of what it cost at the base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCost {
    pub target: String,
    pub seconds: CostChange,
    pub cpu: CostChange,
    /// A program of the user's was run, whose CPU is of the whole run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_program: bool,
}

/// What became of one cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CostChange {
    Less(Difference),
    More(Difference),
    NoDifference(Difference),
    NotComparable { reason: String },
}

/// How far head is from base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub versus: Versus,
    /// What a claimed ratio must exceed, as a share beyond 1.
    pub noise_floor: f64,
    /// Only the near end of the interval may be told.
    pub noisy: bool,
}

impl Difference {
    fn of(versus: Versus, bar: Bar) -> Difference {
        Difference { versus, noise_floor: bar.floor, noisy: bar.is_noisy }
    }
}

impl CostChange {
    /// "1.29x [1.23-1.34]", "at least 1.2x"; nothing where it is not comparable.
    pub(super) fn ratio(&self) -> Option<String> {
        match self {
            CostChange::Less(difference) | CostChange::More(difference) => {
                Some(versus::claimed(difference.versus, difference.noisy))
            }
            CostChange::NoDifference(difference) => Some(versus::versus(difference.versus)),
            CostChange::NotComparable { .. } => None,
        }
    }

    /// What is claimed: one of the two words, or that nothing is.
    pub(super) fn claim(&self, less: &str, more: &str) -> String {
        match self {
            CostChange::Less(_) => less.to_string(),
            CostChange::More(_) => more.to_string(),
            CostChange::NoDifference(difference) if difference.noisy => "within the noise".to_string(),
            CostChange::NoDifference(_) => "no difference found".to_string(),
            CostChange::NotComparable { .. } => String::new(),
        }
    }
}

/// Two targets of one run, block by block.
pub fn within(records: &[Record], base: &str, head: &str) -> ComparedCost {
    let counted = Counted::of(records);
    let target = format!("{head} against {base}");
    let refused = standing::standings(records).refused.map(|refused| refused.in_words());
    let seconds = match refused {
        Some(reason) => CostChange::NotComparable { reason },
        None => paired(records, &counted, Record::cost, base, head),
    };
    let of_program = records.iter().any(|record| record.job.program().is_some());
    ComparedCost { target, seconds, cpu: paired(records, &counted, costs::cpu_us_per_op, base, head), of_program }
}

fn paired(
    records: &[Record],
    counted: &Counted,
    cost: impl Fn(&Record) -> Option<f64> + Copy + Sync,
    base: &str,
    head: &str,
) -> CostChange {
    let noise = aa::noise(records, counted, cost);
    let costs = standing::by_target(records, counted, cost, |label| label == base || label == head);
    let lengths_s = standing::lengths_s(records, counted);
    paired_finding(Standing::new(costs, &lengths_s, &noise, &counted.seeds), base, head)
}

fn paired_finding(standing: Option<Standing<'_>>, base: &str, head: &str) -> CostChange {
    let Some((standing, versus)) = standing.and_then(|standing| {
        let versus = standing.versus(head, base)?;
        Some((standing, versus))
    }) else {
        return CostChange::NotComparable { reason: "one of them has no number: see the table".to_string() };
    };
    let too_few = || CostChange::NotComparable { reason: too_few(standing.blocks, "block") };
    if versus.low.is_none() {
        return too_few();
    }
    let Some(bar) = standing.bar(head, base) else {
        return CostChange::NotComparable { reason: NO_CONTROL.to_string() };
    };
    let difference = Difference::of(versus, bar);
    match (standing.is_less(head, base), standing.is_less(base, head)) {
        (true, _) => CostChange::Less(difference),
        (_, true) => CostChange::More(difference),
        _ if standing.depends_on_data(head, base) => {
            CostChange::NotComparable { reason: "which is faster depends on the data".to_string() }
        }
        _ => CostChange::NoDifference(difference),
    }
}

/// Why nothing is said without an A/A control.
const NO_CONTROL: &str = "no target was run twice (A/A control), so the noise floor is unknown";

/// All targets that both runs have, baselines too. The runs have no blocks in common, so that what the machine did in
/// between is in every ratio: where all moved the same way it is the machine that changed, and nothing is said of
/// stores.
pub fn across(base: &[Record], head: &[Record]) -> Vec<ComparedCost> {
    let labels =
        |records: &[Record]| -> BTreeSet<String> { records.iter().map(|record| record.target.label.clone()).collect() };
    let both: Vec<String> = labels(base).intersection(&labels(head)).cloned().collect();
    let reason = unlike(&base[0], &head[0]);
    let found = |cost: fn(&Record) -> Option<f64>| match &reason {
        Some(reason) => both.iter().map(|_| CostChange::NotComparable { reason: reason.clone() }).collect(),
        None => unpaired_of(base, head, &both, cost),
    };
    let (seconds, cpu) = (found(Record::cost), found(costs::cpu_us_per_op));
    let each = both.iter().zip(seconds).zip(cpu);
    let of_program = base[0].job.program().is_some();
    each.map(|((target, seconds), cpu)| ComparedCost { target: target.clone(), seconds, cpu, of_program }).collect()
}

/// Two runs by one cost.
struct Runs<'a> {
    base: Side<'a>,
    head: Side<'a>,
}

/// One of them.
struct Side<'a> {
    records: &'a [Record],
    counted: Counted,
    noise: AaNoise,
    lengths_s: BTreeMap<&'a str, f64>,
}

impl<'a> Side<'a> {
    fn of(records: &'a [Record], cost: impl Fn(&Record) -> Option<f64>) -> Side<'a> {
        let counted = Counted::of(records);
        let (noise, lengths_s) = (aa::noise(records, &counted, cost), standing::lengths_s(records, &counted));
        Side { records, counted, noise, lengths_s }
    }

    fn costs(&self, target: &str, cost: impl Fn(&Record) -> Option<f64>) -> Vec<f64> {
        let right =
            |record: &&Record| record.outcome == Outcome::Finished && record.is_right() && self.counted.has(record);
        let trials = self.records.iter().filter(right).filter(|record| record.target.label == target);
        trials.filter_map(cost).collect()
    }

    /// What a difference of the target must exceed, by this run.
    fn bar(&self, target: &str) -> Option<Bar> {
        let length_s = self.lengths_s.get(target).copied().unwrap_or_default();
        self.noise.bar(length_s, length_s)
    }
}

impl Runs<'_> {
    /// The wider of both.
    fn bar(&self, target: &str) -> Option<Bar> {
        Some(self.base.bar(target)?.higher(self.head.bar(target)?))
    }
}

fn unpaired_of(
    base: &[Record],
    head: &[Record],
    targets: &[String],
    cost: impl Fn(&Record) -> Option<f64> + Copy,
) -> Vec<CostChange> {
    let runs = Runs { base: Side::of(base, cost), head: Side::of(head, cost) };
    let targets: Vec<TwoRunsTarget> = targets
        .iter()
        .map(|target| TwoRunsTarget {
            base: runs.base.costs(target, cost),
            head: runs.head.costs(target, cost),
            bar: runs.bar(target),
            is_baseline: base.iter().any(|record| record.target.label == *target && record.target.baseline),
        })
        .collect();
    unpaired_findings(&targets)
}

fn unpaired_findings(targets: &[TwoRunsTarget]) -> Vec<CostChange> {
    let (moved, machine) = across::across(targets);
    let changed = match machine {
        TwoRuns::Same => None,
        TwoRuns::MovedBaseline => Some("a baseline moved beyond the noise floor"),
        TwoRuns::MovedAll(Claim::Faster) => Some("all targets got faster"),
        TwoRuns::MovedAll(Claim::Slower) => Some("all targets got slower"),
    };
    if let Some(changed) = changed {
        let reason = format!("{changed}: the machine has changed; compare them in one run, by --base and --head");
        return targets.iter().map(|_| CostChange::NotComparable { reason: reason.clone() }).collect();
    }
    targets.iter().zip(moved).map(|(target, moved)| unpaired_finding(target, moved)).collect()
}

fn unpaired_finding(target: &TwoRunsTarget, moved: Moved) -> CostChange {
    let Some(ratio) = moved.ratio else {
        let reason = format!("{} blocks against {} are too few", target.head.len(), target.base.len());
        return CostChange::NotComparable { reason };
    };
    let Some(bar) = target.bar else { return CostChange::NotComparable { reason: NO_CONTROL.to_string() } };
    let difference = Difference::of(ratio.into(), bar);
    match moved.claim {
        None => CostChange::NoDifference(difference),
        Some(Claim::Faster) => CostChange::Less(difference),
        Some(Claim::Slower) => CostChange::More(difference),
    }
}

/// What stands in the table, the headings first. Of a program of the user's no op is known.
pub fn lines(compared: &[ComparedCost]) -> Vec<TableLine> {
    let of_program = compared.iter().any(|one| one.of_program);
    let headings = ["target", "seconds", "", if of_program { "CPU" } else { "CPU per op" }, ""];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    for one in compared {
        let reason = [&one.seconds, &one.cpu].into_iter().filter_map(|finding| match finding {
            CostChange::NotComparable { reason } => Some(reason),
            _ => None,
        });
        let reason: Vec<&String> = reason.collect();
        if let [reason, _] = reason[..] {
            lines.push(TableLine::Reason(one.target.clone(), format!("not comparable: {reason}")));
            continue;
        }
        let [seconds, cpu] = [(&one.seconds, "faster", "slower"), (&one.cpu, "less", "more")].map(cells);
        lines.push(TableLine::Cells([vec![one.target.clone()], seconds, cpu].concat()));
        lines.extend(reason.into_iter().map(|reason| TableLine::Words(format!("  not comparable: {reason}"))));
    }
    lines
}

fn cells((change, less, more): (&CostChange, &str, &str)) -> Vec<String> {
    vec![change.ratio().unwrap_or_else(|| "-".to_string()), change.claim(less, more)]
}

#[cfg(test)]
mod tests {
    use super::super::regression::{ComparisonEnd, JudgedLimit, judge, worst};
    use super::super::table::layout;
    use super::*;
    use kvfair_stats::floor::Control;
    use kvfair_stats::paired::Interval;

    const QUIET: Bar = Bar { floor: 0.02, near_end: 0.0, is_noisy: false };
    const BASE: [f64; 6] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002];

    fn target(base: &[f64], times: f64) -> TwoRunsTarget {
        let head = base.iter().map(|cost| cost * times).collect();
        TwoRunsTarget { base: base.to_vec(), head, bar: Some(QUIET), is_baseline: false }
    }

    fn found(times: f64) -> CostChange {
        unpaired_findings(&[target(&BASE, times)]).remove(0)
    }

    fn quiet() -> AaNoise {
        AaNoise::of([Control { interval: Interval::Exact { low: 0.99, high: 1.01 }, length_s: 1.0 }], false)
    }

    fn compared(seconds: CostChange) -> [ComparedCost; 1] {
        [ComparedCost { target: "x".to_string(), cpu: seconds.clone(), seconds, of_program: false }]
    }

    #[test]
    fn what_moved_less_than_the_same_store_does_is_no_difference() {
        assert!(matches!(found(1.019), CostChange::NoDifference(_)));
        assert!(matches!(found(1.05), CostChange::More(_)));
        assert!(matches!(found(0.9), CostChange::Less(_)));
        let few = unpaired_findings(&[target(&BASE[..2], 1.0)]).remove(0);
        assert!(
            matches!(&few, CostChange::NotComparable { reason } if reason.contains("2 blocks against 2")),
            "{few:?}"
        );
    }

    /// Twelve blocks in which the head costs more with the data of two seeds, and with the third's a part of the base.
    #[test]
    fn what_depends_on_the_data_is_not_comparable() {
        let of_third = |factor: f64| {
            let cost = |block: u32| if block % 3 == 2 { factor } else { 1.5 } + f64::from(block) / 1e4;
            let head = (1..=12).map(|block| (block, cost(block))).collect();
            let base = (1..=12).map(|block| (block, 1.0 + f64::from(block * block) / 1e5)).collect();
            let seeds = (1..=12).map(|block| (block, u64::from(block % 3))).collect();
            let standing = Standing::new([("base", base), ("head", head)].into(), &BTreeMap::new(), &quiet(), &seeds);
            paired_finding(standing, "base", "head")
        };
        assert!(matches!(of_third(1.4), CostChange::More(_)));
        let denied = of_third(0.99);
        assert!(matches!(&denied, CostChange::NotComparable { reason } if reason.contains("depends on the data")));
    }

    #[test]
    fn a_limit_is_broken_kept_or_unclear() {
        let judged = |change: CostChange, limit: &str| {
            let compared = compared(change);
            let judged = judge(&compared, limit.parse().expect("a limit"));
            (judged.end, judged.in_words(|one| one.target.clone()))
        };
        let (end, words) = judged(found(1.05), "slower:3%");
        assert_eq!(end, ComparisonEnd::Regressed);
        assert!(words.starts_with("slower:3% is exceeded: x takes 1.05x ["), "{words}");
        let (end, words) = judged(found(1.0), "slower:3%");
        assert!(end == ComparisonEnd::Good && words.starts_with("slower:3% is kept: x takes 1"), "{words}");
        assert_eq!(judged(found(0.5), "slower:3%").0, ComparisonEnd::Good);
        let (end, words) = judged(found(1.0), "cpu:0.1%");
        assert!(end == ComparisonEnd::Unclear && words.contains("nor ruled out: x uses 1"), "{words}");
        assert_eq!(judge(&[], "slower:3%".parse().expect("a limit")).end, ComparisonEnd::Unclear);
    }

    /// Any limit that is exceeded decides, and only what exceeds it is named.
    #[test]
    fn the_worst_limit_decides() {
        let one = |target: &str, seconds: f64, cpu: f64| ComparedCost {
            target: target.to_string(),
            seconds: found(seconds),
            cpu: found(cpu),
            of_program: false,
        };
        let all = [one("x", 1.0, 1.2), one("y", 1.0, 1.0)];
        let judged = |limits: &[&str]| -> Vec<JudgedLimit<'_>> {
            limits.iter().map(|limit| judge(&all, limit.parse().expect("a limit"))).collect()
        };
        let both = judged(&["slower:3%", "cpu:10%"]);
        assert_eq!(worst(&both), Some(ComparisonEnd::Regressed));
        assert_eq!(both[1].decided_by, [&all[0]]);
        assert_eq!(worst(&judged(&["slower:3%", "cpu:50%"])), Some(ComparisonEnd::Good));
        assert_eq!(worst(&judged(&["slower:0.1%", "cpu:50%"])), Some(ComparisonEnd::Unclear));
        assert_eq!(worst(&judged(&["slower:0.1%", "cpu:10%"])), Some(ComparisonEnd::Regressed));
        assert_eq!(worst(&[]), None);
    }

    #[test]
    fn where_all_move_alike_it_is_the_machine() {
        let moved = unpaired_findings(&[1.1, 1.2, 1.05].map(|times| target(&BASE, times)));
        assert!(
            moved.iter().all(|one| matches!(one, CostChange::NotComparable { reason } if reason.contains("machine")))
        );
        let text = layout(&lines(&[compared(found(1.05)), compared(moved[0].clone())].concat()), 100);
        assert!(text.contains("slower") && text.contains("not comparable: all targets got slower"), "{text}");
    }
}
