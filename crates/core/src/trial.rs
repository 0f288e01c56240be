//! What is to be done: targets, durability levels, jobs' settings and the trial that a child process is handed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fans::FansSettings;
use super::load::Load;

/// The version of how we measure. Numbers of different methods are never compared.
pub const METHOD: u32 = 2;

/// What survives of acknowledged writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        let levels = Durability::ALL.iter().find(|level| level.to_string() == text);
        levels.copied().ok_or_else(|| format!("'{text}' is no durability level: none, crash or power"))
    }
}

/// The seeds of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Seeds {
    /// Of the order of trials within a block, and of points within a trial.
    pub order: u64,
    /// Of made data: blocks have data of these in turn. Empty where all blocks have the data of the job's own seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<u64>,
}

/// The processors of servers, and those of clients and of the embedded stores that live with them, by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pinned {
    pub server: Vec<u32>,
    pub clients: Vec<u32>,
}

impl fmt::Display for Pinned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |numbers: &[u32]| {
            let plural = if numbers.len() == 1 { "" } else { "s" };
            format!("processor{plural} {}", numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
        };
        write!(out, "server on {}, client on {}", of(&self.server), of(&self.clients))
    }
}

/// Whose settings are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Configuration {
    /// The same durability level, memory and cores for all, each option by name.
    #[default]
    Matched,
    /// As the store's makers ship it: only address and directory are set, and no durability level is asked for.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// How the jobs `fans` and `ngrams` ask a store: the same answer by different means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// What every store can do, one after another: the whole values of pages, or an increment of each term.
    #[default]
    Portable,
    /// A profile's pages in one get-many and one set-many, or a message's terms in one add-many.
    Batch,
    /// The store's own means of counting: a tally of each profile, or an add of each term.
    Native,
    /// A version with every value, and check-and-set: who comes second asks again.
    Cas,
}

impl Via {
    pub const ALL: [Via; 4] = [Via::Portable, Via::Batch, Via::Native, Via::Cas];
}

impl fmt::Display for Via {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Via::Portable => "portable",
            Via::Batch => "batch",
            Via::Native => "native",
            Via::Cas => "cas",
        })
    }
}

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Via::ALL.into_iter().find(|via| via.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no way: portable, batch, native or cas"))
    }
}

/// How many clients share the work of the job `fans`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Each owns the pages whose hash falls to it: no two ever write the same record.
    #[default]
    Pages,
    /// Each takes whole profiles: they meet at the same records.
    Profiles,
}

impl fmt::Display for Split {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Split::Pages => "pages",
            Split::Profiles => "profiles",
        })
    }
}

impl FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Split::Pages, Split::Profiles].into_iter().find(|split| split.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no split: pages or profiles"))
    }
}

/// A write-back cache in the client's memory, in front of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cache {
    pub memory_bytes: u64,
    pub counts: CacheCounts,
    /// The most records that it holds, where that is limited too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// After so many units all that has changed goes to the store, and counters are forgotten. Without it this happens
    /// only where their place is needed and at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<u64>,
}

/// What counts against a cache's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CacheCounts {
    /// Keys, values and what keeping them costs.
    #[default]
    Entries,
    /// The values' bytes alone, as simulators of caches count.
    Values,
}

/// How much of a trial's end state is read back and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    #[default]
    Full,
    /// Keys chosen by their hash, so that the expected state of a job larger than memory fits into it.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JobSettings {
    /// The job's name.
    pub name: String,
    /// Where its data comes from.
    pub data: Data,
    /// Form of the data as the job reads it: `jsonl`, `tsv`, `text`.
    pub format: String,
    /// How a file of the user's is turned into that form, once a run; nothing where it is read as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<ReadAs>,
    /// At most so many units are taken from the data; all of them where `None`.
    pub units: Option<u64>,
    /// So many bad lines may be passed over.
    pub skip_bad: u64,
    #[serde(default)]
    pub via: Via,
    #[serde(default)]
    pub split: Split,
    /// What a job of requests asks; nothing for the other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The times of a recording are kept, so many hundredths as fast as they were; as fast as possible where nothing is
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_percent: Option<u32>,
    /// What the jobs `ngrams` and `lookup` count; nothing else reads it.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub ngrams: NgramSettings,
    /// How the job `lookup` reads; nothing else reads it.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub lookup: LookupSettings,
    /// What the job `fans` writes and asks; nothing else reads it.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub fans: FansSettings,
}

