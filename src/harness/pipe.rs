//! Connected sockets of either kind, and a private place where they are taken: what our own proxies stand on.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::stores::Place;

/// Where a proxy takes clients in place of a server.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// For a server at a Unix socket a socket in `directory`, which is closed to others, else a port of the loopback;
    /// and where that is.
    pub fn for_clients_of(server: &Place, directory: &Path) -> io::Result<(Listener, Place)> {
        let Place::Unix(path) = server else {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let port = listener.local_addr()?.port();
            return Ok((Listener::Tcp(listener), Place::Tcp { host: "127.0.0.1".to_string(), port }));
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // Some clients know a socket by its name.
        let ours = directory.join(path.file_name().unwrap_or_default());
        let _ = fs::remove_file(&ours);
        Ok((Listener::Unix(UnixListener::bind(&ours)?), Place::Unix(ours)))
    }

    /// The next client.
    pub fn accept(&self) -> io::Result<Pipe> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Pipe::Tcp(stream)),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Pipe::Unix(stream)),
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => listener.set_nonblocking(true),
            Listener::Unix(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Unix(listener) => listener.as_raw_fd(),
        }
    }
}

/// A connected socket. What is written to it goes out by itself (`TCP_NODELAY`).
pub enum Pipe {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Pipe {
    pub fn to(server: &Place) -> io::Result<Pipe> {
        let pipe = match server {
            Place::Tcp { host, port } => Pipe::Tcp(TcpStream::connect((host.as_str(), *port))?),
            Place::Unix(path) => Pipe::Unix(UnixStream::connect(path)?),
            Place::Memory | Place::Path(_) => return Err(ErrorKind::InvalidInput.into()),
        };
        pipe.without_delay()?;
        Ok(pipe)
    }

    pub fn without_delay(&self) -> io::Result<()> {
        match self {
            Pipe::Tcp(stream) => stream.set_nodelay(true),
            Pipe::Unix(_) => Ok(()),
        }
    }

    /// The other's address and ours; nothing of a Unix socket, or where the other is gone.
    pub fn over_tcp(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Pipe::Tcp(stream) => Some((stream.peer_addr().ok()?, stream.local_addr().ok()?)),
            Pipe::Unix(_) => None,
        }
    }

    pub fn try_clone(&self) -> io::Result<Pipe> {
        match self {
            Pipe::Tcp(stream) => stream.try_clone().map(Pipe::Tcp),
            Pipe::Unix(stream) => stream.try_clone().map(Pipe::Unix),
        }
    }

    pub fn wait_at_most(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Pipe::Tcp(stream) => stream.set_read_timeout(limit),
            Pipe::Unix(stream) => stream.set_read_timeout(limit),
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Pipe::Tcp(stream) => stream.set_nonblocking(true),
            Pipe::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    /// Who has heard the end of the one side tells it to the other.
    pub fn shut(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Pipe::Tcp(stream) => stream.shutdown(how),
            Pipe::Unix(stream) => stream.shutdown(how),
        }
    }
}

impl AsRawFd for Pipe {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Pipe::Tcp(stream) => stream.as_raw_fd(),
            Pipe::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Pipe::Tcp(stream) => stream.read(into),
            Pipe::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Pipe::Tcp(stream) => stream.write(bytes),
            Pipe::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
