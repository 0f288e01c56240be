//! The records of `ram`: values, counters and tallies by their keys. It must not know of sessions and locks.

mod slab;
mod table;

use std::hash::{BuildHasher, Hasher};
use std::io::Write;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::model::op::{Fault, readable};
use slab::Slab;
use table::{Entry, Held, Table};

/// The records of a shard, hashed by ourselves so that every op hashes its key once.
pub struct Map {
    table: Table,
    values: Slab<Vec<u8>>,
    tallies: Slab<Tally>,
    /// Rises with every change, so that no two states of a record have the same version, not even across a delete.
    changes: u64,
}

/// A cache line's size, on nearly all processors of today.
const LINE_BYTES: usize = 64;
/// So many lines are fetched: by then the processor has seen where reading goes.
const LINES_AHEAD: usize = 64;

/// Fields and their counts.
pub type Tally = HashTable<(FieldName, i64)>;

impl Default for Map {
    fn default() -> Map {
        Map { table: Table::new(hash), values: Slab::default(), tallies: Slab::default(), changes: 0 }
    }
}

impl Map {
    /// Has the place of a key of this hash fetched from memory.
    #[inline]
    pub fn fetch(&self, hash: u64) {
        self.table.fetch(hash);
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// What a record holds, and its version.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<(Cell<'_>, u64)> {
        self.table.find(hash, key).map(|bucket| (self.cell(bucket.held()), bucket.version()))
    }

    #[inline]
    fn cell(&self, held: Held) -> Cell<'_> {
        match held {
            Held::Number(number) => Cell::Number(number),
            Held::Bytes(slot) => Cell::Bytes(self.values.get(slot)),
            Held::Counts(slot) => Cell::Counts(self.tallies.get(slot)),
        }
    }

    #[inline]
    pub fn add(&mut self, hash: u64, key: &[u8], by: i64) -> Result<i64, Fault> {
        self.changes += 1;
        match self.table.entry(hash, key) {
            Entry::Free(place) => {
                self.table.put(place, hash, key, Held::Number(by), self.changes);
                Ok(by)
            }
            Entry::Found(bucket) => {
                bucket.set_version(self.changes);
                let Held::Number(number) = bucket.held() else { return self.add_to_text(hash, key, by) };
                let number = sum(key, number, by)?;
                bucket.hold(Held::Number(number));
                Ok(number)
            }
        }
    }

    /// Makes a counter of bytes that spell a number.
    #[cold]
    fn add_to_text(&mut self, hash: u64, key: &[u8], by: i64) -> Result<i64, Fault> {
        let number = sum(key, self.number(hash, key)?.unwrap_or(0), by)?;
        if let Entry::Found(bucket) = self.table.entry(hash, key) {
            let before = bucket.held();
            bucket.hold(Held::Number(number));
            self.free(before);
        }
        Ok(number)
    }

    #[inline]
    pub fn set(&mut self, hash: u64, key: &[u8], value: &[u8]) {
        self.changes += 1;
        match self.table.entry(hash, key) {
            Entry::Free(place) => {
                let held = Held::Bytes(self.values.put(value.to_vec()));
                self.table.put(place, hash, key, held, self.changes);
            }
            Entry::Found(bucket) => {
                bucket.set_version(self.changes);
                let before = bucket.held();
                if let Held::Bytes(slot) = before {
                    return refill(self.values.get_mut(slot), value);
                }
                bucket.hold(Held::Bytes(self.values.put(value.to_vec())));
                self.free(before);
            }
        }
    }

    pub fn put_new(&mut self, hash: u64, key: &[u8], value: &[u8]) -> bool {
        let is_new = self.table.find(hash, key).is_none();
        if is_new {
            self.set(hash, key, value);
        }
        is_new
    }

    pub fn replace(&mut self, hash: u64, key: &[u8], version: u64, value: &[u8]) -> bool {
        let is_same = self.table.find(hash, key).is_some_and(|bucket| bucket.version() == version);
        if is_same {
            self.set(hash, key, value);
        }
        is_same
    }

    pub fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        let held = self.table.remove(hash, key);
        held.inspect(|held| self.free(*held)).is_some()
    }

    /// Gives back the memory of what no record holds any more.
    fn free(&mut self, held: Held) {
        match held {
            Held::Number(_) => {}
            Held::Bytes(slot) => drop(self.values.take(slot)),
            Held::Counts(slot) => drop(self.tallies.take(slot)),
        }
    }

    #[inline]
    pub fn number(&self, hash: u64, key: &[u8]) -> Result<Option<i64>, Fault> {
        self.find(hash, key).map(|(cell, _)| cell.number(key)).transpose()
    }

    pub fn counts(&mut self, hash: u64, key: &[u8]) -> Result<&mut Tally, Fault> {
        self.changes += 1;
        let slot = match self.table.entry(hash, key) {
            Entry::Found(bucket) => {
                bucket.set_version(self.changes);
                let Held::Counts(slot) = bucket.held() else { return Err(not(key, "tally")) };
                slot
            }
            Entry::Free(place) => {
                let slot = self.tallies.put(Tally::new());
                self.table.put(place, hash, key, Held::Counts(slot), self.changes);
                slot
            }
        };
        Ok(self.tallies.get_mut(slot))
    }
}

