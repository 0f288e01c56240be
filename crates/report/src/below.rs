//! What stands below the tables of a run, on a terminal and on its page.

use super::render::Block;
use super::run_report::RunReport;
use super::{servers, words};

/// How its numbers are to be read, and what no column tells. `has_cpu` is whether the table has the column of CPU.
pub fn below(report: &RunReport<'_>, has_cpu: bool) -> Vec<Block> {
    let (rows, records) = (&report.rows, report.records);
    let sentences = [words::medians(rows), words::rough(rows, has_cpu).to_string()].map(Block::Paragraph);
    let tables = [words::misses(rows, records), words::stale(rows), servers::table(records)];
    sentences.into_iter().chain(tables.into_iter().flatten()).collect()
}
