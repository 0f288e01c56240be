//! The levers that a store and a job have: what may be changed at a target, one thing each, and what cannot be
//! combined.

use anyhow::{Result, anyhow};

use crate::cli::args::RunArgs;
use crate::cli::points::CLIENTS_MAX;
use crate::cli::refusals::{self, Intent};
use crate::cli::{Usage, load, target};
use crate::harness::pin::{self, PROCESSORS};
use crate::harness::plan::{Chosen, Plan};
use crate::jobs::JobKind;
use crate::model::levers::{TriedValue, UntriedLever};
use crate::model::load::Load;
use crate::model::trial::{Cache, Split, Transport, Via};
use crate::stats::levers::LeverSet;
use crate::stores::{Price, Role};

/// One thing that may be changed, with the values that are tried: one at least.
#[derive(Clone, Debug)]
pub struct Lever {
    pub name: String,
    pub values: Vec<LeverValue>,
    /// What a pilot took with each of them, where there are several.
    pub tried: Vec<TriedValue>,
}

/// A value of a lever.
#[derive(Clone, Debug)]
pub struct LeverValue {
    /// "unix", "via native", "protocol=binary".
    pub words: String,
    /// Its price in words, such as memory or code; empty where none is known.
    pub pays: &'static str,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Transport(Transport),
    Cache(Cache),
    Via(Via),
    Clients(u32),
    Depth(u32),
    Setting(&'static str, &'static str),
}

impl Lever {
    /// Whether `--levers` means this value by that name: it is the lever's, or the value's own.
    fn is_called(&self, value: &LeverValue, name: &str) -> bool {
        name == self.name || name == value.words
    }

    /// It is of the store or of the way to it, not of what the job asks.
    pub fn is_of_any_job(&self) -> bool {
        matches!(self.values[0].change, Change::Transport(_) | Change::Cache(_) | Change::Setting(..))
    }
}

impl LeverValue {
    fn apply(&self, chosen: &mut Chosen) {
        match &self.change {
            Change::Transport(transport) => chosen.target.transport = *transport,
            Change::Cache(cache) => chosen.target.cache = Some(*cache),
            Change::Via(via) => chosen.via = *via,
            Change::Clients(clients) => chosen.asking.clients = Some(*clients),
            Change::Depth(depth) => chosen.asking.depth = Some(*depth),
            Change::Setting(name, value) => {
                chosen.target.settings.insert(name.to_string(), value.to_string());
            }
        }
    }
}

/// What the levers are asked of: the base and the job that it does.
pub struct Ground<'a> {
    pub args: &'a RunArgs,
    /// None of a program of the user's.
    pub kind: Option<&'static JobKind>,
    pub plan: &'a Plan,
}

impl Ground<'_> {
    pub fn base(&self) -> &Chosen {
        &self.plan.chosen[0]
    }

    fn intent(&self) -> Intent<'_> {
        match (self.kind, self.plan.job.program()) {
            (Some(kind), _) => Intent::Job(self.args, kind),
            (None, Some((command, answer))) => Intent::Program { args: self.args, command, answer },
            (None, None) => unreachable!("what is run is a job or a program"),
        }
    }

    /// What is done, in words: "the job fans".
    pub fn what(&self) -> String {
        self.kind.map_or_else(|| "a program".to_string(), |kind| format!("the job {}", kind.name))
    }

    /// Why a target cannot do the job; its first line.
    pub fn refusal(&self, chosen: &Chosen) -> Option<String> {
        let refused = refusals::why(chosen, &self.intent());
        let refused = refused.or_else(|| self.plan.may_run(chosen).err())?;
        Some(refused.lines().next().unwrap_or_default().to_string())
    }

    /// The base with these levers, each with the first of its values.
    pub fn with(&self, levers: &[Lever], set: LeverSet) -> Chosen {
        let mut chosen = self.base().clone();
        for place in set.places() {
            levers[place].values[0].apply(&mut chosen);
            chosen.changed.push(levers[place].name.clone());
        }
        chosen
    }

    /// All levers that go together, the first ones first; and why each of the others does not.
    pub fn all(&self, levers: &[Lever]) -> (LeverSet, Vec<Option<String>>) {
        let mut all = LeverSet::BASE;
        let mut reasons = Vec::new();
        for place in 0..levers.len() {
            let reason = self.refusal(&self.with(levers, all.with(place)));
            if reason.is_none() {
                all = all.with(place);
            }
            reasons.push(reason);
        }
        (all, reasons)
    }
}

