//! A write-back cache in the client's memory in front of any store. It must not know which store it wraps.
//!
//! Values are read and changed in memory; what has changed goes to the store when its place is needed, and all of it
//! at the final flush. Counters gather what was added and pass it on as one add; what the store counted before is read
//! only where it is asked for. A record is dropped only once the store has taken it: a write that fails is an error of
//! the caller's op, and the record stays.

mod recent;
mod shard;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use recent::{HashedKey, Recent};
use shard::{CacheEntry, CacheUse, Shard, unexpected, write};

use super::store_stats::StoreStats;
use super::{Facts, Session, Store};
use crate::model::op::{Fault, KeyList, Keys, Op, Reply, ValueList};
use crate::model::trial::{Cache, CacheCounts};

/// Several clients rarely meet at the same lock when there are so many for each.
const SHARDS_PER_CLIENT: usize = 8;
/// The fewest records of a part, where records are limited: in parts of one or two each would have little choice of
/// what goes first.
const ITEMS_PER_SHARD: usize = 16;

/// A store behind a cache that all of its sessions share.
pub struct Cached {
    inner: Box<dyn Store>,
    settings: Cache,
    shards: Box<[Mutex<Shard>]>,
}

impl Cached {
    pub fn new(inner: Box<dyn Store>, settings: Cache, clients: u32) -> Cached {
        let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let (memory_bytes, items) = (size(settings.memory_bytes), settings.items.map(size));
        let shards = shards(clients, items);
        let (counts, counted) = (settings.counts, CacheUse::default());
        let shard = |place: usize| {
            let share = |limit: usize| limit / shards + usize::from(place < limit % shards);
            let (limit_bytes, limit_items) = (share(memory_bytes), items.map_or(usize::MAX, share));
            Shard { entries: Recent::default(), bytes: 0, limit_bytes, limit_items, counts, changes: 0, counted }
        };
        Cached { inner, settings, shards: (0..shards).map(|place| Mutex::new(shard(place))).collect() }
    }

    /// The store without its cache, to see what it really holds.
    pub fn into_inner(self) -> Box<dyn Store> {
        self.inner
    }

    /// Held while the store is asked, so that nobody reads there what is on its way from here.
    fn shard(&self, key: HashedKey<'_>) -> Result<MutexGuard<'_, Shard>, Fault> {
        lock(&self.shards[key.part(self.shards.len())])
    }
}

/// How many parts there are: a power of two.
fn shards(clients: u32, items: Option<usize>) -> usize {
    let for_clients = match clients {
        0 | 1 => 1,
        clients => (clients as usize * SHARDS_PER_CLIENT).next_power_of_two(),
    };
    // The largest power of two that is no more.
    let for_items = |items: usize| 1 << (items / ITEMS_PER_SHARD).max(1).ilog2();
    items.map_or(for_clients, |items| for_clients.min(for_items(items)))
}

fn lock(shard: &Mutex<Shard>) -> Result<MutexGuard<'_, Shard>, Fault> {
    shard.lock().map_err(|_| Fault::Refused("the cache: a client panicked in the middle of a change".to_string()))
}

