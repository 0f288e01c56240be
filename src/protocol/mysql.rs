//! The protocol of MySQL and MariaDB: prepared statements by binary packets.
//!
//! The format: <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>. It knows no socket and no
//! SQL. A value that has come as a whole is lent out of the received bytes; what comes in pieces is copied as it
//! comes, so that each packet is read once.

use std::collections::{HashMap, VecDeque};

use super::prepared::PreparedCommand;
use super::sql::{Gathered, Longest, RowsOf};
use super::text::unasked;
use super::waiting::Waiting;
use super::{Codec, Decoded, KnownCodec};
use crate::model::op::{Alike, Fault, Op, Pattern, Reply};

mod answering;
mod asking;
mod greeting;
mod packets;

use answering::{Answer, Step};
pub use asking::PreparedStatement;
use asking::{Held, Prepared, get_of, set_of};
pub use greeting::Greeting;
use packets::{ERROR, FULL, Payload, QUIT, is_end, packet, read, split_bytes};
pub use packets::{ServerError, TextAnswer, TextRow, outcome, query};

/// 3072 bytes is the longest key of an InnoDB index of 16 KiB pages; a tally's two halves share it.
/// <https://dev.mysql.com/doc/refman/8.4/en/innodb-limits.html>
pub const KEY: usize = 3072;
pub const HALF: usize = KEY / 2;
/// Room for what stands around key and value in a packet.
const AROUND: usize = 1024;
/// The least `max_allowed_packet`.
const PACKET_MIN: usize = 1024;
/// The longest packet of the protocol.
const PACKET_MAX: usize = 1 << 30;
/// A set of a longer value is said packet by packet.
const PLAIN_MAX: usize = 1 << 20;

/// The plainest answers to a set: of a new row, and of one that was there. (The last bytes are the transaction's state,
/// none, and a count of warnings.)
const INSERTED: &[u8; 11] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
const UPDATED: &[u8; 11] = b"\x07\0\0\x01\0\x02\0\x02\0\0\0";

/// How the store words what this protocol carries.
#[derive(Clone)]
pub struct Wording {
    /// A statement for so many rows.
    pub statement: fn(PreparedStatement, usize) -> String,
    /// What stands before and behind the pairs of a tally.
    pub tally: String,
    pub tally_end: String,
}

/// One connection's side of the protocol.
pub struct Mysql {
    store: &'static str,
    longest: Longest,
    greeting: Greeting,
    wording: Wording,
    /// The longest packet that the server takes.
    packet_bytes: usize,
    /// The numbers that the server has given to statements.
    statements: HashMap<Prepared, u32>,
    get_id: u32,
    set_id: u32,
    /// What waits until statements are prepared, oldest first.
    held: VecDeque<Held>,
    waiting: Waiting<Awaited>,
    prepared_get: PreparedCommand,
    prepared_set: PreparedCommand,
    /// How the answer to a get begins: a count and a description of its column, which are always the same.
    get_head: Vec<u8>,
    /// The number of its last packet.
    get_head_packet: u8,
    answer: Answer,
    gathered: Gathered,
    /// The orders of keys, while an op is said.
    order: Vec<usize>,
    second_order: Vec<usize>,
    commands: u64,
}

/// What an op waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Login,
    Prepared(PreparedStatement, usize),
    Value,
    /// So many statements that change rows, however many.
    Changed(usize),
    Kept,
    Swapped,
    /// Two statements, one a table.
    Deleted,
    Version,
    Number,
    /// By so much.
    Sum(i64),
    Added,
    /// A change, and the number.
    AddedNothing {
        is_sum: bool,
    },
    Values {
        keys: usize,
        statements: usize,
    },
    Numbers {
        keys: usize,
        statements: usize,
    },
    Fields,
    Rows,
}

impl Awaited {
    /// The rows of its answer, where it has some.
    fn rows(self) -> Option<RowsOf> {
        Some(match self {
            Awaited::Value => RowsOf::Value,
            Awaited::Version => RowsOf::Version,
            Awaited::Number | Awaited::AddedNothing { .. } => RowsOf::Number,
            Awaited::Values { keys, .. } => RowsOf::Values(keys),
            Awaited::Numbers { keys, .. } => RowsOf::Numbers(keys),
            Awaited::Fields => RowsOf::Fields,
            Awaited::Rows => RowsOf::Records,
            _ => return None,
        })
    }

