//! A connected socket, over TCP or in a file: how it is opened, within a time, and waited for.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::stores::Place;
use crate::stores::deadline::Deadline;

/// A connected socket.
pub struct Socket {
    stream: Stream,
    /// What the server is told before it is closed.
    goodbye: &'static [u8],
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl From<Stream> for Socket {
    fn from(stream: Stream) -> Socket {
        Socket { stream, goodbye: b"" }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A server that does not read now is not waited for.
        if !self.goodbye.is_empty() && self.set_nonblocking(true).is_ok() {
            let _ = self.write(self.goodbye);
        }
    }
}

impl Socket {
    pub(super) fn open(place: &Place, patience: Duration) -> io::Result<Self> {
        match place {
            Place::Tcp { host, port } => {
                let stream = connect(host, *port, patience)?;
                // A question is one small write: it must not wait for an answer to the one before it.
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Stream::Tcp(stream).into())
            }
            Place::Unix(path) => {
                let stream = connect_unix(path, patience)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Stream::Unix(stream).into())
            }
            Place::Memory | Place::Path(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "a server is reached by tcp or a Unix socket"))
            }
        }
    }

    pub(super) fn set_goodbye(&mut self, goodbye: &'static [u8]) {
        self.goodbye = goodbye;
    }

    pub(super) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match &self.stream {
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
    for address in addresses(host, port, patience)? {
        let Ok(left) = deadline.left() else { break };
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The addresses of a name. The system's look-up has time-outs of its own, of minutes: a thread waits for it.
fn addresses(host: &str, port: u16, patience: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_string();
    within(patience, move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect))
}

/// What the work comes to, if it ends in that time. Its thread is left behind where it does not.
fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = mpsc::channel();
    // Where it is too late, there is no one to tell.
    std::thread::spawn(move || tell.send(work()).ok());
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the name was not looked up in time");
    told.recv_timeout(patience).map_err(late)?
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

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_within_the_time() {
        assert_eq!(addresses("127.0.0.1", 7, Duration::ZERO).unwrap(), ["127.0.0.1:7".parse().unwrap()]);
        assert!(!addresses("localhost", 7, Duration::from_secs(20)).unwrap().is_empty());
        let slow = within(Duration::from_millis(20), || {
            std::thread::sleep(Duration::from_secs(5));
            Ok(())
        });
        assert_eq!(slow.expect_err("it sleeps").kind(), io::ErrorKind::TimedOut);
    }
}
