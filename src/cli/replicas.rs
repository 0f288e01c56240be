//! Targets with replicas: what of a target cannot go with them, which jobs can read from them, and which of them can
//! be promoted.

use anyhow::{Result, anyhow, bail};

use super::args::RunArgs;
use super::refusals::Intent;
use super::{Usage, absent};
use crate::harness::network;
use crate::harness::plan::Chosen;
use crate::jobs::keyed::lengths::Lengths;
use crate::jobs::keyed::values::HEAD_BYTES;
use crate::jobs::{self, JobKind, Reading, Writing};
use crate::model::shell;
use crate::model::trial::{JobSettings, Target};
use crate::stores::replication::{self, LINK_DELAY, READ, REPLICAS, WAIT};
use crate::stores::{self, Adapter, Place};

/// What is wrong with the settings of a target, at `place` where it is not ours to start.
pub fn check(adapter: &Adapter, place: Option<&Place>, target: &Target) -> Result<()> {
    let has = |name: &str| target.settings.contains_key(name);
    let Some(server) = adapter.server.filter(|server| !server.replicates_over.is_empty()) else { return Ok(()) };
    let name = adapter.name;
    if !has(REPLICAS.name) {
        let alone = [READ, LINK_DELAY, WAIT].into_iter().find(|setting| has(setting.name));
        return alone.map_or(Ok(()), |setting| {
            let (own, replicas) = (setting.name, REPLICAS.name);
            bail!("?{own}= is for a store with replicas\nhint: {name}?{replicas}=2&{own}=...")
        });
    }
    if place.is_some() {
        bail!("?{}= is for a server that is started here\nhint: name `{name}`, without a place", REPLICAS.name);
    }
    if adapter.nodes(&target.settings).is_some() {
        bail!("the nodes of a cluster have no replicas\nhint: leave ?{}= out", REPLICAS.name);
    }
    if target.cache.is_some() {
        bail!("a cache in the client would hide what replicas answer\nhint: leave cached: or ?{}= out", REPLICAS.name);
    }
    if !server.replicates_over.contains(&target.transport) {
        let over: Vec<String> = server.replicates_over.iter().map(|transport| transport.to_string()).collect();
        let (over, count) = (over.join(" or "), replication::count(&target.settings));
        bail!("replicas of {name} follow it over {over}\nhint: {name}?{}={count}", REPLICAS.name);
    }
    let (count, wait) = (replication::count(&target.settings), replication::wait(&target.settings));
    if wait > count {
        // One fewer than there are: a failover needs them too.
        let (some, enough) = (count.max(2), count.max(2) - 1);
        let hint = format!("{name}?{}={some}&{}={enough}", REPLICAS.name, WAIT.name);
        let replicas = if count == 1 { "replica" } else { "replicas" };
        bail!("{count} {replicas} cannot have what {wait} must have\nhint: {hint}");
    }
    match network::missing() {
        Some(_) if has(LINK_DELAY.name) => bail!("?{}= works on Linux only\nhint: leave it out", LINK_DELAY.name),
        _ => Ok(()),
    }
}

fn has_replicas(chosen: &Chosen) -> bool {
    replication::count(&chosen.target.settings) > 0
}

/// Why this is not done with a store that has replicas; nothing where it is, or where there are none.
pub fn refused(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    if !has_replicas(chosen) {
        return None;
    }
    let (label, replicas) = (&chosen.target.label, REPLICAS.name);
    let alone = |what: &str| Some(format!("{label}: {what}\nhint: leave ?{replicas}= out"));
    match wanted {
        Intent::Job(_, kind) if !may_read_replicas(kind) => {
            let what = format!("with replicas each key has one writer, and the job {} has no such keys", kind.name);
            let jobs: Vec<&str> = jobs::ALL.iter().filter(|job| may_read_replicas(job)).map(|job| job.name).collect();
            Some(format!("{label}: {what}\nhint: jobs that can: {}", jobs.join(", ")))
        }
        Intent::Job(args, _) => not_with(chosen, args).and_then(|(option, what)| alone(&format!("{option}: {what}"))),
        Intent::Program { .. } => alone("a program is told the place of one server"),
        Intent::Growth => alone("growth fills one server"),
        Intent::Levers => alone("levers change one server"),
        Intent::Crash => {
            let hint = shell::command(["crash", "--failover", &with_one_to_promote(chosen)]);
            Some(format!("{label}: crash kills one server\nhint: {hint}"))
        }
        Intent::FindMax | Intent::Failover => None,
        Intent::Check => alone("check asks one server"),
    }
}

