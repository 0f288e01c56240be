//! Is it kept? A store is killed in the middle of its work again and again, started again and read; its syncs are
//! counted; and it is killed again where only what was synced is left of its files. What was seen is judged elsewhere
//! (`model::crash`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use self::audit::Tracer;
use self::outage::{Outage, Report};
use super::child::Child;
use super::gates;
use super::plan::Chosen;
use super::preload;
use super::serve::{self, Served, Site, Unserved};
use super::signals::{self, Interrupt};
use super::task::{Event, LedgerTask, LedgerWork, Task};
use crate::draw::Rng;
use crate::model::crash::ledger::{FoundValue, Ledger};
use crate::model::crash::syncs;
use crate::model::crash::{Audit, DiskFacts, Kill, Outages, Tried};
use crate::model::trial::Durability;
use crate::stores::{Launch, Place};

mod audit;
pub mod client;
pub mod failover;
pub mod ground;
pub mod outage;
mod untried;
pub mod verdicts;

pub use untried::Untried;

use untried::Stop;

/// How many clients write.
pub const CLIENTS: u32 = 2;
/// When a store is killed, after its first acknowledged write.
const SOONEST: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_secs(2);
/// A kill must fall into work: so many writes are acknowledged first, however slow the store is, if they come at all.
const LEAST_WRITES: u64 = 10;
/// How long a store may take to start, to come back, or to acknowledge so many writes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How soon a Ctrl-C is seen.
const LOOK: Duration = Duration::from_millis(5);
/// How long clients of a killed server may take to notice.
const NOTICE: Duration = Duration::from_millis(500);

/// What all stores of one command share.
pub struct CrashBench<'a> {
    pub scratch: &'a Path,
    pub kills: u32,
    /// Of the moments of the kills.
    pub seed: u64,
    pub ground: DiskFacts,
    /// When the command began, in UTC.
    pub began: String,
    pub interrupt: &'a Interrupt,
}

impl CrashBench<'_> {
    /// Tries one store at one durability level: kills, counted syncs, losses of power. `watch` hears after each kill
    /// and loss how many there were.
    pub fn try_one(&self, chosen: &Chosen, level: Durability, watch: KillWatch<'_>) -> Result<Tried, Untried> {
        let yard = |under| Yard::new(self, chosen, level, under);
        let mut killed = yard(Under::Nothing)?;
        let kills = killed.kill_again_and_again(&mut |done| watch("kill", done))?;
        let version = killed.version.clone();
        drop(killed);
        let audit = match Tracer::find() {
            Ok(tracer) => yard(Under::Audit(tracer))?.audit()?,
            Err(why) => Audit::Unknown(why),
        };
        let outages = Outage::find().map_err(Untried::Failed).and_then(|outage| {
            yard(Under::Outage(outage))?.kill_again_and_again(&mut |done| watch("power loss", done))
        });
        let outages = match outages {
            Ok(kills) => Outages::Emulated(kills),
            Err(Untried::Interrupted) => return Err(Untried::Interrupted),
            Err(Untried::Missing { reason, .. } | Untried::Full(reason) | Untried::Failed(reason)) => {
                Outages::Unknown(reason)
            }
        };
        Ok(Tried {
            store: chosen.adapter.name.to_string(),
            version,
            settings: chosen.target.settings.clone(),
            level,
            tried: self.began.clone(),
            kvfair: env!("CARGO_PKG_VERSION").to_string(),
            ground: self.ground.clone(),
            preloaded: preload::libraries(),
            kills,
            audit,
            outages,
        })
    }
}

/// Hears how many of what are done.
pub type KillWatch<'a> = &'a mut dyn FnMut(&str, u32);

/// What a store runs under.
enum Under {
    Nothing,
    Audit(Tracer),
    Outage(Outage),
}

