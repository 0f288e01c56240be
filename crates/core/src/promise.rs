//! A promise to users, and the highest rate at which a target keeps it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::record::{Outcome, Record};

/// What is promised: a share of all requests is answered within a time from when they were due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    pub quantile: f64,
    pub limit_ns: u64,
}

/// What is promised where nothing else is asked for.
pub const USUAL: &str = "p99:1ms";

/// From this part of what a closed loop reaches a search begins.
pub const SEARCHED_FROM: f64 = 0.1;

/// No lower rate is tried of a target that reaches so many requests a second in a closed loop.
pub fn lowest_rate(closed_per_s: f64) -> u64 {
    (rounded(closed_per_s * SEARCHED_FROM) / 8).max(1)
}

/// A rate of three digits.
pub fn rounded(rate: f64) -> u64 {
    let magnitude = 10_f64.powi((rate.max(1.0).log10().floor() as i32 - 2).max(0));
    ((rate / magnitude).round() * magnitude).max(1.0) as u64
}

/// Why a trial of a search tells of no rate; nothing where it does.
pub fn failure(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Refused { reason } | Outcome::Failed { reason } | Outcome::Missing { reason, .. } => {
            Some(reason.clone())
        }
        Outcome::LeftOut { reason, .. } => Some(reason.clone()),
        Outcome::TimedOut { after_s, .. } => Some(format!("cut off after {after_s} s")),
        Outcome::Finished if record.is_right() => None,
        Outcome::Finished => Some("its answers were wrong".to_string()),
    }
}

/// Trials in a row that must keep it before a rate is said to.
pub const CONFIRMATIONS: u32 = 3;

/// What one rate was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judged {
    Kept,
    Broken,
    /// The quantile's own interval has the limit in it.
    Unclear,
}

impl Promise {
    /// Of a part of a step, which may have missed its rate.
    pub fn judged_at_rate(self, is_kept: bool, (lower_ns, upper_ns): (u64, u64)) -> Judged {
        if is_kept { self.judged(lower_ns, upper_ns) } else { Judged::Broken }
    }

    /// By the ends of the quantile's own interval, in nanoseconds.
    pub fn judged(self, lower_ns: u64, upper_ns: u64) -> Judged {
        match () {
            () if upper_ns <= self.limit_ns => Judged::Kept,
            () if lower_ns > self.limit_ns => Judged::Broken,
            () => Judged::Unclear,
        }
    }
}

/// Of times, in nanoseconds.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl fmt::Display for Promise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.quantile * 1e6).round() / 1e4;
        let scale = UNITS.iter().rev().find(|(_, scale)| self.limit_ns as f64 >= *scale).unwrap_or(&UNITS[0]);
        write!(out, "p{hundredths} at most {} {}", self.limit_ns as f64 / scale.1, scale.0)
    }
}

impl FromStr for Promise {
    type Err = String;

    /// `p99:1ms`, `p99.9:250us`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no promise such as p99:1ms or p99.9:250us");
        let (quantile, limit) = text.split_once(':').ok_or_else(wrong)?;
        let quantile: f64 = quantile.strip_prefix('p').and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
        let scaled =
            UNITS.iter().find_map(|(unit, scale)| Some((limit.strip_suffix(unit)?.parse::<f64>().ok()?, scale)));
        let limit_ns = scaled.map(|(number, scale)| number * scale).ok_or_else(wrong)?;
        // A histogram ends at a minute, and ten requests must lie beyond the quantile of a step.
        if (50.0..=99.9).contains(&quantile) && (1e3..=6e10).contains(&limit_ns) {
            Ok(Promise { quantile: quantile / 100.0, limit_ns: limit_ns as u64 })
        } else {
            Err(format!("'{text}': from p50 to p99.9, and from 1us to 60s"))
        }
    }
}

/// Why nothing is said of a target's rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRate {
    /// The machine disturbed a step each time that it was tried.
    Disturbed,
    /// The search had no more time.
    TimeOver,
    /// Its trials do not tell how its search ended.
    Untold,
}

/// What became of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    pub target: String,
    /// Requests a second of the same clients that each ask as soon as they are answered; nothing where it is not known.
    pub closed_per_s: Option<f64>,
    /// The highest rate that was confirmed; none where the lowest one tried broke the promise.
    pub rate: Option<u64>,
    /// The lowest rate that was tried and broke it.
    pub fails_at: Option<u64>,
    /// The promised quantile of the response at that rate, the worst of the last trials in a row.
    pub response_ns: Option<u64>,
    pub steps: u32,
    /// Nothing is said of the target. In JSON it is whether that is so.
    #[serde(serialize_with = "whether")]
    pub unclear: Option<NoRate>,
    /// Why there is nothing more to say.
    pub reason: String,
}

fn whether<S: Serializer>(unclear: &Option<NoRate>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(unclear.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises() {
        assert_eq!("p99:1ms".parse(), Ok(Promise { quantile: 0.99, limit_ns: 1_000_000 }));
        let fine: Promise = "p99.9:250us".parse().unwrap();
        assert_eq!((fine.limit_ns, fine.to_string().as_str()), (250_000, "p99.9 at most 250 us"));
        for bad in ["", "p99", "99:1ms", "p99:", "p99:1", "p100:1ms", "p40:1ms", "p99:0ms", "p99:2h", "p99:-1ms"] {
            assert!(bad.parse::<Promise>().is_err(), "{bad}");
        }
    }
}
