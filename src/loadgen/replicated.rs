//! A store with replicas, as its clients see it: writes go to the primary, reads in turn to the servers that reads go
//! to. Each client asks one thing at a time, over a connection to each server.

use std::time::Duration;

use super::staleness::Observer;
use crate::jobs::keyed::keytext::KeyText;
use crate::jobs::keyed::values::version_in;
use crate::model::op::{Fault, Op, Reply, readable};
use crate::model::record::Staleness;
use crate::stores::replication::{LogPosition, ReadFrom};
use crate::stores::store_stats::StoreStats;
use crate::stores::{Facts, Session, Store};

/// The replicas of a store.
pub struct Replicas {
    pub stores: Vec<Box<dyn Store>>,
    pub read_from: ReadFrom,
    pub observer: Observer,
}

impl Replicas {
    pub fn new(stores: Vec<Box<dyn Store>>, read_from: ReadFrom) -> Replicas {
        let observer = Observer::new(stores.len() + 1);
        Replicas { stores, read_from, observer }
    }

    /// What the reads of the phase that has ended were behind.
    pub fn staleness(&self) -> Staleness {
        self.observer.staleness()
    }

    /// The primary with its replicas, as one store.
    pub fn of<'a>(&'a self, primary: &'a dyn Store) -> Replicated<'a> {
        Replicated { primary, replicas: self }
    }
}

pub struct Replicated<'a> {
    primary: &'a dyn Store,
    replicas: &'a Replicas,
}

/// What is asked of the store itself is asked of the primary. It has no `connection`: a client of several servers has a
/// thread of its own.
impl Store for Replicated<'_> {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let Replicas { stores, read_from, observer } = self.replicas;
        let mut replicas = Vec::new();
        if *read_from != ReadFrom::Primary {
            for store in stores {
                replicas.push(store.session()?);
            }
        }
        let primary = self.primary.session()?;
        let first = if *read_from == ReadFrom::Replicas { 1 } else { 0 };
        Ok(Box::new(ReplicatedSession { primary, replicas, first, turn: first, written: None, observer }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        self.primary.facts()
    }

    fn final_flush(&self) -> Result<(), Fault> {
        self.primary.final_flush()
    }

    fn log_position(&self) -> Result<Option<LogPosition>, Fault> {
        self.primary.log_position()
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.primary.count()
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        self.primary.stats()
    }

    fn expires(&self) -> bool {
        self.primary.expires()
    }
}

struct ReplicatedSession<'a> {
    primary: Box<dyn Session + 'a>,
    /// None where reads go to the primary alone.
    replicas: Vec<Box<dyn Session + 'a>>,
    /// The first server that is read: 0 is the primary.
    first: usize,
    /// The server that is read next.
    turn: usize,
    /// The key of a write that is not committed yet.
    written: Option<u64>,
    observer: &'a Observer,
}

impl Session for ReplicatedSession<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Set { key, value, .. } => {
                let (record, version) = KeyText::record_of(key).zip(version_in(value)).ok_or_else(|| untold(key))?;
                self.observer.writes(record, version);
                self.written = Some(record);
                self.primary.ask(op)
            }
            Op::Get(key) => {
                let record = KeyText::record_of(key).ok_or_else(|| untold(key))?;
                let server = self.turn;
                self.turn = if server == self.replicas.len() { self.first } else { server + 1 };
                let session = if server == 0 { &mut self.primary } else { &mut self.replicas[server - 1] };
                let sent_ns = self.observer.now_ns();
                let reply = session.ask(op)?;
                if let Reply::Value(value) = reply {
                    let version = version_in(value).ok_or_else(|| untold(key))?;
                    let behind = self.observer.read(server, record, version, sent_ns);
                    if let Some(behind) = behind.filter(|_| server == 0) {
                        let (key, ms) = (readable(key, 80), Duration::from_nanos(behind.ns).as_secs_f64() * 1e3);
                        let what = format!("the primary answered with an old value of {key}: a newer one had been");
                        return Err(Fault::Garbled(format!("{what} acknowledged {ms:.3} ms before it was asked")));
                    }
                }
                Ok(reply)
            }
            _ => Err(Fault::Unsupported(format!("{} with replicas", op.name()))),
        }
    }

    /// A write is acknowledged once it is committed.
    fn flush(&mut self) -> Result<(), Fault> {
        self.primary.flush()?;
        if let Some(record) = self.written.take() {
            self.observer.acknowledged(record);
        }
        self.replicas.iter_mut().try_for_each(|replica| replica.flush())
    }
}

/// Without a version nothing can be said of how old a value is.
fn untold(key: &[u8]) -> Fault {
    Fault::Unsupported(format!("{}: with replicas each value carries its version", readable(key, 80)))
}
