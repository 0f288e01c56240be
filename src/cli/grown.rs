//! What is printed and drawn of the records of `kvfair growth`, by that command and by `kvfair show`.

use anyhow::{Result, bail};

use super::Exit;
use super::args::Look;
use crate::model::record::{Outcome, Record, Verdict as Answers};
use crate::report::chart::{Chart, document};
use crate::report::exit::worst;
use crate::report::growth::{self, Grown, GrowthVerdict};
use crate::report::{export, growth_chart, json};

/// Whether records are those of such a run.
pub fn is_growth(records: &[Record]) -> bool {
    records.first().is_some_and(growth::is_of)
}

/// What is printed, and how a command that did no more than that ends.
pub fn shown(records: &[Record], look: &Look) -> Result<(String, Exit)> {
    if look.csv || look.all {
        let option = if look.csv { "--csv" } else { "--all" };
        bail!("{option}: `kvfair growth` has no such form\nhint: --json has all numbers, --markdown the table");
    }
    let grown = growth::grown(records);
    let exit = exit_of(records, &grown);
    let text = match look {
        Look { json: true, .. } => json::object(&records[0].run.command, exit, json::JsonTable { rows: &grown })?,
        Look { markdown: true, .. } => {
            let said = growth::sentences(&grown).into_iter().flat_map(|said| [said.clear, said.unclear].concat());
            let parts = [export::markdown(&growth::lines(&grown)), export::listed(&said.collect::<Vec<_>>())];
            export::page(&growth::headline(records), &parts)
        }
        _ => format!("{}\n{}{}", growth::headline(records), growth::table(&grown), growth::text(&grown)),
    };
    Ok((text, exit))
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
    Ok(document(&growth::headline(records), &[chart]))
}

/// What grows out of proportion is a result and no failure.
fn exit_of(records: &[Record], grown: &[Grown]) -> Exit {
    let of_record = |record: &Record| match (&record.verdict, &record.outcome) {
        (Answers::Wrong { .. }, _) => Exit::WrongAnswers,
        (_, Outcome::Missing { .. }) => Exit::Missing,
        _ => Exit::Ok,
    };
    let of_growth = |one: &Grown| match one.verdict {
        GrowthVerdict::Untried(_) => Exit::Error,
        GrowthVerdict::Unclear(_) => Exit::Inconclusive,
        _ => Exit::Ok,
    };
    worst(records.iter().map(of_record).chain(grown.iter().map(of_growth)))
}
