//! The ledger of kills: what each client wrote, what was acknowledged, what was found afterwards, and what follows.
//!
//! A client numbers its writes from 1 and has one under way at a time. Most go to keys of a long ring, so that a hole
//! in what was kept is seen, every fourth to one of a few keys that are overwritten again and again, so that an old
//! value is.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::Kill;

/// Keys of a client's ring: so many of its last writes can be told to be there or not.
const RING: u64 = 4096;
/// Keys of a client that are overwritten again and again, by one of so many writes.
const HOT: u64 = 8;
const HOT_ONE_IN: u64 = 4;

/// All keys of a client are numbered below this.
pub const SLOTS: u64 = RING + HOT;

/// Bytes before a value's filler: client, sequence, checksum.
const HEAD_BYTES: usize = 4 + 8 + 8;

/// The number of the key that a write goes to.
pub fn slot(sequence: u64) -> u64 {
    if sequence.is_multiple_of(HOT_ONE_IN) {
        RING + sequence / HOT_ONE_IN % HOT
    } else {
        (sequence - 1 - sequence / HOT_ONE_IN) % RING
    }
}

/// A client's key of that number.
pub fn key(client: u32, slot: u64) -> Vec<u8> {
    format!("kvfair:crash:{client}:{slot}").into_bytes()
}

/// What the write puts there: who and which, a checksum, and filler of some bytes to some pages.
pub fn value(client: u32, sequence: u64, value: &mut Vec<u8>) {
    value.clear();
    value.extend_from_slice(&client.to_be_bytes());
    value.extend_from_slice(&sequence.to_be_bytes());
    value.extend_from_slice(&[0; 8]);
    let drawn = xxh3_64(&value[..12]);
    let longest = if drawn.is_multiple_of(64) {
        20_000
    } else if drawn.is_multiple_of(8) {
        3_000
    } else {
        120
    };
    let length = 20 + (drawn >> 8) % longest;
    (0..length / 8 + 1).for_each(|word| value.extend_from_slice(&(drawn ^ word).to_le_bytes()));
    let sum = checksum(value);
    value[12..HEAD_BYTES].copy_from_slice(&sum.to_be_bytes());
}

/// Of everything but itself.
fn checksum(value: &[u8]) -> u64 {
    let mut rest = value[..12].to_vec();
    rest.extend_from_slice(&value[HEAD_BYTES..]);
    xxh3_64(&rest)
}

/// What was found at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundValue {
    Missing,
    /// The whole value of that write, at a key where it belongs.
    Write(u64),
    Corrupt,
}

/// What a store answered for a client's key of that number.
pub fn found(client: u32, at: u64, answered: Option<&[u8]>) -> FoundValue {
    let Some(value) = answered else { return FoundValue::Missing };
    let part = |from: usize, to: usize| value.get(from..to);
    let (Some(who), Some(which), Some(sum)) = (part(0, 4), part(4, 12), part(12, HEAD_BYTES)) else {
        return FoundValue::Corrupt;
    };
    let sequence = u64::from_be_bytes(which.try_into().expect("eight bytes"));
    let is_whole = sum == checksum(value).to_be_bytes();
    if is_whole && who == client.to_be_bytes() && sequence > 0 && slot(sequence) == at {
        FoundValue::Write(sequence)
    } else {
        FoundValue::Corrupt
    }
}

/// What one client knows of its own writes.
#[derive(Clone, Debug)]
pub struct Ledger {
    client: u32,
    /// The last write that was acknowledged or asked, whatever became of it.
    last: u64,
    /// The first write since the last judgement.
    since: u64,
    /// Writes that were acknowledged since the last judgement.
    acknowledged: u64,
    /// The write that each key must hold; 0 for none.
    holds: Vec<u64>,
}

impl Ledger {
    pub fn new(client: u32) -> Ledger {
        Ledger { client, last: 0, since: 1, acknowledged: 0, holds: vec![0; SLOTS as usize] }
    }

    /// The write that comes next.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Writes are acknowledged in their order.
    pub fn acknowledge(&mut self, sequence: u64) {
        self.last = sequence;
        self.acknowledged += 1;
        self.holds[slot(sequence) as usize] = sequence;
    }

    /// Writes that were acknowledged since the last judgement.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The numbers of the keys that may hold anything, the newest write's first.
    pub fn slots(&self) -> Vec<u64> {
        let newest = slot(self.last.max(1));
        let asked = |at: &u64| self.holds[*at as usize] > 0 || *at == slot(self.next());
        std::iter::once(newest).chain((0..SLOTS).filter(|at| asked(at) && *at != newest)).collect()
    }

