//! `redis` and `valkey`: one protocol, two programs. It knows how each durability level is set, and reads back what is
//! in force.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use super::blocking::{Blocking, BlockingConnection, Connection};
use super::room::ServerMemory;
use super::store_stats::{StoreStats, bounded};
use super::{Adapter, Facts, Launch, Means, Place, Role, Server, Session, Setting, Store, UNKNOWN, Watch};
use crate::model::op::{Fault, KeyList, readable};
use crate::model::record::LAST_USE;
use crate::model::trial::{Durability, Transport};
use crate::protocol::resp::{self, Greeting, PING, Resp, Value, command, value};

mod drawn;
mod room;

pub static REDIS: Adapter = Adapter {
    name: "redis",
    about: "the in-memory data structure server",
    schemes: &[super::SOCKET],
    open: |launch| open("redis", launch),
    server: Some(&Server { programs: &["redis-server"], ..SERVER }),
    get_it: "apt install redis-server",
    ..BOTH
};

pub static VALKEY: Adapter = Adapter {
    name: "valkey",
    about: "the Linux Foundation's continuation of Redis 7.2",
    open: |launch| open("valkey", launch),
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
    settings: &[APPENDONLY, APPENDFSYNC],
    keeps: |level| match level {
        Durability::None => Ok("save '', appendonly no"),
        Durability::Crash => Ok("appendonly yes, appendfsync no"),
        Durability::Power => Ok("appendonly yes, appendfsync always"),
    },
    // What the log holds is read again at the next start; at `none` there is no log, and nothing is saved at the stop.
    stays: |level| level != Durability::None,
    lacks: |_| &[Means::Scan],
    open: |launch| open("redis", launch),
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
    check: |word| if matches!(word, "yes" | "no") { Ok(()) } else { Err("yes or no".to_string()) },
};

const APPENDFSYNC: Setting = Setting {
    name: "appendfsync",
    about: "when the log is synced: always, everysec or no [default: as the durability level needs]",
    default: "",
    check: |word| match word {
        "always" | "everysec" | "no" => Ok(()),
        _ => Err("always, everysec or no".to_string()),
    },
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
    input: |launch| launch.login.password.as_ref().map(|password| format!("requirepass {password}\n")),
    ..Server::PLAIN
};

/// What CONFIG GET is asked for: all that could move a number or break a durability level.
const SETTINGS: &[&str] = &[
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
];

/// What INFO tells besides the version: the allocator moves numbers (packages use jemalloc, some builds libc's), and
/// an eviction is lost data.
const INFORMED: &[&str] = &["mem_allocator", "arch_bits", "multiplexing_api", "role", "evicted_keys"];

fn open(name: &'static str, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Redis { name, launch: launch.clone(), no_touch: OnceLock::new() }))
}

struct Redis {
    name: &'static str,
    launch: Launch,
    /// Set where what is opened from now on must not count as a use of a key: whether the server knows how.
    no_touch: OnceLock<bool>,
}

impl Redis {
    fn connect(&self) -> Result<Blocking<Resp>, Fault> {
        let login = self.launch.login.clone();
        let number = login.database.map(|database| {
            let wrong = |_| Fault::Unsupported(format!("{} has no database '{database}', only numbers", self.name));
            database.parse().map_err(wrong)
        });
        let greeting = Greeting { user: login.user, password: login.password, database: number.transpose()? };
        let mut session = Blocking::open(self.name, &self.launch, Resp::new(self.name, greeting))?;
        if self.no_touch.get() == Some(&true) {
            drawn::no_touch(session.connection())?;
        }
        Ok(session)
    }
}

