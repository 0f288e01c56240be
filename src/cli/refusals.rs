//! What cannot work with a target, and is refused before anything starts: one table for all commands.

use anyhow::{Result, anyhow};

use super::args::RunArgs;
use super::{Usage, absent, complain, replicas};
use crate::harness::pin::{self, PROCESSORS};
use crate::harness::plan::Chosen;
use crate::harness::program;
use crate::harness::serve::{self, PROGRAM};
use crate::jobs::lookup::LOOKUP;
use crate::jobs::ngrams::NGRAMS;
use crate::jobs::{EndState, JobKind, Reading};
use crate::model::trial::{Answer, Durability, NgramUnit, Transport, Via};
use crate::stores::{self, Adapter, Means, Place, Role, batch};

/// What is to be done with targets.
pub enum Intent<'a> {
    Job(&'a RunArgs, &'a JobKind),
    Program { args: &'a RunArgs, command: &'a str, answer: &'a Answer },
    FindMax,
    Growth,
    Levers,
    Crash,
    Failover,
    Check,
}

/// Why a target cannot be had for it, and what to do.
type Rule = fn(&Chosen, &Intent<'_>) -> Option<String>;

const RULES: &[Rule] = &[
    no_program,
    of_several_servers,
    not_started_here,
    is_only_read,
    counts_at_once,
    holds_nothing,
    stays_where_it_is,
    no_processors,
    not_behind_a_cache,
    one_at_a_time,
    lacks,
    replicas::none_to_promote,
    replicas::refused,
    no_target_of_a_program,
];

/// The first thing that cannot work with targets that were named. Where one target was named it cannot be left out.
pub fn refuse(chosen: &[Chosen], wanted: &Intent<'_>) -> Result<()> {
    let Some(what) = chosen.iter().find_map(|one| why(one, wanted)) else { return Ok(()) };
    let is_alone = chosen.len() < 2;
    let hint = |line: &&str| line.strip_prefix("hint: ").is_some_and(|hint| is_alone && hint == LEAVE_IT_OUT);
    let lines: Vec<&str> = what.lines().filter(|line| !hint(line)).collect();
    Err(anyhow!(Usage(lines.join("\n"))))
}

/// The hint where the other targets can be had.
const LEAVE_IT_OUT: &str = "leave this target out";

/// Without those that nobody named and that cannot be had, each with a line that says why. Where nothing is left, the
/// first of them is the mistake.
pub fn leave_out(chosen: Vec<Chosen>, wanted: &Intent<'_>) -> Result<Vec<Chosen>> {
    let (out, left): (Vec<Chosen>, Vec<Chosen>) = chosen.into_iter().partition(|one| why(one, wanted).is_some());
    if left.iter().all(|one| one.target.baseline) {
        refuse(&out, wanted)?;
    }
    say_left_out(&out, wanted);
    Ok(left)
}

/// Of one target in several ways of asking: without those that it lacks, each with a line that says why. A target that
/// has none of them stays whole, to be refused.
pub fn possible_ways(ways: Vec<Chosen>, wanted: &Intent<'_>) -> Vec<Chosen> {
    let (out, left): (Vec<Chosen>, Vec<Chosen>) = ways.into_iter().partition(|way| why(way, wanted).is_some());
    if left.is_empty() {
        return out;
    }
    say_left_out(&out, wanted);
    left
}

fn say_left_out(out: &[Chosen], wanted: &Intent<'_>) {
    for why in out.iter().filter_map(|one| why(one, wanted)) {
        let why = why.lines().next().unwrap_or_default();
        complain(&format!("kvfair: left out: {why}"));
    }
}

/// Why it cannot be had; nothing where it can.
pub fn why(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    RULES.iter().find_map(|rule| rule(chosen, wanted))
}

/// Another build of a server must be a file that can be run.
fn no_program(chosen: &Chosen, _: &Intent<'_>) -> Option<String> {
    let (label, program) = (&chosen.target.label, chosen.target.settings.get(PROGRAM)?);
    let why = serve::no_program(program.as_ref())?;
    Some(format!("{label}: {program} is no program that can be run: {why}\nhint: ?{PROGRAM}= takes a server's path"))
}

/// Only stores of ours are killed, or asked so much.
fn not_started_here(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let (what, command) = match wanted {
        Intent::Growth => ("asked so much", "growth"),
        Intent::Levers => ("changed", "levers JOB"),
        Intent::Crash => ("killed", "crash"),
        Intent::Failover => ("killed", "crash --failover"),
        _ => return None,
    };
    chosen.place.as_ref()?;
    let (label, adapter) = (&chosen.target.label, chosen.adapter);
    let hint = match wanted {
        Intent::Failover => format!("kvfair {command} {}", replicas::example(adapter)),
        _ if is_by_url_only(adapter) => started_here(adapter),
        _ => format!("kvfair {command} {}", adapter.name),
    };
    Some(format!("{label}: only stores that are started here are {what}\nhint: {hint}"))
}

/// A cluster of which a URL names one server: kvfair starts none of that name.
fn is_by_url_only(adapter: &Adapter) -> bool {
    adapter.nodes(&Default::default()) == Some(0)
}

/// What kvfair starts in the place of a store by URL.
fn started_here(adapter: &Adapter) -> String {
    if is_by_url_only(adapter) { adapter.get_it.to_string() } else { format!("name `{}`", adapter.name) }
}

/// What is filled once and then only read is for the job that reads so.
fn is_only_read(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let reads = matches!(wanted, Intent::Job(_, kind) if kind.name == LOOKUP.name);
    let (label, name, job) = (&chosen.target.label, chosen.adapter.name, LOOKUP.name);
    (chosen.adapter.role == Role::ReadOnly && !reads)
        .then(|| format!("{label} is filled once and then only read\nhint: kvfair run {job} {name}"))
}

/// A batch engine does one job in one pass, and leaves nothing to be kept.
fn counts_at_once(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let engine = batch::engine(chosen.adapter.name)?;
    let (label, job) = (&chosen.target.label, NGRAMS.name);
    let Some(how) = (match wanted {
        Intent::Job(args, kind) if kind.name == job => Some(&args.how),
        _ => None,
    }) else {
        return Some(format!("{label} counts n-grams, all at once\nhint: kvfair run {job} {}", engine.name));
    };
    let out = |what: &str| Some(format!("{label} {what}"));
    match () {
        () if chosen.target.cache.is_some() => out("uses no store, so it cannot have a cache\nhint: leave cached: out"),
        () if how.keep.is_some() => out("has no data that could be kept\nhint: leave --keep or the batch engine out"),
        () if engine.words_only && how.unit == Some(NgramUnit::Char) => {
            out("counts words, not characters\nhint: leave it out, or --unit word")
        }
        () => None,
    }
}

/// What there is to read, to check or to be kept.
fn holds_nothing(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let label = &chosen.target.label;
    match wanted {
        Intent::Job(args, _) if args.how.load.read_only && chosen.place.is_none() => {
            Some(format!("--read-only: {label} is started here and holds nothing\nhint: name a store by URL"))
        }
        Intent::Job(args, _) if args.how.keep.is_some() && chosen.kept.is_some() => {
            Some(format!("--keep: {label} is kept already\nhint: leave --keep out"))
        }
        Intent::FindMax if chosen.target.baseline => Some(format!(
            "{label} is a baseline: find-max searches the highest rate of a store\nhint: name a store, as in redis"
        )),
        Intent::Levers if chosen.target.baseline => {
            Some(format!("{label} is a baseline: it has nothing to change\nhint: name a store, as in redis"))
        }
        Intent::Check if matches!(chosen.adapter.role, Role::Null | Role::Ceiling) => {
            Some(format!("{label} holds nothing on purpose: there is nothing to check\nhint: {LEAVE_IT_OUT}"))
        }
        Intent::Crash | Intent::Failover if chosen.target.cache.is_some() => {
            Some(format!("{label}: a cache in front of a store keeps nothing\nhint: leave cached: out"))
        }
        _ => None,
    }
}

/// Processors are given to servers of ours only, and only these are restarted.
fn stays_where_it_is(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let (Intent::Job(args, _) | Intent::Program { args, .. }) = wanted else { return None };
    let is_elsewhere = matches!(chosen.place, Some(Place::Tcp { .. } | Place::Unix(_)));
    let (label, hint) = (&chosen.target.label, started_here(chosen.adapter));
    if args.how.readers.is_some_and(|readers| readers > 1) {
        let is_shared = matches!(chosen.adapter.role, Role::Store | Role::ReadOnly) && !is_elsewhere;
        let what = "several processes read only what kvfair has filled in a store of its own";
        return (!is_shared).then(|| format!("--readers: {label}: {what}\nhint: {LEAVE_IT_OUT}"));
    }
    if args.how.cold && is_elsewhere {
        return Some(format!("--cold: kvfair did not start {label} and cannot restart it\nhint: {hint}"));
    }
    (args.how.pin && is_elsewhere)
        .then(|| format!("--pin: kvfair did not start {label} and cannot pin it\nhint: {hint}"))
}

/// What is done with one server, and not yet with several that are one store.
fn of_several_servers(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    chosen.adapter.nodes(&chosen.target.settings)?;
    let label = &chosen.target.label;
    let refused = |what: &str, hint: &str| Some(format!("{label} is several servers: {what}\nhint: {hint}"));
    let args = match wanted {
        Intent::Crash | Intent::Failover => return refused("crash kills one", LEAVE_IT_OUT),
        Intent::Levers => return refused("levers change one", LEAVE_IT_OUT),
        Intent::Program { .. } => return refused("--exec is given the address of one", LEAVE_IT_OUT),
        Intent::FindMax | Intent::Growth | Intent::Check => return None,
        Intent::Job(args, _) => args,
    };
    let how = &args.how;
    let is_deep = chosen.asking.depth.or(how.load.depth).is_some_and(|depth| depth > 1);
    match () {
        () if how.keep.is_some() => refused("--keep keeps the data of one", "leave --keep out"),
        () if how.cold => refused("--cold restarts one", "leave --cold out"),
        () if how.readers.is_some_and(|readers| readers > 1) => refused("--readers reopen one", "leave --readers out"),
        () if how.rtt.is_some() => refused("--rtt has a proxy before one", "leave --rtt out"),
        () if how.load.reconnect => refused("--reconnect opens connections to one again", "leave --reconnect out"),
        () if is_deep => refused("a client asks them one question at a time", "leave --depth out"),
        () => None,
    }
}

/// A server gets some of the processors that there are, and gets them once.
fn no_processors(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let (label, share) = (&chosen.target.label, chosen.target.settings.get(PROCESSORS)?);
    if matches!(wanted, Intent::Job(args, _) | Intent::Program { args, .. } if args.how.pin) {
        return Some(format!(
            "{label}: --pin gives each server half of the processors\nhint: leave ?{PROCESSORS}= out"
        ));
    }
    pin::of_a_target(share).err().map(|why| format!("{label}: ?{PROCESSORS}={share} {why}"))
}

/// A cache holds values, and sees neither what a store counts by itself nor the order of its keys.
fn not_behind_a_cache(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
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

/// A cache in the client answers each request before the next one is asked.
fn one_at_a_time(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let Intent::Job(args, _) = wanted else { return None };
    let depth = chosen.asking.depth.or(args.how.load.depth).filter(|depth| *depth > 1)?;
    let label = &chosen.target.cache.and(Some(&chosen.target.label))?;
    Some(format!("{label}: a cache answers one request at a time, not {depth}\nhint: leave cached: or --depth out"))
}

/// An op of the job, or of the way in which it asks, that the store has not.
fn lacks(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    let (means, what) = needed(chosen, wanted)?;
    // A cache has versions of its own.
    if chosen.target.cache.is_some() || !(chosen.adapter.lacks)(&chosen.target.settings).contains(&means) {
        return None;
    }
    let has =
        |adapter: &&&Adapter| adapter.role == Role::Store && !(adapter.lacks)(&Default::default()).contains(&means);
    let (label, store, missing) = (&chosen.target.label, chosen.adapter.name, means.missing());
    let having = absent::here_first(stores::ALL.iter().filter(has).map(|adapter| &**adapter));
    Some(format!("{label}: {store} {missing}, which {what} needs\nhint: stores that can: {having}"))
}

/// What of this not every store has, and for what.
fn needed(chosen: &Chosen, wanted: &Intent<'_>) -> Option<(Means, String)> {
    let Intent::Job(_, kind) = wanted else { return None };
    match chosen.via {
        Via::Native => {
            let tallies = (kind.end_state)(chosen.via) == EndState::Tallies;
            tallies.then(|| (Means::Tally, format!("--via {}", chosen.via)))
        }
        Via::Cas => Some((Means::Versions, format!("--via {}", chosen.via))),
        Via::Portable | Via::Batch => {
            let scans = kind.requests.as_ref().is_some_and(|requests| requests.reading == Reading::Scan);
            scans.then(|| (Means::Scan, format!("the job {}", kind.name)))
        }
    }
}

fn no_target_of_a_program(chosen: &Chosen, wanted: &Intent<'_>) -> Option<String> {
    match wanted {
        Intent::Program { args, command, answer } => impossible(chosen, args, command, answer),
        _ => None,
    }
}

/// Why this cannot be run on that target.
fn impossible(chosen: &Chosen, args: &RunArgs, command: &str, answer: &Answer) -> Option<String> {
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
