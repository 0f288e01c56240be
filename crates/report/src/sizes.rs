//! A run of one job at several sizes or with several round-trip times: each is compared by itself, and one table tells
//! how times grow from one to the next.

use anyhow::Result;

use super::cells::Row;
use super::columns::{self, FieldLine, PartStep};
use super::costs::BATCH_ENGINES;
use super::run_report::{Detail, RunReport};
use super::table::{BASELINES, BATCHES, TableLine};
use super::versus::{Versus, digits, versus};
use kvfair_core::network;
use kvfair_core::record::{Record, Run};
use kvfair_core::trial::{Transport, Via};
use kvfair_core::units;
use kvfair_stats::growth;

/// A ratio that changes by less than this from the smallest to the largest size is about the same.
const SAME: f64 = 1.2;
/// So many sizes have room for intervals.
const WITH_INTERVALS: usize = 3;
/// So many changes of order are told, and so many gaps.
const TOLD: usize = 3;
/// So many stores that gain by being asked in another way.
const WAYS_TOLD: usize = 2;

/// What the parts of a run differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The job's size, in units called so: "profile".
    Size(String),
    RoundTrip,
    /// The order of n-grams.
    Order,
}

impl Axis {
    pub fn of(records: &[Record]) -> Axis {
        match records.first() {
            Some(first) if !first.run.orders.is_empty() => Axis::Order,
            Some(first) if first.run.sizes.is_empty() && !first.run.rtts_us.is_empty() => Axis::RoundTrip,
            first => Axis::Size(first.map_or_else(String::new, |first| first.stream.unit.clone())),
        }
    }

    /// What the steps are.
    pub(super) fn title(&self) -> String {
        match self {
            Axis::Size(unit) => format!("{unit}s"),
            Axis::RoundTrip => "round-trip time".to_string(),
            Axis::Order => "order".to_string(),
        }
    }

    /// "10,000", "0.2 ms".
    pub(super) fn step(&self, step: u64) -> String {
        match self {
            Axis::Size(_) => units::thousands(step),
            Axis::RoundTrip => network::in_words(step),
            Axis::Order => format!("order {step}"),
        }
    }

    /// "60 and 240 messages", "0 ms and 1 ms".
    fn named(&self, steps: &[u64], between: &str) -> String {
        let steps: Vec<String> = steps.iter().map(|&step| self.step(step)).collect();
        match self {
            Axis::Size(unit) => format!("{} {unit}s", steps.join(between)),
            Axis::RoundTrip | Axis::Order => steps.join(between),
        }
    }

    /// "10,000 profiles", "0.2 ms".
    pub fn at(&self, step: u64) -> String {
        self.named(&[step], "")
    }

    /// As CSV and JSON tell it.
    pub fn part(&self, step: u64) -> PartStep {
        match self {
            Axis::Size(_) => PartStep { units: Some(step), ..PartStep::default() },
            Axis::RoundTrip => PartStep { rtt_us: Some(step), ..PartStep::default() },
            Axis::Order => PartStep { order: Some(step), ..PartStep::default() },
        }
    }

    /// What times grow with.
    fn name(&self) -> &'static str {
        match self {
            Axis::Size(_) => "size",
            Axis::RoundTrip => "the round trip",
            Axis::Order => "the order",
        }
    }

    /// The heading of how a target grows, and what stands below it.
    fn growth_heading(&self) -> &'static str {
        match self {
            Axis::Size(_) => "grows with",
            Axis::RoundTrip => "round trips",
            Axis::Order => "grows with",
        }
    }

    fn growth(&self, one: &SizeGrowth) -> String {
        match (self, one.growth) {
            (Axis::RoundTrip, _) if !one.has_network() => "no network".to_string(),
            (Axis::Size(_) | Axis::Order, Some(exponent)) => format!("n^{exponent:.2}"),
            (Axis::RoundTrip, Some(trips)) => units::count(trips.max(0.0)),
            (_, None) => "-".to_string(),
        }
    }

    /// Of (step, seconds): the power of the size that seconds grow with, or the round trips that they wait for, one
    /// after the other.
    fn grown(&self, took: &[(f64, f64)]) -> Option<f64> {
        match self {
            Axis::Size(_) | Axis::Order => growth::power(took),
            Axis::RoundTrip => {
                growth::slope(&took.iter().map(|(rtt_us, took_s)| (rtt_us / 1e6, *took_s)).collect::<Vec<_>>())
            }
        }
    }
}

