//! What was seen in one trial. Only observations: medians, ratios and ranks are computed from records, never stored in
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::agents::{Agent, AgentPhase};
use super::crash::ClaimStanding;
use super::hist::Packed;
use super::lazy_json::LazyJson;
use super::levers::{LeverRun, LeverTrial};
use super::metrics::Metrics;
use super::network::Network;
use super::noise::Noise;
use super::op::Wrong;
use super::part::Part;
use super::room::Headroom;
pub use super::stream::{Model, Stream, Traced};
use super::trial::{Configuration, Durability, JobSettings, Pinned, Seeds, Target, Verify};

mod machine;
mod rated;
mod replication;

pub use machine::Machine;
pub use rated::{CutOff, Open};
pub use replication::{ReplicaFacts, Staleness};

/// One line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// How we measure; see docs/method.md. Never compared across methods.
    pub method: u32,
    /// kvfair's own version.
    pub kvfair: String,
    /// It was built without optimisation: its clients and embedded stores are many times slower.
    #[serde(default)]
    pub debug_build: bool,
    pub run: Run,
    /// Which block of the run, from 1, and which place in the block's order, from 1. Block 0 warms
    /// the machine up and is counted nowhere.
    pub block: u32,
    pub position: u32,
    /// The second trial of an A/A control: it shows how far two trials of the same target differ, and is in no row.
    #[serde(default)]
    pub aa_control: bool,
    /// A trial of points that was run again because the machine disturbed it: it counts for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
    /// The job some times as large, after all blocks: it tells how times change with size, and is in no row. Such
    /// records come last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// Of `kvfair levers`: what the trial is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levers: Option<LeverTrial>,
    pub target: Target,
    pub durability: Durability,
    /// Whose settings were in force. Never ranked across configurations.
    #[serde(default)]
    pub configuration: Configuration,
    /// What was found out of that durability level since, on this machine; never stored.
    #[serde(skip)]
    pub tried: Option<ClaimStanding>,
    /// It was to be cold, and could not be: its data is in memory only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm: bool,
    /// It was to be cold, and the kernel kept this share of its files' pages in the page cache all the same. `None`
    /// where nothing was dropped, or where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_cached_share: Option<f64>,
    /// The run was still going on when this was read back; never stored.
    #[serde(skip)]
    pub is_under_way: bool,
    /// How the store keeps the durability level, in its own words: "appendfsync always".
    pub keeps: String,
    pub job: JobSettings,
    pub clients: u32,
    /// The network that a proxy stood for, as `--rtt` asked for it. Nothing where there was no proxy, as for a store in
    /// the client's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Who drove the clients, where it was not the trial's own process: `--agents`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// How many milliseconds apart they began each time that the trial was given up for that and tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents_apart_ms: Vec<f64>,
    pub stream: Stream,
    /// What the store said of itself; nothing where it was never reached.
    pub store: Option<StoreFacts>,
    /// What a server that is not ours said of its memory; nothing of a store that never wants for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Headroom>,
    pub outcome: Outcome,
    pub verdict: Verdict,
    /// Load, run and final flush, as far as the trial came.
    pub phases: Vec<Phase>,
    pub memory: Memory,
    /// What followed the server; nothing where it had no replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaFacts>,
    /// What was counted beside the clients: a cache's hits and misses.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// The store's own counters by its own names, before the first phase that counts and after the final flush: they
    /// tell why it was slow. One that is not named was 0. Empty where it keeps none, or where the trial did not come so
    /// far.
    #[serde(default)]
    pub store_stats: LazyJson<BTreeMap<String, [f64; 2]>>,
    /// Bytes allocated on disk for the store's data, after the final flush and, for an embedded store, closing; `None`
    /// where they cannot be seen.
    pub bytes_on_disk: Option<u64>,
    pub machine: Machine,
    /// What else went on meanwhile.
    #[serde(default)]
    pub noise: Noise,
}

/// The counter of requests whose time to live a store without such was not given.
pub const TTLS_LEFT_OUT: &str = "times to live left out";

/// A store is cold if no more than this share of its files' pages is in the page cache.
pub const COLD_SHARE: f64 = 0.01;

