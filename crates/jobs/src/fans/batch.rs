//! The batch way: a profile's pages are got in one question, changed, and set in another.

use super::turn::{Next, Turn};
use super::{Merge, Share, read_fault, shown, wrong};
use crate::people::Profiles;
use crate::{Ask, Client, Heard};
use kvfair_core::op::{KeyList, Op, Pairs, Reply};

pub struct Batch {
    merge: Merge,
    turn: Turn,
    step: Step,
    /// The merged records, in the order of the names, and the one that is being merged.
    records: KeyList,
    record: Vec<u8>,
}

enum Step {
    /// The next profile may be read.
    Read,
    Got,
    Merged,
    Set,
    Ended,
}

impl Batch {
    pub fn new(share: Share, profiles: Profiles, merge: Merge) -> Batch {
        Batch {
            merge,
            turn: Turn::new(share, profiles),
            step: Step::Read,
            records: KeyList::default(),
            record: Vec::new(),
        }
    }
}

impl Client for Batch {
    fn ask(&mut self) -> Ask<'_> {
        match self.step {
            Step::Read => match self.turn.next() {
                Ok(Next::Part) => {
                    self.step = Step::Got;
                    Ask::Op(Op::GetMany(self.turn.names.lend()))
                }
                Ok(Next::Empty) => Ask::Unit,
                Ok(Next::End) => {
                    self.step = Step::Ended;
                    Ask::End
                }
                Err(fault) => {
                    self.step = Step::Ended;
                    Ask::Fail(fault)
                }
            },
            Step::Merged => {
                self.step = Step::Set;
                Ask::Op(Op::SetMany(Pairs { keys: self.turn.names.lend(), values: self.records.lend() }))
            }
            Step::Got | Step::Set => Ask::Wait,
            Step::Ended => Ask::End,
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let first = self.turn.names.lend().get(0);
        match (&self.step, *reply) {
            (Step::Got, Reply::Values(values)) if values.len() == self.turn.owned.len() => {
                self.records.clear();
                for (&page, old) in self.turn.owned.iter().zip(values.iter()) {
                    if let Err(broken) = (self.merge)(old, page, &self.turn.pages, &mut self.record) {
                        let name = self.turn.pages.names().get(page);
                        return wrong(name, "a fans record", read_fault(old, &broken));
                    }
                    self.records.push(&self.record);
                }
                self.step = Step::Merged;
                Heard::More
            }
            (Step::Set, Reply::Done) => {
                self.step = Step::Read;
                Heard::Unit { counted: self.turn.counted }
            }
            (Step::Set, other) => wrong(first, "that they were set", shown(other)),
            (_, other) => wrong(first, "a value or none for every page", shown(other)),
        }
    }

    fn skipped(&self) -> u64 {
        self.turn.skipped()
    }
}
