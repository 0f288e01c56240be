//! Clients whose every question is about one key, drawn by its number: the load that servers are measured with. Such a
//! client is known to the drivers as what it is, since going through a table for each question would cost as much as
//! the question.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use super::{Ask, Client, Heard, Job, Part, Reading, Source, Writing, find};
use crate::words::load::{At, Load};
use crate::words::op::{Op, Reply, Wrong, readable};
use crate::words::trial::JobSettings;

pub mod batches;
pub mod lengths;
pub mod questions;
pub mod turns;
pub mod values;

use batches::Batched;
use lengths::Lengths;
use questions::{Asked, KeyText, Question, Questions, load_of};
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
    Values::of(settings.seed(), Lengths::new(value_bytes, load_of(settings).spread))
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
        let part = turns::Part { reading, writing, keys, records, of: at.clients, index };
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
    fn hear(&mut self, reply: Reply<'_>) -> Heard {
        // Which key a set was about matters only where its answer is no good.
        if self.answered.sets_only() && matches!(reply, Reply::Done) {
            self.answered.pass();
            return Heard::Unit { counted: 1 };
        }
        let question = self.answered.draw();
        match reply {
            Reply::Done if question.set => {}
            Reply::Value(value) if !question.set && self.values.belongs(question.record, value) => {}
            Reply::Missing if !question.set => self.misses += 1,
            _ => return wrong(question, &self.values, reply),
        }
        Heard::Unit { counted: 1 }
    }

    fn misses(&self) -> u64 {
        self.misses
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
