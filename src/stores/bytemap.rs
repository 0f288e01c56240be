//! What the engines have in common that keep plain bytes by key and have no transactions of their own here: every op in
//! terms of get, put and remove. It knows no engine.

use std::sync::{Mutex, MutexGuard};

use super::store_stats::StoreStats;
use super::{Facts, Session, Store, cell};
use crate::model::op::{Fault, KeyList, Op, Pairs, Reply, Sums, ValueList};

/// An engine whose handle may be used by several threads at once.
pub trait Engine: Send + Sync {
    fn name(&self) -> &'static str;
    /// Puts the value of a key into `out`, in place of what is there. False where there is none.
    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault>;
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault>;
    /// Puts many values: as one change, where the engine has such.
    fn put_many(&self, pairs: Pairs<'_>) -> Result<(), Fault> {
        pairs.iter().try_for_each(|(key, value)| self.put(key, value))
    }
    /// Whether there was such a key.
    fn remove(&self, key: &[u8]) -> Result<bool, Fault>;
    /// Whether a key has that value.
    fn holds(&self, key: &[u8], value: &[u8]) -> bool {
        let mut found = Vec::new();
        self.get(key, &mut found).is_ok_and(|is_there| is_there && found == value)
    }
    /// The engine's own addition, where it has one of 64 bits, with the value as it then lies there.
    fn add(&self, _key: &[u8], _by: i64) -> Option<Result<i64, Fault>> {
        None
    }
    /// Adds without a reading, as one change; nothing where the engine has no such.
    fn merge(&self, _sums: &mut dyn Iterator<Item = (&[u8], i64)>) -> Option<Result<(), Fault>> {
        None
    }
    /// The counter in a record that the engine's own addition made.
    fn number(&self, key: &[u8], record: &[u8]) -> Result<i64, Fault> {
        cell::decode(self.name(), key, record)
    }
    /// At most `limit` pairs from `from` on, where the engine has an order.
    fn scan(&self, _from: &[u8], _limit: u32, _keys: &mut KeyList, _values: &mut KeyList) -> Option<Result<(), Fault>> {
        None
    }
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }
    fn count(&self) -> Result<Option<u64>, Fault>;
    fn facts(&self) -> Result<Facts, Fault>;
    /// As `Store::stats`.
    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::default())
    }
}

/// A store out of an engine.
pub struct ByteMap<E> {
    engine: E,
    /// Held by who reads and writes what was read: the engine has no op for it.
    writer: Mutex<()>,
}

impl<E: Engine> ByteMap<E> {
    pub fn new(engine: E) -> ByteMap<E> {
        ByteMap { engine, writer: Mutex::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().expect("no client panics in the middle of a change")
    }

    /// The engine's own addition, under the writers' lock. It wraps: then it is taken back.
    fn own_addition(&self, key: &[u8], by: i64) -> Option<Result<i64, Fault>> {
        let sum = self.engine.add(key, by)?;
        if sum.as_ref().is_ok_and(|sum| cell::went_around(*sum, by)) {
            let _ = self.engine.add(key, by.wrapping_neg());
            return Some(Err(cell::beyond(self.engine.name(), key)));
        }
        Some(sum)
    }
}

impl<E: Engine> Store for ByteMap<E> {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client {
            store: self,
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        self.engine.facts()
    }

