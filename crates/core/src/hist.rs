//! A histogram of op times: nanoseconds, 1 ns to 60 s, three digits; in records as the HDR V2 log's base64 text, which
//! nobody takes apart who does not ask for the times.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

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

    /// The time that a share `quantile` of the ops did not exceed, or `None` where fewer than ten ops lie beyond it:
    /// a percentile q is printed only if n (1 - q) >= 10.
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

    /// How many took so long or longer, to the three digits that are kept.
    pub fn from(&self, time_ns: u64) -> u64 {
        self.0.count_between(time_ns, HIGHEST_NS)
    }

    /// The middle op's time, which needs no tail.
    pub fn median_ns(&self) -> u64 {
        self.0.value_at_quantile(0.5)
    }
}

/// A histogram as it is written: a few kilobytes of text instead of its 221 kB of counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Packed(Box<str>);

impl From<Times> for Packed {
    fn from(times: Times) -> Packed {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&times.0, &mut bytes).expect("no op is counted 2^63 times");
        Packed(STANDARD.encode(&bytes).into())
    }
}

impl Default for Packed {
    fn default() -> Packed {
        Times::default().into()
    }
}

const HEADER_BYTES: usize = 40;

/// What stands before the counts: the cookie of the form V2, how many bytes of counts there are, no offset, our digits
/// and bounds, no ratio.
fn header(counts: &[u8]) -> Vec<u8> {
    let numbers = [0x1c84_9313, counts.len() as u32, 0, u32::from(DIGITS)].map(u32::to_be_bytes).concat();
    [numbers, [1, HIGHEST_NS, 1_f64.to_bits()].map(u64::to_be_bytes).concat()].concat()
}

impl Packed {
    /// What was in it is gone, and to ask for it is an error.
    pub fn forgotten() -> Packed {
        Packed(Box::default())
    }

    /// The times themselves. What is cut short, changed or somebody else's is an error that says so; where it stands is
    /// the caller's to say.
    pub fn times(&self) -> Result<Times, String> {
        let bytes = STANDARD.decode(self.0.as_bytes()).map_err(|error| format!("no base64: {error}"))?;
        let (found, counts) = bytes.split_at_checked(HEADER_BYTES).ok_or("cut short")?;
        // Before it is believed: a length that is not true may ask for gigabytes.
        if found != header(counts) {
            return Err("cut short, or not HdrHistogram's form V2 from 1 ns to 60 s".to_string());
        }
        let read = Deserializer::new().deserialize(&mut bytes.as_slice());
        read.map(Times).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        let mut times = Times::default();
        (0..5_000_u64).for_each(|op| times.record(80 + op * op % 70_000));
        times.record(u64::MAX);
        times
    }

    fn packed(bytes: &[u8]) -> Packed {
        Packed(STANDARD.encode(bytes).into())
    }

    #[test]
    fn what_was_packed_comes_back() {
        for times in [Times::default(), times()] {
            let packed = Packed::from(times.clone());
            assert_eq!(packed.times(), Ok(times));
            let text = serde_json::to_string(&packed).unwrap();
            assert_eq!(serde_json::from_str::<Packed>(&text).unwrap(), packed);
        }
    }

    #[test]
    fn broken_text_is_an_error_and_nothing_else() {
        let bytes = STANDARD.decode(&*Packed::from(times()).0).unwrap();
        assert!(packed(&bytes).times().is_ok());
        (0..bytes.len()).for_each(|length| assert!(packed(&bytes[..length]).times().is_err(), "{length} bytes"));
        for (place, byte) in (0..HEADER_BYTES).flat_map(|place| [1, 0x80, 0xff].map(|byte| (place, byte))) {
            let mut changed = bytes.clone();
            changed[place] ^= byte;
            assert!(packed(&changed).times().is_err(), "byte {place}");
        }
        // A zero run that leads beyond the last bucket, and counts beyond all bounds.
        for counts in [[0x7f, 0xff, 0xff, 0x01, 2].repeat(3), vec![0xfe; 27]] {
            let _ = packed(&[header(&counts), counts].concat()).times();
        }
        assert!(Packed("not base64!".into()).times().unwrap_err().contains("no base64"));
    }
}
