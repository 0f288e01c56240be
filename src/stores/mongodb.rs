//! `mongodb` and `ferretdb`: one protocol, two programs, by MongoDB's own driver. It knows how each durability level is
//! set, and says so when one answers in the other's name.
//!
//! Documentation: <https://www.mongodb.com/docs/manual/>, <https://docs.ferretdb.io/v1.24/>,
//! <https://docs.rs/mongodb>.

mod documents;
mod session;

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::io;
use std::path::Path;
use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, Credential, ServerAddress};
use mongodb::{Client, Collection, Database};
use tokio::runtime::Runtime;

use self::documents::{RECORDS, number, words};
use super::store_stats::StoreStats;
use super::{Adapter, Facts, Launch, Place, Price, Role, Server, Session, Setting, SettingValues, Store, password};
use crate::model::op::{Fault, readable};
use crate::model::trial::{Durability, Transport};

pub static MONGODB: Adapter = Adapter {
    name: "mongodb",
    about: "the document database",
    keeps: |level| match level {
        Durability::None => Ok("w:1, j:false"),
        // Without j:true an answer comes up to 100 ms before the journal leaves the process.
        // <https://www.mongodb.com/docs/manual/core/journaling/>
        Durability::Crash | Durability::Power => Ok("w:1, j:true"),
    },
    settings: &[COMPRESSION],
    open: |launch| open("mongodb", launch),
    server: Some(&Server {
        programs: &["mongod"],
        version: |printed| version_after(printed, "db version v"),
        arguments: mongod,
        ..SERVER
    }),
    get_it: "https://www.mongodb.com/try/download/community (or another server of its protocol: apt has none)",
    ..BOTH
};

pub static FERRETDB: Adapter = Adapter {
    name: "ferretdb",
    about: "MongoDB's protocol on top of SQLite",
    keeps: |level| match level {
        Durability::None | Durability::Crash => Ok("SQLite: WAL, synchronous=OFF"),
        Durability::Power => Ok("SQLite: WAL, synchronous=FULL"),
    },
    open: |launch| open("ferretdb", launch),
    server: Some(&Server {
        programs: &["ferretdb"],
        version: |printed| version_after(printed, "version: v"),
        arguments: ferretdb,
        scheme: Some("mongodb"),
        ..SERVER
    }),
    get_it: "https://github.com/FerretDB/FerretDB/releases (1.24: the SQLite back end; later ones need PostgreSQL)",
    ..BOTH
};

const BOTH: Adapter = Adapter {
    name: "",
    about: "",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[],
    keeps: |_| Err(""),
    // A stop that is no crash writes everything.
    stays: |_| true,
    lacks: |_| &[],
    open: |launch| open("mongodb", launch),
    server: None,
    version: || Err("a server's version is its program's".to_string()),
    get_it: "",
};

/// <https://www.mongodb.com/docs/manual/reference/program/mongod/>
const COMPRESSION: Setting = Setting {
    name: "compression",
    about: "how records are compressed on disk, by a server of ours (wiredTigerCollectionBlockCompressor)",
    default: "snappy",
    values: SettingValues::OneOf(&["snappy", "none", "zlib", "zstd"]),
    price: Price::Pays("disk without, CPU with"),
};
/// What the server calls it where it tells how it was started.
const COMPRESSED: &str = "storage.wiredTiger.collectionConfig.blockCompressor";

/// The driver knows a socket by the end of its name.
const SERVER: Server = Server {
    port: 27017,
    socket: "m.sock",
    names_databases: true,
    // Its own client has none: the name is ours.
    password_variable: Some("MONGODB_PASSWORD"),
    ..Server::PLAIN
};

/// Where our records are if no other database is named, so that a server of somebody else's may hold other things.
const DATABASE: &str = "kvfair";

fn open(name: &'static str, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let options = options(launch)?;
    let client = {
        // The driver starts its tasks on the runtime that it finds itself in.
        let _inside = runtime.enter();
        Client::with_options(options).map_err(|error| fault(name, error))?
    };
    let database = client.database(launch.login.database.as_deref().unwrap_or(DATABASE));
    let records = database.collection(RECORDS);
    // At `none` an answer may come before the journal is on disk; else it must not.
    let write_concern = match launch.durability {
        _ if launch.is_shipped() => rawdoc! {},
        level => rawdoc! { "w": 1, "j": level != Durability::None },
    };
    Ok(Box::new(Mongo { name, launch: launch.clone(), write_concern, records, database, client, runtime }))
}

