//! How old what was read is: every read is held against the writes of its key that were acknowledged before the read
//! was sent. It needs one writer a key, whose versions follow each other. See docs/replicas.md.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::model::hist::Times;
use crate::model::record::Staleness;

/// Keys are spread over so many locks, so that clients seldom wait for each other.
const SHARDS: u64 = 256;
/// When a write that is under way was acknowledged.
const NEVER: u64 = u64::MAX;

/// The writes of a phase, and what its reads were behind.
pub struct Observer {
    began: Instant,
    /// By the key's number, oldest first.
    shards: Vec<Mutex<HashMap<u64, Vec<Write>>>>,
    seen: Mutex<Seen>,
}

struct Write {
    version: u64,
    acknowledged_ns: u64,
}

/// Of the servers, the primary first.
struct Seen {
    reads: Vec<u64>,
    stale: Vec<u64>,
    versions_behind: Times,
    behind_ns: Times,
}

impl Seen {
    fn of(servers: usize) -> Seen {
        let (versions_behind, behind_ns) = (Times::default(), Times::default());
        Seen { reads: vec![0; servers], stale: vec![0; servers], versions_behind, behind_ns }
    }
}

/// What a stale read was behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    pub versions: u64,
    pub ns: u64,
}

impl Observer {
    /// Of a primary and its replicas, so many servers together.
    pub fn new(servers: usize) -> Observer {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Observer { began: Instant::now(), shards, seen: Mutex::new(Seen::of(servers)) }
    }

    /// Another phase begins: all servers hold the same, which counts as each key's version before its first write.
    pub fn begin(&self) {
        self.shards.iter().for_each(|shard| locked(shard).clear());
        let mut seen = locked(&self.seen);
        *seen = Seen::of(seen.reads.len());
    }

    /// Now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// A write is about to be sent: a read may find it before it is acknowledged.
    pub fn writes(&self, record: u64, version: u64) {
        self.shard(record).entry(record).or_default().push(Write { version, acknowledged_ns: NEVER });
    }

    /// The last write of this key is acknowledged. The clock is read under the lock: a read that is judged later misses
    /// no write that was acknowledged before that read was sent.
    pub fn acknowledged(&self, record: u64) {
        let mut shard = self.shard(record);
        if let Some(write) = shard.get_mut(&record).and_then(|writes| writes.last_mut()) {
            write.acknowledged_ns = self.now_ns();
        }
    }

    /// A read that was sent then has found this version at that server.
    pub fn read(&self, server: usize, record: u64, version: u64, sent_ns: u64) -> Option<Behind> {
        let behind = self.shard(record).get(&record).and_then(|writes| behind(writes, version, sent_ns));
        let mut seen = locked(&self.seen);
        seen.reads[server] += 1;
        if let Some(behind) = behind {
            seen.stale[server] += 1;
            seen.versions_behind.record(behind.versions);
            seen.behind_ns.record(behind.ns);
        }
        behind
    }

    /// Of the phase that has ended.
    pub fn staleness(&self) -> Staleness {
        let seen = locked(&self.seen);
        Staleness {
            reads: seen.reads.clone(),
            stale: seen.stale.clone(),
            versions_behind: seen.versions_behind.clone().into(),
            behind_ns: seen.behind_ns.clone().into(),
        }
    }

    fn shard(&self, record: u64) -> MutexGuard<'_, HashMap<u64, Vec<Write>>> {
        locked(&self.shards[(record % SHARDS) as usize])
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no client panics")
}

/// Nothing where no newer version was acknowledged before the read was sent. A version that is not among the writes of
/// this phase is the one from before it.
fn behind(writes: &[Write], version: u64, sent_ns: u64) -> Option<Behind> {
    // Each client counts its versions up, and is the only one that writes the key.
    let found = writes.binary_search_by_key(&version, |write| write.version).map_or(0, |place| place + 1);
    let known = writes.partition_point(|write| write.acknowledged_ns < sent_ns);
    let next = writes.get(found).filter(|_| known > found)?;
    Some(Behind { versions: (known - found) as u64, ns: sent_ns - next.acknowledged_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions 10, 20, 30 and 40, acknowledged at 100, 200 and 300; the last one is under way.
    fn writes() -> Vec<Write> {
        let write = |(version, acknowledged_ns)| Write { version, acknowledged_ns };
        [(10, 100), (20, 200), (30, 300), (40, NEVER)].map(write).into()
    }

    #[test]
    fn a_read_is_behind_by_what_was_acknowledged_before_it_was_sent() {
        let of = |version, sent_ns| behind(&writes(), version, sent_ns).map(|behind| (behind.versions, behind.ns));
        assert_eq!(of(30, 1_000), None, "the newest");
        assert_eq!(of(20, 1_000), Some((1, 700)));
        assert_eq!(of(10, 1_000), Some((2, 800)));
        assert_eq!(of(3, 1_000), Some((3, 900)), "from before the phase");
        assert_eq!(of(99, 1_000), Some((3, 900)), "also where its number is higher");
    }

    #[test]
    fn what_was_not_acknowledged_before_makes_no_read_stale() {
        let of = |version, sent_ns| behind(&writes(), version, sent_ns);
        assert_eq!(of(40, 1_000), None, "ahead of what was acknowledged");
        assert_eq!(of(20, 300), None, "acknowledged when it was sent, not before");
        assert_eq!(of(20, 301), Some(Behind { versions: 1, ns: 1 }));
        assert_eq!(of(3, 100), None);
        assert_eq!(behind(&[], 3, 1_000), None, "never written");
    }

    #[test]
    fn reads_are_counted_by_server_and_forgotten_with_their_phase() {
        let observer = Observer::new(3);
        observer.writes(7, 1);
        assert_eq!(observer.read(1, 7, 0, observer.now_ns()), None, "under way");
        observer.acknowledged(7);
        let later_ns = observer.now_ns() + 1_000_000;
        assert_eq!(observer.read(0, 7, 1, later_ns), None);
        assert!(observer.read(2, 7, 0, later_ns).is_some_and(|behind| behind.versions == 1 && behind.ns >= 1_000_000));
        assert_eq!(observer.read(2, 8, 0, later_ns), None, "another key");
        let seen = observer.staleness();
        assert_eq!((seen.reads, seen.stale), (vec![1, 1, 2], vec![0, 0, 1]));
        observer.begin();
        assert_eq!(observer.read(2, 7, 0, later_ns), None, "another phase");
        assert_eq!(observer.staleness().reads, [0, 0, 1]);
    }
}
