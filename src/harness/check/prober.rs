//! The child's side of a check: opens the store, asks every probe, and tells the parent line by line. A store that
//! crashes or hangs takes only this process with it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::journal::{self, Journal};
use super::probes::{ALONE, CLIENTS, Probe, TOGETHER, moved, reopened};
use super::proxy::{Proxy, Through};
use super::talk::{KEYS, Learned, ProbeContext, ProbeSession, Probed, Stop, delete_all, journal_failed, refused};
use crate::harness::child::{abort_on_panic, tell};
use crate::harness::serve;
use crate::harness::task::{Event, ProbeTask};
use crate::model::check::ProbeEnd;
use crate::model::op::{Fault, Op};
use crate::stores::cached::Cached;
use crate::stores::{self, Adapter, Launch, Place, Store};

/// How often the parent hears that something was answered.
const BEAT: Duration = Duration::from_millis(200);
/// So many probes in a row that find nobody there end the check.
const GONE: u32 = 3;

/// What a child asked last.
pub fn last_asked(directory: &Path) -> String {
    let noted = std::fs::read(asked_in(directory)).unwrap_or_default();
    let noted = String::from_utf8_lossy(&noted).trim_end().to_string();
    if noted.is_empty() { "nothing yet".to_string() } else { noted }
}

fn asked_in(directory: &Path) -> PathBuf {
    directory.join("asked")
}

fn journal_in(directory: &Path) -> PathBuf {
    directory.join("keys")
}

/// The whole life of a check's child. Returns when the parent has been told everything.
pub fn run(task: &ProbeTask) {
    abort_on_panic();
    let adapter = stores::find(&task.store).ok_or_else(|| format!("no store {}", task.store));
    let carry_out = if task.only_take_back { take_back } else { carry_out };
    tell(&adapter.and_then(|adapter| carry_out(task, adapter)).map_or_else(Event::Failed, |()| Event::Done));
}

/// The plot of a check: one client, then several, then everything closed and opened again.
fn carry_out(task: &ProbeTask, adapter: &Adapter) -> Result<(), String> {
    let launch = &task.launch;
    if task.guest {
        must_have_room(task, adapter)?;
    }
    let store = open(task, adapter, launch.clients)?;
    tell(&Event::Facts(store.facts().map_err(|fault| serve::unreachable(&launch.place, &fault))?));
    let cannot = |error: io::Error| format!("cannot write in {}: {error}", task.directory.display());
    let journal = Journal::create(&journal_in(&task.directory)).map_err(cannot)?;
    let asked = File::create(asked_in(&task.directory)).map_err(cannot)?;
    let proxy = match &launch.place {
        _ if task.cache.is_some() => None,
        // Of several servers clients go past it to all but one.
        _ if adapter.nodes(&launch.settings).is_some() => None,
        Place::Tcp { .. } | Place::Unix(_) => {
            Some(Proxy::begin(&launch.place, &task.directory.join("p")).map_err(cannot)?)
        }
        Place::Memory | Place::Path(_) => None,
    };
    let through = proxy.as_ref().map(|proxy| Through { proxy, adapter, launch });
    let last_beat = Mutex::new(Instant::now());
    let pulse = || {
        let mut last_beat = last_beat.lock().expect("a beat does not panic");
        if last_beat.elapsed() >= BEAT {
            *last_beat = Instant::now();
            tell(&Event::Alive);
        }
    };
    let around = Around {
        guest: task.guest,
        journal: &journal,
        learned: &Mutex::new(Learned::default()),
        through: through.as_ref(),
        asked: &asked,
        pulse: &pulse,
    };
    must_take_writes(&around.on(store.as_ref()), &journal_in(&task.directory))?;
    let mut goes_on = probe_all(ALONE, &around.on(store.as_ref()))?;
    drop(store);
    let store = open(task, adapter, CLIENTS)?;
    goes_on = goes_on && probe_all(TOGETHER, &around.on(store.as_ref()))?;
    if !task.guest && !launch.peers.is_empty() && task.cache.is_none() {
        goes_on = goes_on && probe_all(&[moved::MOVED], &around.on(store.as_ref()))?;
    }
    // What a store in memory held is gone with it, and that is no fault.
    if !goes_on || matches!(launch.place, Place::Memory) {
        leave(&around.on(store.as_ref()));
        return Ok(());
    }
    tell(&Event::Probe(reopened::NAME.to_string()));
    let written = reopened::write(&around.on(store.as_ref()));
    drop(store);
    let store = open(task, adapter, launch.clients)?;
    tell(&ended(written.and_then(|()| reopened::read(&around.on(store.as_ref()))))?);
    leave(&around.on(store.as_ref()));
    Ok(())
}

/// What does not fit would drive its owner's records out.
fn must_have_room(task: &ProbeTask, adapter: &Adapter) -> Result<(), String> {
    // A cache in front of it says nothing of memory.
    let place = &task.launch.place;
    let store = (adapter.open)(&task.launch).map_err(|fault| serve::unreachable(place, &fault))?;
    let room = task.room.of_check(store.as_ref(), &task.store, place).map_err(|fault| match fault {
        Fault::Unsupported(words) => words,
        fault => serve::unreachable(place, &fault),
    })?;
    room.into_iter().for_each(|room| tell(&Event::Room(room)));
    Ok(())
}

