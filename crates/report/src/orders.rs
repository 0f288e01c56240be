//! A run that counts n-grams of several orders: a row for each target and order, with what grows from one order to the
//! next: terms, bytes and seconds.

use super::sizes::{Axis, SizeGrowth, SizePoint, SizedReport};
use super::table::TableLine;
use super::versus::versus;
use kvfair_core::record::{Record, Verdict};
use kvfair_core::trial::Verify;
use kvfair_core::units;

/// What no row has.
const NOTHING: &str = "-";

/// The table.
pub fn lines(report: &SizedReport<'_>) -> Vec<TableLine> {
    let headings = ["target", "order", "terms", "seconds", "vs best", "bytes", "bytes/term"];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    let mut above = "";
    let mut reasons = Vec::new();
    for one in &report.grown {
        if one.heading() != above {
            above = one.heading();
            lines.push(TableLine::Words(above.to_string()));
        }
        for at in &one.sizes {
            let terms =
                report.parts.iter().find(|(order, _)| *order == at.step).and_then(|(_, part)| terms(part.records));
            if at.row.status.has_numbers() {
                lines.push(TableLine::Cells(cells(one, at, terms)));
            } else {
                let why = format!("at {}: {}", Axis::Order.at(at.step), at.row.status.in_words());
                reasons.push(TableLine::Reason(one.target.clone(), why));
            }
        }
    }
    lines.extend(reasons);
    lines
}

fn cells(one: &SizeGrowth, at: &SizePoint, terms: Option<u64>) -> Vec<String> {
    let told = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_string());
    let held = bytes(at);
    let each = held.zip(terms).map(|(bytes, terms)| units::count(bytes as f64 / terms.max(1) as f64));
    vec![
        one.target.clone(),
        at.step.to_string(),
        told(terms.map(units::thousands)),
        told(at.seconds().map(units::seconds)),
        at.versus().map_or_else(String::new, versus),
        told(held.map(units::bytes)),
        told(each),
    ]
}

/// What its files take on disk, or else its memory.
fn bytes(at: &SizePoint) -> Option<u64> {
    let numbers = at.row.numbers.as_ref()?;
    let memory = || Some(numbers.anonymous_bytes? + numbers.shared_bytes.unwrap_or(0));
    numbers.bytes_on_disk.filter(|bytes| *bytes > 0).or_else(memory)
}

/// Different n-grams, where all of them were compared.
fn terms(records: &[Record]) -> Option<u64> {
    records.iter().find_map(|record| match &record.verdict {
        Verdict::Right(checked) if checked.how == Verify::Full => Some(checked.keys_expected),
        _ => None,
    })
}
