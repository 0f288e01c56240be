//! memcached's text protocol: a command a line, values announced by their length.
//!
//! The format: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>. It knows no socket and keeps no
//! value: a single value is lent out of the received bytes, many values are copied out of them as they come.
//!
//! Counters are added to by the protocol's `ma` (since memcached 1.6), which makes a missing counter by the same
//! command: with
//! `incr` a missing one takes `add`, another answer, and perhaps `incr` again, and the answers of pipelined ops change
//! their order.

use std::collections::VecDeque;

use super::text::{garbled, line, number, push_number, unasked};
use super::{Codec, Heard};
use crate::words::op::{Fault, Keys, Op, Pairs, Reply, ValueList, readable};

mod frames;

use frames::{Asked, Block, END, Found, LINE_MAX, STORED, TTL_MAX_S, VALUE_MAX};
pub use frames::{KEY_MAX, Stats, stats, version};
use frames::{block, counter, data, escape, is_error, is_escaped};

/// One connection's side of memcached's text protocol.
pub struct Memcache {
    store: &'static str,
    waiting: VecDeque<Awaited>,
    /// The keys of the reads in `waiting`, as they were sent.
    asked: Asked,
    /// Parts of the answer to the op in front that were heard already.
    parts: usize,
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
    /// `STORED`, so many times.
    Stored {
        commands: usize,
        largest: usize,
    },
    /// `STORED`, or `NOT_STORED` because the key is there.
    Added {
        size: usize,
    },
    /// `STORED`, or why not.
    Swapped {
        size: usize,
    },
    Deleted,
    Sum,
    Value,
    Count,
    Version,
    Values(usize),
    Counts(usize),
}

impl Memcache {
    /// `store` is what messages call it.
    pub fn new(store: &'static str) -> Self {
        Memcache {
            store,
            waiting: VecDeque::new(),
            asked: Asked::default(),
            parts: 0,
            passed: 0,
            refusal: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            commands: 0,
        }
    }
}

