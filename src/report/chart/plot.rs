//! One plot as SVG: axes, bands, lines, points, and the name of each line beside its end. Colours and sizes are
//! attributes, so that a plot is whole without style sheets.

use maud::{Markup, html};

use super::labels;
use super::palette::{GREY, GRID, Ink, Mark, PAPER, Stroke, TEXT, hex};
use super::{Plot, PlotLine, PlotPoint};
use crate::model::units;

// Lengths in pixels, letters by their height.
const PLOT: f64 = 52.0;
const PLOT_END: f64 = 392.0;
const TOP: f64 = 30.0;
const PLOT_HEIGHT: f64 = 230.0;
/// Below a plot: the numbers and the title of its axis.
const AXIS_HEIGHT: f64 = 42.0;
/// Between a plot and its labels, for the hairlines that lead from ends to labels.
const LEADER: f64 = 18.0;
/// Of the piece of its line that stands before a label, and between that and the label.
const SAMPLE: f64 = 26.0;
const SAMPLE_GAP: f64 = 6.0;
const LABEL_GAP: f64 = 15.0;
const LABEL: f64 = 12.0;
/// From the middle of a letter to the line that it stands on.
const LETTER_BASE: f64 = 4.0;
const RADIUS: f64 = 5.0;
const RADIUS_OF_BASELINES: f64 = 4.0;
const BAND_OPACITY: &str = "0.15";
/// A line with more places has a mark at each second, fifth or twentieth only.
const MARKS_MAX: usize = 16;
/// The mean width of a letter by its height, in the wide faces of screens (Verdana, DejaVu Sans).
pub const LETTER_SHARE: f64 = 0.6;
/// The same of names, which are short and often have an m, a w or a +.
const NAME_SHARE: f64 = 0.67;
/// A longer name is cut.
const NAME_LETTERS: usize = 32;

/// How large a plot is, in pixels.
pub struct PlotSize {
    pub width: f64,
    pub height: f64,
}

impl PlotSize {
    /// Room for all names, and for a label of each line above the others.
    pub fn of(plot: &Plot) -> PlotSize {
        let longest = plot.lines.iter().map(|line| label(line).chars().count()).max().unwrap_or(0);
        let labels = SAMPLE + SAMPLE_GAP + (longest as f64 * LABEL * NAME_SHARE).ceil();
        let title = 2.0 * LETTER_BASE + (plot.title.chars().count() as f64 * LABEL * LETTER_SHARE).ceil();
        PlotSize { width: (PLOT_END + LEADER + labels).max(title), height: bottom(plot) + AXIS_HEIGHT }
    }
}

fn bottom(plot: &Plot) -> f64 {
    TOP + PLOT_HEIGHT.max(plot.lines.len() as f64 * LABEL_GAP)
}

/// How many letters of that height there is room for.
pub fn letters_in(width: f64, height: f64) -> usize {
    (width / (height * LETTER_SHARE)) as usize
}

/// What no XML may hold is replaced. What has a meaning in it is escaped by the templates.
pub fn printable(text: &str) -> String {
    let is_bad = |letter: char| letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}');
    text.chars().map(|letter| if is_bad(letter) { '\u{FFFD}' } else { letter }).collect()
}

/// A name that is too long, cut in its middle: targets differ at both ends.
pub fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME_LETTERS {
        return name.to_string();
    }
    let (head, tail) = (NAME_LETTERS / 2, NAME_LETTERS - NAME_LETTERS / 2 - 1);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

fn label(line: &PlotLine) -> String {
    format!("{}{}", shortened(&line.target), line.remark)
}

/// What the plot shows, for readers who do not see it.
pub fn summary(plot: &Plot) -> String {
    let most = |line: &PlotLine| line.points.iter().flatten().map(|point| point.number).fold(0.0, f64::max);
    let told =
        plot.lines.iter().map(|line| format!("{} at most {}", shortened(&line.target), units::digits(most(line))));
    printable(&format!("{} by {}: {}", plot.title, plot.across.title, told.collect::<Vec<_>>().join(", ")))
}

