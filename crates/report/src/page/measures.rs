//! What a picture of ratios shows: each target beside the best one of its group, in times.

use std::collections::BTreeMap;

use super::PagePart;
use crate::cells::{Numbers, Row, Status, least_cpu};
use crate::chart::axis::Axis;
use crate::chart::marks::{MarkKind, MarkShape};
use crate::chart::palette::{GREY, LINES, TEXT};
use crate::chart::rows::{PictureRow, RowMark, RowPicture, RowSection, caption};
use crate::chart::shortened;
use crate::costs::BATCH_ENGINES;
use crate::standing::{Standing, by_target};
use crate::versus::{Versus, at_least, versus};
use crate::{aa, columns, costs, table};
use kvfair_core::record::Record;
use kvfair_core::trial::Transport;
use kvfair_core::units;
use kvfair_stats::sample::Sample;

const MEDIAN: MarkKind = MarkKind::new(MarkShape::Dot, LINES[0], "median");
const UNCERTAIN: MarkKind = MarkKind::new(MarkShape::HollowDot, LINES[0], "median, uncertain").thin(true);
/// The title of its section says what it is.
const BASELINE: MarkKind = MarkKind::new(MarkShape::HollowDiamond, GREY, "");
const CUT_OFF: MarkKind = MarkKind::new(MarkShape::Arrow, TEXT, "cut off: at least");

/// What the axis of a picture counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisUnit {
    /// Times one target.
    Times,
    /// Where groups have no target in common: one ratio in two groups would be two times.
    Seconds,
}

/// Rows of ratios, before they have the axis that they share with others.
pub struct RatioPicture {
    /// "seconds", "cpu", "memory" or "disk", as the address names it.
    pub measure: &'static str,
    unit: AxisUnit,
    /// What is counted, where it needs words.
    about: &'static str,
    /// Between which ratios the same store came out from itself when it was run twice.
    noise: Option<(f64, f64)>,
    /// Only the near ends of intervals are claimed.
    is_noisy: bool,
    /// There is one block: nothing has an interval.
    is_seen_once: bool,
    /// Some interval is of too few blocks to be exact.
    is_rough: bool,
    picture: RowPicture,
}

/// The pictures, with one axis for all that have the same unit: they are compared by eye.
pub fn on_one_axis(mut all: Vec<RatioPicture>) -> Vec<(&'static str, RowPicture)> {
    for unit in [AxisUnit::Times, AxisUnit::Seconds] {
        let alike: Vec<&RatioPicture> = all.iter().filter(|one| one.unit == unit).collect();
        let numbers = alike.iter().flat_map(|one| one.picture.numbers());
        let axis = match unit {
            AxisUnit::Times => Axis::around(numbers.chain([1.0]), "x"),
            AxisUnit::Seconds => Axis::around(numbers, " s"),
        };
        let measures: Vec<&str> = alike.iter().map(|one| one.measure).collect();
        let alike = in_common(&measures);
        for one in all.iter_mut().filter(|one| one.unit == unit) {
            (one.picture.axis, one.picture.caption) = (axis.clone(), caption_of(one, alike));
        }
    }
    all.into_iter().map(|one| (one.measure, one.picture)).collect()
}

/// What the pictures of one axis are of; empty where there is one.
fn in_common(measures: &[&str]) -> &'static str {
    match (measures.contains(&"seconds"), measures.contains(&"cpu")) {
        _ if measures.len() < 2 => "",
        (true, true) => "time and CPU",
        (true, false) => "time",
        (false, true) => "CPU",
        (false, false) => "memory and disk",
    }
}

fn caption_of(one: &RatioPicture, alike: &str) -> String {
    let axis = match alike {
        "" => "Logarithmic axis.".to_string(),
        alike => format!("Logarithmic axis, the same in all charts of {alike}."),
    };
    let is_of_seconds = one.unit == AxisUnit::Seconds;
    let noise = one
        .noise
        .filter(|_| is_of_seconds)
        .map(|(low, high)| format!("Noise: the same store run twice came out from {low:.2}x to {high:.2}x of itself."));
    caption(&[
        (!one.about.is_empty(), one.about),
        (true, &axis),
        (is_of_seconds, "Ratios are to the best target of the panel. Nothing is claimed across panels."),
        (true, "Ratios compare trials of the same block."),
        (noise.is_some(), noise.as_deref().unwrap_or_default()),
        (one.is_seen_once, "One block ran: there is no interval and no claim."),
        (one.is_rough, "About: too few blocks count for an exact interval, so it is rough."),
        (one.is_noisy, "Noisy: only the end of an interval that is nearest to 1x is claimed (at least)."),
        (one.noise.is_none(), "No store was run twice often enough, so the noise is unknown."),
    ])
}

