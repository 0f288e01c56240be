//! How large a job may be so that its blocks fit into a time, and how many blocks it then has at least.

use std::time::Duration;

use crate::harness::plan::Plan;
use crate::model::effort::{Blocks, CLAIM_BLOCKS};

/// The least units of a job that is sized, as the first pilot has them.
pub const LEAST_UNITS: u64 = 250;
/// The share of what is left that is planned for: trials of the pilot are too short to be trusted to the last second.
const TRUST: f64 = 0.65;
/// The same of what a small job takes to start and to stop: that does not grow, and was seen.
const FIXED_TRUST: f64 = 0.9;
/// A job is small if it has less than one in so many of its default units.
const SMALL_ONE_IN: u64 = 20;
/// And if what is measured takes less of its trials' time: the rest is starting, filling, reading back and stopping.
const MEASURED_SHARE: f64 = 0.5;

/// What one block of small trials took.
#[derive(Clone, Copy, Debug)]
pub struct TriedBlock {
    pub units: u64,
    /// The power of the units that time grows with.
    pub growth: f64,
    pub fixed_s: f64,
    pub growing_s: f64,
    /// What is measured of that which grows.
    pub measured_s: f64,
}

/// What is chosen of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSize {
    pub units: u64,
    /// The least blocks.
    pub least: u32,
}

impl TriedBlock {
    /// The largest job of which `least` blocks, and `before` blocks before them, fit into `left`: `most` units at most.
    ///
    /// Where fewer blocks may be planned and the job would be a small one, the time is used more closely. If need be
    /// there are fewer blocks of a larger job, down to the least that still give a claim.
    pub fn choose(&self, left: Duration, (least, before): (u32, u32), most: u64, may_lower: bool) -> JobSize {
        let block_s = |least: u32| (left / (least + before)).as_secs_f64();
        let asked = JobSize { units: self.fit(block_s(least) * TRUST - self.fixed_s, most), least };
        if !may_lower || !self.is_small(asked.units, most) {
            return asked;
        }
        let closely = |least: u32| {
            let growing_s = (block_s(least) * FIXED_TRUST - self.fixed_s) * TRUST;
            JobSize { units: self.fit(growing_s, most), least }
        };
        let mut chosen = closely(least);
        while self.is_small(chosen.units, most) && chosen.least > CLAIM_BLOCKS {
            chosen = closely(chosen.least - 1);
        }
        // Where nothing fits fewer blocks are no larger job.
        if chosen.units > asked.units { chosen } else { asked }
    }

    fn is_small(&self, units: u64, most: u64) -> bool {
        let times = self.times(units);
        let all_s = self.fixed_s + self.growing_s * times;
        units.saturating_mul(SMALL_ONE_IN) < most && self.measured_s * times < MEASURED_SHARE * all_s
    }

    /// How many times as long a job of so many units takes.
    fn times(&self, units: u64) -> f64 {
        libm::pow(units as f64 / self.units.max(1) as f64, self.growth)
    }

    /// The largest job of which that which grows takes no longer in a block, rounded down to two digits.
    fn fit(&self, growing_s: f64, most: u64) -> u64 {
        let times = (growing_s.max(0.0) / self.growing_s.max(1e-6)).powf(1.0 / self.growth);
        let units = (self.units as f64 * times).min(most as f64) as u64;
        rounded(units as f64).max(LEAST_UNITS.min(most))
    }
}

/// How long a trial of one target will take, in seconds, and how often it is run in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub label: String,
    pub took_s: f64,
    pub times: f64,
}

/// How long a trial of each target will take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreseen(pub Vec<Expected>);

impl Foreseen {
    pub fn block_s(&self) -> f64 {
        self.0.iter().map(|one| one.took_s * one.times).sum()
    }

