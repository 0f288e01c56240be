//! A run as one HTML page that needs nothing else: what may be said stands at the top, then a picture, the table and
//! charts, and folded below them all that a reader may ask for. From records to text; nothing is read or written here.
//!
//! All text may come from anybody: templates escape it, `mask` takes out what a page that is given away must not tell,
//! and a policy in the page has the browser refuse what it would load.

use anyhow::Result;
use maud::{Markup, PreEscaped, html};

use super::chart::{Chart, drawn_rows, figures};
use super::grid::Grid;
use super::json::ClaimJson;
use super::levers::LeverReport;
use super::remarks::remarks;
use super::render::Block;
use super::run_report::RunReport;
use super::warn::Warning;
use super::{below, by_second, notes, percentiles, sweep_chart, words};

mod badges;
mod bases;
mod blocks;
mod cost_plane;
mod details;
mod evidence;
mod facts;
mod forced;
mod growth;
mod history;
mod index;
mod levers;
mod machines;
mod manifest;
mod mask;
mod measures;
mod packed;
mod reproduced;
mod style;
mod tables;
mod terms;

pub use badges::answer_and_rest;
pub(super) use badges::{blocks, machine, twice};
pub use blocks::page_of_blocks;
pub use facts::{PageFacts, facts};
pub use growth::growth_page;
pub use history::{history_page, history_svg};
pub use index::{IndexEntry, index};
pub use machines::machines_page;
pub use mask::Mask;
use measures::MeasurePicture;
pub use reproduced::reproduced_page;

/// What a page is made of.
pub struct PageInput<'a> {
    /// Of the records as they are; those of the parts have its labels.
    pub mask: &'a Mask,
    /// All of a run, or each of its sizes, the largest last. At least one, with at least one record.
    pub parts: Vec<PagePart<'a>>,
    /// The tables that the terminal prints.
    pub tables: Vec<Grid>,
    /// What heads it: the answer, in 14 words or a few more.
    pub answer: String,
    /// What may be said.
    pub sentences: Vec<String>,
    /// What the job does; empty for a program.
    pub job: &'static str,
    /// What the baselines are, if any were run: "null (forgets everything)".
    pub baselines: String,
    pub warnings: Vec<Warning>,
    pub claims: Vec<ClaimJson<'a>>,
    /// The next command worth typing.
    pub next: String,
    /// Where the file tells that its run was cut off.
    pub cut_off: Option<String>,
    /// Which line of the file is no record, and how many stand before it: those are shown.
    pub broken: Option<String>,
    /// None where the records lie in no file.
    pub results: Option<RawResults>,
    /// What levers gain, of a run of these: the part is its blocks of gains.
    pub levers: Option<LeverPage<'a>>,
    /// Versions of a store, which stand before the pictures of targets.
    pub versions: Option<Chart>,
    /// Of several sizes, in place of a picture for each.
    pub series: Option<Chart>,
}

/// What stands in place of the ratios of targets.
pub struct LeverPage<'a> {
    pub report: LeverReport,
    /// The fresh blocks and those of durability levels.
    pub evidence: Vec<PagePart<'a>>,
}

/// Targets that were compared with each other.
pub struct PagePart<'a> {
    /// The size, where a run has several.
    pub title: String,
    pub report: &'a RunReport<'a>,
}

/// The results file.
pub struct RawResults {
    /// Without the directory that it lies in.
    pub name: String,
    pub sha256: String,
}

impl<'a> PageInput<'a> {
    /// The part that stands for the run.
    fn largest(&self) -> &PagePart<'a> {
        &self.parts[self.parts.len() - 1]
    }
}

impl PagePart<'_> {
    /// ", 1,000 profiles" behind what it is a part of.
    fn title_behind(&self) -> String {
        if self.title.is_empty() { String::new() } else { format!(", {}", self.title) }
    }
}

