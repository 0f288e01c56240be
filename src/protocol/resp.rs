//! Redis' and Valkey's protocol, RESP2: commands as arrays of bulk strings, answers by their first byte.
//!
//! The format: <https://redis.io/docs/latest/develop/reference/protocol-spec/>. It knows no socket and keeps no value:
//! single values are lent out of the received bytes, many values are copied out of them as they come, so that an answer
//! of many pieces is read once.

use super::prepared::PreparedCommand;
use super::text::{CRLF, garbled, number, unasked};
use super::waiting::Waiting;
use super::{Codec, Decoded, KnownCodec, OF_NO_USER};
use crate::model::op::{Alike, Fault, KeyList, Keys, Op, Pairs, Pattern, Reply, ValueList, readable};

mod awaited;
mod counters;
mod frames;
mod slots;
mod versions;

use awaited::Awaited;
pub use counters::Counters;
pub use frames::{PING, Value, command, pong, values};
use frames::{Token, array, bulk, bulk_head, short_bulk, token};
pub use slots::{
    Address, Redirect, SLOTS, SlotRange, cluster_field, fair_share, keys_in_slot, node_id, slot, slot_ranges,
};

const DONE: &[u8; 5] = b"+OK\r\n";
/// How a server's error begins that wants a login first.
const NO_LOGIN: &str = "NOAUTH";

/// One connection's side of RESP2.
pub struct Resp {
    store: &'static str,
    greeting: Greeting,
    counters: Counters,
    waiting: Waiting<Awaited>,
    prepared_get: PreparedCommand,
    prepared_set: PreparedCommand,
    /// Parts of the answer to the op in front that were heard already.
    parts: usize,
    /// Elements that the array of that answer will have.
    elements: usize,
    /// The first error among the parts of that answer.
    refusal: Option<String>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    fields: KeyList,
    counts: KeyList,
    /// The version that `GetVersion` gives out. It is over when EXEC or UNWATCH lets all watched keys go.
    epoch: u64,
    watched: KeyList,
    /// A watched key was written by this very connection, after which its EXEC would refuse whatever key it is about.
    spoilt: bool,
    commands: u64,
}

/// What a connection says before its first op.
#[derive(Clone, Default)]
pub struct Greeting {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<u32>,
}

impl Resp {
    /// `store` is what messages call it.
    pub fn new(store: &'static str, greeting: Greeting) -> Self {
        Resp {
            store,
            greeting,
            counters: Counters::default(),
            waiting: Waiting::default(),
            prepared_get: PreparedCommand::default(),
            prepared_set: PreparedCommand::default(),
            parts: 0,
            elements: 0,
            refusal: None,
            values: ValueList::default(),
            numbers: Vec::new(),
            fields: KeyList::default(),
            counts: KeyList::default(),
            epoch: 1,
            watched: KeyList::default(),
            spoilt: false,
            commands: 0,
        }
    }
}

impl Codec for Resp {
    fn hello(&mut self, out: &mut Vec<u8>) {
        let Greeting { user, password, database } = &self.greeting;
        let secret = password.as_deref().unwrap_or_default().as_bytes();
        if let Some(user) = user {
            command(&[b"AUTH", user.as_bytes(), secret], out);
        } else if password.is_some() {
            command(&[b"AUTH", secret], out);
        }
        if user.is_some() || password.is_some() {
            self.waiting.push(Awaited::Login);
            self.commands += 1;
        }
        if let Some(database) = database {
            command(&[b"SELECT", itoa::Buffer::new().format(*database).as_bytes()], out);
            self.waiting.push(Awaited::Select);
            self.commands += 1;
        }
    }

