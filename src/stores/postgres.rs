//! `postgres`: one statement an op, prepared once, each committed by itself.
//!
//! Documentation: <https://www.postgresql.org/docs/current/runtime-config.html>.

mod recipe;
mod standby;
mod statements;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use rows::{Needed, RECORDS, TALLIES};

use super::blocking::{Blocking, BlockingConnection, Connection};
use super::deadline::Deadline;
use super::replication::{self, Failover, LINK_DELAY, LogPosition, READ, REPLICAS, WAIT};
use super::store_stats::{StoreStats, bounded};
use super::{Adapter, Facts, Launch, Place, Role, Server, Session, Store, rows};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::postgres::{self as wire, Greeting, ServerError, TextRow};

pub static POSTGRES: Adapter = Adapter {
    name: NAME,
    about: "the SQL database",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &["postgresql"],
    // As root a standby is another user than kvfair, whom the proxy of a link lets in alone.
    settings: &[REPLICAS, READ, LINK_DELAY, WAIT],
    keeps: |level| match level {
        Durability::None => Ok("fsync off, synchronous_commit off, tables not logged"),
        Durability::Crash => Ok("fsync off, synchronous_commit on"),
        Durability::Power => Ok("fsync on, synchronous_commit on"),
    },
    // A stop that is no crash writes everything, unlogged tables included.
    stays: |_| true,
    lacks: |_| &[],
    open: |launch| Ok(Box::new(Postgres::at(launch))),
    server: Some(&Server {
        programs: &["postgres"],
        directories: &["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql/bin"],
        port: 5432,
        // Clients look for a socket of this name in a directory.
        socket: ".s.PGSQL.5432",
        prepare: recipe::prepare,
        version: recipe::version_printed,
        arguments: recipe::arguments,
        names_databases: true,
        // <https://www.postgresql.org/docs/current/libpq-envars.html>
        password_variable: Some("PGPASSWORD"),
        takes_password: true,
        admit: recipe::admit,
        instead_of_root: Some("postgres"),
        replicates_over: &[Transport::Tcp],
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "apt install postgresql",
};

const NAME: &str = "postgres";

/// Who a server of ours knows, and the database that every server begins with.
const USER: &str = "postgres";
const DATABASE: &str = "postgres";

/// Our own codec.
const CLIENT_LIBRARY: &str = "postgres";

/// Conditions that mean something to us.
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const UNDEFINED_TABLE: &str = "42P01";
/// A limit of the store, such as the longest row of an index.
const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
/// How often a standby is asked whether it has the tables of its primary.
const LOOK: Duration = Duration::from_millis(20);

/// What is read back: all that could move a number or break a durability level.
const SETTINGS: &[&str] = &[
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "wal_sync_method",
    "max_wal_size",
    "checkpoint_timeout",
    "shared_buffers",
    "max_connections",
    "autovacuum",
    "huge_pages",
    "enable_seqscan",
    "default_transaction_isolation",
    "data_checksums",
    "jit",
];

fn open_tables(logged: bool) -> String {
    // https://www.postgresql.org/docs/current/sql-createtable.html#SQL-CREATETABLE-UNLOGGED: nothing goes to the log,
    // and what was there is gone after a crash.
    let table = if logged { "TABLE" } else { "UNLOGGED TABLE" };
    format!(
        "CREATE {table} IF NOT EXISTS {RECORDS} (k bytea PRIMARY KEY, v bytea, n bigint);
         CREATE {table} IF NOT EXISTS {TALLIES}
            (record bytea NOT NULL, field bytea NOT NULL, n bigint NOT NULL, PRIMARY KEY (record, field));"
    )
}

struct Postgres {
    launch: Launch,
    /// Tables are made with the first session: asking what a server is must not change it.
    has_tables: Mutex<bool>,
}

/// A session, or what a store is asked beside sessions.
type Speaker = Blocking<wire::Postgres>;

impl Postgres {
    fn at(launch: &Launch) -> Postgres {
        Postgres { launch: launch.clone(), has_tables: Mutex::new(false) }
    }

    fn connect(&self) -> Result<Speaker, Fault> {
        let place = match &self.launch.place {
            Place::Unix(path) => {
                let (directory, port) = recipe::directory_and_port(path);
                Place::Unix(directory.join(format!(".s.PGSQL.{port}")))
            }
            other => other.clone(),
        };
        let login = rows::login(NAME, &self.launch, USER, DATABASE)?;
        let is_private = matches!(place, Place::Unix(_));
        let options = if self.launch.is_shipped() { String::new() } else { self.options() };
        let codec = wire::Postgres::new(NAME, statements::sql, Greeting::new(login, is_private, options));
        Blocking::open(NAME, &Launch { place, ..self.launch.clone() }, codec)
    }

    /// A session whose tables are there and whose first statements are prepared.
    fn prepared(&self) -> Result<Speaker, Fault> {
        let mut speaker = self.connect()?;
        self.make_tables(speaker.connection())?;
        if replication::wait(&self.launch.settings) > 0 {
            self.ask(speaker.connection(), standby::WAITS)?;
        }
        let deadline = Deadline::within(self.launch.patience);
        loop {
            match speaker.connection().exchange(&wire::prepare_first(statements::sql), wire::outcome)? {
                Ok(_) => return Ok(speaker),
                // A standby has the tables of its primary a moment later.
                Err(error) if error.code == UNDEFINED_TABLE && self.launch.follows.is_some() => {
                    deadline.left().map_err(|_| self.fault(error))?;
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(self.fault(error)),
            }
        }
    }

    /// What a session may ask for itself, at a server of somebody else's as well.
    fn options(&self) -> String {
        let commit = match (self.launch.durability, replication::wait(&self.launch.settings)) {
            (Durability::None, _) => "off",
            (_, 0) => "on",
            // Sessions wait for standbys. What is done before there are any does not.
            _ => "local",
        };
        // Plans are made while the tables are still empty, when reading all of a table looks cheaper than its index,
        // and are kept. <https://www.postgresql.org/docs/current/runtime-config-query.html#GUC-ENABLE-SEQSCAN>
        format!("-c synchronous_commit={commit} -c enable_seqscan=off")
    }

    fn server(&self) -> String {
        rows::server(NAME, &self.launch.place)
    }

    /// What went wrong, with the server's name.
    fn fault(&self, error: ServerError) -> Fault {
        let words = format!("{}: {}", self.server(), error.words);
        match error.code.as_str() {
            PROGRAM_LIMIT_EXCEEDED => Fault::Unsupported(words),
            _ if error.is_end() => Fault::Lost(io::Error::new(io::ErrorKind::ConnectionAborted, words)),
            _ => Fault::Refused(words),
        }
    }

    /// Asks by text, as one transaction.
    fn ask(&self, connection: &mut BlockingConnection, sql: &str) -> Result<Vec<TextRow>, Fault> {
        connection.exchange(&wire::query(sql), wire::outcome)?.map_err(|error| self.fault(error))
    }

    /// The same on a connection of its own.
    fn ask_once(&self, sql: &str) -> Result<Vec<TextRow>, Fault> {
        self.ask(self.connect()?.connection(), sql)
    }

    /// The same where there may be no such table: then nothing. There are no more rows than of counters.
    fn ask_table(&self, connection: &mut BlockingConnection, sql: &str) -> Result<Option<Vec<TextRow>>, Fault> {
        match connection.exchange(&wire::query(sql), bounded(wire::outcome))? {
            Ok(rows) => Ok(Some(rows)),
            Err(error) if error.code == UNDEFINED_TABLE => Ok(None),
            Err(error) => Err(self.fault(error)),
        }
    }

    fn make_tables(&self, connection: &mut BlockingConnection) -> Result<(), Fault> {
        // A standby has those of its primary.
        if self.launch.follows.is_some() {
            return Ok(());
        }
        let mut has_tables = self.has_tables.lock().expect("no thread panics while making tables");
        if !*has_tables {
            // Standbys have what is in the log.
            let is_followed = replication::count(&self.launch.settings) > 0;
            let logged = self.launch.is_shipped() || self.launch.durability > Durability::None || is_followed;
            self.ask(connection, &open_tables(logged))?;
            self.check_tables(connection)?;
            *has_tables = true;
        }
        Ok(())
    }

    /// Tables that were there already may be of another kind.
    fn check_tables(&self, connection: &mut BlockingConnection) -> Result<(), Fault> {
        let (server, level) = (self.server(), self.launch.durability);
        let table = |name| {
            format!(
                "(SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY
            attnum) FROM pg_attribute WHERE attrelid = '{name}'::regclass AND attnum > 0 AND NOT attisdropped)"
            )
        };
        let ask = format!(
            "SELECT relpersistence, {}, {} FROM pg_class WHERE oid = '{RECORDS}'::regclass",
            table(RECORDS),
            table(TALLIES)
        );
        let row = only_row(self.ask(connection, &ask)?);
        // Tables of these names with other columns are not ours.
        if text(&row, 1) != "k bytea, v bytea, n bigint" || text(&row, 2) != "record bytea, field bytea, n bigint" {
            let words = format!("{server}: {RECORDS} or {TALLIES} has other columns than ours: drop it");
            return Err(Fault::Refused(words));
        }
        if text(&row, 0) == "p" || level == Durability::None {
            return Ok(());
        }
        Err(Fault::Unsupported(format!(
            "{server} has {RECORDS} as a table without a log, which does not keep '{level}'"
        )))
    }
}

/// The first row of an answer, which has one.
fn only_row(rows: Vec<TextRow>) -> TextRow {
    rows.into_iter().next().unwrap_or_default()
}

/// A column as text; nothing in it where it is NULL.
fn text(row: &TextRow, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

impl Store for Postgres {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(self.prepared()?))
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(self.prepared().and_then(|speaker| speaker.into_line(&wire::query(""), wire::outcome)))
    }

    /// Fails where the server's settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let mut speaker = self.connect()?;
        let connection = speaker.connection();
        let names = SETTINGS.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let ask = format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})");
        let rows = self.ask(connection, &ask)?;
        let settings: BTreeMap<String, String> =
            rows.iter().map(|row| (text(row, 0).to_string(), text(row, 1).to_string())).collect();
        if !self.launch.is_shipped() {
            rows::check_level(&self.server(), self.launch.durability, needed(self.launch.durability), &settings)?;
        }
        let ask = "SELECT current_setting('server_version'), pg_postmaster_start_time()";
        let row = only_row(self.ask(connection, ask)?);
        let number = text(&row, 0).split_whitespace().next().unwrap_or_default().to_string();
        let started = Some(text(&row, 1).to_string());
        Ok(Facts { started, ..rows::facts(number, CLIENT_LIBRARY, "INSERT ... ON CONFLICT DO UPDATE", settings) })
    }

    /// Commits are all a durability level needs, and every statement was one.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn log_position(&self) -> Result<Option<LogPosition>, Fault> {
        self.position().map(Some)
    }

    fn failover(&self) -> Option<&dyn Failover> {
        Some(self)
    }

    /// What is in our tables; where there are none, nothing.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let ask = format!("SELECT (SELECT count(*) FROM {RECORDS}) + (SELECT count(DISTINCT record) FROM {TALLIES})");
        let rows = self.ask_table(self.connect()?.connection(), &ask)?;
        Ok(rows.map_or(Some(0), |rows| text(&only_row(rows), 0).parse().ok()))
    }

    /// Every number of the views in [`VIEWS`] that this version has.
    fn stats(&self) -> Result<StoreStats, Fault> {
        let mut speaker = self.connect()?;
        let connection = speaker.connection();
        self.wait_for_sessions(connection)?;
        let mut counters: Vec<(String, String)> = Vec::new();
        for (view, which) in VIEWS {
            // Every column under its name, whatever there are in this version.
            let ask = format!("SELECT key, value FROM {view} AS v, json_each_text(row_to_json(v)) WHERE {which}");
            for row in self.ask_table(connection, &ask)?.unwrap_or_default() {
                let mut columns = row.into_iter();
                if let (Some(Some(name)), Some(Some(value))) = (columns.next(), columns.next()) {
                    counters.push((format!("{view}.{name}"), value));
                }
            }
        }
        Ok(StoreStats::of_texts(counters))
    }

    fn leave(&self) -> Result<(), Fault> {
        *self.has_tables.lock().expect("no thread panics while making tables") = false;
        self.ask_once(&format!("DROP TABLE IF EXISTS {RECORDS}, {TALLIES}")).map(drop)
    }
}

