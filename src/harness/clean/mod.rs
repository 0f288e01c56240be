//! Finds in a store that is not ours what a killed run left there, and deletes it. Deleted is only what still holds a
//! value that the run may have written: what that is each job has a file for, and docs/servers-by-url.md tells it.
//!
//! A value is read and compared right before its deletion. Between these two questions another client may write the
//! key: that the two are not one is all that is not atomic.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use xxhash_rust::xxh3::xxh3_128;

use super::dataset::longest_answer;
use super::input::{self, DataFile};
use super::oracle::{self, OracleTask};
use super::plan::Chosen;
use super::signals::{INTERRUPTED, Interrupt};
use super::visits::Visit;
use crate::jobs::{self, EndState, JobKind, Source};
use crate::model::op::{Fault, Op, Reply};
use crate::model::trial::Verify;
use crate::stores::{Launch, Session, Store};

mod counters;
mod lists;
mod recorded;
mod requests;

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// An embedded store commits after so many deletions.
const COMMITTED_TOGETHER: usize = 1_000;

/// What came from standard input nobody has kept.
const NEEDED_AGAIN: &str = "its run read its data from standard input, where `kvfair clean` needs the same data again: \
                            `... | kvfair clean URL --of RESULTS --yes`";

/// What was found under the keys of a run.
#[derive(Default)]
pub struct KeysFound {
    /// Keys that hold what the run may have written.
    ours: HashMap<Box<[u8]>, Ours>,
    /// Keys of the run that hold something else.
    others: HashSet<Box<[u8]>>,
    /// Bytes of the longest answer to what kvfair wrote. A longer one is refused.
    answer_bytes: u64,
}

/// What a key of ours held: the visit by its place, how it is read, and the digest of what was read.
#[derive(Clone, Copy)]
struct Ours {
    visit: usize,
    shape: Shape,
    digest: u128,
}

/// How the value of a key is read.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Value,
    Counter,
    Tally,
}

impl KeysFound {
    /// How many keys may be deleted.
    pub fn ours(&self) -> u64 {
        self.ours.len() as u64
    }

    /// How many keys have a name that the run uses and hold something else.
    pub fn others(&self) -> u64 {
        self.others.len() as u64
    }
}

/// What a deletion came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deleted {
    pub deleted: u64,
    /// Keys that were changed after they were found. They stay.
    pub changed: u64,
    /// What the store holds now, where it can say.
    pub left: Option<u64>,
}

/// Reads every key that these visits may have written. Nothing is changed.
pub fn find(chosen: &Chosen, visits: &[Visit], scratch: &Path, interrupt: &Interrupt) -> Result<KeysFound> {
    let mut found = KeysFound::default();
    for (place, visit) in visits.iter().enumerate() {
        let job = &visit.job;
        let kind = jobs::find(&job.name).ok_or_else(|| anyhow!("this kvfair knows no job {}", job.name))?;
        let input = data_of(visit, kind, scratch, interrupt);
        let input = if job.data.is_stdin() { input.context(NEEDED_AGAIN) } else { input }?;
        let (input, answer_bytes) = input;
        found.answer_bytes = found.answer_bytes.max(answer_bytes);
        let source = DataFile::new(&input, &job.data);
        let store = open(chosen, visit, answer_bytes)?;
        let shape = match (kind.end_state)(job.via) {
            EndState::Counters => Shape::Counter,
            EndState::Tallies => Shape::Tally,
            _ => Shape::Value,
        };
        // One that wants a login, or still loads, says so here, and not at each key.
        if store.count().map_err(|fault| anyhow!("{}: {fault}", chosen.target.label))? == Some(0) {
            continue;
        }
        let mut looker =
            Looker { reader: Reader::new(store.as_ref(), shape, interrupt), visit: place, found: &mut found };
        let looked = match (kind.end_state)(job.via) {
            EndState::Versions => requests::look_through(job, &mut looker),
            EndState::Counters | EndState::Decimals => counters::look_through(job, &source, &mut looker),
            EndState::Recorded => recorded::look_through(job, &source, &mut looker),
            EndState::Values | EndState::Packed | EndState::Tallies => {
                lists::look_through(job, visit.clients, &source, &mut looker)
            }
        };
        looked.map_err(|what| anyhow!("{}: {what}", chosen.target.label))?;
    }
    // What one visit did not write another one may have written.
    found.others.retain(|key| !found.ours.contains_key(key));
    Ok(found)
}

