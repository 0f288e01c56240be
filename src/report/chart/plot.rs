//! Lines of any numbers as SVG, with a table of the same numbers. Colours and sizes are attributes, so that a plot is
//! whole without style sheets.

use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::ValueFormatter;

use super::axis::Axis;
use super::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex, style_sheet};
use super::panel::{letters_in, printable, shortened};
use crate::model::units;
use crate::report::table::wrap;

// Lengths in pixels.
const WIDTH: f64 = 430.0;
const PLOT: f64 = 52.0;
const PLOT_END: f64 = 420.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 190.0;
const LEGEND: f64 = 232.0;
const LEGEND_LINE: f64 = 17.0;
const MARGIN: f64 = 16.0;
const HEADING: f64 = 14.0;
const HEADING_LINE: f64 = 20.0;
/// Each line needs a colour of its own, so a plot has no more lines than there are colours.
pub const LINES_MAX: usize = LINES.len();
/// A table has no more rows: of more numbers it shows each second, fifth or hundredth.
const ROWS_MAX: usize = 40;

/// Lines over one axis.
pub struct Plot {
    pub title: String,
    pub across: PlotAxis,
    pub up: Axis,
    /// At most [`LINES_MAX`].
    pub lines: Vec<PlotLine>,
}

/// What lies across: all lines have their numbers at these places.
pub struct PlotAxis {
    pub title: &'static str,
    pub axis: Axis,
    /// From left to right, and how each is called.
    pub places: Vec<(f64, String)>,
    pub ticks: Vec<(f64, String)>,
}

pub struct PlotLine {
    pub target: String,
    /// What stands behind the target in the legend.
    pub remark: String,
    /// One for each place, as far as there are any.
    pub numbers: Vec<Option<f64>>,
}

/// The plot with its numbers folded below it.
pub fn figure(plot: &Plot) -> Markup {
    html! {
        figure {
            svg role="img" width=(px(WIDTH)) height=(px(height(plot)))
                viewBox=(format!("0 0 {} {}", px(WIDTH), px(height(plot)))) font-family="sans-serif" font-size="12" {
                title { (summary(plot)) }
                (drawn(plot))
            }
            (numbers(plot))
        }
    }
}

