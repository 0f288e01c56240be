//! What Berkeley DB counts: pages that its cache had or had not, and writes and syncs of its log. Its structures are
//! those of version 5.3, as everything in [`interface`](super::interface).
//!
//! Documentation: <https://docs.oracle.com/cd/E17076_05/html/api_reference/C/mempstat.html>,
//! <https://docs.oracle.com/cd/E17076_05/html/api_reference/C/logstat.html>.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::interface::{Handle, at, method};
use crate::stores::store_stats::StoreStats;

/// Where 64-bit counters stand in `DB_MPOOL_STAT`, in bytes.
const OF_CACHE: [(&str, usize); 8] = [
    ("st_cache_hit", 48),
    ("st_cache_miss", 56),
    ("st_page_create", 64),
    ("st_page_in", 72),
    ("st_page_out", 80),
    ("st_ro_evict", 88),
    ("st_rw_evict", 96),
    ("st_io_wait", 264),
];
/// And in `DB_LOG_STAT`.
const OF_LOG: [(&str, usize); 4] = [("st_record", 40), ("st_wcount", 56), ("st_scount", 80), ("st_region_wait", 88)];

// SAFETY: these are types, as the header declares the functions; each call has its own reason.
type CacheStat = unsafe extern "C" fn(Handle, *mut *mut c_void, *mut c_void, u32) -> c_int;
type LogStat = unsafe extern "C" fn(Handle, *mut *mut c_void, u32) -> c_int;
type GetEnvironment = unsafe extern "C" fn(Handle) -> Handle;

/// The counters of a database's cache, and of the log where there is one.
///
/// # Safety
/// `database` is open, and nobody else uses it meanwhile.
pub unsafe fn stats(database: Handle, has_log: bool) -> StoreStats {
    let (mut cache, mut log) = (null_mut(), null_mut());
    // SAFETY: a database that was opened by itself has an environment of its own, of the same version. What they fill
    // in is malloc's, for the caller to free; a log is asked for only where there is one.
    unsafe {
        let environment = method::<GetEnvironment>(database, at::DB_GET_ENV)(database);
        method::<CacheStat>(environment, at::ENV_MEMP_STAT)(environment, &mut cache, null_mut(), 0);
        if has_log {
            method::<LogStat>(environment, at::ENV_LOG_STAT)(environment, &mut log, 0);
        }
        let numbers = taken(cache, &OF_CACHE).into_iter().chain(taken(log, &OF_LOG));
        numbers.collect()
    }
}

/// The counters of a structure, which is freed; none where it was not filled in.
///
/// # Safety
/// `from` is null or a structure of malloc's that has 64-bit counters at those places.
unsafe fn taken(from: *mut c_void, places: &[(&'static str, usize)]) -> Vec<(&'static str, f64)> {
    if from.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let numbers = places.iter().map(|&(name, place)| (name, *from.cast::<u8>().add(place).cast::<u64>() as f64));
        let numbers = numbers.collect();
        free(from);
        numbers
    }
}

// SAFETY: declared as in C's own header.
unsafe extern "C" {
    fn free(memory: *mut c_void);
}
