//! Servers that follow another one of the same store (its replicas): the settings that ask for them, and how far each
//! server is in the log that they follow.

use std::collections::BTreeMap;
use std::time::Duration;

use super::setting::{Price, Setting, SettingValues};

/// How many replicas a server of ours has.
pub const REPLICAS: Setting = Setting {
    name: "replicas",
    about: "servers that follow it, of a server of ours: 1 to 100 [default: none]",
    default: "",
    // Nobody needs a replica for speed alone: reads from it may be old.
    values: SettingValues::Checked { check: check_count, worth_trying: &[] },
    price: Price::Pays("memory and CPU of each replica"),
};

/// Where reads go. Writes always go to the primary.
pub const READ: Setting = Setting {
    name: "read",
    about: "with ?replicas=, where reads go: primary, replicas or all [default: primary]",
    default: "",
    values: SettingValues::Checked { check: check_read, worth_trying: &[] },
    price: Price::Pays("reads that may be old"),
};

/// What stands for the way between the primary and its replicas.
pub const LINK_DELAY: Setting = Setting {
    name: "link-delay",
    about: "with ?replicas=, how late what the primary sends arrives, as in 5ms, by a proxy [default: no proxy]",
    default: "",
    values: SettingValues::Checked { check: check_delay, worth_trying: &[] },
    price: Price::Pays("reads that may be old"),
};

/// A hundred is beyond what one machine can measure; nothing here depends on it.
const REPLICAS_MAX: u32 = 100;
/// The longest delay that the proxy has each way.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// Where the clients of a store with replicas read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    Primary,
    Replicas,
    /// The primary and all replicas.
    All,
}

/// How many replicas these settings ask for; they have been checked.
pub fn count(settings: &BTreeMap<String, String>) -> u32 {
    settings.get(REPLICAS.name).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Where reads go by these settings.
pub fn read_from(settings: &BTreeMap<String, String>) -> ReadFrom {
    settings.get(READ.name).and_then(|read| parse_read(read)).unwrap_or(ReadFrom::Primary)
}

/// How late what the primary sends reaches its replicas by these settings; nothing where no proxy is asked for.
pub fn link_delay(settings: &BTreeMap<String, String>) -> Option<Duration> {
    settings.get(LINK_DELAY.name).and_then(|delay| parse_delay(delay))
}

/// Where a server is in the log of writes that replicas follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Bytes of the log: all that a primary has written, or what a replica has applied of them.
    pub bytes: u64,
    /// Whether a replica has all that its primary had when it came, and hears of what is new. True of a primary.
    pub is_linked: bool,
}

fn check_count(value: &str) -> Result<(), String> {
    let is_one = value.parse::<u32>().is_ok_and(|count| (1..=REPLICAS_MAX).contains(&count));
    let what = || format!("a number of replicas from 1 to {REPLICAS_MAX}; without any, leave it out");
    if is_one { Ok(()) } else { Err(what()) }
}

fn parse_read(value: &str) -> Option<ReadFrom> {
    match value {
        "primary" => Some(ReadFrom::Primary),
        "replicas" => Some(ReadFrom::Replicas),
        "all" => Some(ReadFrom::All),
        _ => None,
    }
}

fn check_read(value: &str) -> Result<(), String> {
    parse_read(value).map(|_| ()).ok_or_else(|| "primary, replicas or all".to_string())
}

fn parse_delay(value: &str) -> Option<Duration> {
    let (number, per_s) = match value.strip_suffix("us") {
        Some(number) => (number, 1e6),
        None => match value.strip_suffix("ms") {
            Some(number) => (number, 1e3),
            None => (value.strip_suffix('s')?, 1.0),
        },
    };
    let delay_s = number.parse::<f64>().ok()? / per_s;
    Duration::try_from_secs_f64(delay_s).ok().filter(|delay| *delay <= DELAY_MAX)
}

fn check_delay(value: &str) -> Result<(), String> {
    let most = DELAY_MAX.as_millis();
    parse_delay(value).map(|_| ()).ok_or_else(|| format!("a time from 0ms to {most}ms, as in 200us, 5ms or 0.5s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_replicas_are_read_or_refused() {
        let settings = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<BTreeMap<_, _>>()
        };
        let none = settings(&[]);
        assert_eq!((count(&none), read_from(&none), link_delay(&none)), (0, ReadFrom::Primary, None));
        let all = settings(&[("replicas", "2"), ("read", "all"), ("link-delay", "0.5s")]);
        assert_eq!((count(&all), read_from(&all)), (2, ReadFrom::All));
        assert_eq!(link_delay(&all), Some(Duration::from_millis(500)));
        assert_eq!(parse_delay("200us"), Some(Duration::from_micros(200)));
        assert_eq!(parse_delay("5ms"), Some(Duration::from_millis(5)));
        ["0", "-1", "101", "two", ""].iter().for_each(|value| assert!(REPLICAS.check(value).is_err(), "{value}"));
        ["replica", "any", ""].iter().for_each(|value| assert!(READ.check(value).is_err(), "{value}"));
        for value in ["501ms", "1s", "-1ms", "nan", "infs", "5", "", "1e300s"] {
            assert!(LINK_DELAY.check(value).is_err(), "{value}");
        }
    }
}
