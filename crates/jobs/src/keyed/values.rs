//! Values that prove themselves: each carries its version and a check sum over key, version and length, and its other
//! bytes follow from the key.

use super::lengths::Lengths;
use kvfair_core::load::COMPRESSIBLE_PERCENT;
use kvfair_draw::{Rng, mix};

/// Bytes of version and check sum in front.
pub const HEAD_BYTES: usize = 16;
/// The random bytes that values take theirs from, each from a place of its own: so many times what one takes, within
/// these bounds, so that what compresses many values at once hardly finds the same bytes twice.
const POOL_TIMES: usize = 1024;
const POOL_BYTES: (usize, usize) = (1 << 18, 1 << 26);
/// What the rest of a value is made of: it compresses to nothing.
const PLAIN: u8 = b'x';
static PLAINS: [u8; 4096] = [PLAIN; 4096];

/// Odd, with bits everywhere (the second constant of splitmix64): carries every bit of a version into the higher half.
const SPREAD: u64 = 0x94d0_49bb_1331_11eb;

/// A value's version: at which point it was set, by which client, and its how-manieth it was. Point 0 is the loading.
#[inline]
pub fn version(point: u32, index: u32, sequence: u64) -> u64 {
    u64::from(point) << 48 | u64::from(index) << 34 | sequence
}

/// The most that one client may ask at one point: what a version has room for.
pub const SEQUENCE_MAX: u64 = 1 << 34;
/// The most clients, for the same reason.
pub const CLIENTS_MAX: u32 = 1 << 14;

/// All values of a job, a stated part of each of which compresses.
pub struct Values {
    lengths: Lengths,
    /// Of 100 bytes of a value, those that do not compress: its head and what is drawn.
    random_percent: usize,
    /// Places to begin at, and beyond them what the last one needs.
    places: u64,
    pool: Vec<u8>,
}

impl Values {
    /// Of one length.
    pub fn new(seed: u64, bytes: u32) -> Values {
        Values::of(seed, Lengths::new(bytes, None), COMPRESSIBLE_PERCENT)
    }

    pub fn of(seed: u64, lengths: Lengths, compressible_percent: u32) -> Values {
        let random_percent = 100 - compressible_percent.min(100) as usize;
        let random = random_of(lengths.most(), random_percent);
        let mut rng = Rng::new(seed);
        let places = (random * POOL_TIMES).clamp(POOL_BYTES.0, POOL_BYTES.1);
        let words = if random == 0 { 0 } else { (places + random).div_ceil(8) };
        let mut pool = Vec::with_capacity(words * 8);
        (0..words).for_each(|_| pool.extend_from_slice(&rng.draw().to_le_bytes()));
        Values { lengths, random_percent, places: places as u64, pool }
    }

    /// Of a key's value.
    #[inline(always)]
    pub fn bytes(&self, record: u64) -> usize {
        self.lengths.of(record)
    }

    /// How long the shortest of them may be, in bytes.
    pub fn shortest(&self) -> usize {
        self.lengths.least()
    }

    /// Room for a value, to be written again and again.
    pub fn blank(&self) -> Vec<u8> {
        vec![PLAIN; self.lengths.most()]
    }

    /// Makes a blank of the room for a value, to be written again and again.
    pub fn blank_out(value: &mut [u8]) {
        value.fill(PLAIN);
    }

    /// Makes `value`, which began as a blank, the one of this version of a key.
    #[inline]
    pub fn write(&self, record: u64, version: u64, value: &mut Vec<u8>) {
        let bytes = self.bytes(record);
        if !self.lengths.are_same() {
            value.clear();
            value.resize(bytes, PLAIN);
        }
        if bytes < HEAD_BYTES {
            return value.copy_from_slice(&self.head(record, version)[..bytes]);
        }
        self.write_alike(record, version, value);
    }

    /// How long all of them are, where they are alike and have room for a head.
    #[inline(always)]
    pub fn alike_bytes(&self) -> Option<usize> {
        let bytes = self.lengths.most();
        (self.lengths.are_same() && bytes >= HEAD_BYTES).then_some(bytes)
    }

    /// Makes `value`, which has the length of all and began as a blank, the one of this version of a key.
    #[inline(always)]
    pub fn write_alike(&self, record: u64, version: u64, value: &mut [u8]) {
        let (head, random) = (self.head(record, version), random_of(value.len(), self.random_percent));
        if let Some((first, rest)) = value.split_first_chunk_mut::<HEAD_BYTES>() {
            // In the halves that it was made of: one wide copy would wait for both to be written.
            first[..8].copy_from_slice(&head[..8]);
            first[8..].copy_from_slice(&head[8..]);
            if random > 0 {
                rest[..random].copy_from_slice(self.own(record, random));
            }
        }
    }

    /// Whether this is a value of this key, whichever version: every byte of it is looked at. Of a value too short for
    /// a head only the length can tell.
    #[inline(always)]
    pub fn belongs(&self, record: u64, value: &[u8]) -> bool {
        match version_in(value) {
            Some(version) => self.is(record, version, value),
            None => value.len() == self.bytes(record),
        }
    }

