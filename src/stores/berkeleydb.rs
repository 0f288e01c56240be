//! `berkeleydb`: the hash and the B-tree of the post of 2009, by the system's library. It knows how each durability
//! level is set.

mod interface;
mod store_stats;

use std::ffi::{CStr, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::bytemap::{ByteMap, Engine};
use super::library::{c_path, fill};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Price, Role, Setting, SettingValues, Store};
use crate::model::op::{Fault, KeyList, Pairs};
use crate::model::trial::{Durability, Transport};
use crate::model::units;
use interface::*;

pub static BERKELEYDB: Adapter = Adapter {
    name: NAME,
    about: "a hash or a B-tree in one file, with or without transactions (1994)",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[TYPE, CACHE, ENVIRONMENT],
    keeps: |level| match level {
        Durability::None => Ok("no environment"),
        Durability::Crash => Ok("environment with a log, DB_TXN_WRITE_NOSYNC"),
        Durability::Power => Ok("environment with a log, synchronous commits"),
    },
    stays: |_| true,
    lacks: |settings| match settings.get(TYPE.name).map(String::as_str) {
        Some("btree") => &[Means::Tally],
        _ => &[Means::Scan, Means::Tally],
    },
    open,
    server: None,
    version,
    get_it: "apt install libdb5.3",
};

const NAME: &str = "berkeleydb";

const TYPE: Setting = Setting {
    name: "type",
    about: "hash, or btree",
    default: "hash",
    values: SettingValues::OneOf(&["hash", "btree"]),
    price: Price::Pays("only a btree has scans"),
};
const CACHE: Setting = Setting {
    name: "cache",
    about: "its page cache, as in 256KB (its makers' default); the budget of caches unless named",
    default: "",
    values: SettingValues::Checked { check: check_size, worth_trying: &["256KB", "16MB", "256MB"] },
    price: Price::Pays("memory"),
};
const ENVIRONMENT: Setting = Setting {
    name: "env",
    about: "yes: in an environment with a log and transactions, as crash and power need it anyway",
    default: "no",
    values: SettingValues::OneOf(&["yes", "no"]),
    price: Price::Pays("a log on disk"),
};

fn check_size(text: &str) -> Result<(), String> {
    match units::parse_bytes(text) {
        Some(bytes) if bytes > 0 => Ok(()),
        _ => Err("a size such as 256KB or 1GiB".to_string()),
    }
}

fn version() -> Result<String, String> {
    load().map(|(_, version)| version)
}

struct Berkeley {
    api: Api,
    version: String,
    /// Used by one thread at a time: what it lends lives until the next call.
    database: Mutex<Handle>,
    environment: Handle,
    /// Bytes of keys and values that were changed since the log was looked at, where it is trimmed.
    changed_bytes: Option<AtomicU64>,
    /// Whether keys have an order.
    is_tree: bool,
    settings: Vec<(&'static str, String)>,
}

// SAFETY: a handle that was opened without DB_THREAD may be used by any thread, by one at a time
// (<https://docs.oracle.com/cd/E17076_05/html/programmer_reference/program_mt.html>): every call is made under the
// lock. Tested by tests/contract.rs with four clients.
unsafe impl Send for Berkeley {}
// SAFETY: as above.
unsafe impl Sync for Berkeley {}

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let (api, version) = load().map_err(|why| Fault::Unsupported(format!("{NAME}: {why}")))?;
    let matched = !launch.is_shipped();
    let is_tree = launch.setting(&TYPE) == "btree";
    let level = matched.then_some(launch.durability);
    let in_environment = level > Some(Durability::None) || launch.setting(&ENVIRONMENT) == "yes";
    let cache_bytes = match units::parse_bytes(launch.setting(&CACHE)) {
        Some(bytes) if bytes > 0 => Some(bytes),
        _ => matched.then(|| launch.cache_bytes()),
    };
    let place = launch.directory()?;
    let mut berkeley = Berkeley {
        api,
        version,
        database: Mutex::new(null_mut()),
        environment: null_mut(),
        changed_bytes: None,
        is_tree,
        settings: vec![
            ("type", launch.setting(&TYPE).to_string()),
            ("environment", if in_environment { "log, locks, transactions" } else { "none" }.to_string()),
        ],
    };
    if in_environment {
        berkeley.open_environment(place, level, cache_bytes)?;
    }
    berkeley.open_database(place, cache_bytes)?;
    Ok(Box::new(ByteMap::new(berkeley)))
}