    #[inline(always)]
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        // The two ops that matter to speed, and all others.
        match *op {
            Op::Get(key) => self.get(key, out),
            Op::Set { key, value, ttl_s: None } => self.set(key, value, out),
            _ => return self.say_other(op, out),
        }
        Ok(())
    }

    #[inline(always)]
    fn pattern(&mut self, alike: &Alike<'_>) -> Option<Pattern<'_>> {
        let (pattern, awaited) = match alike.op {
            Op::Get(key) => (self.prepared_get.pattern(key, get_of(key)), Awaited::Value),
            // A watched key would be looked for among these.
            Op::Set { key, value, ttl_s: None } if self.watched.lend().is_empty() => {
                (self.prepared_set.pattern_with(key, value, CRLF, set_of(key, value))?, Awaited::Status)
            }
            _ => return None,
        };
        self.commands += u64::from(alike.count);
        self.waiting.push_many(awaited, alike.count);
        Some(pattern)
    }

    #[inline(always)]
    fn hear_done(&mut self, bytes: &[u8]) -> (u32, usize) {
        match self.waiting.front_run() {
            Some((Awaited::Status, run)) => self.waiting.pop_answered(run, bytes, DONE),
            _ => (0, 0),
        }
    }

    #[inline(always)]
    fn hear_plain<'b>(&mut self, bytes: &'b [u8]) -> Option<(usize, Reply<'b>)> {
        let (used, reply) = match self.waiting.front()? {
            Awaited::Status if bytes.starts_with(DONE) => (DONE.len(), Reply::Done),
            Awaited::Value => short_bulk(bytes).map(|(used, value)| (used, Reply::Value(value)))?,
            _ => return None,
        };
        self.waiting.pop();
        Some((used, reply))
    }

    fn hear<'b>(&'b mut self, bytes: &'b [u8], _: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let awaited = *self.waiting.front().ok_or_else(|| unasked(bytes))?;
        let mut used = 0;
        let last = loop {
            let Some((taken, token)) = token(&bytes[used..])? else {
                return Ok((used > 0).then_some((used, Decoded::Again)));
            };
            let whole = self.absorb(awaited, token).map_err(|expected| garbled(expected, &bytes[used..]))?;
            used += taken;
            if whole {
                break token;
            }
        };
        let heard = self.answer(awaited, last).map_err(|expected| garbled(expected, bytes))?;
        Ok(Some((used, heard)))
    }

    #[inline]
    fn known(&mut self) -> Option<KnownCodec<'_>> {
        Some(KnownCodec::Resp(self))
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn commands(&self) -> u64 {
        self.commands
    }
}

/// What to ask.
impl Resp {
    /// Every op but the two that `say` deals with by itself.
    #[inline(never)]
    fn say_other(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut digits = itoa::Buffer::new();
        let awaited = match *op {
            Op::Get(_) | Op::Set { ttl_s: None, .. } => unreachable!("said by themselves"),
            Op::Set { key, value, ttl_s: Some(ttl_s) } => {
                one(&[b"SET", key, value, b"EX", digits.format(ttl_s).as_bytes()], Awaited::Status, out)
            }
            Op::SetIfAbsent { key, value } => one(&[b"SET", key, value, b"NX"], Awaited::Absent, out),
            Op::Delete(key) => self.counters.delete(key, out),
            Op::Increment { key, by } => {
                self.counters.increment(key, by, out);
                Awaited::Sum
            }
            Op::Add { key, by } => {
                self.counters.increment(key, by, out);
                Awaited::Sums(1)
            }
            Op::AddMany(sums) if sums.is_empty() => return Err(self.nothing(op)),
            // All of them are on their way before the first answer is read.
            Op::AddMany(sums) => {
                sums.iter().for_each(|(key, by)| self.counters.increment(key, by, out));
                Awaited::Sums(sums.len())
            }
            Op::Number(key) => self.counters.number(key, out),
            Op::ReadTally(record) => one(&[b"HGETALL", record], Awaited::Fields, out),
            Op::GetMany(keys) => self.get_many(op, keys, out)?,
            Op::NumberMany(keys) if keys.is_empty() => return Err(self.nothing(op)),
            Op::NumberMany(keys) => self.counters.numbers(keys, out),
            Op::SetMany(pairs) => self.set_many(op, pairs, out)?,
            Op::GetVersion(key) => self.watch(key, out),
            Op::Cas { key, version, value } => self.swap(key, version, value, out),
            Op::Tally { records, fields, by } => self.tally(op, records, fields, by, out)?,
            Op::Scan { .. } => {
                return Err(Fault::Unsupported(format!("{} keeps its keys in no order: it has no scan", self.store)));
            }
        };
        self.spoilt = self.spoilt || self.writes_watched(op);
        self.commands += match awaited {
            Awaited::Watched { statuses, .. } => statuses as u64 + 1,
            Awaited::Swap => 3,
            Awaited::Sums(count) => count as u64,
            _ => 1,
        };
        self.waiting.push(awaited);
        Ok(())
    }

