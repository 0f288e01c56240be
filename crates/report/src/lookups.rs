//! What is told of a job that reads what a store was filled with.

use kvfair_core::part::Part;
use kvfair_core::record::Record;
use kvfair_stats::sample::Sample;

/// Of all trials of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookups {
    /// What filling it took, its flush included. It counts for nothing else.
    pub fill_s: f64,
    pub lookups_per_s: f64,
    /// From a question to its answer, shared among the lookups of a question.
    pub lookup_us: f64,
    pub found_share: f64,
    pub entries: u64,
    /// What the store's processes read from a disk during the lookups. Nothing where that cannot be seen.
    pub read_bytes: Option<u64>,
    pub read_bytes_per_lookup: Option<f64>,
}

impl Lookups {
    /// Of trials that took so long in the median; nothing of other jobs.
    pub fn of(trials: &[&Record], seconds: f64) -> Option<Lookups> {
        let model = trials[0].stream.model?;
        let lookups = model.lookups.max(1) as f64;
        let median = |number: fn(&Record) -> Option<f64>| {
            Sample::new(trials.iter().filter_map(|trial| number(trial)).collect()).map(|sample| sample.median())
        };
        let read_bytes = median(|trial| read_bytes(trial).map(|bytes| bytes as f64));
        Some(Lookups {
            fill_s: median(|trial| Some(filled_s(trial))).unwrap_or(0.0),
            lookups_per_s: model.lookups as f64 / seconds.max(1e-9),
            lookup_us: median(|trial| Some(trial.phase(Part::Run)?.metrics.waiting_s)).unwrap_or(0.0) * 1e6 / lookups,
            found_share: model.found as f64 / lookups,
            entries: model.entries,
            read_bytes: read_bytes.map(|bytes| bytes as u64),
            read_bytes_per_lookup: read_bytes.map(|bytes| bytes / lookups),
        })
    }

    /// Something came from a disk.
    pub fn has_read(&self) -> bool {
        self.read_bytes.is_some_and(|bytes| bytes > 0)
    }
}

fn filled_s(trial: &Record) -> f64 {
    trial.phases.iter().filter(|phase| phase.part == Part::Load).map(|phase| phase.took_s).sum()
}

/// Of the process that the store is in. Our own is not that of a server that kvfair did not start.
fn read_bytes(trial: &Record) -> Option<u64> {
    let run = trial.phase(Part::Run)?;
    let of_client = Some(run.client).filter(|_| !trial.target.is_guest());
    run.server.or(of_client)?.bytes_read
}
