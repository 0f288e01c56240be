//! The floor of a load generator: a bare epoll loop with a constant request, whose answers are only counted. The same
//! system calls as kvfair makes, and nothing else. A batch is sent when the one before it is back as a whole.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1024;
/// The timer's among the tokens of connections.
const TIMER: u64 = u64::MAX;
/// At a rate: what is due so soon is waited for awake, as kvfair does it.
const NEAR: Duration = Duration::from_micros(10);

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
            let (drawn, keys) = (&mut self.drawn, self.keys);
            let requests = self.bytes.chunks_exact_mut(self.request_bytes);
            requests.for_each(|request| write_key(&mut request[..self.key_end], (draw(drawn) * keys) >> 32));
        }
        &self.bytes
    }
}

/// At the end of these bytes.
fn write_key(bytes: &mut [u8], mut number: u64) {
    for digit in bytes.iter_mut().rev().take(DIGITS) {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Sets the first so many keys.
pub fn fill(server: &str, address: &str, keys: u64) {
    let Exchange { request, answer_bytes } = exchange(server, "set");
    let mut batch = Batch::new(&request, 1, 1);
    let mut stream = Stream::open(address);
    let queue = Queue::new();
    queue.watch(stream.fd(), 0);
    let (mut events, mut received) = (no_events(), [0; 100]);
    for number in 0..keys {
        write_key(&mut batch.bytes[..batch.key_end], number);
        stream.write(&batch.bytes);
        queue.wait(&mut events, -1);
        assert_eq!(stream.read(&mut received), answer_bytes);
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

/// Sends so many requests over so many connections, so many of each at once, the next ones when these are answered.
pub fn run(server: &str, address: &str, direction: &str, size: &Size) {
    let &Size { connections, depth, requests, keys } = size;
    let Exchange { request, answer_bytes } = exchange(server, direction);
    let mut batch = Batch::new(&request, depth, keys);
    let mut streams: Vec<Stream> = (0..connections).map(|_| Stream::open(address)).collect();
    let queue = Queue::new();
    (0..).zip(&streams).for_each(|(place, stream)| queue.watch(stream.fd(), place));
    let batches = requests.div_ceil(connections * depth);
    let mut left = vec![batches; connections];
    let mut back = vec![0; connections];
    let mut live = connections;
    streams.iter_mut().for_each(|stream| stream.write(batch.next()));
    let mut received = vec![0; READ_BYTES];
    let mut events = no_events();
    while live > 0 {
        for event in queue.wait(&mut events, -1) {
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
}

/// Sends so many requests over so many connections in turn, `rate` a second at random moments, whether those before them
/// are answered or not.
pub fn run_at(rate: f64, server: &str, address: &str, connections: usize, requests: usize) {
    let Exchange { request, answer_bytes } = exchange(server, "set");
    let mut streams: Vec<Stream> = (0..connections).map(|_| Stream::open(address)).collect();
    let queue = Queue::new();
    (0..).zip(&streams).for_each(|(place, stream)| queue.watch(stream.fd(), place));
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK).expect("a timer");
    queue.watch(timer.as_fd().as_raw_fd(), TIMER);
    let mut events = no_events();
    let mut received = vec![0; READ_BYTES];
    let (mut sent, mut back, mut armed) = (0, 0, usize::MAX);
    let (began, mut due, mut drawn) = (Instant::now(), Duration::ZERO, 1);
    while back < requests * answer_bytes {
        while sent < requests && due <= began.elapsed() {
            streams[sent % connections].write(&request);
            sent += 1;
            // Never the logarithm of nothing.
            let part = (draw(&mut drawn) + 1) as f64 / (1u64 << 32) as f64;
            due += Duration::from_secs_f64(-part.ln() / rate);
        }
        let left = due.saturating_sub(began.elapsed());
        let is_near = sent < requests && left < NEAR;
        if !is_near && armed != sent && sent < requests {
            timer.set(Expiration::OneShot(left.into()), TimerSetTimeFlags::empty()).expect("a timer");
            armed = sent;
        }
        for event in queue.wait(&mut events, if is_near { 0 } else { -1 }) {
            if event.u64 != TIMER {
                back += streams[event.u64 as usize].read(&mut received);
            }
        }
    }
}

/// 32 bits: Knuth's MMIX, good enough for its upper half.
fn draw(drawn: &mut u64) -> u64 {
    *drawn = drawn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *drawn >> 32
}

fn no_events() -> Vec<libc::epoll_event> {
    vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS]
}

/// The kernel's queue of events.
struct Queue(RawFd);

impl Queue {
    fn new() -> Queue {
        // SAFETY: epoll_create1 takes no pointer; its result is checked.
        let queue = unsafe { libc::epoll_create1(0) };
        assert!(queue >= 0, "epoll_create1");
        Queue(queue)
    }

    fn watch(&self, fd: RawFd, token: u64) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: the event lives until the call returns.
        assert_eq!(unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, fd, &mut event) }, 0, "epoll_ctl");
    }

    fn wait<'e>(&self, events: &'e mut [libc::epoll_event], timeout_ms: i32) -> &'e [libc::epoll_event] {
        // SAFETY: there is room for as many events as are asked for.
        let count = unsafe { libc::epoll_wait(self.0, events.as_mut_ptr(), events.len() as i32, timeout_ms) };
        &events[..usize::try_from(count).unwrap_or(0)]
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody uses it any more.
        unsafe { libc::close(self.0) };
    }
}