    #[inline(always)]
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        self.prepared_get.say(key, out, get_of(key));
        self.commands += 1;
        self.waiting.push(Awaited::Value);
    }

    #[inline(always)]
    fn set(&mut self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.prepared_set.say_with(key, value, CRLF, out, set_of(key, value));
        self.spoilt = self.spoilt || self.is_watched(key);
        self.commands += 1;
        self.waiting.push(Awaited::Status);
    }

    fn get_many(&self, op: &Op<'_>, keys: Keys<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if keys.is_empty() {
            return Err(self.nothing(op));
        }
        array(keys.len() + 1, out);
        bulk(b"MGET", out);
        keys.iter().for_each(|key| bulk(key, out));
        Ok(Awaited::Values(keys.len()))
    }

    fn set_many(&self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if pairs.keys.is_empty() {
            return Err(self.nothing(op));
        }
        array(2 * pairs.keys.len() + 1, out);
        bulk(b"MSET", out);
        for (key, value) in pairs.iter() {
            bulk(key, out);
            bulk(value, out);
        }
        Ok(Awaited::Status)
    }

    /// One op, many commands: all of them are on their way before the first answer is read.
    fn tally(
        &self,
        op: &Op<'_>,
        records: Keys<'_>,
        fields: Keys<'_>,
        by: i64,
        out: &mut Vec<u8>,
    ) -> Result<Awaited, Fault> {
        if records.is_empty() || fields.is_empty() {
            return Err(self.nothing(op));
        }
        let mut digits = itoa::Buffer::new();
        let by = digits.format(by).as_bytes();
        for record in records.iter() {
            fields.iter().for_each(|field| command(&[b"HINCRBY", record, field, by], out));
        }
        Ok(Awaited::Sums(records.len() * fields.len()))
    }

    /// The next command is for a slot that is on its way to this node.
    pub fn asking(&mut self, out: &mut Vec<u8>) {
        command(&[b"ASKING"], out);
        self.commands += 1;
        self.waiting.push(Awaited::Asking);
    }

    fn nothing(&self, op: &Op<'_>) -> Fault {
        Fault::Unsupported(format!("{} has no {} of nothing", self.store, op.name()))
    }
}

/// What was answered.
impl Resp {
    /// Takes one part of the answer in front: whether it was the last one. An error says what was expected.
    #[inline]
    fn absorb(&mut self, awaited: Awaited, token: Token<'_>) -> Result<bool, &'static str> {
        let part = self.parts;
        self.parts += 1;
        match awaited {
            Awaited::Values(_) | Awaited::Counts(_) | Awaited::Fields if part == 0 => self.begin_list(awaited, token),
            Awaited::Values(_) | Awaited::Counts(_) | Awaited::Fields => self.add_element(awaited, token),
            Awaited::Watched { statuses, .. } if part < statuses => self.expect_status(b"OK", token),
            Awaited::Sums(count) => {
                match token {
                    Token::Number(_) => {}
                    Token::Error(words) => self.refuse(words),
                    _ => return Err("a sum"),
                }
                Ok(self.parts == count)
            }
            Awaited::Swap => match (part, token) {
                (0, token) => self.expect_status(b"OK", token),
                (1, token) => self.expect_status(b"QUEUED", token),
                (2, Token::Array(1)) => Ok(false),
                _ => Ok(true),
            },
            _ => Ok(true),
        }
    }

    /// A status that is not the last part of its answer.
    fn expect_status(&mut self, expected: &[u8], token: Token<'_>) -> Result<bool, &'static str> {
        match token {
            Token::Status(status) if status == expected => {}
            Token::Error(words) => self.refuse(words),
            _ => return Err("+OK or +QUEUED"),
        }
        Ok(false)
    }

    fn begin_list(&mut self, awaited: Awaited, token: Token<'_>) -> Result<bool, &'static str> {
        self.values.clear();
        self.numbers.clear();
        self.fields.clear();
        self.counts.clear();
        self.elements = match (awaited, token) {
            (_, Token::Error(_)) => return Ok(true),
            (Awaited::Values(count) | Awaited::Counts(count), Token::Array(elements)) if elements == count => elements,
            (Awaited::Fields, Token::Array(elements)) if elements % 2 == 0 => elements,
            (Awaited::Fields, _) => return Err("an array of fields and counts"),
            _ => return Err("an array of as many values as there were keys"),
        };
        Ok(self.elements == 0)
    }

    fn add_element(&mut self, awaited: Awaited, token: Token<'_>) -> Result<bool, &'static str> {
        match (awaited, token) {
            (Awaited::Values(_), Token::Bulk(value)) => self.values.push(Some(value)),
            (Awaited::Values(_), Token::Nil) => self.values.push(None),
            (Awaited::Counts(_), Token::Bulk(text)) => {
                let count = number(text);
                if count.is_none() {
                    self.refuse(&no_counter(text));
                }
                self.numbers.push(count);
            }
            (Awaited::Counts(_), Token::Nil) => self.numbers.push(None),
            (Awaited::Fields, Token::Bulk(text)) if self.parts.is_multiple_of(2) => self.fields.push(text),
            (Awaited::Fields, Token::Bulk(text)) => self.counts.push(text),
            _ => return Err("a bulk string"),
        }
        Ok(self.parts == self.elements + 1)
    }

    fn refuse(&mut self, words: &[u8]) {
        self.refusal.get_or_insert_with(|| String::from_utf8_lossy(words).into_owned());
    }

    /// The answer, all parts of which have come; `last` is the last of them.
    #[inline]
    fn answer<'b>(&'b mut self, awaited: Awaited, last: Token<'b>) -> Result<Decoded<'b>, &'static str> {
        let reply = match (awaited, last) {
            _ if self.refusal.is_some() => return Ok(self.refused(awaited, b"")),
            (_, Token::Error(words)) => return Ok(self.refused(awaited, words)),
            (Awaited::Login | Awaited::Select | Awaited::Asking, Token::Status(b"OK")) => {
                return Ok(self.done(Decoded::Greeted));
            }
            (Awaited::Status | Awaited::Absent | Awaited::Swap, Token::Status(b"OK")) => Reply::Done,
            // Dragonfly's EXEC answers with either: <https://github.com/dragonflydb/dragonfly/pull/8098>
            (Awaited::Absent | Awaited::Swap, Token::Nil) | (Awaited::Swap, Token::NilArray) => Reply::Conflict,
            (Awaited::Stale, Token::Status(b"PONG")) => Reply::Conflict,
            (Awaited::Removed, Token::Number(1)) => Reply::Done,
            (Awaited::Removed, Token::Number(0)) => Reply::Missing,
            (Awaited::Sum, Token::Number(sum)) => Reply::Number(sum),
            (Awaited::Value, Token::Bulk(value)) => Reply::Value(value),
            (Awaited::Watched { epoch, .. }, Token::Bulk(value)) => Reply::Versioned(value, epoch),
            (Awaited::Value | Awaited::Count | Awaited::Watched { .. }, Token::Nil) => Reply::Missing,
            (Awaited::Count, Token::Bulk(text)) => match number(text) {
                Some(count) => Reply::Number(count),
                None => return Ok(self.refused(awaited, &no_counter(text))),
            },
            (Awaited::Sums(_), _) => Reply::Done,
            (Awaited::Values(_), _) => return Ok(self.done_with(|list| Reply::Values(list.values.lend()))),
            (Awaited::Counts(_), _) => return Ok(self.done_with(|list| Reply::Numbers(&list.numbers))),
            (Awaited::Fields, _) if self.elements == 0 => Reply::Missing,
            (Awaited::Fields, _) => {
                return Ok(
                    self.done_with(|list| Reply::Rows(Pairs { keys: list.fields.lend(), values: list.counts.lend() }))
                );
            }
            (awaited, _) => return Err(awaited.expected()),
        };
        Ok(self.done(Decoded::Reply(reply)))
    }

    #[inline(always)]
    fn done<'b>(&mut self, heard: Decoded<'b>) -> Decoded<'b> {
        self.waiting.pop();
        self.parts = 0;
        heard
    }

    fn done_with<'b>(&'b mut self, lend: impl FnOnce(&'b Resp) -> Reply<'b>) -> Decoded<'b> {
        self.done(Decoded::Again);
        Decoded::Reply(lend(self))
    }

