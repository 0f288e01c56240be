//! A probe's talk with a store: a session, keys of its own, and what was asked in words. It knows no store and no probe
//! by name.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::journal::Journal;
use super::messages;
use super::proxy::Through;
use crate::model::check::{ProbeWrong, WrongKind};
use crate::model::op::{Fault, Op, Reply, is_unknown_command};
use crate::stores::{Session, Store};

/// What every key of ours begins with, and nobody else's should.
pub const KEYS: &str = "kvfair:check:";
/// An answer that takes longer than this comes too late: a user would have given up. A server whose machine is busy
/// may well take a second.
const LATE: Duration = Duration::from_secs(5);
/// And a second for so many bytes of a large value: a slow disk, or a build with its checks on.
const BYTES_A_SECOND: u64 = 4 << 20;
/// How long an answer may take. `bytes` are those of the question and of the answer.
fn time_for(bytes: usize) -> Duration {
    LATE + Duration::from_secs(bytes as u64 / BYTES_A_SECOND)
}

/// Bytes of the file that holds what was asked last.
pub const ASKED_BYTES: usize = 600;

/// What all probes of a store share.
#[derive(Clone, Copy)]
pub struct ProbeContext<'g> {
    pub store: &'g dyn Store,
    /// Somebody else's: keys may be there from a check that was killed, and values are kept small.
    pub guest: bool,
    pub journal: &'g Journal,
    pub learned: &'g Mutex<Learned>,
    /// How the store is reached past a proxy that splits what it says, where it is reached by a connection.
    pub through: Option<&'g Through<'g>>,
    /// Where what is asked is noted, for who survives us.
    pub asked: &'g std::fs::File,
    /// Told that we are alive, whenever something was answered.
    pub pulse: &'g (dyn Fn() + Sync),
}

/// What one probe leaves for those after it, and for the report.
#[derive(Default)]
pub struct Learned {
    /// The largest value and the longest key that were taken, and whether larger ones were refused.
    pub value_bytes: Option<usize>,
    pub key_bytes: Option<usize>,
    /// In words.
    pub limits: Vec<String>,
    /// Ops that were answered: a server that does not know their commands now has misunderstood what was sent.
    answered: BTreeSet<&'static str>,
}

/// Why a probe ended early.
#[derive(Debug)]
pub enum Stop {
    NotOffered(String),
    Wrong(ProbeWrong),
    /// kvfair itself cannot go on, as where its disk is full. The store is not to blame.
    Unable(String),
}

pub type Probed = Result<(), Stop>;

impl ProbeContext<'_> {
    pub fn learned(&self) -> std::sync::MutexGuard<'_, Learned> {
        self.learned.lock().expect("no thread panics with what was learned in hand")
    }

    /// Deletes everything that is still in the journal, or says why it cannot.
    pub fn clear(&self) -> Result<(), String> {
        let keys = self.journal.take();
        if keys.is_empty() {
            return Ok(());
        }
        let cleared = self.store.session().and_then(|mut session| delete_all(session.as_mut(), &keys, self.pulse));
        cleared.map_err(|fault| {
            self.journal.keep(keys);
            fault.to_string()
        })
    }
}

/// A value, a number and a tally may stand side by side under one key, where each has a table of its own.
const KINDS: usize = 3;

/// Deletes keys, and what else is found under them. What a store does not take as a key is not in it.
pub fn delete_all(session: &mut dyn Session, keys: &[Vec<u8>], pulse: &(dyn Fn() + Sync)) -> Result<(), Fault> {
    for key in keys {
        for _ in 0..KINDS {
            match session.ask(&Op::Delete(key)) {
                Ok(Reply::Done) => pulse(),
                Ok(_) | Err(Fault::Unsupported(_) | Fault::Refused(_)) => break,
                Err(fault) => return Err(fault),
            }
        }
        pulse();
    }
    session.flush()
}

/// One session, and the probe that it is for.
pub struct ProbeSession<'g> {
    pub ground: &'g ProbeContext<'g>,
    session: Box<dyn Session + 'g>,
    probe: &'static str,
    /// The last change that was asked for, in words.
    changed: String,
}

