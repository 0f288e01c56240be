//! `ngrams`: counts words and pairs of neighbouring words, an increment of many small counters. It must not know any
//! store.

use std::io;

use super::input::messages;
use super::text::{self, Messages, Terms};
use super::{Ask, Client, EndState, Heard, InputFault, Job, JobKind, Part, Source};
use crate::model::load::At;
use crate::model::op::{Op, Reply, Wrong, readable};
use crate::model::trial::{JobSettings, Via};

pub static NGRAMS: JobKind = JobKind {
    name: "ngrams",
    about: "counts the words and the pairs of words of short messages: increments of many small counters",
    unit: "message",
    scale: "messages",
    default_units: 45_000,
    default_seed: text::TWEETS2_SEED,
    recipe: "tweets2",
    formats: messages::FORMATS,
    recognise: Some(messages::recognise),
    expected: messages::EXPECTED,
    requests: None,
    ways: &[Via::Portable],
    end_state: |_| EndState::Counters,
    data: text::tweets2,
    open: |settings| Box::new(Ngrams { settings: settings.clone() }),
};

/// What every term of a message is worth.
const STEP: i64 = 1;

/// So many questions ahead a term is told: memory takes about as long to answer as two of them take to be asked.
const AHEAD: usize = 2;

/// How many bytes of a term a message about it shows.
const SHOWN_BYTES: usize = 100;

struct Ngrams {
    settings: JobSettings,
}

impl Job for Ngrams {
    fn client(&self, _: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        Ok(Box::new(Counting {
            messages: Messages::open(&self.settings, source)?,
            terms: Terms::default(),
            asked: 0,
            heard: 0,
            index: u64::from(index),
            of: u64::from(at.clients),
        }))
    }
}

/// A client that counts the messages whose number, divided by that of all clients, leaves its own.
struct Counting {
    messages: Messages,
    /// Of the message under way: its terms, how many of them were asked and how many of those answered.
    terms: Terms,
    asked: usize,
    heard: usize,
    index: u64,
    of: u64,
}

impl Client for Counting {
    #[inline]
    fn ask(&mut self) -> Ask<'_> {
        if self.asked == self.terms.len() {
            if self.heard < self.asked {
                return Ask::Wait;
            }
            match self.turn() {
                Ok(true) if self.terms.is_empty() => return Ask::Unit,
                Ok(true) => {}
                Ok(false) => return Ask::End,
                Err(fault) => return Ask::Fail(fault),
            }
        }
        self.asked += 1;
        Ask::Op(Op::Increment { key: self.terms.get(self.asked - 1), by: STEP })
    }

    #[inline]
    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.heard += 1;
        match *reply {
            Reply::Number(count) if count >= STEP => match self.heard == self.terms.len() {
                true => Heard::Unit { counted: 1 },
                false => Heard::More,
            },
            _ => self.wrong(*reply),
        }
    }

    /// Words and pairs are known a message ahead, as they would be to any program that counts them.
    #[inline]
    fn coming(&self) -> Option<&[u8]> {
        let soon = self.asked + AHEAD;
        (soon < self.terms.len()).then(|| self.terms.get(soon))
    }

    /// Every client reads the whole input, so that one of them tells of its bad lines for all.
    fn skipped(&self) -> u64 {
        if self.index == 0 { self.messages.skipped() } else { 0 }
    }
}

impl Counting {
    /// Goes on to this client's next message; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        (self.asked, self.heard) = (0, 0);
        self.terms.clear();
        loop {
            let mine = self.messages.count() % self.of == self.index;
            let terms = &mut self.terms;
            let read = self.messages.read(|message| {
                if mine {
                    terms.read(message.as_bytes());
                }
            })?;
            if mine || !read {
                return Ok(read);
            }
        }
    }

    #[cold]
    fn wrong(&self, reply: Reply<'_>) -> Heard {
        Heard::Wrong(Wrong {
            key: readable(self.terms.get(self.heard - 1), SHOWN_BYTES),
            expected: format!("a number of at least {STEP}"),
            found: format!("{reply:?}").chars().take(SHOWN_BYTES).collect(),
        })
    }
}
