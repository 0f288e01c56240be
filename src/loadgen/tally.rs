//! One client's counts and op times, and the price of taking them.
//!
//! Reading the clock twice costs 40 to 100 ns: nothing beside a server's answer, most of the time of an op in memory.
//! So ops are timed in stretches: the first one in full, and after each stretch it is decided anew whether all
//! ops can be timed at 5 % of the mean op; if not, one in 32 is, chosen at random, so that no period of the job is
//! favoured. So are commits, by themselves.
//!
//! The clock is the system's, whose readings wait for the loads before them. The bare counter of the processor costs a
//! third and does not: an increment that misses the cache then seems to take 30 ns, and its wait looks like the job's
//! own.

use std::time::{Duration, Instant};

use super::LoadStats;
use crate::model::hist::Times;
use crate::model::metrics::Metrics;

/// Timed ops in a stretch.
const STRETCH: u64 = 1_000;
/// The most that timing may cost, as a share of the mean op.
const BUDGET: f64 = 0.05;
/// Where not all ops are timed, one in so many is.
const RAREST: u32 = 32;

pub struct TimingTally {
    clock_ns: f64,
    times: Times,
    op_times: Sample,
    commit_times: Sample,
    /// Of ops that somebody else has timed.
    waited_ns: f64,
    // Fields of its own and no `Metrics`: with one an op of the hot loop cost 1 ns more (`./bench harness`).
    pub ops: u64,
    pub units: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

impl TimingTally {
    /// `seed` makes the choice of timed ops; it has no bearing on what is asked.
    pub fn new(seed: u64) -> TimingTally {
        let clock_ns = price_ns();
        TimingTally {
            clock_ns,
            times: Times::default(),
            op_times: Sample::new(clock_ns, seed),
            commit_times: Sample::new(clock_ns, seed),
            waited_ns: 0.0,
            ops: 0,
            units: 0,
            bytes_out: 0,
            bytes_in: 0,
        }
    }

    /// Counts an op that is about to be asked. What it returns goes to `answered`: the time, if it is this op's turn.
    ///
    /// Two calls around the question rather than one that takes it as a closure: a closure's copies of question and
    /// answer cost three times as much as the question to `null`.
    #[inline(always)]
    pub fn asking(&mut self) -> Option<Instant> {
        self.ops += 1;
        self.op_times.is_turn().then(Instant::now)
    }

    /// Takes the time of the op that `asking` returned `start` for.
    #[inline(always)]
    pub fn answered(&mut self, start: Option<Instant>) {
        if let Some(start) = start {
            self.timed(nanoseconds(start.elapsed()));
        }
    }

    #[inline(never)]
    fn timed(&mut self, time_ns: u64) {
        self.times.record(time_ns);
        self.op_times.took(time_ns);
    }

    /// Commits are waited for like answers, but are no ops. Where a unit is a single op there are as many.
    #[inline(always)]
    pub fn flush<T>(&mut self, flush: impl FnOnce() -> T) -> T {
        if !self.commit_times.is_turn() {
            return flush();
        }
        let start = Instant::now();
        let answer = flush();
        self.commit_times.took(nanoseconds(start.elapsed()));
        answer
    }

    /// Takes the time of an op that somebody else has timed, as all are that come at a rate.
    pub fn took(&mut self, time_ns: u64) {
        self.times.record(time_ns);
        self.waited_ns += time_ns as f64;
    }

    /// Adds this client's counts to what all have seen.
    pub fn add_to(self, seen: &mut LoadStats) {
        let waiting_s = (self.waited_ns + self.op_times.all_ns() + self.commit_times.all_ns()) / 1e9;
        let TimingTally { ops, units, bytes_out, bytes_in, .. } = self;
        seen.metrics.add(&Metrics { ops, units, bytes_out, bytes_in, waiting_s, ..Metrics::default() });
        seen.timed_one_in = seen.timed_one_in.max(self.op_times.timed_one_in);
        seen.times.merge(&self.times);
        seen.clock_ns = seen.clock_ns.max(self.clock_ns);
    }
}

/// The time of all that was done, from what some of it took.
struct Sample {
    clock_ns: f64,
    timed_one_in: u32,
    /// From the last that was timed to the next, and how many of these are left.
    gap: u32,
    countdown: u32,
    random: u64,
    /// Of this stretch: how many were done up to the last that was timed, how many were timed, and what these took.
    done: u64,
    timed: u64,
    timed_ns: u64,
    /// Of all stretches before.
    before_ns: f64,
}

impl Sample {
    fn new(clock_ns: f64, seed: u64) -> Sample {
        Sample {
            clock_ns,
            timed_one_in: 1,
            gap: 1,
            countdown: 1,
            random: seed | 1,
            done: 0,
            timed: 0,
            timed_ns: 0,
            before_ns: 0.0,
        }
    }

