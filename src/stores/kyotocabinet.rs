//! `kyotocabinet` and `tkrzw`: Tokyo Cabinet's successors by its author, as file hashes. It knows how each class is
//! set.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::bytemap::{ByteMap, Engine};
use super::library::{Shared, c_path, interface, start};
use super::{Adapter, Facts, Launch, Role, Store};
use crate::words::op::{Fault, readable};
use crate::words::trial::{Durability, Transport};

pub static KYOTOCABINET: Adapter = Adapter {
    name: "kyotocabinet",
    about: "Tokyo Cabinet's successor (2009): a hash in one file",
    keeps: |class| match class {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("a transaction for each write (OAUTOTRAN)"),
        Durability::Power => Ok("a transaction for each write, synced (OAUTOTRAN, OAUTOSYNC)"),
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
        Durability::Crash => Ok("records are appended and never overwritten (UPDATE_APPENDING)"),
        Durability::Power => Ok("records are appended (UPDATE_APPENDING), a sync after each write"),
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
    // Without these a kill in the middle of an overwrite breaks the file: tests/contract.rs.
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
    dbget(Handle, *const u8, usize, *mut usize) -> *mut u8;
    dbincrint(Handle, *const u8, usize, i64, i64) -> i64;
    dbcount(Handle) -> i64;
    dbecode(Handle) -> i32;
    dbemsg(Handle) -> *const c_char;
    free(*mut c_void);
});

interface!(TkrzwCalls {
    dbm_open(*const c_char, bool, *const c_char) -> Handle;
    dbm_close(Handle) -> bool;
    dbm_set(Handle, *const u8, i32, *const u8, i32, bool) -> bool;
    dbm_remove(Handle, *const u8, i32) -> bool;
    dbm_get(Handle, *const u8, i32, *mut i32) -> *mut u8;
    dbm_synchronize(Handle, bool, *mut c_void, *mut c_void, *const c_char) -> bool;
    dbm_count(Handle) -> i64;
    get_last_status_code() -> c_int;
    get_last_status_message() -> *const c_char;
});

/// The headers' flags and codes.
const KYOTO_WRITER_CREATES: u32 = 1 << 1 | 1 << 2;
const KYOTO_AUTO_TRANSACTION: u32 = 1 << 4;
const KYOTO_AUTO_SYNC: u32 = 1 << 5;
const KYOTO_NO_RECORD: i32 = 7;
const TKRZW_NOT_FOUND: c_int = 7;
/// What Kyoto Cabinet answers instead of a sum.
const NO_SUM: i64 = i64::MIN;

/// Kyoto Cabinet keeps counters as 64 bits, the highest byte first.
fn decode(key: &[u8], record: &[u8]) -> Result<i64, Fault> {
    let bytes = record.try_into().map_err(|_| {
        Fault::Refused(format!(
            "kyotocabinet: the record of key '{}' is no counter: {} bytes",
            readable(key, 80),
            record.len()
        ))
    })?;
    Ok(i64::from_be_bytes(bytes))
}

fn settings_of<const N: usize>(settings: [(&str, String); N]) -> std::collections::BTreeMap<String, String> {
    settings.map(|(name, value)| (name.to_string(), value)).into()
}

struct Kyoto {
    calls: KyotoCalls,
    database: Handle,
    mode: u32,
    tuning: String,
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
    // A million buckets as in its manual's tuning, and the budget of caches as the part of the file that is mapped.
    let tuning = match launch.is_shipped() {
        true => String::new(),
        false => format!("#bnum=1000000#msiz={}", launch.cache_bytes()),
    };
    if file.as_os_str().as_encoded_bytes().contains(&b'#') {
        let why = format!("kyotocabinet reads what follows a '#' in a path as tuning: {}", file.display());
        return Err(Fault::Unsupported(why));
    }
    let path = c_path(std::path::Path::new(&format!("{}{tuning}#type=kch", file.display())))?;
    let class = if launch.is_shipped() { Durability::None } else { launch.durability };
    // <https://dbmx.net/kyotocabinet/api/classkyotocabinet_1_1HashDB.html>: OpenMode.
    let mode = KYOTO_WRITER_CREATES
        | match class {
            Durability::None => 0,
            Durability::Crash => KYOTO_AUTO_TRANSACTION,
            Durability::Power => KYOTO_AUTO_TRANSACTION | KYOTO_AUTO_SYNC,
        };
    // SAFETY: functions are called as the header says, on a handle of this library's.
    let (database, opened) = unsafe {
        let database = (calls.dbnew)();
        (database, (calls.dbopen)(database, path.as_ptr(), mode) != 0)
    };
    let kyoto = Kyoto { calls, database, mode, tuning };
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
}

