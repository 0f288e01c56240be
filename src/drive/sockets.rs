//! A few threads, each with many connections: one read and one write a wake-up, as many questions in a write as the
//! depth says. For servers that we speak to by a codec of our own.
//!
//! Most of what a request costs its client is system calls, so there are no others: connections are registered once,
//! and a wake-up reads once, hears all answers that came, and writes all next questions once. A batch is asked when the
//! one before it is answered.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::pace::Pace;
use super::{Seen, Stopped, Work};
use crate::jobs::{Client, InputFault};
use crate::stores::blocking::Line;
use crate::wire::Known;
use crate::words::op::Fault;

mod converse;
mod paced;

use converse::{Counts, State, Talk, Trouble, converse};

/// What one read may bring at most. What is left comes with the next one.
const READ_BYTES: usize = 256 << 10;
/// Wake-ups that one look at the queue may bring.
const EVENTS: usize = 1024;
/// How often a thread looks up while nothing comes.
const LOOK: Duration = Duration::from_millis(100);
/// More threads than this were never needed to keep a server busy.
const HANDS_MAX: usize = 4;

/// Drives all clients to their end, with up to `depth` questions of each under way. `ready` is called once all are
/// connected, before the first question.
pub fn run(work: &Work<'_>, depth: u32, patience: Duration, ready: impl FnOnce()) -> Result<Seen, Stopped> {
    let hands = hands(work.at.clients);
    if hands == 1 {
        return alone(work, depth, patience, ready).and_then(|ended| add_up(vec![Ok(ended)]));
    }
    let start = Start { ready: Barrier::new(hands + 1), go: Barrier::new(hands + 1), stop: AtomicBool::new(false) };
    let ended: Vec<Result<Ended, Stopped>> = std::thread::scope(|scope| {
        let hand = |number| {
            let start = &start;
            move || one(work, number, hands, depth, patience, start)
        };
        let threads: Vec<_> = (0..hands).map(|number| scope.spawn(hand(number))).collect();
        start.ready.wait();
        ready();
        start.go.wait();
        threads.into_iter().map(|thread| thread.join().expect("a hand does not panic")).collect()
    });
    add_up(ended)
}

/// The only hand is this thread: system calls of a process with one thread cost less.
fn alone(work: &Work<'_>, depth: u32, patience: Duration, ready: impl FnOnce()) -> Result<Ended, Stopped> {
    let hand = Hand::prepare(work, 0, 1, depth)?;
    ready();
    hand.ended(work, (0, 1), patience, &AtomicBool::new(false))
}

/// Half of the processors are the server's.
fn hands(clients: u32) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).clamp(1, HANDS_MAX).min(clients as usize)
}

/// Where all hands wait for one another.
struct Start {
    ready: Barrier,
    go: Barrier,
    stop: AtomicBool,
}

/// What one hand has seen.
struct Ended {
    began: Instant,
    ended: Instant,
    seen: Seen,
}

fn add_up(ended: Vec<Result<Ended, Stopped>>) -> Result<Seen, Stopped> {
    let mut all = Seen { threads: ended.len() as u32, timed_one_in: 1, ..Seen::default() };
    let mut times: Vec<(Instant, Instant)> = Vec::new();
    let mut stopped = None;
    for one in ended {
        match one {
            Ok(Ended { began, ended, seen }) => {
                times.push((began, ended));
                all.add(seen);
            }
            Err(Stopped::Elsewhere) => {}
            Err(why) => stopped = stopped.or(Some(why)),
        }
    }
    if let Some(why) = stopped {
        return Err(why);
    }
    let (began, ended) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
    all.took_s = began.zip(ended).map_or(0.0, |(began, ended)| ended.duration_since(began).as_secs_f64());
    Ok(all)
}

/// One thread: connect, wait for the others, work.
fn one(
    work: &Work<'_>,
    number: usize,
    hands: usize,
    depth: u32,
    patience: Duration,
    start: &Start,
) -> Result<Ended, Stopped> {
    let prepared = Hand::prepare(work, number, hands, depth);
    if prepared.is_err() {
        start.stop.store(true, Ordering::Relaxed);
    }
    start.ready.wait();
    start.go.wait();
    let ended = prepared?.ended(work, (number, hands), patience, &start.stop);
    if ended.is_err() {
        start.stop.store(true, Ordering::Relaxed);
    }
    ended
}

/// One client on its connection.
struct Party {
    index: u32,
    line: Line,
    client: Box<dyn Client>,
    /// Commands of the greeting, which are no part of the work.
    greeted: u64,
    /// Questions so far, where they come at a rate.
    asked: u64,
    /// The beginning of an answer whose end is still to come.
    unread: Vec<u8>,
    /// The end of a batch that the socket did not take at once.
    unsent: Vec<u8>,
    state: State,
}

