//! `tokyocabinet`: the hash and the B+ tree of the posts of 2009, by the system's library. It knows how each durability
//! level is set.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, fill, interface, start};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Price, Role, Setting, SettingValues, Store};
use crate::model::op::{Fault, KeyList};
use crate::model::trial::{Durability, Transport};

pub static TOKYOCABINET: Adapter = Adapter {
    name: NAME,
    about: "a hash or a B+ tree in one file, mapped into memory (2006)",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[TYPE, BUCKETS, MAPPED],
    keeps: |level| match level {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("a transaction around each write"),
        Durability::Power => {
            Err("tokyocabinet ends a transaction by cutting its undo log, without a sync: a loss of power takes the \
                 newest record back (docs/durability.md)")
        }
    },
    stays: |_| true,
    lacks: |settings| match settings.get(TYPE.name).map(String::as_str) {
        Some("tree") => &[Means::Tally],
        _ => &[Means::Scan, Means::Tally],
    },
    open,
    server: None,
    version,
    get_it: "apt install libtokyocabinet9",
};

const NAME: &str = "tokyocabinet";

const TYPE: Setting = Setting {
    name: "type",
    about: "hash, or tree: B+ tree",
    default: "hash",
    values: SettingValues::OneOf(&["hash", "tree"]),
    price: Price::Pays("only a tree has scans"),
};
const BUCKETS: Setting = Setting {
    name: "bnum",
    about: "buckets of the hash; half to four times the records, says its manual",
    default: "1000000",
    values: SettingValues::Checked { check: whole_number, worth_trying: &["4000000"] },
    price: Price::Pays("disk"),
};
const MAPPED: Setting = Setting {
    name: "xmsiz",
    about: "bytes of the file that are mapped; as much as the budget of caches unless named",
    default: "0",
    values: SettingValues::Checked { check: whole_number, worth_trying: &[] },
    price: Price::Pays("memory"),
};

fn whole_number(text: &str) -> Result<(), String> {
    text.parse::<u32>().map(drop).map_err(|_| "a whole number".to_string())
}

static SHARED: Shared =
    Shared { names: &["libtokyocabinet.so.9", "libtokyocabinet.dylib"], package: "libtokyocabinet9" };

type Handle = *mut c_void;

interface!(Calls {
    new() -> Handle;
    del(Handle);
    setmutex(Handle) -> bool;
    setxmsiz(Handle, i64) -> bool;
    open(Handle, *const c_char, c_int) -> bool;
    put(Handle, *const u8, c_int, *const u8, c_int) -> bool;
    out(Handle, *const u8, c_int) -> bool;
    get(Handle, *const u8, c_int, *mut c_int) -> *mut u8;
    tranbegin(Handle) -> bool;
    trancommit(Handle) -> bool;
    tranabort(Handle) -> bool;
    opts(Handle) -> u8;
    bnum(Handle) -> u64;
    rnum(Handle) -> u64;
    fsiz(Handle) -> u64;
    ecode(Handle) -> c_int;
    errmsg(c_int) -> *const c_char;
});

interface!(OnlyHash {
    tune(Handle, i64, i8, i8, u8) -> bool;
    get3(Handle, *const u8, c_int, *mut u8, c_int) -> c_int;
    vsiz(Handle, *const u8, c_int) -> c_int;
    xmsiz(Handle) -> u64;
    omode(Handle) -> c_int;
});

interface!(OnlyTree {
    curnew(Handle) -> Handle;
    curdel(Handle);
    curjump(Handle, *const u8, c_int) -> bool;
    curkey(Handle, *mut c_int) -> *mut u8;
    curval(Handle, *mut c_int) -> *mut u8;
    curnext(Handle) -> bool;
});

/// The header's flags of opening: to write, and to make the file.
const WRITER_CREATES: c_int = 1 << 1 | 1 << 2;
/// The header's options of tuning: 64 bits for places in the file, which may then be larger than 2 GiB.
const LARGE: u8 = 1;
/// The header's codes of errors.
const NO_RECORD: c_int = 22;

fn version() -> Result<String, String> {
    Ok(Calls::load(&SHARED, "tchdb")?.words("tcversion"))
}

/// What only one of the two has.
enum Only {
    Hash(OnlyHash),
    Tree(OnlyTree),
}

struct Tokyo {
    calls: Calls,
    only: Only,
    database: Handle,
    /// Whether each write is in a transaction: a plain one changes the mapped file in place, and where the process was
    /// killed in the middle of that the record was neither the old one nor the new one. A transaction first writes what
    /// it is going to change to a log, from which the next opening mends the file.
    /// <https://dbmx.net/tokyocabinet/spex-en.html#tchdbapi_api> (`tchdbtranbegin`)
    each_commits: bool,
    asked: Asked,
}

