//! Numbers of clients, rates and times as they are typed: `1,5,10..100:10,200,300`, `10k,20k`, `20%,50%,80%`, `5m`.

use std::fmt;
use std::time::Duration;

use crate::harness::network::{RTT_LEAST, RTT_MOST};
use crate::model::load::{Spread, VALUE_BYTES_MAX};
use crate::model::network;
use crate::model::units;

/// The most clients that a run may have.
pub const CLIENTS_MAX: u32 = 10_000;
/// The most points of a sweep: more than anybody looks at.
const POINTS_MAX: usize = 1000;

/// The points of a sweep, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points(pub Vec<u32>);

impl fmt::Display for Points {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        out.write_str(&numbers.join(","))
    }
}

/// Numbers and ranges `LO..HI:STEP`, separated by commas; each number once.
pub fn parse(text: &str) -> Result<Points, String> {
    let mut points = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => points.push(number(part)?),
            Some((low, rest)) => {
                let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
                let (low, high, step) = (number(low)?, number(high)?, number(step)?);
                if low > high {
                    return Err(format!("'{part}' ends before it begins"));
                }
                points.extend((low..=high).step_by(step as usize).take(POINTS_MAX));
            }
        }
        if points.len() >= POINTS_MAX {
            return Err(format!("more than {POINTS_MAX} numbers of clients"));
        }
    }
    if let Some(twice) = points.iter().enumerate().find(|(place, one)| points[..*place].contains(one)) {
        return Err(format!("{} clients are named twice", twice.1));
    }
    Ok(Points(points))
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=CLIENTS_MAX) => Ok(number),
        _ => Err(format!("'{text}' is no number from 1 to {CLIENTS_MAX}; as in 1,5,10..100:10,200")),
    }
}

/// The most requests a second: more than any one machine asks.
const RATE_MAX: f64 = 1e7;

/// Requests a second, each a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rates {
    PerSecond(Vec<u64>),
    /// Hundredths of what the slowest target can do.
    Shares(Vec<u32>),
}

/// Rates `20000` or `20k`, or shares `50%`, separated by commas; each once, and one kind of them.
pub fn rates(text: &str) -> Result<Rates, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let once = |all: Vec<u64>| match all.iter().enumerate().find(|(place, one)| all[..*place].contains(one)) {
        Some((_, twice)) => Err(format!("{twice} is named twice")),
        None => Ok(all),
    };
    if parts.iter().all(|part| !part.ends_with('%')) {
        return once(parts.into_iter().map(rate).collect::<Result<_, _>>()?).map(Rates::PerSecond);
    }
    let shares = once(parts.into_iter().map(share).collect::<Result<_, _>>()?)?;
    Ok(Rates::Shares(shares.into_iter().map(|share| share as u32).collect()))
}

/// How fast a recording is replayed: so many hundredths as fast as it was recorded, or as fast as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay(pub Option<u32>);

/// `asap`, `recorded`, `10x`, `0.5x`.
pub fn replay(text: &str) -> Result<Replay, String> {
    match text {
        "asap" => return Ok(Replay(None)),
        "recorded" => return Ok(Replay(Some(100))),
        _ => {}
    }
    match text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok()) {
        Some(times) if (0.01..=1e6).contains(&times) => Ok(Replay(Some((times * 100.0).round() as u32))),
        _ => Err(format!("'{text}' is no speed: asap, recorded, or 0.01x to 1000000x")),
    }
}

/// Sizes of values or batches, each a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeList(pub Vec<u32>);

/// The largest batch: what a client may have under way is bounded besides.
const BATCH_MAX: u64 = 10_000;

/// How long values are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLengths {
    /// All alike, or each a point.
    Alike(SizeList),
    /// Each key's its own.
    Spread(Spread),
}

/// Bytes of values: `32`, `32,1k,32k,1M`, `16-4k` or `etc`.
pub fn values(text: &str) -> Result<ValueLengths, String> {
    if text.contains('-') || text == "etc" {
        return text.parse().map(ValueLengths::Spread);
    }
    listed(text, VALUE_BYTES_MAX.into(), "bytes, as in 32, 1k,32k,1M, 16-4k or etc").map(ValueLengths::Alike)
}

