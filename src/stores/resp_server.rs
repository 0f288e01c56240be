//! What all servers of RESP have in common: sessions, counters, the settings in force. A store gives what its product
//! has of its own as data. It registers no store.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::blocking::{Blocking, BlockingConnection, Connection};
use super::replication::{self, Failover, LogPosition};
use super::room::ServerMemory;
use super::setting::{Price, Setting, SettingValues};
use super::store_stats::{StoreStats, bounded};
use super::{Facts, Launch, Session, Store, UNKNOWN, Watch};
use crate::model::op::{Fault, KeyList, readable};
use crate::model::record::LAST_USE;
use crate::protocol::OF_NO_USER;
use crate::protocol::resp::{self, Counters, Greeting, PING, Resp, Value, command, values};

mod cluster;
mod drawn;
mod replicas;
mod room;

pub use cluster::join;
pub use cluster::open as open_cluster;

/// Where counters are: of every server of RESP, also of one that kvfair did not start. Values are keys either way.
pub const COUNTERS: Setting = Setting {
    name: "counters",
    about: "where counters are: keys of their own, or the fields of one hash (HINCRBY) [default: keys]",
    default: "keys",
    // What counts nothing gains nothing by it.
    values: SettingValues::Checked { check: check_counters, worth_trying: &[] },
    price: Price::Nothing,
};

/// The number of servers of ours that are one store.
pub const CLUSTER: Setting = Setting {
    name: "cluster",
    about: "number of servers of ours that are one cluster, 3 to 16 (over TCP) [default: one server alone]",
    default: "",
    values: SettingValues::Checked { check: check_nodes, worth_trying: &[] },
    price: Price::Nothing,
};

/// With fewer than three no majority could outvote a node that is cut off.
const NODES: std::ops::RangeInclusive<u32> = 3..=16;

fn check_nodes(value: &str) -> Result<(), String> {
    let is_one = value.parse().is_ok_and(|nodes| NODES.contains(&nodes));
    if is_one { Ok(()) } else { Err(format!("a number of nodes from {} to {}", NODES.start(), NODES.end())) }
}

const HASH: &str = "hash";
/// The hash of all counters.
const HASH_NAME: &str = "kvfair:counters";

fn check_counters(value: &str) -> Result<(), String> {
    if ["keys", HASH].contains(&value) { Ok(()) } else { Err("keys or hash".to_string()) }
}

/// What one product has of its own.
pub struct RespProduct {
    /// The INFO that tells, among all else, whether the server still reads its data from disk.
    pub info: &'static [&'static [u8]],
    /// What INFO tells besides the version: what moves numbers, and what shows lost data.
    pub informed: &'static [&'static str],
    /// What of INFO is another one once the server was started again.
    pub started: &'static str,
    /// What CONFIG GET is asked for: all that could move a number or break a durability level.
    pub settings: &'static [&'static str],
    /// The scheme of a URL by which a cluster of such servers is reached, where there are any.
    pub by_url: Option<&'static str>,
    /// An error where what is in force is not what was asked for.
    pub check: Check,
}

/// Is given what was asked for, the settings in force, and what messages call the server.
type Check = fn(&Launch, &BTreeMap<String, String>, &str) -> Result<(), Fault>;

/// Opens a server of `product`, which messages call `name`.
pub fn open(name: &'static str, product: &'static RespProduct, launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    if !launch.peers.is_empty() {
        return open_cluster(name, product, launch);
    }
    let (no_touch, is_node) = (OnceLock::new(), launch.settings.contains_key(CLUSTER.name));
    Ok(Box::new(RespServer { name, product, launch: launch.clone(), no_touch, is_node }))
}

struct RespServer {
    name: &'static str,
    product: &'static RespProduct,
    launch: Launch,
    /// Set where what is opened from now on must not count as a use of a key: whether the server knows how.
    no_touch: OnceLock<bool>,
    /// It is asked as one node of a cluster.
    is_node: bool,
}

impl RespServer {
    fn counters(&self) -> Counters {
        match self.launch.settings.get(COUNTERS.name).map(String::as_str) {
            Some(HASH) => Counters::Hash(HASH_NAME),
            _ => Counters::Keys,
        }
    }

    fn connect(&self) -> Result<Blocking<Resp>, Fault> {
        let login = self.launch.login.clone();
        let number = login.database.map(|database| {
            let wrong = |_| Fault::Unsupported(format!("{} has no database '{database}', only numbers", self.name));
            database.parse().map_err(wrong)
        });
        let greeting = Greeting { user: login.user, password: login.password, database: number.transpose()? };
        let codec = Resp::new(self.name, greeting).with(self.counters());
        let mut session = Blocking::open(self.name, &self.launch, codec)?;
        if self.no_touch.get() == Some(&true) {
            drawn::no_touch(session.connection())?;
        }
        Ok(session)
    }
}

