//! `redis` and `valkey`: one protocol, two programs. It knows how each durability level is set, and reads back what is
//! in force.

use std::collections::BTreeMap;
use std::path::Path;

use super::replication::{self, LINK_DELAY, READ, REPLICAS, WAIT};
use super::resp_server::{self, COUNTERS, RespProduct, untold};
use super::setting::check_threads;
use super::{Adapter, Launch, Means, Place, Price, Role, Server, Setting, SettingValues};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};

pub static REDIS: Adapter = Adapter {
    name: "redis",
    about: "the in-memory data structure server",
    schemes: &[super::SOCKET],
    open: |launch| resp_server::open("redis", &PRODUCT, launch),
    server: Some(&Server { programs: &["redis-server"], ..SERVER }),
    get_it: "apt install redis-server",
    ..BOTH
};

pub static VALKEY: Adapter = Adapter {
    name: "valkey",
    about: "the Linux Foundation's continuation of Redis 7.2",
    open: |launch| resp_server::open("valkey", &PRODUCT, launch),
    server: Some(&Server { programs: &["valkey-server"], scheme: Some("redis"), ..SERVER }),
    get_it: "https://valkey.io/download (Debian 13 and later: apt install valkey-server)",
    ..BOTH
};

const BOTH: Adapter = Adapter {
    name: "",
    about: "",
    role: Role::Store,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[APPENDONLY, APPENDFSYNC, IO_THREADS, COUNTERS, REPLICAS, READ, LINK_DELAY, WAIT],
    keeps: |level| match level {
        Durability::None => Ok("save '', appendonly no"),
        Durability::Crash => Ok("appendonly yes, appendfsync no"),
        Durability::Power => Ok("appendonly yes, appendfsync always"),
    },
    // What the log holds is read again at the next start; at `none` there is no log, and nothing is saved at the stop.
    stays: |level| level != Durability::None,
    lacks: |_| &[Means::Scan],
    open: |launch| resp_server::open("redis", &PRODUCT, launch),
    server: None,
    version: || Err("a server's version is its program's".to_string()),
    get_it: "",
};

/// Of a server of ours, whatever the durability level is: so that both ways can stand side by side. One that does not
/// keep the durability level is refused, since what is in force is read back.
const APPENDONLY: Setting = Setting {
    name: "appendonly",
    about: "whether every write goes to a log: yes or no [default: as the durability level needs]",
    default: "",
    values: SettingValues::OneOf(&["yes", "no"]),
    price: Price::Durability,
};

const APPENDFSYNC: Setting = Setting {
    name: "appendfsync",
    about: "when the log is synced: always, everysec or no [default: as the durability level needs]",
    default: "",
    values: SettingValues::OneOf(&["always", "everysec", "no"]),
    price: Price::Durability,
};

/// Its makers' advice is two or three on a machine of four cores, and more on larger ones: redis.conf, "THREADED I/O".
const IO_THREADS: Setting = Setting {
    name: "io-threads",
    about: "threads that read and write for clients, of a server of ours [default: its own, which is 1]",
    default: "",
    values: SettingValues::Checked { check: check_threads, worth_trying: &["2", "4"] },
    price: Price::Nothing,
};

const SERVER: Server = Server {
    port: 6379,
    version: version_printed,
    arguments,
    // As redis-py and others take a socket's URL.
    socket_scheme: Some(super::SOCKET),
    ceiling: |_| Some("resp"),
    // <https://redis.io/docs/latest/develop/tools/cli/>
    password_variable: Some("REDISCLI_AUTH"),
    takes_password: true,
    input: secrets,
    // A replica is told a host and a port.
    replicates_over: &[Transport::Tcp],
    ..Server::PLAIN
};

