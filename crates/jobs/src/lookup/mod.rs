//! `lookup`: scores messages by the counts of n-grams that a store holds: reads of many small counters. One message in
//! ten is scored, and the counts are those of all others, as `ngrams` counts them. It must not know any store.

use std::io::{self, BufRead};
use std::ops::RangeInclusive;

use super::input::messages;
use super::ngrams::Share;
use super::ngrams::batch::Batch;
use super::text::{self, Messages, Terms};
use super::{Client, EndState, InputFault, Job, JobKind, Part, Source, StreamCounts};
use kvfair_core::load::At;
use kvfair_core::trial::{JobSettings, Via};
use scorer::Scorer;

mod score;
mod scorer;

pub static LOOKUP: JobKind = JobKind {
    name: "lookup",
    about: "scores messages by the counts of n-grams that a store holds: reads of many small counters",
    unit: "message",
    scale: "messages",
    default_units: 45_000,
    default_seed: text::TWEETS2_SEED,
    recipe: "tweets2",
    formats: messages::FORMATS,
    recognise: Some(messages::recognise),
    expected: messages::EXPECTED,
    requests: None,
    ways: &[Via::Portable, Via::Batch],
    options: &["--order", "--unit", "--cold", "--readers"],
    asked,
    end_state: |_| EndState::Counters,
    data: text::tweets2,
    open: |settings| Box::new(Lookup { settings: settings.clone() }),
};

/// An op for each n-gram of a message, or one for all of them.
fn asked(via: Via, counts: &StreamCounts) -> RangeInclusive<u64> {
    let ops = if via == Via::Batch { counts.asking_units } else { counts.ops };
    ops..=ops
}

/// One message in so many is not counted but scored.
const SCORED_ONE_IN: u64 = 10;

/// Whether the message of that number, from 0, is scored: the first one is, so that the shortest input has one.
pub fn is_scored(number: u64) -> bool {
    number.is_multiple_of(SCORED_ONE_IN)
}

struct Lookup {
    settings: JobSettings,
}

impl Job for Lookup {
    fn parts(&self) -> &'static [Part] {
        &[Part::Load, Part::Run]
    }

    fn client(&self, part: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        if part == Part::Load {
            let share = Share::open(&self.settings, source, Box::new(|number| !is_scored(number)))?;
            return Ok(Box::new(Batch::new(share)));
        }
        let questions = Questions {
            messages: Messages::open(&self.settings, source)?,
            terms: Terms::of(self.settings.ngrams),
            index: u64::from(index),
            of: u64::from(at.clients),
            scored: 0,
            expected: Expected::open(source)?,
        };
        Ok(Box::new(Scorer::new(questions, self.settings.ngrams.order as usize, self.settings.via == Via::Batch)))
    }
}

/// The messages that one client scores, with what it must hear: of those that are scored each `of`th.
struct Questions {
    messages: Messages,
    /// Those of the message under way.
    terms: Terms,
    index: u64,
    of: u64,
    /// Messages to be scored so far, of all clients.
    scored: u64,
    expected: Expected,
}

impl Questions {
    /// Goes on to this client's next message; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        self.terms.clear();
        loop {
            let is_scored = is_scored(self.messages.count());
            let mine = is_scored && self.scored % self.of == self.index;
            let terms = &mut self.terms;
            let read = self.messages.read(|message| {
                if mine {
                    terms.read(message);
                }
            })?;
            if !read {
                return Ok(false);
            }
            if is_scored {
                self.scored += 1;
                self.expected.next(mine)?;
            }
            if mine {
                return Ok(true);
            }
        }
    }
}

/// What the expected state tells beforehand of the messages that are scored, in their order. As bytes, lowest first: N
/// in 8; then for each message in 4 how many n-grams it has, their counts in 8 each, and its score in 8.
struct Expected {
    reader: Box<dyn BufRead>,
    source: String,
    /// The units that were counted: N.
    all: u64,
    /// Of the message under way.
    counts: Vec<u64>,
    score: f64,
}

impl Expected {
    fn open(source: &dyn Source) -> io::Result<Expected> {
        let (reader, source) = (source.expected()?, source.name().to_string());
        let mut expected = Expected { reader, source, all: 0, counts: Vec::new(), score: 0.0 };
        expected.all = expected.number()?;
        Ok(expected)
    }

    /// Goes on to the next message, or past it.
    fn next(&mut self, is_wanted: bool) -> Result<(), InputFault> {
        let read = if is_wanted { self.read() } else { self.pass() };
        let source = &self.source;
        let what = |error: io::Error| format!("the expected counts cannot be read: {error}");
        read.map_err(|error| InputFault { source: source.clone(), line: 0, what: what(error) })
    }

    fn read(&mut self) -> io::Result<()> {
        self.counts.clear();
        for _ in 0..self.length()? {
            let count = self.number()?;
            self.counts.push(count);
        }
        self.score = f64::from_bits(self.number()?);
        Ok(())
    }

    fn pass(&mut self) -> io::Result<()> {
        for _ in 0..=self.length()? {
            self.number()?;
        }
        Ok(())
    }

    fn length(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
