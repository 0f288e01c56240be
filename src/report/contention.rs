//! What several writers of the same records cost each other: what they asked again, and how long the store says that
//! they waited.

use super::store_stats;
use crate::model::record::Record;
use crate::model::trial::Via;
use crate::model::units;
use crate::stats::sample::Sample;

/// A conflict is a get and a set for nothing.
const OPS_OF_A_CONFLICT: f64 = 2.0;

/// "contention: 1,234 conflicts; ..." of a target whose clients share one job; nothing where neither the way nor the
/// store shows any.
pub fn words(records: &[Record], target: &str) -> Option<String> {
    let counts = |record: &&Record| record.target.label == target && record.block > 0 && record.is_right();
    let trials: Vec<&Record> = records.iter().filter(counts).filter(|record| is_shared(record)).collect();
    let told: Vec<String> = conflicts(&trials).into_iter().chain(store_stats::waits(&trials)).collect();
    (!told.is_empty()).then(|| format!("contention: {}", told.join("; ")))
}

/// Clients who draw their requests share no work.
fn is_shared(record: &Record) -> bool {
    record.clients > 1 && record.job.load.is_none() && record.took_s().is_some()
}

/// What check-and-set had to ask again.
fn conflicts(trials: &[&Record]) -> Option<String> {
    trials.first().filter(|first| first.job.via == Via::Cas)?;
    let median = |number: fn(&Record) -> f64| {
        Sample::new(trials.iter().map(|trial| number(trial)).collect()).map_or(0.0, |sample| sample.median())
    };
    let conflicts = median(|trial| trial.metrics().conflicts as f64);
    if conflicts == 0.0 {
        return Some("no conflicts".to_string());
    }
    let plural = if conflicts == 1.0 { "" } else { "s" };
    Some(format!(
        "{} conflict{plural}; {} % of the ops were asked for nothing, which took about {} of the {} seconds that its \
         clients waited",
        units::thousands(conflicts.round() as u64),
        units::digits(median(lost_share) * 100.0),
        units::seconds(median(|trial| lost_share(trial) * waited_s(trial))),
        units::seconds(median(waited_s))
    ))
}

/// Of the ops of a trial.
fn lost_share(trial: &Record) -> f64 {
    let metrics = trial.metrics();
    (OPS_OF_A_CONFLICT * metrics.conflicts as f64 / metrics.ops.max(1) as f64).min(1.0)
}

/// For answers: the final flush asks nothing.
fn waited_s(trial: &Record) -> f64 {
    trial.phase("run").map_or(0.0, |run| run.metrics.waiting_s)
}
