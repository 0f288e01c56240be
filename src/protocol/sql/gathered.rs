//! The rows of the answer to an op, gathered as they come, and what they say. It knows no protocol: a row is read
//! column by column.

use super::{AskedKeys, no_counter};
use crate::model::op::{KeyList, Pairs, Reply, ValueList};

/// A row. Each call reads its next column.
pub(in crate::protocol) trait Columns<'b> {
    /// Bytes, or nothing in the column for NULL. Nothing at all where there is no such column.
    fn bytes(&mut self) -> Option<Option<&'b [u8]>>;
    /// The same of a number of eight bytes.
    fn number(&mut self) -> Option<Option<i64>>;
    /// Whether all of them were read.
    fn is_read(&self) -> bool;
}

/// What the rows of an op's answer have in their columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::protocol) enum RowsOf {
    /// The bytes of one record.
    Value,
    /// A value, NULL where the record is a counter, and its version.
    Version,
    /// A counter, NULL where the record is a value.
    Number,
    /// One of so many keys, and the bytes of its record.
    Values(usize),
    /// One of so many keys, and its counter, NULL where the record is a value.
    Numbers(usize),
    /// A field and its count.
    Fields,
    /// A key and the bytes of its record.
    Records,
}

/// What has come of the answer to the oldest op, and the keys of all ops that are not answered yet.
#[derive(Default)]
pub(in crate::protocol) struct Gathered {
    asked: AskedKeys,
    so_far: SoFar,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

#[derive(Clone, Copy, Default)]
struct SoFar {
    rows: usize,
    /// The number of the only row; none for NULL.
    number: Option<i64>,
    /// The only row has NULL in place of a value.
    is_null: bool,
    /// The place of a key whose record is no counter.
    no_counter: Option<usize>,
}

impl Gathered {
    /// An op asks for a key, about which its answer speaks.
    pub(in crate::protocol) fn ask(&mut self, key: &[u8]) {
        self.asked.push(key);
    }

    /// Rows that have come.
    pub(in crate::protocol) fn rows(&self) -> usize {
        self.so_far.rows
    }

    /// The number of the only row; none for NULL, and where none has come.
    pub(in crate::protocol) fn number(&self) -> Option<i64> {
        self.so_far.number
    }

    /// Keeps what a row says. Nothing where it is no row of such an answer.
    pub(in crate::protocol) fn absorb<'b>(&mut self, of: RowsOf, mut row: impl Columns<'b>) -> Option<()> {
        let is_first = self.so_far.rows == 0;
        match of {
            RowsOf::Value if is_first => {
                self.values.clear();
                self.values.push(Some(row.bytes()??));
            }
            RowsOf::Version if is_first => {
                let value = row.bytes()?;
                self.values.clear();
                self.values.push(value);
                (self.so_far.is_null, self.so_far.number) = (value.is_none(), row.number()?);
            }
            RowsOf::Number if is_first => self.so_far.number = row.number()?,
            RowsOf::Values(_) => self.absorb_value(of, row.bytes()??, row.bytes()??)?,
            RowsOf::Numbers(_) => self.absorb_number(of, row.bytes()??, row.number()?)?,
            RowsOf::Fields => {
                let (field, count) = (row.bytes()??, row.number()??);
                self.push(field, itoa::Buffer::new().format(count).as_bytes());
            }
            RowsOf::Records => self.push(row.bytes()??, row.bytes()??),
            RowsOf::Value | RowsOf::Version | RowsOf::Number => return None,
        }
        self.so_far.rows += 1;
        row.is_read().then_some(())
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        if self.so_far.rows == 0 {
            self.rows.0.clear();
            self.rows.1.clear();
        }
        self.rows.0.push(key);
        self.rows.1.push(value);
    }

    /// Of one of the keys that were asked for, which come in any order, and each once.
    fn absorb_value(&mut self, of: RowsOf, key: &[u8], value: &[u8]) -> Option<()> {
        self.begin(of);
        let places = self.asked.places(key);
        if self.values.lend().get(*places.first()?).is_some() {
            return None;
        }
        places.iter().for_each(|&place| self.values.put(place, value));
        Some(())
    }

    fn absorb_number(&mut self, of: RowsOf, key: &[u8], number: Option<i64>) -> Option<()> {
        self.begin(of);
        let places = self.asked.places(key);
        let first = *places.first()?;
        if self.numbers[first].is_some() {
            return None;
        }
        match number {
            None => self.so_far.no_counter = self.so_far.no_counter.or(Some(first)),
            number => places.iter().for_each(|&place| self.numbers[place] = number),
        }
        Some(())
    }

    /// Makes room for as many answers as there are keys, before the first row.
    fn begin(&mut self, of: RowsOf) {
        match of {
            _ if self.so_far.rows > 0 => {}
            RowsOf::Values(keys) => {
                self.asked.sort(keys);
                self.values.reset(keys);
            }
            RowsOf::Numbers(keys) => {
                self.asked.sort(keys);
                self.numbers.clear();
                self.numbers.resize(keys, None);
            }
            _ => {}
        }
    }

    /// Why what has come is no answer to the op, where it is none. `store` is what messages call it.
    pub(in crate::protocol) fn refusal(&self, of: RowsOf, store: &str) -> Option<String> {
        let SoFar { rows, number, is_null, no_counter } = self.so_far;
        match of {
            RowsOf::Version if is_null => Some(format!("{store} has no get-version of a counter")),
            RowsOf::Number if rows > 0 && number.is_none() => Some(self.no_counter(store)),
            RowsOf::Numbers(_) if no_counter.is_some() => Some(self.no_counter(store)),
            _ => None,
        }
    }

    /// The words of a refusal: the record of a key of the oldest op is no counter.
    pub(in crate::protocol) fn no_counter(&self, store: &str) -> String {
        no_counter(store, self.asked.get(self.so_far.no_counter.unwrap_or(0)))
    }

    /// Forgets what has come, and the keys of the op, which are so many.
    pub(in crate::protocol) fn end(&mut self, keys: usize) {
        self.asked.pop(keys);
        self.so_far = SoFar::default();
    }

    /// What all of the rows say to the op, which has asked for so many keys.
    pub(in crate::protocol) fn answer(&mut self, of: RowsOf, keys: usize) -> Reply<'_> {
        self.begin(of);
        let SoFar { rows, number, .. } = self.so_far;
        self.end(keys);
        let number = number.unwrap_or(0);
        let value = || self.values.lend().get(0).unwrap_or_default();
        match of {
            RowsOf::Value | RowsOf::Version | RowsOf::Number | RowsOf::Fields if rows == 0 => Reply::Missing,
            RowsOf::Records if rows == 0 => Reply::Rows(Pairs::default()),
            RowsOf::Value => Reply::Value(value()),
            RowsOf::Version => Reply::Versioned(value(), number as u64),
            RowsOf::Number => Reply::Number(number),
            RowsOf::Values(_) => Reply::Values(self.values.lend()),
            RowsOf::Numbers(_) => Reply::Numbers(&self.numbers),
            RowsOf::Fields | RowsOf::Records => {
                Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() })
            }
        }
    }
}
