//! Ratios as SVG: a row a target on one logarithmic axis, with its interval and its blocks.

use maud::{Markup, html};

use super::marks::{
    self, AXIS, DrawMark, Legend, MARGIN, RatioAxis, WIDTH, arrow, band, bar, cut, dot, reason, said, text,
};
use super::ratios::{RatioPanel, RatioPicture, RatioPlace, RatioRow};
use crate::report::chart::palette::{GREY, LINES, PAPER, TEXT, hex};
use crate::report::chart::plot::px;
use crate::report::chart::shortened;
use crate::report::versus::{Versus, at_least, versus};

// Lengths in the picture's own pixels.
/// Where names, the plot and the numbers begin; ranks stand at the margin.
const BRACKET: f64 = 44.0;
const NAMES: f64 = 54.0;
const PLOT: f64 = 304.0;
const PLOT_END: f64 = 684.0;
const NUMBERS: f64 = 724.0;
const ROW: f64 = 30.0;
const TITLE: f64 = 26.0;
/// So much of a reason stands in the picture; the table has all of it.
const REASON_LETTERS: usize = 62;

/// Around all that is drawn.
fn axis_of(picture: &RatioPicture) -> RatioAxis {
    let rows = picture.panels.iter().flat_map(|panel| &panel.rows);
    let drawn = rows.flat_map(|row| match &row.place {
        RatioPlace::At { versus, blocks } => {
            let ends = [Some(versus.ratio), versus.low, versus.high].into_iter().flatten();
            ends.chain(blocks.iter().copied()).collect()
        }
        RatioPlace::AtLeast(ratio) => vec![*ratio],
        RatioPlace::Nowhere(_) => Vec::new(),
    });
    let band = picture.band.into_iter().flat_map(|(low, high)| [low, high]);
    RatioAxis::around(drawn.chain(band), (PLOT, PLOT_END))
}

/// The picture with its caption.
pub fn figure(picture: &RatioPicture) -> Markup {
    let (height, drawn) = drawn(picture);
    marks::figure(&picture.title, height, &drawn, &caption(picture))
}

fn caption(picture: &RatioPicture) -> String {
    said(&[
        (!picture.about.is_empty(), picture.about),
        (true, "Logarithmic axis; ratios compare trials of the same block."),
        (picture.is_seen_once, "Seen once, no claim: one block has no interval."),
        (picture.is_noisy, "Noisy: bars are dashed, and only the end of an interval nearest to 1 is claimed."),
        (picture.band.is_none(), "No store was run twice often enough, so the noise is unknown."),
    ])
}

/// How high it is, and what is in it.
fn drawn(picture: &RatioPicture) -> (f64, Markup) {
    let axis = axis_of(picture);
    let legend = legend(picture);
    let top = legend.bottom();
    let (placed, others): (Vec<_>, Vec<_>) = picture.panels.iter().partition(|panel| has_place(panel));
    let (placed, bottom) = stacked(&placed, top);
    // What has no place on the axis stands below it.
    let (others, height) = stacked(&others, bottom + AXIS);
    let drawn = html! {
        title { (summary(picture)) }
        rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
        (legend.drawn())
        @if let Some((low, high)) = picture.band {
            (band(axis.x(low), axis.x(high), top, bottom))
        }
        (axis.drawn(top, bottom, picture.axis))
        @for (top, panel) in placed.into_iter().chain(others) {
            (drawn_panel(panel, top, &axis, picture.is_noisy))
        }
    };
    (height, drawn)
}

fn has_place(panel: &RatioPanel) -> bool {
    panel.rows.iter().any(|row| !matches!(row.place, RatioPlace::Nowhere(_)))
}