/// What the base is called with these levers: "redis with all but unix".
pub fn label(base: &str, levers: &[Lever], set: LeverSet, all: LeverSet) -> String {
    let words = |set: LeverSet| {
        set.places().map(|place| levers[place].values[0].words.as_str()).collect::<Vec<_>>().join(" and ")
    };
    let left = LeverSet::of(all.places().filter(|place| !set.has(*place)));
    match set {
        LeverSet::BASE => base.to_string(),
        set if set.count() == 1 => format!("{base} with {}", words(set)),
        set if set == all => format!("{base} with all"),
        set if left.count() == 1 && set.count() + 1 == all.count() => format!("{base} with all but {}", words(left)),
        set => format!("{base} with {}", words(set)),
    }
}

/// The levers that can be tried, and those that cannot, with the reason.
pub fn of(ground: &Ground<'_>) -> (Vec<Lever>, Vec<UntriedLever>) {
    let (mut levers, mut left_out) = (Vec::new(), Vec::new());
    for lever in of_the_client(ground).into_iter().chain(of_the_store(ground.base(), &mut left_out)) {
        let (mut possible, mut first) = (Vec::new(), None);
        for value in lever.values {
            let one = Lever { values: vec![value.clone()], ..lever_named(&lever.name) };
            match ground.refusal(&ground.with(&[one], LeverSet::of([0]))) {
                None => possible.push(value),
                Some(reason) => first = first.or(Some(reason)),
            }
        }
        match (possible.is_empty(), first) {
            (false, _) => levers.push(Lever { values: possible, ..lever_named(&lever.name) }),
            (true, Some(reason)) => left_out.push(UntriedLever { name: lever.name, reason }),
            (true, None) => {}
        }
    }
    (levers, left_out)
}

fn lever_named(name: &str) -> Lever {
    Lever { name: name.to_string(), values: Vec::new(), tried: Vec::new() }
}

/// How the client reaches and asks the store.
fn of_the_client(ground: &Ground<'_>) -> Vec<Lever> {
    let base = ground.base();
    let mut levers = Vec::new();
    let mut add = |name: &str, values: Vec<LeverValue>| {
        if !values.is_empty() {
            levers.push(Lever { values, ..lever_named(name) });
        }
    };
    if base.target.transport == Transport::Tcp && base.adapter.transports.contains(&Transport::Unix) {
        let change = Change::Transport(Transport::Unix);
        add("transport", vec![LeverValue { words: "unix".to_string(), pays: "client on the same machine", change }]);
    }
    let ways = ground.kind.map_or(&[][..], |kind| kind.ways).iter().filter(|via| **via != base.via);
    // Clients who share profiles would overwrite each other's records by the other ways.
    let shares = ground.args.how.split == Split::Profiles;
    let ways = ways.filter(|via| !shares || matches!(via, Via::Native | Via::Cas));
    add("via", ways.map(|via| way(*via)).collect());
    if base.target.cache.is_none() && base.adapter.role == Role::Store {
        let change = Change::Cache(target::usual_cache());
        let pays = "memory of the client, stale reads elsewhere";
        let name = cache_name(base);
        add(name, vec![LeverValue { words: name.to_string(), pays, change }]);
    }
    if let Some(load) = &ground.plan.job.load {
        add("clients", numbers_of_clients(ground.plan.clients).map(clients).collect());
        add("depth", depths(load, base.target.transport).map(depth).collect());
    }
    levers
}

/// A store may have a setting of this name: then the cache of the client has another name.
fn cache_name(base: &Chosen) -> &'static str {
    let has_its_own = base.adapter.settings.iter().any(|setting| setting.name == CACHE);
    if has_its_own { "client-cache" } else { CACHE }
}

const CACHE: &str = "cache";

/// A few and many: a store may need more of them to be busy, or be slowed down by so many.
const TIMES: u32 = 4;

fn numbers_of_clients(now: u32) -> impl Iterator<Item = u32> {
    let others = [now.saturating_mul(TIMES).min(CLIENTS_MAX), now / TIMES];
    others.into_iter().filter(move |clients| *clients > 0 && *clients != now)
}

fn clients(clients: u32) -> LeverValue {
    let pays = "latency where clients wait for each other";
    LeverValue { words: format!("clients={clients}"), pays, change: Change::Clients(clients) }
}

/// The second is what redis-benchmark's documentation pipelines by:
/// <https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/>
const DEPTHS: [u32; 2] = [4, 16];

