//! What the baselines share whose counts are written to one file and then only read: counts are collected, and sorted
//! and written at the first final flush. It registers no store.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::{Facts, Launch, Means, Session, Store};
use crate::model::op::{Fault, Op, Reply};
use crate::model::trial::Durability;

/// How such a baseline lies in its file and in memory.
pub trait Counts: Sized + Send + Sync {
    const NAME: &'static str;
    /// What reads and writes it.
    const LIBRARY: &'static str;
    /// Writes counts in the order of their keys.
    fn write(counts: &[(Box<[u8]>, u64)], out: &mut dyn Write) -> io::Result<()>;
    /// What was written, as it is read from memory.
    fn read(bytes: Vec<u8>) -> Result<Self, String>;
    fn get(&self, key: &[u8]) -> Option<u64>;
    fn entries(&self) -> u64;
}

/// Such a file promises nothing: it is written once, and not synced.
pub fn keeps(level: Durability) -> Result<&'static str, &'static str> {
    match level {
        Durability::None => Ok("one file, written once"),
        _ => Err("it is written once and not synced"),
    }
}

pub const LACKS: &[Means] = &[Means::Scan, Means::Versions, Means::Tally];

pub fn open<C: Counts + 'static>(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let path = launch.directory()?.join(format!("counts.{}", C::NAME));
    let store = ReadOnly::<C> { path, collected: Mutex::default(), counts: OnceLock::new() };
    if store.path.exists() {
        store.load()?;
    }
    Ok(Box::new(store))
}

type Collected = HashMap<Box<[u8]>, u64>;

struct ReadOnly<C> {
    path: PathBuf,
    /// Until they are written.
    collected: Mutex<Collected>,
    counts: OnceLock<C>,
}

impl<C: Counts> ReadOnly<C> {
    fn collected(&self) -> Result<MutexGuard<'_, Collected>, Fault> {
        self.collected.lock().map_err(|_| Fault::refused(format!("{}: a client panicked", C::NAME)))
    }

    fn load(&self) -> Result<(), Fault> {
        let counts = C::read(fs::read(&self.path)?);
        let counts = counts.map_err(|what| Fault::Garbled(format!("{}: {what}", self.path.display())))?;
        // Whoever was first has read the same.
        let _ = self.counts.set(counts);
        Ok(())
    }

    fn add(&self, key: &[u8], by: i64) -> Result<(), Fault> {
        if self.counts.get().is_some() {
            return Err(Fault::refused(format!("{} is written already: it is only read now", C::NAME)));
        }
        let by = u64::try_from(by).map_err(|_| Fault::refused(format!("{} adds 0 or more", C::NAME)))?;
        let mut collected = self.collected()?;
        match collected.get_mut(key) {
            Some(count) => *count += by,
            None => drop(collected.insert(key.into(), by)),
        }
        Ok(())
    }

    fn count_of(&self, key: &[u8]) -> Result<Option<i64>, Fault> {
        let count = match self.counts.get() {
            Some(counts) => counts.get(key),
            None => self.collected()?.get(key).copied(),
        };
        count.map(i64::try_from).transpose().map_err(|_| Fault::refused(format!("{}: a count beyond 63 bits", C::NAME)))
    }
}

impl<C: Counts> Store for ReadOnly<C> {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Reader { store: self, numbers: Vec::new() }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            client_library: C::LIBRARY.to_string(),
            increment: "collected in memory, written once".to_string(),
            settings: [("read".to_string(), "the whole file into memory".to_string())].into(),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        let collected = std::mem::take(&mut *self.collected()?);
        if self.counts.get().is_some() || collected.is_empty() {
            return Ok(());
        }
        let mut counts: Vec<(Box<[u8]>, u64)> = collected.into_iter().collect();
        counts.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&self.path)?);
        C::write(&counts, &mut file)?;
        file.flush()?;
        drop(counts);
        self.load()
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(match self.counts.get() {
            Some(counts) => counts.entries(),
            None => self.collected()?.len() as u64,
        }))
    }
}

