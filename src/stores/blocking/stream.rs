//! A connected socket, over TCP or in a file: how it is opened, within a time, and waited for.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::stores::Place;
use crate::stores::deadline::Deadline;

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn open(place: &Place, patience: Duration) -> io::Result<Self> {
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
                let stream = connect_unix(path, patience)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Stream::Unix(stream))
            }
            Place::Memory | Place::Path(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "a server is reached by tcp or a Unix socket"))
            }
        }
    }

    pub(super) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(on),
            Stream::Unix(stream) => stream.set_nonblocking(on),
        }
    }

    /// Returns when it can be written or read, as asked.
    pub(super) fn wait(&self, patience: Duration, what: PollFlags) -> io::Result<()> {
        // In whole milliseconds: what is left of one counts as one.
        let timeout = PollTimeout::try_from(patience + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        loop {
            match poll(&mut [PollFd::new(self.as_fd(), what)], timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Within that time tries every address that the host's name stands for: `localhost` may be two.
fn connect(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Deadline::within(patience);
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        let Ok(left) = deadline.left() else { break };
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A server that takes no connections has a queue of them, and a full one is waited for: by default for ever.
#[cfg(target_os = "linux")]
fn connect_unix(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::sockopt::SendTimeout;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket};
    use nix::sys::time::TimeVal;

    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // What writing may take is what connecting may take: unix(7), socket(7).
    setsockopt(&socket, SendTimeout, &TimeVal::new(patience.as_secs() as i64, i64::from(patience.subsec_micros())))?;
    match connect(socket.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) => Ok(socket.into()),
        Err(Errno::EAGAIN) => Err(io::Error::new(io::ErrorKind::TimedOut, "connection timed out")),
        Err(error) => Err(error.into()),
    }
}

/// Elsewhere a full queue refuses at once.
#[cfg(not(target_os = "linux"))]
fn connect_unix(path: &Path, _: Duration) -> io::Result<UnixStream> {
    UnixStream::connect(path)
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
