//! Charts: plots that belong together, with what they do not say themselves; as figures of a page and as an SVG file.
//! What a plot is of is not known here.

use maud::{Markup, html};

use super::table::wrap;

pub(super) mod axis;
mod figure;
mod labels;
pub(super) mod palette;
pub mod plot;

pub(super) use figure::figures;
pub(super) use plot::shortened;

use axis::Axis;
use palette::{GREY, Ink, PAPER, Stroke, TEXT, hex, style_sheet};
use plot::{PlotSize, drawn, letters_in, printable, px, summary};

/// Plots that belong together.
#[derive(Default)]
pub struct Chart {
    pub plots: Vec<Plot>,
    /// Sentences below them.
    pub notes: Vec<String>,
}

/// Lines over one axis.
pub struct Plot {
    pub title: String,
    pub across: PlotAxis,
    pub up: Axis,
    pub lines: Vec<PlotLine>,
}

/// What lies across: all lines have their points at these places.
pub struct PlotAxis {
    pub title: String,
    pub axis: Axis,
    /// From left to right, and how each is called.
    pub places: Vec<(f64, String)>,
    pub ticks: Vec<(f64, String)>,
}

pub struct PlotLine {
    pub target: String,
    /// What stands behind the target.
    pub remark: String,
    pub ink: Ink,
    /// One for each place, as far as there are any.
    pub points: Vec<Option<PlotPoint>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    pub number: f64,
    /// Its interval, or how far the blocks reached.
    pub span: Option<[f64; 2]>,
    /// Why its mark is hollow; empty for all others.
    pub doubt: &'static str,
}

impl PlotPoint {
    pub fn plain(number: f64) -> PlotPoint {
        PlotPoint { number, span: None, doubt: "" }
    }
}

impl PlotAxis {
    /// The ticks of the axis itself.
    pub fn ticked(title: &str, axis: Axis, places: Vec<(f64, String)>) -> PlotAxis {
        let ticks = axis.ticks.iter().map(|tick| (*tick, axis.words(*tick))).collect();
        PlotAxis { title: format!("{title}{}", axis.scale()), axis, places, ticks }
    }
}

/// More lines in one plot cannot be told apart.
const LINES_MAX: usize = 12;

/// Lets the first lines stand and names all others: nothing is left out in silence. `which` says what the first ones
/// are: "those with the lowest medians".
pub fn first_lines(lines: &mut Vec<PlotLine>, which: &str) -> Option<String> {
    let all = lines.len();
    if all <= LINES_MAX {
        return None;
    }
    let others: Vec<String> = lines.split_off(LINES_MAX).into_iter().map(|line| line.target).collect();
    Some(format!("{LINES_MAX} of {all} targets are drawn: {which}. Not drawn: {}.", others.join(", ")))
}

// Lengths in pixels, letters by their height.
const MARGIN: f64 = 16.0;
const HEADING: f64 = 14.0;
const HEADING_LINE: f64 = 20.0;
const NOTE: f64 = 11.0;
const NOTE_LINE: f64 = 17.0;

/// All charts below a heading as a file of their own: two plots in a row, notes below them.
pub fn document(headline: &str, charts: &[Chart]) -> String {
    let sizes = || charts.iter().flat_map(|chart| &chart.plots).map(PlotSize::of);
    let column = sizes().map(|size| size.width).fold(0.0, f64::max);
    let width = 3.0 * MARGIN + 2.0 * column;
    let inside = width - 2.0 * MARGIN;
    let heading = wrap(headline, letters_in(inside, HEADING));
    let top = 2.0 * MARGIN + heading.len() as f64 * HEADING_LINE;
    let mut bottom = top;
    let placed = charts.iter().map(|chart| {
        let mut plots = Vec::new();
        for row in chart.plots.chunks(2) {
            plots.extend(row.iter().zip([MARGIN, 2.0 * MARGIN + column]).map(|(plot, left)| (left, bottom, plot)));
            bottom += row.iter().map(|plot| PlotSize::of(plot).height).fold(0.0, f64::max) + MARGIN;
        }
        let notes: Vec<String> = chart.notes.iter().flat_map(|note| wrap(note, letters_in(inside, NOTE))).collect();
        let from = bottom;
        bottom += notes.len() as f64 * NOTE_LINE + if notes.is_empty() { 0.0 } else { MARGIN };
        (plots, from, notes)
    });
    let placed: Vec<_> = placed.collect();
    let body = html! {
        rect width=(px(width)) height=(px(bottom)) fill=(hex(PAPER.light)) {}
        (paragraph(&heading, MARGIN, HEADING, HEADING_LINE, TEXT))
        @for (plots, from, notes) in &placed {
            @for (left, top, plot) in plots {
                g transform=(format!("translate({} {})", px(*left), px(*top))) {
                    title { (summary(plot)) }
                    (drawn(plot))
                }
            }
            (paragraph(notes, *from, NOTE, NOTE_LINE, GREY))
        }
    };
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\">\n{style}{body}\n</svg>\n",
        width = px(width),
        height = px(bottom),
        style = style_sheet(),
        body = body.into_string(),
    )
}

