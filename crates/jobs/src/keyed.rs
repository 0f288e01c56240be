//! Clients whose every question is about one key, drawn by its number: the load that servers are measured with. Such a
//! client is known to the drivers as what it is, since going through a table for each question would cost as much as
//! the question.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use super::{Ask, Client, Heard, Job, Part, Reading, Source, Writing, find};
use kvfair_core::load::{At, Load};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Alike, Op, Pattern, Reply, Wrong, readable};
use kvfair_core::trial::JobSettings;

pub mod batches;
pub mod existing;
pub mod keytext;
pub mod lengths;
pub mod questions;
pub mod turns;
pub mod values;
mod writer;

use batches::Batched;
use keytext::{KEY_BYTES, KeyText};
use lengths::Lengths;
use questions::{Asked, Question, Questions, load_of};
use turns::Turns;
use values::{Values, version};

/// How many bytes of an answer a message about it shows.
const SHOWN_BYTES: usize = 60;

/// A job of such clients: all records are loaded, then come its other parts.
pub struct KeyedJob {
    settings: JobSettings,
    parts: &'static [Part],
    /// Made when the first client is: who asks for the parts only need not wait for tables.
    asked: OnceLock<Asked>,
    /// By their size.
    values: Mutex<BTreeMap<u32, Arc<Values>>>,
}

impl KeyedJob {
    pub fn new(settings: &JobSettings, parts: &'static [Part]) -> KeyedJob {
        KeyedJob { settings: settings.clone(), parts, asked: OnceLock::new(), values: Mutex::default() }
    }
}

/// What clients of a job do.
pub fn doings(settings: &JobSettings) -> (Reading, Writing) {
    let requests = find(&settings.name).and_then(|job| job.requests.as_ref());
    requests.map_or((Reading::Get, Writing::Set), |requests| (requests.reading, requests.writing))
}

/// The values of a job, of so many bytes where their lengths are not each key's own, for who asks and for who checks.
pub fn values_of(settings: &JobSettings, value_bytes: u32) -> Values {
    let load = load_of(settings);
    Values::of(settings.seed(), Lengths::new(value_bytes, load.spread), load.compressible_percent)
}

impl Job for KeyedJob {
    fn parts(&self) -> &'static [Part] {
        self.parts
    }

    fn client(&self, part: Part, index: u32, at: At, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        let asked = self.asked.get_or_init(|| Asked::of(&self.settings));
        let make = || Arc::new(values_of(&self.settings, at.value_bytes));
        let values = self.values.lock().expect("no client panics").entry(at.value_bytes).or_insert_with(make).clone();
        let left = if at.rate.is_some() { at.requests } else { asked.share(part, at, index) };
        // What is loaded has one version for all.
        let (questions, first, step) = match part {
            Part::Load => (Questions::loading(at.clients, index), version(0, 0, 0), 0),
            _ => (asked.questions(part, at, index), version(at.number, index, 0), 1),
        };
        let (reading, writing) = doings(&self.settings);
        if part != Part::Load && at.batch > 1 {
            return Ok(Box::new(Batched::new(questions, left, at.batch, first, values)));
        }
        if part == Part::Load || (reading, writing) == (Reading::Get, Writing::Set) {
            return Ok(Box::new(Keyed::new(questions, left, first, step, values)));
        }
        let Load { keys, records, .. } = asked.load;
        let part = turns::ClientRole { reading, writing, keys, records, of: at.clients, index };
        Ok(Box::new(Turns::new(part, questions, left, first, values)))
    }

    fn inserts(&self) -> bool {
        doings(&self.settings).1 == Writing::Insert
    }
}

/// Sets or gets one key after another.
pub struct Keyed {
    asked: Questions,
    /// The same questions, as far as they are answered.
    answered: Questions,
    left: u64,
    /// Of the next question's value, if it is a set, and what it grows by with each question.
    version: u64,
    version_step: u64,
    key: KeyText,
    value: Vec<u8>,
    values: Arc<Values>,
    misses: u64,
}

impl Keyed {
    fn new(questions: Questions, left: u64, version: u64, version_step: u64, values: Arc<Values>) -> Keyed {
        Keyed {
            answered: questions.clone(),
            asked: questions,
            left,
            version,
            version_step,
            key: KeyText::default(),
            value: values.blank(),
            values,
            misses: 0,
        }
    }
}

