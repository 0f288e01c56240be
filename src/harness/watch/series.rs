//! What a store's processes use up in each second of a phase.

use std::time::Instant;

use super::{UsageReading, families, memory_of, reading_of_all};
use crate::model::record::Second;

/// A store's processes by whole seconds.
pub struct Series {
    seconds: Vec<Second>,
    began: Instant,
    before: UsageReading,
}

impl Series {
    /// Begins now, with the second that is to come.
    pub fn begin(before: UsageReading) -> Series {
        Series { seconds: Vec::new(), began: Instant::now(), before }
    }

    /// Looks whether another second is over. A look that comes late makes one second a little longer, not a gap.
    pub fn look(&mut self, roots: &[u32]) {
        if self.began.elapsed().as_secs() as usize > self.seconds.len() {
            let now = reading_of_all(roots);
            let cpu_s = now.since(&self.before).cpu_s();
            self.seconds.push(Second { cpu_s, anonymous_bytes: memory_of(&families(roots)).anonymous_bytes });
            self.before = now;
        }
    }

    pub fn end(self) -> Vec<Second> {
        self.seconds
    }
}
