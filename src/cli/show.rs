//! `kvfair show`: a results file printed again, drawn, and written for other tools.

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::args::Show;
use super::run::shown;
use super::{Exit, complain, exit_of, print};
use crate::lab::save;
use crate::report::{cells, chart, histograms, sweep, words};
use crate::words::record::Record;

/// Files come first: a table that is followed by an error would be taken for success.
pub fn show(args: &Show) -> Result<Exit> {
    let path = args.results.clone().map_or_else(save::newest, Ok)?;
    let records = save::load(&path)?;
    let rows = cells::rows(&records);
    if let Some(file) = &args.svg {
        let svg = chart::svg(&sweep::points(&records), &rows, &words::headline(&records));
        let svg = svg.map_err(|error| anyhow!("{}: {error:#}", path.display()))?;
        save::write_new(&[(file.clone(), svg)])?;
        complain(&format!("chart: {}", file.display()));
    }
    if let Some(directory) = &args.histograms {
        let count = write_histograms(&records, directory)?;
        complain(&format!("histograms: {count} in {}", directory.display()));
    }
    print(&shown(&records, args.look)?)?;
    Ok(exit_of(&rows))
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
