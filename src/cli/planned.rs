//! From what was typed to the plan of a run, in one step: what comes after asks the arguments no more.

use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Parser;

use super::args::{Cli, Command, How, RunArgs, Size};
use super::load::{load_of, points_of};
use super::points::{Points, Replay, Rtts};
use super::refusals::{self, Intent};
use super::{Usage, agents, complain, exec, find_job, replicas, target};
use crate::harness::plan::{Chosen, Plan};
use crate::harness::signals::Interrupt;
use crate::harness::{input, network, pin, plan};
use crate::jobs::lookup::LOOKUP;
use crate::jobs::ngrams::NGRAMS;
use crate::jobs::{self, JobKind};
use crate::model::effort::{BLOCKS_MAX, Blocks};
use crate::model::fans::{Encoding, FansSettings};
use crate::model::names::file_name;
use crate::model::network::Network;
use crate::model::trial::{
    Configuration, Data, Durability, JobSettings, LookupSettings, NgramSettings, Pinned, ReadAs, Seeds, Split, Verify,
    Via,
};
use crate::stats::rank;
use crate::stores::Place;

/// The arguments of `kvfair run` with these words, as if they were typed.
pub fn args_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<RunArgs> {
    let cli = Cli::try_parse_from(["kvfair", "run"].into_iter().chain(words));
    match cli.map_err(|error| anyhow!(Usage(error.to_string())))?.command {
        Some(Command::Run(run)) => Ok(*run),
        _ => Err(anyhow!("`run` is a command")),
    }
}

/// Everything that was typed, checked and made sense of.
pub fn plan_of(args: &RunArgs) -> Result<Plan> {
    if let Some(command) = &args.own.exec {
        return exec::plan_of(args, command);
    }
    let kind = find_job(args.job())?;
    let seed = args.how.size.seed.unwrap_or(kind.default_seed);
    let points = agents::one_each(args, kind, points_of(args, kind)?);
    if args.how.verify == Verify::Sample && kind.name == LOOKUP.name {
        let what = "--verify sample: the job lookup compares every answer, for which all counts must be known";
        return Err(anyhow!(Usage(format!("{what}\nhint: leave it out"))));
    }
    let mut job = job_of(args, kind, seed, &points)?;
    let wanted = Intent::Job(args, kind);
    let mut chosen = match args.targets.as_slice() {
        [] => refusals::leave_out(each_way(all_for(kind), args, kind, &points)?.concat(), &wanted)?,
        named => {
            let targets = each_way(target::parse_all(named)?, args, kind, &points)?.into_iter();
            targets.flat_map(|ways| refusals::possible_ways(ways, &wanted)).collect()
        }
    };
    if kind.name == LOOKUP.name {
        chosen.iter_mut().for_each(as_kept);
    }
    refusals::refuse(&chosen, &wanted)?;
    let agents = agents::plan_of(args, kind, &chosen, &points)?;
    job = replicas::with_one_writer(job, &chosen)?;
    // The baseline beside a sweep knows no batches, and holds nothing to be read.
    let alone = args.how.load.batch.is_some() || args.how.load.read_only || args.how.agents.launch.is_some();
    let swept = kind.requests.is_some() && points.len() > 1 && !alone;
    if swept && args.how.durability == Durability::None && args.how.keep.is_none() {
        let ceilings = target::ceilings(&chosen);
        chosen.extend(ceilings);
    }
    let (clients, sizes) = (points.iter().copied().max().unwrap_or(1), several_sizes(args, kind)?);
    let seeds = Seeds { order: seed, data: data_seeds_of(args, &job) };
    let orders = several_orders(&args.how, kind)?;
    let plan = Plan {
        kind: Some(kind),
        clients,
        verify: args.how.verify,
        seeds,
        sizes,
        orders,
        agents,
        ..started(args, chosen, job)?
    };
    has_one_list(args, &plan)?;
    has_orders_alone(&plan)?;
    Ok(plan)
}

/// Each round-trip time of several is compared by itself, by whole jobs of one size.
fn has_one_list(args: &RunArgs, plan: &Plan) -> Result<()> {
    if plan.rtts_us.len() < 2 {
        return Ok(());
    }
    let one = "one number of the other (--clients 50)";
    let (beside, other) = match () {
        () if !plan.sizes.is_empty() => (format!("--{}s", plan.kind.map_or("unit", |kind| kind.unit)), one),
        () if args.how.load.rate.is_some() => ("--rate".to_string(), "leave --rate out"),
        () if plan.is_paced() => ("--replay".to_string(), "leave --replay out"),
        () if plan.points(&plan.job, 1).len() > 1 => ("a sweep".to_string(), one),
        () => return Ok(()),
    };
    let hint = format!("hint: name one --rtt, or {other}");
    Err(anyhow!(Usage(format!("--rtt takes one time beside {beside}: each has a table of its own\n{hint}"))))
}

