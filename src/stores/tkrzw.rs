//! `tkrzw`: Kyoto Cabinet's successor by its author, as a file hash. It knows how each durability level is set.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::bytemap::{ByteMap, Engine};
use super::library::{InForce, Shared, at_least, c_path, interface, start};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Role, Store};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

pub static TKRZW: Adapter = Adapter {
    name: "tkrzw",
    about: "Kyoto Cabinet's successor (2020): a hash in one file",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("UPDATE_APPENDING, RECORD_CRC_32"),
        Durability::Power => Ok("UPDATE_APPENDING, RECORD_CRC_32, synchronized after each write"),
    },
    stays: |_| true,
    lacks: |_| &[Means::Scan, Means::Tally],
    open: open_tkrzw,
    server: None,
    version: || Ok(TkrzwCalls::load(&TKRZW_LIBRARY, "tkrzw_")?.words("TKRZW_PACKAGE_VERSION")),
    get_it: "apt install libtkrzw1",
};

static TKRZW_LIBRARY: Shared = Shared { names: &["libtkrzw.so.1", "libtkrzw.dylib"], package: "libtkrzw1" };

type Handle = *mut c_void;

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
    dbm_inspect(Handle, *mut i32) -> *mut NameValue;
    free_str_map(*mut NameValue, i32);
    get_last_status_code() -> c_int;
    get_last_status_message() -> *const c_char;
});

/// Buckets: as many as the records, roughly. It takes the next prime.
const BUCKETS: u64 = 1_000_000;
/// The header's code.
const TKRZW_NOT_FOUND: c_int = 7;

struct Tkrzw {
    calls: TkrzwCalls,
    /// The header's answer of a `See` that changes nothing.
    no_change: *const c_char,
    database: Handle,
    level: Durability,
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
    let level = if is_tuned { launch.durability } else { Durability::None };
    let mut tuning = "dbm=HashDBM".to_string();
    if is_tuned {
        tuning += &format!(",num_buckets={BUCKETS}");
    }
    if level > Durability::None {
        // A value is put beside the old one, not into its place, so that a process that is killed in the middle leaves
        // the old one whole, and one that was half written is known by its sum. The file grows with every write.
        // <https://dbmx.net/tkrzw/#hashdbm_overview>
        tuning += ",update_mode=UPDATE_APPENDING,record_crc_mode=RECORD_CRC_32";
    }
    let (path, parameters) = (c_path(&file)?, CString::new(tuning).expect("no zero in our own words"));
    // SAFETY: as the header says: a path, to be written, and parameters, all ended with a zero.
    let database = unsafe { (calls.dbm_open)(path.as_ptr(), true, parameters.as_ptr()) };
    let no_change = calls.pointer("TKRZW_REC_PROC_NOOP");
    let tkrzw = Tkrzw { calls, no_change, database, level, is_tuned };
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
        let safe = self.level < Durability::Power
            || unsafe { (self.calls.dbm_synchronize)(self.database, true, null_mut(), null_mut(), none.as_ptr()) };
        if safe { Ok(()) } else { Err(self.fault("synchronize")) }
    }
}

/// A name and a value of the library's (`TkrzwKeyValuePair`).
#[repr(C)]
pub struct NameValue {
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
        let modes = ["update_mode", "record_crc_mode"].map(|name| in_force.get(name).map_or("", String::as_str));
        if self.is_tuned && (modes == ["appending", "crc-32"]) != (self.level > Durability::None) {
            let why = format!(
                "tkrzw: its modes are {modes:?} at durability level {}, which is not what was asked",
                self.level
            );
            return Err(Fault::Refused(why));
        }
        let told = [
            "level",
            "update_mode",
            "record_crc_mode",
            "num_buckets",
            "align_pow",
            "offset_width",
            "healthy",
            "auto_restored",
        ];
        let told = told.iter().filter_map(|name| Some((name.to_string(), in_force.get(*name)?.clone())));
        let synchronized = ("synchronized after each write".to_string(), (self.level == Durability::Power).to_string());
        Ok(Facts {
            client_library: format!("libtkrzw {version} (C)"),
            version,
            // Its own increment takes whatever bytes there are for a number.
            increment: "get + set under one lock".to_string(),
            settings: told.chain([synchronized]).collect(),
            ..Facts::default()
        })
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::of_texts(self.in_force()))
    }
}
