//! The child's side of a check: opens the store, asks every probe, and tells the parent line by line. A store that
//! crashes or hangs takes only this process with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::journal::{self, Journal};
use super::probes::{ALONE, CLIENTS, Probe, TOGETHER, reopened};
use super::proxy::{Proxy, Through};
use super::talk::{KEYS, Learned, ProbeContext, ProbeSession, Probed, Stop, delete_all, refused};
use crate::harness::child::tell;
use crate::harness::plan::Chosen;
use crate::harness::{guest, serve, worker};
use crate::model::check::ProbeEnd;
use crate::model::op::Fault;
use crate::model::room::Headroom;
use crate::model::trial::{Cache, Configuration, Durability};
use crate::stores::cached::Cached;
use crate::stores::{self, Adapter, Launch, Login, Place, Store};

/// How often the parent hears that something was answered.
const BEAT: Duration = Duration::from_millis(200);
/// So many probes in a row that find nobody there end the check.
const GONE: u32 = 3;

/// What a child is handed on its standard input, as one line of JSON. Secrets travel here and nowhere else.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProberTask {
    store: String,
    place: Place,
    login: Login,
    settings: BTreeMap<String, String>,
    cache: Option<Cache>,
    patience_s: f64,
    /// A store by URL: only keys below our own name, and all of them deleted again.
    guest: bool,
    /// For sockets, the journal of keys, and what was asked last.
    directory: PathBuf,
    room: guest::MemoryQuery,
    /// Nothing else is to be done: the check itself was cut off.
    only_take_back: bool,
}

/// What a child tells its parent, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProberEvent {
    Facts {
        version: String,
        client_library: String,
    },
    /// What a server that is not ours said of its memory.
    Room(Headroom),
    Begins(String),
    Alive,
    Ended(ProbeEnd),
    Limit(String),
    /// The store could not be opened.
    Failed(String),
    Done {
        left_behind: Option<String>,
    },
}

impl ProberTask {
    pub fn new(chosen: &Chosen, launch: &Launch, directory: &Path, accepts_unchecked: bool) -> ProberTask {
        ProberTask {
            store: chosen.adapter.name.to_string(),
            place: launch.place.clone(),
            login: launch.login.clone(),
            settings: launch.settings.clone(),
            cache: chosen.target.cache,
            patience_s: launch.patience.as_secs_f64(),
            guest: chosen.place.is_some(),
            room: guest::MemoryQuery { accepts_unchecked, ..guest::MemoryQuery::default() },
            directory: directory.to_path_buf(),
            only_take_back: false,
        }
    }

    /// The order to take back what another one was cut off from taking back, soon.
    pub fn to_take_back(&self, patience: Duration) -> ProberTask {
        ProberTask { only_take_back: true, patience_s: patience.as_secs_f64(), ..self.clone() }
    }

