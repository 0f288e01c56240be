//! Tokyo Tyrant's own protocol: a magic byte, a command's, lengths and bytes; an answer begins with a code, 0 for
//! success.
//!
//! The format: <https://dbmx.net/tokyotyrant/spex.html#protocol>. A code tells only that something failed, never what.
//! All lengths are big-endian; but a counter is a record of four bytes in the order of the server's machine, which is
//! read here as little-endian, and it wraps: a sum that cannot have come from where it says is refused.

use std::collections::VecDeque;

use super::asked::PendingKeys;
use super::text::{garbled, unasked};
use super::{Codec, Decoded};
use crate::model::op::{Fault, Keys, Op, Pairs, Reply, Sums, ValueList, readable};

mod stats;

pub use stats::{STAT_QUESTION, TyrantStats, stats};

const MAGIC: u8 = 0xC8;
const PUT: u8 = 0x10;
const PUT_KEEP: u8 = 0x11;
const OUT: u8 = 0x20;
const GET: u8 = 0x30;
const GET_MANY: u8 = 0x31;
const ADD_INT: u8 = 0x60;

/// The server closes the connection on a longer key or value, and on more keys at once.
const BYTES_MAX: usize = 256 << 20;
const KEYS_MAX: usize = 1 << 20;

/// One connection's side of Tokyo Tyrant's protocol.
pub struct Tyrant {
    store: &'static str,
    waiting: VecDeque<Awaited>,
    /// The keys of the reads in `waiting`.
    asked: PendingKeys,
    /// Of the answer to the op in front: codes heard, or records still to come once the head was heard.
    parts: usize,
    left: Option<u32>,
    /// What the adds in `waiting` add, whose sums are only looked at.
    steps: VecDeque<i32>,
    /// Keys of the op in front that were answered or passed over.
    passed: usize,
    /// The first error among the parts of that answer.
    refusal: Option<String>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    commands: u64,
}

/// The answer that an op waits for.
#[derive(Clone, Copy)]
enum Awaited {
    Value,
    Count,
    /// So many codes.
    Stored(usize),
    Kept,
    Deleted,
    /// A sum that grew by so much.
    Sum(i32),
    /// So many sums that are not asked for.
    Sums(usize),
    Values(usize),
    Counts(usize),
}

impl Tyrant {
    /// `store` is what messages call it.
    pub fn new(store: &'static str) -> Self {
        Tyrant {
            store,
            waiting: VecDeque::new(),
            asked: PendingKeys::default(),
            parts: 0,
            left: None,
            steps: VecDeque::new(),
            passed: 0,
            refusal: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            commands: 0,
        }
    }
}

impl Codec for Tyrant {
    fn hello(&mut self, _: &mut Vec<u8>) {}

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) => self.with_key(GET, op, key, Awaited::Value, out)?,
            Op::Number(key) => self.with_key(GET, op, key, Awaited::Count, out)?,
            Op::Delete(key) => self.with_key(OUT, op, key, Awaited::Deleted, out)?,
            Op::GetMany(keys) => self.get_many(op, keys, Awaited::Values(keys.len()), out)?,
            Op::NumberMany(keys) => self.get_many(op, keys, Awaited::Counts(keys.len()), out)?,
            Op::Set { key, value, ttl_s: None } => {
                self.put(PUT, op, key, value, out)?;
                Awaited::Stored(1)
            }
            Op::SetMany(pairs) => self.put_many(op, pairs, out)?,
            Op::SetIfAbsent { key, value } => {
                self.put(PUT_KEEP, op, key, value, out)?;
                Awaited::Kept
            }
            Op::Increment { key, by } => Awaited::Sum(self.add(op, key, by, out)?),
            Op::Add { key, by } => {
                let step = self.add(op, key, by, out)?;
                self.steps.push_back(step);
                Awaited::Sums(1)
            }
            Op::AddMany(sums) => self.add_many(op, sums, out)?,
            Op::Set { ttl_s: Some(_), .. }
            | Op::GetVersion(_)
            | Op::Cas { .. }
            | Op::Tally { .. }
            | Op::ReadTally(_)
            | Op::Scan { .. } => return Err(Fault::unsupported(self.store, op)),
        };
        self.commands += if let Awaited::Stored(count) | Awaited::Sums(count) = awaited { count as u64 } else { 1 };
        self.waiting.push_back(awaited);
        Ok(())
    }

    #[inline]
    fn hear<'b>(&'b mut self, bytes: &'b [u8], _: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match *self.waiting.front().ok_or_else(|| unasked(bytes))? {
            awaited @ (Awaited::Value | Awaited::Count) => self.hear_value(awaited, bytes),
            Awaited::Values(count) => self.hear_many(false, count, bytes),
            Awaited::Counts(count) => self.hear_many(true, count, bytes),
            Awaited::Stored(count) => Ok(self.hear_codes(count, bytes)),
            Awaited::Sums(count) => Ok(self.hear_sums(count, bytes)),
            awaited => self.hear_change(awaited, bytes),
        }
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn commands(&self) -> u64 {
        self.commands
    }
}

