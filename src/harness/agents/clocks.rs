//! By how much an agent's clock differs from ours, by round trips: the reading in the middle of the shortest one is
//! right to half of it (Cristian, "Probabilistic clock synchronization", 1989).

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::link::{Link, Trouble};
use crate::harness::task::{AgentOrder, Event};

/// Round trips of one measurement.
const ROUNDS: u32 = 10;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Two clocks that are never set drift apart by so much at the most: the frequencies that adjtimex(2) can correct are
/// up to 500 millionths.
const DRIFT: f64 = 500e-6;

/// A clock that is never set, whatever happens to the time of day: on one machine it is the same for all processes.
pub fn own_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has that clock");
    Duration::from(now).as_nanos() as u64
}

/// An agent's clock minus ours, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    pub ns: i64,
    /// It is right to so much either way.
    pub bound_ns: u64,
    /// By our clock.
    pub seen_ns: u64,
}

impl Offset {
    /// A moment of ours by the agent's clock.
    pub fn theirs(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ns)
    }

    /// A moment of the agent's by our clock.
    pub fn ours(self, theirs_ns: u64) -> i64 {
        theirs_ns as i64 - self.ns
    }

    /// By how much the agent's clock jumped since `before`, in nanoseconds, where more than bounds and drift allow.
    pub fn jumped_since(self, before: Offset) -> Option<i64> {
        let elapsed_ns = self.seen_ns.saturating_sub(before.seen_ns) as f64;
        let allowed_ns = (self.bound_ns + before.bound_ns) as f64 + elapsed_ns * DRIFT;
        let moved_ns = self.ns - before.ns;
        (moved_ns.unsigned_abs() as f64 > allowed_ns).then_some(moved_ns)
    }
}

pub fn measure(link: &mut Link) -> Result<Offset, Trouble> {
    let mut best: Option<Offset> = None;
    for _ in 0..ROUNDS {
        let sent_ns = own_ns();
        link.order(&AgentOrder::Clock);
        let theirs_ns = link.until(PATIENCE, "its clock was not told", |event| match event {
            Event::Clock(theirs_ns) => Some(theirs_ns),
            _ => None,
        })?;
        let seen = between(sent_ns, own_ns(), theirs_ns);
        best = Some(best.filter(|best| best.bound_ns <= seen.bound_ns).unwrap_or(seen));
    }
    Ok(best.unwrap_or_default())
}

/// One round trip: its middle is when the other clock was read.
fn between(sent_ns: u64, heard_ns: u64, theirs_ns: u64) -> Offset {
    let half_ns = heard_ns.saturating_sub(sent_ns).div_ceil(2);
    Offset { ns: theirs_ns as i64 - (sent_ns + half_ns) as i64, bound_ns: half_ns, seen_ns: heard_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_round_trip_is_the_other_clocks_moment() {
        let offset = between(1_000, 1_200, 501_100);
        assert_eq!((offset.ns, offset.bound_ns), (500_000, 100));
        assert_eq!((offset.theirs(2_000), offset.ours(502_000)), (502_000, 2_000));
        let behind = between(501_000, 501_200, 1_100);
        assert_eq!((behind.ns, behind.theirs(501_000), behind.ours(1_000)), (-500_000, 1_000, 501_000));
    }

    #[test]
    fn a_clock_that_drifts_does_not_jump_and_one_that_is_set_does() {
        let at = |ns, seen_ns| Offset { ns, bound_ns: 100_000, seen_ns };
        let second = 1_000_000_000;
        assert_eq!(at(150_000, second).jumped_since(at(0, 0)), None, "within both bounds");
        assert_eq!(at(650_000, second).jumped_since(at(0, 0)), None, "and drift");
        assert_eq!(at(750_000, second).jumped_since(at(0, 0)), Some(750_000));
        assert_eq!(at(-1_000_000_000, second).jumped_since(at(0, 0)), Some(-1_000_000_000));
    }
}
