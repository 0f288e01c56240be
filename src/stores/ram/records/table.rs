//! The table of `ram`: which key has which record, at the price of one look at distant memory. It must not know what is
//! done with a record, and holds only numbers and slots; what is larger lies in slabs.
//!
//! Most of the time of an increment goes for memory: for a line that is in no cache, and for pages that the system
//! clears first. So a record is half a cache line, a short key in it. Records lie one after another and are tried in
//! that order (linear probing: Knuth, The Art of Computer Programming, volume 3, 6.4). A large table asks for huge
//! pages, without which the processor looks for the address of a line in memory as well. The hash of a short key is
//! not kept: it is computed again when the table grows. Tags beside the lines, as in `hashbrown`, were no faster: a
//! million messages have too many for the second cache.

use bytemuck::{Pod, Zeroable};
use memmap2::{MmapMut, MmapOptions};

use super::slab::Slab;

/// Buckets of a new table: as many as fill the smallest page that there is.
const BUCKETS_MIN: usize = 4096 / size_of::<Bucket>();
/// A table is doubled when more than 3 of 4 buckets are full: a key that is not there then takes 8.5 looks at most, on
/// average (Knuth, 6.4, formula 21), at lines that follow one another.
const FULL: (usize, usize) = (3, 4);
/// The size of a huge page on x86-64, and mostly elsewhere. A smaller table has no use for one.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// So many times its size a table has addresses for, which cost nothing until they are written to: it grows where it
/// is, since a page from the system, which clears it first, is a fifth of the time of a counting that moves on each
/// doubling. A power of two.
const ROOM: usize = 64;

/// Keys and their records. A record is at its home, which its hash says, or at the first place behind it that was free.
pub struct Table {
    /// The buckets in use and zeros behind them, to grow into. A map is aligned to a page.
    memory: MmapMut,
    /// Buckets in use: a power of two.
    buckets: usize,
    len: usize,
    long_keys: LongKeys,
    hash: Hash,
}

/// The hash of a key, by which it was put in.
type Hash = fn(&[u8]) -> u64;
type LongKeys = Slab<Box<[u8]>>;

/// The record of a key, or the place where it may be put.
pub enum Entry<'t> {
    Found(&'t mut Bucket),
    Free(BucketPlace),
}

/// An empty bucket, until the next change of the table.
#[derive(Clone, Copy)]
pub struct BucketPlace(usize);

/// A record. All zeros are an empty bucket.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(32))]
pub struct Bucket {
    /// A counter, or a slot.
    number: i64,
    /// 48 bits: at ten million changes a second they come again after 325 days.
    version_low: u32,
    version_high: u16,
    kind: u8,
    /// Of a key in `key`; or `LONG`.
    key_len: u8,
    key: KeyWords,
}

/// A short key from its first byte on, zeros behind it; of a long one its hash, and its slot in `long_keys`.
type KeyWords = [u64; 2];

const SHORT_MAX: usize = size_of::<KeyWords>();
const LONG: u8 = u8::MAX;

const EMPTY: u8 = 0;
const NUMBER: u8 = 1;
const BYTES: u8 = 2;
const COUNTS: u8 = 3;

/// What a record holds: a counter, or the slot of something larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    Number(i64),
    Bytes(usize),
    Counts(usize),
}

impl Bucket {
    #[inline]
    pub fn held(&self) -> Held {
        match self.kind {
            NUMBER => Held::Number(self.number),
            BYTES => Held::Bytes(self.number as usize),
            _ => Held::Counts(self.number as usize),
        }
    }

    #[inline]
    pub fn hold(&mut self, held: Held) {
        (self.kind, self.number) = match held {
            Held::Number(number) => (NUMBER, number),
            Held::Bytes(slot) => (BYTES, slot as i64),
            Held::Counts(slot) => (COUNTS, slot as i64),
        };
    }

    #[inline]
    pub fn version(&self) -> u64 {
        u64::from(self.version_high) << 32 | u64::from(self.version_low)
    }

    #[inline]
    pub fn set_version(&mut self, version: u64) {
        (self.version_low, self.version_high) = (version as u32, (version >> 32) as u16);
    }

    /// What a long key has instead of its bytes: its hash and its slot.
    fn slot_of_key(&self) -> usize {
        self.key[1] as usize
    }

