//! Whether what was acknowledged is kept: the verdict of kills and counted syncs on one store at one durability level,
//! as it is kept in a file and shown. How it is seen is the lab's to know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trial::Durability;

pub mod calls;
pub mod failover;
pub mod ledger;
pub mod syncs;

/// A store that keeps `power` syncs so often for each write that it acknowledged while it had no other to share a sync
/// with.
const SYNCS_A_WRITE: f64 = 0.99;

/// One kill: what had been acknowledged, and what was found when the store was there again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// From the first acknowledged write to the kill.
    pub after_s: f64,
    /// Writes that were acknowledged since the kill before.
    pub acknowledged: u64,
    /// Records that held one of these, however often each was overwritten.
    #[serde(default)]
    pub records: u64,
    /// Records whose last acknowledged value is gone.
    pub lost: u64,
    /// Those of them that are older than another write of the same client that was found.
    pub holes: u64,
    /// Records that hold what nobody wrote there.
    pub corrupt: u64,
    /// From starting the store to its first right answer.
    pub recovery_s: Option<f64>,
    /// The first thing that was wrong, or why the store was not there again.
    pub wrong: Option<String>,
}

/// Syncs that were counted while one client wrote, one write at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Audit {
    /// `writes` were acknowledged while the calls in `by` were seen.
    Counted {
        writes: u64,
        by: BTreeMap<String, u64>,
    },
    Unknown(String),
}

impl Audit {
    /// Syncs a write, where they could be counted.
    pub fn syncs_per_write(&self) -> Option<f64> {
        match self {
            Audit::Counted { writes, by } if *writes > 0 => Some(by.values().sum::<u64>() as f64 / *writes as f64),
            _ => None,
        }
    }
}

/// Losses of power that were emulated: kills, after which the store's files became again what they were when they were
/// last synced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outages {
    Emulated(Vec<Kill>),
    /// They cannot be emulated here, or not for this store, and why.
    Unknown(String),
}

impl Default for Outages {
    fn default() -> Outages {
        Outages::Unknown("not emulated".to_string())
    }
}

impl Outages {
    fn seen(&self) -> &[Kill] {
        match self {
            Outages::Emulated(kills) => kills,
            Outages::Unknown(_) => &[],
        }
    }

    /// Losses of power after which something was not as it should be.
    pub fn bad(&self) -> usize {
        self.seen().iter().filter(|kill| kill.wrong.is_some()).count()
    }

    /// "7 of 20".
    pub fn bad_of_all(&self) -> String {
        format!("{} of {}", self.bad(), self.seen().len())
    }

    /// Whether there were any, and all was there after each.
    pub fn are_survived(&self) -> bool {
        !self.seen().is_empty() && self.bad() == 0
    }

    /// The median share of the records written since the loss before that was gone; none where nothing was emulated.
    pub fn lost_share(&self) -> Option<f64> {
        let share = |kill: &Kill| (kill.lost as f64 / kill.records.max(1) as f64).min(1.0);
        let mut shares: Vec<f64> = self.seen().iter().map(share).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }
}

/// The disk under the data directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskFacts {
    /// "ext4 on /dev/vda".
    pub filesystem: String,
    /// What a page appended and synced takes.
    pub sync_ns_p50: u64,
    pub sync_ns_p99: u64,
    /// Why nothing here outlives a loss of power, if that is so.
    pub untestable: Option<String>,
}

/// A sync that is faster than this never reached a disk without a battery of its own: flash takes longer to program a
/// page.
const TOO_FAST_NS: u64 = 20_000;

impl DiskFacts {
    /// A sync that is too fast to be believed.
    pub fn is_too_fast(&self) -> bool {
        self.untestable.is_none() && self.sync_ns_p50 < TOO_FAST_NS
    }
}

/// One store that was tried at one durability level: a line of the file of verified durability levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tried {
    pub store: String,
    /// As the store itself says.
    pub version: String,
    pub settings: BTreeMap<String, String>,
    pub level: Durability,
    /// When, in UTC.
    pub tried: String,
    /// kvfair's own version.
    pub kvfair: String,
    pub ground: DiskFacts,
    /// Libraries that were loaded into every program, each with the digest of its file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    pub kills: Vec<Kill>,
    pub audit: Audit,
    #[serde(default)]
    pub outages: Outages,
}

