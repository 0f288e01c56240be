//! `fjall`: a log-structured merge tree in Rust: a journal, tables in memory, sorted tables on disk.
//!
//! Documentation: <https://docs.rs/fjall>.

use std::sync::{Mutex, MutexGuard};

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};

use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Role, Session, Store, cell};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, Sums, ValueList};
use crate::model::trial::{Durability, Transport};

pub static FJALL: Adapter = Adapter {
    name: NAME,
    about: "a log-structured merge tree written in Rust",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("journal in the process's own buffer"),
        Durability::Crash => Ok("PersistMode::Buffer after each write"),
        Durability::Power => Ok("PersistMode::SyncData after each write"),
    },
    // Closing syncs the journal.
    stays: |_| true,
    lacks: |_| &[Means::Tally],
    open,
    server: None,
    version: || Ok(env!("KVFAIR_FJALL").to_string()),
    get_it: "built in (cargo feature fjall)",
};

const NAME: &str = "fjall";
const RECORDS: &str = "records";

/// Fjall panics at an empty key and at one whose length leaves 16 bits.
/// <https://docs.rs/fjall/latest/fjall/struct.Keyspace.html#method.insert>
const LONGEST_KEY: usize = u16::MAX as usize;

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    if launch.is_shipped() {
        return open_shipped(launch);
    }
    let database = Database::builder(launch.directory()?)
        // A block cache for all of the data where it fits memory, as its documentation advises.
        // <https://docs.rs/fjall/latest/fjall/struct.DatabaseBuilder.html#method.cache_size>
        .cache_size(launch.cache_bytes())
        // Fjall's defaults, by name: its journal packs large values, and 512 MiB of it may be kept.
        .journal_compression(CompressionType::Lz4)
        .max_journaling_size(512 << 20)
        // We say after each write how far it must have come, so that an old directory's options cannot say less.
        .manual_journal_persist(true)
        .open()
        .map_err(refused)?;
    let records = database.keyspace(RECORDS, options).map_err(refused)?;
    let persist = match launch.durability {
        Durability::None => None,
        Durability::Crash => Some(PersistMode::Buffer),
        // fdatasync also writes what of the file's metadata is needed to find the data, the journal's length above all;
        // LMDB and redb sync in the same way. <https://docs.rs/fjall/latest/fjall/enum.PersistMode.html>
        Durability::Power => Some(PersistMode::SyncData),
    };
    Ok(Box::new(Fjall { database, records, persist, writer: Mutex::new(()) }))
}

/// Fjall as it comes: its journal is written out after each write, and synced when it likes.
fn open_shipped(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let database = Database::builder(launch.directory()?).open().map_err(refused)?;
    let records = database.keyspace(RECORDS, KeyspaceCreateOptions::default).map_err(refused)?;
    Ok(Box::new(Fjall { database, records, persist: None, writer: Mutex::new(()) }))
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .manual_journal_persist(true)
        // Fjall's defaults, by name: young tables plain, older ones packed; 64 MiB in memory before a table is written.
        // <https://docs.rs/fjall/latest/fjall/struct.KeyspaceCreateOptions.html>
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
        .max_memtable_size(64 << 20)
}

struct Fjall {
    database: Database,
    records: Keyspace,
    /// How far each acknowledged write must have come.
    persist: Option<PersistMode>,
    /// One writer at a time, so that what is read for an increment or a check is still so when it is written. Fjall's
    /// own transactions lock in the same way, and lock its journal besides.
    writer: Mutex<()>,
}

impl Fjall {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().expect("no client panics in the middle of a change")
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice>, Fault> {
        self.records.get(key).map_err(refused)
    }

    fn add(&self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let number = cell::add(NAME, key, self.get(key)?.as_deref(), by)?;
        self.put(key, &cell::encode(number))?;
        Ok(number)
    }

    /// All in one batch, which is one write to the journal.
    fn add_many(&self, sums: Sums<'_>) -> Result<(), Fault> {
        let mut batch = self.database.batch();
        for (key, by) in sums.iter() {
            let number = cell::add(NAME, key, self.get(key)?.as_deref(), by)?;
            batch.insert(&self.records, key, cell::encode(number));
        }
        batch.commit().map_err(refused)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.records.insert(key, value).map_err(refused)
    }
}

impl Store for Fjall {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client {
            store: self,
            lent: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let persist = self.persist.map_or("none".to_string(), |mode| format!("PersistMode::{mode:?}"));
        let settings = [
            ("persist after each write", persist),
            ("cache size", self.database.cache_capacity().to_string()),
            ("journals", self.database.journal_count().to_string()),
            ("max memtable size", (64 << 20).to_string()),
            ("compression", "lz4 from level 2".to_string()),
        ];
        Ok(Facts {
            version: env!("KVFAIR_FJALL").to_string(),
            client_library: concat!("fjall ", env!("KVFAIR_FJALL")).to_string(),
            increment: "get + insert under one lock".to_string(),
            settings: settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Facts::default()
        })
    }

    /// Every acknowledged write was persisted as its durability level asks.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Fjall counts by walking through all keys.
    fn count(&self) -> Result<Option<u64>, Fault> {
        self.records.len().map(|count| Some(count as u64)).map_err(refused)
    }

