//! Servers that follow another one of the same store (its replicas): the settings that ask for them, and how far each
//! server is in the log that they follow.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Place;
use super::setting::{Price, Setting, SettingValues};
use crate::model::op::Fault;

/// How many replicas a server of ours has.
pub const REPLICAS: Setting = Setting {
    name: "replicas",
    about: "replicas, of a server of ours: 1 to 100 [default: none]",
    default: "",
    // A replica is no lever for speed: reads from it may be stale.
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
    about: "with ?replicas=, delay each way between primary and replica, as in 5ms [default: none]",
    default: "",
    values: SettingValues::Checked { check: check_delay, worth_trying: &[] },
    price: Price::Pays("reads that may be old"),
};

/// How many replicas must have a write before it is acknowledged.
pub const WAIT: Setting = Setting {
    name: "wait",
    about: "with ?replicas=, how many of them must have a write before it is acknowledged [default: none]",
    default: "",
    values: SettingValues::Checked { check: check_count, worth_trying: &[] },
    price: Price::Pays("a longer response of each write"),
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

/// How many replicas must have a write before it is acknowledged, by these settings.
pub fn wait(settings: &BTreeMap<String, String>) -> u32 {
    settings.get(WAIT.name).and_then(|count| count.parse().ok()).unwrap_or(0)
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

/// How a replica takes the place of its primary, by the store's own means. Asked of a replica.
pub trait Failover {
    /// What it has of the log and keeps when it becomes a primary. While it is linked, more may come.
    fn received(&self) -> Result<LogPosition, Fault>;
    /// Tells it to become a primary. It may be one a moment later.
    fn promote(&self) -> Result<(), Fault>;
    fn is_primary(&self) -> Result<bool, Fault>;
    /// Tells it to follow another primary.
    fn follow(&self, primary: &Place) -> Result<(), Fault>;
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
        let all = settings(&[("replicas", "2"), ("read", "all"), ("link-delay", "0.5s"), ("wait", "1")]);
        assert_eq!((count(&all), read_from(&all), wait(&all), wait(&none)), (2, ReadFrom::All, 1, 0));
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
