//! A client whose questions are more than gets and sets: inserts of new records, a read before each write, scans. What
//! it asked it keeps until it is answered.

use std::collections::VecDeque;
use std::sync::Arc;

use super::keytext::KeyText;
use super::questions::{Question, Questions};
use super::values::Values;
use super::{SHOWN_BYTES, wrong};
use crate::{Ask, Client, Heard, Reading, Writing};
use kvfair_core::load::Keys;
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Op, Pairs, Reply, Wrong, readable};

/// What a client does, and among whom.
#[derive(Clone, Copy)]
pub struct ClientRole {
    pub reading: Reading,
    pub writing: Writing,
    pub keys: Keys,
    /// Records that were loaded.
    pub records: u64,
    pub of: u32,
    pub index: u32,
}

impl ClientRole {
    /// The record that this client's insert number `nth` makes, counted from 0: behind all that were loaded, and its
    /// own.
    pub fn inserted(&self, nth: u64) -> u64 {
        self.records + nth * u64::from(self.of) + u64::from(self.index)
    }
}

pub struct Turns {
    part: ClientRole,
    questions: Questions,
    left: u64,
    /// Of the next question's value, if it writes one; it grows by one with each question.
    version: u64,
    /// This client's inserts that were asked for, and those that were answered.
    inserted: u64,
    acknowledged: u64,
    /// What was read and is to be written now, oldest first.
    owed: VecDeque<(u64, u64)>,
    waiting: VecDeque<Waiting>,
    /// What is to be asked once more, before all others.
    again: VecDeque<Waiting>,
    key: KeyText,
    value: Vec<u8>,
    values: Arc<Values>,
    misses: u64,
}

/// A question that is not answered yet.
#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    Get(u64),
    Scan {
        from: u64,
        limit: u32,
    },
    /// A record, to be set to this version.
    Set(u64, u64),
    Insert(u64, u64),
    /// A read whose record is to be written with this version.
    ToModify(u64, u64),
}

impl Turns {
    pub fn new(part: ClientRole, questions: Questions, left: u64, version: u64, values: Arc<Values>) -> Turns {
        Turns {
            part,
            questions,
            left,
            version,
            inserted: 0,
            acknowledged: 0,
            owed: VecDeque::new(),
            waiting: VecDeque::new(),
            again: VecDeque::new(),
            key: KeyText::default(),
            value: values.blank(),
            values,
            misses: 0,
        }
    }

    fn next(&mut self) -> Waiting {
        let Question { record, set } = self.questions.draw();
        let version = self.version;
        self.version += 1;
        match (set, self.part.writing, self.part.reading) {
            (true, Writing::ReadModifyWrite, _) => Waiting::ToModify(record, version),
            (true, Writing::Insert, _) => {
                self.inserted += 1;
                Waiting::Insert(self.part.inserted(self.inserted - 1), version)
            }
            (true, Writing::Set, _) => Waiting::Set(record, version),
            (false, _, Reading::Get) => Waiting::Get(self.latest(record)),
            (false, _, Reading::Scan) => Waiting::Scan { from: record, limit: self.questions.length() },
        }
    }

    /// Where the latest records are asked for most, those that this client has inserted are later than all that were
    /// loaded. Of others' inserts it cannot know that they are there.
    fn latest(&self, record: u64) -> u64 {
        if self.part.keys != Keys::Latest || self.acknowledged == 0 {
            return record;
        }
        let rank = self.part.records - 1 - record;
        match self.acknowledged.checked_sub(rank + 1) {
            Some(nth) => self.part.inserted(nth),
            None => record + self.acknowledged,
        }
    }