impl Store for RespServer {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let session = self.connect()?;
        Ok(match replication::wait(&self.launch.settings) {
            0 => Box::new(session),
            replicas => Box::new(replicas::Waiting::new(session, replicas, self.launch.patience)),
        })
    }

    /// A write that waits for replicas is two questions, which a session asks one after the other.
    fn connection(&self) -> Option<Result<Connection, Fault>> {
        let waits = replication::wait(&self.launch.settings) > 0;
        (!waits).then(|| self.connect().and_then(|session| session.into_line(PING, resp::pong)))
    }

    /// Fails while the server still reads its data from disk, and where its settings do not keep the durability level.
    fn facts(&self) -> Result<Facts, Fault> {
        let mut session = self.connect()?;
        let connection = session.connection();
        let product = self.product;
        let info = match info(connection, product.info) {
            // A user who may not ask goes on without: `room` has been asked before. A missing login is an error.
            Err(Fault::Refused(words)) if !is_login(&words) => BTreeMap::new(),
            info => info?,
        };
        if info.get("loading").is_some_and(|loading| loading == "1") {
            return Err(Fault::Refused(format!("LOADING {} still reads its data from disk", connection.name())));
        }
        let is_node = !self.is_node && info.get("cluster_enabled").is_some_and(|enabled| enabled == "1");
        if let Some(scheme) = product.by_url.filter(|_| is_node) {
            let (name, place) = (connection.name(), &self.launch.place);
            return Err(Fault::Unsupported(format!("{name} is a node of a cluster: {scheme}://{place} is all of it")));
        }
        let mut settings = config(connection, product.settings)?;
        (product.check)(&self.launch, &settings, connection.name())?;
        settings.extend(product.informed.iter().filter_map(|&name| Some((name.to_string(), info.get(name)?.clone()))));
        if let Some(&knows) = self.no_touch.get() {
            let policy = info.get("maxmemory_policy").or_else(|| settings.get("maxmemory-policy"));
            settings.insert(LAST_USE.to_string(), drawn::last_use(knows, policy));
        }
        Ok(Facts {
            version: version_informed(self.name, &info),
            client_library: "resp".to_string(),
            increment: if let Counters::Hash(_) = self.counters() { "HINCRBY" } else { "INCRBY" }.to_string(),
            settings,
            process_id: info.get("process_id").and_then(|id| id.parse().ok()),
            started: info.get(product.started).cloned(),
            ..Facts::default()
        })
    }

    /// Nothing is left to do: the log is written (`crash`) or synced (`power`) before the answer leaves the server.
    /// <https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/>
    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// <https://redis.io/docs/latest/commands/info/>, section Replication.
    fn log_position(&self) -> Result<Option<LogPosition>, Fault> {
        let told = info(self.connect()?.connection(), &[b"INFO", b"replication"])?;
        Ok(position_told(&told))
    }

    fn failover(&self) -> Option<&dyn Failover> {
        Some(self)
    }

    /// Records of the selected database: of a hash of counters each of its fields, and not the hash itself.
    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut session = self.connect()?;
        let keys = counted(session.connection(), &[b"DBSIZE"])?;
        let (Some(keys), Counters::Hash(hash)) = (keys, self.counters()) else { return Ok(keys) };
        let fields = counted(session.connection(), &[b"HLEN", hash.as_bytes()])?;
        Ok(fields.map(|fields| (keys + fields).saturating_sub(u64::from(fields > 0))))
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