/// The orders of a run that has several, each compared by itself.
fn several_orders(how: &How, kind: &JobKind) -> Result<Vec<u32>> {
    let orders = &how.order;
    if orders.len() < 2 {
        return Ok(Vec::new());
    }
    let usage = |what: String| Err(anyhow!(Usage(what)));
    if let Some((_, twice)) = orders.iter().enumerate().find(|(place, order)| orders[..*place].contains(order)) {
        return usage(format!("--order: {twice} is named twice"));
    }
    if kind.name != NGRAMS.name {
        let name = NGRAMS.name;
        return usage(format!("--order takes one number for {}\nhint: kvfair run {name} has lists", kind.name));
    }
    if how.keep.is_some() {
        return usage(format!(
            "--keep leaves one data set in place: it takes one --order\nhint: --order {}",
            orders[0]
        ));
    }
    Ok(orders.clone())
}

/// Each order of several has rows of its own.
fn has_orders_alone(plan: &Plan) -> Result<()> {
    let beside = match () {
        () if plan.orders.is_empty() => return Ok(()),
        () if !plan.sizes.is_empty() => "--messages",
        () if plan.rtts_us.len() > 1 => "--rtt",
        () => return Ok(()),
    };
    let hint = "hint: name one --order, or one of the other";
    Err(anyhow!(Usage(format!("several --order and several {beside}: each has a table of its own\n{hint}"))))
}

/// The round-trip times that were typed. Where no target has a network there is nothing to delay.
fn rtts_of(how: &How, chosen: &[Chosen]) -> Result<Vec<u64>> {
    let Some(Rtts(rtts_us)) = &how.rtt else { return Ok(Vec::new()) };
    if let Some(what) = network::missing() {
        return Err(anyhow!(Usage(what.to_string())));
    }
    if !chosen.iter().any(Chosen::has_network) {
        let label = chosen.first().map_or("no target", |chosen| chosen.target.label.as_str());
        let what = format!("--rtt: {label} has no network: the store is in the client's own process");
        return Err(anyhow!(Usage(format!("{what}\nhint: name a server beside it, as in redis"))));
    }
    Ok(rtts_us.clone())
}

/// Without a target: all stores that are installed, and for a job that only reads the read-only baselines too.
fn all_for(kind: &JobKind) -> Vec<Chosen> {
    let beside = if kind.name == LOOKUP.name { target::only_read() } else { Vec::new() };
    target::all_here().into_iter().chain(beside).collect()
}

/// What every run has: `job` once on each of `chosen`, by one client.
pub fn started(args: &RunArgs, chosen: Vec<Chosen>, job: JobSettings) -> Result<Plan> {
    names_differ(&chosen)?;
    shipped_has_no_class(&args.how)?;
    if let Some(keep) = &args.how.keep {
        keeps_nothing_yet(keep, &chosen)?;
    }
    let rtts_us = rtts_of(&args.how, &chosen)?;
    Ok(Plan {
        network: rtts_us.iter().max().copied().map(Network::of),
        rtts_us,
        pinned: pinned(&args.how)?,
        kind: None,
        clients: 1,
        durability: args.how.durability,
        configuration: args.how.configuration,
        verify: Verify::Full,
        timeout: args.how.timeout,
        blocks: blocks_of(args, &chosen),
        chosen,
        seeds: Seeds { order: args.how.size.seed.unwrap_or_default(), data: Vec::new() },
        sizes: Vec::new(),
        orders: Vec::new(),
        aa_control: !args.how.no_aa,
        answers_only: args.how.answers_only,
        accepts_unchecked: args.how.accept_unchecked,
        accepts_noise: args.how.accept_noise,
        keep: args.how.keep.clone(),
        warm: false,
        piloted: Vec::new(),
        left_out: Vec::new(),
        levers: None,
        agents: Default::default(),
        end: None,
        needs_s: None,
        is_strict: args.how.strict,
        began: plan::utc_now(),
        command: args.how.again.clone().unwrap_or_else(super::typed),
        visits: None,
        job,
    })
}

