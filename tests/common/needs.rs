//! What a test needs that a machine may lack. A test whose need is not met is not run: `./test` counts and names it.
//! Where `KVFAIR_TESTS_STRICT` is set, as in `.ci/run`, it fails instead, unless the need stands in `CANNOT_BE_HAD`.

use std::io::Write;
use std::path::{Path, PathBuf};

use kvfair::harness::serve;
use kvfair::stores;

/// Needs that no machine of CI can meet, each with the reason.
const CANNOT_BE_HAD: &[(&str, &str)] = &[
    ("memcachedb", "no package registry has it; its adapter is tested on memcached"),
    ("mongodb", "its licence keeps it out of distributions; FerretDB stands in"),
    ("mysql", "Debian has no mysqld; MariaDB stands in"),
    ("a real dragonfly", "no package registry has it; tests/servers/dragonfly.py stands in"),
    ("a real ttserver", "no package registry has it; tests/servers/ttserver.c stands in"),
];

/// Something that a test needs.
pub struct Need {
    name: String,
    is_met: bool,
    /// How to meet it.
    how: String,
}

impl Need {
    pub fn new(name: &str, is_met: bool, how: &str) -> Need {
        Need { name: name.to_string(), is_met, how: how.to_string() }
    }

    /// The server of a store.
    pub fn server(store: &str) -> Need {
        let adapter = stores::find(store).unwrap_or_else(|| panic!("no store is called {store}"));
        Need::new(store, serve::program(adapter.server.expect("a server")).is_some(), adapter.get_it)
    }

    /// A program on PATH.
    pub fn program(name: &str) -> Need {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Need::new(name, std::env::split_paths(&path).any(|folder| folder.join(name).is_file()), "./test installs it")
    }

    /// A file or folder that `./test` installs, below target/test-tools.
    pub fn tool(name: &str) -> Need {
        Need::new(name, tools().join(name).exists(), "./test installs it")
    }

    /// Data that others published, which may not be copied into this repository.
    pub fn published(name: &str) -> Need {
        let file = published(name);
        Need::new(name, file.exists(), &format!("{} is not here", file.display()))
    }

    pub fn root() -> Need {
        Need::new("root", nix::unistd::geteuid().is_root(), "run the tests as root")
    }

    pub fn processors(count: usize) -> Need {
        let here = std::thread::available_parallelism().map_or(1, usize::from);
        Need::new(&format!("{count} processors"), here >= count, "run the tests on a larger machine")
    }
}

/// Where `./test` installs tools.
pub fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools")
}

/// A file of the data beside the checkout.
pub fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name)
}

/// Whether the calling test can run. Otherwise it is reported as not run, and must return.
#[must_use]
pub fn are_met(needs: &[Need]) -> bool {
    needs.iter().filter(|need| !need.is_met).inspect(|need| report("whole", need)).count() == 0
}

/// Those of these stores whose server is here. The calling test is reported as run in part if one is missing, and as
/// not run if all are.
pub fn servers_here<'a>(stores: &[&'a str]) -> Vec<&'a str> {
    let needs: Vec<Need> = stores.iter().map(|store| Need::server(store)).collect();
    let extent = if needs.iter().any(|need| need.is_met) { "part" } else { "whole" };
    needs.iter().filter(|need| !need.is_met).for_each(|need| report(extent, need));
    stores.iter().zip(&needs).filter(|(_, need)| need.is_met).map(|(store, _)| *store).collect()
}

/// Reports the calling test as run in part: by a stand-in for this server.
pub fn stood_in(server: &str) {
    report("part", &Need::new(server, false, "put it on PATH"));
}

/// Adds the calling test to the tests that were not run, or fails it.
pub fn report(extent: &str, need: &Need) {
    let Need { name, how, .. } = need;
    let reason = CANNOT_BE_HAD.iter().find(|(other, _)| other == name).map(|(_, reason)| *reason);
    let is_strict = std::env::var_os("KVFAIR_TESTS_STRICT").is_some();
    assert!(!is_strict || reason.is_some(), "{name} is not here: {how}");
    let thread = std::thread::current();
    let test = thread.name().expect("libtest names a test's thread after the test");
    let line = format!("{extent}\t{test}\t{name}\t{}\n", reason.unwrap_or(how).replace('\n', " "));
    eprint!("not run: {line}");
    let Some(file) = std::env::var_os("KVFAIR_NOT_RUN") else { return };
    let file = std::fs::File::options().create(true).append(true).open(file);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of tests that were not run");
}

/// Ends the calling test as not run where one of these needs is not met.
macro_rules! needs {
    ($($need:expr),+ $(,)?) => {
        if !$crate::common::needs::are_met(&[$($need),+]) {
            return;
        }
    };
}
pub(crate) use needs;