    /// How many blocks there are time for, and whether the run can be one that claims something; `None` where the
    /// least of the plan, and one before them, fit.
    pub fn fewer_blocks(&self, plan: &Plan, time: Duration) -> Option<Blocks> {
        let time_s = time.as_secs_f64();
        let fit = (time_s / self.block_s().max(1e-9)) as u32;
        let fit = fit.saturating_sub(1 - plan.first_block());
        if fit >= plan.blocks.least {
            return None;
        }
        if fit >= CLAIM_BLOCKS {
            return Some(Blocks { least: fit, ..plan.blocks });
        }
        // Then nothing is run twice, and no block is left uncounted.
        let once_s: f64 = self.0.iter().map(|one| one.took_s).sum();
        Some(Blocks::exactly(((time_s / once_s.max(1e-9)) as u32).clamp(1, CLAIM_BLOCKS - 1).min(plan.blocks.least)))
    }
}

/// To two digits, downwards, and at least 1.
pub fn rounded(rate: f64) -> u64 {
    let whole = rate.max(1.0) as u64;
    let magnitude = 10_u64.pow(whole.ilog10().saturating_sub(1));
    whole / magnitude * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(units: u64, growth: f64, (fixed_s, growing_s, measured_s): (f64, f64, f64)) -> TriedBlock {
        TriedBlock { units, growth, fixed_s, growing_s, measured_s }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_job_grows_with_what_is_left_but_never_beyond_its_default() {
        let units = |units, growth, left_s| {
            tried(units, growth, (1.0, 0.5, 0.5)).choose(seconds(left_s), (5, 1), 10_000, false).units
        };
        assert_eq!(units(250, 1.1, 8), 250, "nothing fits: the smallest job there is");
        assert_eq!(units(250, 1.1, 60), 2_200);
        assert_eq!(units(250, 1.0, 60), 2_700, "requests take as long each");
        assert_eq!(units(500, 1.0, 60), 5_500, "twice as many took as long");
        assert_eq!(units(250, 1.1, 100_000), 10_000);
    }

    /// Twelve stores and two controls of `lookup`, as it was seen: a block of 250 messages took 8.4 s to start and to
    /// stop, 0.6 s to fill and to read back, and 0.03 s to measure.
    const LOOKUPS: (f64, f64, f64) = (8.4, 0.6, 0.03);

    #[test]
    fn fewer_blocks_are_planned_where_a_job_would_be_a_small_one() {
        let choose = |left_s| tried(250, 1.0, LOOKUPS).choose(seconds(left_s), (6, 1), 45_000, true);
        let asked = tried(250, 1.0, LOOKUPS).choose(seconds(110), (6, 1), 45_000, false);
        assert_eq!(asked, JobSize { units: 750, least: 6 }, "that is what it was");
        assert_eq!(choose(110), JobSize { units: 3_000, least: 4 });
        assert_eq!(choose(125), JobSize { units: 2_800, least: 5 }, "no fewer than it takes");
        assert_eq!(choose(140), JobSize { units: 2_600, least: 6 }, "the time is used more closely");
        assert_eq!(choose(900), JobSize { units: 31_000, least: 6 }, "and none where it is no small job");
        assert_eq!(choose(20), JobSize { units: 250, least: 6 }, "nothing fits: blocks are left out later");
    }

    #[test]
    fn a_job_that_is_mostly_measured_keeps_its_blocks() {
        let slow = tried(250, 1.0, (0.5, 8.0, 7.0));
        assert_eq!(slow.choose(seconds(110), (6, 1), 45_000, true), JobSize { units: 300, least: 6 });
        let whole = tried(250, 1.0, (8.4, 0.01, 0.01)).choose(seconds(110), (6, 1), 1_000, true);
        assert_eq!(whole, JobSize { units: 1_000, least: 6 }, "all of it fits");
        let few = tried(250, 1.0, LOOKUPS).choose(seconds(60), (2, 0), 45_000, true);
        assert_eq!(few.least, 2, "which claim nothing are not made fewer");
    }
}
