//! A run of several sizes, round trips or orders as lines: time, CPU and memory of each target over what was varied.

use super::cells::{Numbers, Row};
use super::chart::axis::Axis;
use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint, first_lines};
use super::costs;
use super::run_report::RunReport;
use super::sizes::{self, SizedReport};
use super::standing::by_target;
use kvfair_core::record::Record;
use kvfair_stats::sample::Sample;

/// What is drawn of each target.
struct Drawn {
    title: &'static str,
    /// Of a row, its median.
    of_row: fn(&Numbers) -> Option<f64>,
    /// The same of a trial.
    of_trial: fn(&Record) -> Option<f64>,
}

const DRAWN: [Drawn; 3] = [
    Drawn { title: "seconds", of_row: |numbers| Some(numbers.seconds), of_trial: Record::cost },
    Drawn {
        title: "microseconds of CPU per op",
        of_row: |numbers| Some(numbers.cpu_us_per_op()),
        of_trial: costs::cpu_us_per_op,
    },
    Drawn {
        title: "megabytes of memory at the peak",
        of_row: |numbers| Some(numbers.memory_bytes()? as f64 / 1e6),
        of_trial: |trial| Some(costs::memory_bytes(trial)? / 1e6),
    },
];

/// A plot for each of these that any target has at two steps.
pub fn chart(report: &SizedReport<'_>) -> Chart {
    let mut chart = Chart::default();
    let mut left_out = None;
    for drawn in &DRAWN {
        let Some(mut plot) = plot(report, drawn) else { continue };
        left_out = first_lines(&mut plot.lines, "those with the lowest medians at the last step");
        chart.plots.push(plot);
    }
    if !chart.plots.is_empty() {
        let notes = "Dots: medians. Bands: 95 % intervals of the medians, from six blocks on.";
        chart.notes = std::iter::once(notes.to_string()).chain(left_out).collect();
    }
    chart
}

fn plot(report: &SizedReport<'_>, drawn: &Drawn) -> Option<Plot> {
    let rows = || report.parts.iter().flat_map(|(_, part)| &part.rows);
    let inks = Inks::of(rows().filter(|row| row.numbers.is_some()).map(|row| (row.target.as_str(), row.baseline)));
    // The quickest at the last step comes first.
    let mut names: Vec<&Row> = Vec::new();
    for row in report.parts.iter().rev().flat_map(|(_, part)| &part.rows).filter(|row| row.numbers.is_some()) {
        if names.iter().all(|known| known.target != row.target) {
            names.push(row);
        }
    }
    let line = |row: &Row| {
        let points = report.parts.iter().map(|(_, part)| point(part, &row.target, drawn)).collect();
        PlotLine { target: row.target.clone(), remark: String::new(), ink: inks.ink(&row.target), points }
    };
    let lines: Vec<PlotLine> =
        names.into_iter().map(line).filter(|line| line.points.iter().flatten().count() > 1).collect();
    let reached: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().flatten()).flat_map(PlotPoint::reach).collect();
    if reached.is_empty() {
        return None;
    }
    let up = Axis::around(reached.into_iter(), "");
    let title = format!("{}{}", drawn.title, up.scale());
    Some(Plot { title, across: across(report), up, lines, steps: None })
}

/// In equal steps where one of them is none, as a round trip that no proxy lengthens.
fn across(report: &SizedReport<'_>) -> PlotAxis {
    let (axis, steps) = (&report.axis, report.parts.iter().map(|(step, _)| *step).collect::<Vec<u64>>());
    let names: Vec<String> = steps.iter().map(|step| axis.step(*step)).collect();
    if *axis != sizes::Axis::RoundTrip {
        let numbers: Vec<f64> = steps.iter().map(|step| *step as f64).collect();
        let places = numbers.iter().copied().zip(names).collect();
        return PlotAxis::ticked(&axis.title(), Axis::of_sweep(&numbers), places);
    }
    PlotAxis::named(&axis.title(), names)
}

fn point(part: &RunReport<'_>, target: &str, drawn: &Drawn) -> Option<PlotPoint> {
    let row = part.rows.iter().find(|row| row.target == target)?;
    let number = (drawn.of_row)(row.numbers.as_ref()?).filter(|number| *number > 0.0)?;
    let by_block = by_target(part.records, &part.standings.counted, drawn.of_trial, |label| label == target);
    let each: Vec<f64> = by_block.into_values().flat_map(|by| by.into_values()).collect();
    let span = Sample::new(each).and_then(|sample| sample.median_bounds()).map(|(low, high)| [low, high]);
    Some(PlotPoint { number, span, doubt: if part.standings.is_noisy() { "noisy" } else { "" } })
}
