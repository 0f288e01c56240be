//! One client's session: statements prepared once and kept, answers lent out of the rows that came.
//!
//! Statements are prepared, so that values travel as they are (the binary protocol) and nothing is parsed twice. A
//! tally is the exception: it has as many pairs as it likes, so it goes as text, which has no limit of 65,535
//! parameters. The library owns what it sends and what comes: an op allocates its key, its value and its row.

use std::collections::HashMap;
use std::fmt::Write;

use mysql::prelude::Queryable;
use mysql::{Binary, Conn, Params, QueryResult, Row, Statement, Value};

use rows::{Longest, RECORDS, TALLIES};

use super::{HALF, KEY, Mysql};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, Sums, ValueList};
use crate::stores::{Session, rows};

/// So many rows a statement at most: each number of them is a statement of its own, and a server keeps 16,382 in all.
const ROWS: usize = 128;
/// So many bytes of values a statement at most, but for a single larger one: a quarter of the least
/// `max_allowed_packet` that a server ships with (16 MB).
const BYTES: usize = 4 << 20;
/// Room for what stands around key and value in a packet.
const AROUND: usize = 1024;

/// A statement; those of several rows are prepared once for each number of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Said {
    Get,
    GetVersion,
    Set,
    SetIfAbsent,
    Delete,
    Increment,
    Add,
    Cas,
    ReadTally,
    DeleteTally,
    Scan,
}

impl Said {
    fn text(self, rows: usize) -> String {
        let several = |one: &str| vec![one; rows].join(", ");
        match self {
            Said::Get => format!("SELECT k, v, n FROM {RECORDS} WHERE k IN ({})", several("?")),
            // MySQL keeps no version of a row: 64 bits of a digest stand for one, reckoned by the server, so that a
            // value does not travel twice. Equal values have equal versions.
            Said::GetVersion => format!("SELECT v, {DIGEST} FROM {RECORDS} WHERE k = ?"),
            Said::Cas => format!("UPDATE {RECORDS} SET v = ? WHERE k = ? AND {DIGEST} = ?"),
            // VALUES(v) is the value that would have been inserted; MariaDB has no other word for it.
            Said::Set => format!(
                "INSERT INTO {RECORDS} (k, v) VALUES {} ON DUPLICATE KEY UPDATE v = VALUES(v), n = NULL",
                several("(?, ?)")
            ),
            Said::SetIfAbsent => format!("INSERT IGNORE INTO {RECORDS} (k, v) VALUES (?, ?)"),
            Said::Delete => format!("DELETE FROM {RECORDS} WHERE k = ?"),
            // LAST_INSERT_ID(expression) sends the sum back with the acknowledgement, without a sign; where the sum
            // would leave 64 bits, the addition fails.
            // <https://dev.mysql.com/doc/refman/8.4/en/information-functions.html>
            Said::Increment => format!(
                "INSERT INTO {RECORDS} (k, n) VALUES (?, ?)
                    ON DUPLICATE KEY UPDATE n = CAST(LAST_INSERT_ID(n + VALUES(n)) AS SIGNED)"
            ),
            // Where there is a value, n is NULL and stays so: the row does not change. VALUES(n) is the step.
            Said::Add => format!(
                "INSERT INTO {RECORDS} (k, n) VALUES {} ON DUPLICATE KEY UPDATE n = n + VALUES(n)",
                several("(?, ?)")
            ),
            Said::ReadTally => format!("SELECT field, n FROM {TALLIES} WHERE record = ?"),
            Said::DeleteTally => format!("DELETE FROM {TALLIES} WHERE record = ?"),
            Said::Scan => format!("SELECT k, v, n FROM {RECORDS} WHERE k >= ? ORDER BY k LIMIT ?"),
        }
    }
}

const DIGEST: &str = "CAST(CONV(LEFT(MD5(v), 16), 16, 10) AS UNSIGNED)";

