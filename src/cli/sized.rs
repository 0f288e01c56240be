//! What is printed of a run that has its job at several sizes or with several round-trip times: one table of how times
//! grow, and each part by itself.

use anyhow::Result;

use super::Exit;
use super::args::Look;
use super::shown::{all, headline, text};
use crate::model::record::Record;
use crate::report::cells::{self, Row};
use crate::report::sizes::{self, Axis, SizeGrowth};
use crate::report::standing::{Standings, standings};
use crate::report::table::{self, TableLine};
use crate::report::trials::{self, Trial};
use crate::report::warn::{self, Warning, WarningInput};
use crate::report::{batch, claims, columns, exit, export, json, orders, words};

/// The records of each size.
pub type SizedRecords = Vec<(u64, Vec<Record>)>;

/// The rows of all sizes; of a run that has one size its own.
pub fn rows(records: &[Record]) -> Vec<Row> {
    let of = |records: &[Record]| cells::rows(records, &standings(records));
    match sizes::parts(records).as_slice() {
        [] => of(records),
        parts => parts.iter().flat_map(|(_, records)| of(records)).collect(),
    }
}

/// How a run ends: the worst of its sizes decides. `ahead` are the trials of a larger job.
pub fn exit(records: &[Record], ahead: &[Record]) -> Exit {
    match sizes::parts(records).as_slice() {
        [] => exit_of_part(records, ahead),
        parts => exit::worst(parts.iter().map(|(_, records)| exit_of_part(records, ahead))),
    }
}

fn exit_of_part(records: &[Record], ahead: &[Record]) -> Exit {
    let standings = standings(records);
    let rows = cells::rows(records, &standings);
    exit::of(&WarningInput { records, ahead, rows: &rows, points: &[], standings: &standings })
}

/// The table as far as it is; nothing where the run has one size.
pub fn table(records: &[Record], width: usize) -> Option<String> {
    let parts = Some(sizes::parts(records)).filter(|parts| !parts.is_empty())?;
    let axis = Axis::of(records);
    let grown = sizes::grown(&axis, &rows_of(&parts, &standings_of(&parts)));
    Some(table::layout(&lines(&axis, &parts, &grown, false), width))
}

/// What is printed, and how a command that did no more than that ends.
pub fn shown(records: &[Record], look: &Look) -> Result<(String, Exit)> {
    let parts = sizes::parts(records);
    let standings = standings_of(&parts);
    Ok((printed(&parts, &standings, look)?, exit(records, &[])))
}

pub fn standings_of(parts: &SizedRecords) -> Vec<(u64, Standings<'_>)> {
    parts.iter().map(|(size, records)| (*size, standings(records))).collect()
}

