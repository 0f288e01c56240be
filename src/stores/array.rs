//! `array`: a server of ours that only looks up an array. What a job reaches there is what the generator and the way
//! to a server allow: more, no store can show.

use std::path::Path;

use super::blocking::{Blocking, Connection};
use super::{Adapter, Facts, Launch, Means, Place, Price, Role, Server, Session, Setting, SettingValues, Store};
use crate::model::op::Fault;
use crate::model::trial::{Durability, Transport};
use crate::protocol::Codec;
use crate::protocol::memcache::{self, Memcache, VERSION_QUESTION};
use crate::protocol::resp::{self, PING, Resp, Value};

pub mod server;

pub static ARRAY: Adapter = Adapter {
    name: NAME,
    about: "a server of kvfair that only reads an array: the most that the load generator reaches without a store",
    role: Role::Ceiling,
    transports: &[Transport::Unix, Transport::Tcp],
    schemes: &[],
    settings: &[PROTOCOL],
    keeps: |level| match level {
        Durability::None => Ok("keeps everything in memory"),
        _ => Err("array keeps everything in memory"),
    },
    stays: |_| false,
    lacks: |_| &[Means::Scan, Means::Versions, Means::Tally],
    open,
    server: Some(&Server { own: true, version: version_printed, arguments, ..Server::PLAIN }),
    version: || Err("a server's version is its program's".to_string()),
    get_it: "built in",
};

const NAME: &str = "array";

const PROTOCOL: Setting = Setting {
    name: "protocol",
    about: "what is spoken: redis' resp, or memcached's text",
    default: "resp",
    values: SettingValues::OneOf(&["resp", "text"]),
    price: Price::Nothing,
};

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Array { launch: launch.clone() }))
}

struct Array {
    launch: Launch,
}

impl Array {
    fn speaks_text(&self) -> bool {
        self.launch.setting(&PROTOCOL) == "text"
    }

    fn connect<C: Codec>(&self, codec: C) -> Result<Blocking<C>, Fault> {
        Blocking::open(NAME, &self.launch, codec)
    }

    fn resp(&self) -> Result<Blocking<Resp>, Fault> {
        self.connect(Resp::new(NAME, Default::default()))
    }

    fn text(&self) -> Result<Blocking<Memcache>, Fault> {
        self.connect(Memcache::new(NAME))
    }

    /// A number that it tells of itself.
    fn told(&self, resp_name: &str, text_name: &str) -> Result<u64, Fault> {
        let told = if self.speaks_text() {
            let stats = self.text()?.connection().exchange(b"stats\r\n", memcache::stats())?;
            stats.into_iter().find(|(name, _)| name == text_name).map(|(_, value)| value)
        } else {
            match self.resp()?.connection().exchange(b"*1\r\n$4\r\nINFO\r\n", resp::values())? {
                Value::Text(text) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
                    lines.find(|(name, _)| *name == resp_name).map(|(_, value)| value.to_string())
                }
                _ => None,
            }
        };
        let number = told.as_deref().and_then(|told| told.trim().parse().ok());
        number.ok_or_else(|| Fault::Garbled(format!("{NAME} does not tell its {resp_name}")))
    }
}

impl Store for Array {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        if self.speaks_text() { Ok(Box::new(self.text()?)) } else { Ok(Box::new(self.resp()?)) }
    }

    fn connection(&self) -> Option<Result<Connection, Fault>> {
        Some(if self.speaks_text() {
            self.text().and_then(|session| session.into_line(VERSION_QUESTION, memcache::version))
        } else {
            self.resp().and_then(|session| session.into_line(PING, resp::pong))
        })
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            // As the stores' own adapters call it, so that it can be told whose ceiling it is.
            client_library: if self.speaks_text() { "memcache text" } else { "resp" }.to_string(),
            increment: "none".to_string(),
            process_id: Some(self.told("process_id", "pid")? as u32),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        self.told("records", "curr_items").map(Some)
    }
}

fn version_printed(printed: &str) -> Option<String> {
    printed.strip_prefix("kvfair ").map(|version| version.trim().to_string())
}

fn arguments(launch: &Launch, _: &Path) -> Vec<String> {
    let place = match &launch.place {
        Place::Tcp { host, port } => ["--tcp".to_string(), format!("{host}:{port}")],
        place => ["--unix".to_string(), place.to_string()],
    };
    let protocol = ["--protocol".to_string(), launch.setting(&PROTOCOL).to_string()];
    let clients = ["--clients".to_string(), launch.clients.to_string()];
    std::iter::once("array".to_string()).chain(protocol).chain(clients).chain(place).collect()
}
