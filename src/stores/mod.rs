//! Stores: one file each, and what the rest of the program knows of them. Adding one touches its own file and one line
//! of `ALL`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::blocking::Connection;
pub use self::launch::{Launch, Login, Place};
pub use self::means::Means;
use self::replication::{Failover, LogPosition};
use self::room::{ServerMemory, Weight};
pub use self::setting::{Price, Setting, SettingValues};
use self::store_stats::StoreStats;
use crate::model::op::{Fault, KeyList, Op, Reply};
use crate::model::trial::{Durability, Transport};

pub mod array;
pub mod batch;
#[cfg(feature = "libraries")]
mod berkeleydb;
mod bisect;
pub mod blocking;
#[cfg(feature = "libraries")]
mod bytemap;
pub mod cached;
#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(any(
    feature = "cassandra",
    feature = "libraries",
    feature = "fjall",
    feature = "lmdb",
    feature = "mongodb",
    feature = "redb",
    feature = "sqlite"
))]
mod cell;
mod deadline;
mod dragonfly;
mod faulty;
pub mod features;
#[cfg(feature = "fjall")]
mod fjall;
mod fst;
#[cfg(feature = "libraries")]
mod kyotocabinet;
mod launch;
#[cfg(feature = "libraries")]
mod leveldb;
#[cfg(feature = "libraries")]
mod library;
#[cfg(feature = "lmdb")]
mod lmdb;
mod means;
mod memcached;
mod memcachedb;
#[cfg(feature = "mongodb")]
mod mongodb;
mod mysql;
mod null;
pub mod password;
mod postgres;
mod ram;
mod read_only;
#[cfg(feature = "redb")]
mod redb;
mod redis;
pub mod replication;
mod resp_server;
pub mod room;
mod rows;
mod setting;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod store_stats;
#[cfg(feature = "libraries")]
mod tkrzw;
mod tokyocabinet;
mod tokyotyrant;
#[cfg(any(feature = "lmdb", feature = "redb", feature = "fjall"))]
mod transactional;
#[cfg(any(feature = "cassandra", feature = "mongodb"))]
mod version_seen;

/// Every store that this binary can speak to, controls first.
pub const ALL: &[&Adapter] = &[
    &null::NULL,
    &ram::RAM,
    &ram::dict::DICT,
    &bisect::BISECT,
    &fst::FST,
    &batch::DUCKDB,
    &batch::POLARS,
    &batch::RAY_DATA,
    &batch::SORT,
    #[cfg(feature = "lmdb")]
    &lmdb::LMDB,
    #[cfg(feature = "sqlite")]
    &sqlite::SQLITE,
    #[cfg(feature = "redb")]
    &redb::REDB,
    #[cfg(feature = "fjall")]
    &fjall::FJALL,
    #[cfg(feature = "libraries")]
    &berkeleydb::BERKELEYDB,
    #[cfg(feature = "libraries")]
    &leveldb::LEVELDB,
    #[cfg(feature = "libraries")]
    &leveldb::ROCKSDB,
    #[cfg(feature = "libraries")]
    &tokyocabinet::TOKYOCABINET,
    #[cfg(feature = "libraries")]
    &kyotocabinet::KYOTOCABINET,
    #[cfg(feature = "libraries")]
    &tkrzw::TKRZW,
    &array::ARRAY,
    &redis::REDIS,
    &redis::VALKEY,
    &redis::REDIS_CLUSTER,
    &dragonfly::DRAGONFLY,
    &memcached::MEMCACHED,
    &mysql::MYSQL,
    &mysql::MARIADB,
    &postgres::POSTGRES,
    #[cfg(feature = "mongodb")]
    &mongodb::MONGODB,
    #[cfg(feature = "mongodb")]
    &mongodb::FERRETDB,
    #[cfg(feature = "cassandra")]
    &cassandra::CASSANDRA,
    &memcachedb::MEMCACHEDB,
    &tokyotyrant::TOKYOTYRANT,
    &faulty::FAULTY,
];

