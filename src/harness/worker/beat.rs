//! How far a phase is: told to the parent now and then, and counted by seconds.

use std::time::Instant;

use super::{Event, tell};

/// Tells the parent how far we are, and counts units by whole seconds.
pub(super) struct Beat {
    /// Units of the phases before.
    before: u64,
    /// Once the clock runs; never of what nobody is to hear of.
    pub(super) began: Option<Instant>,
    counted: u64,
    by_second: Vec<u64>,
}

impl Beat {
    pub(super) fn new(before: u64) -> Beat {
        Beat { before, began: None, counted: 0, by_second: Vec::new() }
    }

    pub(super) fn at(&mut self, units: u64) {
        let Some(began) = self.began else { return };
        tell(&Event::Progress(self.before + units));
        if began.elapsed().as_secs() as usize > self.by_second.len() {
            self.by_second.push(units - self.counted);
            self.counted = units;
        }
    }

    /// Each whole second's units, and those of what was left of the last one.
    pub(super) fn end(&mut self, units: u64) -> Vec<u64> {
        let mut by_second = std::mem::take(&mut self.by_second);
        by_second.extend(self.began.map(|_| units - self.counted));
        by_second
    }
}
