//! What a run will do: targets, job, durability levels and the order of its trials, settled before anything is started.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::timing::End;
use crate::draw::{Rng, mix};
use crate::jobs::keyed::questions::points_of;
use crate::jobs::{JobKind, Part};
use crate::model::agents::AgentPlan;
use crate::model::effort::Blocks;
use crate::model::fans::Encoding;
use crate::model::levers::{LeverPart, LeverRun};
use crate::model::load::{At, Swept};
use crate::model::network::Network;
use crate::model::record::Outcome;
use crate::model::trial::{
    Configuration, Data, Durability, JobSettings, Pinned, Seeds, Target, Transport, Verify, Via,
};
use crate::stores::{Adapter, Launch, Login, Place, Role};

/// A target with all that is needed to reach it.
#[derive(Clone)]
pub struct Chosen {
    pub target: Target,
    pub adapter: &'static Adapter,
    /// Where it is, if it is somebody else's; we make a place for our own.
    pub place: Option<Place>,
    /// Where an earlier run left the data that is read, and our own store works.
    pub kept: Option<PathBuf>,
    pub login: Login,
    pub via: Via,
    pub encoding: Encoding,
    pub asking: TargetClients,
    /// The names of the levers by which it differs from the base of `kvfair levers`.
    pub changed: Vec<String>,
    /// Memory that a server that is not ours used before the first trial of this run, in bytes.
    pub first_used: Rc<Cell<Option<u64>>>,
}

impl Chosen {
    /// How one client opens it: where it is, or among our own files in `data`.
    pub fn launch(&self, data: &Path, patience: Duration) -> Launch {
        let ours = match self.adapter.role {
            Role::Store | Role::ReadOnly | Role::Batch => Place::Path(data.to_path_buf()),
            Role::Baseline | Role::Null | Role::Ceiling | Role::Faulty => Place::Memory,
        };
        let (settings, login) = (self.target.settings.clone(), self.login.clone());
        Launch { settings, login, ..Launch::at(self.place.clone().unwrap_or(ours), patience) }
    }

    /// It is a server, of ours or not.
    pub fn has_network(&self) -> bool {
        self.target.transport != Transport::InProcess
    }
}

/// What the clients of one target do otherwise than those of the others, where anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetClients {
    /// So many clients share the requests.
    pub clients: Option<u32>,
    /// So many requests each of them has under way.
    pub depth: Option<u32>,
}

/// What one trial took, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// The job and its final flush: what is measured.
    pub job_s: f64,
    /// With starting, checking and stopping.
    pub all_s: f64,
}

/// Everything that was asked for, with nothing left to decide.
#[derive(Clone)]
pub struct Plan {
    pub chosen: Vec<Chosen>,
    /// None where a program of the user's is run: `job` names it.
    pub kind: Option<&'static JobKind>,
    pub job: JobSettings,
    pub clients: u32,
    pub durability: Durability,
    pub configuration: Configuration,
    pub verify: Verify,
    /// Of one trial, from its opening to the end of the final flush.
    pub timeout: Duration,
    pub blocks: Blocks,
    pub seeds: Seeds,
    /// Each block has the job at all of these sizes, in units; none where it has one.
    pub sizes: Vec<u64>,
    /// Each block has the n-grams of all of these orders; none where it has those of one.
    pub orders: Vec<u32>,
    /// Each block has all of these round-trip times, in microseconds; none without a proxy before servers.
    pub rtts_us: Vec<u64>,
    /// Of a part of the run: the network that it has. Before there are parts, the slowest one.
    pub network: Option<Network>,
    /// Some targets are run twice in each block (A/A controls), where anything is claimed.
    pub aa_control: bool,
    pub answers_only: bool,
    /// A server that is not ours is written to even if it does not tell what memory it has.
    pub accepts_unchecked: bool,
    /// Points that the machine disturbed are shown all the same.
    pub accepts_noise: bool,
    /// Data stays in here, a directory for each target.
    pub keep: Option<PathBuf>,
    /// Each target was just run with a job about as large as this one: by a pilot.
    pub warm: bool,
    /// What a trial of each target took in the largest pilot, by label; empty without one.
    pub piloted: Vec<(String, Took)>,
    /// Servers and clients have processors of their own.
    pub pinned: Option<Pinned>,
    /// What does not run, for want of time or of the store, and why: a row without numbers each.
    pub left_out: Vec<(Chosen, Outcome)>,
    /// The levers of `kvfair levers`, and the part of its run that this is.
    pub levers: Option<(LeverRun, LeverPart)>,
    /// Who drives the clients instead of the trials' own processes.
    pub agents: AgentPlan,
    /// When the run ends: a trial that is under way then is cut off, and none begins.
    pub end: Option<End>,
    /// `--strict`
    pub is_strict: bool,
    /// The time that is enough for the blocks that were asked for, in seconds, where the run has less.
    pub needs_s: Option<u64>,
    /// When the run began, in UTC.
    pub began: String,
    /// What was typed behind `kvfair`, without what looks like a login.
    pub command: Vec<String>,
    /// Where it is written down what trials may leave in stores that are not ours.
    pub visits: Option<PathBuf>,
}

