//! The page of `kvfair reproduce`: all posts, each with its picture of ratios then and today, its table, both machines,
//! and what became of its sentences.

use maud::{Markup, html};

use super::marks::{AXIS, DrawMark, Legend, MARGIN, RatioAxis, WIDTH, bar, cut, dot, figure, text};
use super::{Mask, style, tables};
use crate::report::chart::palette::{GREY, LINES, PAPER, TEXT, hex};
use crate::report::chart::plot::px;
use crate::report::reproduce::text::{capital, marked, notes, table};
use crate::report::reproduce::{
    CellReport, Declined, JudgedSentence, Judgement, PanelReport, PostReport, headline, once,
};
use crate::report::versus::versus;

// Lengths in the picture's own pixels.
const PLOT: f64 = 340.0;
const PLOT_END: f64 = 690.0;
const NUMBERS: f64 = 704.0;
const ROW: f64 = 34.0;
const TITLE: f64 = 26.0;
/// Then stands above the middle of a row, today below it.
const APART: f64 = 7.0;
const NAME_LETTERS: usize = 46;

/// The whole page. The same input gives the same bytes.
pub fn reproduced_page(reports: &[PostReport], declined: &[Declined]) -> String {
    let body = html! {
        h1 { (headline(reports)) }
        p.grey {
            "Each post's table beside the same question today. A sentence is still so where today's run claims it, \
             reversed where it claims the opposite, and cannot be told where the noise or the interval allows neither."
        }
        (summary(reports))
        @for report in reports { (post(report)) }
        h2 { "Mentioned by the posts and not measured" }
        ul { @for one in declined { li { b { (one.what) } ": " (one.why) } } }
    };
    let mask = Mask::default();
    style::document("kvfair: the posts beside today", &mask.applied(&body.into_string()))
}

/// A line a post: how many of its sentences have each judgement.
fn summary(reports: &[PostReport]) -> Markup {
    let count = |report: &PostReport, judgement: Judgement| {
        report.sentences.iter().filter(|sentence| sentence.judgement == judgement).count()
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Sentences by judgement" {
            table {
                caption { "Sentences by judgement" }
                thead { tr {
                    th scope="col" { "post" }
                    @for judgement in Judgement::ALL { th scope="col" { (judgement.in_words()) } }
                } }
                tbody {
                    @for report in reports {
                        tr {
                            th scope="row" { a href=(format!("#post-{}", report.number)) { (report.number) } " " (report.title) }
                            @for judgement in Judgement::ALL { td { (count(report, judgement)) } }
                        }
                    }
                }
            }
        }
    }
}

fn post(report: &PostReport) -> Markup {
    let caption = format!("{}: {}", report.unit, report.about);
    html! {
        section id=(format!("post-{}", report.number)) {
            h2 { (report.number) " " (report.title) }
            p.grey { (report.author) ", " (report.date) ", " a href=(report.address) { (report.address) } }
            h3 { "Sentences" }
            ul { @for one in &report.sentences { li { (sentence(one)) } } }
            @if let Some(axis) = axis(report) {
                h3 { "Ratios, then and today" }
                (picture(report, &axis))
            }
            h3 { "Table" }
            (tables::table(&caption, &table(report)))
            ul { @for note in notes(report) { li { (note) } } }
            (machines(report))
            p { "The nearest command: " code.command { (report.command) } }
        }
    }
}

/// With all its comparisons, folded.
fn sentence(one: &JudgedSentence) -> Markup {
    html! {
        b class=[(one.judgement == Judgement::Reversed).then_some("bad")] { (one.in_words()) }
        ": " (one.says)
        @if !one.why.is_empty() { div.grey { (capital(&one.why)) "." } }
        details {
            summary { "All comparisons" }
            ul { @for pair in &one.pairs { li { (pair.judgement.in_words()) ": " (pair.in_words()) } } }
        }
    }
}

fn machines(report: &PostReport) -> Markup {
    html! {
        dl.strip {
            div { dt { "then" } dd { (report.then.machine) "; " (report.then.software) } }
            @match &report.today {
                Some(today) => {
                    div { dt { "today" } dd { (today.machine) "; kvfair " (today.kvfair) } }
                    div { dt { "run" } dd { (today.headline) } }
                    @if !today.versions.is_empty() { div { dt { "versions" } dd { (today.versions.join(", ")) } } }
                }
                None => div { dt { "today" } dd { "not run" } },
            }
        }
    }
}

/// Around all ratios of a post; none where it has none.
fn axis(report: &PostReport) -> Option<RatioAxis> {
    let rows = || report.panels.iter().flat_map(|panel| &panel.rows);
    let today = rows().filter_map(|row| row.today_ratio);
    let today = today.flat_map(|seen| [Some(seen.ratio), seen.low, seen.high].into_iter().flatten());
    let all: Vec<f64> = rows().filter_map(|row| row.then_ratio).chain(today).collect();
    (!all.is_empty()).then(|| RatioAxis::around(all.into_iter(), (PLOT, PLOT_END)))
}

