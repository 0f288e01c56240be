//! A few threads, each with many connections: one read and one write a wake-up, as many questions in a write as the
//! depth says. For servers that we speak to by a codec of our own.
//!
//! Most of what a request costs its client is system calls, so there are no others: connections are registered once,
//! and a wake-up reads each that has something to tell once, hears all answers that came, and then writes all next
//! questions, once a connection. A batch is asked when the one before it is answered.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::pace::Pace;
use super::{LoadStats, Stopped, Work};
use crate::jobs::{Client, InputFault};
use crate::model::op::Fault;
use crate::protocol::KnownCodec;
use crate::stores::blocking::Connection;

mod backlog;
mod exchange;
mod paced;
mod reconnect;
mod send_queue;

use reconnect::Lost;

use backlog::WriteBacklog;
use exchange::{Counts, State, Talk, Trouble, exchange};
use send_queue::SendQueue;

/// What one read may bring at most. What is left comes with the next one.
const READ_BYTES: usize = 256 << 10;
/// Wake-ups that one look at the queue may bring.
const EVENTS: usize = 1024;
/// How often a thread looks up while nothing comes.
const LOOK: Duration = Duration::from_millis(100);
/// More threads than this were never needed to keep a server busy.
const THREADS_MAX: usize = 4;

/// How clients behave on their connections.
#[derive(Clone, Copy, Debug)]
pub struct Conduct {
    /// Questions of each client that are under way at once.
    pub depth: u32,
    /// How long all connections may be silent.
    pub patience: Duration,
    /// A connection that is lost is opened again, and what was under way on it is asked once more; else it is the end.
    pub reopens: bool,
    pub threads: Threads,
}

/// How many threads drive the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// As many as half of the processors: the others are the server's.
    Half,
    /// So many processes share that half.
    HalfOf(u32),
    /// Twice as many, to see whether these were too few.
    Doubled,
    /// As many as processors: the server is on others than those that we may run on.
    All,
}

/// Drives all clients to their end. `ready` is called once all are connected, before the first question.
pub fn run(work: &Work<'_>, conduct: Conduct, ready: impl FnOnce()) -> Result<LoadStats, Stopped> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let count = generator_threads(work.at.clients, conduct.threads, processors);
    if count == 1 {
        return alone(work, conduct, ready).and_then(|ended| add_up(vec![Ok(ended)]));
    }
    let start = Start { ready: Barrier::new(count + 1), go: Barrier::new(count + 1), stop: AtomicBool::new(false) };
    let ended: Vec<Result<Ended, Stopped>> = std::thread::scope(|scope| {
        let thread = |number| {
            let start = &start;
            move || one(work, (number, count), conduct, start)
        };
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(thread(number))).collect();
        start.ready.wait();
        ready();
        start.go.wait();
        threads.into_iter().map(|thread| thread.join().expect("a generator thread does not panic")).collect()
    });
    add_up(ended)
}

/// The only generator thread is this thread: system calls of a process with one thread cost less.
fn alone(work: &Work<'_>, conduct: Conduct, ready: impl FnOnce()) -> Result<Ended, Stopped> {
    let thread = GeneratorThread::prepare(work, (0, 1), conduct)?;
    ready();
    thread.ended(work, (0, 1), conduct.patience, &AtomicBool::new(false))
}

fn generator_threads(clients: u32, threads: Threads, processors: usize) -> usize {
    let of = |count: usize| count.clamp(1, THREADS_MAX);
    let count = match threads {
        Threads::Half => of(processors / 2),
        Threads::HalfOf(beside) => of(processors / 2 / beside.max(1) as usize),
        Threads::Doubled => 2 * of(processors / 2),
        Threads::All => of(processors),
    };
    count.min(clients as usize)
}

/// Where all generator threads wait for one another.
struct Start {
    ready: Barrier,
    go: Barrier,
    stop: AtomicBool,
}

/// What one generator thread has seen.
struct Ended {
    began: Instant,
    ended: Instant,
    seen: LoadStats,
}

