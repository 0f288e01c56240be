//! The records of `ram`: a table by keys that are kept in the record where they are short, and the cells that it holds.
//! It knows no session and no lock.

use std::hash::{BuildHasher, Hasher};
use std::io::Write;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::words::op::{Fault, readable};

/// The records of a shard, hashed by ourselves so that every op hashes its key once.
#[derive(Default)]
pub struct Map {
    pub records: HashTable<Record>,
    /// Rises with every change, so that no two states of a record have the same version, not even across a delete.
    changes: u64,
}

pub struct Record {
    name: Name,
    pub version: u64,
    pub cell: Cell,
}

impl Map {
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Record> {
        self.records.find(hash, |record| record.name.is(key))
    }

    #[inline]
    fn entry(&mut self, hash: u64, key: &[u8]) -> Entry<'_, Record> {
        self.records.entry(hash, |record| record.name.is(key), |record| record.name.hash())
    }

    #[inline]
    pub fn add(&mut self, hash: u64, key: &[u8], by: i64) -> Result<i64, Fault> {
        self.changes += 1;
        let version = self.changes;
        match self.entry(hash, key) {
            Entry::Occupied(mut found) => {
                let record = found.get_mut();
                record.version = version;
                record.cell.add(key, by)
            }
            Entry::Vacant(place) => {
                place.insert(Record { name: Name::new(key), version, cell: Cell::Number(by) });
                Ok(by)
            }
        }
    }

    #[inline]
    pub fn set(&mut self, hash: u64, key: &[u8], value: &[u8]) {
        self.changes += 1;
        let version = self.changes;
        match self.entry(hash, key) {
            Entry::Occupied(mut found) => {
                let record = found.get_mut();
                record.cell.set(value);
                record.version = version;
            }
            Entry::Vacant(place) => {
                place.insert(Record { name: Name::new(key), version, cell: Cell::Bytes(value.to_vec()) });
            }
        }
    }

    pub fn put_new(&mut self, hash: u64, key: &[u8], value: &[u8]) -> bool {
        self.changes += 1;
        let version = self.changes;
        match self.entry(hash, key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(Record { name: Name::new(key), version, cell: Cell::Bytes(value.to_vec()) });
                true
            }
        }
    }

    pub fn replace(&mut self, hash: u64, key: &[u8], version: u64, value: &[u8]) -> bool {
        self.changes += 1;
        let changes = self.changes;
        let found = self.records.find_mut(hash, |record| record.name.is(key));
        let Some(record) = found.filter(|record| record.version == version) else { return false };
        record.cell.set(value);
        record.version = changes;
        true
    }

    pub fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        match self.records.find_entry(hash, |record| record.name.is(key)) {
            Ok(found) => {
                found.remove();
                true
            }
            Err(_) => false,
        }
    }

    #[inline]
    pub fn number(&self, hash: u64, key: &[u8]) -> Result<Option<i64>, Fault> {
        self.find(hash, key).map(|record| record.cell.number(key)).transpose()
    }

    pub fn counts(&mut self, hash: u64, key: &[u8]) -> Result<&mut HashTable<(Name, i64)>, Fault> {
        self.changes += 1;
        let version = self.changes;
        let new = || Record { name: Name::new(key), version, cell: Cell::Counts(Box::default()) };
        let record = self.entry(hash, key).or_insert_with(new).into_mut();
        record.version = version;
        match &mut record.cell {
            Cell::Counts(counts) => Ok(counts),
            _ => Err(not(key, "tally")),
        }
    }
}

/// What a record holds.
pub enum Cell {
    Number(i64),
    Bytes(Vec<u8>),
    Counts(Box<HashTable<(Name, i64)>>),
}

