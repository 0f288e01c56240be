//! Two runs, or two targets of one run, held against each other: what got faster, what slower, what cannot be told, and
//! what may not be compared at all.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use super::alike::unlike;
use super::cells;
use super::standing::{self, Counted, Standing, Versus};
use super::table::{Line, WIDTH, layout, versus};
use crate::stats::holm;
use crate::stats::rank::{LEAST_DIFFERENCE, LEVEL};
use crate::stats::unpaired;
use crate::words::record::{Outcome, Record};

/// One target, or one against another: what it costs at the head of what it cost at the base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    pub target: String,
    pub seconds: Finding,
    pub cpu: Finding,
    /// A program of the user's was run, whose CPU is of the whole run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_program: bool,
}

/// What became of one cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    Less { versus: Versus },
    More { versus: Versus },
    NoDifference { versus: Versus },
    NotComparable { reason: String },
}

/// Which regressions fail a comparison: `slower:3%` of seconds, `cpu:3%` of CPU an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub of_cpu: bool,
    pub share: f64,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no limit: slower:3% or cpu:3%");
        let (what, share) = text.split_once(':').ok_or_else(wrong)?;
        let percent: f64 = share.strip_suffix('%').ok_or_else(wrong)?.trim().parse().map_err(|_| wrong())?;
        match what {
            "slower" | "cpu" if (0.0..=1000.0).contains(&percent) => {
                Ok(Limit { of_cpu: what == "cpu", share: percent / 100.0 })
            }
            _ => Err(wrong()),
        }
    }
}

/// How a comparison ends for whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judged {
    Good,
    /// A regression of that size cannot be ruled out, or nothing could be compared.
    Unclear,
    Regressed,
}

/// The worst of all that was compared.
pub fn judge(compared: &[Compared], limit: Limit) -> Judged {
    let one = |compared: &Compared| match if limit.of_cpu { &compared.cpu } else { &compared.seconds } {
        Finding::More { versus } if versus.ratio - 1.0 >= limit.share => Judged::Regressed,
        Finding::Less { .. } => Judged::Good,
        Finding::More { versus } | Finding::NoDifference { versus } => {
            let ruled_out = versus.high.is_some_and(|high| high - 1.0 < limit.share);
            if ruled_out { Judged::Good } else { Judged::Unclear }
        }
        Finding::NotComparable { .. } => Judged::Unclear,
    };
    compared.iter().map(one).max().unwrap_or(Judged::Unclear)
}

/// Two targets of one run, block by block.
pub fn within(records: &[Record], base: &str, head: &str) -> Compared {
    let counted = Counted::of(records);
    let target = format!("{head} against {base}");
    let refused = standing::standings(records).refused.map(|refused| refused.in_words());
    let seconds = match refused {
        Some(reason) => Finding::NotComparable { reason },
        None => paired(records, &counted, Record::cost, base, head),
    };
    let of_program = records.iter().any(|record| record.job.program().is_some());
    Compared { target, seconds, cpu: paired(records, &counted, cells::cpu_us_per_op, base, head), of_program }
}

fn paired(
    records: &[Record],
    counted: &Counted,
    cost: impl Fn(&Record) -> Option<f64> + Copy + Sync,
    base: &str,
    head: &str,
) -> Finding {
    let floor = standing::twin(records, counted, cost).map_or(0.0, |twin| twin.half_width());
    let costs = standing::costs(records, counted, cost, |label| label == base || label == head);
    paired_finding(Standing::new(costs, floor, &counted.seeds), base, head)
}

fn paired_finding(standing: Option<Standing<'_>>, base: &str, head: &str) -> Finding {
    let Some((standing, versus)) = standing.and_then(|standing| {
        let versus = standing.versus(head, base)?;
        Some((standing, versus))
    }) else {
        return Finding::NotComparable { reason: "one of them has no number: see the table".to_string() };
    };
    match (standing.is_less(head, base), standing.is_less(base, head)) {
        (true, _) => Finding::Less { versus },
        (_, true) => Finding::More { versus },
        _ if standing.depends_on_data(head, base) => {
            Finding::NotComparable { reason: "which is faster depends on the data".to_string() }
        }
        _ if versus.low.is_none() => {
            Finding::NotComparable { reason: format!("{} blocks are too few", standing.blocks) }
        }
        _ => Finding::NoDifference { versus },
    }
}

