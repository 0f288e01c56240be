//! PostgreSQL's protocol, version 3: prepared statements by binary messages.
//!
//! The format: <https://www.postgresql.org/docs/current/protocol.html>. It knows no socket and no SQL. A value that has
//! come as a whole is lent out of the received bytes; what comes in pieces is copied as it comes, so that each message
//! is read once.

use super::prepared::PreparedCommand;
use super::sql::{Gathered, Longest, RowsOf};
use super::text::{garbled, unasked};
use super::waiting::Waiting;
use super::{Codec, Decoded, KnownCodec};
use crate::model::op::{Alike, Fault, Op, Pattern, Reply};

mod asking;
mod frames;
mod greeting;

use asking::{BEHIND, FIRST, get_of, set_of};
pub use asking::{PreparedStatement, prepare_first};
use frames::{ERROR, Message, READY, Row, TERMINATE, message, rows_of_command, server_error};
pub use frames::{ServerError, TextAnswer, TextRow, outcome, query};
pub use greeting::Greeting;

/// A row of an index has at most a third of a page, 2704 bytes, heads included: 8 for the row, 4 for a value's length,
/// and what rounds each up to a multiple of 8. (Longer ones that compress well would pass.)
/// <https://www.postgresql.org/docs/current/btree.html>
const KEY: usize = 2692;
const HALF: usize = 1340;
/// A value has at most 1 GiB, and so has a message; this leaves room for the key.
/// <https://www.postgresql.org/docs/current/limits.html>
const VALUE: usize = (1 << 30) - 8192;

/// What stands before a row, and the whole answers to a set and to a get that finds nothing.
const BOUND: &[u8; 5] = b"2\0\0\0\x04";
const STORED: &[u8; 27] = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";
const NOT_FOUND: &[u8] = b"2\0\0\0\x04C\0\0\0\x0dSELECT 0\0Z\0\0\0\x05I";
/// What stands behind the only row of a get.
const FOUND: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// One connection's side of PostgreSQL's protocol.
pub struct Postgres {
    store: &'static str,
    longest: Longest,
    /// How the store words its statements, and which of these the server knows.
    sql: fn(PreparedStatement) -> String,
    is_prepared: [bool; PreparedStatement::COUNT],
    greeting: Greeting,
    waiting: Waiting<Awaited>,
    prepared_get: PreparedCommand,
    prepared_set: PreparedCommand,
    answer: Answer,
    gathered: Gathered,
    commands: u64,
}

/// What an op waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Login,
    Value,
    Stored,
    /// However many rows it changes.
    Done,
    Kept,
    Swapped,
    Deleted,
    Version,
    Number,
    Sum,
    Added,
    AllAdded(usize),
    Values(usize),
    Numbers(usize),
    Fields,
    Rows,
}

impl Awaited {
    /// The rows of its answer, where it has some.
    fn rows(self) -> Option<RowsOf> {
        Some(match self {
            Awaited::Value => RowsOf::Value,
            Awaited::Version => RowsOf::Version,
            // 1 where there was something.
            Awaited::Number | Awaited::Sum | Awaited::Deleted => RowsOf::Number,
            Awaited::Values(keys) => RowsOf::Values(keys),
            Awaited::Numbers(keys) => RowsOf::Numbers(keys),
            Awaited::Fields => RowsOf::Fields,
            Awaited::Rows => RowsOf::Records,
            _ => return None,
        })
    }

    /// How many keys its answer is about.
    fn keys(self) -> usize {
        match self {
            Awaited::Number | Awaited::Sum | Awaited::Added => 1,
            Awaited::Values(count) | Awaited::Numbers(count) => count,
            _ => 0,
        }
    }
}

/// What has come of the answer to the op in front.
#[derive(Default)]
struct Answer {
    /// Some message of it has come.
    is_begun: bool,
    is_bound: bool,
    /// How many rows the command has changed or found, once it has said so.
    changed: Option<u64>,
    refusal: Option<ServerError>,
}

impl Postgres {
    /// `store` is what messages call it, `sql` how it words its statements. What [`prepare_first`] prepares must be
    /// prepared before the first op.
    pub fn new(store: &'static str, sql: fn(PreparedStatement) -> String, greeting: Greeting) -> Self {
        let mut is_prepared = [false; PreparedStatement::COUNT];
        FIRST.iter().for_each(|&statement| is_prepared[statement as usize] = true);
        Postgres {
            store,
            longest: Longest { store, key: KEY, record: HALF, field: HALF },
            sql,
            is_prepared,
            greeting,
            waiting: Waiting::default(),
            prepared_get: PreparedCommand::default(),
            prepared_set: PreparedCommand::default(),
            answer: Answer::default(),
            gathered: Gathered::default(),
            commands: 0,
        }
    }

