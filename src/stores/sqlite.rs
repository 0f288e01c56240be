//! `sqlite`: SQL in a file, built in. One table of keys and values, one of tallies, every statement prepared once.
//!
//! Documentation: <https://www.sqlite.org/pragma.html>, <https://www.sqlite.org/wal.html>, <https://docs.rs/rusqlite>.

mod store_stats;

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, params};

use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Role, Session, Store, cell};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, ValueList, readable};
use crate::model::trial::{Durability, Transport};

pub static SQLITE: Adapter = Adapter {
    name: NAME,
    about: "SQL in a file: one writer, many readers",
    role: Role::Store,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("synchronous=OFF, one commit a unit, journal_mode=MEMORY (WAL with several clients)"),
        Durability::Crash => Ok("journal_mode=WAL, synchronous=OFF"),
        Durability::Power => Ok("journal_mode=WAL, synchronous=FULL"),
    },
    stays: |_| true,
    lacks: |_| &[],
    open,
    server: None,
    version: || Ok(rusqlite::version().to_string()),
    get_it: "built in (cargo feature sqlite)",
};

const NAME: &str = "sqlite";
const FILE: &str = "kvfair.sqlite";

/// A key is compared as bytes because it is bound as a BLOB. Values are BLOBs and counters INTEGERs: SQLite keeps a
/// type with each value. WITHOUT ROWID makes the key the place of the row, so that a look-up walks one tree and not
/// two. SQLite advises it for rows of up to a twentieth of a page: counting took half the time with it, and overwriting
/// growing values of some kilobytes a quarter more. <https://www.sqlite.org/withoutrowid.html>
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS tally (record BLOB NOT NULL, field BLOB NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (record, field)) WITHOUT ROWID;";

const GET: &str = "SELECT value FROM kv WHERE key = ?1";
const SET: &str = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const SET_IF_ABSENT: &str = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING";
const DELETE: &str = "DELETE FROM kv WHERE key = ?1";
const DELETE_TALLY: &str = "DELETE FROM tally WHERE record = ?1";
/// Gives no row where the old value is no counter, or the sum would leave 64 bits (which SQLite would make a float).
const INCREMENT: &str = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value
    WHERE typeof(value) = 'integer' AND typeof(value + excluded.value) = 'integer' RETURNING value";
/// Changes no row where there is a value, or the sum would leave 64 bits.
const ADD: &str = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value
    WHERE typeof(value) = 'integer' AND typeof(value + excluded.value) = 'integer'";
const TALLY: &str = "INSERT INTO tally VALUES (?1, ?2, ?3)
    ON CONFLICT (record, field) DO UPDATE SET count = count + excluded.count";
const READ_TALLY: &str = "SELECT field, count FROM tally WHERE record = ?1";
const SCAN: &str = "SELECT key, value FROM kv WHERE key >= ?1 ORDER BY key LIMIT ?2";
const COUNT: &str = "SELECT (SELECT count(*) FROM kv) + (SELECT count(DISTINCT record) FROM tally)";
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Room for all of the statements above, so that none is ever prepared twice (rusqlite's default is 16).
const STATEMENTS: usize = 32;

/// How long a writer waits for another process that has the file; within ours they queue for a lock.
const BUSY: Duration = Duration::from_secs(10);

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let place = launch.directory()?;
    let clients = launch.clients.max(1);
    let store = Sqlite {
        file: if place.is_dir() { place.join(FILE) } else { place.to_path_buf() },
        durability: launch.durability,
        shipped: launch.is_shipped(),
        clients,
        // Each connection has a page cache of its own, so the budget is shared out.
        cache_kib: (launch.cache_bytes() / u64::from(clients) / 1024) as i64,
        idle: Mutex::new(Vec::new()),
        writer: Mutex::new(()),
    };
    let connection = store.connect()?;
    connection.execute_batch(TABLES).map_err(refused)?;
    store.give_back(connection);
    Ok(Box::new(store))
}

struct Sqlite {
    file: PathBuf,
    durability: Durability,
    /// Nothing is set that SQLite does not set itself.
    shipped: bool,
    clients: u32,
    cache_kib: i64,
    /// Connections that no session has; with one client there is one, and it keeps the file to itself.
    idle: Mutex<Vec<Connection>>,
    /// Writers queue here. SQLite lets one write at a time and makes the others sleep and ask again, which is unfair
    /// and slow.
    writer: Mutex<()>,
}

impl Sqlite {
    fn alone(&self) -> bool {
        self.clients == 1
    }

