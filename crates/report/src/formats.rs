//! How the cells of tables are written for people, by what they hold. What is not known is a dash.

use serde_json::Value;

use kvfair_core::units;

const UNKNOWN: &str = "-";

/// A number or text as it is.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => UNKNOWN.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn seconds(value: &Value) -> String {
    or_dash(value.as_f64(), units::seconds)
}

/// Seconds, as nanoseconds to seconds: "14 ms".
pub fn duration(value: &Value) -> String {
    or_dash(value.as_f64(), |took_s| units::nanoseconds((took_s.max(0.0) * 1e9) as u64))
}

/// Ratios, and what has no unit of its own: three digits.
pub fn digits(value: &Value) -> String {
    or_dash(value.as_f64(), units::digits)
}

pub fn hundredths(value: &Value) -> String {
    or_dash(value.as_f64(), |number| format!("{number:.2}"))
}

/// So many a second: "12 k".
pub fn per_second(value: &Value) -> String {
    or_dash(value.as_f64(), units::count)
}

/// What is counted one by one: "12,345".
pub fn count(value: &Value) -> String {
    or_dash(value.as_u64(), units::thousands)
}

pub fn share(value: &Value) -> String {
    or_dash(value.as_f64(), percent)
}

pub fn bytes(value: &Value) -> String {
    disk(value.as_u64())
}

/// Whole nanoseconds, in microseconds.
pub fn microseconds(value: &Value) -> String {
    tail(value.as_f64().map(|time_us| (time_us * 1e3).round() as u64))
}

/// "all", or "1 in 32".
pub fn one_in(value: &Value) -> String {
    or_dash(value.as_u64(), |one_in| if one_in == 1 { "all".to_string() } else { format!("1 in {one_in}") })
}

pub(super) fn or_dash<T>(known: Option<T>, words: impl Fn(T) -> String) -> String {
    known.map_or_else(|| UNKNOWN.to_string(), words)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// No bytes are as good as unknown.
pub(super) fn disk(bytes: Option<u64>) -> String {
    or_dash(bytes.filter(|&bytes| bytes > 0), units::bytes)
}

pub(super) fn tail(time_ns: Option<u64>) -> String {
    or_dash(time_ns, units::nanoseconds)
}

/// "17 + 19": client and server; "2.3" where the store is in the client.
pub(super) fn both(client: f64, server: Option<f64>) -> String {
    let client = units::digits(client);
    server.map_or(client.clone(), |server| format!("{client} + {}", units::digits(server)))
}

/// "21 MB + 9.2 MB": program and server; "21 MB" where the store is in the program.
pub(super) fn memories(client: Option<u64>, store: Option<u64>) -> String {
    // A program that was gone before anybody looked held nothing that is known.
    let store = disk(store);
    client.map_or(store.clone(), |client| format!("{} + {store}", disk(Some(client))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        let all = [plain, seconds, duration, digits, hundredths, per_second, count, share, bytes, microseconds, one_in];
        all.iter().for_each(|format| assert_eq!(format(&Value::Null), "-"));
        assert_eq!(bytes(&0.into()), "-");
    }

    #[test]
    fn every_whole_nanosecond_comes_back_from_microseconds() {
        let mut time_ns = 1;
        while time_ns < 60_000_000_000_u64 {
            assert_eq!(microseconds(&(time_ns as f64 / 1e3).into()), tail(Some(time_ns)));
            time_ns += time_ns / 7 + 1;
        }
    }
}
