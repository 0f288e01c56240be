//! One client's way to a MongoDB: each op as the commands that it takes.

use std::future::IntoFuture;

use mongodb::bson::raw::RawBsonRef;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc, rawdoc};

use super::{Mongo, documents, fault, within};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, ValueList, readable};
use crate::stores::version_seen::VersionSeen;
use crate::stores::{Session, cell};
use documents::{
    RECORD_BYTES, RECORDS, Writes, add, additions, field_of, id, key_in, number, number_in, number_of, put_value,
    record, replace, replace_if, tally, words,
};

/// What the server answers where a key is there already.
const DUPLICATE_KEY: i32 = 11_000;

/// One client's session. The driver's pool has a connection for each.
pub struct Asking<'s> {
    store: &'s Mongo,
    /// Whether a change of a record may undo another client's.
    loses_changes: bool,
    value: Vec<u8>,
    seen: VersionSeen,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
    commands: u64,
}

impl Session for Asking<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Increment { .. } | Op::Add { .. } | Op::AddMany(_) | Op::Cas { .. } | Op::Tally { .. }
                if self.loses_changes =>
            {
                let (name, op, clients) = (self.store.name, op.name(), self.store.launch.clients);
                Err(Fault::Unsupported(format!(
                    "{name} has no {op} for {clients} clients at a time: this server, FerretDB 1, reads a record and \
                     writes it in another transaction, and loses what came in between"
                )))
            }
            Op::Get(key) => {
                let found = self.read(key)?;
                Ok(if found { Reply::Value(&self.value) } else { Reply::Missing })
            }
            Op::GetMany(keys) => self.get_many(keys),
            Op::Set { key, value, ttl_s: None } => {
                self.check_size(op, key, value)?;
                self.update(Writes::of(replace(key, value))).map(|_| Reply::Done)
            }
            Op::Set { ttl_s: Some(_), .. } => Err(Fault::Unsupported(format!(
                "{} has no {} that ends in time: it removes what has expired once a minute",
                self.store.name,
                op.name()
            ))),
            Op::SetMany(pairs) => self.set_many(op, pairs),
            Op::SetIfAbsent { key, value } => {
                self.check_size(op, key, value)?;
                self.insert(key, value)
            }
            Op::Delete(key) => self.delete(key),
            Op::Increment { key, by } => self.increment(key, by),
            Op::Add { key, by } => self.update(Writes::of(add(key, by))).map(|_| Reply::Done),
            Op::AddMany(sums) => {
                let mut writes = Writes::default();
                for (key, by) in sums.iter() {
                    self.gather(&mut writes, add(key, by))?;
                }
                self.finish(writes)
            }
            Op::Number(key) => match self.find(key)? {
                Some(found) => number_in(&found).map(Reply::Number).ok_or_else(|| self.store.no_counter(key)),
                None => Ok(Reply::Missing),
            },
            Op::NumberMany(keys) => self.number_many(keys),
            Op::GetVersion(key) => {
                if !self.read(key)? {
                    return Ok(Reply::Missing);
                }
                self.seen.remember(key, &self.value);
                Ok(Reply::Versioned(&self.value, cell::version(&self.value)))
            }
            Op::Cas { key, version, value } => {
                self.check_size(op, key, value)?;
                self.cas(key, version, value)
            }
            Op::Tally { records, fields, by } => self.tally(records, fields, by),
            Op::ReadTally(key) => self.read_tally(key),
            Op::Scan { from, limit } => self.scan(from, limit),
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

