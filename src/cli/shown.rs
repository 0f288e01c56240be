//! What is printed of a run's records, and where they come from when it was another day's run.

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::args::Look;
use super::{Exit, complain, grown, levered, sized, target, terminal, versioned};
use crate::harness::load::{self, Parts};
use crate::harness::save;
use crate::jobs;
use crate::model::answers;
use crate::model::record::Record;
use crate::model::trial::Durability;
use crate::report::columns::PartStep;
use crate::report::next::Known;
use crate::report::point::{Point, Statistic};
use crate::report::run_report::{Detail, RunReport};
use crate::report::trials::{self, Trial};
use crate::report::{
    ahead, alike, batch, claims, columns, costs, exit, export, grid, json, next, notes, remarks, servers, sizes,
    store_stats, sweep, table, versions, warn, whole, words,
};
use crate::stats::parallel;
use crate::stores::{self, Adapter};

/// The error of results of which nothing can be shown.
#[derive(Debug)]
pub struct NothingShown(pub String);

impl std::fmt::Display for NothingShown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NothingShown {}

/// The records of a results file, which are of one run.
pub fn read(path: &Path, parts: Parts) -> Result<Vec<Record>> {
    // Asked before: what ends meanwhile is called unfinished, and nothing unfinished is called whole.
    let is_under_way = save::is_being_written(path);
    let mut records = load::records(path, parts)?;
    records.retain(|record| !record.discarded);
    if records.is_empty() {
        let what = format!("{}: the machine disturbed every trial", path.display());
        return Err(anyhow!(NothingShown(format!("{what}\nhint: run it again when the machine is quiet"))));
    }
    if let Some((place, what)) = alike::mixed(&records) {
        bail!(
            "{}:{}: {what}: these are not shown together with line 1\nhint: show each run's own file; `kvfair compare \
             ONE.jsonl OTHER.jsonl` holds two against each other",
            path.display(),
            place + 1
        );
    }
    records.sort_by_key(|record| record.ahead);
    answers::note(&mut records);
    if is_under_way {
        complain(&format!("kvfair: {}: the run is still going on: this is not its end", path.display()));
        records.iter_mut().for_each(|record| record.is_under_way = true);
    } else if let Some(what) = whole::cut_off(&records) {
        complain(&format!("kvfair: {}: the run was cut off by its time limit or by a signal: {what}", path.display()));
    }
    Ok(records)
}

/// What is printed of a run's records, and how a command that did no more than that ends.
pub fn shown(records: &[Record], look: &Look) -> Result<(String, Exit)> {
    let Some(labels) = versioned::labels(records).filter(|_| !look.csv && !look.all) else {
        return of_a_run(records, look);
    };
    let report = versions::report(records, &labels);
    let (text, exit) = of_a_run(&report.named(records), look)?;
    let below = versioned::told(&report, look, (&records[0].run.command, exit))?;
    // As JSON there is one document, the versions.
    Ok((if look.json { below } else { format!("{text}{below}") }, exit))
}

fn of_a_run(records: &[Record], look: &Look) -> Result<(String, Exit)> {
    if levered::is_levers(records) {
        return match look {
            Look { csv: true, .. } | Look { markdown: true, .. } | Look { all: true, .. } | Look { wide: true, .. } => {
                shown(&levered::by_targets(records), look)
            }
            _ => levered::shown(records, look),
        };
    }
    if grown::is_growth(records) {
        return grown::shown(records, look);
    }
    if !sizes::parts(records).is_empty() {
        return sized::shown(records, look);
    }
    let report = report(records, look, detail(look))?;
    let text = match look {
        Look { json: true, .. } | Look { csv: true, .. } => for_programs(&report, look)?,
        Look { all: true, .. } => all(&trials_of(&report)?, &headline(&report), look),
        _ if report.is_swept => swept(&report, look)?,
        _ => plain(&report, look)?,
    };
    Ok((text, exit::of(&report)))
}

/// The report of a run, with the statistic of `--stat`.
pub fn report<'a>(records: &'a [Record], look: &Look, detail: Detail) -> Result<RunReport<'a>> {
    let mut report = RunReport::of(records, detail)?;
    if look.stat == Statistic::Best {
        report.points.iter_mut().for_each(Point::tell_best);
    }
    Ok(report)
}

/// The detail that these options show.
pub fn detail(look: &Look) -> Detail {
    if look.json || look.csv { Detail::All } else { Detail::Table { wide: look.wide } }
}

fn trials_of(report: &RunReport<'_>) -> Result<Vec<Trial>> {
    trials::trials(report.records, report.ahead, report.is_swept)
}

/// Prints what [`shown`] made: what people read in colours where they are wanted.
pub fn print_shown(text: &str, look: &Look) -> Result<()> {
    if look.json || look.csv || look.markdown { terminal::print(text) } else { terminal::print_table(text) }
}

/// CSV and JSON: of rows, or of all trials.
fn for_programs(report: &RunReport<'_>, look: &Look) -> Result<String> {
    let trials = if look.all { trials_of(report)? } else { Vec::new() };
    let lines = match report.is_swept {
        true => columns::swept_lines(&report.points, &report.rows),
        false => columns::lines(&report.rows, &report.standings),
    };
    if look.csv {
        return Ok(match look.all {
            true => export::csv(trials::TRIALS, &trials, look.wide),
            false => export::csv(columns::ROWS, &lines, look.wide),
        });
    }
    let document = json::ReportJson {
        exit: exit::of(report),
        claims: json::claims(report, PartStep::default()),
        warnings: warn::heard(&warn::warnings(report), &look.no_warn),
        sentence: sentence(report),
    };
    let rows = if look.all { json::JsonRows::Trials(&trials) } else { json::JsonRows::Rows(&lines) };
    json::document(report, &document, rows)
}