fn is_usual<T: Default + PartialEq>(settings: &T) -> bool {
    *settings == T::default()
}

/// How the job `lookup` reads what a store was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LookupSettings {
    /// The store is restarted first, and its files are dropped from the page cache.
    pub cold: bool,
    /// Processes that read at once, each as one client where they are more than one.
    pub readers: u32,
}

impl LookupSettings {
    pub const READERS_MAX: u32 = 256;
}

impl Default for LookupSettings {
    fn default() -> LookupSettings {
        LookupSettings { cold: false, readers: 1 }
    }
}

/// What the job `ngrams` counts: every run of 1 to `order` neighbouring units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NgramSettings {
    /// 1 to [`NgramSettings::ORDER_MAX`].
    pub order: u32,
    pub unit: NgramUnit,
}

impl NgramSettings {
    pub const ORDER_MAX: u32 = 5;
}

/// Words and pairs of words.
impl Default for NgramSettings {
    fn default() -> NgramSettings {
        NgramSettings { order: 2, unit: NgramUnit::Word }
    }
}

/// What an n-gram is a run of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NgramUnit {
    Word,
    /// A Unicode character.
    Char,
}

/// "--order 2 --unit word".
impl fmt::Display for NgramSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "--order {} --unit {}", self.order, self.unit)
    }
}

impl fmt::Display for NgramUnit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            NgramUnit::Word => "word",
            NgramUnit::Char => "char",
        })
    }
}

impl FromStr for NgramUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [NgramUnit::Word, NgramUnit::Char].into_iter().find(|unit| unit.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no unit of n-grams: word or char"))
    }
}

/// The form of a file of the user's, and which part of it is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadAs {
    /// As `--format` takes it; empty before it is recognised.
    pub form: String,
    /// Columns of CSV and TSV, by name or by number from 1, as they were typed; the usual ones where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Field of JSON Lines, as it was typed: `liked`, or `liked.name` of objects in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl JobSettings {
    /// The recipe's seed; 0 for data that was given.
    pub fn seed(&self) -> u64 {
        match self.data {
            Data::Recipe { seed, .. } => seed,
            Data::File { .. } | Data::Program { .. } => 0,
        }
    }

    /// The command of an own program and what counts as its answer, where that is what is done.
    pub fn program(&self) -> Option<(&str, &Answer)> {
        match &self.data {
            Data::Program { command, answer } => Some((command, answer)),
            Data::Recipe { .. } | Data::File { .. } => None,
        }
    }
}

/// Where a job's data comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// A built-in recipe: its name and seed. The same two give the same bytes everywhere.
    Recipe { name: String, seed: u64 },
    /// A file as the user named it.
    File { path: PathBuf },
    /// Nowhere: a program of the user's does what it does. Its command as it was typed, placeholders and all.
    Program { command: String, answer: Answer },
}

impl Data {
    /// Whether it comes but once: nobody can read it again.
    pub fn is_stdin(&self) -> bool {
        matches!(self, Data::File { path } if is_stdin(path))
    }
}

/// Whether a file is named as standard input is.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// As messages call a file of the user's.
pub fn file_in_words(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_string() } else { path.display().to_string() }
}

/// What counts as the answer of a program of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What it writes to standard output.
    #[default]
    Stdout,
    /// What is in that file when it has ended; placeholders and all.
    File(PathBuf),
    /// Nobody wants to know.
    None,
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Stdout => out.write_str("stdout"),
            Answer::File(path) => write!(out, "{}", path.display()),
            Answer::None => out.write_str("none"),
        }
    }
}

/// A store as the user named it, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Target {
    /// What tables call it: as it was typed, without user, password and name; or the `name` it was given.
    pub label: String,
    pub store: String,
    /// Shows what the job costs without a store around it, and is never ranked.
    pub baseline: bool,
    /// A program that counts everything at once: it stands with others of its kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
    pub transport: Transport,
    /// Started by us, or a server that kvfair did not start or directory.
    pub managed: bool,
    /// The cache in front of it, if there is one.
    #[serde(default)]
    pub cache: Option<Cache>,
    /// What `?name=value` said of the store.
    pub settings: BTreeMap<String, String>,
}

impl Target {
    /// A server that somebody else started.
    pub fn is_guest(&self) -> bool {
        !self.managed && self.transport != Transport::InProcess
    }
}