    /// What the durability level and the number of clients ask for, by SQLite's own names.
    fn pragmas(&self) -> [(&'static str, String); 8] {
        let journal_mode = match self.durability {
            // A rollback journal costs least where nobody reads beside the writer and nothing need outlive the process.
            // In memory, because without one (OFF) a failed statement could not be undone.
            // <https://www.sqlite.org/pragma.html#pragma_journal_mode>
            Durability::None if self.alone() => "MEMORY",
            // Readers go on beside the writer, and a commit appends to one file.
            _ => "WAL",
        };
        // With a write-ahead log OFF leaves the commit to the system, FULL syncs each one (NORMAL would sync
        // checkpoints only, which loses commits with the power).
        // <https://www.sqlite.org/pragma.html#pragma_synchronous>
        let power = self.durability == Durability::Power;
        // One process with one connection need not take and release the file's lock for each transaction.
        let locking_mode = if self.alone() { "EXCLUSIVE" } else { "NORMAL" };
        [
            // The default, and a block of most disks; a new database only.
            ("page_size", "4096".to_string()),
            ("locking_mode", locking_mode.to_string()),
            ("journal_mode", journal_mode.to_string()),
            ("synchronous", if power { "FULL" } else { "OFF" }.to_string()),
            // On macOS a plain fsync does not reach the disk. <https://www.sqlite.org/pragma.html#pragma_fullfsync>
            ("fullfsync", if power { "ON" } else { "OFF" }.to_string()),
            // Negative: kibibytes. <https://www.sqlite.org/pragma.html#pragma_cache_size>
            ("cache_size", (-self.cache_kib).to_string()),
            // The page cache holds the data, so a map would only hold it twice; off is the default.
            ("mmap_size", "0".to_string()),
            // The default.
            ("wal_autocheckpoint", "1000".to_string()),
        ]
    }

    fn connect(&self) -> Result<Connection, Fault> {
        let connection = Connection::open(&self.file).map_err(refused)?;
        connection.busy_timeout(BUSY).map_err(refused)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        for (name, value) in self.pragmas().iter().filter(|_| !self.shipped) {
            connection.pragma_update(None, name, value).map_err(refused)?;
        }
        Ok(connection)
    }

    fn take(&self) -> Result<Connection, Fault> {
        let idle = self.idle.lock().expect("nothing panics with this lock").pop();
        match idle {
            Some(connection) => Ok(connection),
            None if self.alone() => Err(Fault::Refused(
                "sqlite was opened for one client (locking_mode=EXCLUSIVE), and its session is still open".to_string(),
            )),
            None => self.connect(),
        }
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().expect("nothing panics with this lock").push(connection);
    }
}

impl Store for Sqlite {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client {
            store: self,
            connection: Some(self.take()?),
            turn: None,
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let connection = self.take()?;
        let mut facts = Facts {
            version: rusqlite::version().to_string(),
            client_library: concat!("rusqlite ", env!("KVFAIR_RUSQLITE")).to_string(),
            increment: "one upsert".to_string(),
            ..Facts::default()
        };
        for (name, _) in self.pragmas() {
            let value = connection.pragma_query_value(None, name, |row| row.get_ref(0).map(shown)).map_err(refused)?;
            facts.settings.insert(name.to_string(), value);
        }
        self.give_back(connection);
        Ok(facts)
    }

    /// Commits are all a durability level needs: at `power` each one was synced.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        let connection = self.take()?;
        let count = connection.query_one(COUNT, [], |row| row.get::<_, i64>(0)).map_err(refused)?;
        self.give_back(connection);
        Ok(Some(count as u64))
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        store_stats::stats(&self.file, &self.idle.lock().expect("nothing panics with this lock"))
    }
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => readable(text, 80),
        other => format!("{other:?}"),
    }
}

fn refused(error: rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        // <https://www.sqlite.org/limits.html>
        Some(ErrorCode::TooBig) => {
            Fault::Unsupported("sqlite takes rows of at most 1,000,000,000 bytes: key and value are longer".to_string())
        }
        _ => Fault::Refused(format!("sqlite: {error}")),
    }
}

