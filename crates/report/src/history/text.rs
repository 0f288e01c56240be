//! What is printed of a history: a table for each set-up, its changes, and what ends its lines.

use std::collections::BTreeMap;

use super::{ChangeSeen, DotSeen, HistoryReport, SeriesSeen, SetUp};
use crate::grid::Grid;
use crate::render::{Block, Statement};
use crate::table::TableLine;
use crate::versus::{in_a_sentence, versus};
use kvfair_core::shell;
use kvfair_core::units;
use kvfair_stats::change::LEAST_RUNS;

/// The sentence that stands above everything.
pub fn heading(report: &HistoryReport) -> String {
    let found = |is: fn(&ChangeSeen) -> bool| {
        let series = report.setups.iter().flat_map(|setup| &setup.series);
        series.flat_map(|series| &series.changes).filter(|change| is(change)).count()
    };
    let (stores, machine) = (found(|change| change.machine.is_none()), found(|change| change.machine.is_some()));
    let followed = report.setups.iter().flat_map(|setup| &setup.series).filter(|series| is_followed(series)).count();
    let machine = match machine {
        0 => String::new(),
        1 => " 1 change is the machine's.".to_string(),
        count => format!(" {count} changes are the machine's."),
    };
    match (followed, stores) {
        (0, _) => {
            format!("No target has {LEAST_RUNS} comparable runs, so kvfair does not look for changes.")
        }
        (_, 0) => format!("No change of a store is seen.{machine}"),
        (_, 1) => format!("1 change may be a store's: a paired run decides.{machine}"),
        (_, count) => format!("{count} changes may be a store's: paired runs decide.{machine}"),
    }
}

fn is_followed(series: &SeriesSeen) -> bool {
    series.used >= LEAST_RUNS
}

/// One for each set-up, and one of all changes, which comes first.
pub fn tables(report: &HistoryReport) -> Vec<Grid> {
    let changes = changes(report);
    let changes = (changes.len() > 1).then(|| Grid { title: "Changes".to_string(), lines: changes });
    let of_each = report.setups.iter().map(|setup| Grid { title: title(setup), lines: lines(setup) });
    changes.into_iter().chain(of_each).collect()
}

/// "fans, 2,000 profiles · ... · 14 runs, 2026-11-01 to 2026-11-20".
fn title(setup: &SetUp) -> String {
    let [first, .., last] = setup.runs.as_slice() else {
        return format!("{} · 1 run, {}", setup.subject, day(&setup.runs[0].began));
    };
    format!("{} · {} runs, {} to {}", setup.subject, setup.runs.len(), day(&first.began), day(&last.began))
}

pub(super) fn day(began: &str) -> &str {
    began.split(' ').next().unwrap_or(began)
}

/// A line a target.
fn lines(setup: &SetUp) -> Vec<TableLine> {
    let headings = ["target", "runs used", "of", "median", "sd", "last", "found"];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    let told = |number: Option<f64>| number.map_or_else(|| "-".to_string(), units::digits);
    for series in &setup.series {
        let last = series.dots.iter().rev().find_map(|dot| match dot.seen {
            DotSeen::Used { number, .. } => Some(number),
            _ => None,
        });
        lines.push(TableLine::Cells(vec![
            series.target.clone(),
            format!("{} of {}", series.used, series.dots.len()),
            series.counted.clone(),
            told(series.median),
            series.sd.map_or_else(|| "-".to_string(), |sd| format!("{:.1} %", sd * 100.0)),
            told(last),
            found(series),
        ]));
    }
    lines
}

fn found(series: &SeriesSeen) -> String {
    let failed = series.dots.iter().filter(|dot| matches!(dot.seen, DotSeen::Failed { .. })).count();
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let said = match series.changes.as_slice() {
        _ if !is_followed(series) => format!("{} of {LEAST_RUNS} runs", series.used),
        [] => "no change seen".to_string(),
        [change] if change.machine.is_none() => format!("maybe since {}", day(&change.since)),
        [_] => "the machine changed".to_string(),
        several => format!("{} changes", several.len()),
    };
    format!("{said}{failed}")
}

/// The table of changes; its headings alone where there are none.
fn changes(report: &HistoryReport) -> Vec<TableLine> {
    let headings = ["target", "maybe since", "of before", "store", "the command that decides"];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    for (series, change) in all_changes(report) {
        lines.push(TableLine::Cells(vec![
            series.target.clone(),
            change.since.clone(),
            versus(change.change.ratio.into()),
            change.versions.clone().unwrap_or_else(|| "same version".to_string()),
            change.machine.clone().unwrap_or_else(|| change.decide.clone()),
        ]));
    }
    lines
}

fn all_changes(report: &HistoryReport) -> impl Iterator<Item = (&SeriesSeen, &ChangeSeen)> {
    let series = report.setups.iter().flat_map(|setup| &setup.series);
    series.flat_map(|series| series.changes.iter().map(move |change| (series, change)))
}

