//! Kills a primary while clients write, promotes the replica that has most of its log, and has the others follow it.
//! The clients go on there. `model::crash::failover` judges what was found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::untried::Untried;
use super::{LOOK, PATIENCE, cannot, client, ground};
use crate::draw::Rng;
use crate::harness::child::Child;
use crate::harness::gates;
use crate::harness::network::Proxy;
use crate::harness::plan::Chosen;
use crate::harness::replicas::{self, Replica, Servers, Start};
use crate::harness::serve::{self, Served, Site, Unserved};
use crate::harness::signals::Interrupt;
use crate::harness::task::{Event, LedgerTask, LedgerWork, Task};
use crate::model::crash::failover::{ClientWrites, FailoverKill, Follower, FoundKeys, Losses};
use crate::model::op::Fault;
use crate::model::trial::Durability;
use crate::stores::replication::{Failover, LogPosition};
use crate::stores::{Launch, Place, Store};

pub mod clients;
mod load;

use load::Clients;

/// How many clients write.
pub const CLIENTS: u32 = 4;
/// When a primary is killed, after some writes of each client were acknowledged.
const SOONEST: Duration = Duration::from_millis(500);
const LATEST: Duration = Duration::from_secs(2);
/// How long one answer to a client may take. A write waits half as long for the replicas that must have it.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a replica may take to answer a question about its promotion.
const REPLY: Duration = Duration::from_secs(2);
/// How long a replica may take to become a primary.
const PROMOTION: Duration = Duration::from_secs(20);
/// How long the others may take to be in sync with it.
const FOLLOWING: Duration = Duration::from_secs(60);
/// How long a replica may go on to receive what the old primary had sent.
const DRAINING: Duration = Duration::from_secs(5);
/// How often a replica is asked whether it is a primary by now.
const PAUSE: Duration = Duration::from_millis(1);

/// What all kills of one command share.
pub struct FailoverBench<'a> {
    pub scratch: &'a Path,
    pub level: Durability,
    pub interrupt: &'a Interrupt,
}

/// When primaries are killed: the same for each target.
pub fn moments(seed: u64, kills: u32) -> Vec<Duration> {
    let mut rng = Rng::new(seed);
    let spread_ms = LATEST.saturating_sub(SOONEST).as_millis() as u64;
    (0..kills).map(|_| SOONEST + Duration::from_millis(rng.draw() % spread_ms)).collect()
}

impl FailoverBench<'_> {
    /// Starts the servers, kills the primary at that moment, and tells its version and what became of the writes.
    pub fn kill_one(&self, chosen: &Chosen, moment: Duration) -> Result<(String, FailoverKill), Untried> {
        let mut group = Group::new(self, chosen)?;
        let kill = group.start().and_then(|()| group.kill_primary(moment));
        let kill = kill.map_err(|untried| group.or_full(untried))?;
        let version = std::mem::take(&mut group.version);
        group.stop();
        Ok((version, kill))
    }
}

/// A primary with its replicas, in a directory that is removed with them.
struct Group<'a> {
    bench: &'a FailoverBench<'a>,
    chosen: &'a Chosen,
    directory: PathBuf,
    data: PathBuf,
    /// How the primary is started.
    launch: Launch,
    primary: Option<Served>,
    /// How the primary is reached.
    reached: Launch,
    version: String,
    replicas: Vec<Replica>,
    /// Each replica as it is asked to become a primary.
    stores: Vec<Box<dyn Store>>,
    /// What stands for the way from each replica, once it is a primary, where a delay is asked for.
    links: Vec<Proxy>,
    /// The replica that took the primary's place.
    promoted: Option<usize>,
}

