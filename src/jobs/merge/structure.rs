//! Where names begin and end in a record, 64 bytes at a time. It must not know what is done at them.

use wide::u8x16;

use super::BLOCK_BYTES;

/// The structure of entries, 64 bytes at a time, each of which is a bit: after Langdale and Lemire, "Parsing Gigabytes
/// of JSON per Second" (2019). Outside of names there may be digits, one other byte after a name and one before the
/// next name. That these two are a colon and a comma would take 29 % more instructions to see, and is left to those
/// who read the record.
#[derive(Default)]
pub(super) struct Structure {
    /// All ones if the block before ended within a name.
    within: u64,
    /// 1 if the block before ended with a backslash that escapes.
    escaping: u64,
    /// 1 if the block before ended with a name's closing quote, with a colon, with a comma.
    closing: u64,
    colon: u64,
    comma: u64,
    /// Bits where anything was wrong, of all blocks.
    wrong: u64,
}

impl Structure {
    /// What is before the first entry serves as the comma before its name.
    pub(super) fn new() -> Structure {
        Structure { comma: 1, ..Structure::default() }
    }

    /// The quotes that open a name in the next block.
    #[inline(always)]
    pub(super) fn openings(&mut self, block: &[u8; BLOCK_BYTES]) -> u64 {
        let seen = Classes::of(block);
        let mut quotes = seen.quotes;
        if seen.backslashes | self.escaping != 0 {
            quotes &= !self.escaped(seen.backslashes);
        }
        let within = parity(quotes) ^ self.within;
        let (openings, closings) = (quotes & within, quotes & !within);
        let others = !(within | quotes | seen.digits);
        let colons = (closings << 1) | self.closing;
        let commas = others & !colons;
        self.wrong |= colons & !others;
        self.wrong |= ((colons << 1) | self.colon) & !seen.digits;
        self.wrong |= ((commas << 1) | self.comma) ^ openings;
        self.within = 0u64.wrapping_sub(within >> 63);
        self.closing = closings >> 63;
        self.colon = colons >> 63;
        self.comma = commas >> 63;
        openings
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
    pub(super) fn is_sound(&self) -> bool {
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
    digits: u64,
}

impl Classes {
    #[inline(always)]
    fn of(block: &[u8; BLOCK_BYTES]) -> Classes {
        let (quarters, _) = block.as_chunks::<16>();
        let lanes: [u8x16; 4] = std::array::from_fn(|quarter| u8x16::new(quarters[quarter]));
        let is = |byte: u8| bits(lanes.map(|lane| lane.simd_eq(u8x16::splat(byte))));
        let digits = bits(lanes.map(|lane| {
            let value = lane - u8x16::splat(b'0');
            value.min(u8x16::splat(9)).simd_eq(value)
        }));
        Classes { quotes: is(b'"'), backslashes: is(b'\\'), digits }
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

    #[test]
    fn classes_are_those_of_the_bytes() {
        for byte in 0..=255u8 {
            let others = [b'!', b'#', b'/', b';', b'+', b'-', 0, 0x7f, 0x80, 0xff];
            let block: [u8; BLOCK_BYTES] =
                std::array::from_fn(|index| if index % 7 == 5 { byte } else { others[index % others.len()] });
            let seen = Classes::of(&block);
            let is = |class: &dyn Fn(u8) -> bool| (0..64).map(|bit| u64::from(class(block[bit])) << bit).sum::<u64>();
            assert_eq!(seen.quotes, is(&|byte| byte == b'"'));
            assert_eq!(seen.backslashes, is(&|byte| byte == b'\\'));
            assert_eq!(seen.digits, is(&|byte| byte.is_ascii_digit()));
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