impl<'g> ProbeSession<'g> {
    pub fn begin(ground: &'g ProbeContext<'g>, probe: &'static str) -> Result<ProbeSession<'g>, Stop> {
        let session = ground.store.session();
        let session = session.map_err(|fault| failed("a new session".to_string(), &fault))?;
        Ok(ProbeSession { ground, session, probe, changed: String::new() })
    }

    /// A new session in place of one that is of no more use.
    pub fn begin_again(&mut self) -> Probed {
        *self = ProbeSession::begin(self.ground, self.probe)?;
        Ok(())
    }

    /// A key of this probe's, noted before it is written. In a store by URL it is made sure that it is missing.
    pub fn key(&mut self, name: impl AsRef<[u8]>) -> Result<Vec<u8>, Stop> {
        let key = [KEYS.as_bytes(), self.probe.as_bytes(), b":", name.as_ref()].concat();
        self.own(&key)?;
        Ok(key)
    }

    /// Makes a key ours, whatever it is called; nothing of it is open then.
    pub fn own(&mut self, key: &[u8]) -> Probed {
        let is_new = self.ground.journal.note(key).map_err(|error| Stop::Unable(journal_failed(&error)))?;
        if is_new && self.ground.guest {
            match self.try_ask(Op::Delete(key))? {
                Ok(_) | Err(Fault::Unsupported(_) | Fault::Refused(_)) => {}
                Err(fault) => return Err(failed(messages::asked(&Op::Delete(key)), &fault)),
            }
            // What is open keeps other clients from writing.
            self.flush()?;
        }
        Ok(())
    }

    /// The store's answer, or its fault, which may be what a probe wants to hear. An op whose command the server does
    /// not know ends the probe.
    pub fn try_ask(&mut self, op: Op<'_>) -> Result<Result<Reply<'_>, Fault>, Stop> {
        let ProbeSession { ground, session, changed, .. } = self;
        let words = messages::asked(&op);
        note_asked(ground.asked, &words);
        if !op.is_read() {
            changed.clone_from(&words);
        }
        let began = Instant::now();
        let answered = session.ask(&op);
        let took = began.elapsed();
        (ground.pulse)();
        match &answered {
            Ok(_) => drop(ground.learned().answered.insert(command(&op))),
            Err(Fault::Refused(words))
                if is_unknown_command(words) && !ground.learned().answered.contains(command(&op)) =>
            {
                return Err(Stop::NotOffered(format!("{}: {}", command(&op), messages::unknown_command(words))));
            }
            Err(_) => {}
        }
        if answered.as_ref().is_ok_and(|reply| took > time_for(op.bytes() + reply.bytes())) {
            return Err(wrong(words, format!("an answer after {:.1} s", took.as_secs_f64())));
        }
        Ok(answered)
    }

    /// The store's answer. An op that it lacks ends the probe, and a fault fails it.
    pub fn ask(&mut self, op: Op<'_>) -> Result<Reply<'_>, Stop> {
        let changed = self.changed.clone();
        self.try_ask(op)?.map_err(|fault| match fault {
            Fault::Unsupported(words) => Stop::NotOffered(words),
            fault => failed(sent(&changed, &op), &fault),
        })
    }

    pub fn expect(&mut self, op: Op<'_>, expected: Reply<'_>) -> Probed {
        let changed = self.changed.clone();
        let found = self.ask(op)?;
        let same = match (&found, &expected) {
            // A version means something to who gave it only.
            (Reply::Versioned(found, _), Reply::Versioned(expected, _)) => found == expected,
            // However they lie in memory.
            (Reply::Values(found), Reply::Values(expected)) => found.iter().eq(expected.iter()),
            (found, expected) => found == expected,
        };
        if same {
            return Ok(());
        }
        let (came, cause) = (messages::instead(&found, &expected), messages::cause(&found, &expected));
        Err(Stop::Wrong(ProbeWrong { sent: sent(&changed, &op), came, cause, ..ProbeWrong::default() }))
    }

    /// What a probe needs before it can ask what it is for: where this fails, it is the op that is to blame.
    pub fn prepare(&mut self, op: Op<'_>, expected: Reply<'_>) -> Probed {
        self.expect(op, expected).map_err(|stop| match stop {
            Stop::Wrong(wrong) => Stop::Wrong(ProbeWrong { step: Some(op.name().to_string()), ..wrong }),
            other => other,
        })
    }

    /// A value that is to be there.
    pub fn given(&mut self, key: &[u8], value: &[u8]) -> Probed {
        self.prepare(Op::Set { key, value, ttl_s: None }, Reply::Done)
    }

    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Probed {
        self.expect(Op::Set { key, value, ttl_s: None }, Reply::Done)
    }

    pub fn holds(&mut self, key: &[u8], value: &[u8]) -> Probed {
        self.expect(Op::Get(key), Reply::Value(value))
    }

    /// The version of a key that holds a value.
    pub fn version(&mut self, key: &[u8], value: &[u8]) -> Result<u64, Stop> {
        let changed = self.changed.clone();
        match self.ask(Op::GetVersion(key))? {
            Reply::Versioned(found, version) if found == value => Ok(version),
            other => {
                let came = messages::instead(&other, &Reply::Versioned(value, 0));
                Err(wrong(sent(&changed, &Op::GetVersion(key)), came))
            }
        }
    }

    pub fn flush(&mut self) -> Probed {
        self.session.flush().map_err(|fault| failed(format!("{}; flush", self.changed), &fault))
    }

    /// The fault that this op met.
    pub fn failed(&self, op: &Op<'_>, fault: &Fault) -> Stop {
        failed(sent(&self.changed, op), fault)
    }

    /// The words by which this op was refused.
    pub fn refused(&self, op: &Op<'_>, words: String) -> Stop {
        refused(sent(&self.changed, op), words)
    }

    /// What a probe says went wrong after this op.
    pub fn wrong(&self, op: &Op<'_>, came: impl Into<String>) -> Stop {
        wrong(sent(&self.changed, op), came.into())
    }
}

pub fn wrong(sent: String, came: String) -> Stop {
    Stop::Wrong(ProbeWrong { sent, came, ..ProbeWrong::default() })
}

/// An error has one cause, however many probes meet it; a time that was over has another each time.
pub fn failed(sent: String, fault: &Fault) -> Stop {
    let is_late = matches!(fault, Fault::Lost(error) if error.kind() == io::ErrorKind::TimedOut);
    let came = fault.to_string();
    let words = match fault {
        Fault::Refused(words) | Fault::Unsupported(words) => words,
        Fault::Lost(_) | Fault::Garbled(_) => &came,
    };
    let kind = if matches!(fault, Fault::Garbled(_)) { WrongKind::Garbled } else { WrongKind::Answer };
    Stop::Wrong(ProbeWrong { kind, sent, cause: (!is_late).then(|| words.clone()), came: came.clone(), step: None })
}

/// The same, of words that a store refused by.
pub fn refused(sent: String, words: String) -> Stop {
    Stop::Wrong(ProbeWrong { sent, cause: Some(words.clone()), came: words, ..ProbeWrong::default() })
}

/// The change before a question about one key belongs to what was sent.
fn sent(changed: &str, op: &Op<'_>) -> String {
    let asked = messages::asked(op);
    let stands_alone = !op.is_read() || matches!(op, Op::GetMany(_) | Op::NumberMany(_) | Op::Scan { .. });
    if changed.is_empty() || stands_alone { asked } else { format!("{changed}; {asked}") }
}

/// What a server may know or not: it may count up and not down.
fn command(op: &Op<'_>) -> &'static str {
    match op {
        Op::Increment { by: ..0, .. } => "decrement",
        op => op.name(),
    }
}

/// Why no more keys can be written.
pub fn journal_failed(error: &io::Error) -> String {
    format!("the journal of keys could not be written: {error}; TMPDIR can name another directory")
}

/// In one write at a fixed place, so that a process that dies leaves its last words whole.
fn note_asked(file: &std::fs::File, words: &str) {
    let mut line = [b' '; ASKED_BYTES];
    let length = words.len().min(ASKED_BYTES);
    line[..length].copy_from_slice(&words.as_bytes()[..length]);
    // It only serves a message.
    let _ = file.write_all_at(&line, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A large value comes back in as long a time as it is sent in.
    #[test]
    fn a_large_answer_has_more_time() {
        assert_eq!(time_for(Op::Get(b"key").bytes() + Reply::Missing.bytes()), LATE);
        let value = vec![0; 64 << 20];
        assert_eq!(time_for(Op::Get(b"key").bytes() + Reply::Value(&value).bytes()), LATE + Duration::from_secs(16));
    }
}
