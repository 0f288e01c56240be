//! Steps as SVG: dots with their intervals over places in order, and levels that change where a step is claimed.

use maud::{Markup, html};

use super::marks::{self, DrawMark, LETTERS, Legend, MARGIN, WIDTH, cut, dot, line, said, text};
use crate::model::units;
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::plot::{letters_in, printable, px};
use crate::report::chart::{file, paragraph};
use crate::report::steps::{StepChart, StepLevel, StepMark};
use crate::report::table::wrap;

// Lengths in the picture's own pixels.
/// Where the plot begins and ends, and how high it is.
const PLOT: f64 = 88.0;
const PLOT_END: f64 = 864.0;
const PLOT_HEIGHT: f64 = 240.0;
/// Above the plot, for the words of rules.
const RULES: f64 = 34.0;
/// Below it: labels and the name of the axis.
const BELOW: f64 = 52.0;
/// A label has so much room at least.
const LABEL_ROOM: f64 = 76.0;
const SMALL: f64 = 11.0;
/// Numbers keep so much of the axis free at either end.
const MARGIN_SHARE: f64 = 0.08;
/// An axis shows at least this from its low to its high end.
const SPAN_LEAST: f64 = 1.1;
const TICKS_MAX: usize = 6;
const HEADING: f64 = 15.0;
const HEADING_LINE: f64 = 20.0;

/// The picture with its caption.
pub fn figure(chart: &StepChart) -> Markup {
    let (height, drawn) = drawn(chart);
    marks::figure(&printable(&chart.title), height, &drawn, &caption(chart))
}

/// Pictures below each other, under a heading, as a file of their own.
pub fn document(heading: &str, charts: &[StepChart]) -> String {
    let inside = WIDTH - 2.0 * MARGIN;
    let heading = wrap(heading, letters_in(inside, HEADING));
    let mut bottom = MARGIN + (heading.len() as f64 + 0.5) * HEADING_LINE;
    let placed = charts.iter().map(|chart| {
        let (height, picture) = drawn(chart);
        let title = bottom;
        let top = title + HEADING_LINE;
        let words = wrap(&caption(chart), letters_in(inside, LETTERS));
        bottom = top + height + (words.len() as f64 + 1.0) * HEADING_LINE;
        (chart, title, top, top + height, picture, words)
    });
    let placed: Vec<_> = placed.collect();
    let body = html! {
        rect width=(px(WIDTH)) height=(px(bottom)) fill=(hex(PAPER.light)) {}
        (paragraph(&heading, (MARGIN, MARGIN), HEADING, HEADING_LINE, TEXT))
        @for (chart, title, top, below, picture, words) in &placed {
            (paragraph(std::slice::from_ref(&chart.title), (MARGIN, *title), LETTERS, HEADING_LINE, TEXT))
            g transform=(format!("translate(0 {})", px(*top))) { (picture) }
            (paragraph(words, (MARGIN, *below), LETTERS, HEADING_LINE, GREY))
        }
    };
    file((WIDTH, bottom), LETTERS, &body.into_string())
}

fn caption(chart: &StepChart) -> String {
    let notes = chart.notes.iter().map(|note| (true, note.as_str()));
    said(
        &[(true, "The upright axis is logarithmic and does not begin at 0.")]
            .into_iter()
            .chain(notes)
            .collect::<Vec<_>>(),
    )
}

/// A logarithmic axis around what is drawn.
struct UpAxis {
    low: f64,
    high: f64,
    top: f64,
}

impl UpAxis {
    fn around(numbers: impl Iterator<Item = f64>, top: f64) -> UpAxis {
        let (low, high) = numbers.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let missing = (SPAN_LEAST / (high / low)).max(1.0).sqrt();
        let margin = libm::pow(high / low * missing * missing, MARGIN_SHARE);
        UpAxis { low: low / missing / margin, high: high * missing * margin, top }
    }

    fn y(&self, number: f64) -> f64 {
        let share = libm::log(number.max(1e-300) / self.low) / libm::log(self.high / self.low);
        self.top + (1.0 - share.clamp(0.0, 1.0)) * PLOT_HEIGHT
    }

    /// Round numbers: even steps where they are near each other, else 1, 2 and 5 times powers of ten.
    fn ticks(&self) -> Vec<f64> {
        if self.high / self.low > 5.0 {
            let powers = (libm::log10(self.low).floor() as i32)..=(libm::log10(self.high).ceil() as i32);
            let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * libm::pow(10.0, f64::from(power))));
            let ticks: Vec<f64> = all.filter(|tick| (self.low..=self.high).contains(tick)).collect();
            let step = ticks.len().div_ceil(TICKS_MAX).max(1);
            return ticks.into_iter().step_by(step).collect();
        }
        let power = libm::pow(10.0, libm::log10((self.high - self.low) / TICKS_MAX as f64).floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
        let is_enough = |step: &f64| (self.high - self.low) / step <= TICKS_MAX as f64;
        let step = steps.into_iter().find(is_enough).unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|count| count as f64 * step).take_while(|tick| *tick <= self.high).collect()
    }
}

