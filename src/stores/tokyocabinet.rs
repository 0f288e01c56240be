//! `tokyocabinet`: the hash and the B+ tree of the posts of 2009, by the system's library. It knows how each class is
//! set.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, interface, start};
use super::{Adapter, Facts, Launch, Role, Setting, Store};
use crate::words::op::{Fault, KeyList};
use crate::words::trial::{Durability, Transport};

pub static TOKYOCABINET: Adapter = Adapter {
    name: NAME,
    about: "a hash or a B+ tree in one file, mapped into memory (2006)",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[TYPE, BUCKETS, MAPPED],
    keeps: |class| match class {
        Durability::None => Ok("no sync"),
        // Without one a kill in the middle of an overwrite breaks the file: tests/contract.rs.
        Durability::Crash => Ok("a transaction for each write"),
        Durability::Power => Ok("a transaction for each write, synced (OTSYNC)"),
    },
    stays: |_| true,
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
    check: |text| match text {
        "hash" | "tree" => Ok(()),
        _ => Err("hash or tree".to_string()),
    },
};
const BUCKETS: Setting = Setting {
    name: "bnum",
    about: "buckets of the hash; half to four times the records, says its manual",
    default: "1000000",
    check: whole_number,
};
const MAPPED: Setting = Setting {
    name: "xmsiz",
    about: "bytes of the file that are mapped; as much as the budget of caches unless named",
    default: "0",
    check: whole_number,
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
    rnum(Handle) -> u64;
    ecode(Handle) -> c_int;
    errmsg(c_int) -> *const c_char;
});

