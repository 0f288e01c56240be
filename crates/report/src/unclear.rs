//! Points of which nothing is said, since the machine disturbed most of their trials: no number, and the cause once.

use super::point::{Phases, Point, called, grouped};
use super::standing::Counted;
use super::swept::with;
use kvfair_core::disturbed::{Disturbed, disturbed};
use kvfair_core::noise::Reason;
use kvfair_core::record::{Phase, Record};

/// Those that the machine left alone; where it disturbed most of them all, and what disturbed them.
pub(super) fn sorted_out<'a>(phases: &[(&'a Record, &'a Phase)]) -> (Phases<'a>, Option<Disturbed>) {
    let mut quiet = Vec::new();
    let mut causes = Vec::new();
    for (record, phase) in phases {
        match disturbed(record, phase) {
            Some(cause) => causes.push(cause),
            None => quiet.push((*record, *phase)),
        }
    }
    if 2 * causes.len() > phases.len() { (phases.to_vec(), worst(&causes)) } else { (quiet, None) }
}

/// All causes as one: the worst reason of each kind.
fn worst(causes: &[Disturbed]) -> Option<Disturbed> {
    let mut reasons: Vec<Reason> = Vec::new();
    for reason in causes.iter().flat_map(|cause| &cause.reasons) {
        match reasons.iter_mut().find(|known| known.sign == reason.sign) {
            Some(known) if known.share >= reason.share => {}
            Some(known) => *known = *reason,
            None => reasons.push(*reason),
        }
    }
    (!causes.is_empty()).then(|| Disturbed { stalled: causes.iter().all(|cause| cause.stalled), reasons })
}

/// Whether a number that was asked for is missing: of a point of a target that is no baseline.
pub fn is_any(records: &[Record], counted: &Counted) -> bool {
    let groups = grouped(records, counted).0;
    groups.values().any(|phases| !phases[0].0.target.baseline && sorted_out(phases).1.is_some())
}

/// A line for points whose rate a stall explains, and one for all others.
pub(super) fn remarks(points: &[Point]) -> Vec<String> {
    let of = |stalled: bool| {
        let points: Vec<(&Point, Disturbed)> =
            points.iter().filter_map(|point| Some((point, point.unclear.clone()?))).collect();
        let points: Vec<&(&Point, Disturbed)> = points.iter().filter(|(_, what)| what.stalled == stalled).collect();
        let causes: Vec<Disturbed> = points.iter().map(|(_, what)| what.clone()).collect();
        let what = worst(&causes)?;
        let mut names: Vec<&str> = points.iter().map(|(point, _)| point.target.as_str()).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        let here = match points.as_slice() {
            [(point, _)] => format!(", {} {}", called(point.part), with(point.swept, point.step())),
            all => format!(" at {} points", all.len()),
        };
        Some(format!("unclear: {what}; no result for {}{here}", names.join(", ")))
    };
    [of(false), of(true)].into_iter().flatten().collect()
}
