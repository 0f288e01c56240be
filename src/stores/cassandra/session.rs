//! One client's way to a Cassandra: each op as the prepared statements that it takes.

use std::sync::Arc;

use scylla::client::session::Session as Driver;
use scylla::errors::ExecutionError;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{Counter, CqlValue, Row};
use tokio::task::JoinSet;

use super::{Cassandra, NAME, fault, garbled};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, Sums, ValueList};
use crate::stores::Session;
use crate::stores::cell::{self, check_key};
use crate::stores::version_seen::VersionSeen;

/// The longest key of a partition, in bytes. <https://cassandra.apache.org/doc/5.0/cassandra/reference/faq.html>
const KEY_BYTES_MAX: usize = 65_535;

/// What one answer or question may be, in bytes: the driver's frames have a length of 31 bits, and the server takes
/// half a segment of its log (32 MiB) at most (`max_mutation_size`).
/// <https://cassandra.apache.org/doc/5.0/cassandra/managing/configuration/cass_yaml_file.html>
const VALUE_BYTES_MAX: usize = (16 << 20) - 1024;

/// So many questions of one op are under way at a time: what its makers advise instead of one statement with many keys.
/// <https://cassandra.apache.org/doc/5.0/cassandra/developing/cql/dml.html#where-clause>
const AT_ONCE: usize = 128;

/// A batch of more than 50 KiB is refused by default (`batch_size_fail_threshold`); ours are within a third of it.
const BATCH_BYTES: usize = 16 << 10;

/// What one addition of a batch weighs besides its field.
const ADDITION_BYTES: usize = 64;

/// Every statement, prepared once for all sessions.
pub struct Statements {
    get: PreparedStatement,
    set: PreparedStatement,
    set_for: PreparedStatement,
    set_if_absent: PreparedStatement,
    set_if_same: PreparedStatement,
    delete: PreparedStatement,
    add: PreparedStatement,
    number: PreparedStatement,
    delete_number: PreparedStatement,
    tally: PreparedStatement,
    read_tally: PreparedStatement,
    delete_tally: PreparedStatement,
}

impl Statements {
    pub fn prepare(store: &Cassandra) -> Result<Statements, Fault> {
        let prepare = |statement: &str| store.prepare(statement);
        // What a SELECT of our own tables answers does not change its shape: it need not be told each time.
        let select = |statement: &str| {
            let mut prepared = store.prepare(statement)?;
            prepared.set_use_cached_result_metadata(true);
            Ok::<_, Fault>(prepared)
        };
        Ok(Statements {
            get: select("SELECT value FROM KEYSPACE.kvfair_records WHERE key = ?")?,
            set: prepare("INSERT INTO KEYSPACE.kvfair_records (key, value) VALUES (?, ?)")?,
            set_for: prepare("INSERT INTO KEYSPACE.kvfair_records (key, value) VALUES (?, ?) USING TTL ?")?,
            set_if_absent: prepare("INSERT INTO KEYSPACE.kvfair_records (key, value) VALUES (?, ?) IF NOT EXISTS")?,
            set_if_same: prepare("UPDATE KEYSPACE.kvfair_records SET value = ? WHERE key = ? IF value = ?")?,
            delete: prepare("DELETE FROM KEYSPACE.kvfair_records WHERE key = ? IF EXISTS")?,
            add: prepare("UPDATE KEYSPACE.kvfair_counters SET number = number + ? WHERE key = ?")?,
            number: select("SELECT number FROM KEYSPACE.kvfair_counters WHERE key = ?")?,
            delete_number: prepare("DELETE FROM KEYSPACE.kvfair_counters WHERE key = ?")?,
            tally: prepare("UPDATE KEYSPACE.kvfair_tallies SET number = number + ? WHERE record = ? AND field = ?")?,
            read_tally: select("SELECT field, number FROM KEYSPACE.kvfair_tallies WHERE record = ?")?,
            delete_tally: prepare("DELETE FROM KEYSPACE.kvfair_tallies WHERE record = ?")?,
        })
    }
}

/// One client's session. All share the driver's connections, which carry many questions at a time.
pub struct Asking<'s> {
    store: &'s Cassandra,
    statements: Arc<Statements>,
    /// The answer that a reply lends from.
    answer: Option<QueryRowsResult>,
    seen: VersionSeen,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
    commands: u64,
}

