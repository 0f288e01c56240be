//! `memcached`: a cache in memory. It keeps no durability level but `none`, and what does not fit it drops: `count` and
//! `facts` show it.

use std::path::Path;

use super::blocking::{Blocking, BlockingConnection, Connection};
use super::room::{ServerMemory, Weight};
use super::setting::check_threads;
use super::store_stats::{StoreStats, bounded};
use super::{
    Adapter, Facts, Launch, Means, Place, Price, Role, Server, Session, Setting, SettingValues, Store, UNKNOWN, Watch,
};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::Codec;
use crate::protocol::memcache::{self, Binary, Memcache, Meta, NOOP_QUESTION, Stats, VERSION_QUESTION};

mod room;

pub static MEMCACHED: Adapter = Adapter {
    name: NAME,
    about: "the cache in memory; drops the least recently used when full",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &["memcache"],
    settings: &[PROTOCOL, THREADS],
    keeps: |level| match level {
        Durability::None => Ok("keeps everything in memory"),
        _ => Err("memcached keeps everything in memory"),
    },
    stays: |_| false,
    lacks: |_| &[Means::Scan, Means::Tally],
    open,
    server: Some(&Server {
        programs: &["memcached"],
        port: 11211,
        version_argument: "-V",
        version: version_printed,
        arguments,
        // Asked to stop, it waits for the next second of its clock.
        keeps_nothing: true,
        ceiling: |protocol| matches!(protocol, None | Some("text")).then_some("text"),
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "apt install memcached",
};

const NAME: &str = "memcached";

/// How a key is sent as text.
const ESCAPED: &str = "bytes up to 0x20, 0x7f and % are sent as % and two digits; at most 250 bytes after that";

const PROTOCOL: Setting = Setting {
    name: "protocol",
    about: "what is spoken: the classic text commands, the meta commands, or the binary protocol",
    default: "text",
    values: SettingValues::OneOf(&["text", "meta", "binary"]),
    price: Price::Nothing,
};

/// One thread leaves processors to clients on the same machine; more than the default of four may serve a large one.
const THREADS: Setting = Setting {
    name: "threads",
    about: "threads that answer clients, of a server of ours [default: one a processor, four at most]",
    default: "",
    values: SettingValues::Checked { check: check_threads, worth_trying: &["1", "8"] },
    price: Price::Nothing,
};

/// What `stats` and `stats settings` are asked for: all that could move a number, and what shows lost data.
const STATS: &[&str] = &["evictions", "limit_maxbytes", "pointer_size", "libevent"];
const SETTINGS: &[&str] =
    &["maxbytes", "maxconns", "num_threads", "item_size_max", "evictions", "cas_enabled", "slab_reassign"];

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Memcached { launch: launch.clone() }))
}

struct Memcached {
    launch: Launch,
}

impl Memcached {
    fn connect<C: Codec>(&self, codec: C) -> Result<Blocking<C>, Fault> {
        let login = &self.launch.login;
        if login.user.is_some() || login.password.is_some() {
            return Err(Fault::Unsupported("memcached is spoken to without a login".to_string()));
        }
        if login.database.is_some() {
            return Err(Fault::Unsupported("memcached has no databases".to_string()));
        }
        Blocking::open(NAME, &self.launch, codec)
    }

    /// Statistics are asked for as text whatever the ops speak: a server takes each connection for what it begins with.
    fn ask(&self) -> Result<Blocking<Memcache>, Fault> {
        self.connect(Memcache::new(NAME))
    }
}

impl Store for Memcached {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(match self.launch.setting(&PROTOCOL) {
            "meta" => Box::new(self.connect(Meta::new(NAME))?),
            "binary" => Box::new(self.connect(Binary::new(NAME))?),
            _ => Box::new(self.connect(Memcache::new(NAME))?),
        })
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(match self.launch.setting(&PROTOCOL) {
            "meta" => {
                let session = self.connect(Meta::new(NAME));
                session.and_then(|session| session.into_line(VERSION_QUESTION, memcache::version))
            }
            "binary" => {
                let session = self.connect(Binary::new(NAME));
                session.and_then(|session| session.into_line(NOOP_QUESTION, memcache::noop))
            }
            _ => self.ask().and_then(|session| session.into_line(VERSION_QUESTION, memcache::version)),
        })
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let mut session = self.ask()?;
        let connection = session.connection();
        let version = connection.exchange(VERSION_QUESTION, memcache::or_refused(memcache::version))?;
        let seen = stats(connection, b"stats\r\n")?;
        let settings = stats(connection, b"stats settings\r\n")?;
        let protocol = self.launch.setting(&PROTOCOL);
        let (increment, keys) = match protocol {
            "meta" => ("ma, which makes a missing counter", ESCAPED),
            "binary" => ("Increment, which makes a missing counter", "as they are, at most 250 bytes"),
            _ => ("incr; where there is no counter, add and incr; addition: add and incr at once", ESCAPED),
        };
        let mut facts = Facts {
            version: version.unwrap_or_else(|| UNKNOWN.to_string()),
            client_library: format!("memcache {protocol}"),
            increment: increment.to_string(),
            process_id: find(&seen, "pid").and_then(|id| id.parse().ok()),
            started: started(&seen),
            ..Facts::default()
        };
        for name in SETTINGS {
            // In `settings`, `evictions` is whether it may evict; in `stats`, how many it has evicted.
            let told_as = if *name == "evictions" { "may_evict" } else { name };
            if let Some(value) = find(&settings, name) {
                facts.settings.insert(told_as.to_string(), value.to_string());
            }
        }
        for name in STATS {
            if let Some(value) = find(&seen, name) {
                facts.settings.insert(name.to_string(), value.to_string());
            }
        }
        facts.settings.insert("keys".to_string(), keys.to_string());
        check_settings(&self.launch, &facts)?;
        Ok(facts)
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Records that it still holds: fewer than were set where it has evicted some.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut session = self.ask()?;
        let stats = stats(session.connection(), b"stats\r\n")?;
        Ok(find(&stats, "curr_items").and_then(|count| count.parse().ok()))
    }

    fn watch(&self) -> Result<Option<Watch<'_>>, Fault> {
        let mut session = self.ask()?;
        Ok(Some(Box::new(move || room::evicted(session.connection()))))
    }

    fn room(&self) -> Result<Option<ServerMemory>, Fault> {
        room::room(self.ask()?.connection()).map(Some)
    }

    fn needs(&self, weight: &Weight) -> u64 {
        room::needs(weight)
    }

    /// <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>, "General-purpose statistics".
    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::of_texts(stats(self.ask()?.connection(), b"stats\r\n")?))
    }

    fn expires(&self) -> bool {
        true
    }
}