    /// How many keys its answer is about.
    fn keys(self) -> usize {
        match self {
            Awaited::Number | Awaited::Sum(_) | Awaited::Added | Awaited::AddedNothing { .. } => 1,
            Awaited::Values { keys, .. } | Awaited::Numbers { keys, .. } => keys,
            _ => 0,
        }
    }

    /// How many statements its op is.
    fn statements(self) -> usize {
        match self {
            Awaited::Changed(statements) | Awaited::Values { statements, .. } | Awaited::Numbers { statements, .. } => {
                statements
            }
            Awaited::Deleted | Awaited::AddedNothing { .. } => 2,
            _ => 1,
        }
    }

    /// How often the server answers it: without any statement it is a ping.
    fn answers(self) -> usize {
        self.statements().max(1)
    }

    /// How many columns a statement of it answers with; none where it changes rows.
    fn columns(self, statement: usize) -> usize {
        match self {
            Awaited::Value | Awaited::Number => 1,
            Awaited::AddedNothing { .. } if statement == 1 => 1,
            Awaited::Values { keys: 0, .. } | Awaited::Numbers { keys: 0, .. } => 0,
            Awaited::Version | Awaited::Values { .. } | Awaited::Numbers { .. } | Awaited::Fields | Awaited::Rows => 2,
            _ => 0,
        }
    }
}

impl Mysql {
    /// `store` is what messages call it.
    pub fn new(store: &'static str, greeting: Greeting, wording: Wording) -> Self {
        Mysql {
            store,
            longest: Longest { store, key: KEY, record: HALF, field: HALF },
            greeting,
            wording,
            packet_bytes: PACKET_MAX,
            statements: HashMap::new(),
            get_id: 0,
            set_id: 0,
            held: VecDeque::new(),
            waiting: Waiting::default(),
            prepared_get: PreparedCommand::default(),
            prepared_set: PreparedCommand::default(),
            get_head: Vec::new(),
            get_head_packet: 0,
            answer: Answer::default(),
            gathered: Gathered::default(),
            order: Vec::new(),
            second_order: Vec::new(),
            commands: 0,
        }
    }

    /// The longest packet that the server takes has so many bytes.
    pub fn limit_packets(&mut self, bytes: usize) {
        self.packet_bytes = bytes.max(PACKET_MIN);
    }

    fn check(&self, op: &Op<'_>) -> Result<(), Fault> {
        self.longest.check(op)?;
        match op {
            Op::Set { value, .. } | Op::SetIfAbsent { value, .. } | Op::Cas { value, .. } => {
                self.check_value(op, value)
            }
            Op::SetMany(pairs) => pairs.values.iter().try_for_each(|value| self.check_value(op, value)),
            _ => Ok(()),
        }
    }

    #[inline]
    fn check_value(&self, op: &Op<'_>, value: &[u8]) -> Result<(), Fault> {
        if value.len().saturating_add(KEY + AROUND) <= self.packet_bytes {
            return Ok(());
        }
        let (store, op, packet, length) = (self.store, op.name(), self.packet_bytes, value.len());
        Err(Fault::Unsupported(format!(
            "{store} takes packets of at most {packet} bytes here (max_allowed_packet): a value of this {op} has {length}"
        )))
    }
}

impl Codec for Mysql {
    /// The server speaks first.
    fn hello(&mut self, _: &mut Vec<u8>) {
        self.waiting.push(Awaited::Login);
    }

