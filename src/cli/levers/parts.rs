//! The parts of such a run, one after the other into one results file.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::cli::live::Screen;
use crate::cli::{complain, measure};
use crate::harness::gates;
use crate::harness::plan::Plan;
use crate::harness::save::Results;
use crate::harness::signals::Interrupt;
use crate::harness::timing::End;
use crate::harness::trial::Bench;
use crate::model::preflight::Preflight;
use crate::model::record::Record;
use crate::scheduler::rounds::{self, Ended, RunEnd, Time};

/// What all parts share.
pub struct LeverSession<'a> {
    pub scratch: &'a Path,
    pub interrupt: &'a Interrupt,
    pub results: Results,
    /// All that was finished.
    pub records: Vec<Record>,
    pub preflight: Option<Preflight>,
    /// The time that the whole run has, and when it ends.
    pub budget: Duration,
    pub end: End,
}

impl LeverSession<'_> {
    /// The blocks of a part, within `time`: each has the targets of all these plans, which differ in nothing else than
    /// their durability level.
    pub fn blocks(&mut self, plans: &[Plan], time: Duration) -> Result<Ended> {
        let plan = &plans[0];
        let mut benches = vec![Bench::set_up(plan, self.scratch, self.interrupt)?];
        benches.extend(plans[1..].iter().map(|plan| benches[0].with_plan(plan)).collect::<Vec<_>>());
        let stream = &benches[0].data(1).summary.stream;
        let units = plan.units_of_a_trial(stream.units);
        if plan.blocks.may_claim() && self.preflight.is_none() {
            self.preflight = Some(gates::preflight(self.scratch, Some(benches[0].data(1).summary.data_bytes)));
        }
        benches.iter_mut().for_each(|bench| bench.preflight = self.preflight.clone());
        let mut screen = Screen::new(plan.blocks, plan.chosen.len() * plans.len(), units, plan.end);
        for (chosen, outcome) in &plan.left_out {
            let record = benches[0].left_out(chosen, outcome.clone());
            screen.note(&record);
            self.results.save(&record)?;
        }
        let results = &mut self.results;
        let ended = rounds::run(&benches, Some(Time { left: time, at_most: time }), &mut |event| {
            // First the screen: a record that cannot be saved is shown all the same.
            screen.tell(&event);
            measure::keep(&event, results)
        });
        self.records.extend(screen.end());
        match ended {
            Err(_) if self.interrupt.is_set() => Ok(Ended::Interrupted(None)),
            Ok(Ended::Stopped(RunEnd::Noise)) => {
                complain("kvfair: the machine disturbed most blocks");
                Ok(Ended::Stopped(RunEnd::Noise))
            }
            ended => ended,
        }
    }
}
