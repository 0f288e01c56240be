//! Pictures as SVG, on a page and as files: charts, which are plots that belong together, and marks on rows. What they
//! are of is not known here.

pub(super) mod axis;
pub mod drawn_rows;
mod figure;
mod labels;
mod legend;
pub(super) mod marks;
pub(super) mod palette;
mod placed_rows;
mod plot;
pub mod rows;
mod svg;

pub(super) use figure::figures;
pub(super) use svg::shortened;

use maud::{Markup, html};

use axis::Axis;
use palette::Ink;
use plot::{drawn, room_for_labels, size};
use svg::{Placed, cut, px};

/// Plots that belong together.
#[derive(Default)]
pub struct Chart {
    /// Empty where its plots say all.
    pub title: String,
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
    /// None of what has no steps.
    pub steps: Option<PlotSteps>,
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

/// What a plot of places in their order has besides its line: levels that change only where a step is claimed.
#[derive(Default)]
pub struct PlotSteps {
    /// From left to right. Between two that touch there is a step.
    pub levels: Vec<PlotLevel>,
    pub rules: Vec<PlotRule>,
    /// Places that were run and have no number.
    pub failed: Vec<usize>,
    /// Numbers in here are not told apart from the first one.
    pub band: Option<(f64, f64)>,
    /// Neighbours are joined by a thin line.
    pub is_joined: bool,
}

/// The level of the places from the first to the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotLevel {
    pub first: usize,
    pub last: usize,
    pub number: f64,
}

/// An upright line before a place.
pub struct PlotRule {
    pub before: usize,
    pub words: String,
    /// What stands on either side is never compared.
    pub is_break: bool,
}

impl PlotPoint {
    pub fn plain(number: f64) -> PlotPoint {
        PlotPoint { number, span: None, doubt: "" }
    }

    /// All that it takes room for.
    pub fn reach(&self) -> [f64; 3] {
        let [low, high] = self.span.unwrap_or([self.number; 2]);
        [low, self.number, high]
    }
}

impl PlotAxis {
    /// The ticks of the axis itself.
    pub fn ticked(title: &str, axis: Axis, places: Vec<(f64, String)>) -> PlotAxis {
        let ticks = axis.ticks.iter().map(|tick| (*tick, axis.words(*tick))).collect();
        PlotAxis { title: format!("{title}{}", axis.scale()), axis, places, ticks }
    }

    /// Of places that have names; ticks where there is room.
    pub fn named(title: &str, names: Vec<String>) -> PlotAxis {
        let (step, letters) = room_for_labels(names.len());
        let axis = Axis::of_places(names.len(), step);
        let ticks = axis.ticks.iter().map(|tick| (*tick, cut(&names[*tick as usize], letters))).collect();
        let places = names.into_iter().enumerate().map(|(place, name)| (place as f64, name)).collect();
        PlotAxis { title: title.to_string(), axis, places, ticks }
    }
}

impl Plot {
    /// Of one line over places in their order: `up` is counted, in equal ratios.
    pub fn of_steps(up: &str, across: &str, names: Vec<String>, line: PlotLine, steps: PlotSteps) -> Plot {
        let band = steps.band.into_iter().flat_map(|(low, high)| [low, high]);
        let axis = Axis::around(line.points.iter().flatten().flat_map(PlotPoint::reach).chain(band), "");
        Plot {
            title: format!("{up}{}", axis.scale()),
            across: PlotAxis::named(across, names),
            up: axis,
            lines: vec![line],
            steps: Some(steps),
        }
    }
}