/// A thread's connections, and what all of them share.
struct Hand {
    parties: Vec<Party>,
    poll: Poll,
    depth: u32,
    received: Vec<u8>,
    out: Vec<u8>,
    /// Connections that have something new to send.
    touched: Vec<usize>,
    counts: Counts,
}

impl Hand {
    /// Connects one client after another, so that no server's queue of new connections overflows.
    fn prepare(work: &Work<'_>, number: usize, hands: usize, depth: u32) -> Result<Hand, Stopped> {
        let poll = Poll::new().map_err(|error| Stopped::Session(Fault::Lost(error)))?;
        let mut parties = Vec::new();
        for index in (number as u32..work.at.clients).step_by(hands) {
            let client = work.job.client(work.part, index, work.at, work.source);
            let client = client.map_err(|error| Stopped::Input(InputFault::opening(work.source, &error)))?;
            let line = work.store.line().unwrap_or_else(|| Err(Fault::Unsupported("no connections".to_string())));
            let line = line.map_err(Stopped::Session)?;
            let fd = line.stream.as_fd().as_raw_fd();
            poll.registry()
                .register(&mut SourceFd(&fd), Token(parties.len()), Interest::READABLE)
                .map_err(|error| Stopped::Session(Fault::Lost(error)))?;
            let greeted = line.codec.commands();
            let (unread, unsent, state) = (Vec::new(), Vec::new(), State::new());
            parties.push(Party { index, line, client, greeted, asked: 0, unread, unsent, state });
        }
        let counts = Counts { live: parties.len(), ..Counts::default() };
        Ok(Hand { parties, poll, depth, received: vec![0; READ_BYTES], out: Vec::new(), touched: Vec::new(), counts })
    }

    /// Works to the end. It is hand `number` of so many.
    fn ended(
        mut self,
        work: &Work<'_>,
        (number, hands): (usize, usize),
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<Ended, Stopped> {
        // The first of all takes the beginning of all due times.
        let began = work.pace.map_or_else(Instant::now, Pace::began);
        match work.pace {
            None => self.work(work, number as u32, patience, stop)?,
            Some(pace) => paced::work(&mut self, work, pace, (number, hands), patience, stop)?,
        }
        Ok(Ended { began, ended: Instant::now(), seen: self.into_seen() })
    }

    fn work(&mut self, work: &Work<'_>, number: u32, patience: Duration, stop: &AtomicBool) -> Result<(), Stopped> {
        let progress = work.progress.client(number);
        let mut events = Events::with_capacity(EVENTS);
        let Hand { parties, poll, depth, received, out, counts, .. } = self;
        for (place, party) in parties.iter_mut().enumerate() {
            party.talk(&[], &mut Talk { depth: *depth, now: Instant::now(), out, counts })?;
            party.send(out, poll, place).map_err(|error| party.lost(error))?;
        }
        let mut heard = Instant::now();
        let mut told = heard;
        while counts.live > 0 {
            match poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled.map_err(|error| Stopped::Session(Fault::Lost(error)))?,
            }
            for event in &events {
                let place = event.token().0;
                parties[place].meet(event, *depth, received, out, counts, poll, place)?;
            }
            progress.store(counts.seen.units, Ordering::Relaxed);
            let now = Instant::now();
            if number == 0 && now.duration_since(told) > LOOK {
                told = now;
                work.progress.tell();
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Stopped::Elsewhere);
            }
            if !events.is_empty() {
                heard = now;
            } else if now.duration_since(heard) > patience {
                return Err(silent(parties, patience));
            }
        }
        Ok(())
    }

    fn into_seen(self) -> Seen {
        let Counts { mut seen, waited, times, lateness, .. } = self.counts;
        seen.waiting_s = waited.as_secs_f64();
        seen.times = times;
        seen.asked =
            self.parties.iter().filter(|_| lateness.is_some()).map(|party| (party.index, party.asked)).collect();
        seen.lateness = lateness.map(|(lateness, _)| lateness);
        seen.timed_one_in = 1;
        seen.clock_ns = super::tally::price_ns();
        for party in &self.parties {
            seen.commands += party.line.codec.commands() - party.greeted;
            seen.conflicts += party.client.conflicts();
            seen.misses += party.client.misses();
            seen.skipped_lines = seen.skipped_lines.max(party.client.skipped());
        }
        seen
    }
}

fn silent(parties: &[Party], patience: Duration) -> Stopped {
    let silent: Vec<&Party> = parties.iter().filter(|party| party.state.under_way > 0).collect();
    let (count, name) = (silent.len(), silent.first().map_or("", |party| party.line.name.as_str()));
    let patience_s = patience.as_secs_f64();
    let what = format!("{name} has been silent for {patience_s} s on {count} connections");
    Stopped::Session(Fault::Lost(io::Error::new(ErrorKind::TimedOut, what)))
}

