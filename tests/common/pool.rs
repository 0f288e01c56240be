//! Servers that tests share: each is started once, for the first test that asks for it, and ends with the tests'
//! process. They are for tests that only ask something, or that write into a database of their own. Tests of a server's
//! end and of its counters, and those that change its settings, start servers of their own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use kvfair::model::trial::{Durability, Transport};
use kvfair::protocol::Credentials;
use kvfair::protocol::mysql::{self, Mysql, Wording};
use kvfair::protocol::postgres::{self, Postgres};
use kvfair::stores::blocking::Blocking;
use kvfair::stores::{self, Adapter, Launch, Place, Store};

use super::{Running, launch_at, start_at, start_in};

type Started = OnceLock<Result<Running, String>>;

/// The server of this store, transport and durability level that all tests share.
pub fn shared(store: &str, transport: Transport, durability: Durability) -> &'static Running {
    static SERVERS: Mutex<BTreeMap<String, &'static Started>> = Mutex::new(BTreeMap::new());
    let name = format!("{store} over {transport} at {durability}");
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = *servers.entry(name.clone()).or_insert_with(|| Box::leak(Box::default()));
    // Others may start meanwhile.
    drop(servers);
    let started = server.get_or_init(|| start_for_all(store, transport, durability));
    started.as_ref().unwrap_or_else(|why| panic!("{name} does not start: {why}"))
}

/// The kernel ends a server with the thread that started it: that thread lives as long as the process.
fn start_for_all(store: &str, transport: Transport, durability: Durability) -> Result<Running, String> {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let (started, server) = mpsc::channel();
    let start = move || {
        let directory = tempfile::tempdir_in(root()).expect("a directory for the server");
        let launch = launch_at(Place::Memory, durability);
        let _ = started.send(start_in(adapter, transport, &launch, directory, false));
        loop {
            std::thread::park();
        }
    };
    std::thread::spawn(start);
    server.recv().expect("the thread that starts it does not panic")
}

/// Where the shared servers have their files. Nothing of this process runs at its end: a shell waits for that and
/// removes them.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = tempfile::Builder::new().prefix("pool-").tempdir().expect("a directory for servers").keep();
        // Servers that refuse to be root must get through.
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o711)).expect("a directory for servers");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "cat; sleep 1; rm -rf \"$0\""]).arg(&root).stdin(Stdio::piped()).stdout(Stdio::null());
        // Its standard input is closed by the end of this process.
        std::mem::forget(shell.spawn().expect("every system has a shell"));
        root
    })
}

/// A store in which nobody else has records.
pub struct Apart {
    pub adapter: &'static Adapter,
    pub launch: Launch,
    /// The server, where it has no databases that would be apart.
    pub own: Option<Running>,
}

impl Apart {
    pub fn open(&self) -> Box<dyn Store> {
        (self.adapter.open)(&self.launch).expect("the store opens")
    }
}

/// A database of its own on the shared server, or a server of its own where servers have no databases.
pub fn apart(store: &str, transport: Transport, durability: Durability) -> Apart {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    if store == "memcached" {
        let own = start_at(store, transport, durability);
        return Apart { adapter: own.adapter, launch: own.launch.clone(), own: Some(own) };
    }
    let server = shared(store, transport, durability);
    let mut launch = server.launch.clone();
    launch.login.database = Some(match store {
        "redis" | "valkey" => next_number(&server.launch.place),
        _ => format!("test{number}"),
    });
    match store {
        "postgres" => make_for_postgres(&launch),
        "mariadb" => make_for_mariadb(&launch),
        _ => {}
    }
    Apart { adapter: server.adapter, launch, own: None }
}

/// Of the 16 databases that Redis and Valkey have.
fn next_number(server: &Place) -> String {
    static TAKEN: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let number = taken.entry(server.to_string()).or_insert(0);
    *number += 1;
    assert!(*number < 16, "more tests than databases at {server}");
    number.to_string()
}

fn statement(launch: &Launch) -> String {
    format!("CREATE DATABASE {}", launch.login.database.as_deref().expect("a database"))
}

fn login(user: &str, database: &str) -> Credentials {
    let [user, database, nonce] = [user, database, "once"].map(str::to_string);
    Credentials { user, password: None, database, nonce }
}

fn make_for_postgres(launch: &Launch) {
    ask_postgres(launch, &statement(launch));
}

/// What a PostgreSQL of ours answers to its owner.
pub fn ask_postgres(launch: &Launch, sql: &str) -> Vec<postgres::TextRow> {
    let greeting = postgres::Greeting::new(login("postgres", "postgres"), false, String::new());
    let codec = Postgres::new("postgres", |_| String::new(), greeting);
    let mut speaker = Blocking::open("postgres", launch, codec).expect("a connection");
    let answer = speaker.connection().exchange(&postgres::query(sql), postgres::outcome);
    answer.expect("an answer").expect("no error")
}

fn make_for_mariadb(launch: &Launch) {
    ask_mariadb(launch, &statement(launch));
}

/// What a MariaDB of ours answers to its owner.
pub fn ask_mariadb(launch: &Launch, sql: &str) -> Vec<mysql::TextRow> {
    let greeting = mysql::Greeting::new(login("root", "kvfair"), false, "mariadb");
    let wording = Wording { statement: |_, _| String::new(), tally: String::new(), tally_end: String::new() };
    let mut speaker =
        Blocking::open("mariadb", launch, Mysql::new("mariadb", greeting, wording)).expect("a connection");
    let answer = speaker.connection().exchange(&mysql::query(sql), mysql::outcome);
    answer.expect("an answer").expect("no error")
}