/// The driver's tasks only move bytes between sockets and the clients' threads.
const WORKERS: usize = 2;

/// What we ask of the driver. What is not named stays as its makers have it.
/// <https://docs.rs/mongodb/latest/mongodb/options/struct.ClientOptions.html>
fn options(launch: &Launch) -> Result<ClientOptions, Fault> {
    let host = match &launch.place {
        Place::Tcp { host, port } => ServerAddress::Tcp { host: host.clone(), port: Some(*port) },
        #[cfg(unix)]
        Place::Unix(path) => ServerAddress::Unix { path: path.clone() },
        other => return Err(Fault::Unsupported(format!("a server at {other}"))),
    };
    let credential = launch.login.user.clone().map(|user| {
        // A user is one of the database that the URL names, else of `admin`.
        // <https://www.mongodb.com/docs/manual/reference/connection-string-options/>, authSource
        let source = launch.login.database.clone();
        Credential::builder().username(user).password(launch.login.password.clone()).source(source).build()
    });
    let mut options = ClientOptions::builder()
        .hosts(vec![host])
        // This server, whatever others it knows.
        .direct_connection(true)
        // No client waits for another one's connection; two are for looking at facts and counts.
        .max_pool_size(launch.clients.saturating_add(2))
        // What fails is told, never tried again in silence.
        .retry_reads(false)
        .retry_writes(false)
        .connect_timeout(launch.patience)
        .server_selection_timeout(launch.patience)
        .app_name("kvfair".to_string())
        .build();
    options.credential = credential;
    Ok(options)
}

struct Mongo {
    name: &'static str,
    launch: Launch,
    write_concern: RawDocumentBuf,
    records: Collection<RawDocumentBuf>,
    database: Database,
    client: Client,
    /// Last, so that it outlives what runs on it.
    runtime: Runtime,
}

impl Mongo {
    /// Waits for an answer as long as our patience lasts: the driver itself would wait for ever.
    fn wait<T>(&self, asked: impl IntoFuture<Output = mongodb::error::Result<T>>) -> Result<T, Fault> {
        let patience = self.launch.patience;
        self.runtime.block_on(async { within(patience, asked.into_future()).await })?.map_err(
            |error| match wants_login(&error) {
                Some(words) => password::of_a_user(self.name, &self.launch.place, &words),
                None => fault(self.name, error),
            },
        )
    }

    /// A command of writes, and what came of it.
    fn write(&self, command: RawDocumentBuf) -> Result<Document, Fault> {
        let mut command = command;
        if !self.write_concern.is_empty() {
            command.append(cstr!("writeConcern"), &self.write_concern);
        }
        let answer = self.wait(self.database.run_raw_command(command))?;
        match answer.get_document("writeConcernError") {
            Ok(error) => Err(Fault::Refused(format!("{}: {}", self.name, words(error)))),
            Err(_) => Ok(answer),
        }
    }

    fn admin(&self, command: Document) -> Result<Document, Fault> {
        self.wait(self.client.database("admin").run_command(command))
    }

    fn no_counter(&self, key: &[u8]) -> Fault {
        Fault::Refused(format!("{}: the record of key '{}' is no counter", self.name, readable(key, 80)))
    }
}