impl Codec for Memcache {
    fn hello(&mut self, _: &mut Vec<u8>) {}

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) => self.read(b"get", key, Awaited::Value, out)?,
            Op::Number(key) => self.read(b"get", key, Awaited::Count, out)?,
            Op::GetVersion(key) => self.read(b"gets", key, Awaited::Version, out)?,
            Op::GetMany(keys) => self.read_many(op, keys, Awaited::Values(keys.len()), out)?,
            Op::NumberMany(keys) => self.read_many(op, keys, Awaited::Counts(keys.len()), out)?,
            Op::Set { key, value, ttl_s } => {
                self.store(b"set", key, value, self.lifetime_s(ttl_s)?, None, out)?;
                Awaited::Stored { commands: 1, largest: value.len() }
            }
            Op::SetMany(pairs) => self.set_many(op, pairs, out)?,
            Op::SetIfAbsent { key, value } => {
                self.store(b"add", key, value, 0, None, out)?;
                Awaited::Added { size: value.len() }
            }
            Op::Cas { key, version, value } => {
                self.store(b"cas", key, value, 0, Some(version), out)?;
                Awaited::Swapped { size: value.len() }
            }
            Op::Delete(key) => {
                self.check_key(key)?;
                out.extend_from_slice(b"delete ");
                escape(key, out);
                out.extend_from_slice(b"\r\n");
                Awaited::Deleted
            }
            Op::Increment { key, by } => self.increment(key, by, out)?,
            Op::Tally { .. } | Op::ReadTally(_) | Op::Scan { .. } => return Err(Fault::unsupported(self.store, op)),
        };
        self.commands += match awaited {
            Awaited::Stored { commands, .. } => commands as u64,
            _ => 1,
        };
        self.waiting.push_back(awaited);
        Ok(())
    }

    #[inline]
    fn hear<'b>(&'b mut self, bytes: &'b [u8], _: &mut Vec<u8>) -> Result<Option<(usize, Heard<'b>)>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match *self.waiting.front().ok_or_else(|| unasked(bytes))? {
            awaited @ (Awaited::Value | Awaited::Count | Awaited::Version) => self.hear_one(awaited, bytes),
            awaited @ (Awaited::Values(count) | Awaited::Counts(count)) => self.hear_many(awaited, count, bytes),
            awaited @ Awaited::Stored { commands, .. } => self.hear_stored(awaited, commands, bytes),
            awaited => self.hear_line(awaited, bytes),
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
impl Memcache {
    #[inline]
    fn read(&mut self, command: &[u8], key: &[u8], awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.check_key(key)?;
        out.extend_from_slice(command);
        self.name_asked(key, out);
        out.extend_from_slice(b"\r\n");
        Ok(awaited)
    }

    fn read_many(
        &mut self,
        op: &Op<'_>,
        keys: Keys<'_>,
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Result<Awaited, Fault> {
        if keys.is_empty() {
            return Err(self.nothing(op));
        }
        keys.iter().try_for_each(|key| self.check_key(key))?;
        out.extend_from_slice(b"get");
        keys.iter().for_each(|key| self.name_asked(key, out));
        out.extend_from_slice(b"\r\n");
        Ok(awaited)
    }

    fn name_asked(&mut self, key: &[u8], out: &mut Vec<u8>) {
        out.push(b' ');
        let start = out.len();
        escape(key, out);
        self.asked.push(&out[start..]);
    }

    /// The protocol sets one key a command. One op, many commands: all are on their way before the first answer is
    /// read.
    fn set_many(&mut self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if pairs.keys.is_empty() {
            return Err(self.nothing(op));
        }
        let before = out.len();
        let stored = pairs.iter().try_for_each(|(key, value)| self.store(b"set", key, value, 0, None, out));
        if let Err(fault) = stored {
            out.truncate(before);
            return Err(fault);
        }
        let largest = pairs.values.iter().map(<[u8]>::len).max().unwrap_or(0);
        Ok(Awaited::Stored { commands: pairs.keys.len(), largest })
    }

    #[inline]
    fn store(
        &self,
        command: &[u8],
        key: &[u8],
        value: &[u8],
        lifetime_s: u32,
        version: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.check_key(key)?;
        if value.len() > VALUE_MAX {
            let (store, size) = (self.store, value.len());
            let what =
                format!("{store} can be set to take items of at most {VALUE_MAX} bytes, and this value has {size}");
            return Err(Fault::Unsupported(what));
        }
        out.extend_from_slice(command);
        out.push(b' ');
        escape(key, out);
        out.extend_from_slice(b" 0 ");
        push_number(lifetime_s, out);
        out.push(b' ');
        push_number(value.len(), out);
        if let Some(version) = version {
            out.push(b' ');
            push_number(version, out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Adds to a counter, or makes it (N, with J as its first value) where there is none, and asks for its new value
    /// (v).
    ///
    /// A negative step is added as its two's complement: counters are unsigned and wrap, by the protocol's own words,
    /// so the answer tells what really became of the counter, where `decr` stops at 0 and hides it.
    fn increment(&mut self, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.check_key(key)?;
        let by = by.cast_unsigned();
        out.extend_from_slice(b"ma ");
        escape(key, out);
        out.extend_from_slice(b" N0 J");
        push_number(by, out);
        out.extend_from_slice(b" D");
        push_number(by, out);
        out.extend_from_slice(b" v\r\n");
        Ok(Awaited::Sum)
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<(), Fault> {
        let escaped = key.iter().filter(|&&byte| is_escaped(byte)).count();
        let size = key.len() + 2 * escaped;
        if (1..=KEY_MAX).contains(&size) {
            return Ok(());
        }
        Err(self.bad_key(key, escaped, size))
    }

    #[cold]
    fn bad_key(&self, key: &[u8], escaped: usize, size: usize) -> Fault {
        let store = self.store;
        Fault::Unsupported(match escaped {
            _ if key.is_empty() => format!("{store} takes no empty key"),
            0 => format!("{store} takes keys of at most {KEY_MAX} bytes, and '{}' has {size}", readable(key, 40)),
            _ => format!(
                "{store} takes keys of at most {KEY_MAX} bytes, and '{}' has {} and {size} with spaces and control \
                 characters escaped",
                readable(key, 40),
                key.len()
            ),
        })
    }

    fn lifetime_s(&self, ttl_s: Option<u32>) -> Result<u32, Fault> {
        let store = self.store;
        match ttl_s {
            None => Ok(0),
            Some(0) => Err(Fault::Unsupported(format!("{store} takes a time to live of 0 s for one without end"))),
            Some(ttl_s) if ttl_s > TTL_MAX_S => Err(Fault::Unsupported(format!(
                "{store} takes a time to live of more than {TTL_MAX_S} s (30 days) for a point in time, and this one has \
                 {ttl_s} s"
            ))),
            Some(ttl_s) => Ok(ttl_s),
        }
    }

    fn nothing(&self, op: &Op<'_>) -> Fault {
        Fault::Unsupported(format!("{} has no {} of nothing", self.store, op.name()))
    }
}

/// What was answered.
impl Memcache {
    /// One key's value: its block and END, or END alone.
    #[inline]
    fn hear_one<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Heard<'b>)>, Fault> {
        let (used, found) = match block(bytes)? {
            None => return Ok(None),
            Some((used, Block::End)) => (used, None),
            Some((used, Block::Error(words))) => return Ok(Some((used, self.refused(words, 0)))),
            Some((used, Block::Value(found))) => {
                if found.key != self.asked.get(0) {
                    return Err(garbled(&format!("the value of '{}'", readable(self.asked.get(0), KEY_MAX)), bytes));
                }
                let rest = &bytes[used..];
                if !rest.starts_with(END) {
                    return if END.starts_with(rest) { Ok(None) } else { Err(garbled("END", rest)) };
                }
                (used + END.len(), Some(found))
            }
        };
        let reply = match (awaited, found) {
            (_, None) => Reply::Missing,
            (Awaited::Value, Some(found)) => Reply::Value(found.data),
            (Awaited::Count, Some(found)) => match counter(found.data) {
                Ok(count) => Reply::Number(count),
                Err(words) => return Ok(Some((used, self.refused(words.as_bytes(), 0)))),
            },
            (_, Some(found)) => match found.version {
                Some(version) => Reply::Versioned(found.data, version),
                None => return Err(garbled("a value with its version", bytes)),
            },
        };
        self.done(1);
        Ok(Some((used, Heard::Reply(reply))))
    }

    /// Many keys' values: the blocks of those found, in the order of the keys, and END.
    fn hear_many<'b>(
        &'b mut self,
        awaited: Awaited,
        count: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Heard<'b>)>, Fault> {
        if self.parts == 0 {
            self.parts = 1;
            self.values.reset(count);
            self.numbers.clear();
            self.numbers.resize(count, None);
        }
        let mut used = 0;
        loop {
            match block(&bytes[used..])? {
                None => return Ok((used > 0).then_some((used, Heard::Again))),
                Some((taken, Block::Value(found))) => {
                    self.put(awaited, count, found, &bytes[used..])?;
                    used += taken;
                }
                Some((taken, Block::End)) => {
                    used += taken;
                    break;
                }
                Some((taken, Block::Error(words))) => return Ok(Some((used + taken, self.refused(words, count)))),
            }
        }
        if self.refusal.is_some() {
            return Ok(Some((used, self.refused(b"", count))));
        }
        self.done(count);
        Ok(Some((
            used,
            Heard::Reply(match awaited {
                Awaited::Values(_) => Reply::Values(self.values.lend()),
                _ => Reply::Numbers(&self.numbers),
            }),
        )))
    }

    /// Puts a value in its key's place. Keys before it that were not answered are missing.
    fn put(&mut self, awaited: Awaited, count: usize, found: Found<'_>, came: &[u8]) -> Result<(), Fault> {
        let index = (self.passed..count).find(|&index| self.asked.get(index) == found.key);
        let index = index.ok_or_else(|| garbled("the value of a key that was asked for, in its order", came))?;
        self.passed = index + 1;
        match (awaited, counter(found.data)) {
            (Awaited::Values(_), _) => self.values.put(index, found.data),
            (_, Ok(number)) => self.numbers[index] = Some(number),
            (_, Err(words)) => {
                self.refusal.get_or_insert(words);
            }
        }
        Ok(())
    }

    #[inline]
    fn hear_stored<'b>(
        &'b mut self,
        awaited: Awaited,
        commands: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Heard<'b>)>, Fault> {
        let mut used = 0;
        while self.parts < commands {
            let rest = &bytes[used..];
            if rest.starts_with(STORED) {
                used += STORED.len();
            } else {
                let Some(words) = line(rest, LINE_MAX)? else {
                    return Ok((used > 0).then_some((used, Heard::Again)));
                };
                if !is_error(words) {
                    return Err(garbled("STORED", rest));
                }
                used += words.len() + 2;
                self.refusal.get_or_insert_with(|| awaited.explain(words));
            }
            self.parts += 1;
        }
        if self.refusal.is_some() {
            return Ok(Some((used, self.refused(b"", 0))));
        }
        self.done(0);
        Ok(Some((used, Heard::Reply(Reply::Done))))
    }

    /// An answer that is one line, or for a counter one line and its value.
    fn hear_line<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Heard<'b>)>, Fault> {
        let Some(text) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        let mut used = text.len() + 2;
        let reply = match (awaited, text) {
            (Awaited::Added { .. } | Awaited::Swapped { .. }, b"STORED") => Reply::Done,
            (Awaited::Added { .. }, b"NOT_STORED") => Reply::Conflict,
            // Somebody has changed it, or has removed it.
            (Awaited::Swapped { .. }, b"EXISTS" | b"NOT_FOUND") => Reply::Conflict,
            (Awaited::Deleted, b"DELETED") => Reply::Done,
            (Awaited::Deleted, b"NOT_FOUND") => Reply::Missing,
            (Awaited::Sum, [b'V', b'A', b' ', size @ ..]) => {
                let size = number(size).ok_or_else(|| garbled("VA and a size", bytes))?;
                let size = usize::try_from(size).ok().filter(|&size| size <= LINE_MAX);
                let size = size.ok_or_else(|| garbled("the size of a number", bytes))?;
                let Some(data) = data(bytes, used, size)? else {
                    return Ok(None);
                };
                used += size + 2;
                match counter(data) {
                    Ok(sum) => Reply::Number(sum),
                    Err(words) => return Ok(Some((used, self.refused(words.as_bytes(), 0)))),
                }
            }
            (awaited, words) if is_error(words) => {
                let words = awaited.explain(words);
                return Ok(Some((used, self.refused(words.as_bytes(), 0))));
            }
            (awaited, _) => return Err(garbled(awaited.expected(), bytes)),
        };
        self.done(0);
        Ok(Some((used, Heard::Reply(reply))))
    }

    /// The op in front is answered, and `keys` of those asked for with it.
    #[inline]
    fn done(&mut self, keys: usize) {
        self.waiting.pop_front();
        self.asked.pop(keys);
        self.parts = 0;
        self.passed = 0;
    }

    /// The first error of the answer, in the server's own words.
    #[cold]
    fn refused(&mut self, words: &[u8], keys: usize) -> Heard<'static> {
        let keys = match self.waiting.front() {
            Some(Awaited::Value | Awaited::Count | Awaited::Version) => 1,
            _ => keys,
        };
        let words = self.refusal.take().unwrap_or_else(|| String::from_utf8_lossy(words).into_owned());
        self.done(keys);
        Heard::Refused(words)
    }
}

impl Awaited {
    /// A server's refusal with what its words leave out: how large the value was, and what sets the limit.
    #[cold]
    fn explain(self, words: &[u8]) -> String {
        let words = String::from_utf8_lossy(words);
        let size = match self {
            Awaited::Stored { largest, .. } => largest,
            Awaited::Added { size } | Awaited::Swapped { size } => size,
            _ => 0,
        };
        if words.contains("too large") {
            format!("{words}: a value of {size} bytes; items are limited to 1 MiB unless the server is started with -I")
        } else {
            words.into_owned()
        }
    }

    #[cold]
    fn expected(self) -> &'static str {
        match self {
            Awaited::Added { .. } => "STORED or NOT_STORED",
            Awaited::Swapped { .. } => "STORED, EXISTS or NOT_FOUND",
            Awaited::Deleted => "DELETED or NOT_FOUND",
            _ => "VA and a size",
        }
    }
}
