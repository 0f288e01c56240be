//! `kyotocabinet` and `tkrzw`: Tokyo Cabinet's successors by its author, as file hashes. It knows how each class is
//! set.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, fill, interface, start};
use super::said::Said;
use super::{Adapter, Facts, Launch, Role, Store};
use crate::words::op::{Fault, readable};
use crate::words::trial::{Durability, Transport};

pub static KYOTOCABINET: Adapter = Adapter {
    name: "kyotocabinet",
    about: "Tokyo Cabinet's successor (2009): a hash in one file",
    keeps: |class| match class {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("OAUTOTRAN"),
        Durability::Power => Ok("OAUTOTRAN, OAUTOSYNC"),
    },
    open: open_kyoto,
    version: || Ok(KyotoCalls::load(&KYOTO, "kc")?.words("KCVERSION")),
    get_it: "apt install libkyotocabinet16v5",
    ..BOTH
};

pub static TKRZW: Adapter = Adapter {
    name: "tkrzw",
    about: "Kyoto Cabinet's successor (2020): a hash in one file",
    keeps: |class| match class {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("UPDATE_APPENDING"),
        Durability::Power => Ok("UPDATE_APPENDING, synchronized after each write"),
    },
    open: open_tkrzw,
    version: || Ok(TkrzwCalls::load(&TKRZW_LIBRARY, "tkrzw_")?.words("TKRZW_PACKAGE_VERSION")),
    get_it: "apt install libtkrzw1",
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
    open: open_kyoto,
    server: None,
    version: || Err(String::new()),
    get_it: "",
};

static KYOTO: Shared =
    Shared { names: &["libkyotocabinet.so.16", "libkyotocabinet.dylib"], package: "libkyotocabinet16v5" };
static TKRZW_LIBRARY: Shared = Shared { names: &["libtkrzw.so.1", "libtkrzw.dylib"], package: "libtkrzw1" };

type Handle = *mut c_void;

interface!(KyotoCalls {
    dbnew() -> Handle;
    dbdel(Handle);
    dbopen(Handle, *const c_char, u32) -> i32;
    dbclose(Handle) -> i32;
    dbset(Handle, *const u8, usize, *const u8, usize) -> i32;
    dbremove(Handle, *const u8, usize) -> i32;
    dbgetbuf(Handle, *const u8, usize, *mut u8, usize) -> i32;
    dbincrint(Handle, *const u8, usize, i64, i64) -> i64;
    dbstatus(Handle) -> *mut c_char;
    dbcount(Handle) -> i64;
    dbecode(Handle) -> i32;
    dbemsg(Handle) -> *const c_char;
    free(*mut c_void);
});

/// Is shown a record under its lock and answers what is to become of it.
type See = extern "C" fn(*mut c_void, *const u8, i32, *const u8, i32, *mut i32) -> *const c_char;

interface!(TkrzwCalls {
    dbm_open(*const c_char, bool, *const c_char) -> Handle;
    dbm_close(Handle) -> bool;
    dbm_set(Handle, *const u8, i32, *const u8, i32, bool) -> bool;
    dbm_remove(Handle, *const u8, i32) -> bool;
    dbm_process(Handle, *const u8, i32, See, *mut c_void, bool) -> bool;
    dbm_synchronize(Handle, bool, *mut c_void, *mut c_void, *const c_char) -> bool;
    dbm_count(Handle) -> i64;
    dbm_inspect(Handle, *mut i32) -> *mut Told;
    free_str_map(*mut Told, i32);
    get_last_status_code() -> c_int;
    get_last_status_message() -> *const c_char;
});

