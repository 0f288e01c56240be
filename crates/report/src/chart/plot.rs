//! One plot as SVG: axes, bands, lines, points, and the name of each line beside its end. A plot of steps has the
//! levels between them, and its numbers have bars.

use maud::{Markup, html};

use super::labels;
use super::palette::{GREY, GRID, Ink, LINES, Mark, PAPER, Stroke, TEXT, hex};
use super::svg::{
    LETTERS, Pixel, area, cut, dashed, dot, letters_in, line, printable, px, shortened, small, text, thick, width_of,
    width_of_name,
};
use super::{Plot, PlotLevel, PlotLine, PlotPoint, PlotRule, PlotSteps};
use kvfair_core::units;

// Lengths in pixels.
const PLOT: f64 = 52.0;
const PLOT_END: f64 = 392.0;
const PLOT_END_OF_STEPS: f64 = 720.0;
const TOP: f64 = 30.0;
/// Between the title and the plot, for the words of rules.
const RULES: f64 = 20.0;
const PLOT_HEIGHT: f64 = 230.0;
/// Below a plot: the numbers and the title of its axis.
const AXIS_HEIGHT: f64 = 42.0;
/// Between a plot and its labels, for the hairlines that lead from ends to labels.
const LEADER: f64 = 18.0;
/// Of the piece of its line that stands before a label, and between that and the label.
const SAMPLE: f64 = 26.0;
const SAMPLE_GAP: f64 = 6.0;
const LABEL_GAP: f64 = 15.0;
/// A place has so much room for its label at least.
const LABEL_ROOM: f64 = 76.0;
const EDGE: f64 = 4.0;
const RADIUS: f64 = 5.0;
const RADIUS_OF_BASELINES: f64 = 4.0;
const BAND_OPACITY: &str = "0.15";
/// A line with more places has a mark at each second, fifth or twentieth only.
const MARKS_MAX: usize = 16;
/// Levels have the second colour of lines.
const LEVEL: Stroke = LINES[1];
const FAILED: Stroke = LINES[5];

/// How large a plot is, in pixels: it has room for all names, and for a label of each line above the others.
pub fn size(plot: &Plot) -> (f64, f64) {
    let names = plot.lines.iter().map(|line| width_of_name(&label(line))).fold(0.0, f64::max);
    let width = end(plot) + LEADER + SAMPLE + SAMPLE_GAP + names;
    (width.max(2.0 * EDGE + width_of(&plot.title)), bottom(plot) + AXIS_HEIGHT)
}

/// At each so many of `count` places there is room for a label, and for how many letters.
pub fn room_for_labels(count: usize) -> (usize, usize) {
    let room = (PLOT_END_OF_STEPS - PLOT) / count.max(1) as f64;
    let step = (LABEL_ROOM / room).ceil().max(1.0);
    (step as usize, letters_in(room * step - 6.0, LETTERS).max(4))
}

fn end(plot: &Plot) -> f64 {
    if plot.steps.is_some() { PLOT_END_OF_STEPS } else { PLOT_END }
}

fn top(plot: &Plot) -> f64 {
    if plot.steps.as_ref().is_some_and(|steps| !steps.rules.is_empty()) { TOP + RULES } else { TOP }
}

fn bottom(plot: &Plot) -> f64 {
    top(plot) + PLOT_HEIGHT.max(plot.lines.len() as f64 * LABEL_GAP)
}

fn label(line: &PlotLine) -> String {
    format!("{}{}", shortened(&line.target), line.remark)
}

/// What the plot shows, for readers who do not see it.
pub fn summary(plot: &Plot) -> String {
    let most = |line: &PlotLine| line.points.iter().flatten().map(|point| point.number).fold(0.0, f64::max);
    let each =
        plot.lines.iter().map(|line| format!("{} at most {}", shortened(&line.target), units::digits(most(line))));
    printable(&format!("{} by {}: {}", plot.title, plot.across.title, each.collect::<Vec<_>>().join(", ")))
}

/// Where the points of a line lie, with the places that they belong to.
pub fn laid<'a>(plot: &'a Plot, line: &'a PlotLine) -> impl Iterator<Item = (usize, Pixel, &'a PlotPoint)> + Clone {
    let points = plot.across.places.iter().zip(&line.points).enumerate();
    points.filter_map(|(index, ((place, _), point))| {
        let point = point.as_ref()?;
        Some((index, (x(plot, *place), y(plot, point.number)), point))
    })
}

fn x(plot: &Plot, place: f64) -> f64 {
    PLOT + plot.across.axis.share(place) * (end(plot) - PLOT)
}

