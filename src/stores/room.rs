//! How much memory a server has left, and how much a job takes: plain data, before anything is written to a server that
//! is not ours. It knows no store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What an entry takes beyond its key and value, at most: Redis has some 100 bytes of headers, pointers and hash
/// table.
const ENTRY_BYTES: u64 = 200;
/// Sizes are counted in so many steps an octave.
const STEPS: u64 = 16;
/// What a server holds for a connection beyond the values under way: buffers to read and to answer, of 16 KiB each in
/// Redis, and its client.
const CONNECTION_BYTES: u64 = 64 << 10;

/// What a server says of its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerMemory {
    pub limit: Limit,
    /// What counts against the limit.
    pub used_bytes: Option<u64>,
    /// What it does at its limit, by its own name.
    pub policy: Option<String>,
    /// Whether records are dropped at the limit; where that is not known, they may be. Else writes are refused.
    pub evicts: bool,
    /// Records of all its databases.
    pub records: Option<u64>,
    /// Records that it has dropped to make room so far.
    pub evicted: Option<u64>,
    /// What was taken is not given back when records are deleted.
    pub stays_taken: bool,
    /// What the probes of a check make it take at most, as tests/cli/room.rs measures it.
    pub check_bytes: u64,
}

/// What a server may use.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    Bytes(u64),
    /// It has none of its own: what its host has.
    Host,
    /// And why it does not say.
    Unknown(String),
}

/// What a job writes: how many entries have keys and values of so many bytes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    entries: BTreeMap<u64, u64>,
    /// What is on its way at once over all connections.
    under_way_bytes: u64,
}

impl Weight {
    /// Adds `count` entries of so many bytes each, rounded up to a sixteenth of an octave.
    pub fn add(&mut self, bytes: u64, count: u64) {
        let step = (bytes.next_power_of_two() / (2 * STEPS)).max(1);
        *self.entries.entry(bytes.next_multiple_of(step)).or_insert(0) += count;
    }

    /// As many times as many entries: of which only a sample was seen.
    pub fn scale(&mut self, times: u64) {
        self.entries.values_mut().for_each(|count| *count = count.saturating_mul(times));
    }

    /// So many connections, each with values of so many bytes under way.
    pub fn connect(&mut self, connections: u64, bytes: u64) {
        self.under_way_bytes += connections.saturating_mul(CONNECTION_BYTES.saturating_add(bytes));
    }

    /// Sizes in bytes, and how many entries have them.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().map(|(&bytes, &count)| (bytes, count))
    }

    pub fn under_way_bytes(&self) -> u64 {
        self.under_way_bytes
    }

    /// What a server needs to hold it all: twice key, value and what an entry takes beyond these, since values are
    /// replaced and tables are doubled.
    pub fn bytes(&self) -> u64 {
        let each = self.entries().map(|(bytes, count)| count.saturating_mul(bytes.saturating_add(ENTRY_BYTES)));
        each.fold(0_u64, u64::saturating_add).saturating_mul(2).saturating_add(self.under_way_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_a_sixteenth_at_most() {
        for bytes in [0, 1, 31, 32, 33, 100, 1_000, 2_048, 2_049, 1 << 20, (1 << 20) + 1] {
            let mut weight = Weight::default();
            weight.add(bytes, 3);
            let (rounded, count) = weight.entries().next().unwrap();
            assert!(rounded >= bytes && rounded <= bytes + bytes / 16 && count == 3, "{bytes}: {rounded}");
        }
    }

    #[test]
    fn a_job_needs_twice_its_entries_and_what_is_under_way() {
        let mut weight = Weight::default();
        weight.add(1_024, 10);
        weight.scale(2);
        assert_eq!(weight.bytes(), 2 * 20 * (1_024 + 200));
        weight.connect(3, 100);
        assert_eq!(weight.bytes(), 2 * 20 * (1_024 + 200) + 3 * (65_536 + 100));
        weight.add(u64::MAX / 2, u64::MAX);
        assert_eq!(weight.bytes(), u64::MAX, "no sum wraps");
    }
}
