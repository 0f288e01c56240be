//! `kvfair run` and the first look: from what was typed to a plan, and from records to a printed table.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::args::{Look, Requests, Run, Size};
use super::live::Screen;
use super::load::{self, load_of, points_of};
use super::points::{Rates, Replay};
use super::{Exit, Usage, complain, exit_of, find_job, print, target};
use crate::jobs::{self, JobKind};
use crate::lab::plan::{Chosen, Plan};
use crate::lab::save::{self, Results};
use crate::lab::signals::{INTERRUPTED, Interrupt};
use crate::lab::timing::Timer;
use crate::lab::trial::Bench;
use crate::lab::{input, plan, scratch};
use crate::report::{cells, sweep, table, words};
use crate::stores;
use crate::study::pilot;
use crate::study::rounds::{self, Ended};
use crate::words::names::file_name;
use crate::words::record::Record;
use crate::words::trial::{Configuration, Data, Durability, JobSettings, Split, Via};

/// Blocks of a run that names no number of them.
const BLOCKS: u32 = 3;
/// The first look.
const FIRST_BLOCKS: u32 = 6;
const FIRST_BUDGET: Duration = Duration::from_secs(60);

/// What a run needs besides its plan.
struct Errand<'a> {
    plan: Plan,
    budget: Option<Duration>,
    /// Whether a pilot chooses the job's size.
    size_it: bool,
    /// Rates as hundredths of what the slowest target can do, which is to be seen first.
    shares: Vec<u32>,
    /// Whether the user said which targets: none of those is left out.
    targets_named: bool,
    output: Option<&'a Path>,
    look: Look,
}

/// `kvfair` alone: `fans` on everything that is here.
pub fn first_look() -> Result<Exit> {
    let args = Run {
        job: "fans".to_string(),
        targets: Vec::new(),
        input: None,
        format: None,
        skip_bad: 0,
        size: Size::default(),
        clients: None,
        replay: None,
        load: Requests::default(),
        via: vec![Via::Portable],
        split: Default::default(),
        durability: Default::default(),
        configuration: Default::default(),
        blocks: Some(FIRST_BLOCKS),
        budget: Some(FIRST_BUDGET),
        timeout: Duration::from_secs(300),
        verify: Default::default(),
        output: None,
        keep: None,
        answers_only: false,
        list: false,
        look: Look::default(),
    };
    complain("kvfair: a first look: fans on every store found here, in about a minute; `kvfair --help` tells more");
    run(args)
}

pub fn run(args: Run) -> Result<Exit> {
    let plan = plan_of(&args)?;
    if args.list {
        return list(&plan);
    }
    // A rate is kept for its time whatever the budget is: then it is blocks that are left out.
    let may_size = plan.job.units.is_none() && args.input.is_none() && args.load.rate.is_none();
    let size_it = args.budget.is_some() && may_size;
    let (targets_named, output) = (!args.targets.is_empty(), args.output.as_deref());
    let shares = match &args.load.rate {
        Some(Rates::Shares(shares)) => shares.clone(),
        _ => Vec::new(),
    };
    carry_out(Errand { plan, budget: args.budget, size_it, shares, targets_named, output, look: args.look })
}

/// Everything that was typed, checked and made sense of.
pub fn plan_of(args: &Run) -> Result<Plan> {
    let kind = find_job(&args.job)?;
    let seed = args.size.seed.unwrap_or(kind.default_seed);
    let points = points_of(args, kind)?;
    let job = job_of(args, kind, seed, &points)?;
    let chosen = match args.targets.as_slice() {
        [] => target::all_here(),
        named => named
            .iter()
            .map(|text| target::parse(text))
            .collect::<Result<_>>()
            .map_err(|error| anyhow!(Usage(format!("{error:#}"))))?,
    };
    let mut chosen = each_way(chosen, args, kind, &points)?;
    // The control beside a sweep knows no batches.
    let swept = kind.requests.is_some() && points.len() > 1 && args.load.batch.is_none();
    if swept && args.durability == Durability::None && args.keep.is_none() {
        let ceilings = target::ceilings(&chosen);
        chosen.extend(ceilings);
    }
    names_differ(&chosen)?;
    if args.configuration == Configuration::Shipped && args.durability != Durability::None {
        let what = "--config shipped leaves durability as each store's makers set it\nhint: leave --durability out";
        return Err(anyhow!(Usage(what.to_string())));
    }
    if let Some(keep) = &args.keep {
        keeps_nothing_yet(keep, &chosen)?;
    }
    Ok(Plan {
        chosen,
        kind,
        job,
        clients: points.iter().copied().max().unwrap_or(1),
        durability: args.durability,
        configuration: args.configuration,
        verify: args.verify,
        timeout: args.timeout,
        blocks: if args.answers_only { 1 } else { args.blocks.unwrap_or(BLOCKS) },
        seed,
        answers_only: args.answers_only,
        keep: args.keep.clone(),
        began: plan::utc_now(),
    })
}