fn add_up(ended: Vec<Result<Ended, Stopped>>) -> Result<LoadStats, Stopped> {
    let mut all = LoadStats { threads: ended.len() as u32, timed_one_in: 1, ..LoadStats::default() };
    let mut times: Vec<(Instant, Instant)> = Vec::new();
    let mut stopped = None;
    for one in ended {
        match one {
            Ok(Ended { began, ended, seen }) => {
                times.push((began, ended));
                all.add(seen);
            }
            Err(Stopped::Another) => {}
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
fn one(work: &Work<'_>, number: (usize, usize), conduct: Conduct, start: &Start) -> Result<Ended, Stopped> {
    let prepared = GeneratorThread::prepare(work, number, conduct);
    if prepared.is_err() {
        start.stop.store(true, Ordering::Relaxed);
    }
    start.ready.wait();
    start.go.wait();
    let ended = prepared?.ended(work, number, conduct.patience, &start.stop);
    if ended.is_err() {
        start.stop.store(true, Ordering::Relaxed);
    }
    work.progress.leave();
    ended
}

/// One client on its connection.
struct SimulatedClient {
    /// Among its thread's, and in the queue of events.
    place: usize,
    index: u32,
    connection: Connection,
    /// When that was opened.
    opened: Instant,
    client: Box<dyn Client>,
    /// Commands of the greeting, which are no part of the work.
    greeted: u64,
    /// Commands on connections that were lost.
    commands_before: u64,
    /// Until it is open again; what is written to it meanwhile goes nowhere.
    is_lost: bool,
    /// The beginning of an answer whose end is still to come.
    unread: Vec<u8>,
    /// The end of a batch that the socket did not take at once.
    backlog: WriteBacklog,
    state: State,
}

/// A thread's connections, and what all of them share.
struct GeneratorThread {
    clients: Vec<SimulatedClient>,
    shared: Shared,
    /// Connections that have something new to send.
    touched: Vec<usize>,
    reopens: bool,
    lost: Vec<Lost>,
}

struct Shared {
    poll: Poll,
    /// Questions that are asked at once when all before are answered; none where they come when they are due.
    depth: u32,
    received: Vec<u8>,
    send_queue: SendQueue,
    counts: Counts,
    /// When what is read now had come.
    now: Instant,
}

impl GeneratorThread {
    /// Connects one client after another, so that no server's queue of new connections overflows.
    fn prepare(work: &Work<'_>, (number, count): (usize, usize), conduct: Conduct) -> Result<GeneratorThread, Stopped> {
        let poll = Poll::new().map_err(|error| Stopped::Session(Fault::Lost(error)))?;
        let mut clients = Vec::new();
        for index in (number as u32..work.at.clients).step_by(count) {
            let client = work.job.client(work.part, index, work.at, work.source);
            let client = client.map_err(|error| Stopped::Input(InputFault::opening(work.source, &error)))?;
            let connection =
                work.store.connection().unwrap_or_else(|| Err(Fault::Unsupported("no connections".to_string())));
            let connection = connection.map_err(Stopped::Session)?;
            let fd = connection.stream.as_fd().as_raw_fd();
            poll.registry()
                .register(&mut SourceFd(&fd), Token(clients.len()), Interest::READABLE)
                .map_err(|error| Stopped::Session(Fault::Lost(error)))?;
            let greeted = connection.codec.commands();
            let (place, unread, backlog, state) = (clients.len(), Vec::new(), WriteBacklog::default(), State::new());
            let (commands_before, is_lost) = (0, false);
            clients.push(SimulatedClient {
                place,
                index,
                connection,
                opened: Instant::now(),
                client,
                greeted,
                commands_before,
                is_lost,
                unread,
                backlog,
                state,
            });
        }
        let counts = Counts { live: clients.len(), ..Counts::default() };
        // At a rate no answer is waited for.
        let depth = if work.pace.is_some() { 0 } else { conduct.depth };
        let now = Instant::now();
        let shared =
            Shared { poll, depth, received: vec![0; READ_BYTES], send_queue: SendQueue::default(), counts, now };
        Ok(GeneratorThread { clients, shared, touched: Vec::new(), reopens: conduct.reopens, lost: Vec::new() })
    }

    /// Works to the end. It is thread `number` of so many.
    fn ended(
        mut self,
        work: &Work<'_>,
        (number, count): (usize, usize),
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<Ended, Stopped> {
        // The first of all takes the beginning of all due times.
        let began = work.pace.map_or_else(Instant::now, Pace::began);
        match work.pace {
            None => self.work(work, (number as u32, began), patience, stop)?,
            Some(pace) => paced::work(&mut self, work, pace, (number, count), patience, stop)?,
        }
        Ok(Ended { began, ended: Instant::now(), seen: self.into_seen() })
    }

    fn work(
        &mut self,
        work: &Work<'_>,
        (number, began): (u32, Instant),
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<(), Stopped> {
        let mut until = work.limit.map(|limit| began + limit);
        let progress = work.progress.client(number);
        let mut events = Events::with_capacity(EVENTS);
        for place in 0..self.clients.len() {
            let begun = self.clients[place].begin(&mut self.shared);
            begun.or_else(|stopped| self.lose(place, stopped))?;
            self.send()?;
        }
        let (mut looked, mut told) = (began, Instant::now());
        while self.shared.counts.live > 0 {
            match self.shared.poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled.map_err(|error| Stopped::Session(Fault::Lost(error)))?,
            }
            // Once for all that had come by then: who is read last has not come later than who is read first.
            self.shared.now = Instant::now();
            for event in &events {
                let place = event.token().0;
                let met = self.clients[place].meet(event, &mut self.shared);
                met.or_else(|stopped| self.lose(place, stopped))?;
                if self.shared.send_queue.is_much() {
                    self.send()?;
                }
            }
            self.send()?;
            progress.store(self.shared.counts.seen.metrics.units, Ordering::Relaxed);
            let now = self.shared.now;
            if number == 0 && now.duration_since(told) > LOOK {
                told = now;
                work.progress.tell();
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Stopped::Another);
            }
            if until.is_some_and(|until| now >= until) {
                until = None;
                self.cut_off();
            }
            if !self.lost.is_empty() {
                self.reopen(work)?;
            }
            if now.duration_since(looked) > LOOK && !self.shared.counts.seen.cut_off {
                looked = now;
                self.check_deadlines(now, began, patience)?;
            }
        }
        Ok(())
    }

    /// No answer may take longer than that, whatever else comes over its connection and over others.
    fn check_deadlines(&self, now: Instant, began: Instant, patience: Duration) -> Result<(), Stopped> {
        let waits = |client: &SimulatedClient, longer_than: Duration| {
            let asked = client.state.waiting_since(began).filter(|_| !client.is_lost);
            asked.is_some_and(|asked| now.saturating_duration_since(asked.max(client.opened)) > longer_than)
        };
        let Some(first) = self.clients.iter().find(|client| waits(client, patience)) else { return Ok(()) };
        // Of those that fell silent together one is the first to be late.
        let count = self.clients.iter().filter(|client| waits(client, patience / 2)).count();
        let (name, patience_s) = (&first.connection.name, patience.as_secs_f64());
        let what = if first.unread.is_empty() { "been silent for" } else { "not finished an answer within" };
        let what = format!("{name} has {what} {patience_s} s on {count} connections");
        Err(Stopped::Session(Fault::Lost(io::Error::new(ErrorKind::TimedOut, what))))
    }

    /// The limit is reached: who does not answer what is under way is left to whoever watches.
    #[cold]
    fn cut_off(&mut self) {
        self.clients.iter_mut().for_each(|client| client.client.stop());
        self.shared.counts.seen.cut_off = true;
    }

    fn into_seen(self) -> LoadStats {
        let Counts { mut seen, waited, times, lateness, .. } = self.shared.counts;
        seen.metrics.waiting_s = waited.as_secs_f64();
        seen.times = times;
        seen.asked = self.clients.iter().filter_map(|client| Some((client.index, client.client.drawn()?))).collect();
        seen.lateness = lateness.map(|(lateness, _)| lateness);
        seen.timed_one_in = 1;
        seen.clock_ns = super::tally::price_ns();
        for client in &self.clients {
            seen.metrics.commands += client.commands();
            seen.metrics.add(&client.client.counted());
        }
        seen
    }
}

impl SimulatedClient {
    /// Commands so far, on all connections that it has had.
    fn commands(&self) -> u64 {
        self.commands_before + self.connection.codec.commands() - self.greeted
    }

    /// Makes its first questions.
    fn begin(&mut self, shared: &mut Shared) -> Result<(), Stopped> {
        let Shared { depth, send_queue, counts, .. } = &mut *shared;
        self.talk(&[], &mut Talk { depth: *depth, now: Instant::now(), out: &mut send_queue.bytes, counts })?;
        send_queue.by(self.place);
        Ok(())
    }

    /// Does what a wake-up is about.
    #[inline]
    fn meet(&mut self, event: &Event, shared: &mut Shared) -> Result<(), Stopped> {
        if !self.backlog.is_empty() && event.is_writable() {
            self.send_rest(&shared.poll).map_err(|error| self.lost(error))?;
        }
        if event.is_readable() || event.is_read_closed() {
            self.receive(shared)?;
        }
        // The end may be told together with the last bytes, and is not told again.
        if event.is_read_closed() && !self.state.over() { Err(self.closed()) } else { Ok(()) }
    }

    /// Reads what has come, hears it, and makes the next batch where the whole one before is answered.
    #[inline]
    fn receive(&mut self, shared: &mut Shared) -> Result<(), Stopped> {
        loop {
            // An answer that came in pieces is put together in a buffer of the connection's own.
            let mut own = std::mem::take(&mut self.unread);
            let kept = own.len();
            let Shared { depth, received, send_queue, counts, now, .. } = &mut *shared;
            let (bytes, room) = if kept == 0 {
                (&mut received[..], READ_BYTES)
            } else {
                own.resize(kept + READ_BYTES.min(kept.max(READ_BYTES / 16)), 0);
                let room = own.len() - kept;
                (&mut own[..], room)
            };
            let came = match self.connection.stream.read(&mut bytes[kept..]) {
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
            if *depth == 0 {
                // At a rate nothing is asked in turn: what was late in coming would seem to have come before.
                *now = Instant::now();
            }
            let bytes = &bytes[..kept + came];
            let used = self.talk(bytes, &mut Talk { depth: *depth, now: *now, out: &mut send_queue.bytes, counts })?;
            send_queue.by(self.place);
            let rest = bytes.len() - used;
            let name = || self.connection.name.clone();
            self.connection
                .check_length(self.state.gathered + rest)
                .map_err(|fault| Stopped::Connection { name: name(), fault })?;
            // Emptied or not, what is left begins the next buffer.
            self.unread = match kept {
                0 => bytes[used..].to_vec(),
                _ => {
                    own.truncate(kept + came);
                    own.drain(..used);
                    own
                }
            };
            // Less than there was room for is all there was; else more has come since.
            if came < room {
                return Ok(());
            }
            shared.now = Instant::now();
        }
    }

    /// Hears all answers that are whole, and makes the next questions where none are under way any more. The bytes that
    /// they took.
    #[inline]
    fn talk(&mut self, bytes: &[u8], talk: &mut Talk<'_>) -> Result<usize, Stopped> {
        let SimulatedClient { connection, client, state, .. } = self;
        let talked = match (client.keyed(), connection.codec.known()) {
            (Some(client), Some(KnownCodec::Resp(codec))) => exchange(client, codec, state, bytes, talk),
            (Some(client), Some(KnownCodec::Text(codec))) => exchange(client, codec, state, bytes, talk),
            (Some(client), Some(KnownCodec::Postgres(codec))) => exchange(client, codec, state, bytes, talk),
            (Some(client), Some(KnownCodec::Mysql(codec))) => exchange(client, codec, state, bytes, talk),
            _ => exchange(client.as_mut(), connection.codec.as_mut(), state, bytes, talk),
        };
        talked.map_err(|trouble| match trouble {
            Trouble::Connection(fault) => Stopped::Connection { name: self.connection.name.clone(), fault },
            Trouble::Other(stopped) => stopped,
        })
    }

    #[cold]
    fn closed(&self) -> Stopped {
        self.lost(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"))
    }

    #[cold]
    fn lost(&self, error: io::Error) -> Stopped {
        let (name, fault) = (self.connection.name.clone(), Fault::Lost(error));
        Stopped::Connection { name, fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_processors_drive_connections_or_all_that_are_our_own() {
        let of = |threads| [1, 2, 4, 6, 64].map(|processors| generator_threads(50, threads, processors));
        assert_eq!(of(Threads::Half), [1, 1, 2, 3, THREADS_MAX]);
        assert_eq!(of(Threads::HalfOf(8)), [1, 1, 1, 1, THREADS_MAX], "eight agents of one machine");
        assert_eq!(of(Threads::Doubled), [2, 2, 4, 6, 2 * THREADS_MAX]);
        assert_eq!(of(Threads::All), [1, 2, 4, 4, THREADS_MAX]);
        assert_eq!(generator_threads(1, Threads::All, 64), 1, "a client has one connection");
    }
}
