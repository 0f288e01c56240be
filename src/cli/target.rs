//! Targets as people type them: `redis`, `redis+unix`, `redis://host:6379/2`, `lmdb:/dir`, each with `?name=value`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use url::Url;

use super::{Usage, login, renamed, replicas};
use crate::harness::pin::PROCESSORS;
use crate::harness::plan::{Chosen, TargetClients};
use crate::harness::{machine, serve};
use crate::model::fans::Encoding;
use crate::model::logins;
use crate::model::trial::{Cache, CacheCounts, Target, Transport, Via};
use crate::model::units;
use crate::stores::array;
use crate::stores::features;
use crate::stores::replication;
use crate::stores::{self, Adapter, Login, Place, Role};

/// What stands before a target that is to be behind a cache.
const CACHED: &str = "cached:";
/// Settings of every server that is started here.
const OF_SERVERS: [&str; 2] = [serve::PROGRAM, PROCESSORS];
/// Schemes that mean TLS.
const WITH_TLS: &[&str] = &["rediss", "valkeys"];

/// The targets that were typed, with the passwords of those by URL that name none. What is wrong with them is a usage
/// error.
pub fn parse_all<'a>(typed: impl IntoIterator<Item = &'a String>) -> Result<Vec<Chosen>> {
    let parsed: Result<Vec<Chosen>> = typed.into_iter().map(|text| parse(text)).collect();
    let mut chosen = parsed.map_err(|error| anyhow!(Usage(format!("{error:#}"))))?;
    login::complete(&mut chosen)?;
    Ok(chosen)
}

/// The target that `text` names. No message repeats what may be a login in it.
pub fn parse(text: &str) -> Result<Chosen> {
    read(text).with_context(|| format!("target '{}'", shown(text)))
}

fn read(text: &str) -> Result<Chosen> {
    let (cached, bare) = text.strip_prefix(CACHED).map_or(("", text), |bare| (CACHED, bare));
    let (place_text, query) = bare.split_once('?').unwrap_or((bare, ""));
    let (name, rest) = match place_text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (place_text, None),
    };
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-".contains(letter));
    if text.contains('@') && !(is_name && rest.is_none_or(|rest| rest.starts_with("//")) || is_known(name)) {
        bail!("it begins with no store's name\nhint: put the login between STORE:// and @");
    }
    if let (false, Some((host, port, path))) = (is_known(name), address(place_text)) {
        bail!("it names no store\nhint: {}", urls_of(host, port, path));
    }
    let (adapter, transport) = named(name)?;
    if query.contains('@') {
        bail!("an @ behind the question mark\nhint: in a password write %3F for ? and %40 for @; elsewhere %40 for @");
    }
    let mut asked = Asked::read(adapter, query, !cached.is_empty())?;
    let placed = rest.map(|rest| place(adapter, transport, rest, &mut asked)).transpose()?;
    if let Some(name) = OF_SERVERS.iter().find(|name| placed.is_some() && asked.settings.contains_key(**name)) {
        bail!("?{name}= is for a server that is started here");
    }
    if let Some(nodes) = adapter.nodes(&asked.settings) {
        check_nodes(adapter, nodes, placed.is_some(), transport)?;
    }
    let (place, shown) =
        placed.map_or((None, name.to_string()), |(place, shown)| (Some(place), format!("{name}:{shown}")));
    let label = asked.label.unwrap_or_else(|| with_settings(format!("{cached}{shown}"), query));
    let target = Target {
        label: logins::hidden_word(&label),
        store: adapter.name.to_string(),
        baseline: adapter.role.is_baseline(),
        batch: adapter.role == Role::Batch,
        transport,
        managed: place.is_none(),
        cache: asked.cache,
        settings: asked.settings,
    };
    replicas::check(adapter, place.as_ref(), &target)?;
    Ok(Chosen {
        target,
        adapter,
        place,
        kept: None,
        login: asked.login,
        via: Via::Portable,
        encoding: Encoding::default(),
        asking: TargetClients::default(),
        changed: Vec::new(),
        first_used: Default::default(),
    })
}

