//! The floor of a load generator: a bare epoll loop with a constant request, whose answers are only counted. The same
//! system calls as kvfair makes, and nothing else. A batch is sent when the one before it is back as a whole.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::libc;

const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1024;

/// What is sent again and again, and how long its answer is.
pub struct Exchange {
    pub request: Vec<u8>,
    pub answer_bytes: usize,
}

/// The only key of a constant request.
const KEY: &str = "key:000000012345";
/// Its digits that differ where requests ask for several keys.
const DIGITS: usize = 7;

/// Value and key as kvfair's: 32 bytes and 16.
pub fn exchange(server: &str, direction: &str) -> Exchange {
    let value = "x".repeat(32);
    let (request, answer) = match (server, direction) {
        ("redis", "set") => (format!("*3\r\n$3\r\nSET\r\n$16\r\n{KEY}\r\n$32\r\n{value}\r\n"), "+OK\r\n".to_string()),
        ("redis", _) => (format!("*2\r\n$3\r\nGET\r\n$16\r\n{KEY}\r\n"), format!("$32\r\n{value}\r\n")),
        (_, "set") => (format!("set {KEY} 0 0 32\r\n{value}\r\n"), "STORED\r\n".to_string()),
        (_, _) => (format!("get {KEY}\r\n"), format!("VALUE {KEY} 0 32\r\n{value}\r\nEND\r\n")),
    };
    Exchange { request: request.into_bytes(), answer_bytes: answer.len() }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn open(address: &str) -> Stream {
        if address.starts_with('/') {
            let stream = UnixStream::connect(address).expect("the server's socket");
            stream.set_nonblocking(true).expect("a socket");
            return Stream::Unix(stream);
        }
        let stream = TcpStream::connect(address).expect("the server's port");
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).expect("a socket");
        Stream::Tcp(stream)
    }

    fn fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let written = match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        };
        assert_eq!(written.expect("the server takes what is sent"), bytes.len());
    }

    fn read(&mut self, bytes: &mut [u8]) -> usize {
        let read = match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        };
        read.expect("the server answers")
    }
}

/// A batch of requests whose keys are drawn anew each time, where there are several.
struct Batch {
    bytes: Vec<u8>,
    request_bytes: usize,
    /// Where a request's key ends.
    key_end: usize,
    keys: u64,
    drawn: u64,
}

impl Batch {
    fn new(request: &[u8], depth: usize, keys: u64) -> Batch {
        let key = request.windows(KEY.len()).position(|part| part == KEY.as_bytes()).expect("a key");
        let (bytes, request_bytes) = (request.repeat(depth), request.len());
        Batch { bytes, request_bytes, key_end: key + KEY.len(), keys, drawn: 1 }
    }

    fn next(&mut self) -> &[u8] {
        if self.keys > 1 {
            for request in self.bytes.chunks_exact_mut(self.request_bytes) {
                // Knuth's MMIX: good enough for its upper half.
                self.drawn = self.drawn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let mut number = ((self.drawn >> 32) * self.keys) >> 32;
                for digit in request[self.key_end - DIGITS..self.key_end].iter_mut().rev() {
                    *digit = b'0' + (number % 10) as u8;
                    number /= 10;
                }
            }
        }
        &self.bytes
    }
}

/// How much is asked.
pub struct Size {
    pub connections: usize,
    pub depth: usize,
    pub requests: usize,
    /// 1 for the floor as it is owed; more, to see what the server's own misses cost the client.
    pub keys: u64,
}

/// Sends so many requests over so many connections, so many of each at once.
pub fn run(server: &str, address: &str, direction: &str, size: &Size) {
    let &Size { connections, depth, requests, keys } = size;
    let Exchange { request, answer_bytes } = exchange(server, direction);
    let mut batch = Batch::new(&request, depth, keys);
    let mut streams: Vec<Stream> = (0..connections).map(|_| Stream::open(address)).collect();
    // SAFETY: epoll_create1 takes no pointer; its result is checked.
    let queue = unsafe { libc::epoll_create1(0) };
    assert!(queue >= 0, "epoll_create1");
    for (place, stream) in streams.iter().enumerate() {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: place as u64 };
        // SAFETY: the event lives until the call returns.
        assert_eq!(unsafe { libc::epoll_ctl(queue, libc::EPOLL_CTL_ADD, stream.fd(), &mut event) }, 0, "epoll_ctl");
    }
    let batches = requests.div_ceil(connections * depth);
    let mut left = vec![batches; connections];
    let mut back = vec![0; connections];
    let mut live = connections;
    streams.iter_mut().for_each(|stream| stream.write(batch.next()));
    let mut received = vec![0; READ_BYTES];
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    while live > 0 {
        // SAFETY: there is room for as many events as are asked for.
        let count = unsafe { libc::epoll_wait(queue, events.as_mut_ptr(), EVENTS as i32, -1) };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let place = event.u64 as usize;
            let came = streams[place].read(&mut received);
            assert!(came > 0, "the server closed a connection");
            back[place] += came;
            if back[place] < depth * answer_bytes {
                continue;
            }
            back[place] = 0;
            left[place] -= 1;
            if left[place] > 0 {
                streams[place].write(batch.next());
            } else {
                live -= 1;
            }
        }
    }
    // SAFETY: it is ours, and nobody uses it any more.
    unsafe { libc::close(queue) };
}