/// Keys of a batch: `100`, or `1,10,100`.
pub fn batches(text: &str) -> Result<SizeList, String> {
    listed(text, BATCH_MAX, "keys, as in 100 or 1,10,100")
}

fn listed(text: &str, most: u64, what: &str) -> Result<SizeList, String> {
    let size = |part: &str| {
        let size = units::parse_bytes(part).filter(|size| (1..=most).contains(size));
        size.map(|size| size as u32).ok_or_else(|| format!("'{part}' is no number from 1 to {most} of {what}"))
    };
    let all: Vec<u32> = text.split(',').map(size).collect::<Result<_, _>>()?;
    match all.iter().enumerate().find(|(place, one)| all[..*place].contains(one)) {
        Some((_, twice)) => Err(format!("{twice} is named twice")),
        None => Ok(SizeList(all)),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let whole = whole(text, RATE_MAX);
    whole.ok_or_else(|| format!("'{text}' is no whole number of requests a second from 1 to 10M, as in 20000 or 20k"))
}

/// How large a job is: `20000`, `20k` or `1.5M`.
pub fn count(text: &str) -> Result<u64, String> {
    counted(text, 1e10, "10 billion")
}

/// How many records are loaded before a job.
pub fn records(text: &str) -> Result<u64, String> {
    counted(text, 1e9, "1 billion")
}

fn counted(text: &str, most: f64, in_words: &str) -> Result<u64, String> {
    whole(text, most).ok_or_else(|| format!("'{text}' is no whole number from 1 to {in_words}, as in 20000 or 20k"))
}

fn whole(text: &str, most: f64) -> Option<u64> {
    let scales = [("k", 1e3), ("M", 1e6)];
    let scaled = scales.into_iter().find_map(|(letter, scale)| Some((text.strip_suffix(letter)?, scale)));
    let (number, scale) = scaled.unwrap_or((text, 1.0));
    let number = number.parse::<f64>().ok()? * scale;
    ((1.0..=most).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

fn share(text: &str) -> Result<u64, String> {
    // Waiting grows as 1 / (1 - load) (M/M/1, Kleinrock, Queueing Systems, 1975): above 95 % chance decides it.
    match text.strip_suffix('%').and_then(|number| number.parse().ok()) {
        Some(share @ 1..=94) => Ok(share),
        _ => Err(format!("'{text}' is no part from 1% to 94%, as in 20%,50%,80%")),
    }
}

/// Round-trip times in microseconds, the first as it was typed first; none where there is no proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rtts(pub Vec<u64>);

/// `0.2ms`, or `0,200us,1ms`; each once.
pub fn rtts(text: &str) -> Result<Rtts, String> {
    let all: Vec<u64> = text.split(',').map(rtt_us).collect::<Result<_, _>>()?;
    match all.iter().enumerate().find(|(place, one)| all[..*place].contains(one)) {
        Some((_, twice)) => Err(format!("{} is named twice", network::in_words(*twice))),
        None => Ok(Rtts(all)),
    }
}

fn rtt_us(text: &str) -> Result<u64, String> {
    let scales = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let scaled = scales.into_iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let (number, scale) = scaled.unwrap_or((text, 0.0));
    let no_time = || format!("'{text}' is no round-trip time, as in 0.2ms, 200us or 0");
    let number: f64 = number.parse().map_err(|_| no_time())?;
    let (least, most) = (RTT_LEAST.as_micros() as f64, RTT_MOST.as_micros() as f64);
    match number * scale {
        _ if number == 0.0 => Ok(0),
        _ if scale == 0.0 || number.is_nan() || number < 0.0 => Err(no_time()),
        us if us < least => {
            let least = network::in_words(least as u64).replace(' ', "");
            Err(format!("{text} is shorter than the timers of this system can keep: at least {least}, or 0"))
        }
        us if us > most => Err(format!("{text} is longer than any round trip: at most {} s", most / 1e6)),
        us => Ok(us.round() as u64),
    }
}

/// `60s`, `5m`, `500ms`, `1.5h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("'{unit}' is no unit of time: ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| "a time is a number and a unit, as in 60s".to_string())?;
    let time_s = number * scale;
    // A year is more than anybody waits for, and well within what a clock can add.
    if time_s > 0.0 && time_s < 3.2e7 {
        Ok(Duration::from_secs_f64(time_s))
    } else {
        Err("a time must be more than nothing and less than a year".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let parsed = |text: &str| parse(text).map(|points| points.0);
        assert_eq!(parsed("4"), Ok(vec![4]));
        assert_eq!(parsed("1,5,10..30:10,200"), Ok(vec![1, 5, 10, 20, 30, 200]));
        assert_eq!(parsed("8..10"), Ok(vec![8, 9, 10]));
        assert_eq!(parse("10..100:45").unwrap().to_string(), "10,55,100");
    }

    #[test]
    fn speeds_of_a_replay() {
        assert_eq!(replay("asap"), Ok(Replay(None)));
        assert_eq!(replay("recorded"), Ok(Replay(Some(100))));
        assert_eq!(replay("2.5x"), Ok(Replay(Some(250))));
        for bad in ["", "10", "x", "0x", "-1x", "fast", "1e9x", "nanx"] {
            assert!(replay(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_of_values_and_batches() {
        assert_eq!(values("32,1k,1MiB"), Ok(ValueLengths::Alike(SizeList(vec![32, 1_000, 1 << 20]))));
        assert_eq!(values("16-4k"), Ok(ValueLengths::Spread(Spread::Range { low: 16, high: 4_000 })));
        assert_eq!(values("etc"), Ok(ValueLengths::Spread(Spread::Etc)));
        assert_eq!(batches("1,10,10k"), Ok(SizeList(vec![1, 10, 10_000])));
        for bad in ["", "0", "32,", "1k,1000", "65MiB", "-1", "many", "5G", "9-3", "0-5", "1-65MiB", "ETC"] {
            assert!(values(bad).is_err(), "{bad}");
        }
        assert!(batches("10001").is_err());
    }

    #[test]
    fn sizes_of_jobs() {
        let of = |text| count(text).ok();
        assert_eq!(["1", "20k", "1.5M", "10000M"].map(of), [1, 20_000, 1_500_000, 10_000_000_000].map(Some));
        for bad in ["", "0", "-1", "0.5", "1.0001k", "10001M", "k", "20K", "nan", "inf"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!((records("100k").ok(), records("1001M").ok()), (Some(100_000), None));
    }

    #[test]
    fn rates_and_shares() {
        assert_eq!(rates("20000"), Ok(Rates::PerSecond(vec![20_000])));
        assert_eq!(rates("1,1.5k,2M"), Ok(Rates::PerSecond(vec![1, 1_500, 2_000_000])));
        assert_eq!(rates("20%,50%,80%"), Ok(Rates::Shares(vec![20, 50, 80])));
        for bad in ["", "0", "-1", "0.5", "20k,", "20k,50%", "95%", "0%", "11M", "1k,1000", "fast", "1e9", "nan", "inf"]
        {
            assert!(rates(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for bad in ["", "0", "10001", "1,,2", "5..1", "1..9:0", "1,1", "2..4,3", "-1", "1..10000", "many"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn round_trip_times() {
        assert_eq!(rtts("0,0.2ms,1ms"), Ok(Rtts(vec![0, 200, 1_000])));
        assert_eq!(rtts("50us"), Ok(Rtts(vec![50])));
        assert_eq!(rtts("1s,0ms"), Ok(Rtts(vec![1_000_000, 0])));
        for bad in
            ["", "9x", "1", "-1ms", "0.2ms,", "ms", "nanms", "infms", "1e9s", "2s", "49us", "0.01ms", "1ms,1000us"]
        {
            assert!(rtts(bad).is_err(), "{bad}");
        }
        assert!(rtts("0.01ms").unwrap_err().contains("at least 0.05ms, or 0"));
    }

    #[test]
    fn times() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "0s", "-1s", "5 parsecs", "1e99", "nan"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
