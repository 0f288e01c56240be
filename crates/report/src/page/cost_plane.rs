//! What speed costs: the time of each target against its memory.

use crate::chart::axis::Axis;
use crate::chart::palette::Inks;
use crate::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint};
use crate::run_report::RunReport;
use kvfair_core::units;

/// Nothing where fewer than two targets have both.
pub fn chart(report: &RunReport<'_>) -> Chart {
    let known = report.rows.iter().filter_map(|row| {
        let numbers = row.numbers.as_ref()?;
        let memory = numbers.memory_bytes().filter(|bytes| *bytes > 0)? as f64 / 1e6;
        Some((row, numbers.seconds, memory)).filter(|(_, seconds, _)| *seconds > 0.0)
    });
    let mut known: Vec<_> = known.collect();
    known.sort_by(|one, other| one.1.total_cmp(&other.1));
    if known.iter().filter(|(row, ..)| !row.baseline).count() < 2 || !report.points.is_empty() {
        return Chart::default();
    }
    let inks = Inks::of(report.rows.iter().map(|row| (row.target.as_str(), row.baseline)));
    let places = known.iter().map(|(_, seconds, _)| (*seconds, format!("{} s", units::seconds(*seconds)))).collect();
    let lines = known.iter().enumerate().map(|(place, (row, _, memory))| PlotLine {
        target: row.target.clone(),
        remark: String::new(),
        ink: inks.ink(&row.target),
        // Its own place alone.
        points: std::iter::repeat_n(None, place).chain([Some(PlotPoint::plain(*memory))]).collect(),
    });
    // Dots do not cross: all of them are drawn.
    let lines: Vec<PlotLine> = lines.collect();
    let up = Axis::around(known.iter().map(|(.., memory)| *memory), "");
    let plot = Plot {
        title: format!("memory at the peak, MB{}", up.scale()),
        across: PlotAxis::ticked("seconds", Axis::around(known.iter().map(|(_, seconds, _)| *seconds), ""), places),
        up,
        lines,
        steps: None,
    };
    Chart { title: String::new(), plots: vec![plot], notes: Vec::new() }
}
