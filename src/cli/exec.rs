//! `kvfair run --exec`: what may be typed of a program of the user's, and the plan that comes of it.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;

use super::args::{How, Run};
use super::refusals::{self, Wanted};
use super::{Usage, run, target};
use crate::lab::plan::{self, Chosen, Plan};
use crate::lab::program;
use crate::stores::{Place, Role};
use crate::words::trial::{Answer, Data, Durability, JobSettings, Split, Transport, Verify, Via};

/// What records and results files call it in the place of a job's name.
const NAME: &str = "exec";

/// A program of the user's in the place of a job.
#[derive(Debug, Default, Args)]
pub struct Exec {
    /// Run a program of your own as the trial, in place of a job: all names are targets then
    ///
    /// `sh -c CMD` is run here, for each target in each block, beside a fresh server of the target's (none for an
    /// embedded store, which the program opens in {dir}). {host}, {port}, {socket}, {url} and {dir} (an empty
    /// directory) stand for where the target is, and are in the environment as KVFAIR_HOST and so on, with
    /// KVFAIR_TARGET; a URL's password is in KVFAIR_URL alone. Time, CPU and memory are of the program and all that it
    /// starts; what still runs at its end is killed. A server that is dead then, or was started again, fails the trial.
    /// Somebody else's store must be empty, and the program must leave it so. Records hold CMD without logins.
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// What must be the same from every target of --exec, by its digest: stdout, a FILE that the program writes (as in
    /// {dir}/answer), or none [default: stdout]
    #[arg(long, value_name = "WHAT", requires = "exec", value_parser = answer)]
    pub answer: Option<Answer>,
}

fn answer(text: &str) -> Result<Answer, String> {
    match text {
        "" => Err("stdout, a file or none".to_string()),
        "stdout" => Ok(Answer::Stdout),
        "none" => Ok(Answer::None),
        file => Ok(Answer::File(PathBuf::from(file))),
    }
}

/// Everything that was typed beside `--exec`, checked and made sense of.
pub fn plan_of(args: &Run, command: &str) -> Result<Plan> {
    let usage = |what: String| anyhow!(Usage(what));
    if command.trim().is_empty() {
        return Err(usage("--exec: the command is empty".to_string()));
    }
    if let Some(option) = of_jobs(&args.how) {
        return Err(usage(format!("{option} is an option of jobs: --exec runs a program of yours in place of one")));
    }
    let named: Vec<&String> = args.job.iter().chain(&args.targets).collect();
    if named.is_empty() {
        let what = "--exec: no target is named\nhint: kvfair run --exec 'CMD {host} {port}' redis memcached";
        return Err(usage(what.to_string()));
    }
    let chosen = target::parse_all(named)?;
    run::names_differ(&chosen)?;
    run::shipped_has_no_class(&args.how)?;
    let answer = args.own.answer.clone().unwrap_or_default();
    refusals::refuse(&chosen, &Wanted::Program { args, command, answer: &answer })?;
    if let Some(keep) = &args.how.keep {
        run::keeps_nothing_yet(keep, &chosen)?;
    }
    let pinned = run::pinned(&args.how)?;
    Ok(Plan {
        pinned,
        kind: None,
        job: JobSettings {
            name: NAME.to_string(),
            data: Data::Program { command: command.to_string(), answer },
            format: String::new(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Via::default(),
            split: Split::default(),
            load: None,
            replay_percent: None,
        },
        clients: 1,
        durability: args.how.durability,
        configuration: args.how.configuration,
        verify: Verify::Full,
        timeout: args.how.timeout,
        blocks: run::blocks_of(args, &chosen),
        chosen,
        seed: args.how.size.seed.unwrap_or_default(),
        sizes: Vec::new(),
        data_seeds: Vec::new(),
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
    })
}

/// The first option that says what a job does: a program does what it does.
fn of_jobs(how: &How) -> Option<&'static str> {
    let given = [
        (how.input.is_some(), "--input"),
        (how.format.is_some(), "--format"),
        (!how.columns.is_empty(), "--columns"),
        (how.field.is_some(), "--field"),
        (how.skip_bad > 0, "--skip-bad"),
        (!how.size.profiles.is_empty(), "--profiles"),
        (!how.size.messages.is_empty(), "--messages"),
        (how.size.requests.is_some(), "--requests"),
        (how.clients.is_some(), "--clients"),
        (how.replay.is_some(), "--replay"),
        (how.via != [Via::Portable], "--via"),
        (how.split != Split::default(), "--split"),
        (how.verify != Verify::default(), "--verify"),
    ];
    let named = given.into_iter().find(|(given, _)| *given).map(|(_, name)| name);
    named.or_else(|| how.load.given().next())
}

/// Why this cannot be run on that target.
pub fn impossible(chosen: &Chosen, args: &Run, command: &str, answer: &Answer) -> Option<String> {
    let Chosen { target, adapter, place, .. } = chosen;
    let label = &target.label;
    if adapter.role != Role::Store {
        return Some(format!("{label} is a part of kvfair: no program can reach it"));
    }
    if target.cache.is_some() {
        return Some(format!("{label}: the cache is in kvfair's own client, which a program does not use"));
    }
    if matches!(place, Some(Place::Path(_))) {
        let hint = format!("name `{}`, and the program finds its own in {{dir}}", adapter.name);
        return Some(format!("{label}: --exec begins with an empty store\nhint: {hint}"));
    }
    if adapter.server.is_none() {
        let opens = format!("{label} is opened by the program, and kvfair cannot set how");
        if args.how.durability != Durability::None {
            return Some(format!("--durability: {opens}\nhint: leave it out, or name targets that have a server"));
        }
        if let Some(name) = target.settings.keys().next() {
            return Some(format!("?{name}: {opens}"));
        }
    }
    let file = match answer {
        Answer::File(path) => path.to_string_lossy(),
        Answer::Stdout | Answer::None => "".into(),
    };
    let missing = |(text, option)| Some((program::lacks(text, target.transport)?, option));
    let (name, option) = [(command, "--exec"), (&*file, "--answer")].into_iter().find_map(missing)?;
    let has: Vec<String> = program::has(target.transport).iter().map(|name| format!("{{{name}}}")).collect();
    let reached = match target.transport {
        Transport::InProcess => "has no server and is opened by the program itself".to_string(),
        transport => format!("is reached over {transport}"),
    };
    Some(format!("{option}: {label} has no {{{name}}}: it {reached}\nhint: it has {}", has.join(", ")))
}