// SAFETY: the handle was told to lock itself (`setmutex`) before it was opened, which is how the manual has it shared
// among threads (<https://dbmx.net/tokyocabinet/spex-en.html>). Tested by tests/contract.rs with four clients.
unsafe impl Send for Tokyo {}
// SAFETY: as above.
unsafe impl Sync for Tokyo {}

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let missing = |why: String| Fault::Unsupported(format!("{NAME}: {why}"));
    let is_tree = launch.setting(&TYPE) == "tree";
    let calls = Calls::load(&SHARED, if is_tree { "tcbdb" } else { "tchdb" }).map_err(missing)?;
    let only = match is_tree {
        true => Only::Tree(OnlyTree::load(&SHARED, "tcbdb").map_err(missing)?),
        false => Only::Hash(OnlyHash::load(&SHARED, "tchdb").map_err(missing)?),
    };
    let place = launch.directory()?;
    let file =
        if place.is_dir() { place.join(if is_tree { "kvfair.tcb" } else { "kvfair.tch" }) } else { place.into() };
    let path = c_path(&file)?;
    let number = |setting: &Setting| launch.setting(setting).parse::<i64>().unwrap_or(0);
    let mapped = match number(&MAPPED) {
        0 => i64::try_from(launch.cache_bytes()).unwrap_or(i64::MAX),
        named => named,
    };
    let matched = !launch.is_shipped();
    let asked = Asked { tuned: matched && !is_tree, buckets: number(&BUCKETS), mapped };
    // SAFETY: each function is called as the header says, on a handle of this library's; `tune` only on a hash.
    let (database, opened) = unsafe {
        let database = (calls.new)();
        (calls.setmutex)(database);
        if matched {
            (calls.setxmsiz)(database, mapped);
            if let Only::Hash(hash) = &only {
                // -1 leaves alignment and free blocks as they are.
                (hash.tune)(database, number(&BUCKETS), -1, -1, LARGE);
            }
        }
        (database, (calls.open)(database, path.as_ptr(), WRITER_CREATES))
    };
    let tokyo = Tokyo { calls, only, database, each_commits: matched && launch.durability > Durability::None, asked };
    if !opened {
        return Err(tokyo.fault("open"));
    }
    Ok(Box::new(ByteMap::new(tokyo)))
}

impl Drop for Tokyo {
    fn drop(&mut self) {
        // SAFETY: closes the file and frees the handle, which nobody uses any more: sessions borrow from the store.
        unsafe { (self.calls.del)(self.database) };
    }
}

impl Tokyo {
    #[cold]
    fn fault(&self, op: &str) -> Fault {
        // SAFETY: the message is a constant of the library's.
        let words = unsafe {
            let code = (self.calls.ecode)(self.database);
            CStr::from_ptr((self.calls.errmsg)(code)).to_string_lossy().into_owned()
        };
        Fault::Refused(format!("{NAME}: {op}: {words}"))
    }

    /// What a look-up found; where that is nothing, there was no record or it failed.
    fn found(&self, length: Option<usize>) -> Result<Option<usize>, Fault> {
        if length.is_some() || self.is_missing() { Ok(length) } else { Err(self.fault("get")) }
    }

    fn is_missing(&self) -> bool {
        // SAFETY: reads the calling thread's last code.
        unsafe { (self.calls.ecode)(self.database) == NO_RECORD }
    }

    /// Changes a record; false where it was not there. Writers take turns (`ByteMap`), so that no two transactions
    /// meet.
    fn change(&self, op: &str, change: impl FnOnce() -> bool) -> Result<bool, Fault> {
        // SAFETY: as the header says; the same for the ends below.
        if self.each_commits && !unsafe { (self.calls.tranbegin)(self.database) } {
            return Err(self.fault("tranbegin"));
        }
        let done = match change() {
            true => Ok(true),
            false if self.is_missing() => Ok(false),
            false => Err(self.fault(op)),
        };
        if self.each_commits {
            let end = if matches!(done, Ok(true)) { self.calls.trancommit } else { self.calls.tranabort };
            // SAFETY: as above.
            if !unsafe { end(self.database) } {
                return Err(self.fault("the end of a transaction"));
            }
        }
        done
    }

    /// What is in force as the library itself tells it, and a fault where that is not what was asked.
    fn in_force(&self) -> Result<Vec<(&'static str, String)>, Fault> {
        // SAFETY: they read what the open file is like.
        let (buckets, options) = unsafe { ((self.calls.bnum)(self.database), (self.calls.opts)(self.database)) };
        let transactions = ("a transaction around each write", self.each_commits.to_string());
        let mut settings = vec![("bnum", buckets.to_string()), ("opts", options.to_string()), transactions];
        let Only::Hash(hash) = &self.only else {
            // The tree tells neither what it maps nor how it was opened.
            settings.push(("type", "tree".to_string()));
            return Ok(settings);
        };
        // SAFETY: as above.
        let (mapped, mode) = unsafe { ((hash.xmsiz)(self.database), (hash.omode)(self.database)) };
        settings.extend([("type", "hash".to_string()), ("xmsiz", mapped.to_string())]);
        let Asked { tuned, buckets: least_buckets, mapped: asked_mapped } = self.asked;
        // The number of buckets is the next prime.
        let tuning = buckets as i64 >= least_buckets && options & LARGE != 0 && mapped as i64 == asked_mapped;
        if mode != WRITER_CREATES || (tuned && !tuning) {
            let asked = format!("mode {WRITER_CREATES}, bnum {least_buckets}, xmsiz {asked_mapped}, opts {LARGE}");
            let found = format!("mode {mode}, bnum {buckets}, xmsiz {mapped}, opts {options}");
            return Err(Fault::Refused(format!("{NAME}: asked for {asked}; in force is {found}")));
        }
        Ok(settings)
    }
}

