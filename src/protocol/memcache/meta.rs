//! The meta commands: text as well, but one code and its flags an answer, quiet reads and writes, and counters that are
//! made by the command that adds to them.
//!
//! A quiet question is answered only where there is something to say, and `mn`, the question for nothing, is what ends
//! a row of them.

use std::collections::VecDeque;

use super::super::text::{garbled, line, push_number, unasked, unsigned};
use super::super::{Codec, Decoded};
use super::frames::{LINE_MAX, VALUE_MAX, counter, data, escape, is_error, lowered};
use super::{Limits, explained};
use crate::model::op::{Fault, Keys, Op, Pairs, Reply, Sums, ValueList};

/// One connection's side of memcached's meta commands.
pub struct Meta {
    limits: Limits,
    waiting: VecDeque<Awaited>,
    /// Whether a part of the answer to the op in front was heard already.
    begun: bool,
    /// What a counter was before it is lowered by the op in front.
    before: u64,
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
    /// Errors, if any, and `MN`.
    AllStored {
        largest: usize,
    },
    /// The values of those found, each with its place among the keys, and `MN`.
    Values(usize),
    Counts(usize),
}

impl Meta {
    /// `store` is what messages call it.
    pub fn new(store: &'static str) -> Self {
        Meta {
            limits: Limits { store },
            waiting: VecDeque::new(),
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

impl Codec for Meta {
    fn hello(&mut self, _: &mut Vec<u8>) {}

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) => self.ask(b"mg ", key, b" v\r\n", Awaited::Value, out)?,
            Op::Number(key) => self.ask(b"mg ", key, b" v\r\n", Awaited::Count, out)?,
            Op::GetVersion(key) => self.ask(b"mg ", key, b" v c\r\n", Awaited::Version, out)?,
            Op::Delete(key) => self.ask(b"md ", key, b"\r\n", Awaited::Deleted, out)?,
            Op::GetMany(keys) => self.ask_many(op, keys, Awaited::Values(keys.len()), out)?,
            Op::NumberMany(keys) => self.ask_many(op, keys, Awaited::Counts(keys.len()), out)?,
            Op::Set { key, value, ttl_s } => {
                let lifetime_s = self.limits.lifetime_s(ttl_s)?;
                self.store(key, value, |out| flag_unless(0, b" T", u64::from(lifetime_s), out), out)?;
                Awaited::Stored { size: value.len() }
            }
            Op::SetIfAbsent { key, value } => {
                self.store(key, value, |out| out.extend_from_slice(b" ME"), out)?;
                Awaited::Added { size: value.len() }
            }
            Op::Cas { key, version, value } => {
                self.store(key, value, |out| flag(b" C", version, out), out)?;
                Awaited::Swapped { size: value.len() }
            }
            Op::SetMany(pairs) => self.store_many(op, pairs, out)?,
            Op::Increment { key, by } => self.increment(key, by, out)?,
            Op::Add { key, by } => {
                self.add(op, key, by, b"\r\n", out)?;
                Awaited::Stored { size: 0 }
            }
            Op::AddMany(sums) => self.add_many(op, sums, out)?,
            Op::Tally { .. } | Op::ReadTally(_) | Op::Scan { .. } => {
                return Err(Fault::unsupported(self.limits.store, op));
            }
        };
        self.commands += match *op {
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.len() as u64 + 1,
            Op::SetMany(pairs) => pairs.keys.len() as u64 + 1,
            Op::AddMany(sums) => sums.len() as u64 + 1,
            Op::Increment { by: ..0, .. } => 2,
            _ => 1,
        };
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
            Awaited::AllStored { largest } => self.hear_all_stored(largest, bytes),
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
impl Meta {
    #[inline]
    fn ask(
        &self,
        command: &[u8],
        key: &[u8],
        flags: &[u8],
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Result<Awaited, Fault> {
        self.limits.check_key(key)?;
        out.extend_from_slice(command);
        escape(key, out);
        out.extend_from_slice(flags);
        Ok(awaited)
    }

    /// Each with its place as the opaque flag (O), which comes back with the value; misses are quiet (q).
    fn ask_many(&self, op: &Op<'_>, keys: Keys<'_>, awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        keys.iter().try_for_each(|key| self.limits.check_key(key))?;
        for (index, key) in keys.iter().enumerate() {
            out.extend_from_slice(b"mg ");
            escape(key, out);
            out.extend_from_slice(b" v q");
            flag(b" O", index as u64, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"mn\r\n");
        Ok(awaited)
    }

    #[inline]
    fn store(&self, key: &[u8], value: &[u8], flags: impl Fn(&mut Vec<u8>), out: &mut Vec<u8>) -> Result<(), Fault> {
        self.limits.check_key(key)?;
        self.limits.check_value(value)?;
        out.extend_from_slice(b"ms ");
        escape(key, out);
        flag(b" ", value.len() as u64, out);
        flags(out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Successes are quiet, errors are not.
    fn store_many(&self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if pairs.keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        let before = out.len();
        let quiet = |out: &mut Vec<u8>| out.extend_from_slice(b" q");
        if let Err(fault) = pairs.iter().try_for_each(|(key, value)| self.store(key, value, quiet, out)) {
            out.truncate(before);
            return Err(fault);
        }
        out.extend_from_slice(b"mn\r\n");
        Ok(Awaited::AllStored { largest: pairs.values.iter().map(<[u8]>::len).max().unwrap_or(0) })
    }

    /// Adds to a counter, or makes it (N, with J as its first value) where there is none, and asks for nothing.
    fn add(&self, op: &Op<'_>, key: &[u8], by: i64, end: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.limits.check_key(key)?;
        let step = self.limits.step_of(op, by)?;
        out.extend_from_slice(b"ma ");
        escape(key, out);
        flag(b" N0 J", step, out);
        flag(b" D", step, out);
        out.extend_from_slice(end);
        Ok(())
    }

    /// Successes are quiet, errors are not.
    fn add_many(&self, op: &Op<'_>, sums: Sums<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if sums.is_empty() {
            return Err(self.limits.nothing(op));
        }
        let before = out.len();
        if let Err(fault) = sums.iter().try_for_each(|(key, by)| self.add(op, key, by, b" q\r\n", out)) {
            out.truncate(before);
            return Err(fault);
        }
        out.extend_from_slice(b"mn\r\n");
        Ok(Awaited::AllStored { largest: 0 })
    }

    /// Adds to a counter, or makes it (N, with J as its first value) where there is none, and asks for its new value
    /// (v). A negative step is taken away (MD): that stops at 0 and does not say so, which is why the counter is asked
    /// for right before.
    fn increment(&self, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_key(key)?;
        let step = by.unsigned_abs();
        if by < 0 {
            out.extend_from_slice(b"ma ");
            escape(key, out);
            out.extend_from_slice(b" D0 v\r\nma ");
            escape(key, out);
            flag(b" MD D", step, out);
            out.extend_from_slice(b" v\r\n");
            return Ok(Awaited::Lowered { by: step });
        }
        out.extend_from_slice(b"ma ");
        escape(key, out);
        flag(b" N0 J", step, out);
        flag(b" D", step, out);
        out.extend_from_slice(b" v\r\n");
        Ok(Awaited::Sum)
    }
}

fn flag(name: &[u8], number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    push_number(number, out);
}

fn flag_unless(default: u64, name: &[u8], number: u64, out: &mut Vec<u8>) {
    if number != default {
        flag(name, number, out);
    }
}

/// An answer's head, and what it announced.
enum Answer<'b> {
    /// `VA`: flags and data.
    Value(&'b [u8], &'b [u8]),
    /// Any other line.
    Line(&'b [u8]),
}

/// The first answer and the bytes it took, once it is all there.
#[inline]
fn answer(bytes: &[u8]) -> Result<Option<(usize, Answer<'_>)>, Fault> {
    let Some(text) = line(bytes, LINE_MAX)? else {
        return Ok(None);
    };
    let start = text.len() + 2;
    let Some(rest) = text.strip_prefix(b"VA ") else {
        return Ok(Some((start, Answer::Line(text))));
    };
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let size = unsigned(&rest[..end]).and_then(|size| usize::try_from(size).ok()).filter(|&size| size <= VALUE_MAX);
    let size = size.ok_or_else(|| garbled(&format!("VA and a size of at most {VALUE_MAX}"), bytes))?;
    let Some(data) = data(bytes, start, size)? else {
        return Ok(None);
    };
    Ok(Some((start + size + 2, Answer::Value(&rest[end..], data))))
}

/// The number of a flag.
#[inline]
fn flagged(flags: &[u8], name: u8) -> Option<u64> {
    let mut words = flags.split(|&byte| byte == b' ');
    words.find_map(|word| word.strip_prefix(&[name]).and_then(unsigned))
}

/// What was answered.
impl Meta {
    #[inline]
    fn hear_one<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some((used, answer)) = answer(bytes)? else {
            return Ok(None);
        };
        let reply = match (awaited, answer) {
            (Awaited::Value, Answer::Value(_, data)) => Reply::Value(data),
            (Awaited::Count | Awaited::Sum, Answer::Value(_, data)) => match counter(data) {
                Ok(number) => Reply::Number(number),
                Err(words) => return Ok(Some((used, self.refused(words)))),
            },
            (Awaited::Version, Answer::Value(flags, data)) => {
                let version = flagged(flags, b'c').ok_or_else(|| garbled("a value with its version", bytes))?;
                Reply::Versioned(data, version)
            }
            (Awaited::Value | Awaited::Count | Awaited::Version, Answer::Line(b"EN")) => Reply::Missing,
            (
                Awaited::Stored { .. } | Awaited::Added { .. } | Awaited::Swapped { .. } | Awaited::Deleted,
                Answer::Line(b"HD"),
            ) => Reply::Done,
            (Awaited::Deleted, Answer::Line(b"NF")) => Reply::Missing,
            (Awaited::Added { .. }, Answer::Line(b"NS")) => Reply::Conflict,
            // Somebody has changed it, or has removed it.
            (Awaited::Swapped { .. }, Answer::Line(b"EX" | b"NF")) => Reply::Conflict,
            (awaited, Answer::Line(words)) if is_error(words) => {
                let words = explained(words, awaited.size());
                return Ok(Some((used, self.refused(words))));
            }
            (awaited, _) => return Err(garbled(awaited.expected(), bytes)),
        };
        self.done();
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// What a counter was, and then what is left of it.
    fn hear_lowered<'b>(&'b mut self, by: u64, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some((used, answer)) = answer(bytes)? else {
            return Ok(None);
        };
        let number = match answer {
            Answer::Value(_, data) => unsigned(data.trim_ascii_end()),
            Answer::Line(b"NF") => Some(0),
            Answer::Line(words) if is_error(words) => {
                self.note(words, 0);
                Some(0)
            }
            Answer::Line(_) => None,
        };
        let number = number.ok_or_else(|| garbled("VA and a number, or NF", bytes))?;
        if !self.begun {
            (self.begun, self.before) = (true, number);
            return Ok(Some((used, Decoded::Again)));
        }
        Ok(Some(match self.refusal.take().map_or_else(|| lowered(self.before, by, number), Err) {
            Ok(left) => {
                self.done();
                (used, Decoded::Reply(Reply::Number(left)))
            }
            Err(words) => (used, self.refused(words)),
        }))
    }

    /// The values of those found, in the order of the keys, and `MN`.
    fn hear_many<'b>(
        &'b mut self,
        counts: bool,
        count: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if !self.begun {
            self.begun = true;
            self.values.reset(count);
            self.numbers.clear();
            self.numbers.resize(count, None);
        }
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some((taken, answer)) = answer(rest)? else {
                return Ok((used > 0).then_some((used, Decoded::Again)));
            };
            used += taken;
            match answer {
                Answer::Value(flags, data) => self.put(counts, count, flags, data, rest)?,
                Answer::Line(b"MN") => break,
                Answer::Line(words) if is_error(words) => self.note(words, 0),
                Answer::Line(_) => return Err(garbled("VA or MN", rest)),
            }
        }
        if let Some(words) = self.refusal.take() {
            return Ok(Some((used, self.refused(words))));
        }
        self.done();
        let reply = if counts { Reply::Numbers(&self.numbers) } else { Reply::Values(self.values.lend()) };
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// Puts a value in its place. Keys before it that were not answered are missing.
    fn put(&mut self, counts: bool, count: usize, flags: &[u8], data: &[u8], came: &[u8]) -> Result<(), Fault> {
        let index = flagged(flags, b'O').and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| (self.passed..count).contains(index));
        let index = index.ok_or_else(|| garbled("the value of a key that was asked for, in its order", came))?;
        self.passed = index + 1;
        if !counts {
            self.values.put(index, data);
            return Ok(());
        }
        match counter(data) {
            Ok(number) => self.numbers[index] = Some(number),
            Err(words) => self.note(words.as_bytes(), 0),
        }
        Ok(())
    }

    fn hear_all_stored<'b>(
        &'b mut self,
        largest: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some(words) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        let used = words.len() + 2;
        if is_error(words) {
            self.note(words, largest);
            return Ok(Some((used, Decoded::Again)));
        }
        if words != b"MN" {
            return Err(garbled("MN", bytes));
        }
        if let Some(words) = self.refusal.take() {
            return Ok(Some((used, self.refused(words))));
        }
        self.done();
        Ok(Some((used, Decoded::Reply(Reply::Done))))
    }

    /// Keeps the first error among many.
    #[cold]
    fn note(&mut self, words: &[u8], largest: usize) {
        self.refusal.get_or_insert_with(|| explained(words, largest));
    }

    #[inline]
    fn done(&mut self) {
        self.waiting.pop_front();
        self.begun = false;
        self.passed = 0;
    }

    #[cold]
    fn refused(&mut self, words: String) -> Decoded<'static> {
        self.done();
        Decoded::Refused(words)
    }
}

impl Awaited {
    fn size(self) -> usize {
        match self {
            Awaited::Stored { size } | Awaited::Added { size } | Awaited::Swapped { size } => size,
            _ => 0,
        }
    }

    #[cold]
    fn expected(self) -> &'static str {
        match self {
            Awaited::Stored { .. } => "HD",
            Awaited::Added { .. } => "HD or NS",
            Awaited::Swapped { .. } => "HD, EX or NF",
            Awaited::Deleted => "HD or NF",
            Awaited::Sum => "VA and a size",
            _ => "VA or EN",
        }
    }
}