/// Several servers are one store: those that kvfair starts, or those that one in a URL knows.
fn check_nodes(adapter: &Adapter, nodes: u32, by_url: bool, transport: Transport) -> Result<()> {
    match (nodes, by_url) {
        (0, false) => bail!("it is reached by URL\nhint: {}://HOST:PORT; {}", adapter.name, adapter.get_it),
        (1.., true) => bail!("?cluster= is for servers that are started here\nhint: redis-cluster://HOST:PORT"),
        (1.., false) if transport != Transport::Tcp => {
            bail!("the nodes of a cluster reach each other over TCP\nhint: {}?cluster={nodes}", adapter.name)
        }
        _ => Ok(()),
    }
}

/// All targets that this machine can run: each store over each of its transports, if its program is here.
pub fn all_here() -> Vec<Chosen> {
    let names = stores::ALL
        .iter()
        .filter(|adapter| adapter.role.is_offered() && is_here(adapter))
        .flat_map(|adapter| adapter.transports.iter().map(|transport| managed_name(adapter, *transport)));
    names.map(|name| parse(&name).expect("our own names parse")).collect()
}

/// The baselines that are filled once and then only read.
pub fn only_read() -> Vec<Chosen> {
    let adapters = stores::ALL.iter().filter(|adapter| adapter.role == Role::ReadOnly);
    adapters.map(|adapter| parse(adapter.name).expect("our own names parse")).collect()
}

/// What stands beside a sweep of these targets to show how far it could go: one for each protocol and transport.
pub fn ceilings(chosen: &[Chosen]) -> Vec<Chosen> {
    let mut names = BTreeSet::new();
    for Chosen { target, adapter, .. } in chosen.iter().filter(|chosen| is_like_a_ceiling(chosen)) {
        let protocol = target.settings.get("protocol").map(String::as_str);
        let Some(protocol) = adapter.server.and_then(|server| (server.ceiling)(protocol)) else { continue };
        let name = managed_name(&array::ARRAY, target.transport);
        names.insert(if protocol == "resp" { name } else { format!("{name}?protocol={protocol}") });
    }
    let beside = names.iter().map(|name| parse(name).expect("our own names parse"));
    beside.filter(|one| chosen.iter().all(|chosen| chosen.target.label != one.target.label)).collect()
}

/// Its clients share few threads, as those of a ceiling do.
fn is_like_a_ceiling(chosen: &Chosen) -> bool {
    chosen.target.cache.is_none() && replication::count(&chosen.target.settings) == 0
}

pub fn is_here(adapter: &Adapter) -> bool {
    match adapter.server {
        Some(server) => crate::harness::serve::program(server).is_some(),
        None => (adapter.version)().is_ok(),
    }
}

/// What a target of ours is called: `redis`, `redis+unix`.
pub fn managed_name(adapter: &Adapter, transport: Transport) -> String {
    let suffix = if transport == Transport::Unix { "+unix" } else { "" };
    format!("{}{suffix}", adapter.name)
}

/// The store and transport of `redis`, `redis+unix`, `unix`.
fn named(name: &str) -> Result<(&'static Adapter, Transport)> {
    let (bare, unix) = name.strip_suffix("+unix").map_or((name, false), |bare| (bare, true));
    let adapter = stores::find(bare).or_else(|| of_scheme(bare)).ok_or_else(|| unknown(name))?;
    let transport = match (adapter.server, unix || bare == stores::SOCKET) {
        (None, true) => bail!("{} runs in process: it has no Unix socket", adapter.name),
        (None, false) => Transport::InProcess,
        (Some(_), true) => Transport::Unix,
        (Some(_), false) => Transport::Tcp,
    };
    if adapter.transports.contains(&transport) {
        Ok((adapter, transport))
    } else {
        bail!("{} has no {transport}", adapter.name)
    }
}