/// The whole page. The same input gives the same bytes.
pub fn page(input: &PageInput<'_>) -> Result<String> {
    let largest = input.largest().report;
    let (mask, run) = (input.mask, manifest::run(input, None)?);
    let body = html! {
        (badges::top(input))
        @if let Some(versions) = &input.versions {
            h2 { (versions.title) }
            (figures(versions))
        }
        @match &input.levers {
            Some(seen) => (levers::levers(&seen.report)),
            None => (pictures(input)),
        }
        (swept(largest))
        (badges::findings(input))
        (costs(input))
        (latencies(largest)?)
        (seconds(largest))
        h2 { "Targets" }
        @for grid in &input.tables {
            (tables::table(if grid.title.is_empty() { "Medians over the blocks" } else { &grid.title }, &grid.lines))
        }
        (below(largest))
        (badges::again(input))
        (terms::terms(input))
        (evidence::claims(input, &run))
        (details::details(input)?)
        @if let Some(bases) = bases::json(input)? {
            script type="application/json" id="bases" { (PreEscaped(bases)) }
        }
        script type="application/json" id="manifest" { (PreEscaped(manifest::json(input, None)?)) }
    };
    let subject = words::job_and_size(largest.records);
    let title = match &input.levers {
        Some(seen) => format!("kvfair: levers of {}, {subject}", seen.report.base),
        None => format!("kvfair: {subject}"),
    };
    Ok(style::document(&mask.applied(&title), &mask.applied(&body.into_string())))
}

/// A page that says why there is nothing to show, of results that cannot be read or hold nothing.
pub fn without_results(why: &str) -> String {
    let body = html! {
        h1 { "No results can be shown" }
        @for line in why.lines() { p { (line) } }
        p { "A run writes them: " code { "kvfair run fans --html page.html" } }
    };
    style::document("kvfair: no results", &Mask::default().applied(&body.into_string()))
}

/// The first picture of a page, as a file of its own. Nothing where no target has a number.
pub fn measure_svg(heading: &str, part: &PagePart<'_>) -> Option<String> {
    let first = measures::pictures(part).into_iter().next()?;
    Some(drawn_rows::document(heading, first.picture))
}

/// A picture for each measure: the page's script shows the chosen one. Of a sweep the charts show each point.
fn pictures(input: &PageInput<'_>) -> Markup {
    if let Some(series) = input.series.as_ref().filter(|series| !series.plots.is_empty()) {
        return figures(series);
    }
    let whole = input.parts.iter().filter(|part| part.report.points.is_empty());
    let all: Vec<MeasurePicture> = whole.flat_map(measures::pictures).collect();
    let first = all.first().map_or("", |first| first.measure);
    html! {
        @for MeasurePicture { measure, picture } in &all {
            section data-measure=(measure) data-more=[(*measure != first).then_some("")] {
                h2 { (picture.title) }
                (drawn_rows::figure(picture))
            }
        }
    }
}

/// What speed costs in memory, of a run of one size.
fn costs(input: &PageInput<'_>) -> Markup {
    let [part] = input.parts.as_slice() else { return html! {} };
    let chart = if input.levers.is_some() { Chart::default() } else { cost_plane::chart(part.report) };
    charted("Time against memory", "", &chart)
}

/// What the terminal says below its table.
fn below(report: &RunReport<'_>) -> Markup {
    let remarks = Block::Remarks(remarks(&report.points));
    let notes = Block::Remarks(notes::notes(report.records, false));
    let all = std::iter::once(remarks).chain(below::below(report)).chain([notes]);
    html! { @for block in all { (blocks::written(&block)) } }
}

/// Latency by percentile, for jobs of requests only.
fn latencies(report: &RunReport<'_>) -> Result<Markup> {
    let about = "All blocks that count together. A percentile is shown where ten or more requests took longer; the \
                 table of targets has medians of the blocks' own.";
    Ok(charted("Latency by percentile", about, &percentiles::chart(report)?))
}

/// CPU and memory of the store; nothing where no trial took some seconds.
fn seconds(report: &RunReport<'_>) -> Markup {
    let about = "One trial of each target: its first block that counts. For a server: all its processes. For an embedded \
                 store: the process of the trial.";
    charted("The store, second by second", about, &by_second::chart(report))
}

/// The charts of a sweep; nothing where there is no line to draw: what cannot be drawn is in the tables.
fn swept(report: &RunReport<'_>) -> Markup {
    charted("The sweep", "", &sweep_chart::chart(&report.points, &report.rows).unwrap_or_default())
}

fn charted(heading: &str, about: &str, chart: &Chart) -> Markup {
    html! {
        @if !chart.plots.is_empty() {
            h2 { (heading) }
            @if !about.is_empty() { p.grey { (about) } }
            (figures(chart))
        }
    }
}