/// Has a value's lines fetched at once, for whoever is about to read it: one after another, each comes as late as the
/// processor sees where reading goes.
#[inline]
pub fn fetch(value: &[u8]) {
    value.chunks(LINE_BYTES).take(LINES_AHEAD).for_each(table::prefetch);
}

/// Takes a value into the memory of the old one if it fits; else into new memory with an eighth to spare, because
/// values that have outgrown theirs tend to go on growing.
#[inline]
fn refill(bytes: &mut Vec<u8>, value: &[u8]) {
    if bytes.capacity() < value.len() {
        // Not `reserve`: growing in place would copy the old value, which nobody wants any more.
        *bytes = Vec::new();
        bytes.reserve_exact(value.len() + value.len() / 8);
    }
    bytes.clear();
    bytes.extend_from_slice(value);
}

/// What a record holds.
pub enum Cell<'m> {
    Number(i64),
    Bytes(&'m [u8]),
    Counts(&'m Tally),
}

impl<'m> Cell<'m> {
    /// The value as `Get` lends it; a counter is written to `text` in decimal.
    #[inline]
    pub fn text(self, key: &[u8], text: &'m mut Vec<u8>) -> Result<&'m [u8], Fault> {
        match self {
            Cell::Bytes(bytes) => Ok(bytes),
            Cell::Number(number) => Ok(decimal(number, text)),
            Cell::Counts(_) => Err(not(key, "value")),
        }
    }

    /// The cell as a counter: its number, or the number that its bytes spell.
    #[inline]
    fn number(self, key: &[u8]) -> Result<i64, Fault> {
        match self {
            Cell::Number(number) => Ok(number),
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

/// A field of a tally: kept in the tally's own table where it is short, which spares a look into other memory.
pub enum FieldName {
    Short { len: u8, bytes: [u8; FieldName::SHORT] },
    Long(Box<[u8]>),
}

impl FieldName {
    /// What fits beside a tag and a length into the 24 bytes that a vector would take.
    const SHORT: usize = 22;

    #[inline]
    pub fn new(key: &[u8]) -> FieldName {
        if key.len() > FieldName::SHORT {
            return FieldName::Long(key.into());
        }
        let mut bytes = [0; FieldName::SHORT];
        bytes[..key.len()].copy_from_slice(key);
        FieldName::Short { len: key.len() as u8, bytes }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            FieldName::Short { len, bytes } => &bytes[..*len as usize],
            FieldName::Long(bytes) => bytes,
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
    fn a_field_is_no_larger_than_a_vector() {
        assert_eq!(size_of::<FieldName>(), 24);
    }

    #[test]
    fn a_set_keeps_the_memory_of_the_old_value() {
        let mut bytes = b"a long value".to_vec();
        let place = bytes.as_ptr();
        refill(&mut bytes, b"short");
        assert_eq!((bytes.as_slice(), bytes.as_ptr()), (b"short".as_slice(), place));
    }

    /// A record that changes from one kind into another leaves nothing behind.
    #[test]
    fn what_no_record_holds_is_free() {
        let mut map = Map::default();
        let key = b"a key of more than the bytes that fit into a record of the table";
        let hash = hash(key);
        let left = |map: &Map| (map.values.count(), map.tallies.count());
        map.set(hash, key, b"7");
        assert_eq!(left(&map), (1, 0));
        assert_eq!(map.add(hash, key, 1).unwrap(), 8);
        assert_eq!(left(&map), (0, 0));
        map.set(hash, key, b"no number");
        assert!(map.add(hash, key, 1).is_err());
        assert!(map.counts(hash, key).is_err());
        assert_eq!(left(&map), (1, 0));
        assert!(map.remove(hash, key) && !map.remove(hash, key));
        map.counts(hash, key).unwrap();
        assert_eq!(left(&map), (0, 1));
        map.set(hash, key, b"a value");
        assert_eq!(left(&map), (1, 0));
    }
}
