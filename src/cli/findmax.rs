//! `kvfair find-max`: from what was typed to a search, and from what it found to a printed table.

use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::args::FindMax;
use super::contact::contact;
use super::measure::{installed, or_lost, ping, tell_left};
use super::paged;
use super::planned::plan_of;
use super::points::Rates;
use super::refusals::{Intent, refuse};
use super::shown::print_report;
use super::{Exit, Usage, agents, complain, find_job, interrupted, typed};
use crate::harness::plan::Plan;
use crate::harness::save::{self, Results};
use crate::harness::signals::Interrupt;
use crate::harness::timing::End;
use crate::harness::{scratch, visits};
use crate::model::promise::Found;
use crate::model::record::Record;
use crate::model::room::Headroom;
use crate::model::units;
use crate::report::limits::LimitsReport;
use crate::report::render::Shown;
use crate::scheduler::findmax::{self, Search};

/// What a confirmation takes at the most, in steps.
const LONGEST: u64 = 3;

pub fn find_max(mut args: FindMax) -> Result<Exit> {
    let mut plan = planned(&mut args)?;
    paged::is_to_be_new(args.run.how.look.forms.html.as_deref())?;
    plan.chosen = installed(&args.run, plan.chosen)?;
    contact(&plan)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    match agents::greet(&plan, scratch.path(), &interrupt) {
        Err(_) if interrupt.is_set() => return Ok(interrupted(&interrupt, "nothing was run")),
        greeted => greeted?,
    }
    ping(&mut plan, scratch.path())?;
    let path = args.run.how.output.clone().unwrap_or_else(|| save::default_path(&plan.began, &plan.job.name));
    let mut results = Results::create(&path)?;
    plan.visits = Some(visits::beside(&path));
    plan.end = args.run.how.budget.map(End::within);
    let mut records = Vec::new();
    let mut tell = |record: &Record, told: &str| {
        let is_first = records.iter().all(|before: &Record| before.target.label != record.target.label);
        if let Some(unknown) = record.room.as_ref().filter(|_| is_first).and_then(Headroom::unknown) {
            complain(&format!("kvfair: {}: {unknown}", record.target.label));
        }
        complain(&step(record, told));
        records.push(record.clone());
        results.save(record)?;
        results.sync()
    };
    let search = Search { promise: args.slo, step_s: args.step };
    let (found, ended) = findmax::run(&plan, search, scratch.path(), &interrupt, &mut tell);
    tell_left(&path);
    let lost = results.is_there().err().filter(|_| !records.is_empty());
    if !records.is_empty() && lost.is_none() {
        complain(&format!("results: {}", results.path().display()));
    }
    let written = lost.is_none().then_some(path.as_path());
    results.discard_if_empty();
    let is_any = !found.is_empty() || records.iter().any(|record| !record.discarded);
    let ended = match ended {
        Err(_) if interrupt.is_set() => Ok(interrupted(&interrupt, &format!("{} trials were finished", records.len()))),
        // What the trials tell is shown, though no target's search may have come to its end.
        Err(error) if is_any => shown(&found, &args, &records, written).and(Err(error)),
        Err(error) => Err(error),
        Ok(()) => shown(&found, &args, &records, written),
    };
    or_lost(ended, lost)
}

/// The plan of a search, or why there is none.
fn planned(args: &mut FindMax) -> Result<Plan> {
    if find_job(args.run.job())?.requests.is_none() {
        let what = format!("the job {} has no rate\nhint: getset, mixed and ycsb-* have", args.run.job());
        return Err(anyhow!(Usage(what)));
    }
    if args.run.how.clients.as_ref().is_some_and(|clients| clients.0.len() > 1) {
        let what = "find-max takes one number of --clients, who share the rate\nhint: --clients 50";
        return Err(anyhow!(Usage(what.to_string())));
    }
    // Which rates is to be seen: what holds for any rate is checked.
    args.run.how.load.rate = Some(Rates::Shares(vec![50]));
    let mut plan = plan_of(&args.run)?;
    let longest_s = u64::from(args.step) * LONGEST;
    if args.run.how.timeout.as_secs() <= longest_s {
        let what = format!("--step {}: a trial may take {longest_s} s, and --timeout would cut it off", args.step);
        return Err(anyhow!(Usage(what)));
    }
    if args.run.targets.is_empty() {
        plan.chosen.retain(|one| !one.target.baseline);
    }
    refuse(&plan.chosen, &Intent::FindMax)?;
    Ok(plan)
}

/// "redis+unix 84,000/s: kept".
fn step(record: &Record, told: &str) -> String {
    let rate = record.job.load.as_ref().and_then(|load| load.rates.first());
    let rate = rate.map_or_else(|| "in a closed loop".to_string(), |&rate| format!("{}/s", units::thousands(rate)));
    format!("{} {rate}: {told}", record.target.label)
}

/// Prints it and writes the page; `results` is the file that has the records.
fn shown(found: &[Found], args: &FindMax, records: &[Record], results: Option<&Path>) -> Result<Exit> {
    let counted: Vec<Record> = records.iter().filter(|record| !record.discarded).cloned().collect();
    let report = LimitsReport::new(typed(), args.slo, &counted).with(found);
    let (exit, form) = (report.exit(), args.run.how.look.forms.form());
    print_report(&report, exit, form)?;
    paged::write_with(paged::of_search(&report), &counted, &args.run.how.look(), results)?;
    Ok(exit)
}