interface!(OnlyHash {
    tune(Handle, i64, i8, i8, u8) -> bool;
    get3(Handle, *const u8, c_int, *mut u8, c_int) -> c_int;
    vsiz(Handle, *const u8, c_int) -> c_int;
    bnum(Handle) -> u64;
    xmsiz(Handle) -> u64;
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
/// The header's flag that has every transaction synced: HDBOTSYNC and BDBOTSYNC.
const SYNCED: c_int = 1 << 6;
/// The header's options of tuning: 64 bits for places in the file, which may then be larger than 2 GiB.
const LARGE: u8 = 1;
/// The header's codes of errors.
const NO_RECORD: c_int = 22;
/// Room for a value before its length is known.
const VALUE_BYTES: usize = 4096;

fn version() -> Result<String, String> {
    Ok(Calls::load(&SHARED, "tchdb")?.words("tcversion"))
}

struct Tokyo {
    calls: Calls,
    hash: OnlyHash,
    tree: Option<OnlyTree>,
    database: Handle,
    each_commits: bool,
    settings: Vec<(&'static str, String)>,
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
    let tree = if is_tree { Some(OnlyTree::load(&SHARED, "tcbdb").map_err(missing)?) } else { None };
    let hash = OnlyHash::load(&SHARED, "tchdb").map_err(missing)?;
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
    let each_commits = matched && launch.durability > Durability::None;
    let synced = if matched && launch.durability == Durability::Power { SYNCED } else { 0 };
    // SAFETY: each function is called as the header says, on a handle of this library's; `tune` only on a hash.
    let (database, opened) = unsafe {
        let database = (calls.new)();
        (calls.setmutex)(database);
        if matched {
            (calls.setxmsiz)(database, mapped);
            if !is_tree {
                // -1 leaves alignment and free blocks as they are.
                (hash.tune)(database, number(&BUCKETS), -1, -1, LARGE);
            }
        }
        (database, (calls.open)(database, path.as_ptr(), WRITER_CREATES | synced))
    };
    let settings = vec![
        ("type", launch.setting(&TYPE).to_string()),
        ("transaction for each write", each_commits.to_string()),
        ("OTSYNC", (synced != 0).to_string()),
    ];
    let tokyo = Tokyo { calls, hash, tree, database, each_commits, settings };
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

    fn is_missing(&self) -> bool {
        // SAFETY: reads the calling thread's last code.
        unsafe { (self.calls.ecode)(self.database) == NO_RECORD }
    }

    /// Makes a change, in a transaction of its own where the class asks for one. The map's lock is held meanwhile: a
    /// transaction is the database's, and all that is changed while it is open is a part of it.
    fn change<T>(&self, change: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        if !self.each_commits {
            return change();
        }
        // SAFETY: as the header says: every transaction that is begun is committed or given up.
        unsafe {
            if !(self.calls.tranbegin)(self.database) {
                return Err(self.fault("tranbegin"));
            }
            let changed = change();
            if changed.is_err() {
                (self.calls.tranabort)(self.database);
            } else if !(self.calls.trancommit)(self.database) {
                return Err(self.fault("trancommit"));
            }
            changed
        }
    }

    /// The value of a hash, put where it is to lie: the library writes as much of it as there is room for.
    fn get_from_hash(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        let key_len = c_len(key)?;
        out.reserve(VALUE_BYTES);
        loop {
            let room = c_int::try_from(out.capacity()).unwrap_or(c_int::MAX);
            // SAFETY: pointers and lengths belong together; of the room as much is used as is said to be written.
            let length = unsafe {
                let length = (self.hash.get3)(self.database, start(key), key_len, out.as_mut_ptr(), room);
                out.set_len(length.clamp(0, room) as usize);
                length
            };
            if length < 0 {
                return if self.is_missing() { Ok(false) } else { Err(self.fault("get3")) };
            }
            if length < room {
                return Ok(true);
            }
            // It may have been cut short. Another client may also have set a longer one since: the length is asked for
            // anew until all of it is there.
            out.clear();
            // SAFETY: as above.
            let length = unsafe { (self.hash.vsiz)(self.database, start(key), key_len) };
            out.reserve(usize::try_from(length).unwrap_or(0).saturating_add(1));
        }
    }
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
        out.clear();
        if self.tree.is_none() {
            return self.get_from_hash(key, out);
        }
        let mut length = 0;
        // SAFETY: key and length belong together; what comes back is null, or `length` bytes of malloc's that are ours.
        let value = unsafe { (self.calls.get)(self.database, start(key), c_len(key)?, &mut length) };
        if value.is_null() {
            return if self.is_missing() { Ok(false) } else { Err(self.fault("get")) };
        }
        // SAFETY: as above.
        unsafe { take(value, length, |bytes| out.extend_from_slice(bytes)) };
        Ok(true)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (key_len, value_len) = (c_len(key)?, c_len(value)?);
        self.change(|| {
            // SAFETY: pointers and lengths belong together, and the library copies what they say.
            let is_put = unsafe { (self.calls.put)(self.database, start(key), key_len, start(value), value_len) };
            if is_put { Ok(()) } else { Err(self.fault("put")) }
        })
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        let key_len = c_len(key)?;
        self.change(|| {
            // SAFETY: as in `put`.
            match unsafe { (self.calls.out)(self.database, start(key), key_len) } {
                true => Ok(true),
                false if self.is_missing() => Ok(false),
                false => Err(self.fault("out")),
            }
        })
    }

    fn scan(&self, from: &[u8], limit: u32, keys: &mut KeyList, values: &mut KeyList) -> Option<Result<(), Fault>> {
        let tree = self.tree.as_ref()?;
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
        let mut settings: BTreeMap<_, _> =
            self.settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        if self.tree.is_none() {
            // SAFETY: as the header says: what is in force on an open hash.
            let (buckets, mapped) = unsafe { ((self.hash.bnum)(self.database), (self.hash.xmsiz)(self.database)) };
            settings.insert("bnum".to_string(), buckets.to_string());
            settings.insert("xmsiz".to_string(), mapped.to_string());
        }
        Ok(Facts {
            mouth: format!("libtokyocabinet {version} (C)"),
            version,
            increment: "get + put under one lock".to_string(),
            settings,
            ..Facts::default()
        })
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
