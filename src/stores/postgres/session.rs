//! One client's session: statements prepared once, lists sent as arrays, so that an op is one statement however long it
//! is. What is lent lies in the rows that came.

use postgres::types::{ToSql, Type};
use postgres::{Client, Row, Statement};

use rows::{Longest, RECORDS, TALLIES};

use super::{NAME, Postgres};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, Sums, ValueList};
use crate::stores::{Session as Asks, rows};

/// A row of an index has at most a third of a page, 2704 bytes, heads included: 8 for the row, 4 for a value's length,
/// and what rounds each up to a multiple of 8. (Longer ones that compress well would pass.)
/// <https://www.postgresql.org/docs/current/btree.html>
const KEY: usize = 2692;
const HALF: usize = 1340;
/// A value has at most 1 GiB, and so has a message; this leaves room for the key.
/// <https://www.postgresql.org/docs/current/limits.html>
const VALUE: usize = (1 << 30) - 8192;

/// The statements, by their place in `Asking::statements`.
#[derive(Clone, Copy)]
enum Said {
    Get,
    GetMany,
    Set,
    SetMany,
    SetIfAbsent,
    Delete,
    Increment,
    Add,
    AddMany,
    Number,
    NumberMany,
    GetVersion,
    Cas,
    Tally,
    ReadTally,
    DeleteTally,
    Scan,
}

const STATEMENTS: usize = Said::Scan as usize + 1;

/// What `Get` says of a counter: its number in decimal. A value that is there is handed on untouched.
const BYTES: &str = "coalesce(v, n::text::bytea)";

impl Said {
    fn text(self) -> String {
        // An upsert that takes a value, and leaves no number.
        let overwrite = "ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = NULL";
        match self {
            Said::Get => format!("SELECT {BYTES} FROM {RECORDS} WHERE k = $1"),
            Said::GetMany => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k = ANY($1)"),
            Said::Set => format!("INSERT INTO {RECORDS} (k, v) VALUES ($1, $2) {overwrite}"),
            // In the order of the keys, so that clients do not lock crosswise; of two equal keys the last one counts,
            // because a statement may not change a row twice.
            Said::SetMany => format!(
                "INSERT INTO {RECORDS} (k, v) SELECT DISTINCT ON (k) k, v
                    FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS given (k, v, place)
                    ORDER BY k, place DESC {overwrite}"
            ),
            Said::SetIfAbsent => format!("INSERT INTO {RECORDS} (k, v) VALUES ($1, $2) ON CONFLICT (k) DO NOTHING"),
            Said::Delete => format!("DELETE FROM {RECORDS} WHERE k = $1"),
            // Gives no row where there is a value.
            Said::Increment => format!(
                "INSERT INTO {RECORDS} AS old (k, n) VALUES ($1, $2)
                    ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL RETURNING n"
            ),
            // Changes no row where there is a value.
            Said::Add => format!(
                "INSERT INTO {RECORDS} AS old (k, n) VALUES ($1, $2)
                    ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL"
            ),
            // In the order of the keys, so that clients do not lock crosswise.
            Said::AddMany => format!(
                "INSERT INTO {RECORDS} AS old (k, n) SELECT k, n FROM unnest($1::bytea[], $2::bigint[]) AS given (k, n)
                    ORDER BY k ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n WHERE old.v IS NULL"
            ),
            Said::Number => format!("SELECT n FROM {RECORDS} WHERE k = $1"),
            Said::NumberMany => format!("SELECT k, n FROM {RECORDS} WHERE k = ANY($1)"),
            // The transaction that wrote a row is its version: every op is one.
            // <https://www.postgresql.org/docs/current/ddl-system-columns.html>
            Said::GetVersion => format!("SELECT v, xmin::text::bigint FROM {RECORDS} WHERE k = $1"),
            Said::Cas => format!("UPDATE {RECORDS} SET v = $2, n = NULL WHERE k = $1 AND xmin::text::bigint = $3"),
            Said::Tally => format!(
                "INSERT INTO {TALLIES} AS old SELECT record, field, $3::bigint
                    FROM unnest($1::bytea[]) AS record CROSS JOIN unnest($2::bytea[]) AS field ORDER BY 1, 2
                    ON CONFLICT (record, field) DO UPDATE SET n = old.n + excluded.n"
            ),
            Said::ReadTally => format!("SELECT field, n FROM {TALLIES} WHERE record = $1"),
            Said::DeleteTally => format!("DELETE FROM {TALLIES} WHERE record = $1"),
            Said::Scan => format!("SELECT k, {BYTES} FROM {RECORDS} WHERE k >= $1 ORDER BY k LIMIT $2"),
        }
    }
}