/// The parts of a run, the smallest size or shortest round trip first, each with its records; nothing where the run has
/// one part. What has no network is the same at each round-trip time, and stands in every part.
pub fn parts(records: &[Record]) -> Vec<(u64, Vec<Record>)> {
    let Some(Run { sizes, rtts_us, orders, .. }) = records.first().map(|record| &record.run) else { return Vec::new() };
    let is_of: fn(&Record, u64) -> bool = match sizes.is_empty() {
        _ if !orders.is_empty() => |record, order| u64::from(record.job.ngrams.order) == order,
        false => |record, size| record.job.units == Some(size),
        true => |record, rtt_us| record.network.is_none_or(|network| network.rtt_us == rtt_us),
    };
    let mut steps = if !orders.is_empty() {
        orders.iter().copied().map(u64::from).collect()
    } else if sizes.is_empty() && rtts_us.len() > 1 {
        rtts_us.clone()
    } else {
        sizes.clone()
    };
    steps.sort_unstable();
    let of = |step: u64| records.iter().filter(|record| is_of(record, step)).cloned().collect::<Vec<_>>();
    steps.into_iter().map(|step| (step, of(step))).filter(|(_, records)| !records.is_empty()).collect()
}

/// One target at all sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeGrowth {
    pub target: String,
    pub baseline: bool,
    /// Its seconds grow with this power of the size, or wait for so many round trips; none below two with numbers.
    pub growth: Option<f64>,
    pub sizes: Vec<SizePoint>,
}

impl SizeGrowth {
    /// What stands above it and its like in a table; nothing above stores.
    pub fn heading(&self) -> &'static str {
        match (self.baseline, self.is_batch()) {
            (_, true) => BATCHES,
            (true, false) => BASELINES,
            (false, false) => "",
        }
    }

    fn is_batch(&self) -> bool {
        self.sizes.iter().any(|at| at.row.group == BATCH_ENGINES)
    }

    fn has_network(&self) -> bool {
        self.sizes.iter().any(|at| at.row.transport != Transport::InProcess)
    }
}

/// One target at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizePoint {
    /// The size, or the round-trip time in microseconds.
    pub step: u64,
    pub row: Row,
}

impl SizePoint {
    pub fn seconds(&self) -> Option<f64> {
        self.row.numbers.as_ref().map(|numbers| numbers.seconds)
    }

    pub fn versus(&self) -> Option<Versus> {
        self.row.numbers.as_ref()?.vs_best
    }
}

/// A run at several sizes: each by itself, and how its targets grow.
pub struct SizedReport<'a> {
    pub axis: Axis,
    /// The smallest first; there is at least one.
    pub parts: Vec<(u64, RunReport<'a>)>,
    pub grown: Vec<SizeGrowth>,
}