impl Engine for Kyoto {
    fn name(&self) -> &'static str {
        "kyotocabinet"
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        out.clear();
        let mut length = 0;
        // SAFETY: key and length belong together; what comes back is null, or `length` bytes that are ours to free.
        unsafe {
            let value = (self.calls.dbget)(self.database, start(key), key.len(), &mut length);
            if value.is_null() {
                return if self.is_missing() { Ok(false) } else { Err(self.fault("get")) };
            }
            out.extend_from_slice(std::slice::from_raw_parts(value, length));
            (self.calls.free)(value.cast());
        }
        Ok(true)
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
        Some(if sum == NO_SUM { Err(self.fault("increment")) } else { Ok(sum) })
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
        Ok(Facts {
            mouth: format!("libkyotocabinet {version} (C)"),
            version,
            increment: "increment".to_string(),
            settings: settings_of([
                ("OAUTOTRAN", (self.mode & KYOTO_AUTO_TRANSACTION != 0).to_string()),
                ("OAUTOSYNC", (self.mode & KYOTO_AUTO_SYNC != 0).to_string()),
                ("tuning", self.tuning.clone()),
            ]),
            ..Facts::default()
        })
    }
}

struct Tkrzw {
    calls: TkrzwCalls,
    database: Handle,
    sync_each: bool,
    tuning: String,
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
    // <https://dbmx.net/tkrzw/#hashdbm_tuning>
    let tuning = match launch.durability {
        _ if launch.is_shipped() => "dbm=HashDBM",
        Durability::None => "dbm=HashDBM,num_buckets=1000000",
        _ => "dbm=HashDBM,num_buckets=1000000,update_mode=UPDATE_APPENDING",
    };
    let (path, parameters) = (c_path(&file)?, CString::new(tuning).expect("no zero in our own words"));
    let sync_each = !launch.is_shipped() && launch.durability == Durability::Power;
    // SAFETY: as the header says: a path, to be written, and parameters, all ended with a zero.
    let database = unsafe { (calls.dbm_open)(path.as_ptr(), true, parameters.as_ptr()) };
    let tkrzw = Tkrzw { calls, database, sync_each, tuning: tuning.to_string() };
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

    fn made_safe(&self) -> Result<(), Fault> {
        let none = c"";
        // SAFETY: to the device; no function is to be called meanwhile, and there are no parameters.
        let safe = !self.sync_each
            || unsafe { (self.calls.dbm_synchronize)(self.database, true, null_mut(), null_mut(), none.as_ptr()) };
        if safe { Ok(()) } else { Err(self.fault("synchronize")) }
    }
}

/// A length as this interface takes it; a negative one would mean that the library counts for itself.
fn c_len(bytes: &[u8]) -> Result<i32, Fault> {
    i32::try_from(bytes.len()).map_err(|_| Fault::Unsupported("tkrzw's C interface takes at most 2 GiB".to_string()))
}

impl Engine for Tkrzw {
    fn name(&self) -> &'static str {
        "tkrzw"
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        out.clear();
        let mut length = 0;
        // SAFETY: key and length belong together; what comes back is null, or `length` bytes of malloc's that are ours.
        unsafe {
            let value = (self.calls.dbm_get)(self.database, start(key), c_len(key)?, &mut length);
            if value.is_null() {
                return if self.is_missing() { Ok(false) } else { Err(self.fault("get")) };
            }
            out.extend_from_slice(std::slice::from_raw_parts(value, length.max(0) as usize));
            free(value.cast());
        }
        Ok(true)
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
        Ok(Facts {
            mouth: format!("libtkrzw {version} (C)"),
            version,
            // Its own increment takes whatever bytes there are for a number.
            increment: "get + set under one lock".to_string(),
            settings: settings_of([
                ("sync after each write", self.sync_each.to_string()),
                ("tuning", self.tuning.clone()),
            ]),
            ..Facts::default()
        })
    }
}

// SAFETY: declared as in C's own header.
unsafe extern "C" {
    /// C's own: the header says that values are released with it.
    fn free(pointer: *mut c_void);
}
