//! `mariadb` and `mysql`: one protocol, two programs; InnoDB tables, one statement an op, each committed by itself.
//!
//! Documentation: <https://mariadb.com/kb/en/innodb-system-variables/>,
//! <https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html>, <https://docs.rs/mysql>.

mod asking;
mod recipe;

use std::io;
use std::sync::Mutex;

use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, Error, OptsBuilder};

use rows::{RECORDS, TALLIES};

use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Place, Role, Server, Session, Store, password, rows};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

pub static MYSQL: Adapter = Adapter {
    name: "mysql",
    about: "the SQL database, by InnoDB tables",
    open: |launch| open("mysql", launch),
    server: Some(&Server {
        programs: &["mysqld"],
        not: &["mariadbd"],
        prepare: recipe::prepare_mysql,
        arguments: recipe::arguments_of_mysql,
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

const CLIENT_LIBRARY: &str = concat!("mysql ", env!("KVFAIR_MYSQL"));

/// The server's numbers of errors that mean something to us.
/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
const NO_SUCH_TABLE: u16 = 1146;
const UNKNOWN_DATABASE: u16 = 1049;
/// A password that is missing or wrong, and one that is missing at MariaDB's socket.
const ACCESS_DENIED: [u16; 2] = [1045, 1698];

/// VARBINARY is compared byte by byte, blanks at the end included. 3072 bytes is the longest key of an InnoDB index of
/// 16 KiB pages; a tally's two halves share it.
/// <https://dev.mysql.com/doc/refman/8.4/en/innodb-limits.html>, <https://mariadb.com/kb/en/varbinary/>
const KEY: usize = 3072;
const HALF: usize = KEY / 2;

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
    Ok(Box::new(Mysql { name, launch: launch.clone(), has_tables: Mutex::new(false) }))
}

struct Mysql {
    name: &'static str,
    launch: Launch,
    /// Tables are made with the first session: asking what a server is must not change it.
    has_tables: Mutex<bool>,
}

impl Mysql {
    fn connect(&self) -> Result<Conn, Fault> {
        let login = &self.launch.login;
        let patience = self.launch.patience;
        let options = OptsBuilder::new()
            .user(Some(login.user.as_deref().unwrap_or(USER)))
            .pass(login.password.as_deref())
            .db_name(Some(login.database.as_deref().unwrap_or(DATABASE)))
            // The transport that was asked for, and no quicker one behind our back.
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_connect_timeout(Some(patience))
            .read_timeout(Some(patience))
            .write_timeout(Some(patience))
            // Statements are kept by the session.
            .stmt_cache_size(0);
        let options = match &self.launch.place {
            Place::Tcp { host, port } => options.ip_or_hostname(Some(host)).tcp_port(*port),
            Place::Unix(path) => options.socket(path.to_str()),
            other => return Err(Fault::Unsupported(format!("{} at {other}: it is a server", self.name))),
        };
        let mut connection = Conn::new(options).map_err(|error| self.fault(error))?;
        if !self.launch.is_shipped() {
            // Every op is one statement that reads nothing twice, so the locks on the gaps between rows that the
            // default (REPEATABLE READ) takes would only make clients wait for each other, and deadlock.
            // <https://dev.mysql.com/doc/refman/8.4/en/innodb-transaction-isolation-levels.html>
            let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
            connection.query_drop(isolation).map_err(|error| self.fault(error))?;
        }
        Ok(connection)
    }

    fn server(&self) -> String {
        rows::server(self.name, &self.launch.place)
    }

    /// What went wrong, with the server's name.
    fn fault(&self, error: Error) -> Fault {
        let server = self.server();
        match error {
            Error::MySqlError(error) if error.code == UNKNOWN_DATABASE => Fault::Refused(format!(
                "{server}: {}: name one that is there ({}://HOST/DATABASE)",
                error.message, self.name
            )),
            Error::MySqlError(error) if ACCESS_DENIED.contains(&error.code) => {
                password::of_a_user(self.name, &self.launch.place, &error.message)
            }
            Error::MySqlError(error) => Fault::Refused(format!("{server}: {}", error.message)),
            Error::IoError(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let silence = self.launch.patience.as_secs_f64();
                lost(io::ErrorKind::TimedOut, format!("{server} has been silent for {silence} s"))
            }
            Error::IoError(error) => lost(error.kind(), format!("{server}: {error}")),
            Error::DriverError(DriverError::CouldNotConnect(Some((_, words, kind)))) => {
                Fault::no_connection(&server.to_string(), &io::Error::new(kind, words))
            }
            Error::DriverError(error @ (DriverError::ConnectTimeout | DriverError::CouldNotConnect(None))) => {
                lost(io::ErrorKind::TimedOut, format!("{server}: {error}"))
            }
            Error::DriverError(error @ (DriverError::UnknownAuthPlugin(_) | DriverError::CleartextPluginDisabled)) => {
                Fault::Refused(format!("{server}: {error}"))
            }
            error => Fault::Garbled(format!("{server}: {error}")),
        }
    }

    fn make_tables(&self, connection: &mut Conn) -> Result<(), Fault> {
        let mut has_tables = self.has_tables.lock().expect("no thread panics while making tables");
        if !*has_tables {
            for table in tables() {
                connection.query_drop(table).map_err(|error| self.fault(error))?;
            }
            *has_tables = true;
        }
        Ok(())
    }
}

fn lost(kind: io::ErrorKind, words: String) -> Fault {
    Fault::Lost(io::Error::new(kind, words))
}

impl Store for Mysql {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let mut connection = self.connect()?;
        self.make_tables(&mut connection)?;
        Ok(Box::new(asking::MysqlSession::new(self, connection)?))
    }

    /// Fails where the server's settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let mut connection = self.connect()?;
        let ask = "SHOW VARIABLES";
        let settings: Vec<(String, String)> = connection.query(ask).map_err(|error| self.fault(error))?;
        let (version, settings) = recipe::in_force(settings);
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
        match self.connect()?.query_first::<u64, _>(ask) {
            Ok(count) => Ok(count),
            Err(Error::MySqlError(error)) if error.code == NO_SUCH_TABLE => Ok(Some(0)),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// <https://mariadb.com/kb/en/server-status-variables/>,
    /// <https://dev.mysql.com/doc/refman/8.4/en/server-status-variables.html>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let told: Vec<(String, String)> =
            self.connect()?.query("SHOW GLOBAL STATUS").map_err(|error| self.fault(error))?;
        Ok(StoreStats::of_texts(told))
    }

    fn leave(&self) -> Result<(), Fault> {
        *self.has_tables.lock().expect("no thread panics while making tables") = false;
        let drop = format!("DROP TABLE IF EXISTS {RECORDS}, {TALLIES}");
        self.connect()?.query_drop(drop).map_err(|error| self.fault(error))
    }
}
