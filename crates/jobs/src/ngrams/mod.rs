//! `ngrams`: counts words and runs of neighbouring words, additions to many small counters. A store is asked in one of
//! several ways for the same answer. It must not know any store.

use std::io;
use std::ops::RangeInclusive;

use super::input::messages;
use super::text::{self, Messages, Terms};
use super::{Client, EndState, Heard, InputFault, Job, JobKind, Part, Source, StreamCounts};
use kvfair_core::load::At;
use kvfair_core::op::{Reply, Wrong, readable};
use kvfair_core::trial::{JobSettings, Via};

pub mod batch;
mod cas;
mod one_by_one;

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
    ways: &Via::ALL,
    options: &["--order", "--unit"],
    asked,
    end_state: |via| if via == Via::Cas { EndState::Decimals } else { EndState::Counters },
    data: text::tweets2,
    open: |settings| Box::new(Ngrams { settings: settings.clone() }),
};

/// An op for each term, one for each message, or two for each term. Of the last there are more where clients conflict.
fn asked(via: Via, counts: &StreamCounts) -> RangeInclusive<u64> {
    let StreamCounts { ops, asking_units, clients } = *counts;
    match via {
        Via::Portable | Via::Native => ops..=ops,
        Via::Batch => asking_units..=asking_units,
        Via::Cas if clients == 1 => 2 * ops..=2 * ops,
        Via::Cas => 2 * ops..=u64::MAX,
    }
}

/// What every term of a message is worth.
const STEP: i64 = 1;

/// How many bytes of a term a message about it shows.
const SHOWN_BYTES: usize = 100;

struct Ngrams {
    settings: JobSettings,
}

impl Job for Ngrams {
    fn client(&self, _: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        let (index, of) = (u64::from(index), u64::from(at.clients));
        let share = Share::open(&self.settings, source, Box::new(move |number| number % of == index))?;
        Ok(match self.settings.via {
            Via::Portable => Box::new(one_by_one::OneByOne::incrementing(share)),
            Via::Native => Box::new(one_by_one::OneByOne::adding(share)),
            Via::Batch => Box::new(batch::Batch::new(share)),
            Via::Cas => Box::new(cas::Cas::new(share)),
        })
    }
}

/// Whether a client counts the message of that number.
pub type Takes = Box<dyn Fn(u64) -> bool>;

/// The messages that one client counts.
pub struct Share {
    messages: Messages,
    /// Those of the message under way.
    terms: Terms,
    takes: Takes,
}

impl Share {
    pub fn open(settings: &JobSettings, source: &dyn Source, takes: Takes) -> io::Result<Share> {
        Ok(Share { messages: Messages::open(settings, source)?, terms: Terms::of(settings.ngrams), takes })
    }

    /// Goes on to this client's next message; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        self.terms.clear();
        loop {
            let mine = (self.takes)(self.messages.count());
            let terms = &mut self.terms;
            let read = self.messages.read(|message| {
                if mine {
                    terms.read(message);
                }
            })?;
            if mine || !read {
                return Ok(read);
            }
        }
    }

    /// Every client reads the whole input, so that the first one tells of its bad lines for all.
    fn skipped(&self) -> u64 {
        if (self.takes)(0) { self.messages.skipped() } else { 0 }
    }
}

#[cold]
fn wrong(term: &[u8], expected: String, reply: Reply<'_>) -> Heard {
    Heard::Wrong(Wrong {
        key: readable(term, SHOWN_BYTES),
        expected,
        found: format!("{reply:?}").chars().take(SHOWN_BYTES).collect(),
    })
}
