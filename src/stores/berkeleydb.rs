//! `berkeleydb`: the hash and the B-tree of the post of 2009, by the system's library. It knows how each class is set.
//!
//! Its C interface is structures of function pointers, whose places belong to one version of the library: 5.3, the last
//! one that distributions carry. They were read from its header (`offsetof` on 64-bit Linux), and nothing is asked of
//! another version.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard};

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, interface, start};
use super::{Adapter, Facts, Launch, Role, Setting, Store};
use crate::words::op::{Fault, KeyList};
use crate::words::trial::{Durability, Transport};
use crate::words::units;

pub static BERKELEYDB: Adapter = Adapter {
    name: NAME,
    about: "a hash or a B-tree in one file, with or without transactions (1994)",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[TYPE, CACHE, ENVIRONMENT],
    keeps: |class| match class {
        Durability::None => Ok("no environment"),
        Durability::Crash => Ok("environment with a log, DB_TXN_WRITE_NOSYNC"),
        Durability::Power => Ok("environment with a log, synchronous commits"),
    },
    stays: |_| true,
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
    check: |text| match text {
        "hash" | "btree" => Ok(()),
        _ => Err("hash or btree".to_string()),
    },
};
const CACHE: Setting = Setting {
    name: "cache",
    about: "its page cache, as in 256KB (its makers' default); the budget of caches unless named",
    default: "",
    check: |text| match units::parse_bytes(text) {
        Some(bytes) if bytes > 0 => Ok(()),
        _ => Err("a size such as 256KB or 1GiB".to_string()),
    },
};
const ENVIRONMENT: Setting = Setting {
    name: "env",
    about: "yes: in an environment with a log and transactions, as crash and power need it anyway",
    default: "no",
    check: |text| match text {
        "yes" | "no" => Ok(()),
        _ => Err("yes or no".to_string()),
    },
};

static SHARED: Shared = Shared { names: &["libdb-5.3.so", "libdb-5.3.dylib"], package: "libdb5.3" };

type Handle = *mut c_void;

interface!(Api {
    version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    create(*mut Handle, Handle, u32) -> c_int;
    env_create(*mut Handle, u32) -> c_int;
    strerror(c_int) -> *const c_char;
});

/// A key or a value (`DBT`): all zeros but what is named.
#[repr(C)]
struct Thing {
    data: *mut c_void,
    size: u32,
    /// Sizes and places of user memory and partial records: not used.
    unused: [u32; 3],
    app_data: *mut c_void,
    flags: u32,
}

impl Thing {
    fn of(bytes: &[u8]) -> Result<Thing, Fault> {
        let size = u32::try_from(bytes.len());
        let size = size.map_err(|_| Fault::Unsupported(format!("{NAME} takes at most 4 GiB")))?;
        Ok(Thing { data: start(bytes).cast_mut().cast(), size, ..Thing::empty() })
    }

    fn empty() -> Thing {
        Thing { data: null_mut(), size: 0, unused: [0; 3], app_data: null_mut(), flags: 0 }
    }

    /// # Safety
    /// The library has just filled it, and nothing was asked of its handle since.
    unsafe fn bytes(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size as usize) }
    }
}

/// Where the functions are in the structures, in bytes.
mod at {
    pub const DB_CLOSE: usize = 568;
    pub const DB_CURSOR: usize = 584;
    pub const DB_DEL: usize = 592;
    pub const DB_GET: usize = 632;
    pub const DB_GET_CACHESIZE: usize = 704;
    pub const DB_OPEN: usize = 1008;
    pub const DB_PUT: usize = 1024;
    pub const DB_SET_CACHESIZE: usize = 1096;
    pub const ENV_CLOSE: usize = 488;
    pub const ENV_GET_CACHESIZE: usize = 576;
    pub const ENV_GET_FLAGS: usize = 656;
    pub const ENV_OPEN: usize = 1328;
    pub const ENV_SET_CACHESIZE: usize = 1632;
    pub const ENV_SET_FLAGS: usize = 1728;
    pub const CURSOR_CLOSE: usize = 352;
    pub const CURSOR_GET: usize = 392;
}

/// The header's numbers.
const DB_BTREE: c_int = 1;
const DB_HASH: c_int = 2;
const DB_CREATE: u32 = 0x1;
const DB_RECOVER: u32 = 0x2;
const DB_TXN_WRITE_NOSYNC: u32 = 0x20;
const DB_AUTO_COMMIT: u32 = 0x100;
const DB_INIT: u32 = 0x100 | 0x200 | 0x400 | 0x2000; // LOCK, LOG, MPOOL, TXN
const DB_PRIVATE: u32 = 0x10000;
const DB_FIRST: u32 = 7;
const DB_NEXT: u32 = 16;
const DB_SET_RANGE: u32 = 27;
const DB_NOTFOUND: c_int = -30988;

