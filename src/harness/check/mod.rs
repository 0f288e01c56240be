//! Whether a store, as kvfair speaks to it, is correct: the parent's side of a check. A server is started where it
//! is ours, a child asks the probes, and what it wrote into a store by URL is taken back however it ended.

mod journal;
mod messages;
pub mod prober;
mod probes;
mod proxy;
mod talk;

use std::fs;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::child::Child;
use super::guest::{EvictionWatch, MemoryQuery};
use super::plan::Chosen;
use super::serve::{self, Served, Site, Unserved};
use super::signals::{self, Interrupt};
use super::task::{Event, ProbeTask, Task};
use super::trial::Interrupted;
use crate::model::check::{Checked, ProbeEnd, ProbeWrong, Reached};
use crate::stores::Launch;

/// How soon a Ctrl-C is seen.
const LOOK: Duration = Duration::from_millis(20);
/// The longest that a server may take to answer for the first time: one in Java takes its time.
const START: Duration = Duration::from_secs(90);
/// How long a socket may be silent, and how long a child: a library in it may wait without a socket of ours.
const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
/// The longest that all probes together may take. They take seconds, but for a server that is far away.
const ALL: Duration = Duration::from_secs(900);
/// How long a server that kvfair did not start may be silent while what was written is deleted again: Ctrl-C waits for
/// it.
const PATIENCE_AFTERWARDS: Duration = Duration::from_secs(5);
/// How long after a failure a server's own end is waited for.
const ENDING: Duration = Duration::from_millis(200);

/// Checks one target, with its files in `directory`, which goes away again.
pub fn check(
    chosen: &Chosen,
    directory: &Path,
    accepts_unchecked: bool,
    interrupt: &Interrupt,
) -> Result<Checked, Interrupted> {
    let began = Instant::now();
    let mut checked = Checked { target: chosen.target.label.clone(), ..Checked::default() };
    let left_behind = match attempt(chosen, directory, accepts_unchecked, interrupt, &mut checked) {
        Ok(left_behind) => left_behind,
        Err(reached) => {
            checked.reached = reached;
            None
        }
    };
    // What cannot be removed now goes with the scratch directory.
    let _ = fs::remove_dir_all(directory);
    checked.took_s = began.elapsed().as_secs_f64();
    if interrupt.is_set() {
        return Err(Interrupted { left_behind: left_behind.map(|what| format!("{}: {what}", checked.target)) });
    }
    match (left_behind, &mut checked.reached) {
        (Some(came), Reached::Failed { reason }) => *reason = format!("{reason}; {came}"),
        (Some(came), _) => {
            let sent = "delete of every key of ours".to_string();
            checked.note("taking back what was written", ProbeWrong { sent, came, ..ProbeWrong::default() });
        }
        (None, _) => {}
    }
    // Who was asked nothing that it understands is not right.
    if checked.reached == Reached::Probed && checked.probes == 0 && checked.wrong.is_empty() {
        checked.reached = Reached::Failed { reason: NOTHING_KNOWN.to_string() };
    }
    Ok(checked)
}

const NOTHING_KNOWN: &str = "the server knows none of the commands that were tried";

fn failed(error: anyhow::Error) -> Reached {
    Reached::Failed { reason: format!("{error:#}") }
}

/// A place, a server if need be, the child; then everything is stopped. Gives what could not be cleaned up.
fn attempt(
    chosen: &Chosen,
    directory: &Path,
    accepts_unchecked: bool,
    interrupt: &Interrupt,
    checked: &mut Checked,
) -> Result<Option<String>, Reached> {
    let data = directory.join("data");
    let made = fs::create_dir_all(&data).and_then(|()| fs::create_dir_all(directory.join("p")));
    let made = made.and_then(|()| data.canonicalize()).with_context(|| format!("cannot make {}", data.display()));
    let data = made.map_err(failed)?;
    let answer_bytes = Some(probes::largest_tried(chosen.place.is_some()) as u64);
    let launch = Launch { clients: probes::CLIENTS, answer_bytes, ..chosen.launch(&data, PATIENCE) };
    let mut served = match chosen.adapter.server {
        Some(_) if chosen.place.is_none() => Some(served(chosen, &launch, &data, directory, interrupt)?),
        _ => None,
    };
    let launch = served.as_ref().map_or(launch.clone(), |served| served.reached(&launch));
    let task = ProbeTask {
        store: chosen.adapter.name.to_string(),
        launch: Launch { clients: 1, ..launch },
        cache: chosen.target.cache,
        guest: chosen.place.is_some(),
        room: MemoryQuery { accepts_unchecked, ..MemoryQuery::default() },
        directory: directory.to_path_buf(),
        only_take_back: false,
    };
    let attended = attend(chosen, &task, interrupt, checked).map_err(failed);
    if let Some(ending) = served.as_mut().and_then(|served| served.ending_within(ENDING)) {
        checked.wrong.iter_mut().for_each(|finding| finding.came.push_str(&format!("; the server ended: {ending}")));
    }
    let stopped = served.map_or(Ok(()), Served::stop);
    let left_behind = attended?;
    stopped.map_err(|reason| Reached::Failed { reason })?;
    Ok(left_behind)
}

