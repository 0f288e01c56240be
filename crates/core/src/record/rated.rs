//! What only parts have that were cut off, and requests that come at a rate.

use serde::{Deserialize, Serialize};

use crate::hist::Packed;
use crate::load::Arrivals;

/// How far a part came until its time-out; all that was asked by then was answered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CutOff {
    pub after_s: f64,
    pub done_share: f64,
}

/// Requests that came when they were due, whether those before were answered or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Open {
    /// Requests a second of all clients together.
    pub rate: u64,
    pub arrivals: Arrivals,
    /// Over connections that may have several requests under way: their lag is the generator's alone.
    #[serde(default)]
    pub pipelined: bool,
    /// From when a request was due to its answer: what a user would have waited. `times_ns` counts from its sending, or
    /// from the answer before it on its connection where that came later.
    pub response_ns: Packed,
    /// From when it was due to its sending: the generator's own share, or the wait for a client that is free.
    pub lag_ns: Packed,
    /// When the last request was due, in seconds from the first client's start.
    pub due_s: f64,
    /// Requests that were due and not answered when the rate was given up; none where it was kept to the end.
    pub late: Option<u64>,
    /// When neighbouring requests were sent, from the first of them on: whether they came as they were to come.
    pub sends_ns: Vec<u64>,
}

/// What a rate may take longer than its requests came in: the answers' own time.
const KEPT_SHARE: f64 = 1.01;
const KEPT_S: f64 = 0.1;

impl Open {
    /// All requests were answered in the time that they came in, of a phase that took so long.
    pub fn is_kept(&self, took_s: f64) -> bool {
        self.late.is_none() && took_s <= self.due_s * KEPT_SHARE + KEPT_S
    }
}