fn y(plot: &Plot, number: f64) -> f64 {
    let bottom = bottom(plot);
    bottom - plot.up.share(number) * (bottom - top(plot))
}

/// The data of an upright line through the points of a place.
pub fn guide(plot: &Plot, place: f64) -> String {
    format!("M{} {}V{}", px(x(plot, place)), px(top(plot)), px(bottom(plot)))
}

/// All of a plot but the element around it.
pub fn drawn(plot: &Plot) -> Markup {
    // Baselines lie below what is compared.
    let mut lines: Vec<&PlotLine> = plot.lines.iter().collect();
    lines.sort_by_key(|line| !line.ink.is_baseline);
    html! {
        title { (summary(plot)) }
        (area((0.0, 0.0), size(plot), PAPER))
        (text((EDGE, TOP / 2.0), &plot.title, TEXT, "start"))
        @if let Some((low, high)) = plot.steps.as_ref().and_then(|steps| steps.band) {
            (area((PLOT, y(plot, high)), (end(plot), y(plot, low)), GRID))
        }
        (axes(plot))
        @match &plot.steps {
            None => {
                @for line in &lines { (band(plot, line)) }
                (names(plot, &lines))
                @for line in &lines { (drawn_line(plot, line)) }
            }
            Some(steps) => {
                @for rule in &steps.rules { (ruled(plot, rule)) }
                (names(plot, &lines))
                @for line in &lines { (joined(plot, line, steps)) }
                (levels(plot, &steps.levels))
                @for line in &lines { (barred(plot, line)) }
                @for place in &steps.failed { (cross((x(plot, *place as f64), bottom(plot)))) }
            }
        }
    }
}

