//! `cassandra`: rows by the hash of their key, in CQL. One node, asked by ScyllaDB's driver for both. It knows how each
//! durability level is set and what a node needs written before it starts.
//!
//! Documentation: <https://cassandra.apache.org/doc/5.0/cassandra/>, <https://docs.rs/scylla>.

mod recipe;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session as Driver;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::PagingState;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use tokio::runtime::Runtime;

use self::session::Statements;
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Place, Role, Server, Session, Store, password};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

pub static CASSANDRA: Adapter = Adapter {
    name: NAME,
    about: "the wide-column store: rows by the hash of their key",
    role: Role::Store,
    transports: &[Transport::Tcp],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("commitlog_sync: periodic"),
        // `periodic` answers before a mark in the log says where it ends, and what stands behind the last mark is not
        // read again: it loses a tenth of a second to a kill.
        // <https://cassandra.apache.org/doc/5.0/cassandra/architecture/storage-engine.html#commit-log>
        Durability::Crash => Ok("commitlog_sync: batch"),
        Durability::Power => Err(
            "cassandra syncs the logs of its merges before it writes to them: a loss of power in between leaves files \
                 with which it does not start (docs/durability.md)",
        ),
    },
    // A stop that is no crash writes everything.
    stays: |_| true,
    lacks: |_| &[Means::Scan],
    open,
    server: Some(&Server {
        programs: &["cassandra"],
        directories: &["$CASSANDRA_HOME/bin"],
        port: 9042,
        prepare: recipe::prepare,
        version_argument: "-v",
        version: |printed| printed.lines().map(str::trim).find(|line| starts_with_digit(line)).map(str::to_string),
        arguments: recipe::arguments,
        environment: recipe::environment,
        // Nodes talk to one another, and so does Java's management, on ports of their own.
        listens_elsewhere: true,
        names_databases: true,
        // Its own client has none: the name is ours.
        password_variable: Some("CASSANDRA_PASSWORD"),
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "https://cassandra.apache.org/download/ (unpack it and set CASSANDRA_HOME; it needs Java 17)",
};

const NAME: &str = "cassandra";

/// Where our tables are, so that a server of somebody else's may hold other things.
const KEYSPACE: &str = "kvfair";

/// Counters have a table of their own because Cassandra does not let them stand beside anything else.
/// <https://cassandra.apache.org/doc/5.0/cassandra/developing/cql/counter-column.html>
const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS KEYSPACE.kvfair_records (key blob PRIMARY KEY, value blob)",
    "CREATE TABLE IF NOT EXISTS KEYSPACE.kvfair_counters (key blob PRIMARY KEY, number counter)",
    "CREATE TABLE IF NOT EXISTS KEYSPACE.kvfair_tallies \
     (record blob, field blob, number counter, PRIMARY KEY (record, field))",
];

const NAMES: [&str; 3] = ["kvfair_records", "kvfair_counters", "kvfair_tallies"];

/// What each table has one of for each record.
const ROWS: [&str; 3] = [
    "SELECT key FROM KEYSPACE.kvfair_records",
    "SELECT key FROM KEYSPACE.kvfair_counters",
    "SELECT DISTINCT record FROM KEYSPACE.kvfair_tallies",
];

/// What the server is asked for of its settings: all that could move a number or break a durability level.
const SETTINGS: &[&str] = &[
    "commitlog_sync",
    "commitlog_sync_period",
    "commitlog_sync_group_window",
    "commitlog_disk_access_mode",
    "concurrent_counter_writes",
    "concurrent_reads",
    "concurrent_writes",
    "counter_cache_size",
    "disk_access_mode",
    "file_cache_enabled",
    "key_cache_size",
    "memtable_allocation_type",
    "memtable_heap_space",
    "num_tokens",
    "partitioner",
    "row_cache_size",
];

