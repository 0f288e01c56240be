//! `kvfair show`: a results file printed again, drawn, and written for other tools.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::args::{Look, Show};
use super::shown::{print_text, read, shown};
use super::{Exit, Usage, complain, found, grown, levered, paged, pages, verified, versioned};
use crate::harness::load::{self, Parts};
use crate::harness::save;
use crate::model::finding::Finding;
use crate::model::record::{Outcome, Record};
use crate::report::chart::{Chart, document};
use crate::report::page::{self, PagePart};
use crate::report::render::OutputForm;
use crate::report::run_report::{Detail, RunReport};
use crate::report::{ahead, by_second, histograms, percentiles, sizes, sweep_chart, versions, words};

/// A page says why it shows nothing, as the error does.
pub fn show(args: &Show) -> Result<Exit> {
    paged::is_to_be_new(args.look.forms.html.as_deref())?;
    if args.results.iter().any(|path| pages::is_page(path)) {
        return pages::join(&args.results, &args.look);
    }
    if args.results.len() > 1 {
        let what =
            "show takes one results file\nhint: `kvfair compare ONE.jsonl OTHER.jsonl` holds two against each other";
        return Err(anyhow!(Usage(what.to_string())));
    }
    looked_at(args).inspect_err(|error| paged::write_why_not(&args.look, error))
}

/// Files come first: a table that is followed by an error would be taken for success.
fn looked_at(args: &Show) -> Result<Exit> {
    // They are needed to the end: to give them back piece by piece would take as long as a tenth of all else.
    let Look { wide, forms, .. } = &args.look;
    let is_for_programs = matches!(forms.form(), OutputForm::Csv | OutputForm::Json);
    let is_whole = *wide || is_for_programs || forms.html.is_some() || args.histograms.is_some();
    let parts = if is_whole { Parts::All } else { Parts::Tables };
    let (path, results) = match args.results.first() {
        Some(path) => (path.clone(), ResultsOf::read(path, parts)?),
        None => newest(parts)?,
    };
    let records = match results {
        ResultsOf::Findings(findings) => return found::show(findings, &path, args),
        ResultsOf::Run(records) => records.leak(),
    };
    verified::note(records);
    let records: &[Record] = records;
    let about = |error: anyhow::Error| anyhow!("{}: {error:#}", path.display());
    let look = Look { file: args.results.first().cloned(), ..args.look.clone() };
    let by_targets = levered::by_targets(records);
    if look.forms.html.is_some() && args.results.is_empty() {
        complain(&format!("results: {}", path.display()));
    }
    if grown::is_growth(records) {
        grown::untried(records).iter().for_each(|why| complain(&format!("kvfair: not measured: {why}")));
    }
    paged::write(records, &look, Some(&path)).map_err(about)?;
    let (counting, _) = ahead::split(&by_targets);
    if (args.svg.is_some() || args.histograms.is_some()) && !sizes::parts(records).is_empty() {
        bail!(
            "{}: a run of several sizes or round-trip times has neither a chart nor histograms of its own",
            path.display()
        );
    }
    if args.histograms.is_some() && grown::is_growth(records) {
        bail!("{}: results of `kvfair growth` have no histograms", path.display());
    }
    if let Some(file) = &args.svg {
        let svg = match versioned::labels(records) {
            Some(labels) => Ok(versioned::drawn(&versions::report(records, &labels))),
            None if levered::is_levers(records) => levered::drawn(records),
            None => drawn(counting),
        };
        let svg = svg.map_err(about)?;
        save::write_new(&[(file.clone(), svg)])?;
        complain(&format!("chart: {}", file.display()));
    }
    if let Some(directory) = &args.histograms {
        let count = write_histograms(counting, directory).map_err(about)?;
        complain(&format!("histograms: {count} in {}", directory.display()));
    }
    let (text, exit) = shown(records, &look).map_err(about)?;
    print_text(&text, look.forms.form())?;
    Ok(exit)
}

/// What a results file holds.
enum ResultsOf {
    Run(Vec<Record>),
    /// Of a command that runs no job.
    Findings(Vec<Finding>),
}

impl ResultsOf {
    fn read(path: &Path, parts: Parts) -> Result<ResultsOf> {
        match load::findings(path)? {
            Some(findings) => Ok(ResultsOf::Findings(findings)),
            None => read(path, parts).map(ResultsOf::Run),
        }
    }
}

/// The newest results in which something was measured, or else the newest that can be read. What is passed over is
/// named.
fn newest(parts: Parts) -> Result<(PathBuf, ResultsOf)> {
    let files = save::newest_first("kvfair show FILE")?;
    let mut passed = Vec::new();
    let name = |passed: &[String]| passed.iter().for_each(|what| complain(what));
    for path in &files {
        match measured(path, parts) {
            Ok(results) => {
                name(&passed);
                return Ok((path.clone(), results));
            }
            Err(why) => passed.push(format!("kvfair: skipped {}: {why}", path.display())),
        }
    }
    let readable =
        files.iter().enumerate().find_map(|(place, path)| Some((place, path, ResultsOf::read(path, parts).ok()?)));
    let Some((place, path, results)) = readable else {
        return Ok((files[0].clone(), ResultsOf::read(&files[0], parts)?));
    };
    name(&passed[..place]);
    Ok((path.clone(), results))
}

/// The results of a file in which a trial was finished, or why there are none.
fn measured(path: &Path, parts: Parts) -> Result<ResultsOf> {
    if path.metadata().is_ok_and(|meta| meta.len() == 0) {
        bail!("it is empty");
    }
    if save::is_being_written(path) {
        bail!("its run is still going on");
    }
    let results = ResultsOf::read(path, parts)?;
    if let ResultsOf::Run(records) = &results
        && !records.iter().any(|record| record.outcome == Outcome::Finished)
    {
        bail!("no trial was finished");
    }
    Ok(results)
}

/// Whatever the job has: its sweep, latency by percentile, CPU and memory by second; or how costs grow. Where it has
/// none of these its targets beside each other.
fn drawn(records: &[Record]) -> Result<String> {
    if grown::is_growth(records) {
        return grown::drawn(records);
    }
    let report = RunReport::of(records, Detail::Table { wide: false })?;
    let headline = words::headline(report.records, &report.standings);
    let sweep = sweep_chart::chart(&report.points, &report.rows);
    let others = [percentiles::chart(&report)?, by_second::chart(&report)];
    if others.iter().all(|chart| chart.plots.is_empty()) {
        let part = PagePart { title: String::new(), report: &report };
        let targets = || Some(page::measure_svg(&headline, &part)).filter(|_| part.report.points.is_empty()).flatten();
        return sweep.map(|sweep| document(&headline, &[sweep])).or_else(|why| targets().ok_or(why));
    }
    let all: Vec<Chart> = sweep.into_iter().chain(others).collect();
    Ok(document(&headline, &all))
}

/// How many histograms there were to write.
fn write_histograms(records: &[Record], directory: &Path) -> Result<usize> {
    let files = histograms::files(records)?;
    if files.is_empty() {
        bail!("--histograms: no target has right answers that were timed, so there are no op times to write");
    }
    let files: Vec<_> = files.into_iter().map(|(name, text)| (directory.join(name), text)).collect();
    // A directory is what was named.
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
    save::write_new(&files)?;
    // All but the log, which holds them all.
    Ok(files.len() - 1)
}
