//! What a picture of ratios shows: each target beside the best one of its group, in times. Numbers only; `picture`
//! draws them.

use std::collections::BTreeMap;

use super::PagePart;
use crate::model::record::Record;
use crate::model::trial::Transport;
use crate::model::units;
use crate::report::cells::{Numbers, Row, Status, least_cpu};
use crate::report::costs::BATCH_ENGINES;
use crate::report::standing::{Standing, by_target};
use crate::report::versus::{Versus, at_least, versus};
use crate::report::{aa, columns, costs, table};
use crate::stats::sample::Sample;

/// What the axis of a picture counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// Times one target.
    Times,
    /// Where panels have no target in common: one ratio in two panels would be two times.
    Seconds,
}

/// Rows of ratios on one axis.
pub struct RatioPicture {
    /// "seconds", "cpu", "memory" or "disk", as the address names it.
    pub measure: &'static str,
    /// What is compared.
    pub title: String,
    /// What the axis counts, and of which target: the words of the heading's claims.
    pub axis: String,
    pub unit: AxisUnit,
    /// What is counted, where it needs words.
    pub about: &'static str,
    pub panels: Vec<RatioPanel>,
    /// Between which ratios the same store came out from itself when it was run twice.
    pub band: Option<(f64, f64)>,
    /// Only the near ends of intervals are claimed.
    pub is_noisy: bool,
    /// There is one block: nothing has an interval.
    pub is_seen_once: bool,
}

impl RatioPicture {
    /// Some interval is of too few blocks to be exact.
    pub fn is_rough(&self) -> bool {
        let rough = |row: &RatioRow| matches!(&row.place, RatioPlace::At { versus, .. } if versus.preliminary);
        self.panels.iter().flat_map(|panel| &panel.rows).any(rough)
    }
}

/// Targets that are compared with each other.
pub struct RatioPanel {
    pub title: String,
    pub rows: Vec<RatioRow>,
}

pub struct RatioRow {
    pub target: String,
    /// "embedded", "server, TCP"; empty for a program.
    pub kind: &'static str,
    /// The ratio in words: what is claimed where anything is, as in the heading. Below it the median itself, with its
    /// unit: "0.89 s"; before that, where the claim is "at least", the ratio at the dot. Empty where there is none.
    pub numbers: [String; 2],
    pub rank: Option<(usize, usize)>,
    pub is_baseline: bool,
    pub place: RatioPlace,
}

/// Where a target stands on the axis.
pub enum RatioPlace {
    At {
        /// On an axis of seconds these, without an interval.
        versus: Versus,
        /// The ratio of each block, or its seconds.
        blocks: Vec<f64>,
    },
    /// It was cut off at this ratio, or these seconds.
    AtLeast(f64),
    /// It has no number, and why.
    Nowhere(String),
}

/// A cost of each block, by target.
type BlockCosts<'a> = BTreeMap<&'a str, BTreeMap<u32, f64>>;

/// By seconds, as the table ranks. Nothing where no target has any: at rates all take the same time.
pub fn of_seconds(part: &PagePart<'_>) -> Option<RatioPicture> {
    let (rows, standings) = (&part.report.rows, &part.report.standings);
    let costs = by_target(part.report.records, &standings.counted, Record::cost, |_| true);
    let ranked: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    let first = *ranked.first().filter(|row| costs.contains_key(row.target.as_str()))?;
    let groups: Vec<&[&Row]> = ranked.chunk_by(|one, next| one.group == next.group).collect();
    let unit = if groups.len() == 1 { AxisUnit::Times } else { AxisUnit::Seconds };
    let of_row = |row: &Row, best: &Row, standing| of_row(row, best, &costs, standing, unit);
    let mut panels: Vec<RatioPanel> = groups
        .iter()
        .map(|group| {
            let cut_off = rows.iter().filter(|row| row.group == group[0].group && !row.baseline);
            let title = match (groups.len(), group[0].group.as_str()) {
                (1, "") => String::new(),
                (_, "") => "one value at a time, without a cache".to_string(),
                (count, name) => table::of_group(name, count == 1),
            };
            let of_group = group.iter().copied().chain(cut_off.filter(|row| is_cut_off(row)));
            let standing = standings.groups.get(&group[0].group);
            RatioPanel { title, rows: of_group.filter_map(|row| of_row(row, group[0], standing)).collect() }
        })
        .collect();
    let no_stores = rows.iter().filter(|row| row.baseline && (row.numbers.is_some() || is_cut_off(row)));
    panels.extend(apart(no_stores.filter_map(|row| Some((row, of_row(row, first, None)?)))));
    let is_drawn = |row: &Row| panels.iter().flat_map(|panel| &panel.rows).any(|drawn| drawn.target == row.target);
    let nowhere: Vec<RatioRow> =
        rows.iter().filter(|row| row.numbers.is_none() && !is_drawn(row)).map(nowhere).collect();
    if !nowhere.is_empty() {
        panels.push(RatioPanel { title: "no number, so no place on the axis".to_string(), rows: nowhere });
    }
    Some(RatioPicture {
        measure: "seconds",
        title: format!("Time{}", part.title_behind()),
        axis: match unit {
            AxisUnit::Times => format!("times as long as {}", first.target),
            AxisUnit::Seconds => "seconds".to_string(),
        },
        unit,
        about: "",
        panels,
        band: band(standings.repeated.iter().map(aa::Repeated::versus)),
        is_noisy: standings.is_noisy(),
        is_seen_once: standings.blocks() == 1,
    })
}

