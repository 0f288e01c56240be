//! Who scores messages: asks for the counts of all n-grams of a message, each once, and holds counts and score against
//! those that are expected.

use super::Questions;
use super::score::log10_score;
use crate::{Ask, Client, Heard, InputFault};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{KeyList, Op, Reply, Wrong, readable};

/// So many questions ahead a term is told: memory takes about as long to answer as two of them take to be asked.
const AHEAD: usize = 2;
/// How many bytes of a term a message about it shows.
const SHOWN_BYTES: usize = 100;

pub struct Scorer {
    questions: Questions,
    order: usize,
    /// All n-grams of a message are asked for in one op.
    is_batched: bool,
    /// The n-grams of the message under way, each once, in the order in which they first occur.
    keys: KeyList,
    /// For each run of the message the place of its n-gram among the keys.
    places: Vec<usize>,
    /// Where the runs begin that begin at each of its units.
    begins: Vec<usize>,
    /// Runs by their bytes.
    sorted: Vec<usize>,
    /// What was heard of the keys so far.
    counts: Vec<u64>,
    asked: usize,
    /// N-grams that were counted and not found.
    misses: u64,
    /// The same, of the messages before this one.
    misses_before: u64,
}

impl Scorer {
    pub fn new(questions: Questions, order: usize, is_batched: bool) -> Scorer {
        Scorer {
            questions,
            order,
            is_batched,
            keys: KeyList::default(),
            places: Vec::new(),
            begins: Vec::new(),
            sorted: Vec::new(),
            counts: Vec::new(),
            asked: 0,
            misses: 0,
            misses_before: 0,
        }
    }

    /// Goes on to the next message; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        self.asked = 0;
        self.counts.clear();
        self.misses_before = self.misses;
        let read = self.questions.turn()?;
        self.place_runs();
        Ok(read)
    }

    /// Which runs of the message are the same n-gram.
    fn place_runs(&mut self) {
        let terms = &self.questions.terms;
        self.sorted.clear();
        self.sorted.extend(0..terms.len());
        self.sorted.sort_unstable_by_key(|&run| (terms.get(run), run));
        self.places.resize(terms.len(), 0);
        for same in self.sorted.chunk_by(|one, other| terms.get(*one) == terms.get(*other)) {
            same.iter().for_each(|&run| self.places[run] = same[0]);
        }
        self.keys.clear();
        for run in 0..terms.len() {
            let first = self.places[run];
            self.places[run] = if first == run { self.keys.lend().len() } else { self.places[first] };
            if first == run {
                self.keys.push(terms.get(run));
            }
        }
        self.begins.clear();
        let units = terms.units();
        let mut begin = 0;
        for unit in 0..units {
            self.begins.push(begin);
            begin += self.order.min(units - unit);
        }
    }

    /// Takes down the count of the next key, or says what is wrong with it. Whether one that is missing may be is for
    /// who knows the store.
    fn take(&mut self, found: Option<i64>) -> Result<(), Wrong> {
        let place = self.counts.len();
        let expected = self.questions.expected.counts.get(place).copied().unwrap_or(0);
        self.counts.push(found.unwrap_or(0) as u64);
        match found {
            None => {
                self.misses += u64::from(expected > 0);
                Ok(())
            }
            Some(count) if count == expected as i64 => Ok(()),
            Some(count) => Err(self.wrong(place, &count.to_string())),
        }
    }

    #[cold]
    fn wrong(&self, place: usize, found: &str) -> Wrong {
        let keys = self.keys.lend();
        let expected = match self.questions.expected.counts.get(place) {
            None | Some(0) => "nothing".to_string(),
            Some(count) => count.to_string(),
        };
        let key = if place < keys.len() { readable(keys.get(place), SHOWN_BYTES) } else { "(none)".to_string() };
        Wrong { key, expected, found: found.chars().take(SHOWN_BYTES).collect() }
    }

    /// The score of a message of which every count was heard.
    fn score(&self) -> Result<(), Wrong> {
        let Questions { terms, expected, .. } = &self.questions;
        let count = |first: usize, length: usize| self.counts[self.places[self.begins[first] + length - 1]];
        let score = log10_score(terms.units(), self.order, expected.all, count);
        if score.to_bits() == expected.score.to_bits() || self.misses > self.misses_before {
            return Ok(());
        }
        let number = self.questions.messages.count();
        let key = format!("(score of message {number})");
        Err(Wrong { key, expected: expected.score.to_string(), found: score.to_string() })
    }

    fn heard(&mut self, reply: &Reply<'_>) -> Result<(), Wrong> {
        match *reply {
            Reply::Number(count) => self.take(Some(count)),
            Reply::Missing => self.take(None),
            Reply::Numbers(counts) if counts.len() == self.keys.lend().len() => {
                counts.iter().try_for_each(|count| self.take(*count))
            }
            other => Err(self.wrong(self.counts.len(), &format!("{other:?}"))),
        }
    }
}

impl Client for Scorer {
    fn ask(&mut self) -> Ask<'_> {
        let all = self.keys.lend().len();
        if self.asked == all {
            if self.counts.len() < all {
                return Ask::Wait;
            }
            match self.turn() {
                Ok(true) if self.keys.lend().is_empty() => return Ask::Unit,
                Ok(true) => {}
                Ok(false) => return Ask::End,
                Err(fault) => return Ask::Fail(fault),
            }
        }
        let keys = self.keys.lend();
        if self.is_batched {
            self.asked = keys.len();
            return Ask::Op(Op::NumberMany(keys));
        }
        self.asked += 1;
        Ask::Op(Op::Number(keys.get(self.asked - 1)))
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let heard = self.heard(reply).and_then(|()| match self.counts.len() == self.keys.lend().len() {
            true => self.score().map(|()| Heard::Unit { counted: 1 }),
            false => Ok(Heard::More),
        });
        heard.unwrap_or_else(Heard::Wrong)
    }

    fn coming(&self) -> Option<&[u8]> {
        let (soon, keys) = (self.asked + AHEAD, self.keys.lend());
        (soon < keys.len()).then(|| keys.get(soon))
    }

    fn skipped(&self) -> u64 {
        if self.questions.index == 0 { self.questions.messages.skipped() } else { 0 }
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }
}