impl Store for Redis {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(self.connect()?))
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(self.connect().and_then(|session| session.into_line(PING, resp::pong)))
    }

    /// Fails while the server still reads its data from disk, and where its settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let mut session = self.connect()?;
        let connection = session.connection();
        let info = match info(connection, &[b"INFO"]) {
            // A user who may not ask goes on without: `room` has been asked before. A missing login is an error.
            Err(Fault::Refused(words)) if !is_login(&words) => BTreeMap::new(),
            info => info?,
        };
        if info.get("loading").is_some_and(|loading| loading == "1") {
            return Err(Fault::Refused(format!("LOADING {} still reads its data from disk", connection.name())));
        }
        let mut settings = config(connection)?;
        check_level(self.launch.durability, &settings, connection.name())?;
        check_settings(&self.launch.settings, &settings, connection.name())?;
        settings.extend(INFORMED.iter().filter_map(|&name| Some((name.to_string(), info.get(name)?.clone()))));
        if let Some(&knows) = self.no_touch.get() {
            let policy = info.get("maxmemory_policy").or_else(|| settings.get("maxmemory-policy"));
            settings.insert(LAST_USE.to_string(), drawn::last_use(knows, policy));
        }
        Ok(Facts {
            version: version_informed(self.name, &info),
            client_library: "resp".to_string(),
            increment: "INCRBY".to_string(),
            settings,
            process_id: info.get("process_id").and_then(|id| id.parse().ok()),
            started: info.get("run_id").cloned(),
            ..Facts::default()
        })
    }

    /// Nothing is left to do: the log is written (`crash`) or synced (`power`) before the answer leaves the server.
    /// <https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/>
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Records of the selected database.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut session = self.connect()?;
        match ask(session.connection(), &[b"DBSIZE"])? {
            Value::Number(count) => Ok(u64::try_from(count).ok()),
            // What speaks the protocol need not count.
            Value::Error(words) if is_login(&words) => Err(Fault::Refused(words)),
            Value::Error(_) => Ok(None),
            other => Err(strange(session.connection(), "DBSIZE", &other)),
        }
    }

    /// Every number of INFO, those of its commands included.
    /// <https://redis.io/docs/latest/commands/info/>
    fn stats(&self) -> Result<StoreStats, Fault> {
        let told = info(self.connect()?.connection(), &[b"INFO", b"all"])?;
        Ok(StoreStats::of_texts(told.iter().flat_map(|(name, text)| apart(name, text))))
    }

    fn watch(&self) -> Result<Option<Watch<'_>>, Fault> {
        let mut session = self.connect()?;
        Ok(Some(Box::new(move || room::evicted(session.connection()))))
    }

    fn room(&self) -> Result<Option<ServerMemory>, Fault> {
        room::room(self.connect()?.connection()).map(Some)
    }

    fn existing(&self, most: usize) -> Result<Option<KeyList>, Fault> {
        drawn::strings(self.connect()?.connection(), most).map(Some)
    }

    fn leave_no_trace(&self) -> Result<(), Fault> {
        if self.no_touch.get().is_none() {
            let knows = drawn::knows_no_touch(self.connect()?.connection())?;
            self.no_touch.get_or_init(|| knows);
        }
        Ok(())
    }

    fn expires(&self) -> bool {
        true
    }
}

/// Whether an error is about who asks and when, and not about what was asked.
fn is_login(words: &str) -> bool {
    ["NOAUTH", "LOADING"].iter().any(|code| words.contains(code))
}

fn ask(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<Value, Fault> {
    let mut request = Vec::new();
    command(parts, &mut request);
    connection.exchange(&request, value)
}

fn strange(connection: &BlockingConnection, asked: &str, answer: &Value) -> Fault {
    let answer = readable(format!("{answer:?}").as_bytes(), 120);
    Fault::Garbled(format!("{}: {asked} answered {answer}", connection.name()))
}

/// All that INFO says, by name.
fn info(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<BTreeMap<String, String>, Fault> {
    let mut request = Vec::new();
    command(parts, &mut request);
    match connection.exchange(&request, bounded(value))? {
        Value::Text(text) => Ok(named_lines(&String::from_utf8_lossy(&text))),
        Value::Error(words) if words.starts_with("NOAUTH") => {
            Err(Fault::Refused(format!("{} ({words})", super::password::needed(connection.name()))))
        }
        Value::Error(words) => Err(Fault::Refused(format!("{}: {words}", connection.name()))),
        other => Err(strange(connection, "INFO", &other)),
    }
}

fn named_lines(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_string(), value.trim_end().to_string())).collect()
}

