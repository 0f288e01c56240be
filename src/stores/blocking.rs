//! A session out of a codec and a stream: one write and one read an op. It knows addresses and silence, but no
//! protocol.

use std::io::{self, Read, Write};
use std::time::Duration;

use nix::poll::PollFlags;
use polonius_the_crab::prelude::*;

use super::deadline::Deadline;
use super::{Launch, Place, Session, password};
use crate::model::op::{Fault, Op, Reply, readable};
use crate::protocol::{Codec, Decoded};

mod stream;

pub use stream::Socket;

/// The receive buffer at first. It doubles as bytes come, never because of a length that somebody claims.
const RECEIVE_AT_FIRST: usize = 16 << 10;
/// What may come beside the answers of a job: a server's counters and settings.
const ANSWER_BYTES_MIN: u64 = 2 << 20;
/// The most bytes of an answer to what is no op: 500 keys, or the slots of a cluster.
const EXCHANGE_BYTES_MAX: usize = 16 << 20;
/// An answer of which nothing is known has at most so many bytes, as the longest of any protocol here.
const ANSWER_BYTES_MAX: u64 = (1 << 30) + ANSWER_BYTES_MIN;
/// What may be written without reading meanwhile: less than any system's socket buffer takes, so that a server that
/// waits for us to read its answers before it reads on (memcached does) cannot be waiting for us while we wait for it.
const WRITE_AT_ONCE: usize = 64 << 10;

/// An answer that comes in pieces has them all so soon, mostly.
const SOON: Duration = Duration::from_millis(100);

/// Makes a connection to a server and closes it again: whether somebody is there.
pub fn contact(store: &str, place: &Place, patience: Duration) -> Result<(), Fault> {
    let name = format!("{store} at {place}");
    Socket::open(place, patience).map(drop).map_err(|error| Fault::no_connection(&name, &error))
}

/// A session that speaks through codec `C`.
pub struct Blocking<C> {
    connection: BlockingConnection,
    codec: C,
    out: Vec<u8>,
}

impl<C: Codec> Blocking<C> {
    /// Connects to `launch.place` and greets. `store` is what messages call it.
    pub fn open(store: &str, launch: &Launch, codec: C) -> Result<Self, Fault> {
        let mut connection = BlockingConnection::open(store, launch)?;
        connection.stream.set_goodbye(codec.goodbye());
        let mut session = Blocking { connection, codec, out: Vec::new() };
        session.prepare(|codec, out| codec.hello(out))?;
        Ok(session)
    }

    /// Says what must be said before the first op, and waits until the server has taken all of it.
    pub(super) fn prepare(&mut self, say: impl FnOnce(&mut C, &mut Vec<u8>)) -> Result<(), Fault> {
        self.begin()?;
        self.write(say);
        self.send()?;
        self.greet()
    }

    /// The stream and the codec by themselves, for who waits for many of them at once. Nothing may be under way.
    ///
    /// One thing that is no op is asked first. A connection is made as soon as it waits in the server's queue; only who
    /// was answered has been taken out of it, and what that costs the server is no part of what is asked later.
    pub fn into_line<T>(
        mut self,
        request: &[u8],
        read: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, Fault>,
    ) -> Result<Connection, Fault>
    where
        C: 'static,
    {
        self.connection.exchange(request, read)?;
        self.check_in_step()?;
        let BlockingConnection { stream, name, answer_bytes_max, .. } = self.connection;
        stream
            .set_nonblocking(true)
            .map_err(|error| Fault::Lost(io::Error::new(error.kind(), format!("{name}: {error}"))))?;
        Ok(Connection { stream, codec: Box::new(self.codec), name, answer_bytes_max })
    }