    fn final_flush(&self) -> Result<(), Fault> {
        self.engine.final_flush()
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.engine.count()
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        self.engine.stats()
    }
}

struct Client<'s, E> {
    store: &'s ByteMap<E>,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl<E: Engine> Session for Client<'_, E> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let engine = &self.store.engine;
        match *op {
            Op::Get(key) => Ok(if self.read(key)? { Reply::Value(&self.value) } else { Reply::Missing }),
            Op::Set { key, value, ttl_s: None } => {
                // Several clients may put; who reads and writes must not be overtaken in between.
                let _writer = self.store.lock();
                engine.put(key, value)?;
                Ok(Reply::Done)
            }
            Op::Increment { key, by } => self.increment(key, by).map(Reply::Number),
            Op::Add { key, by } => {
                match engine.merge(&mut std::iter::once((key, by))) {
                    Some(merged) => merged?,
                    None => drop(self.increment(key, by)?),
                }
                Ok(Reply::Done)
            }
            Op::AddMany(sums) => self.add_many(sums).map(|()| Reply::Done),
            Op::Number(key) => Ok(self.number(key)?.map_or(Reply::Missing, Reply::Number)),
            Op::GetMany(keys) => {
                self.values.clear();
                for key in keys.iter() {
                    let found = engine.get(key, &mut self.value)?;
                    self.values.push(found.then_some(self.value.as_slice()));
                }
                Ok(Reply::Values(self.values.lend()))
            }
            Op::NumberMany(keys) => {
                self.numbers.clear();
                for key in keys.iter() {
                    let number = self.number(key)?;
                    self.numbers.push(number);
                }
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::SetMany(pairs) => {
                let _writer = self.store.lock();
                engine.put_many(pairs)?;
                Ok(Reply::Done)
            }
            Op::Delete(key) => {
                let _writer = self.store.lock();
                Ok(if engine.remove(key)? { Reply::Done } else { Reply::Missing })
            }
            Op::GetVersion(key) => Ok(match self.read(key)? {
                true => Reply::Versioned(&self.value, cell::version(&self.value)),
                false => Reply::Missing,
            }),
            Op::SetIfAbsent { key, value } => self.set_if(key, value, None),
            Op::Cas { key, version, value } => self.set_if(key, value, Some(version)),
            Op::Scan { from, limit } => self.scan(from, limit, op),
            Op::Set { ttl_s: Some(_), .. } | Op::Tally { .. } | Op::ReadTally(_) => {
                Err(Fault::unsupported(engine.name(), op))
            }
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl<E: Engine> Client<'_, E> {
    fn read(&mut self, key: &[u8]) -> Result<bool, Fault> {
        self.store.engine.get(key, &mut self.value)
    }

    fn increment(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let store = self.store;
        let _writer = store.lock();
        if let Some(sum) = store.own_addition(key, by) {
            return sum;
        }
        let found = self.read(key)?;
        let sum = cell::add(store.engine.name(), key, found.then_some(self.value.as_slice()), by)?;
        store.engine.put(key, &cell::encode(sum))?;
        Ok(sum)
    }

    /// All in one change where the engine has such; each by itself where it adds on its own.
    fn add_many(&mut self, sums: Sums<'_>) -> Result<(), Fault> {
        let store = self.store;
        if let Some(merged) = store.engine.merge(&mut sums.iter()) {
            return merged;
        }
        let _writer = store.lock();
        let (mut keys, mut values) = std::mem::take(&mut self.rows);
        keys.clear();
        values.clear();
        for (key, by) in sums.iter() {
            if let Some(sum) = store.own_addition(key, by) {
                sum?;
                continue;
            }
            let found = self.read(key)?;
            let sum = cell::add(store.engine.name(), key, found.then_some(self.value.as_slice()), by)?;
            keys.push(key);
            values.push(&cell::encode(sum));
        }
        self.rows = (keys, values);
        let pairs = Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() };
        if pairs.keys.is_empty() { Ok(()) } else { store.engine.put_many(pairs) }
    }

    fn number(&mut self, key: &[u8]) -> Result<Option<i64>, Fault> {
        if !self.read(key)? {
            return Ok(None);
        }
        self.store.engine.number(key, &self.value).map(Some)
    }

    /// Sets where the value has that version, or where there is none.
    fn set_if(&mut self, key: &[u8], value: &[u8], was: Option<u64>) -> Result<Reply<'static>, Fault> {
        let store = self.store;
        let _writer = store.lock();
        let found = self.read(key)?.then(|| cell::version(&self.value));
        if found != was {
            return Ok(Reply::Conflict);
        }
        store.engine.put(key, value)?;
        Ok(Reply::Done)
    }

    fn scan(&mut self, from: &[u8], limit: u32, op: &Op<'_>) -> Result<Reply<'_>, Fault> {
        let (keys, values) = &mut self.rows;
        keys.clear();
        values.clear();
        match self.store.engine.scan(from, limit, keys, values) {
            Some(scanned) => scanned?,
            None => return Err(Fault::unsupported(self.store.engine.name(), op)),
        }
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
    }
}
