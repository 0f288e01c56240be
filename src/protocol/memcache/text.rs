//! The classic text commands: a command a line, values announced by their length.
//!
//! Counters are added to by `incr`, which knows no missing counter: then `add` and `incr` go out together, so that two
//! answers come whoever was first. Until an `incr` is answered nothing else may overtake those two, so what is said
//! meanwhile is held back; and where other questions are under way already, `add` goes ahead of every `incr` at once.

mod asking;
mod counting;

use super::super::asked::PendingKeys;
use super::super::prepared::PreparedCommand;
use super::super::text::{garbled, line, unasked};
use super::super::waiting::Waiting;
use super::super::{Codec, Decoded, KnownCodec};
use super::frames::{Block, END, FoundFrame, KEY_MAX, LINE_MAX, STORED};
use super::frames::{block, counter, is_error, short_block, short_value};
use super::{Limits, explained};
use crate::model::op::{Alike, Fault, Op, Pattern, Reply, ValueList, readable};

/// Which of the commands a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Memcached,
    /// A store that borrowed the protocol's first commands: no versions, no times to live, and counters that do not
    /// wrap, so that nothing can be subtracted by adding.
    Borrowed,
}

/// One connection's side of memcached's text protocol.
pub struct Memcache {
    limits: Limits,
    dialect: Dialect,
    waiting: Waiting<Awaited>,
    prepared_get: PreparedCommand,
    prepared_set: PreparedCommand,
    /// The keys of the reads in `waiting`, as they were sent.
    asked: PendingKeys,
    /// Parts of the answer to the op in front that were heard already.
    parts: usize,
    /// Keys of the op in front that were answered or passed over.
    passed: usize,
    /// The first error among the parts of that answer.
    refusal: Option<String>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    /// The step of the `incr` that holds back what is said after it.
    step: u64,
    /// What a counter was before the `decr` in front.
    before: u64,
    /// What was said meanwhile.
    held: Vec<u8>,
    commands: u64,
}

/// The answer that an op waits for.
#[derive(Clone, Copy, PartialEq)]
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
    /// A number; or, where `add` went ahead of the `incr`, its `STORED` or `NOT_STORED` and a number.
    Sum {
        added: bool,
    },
    /// So many times what is said of an `add` and the `incr` behind it.
    Sums(usize),
    /// A number, and the one that is left of it.
    Lowered {
        by: u64,
    },
    Value,
    Count,
    Version,
    Values(usize),
    Counts(usize),
}

impl Memcache {
    /// `store` is what messages call it.
    pub fn new(store: &'static str) -> Self {
        Memcache::speaking(Dialect::Memcached, store)
    }

    pub fn speaking(dialect: Dialect, store: &'static str) -> Self {
        Memcache {
            limits: Limits { store },
            dialect,
            waiting: Waiting::default(),
            prepared_get: PreparedCommand::default(),
            prepared_set: PreparedCommand::default(),
            asked: PendingKeys::default(),
            parts: 0,
            passed: 0,
            refusal: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            step: 0,
            before: 0,
            held: Vec::new(),
            commands: 0,
        }
    }
}

impl Codec for Memcache {
    fn hello(&mut self, _: &mut Vec<u8>) {}

    #[inline(always)]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        if !matches!(self.waiting.front(), Some(Awaited::Sum { added: false })) {
            return self.say_into(op, out);
        }
        let mut held = std::mem::take(&mut self.held);
        let said = self.say_into(op, &mut held);
        self.held = held;
        said
    }

    #[inline(always)]
    fn pattern(&mut self, alike: &Alike<'_>) -> Option<Pattern<'_>> {
        match alike.op {
            // An answer to a get repeats its key, which must be remembered.
            Op::Set { key, value, ttl_s: None } if self.limits.goes_plainly(key) => self.sets(alike.count, key, value),
            _ => None,
        }
    }

    #[inline(always)]
    fn hear_done(&mut self, bytes: &[u8]) -> (u32, usize) {
        match self.waiting.front_run() {
            Some((Awaited::Stored { commands: 1, .. }, run)) => self.waiting.pop_answered(run, bytes, STORED),
            _ => (0, 0),
        }
    }

    #[inline(always)]
    fn hear_plain<'b>(&mut self, bytes: &'b [u8]) -> Option<(usize, Reply<'b>)> {
        match self.waiting.front()? {
            Awaited::Stored { commands: 1, .. } if bytes.starts_with(STORED) => {
                self.waiting.pop();
                Some((STORED.len(), Reply::Done))
            }
            Awaited::Value => {
                let (used, value) = short_value(bytes, self.asked.get(0))?;
                self.waiting.pop();
                self.asked.pop(1);
                Some((used, Reply::Value(value)))
            }
            _ => None,
        }
    }

    fn hear<'b>(&'b mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match *self.waiting.front().ok_or_else(|| unasked(bytes))? {
            awaited @ (Awaited::Value | Awaited::Count | Awaited::Version) => self.hear_one(awaited, bytes),
            awaited @ (Awaited::Values(count) | Awaited::Counts(count)) => self.hear_many(awaited, count, bytes),
            Awaited::Stored { commands, largest } => self.hear_stored(commands, largest, bytes),
            Awaited::Sum { added: true } if self.parts == 0 => self.hear_added(bytes),
            Awaited::Sum { added } => self.hear_sum(added, bytes, out),
            Awaited::Sums(count) => self.hear_sums(count, bytes),
            Awaited::Lowered { by } => self.hear_lowered(by, bytes),
            awaited => self.hear_line(awaited, bytes),
        }
    }

    #[inline]
    fn known(&mut self) -> Option<KnownCodec<'_>> {
        Some(KnownCodec::Text(self))
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn commands(&self) -> u64 {
        self.commands
    }
}

