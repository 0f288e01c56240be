//! A run of one job at several sizes: each size is compared by itself, and one table tells how times grow from size to
//! size.

use super::cells::Row;
use super::columns::{self, FieldLine};
use super::standing::Standings;
use super::table::TableLine;
use super::versus::Versus;
use super::versus::versus;
use crate::model::record::Record;
use crate::model::units;
use crate::stats::growth;

/// A ratio that changes by less than this from the smallest to the largest size is about the same.
const SAME: f64 = 1.2;
/// So many sizes have room for intervals.
const WITH_INTERVALS: usize = 3;
/// So many changes of order are told, and so many gaps.
const TOLD: usize = 3;

/// The sizes of a run, the smallest first, each with its records; nothing where the run has one size.
pub fn parts(records: &[Record]) -> Vec<(u64, Vec<Record>)> {
    let mut sizes = records.first().map_or_else(Vec::new, |record| record.run.sizes.clone());
    sizes.sort_unstable();
    let of = |size: u64| records.iter().filter(|record| record.job.units == Some(size)).cloned().collect::<Vec<_>>();
    sizes.into_iter().map(|size| (size, of(size))).filter(|(_, records)| !records.is_empty()).collect()
}

/// One target at all sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeGrowth {
    pub target: String,
    pub baseline: bool,
    /// Its seconds grow with this power of the size; none below two sizes with numbers.
    pub exponent: Option<f64>,
    pub sizes: Vec<SizePoint>,
}

/// One target at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizePoint {
    pub units: u64,
    pub row: Row,
}

impl SizePoint {
    fn seconds(&self) -> Option<f64> {
        self.row.numbers.as_ref().map(|numbers| numbers.seconds)
    }

    fn versus(&self) -> Option<Versus> {
        self.row.numbers.as_ref()?.vs_best
    }
}

/// All targets, in the order that they have at the largest size.
pub fn grown(sizes: &[(u64, Vec<Row>)]) -> Vec<SizeGrowth> {
    let mut all: Vec<SizeGrowth> = Vec::new();
    for row in sizes.iter().rev().flat_map(|(_, rows)| rows) {
        if all.iter().any(|one| one.target == row.target) {
            continue;
        }
        let at = |(units, rows): &(u64, Vec<Row>)| {
            Some(SizePoint { units: *units, row: rows.iter().find(|other| other.target == row.target)?.clone() })
        };
        let sizes: Vec<SizePoint> = sizes.iter().filter_map(at).collect();
        let took: Vec<(f64, f64)> = sizes.iter().filter_map(|at| Some((at.units as f64, at.seconds()?))).collect();
        let (target, baseline) = (row.target.clone(), row.baseline);
        all.push(SizeGrowth { target, baseline, exponent: growth::power(&took), sizes });
    }
    all.sort_by_key(|one| one.baseline);
    all
}

/// The table: seconds and the ratio to the best at each size, and the exponent.
pub fn lines(all: &[SizeGrowth], sizes: &[u64], wide: bool) -> Vec<TableLine> {
    let headings = sizes.iter().flat_map(|&size| [units::thousands(size), "vs best".to_string()]);
    let mut lines = vec![TableLine::Cells(
        std::iter::once("target".to_string()).chain(headings).chain([String::from("grows with")]).collect(),
    )];
    let mut reasons = Vec::new();
    let mut baselines = false;
    for one in all {
        if one.baseline && !baselines {
            lines.push(TableLine::Words("baselines: what the job costs without a store around it".to_string()));
            baselines = true;
        }
        let mut cells = vec![one.target.clone()];
        for size in sizes {
            let at = one.sizes.iter().find(|at| at.units == *size);
            let numbers = at.and_then(|at| at.row.numbers.as_ref());
            let ratio = numbers.and_then(|numbers| numbers.vs_best).map_or_else(String::new, |ratio| {
                if wide || sizes.len() <= WITH_INTERVALS { versus(ratio) } else { format!("{:.1}x", ratio.ratio) }
            });
            cells.push(numbers.map_or_else(|| "-".to_string(), |numbers| units::seconds(numbers.seconds)));
            cells.push(ratio);
            let silent = at.filter(|at| !at.row.status.has_numbers());
            reasons.extend(silent.map(|at| {
                let why = format!("at {}: {}", units::thousands(*size), at.row.status.in_words());
                TableLine::Reason(one.target.clone(), why)
            }));
        }
        cells.push(one.exponent.map_or_else(|| "-".to_string(), |exponent| format!("n^{exponent:.2}")));
        lines.push(TableLine::Cells(cells));
    }
    lines.extend(reasons);
    lines
}