/// The store for so many clients, behind a cache if there is to be one. Some stores do otherwise for one than for
/// several.
fn open(task: &ProbeTask, adapter: &Adapter, clients: u32) -> Result<Box<dyn Store>, String> {
    let launch = Launch { clients, ..task.launch.clone() };
    let store = (adapter.open)(&launch).map_err(|fault| serve::unreachable(&launch.place, &fault))?;
    Ok(match task.cache {
        Some(cache) => Box::new(Cached::new(store, cache, clients)),
        None => store,
    })
}

/// What stays when the store is closed and opened again.
struct Around<'a> {
    guest: bool,
    journal: &'a Journal,
    learned: &'a Mutex<Learned>,
    through: Option<&'a Through<'a>>,
    asked: &'a File,
    pulse: &'a (dyn Fn() + Sync),
}

impl<'a> Around<'a> {
    fn on<'s>(&self, store: &'s dyn Store) -> ProbeContext<'s>
    where
        'a: 's,
    {
        let Around { guest, journal, learned, through, asked, pulse } = *self;
        ProbeContext { store, guest, journal, learned, through, asked, pulse }
    }
}

/// Sets, reads and deletes one key before the first probe: a server that only reads, or whose tables are its owner's,
/// has no wrong answers. It cannot be asked. No answer is judged here.
fn must_take_writes(ground: &ProbeContext<'_>, journal: &Path) -> Result<(), String> {
    let key = [KEYS, "first"].concat().into_bytes();
    let cannot = |what: &str, fault: &Fault| format!("it cannot be asked: {what}: {fault}");
    let mut session = ground.store.session().map_err(|fault| cannot("a new session", &fault))?;
    ground.journal.note(&key).map_err(|error| journal_failed(&error))?;
    for op in [Op::Set { key: &key, value: b"1", ttl_s: None }, Op::Get(&key), Op::Delete(&key)] {
        match session.ask(&op) {
            Ok(_) | Err(Fault::Unsupported(_)) => {}
            Err(fault) => {
                if matches!((&op, &fault), (Op::Set { .. }, Fault::Refused(_))) {
                    // Nothing was written, and nothing is to be taken back.
                    let _ = std::fs::remove_file(journal);
                }
                return Err(cannot(op.name(), &fault));
            }
        }
        (ground.pulse)();
    }
    session.flush().map_err(|fault| cannot("flush", &fault))?;
    ground.journal.take();
    Ok(())
}

/// Asks probe after probe. Whether the store can still be asked; an error where kvfair cannot go on.
fn probe_all(probes: &[Probe], ground: &ProbeContext<'_>) -> Result<bool, String> {
    let mut gone = 0;
    for probe in probes {
        tell(&Event::Probe(probe.name.to_string()));
        let begun = ProbeSession::begin(ground, probe.keys);
        gone = if begun.is_err() { gone + 1 } else { 0 };
        let probed = begun.and_then(|mut talk| (probe.ask)(&mut talk).and_then(|()| talk.flush()));
        let probed = if ground.guest { clear_after(ground, probed) } else { probed };
        tell(&ended(probed)?);
        ground.learned().limits.drain(..).for_each(|limit| tell(&Event::Limit(limit)));
        if gone == GONE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes a probe's keys. What cannot be deleted now stays in the journal, for the end.
fn clear_after(ground: &ProbeContext<'_>, probed: Probed) -> Probed {
    let cleared = ground.clear().map_err(|came| refused("delete of its keys".to_string(), came));
    probed.and(cleared)
}

fn ended(probed: Probed) -> Result<Event, String> {
    Ok(Event::Probed(match probed {
        Ok(()) => ProbeEnd::Right,
        Err(Stop::NotOffered(words)) => ProbeEnd::NotOffered(words),
        Err(Stop::Wrong(wrong)) => ProbeEnd::Wrong(wrong),
        Err(Stop::Unable(why)) => return Err(why),
    }))
}

/// In a store by URL, deletes what is still there of ours, and the tables that were made for us and hold
/// nothing now.
fn leave(ground: &ProbeContext<'_>) {
    let cleared = ground.clear().and_then(|()| match ground.guest {
        true => leave_empty(ground.store).map_err(|fault| fault.to_string()),
        false => Ok(()),
    });
    if let Some(why) = cleared.err().filter(|_| ground.guest) {
        tell(&Event::LeftBehind(format!("what was written below {KEYS} could not all be removed: {why}")));
    }
}

/// Tables with something in them are somebody's.
fn leave_empty(store: &dyn Store) -> Result<(), Fault> {
    if store.count()? == Some(0) { store.leave() } else { Ok(()) }
}

fn take_back(task: &ProbeTask, adapter: &Adapter) -> Result<(), String> {
    // A child that wrote nothing has no journal.
    let keys = journal::read(&journal_in(&task.directory)).unwrap_or_default();
    if keys.is_empty() {
        return Ok(());
    }
    let store = (adapter.open)(&task.launch).map_err(|fault| fault.to_string())?;
    let mut session = store.session().map_err(|fault| fault.to_string())?;
    delete_all(session.as_mut(), &keys, &|| tell(&Event::Alive)).map_err(|fault| fault.to_string())?;
    drop(session);
    leave_empty(store.as_ref()).map_err(|fault| fault.to_string())
}