impl Plan {
    /// The job with the data of each seed: at least one.
    pub fn jobs(&self) -> Vec<JobSettings> {
        match &self.job.data {
            Data::Recipe { name, .. } if !self.seeds.data.is_empty() => {
                let of = |&seed| JobSettings { data: Data::Recipe { name: name.clone(), seed }, ..self.job.clone() };
                self.seeds.data.iter().map(of).collect()
            }
            _ => vec![self.job.clone()],
        }
    }

    /// So many clients work at a target.
    pub fn clients_of(&self, chosen: &Chosen) -> u32 {
        chosen.asking.clients.unwrap_or(self.clients)
    }

    /// The plan with another number of clients.
    pub fn with_clients(&self, clients: u32) -> Plan {
        let mut plan = Plan { clients, ..self.clone() };
        plan.job.load.iter_mut().for_each(|load| load.clients = vec![clients]);
        plan
    }

    /// The plan with the job at each of its sizes or orders, or with each of its round-trip times: at least one.
    pub fn parts(&self) -> Vec<Plan> {
        let of_size = |&size: &u64| {
            let mut plan = self.clone();
            plan.job.units = Some(size);
            plan
        };
        let of_order = |&order: &u32| {
            let mut plan = self.clone();
            plan.job.ngrams.order = order;
            plan
        };
        match () {
            () if !self.orders.is_empty() => self.orders.iter().map(of_order).collect(),
            () if !self.sizes.is_empty() => self.sizes.iter().map(of_size).collect(),
            () if self.rtts_us.len() > 1 => (0..).zip(&self.rtts_us).map(|place| self.at_rtt(place)).collect(),
            () => vec![self.clone()],
        }
    }

    /// What has no network is the same at each of them, and is in the first part alone.
    fn at_rtt(&self, (place, &rtt_us): (usize, &u64)) -> Plan {
        let mut plan = Plan { network: Some(Network::of(rtt_us)), ..self.clone() };
        plan.chosen.retain(|chosen| place == 0 || chosen.has_network());
        plan
    }

    /// The network between a target and its clients, where a proxy is to stand for one.
    pub fn network_of(&self, chosen: &Chosen) -> Option<Network> {
        self.network.filter(|_| chosen.has_network())
    }

    /// How a target's store keeps the durability level that is asked for, or why it cannot. As its makers ship it, none
    /// is asked for.
    pub fn keeps(&self, chosen: &Chosen) -> Result<&'static str, &'static str> {
        if self.kind.is_none() && chosen.adapter.server.is_none() {
            return Ok("as the program has it");
        }
        match self.configuration {
            // What its owner has set is not known, unless a durability level was asked for: then its settings are read
            // back.
            Configuration::Matched if chosen.target.is_guest() && self.durability == Durability::None => {
                Ok("as its owner has it")
            }
            Configuration::Matched => (chosen.adapter.keeps)(self.durability),
            Configuration::Shipped => Ok("as shipped"),
        }
    }

    /// The durability level must be kept by the store, and what is to stay must be there after a stop.
    pub fn may_run(&self, chosen: &Chosen) -> Result<(), String> {
        let (adapter, level) = (chosen.adapter, self.durability);
        self.keeps(chosen).map_err(|why| format!("durability {level}: {why}"))?;
        if self.keep.is_none() || (chosen.place.is_none() && (adapter.stays)(level)) {
            return Ok(());
        }
        if chosen.place.is_some() {
            return Err("--keep works for stores that kvfair starts, not for servers by URL".to_string());
        }
        let would = Durability::ALL.into_iter().find(|&other| (adapter.keeps)(other).is_ok() && (adapter.stays)(other));
        let way_out = would
            .map_or_else(|| "no durability level would".to_string(), |other| format!("--durability {other} would"));
        Err(format!(
            "keeps nothing after a stop at durability level {level}, so that --keep has nothing to leave: {way_out}"
        ))
    }

    /// Whether trials on a target write into a store that is not ours, and must take that back.
    pub fn is_guest(&self, chosen: &Chosen) -> bool {
        chosen.place.is_some() && !self.job.load.as_ref().is_some_and(|load| load.read_only)
    }

