//! What stands below the tables of a run, on a terminal and on its page.

use super::render::Block;
use super::run_report::RunReport;
use super::{servers, words};

/// How the numbers of a table with all columns are to be read, and what no column tells.
pub fn below(report: &RunReport<'_>) -> Vec<Block> {
    let sentences = [words::medians(&report.rows), words::rough(&report.rows).to_string()];
    sentences.into_iter().map(Block::Paragraph).chain(tables(report)).collect()
}

/// What no column tells.
pub fn tables(report: &RunReport<'_>) -> Vec<Block> {
    let (rows, records) = (&report.rows, report.records);
    [words::misses(rows, records), words::stale(rows), servers::table(records)].into_iter().flatten().collect()
}