/// Baselines and batch engines below the stores, in panels of their own.
fn apart<'a>(rows: impl Iterator<Item = (&'a Row, RatioRow)>) -> Vec<RatioPanel> {
    let (batches, baselines): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| row.group == BATCH_ENGINES);
    let panels = [(table::BASELINES, baselines), (table::BATCHES, batches)].map(|(title, rows)| RatioPanel {
        title: title.to_string(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    });
    panels.into_iter().filter(|panel| !panel.rows.is_empty()).collect()
}

/// What a target uses up, beside the one that used least of it: in all groups, since it does not wait.
struct Used {
    measure: &'static str,
    title: &'static str,
    /// What the axis counts, without whose it is.
    axis: &'static str,
    about: &'static str,
    cost: fn(&Record) -> Option<f64>,
    /// A row's median, as the tables write it.
    median: fn(&Numbers) -> Option<String>,
}

/// Of client and server.
const CPU: Used = Used {
    measure: "cpu",
    title: "CPU per op",
    axis: "times as much CPU per op as",
    about: "",
    cost: costs::cpu_s,
    median: |numbers| {
        let both = columns::cpu_us_per_op(numbers);
        Some(match both.split_once(" + ") {
            Some((client, server)) => format!("client {client} + server {server} us"),
            None => format!("{both} us"),
        })
    },
};

/// Of programs, of which no op is known.
const CPU_OF_JOB: Used =
    Used { title: "CPU for the whole job", axis: "times as much CPU as", about: "", median: |_| None, ..CPU };

const BYTES: &[Used] = &[
    Used {
        measure: "memory",
        title: "Memory",
        axis: "times as much memory as",
        about: "What the kernel cannot take back, at its peak: of a server its processes, of a store in the process \
                the trial's own with the job in it. Pages of mapped files are apart: the table's column mapped.",
        cost: costs::memory_bytes,
        median: |numbers| numbers.memory_bytes().map(units::bytes),
    },
    Used {
        measure: "disk",
        title: "Bytes on disk",
        axis: "times as many bytes as",
        about: "What the store's files take after the final flush.",
        cost: costs::disk_bytes,
        median: |numbers| numbers.bytes_on_disk.map(units::bytes),
    },
    Used {
        measure: "disk",
        title: "Bytes written",
        axis: "times as many bytes as",
        about: "What went towards disks until the end of the final flush, as the kernel counts it.",
        cost: costs::written_bytes,
        median: |numbers| numbers.bytes_written.map(units::bytes),
    },
];

pub fn of_cpu(part: &PagePart<'_>) -> Option<RatioPicture> {
    let rows = &part.report.rows;
    let least = least_cpu(rows)?;
    let used = if rows.iter().any(|row| row.of_program) { CPU_OF_JOB } else { CPU };
    let standing = part.report.standings.cpu();
    let each = rows.iter().filter_map(|row| Some((row, row.numbers.as_ref()?.cpu_vs_least?)));
    let costs = by_target(part.report.records, &part.report.standings.counted, CPU.cost, |_| true);
    let drawn = drawn(part, &used, &costs, least, (each.collect(), standing.as_ref()))?;
    let counted = &part.report.standings.counted;
    let repeated = aa::repeated(part.report.records, counted, CPU.cost);
    let is_noisy = counted.is_noisy() || repeated.iter().any(|one| one.control().is_noisy());
    Some(RatioPicture { is_noisy, ..drawn })
}

