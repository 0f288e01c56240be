//! CPU and memory of each store second by second: one trial of each target, as lines.

use super::chart::axis::Axis;
use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint, first_lines};
use super::run_report::RunReport;
use kvfair_core::record::{Record, Second};

/// A line needs two points.
const LEAST_SECONDS: usize = 2;

/// One target's trial.
struct SecondsLine<'a> {
    target: &'a str,
    block: u32,
    seconds: Vec<Second>,
}

/// CPU and memory; nothing where no trial took some seconds.
pub fn chart(report: &RunReport<'_>) -> Chart {
    let lines: Vec<SecondsLine<'_>> = report.rows.iter().filter_map(|row| line(report, &row.target)).collect();
    if lines.is_empty() {
        return Chart::default();
    }
    let numbered = report.rows.iter().filter(|row| row.status.has_numbers());
    let inks = Inks::of(numbered.map(|row| (row.target.as_str(), row.baseline)));
    let mut plots = vec![
        plot("CPU, processors kept busy", &lines, &inks, |second| second.cpu_s),
        plot("memory of its own at the end of each second, MB", &lines, &inks, |second| {
            second.anonymous_bytes as f64 / 1e6
        }),
    ];
    let left_out = plots.iter_mut().map(|plot| first_lines(&mut plot.lines, "the first ones of the table"));
    // The same targets in both.
    let notes = left_out.collect::<Vec<_>>().pop().flatten().into_iter().collect();
    Chart { plots, notes, ..Chart::default() }
}

fn line<'a>(report: &RunReport<'a>, target: &'a str) -> Option<SecondsLine<'a>> {
    let counts = |trial: &&Record| {
        let is_right = trial.took_s().is_some() && trial.is_right();
        trial.target.label == target && is_right && report.standings.counted.has(trial)
    };
    let trial = report.records.iter().filter(counts).min_by_key(|trial| trial.block)?;
    let seconds: Vec<Second> = trial.measured().flat_map(|phase| phase.store_by_second.iter().copied()).collect();
    let block = trial.block;
    (seconds.len() >= LEAST_SECONDS && !trial.run.answers_only).then_some(SecondsLine { target, block, seconds })
}

fn plot(title: &str, lines: &[SecondsLine<'_>], inks: &Inks<'_>, value: fn(&Second) -> f64) -> Plot {
    let all: Vec<f64> = lines.iter().flat_map(|line| line.seconds.iter().map(value)).collect();
    let longest = lines.iter().map(|line| line.seconds.len()).max().unwrap_or(1);
    let axis = Axis::of_measure(&[longest as f64]);
    let ticks = axis.ticks.iter().filter(|tick| tick.fract() == 0.0).map(|tick| (*tick, tick.to_string()));
    let line = |line: &SecondsLine<'_>| PlotLine {
        target: line.target.to_string(),
        remark: format!(", block {}", line.block),
        ink: inks.ink(line.target),
        points: line.seconds.iter().map(|second| Some(PlotPoint::plain(value(second)))).collect(),
    };
    Plot {
        title: title.to_string(),
        across: PlotAxis {
            title: "seconds of the trial".to_string(),
            ticks: ticks.collect(),
            places: (1..=longest).map(|second| (second as f64, second.to_string())).collect(),
            axis,
        },
        up: Axis::of_measure(&all),
        lines: lines.iter().map(line).collect(),
        steps: None,
    }
}
