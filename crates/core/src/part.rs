//! The parts of a trial, each of which is measured by itself.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of a trial. A record calls it a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Puts the data in place before anything is measured.
    Load,
    /// The whole of a job.
    #[default]
    Run,
    Set,
    Get,
    /// Waits until all that was written has come to its durability level. Nothing is asked.
    FinalFlush,
    /// Questions about what was built, once all of it has come to its durability level.
    Ask,
}

impl Part {
    /// Those that can be points of a sweep, in the order of tables.
    pub const OF_POINTS: [Part; 3] = [Part::Set, Part::Get, Part::Run];

    /// As records and messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Load => "load",
            Part::Run => "run",
            Part::Set => "set",
            Part::Get => "get",
            Part::FinalFlush => "final_flush",
            Part::Ask => "ask",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, into: &mut fmt::Formatter<'_>) -> fmt::Result {
        into.write_str(self.name())
    }
}
