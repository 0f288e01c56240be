//! What a command found that runs no job: a line of its results file.

use serde::{Deserialize, Serialize};

use super::check::Checked;
use super::crash::CrashTry;
use super::crash::failover::Failovers;

/// What was found of one target, and by which command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// kvfair's own version.
    pub kvfair: String,
    /// What was typed behind `kvfair`, without logins.
    pub command: Vec<String>,
    /// When the command began, in UTC.
    pub began: String,
    #[serde(flatten)]
    pub found: Found,
}

/// By the name of the command, or of its option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Found {
    Check(Checked),
    Crash(Box<CrashTry>),
    Failover(Failovers),
}

impl Finding {
    /// The command that found it.
    pub fn name(&self) -> &'static str {
        match self.found {
            Found::Check(_) => "check",
            Found::Crash(_) => "crash",
            Found::Failover(_) => "crash --failover",
        }
    }

    pub fn target_mut(&mut self) -> &mut String {
        match &mut self.found {
            Found::Check(checked) => &mut checked.target,
            Found::Crash(claim) => &mut claim.target,
            Found::Failover(kills) => &mut kills.target,
        }
    }

    /// Whether one command found both.
    pub fn is_of_the_same(&self, other: &Finding) -> bool {
        let of = |one: &Finding| (one.name(), one.began.clone(), one.command.clone());
        of(self) == of(other)
    }
}
