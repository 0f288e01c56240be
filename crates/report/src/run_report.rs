//! What the records of a run say, or those of one size of it: computed here and nowhere else, for all that is shown.

use anyhow::Result;

use super::cells::{self, Row};
use super::point::{self, Point};
use super::standing::{Standings, standings};
use super::{ahead, sweep, table};
use kvfair_core::record::Record;

/// How much of the histograms is read, which take longer to read than all else in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What a table shows, or a table with `--wide`.
    Table { wide: bool },
    /// All that is known.
    All,
}

/// The job of a first look.
const FIRST_LOOK: &str = "fans";

pub struct RunReport<'a> {
    pub records: &'a [Record],
    /// Of the larger job, which counts for nothing else.
    pub ahead: &'a [Record],
    pub standings: Standings<'a>,
    pub rows: Vec<Row>,
    /// The job had several steps, each of which is a point.
    pub is_swept: bool,
    pub points: Vec<Point>,
}

impl<'a> RunReport<'a> {
    /// Reads histograms as far as `detail` needs them. An error names the trial whose histograms are broken.
    pub fn of(records: &'a [Record], detail: Detail) -> Result<RunReport<'a>> {
        let mut report = RunReport::of_rows(records);
        match detail {
            Detail::Table { wide } if report.is_swept => report.points = sweep::points(report.records, wide)?,
            Detail::All if report.is_swept => report.points = sweep::points(report.records, true)?,
            Detail::Table { wide } if !table::tells_op_times(&report.rows, wide) => {}
            Detail::Table { .. } | Detail::All => report.fill_in()?,
        }
        Ok(report)
    }

    /// Whether it is what `kvfair` alone runs.
    pub fn is_first_look(&self) -> bool {
        let is_it = |record: &Record| record.run.command.is_empty() && record.job.name == FIRST_LOOK;
        !self.is_swept && self.records.first().is_some_and(is_it)
    }

    /// Rows without points and without the times of single requests.
    pub fn of_rows(records: &'a [Record]) -> RunReport<'a> {
        let (records, ahead) = ahead::split(records);
        let standings = standings(records);
        let rows = cells::rows(records, &standings);
        let is_swept = point::is_swept(records, &standings.counted);
        RunReport { records, ahead, standings, rows, is_swept, points: Vec::new() }
    }

    /// The times of single requests, and CPU against who used least.
    pub fn fill_in(&mut self) -> Result<()> {
        cells::fill_in(&mut self.rows, self.records, &self.standings)
    }
}
