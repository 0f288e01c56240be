//! Which sockets a process tree listens on: a server that we start must be reachable where we said, and nowhere else.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::guest;
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

/// The process of a server that somebody else started, where it is on this machine and we may look at it: the one that
/// it says it is, if that one listens at this place. A process of another PID namespace has another id here, and what
/// stands before a server (a proxy, a tunnel) is not the process that the server tells.
#[cfg(target_os = "linux")]
pub fn neighbour(place: &Place, told: u32) -> Option<u32> {
    let found = of(told).ok()?.0?;
    let listens = match place {
        Place::Tcp { port, .. } => found.tcp.iter().any(|address| address.port() == *port) && guest::is_here(place),
        Place::Unix(path) => {
            let path = path.canonicalize().ok()?;
            found.unix.iter().any(|own| own.canonicalize().is_ok_and(|own| own == path))
        }
        Place::Memory | Place::Path(_) => false,
    };
    listens.then_some(told)
}

#[cfg(not(target_os = "linux"))]
pub fn neighbour(_: &Place, _: u32) -> Option<u32> {
    None
}

/// What the process and its children listen on.
#[cfg(target_os = "linux")]
pub fn of(root: u32) -> Result<Listeners, String> {
    use std::collections::HashSet;

    use procfs::net::{TcpState, tcp, tcp6};
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
    let table = std::fs::read("/proc/net/unix").map_err(|error| cannot(error.into()))?;
    let ours = unix_listeners(&table).filter(|(inode, _)| sockets.contains(inode));
    let unix = ours.map(|(_, path)| path).collect();
    Ok(Listeners(Some(Found { tcp, unix })))
}

/// The inode and path of each listening socket in the text of `/proc/net/unix`: `Num: RefCount Protocol Flags Type St
/// Inode Path`. <https://man7.org/linux/man-pages/man5/proc_pid_net.5.html>
///
/// The kernel prints paths as they are, so that any user can put blanks, line ends and bytes that are no UTF-8 there.
/// What does not look like a line is left out. Such a user can also forge whole lines with inodes of ours. That gives a
/// server one more path and takes none away: a forged line cannot stop a run. It cannot pass another server off as ours
/// either, since the path that we look for lies in a directory that only we can write to.
#[cfg(target_os = "linux")]
fn unix_listeners(table: &[u8]) -> impl Iterator<Item = (u64, PathBuf)> {
    use std::os::unix::ffi::OsStrExt;

    // include/uapi/linux/net.h: __SO_ACCEPTCON.
    const LISTENS: u32 = 1 << 16;
    table.split(|&byte| byte == b'\n').filter_map(|line| {
        let fields: Vec<&[u8]> = line.splitn(7, |&byte| byte == b' ').collect();
        let &[_, _, _, flags, _, _, rest] = fields.as_slice() else { return None };
        let flags = u32::from_str_radix(std::str::from_utf8(flags).ok()?, 16).ok()?;
        // Numbers of less than five digits have blanks before them.
        let rest = rest.trim_ascii_start();
        let at = rest.iter().position(|&byte| byte == b' ')?;
        let inode = std::str::from_utf8(&rest[..at]).ok()?.parse().ok()?;
        let path = std::ffi::OsStr::from_bytes(&rest[at + 1..]);
        (flags & LISTENS != 0).then(|| (inode, PathBuf::from(path)))
    })
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

    /// Any user of the machine can bind sockets to such names.
    #[test]
    #[cfg(target_os = "linux")]
    fn names_of_sockets_that_are_no_lines_do_not_matter() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::UnixListener;

        let directory = tempfile::tempdir().unwrap();
        let names: [&[u8]; 4] = [b"a b", b"two\nlines: 1 2 3 4 5 6 7", b"\xff\xfe", b"plain"];
        let paths: Vec<_> = names.iter().map(|name| directory.path().join(OsStr::from_bytes(name))).collect();
        let listeners: Vec<_> = paths.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        let found = of(std::process::id()).unwrap().0.unwrap();
        for path in [&paths[0], &paths[2], &paths[3]] {
            assert!(found.unix.contains(path), "{path:?}: {found:?}");
        }
        drop(listeners);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_forged_line_adds_a_path_and_takes_none_away() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01    12 /x/s\n\
            0000000000000000: 00000003 00000000 00000000 0001 03    13 /accepted\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 14\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 123456 /theirs\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12 /forged\n\
            nonsense: z z z z z z z\n";
        let found: Vec<_> = unix_listeners(table).collect();
        let expected = [(12, "/x/s"), (123456, "/theirs"), (12, "/forged")];
        assert_eq!(found, expected.map(|(inode, path)| (inode, PathBuf::from(path))));
    }
}