/// By memory and by what went to disk, each where two targets have such a number in each of their trials. Nothing is
/// claimed of bytes.
pub fn of_bytes(part: &PagePart<'_>) -> Vec<RatioPicture> {
    BYTES.iter().filter_map(|used| by_bytes(part, used)).collect()
}

fn by_bytes(part: &PagePart<'_>, used: &Used) -> Option<RatioPicture> {
    let (rows, standings) = (&part.report.rows, &part.report.standings);
    let costs = by_target(part.report.records, &standings.counted, used.cost, |_| true);
    // Fewer numbers than trials would be of other blocks than those of other targets.
    let all_of = |row: &Row| costs.get(row.target.as_str()).filter(|by_block| by_block.len() == row.trials);
    let median = |row: &Row| Some(Sample::new(all_of(row)?.values().copied().collect())?.median());
    let known = rows.iter().filter(|row| row.numbers.is_some());
    let known: Vec<(&Row, f64)> = known.filter_map(|row| Some((row, median(row)?))).collect();
    // A baseline is never the winner.
    let of_stores = known.iter().filter(|(row, _)| !row.baseline);
    let (least, _) = of_stores.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let standing = standings.by(used.cost, |label| known.iter().any(|(row, _)| row.target == label))?;
    let is_store = |target: &str| known.iter().any(|(row, _)| row.target == target && !row.baseline);
    let vs_least = standing.versus_best(is_store);
    let each = known.iter().filter_map(|(row, _)| Some((*row, *vs_least.get(row.target.as_str())?)));
    drawn(part, used, &costs, least, (each.collect(), None))
}

/// Nothing of a target alone. Only by a standing anything is claimed.
fn drawn(
    part: &PagePart<'_>,
    used: &Used,
    costs: &BlockCosts<'_>,
    least: &Row,
    (mut each, standing): (Vec<(&Row, Versus)>, Option<&Standing<'_>>),
) -> Option<RatioPicture> {
    let standings = &part.report.standings;
    each.sort_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio));
    let row = |(row, versus): (&Row, Versus)| {
        let ratio = in_words(standing, row, least, versus);
        let median = row.numbers.as_ref().and_then(used.median).unwrap_or_default();
        let (numbers, rank) = (numbers(row, ratio, median), None);
        let place = RatioPlace::At { versus, blocks: in_blocks(costs, &row.target, &least.target) };
        RatioRow { target: row.target.clone(), kind: kind(row), numbers, rank, is_baseline: row.baseline, place }
    };
    let count = each.len();
    let (no_stores, stores): (Vec<_>, Vec<_>) = each.into_iter().partition(|(row, _)| row.baseline);
    let stores = RatioPanel { title: String::new(), rows: stores.into_iter().map(row).collect() };
    let panels = std::iter::once(stores).filter(|panel| !panel.rows.is_empty());
    let panels = panels.chain(apart(no_stores.into_iter().map(|one| (one.0, row(one)))));
    let repeated = aa::repeated(part.report.records, &standings.counted, used.cost);
    (count > 1).then(|| RatioPicture {
        measure: used.measure,
        title: format!("{}{}", used.title, part.title_behind()),
        axis: format!("{} {}", used.axis, least.target),
        unit: AxisUnit::Times,
        about: used.about,
        panels: panels.collect(),
        band: band(repeated.iter().map(aa::Repeated::versus)),
        is_noisy: false,
        is_seen_once: standings.blocks() == 1,
    })
}

fn is_cut_off(row: &Row) -> bool {
    matches!(row.status, Status::TimedOut { .. })
}