/// Stores of which a replica can be promoted.
pub fn having_replicas() -> impl Iterator<Item = &'static Adapter> {
    stores::ALL.iter().filter(|adapter| replicates(adapter)).copied()
}

/// Of a cluster by URL kvfair starts no servers.
fn replicates(adapter: &Adapter) -> bool {
    let is_started = adapter.nodes(&Default::default()).is_none();
    is_started && adapter.server.is_some_and(|own| !own.replicates_over.is_empty())
}

/// A target with replicas to promote, as a shell takes it: of this store where it can have some.
pub fn example(adapter: &Adapter) -> String {
    let name = if replicates(adapter) { Some(adapter.name) } else { having_replicas().next().map(|other| other.name) };
    shell::quoted(&format!("{}?{}=2", name.unwrap_or("STORE"), REPLICAS.name))
}

/// The store with as many replicas, one more than must have a write.
fn with_one_to_promote(chosen: &Chosen) -> String {
    let (wait, count) = (replication::wait(&chosen.target.settings), replication::count(&chosen.target.settings));
    let waits = if wait > 0 { format!("&{}={wait}", WAIT.name) } else { String::new() };
    format!("{}?{}={}{waits}", chosen.adapter.name, REPLICAS.name, count.max(wait + 1))
}

/// Why no replica of a target can be promoted.
pub fn none_to_promote(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let Intent::Failover = wanted else { return None };
    let (label, name, settings) = (&chosen.target.label, chosen.adapter.name, &chosen.target.settings);
    let (replicas, wait) = (replication::count(settings), replication::wait(settings));
    let names = || absent::here_first(having_replicas());
    match chosen.adapter.server {
        None => Some(format!(
            "{label} is opened in a process of kvfair: it has no replica to promote\nhint: stores with replicas: {}",
            names()
        )),
        Some(server) if server.replicates_over.is_empty() => {
            Some(format!("{label}: kvfair starts no replicas of {name}\nhint: stores with replicas: {}", names()))
        }
        Some(_) if replicas == 0 => {
            Some(format!("{label} has no replica to promote\nhint: '{name}?{}=2'", REPLICAS.name))
        }
        Some(_) if wait >= replicas => {
            let (own, enough) = (WAIT.name, wait + 1);
            Some(format!(
                "{label}: the promoted replica has {} others: too few for ?{own}={wait}, so it could acknowledge no \
                 write\nhint: ?{}={enough}",
                replicas - 1,
                REPLICAS.name
            ))
        }
        Some(_) => None,
    }
}

/// Every request is a get or a set of one key that was loaded.
fn may_read_replicas(kind: &JobKind) -> bool {
    kind.requests.as_ref().is_some_and(|own| own.reading == Reading::Get && own.writing == Writing::Set)
}

/// The option that does not go with replicas, and why.
fn not_with(chosen: &Chosen, args: &RunArgs) -> Option<(&'static str, &'static str)> {
    let load = &args.how.load;
    let depth = chosen.asking.depth.or(load.depth).is_some_and(|depth| depth > 1);
    let of_one = "a client of several servers asks for one key at a time";
    let given = [
        (depth, "--depth", of_one),
        (load.batch.is_some(), "--batch", of_one),
        (load.reconnect, "--reconnect", "a client of several servers keeps its connections"),
        (args.how.rtt.is_some(), "--rtt", "it delays the way to one server alone"),
    ];
    given.into_iter().find(|(is_given, ..)| *is_given).map(|(_, option, what)| (option, what))
}

/// The job as it is for all targets where one of them has replicas: each key has one writer.
pub fn with_one_writer(mut job: JobSettings, chosen: &[Chosen]) -> Result<JobSettings> {
    let (Some(one), Some(load)) = (chosen.iter().find(|chosen| has_replicas(chosen)), &mut job.load) else {
        return Ok(job);
    };
    let usage = |what: String| Err(anyhow!(Usage(format!("{}: {what}", one.target.label))));
    load.one_writer = true;
    let clients = load.clients.iter().copied().max().unwrap_or(1);
    if load.records < u64::from(clients) {
        let records = load.records;
        return usage(format!(
            "with replicas each key has one writer: {records} records are too few for {clients} clients\nhint: \
             --records {clients}"
        ));
    }
    let sizes = load.sizes.iter().copied().chain([load.value_bytes]);
    let shortest = sizes.map(|bytes| Lengths::new(bytes, load.spread).least()).min().unwrap_or(0);
    if shortest < HEAD_BYTES {
        return usage(format!(
            "with replicas each value carries its version: {shortest} bytes are too few\nhint: --values {HEAD_BYTES} \
             or more"
        ));
    }
    Ok(job)
}
