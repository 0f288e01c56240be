//! A thread a client, each with a blocking session of its own: embedded engines, client libraries, and one op at a
//! time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::pace::{Lateness, Moments, Pace, sleep_until, wake_up_sharply};
use super::tally::TimingTally;
use super::{LoadStats, Stopped, Work};
use crate::jobs::{Ask, Client, Heard, InputFault};
use crate::model::metrics::Metrics;
use crate::stores::Session;

/// How often a client looks up while nothing is due.
const LOOK: Duration = Duration::from_millis(100);

/// What clients are told: to go on, to draw no more questions, or that another one has failed.
const GO_ON: u8 = 0;
const CUT_OFF: u8 = 1;
const FAILED: u8 = 2;

/// Drives all clients to their end. `ready` is called once all of them stand at the start, before the first op.
pub fn run(work: &Work<'_>, ready: impl FnOnce()) -> Result<LoadStats, Stopped> {
    let clients = work.at.clients;
    let start = StartLine {
        ready: Barrier::new(clients as usize + 1),
        go: Barrier::new(clients as usize + 1),
        told: AtomicU8::new(GO_ON),
    };
    let finished = std::thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        let drive = |index| {
            let (start, alive) = (&start, alive.clone());
            move || {
                let _alive = alive;
                one(work, index, start)
            }
        };
        let clients: Vec<_> = (0..clients).map(|index| scope.spawn(drive(index))).collect();
        start.ready.wait();
        ready();
        if let Some(pace) = work.pace {
            pace.began();
        }
        start.go.wait();
        drop(alive);
        if work.limit.is_some_and(|limit| ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)) {
            start.tell(CUT_OFF);
        }
        clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect::<Vec<_>>()
    });
    let mut ends = Vec::with_capacity(finished.len());
    let mut stopped = None;
    for result in finished {
        match result {
            Ok(end) => ends.push(end),
            Err(Stopped::Another) => {}
            Err(why) => stopped = stopped.or(Some(why)),
        }
    }
    match stopped {
        Some(why) => Err(why),
        None => Ok(LoadStats { cut_off: start.told.load(Ordering::Relaxed) == CUT_OFF, ..add_up(ends) }),
    }
}

/// Where all clients wait for one another.
struct StartLine {
    ready: Barrier,
    go: Barrier,
    told: AtomicU8,
}

impl StartLine {
    /// What is worse stays.
    fn tell(&self, what: u8) {
        self.told.fetch_max(what, Ordering::Relaxed);
    }
}

/// One client that has come to its end.
struct Ended {
    began: Instant,
    ended: Instant,
    tally: TimingTally,
    /// What only session and client know.
    counted: Metrics,
    lateness: Option<Lateness>,
    asked: Option<(u32, u64)>,
}

fn add_up(ends: Vec<Ended>) -> LoadStats {
    let mut seen = LoadStats { threads: ends.len() as u32, ..LoadStats::default() };
    let began = ends.iter().map(|end| end.began).min();
    let ended = ends.iter().map(|end| end.ended).max();
    if let (Some(began), Some(ended)) = (began, ended) {
        seen.took_s = ended.duration_since(began).as_secs_f64();
    }
    for end in ends {
        end.tally.add_to(&mut seen);
        let (metrics, asked) = (end.counted, end.asked.into_iter().collect());
        seen.add(LoadStats { metrics, lateness: end.lateness, asked, ..LoadStats::default() });
    }
    seen
}

/// One client's thread: get ready, wait for the others, work, commit.
fn one(work: &Work<'_>, index: u32, start: &StartLine) -> Result<Ended, Stopped> {
    let prepared = prepare(work, index);
    if prepared.is_err() {
        start.tell(FAILED);
    }
    start.ready.wait();
    start.go.wait();
    let (mut client, mut session) = prepared?;
    let mut tally = TimingTally::new(u64::from(index) + 1);
    let began = Instant::now();
    let units = work.progress.client(index);
    let mut lateness = work.pace.map(Lateness::new);
    let result = match (work.pace, &mut lateness) {
        (Some(pace), Some(lateness)) => {
            serve_due(client.as_mut(), session.as_mut(), &mut tally, units, &start.told, pace, lateness)
        }
        _ => serve(client.as_mut(), session.as_mut(), &mut tally, units, &start.told),
    };
    if result.is_err() {
        start.tell(FAILED);
    }
    result?;
    let ended = Instant::now();
    work.progress.leave();
    let counted = Metrics { commands: session.commands().unwrap_or(tally.ops), ..client.counted() };
    let asked = client.drawn().map(|drawn| (index, drawn));
    Ok(Ended { began, ended, tally, counted, lateness, asked })
}

type Prepared<'a> = (Box<dyn Client>, Box<dyn Session + 'a>);

fn prepare<'a>(work: &Work<'a>, index: u32) -> Result<Prepared<'a>, Stopped> {
    let client = work.job.client(work.part, index, work.at, work.source);
    let client = client.map_err(|error| Stopped::Input(InputFault::opening(work.source, &error)))?;
    let session = work.store.session().map_err(Stopped::Session)?;
    Ok((client, session))
}

