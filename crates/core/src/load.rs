//! What a job of requests asks: of how many records, how they are chosen, by whom and how fast.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::units::parse_bytes;

/// What a job of requests asks, and how much of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Records that are loaded beforehand, and among which keys are drawn.
    pub records: u64,
    /// Bytes of each value; of the first point's where they are swept over.
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
    /// How long a rate is kept whose requests nobody numbered; 10 seconds where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated_s: Option<u32>,
    /// Requests due so early are asked and not timed.
    #[serde(default)]
    pub warm_up_s: u32,
    /// Each key's values have a length of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Bytes of values, each a point, where they are swept over; all records are loaded anew for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Keys that are asked for at once, each a point; one by one where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<u32>,
    /// Of each value, so much compresses to nothing; the rest not at all.
    #[serde(default = "half", skip_serializing_if = "is_half")]
    pub compressible_percent: u32,
    /// Connections that are lost are opened again, and what was under way on them is asked once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnect: bool,
    /// Nothing is loaded or written: `records` is the most keys that are drawn of those that the store holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Each key is set by one client alone, so that its versions have an order: where a target has replicas.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_writer: bool,
}

/// The most records of one scan: YCSB's default.
pub const SCANNED_MAX: u32 = 100;

/// What compresses of a value unless another part is asked for.
pub const COMPRESSIBLE_PERCENT: u32 = 50;

fn half() -> u32 {
    COMPRESSIBLE_PERCENT
}

fn is_half(percent: &u32) -> bool {
    *percent == COMPRESSIBLE_PERCENT
}

/// What the points of a job of requests differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Swept {
    Clients,
    Rate,
    ValueBytes,
    Batch,
}

impl Load {
    /// What is swept over; the number of clients where it is nothing.
    pub fn swept(&self) -> Swept {
        match (self.rates.is_empty(), self.sizes.is_empty(), self.batches.len() <= 1) {
            (false, ..) => Swept::Rate,
            (_, false, _) => Swept::ValueBytes,
            (.., false) => Swept::Batch,
            _ => Swept::Clients,
        }
    }

    /// Bytes of the longest value.
    pub fn longest_value(&self) -> u64 {
        let spread = match self.spread {
            Some(Spread::Range { high, .. }) => high,
            Some(Spread::Etc) => VALUE_BYTES_MAX,
            None => 0,
        };
        u64::from(self.sizes.iter().copied().chain([self.value_bytes, spread]).max().unwrap_or(0))
    }

    /// The most values of one answer: those of a batch, or of the records of a scan.
    pub fn values_at_once(&self) -> u32 {
        self.batches.iter().copied().max().unwrap_or(1).max(SCANNED_MAX)
    }

    /// All points in the order in which they were named, `requests` each, or the `usual` ones where nothing is said. A
    /// rate is then kept for `rated_s`, and for so many requests at least.
    pub fn points(&self, requests: Option<u64>, usual: u64) -> Vec<At> {
        let rated_s = self.rated_s.map_or(RATED_S, u64::from);
        let rated = |rate: u64| requests.unwrap_or_else(|| rate.saturating_mul(rated_s).max(RATED_REQUESTS));
        // One batch is the same at all points.
        let batch = if let [batch] = self.batches[..] { batch } else { 1 };
        let closed = |clients: u32| {
            let (value_bytes, requests) = (self.value_bytes, requests.unwrap_or(usual));
            At { number: 1, clients, rate: None, requests, value_bytes, batch }
        };
        let first = closed(self.clients.first().copied().unwrap_or(1));
        // One of them is swept over; the command line sees to that.
        let points: Vec<At> = if !self.rates.is_empty() {
            self.rates.iter().map(|&rate| At { rate: Some(rate), requests: rated(rate), ..first }).collect()
        } else if !self.sizes.is_empty() {
            let fewer = |value_bytes: u32| usual.min(SIZED_BYTES / u64::from(value_bytes.max(1))).max(SIZED_REQUESTS);
            let sized =
                |value_bytes| At { value_bytes, requests: requests.unwrap_or_else(|| fewer(value_bytes)), ..first };
            self.sizes.iter().copied().map(sized).collect()
        } else if self.batches.len() > 1 {
            self.batches.iter().map(|&batch| At { batch, ..first }).collect()
        } else {
            self.clients.iter().map(|&clients| closed(clients)).collect()
        };
        (1..).zip(points).map(|(number, point)| At { number, ..point }).collect()
    }
}

/// Large values are asked for less often: so many bytes of them, but so often at least.
const SIZED_BYTES: u64 = 1 << 30;
const SIZED_REQUESTS: u64 = 1_000;

/// How long a rate is kept that nobody said otherwise of, in seconds, and how many requests that is at least.
const RATED_S: u64 = 10;
const RATED_REQUESTS: u64 = 10_000;

/// One point of a trial: who asks, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct At {
    /// Counted from 1, in the order in which the points were named.
    pub number: u32,
    pub clients: u32,
    /// Requests a second of all clients together; as fast as they are answered where there is none.
    pub rate: Option<u64>,
    /// Of each part.
    pub requests: u64,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Keys that are asked for at once.
    pub batch: u32,
}

impl At {
    /// So many clients who ask as fast as they are answered, `requests` in all; of values this says nothing.
    pub fn closed(clients: u32, requests: u64) -> At {
        At { number: 1, clients, rate: None, requests, value_bytes: 0, batch: 1 }
    }
}

/// How requests are spread over time where they come at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Each independent of all others, as users come.
    #[default]
    Poisson,
    /// All equally far apart.
    Constant,
    /// When they came while they were recorded.
    Recorded,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
            Arrivals::Recorded => "recorded",
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

/// How the lengths of values differ from key to key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub enum Spread {
    /// From so many bytes to so many, all as often.
    Range { low: u32, high: u32 },
    /// As in the pool ETC of Facebook's memcached: mostly short, some long.
    Etc,
}

/// The longest value.
pub const VALUE_BYTES_MAX: u32 = 64 << 20;

impl fmt::Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Range { low, high } => write!(out, "{low}-{high}"),
            Spread::Etc => out.write_str("etc"),
        }
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "etc" {
            return Ok(Spread::Etc);
        }
        let bytes = |text: &str| parse_bytes(text).filter(|bytes| (1..=u64::from(VALUE_BYTES_MAX)).contains(bytes));
        match text.split_once('-').and_then(|(low, high)| bytes(low).zip(bytes(high))) {
            Some((low, high)) if low <= high => Ok(Spread::Range { low: low as u32, high: high as u32 }),
            _ => Err(format!("'{text}' is no range of bytes such as 16-4k, from 1 to {VALUE_BYTES_MAX}")),
        }
    }
}

impl From<Spread> for String {
    fn from(spread: Spread) -> String {
        spread.to_string()
    }
}

impl TryFrom<String> for Spread {
    type Error = String;

    fn try_from(text: String) -> Result<Spread, String> {
        text.parse()
    }
}

/// One of the two directions of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
