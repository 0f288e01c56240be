//! Requests that are sent when they are due, on connections that may have others under way. Request number n is client
//! n modulo their count's.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::super::pace::{Lateness, Pace};
use super::super::{Stopped, Work};
use super::exchange::{Counts, NOT_SENT, Stamp};
use super::send_queue::write;
use super::{EVENTS, GeneratorThread, LOOK, Shared, SimulatedClient};
use crate::jobs::Ask;
use crate::model::op::Fault;

/// To set the alarm, fall asleep and wake up costs about as much of a processor as to stay awake for so long.
const NEAR: Duration = Duration::from_micros(10);

/// The alarm's among the tokens of connections.
const ALARM: Token = Token(usize::MAX);

/// One thread's requests: those of its own connections. `number` is its number, of so many.
pub(super) fn work(
    thread: &mut GeneratorThread,
    work: &Work<'_>,
    pace: &Pace,
    (number, count): (usize, usize),
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(), Stopped> {
    let progress = work.progress.client(number as u32);
    let lost = |error| Stopped::Session(Fault::Lost(error));
    let alarm = Alarm::register(&thread.shared.poll).map_err(lost)?;
    let mut events = Events::with_capacity(EVENTS);
    let began = pace.began();
    thread.shared.counts.lateness = Some((Lateness::new(pace), began));
    let mut turn = Turn { next: 0, clients: u64::from(work.at.clients), number: number as u64, threads: count as u64 };
    turn.skip_others();
    let backlog_max = pace.backlog_max() / count as u64;
    let (mut looked, mut told, mut armed, mut asked) = (began, began, None, 0);
    let mut gave_up = false;
    std::thread::sleep(Duration::from_millis(300));
    loop {
        // However many became due while this thread did not run: no more than show that the rate is not kept.
        let room = (backlog_max + 1).saturating_sub(asked - thread.shared.counts.answered);
        asked += send_due(thread, pace, &mut turn, began, room)?;
        let waiting = asked - thread.shared.counts.answered;
        let is_over = work.limit.is_some_and(|limit| began.elapsed() >= limit);
        if is_over && !thread.shared.counts.seen.cut_off {
            thread.cut_off();
        }
        if !gave_up && (is_over || waiting > backlog_max || pace.given_up()) {
            // The first of all threads gives up; the others add what was theirs.
            if pace.given_up() {
                pace.late_too(waiting)
            } else {
                pace.give_up(waiting)
            }
            gave_up = true;
        }
        let due = pace.due_ns(turn.next).filter(|_| !pace.given_up());
        if due.is_none() && waiting == 0 {
            return Ok(());
        }
        let ring = due.map(|due_ns| began + Duration::from_nanos(due_ns));
        let is_near = ring.is_some_and(|at| at.saturating_duration_since(Instant::now()) < NEAR);
        if armed != due && !is_near {
            ring.map_or(Ok(()), |at| alarm.ring_at(at)).map_err(lost)?;
            armed = due;
        }
        let most = if is_near { Duration::ZERO } else { alarm.at_most(ring) };
        match thread.shared.poll.poll(&mut events, Some(most)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled.map_err(lost)?,
        }
        hear(thread, work, &events)?;
        progress.store(thread.shared.counts.seen.metrics.units, Ordering::Relaxed);
        if number == 0 && told.elapsed() > LOOK {
            told = Instant::now();
            work.progress.tell();
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped::Another);
        }
        if looked.elapsed() > LOOK && !is_over {
            looked = Instant::now();
            thread.check_deadlines(looked, began, patience)?;
        }
    }
}

/// Hears what has come over each connection, and opens those again that were lost.
fn hear(thread: &mut GeneratorThread, work: &Work<'_>, events: &Events) -> Result<(), Stopped> {
    for event in events.iter().filter(|event| event.token() != ALARM) {
        let place = event.token().0;
        let met = thread.clients[place].meet(event, &mut thread.shared);
        met.or_else(|stopped| thread.lose(place, stopped))?;
        // What belongs to a request that is under way goes before others.
        thread.send()?;
        let client = &mut thread.clients[place];
        if !client.is_lost {
            let asked = client.ask_owed(&mut thread.shared);
            asked.or_else(|stopped| thread.lose(place, stopped))?;
        }
    }
    if !thread.lost.is_empty() {
        thread.reopen(work)?;
    }
    Ok(())
}

/// Whose turn it is: which request is the next of this thread's own.
struct Turn {
    next: u64,
    clients: u64,
    number: u64,
    threads: u64,
}

impl Turn {
    /// Goes on to the first that is this thread's.
    fn skip_others(&mut self) {
        while self.next % self.clients % self.threads != self.number {
            self.next += 1;
        }
    }

    /// The place of its connection among this thread's.
    fn place(&self) -> usize {
        (self.next % self.clients / self.threads) as usize
    }
}

