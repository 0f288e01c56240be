//! A run without stores: blocks of trials one after another on a machine, by the design that METHOD.md describes.

use kvfair::stats::floor::{self, Control};
use kvfair::stats::paired::{LogRatios, Ratio};
use kvfair::stats::rank::Campaign;

use super::noise::{Machine, Noise, Random};

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

pub struct Design {
    pub targets: usize,
    pub noise: Noise,
    pub order: Order,
    pub stop: Stop,
}

/// The costs of each target in each block; the last target is the first once more, under another name.
pub struct Run {
    pub costs: Vec<Vec<f64>>,
}

impl Design {
    /// `true_cost(target, block)` is what a trial would cost on a silent machine; target 0 is the reference.
    pub fn run(&self, seed: u64, true_cost: impl Fn(usize, usize) -> f64) -> Run {
        let trials = self.targets + 1;
        let mut machine = Machine::new(self.noise, trials, seed);
        let mut random = Random::new(!seed);
        let mut run = Run { costs: vec![Vec::new(); trials] };
        let mut order = Vec::new();
        while !self.is_over(&run) {
            let block = run.blocks();
            if self.order == Order::Shuffled || block.is_multiple_of(2) {
                order = random.shuffled(trials);
            } else {
                order.reverse();
            }
            for target in &order {
                run.costs[*target].push(true_cost(target % self.targets, block) * machine.trial());
            }
        }
        run
    }

    fn is_over(&self, run: &Run) -> bool {
        match self.stop {
            Stop::Blocks(wanted) => run.blocks() == wanted,
            Stop::Width(_) if run.blocks() < 6 => false,
            Stop::Width(_) if run.blocks() == 30 => true,
            Stop::Width(part) => {
                let known = |target| run.ratio(target).interval.half_width().is_some_and(|half| half <= part);
                (1..run.costs.len()).all(known)
            }
        }
    }
}

impl Run {
    pub fn blocks(&self) -> usize {
        self.costs[0].len()
    }

    /// Of a target to the reference.
    pub fn ratio(&self, target: usize) -> Ratio {
        LogRatios::of(&self.costs[target], &self.costs[0]).unwrap().ratio()
    }

    /// As a report judges it: the A/A control says how far the same target is from itself.
    pub fn judged(&self) -> Campaign {
        let second = self.costs.len() - 1;
        let control = Control { interval: self.ratio(second).interval, length_s: 1.0 };
        let lengths_s = vec![1.0; second];
        Campaign::new(self.costs[..second].to_vec(), &lengths_s, &floor::Noise::of([control], false)).unwrap()
    }
}
