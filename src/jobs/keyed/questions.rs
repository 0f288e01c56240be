//! Which keys are asked for: drawn by each client anew, the same for the same seed, so that whoever checks can draw
//! them again.

use std::io::{self, Write};

use crate::jobs::Part;
use crate::jobs::draw::mix;

/// What is asked next, and about which key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The key's number.
    pub record: u64,
    pub set: bool,
}

/// The questions of one client in one part, in their order. They follow from their count (splitmix64: Steele, Lea,
/// Flood 2014), so that whoever hears or checks draws them once more instead of keeping them, and can begin anywhere.
#[derive(Clone)]
pub struct Questions {
    count: u64,
    keys: Keys,
    setting: bool,
}

/// How a count becomes a key.
#[derive(Clone)]
enum Keys {
    /// One after another, each client its own.
    InTurn {
        first: u64,
        step: u64,
    },
    Uniform {
        begin: u64,
        records: u64,
    },
}

/// splitmix64's step: the golden ratio in 64 bits, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Questions {
    /// The loading: client `index` of `of` sets its share of all keys.
    pub fn loading(of: u32, index: u32) -> Questions {
        Questions { count: 0, keys: Keys::InTurn { first: index.into(), step: of.into() }, setting: true }
    }

    /// For client `index` of `of`, out of `records` keys.
    pub fn new(seed: u64, part: Part, of: u32, index: u32, records: u64) -> Questions {
        let who = (part as u64) << 56 | u64::from(of) << 28 | u64::from(index);
        let keys = Keys::Uniform { begin: mix(seed ^ mix(who)), records };
        Questions { count: 0, keys, setting: part == Part::Set }
    }

    /// Goes on behind so many questions from the beginning.
    pub fn pass_to(&mut self, count: u64) {
        self.count = count;
    }

    /// Passes over one.
    #[inline(always)]
    pub fn pass(&mut self) {
        self.count += 1;
    }

    #[inline(always)]
    pub fn sets_only(&self) -> bool {
        self.setting
    }

    /// Uniformly drawn, the number of a key is the high part of a product (Lemire, "Fast random integer generation in
    /// an interval", 2019; its bias is below 2^-32 here and the same for every store).
    #[inline(always)]
    pub fn draw(&mut self) -> Question {
        let count = self.count;
        self.count += 1;
        let record = match self.keys {
            Keys::InTurn { first, step } => first + count * step,
            Keys::Uniform { begin, records } => {
                let random = mix(begin.wrapping_add(count.wrapping_mul(STEP)));
                ((u128::from(random) * u128::from(records)) >> 64) as u64
            }
        };
        Question { record, set: self.setting }
    }
}

/// How many of `all` fall to client `index` of `of`.
pub fn share(all: u64, index: u32, of: u32) -> u64 {
    let (index, of) = (u64::from(index), u64::from(of));
    all / of + u64::from(index < all % of)
}

/// A key's text, `key:000000012345`; only its digits are ever written anew.
pub struct KeyText([u8; 16]);

impl Default for KeyText {
    fn default() -> Self {
        KeyText(*b"key:000000000000")
    }
}

impl KeyText {
    #[inline(always)]
    pub fn of(&mut self, record: u64) -> &[u8] {
        const LOW: u64 = 100_000_000;
        let (high, low) = if record < LOW { (*b"key:0000", record) } else { (high_half(record / LOW), record % LOW) };
        // Whole words, so that whoever copies words need not wait.
        self.0[..8].copy_from_slice(&high);
        self.0[8..].copy_from_slice(&eight_digits(low));
        &self.0
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
    let fours = number / 10_000 | number % 10_000 << 32;
    let hundreds = (fours * 10_486 >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (twos * 103 >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - 10 * tens) << 8;
    (ones + 0x3030_3030_3030_3030).to_le_bytes()
}

/// The questions of a single client, a line each: `set key:000000012345`.
pub fn write(seed: u64, units: u64, records: u64, parts: &[Part], out: &mut dyn Write) -> io::Result<()> {
    let mut key = KeyText::default();
    for &part in parts.iter().filter(|&&part| part != Part::Load) {
        let mut questions = Questions::new(seed, part, 1, 0, records);
        for _ in 0..units {
            let Question { record, set } = questions.draw();
            out.write_all(if set { b"set " } else { b"get " })?;
            out.write_all(key.of(record))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
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
        for record in (0..200_000).chain((0..2_000_000).map(|step| step * 49_999_993)) {
            let text = format!("key:{record:012}");
            assert_eq!(key.of(record), text.as_bytes());
        }
    }

    #[test]
    fn all_that_is_shared_out_is_all_there_is() {
        for (all, of) in [(100, 1), (100, 7), (3, 10), (0, 4)] {
            assert_eq!((0..of).map(|index| share(all, index, of)).sum::<u64>(), all);
        }
    }

    #[test]
    fn draws_are_even_and_every_client_has_its_own() {
        let mut questions = Questions::new(1, Part::Set, 2, 0, 10);
        let mut found = [0_u32; 10];
        (0..100_000).for_each(|_| found[questions.draw().record as usize] += 1);
        assert!(found.iter().all(|&count| (9_500..10_500).contains(&count)), "{found:?}");
        let first = |part, of, index| Questions::new(1, part, of, index, u64::MAX).draw().record;
        let all = [first(Part::Set, 2, 0), first(Part::Set, 2, 1), first(Part::Set, 3, 0), first(Part::Get, 2, 0)];
        assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])));
    }

    #[test]
    fn questions_can_be_passed_over() {
        let begin = || Questions::new(3, Part::Get, 5, 4, 1_000);
        let (mut all, mut rest) = (begin(), begin());
        (0..77).for_each(|_| drop(all.draw()));
        rest.pass_to(77);
        assert!((0..100).all(|_| all.draw() == rest.draw()));
    }

    #[test]
    fn clients_load_every_key_once() {
        let mut loaded: Vec<u64> = (0..7)
            .flat_map(|index| {
                let mut questions = Questions::loading(7, index);
                (0..share(100, index, 7)).map(move |_| questions.draw().record)
            })
            .collect();
        loaded.sort_unstable();
        assert_eq!(loaded, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn the_stream_is_what_it_always_was() {
        let mut text = Vec::new();
        write(1, 2, 100_000, &[Part::Set, Part::Get], &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "set key:000000059230\nset key:000000051025\nget key:000000008283\nget key:000000082302\n"
        );
    }
}
