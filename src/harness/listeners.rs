//! Which sockets a process tree listens on: a server that we start must be reachable where we said, and nowhere else.

#[cfg(target_os = "linux")]
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::net::ToSocketAddrs;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
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
    /// Exactly the one place, and that private, and the port over which servers of one store speak with each other;
    /// `elsewhere` lets others pass that only this machine can reach.
    pub fn check(&self, place: &Place, bus: Option<u16>, elsewhere: bool) -> Result<(), String> {
        let Some(found) = &self.0 else { return Ok(()) };
        if let Some(open) = found.tcp.iter().find(|address| !address.ip().is_loopback()) {
            return Err(format!("listens on {open}, which others can reach: it is not measured"));
        }
        let expected_ports: Vec<u16> = match place {
            Place::Tcp { port, .. } => std::iter::once(*port).chain(bus).collect(),
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

/// The process of a server that somebody else started, where it is on this machine and we may look at it. Where it says
/// which process it is, that one must listen at this place: what stands before a server (a proxy, a tunnel) is not the
/// process that the server tells, and a process of another PID namespace has another id here. Where it does not, it is
/// the process that listens there.
#[cfg(target_os = "linux")]
pub fn neighbour(place: &Place, told: Option<u32>) -> Option<u32> {
    let inodes: HashSet<u64> = listening().ok()?.iter().filter(|one| one.is_at(place)).map(|one| one.inode).collect();
    let found = match told {
        Some(told) => sockets_of(told).ok()?.iter().any(|inode| inodes.contains(inode)).then_some(told),
        None => holder(&inodes),
    }?;
    // All of the machine descends from its first process, which may have opened sockets for others, or have the id that
    // a server has in a container.
    (!super::watch::family(found).contains(&std::process::id())).then_some(found)
}

#[cfg(not(target_os = "linux"))]
pub fn neighbour(_: &Place, _: Option<u32>) -> Option<u32> {
    None
}

/// The process that has these sockets: of those who inherited them the first. None where several do without each
/// other.
#[cfg(target_os = "linux")]
fn holder(inodes: &HashSet<u64>) -> Option<u32> {
    use procfs::process::{Process, all_processes};

    if inodes.is_empty() {
        return None;
    }
    let has = |process: &Process| own_sockets(process).is_ok_and(|sockets| !sockets.is_disjoint(inodes));
    let parents: HashMap<i32, i32> = all_processes()
        .ok()?
        .flatten()
        .filter(has)
        .filter_map(|process| Some((process.pid, process.stat().ok()?.ppid)))
        .collect();
    let mut firsts = parents.iter().filter(|(_, parent)| !parents.contains_key(parent)).map(|(pid, _)| *pid as u32);
    firsts.next().filter(|_| firsts.next().is_none())
}

/// The inodes of one process's sockets.
#[cfg(target_os = "linux")]
fn own_sockets(process: &procfs::process::Process) -> procfs::ProcResult<HashSet<u64>> {
    use procfs::process::FDTarget;

    let inodes = process.fd()?.flatten().filter_map(|descriptor| match descriptor.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    });
    Ok(inodes.collect())
}

/// The inodes of the sockets of a process and its children.
#[cfg(target_os = "linux")]
fn sockets_of(root: u32) -> Result<HashSet<u64>, String> {
    let mut sockets = HashSet::new();
    for pid in super::watch::family(root) {
        match procfs::process::Process::new(pid as i32).and_then(|process| own_sockets(&process)) {
            Ok(own) => sockets.extend(own),
            // A child that has just ended, as a server's of one connection does, listens on nothing.
            Err(procfs::ProcError::NotFound(_)) if pid != root => continue,
            Err(error) => return Err(cannot(error)),
        }
    }
    Ok(sockets)
}

#[cfg(target_os = "linux")]
fn cannot(error: procfs::ProcError) -> String {
    format!("cannot look up what the server listens on: {error}")
}

/// A socket of this machine that somebody listens on.
#[cfg(target_os = "linux")]
struct Listening {
    inode: u64,
    at: Address,
}

#[cfg(target_os = "linux")]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[cfg(target_os = "linux")]
impl Listening {
    /// Whether who goes to this place gets here.
    fn is_at(&self, place: &Place) -> bool {
        match (&self.at, place) {
            (Address::Tcp(address), Place::Tcp { host, port }) => {
                let is_meant = |own: SocketAddr| address.ip().is_unspecified() || own.ip() == address.ip();
                address.port() == *port
                    && guest::is_here(place)
                    && (host.as_str(), *port).to_socket_addrs().is_ok_and(|mut all| all.any(is_meant))
            }
            (Address::Unix(own), Place::Unix(path)) => {
                let same = |own: PathBuf| path.canonicalize().is_ok_and(|path| own == path);
                own.canonicalize().is_ok_and(same)
            }
            _ => false,
        }
    }
}

/// All that is listened on here.
#[cfg(target_os = "linux")]
fn listening() -> Result<Vec<Listening>, String> {
    // A machine without IPv6 has no table of it.
    let entries = tcp_listeners("/proc/net/tcp").map_err(cannot)?.into_iter();
    let entries = entries.chain(tcp_listeners("/proc/net/tcp6").unwrap_or_default());
    let over_tcp = entries.map(|entry| Listening { inode: entry.inode, at: Address::Tcp(entry.local_address) });
    let table = std::fs::read("/proc/net/unix").map_err(|error| cannot(error.into()))?;
    let in_files = unix_listeners(&table).map(|(inode, path)| Listening { inode, at: Address::Unix(path) });
    Ok(over_tcp.chain(in_files).collect())
}

/// The listening sockets of a table. They come first in it (Documentation/networking/proc_net_tcp.rst); before Linux
/// 4.4 half-open connections stand between them. The rest can be many thousands of lines. The kernel makes these as
/// they are read: a page at a time.
#[cfg(target_os = "linux")]
fn tcp_listeners(table: &str) -> procfs::ProcResult<Vec<procfs::net::TcpNetEntry>> {
    use std::io::{BufRead, BufReader};

    use procfs::net::{TcpNetEntries, TcpState};
    use procfs::prelude::FromBufReadSI;

    /// TCP_LISTEN and TCP_SYN_RECV (include/net/tcp_states.h), in the fourth column.
    const FIRST: [&[u8]; 2] = [b"0A", b"03"];
    let mut lines = BufReader::with_capacity(4096, std::fs::File::open(table)?);
    let mut text = Vec::new();
    lines.read_until(b'\n', &mut text)?;
    loop {
        let begins = text.len();
        lines.read_until(b'\n', &mut text)?;
        let mut columns = text[begins..].split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
        if !columns.nth(3).is_some_and(|state| FIRST.contains(&state)) {
            text.truncate(begins);
            break;
        }
    }
    let TcpNetEntries(entries) = TcpNetEntries::from_buf_read(&text[..], procfs::current_system_info())?;
    Ok(entries.into_iter().filter(|entry| entry.state == TcpState::Listen).collect())
}

/// What the process and its children listen on.
#[cfg(target_os = "linux")]
pub fn of(root: u32) -> Result<Listeners, String> {
    let sockets = sockets_of(root)?;
    let mut found = Found::default();
    for Listening { inode, at } in listening()? {
        match at {
            _ if !sockets.contains(&inode) => {}
            Address::Tcp(address) => found.tcp.push(address),
            Address::Unix(path) => found.unix.push(path),
        }
    }
    Ok(Listeners(Some(found)))
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
        assert!(tcp("127.0.0.1:7001").check(&place, None, false).is_ok());
        assert!(tcp("0.0.0.0:7001").check(&place, None, true).unwrap_err().contains("others can reach"));
        assert!(tcp("127.0.0.1:7002").check(&place, None, false).unwrap_err().contains("besides"));
        assert!(tcp("127.0.0.1:7002").check(&place, None, true).unwrap_err().contains("not the process"));
        assert!(tcp("127.0.0.1:17001").check(&place, Some(17_001), false).unwrap_err().contains("not the process"));
        let both = ["127.0.0.1:7001", "127.0.0.1:17001"].map(|address| address.parse().unwrap()).to_vec();
        let both = Listeners(Some(Found { tcp: both, unix: vec![] }));
        assert!(both.check(&place, Some(17_001), false).is_ok());
        assert!(both.check(&place, None, false).unwrap_err().contains("besides"));
        assert!(Listeners(Some(Found::default())).check(&place, None, false).unwrap_err().contains("not the process"));
        let socket = Place::Unix(PathBuf::from("/x/s"));
        assert!(tcp("127.0.0.1:7001").check(&socket, None, false).unwrap_err().contains("besides"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_listeners_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = of(std::process::id()).unwrap().0.unwrap();
        assert!(found.tcp.contains(&address), "{found:?}");
    }

    /// More than a page of them, and connections behind them.
    #[test]
    #[cfg(target_os = "linux")]
    fn all_listeners_stand_before_what_is_left_out() {
        use std::net::{TcpListener, TcpStream};

        for (host, table) in [("127.0.0.1", "/proc/net/tcp"), ("::1", "/proc/net/tcp6")] {
            let Ok(listeners) = (0..60).map(|_| TcpListener::bind((host, 0))).collect::<Result<Vec<_>, _>>() else {
                assert_eq!(host, "::1", "a machine may lack IPv6");
                continue;
            };
            let addresses: Vec<SocketAddr> = listeners.iter().map(|one| one.local_addr().unwrap()).collect();
            let connections: Vec<TcpStream> = addresses.iter().map(|at| TcpStream::connect(at).unwrap()).collect();
            let found: Vec<SocketAddr> =
                tcp_listeners(table).unwrap().iter().map(|entry| entry.local_address).collect();
            assert!(addresses.iter().all(|address| found.contains(address)), "{addresses:?} in {found:?}");
            let is_left_out = |one: &TcpStream| !found.contains(&one.local_addr().unwrap());
            assert!(connections.len() == 60 && connections.iter().all(is_left_out), "{found:?}");
        }
    }

    /// A server is looked for among all processes; who started us is none of the machine's servers.
    #[test]
    #[cfg(target_os = "linux")]
    fn who_listens_is_found_unless_it_is_who_asks() {
        use std::process::{Command, Stdio};

        let script = "import socket, sys, time; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); \
            print(s.getsockname()[1], flush=True); time.sleep(60)";
        let mut server = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut told = std::io::BufReader::new(server.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut told, &mut line).unwrap();
        let place = |port: u16| Place::Tcp { host: "localhost".to_string(), port };
        let port = line.trim().parse().unwrap();
        let found = [neighbour(&place(port), None), neighbour(&place(port), Some(server.id()))];
        let other = neighbour(&place(port), Some(std::process::id() + 1));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!((found, other), ([Some(server.id()); 2], None));
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = place(own.local_addr().unwrap().port());
        assert_eq!([neighbour(&own, None), neighbour(&own, Some(std::process::id()))], [None, None]);
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
