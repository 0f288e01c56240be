//! A run without stores: blocks of trials one after another on a machine, by the design that docs/method.md describes.

use kvfair_stats::controls;
use kvfair_stats::floor::{self, Control};
use kvfair_stats::paired::LogRatios;
use kvfair_stats::rank::Campaign;
use kvfair_stats::sample::Sample;

use super::noise::{Machine, Noise, PIECES, Random};

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    Blocks(usize),
    /// Six blocks at least, thirty at most, until the interval of each ratio to the reference is as narrow as this.
    Width(f64),
}

/// In which order the trials of a block come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// In any, drawn for each block.
    Shuffled,
    /// In any, drawn for every other block; those between run in the reverse order of the one before.
    Mirrored,
}

/// What takes so long on a silent machine, in pieces of 20 ms, and so many times that.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub pieces: usize,
    pub cost: f64,
    /// Normal noise of its own, as a share.
    pub own: f64,
}

pub const SECOND: Target = Target { pieces: PIECES, cost: 1.0, own: 0.0 };

impl Target {
    /// What it costs on a silent machine.
    pub fn true_cost(&self) -> f64 {
        self.pieces as f64 * self.cost
    }
}

#[derive(Clone, Debug)]
pub struct Design {
    pub targets: Vec<Target>,
    pub noise: Noise,
    /// See [`Machine`].
    pub strength: f64,
    pub order: Order,
    pub stop: Stop,
    /// Most blocks were discarded, so that all are used.
    pub most_discarded: bool,
    /// One target of each run is that much faster or slower in all its trials (normal, a share).
    pub bias: f64,
}

/// The costs of each target in each block, and those of the second trials of the targets that are A/A controls.
pub struct Run {
    pub costs: Vec<Vec<f64>>,
    pub controls: Vec<(usize, Vec<f64>)>,
    most_discarded: bool,
}

impl Design {
    pub fn new(targets: Vec<Target>, noise: Noise, stop: Stop) -> Design {
        let (strength, order, most_discarded, bias) = (1.0, Order::Shuffled, false, 0.0);
        Design { targets, noise, strength, order, stop, most_discarded, bias }
    }

    pub fn same(targets: usize, noise: Noise, stop: Stop) -> Design {
        Design::new(vec![SECOND; targets], noise, stop)
    }

    /// `factor(target, block)` is what a trial costs on a silent machine, in what its target does; target 0 is the
    /// reference.
    pub fn run(&self, seed: u64, factor: impl Fn(usize, usize) -> f64) -> Run {
        let targets = self.targets.len();
        let mut machine = Machine::new(self.noise, self.strength, targets + 1, seed);
        let mut random = Random::new(!seed);
        let biased = (random.below(targets), (self.bias * random.normal()).exp());
        let mut trial = |random: &mut Random, target: usize, block: usize| {
            let of = &self.targets[target];
            let own = (of.own * random.normal()).exp();
            let bias = if target == biased.0 { biased.1 } else { 1.0 };
            of.true_cost() * factor(target, block) * machine.trial(of.pieces) * own * bias
        };
        let pilot: Vec<f64> = (0..targets).map(|target| trial(&mut random, target, 0)).collect();
        let controls = controls::among_these(&pilot, &pilot, pilot.iter().sum());
        let trials: Vec<usize> = (0..targets).chain(controls.iter().copied()).collect();
        let mut costs = vec![Vec::new(); trials.len()];
        let mut order = Vec::new();
        while !self.is_over(&costs[..targets]) {
            let block = costs[0].len();
            if self.order == Order::Shuffled || block.is_multiple_of(2) {
                order = random.shuffled(trials.len());
            } else {
                order.reverse();
            }
            for place in &order {
                costs[*place].push(trial(&mut random, trials[*place], block));
            }
        }
        let seconds = costs.split_off(targets);
        Run { costs, controls: controls.into_iter().zip(seconds).collect(), most_discarded: self.most_discarded }
    }

    fn is_over(&self, costs: &[Vec<f64>]) -> bool {
        let blocks = costs[0].len();
        match self.stop {
            Stop::Blocks(wanted) => blocks == wanted,
            Stop::Width(_) if blocks < 6 => false,
            Stop::Width(_) if blocks == 30 => true,
            Stop::Width(part) => {
                let interval = |costs: &Vec<f64>, to: &[f64]| LogRatios::of(costs, to).unwrap().ratio().interval;
                costs[1..].iter().all(|these| interval(these, &costs[0]).plus_minus().is_some_and(|half| half <= part))
            }
        }
    }
}

impl Run {
    /// As a report judges it: the A/A controls say how far the same target is from itself.
    pub fn judged(&self) -> Campaign {
        let length_s = |costs: &Vec<f64>| Sample::new(costs.clone()).unwrap().median();
        let lengths_s: Vec<f64> = self.costs.iter().map(length_s).collect();
        Campaign::new(self.costs.clone(), &lengths_s, &self.noise()).unwrap()
    }

    pub fn noise(&self) -> floor::AaNoise {
        let controls = self.controls.iter().map(|(target, second)| {
            let first = &self.costs[*target];
            let interval = LogRatios::of(second, first).unwrap().ratio().interval;
            let both = [first.as_slice(), second.as_slice()].concat();
            Control { interval, length_s: Sample::new(both).unwrap().median() }
        });
        floor::AaNoise::of(controls, self.most_discarded)
    }
}