/// The rows of each size.
pub fn rows_of(parts: &SizedRecords, standings: &[(u64, Standings<'_>)]) -> Vec<(u64, Vec<Row>)> {
    let each = parts.iter().zip(standings);
    each.map(|((size, records), (_, standings))| (*size, cells::rows(records, standings))).collect()
}

pub fn lines(axis: &Axis, parts: &SizedRecords, grown: &[SizeGrowth], wide: bool) -> Vec<TableLine> {
    if *axis == Axis::Order {
        return orders::lines(parts, grown);
    }
    sizes::lines(axis, grown, &parts.iter().map(|(size, _)| *size).collect::<Vec<_>>(), wide)
}

fn printed(parts: &SizedRecords, standings: &[(u64, Standings<'_>)], look: &Look) -> Result<String> {
    let rows = rows_of(parts, standings);
    // What holds of all sizes is told of the largest.
    let ((_, records), (_, largest)) = (&parts[parts.len() - 1], &standings[standings.len() - 1]);
    let seen = WarningInput { records, ahead: &[], rows: &rows[rows.len() - 1].1, points: &[], standings: largest };
    if look.json || look.csv {
        return for_programs(&seen, parts, standings, look);
    }
    if look.all {
        return Ok(all(&trials_of(parts)?, &words::headline(records, largest), look));
    }
    let axis = Axis::of(records);
    let grown = sizes::grown(&axis, &rows);
    let warned = warn::printed(&warnings(parts, standings), &look.no_warn, look.wide);
    let sentence = sentence(&axis, &grown, standings, &rows);
    let lines = lines(&axis, parts, &grown, look.wide);
    if look.markdown {
        let parts = [export::markdown(&lines), export::listed(&warned), export::escaped(&sentence)];
        return Ok(export::page(&headline(&seen), &parts));
    }
    let width = if look.wide { usize::MAX } else { table::width() };
    let mut tables = table::layout(&lines, width);
    if look.wide {
        tables += &each_size(parts, standings)?;
    }
    text(&seen, look, &tables, &warned, &sentence)
}

/// What may be said of all sizes, and of the largest beside a batch engine.
fn sentence(axis: &Axis, grown: &[SizeGrowth], standings: &[(u64, Standings<'_>)], rows: &[(u64, Vec<Row>)]) -> String {
    let ((step, standing), (_, rows)) = (&standings[standings.len() - 1], &rows[rows.len() - 1]);
    let of_batch = batch::sentence(rows, standing);
    let of_batch = if of_batch.is_empty() { of_batch } else { format!("At {}: {of_batch}", axis.at(*step)) };
    let said = [sizes::sentence(axis, grown, standings), of_batch];
    let said = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(" ");
    let noisy = standings.iter().map(|(_, standings)| standings).find(|standings| standings.is_noisy());
    claims::doubted(noisy.unwrap_or(standing), said)
}

/// CSV and JSON of all sizes together.
fn for_programs(
    seen: &WarningInput<'_>,
    parts: &SizedRecords,
    standings: &[(u64, Standings<'_>)],
    look: &Look,
) -> Result<String> {
    let mut rows = rows_of(parts, standings);
    for ((_, rows), ((_, records), (_, standings))) in rows.iter_mut().zip(parts.iter().zip(standings)) {
        cells::fill_in(rows, records, standings)?;
    }
    let axis = Axis::of(seen.records);
    let grown = sizes::grown(&axis, &rows);
    let lines = sizes::fields_of(&axis, &grown, &rows, standings);
    let each = rows.iter().zip(standings);
    let claims =
        || each.flat_map(|((step, rows), (_, standings))| json::claims(rows, standings, axis.part(*step))).collect();
    let told = json::ReportJson {
        exit: exit::worst(parts.iter().map(|(_, records)| exit_of_part(records, &[]))),
        claims: if look.json { claims() } else { Vec::new() },
        warnings: warn::heard(&warnings(parts, standings), &look.no_warn),
        sentence: sentence(&axis, &grown, standings, &rows),
    };
    match look {
        Look { csv: true, all: true, .. } => Ok(export::csv(trials::TRIALS, &trials_of(parts)?, look.wide)),
        Look { csv: true, .. } => Ok(export::csv(columns::ROWS, &lines, look.wide)),
        Look { all: true, .. } => json::document(seen, &told, json::JsonRows::Trials(&trials_of(parts)?)),
        _ => json::document(seen, &told, json::JsonRows::Rows(&lines)),
    }
}

/// Each size by itself, with all its columns and what may be said of it.
fn each_size(parts: &SizedRecords, standings: &[(u64, Standings<'_>)]) -> Result<String> {
    let mut said = String::new();
    for ((size, records), (_, standings)) in parts.iter().zip(standings) {
        let mut rows = cells::rows(records, standings);
        cells::fill_in(&mut rows, records, standings)?;
        let (at, table) = (Axis::of(records).at(*size), table::table(&rows, true));
        let sentence = table::wrap(&claims::sentence(&rows, standings), table::width()).join("\n");
        said += &format!("{at}:\n{table}{sentence}\n");
    }
    Ok(said)
}

/// Of all sizes, each once: that of the largest it holds of.
pub fn warnings(parts: &SizedRecords, standings: &[(u64, Standings<'_>)]) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for ((size, records), (_, standings)) in parts.iter().zip(standings).rev() {
        let rows = cells::rows(records, standings);
        let warned = warn::warnings(&WarningInput { records, ahead: &[], rows: &rows, points: &[], standings });
        for warning in warned {
            if !found.iter().any(|known| known.id == warning.id) {
                found.push(warning.at(&Axis::of(records).at(*size)));
            }
        }
    }
    found
}

/// All trials, in the order in which they were run.
fn trials_of(parts: &SizedRecords) -> Result<Vec<Trial>> {
    let mut found = Vec::new();
    for (_, records) in parts {
        found.extend(trials::trials(records, &[], false)?);
    }
    found.sort_by_key(|trial| (trial.block, trial.position));
    // What has no network is in every part.
    found.dedup_by_key(|trial| (trial.block, trial.position, trial.target.clone()));
    Ok(found)
}