async fn within<T>(patience: Duration, asked: impl Future<Output = T>) -> Result<T, Fault> {
    tokio::time::timeout(patience, asked).await.map_err(|_| {
        Fault::Lost(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", patience.as_secs_f64())))
    })
}

/// What is said where a login is missing or wrong. The code of a command without one is that of too few rights too.
/// <https://www.mongodb.com/docs/manual/reference/error-codes/>
fn wants_login(error: &mongodb::error::Error) -> Option<String> {
    const UNAUTHORIZED: i32 = 13;
    const AUTHENTICATION_FAILED: i32 = 18;
    match error.kind.as_ref() {
        ErrorKind::Authentication { message, .. } => Some(message.clone()),
        ErrorKind::Command(error) if error.code == AUTHENTICATION_FAILED => Some(error.message.clone()),
        ErrorKind::Command(error)
            if error.code == UNAUTHORIZED && error.message.contains("requires authentication") =>
        {
            Some(error.message.clone())
        }
        _ => None,
    }
}

fn fault(name: &str, error: mongodb::error::Error) -> Fault {
    match error.kind.as_ref() {
        ErrorKind::Io(error) => Fault::Lost(io::Error::new(error.kind(), error.to_string())),
        ErrorKind::ServerSelection { message, .. } | ErrorKind::ConnectionPoolCleared { message, .. } => {
            Fault::Lost(io::Error::new(io::ErrorKind::NotConnected, message.clone()))
        }
        ErrorKind::InvalidResponse { message, .. } => Fault::Garbled(format!("{name}: {message}")),
        ErrorKind::Command(error) => Fault::Refused(format!("{name}: {} ({})", error.message, error.code_name)),
        _ => Fault::Refused(format!("{name}: {error}")),
    }
}

impl Drop for Mongo {
    fn drop(&mut self) {
        // Its connections are closed when the runtime is: nothing of it is left to talk to a server that was stopped.
        let client = self.client.clone();
        let _ = self.runtime.block_on(within(Duration::from_secs(1), client.shutdown().immediate(true).into_future()));
    }
}

impl Store for Mongo {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        // The first op must not pay for the connection, nor be the first to hear that there is none.
        let build = self.admin(doc! { "buildInfo": 1 })?;
        let loses_changes = self.launch.clients > 1 && reads_before_it_writes(&build);
        Ok(Box::new(session::Asking::new(self, loses_changes)))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let build = self.admin(doc! { "buildInfo": 1 })?;
        let status = self.admin(doc! { "serverStatus": 1 })?;
        let (product, version) = who(&build);
        let mut settings = settings(&build, &status);
        if let Ok(given) = self.admin(doc! { "getCmdLineOpts": 1 }) {
            flatten("", given.get_document("parsed").unwrap_or(&Document::new()), &mut settings);
        }
        check_journal(self.launch.durability, &settings, self.name)?;
        check_compression(&self.launch, &settings, self.name)?;
        let concern = Document::try_from(&self.write_concern).map_err(Fault::refused)?;
        settings.insert("writeConcern".to_string(), concern.to_string());
        Ok(Facts {
            version,
            product: (product != self.name).then(|| product.to_string()),
            client_library: concat!("mongodb ", env!("KVFAIR_MONGODB")).to_string(),
            increment: "findAndModify with $inc and upsert".to_string(),
            settings,
            process_id: number(&status, "pid").and_then(|id| u32::try_from(id).ok()),
            ..Facts::default()
        })
    }

    /// What was acknowledged meets the durability level: the journal came before the answer.
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.wait(self.records.count_documents(doc! {})).map(Some)
    }

    /// <https://www.mongodb.com/docs/manual/reference/command/serverStatus/>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let mut numbers = Vec::new();
        numbers_in("", &self.admin(doc! { "serverStatus": 1 })?, 0, &mut numbers);
        Ok(numbers.into_iter().collect())
    }

    fn leave(&self) -> Result<(), Fault> {
        self.wait(self.records.drop())
    }
}

/// FerretDB tells so itself: version 1 by a word of its own, later ones by a document.
fn who(build: &Document) -> (&'static str, String) {
    let own = build.get_document("ferretdb").and_then(|own| own.get_str("version"));
    match build.get_str("ferretdbVersion").or(own) {
        Ok(version) => ("ferretdb", version.trim_start_matches('v').to_string()),
        Err(_) => ("mongodb", build.get_str("version").unwrap_or_default().to_string()),
    }
}

/// FerretDB 1 changes a record in two transactions, one that reads it and one that writes it: of two changes at a time
/// one is lost, whatever the command.
/// <https://github.com/FerretDB/FerretDB/blob/v1.24.0/internal/handler/common/update.go>
fn reads_before_it_writes(build: &Document) -> bool {
    matches!(who(build), ("ferretdb", version) if version.starts_with("1."))
}

