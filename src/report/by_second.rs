//! CPU and memory of each store second by second: one trial of each target, as lines.

use super::chart::axis::Axis;
use super::chart::plot::{LINES_MAX, Plot, PlotAxis, PlotLine};
use super::warn::WarningInput;
use crate::model::record::{Record, Second};

/// A line needs two points.
const LEAST_SECONDS: usize = 2;

/// One target's trial.
struct SecondsLine<'a> {
    target: &'a str,
    block: u32,
    seconds: Vec<Second>,
}

/// CPU and memory; nothing where no trial took some seconds.
pub struct BySecond {
    pub plots: Vec<Plot>,
    /// Targets for which there is no colour.
    pub not_drawn: Vec<String>,
}

pub fn by_second(seen: &WarningInput<'_>) -> BySecond {
    let lines: Vec<SecondsLine<'_>> = seen.rows.iter().filter_map(|row| line(seen, &row.target)).collect();
    let (shown, more) = lines.split_at(lines.len().min(LINES_MAX));
    let plots = match shown {
        [] => Vec::new(),
        _ => vec![
            plot("CPU, processors kept busy", shown, |second| second.cpu_s),
            plot("memory of its own at the end of each second, MB", shown, |second| {
                second.anonymous_bytes as f64 / 1e6
            }),
        ],
    };
    BySecond { plots, not_drawn: more.iter().map(|line| line.target.to_string()).collect() }
}

fn line<'a>(seen: &WarningInput<'a>, target: &'a str) -> Option<SecondsLine<'a>> {
    let counts = |trial: &&Record| {
        let is_right = trial.took_s().is_some() && trial.is_right();
        trial.target.label == target && is_right && seen.standings.counted.has(trial)
    };
    let trial = seen.records.iter().filter(counts).min_by_key(|trial| trial.block)?;
    let seconds: Vec<Second> = trial.measured().flat_map(|phase| phase.store_by_second.iter().copied()).collect();
    let block = trial.block;
    (seconds.len() >= LEAST_SECONDS && !trial.run.answers_only).then_some(SecondsLine { target, block, seconds })
}

fn plot(title: &str, lines: &[SecondsLine<'_>], value: fn(&Second) -> f64) -> Plot {
    let all: Vec<f64> = lines.iter().flat_map(|line| line.seconds.iter().map(value)).collect();
    let longest = lines.iter().map(|line| line.seconds.len()).max().unwrap_or(1);
    let axis = Axis::of_measure(&[longest as f64]);
    let ticks = axis.ticks.iter().filter(|tick| tick.fract() == 0.0).map(|tick| (*tick, tick.to_string()));
    let line = |line: &SecondsLine<'_>| PlotLine {
        target: line.target.to_string(),
        remark: format!(", block {}", line.block),
        numbers: line.seconds.iter().map(|second| Some(value(second))).collect(),
    };
    Plot {
        title: title.to_string(),
        across: PlotAxis {
            title: "seconds of the trial",
            ticks: ticks.collect(),
            places: (1..=longest).map(|second| (second as f64, second.to_string())).collect(),
            axis,
        },
        up: Axis::of_measure(&all),
        lines: lines.iter().map(line).collect(),
    }
}
