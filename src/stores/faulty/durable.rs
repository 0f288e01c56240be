//! A faulty store that keeps a file, and lies about what of it survives: what `crash` must find.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::NAME;
use crate::model::op::{Fault, Op, Reply, ValueList};
use crate::model::trial::Durability;
use crate::stores::{Facts, Launch, Session, Store};

/// What is not true of what it acknowledges.
#[derive(Clone, Copy, PartialEq)]
pub enum Lie {
    /// Nothing: it keeps all, and at `power` syncs each write.
    None,
    /// Writes are acknowledged and wait in memory for some more.
    Unwritten,
    /// Syncs come once a second.
    Lazy,
    /// Syncs come before the write that they are for: as many as there must be.
    Early,
    /// When it is opened again after a kill the last writes are gone.
    Newest,
    /// One before the last ones is gone.
    Hole,
    /// The last one is there by half.
    Torn,
    /// The last one has the value of the one before it.
    Swapped,
}

pub const LIES: &[(&str, Lie)] = &[
    ("kept", Lie::None),
    ("unwritten", Lie::Unwritten),
    ("lazy", Lie::Lazy),
    ("early", Lie::Early),
    ("newest", Lie::Newest),
    ("hole", Lie::Hole),
    ("torn", Lie::Torn),
    ("swapped", Lie::Swapped),
];

/// Writes that `unwritten` holds back.
const HELD_BACK: usize = 500;
/// Writes that `newest` forgets: more than were under way.
const LAST: usize = 5;
/// How far from the end `hole` forgets: not so far that it would have been overwritten.
const HOLE_AT: usize = 20;

pub fn open(launch: &Launch, lie: Lie) -> Result<Box<dyn Store>, Fault> {
    let path = launch.directory()?.join("log");
    let closed = launch.directory()?.join("closed");
    let mut entries = if path.exists() { read(&fs::read(&path)?) } else { Vec::new() };
    if fs::remove_file(&closed).is_err() {
        lie.tell(&mut entries);
    }
    let mut file = File::options().create(true).write(true).truncate(true).open(&path)?;
    let mut log = Vec::new();
    entries.iter().for_each(|(key, value)| frame(key, value, &mut log));
    file.write_all(&log)?;
    let records = entries.into_iter().collect();
    let data = Arc::new(Mutex::new(Data { file, records, waiting: Vec::new(), waits: 0 }));
    if lie == Lie::Lazy {
        let data = Arc::downgrade(&data);
        std::thread::spawn(move || {
            while let Some(data) = data.upgrade() {
                let synced = locked(&data).file.sync_data();
                drop(data);
                synced.expect("its own file");
                std::thread::sleep(Duration::from_secs(1));
            }
        });
    }
    let syncs = launch.durability == Durability::Power && !matches!(lie, Lie::Lazy | Lie::Unwritten);
    Ok(Box::new(Durable { lie, syncs, data, closed }))
}

impl Lie {
    /// What became of the entries while nobody looked.
    fn tell(self, entries: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        let count = entries.len();
        if count < HOLE_AT {
            return;
        }
        match self {
            Lie::None | Lie::Unwritten | Lie::Lazy | Lie::Early => {}
            Lie::Newest => entries.truncate(count - LAST),
            Lie::Hole => drop(entries.remove(count - HOLE_AT)),
            Lie::Torn => {
                let value = &mut entries[count - 1].1;
                value.truncate(value.len() / 2);
            }
            Lie::Swapped => entries[count - 1].1 = entries[count - 2].1.clone(),
        }
    }
}

/// Two lengths, a key and a value.
fn frame(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// All whole entries: the last one may have been cut off.
fn read(mut log: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    while let Some((head, rest)) = log.split_at_checked(8) {
        let length = |from: usize| u32::from_le_bytes(head[from..from + 4].try_into().expect("four bytes")) as usize;
        let Some((key, rest)) = rest.split_at_checked(length(0)) else { break };
        let Some((value, rest)) = rest.split_at_checked(length(4)) else { break };
        entries.push((key.to_vec(), value.to_vec()));
        log = rest;
    }
    entries
}

struct Durable {
    lie: Lie,
    /// After each write.
    syncs: bool,
    data: Arc<Mutex<Data>>,
    /// A file that is there where it was not killed.
    closed: PathBuf,
}

impl Drop for Durable {
    fn drop(&mut self) {
        let Data { file, waiting, .. } = &mut *locked(&self.data);
        file.write_all(waiting).and_then(|()| fs::write(&self.closed, "")).expect("its own files");
    }
}

struct Data {
    file: File,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Frames that are not in the file yet, and how many.
    waiting: Vec<u8>,
    waits: usize,
}

fn locked(data: &Mutex<Data>) -> MutexGuard<'_, Data> {
    data.lock().expect("no client panics with this lock")
}

impl Store for Durable {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client { store: self, values: ValueList::default() }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let (version, none) = (env!("CARGO_PKG_VERSION").to_string(), "none".to_string());
        Ok(Facts { version, client_library: none.clone(), increment: none, ..Facts::default() })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(locked(&self.data).records.len() as u64))
    }
}

struct Client<'s> {
    store: &'s Durable,
    values: ValueList,
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let mut data = locked(&self.store.data);
        match *op {
            Op::GetMany(keys) => {
                self.values.clear();
                keys.iter().for_each(|key| self.values.push(data.records.get(key).map(Vec::as_slice)));
                Ok(Reply::Values(self.values.lend()))
            }
            Op::Set { key, value, ttl_s: None } => {
                let Data { file, records, waiting, waits } = &mut *data;
                records.insert(key.to_vec(), value.to_vec());
                frame(key, value, waiting);
                *waits += 1;
                if self.store.syncs && self.store.lie == Lie::Early {
                    file.sync_data()?;
                }
                if self.store.lie != Lie::Unwritten || *waits >= HELD_BACK {
                    file.write_all(waiting)?;
                    waiting.clear();
                    *waits = 0;
                }
                if self.store.syncs && self.store.lie != Lie::Early {
                    file.sync_data()?;
                }
                Ok(Reply::Done)
            }
            other => Err(Fault::unsupported(NAME, &other)),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
