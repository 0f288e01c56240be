//! The page of `--html`: what a command prints of a run, and more, as one file.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};

use super::args::Look;
use super::shown::{has_name, keeps_crash, read, report, sentences};
use super::{complain, grown, levered, sized, verified, versioned};
use crate::harness::load::{BrokenLine, Parts};
use crate::harness::save;
use crate::jobs;
use crate::model::answers;
use crate::model::levers::LeverPart;
use crate::model::record::Record;
use crate::model::units;
use crate::report::chart::Chart;
use crate::report::columns::PartStep;
use crate::report::grid::{self, Grid};
use crate::report::json::ClaimJson;
use crate::report::levers;
use crate::report::limits::LimitsReport;
use crate::report::next::{self, Known};
use crate::report::page::{self, LeverPage, Mask, PageInput, PagePart, RawResults};
use crate::report::run_report::{Detail, RunReport};
use crate::report::sizes::SizedReport;
use crate::report::table::{self, Ranks, TableColumns};
use crate::report::{ahead, alike, answer, cells, growth, growth_shown, json, series, sizes, versions, warn, whole};
use crate::stores;

/// Refused before anything is measured: a page is never overwritten.
pub fn is_to_be_new(html: Option<&Path>) -> Result<()> {
    html.map_or(Ok(()), save::is_to_be_new)
}

/// What a command found that is in no record: tables that come first, and its heading where it has one.
#[derive(Default)]
pub struct PageFindings<'a> {
    pub heading: Option<String>,
    pub tables: Vec<Grid>,
    /// Claims that the run's own table does not have.
    pub claims: Vec<ClaimJson<'a>>,
    /// The picture of versions.
    pub versions: Option<Chart>,
}

/// The highest rates stand before the steps of their search.
pub fn of_search<'a>(report: &LimitsReport) -> PageFindings<'a> {
    let heading = Some(report.sentence()).filter(|sentence| !sentence.is_empty());
    PageFindings { heading, tables: vec![report.table()], ..PageFindings::default() }
}

/// Writes the page, if one was asked for. `results` is the file that the records lie in.
pub fn write(records: &[Record], look: &Look, results: Option<&Path>) -> Result<()> {
    write_with(PageFindings::default(), records, look, results)
}

/// The same, of a command that found more.
pub fn write_with(found: PageFindings<'_>, records: &[Record], look: &Look, results: Option<&Path>) -> Result<()> {
    let Some(file) = &look.forms.html else { return Ok(()) };
    let text = text(found, records, look, (results, None))?;
    save::write_new(&[(file.clone(), text)])?;
    complain(&format!("page: {}", file.display()));
    Ok(())
}

/// The page of a results file, as `show --html` writes it.
pub fn of_file(path: &Path) -> Result<String> {
    let about = || format!("cannot read results from {}", path.display());
    if !path.metadata().with_context(about)?.is_file() {
        bail!("{}: it is a directory or a pipe, not a results file", about());
    }
    let mut records = read(path, Parts::All)?;
    verified::note(&mut records);
    let look = Look { file: Some(path.to_path_buf()), ..Look::default() };
    let text = text(PageFindings::default(), &records, &look, (Some(path), None));
    text.map_err(|error| anyhow!("{}: {error:#}", path.display()))
}

/// The page alone. `results` is the file that the records lie in.
pub fn of_records(records: &[Record], look: &Look, results: Option<&Path>) -> Result<String> {
    text(PageFindings::default(), records, look, (results, None))
}

/// Where records come from.
struct Source {
    results: Option<RawResults>,
    broken: Option<String>,
}

