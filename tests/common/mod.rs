//! Real servers for tests, started by the adapters' own recipes in a directory of their own, and gone when the test
//! ends.
#![allow(dead_code)] // Each test binary uses its own part of this.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kvfair::stores::{self, Adapter, Facts, Launch, Login, Place, Session, Store};
use kvfair::words::trial::{Durability, Transport};

pub mod contract;

/// How long a server may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(20);
/// A free port may be taken between our looking and the server's binding.
const PORTS_TRIED: u32 = 3;

/// A server of our own that answers.
pub struct Running {
    child: Child,
    pub adapter: &'static Adapter,
    pub launch: Launch,
    pub facts: Facts,
    pub directory: tempfile::TempDir,
}

/// Starts `store`'s server at class `none`. A server that is not on this machine fails the test and says how to get it.
pub fn start(store: &str, transport: Transport) -> Running {
    start_at(store, transport, Durability::None)
}

pub fn start_at(store: &str, transport: Transport, durability: Durability) -> Running {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let mut failure = String::new();
    for _ in 0..PORTS_TRIED {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let place = match transport {
            Transport::Unix => Place::Unix(directory.path().join("s")),
            _ => free_port(),
        };
        match start_in(adapter, launch_at(place, durability), directory) {
            Ok(running) => return running,
            Err(why) => failure = why,
        }
    }
    panic!("{store} does not start: {failure}");
}

pub fn launch_at(place: Place, durability: Durability) -> Launch {
    Launch {
        place,
        durability,
        settings: BTreeMap::new(),
        login: Login::default(),
        clients: 4,
        data_bytes: None,
        patience: Duration::from_secs(10),
    }
}

fn start_in(adapter: &'static Adapter, launch: Launch, directory: tempfile::TempDir) -> Result<Running, String> {
    let recipe = adapter.server.expect("a store with a server");
    let program = recipe.programs.iter().find_map(|name| on_path(name)).unwrap_or_else(|| {
        panic!("there is no {} on PATH: {}", recipe.programs.join(" or "), adapter.get_it);
    });
    let data = directory.path().join("data");
    std::fs::create_dir_all(&data).expect("a data directory");
    let log = directory.path().join("log");
    let out = std::fs::File::create(&log).expect("a log");
    let mut command = Command::new(&program);
    command.args((recipe.arguments)(&launch, &data)).current_dir(&data).stdin(Stdio::null());
    command.stderr(out.try_clone().expect("a log")).stdout(out);
    let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let mut running = Running { child, adapter, launch, facts: Facts::default(), directory };
    let began = Instant::now();
    loop {
        let fault = match (adapter.open)(&running.launch).and_then(|store| store.facts()) {
            Ok(facts) => {
                running.facts = facts;
                return Ok(running);
            }
            Err(fault) => fault,
        };
        let ended = running.child.try_wait().expect("our own child");
        if ended.is_some() || began.elapsed() > START_LIMIT {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("{fault}; ended: {ended:?}; it said: {said}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn open(&self) -> Box<dyn Store> {
        (self.adapter.open)(&self.launch).expect("the store opens")
    }

    /// The same server, as somebody who logs in.
    pub fn open_as(&self, user: Option<&str>, password: Option<&str>, database: Option<u32>) -> Box<dyn Store> {
        let login = Login { user: user.map(str::to_string), password: password.map(str::to_string), database };
        (self.adapter.open)(&Launch { login, ..self.launch.clone() }).expect("opening alone asks nothing")
    }

    /// Kills it as `kill -9` does, and starts it again on the same data.
    pub fn kill_and_start_again(mut self) -> Running {
        self.kill();
        let directory = std::mem::replace(&mut self.directory, tempfile::tempdir().expect("a directory"));
        start_in(self.adapter, self.launch.clone(), directory).expect("the server starts again on its data")
    }

    fn kill(&mut self) {
        // It may have ended already; either way it is reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn session(store: &dyn Store) -> Box<dyn Session + '_> {
    store.session().expect("a session")
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn free_port() -> Place {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback");
    Place::Tcp { host: "127.0.0.1".to_string(), port: listener.local_addr().expect("its address").port() }
}