/// The driver's tasks only move bytes between sockets and the clients' threads.
const WORKERS: usize = 2;

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let Place::Tcp { host, port } = &launch.place else {
        return Err(Fault::Unsupported(format!("a server at {}", launch.place)));
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let keyspace = launch.login.database.as_deref().unwrap_or(KEYSPACE);
    check_keyspace(keyspace)?;
    let keyspace = keyspace.to_string();
    let profile = ExecutionProfile::builder()
        // There is one copy: whoever has it has all.
        .consistency(Consistency::One)
        .request_timeout(Some(launch.patience))
        // What fails is told, never tried again in silence.
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .build();
    let mut builder = SessionBuilder::new()
        .known_node(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
        .connection_timeout(launch.patience)
        .default_execution_profile_handle(profile.into_handle())
        // We know our tables.
        .fetch_schema_metadata(false);
    if let (Some(user), password) = (&launch.login.user, &launch.login.password) {
        builder = builder.user(user, password.as_deref().unwrap_or_default());
    }
    let driver = runtime.block_on(builder.build()).map_err(|error| unopened(&launch.place, &error.to_string()))?;
    let statements = Mutex::new(None);
    Ok(Box::new(Cassandra { launch: launch.clone(), keyspace, statements, driver: Arc::new(driver), runtime }))
}

/// What the driver says where the server wants a login, and where it takes none of that name and password.
const LOGIN_WANTED: [&str; 2] = ["Authentication is required", "Authentication failed"];

fn unopened(place: &Place, words: &str) -> Fault {
    if !LOGIN_WANTED.iter().any(|wanted| words.contains(wanted)) {
        return lost(words);
    }
    // What follows is about the driver's own functions.
    password::of_a_user(NAME, place, words.split(". You can use").next().unwrap_or(words))
}

/// A keyspace stands in statements as it is.
fn check_keyspace(name: &str) -> Result<(), Fault> {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_');
    if is_plain {
        return Ok(());
    }
    Err(Fault::Unsupported(format!("{NAME} has no keyspace '{name}' for us: a name of a-z, 0-9 and _ is needed")))
}

struct Cassandra {
    launch: Launch,
    keyspace: String,
    /// What all sessions ask, prepared with the first of them, when the tables are made: asking what a server is must
    /// not change it.
    statements: Mutex<Option<Arc<Statements>>>,
    driver: Arc<Driver>,
    runtime: Runtime,
}

impl Cassandra {
    fn statements(&self) -> Result<Arc<Statements>, Fault> {
        let mut statements = self.statements.lock().expect("no thread panics while making tables");
        if let Some(statements) = &*statements {
            return Ok(Arc::clone(statements));
        }
        self.make_tables()?;
        Ok(Arc::clone(statements.insert(Arc::new(Statements::prepare(self)?))))
    }

    /// Makes the tables that are not there. Looking is cheap, and a change of the schema is not.
    fn make_tables(&self) -> Result<(), Fault> {
        if self.tables_there()? < TABLES.len() {
            // One copy, as every other store here has. A keyspace that is there stays as it is.
            let keyspace = format!(
                "CREATE KEYSPACE IF NOT EXISTS {} \
                 WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
                self.keyspace
            );
            self.run(self.driver.query_unpaged(keyspace, ()))?;
            for table in TABLES {
                self.run(self.driver.query_unpaged(self.named(table), ()))?;
            }
        }
        Ok(())
    }

    /// How many of our tables there are.
    fn tables_there(&self) -> Result<usize, Fault> {
        let there = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
        let there = self.run(self.driver.query_unpaged(there, (&self.keyspace,)))?;
        let there = there.into_rows_result().map_err(garbled)?;
        let mut ours = 0;
        for row in there.rows::<(&str,)>().map_err(garbled)? {
            let (name,) = row.map_err(garbled)?;
            ours += usize::from(NAMES.contains(&name));
        }
        Ok(ours)
    }

    /// A statement about the keyspace that is ours.
    fn named(&self, statement: &str) -> String {
        statement.replace("KEYSPACE", &self.keyspace)
    }

    fn run<T>(&self, asked: impl Future<Output = Result<T, ExecutionError>>) -> Result<T, Fault> {
        self.runtime.block_on(asked).map_err(fault)
    }

    fn prepare(&self, statement: &str) -> Result<PreparedStatement, Fault> {
        self.runtime.block_on(self.driver.prepare(self.named(statement))).map_err(unprepared)
    }

    fn execute(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Result<QueryResult, Fault> {
        self.run(self.driver.execute_unpaged(statement, values))
    }

    /// How many rows a statement gives, read page by page: one answer for all would take too long.
    fn rows(&self, statement: &str) -> Result<u64, Fault> {
        let statement = self.prepare(statement)?;
        let (mut count, mut place) = (0, PagingState::start());
        loop {
            let (page, rest) = self.run(self.driver.execute_single_page(&statement, (), place))?;
            count += page.into_rows_result().map_err(garbled)?.rows_num() as u64;
            match rest.into_paging_control_flow() {
                ControlFlow::Break(()) => return Ok(count),
                ControlFlow::Continue(next) => place = next,
            }
        }
    }
}

fn lost(error: impl std::fmt::Display) -> Fault {
    Fault::Lost(io::Error::new(io::ErrorKind::NotConnected, error.to_string()))
}

fn garbled(error: impl std::fmt::Display) -> Fault {
    Fault::Garbled(format!("{NAME}: {error}"))
}

fn refused(error: impl std::fmt::Display) -> Fault {
    Fault::Refused(format!("{NAME}: {error}"))
}

fn unprepared(error: PrepareError) -> Fault {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt } => attempt(first_attempt),
        error => lost(error),
    }
}