/// The run that a trial belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// When it began, in UTC: `20261121T020000Z`.
    pub began: String,
    /// What was typed behind `kvfair`, without logins; nothing in records from before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    pub seeds: Seeds,
    /// How many blocks were planned at the most.
    pub blocks: u32,
    /// The run was to end once all intervals against the reference were no wider than so much to either side.
    #[serde(default)]
    pub plus_minus: Option<f64>,
    /// Nothing was timed: only the answers count.
    pub answers_only: bool,
    /// Points that the machine disturbed are shown all the same: `--accept-noise`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_noise: bool,
    /// What the blocks that were asked for would take by the pilots, in seconds with some to spare; nothing where the
    /// run had time for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_s: Option<u64>,
    /// Servers and clients had processors of their own; nothing where all had all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Each block had the job at all of these sizes, in units; none where it had one. Each is compared by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u64>,
    /// Each block had the n-grams of all of these orders; none where it had those of one. Each is compared by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<u32>,
    /// The round-trip times of `--rtt`, in microseconds; none without a proxy. Where there are several each block had
    /// all of them, and each is compared by itself; stores without a network ran once a block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtts_us: Vec<u64>,
    /// What `kvfair levers` changed; nothing of other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levers: Option<LeverRun>,
    /// Of a step of `kvfair find-max`: the requests a second of its target where each client asks as soon as it is
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_per_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreFacts {
    pub version: String,
    /// What spoke to it.
    pub client_library: String,
    /// How it adds to a counter.
    pub increment: String,
    /// Settings in force, as the store itself told them.
    pub settings: BTreeMap<String, String>,
    /// The command that started it; nothing where we did not.
    pub command: Vec<String>,
    /// sha256 of the program that was started; nothing where we did not, or where it is kvfair itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_sha256: Option<String>,
}

/// Among a store's settings: of how many servers it is made, and how many slots each of them has.
pub const NODES: &str = "cluster nodes";
pub const SLOTS_OF_NODES: &str = "cluster slots";

/// Among a store's settings: the name of the process whose memory and CPU are told, of a server that is not ours.
pub const LOOKED_AT: &str = "process looked at";

/// The setting that says why a store's own counters could not be read: no trial fails for that.
pub const UNREAD: &str = "counters not read";

/// The setting that says what reads do to the times of last use of keys that are not ours; it ends with [`EVICTS`]
/// where they change which keys go first.
pub const LAST_USE: &str = "times of last use";
pub const EVICTS: &str = "evicts by them";

/// The counter of the keys that a trial drew where it writes none of its own.
pub const KEYS_DRAWN: &str = "keys drawn";

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Finished,
    /// Cut off at its time-out, with the share of its units done by then.
    TimedOut {
        after_s: f64,
        done_share: f64,
    },
    /// A limit of the store, a durability level that it does not keep, an op that it lacks.
    Refused {
        reason: String,
    },
    /// Something broke: the store, the connection, the disk, the input.
    Failed {
        reason: String,
    },
    /// The store is not on this machine, or would not start.
    Missing {
        reason: String,
        get_it: String,
    },
    /// kvfair did not run it: it is too slow for the time that the run has, or the time was over.
    LeftOut {
        reason: String,
        /// The store is not on this machine.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        absent: bool,
    },
}

impl Outcome {
    /// Of a store that is here and that kvfair did not run.
    pub fn left_out(reason: impl Into<String>) -> Outcome {
        Outcome::LeftOut { reason: reason.into(), absent: false }
    }
}

/// Whether the answers were right. Every number comes with a correctness verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    Right(Checked),
    Wrong {
        first: Wrong,
        wrong_keys: u64,
        checked: Checked,
    },
    /// What a program of the user's answered. Whether that is right is known only beside the answers of the other
    /// trials, so it is found out whenever records are shown: see [`super::answers`].
    Answered(Answered),
    /// `null` holds nothing to be checked but its count of ops.
    Baseline,
    /// The trial did not come so far.
    NotReached,
}

/// The answer of a program of the user's, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answered {
    /// Nothing where nobody wanted to know.
    pub sha256: Option<String>,
    pub bytes: u64,
    /// Its last line, readable and not all of it where it is long.
    pub ends: String,
}

/// What was compared with the expected state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    pub how: Verify,
    /// Keys read back and compared, of so many that the expected state holds.
    pub keys: u64,
    pub keys_expected: u64,
    /// Keys and values that were read back, in bytes: what the store held, as its users count.
    #[serde(default)]
    pub bytes: u64,
    /// Keys that nobody should have written: `None` where the store cannot count ("not checked").
    pub extra_keys: Option<i64>,
    /// The whole answer in short (digests, counts, what comes first), by name; empty where only a sample was checked.
    pub answer: BTreeMap<String, String>,
    pub took_s: f64,
}

/// One part of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Phase {
    #[serde(rename = "name")]
    pub part: Part,
    /// Which point it was of, counted from 1 as they were named; 0 where there are none.
    #[serde(default)]
    pub point: u32,
    /// Clients at work; 0 in records from before there were sweeps.
    #[serde(default)]
    pub clients: u32,
    /// Threads that the clients shared: as many as there are clients, or a few that each have many connections.
    #[serde(default)]
    pub threads: u32,
    pub took_s: f64,
    // Its fields must be plain numbers: serde keeps them in buffers that hold no raw JSON.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Op times are of every op where this is 1, else of one op in so many on average, chosen at random.
    pub timed_one_in: u32,
    /// What reading the clock costs, in nanoseconds; it is part of every op time.
    pub clock_ns: f64,
    pub times_ns: Packed,
    /// What only requests that come at a rate have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Where it was stopped at its time-out, and the other parts of its sweep went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// The phase before once more with twice the threads driving the clients, to see whether they reach more; it counts
    /// for nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubled: bool,
    /// Units finished in each whole second, and in what was left of the last one.
    pub units_by_second: Vec<u64>,
    pub client: Usage,
    /// The server's processes, where we started them.
    pub server: Option<Usage>,
    /// Each of several servers that are one store, all of which `server` counts together; nothing of one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Usage>,
    /// Each of the server's replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<Usage>,
    /// How old what was read from them was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// The proxy that stands for the network; it is no part of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Usage>,
    /// Each whole second of the server's processes, or of the trial's where the store lives in it; nothing is known of
    /// a server that kvfair did not start.
    #[serde(default)]
    pub store_by_second: Vec<Second>,
    /// What the processors of the whole machine took up meanwhile, by its own counters; nothing where it has none that
    /// may be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_joules: Option<f64>,
    /// What else went on in this phase alone, of jobs of requests: each phase is a point of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// What each agent saw of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPhase>,
}

