//! One op for each term: an increment, which answers with the new count, or an add, which does not. The ways
//! `portable` and `native`.

use super::{STEP, Share, wrong};
use crate::{Ask, Client, Heard};
use kvfair_core::op::{Op, Reply};

/// So many questions ahead a term is told: memory takes about as long to answer as two of them take to be asked.
const AHEAD: usize = 2;

pub struct OneByOne {
    share: Share,
    adds: bool,
    /// Of the message under way: how many of its terms were asked, and how many of those answered.
    asked: usize,
    heard: usize,
}

impl OneByOne {
    pub fn incrementing(share: Share) -> OneByOne {
        OneByOne { share, adds: false, asked: 0, heard: 0 }
    }

    pub fn adding(share: Share) -> OneByOne {
        OneByOne { share, adds: true, asked: 0, heard: 0 }
    }
}

impl Client for OneByOne {
    #[inline]
    fn ask(&mut self) -> Ask<'_> {
        if self.asked == self.share.terms.len() {
            if self.heard < self.asked {
                return Ask::Wait;
            }
            (self.asked, self.heard) = (0, 0);
            match self.share.turn() {
                Ok(true) if self.share.terms.is_empty() => return Ask::Unit,
                Ok(true) => {}
                Ok(false) => return Ask::End,
                Err(fault) => return Ask::Fail(fault),
            }
        }
        self.asked += 1;
        let key = self.share.terms.get(self.asked - 1);
        Ask::Op(if self.adds { Op::Add { key, by: STEP } } else { Op::Increment { key, by: STEP } })
    }

    #[inline]
    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.heard += 1;
        match *reply {
            Reply::Number(count) if count >= STEP && !self.adds => {}
            Reply::Done if self.adds => {}
            other => {
                let expected = if self.adds { "done".to_string() } else { format!("a number of at least {STEP}") };
                return wrong(self.share.terms.get(self.heard - 1), expected, other);
            }
        }
        if self.heard == self.share.terms.len() { Heard::Unit { counted: 1 } } else { Heard::More }
    }

    /// Terms are known a message ahead, as they would be to any program that counts them.
    #[inline]
    fn coming(&self) -> Option<&[u8]> {
        let soon = self.asked + AHEAD;
        (soon < self.share.terms.len()).then(|| self.share.terms.get(soon))
    }

    fn skipped(&self) -> u64 {
        self.share.skipped()
    }
}