impl<'a> Group<'a> {
    fn new(bench: &'a FailoverBench<'a>, chosen: &'a Chosen) -> Result<Group<'a>, Untried> {
        let directory = bench.scratch.join("failover");
        let data = directory.join("data");
        fs::create_dir_all(&data).map_err(|error| cannot("make", &data, &error))?;
        let data = data.canonicalize().map_err(|error| cannot("find", &data, &error))?;
        let (durability, settings) = (bench.level, chosen.target.settings.clone());
        // One more asks for positions in the log.
        let clients = CLIENTS + 1;
        let (place, answer_bytes) = (Place::Path(data.clone()), Some(client::ANSWER_BYTES));
        let launch = Launch { durability, settings, clients, answer_bytes, ..Launch::at(place, ANSWER) };
        let (reached, version) = (launch.clone(), String::new());
        let (primary, promoted, replicas, stores, links) = (None, None, Vec::new(), Vec::new(), Vec::new());
        Ok(Group {
            bench,
            chosen,
            directory,
            data,
            launch,
            primary,
            reached,
            version,
            replicas,
            stores,
            links,
            promoted,
        })
    }

    fn start(&mut self) -> Result<(), Untried> {
        let primary = self.start_primary()?;
        self.version.clone_from(&primary.facts.version);
        self.reached = primary.reached(&self.launch);
        let (chosen, interrupt) = (self.chosen, self.bench.interrupt);
        let (adapter, transport) = (chosen.adapter, chosen.target.transport);
        let how = Start { under: &[], adapter, transport, directory: &self.directory, limit: PATIENCE, interrupt };
        let servers = Servers::follow(primary, &self.launch, &how).map_err(|unserved| self.untried(unserved))?;
        (self.primary, self.replicas) = (Some(servers.primary), servers.replicas);
        self.open_replicas()
    }

    /// What fails where the disk is full may be the disk's doing. Asked while the files are there.
    fn or_full(&self, untried: Untried) -> Untried {
        let why = match &untried {
            Untried::Missing { reason, get_it } if get_it.is_empty() => reason,
            Untried::Failed(why) => why,
            _ => return untried,
        };
        ground::full(why, gates::free_bytes(&self.directory)).map_or(untried, Untried::Full)
    }

    fn start_primary(&self) -> Result<Served, Untried> {
        let prepared = self.bench.scratch.join("prepared");
        let site = Site { data: &self.data, scratch: &self.directory, prepared: Some(&prepared), is_guarded: true };
        let (transport, interrupt) = (self.chosen.target.transport, self.bench.interrupt);
        let served = serve::start(&[], self.chosen.adapter, transport, &self.launch, site, PATIENCE, interrupt);
        served.map_err(|unserved| self.untried(unserved))
    }

    fn untried(&self, unserved: Unserved) -> Untried {
        match unserved {
            Unserved::Missing(reason) => Untried::Missing { reason, get_it: self.chosen.adapter.get_it.to_string() },
            Unserved::Failed(reason) => Untried::Missing { reason, get_it: String::new() },
            Unserved::Interrupted => Untried::Interrupted,
        }
    }

    fn open_replicas(&mut self) -> Result<(), Untried> {
        for replica in &self.replicas {
            let launch = Launch { patience: REPLY, ..replica.reached(&self.reached) };
            let store = (self.chosen.adapter.open)(&launch);
            self.stores.push(store.map_err(|fault| Untried::Failed(format!("{}: {fault}", replica.name)))?);
            let directory = self.directory.join(format!("link-{}", self.stores.len()));
            let link = replicas::link(self.chosen.adapter, &self.launch, &replica.served.place, &directory);
            self.links.extend(link.map_err(Untried::Failed)?);
        }
        Ok(())
    }

    fn kill_primary(&mut self, moment: Duration) -> Result<FailoverKill, Untried> {
        let mut clients = self.clients()?;
        clients.work_until(moment)?;
        let killed_at = self.primary.take().map_or_else(SystemTime::now, Served::kill_all);
        let (killed_us, mut kill) = (microseconds(killed_at), FailoverKill::default());
        clients.detect()?;
        let new = self.promote()?;
        self.promoted = Some(new);
        kill.promoted.clone_from(&self.replicas[new].name);
        let promoted_s = since_s(killed_us, now_us());
        kill.followers = self.follow(new, killed_us)?;
        (kill.detected_s, kill.accepted_s) = clients.resume(killed_us)?;
        // A replica that takes writes is a primary, though it has not been asked yet.
        kill.promoted_s = promoted_s.min(kill.accepted_s);
        let writes = clients.stop()?;
        self.judge(new, &writes, killed_us, &mut kill)?;
        Ok(kill)
    }

    fn clients(&self) -> Result<Clients<'a>, Untried> {
        let of_replicas = self.replicas.iter().map(|replica| replica.reached(&self.reached));
        let servers = std::iter::once(self.reached.clone()).chain(of_replicas).collect();
        let log = self.directory.join("clients.log");
        Clients::start(self.chosen.adapter.name, servers, &log, self.bench.interrupt)
    }