/// A place in the plot, in pixels.
type Pixel = (f64, f64);

/// Where the points of a line lie, with the places that they belong to.
pub fn laid<'a>(plot: &'a Plot, line: &'a PlotLine) -> impl Iterator<Item = (usize, Pixel, &'a PlotPoint)> + Clone {
    let points = plot.across.places.iter().zip(&line.points).enumerate();
    points.filter_map(|(index, ((place, _), point))| {
        let point = point.as_ref()?;
        Some((index, (x(plot, *place), y(plot, point.number)), point))
    })
}

fn x(plot: &Plot, place: f64) -> f64 {
    PLOT + plot.across.axis.share(place) * (PLOT_END - PLOT)
}

fn y(plot: &Plot, number: f64) -> f64 {
    let bottom = bottom(plot);
    bottom - plot.up.share(number) * (bottom - TOP)
}

/// The data of an upright line through the points of a place.
pub fn guide(plot: &Plot, place: f64) -> String {
    format!("M{} {}V{}", px(x(plot, place)), px(TOP), px(bottom(plot)))
}

/// All of a plot but the element around it.
pub fn drawn(plot: &Plot) -> Markup {
    let size = PlotSize::of(plot);
    // Baselines lie below what is compared.
    let mut lines: Vec<&PlotLine> = plot.lines.iter().collect();
    lines.sort_by_key(|line| !line.ink.is_baseline);
    html! {
        rect width=(px(size.width)) height=(px(size.height)) fill=(hex(PAPER.light)) {}
        (text((LETTER_BASE, TOP / 2.0), &plot.title, TEXT, "start"))
        (axes(plot))
        @for line in &lines { (band(plot, line)) }
        (names(plot, &lines))
        @for line in &lines { (drawn_line(plot, line)) }
    }
}

fn axes(plot: &Plot) -> Markup {
    let bottom = bottom(plot);
    let heights = plot.up.ticks.iter().map(|tick| y(plot, *tick)).chain([bottom]);
    let across: String = heights.map(|y| format!("M{} {}H{}", px(PLOT), px(y), px(PLOT_END))).collect();
    let upright = format!("M{} {}V{}", px(PLOT), px(TOP), px(bottom));
    html! {
        path d=(format!("{across}{upright}")) stroke=(hex(GRID.light)) fill="none" {}
        @for tick in &plot.up.ticks { (text((PLOT - 6.0, y(plot, *tick)), &plot.up.words(*tick), GREY, "end")) }
        @for (place, words) in &plot.across.ticks { (text((x(plot, *place), bottom + 12.0), words, GREY, "middle")) }
        (text((PLOT_END, bottom + 30.0), &plot.across.title, GREY, "end"))
    }
}

/// Around the spans of neighbouring points.
fn band(plot: &Plot, line: &PlotLine) -> Markup {
    let ends = || laid(plot, line).map(|(_, (x, middle), point)| (x, middle, point.span));
    let edge = |end: usize| {
        move |(x, middle, span): (f64, f64, Option<[f64; 2]>)| (x, span.map_or(middle, |span| y(plot, span[end])))
    };
    if !ends().any(|(.., span)| span.is_some_and(|[low, high]| low < high)) {
        return html! {};
    }
    let upper: Vec<Pixel> = ends().map(edge(1)).collect();
    let around = ends().map(edge(0)).chain(upper.into_iter().rev());
    html! { polygon points=(corners(around)) fill=(hex(line.ink.stroke.light)) opacity=(BAND_OPACITY) {} }
}

