//! Whether a store, as kvfair speaks to it, is correct: the parent's side of a check. A server is started where it
//! is ours, a child asks the probes, and what it wrote into a store by URL is taken back however it ended.

mod journal;
mod messages;
pub mod prober;
mod probes;
mod proxy;
mod talk;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::prober::{ProberEvent, ProberTask};
use super::child::{last_words, listen, spawn_self};
use super::guest::EvictionWatch;
use super::plan::Chosen;
use super::process::{Leashed, in_words};
use super::serve::{self, Served, Site, Unserved};
use super::signals::{self, Interrupt};
use super::trial::Interrupted;
use crate::model::check::{Checked, ProbeEnd, ProbeWrong, Reached};
use crate::model::trial::{Configuration, Durability};
use crate::stores::{Launch, Place, Role};

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
/// How long a child that has said its last may take to end.
const SLACK: Duration = Duration::from_secs(5);
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
    if let Some(came) = left_behind {
        let sent = "delete of every key of ours".to_string();
        checked.note("taking back what was written", ProbeWrong { sent, came, cause: None, step: None });
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
    let launch = launch(chosen, &data);
    let mut served = match chosen.adapter.server {
        Some(_) if chosen.place.is_none() => Some(served(chosen, &launch, &data, directory, interrupt)?),
        _ => None,
    };
    let launch = served.as_ref().map_or(launch.clone(), |served| served.reached(&launch));
    let order = ProberTask::new(chosen, &launch, directory, accepts_unchecked);
    let attended = attend(chosen, &launch, &order, interrupt, checked).map_err(failed);
    if let Some(ending) = served.as_mut().and_then(|served| served.ending_within(ENDING)) {
        checked.wrong.iter_mut().for_each(|finding| finding.came.push_str(&format!("; the server ended: {ending}")));
    }
    let stopped = served.map_or(Ok(()), Served::stop);
    let left_behind = attended?;
    stopped.map_err(|reason| Reached::Failed { reason })?;
    Ok(left_behind)
}

fn launch(chosen: &Chosen, data: &Path) -> Launch {
    let ours = match chosen.adapter.role {
        Role::Store => Place::Path(data.to_path_buf()),
        Role::Baseline | Role::Null | Role::Ceiling | Role::Faulty => Place::Memory,
    };
    Launch {
        place: chosen.place.clone().unwrap_or(ours),
        durability: Durability::None,
        configuration: Configuration::Matched,
        settings: chosen.target.settings.clone(),
        login: chosen.login.clone(),
        clients: probes::CLIENTS,
        data_bytes: None,
        answer_bytes: None,
        patience: PATIENCE,
    }
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

/// Starts the child and hears it until it is done, dead or silent. Gives what it could not take back.
fn attend(
    chosen: &Chosen,
    launch: &Launch,
    order: &ProberTask,
    interrupt: &Interrupt,
    checked: &mut Checked,
) -> Result<Option<String>> {
    let directory = order.directory();
    let log = directory.join("check.log");
    let (mut child, heard) = started(order, &log)?;
    let mut evictions = None;
    let (began, mut last_heard) = (Instant::now(), Instant::now());
    let mut probe = "opening".to_string();
    let cut_off = loop {
        match heard.recv_timeout(LOOK) {
            Ok(ProberEvent::Done { left_behind }) => {
                child.wait_at_most(SLACK);
                stop_if(evictions.as_ref().and_then(EvictionWatch::look_now), interrupt);
                // Who could not open it again could not take anything back either.
                let gave_up = chosen.place.is_some() && checked.reached != Reached::Probed;
                return Ok(if gave_up { take_back(order, directory) } else { left_behind });
            }
            Ok(ProberEvent::Room(room)) => {
                checked.limits.extend(room.unknown());
                let begin = |before| EvictionWatch::begin(chosen.adapter, launch, &chosen.target.label, before);
                evictions = room.evicted.map(begin);
            }
            Ok(told) => {
                last_heard = Instant::now();
                hear(told, &mut probe, checked);
            }
            Err(RecvTimeoutError::Timeout) if last_heard.elapsed() > SILENCE => {
                break Some(format!("nothing for {} s", SILENCE.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) if began.elapsed() > ALL => {
                break Some(format!("the check was not through after {} s", ALL.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let ending = child.wait_at_most(SLACK).map_or_else(|| "does not end".to_string(), in_words);
                break Some(format!("the process that asked died: {ending}{}", last_words(&log)));
            }
        }
        stop_if(evictions.as_ref().and_then(EvictionWatch::look), interrupt);
        if interrupt.is_set() {
            break None;
        }
    };
    child.kill();
    if let Some(came) = cut_off {
        let sent = prober::last_asked(directory);
        match checked.version.is_empty() {
            true => checked.reached = Reached::Failed { reason: format!("{probe}: {came}") },
            false => checked.note(&probe, ProbeWrong { sent, came, cause: None, step: None }),
        }
    }
    Ok(if chosen.place.is_some() { take_back(order, directory) } else { None })
}

/// Records that were driven out are missing, and no store is wrong for that.
fn stop_if(evicted: Option<String>, interrupt: &Interrupt) {
    evicted.into_iter().for_each(|why| interrupt.stop(why));
}

fn started(order: &ProberTask, log: &Path) -> Result<(Leashed, std::sync::mpsc::Receiver<ProberEvent>)> {
    let mut child = spawn_self("probe", log)?;
    let mut pipe = child.child().stdin.take().expect("stdin is piped");
    let mut line = serde_json::to_vec(order).expect("an order is plain data");
    line.push(b'\n');
    pipe.write_all(&line).context("the process that asks does not listen")?;
    let heard = listen::<ProberEvent>(child.child().stdout.take().expect("stdout is piped"));
    Ok((child, heard))
}

fn hear(told: ProberEvent, probe: &mut String, checked: &mut Checked) {
    match told {
        ProberEvent::Alive | ProberEvent::Room(_) | ProberEvent::Done { .. } => {}
        ProberEvent::Facts { version, client_library } => {
            (checked.version, checked.client_library) = (version, client_library)
        }
        ProberEvent::Begins(name) => *probe = name,
        ProberEvent::Limit(words) => checked.limits.push(words),
        ProberEvent::Failed(reason) => checked.reached = Reached::Failed { reason },
        ProberEvent::Ended(ProbeEnd::Right) => checked.probes += 1,
        ProberEvent::Ended(ProbeEnd::NotOffered(words)) => {
            if !checked.not_offered.contains(&words) {
                checked.not_offered.push(words);
            }
        }
        ProberEvent::Ended(ProbeEnd::Wrong(wrong)) => {
            checked.probes += 1;
            checked.note(probe, wrong);
        }
    }
}

/// A guest that was cut off could not take back what it wrote: a process of its own does so now, by its journal. Gives
/// what is left all the same.
fn take_back(order: &ProberTask, directory: &Path) -> Option<String> {
    let order = order.to_take_back(PATIENCE_AFTERWARDS);
    let unfinished = |why: &str| Some(format!("what was written below {} could not all be removed: {why}", talk::KEYS));
    let (mut child, heard) = match started(&order, &directory.join("sweep.log")) {
        Ok(started) => started,
        Err(error) => return unfinished(&format!("{error:#}")),
    };
    let began = Instant::now();
    while began.elapsed() < START {
        match heard.recv_timeout(LOOK) {
            Ok(ProberEvent::Done { left_behind }) => {
                child.wait_at_most(SLACK);
                return left_behind;
            }
            Ok(ProberEvent::Failed(why)) => return unfinished(&why),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return unfinished("the process that deletes died"),
        }
    }
    unfinished("deleting took too long")
}