/// Sends all that is due by now, at most `room`: one write a connection, however many of its requests are.
fn send_due(
    thread: &mut GeneratorThread,
    pace: &Pace,
    turn: &mut Turn,
    began: Instant,
    room: u64,
) -> Result<u64, Stopped> {
    let now_ns = began.elapsed().as_nanos() as u64;
    let is_due = |due_ns: &u64| *due_ns <= now_ns && !pace.given_up();
    let mut asked = 0;
    while asked < room
        && let Some(due_ns) = pace.due_ns(turn.next).filter(is_due)
    {
        let place = turn.place();
        let client = &mut thread.clients[place];
        // What the socket did not take before goes first, and by itself once there is room; what is asked on a lost
        // connection goes once it is open again.
        if client.backlog.is_empty() && !client.is_lost {
            thread.touched.push(place);
        }
        let sent_ns = began.elapsed().as_nanos() as u64;
        client.ask_due(Stamp { due_ns, sent_ns, first_ns: None }, &mut thread.shared.counts)?;
        pace.sent(turn.next, sent_ns);
        asked += 1;
        turn.next += 1;
        turn.skip_others();
    }
    // Its memory is kept.
    let mut touched = std::mem::take(&mut thread.touched);
    for place in touched.drain(..) {
        let client = &mut thread.clients[place];
        let sent_ns = began.elapsed().as_nanos() as u64;
        let backlog = client.state.stamps.iter_mut().rev().take_while(|stamp| stamp.sent_ns == NOT_SENT);
        backlog.for_each(|stamp| stamp.sent_ns = sent_ns);
        let sent = client.send_asked(&thread.shared.poll).map_err(|error| client.lost(error));
        sent.or_else(|stopped| thread.lose(place, stopped))?;
    }
    thread.touched = touched;
    Ok(asked)
}

impl SimulatedClient {
    /// Makes the next question, to be sent with what is not sent yet. On a connection that takes nothing now, or is
    /// lost, it counts as sent: that wait is the store's.
    fn ask_due(&mut self, stamp: Stamp, counts: &mut Counts) -> Result<(), Stopped> {
        let is_last_unsent = self.state.stamps.back().is_some_and(|stamp| stamp.sent_ns == NOT_SENT);
        let blocked = self.is_lost || (!self.backlog.is_empty() && !is_last_unsent);
        self.ask(Stamp { sent_ns: if blocked { stamp.sent_ns } else { NOT_SENT }, ..stamp }, counts)
    }

    /// Asks what follows from answers that have come.
    fn ask_owed(&mut self, shared: &mut Shared) -> Result<(), Stopped> {
        if self.state.owed.is_empty() {
            return Ok(());
        }
        // What the socket did not take before goes first.
        let blocked = !self.backlog.is_empty();
        self.make_owed(&mut shared.counts)?;
        if blocked { Ok(()) } else { self.send_asked(&shared.poll).map_err(|error| self.lost(error)) }
    }

    /// Makes the questions that follow from answers that have come, to be sent with what is not sent yet.
    pub(super) fn make_owed(&mut self, counts: &mut Counts) -> Result<(), Stopped> {
        while let Some(stamp) = self.state.owed.pop_front() {
            self.ask(stamp, counts)?;
        }
        Ok(())
    }

    fn ask(&mut self, stamp: Stamp, counts: &mut Counts) -> Result<(), Stopped> {
        let SimulatedClient { client, connection, state, backlog, .. } = self;
        loop {
            match client.ask() {
                Ask::Op(op) => {
                    counts.seen.metrics.bytes_out += op.bytes() as u64;
                    counts.seen.metrics.ops += 1;
                    state.under_way += 1;
                    state.stamps.push_back(stamp);
                    return connection
                        .codec
                        .say(&op, backlog.end())
                        .map_err(|fault| Stopped::store(op.name(), op.key(), fault));
                }
                Ask::Unit => counts.seen.metrics.units += 1,
                Ask::Fail(fault) => return Err(Stopped::Input(fault)),
                Ask::Wait | Ask::End => unreachable!("a request that is due can be asked"),
            }
        }
    }

    pub(super) fn send_asked(&mut self, poll: &Poll) -> std::io::Result<()> {
        let sent = write(&mut self.connection, self.backlog.rest())?;
        self.backlog.took(sent);
        if self.backlog.is_empty() { Ok(()) } else { self.watch(poll, Interest::READABLE | Interest::WRITABLE) }
    }
}

#[cfg(target_os = "linux")]
use alarm::Alarm;
#[cfg(not(target_os = "linux"))]
use alarm_elsewhere::Alarm;

/// epoll waits in whole milliseconds; a timer that it watches rings to the microsecond.
#[cfg(target_os = "linux")]
mod alarm {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::{Duration, Instant};

    use mio::unix::SourceFd;
    use mio::{Interest, Poll};
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

    use super::{ALARM, LOOK};

    pub(super) struct Alarm(TimerFd);

    impl Alarm {
        pub(super) fn register(poll: &Poll) -> io::Result<Alarm> {
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
            poll.registry().register(&mut SourceFd(&timer.as_fd().as_raw_fd()), ALARM, Interest::READABLE)?;
            Ok(Alarm(timer))
        }

        pub(super) fn ring_at(&self, moment: Instant) -> io::Result<()> {
            // Nothing at all would stop the timer.
            let left = moment.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            Ok(self.0.set(Expiration::OneShot(left.into()), TimerSetTimeFlags::empty())?)
        }

        /// How long to wait for events: the alarm is one.
        pub(super) fn at_most(&self, _: Option<Instant>) -> Duration {
            LOOK
        }
    }
}

/// kqueue's own waiting is fine enough.
#[cfg(not(target_os = "linux"))]
mod alarm_elsewhere {
    use std::io;
    use std::time::{Duration, Instant};

    use mio::Poll;

    use super::LOOK;

    pub(super) struct Alarm;

    impl Alarm {
        pub(super) fn register(_: &Poll) -> io::Result<Alarm> {
            Ok(Alarm)
        }

        pub(super) fn ring_at(&self, _: Instant) -> io::Result<()> {
            Ok(())
        }

        pub(super) fn at_most(&self, due: Option<Instant>) -> Duration {
            due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK))
        }
    }
}
