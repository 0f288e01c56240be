//! Tokyo Tyrant's answer to `stat`.

use super::super::text::garbled;
use super::{MAGIC, four};
use crate::model::op::Fault;

const STAT: u8 = 0x88;
/// An answer to `stat` has some two thousand bytes.
const STAT_MAX: usize = 1 << 20;

/// The question for `stat`.
pub const STAT_QUESTION: &[u8] = &[MAGIC, STAT];

/// Names and values.
pub type TyrantStats = Vec<(String, String)>;

/// What `stat` says, by name, and the bytes it took: not for ops, since it copies what it reads.
pub fn stats(bytes: &[u8]) -> Result<Option<(usize, TyrantStats)>, Fault> {
    match bytes.first() {
        None => return Ok(None),
        Some(0) => {}
        Some(_) => return Err(garbled("the answer to stat", bytes)),
    }
    let Some(size) = four(bytes, 1) else {
        return Ok(None);
    };
    let used = 5 + size as usize;
    if used > STAT_MAX {
        return Err(garbled(&format!("an answer to stat of at most {STAT_MAX} bytes"), bytes));
    }
    let Some(text) = bytes.get(5..used) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(text);
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(Some((used, pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect())))
}