/// What is to be known of a plot of steps: `words`, and what its marks mean, as far as they occur.
pub fn notes_of_steps(plot: &Plot, words: &[&str]) -> Vec<String> {
    let Some(steps) = &plot.steps else { return Vec::new() };
    let mut points = plot.lines.iter().flat_map(|line| line.points.iter().flatten());
    let marks = [
        (points.any(|point| !point.doubt.is_empty()), "Hollow: noisy, not used."),
        (!steps.failed.is_empty(), "Crosses: no number."),
        (!steps.levels.is_empty(), "Thick line: the level between steps."),
        (true, "The upright axis does not begin at 0."),
    ];
    let marks = marks.into_iter().filter(|(occurs, _)| *occurs).map(|(_, words)| words);
    vec![words.iter().copied().chain(marks).collect::<Vec<_>>().join(" ")]
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

/// All charts below a heading as a file of their own: two plots in a row, those of steps by themselves, notes below
/// them.
pub fn document(headline: &str, charts: &[Chart]) -> String {
    let column = charts.iter().flat_map(|chart| &chart.plots).map(|plot| size(plot).0).fold(0.0, f64::max);
    let mut pictures = Vec::new();
    for chart in charts {
        let is_wide = chart.plots.iter().any(|plot| plot.steps.is_some());
        let rows: Vec<&[Plot]> = chart.plots.chunks(if is_wide { 1 } else { 2 }).collect();
        let last = rows.len().saturating_sub(1);
        pictures.extend(rows.iter().enumerate().map(|(place, row)| Placed {
            title: if place == 0 { chart.title.clone() } else { String::new() },
            size: (row.len() as f64 * column, row.iter().map(|plot| size(plot).1).fold(0.0, f64::max)),
            drawn: beside(row, column),
            notes: if place == last { chart.notes.clone() } else { Vec::new() },
        }));
    }
    svg::document(headline, &pictures)
}

fn beside(row: &[Plot], column: f64) -> Markup {
    html! {
        @for (place, plot) in row.iter().enumerate() {
            g transform=(format!("translate({} 0)", px(place as f64 * column))) { (drawn(plot)) }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::palette::Inks;
    use super::*;

    pub(crate) fn plot(targets: &[&str], numbers: &[f64]) -> Plot {
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
            steps: None,
        }
    }

    impl Chart {
        /// Of its first plot.
        pub fn steps(&self) -> &PlotSteps {
            self.plots[0].steps.as_ref().expect("a plot of steps")
        }
    }

    /// A plot of steps whose numbers have bars.
    pub(super) fn steps(numbers: &[Option<f64>]) -> Plot {
        let point = |number: &Option<f64>| {
            let number = (*number)?;
            Some(PlotPoint { number, span: Some([number * 0.97, number * 1.03]), doubt: "" })
        };
        let names = (0..numbers.len()).map(|place| format!("v{place}")).collect();
        let ink = Inks::of([("one", false)].into_iter()).ink("one");
        let points = numbers.iter().map(point).collect();
        let line = PlotLine { target: "one".to_string(), remark: String::new(), ink, points };
        Plot::of_steps("times as long", "versions", names, line, PlotSteps { is_joined: true, ..PlotSteps::default() })
    }

    #[test]
    fn a_file_holds_all_plots_below_each_other() {
        let plots = vec![plot(&["a"], &[1.0, 2.0]), plot(&["b"], &[1.0])];
        let chart = Chart { title: "two".to_string(), plots, notes: vec!["a note".to_string()] };
        let of_steps = Chart { title: "steps".to_string(), plots: vec![steps(&[Some(1.0)])], notes: Vec::new() };
        let svg = document("a run", &[chart, Chart::default(), of_steps]);
        assert_eq!(svg.matches("<g transform=").count(), 5, "two rows, three plots: {svg}");
        for words in [">two</text>", ">steps</text>", ">a note</text>", ">v0</text>"] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
    }

    #[test]
    fn the_marks_of_steps_are_told_as_far_as_they_occur() {
        let mut plot = steps(&[Some(1.0), None]);
        assert_eq!(notes_of_steps(&plot, &["A dot."]), ["A dot. The upright axis does not begin at 0."]);
        plot.lines[0].points[0].as_mut().expect("a point").doubt = "noisy";
        let of_plot = plot.steps.as_mut().expect("steps");
        of_plot.failed = vec![1];
        of_plot.levels = vec![PlotLevel { first: 0, last: 0, number: 1.0 }];
        let all = "Hollow: noisy, not used. Crosses: no number. Thick line: the level between steps. The upright axis";
        assert!(notes_of_steps(&plot, &[])[0].starts_with(all), "{:?}", notes_of_steps(&plot, &[]));
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
