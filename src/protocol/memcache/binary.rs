//! The binary protocol: a head of 24 bytes, then what its lengths announce. Keys go as they are: nothing is escaped.
//!
//! The format: <https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped>. Each question carries a number
//! (opaque) that its answer repeats; a quiet question is answered only where there is something to say, and a question
//! for nothing (noop) ends a row of them.

mod counting;

use std::collections::VecDeque;

use super::super::text::{garbled, unasked};
use super::super::{Codec, Decoded};
use super::frames::{VALUE_MAX, counter};
use super::{Limits, explained};
use crate::model::op::{Fault, Keys, Op, Pairs, Reply, ValueList};

const HEAD: usize = 24;
const ASK: u8 = 0x80;
const ANSWER: u8 = 0x81;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const ADD: u8 = 0x02;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const DECREMENT: u8 = 0x06;
const GET_QUIETLY: u8 = 0x09;
const NOOP: u8 = 0x0a;
const SET_QUIETLY: u8 = 0x11;
const INCREMENT_QUIETLY: u8 = 0x15;

const NOT_FOUND: u16 = 1;
const EXISTS: u16 = 2;
const NOT_STORED: u16 = 5;

/// No answer's body is larger than an item with its key and extras.
const BODY_MAX: usize = VALUE_MAX + 1024;

/// One connection's side of memcached's binary protocol.
pub struct Binary {
    limits: Limits,
    waiting: VecDeque<Awaited>,
    /// The number of the next question, and of the one in front.
    next: u32,
    front: u32,
    /// Whether a part of the answer to the op in front was heard already.
    begun: bool,
    /// What a counter was before it is lowered by the op in front.
    before: u64,
    /// Keys of the op in front that were answered or passed over.
    passed: u32,
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
    Version,
    Sum,
    /// A number, and the one that is left of it.
    Lowered {
        by: u64,
    },
    Stored {
        size: usize,
    },
    Added {
        size: usize,
    },
    Swapped {
        size: usize,
    },
    Deleted,
    /// Errors, if any, and the noop's answer.
    AllStored {
        count: u32,
        largest: usize,
    },
    /// A sum that is not asked for.
    Counted,
    /// Errors, if any, and the noop's answer.
    AllCounted(u32),
    /// The values of those found, and the noop's answer.
    Values(u32),
    Counts(u32),
}

impl Binary {
    /// `store` is what messages call it.
    pub fn new(store: &'static str) -> Self {
        Binary {
            limits: Limits { store },
            waiting: VecDeque::new(),
            next: 0,
            front: 0,
            begun: false,
            before: 0,
            passed: 0,
            refusal: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            commands: 0,
        }
    }
}

