//! Which keys are asked for: drawn by each client anew, the same for the same seed, so that whoever checks can draw
//! them again.

use std::io::{self, Write};

use crate::jobs::Part;
use crate::jobs::draw::mix;

/// The keys that one client draws in one part, uniformly. Its state is a count (splitmix64: Steele, Lea, Flood 2014),
/// so that whoever checks can begin anywhere.
pub struct Draws {
    count: u64,
    records: u64,
}

/// splitmix64's step: the golden ratio in 64 bits, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    /// For client `index` of `of`, out of `records` keys.
    pub fn new(seed: u64, part: Part, of: u32, index: u32, records: u64) -> Draws {
        let who = (part as u64) << 56 | u64::from(of) << 28 | u64::from(index);
        Draws { count: mix(seed ^ mix(who)), records }
    }

    /// Passes over so many draws.
    pub fn skip(&mut self, draws: u64) {
        self.count = self.count.wrapping_add(draws.wrapping_mul(STEP));
    }

    /// The number of a key: the high part of a product (Lemire, "Fast random integer generation in an interval", 2019;
    /// its bias is below 2^-32 here and the same for every store).
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.count = self.count.wrapping_add(STEP);
        ((u128::from(mix(self.count)) * u128::from(self.records)) >> 64) as u64
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
    #[inline]
    pub fn of(&mut self, record: u64) -> &[u8] {
        // Two halves of three pairs each, so that one division hardly waits for another.
        let halves = [(record / 1_000_000 % 1_000_000) as u32, (record % 1_000_000) as u32];
        for (half, text) in halves.into_iter().zip(self.0[4..].as_chunks_mut::<6>().0) {
            text[..2].copy_from_slice(&PAIRS[(half / 10_000) as usize]);
            text[2..4].copy_from_slice(&PAIRS[(half / 100 % 100) as usize]);
            text[4..].copy_from_slice(&PAIRS[(half % 100) as usize]);
        }
        &self.0
    }
}

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The questions of a single client, a line each: `set key:000000012345`.
pub fn write(seed: u64, units: u64, records: u64, parts: &[Part], out: &mut dyn Write) -> io::Result<()> {
    let mut key = KeyText::default();
    for &part in parts.iter().filter(|&&part| part != Part::Load) {
        let mut draws = Draws::new(seed, part, 1, 0, records);
        for _ in 0..units {
            out.write_all(part.name().as_bytes())?;
            out.write_all(b" ")?;
            out.write_all(key.of(draws.draw()))?;
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
    }

    #[test]
    fn all_that_is_shared_out_is_all_there_is() {
        for (all, of) in [(100, 1), (100, 7), (3, 10), (0, 4)] {
            assert_eq!((0..of).map(|index| share(all, index, of)).sum::<u64>(), all);
        }
    }

    #[test]
    fn draws_are_even_and_every_client_has_its_own() {
        let mut draws = Draws::new(1, Part::Set, 2, 0, 10);
        let mut found = [0_u32; 10];
        (0..100_000).for_each(|_| found[draws.draw() as usize] += 1);
        assert!(found.iter().all(|&count| (9_500..10_500).contains(&count)), "{found:?}");
        let first = |part, of, index| Draws::new(1, part, of, index, u64::MAX).draw();
        let all = [first(Part::Set, 2, 0), first(Part::Set, 2, 1), first(Part::Set, 3, 0), first(Part::Get, 2, 0)];
        assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])));
    }

    #[test]
    fn draws_can_be_passed_over() {
        let begin = || Draws::new(3, Part::Get, 5, 4, 1_000);
        let (mut all, mut rest) = (begin(), begin());
        (0..77).for_each(|_| drop(all.draw()));
        rest.skip(77);
        assert!((0..100).all(|_| all.draw() == rest.draw()));
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
