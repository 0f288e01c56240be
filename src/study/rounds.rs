//! Blocks of trials: one trial of each target in random order, block after block.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;

use crate::lab::timing::Timer;
use crate::lab::trial::{Bench, Interrupted, Live};
use crate::words::record::{Outcome, Record};

/// Something that happened, for whoever saves or watches.
pub enum Event<'a> {
    /// A trial is under way: which one of how many, on which target, how far.
    Live {
        trial: u32,
        trials: u32,
        target: &'a str,
        live: Live,
    },
    Finished(&'a Record),
    /// So many blocks of the run are whole.
    Block(u32),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    AllBlocks,
    /// Another block would not have fitted into the budget.
    Budget,
    /// And what could not be cleaned up.
    Interrupted(Option<String>),
}

/// Runs all blocks. A target that did not finish once is not run again: it has no number to better.
///
/// With something left of a budget no block begins that would outlast it, going by the longest one so far; the first
/// always runs.
pub fn run(bench: &Bench<'_>, left: Option<Duration>, tell: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<Ended> {
    let plan = bench.plan;
    let mut out = HashSet::new();
    let mut longest = Duration::ZERO;
    let timer = Timer::start();
    for block in 1..=plan.blocks {
        if block > 1 && left.is_some_and(|left| timer.left_of(left) < longest) {
            return Ok(Ended::Budget);
        }
        let began = Timer::start();
        let order: Vec<usize> = plan.order(block).into_iter().filter(|place| !out.contains(place)).collect();
        let trials = order.len() as u32;
        for (position, &place) in (1..).zip(&order) {
            let chosen = &plan.chosen[place];
            let mut failure = Ok(());
            let target = chosen.target.label.as_str();
            let mut watch = |live| {
                if failure.is_ok() {
                    failure = tell(Event::Live { trial: position, trials, target, live });
                }
            };
            let record = match bench.trial(chosen, block, position, &mut watch) {
                Ok(record) => record,
                Err(Interrupted { left_behind }) => return Ok(Ended::Interrupted(left_behind)),
            };
            failure?;
            tell(Event::Finished(&record))?;
            if record.outcome != Outcome::Finished || !record.is_right() {
                out.insert(place);
            }
        }
        longest = longest.max(began.elapsed());
        tell(Event::Block(block))?;
    }
    Ok(Ended::AllBlocks)
}
