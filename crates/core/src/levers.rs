//! What a run of `kvfair levers` changes at a target: its levers, and what each of its trials is for.

use serde::{Deserialize, Serialize};

use super::trial::Durability;

/// The levers of a run, the same in all of its records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeverRun {
    /// The target without any of them, as it was typed.
    pub base: String,
    /// Those that were measured.
    pub levers: Vec<RunLever>,
    /// Those that were not.
    pub left_out: Vec<UntriedLever>,
    /// The durability levels at which base is run at the end, those for which no time is left among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Durability>,
}

/// One thing that was changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunLever {
    /// As `--levers` takes it: `transport`, `via`, `cache`, `clients`, `depth`, or the name of a setting.
    pub name: String,
    /// To what: "unix", "via native", "protocol=binary".
    pub change: String,
    /// The price in words, such as memory or code; empty where none is known.
    pub pays: String,
    /// The values that a pilot tried, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedValue>,
    /// Why it is not among all levers together; nothing where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_all: Option<String>,
}

/// One value of a lever in a pilot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedValue {
    pub change: String,
    /// The median of its trials; nothing where none was right.
    pub took_s: Option<f64>,
}

/// A lever that the store or the job has, and why it was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UntriedLever {
    pub name: String,
    pub reason: String,
}

/// What one trial of such a run is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeverTrial {
    pub part: LeverPart,
    /// The names of the levers that its target has.
    pub changed: Vec<String>,
}

/// The parts of a run, each with blocks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LeverPart {
    /// Base, each lever alone, all, and all but each one.
    Gains,
    /// Base, all, and a set that may be enough; the first set is the attempt 1.
    Confirm { attempt: u32 },
    /// Base and each lever alone on the job `getset`, where the run is of another job.
    Synthetic,
    /// Base at each durability level that its store keeps.
    Durability,
}
