//! `kvfair run` and the first look: from what was typed to a plan, and from records to a printed table.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::args::{How, Look, Requests, Run, Size};
use super::exec::{self, Exec};
use super::load::{load_of, points_of};
use super::measure::{Ran, measure, measure_and_look_ahead, or_lost};
use super::points::Replay;
use super::refusals::{self, Wanted};
use super::shown::{shown, tell_absent};
use super::{Exit, Usage, complain, find_job, print, target};
use crate::jobs::{self, JobKind};
use crate::lab::plan::{Chosen, Plan};
use crate::lab::signals::Interrupt;
use crate::lab::{input, pin, plan};
use crate::stats::rank;
use crate::words::effort::{BLOCKS_MAX, Blocks};
use crate::words::names::file_name;
use crate::words::trial::{Configuration, Data, Durability, JobSettings, Pinned, ReadAs, Split, Via};

/// The first look.
const FIRST_BUDGET: Duration = Duration::from_secs(60);
/// And with the larger job at its end, and where the machine is slower than it was for the pilots.
const FIRST_AT_MOST: Duration = Duration::from_secs(84);

/// `kvfair` alone: `fans` on everything that is here.
pub fn first_look() -> Result<Exit> {
    let args = Run {
        job: Some("fans".to_string()),
        targets: Vec::new(),
        own: Exec::default(),
        how: How {
            input: None,
            format: None,
            columns: Vec::new(),
            field: None,
            skip_bad: 0,
            size: Size::default(),
            clients: None,
            replay: None,
            load: Requests::default(),
            via: vec![Via::Portable],
            split: Default::default(),
            durability: Default::default(),
            configuration: Default::default(),
            effort: None,
            blocks: None,
            budget: None,
            pin: false,
            no_aa: false,
            until_budget: false,
            timeout: Duration::from_secs(300),
            verify: Default::default(),
            output: None,
            keep: None,
            answers_only: false,
            accept_unchecked: false,
            accept_noise: false,
            list: false,
            look: Look::default(),
        },
    };
    complain("kvfair: a first look: fans on every store found here, in at most 90 s; `kvfair --help` tells more");
    // Nothing in particular was asked for: a machine that allows no ranks is no failure.
    let ran = measure_and_look_ahead(&args, FIRST_BUDGET, FIRST_AT_MOST)?;
    Ok(match print_all(ran, &args)? {
        Exit::Inconclusive => Exit::Ok,
        exit => exit,
    })
}

pub fn run(args: Run) -> Result<Exit> {
    if args.how.list {
        return list(&plan_of(&args)?);
    }
    print_all(measure(&args)?, &args)
}

fn print_all(ran: Ran, args: &Run) -> Result<Exit> {
    if !ran.records.is_empty() {
        if args.targets.is_empty() && args.own.exec.is_none() {
            tell_absent();
        }
        print(&shown(&ran.records, &args.how.look())?.0)?;
    }
    or_lost(ran.ended, ran.lost)
}

/// Everything that was typed, checked and made sense of.
pub fn plan_of(args: &Run) -> Result<Plan> {
    if let Some(command) = &args.own.exec {
        return exec::plan_of(args, command);
    }
    let kind = find_job(args.job())?;
    let seed = args.how.size.seed.unwrap_or(kind.default_seed);
    let points = points_of(args, kind)?;
    let job = job_of(args, kind, seed, &points)?;
    let wanted = Wanted::Job(args, kind);
    let mut chosen = match args.targets.as_slice() {
        [] => refusals::leave_out(each_way(target::all_here(), args, kind, &points)?, &wanted)?,
        named => each_way(target::parse_all(named)?, args, kind, &points)?,
    };
    refusals::refuse(&chosen, &wanted)?;
    // The control beside a sweep knows no batches, and holds nothing to be read.
    let alone = args.how.load.batch.is_some() || args.how.load.read_only;
    let swept = kind.requests.is_some() && points.len() > 1 && !alone;
    if swept && args.how.durability == Durability::None && args.how.keep.is_none() {
        let ceilings = target::ceilings(&chosen);
        chosen.extend(ceilings);
    }
    names_differ(&chosen)?;
    shipped_has_no_class(&args.how)?;
    if let Some(keep) = &args.how.keep {
        keeps_nothing_yet(keep, &chosen)?;
    }
    let pinned = pinned(&args.how)?;
    Ok(Plan {
        pinned,
        kind: Some(kind),
        clients: points.iter().copied().max().unwrap_or(1),
        durability: args.how.durability,
        configuration: args.how.configuration,
        verify: args.how.verify,
        timeout: args.how.timeout,
        blocks: blocks_of(args, &chosen),
        chosen,
        seed,
        sizes: several_sizes(args, kind)?,
        data_seeds: data_seeds_of(args, &job),
        twin: !args.how.no_aa,
        answers_only: args.how.answers_only,
        accepts_unchecked: args.how.accept_unchecked,
        accepts_noise: args.how.accept_noise,
        keep: args.how.keep.clone(),
        warm: false,
        piloted: Vec::new(),
        left_out: Vec::new(),
        end: None,
        began: plan::utc_now(),
        command: super::typed(),
        visits: None,
        job,
    })
}

