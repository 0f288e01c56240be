//! Counters: keys of their own, or the fields of one hash, where a server keeps many small ones in less memory.

use super::frames::{array, bulk, command};
use super::{Awaited, Resp};
use crate::model::op::Keys;

/// Where counters are.
#[derive(Clone, Copy, Default)]
pub enum Counters {
    #[default]
    Keys,
    /// Fields of the hash of this name.
    Hash(&'static str),
}

impl Counters {
    /// A negative step of a key is taken away: the server negates it, and the least number has no opposite.
    pub(super) fn increment(self, key: &[u8], by: i64, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        match (self, by) {
            (Counters::Hash(hash), _) => {
                command(&[b"HINCRBY", hash.as_bytes(), key, digits.format(by).as_bytes()], out);
            }
            (Counters::Keys, i64::MIN | 0..) => command(&[b"INCRBY", key, digits.format(by).as_bytes()], out),
            (Counters::Keys, _) => command(&[b"DECRBY", key, digits.format(by.unsigned_abs()).as_bytes()], out),
        }
    }

    pub(super) fn number(self, key: &[u8], out: &mut Vec<u8>) -> Awaited {
        match self {
            Counters::Keys => command(&[b"GET", key], out),
            Counters::Hash(hash) => command(&[b"HGET", hash.as_bytes(), key], out),
        }
        Awaited::Count
    }

    /// There is one key at least.
    pub(super) fn numbers(self, keys: Keys<'_>, out: &mut Vec<u8>) -> Awaited {
        match self {
            Counters::Keys => {
                array(keys.len() + 1, out);
                bulk(b"MGET", out);
            }
            Counters::Hash(hash) => {
                array(keys.len() + 2, out);
                bulk(b"HMGET", out);
                bulk(hash.as_bytes(), out);
            }
        }
        keys.iter().for_each(|key| bulk(key, out));
        Awaited::Counts(keys.len())
    }

    /// Removes a counter, and where there is none the value of that key: in one step, and never both, since the value
    /// may be somebody else's.
    pub(super) fn delete(self, key: &[u8], out: &mut Vec<u8>) -> Awaited {
        match self {
            Counters::Keys => command(&[b"DEL", key], out),
            Counters::Hash(hash) => command(&[b"EVAL", DELETE, b"2", hash.as_bytes(), key], out),
        }
        Awaited::Removed
    }
}

/// The keys are the hash and what is to be removed.
const DELETE: &[u8] =
    b"if redis.call('HDEL', KEYS[1], KEYS[2]) == 1 then return 1 end return redis.call('DEL', KEYS[2])";

impl Resp {
    /// Puts counters into one hash, from the first op on.
    pub fn with(self, counters: Counters) -> Resp {
        Resp { counters, ..self }
    }
}