fn served(
    chosen: &Chosen,
    launch: &Launch,
    data: &Path,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<Served, Reached> {
    let site = Site { data, scratch: directory, prepared: None, is_guarded: true };
    let served = serve::start(&[], chosen.adapter, chosen.target.transport, launch, site, START, interrupt);
    served.map_err(|unserved| match unserved {
        Unserved::Missing(reason) => Reached::Missing { reason, get_it: chosen.adapter.get_it.to_string() },
        Unserved::Failed(reason) => Reached::Missing { reason, get_it: String::new() },
        Unserved::Interrupted => Reached::Failed { reason: signals::INTERRUPTED.to_string() },
    })
}

/// Why a child was not heard to its end.
struct CutOff {
    came: String,
    /// The store is to blame: no answer came, or its own code, which runs in the child, ended that.
    by_store: bool,
}

/// Starts the child and hears it until it is done, dead or silent. Gives what it could not take back.
fn attend(chosen: &Chosen, task: &ProbeTask, interrupt: &Interrupt, checked: &mut Checked) -> Result<Option<String>> {
    let mut child = started(task, "check.log")?;
    let (mut evictions, mut left_behind) = (None, None);
    let (began, mut last_heard) = (Instant::now(), Instant::now());
    let mut probe = "opening".to_string();
    let cut_off = loop {
        match child.next(LOOK) {
            Ok(told @ (Event::Done | Event::Failed(_))) => {
                hear(told, &mut probe, checked);
                child.end();
                stop_if(evictions.as_ref().and_then(EvictionWatch::look_now), interrupt);
                // Who could not open it again could not take anything back either.
                let gave_up = chosen.place.is_some() && checked.reached != Reached::Probed;
                return Ok(if gave_up { take_back(task) } else { left_behind });
            }
            Ok(Event::LeftBehind(what)) => left_behind = Some(what),
            Ok(Event::Room(room)) => {
                checked.limits.extend(room.unknown());
                let begin = |before| EvictionWatch::begin(chosen.adapter, &task.launch, &chosen.target.label, before);
                evictions = room.evicted.map(begin);
            }
            Ok(told) => {
                last_heard = Instant::now();
                hear(told, &mut probe, checked);
            }
            Err(RecvTimeoutError::Timeout) if last_heard.elapsed() > SILENCE => {
                break Some(CutOff { came: format!("nothing for {} s", SILENCE.as_secs()), by_store: true });
            }
            Err(RecvTimeoutError::Timeout) if began.elapsed() > ALL => {
                break Some(CutOff {
                    came: format!("the check was not through after {} s", ALL.as_secs()),
                    by_store: false,
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let came = format!("the process that asked died: {}", child.ending());
                break Some(CutOff { came, by_store: task.holds_store() && !child.was_killed() });
            }
        }
        stop_if(evictions.as_ref().and_then(EvictionWatch::look), interrupt);
        if interrupt.is_set() {
            break None;
        }
    };
    child.kill();
    if let Some(CutOff { came, by_store }) = cut_off {
        let sent = prober::last_asked(&task.directory);
        match by_store && !checked.version.is_empty() {
            true => checked.note(&probe, ProbeWrong { sent, came, ..ProbeWrong::default() }),
            false => checked.reached = Reached::Failed { reason: format!("{probe}: sent {sent}; {came}") },
        }
    }
    Ok(if chosen.place.is_some() { take_back(task) } else { None })
}

/// Records that were driven out are missing, and no store is wrong for that.
fn stop_if(evicted: Option<String>, interrupt: &Interrupt) {
    evicted.into_iter().for_each(|why| interrupt.stop(why));
}

fn started(task: &ProbeTask, log: &str) -> Result<Child> {
    Child::start(&[], &Task::Probe(task.clone()), &task.directory.join(log))
}

fn hear(told: Event, probe: &mut String, checked: &mut Checked) {
    match told {
        Event::Alive | Event::Done => {}
        Event::Facts(facts) => {
            let product = facts.product.map_or_else(String::new, |name| format!("{name} "));
            checked.version = format!("{product}{}", facts.version);
            checked.client_library = facts.client_library;
        }
        Event::Probe(name) => *probe = name,
        Event::Limit(words) => checked.limits.push(words),
        Event::Failed(reason) => checked.reached = Reached::Failed { reason },
        Event::Probed(ProbeEnd::Right) => checked.probes += 1,
        Event::Probed(ProbeEnd::NotOffered(words)) => {
            if !checked.not_offered.contains(&words) {
                checked.not_offered.push(words);
            }
        }
        Event::Probed(ProbeEnd::Wrong(wrong)) => {
            checked.probes += 1;
            checked.note(probe, wrong);
        }
        told => checked.reached = Reached::Failed { reason: format!("the process that asks said {told:?}") },
    }
}

/// A guest that was cut off could not take back what it wrote: a process of its own does so now, by its journal. Gives
/// what is left all the same.
fn take_back(task: &ProbeTask) -> Option<String> {
    let launch = Launch { patience: PATIENCE_AFTERWARDS, ..task.launch.clone() };
    let task = ProbeTask { only_take_back: true, launch, ..task.clone() };
    let unfinished = |why: &str| Some(format!("what was written below {} could not all be removed: {why}", talk::KEYS));
    let mut child = match started(&task, "sweep.log") {
        Ok(child) => child,
        Err(error) => return unfinished(&format!("{error:#}")),
    };
    let began = Instant::now();
    while began.elapsed() < START {
        match child.next(LOOK) {
            Ok(Event::Done) => {
                child.end();
                return None;
            }
            Ok(Event::Failed(why)) => return unfinished(&why),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return unfinished("the process that deletes died"),
        }
    }
    unfinished("deleting took too long")
}
