//! The page of results files over time: what may have changed, a picture for each target, tables and files. It holds no
//! records: each file has a page of its own.

use maud::html;

use super::{Mask, RawResults, style, tables};
use crate::chart::{document, figures};
use crate::history::{self, HistoryReport};

/// The whole page. `files` are the results files, `passed` those that could not be followed and why. The same input
/// gives the same bytes.
pub fn history_page(report: &HistoryReport, mask: &Mask, files: &[RawResults], passed: &[String]) -> String {
    let heading = history::heading(report);
    let (charts, left_out) = history::charts(report);
    let notes = history::notes(report);
    let body = html! {
        h1 { (heading) }
        p.grey { (report.runs) @if report.runs == 1 { " run" } @else { " runs" } ", as their results files tell" }
        @if !notes.is_empty() { ul { @for note in &notes { li { (note.words()) } } } }
        @for chart in &charts {
            h2 { (chart.title) }
            (figures(chart))
        }
        @if left_out > 0 { p { "Not drawn: " (left_out) " more targets. Name fewer files." } }
        h2 { "Targets" }
        @for grid in &history::tables(report) { (tables::table(&grid.title, &grid.lines)) }
        p.grey {
            "A change is looked for in runs that may be held against each other. It is only a reason to look: runs of \
             different days have no blocks in common. The command beside it runs both in the same blocks."
        }
        @if !passed.is_empty() {
            details { summary { "Passed over (" (passed.len()) ")" } ul { @for what in passed { li { (what) } } } }
        }
        details {
            summary { "Results files (" (files.len()) ")" }
            ul { @for file in files { li { code { (file.name) } " SHA-256 " code { (file.sha256) } } } }
        }
    };
    style::document(&mask.applied("kvfair: results over time"), &mask.applied(&body.into_string()))
}

/// The pictures alone, as a file of their own. Nothing where no run has a number.
pub fn history_svg(report: &HistoryReport) -> Option<String> {
    let (charts, left_out) = history::charts(report);
    let heading = history::heading(report);
    let heading = if left_out > 0 { format!("{heading} Not drawn: {left_out} more targets.") } else { heading };
    (!charts.is_empty()).then(|| document(&heading, &charts))
}