/// Deletes what was found, each key only if it still holds what it held then.
pub fn delete(chosen: &Chosen, visits: &[Visit], found: &KeysFound, interrupt: &Interrupt) -> Result<Deleted> {
    let mut deleted = Deleted::default();
    let about = |deleted: &Deleted, what: String| {
        anyhow!("{}: {what}; {} of {} keys were deleted", chosen.target.label, deleted.deleted, found.ours())
    };
    for (place, visit) in visits.iter().enumerate() {
        let store = open(chosen, visit, found.answer_bytes)?;
        let mut reader = Reader::new(store.as_ref(), Shape::Value, interrupt);
        for (count, (key, ours)) in found.ours.iter().filter(|(_, ours)| ours.visit == place).enumerate() {
            reader.shape = ours.shape;
            let gone = reader.delete_if(key, ours.digest).map_err(|what| about(&deleted, what))?;
            deleted.deleted += u64::from(gone);
            deleted.changed += u64::from(!gone);
            if (count + 1) % COMMITTED_TOGETHER == 0 {
                reader.flush().map_err(|what| about(&deleted, what))?;
            }
        }
        reader.flush().map_err(|what| about(&deleted, what))?;
        drop(reader);
        deleted.left = store.count().map_err(|fault| about(&deleted, fault.to_string()))?;
        if deleted.left == Some(0) {
            store.leave().map_err(|fault| about(&deleted, fault.to_string()))?;
        }
    }
    Ok(deleted)
}

/// The job's data, which must be what it was, or other keys would be looked for; and the bytes of its longest answer.
fn data_of(visit: &Visit, kind: &JobKind, scratch: &Path, interrupt: &Interrupt) -> Result<(PathBuf, u64)> {
    let (job, path) = (visit.job.clone(), input::prepare(kind, &visit.job, scratch, interrupt)?.path);
    let source = DataFile::new(&path, &job.data);
    let (verify, out, input) = (Verify::Sample, scratch.join("expected-state"), path.clone());
    let question = OracleTask { job, input, verify, out, explain: None, memory_bytes: None };
    let summary = oracle::compute(&question).map_err(|what| anyhow!(what))?;
    let now = &summary.stream.sha256;
    if *now != visit.sha256 {
        bail!(
            "the data of the job {} ({}) is not what the run had: its sha256 was {}, and now it is {now}\n\
             hint: put the same data in its place, or use the kvfair that ran it",
            visit.job.name,
            source.name(),
            visit.sha256
        );
    }
    Ok((path, longest_answer(&visit.job, &summary).unwrap_or(0)))
}

fn open(chosen: &Chosen, visit: &Visit, answer_bytes: u64) -> Result<Box<dyn Store>> {
    let label = &chosen.target.label;
    let place = chosen.place.clone().ok_or_else(|| anyhow!("{label} names no store that is not ours"))?;
    let (settings, login) = (visit.target.settings.clone(), chosen.login.clone());
    let answer_bytes = Some(answer_bytes);
    let launch = Launch { settings, login, answer_bytes, ..Launch::at(place, PATIENCE) };
    (chosen.adapter.open)(&launch).map_err(|fault| anyhow!("{label}: {fault}"))
}

/// Looks at one key of a visit after another, and sorts them.
struct Looker<'a, 'f> {
    reader: Reader<'a>,
    visit: usize,
    found: &'f mut KeysFound,
}

