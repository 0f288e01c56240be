//! `fjall`: a log-structured merge tree in Rust: a journal, tables in memory, sorted tables on disk.
//!
//! Documentation: <https://docs.rs/fjall>.

use std::sync::{Mutex, MutexGuard};

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};

use super::store_stats::StoreStats;
use super::transactional::{RecordSession, RecordWriter, Records, carry_out};
use super::{Adapter, Facts, Launch, Means, Role, Session, Store, cell};
use crate::model::op::{Fault, Keys, Op, Pairs, Reply, Sums};
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
}

impl Store for Fjall {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(RecordSession::new(View { store: self, lent: None })))
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

/// What one client sees.
struct View<'s> {
    store: &'s Fjall,
    /// The value that was lent: fjall counts who uses it.
    lent: Option<Slice>,
}

impl Records for View<'_> {
    const NAME: &'static str = NAME;

    fn longest_key(&self) -> Option<usize> {
        Some(LONGEST_KEY)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        self.lent = self.store.get(key)?;
        Ok(self.lent.as_deref())
    }

    fn each(
        &mut self,
        keys: Keys<'_>,
        mut see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        keys.iter().try_for_each(|key| see(key, self.store.get(key)?.as_deref()))
    }

    fn scan(&mut self, from: &[u8], limit: u32, mut see: impl FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        for row in self.store.records.range(from..).take(limit as usize) {
            let (key, value) = row.into_inner().map_err(refused)?;
            see(&key, &value);
        }
        Ok(())
    }

    /// As the only writer, then as far as the durability level asks.
    fn change(&mut self, op: &Op<'_>) -> Result<Reply<'static>, Fault> {
        let turn = self.store.lock();
        let reply = carry_out(&mut Change(self.store), op)?;
        drop(turn);
        if let Some(mode) = self.store.persist {
            self.store.database.persist(mode).map_err(refused)?;
        }
        Ok(reply)
    }

    /// Each op commits itself: fjall has no cheaper way that writes several.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

struct Change<'s>(&'s Fjall);

impl RecordWriter for Change<'_> {
    const NAME: &'static str = NAME;

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, Fault> {
        Ok(see(self.0.get(key)?.as_deref()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.0.records.insert(key, value).map_err(refused)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let is_there = self.0.records.contains_key(key).map_err(refused)?;
        if is_there {
            self.0.records.remove(key).map_err(refused)?;
        }
        Ok(is_there)
    }

    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        let is_there = self.0.records.contains_key(key).map_err(refused)?;
        if !is_there {
            self.put(key, value)?;
        }
        Ok(!is_there)
    }

    /// All in one batch, which is one write to the journal.
    fn put_many(&mut self, pairs: Pairs<'_>) -> Result<(), Fault> {
        let mut batch = self.0.database.batch();
        pairs.iter().for_each(|(key, value)| batch.insert(&self.0.records, key, value));
        batch.commit().map_err(refused)
    }

    fn add_many(&mut self, sums: Sums<'_>) -> Result<(), Fault> {
        let mut batch = self.0.database.batch();
        for (key, by) in sums.iter() {
            let number = cell::add(NAME, key, self.0.get(key)?.as_deref(), by)?;
            batch.insert(&self.0.records, key, cell::encode(number));
        }
        batch.commit().map_err(refused)
    }
}
