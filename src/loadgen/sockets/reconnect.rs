//! Connections that are lost and opened again, where that is wanted. What was under way on them is asked once more;
//! the time of a request goes on from its first asking.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::{GeneratorThread, Shared, SimulatedClient};
use crate::jobs::Ask;
use crate::loadgen::{Stopped, Work};
use crate::model::op::Fault;
use crate::stores::blocking::Connection;

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

impl GeneratorThread {
    /// A connection is of no more use: the end of all, unless it may be opened again.
    #[cold]
    pub(super) fn lose(&mut self, place: usize, why: Stopped) -> Result<(), Stopped> {
        let client = &mut self.clients[place];
        let is_lost = matches!(&why, Stopped::Connection { fault: Fault::Lost(_), .. });
        if !self.reopens || !is_lost {
            return Err(why);
        }
        if client.state.over() {
            return Ok(());
        }
        if client.state.tries == TRIES {
            return Err(given_up(why, "it was lost again before it had answered anything"));
        }
        // What it has said and what is not sent yet is asked anew.
        client.is_lost = true;
        client.make_owed(&mut self.shared.counts)?;
        let fd = client.connection.stream.as_fd().as_raw_fd();
        self.shared.poll.registry().deregister(&mut SourceFd(&fd)).map_err(broken)?;
        let wait = if client.state.tries == 0 { Duration::ZERO } else { WAIT };
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
            let client = &mut self.clients[place];
            client.state.tries += 1;
            match work.store.connection().unwrap_or_else(|| Err(Fault::Unsupported("no connections".to_string()))) {
                Ok(connection) => {
                    self.shared.counts.seen.metrics.reconnects += 1;
                    if let Err(stopped) = client.resume(connection, &self.shared) {
                        self.lose(place, stopped)?;
                    }
                }
                Err(fault) if client.state.tries == TRIES => return Err(given_up(why, &fault.to_string())),
                Err(_) => self.lost.push(Lost { place, next: Instant::now() + WAIT, why }),
            }
        }
        Ok(())
    }
}

impl SimulatedClient {
    /// Goes on with a new connection: what is not answered is asked again, in the same order.
    fn resume(&mut self, connection: Connection, shared: &Shared) -> Result<(), Stopped> {
        self.commands_before += self.commands();
        self.greeted = connection.codec.commands();
        self.connection = connection;
        self.opened = Instant::now();
        self.is_lost = false;
        self.unread.clear();
        self.state.gathered = 0;
        self.backlog.clear();
        let fd = self.connection.stream.as_fd().as_raw_fd();
        shared.poll.registry().register(&mut SourceFd(&fd), Token(self.place), Interest::READABLE).map_err(broken)?;
        let again = self.state.under_way;
        if again > 0 && !self.client.again() {
            let fault = Fault::Unsupported("what was under way cannot be asked twice".to_string());
            return Err(Stopped::Connection { name: self.connection.name.clone(), fault });
        }
        for _ in 0..again {
            let Ask::Op(op) = self.client.ask() else { unreachable!("what was asked can be asked again") };
            let written = self.connection.codec.say(&op, self.backlog.end());
            written.map_err(|fault| Stopped::store(op.name(), op.key(), fault))?;
        }
        self.send_asked(&shared.poll).map_err(|error| self.lost(error))
    }
}

/// What made it be lost, and why it stays so.
fn given_up(why: Stopped, because: &str) -> Stopped {
    match why {
        Stopped::Connection { name, fault: Fault::Lost(error) } => {
            let what = format!("{error}; opening it again, {TRIES} times at most, did not help: {because}");
            Stopped::Connection { name, fault: Fault::Lost(io::Error::new(error.kind(), what)) }
        }
        other => other,
    }
}

fn broken(error: io::Error) -> Stopped {
    Stopped::Session(Fault::Lost(error))
}