pub struct Asking<'s> {
    store: &'s Postgres,
    client: Client,
    statements: [Option<Statement>; STATEMENTS],
    commands: u64,
    /// The last answer, as long as something of it is lent.
    row: Option<Row>,
    order: Vec<usize>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl<'s> Asking<'s> {
    pub fn new(store: &'s Postgres, client: Client) -> Asking<'s> {
        Asking {
            store,
            client,
            statements: [const { None }; STATEMENTS],
            commands: 0,
            row: None,
            order: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }
    }
}

impl Asks for Asking<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        check(op)?;
        match *op {
            Op::Get(key) => {
                self.row = self.row_of(Said::Get, &[&key])?;
                Ok(self.row.as_ref().map_or(Reply::Missing, |row| Reply::Value(row.get(0))))
            }
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => {
                self.change(Said::Set, &[&key, &value])?;
                Ok(Reply::Done)
            }
            Op::SetMany(pairs) => self.set_many(pairs),
            Op::SetIfAbsent { key, value } => {
                let rows = self.change(Said::SetIfAbsent, &[&key, &value])?;
                Ok(if rows == 0 { Reply::Conflict } else { Reply::Done })
            }
            Op::Delete(key) => {
                let mut rows = self.change(Said::Delete, &[&key])?;
                if rows == 0 {
                    rows = self.change(Said::DeleteTally, &[&key])?;
                }
                Ok(if rows == 0 { Reply::Missing } else { Reply::Done })
            }
            Op::Increment { key, by } => {
                let row = self.row_of(Said::Increment, &[&key, &by])?;
                let row = row.ok_or_else(|| rows::no_counter(NAME, key))?;
                Ok(Reply::Number(row.get(0)))
            }
            Op::Add { key, by } => match self.change(Said::Add, &[&key, &by])? {
                0 => Err(rows::no_counter(NAME, key)),
                _ => Ok(Reply::Done),
            },
            Op::AddMany(sums) => self.add_many(sums),
            Op::Number(key) => match self.row_of(Said::Number, &[&key])? {
                Some(row) => {
                    let number: Option<i64> = row.get(0);
                    number.map(Reply::Number).ok_or_else(|| rows::no_counter(NAME, key))
                }
                None => Ok(Reply::Missing),
            },
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => self.get_version(key),
            Op::Cas { key, version, value } => {
                // A transaction's number has 32 bits: another version was never given.
                let version = i64::try_from(version).unwrap_or(-1);
                let rows = self.change(Said::Cas, &[&key, &value, &version])?;
                Ok(if rows == 0 { Reply::Conflict } else { Reply::Done })
            }
            Op::Tally { records, fields, by } => {
                let (records, fields): (Vec<_>, Vec<_>) = (records.iter().collect(), fields.iter().collect());
                self.change(Said::Tally, &[&records, &fields, &by])?;
                Ok(Reply::Done)
            }
            Op::ReadTally(record) => self.read_tally(record),
            Op::Scan { from, limit } => self.scan(from, limit),
            Op::Set { ttl_s: Some(_), .. } => Err(Fault::unsupported(NAME, op)),
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

fn check(op: &Op<'_>) -> Result<(), Fault> {
    Longest { store: NAME, key: KEY, record: HALF, field: HALF }.check(op)?;
    let check = |length: usize| {
        if length <= VALUE {
            return Ok(());
        }
        let op = op.name();
        Err(Fault::Unsupported(format!("{NAME} takes values of at most {VALUE} bytes: that of this {op} has {length}")))
    };
    match op {
        Op::Set { value, .. } | Op::SetIfAbsent { value, .. } | Op::Cas { value, .. } => check(value.len()),
        // They travel in one message.
        Op::SetMany(pairs) => check(pairs.values.iter().map(<[u8]>::len).sum()),
        _ => Ok(()),
    }
}

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

impl Asking<'_> {
    /// A statement, prepared at its first use.
    fn said(&mut self, said: Said) -> Result<Statement, Fault> {
        self.commands += 1;
        let place = &mut self.statements[said as usize];
        if let Some(statement) = place {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&said.text()).map_err(|error| self.store.fault(error))?;
        // Tables of these names that somebody else made are not taken for ours.
        if statement.columns().iter().any(|column| ![Type::BYTEA, Type::INT8].contains(column.type_())) {
            let server = self.store.server();
            return Err(Fault::Refused(format!(
                "{server}: {RECORDS} or {TALLIES} has other columns than ours: drop it"
            )));
        }
        Ok(place.insert(statement).clone())
    }

    fn change(&mut self, said: Said, parameters: Parameters<'_>) -> Result<u64, Fault> {
        let statement = self.said(said)?;
        self.client.execute(&statement, parameters).map_err(|error| self.store.fault(error))
    }

    fn row_of(&mut self, said: Said, parameters: Parameters<'_>) -> Result<Option<Row>, Fault> {
        let statement = self.said(said)?;
        self.client.query_opt(&statement, parameters).map_err(|error| self.store.fault(error))
    }

    fn rows_of(&mut self, said: Said, parameters: Parameters<'_>) -> Result<Vec<Row>, Fault> {
        let statement = self.said(said)?;
        self.client.query(&statement, parameters).map_err(|error| self.store.fault(error))
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        rows::sort(keys, &mut self.order);
        let asked: Vec<&[u8]> = self.order.iter().map(|&index| keys.get(index)).collect();
        let found = self.rows_of(Said::GetMany, &[&asked])?;
        self.values.reset(keys.len());
        for row in &found {
            let value: &[u8] = row.get(1);
            rows::places(keys, &self.order, row.get(0)).iter().for_each(|&index| self.values.put(index, value));
        }
        Ok(Reply::Values(self.values.lend()))
    }

    fn set_many(&mut self, pairs: Pairs<'_>) -> Result<Reply<'_>, Fault> {
        let (keys, values): (Vec<_>, Vec<_>) = pairs.iter().unzip();
        self.change(Said::SetMany, &[&keys, &values])?;
        Ok(Reply::Done)
    }

    fn add_many(&mut self, sums: Sums<'_>) -> Result<Reply<'_>, Fault> {
        let (keys, numbers): (Vec<_>, Vec<_>) = sums.iter().unzip();
        let rows = self.change(Said::AddMany, &[&keys, &numbers])?;
        if rows == keys.len() as u64 {
            return Ok(Reply::Done);
        }
        let values = keys.len() as u64 - rows;
        Err(Fault::Refused(format!("{NAME}: {values} of the records to add to are no counters")))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        rows::sort(keys, &mut self.order);
        let asked: Vec<&[u8]> = self.order.iter().map(|&index| keys.get(index)).collect();
        let found = self.rows_of(Said::NumberMany, &[&asked])?;
        self.numbers.clear();
        self.numbers.resize(keys.len(), None);
        for row in &found {
            let key: &[u8] = row.get(0);
            let number: Option<i64> = row.get(1);
            let number = number.ok_or_else(|| rows::no_counter(NAME, key))?;
            rows::places(keys, &self.order, key).iter().for_each(|&index| self.numbers[index] = Some(number));
        }
        Ok(Reply::Numbers(&self.numbers))
    }

    fn get_version(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        self.row = self.row_of(Said::GetVersion, &[&key])?;
        let Some(row) = &self.row else { return Ok(Reply::Missing) };
        let value: Option<&[u8]> = row.get(0);
        let value = value.ok_or_else(|| Fault::Unsupported(format!("{NAME} has no get-version of a counter")))?;
        Ok(Reply::Versioned(value, row.get::<_, i64>(1) as u64))
    }

    fn read_tally(&mut self, record: &[u8]) -> Result<Reply<'_>, Fault> {
        let found = self.rows_of(Said::ReadTally, &[&record])?;
        let mut digits = itoa::Buffer::new();
        self.clear();
        for row in &found {
            self.rows.0.push(row.get(0));
            self.rows.1.push(digits.format(row.get::<_, i64>(1)).as_bytes());
        }
        Ok(if found.is_empty() { Reply::Missing } else { self.lent() })
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        let found = self.rows_of(Said::Scan, &[&from, &i64::from(limit)])?;
        self.clear();
        for row in &found {
            self.rows.0.push(row.get(0));
            self.rows.1.push(row.get(1));
        }
        Ok(self.lent())
    }

    fn clear(&mut self) {
        self.rows.0.clear();
        self.rows.1.clear();
    }

    fn lent(&self) -> Reply<'_> {
        Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() })
    }
}