/// What pictures of ratios of one run have in common.
struct Frame<'a> {
    costs: BlockCosts<'a>,
    unit: AxisUnit,
    is_noisy: bool,
}

impl Frame<'_> {
    /// Noise is a ratio: it has no place on an axis of seconds.
    fn picture(
        &self,
        title: String,
        across: String,
        sections: Vec<RowSection>,
        noise: Option<(f64, f64)>,
    ) -> RowPicture {
        let band = noise.filter(|_| self.unit == AxisUnit::Times).map(|ends| (ends, "noise: same store twice"));
        RowPicture { band, ..RowPicture::new(title, across, sections) }
    }

    fn kind(&self, row: &Row) -> MarkKind {
        match self.is_noisy {
            _ if row.baseline => BASELINE.thin(self.is_noisy),
            true => UNCERTAIN,
            false => MEDIAN,
        }
    }

    /// At a ratio to the best one.
    fn at_ratio(&self, row: &Row, best: &Row, versus: Versus) -> RowMark {
        let each = in_blocks(&self.costs, &row.target, &best.target);
        RowMark { kind: self.kind(row), at: versus.ratio, span: versus.low.zip(versus.high), each }
    }

    /// At its seconds, which have no interval.
    fn at_seconds(&self, row: &Row, seconds: f64) -> RowMark {
        let each = self.costs.get(row.target.as_str()).into_iter().flat_map(|by| by.values().copied()).collect();
        RowMark { kind: self.kind(row), at: seconds, span: None, each }
    }
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
    let frame = Frame { costs, unit, is_noisy: standings.is_noisy() };
    let of_row = |row: &Row, best: &Row, standing| of_row(row, best, standing, &frame);
    let mut sections: Vec<RowSection> = groups
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
            RowSection::new(title, of_group.filter_map(|row| of_row(row, group[0], standing)).collect())
        })
        .collect();
    let no_stores = rows.iter().filter(|row| row.baseline && (row.numbers.is_some() || is_cut_off(row)));
    sections.extend(apart(no_stores.filter_map(|row| Some((row, of_row(row, first, None)?)))));
    let is_of_group = |row: &Row| groups.iter().any(|group| group[0].group == row.group);
    let is_drawn = |row: &Row| is_cut_off(row) && (row.baseline || is_of_group(row));
    let nowhere: Vec<PictureRow> =
        rows.iter().filter(|row| row.numbers.is_none() && !is_drawn(row)).map(nowhere).collect();
    if !nowhere.is_empty() {
        sections.push(RowSection::new("no number, so no place on the axis", nowhere));
    }
    let noise = band(standings.repeated.iter().map(aa::Repeated::versus));
    let across = match unit {
        AxisUnit::Times => format!("times as long as {}", first.target),
        AxisUnit::Seconds => "seconds".to_string(),
    };
    let is_rough =
        |row: &Row| row.numbers.as_ref().and_then(|numbers| numbers.vs_best).is_some_and(|vs| vs.preliminary);
    Some(RatioPicture {
        measure: "seconds",
        unit,
        about: "",
        noise,
        is_noisy: frame.is_noisy,
        is_seen_once: standings.blocks() == 1,
        is_rough: rows.iter().any(is_rough),
        picture: frame.picture(format!("Time{}", part.title_behind()), across, sections, noise),
    })
}

/// Baselines and batch engines below the stores, in panels of their own.
fn apart<'a>(rows: impl Iterator<Item = (&'a Row, PictureRow)>) -> Vec<RowSection> {
    let (batches, baselines): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| row.group == BATCH_ENGINES);
    let sections = [(table::BASELINES, baselines), (table::BATCHES, batches)]
        .map(|(title, rows)| RowSection::new(title, rows.into_iter().map(|(_, row)| row).collect()));
    sections.into_iter().filter(|section| !section.rows.is_empty()).collect()
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
    let counted = &part.report.standings.counted;
    let costs = by_target(part.report.records, counted, CPU.cost, |_| true);
    let repeated = aa::repeated(part.report.records, counted, CPU.cost);
    let is_noisy = counted.is_noisy() || repeated.iter().any(|one| one.control().is_noisy());
    let frame = Frame { costs, unit: AxisUnit::Times, is_noisy };
    drawn(part, &used, &frame, least, (each.collect(), standing.as_ref()))
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
    let each: Vec<(&Row, Versus)> = each.collect();
    let frame = Frame { costs, unit: AxisUnit::Times, is_noisy: false };
    drawn(part, used, &frame, least, (each, None))
}

