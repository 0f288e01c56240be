//! `getset`: sets, then gets, small values on random keys: the sweep over the number of clients. It must not know any
//! store.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Ask, Client, EndState, Heard, Job, JobKind, Part, Source};
use crate::words::op::{Op, Reply, Wrong, readable};
use crate::words::trial::{JobSettings, Load, Only, Via};

pub mod questions;
pub mod values;

use questions::{Draws, KeyText, share};
use values::{Values, version};

pub static GETSET: JobKind = JobKind {
    name: "getset",
    about: "sets, then gets, small values on random keys, with more and more clients: requests a second, and CPU a request",
    unit: "request",
    scale: "requests",
    default_units: 100_000,
    default_seed: 1,
    recipe: "uniform",
    formats: &[],
    ways: &[Via::Portable],
    end_state: |_| EndState::Versions,
    data,
    open: |settings| Box::new(GetSet { settings: settings.clone(), values: Arc::new(values_of(settings)) }),
};

/// The numbers of clients of the post of 2010.
pub const CLIENTS: &str = "1,5,10..100:10,200,300";
/// Its keys and values.
pub const RECORDS: u64 = 100_000;
pub const VALUE_BYTES: u32 = 32;

/// How many bytes of an answer a message about it shows.
const SHOWN_BYTES: usize = 60;

struct GetSet {
    settings: JobSettings,
    values: Arc<Values>,
}

/// What a job of this kind is asked; always there, since the command line fills it in.
pub fn load_of(settings: &JobSettings) -> Load {
    settings.load.clone().unwrap_or_default()
}

/// The values of a job, for who asks and for who checks.
pub fn values_of(settings: &JobSettings) -> Values {
    Values::new(settings.seed(), load_of(settings).value_bytes as usize)
}

/// Requests of one part at one number of clients.
pub fn requests(settings: &JobSettings) -> u64 {
    settings.units.unwrap_or(GETSET.default_units)
}

impl Job for GetSet {
    fn parts(&self) -> &'static [Part] {
        match load_of(&self.settings).only {
            None => &[Part::Load, Part::Set, Part::Get],
            Some(Only::Set) => &[Part::Load, Part::Set],
            Some(Only::Get) => &[Part::Load, Part::Get],
        }
    }

    fn client(&self, part: Part, index: u32, of: u32, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        let load = load_of(&self.settings);
        let (draws, left) = match part {
            Part::Load => (None, share(load.records, index, of)),
            _ => {
                let draws = Draws::new(self.settings.seed(), part, of, index, load.records);
                (Some(draws), share(requests(&self.settings), index, of))
            }
        };
        Ok(Box::new(Asking {
            draws,
            next_record: u64::from(index),
            of: u64::from(of),
            setting: part != Part::Get,
            version: if part == Part::Load { version(0, 0, 0) } else { version(of, index, 0) },
            left,
            key: KeyText::default(),
            value: self.values.blank(),
            values: self.values.clone(),
            asked: Ring::new(load.depth.max(super::LOAD_DEPTH) as usize),
            misses: 0,
        }))
    }
}

/// A client that sets or gets one key after another.
struct Asking {
    /// Which key is next; one after another, each client its own, where there are none: the loading.
    draws: Option<Draws>,
    next_record: u64,
    of: u64,
    setting: bool,
    /// Of the next value: it grows by one with each.
    version: u64,
    left: u64,
    key: KeyText,
    value: Vec<u8>,
    values: Arc<Values>,
    asked: Ring,
    misses: u64,
}

impl Client for Asking {
    #[inline]
    fn ask(&mut self) -> Ask<'_> {
        if self.left == 0 {
            return Ask::End;
        }
        self.left -= 1;
        let record = match &mut self.draws {
            Some(draws) => draws.draw(),
            None => {
                self.next_record += self.of;
                self.next_record - self.of
            }
        };
        self.asked.push(record);
        let key = self.key.of(record);
        if self.setting {
            self.values.write(record, self.version, &mut self.value);
            // What is loaded has one version for all: nothing was there before.
            self.version += u64::from(self.draws.is_some());
            Ask::Op(Op::Set { key, value: &self.value, ttl_s: None })
        } else {
            Ask::Op(Op::Get(key))
        }
    }

    #[inline]
    fn hear(&mut self, reply: Reply<'_>) -> Heard {
        let record = self.asked.pop();
        match reply {
            Reply::Done if self.setting => {}
            Reply::Value(value) if !self.setting && self.values.belongs(record, value) => {}
            Reply::Missing if !self.setting => self.misses += 1,
            _ => return self.wrong(record, reply),
        }
        Heard::Unit { counted: 1 }
    }

    fn misses(&self) -> u64 {
        self.misses
    }
}

impl Asking {
    #[cold]
    fn wrong(&self, record: u64, reply: Reply<'_>) -> Heard {
        let found = match reply {
            Reply::Value(value) => format!("{} bytes: {}", value.len(), readable(value, SHOWN_BYTES)),
            other => format!("{other:?}").chars().take(SHOWN_BYTES).collect(),
        };
        Heard::Wrong(Wrong {
            key: readable(KeyText::default().of(record), SHOWN_BYTES),
            expected: if self.setting {
                "done".to_string()
            } else {
                format!("a value of {} bytes that was set under this key", self.values.bytes())
            },
            found,
        })
    }
}

/// The records that were asked for and not answered yet: as many as there can be, in a ring, so that asking costs no
/// memory.
struct Ring {
    records: Box<[u64]>,
    first: usize,
    count: usize,
}

impl Ring {
    fn new(depth: usize) -> Ring {
        Ring { records: vec![0; depth.next_power_of_two()].into_boxed_slice(), first: 0, count: 0 }
    }

    #[inline]
    fn push(&mut self, record: u64) {
        let mask = self.records.len() - 1;
        assert!(self.count <= mask, "no more is asked at once than the depth says");
        self.records[(self.first + self.count) & mask] = record;
        self.count += 1;
    }

    #[inline]
    fn pop(&mut self) -> u64 {
        let record = self.records[self.first];
        self.first = (self.first + 1) & (self.records.len() - 1);
        self.count -= 1;
        record
    }
}

/// The questions of a single client, a line each, as it asks them with the default settings.
fn data(seed: u64, units: u64, out: &mut dyn Write) -> io::Result<()> {
    questions::write(seed, units, RECORDS, &[Part::Set, Part::Get], out)
}