/// The hot loop: ask, answer, hear.
fn serve(
    client: &mut dyn Client,
    session: &mut dyn Session,
    tally: &mut TimingTally,
    units: &AtomicU64,
    told: &AtomicU8,
) -> Result<(), Stopped> {
    loop {
        let heard = match client.ask() {
            Ask::Op(ref op) => {
                tally.bytes_out += op.bytes() as u64;
                let start = tally.asking();
                let answer = session.ask(op);
                tally.answered(start);
                match answer {
                    Ok(ref reply) => {
                        tally.bytes_in += reply.bytes() as u64;
                        let heard = client.hear(reply);
                        if let Some(key) = client.coming() {
                            session.expect(key);
                        }
                        heard
                    }
                    Err(fault) => return Err(Stopped::store(op.name(), op.key(), fault)),
                }
            }
            Ask::Unit => Heard::Unit { counted: 1 },
            Ask::End => break,
            Ask::Fail(fault) => return Err(Stopped::Input(fault)),
            Ask::Wait => unreachable!("with one question at a time no answer is under way"),
        };
        match heard {
            Heard::More => {}
            Heard::Unit { counted } => {
                tally.units += counted;
                units.store(tally.units, Ordering::Relaxed);
                tally.flush(|| session.flush()).map_err(|fault| Stopped::store("commit", b"", fault))?;
                match told.load(Ordering::Relaxed) {
                    GO_ON => {}
                    CUT_OFF => client.stop(),
                    _ => return Err(Stopped::Another),
                }
            }
            Heard::Wrong(wrong) => return Err(Stopped::Wrong(wrong)),
        }
    }
    tally.flush(|| session.flush()).map_err(|fault| Stopped::store("commit", b"", fault))
}

/// Clients take what is due next, whoever is free: a request that finds none free waits, and its wait counts. Of a
/// recording each client keeps to the moments of its own requests.
fn serve_due(
    client: &mut dyn Client,
    session: &mut dyn Session,
    tally: &mut TimingTally,
    units: &AtomicU64,
    told: &AtomicU8,
    pace: &Pace,
    lateness: &mut Lateness,
) -> Result<(), Stopped> {
    wake_up_sharply();
    let began = pace.began();
    let ns = |moment: Instant| moment.saturating_duration_since(began).as_nanos() as u64;
    loop {
        let taken = if pace.is_recorded() { None } else { pace.take().filter(|_| !pace.given_up()) };
        let Some(due_ns) = taken.map(|(_, due_ns)| due_ns).or_else(|| client.due_ns()) else { break };
        if !wait_for(began + Duration::from_nanos(due_ns), told)? {
            pace.give_up(pace.due_by(ns(Instant::now())));
            break;
        }
        let sent_ns = ns(Instant::now());
        if let Some((number, _)) = taken {
            let late = pace.due_by(sent_ns);
            if late > pace.backlog_max() {
                // This one is late too.
                pace.give_up(late + 1);
                break;
            }
            pace.sent(number, sent_ns);
        }
        ask_unit(client, session, tally)?;
        // It is answered once it is committed.
        session.flush().map_err(|fault| Stopped::store("commit", b"", fault))?;
        let answered_ns = ns(Instant::now());
        if let Some(service_ns) = lateness.note(Moments { due_ns, sent_ns, first_ns: sent_ns, answered_ns }) {
            tally.took(service_ns);
        }
        units.store(tally.units, Ordering::Relaxed);
    }
    // What stopped the reading of a recording is told by the next question.
    match pace.is_recorded().then(|| client.ask()) {
        Some(Ask::Fail(fault)) => Err(Stopped::Input(fault)),
        _ => Ok(()),
    }
}

/// All questions of one request, one after another.
fn ask_unit(client: &mut dyn Client, session: &mut dyn Session, tally: &mut TimingTally) -> Result<(), Stopped> {
    loop {
        let op = match client.ask() {
            Ask::Op(op) => op,
            Ask::Fail(fault) => return Err(Stopped::Input(fault)),
            Ask::Unit | Ask::End | Ask::Wait => unreachable!("a request that is due can be asked"),
        };
        tally.ops += 1;
        tally.bytes_out += op.bytes() as u64;
        let reply = match session.ask(&op) {
            Ok(reply) => reply,
            Err(fault) => return Err(Stopped::store(op.name(), op.key(), fault)),
        };
        tally.bytes_in += reply.bytes() as u64;
        match client.hear(&reply) {
            Heard::More => {}
            Heard::Unit { counted } => {
                tally.units += counted;
                return Ok(());
            }
            Heard::Wrong(wrong) => return Err(Stopped::Wrong(wrong)),
        }
    }
}

/// Sleeps until a moment, unless another client has stopped. Whether it came: nothing more is asked once time is up.
fn wait_for(moment: Instant, told: &AtomicU8) -> Result<bool, Stopped> {
    loop {
        // Who is late looks as well.
        match told.load(Ordering::Relaxed) {
            GO_ON => {}
            CUT_OFF => return Ok(false),
            _ => return Err(Stopped::Another),
        }
        if Instant::now() >= moment {
            return Ok(true);
        }
        sleep_until(moment, LOOK);
    }
}
