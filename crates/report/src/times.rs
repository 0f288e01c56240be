//! Op times out of records: here histograms are taken apart, and only when somebody asks for their times.

use anyhow::{Result, anyhow};

use kvfair_core::hist::{Packed, Times};
use kvfair_core::record::{Phase, Record};

/// The times of one histogram of a trial's phase; an error names the trial.
pub fn times(record: &Record, phase: &Phase, packed: &Packed) -> Result<Times> {
    packed.times().map_err(|why| {
        let (target, block, name) = (&record.target.label, record.block, phase.part);
        anyhow!("the op times of {target} in block {block}, phase {name}, cannot be read: {why}")
    })
}

/// One histogram of each of these phases, all together.
pub fn merged(phases: &[(&Record, &Phase)], of: impl Fn(&Phase) -> Option<&Packed>) -> Result<Times> {
    let mut all = Times::default();
    for (record, phase) in phases {
        if let Some(packed) = of(phase) {
            all.merge(&times(record, phase, packed)?);
        }
    }
    Ok(all)
}