    /// Begins a question that `write` and `send` make, and `answer` ends: for who asks several connections at once.
    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        self.check_in_step()?;
        self.out.clear();
        Ok(())
    }

    /// Appends to the question what the codec says.
    pub(super) fn write<T>(&mut self, say: impl FnOnce(&mut C, &mut Vec<u8>) -> T) -> T {
        say(&mut self.codec, &mut self.out)
    }

    /// Sends what was appended, where that is something.
    pub(super) fn send(&mut self) -> Result<(), Fault> {
        if self.out.is_empty() { Ok(()) } else { self.connection.send(&self.out) }
    }

    /// The connection, for questions that are no ops. Not to be used while an op is unanswered.
    pub fn connection(&mut self) -> &mut BlockingConnection {
        &mut self.connection
    }

    fn greet(&mut self) -> Result<(), Fault> {
        while self.codec.pending() > 0 {
            self.out.clear();
            let heard = self.codec.hear(self.connection.unread(), &mut self.out);
            let heard = heard.map_err(|fault| match self.connection.name_in(fault) {
                Fault::Refused(words) => Fault::Refused(format!("{}: {words}", self.connection.name)),
                other => other,
            });
            let Some((used, heard)) = heard? else {
                self.connection.fill()?;
                continue;
            };
            let name = &self.connection.name;
            match heard {
                Decoded::PasswordNeeded { login, words } => return Err(password::refused(name, login, &words)),
                Decoded::Refused(words) => return Err(Fault::Refused(format!("{name} refused the login: {words}"))),
                Decoded::Reply(_) | Decoded::Again | Decoded::Greeted => self.connection.start += used,
            }
            self.send()?;
        }
        Ok(())
    }

    /// An answer that came too late, or that nobody asked for, must not be taken for the next op's.
    #[inline]
    fn check_in_step(&mut self) -> Result<(), Fault> {
        if self.codec.pending() == 0 && !self.connection.unread().is_empty() {
            self.hear_unasked()?;
        }
        if self.codec.pending() > 0 {
            let what = format!("{}: an earlier question was never answered", self.connection.name);
            return Err(Fault::Lost(io::Error::new(io::ErrorKind::NotConnected, what)));
        }
        self.connection.check_all_read()
    }

    /// What came behind the last answer: a notice, or that the server is stopped.
    #[cold]
    fn hear_unasked(&mut self) -> Result<(), Fault> {
        while !self.connection.unread().is_empty() {
            match self.codec.hear(self.connection.unread(), &mut self.out) {
                Ok(Some((used, Decoded::Again))) => self.connection.start += used,
                Ok(_) => break,
                Err(fault) => return Err(self.connection.name_in(fault)),
            }
        }
        Ok(())
    }

    /// The answer to the oldest op that has none.
    pub(super) fn answer(&mut self) -> Result<Reply<'_>, Fault> {
        let mut this = self;
        this.connection.gathered = 0;
        loop {
            let part_of_it = polonius!(|this| -> Result<Reply<'polonius>, Fault> {
                let BlockingConnection { received, start, end, gathered, name, .. } = &mut this.connection;
                this.out.clear();
                match this.codec.hear(&received[*start..*end], &mut this.out) {
                    Err(fault) => polonius_return!(Err(named(name, fault))),
                    Ok(None) => exit_polonius!(false),
                    Ok(Some((used, heard))) => {
                        *start += used;
                        *gathered += used;
                        match heard {
                            Decoded::Reply(reply) => polonius_return!(Ok(reply)),
                            Decoded::Refused(words) | Decoded::PasswordNeeded { words, .. } => {
                                polonius_return!(Err(Fault::Refused(words)))
                            }
                            Decoded::Again | Decoded::Greeted => exit_polonius!(true),
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
pub struct Connection {
    pub stream: Socket,
    pub codec: Box<dyn Codec>,
    /// What messages call it.
    pub name: String,
    /// A longer answer is refused.
    pub answer_bytes_max: usize,
}

impl Connection {
    /// An error where what has come of an answer, read or not, has more bytes than any may have.
    #[inline]
    pub fn check_length(&self, bytes: usize) -> Result<(), Fault> {
        if bytes <= self.answer_bytes_max { Ok(()) } else { Err(too_long(self.answer_bytes_max)) }
    }
}

#[cold]
fn too_long(most: usize) -> Fault {
    Fault::Garbled(format!("an answer of more than {most} bytes, longer than any of the job"))
}

/// A stream with the bytes that came from it and were not read yet.
pub struct BlockingConnection {
    stream: Socket,
    /// What messages call it: "redis at 127.0.0.1:6379". Never with a password.
    name: String,
    patience: Duration,
    received: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the awaited answer that were read: the codec keeps what they said until the rest of it has come.
    gathered: usize,
    /// A longer answer is refused.
    answer_bytes_max: usize,
    wait: Wait,
}

/// How long the answer that is awaited has been coming. A clock is read only for one that does not come at once.
#[derive(Clone, Copy)]
enum Wait {
    NotYet,
    /// Some of it was waited for.
    Begun,
    Until(Deadline),
}

impl BlockingConnection {
    pub fn open(store: &str, launch: &Launch) -> Result<Self, Fault> {
        let name = format!("{store} at {}", launch.place);
        let stream =
            Socket::open(&launch.place, launch.patience).map_err(|error| Fault::no_connection(&name, &error))?;
        let received = vec![0; RECEIVE_AT_FIRST];
        let most = launch.answer_bytes.map_or(ANSWER_BYTES_MAX, |bytes| bytes.saturating_add(ANSWER_BYTES_MIN));
        let answer_bytes_max = usize::try_from(most).unwrap_or(usize::MAX);
        let (patience, wait) = (launch.patience, Wait::NotYet);
        let (start, end, gathered) = (0, 0, 0);
        Ok(BlockingConnection { stream, name, patience, received, start, end, gathered, answer_bytes_max, wait })
    }

    /// Asks one thing that is no op, and waits until `read` has found its answer. `read` gets all that has come so far,
    /// each time that more has come.
    pub fn exchange<T>(
        &mut self,
        request: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, Fault>,
    ) -> Result<T, Fault> {
        self.check_all_read()?;
        self.send(request)?;
        let most = self.answer_bytes_max.min(EXCHANGE_BYTES_MAX);
        loop {
            match read(self.unread()).map_err(|fault| self.name_in(fault))? {
                Some((used, answer)) => {
                    self.start += used;
                    return Ok(answer);
                }
                None if self.unread().len() > most => return Err(self.name_in(too_long(most))),
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
        self.gathered = 0;
        self.wait = Wait::NotYet;
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
        self.write(bytes).map_err(|error| self.lost(error))
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.stream.write(bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            written => self.write_rest(&bytes[written.unwrap_or(0)..]),
        }
    }

    /// A server that takes a little now and then has no more time for it.
    #[cold]
    fn write_rest(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let deadline = Deadline::within(self.patience);
        while !bytes.is_empty() {
            deadline.left()?;
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send_while_receiving(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.set_nonblocking(true).map_err(|error| self.lost(error))?;
        let sent = self.write_and_read(bytes);
        self.stream.set_nonblocking(false).map_err(|error| self.lost(error))?;
        sent
    }

    fn write_and_read(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        let deadline = Deadline::within(self.patience);
        let wait = |stream: &Socket| stream.wait(deadline.left()?, PollFlags::POLLIN | PollFlags::POLLOUT);
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.stream).map_err(|error| self.lost(error))?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
            match self.receive() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(self.lost(error)),
                _ => self.check_length()?,
            }
        }
        Ok(())
    }

    #[inline]
    fn check_length(&self) -> Result<(), Fault> {
        if self.end - self.start + self.gathered <= self.answer_bytes_max {
            return Ok(());
        }
        Err(self.name_in(too_long(self.answer_bytes_max)))
    }

    /// Reads at least one byte more.
    #[inline]
    fn fill(&mut self) -> Result<(), Fault> {
        match self.wait {
            Wait::NotYet => {
                self.wait = Wait::Begun;
                self.receive().map_err(|error| self.lost(error))
            }
            _ => self.fill_on(),
        }
    }

    /// Reads more of an answer that comes in pieces. No piece gives the rest of it more time.
    fn fill_on(&mut self) -> Result<(), Fault> {
        self.check_length()?;
        let deadline = match self.wait {
            Wait::Until(deadline) => deadline,
            Wait::NotYet | Wait::Begun => Deadline::within(self.patience),
        };
        self.wait = Wait::Until(deadline);
        let received = deadline.left().and_then(|left| {
            // Beside the socket's own time-out, which each piece begins anew.
            if left + SOON < self.patience {
                self.stream.wait(left, PollFlags::POLLIN)?;
            }
            self.receive()
        });
        received.map_err(|error| self.lost(error))
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
                let patience_s = self.patience.as_secs_f64();
                let what = match self.wait {
                    Wait::Until(_) => format!("{name} has not finished an answer within {patience_s} s"),
                    Wait::NotYet | Wait::Begun => format!("{name} has been silent for {patience_s} s"),
                };
                io::Error::new(io::ErrorKind::TimedOut, what)
            }
            kind => io::Error::new(kind, format!("{name}: {error}")),
        })
    }
}

#[cold]
fn named(name: &str, fault: Fault) -> Fault {
    match fault {
        Fault::Garbled(what) => Fault::Garbled(format!("{name}: {what}")),
        Fault::Lost(error) => Fault::Lost(io::Error::new(error.kind(), format!("{name}: {error}"))),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// It sends and never reads: what comes while a question is written is bounded as all else is.
    #[test]
    fn a_server_that_sends_and_does_not_read_fills_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            while client.write_all(&[b'x'; 1 << 16]).is_ok() {}
        });
        let place = Place::Tcp { host: "127.0.0.1".to_string(), port };
        let launch = Launch { answer_bytes: Some(0), ..Launch::at(place, Duration::from_secs(2)) };
        let mut connection = BlockingConnection::open("flood", &launch).expect("a connection");
        let asked = connection.exchange(&vec![0; 64 << 20], |_| Ok(None::<(usize, ())>));
        let said = asked.expect_err("it floods").to_string();
        let held = connection.received.len();
        drop(connection);
        server.join().expect("it ends with its client");
        assert!(said.contains("an answer of more than 2097152 bytes, longer than any of the job"), "{said}");
        assert!(held <= 8 << 20, "{held} bytes");
    }
}