    /// How it is opened for so many clients: some stores do otherwise for one than for several.
    fn launch(&self, clients: u32) -> Launch {
        Launch {
            place: self.place.clone(),
            durability: Durability::None,
            configuration: Configuration::Matched,
            settings: self.settings.clone(),
            login: self.login.clone(),
            clients,
            data_bytes: None,
            answer_bytes: None,
            patience: Duration::from_secs_f64(self.patience_s),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn journal(&self) -> PathBuf {
        self.directory.join("keys")
    }
}

/// What a child asked last.
pub fn last_asked(directory: &Path) -> String {
    let noted = std::fs::read(asked_in(directory)).unwrap_or_default();
    let noted = String::from_utf8_lossy(&noted).trim_end().to_string();
    if noted.is_empty() { "nothing yet".to_string() } else { noted }
}

fn asked_in(directory: &Path) -> PathBuf {
    directory.join("asked")
}

/// The whole life of a check's child. Returns when the parent has been told everything.
pub fn run() -> io::Result<()> {
    worker::abort_on_panic();
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let order: ProberTask = serde_json::from_str(&line)?;
    let Some(adapter) = stores::find(&order.store) else {
        tell(&ProberEvent::Failed(format!("no store {}", order.store)));
        return Ok(());
    };
    let done = if order.only_take_back { take_back(&order, adapter) } else { carry_out(&order, adapter) };
    tell(&match done {
        Ok(left_behind) => ProberEvent::Done { left_behind },
        Err(why) => {
            tell(&ProberEvent::Failed(why));
            ProberEvent::Done { left_behind: None }
        }
    });
    Ok(())
}

/// The plot of a check: one client, then several, then everything closed and opened again. Gives what could not be
/// taken back.
fn carry_out(order: &ProberTask, adapter: &Adapter) -> Result<Option<String>, String> {
    let launch = order.launch(1);
    if order.guest {
        must_have_room(order, adapter)?;
    }
    let store = open(order, adapter, 1)?;
    let facts = store.facts().map_err(|fault| serve::unreachable(&launch.place, &fault))?;
    let version = format!("{}{}", facts.product.map_or_else(String::new, |name| format!("{name} ")), facts.version);
    tell(&ProberEvent::Facts { version, client_library: facts.client_library });
    let cannot = |error: io::Error| format!("cannot write in {}: {error}", order.directory.display());
    let journal = Journal::create(&order.journal()).map_err(cannot)?;
    let asked = File::create(asked_in(&order.directory)).map_err(cannot)?;
    let proxy = match &launch.place {
        _ if order.cache.is_some() => None,
        Place::Tcp { .. } | Place::Unix(_) => {
            Some(Proxy::begin(&launch.place, &order.directory.join("p")).map_err(cannot)?)
        }
        Place::Memory | Place::Path(_) => None,
    };
    let through = proxy.as_ref().map(|proxy| Through { proxy, adapter, launch: &launch });
    let last_beat = Mutex::new(Instant::now());
    let pulse = || {
        let mut last_beat = last_beat.lock().expect("a beat does not panic");
        if last_beat.elapsed() >= BEAT {
            *last_beat = Instant::now();
            tell(&ProberEvent::Alive);
        }
    };
    let around = Around {
        guest: order.guest,
        journal: &journal,
        learned: &Mutex::new(Learned::default()),
        through: through.as_ref(),
        asked: &asked,
        pulse: &pulse,
    };
    let mut goes_on = probe_all(ALONE, &around.on(store.as_ref()));
    drop(store);
    let store = open(order, adapter, CLIENTS)?;
    goes_on = goes_on && probe_all(TOGETHER, &around.on(store.as_ref()));
    // What a store in memory held is gone with it, and that is no fault.
    if !goes_on || matches!(launch.place, Place::Memory) {
        return Ok(leave(&around.on(store.as_ref())));
    }
    tell(&ProberEvent::Begins(reopened::NAME.to_string()));
    let written = reopened::write(&around.on(store.as_ref()));
    drop(store);
    let store = open(order, adapter, 1)?;
    tell(&ended(written.and_then(|()| reopened::read(&around.on(store.as_ref())))));
    Ok(leave(&around.on(store.as_ref())))
}

/// What does not fit would drive its owner's records out.
fn must_have_room(order: &ProberTask, adapter: &Adapter) -> Result<(), String> {
    // A cache in front of it says nothing of memory.
    let store = (adapter.open)(&order.launch(1)).map_err(|fault| serve::unreachable(&order.place, &fault))?;
    let room = order.room.of_check(store.as_ref(), &order.store, &order.place).map_err(|fault| match fault {
        Fault::Unsupported(words) => words,
        fault => serve::unreachable(&order.place, &fault),
    })?;
    room.into_iter().for_each(|room| tell(&ProberEvent::Room(room)));
    Ok(())
}

/// The store for so many clients, behind a cache if there is to be one.
fn open(order: &ProberTask, adapter: &Adapter, clients: u32) -> Result<Box<dyn Store>, String> {
    let launch = order.launch(clients);
    let store = (adapter.open)(&launch).map_err(|fault| serve::unreachable(&launch.place, &fault))?;
    Ok(match order.cache {
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

/// Asks probe after probe. Whether there still is somebody to be asked.
fn probe_all(probes: &[Probe], ground: &ProbeContext<'_>) -> bool {
    let mut gone = 0;
    for probe in probes {
        tell(&ProberEvent::Begins(probe.name.to_string()));
        let begun = ProbeSession::begin(ground, probe.keys);
        gone = if begun.is_err() { gone + 1 } else { 0 };
        let probed = begun.and_then(|mut talk| (probe.ask)(&mut talk).and_then(|()| talk.flush()));
        let probed = if ground.guest { clear_after(ground, probed) } else { probed };
        tell(&ended(probed));
        ground.learned().limits.drain(..).for_each(|limit| tell(&ProberEvent::Limit(limit)));
        if gone == GONE {
            return false;
        }
    }
    true
}

/// Deletes a probe's keys. What cannot be deleted now stays in the journal, for the end.
fn clear_after(ground: &ProbeContext<'_>, probed: Probed) -> Probed {
    let cleared = ground.clear().map_err(|came| refused("delete of its keys".to_string(), came));
    probed.and(cleared)
}

fn ended(probed: Probed) -> ProberEvent {
    ProberEvent::Ended(match probed {
        Ok(()) => ProbeEnd::Right,
        Err(Stop::NotOffered(words)) => ProbeEnd::NotOffered(words),
        Err(Stop::Wrong(wrong)) => ProbeEnd::Wrong(wrong),
    })
}

/// In a store by URL, deletes what is still there of ours, and the tables that were made for us and hold
/// nothing now.
fn leave(ground: &ProbeContext<'_>) -> Option<String> {
    let cleared = ground.clear().and_then(|()| match ground.guest {
        true => leave_empty(ground.store).map_err(|fault| fault.to_string()),
        false => Ok(()),
    });
    cleared
        .err()
        .filter(|_| ground.guest)
        .map(|why| format!("what was written below {KEYS} could not all be removed: {why}"))
}

/// Tables with something in them are somebody's.
fn leave_empty(store: &dyn Store) -> Result<(), Fault> {
    if store.count()? == Some(0) { store.leave() } else { Ok(()) }
}

fn take_back(order: &ProberTask, adapter: &Adapter) -> Result<Option<String>, String> {
    // A child that wrote nothing has no journal.
    let keys = journal::read(&order.journal()).unwrap_or_default();
    if keys.is_empty() {
        return Ok(None);
    }
    let store = (adapter.open)(&order.launch(1)).map_err(|fault| fault.to_string())?;
    let mut session = store.session().map_err(|fault| fault.to_string())?;
    delete_all(session.as_mut(), &keys, &|| tell(&ProberEvent::Alive)).map_err(|fault| fault.to_string())?;
    drop(session);
    leave_empty(store.as_ref()).map_err(|fault| fault.to_string())?;
    Ok(None)
}
