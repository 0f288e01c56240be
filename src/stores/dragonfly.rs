//! `dragonfly`: Redis' commands by another program, whose threads share the keys. It knows how its server is started in
//! private, and that it has no log.
//!
//! Its flags: <https://www.dragonflydb.io/docs/managing-dragonfly/flags>.

use std::path::{Path, PathBuf};

use super::resp_server::{self, COUNTERS, RespProduct};
use super::setting::check_threads;
use super::{Adapter, Launch, Means, Place, Price, Role, Server, Setting, SettingValues, Step};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

pub static DRAGONFLY: Adapter = Adapter {
    name: NAME,
    about: "Redis' commands on many threads, each with its share of the keys (2022)",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[THREADS, COUNTERS],
    // <https://www.dragonflydb.io/docs/managing-dragonfly/backups>
    keeps: |level| match level {
        Durability::None => Ok("dbfilename '' (no snapshots)"),
        _ => Err("dragonfly has snapshots and no log: what was acknowledged after the last snapshot is lost"),
    },
    stays: |_| false,
    lacks: |_| &[Means::Scan],
    open: |launch| resp_server::open(NAME, &PRODUCT, launch),
    server: Some(&Server {
        // A release has the machine's architecture in its program's name.
        programs: &["dragonfly", "dragonfly-x86_64", "dragonfly-aarch64"],
        port: 6379,
        version: version_printed,
        prepare: |launch, data| launch.login.password.as_deref().map(|word| password(data, word)).into_iter().collect(),
        arguments,
        // It is reached by clients of Redis.
        scheme: Some("redis"),
        socket_scheme: Some(super::SOCKET),
        ceiling: |_| Some("resp"),
        password_variable: Some("REDISCLI_AUTH"),
        takes_password: true,
        ..Server::PLAIN
    }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "https://github.com/dragonflydb/dragonfly/releases (for Linux)",
};

const NAME: &str = "dragonfly";

/// Each has its share of the keys; a single one hands no request to another.
const THREADS: Setting = Setting {
    name: "threads",
    about: "threads that share the keys, of a server of ours (proactor_threads) [default: one a processor]",
    default: "",
    values: SettingValues::Checked { check: check_threads, worth_trying: &["1"] },
    price: Price::Nothing,
};

static PRODUCT: RespProduct = RespProduct {
    // Its cluster mode is another one.
    by_url: None,
    // Whether it is loading stands in a section that INFO alone leaves out.
    // <https://github.com/dragonflydb/dragonfly/blob/main/src/server/server_family.cc>, `ServerFamily::Info`
    info: &[b"INFO", b"ALL"],
    informed: &[
        "thread_count",
        "multiplexing_api",
        "arch_bits",
        "maxmemory",
        "maxmemory_policy",
        "cache_mode",
        "role",
        "evicted_keys",
    ],
    // It tells neither its process nor an id of its run, but draws this one at each start.
    started: "master_replid",
    // Those of its flags that CONFIG knows. It knows no `save`, `appendonly` or `maxmemory-policy`.
    settings: &["dbfilename", "snapshot_cron", "maxclients", "dbnum"],
    // `keeps` has refused what it cannot be asked for.
    check: |launch, settings, name| match (launch.settings.get(THREADS.name), settings.get("thread_count")) {
        (Some(wanted), Some(found)) if found != wanted => {
            Err(Fault::Unsupported(format!("{name} has {found} threads, not {wanted}")))
        }
        _ => Ok(()),
    },
};

/// The password as a flag in a file: a command line shows it to everybody, and standard input is not read.
fn password(data: &Path, word: &str) -> Step {
    Step::Write { path: flag_file(data), text: format!("--requirepass={word}\n") }
}

fn flag_file(data: &Path) -> PathBuf {
    data.join("kvfair.flags")
}

/// `dragonfly v1.27.1-0a1b2c...`, the version in green: the version.
fn version_printed(printed: &str) -> Option<String> {
    let (_, version) = printed.strip_prefix("dragonfly ")?.lines().next()?.split_once('v')?;
    version.split(['-', '\u{1b}']).next().map(str::to_string)
}

/// The command line. What is not named is left at its default on purpose and read back by `facts`: `proactor_threads`
/// (one a processor, which is what the program is for) unless a target names it, and `maxmemory` (four fifths of the
/// memory that is free; beyond it writes are refused).
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut flag = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
    match &launch.place {
        Place::Unix(path) => {
            flag("port", "0"); // No TCP at all.
            flag("unixsocket", &path.display().to_string());
            flag("unixsocketperm", "700"); // Only clients of this user.
        }
        Place::Tcp { host, port } => {
            flag("bind", host); // The loopback that we were given; the default is every interface.
            flag("port", &port.to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    if launch.login.password.is_some() {
        flag("flagfile", &flag_file(data).display().to_string());
    }
    flag("dir", &data.display().to_string()); // Its files go nowhere else,
    flag("logtostderr", "true"); // nor does its log, which is a file of its own below /tmp by default.
    flag("version_check", "false"); // By default it asks its makers for a newer version.
    if let Some(threads) = launch.settings.get(THREADS.name) {
        flag("proactor_threads", threads);
    }
    if !launch.is_shipped() {
        // It saves nothing when it stops: no durability level needs that.
        flag("dbfilename", "");
        // The default, kept by name: a store that drops what it holds would give wrong answers fast.
        flag("cache_mode", "false");
        // As many as are asked for; 64,000 is the default.
        flag("maxclients", &launch.clients.saturating_add(100).max(64_000).to_string());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_program_prints() {
        let printed = "dragonfly \u{1b}[0;32mv1.27.1-4c8bd5c1\u{1b}[m\nbuild time: \u{1b}[0;33m2025-02-16\u{1b}[m\n";
        assert_eq!(version_printed(printed).as_deref(), Some("1.27.1"));
        assert_eq!(version_printed("Redis server v=7.0.15 sha=0"), None);
    }
}
