//! Jobs: real work told as clients who ask and hear. A job knows neither stores nor sockets nor clocks.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::ops::RangeInclusive;

use input::{InputSample, Recognised};
use kvfair_core::fans::Encoding;
use kvfair_core::load::{At, Keys};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Alike, Op, Pattern, Reply, Wrong};
pub use kvfair_core::part::Part;
use kvfair_core::trial::{JobSettings, ReadAs, Via};

pub mod fans;
pub mod getset;
pub mod input;
pub mod keyed;
pub mod lines;
pub mod lookup;
pub mod merge;
pub mod mixed;
mod names;
pub mod ngrams;
pub mod packed;
pub mod people;
pub mod text;
pub mod trace;
pub mod ycsb;

/// Every job there is, in the order in which help and tables name them.
pub const ALL: &[&JobKind] = &[
    &fans::FANS,
    &ngrams::NGRAMS,
    &lookup::LOOKUP,
    &getset::GETSET,
    &mixed::MIXED,
    &ycsb::A,
    &ycsb::B,
    &ycsb::C,
    &ycsb::D,
    &ycsb::E,
    &ycsb::F,
    &trace::TRACE,
];

/// All that the rest of the program knows of a job, in one value.
pub struct JobKind {
    pub name: &'static str,
    pub about: &'static str,
    /// What is counted, in the singular: "profile".
    pub unit: &'static str,
    /// The option that scales the job, without dashes: "profiles".
    pub scale: &'static str,
    pub default_units: u64,
    pub default_seed: u64,
    /// The name of the recipe that makes the default data; empty for a job that must be given a file.
    pub recipe: &'static str,
    /// The forms in which a file may come; the first one is the recipe's. None for a job that reads nothing: its
    /// clients draw their questions.
    pub formats: &'static [&'static str],
    /// How a file is read, by its beginning and by what was asked for; nothing for a job that reads none.
    pub recognise: Option<Recognise>,
    /// What a line of a file must be, with an example of each form.
    pub expected: &'static str,
    /// What a job of requests asks unless it is told otherwise; nothing for the others.
    pub requests: Option<Requests>,
    /// The ways in which it can ask a store; the first one is the default.
    pub ways: &'static [Via],
    /// The options that few jobs have, of those that a job without requests may have.
    pub options: &'static [&'static str],
    /// How many ops it takes by each way.
    pub asked: fn(Via, &StreamCounts) -> RangeInclusive<u64>,
    /// How the end state is read back.
    pub end_state: fn(Via) -> EndState,
    /// Writes the recipe's data. Streams: memory does not grow with `units`.
    pub data: fn(seed: u64, units: u64, out: &mut dyn Write) -> io::Result<()>,
    pub open: fn(&JobSettings) -> Box<dyn Job>,
}

/// Tells the form of an input by its beginning, or what is wrong with it.
pub type Recognise = fn(&InputSample<'_>, &ReadAs) -> Result<Recognised, String>;

/// What the expected state has counted of a job's input, and how many clients share it.
#[derive(Clone, Copy, Debug)]
pub struct StreamCounts {
    /// Ops of the way that is the default.
    pub ops: u64,
    /// Units that ask something.
    pub asking_units: u64,
    pub clients: u64,
}

/// Of a job that has one way.
pub fn asked_once(_: Via, counts: &StreamCounts) -> RangeInclusive<u64> {
    counts.ops..=counts.ops
}

/// What a job of requests asks unless it is told otherwise. Its clients draw their questions, so that any number of
/// them can share the work.
pub struct Requests {
    /// As `--clients` takes them.
    pub clients: &'static str,
    pub records: u64,
    pub value_bytes: u32,
    /// So many gets to so many sets where both come mixed; 0 where they come one after the other.
    pub reads: u32,
    pub writes: u32,
    pub keys: Keys,
    /// What a read and a write are.
    pub reading: Reading,
    pub writing: Writing,
    /// The options that shape it.
    pub options: &'static [&'static str],
}

/// What a client does that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Get,
    /// Some records from a key on, in their order.
    Scan,
}

/// What a client does that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    Set,
    /// A record that is not there yet.
    Insert,
    /// A get, and a set of the same key once it is answered.
    ReadModifyWrite,
}

/// What a job leaves in a store, and so by which op it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    Values,
    /// Counts that are values in decimal.
    Decimals,
    Counters,
    /// Fields with counts, of which a value can be made.
    Tallies,
    /// Values in fewer bytes, of which the value can be made.
    Packed,
    /// Values that tell who set them and when; any client's last one of a key is right.
    Versions,
    /// Values that tell which recorded request set them; keys may be missing where a store evicts by its own account.
    Recorded,
}

/// Questions that one client keeps under way while data is loaded, where a store can take several.
pub const LOAD_DEPTH: u32 = 512;
/// Bytes of their values at most: memory is the store's, and nobody is to wait for a gigabyte.
pub const LOAD_BYTES: u32 = 4 << 20;

impl JobKind {
    /// How the end state of a trial of that job is read back.
    pub fn left_by(&self, job: &JobSettings) -> EndState {
        match (self.end_state)(job.via) {
            EndState::Values if job.fans.encoding == Encoding::Binary => EndState::Packed,
            other => other,
        }
    }
}

/// Opens a job's input once more from its beginning.
pub trait Source: Send + Sync {
    /// What messages call it: the file's path, or the recipe.
    fn name(&self) -> &str;
    fn open(&self) -> io::Result<Box<dyn BufRead>>;
    /// What a client must hear, for a job whose expected state tells that beforehand, in that job's own form.
    fn expected(&self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::other("the expected answers are missing"))
    }
}