// SAFETY: these are types, as the header declares the functions; each call has its own reason.
type Close = unsafe extern "C" fn(Handle, u32) -> c_int;
type CloseCursor = unsafe extern "C" fn(Handle) -> c_int;
type OpenDb = unsafe extern "C" fn(Handle, Handle, *const c_char, *const c_char, c_int, u32, c_int) -> c_int;
type OpenEnv = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
type SetCache = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
type GetCache = unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut c_int) -> c_int;
// SAFETY: as above.
type SetFlags = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;
type GetFlags = unsafe extern "C" fn(Handle, *mut u32) -> c_int;
type Pair = unsafe extern "C" fn(Handle, Handle, *mut Thing, *mut Thing, u32) -> c_int;
type Delete = unsafe extern "C" fn(Handle, Handle, *mut Thing, u32) -> c_int;
type NewCursor = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
type Move = unsafe extern "C" fn(Handle, *mut Thing, *mut Thing, u32) -> c_int;

/// The function at a place of a structure.
///
/// # Safety
/// `handle` is a structure of version 5.3 on a 64-bit system, and `F` is the type of the function there.
unsafe fn method<F: Copy>(handle: Handle, at: usize) -> F {
    // SAFETY: the caller's promise; every place in `at` is that of a pointer, aligned as one.
    unsafe { *handle.cast::<u8>().add(at).cast::<F>() }
}

fn load() -> Result<(Api, String), String> {
    let api = Api::load(&SHARED, "db_")?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places for numbers, as the header says.
    unsafe { (api.version)(&mut major, &mut minor, &mut patch) };
    match (major, minor) {
        (5, 3) if cfg!(target_pointer_width = "64") => Ok((api, format!("{major}.{minor}.{patch}"))),
        _ => Err(format!("{} is version {major}.{minor}: 5.3 on a 64-bit system is needed", SHARED.names[0])),
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
    let class = if matched { launch.durability } else { Durability::None };
    let in_environment = class > Durability::None || launch.setting(&ENVIRONMENT) == "yes";
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
        is_tree,
        settings: vec![
            ("type", launch.setting(&TYPE).to_string()),
            ("environment", if in_environment { "log, locks, transactions" } else { "none" }.to_string()),
        ],
    };
    if in_environment {
        berkeley.open_environment(place, class, cache_bytes)?;
    }
    berkeley.open_database(place, cache_bytes)?;
    Ok(Box::new(ByteMap::new(berkeley)))
}

impl Berkeley {
    fn open_environment(&mut self, home: &Path, class: Durability, cache_bytes: Option<u64>) -> Result<(), Fault> {
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
            if class == Durability::Crash {
                // Written to the system at each commit, not synced: outlives the process, not the power.
                // <https://docs.oracle.com/cd/E17076_05/html/api_reference/C/envset_flags.html>
                let set = method::<SetFlags>(environment, at::ENV_SET_FLAGS);
                self.check(set(environment, DB_TXN_WRITE_NOSYNC, 1), "set_flags")?;
            }
            // Private: one process has it. Recovery runs at every opening, and is short where there is nothing to do.
            let flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_INIT;
            let open = method::<OpenEnv>(environment, at::ENV_OPEN);
            self.check(open(environment, home.as_ptr(), flags, 0), "opening the environment")?;
            let mut flags = 0;
            let get = method::<GetFlags>(environment, at::ENV_GET_FLAGS);
            self.check(get(environment, &mut flags), "get_flags")?;
            let nosync = flags & DB_TXN_WRITE_NOSYNC != 0;
            self.settings.push(("DB_TXN_WRITE_NOSYNC", nosync.to_string()));
            if nosync != (class == Durability::Crash) {
                return Err(Fault::Unsupported(format!("{NAME}: DB_TXN_WRITE_NOSYNC is {nosync}, not what was asked")));
            }
        }
        Ok(())
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
            *self.database.get_mut().expect("nobody has it yet") = database;
            if let (Some(bytes), false) = (cache_bytes, in_environment) {
                let (gigabytes, rest) = split(bytes);
                let set = method::<SetCache>(database, at::DB_SET_CACHESIZE);
                self.check(set(database, gigabytes, rest, 1), "set_cachesize")?;
            }
            let open = method::<OpenDb>(database, at::DB_OPEN);
            self.check(open(database, null_mut(), file.as_ptr(), null(), kind, flags, 0), "opening the database")?;
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
        out.clear();
        let (mut key, mut value) = (Thing::of(key)?, Thing::empty());
        let database = self.lock();
        // SAFETY: the database is open and ours while the lock is held; what it lends is copied before that ends.
        unsafe {
            match method::<Pair>(*database, at::DB_GET)(*database, null_mut(), &mut key, &mut value, 0) {
                DB_NOTFOUND => return Ok(false),
                code => self.check(code, "get")?,
            }
            out.extend_from_slice(value.bytes());
        }
        Ok(true)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (mut key, mut value) = (Thing::of(key)?, Thing::of(value)?);
        let database = self.lock();
        // SAFETY: as in `get`; key and value are only read.
        let code = unsafe { method::<Pair>(*database, at::DB_PUT)(*database, null_mut(), &mut key, &mut value, 0) };
        self.check(code, "put")
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        let mut key = Thing::of(key)?;
        let database = self.lock();
        // SAFETY: as in `get`.
        match unsafe { method::<Delete>(*database, at::DB_DEL)(*database, null_mut(), &mut key, 0) } {
            DB_NOTFOUND => Ok(false),
            code => self.check(code, "del").map(|()| true),
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
            mouth: format!("libdb {} (C)", self.version),
            increment: "get + put under one lock".to_string(),
            settings: self.settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            ..Facts::default()
        })
    }
}
