//! What embedded stores share whose changes are whole or nothing: a session, in terms of a view of the records and of a
//! change. It knows no engine.

use super::{Session, cell};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, Sums, ValueList};

/// One client's way to the records of an engine.
pub trait Records {
    const NAME: &'static str;
    /// None where the engine has no limit.
    fn longest_key(&self) -> Option<usize>;
    /// Lends the value until the next question.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault>;
    /// Shows each key with its value, all of one moment where the engine has such.
    fn each(&mut self, keys: Keys<'_>, see: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), Fault>)
    -> Result<(), Fault>;
    /// Shows at most `limit` pairs from `from` on.
    fn scan(&mut self, from: &[u8], limit: u32, see: impl FnMut(&[u8], &[u8])) -> Result<(), Fault>;
    /// Does an op that writes, by [`carry_out`], as one change that keeps the durability level.
    fn change(&mut self, op: &Op<'_>) -> Result<Reply<'static>, Fault>;
    fn flush(&mut self) -> Result<(), Fault>;
}

/// What an op may do within one change.
pub trait RecordWriter {
    const NAME: &'static str;
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, Fault>;
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault>;
    /// Whether there was such a key.
    fn remove(&mut self, key: &[u8]) -> Result<bool, Fault>;
    /// Whether there was none.
    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        let is_absent = self.get(key, |found| found.is_none())?;
        if is_absent {
            self.put(key, value)?;
        }
        Ok(is_absent)
    }
    fn put_many(&mut self, pairs: Pairs<'_>) -> Result<(), Fault> {
        pairs.iter().try_for_each(|(key, value)| self.put(key, value))
    }
    fn add(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let number = self.get(key, |found| cell::add(Self::NAME, key, found, by))??;
        self.put(key, &cell::encode(number))?;
        Ok(number)
    }
    fn add_many(&mut self, sums: Sums<'_>) -> Result<(), Fault> {
        sums.iter().try_for_each(|(key, by)| self.add(key, by).map(drop))
    }
}

/// An op that writes.
pub fn carry_out<W: RecordWriter>(write: &mut W, op: &Op<'_>) -> Result<Reply<'static>, Fault> {
    match *op {
        Op::Set { key, value, ttl_s: None } => write.put(key, value).map(|()| Reply::Done),
        Op::SetMany(pairs) => write.put_many(pairs).map(|()| Reply::Done),
        Op::SetIfAbsent { key, value } => {
            Ok(if write.put_if_absent(key, value)? { Reply::Done } else { Reply::Conflict })
        }
        Op::Delete(key) => Ok(if write.remove(key)? { Reply::Done } else { Reply::Missing }),
        Op::Increment { key, by } => write.add(key, by).map(Reply::Number),
        Op::Add { key, by } => write.add(key, by).map(|_| Reply::Done),
        Op::AddMany(sums) => write.add_many(sums).map(|()| Reply::Done),
        Op::Cas { key, version, value } => {
            if write.get(key, |found| found.map(cell::version))? != Some(version) {
                return Ok(Reply::Conflict);
            }
            write.put(key, value).map(|()| Reply::Done)
        }
        _ => Err(Fault::unsupported(W::NAME, op)),
    }
}

/// One client's session.
pub struct RecordSession<R> {
    records: R,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl<R: Records> RecordSession<R> {
    pub fn new(records: R) -> RecordSession<R> {
        RecordSession {
            records,
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }
    }
}

impl<R: Records> Session for RecordSession<R> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let RecordSession { records, values, numbers, rows } = self;
        if let Some(longest) = records.longest_key() {
            check_keys(R::NAME, op, longest)?;
        }
        match *op {
            Op::Get(key) => Ok(records.get(key)?.map_or(Reply::Missing, Reply::Value)),
            Op::GetMany(keys) => {
                values.clear();
                records.each(keys, |_, value| {
                    values.push(value);
                    Ok(())
                })?;
                Ok(Reply::Values(values.lend()))
            }
            Op::Number(key) => match records.get(key)? {
                Some(record) => Ok(Reply::Number(cell::decode(R::NAME, key, record)?)),
                None => Ok(Reply::Missing),
            },
            Op::NumberMany(keys) => {
                numbers.clear();
                records.each(keys, |key, record| {
                    numbers.push(record.map(|record| cell::decode(R::NAME, key, record)).transpose()?);
                    Ok(())
                })?;
                Ok(Reply::Numbers(numbers))
            }
            Op::GetVersion(key) => {
                Ok(records.get(key)?.map_or(Reply::Missing, |value| Reply::Versioned(value, cell::version(value))))
            }
            Op::Scan { from, limit } => {
                let (keys, values) = rows;
                keys.clear();
                values.clear();
                records.scan(from, limit, |key, value| {
                    keys.push(key);
                    values.push(value);
                })?;
                Ok(Reply::Rows(Pairs { keys: keys.lend(), values: values.lend() }))
            }
            Op::Set { ttl_s: Some(_), .. } | Op::Tally { .. } | Op::ReadTally(_) => {
                Err(Fault::unsupported(R::NAME, op))
            }
            Op::Set { ttl_s: None, .. }
            | Op::SetMany(_)
            | Op::SetIfAbsent { .. }
            | Op::Delete(_)
            | Op::Increment { .. }
            | Op::Add { .. }
            | Op::AddMany(_)
            | Op::Cas { .. } => records.change(op),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.records.flush()
    }
}

/// Before an engine sees a key that it may not have. Where a scan begins is for the engine.
fn check_keys(name: &'static str, op: &Op<'_>, longest: usize) -> Result<(), Fault> {
    let check = |key: &[u8]| cell::check_key(name, op.name(), key, longest);
    match op {
        Op::GetMany(keys) | Op::NumberMany(keys) => keys.iter().try_for_each(check),
        Op::SetMany(pairs) => pairs.keys.iter().try_for_each(check),
        Op::AddMany(sums) => sums.keys().iter().try_for_each(check),
        Op::Scan { .. } | Op::Tally { .. } | Op::ReadTally(_) => Ok(()),
        op => check(op.key()),
    }
}
