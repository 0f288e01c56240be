//! What is printed and drawn of the records of `kvfair growth`, by that command and by `kvfair show`.

use anyhow::{Result, bail};

use super::args::Look;
use crate::model::record::Record;
use crate::report::chart::{Chart, document};
use crate::report::growth::{self, Grown, GrowthVerdict};
use crate::report::growth_chart;
use crate::report::growth_shown::{self, GrowthReport};

/// Whether records are those of such a run.
pub fn is_growth(records: &[Record]) -> bool {
    records.first().is_some_and(growth::is_of)
}

/// What is shown of at least one record.
pub fn shown<'a>(records: &'a [Record], look: &Look) -> Result<GrowthReport<'a>> {
    if look.all {
        bail!("--all: `kvfair growth` has no such form\nhint: --json has all numbers, --markdown the table");
    }
    Ok(GrowthReport::of(records))
}

/// Why costs of a target were not measured, once for each reason.
pub fn untried(records: &[Record]) -> Vec<String> {
    let why = |one: Grown| match one.verdict {
        GrowthVerdict::Untried(why) => Some(format!("{}: {why}", one.target)),
        _ => None,
    };
    let mut lines: Vec<String> = growth::grown(records).into_iter().filter_map(why).collect();
    lines.dedup();
    lines
}

/// As a file of its own.
pub fn drawn(records: &[Record]) -> Result<String> {
    let chart: Chart = growth_chart::chart(&growth::grown(records), records);
    if chart.plots.is_empty() {
        bail!("nothing was measured at two sizes, so there is no growth to draw");
    }
    Ok(document(&growth_shown::headline(records), &[chart]))
}
