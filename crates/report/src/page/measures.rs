//! The chart of a run, for each measure that a reader may choose: a row a target at its own number, and beside it what
//! it is of the best one.

use std::collections::BTreeMap;

use super::PagePart;
use crate::cells::{Numbers, Row, Status, least_cpu};
use crate::chart::axis::Axis;
use crate::chart::marks::{MarkKind, MarkShape};
use crate::chart::palette::{GREY, LINES, Stroke, TEXT};
use crate::chart::rows::{PictureRow, RowMark, RowPicture, RowSection, caption};
use crate::chart::shortened;
use crate::costs::BATCH_ENGINES;
use crate::standing::{Standing, by_target};
use crate::versus::{Versus, at_least, versus};
use crate::{costs, table};
use kvfair_core::record::Record;
use kvfair_core::trial::Transport;
use kvfair_core::units;
use kvfair_stats::sample::Sample;

/// The picture of a measure, under its name in the address of the page.
pub struct MeasurePicture {
    pub measure: &'static str,
    pub picture: RowPicture,
}

/// Marks by where a store runs.
const EMBEDDED: (Stroke, &str, &str) = (LINES[0], "embedded", "embedded, noisy");
const SERVER: (Stroke, &str, &str) = (LINES[1], "server", "server, noisy");
const PROGRAM: (Stroke, &str, &str) = (LINES[0], "program", "program, noisy");
/// The titles of their sections say what these are.
const NO_STORE: MarkKind = MarkKind::new(MarkShape::HollowDiamond, GREY, "");
const CUT_OFF: MarkKind = MarkKind::new(MarkShape::Arrow, TEXT, "cut off: at least");

/// All pictures of a run that has no points, its time first.
pub fn pictures(part: &PagePart<'_>) -> Vec<MeasurePicture> {
    let used = USED.iter().filter_map(|used| used.picture(part));
    time(part).into_iter().chain(used).collect()
}

/// By time, as the table ranks. Nothing where no target has any: at rates all take the same time.
fn time(part: &PagePart<'_>) -> Option<MeasurePicture> {
    let (rows, standings) = (&part.report.rows, &part.report.standings);
    let marks = Marks {
        by_block: by_target(part.report.records, &standings.counted, Record::cost, |_| true),
        is_noisy: standings.is_noisy(),
    };
    let ranked: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    let batches = rows.iter().filter(|row| row.group == BATCH_ENGINES && row.numbers.is_some());
    let mut first = ranked.iter().copied().chain(batches);
    let first = first.next().filter(|row| marks.by_block.contains_key(row.target.as_str()))?;
    let groups: Vec<&[&Row]> = ranked.chunk_by(|one, next| one.group == next.group).collect();
    let of_row = |row: &Row, best: &Row, standing| timed(row, best, standing, &marks);
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
    let (axis, unit) = if first.of_requests { ("requests per second", "") } else { ("seconds", " s") };
    let apart = groups.len() > 1;
    let about = caption(&[
        (apart, "Ratios are to the best target of the panel. Nothing is claimed across panels."),
        (standings.blocks() == 1, "One block ran: there is no interval and no claim."),
        (marks.is_noisy, "Noisy: only the end of a ratio's interval that is nearest to 1x is claimed (at least)."),
    ]);
    let title = format!("Time{}", part.title_behind());
    let heads = vec![if first.of_requests { "requests" } else { "time" }, "ratio", "CPU per op", "memory"];
    Some(MeasurePicture { measure: "time", picture: framed((title, axis, unit), heads, sections, about) })
}

/// On a logarithmic axis around all marks.
fn framed(
    (title, axis, unit): (String, &str, &'static str),
    heads: Vec<&'static str>,
    sections: Vec<RowSection>,
    caption: String,
) -> RowPicture {
    let picture = RowPicture::new(title, format!("{axis}, logarithmic"), sections);
    RowPicture { axis: Axis::around(picture.numbers(), unit), heads, caption, ..picture }
}

/// What a run has in common for all rows of a picture: the number of each block, by target.
struct Marks<'a> {
    by_block: BTreeMap<&'a str, BTreeMap<u32, f64>>,
    is_noisy: bool,
}

impl Marks<'_> {
    /// At its number, with the interval of the median of its blocks, from six blocks on.
    fn of(&self, row: &Row, number: f64, drawn: impl Fn(f64) -> f64) -> RowMark {
        let by_block = self.by_block.get(row.target.as_str());
        let each: Vec<f64> = by_block.into_iter().flat_map(|by| by.values().map(|number| drawn(*number))).collect();
        let span = Sample::new(each.clone()).and_then(|sample| sample.median_bounds());
        RowMark { kind: self.kind(row), at: number, span, each }
    }

    fn kind(&self, row: &Row) -> MarkKind {
        let (stroke, quiet, noisy) = match row.transport {
            _ if row.baseline || row.group == BATCH_ENGINES => return NO_STORE.thin(self.is_noisy),
            _ if row.of_program => PROGRAM,
            Transport::InProcess => EMBEDDED,
            Transport::Unix | Transport::Tcp => SERVER,
        };
        match self.is_noisy {
            true => MarkKind::new(MarkShape::HollowDot, stroke, noisy).thin(true),
            false => MarkKind::new(MarkShape::Dot, stroke, quiet),
        }
    }
}