/// The headers' flags and codes.
const KYOTO_WRITER_CREATES: u32 = 1 << 1 | 1 << 2;
/// Each change of a record is a transaction, logged before it is made: without it a process that was killed in the
/// middle of one left a record that was neither old nor new, or mended the file without it at the next opening.
/// <https://dbmx.net/kyotocabinet/api/classkyotocabinet_1_1BasicDB.html> (`OAUTOTRAN`)
const KYOTO_AUTO_TRANSACTION: u32 = 1 << 4;
/// Each of them goes to the device.
const KYOTO_AUTO_SYNC: u32 = 1 << 5;
const KYOTO_NO_RECORD: i32 = 7;
const TKRZW_NOT_FOUND: c_int = 7;
/// What Kyoto Cabinet answers instead of a sum, unless it is the sum.
const NO_SUM: i64 = i64::MIN;

/// Kyoto Cabinet keeps counters as 64 bits, the highest byte first.
fn decode(key: &[u8], record: &[u8]) -> Result<i64, Fault> {
    let bytes = record.try_into().map_err(|_| {
        let (key, length) = (readable(key, 80), record.len());
        Fault::Refused(format!("kyotocabinet: the record of key '{key}' is no counter: {length} bytes"))
    })?;
    Ok(i64::from_be_bytes(bytes))
}

/// Buckets of both hashes, as in Kyoto Cabinet's manual: as many as the records, roughly. Either takes the next prime.
const BUCKETS: u64 = 1_000_000;

/// What a library says of its open file, by its own names.
type InForce = BTreeMap<String, String>;

/// A number that must be at least what was asked.
fn at_least(name: &str, in_force: &InForce, setting: &str, asked: u64) -> Result<(), Fault> {
    let told = in_force.get(setting).map_or("", String::as_str);
    if told.parse().is_ok_and(|value: u64| value >= asked) {
        return Ok(());
    }
    Err(Fault::Refused(format!("{name}: {setting} is '{told}' where {asked} was asked")))
}

struct Kyoto {
    calls: KyotoCalls,
    database: Handle,
    flags: u32,
    /// The bytes that are mapped, where that was set.
    mapped: Option<u64>,
}

// SAFETY: the manual says that a database object may be shared among threads
// (<https://dbmx.net/kyotocabinet/spex.html#tutorial_concurrency>). Tested by tests/contract.rs with four clients.
unsafe impl Send for Kyoto {}
// SAFETY: as above.
unsafe impl Sync for Kyoto {}

fn open_kyoto(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let calls = KyotoCalls::load(&KYOTO, "kc").map_err(|why| Fault::Unsupported(format!("kyotocabinet: {why}")))?;
    let place = launch.directory()?;
    let file = if place.is_dir() { place.join("kvfair.kch") } else { place.to_path_buf() };
    if file.as_os_str().as_bytes().contains(&b'#') {
        let file = file.display();
        return Err(Fault::Unsupported(format!(
            "kyotocabinet takes what follows a # for a setting: no path with it: {file}"
        )));
    }
    let mapped = (!launch.is_shipped()).then(|| launch.cache_bytes());
    let mut path = file.into_os_string();
    if let Some(mapped) = mapped {
        path.push(format!("#bnum={BUCKETS}#msiz={mapped}"));
    }
    path.push("#type=kch");
    let path = c_path(Path::new(&path))?;
    let class = if launch.is_shipped() { Durability::None } else { launch.durability };
    let flags = KYOTO_WRITER_CREATES
        | match class {
            Durability::None => 0,
            Durability::Crash => KYOTO_AUTO_TRANSACTION,
            Durability::Power => KYOTO_AUTO_TRANSACTION | KYOTO_AUTO_SYNC,
        };
    // SAFETY: functions are called as the header says, on a handle of this library's.
    let (database, opened) = unsafe {
        let database = (calls.dbnew)();
        (database, (calls.dbopen)(database, path.as_ptr(), flags) != 0)
    };
    let kyoto = Kyoto { calls, database, flags, mapped };
    if opened { Ok(Box::new(ByteMap::new(kyoto))) } else { Err(kyoto.fault("open")) }
}

impl Drop for Kyoto {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handle any more: sessions borrow from the store.
        unsafe {
            (self.calls.dbclose)(self.database);
            (self.calls.dbdel)(self.database);
        }
    }
}

