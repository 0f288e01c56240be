//! Whose process is at the other end of a connection over the loopback.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use nix::unistd::geteuid;

/// sock_diag(7), linux/netlink.h, linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const REQUEST_BYTES: usize = 72;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
/// Where an answer has the user: behind the header (16 bytes), four bytes, the socket's addresses (48), and three
/// numbers.
const USER_AT: usize = 16 + 4 + 48 + 12;

/// Whether the client `other` of a connection to `ours` runs as a user who is neither ours nor `known`. False if the
/// kernel does not tell, or if the client is gone already.
///
/// The kernel is asked for this one socket: /proc/net/tcp, which tells it as well, takes it 8 ms.
pub fn is_stranger(other: SocketAddr, ours: SocketAddr, known: Option<u32>) -> bool {
    user_of(other, ours).is_some_and(|user| user != geteuid().as_raw() && Some(user) != known)
}

fn user_of(other: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let (SocketAddr::V4(other), SocketAddr::V4(ours)) = (other, ours) else { return None };
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    request.extend((REQUEST_BYTES as u32).to_ne_bytes());
    request.extend([SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST].map(u16::to_ne_bytes).concat());
    // Its number, and that the kernel is asked.
    request.extend([0; 8]);
    // No extensions; in any state.
    request.extend([AF_INET, IPPROTO_TCP, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([other, ours].map(|address| address.port().to_be_bytes()).concat());
    for address in [other, ours] {
        request.extend(address.ip().octets());
        request.extend([0; 12]);
    }
    // At any interface, and by no cookie.
    request.extend([0; 4]);
    request.extend([u8::MAX; 8]);
    let kernel =
        socket(AddressFamily::Netlink, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)
            .ok()?;
    send(kernel.as_raw_fd(), &request, MsgFlags::empty()).ok()?;
    let mut answer = [0; 512];
    let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::empty()).ok()?;
    let is_told = u16::from_ne_bytes([answer[4], answer[5]]) == SOCK_DIAG_BY_FAMILY && length >= USER_AT + 4;
    is_told.then(|| u32::from_ne_bytes(answer[USER_AT..USER_AT + 4].try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_tells_whose_a_connection_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        let client = TcpStream::connect(ours).unwrap();
        let other = client.local_addr().unwrap();
        assert_eq!(user_of(other, ours), Some(geteuid().as_raw()));
        assert!(!is_stranger(other, ours, None) && !is_stranger(other, ours, Some(65534)));
        let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(user_of(nobody, ours), None);
    }
}