/// What to ask.
impl Tyrant {
    #[inline]
    fn with_key(
        &mut self,
        command: u8,
        op: &Op<'_>,
        key: &[u8],
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Result<Awaited, Fault> {
        self.check(op, key)?;
        out.extend_from_slice(&[MAGIC, command]);
        push_length(key.len(), out);
        out.extend_from_slice(key);
        Ok(awaited)
    }

    fn get_many(&mut self, op: &Op<'_>, keys: Keys<'_>, awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.check_count(op, keys)?;
        out.extend_from_slice(&[MAGIC, GET_MANY]);
        push_length(keys.len(), out);
        for key in keys.iter() {
            push_length(key.len(), out);
            out.extend_from_slice(key);
            self.asked.push(key);
        }
        Ok(awaited)
    }

    #[inline]
    fn put(&self, command: u8, op: &Op<'_>, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.check(op, key)?;
        self.check(op, value)?;
        out.extend_from_slice(&[MAGIC, command]);
        push_length(key.len(), out);
        push_length(value.len(), out);
        out.extend_from_slice(key);
        out.extend_from_slice(value);
        Ok(())
    }

    /// A command a key, all on their way before the first answer is read.
    fn put_many(&self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.check_count(op, pairs.keys)?;
        let before = out.len();
        if let Err(fault) = pairs.iter().try_for_each(|(key, value)| self.put(PUT, op, key, value, out)) {
            out.truncate(before);
            return Err(fault);
        }
        Ok(Awaited::Stored(pairs.keys.len()))
    }

    /// What is added, as the counter takes it.
    fn add(&self, op: &Op<'_>, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<i32, Fault> {
        self.check(op, key)?;
        let Ok(by) = i32::try_from(by) else {
            let (store, name) = (self.store, op.name());
            let what = format!("{store} has no {name} by {by}: its counters have 32 bits");
            return Err(Fault::Unsupported(what));
        };
        out.extend_from_slice(&[MAGIC, ADD_INT]);
        push_length(key.len(), out);
        out.extend_from_slice(&by.to_be_bytes());
        out.extend_from_slice(key);
        Ok(by)
    }

    /// A command a key, all on their way before the first answer is read.
    fn add_many(&mut self, op: &Op<'_>, sums: Sums<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.check_count(op, sums.keys())?;
        let (before, steps) = (out.len(), self.steps.len());
        for (key, by) in sums.iter() {
            match self.add(op, key, by, out) {
                Ok(step) => self.steps.push_back(step),
                Err(fault) => {
                    out.truncate(before);
                    self.steps.truncate(steps);
                    return Err(fault);
                }
            }
        }
        Ok(Awaited::Sums(sums.len()))
    }

    #[inline]
    fn check(&self, op: &Op<'_>, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.len() <= BYTES_MAX {
            return Ok(());
        }
        let (store, name, size) = (self.store, op.name(), bytes.len());
        Err(Fault::Unsupported(format!(
            "{store} has no {name} of more than {BYTES_MAX} bytes, and this one has {size}"
        )))
    }