static PRODUCT: RespProduct = RespProduct {
    info: &[b"INFO"],
    // Packages use jemalloc, some builds libc's allocator.
    informed: &["mem_allocator", "arch_bits", "multiplexing_api", "role", "evicted_keys"],
    started: "run_id",
    settings: &[
        "save",
        "appendonly",
        "appendfsync",
        "no-appendfsync-on-rewrite",
        "auto-aof-rewrite-percentage",
        "auto-aof-rewrite-min-size",
        "maxmemory",
        "maxmemory-policy",
        "maxclients",
        "io-threads",
        "activedefrag",
        "latency-monitor-threshold",
        "proto-max-bulk-len",
    ],
    check: |launch, settings, name| {
        check_level(launch.durability, settings, name)?;
        check_settings(&launch.settings, settings, name)
    },
};

/// A server that kvfair did not start may not keep the durability level that was asked for, or not tell whether it
/// does.
fn check_level(level: Durability, settings: &BTreeMap<String, String>, name: &str) -> Result<(), Fault> {
    let needed: &[(&str, &str)] = match level {
        Durability::None => &[],
        Durability::Crash => &[("appendonly", "yes")],
        Durability::Power => &[("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")],
    };
    let broken = needed.iter().find_map(|&(setting, wanted)| match settings.get(setting) {
        Some(found) if found == wanted => None,
        Some(found) => {
            Some(format!("{name} has {setting} {found}, which does not keep '{level}': it takes {setting} {wanted}"))
        }
        None => Some(format!(
            "{} Whether it keeps '{level}' is unknown: let it answer CONFIG GET, or leave --durability out",
            untold(setting, settings, name)
        )),
    });
    broken.map_or(Ok(()), |what| Err(Fault::Unsupported(what)))
}

/// What was asked for by name must be in force, in a server that kvfair did not start too.
fn check_settings(
    asked: &BTreeMap<String, String>,
    settings: &BTreeMap<String, String>,
    name: &str,
) -> Result<(), Fault> {
    let own =
        [APPENDONLY, APPENDFSYNC, IO_THREADS].into_iter().filter_map(|own| Some((own.name, asked.get(own.name)?)));
    for (setting, wanted) in own {
        let what = match settings.get(setting) {
            Some(found) if found == wanted => continue,
            Some(found) => format!("{name} has {setting} {found}, not {wanted}"),
            None => format!(
                "{} Whether it is {wanted} is unknown: let it answer CONFIG GET, or leave ?{setting}= out",
                untold(setting, settings, name)
            ),
        };
        return Err(Fault::Unsupported(what));
    }
    Ok(())
}

/// What no command line may show. All servers of a target have one password, so that a replica gets in by its own.
fn secrets(launch: &Launch) -> Option<String> {
    let password = launch.login.password.as_ref()?;
    let of_primary = launch.follows.as_ref().map_or_else(String::new, |_| format!("masterauth {password}\n"));
    Some(format!("requirepass {password}\n{of_primary}"))
}

/// `Redis server v=7.0.15 sha=...`: the version.
fn version_printed(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once(" v=")?;
    rest.split_whitespace().next().map(str::to_string)
}

/// The command line. What is not named here is left at its default on purpose and read back by `facts`: `io-threads`
/// unless a target names it, `auto-aof-rewrite-*` (rewriting is part of a log's price),
/// `latency-monitor-threshold` (off), `hz`. All options:
/// <https://redis.io/docs/latest/operate/oss_and_stack/management/config-file/>
fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    // What comes first may be settings on standard input.
    let mut arguments: Vec<String> = launch.login.password.iter().map(|_| "-".to_string()).collect();
    let mut option = |name: &str, value: &str| arguments.extend([format!("--{name}"), value.to_string()]);
    match &launch.place {
        Place::Unix(path) => {
            option("port", "0"); // No TCP at all.
            option("unixsocket", &path.display().to_string());
            option("unixsocketperm", "700"); // Only clients of this user.
        }
        Place::Tcp { host, port } => {
            option("bind", host); // The loopback that we were given, no other address.
            option("port", &port.to_string());
        }
        Place::Memory | Place::Path(_) => {}
    }
    option("protected-mode", "yes"); // The default, kept by name.
    option("daemonize", "no"); // It stays our child, to be watched and stopped.
    option("dir", &data.display().to_string()); // Its files go nowhere else.
    if !launch.is_shipped() {
        matched(launch, &mut option);
    }
    // The last word counts.
    for setting in [APPENDONLY, APPENDFSYNC, IO_THREADS] {
        if let Some(value) = launch.settings.get(setting.name) {
            option(setting.name, value);
        }
    }
    if replication::count(&launch.settings) > 0 {
        // By default the first copy waits 5 s for more replicas to come. No write is under way then.
        option("repl-diskless-sync-delay", "0");
    }
    if let Some(Place::Tcp { host, port }) = &launch.follows {
        arguments.extend(["--replicaof".to_string(), host.clone(), port.to_string()]);
    }
    arguments
}

