//! Whether a store holds one of some keys: each is asked for by itself, many at once where there is a connection. A
//! question for many keys would do less: a Redis answers it with nothing for a key that holds no string.

use std::io;
use std::sync::Arc;
use std::time::Duration;

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

/// Keys that are to be asked for.
pub(super) struct HeldKeys<'a> {
    store: &'a dyn Store,
    source: &'a dyn Source,
    patience: Duration,
    has_connection: bool,
    keys: KeyList,
    /// The first key that was there, or why one could not be asked for.
    found: Result<(), String>,
}

impl<'a> HeldKeys<'a> {
    pub(super) fn new(store: &'a dyn Store, source: &'a dyn Source, patience: Duration) -> HeldKeys<'a> {
        HeldKeys {
            store,
            source,
            patience,
            has_connection: store.connection().is_some(),
            keys: KeyList::default(),
            found: Ok(()),
        }
    }

    pub(super) fn at(&mut self, key: &[u8]) {
        if self.found.is_ok() {
            self.keys.push(key);
            if self.keys.lend().len() == KEYS_TOGETHER {
                self.ask();
            }
        }
    }

    /// What was found, once all are asked for.
    pub(super) fn end(mut self) -> Result<(), String> {
        if self.found.is_ok() && !self.keys.lend().is_empty() {
            self.ask();
        }
        self.found
    }

    fn ask(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        self.found = if self.has_connection { self.ask_together(keys) } else { self.ask_each(&keys) };
    }

    fn ask_each(&self, keys: &KeyList) -> Result<(), String> {
        let mut session = self.store.session().map_err(|fault| fault.to_string())?;
        for key in keys.lend().iter() {
            let shown = || readable(key, LONGEST_KEY);
            match session.ask(&Op::Get(key)) {
                Ok(Reply::Missing) => {}
                Ok(_) => return Err(held(&shown())),
                Err(fault) => return Err(format!("get of the job's key \"{}\": {fault}", shown())),
            }
        }
        Ok(())
    }

    fn ask_together(&self, keys: KeyList) -> Result<(), String> {
        let keys = Arc::new(keys);
        let (job, progress) = (Gets(keys.clone()), Progress::new(1));
        let HeldKeys { store, source, patience, .. } = *self;
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

/// A job of one client who gets these keys, and expects none of them.
struct Gets(Arc<KeyList>);

impl Job for Gets {
    fn client(&self, _: Part, _: u32, _: At, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        Ok(Box::new(Getting { keys: self.0.clone(), asked: 0, heard: 0 }))
    }
}

struct Getting {
    keys: Arc<KeyList>,
    asked: usize,
    heard: usize,
}

impl Client for Getting {
    fn ask(&mut self) -> Ask<'_> {
        if self.asked == self.keys.lend().len() {
            return Ask::End;
        }
        self.asked += 1;
        Ask::Op(Op::Get(self.keys.lend().get(self.asked - 1)))
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.heard += 1;
        if *reply == Reply::Missing {
            return Heard::More;
        }
        let key = readable(self.keys.lend().get(self.heard - 1), LONGEST_KEY);
        Heard::Wrong(Wrong { key, expected: "nothing".to_string(), found: "a value".to_string() })
    }
}
