//! Values of any length that prove themselves: each carries a check sum over key, version and length, and its version,
//! as far as it has room for them; its other bytes follow from the key.

use crate::keyed::values::HEAD_BYTES;
use kvfair_draw::{Rng, mix};

/// The random bytes that values take theirs from, each from a place of its own, round and round where one is longer.
const POOL_BYTES: usize = 1 << 22;
const POOL_SEED: u64 = 1;
/// What the other half of a value is made of, which compresses to nothing: as much as is written or compared at once.
static PLAIN: [u8; 1 << 12] = [b'x'; 1 << 12];

/// Odd, with bits everywhere (the second constant of splitmix64): carries every bit of a version into the higher half.
const SPREAD: u64 = 0x94d0_49bb_1331_11eb;

/// What all values are made of.
pub struct TraceValues {
    pool: Vec<u8>,
}

impl Default for TraceValues {
    fn default() -> TraceValues {
        let mut random = Rng::new(POOL_SEED);
        TraceValues { pool: (0..POOL_BYTES / 8).flat_map(|_| random.draw().to_le_bytes()).collect() }
    }
}

impl TraceValues {
    /// Puts the value of this version of a key, named by its hash, in place of what `value` held.
    pub fn write(&self, key: u64, version: u64, bytes: usize, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(Head::of(key, version, bytes).bytes());
        self.own(key, bytes).for_each(|piece| value.extend_from_slice(piece));
        while value.len() < bytes {
            value.extend_from_slice(&PLAIN[..(bytes - value.len()).min(PLAIN.len())]);
        }
    }

    /// Whether this is a value of this key, whichever version and length: every byte of it is looked at.
    pub fn belongs(&self, key: u64, value: &[u8]) -> bool {
        let version = Head::version_in(value);
        self.is(key, version, value.len(), value)
    }

    /// Whether this is that version of a key's value. Of a version, a value of less than 16 bytes has the lower bytes
    /// only: half as many as it has itself.
    pub fn is(&self, key: u64, version: u64, bytes: usize, value: &[u8]) -> bool {
        let head = Head::of(key, version, bytes);
        if value.len() != bytes || !value.starts_with(head.bytes()) {
            return false;
        }
        let mut rest = &value[head.bytes().len()..];
        for piece in self.own(key, bytes) {
            let Some(after) = rest.strip_prefix(piece) else { return false };
            rest = after;
        }
        rest.chunks(PLAIN.len()).all(|chunk| *chunk == PLAIN[..chunk.len()])
    }

    /// The random bytes of a key's value of that length, in pieces: half of it but for the head.
    fn own(&self, key: u64, bytes: usize) -> impl Iterator<Item = &[u8]> {
        let mut at = ((u128::from(mix(key)) * POOL_BYTES as u128) >> 64) as usize;
        let mut left = (bytes / 2).saturating_sub(HEAD_BYTES);
        std::iter::from_fn(move || {
            let end = (at + left).min(POOL_BYTES);
            let piece = &self.pool[at..end];
            left -= piece.len();
            at = 0;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

/// The version that a value says it has; nothing where it is too short for all of it.
pub fn version_in(value: &[u8]) -> Option<u64> {
    (value.len() >= HEAD_BYTES).then(|| Head::version_in(value))
}

/// What a value begins with: the check sum, then the version, each as far as there is room.
struct Head {
    bytes: [u8; HEAD_BYTES],
    length: usize,
}

impl Head {
    #[inline]
    fn of(key: u64, version: u64, bytes: usize) -> Head {
        let (sums, versions) = Head::parts(bytes);
        let kept = if versions == 8 { version } else { version & ((1 << (8 * versions)) - 1) };
        let sum = mix(kept.wrapping_mul(SPREAD).wrapping_add(key.rotate_left(32)) ^ bytes as u64);
        let mut head = Head { bytes: [0; HEAD_BYTES], length: sums + versions };
        head.bytes[..sums].copy_from_slice(&sum.to_le_bytes()[..sums]);
        head.bytes[sums..sums + versions].copy_from_slice(&kept.to_le_bytes()[..versions]);
        head
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Bytes of the check sum and of the version in a value of that length.
    fn parts(bytes: usize) -> (usize, usize) {
        let versions = (bytes / 2).min(8);
        ((bytes - versions).min(8), versions)
    }

    fn version_in(value: &[u8]) -> u64 {
        let (sums, versions) = Head::parts(value.len());
        let mut version = [0; 8];
        version[..versions].copy_from_slice(&value[sums..sums + versions]);
        u64::from_le_bytes(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_proves_key_version_length_and_every_byte() {
        let values = TraceValues::default();
        let mut value = Vec::new();
        for bytes in [0, 1, 2, 7, 8, 15, 16, 17, 32, 33, 100, 1_000, 20_000] {
            values.write(41, 9, bytes, &mut value);
            assert_eq!(value.len(), bytes);
            assert!(values.is(41, 9, bytes, &value) && values.belongs(41, &value), "{bytes}");
            assert!(bytes == 0 || !values.belongs(42, &value), "{bytes}");
            assert!(bytes < 2 || !values.is(41, 10, bytes, &value), "{bytes}");
            assert_eq!(version_in(&value), (bytes >= 16).then_some(9));
            for place in (0..bytes).step_by(1 + bytes / 300) {
                let mut changed = value.clone();
                changed[place] ^= 1;
                assert!(!values.belongs(41, &changed), "byte {place} of {bytes}");
            }
            value.push(b'x');
            assert!(!values.belongs(41, &value), "{bytes} and one more");
        }
    }

    #[test]
    fn half_of_a_value_compresses_and_a_long_one_goes_round_the_pool() {
        let values = TraceValues::default();
        let (mut value, mut all) = (Vec::new(), Vec::new());
        for key in 0..5 {
            values.write(mix(key), 0, 10_000, &mut value);
            all.extend_from_slice(&value);
        }
        let packed = zstd::bulk::compress(&all, 1).unwrap().len() as f64 / all.len() as f64;
        assert!((0.48..0.56).contains(&packed), "{packed}");
        values.write(u64::MAX, 3, 3 * POOL_BYTES, &mut value);
        assert!(value.len() == 3 * POOL_BYTES && values.belongs(u64::MAX, &value));
    }
}