    fn hash(&self, hash: Hash) -> u64 {
        if self.key_len == LONG {
            self.key[0]
        } else {
            hash(&bytemuck::bytes_of(&self.key)[..usize::from(self.key_len)])
        }
    }
}

/// A key that is looked for, as a bucket has it.
struct Wanted<'k> {
    key: &'k [u8],
    len: u8,
    words: KeyWords,
}

impl<'k> Wanted<'k> {
    #[inline(always)]
    fn of(hash: u64, key: &'k [u8]) -> Wanted<'k> {
        match short(key) {
            Some(words) => Wanted { key, len: key.len() as u8, words },
            None => Wanted { key, len: LONG, words: [hash, 0] },
        }
    }

    #[inline(always)]
    fn is_of(&self, bucket: &Bucket, long_keys: &LongKeys) -> bool {
        bucket.key_len == self.len
            && bucket.key[0] == self.words[0]
            && match self.len {
                LONG => long_keys.get(bucket.slot_of_key()).as_ref() == self.key,
                _ => bucket.key[1] == self.words[1],
            }
    }
}

/// The bytes of a key that fits, zeros behind them.
#[inline(always)]
fn short(key: &[u8]) -> Option<KeyWords> {
    let mut bytes = [0; SHORT_MAX];
    bytes.get_mut(..key.len())?.copy_from_slice(key);
    Some(bytemuck::cast(bytes))
}

impl Table {
    pub fn new(hash: Hash) -> Table {
        Table { memory: zeros(BUCKETS_MIN), buckets: BUCKETS_MIN, len: 0, long_keys: Slab::default(), hash }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Bucket> {
        let buckets = self.buckets();
        let at = place(buckets, &self.long_keys, hash, key);
        buckets.get(at).filter(|bucket| bucket.kind != EMPTY)
    }

    #[inline(always)]
    pub fn entry(&mut self, hash: u64, key: &[u8]) -> Entry<'_> {
        let buckets = &mut bytemuck::cast_slice_mut::<u8, Bucket>(&mut self.memory)[..self.buckets];
        let at = place(buckets, &self.long_keys, hash, key);
        match &mut buckets[at] {
            bucket if bucket.kind == EMPTY => Entry::Free(BucketPlace(at)),
            bucket => Entry::Found(bucket),
        }
    }

    /// Has the processor fetch the line at which a key of this hash has its home.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) {
        let buckets = self.buckets();
        prefetch(&buckets[hash as usize & (buckets.len() - 1)..]);
    }

    /// Puts a record where `entry` found none with this key.
    #[inline]
    pub fn put(&mut self, place: BucketPlace, hash: u64, key: &[u8], held: Held, version: u64) {
        let (key_len, key) = match short(key) {
            Some(words) => (key.len() as u8, words),
            None => (LONG, [hash, self.long_keys.put(key.into()) as u64]),
        };
        let bucket = &mut self.buckets_mut()[place.0];
        *bucket = Bucket { key_len, key, ..Bucket::zeroed() };
        bucket.set_version(version);
        bucket.hold(held);
        self.len += 1;
        if self.len * FULL.1 > self.buckets().len() * FULL.0 {
            self.grow();
        }
    }

    /// Takes a record out, and moves those behind it forward that would no longer be found: no mark is left that later
    /// searches would have to pass (Knuth, 6.4, algorithm R).
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Held> {
        let of_key = self.hash;
        let buckets = &mut bytemuck::cast_slice_mut::<u8, Bucket>(&mut self.memory)[..self.buckets];
        let mut hole = place(buckets, &self.long_keys, hash, key);
        let bucket = buckets[hole];
        if bucket.kind == EMPTY {
            return None;
        }
        if bucket.key_len == LONG {
            self.long_keys.take(bucket.slot_of_key());
        }
        let mask = buckets.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = buckets[at];
            if next.kind == EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(next.hash(of_key) as usize) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                buckets[hole] = next;
                hole = at;
            }
        }
        buckets[hole] = Bucket::zeroed();
        self.len -= 1;
        Some(bucket.held())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (before, hash) = (self.buckets, self.hash);
        self.buckets = 2 * before;
        if self.buckets * size_of::<Bucket>() > self.memory.len() {
            let old = std::mem::replace(&mut self.memory, zeros(self.buckets));
            let new = self.buckets_mut();
            let old = &bytemuck::cast_slice::<u8, Bucket>(&old)[..before];
            old.iter().filter(|bucket| bucket.kind != EMPTY).for_each(|bucket| put_back(new, *bucket, hash));
        } else {
            ask_for_huge_pages(&self.memory, self.buckets);
            spread(self.buckets_mut(), hash);
        }
    }

    #[inline]
    fn buckets(&self) -> &[Bucket] {
        &bytemuck::cast_slice(&self.memory)[..self.buckets]
    }

    #[inline]
    fn buckets_mut(&mut self) -> &mut [Bucket] {
        &mut bytemuck::cast_slice_mut(&mut self.memory)[..self.buckets]
    }
}