impl Store for Cached {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let inner = self.inner.session()?;
        Ok(Box::new(Caching {
            cached: self,
            inner,
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            units: 0,
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let mut facts = self.inner.facts()?;
        let counted = match self.settings.counts {
            CacheCounts::Entries => "entries",
            CacheCounts::Values => "values",
        };
        facts.settings.insert("cache memory".to_string(), self.settings.memory_bytes.to_string());
        facts.settings.insert("cache counts".to_string(), counted.to_string());
        if let Some(items) = self.settings.items {
            facts.settings.insert("cache items".to_string(), items.to_string());
        }
        if let Some(merge) = self.settings.merge {
            facts.settings.insert("cache merge".to_string(), merge.to_string());
        }
        Ok(facts)
    }

    /// Everything that has changed goes to the store; then the store flushes.
    fn final_flush(&self) -> Result<(), Fault> {
        let mut session = self.inner.session()?;
        for shard in &self.shards {
            lock(shard)?.write_all(session.as_mut())?;
        }
        session.flush()?;
        drop(session);
        self.inner.final_flush()
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.inner.count()
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        self.inner.stats()
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = self.inner.counters();
        let seen: Vec<CacheUse> = self.shards.iter().filter_map(|shard| Some(lock(shard).ok()?.counted)).collect();
        let sum = |counter: fn(&CacheUse) -> u64| seen.iter().map(counter).sum();
        counters.insert("cache hits".to_string(), sum(|seen| seen.hits));
        counters.insert("cache misses".to_string(), sum(|seen| seen.misses));
        counters.insert("cache evictions".to_string(), sum(|seen| seen.evictions));
        counters
    }
}

/// One client's session.
struct Caching<'c> {
    cached: &'c Cached,
    inner: Box<dyn Session + 'c>,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    /// Units since it was opened.
    units: u64,
}

impl Session for Caching<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Get(key) => Ok(if self.load(key)? { Reply::Value(&self.value) } else { Reply::Missing }),
            Op::GetVersion(key) => Ok(match self.load(key)? {
                true => Reply::Versioned(&self.value, version(&self.value)),
                false => Reply::Missing,
            }),
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => self.set(key, value).map(|()| Reply::Done),
            Op::SetMany(pairs) => {
                pairs.iter().try_for_each(|(key, value)| self.set(key, value))?;
                Ok(Reply::Done)
            }
            Op::SetIfAbsent { key, value } => self.set_if(key, value, None),
            Op::Cas { key, version, value } => self.set_if(key, value, Some(version)),
            Op::Delete(key) => self.delete(key),
            Op::Increment { key, by } => self.add(key, by).map(Reply::Number),
            Op::Add { key, by } => self.add_unread(key, by).map(|()| Reply::Done),
            Op::AddMany(sums) => {
                sums.iter().try_for_each(|(key, by)| self.add_unread(key, by))?;
                Ok(Reply::Done)
            }
            Op::Number(key) => Ok(self.number(key)?.map_or(Reply::Missing, Reply::Number)),
            Op::NumberMany(keys) => {
                self.numbers.clear();
                for key in keys.iter() {
                    let number = self.number(key)?;
                    self.numbers.push(number);
                }
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::Set { ttl_s: Some(_), .. } | Op::Tally { .. } | Op::ReadTally(_) | Op::Scan { .. } => {
                Err(Fault::unsupported("a cache in front of a store", op))
            }
        }
    }

    /// A unit is at its end.
    fn flush(&mut self) -> Result<(), Fault> {
        self.units += 1;
        if self.cached.settings.merge.is_some_and(|every| self.units.is_multiple_of(every)) {
            self.merge()?;
        }
        self.inner.flush()
    }

    fn commands(&self) -> Option<u64> {
        self.inner.commands()
    }
}

/// Of values in memory, a version is a hash: equal values have equal ones.
fn version(value: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(value)
}

