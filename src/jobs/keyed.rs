//! Clients whose every question is about one key, drawn by its number: the load that servers are measured with. Such a
//! client is known to the drivers as what it is, since going through a table for each question would cost as much as
//! the question.

use std::sync::Arc;

use super::{Ask, Client, Heard};
use crate::words::op::{Op, Reply, Wrong, readable};

pub mod questions;
pub mod values;

use questions::{KeyText, Question, Questions};
use values::Values;

/// How many bytes of an answer a message about it shows.
const SHOWN_BYTES: usize = 60;

/// Sets or gets one key after another.
pub struct Keyed {
    asked: Questions,
    /// The same questions, as far as they are answered.
    answered: Questions,
    left: u64,
    /// Of the next value that is set, and what it grows by: what is loaded has one version for all.
    version: u64,
    version_step: u64,
    key: KeyText,
    value: Vec<u8>,
    values: Arc<Values>,
    misses: u64,
}

impl Keyed {
    /// Asks so many of these questions. Values begin with this version, which grows by `version_step` with each.
    pub fn new(questions: Questions, left: u64, version: u64, version_step: u64, values: Arc<Values>) -> Keyed {
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
        if set {
            self.values.write(record, self.version, &mut self.value);
            self.version += self.version_step;
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
            _ => return self.wrong(question, reply),
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

impl Keyed {
    #[cold]
    fn wrong(&self, question: Question, reply: Reply<'_>) -> Heard {
        let found = match reply {
            Reply::Value(value) => format!("{} bytes: {}", value.len(), readable(value, SHOWN_BYTES)),
            other => format!("{other:?}").chars().take(SHOWN_BYTES).collect(),
        };
        Heard::Wrong(Wrong {
            key: readable(KeyText::default().of(question.record), SHOWN_BYTES),
            expected: if question.set {
                "done".to_string()
            } else {
                format!("a value of {} bytes that was set under this key", self.values.bytes())
            },
            found,
        })
    }
}
