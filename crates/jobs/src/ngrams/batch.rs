//! The way `batch`: the terms of a message in one op, each once with what it is worth.

use super::{STEP, Share, wrong};
use crate::{Ask, Client, Heard, InputFault};
use kvfair_core::op::{Op, Reply, SumList};

pub struct Batch {
    share: Share,
    /// Places of the terms, in the order of their bytes.
    order: Vec<usize>,
    sums: SumList,
    waits: bool,
}

impl Batch {
    pub fn new(share: Share) -> Batch {
        Batch { share, order: Vec::new(), sums: SumList::default(), waits: false }
    }

    /// Sums up the client's next message; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        let read = self.share.turn()?;
        let terms = &self.share.terms;
        self.order.clear();
        self.order.extend(0..terms.len());
        self.order.sort_unstable_by_key(|place| terms.get(*place));
        self.sums.clear();
        for same in self.order.chunk_by(|one, other| terms.get(*one) == terms.get(*other)) {
            self.sums.push(terms.get(same[0]), same.len() as i64 * STEP);
        }
        Ok(read)
    }
}

impl Client for Batch {
    fn ask(&mut self) -> Ask<'_> {
        if self.waits {
            return Ask::Wait;
        }
        match self.turn() {
            Ok(true) if self.sums.is_empty() => Ask::Unit,
            Ok(true) => {
                self.waits = true;
                Ask::Op(Op::AddMany(self.sums.lend()))
            }
            Ok(false) => Ask::End,
            Err(fault) => Ask::Fail(fault),
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.waits = false;
        match *reply {
            Reply::Done => Heard::Unit { counted: 1 },
            other => wrong(self.share.terms.get(self.order[0]), "done".to_string(), other),
        }
    }

    fn skipped(&self) -> u64 {
        self.share.skipped()
    }
}