/// A line for each target and size; `all` is what [`grown`] made of these sizes.
pub fn fields_of(all: &[SizeGrowth], sizes: &[(u64, Vec<Row>)], standings: &[(u64, Standings<'_>)]) -> Vec<FieldLine> {
    let mut lines = Vec::new();
    for ((size, rows), (_, standings)) in sizes.iter().zip(standings) {
        let exponent = |row: &Row| all.iter().find(|one| one.target == row.target)?.exponent;
        lines.extend(columns::lines(rows, standings).into_iter().map(|line| FieldLine {
            units: Some(*size),
            growth_exponent: exponent(&line.row),
            ..line
        }));
    }
    lines
}

/// Whose order changes between sizes, and how the gaps to the best do. Each size is compared by itself: `standings` are
/// theirs.
pub fn sentence(all: &[SizeGrowth], standings: &[(u64, Standings<'_>)], unit: &str) -> String {
    let ranked: Vec<&SizeGrowth> = all.iter().filter(|one| !one.baseline && one.exponent.is_some()).collect();
    let (Some((smallest, _)), Some((largest, _))) = (standings.first(), standings.last()) else { return String::new() };
    if ranked.len() < 2 {
        return String::new();
    }
    let mut changes = Vec::new();
    for (place, one) in ranked.iter().enumerate() {
        changes.extend(ranked[place + 1..].iter().filter_map(|other| change(one, other, standings, unit)));
    }
    // Claimed ones first.
    changes.sort_by_key(|(claimed, _)| !claimed);
    let more = changes.len().saturating_sub(TOLD);
    let mut told: Vec<String> = changes.into_iter().take(TOLD).map(|(_, words)| words).collect();
    if told.is_empty() {
        let (low, high) = (units::thousands(*smallest), units::thousands(*largest));
        told.push(format!("By the medians the order of targets is the same from {low} to {high} {unit}s"));
    }
    if more > 0 {
        told.push(format!("{more} other pairs change places"));
    }
    told.extend(gaps(&ranked));
    format!("{}.", told.join(". "))
}

/// The pair whose order is another one at another size, if it is, and whether both orders are claimed.
fn change(
    one: &SizeGrowth,
    other: &SizeGrowth,
    standings: &[(u64, Standings<'_>)],
    unit: &str,
) -> Option<(bool, String)> {
    let group = |grown: &SizeGrowth| grown.sizes.first().map(|at| at.row.group.clone());
    if group(one) != group(other) {
        return None;
    }
    let leads = |faster: &SizeGrowth, slower: &SizeGrowth| {
        let is_claimed = |(size, standings): &&(u64, Standings<'_>)| {
            let standing = group(one).and_then(|group| standings.groups.get(&group));
            let may_rank = standings.may_rank() && faster.sizes.iter().any(|at| at.units == *size);
            may_rank && standing.is_some_and(|standing| standing.is_less(&faster.target, &slower.target))
        };
        standings.iter().filter(is_claimed).map(|(size, _)| *size).collect::<Vec<u64>>()
    };
    let thousands = |sizes: &[u64]| sizes.iter().map(|&size| units::thousands(size)).collect::<Vec<_>>().join(" and ");
    let (first, second) = (leads(one, other), leads(other, one));
    if let (false, false) = (first.is_empty(), second.is_empty()) {
        let words = format!(
            "{} is faster than {} at {} {unit}s, and slower at {}",
            one.target,
            other.target,
            thousands(&first),
            thousands(&second)
        );
        return Some((true, words));
    }
    let took = |at: &SizePoint| other.sizes.iter().find(|beside| beside.units == at.units)?.seconds();
    let ratios: Vec<(u64, f64)> =
        one.sizes.iter().filter_map(|at| Some((at.units, at.seconds()? / took(at)?))).collect();
    let ((low, first), (high, last)) = (ratios.first()?, ratios.last()?);
    let words = format!(
        "{} and {} change places between {} and {} {unit}s (seen, not claimed)",
        one.target,
        other.target,
        units::thousands(*low),
        units::thousands(*high)
    );
    ((first - 1.0) * (last - 1.0) < 0.0).then_some((false, words))
}

/// Whether the intervals of two ratios have nothing in common, and are of blocks enough to be intervals.
fn is_apart(one: &Versus, other: &Versus) -> bool {
    let ends = |versus: &Versus| versus.low.zip(versus.high).filter(|_| !versus.preliminary);
    match (ends(one), ends(other)) {
        (Some((one_low, one_high)), Some((low, high))) => one_high < low || high < one_low,
        _ => false,
    }
}

/// How the ratios to the best change from the smallest to the largest size, those that change most first.
fn gaps(ranked: &[&SizeGrowth]) -> Vec<String> {
    let mut gaps: Vec<(f64, String)> = Vec::new();
    for one in ranked {
        let ratios: Vec<(u64, Versus)> = one.sizes.iter().filter_map(|at| Some((at.units, at.versus()?))).collect();
        let (Some((_, first)), Some((_, last))) = (ratios.first(), ratios.last()) else { continue };
        let change = (last.ratio / first.ratio).max(first.ratio / last.ratio);
        if change > SAME && first.ratio.min(last.ratio) > 1.0 {
            let way = if last.ratio > first.ratio { "grows" } else { "shrinks" };
            let each: Vec<String> = ratios
                .iter()
                .map(|(size, ratio)| format!("{} at {}", versus(*ratio), units::thousands(*size)))
                .collect();
            let seen = if is_apart(first, last) { "" } else { " (seen, not claimed)" };
            let words = format!("The gap of {} to the best {way} with size: {}{seen}", one.target, each.join(", "));
            gaps.push((change, words));
        }
    }
    gaps.sort_by(|one, other| other.0.total_cmp(&one.0));
    gaps.into_iter().take(TOLD).map(|(_, words)| words).collect()
}