    fn check_count(&self, op: &Op<'_>, keys: Keys<'_>) -> Result<(), Fault> {
        let (store, name, count) = (self.store, op.name(), keys.len());
        match count {
            0 => Err(Fault::Unsupported(format!("{store} has no {name} of nothing"))),
            1..=KEYS_MAX => keys.iter().try_for_each(|key| self.check(op, key)),
            _ => Err(Fault::Unsupported(format!("{store} has no {name} of {count} keys: at most {KEYS_MAX}"))),
        }
    }
}

/// Lengths were checked to fit.
#[inline]
fn push_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u32).to_be_bytes());
}

/// The four bytes at `at` as a number, once they are there.
#[inline]
fn four(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// A length from the server, checked.
#[inline]
fn length(claimed: u32, came: &[u8]) -> Result<usize, Fault> {
    let length = claimed as usize;
    if length <= BYTES_MAX { Ok(length) } else { Err(garbled(&format!("a length of at most {BYTES_MAX}"), came)) }
}

/// What was answered.
impl Tyrant {
    #[inline]
    fn hear_value<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if bytes[0] != 0 {
            self.done(0);
            return Ok(Some((1, Decoded::Reply(Reply::Missing))));
        }
        let Some(size) = four(bytes, 1) else {
            return Ok(None);
        };
        let used = 5 + length(size, bytes)?;
        let Some(value) = bytes.get(5..used) else {
            return Ok(None);
        };
        let reply = match awaited {
            Awaited::Value => Reply::Value(value),
            _ => match counter(value) {
                Ok(number) => Reply::Number(number),
                Err(words) => return Ok(Some((used, self.refused(words, 0)))),
            },
        };
        self.done(0);
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// The records of those found, in the order of the keys.
    fn hear_many<'b>(
        &'b mut self,
        counts: bool,
        count: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let mut used = 0;
        if self.left.is_none() {
            if bytes[0] != 0 {
                return Ok(Some((1, self.refused(format!("mget failed with code {}", bytes[0]), count))));
            }
            let Some(found) = four(bytes, 1) else {
                return Ok(None);
            };
            if found as usize > count {
                return Err(garbled(&format!("at most {count} records"), bytes));
            }
            used = 5;
            self.left = Some(found);
            self.values.reset(count);
            self.numbers.clear();
            self.numbers.resize(count, None);
        }
        while self.left != Some(0) {
            let rest = &bytes[used..];
            let Some((taken, key, value)) = record(rest)? else {
                return Ok((used > 0).then_some((used, Decoded::Again)));
            };
            self.put_in_place(counts, count, key, value, rest)?;
            self.left = self.left.map(|left| left - 1);
            used += taken;
        }
        if let Some(words) = self.refusal.take() {
            return Ok(Some((used, self.refused(words, count))));
        }
        self.done(count);
        let reply = if counts { Reply::Numbers(&self.numbers) } else { Reply::Values(self.values.lend()) };
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// Keys before it that were not answered are missing.
    fn put_in_place(&mut self, counts: bool, count: usize, key: &[u8], value: &[u8], came: &[u8]) -> Result<(), Fault> {
        let index = (self.passed..count).find(|&index| self.asked.get(index) == key);
        let index = index.ok_or_else(|| garbled("the record of a key that was asked for, in its order", came))?;
        self.passed = index + 1;
        if !counts {
            self.values.put(index, value);
            return Ok(());
        }
        match counter(value) {
            Ok(number) => self.numbers[index] = Some(number),
            Err(words) => {
                self.refusal.get_or_insert(words);
            }
        }
        Ok(())
    }

    /// A code for each put.
    #[inline]
    fn hear_codes<'b>(&'b mut self, count: usize, bytes: &'b [u8]) -> Option<(usize, Decoded<'b>)> {
        let used = bytes.len().min(count - self.parts);
        if let Some(at) = bytes[..used].iter().position(|&code| code != 0) {
            self.refusal.get_or_insert_with(|| format!("put failed with code {}", bytes[at]));
        }
        self.parts += used;
        if self.parts < count {
            return Some((used, Decoded::Again));
        }
        if let Some(words) = self.refusal.take() {
            return Some((used, self.refused(words, 0)));
        }
        self.done(0);
        Some((used, Decoded::Reply(Reply::Done)))
    }

    /// A code for each add, and behind that of success the sum.
    fn hear_sums<'b>(&'b mut self, count: usize, bytes: &'b [u8]) -> Option<(usize, Decoded<'b>)> {
        let mut used = 0;
        while self.parts < count {
            let again = (used > 0).then_some((used, Decoded::Again));
            let Some(&code) = bytes.get(used) else { return again };
            let step = self.steps.front().copied().unwrap_or_default();
            let heard = match code {
                0 => match four(bytes, used + 1) {
                    Some(sum) => grown(sum.cast_signed(), step).map(drop),
                    None => return again,
                },
                code => Err(no_sum(code)),
            };
            used += if code == 0 { 5 } else { 1 };
            self.steps.pop_front();
            self.parts += 1;
            if let Err(words) = heard {
                self.refusal.get_or_insert(words);
            }
        }
        if let Some(words) = self.refusal.take() {
            return Some((used, self.refused(words, 0)));
        }
        self.done(0);
        Some((used, Decoded::Reply(Reply::Done)))
    }

    /// A code, and a sum where one was asked for.
    #[inline]
    fn hear_change<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let (code, mut used) = (bytes[0], 1);
        let heard = match (awaited, code) {
            (Awaited::Kept, 0) | (Awaited::Deleted, 0) => Ok(Reply::Done),
            (Awaited::Kept, _) => Ok(Reply::Conflict),
            (Awaited::Deleted, _) => Ok(Reply::Missing),
            (Awaited::Sum(by), 0) => {
                let Some(sum) = four(bytes, 1) else {
                    return Ok(None);
                };
                used = 5;
                grown(sum.cast_signed(), by).map(Reply::Number)
            }
            _ => Err(no_sum(code)),
        };
        Ok(Some(match heard {
            Ok(reply) => {
                self.done(0);
                (used, Decoded::Reply(reply))
            }
            Err(words) => (used, self.refused(words, 0)),
        }))
    }

    #[inline]
    fn done(&mut self, keys: usize) {
        self.waiting.pop_front();
        self.asked.pop(keys);
        self.parts = 0;
        self.left = None;
        self.passed = 0;
    }

    #[cold]
    fn refused(&mut self, words: String, keys: usize) -> Decoded<'static> {
        self.done(keys);
        Decoded::Refused(words)
    }
}

