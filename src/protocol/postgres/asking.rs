//! How ops are asked: each is a prepared statement that is bound, executed and synced in one write. A get and a set are
//! prepared at connecting, other statements in the write of their first use: each costs the server memory.
//!
//! The format: <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY>. All parameters and
//! columns are in the binary format. A Sync ends each op, so that each is a transaction of its own.

use super::frames::{SYNC, counted, prepare};
use super::{Awaited, Postgres};
use crate::model::op::{Fault, Keys, Op, Sums};

/// The statements, which the store words: which parameters they take, and what they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedStatement {
    /// A key: a column of bytes.
    Get,
    /// An array of keys: rows of a key and bytes.
    GetMany,
    /// A key and a value.
    Set,
    /// An array of keys, and one of values.
    SetMany,
    /// A key and a value: changes one row or none.
    SetIfAbsent,
    /// A key: a column with 1 where there was something, else 0.
    Delete,
    /// A key and a number: a column with the sum, or no row where there is a value.
    Increment,
    /// A key and a number: changes one row, or none where there is a value.
    Add,
    /// An array of keys, and one of numbers: changes a row for each counter.
    AddMany,
    /// A key: a column with a number, NULL where there is a value.
    Number,
    /// An array of keys: rows of a key and a number.
    NumberMany,
    /// A key: columns with a value, NULL where there is a number, and a version.
    GetVersion,
    /// A key, a value and a version: changes one row or none.
    Cas,
    /// An array of records, one of fields, and a number.
    Tally,
    /// A record: rows of a field and a number.
    ReadTally,
    /// A key and a limit: rows of a key and bytes.
    Scan,
}

impl PreparedStatement {
    pub(super) const COUNT: usize = PreparedStatement::Scan as usize + 1;

    /// That of an op.
    fn of(op: &Op<'_>) -> PreparedStatement {
        match op {
            Op::Get(_) => PreparedStatement::Get,
            Op::GetMany(_) => PreparedStatement::GetMany,
            Op::Set { .. } => PreparedStatement::Set,
            Op::SetMany(_) => PreparedStatement::SetMany,
            Op::SetIfAbsent { .. } => PreparedStatement::SetIfAbsent,
            Op::Delete(_) => PreparedStatement::Delete,
            Op::Increment { .. } => PreparedStatement::Increment,
            Op::Add { .. } => PreparedStatement::Add,
            Op::AddMany(_) => PreparedStatement::AddMany,
            Op::Number(_) => PreparedStatement::Number,
            Op::NumberMany(_) => PreparedStatement::NumberMany,
            Op::GetVersion(_) => PreparedStatement::GetVersion,
            Op::Cas { .. } => PreparedStatement::Cas,
            Op::Tally { .. } => PreparedStatement::Tally,
            Op::ReadTally(_) => PreparedStatement::ReadTally,
            Op::Scan { .. } => PreparedStatement::Scan,
        }
    }

    /// The name under which it is prepared: one letter.
    pub fn letter(self) -> u8 {
        b'a' + self as u8
    }
}

/// What stands behind the parameters: all columns are wanted in the binary format, all rows are executed, and the op
/// ends.
pub(super) const BEHIND: &[u8] = b"\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
/// Bytes of a Bind message beside its parameters, its kind left out: length, portal, statement, formats and count of
/// parameters, formats of columns.
const BIND_BYTES: usize = 4 + 1 + 2 + 4 + 2 + 4;

/// Object identifiers of types. <https://www.postgresql.org/docs/current/datatype-oid.html>, pg_type.dat
const BYTEA: u32 = 17;
const BIGINT: u32 = 20;

impl Postgres {
    /// Every op but a plain get and set.
    #[inline(never)]
    pub(super) fn say_other(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.prepare_for(op, out);
        let awaited = match *op {
            Op::Get(_) | Op::Set { .. } => unreachable!("said by themselves, or not at all"),
            Op::SetIfAbsent { key, value } => {
                bound(PreparedStatement::SetIfAbsent, 2, out, |out| {
                    bytes(key, out);
                    bytes(value, out);
                });
                Awaited::Kept
            }
            Op::Delete(key) => self.of_key(PreparedStatement::Delete, key, Awaited::Deleted, out),
            Op::Increment { key, by } => self.of_number(PreparedStatement::Increment, key, by, Awaited::Sum, out),
            Op::Add { key, by } => self.of_number(PreparedStatement::Add, key, by, Awaited::Added, out),
            Op::AddMany(sums) => self.add_many(sums, out),
            Op::Number(key) => {
                self.gathered.ask(key);
                self.of_key(PreparedStatement::Number, key, Awaited::Number, out)
            }
            Op::GetMany(keys) => self.of_keys(PreparedStatement::GetMany, keys, Awaited::Values(keys.len()), out),
            Op::NumberMany(keys) => {
                self.of_keys(PreparedStatement::NumberMany, keys, Awaited::Numbers(keys.len()), out)
            }
            Op::SetMany(pairs) => {
                bound(PreparedStatement::SetMany, 2, out, |out| {
                    array(pairs.keys, out);
                    array(pairs.values, out);
                });
                Awaited::Done
            }
            Op::GetVersion(key) => self.of_key(PreparedStatement::GetVersion, key, Awaited::Version, out),
            Op::Cas { key, version, value } => {
                // A transaction's number has 32 bits: another version was never given.
                let version = i64::try_from(version).unwrap_or(-1);
                bound(PreparedStatement::Cas, 3, out, |out| {
                    bytes(key, out);
                    bytes(value, out);
                    number(version, out);
                });
                Awaited::Swapped
            }
            Op::Tally { records, fields, by } => {
                bound(PreparedStatement::Tally, 3, out, |out| {
                    array(records, out);
                    array(fields, out);
                    number(by, out);
                });
                Awaited::Done
            }
            Op::ReadTally(record) => self.of_key(PreparedStatement::ReadTally, record, Awaited::Fields, out),
            Op::Scan { from, limit } => {
                bound(PreparedStatement::Scan, 2, out, |out| {
                    bytes(from, out);
                    number(i64::from(limit), out);
                });
                Awaited::Rows
            }
        };
        self.commands += 1;
        self.waiting.push(awaited);
        Ok(())
    }