/// How the file was to be opened.
struct Asked {
    /// Whether buckets and map were set.
    tuned: bool,
    buckets: i64,
    mapped: i64,
}

/// A length as this interface takes it.
fn c_len(bytes: &[u8]) -> Result<c_int, Fault> {
    c_int::try_from(bytes.len()).map_err(|_| Fault::Unsupported(format!("{NAME} takes at most 2 GiB")))
}

impl Engine for Tokyo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        let (key, key_len) = (start(key), c_len(key)?);
        match &self.only {
            // SAFETY: it writes no more than there is room for; where it fills that, the value may be longer.
            Only::Hash(hash) => unsafe {
                fill(out, |start, room| {
                    let most = c_int::try_from(room).unwrap_or(c_int::MAX);
                    let written = (hash.get3)(self.database, key, key_len, start, most);
                    let length = if written == most { (hash.vsiz)(self.database, key, key_len) } else { written };
                    self.found(usize::try_from(length).ok())
                })
            },
            Only::Tree(_) => {
                out.clear();
                let mut length = 0;
                // SAFETY: what comes back is null, or `length` bytes of malloc's that are ours. (The tree's function
                // that lends them instead is not for several threads.)
                unsafe {
                    let value = (self.calls.get)(self.database, key, key_len, &mut length);
                    let found = self.found((!value.is_null()).then_some(0))?.is_some();
                    take(value, length, |bytes| out.extend_from_slice(bytes));
                    Ok(found)
                }
            }
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (key_len, value_len) = (c_len(key)?, c_len(value)?);
        // SAFETY: pointers and lengths belong together, and the library copies what they say.
        let put = || unsafe { (self.calls.put)(self.database, start(key), key_len, start(value), value_len) };
        match self.change("put", put)? {
            true => Ok(()),
            false => Err(self.fault("put")),
        }
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        let key_len = c_len(key)?;
        // SAFETY: as in `put`.
        self.change("out", || unsafe { (self.calls.out)(self.database, start(key), key_len) })
    }

    fn scan(&self, from: &[u8], limit: u32, keys: &mut KeyList, values: &mut KeyList) -> Option<Result<(), Fault>> {
        let Only::Tree(tree) = &self.only else { return None };
        let from_len = match c_len(from) {
            Ok(length) => length,
            Err(fault) => return Some(Err(fault)),
        };
        // SAFETY: a cursor of this tree, freed before it returns; keys and values come as malloc's bytes that are ours.
        unsafe {
            let cursor = (tree.curnew)(self.database);
            let mut more = (tree.curjump)(cursor, start(from), from_len);
            for _ in 0..limit {
                if !more {
                    break;
                }
                let mut length = 0;
                let key = (tree.curkey)(cursor, &mut length);
                take(key, length, |bytes| keys.push(bytes));
                let value = (tree.curval)(cursor, &mut length);
                take(value, length, |bytes| values.push(bytes));
                more = (tree.curnext)(cursor);
            }
            (tree.curdel)(cursor);
        }
        Some(Ok(()))
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        // SAFETY: as the header says.
        Ok(Some(unsafe { (self.calls.rnum)(self.database) }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let version = self.calls.words("tcversion");
        Ok(Facts {
            client_library: format!("libtokyocabinet {version} (C)"),
            version,
            increment: "get + put under one lock".to_string(),
            settings: self.in_force()?.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Facts::default()
        })
    }

    /// It counts nothing but records and bytes of its file.
    fn stats(&self) -> Result<StoreStats, Fault> {
        // SAFETY: they read what the open file is like.
        let numbers =
            unsafe { [("rnum", (self.calls.rnum)(self.database)), ("fsiz", (self.calls.fsiz)(self.database))] };
        Ok(numbers.into_iter().map(|(name, number)| (name, number as f64)).collect())
    }
}

/// Lends bytes that malloc gave and frees them.
///
/// # Safety
/// `bytes` is null, or `length` bytes of malloc's that nobody else frees.
unsafe fn take(bytes: *mut u8, length: c_int, see: impl FnOnce(&[u8])) {
    if !bytes.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            see(std::slice::from_raw_parts(bytes, length.max(0) as usize));
            libc_free(bytes.cast());
        }
    }
}

// SAFETY: declared as in C's own header.
unsafe extern "C" {
    /// C's own: the manual says that what it returns is to be released with `free`.
    #[link_name = "free"]
    fn libc_free(pointer: *mut c_void);
}