/// One client's session: a connection, and the writers' lock while it has a transaction open.
struct Client<'s> {
    store: &'s Sqlite,
    /// There until the session is dropped, when the next one takes it over with its cache and its statements.
    connection: Option<Connection>,
    turn: Option<MutexGuard<'s, ()>>,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Get(key) => {
                let found = read_value(held(&self.connection), key, &mut self.value)?;
                Ok(if found { Reply::Value(&self.value) } else { Reply::Missing })
            }
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => self.change(Span::One, |connection| set(connection, key, value)),
            Op::SetMany(pairs) => self.change(Span::Several, |connection| {
                for (key, value) in pairs.iter() {
                    set(connection, key, value)?;
                }
                Ok(Reply::Done)
            }),
            Op::SetIfAbsent { key, value } => self.change(Span::One, |connection| {
                let rows = prepare(connection, SET_IF_ABSENT)?.execute(params![key, value]).map_err(refused)?;
                Ok(if rows == 0 { Reply::Conflict } else { Reply::Done })
            }),
            Op::Delete(key) => self.change(Span::One, |connection| {
                let mut rows = prepare(connection, DELETE)?.execute(params![key]).map_err(refused)?;
                if rows == 0 {
                    rows = prepare(connection, DELETE_TALLY)?.execute(params![key]).map_err(refused)?;
                }
                Ok(if rows == 0 { Reply::Missing } else { Reply::Done })
            }),
            Op::Increment { key, by } => self.change(Span::One, |connection| increment(connection, key, by)),
            Op::Add { key, by } => self.change(Span::One, |connection| add(connection, key, by)),
            Op::AddMany(sums) => self.change(Span::Several, |connection| {
                for (key, by) in sums.iter() {
                    add(connection, key, by)?;
                }
                Ok(Reply::Done)
            }),
            Op::Number(key) => Ok(read_number(held(&self.connection), key)?.map_or(Reply::Missing, Reply::Number)),
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => {
                let found = read_value(held(&self.connection), key, &mut self.value)?;
                Ok(if found { Reply::Versioned(&self.value, cell::version(&self.value)) } else { Reply::Missing })
            }
            Op::Cas { key, version, value } => {
                let mut old = std::mem::take(&mut self.value);
                let reply = self.change(Span::Several, |connection| {
                    if !read_value(connection, key, &mut old)? || cell::version(&old) != version {
                        return Ok(Reply::Conflict);
                    }
                    set(connection, key, value)
                });
                self.value = old;
                reply
            }
            Op::Tally { records, fields, by } => {
                self.change(Span::Several, |connection| tally(connection, records, fields, by))
            }
            Op::ReadTally(key) => self.read_tally(key),
            Op::Scan { from, limit } => self.scan(from, limit),
            Op::Set { ttl_s: Some(_), .. } => Err(Fault::unsupported(NAME, op)),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if !held(&self.connection).is_autocommit() {
            run(held(&self.connection), COMMIT)?;
        }
        self.turn = None;
        Ok(())
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // What was never flushed was never promised. A connection that cannot even undo is not used again.
        if connection.is_autocommit() || run(&connection, ROLLBACK).is_ok() {
            self.store.give_back(connection);
        }
    }
}

fn held(connection: &Option<Connection>) -> &Connection {
    connection.as_ref().expect("a session has its connection until it is dropped")
}

/// How many statements a change takes: several need a transaction around them.
#[derive(PartialEq)]
enum Span {
    One,
    Several,
}

impl Client<'_> {
    /// Changes records in the unit's transaction, or in one of its own; a single statement is one by itself.
    fn change<F>(&mut self, span: Span, change: F) -> Result<Reply<'static>, Fault>
    where
        F: FnOnce(&Connection) -> Result<Reply<'static>, Fault>,
    {
        if self.turn.is_none() {
            self.turn = Some(self.store.writer.lock().expect("no client panics in the middle of a change"));
        }
        let spans_unit = self.store.durability == Durability::None && !self.store.shipped;
        let connection = held(&self.connection);
        if connection.is_autocommit() && (spans_unit || span == Span::Several) {
            run(connection, BEGIN)?;
        }
        let reply = change(connection);
        if !spans_unit {
            if reply.is_err() && !connection.is_autocommit() {
                run(connection, ROLLBACK)?;
            }
            self.flush()?;
        }
        reply
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.values.clear();
        for key in keys.iter() {
            let found = read_value(held(&self.connection), key, &mut self.value)?;
            self.values.push(found.then_some(&self.value));
        }
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.numbers.clear();
        for key in keys.iter() {
            let number = read_number(held(&self.connection), key)?;
            self.numbers.push(number);
        }
        Ok(Reply::Numbers(&self.numbers))
    }

    fn read_tally(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        self.read_rows(READ_TALLY, params![key])?;
        let rows = self.lend_rows();
        Ok(if rows.keys.is_empty() { Reply::Missing } else { Reply::Rows(rows) })
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        self.read_rows(SCAN, params![from, limit])?;
        Ok(Reply::Rows(self.lend_rows()))
    }

    fn lend_rows(&self) -> Pairs<'_> {
        Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }
    }

    fn read_rows(&mut self, sql: &str, parameters: impl rusqlite::Params) -> Result<(), Fault> {
        let (keys, values) = &mut self.rows;
        keys.clear();
        values.clear();
        let mut statement = prepare(held(&self.connection), sql)?;
        let mut rows = statement.query(parameters).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            keys.push(bytes(row.get_ref(0).map_err(refused)?, &mut self.value)?);
            values.push(bytes(row.get_ref(1).map_err(refused)?, &mut self.value)?);
        }
        Ok(())
    }
}

fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<CachedStatement<'c>, Fault> {
    connection.prepare_cached(sql).map_err(refused)
}

fn run(connection: &Connection, sql: &str) -> Result<(), Fault> {
    prepare(connection, sql)?.execute([]).map(|_| ()).map_err(refused)
}

fn set(connection: &Connection, key: &[u8], value: &[u8]) -> Result<Reply<'static>, Fault> {
    prepare(connection, SET)?.execute(params![key, value]).map_err(refused)?;
    Ok(Reply::Done)
}

fn increment(connection: &Connection, key: &[u8], by: i64) -> Result<Reply<'static>, Fault> {
    let mut statement = prepare(connection, INCREMENT)?;
    let mut rows = statement.query(params![key, by]).map_err(refused)?;
    let number: Option<i64> = match rows.next().map_err(refused)? {
        Some(row) => Some(row.get(0).map_err(refused)?),
        None => None,
    };
    // To its end, because that is where a statement by itself commits, and says if it cannot.
    while rows.next().map_err(refused)?.is_some() {}
    number.map(Reply::Number).ok_or_else(|| no_counter(key))
}

fn no_counter(key: &[u8]) -> Fault {
    let key = readable(key, 80);
    Fault::Refused(format!("sqlite: the record of key '{key}' is no counter, or it would leave 64 bits"))
}

fn add(connection: &Connection, key: &[u8], by: i64) -> Result<Reply<'static>, Fault> {
    match prepare(connection, ADD)?.execute(params![key, by]).map_err(refused)? {
        0 => Err(no_counter(key)),
        _ => Ok(Reply::Done),
    }
}

fn tally(connection: &Connection, records: Keys<'_>, fields: Keys<'_>, by: i64) -> Result<Reply<'static>, Fault> {
    let mut statement = prepare(connection, TALLY)?;
    for record in records.iter() {
        for field in fields.iter() {
            statement.execute(params![record, field, by]).map_err(refused)?;
        }
    }
    Ok(Reply::Done)
}

/// Puts the value of a key in place of what `value` held; false where there is none.
fn read_value(connection: &Connection, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Fault> {
    let mut statement = prepare(connection, GET)?;
    let mut rows = statement.query(params![key]).map_err(refused)?;
    let Some(row) = rows.next().map_err(refused)? else { return Ok(false) };
    match row.get_ref(0).map_err(refused)? {
        ValueRef::Blob(found) => {
            value.clear();
            value.extend_from_slice(found);
        }
        other => {
            bytes(other, value)?;
        }
    }
    Ok(true)
}

fn read_number(connection: &Connection, key: &[u8]) -> Result<Option<i64>, Fault> {
    let mut statement = prepare(connection, GET)?;
    let mut rows = statement.query(params![key]).map_err(refused)?;
    let Some(row) = rows.next().map_err(refused)? else { return Ok(None) };
    match row.get_ref(0).map_err(refused)? {
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Err(Fault::Refused(format!("sqlite: the record of key '{}' is no counter", readable(key, 80)))),
    }
}

/// A value's bytes; a counter's are written to `text` in decimal.
fn bytes<'v>(value: ValueRef<'v>, text: &'v mut Vec<u8>) -> Result<&'v [u8], Fault> {
    match value {
        ValueRef::Blob(found) | ValueRef::Text(found) => Ok(found),
        ValueRef::Integer(number) => {
            text.clear();
            write!(text, "{number}").expect("a vector takes any text");
            Ok(text)
        }
        other => Err(Fault::Garbled(format!("sqlite: a value of type {} in our own table", other.data_type()))),
    }
}
