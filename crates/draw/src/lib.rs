//! Chance that is the same on every machine: hashing and drawing by integers only. It must not know what is drawn for.
//!
//! A crate of its own, so that it is optimised in every build.

/// A stable 64-bit hash of bytes: FNV-1a (Fowler, Noll, Vo), whose weak high bits are then mixed by [`mix`]. Data and
/// the dealing of keys to clients depend on it: it never changes.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)))
}

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014; constants of Vigna's splitmix64.c): a bijection that spreads
/// every bit.
#[inline]
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// xoshiro256** (Blackman, Vigna 2018), its state filled by splitmix64, as its authors advise.
#[derive(Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let step = |count: u64| mix(seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Rng([step(1), step(2), step(3), step(4)])
    }

    #[inline]
    pub fn draw(&mut self) -> u64 {
        let state = &mut self.0;
        let drawn = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        drawn
    }

    /// True once in `2^power` times.
    #[inline]
    pub fn once_in(&mut self, power: u32) -> bool {
        self.draw() >> (64 - power) == 0
    }
}

/// Draws an index with a probability in proportion to its weight, at one memory access each: the alias method (Walker
/// 1977, tables by Vose 1991). The weights are floating numbers once; from then on there are integers only.
pub struct Alias {
    columns: Vec<Column>,
}

/// The index of the column itself below `threshold`, in 1/2^32, and `other` from there on.
#[derive(Clone, Copy)]
struct Column {
    threshold: u32,
    other: u32,
}

impl Alias {
    /// At least one weight, none negative, not all of them 0, and fewer than 2^32.
    pub fn new(weights: Vec<f64>) -> Alias {
        let mut shares = weights;
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        shares.iter_mut().for_each(|share| *share /= mean);
        let mut columns: Vec<Column> =
            (0..shares.len()).map(|index| Column { threshold: u32::MAX, other: index as u32 }).collect();
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            (0..shares.len() as u32).partition(|index| shares[*index as usize] < 1.0);
        while let (Some(&from), Some(index)) = (rich.last(), poor.pop()) {
            let share = shares[index as usize];
            columns[index as usize] = Column { threshold: (share * 4_294_967_296.0) as u32, other: from };
            shares[from as usize] -= 1.0 - share;
            if shares[from as usize] < 1.0 {
                rich.pop();
                poor.push(from);
            }
        }
        Alias { columns }
    }

    /// The index that 64 random bits choose: the high part of a product chooses the column, the low part the side.
    #[inline]
    pub fn pick(&self, bits: u64) -> usize {
        let product = u128::from(bits) * self.columns.len() as u128;
        let index = (product >> 64) as usize;
        let column = self.columns[index];
        if (product as u64 >> 32) < u64::from(column.threshold) { index } else { column.other as usize }
    }
}

/// The weights of ranks 1 to `count` by the law of Zipf and Mandelbrot: (rank + shift)^-exponent.
pub fn zipf(count: u32, exponent: f64, shift: f64) -> Vec<f64> {
    (1..=count).map(|rank| libm::pow(f64::from(rank) + shift, -exponent)).collect()
}

/// So many steps of a generator, each of which waits for the one before it: xorshift64 (Marsaglia 2003, with the shifts
/// 13, 7 and 17), then a multiplication. The same work each time: its time tells how fast a processor is just now.
#[inline(never)]
pub fn steps(count: u32) {
    let mut sum = std::hint::black_box(1_u64);
    for _ in 0..count {
        sum ^= sum << 13;
        sum ^= sum >> 7;
        sum ^= sum << 17;
        sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    std::hint::black_box(sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_as_published() {
        // The first outputs of xoshiro256** from the state 1, 2, 3, 4: its authors' C code prints these.
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!(
            [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240],
            [rng.draw(), rng.draw(), rng.draw(), rng.draw()]
        );
        // The first outputs of splitmix64 from seed 1234567, widely used to check it.
        assert_eq!(Rng::new(1_234_567).0[..2], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn hashes_as_ever() {
        // FNV-1a of "" and of "a" are 0xcbf29ce484222325 and 0xaf63dc4c8601ec8c.
        assert_eq!(hash(b""), mix(0xcbf2_9ce4_8422_2325));
        assert_eq!(hash(b"a"), mix(0xaf63_dc4c_8601_ec8c));
    }

    #[test]
    fn picks_in_proportion() {
        let weights = [5.0, 0.0, 1.0, 0.5, 3.5];
        let alias = Alias::new(weights.to_vec());
        let mut rng = Rng::new(7);
        let mut picks = [0u32; 5];
        (0..1_000_000).for_each(|_| picks[alias.pick(rng.draw())] += 1);
        for (index, weight) in weights.iter().enumerate() {
            let (expected, found) = (weight * 100_000.0, f64::from(picks[index]));
            assert!((found - expected).abs() <= 5.0 * libm::sqrt(expected), "{index}: {found} for {expected}");
        }
    }
}
