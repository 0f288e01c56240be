//! Many keys of which the same is asked: whether a store holds one, or that it is deleted. Each is asked for by itself,
//! many at once where there is a connection. A question for many keys would do less: a Redis answers it with nothing
//! for a key that holds no string.

use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::jobs::{Ask, Client, Heard, Job, LOAD_DEPTH, Part, Source};
use crate::loadgen::sockets::{self, Conduct, Threads};
use crate::loadgen::{Progress, Stopped, Work};
use crate::model::load::At;
use crate::model::op::{Fault, KeyList, Op, Reply, Wrong, readable};
use crate::stores::Store;

/// So many keys are kept until they are asked for, over one connection.
const KEYS_TOGETHER: usize = 10_000;
/// So much of a key is shown.
const LONGEST_KEY: usize = 80;
/// A job may write a key many times: so many of the last ones are known and not asked for again. A power of two.
const LATEST: usize = 1 << 20;

/// What is asked of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// That it is not there.
    IsMissing,
    Delete,
}

impl Question {
    fn of(self, key: &[u8]) -> Op<'_> {
        match self {
            Question::IsMissing => Op::Get(key),
            Question::Delete => Op::Delete(key),
        }
    }

    fn takes(self, reply: &Reply<'_>) -> bool {
        self == Question::Delete || *reply == Reply::Missing
    }
}

/// Keys that are to be asked for.
pub(super) struct KeysTogether<'a> {
    store: &'a dyn Store,
    source: &'a dyn Source,
    patience: Duration,
    question: Question,
    has_connection: bool,
    keys: KeyList,
    /// Hashes of the latest keys, each in the place that it names itself. Two keys of one hash of 64 bits are taken for
    /// one.
    latest: Vec<u64>,
    hasher: RandomState,
}

impl<'a> KeysTogether<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        source: &'a dyn Source,
        patience: Duration,
        question: Question,
    ) -> KeysTogether<'a> {
        KeysTogether {
            store,
            source,
            patience,
            question,
            has_connection: store.connection().is_some(),
            keys: KeyList::default(),
            latest: vec![0; LATEST],
            hasher: RandomState::default(),
        }
    }

    /// An error is of one of the keys so far: the first that is there, or one that could not be asked for.
    pub(super) fn at(&mut self, key: &[u8]) -> Result<(), String> {
        // Never zero, which is an empty place.
        let hash = self.hasher.hash_one(key) | 1;
        let place = &mut self.latest[(hash >> 32) as usize & (LATEST - 1)];
        if std::mem::replace(place, hash) == hash {
            return Ok(());
        }
        self.keys.push(key);
        if self.keys.lend().len() < KEYS_TOGETHER {
            return Ok(());
        }
        self.ask()
    }

    /// Asks for the last ones.
    pub(super) fn end(mut self) -> Result<(), String> {
        if self.keys.lend().is_empty() { Ok(()) } else { self.ask() }
    }

    fn ask(&mut self) -> Result<(), String> {
        let keys = std::mem::take(&mut self.keys);
        if self.has_connection { self.ask_together(keys) } else { self.ask_each(&keys) }
    }

    fn ask_each(&self, keys: &KeyList) -> Result<(), String> {
        let mut session = self.store.session().map_err(|fault| fault.to_string())?;
        for key in keys.lend().iter() {
            let op = self.question.of(key);
            let shown = || readable(key, LONGEST_KEY);
            match session.ask(&op) {
                Ok(ref reply) if self.question.takes(reply) => {}
                Ok(_) => return Err(held(&shown())),
                Err(fault) => return Err(format!("{} of the job's key \"{}\": {fault}", op.name(), shown())),
            }
        }
        session.flush().map_err(|fault| fault.to_string())
    }

    fn ask_together(&self, keys: KeyList) -> Result<(), String> {
        let keys = Arc::new(keys);
        let (job, progress) = (EachKey { keys: keys.clone(), question: self.question }, Progress::new(1));
        let KeysTogether { store, source, patience, .. } = *self;
        let conduct = Conduct { depth: LOAD_DEPTH, patience, reopens: false, threads: Threads::Half };
        let (part, at) = (Part::Load, At::closed(1, 0));
        let work = Work { store, job: &job, source, part, at, pace: None, limit: None, progress: &progress };
        match sockets::run(&work, conduct, || {}) {
            Ok(_) => Ok(()),
            Err(Stopped::Wrong(wrong)) => Err(held(&wrong.key)),
            // Which key it is that holds something else than a value is told where each is asked for alone.
            Err(Stopped::Connection { fault: Fault::Refused(_), .. }) => self.ask_each(&keys),
            Err(stopped) => Err(stopped.to_string()),
        }
    }
}

fn held(key: &str) -> String {
    format!("it holds the key \"{key}\", which this job would overwrite: name an empty store")
}

/// A job of one client who asks the same of each of these keys.
struct EachKey {
    keys: Arc<KeyList>,
    question: Question,
}

impl Job for EachKey {
    fn client(&self, _: Part, _: u32, _: At, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        Ok(Box::new(Asking { keys: self.keys.clone(), question: self.question, asked: 0, heard: 0 }))
    }
}

struct Asking {
    keys: Arc<KeyList>,
    question: Question,
    asked: usize,
    heard: usize,
}

impl Client for Asking {
    fn ask(&mut self) -> Ask<'_> {
        if self.asked == self.keys.lend().len() {
            return Ask::End;
        }
        self.asked += 1;
        Ask::Op(self.question.of(self.keys.lend().get(self.asked - 1)))
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.heard += 1;
        if self.question.takes(reply) {
            return Heard::More;
        }
        let key = readable(self.keys.lend().get(self.heard - 1), LONGEST_KEY);
        Heard::Wrong(Wrong { key, expected: "nothing".to_string(), found: "a value".to_string() })
    }
}
