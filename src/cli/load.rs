//! What a job of requests is asked: from options to settings, and what cannot be.

use std::time::Duration;

use anyhow::{Result, anyhow};

use super::Usage;
use super::args::{RequestArgs, RunArgs};
use super::points::{self, CLIENTS_MAX, Points, Rates, SizeList, ValueLengths};
use crate::jobs::keyed::lengths::Lengths;
use crate::jobs::keyed::questions::WEIGHTED_MAX;
use crate::jobs::{self, JobKind, Requests as Defaults, Writing};
use crate::model::load::{COMPRESSIBLE_PERCENT, Keys, Load, Only};
use crate::model::units::thousands;

/// Clients of a job whose clients each read the whole input, on a thread of their own.
const THREADS_MAX: u32 = 1000;
/// What one client may have under way, in bytes.
pub const BATCH_BYTES_MAX: u64 = 64 << 20;
/// Keys that are drawn of those that a store holds, at most.
const EXISTING_MAX: u64 = 100_000;
/// Clients where the job would sweep over their number, and something else is swept over.
const ALIKE_CLIENTS: u32 = 50;
/// All records of the largest value that is swept over, where nobody said how many they are.
const SIZED_BYTES: u64 = 256 << 20;
/// When each request is due is drawn beforehand, in 8 bytes each.
const DUE_MAX: u64 = 100_000_000;

/// The numbers of clients: one, but for a job that sweeps.
pub fn points_of(args: &RunArgs, kind: &JobKind) -> Result<Vec<u32>> {
    let typed = match (&args.how.clients, &kind.requests) {
        (Some(Points(points)), _) => points.clone(),
        (None, Some(defaults)) => points::parse(defaults.clients).map_err(|error| anyhow!(error))?.0,
        (None, None) => vec![1],
    };
    let usage = |what: String| Err(anyhow!(Usage(what)));
    let swept = kind.requests.is_some();
    let most = if swept { CLIENTS_MAX } else { THREADS_MAX };
    if let Some(clients) = typed.iter().find(|&&clients| clients > most) {
        return usage(format!("--clients {clients}: the job {} takes at most {most}", kind.name));
    }
    if !swept && typed.len() > 1 {
        return usage(format!(
            "--clients: the job {} takes one number\nhint: kvfair run getset sweeps over many",
            kind.name
        ));
    }
    let many = |sizes: &Option<SizeList>| sizes.as_ref().is_some_and(|SizeList(sizes)| sizes.len() > 1);
    let swept = [
        (args.how.load.rate.is_some(), "--rate"),
        (
            matches!(&args.how.load.values, Some(ValueLengths::Alike(SizeList(sizes))) if sizes.len() > 1),
            "a list of --values",
        ),
        (many(&args.how.load.batch), "a list of --batch"),
    ];
    let swept: Vec<&str> = swept.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    match (swept.as_slice(), typed.len() > 1, args.how.clients.is_some()) {
        ([one, other, ..], ..) => usage(format!("{one} and {other}: a run sweeps over one of them")),
        ([one], true, true) => usage(format!("{one} takes one number of --clients\nhint: --clients {ALIKE_CLIENTS}")),
        ([_], true, false) => Ok(vec![ALIKE_CLIENTS]),
        _ => Ok(typed),
    }
}

