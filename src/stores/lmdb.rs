//! `lmdb`: a B+ tree in a memory map, by its binding heed. One writer at a time, readers beside it.
//!
//! Documentation: <http://www.lmdb.tech/doc/group__mdb.html>, <https://docs.rs/heed>.

use std::io;
use std::ops::Bound;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn, WithTls};
use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

use super::store_stats::StoreStats;
use super::transactional::{RecordSession, RecordWriter, Records, carry_out};
use super::{Adapter, Facts, Launch, Means, Role, Session, Store, cell};
use crate::model::op::{Fault, Keys, Op, Reply};
use crate::model::trial::{Durability, Transport};

pub static LMDB: Adapter = Adapter {
    name: NAME,
    about: "a B+ tree in a memory map: one writer, many readers",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("MDB_NOSYNC, one commit a unit"),
        Durability::Crash => Ok("MDB_NOSYNC"),
        Durability::Power => Ok("synchronous commits (no flags)"),
    },
    stays: |_| true,
    lacks: |_| &[Means::Tally],
    open,
    server: None,
    version: || Ok(version()),
    get_it: "built in (cargo feature lmdb)",
};

const NAME: &str = "lmdb";

/// The most that the database can grow to. LMDB asks for a size as large as it may ever get, since it only reserves
/// addresses: no memory or disk is taken before there is data. A quarter of a tebibyte fits the smallest address space
/// in use (39 bits). <http://www.lmdb.tech/doc/group__mdb.html#gaa2506ec8dab3d969b0e609cd82e619e5>
const MAP_BYTES: usize = 1 << 38;

/// Reader slots besides one a client: LMDB's default of 126 is for unknown programs, ours knows how many threads it
/// has.
const MORE_READERS: u32 = 126;

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(launch.clients.saturating_add(MORE_READERS));
    // As shipped every commit is synced. The map's size must be named all the same: LMDB's own 10 MiB hold no job.
    let each_commits = launch.is_shipped() || launch.durability > Durability::None;
    if launch.durability < Durability::Power && !launch.is_shipped() {
        // Commits are written to the file but not synced: they outlive this process, not the machine's power.
        // The map stays read-only (no MDB_WRITEMAP), LMDB's default, which keeps stray writes out of the data.
        // <http://www.lmdb.tech/doc/group__mdb.html#ga32a193c6bf4d7d5c5d579e71f22e9340>
        // SAFETY: without syncs a system crash can break the file; that is what the durability level allows, and the
        // data is ours.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: nobody changes the file behind LMDB's back: the directory is this trial's own, or the user named it as
    // LMDB's.
    let env = unsafe { options.open(launch.directory()?) }.map_err(refused)?;
    let write = env.write_txn().map_err(refused)?;
    let records = env
        .create_databases_and_commit(write, |creator, write| {
            creator.create_database(write, None).map(CommitOrAbort::<_, ()>::Commit)
        })
        .map_err(refused)?
        .unwrap_commit();
    let longest_key = env.max_key_size();
    Ok(Box::new(Lmdb { env, records, longest_key, each_commits }))
}

type Table = Database<'static, Bytes, Bytes>;

struct Lmdb {
    env: Env<WithTls>,
    /// The unnamed database: one table is all that is needed.
    records: Table,
    longest_key: usize,
    each_commits: bool,
}

impl Store for Lmdb {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(RecordSession::new(View { store: self, read: None, write: None })))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let flags = EnvFlags::from_bits_retain(self.env.get_flags().map_err(refused)?);
        let info = self.env.info();
        let settings = [
            ("flags", flag_names(flags)),
            ("map size", info.map_size.to_string()),
            ("max readers", info.maximum_number_of_readers.to_string()),
            ("max key size", self.longest_key.to_string()),
            ("page size", self.env.unnamed_database_stat().page_size.to_string()),
            ("cache", "the system's page cache".to_string()),
        ];
        Ok(Facts {
            version: version(),
            client_library: concat!("heed ", env!("KVFAIR_HEED")).to_string(),
            increment: "get + put in a transaction".to_string(),
            settings: settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Facts::default()
        })
    }

    /// Commits are all a durability level needs: at `power` each one was synced.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(self.env.unnamed_database_stat().entries as u64))
    }

    /// Its `MDB_envinfo` and `MDB_stat`, by their own names: it counts pages and commits, and nothing that waits.
    /// <http://www.lmdb.tech/doc/structMDB__envinfo.html>, <http://www.lmdb.tech/doc/structMDB__stat.html>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let (info, stat) = (self.env.info(), self.env.unnamed_database_stat());
        let numbers = [
            ("me_last_txnid", info.last_txn_id),
            ("me_last_pgno", info.last_page_number),
            ("me_numreaders", info.number_of_readers as usize),
            ("ms_depth", stat.depth as usize),
            ("ms_branch_pages", stat.branch_pages),
            ("ms_leaf_pages", stat.leaf_pages),
            ("ms_overflow_pages", stat.overflow_pages),
            ("ms_entries", stat.entries),
        ];
        Ok(numbers.into_iter().map(|(name, number)| (name, number as f64)).collect())
    }
}

