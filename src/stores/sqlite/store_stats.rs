//! What SQLite counts: pages of the file, of its log, and those that each connection's cache had or had not.
//!
//! Documentation: <https://www.sqlite.org/c3ref/c_dbstatus_options.html>, <https://www.sqlite.org/pragma.html>.

use std::path::Path;

use rusqlite::{Connection, ffi};

use super::refused;
use crate::model::op::Fault;
use crate::stores::store_stats::StoreStats;

/// What each connection has counted since it was opened.
const OF_CONNECTIONS: [(&str, i32); 5] = [
    ("SQLITE_DBSTATUS_CACHE_HIT", ffi::SQLITE_DBSTATUS_CACHE_HIT),
    ("SQLITE_DBSTATUS_CACHE_MISS", ffi::SQLITE_DBSTATUS_CACHE_MISS),
    ("SQLITE_DBSTATUS_CACHE_WRITE", ffi::SQLITE_DBSTATUS_CACHE_WRITE),
    ("SQLITE_DBSTATUS_CACHE_SPILL", ffi::SQLITE_DBSTATUS_CACHE_SPILL),
    ("SQLITE_DBSTATUS_CACHE_USED", ffi::SQLITE_DBSTATUS_CACHE_USED),
];

/// The sums over connections, none of which is in use, and the lengths of their file and its log.
pub fn stats(file: &Path, connections: &[Connection]) -> Result<StoreStats, Fault> {
    let mut numbers: Vec<(&str, f64)> = Vec::new();
    for (name, which) in OF_CONNECTIONS {
        let each = connections.iter().map(|connection| status(connection, which));
        numbers.push((name, each.sum()));
    }
    if let Some(connection) = connections.first() {
        for name in ["page_count", "freelist_count"] {
            let count: i64 = connection.pragma_query_value(None, name, |row| row.get(0)).map_err(refused)?;
            numbers.push((name, count as f64));
        }
    }
    // Asking SQLite for it would be a checkpoint.
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    numbers.push(("bytes of the -wal file", std::fs::metadata(log).map_or(0, |meta| meta.len()) as f64));
    Ok(numbers.into_iter().collect())
}

fn status(connection: &Connection, which: i32) -> f64 {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: the connection is open and used by nobody meanwhile: it is borrowed from those that are idle. Two places
    // for numbers, as the header says; nothing is reset.
    let code = unsafe { ffi::sqlite3_db_status64(connection.handle(), which, &mut now, &mut highest, 0) };
    if code == ffi::SQLITE_OK { now as f64 } else { f64::NAN }
}
