//! The proxy: a child process that takes clients in place of a server and passes on what comes half a round trip later,
//! both ways. One thread waits for sockets and for a timer of the kernel, and never spins: the processor is the
//! client's. See docs/workloads.md, Round-trip times.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use mio::event::Event as Woken;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::peer;
use super::queue::DelayQueue;
use crate::harness::child::tell;
use crate::harness::files;
use crate::harness::pipe::{Listener, Pipe};
use crate::harness::task::{Event, Passed, ProxyTask};
use crate::stores::Place;

const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1024;
/// A timer that is later than this once was late by chance.
const LATE_MAX: Duration = Duration::from_micros(100);
/// Each time that the timer was late weighs so much in what is foreseen of it.
const WEIGHT: f64 = 1.0 / 16.0;

const PARENT: Token = Token(0);
const LISTENER: Token = Token(1);
const TIMER: Token = Token(2);
/// The first of a pair of connections; its client's is even, its server's the next one.
const FIRST: usize = 4;

/// Until the parent closes our standard input. Tells where it listens, and at the end what it passed on.
pub fn run(task: &ProxyTask) -> Result<(), String> {
    // A client has two connections here.
    files::allow(task.clients.saturating_mul(2))?;
    let failed = |error: io::Error| format!("the proxy before {} failed: {error}", task.server);
    let (listener, place) = Listener::for_clients_of(&task.server, &task.directory).map_err(failed)?;
    let mut proxy = Proxy::new(listener, task, Some(io::stdin().as_raw_fd())).map_err(failed)?;
    tell(&Event::Listens(place));
    proxy.serve().map_err(failed)?;
    tell(&Event::Passed(proxy.passed));
    Ok(())
}

struct Proxy<'a> {
    listener: Listener,
    server: &'a Place,
    delay: Duration,
    lets_in: Option<u32>,
    began: Instant,
    poll: Poll,
    timer: TimerFd,
    /// When the timer goes off, and what it is to go off for.
    armed: Option<(Duration, Duration)>,
    /// How late the timer goes off, in seconds: so much sooner it is set.
    late_s: f64,
    pairs: Vec<Option<Pair>>,
    /// When what has come is due, and whose it is: all is delayed alike, so that what came first is due first.
    order: VecDeque<(Duration, usize)>,
    buffer: Vec<u8>,
    passed: Passed,
}

/// A client and its connection to the server: what comes on the one goes out on the other.
struct Pair {
    ends: [Side; 2],
}

struct Side {
    pipe: Pipe,
    /// What goes out on it.
    queue: DelayQueue,
    /// Nothing is read from it until the other side's queue has room.
    is_held: bool,
}