impl Phase {
    /// Requests a second, of a job of requests.
    pub fn units_per_s(&self) -> f64 {
        self.metrics.units as f64 / self.took_s.max(1e-9)
    }

    /// CPU for each unit, in microseconds.
    pub fn cpu_us_per_unit(&self, cpu_s: f64) -> f64 {
        cpu_s * 1e6 / self.metrics.units.max(1) as f64
    }
}

/// What a store's processes used in one second, and the memory that they held at its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Second {
    pub cpu_s: f64,
    pub anonymous_bytes: u64,
}

/// What processes used up in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    pub user_s: f64,
    pub system_s: f64,
    /// Bytes that went towards a disk, as the kernel counts them (whole pages; see docs/method.md). `None` where it
    /// does not tell.
    pub bytes_written: Option<u64>,
    /// Bytes that came from a disk, as the kernel counts them: not from its page cache. `None` where it does not tell.
    #[serde(default)]
    pub bytes_read: Option<u64>,
    /// How long threads could have worked and waited for a processor, summed over threads: those of the trial, and of a
    /// server those that lived to the phase's end. `None` where the kernel does not tell.
    #[serde(default)]
    pub run_delay_s: Option<f64>,
}

impl Usage {
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Peak resident memory up to the end of the final flush, seen from outside the process: docs/method.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Memory {
    /// The trial's own process: the client, and the whole of an embedded store.
    pub client: Peak,
    /// The server's process tree; nothing of a server that cannot be looked into.
    pub server: Option<Peak>,
}

/// Peaks of each kind by themselves, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peak {
    /// Memory of its own.
    pub anonymous_bytes: u64,
    /// Shared memory segments, each page once for a process tree: PostgreSQL's shared buffers.
    #[serde(default)]
    pub shared_bytes: u64,
    /// Pages of files that it has mapped: the kernel may take them back.
    pub file_bytes: u64,
}

impl Peak {
    /// What the kernel cannot take back.
    pub fn held_bytes(&self) -> u64 {
        self.anonymous_bytes + self.shared_bytes
    }
}

impl Record {
    /// The first phase of that part, if the trial came so far.
    pub fn phase(&self, part: Part) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.part == part)
    }

    /// Wall time of the whole job, the final flush to its durability level included: the headline. Only where the trial
    /// finished.
    pub fn took_s(&self) -> Option<f64> {
        matches!(self.outcome, Outcome::Finished).then(|| self.measured().map(|phase| phase.took_s).sum())
    }

    /// What is compared between targets, in seconds; none at rates, whose time is the same for all.
    pub fn cost(&self) -> Option<f64> {
        let is_rated = self.phases.iter().any(|phase| phase.open.is_some());
        self.took_s().filter(|took_s| !is_rated && *took_s > 0.0)
    }

    /// The phases that count: the run and its final flush, not the loading, nor what is asked afterwards.
    pub fn measured(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| !matches!(phase.part, Part::Load | Part::Ask) && !phase.doubled)
    }

    /// What was asked once everything was built.
    pub fn asked(&self) -> Option<&Phase> {
        self.phase(Part::Ask)
    }

    /// What was counted in the phases that count.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.measured().for_each(|phase| metrics.add(&phase.metrics));
        metrics
    }

    /// What CPU is shown for: ops as `--via portable` asks them, whatever the way of this trial; requests; or one run.
    pub fn ops_of_job(&self) -> u64 {
        let ops = match (&self.job.load, self.job.program()) {
            (Some(_), _) => self.metrics().units,
            (None, Some(_)) => self.metrics().ops,
            (None, None) => self.stream.ops,
        };
        ops.max(1)
    }

    /// Time that reading the answers back took; it counts against nothing.
    pub fn checked_s(&self) -> f64 {
        match &self.verdict {
            Verdict::Right(checked) | Verdict::Wrong { checked, .. } => checked.took_s,
            Verdict::Answered(_) | Verdict::Baseline | Verdict::NotReached => 0.0,
        }
    }

    /// Whether the number may stand in a table: an answer that was not found wrong may.
    pub fn is_right(&self) -> bool {
        matches!(self.verdict, Verdict::Right(_) | Verdict::Answered(_) | Verdict::Baseline)
    }
}
