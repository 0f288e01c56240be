//! The page of `--html`: what a command prints of a run, and more, as one file.

use std::path::Path;

use anyhow::{Error, Result};

use super::args::Look;
use super::shown::{keeps_crash, points, sentence};
use super::{complain, sized};
use crate::harness::load::BrokenLine;
use crate::harness::save;
use crate::model::answers;
use crate::model::record::Record;
use crate::model::units;
use crate::report::columns::PartStep;
use crate::report::grid::{self, Grid};
use crate::report::next::{self, Known};
use crate::report::page::{self, Mask, PageInput, PagePart, RawResults};
use crate::report::sizes::Axis;
use crate::report::standing::standings;
use crate::report::table::{self, Ranks};
use crate::report::warn::{self, WarningInput};
use crate::report::{ahead, alike, cells, json, point, sizes, sweep, whole};

/// Refused before anything is measured: a page is never overwritten.
pub fn is_to_be_new(look: &Look) -> Result<()> {
    look.html.as_deref().map_or(Ok(()), save::is_to_be_new)
}

/// Writes the page, if one was asked for. `results` is the file that the records lie in.
pub fn write(records: &[Record], look: &Look, results: Option<&Path>) -> Result<()> {
    let Some(file) = &look.html else { return Ok(()) };
    let text = text(records, look, results, None)?;
    save::write_new(&[(file.clone(), text)])?;
    complain(&format!("page: {}", file.display()));
    Ok(())
}

/// Where records come from.
struct Source {
    results: Option<RawResults>,
    broken: Option<String>,
}

fn text(records: &[Record], look: &Look, results: Option<&Path>, broken: Option<String>) -> Result<String> {
    let raw = results.map(raw).transpose()?.flatten();
    let mask = Mask::of(records);
    let records = &mask.labelled(records);
    Ok(match () {
        () if ahead::split(records).0.is_empty() => {
            page::without_results("No trial was finished, so there is nothing to show.")
        }
        () if sizes::parts(records).is_empty() => of_one_size(records, &mask, look, Source { results: raw, broken })?,
        () => of_sizes(records, &mask, look, Source { results: raw, broken })?,
    })
}

/// A page that says why there is no other.
pub fn write_why_not(look: &Look, error: &Error) {
    let Some(file) = look.html.as_ref().filter(|file| file.symlink_metadata().is_err()) else { return };
    let text = error.downcast_ref::<BrokenLine>().and_then(|line| before(line, error, look));
    let text = text.unwrap_or_else(|| page::without_results(&format!("{error:#}")));
    if save::write_new(&[(file.clone(), text)]).is_ok() {
        complain(&format!("page: {}", file.display()));
    }
}

/// What stands before a line that is no record. Nothing where that alone cannot be shown.
fn before(line: &BrokenLine, error: &Error, look: &Look) -> Option<String> {
    let mut records: Vec<Record> = line.records.iter().filter(|record| !record.discarded).cloned().collect();
    if records.is_empty() || alike::mixed(&records).is_some() {
        return None;
    }
    records.sort_by_key(|record| record.ahead);
    answers::note(&mut records);
    let read = units::thousands(line.records.len() as u64);
    let broken =
        format!("{error:#}. Records read before that line: {read}. They are shown; nothing behind it was read.");
    text(&records, look, look.file.as_deref(), Some(broken)).ok()
}

/// What comes through a pipe cannot be read twice.
fn raw(path: &Path) -> Result<Option<RawResults>> {
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(RawResults { name, sha256: save::sha256(path)? }))
}

fn of_one_size(all: &[Record], mask: &Mask, look: &Look, source: Source) -> Result<String> {
    let (records, ahead) = ahead::split(all);
    let standings = standings(records);
    let mut rows = cells::rows(records, &standings);
    let is_swept = point::is_swept(records, &standings.counted);
    let points = if is_swept { points(records, look)? } else { Vec::new() };
    if !is_swept {
        cells::fill_in(&mut rows, records, &standings)?;
    }
    let tables = match is_swept {
        true => grid::grids(&points, look.wide, usize::MAX).into_iter().chain(silent(&rows)).collect(),
        false => vec![Grid { title: String::new(), lines: table::lines(&rows, look.wide, Ranks::InAColumn) }],
    };
    let seen = WarningInput { records, ahead, rows: &rows, points: &points, standings: &standings };
    page::page(&PageInput {
        mask,
        tables,
        sentence: if is_swept { sweep::sentence(&points) } else { sentence(&seen) },
        warnings: warn::heard(&warn::warnings(&seen), &look.no_warn),
        claims: if is_swept {
            json::swept_claims(&points)
        } else {
            json::claims(&rows, &standings, PartStep::default())
        },
        next: next(&seen, look),
        cut_off: cut_off(all).filter(|_| source.broken.is_none()),
        results: source.results,
        broken: source.broken,
        parts: vec![PagePart { title: String::new(), seen }],
    })
}

fn of_sizes(all: &[Record], mask: &Mask, look: &Look, source: Source) -> Result<String> {
    let parts = sizes::parts(all);
    let standings = sized::standings_of(&parts);
    let mut rows = sized::rows_of(&parts, &standings);
    for ((_, rows), ((_, records), (_, standings))) in rows.iter_mut().zip(parts.iter().zip(&standings)) {
        cells::fill_in(rows, records, standings)?;
    }
    let axis = Axis::of(all);
    let grown = sizes::grown(&axis, &rows);
    let each = || parts.iter().zip(&standings).zip(&rows);
    let of_each = each().map(|(((size, records), (_, standings)), (_, rows))| PagePart {
        title: axis.at(*size),
        seen: WarningInput { records, ahead: &[], rows, points: &[], standings },
    });
    let page_parts: Vec<PagePart<'_>> = of_each.collect();
    let claims = each().flat_map(|((_, (_, standings)), (size, rows))| json::claims(rows, standings, axis.part(*size)));
    page::page(&PageInput {
        mask,
        tables: vec![Grid { title: String::new(), lines: sized::lines(&axis, &parts, &grown, look.wide) }],
        sentence: sizes::sentence(&axis, &grown, &standings),
        warnings: warn::heard(&sized::warnings(&parts, &standings), &look.no_warn),
        claims: claims.collect(),
        next: next(&page_parts[page_parts.len() - 1].seen, look),
        cut_off: cut_off(all).filter(|_| source.broken.is_none()),
        results: source.results,
        broken: source.broken,
        parts: page_parts,
    })
}

fn silent(rows: &[cells::Row]) -> Option<Grid> {
    let lines = grid::silent(rows);
    (!lines.is_empty()).then(|| Grid { title: "Targets without numbers".to_string(), lines })
}

fn next(seen: &WarningInput<'_>, look: &Look) -> String {
    next::next(seen, &Known { file: look.file.as_deref(), keeps_crash })
}

/// A run that is still going on is no run that was cut off.
fn cut_off(records: &[Record]) -> Option<String> {
    if records.iter().any(|record| record.is_under_way) { None } else { whole::cut_off(records) }
}
