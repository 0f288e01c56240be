//! What shapes the job `fans` besides its data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the job `fans` writes and asks; nothing else reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FansSettings {
    /// Pages that are asked for once the records are built; 0 where none are.
    #[serde(default)]
    pub queries: u64,
    #[serde(default)]
    pub encoding: Encoding,
}

/// How the records of the job `fans` are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Text that a person can read.
    #[default]
    Json,
    /// Lengths and numbers of few bytes, and names as they are.
    Binary,
}

impl fmt::Display for Encoding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Encoding::Json => "json",
            Encoding::Binary => "binary",
        })
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Encoding::Json, Encoding::Binary].into_iter().find(|encoding| encoding.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no encoding: json or binary"))
    }
}
