//! Lines of fields, taken apart 64 bytes at a time, and their numbers, eight digits at a time: how long a field is
//! changes from row to row, and a loop over its bytes would be foretold wrongly at its end each time. It must not know
//! what the fields are.

use wide::u8x16;

/// Bytes that are looked at together, a bit each.
const BLOCK_BYTES: usize = 64;

/// The fields of one line.
pub struct Fields<'a, const N: usize> {
    bytes: &'a [u8],
    /// Where each of them ends, the last one at the LF.
    ends: [usize; N],
}

impl<'a, const N: usize> Fields<'a, N> {
    /// Those of the first line of these bytes; nothing where it is not whole or has fewer or more than `N`.
    #[inline(always)]
    pub fn of_first(bytes: &'a [u8], separator: u8) -> Option<Fields<'a, N>> {
        let Some((mut separators, line_ends)) = bytes.first_chunk().map(|block| bits(block, separator)) else {
            return Fields::of_any(bytes, separator);
        };
        if line_ends == 0 {
            return Fields::of_any(bytes, separator);
        }
        // Nearly every line is within a block: as many steps as there are fields, whatever their lengths.
        let mut ends = [0; N];
        separators |= line_ends;
        for end in &mut ends {
            *end = separators.trailing_zeros() as usize;
            separators &= separators.wrapping_sub(1);
        }
        (ends[N - 1] == line_ends.trailing_zeros() as usize).then_some(Fields { bytes, ends })
    }

    /// The same for a line of any length.
    #[inline(never)]
    fn of_any(bytes: &'a [u8], separator: u8) -> Option<Fields<'a, N>> {
        let (mut ends, mut found) = ([0; N], 0);
        for end in memchr::memchr2_iter(separator, b'\n', bytes) {
            *ends.get_mut(found)? = end;
            found += 1;
            if bytes[end] == b'\n' {
                return (found == N).then_some(Fields { bytes, ends });
            }
        }
        None
    }

    /// The line's length, its LF included.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.ends[N - 1] + 1
    }

    #[inline(always)]
    pub fn text(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.start(index)..self.end(index)]
    }

    /// A whole number of 64 bits.
    #[inline(always)]
    pub fn number(&self, index: usize) -> Option<u64> {
        self.number_from(self.start(index), index)
    }

    /// The same with such a byte before it, or without.
    #[inline(always)]
    pub fn number_behind(&self, before: u8, index: usize) -> Option<u64> {
        let start = self.start(index);
        self.number_from(start + usize::from(self.bytes[start] == before), index)
    }

    #[inline(always)]
    fn number_from(&self, start: usize, index: usize) -> Option<u64> {
        let end = self.end(index);
        match end.checked_sub(start)? {
            1..=8 => short(self.bytes, start, end),
            9..=16 => {
                let (high, low) = (short(self.bytes, start, end - 8)?, short(self.bytes, end - 8, end)?);
                Some(high * 100_000_000 + low)
            }
            _ => long(&self.bytes[start..end]),
        }
    }

    #[inline(always)]
    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] + 1 }
    }

    /// The last field's may have a CR before the LF.
    #[inline(always)]
    fn end(&self, index: usize) -> usize {
        let end = self.ends[index];
        let has_cr = index == N - 1 && end > self.start(index) && self.bytes[end - 1] == b'\r';
        end - usize::from(has_cr)
    }
}

/// Where the separators and the line ends are: byte 0 is the lowest bit.
#[inline(always)]
fn bits(block: &[u8; BLOCK_BYTES], separator: u8) -> (u64, u64) {
    let (quarters, _) = block.as_chunks::<16>();
    let is = |byte: u8| {
        let byte = u8x16::splat(byte);
        (0..4).fold(0, |bits, quarter| {
            let equal = u8x16::new(quarters[quarter]).simd_eq(byte);
            bits | u64::from(equal.to_bitmask()) << (16 * quarter)
        })
    };
    (is(separator), is(b'\n'))
}

/// Eight ASCII zeros; what of eight bytes is no digit shows in the highest bit of each.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const OVER_NINE: u64 = 0x7676_7676_7676_7676;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The number of one to eight digits. Those that are not there become zeros in front; neighbours are added up in pairs,
/// then pairs of pairs (Johnny Lee's method, as in
/// <https://kholdstare.github.io/technical/2020/05/26/faster-integer-parsing.html>).
#[inline(always)]
fn short(bytes: &[u8], start: usize, end: usize) -> Option<u64> {
    let Some(eight) = bytes[start..].first_chunk() else { return long(&bytes[start..end]) };
    let digits = (u64::from_le_bytes(*eight) ^ ZEROS) << (64 - 8 * (end - start));
    if (digits.wrapping_add(OVER_NINE) | digits) & HIGHEST != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(low.wrapping_add(high) >> 32)
}

/// Any number, as it may stand in a line.
#[cold]
#[inline(never)]
pub fn long(text: &[u8]) -> Option<u64> {
    // The standard library takes a sign as well.
    let digits = text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_wherever_it_ends() {
        for length in [1, 7, 20, 62, 63, 64, 65, 127, 128, 200] {
            let word = "w".repeat(length);
            for line_end in ["\n", "\r\n"] {
                for behind in ["", "1,2,3,4\n"] {
                    let line = format!("12345678,{word},7{line_end}");
                    let text = format!("{line}{behind}");
                    let fields = Fields::<3>::of_first(text.as_bytes(), b',').unwrap();
                    assert_eq!((fields.text(1), fields.length()), (word.as_bytes(), line.len()));
                    assert_eq!(
                        (fields.number(0), fields.number(1), fields.number(2)),
                        (Some(12_345_678), None, Some(7))
                    );
                    assert!(Fields::<2>::of_first(text.as_bytes(), b',').is_none());
                    assert!(Fields::<4>::of_first(text.as_bytes(), b',').is_none());
                    assert!(Fields::<3>::of_first(&text.as_bytes()[..line.len() - 1], b',').is_none());
                }
            }
        }
    }

    #[test]
    fn numbers_of_every_length_are_numbers_and_nothing_else_is() {
        let number = |text: &str| Fields::<1>::of_first(format!("{text}\n").as_bytes(), b',').unwrap().number(0);
        for digits in 0..20 {
            let value = 10_u64.pow(digits) + u64::from(digits);
            assert_eq!(number(&value.to_string()), Some(value));
            assert_eq!(number(&format!("{value:020}")), Some(value));
            let text = format!("{value}{:100}", "");
            assert_eq!(number(&text), None);
            for bad in [b'/', b':', b'-', 0, 0xff, b' '] {
                let mut text = value.to_string().into_bytes();
                text[digits as usize / 2] = bad;
                let line = [&text[..], b"\n", &[b'1'; 80]].concat();
                assert_eq!(Fields::<1>::of_first(&line, b',').unwrap().number(0), None, "{bad} in {value}");
            }
        }
        assert_eq!(number(&u64::MAX.to_string()), Some(u64::MAX));
        assert_eq!((number("18446744073709551616"), number(""), number("+1")), (None, None, None));
    }
}