/// `from` is the file of the records, and what is wrong with it.
fn text(
    found: PageFindings<'_>,
    records: &[Record],
    look: &Look,
    from: (Option<&Path>, Option<String>),
) -> Result<String> {
    let (results, broken) = from;
    let raw = results.map(raw).transpose()?.flatten();
    let mask = Mask::of(records);
    let labels = versioned::labels(records);
    let records = &mask.labelled(records);
    let versions = labels.map(|labels| {
        let labels: Vec<String> = labels.iter().map(|label| mask.applied(label)).collect();
        versions::report(ahead::split(records).0, &labels)
    });
    let found = match (&versions, LimitsReport::of(records)) {
        (Some(report), _) => PageFindings {
            heading: Some(report.heading()),
            tables: vec![Grid { title: "Versions".to_string(), lines: report.lines(true) }],
            claims: report.claims(),
            versions: Some(report.chart()),
        },
        // The command hands over its own, which knows how each search ended.
        (None, Some(report)) if found.heading.is_none() => of_search(&report),
        (None, _) => found,
    };
    let source = Source { results: raw, broken };
    Ok(match () {
        () if ahead::split(records).0.is_empty() => {
            page::without_results("No trial was finished, so there is nothing to show.")
        }
        () if levered::is_levers(records) => of_levers(records, &mask, look, source)?,
        () if grown::is_growth(records) => of_growth(records, &mask, source)?,
        () if sizes::parts(records).is_empty() => of_one_size(found, records, &mask, look, source, None)?,
        () => of_sizes(records, &mask, look, source)?,
    })
}

/// A page that says why there is no other.
pub fn write_why_not(look: &Look, error: &Error) {
    let Some(file) = look.forms.html.as_ref().filter(|file| file.symlink_metadata().is_err()) else { return };
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
    text(PageFindings::default(), &records, look, (look.file.as_deref(), Some(broken))).ok()
}

/// What comes through a pipe cannot be read twice.
pub fn raw(path: &Path) -> Result<Option<RawResults>> {
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(RawResults { name, sha256: save::sha256(path)? }))
}

/// The blocks of gains as a run, with what they tell of levers; the other blocks are evidence.
fn of_levers(all: &[Record], mask: &Mask, look: &Look, source: Source) -> Result<String> {
    let gains = levers::of_gains(all);
    let Some(report) = levers::report(all)? else {
        return Ok(page::without_results("No trial of a lever was finished, so there is nothing to show."));
    };
    let title = |record: &Record| match record.levers.as_ref().map(|levers| levers.part) {
        Some(LeverPart::Confirm { attempt }) => Some(format!("fresh blocks {attempt}")),
        Some(LeverPart::Durability) => Some(format!("durability {}", record.durability)),
        Some(LeverPart::Synthetic) => Some("set/get alone".to_string()),
        Some(LeverPart::Gains) | None => None,
    };
    let parts: Vec<(String, Vec<Record>)> =
        levers::parts(all).into_iter().filter_map(|part| Some((title(&part[0])?, part))).collect();
    let reports: Vec<RunReport<'_>> = parts.iter().map(|(_, records)| RunReport::of_rows(records)).collect();
    let evidence = parts.iter().zip(&reports).map(|((title, _), report)| PagePart { title: title.clone(), report });
    let evidence = evidence.collect();
    let found = PageFindings { heading: Some(levers::text::heading(&report)), ..PageFindings::default() };
    of_one_size(found, &gains, mask, look, source, Some(LeverPage { report, evidence }))
}

fn of_one_size(
    found: PageFindings<'_>,
    all: &[Record],
    mask: &Mask,
    look: &Look,
    source: Source,
    levers: Option<LeverPage<'_>>,
) -> Result<String> {
    let report = report(all, look, Detail::All)?;
    let columns = if look.wide { TableColumns::All } else { TableColumns::Six };
    let tables = match report.is_swept {
        true => grid::grids(&report.points, look.wide, usize::MAX).into_iter().chain(silent(&report.rows)).collect(),
        false => vec![Grid::of(table::lines(&report.rows, columns, Ranks::InAColumn))],
    };
    let parts = vec![PagePart { title: String::new(), report: &report }];
    let (answer, sentences) = match &found.heading {
        Some(heading) => page::answer_and_rest(heading),
        None => (answer::heading(&report), sentences(&report)),
    };
    page::page(&PageInput {
        tables: found.tables.into_iter().chain(tables).collect(),
        answer,
        sentences,
        warnings: warn::heard(&warn::warnings(&report), &look.no_warn),
        claims: with_those(found.claims, json::claims(&report, PartStep::default())),
        // The next command of a run names targets as they were typed, and those of levers were not typed.
        next: if levers.is_none() { next(&report, look) } else { String::new() },
        levers,
        versions: found.versions,
        ..input(all, mask, source, parts)
    })
}

