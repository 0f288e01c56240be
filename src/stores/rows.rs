//! What the SQL stores share: the names of their tables, the limits of keys, and the way from rows, which come in any
//! order, back to the questions. Knows no store and no SQL.

use std::collections::BTreeMap;

use super::{Facts, Place};
use crate::model::op::{Fault, Keys, Op, readable};
use crate::model::trial::Durability;

/// Values and counters: a row has the one or the other. One table, so that one statement counts, deletes or overwrites
/// either; the column that a row does not use is a bit in its head.
pub const RECORDS: &str = "kvfair_records";
/// One row for each field of a tallied record.
pub const TALLIES: &str = "kvfair_tallies";

/// The order of keys by their bytes; equal ones stay as they were asked. Rows are written in this order, so that
/// clients that write the same ones take their locks one after another and never crosswise.
pub fn sort(keys: Keys<'_>, order: &mut Vec<usize>) {
    order.clear();
    order.extend(0..keys.len());
    order.sort_by(|&one, &other| keys.get(one).cmp(keys.get(other)));
}

/// Where the key of a row stands among those that were asked for: more than once, where it was asked for more than
/// once.
pub fn places<'o>(keys: Keys<'_>, order: &'o [usize], key: &[u8]) -> &'o [usize] {
    let begin = order.partition_point(|&index| keys.get(index) < key);
    let end = begin + order[begin..].partition_point(|&index| keys.get(index) == key);
    &order[begin..end]
}

/// The longest keys of a store's tables.
pub struct Longest {
    pub store: &'static str,
    pub key: usize,
    pub record: usize,
    pub field: usize,
}

impl Longest {
    pub fn check(&self, op: &Op<'_>) -> Result<(), Fault> {
        let check = |what: &str, key: &[u8], longest: usize| {
            if key.len() <= longest {
                return Ok(());
            }
            let (store, op, length) = (self.store, op.name(), key.len());
            Err(Fault::Unsupported(format!(
                "{store} takes {what} of at most {longest} bytes: one of this {op} has {length}"
            )))
        };
        let key = |key: &[u8]| check("keys", key, self.key);
        match op {
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.iter().try_for_each(key),
            Op::SetMany(pairs) => pairs.keys.iter().try_for_each(key),
            Op::AddMany(sums) => sums.keys().iter().try_for_each(key),
            Op::Tally { records, fields, .. } => {
                records.iter().try_for_each(|record| check("records", record, self.record))?;
                fields.iter().try_for_each(|field| check("fields", field, self.field))
            }
            Op::ReadTally(record) => check("records", record, self.record),
            op => key(op.key()),
        }
    }
}

pub fn no_counter(store: &str, key: &[u8]) -> Fault {
    Fault::Refused(format!("{store}: the record of key '{}' is no counter", readable(key, 80)))
}

/// A setting, and the values of it that keep a durability level.
pub type Needed = (&'static str, &'static [&'static str]);

/// A server that kvfair did not start may not keep the durability level that was asked for. What it does not have is
/// not judged.
pub fn check_level(
    server: &str,
    level: Durability,
    needed: &[Needed],
    settings: &BTreeMap<String, String>,
) -> Result<(), Fault> {
    for (setting, good) in needed {
        if let Some(found) = settings.get(*setting).filter(|found| !good.contains(&found.as_str())) {
            let wanted = good.join(" or ");
            return Err(Fault::Unsupported(format!(
                "{server} has {setting} {found}, which does not keep '{level}': it takes {setting} {wanted}"
            )));
        }
    }
    Ok(())
}

/// `mariadb at 127.0.0.1:3306`, as messages say it.
pub fn server(store: &str, place: &Place) -> String {
    format!("{store} at {place}")
}

/// What both have to say of themselves.
pub fn facts(version: String, client_library: &str, increment: &str, settings: BTreeMap<String, String>) -> Facts {
    Facts {
        version,
        client_library: client_library.to_string(),
        increment: increment.to_string(),
        settings,
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::op::KeyList;

    #[test]
    fn rows_find_their_places_again() {
        let list: KeyList = [&b"b"[..], b"a", b"", b"b", b"a "].into_iter().collect();
        let mut order = Vec::new();
        sort(list.lend(), &mut order);
        assert_eq!(order, [2, 1, 4, 0, 3]);
        assert_eq!(places(list.lend(), &order, b"b"), [0, 3]);
        assert_eq!(places(list.lend(), &order, b""), [2]);
        assert_eq!(places(list.lend(), &order, b"aa"), [0; 0]);
        assert_eq!(places(list.lend(), &order, b"c"), [0; 0]);
    }
}
