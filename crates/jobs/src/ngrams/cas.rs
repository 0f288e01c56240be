//! The way `cas`: gets a term's count with its version, and sets the new count. After a conflict it gets it again.
//! Counts are values in decimal.

use super::{STEP, Share, wrong};
use crate::{Ask, Client, Heard};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Op, Reply};

pub struct Cas {
    share: Share,
    /// How many terms of the message are counted.
    done: usize,
    step: Step,
    count: itoa::Buffer,
    conflicts: u64,
}

#[derive(Clone, Copy)]
enum Step {
    /// The next message may be read.
    Read,
    Get,
    Got,
    /// This count may be set: over the version that was got, or else where there is none.
    Counted(i64, Option<u64>),
    Set,
    Ended,
}

impl Cas {
    pub fn new(share: Share) -> Cas {
        Cas { share, done: 0, step: Step::Read, count: itoa::Buffer::new(), conflicts: 0 }
    }

    fn term(&self) -> &[u8] {
        self.share.terms.get(self.done)
    }

    fn wrong(&self, expected: &str, reply: Reply<'_>) -> Heard {
        wrong(self.term(), expected.to_string(), reply)
    }

    fn finish(&mut self) -> Heard {
        self.done += 1;
        if self.done < self.share.terms.len() {
            self.step = Step::Get;
            return Heard::More;
        }
        self.step = Step::Read;
        Heard::Unit { counted: 1 }
    }
}

impl Client for Cas {
    fn ask(&mut self) -> Ask<'_> {
        if let Step::Read = self.step {
            match self.share.turn() {
                Ok(true) if self.share.terms.is_empty() => return Ask::Unit,
                Ok(true) => (self.done, self.step) = (0, Step::Get),
                Ok(false) => self.step = Step::Ended,
                Err(fault) => {
                    self.step = Step::Ended;
                    return Ask::Fail(fault);
                }
            }
        }
        match self.step {
            Step::Get => {
                self.step = Step::Got;
                Ask::Op(Op::GetVersion(self.term()))
            }
            Step::Counted(count, version) => {
                self.step = Step::Set;
                let (key, value) = (self.share.terms.get(self.done), self.count.format(count).as_bytes());
                Ask::Op(match version {
                    Some(version) => Op::Cas { key, version, value },
                    None => Op::SetIfAbsent { key, value },
                })
            }
            Step::Read | Step::Got | Step::Set => Ask::Wait,
            Step::Ended => Ask::End,
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        match (self.step, *reply) {
            (Step::Got, Reply::Missing) => self.step = Step::Counted(STEP, None),
            (Step::Got, Reply::Versioned(value, version)) => {
                let count = str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
                match count.and_then(|count| count.checked_add(STEP)) {
                    Some(count) => self.step = Step::Counted(count, Some(version)),
                    None => return self.wrong("a count in decimal", *reply),
                }
            }
            (Step::Set, Reply::Done) => return self.finish(),
            (Step::Set, Reply::Conflict) => {
                self.conflicts += 1;
                self.step = Step::Get;
            }
            (Step::Set, other) => return self.wrong("that it was set, or a conflict", other),
            (_, other) => return self.wrong("a count with its version, or none", other),
        }
        Heard::More
    }

    fn skipped(&self) -> u64 {
        self.share.skipped()
    }

    fn counted(&self) -> Metrics {
        Metrics { conflicts: self.conflicts, ..Metrics::default() }
    }
}