impl<'m> Asking<'m> {
    pub fn new(store: &'m Mongo, loses_changes: bool) -> Asking<'m> {
        Asking {
            store,
            loses_changes,
            value: Vec::new(),
            seen: VersionSeen::default(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
            commands: 0,
        }
    }

    fn check_size(&self, op: &Op<'_>, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let bytes = key.len() + value.len();
        if bytes <= RECORD_BYTES {
            return Ok(());
        }
        let (name, op) = (self.store.name, op.name());
        Err(Fault::Unsupported(format!("{name} takes records of at most {RECORD_BYTES} bytes: this {op} has {bytes}")))
    }

    fn write(&mut self, command: RawDocumentBuf) -> Result<Document, Fault> {
        self.commands += 1;
        self.store.write(command)
    }

    /// How many records were there to be changed.
    fn update(&mut self, writes: Writes) -> Result<i64, Fault> {
        let answer = self.write(rawdoc! { "update": RECORDS, "updates": writes.into_list(), "ordered": false })?;
        match answer.get_array("writeErrors").ok().and_then(|errors| errors.first()).and_then(Bson::as_document) {
            Some(error) => Err(Fault::Refused(format!("{}: {}", self.store.name, words(error)))),
            None => number(&answer, "n").ok_or_else(|| self.strange("update", &answer)),
        }
    }

    fn strange(&self, asked: &str, answer: &Document) -> Fault {
        let answer = readable(answer.to_string().as_bytes(), 120);
        Fault::Garbled(format!("{}: {asked} answered {answer}", self.store.name))
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<RawDocumentBuf>, Fault> {
        self.commands += 1;
        self.store.wait(self.store.records.find_one(doc! { "_id": id(key) }))
    }

    /// Puts the value of a key in place of what `value` held; false where there is none.
    fn read(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let Some(found) = self.find(key)? else { return Ok(false) };
        self.value.clear();
        put_value(self.store.name, &found, &mut self.value)?;
        Ok(true)
    }

    fn set_many(&mut self, op: &Op<'_>, pairs: Pairs<'_>) -> Result<Reply<'static>, Fault> {
        let mut writes = Writes::default();
        for (key, value) in pairs.iter() {
            self.check_size(op, key, value)?;
            self.gather(&mut writes, replace(key, value))?;
        }
        self.finish(writes)
    }

    /// Adds a write to its command; sends the command first where it is full.
    fn gather(&mut self, writes: &mut Writes, write: RawDocumentBuf) -> Result<(), Fault> {
        if writes.is_full_for(&write) {
            self.update(std::mem::take(writes))?;
        }
        writes.push(write);
        Ok(())
    }

    fn finish(&mut self, writes: Writes) -> Result<Reply<'static>, Fault> {
        if !writes.is_empty() {
            self.update(writes)?;
        }
        Ok(Reply::Done)
    }

    fn tally(&mut self, records: Keys<'_>, fields: Keys<'_>, by: i64) -> Result<Reply<'static>, Fault> {
        if fields.is_empty() {
            return Ok(Reply::Done);
        }
        let additions = additions(fields, by)?;
        let mut writes = Writes::default();
        for record in records.iter() {
            self.gather(&mut writes, tally(record, &additions))?;
        }
        self.finish(writes)
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Reply<'static>, Fault> {
        let list = Writes::of(record(key, value)).into_list();
        let answer = self.write(rawdoc! { "insert": RECORDS, "documents": list })?;
        match answer.get_array("writeErrors").ok().and_then(|errors| errors.first()).and_then(Bson::as_document) {
            Some(error) if number(error, "code") == Some(i64::from(DUPLICATE_KEY)) => Ok(Reply::Conflict),
            Some(error) => Err(Fault::Refused(format!("{}: {}", self.store.name, words(error)))),
            None => Ok(Reply::Done),
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<Reply<'static>, Fault> {
        let list = Writes::of(rawdoc! { "q": { "_id": id(key) }, "limit": 1 }).into_list();
        let answer = self.write(rawdoc! { "delete": RECORDS, "deletes": list })?;
        match number(&answer, "n") {
            Some(0) => Ok(Reply::Missing),
            Some(_) => Ok(Reply::Done),
            None => Err(self.strange("delete", &answer)),
        }
    }

    /// Adds and answers the sum in one go. A value that is no number makes the server refuse.
    fn increment(&mut self, key: &[u8], by: i64) -> Result<Reply<'static>, Fault> {
        let answer = self.write(rawdoc! {
            "findAndModify": RECORDS,
            "query": { "_id": id(key) },
            "update": { "$inc": { "v": by } },
            "upsert": true,
            "new": true,
        })?;
        let sum = answer.get_document("value").ok().and_then(|record| number(record, "v"));
        sum.map(Reply::Number).ok_or_else(|| self.strange("findAndModify", &answer))
    }