impl Caching<'_> {
    /// Does something with the part that has `key`, while nobody else does.
    ///
    /// Where there are several parts, clients commit before they let go of one: else one could hold the store's only
    /// writer and wait here for another, who waits for the writer.
    fn with<T>(
        &mut self,
        key: HashedKey<'_>,
        work: impl FnOnce(&mut Self, &mut Shard) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let cached = self.cached;
        let mut shard = cached.shard(key)?;
        let done = work(self, &mut shard);
        if cached.shards.len() > 1 {
            self.inner.flush()?;
        }
        done
    }

    /// Copies a value to `self.value`, out of memory or out of the store. False where there is none.
    fn load(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| session.load_in(shard, key))
    }

    fn load_in(&mut self, shard: &mut Shard, key: HashedKey<'_>) -> Result<bool, Fault> {
        self.value.clear();
        match shard.entries.get_mut(key) {
            Some(CacheEntry::Value { value, .. }) => {
                shard.counted.hits += 1;
                self.value.extend_from_slice(value);
                return Ok(true);
            }
            // How the store writes a counter as a value is the store's to say.
            Some(CacheEntry::Counter { .. }) => self.hand_back(shard, key)?,
            None => {}
        }
        shard.counted.misses += 1;
        match self.inner.ask(&Op::Get(&key))? {
            Reply::Value(value) => self.value.extend_from_slice(value),
            Reply::Missing => return Ok(false),
            other => return Err(unexpected("get", other)),
        }
        let entry = CacheEntry::Value { value: self.value.clone(), changed: false };
        shard.put(key, entry, self.inner.as_mut())?;
        Ok(true)
    }

    /// Writes a record and forgets it, for an op that the store must do itself.
    fn hand_back(&mut self, shard: &mut Shard, key: HashedKey<'_>) -> Result<(), Fault> {
        if let Some(entry) = shard.entries.peek(key) {
            write(&key, entry, self.inner.as_mut())?;
            shard.forget(key);
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| session.set_in(shard, key, value))
    }

    fn set_in(&mut self, shard: &mut Shard, key: HashedKey<'_>, value: &[u8]) -> Result<(), Fault> {
        let entry = CacheEntry::Value { value: value.to_vec(), changed: true };
        shard.put(key, entry, self.inner.as_mut())
    }

    /// Sets where the record is as it was (`Some` version) or is not there (`None`).
    fn set_if(&mut self, key: &[u8], value: &[u8], was: Option<u64>) -> Result<Reply<'static>, Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| {
            let found = session.load_in(shard, key)?.then(|| version(&session.value));
            if found != was {
                return Ok(Reply::Conflict);
            }
            session.set_in(shard, key, value)?;
            Ok(Reply::Done)
        })
    }

    /// What is only in memory is gone with its entry; what the store has must go there too.
    fn delete(&mut self, key: &[u8]) -> Result<Reply<'static>, Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| {
            let stored = match session.inner.ask(&Op::Delete(&key))? {
                Reply::Done => true,
                Reply::Missing => false,
                other => return Err(unexpected("delete", other)),
            };
            // A counter that nothing was added to is only what was read where there was none.
            let unstored = shard.entries.peek(key).is_some_and(CacheEntry::is_changed);
            shard.forget(key);
            Ok(if stored || unstored { Reply::Done } else { Reply::Missing })
        })
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.values.reset(keys.len());
        let (mut missing, mut places) = (KeyList::default(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            let key = HashedKey::of(key);
            let changes = self.with(key, |session, shard| {
                match shard.entries.get_mut(key) {
                    Some(CacheEntry::Value { value, .. }) => {
                        shard.counted.hits += 1;
                        session.values.put(place, value);
                        return Ok(None);
                    }
                    Some(CacheEntry::Counter { .. }) => session.hand_back(shard, key)?,
                    None => {}
                }
                shard.counted.misses += 1;
                Ok(Some(shard.changes))
            })?;
            if let Some(changes) = changes {
                missing.push(&key);
                places.push((place, changes));
            }
        }
        if !places.is_empty() {
            self.fetch(&missing, &places)?;
        }
        Ok(Reply::Values(self.values.lend()))
    }

    /// Asks the store for what was not in memory, in one question.
    fn fetch(&mut self, missing: &KeyList, places: &[(usize, u64)]) -> Result<(), Fault> {
        let cached = self.cached;
        let mut found = Vec::with_capacity(places.len());
        match self.inner.ask(&Op::GetMany(missing.lend()))? {
            Reply::Values(values) => found.extend(values.iter().map(|value| value.map(<[u8]>::to_vec))),
            other => return Err(unexpected("get-many", other)),
        }
        for ((key, &(place, changes)), value) in missing.lend().iter().zip(places).zip(found) {
            let key = HashedKey::of(key);
            self.with(key, |session, shard| {
                // Somebody may have set it since: then that is the newer one.
                if let Some(CacheEntry::Value { value, .. }) = shard.entries.get_mut(key) {
                    session.values.put(place, value);
                } else if let Some(value) = value {
                    session.values.put(place, &value);
                    // What was set and written meanwhile is newer than what we were told: it must not be covered up.
                    if shard.changes == changes || cached.shards.len() == 1 {
                        let entry = CacheEntry::Value { value, changed: false };
                        shard.put(key, entry, session.inner.as_mut())?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Adds in memory; the store is asked only for what it counted before.
    fn add(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| {
            match shard.entries.get_mut(key) {
                Some(CacheEntry::Counter { stored, added }) => {
                    let before = session.known(&key, stored, &mut shard.counted)?;
                    let sum = added.checked_add(by).and_then(|added| Some((added, before.checked_add(added)?)));
                    let (more, number) = sum.ok_or_else(|| overflow(&key))?;
                    *added = more;
                    return Ok(number);
                }
                Some(CacheEntry::Value { .. }) => session.hand_back(shard, key)?,
                None => {}
            }
            let stored = session.ask_number(&key, &mut shard.counted)?.unwrap_or(0);
            let number = stored.checked_add(by).ok_or_else(|| overflow(&key))?;
            let entry = CacheEntry::Counter { stored: Some(stored), added: by };
            shard.put(key, entry, session.inner.as_mut())?;
            Ok(number)
        })
    }

    /// Adds in memory, and asks the store for nothing.
    fn add_unread(&mut self, key: &[u8], by: i64) -> Result<(), Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| {
            match shard.entries.get_mut(key) {
                Some(CacheEntry::Counter { stored, added }) => {
                    shard.counted.hits += 1;
                    let more = added.checked_add(by).filter(|added| stored.unwrap_or(0).checked_add(*added).is_some());
                    *added = more.ok_or_else(|| overflow(&key))?;
                    return Ok(());
                }
                Some(CacheEntry::Value { .. }) => session.hand_back(shard, key)?,
                None => {}
            }
            shard.counted.misses += 1;
            let entry = CacheEntry::Counter { stored: None, added: by };
            shard.put(key, entry, session.inner.as_mut())
        })
    }

    fn number(&mut self, key: &[u8]) -> Result<Option<i64>, Fault> {
        let key = HashedKey::of(key);
        self.with(key, |session, shard| {
            match shard.entries.get_mut(key) {
                Some(CacheEntry::Counter { stored, added }) => {
                    let before = session.known(&key, stored, &mut shard.counted)?;
                    return before.checked_add(*added).map(Some).ok_or_else(|| overflow(&key));
                }
                Some(CacheEntry::Value { .. }) => session.hand_back(shard, key)?,
                None => {}
            }
            let Some(stored) = session.ask_number(&key, &mut shard.counted)? else { return Ok(None) };
            let entry = CacheEntry::Counter { stored: Some(stored), added: 0 };
            shard.put(key, entry, session.inner.as_mut())?;
            Ok(Some(stored))
        })
    }

    /// What the store counted before of a counter in memory; it is asked where that is not known yet.
    fn known(&mut self, key: &[u8], stored: &mut Option<i64>, counted: &mut CacheUse) -> Result<i64, Fault> {
        if let Some(before) = *stored {
            counted.hits += 1;
            return Ok(before);
        }
        let before = self.ask_number(key, counted)?.unwrap_or(0);
        *stored = Some(before);
        Ok(before)
    }

    /// Sends all that has changed, and forgets the counters: what is added next is added to nothing.
    fn merge(&mut self) -> Result<(), Fault> {
        let cached = self.cached;
        for shard in &cached.shards {
            let mut shard = lock(shard)?;
            shard.write_all(self.inner.as_mut())?;
            shard.forget_counters();
            // As in `with`: nobody waits for a part while holding the store's only writer.
            if cached.shards.len() > 1 {
                self.inner.flush()?;
            }
        }
        Ok(())
    }

    fn ask_number(&mut self, key: &[u8], counted: &mut CacheUse) -> Result<Option<i64>, Fault> {
        counted.misses += 1;
        match self.inner.ask(&Op::Number(key))? {
            Reply::Number(number) => Ok(Some(number)),
            Reply::Missing => Ok(None),
            other => Err(unexpected("number", other)),
        }
    }
}

fn overflow(key: &[u8]) -> Fault {
    let key = crate::model::op::readable(key, 80);
    Fault::Refused(format!("the cache: the counter of key '{key}' would leave 64 bits"))
}
