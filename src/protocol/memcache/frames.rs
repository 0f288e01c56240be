//! The pieces that memcached's text protocol is made of: lines, blocks of values, keys as they may be sent. It knows
//! no op.

use crate::model::op::{Fault, readable};
use crate::protocol::text::{garbled, line, short_length, unsigned};

/// A longer time to live is taken for a point in time.
pub(super) const TTL_MAX_S: u32 = 30 * 24 * 60 * 60;
/// The longest key, after escaping.
pub const KEY_MAX: usize = 250;
/// The largest item that any memcached can be started for (`-I`).
pub(super) const VALUE_MAX: usize = 1 << 30;
/// The longest line that is waited for: no line of the protocol that carries a key has more than 400 bytes.
pub(super) const LINE_MAX: usize = 2048;

pub(super) const STORED: &[u8; 8] = b"STORED\r\n";
pub(super) const END: &[u8] = b"END\r\n";

/// One part of the answer to `get` and `gets`.
pub(super) enum Block<'b> {
    End,
    Value(FoundFrame<'b>),
    Error(&'b [u8]),
}

pub(super) struct FoundFrame<'b> {
    pub(super) key: &'b [u8],
    pub(super) data: &'b [u8],
    pub(super) version: Option<u64>,
}

/// The first block and the bytes it took, once it is all there.
#[inline]
pub(super) fn block(bytes: &[u8]) -> Result<Option<(usize, Block<'_>)>, Fault> {
    if bytes.starts_with(END) {
        return Ok(Some((END.len(), Block::End)));
    }
    let Some(text) = line(bytes, LINE_MAX)? else {
        return Ok(None);
    };
    let start = text.len() + 2;
    let Some(rest) = text.strip_prefix(b"VALUE ") else {
        return if is_error(text) {
            Ok(Some((start, Block::Error(text))))
        } else {
            Err(garbled("VALUE or END", bytes))
        };
    };
    let mut words = rest.split(|&byte| byte == b' ');
    let mut numbers = (words.next(), words.next().and_then(unsigned), words.next().and_then(unsigned), words.next());
    let version = numbers.3.take().map(|word| unsigned(word).ok_or_else(|| garbled("a version", bytes))).transpose()?;
    let (Some(key), Some(_), Some(size), None) = (numbers.0, numbers.1, numbers.2, words.next()) else {
        return Err(garbled("VALUE, a key, flags and a size", bytes));
    };
    let size = usize::try_from(size).ok().filter(|&size| size <= VALUE_MAX);
    let size = size.ok_or_else(|| garbled(&format!("a size of at most {VALUE_MAX}"), bytes))?;
    let Some(data) = data(bytes, start, size)? else {
        return Ok(None);
    };
    Ok(Some((start + size + 2, Block::Value(FoundFrame { key, data, version }))))
}

/// The value of one key, all of it there and nothing else about it: no flags, no version, a size of at most six digits.
/// Also the bytes it took, `END` among them. `None` is for [`block`] to look at.
#[inline]
pub(super) fn short_value<'b>(bytes: &'b [u8], key: &[u8]) -> Option<(usize, &'b [u8])> {
    short(bytes, key, b"\r\nEND\r\n")
}

/// The same of one key among several, without `END`.
#[inline]
pub(super) fn short_block<'b>(bytes: &'b [u8], key: &[u8]) -> Option<(usize, &'b [u8])> {
    short(bytes, key, b"\r\n")
}

#[inline(always)]
fn short<'b>(bytes: &'b [u8], key: &[u8], tail: &[u8]) -> Option<(usize, &'b [u8])> {
    let rest = bytes.strip_prefix(b"VALUE ")?.strip_prefix(key)?.strip_prefix(b" 0 ")?;
    let (size, start) = short_length(rest)?;
    let end = start + size;
    let whole = rest.get(end..end + tail.len())? == tail;
    whole.then(|| (bytes.len() - rest.len() + end + tail.len(), &rest[start..end]))
}

/// `size` bytes from `start` and their CRLF, once they are all there.
#[inline]
pub(super) fn data(bytes: &[u8], start: usize, size: usize) -> Result<Option<&[u8]>, Fault> {
    let end = start + size;
    match bytes.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(&bytes[start..end])),
        Some(_) => Err(garbled(&format!("CRLF after {size} bytes"), &bytes[end..])),
    }
}

