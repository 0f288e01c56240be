//! `tokyotyrant`: Tokyo Cabinet behind a server, by its own protocol or by memcached's. It knows its databases, and
//! reads back which one is in force.
//!
//! Documentation: <https://dbmx.net/tokyotyrant/spex.html>; tuning:
//! <https://dbmx.net/tokyocabinet/spex-en.html#tcadbapi>.

use std::path::Path;

use super::blocking::{Blocking, Connection};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Means, Place, Price, Role, Server, Session, Setting, SettingValues, Store};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::Codec;
use crate::protocol::memcache::{self, Dialect, Memcache, VERSION_QUESTION};
use crate::protocol::tyrant::{self, STAT_QUESTION, Tyrant, TyrantStats};

pub static TOKYOTYRANT: Adapter = Adapter {
    name: NAME,
    about: "Tokyo Cabinet behind a server (2007)",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[DATABASE, PROTOCOL],
    keeps: |level| match level {
        Durability::None => Ok("* (hash in memory)"),
        // Its protocol has no transactions, and a sync after a change comes too late for what it overwrites.
        Durability::Crash | Durability::Power => {
            Err("tokyotyrant changes its file in place: a kill tears records that were acknowledged long before \
                 (docs/durability.md)")
        }
    },
    stays: |_| false,
    lacks: |_| &[Means::Scan, Means::Versions, Means::Tally],
    open,
    server: Some(&Server {
        programs: &["ttserver"],
        port: 1978,
        version: version_printed,
        arguments,
        ceiling: |protocol| (protocol == Some("memcache")).then_some("text"),
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "https://dbmx.net/tokyotyrant/ (build it: needs Tokyo Cabinet; no distribution packages it)",
};

const NAME: &str = "tokyotyrant";

const DATABASE: Setting = Setting {
    name: "db",
    about: "what it keeps records in: memory (*), hash (a .tch file) or tree (a .tcb file)",
    default: "memory",
    values: SettingValues::OneOf(&["memory", "hash", "tree"]),
    price: Price::Durability,
};

const PROTOCOL: Setting = Setting {
    name: "protocol",
    about: "what is spoken: its own binary protocol, or memcached's text",
    default: "binary",
    values: SettingValues::OneOf(&["binary", "memcache"]),
    price: Price::Nothing,
};

/// What `stat` tells that could move a number or break a durability level.
const STATS: &[&str] = &["type", "path", "size", "bigend", "libver", "protver", "mhost"];

/// Databases that keep no plain values under plain keys: what is put there does not come back, and no put says so.
const NO_VALUES: &[(&str, &str)] = &[
    ("table", "is a table database (.tct), whose records are columns with names"),
    ("fixed-length", "is a fixed-length database (.tcf), whose keys are numbers"),
];

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(TokyoTyrant { launch: launch.clone() }))
}

struct TokyoTyrant {
    launch: Launch,
}

impl TokyoTyrant {
    fn connect<C: Codec>(&self, codec: C) -> Result<Blocking<C>, Fault> {
        let login = &self.launch.login;
        if login.user.is_some() || login.password.is_some() || login.database.is_some() {
            return Err(Fault::Unsupported("tokyotyrant has no logins, and one database a server".to_string()));
        }
        Blocking::open(NAME, &self.launch, codec)
    }

    fn own(&self) -> Tyrant {
        Tyrant::new(NAME)
    }

    /// All that the server says of itself; the port answers every protocol.
    fn stat(&self) -> Result<Told, Fault> {
        let mut session = self.connect(self.own())?;
        let connection = session.connection();
        let stats = connection.exchange(STAT_QUESTION, tyrant::stats)?;
        Ok(Told { stats, name: connection.name().to_string() })
    }
}

/// What `stat` told, and who.
struct Told {
    stats: TyrantStats,
    name: String,
}