/// Host, port and database of `localhost:6379/2` or `[::1]:6379`: a URL without its store.
fn address(text: &str) -> Option<(&str, u16, &str)> {
    let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (host, port) = authority.rsplit_once(':')?;
    Some((host, port.parse().ok().filter(|_| url::Host::parse(host).is_ok())?, path))
}

/// The URLs that `host:port` may have been meant for: that of the store with this port, or some.
fn urls_of(host: &str, port: u16, path: &str) -> String {
    let servers = || stores::ALL.iter().filter(|adapter| adapter.role.is_offered() && adapter.server.is_some());
    let has_port = |adapter: &&&Adapter| adapter.server.is_some_and(|server| server.port == port);
    let of_port = servers().find(has_port).map(|adapter| format!("{}://{host}:{port}{path}", adapter.name));
    let some =
        || servers().take(3).map(|adapter| format!("{}://{host}:{port}{path}", adapter.name)).collect::<Vec<_>>();
    of_port.unwrap_or_else(|| format!("name the store too: {}, ...", some().join(", ")))
}

fn is_known(name: &str) -> bool {
    let bare = name.trim_end_matches("+unix");
    of_scheme(bare).is_some() || stores::find(bare).is_some()
}

fn of_scheme(name: &str) -> Option<&'static Adapter> {
    stores::ALL.iter().copied().find(|adapter| adapter.schemes.contains(&name))
}

fn unknown(name: &str) -> anyhow::Error {
    if WITH_TLS.contains(&name) {
        return anyhow!("{name}:// is a connection with TLS, which kvfair does not support yet");
    }
    let bare = name.trim_end_matches("+unix");
    if let Some(featured) = features::not_built().find(|featured| featured.name == bare) {
        return anyhow!("{} is not in this build\nhint: {}", featured.name, features::GET_THEM);
    }
    let known = stores::ALL.iter().filter(|adapter| adapter.role.is_offered());
    let names: Vec<String> = known
        .flat_map(|adapter| adapter.transports.iter().map(|transport| managed_name(adapter, *transport)))
        .collect();
    let hint = match super::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    anyhow!("there is no store '{name}'\nhint: {hint}")
}

/// What stands behind the question mark, and what the URL says of a login.
#[derive(Default)]
struct Asked {
    label: Option<String>,
    cache: Option<Cache>,
    settings: BTreeMap<String, String>,
    login: Login,
}

impl Asked {
    fn read(adapter: &Adapter, query: &str, is_cached: bool) -> Result<Asked> {
        let mut asked = Asked::default();
        if is_cached {
            asked.cache = Some(usual_cache());
        }
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "memory" | "count" | "items" | "merge" if is_cached => {
                    let cache = asked.cache.as_mut().expect("it is cached");
                    set_cache(cache, &name, &value)?;
                }
                "name" if value.is_empty() => bail!("?name= needs a name"),
                "name" => asked.label = Some(value.into_owned()),
                // Another build of the same server: a path that does not depend on where kvfair is run.
                serve::PROGRAM if adapter.server.is_some() => {
                    let path = std::path::absolute(value.as_ref())
                        .map_err(|error| anyhow!("?program={value} is no path: {error}"))?;
                    asked.settings.insert(name.into_owned(), path.display().to_string());
                }
                PROCESSORS if adapter.server.is_some() => {
                    asked.settings.insert(name.into_owned(), value.into_owned());
                }
                PROCESSORS => bail!("?processors= is for servers: {} runs in kvfair's process", adapter.name),
                // A number or name of a database, unless the store means something else by it.
                "db" if adapter.server.is_some() && !adapter.settings.iter().any(|own| own.name == "db") => {
                    check_database(adapter, &value).map_err(|why| anyhow!("?db= {why}"))?;
                    asked.login.database = Some(value.into_owned());
                }
                // A Unix socket's URL has no other place for it.
                "user" if adapter.names_databases() => asked.login.user = Some(value.into_owned()),
                _ => {
                    check_setting(adapter, &name, &value)?;
                    asked.settings.insert(name.into_owned(), value.into_owned());
                }
            }
        }
        Ok(asked)
    }
}