impl Berkeley {
    fn open_environment(
        &mut self,
        home: &Path,
        level: Option<Durability>,
        cache_bytes: Option<u64>,
    ) -> Result<(), Fault> {
        let home = c_path(home)?;
        // SAFETY: a new environment of this version, asked as its header says, and opened once.
        unsafe {
            let mut environment = null_mut();
            self.check((self.api.env_create)(&mut environment, 0), "db_env_create")?;
            self.environment = environment;
            if let Some(bytes) = cache_bytes {
                let (gigabytes, rest) = split(bytes);
                let set = method::<SetCache>(environment, at::ENV_SET_CACHESIZE);
                self.check(set(environment, gigabytes, rest, 1), "set_cachesize")?;
            }
            // At none the log stays in memory until there is enough of it; at crash it is written to the system at each
            // commit, which outlives the process, and not synced; at power it is synced, as by default.
            // <https://docs.oracle.com/cd/E17076_05/html/api_reference/C/envset_flags.html>
            let lazy = match level {
                Some(Durability::None) => DB_TXN_NOSYNC,
                Some(Durability::Crash) => DB_TXN_WRITE_NOSYNC,
                Some(Durability::Power) | None => 0,
            };
            if lazy != 0 {
                let set = method::<SetFlags>(environment, at::ENV_SET_FLAGS);
                self.check(set(environment, lazy, 1), "set_flags")?;
            }
            // Private: one process has it. Recovery runs at every opening, and is short where there is nothing to do.
            let flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_INIT;
            let open = method::<OpenEnv>(environment, at::ENV_OPEN);
            self.check(open(environment, home.as_ptr(), flags, 0), "opening the environment")?;
            let mut flags = 0;
            let get = method::<GetFlags>(environment, at::ENV_GET_FLAGS);
            self.check(get(environment, &mut flags), "get_flags")?;
            for (name, flag) in [("DB_TXN_NOSYNC", DB_TXN_NOSYNC), ("DB_TXN_WRITE_NOSYNC", DB_TXN_WRITE_NOSYNC)] {
                self.settings.push((name, (flags & flag != 0).to_string()));
            }
            self.same("flags of transactions", flags & (DB_TXN_NOSYNC | DB_TXN_WRITE_NOSYNC), lazy)?;
        }
        if level.is_some() { self.trim_log() } else { Ok(()) }
    }

    /// Has log files removed that no recovery would need; they would hold every change ever made, for restoring a
    /// backup that nobody has. They are not needed once a checkpoint has written the pages that they tell of.
    /// <https://docs.oracle.com/cd/E17076_05/html/programmer_reference/transapp_logfile.html>
    fn trim_log(&mut self) -> Result<(), Fault> {
        let environment = self.environment;
        // SAFETY: the environment is open, and asked as its header says.
        unsafe {
            let set = method::<SetLog>(environment, at::ENV_LOG_SET_CONFIG);
            self.check(set(environment, DB_LOG_AUTO_REMOVE, 1), "log_set_config")?;
            let mut on = 0;
            let get = method::<GetLog>(environment, at::ENV_LOG_GET_CONFIG);
            self.check(get(environment, DB_LOG_AUTO_REMOVE, &mut on), "log_get_config")?;
            self.same("DB_LOG_AUTO_REMOVE", u32::from(on != 0), 1)?;
        }
        self.settings.push(("DB_LOG_AUTO_REMOVE", "true".to_string()));
        self.changed_bytes = Some(AtomicU64::new(0));
        Ok(())
    }

    /// Now and then has the library look how much log there is since the last checkpoint, and make one where it is
    /// enough.
    fn changed(&self, bytes: usize) -> Result<(), Fault> {
        let Some(changed_bytes) = &self.changed_bytes else { return Ok(()) };
        // Whoever changes holds the database's lock.
        let sum = changed_bytes.load(Ordering::Relaxed) + bytes as u64;
        if sum < LOOK_AT_LOG_BYTES {
            changed_bytes.store(sum, Ordering::Relaxed);
            return Ok(());
        }
        changed_bytes.store(0, Ordering::Relaxed);
        // SAFETY: the environment is open, and asked as its header says.
        let checkpoint = unsafe { method::<Checkpoint>(self.environment, at::ENV_TXN_CHECKPOINT) };
        // SAFETY: as above.
        self.check(unsafe { checkpoint(self.environment, CHECKPOINT_KIB, 0, 0) }, "txn_checkpoint")
    }

    /// What the library says that is in force must be what was asked.
    fn same(&self, what: &str, found: u32, asked: u32) -> Result<(), Fault> {
        if found == asked {
            return Ok(());
        }
        Err(Fault::Refused(format!("{NAME}: {what}: {found:#x} is in force where {asked:#x} was asked")))
    }