/// Which processors servers and clients have, where each are to have their own.
pub fn pinned(how: &How) -> Result<Option<Pinned>> {
    how.pin.then(|| pin::halves().map_err(|what| anyhow!(Usage(what)))).transpose()
}

/// As its makers ship it a store has the durability level that it has.
fn shipped_has_no_class(how: &How) -> Result<()> {
    if how.configuration == Configuration::Shipped && how.durability != Durability::None {
        let what = "--config shipped leaves durability as each store's makers set it\nhint: leave --durability out";
        return Err(anyhow!(Usage(what.to_string())));
    }
    Ok(())
}

fn blocks_of(args: &RunArgs, chosen: &[Chosen]) -> Blocks {
    let ranked = chosen.iter().filter(|chosen| !chosen.target.baseline).count();
    match args.how.blocks {
        _ if args.how.answers_only => Blocks::exactly(1),
        Some(blocks) => Blocks::exactly(blocks),
        None => {
            let effort = args.how.effort.unwrap_or_default();
            let blocks = effort.blocks(rank::needed_blocks(ranked) as u32);
            match args.how.until_budget && args.how.budget.or(effort.budget()).is_some() {
                true => Blocks { most: BLOCKS_MAX, plus_minus: None, ..blocks },
                false => blocks,
            }
        }
    }
}

/// Where a difference is to be known so well, it is not to be one of chance data. A seed that was asked for is kept.
fn data_seeds_of(args: &RunArgs, job: &JobSettings) -> Vec<u64> {
    let is_made = matches!(job.data, Data::Recipe { .. });
    let is_open = is_made && args.how.size.seed.is_none() && !args.how.answers_only;
    args.how.effort.filter(|_| is_open).map_or_else(Vec::new, |effort| effort.data_seeds().to_vec())
}

fn job_of(args: &RunArgs, kind: &JobKind, seed: u64, points: &[u32]) -> Result<JobSettings> {
    // Of several, each is one after the other.
    let units = sizes_of(&args.how.size, kind)?.into_iter().max();
    let load = load_of(args, kind, points)?;
    let (data, format) = match &args.how.input {
        Some(path) => {
            input::check(path)?;
            (Data::File { path: path.clone() }, args.how.format.clone().unwrap_or_default())
        }
        None if kind.recipe.is_empty() => {
            let (name, forms) = (kind.name, kind.formats.join(", "));
            let what =
                format!("the job {name} replays what was recorded\nhint: --input FILE ({forms}; plain, .gz or .zst)");
            return Err(anyhow!(Usage(what)));
        }
        None => {
            let format = kind.formats.first().copied().unwrap_or_default();
            (Data::Recipe { name: kind.recipe.to_string(), seed }, format.to_string())
        }
    };
    let read_as = read_as_of(&args.how, kind)?;
    let replay_percent = replay_of(args, kind, &format)?;
    let (name, skip_bad, via, split) = (kind.name.to_string(), args.how.skip_bad, Via::default(), args.how.split);
    let (ngrams, lookup) = (ngrams_of(&args.how, kind)?, lookup_of(&args.how, kind)?);
    let fans = fans_of(&args.how, kind)?;
    Ok(JobSettings {
        name,
        data,
        format,
        read_as,
        units,
        skip_bad,
        via,
        split,
        load,
        replay_percent,
        ngrams,
        lookup,
        fans,
    })
}

/// Options that belong to few jobs are a mistake elsewhere, not a no-op.
fn has_options(kind: &JobKind, given: &[(bool, &str)]) -> Result<()> {
    let lacks = |option: &str| !kind.options.contains(&option);
    let Some((_, option)) = given.iter().find(|(given, option)| *given && lacks(option)) else { return Ok(()) };
    let has = jobs::ALL.iter().find(|job| job.options.contains(option)).map_or("", |job| job.name);
    let what = format!("{option} is no option of the job {}\nhint: kvfair run {has} has it", kind.name);
    Err(anyhow!(Usage(what)))
}

/// Of other jobs there are no n-grams to count.
fn ngrams_of(how: &How, kind: &JobKind) -> Result<NgramSettings> {
    has_options(kind, &[(!how.order.is_empty(), "--order"), (how.unit.is_some(), "--unit")])?;
    let usual = NgramSettings::default();
    Ok(NgramSettings {
        order: how.order.iter().copied().max().unwrap_or(usual.order),
        unit: how.unit.unwrap_or(usual.unit),
    })
}

