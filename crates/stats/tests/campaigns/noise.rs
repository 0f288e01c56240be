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

    /// Student's t of three degrees of freedom.
    pub fn student(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
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
    /// 2 % of normal noise on a machine at full speed, a quarter slower or 1.6 times as slow, for 8 s on average.
    Regimes,
    /// What a real machine did to a fixed piece of work: see the head of the file.
    Recorded,
    /// The same beside a periodic load.
    Periodic,
}

pub const UNQUIET: [Noise; 7] = [
    Noise::Drifting,
    Noise::Bursty,
    Noise::HeavyTailed,
    Noise::Contaminated,
    Noise::Regimes,
    Noise::Recorded,
    Noise::Periodic,
];

/// One machine, on which trials run one after another.
pub struct Machine {
    noise: Noise,
    /// The logarithm of what a trial takes too long is so many times as large.
    strength: f64,
    random: Random,
    /// How many trials a block has, which is how long a burst lasts.
    block: usize,
    trials: usize,
    wandering: f64,
    burst: f64,
    burst_ends: usize,
    /// How slow the machine is now, and for how many pieces yet.
    regime: (f64, usize),
    recorded: &'static [f64],
    place: usize,
}

/// Trials are measured in pieces of 20 ms; one lasts a second where nothing else is said.
pub const PIECES: usize = 50;

/// How long a regime lasts, on average.
const REGIME_PIECES: f64 = 400.0;

impl Machine {
    pub fn new(noise: Noise, strength: f64, block: usize, seed: u64) -> Machine {
        let mut random = Random::new(seed);
        let recorded: &[f64] = match noise {
            Noise::Recorded => trace(&BUSY, include_str!("../data/noise.txt")),
            Noise::Periodic => trace(&PERIODIC, include_str!("../data/noise-periodic.txt")),
            _ => &[],
        };
        let place = random.below(recorded.len().max(1));
        let wandering = random.normal();
        let (burst, burst_ends, regime) = (1.0, 0, (1.0, 0));
        Machine { noise, strength, random, block, trials: 0, wandering, burst, burst_ends, regime, recorded, place }
    }

    /// What the next trial takes, in what it should; how long it is matters to noise that comes and goes with time.
    pub fn trial(&mut self, pieces: usize) -> f64 {
        let slower = self.slower(pieces);
        if self.strength == 1.0 { slower } else { slower.powf(self.strength) }
    }

    fn slower(&mut self, pieces: usize) -> f64 {
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
            Noise::HeavyTailed => (0.02 * random.student()).exp(),
            Noise::Contaminated => {
                let hit = if random.below(10) == 0 { 1.0 + random.part() / 2.0 } else { 1.0 };
                hit * (0.02 * random.normal()).exp()
            }
            Noise::Regimes => self.in_regimes(pieces) * (0.02 * self.random.normal()).exp(),
            Noise::Recorded | Noise::Periodic => {
                let these = (0..pieces).map(|piece| self.recorded[(self.place + piece) % self.recorded.len()]);
                let mean = these.sum::<f64>() / pieces as f64;
                self.place += pieces;
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

    fn in_regimes(&mut self, pieces: usize) -> f64 {
        let (mut left, mut sum) = (pieces, 0.0);
        while left > 0 {
            if self.regime.1 == 0 {
                let lasts = (-REGIME_PIECES * self.random.part().ln()) as usize + 1;
                self.regime = ([1.0, 1.25, 1.6][self.random.below(3)], lasts);
            }
            let these = left.min(self.regime.1);
            sum += self.regime.0 * these as f64;
            left -= these;
            self.regime.1 -= these;
        }
        sum / pieces as f64
    }
}

type Trace = std::sync::OnceLock<Vec<f64>>;

static BUSY: Trace = Trace::new();
static PERIODIC: Trace = Trace::new();

/// Microseconds that the same piece of work took, every 20 ms.
fn trace(series: &'static Trace, text: &str) -> &'static [f64] {
    series.get_or_init(|| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.parse().expect("microseconds")).collect()
    })
}
