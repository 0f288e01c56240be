//! What is printed of a run that has its job at several sizes or with several round-trip times: one table of how times
//! grow, and each part by itself.

use anyhow::Result;

use super::Exit;
use super::args::Look;
use super::shown::{Around, CLAIMS, all, around, fitted, is_brief};
use crate::model::record::Record;
use crate::report::cells::Row;
use crate::report::grid::Grid;
use crate::report::render::csv::csv;
use crate::report::render::{Block, Medium, Shown};
use crate::report::run_report::{Detail, RunReport};
use crate::report::sizes::{self, Axis, SizedReport};
use crate::report::table::{self, Ranks, TableColumns, TableLine};
use crate::report::to_know::Fact;
use crate::report::trials::{self, Trial};
use crate::report::warn::{self, Warning};
use crate::report::{answer, batch, claims, columns, exit, json, orders};

/// The rows of all sizes; of a run that has one size its own.
pub fn rows(records: &[Record]) -> Vec<Row> {
    match sizes::parts(records).as_slice() {
        [] => RunReport::of_rows(records).rows,
        parts => parts.iter().flat_map(|(_, records)| RunReport::of_rows(records).rows).collect(),
    }
}

/// How a run ends: the worst of its sizes decides.
pub fn exit(records: &[Record]) -> Exit {
    match sizes::parts(records).as_slice() {
        [] => exit::of(&RunReport::of_rows(records)),
        parts => exit::worst(parts.iter().map(|(_, records)| exit::of(&RunReport::of_rows(records)))),
    }
}

/// The table as far as it is; nothing where the run has one size.
pub fn table(records: &[Record], width: usize) -> Option<String> {
    let parts = Some(sizes::parts(records)).filter(|parts| !parts.is_empty())?;
    let report = SizedReport::of(&parts, Detail::Table { wide: false }).ok()?;
    Some(table::layout(&lines(&report, false), width))
}

pub fn lines(report: &SizedReport<'_>, wide: bool) -> Vec<TableLine> {
    if report.axis == Axis::Order { orders::lines(report) } else { sizes::lines(report, wide) }
}

pub struct SizedShown<'a> {
    pub report: &'a SizedReport<'a>,
    pub look: &'a Look,
}

impl SizedShown<'_> {
    /// All trials, in the order in which they were run.
    fn trials(&self) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        for (_, part) in &self.report.parts {
            trials.extend(trials::trials(part.records, &[], false)?);
        }
        trials.sort_by_key(|trial| (trial.block, trial.position));
        // What has no network is in every part.
        trials.dedup_by_key(|trial| (trial.block, trial.position, trial.target.clone()));
        Ok(trials)
    }
}

impl Shown for SizedShown<'_> {
    /// The worst of its sizes decides.
    fn exit(&self) -> Exit {
        exit::worst(self.report.parts.iter().map(|(_, part)| exit::of(part)))
    }

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        let SizedShown { report, look } = self;
        if look.all {
            return Ok(all(report.largest(), &self.trials()?));
        }
        let table = fitted(look.wide, Grid::of(lines(report, look.wide)));
        let mut tables = vec![table];
        if look.wide && medium != Medium::Page {
            tables.extend(each_size(report)?);
        }
        let said = if is_brief(look, medium) { sentences(report) } else { vec![sentence(report)] };
        let said = said.into_iter().map(|sentence| Fact::new(CLAIMS, sentence)).collect();
        let told = Around { answer: answer(report), warnings: warnings(report), said };
        around(report.largest(), look, medium, tables, told)
    }

    fn csv(&self) -> Result<String> {
        let SizedShown { report, look } = self;
        Ok(match look.all {
            true => csv(trials::TRIALS, &self.trials()?, look.wide),
            false => csv(columns::ROWS, &sizes::fields_of(report), look.wide),
        })
    }

    fn json(&self, exit: Exit) -> Result<String> {
        let SizedShown { report, look } = self;
        let claims = report.parts.iter().flat_map(|(step, part)| json::claims(part, report.axis.part(*step)));
        let document = json::ReportJson {
            exit,
            claims: claims.collect(),
            warnings: warn::heard(&warnings(report), &look.no_warn),
            sentence: sentence(report),
        };
        match look.all {
            true => json::document(report.largest(), &document, json::JsonRows::Trials(&self.trials()?)),
            false => json::document(report.largest(), &document, json::JsonRows::Rows(&sizes::fields_of(report))),
        }
    }
}

fn sentence(report: &SizedReport<'_>) -> String {
    let noisy = report.parts.iter().map(|(_, part)| &part.standings).find(|standings| standings.is_noisy());
    claims::doubted(noisy.unwrap_or(&report.largest().standings), sentences(report).join(" "))
}

/// That of the largest size.
pub fn answer(report: &SizedReport<'_>) -> String {
    let (step, largest) = &report.parts[report.parts.len() - 1];
    answer::answer_at(&report.axis.at(*step), largest)
}

/// What may be said of all sizes, and of the largest beside a batch engine.
pub fn sentences(report: &SizedReport<'_>) -> Vec<String> {
    let (step, part) = &report.parts[report.parts.len() - 1];
    let of_batch = batch::sentence(&part.rows, &part.standings);
    let of_batch = (!of_batch.is_empty()).then(|| format!("At {}: {of_batch}", report.axis.at(*step)));
    sizes::sentences(report).into_iter().chain(of_batch).collect()
}

/// Each size by itself, with all its columns and what may be said of it.
fn each_size(report: &SizedReport<'_>) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    for (size, part) in &report.parts {
        let part = RunReport::of(part.records, Detail::All)?;
        let lines = table::lines(&part.rows, TableColumns::All, Ranks::BeforeNames);
        blocks.extend([
            Block::Aside(format!("{}:", report.axis.at(*size))),
            Block::WideTable(Grid::of(lines)),
            Block::Paragraph(claims::sentence(&part.rows, &part.standings)),
        ]);
    }
    Ok(blocks)
}

/// Of all sizes, each once: that of the largest it holds of.
pub fn warnings(report: &SizedReport<'_>) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for (size, part) in report.parts.iter().rev() {
        for warning in warn::warnings(part) {
            if !warnings.iter().any(|known| known.id == warning.id) {
                warnings.push(warning.at(&report.axis.at(*size)));
            }
        }
    }
    warnings
}
