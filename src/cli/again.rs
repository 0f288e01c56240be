//! From what a page tells of its run to the arguments of the same run here. A page may come from anybody: of its
//! command only what says how a job is run is taken, never where something is read, written or kept.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::FromArgMatches;

use super::args::{self, Cli, Command, FindMax, FindingArgs, Forms, Growth, Levers, Look, RunArgs};
use super::measure::data_of;
use super::planned::{args_of, plan_of, resolve_input};
use super::{Exit, find_job, findmax, growth, levers, target};
use crate::harness::scratch;
use crate::harness::serve::PROGRAM;
use crate::harness::signals::Interrupt;
use crate::model::logins::HIDDEN;
use crate::report::replicated::{PageRun, findings};

/// A run that is to be done again.
pub struct Again {
    pub args: RunArgs,
    /// None of a run of a job.
    pub command: Option<AgainCommand>,
    /// Targets that cannot run here, and why.
    pub left_out: Vec<(String, String)>,
    /// Programs that the page names. The user must allow them.
    pub programs: Vec<String>,
}

/// Another command than `run`: it takes what it has in common with a run, prints what it finds, and writes its records
/// to the output.
pub type AgainCommand = Box<dyn Fn(RunArgs) -> Result<Exit>>;

impl Again {
    /// With the data of `input`, where that is a file.
    pub fn of(run: &PageRun, input: Option<PathBuf>) -> Result<Again> {
        let (args, command) =
            understood(run).with_context(|| format!("its command is `kvfair {}`", run.command.join(" ")))?;
        let (mut left_out, mut programs) = (Vec::new(), Vec::new());
        let named: Vec<String> =
            args.own.exec.iter().flat_map(|_| args.job.clone()).chain(args.targets.clone()).collect();
        let named = if named.is_empty() { labels(run) } else { named };
        let mut targets = Vec::new();
        for text in named {
            match target::parse(&text) {
                _ if text.contains(HIDDEN) => left_out.push((text, "a store by URL of the first run".to_string())),
                Err(error) => left_out.push((text, first_line(&format!("{:#}", error.root_cause())))),
                Ok(chosen) if chosen.place.is_some() => {
                    left_out.push((text, "a store by URL or directory of the first run".to_string()));
                }
                Ok(chosen) => {
                    programs.extend(chosen.target.settings.get(PROGRAM).cloned());
                    targets.push(text);
                }
            }
        }
        if targets.is_empty() {
            let why: Vec<String> = left_out.iter().map(|(target, why)| format!("{target}: {why}")).collect();
            return Err(anyhow!("none of its targets can run here: {}", why.join("; ")));
        }
        programs.extend(args.own.exec.clone());
        let args = with(args, run, targets, input)?;
        Ok(Again { args, command, left_out, programs })
    }
}

/// What was typed, as far as it can be run again.
fn understood(run: &PageRun) -> Result<(RunArgs, Option<AgainCommand>)> {
    let mut words = run.command.clone();
    if words.is_empty() {
        words = ["run".to_string(), run.job.name.clone()].into_iter().chain(labels(run)).collect();
    }
    let words = std::iter::once("kvfair".to_string()).chain(words);
    let unknown = |error: clap::Error| anyhow!("it is not understood: {}", first_line(&error.render().to_string()));
    let typed = args::command().try_get_matches_from(words).map_err(unknown)?;
    if let Some(what) = args::refused(&typed) {
        return Err(anyhow!("{what}"));
    }
    match Cli::from_arg_matches(&typed).map_err(unknown)?.command {
        Some(Command::Run(args)) => Ok((*args, None)),
        Some(Command::Compare(compare)) => {
            let job = compare.what.first().cloned().unwrap_or_else(|| "fans".to_string());
            let targets = compare.base.into_iter().chain(compare.head).collect();
            Ok((RunArgs { job: Some(job), targets, own: Default::default(), how: compare.how }, None))
        }
        Some(Command::Levers(args)) => Ok(of_levers(*args, levers::levers)),
        Some(Command::Advise(args)) => Ok(of_levers(*args, levers::advise)),
        Some(Command::FindMax(args)) => {
            let FindMax { run, slo, step } = *args;
            Ok((run, Some(Box::new(move |run| findmax::find_max(FindMax { run, slo, step })))))
        }
        Some(Command::Growth(args)) => of_growth(args),
        _ => {
            let kinds = findings::KINDS.map(|kind| kind.command).join(", ");
            Err(anyhow!(
                "kvfair cannot judge another run of that command\nhint: run, compare --base --head, {kinds} are run \
                 again; type any other command yourself"
            ))
        }
    }
}