/// Where a place lies, from left to right.
fn x(chart: &StepChart, place: f64) -> f64 {
    PLOT + (place + 0.5) / chart.places.len().max(1) as f64 * (PLOT_END - PLOT)
}

fn legend(chart: &StepChart) -> Legend {
    let has = |is: fn(&StepMark) -> bool| chart.places.iter().any(|place| is(&place.mark));
    let mark: DrawMark = |x, y| spanned(x + 16.0, y, (y + 8.0, y - 8.0), false);
    let hollow: DrawMark = |x, y| dot(x + 16.0, y, LINES[0], true);
    let failed: DrawMark = |x, y| cross(x + 16.0, y);
    let level: DrawMark = |x, y| thick((x, y), (x + 32.0, y));
    Legend::of(&[
        (mark, "estimate and its interval", has(|mark| matches!(mark, StepMark::At { is_hollow: false, .. }))),
        (hollow, "noisy: not used", has(|mark| matches!(mark, StepMark::At { is_hollow: true, .. }))),
        (failed, "no number", has(|mark| *mark == StepMark::Failed)),
        (level, "level between steps", !chart.levels.is_empty()),
    ])
}

/// How high it is, and what is in it.
fn drawn(chart: &StepChart) -> (f64, Markup) {
    let legend = legend(chart);
    let axis = UpAxis::around(chart.numbers(), legend.bottom() + RULES);
    let bottom = axis.top + PLOT_HEIGHT;
    let height = bottom + BELOW;
    let picture = html! {
        title { (printable(&summary(chart))) }
        rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
        (legend.drawn())
        @if let Some((low, high)) = chart.band {
            rect x=(px(PLOT)) y=(px(axis.y(high))) width=(px(PLOT_END - PLOT))
                height=(px((axis.y(low) - axis.y(high)).max(1.0))) fill=(hex(GRID.light)) {}
        }
        (upwards(&axis, chart))
        (labels(chart, bottom))
        @for rule in &chart.rules { (ruled(chart, rule.before, &rule.words, rule.is_break, (axis.top, bottom))) }
        @if chart.is_joined { (joined(chart, &axis)) }
        (levels(chart, &axis))
        @for (place, one) in chart.places.iter().enumerate() {
            (marked(x(chart, place as f64), one.mark, &axis, bottom))
        }
    };
    (height, picture)
}

/// What is seen, for readers who do not see it.
fn summary(chart: &StepChart) -> String {
    let steps = chart.levels.windows(2).filter(|pair| is_step(&pair[0], &pair[1])).count();
    let counted = match steps {
        0 => "no step".to_string(),
        steps => units::counted(steps as u64, "step"),
    };
    format!("{}: {} places, {counted}", chart.title, chart.places.len())
}

fn is_step(one: &StepLevel, next: &StepLevel) -> bool {
    one.last + 1 == next.first
}

fn upwards(axis: &UpAxis, chart: &StepChart) -> Markup {
    html! {
        @for tick in axis.ticks() {
            (line((PLOT, axis.y(tick)), (PLOT_END, axis.y(tick)), GRID))
            (text(PLOT - 8.0, axis.y(tick) + 4.5, &tick_words(tick), GREY, "end"))
        }
        (line((PLOT, axis.top), (PLOT, axis.top + PLOT_HEIGHT), GRID))
        (text(MARGIN, axis.top - 12.0, &chart.up, GREY, "start"))
    }
}

fn tick_words(number: f64) -> String {
    if number >= 1000.0 {
        return units::thousands(number.round() as u64);
    }
    // Ticks are counts of a step: what is behind the sixth digit is rounding.
    let digits = (5.0 - libm::log10(number.max(1e-12)).floor()).clamp(0.0, 12.0) as usize;
    let words = format!("{number:.digits$}");
    if words.contains('.') { words.trim_end_matches('0').trim_end_matches('.').to_string() } else { words }
}