impl Codec for Binary {
    fn hello(&mut self, _: &mut Vec<u8>) {}

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) => self.ask_for(GET, key, Awaited::Value, out)?,
            Op::Number(key) => self.ask_for(GET, key, Awaited::Count, out)?,
            Op::GetVersion(key) => self.ask_for(GET, key, Awaited::Version, out)?,
            Op::Delete(key) => self.ask_for(DELETE, key, Awaited::Deleted, out)?,
            Op::GetMany(keys) => self.ask_many(op, keys, Awaited::Values(keys.len() as u32), out)?,
            Op::NumberMany(keys) => self.ask_many(op, keys, Awaited::Counts(keys.len() as u32), out)?,
            Op::Set { key, value, ttl_s } => {
                self.store(SET, self.next, key, value, self.limits.lifetime_s(ttl_s)?, 0, out)?;
                Awaited::Stored { size: value.len() }
            }
            Op::SetIfAbsent { key, value } => {
                self.store(ADD, self.next, key, value, 0, 0, out)?;
                Awaited::Added { size: value.len() }
            }
            Op::Cas { key, version, value } => {
                self.store(SET, self.next, key, value, 0, version, out)?;
                Awaited::Swapped { size: value.len() }
            }
            Op::SetMany(pairs) => self.store_many(op, pairs, out)?,
            Op::Increment { key, by } => self.increment(key, by, out)?,
            Op::Add { key, by } => self.add(op, key, by, out)?,
            Op::AddMany(sums) => self.add_many(op, sums, out)?,
            Op::Tally { .. } | Op::ReadTally(_) | Op::Scan { .. } => {
                return Err(Fault::unsupported(self.limits.store, op));
            }
        };
        let questions = awaited.questions();
        self.next = self.next.wrapping_add(questions);
        self.commands += u64::from(questions);
        self.waiting.push_back(awaited);
        Ok(())
    }

    #[inline]
    fn hear<'b>(&'b mut self, bytes: &'b [u8], _: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match *self.waiting.front().ok_or_else(|| unasked(bytes))? {
            Awaited::Values(count) => self.hear_many(false, count, bytes),
            Awaited::Counts(count) => self.hear_many(true, count, bytes),
            Awaited::AllStored { count, largest } => self.hear_all_done(SET_QUIETLY, count, largest, bytes),
            Awaited::AllCounted(count) => self.hear_all_done(INCREMENT_QUIETLY, count, 0, bytes),
            Awaited::Lowered { by } => self.hear_lowered(by, bytes),
            awaited => self.hear_one(awaited, bytes),
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
impl Binary {
    #[inline]
    fn ask_for(&self, command: u8, key: &[u8], awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_plain_key(key)?;
        head(command, key.len(), 0, 0, self.next, 0, out);
        out.extend_from_slice(key);
        Ok(awaited)
    }

    /// Misses are quiet; the number of a question tells the place of its key.
    fn ask_many(&self, op: &Op<'_>, keys: Keys<'_>, awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        keys.iter().try_for_each(|key| self.limits.check_plain_key(key))?;
        let mut number = self.next;
        for key in keys.iter() {
            head(GET_QUIETLY, key.len(), 0, 0, number, 0, out);
            out.extend_from_slice(key);
            number = number.wrapping_add(1);
        }
        head(NOOP, 0, 0, 0, number, 0, out);
        Ok(awaited)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)] // The fields of one question; a struct for them would only name them twice.
    fn store(
        &self,
        command: u8,
        number: u32,
        key: &[u8],
        value: &[u8],
        lifetime_s: u32,
        version: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.limits.check_plain_key(key)?;
        self.limits.check_value(value)?;
        head(command, key.len(), 8, value.len(), number, version, out);
        out.extend_from_slice(&0_u32.to_be_bytes());
        out.extend_from_slice(&lifetime_s.to_be_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(value);
        Ok(())
    }

    /// Successes are quiet, errors are not.
    fn store_many(&self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if pairs.keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        let (before, mut number) = (out.len(), self.next);
        for (key, value) in pairs.iter() {
            if let Err(fault) = self.store(SET_QUIETLY, number, key, value, 0, 0, out) {
                out.truncate(before);
                return Err(fault);
            }
            number = number.wrapping_add(1);
        }
        head(NOOP, 0, 0, 0, number, 0, out);
        let largest = pairs.values.iter().map(<[u8]>::len).max().unwrap_or(0);
        Ok(Awaited::AllStored { count: pairs.keys.len() as u32, largest })
    }
}

/// A question's head. Lengths were checked to fit.
#[inline]
fn head(command: u8, key: usize, extras: u8, value: usize, number: u32, version: u64, out: &mut Vec<u8>) {
    let mut head = [0; HEAD];
    head[0] = ASK;
    head[1] = command;
    head[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    head[4] = extras;
    head[8..12].copy_from_slice(&((key + usize::from(extras) + value) as u32).to_be_bytes());
    head[12..16].copy_from_slice(&number.to_be_bytes());
    head[16..24].copy_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&head);
}

