//! What connections have to say: first all are heard that have something to tell, then all that was made of it is sent.
//! A system call that is made again and again costs less than two in turn, likely because their code and data drive
//! each other out of the processor's caches.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};

use super::{GeneratorThread, SimulatedClient};
use crate::loadgen::Stopped;
use crate::stores::blocking::Connection;

/// So much is sent without hearing the rest first: it is still in the cache, and no server waits for long.
const SEND_BYTES: usize = 16 << 10;

/// Of connections one after another.
#[derive(Default)]
pub(super) struct SendQueue {
    /// To write on behind what others have said.
    pub(super) bytes: Vec<u8>,
    /// Whose these are, and where each one's end.
    parts: Vec<(usize, usize)>,
}

impl SendQueue {
    /// What was written since the last time is what the connection at that place says.
    #[inline]
    pub(super) fn by(&mut self, place: usize) {
        if self.parts.last().map_or(0, |&(_, end)| end) < self.bytes.len() {
            self.parts.push((place, self.bytes.len()));
        }
    }

    #[inline]
    pub(super) fn is_much(&self) -> bool {
        self.bytes.len() >= SEND_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
}

impl GeneratorThread {
    /// Sends all that is said, but for what is said on lost connections: that is asked anew.
    #[inline]
    pub(super) fn send(&mut self) -> Result<(), Stopped> {
        let mut start = 0;
        for turn in 0..self.shared.send_queue.parts.len() {
            let (place, end) = self.shared.send_queue.parts[turn];
            let client = &mut self.clients[place];
            if !client.is_lost {
                let sent = client.send(&self.shared.send_queue.bytes[start..end], &self.shared.poll);
                sent.map_err(|error| client.lost(error)).or_else(|stopped| self.lose(place, stopped))?;
            }
            start = end;
        }
        self.shared.send_queue.clear();
        Ok(())
    }
}

impl SimulatedClient {
    /// Sends it behind what was not sent before.
    #[inline]
    fn send(&mut self, bytes: &[u8], poll: &Poll) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.backlog.end().extend_from_slice(bytes);
            return Ok(());
        }
        let sent = write(&mut self.connection, bytes)?;
        if sent < bytes.len() {
            self.backlog.end().extend_from_slice(&bytes[sent..]);
            self.watch(poll, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    /// What was not sent before, as far as there is room for it now.
    #[cold]
    pub(super) fn send_rest(&mut self, poll: &Poll) -> io::Result<()> {
        let sent = write(&mut self.connection, self.backlog.rest())?;
        self.backlog.took(sent);
        if self.backlog.is_empty() {
            self.watch(poll, Interest::READABLE)?;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn watch(&self, poll: &Poll, interest: Interest) -> io::Result<()> {
        let fd = self.connection.stream.as_fd().as_raw_fd();
        poll.registry().reregister(&mut SourceFd(&fd), Token(self.place), interest)
    }
}

/// Writes once; 0 where the socket takes nothing now.
#[inline]
pub(super) fn write(connection: &mut Connection, bytes: &[u8]) -> io::Result<usize> {
    match connection.stream.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        written => written,
    }
}