/// What a job of requests asks. Options that belong to it are a mistake elsewhere, not a no-op.
pub fn load_of(args: &RunArgs, kind: &JobKind, points: &[u32]) -> Result<Option<Load>> {
    let asked = &args.how.load;
    let usage = |what: String| Err(anyhow!(Usage(what)));
    let takes = kind.requests.as_ref().map_or(&[][..], |defaults| defaults.options);
    if let Some(option) = asked.given().find(|option| !takes.contains(option)) {
        let options = |job: &JobKind| job.requests.as_ref().map_or(&[][..], |defaults| defaults.options);
        // With a job that sets as well it would be refused next.
        let may_be = |job: &JobKind| option != "--read-only" || job.requests.as_ref().is_some_and(|own| own.reads > 0);
        let has = jobs::ALL.iter().find(|job| options(job).contains(&option) && may_be(job)).map_or("", |job| job.name);
        let name = kind.name;
        return usage(format!("{option} is no option of the job {name}\nhint: kvfair run {has} has it"));
    }
    let Some(defaults) = &kind.requests else { return Ok(None) };
    if args.how.input.is_some() {
        return usage(format!("the job {} reads no input: leave --input out", kind.name));
    }
    let load = Load { rated_s: rated_s(args), ..asked_of(asked, defaults, points) };
    let cannot = not_read(&load, asked, kind, defaults);
    let cannot = cannot
        .or_else(|| impossible(&load, asked, kind, defaults))
        .or_else(|| rates_impossible(&load, args, kind, defaults));
    cannot.map_or(Ok(Some(load)), usage)
}

/// Why this cannot be asked of keys that a store holds already.
fn not_read(load: &Load, asked: &RequestArgs, kind: &JobKind, defaults: &Defaults) -> Option<String> {
    if !load.read_only {
        return None;
    }
    let of_writing = ["--values", "--compressible", "--batch", "--reads", "--writes"];
    if let Some(option) = asked.given().find(|option| of_writing.contains(option)) {
        return Some(format!("--read-only gets keys that are there, one by one: leave {option} out"));
    }
    if defaults.reads == 0 && load.only != Some(Only::Get) {
        let name = kind.name;
        return Some(format!(
            "--read-only: the job {name} sets as well\nhint: kvfair run {name} --only get --read-only"
        ));
    }
    let most = thousands(EXISTING_MAX);
    (load.records > EXISTING_MAX).then(|| format!("--records: with --read-only at most {most} keys are drawn"))
}

/// Why this cannot be asked.
fn impossible(load: &Load, asked: &RequestArgs, kind: &JobKind, defaults: &Defaults) -> Option<String> {
    let Load { records, value_bytes, depth, keys, reads, writes, .. } = *load;
    let mixes = asked.reads.is_some() || asked.writes.is_some();
    let largest = load.sizes.iter().copied().max().unwrap_or(value_bytes);
    let batch = load.batches.iter().copied().max().unwrap_or(1);
    if u64::from(depth) * u64::from(batch) * u64::from(largest) > BATCH_BYTES_MAX {
        let (option, times) = if batch > 1 { ("--batch", batch) } else { ("--depth", depth) };
        return Some(format!("{option} {times} values of {largest} bytes are more than 64 MiB at once"));
    }
    if batch > 1 && depth > 1 {
        return Some("--batch and --depth exclude each other: one batch is under way at a time".to_string());
    }
    if matches!(keys, Keys::Zipf { .. } | Keys::Latest | Keys::YcsbZipfian) && records > WEIGHTED_MAX {
        return Some(format!("--keys {keys} has room for {WEIGHTED_MAX} --records at most"));
    }
    if defaults.writing == Writing::Insert && !load.sizes.is_empty() {
        return Some(format!("--values: the job {} inserts records and takes one size", kind.name));
    }
    if defaults.writing == Writing::Insert && load.clients.len() > 1 {
        return Some(format!("--clients: the job {} inserts records and takes one number of clients", kind.name));
    }
    if defaults.writing == Writing::Insert && keys == Keys::Sequential {
        return Some(format!("--keys sequential says nothing of what the job {} inserts: leave it out", kind.name));
    }
    (mixes && reads + writes == 0).then(|| "--reads 0 and --writes 0 leave nothing to ask".to_string())
}