/// What was answered.
impl Memcache {
    /// One key's value: its block and END, or END alone.
    #[inline]
    fn hear_one<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let (used, found) = match block(bytes)? {
            None => return Ok(None),
            Some((used, Block::End)) => (used, None),
            Some((used, Block::Error(words))) => return Ok(Some((used, self.refused(words, 1)))),
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
                Err(words) => return Ok(Some((used, self.refused(words.as_bytes(), 1)))),
            },
            (_, Some(found)) => match found.version {
                Some(version) => Reply::Versioned(found.data, version),
                None => return Err(garbled("a value with its version", bytes)),
            },
        };
        self.done(1);
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// Many keys' values: the blocks of those found, in the order of the keys, and END.
    fn hear_many<'b>(
        &'b mut self,
        awaited: Awaited,
        count: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if self.parts == 0 {
            self.parts = 1;
            self.values.reset(count);
            self.numbers.clear();
            self.numbers.resize(count, None);
        }
        let mut used = 0;
        loop {
            if let Awaited::Values(_) = awaited {
                used += self.put_plain(count, &bytes[used..]);
            }
            match block(&bytes[used..])? {
                None => return Ok((used > 0).then_some((used, Decoded::Again))),
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
            Decoded::Reply(match awaited {
                Awaited::Values(_) => Reply::Values(self.values.lend()),
                _ => Reply::Numbers(&self.numbers),
            }),
        )))
    }

    /// Puts the values of the keys that are next in their places, as long as all of each is there and nothing else
    /// about it. The bytes that they took.
    #[inline]
    fn put_plain(&mut self, count: usize, bytes: &[u8]) -> usize {
        let mut used = 0;
        while self.passed < count
            && let Some((taken, data)) = short_block(&bytes[used..], self.asked.get(self.passed))
        {
            self.values.put(self.passed, data);
            self.passed += 1;
            used += taken;
        }
        used
    }

    /// Puts a value in its key's place. Keys before it that were not answered are missing.
    fn put(&mut self, awaited: Awaited, count: usize, found: FoundFrame<'_>, came: &[u8]) -> Result<(), Fault> {
        let index = (self.passed..count).find(|&index| self.asked.get(index) == found.key);
        let index = index.ok_or_else(|| garbled("the value of a key that was asked for, in its order", came))?;
        self.passed = index + 1;
        if let Awaited::Values(_) = awaited {
            self.values.put(index, found.data);
            return Ok(());
        }
        match counter(found.data) {
            Ok(number) => self.numbers[index] = Some(number),
            Err(words) => {
                self.refusal.get_or_insert(words);
            }
        }
        Ok(())
    }

    #[inline]
    fn hear_stored<'b>(
        &'b mut self,
        commands: usize,
        largest: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let mut used = 0;
        while self.parts < commands {
            let rest = &bytes[used..];
            if rest.starts_with(STORED) {
                used += STORED.len();
            } else {
                let Some(words) = line(rest, LINE_MAX)? else {
                    return Ok((used > 0).then_some((used, Decoded::Again)));
                };
                if !is_error(words) {
                    return Err(garbled("STORED", rest));
                }
                used += words.len() + 2;
                self.refusal.get_or_insert_with(|| explained(words, largest));
            }
            self.parts += 1;
        }
        if self.refusal.is_some() {
            return Ok(Some((used, self.refused(b"", 0))));
        }
        self.done(0);
        Ok(Some((used, Decoded::Reply(Reply::Done))))
    }

    /// An answer that is one line.
    fn hear_line<'b>(&'b mut self, awaited: Awaited, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some(text) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        let used = text.len() + 2;
        let reply = match (awaited, text) {
            (Awaited::Added { .. } | Awaited::Swapped { .. }, b"STORED") => Reply::Done,
            (Awaited::Added { .. }, b"NOT_STORED") => Reply::Conflict,
            // Somebody has changed it, or has removed it.
            (Awaited::Swapped { .. }, b"EXISTS" | b"NOT_FOUND") => Reply::Conflict,
            (Awaited::Deleted, b"DELETED") => Reply::Done,
            (Awaited::Deleted, b"NOT_FOUND") => Reply::Missing,
            (Awaited::Added { size } | Awaited::Swapped { size }, words) if is_error(words) => {
                return Ok(Some((used, self.refused(explained(words, size).as_bytes(), 0))));
            }
            (_, words) if is_error(words) => return Ok(Some((used, self.refused(words, 0)))),
            (awaited, _) => return Err(garbled(awaited.expected(), bytes)),
        };
        self.done(0);
        Ok(Some((used, Decoded::Reply(reply))))
    }

    /// The op in front is answered, and `keys` of those asked for with it.
    #[inline]
    fn done(&mut self, keys: usize) {
        self.waiting.pop();
        self.asked.pop(keys);
        self.parts = 0;
        self.passed = 0;
    }

    /// The first error of the answer, in the server's own words.
    #[cold]
    fn refused(&mut self, words: &[u8], keys: usize) -> Decoded<'static> {
        let words = self.refusal.take().unwrap_or_else(|| String::from_utf8_lossy(words).into_owned());
        self.done(keys);
        Decoded::Refused(words)
    }
}

impl Awaited {
    #[cold]
    fn expected(self) -> &'static str {
        match self {
            Awaited::Added { .. } => "STORED or NOT_STORED",
            Awaited::Swapped { .. } => "STORED, EXISTS or NOT_FOUND",
            _ => "DELETED or NOT_FOUND",
        }
    }
}