/// A row a target.
fn plain(report: &RunReport<'_>, look: &Look) -> Result<String> {
    let rows = &report.rows;
    let is_many = costs::is_many(report.records);
    let (sentence, warned) = parallel::both(is_many, || sentence(report), || warned(report, look));
    Ok(match look {
        Look { markdown: true, .. } => {
            let table = export::markdown(&table::lines(rows, look.wide, table::Ranks::InAColumn));
            export::page(&headline(report), &[table, export::listed(&warned), export::escaped(&sentence)])
        }
        _ => text(report, look, &table::table(rows, look.wide), &warned, &sentence)?,
    })
}

pub fn sentence(report: &RunReport<'_>) -> String {
    if !report.points.is_empty() {
        return claims::doubted(&report.standings, sweep::sentence(&report.points));
    }
    let (rows, standings) = (&report.rows, &report.standings);
    let sentences = [claims::sentence(rows, standings), batch::sentence(rows, standings), of_size(report)];
    sentences.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What the larger trials of a first look tell.
fn of_size(report: &RunReport<'_>) -> String {
    let full = report.ahead.first().and_then(|record| jobs::find(&record.job.name)).map(|kind| kind.default_units);
    full.map_or_else(String::new, |full| ahead::sentence(&report.rows, report.ahead, full, &report.standings.noise))
}

/// A table a part of the job and measure.
fn swept(report: &RunReport<'_>, look: &Look) -> Result<String> {
    let (rows, points) = (&report.rows, &report.points);
    let sentence = sentence(report);
    Ok(match look {
        Look { markdown: true, .. } => {
            let grids = grid::grids(points, look.wide, usize::MAX).into_iter();
            let tables =
                grids.map(|grid| format!("{}\n\n{}", export::escaped(&grid.title), export::markdown(&grid.lines)));
            let remarks = export::listed(&[remarks::remarks(points), warned(report, look)].concat());
            let rest = [remarks, export::markdown(&grid::silent(rows)), export::escaped(&sentence)];
            export::page(&headline(report), &tables.chain(rest).collect::<Vec<_>>())
        }
        _ => text(report, look, &grid::tables(points, rows, look.wide), &warned(report, look), &sentence)?,
    })
}

/// A line a trial, however long.
pub fn all(trials: &[Trial], headline: &str, look: &Look) -> String {
    match look.markdown {
        true => export::page(headline, &[export::markdown(&trials::lines(trials))]),
        false => format!("{headline}\n{}", table::layout(&trials::lines(trials), usize::MAX)),
    }
}

pub fn text(report: &RunReport<'_>, look: &Look, table: &str, warned: &[String], sentence: &str) -> Result<String> {
    let (records, rows) = (report.records, &report.rows);
    let parts = [
        headline(report),
        table.to_string(),
        if look.wide { store_stats::section(records)? } else { String::new() },
        table::wrap(&words::medians(rows), table::width()).join("\n"),
        words::rough(rows, look.wide).to_string(),
        words::misses(rows, records),
        words::stale(rows),
        servers::told(records),
        words::answer(records),
        notes::notes(records, look.wide),
        table::wrap(&words::stream(records), table::width()).join("\n"),
        wrapped(warned),
        table::wrap(sentence, table::width()).join("\n"),
        next::next(report, &Known { file: look.file.as_deref(), keeps_crash, has_name }),
    ];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    Ok(format!("{}\n", parts.join("\n")))
}

/// Whether a store of that name keeps the durability level. One that is not known here is another kvfair's: it is not
/// forbidden.
pub fn keeps_crash(store: &str) -> bool {
    stores::find(store).is_none_or(|adapter| (adapter.keeps)(Durability::Crash).is_ok())
}

/// Whether users can type a store's name: a server may have told another one.
pub fn has_name(store: &str) -> bool {
    stores::find(store).is_some()
}

pub fn headline(report: &RunReport<'_>) -> String {
    words::headline(report.records, &report.standings)
}

/// A line each, however long.
fn warned(report: &RunReport<'_>, look: &Look) -> Vec<String> {
    warn::printed(&warn::warnings(report), &look.no_warn, look.wide)
}

fn wrapped(lines: &[String]) -> String {
    lines.iter().flat_map(|line| table::wrap(line, table::width())).collect::<Vec<_>>().join("\n")
}

/// Says in one line which stores are not here, on a terminal.
pub fn tell_absent() {
    let can_be_here = |adapter: &&&Adapter| adapter.role.is_offered() && !adapter.is_only_by_url();
    let absent = stores::ALL.iter().filter(can_be_here).filter(|adapter| !target::is_here(adapter));
    let absent: Vec<&str> = absent.map(|adapter| adapter.name).collect();
    if !absent.is_empty() && terminal::is_watched() {
        complain(&format!("not here: {} (`kvfair stores` says how to get them)", absent.join(", ")));
    }
}