fn timed(row: &Row, best: &Row, standing: Option<&Standing<'_>>, marks: &Marks<'_>) -> Option<PictureRow> {
    let best_s = best.numbers.as_ref()?.seconds.max(1e-9);
    let (mark, numbers) = match (&row.numbers, &row.status) {
        (Some(numbers), _) => {
            // A baseline is never ranked, but it is shown.
            let plain = Versus { ratio: numbers.seconds / best_s, low: None, high: None, preliminary: false };
            let ratio = in_words(standing, row, best, numbers.vs_best.unwrap_or(plain));
            let requests = numbers.units_per_s * numbers.seconds;
            let mark = match row.of_requests {
                true => marks.of(row, numbers.units_per_s, |took_s| requests / took_s.max(1e-9)),
                false => marks.of(row, numbers.seconds, |took_s| took_s),
            };
            let cpu = format!("{} us", units::digits(numbers.cpu_us_per_op()));
            let cpu = if row.of_program || row.group == BATCH_ENGINES { String::new() } else { cpu };
            let memory = numbers.memory_bytes().map_or_else(String::new, units::bytes);
            (mark, vec![told(numbers, row.of_requests), ratio, cpu, memory])
        }
        // At the axis of requests there is no such place.
        (None, Status::TimedOut { after_s, .. }) if !row.of_requests => {
            let mark = RowMark { kind: CUT_OFF, at: *after_s, span: None, each: Vec::new() };
            (mark, vec![format!("> {} s", units::seconds(*after_s)), at_least(after_s / best_s)])
        }
        (None, _) => return None,
    };
    Some(PictureRow { rank: row.rank, ..picture_row(row, mark, numbers) })
}

fn told(numbers: &Numbers, of_requests: bool) -> String {
    match of_requests {
        true => format!("{}/s", units::count(numbers.units_per_s)),
        false => format!("{} s", units::seconds(numbers.seconds)),
    }
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
    axis: &'static str,
    unit: &'static str,
    about: &'static str,
    /// What is drawn of a trial, in the unit.
    of_trial: fn(&Record) -> Option<f64>,
    /// What the table has of a target, in the unit.
    of_row: fn(&Row) -> Option<f64>,
    words: fn(f64) -> String,
    /// Whether differences may be claimed.
    is_claimed: bool,
}

const BYTES_PER_MB: f64 = 1e6;

fn megabytes(bytes: Option<u64>) -> Option<f64> {
    Some(bytes? as f64 / BYTES_PER_MB).filter(|bytes| *bytes > 0.0)
}

fn in_bytes(megabytes: f64) -> String {
    units::bytes((megabytes * BYTES_PER_MB).round() as u64)
}

const USED: [Used; 6] = [
    Used {
        measure: "cpu",
        title: "CPU per op",
        axis: "microseconds of CPU per op, client and server",
        unit: " us",
        about: "",
        of_trial: |trial| costs::cpu_us_per_op(trial).filter(|_| trial.job.program().is_none()),
        of_row: |row| Some(row.numbers.as_ref()?.cpu_us_per_op()).filter(|_| !row.of_program),
        words: |cpu_us| format!("{} us", units::digits(cpu_us)),
        is_claimed: true,
    },
    Used {
        measure: "cpu",
        title: "CPU for the whole job",
        axis: "seconds of CPU, client and server",
        unit: " s",
        about: "",
        of_trial: |trial| costs::cpu_s(trial).filter(|_| trial.job.program().is_some()),
        of_row: |row| Some(row.numbers.as_ref()?.cpu_us() / 1e6).filter(|_| row.of_program),
        words: |cpu_s| format!("{} s", units::seconds(cpu_s)),
        is_claimed: true,
    },
    Used {
        measure: "memory",
        title: "Memory",
        axis: "megabytes at the peak",
        unit: " MB",
        about: "Memory the kernel cannot reclaim: for a server its processes, for an embedded store the process of the \
                trial, including the job. Pages of mapped files are not included: see the column mapped.",
        of_trial: |trial| Some(costs::memory_bytes(trial)? / BYTES_PER_MB),
        of_row: |row| megabytes(row.numbers.as_ref()?.memory_bytes()),
        words: in_bytes,
        is_claimed: false,
    },
    Used {
        measure: "disk",
        title: "Bytes on disk",
        axis: "megabytes of files after the final flush",
        unit: " MB",
        about: "",
        of_trial: |trial| Some(costs::disk_bytes(trial)? / BYTES_PER_MB),
        of_row: |row| megabytes(row.numbers.as_ref()?.bytes_on_disk),
        words: in_bytes,
        is_claimed: false,
    },
    Used {
        measure: "disk",
        title: "Bytes written",
        axis: "megabytes towards disks, as the kernel counts them",
        unit: " MB",
        about: "",
        of_trial: |trial| Some(costs::written_bytes(trial)? / BYTES_PER_MB),
        of_row: |row| megabytes(row.numbers.as_ref()?.bytes_written),
        words: in_bytes,
        is_claimed: false,
    },
    Used {
        measure: "p99",
        title: "p99 of a request",
        axis: "microseconds",
        unit: " us",
        about: "",
        of_trial: |trial| Some(costs::latency_p99_s(trial).filter(|_| trial.job.load.is_some())? * 1e6),
        of_row: |row| Some(row.numbers.as_ref()?.op_times?.op_ns_p99? as f64 / 1e3).filter(|_| row.of_requests),
        words: |time_us| units::nanoseconds((time_us * 1e3).round() as u64),
        is_claimed: true,
    },
];

