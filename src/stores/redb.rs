//! `redb`: a copy-on-write B-tree in one file, in Rust. One writer at a time, readers beside it.
//!
//! Documentation: <https://docs.rs/redb>, <https://github.com/cberner/redb/blob/master/docs/design.md>.

use redb::{
    AccessGuard, Database, Durability as Commit, OwnedAccessGuard, ReadOnlyTable, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, Table, TableDefinition, WriteTransaction,
};

use super::transactional::{RecordSession, RecordWriter, Records, carry_out};
use super::{Adapter, Facts, Launch, Means, Role, Session, Store, cell};
use crate::model::op::{Fault, Keys, Op, Reply};
use crate::model::trial::{Durability, Transport};

pub static REDB: Adapter = Adapter {
    name: NAME,
    about: "a copy-on-write B-tree in one file, written in Rust",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("Durability::None, one commit a unit"),
        Durability::Crash => Ok("Durability::Immediate (redb has nothing less that outlives its process)"),
        Durability::Power => Ok("Durability::Immediate"),
    },
    // Closing makes the last commit durable, whatever it was.
    stays: |_| true,
    lacks: |_| &[Means::Tally],
    open,
    server: None,
    version: || Ok(env!("KVFAIR_REDB").to_string()),
    get_it: "built in (cargo feature redb)",
};

const NAME: &str = "redb";
const FILE: &str = "kvfair.redb";

type Bytes = &'static [u8];
const RECORDS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("records");

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let place = launch.directory()?;
    let file = if place.is_dir() { place.join(FILE) } else { place.to_path_buf() };
    let cache_bytes = usize::try_from(launch.cache_bytes()).unwrap_or(usize::MAX);
    // <https://docs.rs/redb/latest/redb/struct.Builder.html#method.set_cache_size>
    let cache_bytes = (!launch.is_shipped()).then_some(cache_bytes);
    let mut builder = Database::builder();
    if let Some(cache_bytes) = cache_bytes {
        builder.set_cache_size(cache_bytes);
    }
    let database = builder.create(file).map_err(refused)?;
    let commit = match launch.durability {
        // Redb's own default is to sync each commit.
        Durability::None if !launch.is_shipped() => Commit::None,
        Durability::None => Commit::Immediate,
        Durability::Crash | Durability::Power => Commit::Immediate,
    };
    let store = Redb { database, commit, cache_bytes };
    // A reader needs the table to be there.
    store.begin()?.into_owner().commit().map_err(refused)?;
    Ok(Box::new(store))
}

struct Redb {
    database: Database,
    commit: Commit,
    /// Redb's own where there is none.
    cache_bytes: Option<usize>,
}

impl Redb {
    fn begin(&self) -> Result<Writing, Fault> {
        let mut write = self.database.begin_write().map_err(refused)?;
        // <https://docs.rs/redb/latest/redb/enum.Durability.html>
        write.set_durability(self.commit).map_err(refused)?;
        // Redb's defaults, by name: repairing after a crash may take its time rather than every commit a second sync.
        // <https://docs.rs/redb/latest/redb/struct.WriteTransaction.html#method.set_quick_repair>
        write.set_quick_repair(false);
        write.set_two_phase_commit(false);
        Writing::try_new(write, |write| write.open_table(RECORDS)).map_err(refused)
    }

    fn read(&self) -> Result<ReadOnlyTable<Bytes, Bytes>, Fault> {
        self.database.begin_read().map_err(refused)?.open_table(RECORDS).map_err(refused)
    }

    fn each_commits(&self) -> bool {
        matches!(self.commit, Commit::Immediate)
    }
}

impl Store for Redb {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(RecordSession::new(View { store: self, write: None, lent: None, copy: Vec::new() })))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let settings = [
            ("durability", format!("{:?}", self.commit)),
            ("cache size", self.cache_bytes.map_or_else(|| "redb's own".to_string(), |bytes| bytes.to_string())),
            ("quick repair", "false".to_string()),
            ("two-phase commit", "false".to_string()),
        ];
        Ok(Facts {
            version: env!("KVFAIR_REDB").to_string(),
            client_library: concat!("redb ", env!("KVFAIR_REDB")).to_string(),
            increment: "get + insert in a transaction".to_string(),
            settings: settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Facts::default()
        })
    }

    /// Commits are all a durability level needs: at `crash` and `power` each one was durable.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.read()?.len().map(Some).map_err(refused)
    }
}