    fn check(&self, op: &Op<'_>) -> Result<(), Fault> {
        self.longest.check(op)?;
        let bytes = match op {
            Op::Set { ttl_s: Some(_), .. } => return Err(Fault::unsupported(self.store, op)),
            Op::Set { value, .. } | Op::SetIfAbsent { value, .. } | Op::Cas { value, .. } => value.len(),
            _ => return self.check_list(op),
        };
        if bytes <= VALUE {
            return Ok(());
        }
        let (store, op) = (self.store, op.name());
        Err(Fault::Unsupported(format!("{store} takes values of at most {VALUE} bytes: that of this {op} has {bytes}")))
    }

    /// A list travels in one message, each part of it behind its length.
    #[inline]
    fn check_list(&self, op: &Op<'_>) -> Result<(), Fault> {
        let parts = match op {
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.len(),
            Op::SetMany(pairs) => 2 * pairs.keys.len(),
            Op::AddMany(sums) => 2 * sums.len(),
            Op::Tally { records, fields, .. } => records.len() + fields.len(),
            _ => return Ok(()),
        };
        let bytes = op.bytes() + 4 * parts;
        if bytes <= VALUE {
            return Ok(());
        }
        let (store, op) = (self.store, op.name());
        Err(Fault::Unsupported(format!("{store} takes lists of at most {VALUE} bytes: that of this {op} has {bytes}")))
    }
}

impl Codec for Postgres {
    fn hello(&mut self, out: &mut Vec<u8>) {
        self.greeting.hello(out);
        self.waiting.push(Awaited::Login);
    }

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.check(op)?;
        // The two ops that matter to speed, and all others.
        match *op {
            Op::Get(key) => {
                self.prepared_get.say(key, out, get_of(key));
                self.waiting.push(Awaited::Value);
            }
            Op::Set { key, value, ttl_s: None } => {
                self.prepared_set.say_with(key, value, BEHIND, out, set_of(key, value));
                self.waiting.push(Awaited::Stored);
            }
            _ => return self.say_other(op, out),
        }
        self.commands += 1;
        Ok(())
    }

    #[inline]
    fn pattern(&mut self, alike: &Alike<'_>) -> Option<Pattern<'_>> {
        self.check(&alike.op).ok()?;
        let (pattern, awaited) = match alike.op {
            Op::Get(key) => (self.prepared_get.pattern(key, get_of(key)), Awaited::Value),
            Op::Set { key, value, ttl_s: None } => {
                (self.prepared_set.pattern_with(key, value, BEHIND, set_of(key, value))?, Awaited::Stored)
            }
            _ => return None,
        };
        self.commands += u64::from(alike.count);
        self.waiting.push_many(awaited, alike.count);
        Some(pattern)
    }

    #[inline]
    fn hear_done(&mut self, bytes: &[u8]) -> (u32, usize) {
        match self.waiting.front_run() {
            Some((Awaited::Stored, run)) if !self.answer.is_begun => self.waiting.pop_answered(run, bytes, STORED),
            _ => (0, 0),
        }
    }

    #[inline]
    fn hear_plain<'b>(&mut self, bytes: &'b [u8]) -> Option<(usize, Reply<'b>)> {
        if self.answer.is_begun {
            return None;
        }
        let (used, reply) = match self.waiting.front()? {
            Awaited::Stored if bytes.starts_with(STORED) => (STORED.len(), Reply::Done),
            Awaited::Value if bytes.starts_with(NOT_FOUND) => (NOT_FOUND.len(), Reply::Missing),
            Awaited::Value => plain_value(bytes).map(|(used, value)| (used, Reply::Value(value)))?,
            _ => return None,
        };
        self.waiting.pop();
        Some((used, reply))
    }

    fn hear<'b>(&'b mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if let Some((used, reply)) = self.hear_plain(bytes) {
            return Ok(Some((used, Decoded::Reply(reply))));
        }
        let Some(&awaited) = self.waiting.front() else { return hear_unasked(bytes) };
        let mut used = 0;
        while let Some((taken, message)) = message(&bytes[used..])? {
            used += taken;
            if awaited == Awaited::Login {
                match self.greeting.hear(message, out)? {
                    Decoded::Again => continue,
                    heard => {
                        self.waiting.pop();
                        return Ok(Some((used, heard)));
                    }
                }
            }
            if message.kind == READY {
                return Ok(Some((used, self.answered(awaited, message.body)?)));
            }
            self.absorb(awaited, message)?;
        }
        Ok((used > 0).then_some((used, Decoded::Again)))
    }

    #[inline]
    fn known(&mut self) -> Option<KnownCodec<'_>> {
        Some(KnownCodec::Postgres(self))
    }

    fn goodbye(&self) -> &'static [u8] {
        TERMINATE
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn commands(&self) -> u64 {
        self.commands
    }
}