impl Session for Asking<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Get(key) => {
                self.check(op, key, 0)?;
                Ok(self.read(key)?.map_or(Reply::Missing, Reply::Value))
            }
            Op::GetMany(keys) => self.get_many(op, keys),
            Op::Set { key, value, ttl_s } => {
                self.check(op, key, value.len())?;
                match ttl_s {
                    None => self.execute(|statements| &statements.set, (key, value))?,
                    Some(ttl_s) => {
                        let ttl_s = i32::try_from(ttl_s).unwrap_or(i32::MAX);
                        self.execute(|statements| &statements.set_for, (key, value, ttl_s))?
                    }
                };
                Ok(Reply::Done)
            }
            Op::SetMany(pairs) => self.set_many(op, pairs),
            Op::SetIfAbsent { key, value } => {
                self.check(op, key, value.len())?;
                let applied = self.apply(|statements| &statements.set_if_absent, (key, value))?;
                Ok(if applied { Reply::Done } else { Reply::Conflict })
            }
            Op::Delete(key) => {
                self.check(op, key, 0)?;
                self.delete(key)
            }
            Op::Increment { key, by } => {
                self.check(op, key, 0)?;
                self.increment(key, by)
            }
            Op::Add { key, by } => {
                self.check(op, key, 0)?;
                self.execute(|statements| &statements.add, (Counter(by), key))?;
                Ok(Reply::Done)
            }
            Op::AddMany(sums) => self.add_many(op, sums),
            Op::Number(key) => {
                self.check(op, key, 0)?;
                Ok(self.number(key)?.map_or(Reply::Missing, Reply::Number))
            }
            Op::NumberMany(keys) => self.number_many(op, keys),
            Op::GetVersion(key) => {
                self.check(op, key, 0)?;
                let mut seen = std::mem::take(&mut self.seen);
                let found = self.read(key)?.inspect(|value| seen.remember(key, value)).is_some();
                self.seen = seen;
                let value = if found { self.value()? } else { None };
                Ok(value.map_or(Reply::Missing, |value| Reply::Versioned(value, cell::version(value))))
            }
            Op::Cas { key, version, value } => {
                self.check(op, key, value.len())?;
                self.cas(key, version, value)
            }
            Op::Tally { records, fields, by } => self.tally(op, records, fields, by),
            Op::ReadTally(key) => {
                self.check(op, key, 0)?;
                self.read_tally(key)
            }
            Op::Scan { .. } => Err(Fault::Unsupported(format!(
                "{NAME} has no {}: its rows have the order of the hashes of their keys",
                op.name()
            ))),
        }
    }

    /// Each op commits itself.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn commands(&self) -> Option<u64> {
        Some(self.commands)
    }
}