    fn of_key(&mut self, statement: PreparedStatement, key: &[u8], awaited: Awaited, out: &mut Vec<u8>) -> Awaited {
        bound(statement, 1, out, |out| bytes(key, out));
        awaited
    }

    fn of_number(
        &mut self,
        statement: PreparedStatement,
        key: &[u8],
        by: i64,
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Awaited {
        self.gathered.ask(key);
        bound(statement, 2, out, |out| {
            bytes(key, out);
            number(by, out);
        });
        awaited
    }

    fn of_keys(
        &mut self,
        statement: PreparedStatement,
        keys: Keys<'_>,
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Awaited {
        keys.iter().for_each(|key| self.gathered.ask(key));
        bound(statement, 1, out, |out| array(keys, out));
        awaited
    }

    fn add_many(&mut self, sums: Sums<'_>, out: &mut Vec<u8>) -> Awaited {
        bound(PreparedStatement::AddMany, 2, out, |out| {
            array(sums.keys(), out);
            elements(BIGINT, sums.len(), out, |out| sums.iter().for_each(|(_, by)| number(by, out)));
        });
        Awaited::AllAdded(sums.len())
    }

    /// Prepares the statement of an op, where that was not done yet.
    fn prepare_for(&mut self, op: &Op<'_>, out: &mut Vec<u8>) {
        let statement = PreparedStatement::of(op);
        if !self.is_prepared[statement as usize] {
            self.is_prepared[statement as usize] = true;
            prepare(statement.letter(), &(self.sql)(statement), out);
        }
    }
}

/// The message that prepares the statements which matter to speed.
pub fn prepare_first(sql: fn(PreparedStatement) -> String) -> Vec<u8> {
    let mut out = Vec::new();
    for statement in FIRST {
        prepare(statement.letter(), &sql(statement), &mut out);
    }
    out.extend_from_slice(SYNC);
    out
}

/// What is prepared at connecting.
pub(super) const FIRST: [PreparedStatement; 2] = [PreparedStatement::Get, PreparedStatement::Set];

/// Writes a get of a key, and says where the key begins.
#[inline]
pub(super) fn get_of(key: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> usize + '_ {
    |out| {
        head(PreparedStatement::Get, 1, BIND_BYTES + 4 + key.len(), out);
        bytes(key, out);
        out.extend_from_slice(BEHIND);
        out.len() - BEHIND.len() - key.len()
    }
}

/// Writes a set of a key up to its value, and says where the key begins.
#[inline]
pub(super) fn set_of<'a>(key: &'a [u8], value: &'a [u8]) -> impl FnOnce(&mut Vec<u8>) -> usize + 'a {
    |out| {
        head(PreparedStatement::Set, 2, BIND_BYTES + 4 + key.len() + 4 + value.len(), out);
        bytes(key, out);
        let key_at = out.len() - key.len();
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        key_at
    }
}

/// The beginning of a Bind message of so many bytes.
fn head(statement: PreparedStatement, parameters: u8, bytes: usize, out: &mut Vec<u8>) {
    out.push(b'B');
    out.extend_from_slice(&(bytes as u32).to_be_bytes());
    named(statement, parameters, out);
}

/// No name for the portal, the statement's, the binary format for all parameters, and their count.
fn named(statement: PreparedStatement, parameters: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, statement.letter(), 0, 0, 1, 0, 1, 0, parameters]);
}

/// A whole op. `write` appends the parameters.
fn bound(statement: PreparedStatement, parameters: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let (formats, rest) = BEHIND.split_at(4);
    out.push(b'B');
    counted(out, true, |out| {
        named(statement, parameters, out);
        write(out);
        out.extend_from_slice(formats);
    });
    out.extend_from_slice(rest);
}

fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn number(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
}

fn array(keys: Keys<'_>, out: &mut Vec<u8>) {
    elements(BYTEA, keys.len(), out, |out| keys.iter().for_each(|key| bytes(key, out)));
}

/// An array of one dimension, or of none where it is empty: dimensions, whether there are NULLs, the type; for the
/// dimension its length and the index of its first element. (array_send in PostgreSQL's arrayfuncs.c)
fn elements(of_type: u32, count: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    counted(out, false, |out| {
        let dimensions = u32::from(count > 0);
        [dimensions, 0, of_type].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        if count > 0 {
            [count as u32, 1].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
            write(out);
        }
    });
}
