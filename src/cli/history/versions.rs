//! Versions of a store, measured in the same blocks.

use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::super::absent::{IfMissing, without_missing};
use super::super::args::{Exec, History, How, Look, RunArgs};
use super::super::measure::{Ran, measure, or_lost};
use super::super::paged;
use super::super::planned::plan_of;
use super::super::shown::print_records;
use super::super::{Exit, Usage, complain, find_job, points, versioned};
use crate::harness::plan::Plan;
use crate::harness::save;
use crate::harness::scratch;
use crate::harness::serve::PROGRAM;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::starts;
use crate::model::record::Record;
use crate::report::versions as report;

/// Clients of a job that sweeps over their number unless it is told otherwise.
const CLIENTS: &str = "10";
const ONE_POINT: &str =
    "versions are compared at one point, as fast as it goes\nhint: name one number or way in place of a list";

pub fn versions(args: History, job: &str, targets: Vec<String>) -> Result<Exit> {
    let (svg, look) = (args.svg, args.how.look());
    if targets.len() < 2 {
        let hint = format!("kvfair history {job} 'redis?{PROGRAM}=./redis-7.0' 'redis?{PROGRAM}=./redis-8'");
        let what = match targets.as_slice() {
            [one] => format!("one version has no history: '{one}' has nothing beside it"),
            _ => "no version is named".to_string(),
        };
        return Err(anyhow!(Usage(format!("{what}\nhint: {hint}; `kvfair history` alone follows results files"))));
    }
    let how = one_point(job, args.how)?;
    let run = RunArgs { job: Some(job.to_string()), targets, own: Exec::default(), how };
    let plan = plan_of(&run)?;
    if plan.chosen.len() != run.targets.len() {
        return Err(anyhow!(Usage(ONE_POINT.to_string())));
    }
    is_one_point(&plan)?;
    without_missing(plan.chosen.clone(), |_| true, IfMissing::Refuse)?;
    if let Some(exit) = all_start(&plan)? {
        return Ok(exit);
    }
    finish(measure(&run)?, &look, svg.as_deref())
}

/// A job of requests is compared at one number of clients.
fn one_point(job: &str, mut how: How) -> Result<How> {
    let kind = find_job(job)?;
    let requests = kind.requests.as_ref();
    if how.clients.is_none() && requests.is_some_and(|requests| requests.clients.contains(',')) {
        how.clients = Some(points::parse(CLIENTS).map_err(|why| anyhow!(why))?);
    }
    Ok(how)
}

fn is_one_point(plan: &Plan) -> Result<()> {
    let points = plan.points(&plan.job, 1).len();
    if points > 1 || plan.sizes.len() > 1 || plan.orders.len() > 1 || plan.rtts_us.len() > 1 || plan.is_paced() {
        return Err(anyhow!(Usage(ONE_POINT.to_string())));
    }
    Ok(())
}

/// Starts each version once and says what it is. Where one does not start nothing is measured, and all of those are
/// named.
fn all_start(plan: &Plan) -> Result<Option<Exit>> {
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let mut failed = false;
    for chosen in &plan.chosen {
        let label = &chosen.target.label;
        match starts::version(plan, chosen, scratch.path(), &interrupt) {
            Ok(None) => {}
            Ok(Some(version)) => complain(&format!("kvfair: {label}: {version}")),
            Err(_) if interrupt.is_set() => {
                complain(&format!("kvfair: {INTERRUPTED}; nothing was measured"));
                return Ok(Some(Exit::Interrupted));
            }
            Err(why) => {
                failed = true;
                complain(&format!("kvfair: {label} does not start: {why}"));
            }
        }
    }
    if failed {
        complain("hint: nothing was measured: mend the program or leave it out");
    }
    Ok(failed.then_some(Exit::Missing))
}

/// What was finished is shown, whatever went wrong.
fn finish(ran: Ran, look: &Look, svg: Option<&Path>) -> Result<Exit> {
    let records = &ran.records;
    if records.is_empty() {
        return or_lost(ran.ended, ran.lost);
    }
    print_records(records, look)?;
    let results = ran.lost.is_none().then_some(ran.path.as_path());
    let paged = paged::write(records, look, results);
    let drawn = svg.map_or(Ok(()), |file| draw(records, file));
    or_lost(ran.ended, ran.lost.or(paged.err()).or(drawn.err()))
}

fn draw(records: &[Record], file: &Path) -> Result<()> {
    let labels = versioned::labels(records).unwrap_or_default();
    save::write_new(&[(file.to_path_buf(), versioned::drawn(&report::report(records, &labels)))])?;
    complain(&format!("chart: {}", file.display()));
    Ok(())
}