/// What the server counts, where it does: what speaks the protocol need not.
fn counted(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<Option<u64>, Fault> {
    match ask(connection, parts)? {
        Value::Number(count) => Ok(u64::try_from(count).ok()),
        Value::Error(words) if is_login(&words) => Err(Fault::Refused(words)),
        Value::Error(_) => Ok(None),
        other => Err(strange(connection, &String::from_utf8_lossy(parts[0]), &other)),
    }
}

/// Whether an error is about who asks and when, and not about what was asked.
fn is_login(words: &str) -> bool {
    ["NOAUTH", "LOADING"].iter().any(|code| words.contains(code))
}

fn ask(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<Value, Fault> {
    let mut request = Vec::new();
    command(parts, &mut request);
    connection.exchange(&request, values())
}

fn strange(connection: &BlockingConnection, asked: &str, answer: &Value) -> Fault {
    let answer = readable(format!("{answer:?}").as_bytes(), 120);
    Fault::Garbled(format!("{}: {asked} answered {answer}", connection.name()))
}

/// All that INFO says, by name.
fn info(connection: &mut BlockingConnection, parts: &[&[u8]]) -> Result<BTreeMap<String, String>, Fault> {
    let mut request = Vec::new();
    command(parts, &mut request);
    match connection.exchange(&request, bounded(values()))? {
        Value::Text(text) => Ok(named_lines(&String::from_utf8_lossy(&text))),
        Value::Error(words) if words.starts_with("NOAUTH") => {
            Err(super::password::refused(connection.name(), OF_NO_USER, &words))
        }
        Value::Error(words) => Err(Fault::Refused(format!("{}: {words}", connection.name()))),
        other => Err(strange(connection, "INFO", &other)),
    }
}

/// A primary tells what it has written, a replica what it has applied of that.
fn position_told(told: &BTreeMap<String, String>) -> Option<LogPosition> {
    let number = |name: &str| -> Option<u64> { told.get(name)?.parse().ok() };
    let is = |name: &str, text: &str| told.get(name).is_some_and(|found| found == text);
    if is("role", "master") {
        return Some(LogPosition { bytes: number("master_repl_offset")?, is_linked: true });
    }
    // -1 or nothing before the first copy of the primary is there.
    let is_linked = is("master_link_status", "up") && !is("master_sync_in_progress", "1");
    Some(LogPosition { bytes: number("slave_repl_offset").unwrap_or(0), is_linked })
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
pub const CONFIG_GET: &str = "CONFIG GET";

/// The settings in force. Hosted servers may refuse CONFIG: then that is what is said.
fn config(connection: &mut BlockingConnection, names: &[&str]) -> Result<BTreeMap<String, String>, Fault> {
    let mut settings = BTreeMap::new();
    for name in names {
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

/// "redis at h:1 does not tell appendonly (CONFIG GET refused: NOPERM)."
pub fn untold(setting: &str, settings: &BTreeMap<String, String>, name: &str) -> String {
    let why = settings.get(CONFIG_GET).map_or_else(String::new, |why| format!(" ({CONFIG_GET} {why})"));
    format!("{name} does not tell {setting}{why}.")
}

/// Where each product tells its version in INFO, and what stands before it there. The first of them that is told
/// counts: for the sake of clients others tell a `redis_version` too.
const VERSIONS: &[(&str, &str, &str)] =
    &[("dragonfly", "dragonfly_version", "df-v"), ("valkey", "valkey_version", ""), ("redis", "redis_version", "")];

/// The version, with the server's own name where that is not the one it was asked by: some systems install
/// `redis-server` as another name for `valkey-server`.
fn version_informed(name: &str, info: &BTreeMap<String, String>) -> String {
    let told = VERSIONS.iter().find_map(|&(product, field, before)| Some((product, info.get(field)?, before)));
    let Some((product, text, before)) = told else { return UNKNOWN.to_string() };
    let version = text.strip_prefix(before).unwrap_or(text);
    if product == name { version.to_string() } else { format!("{product} {version}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_command_are_taken_apart() {
        let told = named_lines("evicted_keys:3\r\ncmdstat_set:calls=2,usec=18,usec_per_call=9.00\r\nrole:master\r\n");
        let said = StoreStats::of_texts(told.iter().flat_map(|(name, text)| apart(name, text)));
        let set = [("cmdstat_set.calls", 2.0), ("cmdstat_set.usec", 18.0), ("cmdstat_set.usec_per_call", 9.0)];
        assert_eq!(said, set.into_iter().chain([("evicted_keys", 3.0)]).collect());
    }

    #[test]
    fn positions_are_read_from_what_primary_and_replica_tell() {
        let told = |text: &str| position_told(&named_lines(text));
        let primary = told("role:master\r\nconnected_slaves:2\r\nmaster_repl_offset:1400\r\n");
        assert_eq!(primary, Some(LogPosition { bytes: 1400, is_linked: true }));
        let offsets = "slave_read_repl_offset:1400\r\nslave_repl_offset:1386\r\n";
        let applied = told(&format!("role:slave\r\nmaster_link_status:up\r\n{offsets}"));
        assert_eq!(applied, Some(LogPosition { bytes: 1386, is_linked: true }), "what is read is not applied yet");
        let lost = "role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:-1\r\n";
        assert_eq!(told(lost), Some(LogPosition { bytes: 0, is_linked: false }));
        assert_eq!(told("role:master\r\n"), None);
    }

    #[test]
    fn a_server_under_another_name_is_told_by_its_own() {
        let redis = named_lines("# Server\r\nredis_version:7.0.15\r\n");
        let valkey = named_lines("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n");
        assert_eq!(version_informed("redis", &redis), "7.0.15");
        assert_eq!(version_informed("valkey", &valkey), "9.1.2");
        assert_eq!(version_informed("redis", &valkey), "valkey 9.1.2");
        assert_eq!(version_informed("valkey", &redis), "redis 7.0.15");
        let dragonfly = named_lines("# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\n");
        assert_eq!(version_informed("dragonfly", &dragonfly), "1.27.1");
        assert_eq!(version_informed("redis", &dragonfly), "dragonfly 1.27.1", "it is no Redis 7.4");
        assert_eq!(version_informed("dragonfly", &redis), "redis 7.0.15");
        assert_eq!(version_informed("redis", &BTreeMap::new()), "unknown", "no product is assumed");
    }
}