fn axes(plot: &Plot) -> Markup {
    let bottom = bottom(plot);
    let heights = plot.up.ticks.iter().map(|tick| y(plot, *tick)).chain([bottom]);
    let across: String = heights.map(|y| format!("M{} {}H{}", px(PLOT), px(y), px(end(plot)))).collect();
    let upright = format!("M{} {}V{}", px(PLOT), px(top(plot)), px(bottom));
    html! {
        path d=(format!("{across}{upright}")) stroke=(hex(GRID.light)) fill="none" {}
        @for tick in &plot.up.ticks { (text((PLOT - 6.0, y(plot, *tick)), &plot.up.words(*tick), GREY, "end")) }
        @for (place, words) in &plot.across.ticks { (text((x(plot, *place), bottom + 12.0), words, GREY, "middle")) }
        (text((end(plot), bottom + 30.0), &plot.across.title, GREY, "end"))
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
    let heights = labels::apart(&wanted, LABEL_GAP, top(plot), bottom(plot));
    let left = end(plot) + LEADER;
    html! {
        @for ((one, end), height) in ended.iter().zip(heights) {
            @let ink = one.ink;
            (line(*end, (left, height), GRID))
            @if plot.steps.is_some() {
                (dot((left + SAMPLE / 2.0, height), ink.stroke, false))
            } @else {
                (polyline([(left, height), (left + SAMPLE, height)].into_iter(), ink))
                (marks([(left + SAMPLE / 2.0, height)].into_iter(), ink, false))
            }
            (text((left + SAMPLE + SAMPLE_GAP, height), &label(one), ink.stroke, "start"))
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

/// An upright line before a place. Breaks and others do not hide each other's words.
fn ruled(plot: &Plot, rule: &PlotRule) -> Markup {
    let at = x(plot, rule.before as f64 - 0.5);
    let is_right = at > (PLOT + end(plot)) / 2.0;
    let (anchor, words_at) = if is_right { ("end", at - 4.0) } else { ("start", at + 4.0) };
    let (stroke, dashes, above) = if rule.is_break { (TEXT, "6 4", 12.0) } else { (GREY, "2 3", 1.0) };
    html! {
        (dashed((at, top(plot) - 6.0), (at, bottom(plot)), stroke, dashes))
        (small((words_at, top(plot) - above), &cut(&rule.words, 60), GREY, anchor))
    }
}

/// Thin lines between neighbours that count: what has no number, and what lies across a break, is not bridged.
fn joined(plot: &Plot, of: &PlotLine, steps: &PlotSteps) -> Markup {
    let is_broken = |place: usize| steps.rules.iter().any(|rule| rule.is_break && rule.before == place);
    let counts: Vec<(usize, Pixel)> =
        laid(plot, of).filter(|(.., point)| point.doubt.is_empty()).map(|(place, at, _)| (place, at)).collect();
    let pairs = counts.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 1 && !is_broken(pair[1].0));
    html! { @if steps.is_joined { @for pair in pairs { (line(pair[0].1, pair[1].1, GREY)) } } }
}

fn levels(plot: &Plot, levels: &[PlotLevel]) -> Markup {
    let ends = |level: &PlotLevel| (x(plot, level.first as f64 - 0.5), x(plot, level.last as f64 + 0.5));
    let height = |level: &PlotLevel| y(plot, level.number);
    html! {
        @for level in levels {
            @let (from, to) = ends(level);
            (thick((from, height(level)), (to, height(level)), LEVEL))
        }
        @for pair in levels.windows(2).filter(|pair| pair[0].last + 1 == pair[1].first) {
            @let at = ends(&pair[1]).0;
            (thick((at, height(&pair[0])), (at, height(&pair[1])), LEVEL))
        }
    }
}

/// Dots on their intervals.
fn barred(plot: &Plot, line: &PlotLine) -> Markup {
    let stroke = line.ink.stroke;
    html! {
        @for (_, (x, middle), point) in laid(plot, line) {
            @let is_hollow = !point.doubt.is_empty();
            @let span = point.span.map(|ends| ends.map(|end| y(plot, end)));
            @if let Some([low, high]) = span.filter(|[low, high]| low - high > 1.0) {
                @let left = px(x - 4.0);
                @let path = format!("M{left} {}h8M{} {}V{}M{left} {}h8", px(low), px(x), px(low), px(high), px(high));
                path d=(path) fill="none" stroke=(hex(stroke.light)) stroke-width=(if is_hollow { "1" } else { "2" }) {}
            }
            (dot((x, middle), stroke, is_hollow))
        }
    }
}

fn cross((x, y): Pixel) -> Markup {
    let (left, top) = (px(x - 5.0), px(y - 5.0));
    let path = format!("M{left} {top}l10 10M{left} {}l10 -10", px(y + 5.0));
    html! { path d=(path) fill="none" stroke=(hex(FAILED.light)) stroke-width="2" {} }
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::attributes as all;
    use super::super::tests::{plot, steps};
    use super::*;

    fn svg(plot: &Plot) -> String {
        drawn(plot).into_string()
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
        assert!(places[29] <= size(&plot).1, "{places:?}");
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

    fn thick_lines(plot: &Plot) -> usize {
        svg(plot).matches("stroke-width=\"3\"").count()
    }

    #[test]
    fn a_step_is_drawn_between_levels_that_touch() {
        let level = |first, last, number| PlotLevel { first, last, number };
        let mut plot = steps(&[Some(1.0), Some(1.0), Some(1.2)]);
        let set = |plot: &mut Plot, levels| plot.steps.as_mut().expect("steps").levels = levels;
        set(&mut plot, vec![level(0, 1, 1.0), level(2, 2, 1.2)]);
        assert_eq!(thick_lines(&plot), 3);
        set(&mut plot, vec![level(0, 0, 1.0), level(2, 2, 1.2)]);
        assert_eq!(thick_lines(&plot), 2, "a gap is not bridged");
    }

    #[test]
    fn failures_are_crosses_noisy_numbers_hollow_and_gaps_not_bridged() {
        let grey =
            |plot: &Plot| svg(plot).matches(&format!("fill=\"none\" stroke=\"{}\"></path>", hex(GREY.light))).count();
        let whole = steps(&[Some(1.0), Some(1.1), Some(1.0)]);
        assert_eq!(grey(&whole), 2, "{}", svg(&whole));
        assert_eq!(grey(&steps(&[Some(1.0), None, Some(1.0)])), 0);
        let mut noisy = steps(&[Some(1.0), Some(1.1), Some(1.0)]);
        noisy.lines[0].points[1].as_mut().expect("a point").doubt = "noisy";
        assert_eq!(grey(&noisy), 0);
        let mut broken = steps(&[Some(1.0), Some(1.1), Some(1.0)]);
        let rule = PlotRule { before: 1, words: "another <machine>".to_string(), is_break: true };
        let of_broken = broken.steps.as_mut().expect("steps");
        (of_broken.rules, of_broken.failed) = (vec![rule], vec![2]);
        assert_eq!(grey(&broken), 1, "{}", svg(&broken));
        let svg = svg(&broken);
        assert!(svg.contains("another &lt;machine&gt;") && svg.contains("stroke-dasharray=\"6 4\""), "{svg}");
        assert!(svg.contains("l10 10M"), "{svg}");
    }

    #[test]
    fn labels_of_places_have_room() {
        assert_eq!(room_for_labels(2).0, 1);
        let (step, letters) = room_for_labels(200);
        assert!(step > 10 && letters >= 4, "{step} {letters}");
    }
}