fn of_levers(args: Levers, again: fn(Levers) -> Result<Exit>) -> (RunArgs, Option<AgainCommand>) {
    let Levers { job, store, levers, own, how } = args;
    // With a program the store stands in place of the job.
    let (job, store) = match store {
        Some(store) => (Some(job), store),
        None => (None, job),
    };
    let command = move |RunArgs { job, targets, own, how }: RunArgs| {
        let store = targets.into_iter().next();
        let (job, store) = match job {
            Some(job) => (job, store),
            None => (store.unwrap_or_default(), None),
        };
        again(Levers { job, store, levers: levers.clone(), own, how })
    };
    (RunArgs { job, targets: vec![store], own, how }, Some(Box::new(command)))
}

fn of_growth(args: Growth) -> Result<(RunArgs, Option<AgainCommand>)> {
    let Growth { targets, budget, seed, .. } = args;
    let run = args_of(["getset", "--"].into_iter().chain(targets.iter().map(String::as_str)))?;
    let command = move |RunArgs { targets, how, .. }: RunArgs| {
        let (seed, output, again) = (seed.or(how.size.seed), how.output, how.again);
        let skip_missing = how.skip_missing;
        let found = FindingArgs { output, forms: Forms::default() };
        growth::growth(&Growth { targets, budget, seed, skip_missing, found, again })
    };
    Ok((run, Some(Box::new(command))))
}

/// The targets of a run that named none; a way that stands behind a name is an option of the command.
fn labels(run: &PageRun) -> Vec<String> {
    let names = run.targets.iter().filter_map(|target| target.target.split(' ').next());
    let mut names: Vec<String> = names.map(str::to_string).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The same data, seeds and size, and nothing that leads elsewhere.
fn with(args: RunArgs, run: &PageRun, targets: Vec<String>, input: Option<PathBuf>) -> Result<RunArgs> {
    let mut how = args.how;
    if how.input.is_some() != input.is_some() {
        return Err(match &run.data.file {
            Some(file) => anyhow!(
                "the data ({file}) is not in it\nhint: --input FILE, whose SHA-256 as the job reads it is {}",
                run.data.sha256
            ),
            None => anyhow!("its data is made by a recipe: leave --input out"),
        });
    }
    how.input = input;
    how.keep = None;
    // A command of a stranger.
    (how.agents.launch, how.agents.hosts) = (None, None);
    (how.accept_unchecked, how.list, how.answers_only) = (false, false, false);
    how.look = Look::default();
    let typed = || ["run".to_string(), run.job.name.clone()].into_iter().chain(targets.clone()).collect();
    how.again = Some(if run.command.is_empty() { typed() } else { run.command.clone() });
    if how.size.seed.is_none() && run.seeds.data.is_empty() {
        how.size.seed = Some(run.seeds.order);
    }
    let is_program = args.own.exec.is_some();
    let chooses_size = findings::kind(run).is_some_and(|kind| !kind.has_one_size);
    let is_sized =
        chooses_size || !how.size.profiles.is_empty() || !how.size.messages.is_empty() || how.size.requests.is_some();
    if let (false, false, Some(units)) = (is_program, is_sized, run.job.units) {
        match find_job(args.job.as_deref().unwrap_or_default())?.scale {
            "profiles" => how.size.profiles = vec![units],
            "messages" => how.size.messages = vec![units],
            _ => how.size.requests = Some(units),
        }
    }
    let (job, targets) = if is_program { (None, targets) } else { (args.job, targets) };
    Ok(RunArgs { job, targets, own: args.own, how })
}

/// The digests of the data that such a run reads, one for each size and seed.
pub fn digests(args: &RunArgs) -> Result<Vec<String>> {
    let mut plan = plan_of(args)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    resolve_input(&mut plan, scratch.path(), &interrupt)?;
    let data = data_of(&plan, scratch.path(), &interrupt)?;
    Ok(data.iter().flat_map(|data| data.iter()).map(|data| data.summary.stream.sha256.clone()).collect())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string()
}
