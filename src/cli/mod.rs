//! The command line: the only module that prints. Results go to standard output, everything else to standard error.

use std::backtrace::Backtrace;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::FromArgMatches;
use clap::error::ErrorKind;

use crate::harness::check::prober;
use crate::harness::crash::client;
use crate::harness::crash::failover::clients;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::task::{Event, Task};
use crate::harness::{child, files, network, oracle, worker};
use crate::jobs::{self, JobKind};
use crate::model::logins;
use crate::report::exit::Exit;
use crate::scheduler::gated::Unclear;
use crate::stores::array::server::{self, Door, Protocol};

mod absent;
mod again;
mod agents;
mod args;
mod bundle;
mod check;
mod clean;
mod color;
mod compare;
mod contact;
mod crash;
mod exec;
mod failover;
mod findmax;
mod foretold;
mod found;
mod grown;
mod growth;
mod history;
/// The command of CONTRIBUTING.md, where it would stand.
#[cfg(test)]
#[path = "../../examples/contributing/levels.rs"]
mod levels;
mod levered;
mod levers;
mod lists;
mod live;
mod load;
mod login;
mod lookup;
mod manual;
mod measure;
mod paged;
mod pages;
mod planned;
mod points;
mod query;
mod refusals;
mod renamed;
mod replicas;
mod reproduce;
mod rerun;
mod run;
mod show;
mod shown;
mod site;
mod sized;
mod target;
mod terminal;
mod verified;
mod versioned;

use absent::Missing;
use args::{Cli, Command};
use shown::NothingShown;
use terminal::print;

/// A mistake in what was typed, as against one in what was found.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Does what was typed.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| complain(&format!("kvfair: {panic}\n{}", Backtrace::capture()))));
    if let Some(help) = args::help_of_a_job(&typed()) {
        return ExitCode::from(print(&help).map_or(Exit::Error, |()| Exit::Ok) as u8);
    }
    let typed = args::command().try_get_matches().unwrap_or_else(|error| refused(&error));
    if let Some(what) = args::refused(&typed) {
        complain(&format!("kvfair: {what}"));
        return ExitCode::from(Exit::Usage as u8);
    }
    let cli = Cli::from_arg_matches(&typed).unwrap_or_else(|error| refused(&error));
    color::choose(cli.color);
    let exit = match cli.command {
        None => run::first_look(),
        Some(Command::Run(args)) => run::run(*args),
        Some(Command::FindMax(args)) => findmax::find_max(*args),
        Some(Command::Compare(args)) => compare::compare(*args),
        Some(Command::Crash(args)) if args.failover => failover::failover(&args),
        Some(Command::Crash(args)) => crash::crash(&args),
        Some(Command::Growth(args)) => growth::growth(&args),
        Some(Command::Levers(args)) => levers::levers(*args),
        Some(Command::Advise(args)) => levers::advise(*args),
        Some(Command::Reproduce(args)) => reproduce::reproduce(&args),
        Some(Command::History(args)) => history::history(*args),
        Some(Command::Show(args)) => show::show(&args),
        Some(Command::Site(args)) => site::site(&args),
        Some(Command::Bundle(args)) => bundle::bundle(&args),
        Some(Command::Rerun(args)) => rerun::rerun(&args),
        Some(Command::Check(args)) => check::check(&args),
        Some(Command::Clean(args)) => clean::clean(&args),
        Some(Command::Stores(args)) => lists::stores(&args),
        Some(Command::Jobs) => lists::jobs(),
        Some(Command::Data(args)) => lists::data(&args),
        Some(Command::Query(args)) => query::query(&args),
        Some(Command::Lookup(args)) => lookup::lookup(&args),
        #[cfg(test)]
        Some(Command::Levels(args)) => levels::levels(&args),
        Some(Command::Manual { directory }) => manual::manual(&directory),
        Some(Command::Child { task }) => child(&task),
        Some(Command::Agent { rank }) => agents::agent(rank),
        Some(Command::Outage(args)) => crash::outage(args),
        Some(Command::Array(args)) => serve_array(args),
    };
    let exit = exit.unwrap_or_else(|error| {
        complain(&format!("kvfair: {error:#}"));
        match () {
            () if error.is::<Usage>() => Exit::Usage,
            () if error.is::<Missing>() => Exit::Missing,
            () if error.is::<Unclear>() || error.is::<NothingShown>() => Exit::Inconclusive,
            () => Exit::Error,
        }
    });
    ExitCode::from(exit as u8)
}