fn refused(error: impl Into<redb::Error>) -> Fault {
    match error.into() {
        redb::Error::Io(error) => Fault::Lost(error),
        error => Fault::Refused(format!("redb: {error}")),
    }
}

type Open<'t> = Table<'t, Bytes, Bytes>;

self_cell::self_cell!(
    /// A write transaction with its table open. Opening the table for each op would look its name up in a tree each
    /// time.
    struct Writing {
        owner: WriteTransaction,
        #[not_covariant]
        dependent: Open,
    }
);

/// What one client sees.
struct View<'s> {
    store: &'s Redb,
    /// The unit's transaction, open from its first write (level `none` only).
    write: Option<Writing>,
    /// What the last read lent, with its transaction, which keeps writers from taking the page for something else.
    lent: Option<OwnedAccessGuard<Bytes>>,
    /// What was read from the session's own open writes.
    copy: Vec<u8>,
}

impl View<'_> {
    /// Hands `look` the table: with the session's own open writes, or else of the newest commit.
    fn now(&self, look: &mut dyn FnMut(&dyn Lookup) -> Result<(), Fault>) -> Result<(), Fault> {
        match &self.write {
            Some(write) => write.with_dependent(|_, records| look(records)),
            None => look(&self.store.read()?),
        }
    }
}

impl Records for View<'_> {
    const NAME: &'static str = NAME;

    fn longest_key(&self) -> Option<usize> {
        None
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        if let Some(write) = &self.write {
            let copy = &mut self.copy;
            let found = write.with_dependent(|_, records| -> Result<bool, Fault> {
                let Some(found) = records.look(key)? else { return Ok(false) };
                copy.clear();
                copy.extend_from_slice(found.value());
                Ok(true)
            })?;
            return Ok(found.then_some(&self.copy));
        }
        self.lent = self.store.read()?.get_owned(key).map_err(refused)?;
        Ok(self.lent.as_ref().map(OwnedAccessGuard::value))
    }

    fn each(
        &mut self,
        keys: Keys<'_>,
        mut see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.now(&mut |records| {
            keys.iter().try_for_each(|key| see(key, records.look(key)?.as_ref().map(AccessGuard::value)))
        })
    }

    fn scan(&mut self, from: &[u8], limit: u32, mut see: impl FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        self.now(&mut |records| records.walk(from, limit, &mut see))
    }

    /// In the unit's transaction, or in one of its own.
    fn change(&mut self, op: &Op<'_>) -> Result<Reply<'static>, Fault> {
        self.lent = None;
        let mut write = match self.write.take() {
            Some(write) => write,
            None => self.store.begin()?,
        };
        let reply = write.with_dependent_mut(|_, records| carry_out(records, op));
        if !self.store.each_commits() {
            self.write = Some(write);
        } else if reply.is_ok() {
            write.into_owner().commit().map_err(refused)?;
        }
        // Otherwise it ends here without a commit, which undoes what a change did before it failed.
        reply
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.lent = None;
        self.write.take().map_or(Ok(()), |write| write.into_owner().commit().map_err(refused))
    }
}

impl RecordWriter for Open<'_> {
    const NAME: &'static str = NAME;

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, Fault> {
        Ok(see(self.look(key)?.as_ref().map(AccessGuard::value)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.insert(key, value).map(drop).map_err(refused)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Fault> {
        Ok(Table::remove(self, key).map_err(refused)?.is_some())
    }

    /// In place: one walk down the tree where the counter is there already.
    fn add(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        if let Some(mut found) = self.get_mut(key).map_err(refused)? {
            let number = cell::add(NAME, key, Some(found.value()), by)?;
            found.insert(cell::encode(number).as_slice()).map_err(refused)?;
            return Ok(number);
        }
        self.put(key, cell::encode(by).as_slice())?;
        Ok(by)
    }
}

/// What redb's two kinds of table have in common, as far as it is needed here.
trait Lookup {
    fn look(&self, key: &[u8]) -> Result<Option<AccessGuard<'_, Bytes>>, Fault>;
    fn walk(&self, from: &[u8], limit: u32, row: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Fault>;
}

impl<T: ReadableTable<Bytes, Bytes>> Lookup for T {
    fn look(&self, key: &[u8]) -> Result<Option<AccessGuard<'_, Bytes>>, Fault> {
        self.get(key).map_err(refused)
    }

    fn walk(&self, from: &[u8], limit: u32, row: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        for found in self.range::<&[u8]>(from..).map_err(refused)?.take(limit as usize) {
            let (key, value) = found.map_err(refused)?;
            row(key.value(), value.value());
        }
        Ok(())
    }
}
