//! The child's side of a trial: opens the store, drives the job, reads the end state back, and tells the parent of it.
//! It stops at every phase boundary until the parent has looked at all processes and says go.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::agents::Team;
use super::child::{abort_on_panic, tell};
use super::gates::queue::{self, Waits};
use super::input::DataFile;
use super::oracle::Played;
use super::task::{Event, PartSeen, TrialStep, TrialTask};
use super::ttl_shim::TtlShim;
use super::{files, oracle, sweep};
use crate::draw::mix;
use crate::jobs::{self, Job, JobKind, LOAD_BYTES, LOAD_DEPTH, Part};
use crate::loadgen::pace::Pace;
use crate::loadgen::replicated::Replicas;
use crate::loadgen::sockets::{self, Conduct, Threads};
use crate::loadgen::{LoadStats, Progress, Stopped, Work, threads};
use crate::model::load::At;
use crate::model::metrics::Metrics;
use crate::model::op::{Fault, Wrong};
use crate::model::record::{CutOff, Phase, Usage};
use crate::stores::cached::Cached;
use crate::stores::store_stats::StoreStats;
use crate::stores::{self, Adapter, Launch, Place, Role, Store};

pub mod agent;
mod beat;
mod drawn;
mod entry;
mod followers;
mod readers;
mod supervisor;
mod team;
mod verdict;

use beat::Beat;
use verdict::{compare, judge, tell_verdict};

/// How often the parent hears how far we are.
const BEAT: Duration = Duration::from_millis(100);

/// Clients that load: an engine in this process has one writer, and a server's connection takes many questions.
const LOADERS: u32 = 1;

/// What ends a trial early.
enum Early {
    Refused(String),
    Failed(String),
    Wrong(Wrong),
}

impl Early {
    /// The first cause stays the first.
    fn and(self, what: &str) -> Early {
        match self {
            Early::Refused(reason) => Early::Refused(format!("{reason}; {what}")),
            Early::Failed(reason) => Early::Failed(format!("{reason}; {what}")),
            Early::Wrong(wrong) => Early::Wrong(Wrong { found: format!("{}; {what}", wrong.found), ..wrong }),
        }
    }
}

/// The whole life of a trial's child. Returns when the parent has been told everything.
pub fn run(trial: &TrialTask) {
    abort_on_panic();
    let carried_out = trial.program.as_ref().map_or_else(|| carry_out(trial), |own| supervisor::carry_out(trial, own));
    tell(&last_word(carried_out));
}

fn last_word(carried_out: Result<(), Early>) -> Event {
    match carried_out {
        Ok(()) => Event::Done,
        Err(Early::Refused(reason)) => Event::Refused(reason),
        Err(Early::Failed(reason)) => Event::Failed(reason),
        Err(Early::Wrong(wrong)) => Event::Wrong(wrong),
    }
}

fn known(trial: &TrialTask) -> Result<(&'static Adapter, &'static JobKind), Early> {
    let adapter = stores::find(&trial.store).ok_or_else(|| Early::Failed(format!("no store {}", trial.store)))?;
    let kind = jobs::find(&trial.job.name).ok_or_else(|| Early::Failed(format!("no job {}", trial.job.name)))?;
    Ok((adapter, kind))
}