    #[inline]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.check(op)?;
        // The two ops that matter to speed, and all others.
        match *op {
            Op::Get(key) if self.held.is_empty() => {
                self.prepared_get.say(key, out, get_of(self.get_id, key));
                self.waiting.push(Awaited::Value);
            }
            Op::Set { key, value, ttl_s: None } if value.len() <= PLAIN_MAX && self.held.is_empty() => {
                self.prepared_set.say_with(key, value, b"", out, set_of(self.set_id, key, value));
                self.waiting.push(Awaited::Changed(1));
            }
            _ => return self.say_other(op, out),
        }
        self.commands += 1;
        Ok(())
    }

    #[inline]
    fn pattern(&mut self, alike: &Alike<'_>) -> Option<Pattern<'_>> {
        self.check(&alike.op).ok().filter(|()| self.held.is_empty())?;
        let (pattern, awaited) = match alike.op {
            Op::Get(key) => (self.prepared_get.pattern(key, get_of(self.get_id, key)), Awaited::Value),
            Op::Set { key, value, ttl_s: None } => {
                let write = set_of(self.set_id, key, value);
                (self.prepared_set.pattern_with(key, value, b"", write)?, Awaited::Changed(1))
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
            Some((Awaited::Changed(1), run)) if !self.answer.is_begun => {
                let plain = if bytes.starts_with(INSERTED) { INSERTED } else { UPDATED };
                self.waiting.pop_answered(run, bytes, plain)
            }
            _ => (0, 0),
        }
    }

    #[inline]
    fn hear_plain<'b>(&mut self, bytes: &'b [u8]) -> Option<(usize, Reply<'b>)> {
        if self.answer.is_begun {
            return None;
        }
        let (used, reply) = match self.waiting.front()? {
            Awaited::Changed(1) if bytes.starts_with(INSERTED) || bytes.starts_with(UPDATED) => {
                (INSERTED.len(), Reply::Done)
            }
            Awaited::Value if !self.get_head.is_empty() => plain_value(bytes, &self.get_head, self.get_head_packet)?,
            _ => return None,
        };
        self.waiting.pop();
        Some((used, reply))
    }

    fn hear<'b>(&'b mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if let Some((used, reply)) = self.hear_plain(bytes) {
            return Ok(Some((used, Decoded::Reply(reply))));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let Some(&awaited) = self.waiting.front() else { return hear_unasked(bytes) };
        let is_whole_so_far = !self.answer.is_begun;
        let mut used = 0;
        while let Some((taken, number, payload)) = packet(&bytes[used..]) {
            used += taken;
            match self.absorb(awaited, number, payload, out)? {
                Step::Again => {}
                Step::End(heard) => {
                    self.end(awaited);
                    return Ok(Some((used, heard)));
                }
                Step::Answered => return Ok(Some((used, self.answered(awaited)))),
            }
            if is_whole_so_far && awaited == Awaited::Value && self.answer.is_at_rows() && self.gathered.rows() == 0 {
                self.get_head.clear();
                self.get_head.extend_from_slice(&bytes[..used]);
                self.get_head_packet = self.answer.packet;
            }
        }
        Ok((used > 0).then_some((used, Decoded::Again)))
    }

    #[inline]
    fn known(&mut self) -> Option<KnownCodec<'_>> {
        Some(KnownCodec::Mysql(self))
    }

    fn goodbye(&self) -> &'static [u8] {
        QUIT
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn commands(&self) -> u64 {
        self.commands
    }
}

/// A server that is stopped, or that closes a connection on which nothing was asked for long, says so.
#[cold]
fn hear_unasked(bytes: &[u8]) -> Result<Option<(usize, Decoded<'_>)>, Fault> {
    match packet(bytes).map(|(_, _, payload)| read(payload)) {
        Some(Ok(Payload::Error(error))) => Err(error.lost()),
        // An error of which the rest is still to come.
        None if bytes.get(4).is_none_or(|&first| first == ERROR) => Ok(None),
        _ => Err(unasked(bytes)),
    }
}

/// The value of a get, or nothing, where the answer begins as usual and is all there, and the bytes that it took.
#[inline]
fn plain_value<'b>(bytes: &'b [u8], head: &[u8], head_packet: u8) -> Option<(usize, Reply<'b>)> {
    let (used, first, payload) = packet(bytes.strip_prefix(head)?)?;
    if first != head_packet.wrapping_add(1) {
        return None;
    }
    if is_end(payload) {
        return Some((head.len() + used, Reply::Missing));
    }
    // Of one column, which is not NULL.
    let (value, rest) = split_bytes(payload.strip_prefix(b"\0\0")?)?;
    let (end, second, last) = packet(&bytes[head.len() + used..])?;
    let is_plain = rest.is_empty() && payload.len() < FULL && is_end(last) && second == first.wrapping_add(1);
    is_plain.then_some((head.len() + used + end, Reply::Value(value)))
}
