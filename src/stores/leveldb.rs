//! `leveldb` and `rocksdb`: log-structured trees by their C interfaces, of which the second kept the first one's. It
//! knows how each durability level is set.

mod rocks_version;
mod store_stats;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, interface, start};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Price, Role, Setting, SettingValues, Store, cell};
use crate::model::op::{Fault, KeyList, Pairs};
use crate::model::trial::{Durability, Transport};

pub static LEVELDB: Adapter = Adapter {
    name: "leveldb",
    about: "a log-structured tree, the ancestor of most of today's",
    keeps: |level| match level {
        Durability::None | Durability::Crash => Ok("log written at each write, sync off"),
        Durability::Power => Ok("sync on"),
    },
    settings: &[Setting { values: SettingValues::OneOf(&["snappy", "none"]), ..COMPRESSION }],
    open: |launch| open(&LEVEL, launch),
    version: || LEVEL.version(),
    get_it: "apt install libleveldb1d",
    ..BOTH
};

pub static ROCKSDB: Adapter = Adapter {
    name: "rocksdb",
    about: "LevelDB's successor for many cores and large data",
    keeps: |level| match level {
        Durability::None => Ok("no log"),
        Durability::Crash => Ok("log written at each write, sync off"),
        Durability::Power => Ok("sync on"),
    },
    settings: &[Setting { values: SettingValues::OneOf(&["snappy", "none", "lz4", "zstd"]), ..COMPRESSION }],
    open: |launch| open(&ROCKS, launch),
    version: || ROCKS.version(),
    get_it: "apt install librocksdb7.8",
    ..BOTH
};

const BOTH: Adapter = Adapter {
    name: "",
    about: "",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |_| Err(""),
    stays: |_| true,
    lacks: |_| &[Means::Tally],
    open: |launch| open(&LEVEL, launch),
    server: None,
    version: || LEVEL.version(),
    get_it: "",
};

/// Of the files that it writes; what it holds in memory and its log are never compressed.
const COMPRESSION: Setting = Setting {
    name: "compression",
    about: "how its files are compressed, where the library can",
    default: "snappy",
    values: SettingValues::OneOf(&[]),
    price: Price::Pays("disk without, CPU with"),
};

/// What the libraries call it: `leveldb/include/leveldb/c.h` and `rocksdb/include/rocksdb/c.h`, which kept the numbers.
fn compression_code(name: &str) -> c_int {
    match name {
        "none" => 0,
        "lz4" => 4,
        "zstd" => 7,
        _ => 1,
    }
}

/// One of the two: its library, the first word of its functions, and which functions only it has.
struct Kind {
    name: &'static str,
    shared: Shared,
    prefix: &'static str,
    is_rocks: bool,
}

static LEVEL: Kind = Kind {
    name: "leveldb",
    shared: Shared { names: &["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.dylib"], package: "libleveldb1d" },
    prefix: "leveldb_",
    is_rocks: false,
};
static ROCKS: Kind = Kind {
    name: "rocksdb",
    shared: Shared { names: &["librocksdb.so.*", "librocksdb.so", "librocksdb.dylib"], package: "librocksdb7.8" },
    prefix: "rocksdb_",
    is_rocks: true,
};

type Handle = *mut c_void;
type Error = *mut *mut c_char;

interface!(Common {
    open(Handle, *const c_char, Error) -> Handle;
    close(Handle);
    put(Handle, Handle, *const u8, usize, *const u8, usize, Error);
    delete(Handle, Handle, *const u8, usize, Error);
    get(Handle, Handle, *const u8, usize, *mut usize, Error) -> *mut u8;
    free(*mut c_void);
    options_create() -> Handle;
    options_destroy(Handle);
    options_set_create_if_missing(Handle, u8);
    options_set_write_buffer_size(Handle, usize);
    options_set_compression(Handle, c_int);
    cache_create_lru(usize) -> Handle;
    cache_destroy(Handle);
    readoptions_create() -> Handle;
    readoptions_destroy(Handle);
    writeoptions_create() -> Handle;
    writeoptions_destroy(Handle);
    writeoptions_set_sync(Handle, u8);
    create_iterator(Handle, Handle) -> Handle;
    iter_destroy(Handle);
    iter_seek(Handle, *const u8, usize);
    iter_seek_to_first(Handle);
    iter_valid(Handle) -> u8;
    iter_next(Handle);
    iter_key(Handle, *mut usize) -> *const u8;
    iter_value(Handle, *mut usize) -> *const u8;
    property_value(Handle, *const c_char) -> *mut c_char;
    write(Handle, Handle, Handle, Error);
    writebatch_create() -> Handle;
    writebatch_destroy(Handle);
    writebatch_put(Handle, *const u8, usize, *const u8, usize);
});