/// The plot of a trial.
fn carry_out(trial: &TrialTask) -> Result<(), Early> {
    let (adapter, kind) = known(trial)?;
    let job = (kind.open)(&trial.job);
    let source = DataFile::new(&trial.input, &trial.job.data).with_expected(oracle::answers_beside(&trial.expected));
    let launch = &trial.launch;
    let take_back = || sweep::clear(job.as_ref(), &trial.points, &source, launch, adapter);
    if trial.only_take_back {
        return take_back().map_err(Early::Failed);
    }
    let store = (adapter.open)(launch).map_err(|fault| reach(&launch.place, &fault))?;
    if trial.guest {
        let look = || {
            let looked = sweep::holds_none(job.as_ref(), &trial.points, &source, launch, store.as_ref());
            looked.map_err(Early::Refused)
        };
        entry::must_be_empty(store.as_ref(), trial, look)?;
        entry::must_have_room(store.as_ref(), trial)?;
    }
    if trial.step == TrialStep::Read && trial.job.lookup.readers > 1 {
        return readers::read_by_several(trial, adapter, kind, store);
    }
    let one_of = match trial.step {
        TrialStep::Reader(index) => Some(readers::OneOf { job: job.as_ref(), index, of: trial.job.lookup.readers }),
        _ => None,
    };
    let drawn = drawn::job(trial, kind, store.as_ref())?;
    let job: &dyn Job = drawn.as_ref().map_or(job.as_ref(), |drawn| drawn);
    let job: &dyn Job = one_of.as_ref().map_or(job, |one| one);
    let evicted_before = if job.fills() { evicted(store.as_ref())? } else { 0 };
    let (team, replicas) = (team::started(trial)?, followers::open(adapter, launch)?);
    let stage = Stage { team, replicas, ..Stage::new(trial, adapter, job, &source) };
    let (mut store, worked) = stage.work(through(trial, adapter, store)?);
    let may_still_write = worked.is_err() && stage.team.as_ref().is_some_and(|team| team.borrow().is_elsewhere());
    if matches!(trial.step, TrialStep::Fill | TrialStep::Reader(_)) {
        return worked;
    }
    let worked = worked.map_err(|early| entry::or_empty(early, store.as_ref(), trial));
    let compared = worked.and_then(|()| {
        let is_embedded = matches!(launch.place, Place::Path(_));
        if is_embedded || trial.through.is_some() {
            // What was only in the library's memory must not count as kept; past the proxy reading back is quick.
            drop(store);
            if is_embedded {
                boundary(&Event::Closed);
            }
            store =
                (adapter.open)(launch).map_err(|fault| Early::Failed(format!("could not be opened again: {fault}")))?;
        }
        let evicted = if job.fills() { evicted(store.as_ref())?.saturating_sub(evicted_before) } else { 0 };
        let expires = store.expires() && trial.cache.is_none();
        let asked = oracle::TrialCounts { misses: stage.misses.get(), evicted, expires };
        let played = stage.played.borrow();
        let judge = |store: &dyn Store| judge(trial, adapter, kind, store, asked, &played);
        tell_verdict(followers::judge(stage.replicas.as_ref(), store.as_ref(), judge)?);
        Ok(())
    });
    match if trial.guest && stage.has_begun.get() { take_back() } else { Ok(()) } {
        Ok(()) => {
            // What an agent that is lost writes from now on is left to `kvfair clean`.
            if !may_still_write {
                tell(&Event::TakenBack);
            }
            compared
        }
        Err(what) => Err(compared.err().map_or(Early::Failed(what.clone()), |early| early.and(&what))),
    }
}

/// The store as it is reached through the proxy, where there is one.
fn through(trial: &TrialTask, adapter: &Adapter, store: Box<dyn Store>) -> Result<Box<dyn Store>, Early> {
    let Some(place) = &trial.through else { return Ok(store) };
    drop(store);
    (adapter.open)(&Launch { place: place.clone(), ..trial.launch.clone() }).map_err(|fault| reach(place, &fault))
}

fn reach(place: &Place, fault: &Fault) -> Early {
    match fault {
        Fault::Unsupported(what) => Early::Refused(what.clone()),
        fault => Early::Failed(super::serve::unreachable(place, fault)),
    }
}

/// What the phases of a trial share.
struct Stage<'a> {
    trial: &'a TrialTask,
    adapter: &'a Adapter,
    job: &'a dyn Job,
    source: &'a DataFile,
    replicas: Option<Replicas>,
    /// Units of the phases that were measured so far.
    finished: Cell<u64>,
    misses: Cell<u64>,
    /// What was written at each point so far.
    played: RefCell<Vec<Played>>,
    /// Who drives the clients of what is measured, where that is not this process.
    team: Option<RefCell<Team>>,
    /// Processes that share the generator's half of the processors.
    beside: u32,
    /// A part was begun: something may have been written.
    has_begun: Cell<bool>,
}

/// Clients to be driven in this process.
struct Drive<'a> {
    job: &'a dyn Job,
    part: Part,
    at: At,
    pace: Option<Pace>,
    doubled: bool,
    /// How far it is is told even while all clients wait.
    always_beats: bool,
}