struct Answer<'b> {
    command: u8,
    status: u16,
    number: u32,
    version: u64,
    /// What comes behind extras and key.
    value: &'b [u8],
}

/// The first answer and the bytes it took, once it is all there.
#[inline]
fn answer(bytes: &[u8]) -> Result<Option<(usize, Answer<'_>)>, Fault> {
    if bytes[0] != ANSWER {
        return Err(garbled("an answer's head", bytes));
    }
    let Some(head) = bytes.first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let four = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let before = usize::from(two(2)) + usize::from(head[4]);
    let body = four(8) as usize;
    if body > BODY_MAX || before > body {
        return Err(garbled(&format!("a body of at most {BODY_MAX} bytes around its key, not {body}"), bytes));
    }
    let Some(value) = bytes.get(HEAD + before..HEAD + body) else {
        return Ok(None);
    };
    let version = u64::from(four(16)) << 32 | u64::from(four(20));
    let answer = Answer { command: head[1], status: two(6), number: four(12), version, value };
    Ok(Some((HEAD + body, answer)))
}

/// A question that touches no record, and whose answer [`noop`] reads.
pub const NOOP_QUESTION: &[u8; HEAD] = &{
    let mut head = [0; HEAD];
    head[0] = ASK;
    head[1] = NOOP;
    head
};

/// The bytes that an answer to a noop took.
pub fn noop(bytes: &[u8]) -> Result<Option<(usize, ())>, Fault> {
    if bytes.is_empty() {
        return Ok(None);
    }
    match answer(bytes)? {
        None => Ok(None),
        Some((used, Answer { command: NOOP, status: 0, .. })) => Ok(Some((used, ()))),
        Some((_, refusal)) if refusal.status != 0 => Err(Fault::Refused(in_words(&refusal, 0))),
        Some(_) => Err(garbled("the answer to a noop", bytes)),
    }
}

