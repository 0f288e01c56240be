//! How long something has taken so far, for modules that have no clock of their own.

use std::time::{Duration, Instant};

/// Runs from the moment it is made.
#[derive(Clone, Copy, Debug)]
pub struct Timer(Instant);

impl Timer {
    pub fn start() -> Timer {
        Timer(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// What is left of a budget that began with this timer.
    pub fn left_of(&self, budget: Duration) -> Duration {
        budget.saturating_sub(self.elapsed())
    }
}

/// When a run ends, whatever is under way then.
#[derive(Clone, Copy, Debug)]
pub struct End(Instant);

impl End {
    pub fn within(time: Duration) -> End {
        End(Instant::now() + time)
    }

    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