    /// Whether the next is to be timed; then `took` follows.
    #[inline(always)]
    fn is_turn(&mut self) -> bool {
        self.countdown -= 1;
        self.countdown == 0
    }

    #[inline(never)]
    fn took(&mut self, time_ns: u64) {
        self.done += u64::from(self.gap);
        self.timed += 1;
        self.timed_ns += time_ns;
        if self.timed == STRETCH {
            self.timed_one_in = affordable(self.clock_ns, self.timed_ns as f64 / STRETCH as f64);
            self.before_ns += self.stretch_ns(self.done);
            (self.done, self.timed, self.timed_ns) = (0, 0, 0);
        }
        self.gap = self.next_gap();
        self.countdown = self.gap;
    }

    /// What those that were timed took on average, all `done` did.
    fn stretch_ns(&self, done: u64) -> f64 {
        self.timed_ns as f64 / self.timed.max(1) as f64 * done as f64
    }

    fn all_ns(&self) -> f64 {
        self.before_ns + self.stretch_ns(self.done + u64::from(self.gap - self.countdown))
    }

    /// Uniform on 1..2n, so n on average, and never in step with a pattern of the job's.
    fn next_gap(&mut self) -> u32 {
        if self.timed_one_in == 1 {
            return 1;
        }
        // xorshift64: Marsaglia, "Xorshift RNGs", 2003.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let width = u64::from(2 * self.timed_one_in - 1);
        1 + (((self.random >> 32) * width) >> 32) as u32
    }
}

/// How many ops must share one timing so that it costs at most its budget. Between "all" and "few" there is nothing:
/// an op too short to be timed each is in memory, where a timed op also loses its overlap with its neighbours, which
/// costs as much again.
fn affordable(clock_ns: f64, mean_ns: f64) -> u32 {
    let op_ns = mean_ns - clock_ns;
    if 2.0 * clock_ns <= BUDGET * op_ns { 1 } else { RAREST }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What one reading of the clock costs, in nanoseconds: the best of a few batches.
pub(super) fn price_ns() -> f64 {
    const READINGS: u32 = 200;
    let batch = || {
        let start = Instant::now();
        (1..READINGS).for_each(|_| {
            std::hint::black_box(Instant::now());
        });
        start.elapsed().as_nanos() as f64 / f64::from(READINGS)
    };
    (0..5).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_costs_little_times_every_op() {
        assert_eq!(affordable(20.0, 10_000.0), 1);
        assert_eq!(affordable(20.0, 820.0), 1);
    }

    #[test]
    fn a_clock_that_costs_much_times_few_ops() {
        assert_eq!(affordable(20.0, 220.0), RAREST);
        assert_eq!(affordable(20.0, 25.0), RAREST);
        assert_eq!(affordable(20.0, 0.0), RAREST);
    }

    #[test]
    fn gaps_are_right_on_average_and_waiting_is_scaled_by_them() {
        let mut tally = TimingTally::new(7);
        for _ in 0..200_000 {
            let start = tally.asking();
            std::hint::black_box(1);
            tally.answered(start);
        }
        let one_in = tally.op_times.timed_one_in;
        assert!(one_in > 1, "an op of nothing is cheaper than the clock");
        let gap = (tally.ops - STRETCH) as f64 / (tally.times.count() - STRETCH) as f64;
        assert!((gap / f64::from(one_in) - 1.0).abs() < 0.2, "one in {gap}");
        let mut seen = LoadStats::default();
        let (ops, recorded) = (tally.ops, tally.times.count());
        tally.add_to(&mut seen);
        assert_eq!(seen.metrics.ops, ops);
        assert_eq!(seen.times.count(), recorded);
        let mean_ns = seen.metrics.waiting_s * 1e9 / ops as f64;
        assert!(mean_ns > 0.0 && mean_ns < 10_000.0, "{mean_ns} ns for nothing");
    }

    #[test]
    fn what_is_not_timed_took_as_long_on_average() {
        let mut sample = Sample::new(20.0, 7);
        let mut timed = 0;
        for _ in 0..100_001 {
            if sample.is_turn() {
                timed += 1;
                sample.took(100);
            }
        }
        assert!(timed < 10_000, "{timed} of 100 ns were timed at 20 ns a reading");
        // Those after the last that was timed count too.
        assert!((sample.all_ns() / (100.0 * 100_001.0) - 1.0).abs() < 1e-9, "{}", sample.all_ns());
    }

    #[test]
    fn commits_that_take_long_are_timed_each() {
        let mut sample = Sample::new(20.0, 7);
        for _ in 0..5_000 {
            assert!(sample.is_turn());
            sample.took(50_000);
        }
        assert_eq!(sample.all_ns(), 5_000.0 * 50_000.0);
    }
}
