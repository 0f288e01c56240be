//! How servers of ours are prepared and started, and which of their settings must be in force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{DATABASE, Mysql};
use rows::Needed;

use crate::model::op::Fault;
use crate::model::trial::Durability;
use crate::stores::{Launch, Place, Step, rows};

/// What is read back: all that could move a number or break a durability level. MariaDB and MySQL each have some of
/// their own.
const SETTINGS: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_use_native_aio",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_page_size",
    "innodb_io_capacity",
    "innodb_adaptive_hash_index",
    "log_bin",
    "sync_binlog",
    "max_allowed_packet",
    "max_connections",
    "performance_schema",
    "query_cache_type",
    "tx_isolation",
    "transaction_isolation",
    "autocommit",
    "version_comment",
];

/// The version, and those of all settings that are worth keeping.
pub fn in_force(all: Vec<(String, String)>) -> (String, BTreeMap<String, String>) {
    let version = all.iter().find(|(name, _)| name == "version").map(|(_, value)| value.clone());
    let settings = all.into_iter().filter(|(name, _)| SETTINGS.contains(&name.as_str())).collect();
    (version.unwrap_or_default(), settings)
}

/// Where there is a binary log, what it lacks after a loss of power is undone in the tables as well.
/// <https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog>
pub fn check(server: &str, level: Durability, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
    let commit = "innodb_flush_log_at_trx_commit";
    let needed: &[Needed] = match level {
        Durability::None => &[],
        Durability::Crash => &[(commit, &["1", "2"])],
        Durability::Power => {
            &[(commit, &["1"]), ("innodb_doublewrite", &["ON", "DETECT_AND_RECOVER"]), ("innodb_flush_method", SYNCED)]
        }
    };
    rows::check_level(server, level, needed, settings)?;
    let logs = settings.get("log_bin").is_some_and(|log| log == "ON");
    let needed: &[Needed] = if logs && level == Durability::Power { &[("sync_binlog", &["1"])] } else { &[] };
    rows::check_level(server, level, needed, settings)
}

/// All but `nosync`, `littlesync` and `O_DIRECT_NO_FSYNC`.
const SYNCED: &[&str] = &["O_DIRECT", "fsync", "O_DSYNC"];

/// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu ...`, `... Ver 8.4.3 for Linux on x86_64 (...)`.
pub fn version_printed(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once(" Ver ")?;
    let number = rest.split([' ', '-']).next()?;
    number.starts_with(|letter: char| letter.is_ascii_digit()).then(|| number.to_string())
}

/// <https://mariadb.com/kb/en/mariadb-install-db/>. What this table of users lets in is changed by `first_words`.
pub fn prepare_mariadb(launch: &Launch, data: &Path) -> Vec<Step> {
    let arguments = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"];
    let arguments = arguments.iter().map(|argument| argument.to_string()).chain([datadir(data)]).collect();
    vec![Step::Run { program: "mariadb-install-db", arguments, is_synced: true }, first_words(launch, data)]
}

/// <https://dev.mysql.com/doc/refman/8.4/en/data-directory-initialization.html>
pub fn prepare_mysql(launch: &Launch, data: &Path) -> Vec<Step> {
    let arguments = vec!["--no-defaults".to_string(), "--initialize-insecure".to_string(), datadir(data)];
    // One user for TCP and the socket beside it: a password that was proven there once is known to the server.
    let password = launch.login.password.as_deref().unwrap_or_default();
    let text = format!(
        "CREATE DATABASE IF NOT EXISTS {DATABASE};\nCREATE USER IF NOT EXISTS 'root'@'%';\n\
         GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\nALTER USER 'root'@'%' IDENTIFIED BY '{password}';\n\
         DROP USER IF EXISTS 'root'@'localhost';\n"
    );
    let first = Step::Write { path: first_file(data), text };
    vec![Step::Run { program: "mysqld", arguments, is_synced: true }, first]
}

/// Over TCP MySQL believes a digest of a password only once it was told the password itself, which is said over the
/// socket beside TCP, among the server's own files.
/// <https://dev.mysql.com/doc/refman/8.4/en/caching-sha2-pluggable-authentication.html>
pub fn admit_to_mysql(launch: &Launch, data: &Path) -> Result<(), Fault> {
    match (&launch.place, &launch.login.password) {
        (Place::Tcp { .. }, Some(_)) => {
            let place = Place::Unix(own_socket(data));
            Mysql::at("mysql", &Launch { place, ..launch.clone() }).connect().map(drop)
        }
        _ => Ok(()),
    }
}

/// The socket beside TCP, on which the server insists.
fn own_socket(data: &Path) -> PathBuf {
    data.join("s")
}

/// What the server does at each start, before it takes connections: a database to be used, a user for TCP, where no
/// name is looked up, and the password of this start. There is none over a Unix socket, which only we can reach, nor
/// beside a program of the user's, which knows none.
fn first_words(launch: &Launch, data: &Path) -> Step {
    let password = launch.login.password.as_deref().unwrap_or_default();
    let text = format!(
        "CREATE DATABASE IF NOT EXISTS {DATABASE};\nCREATE USER IF NOT EXISTS 'root'@'127.0.0.1';\n\
         GRANT ALL ON *.* TO 'root'@'127.0.0.1';\nALTER USER 'root'@'127.0.0.1' IDENTIFIED BY '{password}';\n\
         ALTER USER 'root'@'localhost' IDENTIFIED BY '{password}';\n"
    );
    Step::Write { path: first_file(data), text }
}