/// Gives the records of the lower half their places in the whole: each one stays or goes into the upper half.
///
/// Records are taken in the order of their places, and a record goes to the first empty bucket from its home on. What
/// was put there before it was taken from before it, so that it never goes past the place where it was, and all that
/// lies between its home and its place stays there. The records before the first empty bucket are taken out beforehand:
/// those that have their home at the table's end would else be in the way of, or behind, what comes over the new end.
fn spread(buckets: &mut [Bucket], hash: Hash) {
    let half = buckets.len() / 2;
    let first_empty = buckets[..half].iter().position(|bucket| bucket.kind == EMPTY).unwrap_or(half);
    let first = buckets[..first_empty].to_vec();
    buckets[..first_empty].fill(Bucket::zeroed());
    for at in first_empty..half {
        if buckets[at].kind != EMPTY {
            let bucket = std::mem::replace(&mut buckets[at], Bucket::zeroed());
            put_back(buckets, bucket, hash);
        }
    }
    first.into_iter().for_each(|bucket| put_back(buckets, bucket, hash));
}

/// Puts a record into the first empty bucket from its home on.
#[inline]
fn put_back(buckets: &mut [Bucket], bucket: Bucket, hash: Hash) {
    let mask = buckets.len() - 1;
    let mut at = bucket.hash(hash) as usize & mask;
    while buckets[at].kind != EMPTY {
        at = (at + 1) & mask;
    }
    buckets[at] = bucket;
}

/// Has the line fetched in which the first of these things begins.
#[inline(always)]
pub fn prefetch<T>(things: &[T]) {
    #[cfg(target_arch = "x86_64")]
    things.first().into_iter().for_each(safe_arch::prefetch_t0);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = things;
}

/// The bucket of the key, or the first empty one on the way that its search goes.
#[inline(always)]
fn place(buckets: &[Bucket], long_keys: &LongKeys, hash: u64, key: &[u8]) -> usize {
    let mask = buckets.len() - 1;
    let mut at = hash as usize & mask;
    let wanted = Wanted::of(hash, key);
    while !wanted.is_of(&buckets[at], long_keys) && buckets[at].kind != EMPTY {
        at = (at + 1) & mask;
    }
    at
}

/// Zeroed memory for so many buckets, and to grow into where the system gives addresses without memory. Like every
/// other container it ends the process when there is no more.
fn zeros(buckets: usize) -> MmapMut {
    let bytes = buckets * size_of::<Bucket>();
    let roomy = MmapOptions::new().len(bytes * ROOM).no_reserve_swap().map_anon();
    let memory = roomy.or_else(|_| MmapMut::map_anon(bytes)).expect("memory for the table of ram");
    ask_for_huge_pages(&memory, buckets);
    memory
}

