//! A client that asks about many keys at once: all sets or all gets, one batch under way.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::keytext::KeyText;
use super::questions::{Question, Questions};
use super::values::Values;
use super::wrong;
use crate::{Ask, Client, Heard};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{KeyList, Op, Pairs, Reply};

pub struct Batched {
    questions: Questions,
    left: u64,
    /// Keys of a batch.
    batch: u32,
    /// Of the next question's value, if it is a set; it grows by one with each question.
    version: u64,
    /// The batch under way: its records with the versions that they get, how many questions it is, its keys and values.
    records: Vec<(u64, u64)>,
    drawn: u64,
    keys: KeyList,
    texts: KeyList,
    value: Vec<u8>,
    set: bool,
    /// The batch is to be asked once more.
    again: bool,
    /// Where in the batch a record stands already.
    places: HashMap<u64, usize, RandomState>,
    values: Arc<Values>,
    misses: u64,
}

impl Batched {
    pub fn new(questions: Questions, left: u64, batch: u32, version: u64, values: Arc<Values>) -> Batched {
        Batched {
            set: questions.sets_only(),
            again: false,
            questions,
            left,
            batch,
            version,
            records: Vec::new(),
            drawn: 0,
            keys: KeyList::default(),
            texts: KeyList::default(),
            value: values.blank(),
            places: HashMap::default(),
            values,
            misses: 0,
        }
    }

    /// Draws the next batch. A record that is drawn twice is asked once, with the later version: what two writes of a
    /// key in one question come to is told by no protocol.
    fn draw(&mut self) {
        self.drawn = self.left.min(self.batch.into());
        self.left -= self.drawn;
        self.records.clear();
        self.places.clear();
        for _ in 0..self.drawn {
            let Question { record, .. } = self.questions.draw();
            let version = self.version;
            self.version += 1;
            let place = *self.places.entry(record).or_insert(self.records.len());
            match self.records.get_mut(place) {
                Some(before) => before.1 = version,
                None => self.records.push((record, version)),
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let mut key = KeyText::default();
        self.keys.clear();
        self.texts.clear();
        for &(record, version) in &self.records {
            self.keys.push(key.of(record));
            if self.set {
                self.values.write(record, version, &mut self.value);
                self.texts.push(&self.value);
            }
        }
    }
}

impl Client for Batched {
    fn ask(&mut self) -> Ask<'_> {
        if !std::mem::take(&mut self.again) {
            if self.drawn > 0 {
                return Ask::Wait;
            }
            if self.left == 0 {
                return Ask::End;
            }
            self.draw();
        }
        Ask::Op(match self.set {
            true => Op::SetMany(Pairs { keys: self.keys.lend(), values: self.texts.lend() }),
            false => Op::GetMany(self.keys.lend()),
        })
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let counted = std::mem::take(&mut self.drawn);
        let first = Question { record: self.records.first().map_or(0, |(record, _)| *record), set: self.set };
        match *reply {
            Reply::Done if self.set => {}
            Reply::Values(values) if !self.set && values.len() == self.records.len() => {
                for (&(record, _), value) in self.records.iter().zip(values.iter()) {
                    match value {
                        None => self.misses += 1,
                        Some(value) if self.values.belongs(record, value) => {}
                        Some(value) => {
                            return wrong(Question { record, set: false }, &self.values, Reply::Value(value));
                        }
                    }
                }
            }
            other => return wrong(first, &self.values, other),
        }
        Heard::Unit { counted }
    }

    fn again(&mut self) -> bool {
        self.again = self.drawn > 0;
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
    use super::super::questions::Asked;
    use super::*;
    use crate::Part;
    use kvfair_core::load::{At, Keys, Load};
    use kvfair_core::op::ValueList;

    fn batched(set: bool, left: u64, batch: u32) -> Batched {
        let mut client = Batched::new(Questions::loading(1, 0), left, batch, 100, Arc::new(Values::new(1, 40)));
        client.set = set;
        client
    }

    #[test]
    fn a_batch_is_one_question_and_as_many_units() {
        let mut client = batched(true, 5, 3);
        let Ask::Op(Op::SetMany(pairs)) = client.ask() else { panic!("a batch") };
        assert_eq!(
            pairs.keys.iter().collect::<Vec<_>>(),
            [b"key:000000000000", b"key:000000000001", b"key:000000000002"]
        );
        let versions: Vec<bool> =
            pairs.iter().zip(0..).map(|((_, value), at)| Values::new(1, 40).is(at, 100 + at, value)).collect();
        assert_eq!(versions, [true; 3]);
        assert!(matches!(client.ask(), Ask::Wait));
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 3 });
        assert!(matches!(client.ask(), Ask::Op(Op::SetMany(pairs)) if pairs.keys.len() == 2), "what is left");
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 2 });
        assert!(matches!(client.ask(), Ask::End));
    }

    #[test]
    fn every_value_of_a_batch_is_looked_at() {
        let values = Values::new(1, 40);
        let heard = |change: fn(&mut Vec<Option<Vec<u8>>>)| {
            let mut client = batched(false, 3, 3);
            assert!(matches!(client.ask(), Ask::Op(Op::GetMany(_))));
            let mut found: Vec<Option<Vec<u8>>> = (0..3)
                .map(|record| {
                    let mut value = values.blank();
                    values.write(record, 7, &mut value);
                    Some(value)
                })
                .collect();
            change(&mut found);
            let mut list = ValueList::default();
            found.iter().for_each(|value| list.push(value.as_deref()));
            (client.hear(&Reply::Values(list.lend())), client.misses)
        };
        assert_eq!(heard(|_| ()), (Heard::Unit { counted: 3 }, 0));
        assert_eq!(heard(|found| found[1] = None), (Heard::Unit { counted: 3 }, 1));
        assert!(matches!(heard(|found| found.swap(0, 2)).0, Heard::Wrong(_)));
        assert!(matches!(heard(|found| found[2].as_mut().unwrap()[39] ^= 1).0, Heard::Wrong(_)));
        assert!(matches!(heard(|found| found.truncate(2)).0, Heard::Wrong(_)));
    }

    #[test]
    fn a_key_that_is_drawn_twice_is_set_once_to_the_later_value() {
        let mut client = batched(true, 4, 4);
        // Two records only: each is drawn twice.
        let load = Load { records: 2, keys: Keys::Sequential, ..Load::default() };
        client.questions = Asked::of_load(load, 1).questions(Part::Set, At::closed(1, 4), 0);
        let Ask::Op(Op::SetMany(pairs)) = client.ask() else { panic!("a batch") };
        assert_eq!(pairs.keys.len(), 2);
        let right = pairs.iter().zip(0..).all(|((_, value), at)| Values::new(1, 40).is(at, 102 + at, value));
        assert!(right, "versions 102 and 103");
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 4 });
    }
}
