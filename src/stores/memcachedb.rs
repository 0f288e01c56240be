//! `memcachedb`: Berkeley DB behind memcached's text protocol. Its packages are gone; who has built it has it.
//!
//! Its options: `memcachedb -h`. It knows the protocol's first commands only: no versions, no times to live (it takes
//! them and forgets them), and an `incr` of what is no number counts from 0 and says nothing.

use std::path::Path;

use super::blocking::{Blocking, Connection};
use super::store_stats::{StoreStats, bounded};
use super::{Adapter, Facts, Launch, Means, Place, Role, Server, Session, Store, UNKNOWN};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::memcache::{self, Dialect, Memcache, Stats, VERSION_QUESTION};

pub static MEMCACHEDB: Adapter = Adapter {
    name: NAME,
    about: "Berkeley DB behind memcached's text protocol (2008)",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[],
    // -N is DB_TXN_NOSYNC: a commit's log stays in the process, and is gone when that is killed. Nothing between that
    // and a sync can be set, so that `crash` is paid for as `power` is.
    // <https://docs.oracle.com/database/bdb181/html/api_reference/C/envset_flags.html>
    keeps: |level| match level {
        Durability::None => Ok("-N (DB_TXN_NOSYNC)"),
        Durability::Crash | Durability::Power => Ok("the log synced at each commit (no -N)"),
    },
    stays: |_| true,
    lacks: |_| &[Means::Scan, Means::Versions, Means::Tally],
    open: |launch| Ok(Box::new(Memcachedb { launch: launch.clone() })),
    server: Some(&Server {
        programs: &["memcachedb"],
        port: 21201,
        version_argument: "-h",
        version: version_printed,
        arguments,
        ceiling: |_| Some("text"),
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "https://github.com/stvchu/memcachedb (build it: needs Berkeley DB and libevent; no distribution packages it)",
};

const NAME: &str = "memcachedb";

/// What `stats bdb` is asked for: all that could move a number or break a durability level.
const SETTINGS: &[&str] = &[
    "db_ver",
    "db_type",
    "page_size",
    "cache_size",
    "txn_lg_bsize",
    "txn_nosync",
    "dldetect_val",
    "chkpoint_val",
    "memp_trickle_val",
    "memp_trickle_percent",
];

struct Memcachedb {
    launch: Launch,
}

impl Memcachedb {
    fn connect(&self) -> Result<Blocking<Memcache>, Fault> {
        let login = &self.launch.login;
        if login.user.is_some() || login.password.is_some() || login.database.is_some() {
            return Err(Fault::Unsupported("memcachedb has no logins and no databases".to_string()));
        }
        Blocking::open(NAME, &self.launch, Memcache::speaking(Dialect::Borrowed, NAME))
    }
}

impl Store for Memcachedb {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(self.connect()?))
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        let session = self.connect();
        Some(session.and_then(|session| session.into_line(VERSION_QUESTION, memcache::version)))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let mut session = self.connect()?;
        let connection = session.connection();
        let version = connection.exchange(VERSION_QUESTION, memcache::or_refused(memcache::version))?;
        let mut told = |request| connection.exchange(request, bounded(memcache::or_refused(memcache::stats())));
        let (seen, settings) = (told(b"stats\r\n")?.unwrap_or_default(), told(b"stats bdb\r\n")?.unwrap_or_default());
        check_level(&self.launch, &settings, connection.name())?;
        let named = SETTINGS.iter().filter_map(|&name| Some((name.to_string(), find(&settings, name)?.to_string())));
        Ok(Facts {
            version: version.unwrap_or_else(|| UNKNOWN.to_string()),
            client_library: "memcache text".to_string(),
            increment: "incr; where there is no counter, add and incr".to_string(),
            settings: named.collect(),
            process_id: find(&seen, "pid").and_then(|id| id.parse().ok()),
            ..Facts::default()
        })
    }

    /// Nothing is left to do: where a durability level wants it, the log was synced before the answer left the server.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::of_texts(self.connect()?.connection().exchange(b"stats\r\n", bounded(memcache::stats()))?))
    }

    /// It does not count its records.
    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(None)
    }
}

/// A server that kvfair did not start may not keep the durability level, or not tell whether it does, and ours must
/// have understood us.
fn check_level(launch: &Launch, settings: &Stats, name: &str) -> Result<(), Fault> {
    let level = launch.durability;
    let what = match find(settings, "txn_nosync") {
        Some("0") => return Ok(()),
        _ if level == Durability::None || launch.is_shipped() => return Ok(()),
        Some(found) => {
            format!("{name} has txn_nosync {found} (-N), which does not keep '{level}': start it without")
        }
        None => format!(
            "{name} does not tell txn_nosync: whether it keeps '{level}' is unknown. Let it answer stats bdb, or leave \
             --durability out"
        ),
    };
    Err(Fault::Unsupported(what))
}

fn find<'a>(stats: &'a [(String, String)], name: &str) -> Option<&'a str> {
    stats.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

/// `memcachedb 1.2.0`: the version.
fn version_printed(printed: &str) -> Option<String> {
    printed.strip_prefix("memcachedb ")?.split_whitespace().next().map(str::to_string)
}

/// The command line. What is not named is left at its default on purpose: `-B btree`, `-A 4096` (the page size of most
/// file systems), `-C`, `-T`, `-e`, `-D` (checkpoints, trickling, deadlocks: how it means to be run).
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut option = |name: &str, value: &str| arguments.extend([name.to_string(), value.to_string()]);
    match &launch.place {
        Place::Unix(path) => {
            option("-s", &path.display().to_string()); // Turns TCP off.
            option("-a", "700"); // Only clients of this user.
        }
        Place::Tcp { host, port } => {
            option("-l", host); // The loopback that we were given; the default is every interface.
            option("-p", &port.to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    option("-H", &data.display().to_string()); // The default is /data1/memcachedb.
    if nix::unistd::geteuid().is_root() {
        option("-u", "root"); // It refuses to start as root unless told whom to be.
    }
    if launch.is_shipped() {
        return arguments;
    }
    option("-m", &cache_mb(launch.cache_bytes()).to_string());
    option("-c", &launch.clients.saturating_add(100).max(1024).to_string()); // As many as are asked for; 1024 is the default.
    option("-t", &threads().to_string());
    if launch.durability == Durability::None {
        arguments.push("-N".to_string());
    }
    arguments
}

/// It multiplies the megabytes in 32 bits with a sign.
fn cache_mb(bytes: u64) -> u64 {
    const MOST_MB: u64 = 2047;
    (bytes >> 20).min(MOST_MB)
}

/// Its default is 4; more than there are processors would only be in each other's way.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_does_not_overflow_its_option() {
        assert_eq!(cache_mb(1 << 30), 1024);
        assert_eq!(cache_mb(8 << 30), 2047);
    }

    #[test]
    fn the_version_is_read_from_what_the_program_prints() {
        assert_eq!(version_printed("memcachedb 1.2.1\n-p <num>  TCP").as_deref(), Some("1.2.1"));
        assert_eq!(version_printed("sh: not found"), None);
    }
}
