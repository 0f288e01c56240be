//! The page of `kvfair reproduce`: all posts, each with its picture of ratios then and today, its table, both machines,
//! and what became of its sentences.

use maud::{Markup, html};

use super::{Mask, style, tables};
use crate::chart::drawn_rows::figure;
use crate::reproduce::picture::picture;
use crate::reproduce::text::{capital, notes, table};
use crate::reproduce::{Declined, JudgedSentence, Judgement, PostReport, headline};

/// The whole page. The same input gives the same bytes.
pub fn reproduced_page(reports: &[PostReport], declined: &[Declined]) -> String {
    let body = html! {
        h1 { (headline(reports)) }
        @for report in reports { (post(report)) }
        h2 { "All posts" }
        p.grey {
            "Each post's table beside the same question today. A sentence is still so where today's run claims it, \
             reversed where it claims the opposite, and cannot be told where the noise or the interval allows neither."
        }
        (summary(reports))
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
            @if let Some(picture) = picture(report) {
                h3 { "Ratios, then and today" }
                (figure(&picture))
            }
            h3 { "Sentences" }
            ul { @for one in &report.sentences { li { (sentence(one)) } } }
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
