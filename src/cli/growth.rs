//! `kvfair growth`: what grows out of proportion, of each store by itself.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};

use super::absent::{IfMissing, without_missing};
use super::args::{Growth, Look};
use super::measure::or_lost;
use super::planned::{args_of, plan_of};
use super::refusals::{self, Intent};
use super::shown::print_records;
use super::{Exit, Usage, complain, paged, verified};
use crate::harness::plan::{self, Plan};
use crate::harness::save::{self, Results};
use crate::harness::scratch;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::model::record::Record;
use crate::report::growth as report;
use crate::scheduler::growth::{NoTime, Piloted, Tell, Trials};

pub fn growth(args: &Growth) -> Result<Exit> {
    let look = Look { forms: args.found.forms.clone(), ..Look::default() };
    paged::is_to_be_new(look.forms.html.as_deref())?;
    let plan = plan(args)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path = args.found.output.clone().unwrap_or_else(|| save::default_path(&plan.began, "growth"));
    let mut results = Results::create(&path)?;
    let mut records = Vec::new();
    let mut tell = |record: &Record| {
        records.push(record.clone());
        results.save(record)?;
        results.sync()
    };
    let failure = measure(&plan, args.budget, scratch.path(), &interrupt, &mut tell).map_err(refused).err();
    let lost = results.is_there().err().filter(|_| !records.is_empty());
    if records.is_empty() {
        results.discard_if_empty();
    } else if lost.is_none() {
        complain(&format!("results: {}", results.path().display()));
    }
    if interrupt.is_set() {
        complain(&format!("kvfair: {INTERRUPTED}; {} trials were finished", records.len()));
    }
    // Pilots of a budget that was refused tell nothing. Whatever else went wrong, what was finished is shown.
    let is_refused = failure.as_ref().is_some_and(|error| error.is::<Usage>());
    let (exit, lost) = match records.iter().any(|record| record.block > 0 || !is_refused) {
        false => (Exit::Ok, lost),
        true => show(&mut records, &look, lost, &path)?,
    };
    match failure {
        _ if interrupt.is_set() => or_lost(Ok(Exit::Interrupted), lost),
        // A rerun has the budget of the first run, which its user did not type.
        Some(error) if is_refused && args.again.is_some() => {
            complain(&format!("kvfair: {}", error.to_string().lines().next().unwrap_or_default()));
            or_lost(Ok(Exit::Inconclusive), lost)
        }
        Some(error) => or_lost(Err(error), lost),
        None => or_lost(Ok(exit), lost),
    }
}

/// Each target by itself, within a budget of its own. A budget that is too short for one of them is refused before any
/// of them is measured.
fn measure(plan: &Plan, budget: Duration, scratch: &Path, interrupt: &Interrupt, tell: &mut Tell<'_>) -> Result<()> {
    let plans: Vec<Plan> =
        plan.chosen.iter().map(|chosen| Plan { chosen: vec![chosen.clone()], ..plan.clone() }).collect();
    let all: Vec<Trials<'_>> = plans.iter().map(|plan| Trials { plan, budget, scratch, interrupt }).collect();
    let piloted = all.iter().map(|trials| {
        complain(&format!("kvfair: {}: at most {:.0} s", trials.plan.chosen[0].target.label, budget.as_secs_f64()));
        trials.pilots(tell)
    });
    let piloted: Vec<Piloted> = piloted.collect::<Result<_>>()?;
    all.iter().zip(piloted).try_for_each(|(trials, piloted)| trials.repetitions(piloted, tell))
}

/// A budget that is too short is a matter of what was typed.
fn refused(error: Error) -> Error {
    match error.downcast_ref::<NoTime>() {
        Some(no_time) => {
            let tens = (no_time.needed.as_secs_f64() / 10.0).ceil() * 10.0;
            anyhow!(Usage(format!("{no_time}\nhint: --budget {tens:.0}s would do")))
        }
        None => error,
    }
}

/// Prints it and writes the page, whatever became of the results file.
fn show(records: &mut [Record], look: &Look, lost: Option<Error>, results: &Path) -> Result<(Exit, Option<Error>)> {
    verified::note(records);
    let exit = print_records(records, look)?;
    let paged = paged::write(records, look, lost.is_none().then_some(results));
    Ok((exit, lost.or(paged.err())))
}

/// The plan of `getset` on these targets: the scheduler says what is swept over.
fn plan(args: &Growth) -> Result<Plan> {
    let seed = args.seed.unwrap_or_else(plan::any_seed).to_string();
    let words = ["getset", "--clients", "1", "--blocks", "6", "--seed", &seed, "--"];
    let mut plan = plan_of(&args_of(words.into_iter().chain(args.targets.iter().map(String::as_str)))?)?;
    if let Some(typed) = &args.again {
        plan.command.clone_from(typed);
    }
    // By its name the file is known for what it is.
    let place = plan.command.iter().position(|word| word == report::NAME).unwrap_or(0);
    plan.command.drain(..place);
    refusals::refuse(&plan.chosen, &Intent::Growth)?;
    plan.chosen = without_missing(plan.chosen, |_| true, IfMissing::of(args.skip_missing))?;
    Ok(plan)
}