/// What stands beside a name is one value, or several with names of their own: `calls=1,usec=14`.
fn apart(name: &str, text: &str) -> Vec<(String, String)> {
    let inner = |part: &str| part.split_once('=').map(|(inner, text)| (format!("{name}.{inner}"), text.to_string()));
    if text.contains('=') { text.split(',').filter_map(inner).collect() } else { vec![(name.into(), text.into())] }
}

/// Where it is said why settings are not told.
const CONFIG_GET: &str = "CONFIG GET";

/// The settings in force. Hosted servers may refuse CONFIG: then that is what is said.
fn config(connection: &mut BlockingConnection) -> Result<BTreeMap<String, String>, Fault> {
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        match ask(connection, &[b"CONFIG", b"GET", name.as_bytes()])? {
            Value::List(pair) => match pair.as_slice() {
                [Value::Text(_), Value::Text(setting)] => {
                    settings.insert(name.to_string(), String::from_utf8_lossy(setting).into_owned());
                }
                // A server of another age does not know the name.
                _ => continue,
            },
            Value::Error(words) => {
                settings.insert(CONFIG_GET.to_string(), format!("refused: {words}"));
                break;
            }
            other => return Err(strange(connection, "CONFIG GET", &other)),
        };
    }
    Ok(settings)
}

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
    let own = [APPENDONLY, APPENDFSYNC].into_iter().filter_map(|own| Some((own.name, asked.get(own.name)?)));
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

/// "redis at h:1 does not tell appendonly (CONFIG GET refused: NOPERM)."
fn untold(setting: &str, settings: &BTreeMap<String, String>, name: &str) -> String {
    let why = settings.get(CONFIG_GET).map_or_else(String::new, |why| format!(" ({CONFIG_GET} {why})"));
    format!("{name} does not tell {setting}{why}.")
}

/// The version, with the server's own name where that is not the one it was asked by: some systems install
/// `redis-server` as another name for `valkey-server`.
fn version_informed(name: &str, info: &BTreeMap<String, String>) -> String {
    let told = [("valkey", "valkey_version"), ("redis", "redis_version")];
    let told = told.iter().find_map(|(own_name, field)| Some((*own_name, info.get(*field)?.clone())));
    let Some((own_name, version)) = told else { return UNKNOWN.to_string() };
    if own_name == name { version } else { format!("{own_name} {version}") }
}

/// `Redis server v=7.0.15 sha=...`: the version.
fn version_printed(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once(" v=")?;
    rest.split_whitespace().next().map(str::to_string)
}

/// The command line. What is not named here is left at its default on purpose and read back by `facts`: `io-threads`
/// (the project's advice is to raise it only on machines of many cores), `auto-aof-rewrite-*` (rewriting is part of a
/// log's price),
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
    for setting in [APPENDONLY, APPENDFSYNC] {
        if let Some(value) = launch.settings.get(setting.name) {
            option(setting.name, value);
        }
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
    fn counters_of_a_command_are_taken_apart() {
        let told = named_lines("evicted_keys:3\r\ncmdstat_set:calls=2,usec=18,usec_per_call=9.00\r\nrole:master\r\n");
        let said = StoreStats::of_texts(told.iter().flat_map(|(name, text)| apart(name, text)));
        let set = [("cmdstat_set.calls", 2.0), ("cmdstat_set.usec", 18.0), ("cmdstat_set.usec_per_call", 9.0)];
        assert_eq!(said, set.into_iter().chain([("evicted_keys", 3.0)]).collect());
    }

    #[test]
    fn a_server_under_another_name_is_told_by_its_own() {
        let redis = named_lines("# Server\r\nredis_version:7.0.15\r\n");
        let valkey = named_lines("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n");
        assert_eq!(version_informed("redis", &redis), "7.0.15");
        assert_eq!(version_informed("valkey", &valkey), "9.1.2");
        assert_eq!(version_informed("redis", &valkey), "valkey 9.1.2");
        assert_eq!(version_informed("valkey", &redis), "redis 7.0.15");
        assert_eq!(version_informed("redis", &BTreeMap::new()), "unknown", "no product is assumed");
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