impl<'a> Stage<'a> {
    fn new(trial: &'a TrialTask, adapter: &'a Adapter, job: &'a dyn Job, source: &'a DataFile) -> Stage<'a> {
        let (finished, misses, played) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
        let (replicas, team, beside, has_begun) = (None, None, 1, Cell::new(false));
        Stage { trial, adapter, job, source, replicas, finished, misses, played, team, beside, has_begun }
    }

    /// Works on the store, behind a cache if there is to be one. Gives back the store itself, to be looked into.
    fn work(&self, store: Box<dyn Store>) -> (Box<dyn Store>, Result<(), Early>) {
        match self.trial.cache {
            None => {
                let worked = match &self.replicas {
                    None => self.phases(store.as_ref(), store.as_ref()),
                    Some(replicas) => self.phases(&replicas.of(store.as_ref()), store.as_ref()),
                };
                (store, worked)
            }
            Some(cache) => {
                let cached = Cached::new(store, cache, self.trial.launch.clients);
                let worked = self.phases(&cached, &cached);
                (cached.into_inner(), worked)
            }
        }
    }

    /// Load, everything that is measured, final flush. What a store with replicas is loaded with goes to its primary
    /// alone, `loaded`, over one connection with many writes under way.
    fn phases(&self, store: &dyn Store, loaded: &dyn Store) -> Result<(), Early> {
        let launch = &self.trial.launch;
        let facts = store.facts().map_err(|fault| reach(&launch.place, &fault))?;
        let servers = facts.servers.len().max(1) + launch.replicas.len();
        tell(&Event::Facts(facts));
        files::allow(launch.clients * servers as u32).map_err(Early::Refused)?;
        let shim = TtlShim::new(store, self.trial.is_strict);
        let store: &dyn Store = if self.job.fills() && !store.expires() { &shim } else { store };
        let loaded = if self.replicas.is_some() { loaded } else { store };
        let (load, measured, asked) = self.parts();
        let mut stats_before = None;
        // Values of another size are other records.
        let sized = self.trial.job.load.as_ref().is_some_and(|load| !load.sizes.is_empty());
        for (place, &at) in self.trial.points.iter().enumerate() {
            for &part in load.iter().filter(|_| place == 0 || sized) {
                self.drive(loaded, part, At { number: 0, clients: LOADERS, rate: None, batch: 1, ..at }, false)?;
                self.played.borrow_mut().clear();
                if self.trial.job.load.is_none() {
                    self.flush(part, store)?;
                }
            }
            for &part in &measured {
                // Once, after the first loading: no phase is under way.
                stats_before.get_or_insert_with(|| store.stats());
                let ended = self.drive(store, part, at, false)?;
                // At its most clients a sweep is asked once more by twice the threads: whether they reach more.
                if ended && self.trial.doubles && at.clients == launch.clients && self.has_connection(store) {
                    self.drive(store, part, at, true)?;
                }
            }
        }
        if matches!(self.trial.step, TrialStep::Fill | TrialStep::Reader(_)) {
            return Ok(());
        }
        self.flush(Part::FinalFlush, store)?;
        if let Some(replicas) = &self.replicas {
            tell(&Event::CaughtUp(followers::catch_up(replicas, store, launch)?));
        }
        tell(&Event::Counters(store.counters()));
        let before = stats_before.unwrap_or_else(|| Ok(StoreStats::default()));
        let stats = before.and_then(|before| Ok(before.until(&store.stats()?))).map_err(|fault| fault.to_string());
        tell(&Event::StoreStats(stats));
        for (&at, &part) in self.trial.points.iter().flat_map(|at| asked.iter().map(move |part| (at, part))) {
            self.drive(store, part, at, false)?;
        }
        Ok(())
    }

    /// What is loaded, what is measured and what is asked at the end, of the step that is this process's.
    fn parts(&self) -> (Vec<Part>, Vec<Part>, Vec<Part>) {
        let (load, others): (Vec<Part>, Vec<Part>) = self.job.parts().iter().partition(|&&part| part == Part::Load);
        let (asked, measured) = others.into_iter().partition(|&part| part == Part::Ask);
        match self.trial.step {
            TrialStep::Whole => (load, measured, asked),
            TrialStep::Fill => (load, Vec::new(), Vec::new()),
            TrialStep::Read | TrialStep::Reader(_) => (Vec::new(), measured, asked),
        }
    }

    /// Goes through a part of a point. Whether it came to its end.
    fn drive(&self, store: &dyn Store, part: Part, at: At, doubled: bool) -> Result<bool, Early> {
        self.has_begun.set(true);
        followers::begin(self.replicas.as_ref(), store, &self.trial.launch)?;
        let seen = match &self.team {
            Some(team) if part != Part::Load => team::drive(self, store, &mut team.borrow_mut(), part, at)?,
            _ => {
                let drive = Drive { job: self.job, part, at, pace: self.pace(part, at), doubled, always_beats: false };
                self.load(store, drive, || boundary(&Event::Begins(part)))?
            }
        };
        let PartSeen { mut phase, cut_off, asked, waits } = seen;
        let Metrics { units, misses, .. } = phase.metrics;
        let done_share = units as f64 / at.requests.max(1) as f64;
        let cut_off = self.limit(part).filter(|_| cut_off && units < at.requests);
        phase.cut_off = cut_off.map(|limit| CutOff { after_s: limit.as_secs_f64(), done_share });
        let asked = asked.into_iter().map(|(_, asked)| asked).collect();
        self.played.borrow_mut().push(Played { part, at, asked });
        if !matches!(part, Part::Load | Part::Ask) && !doubled {
            self.finished.set(self.finished.get() + units);
        }
        boundary(&Event::Ended(Box::new(phase), waits));
        self.misses.set(self.misses.get() + misses);
        // Only who keeps nothing may lack what was loaded.
        if misses > 0 && self.adapter.role != Role::Null && !self.job.may_miss() {
            let asked = if part == Part::Ask { "(all that was built)" } else { "(all that was loaded)" };
            let (key, found) = (asked.to_string(), format!("{misses} missing"));
            return Err(Early::Wrong(Wrong { key, expected: "a value for every get".to_string(), found }));
        }
        Ok(cut_off.is_none())
    }

    /// How long a part may take. Without its records nothing can follow.
    fn limit(&self, part: Part) -> Option<Duration> {
        self.trial.limit_s.filter(|_| part != Part::Load).map(Duration::from_secs_f64)
    }

    /// Drives clients in this process. They are connected when `begin` is called, and ask once it returns.
    fn load(&self, store: &dyn Store, drive: Drive<'_>, begin: impl FnOnce()) -> Result<PartSeen, Early> {
        let Drive { job, part, at, pace, doubled, always_beats } = drive;
        let beat = Mutex::new(Beat::new(self.finished.get()));
        let heard = |units| beat.lock().expect("the beat does not panic").at(units);
        let waits = Mutex::new(Waits::new());
        let left = || waits.lock().expect("waits are only gathered").extend(queue::own());
        let progress = Progress::heard_by(at.clients, &heard).left_by(&left);
        let (source, limit) = (self.source, self.limit(part));
        let work = Work { store, job, source, part, at, pace: pace.as_ref(), limit, progress: &progress };
        let begin = || {
            begin();
            beat.lock().expect("the beat does not panic").began = (!doubled).then(Instant::now);
        };
        let has_connection = self.has_connection(store);
        let run = |begin| {
            if has_connection { self.run_line(&work, doubled, begin) } else { self.run_threads(&work, begin) }
        };
        let seen = if has_connection && !always_beats {
            run(begin)
        } else {
            std::thread::scope(|scope| {
                let (stop, stopped) = mpsc::channel::<()>();
                scope.spawn(|| {
                    let stopped = stopped;
                    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(BEAT) {
                        heard(progress.units());
                    }
                });
                let seen = run(begin);
                drop(stop);
                seen
            })
        };
        let units_by_second = beat.lock().expect("the beat does not panic").end(progress.units());
        let mut seen = seen.map_err(|stopped| early(stopped, self.trial, progress.units()))?;
        seen.asked.sort_unstable();
        let (cut_off, asked) = (seen.cut_off, std::mem::take(&mut seen.asked));
        let open = pace.as_ref().zip(seen.lateness.take()).map(|(pace, lateness)| pace.open(lateness, has_connection));
        let staleness = self.replicas.as_ref().filter(|_| part != Part::Load).map(Replicas::staleness);
        let phase = phase(part, at.clients, seen, units_by_second);
        let phase = Phase { open, doubled, staleness, point: at.number, ..phase };
        let waits = std::mem::take(&mut *waits.lock().expect("waits are only gathered"));
        Ok(PartSeen { phase, cut_off, asked, waits })
    }

    /// When each request is due, where there is a rate: the same for every store.
    fn pace(&self, part: Part, at: At) -> Option<Pace> {
        if self.trial.job.replay_percent.is_some() {
            return Some(Pace::recorded());
        }
        let (rate, load) = (at.rate?, self.trial.job.load.as_ref()?);
        let seed = mix(self.trial.job.seed() ^ mix((part as u64) << 32 | u64::from(at.number)));
        Some(Pace::draw(rate, load.arrivals, at.requests, seed, load.warm_up_s))
    }

    /// Many connections a thread where the job has requests and the store lines, else a thread a client.
    fn has_connection(&self, store: &dyn Store) -> bool {
        self.trial.job.load.is_some() && store.connection().is_some()
    }

    fn run_line(&self, work: &Work<'_>, doubled: bool, ready: impl FnOnce()) -> Result<LoadStats, Stopped> {
        let load = self.trial.job.load.as_ref();
        let depth = match work.part {
            Part::Load => (LOAD_BYTES / work.at.value_bytes.max(1)).clamp(1, LOAD_DEPTH),
            _ => load.map_or(1, |load| load.depth),
        };
        let (patience, reopens) = (self.trial.launch.patience, load.is_some_and(|load| load.reconnect));
        let threads = match (doubled, self.trial.pinned) {
            (true, _) => Threads::Doubled,
            (false, true) => Threads::All,
            (false, false) => Threads::HalfOf(self.beside),
        };
        sockets::run(work, Conduct { depth, patience, reopens, threads }, ready)
    }

    fn run_threads(&self, work: &Work<'_>, ready: impl FnOnce()) -> Result<LoadStats, Stopped> {
        let (load, name) = (self.trial.job.load.as_ref(), &self.trial.store);
        let is_reached = matches!(self.trial.launch.place, Place::Tcp { .. } | Place::Unix(_));
        let unsupported = |what| Err(Stopped::Session(Fault::Unsupported(what)));
        if load.is_some_and(|load| load.depth > 1) {
            return unsupported(format!("{name} answers one question at a time: it has no --depth"));
        }
        if load.is_some_and(|load| load.reconnect) && is_reached {
            return unsupported(format!("{name} is not reached by connections of our own: it has no --reconnect"));
        }
        threads::run(work, ready)
    }

    /// A phase of that part, in which one client waits for all that was written.
    fn flush(&self, part: Part, store: &dyn Store) -> Result<(), Early> {
        boundary(&Event::Begins(part));
        let began = Instant::now();
        store.final_flush().map_err(|fault| Early::Failed(format!("final flush: {fault}")))?;
        let took_s = began.elapsed().as_secs_f64();
        boundary(&Event::Ended(Box::new(flushed(part, took_s)), Waits::new()));
        Ok(())
    }
}