/// Nothing of a target alone. Only by a standing anything is claimed.
fn drawn(
    part: &PagePart<'_>,
    used: &Used,
    frame: &Frame<'_>,
    least: &Row,
    (mut each, standing): (Vec<(&Row, Versus)>, Option<&Standing<'_>>),
) -> Option<RatioPicture> {
    if each.len() < 2 {
        return None;
    }
    let standings = &part.report.standings;
    each.sort_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio));
    let is_rough = each.iter().any(|(_, versus)| versus.preliminary);
    let row = |(row, versus): (&Row, Versus)| {
        let ratio = in_words(standing, row, least, versus);
        let median = row.numbers.as_ref().and_then(used.median).unwrap_or_default();
        picture_row(row, frame.at_ratio(row, least, versus), numbers(row, ratio, median))
    };
    let (no_stores, stores): (Vec<_>, Vec<_>) = each.into_iter().partition(|(row, _)| row.baseline);
    let stores = RowSection::new("", stores.into_iter().map(row).collect());
    let sections = std::iter::once(stores).filter(|section| !section.rows.is_empty());
    let sections = sections.chain(apart(no_stores.into_iter().map(|one| (one.0, row(one)))));
    let repeated = aa::repeated(part.report.records, &standings.counted, used.cost);
    let noise = band(repeated.iter().map(aa::Repeated::versus));
    let title = format!("{}{}", used.title, part.title_behind());
    Some(RatioPicture {
        measure: used.measure,
        unit: frame.unit,
        about: used.about,
        noise,
        is_noisy: frame.is_noisy,
        is_seen_once: standings.blocks() == 1,
        is_rough,
        picture: frame.picture(title, format!("{} {}", used.axis, least.target), sections.collect(), noise),
    })
}

fn picture_row(row: &Row, mark: RowMark, numbers: Vec<String>) -> PictureRow {
    PictureRow {
        name: shortened(&row.target),
        below: kind(row).to_string(),
        is_muted: row.baseline,
        marks: vec![mark],
        numbers,
        ..PictureRow::default()
    }
}

fn is_cut_off(row: &Row) -> bool {
    matches!(row.status, Status::TimedOut { .. })
}

fn of_row(row: &Row, best: &Row, standing: Option<&Standing<'_>>, frame: &Frame<'_>) -> Option<PictureRow> {
    let best_s = best.numbers.as_ref()?.seconds.max(1e-9);
    let (mark, ratio, median) = match (&row.numbers, &row.status) {
        (Some(numbers), _) => {
            // A baseline is never ranked, but it is shown.
            let plain = Versus { ratio: numbers.seconds / best_s, low: None, high: None, preliminary: false };
            let versus = numbers.vs_best.unwrap_or(plain);
            let mark = match frame.unit {
                AxisUnit::Times => frame.at_ratio(row, best, versus),
                AxisUnit::Seconds => frame.at_seconds(row, numbers.seconds),
            };
            let ratio = in_words(standing, row, best, versus);
            let median = Some(format!("{} s", units::seconds(numbers.seconds)));
            (mark, ratio, with_dot(standing, row, best, versus, median))
        }
        (None, Status::TimedOut { after_s, .. }) => {
            let ratio = after_s / best_s;
            let at = if frame.unit == AxisUnit::Times { ratio } else { *after_s };
            let mark = RowMark { kind: CUT_OFF, at, span: None, each: Vec::new() };
            (mark, at_least(ratio), format!("> {} s", units::seconds(*after_s)))
        }
        (None, _) => return None,
    };
    Some(PictureRow { rank: row.rank, ..picture_row(row, mark, numbers(row, ratio, median)) })
}

/// What stands beside the row's marks: the ratio in words, as the heading claims it, and the median with its unit; of a
/// baseline its own number first, since its ratio is no store's.
fn numbers(row: &Row, ratio: String, median: String) -> Vec<String> {
    let both = if row.baseline && !median.is_empty() { [median, ratio] } else { [ratio, median] };
    both.into_iter().filter(|words| !words.is_empty()).collect()
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

fn nowhere(row: &Row) -> PictureRow {
    let reason = match &row.status {
        // Nothing was timed.
        status if status.has_numbers() => "not timed".to_string(),
        status => status.in_words(),
    };
    let (name, below, is_muted) = (shortened(&row.target), kind(row).to_string(), row.baseline);
    PictureRow { name, below, is_muted, reason, ..PictureRow::default() }
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