    /// Sets the value if the record still has the one that the version was made of.
    fn cas(&mut self, key: &[u8], version: u64, value: &[u8]) -> Result<Reply<'static>, Fault> {
        let write = match self.seen.value(key, version).map(|old| replace_if(key, old, value)) {
            Some(write) => write,
            None if self.read(key)? && cell::version(&self.value) == version => replace_if(key, &self.value, value),
            None => return Ok(Reply::Conflict),
        };
        let changed = self.update(Writes::of(write))?;
        Ok(if changed == 0 { Reply::Conflict } else { Reply::Done })
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let (mut values, name) = (std::mem::take(&mut self.values), self.store.name);
        values.reset(keys.len());
        let mut value = Vec::new();
        self.find_many(keys, |place, found| {
            value.clear();
            put_value(name, found, &mut value)?;
            values.put(place, &value);
            Ok(())
        })?;
        self.values = values;
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        let (mut numbers, store) = (std::mem::take(&mut self.numbers), self.store);
        numbers.clear();
        numbers.resize(keys.len(), None);
        self.find_many(keys, |place, found| {
            numbers[place] = Some(number_in(found).ok_or_else(|| store.no_counter(keys.get(place)))?);
            Ok(())
        })?;
        self.numbers = numbers;
        Ok(Reply::Numbers(&self.numbers))
    }

    /// Asks for all of the keys at once, and tells each record to the places of its key.
    fn find_many(
        &mut self,
        keys: Keys<'_>,
        mut tell: impl FnMut(usize, &RawDocument) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut places: Vec<(&[u8], usize)> = keys.iter().enumerate().map(|(place, key)| (key, place)).collect();
        places.sort_unstable();
        let ids: Vec<String> = keys.iter().map(id).collect();
        let mut key = Vec::new();
        self.read_all(doc! { "_id": { "$in": ids } }, None, |found| {
            key.clear();
            key_in(found, &mut key)?;
            let first = places.partition_point(|(other, _)| *other < key.as_slice());
            let same = places[first..].iter().take_while(|(other, _)| *other == key.as_slice());
            same.map(|(_, place)| *place).try_for_each(|place| tell(place, found))
        })
    }

    fn scan(&mut self, from: &[u8], limit: u32) -> Result<Reply<'_>, Fault> {
        let (mut rows, name) = (std::mem::take(&mut self.rows), self.store.name);
        rows.0.clear();
        rows.1.clear();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        // For the server a limit of 0 is none at all.
        if limit > 0 {
            self.read_all(doc! { "_id": { "$gte": id(from) } }, Some(i64::from(limit)), |found| {
                key.clear();
                value.clear();
                key_in(found, &mut key)?;
                put_value(name, found, &mut value)?;
                rows.0.push(&key);
                rows.1.push(&value);
                Ok(())
            })?;
        }
        self.rows = rows;
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
    }

    /// Tells every record that a filter lets pass; with a limit, in the order of their keys.
    fn read_all(
        &mut self,
        filter: Document,
        limit: Option<i64>,
        mut tell: impl FnMut(&RawDocument) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (store, patience) = (self.store, self.store.launch.patience);
        let mut find = store.records.find(filter);
        if let Some(limit) = limit {
            find = find.sort(doc! { "_id": 1 }).limit(limit);
        }
        self.commands += 1;
        let failed = |error| fault(store.name, error);
        store.runtime.block_on(async {
            let mut cursor = within(patience, find.into_future()).await?.map_err(failed)?;
            loop {
                // The cursor goes to the server again where what it holds is used up.
                self.commands += u64::from(!cursor.has_next());
                if !within(patience, cursor.advance()).await?.map_err(failed)? {
                    return Ok(());
                }
                tell(cursor.current())?;
            }
        })
    }

    fn read_tally(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        let Some(found) = self.find(key)? else { return Ok(Reply::Missing) };
        let strange = |error: mongodb::bson::error::Error| Fault::Garbled(format!("{}: {error}", self.store.name));
        let Some(RawBsonRef::Document(fields)) = found.get("t").map_err(strange)? else {
            let key = readable(key, 80);
            return Err(Fault::Refused(format!("{}: the record of key '{key}' is no tally", self.store.name)));
        };
        self.rows.0.clear();
        self.rows.1.clear();
        for element in fields {
            let (name, count) = element.map_err(strange)?;
            let count = number_of(count).ok_or_else(|| Fault::Garbled(format!("{}: {count:?}", self.store.name)))?;
            field_of(name.as_str(), &mut self.value)?;
            self.rows.0.push(&self.value);
            self.rows.1.push(itoa::Buffer::new().format(count).as_bytes());
        }
        Ok(Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() }))
    }
}
