//! Takes away what a job wrote into a store by URL: its clients run once more, and every key they write is
//! deleted.

mod held;

use std::collections::VecDeque;
use std::io;

use self::held::HeldKeys;
use super::input::DataFile;
use crate::jobs::{Ask, Client, Heard, Job, LOAD_DEPTH, Part, Source};
use crate::loadgen::sockets::{self, Conduct, Threads};
use crate::loadgen::{Progress, Work};
use crate::model::load::At;
use crate::model::op::{Fault, Keys, Op, Pairs, Reply, ValueList};
use crate::stores::{Adapter, Launch, Store};

/// Deletes every key that the job's clients would write. Nothing else is touched, however the trial ended.
pub fn clear(
    job: &dyn Job,
    points: &[At],
    source: &DataFile,
    launch: &Launch,
    adapter: &Adapter,
) -> Result<(), String> {
    let failed = |what: &dyn std::fmt::Display| {
        format!("what this trial wrote to {} could not all be removed: {what}", launch.place)
    };
    let store = (adapter.open)(launch).map_err(|fault| failed(&fault))?;
    let alone = At::closed(1, 0);
    // A job that inserts has one point.
    let inserting = points.first().copied().filter(|_| job.inserts());
    let has_requests = points.iter().any(|at| at.requests > 0);
    match (job.parts()[0], store.connection()) {
        // What is loaded is all that a job of requests ever writes to, but for what it inserts.
        (Part::Load, Some(connection)) if has_requests => {
            drop(connection);
            let (job, progress) = (TakeBack(job), Progress::new(1));
            let (store, part) = (store.as_ref(), Part::Load);
            let conduct =
                Conduct { depth: LOAD_DEPTH, patience: launch.patience, reopens: false, threads: Threads::Half };
            let work = Work { store, job: &job, source, part, at: alone, pace: None, limit: None, progress: &progress };
            sockets::run(&work, conduct, || {}).map_err(|stopped| failed(&stopped))?;
            if let Some(at) = inserting {
                let progress = Progress::new(at.clients);
                // Over connections each client asks its own share at a rate too.
                let work = Work { part: Part::Run, at: At { rate: None, ..at }, progress: &progress, ..work };
                sockets::run(&work, conduct, || {}).map_err(|stopped| failed(&stopped))?;
            }
        }
        _ => {
            let mut session = store.session().map_err(|fault| failed(&fault))?;
            each_key(job, points, source, &mut |key| session.ask(&Op::Delete(key)).map(drop))
                .map_err(|what| failed(&what))?;
            session.flush().map_err(|fault| failed(&fault))?;
        }
    }
    store.leave().map_err(|fault| failed(&fault))
}

/// Whether the store holds none of the keys that the job's clients would write. Nothing is written.
pub fn holds_none(
    job: &dyn Job,
    points: &[At],
    source: &DataFile,
    launch: &Launch,
    store: &dyn Store,
) -> Result<(), String> {
    let mut look = HeldKeys::new(store, source, launch.patience);
    each_key(job, points, source, &mut |key| {
        look.at(key);
        Ok(())
    })?;
    look.end()
}

/// What is done with a key that a client would write.
type Touch<'t> = dyn FnMut(&[u8]) -> Result<(), Fault> + 't;

/// Goes through every key that the job's clients would write.
fn each_key(job: &dyn Job, points: &[At], source: &DataFile, touch: &mut Touch<'_>) -> Result<(), String> {
    let alone = At::closed(1, 0);
    let mut client = job.client(job.parts()[0], 0, alone, source).map_err(|error| error.to_string())?;
    touch_all(client.as_mut(), touch)?;
    // A job that inserts has one point.
    let Some(at) = points.first().copied().filter(|_| job.inserts()) else { return Ok(()) };
    for index in 0..at.clients {
        let mut client = job.client(Part::Run, index, at, source).map_err(|error| error.to_string())?;
        touch_all(client.as_mut(), touch)?;
    }
    Ok(())
}

