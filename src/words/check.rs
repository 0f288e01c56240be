//! What a check of a store found: plain data from the process that asks to the lines that are printed.

use serde::{Deserialize, Serialize};

/// All that was learned of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// As it was typed, without what is secret.
    pub target: String,
    /// What it says it is; empty where it was not reached.
    pub version: String,
    pub mouth: String,
    pub reached: Reached,
    /// Probes that were asked to their end, right or wrong.
    pub probes: u32,
    pub wrong: Vec<Finding>,
    /// What it takes and no more, in words: "values up to 1,048,531 bytes".
    pub limits: Vec<String>,
    /// What it has no means for, in words.
    pub not_offered: Vec<String>,
    pub took_s: f64,
}

/// Whether there was anybody to be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Reached {
    #[default]
    Probed,
    /// It is not on this machine, or would not start; and the command that gets it.
    Missing { reason: String, get_it: String },
    /// It is there, and could not be asked.
    Failed { reason: String },
}

/// What one probe heard that is not right.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub probe: String,
    pub sent: String,
    pub came: String,
}

/// How one probe ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Right,
    Wrong {
        sent: String,
        came: String,
    },
    /// The store has no means for it, or the way to it none of splitting its replies.
    NotOffered(String),
}
