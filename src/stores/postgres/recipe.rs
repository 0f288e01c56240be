//! How a server of ours is prepared and started.
//!
//! Documentation: <https://www.postgresql.org/docs/current/runtime-config.html>.

use std::path::Path;

use super::{Postgres, USER, standby};
use crate::model::op::Fault;
use crate::model::trial::Durability;
use crate::stores::{Launch, Place, Step, replication};

/// `/run/postgresql/.s.PGSQL.5433` is port 5433 in that directory; a directory alone has the usual port.
pub fn directory_and_port(path: &Path) -> (&Path, u16) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let port = name.strip_prefix(".s.PGSQL.").and_then(|port| port.parse().ok());
    match (path.parent(), port) {
        (Some(directory), Some(port)) => (directory, port),
        _ => (path, 5432),
    }
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`: the version.
pub fn version_printed(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("(PostgreSQL) ")?;
    rest.split_whitespace().next().map(str::to_string)
}

/// The directory of the Unix socket that a server of ours has beside TCP, by which its password is set. It lies among
/// the server's files. None where it has no password, or where the path is too long for a socket.
fn admin_socket<'d>(launch: &Launch, data: &'d Path) -> Option<&'d Path> {
    /// A socket's path has 107 bytes at most, and the name takes 16: "/.s.PGSQL.65535".
    const LONGEST: usize = 90;
    // A standby has its primary's password.
    let is_tcp = matches!(launch.place, Place::Tcp { .. }) && launch.follows.is_none();
    (is_tcp && launch.login.password.is_some() && data.as_os_str().len() <= LONGEST).then_some(data)
}

/// Sets the password of this start. Until then none is let in over TCP.
/// <https://www.postgresql.org/docs/current/sql-alterrole.html>
pub fn admit(launch: &Launch, data: &Path) -> Result<(), Fault> {
    let (Some(directory), Place::Tcp { port, .. }) = (admin_socket(launch, data), &launch.place) else { return Ok(()) };
    let password = launch.login.password.as_deref().unwrap_or_default();
    let place = Place::Unix(directory.join(format!(".s.PGSQL.{port}")));
    let store = Postgres::at(&Launch { place, ..launch.clone() });
    let set = format!("ALTER ROLE {USER} PASSWORD '{password}'");
    store.ask_once(&set).map(drop)
}

/// Over TCP by password only; replicas are no part of all.
/// <https://www.postgresql.org/docs/current/auth-pg-hba-conf.html>
const ADMITTED: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n\
                        host replication all 127.0.0.1/32 scram-sha-256\n";

/// <https://www.postgresql.org/docs/current/app-initdb.html>.
pub fn prepare(launch: &Launch, data: &Path) -> Vec<Step> {
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
pub fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
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
            // No socket, or the one by which the password is set.
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