fn picture(report: &PostReport, axis: &RatioAxis) -> Markup {
    let legend = legend(report);
    let top = legend.bottom();
    let bottom = top + report.panels.iter().map(height_of).sum::<f64>();
    let bases = report.panels.iter().find_map(|panel| panel.base.as_deref()).unwrap_or_default();
    let title = format!("Post {}, times as long as {bases}", report.number);
    let drawn = html! {
        title { (title) ": " (in_words(report)) }
        rect width=(px(WIDTH)) height=(px(bottom + AXIS)) fill=(hex(PAPER.light)) {}
        (legend.drawn())
        (axis.drawn(top, bottom, &format!("times as long as {bases}")))
        @for (top, panel) in placed(report, top) { (drawn_panel(panel, top, axis)) }
    };
    let caption = "Logarithmic axis. The post's figures are of a single run each and have no interval. Ratios of today \
                   compare trials of the same block.";
    figure(&title, bottom + AXIS, &drawn, caption)
}

fn placed(report: &PostReport, top: f64) -> Vec<(f64, &PanelReport)> {
    let mut bottom = top;
    let place = |panel| {
        let this = bottom;
        bottom += height_of(panel);
        (this, panel)
    };
    report.panels.iter().map(place).collect()
}

fn height_of(panel: &PanelReport) -> f64 {
    title_of(panel) + panel.rows.len() as f64 * ROW
}

fn title_of(panel: &PanelReport) -> f64 {
    if panel.title.is_empty() { 0.0 } else { TITLE }
}

fn drawn_panel(panel: &PanelReport, top: f64, axis: &RatioAxis) -> Markup {
    let first = top + title_of(panel);
    html! {
        @if !panel.title.is_empty() {
            // No line of the axis goes through the words.
            rect y=(px(top)) width=(px(WIDTH)) height=(px(TITLE)) fill=(hex(PAPER.light)) {}
            (text(MARGIN, top + 18.0, &panel.title, GREY, "start"))
        }
        @for (place, row) in panel.rows.iter().enumerate() {
            (drawn_row(row, first + (place as f64 + 0.5) * ROW, axis))
        }
    }
}

fn drawn_row(row: &CellReport, y: f64, axis: &RatioAxis) -> Markup {
    let at_base = || (row.is_base && row.today.is_some()).then_some(1.0);
    let today = row.today_ratio.map(|seen| seen.ratio).or_else(at_base);
    let interval = row.today_ratio.and_then(|seen| seen.low.zip(seen.high));
    html! {
        (text(MARGIN, y + 4.5, &cut(&marked(row), NAME_LETTERS), if today.is_some() { TEXT } else { GREY }, "start"))
        @if let Some(then) = row.then_ratio {
            (dot(axis.x(then), y - APART, GREY, true))
            (text(NUMBERS, y - 2.5, &format!("{} then", once(then)), GREY, "start"))
        }
        @if let Some((low, high)) = interval { (bar(axis.x(low), axis.x(high), y + APART, LINES[0], false)) }
        @match today {
            Some(ratio) => {
                (dot(axis.x(ratio), y + APART, LINES[0], false))
                (text(NUMBERS, y + 12.5, &format!("{} today", today_in_words(row)), TEXT, "start"))
            }
            None => (text(NUMBERS, y + 12.5, "no number of today", GREY, "start")),
        }
    }
}

fn today_in_words(row: &CellReport) -> String {
    row.today_ratio.map_or_else(|| "1.00x".to_string(), versus)
}

/// What the picture shows, for who does not see it.
fn in_words(report: &PostReport) -> String {
    let rows = report.panels.iter().flat_map(|panel| panel.rows.iter().map(move |row| (panel, row)));
    let each = rows.map(|(panel, row)| {
        let then = row.then_ratio.map_or_else(|| "-".to_string(), once);
        let today = if row.today.is_some() { today_in_words(row) } else { "no number".to_string() };
        format!("{} {} then {then}, today {today}", panel.title, row.name).trim().to_string()
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The marks that occur.
fn legend(report: &PostReport) -> Legend {
    let any = |is: &dyn Fn(&CellReport) -> bool| report.panels.iter().flat_map(|panel| &panel.rows).any(is);
    let marks: [(DrawMark, &'static str, bool); 3] = [
        (|x, y| dot(x + 16.0, y, GREY, true), "then: a single run", any(&|row| row.then_ratio.is_some())),
        (|x, y| dot(x + 16.0, y, LINES[0], false), "today: median", any(&|row| row.today.is_some())),
        (
            |x, y| bar(x, x + 32.0, y, LINES[0], false),
            "95 % interval",
            any(&|row| row.today_ratio.is_some_and(|seen| seen.low.is_some())),
        ),
    ];
    Legend::of(&marks)
}
