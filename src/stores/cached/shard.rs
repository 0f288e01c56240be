//! One part of a cache: which records it holds, what they cost, and which of them goes first. It must not know what is
//! asked of them.

use super::recent::{HashedKey, Recent};
use crate::model::op::{Fault, KeyList, Op, Pairs, Reply, SumList};
use crate::model::trial::CacheCounts;
use crate::stores::Session;

/// What keeping an entry costs besides its key and value: its place in the map and the list, the key's allocation, and
/// spare room. A process grew by 85 bytes an entry over 400,000 counters; a map that has just grown takes more.
const ENTRY_BYTES: usize = 150;
/// Records that go out together when all must.
const BATCH_RECORDS: usize = 100;
const BATCH_BYTES: usize = 1 << 20;

/// A part of the records, the least recently used ones first to go.
pub struct Shard {
    pub entries: Recent<CacheEntry>,
    pub bytes: usize,
    pub limit_bytes: usize,
    pub limit_items: usize,
    pub counts: CacheCounts,
    /// Rises whenever an entry comes, changes or goes.
    pub changes: u64,
    pub counted: CacheUse,
}

/// What became of ops.
#[derive(Clone, Copy, Default)]
pub struct CacheUse {
    pub hits: u64,
    pub misses: u64,
    /// What had to go.
    pub evictions: u64,
}

pub enum CacheEntry {
    Value {
        value: Vec<u8>,
        changed: bool,
    },
    /// A counter as the store has it, where that is known, and what was added since.
    Counter {
        stored: Option<i64>,
        added: i64,
    },
}

impl CacheEntry {
    pub fn is_changed(&self) -> bool {
        match self {
            CacheEntry::Value { changed, .. } => *changed,
            CacheEntry::Counter { added, .. } => *added != 0,
        }
    }
}

impl Shard {
    fn cost(&self, key: &[u8], entry: &CacheEntry) -> usize {
        let value = match entry {
            CacheEntry::Value { value, .. } => value.len(),
            CacheEntry::Counter { .. } => size_of::<i64>(),
        };
        match self.counts {
            CacheCounts::Entries => key.len() + value + ENTRY_BYTES,
            CacheCounts::Values => value,
        }
    }

    /// Takes an entry in place of the one that is there, whatever it held, and makes room for it. One that
    /// is larger than all the room there is goes straight to the store.
    pub fn put(&mut self, key: HashedKey<'_>, entry: CacheEntry, inner: &mut dyn Session) -> Result<(), Fault> {
        self.changes += 1;
        let cost = self.cost(&key, &entry);
        if cost > self.limit_bytes || self.limit_items == 0 {
            write(&key, &entry, inner)?;
            self.forget(key);
            return Ok(());
        }
        let old = self.entries.peek(key).map(|old| self.cost(&key, old));
        let (old, more) = (old.unwrap_or(0), usize::from(old.is_none()));
        while self.bytes - old + cost > self.limit_bytes || self.entries.len() + more > self.limit_items {
            // The one that is replaced must not be the one that goes: what it held is no longer wanted.
            if self.entries.oldest().is_some_and(|(last, _)| *last == *key) {
                self.entries.get_mut(key);
            }
            self.evict(inner)?;
            self.counted.evictions += 1;
        }
        self.bytes = self.bytes - old + cost;
        if more == 1 {
            self.entries.insert(key, entry);
        } else if let Some(place) = self.entries.get_mut(key) {
            *place = entry;
        }
        Ok(())
    }

    /// Writes the least recently used record if it has changed, and only then lets go of it.
    fn evict(&mut self, inner: &mut dyn Session) -> Result<(), Fault> {
        let Some((key, entry)) = self.entries.oldest() else { return Ok(()) };
        write(&key, entry, inner)?;
        self.bytes -= self.cost(&key, entry);
        self.entries.remove_oldest();
        Ok(())
    }

    pub fn forget(&mut self, key: HashedKey<'_>) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.changes += 1;
        self.bytes -= self.cost(&key, &entry);
        true
    }