/// All targets that both runs have, controls too. The runs have no blocks in common, so that what the machine did in
/// between is in every ratio: where all moved the same way it is the machine that changed, and nothing is said of
/// stores.
pub fn across(base: &[Record], head: &[Record]) -> Vec<Compared> {
    let labels =
        |records: &[Record]| -> BTreeSet<String> { records.iter().map(|record| record.target.label.clone()).collect() };
    let both: Vec<String> = labels(base).intersection(&labels(head)).cloned().collect();
    let reason = unlike(&base[0], &head[0]);
    let found = |cost: fn(&Record) -> Option<f64>| match &reason {
        Some(reason) => both.iter().map(|_| Finding::NotComparable { reason: reason.clone() }).collect(),
        None => with_the_machine(unpaired_of(base, head, &both, cost)),
    };
    let (seconds, cpu) = (found(Record::cost), found(cells::cpu_us_per_op));
    let each = both.iter().zip(seconds).zip(cpu);
    let of_program = base[0].job.program().is_some();
    each.map(|((target, seconds), cpu)| Compared { target: target.clone(), seconds, cpu, of_program }).collect()
}

fn unpaired_of(
    base: &[Record],
    head: &[Record],
    targets: &[String],
    cost: impl Fn(&Record) -> Option<f64> + Copy + Sync,
) -> Vec<Finding> {
    let (before, after) = (Counted::of(base), Counted::of(head));
    let floor = [(base, &before), (head, &after)]
        .into_iter()
        .filter_map(|(records, counted)| standing::twin(records, counted, cost))
        .map(|twin| twin.half_width())
        .fold(LEAST_DIFFERENCE, f64::max);
    let of = |records: &[Record], counted: &Counted, target: &str| -> Vec<f64> {
        let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right() && counted.has(record);
        let trials = records.iter().filter(right).filter(|record| record.target.label == target);
        trials.filter_map(cost).collect()
    };
    let samples: Vec<(Vec<f64>, Vec<f64>)> =
        targets.iter().map(|target| (of(base, &before, target), of(head, &after, target))).collect();
    let p_values: Vec<f64> = samples.iter().map(|(base, head)| unpaired::p_value(head, base)).collect();
    let adjusted = holm::adjusted(&p_values);
    samples.iter().zip(adjusted).map(|((base, head), p)| unpaired_finding(base, head, p, floor)).collect()
}

fn unpaired_finding(base: &[f64], head: &[f64], p: f64, floor: f64) -> Finding {
    let Some(versus) = unpaired::ratio(head, base).map(Versus::from).filter(|versus| versus.low.is_some()) else {
        let reason = format!("{} blocks against {} are too few", head.len(), base.len());
        return Finding::NotComparable { reason };
    };
    let claimed = p <= LEVEL && (versus.ratio - 1.0).abs() > floor;
    match versus.ratio < 1.0 {
        _ if !claimed => Finding::NoDifference { versus },
        true => Finding::Less { versus },
        false => Finding::More { versus },
    }
}

/// So many at least, and all of them moved the same way: the machine.
const MOVED_TOGETHER: usize = 3;

fn with_the_machine(findings: Vec<Finding>) -> Vec<Finding> {
    let all = |is: fn(&Finding) -> bool| findings.len() >= MOVED_TOGETHER && findings.iter().all(is);
    let (less, more) = (all(|one| matches!(one, Finding::Less { .. })), all(|one| matches!(one, Finding::More { .. })));
    if !less && !more {
        return findings;
    }
    let way = if less { "faster" } else { "slower" };
    let reason =
        format!("all targets got {way}: the machine has changed; compare them in one run, by --base and --head");
    findings.iter().map(|_| Finding::NotComparable { reason: reason.clone() }).collect()
}