    /// Whether this is that version of a key's value.
    #[inline(always)]
    pub fn is(&self, record: u64, version: u64, value: &[u8]) -> bool {
        let head = self.head(record, version);
        let bytes = self.bytes(record);
        if value.len() != bytes {
            return false;
        }
        let random = random_of(bytes, self.random_percent);
        match value.split_first_chunk::<HEAD_BYTES>() {
            Some((first, rest)) => {
                let (own, plain) = rest.split_at(random);
                *first == head && (own.is_empty() || own == self.own(record, random)) && is_plain(plain)
            }
            None => *value == head[..value.len()],
        }
    }

    /// The check sum first: a value cut short of its head still has the most telling of it.
    #[inline]
    pub fn head(&self, record: u64, version: u64) -> [u8; HEAD_BYTES] {
        let sum = mix(version.wrapping_mul(SPREAD).wrapping_add(record.rotate_left(32)) ^ self.bytes(record) as u64);
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&sum.to_le_bytes());
        head[8..].copy_from_slice(&version.to_le_bytes());
        head
    }

    #[inline]
    fn own(&self, record: u64, random: usize) -> &[u8] {
        let start = ((u128::from(mix(record)) * u128::from(self.places)) >> 64) as usize;
        &self.pool[start..start + random]
    }
}

/// Whether nothing else is in it. A value of 32 bytes, the default, has 16 of these: to compare them takes no call. Of
/// long ones no more is read beside them than what stays in the cache.
#[inline(always)]
fn is_plain(bytes: &[u8]) -> bool {
    match <&[u8; 16]>::try_from(bytes) {
        Ok(short) => *short == [PLAIN; 16],
        Err(_) => bytes.chunks(PLAINS.len()).all(|part| *part == PLAINS[..part.len()]),
    }
}

/// Bytes of a value of that length that are neither head nor plain.
#[inline(always)]
fn random_of(bytes: usize, percent: usize) -> usize {
    (bytes * percent / 100).saturating_sub(HEAD_BYTES)
}

/// The version that a value says it has.
#[inline]
pub fn version_in(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.get(8..HEAD_BYTES)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_proves_key_version_and_every_byte() {
        for bytes in [1, 7, 8, 15, 16, 17, 32, 33, 100, 1_000, 100_000] {
            let values = Values::new(7, bytes as u32);
            let mut value = values.blank();
            values.write(41, version(3, 2, 9), &mut value);
            assert!(values.is(41, version(3, 2, 9), &value), "{bytes}");
            assert!(values.belongs(41, &value));
            assert!(!values.is(42, version(3, 2, 9), &value) && !values.is(41, version(3, 2, 10), &value), "{bytes}");
            for place in (0..bytes.min(200)).chain((200..bytes).step_by(997)).chain([bytes - 1]) {
                let mut changed = value.clone();
                changed[place] ^= 1;
                assert!(!values.is(41, version(3, 2, 9), &changed), "byte {place} of {bytes}");
                assert!(bytes < HEAD_BYTES || !values.belongs(41, &changed), "byte {place} of {bytes}");
            }
            value.push(PLAIN);
            assert!(!values.belongs(41, &value));
        }
    }

    #[test]
    fn values_of_many_lengths_prove_themselves_too() {
        let spread = Some(kvfair_core::load::Spread::Range { low: 1, high: 300 });
        let values = Values::of(7, Lengths::new(0, spread), COMPRESSIBLE_PERCENT);
        let mut value = values.blank();
        for record in 0..500 {
            values.write(record, version(1, 2, record), &mut value);
            assert_eq!(value.len(), values.bytes(record));
            assert!(values.is(record, version(1, 2, record), &value) && values.belongs(record, &value), "{record}");
            let mut longer = value.clone();
            longer.push(PLAIN);
            assert!(!values.belongs(record, &longer));
        }
    }

    #[test]
    fn the_stated_part_of_a_value_compresses() {
        for (percent, share) in [(0, 0.98..1.02), (50, 0.48..0.56), (90, 0.09..0.16), (100, 0.0..0.02)] {
            let values = Values::of(7, Lengths::new(10_000, None), percent);
            let mut all = Vec::new();
            for record in 0..5 {
                let mut value = values.blank();
                values.write(record, version(1, 0, record), &mut value);
                assert!(values.is(record, version(1, 0, record), &value), "{percent} %");
                all.extend_from_slice(&value);
            }
            let packed = zstd::bulk::compress(&all, 1).unwrap().len() as f64 / all.len() as f64;
            assert!(share.contains(&packed), "{percent} %: {packed}");
        }
    }

    #[test]
    fn versions_differ() {
        assert!(version(CLIENTS_MAX - 1, CLIENTS_MAX - 2, SEQUENCE_MAX - 1) < u64::MAX);
        assert_ne!(version(1, 0, 0), version(0, 1, 0));
        assert_ne!(version(2, 1, 0), version(2, 0, SEQUENCE_MAX - 1));
    }
}