    fn open_database(&mut self, place: &Path, cache_bytes: Option<u64>) -> Result<(), Fault> {
        let in_environment = !self.environment.is_null();
        let file = match place.is_dir() {
            true if in_environment => Path::new(FILE).to_path_buf(),
            true => place.join(FILE),
            false => place.to_path_buf(),
        };
        let file = c_path(&file)?;
        let kind = if self.is_tree { DB_BTREE } else { DB_HASH };
        let flags = if in_environment { DB_CREATE | DB_AUTO_COMMIT } else { DB_CREATE };
        // SAFETY: a new database of this version, in the environment that is open or in none, asked as its header says.
        unsafe {
            let mut database = null_mut();
            self.check((self.api.create)(&mut database, self.environment, 0), "db_create")?;
            *self.database.get_mut().expect("it is not shared yet") = database;
            if let (Some(bytes), false) = (cache_bytes, in_environment) {
                let (gigabytes, rest) = split(bytes);
                let set = method::<SetCache>(database, at::DB_SET_CACHESIZE);
                self.check(set(database, gigabytes, rest, 1), "set_cachesize")?;
            }
            let open = method::<OpenDb>(database, at::DB_OPEN);
            self.check(open(database, null_mut(), file.as_ptr(), null(), kind, flags, 0), "opening the database")?;
            let (mut kind_found, mut flags_found) = (0, 0);
            let get_kind = method::<GetInt>(database, at::DB_GET_TYPE);
            self.check(get_kind(database, &mut kind_found), "get_type")?;
            self.same("type", kind_found as u32, kind as u32)?;
            let get_flags = method::<GetFlags>(database, at::DB_GET_OPEN_FLAGS);
            self.check(get_flags(database, &mut flags_found), "get_open_flags")?;
            self.same("flags of opening", flags_found, flags)?;
            let (mut gigabytes, mut rest, mut caches) = (0, 0, 0);
            // In an environment the cache is the environment's.
            let (owner, place) = match in_environment {
                true => (self.environment, at::ENV_GET_CACHESIZE),
                false => (database, at::DB_GET_CACHESIZE),
            };
            let get = method::<GetCache>(owner, place);
            self.check(get(owner, &mut gigabytes, &mut rest, &mut caches), "get_cachesize")?;
            self.settings.push(("cache", ((u64::from(gigabytes) << 30) + u64::from(rest)).to_string()));
        }
        Ok(())
    }

    /// `transaction` is open, or null: then the change commits itself. `database` is locked by the caller.
    fn put_in(&self, database: Handle, transaction: Handle, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (mut key, mut value) = (Thing::of(key)?, Thing::of(value)?);
        // SAFETY: as in `get`; key and value are only read.
        let code = unsafe { method::<KeyValue>(database, at::DB_PUT)(database, transaction, &mut key, &mut value, 0) };
        self.check(code, "put")
    }

    fn lock(&self) -> MutexGuard<'_, Handle> {
        self.database.lock().expect("no client panics in the middle of a call")
    }

    fn check(&self, code: c_int, what: &str) -> Result<(), Fault> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the message is a constant of the library's.
        let words = unsafe { CStr::from_ptr((self.api.strerror)(code)).to_string_lossy().into_owned() };
        if code == nix::errno::Errno::ENOSPC as c_int {
            return Err(Fault::Lost(std::io::Error::from_raw_os_error(code)));
        }
        Err(Fault::Refused(format!("{NAME}: {what}: {words}")))
    }

    /// Goes through pairs from `from` on (or from the first) until `see` has had enough.
    fn walk(&self, from: Option<&[u8]>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Fault> {
        let database = self.lock();
        let mut key = from.map_or_else(|| Ok(Thing::empty()), Thing::of)?;
        let mut value = Thing::empty();
        let mut step = if from.is_some() { DB_SET_RANGE } else { DB_FIRST };
        // SAFETY: a cursor of this database, closed before the lock is let go; what it lends is copied before it moves.
        unsafe {
            let mut cursor = null_mut();
            let new = method::<NewCursor>(*database, at::DB_CURSOR);
            self.check(new(*database, null_mut(), &mut cursor, 0), "cursor")?;
            let (get, close) =
                (method::<Move>(cursor, at::CURSOR_GET), method::<CloseCursor>(cursor, at::CURSOR_CLOSE));
            let ended = loop {
                let code = get(cursor, &mut key, &mut value, step);
                if code != 0 || !see(key.bytes(), value.bytes()) {
                    break code;
                }
                step = DB_NEXT;
            };
            close(cursor);
            if ended == DB_NOTFOUND { Ok(()) } else { self.check(ended, "cursor") }
        }
    }
}