/// Plots two in a row below a heading, as a file of their own. `first` is another picture with its width and height,
/// which stands above them.
pub fn document(headline: &str, first: Option<(&str, f64, f64)>, plots: &[Plot]) -> String {
    let (first, first_width, first_height) = first.unwrap_or_default();
    let width = first_width.max(3.0 * MARGIN + 2.0 * WIDTH);
    let heading = match first.is_empty() {
        true => wrap(headline, letters_in((width - 2.0 * MARGIN) as i32, HEADING)),
        // It has the heading.
        false => Vec::new(),
    };
    let mut bottom = first_height + MARGIN + heading.len() as f64 * HEADING_LINE;
    let placed: Vec<(f64, f64, &Plot)> = plots
        .chunks(2)
        .flat_map(|row| {
            let top = bottom;
            bottom += row.iter().map(height).fold(0.0, f64::max) + MARGIN;
            row.iter().zip([MARGIN, 2.0 * MARGIN + WIDTH]).map(move |(plot, left)| (left, top, plot))
        })
        .collect();
    let body = html! {
        rect width=(px(width)) height=(px(bottom)) fill=(hex(PAPER.light)) {}
        (PreEscaped(first))
        @for (line, words) in heading.iter().enumerate() {
            @let y = MARGIN + (line as f64 + 0.75) * HEADING_LINE;
            text x=(px(MARGIN)) y=(px(y)) font-size=(px(HEADING)) fill=(hex(TEXT.light)) { (printable(words)) }
        }
        @for (left, top, plot) in &placed {
            g transform=(format!("translate({} {})", px(*left), px(*top))) {
                title { (printable(&summary(plot))) }
                (drawn(plot))
            }
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

fn height(plot: &Plot) -> f64 {
    LEGEND + plot.lines.len() as f64 * LEGEND_LINE
}

/// What the plot shows, for readers who do not see it.
fn summary(plot: &Plot) -> String {
    let most = |line: &PlotLine| line.numbers.iter().flatten().copied().fold(0.0, f64::max);
    let told = plot.lines.iter().map(|line| format!("{} at most {}", line.target, units::digits(most(line))));
    format!("{} by {}: {}", plot.title, plot.across.title, told.collect::<Vec<_>>().join(", "))
}

fn drawn(plot: &Plot) -> Markup {
    let x = |place: f64| PLOT + plot.across.axis.share(place) * (PLOT_END - PLOT);
    let y = |number: f64| BOTTOM - plot.up.share(number) * (BOTTOM - TOP);
    html! {
        rect width=(px(WIDTH)) height=(px(height(plot))) fill=(hex(PAPER.light)) {}
        (text(8.0, 16.0, &plot.title, TEXT, "start"))
        @for tick in &plot.up.ticks {
            path d=(format!("M{} {}H{}", px(PLOT), px(y(*tick)), px(PLOT_END))) stroke=(hex(GRID.light)) fill="none" {}
            (text(PLOT - 6.0, y(*tick) + 4.0, &plot.up.format_ext(tick), GREY, "end"))
        }
        @for (place, words) in &plot.across.ticks { (text(x(*place), BOTTOM + 16.0, words, GREY, "middle")) }
        (text(PLOT_END, BOTTOM + 32.0, plot.across.title, GREY, "end"))
        @for ((row, line), stroke) in plot.lines.iter().enumerate().zip(LINES) {
            @let at = LEGEND + row as f64 * LEGEND_LINE;
            @let placed = plot.across.places.iter().zip(&line.numbers);
            (polyline(placed.filter_map(|((place, _), number)| Some((x(*place), y((*number)?)))), stroke))
            (polyline([(PLOT, at), (PLOT + 30.0, at)].into_iter(), stroke))
            (text(PLOT + 38.0, at + 4.0, &format!("{}{}", shortened(&line.target), line.remark), TEXT, "start"))
        }
    }
}

/// The numbers that are drawn: a row a place, a column a target.
fn numbers(plot: &Plot) -> Markup {
    let step = plot.across.places.len().div_ceil(ROWS_MAX).max(1);
    let cell = |number: Option<&Option<f64>>| number.copied().flatten().map(units::digits).unwrap_or_default();
    html! {
        details {
            summary { "Numbers: " (plot.title) @if step > 1 { ", each " (step) "th" } }
            div.scroll tabindex="0" role="region" aria-label=(plot.title) {
                table {
                    thead { tr {
                        th scope="col" { (plot.across.title) }
                        @for line in &plot.lines { th scope="col" { (line.target) } }
                    } }
                    tbody {
                        @for (row, (_, words)) in plot.across.places.iter().enumerate().step_by(step) {
                            tr {
                                th scope="row" { (words) }
                                @for line in &plot.lines { td { (cell(line.numbers.get(row))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The style sheet dashes lines by their colours.
fn polyline(points: impl Iterator<Item = (f64, f64)>, stroke: Stroke) -> Markup {
    let points: Vec<String> = points.map(|(x, y)| format!("{},{}", px(x), px(y))).collect();
    html! { polyline points=(points.join(" ")) fill="none" stroke=(hex(stroke.light)) stroke-width="2" {} }
}

fn text(x: f64, y: f64, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! { text x=(px(x)) y=(px(y)) fill=(hex(stroke.light)) text-anchor=(anchor) { (printable(words)) } }
}

/// To a tenth of a pixel.
pub fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(target: &str, numbers: &[f64]) -> Plot {
        let places = (1..=numbers.len()).map(|place| (place as f64, place.to_string())).collect();
        Plot {
            title: "CPU <busy>".to_string(),
            across: PlotAxis { title: "seconds", axis: Axis::of_measure(&[4.0]), places, ticks: Vec::new() },
            up: Axis::of_measure(&[10.0]),
            lines: vec![PlotLine {
                target: target.to_string(),
                remark: String::new(),
                numbers: numbers.iter().copied().map(Some).collect(),
            }],
        }
    }

    #[test]
    fn numbers_stand_at_their_heights_and_in_the_table() {
        let html = figure(&plot("a", &[0.0, 5.0, 10.0])).into_string();
        let points = html.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        let heights: Vec<f64> =
            points.split(' ').map(|point| point.split(',').nth(1).expect("y").parse().expect("a number")).collect();
        assert_eq!(heights[0], BOTTOM);
        assert!(((BOTTOM - heights[2]) / (BOTTOM - heights[1]) - 2.0).abs() < 0.01, "{heights:?}");
        assert!(html.contains("role=\"img\"") && html.contains("CPU &lt;busy&gt; by seconds: a at most 10"), "{html}");
        assert_eq!(html.matches("<tr><th scope=\"row\">").count(), 3, "{html}");
    }

    #[test]
    fn a_long_line_has_a_short_table() {
        let html = figure(&plot("a", &[1.0; 1000])).into_string();
        assert_eq!(html.matches("<tr><th scope=\"row\">").count(), ROWS_MAX, "{html}");
        assert!(html.contains(", each 25th"), "the table says what it leaves out");
    }

    #[test]
    fn a_file_holds_all_plots_and_hostile_text_stays_text() {
        let plots = [plot("<script>\u{7}", &[1.0, 2.0]), plot("b", &[1.0]), plot("c", &[1.0])];
        let svg = document("a <b> run", None, &plots);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<g transform=").count(), 3, "{svg}");
        assert!(svg.contains("a &lt;b&gt; run") && svg.contains("&lt;script&gt;\u{FFFD}"), "{svg}");
        assert!(["<script", "<b>", "\u{7}"].iter().all(|bad| !svg.contains(bad)), "{svg}");
        let both = document("above", Some(("<svg id=\"sweep\"></svg>", 900.0, 400.0)), &plots);
        assert!(
            both.contains("id=\"sweep\"") && !both.contains("above") && both.contains("translate(16 416)"),
            "{both}"
        );
    }
}
