//! The server: one thread, one queue of events, values in an array by the number in their key.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use crate::model::op::Fault;
use crate::protocol::requests::ServerRequest;

const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1024;
/// The largest number of a key: what does not fit is refused, not asked of the memory.
const RECORDS_MAX: u64 = 1 << 27;
const LISTENER: Token = Token(usize::MAX);

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Resp,
    Text,
}

/// Where it listens.
pub enum Door {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

trait Socket: Read + Write + AsFd {}
impl<T: Read + Write + AsFd> Socket for T {}

impl Listener {
    fn open(door: &Door) -> io::Result<Listener> {
        Ok(match door {
            Door::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Listener::Unix(listener)
            }
            Door::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
        })
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }

    fn accept(&self) -> io::Result<Box<dyn Socket>> {
        Ok(match self {
            Listener::Unix(listener) => {
                let stream: UnixStream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
            Listener::Tcp(listener) => {
                let stream: TcpStream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
        })
    }
}

/// One client's connection.
struct Guest {
    socket: Box<dyn Socket>,
    /// The beginning of a request whose end is still to come.
    unread: Vec<u8>,
    /// Answers that the socket did not take yet. Until it has, nothing more is read.
    backlog: Vec<u8>,
}

/// Serves until it is killed.
pub fn serve(door: &Door, protocol: Protocol) -> io::Result<()> {
    let listener = Listener::open(door)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut SourceFd(&listener.as_fd().as_raw_fd()), LISTENER, Interest::READABLE)?;
    let mut guests: Vec<Option<Guest>> = Vec::new();
    let mut array = Array { protocol, values: Vec::new(), held: 0 };
    let mut received = vec![0; READ_BYTES];
    let mut events = Events::with_capacity(EVENTS);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            if event.token() == LISTENER {
                welcome(&listener, &poll, &mut guests)?;
                continue;
            }
            let place = event.token().0;
            let Some(guest) = &mut guests[place] else { continue };
            // A guest who goes, or who says what nobody can read, is nobody else's concern.
            if guest.attend(&mut array, &mut received).is_err() {
                guests[place] = None;
            }
        }
    }
}

fn welcome(listener: &Listener, poll: &Poll, guests: &mut Vec<Option<Guest>>) -> io::Result<()> {
    loop {
        let socket = match listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // A client that has gone again already.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            socket => socket?,
        };
        let place = guests.iter().position(Option::is_none).unwrap_or(guests.len());
        let fd = socket.as_fd().as_raw_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(place), Interest::READABLE | Interest::WRITABLE)?;
        let guest = Some(Guest { socket, unread: Vec::new(), backlog: Vec::new() });
        if place == guests.len() { guests.push(guest) } else { guests[place] = guest }
    }
}