impl Kyoto {
    #[cold]
    fn fault(&self, op: &str) -> Fault {
        // SAFETY: the message is a string of the library's that lives as long as the handle.
        let words = unsafe { CStr::from_ptr((self.calls.dbemsg)(self.database)).to_string_lossy().into_owned() };
        Fault::Refused(format!("kyotocabinet: {op}: {words}"))
    }

    fn is_missing(&self) -> bool {
        // SAFETY: reads the calling thread's last code.
        unsafe { (self.calls.dbecode)(self.database) == KYOTO_NO_RECORD }
    }

    /// Lines of a name and a value with a tabulator between them.
    fn in_force(&self) -> Result<InForce, Fault> {
        // SAFETY: what comes back is null, or a string that ends with a zero and is ours to free.
        let text = unsafe {
            let text = (self.calls.dbstatus)(self.database);
            if text.is_null() {
                return Err(self.fault("status"));
            }
            let words = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.calls.free)(text.cast());
            words
        };
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }
}

impl Engine for Kyoto {
    fn name(&self) -> &'static str {
        "kyotocabinet"
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        // SAFETY: key and length belong together; it writes no more than there is room for and answers the whole
        // length.
        unsafe {
            fill(out, |into, room| {
                let length = (self.calls.dbgetbuf)(self.database, start(key), key.len(), into, room);
                match usize::try_from(length) {
                    Ok(length) => Ok(Some(length)),
                    Err(_) if self.is_missing() => Ok(None),
                    Err(_) => Err(self.fault("get")),
                }
            })
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (key, key_len, value, value_len) = (start(key), key.len(), start(value), value.len());
        // SAFETY: pointers and lengths belong together, and the library copies what they say.
        if unsafe { (self.calls.dbset)(self.database, key, key_len, value, value_len) } == 0 {
            return Err(self.fault("set"));
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        // SAFETY: as in `put`.
        if unsafe { (self.calls.dbremove)(self.database, start(key), key.len()) } == 0 {
            return if self.is_missing() { Ok(false) } else { Err(self.fault("remove")) };
        }
        Ok(true)
    }

    fn add(&self, key: &[u8], by: i64) -> Option<Result<i64, Fault>> {
        // SAFETY: as in `put`; a counter that is not there begins with 0.
        let sum = unsafe { (self.calls.dbincrint)(self.database, start(key), key.len(), by, 0) };
        Some(if sum == NO_SUM && !self.holds(key, &sum.to_be_bytes()) { Err(self.fault("increment")) } else { Ok(sum) })
    }

    fn number(&self, key: &[u8], record: &[u8]) -> Result<i64, Fault> {
        decode(key, record)
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        // SAFETY: as the header says.
        let count = unsafe { (self.calls.dbcount)(self.database) };
        u64::try_from(count).map(Some).map_err(|_| self.fault("count"))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let version = self.calls.words("KCVERSION");
        let in_force = self.in_force()?;
        if let Some(mapped) = self.mapped {
            at_least(self.name(), &in_force, "bnum", BUCKETS)?;
            at_least(self.name(), &in_force, "msiz", mapped)?;
        }
        // How it was opened is what it does not tell.
        let asked = [("OAUTOTRAN asked", KYOTO_AUTO_TRANSACTION), ("OAUTOSYNC asked", KYOTO_AUTO_SYNC)];
        let asked = asked.map(|(name, flag)| (name.to_string(), (self.flags & flag != 0).to_string()));
        let told = ["type", "bnum", "msiz", "apow", "fpow", "opts", "recovered", "reorganized"];
        let told = told.iter().filter_map(|name| Some((name.to_string(), in_force.get(*name)?.clone())));
        Ok(Facts {
            mouth: format!("libkyotocabinet {version} (C)"),
            version,
            increment: "increment".to_string(),
            settings: told.chain(asked).collect(),
            ..Facts::default()
        })
    }

    fn says(&self) -> Result<Said, Fault> {
        Ok(Said::of_texts(self.in_force()?))
    }
}

struct Tkrzw {
    calls: TkrzwCalls,
    /// The header's answer of a `See` that changes nothing.
    no_change: *const c_char,
    database: Handle,
    class: Durability,
    is_tuned: bool,
}

// SAFETY: every database class of the library is safe among threads (<https://dbmx.net/tkrzw/#tips_concurrency>).
// Tested by tests/contract.rs with four clients.
unsafe impl Send for Tkrzw {}
// SAFETY: as above.
unsafe impl Sync for Tkrzw {}

fn open_tkrzw(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let calls =
        TkrzwCalls::load(&TKRZW_LIBRARY, "tkrzw_").map_err(|why| Fault::Unsupported(format!("tkrzw: {why}")))?;
    let place = launch.directory()?;
    let file = if place.is_dir() { place.join("kvfair.tkh") } else { place.to_path_buf() };
    let is_tuned = !launch.is_shipped();
    let class = if is_tuned { launch.durability } else { Durability::None };
    let mut tuning = "dbm=HashDBM".to_string();
    if is_tuned {
        tuning += &format!(",num_buckets={BUCKETS}");
    }
    if class > Durability::None {
        // A value is put beside the old one, not into its place, so that a process that is killed in the middle leaves
        // the old one whole. The file grows with every write. <https://dbmx.net/tkrzw/#hashdbm_overview>
        tuning += ",update_mode=UPDATE_APPENDING";
    }
    let (path, parameters) = (c_path(&file)?, CString::new(tuning).expect("no zero in our own words"));
    // SAFETY: as the header says: a path, to be written, and parameters, all ended with a zero.
    let database = unsafe { (calls.dbm_open)(path.as_ptr(), true, parameters.as_ptr()) };
    let no_change = calls.pointer("TKRZW_REC_PROC_NOOP");
    let tkrzw = Tkrzw { calls, no_change, database, class, is_tuned };
    if database.is_null() { Err(tkrzw.fault("open")) } else { Ok(Box::new(ByteMap::new(tkrzw))) }
}

impl Drop for Tkrzw {
    fn drop(&mut self) {
        if !self.database.is_null() {
            // SAFETY: nobody uses the handle any more: sessions borrow from the store.
            unsafe { (self.calls.dbm_close)(self.database) };
        }
    }
}

impl Tkrzw {
    #[cold]
    fn fault(&self, op: &str) -> Fault {
        // SAFETY: the message is the calling thread's until its next call.
        let words = unsafe { CStr::from_ptr((self.calls.get_last_status_message)()).to_string_lossy().into_owned() };
        Fault::Refused(format!("tkrzw: {op}: {words}"))
    }