/// The value of a get whose answer is the plainest, all of it there, and the bytes that the answer took.
#[inline]
fn plain_value(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let rest = bytes.strip_prefix(BOUND)?.strip_prefix(b"D")?;
    let (message, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.strip_prefix(b"\0\x01")?.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    // Its own length, the count of columns, the length of the only one.
    if u32::from_be_bytes(*message) as usize != length.checked_add(10)? {
        return None;
    }
    let (value, rest) = rest.split_at_checked(length)?;
    let rest = rest.strip_prefix(FOUND)?;
    Some((bytes.len() - rest.len(), value))
}

/// What a server says though nothing was asked: what it says at any time, or that it is stopped.
#[cold]
fn hear_unasked(bytes: &[u8]) -> Result<Option<(usize, Decoded<'_>)>, Fault> {
    match message(bytes) {
        Ok(None) => Ok(None),
        Ok(Some((used, message))) if message.is_asynchronous() => Ok(Some((used, Decoded::Again))),
        Ok(Some((_, Message { kind: ERROR, body }))) => Err(server_error(body).lost()),
        Ok(Some(_)) | Err(_) => Err(unasked(bytes)),
    }
}

/// What was answered.
impl Postgres {
    fn absorb(&mut self, awaited: Awaited, message: Message<'_>) -> Result<(), Fault> {
        let Message { kind, body } = message;
        let answer = &mut self.answer;
        answer.is_begun = true;
        match kind {
            // It is prepared at its first use.
            b'1' if !answer.is_bound => {}
            b'2' if !answer.is_bound => answer.is_bound = true,
            b'D' if answer.is_bound && answer.changed.is_none() => {
                let row = awaited.rows().zip(Row::of(body));
                let absorbed = row.and_then(|(of, row)| self.gathered.absorb(of, row));
                absorbed.ok_or_else(|| garbled("a row of our own table", body))?;
            }
            b'C' if answer.is_bound && answer.changed.is_none() => answer.changed = Some(rows_of_command(body)),
            ERROR => {
                let error = server_error(body);
                if error.is_fatal {
                    return Err(error.lost());
                }
                answer.refusal.get_or_insert(error);
            }
            _ if message.is_asynchronous() => {}
            _ => return Err(garbled("the answer to a prepared statement", &[&[kind], body].concat())),
        }
        Ok(())
    }

    /// The answer, all of which has come. `status` is that of the transaction, and there must be none any more.
    fn answered(&mut self, awaited: Awaited, status: &[u8]) -> Result<Decoded<'_>, Fault> {
        let answer = std::mem::take(&mut self.answer);
        if status != b"I" {
            return Err(garbled("a server with no transaction", status));
        }
        let refusal = match (answer.refusal, answer.changed) {
            (Some(error), _) => Some(error.words),
            (None, Some(changed)) => self.refusal(awaited, changed),
            (None, None) => return Err(garbled("the end of a command", b"Z")),
        };
        self.waiting.pop();
        if let Some(words) = refusal {
            self.gathered.end(awaited.keys());
            return Ok(Decoded::Refused(words));
        }
        if let Some(of) = awaited.rows().filter(|_| awaited != Awaited::Deleted) {
            return Ok(Decoded::Reply(self.gathered.answer(of, awaited.keys())));
        }
        let was_there = self.gathered.number() == Some(1);
        self.gathered.end(awaited.keys());
        Ok(Decoded::Reply(match awaited {
            Awaited::Deleted if !was_there => Reply::Missing,
            Awaited::Kept | Awaited::Swapped if answer.changed == Some(0) => Reply::Conflict,
            _ => Reply::Done,
        }))
    }

    /// Why what came is no answer to the op, where it is none.
    fn refusal(&self, awaited: Awaited, changed: u64) -> Option<String> {
        let store = self.store;
        match awaited {
            Awaited::Sum if self.gathered.rows() == 0 => Some(self.gathered.no_counter(store)),
            Awaited::Added if changed == 0 => Some(self.gathered.no_counter(store)),
            Awaited::AllAdded(count) if changed < count as u64 => {
                Some(format!("{store}: {} of the records to add to are no counters", count as u64 - changed))
            }
            _ => self.gathered.refusal(awaited.rows()?, store),
        }
    }
}