/// "redis: maybe since 2026-11-12 03:00 1.12 times as much as before [1.08-1.16]; redis 7.0.15 -> redis 8.2.3."
fn in_words(series: &SeriesSeen, change: &ChangeSeen) -> String {
    let ratio = in_a_sentence(&versus(change.change.ratio.into()), "as much as before");
    let versions = change.versions.as_ref().map_or_else(String::new, |versions| format!("; {versions}"));
    let machine = change.machine.as_ref().map_or_else(String::new, |machine| format!("; {machine}"));
    let (target, counted, since) = (&series.target, &series.counted, &change.since);
    format!("{target}: maybe since {since} {ratio} ({counted}){versions}{machine}.")
}

/// What ends a line, what runs are missing, and what helps.
pub fn notes(report: &HistoryReport) -> Vec<Statement> {
    let mut notes: Vec<Statement> = Vec::new();
    for setup in &report.setups {
        if let (Some(differs), Some(first)) = (&setup.differs, setup.runs.first()) {
            let words = format!("{}: the lines of {} end at {differs}.", first.began, setup.job);
            notes.push(Statement::Sentence(words));
        }
    }
    notes.extend(of_other_methods(report).into_iter().map(Statement::Sentence));
    if report.setups.iter().any(|setup| matches!(setup.differs_in, "size" | "data")) {
        let words = "A job that is sized by its time has another size in each run: name it, as in --profiles 2000.";
        notes.push(Statement::Sentence(words.to_string()));
    }
    if report.setups.iter().any(|setup| setup.series.iter().any(|series| !is_followed(series))) {
        notes.push(Statement::Sentence(format!("Changes are looked for from {LEAST_RUNS} runs on.")));
    }
    notes.extend(report.setups.iter().filter_map(until_then));
    notes.extend(report.setups.iter().flat_map(not_used).map(Statement::Sentence));
    notes
}

/// Why runs of a target are not used, of each target of which some are not: "redis, valkey: 5 of 5 runs are not used:
/// most blocks were disturbed (4), wrong answers (1)." Targets of which the same is to be said share a sentence.
fn not_used(setup: &SetUp) -> Vec<String> {
    let mut targets: Vec<(String, Vec<&str>)> = Vec::new();
    for series in setup.series.iter().filter(|series| series.used < series.dots.len()) {
        let why = why_not_used(series);
        match targets.iter_mut().find(|(said, _)| *said == why) {
            Some((_, targets)) => targets.push(&series.target),
            None => targets.push((why, vec![&series.target])),
        }
    }
    targets.into_iter().map(|(why, targets)| format!("{}: {why}.", targets.join(", "))).collect()
}

fn why_not_used(series: &SeriesSeen) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for dot in &series.dots {
        let why = match &dot.seen {
            DotSeen::Used { .. } => continue,
            DotSeen::Noisy { why, .. } => why,
            DotSeen::Failed { why } => why,
            DotSeen::Absent => "it did not run, or the run has no baseline",
        };
        *reasons.entry(why).or_default() += 1;
    }
    let unused: usize = reasons.values().sum();
    let reasons: Vec<String> = reasons.iter().map(|(why, runs)| format!("{why} ({runs})")).collect();
    format!("{unused} of {} runs are not used: {}", series.dots.len(), reasons.join(", "))
}

/// Runs that other methods made, by job and method.
fn of_other_methods(report: &HistoryReport) -> Vec<String> {
    let mut counted: BTreeMap<(&str, u32), Vec<&str>> = BTreeMap::new();
    for run in &report.other_methods {
        counted.entry((&run.job, run.method)).or_default().push(&run.began);
    }
    let told = counted.into_iter().map(|((job, method), began)| {
        format!(
            "The lines of {job} break where method {method} measured ({}, the last {}): numbers of different methods \
             are not comparable.",
            units::counted(began.len() as u64, "run"),
            began[began.len() - 1]
        )
    });
    told.collect()
}

/// The command for two runs, where there are few.
fn until_then(setup: &SetUp) -> Option<Statement> {
    let few = setup.series.iter().filter(|series| !is_followed(series)).map(|series| series.used).max()?;
    match setup.runs.as_slice() {
        [first, .., last] => {
            let compare = shell::command(["compare", &first.file, &last.file]);
            Some(Statement::Command(format!("{few} of {LEAST_RUNS} runs; until then: {compare}")))
        }
        _ => {
            let words = format!("{few} of {LEAST_RUNS} runs: a second one can be compared with it.");
            Some(Statement::Sentence(words))
        }
    }
}

/// For a terminal: the changes first, with the commands that decide.
pub fn blocks(report: &HistoryReport) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(heading(report))];
    for (series, change) in all_changes(report) {
        blocks.push(Block::Paragraph(in_words(series, change)));
        if change.machine.is_none() {
            blocks.push(Block::Aside(format!("  decide: {}", change.decide)));
        }
    }
    for setup in &report.setups {
        let table = Block::Table(Grid::of(lines(setup)));
        blocks.extend([Block::Gap, Block::Paragraph(title(setup)), table]);
    }
    let notes = notes(report);
    blocks.extend((!notes.is_empty()).then_some(Block::Gap));
    blocks.extend(notes.into_iter().map(Statement::block));
    blocks
}
