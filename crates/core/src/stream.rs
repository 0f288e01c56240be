//! What is known of a job's data before any store is asked.

use serde::{Deserialize, Serialize};

/// The stream of questions that all targets of a run were asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stream {
    /// sha256 of the job's data as it was read, decompressed: what `kvfair data JOB | sha256sum` prints.
    pub sha256: String,
    /// What a unit is: "profile".
    pub unit: String,
    pub units: u64,
    pub ops: u64,
    /// Bad lines that were passed over, as `--skip-bad` allowed.
    pub skipped_lines: u64,
    /// What is known of recorded traffic; nothing for other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<Traced>,
    /// What is known of a store that is filled to be read; nothing for other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What zstd leaves, at its fastest level, of a sample of drawn values, as a share; nothing for other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zstd_share: Option<f64>,
}

/// What is known of recorded traffic before any store is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Traced {
    /// Of the units, those that are gets.
    pub gets: u64,
    /// Of them, those that find nothing in a store that keeps everything; unknown where only a sample of the keys was
    /// replayed.
    pub misses: Option<u64>,
    /// Recorded requests for which no store is asked: see docs/workloads.md. They are no units.
    pub unasked: u64,
}

/// What is known of the counts that the job `lookup` reads, before any store is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Model {
    /// Counters that the store is filled with; an estimate where only a sample of the keys was replayed.
    pub entries: u64,
    /// Of the units, those that are scored.
    pub scored: u64,
    /// Counters that are asked for, by one op each or many by one.
    pub lookups: u64,
    /// Of them, those that are there.
    pub found: u64,
}

impl Stream {
    /// Units of the phases that count.
    pub fn measured_units(&self) -> u64 {
        self.model.map_or(self.units, |model| model.scored)
    }
}
