//! Where names begin and end in a record, 64 bytes at a time. It must not know what is done at them.

use wide::u8x16;

use super::BLOCK_BYTES;

/// Goes over entries in blocks: gives `take` the quotes that open a name in each, as bits, and where in `entries` the
/// block begins. Says whether all was in order.
pub(super) fn walk<E>(entries: &[u8], take: impl FnMut(u64, usize) -> Result<(), E>) -> Result<bool, E> {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_here() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { avx2::walk(entries, take) };
    }
    walk_with(entries, Classes::of, parity, take)
}

#[inline(always)]
fn walk_with<E>(
    entries: &[u8],
    classes: impl Fn(&[u8; BLOCK_BYTES]) -> Classes,
    parity: impl Fn(u64) -> u64,
    mut take: impl FnMut(u64, usize) -> Result<(), E>,
) -> Result<bool, E> {
    let mut structure = Structure::default();
    let (blocks, rest) = entries.as_chunks::<BLOCK_BYTES>();
    let mut last = [b'0'; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    // One loop, in which `take` is called at one place and so becomes a part of it.
    for (index, block) in blocks.iter().chain([&last]).enumerate() {
        take(structure.openings(classes(block), &parity), index * BLOCK_BYTES)?;
    }
    Ok(entries.is_empty() || structure.is_sound() && entries.last().is_some_and(u8::is_ascii_digit))
}

/// The structure of entries, 64 bytes at a time, each of which is a bit: after Langdale and Lemire, "Parsing Gigabytes
/// of JSON per Second" (2019). Outside of names only bytes may be of which counts, colons and commas are made; that
/// these are in order is left to those who read the record, since to see it here takes as many steps again.
#[derive(Default)]
struct Structure {
    /// All ones if the block before ended within a name.
    within: u64,
    /// 1 if the block before ended with a backslash that escapes.
    escaping: u64,
    /// Bits where anything was wrong, of all blocks.
    wrong: u64,
}

impl Structure {
    /// The quotes that open a name in the next block.
    #[inline(always)]
    fn openings(&mut self, seen: Classes, parity: impl Fn(u64) -> u64) -> u64 {
        let mut quotes = seen.quotes;
        if seen.backslashes | self.escaping != 0 {
            quotes &= !self.escaped(seen.backslashes);
        }
        let within = parity(quotes) ^ self.within;
        self.wrong |= !(within | quotes | seen.counting);
        self.within = 0u64.wrapping_sub(within >> 63);
        quotes & within
    }

    /// The bytes that follow a backslash which is not escaped itself.
    #[cold]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = self.escaping;
        let mut escaping = backslashes & !escaped;
        self.escaping = 0;
        while escaping != 0 {
            let lowest = escaping & escaping.wrapping_neg();
            escaped |= lowest << 1;
            self.escaping = lowest >> 63;
            escaping &= !(lowest | (lowest << 1));
        }
        escaped
    }

    /// Whether all was in order. What is behind the last entry was given as digits: that they belong to a count is the
    /// caller's to check.
    fn is_sound(&self) -> bool {
        self.wrong == 0 && self.within == 0
    }
}