/// An open store; every client talks through a session of its own.
pub trait Store: Send + Sync {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault>;
    /// A connection of its own whose greeting is done, for who keeps many of them at work at once; nothing where there
    /// are sessions only: an engine in this process, a client library.
    fn connection(&self) -> Option<Result<Connection, Fault>> {
        None
    }
    /// Version and the settings really in force, asked of the store itself.
    fn facts(&self) -> Result<Facts, Fault>;
    /// Returns when all that was acknowledged meets the asked durability level.
    fn final_flush(&self) -> Result<(), Fault>;
    /// Where it is in the log of writes that its replicas follow; nothing where it can have no replicas.
    fn log_position(&self) -> Result<Option<LogPosition>, Fault> {
        Ok(None)
    }
    /// How it takes the place of its primary; nothing where it can have no replicas.
    fn failover(&self) -> Option<&dyn Failover> {
        None
    }
    /// How many records it holds, where it can say.
    fn count(&self) -> Result<Option<u64>, Fault>;
    /// Its own counters as they are now, by its own names: why it is slow. None where it keeps none. Asked only outside
    /// of what is measured, and must change nothing that is: no scan, no sync, no cache warmed.
    fn stats(&self) -> Result<StoreStats, Fault> {
        Ok(StoreStats::default())
    }
    /// How many records it has dropped to make room since it was started, where it can say: what of its own counters
    /// bears on whether answers are right.
    fn evicted(&self) -> Result<Option<u64>, Fault> {
        Ok(self.watch()?.map(|mut ask| ask()).transpose()?.flatten())
    }
    /// Asks that over one connection of its own as often as it is called; nothing where the store drops no records.
    fn watch(&self) -> Result<Option<Watch<'_>>, Fault> {
        Ok(None)
    }
    /// At most so many keys of plain values that it holds, drawn by its own means, for a client that writes nothing;
    /// none where it cannot list its keys.
    fn existing(&self, _most: usize) -> Result<Option<KeyList>, Fault> {
        Ok(None)
    }
    /// Has sessions and lines that are opened afterwards leave the times of last use as they are, where the store knows
    /// how.
    fn leave_no_trace(&self) -> Result<(), Fault> {
        Ok(())
    }
    /// Its memory, of which others' records may need what is left; nothing where none are dropped for want of it, and
    /// no writes refused.
    fn room(&self) -> Result<Option<ServerMemory>, Fault> {
        Ok(None)
    }
    /// Bytes of that memory that so much data takes, at most.
    fn needs(&self, weight: &Weight) -> u64 {
        weight.bytes()
    }
    /// Whether a set with a time to live is one of its ops.
    fn expires(&self) -> bool {
        false
    }
    /// What we ourselves have counted around it since it was opened, by our names: a cache's hits.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// Moves this key, with all keys that stay together with it, from one server of the store to another one while
    /// clients use them. Returns their number. None for a single server, and for servers that kvfair did not start.
    fn relocate(&self, _key: &[u8]) -> Option<Result<u64, Fault>> {
        None
    }
    /// Takes away what holds the records (tables), where that was made for them in a store by URL. Asked when
    /// the records themselves are gone and no session is open any more.
    fn leave(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// How many records a store has dropped to make room since it was started, where it can say.
pub type Watch<'s> = Box<dyn FnMut() -> Result<Option<u64>, Fault> + 's>;

/// One client's way to a store: asks one thing at a time.
///
/// No op has a quiet fallback: an adapter does it the store's best way, or says [`Fault::Unsupported`].
pub trait Session {
    /// The op is lent, for the hot loop's sake: to copy what was just written has the processor wait for all that came
    /// before, the store's memory too, so that no two ops overlap.
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault>;
    /// A key that will be asked soon: the time to have its place in memory fetched. A store whose answers do not wait
    /// for memory has no use for it.
    fn expect(&self, _key: &[u8]) {}
    /// Commits what is open. Called at the end of a unit, of a phase and of a session; does nothing where each op
    /// commits itself.
    fn flush(&mut self) -> Result<(), Fault>;
    /// Commands that the store has seen so far, where one op may take several; `None` where each op is one.
    fn commands(&self) -> Option<u64> {
        None
    }
}

/// What stands where a server does not tell a version.
pub const UNKNOWN: &str = "unknown";

/// What a store says it is: its counters are `Store::stats`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Facts {
    pub version: String,
    /// What the server says that it is, where that is another product than was asked for (FerretDB at MongoDB's door):
    /// its rows are labelled with it.
    pub product: Option<String>,
    /// What speaks to it: our own codec (`resp`) or a library and its version (`heed 0.23.1`).
    pub client_library: String,
    /// Whether counters are added to by one op of the store (`INCRBY`), or how else: "get + set in a transaction".
    pub increment: String,
    /// Settings in force, by the store's own names.
    pub settings: BTreeMap<String, String>,
    /// The server's process as it says itself, where there is one.
    pub process_id: Option<u32>,
    /// Of a store of several servers: where each is, and its process as it says itself.
    #[serde(default)]
    pub servers: Vec<(Place, Option<u32>)>,
    /// What a server says otherwise once it was started again, whatever its process is called: the id of its run, the
    /// moment of its start.
    pub started: Option<String>,
}

