//! Machines that are never quiet: by how much each trial is slower or faster than it should be, one after another.

/// splitmix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers everywhere, for ever.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    pub fn part(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Normally distributed, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.part().ln()).sqrt() * (std::f64::consts::TAU * self.part()).cos()
    }

    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, self.below(place + 1));
        }
        order
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// 3 % of independent normal noise: what a quiet machine does.
    Quiet,
    /// Each trial's noise is 0.8 of the one's before it, 3 % in all, and each trial is 0.5 % slower than the last.
    Drifting,
    /// 1 % of normal noise, and now and then something else runs for as long as a block and takes a tenth to a half.
    Bursty,
    /// 2 % times Student's t of three degrees of freedom: no fourth moment, nor much of a third.
    HeavyTailed,
    /// 2 % of normal noise, and one trial in ten by itself is up to a half slower.
    Contaminated,
    /// What a real machine did to a fixed piece of work: see the head of the file.
    Recorded,
}

pub const UNQUIET: [Noise; 5] =
    [Noise::Drifting, Noise::Bursty, Noise::HeavyTailed, Noise::Contaminated, Noise::Recorded];

/// One machine, on which trials run one after another.
pub struct Machine {
    noise: Noise,
    random: Random,
    /// How many trials a block has, which is how long a burst lasts.
    block: usize,
    trials: usize,
    wandering: f64,
    burst: f64,
    burst_ends: usize,
    recorded: &'static [f64],
    place: usize,
}

/// A recorded trial lasts one second: fifty pieces of work.
const PIECES: usize = 50;

impl Machine {
    pub fn new(noise: Noise, block: usize, seed: u64) -> Machine {
        let mut random = Random::new(seed);
        let recorded: &[f64] = if noise == Noise::Recorded { recorded() } else { &[] };
        let place = random.below(recorded.len().max(1));
        let wandering = random.normal();
        Machine { noise, random, block, trials: 0, wandering, burst: 1.0, burst_ends: 0, recorded, place }
    }

    /// What the next trial takes, in what it should.
    pub fn trial(&mut self) -> f64 {
        self.trials += 1;
        let random = &mut self.random;
        match self.noise {
            Noise::Quiet => (0.03 * random.normal()).exp(),
            Noise::Drifting => {
                // 0.6 is sqrt(1 - 0.8^2): the variance stays 1.
                self.wandering = 0.8 * self.wandering + 0.6 * random.normal();
                (0.03 * self.wandering + 0.005 * self.trials as f64).exp()
            }
            Noise::Bursty => self.bursty(),
            Noise::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                (0.02 * random.normal() / (squares / 3.0).sqrt()).exp()
            }
            Noise::Contaminated => {
                let hit = if random.below(10) == 0 { 1.0 + random.part() / 2.0 } else { 1.0 };
                hit * (0.02 * random.normal()).exp()
            }
            Noise::Recorded => {
                let pieces = (0..PIECES).map(|piece| self.recorded[(self.place + piece) % self.recorded.len()]);
                let mean = pieces.sum::<f64>() / PIECES as f64;
                self.place += PIECES;
                mean
            }
        }
    }

    fn bursty(&mut self) -> f64 {
        if self.trials > self.burst_ends && self.random.below(4 * self.block) == 0 {
            self.burst = 1.1 + 0.4 * self.random.part();
            self.burst_ends = self.trials + self.block - 1;
        }
        let burst = if self.trials <= self.burst_ends { self.burst } else { 1.0 };
        burst * (0.01 * self.random.normal()).exp()
    }
}

/// Microseconds that the same piece of work took, every 20 ms.
fn recorded() -> &'static [f64] {
    static SERIES: std::sync::OnceLock<Vec<f64>> = std::sync::OnceLock::new();
    SERIES.get_or_init(|| {
        let lines = include_str!("../data/noise.txt").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.parse().expect("microseconds")).collect()
    })
}
