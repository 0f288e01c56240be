//! Lines and decimal numbers, as every text protocol has them. It knows no protocol.

use crate::model::op::{Fault, readable};

/// The end of a line.
pub const CRLF: &[u8] = b"\r\n";
/// So many bytes of a strange answer are shown in a message.
const SHOWN: usize = 80;

/// Appends a number in decimal.
#[inline]
pub fn push_number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A number in decimal, a minus before it where it is negative, and nothing else.
#[inline]
pub fn number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Summed below zero, where there is room for one number more than above it.
    let sum = digits.iter().try_fold(0_i64, |sum, byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_sub(i64::from(byte - b'0')),
        _ => None,
    })?;
    if negative { Some(sum) } else { sum.checked_neg() }
}

/// A number in decimal that is not negative, up to 2^64 - 1.
#[inline]
pub fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// A length and the CRLF after it, and the bytes they took: at most six digits. `None` is for who reads in full.
#[inline]
pub fn short_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (at, byte) in bytes.iter().enumerate().take(7) {
        match byte {
            b'0'..=b'9' => length = length * 10 + usize::from(byte - b'0'),
            b'\r' if at > 0 && bytes.get(at + 1) == Some(&b'\n') => return Some((length, at + 2)),
            _ => return None,
        }
    }
    None
}

/// The first line of `bytes` without its CRLF, once it is all there. Nothing longer than `max` is waited for, so that a
/// line that never ends is neither kept nor searched again and again.
#[inline]
pub fn line(bytes: &[u8], max: usize) -> Result<Option<&[u8]>, Fault> {
    let window = &bytes[..bytes.len().min(max + 2)];
    match memchr::memchr(b'\n', window) {
        Some(end) if end > 0 && window[end - 1] == b'\r' => Ok(Some(&window[..end - 1])),
        Some(_) => Err(garbled("a line that ends with CRLF", bytes)),
        None if window.len() == max + 2 => Err(garbled(&format!("a line of at most {max} bytes"), bytes)),
        None => Ok(None),
    }
}

/// What was expected, and what came.
#[cold]
pub fn garbled(expected: &str, came: &[u8]) -> Fault {
    Fault::Garbled(format!("expected {expected}, but '{}' came", readable(came, SHOWN)))
}

/// An answer to nothing.
#[cold]
pub fn unasked(came: &[u8]) -> Fault {
    Fault::Garbled(format!("nothing was asked, but '{}' came", readable(came, SHOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_their_limits_and_no_further() {
        for value in [0, 1, -1, 9, 10, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            let mut text = Vec::new();
            push_number(value, &mut text);
            assert_eq!(number(&text), Some(value));
        }
        let strange: [&[u8]; 9] =
            [b"", b"-", b"+1", b" 1", b"1 ", b"1x", b"--1", b"9223372036854775808", b"-9223372036854775809"];
        for text in strange {
            assert_eq!(number(text), None, "{}", readable(text, 30));
        }
    }

    #[test]
    fn a_short_length_is_digits_and_a_line_end_and_nothing_else() {
        assert_eq!(short_length(b"0\r\n"), Some((0, 3)));
        assert_eq!(short_length(b"32\r\nx"), Some((32, 4)));
        assert_eq!(short_length(b"999999\r\n"), Some((999_999, 8)));
        let strange: [&[u8]; 9] = [b"", b"\r\n", b"-1\r\n", b"3", b"3\r", b"3\n", b"3\rx", b"1000000\r\n", b" 3\r\n"];
        for text in strange {
            assert_eq!(short_length(text), None, "{}", readable(text, 30));
        }
    }

    #[test]
    fn a_line_is_whole_or_awaited_or_refused() {
        assert_eq!(line(b"+OK\r\nmore", 64).unwrap(), Some(&b"+OK"[..]));
        assert_eq!(line(b"\r\n", 64).unwrap(), Some(&b""[..]));
        assert_eq!(line(b"1234\r\n", 4).unwrap(), Some(&b"1234"[..]));
        assert_eq!(line(b"12345", 4).unwrap(), None);
        assert_eq!(line(b"+OK\r", 64).unwrap(), None);
        assert!(line(b"+OK\n", 64).is_err());
        assert!(line(b"\n", 64).is_err());
        assert!(line(b"123456", 4).is_err());
    }
}