    /// Whether that is what must be there, or may be.
    pub fn is_right(&self, at: u64, found: FoundValue) -> bool {
        let expected = self.holds[at as usize];
        match found {
            FoundValue::Missing => expected == 0,
            FoundValue::Write(sequence) => sequence == expected || sequence == self.next(),
            FoundValue::Corrupt => false,
        }
    }

    /// Compares what was found with what was acknowledged, adds what is wrong to `kill`, and goes on from what was
    /// found, so that a loss counts once. The write after the last acknowledged one may have been under way: it may be
    /// there or not.
    pub fn judge(&mut self, found: &[(u64, FoundValue)], kill: &mut Kill) {
        let newest = found
            .iter()
            .filter_map(|(_, found)| if let FoundValue::Write(sequence) = found { Some(*sequence) } else { None });
        let newest = newest.max().unwrap_or(0);
        kill.records += self.holds.iter().filter(|write| **write >= self.since).count() as u64;
        let mut first: Option<(u64, String)> = None;
        for &(at, found) in found {
            let expected = self.holds[at as usize];
            if !self.is_right(at, found) {
                let is_hole = expected < newest;
                let what = self.tell(expected, found, newest);
                // What nobody wrote there is worse than what is gone, and an older value is something gone.
                let older = matches!(found, FoundValue::Write(sequence) if sequence < expected);
                if found == FoundValue::Missing || older {
                    kill.lost += 1;
                    kill.holes += u64::from(is_hole);
                } else {
                    kill.corrupt += 1;
                }
                if first.as_ref().is_none_or(|(before, _)| expected < *before) {
                    first = Some((expected, what));
                }
            }
            self.holds[at as usize] = if let FoundValue::Write(sequence) = found { sequence } else { 0 };
        }
        self.acknowledged = 0;
        kill.wrong = kill.wrong.take().or(first.map(|(_, what)| what));
        // That number is not used again: its value may be there.
        self.last += 1;
        self.since = self.next();
    }