/// The name of each line right of the plot, behind a piece of the line, at the height of its end or as near to it as
/// others allow.
fn names(plot: &Plot, lines: &[&PlotLine]) -> Markup {
    let ended: Vec<(&PlotLine, Pixel)> =
        lines.iter().filter_map(|line| Some((*line, laid(plot, line).last()?.1))).collect();
    let wanted: Vec<f64> = ended.iter().map(|(_, end)| end.1).collect();
    let heights = labels::apart(&wanted, LABEL_GAP, TOP, bottom(plot));
    let left = PLOT_END + LEADER;
    html! {
        @for ((line, end), height) in ended.iter().zip(heights) {
            @let ink = line.ink;
            path d=(format!("M{} {}L{} {}", px(end.0), px(end.1), px(left), px(height))) stroke=(hex(GRID.light)) {}
            (polyline([(left, height), (left + SAMPLE, height)].into_iter(), ink))
            (marks([(left + SAMPLE / 2.0, height)].into_iter(), ink, false))
            (text((left + SAMPLE + SAMPLE_GAP, height), &label(line), ink.stroke, "start"))
        }
    }
}

fn drawn_line(plot: &Plot, line: &PlotLine) -> Markup {
    let step = plot.across.places.len().div_ceil(MARKS_MAX).max(1);
    let marked = |hollow: bool| {
        let points =
            laid(plot, line).filter(move |(index, _, point)| index % step == 0 && point.doubt.is_empty() != hollow);
        points.map(|(_, at, _)| at)
    };
    html! {
        (polyline(laid(plot, line).map(|(_, at, _)| at), line.ink))
        (marks(marked(false), line.ink, false))
        (marks(marked(true), line.ink, true))
    }
}

/// The style sheet dashes lines by their colours.
fn polyline(points: impl Iterator<Item = Pixel>, ink: Ink) -> Markup {
    let width = if ink.is_baseline { "1" } else { "2" };
    html! { polyline points=(corners(points)) fill="none" stroke=(hex(ink.stroke.light)) stroke-width=(width) {} }
}

/// All of a line in one path. A hollow mark is of paper, so that no line shines through.
fn marks(at: impl Iterator<Item = Pixel>, ink: Ink, hollow: bool) -> Markup {
    let radius = if ink.is_baseline { RADIUS_OF_BASELINES } else { RADIUS };
    let data: String = at.map(|at| mark(ink.mark, at, if hollow { radius - 1.0 } else { radius })).collect();
    let stroke = hex(ink.stroke.light);
    match (data.is_empty(), hollow) {
        (true, _) => html! {},
        (_, false) => html! { path d=(data) fill=(stroke) {} },
        (_, true) => html! { path d=(data) fill=(hex(PAPER.light)) stroke=(stroke) stroke-width="2" {} },
    }
}

/// The data of a path.
fn mark(mark: Mark, (x, y): Pixel, radius: f64) -> String {
    let corners: Vec<String> =
        mark.corners(radius).into_iter().map(|(right, below)| format!("{} {}", px(x + right), px(y + below))).collect();
    if corners.is_empty() {
        let (across, radius, left) = (px(2.0 * radius), px(radius), px(x - radius));
        return format!("M{left} {}a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0-{across} 0z", px(y));
    }
    format!("M{}z", corners.join("L"))
}

fn corners(points: impl Iterator<Item = Pixel>) -> String {
    points.map(|(x, y)| format!("{},{}", px(x), px(y))).collect::<Vec<_>>().join(" ")
}

/// With its middle at that height.
fn text((x, y): Pixel, words: &str, stroke: Stroke, anchor: &str) -> Markup {
    html! {
        text x=(px(x)) y=(px(y + LETTER_BASE)) fill=(hex(stroke.light)) text-anchor=(anchor) { (printable(words)) }
    }
}