fn fault(error: ExecutionError) -> Fault {
    match error {
        ExecutionError::RequestTimeout(_) => Fault::Lost(io::Error::new(io::ErrorKind::TimedOut, error.to_string())),
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan => lost(error),
        ExecutionError::PrepareError(error) => unprepared(error),
        error => refused(error),
    }
}

fn attempt(error: RequestAttemptError) -> Fault {
    match error {
        RequestAttemptError::BrokenConnectionError(_) => lost(error),
        RequestAttemptError::DbError(kind, words) => refused(format!("{words} ({kind})")),
        RequestAttemptError::UnexpectedResponse(_)
        | RequestAttemptError::CqlResultParseError(_)
        | RequestAttemptError::CqlErrorParseError(_)
        | RequestAttemptError::BodyExtensionsParseError(_) => garbled(error),
        error => refused(error),
    }
}

impl Store for Cassandra {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(session::Asking::new(self, self.statements()?)))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let local = self.run(self.driver.query_unpaged("SELECT release_version FROM system.local", ()))?;
        let local = local.into_rows_result().map_err(garbled)?;
        let (version,) = local.first_row::<(String,)>().map_err(garbled)?;
        let settings = self.settings()?;
        if !self.launch.is_shipped() {
            check_level(self.launch.durability, &settings)?;
        }
        Ok(Facts {
            version,
            client_library: concat!("scylla ", env!("KVFAIR_SCYLLA")).to_string(),
            increment: "UPDATE of a counter column, then a SELECT (others may have added in between)".to_string(),
            settings,
            ..Facts::default()
        })
    }

    /// What was acknowledged meets the durability level: the log came before the answer.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        match self.tables_there()? {
            // Somebody else's, who has no table of ours.
            0 => Ok(Some(0)),
            _ => ROWS.iter().map(|statement| self.rows(statement)).sum::<Result<u64, Fault>>().map(Some),
        }
    }

    /// Tasks of its pools of threads (writes, flushes, merges) and what its caches found. Its latencies and sizes are
    /// for Java's management, which is not spoken here.
    /// <https://cassandra.apache.org/doc/5.0/cassandra/managing/operating/virtualtables.html>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let mut numbers = Vec::new();
        for table in ["thread_pools", "caches"] {
            let asked = self.run(self.driver.query_unpaged(format!("SELECT JSON * FROM system_views.{table}"), ()));
            let told = asked?.into_rows_result().map_err(garbled)?;
            for row in told.rows::<(&str,)>().map_err(garbled)? {
                let row: serde_json::Value = serde_json::from_str(row.map_err(garbled)?.0).map_err(garbled)?;
                let (name, fields) = (row["name"].as_str().unwrap_or_default(), row.as_object());
                let fields = fields.into_iter().flatten();
                numbers
                    .extend(fields.filter_map(|(field, it)| Some((format!("{table}.{name}.{field}"), it.as_f64()?))));
            }
        }
        Ok(numbers.into_iter().collect())
    }

    fn expires(&self) -> bool {
        true
    }

    fn leave(&self) -> Result<(), Fault> {
        *self.statements.lock().expect("no thread panics while making tables") = None;
        for name in NAMES {
            let drop = format!("DROP TABLE IF EXISTS {}.{name}", self.keyspace);
            self.run(self.driver.query_unpaged(drop, ()))?;
        }
        Ok(())
    }
}

