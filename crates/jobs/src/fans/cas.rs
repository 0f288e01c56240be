//! The way of check-and-set: a value is got with its version and set only if nobody was faster; else it is asked again.

use super::turn::{Next, Turn};
use super::{Merge, Share, read_fault, shown, wrong};
use crate::people::Profiles;
use crate::{Ask, Client, Heard};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Op, Reply};

pub struct Cas {
    merge: Merge,
    turn: Turn,
    /// How many of the owned pages are finished.
    done: usize,
    step: Step,
    record: Vec<u8>,
    conflicts: u64,
}

enum Step {
    /// The next profile may be read.
    Read,
    Get,
    Got,
    /// The merged record may be set: where a version was got, over that; else where there is none.
    Merged(Option<u64>),
    Set,
    Ended,
}

impl Cas {
    pub fn new(share: Share, profiles: Profiles, merge: Merge) -> Cas {
        Cas { merge, turn: Turn::new(share, profiles), done: 0, step: Step::Read, record: Vec::new(), conflicts: 0 }
    }

    fn name(&self) -> &[u8] {
        self.turn.names.lend().get(self.done)
    }
}

impl Client for Cas {
    fn ask(&mut self) -> Ask<'_> {
        if let Step::Read = self.step {
            match self.turn.next() {
                Ok(Next::Part) => (self.done, self.step) = (0, Step::Get),
                Ok(Next::Empty) => return Ask::Unit,
                Ok(Next::End) => self.step = Step::Ended,
                Err(fault) => {
                    self.step = Step::Ended;
                    return Ask::Fail(fault);
                }
            }
        }
        let key = self.turn.names.lend();
        match self.step {
            Step::Get => {
                self.step = Step::Got;
                Ask::Op(Op::GetVersion(key.get(self.done)))
            }
            Step::Merged(version) => {
                self.step = Step::Set;
                let (key, value) = (key.get(self.done), self.record.as_slice());
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
        let (old, version) = match (&self.step, *reply) {
            (Step::Got, Reply::Versioned(old, version)) => (Some(old), Some(version)),
            (Step::Got, Reply::Missing) => (None, None),
            (Step::Set, Reply::Done) => return self.finish(),
            (Step::Set, Reply::Conflict) => {
                self.conflicts += 1;
                self.step = Step::Get;
                return Heard::More;
            }
            (Step::Set, other) => return wrong(self.name(), "that it was set, or a conflict", shown(other)),
            (_, other) => return wrong(self.name(), "a value with its version, or none", shown(other)),
        };
        let page = self.turn.owned[self.done];
        match (self.merge)(old, page, &self.turn.pages, &mut self.record) {
            Ok(_) => {
                self.step = Step::Merged(version);
                Heard::More
            }
            Err(broken) => wrong(self.name(), "a fans record", read_fault(old, &broken)),
        }
    }

    fn skipped(&self) -> u64 {
        self.turn.skipped()
    }

    fn counted(&self) -> Metrics {
        Metrics { conflicts: self.conflicts, ..Metrics::default() }
    }
}

impl Cas {
    fn finish(&mut self) -> Heard {
        self.done += 1;
        if self.done < self.turn.owned.len() {
            self.step = Step::Get;
            return Heard::More;
        }
        self.step = Step::Read;
        Heard::Unit { counted: self.turn.counted }
    }
}
