//! Where servers of our own are reached.

use std::net::TcpListener;
use std::path::Path;

use crate::model::trial::Transport;
use crate::stores::{Place, Server};

/// The longest path of a Unix socket that every system takes (macOS: 104 bytes with the end mark).
const SOCKET_PATH_MAX: usize = 103;
/// The number of ports that are tried for a server that needs two.
const PORTS_LOOKED_AT: u32 = 100;

/// A Unix socket in our own directory, or a loopback port that was free a moment ago.
pub(super) fn private(
    server: &Server,
    transport: Transport,
    scratch: &Path,
    bus_offset: Option<u16>,
) -> Result<Place, String> {
    if transport == Transport::Unix {
        let path = scratch.join(server.socket);
        let length = path.as_os_str().len();
        return if length <= SOCKET_PATH_MAX {
            Ok(Place::Unix(path))
        } else {
            Err(format!(
                "the socket path {} has {length} bytes, at most {SOCKET_PATH_MAX} work: set TMPDIR to a shorter one",
                path.display()
            ))
        };
    }
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).and_then(|listener| listener.local_addr());
    for _ in 0..PORTS_LOOKED_AT {
        let port = free(0).map_err(|error| format!("no free port on 127.0.0.1: {error}"))?.port();
        // The other one must be free too.
        let other = bus_offset.map(|offset| port.checked_add(offset).filter(|&other| free(other).is_ok()));
        if other != Some(None) {
            return Ok(Place::Tcp { host: "127.0.0.1".to_string(), port });
        }
    }
    Err(format!("none of {PORTS_LOOKED_AT} ports on 127.0.0.1 had a free one {} above it", bus_offset.unwrap_or(0)))
}
