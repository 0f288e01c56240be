//! A primary is killed and a replica takes its place: what each client wrote, which of these writes the promoted
//! replica has, and how long no write was accepted. It must not know how servers are started or killed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::NotTried;
use super::ledger::{FoundValue, SLOTS, slot};
use crate::trial::Durability;

/// What one client wrote to one primary. It numbers its writes from 1 and has one under way at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientWrites {
    /// Whose keys these are.
    pub client: u32,
    /// When each write was acknowledged, in microseconds of the epoch; 0 for one that was not.
    pub acknowledged_us: Vec<u64>,
}

/// What was found at the keys of a client, by their numbers.
pub type FoundKeys = BTreeMap<u64, FoundValue>;

/// What is wrong with what was found of acknowledged writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    pub acknowledged: u64,
    /// Acknowledged writes that are gone, overwritten ones too.
    pub lost: u64,
    /// Those of them that are older than another write of the same client that is there.
    pub holes: u64,
    /// When the oldest of these was acknowledged, in microseconds of the epoch.
    pub oldest_us: Option<u64>,
    /// Keys that hold a value that was never written there.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<String>,
}

impl ClientWrites {
    /// The numbers of the keys that may hold anything.
    pub fn slots(&self) -> Vec<u64> {
        let asked = self.acknowledged_us.len() as u64;
        let all: BTreeSet<u64> = (1..=asked).map(slot).collect();
        assert!(all.len() as u64 <= SLOTS);
        all.into_iter().collect()
    }

    /// Compares what was found with what was acknowledged. A key holds its newest write that the store has, so an
    /// acknowledged write is lost where its key holds an older one, or none. A write that was not acknowledged may be
    /// there or not.
    pub fn judge(&self, found: &FoundKeys) -> Losses {
        let mut losses = Losses::default();
        let asked = self.acknowledged_us.len() as u64;
        for (at, found) in found {
            let is_wrong = match found {
                FoundValue::Missing => false,
                FoundValue::Write(sequence) => *sequence > asked,
                FoundValue::Corrupt => true,
            };
            if is_wrong {
                losses.wrong += 1;
                let what = || format!("client {}: key {at} holds a value that was never written there", self.client);
                losses.first_wrong.get_or_insert_with(what);
            }
        }
        let sequences = found.values().map(|found| if let FoundValue::Write(sequence) = found { *sequence } else { 0 });
        let newest_found = sequences.filter(|sequence| *sequence <= asked).max().unwrap_or(0);
        for (&at_us, sequence) in self.acknowledged_us.iter().zip(1_u64..).filter(|(at_us, _)| **at_us > 0) {
            losses.acknowledged += 1;
            let is_lost = match found.get(&slot(sequence)) {
                None | Some(FoundValue::Missing) => true,
                Some(FoundValue::Write(newest)) => *newest < sequence,
                // It is wrong already.
                Some(FoundValue::Corrupt) => false,
            };
            if is_lost {
                losses.lost += 1;
                losses.holes += u64::from(sequence < newest_found);
                losses.oldest_us = Some(losses.oldest_us.map_or(at_us, |oldest| oldest.min(at_us)));
            }
        }
        losses
    }
}

impl Losses {
    pub fn add(&mut self, other: Losses) {
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.holes += other.holes;
        self.wrong += other.wrong;
        self.oldest_us = [self.oldest_us, other.oldest_us].into_iter().flatten().min();
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
    }
}

/// One kill of a primary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FailoverKill {
    /// From the first acknowledged write to the kill.
    pub after_s: f64,
    /// Writes that the primary acknowledged.
    pub acknowledged: u64,
    /// Those of them that the promoted replica does not have.
    pub lost: u64,
    /// Those of the lost writes that are older than another write of the same client that was found.
    pub holes: u64,
    /// How long before the kill the oldest lost write was acknowledged; negative where that was noted after it.
    pub oldest_lost_s: Option<f64>,
    /// Keys that hold a value that was never written there.
    pub wrong: u64,
    /// From the kill until a client saw that its connection was broken.
    pub detected_s: f64,
    /// The replica that had most of the primary's log.
    pub promoted: String,
    /// From the kill until that replica said that it is a primary.
    pub promoted_s: f64,
    /// From the kill until a client's write was acknowledged again.
    pub accepted_s: f64,
    /// Writes that the promoted replica acknowledged, and those of them that it does not have.
    pub acknowledged_later: u64,
    pub lost_later: u64,
    /// The other replicas.
    pub followers: Vec<Follower>,
    /// The first thing that is wrong. A write that was lost is not.
    pub fault: Option<String>,
}

/// A replica that was told to follow the new primary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Follower {
    pub name: String,
    /// From the kill until it was in sync with the new primary.
    pub in_sync_s: Option<f64>,
    /// Why it was not.
    pub reason: Option<String>,
    /// Keys that are not as they are on the new primary, once all writes are done.
    pub differs: u64,
}

impl FailoverKill {
    pub fn all_followed(&self) -> bool {
        self.followers.iter().all(|follower| follower.in_sync_s.is_some())
    }
}

