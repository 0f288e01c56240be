//! Trials through the noise gates: one that the machine disturbed is discarded and run again, twice at most.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::harness::plan::{Chosen, Plan};
use crate::harness::signals::INTERRUPTED;
use crate::harness::timing::Timer;
use crate::harness::trial::Bench;
use crate::model::disturbed::{self, Disturbed};
use crate::model::noise::{Noise, Yardstick};
use crate::model::promise::Promise;
use crate::model::record::{Outcome, Record};

/// How often a disturbed trial is run again.
const REPEATS: u32 = 2;

/// The gates of a search or of pilots: their trials are held against each other.
pub struct Gates {
    seen: Vec<Noise>,
    /// Time that repeats may take from now on.
    spare: Duration,
    /// Of the last trial that was disturbed each time.
    pub disturbed: Option<Disturbed>,
}

/// One trial through the gates.
pub struct GatedTrial {
    pub record: Record,
    /// How long it took, the last time that it was run.
    pub took: Duration,
    /// What disturbed it each time: then nothing is said of its target.
    pub disturbed: Option<Disturbed>,
}

const HINT: &str = "hint: stop other programs, or run when the machine is quiet";

/// Nothing is said of a target, since the machine disturbed each try.
#[derive(Debug)]
pub struct Unclear {
    pub target: String,
    pub what: Disturbed,
}

impl fmt::Display for Unclear {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unclear: {}; no result for {}\n{HINT}", self.what, self.target)
    }
}

impl std::error::Error for Unclear {}

/// Hears of each trial that was disturbed, and of what disturbed it.
pub type Tell<'a> = &'a mut dyn FnMut(&Record, &Disturbed) -> Result<()>;

impl Gates {
    /// Repeats may take so much time in all.
    pub fn new(spare: Duration) -> Gates {
        Gates { seen: Vec::new(), spare, disturbed: None }
    }

    /// One trial, again while the machine disturbs it. With a promise, what breaks it must not be the machine's doing.
    pub fn trial(
        &mut self,
        bench: &Bench<'_>,
        chosen: &Chosen,
        (block, position): (u32, u32),
        promise: Option<Promise>,
        tell: Tell<'_>,
    ) -> Result<GatedTrial> {
        for repeats in 0.. {
            let timer = Timer::start();
            let record = bench.trial(chosen, block, position, &mut |_| {});
            let mut record = record.map_err(|_| anyhow!(INTERRUPTED))?;
            let took = timer.elapsed();
            self.seen.push(record.noise);
            let yardstick = Yardstick::of(self.seen.iter());
            let disturbed = counts(&record).then(|| disturbed::trial(&record, yardstick, promise)).flatten();
            let Some(what) = disturbed else { return Ok(GatedTrial { record, took, disturbed: None }) };
            record.discarded = true;
            tell(&record, &what)?;
            if repeats == REPEATS || self.spare < took {
                self.disturbed = Some(what.clone());
                return Ok(GatedTrial { record, took, disturbed: Some(what) });
            }
            self.spare -= took;
        }
        unreachable!("a trial is run again a few times")
    }
}

/// What did not finish, or was wrong, stays so however quiet the machine is.
fn counts(record: &Record) -> bool {
    record.outcome == Outcome::Finished && record.is_right()
}

/// What has a trial of a run be run again that was so often before: one with points, where blocks are too few to be the
/// repeats of each other.
pub fn again(plan: &Plan, record: &Record, repeats: u32) -> Option<Disturbed> {
    let has_points = record.phases.iter().any(|phase| phase.noise.is_some()) && !plan.answers_only;
    let may = has_points && !plan.blocks.may_claim() && repeats < REPEATS && counts(record);
    if may { disturbed::trial(record, Yardstick::default(), None) } else { None }
}
