//! The records of `kvfair levers`, as that command and `kvfair show` show them.

use std::borrow::Cow;

use anyhow::{Result, anyhow};

use super::Exit;
use crate::model::record::Record;
use crate::report::chart::drawn_rows;
use crate::report::exit;
use crate::report::levers::picture::picture;
use crate::report::levers::{self, LeverReport};
use crate::report::levers_shown::LeversShown;
use crate::report::run_report::RunReport;

/// Whether records are those of such a run.
pub fn is_levers(records: &[Record]) -> bool {
    records.first().is_some_and(|record| record.levers.is_some())
}

/// The records that are shown by targets: of such a run the blocks that measure gains, of others all.
pub fn by_targets(records: &[Record]) -> Cow<'_, [Record]> {
    if is_levers(records) { Cow::Owned(levers::of_gains(records)) } else { Cow::Borrowed(records) }
}

/// What the levers gain, drawn.
pub fn drawn(records: &[Record]) -> Result<String> {
    let report = report(records)?;
    let heading = format!("{}, {}", report.job, levers::text::heading(&report));
    Ok(drawn_rows::document(&heading, picture(&report)))
}

/// What is shown of at least one record.
pub fn shown(records: &[Record]) -> Result<LeversShown> {
    let report = report(records)?;
    Ok(LeversShown { command: records[0].run.command.clone(), exit: exit(records, &report), report })
}

fn report(records: &[Record]) -> Result<LeverReport> {
    levers::report(records)?.ok_or_else(|| anyhow!("these records tell of no levers"))
}

/// The worst of the parts decides.
fn exit(records: &[Record], report: &LeverReport) -> Exit {
    let of = |part: &Vec<Record>| exit::of_rows(part, &RunReport::of_rows(part).rows);
    let clear = if report.is_clear() { Exit::Ok } else { Exit::Inconclusive };
    exit::worst(levers::parts(records).iter().map(of).chain([clear]))
}