/// What counts, and which of its rows. <https://www.postgresql.org/docs/current/monitoring-stats.html>
const VIEWS: [(&str, &str); 4] = [
    ("pg_stat_database", "v.datname = current_database()"),
    ("pg_stat_wal", "true"),
    ("pg_stat_bgwriter", "true"),
    // Since version 17.
    ("pg_stat_checkpointer", "true"),
];

impl Postgres {
    /// A session hands in what it counted now and then, and the rest when it ends: so those of ours must have ended.
    /// They were told to, so that this takes milliseconds; half a second is the most that is waited.
    /// <https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-STATS-VIEWS>
    fn wait_for_sessions(&self, connection: &mut BlockingConnection) -> Result<(), Fault> {
        let ask = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kvfair' AND pid <> pg_backend_pid()";
        for _ in 0..50 {
            if text(&only_row(self.ask(connection, ask)?), 0) == "0" {
                break;
            }
            self.ask(connection, "SELECT pg_sleep(0.01)")?;
        }
        Ok(())
    }
}

/// <https://www.postgresql.org/docs/current/runtime-config-wal.html>
fn needed(level: Durability) -> &'static [Needed] {
    const COMMITS: Needed = ("synchronous_commit", &["on", "local", "remote_write", "remote_apply"]);
    match level {
        Durability::None => &[],
        Durability::Crash => &[COMMITS],
        Durability::Power => &[COMMITS, ("fsync", &["on"]), ("full_page_writes", &["on"])],
    }
}