/// What could move a number, of what the server tells.
fn settings(build: &Document, status: &Document) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut keep = |name: &str, value: Option<&Bson>| {
        settings.extend(value.map(|value| (name.to_string(), shown(value))));
    };
    for name in ["allocator", "maxBsonObjectSize", "debug"] {
        keep(name, build.get(name));
    }
    let within =
        |outer: &str, inner: &str| status.get_document(outer).ok().and_then(|inside| inside.get(inner)).cloned();
    keep("storageEngine", within("storageEngine", "name").as_ref());
    keep("backend", within("ferretdb", "backend").as_ref());
    let tiger = status.get_document("wiredTiger").and_then(|tiger| tiger.get_document("cache"));
    keep("wiredTiger cache bytes", tiger.ok().and_then(|cache| cache.get("maximum bytes configured")));
    settings
}

/// The options that a server was given, as `storage.dbPath`.
fn flatten(prefix: &str, options: &Document, settings: &mut BTreeMap<String, String>) {
    for (name, value) in options {
        let name = format!("{prefix}{name}");
        match value {
            Bson::Document(inner) => flatten(&format!("{name}."), inner, settings),
            value => {
                settings.insert(name, shown(value));
            }
        }
    }
}

/// The numbers in a document and in those within it, as `wiredTiger.log.log sync operations`. A server could send
/// documents in documents without end; its own are less deep.
fn numbers_in(prefix: &str, document: &Document, depth: u32, numbers: &mut Vec<(String, f64)>) {
    const DEPTH: u32 = 8;
    for (name, value) in document {
        let name = format!("{prefix}{name}");
        match value {
            Bson::Document(inner) if depth < DEPTH => numbers_in(&format!("{name}."), inner, depth + 1, numbers),
            Bson::Int32(number) => numbers.push((name, f64::from(*number))),
            Bson::Int64(number) => numbers.push((name, *number as f64)),
            Bson::Double(number) => numbers.push((name, *number)),
            _ => {}
        }
    }
}

fn shown(value: &Bson) -> String {
    readable(value.to_string().trim_matches('"').as_bytes(), 80)
}

/// Old servers can be started without a journal, which keeps nothing.
fn check_journal(level: Durability, settings: &BTreeMap<String, String>, name: &str) -> Result<(), Fault> {
    let off = settings.get("storage.journal.enabled").is_some_and(|enabled| enabled == "false");
    if level == Durability::None || !off {
        return Ok(());
    }
    Err(Fault::Unsupported(format!("{name} was started without its journal, which does not keep '{level}'")))
}

/// What was asked for by name must be in force, in a server that kvfair did not start too.
fn check_compression(launch: &Launch, settings: &BTreeMap<String, String>, name: &str) -> Result<(), Fault> {
    let found = settings.get(COMPRESSED).map_or(COMPRESSION.default, String::as_str);
    match launch.settings.get(COMPRESSION.name) {
        Some(wanted) if wanted != found => {
            Err(Fault::Unsupported(format!("{name} has compression {found}, not {wanted}")))
        }
        _ => Ok(()),
    }
}

/// The version out of what a program printed.
fn version_after(printed: &str, mark: &str) -> Option<String> {
    let (_, rest) = printed.split_once(mark)?;
    rest.split_whitespace().next().map(str::to_string)
}

/// mongod's command line. What is not named is left at its default on purpose and read back by `facts`. All options:
/// <https://www.mongodb.com/docs/manual/reference/program/mongod/>
fn mongod(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = vec!["--dbpath".to_string(), data.display().to_string()];
    match &launch.place {
        Place::Unix(path) => arguments.extend(["--bind_ip".to_string(), path.display().to_string()]),
        Place::Tcp { host, port } => {
            arguments.extend(["--bind_ip", host, "--port", &port.to_string()].map(str::to_string));
        }
        Place::Memory | Place::Path(_) => {}
    }
    // No socket in /tmp besides.
    arguments.push("--nounixsocket".to_string());
    if let Some(compression) = launch.settings.get(COMPRESSION.name) {
        arguments.extend(["--wiredTigerCollectionBlockCompressor".to_string(), compression.clone()]);
    }
    if !launch.is_shipped() {
        // The budget of all stores; the default is half of the memory.
        let gib = launch.cache_bytes() as f64 / (1u64 << 30) as f64;
        arguments.extend(["--wiredTigerCacheSizeGB".to_string(), format!("{gib:.2}")]);
    }
    arguments
}