/// A claim that was tried, or why it was not: a line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CrashTry {
    /// How often each store was to be killed, at moments by this seed, on this disk.
    pub kills: u32,
    pub seed: u64,
    pub ground: DiskFacts,
    pub target: String,
    pub level: Durability,
    pub tried: Option<Tried>,
    pub untried: Option<NotTried>,
}

/// Why there is nothing to say of a target, or no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotTried {
    pub reason: String,
    /// It is not on this machine, or would not start.
    pub is_missing: bool,
}

/// "Tested" is said from so many tries on, as many as `kvfair crash` makes by itself. Where none of them lost anything,
/// at most 14 % would, at 95 %; after one kill it is 95 %.
pub const TESTED_LEAST: usize = 20;

/// What a claim that holds rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimBasis {
    /// So many kills, of which none lost anything.
    Kills(usize),
    /// So many emulated losses of power, of which none lost anything: [`TESTED_LEAST`] or more.
    Emulations(usize),
    /// Enough syncs, where too few losses of power were emulated.
    Syncs,
}

/// What is to be thought of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimStanding {
    /// Nothing was lost by kills, and at `power` each write was synced and nothing was lost by emulated losses of
    /// power.
    Holds(ClaimBasis),
    /// What it keeps is less: this durability level.
    Demoted(Durability),
    /// It cannot be said here, and why.
    Unknown(String),
}

impl Tried {
    /// Whether there is anything that a verdict can rest on: kills, each after acknowledged writes, at a durability
    /// level that promises anything. The same holds of each emulated loss of power.
    pub fn has_evidence(&self) -> bool {
        let mut all = self.kills.iter().chain(self.outages.seen());
        self.level != Durability::None && !self.kills.is_empty() && all.all(|kill| kill.acknowledged > 0)
    }

    /// Kills after which something was not as it should be.
    pub fn bad_kills(&self) -> usize {
        self.kills.iter().filter(|kill| kill.wrong.is_some()).count()
    }

    /// What follows from all that was seen. An emulated loss of power may only take away: it knows nothing of the
    /// device's own cache.
    pub fn standing(&self) -> ClaimStanding {
        if self.bad_kills() > 0 {
            return ClaimStanding::Demoted(Durability::None);
        }
        if self.level == Durability::Crash {
            return ClaimStanding::Holds(ClaimBasis::Kills(self.kills.len()));
        }
        match (&self.ground.untestable, &self.audit) {
            (Some(why), _) => ClaimStanding::Unknown(why.clone()),
            (None, _) if self.outages.bad() > 0 => ClaimStanding::Demoted(Durability::Crash),
            (None, Audit::Unknown(why)) => ClaimStanding::Unknown(why.clone()),
            (None, audit) => match audit.syncs_per_write() {
                Some(syncs) if syncs >= SYNCS_A_WRITE => ClaimStanding::Holds(self.evidence_of_power()),
                Some(_) => ClaimStanding::Demoted(Durability::Crash),
                None => ClaimStanding::Unknown("no write was acknowledged while syncs were counted".to_string()),
            },
        }
    }

    fn evidence_of_power(&self) -> ClaimBasis {
        match self.outages.seen().len() {
            emulated if emulated >= TESTED_LEAST => ClaimBasis::Emulations(emulated),
            _ => ClaimBasis::Syncs,
        }
    }

    /// Whether this one's losses, once seen, outweigh that a later try had more luck: a kill falls where it falls.
    /// Another kvfair may set the store up otherwise.
    pub fn stands_against(&self, later: &Tried) -> bool {
        let lost = |tried: &Tried| (tried.bad_kills() > 0, tried.outages.bad() > 0);
        self.kvfair == later.kvfair && lost(self) > lost(later)
    }

