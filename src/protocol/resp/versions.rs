//! Versions of values by WATCH, and check-and-set by MULTI and EXEC.

use super::frames::command;
use super::{Awaited, Resp, one};
use crate::model::op::{Op, Pairs};

/// So many keys are watched before all are let go: Redis looks through the whole list at each WATCH, and so do we. It
/// also bounds how many versions of one session may be open at once.
const WATCHES_MAX: usize = 128;

impl Resp {
    /// Watches before it reads, so that no change between the two goes unseen. All watches are let go first where an
    /// old one would stand in the way: a key that is watched already stays as changed as it was.
    pub(super) fn watch(&mut self, key: &[u8], out: &mut Vec<u8>) -> Awaited {
        let anew = self.spoilt || self.is_watched(key) || self.watched.lend().len() == WATCHES_MAX;
        if anew {
            command(&[b"UNWATCH"], out);
            self.end_epoch();
        }
        command(&[b"WATCH", key], out);
        command(&[b"GET", key], out);
        self.watched.push(key);
        Awaited::Watched { epoch: self.epoch, statuses: if anew { 2 } else { 1 } }
    }

    /// EXEC lets all watched keys go, so a version from before the last one proves nothing any more. Then PING asks
    /// for an answer in its place in the queue, and leaves the watches of younger versions alone.
    pub(super) fn swap(&mut self, key: &[u8], version: u64, value: &[u8], out: &mut Vec<u8>) -> Awaited {
        if version != self.epoch || !self.is_watched(key) {
            return one(&[b"PING"], Awaited::Stale, out);
        }
        command(&[b"MULTI"], out);
        command(&[b"SET", key, value], out);
        command(&[b"EXEC"], out);
        self.end_epoch();
        Awaited::Swap
    }

    fn end_epoch(&mut self) {
        self.epoch += 1;
        self.watched.clear();
        self.spoilt = false;
    }

    #[inline]
    pub(super) fn is_watched(&self, key: &[u8]) -> bool {
        !self.watched.lend().is_empty() && self.watched.lend().iter().any(|watched| watched == key)
    }

    #[inline]
    pub(super) fn writes_watched(&self, op: &Op<'_>) -> bool {
        match *op {
            _ if self.watched.lend().is_empty() => false,
            Op::Set { key, .. } | Op::SetIfAbsent { key, .. } | Op::Delete(key) => self.is_watched(key),
            Op::Increment { key, .. } | Op::Add { key, .. } => self.is_watched(key),
            Op::AddMany(sums) => sums.keys().iter().any(|key| self.is_watched(key)),
            Op::SetMany(Pairs { keys, .. }) | Op::Tally { records: keys, .. } => {
                keys.iter().any(|key| self.is_watched(key))
            }
            _ => false,
        }
    }
}