pub struct MysqlSession<'s> {
    store: &'s Mysql,
    connection: Conn,
    /// The longest packet that the server takes.
    packet_bytes: usize,
    statements: HashMap<(Said, usize), Statement>,
    commands: u64,
    text: String,
    order: Vec<usize>,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl<'s> MysqlSession<'s> {
    pub fn new(store: &'s Mysql, mut connection: Conn) -> Result<MysqlSession<'s>, Fault> {
        let packet: Option<usize> =
            connection.query_first("SELECT @@max_allowed_packet").map_err(|error| store.fault(error))?;
        Ok(MysqlSession {
            store,
            connection,
            packet_bytes: packet.unwrap_or(BYTES),
            statements: HashMap::new(),
            commands: 0,
            text: String::new(),
            order: Vec::new(),
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        })
    }
}

impl Session for MysqlSession<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        self.check(op)?;
        match *op {
            Op::Get(key) => match self.record(key)? {
                Some((Some(value), _)) => {
                    self.value = value;
                    Ok(Reply::Value(&self.value))
                }
                Some((None, number)) => {
                    self.value = number.unwrap_or_default().to_string().into_bytes();
                    Ok(Reply::Value(&self.value))
                }
                None => Ok(Reply::Missing),
            },
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => {
                self.run(Said::Set, 1, vec![bytes(key), bytes(value)])?;
                Ok(Reply::Done)
            }
            Op::SetMany(pairs) => self.set_many(pairs),
            Op::SetIfAbsent { key, value } => {
                let done = self.run(Said::SetIfAbsent, 1, vec![bytes(key), bytes(value)])?;
                Ok(if done.rows == 0 { Reply::Conflict } else { Reply::Done })
            }
            Op::Delete(key) => {
                let mut done = self.run(Said::Delete, 1, vec![bytes(key)])?;
                if done.rows == 0 {
                    done = self.run(Said::DeleteTally, 1, vec![bytes(key)])?;
                }
                Ok(if done.rows == 0 { Reply::Missing } else { Reply::Done })
            }
            Op::Increment { key, by } => self.increment(key, by),
            Op::Add { key, by } => {
                let done = self.run(Said::Add, 1, vec![bytes(key), Value::Int(by)])?;
                // Nothing has changed: 0 was added, or a value is no number.
                if done.rows == 0 { self.number(key).map(|_| Reply::Done) } else { Ok(Reply::Done) }
            }
            Op::AddMany(sums) => self.add_many(sums),
            Op::Number(key) => self.number(key),
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => self.get_version(key),
            Op::Cas { key, version, value } => {
                let done = self.run(Said::Cas, 1, vec![bytes(value), bytes(key), Value::UInt(version)])?;
                Ok(if done.matched { Reply::Done } else { Reply::Conflict })
            }
            Op::Tally { records, fields, by } => self.tally(records, fields, by),
            Op::ReadTally(record) => self.read_tally(record),
            Op::Scan { from, limit } => self.scan(from, limit),
            Op::Set { ttl_s: Some(_), .. } => Err(Fault::unsupported(self.store.name, op)),
        }
    }

    /// Every statement commits itself.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn commands(&self) -> Option<u64> {
        Some(self.commands)
    }
}

/// What a statement that changes rows answers.
struct Done {
    /// Rows that are not as they were; a row that was updated by an insert counts twice.
    rows: u64,
    last_insert_id: u64,
    /// Whether an update found its row, changed or not.
    matched: bool,
}

/// A value, or the number of a counter.
type Record = (Option<Vec<u8>>, Option<i64>);

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

