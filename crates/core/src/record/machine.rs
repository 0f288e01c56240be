//! The machine of a trial.

use serde::{Deserialize, Serialize};

use crate::preflight::Preflight;

/// Where it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    pub cpu: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    pub kernel: String,
    pub os: String,
    /// Of the data directory: "ext4 on /dev/vda".
    pub filesystem: String,
    /// Run queue's mean length over the last minute, when the trial began.
    pub load_1m: f64,
    /// Share of time in the last ten seconds in which something waited for a CPU, when the trial began.
    pub cpu_pressure_share: Option<f64>,
    pub transparent_huge_pages: String,
    pub clock_source: String,
    pub governor: String,
    pub virtualisation: String,
    /// Libraries that are loaded into every program, each with the digest of its file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// What was seen of it before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
}
