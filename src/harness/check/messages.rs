//! What was asked and what was answered, in words short enough for one line.

use crate::model::op::{Op, Reply, readable};
use crate::model::units::{self, thousands};

/// Bytes of a key and of a value that are shown.
const KEY_SHOWN: usize = 60;
const VALUE_SHOWN: usize = 12;

/// "set "k" to 1,000 bytes "\x07...": what is asked.
pub fn asked(op: &Op<'_>) -> String {
    let name = op.name();
    let key = key(op.key());
    match op {
        Op::Set { value, ttl_s: None, .. } => format!("set {key} to {}", bytes(value)),
        Op::Set { value, ttl_s: Some(ttl_s), .. } => format!("set {key} to {} for {ttl_s} s", bytes(value)),
        Op::SetIfAbsent { value, .. } | Op::Cas { value, .. } => format!("{name} {key} to {}", bytes(value)),
        Op::Increment { by, .. } | Op::Add { by, .. } => format!("{name} {key} by {by}"),
        Op::AddMany(sums) => format!("{name} of {} keys, the first {key}", sums.len()),
        Op::GetMany(keys) | Op::NumberMany(keys) => format!("{name} of {} keys, the first {key}", keys.len()),
        Op::SetMany(pairs) => format!("{name} of {} keys, the first {key}", pairs.keys.len()),
        Op::Tally { records, fields, by } => {
            format!("tally of {} fields in {} records by {by}, the first {key}", fields.len(), records.len())
        }
        Op::Scan { limit, .. } => format!("scan of {limit} from {key}"),
        _ => format!("{name} {key}"),
    }
}

/// What was answered.
pub fn answered(reply: &Reply<'_>) -> String {
    match reply {
        Reply::Done => "done".to_string(),
        Reply::Missing => "missing".to_string(),
        Reply::Conflict => "conflict".to_string(),
        Reply::Value(value) | Reply::Versioned(value, _) => bytes(value),
        Reply::Number(number) => thousand(*number),
        Reply::Values(values) => format!("{} values", values.len()),
        Reply::Numbers(numbers) => {
            let shown = numbers.iter().map(|number| number.map_or_else(|| "missing".to_string(), thousand));
            shown.collect::<Vec<_>>().join(", ")
        }
        Reply::Rows(rows) => format!("{} rows", rows.keys.len()),
    }
}

/// What came instead of what should have, and where the two part.
pub fn instead(found: &Reply<'_>, expected: &Reply<'_>) -> String {
    match (found, expected) {
        (Reply::Value(found), Reply::Value(expected)) => different(found, expected),
        (Reply::Versioned(found, _), Reply::Versioned(expected, _)) => different(found, expected),
        (Reply::Values(found), Reply::Values(expected)) if found.len() == expected.len() => {
            let parts = (0..found.len()).find(|&place| found.get(place) != expected.get(place)).unwrap_or_default();
            let what = match (found.get(parts), expected.get(parts)) {
                (Some(found), Some(expected)) => different(found, expected),
                (found, expected) => format!("{}, not {}", maybe(found), maybe(expected)),
            };
            format!("number {} of {} is {what}", parts + 1, found.len())
        }
        _ => format!("{}, not {}", answered(found), answered(expected)),
    }
}

/// What the same finding of other probes has in common with it, where that tells one cause.
pub fn cause(found: &Reply<'_>, expected: &Reply<'_>) -> Option<String> {
    match (found, expected) {
        (Reply::Missing, _) => Some("missing".to_string()),
        (Reply::Conflict, _) => Some("conflict".to_string()),
        (_, Reply::Done) => Some("not done".to_string()),
        _ => None,
    }
}

/// By which words a server said that it does not know a command. Some repeat what was sent; some say no more than that
/// there was an error.
pub fn unknown_command(words: &str) -> &str {
    match words.split(", with args").next().unwrap_or_default() {
        "ERROR" => "the server does not know its command (ERROR)",
        words => words,
    }
}

fn maybe(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "missing".to_string(), bytes)
}

/// "1,024 bytes, not 1,025: what came is right as far as it goes".
pub fn different(found: &[u8], expected: &[u8]) -> String {
    let same = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    let has = count(found.len());
    let sizes =
        if found.len() == expected.len() { has } else { format!("{has}, not {}", thousands(expected.len() as u64)) };
    if same == found.len() {
        return format!("{sizes}: what came is right as far as it goes");
    }
    let at = |value: &[u8]| match &value[same.min(value.len())..value.len().min(same + VALUE_SHOWN)] {
        [] => "nothing".to_string(),
        part => format!("\"{}\"", part.escape_ascii()),
    };
    let place = thousands(same as u64 + 1);
    format!("{sizes}, and from byte {place} on {}, not {}", at(found), at(expected))
}

/// "1,000 bytes "\x07..."", or a short value as it is.
pub fn bytes(value: &[u8]) -> String {
    match value.len() {
        0 => "nothing".to_string(),
        1..=VALUE_SHOWN => format!("\"{}\"", value.escape_ascii()),
        length => format!("{} \"{}...\"", count(length), value[..VALUE_SHOWN].escape_ascii()),
    }
}

fn count(bytes: usize) -> String {
    units::counted(bytes as u64, "byte")
}

pub fn key(key: &[u8]) -> String {
    format!("\"{}\"", readable(key, KEY_SHOWN))
}

fn thousand(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(number.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::op::ValueList;

    #[test]
    fn a_difference_is_told_by_lengths_and_by_where_it_begins() {
        assert_eq!(different(b"abc", b"abcde"), "3 bytes, not 5: what came is right as far as it goes");
        assert_eq!(different(b"abXd", b"abcd"), "4 bytes, and from byte 3 on \"Xd\", not \"cd\"");
        assert_eq!(different(b"abcde", b"abc"), "5 bytes, not 3, and from byte 4 on \"de\", not nothing");
        assert_eq!(different(b"", b"a\r\n"), "0 bytes, not 3: what came is right as far as it goes");
    }

    #[test]
    fn of_many_values_the_first_wrong_one_is_told() {
        let (mut found, mut expected) = (ValueList::default(), ValueList::default());
        for (one, other) in [(Some(&b"a"[..]), Some(&b"a"[..])), (None, Some(b"b")), (None, None)] {
            found.push(one);
            expected.push(other);
        }
        let words = instead(&Reply::Values(found.lend()), &Reply::Values(expected.lend()));
        assert_eq!(words, "number 2 of 3 is missing, not \"b\"");
    }

    #[test]
    fn what_is_long_or_strange_is_shown_short_and_escaped() {
        assert_eq!(
            asked(&Op::Set { key: b"k\r\n", value: &[7; 1000], ttl_s: None }),
            format!("set \"k\\r\\n\" to 1,000 bytes \"{}...\"", "\\x07".repeat(12))
        );
        assert_eq!(answered(&Reply::Number(-2_147_483_648)), "-2,147,483,648");
    }
}