fn first_file(data: &Path) -> PathBuf {
    data.join("kvfair-first.sql")
}

fn datadir(data: &Path) -> String {
    format!("--datadir={}", data.display())
}

pub fn arguments_of_mariadb(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = arguments(launch, data);
    if !launch.is_shipped() {
        arguments.push(format!("--innodb-log-file-size={}", redo_bytes(launch)));
        // The default, kept by name: answers are not to come from a cache of whole results.
        arguments.push("--query-cache-type=0".to_string());
    }
    arguments
}

pub fn arguments_of_mysql(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = arguments(launch, data);
    arguments.push("--mysqlx=OFF".to_string()); // Another listener, for another protocol.
    if !launch.is_shipped() {
        arguments.push(format!("--innodb-redo-log-capacity={}", redo_bytes(launch)));
    }
    arguments
}

/// The log is a ring: when it is full, writers wait for pages to be written. The defaults of both (96 and 100 MB) are
/// for small machines; half of the cache lets a page be changed many times before it must go to disk.
/// <https://dev.mysql.com/doc/refman/8.4/en/optimizing-innodb-logging.html>
fn redo_bytes(launch: &Launch) -> u64 {
    launch.cache_bytes() / 2
}

/// The command line, but for what only one of the two has. What is not named here is left at its default on purpose and
/// read back: `innodb_io_capacity`, `innodb_adaptive_hash_index`, threads.
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = vec!["--no-defaults".to_string(), datadir(data)]; // No my.cnf is read.
    let mut option = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
    option("init-file", &first_file(data).display().to_string());
    option("pid-file", &data.join("kvfair.pid").display().to_string());
    match &launch.place {
        Place::Unix(path) => {
            option("skip-networking", "1"); // No TCP at all.
            option("socket", &path.display().to_string());
        }
        Place::Tcp { host, port } => {
            option("bind-address", host); // The loopback that we were given, no other address.
            option("port", &port.to_string());
            option("socket", &own_socket(data).display().to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    option("skip-name-resolve", "1"); // No look-up of the client's name.
    if launch.is_shipped() {
        return arguments;
    }
    // https://mariadb.com/kb/en/innodb-buffer-pool/
    option("innodb-buffer-pool-size", &launch.cache_bytes().to_string());
    // Written and synced about once a second; written at each commit; synced at each commit.
    // https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_log_at_trx_commit
    let flush = match launch.durability {
        Durability::None => "0",
        Durability::Crash => "2",
        Durability::Power => "1",
    };
    option("innodb-flush-log-at-trx-commit", flush);
    // Pages are written twice, against halves of pages after a crash; where nothing need survive one, once.
    option("innodb-doublewrite", if launch.durability == Durability::None { "0" } else { "1" });
    // Pages are written by threads and not through a ring: what is synced can be seen (`kvfair crash`).
    if launch.durability == Durability::Power {
        option("innodb-use-native-aio", "0");
    }
    // No replica and no restore to a moment: MariaDB's default, and MySQL's until 8.0.
    option("skip-log-bin", "1");
    // MariaDB's default; MySQL's own instruments would be measured with it.
    option("performance-schema", "0");
    // The protocol's longest packet, so that no value is refused for a default (16 or 64 MB).
    option("max-allowed-packet", "1073741824");
    // The defaults are for 151 clients and 16382 statements.
    option("max-connections", &launch.clients.saturating_add(20).max(151).to_string());
    option("max-prepared-stmt-count", "1048576");
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        let mariadb = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n";
        let mysql = "/usr/sbin/mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)\n";
        assert_eq!(version_printed(mariadb).as_deref(), Some("10.11.19"));
        assert_eq!(version_printed(mysql).as_deref(), Some("8.4.3"));
        assert_eq!(version_printed("bash: mysqld: command not found"), None);
    }

    #[test]
    fn settings_that_do_not_keep_the_class_are_refused_by_name() {
        let settings = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<BTreeMap<_, _>>()
        };
        let lazy = settings(&[("innodb_flush_log_at_trx_commit", "2")]);
        assert!(check("x", Durability::Crash, &lazy).is_ok());
        let refused = check("mysql at h:1", Durability::Power, &lazy).unwrap_err().to_string();
        assert!(refused.contains("mysql at h:1 has innodb_flush_log_at_trx_commit 2"), "{refused}");
        let logs = settings(&[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "ON"), ("sync_binlog", "0")]);
        assert!(check("x", Durability::Power, &logs).unwrap_err().to_string().contains("sync_binlog 0"));
        let no_log = settings(&[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "OFF"), ("sync_binlog", "0")]);
        assert!(check("x", Durability::Power, &no_log).is_ok());
    }
}