    /// The first error of the answer, in the server's own words, but never with the password: some servers repeat the
    /// arguments of a command that they do not know.
    #[cold]
    fn refused(&mut self, awaited: Awaited, words: &[u8]) -> Decoded<'static> {
        let words = self.refusal.take().unwrap_or_else(|| String::from_utf8_lossy(words).into_owned());
        let words = match (awaited, &self.greeting.password) {
            (Awaited::Login, Some(password)) if !password.is_empty() => words.replace(password.as_str(), "***"),
            (Awaited::Select, _) => format!("SELECT: {words}"),
            _ => words,
        };
        let is_greeting = matches!(awaited, Awaited::Login | Awaited::Select);
        self.done(match is_greeting && words.contains(NO_LOGIN) {
            true => Decoded::PasswordNeeded { login: OF_NO_USER, words },
            false => Decoded::Refused(words),
        })
    }
}

#[cold]
fn no_counter(text: &[u8]) -> Vec<u8> {
    format!("the value '{}' is no counter", readable(text, 40)).into_bytes()
}

/// Writes a GET, and says where its key begins.
#[inline(always)]
fn get_of(key: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> usize {
    move |frame| {
        command(&[b"GET", key], frame);
        frame.len() - 2 - key.len()
    }
}

/// Writes a SET up to its value, and says where its key begins.
#[inline(always)]
fn set_of(key: &[u8], value: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> usize {
    move |head| {
        array(3, head);
        bulk(b"SET", head);
        bulk(key, head);
        let key_at = head.len() - 2 - key.len();
        bulk_head(value.len(), head);
        key_at
    }
}

/// Appends one command and says what it waits for.
#[inline]
fn one(parts: &[&[u8]], awaited: Awaited, out: &mut Vec<u8>) -> Awaited {
    command(parts, out);
    awaited
}
