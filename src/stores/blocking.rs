//! A session out of a codec and a stream: one write and one read an op. It knows addresses and silence, but no
//! protocol.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use polonius_the_crab::prelude::*;

use super::{Launch, Place, Session};
use crate::wire::{Codec, Heard};
use crate::words::op::{Fault, Op, Reply, readable};

/// The receive buffer at first. It doubles as bytes come, never because of a length that somebody claims.
const RECEIVE_AT_FIRST: usize = 16 << 10;
/// What may be written without reading meanwhile: less than any system's socket buffer takes, so that a server that
/// waits for us to read its answers before it reads on (memcached does) cannot be waiting for us while we wait for it.
const WRITE_AT_ONCE: usize = 64 << 10;

/// A session that speaks through codec `C`.
pub struct Blocking<C> {
    connection: Connection,
    codec: C,
    out: Vec<u8>,
}

impl<C: Codec> Blocking<C> {
    /// Connects to `launch.place` and greets. `store` is what messages call it.
    pub fn open(store: &str, launch: &Launch, codec: C) -> Result<Self, Fault> {
        let connection = Connection::open(store, launch)?;
        let mut session = Blocking { connection, codec, out: Vec::new() };
        session.greet()?;
        Ok(session)
    }

    /// The stream and the codec by themselves, for who waits for many of them at once. Nothing may be under way.
    ///
    /// One thing that is no op is asked first. A connection is made as soon as it waits in the server's queue; only who
    /// was answered has been taken out of it, and what that costs the server is no part of what is asked later.
    pub fn into_line<T>(
        mut self,
        request: &[u8],
        read: impl Fn(&[u8]) -> Result<Option<(usize, T)>, Fault>,
    ) -> Result<Line, Fault>
    where
        C: 'static,
    {
        self.connection.exchange(request, read)?;
        self.check_in_step()?;
        let Connection { stream, name, .. } = self.connection;
        stream
            .set_nonblocking(true)
            .map_err(|error| Fault::Lost(io::Error::new(error.kind(), format!("{name}: {error}"))))?;
        Ok(Line { stream, codec: Box::new(self.codec), name })
    }

    /// The connection, for questions that are no ops. Not to be used while an op is unanswered.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn greet(&mut self) -> Result<(), Fault> {
        self.codec.hello(&mut self.out);
        self.connection.send(&self.out)?;
        while self.codec.pending() > 0 {
            self.out.clear();
            let heard = self.codec.hear(self.connection.unread(), &mut self.out);
            let Some((used, heard)) = heard.map_err(|fault| self.connection.name_in(fault))? else {
                self.connection.fill()?;
                continue;
            };
            if let Heard::Refused(words) = heard {
                return Err(Fault::Refused(format!("{} refused the login: {words}", self.connection.name)));
            }
            self.connection.start += used;
        }
        Ok(())
    }

    /// An answer that came too late, or that nobody asked for, must not be taken for the next op's.
    #[inline]
    fn check_in_step(&mut self) -> Result<(), Fault> {
        if self.codec.pending() > 0 {
            let what = format!("{}: an earlier question was never answered", self.connection.name);
            return Err(Fault::Lost(io::Error::new(io::ErrorKind::NotConnected, what)));
        }
        self.connection.check_all_read()
    }

    fn answer(&mut self) -> Result<Reply<'_>, Fault> {
        let mut this = self;
        loop {
            let part_of_it = polonius!(|this| -> Result<Reply<'polonius>, Fault> {
                let Connection { received, start, end, name, .. } = &mut this.connection;
                this.out.clear();
                match this.codec.hear(&received[*start..*end], &mut this.out) {
                    Err(fault) => polonius_return!(Err(named(name, fault))),
                    Ok(None) => exit_polonius!(false),
                    Ok(Some((used, heard))) => {
                        *start += used;
                        match heard {
                            Heard::Reply(reply) => polonius_return!(Ok(reply)),
                            Heard::Refused(words) => polonius_return!(Err(Fault::Refused(words))),
                            Heard::Again | Heard::Greeted => exit_polonius!(true),
                        }
                    }
                }
            });
            if !part_of_it {
                this.connection.fill()?;
            } else if !this.out.is_empty() {
                this.connection.send(&this.out)?;
            }
        }
    }
}

impl<C: Codec> Session for Blocking<C> {
    #[inline]
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        self.check_in_step()?;
        self.out.clear();
        self.codec.say(op, &mut self.out)?;
        self.connection.send(&self.out)?;
        self.answer()
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn commands(&self) -> Option<u64> {
        Some(self.codec.commands())
    }
}