/// A piece of real work, told as a number of clients who each know only their own part.
pub trait Job: Send + Sync {
    /// What is done, in this order.
    fn parts(&self) -> &'static [Part] {
        &[Part::Run]
    }

    /// Whether its clients make records besides those that were loaded.
    fn inserts(&self) -> bool {
        false
    }

    /// Whether its clients set what they did not find, so that misses are what it measures and each is one op more.
    fn fills(&self) -> bool {
        false
    }

    /// Whether a get that finds nothing is no fault.
    fn may_miss(&self) -> bool {
        self.fills()
    }

    /// Client `index`, counted from 0, of those who do a part of a point together. Called on the thread that drives it.
    ///
    /// Where requests come at a rate it would ask all of the point's: who drives it stops asking.
    fn client(&self, part: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>>;
}

/// One simulated client: asks, hears, asks again. It never sees a store, a socket or a clock.
///
/// A driver that keeps several questions under way calls `ask` again before `hear`; answers come in the order of the
/// questions.
pub trait Client {
    fn ask(&mut self) -> Ask<'_>;
    fn hear(&mut self, reply: &Reply<'_>) -> Heard;
    /// What its next questions are, where they are all alike: at most so many. They may then be written by `write`
    /// instead of asked for one by one.
    fn alike(&self, _most: u32) -> Option<Alike<'_>> {
        None
    }
    /// Appends its next questions, so many that are alike, in that pattern.
    fn write(&mut self, _count: u32, _pattern: Pattern<'_>, _out: &mut Vec<u8>) {}
    /// Whether all that it waits for are sets, whose answers may then be told by `done`.
    fn sets_only(&self) -> bool {
        false
    }
    /// Hears that so many sets were done: the units that this finished.
    fn done(&mut self, _count: u32) -> u64 {
        0
    }
    /// Itself, where it is such a client: whoever asks much then asks it directly.
    fn keyed(&mut self) -> Option<&mut keyed::Keyed> {
        None
    }
    /// Takes back the questions that it has asked and not heard of: `ask` gives them once more, in their order. Whether
    /// it can: whoever adds something cannot know whether that was done.
    fn again(&mut self) -> bool {
        false
    }
    /// Draws no more questions: what was begun is finished, and then it is at its end.
    fn stop(&mut self) {}
    /// Questions that it has drawn so far, where whoever checks can draw them again.
    fn drawn(&self) -> Option<u64> {
        None
    }
    /// When its next request is due, in nanoseconds from the beginning, where the job itself knows; nothing behind the
    /// last one.
    fn due_ns(&mut self) -> Option<u64> {
        None
    }
    /// A key that will be asked soon, not at once, where one is known: a store may look for it meanwhile.
    fn coming(&self) -> Option<&[u8]> {
        None
    }
    /// Bad lines of the input that were passed over so far, as `--skip-bad` allows.
    fn skipped(&self) -> u64 {
        0
    }
    /// What it alone can count, so far: misses and conflicts.
    fn counted(&self) -> Metrics {
        Metrics::default()
    }
}

/// What a client wants next.
#[derive(Debug)]
pub enum Ask<'a> {
    Op(Op<'a>),
    /// The next question depends on an answer that is still under way.
    Wait,
    /// A unit that needed no question is finished: an empty profile.
    Unit,
    /// The input is bad or gone; nothing more will be asked.
    Fail(InputFault),
    End,
}

/// What an answer meant to a client.
#[derive(Debug, PartialEq)]
pub enum Heard {
    More,
    /// This client's part of a unit is finished; `counted` is 1 for the one client that counts it and 0 for the others.
    Unit {
        counted: u64,
    },
    Wrong(Wrong),
}

/// Something is wrong with a job's input: where, and what.
#[derive(Clone, Debug)]
pub struct InputFault {
    pub source: String,
    /// Counted from 1; 0 where no line can be named.
    pub line: u64,
    pub what: String,
}

impl InputFault {
    /// The input could not be opened at all.
    pub fn opening(source: &dyn Source, error: &io::Error) -> InputFault {
        InputFault { source: source.name().to_string(), line: 0, what: error.to_string() }
    }
}

impl fmt::Display for InputFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.source, self.what),
            line => write!(out, "{}:{line}: {}", self.source, self.what),
        }
    }
}

impl std::error::Error for InputFault {}

/// The job of that name.
pub fn find(name: &str) -> Option<&'static JobKind> {
    ALL.iter().copied().find(|job| job.name == name)
}

/// Input that is kept in memory, for tests: it is read in blocks of three bytes, so that line ends are cut in two.
pub struct Text(pub String);

impl Source for Text {
    fn name(&self) -> &str {
        "text"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(io::BufReader::with_capacity(3, io::Cursor::new(self.0.clone()))))
    }
}

/// The job of CONTRIBUTING.md, where it would stand.
#[cfg(test)]
#[path = "../../../examples/contributing/sessions.rs"]
mod sessions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_contributing_draws_its_data() {
        let kind = &sessions::SESSIONS;
        assert!(ALL.iter().all(|known| known.name != kind.name), "CONTRIBUTING.md adds what is there");
        let mut data = Vec::new();
        (kind.data)(kind.default_seed, 100, &mut data).expect("memory takes it");
        assert_eq!(data.iter().filter(|byte| **byte == b'\n').count(), 100);
    }
}
