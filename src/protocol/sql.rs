//! What the codecs of SQL databases share: the limits of keys, and the way from rows, which come in any order, back to
//! the keys that were asked for. It knows no SQL.

mod gathered;

pub(super) use gathered::{Columns, Gathered, RowsOf};

use super::asked::PendingKeys;
use crate::model::op::{Fault, Keys, Op, readable};

/// The longest keys of a store's tables.
pub struct Longest {
    pub store: &'static str,
    pub key: usize,
    pub record: usize,
    pub field: usize,
}

impl Longest {
    #[inline]
    pub fn check(&self, op: &Op<'_>) -> Result<(), Fault> {
        let key = |key: &[u8]| self.check_bytes(op, "keys", key, self.key);
        match op {
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.iter().try_for_each(key),
            Op::SetMany(pairs) => pairs.keys.iter().try_for_each(key),
            Op::AddMany(sums) => sums.keys().iter().try_for_each(key),
            Op::Tally { records, fields, .. } => {
                records.iter().try_for_each(|record| self.check_bytes(op, "records", record, self.record))?;
                fields.iter().try_for_each(|field| self.check_bytes(op, "fields", field, self.field))
            }
            Op::ReadTally(record) => self.check_bytes(op, "records", record, self.record),
            op => key(op.key()),
        }
    }

    #[inline]
    fn check_bytes(&self, op: &Op<'_>, what: &str, bytes: &[u8], longest: usize) -> Result<(), Fault> {
        if bytes.len() <= longest { Ok(()) } else { Err(self.too_long(op, what, bytes.len(), longest)) }
    }

    #[cold]
    fn too_long(&self, op: &Op<'_>, what: &str, bytes: usize, longest: usize) -> Fault {
        let (store, op) = (self.store, op.name());
        Fault::Unsupported(format!("{store} takes {what} of at most {longest} bytes: one of this {op} has {bytes}"))
    }
}

/// The words of a refusal: a number was asked of a record that is a value.
#[cold]
pub fn no_counter(store: &str, key: &[u8]) -> String {
    format!("{store}: the record of key '{}' is no counter", readable(key, 80))
}

/// The order of keys by their bytes; equal ones stay as they were asked. Rows are written in this order, so that
/// clients that write the same ones take their locks one after another and never crosswise.
pub fn sort(keys: Keys<'_>, order: &mut Vec<usize>) {
    order.clear();
    order.extend(0..keys.len());
    order.sort_unstable_by(|&one, &other| keys.get(one).cmp(keys.get(other)).then(one.cmp(&other)));
}

/// The places in `order`, which is sorted by `key_at`, that have this key: more than one, where it was asked for more
/// than once.
pub fn places<'o, 'k>(order: &'o [usize], key: &[u8], key_at: impl Fn(usize) -> &'k [u8]) -> &'o [usize] {
    let begin = order.partition_point(|&index| key_at(index) < key);
    let end = begin + order[begin..].partition_point(|&index| key_at(index) == key);
    &order[begin..end]
}

/// The keys of the ops that are not answered yet, and how those of the oldest op are sorted.
#[derive(Default)]
struct AskedKeys {
    keys: PendingKeys,
    order: Vec<usize>,
}

impl AskedKeys {
    fn push(&mut self, key: &[u8]) {
        self.keys.push(key);
    }

    fn get(&self, index: usize) -> &[u8] {
        self.keys.get(index)
    }

    /// Sorts the first `count` keys, which are those of the op whose rows come now.
    fn sort(&mut self, count: usize) {
        self.order.clear();
        self.order.extend(0..count);
        self.order.sort_unstable_by(|&one, &other| self.keys.get(one).cmp(self.keys.get(other)).then(one.cmp(&other)));
    }

    /// Where the key of a row stands among them; nowhere, if it was not asked for.
    fn places(&self, key: &[u8]) -> &[usize] {
        places(&self.order, key, |index| self.keys.get(index))
    }

    /// Forgets the keys of an op that is answered.
    fn pop(&mut self, count: usize) {
        self.keys.pop(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::op::KeyList;

    #[test]
    fn rows_find_their_places_again() {
        let keys = [&b"b"[..], b"a", b"", b"b", b"a "];
        let list: KeyList = keys.into_iter().collect();
        let mut order = Vec::new();
        sort(list.lend(), &mut order);
        assert_eq!(order, [2, 1, 4, 0, 3]);
        let mut asked = AskedKeys::default();
        asked.push(b"of the op before");
        keys.iter().for_each(|key| asked.push(key));
        asked.push(b"of the next op");
        asked.pop(1);
        asked.sort(keys.len());
        let expected: [(&[u8], &[usize]); 4] = [(b"b", &[0, 3]), (b"", &[2]), (b"aa", &[]), (b"c", &[])];
        for (key, found) in expected {
            assert_eq!(asked.places(key), found);
            assert_eq!(places(&order, key, |index| list.lend().get(index)), found);
        }
    }
}
