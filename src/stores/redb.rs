//! `redb`: a copy-on-write B-tree in one file, in Rust. One writer at a time, readers beside it.
//!
//! Documentation: <https://docs.rs/redb>, <https://github.com/cberner/redb/blob/master/docs/design.md>.

use redb::{
    AccessGuard, Database, Durability as Commit, OwnedAccessGuard, ReadOnlyTable, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, Table, TableDefinition, WriteTransaction,
};

use super::{Adapter, Facts, Launch, Means, Role, Session, Store, cell};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, ValueList};
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
        Ok(Box::new(Client {
            store: self,
            write: None,
            lent: None,
            copy: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
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

type Records<'t> = Table<'t, Bytes, Bytes>;

self_cell::self_cell!(
    /// A write transaction with its table open. Opening the table for each op would look its name up in a tree each
    /// time.
    struct Writing {
        owner: WriteTransaction,
        #[not_covariant]
        dependent: Records,
    }
);

/// One client's session.
struct Client<'s> {
    store: &'s Redb,
    /// The unit's transaction, open from its first write (level `none` only).
    write: Option<Writing>,
    /// What the last read lent, with its transaction, which keeps writers from taking the page for something else.
    lent: Option<OwnedAccessGuard<Bytes>>,
    /// What was read from the session's own open writes.
    copy: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Get(key) => Ok(self.get(key)?.map_or(Reply::Missing, Reply::Value)),
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => self.change(|records| {
                records.insert(key, value).map_err(refused)?;
                Ok(Reply::Done)
            }),
            Op::SetMany(pairs) => self.change(|records| {
                for (key, value) in pairs.iter() {
                    records.insert(key, value).map_err(refused)?;
                }
                Ok(Reply::Done)
            }),
            Op::SetIfAbsent { key, value } => self.change(|records| {
                if records.get(key).map_err(refused)?.is_some() {
                    return Ok(Reply::Conflict);
                }
                records.insert(key, value).map_err(refused)?;
                Ok(Reply::Done)
            }),
            Op::Delete(key) => self.change(|records| {
                let found = records.remove(key).map_err(refused)?.is_some();
                Ok(if found { Reply::Done } else { Reply::Missing })
            }),
            Op::Increment { key, by } => self.change(|records| add(records, key, by).map(Reply::Number)),
            Op::Add { key, by } => self.change(|records| add(records, key, by).map(|_| Reply::Done)),
            Op::AddMany(sums) => self.change(|records| {
                sums.iter().try_for_each(|(key, by)| add(records, key, by).map(drop))?;
                Ok(Reply::Done)
            }),
            Op::Number(key) => match self.get(key)? {
                Some(record) => Ok(Reply::Number(cell::decode(NAME, key, record)?)),
                None => Ok(Reply::Missing),
            },
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => {
                Ok(self.get(key)?.map_or(Reply::Missing, |value| Reply::Versioned(value, cell::version(value))))
            }
            Op::Cas { key, version, value } => self.change(|records| {
                let found = records.get(key).map_err(refused)?.map(|found| cell::version(found.value()));
                if found != Some(version) {
                    return Ok(Reply::Conflict);
                }
                records.insert(key, value).map_err(refused)?;
                Ok(Reply::Done)
            }),
            Op::Scan { from, limit } => self.scan(from, limit),
            Op::Set { ttl_s: Some(_), .. } | Op::Tally { .. } | Op::ReadTally(_) => Err(Fault::unsupported(NAME, op)),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.lent = None;
        self.write.take().map_or(Ok(()), |write| write.into_owner().commit().map_err(refused))
    }
}

/// Adds to a counter in place: one walk down the tree where it is there already.
fn add(records: &mut Records<'_>, key: &[u8], by: i64) -> Result<i64, Fault> {
    if let Some(mut found) = records.get_mut(key).map_err(refused)? {
        let number = cell::add(NAME, key, Some(found.value()), by)?;
        found.insert(cell::encode(number).as_slice()).map_err(refused)?;
        return Ok(number);
    }
    records.insert(key, cell::encode(by).as_slice()).map_err(refused)?;
    Ok(by)
}

impl Client<'_> {
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

    /// Changes records in the unit's transaction, or in one of its own.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Records<'_>) -> Result<Reply<'static>, Fault>,
    ) -> Result<Reply<'static>, Fault> {
        self.lent = None;
        let mut write = match self.write.take() {
            Some(write) => write,
            None => self.store.begin()?,
        };
        let reply = write.with_dependent_mut(|_, records| change(records));
        if !self.store.each_commits() {
            self.write = Some(write);
        } else if reply.is_ok() {
            write.into_owner().commit().map_err(refused)?;
        }
        // Otherwise it ends here without a commit, which undoes what a change did before it failed.
        reply
    }

    /// Hands `look` the table as the session sees it: its own open writes, or else the newest commit.
    fn view(&self, look: &mut dyn FnMut(&dyn Lookup) -> Result<(), Fault>) -> Result<(), Fault> {
        match &self.write {
            Some(write) => write.with_dependent(|_, records| look(records)),
            None => look(&self.store.read()?),
        }
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        self.view(&mut |records| {
            for key in keys.iter() {
                values.push(records.look(key)?.as_ref().map(AccessGuard::value));
            }
            Ok(())
        })?;
        self.values = values;
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        self.view(&mut |records| {
            for key in keys.iter() {
                let record = records.look(key)?;
                numbers.push(record.map(|record| cell::decode(NAME, key, record.value())).transpose()?);
            }
            Ok(())
        })?;
        self.numbers = numbers;
        Ok(Reply::Numbers(&self.numbers))
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        let (mut keys, mut values) = std::mem::take(&mut self.rows);
        keys.clear();
        values.clear();
        self.view(&mut |records| {
            records.walk(from, limit, &mut |key, value| {
                keys.push(key);
                values.push(value);
            })
        })?;
        self.rows = (keys, values);
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
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
