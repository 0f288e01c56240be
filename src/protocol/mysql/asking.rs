//! How ops are asked: each is a prepared statement that is executed, or several where there are many rows.
//!
//! The packets: <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html>. A get and
//! a set are prepared at connecting, other statements at their first use, each number of rows by itself: a server
//! keeps 16,382 of them for all connections. What is said behind a first use is held back until the server has
//! given the statement its number. A tally is a text, which has no limit of 65,535 parameters.

use std::collections::VecDeque;

use super::packets::{HEAD, QUERY, push_bytes, push_number, sent};
use super::{Awaited, Mysql};
use crate::model::op::{Fault, Keys, Op, Pairs, Sums};
use crate::protocol::sql::sort;

/// The statements, which the store words for so many rows: which parameters they take, and what they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreparedStatement {
    /// A key: a column of bytes.
    Get,
    /// Keys: rows of a key and bytes.
    GetMany,
    /// Keys, each with a value.
    Set,
    /// A key and a value: changes one row or none.
    SetIfAbsent,
    /// A key: takes away a record.
    Delete,
    /// A key: takes away the tallies of a record.
    DeleteTally,
    /// A key and a number: changes a row, and answers with the sum as the last inserted number.
    Increment,
    /// Keys, each with a number: changes their rows.
    Add,
    /// A key: a column with a number, NULL where there is a value.
    Number,
    /// Keys: rows of a key and a number.
    NumberMany,
    /// A key: columns with a value, NULL where there is a number, and a version.
    GetVersion,
    /// A value, a key and a version: finds one row or none.
    Cas,
    /// A record: rows of a field and a number.
    ReadTally,
    /// A key and a limit: rows of a key and bytes.
    Scan,
}

/// So many rows a statement at most: each number of them is a statement of its own, and a server keeps 16,382 in all.
pub(super) const ROWS: usize = 128;
/// So many bytes of values a statement at most, but for a single larger one: a quarter of the least
/// `max_allowed_packet` that a server ships with (16 MB).
const BYTES: usize = 4 << 20;

const PING: u8 = 0x0e;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// Where the statement's number stands in a packet that executes it.
const ID_AT: usize = HEAD + 1;

/// Types of parameters: bytes of no character set; eight bytes with and without a sign.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html>
const BLOB: [u8; 2] = [0xfc, 0];
const SIGNED: [u8; 2] = [0x08, 0];
const UNSIGNED: [u8; 2] = [0x08, 0x80];

#[derive(Clone, Copy)]
enum Parameter<'a> {
    Bytes(&'a [u8]),
    Signed(i64),
    Unsigned(u64),
}

impl Parameter<'_> {
    fn of_type(&self) -> [u8; 2] {
        match self {
            Parameter::Bytes(_) => BLOB,
            Parameter::Signed(_) => SIGNED,
            Parameter::Unsigned(_) => UNSIGNED,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Parameter::Bytes(bytes) => push_bytes(bytes, out),
            Parameter::Signed(number) => out.extend_from_slice(&number.to_le_bytes()),
            Parameter::Unsigned(number) => out.extend_from_slice(&number.to_le_bytes()),
        }
    }
}

use Parameter::{Bytes, Signed, Unsigned};

/// A statement for so many rows.
pub(super) type Prepared = (PreparedStatement, usize);

/// What is said once some statements are prepared.
pub(super) struct Held {
    /// Those that have no number yet.
    preparing: Vec<Prepared>,
    bytes: Vec<u8>,
    /// Where in `bytes` the number of a statement is to be written.
    numberless: Vec<(usize, Prepared)>,
}