/// The names of places, as many as have room.
fn labels(chart: &StepChart, bottom: f64) -> Markup {
    let room = (PLOT_END - PLOT) / chart.places.len().max(1) as f64;
    let step = (LABEL_ROOM / room).ceil().max(1.0) as usize;
    let letters = letters_in(room * step as f64 - 6.0, SMALL).max(4);
    html! {
        @for (place, one) in chart.places.iter().enumerate().step_by(step) {
            (small(x(chart, place as f64), bottom + 16.0, &cut(&one.label, letters), "middle"))
        }
        (text(PLOT_END, bottom + 40.0, &chart.across, GREY, "end"))
    }
}

fn small(x: f64, y: f64, words: &str, anchor: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y)) font-size=(px(SMALL)) fill=(hex(GREY.light)) text-anchor=(anchor) {
            (printable(words))
        }
    }
}

fn ruled(chart: &StepChart, before: usize, words: &str, is_break: bool, (top, bottom): (f64, f64)) -> Markup {
    let at = x(chart, before as f64 - 0.5);
    let stroke = if is_break { TEXT } else { GREY };
    let (anchor, words_at) = if at > (PLOT + PLOT_END) / 2.0 { ("end", at - 4.0) } else { ("start", at + 4.0) };
    // Breaks and others do not hide each other's words.
    let y = if is_break { top - 2.0 } else { top + 10.0 };
    html! {
        path d=(format!("M{} {}V{}", px(at), px(top - 6.0), px(bottom))) fill="none" stroke=(hex(stroke.light))
            stroke-dasharray=(if is_break { "6 4" } else { "2 3" }) {}
        (small(words_at, y, &cut(words, 60), anchor))
    }
}

/// Thin lines between neighbours that count: what has no number, and what lies across a break, is not bridged.
fn joined(chart: &StepChart, axis: &UpAxis) -> Markup {
    let number = |place: usize| match chart.places[place].mark {
        StepMark::At { number, is_hollow: false, .. } => Some(number),
        _ => None,
    };
    let is_broken = |place: usize| chart.rules.iter().any(|rule| rule.is_break && rule.before == place);
    let pairs = (1..chart.places.len()).filter(|place| !is_broken(*place));
    let lines = pairs.filter_map(|place| Some((place, number(place - 1)?, number(place)?)));
    html! {
        @for (place, one, next) in lines {
            (line((x(chart, place as f64 - 1.0), axis.y(one)), (x(chart, place as f64), axis.y(next)), GREY))
        }
    }
}

fn levels(chart: &StepChart, axis: &UpAxis) -> Markup {
    let ends = |level: &StepLevel| (x(chart, level.first as f64 - 0.5), x(chart, level.last as f64 + 0.5));
    html! {
        @for level in &chart.levels {
            @let (from, to) = ends(level);
            (thick((from, axis.y(level.number)), (to, axis.y(level.number))))
        }
        @for pair in chart.levels.windows(2).filter(|pair| is_step(&pair[0], &pair[1])) {
            @let at = ends(&pair[1]).0;
            (thick((at, axis.y(pair[0].number)), (at, axis.y(pair[1].number))))
        }
    }
}

