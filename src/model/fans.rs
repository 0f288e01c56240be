//! What shapes the job `fans` besides its data.

use serde::{Deserialize, Serialize};

/// What the job `fans` does beyond building its records; nothing else reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FansSettings {
    /// Pages that are asked for once the records are built; 0 where none are.
    #[serde(default)]
    pub queries: u64,
}