interface!(OnlyLevel {
    options_set_cache(Handle, Handle);
    major_version() -> c_int;
    minor_version() -> c_int;
});

interface!(OnlyRocks {
    open_for_read_only(Handle, *const c_char, u8, Error) -> Handle;
    property_int(Handle, *const c_char, *mut u64) -> c_int;
    get_pinned(Handle, Handle, *const u8, usize, Error) -> Handle;
    pinnableslice_value(Handle, *mut usize) -> *const u8;
    pinnableslice_destroy(Handle);
    writeoptions_disable_WAL(Handle, c_int);
    writeoptions_get_disable_WAL(Handle) -> u8;
    writeoptions_get_sync(Handle) -> u8;
    block_based_options_create() -> Handle;
    block_based_options_set_block_cache(Handle, Handle);
    options_set_block_based_table_factory(Handle, Handle);
    options_set_uint64add_merge_operator(Handle);
    writebatch_merge(Handle, *const u8, usize, *const u8, usize);
});

impl Kind {
    /// LevelDB's files are for one process at a time, and RocksDB's may be read by several:
    /// <https://github.com/google/leveldb/blob/main/doc/index.md#concurrency>,
    /// <https://github.com/facebook/rocksdb/wiki/Read-only-and-Secondary-instances>.
    fn may_be_opened(&self, launch: &Launch) -> Result<(), String> {
        match launch.is_read_by_several && !self.is_rocks {
            true => Err("by design one process at a time has its files open: it locks them".to_string()),
            false => Ok(()),
        }
    }

    /// LevelDB says it; RocksDB's C interface of these years does not, but its file's name does.
    fn version(&self) -> Result<String, String> {
        let Kind { shared, prefix, .. } = self;
        if !self.is_rocks {
            let level = OnlyLevel::load(shared, prefix)?;
            // SAFETY: two functions without arguments that return a constant.
            return Ok(unsafe { format!("{}.{}", (level.major_version)(), (level.minor_version)()) });
        }
        OnlyRocks::load(shared, prefix)?;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let file = maps.lines().find_map(|line| line.split("librocksdb.so.").nth(1));
        let version = file.unwrap_or("unknown").to_string();
        // Where the system does not tell the file of a library it cannot be known.
        if maps.is_empty() { Ok(version) } else { rocks_version::known(&version).map(|()| version) }
    }
}