fn thick((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> Markup {
    let path = format!("M{} {}L{} {}", px(x), px(y), px(to_x), px(to_y));
    html! { path d=(path) fill="none" stroke=(hex(STEP.light)) stroke-width="3" {} }
}

/// Levels have the second colour of lines.
const STEP: Stroke = LINES[1];

fn marked(x: f64, mark: StepMark, axis: &UpAxis, bottom: f64) -> Markup {
    match mark {
        StepMark::At { number, span, is_hollow } => {
            let (low, high) = span.unwrap_or((number, number));
            spanned(x, axis.y(number), (axis.y(low), axis.y(high)), is_hollow)
        }
        StepMark::Failed => cross(x, bottom),
        StepMark::Nothing => html! {},
    }
}

/// A dot on its interval.
fn spanned(x: f64, y: f64, (low, high): (f64, f64), is_hollow: bool) -> Markup {
    html! {
        @if low - high > 1.0 {
            @let path = format!("M{} {}h8M{} {}V{}M{} {}h8", px(x - 4.0), px(low), px(x), px(low), px(high), px(x - 4.0), px(high));
            path d=(path) fill="none" stroke=(hex(LINES[0].light)) stroke-width=(if is_hollow { "1" } else { "2" }) {}
        }
        (dot(x, y, LINES[0], is_hollow))
    }
}

fn cross(x: f64, y: f64) -> Markup {
    let (left, top) = (px(x - 5.0), px(y - 5.0));
    let path = format!("M{left} {top}l10 10M{left} {}l10 -10", px(y + 5.0));
    html! { path d=(path) fill="none" stroke=(hex(LINES[5].light)) stroke-width="2" {} }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::steps::{StepPlace, StepRule};

    fn at(number: f64) -> StepMark {
        StepMark::At { number, span: Some((number * 0.97, number * 1.03)), is_hollow: false }
    }

    fn chart(marks: &[StepMark]) -> StepChart {
        let place = |(place, mark): (usize, &StepMark)| StepPlace { label: format!("v{place}"), mark: *mark };
        StepChart {
            title: "redis".to_string(),
            across: "versions".to_string(),
            up: "times as long".to_string(),
            places: marks.iter().enumerate().map(place).collect(),
            levels: Vec::new(),
            rules: Vec::new(),
            band: None,
            is_joined: true,
            notes: vec!["6 blocks.".to_string()],
        }
    }

    fn thick_lines(svg: &str) -> usize {
        svg.matches("stroke-width=\"3\"").count()
    }

    #[test]
    fn a_step_is_drawn_between_levels_that_touch() {
        let level = |first, last, number| StepLevel { first, last, number };
        let mut two = chart(&[at(1.0), at(1.0), at(1.2)]);
        two.levels = vec![level(0, 1, 1.0), level(2, 2, 1.2)];
        // One stands in the legend.
        assert_eq!(thick_lines(&drawn(&two).1.into_string()), 4);
        two.levels = vec![level(0, 0, 1.0), level(2, 2, 1.2)];
        assert_eq!(thick_lines(&drawn(&two).1.into_string()), 3, "a gap is not bridged");
        assert!(summary(&two).ends_with("3 places, no step"), "{}", summary(&two));
    }

    #[test]
    fn failures_are_crosses_noisy_numbers_hollow_and_gaps_not_bridged() {
        let hollow = StepMark::At { number: 1.1, span: None, is_hollow: true };
        let grey = |svg: &str| svg.matches(&format!("stroke=\"{}\"></path>", hex(GREY.light))).count();
        let whole = drawn(&chart(&[at(1.0), at(1.1), at(1.0)])).1.into_string();
        assert_eq!(grey(&whole), 2, "{whole}");
        for other in [hollow, StepMark::Failed, StepMark::Nothing] {
            assert_eq!(grey(&drawn(&chart(&[at(1.0), other, at(1.0)])).1.into_string()), 0, "{other:?}");
        }
        let mut broken = chart(&[at(1.0), at(1.1), at(1.0)]);
        broken.rules = vec![StepRule { before: 1, words: "another <machine>".to_string(), is_break: true }];
        let svg = drawn(&broken).1.into_string();
        assert_eq!(grey(&svg), 1, "{svg}");
        assert!(svg.contains("another &lt;machine&gt;") && svg.contains("stroke-dasharray=\"6 4\""), "{svg}");
        let svg = drawn(&chart(&[StepMark::Failed])).1.into_string();
        assert!(svg.contains("no number") && !svg.contains("not used"), "{svg}");
    }

    #[test]
    fn ticks_are_round_and_few() {
        for (numbers, expected) in [
            (vec![0.97, 1.2], vec![0.95, 1.0, 1.05, 1.1, 1.15, 1.2]),
            (vec![3.4, 3.5], vec![3.3, 3.4, 3.5, 3.6]),
            (vec![0.01, 0.9], vec![0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]),
        ] {
            let ticks = UpAxis::around(numbers.clone().into_iter(), 0.0).ticks();
            let told: Vec<String> = ticks.iter().map(|tick| tick_words(*tick)).collect();
            assert!((3..=TICKS_MAX + 1).contains(&ticks.len()), "{told:?}");
            let is_there = |tick: &f64| expected.iter().any(|one| (one - tick).abs() < 1e-9);
            assert!(ticks.iter().filter(|tick| is_there(tick)).count() >= 2, "{told:?} {expected:?}");
        }
        assert_eq!([1.05, 0.0125, 12_500.0, 3.0].map(tick_words), ["1.05", "0.0125", "12,500", "3"]);
        let nothing = UpAxis::around(std::iter::empty(), 0.0);
        assert!(nothing.ticks().len() > 1 && nothing.y(1.0).is_finite());
    }

    #[test]
    fn a_file_holds_all_pictures_and_hostile_text_stays_text() {
        let mut hostile = chart(&[at(1.0)]);
        hostile.places[0].label = "\u{7}<b>".to_string();
        hostile.title = "<script>".to_string();
        let svg = document("a <i> history", &[hostile, chart(&[at(2.0), at(3.0)])]);
        assert!(svg.starts_with("<svg width=\"880\"") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<g transform=").count(), 2);
        assert!(svg.contains("a &lt;i&gt; history") && svg.contains("&lt;script&gt;"), "{svg}");
        assert!(["<script", "<b>", "<i>", "\u{7}"].iter().all(|bad| !svg.contains(bad)), "{svg}");
    }
}
