//! Clients whose every question is about one key, drawn by its number: the load that servers are measured with. Such a
//! client is known to the drivers as what it is, since going through a table for each question would cost as much as
//! the question.

use std::sync::Arc;

use super::{Ask, Client, Heard};
use crate::words::op::{Op, Reply, Wrong, readable};

pub mod questions;
pub mod values;

use questions::{Draws, KeyText};
use values::Values;

/// How many bytes of an answer a message about it shows.
const SHOWN_BYTES: usize = 60;

/// Sets or gets one key after another.
pub struct Keyed {
    /// Which key is next; one after another, each client its own, where there are none: the loading.
    pub(super) draws: Option<Draws>,
    pub(super) next_record: u64,
    pub(super) of: u64,
    pub(super) setting: bool,
    /// Of the next value: it grows by one with each.
    pub(super) version: u64,
    pub(super) left: u64,
    pub(super) key: KeyText,
    pub(super) value: Vec<u8>,
    pub(super) values: Arc<Values>,
    pub(super) asked: Ring,
    pub(super) misses: u64,
}

impl Client for Keyed {
    #[inline(always)]
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

    #[inline(always)]
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

    #[inline]
    fn keyed(&mut self) -> Option<&mut Keyed> {
        Some(self)
    }
}

impl Keyed {
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
pub(super) struct Ring {
    records: Box<[u64]>,
    first: usize,
    count: usize,
}

impl Ring {
    pub(super) fn new(depth: usize) -> Ring {
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