fn paragraph(lines: &[String], top: f64, letters: f64, height: f64, stroke: Stroke) -> Markup {
    html! {
        @for (row, words) in lines.iter().enumerate() {
            @let y = top + (row as f64 + 0.75) * height;
            text x=(px(MARGIN)) y=(px(y)) font-size=(px(letters)) fill=(hex(stroke.light)) { (printable(words)) }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::palette::Inks;
    use super::*;

    pub(in crate::report) fn plot(targets: &[&str], numbers: &[f64]) -> Plot {
        let places = (1..=numbers.len()).map(|place| (place as f64, place.to_string())).collect();
        let inks = Inks::of(targets.iter().map(|target| (*target, false)));
        let line = |target: &&str| PlotLine {
            target: target.to_string(),
            remark: String::new(),
            ink: inks.ink(target),
            points: numbers.iter().map(|number| Some(PlotPoint::plain(*number))).collect(),
        };
        Plot {
            title: "CPU <busy>".to_string(),
            across: PlotAxis::ticked("seconds", Axis::of_measure(&[4.0]), places),
            up: Axis::of_measure(&[10.0]),
            lines: targets.iter().map(line).collect(),
        }
    }

    #[test]
    fn a_file_holds_all_plots_and_hostile_text_stays_text() {
        let plots = vec![plot(&["<script>\u{7}"], &[1.0, 2.0]), plot(&["b"], &[1.0]), plot(&["c"], &[1.0])];
        let notes = vec!["a note, <i>".to_string()];
        let svg = document("a <b> run", &[Chart { plots, notes }, Chart::default()]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<g transform=").count(), 3, "{svg}");
        for words in ["a &lt;b&gt; run", "&lt;script&gt;\u{FFFD}", "a note, &lt;i&gt;"] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
        assert!(["<script", "<b>", "<i>", "\u{7}"].iter().all(|bad| !svg.contains(bad)), "{svg}");
    }

    #[test]
    fn the_picture_knows_the_dark() {
        let chart = Chart { plots: vec![plot(&["a", "b"], &[1.0, 2.0])], notes: vec!["said".to_string()] };
        let svg = document("a run", &[chart]);
        let (head, sheet) = svg.split_once("<style>").expect("a style sheet");
        assert_eq!(head.lines().count(), 1);
        assert!(sheet.contains("@media (prefers-color-scheme: dark)"));
        let (sheet, drawing) = sheet.split_once("</style>").expect("its end");
        for colour in drawing.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(sheet.contains(&format!("[fill=\"#{colour}\"]")), "{colour}");
        }
    }

    #[test]
    fn who_is_not_drawn_is_named() {
        let names: Vec<String> = (1..=14).map(|number| format!("t{number}")).collect();
        let targets: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut lines = plot(&targets[..12], &[1.0]).lines;
        assert_eq!((first_lines(&mut lines, "the first"), lines.len()), (None, 12));
        let mut lines = plot(&targets, &[1.0]).lines;
        let said = first_lines(&mut lines, "the first").expect("two are left out");
        assert_eq!(said, "12 of 14 targets are drawn: the first. Not drawn: t13, t14.");
        assert_eq!(lines.len(), 12);
    }
}