fn phase(part: Part, clients: u32, seen: LoadStats, units_by_second: Vec<u64>) -> Phase {
    Phase {
        part,
        point: 0,
        clients,
        threads: seen.threads,
        took_s: seen.took_s,
        metrics: seen.metrics,
        timed_one_in: seen.timed_one_in,
        clock_ns: seen.clock_ns,
        times_ns: seen.times.into(),
        open: None,
        cut_off: None,
        doubled: false,
        units_by_second,
        client: Usage::default(),
        server: None,
        nodes: Vec::new(),
        replicas: Vec::new(),
        staleness: None,
        proxy: None,
        store_by_second: Vec::new(),
        machine_joules: None,
        noise: None,
        agents: Vec::new(),
    }
}

/// One client waited for the flush all the time.
fn flushed(part: Part, took_s: f64) -> Phase {
    let metrics = Metrics { waiting_s: took_s, ..Metrics::default() };
    let seen = LoadStats { threads: 1, took_s, metrics, timed_one_in: 1, ..LoadStats::default() };
    phase(part, 1, seen, Vec::new())
}

fn early(stopped: Stopped, trial: &TrialTask, units: u64) -> Early {
    let what = format!("after {units} units: {stopped}");
    match stopped {
        Stopped::Wrong(wrong) => Early::Wrong(wrong),
        Stopped::Input(fault) => Early::Failed(fault.to_string()),
        Stopped::Session(Fault::Unsupported(what)) => Early::Refused(what),
        Stopped::Store { fault: Fault::Unsupported(limit), key, .. } => {
            Early::Refused(format!("{}: {limit} (key \"{key}\")", trial.store))
        }
        _ => Early::Failed(what),
    }
}

/// Records that the store says it has dropped to make room.
fn evicted(store: &dyn Store) -> Result<u64, Early> {
    store
        .evicted()
        .map(Option::unwrap_or_default)
        .map_err(|fault| Early::Failed(format!("asking for evictions: {fault}")))
}

/// Tells, and waits until the parent has looked and says go.
fn boundary(told: &Event) {
    tell(told);
    let mut go = String::new();
    if !io::stdin().read_line(&mut go).is_ok_and(|length| length > 0) {
        std::process::exit(1);
    }
}