impl Mysql {
    /// Every op but a plain get and set.
    #[inline(never)]
    pub(super) fn say_other(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) => self.execute_one(PreparedStatement::Get, [Bytes(key)], Awaited::Value, out),
            Op::Set { key, value, ttl_s: None } => {
                self.execute_one(PreparedStatement::Set, [Bytes(key), Bytes(value)], Awaited::Changed(1), out)
            }
            Op::Set { ttl_s: Some(_), .. } => return Err(Fault::unsupported(self.store, op)),
            Op::SetIfAbsent { key, value } => {
                self.execute_one(PreparedStatement::SetIfAbsent, [Bytes(key), Bytes(value)], Awaited::Kept, out)
            }
            Op::Delete(key) => {
                self.prepare_missing(PreparedStatement::Delete, std::iter::once(1), out);
                self.prepare_missing(PreparedStatement::DeleteTally, std::iter::once(1), out);
                self.execute(PreparedStatement::Delete, 1, [Bytes(key)].into_iter(), out);
                self.execute_one(PreparedStatement::DeleteTally, [Bytes(key)], Awaited::Deleted, out)
            }
            Op::Increment { key, by } => self.add_one(PreparedStatement::Increment, key, by, Awaited::Sum(by), out),
            Op::Add { key, by } => self.add_one(PreparedStatement::Add, key, by, Awaited::Added, out),
            Op::AddMany(sums) => self.add_many(sums, out),
            Op::Number(key) => {
                self.gathered.ask(key);
                self.execute_one(PreparedStatement::Number, [Bytes(key)], Awaited::Number, out)
            }
            Op::GetMany(keys) => {
                let statements = self.read_many(PreparedStatement::GetMany, keys, out);
                Awaited::Values { keys: keys.len(), statements }
            }
            Op::NumberMany(keys) => {
                let statements = self.read_many(PreparedStatement::NumberMany, keys, out);
                Awaited::Numbers { keys: keys.len(), statements }
            }
            Op::SetMany(pairs) => self.set_many(pairs, out),
            Op::GetVersion(key) => self.execute_one(PreparedStatement::GetVersion, [Bytes(key)], Awaited::Version, out),
            Op::Cas { key, version, value } => {
                let parameters = [Bytes(value), Bytes(key), Unsigned(version)];
                self.execute_one(PreparedStatement::Cas, parameters, Awaited::Swapped, out)
            }
            Op::Tally { records, fields, by } => self.tally(records, fields, by, out),
            Op::ReadTally(record) => {
                self.execute_one(PreparedStatement::ReadTally, [Bytes(record)], Awaited::Fields, out)
            }
            Op::Scan { from, limit } => {
                let parameters = [Bytes(from), Unsigned(limit.into())];
                self.execute_one(PreparedStatement::Scan, parameters, Awaited::Rows, out)
            }
        };
        // A list of nothing needs no statement, and yet an answer.
        if awaited.statements() == 0 {
            sent(0, said(&mut self.held, out), |out| out.push(PING));
        }
        self.waiting.push(awaited);
        Ok(())
    }

    /// Executes the only statement of an op, or its last one, and hands on what the op waits for.
    fn execute_one<const N: usize>(
        &mut self,
        statement: PreparedStatement,
        parameters: [Parameter<'_>; N],
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Awaited {
        self.prepare_missing(statement, std::iter::once(1), out);
        self.execute(statement, 1, parameters.into_iter(), out);
        awaited
    }

    /// Executes a statement that is prepared, or is being prepared.
    fn execute<'p>(
        &mut self,
        statement: PreparedStatement,
        rows: usize,
        parameters: impl Iterator<Item = Parameter<'p>> + Clone,
        out: &mut Vec<u8>,
    ) {
        self.commands += 1;
        let id = self.statements.get(&(statement, rows)).copied();
        let said = said(&mut self.held, out);
        let id_at = said.len() + ID_AT;
        sent(0, said, |out| {
            push_head(id.unwrap_or(0), parameters.clone().count(), out);
            parameters.clone().for_each(|parameter| out.extend_from_slice(&parameter.of_type()));
            parameters.for_each(|parameter| parameter.write(out));
        });
        if let (None, Some(held)) = (id, self.held.back_mut()) {
            held.numberless.push((id_at, (statement, rows)));
        }
    }

    /// Prepares the statements that matter to speed.
    pub fn prepare_first(&mut self, out: &mut Vec<u8>) {
        [PreparedStatement::Get, PreparedStatement::Set]
            .iter()
            .for_each(|&statement| self.prepare((statement, 1), out));
    }

    fn prepare(&mut self, (statement, rows): Prepared, out: &mut Vec<u8>) {
        let sql = (self.wording.statement)(statement, rows);
        sent(0, said(&mut self.held, out), |out| {
            out.push(PREPARE);
            out.extend_from_slice(sql.as_bytes());
        });
        self.waiting.push(Awaited::Prepared(statement, rows));
    }

    /// Prepares a statement for these numbers of rows, as far as it is not, before an op that executes it. What is said
    /// from now on is held back until that is done.
    fn prepare_missing(
        &mut self,
        statement: PreparedStatement,
        numbers_of_rows: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) {
        let mut preparing: Vec<Prepared> = Vec::new();
        for rows in numbers_of_rows {
            let which = (statement, rows);
            let is_begun = self.held.iter().any(|held| held.preparing.contains(&which));
            if !self.statements.contains_key(&which) && !is_begun && !preparing.contains(&which) {
                self.prepare(which, out);
                preparing.push(which);
            }
        }
        if !preparing.is_empty() {
            self.held.push_back(Held { preparing, bytes: Vec::new(), numberless: Vec::new() });
        }
    }

    /// Takes the number of a statement, and appends what was held back for want of it.
    pub(super) fn prepared(&mut self, which: Prepared, id: u32, out: &mut Vec<u8>) {
        self.statements.insert(which, id);
        match which {
            (PreparedStatement::Get, 1) => self.get_id = id,
            (PreparedStatement::Set, 1) => self.set_id = id,
            _ => {}
        }
        let Some(held) = self.held.front_mut() else { return };
        held.preparing.retain(|preparing| *preparing != which);
        if held.preparing.is_empty()
            && let Some(Held { mut bytes, numberless, .. }) = self.held.pop_front()
        {
            for (at, which) in numberless {
                bytes[at..at + 4].copy_from_slice(&self.statements[&which].to_le_bytes());
            }
            out.append(&mut bytes);
        }
    }

    /// Where 0 is added, a row does not change, and nothing tells its number: it is read as well.
    fn add_one(
        &mut self,
        statement: PreparedStatement,
        key: &[u8],
        by: i64,
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Awaited {
        self.gathered.ask(key);
        if by != 0 {
            return self.execute_one(statement, [Bytes(key), Signed(by)], awaited, out);
        }
        self.prepare_missing(statement, std::iter::once(1), out);
        self.prepare_missing(PreparedStatement::Number, std::iter::once(1), out);
        self.execute(statement, 1, [Bytes(key), Signed(by)].into_iter(), out);
        let is_sum = statement == PreparedStatement::Increment;
        self.execute_one(PreparedStatement::Number, [Bytes(key)], Awaited::AddedNothing { is_sum }, out)
    }

    /// In the order of the keys, so that clients do not lock crosswise. A record that is a value is not told from a
    /// counter here: it stays as it is, which its reading shows.
    fn add_many(&mut self, sums: Sums<'_>, out: &mut Vec<u8>) -> Awaited {
        let order = self.sorted(sums.keys());
        let row = |&index: &usize| {
            let (key, by) = sums.get(index);
            [Bytes(key), Signed(by)]
        };
        let statements = self.execute_many(PreparedStatement::Add, order.chunks(ROWS), row, out);
        self.order = order;
        Awaited::Changed(statements)
    }

    /// How many statements that are.
    fn read_many(&mut self, statement: PreparedStatement, keys: Keys<'_>, out: &mut Vec<u8>) -> usize {
        keys.iter().for_each(|key| self.gathered.ask(key));
        let mut order = self.sorted(keys);
        // Each key once: its row comes once.
        order.dedup_by(|one, other| keys.get(*one) == keys.get(*other));
        let row = |&index: &usize| [Bytes(keys.get(index))];
        let statements = self.execute_many(statement, order.chunks(ROWS), row, out);
        self.order = order;
        statements
    }

    fn set_many(&mut self, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Awaited {
        let order = self.sorted(pairs.keys);
        let chunks = Chunks { rest: &order, values: pairs.values };
        let row = |&index: &usize| [Bytes(pairs.keys.get(index)), Bytes(pairs.values.get(index))];
        let statements = self.execute_many(PreparedStatement::Set, chunks, row, out);
        self.order = order;
        Awaited::Changed(statements)
    }

    fn sorted(&mut self, keys: Keys<'_>) -> Vec<usize> {
        let mut order = std::mem::take(&mut self.order);
        sort(keys, &mut order);
        order
    }

    /// Executes a statement for each chunk of rows, and says how many these are.
    fn execute_many<'p, 'o, const N: usize>(
        &mut self,
        statement: PreparedStatement,
        chunks: impl Iterator<Item = &'o [usize]> + Clone,
        row: impl Fn(&usize) -> [Parameter<'p>; N] + Copy,
        out: &mut Vec<u8>,
    ) -> usize {
        self.prepare_missing(statement, chunks.clone().map(<[_]>::len), out);
        let mut statements = 0;
        for some in chunks {
            self.execute(statement, some.len(), some.iter().flat_map(row), out);
            statements += 1;
        }
        statements
    }

    /// All pairs in one text, or as many as a packet takes.
    fn tally(&mut self, records: Keys<'_>, fields: Keys<'_>, by: i64, out: &mut Vec<u8>) -> Awaited {
        let first = self.sorted(records);
        let mut second = std::mem::take(&mut self.second_order);
        sort(fields, &mut second);
        let pairs = first.iter().flat_map(|&record| second.iter().map(move |&field| (record, field)));
        let mut pairs = pairs.peekable();
        let (most, mut statements, mut digits) = (self.packet_bytes / 2, 0, itoa::Buffer::new());
        let (wording, by) = (&self.wording, digits.format(by).as_bytes());
        let said = said(&mut self.held, out);
        while pairs.peek().is_some() {
            sent(0, said, |out| {
                let begin = out.len();
                out.push(QUERY);
                out.extend_from_slice(wording.tally.as_bytes());
                let mut between = &b" (x'"[..];
                // One pair at least, however short the packets are.
                while let Some((record, field)) = pairs.next_if(|_| between != b", (x'" || out.len() - begin < most) {
                    out.extend_from_slice(between);
                    push_hexadecimal(records.get(record), out);
                    out.extend_from_slice(b"', x'");
                    push_hexadecimal(fields.get(field), out);
                    out.extend_from_slice(b"', ");
                    out.extend_from_slice(by);
                    out.push(b')');
                    between = b", (x'";
                }
                out.extend_from_slice(wording.tally_end.as_bytes());
            });
            statements += 1;
        }
        self.commands += statements as u64;
        (self.order, self.second_order) = (first, second);
        Awaited::Changed(statements)
    }
}

/// The places of pairs in their order, as many at a time as a statement takes.
#[derive(Clone)]
struct Chunks<'o> {
    rest: &'o [usize],
    values: Keys<'o>,
}

impl<'o> Iterator for Chunks<'o> {
    type Item = &'o [usize];

    fn next(&mut self) -> Option<&'o [usize]> {
        let mut size = 0;
        let fit = self.rest.iter().take(ROWS).take_while(|&&index| {
            size += self.values.get(index).len();
            size <= BYTES
        });
        let (some, rest) = self.rest.split_at(fit.count().max(1).min(self.rest.len()));
        self.rest = rest;
        (!some.is_empty()).then_some(some)
    }
}

/// Where what is said now is written: behind what is held back, if anything is.
fn said<'o>(held: &'o mut VecDeque<Held>, out: &'o mut Vec<u8>) -> &'o mut Vec<u8> {
    held.back_mut().map_or(out, |held| &mut held.bytes)
}

/// The beginning of a packet that executes a statement: no cursor, once, no parameter is NULL, their types follow.
#[inline]
fn push_head(id: u32, parameters: usize, out: &mut Vec<u8>) {
    out.push(EXECUTE);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    out.resize(out.len() + parameters.div_ceil(8), 0);
    out.push(1);
}

/// Writes a get of a key, and says where the key begins.
#[inline]
pub(super) fn get_of(id: u32, key: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> usize + '_ {
    move |out| {
        sent(0, out, |out| {
            push_head(id, 1, out);
            out.extend_from_slice(&BLOB);
            push_bytes(key, out);
        });
        out.len() - key.len()
    }
}

/// Writes a set of a key up to its value, and says where the key begins. The packet must not be full.
#[inline]
pub(super) fn set_of<'a>(id: u32, key: &'a [u8], value: &'a [u8]) -> impl FnOnce(&mut Vec<u8>) -> usize + 'a {
    move |out| {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        push_head(id, 2, out);
        out.extend_from_slice(&BLOB);
        out.extend_from_slice(&BLOB);
        push_bytes(key, out);
        let key_at = out.len() - key.len();
        push_number(value.len(), out);
        let bytes = (out.len() - start - HEAD + value.len()) as u32;
        out[start..start + 3].copy_from_slice(&bytes.to_le_bytes()[..3]);
        key_at
    }
}

fn push_hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}