    fn tell(&self, expected: u64, found: FoundValue, newest: u64) -> String {
        let who = format!("client {}", self.client);
        match found {
            FoundValue::Corrupt if expected == 0 => {
                format!("{who}: where nothing was acknowledged is a value that was never written")
            }
            FoundValue::Corrupt => {
                format!("{who}: write {expected} is there with a value that was never written there")
            }
            FoundValue::Write(sequence) if sequence > expected => {
                format!("{who}: write {sequence} is there, which was never asked for")
            }
            FoundValue::Write(sequence) => format!("{who}: write {expected} is gone, {sequence} is back in its place"),
            FoundValue::Missing if expected < newest => {
                format!("{who}: write {expected} is gone, though {newest} is there")
            }
            FoundValue::Missing => format!("{who}: write {expected} is gone, and all after it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A store that keeps all: its keys and values.
    type Kept = BTreeMap<u64, Vec<u8>>;

    fn written(writes: u64) -> (Ledger, Kept) {
        let (mut ledger, mut kept) = (Ledger::new(3), Kept::new());
        for sequence in 1..=writes {
            put(&mut kept, sequence);
            ledger.acknowledge(sequence);
        }
        (ledger, kept)
    }

    fn put(kept: &mut Kept, sequence: u64) {
        let mut bytes = Vec::new();
        value(3, sequence, &mut bytes);
        kept.insert(slot(sequence), bytes);
    }

    fn judged(ledger: &mut Ledger, kept: &Kept) -> Kill {
        let slots = ledger.slots();
        let found: Vec<_> = slots.iter().map(|at| (*at, found(3, *at, kept.get(at).map(Vec::as_slice)))).collect();
        let mut kill = Kill { acknowledged: ledger.acknowledged(), ..Kill::default() };
        ledger.judge(&found, &mut kill);
        kill
    }

    fn counts(kill: &Kill) -> (u64, u64, u64) {
        (kill.lost, kill.holes, kill.corrupt)
    }

    #[test]
    fn the_ring_and_the_hot_keys_are_all_used_and_never_mixed() {
        let mut uses = vec![0; SLOTS as usize];
        let turn = RING / (HOT_ONE_IN - 1) * HOT_ONE_IN + HOT_ONE_IN;
        (1..=turn).for_each(|sequence| uses[slot(sequence) as usize] += 1);
        assert!(uses[..RING as usize].iter().all(|&uses| uses == 1 || uses == 2), "a ring goes round");
        assert!(uses[RING as usize..].iter().all(|&uses| uses > 100), "hot keys are overwritten often");
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        let (mut ledger, mut kept) = written(103);
        kept.remove(&slot(103));
        let kill = judged(&mut ledger, &kept);
        assert_eq!((counts(&kill), kill.acknowledged), ((1, 0, 0), 103));
        assert_eq!(kill.wrong.as_deref(), Some("client 3: write 103 is gone, and all after it"));
        assert_eq!(counts(&judged(&mut ledger, &kept)), (0, 0, 0), "a loss counts once");

        let (mut ledger, mut kept) = written(103);
        kept.remove(&slot(50));
        let kill = judged(&mut ledger, &kept);
        assert_eq!(counts(&kill), (1, 1, 0));
        assert_eq!(kill.wrong.as_deref(), Some("client 3: write 50 is gone, though 103 is there"));

        let (mut ledger, mut kept) = written(103);
        put(&mut kept, 100 - 4 * HOT);
        let kill = judged(&mut ledger, &kept);
        assert_eq!(counts(&kill), (1, 1, 0));
        assert_eq!(kill.wrong.as_deref(), Some("client 3: write 100 is gone, 68 is back in its place"));

        let (mut ledger, mut kept) = written(103);
        let last = kept.get_mut(&slot(102)).expect("it is there");
        last.truncate(last.len() / 2);
        assert_eq!(counts(&judged(&mut ledger, &kept)), (0, 0, 1), "torn");

        let (mut ledger, mut kept) = written(103);
        let other = kept[&slot(101)].clone();
        kept.insert(slot(102), other);
        assert_eq!(counts(&judged(&mut ledger, &kept)), (0, 0, 1), "another record's value");
    }

    #[test]
    fn what_was_under_way_may_be_there_or_not_and_then_stays() {
        for sequence in [104, 105] {
            let (mut ledger, mut kept) = written(sequence - 1);
            assert_eq!(counts(&judged(&mut ledger.clone(), &kept)), (0, 0, 0), "it was not written");
            put(&mut kept, sequence);
            assert_eq!(counts(&judged(&mut ledger, &kept)), (0, 0, 0), "it was written");
            assert_eq!(ledger.next(), sequence + 1, "its number is not used again");
            kept.remove(&slot(sequence));
            assert_eq!(counts(&judged(&mut ledger, &kept)).0, 1, "what was read once is kept");
        }
        let (mut ledger, mut kept) = written(100);
        put(&mut kept, 102);
        // Nobody can know of that key, unless it was used before.
        put(&mut kept, 100 + 4 * HOT);
        let kill = judged(&mut ledger, &kept);
        assert_eq!(
            (counts(&kill), kill.wrong.as_deref()),
            ((0, 0, 1), Some("client 3: write 132 is there, which was never asked for"))
        );
    }

    proptest! {
        // Each case writes some thousand values.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_store_that_keeps_all_is_never_blamed(
            rounds in proptest::collection::vec((0_u64..3000, any::<bool>()), 1..8),
        ) {
            let (mut ledger, mut kept) = written(0);
            for (writes, under_way) in rounds {
                for _ in 0..writes {
                    let sequence = ledger.next();
                    put(&mut kept, sequence);
                    ledger.acknowledge(sequence);
                }
                if under_way {
                    put(&mut kept, ledger.next());
                }
                let kill = judged(&mut ledger, &kept);
                prop_assert_eq!((counts(&kill), kill.acknowledged, kill.wrong), ((0, 0, 0), writes, None));
            }
        }

        #[test]
        fn whatever_one_record_loses_is_seen(
            writes in 1_u64..9000,
            which in 0_usize..5000,
            bit in 0_usize..1_000_000,
            how in 0..3,
        ) {
            let (mut ledger, mut kept) = written(writes);
            let at = *kept.keys().nth(which % kept.len()).expect("at least one");
            let bytes = kept.get_mut(&at).expect("it is there");
            match how {
                0 => drop(kept.remove(&at)),
                1 => {
                    let place = bit % (8 * bytes.len());
                    bytes[place / 8] ^= 1 << (place % 8);
                }
                _ => bytes.truncate(bit % bytes.len()),
            }
            let kill = judged(&mut ledger, &kept);
            prop_assert_eq!(kill.lost + kill.corrupt, 1);
            prop_assert!(kill.wrong.is_some());
        }
    }
}
