//! What the keys of these jobs look like.

/// A key's text, `key:000000012345`; only its digits are ever written anew.
pub struct KeyText([u8; KEY_BYTES]);

pub const KEY_BYTES: usize = 16;

impl Default for KeyText {
    fn default() -> Self {
        KeyText(*b"key:000000000000")
    }
}

impl KeyText {
    /// The number that a key's text tells, if it is one of ours.
    pub fn record_of(key: &[u8]) -> Option<u64> {
        let digits = key.strip_prefix(b"key:").filter(|digits| digits.len() == 12)?;
        digits.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
    }

    #[inline(always)]
    pub fn of(&mut self, record: u64) -> &[u8] {
        KeyText::write(record, &mut self.0);
        &self.0
    }

    /// What was written last.
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// Writes a key's text, in whole words, so that whoever copies words need not wait.
    #[inline(always)]
    pub fn write(record: u64, text: &mut [u8; KEY_BYTES]) {
        const LOW: u64 = 100_000_000;
        let (high, low) = if record < LOW { (*b"key:0000", record) } else { (high_half(record / LOW), record % LOW) };
        text[..8].copy_from_slice(&high);
        text[8..].copy_from_slice(&eight_digits(low));
    }
}

#[cold]
fn high_half(number: u64) -> [u8; 8] {
    let [.., a, b, c, d] = eight_digits(number % 10_000);
    [b'k', b'e', b'y', b':', a, b, c, d]
}

/// A number below 10^8 as text: halved into fours, twos and ones, all of a size at once in one word. The factors are
/// 2^20 / 100 and 2^10 / 10 rounded up, exact for what they divide.
#[inline(always)]
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - 10 * tens) << 8;
    (ones + 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_twelve_digits() {
        let mut key = KeyText::default();
        assert_eq!(key.of(12_345), b"key:000000012345");
        assert_eq!(key.of(999_999_999_999), b"key:999999999999");
        assert_eq!(key.of(0), b"key:000000000000");
        for record in (0..200_000).chain((0..20_000).map(|step| step * 49_999_993)) {
            let text = format!("key:{record:012}");
            assert_eq!(key.of(record), text.as_bytes());
        }
    }
}