fn of_row(
    row: &Row,
    best: &Row,
    costs: &BlockCosts<'_>,
    standing: Option<&Standing<'_>>,
    unit: AxisUnit,
) -> Option<RatioRow> {
    let best_s = best.numbers.as_ref()?.seconds.max(1e-9);
    let (place, ratio, median) = match (&row.numbers, &row.status) {
        (Some(numbers), _) => {
            // A baseline is never ranked, but it is shown.
            let plain = Versus { ratio: numbers.seconds / best_s, low: None, high: None, preliminary: false };
            let versus = numbers.vs_best.unwrap_or(plain);
            let place = match unit {
                AxisUnit::Times => RatioPlace::At { versus, blocks: in_blocks(costs, &row.target, &best.target) },
                AxisUnit::Seconds => RatioPlace::At {
                    versus: Versus { ratio: numbers.seconds, low: None, high: None, ..versus },
                    blocks: costs.get(row.target.as_str()).into_iter().flat_map(|by| by.values().copied()).collect(),
                },
            };
            let ratio = in_words(standing, row, best, versus);
            let median = Some(format!("{} s", units::seconds(numbers.seconds)));
            (place, ratio, with_dot(standing, row, best, versus, median))
        }
        (None, Status::TimedOut { after_s, .. }) => {
            let ratio = after_s / best_s;
            let place = if unit == AxisUnit::Times { ratio } else { *after_s };
            (RatioPlace::AtLeast(place), at_least(ratio), format!("> {} s", units::seconds(*after_s)))
        }
        (None, _) => return None,
    };
    let (target, kind, is_baseline) = (row.target.clone(), kind(row), row.baseline);
    Some(RatioRow { target, kind, numbers: numbers(row, ratio, median), rank: row.rank, is_baseline, place })
}

/// What stands beside the row's marks: of a baseline its own number first, since its ratio is no store's.
fn numbers(row: &Row, ratio: String, median: String) -> [String; 2] {
    if row.baseline && !median.is_empty() { [median, ratio] } else { [ratio, median] }
}

/// "embedded", "server, Unix socket": of a program it is not known.
fn kind(row: &Row) -> &'static str {
    match row.transport {
        _ if row.group == BATCH_ENGINES => "batch engine",
        _ if row.baseline => "baseline",
        _ if row.of_program => "",
        Transport::InProcess => "embedded",
        Transport::Unix => "server, Unix socket",
        Transport::Tcp => "server, TCP",
    }
}

/// What is claimed of a target beside the best one, else what was seen: on a noisy run "at least 7.5x" and "9x [8-11]".
fn in_words(standing: Option<&Standing<'_>>, row: &Row, best: &Row, seen: Versus) -> String {
    let words = claiming(standing, row, best).and_then(|standing| standing.in_words(&row.target, &best.target));
    words.unwrap_or_else(|| versus(seen))
}

/// The standing that claims the row to have more than the best one.
fn claiming<'a, 's>(standing: Option<&'a Standing<'s>>, row: &Row, best: &Row) -> Option<&'a Standing<'s>> {
    standing.filter(|standing| standing.is_less(&best.target, &row.target))
}

/// The median, behind the ratio at which the dot stands where the claim is "at least": "median 9.0x, 0.89 s".
fn with_dot(standing: Option<&Standing<'_>>, row: &Row, best: &Row, seen: Versus, median: Option<String>) -> String {
    let at_dot = Versus { low: None, high: None, ..seen };
    let is_noisy = claiming(standing, row, best).is_some_and(|standing| standing.is_noisy(&row.target, &best.target));
    let dot = is_noisy.then(|| format!("median {}", versus(at_dot)));
    [dot, median].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn nowhere(row: &Row) -> RatioRow {
    let words = match &row.status {
        // Nothing was timed.
        status if status.has_numbers() => "not timed".to_string(),
        status => status.in_words(),
    };
    let (target, kind, place) = (row.target.clone(), kind(row), RatioPlace::Nowhere(words));
    RatioRow { target, kind, numbers: [String::new(), String::new()], rank: None, is_baseline: row.baseline, place }
}

/// What one target cost of what the other one cost, block by block; nothing of the other one itself.
fn in_blocks(costs: &BlockCosts<'_>, one: &str, other: &str) -> Vec<f64> {
    let (Some(one), Some(other)) = (costs.get(one).filter(|_| one != other), costs.get(other)) else {
        return Vec::new();
    };
    one.iter().filter_map(|(block, cost)| Some(cost / other.get(block)?)).filter(|ratio| *ratio > 0.0).collect()
}

/// Around all of them; nothing where none has an interval.
fn band(controls: impl Iterator<Item = Versus>) -> Option<(f64, f64)> {
    let ends = controls.filter_map(|control| control.low.zip(control.high));
    ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}