    /// Has the replica that has most of the log become a primary, and tells which it is.
    fn promote(&self) -> Result<usize, Untried> {
        let end = Instant::now() + PROMOTION;
        let within_s = PROMOTION.as_secs();
        let new = self.most_advanced(end)?;
        let (name, failover) = (&self.replicas[new].name, failover(self.stores[new].as_ref())?);
        let mut is_told = false;
        loop {
            let step = if is_told { failover.is_primary() } else { failover.promote().map(|()| false) };
            let why = match step {
                Ok(true) => return Ok(new),
                Ok(false) => {
                    is_told = true;
                    "it is still a replica".to_string()
                }
                Err(fault @ (Fault::Refused(_) | Fault::Unsupported(_))) if !is_told => {
                    return Err(Untried::Failed(format!("{name} cannot be promoted: {fault}")));
                }
                Err(fault) => fault.to_string(),
            };
            not_interrupted(self.bench.interrupt)?;
            if Instant::now() >= end {
                return Err(Untried::Failed(format!("{name} was not promoted within {within_s} s: {why}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Of those that answer, once nothing more comes from the old primary. A replica that went on to receive could be
    /// ahead of the new primary.
    fn most_advanced(&self, end: Instant) -> Result<usize, Untried> {
        let drained = Instant::now() + DRAINING;
        loop {
            let mut silent = Vec::new();
            let mut told: Vec<(LogPosition, usize)> = Vec::new();
            for (index, store) in self.stores.iter().enumerate() {
                match failover(store.as_ref())?.received() {
                    Ok(position) => told.push((position, index)),
                    Err(fault) => silent.push(format!("{}: {fault}", self.replicas[index].name)),
                }
            }
            let is_drained = told.iter().all(|(position, _)| !position.is_linked) || Instant::now() >= drained;
            // Of equals the first one.
            let most = told.iter().rev().max_by_key(|(position, _)| position.bytes);
            if let (true, Some((_, index))) = (is_drained, most) {
                return Ok(*index);
            }
            not_interrupted(self.bench.interrupt)?;
            if Instant::now() >= end {
                let (within_s, why) = (PROMOTION.as_secs(), silent.join("; "));
                return Err(Untried::Failed(format!("no replica was promoted within {within_s} s: {why}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Tells the other replicas to follow the new primary, and waits until they are in sync with it.
    fn follow(&self, new: usize, killed_us: u64) -> Result<Vec<Follower>, Untried> {
        let place = self.links.get(new).map_or(&self.replicas[new].served.place, |link| &link.place);
        let others = || (0..self.replicas.len()).filter(|index| *index != new);
        let mut followers = Vec::new();
        for index in others() {
            let told = failover(self.stores[index].as_ref())?.follow(place);
            let (name, reason) = (self.replicas[index].name.clone(), told.err().map(|fault| fault.to_string()));
            followers.push(Follower { name, reason, ..Follower::default() });
        }
        for (index, follower) in others().zip(&mut followers).filter(|(_, follower)| follower.reason.is_none()) {
            self.wait_for(index, new, follower)?;
            if follower.reason.is_none() {
                follower.in_sync_s = Some(since_s(killed_us, now_us()));
            }
        }
        Ok(followers)
    }

    /// Until that follower has all that the new primary has by now; or why it has not.
    fn wait_for(&self, index: usize, new: usize, follower: &mut Follower) -> Result<(), Untried> {
        let (primary, replica) = (self.stores[new].as_ref(), self.stores[index].as_ref());
        let is_stopped = || self.bench.interrupt.is_set();
        let waited = replicas::wait_for(&follower.name, primary, replica, FOLLOWING, &is_stopped);
        not_interrupted(self.bench.interrupt)?;
        if let Err(why) = waited {
            (follower.in_sync_s, follower.reason) = (None, Some(why));
        }
        Ok(())
    }

    /// Reads what the new primary and its followers have, and compares it with what was acknowledged.
    fn judge(
        &self,
        new: usize,
        writes: &[ClientWrites],
        killed_us: u64,
        kill: &mut FailoverKill,
    ) -> Result<(), Untried> {
        let found = self.read(new, writes)?;
        let (mut before, mut later) = (Losses::default(), Losses::default());
        for (client, found) in writes.iter().zip(&found) {
            let losses = if client.client < CLIENTS { &mut before } else { &mut later };
            losses.add(client.judge(found));
        }
        let of_primary = writes.iter().filter(|client| client.client < CLIENTS);
        let first_us = of_primary.flat_map(|client| &client.acknowledged_us).copied().filter(|at_us| *at_us > 0).min();
        kill.after_s = first_us.map_or(0.0, |first_us| since_s(first_us, killed_us));
        (kill.acknowledged, kill.lost, kill.holes) = (before.acknowledged, before.lost, before.holes);
        kill.oldest_lost_s = before.oldest_us.map(|oldest_us| since_s(oldest_us, killed_us));
        (kill.acknowledged_later, kill.lost_later) = (later.acknowledged, later.lost);
        kill.wrong = before.wrong + later.wrong;
        kill.fault = before.first_wrong.or(later.first_wrong);
        if before.holes > 0 {
            let (holes, name) = (before.holes, &kill.promoted);
            let what = || format!("{holes} writes are gone though {name} has a later one of the same client");
            kill.fault.get_or_insert_with(what);
        }
        if later.lost > 0 {
            let (lost, name) = (later.lost, &kill.promoted);
            kill.fault.get_or_insert_with(|| format!("{lost} writes are gone that {name} acknowledged as a primary"));
        }
        let others = (0..self.replicas.len()).filter(|index| *index != new);
        for (index, follower) in others.zip(&mut kill.followers).filter(|(_, follower)| follower.in_sync_s.is_some()) {
            self.wait_for(index, new, follower)?;
            if follower.reason.is_some() {
                continue;
            }
            follower.differs = differences(&found, &self.read(index, writes)?);
            if follower.differs > 0 {
                let (name, count) = (&follower.name, follower.differs);
                kill.fault.get_or_insert_with(|| format!("{name} differs from its new primary in {count} keys"));
            }
        }
        Ok(())
    }

    /// What a replica has at the keys of each client.
    fn read(&self, index: usize, writes: &[ClientWrites]) -> Result<Vec<FoundKeys>, Untried> {
        let (store, launch) = (self.chosen.adapter.name.to_string(), self.replicas[index].reached(&self.reached));
        let work = LedgerWork::Read { slots: writes.iter().map(ClientWrites::slots).collect() };
        let task = Task::Ledger(LedgerTask { store, launch, work });
        let child = Child::start(&[], &task, &self.directory.join("reader.log"));
        let mut child = child.map_err(|error| Untried::Failed(format!("{error:#}")))?;
        let failed = |why: String| Untried::Failed(format!("{} cannot be read: {why}", self.replicas[index].name));
        let mut found = vec![FoundKeys::new(); writes.len()];
        let mut heard_at = Instant::now();
        loop {
            let told = child.next(LOOK);
            not_interrupted(self.bench.interrupt)?;
            match told {
                Ok(Event::Found { client, slot, found: what }) => {
                    found.get_mut(client as usize).map(|keys| keys.insert(slot, what));
                }
                Ok(Event::Facts(_)) => {}
                Ok(Event::Done) => return Ok(found),
                Ok(Event::Failed(why) | Event::Refused(why)) => return Err(failed(why)),
                Ok(told) => return Err(failed(format!("its client said {told:?}"))),
                Err(RecvTimeoutError::Timeout) if heard_at.elapsed() < PATIENCE => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(failed(format!("it did not answer within {} s", PATIENCE.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(failed(child.ending())),
            }
            heard_at = Instant::now();
        }
    }

    /// Stops all. Some servers leave shared memory behind when they are killed, until they are started and stopped
    /// again: nothing of that is judged.
    fn stop(mut self) {
        self.stores.clear();
        // Followers stop first: a primary waits for them.
        let new = self.promoted.map(|new| self.replicas.remove(new));
        for replica in self.replicas.drain(..).chain(new) {
            let _ = replica.stop();
        }
        if let Ok(primary) = self.start_primary() {
            let _ = primary.stop();
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // Servers end before their files are removed.
        drop(self.primary.take());
        self.replicas.clear();
        self.links.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Keys of which one server has something else than the other.
fn differences(one: &[FoundKeys], other: &[FoundKeys]) -> u64 {
    let differ = |(one, other): (&FoundKeys, &FoundKeys)| {
        one.iter().filter(|(slot, found)| other.get(slot) != Some(found)).count() as u64
    };
    one.iter().zip(other).map(differ).sum()
}

fn failover(store: &dyn Store) -> Result<&dyn Failover, Untried> {
    store.failover().ok_or_else(|| Untried::Failed("this store has no means to promote a replica".to_string()))
}

fn not_interrupted(interrupt: &Interrupt) -> Result<(), Untried> {
    if interrupt.is_set() { Err(Untried::Interrupted) } else { Ok(()) }
}

fn now_us() -> u64 {
    microseconds(SystemTime::now())
}

fn microseconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Negative where it came before.
fn since_s(from_us: u64, to_us: u64) -> f64 {
    (to_us as f64 - from_us as f64) / 1e6
}
