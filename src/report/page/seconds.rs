//! CPU and memory of each store second by second: one trial of each target, as lines.

use maud::{Markup, html};
use plotters::coord::ranged1d::ValueFormatter;

use super::picture::px;
use crate::model::record::{Record, Second};
use crate::model::units;
use crate::report::chart::axis::Axis;
use crate::report::chart::palette::{GREY, GRID, LINES, PAPER, Stroke, TEXT, hex};
use crate::report::chart::shortened;
use crate::report::warn::WarningInput;

// Lengths in pixels.
const WIDTH: f64 = 430.0;
const PLOT: f64 = 52.0;
const PLOT_END: f64 = 420.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 190.0;
const LEGEND: f64 = 232.0;
const LEGEND_LINE: f64 = 17.0;
/// Each line needs a colour of its own, so there are no more lines than colours.
const MOST: usize = LINES.len();
/// A line needs two points.
const LEAST_SECONDS: usize = 2;

/// One target's trial.
struct SecondsLine<'a> {
    target: &'a str,
    block: u32,
    seconds: Vec<Second>,
}

/// Both charts; nothing where no trial took some seconds.
pub fn charts(seen: &WarningInput<'_>) -> Markup {
    let lines: Vec<SecondsLine<'_>> = seen.rows.iter().filter_map(|row| line(seen, &row.target)).collect();
    if lines.is_empty() {
        return html! {};
    }
    let (shown, more) = lines.split_at(lines.len().min(MOST));
    html! {
        h2 { "The store, second by second" }
        p.grey {
            "One trial of each target: its first block that counts. Of a server its processes, of a store in the \
             process the trial's own."
            @if !more.is_empty() { " Not drawn: " (names(more)) "." }
        }
        div.two {
            (chart("CPU, processors kept busy", shown, |second| second.cpu_s))
            (chart("memory of its own at the end of each second, MB", shown, |second| second.anonymous_bytes as f64 / 1e6))
        }
    }
}

fn names(lines: &[SecondsLine<'_>]) -> String {
    lines.iter().map(|line| line.target).collect::<Vec<_>>().join(", ")
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

fn chart(title: &str, lines: &[SecondsLine<'_>], value: fn(&Second) -> f64) -> Markup {
    let all: Vec<f64> = lines.iter().flat_map(|line| line.seconds.iter().map(value)).collect();
    let longest = lines.iter().map(|line| line.seconds.len()).max().unwrap_or(1);
    let (across, up) = (Axis::of_measure(&[longest as f64]), Axis::of_measure(&all));
    let x = |second: f64| PLOT + across.share(second) * (PLOT_END - PLOT);
    let y = |number: f64| BOTTOM - up.share(number) * (BOTTOM - TOP);
    let height = LEGEND + lines.len() as f64 * LEGEND_LINE;
    let peak = |line: &SecondsLine<'_>| line.seconds.iter().map(value).fold(0.0, f64::max);
    let told = lines.iter().map(|line| format!("{} at most {}", line.target, units::digits(peak(line))));
    let summary = format!("{title} by second: {}", told.collect::<Vec<_>>().join(", "));
    html! {
        figure {
            svg role="img" width=(px(WIDTH)) height=(px(height)) viewBox=(format!("0 0 {} {}", px(WIDTH), px(height)))
                font-family="sans-serif" font-size="12" {
                title { (summary) }
                rect width=(px(WIDTH)) height=(px(height)) fill=(hex(PAPER.light)) {}
                (text(8.0, 16.0, title, TEXT, "start"))
                @for tick in &up.ticks {
                    path d=(format!("M{} {}H{}", px(PLOT), px(y(*tick)), px(PLOT_END))) stroke=(hex(GRID.light)) fill="none" {}
                    (text(PLOT - 6.0, y(*tick) + 4.0, &up.format_ext(tick), GREY, "end"))
                }
                @for tick in across.ticks.iter().filter(|tick| tick.fract() == 0.0) {
                    (text(x(*tick), BOTTOM + 16.0, &across.format_ext(tick), GREY, "middle"))
                }
                (text(PLOT_END, BOTTOM + 32.0, "seconds of the trial", GREY, "end"))
                @for ((place, line), stroke) in lines.iter().enumerate().zip(LINES) {
                    @let at = LEGEND + place as f64 * LEGEND_LINE;
                    @let points = line.seconds.iter().zip(1..).map(|(second, n)| (x(f64::from(n)), y(value(second))));
                    (polyline(points, stroke))
                    (polyline([(PLOT, at), (PLOT + 30.0, at)].into_iter(), stroke))
                    (text(PLOT + 38.0, at + 4.0, &format!("{}, block {}", shortened(line.target), line.block), TEXT, "start"))
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
    html! { text x=(px(x)) y=(px(y)) fill=(hex(stroke.light)) text-anchor=(anchor) { (words) } }
}
