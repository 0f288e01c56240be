//! Ratios as SVG: a row a target on one logarithmic axis, with its interval and its blocks. Colours and sizes are
//! attributes, so that the picture is whole without style sheets; those make it dark.

use maud::{Markup, html};

use super::ratios::{RatioPanel, RatioPicture, RatioPlace, RatioRow};
use crate::model::units;
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::px;
use crate::report::chart::shortened;
use crate::report::versus::{Versus, at_least, versus};

// Lengths in the picture's own pixels.
const WIDTH: f64 = 880.0;
/// Where ranks, names, the plot and the numbers begin.
const RANKS: f64 = 8.0;
const BRACKET: f64 = 44.0;
const NAMES: f64 = 54.0;
const PLOT: f64 = 304.0;
const PLOT_END: f64 = 684.0;
const NUMBERS: f64 = 724.0;
const ROW: f64 = 30.0;
const TITLE: f64 = 26.0;
const LEGEND: f64 = 24.0;
const AXIS: f64 = 44.0;
const MARGIN: f64 = 8.0;
const LETTERS: f64 = 13.0;
/// The mean width of a letter by its height.
const LETTER_SHARE: f64 = 0.6;
/// So much of a reason stands in the picture; the table has all of it.
const REASON_LETTERS: usize = 62;
/// Room at both ends of the axis, as a share of it.
const MARGIN_SHARE: f64 = 0.04;

/// The logarithmic axis of all panels.
struct RatioAxis {
    low: f64,
    high: f64,
}

