//! What pictures of ratios are drawn with: one logarithmic axis, marks, and the legend that explains them. Colours and
//! sizes are attributes, so that a picture is whole without style sheets; those make it dark.

use maud::{Markup, html};

use crate::model::units;
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::{LETTER_SHARE, letters_in, px};
use crate::report::chart::{file, paragraph};
use crate::report::table::wrap;

// Lengths in the picture's own pixels.
pub const WIDTH: f64 = 880.0;
pub const MARGIN: f64 = 8.0;
pub const LETTERS: f64 = 13.0;
const HEADING: f64 = 15.0;
const HEADING_LINE: f64 = 20.0;
/// The numbers and the title of an axis.
pub const AXIS: f64 = 44.0;
const LEGEND: f64 = 24.0;
/// Where the first mark of a legend begins.
const LEGEND_MARKS: f64 = 96.0;
/// Room at both ends of the axis, as a share of it.
const MARGIN_SHARE: f64 = 0.04;

/// A picture of that height with its caption, which says what is not drawn.
pub fn figure(title: &str, height: f64, drawn: &Markup, caption: &str) -> Markup {
    html! {
        figure {
            div.scroll tabindex="0" role="region" aria-label=(title) {
                svg role="img" width=(px(WIDTH)) height=(px(height))
                    viewBox=(format!("0 0 {} {}", px(WIDTH), px(height)))
                    font-family="sans-serif" font-size=(px(LETTERS)) { (drawn) }
            }
            figcaption { (caption) }
        }
    }
}

/// What is drawn below a heading and above its caption, as a file of its own.
pub fn document(heading: &str, height: f64, drawn: &Markup, caption: &str) -> String {
    let inside = WIDTH - 2.0 * MARGIN;
    let heading = wrap(heading, letters_in(inside, HEADING));
    let caption = wrap(caption, letters_in(inside, LETTERS));
    let top = MARGIN + heading.len() as f64 * HEADING_LINE;
    let bottom = top + height;
    let whole = bottom + (caption.len() as f64 + 0.5) * HEADING_LINE;
    let body = html! {
        rect width=(px(WIDTH)) height=(px(whole)) fill=(hex(PAPER.light)) {}
        (paragraph(&heading, (MARGIN, MARGIN), HEADING, HEADING_LINE, TEXT))
        g transform=(format!("translate(0 {})", px(top))) { (drawn) }
        (paragraph(&caption, (MARGIN, bottom), LETTERS, HEADING_LINE, GREY))
    };
    file((WIDTH, whole), LETTERS, &body.into_string())
}

