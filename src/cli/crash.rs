//! `kvfair crash`: which claims of durability hold here.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::args::Crash;
use super::{Exit, Usage, complain, print, target};
use crate::lab::crash::outage::{self, Order};
use crate::lab::crash::{Bench, Untried, ground, kept};
use crate::lab::plan::{self, Chosen};
use crate::lab::scratch;
use crate::lab::signals::Interrupt;
use crate::report::crash::{self as report, Row};
use crate::words::crash::{Standing, Tried};
use crate::words::trial::Durability;

/// The hidden command `outage`.
#[derive(Debug, clap::Args)]
pub struct Outage {
    /// The process for whom all this is
    #[arg(long)]
    owner: i32,
    /// The process that is traced, where this is the tracer
    #[arg(long)]
    of: Option<i32>,
    /// Where the store's files are
    data: PathBuf,
    /// Where the report goes
    report: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

pub fn outage(args: Outage) -> Result<Exit> {
    let order = Order { data: args.data, report: args.report, owner: args.owner };
    match args.of {
        Some(main) => outage::trace(&order, main)?,
        None => return Err(outage::become_traced(&order, &args.program).into()),
    }
    Ok(Exit::Ok)
}

/// Classes that promise anything.
const CLASSES: [Durability; 2] = [Durability::Crash, Durability::Power];

pub fn crash(args: &Crash) -> Result<Exit> {
    let claims = claims(args)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let ground = ground::look(scratch.path())?;
    let seed = args.seed.unwrap_or_else(plan::any_seed);
    let began = plan::utc_now();
    let headline = report::headline(args.kills, seed, &ground);
    if args.json {
        complain(&headline)
    } else {
        print(&format!("{headline}\n"))?
    }
    let bench = Bench { scratch: scratch.path(), kills: args.kills, seed, ground, began, interrupt: &interrupt };
    let (mut rows, mut ended) = (Vec::new(), Exit::Ok);
    for (chosen, class) in claims {
        let label = chosen.target.label.clone();
        let tried = bench.try_one(&chosen, class, &mut |what, done| {
            if std::io::stderr().is_terminal() || done == args.kills {
                complain(&format!("{label}, {class}: {done} of {} {what}", args.kills));
            }
        });
        let exit = match &tried {
            Ok(tried) => {
                if let Some(stands) = kept::keep(&kept::path(), tried)? {
                    complain(&stood(&label, &stands));
                }
                exit_of(tried)
            }
            Err(Untried::Interrupted) => {
                complain(&format!("interrupted; {} claims were tried", rows.len()));
                ended = Exit::Interrupted;
                break;
            }
            Err(Untried::Missing { .. }) => Exit::Missing,
            Err(Untried::Failed(_)) => Exit::Error,
        };
        ended = worse(ended, exit);
        rows.push(Row { label, class, tried: tried.map_err(|untried| untried.to_string()) });
    }
    show(args.json, &rows, &bench)?;
    Ok(ended)
}

/// What is said where more luck does not take a verdict back.
fn stood(label: &str, stands: &Tried) -> String {
    let (words, when, path) = (stands.in_words(), &stands.tried, kept::path());
    format!(
        "{label}: what was lost {when} is not undone by a try with more luck, so \"{words}\" stands\nhint: remove its \
         line from {} to forget it",
        path.display()
    )
}

fn show(json: bool, rows: &[Row], bench: &Bench<'_>) -> Result<()> {
    if json {
        let told: Vec<_> = rows.iter().map(Shown::new).collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&told)?));
    }
    if rows.is_empty() { Ok(()) } else { print(&report::shown(rows, &bench.ground)) }
}

/// One claim, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    target: &'a str,
    class: Durability,
    /// "crash (claimed power)".
    keeps: Option<String>,
    /// Why it was not tried.
    reason: Option<&'a str>,
    tried: Option<&'a Tried>,
}

impl<'a> Shown<'a> {
    fn new(row: &'a Row) -> Shown<'a> {
        let tried = row.tried.as_ref().ok();
        let reason = row.tried.as_ref().err().map(String::as_str);
        let keeps = tried.map(Tried::in_words);
        Shown { target: &row.label, class: row.class, keeps, reason, tried }
    }
}

fn exit_of(tried: &Tried) -> Exit {
    match tried.standing() {
        Standing::Holds => Exit::Ok,
        Standing::Demoted(_) => Exit::WrongAnswers,
        Standing::Unknown(_) => Exit::Inconclusive,
    }
}

/// A claim that failed is worse than a store that is not here, and that worse than one of which nothing can be said.
fn worse(one: Exit, other: Exit) -> Exit {
    let order = [Exit::WrongAnswers, Exit::Error, Exit::Missing, Exit::Inconclusive, Exit::Ok];
    order.into_iter().find(|exit| [one, other].contains(exit)).unwrap_or(one)
}

/// Every target at every class that it claims and that was asked for.
fn claims(args: &Crash) -> Result<Vec<(Chosen, Durability)>> {
    let usage = |what: String| anyhow!(Usage(what));
    if args.durability == Some(Durability::None) {
        return Err(usage("the class none promises nothing that a kill could break\nhint: crash or power".to_string()));
    }
    let asked: Vec<Durability> = args.durability.map_or(CLASSES.to_vec(), |class| vec![class]);
    let mut claims = Vec::new();
    for chosen in chosen(args)? {
        let kept: Vec<_> = asked.iter().filter(|class| (chosen.adapter.keeps)(**class).is_ok()).copied().collect();
        if kept.is_empty() && !args.targets.is_empty() {
            let why = (chosen.adapter.keeps)(asked[0]).err().unwrap_or_default();
            return Err(usage(format!("{} claims no durability {}: {why}", chosen.target.label, asked[0])));
        }
        claims.extend(kept.into_iter().map(|class| (chosen.clone(), class)));
    }
    Ok(claims)
}

fn chosen(args: &Crash) -> Result<Vec<Chosen>> {
    if args.targets.is_empty() {
        // How a store is reached changes nothing of what it keeps.
        let mut all = target::all_here();
        all.dedup_by_key(|chosen| chosen.adapter.name);
        return Ok(all);
    }
    let usage = |what: String| anyhow!(Usage(what));
    let mut all: Vec<Chosen> = Vec::new();
    for text in &args.targets {
        let chosen = target::parse(text).map_err(|error| usage(format!("{error:#}")))?;
        let label = &chosen.target.label;
        if chosen.place.is_some() {
            let name = chosen.adapter.name;
            return Err(usage(format!(
                "{label}: only stores that are started here are killed\nhint: kvfair crash {name}"
            )));
        }
        if chosen.target.cache.is_some() {
            return Err(usage(format!("{label}: a cache in front of a store keeps nothing\nhint: leave cached: out")));
        }
        if all.iter().any(|other| other.target.label == *label) {
            return Err(usage(format!("two targets are called '{label}'")));
        }
        all.push(chosen);
    }
    Ok(all)
}
