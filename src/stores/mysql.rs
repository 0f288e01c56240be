//! `mariadb` and `mysql`: one protocol, two programs; InnoDB tables, one statement an op, each committed by itself.
//!
//! Documentation: <https://mariadb.com/kb/en/innodb-system-variables/>,
//! <https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html>.

mod recipe;
mod statements;

use std::sync::Mutex;

use rows::{RECORDS, TALLIES};

use super::blocking::{Blocking, BlockingConnection, Connection};
use super::store_stats::{StoreStats, bounded};
use super::{Adapter, Facts, Launch, Place, Role, Server, Session, Store, rows};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::mysql::{self as wire, Greeting, HALF, KEY, ServerError, TextRow};

pub static MYSQL: Adapter = Adapter {
    name: "mysql",
    about: "the SQL database, by InnoDB tables",
    open: |launch| open("mysql", launch),
    server: Some(&Server {
        programs: &["mysqld"],
        not: &["mariadbd"],
        prepare: recipe::prepare_mysql,
        arguments: recipe::arguments_of_mysql,
        admit: recipe::admit_to_mysql,
        ..SERVER
    }),
    get_it: "install MySQL's mysqld (dev.mysql.com); Debian has MariaDB instead",
    ..BOTH
};

pub static MARIADB: Adapter = Adapter {
    name: "mariadb",
    about: "MySQL's continuation by its first author, by InnoDB tables",
    open: |launch| open("mariadb", launch),
    server: Some(&Server {
        programs: &["mariadbd"],
        prepare: recipe::prepare_mariadb,
        arguments: recipe::arguments_of_mariadb,
        scheme: Some("mysql"),
        ..SERVER
    }),
    get_it: "apt install mariadb-server",
    ..BOTH
};

const BOTH: Adapter = Adapter {
    name: "",
    about: "",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("innodb_flush_log_at_trx_commit 0, innodb_doublewrite off"),
        Durability::Crash => Ok("innodb_flush_log_at_trx_commit 2"),
        Durability::Power => Ok("innodb_flush_log_at_trx_commit 1"),
    },
    // A stop that is no crash writes the log, whatever the durability level.
    stays: |_| true,
    lacks: |_| &[],
    open: |launch| open("mariadb", launch),
    server: None,
    version: || Err("a server's version is its program's".to_string()),
    get_it: "",
};

const SERVER: Server = Server {
    port: 3306,
    directories: &["/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin"],
    version: recipe::version_printed,
    names_databases: true,
    // <https://dev.mysql.com/doc/refman/8.4/en/environment-variables.html>
    password_variable: Some("MYSQL_PWD"),
    takes_password: true,
    instead_of_root: Some("mysql"),
    ..Server::PLAIN
};

/// Who a server of ours knows, and its database.
const USER: &str = "root";
const DATABASE: &str = "kvfair";

/// Our own codec.
const CLIENT_LIBRARY: &str = "mysql";

/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
const NO_SUCH_TABLE: u16 = 1146;

/// VARBINARY is compared byte by byte, blanks at the end included. <https://mariadb.com/kb/en/varbinary/>
fn tables() -> [String; 2] {
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {RECORDS} (k VARBINARY({KEY}) NOT NULL PRIMARY KEY, v LONGBLOB, n BIGINT)
                ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {TALLIES} (record VARBINARY({HALF}) NOT NULL, field VARBINARY({HALF}) NOT NULL,
                n BIGINT NOT NULL, PRIMARY KEY (record, field)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
        ),
    ]
}

fn open(name: &'static str, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Mysql::at(name, launch)))
}

struct Mysql {
    name: &'static str,
    launch: Launch,
    /// Tables are made with the first session: asking what a server is must not change it.
    has_tables: Mutex<bool>,
}

/// A session, or what a store is asked beside sessions.
type Speaker = Blocking<wire::Mysql>;

impl Mysql {
    fn at(name: &'static str, launch: &Launch) -> Mysql {
        Mysql { name, launch: launch.clone(), has_tables: Mutex::new(false) }
    }