/// All that the rest of the program knows of a store, in one value.
pub struct Adapter {
    pub name: &'static str,
    pub about: &'static str,
    pub role: Role,
    pub transports: &'static [Transport],
    /// Other words for it, in front of URLs too; `redis` has [`SOCKET`].
    pub schemes: &'static [&'static str],
    /// What a target may set, as `TARGET?name=value`.
    pub settings: &'static [Setting],
    /// How it keeps a durability level, in a few words for people ("appendfsync always"), or why it cannot.
    pub keeps: fn(Durability) -> Result<&'static str, &'static str>,
    /// Whether the data of a durability level is still there after a stop that is no crash, so that it can be queried
    /// later.
    pub stays: fn(Durability) -> bool,
    /// What it has no means for, with these settings, of what some jobs and ways need.
    pub lacks: fn(&BTreeMap<String, String>) -> &'static [Means],
    pub open: fn(&Launch) -> Result<Box<dyn Store>, Fault>,
    pub server: Option<&'static Server>,
    /// The version of an embedded store's library, or why it cannot be used here. A server's is asked of its program.
    pub version: fn() -> Result<String, String>,
    /// The command that gets what is missing.
    pub get_it: &'static str,
}

impl Adapter {
    /// The scheme by which client libraries know its URLs.
    pub fn scheme(&self) -> &'static str {
        self.server.and_then(|server| server.scheme).unwrap_or(self.name)
    }

    /// The same for its Unix socket.
    pub fn scheme_of_sockets(&self) -> String {
        let own = self.server.and_then(|server| server.socket_scheme);
        own.map_or_else(|| format!("{}+unix", self.scheme()), str::to_string)
    }

    /// Whether kvfair starts no server of it, and only reaches one.
    pub fn is_only_by_url(&self) -> bool {
        self.server.is_some_and(|server| server.programs.is_empty())
    }

    /// The number of servers that are one store with these settings. None for a single server, 0 where only the servers
    /// know it.
    pub fn nodes(&self, settings: &BTreeMap<String, String>) -> Option<u32> {
        self.server.and_then(|server| server.cluster).and_then(|cluster| (cluster.nodes)(settings))
    }

    /// Whether its databases have names, not numbers.
    pub fn names_databases(&self) -> bool {
        self.server.is_some_and(|server| server.names_databases)
    }
}

/// What a store is in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Store,
    /// Shows what the job costs without a store around it; never ranked.
    Baseline,
    /// A baseline that is filled once and then only read: for the job that reads so.
    ReadOnly,
    /// A program that counts everything at once: what counting in a store costs over that. Ranked with none.
    Batch,
    /// A control that holds nothing, so that its answers cannot be checked: only its count of ops is.
    Null,
    /// A control that is no store at all but shows how fast the way to one is; measured beside those whose way it
    /// shares, not by itself.
    Ceiling,
    /// Lies, drops, stalls and dies on purpose, to prove that we notice; never offered.
    Faulty,
}

impl Role {
    /// Whether it is offered to whoever names no store.
    pub fn is_offered(self) -> bool {
        !matches!(self, Role::ReadOnly | Role::Batch | Role::Ceiling | Role::Faulty)
    }

    /// Whether it stands apart from what is compared.
    pub fn is_baseline(self) -> bool {
        matches!(self, Role::Baseline | Role::ReadOnly | Role::Batch | Role::Null | Role::Ceiling)
    }
}