/// Panels below each other from `top` on, and where they end.
fn stacked<'a>(panels: &[&'a RatioPanel], top: f64) -> (Vec<(f64, &'a RatioPanel)>, f64) {
    let mut bottom = top;
    let placed = panels.iter().map(|panel| {
        let this = bottom;
        bottom += panel_height(panel);
        (this, *panel)
    });
    (placed.collect(), bottom)
}

fn panel_height(panel: &RatioPanel) -> f64 {
    panel.rows.len() as f64 * ROW + if panel.title.is_empty() { 0.0 } else { TITLE }
}

/// What the picture shows, for who does not see it.
fn summary(picture: &RatioPicture) -> String {
    let rows = picture.panels.iter().flat_map(|panel| &panel.rows);
    let each = rows.map(|row| format!("{} {}", row.target, number(&row.place)));
    format!("{}, {}: {}", picture.title, picture.axis, each.collect::<Vec<_>>().join(", "))
}

fn number(place: &RatioPlace) -> String {
    match place {
        RatioPlace::At { versus: seen, .. } => versus(*seen),
        RatioPlace::AtLeast(ratio) => at_least(*ratio),
        RatioPlace::Nowhere(_) => "no number".to_string(),
    }
}

fn drawn_panel(panel: &RatioPanel, top: f64, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let first = top + if panel.title.is_empty() { 0.0 } else { TITLE };
    let middle = |place: usize| first + (place as f64 + 0.5) * ROW;
    let mut place = 0;
    let ranks = panel.rows.chunk_by(|one, next| one.rank.is_some() && one.rank == next.rank).map(|rows| {
        let ends = (middle(place), middle(place + rows.len() - 1));
        place += rows.len();
        (rows[0].rank, ends)
    });
    let ranks: Vec<_> = ranks.collect();
    html! {
        @if !panel.title.is_empty() {
            // No line of the axis goes through the words.
            rect y=(px(top)) width=(px(WIDTH)) height=(px(TITLE)) fill=(hex(PAPER.light)) {}
            (text(MARGIN, top + 18.0, &panel.title, GREY, "start"))
        }
        @for (rank, ends) in &ranks { (drawn_rank(*rank, *ends)) }
        @for (place, row) in panel.rows.iter().enumerate() { (drawn_row(row, middle(place), axis, is_noisy)) }
    }
}

/// The places that targets may have; a bracket for those that cannot be told apart.
fn drawn_rank(rank: Option<(usize, usize)>, (first, last): (f64, f64)) -> Markup {
    let Some((best, worst)) = rank else { return html! {} };
    let words = if best == worst { best.to_string() } else { format!("{best}-{worst}") };
    html! {
        (text(MARGIN, (first + last) / 2.0 + 4.5, &words, TEXT, "start"))
        @if last > first { (bracket(BRACKET, first, last)) }
    }
}

fn drawn_row(row: &RatioRow, y: f64, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let marks = match &row.place {
        RatioPlace::At { versus, blocks } => {
            let x = blocks.iter().map(|ratio| axis.x(*ratio));
            let ends = versus.low.zip(versus.high).filter(|(low, high)| low < high);
            html! {
                (ticks(x, y))
                @if let Some((low, high)) = ends { (bar(axis.x(low), axis.x(high), y, LINES[0], is_noisy)) }
                @if row.is_baseline { (baseline(axis.x(versus.ratio), y)) }
                @else { (dot(axis.x(versus.ratio), y, LINES[0], false)) }
            }
        }
        RatioPlace::AtLeast(ratio) => arrow(axis.x(*ratio), y),
        RatioPlace::Nowhere(why) => reason(PLOT, y + 4.5, &cut(why, REASON_LETTERS)),
    };
    let numbers = (!matches!(row.place, RatioPlace::Nowhere(_))).then(|| number(&row.place));
    html! {
        (text(NAMES, y + 4.5, &shortened(&row.target), if row.is_baseline { GREY } else { TEXT }, "start"))
        (marks)
        @if let Some(numbers) = numbers { (text(NUMBERS, y + 4.5, &numbers, TEXT, "start")) }
    }
}

/// The marks that occur.
fn legend(picture: &RatioPicture) -> Legend {
    let rows: Vec<&RatioRow> = picture.panels.iter().flat_map(|panel| &panel.rows).collect();
    let any = |is: &dyn Fn(&RatioPlace) -> bool| rows.iter().any(|row| is(&row.place));
    let has_interval = |versus: &Versus| versus.low.is_some_and(|low| Some(low) < versus.high);
    let shared = rows.iter().any(|row| row.rank.is_some_and(|(best, worst)| best < worst));
    let is_interval = |place: &RatioPlace| matches!(place, RatioPlace::At { versus, .. } if has_interval(versus));
    let has_blocks = |place: &RatioPlace| matches!(place, RatioPlace::At { blocks, .. } if !blocks.is_empty());
    let is_cut_off = |place: &RatioPlace| matches!(place, RatioPlace::AtLeast(_));
    let marks: [(DrawMark, _, _); 7] = [
        (|x, y| dot(x + 16.0, y, LINES[0], false), "median", true),
        (|x, y| bar(x, x + 32.0, y, LINES[0], false), "95 % interval", any(&is_interval)),
        (
            |x, y| ticks([3.0, 12.0, 15.0, 24.0].map(|at| x + at).into_iter(), y - 6.0),
            "one block each",
            any(&has_blocks),
        ),
        (|x, y| band(x + 2.0, x + 30.0, y - 9.0, y + 9.0), "the same store run twice (noise)", picture.band.is_some()),
        (|x, y| bracket(x + 20.0, y, y), "places that cannot be told apart", shared),
        (|x, y| baseline(x + 16.0, y), "baseline", rows.iter().any(|row| row.is_baseline)),
        (arrow, "cut off: at least", any(&is_cut_off)),
    ];
    Legend::of(&marks)
}

fn baseline(x: f64, y: f64) -> Markup {
    dot(x, y, GREY, true)
}

/// Around rows, from the middle of the first one to that of the last one.
fn bracket(x: f64, first: f64, last: f64) -> Markup {
    let path = format!("M{x} {} h-5 V{} h5", px(first - 9.0), px(last + 9.0), x = px(x));
    html! { path d=(path) fill="none" stroke=(hex(GREY.light)) {} }
}

/// All blocks of a target as one path, below its interval.
fn ticks(all: impl Iterator<Item = f64>, y: f64) -> Markup {
    let path: String = all.map(|x| format!("M{} {}v7", px(x), px(y + 7.0))).collect();
    html! { @if !path.is_empty() { path d=(path) fill="none" stroke=(hex(GREY.light)) {} } }
}