impl<'a> SizedReport<'a> {
    /// `parts` are the records of each size, as [`parts`] sorts them.
    pub fn of(parts: &'a [(u64, Vec<Record>)], detail: Detail) -> Result<SizedReport<'a>> {
        let report = |(size, records): &'a (u64, Vec<Record>)| Ok((*size, RunReport::of(records, detail)?));
        let axis = Axis::of(&parts[0].1);
        let parts: Vec<(u64, RunReport<'a>)> = parts.iter().map(report).collect::<Result<_>>()?;
        let grown = grown(&axis, &parts);
        Ok(SizedReport { axis, parts, grown })
    }

    /// What holds of all sizes is told of the largest.
    pub fn largest(&self) -> &RunReport<'a> {
        &self.parts[self.parts.len() - 1].1
    }
}

/// All targets, in the order that they have at the largest size.
fn grown(axis: &Axis, parts: &[(u64, RunReport<'_>)]) -> Vec<SizeGrowth> {
    let mut all: Vec<SizeGrowth> = Vec::new();
    for row in parts.iter().rev().flat_map(|(_, part)| &part.rows) {
        if all.iter().any(|one| one.target == row.target) {
            continue;
        }
        let at = |(step, part): &(u64, RunReport<'_>)| {
            Some(SizePoint { step: *step, row: part.rows.iter().find(|other| other.target == row.target)?.clone() })
        };
        let sizes: Vec<SizePoint> = parts.iter().filter_map(at).collect();
        let took: Vec<(f64, f64)> = sizes.iter().filter_map(|at| Some((at.step as f64, at.seconds()?))).collect();
        let (target, baseline) = (row.target.clone(), row.baseline);
        all.push(SizeGrowth { target, baseline, growth: axis.grown(&took), sizes });
    }
    all.sort_by_key(|one| (one.baseline, one.is_batch()));
    all
}

/// The table: seconds and the ratio to the best at each size, and how they grow.
pub fn lines(report: &SizedReport<'_>, wide: bool) -> Vec<TableLine> {
    let (axis, sizes) = (&report.axis, report.parts.iter().map(|(size, _)| *size).collect::<Vec<_>>());
    let headings = sizes.iter().flat_map(|&size| [axis.step(size), "vs best".to_string()]);
    let mut lines = vec![TableLine::Cells(
        std::iter::once("target".to_string()).chain(headings).chain([axis.growth_heading().to_string()]).collect(),
    )];
    let mut reasons = Vec::new();
    let mut above = "";
    for one in &report.grown {
        if one.heading() != above {
            above = one.heading();
            lines.push(TableLine::Words(above.to_string()));
        }
        let mut cells = vec![one.target.clone()];
        for size in &sizes {
            let at = one.sizes.iter().find(|at| at.step == *size);
            let numbers = at.and_then(|at| at.row.numbers.as_ref());
            let ratio = numbers.and_then(|numbers| numbers.vs_best).map_or_else(String::new, |ratio| {
                if wide || sizes.len() <= WITH_INTERVALS {
                    versus(ratio)
                } else {
                    format!("{}x", digits(ratio.ratio, 1))
                }
            });
            cells.push(numbers.map_or_else(|| "-".to_string(), |numbers| units::seconds(numbers.seconds)));
            cells.push(ratio);
            let silent = at.filter(|at| !at.row.status.has_numbers());
            reasons.extend(silent.map(|at| {
                let why = format!("at {}: {}", axis.step(*size), at.row.status.in_words());
                TableLine::Reason(one.target.clone(), why)
            }));
        }
        cells.push(axis.growth(one));
        lines.push(TableLine::Cells(cells));
    }
    lines.extend(reasons);
    lines
}

/// A line for each target and size.
pub fn fields_of(report: &SizedReport<'_>) -> Vec<FieldLine> {
    let mut lines = Vec::new();
    for (size, part) in &report.parts {
        let PartStep { units, order, rtt_us } = report.axis.part(*size);
        let growth = |row: &Row| report.grown.iter().find(|one| one.target == row.target)?.growth;
        lines.extend(columns::lines(&part.rows, &part.standings).into_iter().map(|line| FieldLine {
            units,
            order,
            rtt_us,
            growth_exponent: units.and_then(|_| growth(&line.row)),
            round_trips: line.row.rtt_us.and_then(|_| growth(&line.row)),
            ..line
        }));
    }
    lines
}

/// Whose order changes between sizes, what asking in another way gains over a network, and how the gaps to the best
/// change. Each size is compared by itself.
pub fn sentences(report: &SizedReport<'_>) -> Vec<String> {
    let (axis, parts) = (&report.axis, report.parts.as_slice());
    let ranked: Vec<&SizeGrowth> = report.grown.iter().filter(|one| !one.baseline && one.growth.is_some()).collect();
    let (Some((smallest, _)), Some((largest, _))) = (parts.first(), parts.last()) else { return Vec::new() };
    if ranked.len() < 2 {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for (place, one) in ranked.iter().enumerate() {
        changes.extend(ranked[place + 1..].iter().filter_map(|other| change(axis, one, other, parts)));
    }
    // Claimed ones first.
    changes.sort_by_key(|(claimed, _)| !claimed);
    let more = changes.len().saturating_sub(TOLD);
    let mut told: Vec<String> = changes.into_iter().take(TOLD).map(|(_, words)| words).collect();
    if told.is_empty() {
        let steps = axis.named(&[*smallest, *largest], " to ");
        told.push(format!("By the medians the order of targets is the same from {steps}"));
    }
    if more > 0 {
        told.push(format!("{more} other pairs change places"));
    }
    if *axis == Axis::RoundTrip {
        told.extend(ways(axis, &ranked, parts));
    }
    told.extend(gaps(axis, &ranked));
    told.into_iter().map(|told| format!("{told}.")).collect()
}

/// The pair whose order is another one at another size, if it is, and whether both orders are claimed.
fn change(axis: &Axis, one: &SizeGrowth, other: &SizeGrowth, parts: &[(u64, RunReport<'_>)]) -> Option<(bool, String)> {
    let group = |grown: &SizeGrowth| grown.sizes.first().map(|at| at.row.group.clone());
    if group(one) != group(other) {
        return None;
    }
    let leads = |faster: &SizeGrowth, slower: &SizeGrowth| {
        let is_claimed = |(size, part): &&(u64, RunReport<'_>)| {
            let standing = group(one).and_then(|group| part.standings.groups.get(&group));
            let may_rank = part.standings.may_rank() && faster.sizes.iter().any(|at| at.step == *size);
            may_rank && standing.is_some_and(|standing| standing.is_less(&faster.target, &slower.target))
        };
        parts.iter().filter(is_claimed).map(|(size, _)| *size).collect::<Vec<u64>>()
    };
    let (first, second) = (leads(one, other), leads(other, one));
    if let (false, false) = (first.is_empty(), second.is_empty()) {
        let second: Vec<String> = second.iter().map(|&step| axis.step(step)).collect();
        let words = format!(
            "{} is faster than {} at {}, and slower at {}",
            one.target,
            other.target,
            axis.named(&first, " and "),
            second.join(" and ")
        );
        return Some((true, words));
    }
    let took = |at: &SizePoint| other.sizes.iter().find(|beside| beside.step == at.step)?.seconds();
    let ratios: Vec<(u64, f64)> =
        one.sizes.iter().filter_map(|at| Some((at.step, at.seconds()? / took(at)?))).collect();
    let ((low, first), (high, last)) = (ratios.first()?, ratios.last()?);
    let words = format!(
        "{} and {} change places between {} (seen, not claimed)",
        one.target,
        other.target,
        axis.named(&[*low, *high], " and ")
    );
    ((first - 1.0) * (last - 1.0) < 0.0).then_some((false, words))
}

/// What a store gains that is asked in another way than one by one, over the longest round trip and over the shortest:
/// the largest gains first.
fn ways(axis: &Axis, ranked: &[&SizeGrowth], parts: &[(u64, RunReport<'_>)]) -> Vec<String> {
    let (Some((shortest, near)), Some((longest, far))) = (parts.first(), parts.last()) else {
        return Vec::new();
    };
    let mut gains: Vec<(f64, String)> = Vec::new();
    let served: Vec<&&SizeGrowth> = ranked.iter().filter(|one| one.has_network()).collect();
    for (base, other) in served.iter().flat_map(|base| served.iter().map(move |other| (base, other))) {
        let (base, other) = (&base.target, &other.target);
        let way = other.strip_prefix(base.as_str()).and_then(|way| way.strip_prefix(' '));
        if way.is_none_or(|way| way.parse::<Via>().is_err()) {
            continue;
        }
        let gain = |part: &RunReport<'_>| {
            let both = part.standings.by(Record::cost, |label| label == base || label == other)?;
            let is_claimed = part.standings.may_rank() && both.is_less(other, base);
            Some((both.versus(base, other)?.ratio, both.in_words(base, other)?, is_claimed))
        };
        let (Some((ratio, words, is_claimed)), Some((_, near, _))) = (gain(far), gain(near)) else { continue };
        let seen = if is_claimed { "" } else { " (seen, not claimed)" };
        let (far, shortest) = (axis.step(*longest), axis.step(*shortest));
        let words =
            format!("At {far} {base} one by one takes {words} as long as {other}, and {near} at {shortest}{seen}");
        gains.push((ratio, words));
    }
    gains.sort_by(|one, other| other.0.total_cmp(&one.0));
    gains.into_iter().take(WAYS_TOLD).map(|(_, words)| words).collect()
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
fn gaps(axis: &Axis, ranked: &[&SizeGrowth]) -> Vec<String> {
    let mut gaps: Vec<(f64, String)> = Vec::new();
    for one in ranked {
        let ratios: Vec<(u64, Versus)> = one.sizes.iter().filter_map(|at| Some((at.step, at.versus()?))).collect();
        let (Some((_, first)), Some((_, last))) = (ratios.first(), ratios.last()) else { continue };
        let change = (last.ratio / first.ratio).max(first.ratio / last.ratio);
        if change > SAME && first.ratio.min(last.ratio) > 1.0 {
            let way = if last.ratio > first.ratio { "grows" } else { "shrinks" };
            let each: Vec<String> =
                ratios.iter().map(|(size, ratio)| format!("{} at {}", versus(*ratio), axis.step(*size))).collect();
            let seen = if is_apart(first, last) { "" } else { " (seen, not claimed)" };
            let words =
                format!("The gap of {} to the best {way} with {}: {}{seen}", one.target, axis.name(), each.join(", "));
            gaps.push((change, words));
        }
    }
    gaps.sort_by(|one, other| other.0.total_cmp(&one.0));
    gaps.into_iter().take(if *axis == Axis::RoundTrip { 1 } else { TOLD }).map(|(_, words)| words).collect()
}