/// To a tenth of a pixel.
pub fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::tests::plot;
    use super::*;

    fn svg(plot: &Plot) -> String {
        drawn(plot).into_string()
    }

    /// What the attribute has in all elements of a kind.
    fn all<'a>(svg: &'a str, element: &str, name: &str) -> Vec<&'a str> {
        let (element, name) = (format!("<{element} "), format!("{name}=\""));
        let elements = svg.split(element.as_str()).skip(1).filter_map(|rest| rest.split_once('>'));
        let found = elements.filter_map(|(inside, _)| inside.split_once(name.as_str())?.1.split_once('"'));
        found.map(|(value, _)| value).collect()
    }

    fn points(line: &str) -> Vec<Pixel> {
        let each = line.split(' ').map(|point| point.split_once(',').expect("x,y"));
        each.map(|(x, y)| (x.parse().expect("x"), y.parse().expect("y"))).collect()
    }

    #[test]
    fn numbers_stand_at_their_heights() {
        let svg = svg(&plot(&["a"], &[0.0, 5.0, 10.0]));
        // Behind the piece of the line before its label.
        let lines = all(&svg, "polyline", "points");
        let at = points(lines[1]);
        assert_eq!((lines.len(), at[0].1), (2, TOP + PLOT_HEIGHT));
        let above = |place: usize| at[0].1 - at[place].1;
        assert!((above(2) / above(1) - 2.0).abs() < 0.01, "{at:?}");
    }

    #[test]
    fn a_guide_goes_through_the_points_of_its_place() {
        let plot = plot(&["a"], &[0.0, 5.0, 10.0]);
        let svg = svg(&plot);
        let at = points(all(&svg, "polyline", "points")[1]);
        for ((place, _), (x, y)) in plot.across.places.iter().zip(at) {
            assert_eq!(guide(&plot, *place), format!("M{} {}V{}", px(x), px(TOP), px(bottom(&plot))));
            assert!((TOP..=bottom(&plot)).contains(&y), "{y}");
        }
    }

    #[test]
    fn names_stand_at_the_lines_and_apart() {
        let names: Vec<String> = (0..30).map(|number| format!("target {number}")).collect();
        let targets: Vec<&str> = names.iter().map(String::as_str).collect();
        let plot = plot(&targets, &[5.0, 5.0]);
        let svg = svg(&plot);
        let height = |name: &str| {
            let (before, _) = svg.split_once(&format!(">{name}</text>")).expect(name);
            before.rsplit_once(" y=\"").and_then(|(_, rest)| rest.split_once('"')?.0.parse::<f64>().ok()).expect(name)
        };
        let mut places: Vec<f64> = names.iter().map(|name| height(name)).collect();
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 14.0), "{places:?}");
        assert!(places[29] <= PlotSize::of(&plot).height, "{places:?}");
    }

    #[test]
    fn spans_are_bands_and_doubts_are_hollow() {
        let mut plot = plot(&["a"], &[5.0, 6.0, 7.0]);
        let plain = svg(&plot);
        assert!(!plain.contains("<polygon") && !plain.contains(&format!("fill=\"{}\" stroke", hex(PAPER.light))));
        let [low, high] = [4.0, 9.0];
        plot.lines[0].points[1] = Some(PlotPoint { number: 6.0, span: Some([low, high]), doubt: "limited" });
        let svg = svg(&plot);
        let around = points(all(&svg, "polygon", "points")[0]);
        let heights: Vec<f64> = around.iter().map(|(_, y)| *y).collect();
        assert_eq!(around.len(), 6, "there and back: {around:?}");
        assert!((heights[1] - y(&plot, low)).abs() < 0.1 && (heights[4] - y(&plot, high)).abs() < 0.1, "{heights:?}");
        assert_eq!(svg.matches(&format!("fill=\"{}\" stroke", hex(PAPER.light))).count(), 1, "{svg}");
    }

    #[test]
    fn a_long_line_has_few_marks_and_a_long_name_is_cut() {
        let name = "x".repeat(100_000);
        let svg = svg(&plot(&[&name], &[1.0; 400]));
        let marks = all(&svg, "path", "d").iter().map(|data| data.matches('M').count()).max();
        assert!(marks.is_some_and(|marks| marks <= MARKS_MAX), "{marks:?}");
        assert!(svg.len() < 20_000, "{}", svg.len());
    }

    #[test]
    fn marks_lie_around_their_middle() {
        assert_eq!(mark(Mark::Circle, (10.0, 20.0), 4.0), "M6 20a4 4 0 1 0 8 0a4 4 0 1 0-8 0z");
        assert_eq!(mark(Mark::Square, (10.0, 20.0), 4.0), "M7 17L13 17L13 23L7 23z");
    }
}
