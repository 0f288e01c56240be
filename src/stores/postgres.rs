//! `postgres`: one statement an op, prepared once, each committed by itself.
//!
//! Documentation: <https://www.postgresql.org/docs/current/runtime-config.html>, <https://docs.rs/postgres>.

mod session;
mod standby;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use postgres::error::SqlState;
use postgres::{Client, Config, Error, NoTls};

use rows::{Needed, RECORDS, TALLIES};

use super::replication::{self, Failover, LINK_DELAY, LogPosition, READ, REPLICAS, WAIT};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Place, Role, Server, Session, Step, Store, password, rows};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

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
    open: |launch| Ok(Box::new(Postgres { launch: launch.clone(), has_tables: Mutex::new(false) })),
    server: Some(&Server {
        programs: &["postgres"],
        directories: &["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql/bin"],
        port: 5432,
        // Clients look for a socket of this name in a directory.
        socket: ".s.PGSQL.5432",
        prepare,
        version: version_printed,
        arguments,
        names_databases: true,
        // <https://www.postgresql.org/docs/current/libpq-envars.html>
        password_variable: Some("PGPASSWORD"),
        takes_password: true,
        admit,
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
/// What the driver says where the server wants a password and it was given none.
const NO_PASSWORD: &str = "password missing";
const DATABASE: &str = "postgres";

const CLIENT_LIBRARY: &str = concat!("postgres ", env!("KVFAIR_POSTGRES"));

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

impl Postgres {
    fn connect(&self) -> Result<Client, Fault> {
        let Launch { login, patience, .. } = &self.launch;
        let mut config = Config::new();
        config.user(login.user.as_deref().unwrap_or(USER)).dbname(login.database.as_deref().unwrap_or(DATABASE));
        config.connect_timeout(*patience).tcp_user_timeout(*patience).application_name("kvfair");
        if let Some(password) = &login.password {
            config.password(password);
        }
        if !self.launch.is_shipped() {
            config.options(&self.options());
        }
        match &self.launch.place {
            Place::Tcp { host, port } => config.host(host).port(*port),
            Place::Unix(path) => {
                let (directory, port) = directory_and_port(path);
                config.host_path(directory).port(port)
            }
            other => return Err(Fault::Unsupported(format!("{NAME} at {other}: it is a server"))),
        };
        config.connect(NoTls).map_err(|error| self.fault(error))
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
    fn fault(&self, error: Error) -> Fault {
        let server = self.server();
        if let Some(words) = error.as_db_error() {
            let hint = if *words.code() == SqlState::INVALID_CATALOG_NAME {
                ": name one that is there (postgres://HOST/DATABASE)"
            } else {
                ""
            };
            return match words.code() {
                code if *code == SqlState::INVALID_PASSWORD => {
                    password::of_a_user(NAME, &self.launch.place, words.message())
                }
                // A limit of the store, such as the longest row of an index.
                code if *code == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                    Fault::Unsupported(format!("{server}: {}", words.message()))
                }
                // It was stopped, or is about to be.
                code if code.code().starts_with("57P") => {
                    lost(io::ErrorKind::ConnectionAborted, &server, words.message())
                }
                _ => Fault::Refused(format!("{server}: {}{hint}", words.message())),
            };
        }
        let closed = error.is_closed();
        let words = error.to_string();
        if error.source().is_some_and(|why| why.to_string() == NO_PASSWORD) {
            return password::of_a_user(NAME, &self.launch.place, NO_PASSWORD);
        }
        match error.into_source() {
            Some(source) => match source.downcast::<io::Error>() {
                Ok(source) if matches!(source.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
                    Fault::no_connection(&server, &source)
                }
                Ok(source) => lost(source.kind(), &server, &source.to_string()),
                Err(source) => Fault::Garbled(format!("{server}: {words}: {source}")),
            },
            None if closed => lost(io::ErrorKind::UnexpectedEof, &server, "the server closed the connection"),
            None => Fault::Garbled(format!("{server}: {words}")),
        }
    }

    fn make_tables(&self, client: &mut Client) -> Result<(), Fault> {
        // A standby has those of its primary.
        if self.launch.follows.is_some() {
            return Ok(());
        }
        let mut has_tables = self.has_tables.lock().expect("no thread panics while making tables");
        if !*has_tables {
            // Standbys have what is in the log.
            let is_followed = replication::count(&self.launch.settings) > 0;
            let logged = self.launch.is_shipped() || self.launch.durability > Durability::None || is_followed;
            client.batch_execute(&open_tables(logged)).map_err(|error| self.fault(error))?;
            self.check_tables(client)?;
            *has_tables = true;
        }
        Ok(())
    }

    /// Tables that were there already may be of another kind.
    fn check_tables(&self, client: &mut Client) -> Result<(), Fault> {
        let ask = "SELECT relpersistence = 'p' FROM pg_class WHERE oid = $1::text::regclass";
        let logged: bool = client.query_one(ask, &[&RECORDS]).map_err(|error| self.fault(error))?.get(0);
        if logged || self.launch.durability == Durability::None {
            return Ok(());
        }
        let (server, level) = (self.server(), self.launch.durability);
        Err(Fault::Unsupported(format!(
            "{server} has {RECORDS} as a table without a log, which does not keep '{level}'"
        )))
    }
}

fn lost(kind: io::ErrorKind, server: &str, words: &str) -> Fault {
    Fault::Lost(io::Error::new(kind, format!("{server}: {words}")))
}

/// `/run/postgresql/.s.PGSQL.5433` is port 5433 in that directory; a directory alone has the usual port.
fn directory_and_port(path: &Path) -> (&Path, u16) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let port = name.strip_prefix(".s.PGSQL.").and_then(|port| port.parse().ok());
    match (path.parent(), port) {
        (Some(directory), Some(port)) => (directory, port),
        _ => (path, 5432),
    }
}

impl Store for Postgres {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let mut client = self.connect()?;
        self.make_tables(&mut client)?;
        if replication::wait(&self.launch.settings) > 0 {
            client.batch_execute(standby::WAITS).map_err(|error| self.fault(error))?;
        }
        Ok(Box::new(session::Asking::new(self, client)))
    }

    /// Fails where the server's settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let mut client = self.connect()?;
        let ask = "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1)";
        let rows = client.query(ask, &[&SETTINGS]).map_err(|error| self.fault(error))?;
        let settings: BTreeMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        if !self.launch.is_shipped() {
            rows::check_level(&self.server(), self.launch.durability, needed(self.launch.durability), &settings)?;
        }
        let version = client.query_one("SHOW server_version", &[]).map_err(|error| self.fault(error))?;
        let version: &str = version.get(0);
        let number = version.split_whitespace().next().unwrap_or_default().to_string();
        let started = client.query_one("SELECT pg_postmaster_start_time()::text", &[]);
        let started = Some(started.map_err(|error| self.fault(error))?.get(0));
        Ok(Facts { started, ..rows::facts(number, CLIENT_LIBRARY, "INSERT ... ON CONFLICT DO UPDATE", settings) })
    }

    /// Commits are all a durability level needs, and every statement was one.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn log_position(&self) -> Result<Option<LogPosition>, Fault> {
        standby::log_position(&mut self.connect()?).map_err(|error| self.fault(error))
    }

    fn failover(&self) -> Option<&dyn Failover> {
        Some(self)
    }

    /// What is in our tables; where there are none, nothing.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let ask = format!("SELECT (SELECT count(*) FROM {RECORDS}) + (SELECT count(DISTINCT record) FROM {TALLIES})");
        match self.connect()?.query_one(&ask, &[]) {
            Ok(row) => Ok(u64::try_from(row.get::<_, i64>(0)).ok()),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Some(0)),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// Every number of the views in [`VIEWS`] that this version has.
    fn stats(&self) -> Result<StoreStats, Fault> {
        let mut client = self.connect()?;
        wait_for_sessions(&mut client).map_err(|error| self.fault(error))?;
        let mut told: Vec<(String, String)> = Vec::new();
        for (view, which) in VIEWS {
            // Every column under its name, whatever there are in this version.
            let ask = format!("SELECT key, value FROM {view} AS v, json_each_text(row_to_json(v)) WHERE {which}");
            match client.query(&ask, &[]) {
                Ok(rows) => told.extend(rows.iter().filter_map(|row| {
                    Some((format!("{view}.{}", row.get::<_, &str>(0)), row.get::<_, Option<String>>(1)?))
                })),
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {}
                Err(error) => return Err(self.fault(error)),
            }
        }
        Ok(StoreStats::of_texts(told))
    }

    fn leave(&self) -> Result<(), Fault> {
        *self.has_tables.lock().expect("no thread panics while making tables") = false;
        let drop = format!("DROP TABLE IF EXISTS {RECORDS}, {TALLIES}");
        self.connect()?.batch_execute(&drop).map_err(|error| self.fault(error))
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

/// A session hands in what it counted now and then, and the rest when it ends: so those of ours must have ended. They
/// were told to, so that this takes milliseconds; half a second is the most that is waited.
/// <https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-STATS-VIEWS>
fn wait_for_sessions(client: &mut Client) -> Result<(), Error> {
    let ask = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kvfair' AND pid <> pg_backend_pid()";
    for _ in 0..50 {
        if client.query_one(ask, &[])?.get::<_, i64>(0) == 0 {
            break;
        }
        client.query("SELECT pg_sleep(0.01)", &[])?;
    }
    Ok(())
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

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`: the version.
fn version_printed(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("(PostgreSQL) ")?;
    rest.split_whitespace().next().map(str::to_string)
}

/// Where a server of ours has a socket beside TCP, by which it is told its password: among its files, where nobody else
/// comes. None where it has no password, or where the path is too long for a socket.
fn admin_socket<'d>(launch: &Launch, data: &'d Path) -> Option<&'d Path> {
    /// A socket's path has 107 bytes at most, and the name takes 16: "/.s.PGSQL.65535".
    const LONGEST: usize = 90;
    // A standby has its primary's password.
    let is_tcp = matches!(launch.place, Place::Tcp { .. }) && launch.follows.is_none();
    (is_tcp && launch.login.password.is_some() && data.as_os_str().len() <= LONGEST).then_some(data)
}

/// Sets the password of this start. Until then none is let in over TCP.
/// <https://www.postgresql.org/docs/current/sql-alterrole.html>
fn admit(launch: &Launch, data: &Path) -> Result<(), Fault> {
    let (Some(directory), Place::Tcp { port, .. }) = (admin_socket(launch, data), &launch.place) else { return Ok(()) };
    let password = launch.login.password.as_deref().unwrap_or_default();
    let place = Place::Unix(directory.join(format!(".s.PGSQL.{port}")));
    let store = Postgres { launch: Launch { place, ..launch.clone() }, has_tables: Mutex::new(false) };
    let set = format!("ALTER ROLE {USER} PASSWORD '{password}'");
    store.connect()?.batch_execute(&set).map_err(|error| store.fault(error))
}

/// Over TCP by password only; replicas are no part of all.
/// <https://www.postgresql.org/docs/current/auth-pg-hba-conf.html>
const ADMITTED: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n\
                        host replication all 127.0.0.1/32 scram-sha-256\n";

/// <https://www.postgresql.org/docs/current/app-initdb.html>.
fn prepare(launch: &Launch, data: &Path) -> Vec<Step> {
    if let Some(primary) = standby::primary(launch, data) {
        return standby::prepare(launch, data, &primary);
    }
    let directory = data.display().to_string();
    let mut arguments = ["-D", &directory, "-U", USER, "-A", "trust"].map(str::to_string).to_vec();
    let is_synced = launch.is_shipped() || launch.durability == Durability::Power;
    if !launch.is_shipped() {
        // Keys are bytes: no language's rules are wanted anywhere.
        arguments.extend(["--locale=C", "--encoding=UTF8"].map(str::to_string));
    }
    if !is_synced {
        arguments.push("--no-sync".to_string());
    }
    let mut steps = vec![Step::Run { program: "initdb", arguments, is_synced }];
    if admin_socket(launch, data).is_some() {
        steps.push(Step::Write { path: data.join("pg_hba.conf"), text: ADMITTED.to_string() });
    }
    steps
}

/// The command line. What is not named here is left at its default on purpose and read back: `autovacuum` (on: dead
/// rows are part of its price), `max_wal_size`, `checkpoint_timeout`, `huge_pages`, `jit`.
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = vec!["-D".to_string(), data.display().to_string()];
    let mut set = |name: &str, value: &str| arguments.extend(["-c".to_string(), format!("{name}={value}")]);
    match &launch.place {
        Place::Unix(path) => {
            let (directory, port) = directory_and_port(path);
            set("listen_addresses", ""); // No TCP at all.
            set("unix_socket_directories", &directory.display().to_string());
            set("unix_socket_permissions", "0700"); // Only clients of this user; root may.
            set("port", &port.to_string());
        }
        Place::Tcp { host, port } => {
            set("listen_addresses", host); // The loopback that we were given, no other address.
            // No socket, or one for whoever sets the password.
            let directory = admin_socket(launch, data).map(|directory| directory.display().to_string());
            set("unix_socket_directories", &directory.unwrap_or_default());
            set("unix_socket_permissions", "0700");
            set("port", &port.to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    if launch.is_shipped() {
        return arguments;
    }
    let level = launch.durability;
    let on_at = |least: Durability| if level >= least { "on" } else { "off" };
    // Written, not synced: enough where only the process dies.
    // https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-FSYNC
    set("fsync", on_at(Durability::Power));
    set("synchronous_commit", on_at(Durability::Crash));
    // Whole pages go to the log against halves of pages after a crash.
    set("full_page_writes", on_at(Durability::Crash));
    if replication::count(&launch.settings) > 0 {
        standby::arguments(launch, &mut set);
    } else {
        // No replica and no restore to a moment: the log holds what a crash needs.
        set("wal_level", "minimal");
        set("max_wal_senders", "0");
    }
    // https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-SHARED-BUFFERS
    set("shared_buffers", &format!("{}kB", launch.cache_bytes() / 1024));
    set("max_connections", &launch.clients.saturating_add(20).max(100).to_string());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_program_prints() {
        let printed = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(version_printed(printed).as_deref(), Some("15.18"));
        assert_eq!(version_printed("bash: postgres: command not found"), None);
    }

    #[test]
    fn a_socket_is_a_directory_and_a_port() {
        assert_eq!(directory_and_port(Path::new("/run/x/.s.PGSQL.7000")), (Path::new("/run/x"), 7000));
        assert_eq!(directory_and_port(Path::new("/run/postgresql")), (Path::new("/run/postgresql"), 5432));
    }
}