    fn is_missing(&self) -> bool {
        // SAFETY: reads the calling thread's last code.
        unsafe { (self.calls.get_last_status_code)() == TKRZW_NOT_FOUND }
    }

    fn in_force(&self) -> InForce {
        let mut count = 0;
        // SAFETY: what comes back is an array of so many, whose names and values have the lengths beside them, and
        // which the library is told to free once they are copied.
        unsafe {
            let told = (self.calls.dbm_inspect)(self.database, &mut count);
            let words = |start: *const u8, length: i32| {
                let length = usize::try_from(length).unwrap_or(0);
                String::from_utf8_lossy(std::slice::from_raw_parts(start, length)).into_owned()
            };
            let pairs = if told.is_null() { &[] } else { std::slice::from_raw_parts(told, count.max(0) as usize) };
            let found =
                pairs.iter().map(|pair| (words(pair.name, pair.name_len), words(pair.value, pair.value_len))).collect();
            (self.calls.free_str_map)(told, count);
            found
        }
    }

    fn made_safe(&self) -> Result<(), Fault> {
        let none = c"";
        // SAFETY: to the device; no function is to be called meanwhile, and there are no parameters.
        let safe = self.class < Durability::Power
            || unsafe { (self.calls.dbm_synchronize)(self.database, true, null_mut(), null_mut(), none.as_ptr()) };
        if safe { Ok(()) } else { Err(self.fault("synchronize")) }
    }
}

/// A name and a value of the library's (`TkrzwKeyValuePair`).
#[repr(C)]
pub struct Told {
    name: *const u8,
    name_len: i32,
    value: *const u8,
    value_len: i32,
}

/// A length as this interface takes it; a negative one would mean that the library counts for itself.
fn c_len(bytes: &[u8]) -> Result<i32, Fault> {
    i32::try_from(bytes.len()).map_err(|_| Fault::Unsupported("tkrzw's C interface takes at most 2 GiB".to_string()))
}

/// What a look-up is handed: where the value goes.
struct Seen<'o> {
    out: &'o mut Vec<u8>,
    found: bool,
    no_change: *const c_char,
}