/// Why these rates cannot be kept by anybody.
fn rates_impossible(load: &Load, args: &RunArgs, kind: &JobKind, defaults: &Defaults) -> Option<String> {
    let Some(rate) = &args.how.load.rate else {
        return args.how.load.arrivals.map(|_| "--arrivals says how requests come at a --rate: name one".to_string());
    };
    if args.how.load.batch.is_some() {
        return Some("--batch and --rate exclude each other".to_string());
    }
    if args.how.load.depth.is_some() {
        return Some("--depth and --rate exclude each other: at a rate a request never waits for another".to_string());
    }
    let count = match rate {
        Rates::PerSecond(rates) => rates.len(),
        Rates::Shares(shares) => shares.len(),
    };
    if defaults.writing == Writing::Insert && count > 1 {
        return Some(format!("--rate: the job {} inserts records and takes one rate", kind.name));
    }
    untimely(load, args.how.size.requests, args.how.timeout)
}

/// Why not all requests are due before the time-out, or cannot be drawn beforehand.
pub fn untimely(load: &Load, requests: Option<u64>, timeout: Duration) -> Option<String> {
    let timeout_s = timeout.as_secs_f64();
    for at in load.points(requests, 0) {
        let (requests, rate) = (at.requests, at.rate?);
        let takes_s = requests as f64 / rate as f64;
        if requests > DUE_MAX {
            return Some(format!(
                "{requests} requests are more than can be drawn beforehand: at most {DUE_MAX} --requests"
            ));
        }
        if takes_s >= timeout_s {
            return Some(format!(
                "{requests} requests at {rate}/s take {takes_s:.0} s, and --timeout cuts them off after {timeout_s} s\nhint: fewer --requests, or a longer --timeout"
            ));
        }
    }
    None
}

/// Where blocks were numbered, or a rate is searched for, it is kept for as long as one look needs.
fn rated_s(args: &RunArgs) -> Option<u32> {
    (args.how.load.rate.is_some() && args.how.blocks.is_none()).then(|| args.how.effort.unwrap_or_default().rated_s())
}

/// What a job of requests asks where nothing was typed but how many records and clients there are; nothing of another
/// job.
pub fn usual(kind: &JobKind, records: u64, clients: u32) -> Option<Load> {
    let asked = RequestArgs { records: Some(records), ..RequestArgs::default() };
    kind.requests.as_ref().map(|defaults| asked_of(&asked, defaults, &[clients]))
}

fn asked_of(asked: &RequestArgs, defaults: &Defaults, points: &[u32]) -> Load {
    let (sizes, spread) = match &asked.values {
        Some(ValueLengths::Alike(SizeList(sizes))) => (sizes.clone(), None),
        Some(ValueLengths::Spread(spread)) => (vec![Lengths::new(0, Some(*spread)).most() as u32], Some(*spread)),
        None => (vec![defaults.value_bytes], None),
    };
    let largest = sizes.iter().copied().max().unwrap_or(defaults.value_bytes);
    let swept = sizes.len() > 1;
    let (reads, writes) = (asked.reads.unwrap_or(defaults.reads), asked.writes.unwrap_or(defaults.writes));
    let fitting = (SIZED_BYTES / u64::from(largest)).clamp(1, defaults.records);
    let records = if asked.read_only { EXISTING_MAX } else { defaults.records };
    Load {
        records: asked.records.unwrap_or(if swept { fitting } else { records }),
        value_bytes: if asked.read_only { 0 } else { sizes[0] },
        depth: asked.depth.unwrap_or(1),
        only: asked.only,
        keys: asked.keys.unwrap_or(defaults.keys),
        reads,
        writes: if asked.read_only { 0 } else { writes },
        clients: points.to_vec(),
        rates: match &asked.rate {
            Some(Rates::PerSecond(rates)) => rates.clone(),
            // What these are shares of is to be seen.
            Some(Rates::Shares(_)) | None => Vec::new(),
        },
        arrivals: asked.arrivals.unwrap_or_default(),
        rated_s: None,
        warm_up_s: 0,
        spread,
        sizes: if swept { sizes } else { Vec::new() },
        batches: asked.batch.as_ref().map_or_else(Vec::new, |SizeList(batches)| batches.clone()),
        compressible_percent: asked.compressible.unwrap_or(COMPRESSIBLE_PERCENT),
        reconnect: asked.reconnect,
        read_only: asked.read_only,
        one_writer: false,
    }
}