/// What every page tells of its records.
fn input<'a>(all: &[Record], mask: &'a Mask, source: Source, parts: Vec<PagePart<'a>>) -> PageInput<'a> {
    PageInput {
        mask,
        parts,
        tables: Vec::new(),
        answer: String::new(),
        sentences: Vec::new(),
        job: job(all),
        baselines: baselines(ahead::split(all).0),
        warnings: Vec::new(),
        claims: Vec::new(),
        next: String::new(),
        cut_off: cut_off(all).filter(|_| source.broken.is_none()),
        results: source.results,
        broken: source.broken,
        levers: None,
        versions: None,
        series: None,
    }
}

/// Claims of a command, and those of the table of its run that are others.
fn with_those<'a>(found: Vec<ClaimJson<'a>>, of_table: Vec<ClaimJson<'a>>) -> Vec<ClaimJson<'a>> {
    let about = |claim: &ClaimJson<'a>| (claim.measure, claim.part, claim.less, claim.more);
    let known: BTreeSet<_> = found.iter().map(about).collect();
    found.into_iter().chain(of_table.into_iter().filter(|claim| !known.contains(&about(claim)))).collect()
}

fn of_growth(records: &[Record], mask: &Mask, source: Source) -> Result<String> {
    let mut report = RunReport::of_rows(records);
    // Trials that ask for different things have no median in common.
    report.rows.iter_mut().for_each(|row| (row.numbers, row.rank) = (None, None));
    let grown = growth::grown(records);
    let said = growth_shown::sentences(&grown).into_iter().flat_map(|said| [said.clear, said.unclear].concat());
    let input = PageInput {
        tables: vec![Grid { title: "The CPU of client and server".to_string(), lines: growth_shown::lines(&grown) }],
        sentences: said.collect(),
        ..input(records, mask, source, vec![PagePart { title: String::new(), report: &report }])
    };
    page::growth_page(&input, &grown)
}

fn of_sizes(all: &[Record], mask: &Mask, look: &Look, source: Source) -> Result<String> {
    let parts = sizes::parts(all);
    let report = SizedReport::of(&parts, Detail::All)?;
    let claims = report.parts.iter().flat_map(|(step, part)| json::claims(part, report.axis.part(*step))).collect();
    let (lines, sentences) = (sized::lines(&report, look.wide), sized::sentences(&report));
    let answer = sized::answer(&report);
    let series = Some(series::chart(&report));
    let (warnings, next) = (warn::heard(&sized::warnings(&report), &look.no_warn), next(report.largest(), look));
    let parts = report.parts.iter().map(|(step, part)| PagePart { title: report.axis.at(*step), report: part });
    page::page(&PageInput {
        tables: vec![Grid::of(lines)],
        answer,
        sentences,
        series,
        warnings,
        claims,
        next,
        ..input(all, mask, source, parts.collect())
    })
}

/// What the job does; nothing of a program.
fn job(records: &[Record]) -> &'static str {
    records.first().and_then(|record| jobs::find(&record.job.name)).map_or("", |kind| kind.about)
}

/// "null (forgets everything), ram (a hash map in this process)", of the baselines that were run.
fn baselines(records: &[Record]) -> String {
    let run = records.iter().filter(|record| record.target.baseline);
    let run: BTreeSet<&str> = run.map(|record| record.target.store.as_str()).collect();
    let each = run.into_iter().filter_map(|name| {
        let what = stores::find(name)?.about.split(':').next()?;
        Some(format!("{name} ({what})"))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn silent(rows: &[cells::Row]) -> Option<Grid> {
    let lines = grid::silent(rows);
    (!lines.is_empty()).then(|| Grid { title: "Targets without numbers".to_string(), lines })
}

fn next(report: &RunReport<'_>, look: &Look) -> String {
    let next = next::next(report, &Known { file: look.file.as_deref(), keeps_crash, has_name });
    next.map_or_else(String::new, |next| next.words().to_string())
}

/// A run that is still going on is no run that was cut off.
fn cut_off(records: &[Record]) -> Option<String> {
    if records.iter().any(|record| record.is_under_way) { None } else { whole::cut_off(records) }
}
