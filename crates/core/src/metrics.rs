//! What is counted of a piece of work: by the load generator while it works, in a record of each phase.

use serde::{Deserialize, Serialize};

/// Sums over clients. The records' phases have these fields among their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metrics {
    pub units: u64,
    pub ops: u64,
    /// Commands that the store saw, where one op takes several.
    pub commands: u64,
    /// How often a client had to ask again because another one was faster.
    #[serde(default)]
    pub conflicts: u64,
    /// Gets that found nothing: in a job that sets what it did not find they are what is measured, elsewhere a fault.
    #[serde(default)]
    pub misses: u64,
    /// Connections that were lost and opened again, as `--reconnect` allowed.
    #[serde(default)]
    pub reconnects: u64,
    /// Keys and values handed over, and values that came back, whatever the protocol made of them.
    pub bytes_out: u64,
    pub bytes_in: u64,
    /// Seconds of all clients spent between a question and its answer (and in commits), summed over clients.
    // Estimated from the timed ops where not all are.
    pub waiting_s: f64,
}

impl Metrics {
    /// Adds what was counted elsewhere. It names every field: a new one that it does not add does not compile.
    #[inline]
    pub fn add(&mut self, other: &Metrics) {
        let &Metrics { units, ops, commands, conflicts, misses, reconnects, bytes_out, bytes_in, waiting_s } = other;
        self.units += units;
        self.ops += ops;
        self.commands += commands;
        self.conflicts += conflicts;
        self.misses += misses;
        self.reconnects += reconnects;
        self.bytes_out += bytes_out;
        self.bytes_in += bytes_in;
        self.waiting_s += waiting_s;
    }
}