struct Tree {
    kind: &'static Kind,
    common: Common,
    rocks: Option<OnlyRocks>,
    database: Handle,
    options: Handle,
    cache: Handle,
    reading: Handle,
    writing: Handle,
    version: String,
    settings: Vec<(&'static str, String)>,
}

// SAFETY: both documents say that a database handle may be shared among threads without locks
// (<https://github.com/google/leveldb/blob/main/doc/index.md#concurrency>,
// <https://github.com/facebook/rocksdb/wiki/Basic-Operations#concurrency>); options are not changed once it is open.
// Tested by tests/contract.rs with four clients.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

fn open(kind: &'static Kind, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let missing = |why: String| Fault::Unsupported(format!("{}: {why}", kind.name));
    kind.may_be_opened(launch).map_err(missing)?;
    let common = Common::load(&kind.shared, kind.prefix).map_err(missing)?;
    let version = kind.version().map_err(missing)?;
    let rocks = if kind.is_rocks { Some(OnlyRocks::load(&kind.shared, kind.prefix).map_err(missing)?) } else { None };
    let level = if kind.is_rocks { None } else { Some(OnlyLevel::load(&kind.shared, kind.prefix).map_err(missing)?) };
    let path = c_path(launch.directory()?)?;
    let cache_bytes = usize::try_from(launch.cache_bytes()).unwrap_or(usize::MAX);
    let matched = !launch.is_shipped();
    let sync = matched && launch.durability == Durability::Power;
    let logless = matched && launch.durability == Durability::None;
    let compression = launch.settings.get(COMPRESSION.name);
    // SAFETY: each function is called as its header says, on handles that the same library has just made; those that
    // are kept are destroyed once, in `drop`. Tested by tests/contract.rs.
    let (options, cache, reading, writing, database, error) = unsafe {
        let options = (common.options_create)();
        (common.options_set_create_if_missing)(options, 1);
        if let Some(name) = compression {
            (common.options_set_compression)(options, compression_code(name));
        }
        if let Some(rocks) = &rocks {
            // A counter has 64 bits, little-endian, for this operator as for `cell`.
            (rocks.options_set_uint64add_merge_operator)(options);
        }
        let mut cache = null_mut();
        if matched {
            cache = (common.cache_create_lru)(cache_bytes);
            // What RocksDB takes by itself; LevelDB's 4 MiB would be measured against it.
            (common.options_set_write_buffer_size)(options, WRITE_BUFFER_BYTES);
            match (&level, &rocks) {
                (Some(level), _) => (level.options_set_cache)(options, cache),
                (_, Some(rocks)) => {
                    let table = (rocks.block_based_options_create)();
                    (rocks.block_based_options_set_block_cache)(table, cache);
                    (rocks.options_set_block_based_table_factory)(options, table);
                }
                _ => {}
            }
        }
        let reading = (common.readoptions_create)();
        let writing = (common.writeoptions_create)();
        (common.writeoptions_set_sync)(writing, u8::from(sync));
        if let Some(rocks) = &rocks {
            (rocks.writeoptions_disable_WAL)(writing, c_int::from(logless));
        }
        let mut error = null_mut();
        let database = match rocks.as_ref().filter(|_| launch.is_read_by_several) {
            // It locks nothing. Where there is a log of writes (0: no error) it is read into memory.
            Some(rocks) => (rocks.open_for_read_only)(options, path.as_ptr(), 0, &mut error),
            None => (common.open)(options, path.as_ptr(), &mut error),
        };
        (options, cache, reading, writing, database, error)
    };
    let log = if kind.is_rocks && logless { "off" } else { "on" };
    let settings = vec![
        ("sync", sync.to_string()),
        ("log", log.to_string()),
        ("compression", compression.map_or("its own", String::as_str).to_string()),
        ("block cache", if matched { cache_bytes.to_string() } else { "its own".to_string() }),
        ("write buffer", if matched { WRITE_BUFFER_BYTES.to_string() } else { "its own".to_string() }),
    ];
    let tree = Tree { kind, common, rocks, database, options, cache, reading, writing, version, settings };
    tree.check(error)?;
    Ok(Box::new(ByteMap::new(tree)))
}

/// <https://github.com/facebook/rocksdb/wiki/RocksDB-Tuning-Guide>: `write_buffer_size`, 64 MiB by default.
const WRITE_BUFFER_BYTES: usize = 64 << 20;

impl Tree {
    /// The library's own words, if it had any.
    fn check(&self, error: *mut c_char) -> Result<(), Fault> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: an error is a string of the library's that ends with a zero, and is the caller's to free.
        let words = unsafe {
            let words = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.common.free)(error.cast());
            words
        };
        if words.contains("No space left on device") {
            return Err(Fault::Lost(std::io::Error::new(std::io::ErrorKind::StorageFull, words)));
        }
        Err(Fault::Refused(format!("{}: {words}", self.kind.name)))
    }

    /// What `fill` puts into a batch, as one change.
    fn write_batch(&self, fill: impl FnOnce(Handle)) -> Result<(), Fault> {
        let mut error = null_mut();
        // SAFETY: a batch of this library, written with handles of the same, and destroyed once.
        unsafe {
            let batch = (self.common.writebatch_create)();
            fill(batch);
            (self.common.write)(self.database, self.writing, batch, &mut error);
            (self.common.writebatch_destroy)(batch);
        }
        self.check(error)
    }

    /// What the library prints under a name of its own; nothing where it does not know the name.
    fn property(&self, name: &CStr) -> String {
        // SAFETY: what comes back is null, or a string that ends with a zero and is ours to free.
        unsafe {
            let text = (self.common.property_value)(self.database, name.as_ptr());
            if text.is_null() {
                return String::new();
            }
            let words = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.common.free)(text.cast());
            words
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: each handle was made by this library and is used by nobody any more: sessions borrow from the store.
        unsafe {
            if !self.database.is_null() {
                (self.common.close)(self.database);
            }
            (self.common.writeoptions_destroy)(self.writing);
            (self.common.readoptions_destroy)(self.reading);
            (self.common.options_destroy)(self.options);
            if !self.cache.is_null() {
                (self.common.cache_destroy)(self.cache);
            }
        }
    }
}

impl Engine for Tree {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        out.clear();
        let (mut error, mut length) = (null_mut(), 0);
        // SAFETY: key and length belong together. RocksDB lends a value until it is told that it was seen; what LevelDB
        // gives is null, or `length` bytes that are ours to free.
        let found = unsafe {
            if let Some(rocks) = &self.rocks {
                let lent = (rocks.get_pinned)(self.database, self.reading, start(key), key.len(), &mut error);
                if !lent.is_null() {
                    let value = (rocks.pinnableslice_value)(lent, &mut length);
                    out.extend_from_slice(std::slice::from_raw_parts(value, length));
                    (rocks.pinnableslice_destroy)(lent);
                }
                self.check(error)?;
                return Ok(!lent.is_null());
            }
            let value = (self.common.get)(self.database, self.reading, start(key), key.len(), &mut length, &mut error);
            if !value.is_null() {
                out.extend_from_slice(std::slice::from_raw_parts(value, length));
                (self.common.free)(value.cast());
            }
            !value.is_null()
        };
        self.check(error)?;
        Ok(found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let mut error = null_mut();
        let (key, key_len, value, value_len) = (start(key), key.len(), start(value), value.len());
        // SAFETY: pointers and lengths belong together, and the library copies what they say.
        unsafe { (self.common.put)(self.database, self.writing, key, key_len, value, value_len, &mut error) };
        self.check(error)
    }

