//! The clients of a primary that is to be killed: a process of their own. Each writes to the primary; when its
//! connection breaks, it tries the replicas in turn until one of them takes its write, and goes on there.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::harness::child::tell;
use crate::harness::task::{Event, FailoverEvent, FailoverTask};
use crate::model::crash::failover::ClientWrites;
use crate::model::crash::ledger;
use crate::model::op::{Fault, Op, Reply};
use crate::stores::{self, Session, Store};

/// Before a server is asked again that took no write, or the next one is.
const PAUSE: Duration = Duration::from_millis(1);
/// How often a client tells that no server takes its writes.
const TELLING: Duration = Duration::from_secs(1);
/// A kill must fall into work: so many writes of each client are acknowledged first.
const LEAST_WRITES: u64 = 5;

/// The whole life of the clients. They write until a line comes, or the end of standard input.
pub fn run(task: &FailoverTask) {
    tell(&match carry_out(task) {
        Ok(writes) => Event::Failover(FailoverEvent::Wrote(writes)),
        Err(fault) => Event::Failed(fault.to_string()),
    });
}

fn carry_out(task: &FailoverTask) -> Result<Vec<ClientWrites>, Fault> {
    let adapter =
        stores::find(&task.store).ok_or_else(|| Fault::Unsupported(format!("there is no store {}", task.store)))?;
    let opened: Result<Vec<_>, Fault> = task.servers.iter().map(|launch| (adapter.open)(launch)).collect();
    let servers = opened?;
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = io::stdin().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    let all: Mutex<Result<Vec<ClientWrites>, Fault>> = Mutex::new(Ok(Vec::new()));
    thread::scope(|scope| {
        for number in 0..task.clients {
            let (servers, is_over, all) = (&servers, &is_over, &all);
            scope.spawn(move || {
                let writes = Client::new(task, number, is_over).write_to(servers);
                let mut all = all.lock().expect("no thread panics with this lock");
                match (all.as_mut(), writes) {
                    (Ok(all), Ok(writes)) => all.extend(writes),
                    (Ok(_), Err(fault)) => {
                        is_over.store(true, Ordering::Relaxed);
                        *all = Err(fault);
                    }
                    (Err(_), _) => {}
                }
            });
        }
    });
    all.into_inner().expect("no thread panics with this lock")
}

/// One client and what it wrote.
struct Client<'a> {
    number: u32,
    is_over: &'a AtomicBool,
    /// How long it may find no server that takes its writes.
    limit: Duration,
    /// To the primary that is killed, and to the one after it: each has keys of its own.
    writes: [ClientWrites; 2],
    acknowledged: [u64; 2],
    value: Vec<u8>,
    /// Since when no write was acknowledged, and why not.
    waits: Option<(Instant, String)>,
    /// When that was told.
    told: Instant,
}

/// Why a server is left.
enum Left {
    /// All is done.
    Over,
    /// Its connection is broken.
    Broken(Fault),
    /// It takes no writes: it is a replica.
    Refuses(Fault),
}

impl<'a> Client<'a> {
    fn new(task: &FailoverTask, number: u32, is_over: &'a AtomicBool) -> Client<'a> {
        let writes = [number, number + task.clients].map(|client| ClientWrites { client, ..ClientWrites::default() });
        let (limit, value) = (task.limit, Vec::new());
        let (acknowledged, waits, told) = ([0, 0], None, Instant::now());
        Client { number, is_over, limit, writes, acknowledged, value, waits, told }
    }

    /// First to the primary, then to whichever of the others takes writes.
    fn write_to(mut self, servers: &[Box<dyn Store>]) -> Result<[ClientWrites; 2], Fault> {
        let (mut server, mut after) = (0, 0);
        loop {
            let left = match servers[server].session() {
                Ok(mut session) => self.write_through(session.as_mut(), after)?,
                Err(fault) => Left::Broken(fault),
            };
            match left {
                Left::Over => return Ok(self.writes),
                Left::Broken(fault) => {
                    if after == 0 {
                        let (client, at_us, why) = (self.number, now_us(), fault.to_string());
                        tell(&Event::Failover(FailoverEvent::Broken { client, at_us, why }));
                    }
                    after = 1;
                    self.took_none(fault)?;
                }
                Left::Refuses(fault) => self.took_none(fault)?,
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(self.writes);
            }
            server = if server + 1 < servers.len() { server + 1 } else { 1 };
            thread::sleep(PAUSE);
        }
    }

    /// Writes over one connection as long as it may. `after` is 1 once the primary is gone.
    fn write_through(&mut self, session: &mut dyn Session, after: usize) -> Result<Left, Fault> {
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(Left::Over);
            }
            let sequence = self.writes[after].acknowledged_us.len() as u64 + 1;
            let client = self.writes[after].client;
            ledger::value(client, sequence, &mut self.value);
            let key = ledger::key(client, ledger::slot(sequence));
            let answered = session.ask(&Op::Set { key: &key, value: &self.value, ttl_s: None });
            let at_us = if matches!(answered, Ok(Reply::Done)) { now_us() } else { 0 };
            self.writes[after].acknowledged_us.push(at_us);
            match answered {
                Ok(Reply::Done) => self.was_acknowledged(after, at_us),
                Ok(other) => return Err(Fault::Garbled(format!("a set was answered by {other:?}"))),
                // A primary that has taken writes remains one: it may lack a replica that must have the write.
                Err(fault @ Fault::Refused(_)) if after == 0 || self.acknowledged[after] > 0 => {
                    self.took_none(fault)?;
                    thread::sleep(PAUSE);
                }
                Err(fault @ Fault::Refused(_)) => return Ok(Left::Refuses(fault)),
                Err(fault @ Fault::Unsupported(_)) => return Err(fault),
                Err(fault) => return Ok(Left::Broken(fault)),
            }
        }
    }

    fn was_acknowledged(&mut self, after: usize, at_us: u64) {
        self.acknowledged[after] += 1;
        self.waits = None;
        let client = self.number;
        match (after, self.acknowledged[after]) {
            (0, LEAST_WRITES) => tell(&Event::Failover(FailoverEvent::Works { client })),
            (1, 1) => tell(&Event::Failover(FailoverEvent::Resumed { client, at_us })),
            _ => {}
        }
    }

    /// A write was not taken; an error where that has lasted too long.
    fn took_none(&mut self, fault: Fault) -> Result<(), Fault> {
        let (since, why) = self.waits.get_or_insert_with(|| (Instant::now(), String::new()));
        *why = fault.to_string();
        if since.elapsed() > TELLING && self.told.elapsed() > TELLING {
            self.told = Instant::now();
            tell(&Event::Failover(FailoverEvent::Waits { client: self.number, why: why.clone() }));
        }
        if since.elapsed() < self.limit {
            return Ok(());
        }
        let within_s = self.limit.as_secs_f64();
        Err(Fault::Refused(format!("no server took a write of client {} within {within_s} s: {why}", self.number)))
    }
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