impl<'c> Asking<'c> {
    pub fn new(store: &'c Cassandra, statements: Arc<Statements>) -> Asking<'c> {
        Asking {
            store,
            statements,
            answer: None,
            seen: VersionSeen::default(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
            commands: 0,
        }
    }

    fn check(&self, op: &Op<'_>, key: &[u8], value_bytes: usize) -> Result<(), Fault> {
        check_key(NAME, op.name(), key, KEY_BYTES_MAX)?;
        if value_bytes <= VALUE_BYTES_MAX {
            return Ok(());
        }
        let op = op.name();
        let words = format!("{NAME} takes values of at most {VALUE_BYTES_MAX} bytes: this {op} has {value_bytes}");
        Err(Fault::Unsupported(words))
    }

    fn execute(
        &mut self,
        which: fn(&Statements) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Fault> {
        self.commands += 1;
        self.store.execute(which(&self.statements), values)
    }

    /// Keeps the rows that a statement answers, to be lent from.
    fn select(
        &mut self,
        which: fn(&Statements) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<&QueryRowsResult, Fault> {
        let rows = self.execute(which, values)?.into_rows_result().map_err(garbled)?;
        Ok(self.answer.insert(rows))
    }

    /// Carries out what stands under a condition; whether the condition held.
    /// <https://cassandra.apache.org/doc/5.0/cassandra/developing/cql/dml.html#upsert-statement>
    fn apply(
        &mut self,
        which: fn(&Statements) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<bool, Fault> {
        let rows = self.execute(which, values)?.into_rows_result().map_err(garbled)?;
        let row = rows.first_row::<Row>().map_err(garbled)?;
        match row.columns.first() {
            Some(Some(CqlValue::Boolean(applied))) => Ok(*applied),
            other => Err(garbled(format!("a conditional statement answered {other:?}"))),
        }
    }

    fn read(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        self.select(|statements| &statements.get, (key,))?;
        self.value()
    }

    /// The value in the last answer.
    fn value(&self) -> Result<Option<&[u8]>, Fault> {
        let Some(answer) = &self.answer else { return Ok(None) };
        Ok(answer.maybe_first_row::<(&[u8],)>().map_err(garbled)?.map(|(value,)| value))
    }

    fn increment(&mut self, key: &[u8], by: i64) -> Result<Reply<'static>, Fault> {
        self.execute(|statements| &statements.add, (Counter(by), key))?;
        let number = self.number(key)?.ok_or_else(|| garbled("a counter that was added to is not there"))?;
        // Its counters wrap: what went past the end is taken back.
        if cell::went_around(number, by) {
            self.execute(|statements| &statements.add, (Counter(by.wrapping_neg()), key))?;
            return Err(cell::beyond(NAME, key));
        }
        Ok(Reply::Number(number))
    }

    fn number(&mut self, key: &[u8]) -> Result<Option<i64>, Fault> {
        number_in(self.select(|statements| &statements.number, (key,))?)
    }

    /// A key may be a value's, a counter's or a tally's. Only for values does Cassandra say whether there was one.
    ///
    /// A deleted counter lives on in the server's counter cache, and the next addition would begin there: so it is
    /// taken back to zero first.
    fn delete(&mut self, key: &[u8]) -> Result<Reply<'static>, Fault> {
        if self.apply(|statements| &statements.delete, (key,))? {
            return Ok(Reply::Done);
        }
        if let Some(number) = self.number(key)? {
            self.execute(|statements| &statements.add, (Counter(number.wrapping_neg()), key))?;
            self.execute(|statements| &statements.delete_number, (key,))?;
            return Ok(Reply::Done);
        }
        let counted = self.counted(key)?;
        if counted.is_empty() {
            return Ok(Reply::Missing);
        }
        for (field, number) in counted {
            self.execute(|statements| &statements.tally, (Counter(number.wrapping_neg()), key, field))?;
        }
        self.execute(|statements| &statements.delete_tally, (key,))?;
        Ok(Reply::Done)
    }

    fn counted(&mut self, record: &[u8]) -> Result<Vec<(Vec<u8>, i64)>, Fault> {
        let rows = self.select(|statements| &statements.read_tally, (record,))?.rows::<(Vec<u8>, Counter)>();
        let rows = rows.map_err(garbled)?.map(|row| row.map(|(field, number)| (field, number.0)));
        rows.collect::<Result<_, _>>().map_err(garbled)
    }

    /// Sets the value if the row still has the one that the version was made of.
    fn cas(&mut self, key: &[u8], version: u64, value: &[u8]) -> Result<Reply<'static>, Fault> {
        let mut seen = std::mem::take(&mut self.seen);
        if seen.value(key, version).is_none() {
            match self.read(key)? {
                Some(found) if cell::version(found) == version => seen.remember(key, found),
                _ => {
                    self.seen = seen;
                    return Ok(Reply::Conflict);
                }
            }
        }
        let old = seen.value(key, version).expect("it was just looked at");
        let applied = self.apply(|statements| &statements.set_if_same, (value, key, old))?;
        self.seen = seen;
        Ok(if applied { Reply::Done } else { Reply::Conflict })
    }

    fn set_many(&mut self, op: &Op<'_>, pairs: Pairs<'_>) -> Result<Reply<'static>, Fault> {
        pairs.iter().try_for_each(|(key, value)| self.check(op, key, value.len()))?;
        let statement = Arc::new(self.statements.set.clone());
        let pairs = pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
        self.all(pairs, &statement, |_, _| Ok(()))?;
        Ok(Reply::Done)
    }

    fn add_many(&mut self, op: &Op<'_>, sums: Sums<'_>) -> Result<Reply<'static>, Fault> {
        sums.keys().iter().try_for_each(|key| self.check(op, key, 0))?;
        let statement = Arc::new(self.statements.add.clone());
        let sums = sums.iter().map(|(key, by)| (Counter(by), key.to_vec()));
        self.all(sums, &statement, |_, _| Ok(()))?;
        Ok(Reply::Done)
    }

    fn get_many(&mut self, op: &Op<'_>, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        keys.iter().try_for_each(|key| self.check(op, key, 0))?;
        let statement = Arc::new(self.statements.get.clone());
        let mut values = std::mem::take(&mut self.values);
        values.reset(keys.len());
        self.all(keys.iter().map(|key| (key.to_vec(),)), &statement, |place, answer| {
            let rows = answer.into_rows_result().map_err(garbled)?;
            if let Some((value,)) = rows.maybe_first_row::<(&[u8],)>().map_err(garbled)? {
                values.put(place, value);
            }
            Ok(())
        })?;
        self.values = values;
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, op: &Op<'_>, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        keys.iter().try_for_each(|key| self.check(op, key, 0))?;
        let statement = Arc::new(self.statements.number.clone());
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(keys.len(), None);
        self.all(keys.iter().map(|key| (key.to_vec(),)), &statement, |place, answer| {
            numbers[place] = number_in(&answer.into_rows_result().map_err(garbled)?)?;
            Ok(())
        })?;
        self.numbers = numbers;
        Ok(Reply::Numbers(&self.numbers))
    }