/// A cache of which nothing is said: a quarter of the machine's memory.
pub fn usual_cache() -> Cache {
    Cache { memory_bytes: machine::memory_bytes() / 4, counts: CacheCounts::default(), items: None, merge: None }
}

/// `?memory=256MB`, `?count=entries|values`, `?items=10000` and `?merge=1000` of a cache.
fn set_cache(cache: &mut Cache, name: &str, value: &str) -> Result<()> {
    match (name, value) {
        ("memory", size) => {
            let bytes = units::parse_bytes(size).filter(|bytes| *bytes > 0);
            cache.memory_bytes = bytes.ok_or_else(|| anyhow!("?memory={size} is no size such as 256MB or 1GiB"))?;
        }
        ("items", count) => {
            let items = count.parse().ok().filter(|items| *items > 0);
            cache.items =
                Some(items.ok_or_else(|| anyhow!("?items={count} is no number of records, which is 1 or more"))?);
        }
        ("merge", count) => {
            let units = count.parse().ok().filter(|units| *units > 0);
            cache.merge =
                Some(units.ok_or_else(|| anyhow!("?merge={count} is no number of messages, which is 1 or more"))?);
        }
        (_, "entries") => cache.counts = CacheCounts::Entries,
        (_, "values") => cache.counts = CacheCounts::Values,
        (_, other) => bail!("?count={other}: a cache counts entries or values"),
    }
    Ok(())
}

fn check_database(adapter: &Adapter, database: &str) -> Result<(), &'static str> {
    let good = adapter.names_databases() || database.parse::<u32>().is_ok();
    if good { Ok(()) } else { Err("is no database number") }
}

