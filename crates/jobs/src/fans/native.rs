//! The native way: one question a profile, by the store's own means of counting. A page's own name counts its fans.

use super::turn::{Next, Turn};
use super::{Share, shown, wrong};
use crate::people::Profiles;
use crate::{Ask, Client, Heard};
use kvfair_core::op::{Op, Reply};

pub struct Native {
    turn: Turn,
    under_way: bool,
    ended: bool,
}

impl Native {
    pub fn new(share: Share, profiles: Profiles) -> Native {
        Native { turn: Turn::new(share, profiles), under_way: false, ended: false }
    }
}

impl Client for Native {
    fn ask(&mut self) -> Ask<'_> {
        if self.under_way {
            return Ask::Wait;
        }
        if self.ended {
            return Ask::End;
        }
        match self.turn.next() {
            Ok(Next::Part) => {
                self.under_way = true;
                let (records, fields) = (self.turn.names.lend(), self.turn.pages.names());
                Ask::Op(Op::Tally { records, fields, by: 1 })
            }
            Ok(Next::Empty) => Ask::Unit,
            Ok(Next::End) => {
                self.ended = true;
                Ask::End
            }
            Err(fault) => {
                self.ended = true;
                Ask::Fail(fault)
            }
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.under_way = false;
        match *reply {
            Reply::Done => Heard::Unit { counted: self.turn.counted },
            other => wrong(self.turn.names.lend().get(0), "that it was counted", shown(other)),
        }
    }

    fn skipped(&self) -> u64 {
        self.turn.skipped()
    }
}
