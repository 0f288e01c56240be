//! Real servers for tests, started by the adapters' own recipes in a directory of their own, and gone when the test
//! ends.
#![allow(dead_code, unused_macros, unused_imports)] // Each test binary uses its own part of this.

use std::net::TcpListener;
use std::time::Duration;

use kvfair::harness::serve::{self, Served, Site, Unserved};
use kvfair::harness::signals::Interrupt;
use kvfair::model::trial::{Configuration, Durability, Transport};
use kvfair::stores::{self, Adapter, Facts, Launch, Login, Place, Session, Store};

pub mod contract;
pub mod desk;
pub mod embedded;
pub mod golden;
pub mod load;
pub mod needs;
pub mod nothing;
pub mod output;
pub mod pool;
pub mod slower;
pub mod strange;

/// How long a server may take until it answers: longer than one in Java takes on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(300);

/// A server of our own that answers.
pub struct Running {
    served: Served,
    pub adapter: &'static Adapter,
    transport: Transport,
    pub launch: Launch,
    pub facts: Facts,
    pub directory: tempfile::TempDir,
}

/// Starts `store`'s server at level `none`. A server that is not on this machine fails the test and says how to get it.
pub fn start(store: &str, transport: Transport) -> Running {
    start_at(store, transport, Durability::None)
}

pub fn start_at(store: &str, transport: Transport, durability: Durability) -> Running {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let directory = tempfile::tempdir().expect("a directory for the server");
    let running = start_in(adapter, transport, &launch_at(Place::Memory, durability), directory, false);
    running.unwrap_or_else(|why| panic!("{store} does not start: {why}"))
}

/// Starts it over TCP with a password, which the test does not know.
pub fn start_guarded(store: &str) -> Running {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let directory = tempfile::tempdir().expect("a directory for the server");
    let launch = launch_at(Place::Memory, Durability::None);
    let running = start_in(adapter, Transport::Tcp, &launch, directory, true);
    running.unwrap_or_else(|why| panic!("{store} does not start: {why}"))
}

/// Starts it as its makers ship it.
pub fn start_shipped(store: &str, transport: Transport) -> Running {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let directory = tempfile::tempdir().expect("a directory for the server");
    let launch = Launch { configuration: Configuration::Shipped, ..launch_at(Place::Memory, Durability::None) };
    start_in(adapter, transport, &launch, directory, false)
        .unwrap_or_else(|why| panic!("{store} does not start: {why}"))
}

/// The same with settings of the store's own, as a target names them.
pub fn start_set(store: &str, transport: Transport, durability: Durability, settings: &[(&str, &str)]) -> Running {
    let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
    let directory = tempfile::tempdir().expect("a directory for the server");
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let launch = Launch { settings, ..launch_at(Place::Memory, durability) };
    let running = start_in(adapter, transport, &launch, directory, false);
    running.unwrap_or_else(|why| panic!("{store} does not start: {why}"))
}

pub fn launch_at(place: Place, durability: Durability) -> Launch {
    Launch { durability, clients: 4, ..Launch::at(place, Duration::from_secs(10)) }
}

fn start_in(
    adapter: &'static Adapter,
    transport: Transport,
    launch: &Launch,
    directory: tempfile::TempDir,
    is_guarded: bool,
) -> Result<Running, String> {
    let data = directory.path().join("data");
    std::fs::create_dir_all(&data).expect("a data directory");
    let never = Interrupt::default();
    let site = Site { data: &data, scratch: directory.path(), prepared: None, is_guarded };
    let served = serve::start(&[], adapter, transport, launch, site, START_LIMIT, &never);
    let served = served.map_err(|unserved| match unserved {
        Unserved::Missing(why) => format!("{why}: {}", adapter.get_it),
        other => format!("{other:?}"),
    })?;
    let launch = Launch { login: launch.login.clone(), ..served.reached(launch) };
    Ok(Running { facts: served.facts.clone(), served, adapter, transport, launch, directory })
}

impl Running {
    pub fn id(&self) -> u32 {
        self.served.id()
    }

    pub fn open(&self) -> Box<dyn Store> {
        (self.adapter.open)(&self.launch).expect("the store opens")
    }

    /// The same server, as somebody who logs in.
    pub fn open_as(&self, user: Option<&str>, password: Option<&str>, database: Option<u32>) -> Box<dyn Store> {
        let database = database.map(|number| number.to_string());
        let login = Login { user: user.map(str::to_string), password: password.map(str::to_string), database };
        (self.adapter.open)(&Launch { login, ..self.launch.clone() }).expect("opening alone asks nothing")
    }

    /// Kills it as `kill -9` does, and starts it again on the same data, perhaps at another place.
    pub fn kill_and_start_again(self) -> Running {
        let Running { served, adapter, transport, launch, directory, .. } = self;
        served.kill();
        start_in(adapter, transport, &launch, directory, false).expect("the server starts again on its data")
    }
}

pub fn session(store: &dyn Store) -> Box<dyn Session + '_> {
    store.session().expect("a session")
}

fn free_port() -> Place {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback");
    Place::Tcp { host: "127.0.0.1".to_string(), port: listener.local_addr().expect("its address").port() }
}
