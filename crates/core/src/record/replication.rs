//! What a target's replicas were, and how old what was read from them was.

use serde::{Deserialize, Serialize};

use super::{Peak, Phase, Record, Usage};
use crate::hist::Packed;

/// One replica of a trial's server. What it used up in each phase stands in the phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplicaFacts {
    /// "replica 1".
    pub name: String,
    /// The command that started it.
    pub command: Vec<String>,
    /// As that of the server: docs/method.md.
    pub memory: Peak,
    /// Bytes allocated on disk for its data, after the final flush.
    pub bytes_on_disk: Option<u64>,
    /// How long after the final flush it had all that the primary had. Nothing where the trial did not come so far.
    pub caught_up_s: Option<f64>,
}

/// How old what a phase read from replicas was: docs/replicas.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Staleness {
    /// Reads that each server answered, the primary first.
    pub reads: Vec<u64>,
    /// Of these, the stale ones: a newer version was acknowledged before the read was sent.
    pub stale: Vec<u64>,
    /// Of stale reads: how many versions were acknowledged after the one read and before the read was sent.
    pub versions_behind: Packed,
    /// Of stale reads: nanoseconds from when the version after the one read was acknowledged to when the read was sent.
    pub behind_ns: Packed,
}

impl Usage {
    /// What these and other processes used together.
    pub fn and(&self, other: &Usage) -> Usage {
        let bytes = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Usage {
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
            bytes_written: bytes(self.bytes_written, other.bytes_written),
            bytes_read: bytes(self.bytes_read, other.bytes_read),
            run_delay_s: self.run_delay_s.zip(other.run_delay_s).map(|(one, other)| one + other),
        }
    }
}

impl Peak {
    /// Of these and other processes.
    pub fn and(&self, other: &Peak) -> Peak {
        Peak {
            anonymous_bytes: self.anonymous_bytes + other.anonymous_bytes,
            shared_bytes: self.shared_bytes + other.shared_bytes,
            file_bytes: self.file_bytes + other.file_bytes,
        }
    }
}

impl Phase {
    /// The server and all its replicas, where we started them.
    pub fn servers(&self) -> Option<Usage> {
        self.server.map(|server| self.replicas.iter().fold(server, |sum, replica| sum.and(replica)))
    }
}

impl Record {
    /// Replicas answered some of what was read.
    pub fn reads_replicas(&self) -> bool {
        let by_replicas = |seen: &Staleness| seen.reads.iter().skip(1).any(|reads| *reads > 0);
        self.phases.iter().filter_map(|phase| phase.staleness.as_ref()).any(by_replicas)
    }

    /// Memory of the store: of its servers, or of the trial's process where the store lives in it. Nothing of a server
    /// that kvfair did not start and could not look into.
    pub fn store_memory(&self) -> Option<Peak> {
        let first = self.memory.server.or_else(|| (!self.target.is_guest()).then_some(self.memory.client))?;
        Some(self.replicas.iter().fold(first, |sum, replica| sum.and(&replica.memory)))
    }

    /// What the store's files take on disk, those of replicas too; nothing where they cannot be seen.
    pub fn disk_bytes(&self) -> Option<u64> {
        let of_replicas: Option<u64> = self.replicas.iter().map(|replica| replica.bytes_on_disk).sum();
        Some(self.bytes_on_disk? + of_replicas?)
    }
}
