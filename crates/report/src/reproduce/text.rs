//! Posts beside today, in words.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::json;

use super::judge::once;
use super::{CellReport, Declined, PostReport, headline, stood_in};
use crate::columns::{Column, exported, value};
use crate::exit::Exit;
use crate::grid::Grid;
use crate::render::csv::csv;
use crate::render::json;
use crate::render::{Block, Medium, Shown};
use crate::table::TableLine;
use crate::versus::versus;
use kvfair_core::units;

/// Said where a ratio has no interval.
pub const SINGLE_RUN: &str = "The post's figures are of a single run each: no interval.";
pub const NO_COUNTER: &str = "Joules per op: no counter here.";

/// What `kvfair reproduce` shows.
pub struct PostsShown {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub exit: Exit,
    pub reports: Vec<PostReport>,
    pub declined: Vec<Declined>,
}

/// A cell of a post's table.
struct PostRow {
    post: String,
    panel: String,
    unit: String,
    cell: CellReport,
}

const COLUMNS: &[Column<PostRow>] = &[
    exported("post", |row| row.post.as_str().into()),
    exported("panel", |row| row.panel.as_str().into()),
    exported("store", |row| row.cell.name.as_str().into()),
    exported("target", |row| value(row.cell.target.as_deref())),
    exported("stand_in", |row| value(row.cell.stand_in.as_deref())),
    exported("unit", |row| row.unit.as_str().into()),
    exported("then", |row| value(row.cell.then)),
    exported("then_ratio", |row| value(row.cell.then_ratio)),
    exported("today", |row| value(row.cell.today)),
    exported("today_ratio", |row| value(row.cell.today_ratio.map(|ratio| ratio.ratio))),
    exported("today_ratio_low", |row| value(row.cell.today_ratio.and_then(|ratio| ratio.low))),
    exported("today_ratio_high", |row| value(row.cell.today_ratio.and_then(|ratio| ratio.high))),
    exported("cpu_us_per_op", |row| value(row.cell.cpu_us_per_op)),
    exported("joules_per_op", |row| value(row.cell.joules_per_op)),
    exported("reason", |row| value(row.cell.why.as_deref())),
];

impl Shown for PostsShown {
    fn exit(&self) -> Exit {
        self.exit
    }

    /// All posts, then what is declined.
    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let declined = self.declined.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
        let declined = Block::Subject("Mentioned by the posts and not measured:".to_string(), declined);
        let headline = std::iter::once(Block::Headline(headline(&self.reports)));
        Ok(headline.chain(self.reports.iter().flat_map(of_post)).chain([Block::Gap, declined]).collect())
    }

    fn csv(&self) -> Result<String> {
        let mut rows = Vec::new();
        for (report, panel) in self.reports.iter().flat_map(|report| report.panels.iter().map(move |one| (report, one)))
        {
            rows.extend(panel.rows.iter().map(|cell| PostRow {
                post: report.number.clone(),
                panel: panel.title.clone(),
                unit: report.unit.clone(),
                cell: cell.clone(),
            }));
        }
        Ok(csv(COLUMNS, &rows, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        let PostsShown { command, reports, declined, .. } = self;
        json::object(command, exit, json!({ "headline": headline(reports), "posts": reports, "declined": declined }))
    }
}

fn of_post(report: &PostReport) -> Vec<Block> {
    let mut setup = vec![
        format!("{}, {}", report.author, report.date),
        report.address.clone(),
        format!("then: {}; {}", report.then.machine, report.then.software),
    ];
    match &report.today {
        Some(today) => setup
            .extend([format!("today: {}; kvfair {}", today.machine, today.kvfair), format!("run: {}", today.headline)]),
        None => setup.push("today: not run".to_string()),
    }
    setup.push(format!("command: {}", report.command));
    let sentences = report.sentences.iter().map(|sentence| {
        let why = if sentence.why.is_empty() { String::new() } else { format!(" {}.", capital(&sentence.why)) };
        format!("{}: {}{why}", sentence.in_words(), sentence.says)
    });
    let title = format!("{} ({})", capital(&report.unit), report.about);
    vec![
        Block::Gap,
        Block::Subject(format!("{}  {}", report.number, report.title), setup),
        Block::Gap,
        Block::Table(Grid { title, lines: table(report) }),
        Block::List(notes(report)),
        Block::Gap,
        Block::Subject("sentences:".to_string(), sentences.collect()),
    ]
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