impl MysqlSession<'_> {
    fn check(&self, op: &Op<'_>) -> Result<(), Fault> {
        let store = self.store.name;
        Longest { store, key: KEY, record: HALF, field: HALF }.check(op)?;
        let check = |value: &[u8]| {
            if value.len().saturating_add(KEY + AROUND) <= self.packet_bytes {
                return Ok(());
            }
            let (op, packet, length) = (op.name(), self.packet_bytes, value.len());
            Err(Fault::Unsupported(format!(
                "{store} takes packets of at most {packet} bytes here (max_allowed_packet): a value of this {op} has {length}"
            )))
        };
        match op {
            Op::Set { value, .. } | Op::SetIfAbsent { value, .. } | Op::Cas { value, .. } => check(value),
            Op::SetMany(pairs) => pairs.values.iter().try_for_each(check),
            _ => Ok(()),
        }
    }

    /// Runs a statement for so many rows, prepared at its first use.
    fn ask_for(
        &mut self,
        said: Said,
        rows: usize,
        values: Vec<Value>,
    ) -> Result<QueryResult<'_, '_, '_, Binary>, Fault> {
        let store = self.store;
        self.commands += 1;
        if !self.statements.contains_key(&(said, rows)) {
            let statement = self.connection.prep(said.text(rows)).map_err(|error| store.fault(error))?;
            self.statements.insert((said, rows), statement);
        }
        let statement = &self.statements[&(said, rows)];
        self.connection.exec_iter(statement, Params::Positional(values)).map_err(|error| store.fault(error))
    }

    fn run(&mut self, said: Said, rows: usize, values: Vec<Value>) -> Result<Done, Fault> {
        let result = self.ask_for(said, rows, values)?;
        Ok(Done {
            rows: result.affected_rows(),
            last_insert_id: result.last_insert_id().unwrap_or_default(),
            // "Rows matched: 1  Changed: 0  Warnings: 0": a row that is set to what it was counts as found here only.
            matched: result.info_ref().starts_with(b"Rows matched: 1"),
        })
    }

    /// Calls `each` with every row.
    fn for_rows<F>(&mut self, said: Said, rows: usize, values: Vec<Value>, mut each: F) -> Result<(), Fault>
    where
        F: FnMut(&mut Row) -> Option<()>,
    {
        let store = self.store;
        for row in self.ask_for(said, rows, values)? {
            let mut row = row.map_err(|error| store.fault(error))?;
            each(&mut row).ok_or_else(|| strange(store))?;
        }
        Ok(())
    }

    fn record(&mut self, key: &[u8]) -> Result<Option<Record>, Fault> {
        let mut found = None;
        self.for_rows(Said::Get, 1, vec![bytes(key)], |row| {
            found = Some((taken(row, 1)?, row.take::<Option<i64>, _>(2)?));
            Some(())
        })?;
        Ok(found)
    }

    /// Calls `each` with the places of a key among `keys`, and its row; some keys at a time.
    fn records<F>(&mut self, keys: Keys<'_>, mut each: F) -> Result<(), Fault>
    where
        F: FnMut(usize, &Record),
    {
        let mut order = std::mem::take(&mut self.order);
        rows::sort(keys, &mut order);
        for some in order.chunks(ROWS) {
            let asked = some.iter().map(|&index| bytes(keys.get(index))).collect();
            self.for_rows(Said::Get, some.len(), asked, |row| {
                let key: Vec<u8> = row.take(0)?;
                let record = (taken(row, 1)?, row.take::<Option<i64>, _>(2)?);
                rows::places(keys, some, &key).iter().for_each(|&index| each(index, &record));
                Some(())
            })?;
        }
        self.order = order;
        Ok(())
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let mut values = std::mem::take(&mut self.values);
        values.reset(keys.len());
        self.records(keys, |index, record| match record {
            (Some(value), _) => values.put(index, value),
            (None, number) => values.put(index, number.unwrap_or_default().to_string().as_bytes()),
        })?;
        self.values = values;
        Ok(Reply::Values(self.values.lend()))
    }

    fn set_many(&mut self, pairs: Pairs<'_>) -> Result<Reply<'_>, Fault> {
        let mut order = std::mem::take(&mut self.order);
        rows::sort(pairs.keys, &mut order);
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            let mut size = 0;
            let fit = rest.iter().take(ROWS).take_while(|&&index| {
                size += pairs.values.get(index).len();
                size <= BYTES
            });
            let (now, later) = rest.split_at(fit.count().max(1));
            let row = |&index: &usize| [bytes(pairs.keys.get(index)), bytes(pairs.values.get(index))];
            self.run(Said::Set, now.len(), now.iter().flat_map(row).collect())?;
            rest = later;
        }
        self.order = order;
        Ok(Reply::Done)
    }

    fn increment(&mut self, key: &[u8], by: i64) -> Result<Reply<'_>, Fault> {
        let done = self.run(Said::Increment, 1, vec![bytes(key), Value::Int(by)])?;
        match done.rows {
            1 => Ok(Reply::Number(by)),
            2 => Ok(Reply::Number(done.last_insert_id as i64)),
            // Nothing has changed: 0 was added, or a value is no number.
            _ => self.number(key),
        }
    }

    /// In the order of the keys, so that clients do not lock crosswise. A record that is a value is not told from a
    /// counter here: it stays as it is, which its reading shows.
    fn add_many(&mut self, sums: Sums<'_>) -> Result<Reply<'_>, Fault> {
        let mut rows: Vec<(&[u8], i64)> = sums.iter().collect();
        rows.sort_unstable();
        for some in rows.chunks(ROWS) {
            let values = some.iter().flat_map(|(key, by)| [bytes(key), Value::Int(*by)]);
            self.run(Said::Add, some.len(), values.collect())?;
        }
        Ok(Reply::Done)
    }

    fn number(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        match self.record(key)? {
            Some((_, Some(number))) => Ok(Reply::Number(number)),
            Some(_) => Err(rows::no_counter(self.store.name, key)),
            None => Ok(Reply::Missing),
        }
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(keys.len(), None);
        let mut no_counter = None;
        self.records(keys, |index, (_, number)| {
            numbers[index] = *number;
            no_counter = no_counter.or(number.is_none().then_some(index));
        })?;
        self.numbers = numbers;
        match no_counter {
            Some(index) => Err(rows::no_counter(self.store.name, keys.get(index))),
            None => Ok(Reply::Numbers(&self.numbers)),
        }
    }

    fn get_version(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        let mut found = None;
        self.for_rows(Said::GetVersion, 1, vec![bytes(key)], |row| {
            found = Some((taken(row, 0)?, row.take::<Option<u64>, _>(1)?));
            Some(())
        })?;
        match found {
            Some((Some(value), Some(version))) => {
                self.value = value;
                Ok(Reply::Versioned(&self.value, version))
            }
            Some(_) => Err(Fault::Unsupported(format!("{} has no get-version of a counter", self.store.name))),
            None => Ok(Reply::Missing),
        }
    }

    /// All pairs in one statement, or as many as a packet takes.
    fn tally(&mut self, records: Keys<'_>, fields: Keys<'_>, by: i64) -> Result<Reply<'_>, Fault> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        rows::sort(records, &mut first);
        rows::sort(fields, &mut second);
        let most = self.packet_bytes / 2;
        self.text.clear();
        for &record in &first {
            for &field in &second {
                match self.text.is_empty() {
                    true => write!(self.text, "INSERT INTO {TALLIES} VALUES (x'").expect("a string takes any text"),
                    false => self.text.push_str(", (x'"),
                }
                hexadecimal(records.get(record), &mut self.text);
                self.text.push_str("', x'");
                hexadecimal(fields.get(field), &mut self.text);
                write!(self.text, "', {by})").expect("a string takes any text");
                if self.text.len() >= most {
                    self.send_tally()?;
                }
            }
        }
        if !self.text.is_empty() {
            self.send_tally()?;
        }
        Ok(Reply::Done)
    }

    fn send_tally(&mut self) -> Result<(), Fault> {
        self.text.push_str(" ON DUPLICATE KEY UPDATE n = n + VALUES(n)");
        self.commands += 1;
        self.connection.query_drop(&self.text).map_err(|error| self.store.fault(error))?;
        self.text.clear();
        Ok(())
    }

    fn read_tally(&mut self, record: &[u8]) -> Result<Reply<'_>, Fault> {
        let (mut fields, mut counts) = self.emptied();
        let mut digits = itoa::Buffer::new();
        self.for_rows(Said::ReadTally, 1, vec![bytes(record)], |row| {
            fields.push(&row.take::<Vec<u8>, _>(0)?);
            counts.push(digits.format(row.take::<i64, _>(1)?).as_bytes());
            Some(())
        })?;
        self.rows = (fields, counts);
        let rows = Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() };
        Ok(if rows.keys.is_empty() { Reply::Missing } else { Reply::Rows(rows) })
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        let (mut keys, mut values) = self.emptied();
        self.for_rows(Said::Scan, 1, vec![bytes(from), Value::UInt(limit.into())], |row| {
            keys.push(&row.take::<Vec<u8>, _>(0)?);
            match taken(row, 1)? {
                Some(value) => values.push(&value),
                None => values.push(row.take::<i64, _>(2)?.to_string().as_bytes()),
            }
            Some(())
        })?;
        self.rows = (keys, values);
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
    }

    fn emptied(&mut self) -> (KeyList, KeyList) {
        let (mut keys, mut values) = std::mem::take(&mut self.rows);
        keys.clear();
        values.clear();
        (keys, values)
    }
}

/// A column that may be NULL.
fn taken(row: &mut Row, column: usize) -> Option<Option<Vec<u8>>> {
    row.take::<Option<Vec<u8>>, _>(column)
}

fn strange(store: &Mysql) -> Fault {
    Fault::Garbled(format!("{}: a row of our own table has other columns than ours", store.server()))
}

fn hexadecimal(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
}
