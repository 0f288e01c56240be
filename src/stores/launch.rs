//! How a store is opened: one value, which reaches every child process as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Setting;
use crate::model::op::Fault;
use crate::model::trial::{Configuration, Durability};

/// The least memory that a store may use for its caches, in bytes. A gigabyte is what redb takes by itself, and what a
/// server is usually given; it holds every built-in job's data, so that no store is slower for a default that was meant
/// for phones.
const CACHE_BYTES: u64 = 1 << 30;

/// Where a store is and how it is to be opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    pub place: Place,
    pub durability: Durability,
    pub configuration: Configuration,
    pub settings: BTreeMap<String, String>,
    pub login: Login,
    /// Sessions that will be open at once; an embedded store may need to reserve them.
    pub clients: u32,
    /// Bytes of keys and values that the job will leave behind, where that is known: caches must hold them.
    pub data_bytes: Option<u64>,
    /// Bytes of the longest answer that the job can have, where that is known: a longer one is refused.
    pub answer_bytes: Option<u64>,
    /// How long an answer may take before its socket counts as lost.
    pub patience: Duration,
    /// Several processes have an embedded store open at once, and all of them only read.
    pub is_read_by_several: bool,
    /// It is a replica of the server there: one that is to be started, or that is reached.
    pub follows: Option<Place>,
    /// Where the replicas of the store are reached, with the same login.
    pub replicas: Vec<Place>,
}

impl Launch {
    /// For one client, with the store's default settings and no promise of durability.
    pub fn at(place: Place, patience: Duration) -> Launch {
        Launch {
            place,
            durability: Durability::None,
            configuration: Configuration::Matched,
            settings: BTreeMap::new(),
            login: Login::default(),
            clients: 1,
            data_bytes: None,
            answer_bytes: None,
            patience,
            is_read_by_several: false,
            follows: None,
            replicas: Vec::new(),
        }
    }

    /// The value of a setting, or its default.
    pub fn setting<'a>(&'a self, setting: &Setting) -> &'a str {
        self.settings.get(setting.name).map_or(setting.default, String::as_str)
    }

    /// The memory that a store may use for its caches, in bytes: the same for all, and four times the job's data where
    /// that is more, because a page or block of a store is never quite full and an old one may be kept beside its new
    /// one.
    pub fn cache_bytes(&self) -> u64 {
        CACHE_BYTES.max(self.data_bytes.unwrap_or(0).saturating_mul(4))
    }

    /// Whether only address and directory may be set: neither durability level nor memory is matched then.
    pub fn is_shipped(&self) -> bool {
        self.configuration == Configuration::Shipped
    }

    /// The directory of an embedded store.
    pub fn directory(&self) -> Result<&Path, Fault> {
        match &self.place {
            Place::Path(path) => Ok(path),
            other => Err(Fault::Unsupported(format!("an embedded store at {other}"))),
        }
    }
}

/// Where a store is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Nowhere but in this process.
    Memory,
    /// A directory (or, for a store that is one file, that file).
    Path(PathBuf),
    Unix(PathBuf),
    Tcp {
        host: String,
        port: u16,
    },
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Memory => write!(out, "memory"),
            Place::Path(path) | Place::Unix(path) => write!(out, "{}", path.display()),
            Place::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Place::Tcp { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

/// Who we are to a server. Goes to trials over a pipe; never to output, records or command lines.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    /// Its number (Redis) or name.
    pub database: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hidden = self.password.as_ref().map(|_| "***");
        write!(out, "Login {{ user: {:?}, password: {hidden:?}, database: {:?} }}", self.user, self.database)
    }
}