/// What is the same for all stores: the durability level, room for all that is held and for all clients.
fn matched(launch: &Launch, option: &mut dyn FnMut(&str, &str)) {
    option("databases", "16"); // The default, kept by name.
    // As many as are asked for; 10,000 is the default.
    option("maxclients", &launch.clients.saturating_add(100).max(10_000).to_string());
    // The defaults, kept by name: a store that drops what it holds would give wrong answers fast.
    option("maxmemory", "0");
    option("maxmemory-policy", "noeviction");
    // No snapshots: no durability level needs them, and the default's depend on how long a trial takes.
    option("save", "");
    // https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/
    match launch.durability {
        Durability::None => option("appendonly", "no"),
        Durability::Crash => {
            option("appendonly", "yes");
            option("appendfsync", "no"); // write(2) comes before the answer; the system keeps it when the process dies.
        }
        Durability::Power => {
            option("appendonly", "yes");
            option("appendfsync", "always"); // fdatasync(2) comes before the answer.
            option("no-appendfsync-on-rewrite", "no"); // The default, kept by name: `yes` breaks the durability level during a rewrite.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::resp_server::CONFIG_GET;
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n";
        let valkey = "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1536df31c0395150\n";
        assert_eq!(version_printed(redis).as_deref(), Some("7.0.15"));
        assert_eq!(version_printed(valkey).as_deref(), Some("9.1.2"));
        assert_eq!(version_printed("bash: redis-server: command not found"), None);
    }

    #[test]
    fn what_was_asked_for_and_is_not_in_force_is_refused() {
        let of = |value: &str| BTreeMap::from([("appendonly".to_string(), value.to_string())]);
        assert!(check_settings(&of("yes"), &of("yes"), "x").is_ok());
        let refused = check_settings(&of("yes"), &of("no"), "redis at h:1").unwrap_err().to_string();
        assert!(refused.contains("redis at h:1 has appendonly no, not yes"), "{refused}");
    }

    #[test]
    fn settings_that_do_not_keep_the_class_are_refused_by_name() {
        let settings = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<BTreeMap<_, _>>()
        };
        let everysec = settings(&[("appendonly", "yes"), ("appendfsync", "everysec")]);
        assert!(check_level(Durability::Crash, &everysec, "redis at h:1").is_ok());
        let refused = check_level(Durability::Power, &everysec, "redis at h:1").unwrap_err().to_string();
        assert!(refused.contains("redis at h:1 has appendfsync everysec"), "{refused}");
        assert!(check_level(Durability::Crash, &settings(&[("appendonly", "no")]), "x").is_err());
        assert!(check_level(Durability::None, &settings(&[("appendonly", "no")]), "x").is_ok());
        // What is not told is not assumed.
        let denied = settings(&[(CONFIG_GET, "refused: NOPERM")]);
        let refused = check_level(Durability::Crash, &denied, "redis at h:1").unwrap_err().to_string();
        assert!(refused.contains("redis at h:1 does not tell appendonly (CONFIG GET refused: NOPERM)"), "{refused}");
        assert!(check_level(Durability::None, &denied, "x").is_ok());
    }
}
