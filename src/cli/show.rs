//! `kvfair show`: a results file printed again, drawn, and written for other tools.

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::args::{Look, Show};
use super::shown::{read, shown};
use super::{Exit, complain, print, verified};
use crate::lab::load::Parts;
use crate::lab::save;
use crate::report::standing::standings;
use crate::report::{ahead, cells, chart, histograms, sizes, sweep, words};
use crate::words::record::Record;

/// Files come first: a table that is followed by an error would be taken for success.
pub fn show(args: &Show) -> Result<Exit> {
    let path = args.results.clone().map_or_else(save::newest, Ok)?;
    // They are needed to the end: to give them back piece by piece would take as long as a tenth of all else.
    let Look { wide, json, csv, .. } = args.look;
    let parts = if wide || json || csv || args.histograms.is_some() { Parts::All } else { Parts::Tables };
    let records = read(&path, parts)?.leak();
    verified::note(records);
    let records: &[Record] = records;
    let (counting, _) = ahead::split(records);
    if (args.svg.is_some() || args.histograms.is_some()) && !sizes::parts(records).is_empty() {
        bail!("{}: a run of several sizes has neither a chart nor histograms of its own", path.display());
    }
    let about = |error: anyhow::Error| anyhow!("{}: {error:#}", path.display());
    if let Some(file) = &args.svg {
        let svg = drawn(counting).map_err(about)?;
        save::write_new(&[(file.clone(), svg)])?;
        complain(&format!("chart: {}", file.display()));
    }
    if let Some(directory) = &args.histograms {
        let count = write_histograms(counting, directory).map_err(about)?;
        complain(&format!("histograms: {count} in {}", directory.display()));
    }
    let (text, exit) = shown(records, &args.look).map_err(about)?;
    print(&text)?;
    Ok(exit)
}

fn drawn(records: &[Record]) -> Result<String> {
    let standings = standings(records);
    let rows = cells::rows(records, &standings);
    chart::svg(&sweep::points(records, false)?, &rows, &words::headline(records, &standings))
}

/// How many histograms there were to write.
fn write_histograms(records: &[Record], directory: &Path) -> Result<usize> {
    let files = histograms::files(records)?;
    if files.is_empty() {
        bail!("--histograms: no target has right answers that were timed, so there are no op times to write");
    }
    let files: Vec<_> = files.into_iter().map(|(name, text)| (directory.join(name), text)).collect();
    save::write_new(&files)?;
    // All but the log, which holds them all.
    Ok(files.len() - 1)
}
