//! Ratios as SVG: a row a target on one logarithmic axis, with its interval and its blocks.

use maud::{Markup, html};

use super::marks::{
    self, AXIS, DrawMark, Legend, MARGIN, RatioAxis, WIDTH, arrow, band, bar, cut, dot, line, reason, said, text,
};
use super::ratios::{AxisUnit, RatioPanel, RatioPicture, RatioPlace, RatioRow};
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::px;
use crate::report::chart::shortened;
use crate::report::versus::Versus;

// Lengths in the picture's own pixels.
/// Where names, the plot and the numbers begin; ranks stand at the margin.
const BRACKET: f64 = 44.0;
const NAMES: f64 = 54.0;
const PLOT: f64 = 284.0;
const PLOT_END: f64 = 652.0;
const NUMBERS: f64 = 686.0;
const ROW: f64 = 36.0;
/// Below the name what it is, and below the ratio what it is of.
const SMALL_LETTERS: f64 = 11.0;
const TITLE: f64 = 26.0;
/// So much of a reason stands in the picture; the table has all of it.
const REASON_LETTERS: usize = 62;

/// Around all that is drawn in those of these pictures that have this unit, which are compared by eye.
pub fn axis_of(pictures: &[RatioPicture], unit: AxisUnit) -> RatioAxis {
    let pictures: Vec<&RatioPicture> = pictures.iter().filter(|picture| picture.unit == unit).collect();
    let rows = pictures.iter().flat_map(|picture| &picture.panels).flat_map(|panel| &panel.rows);
    let drawn = rows.flat_map(|row| match &row.place {
        RatioPlace::At { versus, blocks } => {
            let ends = [Some(versus.ratio), versus.low, versus.high].into_iter().flatten();
            ends.chain(blocks.iter().copied()).collect()
        }
        RatioPlace::AtLeast(ratio) => vec![*ratio],
        RatioPlace::Nowhere(_) => Vec::new(),
    });
    match unit {
        AxisUnit::Seconds => RatioAxis::of_seconds(drawn, (PLOT, PLOT_END)),
        AxisUnit::Times => {
            let band = pictures.iter().filter_map(|picture| picture.band).flat_map(|(low, high)| [low, high]);
            RatioAxis::around(drawn.chain(band), (PLOT, PLOT_END))
        }
    }
}

/// What the pictures of one axis are of; empty where there is one.
pub fn alike(pictures: &[RatioPicture], unit: AxisUnit) -> &'static str {
    let all: Vec<&str> = pictures.iter().filter(|picture| picture.unit == unit).map(|one| one.measure).collect();
    match (all.contains(&"seconds"), all.contains(&"cpu")) {
        _ if all.len() < 2 => "",
        (true, true) => "time and CPU",
        (true, false) => "time",
        (false, true) => "CPU",
        (false, false) => "memory and disk",
    }
}

/// The picture with its caption. `alike` names the pictures that have the same axis; empty for one by itself.
pub fn figure(picture: &RatioPicture, axis: &RatioAxis, alike: &str) -> Markup {
    let (height, drawn) = drawn(picture, axis);
    marks::figure(&picture.title, height, &drawn, &caption(picture, alike))
}

/// The picture as a file of its own.
pub fn document(heading: &str, picture: &RatioPicture) -> String {
    let (height, drawn) = drawn(picture, &axis_of(std::slice::from_ref(picture), picture.unit));
    marks::document(heading, height, &drawn, &caption(picture, ""))
}

fn caption(picture: &RatioPicture, alike: &str) -> String {
    let axis = match alike {
        "" => "Logarithmic axis.".to_string(),
        alike => format!("Logarithmic axis, the same in all charts of {alike}."),
    };
    let is_of_seconds = picture.unit == AxisUnit::Seconds;
    let noise = picture
        .band
        .filter(|_| is_of_seconds)
        .map(|(low, high)| format!("Noise: the same store run twice came out from {low:.2}x to {high:.2}x of itself."));
    said(&[
        (!picture.about.is_empty(), picture.about),
        (true, &axis),
        (is_of_seconds, "Ratios are to the best target of the panel. Nothing is claimed across panels."),
        (true, "Ratios compare trials of the same block."),
        (noise.is_some(), noise.as_deref().unwrap_or_default()),
        (picture.is_seen_once, "One block ran: there is no interval and no claim."),
        (picture.is_rough(), "About: too few blocks count for an exact interval, so it is rough."),
        (picture.is_noisy, "Noisy: only the end of an interval that is nearest to 1x is claimed (at least)."),
        (picture.band.is_none(), "No store was run twice often enough, so the noise is unknown."),
    ])
}

