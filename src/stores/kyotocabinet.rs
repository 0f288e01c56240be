//! `kyotocabinet`: Tokyo Cabinet's successor by its author, as a file hash. It knows how each durability level is set.

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::bytemap::{ByteMap, Engine};
use super::library::{InForce, Shared, at_least, c_path, fill, interface, start};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Role, Store};
use crate::model::op::{Fault, readable};
use crate::model::trial::{Durability, Transport};

pub static KYOTOCABINET: Adapter = Adapter {
    name: "kyotocabinet",
    about: "Tokyo Cabinet's successor (2009): a hash in one file",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("no sync"),
        Durability::Crash => Ok("OAUTOTRAN"),
        Durability::Power => Ok("OAUTOTRAN, OAUTOSYNC"),
    },
    stays: |_| true,
    lacks: |_| &[Means::Scan, Means::Tally],
    open: open_kyoto,
    server: None,
    version: || Ok(KyotoCalls::load(&KYOTO, "kc")?.words("KCVERSION")),
    get_it: "apt install libkyotocabinet16v5",
};

static KYOTO: Shared =
    Shared { names: &["libkyotocabinet.so.16", "libkyotocabinet.dylib"], package: "libkyotocabinet16v5" };
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

/// The headers' flags and codes.
const KYOTO_WRITER_CREATES: u32 = 1 << 1 | 1 << 2;
/// Each change of a record is a transaction, logged before it is made: without it a process that was killed in the
/// middle of one left a record that was neither old nor new, or mended the file without it at the next opening.
/// <https://dbmx.net/kyotocabinet/api/classkyotocabinet_1_1BasicDB.html> (`OAUTOTRAN`)
const KYOTO_AUTO_TRANSACTION: u32 = 1 << 4;
/// Each of them goes to the device.
const KYOTO_AUTO_SYNC: u32 = 1 << 5;
const KYOTO_NO_RECORD: i32 = 7;
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

/// Buckets, as in Kyoto Cabinet's manual: as many as the records, roughly. It takes the next prime.
const BUCKETS: u64 = 1_000_000;

struct Kyoto {
    calls: KyotoCalls,
    database: Handle,
    flags: u32,
    /// The bytes that are mapped, where that was set.
    mapped: Option<u64>,
    log: Log,
}

/// The library's log of one transaction.
struct Log {
    path: PathBuf,
    /// Opened after the first change: then the library has made it.
    file: OnceLock<File>,
}

impl Log {
    /// Beside the file of the database.
    fn of(database: &Path) -> Log {
        let mut path = database.as_os_str().to_owned();
        path.push(".wal");
        Log { path: path.into(), file: OnceLock::new() }
    }

    /// Cuts it to nothing. At the end of a transaction the library only fills it with zeros, up to 16 KiB of them, and
    /// the next transaction is written over these. Where a kill ends such a write, the next opening takes the zeros
    /// behind it for the old record and puts them into the file (`File::end_transaction` and `walapply` of kcfile.cc,
    /// 1.2.79). In an empty log it sees that the end is missing.
    fn cut(&self) -> std::io::Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let file = File::options().write(true).open(&self.path)?;
                self.file.get_or_init(|| file)
            }
        };
        file.set_len(0)
    }
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
    let log = Log::of(&file);
    let mut path = file.into_os_string();
    if let Some(mapped) = mapped {
        path.push(format!("#bnum={BUCKETS}#msiz={mapped}"));
    }
    path.push("#type=kch");
    let path = c_path(Path::new(&path))?;
    let level = if launch.is_shipped() { Durability::None } else { launch.durability };
    let flags = KYOTO_WRITER_CREATES
        | match level {
            Durability::None => 0,
            Durability::Crash => KYOTO_AUTO_TRANSACTION,
            Durability::Power => KYOTO_AUTO_TRANSACTION | KYOTO_AUTO_SYNC,
        };
    // SAFETY: functions are called as the header says, on a handle of this library's.
    let (database, opened) = unsafe {
        let database = (calls.dbnew)();
        (database, (calls.dbopen)(database, path.as_ptr(), flags) != 0)
    };
    let kyoto = Kyoto { calls, database, flags, mapped, log };
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

    /// After each change: `ByteMap` makes one at a time.
    fn end_change(&self) -> Result<(), Fault> {
        if self.flags & KYOTO_AUTO_TRANSACTION == 0 {
            return Ok(());
        }
        let log = &self.log;
        log.cut().map_err(|why| Fault::Refused(format!("kyotocabinet: its log {}: {why}", log.path.display())))
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
        self.end_change()
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Fault> {
        // SAFETY: as in `put`.
        if unsafe { (self.calls.dbremove)(self.database, start(key), key.len()) } == 0 {
            return if self.is_missing() { Ok(false) } else { Err(self.fault("remove")) };
        }
        self.end_change().map(|()| true)
    }

    fn add(&self, key: &[u8], by: i64) -> Option<Result<i64, Fault>> {
        // SAFETY: as in `put`; a counter that is not there begins with 0.
        let sum = unsafe { (self.calls.dbincrint)(self.database, start(key), key.len(), by, 0) };
        if sum == NO_SUM && !self.holds(key, &sum.to_be_bytes()) {
            return Some(Err(self.fault("increment")));
        }
        Some(self.end_change().map(|()| sum))
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
            client_library: format!("libkyotocabinet {version} (C)"),
            version,
            increment: "increment".to_string(),
            settings: told.chain(asked).collect(),
            ..Facts::default()
        })
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::of_texts(self.in_force()?))
    }
}
