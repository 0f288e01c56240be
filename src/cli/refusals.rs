//! What cannot work with a target, and is refused before anything starts: one table for all commands.

use anyhow::{Result, anyhow};

use super::args::Run;
use super::{Usage, complain, exec};
use crate::jobs::{JobKind, Reading};
use crate::lab::plan::Chosen;
use crate::lab::serve::{self, PROGRAM};
use crate::stores::{self, Means, Place, Role};
use crate::words::trial::{Answer, Via};

/// What is to be done with targets.
pub enum Wanted<'a> {
    Job(&'a Run, &'a JobKind),
    Program { args: &'a Run, command: &'a str, answer: &'a Answer },
    Growth,
    Crash,
    Check,
}

/// Why a target cannot be had for it, and what to do.
type Rule = fn(&Chosen, &Wanted<'_>) -> Option<String>;

const RULES: &[Rule] = &[
    no_program,
    not_started_here,
    holds_nothing,
    stays_where_it_is,
    not_behind_a_cache,
    lacks,
    no_target_of_a_program,
];

/// The first thing that cannot work with targets that were named.
pub fn refuse(chosen: &[Chosen], wanted: &Wanted<'_>) -> Result<()> {
    let first = chosen.iter().find_map(|one| of(one, wanted));
    first.map_or(Ok(()), |what| Err(anyhow!(Usage(what))))
}

/// Without those that nobody named and that cannot be had, each with a line that says why. Where nothing is left, the
/// first of them is the mistake.
pub fn leave_out(chosen: Vec<Chosen>, wanted: &Wanted<'_>) -> Result<Vec<Chosen>> {
    let (out, left): (Vec<Chosen>, Vec<Chosen>) = chosen.into_iter().partition(|one| of(one, wanted).is_some());
    if left.iter().all(|one| one.target.control) {
        refuse(&out, wanted)?;
    }
    for why in out.iter().filter_map(|one| of(one, wanted)) {
        let why = why.lines().next().unwrap_or_default();
        complain(&format!("kvfair: left out: {why}"));
    }
    Ok(left)
}

fn of(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    RULES.iter().find_map(|rule| rule(chosen, wanted))
}

/// Another build of a server must be a file that can be run.
fn no_program(chosen: &Chosen, _: &Wanted<'_>) -> Option<String> {
    let (label, program) = (&chosen.target.label, chosen.target.settings.get(PROGRAM)?);
    let why = serve::no_program(program.as_ref())?;
    Some(format!("{label}: {program} is no program that can be run: {why}\nhint: ?{PROGRAM}= takes a server's path"))
}

/// Only stores of ours are killed, or asked so much.
fn not_started_here(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    let (what, command) = match wanted {
        Wanted::Growth => ("asked so much", "growth"),
        Wanted::Crash => ("killed", "crash"),
        _ => return None,
    };
    chosen.place.as_ref()?;
    let (label, name) = (&chosen.target.label, chosen.adapter.name);
    Some(format!("{label}: only stores that are started here are {what}\nhint: kvfair {command} {name}"))
}

/// What there is to read, to check or to be kept.
fn holds_nothing(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    let label = &chosen.target.label;
    match wanted {
        Wanted::Job(args, _) if args.how.load.read_only && chosen.place.is_none() => {
            Some(format!("--read-only: {label} is started here and holds nothing\nhint: name a store by URL"))
        }
        Wanted::Check if matches!(chosen.adapter.role, Role::Null | Role::Ceiling) => {
            Some(format!("{label} holds nothing on purpose: there is nothing to check\nhint: leave it out"))
        }
        Wanted::Crash if chosen.target.cache.is_some() => {
            Some(format!("{label}: a cache in front of a store keeps nothing\nhint: leave cached: out"))
        }
        _ => None,
    }
}

/// Processors are given to servers of ours only.
fn stays_where_it_is(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    let (Wanted::Job(args, _) | Wanted::Program { args, .. }) = wanted else { return None };
    let is_elsewhere = matches!(chosen.place, Some(Place::Tcp { .. } | Place::Unix(_)));
    let (label, name) = (&chosen.target.label, chosen.adapter.name);
    (args.how.pin && is_elsewhere)
        .then(|| format!("--pin: {label} is somebody else's server, which stays where it is\nhint: name `{name}`"))
}

/// A cache holds values, and sees neither what a store counts by itself nor the order of its keys.
fn not_behind_a_cache(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    let label = &chosen.target.cache.and(Some(&chosen.target.label))?;
    match needed(chosen, wanted)? {
        (Means::Tally, what) => Some(format!(
            "{label}: {what} has the store count by itself, and a cache cannot see that\nhint: leave cached: or {what} \
             out"
        )),
        (Means::Scan, what) => {
            Some(format!("{label}: {what} scans, and a cache does not know the order of keys\nhint: leave cached: out"))
        }
        (Means::Versions, _) => None,
    }
}

/// An op of the job, or of the way in which it asks, that the store has not.
fn lacks(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    let (means, what) = needed(chosen, wanted)?;
    // A cache has versions of its own.
    if chosen.target.cache.is_some() || !(chosen.adapter.lacks)(&chosen.target.settings).contains(&means) {
        return None;
    }
    let has = |adapter: &&&stores::Adapter| {
        adapter.role == Role::Store && !(adapter.lacks)(&Default::default()).contains(&means)
    };
    let having: Vec<&str> = stores::ALL.iter().filter(has).map(|adapter| adapter.name).collect();
    let (label, store, missing) = (&chosen.target.label, chosen.adapter.name, means.missing());
    Some(format!("{label}: {store} {missing}, which {what} needs\nhint: stores that can: {}", having.join(", ")))
}

/// What of this not every store has, and for what.
fn needed(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<(Means, String)> {
    let Wanted::Job(_, kind) = wanted else { return None };
    match chosen.via {
        Via::Native => Some((Means::Tally, format!("--via {}", chosen.via))),
        Via::Cas => Some((Means::Versions, format!("--via {}", chosen.via))),
        Via::Portable | Via::Batch => {
            let scans = kind.requests.as_ref().is_some_and(|requests| requests.reading == Reading::Scan);
            scans.then(|| (Means::Scan, format!("the job {}", kind.name)))
        }
    }
}

fn no_target_of_a_program(chosen: &Chosen, wanted: &Wanted<'_>) -> Option<String> {
    match wanted {
        Wanted::Program { args, command, answer } => exec::impossible(chosen, args, command, answer),
        _ => None,
    }
}