    fn put_many(&self, pairs: Pairs<'_>) -> Result<(), Fault> {
        self.write_batch(|batch| {
            for (key, value) in pairs.iter() {
                // SAFETY: pointers and lengths belong together, and the batch copies what they say.
                unsafe { (self.common.writebatch_put)(batch, start(key), key.len(), start(value), value.len()) };
            }
        })
    }

    fn merge(&self, sums: &mut dyn Iterator<Item = (&[u8], i64)>) -> Option<Result<(), Fault>> {
        let rocks = self.rocks.as_ref()?;
        Some(self.write_batch(|batch| {
            for (key, by) in sums {
                let by = cell::encode(by);
                // SAFETY: as in `put_many`.
                unsafe { (rocks.writebatch_merge)(batch, start(key), key.len(), by.as_ptr(), by.len()) };
            }
        }))
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        let mut old = Vec::new();
        if !self.get(key, &mut old)? {
            return Ok(false);
        }
        let mut error = null_mut();
        // SAFETY: as in `put`.
        unsafe { (self.common.delete)(self.database, self.writing, start(key), key.len(), &mut error) };
        self.check(error)?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], limit: u32, keys: &mut KeyList, values: &mut KeyList) -> Option<Result<(), Fault>> {
        // SAFETY: an iterator of this database, destroyed before it returns; keys and values are copied before it
        // moves.
        unsafe {
            let iterator = (self.common.create_iterator)(self.database, self.reading);
            (self.common.iter_seek)(iterator, start(from), from.len());
            for _ in 0..limit {
                if (self.common.iter_valid)(iterator) == 0 {
                    break;
                }
                let mut length = 0;
                let key = (self.common.iter_key)(iterator, &mut length);
                keys.push(std::slice::from_raw_parts(key, length));
                let value = (self.common.iter_value)(iterator, &mut length);
                values.push(std::slice::from_raw_parts(value, length));
                (self.common.iter_next)(iterator);
            }
            (self.common.iter_destroy)(iterator);
        }
        Some(Ok(()))
    }

    /// Neither keeps a count that is exact: all keys are gone through.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut count = 0;
        // SAFETY: as in `scan`.
        unsafe {
            let iterator = (self.common.create_iterator)(self.database, self.reading);
            (self.common.iter_seek_to_first)(iterator);
            while (self.common.iter_valid)(iterator) != 0 {
                count += 1;
                (self.common.iter_next)(iterator);
            }
            (self.common.iter_destroy)(iterator);
        }
        Ok(Some(count))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let mut settings: Vec<(&str, String)> = self.settings.clone();
        if let Some(rocks) = &self.rocks {
            // SAFETY: reads a flag of options that are ours.
            let (sync, off) = unsafe {
                ((rocks.writeoptions_get_sync)(self.writing), (rocks.writeoptions_get_disable_WAL)(self.writing))
            };
            settings.push(("sync in force", (sync != 0).to_string()));
            settings.push(("disableWAL in force", (off != 0).to_string()));
        }
        Ok(Facts {
            version: self.version.clone(),
            client_library: format!("lib{} {} (C)", self.kind.name, self.version),
            increment: match self.kind.is_rocks {
                true => "get + put under one lock; add: merge (uint64add)",
                false => "get + put under one lock; add-many: one write batch",
            }
            .to_string(),
            settings: settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Facts::default()
        })
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        let Some(rocks) = &self.rocks else {
            let memory = self.property(c"leveldb.approximate-memory-usage");
            let levels = store_stats::of_levels(&self.property(c"leveldb.stats"));
            let memory = memory.parse().ok().map(|bytes| ("leveldb.approximate-memory-usage".to_string(), bytes));
            return Ok(levels.into_iter().chain(memory).collect());
        };
        let numbers = store_stats::NUMBERS.iter().filter_map(|&name| {
            let c_name = CString::new(name).expect("no zero in our own words");
            let mut number = 0;
            // SAFETY: the name ends with a zero, and there is room for one number; 0 says that it was filled in.
            let code = unsafe { (rocks.property_int)(self.database, c_name.as_ptr(), &mut number) };
            (code == 0).then(|| (name.to_string(), number as f64))
        });
        Ok(numbers.chain(store_stats::of_rocks(&self.property(c"rocksdb.stats"))).collect())
    }

    fn number(&self, key: &[u8], record: &[u8]) -> Result<i64, Fault> {
        cell::decode(self.kind.name, key, record)
    }
}
