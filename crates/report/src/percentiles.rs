//! Latency by percentile of jobs of requests, from the records' histograms: at the last step of a sweep, or the highest
//! rate that was kept, all counted blocks together.

use anyhow::Result;

use super::chart::axis::Axis;
use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint, first_lines};
use super::point::called;
use super::run_report::RunReport;
use super::swept::with;
use super::times::merged;
use kvfair_core::hist::{Packed, Times};
use kvfair_core::load::{Load, Swept};
use kvfair_core::part::Part;
use kvfair_core::record::{Phase, Record};

/// In per cent, as they are called, and what is left to all.
const PERCENTILES: [(&str, f64); 11] = [
    ("25 %", 0.75),
    ("50 %", 0.5),
    ("75 %", 0.25),
    ("90 %", 0.1),
    ("95 %", 0.05),
    ("99 %", 0.01),
    ("99.5 %", 0.005),
    ("99.9 %", 0.001),
    ("99.95 %", 0.0005),
    ("99.99 %", 0.0001),
    ("99.999 %", 0.00001),
];
const TICKS: [&str; 6] = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"];
/// A percentile above which there are fewer requests is theirs alone, and is not shown.
const BEYOND_MIN: f64 = 10.0;

/// Where the median stands in them.
const MEDIAN: usize = 1;

/// A plot a part of the job; nothing of jobs that are none of requests.
pub fn chart(report: &RunReport<'_>) -> Result<Chart> {
    let mut chart = Chart::default();
    for part in Part::OF_POINTS {
        let Some((plot, left_out)) = plot(report, part)? else { continue };
        chart.notes.extend(left_out.map(|left_out| format!("{}: {left_out}", plot.title)));
        chart.plots.push(plot);
    }
    Ok(chart)
}

/// The lines by their medians, the quickest first, and who is left out.
fn quickest(lines: &mut Vec<PlotLine>) -> Option<String> {
    let median = |line: &PlotLine| line.points[MEDIAN].map_or(f64::INFINITY, |point| point.number);
    lines.sort_by(|one, other| median(one).total_cmp(&median(other)));
    first_lines(lines, "those with the lowest medians")
}

fn plot(report: &RunReport<'_>, part: Part) -> Result<Option<(Plot, Option<String>)>> {
    let kept = report.points.iter().filter(|point| point.part == part && point.has_number() && !point.baseline);
    let kept = kept.filter(|point| point.rated.as_ref().is_none_or(|rated| rated.kept));
    let last = kept.clone().max_by_key(|point| point.step());
    let numbered = report.rows.iter().filter(|row| row.status.has_numbers());
    let inks = Inks::of(numbered.map(|row| (row.target.as_str(), row.baseline)));
    let mut lines = Vec::new();
    for row in report.rows.iter().filter(|row| !row.baseline && row.of_requests && row.status.has_numbers()) {
        let at = last.map(|last| last.step());
        if at.is_some() && !kept.clone().any(|point| Some(point.step()) == at && point.target == row.target) {
            continue;
        }
        let points = numbers(&of_target(report, part, &row.target, at)?);
        let points: Vec<_> = points.into_iter().map(|number| number.map(PlotPoint::plain)).collect();
        if points.iter().flatten().count() > 1 {
            let (target, ink) = (row.target.clone(), inks.ink(&row.target));
            lines.push(PlotLine { target, remark: String::new(), ink, points });
        }
    }
    let left_out = quickest(&mut lines);
    let all: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().flatten().map(|point| point.number)).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let at = last.map_or_else(String::new, |point| format!(" {}", with(point.swept, point.step())));
    let plot = Plot {
        title: format!("latency of a {}{at}, us (logarithmic)", called(part)),
        across: across(lines.iter().map(|line| line.points.iter().flatten().count()).max().unwrap_or(0)),
        up: Axis::of_latencies(&all),
        lines,
        steps: None,
    };
    Ok(Some((plot, left_out)))
}

/// The first so many percentiles, a step of the axis for each time that ten times fewer are left.
fn across(count: usize) -> PlotAxis {
    let place = |left: f64| -libm::log10(left);
    let places: Vec<(f64, String)> =
        PERCENTILES[..count].iter().map(|(name, left)| (place(*left), name.to_string())).collect();
    let ticks = places.iter().filter(|(_, name)| TICKS.contains(&name.as_str())).cloned();
    PlotAxis {
        title: "percentile".to_string(),
        axis: Axis::of_measure(&[places.last().map_or(1.0, |(place, _)| *place)]),
        ticks: ticks.collect(),
        places,
    }
}

/// All counted blocks of a target together.
fn of_target(report: &RunReport<'_>, part: Part, target: &str, at: Option<u64>) -> Result<Times> {
    let counts = |record: &&Record| {
        record.target.label == target && record.took_s().is_some() && record.is_right() && !record.run.answers_only
    };
    let trials = report.records.iter().filter(counts).filter(|record| report.standings.counted.has(record));
    let phases = trials.flat_map(|record| record.measured().map(move |phase| (record, phase)));
    let of_part = phases.filter(|(record, phase)| {
        phase.part == part && at.is_none_or(|at| step(record, phase) == Some(at)) && record.job.load.is_some()
    });
    merged(&of_part.collect::<Vec<_>>(), |phase| Some(histogram(phase)))
}

/// At a rate from the time at which a request was due.
fn histogram(phase: &Phase) -> &Packed {
    phase.open.as_ref().map_or(&phase.times_ns, |open| &open.response_ns)
}

/// Where in a sweep a phase lies.
fn step(record: &Record, phase: &Phase) -> Option<u64> {
    let load = record.job.load.as_ref()?;
    let at = || load.points(record.job.units, 0).into_iter().find(|at| at.number == phase.point);
    match Load::swept(load) {
        Swept::Rate => phase.open.as_ref().map(|open| open.rate),
        Swept::Clients => Some(if phase.clients == 0 { record.clients } else { phase.clients }.into()),
        Swept::ValueBytes => at().map(|at| at.value_bytes.into()),
        Swept::Batch => at().map(|at| at.batch.into()),
    }
}

/// In microseconds; none above the last one that tells of enough requests.
fn numbers(times: &Times) -> Vec<Option<f64>> {
    let count = times.count() as f64;
    let number = |left: f64| times.value_at(1.0 - left) as f64 / 1e3;
    PERCENTILES.iter().map(|(_, left)| (count * left >= BEYOND_MIN).then(|| number(*left))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_too_few_requests_is_not_shown() {
        let mut times = Times::default();
        for time_us in 1..=1_000 {
            times.record(time_us * 1_000);
        }
        let numbers = numbers(&times);
        let p99 = numbers[5].expect("ten are above it");
        assert!((p99 - 990.0).abs() < 5.0 && numbers[6..].iter().all(Option::is_none), "{numbers:?}");
        assert_eq!(across(6).places.len(), 6);
        assert!((across(6).axis.share(1.0) * 2.0 - across(6).axis.share(2.0)).abs() < 1e-9, "equal steps");
    }
}
