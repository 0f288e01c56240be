//! What stores put into a record where they themselves know only bytes: counters and versions.
//! Knows no store.

use crate::model::op::{Fault, readable};

/// A counter as it is stored: 64 bits, little-endian, which is what a program would keep that counts in such a store.
pub fn encode(number: i64) -> [u8; 8] {
    number.to_le_bytes()
}

/// The counter in a record.
pub fn decode(store: &str, key: &[u8], record: &[u8]) -> Result<i64, Fault> {
    record.try_into().map(i64::from_le_bytes).map_err(|_| {
        let key = readable(key, 80);
        Fault::Refused(format!("{store}: the record of key '{key}' is no counter: {} bytes, not 8", record.len()))
    })
}

/// The sum of a counter (0 where there is none yet) and what is added to it.
pub fn add(store: &str, key: &[u8], record: Option<&[u8]>, by: i64) -> Result<i64, Fault> {
    let number = record.map_or(Ok(0), |record| decode(store, key, record))?;
    number.checked_add(by).ok_or_else(|| beyond(store, key))
}

/// Whether a store that wraps counters has come to `sum` past the end of 64 bits when it added `by`.
pub fn went_around(sum: i64, by: i64) -> bool {
    sum.wrapping_sub(by).checked_add(by).is_none()
}

/// What is said of a counter that was taken back to where it was.
pub fn beyond(store: &str, key: &[u8]) -> Fault {
    Fault::Refused(format!("{store}: the counter of key '{}' would leave 64 bits", readable(key, 80)))
}

/// The version of a value where the store keeps none: a hash of its bytes. Equal values have equal versions, so `Cas`
/// does not see a change that was changed back; it compares inside the same transaction that writes.
pub fn version(value: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(value)
}

/// An op on a key that the store cannot hold.
pub fn check_key(store: &str, op: &str, key: &[u8], longest: usize) -> Result<(), Fault> {
    if (1..=longest).contains(&key.len()) {
        return Ok(());
    }
    Err(Fault::Unsupported(format!(
        "{store} takes keys of 1 to {longest} bytes: the key of this {op} has {}",
        key.len()
    )))
}