fn no_sum(code: u8) -> String {
    format!(
        "addint failed with code {code}: what is there is no number of four bytes, or its sum is {}, which the server \
         takes for a failure",
        i32::MIN
    )
}

/// One record of an answer to `mget`, once it is all there.
#[inline]
#[allow(clippy::type_complexity)] // Bytes used, key, value: read at once by the one caller.
fn record(bytes: &[u8]) -> Result<Option<(usize, &[u8], &[u8])>, Fault> {
    let (Some(key), Some(value)) = (four(bytes, 0), four(bytes, 4)) else {
        return Ok(None);
    };
    let key_end = 8 + length(key, bytes)?;
    let end = key_end + length(value, bytes)?;
    Ok(bytes.get(..end).map(|all| (end, &all[8..key_end], &all[key_end..])))
}

/// A counter's value.
fn counter(value: &[u8]) -> Result<i64, String> {
    match value.try_into() {
        Ok(four) => Ok(i64::from(i32::from_le_bytes(four))),
        Err(_) => Err(format!("the value '{}' is no counter", readable(value, 40))),
    }
}

/// The sum, if it can have come from a counter of 32 bits without going around.
fn grown(sum: i32, by: i32) -> Result<i64, String> {
    let before = i64::from(sum) - i64::from(by);
    if i32::try_from(before).is_ok() {
        return Ok(i64::from(sum));
    }
    let limit = if by > 0 { i32::MAX } else { i32::MIN };
    Err(format!("the counter went past {limit} and around to {sum}: it has 32 bits and is wrong from now on"))
}