/// One client's session.
struct Reader<'s, C> {
    store: &'s ReadOnly<C>,
    numbers: Vec<Option<i64>>,
}

impl<C: Counts> Session for Reader<'_, C> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Number(key) => Ok(self.store.count_of(key)?.map_or(Reply::Missing, Reply::Number)),
            Op::NumberMany(keys) => {
                self.numbers.clear();
                for key in keys.iter() {
                    let number = self.store.count_of(key)?;
                    self.numbers.push(number);
                }
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::Add { key, by } => self.store.add(key, by).map(|()| Reply::Done),
            Op::AddMany(sums) => {
                sums.iter().try_for_each(|(key, by)| self.store.add(key, by))?;
                Ok(Reply::Done)
            }
            _ => Err(Fault::unsupported(C::NAME, op)),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Numbers of four bytes, the lowest first: half the room of eight, and enough for a model of messages.
pub fn short(number: u64) -> io::Result<[u8; 4]> {
    let number =
        u32::try_from(number).map_err(|_| io::Error::other("a number beyond 32 bits, for which it has no room"))?;
    Ok(number.to_le_bytes())
}

/// The number of four bytes that stands at a place, if there is one.
pub fn short_at(bytes: &[u8], place: usize) -> Option<usize> {
    let four = bytes.get(place..place + 4)?;
    Some(u32::from_le_bytes(four.try_into().ok()?) as usize)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::model::op::{KeyList, SumList};
    use crate::stores::{Adapter, Place};

    /// What is added is found, before it is written and after it is read again; what is not, is not. Then nothing is
    /// added any more.
    pub fn is_filled_once(adapter: &Adapter) {
        let place = tempfile::tempdir().expect("a directory");
        let launch = Launch::at(Place::Path(place.path().to_path_buf()), std::time::Duration::from_secs(1));
        let open = || (adapter.open)(&launch).expect("it opens");
        let keys: Vec<String> = (0..2_000).map(|number| format!("{} {}", number % 97, number / 7)).collect();
        let mut counts = std::collections::BTreeMap::<&str, i64>::new();
        let store = open();
        let mut sums = SumList::default();
        for (number, key) in (1..).zip(&keys) {
            sums.clear();
            sums.push(key.as_bytes(), number);
            store.session().expect("a session").ask(&Op::AddMany(sums.lend())).expect("added");
            *counts.entry(key).or_default() += number;
        }
        let found = |store: &dyn Store| {
            let mut session = store.session().expect("a session");
            for (key, count) in &counts {
                assert_eq!(
                    session.ask(&Op::Number(key.as_bytes())).expect("an answer"),
                    Reply::Number(*count),
                    "{key}"
                );
            }
            let keys: KeyList = [&b"0 0"[..], b"", b"0", b"0 00", b"96 9", b"\xff", b"zz"].into_iter().collect();
            let Ok(Reply::Numbers(numbers)) = session.ask(&Op::NumberMany(keys.lend())) else { panic!("no numbers") };
            let known = |key: &[u8]| counts.get(std::str::from_utf8(key).ok()?).copied();
            assert_eq!(numbers, keys.lend().iter().map(known).collect::<Vec<_>>());
            assert_eq!(store.count().expect("a count"), Some(counts.len() as u64));
        };
        found(store.as_ref());
        store.final_flush().expect("written");
        found(store.as_ref());
        drop(store);
        let store = open();
        found(store.as_ref());
        let refused = store.session().expect("a session").ask(&Op::Add { key: b"a", by: 1 }).map(|_| ());
        assert!(matches!(refused, Err(Fault::Refused(what)) if what.contains("is only read now")));
        for entry in fs::read_dir(place.path()).expect("its directory").flatten() {
            fs::write(entry.path(), b"no counts").expect("overwritten");
        }
        assert!(matches!((adapter.open)(&launch), Err(Fault::Garbled(_))), "what is broken is not read");
    }
}
