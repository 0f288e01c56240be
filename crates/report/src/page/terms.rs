//! The words that the first screen of a page uses, for those who see it without the documents.

use maud::{Markup, html};

use super::PageInput;
use crate::verified;
use kvfair_core::record::Record;
use kvfair_core::trial::{Configuration, Durability};

/// Only of words that the page uses.
pub fn terms(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    let first = &records[0];
    let each = if first.job.program().is_some() { "program" } else { "store" };
    html! {
        p.terms {
            b { "Trial" } ": the whole job once on one " (each) ", with fresh data. "
            b { "Block" } ": one trial of each " (each) ", in random order; a first block warms up and never counts. "
            b { "Op" } ": one read or write of a record. "
            @if let Some(durability) = durability(records) {
                b { "Durability " (first.durability) } ": " (durability) ". "
            }
            @if !input.baselines.is_empty() {
                b { "Baselines" } ": no stores, never ranked; what the job costs without one: " (input.baselines) "."
            }
        }
    }
}

/// What the level promises, and what "claimed" means where the page says it. Nothing where none was asked for.
fn durability(records: &[Record]) -> Option<String> {
    let first = &records[0];
    let survives = match (first.configuration, first.durability) {
        (Configuration::Shipped, _) => return None,
        (_, Durability::None) => "nothing has to survive a crash",
        (_, Durability::Crash) => "what was acknowledged survives a killed process",
        (_, Durability::Power) => "what was acknowledged survives a loss of power",
    };
    let claimed =
        if verified::is_claimed(records) { "; claimed: by the store's settings, not tested here" } else { "" };
    Some(format!("{survives}{claimed}"))
}