    /// Whether it is about the same: a later one of these takes the place of an earlier one.
    pub fn is_of_the_same(&self, other: &Tried) -> bool {
        let of =
            |tried: &Tried| (tried.store.clone(), tried.version.clone(), tried.level, tried.ground.filesystem.clone());
        of(self) == of(other) && self.settings == other.settings && self.preloaded == other.preloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(level: Durability, wrong: Option<&str>, audit: Audit, untestable: Option<&str>) -> Tried {
        Tried {
            store: "some".to_string(),
            version: "1".to_string(),
            settings: BTreeMap::new(),
            level,
            tried: String::new(),
            kvfair: String::new(),
            ground: DiskFacts { untestable: untestable.map(str::to_string), ..DiskFacts::default() },
            preloaded: Vec::new(),
            kills: vec![Kill::default(), Kill { wrong: wrong.map(str::to_string), ..Kill::default() }],
            audit,
            outages: Outages::default(),
        }
    }

    fn counted(writes: u64, syncs: u64) -> Audit {
        Audit::Counted { writes, by: [("fsync".to_string(), syncs)].into() }
    }

    #[test]
    fn what_is_thought_of_a_claim() {
        let unknown = || Audit::Unknown("no strace".to_string());
        let standing = |level, wrong, audit, untestable| tried(level, wrong, audit, untestable).standing();
        let unsaid = |standing| matches!(standing, ClaimStanding::Unknown(_));
        let (crash, power) = (Durability::Crash, Durability::Power);
        assert_eq!(standing(crash, None, unknown(), None), ClaimStanding::Holds(ClaimBasis::Kills(2)));
        assert_eq!(standing(crash, Some("gone"), counted(999, 999), None), ClaimStanding::Demoted(Durability::None));
        assert_eq!(standing(power, None, counted(1000, 990), None), ClaimStanding::Holds(ClaimBasis::Syncs));
        assert_eq!(standing(power, None, counted(1000, 989), None), ClaimStanding::Demoted(crash));
        assert_eq!(standing(power, Some("gone"), counted(999, 999), None), ClaimStanding::Demoted(Durability::None));
        assert!(unsaid(standing(power, None, unknown(), None)));
        assert!(unsaid(standing(power, None, counted(999, 999), Some("tmpfs"))));
        assert!(unsaid(standing(power, None, counted(0, 0), None)), "no write, no verdict");
    }

    #[test]
    fn few_emulated_losses_of_power_are_no_test() {
        let emulated = |count| Tried {
            outages: Outages::Emulated(vec![Kill::default(); count]),
            ..tried(Durability::Power, None, counted(999, 999), None)
        };
        let few = emulated(TESTED_LEAST - 1).standing();
        assert_eq!(few, ClaimStanding::Holds(ClaimBasis::Syncs));
        let enough = emulated(TESTED_LEAST).standing();
        assert_eq!(enough, ClaimStanding::Holds(ClaimBasis::Emulations(TESTED_LEAST)));
    }

    /// What kvfair once kept of a store that had refused its first write on a full disk.
    #[test]
    fn a_kill_without_an_acknowledged_write_is_no_evidence() {
        let kill = |acknowledged| Kill { acknowledged, ..Kill::default() };
        let tried = |level, kills, outages| Tried { kills, outages, ..tried(level, None, counted(9, 9), None) };
        let some = || Outages::Emulated(vec![kill(10)]);
        assert!(tried(Durability::Crash, vec![kill(10), kill(11)], some()).has_evidence());
        assert!(tried(Durability::Power, vec![kill(10)], Outages::default()).has_evidence());
        assert!(!tried(Durability::Crash, vec![kill(10), kill(0)], some()).has_evidence());
        assert!(!tried(Durability::Power, vec![kill(10)], Outages::Emulated(vec![kill(0)])).has_evidence());
        assert!(!tried(Durability::Crash, Vec::new(), some()).has_evidence());
        assert!(!tried(Durability::None, vec![kill(10)], some()).has_evidence());
    }

    #[test]
    fn a_sync_in_no_time_is_not_believed() {
        let ground = |sync_ns_p50, untestable: Option<&str>| DiskFacts {
            sync_ns_p50,
            untestable: untestable.map(str::to_string),
            ..DiskFacts::default()
        };
        assert!(ground(19_999, None).is_too_fast());
        assert!(!ground(20_000, None).is_too_fast());
        assert!(!ground(0, Some("tmpfs")).is_too_fast(), "more than that is said of it");
    }
}
