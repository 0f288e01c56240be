//! What a check of a store found: plain data from the process that asks to the lines that are printed.

use serde::{Deserialize, Serialize};

/// All that was learned of one target: a line of a results file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    /// As it was typed, without what is secret.
    pub target: String,
    /// What it says it is; empty where it was not reached.
    pub version: String,
    pub client_library: String,
    #[serde(flatten)]
    pub reached: Reached,
    /// Probes that were asked to their end, right or wrong.
    pub probes: u32,
    pub wrong: Vec<ProbeFinding>,
    /// What it takes and no more, in words: "values up to 1,048,531 bytes".
    pub limits: Vec<String>,
    /// What it has no means for, in words.
    pub not_offered: Vec<String>,
    pub took_s: f64,
}

/// Whether there was anybody to be asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Reached {
    #[default]
    Probed,
    /// It is not on this machine, or would not start; and the command that gets it.
    Missing { reason: String, get_it: String },
    /// It is there, and could not be asked.
    Failed { reason: String },
}

/// In which way an answer is not right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WrongKind {
    /// It is an answer, and another one was right: other data, an error, or too late.
    #[default]
    Answer,
    /// It is no answer of the protocol: it can be the server's fault, or that of something between it and kvfair.
    Garbled,
}

impl WrongKind {
    pub const ALL: [WrongKind; 2] = [WrongKind::Answer, WrongKind::Garbled];

    pub fn word(self) -> &'static str {
        match self {
            WrongKind::Answer => "WRONG",
            WrongKind::Garbled => "GARBLED",
        }
    }
}

/// What one probe heard that is not right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeFinding {
    pub kind: WrongKind,
    pub probe: String,
    pub sent: String,
    pub came: String,
    /// What others that have the same cause say of it, word for word; nothing where each is a cause of its own.
    pub cause: Option<String>,
    /// The other probes that met it.
    pub others: Vec<String>,
}

/// What was sent, and what came that is not right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeWrong {
    pub kind: WrongKind,
    pub sent: String,
    pub came: String,
    pub cause: Option<String>,
    /// The op that was to prepare the probe, where it is that one which failed.
    pub step: Option<String>,
}

/// How one probe ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeEnd {
    Right,
    Wrong(ProbeWrong),
    /// The store has no means for it, or the way to it none of splitting its replies.
    NotOffered(String),
}

impl Checked {
    /// Notes what a probe met. One cause is told once, with the probes that met it.
    pub fn note(&mut self, probe: &str, wrong: ProbeWrong) {
        let ProbeWrong { kind, sent, came, cause, step } = wrong;
        match self.wrong.iter_mut().find(|finding| cause.is_some() && finding.cause == cause) {
            Some(known) => known.others.push(probe.to_string()),
            None => {
                let probe = step.map_or_else(|| probe.to_string(), |step| format!("{step}, needed by {probe}"));
                self.wrong.push(ProbeFinding { kind, probe, sent, came, cause, others: Vec::new() });
            }
        }
    }

    /// Probes that met something wrong of that kind.
    pub fn probes_wrong(&self, kind: WrongKind) -> usize {
        self.wrong.iter().filter(|finding| finding.kind == kind).map(|finding| 1 + finding.others.len()).sum()
    }
}
