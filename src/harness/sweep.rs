//! Takes away what a job wrote into a store by URL: its clients run once more, and every key they write is
//! deleted.

mod together;

use self::together::{KeysTogether, Question};
use super::input::DataFile;
use crate::jobs::{Ask, Client, Heard, Job, Part};
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
    // Over connections each client asks its own share at a rate too.
    let has_connection = store.connection().is_some();
    let of_share = |at: &At| At { rate: at.rate.filter(|_| !has_connection), ..*at };
    let points: Vec<At> = points.iter().map(of_share).collect();
    let mut keys = KeysTogether::new(store.as_ref(), source, launch.patience, Question::Delete);
    let deleted = each_key(job, &points, source, &mut |key| keys.at(key)).and_then(|()| keys.end());
    deleted.map_err(|what| failed(&what))?;
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
    let mut keys = KeysTogether::new(store, source, launch.patience, Question::IsMissing);
    each_key(job, points, source, &mut |key| keys.at(key))?;
    keys.end()
}

/// What is done with a key that a client would write.
type Touch<'t> = dyn FnMut(&[u8]) -> Result<(), String> + 't;

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

/// Answers as a store would that forgets everything, and touches keys instead of writing them.
fn touch_all(client: &mut dyn Client, touch: &mut Touch<'_>) -> Result<(), String> {
    let mut nothing = ValueList::default();
    loop {
        let reply = match client.ask() {
            Ask::Op(op) => touched(op, touch, &mut nothing)?,
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

fn touched<'n>(op: Op<'_>, touch: &mut Touch<'_>, nothing: &'n mut ValueList) -> Result<Reply<'n>, String> {
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
        other => Err(Fault::unsupported("taking back what was written", &other).to_string()),
    }
}