/// For every bit, whether the number of ones up to it is odd: with quotes as ones, what is within a name.
#[inline(always)]
fn parity(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

/// Which bytes of a block are of which class, as bits: byte 0 is the lowest.
struct Classes {
    quotes: u64,
    backslashes: u64,
    /// What counts, colons and commas are made of, and `-`, `.` and `/`, which lie between them.
    counting: u64,
}

impl Classes {
    #[inline(always)]
    fn of(block: &[u8; BLOCK_BYTES]) -> Classes {
        let (quarters, _) = block.as_chunks::<16>();
        let lanes: [u8x16; 4] = std::array::from_fn(|quarter| u8x16::new(quarters[quarter]));
        let is = |byte: u8| bits(lanes.map(|lane| lane.simd_eq(u8x16::splat(byte))));
        let counting = bits(lanes.map(|lane| {
            let value = lane - u8x16::splat(b',');
            value.min(u8x16::splat(b':' - b',')).simd_eq(value)
        }));
        Classes { quotes: is(b'"'), backslashes: is(b'\\'), counting }
    }
}

/// The same on 32 bytes at once, where the processor can: more than half of all merging is this. `wide` chooses when it
/// is compiled, and nobody compiles for their own processor.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
        _mm256_min_epu8, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_sub_epi8,
    };

    use super::{BLOCK_BYTES, Classes, walk_with};

    pub fn is_here() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("pclmulqdq")
    }

    #[target_feature(enable = "avx2,bmi1,lzcnt,pclmulqdq")]
    pub fn walk<E>(entries: &[u8], take: impl FnMut(u64, usize) -> Result<(), E>) -> Result<bool, E> {
        walk_with(entries, |block| classes(block), |bits| parity(bits), take)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn classes(block: &[u8; BLOCK_BYTES]) -> Classes {
        let (first, second) = block.split_at(BLOCK_BYTES / 2);
        let lanes: [__m256i; 2] = [bytemuck::pod_read_unaligned(first), bytemuck::pod_read_unaligned(second)];
        let is = |byte: u8| bits(lanes.map(|lane| _mm256_cmpeq_epi8(lane, _mm256_set1_epi8(byte as i8))));
        let counting = bits(lanes.map(|lane| {
            let value = _mm256_sub_epi8(lane, _mm256_set1_epi8(b',' as i8));
            _mm256_cmpeq_epi8(_mm256_min_epu8(value, _mm256_set1_epi8((b':' - b',') as i8)), value)
        }));
        Classes { quotes: is(b'"'), backslashes: is(b'\\'), counting }
    }

    /// A product without carries by all ones is the sum, modulo 2, of all bits up to each (Langdale and Lemire).
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    pub fn parity(bits: u64) -> u64 {
        let product = _mm_clmulepi64_si128(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1), 0);
        _mm_cvtsi128_si64(product) as u64
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits([first, second]: [__m256i; 2]) -> u64 {
        let half = |lane: __m256i| u64::from(_mm256_movemask_epi8(lane) as u32);
        half(first) | half(second) << 32
    }
}

/// The highest bits of 64 bytes.
#[inline(always)]
fn bits(lanes: [u8x16; 4]) -> u64 {
    let [first, second, third, fourth] = lanes.map(|lane| u64::from(lane.to_bitmask()));
    first | second << 16 | third << 32 | fourth << 48
}

/// The highest bit of the lowest byte of `bytes` that is `byte`, and of no byte below it; what is above it means
/// nothing. After Mycroft's test for a zero byte (1987).
#[inline(always)]
pub(super) fn flags(bytes: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let differences = bytes ^ (ONES * u64::from(byte));
    differences.wrapping_sub(ONES) & !differences & (0x80 * ONES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As this processor sees a block, and as one without its means does.
    fn every_way(block: &[u8; BLOCK_BYTES]) -> Vec<Classes> {
        let plain = Classes::of(block);
        #[cfg(target_arch = "x86_64")]
        if avx2::is_here() {
            // SAFETY: the processor has what the function is compiled for.
            return vec![plain, unsafe { avx2::classes(block) }];
        }
        vec![plain]
    }

    #[test]
    fn classes_are_those_of_the_bytes() {
        for byte in 0..=255u8 {
            let others = [b'!', b'#', b'/', b';', b'+', b'-', 0, 0x7f, 0x80, 0xff];
            let block: [u8; BLOCK_BYTES] =
                std::array::from_fn(|index| if index % 7 == 5 { byte } else { others[index % others.len()] });
            let is = |class: &dyn Fn(u8) -> bool| (0..64).map(|bit| u64::from(class(block[bit])) << bit).sum::<u64>();
            for seen in every_way(&block) {
                assert_eq!(seen.quotes, is(&|byte| byte == b'"'));
                assert_eq!(seen.backslashes, is(&|byte| byte == b'\\'));
                assert_eq!(seen.counting, is(&|byte| (b','..=b':').contains(&byte)));
            }
        }
    }

    #[test]
    fn parities_are_those_of_the_bits() {
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..1_000 {
            bits = bits.wrapping_mul(0xd129_42ee_34c3_7f35).rotate_left(23);
            let counted = (0..64).map(|bit| u64::from((bits << (63 - bit)).count_ones() % 2) << bit).sum::<u64>();
            assert_eq!(parity(bits), counted);
            #[cfg(target_arch = "x86_64")]
            if avx2::is_here() {
                // SAFETY: the processor has what the function is compiled for.
                assert_eq!(unsafe { avx2::parity(bits) }, counted);
            }
        }
    }

    #[test]
    fn flags_find_the_first_byte() {
        for (byte, other) in (0..=255u8).flat_map(|byte| [1, 2, 0x80, 0xff].map(|step| (byte, byte.wrapping_add(step))))
        {
            for place in 0..8 {
                let bytes: [u8; 8] = std::array::from_fn(|index| if index < place { other } else { byte });
                assert_eq!(flags(u64::from_le_bytes(bytes), byte).trailing_zeros() as usize, 8 * place + 7);
            }
            assert_eq!(flags(u64::from_le_bytes([other; 8]), byte), 0);
        }
    }
}