/// Only what is reached by a connection can have several requests under way, and one batch is under way at a time.
fn depths(load: &Load, transport: Transport) -> impl Iterator<Item = u32> {
    let now = load.depth;
    let may = transport != Transport::InProcess && load.batches.iter().all(|batch| *batch == 1);
    let fits = load::BATCH_BYTES_MAX / load.longest_value().max(1);
    DEPTHS.into_iter().filter(move |depth| may && *depth != now && u64::from(*depth) <= fits)
}

fn depth(depth: u32) -> LeverValue {
    let pays = "code: it sends requests before earlier answers arrive";
    LeverValue { words: format!("depth={depth}"), pays, change: Change::Depth(depth) }
}

fn way(via: Via) -> LeverValue {
    let pays = match via {
        Via::Portable => "",
        Via::Batch => "code: many keys in one question",
        Via::Native => "code: ops of this store alone",
        Via::Cas => "code: a client retries when its check-and-set fails",
    };
    LeverValue { words: format!("via {via}"), pays, change: Change::Via(via) }
}

/// The settings of its adapter.
fn of_the_store(base: &Chosen, left_out: &mut Vec<UntriedLever>) -> Vec<Lever> {
    let mut levers = Vec::new();
    for setting in base.adapter.settings {
        let now = base.target.settings.get(setting.name).map_or(setting.default, String::as_str);
        let pays = match setting.price {
            Price::Nothing => "",
            Price::Pays(what) => what,
            Price::Durability => {
                let reason = "it changes what survives a crash: see the durability levels".to_string();
                left_out.push(UntriedLever { name: setting.name.to_string(), reason });
                continue;
            }
        };
        let others = setting.worth_trying().iter().filter(|value| **value != now);
        let value = |value: &&'static str| LeverValue {
            words: format!("{}={value}", setting.name),
            pays,
            change: Change::Setting(setting.name, value),
        };
        let values: Vec<LeverValue> = others.map(value).collect();
        if !values.is_empty() {
            levers.push(Lever { values, ..lever_named(setting.name) });
        }
    }
    levers.extend(base.adapter.server.map(|_| processors(base)));
    levers
}

/// Processors that a server gets.
fn processors(base: &Chosen) -> Lever {
    let [half, all] = pin::SHARES;
    let now = base.target.settings.get(PROCESSORS).map_or(all, String::as_str);
    let value = |share: &'static str| LeverValue {
        words: format!("{PROCESSORS}={share}"),
        pays: if share == half { "" } else { "processors of others" },
        change: Change::Setting(PROCESSORS, share),
    };
    let values = pin::SHARES.into_iter().filter(|share| *share != now).map(value).collect();
    Lever { values, ..lever_named(PROCESSORS) }
}

/// Those that were asked for by name, or by one of their values ("depth=16"), in the order in which they are known; all
/// where none was.
pub fn asked_for(
    ground: &Ground<'_>,
    (levers, mut left_out): (Vec<Lever>, Vec<UntriedLever>),
    names: &[String],
) -> Result<(Vec<Lever>, Vec<UntriedLever>)> {
    let (store, what) = (ground.base().adapter.name, ground.what());
    let usage = |what: String| Err(anyhow!(Usage(what)));
    let has = levers.iter().map(|lever| lever.name.as_str()).collect::<Vec<_>>().join(", ");
    if levers.is_empty() {
        let why = left_out.iter().map(|lever| format!("\n{}: {}", lever.name, lever.reason)).collect::<String>();
        return usage(format!("{store} has no lever for {what}{why}"));
    }
    for name in names {
        if levers.iter().any(|lever| lever.values.iter().any(|value| lever.is_called(value, name))) {
            continue;
        }
        return match left_out.iter().find(|lever| lever.name == *name) {
            Some(lever) => usage(format!("--levers {name}: {}\nhint: it has {has}", lever.reason)),
            None => usage(format!("--levers {name}: {store} has no such lever for {what}\nhint: it has {has}")),
        };
    }
    let is_asked =
        |lever: &Lever, value: &LeverValue| names.is_empty() || names.iter().any(|name| lever.is_called(value, name));
    let (asked, others): (Vec<Lever>, Vec<Lever>) = levers
        .into_iter()
        .map(|lever| {
            let values: Vec<LeverValue> =
                lever.values.iter().filter(|value| is_asked(&lever, value)).cloned().collect();
            Lever { values, ..lever }
        })
        .partition(|lever| !lever.values.is_empty());
    let reason = "not asked for".to_string();
    left_out.extend(others.into_iter().map(|lever| UntriedLever { name: lever.name, reason: reason.clone() }));
    Ok((asked, left_out))
}