    /// The order of a block's trials, as places from 0 to `count`: random, and the same for the same seed and block.
    /// Each is drawn anew: to reverse every other one makes intervals wrong (docs/decisions.md).
    pub fn order(&self, block: u32, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        shuffle(&mut order, self.seeds.order.wrapping_add(u64::from(block).wrapping_mul(STEP)));
        order
    }

    /// A block before the first is run to warm the machine up, where anything is claimed afterwards and it is not warm.
    pub fn first_block(&self) -> u32 {
        if self.blocks.may_claim() && !self.warm { 0 } else { 1 }
    }

    /// Whether targets are run twice in each block: not where data is kept, of which there is one a target.
    pub fn has_controls(&self) -> bool {
        self.aa_control && self.blocks.may_claim() && self.keep.is_none()
    }

    /// Requests come at times that are given: then all targets take equally long.
    pub fn is_paced(&self) -> bool {
        self.job.replay_percent.is_some() || self.job.load.as_ref().is_some_and(|load| !load.rates.is_empty())
    }

    /// Which of the targets is the reference, if any is to be had: the first named one that is no baseline.
    pub fn reference(&self, may_be: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.chosen.len()).find(|&place| !self.chosen[place].target.baseline && may_be(place))
    }

    /// The points of a trial of this job in their order: random, and the same for all targets of a block.
    pub fn points(&self, job: &JobSettings, block: u32) -> Vec<At> {
        if job.load.is_none() {
            return vec![At::closed(self.clients, 0)];
        }
        let mut points = points_of(job);
        shuffle(&mut points, !self.seeds.order.wrapping_add(u64::from(block).wrapping_mul(STEP)));
        points
    }

    /// So long, or what the run has left where that is less.
    pub fn at_most(&self, time: Duration) -> Duration {
        self.end.map_or(time, |end| time.min(end.left()))
    }

    /// Nothing may begin any more.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end.is_over())
    }

    /// How long a part of a trial may take, where the others go on without it. What has but one part is cut off as a
    /// whole.
    pub fn limit(&self) -> Option<Duration> {
        // Who keeps a program ends it, and tells what it said last.
        let Some(kind) = self.kind else { return Some(self.at_most(self.timeout)) };
        self.job.load.as_ref()?;
        (parts_of(kind, &self.job) * points_of(&self.job).len() > 1).then_some(self.timeout)
    }

    /// Whether a sweep over numbers of clients is to find out if its generator is the limit, by asking with twice the
    /// threads. Half of the processors drive clients: with fewer than four that is one, and a second
    /// one would take the server's. Clients with processors of their own use all of these as it is.
    pub fn doubles(&self, processors: usize) -> bool {
        let load = self.job.load.as_ref().filter(|_| self.pinned.is_none() && self.agents.commands.is_empty());
        load.is_some_and(|load| load.swept() == Swept::Clients && load.clients.len() > 1) && processors >= DOUBLING_MIN
    }

    /// Units that a trial measures, of so many in a job's input.
    pub fn units_of_a_trial(&self, units: u64) -> u64 {
        let Some(kind) = self.kind.filter(|_| self.job.load.is_some()) else { return units };
        points_of(&self.job).iter().map(|at| at.requests).sum::<u64>() * parts_of(kind, &self.job) as u64
    }
}

/// How many parts of a job are measured.
fn parts_of(kind: &JobKind, job: &JobSettings) -> usize {
    (kind.open)(job).parts().iter().filter(|&&part| !matches!(part, Part::Load | Part::Ask)).count()
}

const DOUBLING_MIN: usize = 4;

/// Seeds of neighbouring blocks lie so far apart: splitmix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fisher and Yates' shuffle, from the end.
fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut random = Rng::new(seed);
    for last in (1..list.len()).rev() {
        let drawn = (u128::from(random.draw()) * (last as u128 + 1)) >> 64;
        list.swap(last, drawn as usize);
    }
}