fn check_setting(adapter: &Adapter, name: &str, value: &str) -> Result<()> {
    let Some(setting) = adapter.settings.iter().find(|setting| setting.name == name) else {
        if let Some(new) = renamed::new_name(renamed::SETTINGS, name) {
            bail!("the setting '{name}' is now called '{new}'\nhint: ?{new}={value}");
        }
        let of_servers = adapter.server.map_or(&[][..], |_| &[serve::PROGRAM, PROCESSORS, "db"]);
        let own = adapter.settings.iter().map(|setting| setting.name);
        let names: Vec<&str> = own.chain(["name"]).chain(of_servers.iter().copied()).collect();
        let near = super::nearest(name, names.iter().copied());
        let hint =
            near.map_or_else(|| format!("it has {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
        bail!("{} has no setting '{name}'\nhint: {hint}", adapter.name);
    };
    setting.check(value).map_err(|why| anyhow!("?{name}={value}: {why}"))
}

/// What follows the scheme's colon: where that is, and how it is shown.
fn place(adapter: &Adapter, transport: Transport, rest: &str, asked: &mut Asked) -> Result<(Place, String)> {
    if !matches!(adapter.role, Role::Store | Role::ReadOnly) {
        return if rest.is_empty() {
            Ok((Place::Memory, String::new()))
        } else {
            bail!("{} takes no address and no directory", adapter.name)
        };
    }
    let place = match (transport, rest.strip_prefix("//")) {
        (Transport::Tcp, Some(_)) => return tcp(adapter, rest, asked),
        (Transport::InProcess, Some(path)) => Place::Path(path_of(path)?),
        // A directory that `--keep` left behind: a server is started on it.
        (_, None) => Place::Path(path_of(rest)?),
        (Transport::Unix, Some(path)) => {
            if !path.starts_with('/') {
                bail!("a Unix socket is named by its whole path: {}+unix:///path", adapter.name);
            }
            Place::Unix(path_of(path)?)
        }
    };
    Ok((place, rest.to_string()))
}

/// A path that looks as if it held a login must be one that is there.
fn path_of(text: &str) -> Result<PathBuf> {
    let path = PathBuf::from(text);
    if text.is_empty() {
        bail!("a path is missing");
    }
    if text.contains([':', '@']) && !path.exists() {
        bail!("there is no such path\nhint: put the login between redis:// and @, with two slashes");
    }
    Ok(path)
}

/// `//user:password@host:port/database`, by the standard's rules.
fn tcp(adapter: &Adapter, rest: &str, asked: &mut Asked) -> Result<(Place, String)> {
    let url = Url::parse(&format!("{}:{rest}", adapter.name)).map_err(|error| anyhow!("not a URL: {error}"))?;
    if url.path().contains('@') || url.fragment().is_some() {
        bail!("an @ or # behind the host\nhint: in a password write %2F for /, %3F for ?, %23 for # and %40 for @");
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| anyhow!("the URL names no host"))?;
    let decoded = |text: &str| percent_decoded(text).ok_or_else(|| anyhow!("user and password must be UTF-8"));
    if !url.username().is_empty() {
        asked.login.user = Some(decoded(url.username())?);
    }
    asked.login.password = url.password().filter(|password| !password.is_empty()).map(decoded).transpose()?;
    let mut shown = url.port().map_or_else(|| format!("//{host}"), |port| format!("//{host}:{port}"));
    match url.path().trim_matches('/') {
        "" => {}
        database => {
            check_database(adapter, database).map_err(|why| anyhow!("the URL's path {why}"))?;
            asked.login.database = Some(decoded(database)?);
            shown.push_str(&format!("/{database}"));
        }
    }
    let server = adapter.server.ok_or_else(|| anyhow!("{} is no server", adapter.name))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
    Ok((Place::Tcp { host, port: url.port().unwrap_or(server.port) }, shown))
}

fn percent_decoded(text: &str) -> Option<String> {
    // form_urlencoded decodes percent signs, and would make blanks of plus signs: those are kept.
    let pair = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
    let decoded = url::form_urlencoded::parse(pair.as_bytes()).next()?.1.into_owned();
    (!decoded.contains('\u{fffd}')).then_some(decoded)
}

/// With what was typed behind the question mark, but for `name` and `user`.
fn with_settings(shown: String, query: &str) -> String {
    let is_setting = |text: &&str| !["", "name", "user"].contains(&text.split('=').next().unwrap_or_default());
    let settings: Vec<&str> = query.split('&').filter(is_setting).collect();
    if settings.is_empty() { shown } else { format!("{shown}?{}", settings.join("&")) }
}

/// What was typed, for every message that names it: without a login, however badly that is written.
fn shown(text: &str) -> String {
    logins::hidden_target(text).split('?').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Option<Place> {
        parse(text).unwrap().place
    }

    fn tcp(host: &str, port: u16) -> Option<Place> {
        Some(Place::Tcp { host: host.to_string(), port })
    }

    #[test]
    fn names_and_urls() {
        assert_eq!(place("redis"), None);
        assert_eq!(parse("redis+unix").unwrap().target.transport, Transport::Unix);
        assert_eq!(place("redis://db.example"), tcp("db.example", 6379));
        assert_eq!(place("redis://[::1]:7000/3"), tcp("::1", 7000));
        assert_eq!(parse("redis://h/3").unwrap().login.database.as_deref(), Some("3"));
        assert_eq!(place("memcached://h"), tcp("h", 11211));
        assert_eq!(place("unix:///run/redis.sock?db=2"), Some(Place::Unix(PathBuf::from("/run/redis.sock"))));
        assert_eq!(place("redis+unix:///s"), Some(Place::Unix(PathBuf::from("/s"))));
        assert_eq!(place("redis-cluster://h"), tcp("h", 6379));
        assert_eq!(place("lmdb:/data"), Some(Place::Path(PathBuf::from("/data"))));
    }

    #[test]
    fn databases_of_some_stores_have_names() {
        assert_eq!(place("mysql://me@h/my%20base"), tcp("h", 3306));
        assert_eq!(parse("mysql://me@h/my%20base").unwrap().login.database.as_deref(), Some("my base"));
        let socket = parse("postgres+unix:///run/postgresql?user=me&db=mine").unwrap();
        assert_eq!(socket.place, Some(Place::Unix(PathBuf::from("/run/postgresql"))));
        assert_eq!((socket.login.user.as_deref(), socket.login.database.as_deref()), (Some("me"), Some("mine")));
    }

    #[test]
    fn secrets_stay_out_of_labels_and_messages() {
        let chosen = parse("redis://me:s%40cret@host:1/2?name=mine").unwrap();
        assert_eq!(chosen.target.label, "mine");
        assert_eq!(chosen.login.password.as_deref(), Some("s@cret"));
        assert_eq!(parse("redis://me:s@cret@host:1/2").unwrap().target.label, "redis://host:1/2");
        for text in [
            "redis://me:secret@host:port/2",
            "redis://me:secret/x@host",
            "redis://me:secret?x@host",
            "redis://me:1?name=secret@host",
            "redis://me:1/secret@host",
            "redis://me:1#secret@host",
            "redis://me:secret",
            "redis://:secret@",
            "redis://me:secret%40host",
            "redis:me:secret@host",
            "redis:me:secret",
            "redis:/me:secret@host",
            "redis:///me:secret@host",
            "redis+unix://me:secret@/run/s",
            "redis+unix:///me:secret@host/s",
            "redis//me:secret@host",
            "me:secret@host",
            "secret@host",
            "reddis://me:secret@host",
            "lmdb://me:secret@host",
            "cached:redis:me:secret@host",
            "redis?me:secret@host",
            "redis://host?password=secret",
            "redis://host?db=secret",
            "redis://host/2?x=me:secret@host",
        ] {
            let error = format!("{:#}", parse(text).err().unwrap_or_else(|| panic!("{text}")));
            assert!(!error.contains("secret"), "{text}: {error}");
        }
        let named = |text: &str| parse(text).unwrap().target.label;
        assert_eq!(named("redis?name=redis%3A%2F%2Fme%3Asecret%40host"), "redis://***@host");
        assert_eq!(named("redis://[::1]:7/2?appendonly=yes"), "redis://[::1]:7/2?appendonly=yes");
        assert_eq!(named("cached:redis://me:secret@h/?memory=1MB"), "cached:redis://h?memory=1MB");
        assert_eq!(named("unix:///run/redis.sock?db=2"), "unix:///run/redis.sock?db=2");
    }

    #[test]
    fn mistakes_name_the_way_out() {
        let error = |text: &str| format!("{:#}", parse(text).err().unwrap());
        assert!(error("reddis").contains("did you mean `redis`?"), "{}", error("reddis"));
        assert!(error("ram?nmae=x").contains("did you mean `name`?"));
        assert!(error("lmdb+unix").contains("in process"));
        assert!(error("redis://host/x").contains("no database number"));
        for nodes in ["0", "1", "2", "17", "-3", "x", ""] {
            let words = error(&format!("redis?cluster={nodes}"));
            assert!(words.contains(&format!("?cluster={nodes}: a number of nodes from 3 to 16")), "{words}");
        }
        assert!(error("redis+unix?cluster=3").contains("hint: redis?cluster=3"));
        assert!(error("redis://h:1?cluster=3").contains("hint: redis-cluster://HOST:PORT"));
        assert!(error("redis-cluster").contains("hint: redis-cluster://HOST:PORT; kvfair starts one: redis?cluster=3"));
        assert_eq!(place("valkey-cluster://h:7000"), tcp("h", 7_000));
        assert!(error("redis?cluster=3&replicas=2").contains("the nodes of a cluster have no replicas"));
        assert!(error("redis?cluster=3&wait=1").contains("?wait= is for a store with replicas"));
        assert!(error("memcached?cluster=3").contains("no setting 'cluster'"));
    }
}