impl RatioAxis {
    /// Around all that is drawn, and 1.
    fn of(picture: &RatioPicture) -> RatioAxis {
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
        let all = drawn.chain(band).filter(|ratio| *ratio > 0.0 && ratio.is_finite());
        let (low, high) = all.fold((1.0_f64, 1.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
        // Less than this across would draw noise large.
        let (low, high) = if high / low < 1.2 { (low / 1.1, high * 1.1) } else { (low, high) };
        let margin = libm::pow(high / low, MARGIN_SHARE);
        RatioAxis { low: low / margin, high: high * margin }
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = libm::log(ratio.max(1e-12) / self.low) / libm::log(self.high / self.low);
        PLOT + share.clamp(0.0, 1.0) * (PLOT_END - PLOT)
    }

    /// Round numbers with room between them.
    fn ticks(&self) -> Vec<f64> {
        let span = self.high / self.low;
        if span < 3.5 {
            let step = [(1.25, 0.05), (1.7, 0.1), (3.5, 0.25)].into_iter().find(|(most, _)| span < *most);
            let step = step.map_or(0.5, |(_, step)| step);
            let first = (self.low / step).ceil() as i64;
            let all = (first..).map(|count| count as f64 * step);
            return all.take_while(|tick| *tick <= self.high).collect();
        }
        let times: &[f64] = if span > 300.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = (libm::log10(self.low).floor() as i32)..=(libm::log10(self.high).ceil() as i32);
        let ticks = powers.flat_map(|power| times.iter().map(move |times| times * 10_f64.powi(power)));
        ticks.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

/// The picture with its caption, which says what is not drawn.
pub fn figure(picture: &RatioPicture) -> Markup {
    html! {
        figure {
            div.scroll tabindex="0" role="region" aria-label=(picture.title) { (svg(picture)) }
            figcaption { (caption(picture)) }
        }
    }
}

fn caption(picture: &RatioPicture) -> String {
    let said = [
        (!picture.about.is_empty(), picture.about),
        (true, "Logarithmic axis; ratios compare trials of the same block."),
        (picture.is_seen_once, "Seen once, no claim: one block has no interval."),
        (picture.is_noisy, "Noisy: bars are dashed, and only the end of an interval nearest to 1 is claimed."),
        (picture.band.is_none(), "No store was run twice often enough, so the noise is unknown."),
    ];
    said.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect::<Vec<_>>().join(" ")
}

fn svg(picture: &RatioPicture) -> Markup {
    let axis = RatioAxis::of(picture);
    let legend = legend(picture);
    let legend_lines = legend.iter().map(|item| item.line + 1).max().unwrap_or(0);
    let top = MARGIN + LEGEND * legend_lines as f64 + MARGIN;
    let (placed, others): (Vec<_>, Vec<_>) = picture.panels.iter().partition(|panel| has_place(panel));
    let (placed, bottom) = stacked(&placed, top);
    // What has no place on the axis stands below it.
    let (others, height) = stacked(&others, bottom + AXIS);
    let ticks = axis.ticks();
    html! {
        svg role="img" width=(px(WIDTH)) height=(px(height)) viewBox=(format!("0 0 {} {}", px(WIDTH), px(height)))
            font-family="sans-serif" font-size=(px(LETTERS)) {
            title { (summary(picture)) }
            rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
            @for item in &legend { (item.drawn()) }
            @if let Some((low, high)) = picture.band {
                (band(axis.x(low), axis.x(high), top, bottom))
            }
            @for tick in &ticks {
                (line((axis.x(*tick), top), (axis.x(*tick), bottom), if *tick == 1.0 { GREY } else { GRID }))
                (text(axis.x(*tick), bottom + 16.0, &tick_text(*tick), GREY, "middle"))
            }
            (text((PLOT + PLOT_END) / 2.0, bottom + 36.0, picture.axis, GREY, "middle"))
            @for (top, panel) in placed.into_iter().chain(others) {
                (drawn_panel(panel, top, &axis, picture.is_noisy))
            }
        }
    }
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
            (text(RANKS, top + 18.0, &panel.title, GREY, "start"))
        }
        @for (rank, ends) in &ranks { (drawn_rank(*rank, *ends)) }
        @for (place, row) in panel.rows.iter().enumerate() { (drawn_row(row, middle(place), axis, is_noisy)) }
    }
}

/// The places that targets may have; a bracket for those that cannot be told apart.
fn drawn_rank(rank: Option<(usize, usize)>, (first, last): (f64, f64)) -> Markup {
    let Some((best, worst)) = rank else { return html! {} };
    let words = if best == worst { best.to_string() } else { format!("{best}-{worst}") };
    let path = format!("M{x} {} h-5 V{} h5", px(first - 9.0), px(last + 9.0), x = px(BRACKET));
    html! {
        (text(RANKS, (first + last) / 2.0 + 4.5, &words, TEXT, "start"))
        @if last > first { path d=(path) fill="none" stroke=(hex(GREY.light)) {} }
    }
}

fn drawn_row(row: &RatioRow, y: f64, axis: &RatioAxis, is_noisy: bool) -> Markup {
    let marks = match &row.place {
        RatioPlace::At { versus, blocks } => {
            let x = blocks.iter().map(|ratio| axis.x(*ratio));
            let ends = versus.low.zip(versus.high).filter(|(low, high)| low < high);
            html! {
                (ticks(x, y))
                @if let Some((low, high)) = ends { (bar(axis.x(low), axis.x(high), y, is_noisy)) }
                (dot(axis.x(versus.ratio), y, row.is_baseline))
            }
        }
        RatioPlace::AtLeast(ratio) => arrow(axis.x(*ratio), y),
        RatioPlace::Nowhere(why) => html! {
            (text(PLOT, y + 4.5, &cut(why, REASON_LETTERS), if why.starts_with("FAILED") { LINES[5] } else { GREY }, "start"))
        },
    };
    let numbers = (!matches!(row.place, RatioPlace::Nowhere(_))).then(|| number(&row.place));
    html! {
        (text(NAMES, y + 4.5, &shortened(&row.target), if row.is_baseline { GREY } else { TEXT }, "start"))
        (marks)
        @if let Some(numbers) = numbers { (text(NUMBERS, y + 4.5, &numbers, TEXT, "start")) }
    }
}

/// What a mark means, beside the mark.
struct LegendItem {
    line: usize,
    x: f64,
    mark: LegendMark,
    words: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LegendMark {
    Dot,
    Bar,
    Ticks,
    Band,
    Hollow,
    Arrow,
    Bracket,
}

/// The marks that occur, in as many lines as they need.
fn legend(picture: &RatioPicture) -> Vec<LegendItem> {
    let rows: Vec<&RatioRow> = picture.panels.iter().flat_map(|panel| &panel.rows).collect();
    let any = |is: &dyn Fn(&RatioPlace) -> bool| rows.iter().any(|row| is(&row.place));
    let has_interval = |versus: &Versus| versus.low.is_some_and(|low| Some(low) < versus.high);
    let shared = rows.iter().any(|row| row.rank.is_some_and(|(best, worst)| best < worst));
    let occur = [
        (LegendMark::Dot, "median", true),
        (
            LegendMark::Bar,
            "95 % interval",
            any(&|place| matches!(place, RatioPlace::At { versus, .. } if has_interval(versus))),
        ),
        (
            LegendMark::Ticks,
            "one block each",
            any(&|place| matches!(place, RatioPlace::At { blocks, .. } if !blocks.is_empty())),
        ),
        (LegendMark::Band, "the same store run twice (noise)", picture.band.is_some()),
        (LegendMark::Bracket, "places that cannot be told apart", shared),
        (LegendMark::Hollow, "baseline", rows.iter().any(|row| row.is_baseline)),
        (LegendMark::Arrow, "cut off: at least", any(&|place| matches!(place, RatioPlace::AtLeast(_)))),
    ];
    let (mut line, mut x) = (0, 96.0);
    let items = occur.into_iter().filter(|(.., occurs)| *occurs).map(|(mark, words, _)| {
        let width = 40.0 + words.chars().count() as f64 * LETTERS * LETTER_SHARE + 14.0;
        if x + width > WIDTH {
            (line, x) = (line + 1, 96.0);
        }
        let item = LegendItem { line, x, mark, words };
        x += width;
        item
    });
    items.collect()
}

impl LegendItem {
    fn drawn(&self) -> Markup {
        let (x, y) = (self.x, MARGIN + (self.line as f64 + 0.5) * LEGEND);
        let mark = match self.mark {
            LegendMark::Dot => dot(x + 16.0, y, false),
            LegendMark::Hollow => dot(x + 16.0, y, true),
            LegendMark::Bar => bar(x, x + 32.0, y, false),
            LegendMark::Ticks => ticks([3.0, 12.0, 15.0, 24.0].into_iter().map(|at| x + at), y - 6.0),
            LegendMark::Band => band(x + 2.0, x + 30.0, y - 9.0, y + 9.0),
            LegendMark::Arrow => arrow(x, y),
            LegendMark::Bracket => {
                let path = format!("M{} {} h-5 V{} h5", px(x + 20.0), px(y - 9.0), px(y + 9.0));
                html! { path d=(path) fill="none" stroke=(hex(GREY.light)) {} }
            }
        };
        html! {
            @if self.line == 0 && self.mark == LegendMark::Dot { (text(RANKS, y + 4.5, "how to read", GREY, "start")) }
            (mark)
            (text(x + 40.0, y + 4.5, self.words, GREY, "start"))
        }
    }
}

fn dot(x: f64, y: f64, is_hollow: bool) -> Markup {
    let (fill, stroke) = if is_hollow { (PAPER, GREY) } else { (LINES[0], LINES[0]) };
    html! {
        circle cx=(px(x)) cy=(px(y)) r="5" fill=(hex(fill.light)) stroke=(hex(stroke.light)) stroke-width="2" {}
    }
}

fn bar(from: f64, to: f64, y: f64, is_noisy: bool) -> Markup {
    let (from, to) = (px(from), px(to.max(from + 1.0)));
    let path = format!("M{from} {end}v8M{from} {y}H{to}M{to} {end}v8", y = px(y), end = px(y - 4.0));
    html! {
        path d=(path) fill="none" stroke=(hex(LINES[0].light)) stroke-width="3"
            stroke-dasharray=[is_noisy.then_some("4 3")] {}
    }
}

/// All blocks of a target as one path, below its interval.
fn ticks(all: impl Iterator<Item = f64>, y: f64) -> Markup {
    let path: String = all.map(|x| format!("M{} {}v7", px(x), px(y + 7.0))).collect();
    html! { @if !path.is_empty() { path d=(path) fill="none" stroke=(hex(GREY.light)) {} } }
}

fn band(from: f64, to: f64, top: f64, bottom: f64) -> Markup {
    html! {
        rect x=(px(from)) y=(px(top)) width=(px((to - from).max(1.0))) height=(px(bottom - top))
            fill=(hex(GRID.light)) {}
        @for x in [from, to] {
            path d=(format!("M{} {}V{}", px(x), px(top), px(bottom))) fill="none" stroke=(hex(GREY.light))
                stroke-dasharray="2 3" {}
        }
    }
}

fn arrow(x: f64, y: f64) -> Markup {
    let path = format!("M{x} {} v10 M{x} {y} h28 m-7 -5 l7 5 l-7 5", px(y - 5.0), x = px(x), y = px(y));
    html! { path d=(path) fill="none" stroke=(hex(TEXT.light)) stroke-width="2" {} }
}

fn line((x, y): (f64, f64), (to_x, to_y): (f64, f64), stroke: Stroke) -> Markup {
    let path = format!("M{} {}L{} {}", px(x), px(y), px(to_x), px(to_y));
    html! { path d=(path) fill="none" stroke=(hex(stroke.light)) {} }
}

fn text(x: f64, y: f64, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! { text x=(px(x)) y=(px(y)) fill=(hex(stroke.light)) text-anchor=(anchor) { (words) } }
}

/// "0.5x", "1.25x", "1,000x".
fn tick_text(ratio: f64) -> String {
    if ratio >= 1000.0 {
        return format!("{}x", units::thousands(ratio.round() as u64));
    }
    format!("{}x", format!("{ratio:.4}").trim_end_matches('0').trim_end_matches('.'))
}

fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_string();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_have_room() {
        for (low, high, expected) in [
            (0.95, 1.16, "0.95 1 1.05 1.1 1.15"),
            (0.9, 1.51, "0.9 1 1.1 1.2 1.3 1.4 1.5"),
            (0.9, 2.1, "1 1.25 1.5 1.75 2"),
            (0.1, 12.0, "0.1 0.2 0.5 1 2 5 10"),
            (0.05, 5000.0, "0.1 1 10 100 1,000"),
        ] {
            let ticks = RatioAxis { low, high }.ticks();
            let told: Vec<String> =
                ticks.iter().map(|tick| tick_text(*tick).trim_end_matches('x').to_string()).collect();
            assert_eq!(told.join(" "), expected);
        }
        assert_eq!([px(1.0), px(1.24), px(10.0)], ["1", "1.2", "10"]);
    }

    #[test]
    fn equal_ratios_are_equal_lengths() {
        let axis = RatioAxis { low: 0.5, high: 8.0 };
        let lengths = [axis.x(2.0) - axis.x(1.0), axis.x(4.0) - axis.x(2.0)];
        assert!((lengths[0] - lengths[1]).abs() < 1e-9 && (axis.x(8.0) - PLOT_END).abs() < 1e-9, "{lengths:?}");
    }
}