/// Understands a command line as far as that is possible without running anything: a run's as far as its plan. So the
/// commands of the documents are tested.
pub fn understood(words: &[String]) -> Result<(), String> {
    if words.first().is_some_and(|word| word == "kvfair") && args::help_of_a_job(&words[1..]).is_some() {
        return Ok(());
    }
    let typed = match args::command().try_get_matches_from(words) {
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => return Ok(()),
        typed => typed.map_err(|error| error.to_string())?,
    };
    if let Some(what) = args::refused(&typed) {
        return Err(what);
    }
    let cli = Cli::from_arg_matches(&typed).map_err(|error| error.to_string())?;
    let planned = match &cli.command {
        Some(Command::Run(args)) => planned::plan_of(args).map(drop),
        Some(Command::FindMax(args)) => planned::plan_of(&args.run).map(drop),
        _ => Ok(()),
    };
    planned.map_err(|error| format!("{error:#}"))
}

/// Says what is wrong with what was typed, or prints the help that was asked for.
fn refused(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    let told = if without_logins(&text) == text {
        terminal::tell_usage(error)
    } else {
        complain(text.trim_end());
        Ok(())
    };
    std::process::exit(match told {
        Ok(()) => error.exit_code(),
        Err(error) => {
            complain(&format!("kvfair: {error:#}"));
            Exit::Error as i32
        }
    });
}

/// What was typed, without what looks like a login.
fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    words.map(|word| without_logins(&word)).collect()
}

/// A message without the logins that stand in what was typed, however badly: whole arguments, and parts of them.
fn without_logins(text: &str) -> String {
    let typed: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let values = typed.iter().filter_map(|word| word.split_once('=').map(|(_, value)| value));
    let words = typed.iter().map(String::as_str).chain(values);
    let hidden = words.map(|word| match word.contains(char::is_whitespace) {
        true => (word, logins::hidden(&logins::hidden_word(word), &[])),
        false => (word, logins::hidden_target(word)),
    });
    let hidden: Vec<(&str, String)> = hidden.filter(|(word, hidden)| word != hidden).collect();
    if hidden.is_empty() {
        return text.to_string();
    }
    let text = hidden.iter().fold(text.to_string(), |text, (word, hidden)| text.replace(word, hidden));
    logins::hidden(&text, &[])
}

/// The hidden command `child`.
fn child(name: &str) -> Result<Exit> {
    let task = child::task().with_context(|| format!("no task of a {name} on standard input"))?;
    child::limit_memory(&task);
    match task {
        Task::Trial(trial) => worker::run(&trial),
        Task::ExpectedState(asked) => {
            let expected = oracle::answer(&asked).map(Box::new);
            child::tell(&expected.map_or_else(Event::Failed, Event::ExpectedState));
        }
        Task::Probe(probes) => prober::run(&probes),
        Task::Ledger(ledger) => client::run(&ledger)?,
        Task::Failover(task) => clients::run(&task),
        Task::Proxy(task) => network::serve(&task),
    }
    Ok(Exit::Ok)
}

/// The hidden command `array`.
fn serve_array(args: args::Array) -> Result<Exit> {
    let protocol = if args.protocol == "text" { Protocol::Text } else { Protocol::Resp };
    let door = match (args.unix, args.tcp) {
        (Some(path), _) => Door::Unix(path),
        (None, Some(address)) => {
            Door::Tcp(address.parse().map_err(|_| anyhow!(Usage(format!("'{address}' is no address and port"))))?)
        }
        (None, None) => return Err(anyhow!(Usage("--unix or --tcp".to_string()))),
    };
    files::allow(args.clients).map_err(|why| anyhow!(why))?;
    server::serve(&door, protocol)?;
    Ok(Exit::Ok)
}

/// Says why everything was stopped and what was finished.
fn interrupted(interrupt: &Interrupt, finished: &str) -> Exit {
    complain(&format!("kvfair: {}; {finished}", interrupt.why().unwrap_or(INTERRUPTED)));
    if interrupt.why().is_some() { Exit::Error } else { Exit::Interrupted }
}

/// The job of that name, or the nearest one in the message.
fn find_job(name: &str) -> Result<&'static JobKind> {
    jobs::find(name).ok_or_else(|| {
        let names = jobs::ALL.iter().map(|job| job.name);
        let hint = match nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
        };
        anyhow!(Usage(format!("there is no job '{name}'\nhint: {hint}")))
    })
}

/// A label where it names the target, for a command that is proposed: what was called otherwise, or is asked in a way
/// of its own, only its user can name.
fn as_typed(label: &str) -> &str {
    match target::parse(label).is_ok_and(|chosen| chosen.target.label == label) {
        true => label,
        false => "TARGET",
    }
}

/// The name that was probably meant.
fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(typed, name), name));
    // Below 0.75 a suggestion puzzles more than it helps; clap cuts at 0.7.
    scored.filter(|(score, _)| *score > 0.75).max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

/// Says something that is no result, and no login.
fn complain(text: &str) {
    terminal::say(&without_logins(text));
}
