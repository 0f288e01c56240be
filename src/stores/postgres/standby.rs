//! PostgreSQL's replicas: a standby begins as a copy of its primary and follows its log.
//!
//! Documentation: <https://www.postgresql.org/docs/current/warm-standby.html>.

use std::path::{Path, PathBuf};

use postgres::Client;

use super::USER;
use crate::model::trial::Durability;
use crate::stores::replication::{self, LogPosition};
use crate::stores::{Launch, Place, Step};

/// A replica that lags behind finds so much of the log at its primary.
const KEPT_LOG: &str = "1GB";
/// A page of the log begins with a header of so many bytes at most, in which nothing ends (xlog_internal.h).
const PAGE_BYTES: i64 = 8192;
const HEADER_BYTES: i64 = 40;

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
    ]
}

/// What primary and standby need in their command lines.
pub(super) fn arguments(launch: &Launch, set: &mut dyn FnMut(&str, &str)) {
    set("wal_level", "replica");
    // A copy needs two for a moment.
    set("max_wal_senders", &(2 * replication::count(&launch.settings) + 2).to_string());
    set("wal_keep_size", KEPT_LOG);
}

/// Of a primary what it has put into its log, whether that is on disk or not; of a standby what it has applied.
/// <https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-RECOVERY-CONTROL>
pub(super) fn log_position(client: &mut Client) -> Result<Option<LogPosition>, postgres::Error> {
    let ask = "SELECT pg_is_in_recovery(), pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
            THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint,
        EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";
    let row = client.query_one(ask, &[])?;
    let (is_standby, bytes, streams): (bool, Option<i64>, bool) = (row.get(0), row.get(1), row.get(2));
    let bytes = bytes.map_or(0, end_of_log);
    Ok(Some(LogPosition { bytes: u64::try_from(bytes).unwrap_or(0), is_linked: streams || !is_standby }))
}

/// The place where the next record begins is behind the header of a page; the one where the last record ended is before
/// it.
fn end_of_log(bytes: i64) -> i64 {
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
    }
}