/// Which processors servers and clients have, where each are to have their own.
pub fn pinned(how: &How) -> Result<Option<Pinned>> {
    how.pin.then(|| pin::halves().map_err(|what| anyhow!(Usage(what)))).transpose()
}

/// As its makers ship it a store has the class that it has.
pub fn shipped_has_no_class(how: &How) -> Result<()> {
    if how.configuration == Configuration::Shipped && how.durability != Durability::None {
        let what = "--config shipped leaves durability as each store's makers set it\nhint: leave --durability out";
        return Err(anyhow!(Usage(what.to_string())));
    }
    Ok(())
}

pub fn blocks_of(args: &Run, chosen: &[Chosen]) -> Blocks {
    let ranked = chosen.iter().filter(|chosen| !chosen.target.control).count();
    match args.how.blocks {
        _ if args.how.answers_only => Blocks::exactly(1),
        Some(blocks) => Blocks::exactly(blocks),
        None => {
            let effort = args.how.effort.unwrap_or_default();
            let blocks = effort.blocks(rank::needed_blocks(ranked) as u32);
            match args.how.until_budget && args.how.budget.or(effort.budget()).is_some() {
                true => Blocks { most: BLOCKS_MAX, half_width: None, ..blocks },
                false => blocks,
            }
        }
    }
}

/// Where a difference is to be known so well, it is not to be one of chance data. A seed that was asked for is kept.
fn data_seeds_of(args: &Run, job: &JobSettings) -> Vec<u64> {
    let is_made = matches!(job.data, Data::Recipe { .. });
    let is_open = is_made && args.how.size.seed.is_none() && !args.how.answers_only;
    args.how.effort.filter(|_| is_open).map_or_else(Vec::new, |effort| effort.data_seeds().to_vec())
}

fn job_of(args: &Run, kind: &JobKind, seed: u64, points: &[u32]) -> Result<JobSettings> {
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
    Ok(JobSettings { name, data, format, read_as, units, skip_bad, via, split, load, replay_percent })
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

/// Settles what only the file itself tells, once a run: its form, and whether what was typed goes with it. Says how it
/// is read.
pub fn settle_input(plan: &mut Plan, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    let Some(kind) = plan.kind else { return Ok(()) };
    if let Some(words) = input::settle(kind, &mut plan.job, scratch, interrupt)? {
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
fn replay_of(args: &Run, kind: &JobKind, format: &str) -> Result<Option<u32>> {
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

/// Every target once for each way in which it is to be asked.
fn each_way(chosen: Vec<Chosen>, args: &Run, kind: &JobKind, points: &[u32]) -> Result<Vec<Chosen>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    if let Some(via) = args.how.via.iter().find(|via| !kind.ways.contains(via)) {
        return usage(format!("the job {} has no way '{via}'\nhint: leave --via out", kind.name));
    }
    if args.how.split == Split::Profiles {
        if kind.ways == [Via::Portable] {
            return usage(format!("the job {} has no --split\nhint: leave it out", kind.name));
        }
        let loses = |via: &&Via| matches!(via, Via::Portable | Via::Batch);
        if let (Some(via), true) = (args.how.via.iter().find(loses), points.len() > 1 || points[0] > 1) {
            return usage(format!(
                "clients who share profiles would overwrite each other's records by way of '{via}'\nhint: --via cas or --via native"
            ));
        }
    }
    let named = |chosen: &Chosen, via: Via| {
        let mut target = chosen.target.clone();
        if via != Via::Portable {
            target.label = format!("{} {via}", target.label);
        }
        Chosen { target, via, ..chosen.clone() }
    };
    Ok(chosen.iter().flat_map(|chosen| args.how.via.iter().map(|&via| named(chosen, via))).collect())
}

/// The sizes of a run that has several, each compared by itself.
fn several_sizes(args: &Run, kind: &JobKind) -> Result<Vec<u64>> {
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
            let what = format!("two targets are called '{label}'\nhint: name one of them: '{label}?name=other'");
            return Err(anyhow!(Usage(what)));
        }
    }
    Ok(())
}

pub fn keeps_nothing_yet(keep: &Path, chosen: &[Chosen]) -> Result<()> {
    let taken = chosen.iter().map(|chosen| keep.join(file_name(&chosen.target.label))).find(|place| place.exists());
    match taken {
        Some(place) => Err(anyhow!(
            "--keep: {} is there already, and data is never overwritten: name another directory",
            place.display()
        )),
        None => Ok(()),
    }
}

/// `--list`: the trials in their order, and nothing done.
fn list(plan: &Plan) -> Result<Exit> {
    let mut text = format!("seed {}\n", plan.seed);
    for block in plan.first_block()..=plan.blocks.most {
        let sizes = plan.sizes.len().max(1);
        for (position, place) in (1..).zip(plan.order(block, plan.chosen.len() * sizes)) {
            let label = &plan.chosen[place % plan.chosen.len()].target.label;
            let of = plan.sizes.get(place / plan.chosen.len()).map_or_else(String::new, |size| format!(" of {size}"));
            text.push_str(&format!("block {block} trial {position}: {}{of} on {label}\n", plan.job.name));
        }
    }
    print(&text)?;
    Ok(Exit::Ok)
}