/// A server's recipe, as data. The store room only says what to run; the lab runs it.
pub struct Server {
    /// It is this very program.
    pub own: bool,
    /// Names under which it may be on PATH, the best one first.
    pub programs: &'static [&'static str],
    /// Where else it may be: `*` stands for one directory (the highest version wins), `$NAME` for a variable of the
    /// environment.
    pub directories: &'static [&'static str],
    /// Programs of other stores: a program that is a link to one of these is not this server (`mysqld` is MariaDB's
    /// where that took its place).
    pub not: &'static [&'static str],
    /// Where such a server usually listens.
    pub port: u16,
    /// The name of its Unix socket, where it insists on one.
    pub socket: &'static str,
    /// What it needs before it can be started.
    pub prepare: fn(launch: &Launch, data: &Path) -> Vec<Step>,
    /// The argument that makes it print its version and leave.
    pub version_argument: &'static str,
    /// The version out of what it printed.
    pub version: fn(&str) -> Option<String>,
    /// Its arguments, one thing each, for a start in the foreground; `data` is a directory that exists.
    pub arguments: fn(launch: &Launch, data: &Path) -> Vec<String>,
    /// The scheme by which client libraries know its URLs, where that is not its name: that of the store whose protocol
    /// it speaks.
    pub scheme: Option<&'static str>,
    /// The scheme of its Unix socket for them; `SCHEME+unix` where there is none.
    pub socket_scheme: Option<&'static str>,
    /// Its databases have names, not numbers.
    pub names_databases: bool,
    /// The protocol of the baseline `array` that shows the ceiling of this server with its `?protocol=`; nothing where
    /// `array` speaks none that it speaks.
    pub ceiling: fn(protocol: Option<&str>) -> Option<&'static str>,
    /// The variable in which its own client looks for a password.
    pub password_variable: Option<&'static str>,
    /// Over TCP it is started with the password of `launch.login`, where there is one: nobody else on this machine is
    /// let in.
    pub takes_password: bool,
    /// What it reads from its standard input: secrets that no list of processes shows.
    pub input: fn(launch: &Launch) -> Option<String>,
    /// What it must be told, over a way of its own, before it lets anybody in by that password. Asked until it works.
    pub admit: fn(launch: &Launch, data: &Path) -> Result<(), Fault>,
    /// Variables of its environment.
    pub environment: fn(launch: &Launch, data: &Path) -> Vec<(String, String)>,
    /// Who it runs as where we are root and it refuses to be.
    pub instead_of_root: Option<&'static str>,
    /// Whether it has other listeners that cannot be turned off (of a cluster, of management). On the loopback they are
    /// let pass.
    pub listens_elsewhere: bool,
    /// It has nothing to write when it stops, so that it may as well be killed.
    pub keeps_nothing: bool,
    /// Over which transports another server of this store can follow it (`Launch::follows`); nothing where none can.
    pub replicates_over: &'static [Transport],
    /// How several of them become one store, where they do.
    pub cluster: Option<&'static ClusterRecipe>,
}

/// How several servers become one store.
pub struct ClusterRecipe {
    /// Their number with these settings. None for a single server, 0 where only the servers know it.
    pub nodes: fn(&BTreeMap<String, String>) -> Option<u32>,
    /// A server's port plus this is the port over which it speaks with the others.
    pub bus_offset: u16,
    /// Makes one store of the servers of a launch, none of which knows another one yet.
    pub join: fn(&Launch) -> Result<(), Fault>,
}

impl Server {
    /// A server that needs nothing of what few need.
    pub const PLAIN: Server = Server {
        own: false,
        programs: &[],
        directories: &[],
        not: &[],
        port: 0,
        socket: "s",
        prepare: |_, _| Vec::new(),
        version_argument: "--version",
        version: |_| None,
        arguments: |_, _| Vec::new(),
        scheme: None,
        socket_scheme: None,
        names_databases: false,
        ceiling: |_| None,
        password_variable: None,
        takes_password: false,
        input: |_| None,
        admit: |_, _| Ok(()),
        environment: |_, _| Vec::new(),
        instead_of_root: None,
        listens_elsewhere: false,
        keeps_nothing: false,
        replicates_over: &[],
        cluster: None,
    };
}

/// One thing to be done before a server can be started.
pub enum Step {
    /// A file with these words, written at every start: it may name the address, and only its owner may read it.
    Write { path: PathBuf, text: String },
    /// A program that stands beside the server's own or on PATH. Run only where the data directory is still empty.
    Run {
        program: &'static str,
        arguments: Vec<String>,
        /// It has synced what it made, as no copy of that would be.
        is_synced: bool,
    },
}

/// The scheme of a URL that is the path of a Unix socket.
pub const SOCKET: &str = "unix";

/// The variables in which the stores' own clients look for passwords.
pub fn password_variables() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter_map(|adapter| adapter.server?.password_variable)
}

/// The store of that name.
pub fn find(name: &str) -> Option<&'static Adapter> {
    ALL.iter().copied().find(|adapter| adapter.name == name)
}