/// What `fans` is asked once its records are built.
fn fans_of(how: &How, kind: &JobKind) -> Result<FansSettings> {
    has_options(kind, &[(how.queries.is_some(), "--queries")])?;
    if how.queries.is_some() && how.verify == Verify::Sample {
        let what = "--queries and --verify sample: every answer is compared, for which all records must be known";
        return Err(anyhow!(Usage(format!("{what}\nhint: leave one of them out"))));
    }
    Ok(FansSettings { queries: how.queries.unwrap_or(0), ..FansSettings::default() })
}

/// How a store is read that was filled before.
fn lookup_of(how: &How, kind: &JobKind) -> Result<LookupSettings> {
    has_options(kind, &[(how.cold, "--cold"), (how.readers.is_some(), "--readers")])?;
    let readers = how.readers.unwrap_or(1);
    if readers > 1 && how.clients.as_ref().is_some_and(|Points(clients)| *clients != [1]) {
        let what = "--readers and --clients: each reader is one client\nhint: leave --clients out";
        return Err(anyhow!(Usage(what.to_string())));
    }
    if how.cold && !cfg!(target_os = "linux") {
        let what = "--cold: only Linux drops a file from its page cache when it is asked to\nhint: leave it out";
        return Err(anyhow!(Usage(what.to_string())));
    }
    Ok(LookupSettings { cold: how.cold, readers })
}

/// A directory that `--keep` left is read where it is, and not written to.
fn as_kept(chosen: &mut Chosen) {
    if let Some(Place::Path(path)) = chosen.place.take_if(|place| matches!(place, Place::Path(_))) {
        chosen.kept = Some(path);
        chosen.target.managed = true;
    }
}

/// What was typed of how a file is read; the rest its first lines tell.
fn read_as_of(how: &How, kind: &JobKind) -> Result<Option<ReadAs>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    let given =
        [(how.format.is_some(), "--format"), (!how.columns.is_empty(), "--columns"), (how.field.is_some(), "--field")];
    if how.input.is_none() {
        let given = given.into_iter().find(|(given, _)| *given);
        return given.map_or(Ok(None), |(_, option)| usage(format!("{option} tells how --input is read: name a file")));
    }
    let form = how.format.clone().unwrap_or_default();
    if !form.is_empty() && !kind.formats.contains(&form.as_str()) {
        return usage(format!("--format {form}: {} reads {}", kind.name, kind.formats.join(", ")));
    }
    Ok(Some(ReadAs { form, columns: how.columns.clone(), field: how.field.clone() }))
}

/// Resolves what only the file itself tells, once a run: its form, and whether what was typed goes with it. Says how it
/// is read.
pub fn resolve_input(plan: &mut Plan, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    let Some(kind) = plan.kind else { return Ok(()) };
    if let Some(words) = input::resolve(kind, &mut plan.job, scratch, interrupt)? {
        complain(&words);
    }
    match plan.job.replay_percent {
        Some(_) => keeps_times(&plan.job.format),
        None => Ok(()),
    }
}

fn keeps_times(format: &str) -> Result<()> {
    match jobs::trace::has_no_times(format) {
        true => Err(anyhow!(Usage(format!("--replay: the form {format} tells no times to keep\nhint: leave it out")))),
        false => Ok(()),
    }
}

/// How fast a recording is replayed. Only one that tells its times can keep them.
fn replay_of(args: &RunArgs, kind: &JobKind, format: &str) -> Result<Option<u32>> {
    has_options(kind, &[(args.how.strict, "--strict")])?;
    let usage = |what: String| Err(anyhow!(Usage(what)));
    match args.how.replay {
        Some(_) if !kind.recipe.is_empty() => {
            usage(format!("--replay is no option of the job {}\nhint: kvfair run trace has it", kind.name))
        }
        Some(Replay(percent)) => {
            percent.map_or(Ok(()), |_| keeps_times(format))?;
            Ok(percent)
        }
        None => Ok(None),
    }
}

