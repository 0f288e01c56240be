//! Connections that are lost and opened again, where that is wanted. What was under way on them is asked once more;
//! the time of a request goes on from its first asking.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::{Hand, Party, Shared};
use crate::drive::{Stopped, Work};
use crate::jobs::Ask;
use crate::stores::blocking::Line;
use crate::words::op::Fault;

/// So often a connection is opened without a single answer on it, and so far apart: whoever restarts a server or cuts
/// connections is given a second.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_millis(100);

/// A connection that is not open again yet.
pub(super) struct Lost {
    place: usize,
    /// When it is to be tried next.
    next: Instant,
    why: Stopped,
}

impl Hand {
    /// A connection is of no more use: the end of all, unless it may be opened again.
    #[cold]
    pub(super) fn lose(&mut self, place: usize, why: Stopped) -> Result<(), Stopped> {
        let party = &mut self.parties[place];
        let is_lost = matches!(&why, Stopped::Line { fault: Fault::Lost(_), .. });
        if !self.reopens || !is_lost {
            return Err(why);
        }
        if party.state.over() {
            return Ok(());
        }
        if party.state.tries == TRIES {
            return Err(given_up(why, "it was lost again before it had answered anything"));
        }
        // What it has said and what is not sent yet is asked anew.
        party.is_lost = true;
        party.make_owed(&mut self.shared.counts)?;
        let fd = party.line.stream.as_fd().as_raw_fd();
        self.shared.poll.registry().deregister(&mut SourceFd(&fd)).map_err(broken)?;
        let wait = if party.state.tries == 0 { Duration::ZERO } else { WAIT };
        self.lost.push(Lost { place, next: Instant::now() + wait, why });
        Ok(())
    }

    /// Tries to open what is lost, each when its time has come.
    #[cold]
    pub(super) fn reopen(&mut self, work: &Work<'_>) -> Result<(), Stopped> {
        for lost in std::mem::take(&mut self.lost) {
            let Lost { place, next, why } = lost;
            if next > Instant::now() {
                self.lost.push(Lost { place, next, why });
                continue;
            }
            let party = &mut self.parties[place];
            party.state.tries += 1;
            match work.store.line().unwrap_or_else(|| Err(Fault::Unsupported("no connections".to_string()))) {
                Ok(line) => {
                    self.shared.counts.seen.reconnects += 1;
                    if let Err(stopped) = party.resume(line, &self.shared) {
                        self.lose(place, stopped)?;
                    }
                }
                Err(fault) if party.state.tries == TRIES => return Err(given_up(why, &fault.to_string())),
                Err(_) => self.lost.push(Lost { place, next: Instant::now() + WAIT, why }),
            }
        }
        Ok(())
    }
}

impl Party {
    /// Goes on with a new connection: what is not answered is asked again, in the same order.
    fn resume(&mut self, line: Line, shared: &Shared) -> Result<(), Stopped> {
        self.commands_before += self.commands();
        self.greeted = line.codec.commands();
        self.line = line;
        self.opened = Instant::now();
        self.is_lost = false;
        self.unread.clear();
        self.unsent.clear();
        let fd = self.line.stream.as_fd().as_raw_fd();
        shared.poll.registry().register(&mut SourceFd(&fd), Token(self.place), Interest::READABLE).map_err(broken)?;
        let again = self.state.under_way;
        if again > 0 && !self.client.again() {
            let fault = Fault::Unsupported("what was under way cannot be asked twice".to_string());
            return Err(Stopped::Line { name: self.line.name.clone(), fault });
        }
        for _ in 0..again {
            let Ask::Op(op) = self.client.ask() else { unreachable!("what was asked can be asked again") };
            let said = self.line.codec.say(&op, self.unsent.end());
            said.map_err(|fault| Stopped::store(op.name(), op.key(), fault))?;
        }
        self.send_asked(&shared.poll).map_err(|error| self.lost(error))
    }
}

/// What made it be lost, and why it stays so.
fn given_up(why: Stopped, because: &str) -> Stopped {
    match why {
        Stopped::Line { name, fault: Fault::Lost(error) } => {
            let what = format!("{error}; opening it again, {TRIES} times at most, did not help: {because}");
            Stopped::Line { name, fault: Fault::Lost(io::Error::new(error.kind(), what)) }
        }
        other => other,
    }
}

fn broken(error: io::Error) -> Stopped {
    Stopped::Session(Fault::Lost(error))
}