/// A place for one store, and the store in it while it runs. The place goes with it.
struct Yard<'a> {
    bench: &'a CrashBench<'a>,
    chosen: &'a Chosen,
    level: Durability,
    under: Under,
    directory: PathBuf,
    data: PathBuf,
    /// Starts so far: each has a directory for its socket and logs.
    starts: u32,
    served: Option<Served>,
    /// The least room that was seen on its disk.
    free_bytes: Option<u64>,
    /// As the store said when it was opened.
    version: String,
}

impl<'a> Yard<'a> {
    fn new(
        bench: &'a CrashBench<'a>,
        chosen: &'a Chosen,
        level: Durability,
        under: Under,
    ) -> Result<Yard<'a>, Untried> {
        let directory = bench.scratch.join("yard");
        let data = directory.join("data");
        fs::create_dir_all(&data).map_err(|error| cannot("make", &data, &error))?;
        let data = data.canonicalize().map_err(|error| cannot("find", &data, &error))?;
        let (free_bytes, version) = (gates::free_bytes(&data), String::new());
        Ok(Yard { bench, chosen, level, under, directory, data, starts: 0, served: None, free_bytes, version })
    }

    /// The ledger: written, killed, started again, read; as often as was asked, or until the store does not come back.
    /// Where that ends sooner for a reason that is not the store's, a loss that was seen before stands.
    fn kill_again_and_again(&mut self, watch: &mut dyn FnMut(u32)) -> Result<Vec<Kill>, Untried> {
        let mut rng = Rng::new(self.bench.seed);
        let mut ledgers: Vec<Ledger> = (0..CLIENTS).map(Ledger::new).collect();
        let mut kills = Vec::new();
        self.start()?;
        while kills.len() < self.bench.kills as usize {
            let spread = LATEST.saturating_sub(SOONEST).as_millis() as u64;
            let moment = SOONEST + Duration::from_millis(rng.draw() % spread);
            match self.kill_once(&mut ledgers, moment) {
                Ok((kill, came_back)) => {
                    kills.push(kill);
                    watch(kills.len() as u32);
                    if !came_back {
                        break;
                    }
                }
                Err(Untried::Interrupted) => return Err(Untried::Interrupted),
                Err(_) if kills.iter().any(|kill: &Kill| kill.wrong.is_some()) => break,
                Err(untried) => return Err(untried),
            }
        }
        self.stop()?;
        Ok(kills)
    }

    /// One kill, and whether the store came back. What fails before it, or on a full disk, is no verdict.
    fn kill_once(&mut self, ledgers: &mut [Ledger], moment: Duration) -> Result<(Kill, bool), Untried> {
        let mut kill = Kill::default();
        self.write_until_killed(ledgers, moment, &mut kill).map_err(|stop| match stop {
            Stop::Store(why) => self.full(&why).unwrap_or(Untried::Failed(format!("before it was killed: {why}"))),
            Stop::Untried(untried) => untried,
        })?;
        kill.acknowledged = ledgers.iter().map(Ledger::acknowledged).sum();
        self.look_at_room();
        let came_back = match self.come_back(ledgers, &mut kill) {
            Ok(()) => true,
            Err(Stop::Store(why)) => {
                kill.wrong.get_or_insert(why);
                false
            }
            Err(Stop::Untried(untried)) => return Err(untried),
        };
        match kill.wrong.as_deref().and_then(|wrong| self.full(wrong)) {
            Some(full) => Err(full),
            None => Ok((kill, came_back)),
        }
    }

    fn look_at_room(&mut self) {
        self.free_bytes = [self.free_bytes, gates::free_bytes(&self.data)].into_iter().flatten().min();
    }

    /// What went wrong, where the disk is full.
    fn full(&mut self, why: &str) -> Option<Untried> {
        self.look_at_room();
        ground::full(why, self.free_bytes).map(Untried::Full)
    }

    /// Has clients write until the moment has come, and kills the store: the server, or the child that holds it.
    fn write_until_killed(&mut self, ledgers: &mut [Ledger], moment: Duration, kill: &mut Kill) -> Result<(), Stop> {
        let first = ledgers.iter().map(Ledger::next).collect();
        let mut child = self.child(LedgerWork::Write { first, at_most: None })?;
        let began = Instant::now();
        let mut first_at: Option<Instant> = None;
        let mut writes = 0;
        loop {
            let told = child.next(LOOK);
            self.not_interrupted()?;
            match told {
                Ok(Event::Acknowledged { client, sequence, .. }) => {
                    first_at.get_or_insert_with(Instant::now);
                    writes += 1;
                    ledgers[client as usize].acknowledge(sequence);
                }
                Ok(Event::Facts(facts)) => self.version = facts.version,
                Ok(told) => return Err(self.unasked(told)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(&mut child)),
            }
            if writes >= LEAST_WRITES && first_at.is_some_and(|first| first.elapsed() >= moment) {
                break;
            }
            if began.elapsed() >= PATIENCE {
                let within = PATIENCE.as_secs();
                return Err(Stop::Store(format!("it acknowledged {writes} writes within {within} s, before any kill")));
            }
        }
        kill.after_s = first_at.map_or(0.0, |first| first.elapsed().as_secs_f64());
        match self.served.take() {
            Some(served) if matches!(self.under, Under::Outage(_)) => served.kill(),
            Some(served) => _ = served.kill_all(),
            None => child.kill(),
        }
        // What the clients heard before it died is in the pipe.
        let until = Instant::now() + NOTICE;
        while let Ok(told) = child.next(until.saturating_duration_since(Instant::now())) {
            match told {
                Event::Acknowledged { client, sequence, .. } => ledgers[client as usize].acknowledge(sequence),
                _ => break,
            }
        }
        child.kill();
        while let Ok(told) = child.next(NOTICE) {
            if let Event::Acknowledged { client, sequence, .. } = told {
                ledgers[client as usize].acknowledge(sequence);
            }
        }
        self.files_are_rolled_back()
    }

    /// Where power is lost: waits until the store's files are what they were when they were last synced.
    fn files_are_rolled_back(&self) -> Result<(), Stop> {
        let Under::Outage(outage) = &self.under else { return Ok(()) };
        let failed = |why: String| Stop::Untried(Untried::Failed(why));
        let report = outage.report(&self.room(), self.bench.interrupt);
        self.not_interrupted()?;
        match report.map_err(failed)? {
            Report { unknown: Some(why), .. } => Err(failed(why)),
            Report { rolled_back: false, .. } => Err(failed("it ended before it was killed".to_string())),
            Report { .. } => Ok(()),
        }
    }

    /// Starts the store again, reads all that may be there, and judges it.
    fn come_back(&mut self, ledgers: &mut [Ledger], kill: &mut Kill) -> Result<(), Stop> {
        let began = Instant::now();
        self.start().map_err(|untried| match untried {
            Untried::Missing { reason, .. } => Stop::Store(format!("it did not come back: {reason}")),
            untried => Stop::Untried(untried),
        })?;
        let slots = ledgers.iter().map(Ledger::slots).collect();
        let mut child = self.child(LedgerWork::Read { slots })?;
        let mut found: BTreeMap<u32, Vec<(u64, FoundValue)>> = BTreeMap::new();
        let mut heard_at = Instant::now();
        loop {
            let told = child.next(LOOK);
            self.not_interrupted()?;
            match told {
                Ok(Event::Found { client, slot, found: what }) => {
                    if kill.recovery_s.is_none() && ledgers[client as usize].is_right(slot, what) {
                        kill.recovery_s = Some(began.elapsed().as_secs_f64());
                    }
                    found.entry(client).or_default().push((slot, what));
                }
                Ok(Event::Facts(_)) => {}
                Ok(Event::Done) => break,
                Ok(Event::Failed(why)) => return Err(Stop::Store(format!("it did not come back: {why}"))),
                Ok(told) => return Err(self.unasked(told)),
                Err(RecvTimeoutError::Timeout) if heard_at.elapsed() < PATIENCE => continue,
                Err(RecvTimeoutError::Timeout) => {
                    let within = PATIENCE.as_secs();
                    return Err(Stop::Store(format!("it did not come back: it did not answer within {within} s")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(&mut child)),
            }
            heard_at = Instant::now();
        }
        for (ledger, client) in ledgers.iter_mut().zip(0..) {
            ledger.judge(&found.remove(&client).unwrap_or_default(), kill);
        }
        Ok(())
    }

    /// Counts the syncs of one client's writes, one at a time.
    fn audit(&mut self) -> Result<Audit, Untried> {
        match self.start() {
            Ok(()) => {}
            Err(Untried::Interrupted) => return Err(Untried::Interrupted),
            Err(untried) => return Ok(Audit::Unknown(format!("under strace it does not start: {untried}"))),
        }
        let work = LedgerWork::Write { first: vec![1], at_most: Some(audit::WRITES) };
        let told = self.child(work).and_then(|mut child| self.audited(&mut child));
        let traced = self.served.as_ref().map(Served::id);
        // Slow as it is under strace it may have to be killed: all that counts is that it is gone.
        let _ = self.stop();
        let (child, writes, window) = match told {
            Ok(told) => told,
            Err(Stop::Store(why)) => return Ok(Audit::Unknown(format!("under strace {why}"))),
            Err(Stop::Untried(untried)) => return Err(untried),
        };
        let Under::Audit(tracer) = &self.under else { return Ok(Audit::Unknown("no strace".to_string())) };
        let trace = tracer.trace(&self.room(), traced.unwrap_or(child), self.bench.interrupt);
        Ok(trace.map_or_else(Audit::Unknown, |trace| syncs::count(&trace, writes, window.0, window.1)))
    }

    /// The child's id, and how many writes lay between the first and the last acknowledgement.
    fn audited(&mut self, child: &mut Child) -> Result<(u32, u64, (f64, f64)), Stop> {
        let began = Instant::now();
        let mut at_s = Vec::new();
        loop {
            let told = child.next(LOOK);
            self.not_interrupted()?;
            match told {
                Ok(Event::Acknowledged { at_s: now_s, .. }) => at_s.push(now_s),
                Ok(Event::Facts(_)) => {}
                Ok(Event::Done) => break,
                Ok(told) => return Err(self.unasked(told)),
                Err(RecvTimeoutError::Timeout) if began.elapsed() < PATIENCE => {}
                // So many will do.
                Err(RecvTimeoutError::Timeout) if at_s.len() as u64 > LEAST_WRITES => break,
                Err(RecvTimeoutError::Timeout) => return Err(Stop::Store("it was too slow".to_string())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(child)),
            }
        }
        child.end();
        let (first, last) = (at_s.first().copied().unwrap_or_default(), at_s.last().copied().unwrap_or_default());
        Ok((child.id(), (at_s.len() as u64).saturating_sub(1), (first, last)))
    }

    /// Starts the server, where the store has one, on the data that is there.
    fn start(&mut self) -> Result<(), Untried> {
        self.starts += 1;
        let scratch = self.room();
        fs::create_dir_all(&scratch).map_err(|error| cannot("make", &scratch, &error))?;
        if self.served.is_some() || self.chosen.adapter.server.is_none() {
            return Ok(());
        }
        let (chosen, transport, interrupt) = (self.chosen, self.chosen.target.transport, self.bench.interrupt);
        let launch = self.launch();
        let site = Site { data: &self.data, scratch: &scratch, prepared: None, is_guarded: true };
        let served = serve::start(&self.under(), chosen.adapter, transport, &launch, site, PATIENCE, interrupt);
        let served = served.map_err(|unserved| match unserved {
            Unserved::Missing(reason) => Untried::Missing { reason, get_it: chosen.adapter.get_it.to_string() },
            Unserved::Failed(reason) => {
                self.full(&reason).unwrap_or(Untried::Missing { reason, get_it: String::new() })
            }
            Unserved::Interrupted => Untried::Interrupted,
        })?;
        self.version.clone_from(&served.facts.version);
        self.served = Some(served);
        Ok(())
    }

    /// Where a started store's socket, logs and traces are.
    fn room(&self) -> PathBuf {
        self.directory.join(self.starts.to_string())
    }

    /// What stands before the command of whatever holds the store.
    fn under(&self) -> Vec<String> {
        match &self.under {
            Under::Nothing => Vec::new(),
            Under::Audit(tracer) => tracer.command(&self.room()),
            Under::Outage(outage) => outage.command(&self.data, &self.room()),
        }
    }

    /// A store that was killed must not be left so: some keep shared memory until they are started and stopped again.
    fn stop(&mut self) -> Result<(), Untried> {
        self.served.take().map_or(Ok(()), Served::stop).map_err(Untried::Failed)
    }

    /// How an embedded store is opened, and a server started.
    fn launch(&self) -> Launch {
        let (durability, settings) = (self.level, self.chosen.target.settings.clone());
        let place = Place::Path(self.data.clone());
        let answer_bytes = Some(client::ANSWER_BYTES);
        Launch { durability, settings, clients: CLIENTS, answer_bytes, ..Launch::at(place, ANSWER) }
    }

    /// A process whose clients work on the store that is there now. What only reads is not looked at.
    fn child(&self, work: LedgerWork) -> Result<Child, Stop> {
        let holds_it = self.served.is_none() && matches!(work, LedgerWork::Write { .. });
        let under = if holds_it { self.under() } else { Vec::new() };
        let mut launch = self.launch();
        if let Some(served) = &self.served {
            launch = served.reached(&launch);
        }
        launch.clients = match &work {
            LedgerWork::Write { first, .. } => first.len() as u32,
            LedgerWork::Read { .. } => 1,
        };
        let task = Task::Ledger(LedgerTask { store: self.chosen.adapter.name.to_string(), launch, work });
        Child::start(&under, &task, &self.room().join("clients.log"))
            .map_err(|error| Untried::Failed(format!("{error:#}")).into())
    }

    fn not_interrupted(&self) -> Result<(), Stop> {
        if self.bench.interrupt.is_set() { Err(Untried::Interrupted.into()) } else { Ok(()) }
    }

    /// What ends a step that was to go on.
    fn unasked(&mut self, told: Event) -> Stop {
        let what = match told {
            Event::Refused(reason) => {
                return Untried::Missing { reason, get_it: self.chosen.adapter.get_it.to_string() }.into();
            }
            Event::Failed(why) => why,
            told => format!("its clients said {told:?}"),
        };
        Stop::Store(format!("{what}{}", self.servers_end()))
    }

    fn died(&mut self, child: &mut Child) -> Stop {
        if self.bench.interrupt.is_set() {
            return Stop::Untried(Untried::Interrupted);
        }
        Stop::Store(format!("its process died: {}{}", child.ending(), self.servers_end()))
    }

    fn servers_end(&mut self) -> String {
        let ending = self.served.as_mut().and_then(|served| served.ending_within(NOTICE));
        ending.map_or_else(String::new, |ending| format!("; the server ended: {ending}"))
    }
}

impl Drop for Yard<'_> {
    fn drop(&mut self) {
        // A server of ours that still runs goes first.
        drop(self.served.take());
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Untried {
    let why = format!("cannot {what} {}: {error}", path.display());
    ground::full(&why, None).map_or(Untried::Failed(why), Untried::Full)
}

impl std::fmt::Display for Untried {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Untried::Missing { reason, get_it } if get_it.is_empty() => write!(out, "{reason}"),
            Untried::Missing { reason, get_it } => write!(out, "{reason}; get it: {get_it}"),
            Untried::Full(reason) | Untried::Failed(reason) => write!(out, "{reason}"),
            Untried::Interrupted => write!(out, "{}", signals::INTERRUPTED),
        }
    }
}