/// Of every target: it in each way in which it is to be asked, and in each encoding of its records.
fn each_way(chosen: Vec<Chosen>, args: &RunArgs, kind: &JobKind, points: &[u32]) -> Result<Vec<Vec<Chosen>>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    if let Some(via) = args.how.via.iter().find(|via| !kind.ways.contains(via)) {
        return usage(format!("the job {} has no way '{via}'\nhint: leave --via out", kind.name));
    }
    if args.how.split == Split::Profiles {
        has_options(kind, &[(true, "--split")])?;
        let loses = |via: &&Via| matches!(via, Via::Portable | Via::Batch);
        if let (Some(via), true) = (args.how.via.iter().find(loses), points.len() > 1 || points[0] > 1) {
            return usage(format!(
                "clients who share profiles would overwrite each other's records by way of '{via}'\nhint: --via cas or --via native"
            ));
        }
    }
    let encodings = &args.how.encoding;
    if *encodings != [Encoding::Json] {
        has_options(kind, &[(true, "--encoding")])?;
        if args.how.via.contains(&Via::Native) {
            let what = "--encoding: by way of 'native' a store counts in its own fields, and no record is written";
            return usage(format!("{what}\nhint: --via portable,batch,cas"));
        }
    }
    let named = |chosen: &Chosen, via: Via, encoding: Encoding| {
        let mut target = chosen.target.clone();
        if via != Via::Portable {
            target.label = format!("{} {via}", target.label);
        }
        if encoding != Encoding::Json {
            target.label = format!("{} {encoding}", target.label);
        }
        Chosen { target, via, encoding, ..chosen.clone() }
    };
    // What counts everything at once is asked in no way, and stands once.
    let ways = |chosen: &Chosen| if chosen.target.batch { &[Via::Portable] } else { args.how.via.as_slice() };
    let named = |chosen: &'_ Chosen| {
        let each = ways(chosen).iter().flat_map(|&via| encodings.iter().map(move |&encoding| (via, encoding)));
        each.map(|(via, encoding)| named(chosen, via, encoding)).collect::<Vec<_>>()
    };
    Ok(chosen.iter().map(named).collect())
}

/// The sizes of a run that has several, each compared by itself.
fn several_sizes(args: &RunArgs, kind: &JobKind) -> Result<Vec<u64>> {
    let sizes = sizes_of(&args.how.size, kind)?;
    if sizes.len() < 2 {
        return Ok(Vec::new());
    }
    let usage = |what: String| Err(anyhow!(Usage(what)));
    if let Some((_, twice)) = sizes.iter().enumerate().find(|(place, size)| sizes[..*place].contains(size)) {
        return usage(format!("--{}: {twice} is named twice", kind.scale));
    }
    if args.how.keep.is_some() {
        let hint = format!("hint: --{} {}", kind.scale, sizes[0]);
        return usage(format!("--keep leaves one data set in place: it takes one of --{}\n{hint}", kind.scale));
    }
    Ok(sizes)
}

/// The size that was typed, where a list makes no sense.
pub fn units_of(size: &Size, kind: &JobKind) -> Result<Option<u64>> {
    match sizes_of(size, kind)?.as_slice() {
        [] => Ok(None),
        [units] => Ok(Some(*units)),
        _ => Err(anyhow!(Usage(format!("--{} takes one number here: `kvfair run` has lists", kind.scale)))),
    }
}

/// The sizes that were typed. One that belongs to another job is a mistake, not a no-op.
fn sizes_of(size: &Size, kind: &JobKind) -> Result<Vec<u64>> {
    let requests = Vec::from_iter(size.requests);
    let sizes = [("profiles", &size.profiles), ("messages", &size.messages), ("requests", &requests)];
    for (name, units) in sizes {
        if !units.is_empty() && name != kind.scale {
            let what = format!("--{name} is no option of the job {}\nhint: it has --{}", kind.name, kind.scale);
            return Err(anyhow!(Usage(what)));
        }
    }
    Ok(sizes.into_iter().find(|(name, _)| *name == kind.scale).map_or_else(Vec::new, |(_, units)| units.clone()))
}

pub fn names_differ(chosen: &[Chosen]) -> Result<()> {
    for (index, one) in chosen.iter().enumerate() {
        let label = &one.target.label;
        if chosen[..index].iter().any(|other| other.target.label == *label) {
            let typed = super::as_typed(label);
            let mark = if typed.contains('?') { '&' } else { '?' };
            let what = format!("two targets are called '{label}'\nhint: name one of them: '{typed}{mark}name=other'");
            return Err(anyhow!(Usage(what)));
        }
    }
    Ok(())
}

fn keeps_nothing_yet(keep: &Path, chosen: &[Chosen]) -> Result<()> {
    let taken = chosen.iter().map(|chosen| keep.join(file_name(&chosen.target.label))).find(|place| place.exists());
    match taken {
        Some(place) => Err(anyhow!(
            "--keep: {} is there already, and data is never overwritten: name another directory",
            place.display()
        )),
        None => Ok(()),
    }
}