/// The sentences that are true, one behind the other.
pub fn said(sentences: &[(bool, &str)]) -> String {
    sentences.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// A logarithmic axis of ratios, or of seconds.
pub struct RatioAxis {
    low: f64,
    high: f64,
    /// Behind its numbers.
    unit: &'static str,
    /// Where it begins and ends in the picture.
    ends: (f64, f64),
}

impl RatioAxis {
    /// Around all of these ratios, and 1.
    pub fn around(ratios: impl Iterator<Item = f64>, ends: (f64, f64)) -> RatioAxis {
        RatioAxis::of(ratios.chain([1.0]), "x", ends)
    }

    /// Around all of these seconds.
    pub fn of_seconds(seconds: impl Iterator<Item = f64>, ends: (f64, f64)) -> RatioAxis {
        RatioAxis::of(seconds, " s", ends)
    }

    fn of(numbers: impl Iterator<Item = f64>, unit: &'static str, ends: (f64, f64)) -> RatioAxis {
        let all = numbers.filter(|number| *number > 0.0 && number.is_finite());
        let span = all.map(|number| (number, number)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let (low, high) = span.unwrap_or((1.0, 1.0));
        // Less than this across would draw noise large.
        let (low, high) = if high / low < 1.2 { (low / 1.1, high * 1.1) } else { (low, high) };
        let margin = libm::pow(high / low, MARGIN_SHARE);
        RatioAxis { low: low / margin, high: high * margin, unit, ends }
    }

    /// Its end at what lies beyond it.
    pub fn x(&self, ratio: f64) -> f64 {
        let share = libm::log(ratio.max(1e-12) / self.low) / libm::log(self.high / self.low);
        self.ends.0 + share.clamp(0.0, 1.0) * (self.ends.1 - self.ends.0)
    }

    pub fn has(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
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
        let times: &[f64] = if span > 1000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = (libm::log10(self.low).floor() as i32)..=(libm::log10(self.high).ceil() as i32);
        let ticks = powers.flat_map(|power| times.iter().map(move |times| times * 10_f64.powi(power)));
        ticks.filter(|tick| self.has(*tick)).collect()
    }

    /// Its lines from `top` to `bottom`, with numbers and title below them.
    pub fn drawn(&self, top: f64, bottom: f64, title: &str) -> Markup {
        html! {
            @for tick in self.ticks() {
                @let is_origin = tick == 1.0 && self.unit == "x";
                (line((self.x(tick), top), (self.x(tick), bottom), if is_origin { GREY } else { GRID }))
                (text(self.x(tick), bottom + 16.0, &tick_text(tick, self.unit), GREY, "middle"))
            }
            (text((self.ends.0 + self.ends.1) / 2.0, bottom + 36.0, title, GREY, "middle"))
        }
    }
}

/// Draws a mark of a legend: its left end, and the middle of its height.
pub type DrawMark = fn(f64, f64) -> Markup;

/// What the marks of a picture mean, beside the marks, in as many lines as that needs.
pub struct Legend {
    items: Vec<LegendItem>,
}

struct LegendItem {
    line: usize,
    x: f64,
    mark: DrawMark,
    words: &'static str,
}

impl Legend {
    /// Of the marks that occur.
    pub fn of(marks: &[(DrawMark, &'static str, bool)]) -> Legend {
        let (mut line, mut x) = (0, LEGEND_MARKS);
        let items = marks.iter().filter(|(.., occurs)| *occurs).map(|(mark, words, _)| {
            let width = 40.0 + words.chars().count() as f64 * LETTERS * LETTER_SHARE + 14.0;
            if x + width > WIDTH && x > LEGEND_MARKS {
                (line, x) = (line + 1, LEGEND_MARKS);
            }
            let item = LegendItem { line, x, mark: *mark, words };
            x += width;
            item
        });
        Legend { items: items.collect() }
    }

    /// Where it ends in the picture.
    pub fn bottom(&self) -> f64 {
        let lines = self.items.iter().map(|item| item.line + 1).max().unwrap_or(0);
        MARGIN + LEGEND * lines as f64 + MARGIN
    }

    pub fn drawn(&self) -> Markup {
        html! {
            @for (place, item) in self.items.iter().enumerate() {
                @let y = MARGIN + (item.line as f64 + 0.5) * LEGEND;
                @if place == 0 { (text(MARGIN, y + 4.5, "how to read", GREY, "start")) }
                ((item.mark)(item.x, y))
                (text(item.x + 40.0, y + 4.5, item.words, GREY, "start"))
            }
        }
    }
}

/// A filled one, or one of paper with an edge.
pub fn dot(x: f64, y: f64, stroke: Stroke, is_hollow: bool) -> Markup {
    let fill = if is_hollow { PAPER } else { stroke };
    html! {
        circle cx=(px(x)) cy=(px(y)) r="5" fill=(hex(fill.light)) stroke=(hex(stroke.light)) stroke-width="2" {}
    }
}

/// An interval; of a noisy run a thin one.
pub fn bar(from: f64, to: f64, y: f64, stroke: Stroke, is_noisy: bool) -> Markup {
    let (from, to) = (px(from), px(to.max(from + 1.0)));
    let path = format!("M{from} {end}v8M{from} {y}H{to}M{to} {end}v8", y = px(y), end = px(y - 4.0));
    html! {
        path d=(path) fill="none" stroke=(hex(stroke.light)) stroke-width=(if is_noisy { "1.5" } else { "3" }) {}
    }
}

/// What is noise.
pub fn band(from: f64, to: f64, top: f64, bottom: f64) -> Markup {
    html! {
        rect x=(px(from)) y=(px(top)) width=(px((to - from).max(1.0))) height=(px(bottom - top))
            fill=(hex(GRID.light)) {}
        @for x in [from, to] {
            path d=(format!("M{} {}V{}", px(x), px(top), px(bottom))) fill="none" stroke=(hex(GREY.light))
                stroke-dasharray="2 3" {}
        }
    }
}

/// It goes on beyond what is drawn.
pub fn arrow(x: f64, y: f64) -> Markup {
    let path = format!("M{x} {} v10 M{x} {y} h28 m-7 -5 l7 5 l-7 5", px(y - 5.0), x = px(x), y = px(y));
    html! { path d=(path) fill="none" stroke=(hex(TEXT.light)) stroke-width="2" {} }
}

pub fn line((x, y): (f64, f64), (to_x, to_y): (f64, f64), stroke: Stroke) -> Markup {
    let path = format!("M{} {}L{} {}", px(x), px(y), px(to_x), px(to_y));
    html! { path d=(path) fill="none" stroke=(hex(stroke.light)) {} }
}

pub fn text(x: f64, y: f64, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! { text x=(px(x)) y=(px(y)) fill=(hex(stroke.light)) text-anchor=(anchor) { (words) } }
}

/// A reason: what went wrong stands out.
pub fn reason(x: f64, y: f64, words: &str) -> Markup {
    text(x, y, words, if words.starts_with("FAILED") { LINES[5] } else { GREY }, "start")
}

/// "0.5x", "1.25x", "1,000 s".
fn tick_text(number: f64, unit: &str) -> String {
    if number >= 1000.0 {
        return format!("{}{unit}", units::thousands(number.round() as u64));
    }
    format!("{}{unit}", format!("{number:.6}").trim_end_matches('0').trim_end_matches('.'))
}

pub fn cut(text: &str, letters: usize) -> String {
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
            let ticks = RatioAxis { low, high, unit: "x", ends: (0.0, 1.0) }.ticks();
            let told: Vec<String> = ticks.iter().map(|tick| tick_text(*tick, "")).collect();
            assert_eq!(told.join(" "), expected);
        }
        assert_eq!([px(1.0), px(1.24), px(10.0)], ["1", "1.2", "10"]);
    }

    #[test]
    fn equal_ratios_are_equal_lengths_and_what_lies_beyond_is_at_the_end() {
        let axis = RatioAxis { low: 0.5, high: 8.0, unit: "x", ends: (300.0, 700.0) };
        let lengths = [axis.x(2.0) - axis.x(1.0), axis.x(4.0) - axis.x(2.0)];
        assert!((lengths[0] - lengths[1]).abs() < 1e-9 && (axis.x(8.0) - 700.0).abs() < 1e-9, "{lengths:?}");
        assert!(axis.has(8.0) && !axis.has(9.0) && (axis.x(9.0) - 700.0).abs() < 1e-9);
        let around = RatioAxis::around([3.0, f64::NAN, 0.0].into_iter(), (0.0, 1.0));
        assert!(around.has(1.0) && around.has(3.0) && !around.has(0.5));
        let seconds = RatioAxis::of_seconds([0.02, 0.08].into_iter(), (0.0, 1.0));
        assert!(seconds.has(0.08) && !seconds.has(1.0), "seconds have no origin");
    }

    #[test]
    fn a_legend_has_the_marks_that_occur_and_breaks_its_lines() {
        let mark: DrawMark = |x, y| dot(x, y, LINES[0], false);
        let words = "a mark whose words take more than half of the width of a picture";
        let legend = Legend::of(&[(mark, words, true), (mark, "not there", false), (mark, words, true)]);
        assert_eq!(legend.items.iter().map(|item| item.line).collect::<Vec<_>>(), [0, 1]);
        let drawn = legend.drawn().into_string();
        assert!(drawn.matches("<circle").count() == 2 && drawn.matches("how to read").count() == 1, "{drawn}");
        assert!(!drawn.contains("not there") && legend.bottom() > Legend::of(&[(mark, "one", true)]).bottom());
    }
}