/// FerretDB's command line. <https://docs.ferretdb.io/v1.24/configuration/flags/>
fn ferretdb(launch: &Launch, data: &Path) -> Vec<String> {
    let option = |name: &str, value: &str| format!("--{name}={value}");
    let (address, socket) = match &launch.place {
        Place::Tcp { host, port } => (format!("{host}:{port}"), String::new()),
        place => (String::new(), place.to_string()),
    };
    let mut url = format!("file:{}/", data.display());
    if !launch.is_shipped() {
        // What is in the write-ahead log is the system's to keep when the process dies; FULL syncs it at each commit.
        // <https://www.sqlite.org/pragma.html#pragma_synchronous>
        let synchronous = if launch.durability == Durability::Power { "full" } else { "off" };
        // Negative: kibibytes, for each of the connections to SQLite, of which there may be as many as clients.
        let kib = launch.cache_bytes() / u64::from(launch.clients.max(1)) / 1024;
        url.push_str(&format!("?_pragma=synchronous({synchronous})&_pragma=cache_size(-{kib})"));
    }
    vec![
        option("handler", "sqlite"),
        option("sqlite-url", &url),
        option("state-dir", &data.display().to_string()),
        option("listen-addr", &address),
        option("listen-unix", &socket),
        // No pages about itself, no word to its makers, no line in its log for each op.
        option("debug-addr", "-"),
        option("telemetry", "disable"),
        option("log-level", "warn"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        let mongod = "db version v7.0.14\nBuild Info: {\n    \"version\": \"7.0.14\"\n";
        let ferretdb = "version: v1.24.0\ncommit: unknown\nbranch: unknown\n";
        assert_eq!(version_after(mongod, "db version v").as_deref(), Some("7.0.14"));
        assert_eq!(version_after(ferretdb, "version: v").as_deref(), Some("1.24.0"));
    }

    #[test]
    fn who_answers_is_told_by_its_own_words() {
        assert_eq!(who(&doc! { "version": "7.0.14" }), ("mongodb", "7.0.14".to_string()));
        let first = doc! { "version": "7.0.42", "ferretdbVersion": "v1.24.0" };
        assert_eq!(who(&first), ("ferretdb", "1.24.0".to_string()));
        assert!(reads_before_it_writes(&first) && !reads_before_it_writes(&doc! { "version": "1.0" }));
        let second = doc! { "version": "7.0.77", "ferretdb": { "version": "v2.5.0" } };
        assert_eq!(who(&second), ("ferretdb", "2.5.0".to_string()));
        assert!(!reads_before_it_writes(&second));
    }

    #[test]
    fn counters_are_the_numbers_of_a_document() {
        let mut deep = doc! { "n": 1 };
        (0..100).for_each(|_| deep = doc! { "d": deep.clone() });
        let status = doc! { "pid": 7_i64, "host": "h", "ok": 1.0, "log": { "syncs": 3, "on": true }, "deep": deep };
        let mut numbers = Vec::new();
        numbers_in("", &status, 0, &mut numbers);
        let expected = [("pid", 7.0), ("ok", 1.0), ("log.syncs", 3.0)];
        assert_eq!(numbers, expected.map(|(name, number)| (name.to_string(), number)));
    }

    #[test]
    fn a_server_without_its_journal_keeps_nothing() {
        let mut settings = BTreeMap::new();
        flatten("", &doc! { "storage": { "journal": { "enabled": false }, "dbPath": "/x" } }, &mut settings);
        assert_eq!(settings["storage.dbPath"], "/x");
        assert!(check_journal(Durability::None, &settings, "mongodb").is_ok());
        let refused = check_journal(Durability::Crash, &settings, "mongodb").unwrap_err().to_string();
        assert!(refused.contains("mongodb was started without its journal"), "{refused}");
    }
}