/// Now, in UTC, as it stands in file names: `20261121T020000Z`.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// A seed for what is to be another each time; short, since it is printed to be typed.
pub fn any_seed() -> u64 {
    let now_ns = jiff::Timestamp::now().as_nanosecond();
    mix(now_ns as u64) % 1_000_000
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::model::load::Load;
    use crate::{jobs, stores};

    pub fn plan(load: Option<Load>) -> Plan {
        let kind = jobs::find("getset").expect("it is there");
        let job = JobSettings {
            name: kind.name.to_string(),
            data: Data::Recipe { name: kind.recipe.to_string(), seed: 1 },
            format: String::new(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Via::default(),
            split: Default::default(),
            load,
            replay_percent: None,
            ngrams: Default::default(),
            lookup: Default::default(),
            fans: Default::default(),
        };
        Plan {
            chosen: Vec::new(),
            kind: Some(kind),
            job,
            clients: 1,
            durability: Durability::None,
            configuration: Configuration::Matched,
            verify: Verify::Full,
            timeout: Duration::from_secs(9),
            blocks: Blocks::exactly(1),
            seeds: Seeds { order: 1, data: Vec::new() },
            sizes: Vec::new(),
            orders: Vec::new(),
            rtts_us: Vec::new(),
            network: None,
            aa_control: true,
            answers_only: false,
            accepts_unchecked: false,
            accepts_noise: false,
            keep: None,
            warm: false,
            piloted: Vec::new(),
            left_out: Vec::new(),
            levers: None,
            is_strict: false,
            needs_s: None,
            agents: AgentPlan::default(),
            end: None,
            pinned: None,
            began: String::new(),
            command: Vec::new(),
            visits: None,
        }
    }

    /// A run that may claim something of these targets: labels, and whether each is a baseline.
    pub fn plan_of(targets: &[(&str, bool)]) -> Plan {
        let chosen = |&(label, baseline): &(&str, bool)| Chosen {
            target: Target {
                label: label.to_string(),
                store: stores::ALL[0].name.to_string(),
                baseline,
                batch: false,
                transport: Transport::InProcess,
                managed: true,
                cache: None,
                settings: BTreeMap::new(),
            },
            adapter: stores::ALL[0],
            place: None,
            kept: None,
            login: Default::default(),
            first_used: Default::default(),
            via: Via::default(),
            encoding: Encoding::default(),
            asking: TargetClients::default(),
            changed: Vec::new(),
        };
        let blocks = Blocks { least: 6, most: 10, plus_minus: Some(0.1) };
        Plan { chosen: targets.iter().map(chosen).collect(), blocks, ..plan(None) }
    }

    #[test]
    fn only_a_sweep_over_clients_with_processors_to_spare_is_doubled() {
        let (one, many) = (vec![5], vec![1, 5]);
        let clients = |clients: &Vec<u32>| Load { clients: clients.clone(), ..Load::default() };
        assert!(plan(Some(clients(&many))).doubles(4) && plan(Some(clients(&many))).doubles(64));
        assert!(!plan(Some(clients(&many))).doubles(3) && !plan(Some(clients(&many))).doubles(2));
        assert!(!plan(Some(clients(&one))).doubles(64));
        assert!(!plan(Some(Load { rates: vec![9, 99], ..clients(&one) })).doubles(64));
        assert!(!plan(Some(Load { sizes: vec![9, 99], ..clients(&one) })).doubles(64));
        assert!(!plan(None).doubles(64));
        let own = Some(Pinned { server: vec![0], clients: vec![1] });
        assert!(!Plan { pinned: own, ..plan(Some(clients(&many))) }.doubles(64));
    }

    #[test]
    fn what_has_no_network_is_in_the_first_of_several_round_trip_times() {
        let mut plan = plan_of(&[("embedded", false), ("served", false)]);
        plan.chosen[1].target.transport = Transport::Tcp;
        let parts = Plan { rtts_us: vec![1_000, 0], ..plan.clone() }.parts();
        let labels =
            |part: &Plan| part.chosen.iter().map(|chosen| chosen.target.label.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(parts.iter().map(labels).collect::<Vec<_>>(), ["embedded served", "served"]);
        let rtt_us = |part: &Plan, place: usize| part.network_of(&part.chosen[place]).map(|network| network.rtt_us);
        assert_eq!([rtt_us(&parts[0], 0), rtt_us(&parts[0], 1), rtt_us(&parts[1], 0)], [None, Some(1_000), Some(0)]);
        assert_eq!(Plan { rtts_us: vec![1_000], ..plan }.parts().len(), 1);
    }

    #[test]
    fn a_block_warms_up_where_something_is_claimed_and_no_pilot_did() {
        let claims = Plan { blocks: Blocks::exactly(6), ..plan(None) };
        assert_eq!(claims.first_block(), 0);
        assert_eq!(Plan { warm: true, ..claims }.first_block(), 1);
        assert_eq!(plan(None).first_block(), 1);
    }

    #[test]
    fn a_part_has_a_time_out_of_its_own_where_there_are_others() {
        let limit = |clients: &[u32], only| {
            plan(Some(Load { clients: clients.to_vec(), only, ..Load::default() })).limit().is_some()
        };
        use crate::model::load::Only;
        assert!(limit(&[1, 5], None) && limit(&[1, 5], Some(Only::Set)) && limit(&[1], None));
        assert!(!limit(&[1], Some(Only::Set)));
        assert!(plan(None).limit().is_none());
    }
}