impl Cell {
    /// Takes a value into the memory of the old one if it fits; else into new memory with an eighth to spare, because
    /// values that have outgrown theirs tend to go on growing.
    #[inline]
    fn set(&mut self, value: &[u8]) {
        match self {
            Cell::Bytes(bytes) if bytes.capacity() >= value.len() => {
                bytes.clear();
                bytes.extend_from_slice(value);
            }
            Cell::Bytes(bytes) => {
                // Not `reserve`: growing in place would copy the old value, which nobody wants any more.
                *bytes = Vec::new();
                bytes.reserve_exact(value.len() + value.len() / 8);
                bytes.extend_from_slice(value);
            }
            cell => *cell = Cell::Bytes(value.to_vec()),
        }
    }

    #[inline]
    fn add(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        if let Cell::Number(number) = self {
            *number = sum(key, *number, by)?;
            return Ok(*number);
        }
        let number = sum(key, self.number(key)?, by)?;
        *self = Cell::Number(number);
        Ok(number)
    }

    /// The value as `Get` lends it; a counter is written to `text` in decimal.
    #[inline]
    pub fn text<'s>(&'s self, key: &[u8], text: &'s mut Vec<u8>) -> Result<&'s [u8], Fault> {
        match self {
            Cell::Bytes(bytes) => Ok(bytes),
            Cell::Number(number) => Ok(decimal(*number, text)),
            Cell::Counts(_) => Err(not(key, "value")),
        }
    }

    /// The cell as a counter: its number, or the number that its bytes spell.
    #[inline]
    fn number(&self, key: &[u8]) -> Result<i64, Fault> {
        match self {
            Cell::Number(number) => Ok(*number),
            Cell::Bytes(bytes) => {
                std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| not(key, "number"))
            }
            Cell::Counts(_) => Err(not(key, "number")),
        }
    }
}

#[cold]
pub fn not(key: &[u8], what: &str) -> Fault {
    Fault::Refused(format!("ram: the record of key '{}' is no {what}", readable(key, 80)))
}

#[inline]
pub fn sum(key: &[u8], number: i64, by: i64) -> Result<i64, Fault> {
    number.checked_add(by).ok_or_else(|| overflow(key))
}

#[cold]
fn overflow(key: &[u8]) -> Fault {
    Fault::Refused(format!("ram: the counter of key '{}' would leave 64 bits", readable(key, 80)))
}

#[inline]
pub fn decimal(number: i64, text: &mut Vec<u8>) -> &[u8] {
    text.clear();
    write!(text, "{number}").expect("a vector takes any text");
    text
}

/// A key or field: kept in the record itself where it is short, as terms are, which spares a look into other memory.
pub enum Name {
    Short { len: u8, bytes: [u8; Name::SHORT] },
    Long(Box<[u8]>),
}

impl Name {
    /// What fits beside a tag and a length into the 24 bytes that a vector would take.
    const SHORT: usize = 22;

    #[inline]
    pub fn new(key: &[u8]) -> Name {
        if key.len() > Name::SHORT {
            return Name::Long(key.into());
        }
        let mut bytes = [0; Name::SHORT];
        bytes[..key.len()].copy_from_slice(key);
        Name::Short { len: key.len() as u8, bytes }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Name::Short { len, bytes } => &bytes[..*len as usize],
            Name::Long(bytes) => bytes,
        }
    }

    #[inline]
    pub fn is(&self, key: &[u8]) -> bool {
        self.bytes() == key
    }

    #[inline]
    pub fn hash(&self) -> u64 {
        hash(self.bytes())
    }
}

/// The hash of a key. A fixed seed: the same job gives the same table every time.
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    hasher.write(key);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fits_a_cache_line() {
        assert_eq!(size_of::<Name>(), 24);
        assert!(size_of::<Record>() <= 64);
    }

    #[test]
    fn a_set_keeps_the_memory_of_the_old_value() {
        let mut cell = Cell::Bytes(b"a long value".to_vec());
        let Cell::Bytes(bytes) = &cell else { unreachable!() };
        let place = bytes.as_ptr();
        cell.set(b"short");
        let Cell::Bytes(bytes) = &cell else { unreachable!() };
        assert_eq!((bytes.as_slice(), bytes.as_ptr()), (b"short".as_slice(), place));
    }
}
