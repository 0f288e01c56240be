//! A histogram of op times: nanoseconds, 1 ns to 60 s, three digits; written in records as the HDR V2 log's base64
//! text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize, de, ser};

const HIGHEST_NS: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// Op times in nanoseconds. A time beyond 60 s is counted as 60 s.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Times(Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("constant bounds are valid"))
    }
}

impl Times {
    #[inline]
    pub fn record(&mut self, time_ns: u64) {
        self.0.saturating_record(time_ns);
    }

    /// So many ops that took the same time: answers that came together.
    #[inline]
    pub fn record_many(&mut self, time_ns: u64, ops: u64) {
        self.0.saturating_record_n(time_ns, ops);
    }

    /// Adds another histogram's counts exactly.
    pub fn merge(&mut self, other: &Times) {
        self.0.add(&other.0).expect("all histograms here have the same bounds");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The counts themselves, in nanoseconds, for who writes them as other tools read them.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The time that a share `quantile` of the ops did not exceed, or `None` where fewer than ten ops lie beyond it
    /// (method.md R2.7: a percentile q is printed only if n (1 - q) >= 10).
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.count() as f64 * (1.0 - quantile) >= 10.0).then(|| self.0.value_at_quantile(quantile))
    }

    /// The time that a share of the ops did not exceed, however few lie beyond it: for who says so beside it.
    pub fn value_at(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The time of the op of that rank, counted from 1 in ascending order; the last one's for any rank beyond.
    pub fn at_rank(&self, rank: u64) -> u64 {
        self.0.value_at_quantile((rank as f64 / self.count().max(1) as f64).min(1.0))
    }

    /// The middle op's time, which needs no tail.
    pub fn median_ns(&self) -> u64 {
        self.0.value_at_quantile(0.5)
    }
}

impl Serialize for Times {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(&bytes))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(&text).map_err(de::Error::custom)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).map_err(de::Error::custom)?;
        let mut times = Times::default();
        times.0.add(&read).map_err(de::Error::custom)?;
        Ok(times)
    }
}