impl Party {
    /// Does what a wake-up is about.
    #[inline]
    #[allow(clippy::too_many_arguments)] // What the connections of a thread share, each part borrowed by itself.
    fn meet(
        &mut self,
        event: &Event,
        depth: u32,
        received: &mut [u8],
        out: &mut Vec<u8>,
        counts: &mut Counts,
        poll: &Poll,
        place: usize,
    ) -> Result<(), Stopped> {
        if !self.unsent.is_empty() && event.is_writable() {
            self.send_rest(poll, place).map_err(|error| self.lost(error))?;
        }
        if event.is_readable() || event.is_read_closed() {
            self.receive(depth, received, out, counts, poll, place)?;
        }
        // The end may be told together with the last bytes, and is not told again.
        if event.is_read_closed() && !self.state.over() { Err(self.closed()) } else { Ok(()) }
    }

    /// Reads what has come, hears it, and asks on where the whole batch is answered.
    #[inline]
    fn receive(
        &mut self,
        depth: u32,
        received: &mut [u8],
        out: &mut Vec<u8>,
        counts: &mut Counts,
        poll: &Poll,
        place: usize,
    ) -> Result<(), Stopped> {
        loop {
            // An answer that came in pieces is put together in a buffer of the connection's own.
            let mut own = std::mem::take(&mut self.unread);
            let kept = own.len();
            let (bytes, room) = if kept == 0 {
                (&mut *received, READ_BYTES)
            } else {
                own.resize(kept + READ_BYTES.min(kept.max(READ_BYTES / 16)), 0);
                let room = own.len() - kept;
                (&mut own[..], room)
            };
            let came = match self.line.stream.read(&mut bytes[kept..]) {
                Ok(0) => return Err(self.closed()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    own.truncate(kept);
                    self.unread = own;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) => return Err(self.lost(error)),
            };
            let now = Instant::now();
            let bytes = &bytes[..kept + came];
            let used = self.talk(bytes, &mut Talk { depth, now, out, counts })?;
            // Emptied or not, what is left begins the next buffer.
            self.unread = match kept {
                0 => bytes[used..].to_vec(),
                _ => {
                    own.truncate(kept + came);
                    own.drain(..used);
                    own
                }
            };
            self.send(out, poll, place).map_err(|error| self.lost(error))?;
            // Less than there was room for is all there was.
            if came < room {
                return Ok(());
            }
        }
    }

    /// Hears all answers that are whole, and asks on where none are under way any more. The bytes that they took.
    #[inline]
    fn talk(&mut self, bytes: &[u8], talk: &mut Talk<'_>) -> Result<usize, Stopped> {
        let Party { line, client, state, .. } = self;
        let talked = match (client.keyed(), line.codec.known()) {
            (Some(client), Some(Known::Resp(codec))) => converse(client, codec, state, bytes, talk),
            (Some(client), Some(Known::Text(codec))) => converse(client, codec, state, bytes, talk),
            _ => converse(client.as_mut(), line.codec.as_mut(), state, bytes, talk),
        };
        talked.map_err(|trouble| match trouble {
            Trouble::Line(fault) => Stopped::Line { name: self.line.name.clone(), fault },
            Trouble::Other(stopped) => stopped,
        })
    }

    /// Sends what is to be said, behind what was not sent before.
    #[inline]
    fn send(&mut self, out: &mut Vec<u8>, poll: &Poll, place: usize) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        if !self.unsent.is_empty() {
            self.unsent.append(out);
            return Ok(());
        }
        let sent = write(&mut self.line, out)?;
        if sent < out.len() {
            self.unsent.extend_from_slice(&out[sent..]);
            self.watch(poll, place, Interest::READABLE | Interest::WRITABLE)?;
        }
        out.clear();
        Ok(())
    }

    #[cold]
    fn send_rest(&mut self, poll: &Poll, place: usize) -> io::Result<()> {
        let sent = write(&mut self.line, &self.unsent)?;
        self.unsent.drain(..sent);
        if self.unsent.is_empty() {
            self.watch(poll, place, Interest::READABLE)?;
        }
        Ok(())
    }

    #[cold]
    fn watch(&self, poll: &Poll, place: usize, interest: Interest) -> io::Result<()> {
        poll.registry().reregister(&mut SourceFd(&self.line.stream.as_fd().as_raw_fd()), Token(place), interest)
    }

    #[cold]
    fn closed(&self) -> Stopped {
        self.lost(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"))
    }

    #[cold]
    fn lost(&self, error: io::Error) -> Stopped {
        let (name, fault) = (self.line.name.clone(), Fault::Lost(error));
        Stopped::Line { name, fault }
    }
}

/// Writes once; 0 where the socket takes nothing now.
#[inline]
fn write(line: &mut Line, bytes: &[u8]) -> io::Result<usize> {
    match line.stream.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        written => written,
    }
}