    fn connect(&self) -> Result<Speaker, Fault> {
        let login = rows::login(self.name, &self.launch, USER, DATABASE)?;
        let is_private = matches!(self.launch.place, Place::Unix(_));
        let codec = wire::Mysql::new(self.name, Greeting::new(login, is_private, self.name), statements::wording());
        let mut speaker = Blocking::open(self.name, &self.launch, codec)?;
        if !self.launch.is_shipped() {
            // Every op is one statement that reads nothing twice, so the locks on the gaps between rows that the
            // default (REPEATABLE READ) takes would only make clients wait for each other, and deadlock.
            // <https://dev.mysql.com/doc/refman/8.4/en/innodb-transaction-isolation-levels.html>
            self.ask(speaker.connection(), "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        }
        Ok(speaker)
    }

    /// A session whose tables are there and whose first statements are prepared.
    fn prepared(&self) -> Result<Speaker, Fault> {
        let mut speaker = self.connect()?;
        self.make_tables(speaker.connection())?;
        let rows = self.ask(speaker.connection(), "SELECT @@max_allowed_packet")?;
        let packet_bytes = rows.first().and_then(|row| text(row, 0).parse().ok());
        speaker.prepare(|codec, out| {
            if let Some(bytes) = packet_bytes {
                codec.limit_packets(bytes);
            }
            codec.prepare_first(out);
        })?;
        Ok(speaker)
    }

    fn server(&self) -> String {
        rows::server(self.name, &self.launch.place)
    }

    /// What went wrong, with the server's name.
    fn fault(&self, error: &ServerError) -> Fault {
        Fault::Refused(format!("{}: {}", self.server(), error.words))
    }

    /// Asks by text.
    fn ask(&self, connection: &mut BlockingConnection, sql: &str) -> Result<Vec<TextRow>, Fault> {
        connection.exchange(&wire::query(sql), wire::outcome)?.map_err(|error| self.fault(&error))
    }

    /// The same on a connection of its own.
    fn ask_once(&self, sql: &str) -> Result<Vec<TextRow>, Fault> {
        self.ask(self.connect()?.connection(), sql)
    }

    fn make_tables(&self, connection: &mut BlockingConnection) -> Result<(), Fault> {
        let mut has_tables = self.has_tables.lock().expect("no thread panics while making tables");
        if !*has_tables {
            for table in tables() {
                self.ask(connection, &table)?;
            }
            *has_tables = true;
        }
        Ok(())
    }
}

/// A column as text; nothing in it where it is NULL.
fn text(row: &TextRow, column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}

/// Names and what they have, out of rows of two columns.
fn named(rows: &[TextRow]) -> Vec<(String, String)> {
    rows.iter().map(|row| (text(row, 0).to_string(), text(row, 1).to_string())).collect()
}

impl Store for Mysql {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(self.prepared()?))
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(self.prepared().and_then(|speaker| speaker.into_line(&wire::query("DO 0"), wire::outcome)))
    }

    /// Fails where the server's settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let (version, settings) = recipe::in_force(named(&self.ask_once("SHOW VARIABLES")?));
        if !self.launch.is_shipped() {
            recipe::check(&self.server(), self.launch.durability, &settings)?;
        }
        let product = if version.contains("MariaDB") { "mariadb" } else { "mysql" };
        let number = version.split('-').next().unwrap_or_default().to_string();
        Ok(Facts {
            product: (product != self.name).then(|| product.to_string()),
            ..rows::facts(number, CLIENT_LIBRARY, "INSERT ... ON DUPLICATE KEY UPDATE", settings)
        })
    }

    /// Commits are all a durability level needs, and every statement was one.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// What is in our tables; where there are none, nothing.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let ask = format!("SELECT (SELECT COUNT(*) FROM {RECORDS}) + (SELECT COUNT(DISTINCT record) FROM {TALLIES})");
        match self.connect()?.connection().exchange(&wire::query(&ask), wire::outcome)? {
            Ok(rows) => Ok(rows.first().and_then(|row| text(row, 0).parse().ok())),
            Err(error) if error.code == NO_SUCH_TABLE => Ok(Some(0)),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// <https://mariadb.com/kb/en/server-status-variables/>,
    /// <https://dev.mysql.com/doc/refman/8.4/en/server-status-variables.html>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let mut speaker = self.connect()?;
        let answer = speaker.connection().exchange(&wire::query("SHOW GLOBAL STATUS"), bounded(wire::outcome))?;
        Ok(StoreStats::of_texts(named(&answer.map_err(|error| self.fault(&error))?)))
    }

    fn leave(&self) -> Result<(), Fault> {
        *self.has_tables.lock().expect("no thread panics while making tables") = false;
        self.ask_once(&format!("DROP TABLE IF EXISTS {RECORDS}, {TALLIES}")).map(drop)
    }
}