impl Guest {
    /// Sends what is left, then reads and answers until nothing more comes.
    fn attend(&mut self, array: &mut Array, received: &mut [u8]) -> io::Result<()> {
        loop {
            if !self.backlog.is_empty() {
                match self.socket.write(&self.backlog) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    sent => drop(self.backlog.drain(..sent?)),
                }
                continue;
            }
            let came = match self.socket.read(received) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                came => came?,
            };
            let mut own = std::mem::take(&mut self.unread);
            let bytes = if own.is_empty() {
                &received[..came]
            } else {
                own.extend_from_slice(&received[..came]);
                &own[..]
            };
            let used = array.answer_all(bytes, &mut self.backlog);
            let used = used.map_err(|fault| io::Error::new(ErrorKind::InvalidData, fault.to_string()))?;
            self.unread = bytes[used..].to_vec();
            if !self.backlog.is_empty() {
                match self.socket.write(&self.backlog) {
                    Ok(sent) if sent == self.backlog.len() => self.backlog.clear(),
                    Ok(sent) => drop(self.backlog.drain(..sent)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            // Less than there was room for is all there was.
            if came < received.len() && self.backlog.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Values by the number in their key.
struct Array {
    protocol: Protocol,
    values: Vec<Option<Vec<u8>>>,
    held: u64,
}

impl Array {
    /// Answers every request that is whole: the bytes that they took.
    fn answer_all(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        let (mut used, mut request) = (0, ServerRequest::default());
        while used < bytes.len() {
            let rest = &bytes[used..];
            let taken = match self.protocol {
                Protocol::Resp => request.read_resp(rest)?,
                Protocol::Text => request.read_text(rest)?,
            };
            let Some(taken) = taken else { break };
            match self.protocol {
                Protocol::Resp => self.answer_resp(&request, rest, out),
                Protocol::Text => self.answer_text(&request, rest, out),
            }
            used += taken;
        }
        Ok(used)
    }

    fn answer_resp(&mut self, request: &ServerRequest, bytes: &[u8], out: &mut Vec<u8>) {
        let part = |index| request.part(index, bytes);
        match part(0) {
            b"GET" => bulk(self.get(part(1)), out),
            b"SET" => match self.set(part(1), part(2)) {
                true => out.extend_from_slice(b"+OK\r\n"),
                false => out.extend_from_slice(b"-ERR keys are key: and twelve digits\r\n"),
            },
            b"DEL" => out.extend_from_slice(if self.delete(part(1)) { b":1\r\n" } else { b":0\r\n" }),
            b"MGET" => {
                out.extend_from_slice(format!("*{}\r\n", request.parts() - 1).as_bytes());
                (1..request.parts()).for_each(|index| bulk(self.get(part(index)), out));
            }
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"INFO" => {
                let text = format!("process_id:{}\r\nrecords:{}\r\n", std::process::id(), self.held);
                bulk(Some(text.as_bytes()), out);
            }
            _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
        }
    }

    fn answer_text(&mut self, request: &ServerRequest, bytes: &[u8], out: &mut Vec<u8>) {
        let part = |index| request.part(index, bytes);
        match part(0) {
            b"get" => {
                for key in (1..request.parts()).map(part) {
                    if let Some(value) = self.get(key) {
                        out.extend_from_slice(b"VALUE ");
                        out.extend_from_slice(key);
                        out.extend_from_slice(b" 0 ");
                        out.extend_from_slice(itoa::Buffer::new().format(value.len()).as_bytes());
                        out.extend_from_slice(b"\r\n");
                        out.extend_from_slice(value);
                        out.extend_from_slice(b"\r\n");
                    }
                }
                out.extend_from_slice(b"END\r\n");
            }
            b"set" => match self.set(part(1), part(5)) {
                true => out.extend_from_slice(b"STORED\r\n"),
                false => out.extend_from_slice(b"CLIENT_ERROR keys are key: and twelve digits\r\n"),
            },
            b"delete" if self.delete(part(1)) => out.extend_from_slice(b"DELETED\r\n"),
            b"delete" => out.extend_from_slice(b"NOT_FOUND\r\n"),
            b"version" => out.extend_from_slice(concat!("VERSION ", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes()),
            b"stats" => {
                let text = format!("STAT pid {}\r\nSTAT curr_items {}\r\nEND\r\n", std::process::id(), self.held);
                out.extend_from_slice(text.as_bytes());
            }
            _ => out.extend_from_slice(b"ERROR\r\n"),
        }
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.values.get(number(key)?)?.as_deref()
    }

    /// Whether there is such a key.
    fn set(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some(number) = number(key) else { return false };
        if number >= self.values.len() {
            self.values.resize_with((number + 1).next_power_of_two(), || None);
        }
        match &mut self.values[number] {
            Some(held) if held.len() == value.len() => held.copy_from_slice(value),
            place => {
                self.held += u64::from(place.is_none());
                *place = Some(value.to_vec());
            }
        }
        true
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        let place = number(key).and_then(|number| self.values.get_mut(number));
        let gone = place.and_then(Option::take).is_some();
        self.held -= u64::from(gone);
        gone
    }
}

/// The number in a key of jobs of requests.
fn number(key: &[u8]) -> Option<usize> {
    let digits = key.strip_prefix(b"key:").filter(|digits| digits.len() == 12)?;
    let number = digits
        .iter()
        .try_fold(0, |number: u64, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))?;
    (number < RECORDS_MAX).then_some(number as usize)
}

fn bulk(value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.extend_from_slice(b"$-1\r\n") };
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(value.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
