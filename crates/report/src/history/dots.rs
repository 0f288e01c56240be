//! Each target in each run, for CSV.

use serde_json::Value;

use super::{DotSeen, HistoryReport};
use crate::columns::{Column, exported, value};

/// One number of one run.
pub struct DotLine {
    job: String,
    target: String,
    counted: String,
    began: String,
    file: String,
    version: Option<String>,
    seen: DotSeen,
}

pub const COLUMNS: &[Column<DotLine>] = &[
    exported("job", |line| line.job.as_str().into()),
    exported("target", |line| line.target.as_str().into()),
    exported("of", |line| line.counted.as_str().into()),
    exported("began", |line| line.began.as_str().into()),
    exported("file", |line| line.file.as_str().into()),
    exported("version", |line| value(line.version.as_deref())),
    exported("status", |line| match line.seen {
        DotSeen::Used { .. } => "used".into(),
        DotSeen::Noisy { .. } => "noisy".into(),
        DotSeen::Failed { .. } => "failed".into(),
        DotSeen::Absent => "absent".into(),
    }),
    exported("number", |line| match line.seen {
        DotSeen::Used { number, .. } | DotSeen::Noisy { number, .. } => number.into(),
        DotSeen::Failed { .. } | DotSeen::Absent => Value::Null,
    }),
    exported("number_low", |line| if let DotSeen::Used { low, .. } = line.seen { value(low) } else { Value::Null }),
    exported("number_high", |line| if let DotSeen::Used { high, .. } = line.seen { value(high) } else { Value::Null }),
    exported("reason", |line| match &line.seen {
        DotSeen::Noisy { why, .. } | DotSeen::Failed { why } => why.as_str().into(),
        DotSeen::Used { .. } | DotSeen::Absent => Value::Null,
    }),
];

/// By set-up, target and time.
pub fn dots(report: &HistoryReport) -> Vec<DotLine> {
    let of_setup = report.setups.iter().flat_map(|setup| setup.series.iter().map(move |series| (setup, series)));
    let each = of_setup.flat_map(|(setup, series)| {
        setup.runs.iter().zip(&series.dots).map(move |(run, dot)| DotLine {
            job: setup.job.clone(),
            target: series.target.clone(),
            counted: series.counted.clone(),
            began: run.began.clone(),
            file: run.file.clone(),
            version: dot.version.clone(),
            seen: dot.seen.clone(),
        })
    });
    each.collect()
}
