//! What several writers of the same records cost each other: what they asked again, and how long the store says that
//! they waited.

use super::store_stats;
use kvfair_core::part::Part;
use kvfair_core::record::Record;
use kvfair_core::trial::Via;
use kvfair_core::units;
use kvfair_stats::sample::Sample;

/// A conflict is a get and a set for nothing.
const OPS_OF_A_CONFLICT: f64 = 2.0;

/// "contention: 1,234 conflicts; ..." of a target whose clients share one job; nothing where neither the way nor the
/// store shows any.
pub fn words(records: &[Record], target: &str) -> Option<String> {
    let counts = |record: &&Record| record.block > 0 && !record.discarded && record.is_right();
    let of_target = records.iter().filter(|record| record.target.label == target);
    let trials: Vec<&Record> = of_target.filter(counts).filter(|record| is_shared(record)).collect();
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
        "{} conflict{plural}; {} % of the ops were wasted, about {} s of the {} s that clients waited",
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

/// How long clients waited for answers, without the final flush.
fn waited_s(trial: &Record) -> f64 {
    trial.phase(Part::Run).map_or(0.0, |run| run.metrics.waiting_s)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::histograms::tests::record;
    use kvfair_core::metrics::Metrics;
    use kvfair_core::record::Phase;

    /// A trial of 7 clients.
    fn trial(via: Via, conflicts: u64) -> Record {
        let mut trial = record("a", "finished", &[]);
        trial.job.via = via;
        let metrics = Metrics { ops: 1_000 + 2 * conflicts, conflicts, waiting_s: 4.0, ..Metrics::default() };
        trial.phases = vec![Phase { part: Part::Run, took_s: 1.0, metrics, ..Phase::default() }];
        trial
    }

    #[test]
    fn conflicts_cost_their_share_of_the_waiting() {
        let told = |trials: &[Record]| words(trials, "a");
        let half = "contention: 500 conflicts; 50.0 % of the ops were wasted, about 2.00 s of the 4.00 s that clients \
                    waited";
        assert_eq!(told(&[trial(Via::Cas, 500)]).as_deref(), Some(half));
        assert_eq!(told(&[trial(Via::Cas, 0)]).as_deref(), Some("contention: no conflicts"));
        assert_eq!(told(&[trial(Via::Batch, 0)]), None);
        let alone = Record { clients: 1, ..trial(Via::Cas, 500) };
        let discarded = Record { discarded: true, ..trial(Via::Cas, 500) };
        let warmed_up = Record { block: 0, ..trial(Via::Cas, 500) };
        assert_eq!((told(&[alone]), told(&[discarded]), told(&[warmed_up])), (None, None, None));
    }

    #[test]
    fn what_the_store_says_of_waiting_is_told() {
        let waits = BTreeMap::from([("Innodb_row_lock_waits".to_string(), [2.0, 9.0])]);
        let told = words(&[Record { store_stats: waits.into(), ..trial(Via::Portable, 0) }], "a");
        assert_eq!(told.as_deref(), Some("contention: waits for a row's lock +7 (Innodb_row_lock_waits)"));
    }
}