    /// Executes a statement with each of the values, many at a time, and tells each answer and whose it is.
    fn all<V: SerializeRow + Send + Sync + 'static>(
        &mut self,
        values: impl ExactSizeIterator<Item = V>,
        statement: &Arc<PreparedStatement>,
        tell: impl FnMut(usize, QueryResult) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.commands += values.len() as u64;
        let ask = |driver: Arc<Driver>, values: V| {
            let statement = statement.clone();
            async move { driver.execute_unpaged(&statement, values).await }
        };
        self.at_once(values, ask, tell)
    }

    fn at_once<V, A>(
        &self,
        values: impl Iterator<Item = V>,
        ask: impl Fn(Arc<Driver>, V) -> A,
        mut tell: impl FnMut(usize, QueryResult) -> Result<(), Fault>,
    ) -> Result<(), Fault>
    where
        A: Future<Output = Result<QueryResult, ExecutionError>> + Send + 'static,
    {
        let mut hear = |answer: Result<(usize, Result<QueryResult, ExecutionError>), tokio::task::JoinError>| {
            let (place, answer) = answer.map_err(garbled)?;
            tell(place, answer.map_err(fault)?)
        };
        self.store.runtime.block_on(async {
            let mut under_way = JoinSet::new();
            for (place, values) in values.enumerate() {
                if under_way.len() == AT_ONCE
                    && let Some(answer) = under_way.join_next().await
                {
                    hear(answer)?;
                }
                let asked = ask(self.store.driver.clone(), values);
                under_way.spawn(async move { (place, asked.await) });
            }
            while let Some(answer) = under_way.join_next().await {
                hear(answer)?;
            }
            Ok(())
        })
    }

    /// One batch for each record, which is one partition: its additions are one change there.
    fn tally(&mut self, op: &Op<'_>, records: Keys<'_>, fields: Keys<'_>, by: i64) -> Result<Reply<'static>, Fault> {
        records.iter().try_for_each(|record| self.check(op, record, 0))?;
        fields.iter().try_for_each(|field| check_key(NAME, op.name(), field, KEY_BYTES_MAX))?;
        let batches = batches(fields, &self.statements.tally);
        self.commands += (records.len() * batches.len()) as u64;
        let of_record = |record: &[u8]| {
            let record = record.to_vec();
            batches.iter().map(move |(batch, fields)| (batch.clone(), fields.clone(), record.clone()))
        };
        let asked: Vec<_> = records.iter().flat_map(of_record).collect();
        let ask = |driver: Arc<Driver>, (batch, fields, record): (Arc<Batch>, Arc<Vec<Vec<u8>>>, Vec<u8>)| async move {
            let by = Counter(by);
            let values: Vec<_> = fields.iter().map(|field| (by, &record, field)).collect();
            driver.batch(&batch, values).await
        };
        self.at_once(asked.into_iter(), ask, |_, _| Ok(()))?;
        Ok(Reply::Done)
    }

    fn read_tally(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.0.clear();
        rows.1.clear();
        let answer = self.select(|statements| &statements.read_tally, (key,))?;
        for row in answer.rows::<(&[u8], Counter)>().map_err(garbled)? {
            let (field, number) = row.map_err(garbled)?;
            rows.0.push(field);
            rows.1.push(itoa::Buffer::new().format(number.0).as_bytes());
        }
        self.rows = rows;
        let (keys, values) = (self.rows.0.lend(), self.rows.1.lend());
        Ok(if keys.is_empty() { Reply::Missing } else { Reply::Rows(Pairs { keys, values }) })
    }
}

/// A batch, and the fields that its statements add to.
type BatchOf = (Arc<Batch>, Arc<Vec<Vec<u8>>>);

/// The fields in batches that a server takes, each with as many statements as it has fields.
fn batches(fields: Keys<'_>, statement: &PreparedStatement) -> Vec<BatchOf> {
    let mut groups: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut bytes = BATCH_BYTES;
    for field in fields.iter() {
        bytes += field.len() + ADDITION_BYTES;
        match groups.last_mut() {
            Some(group) if bytes <= BATCH_BYTES => group.push(field.to_vec()),
            _ => {
                bytes = field.len() + ADDITION_BYTES;
                groups.push(vec![field.to_vec()]);
            }
        }
    }
    let batch_of = |group: Vec<Vec<u8>>| {
        let mut batch = Batch::new(BatchType::Counter);
        group.iter().for_each(|_| batch.append_statement(statement.clone()));
        (Arc::new(batch), Arc::new(group))
    };
    groups.into_iter().map(batch_of).collect()
}

fn number_in(rows: &QueryRowsResult) -> Result<Option<i64>, Fault> {
    // A counter that was deleted may leave a row without a number.
    let row = rows.maybe_first_row::<(Option<Counter>,)>().map_err(garbled)?;
    Ok(row.and_then(|(number,)| number).map(|number| number.0))
}