const FILE: &str = "kvfair.db";

/// A checkpoint is made when there is so much log since the last one: as much as SQLite and LevelDB keep is less, and
/// the 10 MB of one log file would have every tenth write of a megabyte wait for all pages that have changed.
const CHECKPOINT_KIB: u32 = 64 << 10;
/// How many bytes of changes may go by before the log is looked at, which takes a lock of the library's.
const LOOK_AT_LOG_BYTES: u64 = 1 << 20;

/// A size as the library takes it, in gigabytes and the rest.
fn split(bytes: u64) -> (u32, u32) {
    ((bytes >> 30).min(u64::from(u32::MAX)) as u32, (bytes & ((1 << 30) - 1)) as u32)
}

impl Drop for Berkeley {
    fn drop(&mut self) {
        let database = *self.lock();
        // SAFETY: each was made by this library and is used by nobody any more: sessions borrow from the store.
        unsafe {
            if !database.is_null() {
                method::<Close>(database, at::DB_CLOSE)(database, 0);
            }
            if !self.environment.is_null() {
                method::<Close>(self.environment, at::ENV_CLOSE)(self.environment, 0);
            }
        }
    }
}

impl Engine for Berkeley {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        let mut key = Thing::of(key)?;
        let database = self.lock();
        // SAFETY: the database is open and ours while the lock is held; it writes no more than there is room for, and
        // says how long the value is where that is too little.
        unsafe {
            let get = method::<KeyValue>(*database, at::DB_GET);
            fill(out, |into, room| {
                let mut value = Thing::room(into, room);
                match get(*database, null_mut(), &mut key, &mut value, 0) {
                    DB_NOTFOUND => Ok(None),
                    DB_BUFFER_SMALL => Ok(Some(value.size as usize)),
                    code => self.check(code, "get").map(|()| Some(value.size as usize)),
                }
            })
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let database = self.lock();
        self.put_in(*database, null_mut(), key, value)?;
        self.changed(key.len() + value.len())
    }

    /// In one transaction, where there are any.
    fn put_many(&self, pairs: Pairs<'_>) -> Result<(), Fault> {
        if self.environment.is_null() {
            return pairs.iter().try_for_each(|(key, value)| self.put(key, value));
        }
        let database = self.lock();
        let mut transaction = null_mut();
        // SAFETY: the environment is open, and asked as its header says.
        let began = unsafe {
            let begin = method::<Begin>(self.environment, at::ENV_TXN_BEGIN);
            begin(self.environment, null_mut(), &mut transaction, 0)
        };
        self.check(began, "txn_begin")?;
        let mut bytes = 0;
        let put = pairs.iter().try_for_each(|(key, value)| {
            bytes += key.len() + value.len();
            self.put_in(*database, transaction, key, value)
        });
        // SAFETY: either ends the transaction, whatever it answers, and its handle is not used again.
        unsafe {
            match &put {
                Ok(()) => self.check(method::<Commit>(transaction, at::TXN_COMMIT)(transaction, 0), "commit")?,
                Err(_) => drop(method::<Abort>(transaction, at::TXN_ABORT)(transaction)),
            }
        }
        put?;
        self.changed(bytes)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        let bytes = key.len();
        let mut key = Thing::of(key)?;
        let database = self.lock();
        // SAFETY: as in `get`.
        match unsafe { method::<Delete>(*database, at::DB_DEL)(*database, null_mut(), &mut key, 0) } {
            DB_NOTFOUND => Ok(false),
            code => self.check(code, "del").and_then(|()| self.changed(bytes)).map(|()| true),
        }
    }

    fn scan(&self, from: &[u8], limit: u32, keys: &mut KeyList, values: &mut KeyList) -> Option<Result<(), Fault>> {
        if !self.is_tree {
            return None;
        }
        let mut left = limit;
        Some(self.walk(Some(from), |key, value| {
            if left > 0 {
                keys.push(key);
                values.push(value);
                left -= 1;
            }
            left > 0
        }))
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut count = 0;
        self.walk(None, |_, _| {
            count += 1;
            true
        })?;
        Ok(Some(count))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts {
            version: self.version.clone(),
            client_library: format!("libdb {} (C)", self.version),
            increment: "get + put under one lock; add-many: puts in one transaction, where there are any".to_string(),
            settings: self.settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            ..Facts::default()
        })
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        let database = self.lock();
        // SAFETY: the database is open and ours while the lock is held.
        Ok(unsafe { store_stats::stats(*database, !self.environment.is_null()) })
    }
}

#[cfg(test)]
mod tests;