/// What was answered.
impl Binary {
    #[inline]
    fn hear_one<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some((used, answer)) = answer(bytes)? else {
            return Ok(None);
        };
        if answer.number != self.front || answer.command != awaited.command() {
            return Err(garbled(&format!("the answer to question {}", self.front), bytes));
        }
        let reply = match (awaited, answer.status) {
            (Awaited::Value, 0) => Reply::Value(answer.value),
            (Awaited::Version, 0) => Reply::Versioned(answer.value, answer.version),
            (Awaited::Count, 0) => match counter(answer.value) {
                Ok(number) => Reply::Number(number),
                Err(words) => return Ok(Some((used, self.refused(words)))),
            },
            (Awaited::Sum, 0) => {
                let sum = answer.value.try_into().map_err(|_| garbled("eight bytes of a number", bytes))?;
                match counted(u64::from_be_bytes(sum)) {
                    Ok(number) => Reply::Number(number),
                    Err(words) => return Ok(Some((used, self.refused(words)))),
                }
            }
            (_, 0) => Reply::Done,
            (Awaited::Value | Awaited::Count | Awaited::Version | Awaited::Deleted, NOT_FOUND) => Reply::Missing,
            (Awaited::Added { .. }, EXISTS | NOT_STORED) => Reply::Conflict,
            // Somebody has changed it, or has removed it.
            (Awaited::Swapped { .. }, EXISTS | NOT_FOUND | NOT_STORED) => Reply::Conflict,
            (awaited, _) => {
                let words = in_words(&answer, awaited.size());
                return Ok(Some((used, self.refused(words))));
            }
        };
        self.done(awaited);
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// The values of those found, in the order of the keys, and the noop's answer.
    fn hear_many<'b>(
        &'b mut self,
        counts: bool,
        count: u32,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if !self.begun {
            self.begun = true;
            self.values.reset(count as usize);
            self.numbers.clear();
            self.numbers.resize(count as usize, None);
        }
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some((taken, answer)) = (if rest.is_empty() { None } else { answer(rest)? }) else {
                return Ok((used > 0).then_some((used, Decoded::Again)));
            };
            let index = self.place(&answer, GET_QUIETLY, count, rest)?;
            used += taken;
            match answer.status {
                _ if index == count => break,
                0 if counts => match counter(answer.value) {
                    Ok(number) => self.numbers[index as usize] = Some(number),
                    Err(words) => self.note(words),
                },
                0 => self.values.put(index as usize, answer.value),
                NOT_FOUND => {}
                _ => self.note(in_words(&answer, 0)),
            }
        }
        if let Some(words) = self.refusal.take() {
            return Ok(Some((used, self.refused(words))));
        }
        self.done(Awaited::Values(count));
        let reply = if counts { Reply::Numbers(&self.numbers) } else { Reply::Values(self.values.lend()) };
        Ok(Some((used, Decoded::Reply(reply))))
    }

    fn hear_all_done<'b>(
        &'b mut self,
        command: u8,
        count: u32,
        largest: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some((used, answer)) = answer(bytes)? else {
            return Ok(None);
        };
        if self.place(&answer, command, count, bytes)? < count {
            self.note(in_words(&answer, largest));
            return Ok(Some((used, Decoded::Again)));
        }
        if let Some(words) = self.refusal.take() {
            return Ok(Some((used, self.refused(words))));
        }
        self.done(Awaited::AllStored { count, largest });
        Ok(Some((used, Decoded::Reply(Reply::Done))))
    }

    /// Which of the op's questions an answer belongs to: those come in their order, and the last one is the noop.
    fn place(&mut self, answer: &Answer<'_>, quiet: u8, count: u32, came: &[u8]) -> Result<u32, Fault> {
        let index = answer.number.wrapping_sub(self.front);
        let command = if index == count { NOOP } else { quiet };
        if index < self.passed || index > count || answer.command != command {
            return Err(garbled("an answer to what was asked, in its order", came));
        }
        self.passed = index + 1;
        Ok(index)
    }

    /// Keeps the first error among many.
    #[cold]
    fn note(&mut self, words: String) {
        self.refusal.get_or_insert(words);
    }

    #[inline]
    fn done(&mut self, awaited: Awaited) {
        self.waiting.pop_front();
        self.front = self.front.wrapping_add(awaited.questions());
        self.begun = false;
        self.passed = 0;
    }

    #[cold]
    fn refused(&mut self, words: String) -> Decoded<'static> {
        if let Some(awaited) = self.waiting.front().copied() {
            self.done(awaited);
        }
        Decoded::Refused(words)
    }
}

/// A counter's value, or why it is none of ours.
fn counted(count: u64) -> Result<i64, String> {
    let mut text = itoa::Buffer::new();
    i64::try_from(count).or_else(|_| counter(text.format(count).as_bytes()))
}

/// An error in the server's words, or in the protocol's where it says none.
#[cold]
fn in_words(answer: &Answer<'_>, largest: usize) -> String {
    let said = explained(answer.value, largest);
    if said.is_empty() { format!("status {}", answer.status) } else { said }
}

impl Awaited {
    /// How many questions were asked for it.
    fn questions(self) -> u32 {
        match self {
            Awaited::Values(count) | Awaited::Counts(count) | Awaited::AllCounted(count) => count + 1,
            Awaited::AllStored { count, .. } => count + 1,
            Awaited::Lowered { .. } => 2,
            _ => 1,
        }
    }

    fn command(self) -> u8 {
        match self {
            Awaited::Value | Awaited::Count | Awaited::Version => GET,
            Awaited::Sum | Awaited::Counted => INCREMENT,
            Awaited::Added { .. } => ADD,
            Awaited::Deleted => DELETE,
            _ => SET,
        }
    }

    fn size(self) -> usize {
        match self {
            Awaited::Stored { size } | Awaited::Added { size } | Awaited::Swapped { size } => size,
            _ => 0,
        }
    }
}