impl<'a> Proxy<'a> {
    /// It ends when `parent` is closed, if that is anything.
    fn new(listener: Listener, task: &'a ProxyTask, parent: Option<RawFd>) -> io::Result<Proxy<'a>> {
        let (poll, timer) = (Poll::new()?, TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?);
        listener.set_nonblocking()?;
        let sources = [(listener.as_raw_fd(), LISTENER), (timer.as_fd().as_raw_fd(), TIMER)];
        for (descriptor, token) in sources.into_iter().chain(parent.map(|parent| (parent, PARENT))) {
            poll.registry().register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
        }
        Ok(Proxy {
            listener,
            server: &task.server,
            delay: task.delay,
            lets_in: task.lets_in,
            began: Instant::now(),
            poll,
            timer,
            armed: None,
            late_s: 0.0,
            pairs: Vec::new(),
            order: VecDeque::new(),
            buffer: vec![0; READ_BYTES],
            passed: Passed::default(),
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            self.set_timer()?;
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    // It says nothing: this is its end.
                    PARENT => return Ok(()),
                    LISTENER => self.take_clients()?,
                    TIMER => self.went_off(),
                    Token(number) => self.woken(number, event),
                }
            }
            self.pass_on();
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// What is due until then is passed on now: a timer that is set for it goes off too late.
    fn until(&self) -> Duration {
        self.now() + Duration::from_secs_f64(self.late_s)
    }

    /// For what is due next. Who is due already goes out as it is.
    fn set_timer(&mut self) -> io::Result<()> {
        let Some((due, _)) = self.order.front().copied() else { return Ok(()) };
        if self.armed.is_some_and(|(_, armed_for)| armed_for == due) {
            return Ok(());
        }
        let now = self.now();
        let goes_off = due.saturating_sub(Duration::from_secs_f64(self.late_s)).max(now + Duration::from_nanos(1));
        let after = Expiration::OneShot(TimeSpec::from_duration(goes_off - now));
        self.timer.set(after, TimerSetTimeFlags::empty())?;
        self.armed = Some((goes_off, due));
        Ok(())
    }

    fn went_off(&mut self) {
        // An error means that it was set anew meanwhile.
        if self.timer.wait().is_err() {
            return;
        }
        if let Some((goes_off, _)) = self.armed.take() {
            let late = self.now().saturating_sub(goes_off).min(LATE_MAX);
            self.late_s += (late.as_secs_f64() - self.late_s) * WEIGHT;
        }
    }

    /// All connections that wait to be accepted.
    fn take_clients(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                // Who is not let in, or finds no server, sees its connection closed.
                Ok(client)
                    if client.over_tcp().is_some_and(|(other, ours)| peer::is_stranger(other, ours, self.lets_in)) => {}
                Ok(client) => drop(self.take(client)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, client: Pipe) -> io::Result<()> {
        client.without_delay()?;
        let pipes = [client, Pipe::to(self.server)?];
        let free = self.pairs.iter().position(Option::is_none).unwrap_or(self.pairs.len());
        for (side, pipe) in pipes.iter().enumerate() {
            pipe.set_nonblocking()?;
            let token = Token(FIRST + 2 * free + side);
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut SourceFd(&pipe.as_raw_fd()), token, both)?;
        }
        if free == self.pairs.len() {
            self.pairs.push(None);
        }
        let delay = self.delay;
        let side = |pipe| Side { pipe, queue: DelayQueue::new(delay), is_held: false };
        self.pairs[free] = Some(Pair { ends: pipes.map(side) });
        Ok(())
    }

    fn woken(&mut self, number: usize, event: &Woken) {
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(number);
        }
        if event.is_writable() {
            self.write(number);
        }
    }

    /// Reads a connection empty, as long as there is room for what comes.
    fn read(&mut self, number: usize) {
        let (place, from) = ((number - FIRST) / 2, number % 2);
        let Some(Some(pair)) = self.pairs.get_mut(place) else { return };
        let [client, server] = &mut pair.ends;
        let (source, sink) = if from == 0 { (client, server) } else { (server, client) };
        loop {
            source.is_held = sink.queue.is_full();
            if source.is_held {
                return;
            }
            let now = self.began.elapsed();
            let due = match source.pipe.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => sink.queue.push_end(now),
                Ok(count) => {
                    self.passed.bytes += count as u64;
                    self.order.push_back((sink.queue.push(now, &self.buffer[..count]), number ^ 1));
                    continue;
                }
            };
            self.order.push_back((due, number ^ 1));
            return;
        }
    }

    /// Everything that is due.
    fn pass_on(&mut self) {
        while let Some((_, number)) = self.order.front().copied().filter(|(due, _)| *due <= self.until()) {
            self.order.pop_front();
            self.write(number);
        }
    }

    /// Passes on to a connection what is due there, as far as it takes it.
    fn write(&mut self, number: usize) {
        let (place, side, until, now) = ((number - FIRST) / 2, number % 2, self.until(), self.now());
        let Some(Some(pair)) = self.pairs.get_mut(place) else { return };
        let Side { pipe, queue, .. } = &mut pair.ends[side];
        let passed = &mut self.passed;
        queue.let_go(until, |due| {
            passed.chunks += 1;
            passed.late_s += now.as_secs_f64() - due.as_secs_f64();
        });
        while !queue.due().is_empty() {
            match pipe.write(queue.due()) {
                Ok(count) => queue.passed(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => queue.give_up(),
            }
        }
        if queue.has_ended() {
            // It may be gone already.
            let _ = pipe.shut(Shutdown::Write);
        }
        let other = &pair.ends[1 - side];
        if pair.ends.iter().all(|end| end.queue.has_ended()) {
            self.let_go_of(place);
        } else if other.is_held && !pair.ends[side].queue.is_full() {
            self.read(number ^ 1);
        }
    }

    fn let_go_of(&mut self, place: usize) {
        for end in self.pairs[place].take().into_iter().flat_map(|pair| pair.ends) {
            let _ = self.poll.registry().deregister(&mut SourceFd(&end.pipe.as_raw_fd()));
        }
    }
}

/// Where a proxy listens that goes on as long as its test.
#[cfg(test)]
pub(super) fn serve_in_a_thread(task: ProxyTask) -> Place {
    let (listener, place) = Listener::for_clients_of(&task.server, &task.directory).expect("a listener");
    std::thread::spawn(move || {
        let mut proxy = Proxy::new(listener, &task, None).expect("a proxy");
        let _ = proxy.serve();
    });
    place
}