/// A job whose clients delete what they would set: many at once, where a store takes many.
struct TakeBack<'a>(&'a dyn Job);

impl Job for TakeBack<'_> {
    fn client(&self, part: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        Ok(Box::new(Deleting {
            client: self.0.client(part, index, at, source)?,
            unheard: VecDeque::new(),
            key: Vec::new(),
        }))
    }

    fn inserts(&self) -> bool {
        self.0.inserts()
    }
}

struct Deleting {
    client: Box<dyn Client>,
    /// What is not heard yet, oldest first: deletes that are under way, and reads between them that are not asked.
    unheard: VecDeque<Unheard>,
    key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Unheard {
    Delete,
    Get,
    Scan,
}

impl Deleting {
    /// Answers the reads that nothing under way stands before, as a store would that holds nothing.
    fn hear_reads(&mut self) {
        while let Some(&read) = self.unheard.front().filter(|one| **one != Unheard::Delete) {
            self.unheard.pop_front();
            let reply = if read == Unheard::Scan { Reply::Rows(Pairs::default()) } else { Reply::Missing };
            self.client.hear(&reply);
        }
    }
}

impl Client for Deleting {
    fn ask(&mut self) -> Ask<'_> {
        loop {
            let unheard = match self.client.ask() {
                Ask::Op(Op::Set { key, .. }) => {
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    Unheard::Delete
                }
                Ask::Op(Op::Scan { .. }) => Unheard::Scan,
                Ask::Op(_) => Unheard::Get,
                Ask::Unit => continue,
                Ask::Wait => return Ask::Wait,
                Ask::Fail(fault) => return Ask::Fail(fault),
                Ask::End => return Ask::End,
            };
            self.unheard.push_back(unheard);
            if unheard == Unheard::Delete {
                return Ask::Op(Op::Delete(&self.key));
            }
            self.hear_reads();
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.unheard.pop_front();
        let heard = self.client.hear(if *reply == Reply::Missing { &Reply::Done } else { reply });
        self.hear_reads();
        heard
    }
}

/// Answers as a store would that forgets everything, and touches keys instead of writing them.
fn touch_all(client: &mut dyn Client, touch: &mut Touch<'_>) -> Result<(), String> {
    let mut nothing = ValueList::default();
    loop {
        let reply = match client.ask() {
            Ask::Op(op) => touched(op, touch, &mut nothing).map_err(|fault| fault.to_string())?,
            Ask::Unit => continue,
            Ask::End => return Ok(()),
            Ask::Fail(fault) => return Err(fault.to_string()),
            Ask::Wait => return Err("a client waits with nothing under way".to_string()),
        };
        if let Heard::Wrong(wrong) = client.hear(&reply) {
            return Err(format!("the job did not take an empty store's answer for {}", wrong.key));
        }
    }
}

fn touched<'n>(op: Op<'_>, touch: &mut Touch<'_>, nothing: &'n mut ValueList) -> Result<Reply<'n>, Fault> {
    let mut all = |keys: Keys<'_>| keys.iter().try_for_each(&mut *touch);
    match op {
        // What a client deletes it has set before, and that was deleted in its place.
        Op::Get(_) | Op::GetVersion(_) | Op::Delete(_) => Ok(Reply::Missing),
        Op::Scan { .. } => Ok(Reply::Rows(Pairs::default())),
        Op::GetMany(keys) => {
            nothing.reset(keys.len());
            Ok(Reply::Values(nothing.lend()))
        }
        Op::SetMany(pairs) => all(pairs.keys).map(|()| Reply::Done),
        Op::Tally { records, .. } => all(records).map(|()| Reply::Done),
        Op::Set { key, .. } | Op::SetIfAbsent { key, .. } => touch(key).map(|()| Reply::Done),
        Op::Increment { key, by } => touch(key).map(|()| Reply::Number(by)),
        Op::Add { key, .. } => touch(key).map(|()| Reply::Done),
        Op::AddMany(sums) => all(sums.keys()).map(|()| Reply::Done),
        other => Err(Fault::unsupported("taking back what was written", &other)),
    }
}