/// A connection that never waits, and what speaks on it.
pub struct Line {
    pub stream: Stream,
    pub codec: Box<dyn Codec>,
    /// What messages call it.
    pub name: String,
}

/// A stream with the bytes that came from it and were not read yet.
pub struct Connection {
    stream: Stream,
    /// What messages call it: "redis at 127.0.0.1:6379". Never with a password.
    name: String,
    patience: Duration,
    received: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    pub fn open(store: &str, launch: &Launch) -> Result<Self, Fault> {
        let name = format!("{store} at {}", launch.place);
        let stream = Stream::open(&launch.place, launch.patience)
            .map_err(|error| Fault::Lost(io::Error::new(error.kind(), format!("{name}: {error}"))))?;
        let received = vec![0; RECEIVE_AT_FIRST];
        Ok(Connection { stream, name, patience: launch.patience, received, start: 0, end: 0 })
    }

    /// Asks one thing that is no op, and waits until `read` has found its answer.
    pub fn exchange<T>(
        &mut self,
        request: &[u8],
        read: impl Fn(&[u8]) -> Result<Option<(usize, T)>, Fault>,
    ) -> Result<T, Fault> {
        self.check_all_read()?;
        self.send(request)?;
        loop {
            match read(self.unread()).map_err(|fault| self.name_in(fault))? {
                Some((used, answer)) => {
                    self.start += used;
                    return Ok(answer);
                }
                None => self.fill()?,
            }
        }
    }

    /// What messages call this connection.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn unread(&self) -> &[u8] {
        &self.received[self.start..self.end]
    }

    #[inline]
    fn check_all_read(&mut self) -> Result<(), Fault> {
        if self.start < self.end {
            let came = readable(self.unread(), 80);
            return Err(Fault::Garbled(format!("{}: nothing was asked, but '{came}' came", self.name)));
        }
        self.start = 0;
        self.end = 0;
        Ok(())
    }

    fn name_in(&self, fault: Fault) -> Fault {
        named(&self.name, fault)
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.len() > WRITE_AT_ONCE {
            return self.send_while_receiving(bytes);
        }
        self.stream.write_all(bytes).map_err(|error| self.lost(error))
    }

    fn send_while_receiving(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.set_nonblocking(true).map_err(|error| self.lost(error))?;
        let sent = self.write_and_read(bytes);
        self.stream.set_nonblocking(false).map_err(|error| self.lost(error))?;
        sent.map_err(|error| self.lost(error))
    }

    fn write_and_read(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stream.wait(self.patience)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            match self.receive() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads at least one byte more.
    #[inline]
    fn fill(&mut self) -> Result<(), Fault> {
        self.receive().map_err(|error| self.lost(error))
    }

    fn receive(&mut self) -> io::Result<()> {
        self.make_room();
        loop {
            match self.stream.read(&mut self.received[self.end..]) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what is unread to the front where that frees half the buffer, else doubles it: either way the price of a
    /// byte does not grow with the answer.
    fn make_room(&mut self) {
        if self.end < self.received.len() {
            return;
        }
        if self.start * 2 >= self.received.len() {
            self.received.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            self.received.resize(self.received.len() * 2, 0);
        }
    }

    #[cold]
    fn lost(&self, error: io::Error) -> Fault {
        let name = &self.name;
        Fault::Lost(match error.kind() {
            // How a system says that the socket's own time-out is over.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let silent_s = self.patience.as_secs_f64();
                io::Error::new(io::ErrorKind::TimedOut, format!("{name} has been silent for {silent_s} s"))
            }
            kind => io::Error::new(kind, format!("{name}: {error}")),
        })
    }
}

#[cold]
fn named(name: &str, fault: Fault) -> Fault {
    match fault {
        Fault::Garbled(what) => Fault::Garbled(format!("{name}: {what}")),
        other => other,
    }
}

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn open(place: &Place, patience: Duration) -> io::Result<Self> {
        match place {
            Place::Tcp { host, port } => {
                let stream = connect(host, *port, patience)?;
                // A question is one small write: it must not wait for an answer to the one before it.
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Stream::Tcp(stream))
            }
            Place::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Stream::Unix(stream))
            }
            Place::Memory | Place::Path(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "a server is reached by tcp or a Unix socket"))
            }
        }
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(on),
            Stream::Unix(stream) => stream.set_nonblocking(on),
        }
    }

    /// Returns when something can be written or read.
    fn wait(&self, patience: Duration) -> io::Result<()> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        loop {
            match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)], timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Tries every address that the host's name stands for: `localhost` may be two.
fn connect(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