pub(super) fn is_error(line: &[u8]) -> bool {
    line == b"ERROR" || line.starts_with(b"CLIENT_ERROR") || line.starts_with(b"SERVER_ERROR")
}

/// A counter's value. One that got shorter keeps its length with spaces behind it; one past 2^63 is none of ours.
pub(super) fn counter(text: &[u8]) -> Result<i64, String> {
    match unsigned(text.trim_ascii_end()) {
        Some(count) => i64::try_from(count).map_err(|_| out_of_range(i128::from(count))),
        None => Err(format!("the value '{}' is no counter", readable(text, 40))),
    }
}

/// A counter that was lowered, by what it was right before: `decr` stops at 0 and does not say so. Where there was none
/// it was 0.
pub(super) fn lowered(before: u64, by: u64, after: u64) -> Result<i64, String> {
    if before < by {
        let left = if before > 0 { ", and the server left 0" } else { "" };
        return Err(out_of_range(i128::from(before) - i128::from(by)) + left);
    }
    i64::try_from(after).map_err(|_| out_of_range(i128::from(after)))
}

#[cold]
fn out_of_range(number: i128) -> String {
    format!("counters cannot be below 0 or above {}: this one would be {number}", i64::MAX)
}

/// Appends a key as the protocol can carry it: what would end it, and the sign of escaping itself, as `%` and two
/// digits.
#[inline]
pub(super) fn escape(key: &[u8], out: &mut Vec<u8>) {
    if is_plain(key) {
        return out.extend_from_slice(key);
    }
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in key {
        if is_escaped(byte) {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        } else {
            out.push(byte);
        }
    }
}

/// Whether a key goes as it is. Every byte is looked at, without a branch for each.
#[inline]
pub(super) fn is_plain(key: &[u8]) -> bool {
    !key.iter().fold(false, |escaped, &byte| escaped | is_escaped(byte))
}

#[inline]
pub(super) fn is_escaped(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || byte == b'%'
}

/// Bytes used and what they say, once they are all there.
pub type Read<T> = Result<Option<(usize, T)>, Fault>;

/// What speaks the protocol need not know all of it: a refusal is the whole answer to the one thing that was asked.
pub fn or_refused<T>(mut read: impl FnMut(&[u8]) -> Read<T>) -> impl FnMut(&[u8]) -> Read<Option<T>> {
    move |bytes| match read(bytes) {
        Err(Fault::Refused(_)) => Ok(Some((bytes.len(), None))),
        answer => Ok(answer?.map(|(used, answer)| (used, Some(answer)))),
    }
}

/// Names and values.
pub type Stats = Vec<(String, String)>;

/// Reads an answer to `stats` as it comes, by name, and the bytes it took: every call gets the bytes of all calls
/// before and those that came since, and goes on where it stopped. Not for ops, since it copies what it reads.
pub fn stats() -> impl FnMut(&[u8]) -> Read<Stats> {
    let (mut used, mut stats) = (0, Stats::new());
    move |bytes| {
        while let Some(text) = line(&bytes[used..], LINE_MAX)? {
            used += text.len() + 2;
            let words = String::from_utf8_lossy(text);
            match words.strip_prefix("STAT ").map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
                Some((name, value)) => stats.push((name.to_string(), value.to_string())),
                None if text == b"END" => return Ok(Some((used, std::mem::take(&mut stats)))),
                None if is_error(text) => return Err(Fault::Refused(words.into_owned())),
                None => return Err(garbled("STAT or END", text)),
            }
        }
        Ok(None)
    }
}

/// What asks for the version.
pub const VERSION_QUESTION: &[u8] = b"version\r\n";

/// The version that an answer to `version` names, and the bytes it took.
pub fn version(bytes: &[u8]) -> Result<Option<(usize, String)>, Fault> {
    let Some(text) = line(bytes, LINE_MAX)? else {
        return Ok(None);
    };
    match text.strip_prefix(b"VERSION ") {
        Some(version) => Ok(Some((text.len() + 2, String::from_utf8_lossy(version).into_owned()))),
        None if is_error(text) => Err(Fault::Refused(String::from_utf8_lossy(text).into_owned())),
        None => Err(garbled("VERSION", bytes)),
    }
}