/// All kills of one target: a line of a results file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failovers {
    /// How often the primary was to be killed, at moments by this seed, while so many clients wrote.
    pub kills_asked: u32,
    pub seed: u64,
    pub clients: u32,
    pub level: Durability,
    pub target: String,
    /// As the store itself says.
    pub version: String,
    /// So many replicas must have a write before it is acknowledged; 0 where none must.
    pub wait: u32,
    pub kills: Vec<FailoverKill>,
    /// Why there are no more kills.
    pub untried: Option<NotTried>,
}

impl Failovers {
    pub fn acknowledged(&self) -> u64 {
        self.kills.iter().map(|kill| kill.acknowledged).sum()
    }

    pub fn lost(&self) -> u64 {
        self.kills.iter().map(|kill| kill.lost).sum()
    }

    pub fn wrong(&self) -> u64 {
        self.kills.iter().map(|kill| kill.wrong).sum()
    }

    /// From the kill until writes were accepted again: the median of all kills, and the worst.
    pub fn accepted_s(&self) -> Option<(f64, f64)> {
        let mut all: Vec<f64> = self.kills.iter().map(|kill| kill.accepted_s).collect();
        all.sort_by(f64::total_cmp);
        Some((*all.get(all.len() / 2)?, *all.last()?))
    }

    /// The share of acknowledged writes that were lost.
    pub fn lost_share(&self) -> Option<f64> {
        let acknowledged = self.acknowledged();
        (acknowledged > 0).then(|| self.lost() as f64 / acknowledged as f64)
    }

    /// What a store must not do, whatever it promises; and what it promises where acknowledged writes wait.
    pub fn fault(&self) -> Option<String> {
        let of_kills = self.kills.iter().find_map(|kill| kill.fault.clone());
        of_kills.or_else(|| {
            let broken = self.wait > 0 && self.lost() > 0;
            let have = if self.wait == 1 { "1 replica had".to_string() } else { format!("{} replicas had", self.wait) };
            broken.then(|| format!("{} writes were acknowledged after {have} them, and are gone", self.lost()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{found, value};
    use super::*;

    /// What a store that has these writes of client 3 answers for each key.
    fn kept(writes: &ClientWrites, has: impl Fn(u64) -> bool) -> FoundKeys {
        let mut stored: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for sequence in (1..=writes.acknowledged_us.len() as u64).filter(|sequence| has(*sequence)) {
            let mut bytes = Vec::new();
            value(3, sequence, &mut bytes);
            stored.insert(slot(sequence), bytes);
        }
        writes.slots().into_iter().map(|at| (at, found(3, at, stored.get(&at).map(Vec::as_slice)))).collect()
    }

    fn written(count: u64) -> ClientWrites {
        ClientWrites { client: 3, acknowledged_us: (1..=count).map(|number| 1_000 + number).collect() }
    }

    #[test]
    fn every_lost_write_is_counted_overwritten_ones_too() {
        // Beyond the ring, so that keys are written more than once.
        for (count, has) in [(100, 100), (100, 60), (20_000, 19_990), (20_000, 3), (20_000, 0)] {
            let writes = written(count);
            let losses = writes.judge(&kept(&writes, |sequence| sequence <= has));
            assert_eq!((losses.acknowledged, losses.lost, losses.wrong), (count, count - has, 0), "{has} of {count}");
            assert_eq!(losses.oldest_us, (has < count).then_some(1_000 + has + 1));
        }
    }

    #[test]
    fn a_hole_is_a_loss_and_an_unacknowledged_write_may_be_there_or_not() {
        let mut writes = written(100);
        let losses = writes.judge(&kept(&writes, |sequence| sequence != 50));
        assert_eq!((losses.lost, losses.holes), (1, 1));
        assert_eq!(writes.judge(&kept(&writes, |sequence| sequence <= 50)).holes, 0, "the end is missing");
        writes.acknowledged_us[99] = 0;
        for has in [99, 100] {
            let losses = writes.judge(&kept(&writes, |sequence| sequence <= has));
            assert_eq!((losses.acknowledged, losses.lost, losses.wrong), (99, 0, 0));
        }
    }

    #[test]
    fn a_value_that_nobody_wrote_is_wrong_and_not_lost() {
        let writes = written(100);
        let mut found = kept(&writes, |_| true);
        found.insert(slot(99), FoundValue::Corrupt);
        found.insert(slot(100), FoundValue::Write(100 + 4 * 8));
        let losses = writes.judge(&found);
        assert_eq!((losses.lost, losses.wrong), (0, 2));
        assert!(losses.first_wrong.is_some_and(|what| what.contains("client 3: key")));
    }

    #[test]
    fn a_loss_is_a_fault_only_where_writes_wait_for_replicas() {
        let kills = vec![FailoverKill { acknowledged: 100, lost: 7, ..FailoverKill::default() }];
        let mut seen = Failovers { kills, ..Failovers::default() };
        assert_eq!((seen.fault(), seen.lost_share()), (None, Some(0.07)));
        seen.wait = 1;
        assert_eq!(seen.fault().as_deref(), Some("7 writes were acknowledged after 1 replica had them, and are gone"));
    }
}
