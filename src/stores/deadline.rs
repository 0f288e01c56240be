//! When an answer must be there. The only clock of the stores: it ends what takes too long, and no number comes from
//! it.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment to come.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Duration);

impl Deadline {
    pub fn within(patience: Duration) -> Deadline {
        Deadline(now().saturating_add(patience))
    }

    /// How long it is until then; an error when it is over.
    pub fn left(self) -> io::Result<Duration> {
        self.0.checked_sub(now()).filter(|left| !left.is_zero()).ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

/// Since some moment in the past. Every system that we run on has this clock.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
