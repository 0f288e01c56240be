//! What is to be done: targets, classes, jobs' settings and the trial that a child process is handed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The version of how we measure. Numbers of different methods are never compared.
pub const METHOD: u32 = 1;

/// What survives of acknowledged writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing need survive.
    #[default]
    None,
    /// The store's process is killed.
    Crash,
    /// The machine loses power.
    Power,
}

impl Durability {
    pub const ALL: [Durability; 3] = [Durability::None, Durability::Crash, Durability::Power];
}

impl fmt::Display for Durability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Durability::None => "none",
            Durability::Crash => "crash",
            Durability::Power => "power",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let classes = Durability::ALL.iter().find(|class| class.to_string() == text);
        classes.copied().ok_or_else(|| format!("'{text}' is no durability class: none, crash or power"))
    }
}

/// Whose settings are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Configuration {
    /// The same durability class, memory and cores for all, each option by name.
    #[default]
    Matched,
    /// As the store's makers ship it: only address and directory are set, and no class is asked for.
    Shipped,
}

impl fmt::Display for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Configuration::Matched => "matched",
            Configuration::Shipped => "shipped",
        })
    }
}

impl FromStr for Configuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Configuration::Matched, Configuration::Shipped];
        let found = all.into_iter().find(|configuration| configuration.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no configuration: matched or shipped"))
    }
}

/// How a store is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    InProcess,
    Unix,
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Transport::InProcess => "in-process",
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
        })
    }
}

/// How much of a trial's end state is read back and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    #[default]
    Full,
    /// Keys chosen by their hash, so that the truth of a job larger than memory fits into it.
    Sample,
}

impl fmt::Display for Verify {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verify::Full => "full",
            Verify::Sample => "sample",
        })
    }
}

/// A job and all that shapes its stream of questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSettings {
    /// The job's name.
    pub name: String,
    /// Where its data comes from.
    pub data: Data,
    /// Form of the data: `jsonl`, `tsv`, `text`.
    pub format: String,
    /// At most so many units are taken from the data; all of them where `None`.
    pub units: Option<u64>,
    /// So many bad lines may be passed over.
    pub skip_bad: u64,
}

/// Where a job's data comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// A built-in recipe: its name and seed. The same two give the same bytes everywhere.
    Recipe { name: String, seed: u64 },
    /// A file as the user named it.
    File { path: PathBuf },
}

/// A store as the user named it, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What tables call it: as it was typed, without user, password and name; or the `name` it was given.
    pub label: String,
    pub store: String,
    /// Shows what the job costs without a store around it, and is never ranked.
    pub control: bool,
    pub transport: Transport,
    /// Started by us, or somebody else's server or directory.
    pub managed: bool,
    /// What `?name=value` said.
    pub settings: BTreeMap<String, String>,
}
