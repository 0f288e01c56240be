//! What was asked once everything was built: `--queries`. It is in no other number.

use anyhow::Result;

use super::times;
use kvfair_core::record::Record;
use kvfair_stats::sample::Sample;

/// Of all trials of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queries {
    /// The median of the seconds that all of them took, the answers read and compared.
    pub ask_s: f64,
    /// From a question to the store's answer; only where they were asked for: see [`Queries::fill_in`].
    pub ns_p50: Option<u64>,
    pub ns_p99: Option<u64>,
}

impl Queries {
    /// Nothing where nothing was asked.
    pub fn of(trials: &[&Record]) -> Option<Queries> {
        let ask_s = Sample::new(trials.iter().filter_map(|trial| Some(trial.asked()?.took_s)).collect())?;
        Some(Queries { ask_s: ask_s.median(), ns_p50: None, ns_p99: None })
    }

    /// Fills in the times of single questions.
    pub fn fill_in(&mut self, trials: &[&Record]) -> Result<()> {
        let asked: Vec<_> = trials.iter().filter_map(|trial| Some((*trial, trial.asked()?))).collect();
        let times = times::merged(&asked, |asked| Some(&asked.times_ns))?;
        (self.ns_p50, self.ns_p99) = (Some(times.median_ns()), times.quantile_ns(0.99));
        Ok(())
    }
}