impl Used {
    /// Where two targets have such a number in each of their trials.
    fn picture(&self, part: &PagePart<'_>) -> Option<MeasurePicture> {
        let (rows, standings) = (&part.report.rows, &part.report.standings);
        let by_block = by_target(part.report.records, &standings.counted, self.of_trial, |_| true);
        // Fewer numbers than trials would be of other blocks than those of other targets.
        let has_all = |row: &Row| by_block.get(row.target.as_str()).is_some_and(|by| by.len() == row.trials);
        let known = rows.iter().filter(|row| has_all(row)).filter_map(|row| Some((row, (self.of_row)(row)?)));
        let mut known: Vec<(&Row, f64)> = known.collect();
        known.sort_by(|one, other| one.1.total_cmp(&other.1));
        // A baseline is never the winner.
        let (least, _) = *known.iter().find(|(row, _)| row.status.is_of_a_store() && !row.baseline)?;
        if known.len() < 2 {
            return None;
        }
        let beside = self.beside(part, least, &known)?;
        let is_noisy = standings.counted.is_noisy() || beside.standing.as_ref().is_some_and(Standing::has_noise);
        let marks = Marks { by_block, is_noisy: self.is_claimed && is_noisy };
        let drawn = |row: &Row, number: f64| {
            let versus = beside.ratios.get(row.target.as_str()).copied();
            let claimed = beside.standing.as_ref().filter(|_| self.is_claimed);
            let ratio = versus.map_or_else(String::new, |versus| in_words(claimed, row, least, versus));
            picture_row(row, marks.of(row, number, |number| number), vec![(self.words)(number), ratio])
        };
        let all = known.into_iter().map(|(row, number)| (row, drawn(row, number)));
        let (no_stores, stores): (Vec<_>, Vec<_>) = all.partition(|(row, _)| row.baseline);
        let stores = RowSection::new("", stores.into_iter().map(|(_, row)| row).collect());
        let sections = std::iter::once(stores).chain(apart(no_stores.into_iter())).collect();
        let title = format!("{}{}", self.title, part.title_behind());
        let heads = vec!["median", "ratio"];
        let picture = framed((title, self.axis, self.unit), heads, sections, self.about.to_string());
        Some(MeasurePicture { measure: self.measure, picture })
    }

    /// What each target used of what the one with least used, by pairs of the same block.
    fn beside<'a>(&self, part: &PagePart<'a>, least: &Row, known: &[(&'a Row, f64)]) -> Option<Beside<'a>> {
        let standings = &part.report.standings;
        // As the table has it.
        let of_cpu = |row: &&'a Row| Some((row.target.as_str(), row.numbers.as_ref()?.cpu_vs_least?));
        if self.measure == "cpu" && least_cpu(&part.report.rows).is_some_and(|row| row.target == least.target) {
            let ratios = known.iter().filter_map(|(row, _)| of_cpu(row)).collect();
            return Some(Beside { ratios, standing: standings.cpu() });
        }
        let is_known = |label: &str| known.iter().any(|(row, _)| row.target == label);
        let standing = standings.by(self.of_trial, is_known)?;
        let is_store = |target: &str| known.iter().any(|(row, _)| row.target == target && !row.baseline);
        Some(Beside { ratios: standing.versus_best(is_store), standing: Some(standing) })
    }
}

/// Ratios to the least, by target.
struct Beside<'a> {
    ratios: BTreeMap<&'a str, Versus>,
    standing: Option<Standing<'a>>,
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
    matches!(row.status, Status::TimedOut { .. }) && !row.of_requests
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

/// What is claimed of a target beside the best one, else what was measured: on a noisy run "at least 7.5x" and "9x
/// [8-11]".
fn in_words(standing: Option<&Standing<'_>>, row: &Row, best: &Row, measured: Versus) -> String {
    let claiming = standing.filter(|standing| standing.is_less(&best.target, &row.target));
    let words = claiming.and_then(|standing| standing.in_words(&row.target, &best.target));
    words.unwrap_or_else(|| versus(measured))
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