/// Asks for huge pages for a table that fills one. A kernel that has none says so, and the table is as right without.
fn ask_for_huge_pages(memory: &MmapMut, buckets: usize) {
    #[cfg(target_os = "linux")]
    if buckets * size_of::<Bucket>() >= HUGE_PAGE_BYTES {
        let _ = memory.advise_range(memmap2::Advice::HugePage, 0, buckets * size_of::<Bucket>());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (memory, buckets);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_records_are_a_cache_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (32, 32));
    }

    /// Keys around the length that fits a record, of few hashes, most of which share a home, the last one too.
    fn key(number: u16) -> (u64, Vec<u8>) {
        let len = [2, 8, 15, 16, 17, 255, 300][usize::from(number) % 7];
        let mut key = vec![b'k'; len];
        key[..2].copy_from_slice(&number.to_le_bytes());
        (home(&key), key)
    }

    fn home(key: &[u8]) -> u64 {
        let number = u16::from_le_bytes([key[0], key[1]]);
        [0, 1, 5, u64::MAX, u64::MAX - 1, u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)]
            [usize::from(number) % 6]
    }

    #[derive(Clone, Debug)]
    enum Change {
        Put(u16, i64),
        Remove(u16),
    }

    fn change() -> impl Strategy<Value = Change> {
        // More keys than the first table holds, so that it grows, and few enough that removals find theirs.
        let number = 0..200u16;
        prop_oneof![
            3 => (number.clone(), any::<i64>()).prop_map(|(number, held)| Change::Put(number, held)),
            2 => number.prop_map(Change::Remove),
        ]
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(changes in vec(change(), 1..800)) {
            let mut table = Table::new(home);
            let mut model: HashMap<Vec<u8>, (i64, u64)> = HashMap::new();
            for (version, change) in changes.into_iter().enumerate() {
                let version = version as u64;
                match change {
                    Change::Put(number, held) => {
                        let (hash, key) = key(number);
                        match table.entry(hash, &key) {
                            Entry::Found(bucket) => {
                                bucket.hold(Held::Number(held));
                                bucket.set_version(version);
                            }
                            Entry::Free(place) => table.put(place, hash, &key, Held::Number(held), version),
                        }
                        model.insert(key, (held, version));
                    }
                    Change::Remove(number) => {
                        let (hash, key) = key(number);
                        let expected = model.remove(&key).map(|(held, _)| Held::Number(held));
                        prop_assert_eq!(table.remove(hash, &key), expected);
                    }
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for number in 0..200 {
                let (hash, key) = key(number);
                let found = table.find(hash, &key).map(|bucket| (bucket.held(), bucket.version()));
                prop_assert_eq!(found, model.get(&key).map(|(held, version)| (Held::Number(*held), *version)));
            }
            let full = table.buckets().iter().filter(|bucket| bucket.kind != EMPTY).count();
            prop_assert_eq!(full, model.len());
            let long = model.keys().filter(|key| key.len() > SHORT_MAX).count();
            prop_assert_eq!(table.long_keys.count(), long);
        }
    }

    /// Large enough for huge pages; and never so full that a search would not end.
    #[test]
    fn a_table_grows_with_all_that_it_holds() {
        const KEYS: u64 = 100_000;
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        let mut table = Table::new(|key| {
            let number = u64::from_le_bytes(*key.first_chunk().expect("eight bytes"));
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
        });
        for number in 0..KEYS {
            let Entry::Free(place) = table.entry(hash(number), &number.to_le_bytes()) else { panic!("it is there") };
            table.put(place, hash(number), &number.to_le_bytes(), Held::Bytes(number as usize), number);
            assert!(table.len() * FULL.1 <= table.buckets().len() * FULL.0);
        }
        assert!(table.buckets * size_of::<Bucket>() >= 2 << 20);
        for number in 0..KEYS {
            let bucket = table.find(hash(number), &number.to_le_bytes()).expect("it was put in");
            assert_eq!((bucket.held(), bucket.version()), (Held::Bytes(number as usize), number));
        }
        assert!((0..KEYS).all(|number| table.remove(hash(number), &number.to_le_bytes()).is_some()));
        assert!(table.buckets().iter().all(|bucket| bucket.kind == EMPTY));
    }

    /// Zeros behind a key are not of the key, and no key at all is one too.
    #[test]
    fn keys_that_differ_in_zeros_at_their_ends_are_others() {
        let keys: Vec<Vec<u8>> = (0..=SHORT_MAX + 1).map(|zeros| vec![0; zeros]).collect();
        let mut table = Table::new(|_| 7);
        for (number, key) in keys.iter().enumerate() {
            let Entry::Free(place) = table.entry(7, key) else { panic!("{number} zeros are there already") };
            table.put(place, 7, key, Held::Number(number as i64), number as u64);
        }
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(table.find(7, key).map(Bucket::held), Some(Held::Number(number as i64)));
        }
    }

    #[test]
    fn a_version_has_48_bits() {
        let mut bucket = Bucket::zeroed();
        for version in [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 48) - 1] {
            bucket.set_version(version);
            assert_eq!(bucket.version(), version);
        }
    }
}