    /// Every record that was loaded must be among the rows, in its place; what was inserted may follow.
    fn look_through(&mut self, from: u64, limit: u32, rows: Pairs<'_>) -> Result<(), Wrong> {
        let loaded = u64::from(limit).min(self.part.records - from);
        let found = rows.keys.len() as u64;
        // Fewer than were loaded are missing; more than were asked for are wrong, as any other row would be.
        self.misses += loaded.saturating_sub(found);
        let mut last = None;
        for (place, (key, value)) in (0..).zip(rows.iter()) {
            let expected = if place < loaded { Some(from + place) } else { KeyText::record_of(key) };
            let right = expected.is_some_and(|record| {
                *self.key.of(record) == *key
                    && last.is_none_or(|last| last < record)
                    && self.values.belongs(record, value)
            });
            if !right || place >= u64::from(limit) {
                let what = format!("at most {limit} rows from there, in their order");
                let row = format!("as row {}: {} with {} bytes", place + 1, readable(key, SHOWN_BYTES), value.len());
                return Err(Wrong { key: readable(self.key.of(from), SHOWN_BYTES), expected: what, found: row });
            }
            last = expected;
        }
        Ok(())
    }
}

impl Client for Turns {
    fn ask(&mut self) -> Ask<'_> {
        let owed = self.again.pop_front().or_else(|| self.owed.pop_front().map(|(key, set)| Waiting::Set(key, set)));
        let turn = match owed {
            Some(turn) => turn,
            // What is still to be read may be owed a write.
            None if self.left == 0 => return if self.waiting.is_empty() { Ask::End } else { Ask::Wait },
            None => {
                self.left -= 1;
                self.next()
            }
        };
        self.waiting.push_back(turn);
        match turn {
            Waiting::Get(record) | Waiting::ToModify(record, _) => Ask::Op(Op::Get(self.key.of(record))),
            Waiting::Scan { from, limit } => Ask::Op(Op::Scan { from: self.key.of(from), limit }),
            Waiting::Set(record, version) | Waiting::Insert(record, version) => {
                self.values.write(record, version, &mut self.value);
                Ask::Op(Op::Set { key: self.key.of(record), value: &self.value, ttl_s: None })
            }
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let Some(turn) = self.waiting.pop_front() else {
            return wrong(Question { record: 0, set: false }, &self.values, *reply);
        };
        match (turn, *reply) {
            (Waiting::Set(..), Reply::Done) => {}
            (Waiting::Insert(..), Reply::Done) => self.acknowledged += 1,
            (Waiting::Get(record), Reply::Value(value)) if self.values.belongs(record, value) => {}
            (Waiting::Get(_), Reply::Missing) => self.misses += 1,
            (Waiting::ToModify(record, version), Reply::Value(value)) if self.values.belongs(record, value) => {
                self.owed.push_back((record, version));
                return Heard::More;
            }
            (Waiting::ToModify(record, version), Reply::Missing) => {
                self.misses += 1;
                self.owed.push_back((record, version));
                return Heard::More;
            }
            (Waiting::Scan { from, limit }, Reply::Rows(rows)) => {
                if let Err(wrong) = self.look_through(from, limit, rows) {
                    return Heard::Wrong(wrong);
                }
            }
            (Waiting::Get(record) | Waiting::ToModify(record, _) | Waiting::Scan { from: record, .. }, reply) => {
                return wrong(Question { record, set: false }, &self.values, reply);
            }
            (Waiting::Set(record, _) | Waiting::Insert(record, _), reply) => {
                return wrong(Question { record, set: true }, &self.values, reply);
            }
        }
        Heard::Unit { counted: 1 }
    }

    fn again(&mut self) -> bool {
        // What was not even asked for the second time comes behind.
        self.waiting.append(&mut self.again);
        std::mem::swap(&mut self.waiting, &mut self.again);
        true
    }

    fn stop(&mut self) {
        self.left = 0;
    }

