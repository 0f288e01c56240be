//! The page of `kvfair growth`: what grows out of proportion, a chart of each cost, and its table. Its trials ask for
//! different things: there are no ratios and no ranks.

use anyhow::Result;
use maud::{PreEscaped, html};

use super::{PageInput, badges, details, evidence, manifest, style, tables};
use crate::chart::figures;
use crate::growth::Grown;
use crate::{growth_chart, growth_shown};

/// The whole page. `grown` is of the records of the input's part. The same input gives the same bytes.
pub fn growth_page(input: &PageInput<'_>, grown: &[Grown]) -> Result<String> {
    let records = input.largest().report.records;
    let (heading, others) = said(grown);
    let headline = growth_shown::headline(records);
    let chart = growth_chart::chart(grown, records);
    let body = html! {
        h1 { (heading) }
        p.grey { (headline) }
        @for what in badges::banners(input) { p.banner role="note" { (what) } }
        @if !chart.plots.is_empty() {
            h2 { "How costs grow" }
            (figures(&chart))
        }
        dl.strip { (badges::facts_of_trials(input)) }
        @if !others.is_empty() { ul { @for what in &others { li { (what) } } } }
        h2 { "Targets" }
        @for grid in &input.tables { (tables::table(&grid.title, &grid.lines)) }
        p.grey {
            "What grows with n^1 is in proportion: twice as much costs twice as much. The intervals of a target hold \
             all together 95 times in 100."
        }
        (evidence::claims(input, &manifest::run(input, Some(grown))?))
        (details::of_run(input))
        script type="application/json" id="manifest" { (PreEscaped(manifest::json(input, Some(grown))?)) }
    };
    let mask = input.mask;
    Ok(style::document(&mask.applied(&format!("kvfair: {headline}")), &mask.applied(&body.into_string())))
}

/// The heading, and what stands below the picture: what else is clear, and what is unclear, unless that is all.
fn said(grown: &[Grown]) -> (String, Vec<String>) {
    let all = growth_shown::sentences(grown);
    let clear: Vec<String> = all.iter().flat_map(|said| said.clear.clone()).collect();
    let unclear: Vec<String> = all.into_iter().flat_map(|said| said.unclear).collect();
    match (clear.is_empty(), unclear.is_empty()) {
        (true, true) => ("Nothing was measured: the table says why.".to_string(), Vec::new()),
        (true, false) => ("It is unclear what grows out of proportion.".to_string(), unclear),
        (false, _) => (clear[0].clone(), [&clear[1..], &unclear].concat()),
    }
}