impl Cassandra {
    /// The settings in force. Servers before 4.0 have no table of them.
    fn settings(&self) -> Result<BTreeMap<String, String>, Fault> {
        let asked = self.run(self.driver.query_unpaged("SELECT name, value FROM system_views.settings", ()));
        let told = match asked {
            Ok(told) => told.into_rows_result().map_err(garbled)?,
            Err(Fault::Refused(words)) => return Ok([("settings".to_string(), words)].into()),
            Err(fault) => return Err(fault),
        };
        let mut settings = BTreeMap::new();
        for row in told.rows::<(String, Option<String>)>().map_err(garbled)? {
            let (name, value) = row.map_err(garbled)?;
            if SETTINGS.contains(&name.as_str()) {
                settings.insert(name, value.unwrap_or_default());
            }
        }
        Ok(settings)
    }
}

/// A server that kvfair did not start may not keep the durability level that was asked for. What cannot be read is not
/// judged.
fn check_level(level: Durability, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
    match settings.get("commitlog_sync") {
        Some(found) if level != Durability::None && found == "periodic" => Err(Fault::Unsupported(format!(
            "{NAME} has commitlog_sync {found}, which does not keep '{level}': it takes commitlog_sync batch or group"
        ))),
        _ => Ok(()),
    }
}

fn starts_with_digit(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_synced_now_and_then_keeps_nothing() {
        let settings = |sync: &str| BTreeMap::from([("commitlog_sync".to_string(), sync.to_string())]);
        assert!(check_level(Durability::None, &settings("periodic")).is_ok());
        assert!(check_level(Durability::Power, &settings("batch")).is_ok());
        assert!(check_level(Durability::Power, &settings("group")).is_ok());
        let refused = check_level(Durability::Crash, &settings("periodic")).unwrap_err().to_string();
        assert!(refused.contains("cassandra has commitlog_sync periodic"), "{refused}");
    }

    /// The driver's words, as they come from a server with `PasswordAuthenticator`.
    #[test]
    fn a_login_that_is_missing_or_wrong_is_asked_for_by_url() {
        let place = Place::Tcp { host: "h".to_string(), port: 9042 };
        let url = "cassandra at h:9042 needs a password: cassandra://USER:PASSWORD@h:9042, or KVFAIR_PASSWORD (";
        for words in [
            "Failed to perform connection setup: Authentication is required. You can use SessionBuilder::user(..)",
            "Database returned an error: Authentication failed - bad credentials, Error message: Provided username",
        ] {
            let said = unopened(&place, words).to_string();
            assert!(said.contains(url) && !said.contains("SessionBuilder"), "{said}");
        }
        assert!(matches!(unopened(&place, "connection refused"), Fault::Lost(_)));
    }

    #[test]
    fn a_keyspace_is_a_plain_name() {
        for good in ["kvfair", "a_1"] {
            check_keyspace(good).unwrap();
        }
        for bad in ["", "1a", "a.b", "a;DROP", "\u{e4}"] {
            assert!(check_keyspace(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_version_is_the_line_that_is_one() {
        let version = CASSANDRA.server.unwrap().version;
        assert_eq!(version("WARNING: something\n5.0.2\n").as_deref(), Some("5.0.2"));
        assert_eq!(version("You must set CASSANDRA_CONF\n"), None);
    }
}