impl Client for Keyed {
    #[inline(always)]
    fn ask(&mut self) -> Ask<'_> {
        if self.left == 0 {
            return Ask::End;
        }
        self.left -= 1;
        let Question { record, set } = self.asked.draw();
        let key = self.key.of(record);
        let version = self.version;
        self.version += self.version_step;
        if set {
            self.values.write(record, version, &mut self.value);
            Ask::Op(Op::Set { key, value: &self.value, ttl_s: None })
        } else {
            Ask::Op(Op::Get(key))
        }
    }

    #[inline(always)]
    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let question = self.answered.draw();
        match *reply {
            Reply::Done if question.set => {}
            Reply::Value(value) if !question.set && self.values.belongs(question.record, value) => {}
            Reply::Missing if !question.set => self.misses += 1,
            _ => return wrong(question, &self.values, *reply),
        }
        Heard::Unit { counted: 1 }
    }

    #[inline(always)]
    fn alike(&self, most: u32) -> Option<Alike<'_>> {
        let count = self.left.min(most.into()) as u32;
        let key = self.key.text();
        if count == 0 {
            None
        } else if self.asked.gets_only() {
            Some(Alike { count, op: Op::Get(key) })
        } else if self.asked.sets_only() && self.values.alike_bytes().is_some() {
            Some(Alike { count, op: Op::Set { key, value: &self.value, ttl_s: None } })
        } else {
            None
        }
    }

    #[inline(always)]
    fn write(&mut self, count: u32, pattern: Pattern<'_>, out: &mut Vec<u8>) {
        self.left -= u64::from(count);
        let (start, each) = (out.len(), pattern.bytes.len());
        let values = self.asked.sets_only().then_some((&*self.values, self.value.len()));
        out.extend_from_slice(pattern.bytes);
        if let Some((_, bytes)) = values {
            Values::blank_out(&mut out[start + pattern.value_at..][..bytes]);
        }
        (1..count).for_each(|_| out.extend_from_within(start..start + each));
        let mut places = out[start..].chunks_exact_mut(each);
        let (mut version, step) = (self.version, self.version_step);
        self.asked.draw_records(count, |record| {
            let place = places.next().expect("a place for each");
            let (key, rest) = place[pattern.key_at..].split_first_chunk_mut().expect("a key's place");
            KeyText::write(record, key);
            if let Some((values, bytes)) = values {
                values.write_alike(
                    record,
                    version,
                    &mut rest[pattern.value_at - pattern.key_at - KEY_BYTES..][..bytes],
                );
                version += step;
            }
        });
        self.version = version;
    }

    #[inline(always)]
    fn sets_only(&self) -> bool {
        self.answered.sets_only()
    }

    #[inline(always)]
    fn done(&mut self, count: u32) -> u64 {
        // Which keys they were about matters only where an answer is no good.
        self.answered.pass(count);
        count.into()
    }

    /// A set that is asked twice has the same version both times.
    fn again(&mut self) -> bool {
        let unheard = self.asked.count() - self.answered.count();
        self.asked = self.answered.clone();
        self.left += unheard;
        self.version -= unheard * self.version_step;
        true
    }

    fn stop(&mut self) {
        self.left = 0;
    }

    fn drawn(&self) -> Option<u64> {
        Some(self.asked.count())
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }

    #[inline]
    fn keyed(&mut self) -> Option<&mut Keyed> {
        Some(self)
    }
}

/// An answer that cannot be.
#[cold]
fn wrong(question: Question, values: &Values, reply: Reply<'_>) -> Heard {
    let found = match reply {
        Reply::Value(value) => format!("{} bytes: {}", value.len(), readable(value, SHOWN_BYTES)),
        other => format!("{other:?}").chars().take(SHOWN_BYTES).collect(),
    };
    Heard::Wrong(Wrong {
        key: readable(KeyText::default().of(question.record), SHOWN_BYTES),
        expected: if question.set {
            "done".to_string()
        } else {
            format!("a value of {} bytes that was set under this key", values.bytes(question.record))
        },
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvfair_core::load::Keys;

    /// What is asked next, as text.
    fn asked(client: &mut dyn Client) -> String {
        format!("{:?}", client.ask())
    }

    fn clients() -> Vec<Box<dyn Client>> {
        let load = Load { records: 100, reads: 1, writes: 1, ..Load::default() };
        let values = || Arc::new(Values::new(1, 40));
        let questions = |part| Asked::of_load(load.clone(), 1).questions(part, At::closed(1, 40), 0);
        let part = |writing| turns::ClientRole {
            reading: Reading::Get,
            writing,
            keys: Keys::Latest,
            records: 100,
            of: 1,
            index: 0,
        };
        let turns = |writing| Turns::new(part(writing), questions(Part::Run), 40, version(1, 0, 0), values());
        vec![
            Box::new(Keyed::new(questions(Part::Run), 40, version(1, 0, 0), 1, values())),
            Box::new(turns(Writing::Set)),
            Box::new(turns(Writing::Insert)),
            Box::new(turns(Writing::ReadModifyWrite)),
            Box::new(Batched::new(questions(Part::Set), 40, 5, version(1, 0, 0), values())),
        ]
    }

    /// Values and versions are part of what is asked.
    #[test]
    fn what_is_taken_back_is_asked_once_more_and_then_what_follows() {
        for (place, mut client) in clients().into_iter().enumerate() {
            let mut plain = clients().remove(place);
            let depth = if place == 4 { 1 } else { 7 };
            let first: Vec<String> = (0..depth).map(|_| asked(client.as_mut())).collect();
            assert_eq!(first, (0..depth).map(|_| asked(plain.as_mut())).collect::<Vec<_>>());
            for times in 0..3 {
                assert!(client.again());
                // The second time not all are asked before the connection is lost once more.
                let some = if times == 1 { depth / 2 } else { depth };
                assert_eq!((0..some).map(|_| asked(client.as_mut())).collect::<Vec<_>>(), first[..some], "{place}");
            }
            if depth > 1 {
                assert_eq!(asked(client.as_mut()), asked(plain.as_mut()), "{place}");
            }
        }
    }

    #[test]
    fn what_was_answered_is_not_asked_again() {
        let mut client = Keyed::new(Questions::loading(1, 0), 9, 100, 1, Arc::new(Values::new(1, 40)));
        let first: Vec<String> = (0..5).map(|_| asked(&mut client)).collect();
        (0..2).for_each(|_| assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 }));
        assert!(client.again());
        assert_eq!((0..3).map(|_| asked(&mut client)).collect::<Vec<_>>(), first[2..]);
        let rest = (0..20).take_while(|_| matches!(client.ask(), Ask::Op(_))).count();
        assert_eq!(rest, 4, "of nine");
    }
}