impl Told {
    fn find(&self, name: &str) -> Option<&str> {
        self.stats.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A server that somebody else started may have another database, and ours must have understood us.
    fn check(&self, launch: &Launch) -> Result<(), Fault> {
        let (name, kind) = (&self.name, self.find("type").unwrap_or("unknown"));
        if self.find("bigend") == Some("1") {
            let what = format!("{name} runs on a big-endian machine, whose counters are not read");
            return Err(Fault::Unsupported(what));
        }
        if let Some((_, what)) = NO_VALUES.iter().find(|(no_values, _)| *no_values == kind) {
            return Err(Fault::Unsupported(format!("{name} {what}: start ttserver with '*', a .tch or a .tcb file")));
        }
        // Where nobody asked for a database any that keeps values will do.
        let good: &[&str] = match launch.settings.get(DATABASE.name).map(String::as_str) {
            None => return Ok(()),
            Some("memory") => &["on-memory hash", "on-memory tree"],
            Some("hash") => &["hash"],
            Some(_) => &["B+ tree"],
        };
        if good.contains(&kind) {
            return Ok(());
        }
        let what = format!("{name} has its records in: {kind}; asked for was: {}", good.join(" or "));
        Err(Fault::Unsupported(what))
    }
}

impl Store for TokyoTyrant {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(match self.launch.setting(&PROTOCOL) {
            "memcache" => Box::new(self.connect(Memcache::speaking(Dialect::Borrowed, NAME))?),
            _ => Box::new(self.connect(self.own())?),
        })
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(match self.launch.setting(&PROTOCOL) {
            "memcache" => {
                let session = self.connect(Memcache::speaking(Dialect::Borrowed, NAME));
                session.and_then(|session| session.into_line(VERSION_QUESTION, memcache::version))
            }
            _ => self.connect(self.own()).and_then(|session| session.into_line(STAT_QUESTION, tyrant::stats)),
        })
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let told = self.stat()?;
        told.check(&self.launch)?;
        let version = told.find("version").unwrap_or("unknown").to_string();
        let named = STATS.iter().filter_map(|&name| Some((name.to_string(), told.find(name)?.to_string())));
        let (protocol, increment) = match self.launch.setting(&PROTOCOL) {
            "memcache" => ("memcache text", "incr; where there is no counter, add and incr"),
            _ => ("tyrant", "addint (32 bits)"),
        };
        Ok(Facts {
            version,
            // A stand-in for tests says so, and must never be taken for the server that users know.
            product: told.find("product").map(str::to_string),
            client_library: protocol.to_string(),
            increment: increment.to_string(),
            settings: named.collect(),
            process_id: told.find("pid").and_then(|id| id.parse().ok()),
            ..Facts::default()
        })
    }

    /// Nothing is left to do: no durability level is kept that would ask for it.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::of_texts(self.stat()?.stats))
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        let told = self.stat()?;
        // Who asks this first must not hear of records in a database that is of no use here.
        told.check(&self.launch)?;
        Ok(told.find("rnum").and_then(|count| count.parse().ok()))
    }
}

/// `Tokyo Tyrant version 1.1.41 (323:0.91) for Linux`: the version.
fn version_printed(printed: &str) -> Option<String> {
    printed.split_once("version ")?.1.split_whitespace().next().map(str::to_string)
}

/// The command line. What is not named is left at its default on purpose: no `-ulog` (a log for replicas), no `-ext`,
/// no `-tout`, which would close a silent connection.
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut option = |name: &str, value: &str| arguments.extend([name.to_string(), value.to_string()]);
    match &launch.place {
        Place::Unix(path) => {
            option("-host", &path.display().to_string());
            option("-port", "0"); // The host is a path then.
        }
        Place::Tcp { host, port } => {
            // Some builds listen everywhere all the same: who looks at the listeners refuses those.
            option("-host", host);
            option("-port", &port.to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    if !launch.is_shipped() {
        // A thread serves one request at a time; its default is 8.
        option("-thnum", &launch.clients.clamp(8, 256).to_string());
    }
    arguments.push(named(launch, data));
    arguments
}

/// The database with its tuning: buckets for twice the records that so much data may be (it asks for one half to four
/// times), and the memory that all stores may use for caches as the file's map or as the tree's leaves.
fn named(launch: &Launch, data: &Path) -> String {
    /// What is taken for the least record, key and value, in bytes.
    const RECORD_BYTES: u64 = 32;
    /// A leaf is split when it has more. <https://dbmx.net/tokyocabinet/spex-en.html#tcbdbapi>
    const LEAF_BYTES: u64 = 16 << 10;
    /// Above it a file needs its large format (`l`), with some room for what it wastes.
    const LARGE: u64 = 1 << 30;
    let file = |extension: &str| data.join(format!("kvfair.{extension}")).display().to_string();
    let (memory, bytes) = (launch.cache_bytes(), launch.data_bytes.unwrap_or(0));
    let buckets = (bytes / RECORD_BYTES * 2).max(1_000_003);
    let large = if bytes.saturating_mul(2) > LARGE { "#opts=l" } else { "" };
    let leaves = memory / LEAF_BYTES;
    match (launch.setting(&DATABASE), launch.is_shipped()) {
        ("memory", true) => "*".to_string(),
        ("memory", false) => format!("*#bnum={buckets}"),
        ("hash", true) => file("tch"),
        ("hash", false) => format!("{}#bnum={buckets}#xmsiz={memory}{large}", file("tch")),
        (_, true) => file("tcb"),
        (_, false) => {
            let nodes = leaves / 64;
            format!("{}#bnum={}#lcnum={leaves}#ncnum={nodes}#xmsiz={memory}{large}", file("tcb"), leaves * 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_program_prints() {
        let printed = "Tokyo Tyrant version 1.1.41 (323:0.91) for Linux\nCopyright (C) 2006-2010 FAL Labs\n";
        assert_eq!(version_printed(printed).as_deref(), Some("1.1.41"));
        assert_eq!(version_printed("ttserver: not found"), None);
    }
}
