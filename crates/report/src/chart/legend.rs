//! The legend of a picture of rows: the marks that occur, each with what it means.

use maud::{Markup, html};

use super::marks::{self, MarkKind, MarkShape, arrow, band, bar, bracket, each, guide, struck};
use super::palette::{GREY, Stroke};
use super::rows::RowPicture;
use super::svg::{MARGIN, text, width_of};

const LINE: f64 = 24.0;
/// Where its first mark begins, and how much room a mark has.
const MARKS: f64 = 96.0;
const SAMPLE: f64 = 32.0;

/// What a mark means, beside the mark.
pub struct LegendItem {
    line: usize,
    x: f64,
    pub sample: LegendMark,
    pub words: &'static str,
}

/// A mark in a legend.
#[derive(Clone, Copy)]
pub enum LegendMark {
    Mark(MarkKind),
    Interval(Stroke, bool),
    Each,
    Band,
    Bracket,
    Guide,
    Struck,
}

/// Of what occurs, in as many lines as that needs.
pub fn legend(picture: &RowPicture, room: f64) -> Vec<LegendItem> {
    let mut all: Vec<(LegendMark, &'static str)> = Vec::new();
    for kind in picture.marks().map(|mark| mark.kind).filter(|kind| !kind.words.is_empty()) {
        match all.iter_mut().find(|(_, words)| *words == kind.words) {
            // In its own colour where it occurs in that.
            Some((mark, _)) if kind.stroke != GREY => *mark = LegendMark::Mark(kind),
            Some(_) => {}
            None => all.push((LegendMark::Mark(kind), kind.words)),
        }
    }
    let spanned = picture.marks().find(|mark| mark.interval().is_some()).map(|mark| mark.kind);
    let has_each = picture.marks().any(|mark| !mark.each.is_empty());
    let is_shared = picture.rows().any(|row| row.rank.is_some_and(|(best, worst)| best < worst));
    let is_struck = picture.rows().any(|row| row.is_struck);
    all.extend(spanned.map(|kind| (LegendMark::Interval(kind.stroke, kind.is_thin), "95 % interval")));
    all.extend(has_each.then_some((LegendMark::Each, "one block each")));
    all.extend(picture.band.map(|(_, words)| (LegendMark::Band, words)));
    all.extend(is_shared.then_some((LegendMark::Bracket, "the order is not known")));
    all.extend(picture.guide.map(|(_, words)| (LegendMark::Guide, words)));
    all.extend(is_struck.then_some((LegendMark::Struck, "cannot be combined")));
    let (mut line, mut x) = (0, MARKS);
    let items = all.into_iter().map(|(sample, words)| {
        let width = SAMPLE + 8.0 + width_of(words) + 14.0;
        if x + width > room && x > MARKS {
            (line, x) = (line + 1, MARKS);
        }
        let item = LegendItem { line, x, sample, words };
        x += width;
        item
    });
    items.collect()
}

pub fn drawn_item(item: &LegendItem, is_first: bool) -> Markup {
    let (x, y) = (item.x, MARGIN + (item.line as f64 + 0.5) * LINE);
    let middle = x + SAMPLE / 2.0;
    html! {
        @if is_first { (text((MARGIN, y), "how to read", GREY, "start")) }
        @match item.sample {
            LegendMark::Mark(kind) if kind.shape == MarkShape::Arrow => (arrow((x, y))),
            LegendMark::Mark(kind) => (marks::mark(kind, (middle, y))),
            LegendMark::Interval(stroke, is_thin) => (bar(x, x + SAMPLE, y, stroke, is_thin)),
            LegendMark::Each => (each([3.0, 12.0, 15.0, 24.0].map(|at| x + at).into_iter(), y - 10.0)),
            LegendMark::Band => (band(x + 2.0, x + 30.0, y - 9.0, y + 9.0)),
            LegendMark::Bracket => (bracket(middle, y, y)),
            LegendMark::Guide => (guide(middle, y - 10.0, y + 10.0)),
            LegendMark::Struck => (struck((x, y), "name")),
        }
        (text((x + SAMPLE + 8.0, y), item.words, GREY, "start"))
    }
}

/// How high it is, with its margins.
pub fn height(legend: &[LegendItem]) -> f64 {
    LINE * legend.iter().map(|item| item.line + 1).max().unwrap_or(0) as f64 + 2.0 * MARGIN
}