/// What was asked for by name must be in force, in a server that kvfair did not start too.
fn check_settings(launch: &Launch, facts: &Facts) -> Result<(), Fault> {
    match (launch.settings.get(THREADS.name), facts.settings.get("num_threads")) {
        (Some(wanted), found) if found != Some(wanted) => {
            let found = found.map_or("an unknown number of", String::as_str);
            Err(Fault::Unsupported(format!("{NAME} has {found} threads, not {wanted}")))
        }
        _ => Ok(()),
    }
}

/// None where the server knows no such statistics.
fn stats(connection: &mut BlockingConnection, request: &[u8]) -> Result<Stats, Fault> {
    Ok(connection.exchange(request, bounded(memcache::or_refused(memcache::stats())))?.unwrap_or_default())
}

fn find<'a>(stats: &'a [(String, String)], name: &str) -> Option<&'a str> {
    stats.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

/// The moment of its start, in seconds of the epoch. Its time and its uptime come from one reading of one clock: the
/// difference stays the same. `server_stats` in <https://github.com/memcached/memcached/blob/master/memcached.c>
fn started(stats: &[(String, String)]) -> Option<String> {
    let number = |name| find(stats, name).and_then(|text| text.parse::<u64>().ok());
    Some(number("time")?.checked_sub(number("uptime")?)?.to_string())
}

/// `memcached 1.6.18`: the version.
fn version_printed(printed: &str) -> Option<String> {
    printed.strip_prefix("memcached ")?.split_whitespace().next().map(str::to_string)
}

/// The command line. What is not named is left at its default on purpose: `-I` (items of at most 1 MiB, the limit that
/// its users know; a larger value fails by name), `-f`, `-n`, `-R`, and evictions (what a cache is for; the count
/// shows them). All options: <https://docs.memcached.org/serverguide/configuring/>
fn arguments(launch: &Launch, _data: &Path) -> Vec<String> {
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
    if nix::unistd::geteuid().is_root() {
        option("-u", "root"); // It refuses to start as root unless told whom to be.
    }
    let threads = launch.settings.get(THREADS.name).cloned();
    if launch.is_shipped() {
        threads.iter().for_each(|threads| option("-t", threads));
        return arguments;
    }
    option("-U", "0"); // No UDP, which some older versions open by default.
    option("-m", &memory_mb(launch.data_bytes).to_string());
    option("-c", &launch.clients.saturating_add(100).max(1024).to_string()); // As many as are asked for; 1024 is the default.
    option("-t", &threads.unwrap_or_else(usual_threads));
    arguments
}

/// Memory for items: four times the job's data, since a record that grows leaves its old slab class full, and at the
/// default 64 a job of ours lost a quarter of its records to eviction. It is taken as it is needed, so that too much
/// costs nothing.
fn memory_mb(data_bytes: Option<u64>) -> u64 {
    const LEAST_MB: u64 = 1024;
    const MB: u64 = 1 << 20;
    data_bytes.unwrap_or(0).saturating_mul(4).div_ceil(MB).max(LEAST_MB)
}

/// Its default is 4; its own advice is never more than there are processors, which on a small machine would only be in
/// each other's way. <https://docs.memcached.org/serverguide/configuring/#threading>
fn usual_threads() -> String {
    std::thread::available_parallelism().map_or(1, usize::from).min(4).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_four_times_the_data_and_never_less_than_a_gigabyte() {
        assert_eq!(memory_mb(None), 1024);
        assert_eq!(memory_mb(Some(75_000_000)), 1024);
        assert_eq!(memory_mb(Some(1 << 30)), 4096);
        assert_eq!(memory_mb(Some((1 << 30) + 1)), 4097);
    }

    #[test]
    fn the_version_is_read_from_what_the_program_prints() {
        assert_eq!(version_printed("memcached 1.6.18\n").as_deref(), Some("1.6.18"));
        assert_eq!(version_printed("command not found"), None);
    }
}