/// How high it is, and what is in it.
fn drawn(picture: &RatioPicture, axis: &RatioAxis) -> (f64, Markup) {
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
        @if let Some((low, high)) = drawn_band(picture) {
            (band(axis.x(low), axis.x(high), top, bottom))
        }
        (axis.drawn(top, bottom, &picture.axis))
        @for (top, panel) in placed.into_iter().chain(others) {
            (drawn_panel(panel, top, axis, picture.is_noisy))
        }
    };
    (height, drawn)
}

/// Noise is a ratio: it has no place on an axis of seconds.
fn drawn_band(picture: &RatioPicture) -> Option<(f64, f64)> {
    picture.band.filter(|_| picture.unit == AxisUnit::Times)
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
    let each = rows.map(|row| match row.place {
        RatioPlace::Nowhere(_) => format!("{} no number", row.target),
        _ => format!("{} {}", row.target, row.numbers[0]),
    });
    format!("{}, {}: {}", picture.title, picture.axis, each.collect::<Vec<_>>().join(", "))
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
            (line((MARGIN, top + 1.0), (WIDTH - MARGIN, top + 1.0), GRID))
            (text(MARGIN, top + 18.0, &panel.title, TEXT, "start"))
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
                @let stroke = if row.is_baseline { GREY } else { LINES[0] };
                @if let Some((low, high)) = ends { (bar(axis.x(low), axis.x(high), y, stroke, is_noisy)) }
                @if row.is_baseline { (baseline(axis.x(versus.ratio), y)) }
                @else { (dot(axis.x(versus.ratio), y, LINES[0], is_noisy)) }
            }
        }
        RatioPlace::AtLeast(ratio) => arrow(axis.x(*ratio), y),
        RatioPlace::Nowhere(why) => reason(PLOT, y + 4.5, &cut(why, REASON_LETTERS)),
    };
    let (name, stroke) = (shortened(&row.target), if row.is_baseline { GREY } else { TEXT });
    html! {
        (two_lines(NAMES, y, (&name, stroke), row.kind))
        (marks)
        (two_lines(NUMBERS, y, (&row.numbers[0], stroke), &row.numbers[1]))
    }
}

/// A line with a smaller one below it, around the middle of a row; one alone stands in the middle.
fn two_lines(x: f64, y: f64, (upper, stroke): (&str, Stroke), lower: &str) -> Markup {
    html! {
        @if !upper.is_empty() {
            (text(x, if lower.is_empty() { y + 4.5 } else { y - 2.5 }, upper, stroke, "start"))
        }
        @if !lower.is_empty() {
            text x=(px(x)) y=(px(y + 11.5)) font-size=(px(SMALL_LETTERS)) fill=(hex(GREY.light)) { (lower) }
        }
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
    let is_noisy = picture.is_noisy;
    let has_median = rows.iter().any(|row| !row.is_baseline && matches!(row.place, RatioPlace::At { .. }));
    // The title of the panel says what a diamond is.
    let marks: [(DrawMark, _, _); 8] = [
        (|x, y| dot(x + 16.0, y, LINES[0], false), "median", has_median && !is_noisy),
        (|x, y| dot(x + 16.0, y, LINES[0], true), "median, uncertain", has_median && is_noisy),
        (|x, y| bar(x, x + 32.0, y, LINES[0], false), "95 % interval", any(&is_interval) && !is_noisy),
        (|x, y| bar(x, x + 32.0, y, LINES[0], true), "95 % interval", any(&is_interval) && is_noisy),
        (
            |x, y| ticks([3.0, 12.0, 15.0, 24.0].map(|at| x + at).into_iter(), y - 6.0),
            "one block each",
            any(&has_blocks),
        ),
        (|x, y| band(x + 2.0, x + 30.0, y - 9.0, y + 9.0), "noise: same store twice", drawn_band(picture).is_some()),
        (|x, y| bracket(x + 20.0, y, y), "the order is not known", shared),
        (arrow, "cut off: at least", any(&is_cut_off)),
    ];
    Legend::of(&marks)
}

fn baseline(x: f64, y: f64) -> Markup {
    let path = format!("M{} {}l6 6l-6 6l-6 -6z", px(x), px(y - 6.0));
    html! { path d=(path) fill=(hex(PAPER.light)) stroke=(hex(GREY.light)) stroke-width="2" {} }
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
