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

/// How the job `fans` asks a store: the same answer by different means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Whole values, one page after another: what every store can do.
    #[default]
    Portable,
    /// A profile's pages in one get-many and one set-many.
    Batch,
    /// The store's own means of counting, one op a profile.
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
#[serde(deny_unknown_fields)]
pub struct Cache {
    pub memory_bytes: u64,
    pub counts: CacheCounts,
}

/// What counts against a cache's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub via: Via,
    #[serde(default)]
    pub split: Split,
    /// What a job of requests asks; nothing for the other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

impl JobSettings {
    /// The recipe's seed; 0 for data that was given.
    pub fn seed(&self) -> u64 {
        match self.data {
            Data::Recipe { seed, .. } => seed,
            Data::File { .. } => 0,
        }
    }
}

/// What a job of requests asks, and how much of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Records that are loaded beforehand, and among which keys are drawn.
    pub records: u64,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Requests that a client may have under way.
    pub depth: u32,
    /// Sets or gets alone; both where nothing is said.
    pub only: Option<Only>,
    /// How keys are chosen.
    #[serde(default)]
    pub keys: Keys,
    /// So many gets to so many sets, where both come mixed.
    #[serde(default)]
    pub reads: u32,
    #[serde(default)]
    pub writes: u32,
    /// The numbers of clients of a sweep, each a point of it; one number where there are rates.
    pub clients: Vec<u32>,
    /// Requests a second of all clients together, each a point. Where there are none, every client asks as soon as it
    /// is answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<u64>,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Requests due so early are asked and not timed.
    #[serde(default)]
    pub warm_up_s: u32,
}

impl Load {
    /// All points in the order in which they were named. `requests` are those of each; where nothing is said of them, a
    /// rate is kept for `RATED_S`, and for so many requests at least (method.md R2.16).
    pub fn points(&self, requests: Option<u64>) -> Vec<At> {
        let rated = |rate: u64| requests.unwrap_or((rate * RATED_S).max(RATED_REQUESTS));
        let rates = self.rates.iter().map(|&rate| (self.clients[0], Some(rate), rated(rate)));
        let closed = self.clients.iter().filter(|_| self.rates.is_empty());
        let closed = closed.map(|&clients| (clients, None, requests.unwrap_or_default()));
        let points = (1..).zip(closed.chain(rates));
        points.map(|(number, (clients, rate, requests))| At { number, clients, rate, requests }).collect()
    }
}

/// How long a rate is kept that nobody said otherwise of, and how many requests that is at least.
const RATED_S: u64 = 10;
const RATED_REQUESTS: u64 = 10_000;

/// One point of a trial: who asks, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Counted from 1, in the order in which the points were named.
    pub number: u32,
    pub clients: u32,
    /// Requests a second of all clients together; as fast as they are answered where there is none.
    pub rate: Option<u64>,
    /// Of each part.
    pub requests: u64,
}

impl At {
    /// So many clients who ask as fast as they are answered, `requests` in all.
    pub fn closed(clients: u32, requests: u64) -> At {
        At { number: 1, clients, rate: None, requests }
    }
}

/// How requests are spread over time where they come at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Each independent of all others, as users come.
    #[default]
    Poisson,
    /// All equally far apart.
    Constant,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        })
    }
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Arrivals::Poisson, Arrivals::Constant].into_iter().find(|arrivals| arrivals.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no spread of arrivals: poisson or constant"))
    }
}

/// One of the two directions of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Only {
    Set,
    Get,
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "set" => Ok(Only::Set),
            "get" => Ok(Only::Get),
            _ => Err(format!("'{text}' is neither set nor get")),
        }
    }
}

/// How the key of a question is chosen among the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Keys {
    #[default]
    Uniform,
    /// One after another, all clients together.
    Sequential,
    /// By Zipf's law with this exponent, in thousandths; which key has which rank is drawn once.
    Zipf { thousandths: u32 },
    /// By Zipf's law with exponent 0.99, the records that were loaded last first.
    Latest,
    /// As the benchmark YCSB does by default, and calls zipfian; it is far more even than Zipf's law.
    YcsbZipfian,
    /// So many hundredths of the keys, the first ones, get so many hundredths of the requests.
    Hotspot { keys: u32, requests: u32 },
}

/// The exponent that YCSB and with it everybody uses.
pub const ZIPF_THOUSANDTHS: u32 = 990;

impl fmt::Display for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keys::Uniform => out.write_str("uniform"),
            Keys::Sequential => out.write_str("sequential"),
            Keys::Zipf { thousandths } => write!(out, "zipf:{}", f64::from(*thousandths) / 1000.0),
            Keys::Latest => out.write_str("latest"),
            Keys::YcsbZipfian => out.write_str("ycsb-zipfian"),
            Keys::Hotspot { keys, requests } => write!(out, "hotspot:{keys}/{requests}"),
        }
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match (name, rest) {
            ("uniform", None) => Ok(Keys::Uniform),
            ("sequential", None) => Ok(Keys::Sequential),
            ("latest", None) => Ok(Keys::Latest),
            ("ycsb-zipfian", None) => Ok(Keys::YcsbZipfian),
            ("zipf", None) => Ok(Keys::Zipf { thousandths: ZIPF_THOUSANDTHS }),
            ("zipf", Some(exponent)) => match exponent.parse::<f64>() {
                Ok(exponent) if (0.001..=10.0).contains(&exponent) => {
                    Ok(Keys::Zipf { thousandths: (exponent * 1000.0).round() as u32 })
                }
                _ => Err(format!("'{exponent}' is no exponent from 0.001 to 10, as in zipf:0.99")),
            },
            ("hotspot", None) => Ok(Keys::Hotspot { keys: 20, requests: 80 }),
            ("hotspot", Some(shares)) => {
                let part = |text: &str| text.parse().ok().filter(|part| (1..=99).contains(part));
                let parts = shares.split_once('/').and_then(|(keys, requests)| part(keys).zip(part(requests)));
                let (keys, requests) =
                    parts.ok_or_else(|| format!("'{shares}' is not two parts of 100, as in hotspot:20/80"))?;
                Ok(Keys::Hotspot { keys, requests })
            }
            _ => Err(format!(
                "'{text}' is no choice of keys: uniform, sequential, zipf:0.99, latest, hotspot:20/80, ycsb-zipfian"
            )),
        }
    }
}

impl From<Keys> for String {
    fn from(keys: Keys) -> String {
        keys.to_string()
    }
}

impl TryFrom<String> for Keys {
    type Error = String;

    fn try_from(text: String) -> Result<Keys, String> {
        text.parse()
    }
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
    /// The cache in front of it, if there is one.
    #[serde(default)]
    pub cache: Option<Cache>,
    /// What `?name=value` said of the store.
    pub settings: BTreeMap<String, String>,
}