impl Lmdb {
    /// A disk without room is not always told as such: a write that was cut short is EIO to LMDB, which blames the
    /// device, and a file that cannot grow may be MDB_MAP_FULL, which blames the map. The disk itself knows.
    #[cold]
    fn explained(&self, fault: Fault) -> Fault {
        /// A write that is cut short takes what there was; so much may be free again, or kept for root.
        const ROOM_BYTES: u64 = 256 << 10;
        let blamed = match &fault {
            Fault::Lost(error) if error.raw_os_error() == Some(Errno::EIO as i32) => error.to_string(),
            Fault::Refused(words) if words.contains("MDB_MAP_FULL") => words.clone(),
            _ => return fault,
        };
        #[allow(clippy::useless_conversion)] // Blocks are counted in 32 bits on macOS.
        let free = statvfs(self.env.path()).map(|disk| u64::from(disk.blocks_available()) * disk.fragment_size());
        match free {
            Ok(free) if free < ROOM_BYTES => Fault::Lost(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("{free} bytes are left at {} (LMDB said: {blamed})", self.env.path().display()),
            )),
            _ => fault,
        }
    }
}

fn flag_names(flags: EnvFlags) -> String {
    let names: Vec<String> = flags.iter_names().map(|(name, _)| format!("MDB_{}", name.replace('_', ""))).collect();
    if names.is_empty() { "none".to_string() } else { names.join(" ") }
}

fn refused(error: heed::Error) -> Fault {
    match error {
        heed::Error::Io(error) => Fault::Lost(error),
        error => Fault::Refused(format!("lmdb: {error}")),
    }
}

/// What one client sees. What it lends lies in the map itself, under the transaction that read it.
struct View<'s> {
    store: &'s Lmdb,
    /// The last read's transaction: it keeps what was lent, and ends with the next question.
    read: Option<RoTxn<'s, WithTls>>,
    /// The unit's transaction, open from its first write (level `none` only).
    write: Option<RwTxn<'s>>,
}

impl<'s> View<'s> {
    /// Its own open writes, or else the newest commit.
    fn now(&mut self) -> Result<&RoTxn<'_>, Fault> {
        if let Some(write) = &self.write {
            return Ok(write);
        }
        // A thread may have one read transaction, so the old one ends first.
        self.read = None;
        let read = self.store.env.read_txn().map_err(refused)?;
        Ok(self.read.insert(read))
    }

    /// In the unit's transaction, or in one of its own.
    fn changed(&mut self, op: &Op<'_>) -> Result<Reply<'static>, Fault> {
        self.read = None;
        let mut write = match self.write.take() {
            Some(write) => write,
            None => self.store.env.write_txn().map_err(refused)?,
        };
        let reply = carry_out(&mut Change { records: self.store.records, write: &mut write }, op);
        if !self.store.each_commits {
            self.write = Some(write);
        } else if reply.is_ok() {
            write.commit().map_err(refused)?;
        }
        // Otherwise it ends here without a commit, which undoes what a change did before it failed.
        reply
    }
}

impl Records for View<'_> {
    const NAME: &'static str = NAME;

    /// A constant of LMDB's build: 511 bytes unless somebody changed it.
    fn longest_key(&self) -> Option<usize> {
        Some(self.store.longest_key)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        let records = self.store.records;
        records.get(self.now()?, key).map_err(refused)
    }

    fn each(
        &mut self,
        keys: Keys<'_>,
        mut see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let records = self.store.records;
        let now = self.now()?;
        keys.iter().try_for_each(|key| see(key, records.get(now, key).map_err(refused)?))
    }

    fn scan(&mut self, from: &[u8], limit: u32, mut see: impl FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        let records = self.store.records;
        // LMDB looks for no empty key, which would be the least of all.
        if !from.is_empty() {
            cell::check_key(NAME, "scan", from, self.store.longest_key)?;
        }
        let from = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (from, Bound::Unbounded::<&[u8]>);
        for row in records.range(self.now()?, &range).map_err(refused)?.take(limit as usize) {
            let (key, value) = row.map_err(refused)?;
            see(key, value);
        }
        Ok(())
    }

    fn change(&mut self, op: &Op<'_>) -> Result<Reply<'static>, Fault> {
        self.changed(op).map_err(|fault| self.store.explained(fault))
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.read = None;
        let committed = self.write.take().map_or(Ok(()), |write| write.commit().map_err(refused));
        committed.map_err(|fault| self.store.explained(fault))
    }
}

struct Change<'c, 's> {
    records: Table,
    write: &'c mut RwTxn<'s>,
}

impl RecordWriter for Change<'_, '_> {
    const NAME: &'static str = NAME;

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, Fault> {
        self.records.get(self.write, key).map(see).map_err(refused)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.records.put(self.write, key, value).map_err(refused)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Fault> {
        self.records.delete(self.write, key).map_err(refused)
    }

    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        match self.records.put_with_flags(self.write, PutFlags::NO_OVERWRITE, key, value) {
            Ok(()) => Ok(true),
            Err(heed::Error::Mdb(MdbError::KeyExist)) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }
}