    /// By the names of its own functions. <https://docs.rs/fjall/latest/fjall/struct.Database.html>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let Fjall { database, records, .. } = self;
        let numbers = [
            ("compactions_completed", database.compactions_completed() as f64),
            ("time_compacting, s", database.time_compacting().as_secs_f64()),
            ("active_compactions", database.active_compactions() as f64),
            ("outstanding_flushes", database.outstanding_flushes() as f64),
            ("write_buffer_size", database.write_buffer_size() as f64),
            ("cache_size", database.cache_size() as f64),
            ("journal_count", database.journal_count() as f64),
            ("journal_disk_space", database.journal_disk_space().map_err(refused)? as f64),
            ("sealed_memtable_count", records.sealed_memtable_count() as f64),
            ("l0_table_count", records.l0_table_count() as f64),
            ("table_count", records.table_count() as f64),
            ("disk_space", records.disk_space() as f64),
        ];
        Ok(numbers.into_iter().collect())
    }
}

fn refused(error: fjall::Error) -> Fault {
    match error {
        fjall::Error::Io(error) => Fault::Lost(error),
        error => Fault::Refused(format!("fjall: {error}")),
    }
}

/// One client's session.
struct Client<'s> {
    store: &'s Fjall,
    /// The value that was lent: fjall counts who uses it.
    lent: Option<Slice>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        check_keys(op)?;
        let store = self.store;
        match *op {
            Op::Get(key) => Ok(self.get(key)?.map_or(Reply::Missing, Reply::Value)),
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => self.change(|| {
                store.put(key, value)?;
                Ok(Reply::Done)
            }),
            Op::SetMany(pairs) => self.change(|| {
                let mut batch = store.database.batch();
                pairs.iter().for_each(|(key, value)| batch.insert(&store.records, key, value));
                batch.commit().map_err(refused)?;
                Ok(Reply::Done)
            }),
            Op::SetIfAbsent { key, value } => self.change(|| {
                if store.records.contains_key(key).map_err(refused)? {
                    return Ok(Reply::Conflict);
                }
                store.put(key, value)?;
                Ok(Reply::Done)
            }),
            Op::Delete(key) => self.change(|| {
                if !store.records.contains_key(key).map_err(refused)? {
                    return Ok(Reply::Missing);
                }
                store.records.remove(key).map_err(refused)?;
                Ok(Reply::Done)
            }),
            Op::Increment { key, by } => self.change(|| store.add(key, by).map(Reply::Number)),
            Op::Add { key, by } => self.change(|| store.add(key, by).map(|_| Reply::Done)),
            Op::AddMany(sums) => self.change(|| store.add_many(sums).map(|()| Reply::Done)),
            Op::Number(key) => match self.get(key)? {
                Some(record) => Ok(Reply::Number(cell::decode(NAME, key, record)?)),
                None => Ok(Reply::Missing),
            },
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => {
                Ok(self.get(key)?.map_or(Reply::Missing, |value| Reply::Versioned(value, cell::version(value))))
            }
            Op::Cas { key, version, value } => self.change(|| {
                if store.get(key)?.as_deref().map(cell::version) != Some(version) {
                    return Ok(Reply::Conflict);
                }
                store.put(key, value)?;
                Ok(Reply::Done)
            }),
            Op::Scan { from, limit } => self.scan(from, limit),
            Op::Set { ttl_s: Some(_), .. } | Op::Tally { .. } | Op::ReadTally(_) => Err(Fault::unsupported(NAME, op)),
        }
    }

    /// Each op commits itself: fjall has no cheaper way that writes several.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Client<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        self.lent = self.store.get(key)?;
        Ok(self.lent.as_deref())
    }

    /// Changes records as the only writer, then sees to it that the change keeps the durability level.
    fn change(&self, change: impl FnOnce() -> Result<Reply<'static>, Fault>) -> Result<Reply<'static>, Fault> {
        let turn = self.store.lock();
        let reply = change()?;
        drop(turn);
        if let Some(mode) = self.store.persist {
            self.store.database.persist(mode).map_err(refused)?;
        }
        Ok(reply)
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.values.clear();
        for key in keys.iter() {
            self.values.push(self.store.get(key)?.as_deref());
        }
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.numbers.clear();
        for key in keys.iter() {
            let record = self.store.get(key)?;
            self.numbers.push(record.map(|record| cell::decode(NAME, key, &record)).transpose()?);
        }
        Ok(Reply::Numbers(&self.numbers))
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        let (keys, values) = &mut self.rows;
        keys.clear();
        values.clear();
        for row in self.store.records.range(from..).take(limit as usize) {
            let (key, value) = row.into_inner().map_err(refused)?;
            keys.push(&key);
            values.push(&value);
        }
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
    }
}

fn check_keys(op: &Op<'_>) -> Result<(), Fault> {
    let check = |key: &[u8]| cell::check_key(NAME, op.name(), key, LONGEST_KEY);
    match op {
        Op::GetMany(keys) | Op::NumberMany(keys) => keys.iter().try_for_each(check),
        Op::SetMany(pairs) => pairs.keys.iter().try_for_each(check),
        Op::AddMany(sums) => sums.keys().iter().try_for_each(check),
        Op::Scan { .. } | Op::Tally { .. } | Op::ReadTally(_) => Ok(()),
        op => check(op.key()),
    }
}
