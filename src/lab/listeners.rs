//! Which sockets a process tree listens on: a server that we start must be reachable where we said, and nowhere else.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::stores::Place;

/// What a process tree listens on; `None` where this system does not let us look.
pub struct Listeners(Option<Found>);

#[derive(Debug, Default)]
struct Found {
    tcp: Vec<SocketAddr>,
    unix: Vec<PathBuf>,
}

impl Listeners {
    /// Exactly the one place, and that private; `elsewhere` lets others pass that only this machine can reach.
    pub fn check(&self, place: &Place, elsewhere: bool) -> Result<(), String> {
        let Some(found) = &self.0 else { return Ok(()) };
        if let Some(open) = found.tcp.iter().find(|address| !address.ip().is_loopback()) {
            return Err(format!("listens on {open}, which others can reach: it is not measured"));
        }
        let expected_ports: Vec<u16> = match place {
            Place::Tcp { port, .. } => vec![*port],
            _ => vec![],
        };
        let other = found.tcp.iter().find(|address| !expected_ports.contains(&address.port()));
        if let Some(other) = other.filter(|_| !elsewhere) {
            return Err(format!("listens on {other} besides {place}"));
        }
        let ours = match place {
            Place::Tcp { port, .. } => found.tcp.iter().any(|address| address.port() == *port),
            Place::Unix(path) => found.unix.contains(path),
            Place::Memory | Place::Path(_) => true,
        };
        if ours { Ok(()) } else { Err(format!("what listens at {place} is not the process that we started")) }
    }
}

/// What the process and its children listen on.
#[cfg(target_os = "linux")]
pub fn of(root: u32) -> Result<Listeners, String> {
    use std::collections::HashSet;

    use procfs::net::{TcpState, tcp, tcp6, unix};
    use procfs::process::{FDTarget, Process};

    let cannot = |error: procfs::ProcError| format!("cannot look up what the server listens on: {error}");
    let mut sockets = HashSet::new();
    for pid in super::watch::family(root) {
        let descriptors = match Process::new(pid as i32).and_then(|process| process.fd()) {
            Ok(descriptors) => descriptors,
            // A child that has just ended, as a server's of one connection does, listens on nothing.
            Err(procfs::ProcError::NotFound(_)) if pid != root => continue,
            Err(error) => return Err(cannot(error)),
        };
        sockets.extend(descriptors.flatten().filter_map(|descriptor| match descriptor.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        }));
    }
    // A machine without IPv6 has no table of it.
    let entries = tcp().map_err(cannot)?.into_iter().chain(tcp6().unwrap_or_default());
    let ours = entries.filter(|entry| entry.state == TcpState::Listen && sockets.contains(&entry.inode));
    let tcp = ours.map(|entry| entry.local_address).collect();
    let paths = unix().map_err(cannot)?.into_iter().filter(|entry| sockets.contains(&entry.inode));
    let unix = paths.filter_map(|entry| entry.path).collect();
    Ok(Listeners(Some(Found { tcp, unix })))
}

/// Elsewhere only the process id that the server itself tells can be checked.
#[cfg(not(target_os = "linux"))]
pub fn of(_: u32) -> Result<Listeners, String> {
    Ok(Listeners(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Listeners {
        Listeners(Some(Found { tcp: vec![address.parse().unwrap()], unix: vec![] }))
    }

    #[test]
    fn only_the_place_that_was_meant_will_do() {
        let place = Place::Tcp { host: "127.0.0.1".to_string(), port: 7001 };
        assert!(tcp("127.0.0.1:7001").check(&place, false).is_ok());
        assert!(tcp("0.0.0.0:7001").check(&place, true).unwrap_err().contains("others can reach"));
        assert!(tcp("127.0.0.1:7002").check(&place, false).unwrap_err().contains("besides"));
        assert!(tcp("127.0.0.1:7002").check(&place, true).unwrap_err().contains("not the process"));
        assert!(Listeners(Some(Found::default())).check(&place, false).unwrap_err().contains("not the process"));
        let socket = Place::Unix(PathBuf::from("/x/s"));
        assert!(tcp("127.0.0.1:7001").check(&socket, false).unwrap_err().contains("besides"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_listeners_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = of(std::process::id()).unwrap().0.unwrap();
        assert!(found.tcp.contains(&address), "{found:?}");
    }
}