/// Copies the record that it is shown once, into a buffer that is used again; the library's own get allocates each
/// value.
extern "C" fn see(
    seen: *mut c_void,
    _: *const u8,
    _: i32,
    value: *const u8,
    length: i32,
    _: *mut i32,
) -> *const c_char {
    // SAFETY: `get` has handed over its own `Seen`, which nobody else uses meanwhile; where there is a record, value
    // and length belong together until this returns.
    unsafe {
        let seen = &mut *seen.cast::<Seen>();
        if let (false, Ok(length)) = (value.is_null(), usize::try_from(length)) {
            seen.out.extend_from_slice(std::slice::from_raw_parts(value, length));
            seen.found = true;
        }
        seen.no_change
    }
}

impl Engine for Tkrzw {
    fn name(&self) -> &'static str {
        "tkrzw"
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        out.clear();
        let mut seen = Seen { out, found: false, no_change: self.no_change };
        let argument = std::ptr::from_mut(&mut seen).cast();
        // SAFETY: key and length belong together; `see` is called before this returns, with a `Seen`.
        if !unsafe { (self.calls.dbm_process)(self.database, start(key), c_len(key)?, see, argument, false) } {
            return Err(self.fault("process"));
        }
        Ok(seen.found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let (key_len, value_len) = (c_len(key)?, c_len(value)?);
        // SAFETY: pointers and lengths belong together, and the library copies what they say.
        if !unsafe { (self.calls.dbm_set)(self.database, start(key), key_len, start(value), value_len, true) } {
            return Err(self.fault("set"));
        }
        self.made_safe()
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        // SAFETY: as in `put`.
        if !unsafe { (self.calls.dbm_remove)(self.database, start(key), c_len(key)?) } {
            return if self.is_missing() { Ok(false) } else { Err(self.fault("remove")) };
        }
        self.made_safe().map(|()| true)
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        // SAFETY: as the header says.
        let count = unsafe { (self.calls.dbm_count)(self.database) };
        u64::try_from(count).map(Some).map_err(|_| self.fault("count"))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let version = self.calls.words("TKRZW_PACKAGE_VERSION");
        let in_force = self.in_force();
        if self.is_tuned {
            at_least(self.name(), &in_force, "num_buckets", BUCKETS)?;
        }
        let mode = in_force.get("update_mode").cloned().unwrap_or_default();
        if self.is_tuned && (mode == "appending") != (self.class > Durability::None) {
            let why = format!("tkrzw: update_mode is '{mode}' at class {}, which is not what was asked", self.class);
            return Err(Fault::Refused(why));
        }
        let told = ["class", "update_mode", "num_buckets", "align_pow", "offset_width", "healthy", "auto_restored"];
        let told = told.iter().filter_map(|name| Some((name.to_string(), in_force.get(*name)?.clone())));
        let synchronized = ("synchronized after each write".to_string(), (self.class == Durability::Power).to_string());
        Ok(Facts {
            mouth: format!("libtkrzw {version} (C)"),
            version,
            // Its own increment takes whatever bytes there are for a number.
            increment: "get + set under one lock".to_string(),
            settings: told.chain([synchronized]).collect(),
            ..Facts::default()
        })
    }

    fn says(&self) -> Result<Said, Fault> {
        Ok(Said::of_texts(self.in_force()))
    }
}
