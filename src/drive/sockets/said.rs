//! What connections have to say: first all are heard that have something to tell, then all that was made of it is sent.
//! A system call that is made again and again costs less than two in turn, likely because their code and data drive
//! each other out of the processor's caches.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};

use super::{Hand, Party};
use crate::drive::Stopped;
use crate::stores::blocking::Line;

/// So much is sent without hearing the rest first: it is still in the cache, and no server waits for long.
const SEND_BYTES: usize = 16 << 10;

/// Of connections one after another.
#[derive(Default)]
pub(super) struct Said {
    /// To write on behind what others have said.
    pub(super) bytes: Vec<u8>,
    /// Whose these are, and where each one's end.
    parts: Vec<(usize, usize)>,
}

impl Said {
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

impl Hand {
    /// Sends all that is said, but for what is said on lost connections: that is asked anew.
    #[inline]
    pub(super) fn send(&mut self) -> Result<(), Stopped> {
        let mut start = 0;
        for turn in 0..self.shared.said.parts.len() {
            let (place, end) = self.shared.said.parts[turn];
            let party = &mut self.parties[place];
            if !party.is_lost {
                let sent = party.send(&self.shared.said.bytes[start..end], &self.shared.poll);
                sent.map_err(|error| party.lost(error)).or_else(|stopped| self.lose(place, stopped))?;
            }
            start = end;
        }
        self.shared.said.clear();
        Ok(())
    }
}

impl Party {
    /// Sends it behind what was not sent before.
    #[inline]
    fn send(&mut self, said: &[u8], poll: &Poll) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.end().extend_from_slice(said);
            return Ok(());
        }
        let sent = write(&mut self.line, said)?;
        if sent < said.len() {
            self.unsent.end().extend_from_slice(&said[sent..]);
            self.watch(poll, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    /// What was not sent before, as far as there is room for it now.
    #[cold]
    pub(super) fn send_rest(&mut self, poll: &Poll) -> io::Result<()> {
        let sent = write(&mut self.line, self.unsent.rest())?;
        self.unsent.took(sent);
        if self.unsent.is_empty() {
            self.watch(poll, Interest::READABLE)?;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn watch(&self, poll: &Poll, interest: Interest) -> io::Result<()> {
        let fd = self.line.stream.as_fd().as_raw_fd();
        poll.registry().reregister(&mut SourceFd(&fd), Token(self.place), interest)
    }
}

/// Writes once; 0 where the socket takes nothing now.
#[inline]
pub(super) fn write(line: &mut Line, bytes: &[u8]) -> io::Result<usize> {
    match line.stream.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        written => written,
    }
}