    /// Writes all that has changed, many at once. What the store has not taken stays changed.
    pub fn write_all(&mut self, inner: &mut dyn Session) -> Result<(), Fault> {
        let (mut values, mut sums) = (ChangedValues::default(), ChangedCounters::default());
        for (key, entry) in self.entries.iter_mut() {
            match entry {
                CacheEntry::Value { value, changed } if *changed => values.push(key, value, changed),
                CacheEntry::Counter { added: 0, .. } => {}
                CacheEntry::Counter { stored, added } => match *added {
                    0.. => sums.push(key, stored, added),
                    // Not every store can take away from many at once.
                    less => {
                        write(key, &CacheEntry::Counter { stored: *stored, added: less }, inner)?;
                        (*stored, *added) = (stored.map(|stored| stored + less), 0);
                    }
                },
                _ => {}
            }
            if values.entries.len() == BATCH_RECORDS || values.bytes >= BATCH_BYTES {
                values.send(inner)?;
            }
            if sums.entries.len() == BATCH_RECORDS {
                sums.send(inner)?;
            }
        }
        values.send(inner)?;
        sums.send(inner)
    }

    /// Those that were written, all of them.
    pub fn forget_counters(&mut self) {
        let (mut entries, mut gone_bytes) = (std::mem::take(&mut self.entries), 0);
        entries.remove_if(|key, entry| {
            let is_counter = matches!(entry, CacheEntry::Counter { added: 0, .. });
            if is_counter {
                gone_bytes += self.cost(key, entry);
            }
            is_counter
        });
        self.changes += 1;
        self.bytes -= gone_bytes;
        self.entries = entries;
    }
}

/// Values on their way to the store.
#[derive(Default)]
struct ChangedValues<'e> {
    keys: KeyList,
    values: KeyList,
    bytes: usize,
    entries: Vec<&'e mut bool>,
}

impl<'e> ChangedValues<'e> {
    fn push(&mut self, key: &[u8], value: &[u8], changed: &'e mut bool) {
        self.keys.push(key);
        self.values.push(value);
        self.bytes += key.len() + value.len();
        self.entries.push(changed);
    }

    fn send(&mut self, inner: &mut dyn Session) -> Result<(), Fault> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let pairs = Pairs { keys: self.keys.lend(), values: self.values.lend() };
        expect_done("set-many", inner.ask(&Op::SetMany(pairs))?)?;
        self.entries.drain(..).for_each(|changed| *changed = false);
        self.keys.clear();
        self.values.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// What was added to counters, on its way to the store.
#[derive(Default)]
struct ChangedCounters<'e> {
    sums: SumList,
    entries: Vec<(&'e mut Option<i64>, &'e mut i64)>,
}

impl<'e> ChangedCounters<'e> {
    fn push(&mut self, key: &[u8], stored: &'e mut Option<i64>, added: &'e mut i64) {
        self.sums.push(key, *added);
        self.entries.push((stored, added));
    }

    fn send(&mut self, inner: &mut dyn Session) -> Result<(), Fault> {
        if self.entries.is_empty() {
            return Ok(());
        }
        expect_done("add-many", inner.ask(&Op::AddMany(self.sums.lend()))?)?;
        for (stored, added) in self.entries.drain(..) {
            *stored = stored.map(|stored| stored + *added);
            *added = 0;
        }
        self.sums.clear();
        Ok(())
    }
}

/// Puts one record into the store, if it has changed.
pub fn write(key: &[u8], entry: &CacheEntry, inner: &mut dyn Session) -> Result<(), Fault> {
    match entry {
        entry if !entry.is_changed() => Ok(()),
        CacheEntry::Value { value, .. } => expect_done("set", inner.ask(&Op::Set { key, value, ttl_s: None })?),
        CacheEntry::Counter { added, .. } if *added < 0 => match inner.ask(&Op::Increment { key, by: *added })? {
            Reply::Number(_) => Ok(()),
            other => Err(unexpected("increment", other)),
        },
        CacheEntry::Counter { added, .. } => expect_done("add", inner.ask(&Op::Add { key, by: *added })?),
    }
}

fn expect_done(op: &str, reply: Reply<'_>) -> Result<(), Fault> {
    match reply {
        Reply::Done => Ok(()),
        other => Err(unexpected(op, other)),
    }
}

pub fn unexpected(op: &str, reply: Reply<'_>) -> Fault {
    Fault::Garbled(format!("{op} was answered by {reply:?}"))
}
