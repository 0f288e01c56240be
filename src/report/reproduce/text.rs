//! Posts beside today, as text.

use std::collections::BTreeSet;

use super::judge::once;
use super::{CellReport, Declined, PostReport, headline, stood_in};
use crate::model::units;
use crate::report::table::{TableLine, layout, width, wrap};
use crate::report::versus::versus;

/// Said where a ratio has no interval.
pub const SINGLE_RUN: &str = "The post's figures are of a single run each: no interval.";
pub const NO_COUNTER: &str = "Joules per op: no counter here.";

/// All posts, then what is declined.
pub fn text(reports: &[PostReport], declined: &[Declined]) -> String {
    let mut lines = vec![headline(reports), String::new()];
    for report in reports {
        lines.extend(of_post(report));
        lines.push(String::new());
    }
    lines.push("Mentioned by the posts and not measured:".to_string());
    lines.extend(declined.iter().flat_map(|one| hanging("  ", &format!("{}: {}", one.what, one.why))));
    format!("{}\n", lines.join("\n"))
}

fn of_post(report: &PostReport) -> Vec<String> {
    let mut lines = hanging("", &format!("{}  {}", report.number, report.title));
    lines.extend(hanging("  ", &format!("{}, {}", report.author, report.date)));
    // Whole, so that it can be copied.
    lines.push(format!("  {}", report.address));
    lines.extend(hanging("  ", &format!("then: {}; {}", report.then.machine, report.then.software)));
    match &report.today {
        Some(today) => {
            lines.extend(hanging("  ", &format!("today: {}; kvfair {}", today.machine, today.kvfair)));
            lines.extend(hanging("  ", &format!("run: {}", today.headline)));
        }
        None => lines.push("  today: not run".to_string()),
    }
    lines.extend(hanging("  ", &format!("command: {}", report.command)));
    lines.push(String::new());
    lines.push(format!("{} ({})", capital(&report.unit), report.about));
    lines.extend(layout(&table(report), width()).lines().map(str::to_string));
    lines.extend(notes(report).iter().flat_map(|note| wrap(note, width())));
    lines.push(String::new());
    for sentence in &report.sentences {
        let why = if sentence.why.is_empty() { String::new() } else { format!(" {}.", capital(&sentence.why)) };
        let words = format!("{}: {}{why}", sentence.in_words(), sentence.says);
        lines.extend(hanging("  ", &words));
    }
    lines
}

/// The first line as far to the left as `indent`, the others two further.
fn hanging(indent: &str, words: &str) -> Vec<String> {
    let lines = wrap(words, width().saturating_sub(indent.len() + 2));
    let each = lines.iter().enumerate();
    each.map(|(place, line)| format!("{indent}{}{line}", if place == 0 { "" } else { "  " })).collect()
}

/// A sentence begins so.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The headings, then the cells of each panel.
pub fn table(report: &PostReport) -> Vec<TableLine> {
    let has_joules = has_joules(report);
    let joules = if has_joules { &["J/op"][..] } else { &[] };
    let headings = ["store", "then", "ratio then", "today", "ratio today", "CPU us/op"];
    let headings = headings.iter().chain(joules).map(|heading| heading.to_string());
    let mut lines = vec![TableLine::Cells(headings.collect())];
    for panel in &report.panels {
        if !panel.title.is_empty() {
            lines.push(TableLine::Words(panel.title.clone()));
        }
        lines.extend(panel.rows.iter().map(|row| cells(row, has_joules)));
    }
    lines
}

fn cells(row: &CellReport, has_joules: bool) -> TableLine {
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_string(), units::digits);
    let then_ratio = row.then_ratio.map_or_else(|| "-".to_string(), once);
    let today_ratio = match row.today_ratio {
        Some(ratio) => versus(ratio),
        None if row.is_base && row.today.is_some() => "1.00x".to_string(),
        None => "-".to_string(),
    };
    let cells = [marked(row), number(row.then), then_ratio, number(row.today), today_ratio, number(row.cpu_us_per_op)];
    let joules = has_joules.then(|| row.joules_per_op.map_or_else(|| "-".to_string(), joules));
    TableLine::Cells(cells.into_iter().chain(joules).collect())
}

/// "12 uJ".
fn joules(joules: f64) -> String {
    format!("{} uJ", units::digits(joules * 1e6))
}

/// The name of what ran: with a star where it is not what the post names.
pub fn marked(row: &CellReport) -> String {
    row.stand_in.as_ref().map_or_else(|| row.name.clone(), |words| stood_in(&row.name, words))
}

pub fn has_joules(report: &PostReport) -> bool {
    report.panels.iter().flat_map(|panel| &panel.rows).any(|row| row.joules_per_op.is_some())
}

/// What stands below the table.
pub fn notes(report: &PostReport) -> Vec<String> {
    let rows = || report.panels.iter().flat_map(|panel| &panel.rows);
    let mut notes = Vec::new();
    let bases = report.panels.iter().find_map(|panel| panel.base.as_deref());
    notes.extend(bases.map(|base| format!("Ratios: times as long as {base}.")));
    if rows().any(|row| row.then.is_some()) {
        notes.push(SINGLE_RUN.to_string());
    }
    let stand_ins: BTreeSet<&str> = rows().filter_map(|row| row.stand_in.as_deref()).collect();
    notes.extend(stand_ins.iter().map(|words| format!("* {words}.")));
    let mut absent: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows() {
        let Some(why) = &row.why else { continue };
        match absent.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) if !names.contains(&row.name.as_str()) => names.push(&row.name),
            Some(_) => {}
            None => absent.push((why, vec![&row.name])),
        }
    }
    notes.extend(absent.iter().map(|(why, names)| format!("No number of {}: {why}.", names.join(", "))));
    if report.today.as_ref().is_some_and(|today| !today.counts_energy) {
        notes.push(NO_COUNTER.to_string());
    }
    notes.extend(report.differs.iter().cloned());
    notes
}