fn job_of(args: &Run, kind: &JobKind, seed: u64, points: &[u32]) -> Result<JobSettings> {
    let units = units_of(&args.size, kind)?;
    let load = load_of(args, kind, points)?;
    let (data, format) = match &args.input {
        Some(path) => {
            input::check(path)?;
            let format = input::format(kind, path, args.format.as_deref());
            (Data::File { path: path.clone() }, format.map_err(|error| anyhow!(Usage(format!("{error:#}"))))?)
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
    let replay_percent = replay_of(args, kind, &format)?;
    let (name, skip_bad, via, split) = (kind.name.to_string(), args.skip_bad, Via::default(), args.split);
    Ok(JobSettings { name, data, format, units, skip_bad, via, split, load, replay_percent })
}

/// How fast a recording is replayed. Only one that tells its times can keep them.
fn replay_of(args: &Run, kind: &JobKind, format: &str) -> Result<Option<u32>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    match args.replay {
        Some(_) if !kind.recipe.is_empty() => {
            usage(format!("--replay is no option of the job {}\nhint: kvfair run trace has it", kind.name))
        }
        Some(Replay(Some(_))) if jobs::trace::has_no_times(format) => {
            usage(format!("--replay: the form {format} tells no times to keep\nhint: leave it out"))
        }
        Some(Replay(percent)) => Ok(percent),
        None => Ok(None),
    }
}

/// Every target once for each way in which it is to be asked.
fn each_way(chosen: Vec<Chosen>, args: &Run, kind: &JobKind, points: &[u32]) -> Result<Vec<Chosen>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    if let Some(via) = args.via.iter().find(|via| !kind.ways.contains(via)) {
        return usage(format!("the job {} has no way '{via}'\nhint: leave --via out", kind.name));
    }
    if args.split == Split::Profiles {
        if kind.ways == [Via::Portable] {
            return usage(format!("the job {} has no --split\nhint: leave it out", kind.name));
        }
        let loses = |via: &&Via| matches!(via, Via::Portable | Via::Batch);
        if let (Some(via), true) = (args.via.iter().find(loses), points.len() > 1 || points[0] > 1) {
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
    Ok(chosen.iter().flat_map(|chosen| args.via.iter().map(|&via| named(chosen, via))).collect())
}

/// The size that was typed. One that belongs to another job is a mistake, not a no-op.
pub fn units_of(size: &Size, kind: &JobKind) -> Result<Option<u64>> {
    let sizes = [("profiles", size.profiles), ("messages", size.messages), ("requests", size.requests)];
    for (name, units) in sizes {
        if units.is_some() && name != kind.scale {
            let what = format!("--{name} is no option of the job {}\nhint: it has --{}", kind.name, kind.scale);
            return Err(anyhow!(Usage(what)));
        }
    }
    Ok(sizes.iter().find(|(name, _)| *name == kind.scale).and_then(|(_, units)| *units))
}

fn names_differ(chosen: &[Chosen]) -> Result<()> {
    for (index, one) in chosen.iter().enumerate() {
        let label = &one.target.label;
        if chosen[..index].iter().any(|other| other.target.label == *label) {
            let what = format!("two targets are called '{label}'\nhint: name one of them: '{label}?name=other'");
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

/// `--list`: the trials in their order, and nothing done.
fn list(plan: &Plan) -> Result<Exit> {
    let mut text = format!("seed {}\n", plan.seed);
    for block in 1..=plan.blocks {
        for (position, place) in (1..).zip(plan.order(block)) {
            let label = &plan.chosen[place].target.label;
            text.push_str(&format!("block {block} trial {position}: {} on {label}\n", plan.job.name));
        }
    }
    print(&text)?;
    Ok(Exit::Ok)
}

/// The plot of a run: prepare, size, run, print.
fn carry_out(mut errand: Errand<'_>) -> Result<Exit> {
    let timer = Timer::start();
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path =
        errand.output.map_or_else(|| save::default_path(&errand.plan.began, &errand.plan.job.name), Path::to_path_buf);
    let mut results = Results::create(&path)?;
    let ran = (|| {
        if let (true, Some(budget)) = (errand.size_it, errand.budget) {
            let only_quick = !errand.targets_named;
            let slow = pilot::fit_into(budget, &mut errand.plan, only_quick, scratch.path(), &interrupt)?;
            if !slow.is_empty() {
                let names = slow.join(" ");
                complain(&format!(
                    "kvfair: too slow for a short look: {names}; by name: kvfair run {} {names}",
                    errand.plan.job.name
                ));
            }
        }
        if !errand.shares.is_empty() {
            let words = pilot::rate_by_share(&errand.shares, &mut errand.plan, scratch.path(), &interrupt)?;
            complain(&format!("kvfair: {words}"));
            let untimely = errand
                .plan
                .job
                .load
                .as_ref()
                .and_then(|load| load::untimely(load, errand.plan.job.units, errand.plan.timeout));
            untimely.map_or(Ok(()), |what| Err(anyhow!(Usage(what))))?;
        }
        let bench = Bench::set_up(&errand.plan, scratch.path(), &interrupt)?;
        let units = errand.plan.units_of_a_trial(bench.summary.stream.units);
        let mut screen = Screen::new(errand.plan.blocks, errand.plan.chosen.len(), units);
        let left = errand.budget.map(|budget| timer.left_of(budget));
        let ended = rounds::run(&bench, left, &mut |event| {
            // First the screen: a record that cannot be saved is shown all the same.
            screen.tell(&event);
            match &event {
                rounds::Event::Finished(record) => results.save(record),
                _ => Ok(()),
            }
        });
        // Whatever went wrong, what was finished is shown.
        Ok((ended, screen.end()))
    })();
    let (ended, records) = match ran {
        Ok(ran) => ran,
        Err(_) if interrupt.is_set() => (Ok(Ended::Interrupted(None)), Vec::new()),
        Err(error) => {
            results.discard_if_empty();
            return Err(error);
        }
    };
    finish(&errand, &records, &mut results, ended)
}

fn finish(errand: &Errand<'_>, records: &[Record], results: &mut Results, ended: Result<Ended>) -> Result<Exit> {
    if records.is_empty() {
        results.discard_if_empty();
    } else {
        print(&shown(records, errand.look)?)?;
        complain(&format!("results: {}", results.path().display()));
    }
    kept(errand, records);
    match ended? {
        Ended::Interrupted(left_behind) => {
            left_behind.iter().for_each(|what| complain(&format!("kvfair: {what}")));
            complain(&format!("kvfair: {INTERRUPTED}; {} trials were finished", records.len()));
            return Ok(Exit::Interrupted);
        }
        Ended::Budget => complain("no further block fitted into the budget"),
        Ended::AllBlocks => {}
    }
    Ok(exit_of(&cells::rows(records)))
}

/// What is printed of a run's records.
pub fn shown(records: &[Record], look: Look) -> Result<String> {
    let rows = cells::rows(records);
    let points = sweep::points(records);
    let swept = sweep::is_one(&points);
    if look.json && swept {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&points)?));
    }
    if look.json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    let (table, sentence) = match swept {
        true => (sweep::tables(&points, &rows, look.wide), sweep::sentence(&points)),
        false => (table::table(&rows, look.wide), words::sentence(&rows)),
    };
    let parts = [
        words::headline(records),
        table,
        words::misses(&rows, records),
        words::answer(records),
        words::stream(records),
        absent(records),
        table::wrap(&sentence, table::WIDTH).join("\n"),
        words::next(&rows, records),
    ];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    Ok(format!("{}\n", parts.join("\n")))
}

/// Stores that are not on this machine and were not asked for either.
fn absent(records: &[Record]) -> String {
    let named = |name: &str| records.iter().any(|record| record.target.store == name);
    let absent = stores::ALL
        .iter()
        .filter(|adapter| adapter.role.is_offered() && !target::is_here(adapter) && !named(adapter.name));
    let absent: Vec<String> = absent.map(|adapter| format!("{} ({})", adapter.name, adapter.get_it)).collect();
    if absent.is_empty() {
        return String::new();
    }
    table::wrap(&format!("not here: {}", absent.join(", ")), table::WIDTH).join("\n")
}

/// The commands that query what `--keep` left behind.
fn kept(errand: &Errand<'_>, records: &[Record]) {
    let Some(keep) = &errand.plan.keep else { return };
    for row in cells::rows(records).iter().filter(|row| row.trials > 0 && !row.control) {
        let Some(chosen) = errand.plan.chosen.iter().find(|chosen| chosen.target.label == row.target) else { continue };
        let place = keep.join(file_name(&row.target));
        let name = target::managed_name(chosen.adapter, chosen.target.transport);
        let query = if errand.plan.job.name == "fans" {
            format!("kvfair query {name}:{} 'Michael Jackson'", place.display())
        } else {
            place.display().to_string()
        };
        complain(&format!("kept: {query}"));
    }
}
