//! PostgreSQL's replicas: a standby begins as a copy of its primary and follows its log.
//!
//! Documentation: <https://www.postgresql.org/docs/current/warm-standby.html>.

use std::path::{Path, PathBuf};

use super::{Postgres, USER, only_row, text};
use crate::model::op::Fault;
use crate::model::trial::Durability;
use crate::stores::replication::{self, Failover, LogPosition};
use crate::stores::{Launch, Place, Step};

/// A replica that lags behind finds so much of the log at its primary.
const KEPT_LOG: &str = "1GB";
/// A page of the log begins with a header of so many bytes at most, in which nothing ends (xlog_internal.h).
const PAGE_BYTES: u64 = 8192;
const HEADER_BYTES: u64 = 40;

/// Where this server's primary is, for libpq; nothing where it follows none. The password is in a file.
/// <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>
pub(super) fn primary(launch: &Launch, data: &Path) -> Option<String> {
    let Some(Place::Tcp { host, port }) = &launch.follows else { return None };
    let file = password_file(data).display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
    Some(format!("host={host} port={port} user={USER} passfile='{file}'"))
}

/// Beside the data: it is there before the copy.
fn password_file(data: &Path) -> PathBuf {
    data.parent().unwrap_or(data).join("passfile")
}

/// The copy of the primary, and the file that makes it a standby.
/// <https://www.postgresql.org/docs/current/app-pgbasebackup.html>
pub(super) fn prepare(launch: &Launch, data: &Path, primary: &str) -> Vec<Step> {
    let password = launch.login.password.as_deref().unwrap_or_default();
    let is_synced = launch.is_shipped() || launch.durability == Durability::Power;
    let directory = data.display().to_string();
    let mut arguments =
        ["-D", &directory, "-d", primary, "-X", "stream", "-c", "fast", "-w"].map(str::to_string).to_vec();
    if !is_synced {
        arguments.push("--no-sync".to_string());
    }
    vec![
        Step::Write { path: password_file(data), text: format!("*:*:*:{USER}:{password}\n") },
        Step::Run { program: "pg_basebackup", arguments, is_synced },
        Step::Write { path: data.join("standby.signal"), text: String::new() },
        // Not in the command line, which nothing can change while the server runs: it may have to follow another one.
        Step::Write {
            path: data.join("postgresql.auto.conf"),
            text: format!("primary_conninfo = {}\n", quoted(primary)),
        },
    ]
}

/// What primary and standby need in their command lines.
pub(super) fn arguments(launch: &Launch, set: &mut dyn FnMut(&str, &str)) {
    set("wal_level", "replica");
    // A copy needs two for a moment.
    set("max_wal_senders", &(2 * replication::count(&launch.settings) + 2).to_string());
    set("wal_keep_size", KEPT_LOG);
    let wait = replication::wait(&launch.settings);
    if wait > 0 {
        set("synchronous_standby_names", &format!("ANY {wait} (*)"));
    }
}

/// A commit of such a session returns when as many standbys as the server's settings name have written it.
/// <https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-SYNCHRONOUS-COMMIT>
pub(super) const WAITS: &str = "SET synchronous_commit = on";

/// A value in a file of settings. <https://www.postgresql.org/docs/current/config-setting.html>
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// The same primary's login at another place.
fn moved(conninfo: &str, place: &Place) -> Result<String, Fault> {
    let rest = conninfo.find(" user=").map(|at| &conninfo[at..]);
    match (place, rest) {
        (Place::Tcp { host, port }, Some(rest)) => Ok(format!("host={host} port={port}{rest}")),
        _ => Err(Fault::Unsupported(format!("a standby cannot follow {place}"))),
    }
}

impl Postgres {
    /// Whether that is so.
    fn is_so(&self, condition: &str) -> Result<bool, Fault> {
        Ok(text(&only_row(self.ask_once(&format!("SELECT {condition}"))?), 0) == "t")
    }

    /// Of a primary what it has put into its log, whether that is on disk or not; of a standby what it has applied.
    /// <https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-RECOVERY-CONTROL>
    pub(super) fn position(&self) -> Result<LogPosition, Fault> {
        let ask = "SELECT coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
                THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint, 0),
            NOT pg_is_in_recovery() OR EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";
        let position = self.position_by(ask)?;
        Ok(LogPosition { bytes: end_of_log(position.bytes), ..position })
    }

    /// A number of bytes, and whether it is linked.
    fn position_by(&self, ask: &str) -> Result<LogPosition, Fault> {
        let row = only_row(self.ask_once(ask)?);
        Ok(LogPosition { bytes: text(&row, 0).parse().unwrap_or(0), is_linked: text(&row, 1) == "t" })
    }
}

/// <https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-RECOVERY-CONTROL>
impl Failover for Postgres {
    /// What it has received is applied before it is a primary.
    fn received(&self) -> Result<LogPosition, Fault> {
        let ask = "SELECT coalesce(pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()),
                '0/0'), 0)::bigint,
            EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";
        self.position_by(ask)
    }

    fn promote(&self) -> Result<(), Fault> {
        match self.is_so("pg_promote(wait => false)")? {
            true => Ok(()),
            false => Err(Fault::Refused("pg_promote answered false".to_string())),
        }
    }

    fn is_primary(&self) -> Result<bool, Fault> {
        self.is_so("NOT pg_is_in_recovery()")
    }

    fn follow(&self, primary: &Place) -> Result<(), Fault> {
        let row = only_row(self.ask_once("SELECT current_setting('primary_conninfo')")?);
        let conninfo = moved(text(&row, 0), primary)?.replace('\'', "''");
        // It may not stand in a transaction with anything else.
        self.ask_once(&format!("ALTER SYSTEM SET primary_conninfo = '{conninfo}'"))?;
        self.ask_once("SELECT pg_reload_conf()").map(drop)
    }
}

/// The place where the next record begins is behind the header of a page; the one where the last record ended is before
/// it.
fn end_of_log(bytes: u64) -> u64 {
    let in_page = bytes % PAGE_BYTES;
    if in_page <= HEADER_BYTES { bytes - in_page } else { bytes }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_position_behind_the_header_of_a_page_is_the_end_of_the_page_before() {
        assert_eq!([8192, 8216, 8232, 8233, 9000].map(end_of_log), [8192, 8192, 8192, 8233, 9000]);
    }

    #[test]
    fn a_standby_is_told_its_primary_without_the_password() {
        let mut launch = Launch::at(Place::Path("/x y/data".into()), Duration::from_secs(1));
        let data = Path::new("/x y'z/data");
        assert_eq!(primary(&launch, data), None);
        launch.follows = Some(Place::Tcp { host: "127.0.0.1".to_string(), port: 5433 });
        launch.login.password = Some("secret".to_string());
        let told = primary(&launch, data).expect("a primary");
        assert_eq!(told, "host=127.0.0.1 port=5433 user=postgres passfile='/x y\\'z/passfile'");
        let elsewhere = Place::Tcp { host: "127.0.0.2".to_string(), port: 6000 };
        let moved = moved(&told, &elsewhere).expect("a place");
        assert_eq!(moved, "host=127.0.0.2 port=6000 user=postgres passfile='/x y\\'z/passfile'");
        assert_eq!(quoted(r"a'b\c"), r"'a''b\\c'");
    }
}
