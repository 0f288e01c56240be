//! Whether a trial was asked what the expected state says: units and ops, part by part.

use std::ops::RangeInclusive;

use super::oracle::Summary;
use super::plan::Plan;
use crate::jobs::keyed::questions::points_of;
use crate::jobs::{Part, StreamCounts, Writing};
use crate::model::load::At;
use crate::model::record::{Phase, Record};

/// All targets must have been asked the same: the expected state holds how many units and ops that is.
pub fn check(plan: &Plan, summary: &Summary, record: &Record) -> Result<(), String> {
    let Some(kind) = plan.kind else { return Ok(()) };
    let measured = record.phases.iter().filter(|phase| !matches!(phase.part, Part::Load | Part::FinalFlush));
    let fills = (kind.open)(&plan.job).fills();
    for phase in measured {
        let (units, ops) = expected(plan, summary, record, phase);
        // What was given up or cut off was not asked to its end.
        let given_up = phase.cut_off.is_some() || phase.open.as_ref().is_some_and(|open| open.late.is_some());
        // Each miss was followed by a set.
        let counted = &phase.metrics;
        let asked = counted.ops.saturating_sub(if fills { counted.misses } else { 0 });
        let right = if given_up { counted.units <= units } else { counted.units == units && ops.contains(&asked) };
        if !right {
            let reason = format!(
                "{} units and {} ops were counted where the input has {units} and {ops:?}: did the input change under way?",
                counted.units, asked
            );
            return Err(reason);
        }
    }
    Ok(())
}

/// The units and ops of a part: each point of a job of requests has its own, any other job those of its input.
fn expected(plan: &Plan, summary: &Summary, record: &Record, phase: &Phase) -> (u64, RangeInclusive<u64>) {
    let Summary { stream, .. } = summary;
    if phase.part == Part::Ask {
        let queries = record.job.fans.queries;
        return (queries, queries..=queries);
    }
    if record.job.load.is_none() {
        let counts =
            StreamCounts { ops: stream.ops, asking_units: summary.asking_units, clients: u64::from(record.clients) };
        let ops = plan.kind.map_or(0..=u64::MAX, |kind| (kind.asked)(record.job.via, &counts));
        return (stream.measured_units(), ops);
    }
    let point = points_of(&record.job).into_iter().find(|at| at.number == phase.point);
    let at = point.unwrap_or_else(|| At::closed(phase.clients, 0));
    // A read whose record is then written is two ops of one unit; each client's last batch may be a small one.
    let (requests, fewest) = (at.requests, at.requests.div_ceil(at.batch.into()));
    let most = if writes_what_it_read(plan) { 2 * requests } else { fewest + u64::from(at.clients) };
    (requests, fewest..=if at.batch > 1 || writes_what_it_read(plan) { most } else { requests })
}

fn writes_what_it_read(plan: &Plan) -> bool {
    let requests = plan.kind.and_then(|kind| kind.requests.as_ref());
    requests.is_some_and(|requests| requests.writing == Writing::ReadModifyWrite)
}