impl Looker<'_, '_> {
    /// Reads a key, and puts it where it belongs by what it holds.
    fn look(&mut self, key: &[u8], may_be_ours: impl FnOnce(&[u8]) -> bool) -> Result<(), String> {
        match self.reader.read(key)? {
            Held::Nothing => {}
            Held::Bytes(held) if may_be_ours(held) => {
                let digest = xxh3_128(held);
                self.is_ours(key, digest);
            }
            Held::Bytes(_) | Held::Strange => self.is_other(key),
        }
        Ok(())
    }

    fn is_ours(&mut self, key: &[u8], digest: u128) {
        let ours = Ours { visit: self.visit, shape: self.reader.shape, digest };
        self.found.ours.insert(key.into(), ours);
    }

    fn is_other(&mut self, key: &[u8]) {
        self.found.others.insert(key.into());
    }
}

/// What a key holds.
enum Held<'r> {
    Nothing,
    /// A value; of a counter its decimal text; of a tally the record that it stands for.
    Bytes(&'r [u8]),
    /// Something that cannot be read as what the job writes.
    Strange,
}

/// Reads keys one by one: of many at once a store may leave out what is of another type.
struct Reader<'a> {
    store: &'a dyn Store,
    session: Option<Box<dyn Session + 'a>>,
    shape: Shape,
    interrupt: &'a Interrupt,
    held: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(store: &'a dyn Store, shape: Shape, interrupt: &'a Interrupt) -> Reader<'a> {
        Reader { store, session: None, shape, interrupt, held: Vec::new() }
    }

    fn session(&mut self) -> Result<&mut Box<dyn Session + 'a>, String> {
        if self.interrupt.is_set() {
            return Err(INTERRUPTED.to_string());
        }
        if self.session.is_none() {
            self.session = Some(self.store.session().map_err(|fault| fault.to_string())?);
        }
        Ok(self.session.as_mut().expect("it was just opened"))
    }

    fn read(&mut self, key: &[u8]) -> Result<Held<'_>, String> {
        let op = match self.shape {
            Shape::Value => Op::Get(key),
            Shape::Counter => Op::Number(key),
            Shape::Tally => Op::ReadTally(key),
        };
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        let (mut is_strange, mut out_of_step) = (false, false);
        match self.session()?.ask(&op) {
            // What the store has no means for was not written either.
            Ok(Reply::Missing) | Err(Fault::Unsupported(_)) => return Ok(Held::Nothing),
            Ok(Reply::Value(value)) => held.extend_from_slice(value),
            Ok(Reply::Number(number)) => held.extend_from_slice(number.to_string().as_bytes()),
            Ok(Reply::Rows(tally)) => oracle::record_of_tally(key, tally, &mut held),
            Err(Fault::Refused(_)) => is_strange = true,
            Ok(_) | Err(Fault::Garbled(_)) => (is_strange, out_of_step) = (true, true),
            Err(fault @ Fault::Lost(_)) => return Err(fault.to_string()),
        }
        self.held = held;
        if out_of_step {
            self.session = None;
        }
        Ok(if is_strange { Held::Strange } else { Held::Bytes(&self.held) })
    }

    /// Deletes a key that still holds what has this digest. Whether it did.
    fn delete_if(&mut self, key: &[u8], digest: u128) -> Result<bool, String> {
        if !matches!(self.read(key)?, Held::Bytes(held) if xxh3_128(held) == digest) {
            return Ok(false);
        }
        match self.session()?.ask(&Op::Delete(key)) {
            Ok(Reply::Done) => Ok(true),
            Ok(Reply::Missing) => Ok(false),
            Ok(other) => Err(format!("delete was answered by {other:?}")),
            Err(fault) => Err(fault.to_string()),
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        self.session.as_mut().map_or(Ok(()), |session| session.flush()).map_err(|fault| fault.to_string())
    }
}