/// A line for each, aligned; what is not comparable says why. Of a program of the user's no op is known.
pub fn table(compared: &[Compared]) -> String {
    let of_program = compared.iter().any(|one| one.of_program);
    let headings = ["target", "seconds", "", if of_program { "CPU" } else { "CPU an op" }, ""];
    let mut lines = vec![Line::Cells(headings.map(str::to_string).to_vec())];
    for one in compared {
        let reason = [&one.seconds, &one.cpu].into_iter().filter_map(|finding| match finding {
            Finding::NotComparable { reason } => Some(reason),
            _ => None,
        });
        let reason: Vec<&String> = reason.collect();
        if let [reason, _] = reason[..] {
            lines.push(Line::Reason(one.target.clone(), format!("not comparable: {reason}")));
            continue;
        }
        let [seconds, cpu] = [(&one.seconds, "faster", "slower"), (&one.cpu, "less", "more")].map(cells);
        lines.push(Line::Cells([vec![one.target.clone()], seconds, cpu].concat()));
        lines.extend(reason.into_iter().map(|reason| Line::Words(format!("  not comparable: {reason}"))));
    }
    layout(&lines, WIDTH)
}

fn cells((finding, less, more): (&Finding, &str, &str)) -> Vec<String> {
    match finding {
        Finding::Less { versus: ratio } => vec![versus(*ratio), less.to_string()],
        Finding::More { versus: ratio } => vec![versus(*ratio), more.to_string()],
        Finding::NoDifference { versus: ratio } => vec![versus(*ratio), "no difference found".to_string()],
        Finding::NotComparable { .. } => vec!["-".to_string(), String::new()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 6] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002];

    fn found(times: f64) -> Finding {
        let head = BASE.map(|cost| cost * times);
        unpaired_finding(&BASE, &head, unpaired::p_value(&head, &BASE), 0.02)
    }

    fn compared(seconds: Finding) -> [Compared; 1] {
        [Compared { target: "x".to_string(), cpu: seconds.clone(), seconds, of_program: false }]
    }

    #[test]
    fn what_moved_less_than_the_same_store_does_is_no_difference() {
        assert!(matches!(found(1.019), Finding::NoDifference { .. }));
        assert!(matches!(found(1.05), Finding::More { .. }));
        assert!(matches!(found(0.9), Finding::Less { .. }));
        let few = unpaired_finding(&BASE[..2], &BASE[..2], 0.0, 0.02);
        assert!(matches!(&few, Finding::NotComparable { reason } if reason.contains("2 blocks against 2")), "{few:?}");
    }

    /// Twelve blocks in which the head costs more with the data of two seeds, and with the third's a part of the base.
    #[test]
    fn what_depends_on_the_data_is_not_comparable() {
        let of_third = |factor: f64| {
            let cost = |block: u32| if block % 3 == 2 { factor } else { 1.5 } + f64::from(block) / 1e4;
            let head = (1..=12).map(|block| (block, cost(block))).collect();
            let base = (1..=12).map(|block| (block, 1.0 + f64::from(block * block) / 1e5)).collect();
            let seeds = (1..=12).map(|block| (block, u64::from(block % 3))).collect();
            let standing = Standing::new([("base", base), ("head", head)].into(), 0.0, &seeds);
            paired_finding(standing, "base", "head")
        };
        assert!(matches!(of_third(1.4), Finding::More { .. }));
        let denied = of_third(0.99);
        assert!(matches!(&denied, Finding::NotComparable { reason } if reason.contains("depends on the data")));
    }

    #[test]
    fn a_limit_is_broken_kept_or_unclear() {
        let limit: Limit = "slower:3%".parse().unwrap();
        assert_eq!(judge(&compared(found(1.05)), limit), Judged::Regressed);
        assert_eq!(judge(&compared(found(1.0)), limit), Judged::Good);
        assert_eq!(judge(&compared(found(0.5)), limit), Judged::Good);
        assert_eq!(judge(&compared(found(1.0)), "cpu:0.1%".parse().unwrap()), Judged::Unclear);
        assert_eq!(judge(&[], limit), Judged::Unclear);
        for wrong in ["slower", "slower:3", "faster:3%", "slower:-1%", "cpu:x%", ""] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn where_all_move_alike_it_is_the_machine() {
        let moved = with_the_machine(vec![found(1.1), found(1.2), found(1.05)]);
        assert!(moved.iter().all(|one| matches!(one, Finding::NotComparable { reason } if reason.contains("machine"))));
        let one = vec![found(1.1), found(1.0), found(1.05)];
        assert_eq!(with_the_machine(one.clone()), one);
        let text = table(&[compared(found(1.05)), compared(moved[0].clone())].concat());
        assert!(text.contains("slower") && text.contains("not comparable: all targets got slower"), "{text}");
    }
}