    fn drawn(&self) -> Option<u64> {
        Some(self.questions.count())
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvfair_core::op::KeyList;

    fn turns(reading: Reading, writing: Writing, left: u64) -> Turns {
        let part = ClientRole { reading, writing, keys: Keys::Latest, records: 10, of: 3, index: 1 };
        Turns::new(part, Questions::loading(1, 0), left, 100, Arc::new(Values::new(1, 50)))
    }

    fn value(client: &Turns, record: u64) -> Vec<u8> {
        let mut value = client.values.blank();
        client.values.write(record, 7, &mut value);
        value
    }

    #[test]
    fn what_is_read_is_written_once_it_has_come_and_is_one_unit() {
        let mut client = turns(Reading::Get, Writing::ReadModifyWrite, 2);
        for key in [b"key:000000000000", b"key:000000000001"] {
            assert!(matches!(client.ask(), Ask::Op(Op::Get(asked)) if asked == key));
        }
        assert!(matches!(client.ask(), Ask::Wait), "nothing has been read");
        let read = value(&client, 0);
        assert_eq!(client.hear(&Reply::Value(&read)), Heard::More);
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000000", .. })));
        let read = value(&client, 1);
        assert_eq!(client.hear(&Reply::Value(&read)), Heard::More);
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000001", .. })));
        assert!(client.values.is(1, 101, &client.value), "the version is the question's");
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 });
        assert!(matches!(client.ask(), Ask::Wait));
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 });
        assert!(matches!(client.ask(), Ask::End));
    }

    #[test]
    fn who_is_to_stop_finishes_what_was_begun() {
        let mut client = turns(Reading::Get, Writing::ReadModifyWrite, 9);
        (0..2).for_each(|_| assert!(matches!(client.ask(), Ask::Op(Op::Get(_)))));
        let (first, second) = (value(&client, 0), value(&client, 1));
        assert_eq!(client.hear(&Reply::Value(&first)), Heard::More);
        client.stop();
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000000", .. })), "what was read is written");
        assert!(matches!(client.ask(), Ask::Wait), "one is still to be read");
        assert_eq!(client.hear(&Reply::Value(&second)), Heard::More);
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000001", .. })));
        (0..2).for_each(|_| assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 }));
        assert!(matches!(client.ask(), Ask::End));
        assert_eq!(client.drawn(), Some(2));
    }

    #[test]
    fn inserts_are_their_clients_own_and_the_latest_once_they_are_acknowledged() {
        let mut client = turns(Reading::Get, Writing::Insert, 2);
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000011", .. })));
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key:000000000014", .. })));
        let latest = |client: &Turns| [9, 8, 7, 0].map(|record| client.latest(record));
        assert_eq!(latest(&client), [9, 8, 7, 0]);
        client.hear(&Reply::Done);
        assert_eq!(latest(&client), [11, 9, 8, 1]);
        client.hear(&Reply::Done);
        assert_eq!(latest(&client), [14, 11, 9, 2]);
    }

    #[test]
    fn a_scan_is_looked_through_row_by_row() {
        let client = || turns(Reading::Scan, Writing::Insert, 1);
        let rows = |records: &[u64]| -> (KeyList, KeyList) {
            let keys = records.iter().map(|record| KeyText::default().of(*record).to_vec()).collect::<Vec<_>>();
            let values = records.iter().map(|record| value(&client(), *record)).collect::<Vec<_>>();
            (keys.iter().map(Vec::as_slice).collect(), values.iter().map(Vec::as_slice).collect())
        };
        let looked = |records: &[u64]| {
            let ((keys, values), mut client) = (rows(records), client());
            let wrong = client.look_through(6, 5, Pairs { keys: keys.lend(), values: values.lend() }).is_err();
            (wrong, client.misses)
        };
        assert_eq!(looked(&[6, 7, 8, 9, 12]), (false, 0));
        assert_eq!(looked(&[6, 7, 8, 9]), (false, 0), "nothing was inserted");
        assert_eq!(looked(&[6, 7, 8]), (false, 1));
        assert_eq!(looked(&[]), (false, 4));
        for strange in [&[6, 8, 9][..], &[7, 8, 9, 10], &[6, 7, 8, 9, 9], &[6, 7, 8, 9, 3], &[6, 7, 8, 9, 11, 12]] {
            assert!(looked(strange).0, "{strange:?}");
        }
        let ((keys, mut values), mut client) = (rows(&[6, 7, 8, 9]), client());
        assert!(client.look_through(6, 5, Pairs { keys: keys.lend(), values: values.lend() }).is_ok());
        values = rows(&[6, 7, 7, 9]).1;
        assert!(client.look_through(6, 5, Pairs { keys: keys.lend(), values: values.lend() }).is_err());
    }
}
