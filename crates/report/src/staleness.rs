//! How old what was read from replicas was: the share of stale reads, and how far these were behind. docs/replicas.md
//! has the formulas.

use anyhow::Result;

use super::formats::{or_dash, tail};
use super::times;
use kvfair_core::hist::Times;
use kvfair_core::record::{Phase, Record};
use kvfair_core::units;

/// Of all trials of a target, or of a point of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stale {
    /// Reads that replicas answered.
    pub reads: u64,
    pub stale: u64,
    /// Of the stale ones; nothing where there are none.
    pub ns: Option<Percentiles>,
    pub versions: Option<Percentiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    pub p50: u64,
    /// Only where ten or more are beyond it.
    pub p99: Option<u64>,
    pub max: u64,
}

impl Percentiles {
    fn of(times: &Times) -> Option<Percentiles> {
        let (p50, p99, max) = (times.median_ns(), times.quantile_ns(0.99), times.max_ns());
        (times.count() > 0).then_some(Percentiles { p50, p99, max })
    }
}

impl Stale {
    /// Nothing where no replica was read.
    pub fn of(phases: &[(&Record, &Phase)]) -> Result<Option<Stale>> {
        let seen = || phases.iter().filter_map(|(_, phase)| phase.staleness.as_ref());
        // The first server is the primary.
        let of_replicas = |counts: &[u64]| counts.iter().skip(1).sum::<u64>();
        let reads = seen().map(|seen| of_replicas(&seen.reads)).sum();
        if reads == 0 {
            return Ok(None);
        }
        let behind_ns = times::merged(phases, |phase| phase.staleness.as_ref().map(|seen| &seen.behind_ns))?;
        let versions = times::merged(phases, |phase| phase.staleness.as_ref().map(|seen| &seen.versions_behind))?;
        Ok(Some(Stale {
            reads,
            stale: seen().map(|seen| of_replicas(&seen.stale)).sum(),
            ns: Percentiles::of(&behind_ns),
            versions: Percentiles::of(&versions),
        }))
    }

    pub fn share(&self) -> f64 {
        self.stale as f64 / self.reads as f64
    }

    /// "1.2 %".
    pub fn share_told(&self) -> String {
        format!("{} %", units::digits(self.share() * 100.0))
    }

    /// How long stale reads were behind: p50, p99 and worst.
    pub fn time_told(&self) -> String {
        or_dash(self.ns, |of| in_three(tail(Some(of.p50)), tail(of.p99), tail(Some(of.max))))
    }

    /// By how many versions, in the same way.
    pub fn versions_told(&self) -> String {
        let number = |of: Option<u64>| or_dash(of, units::thousands);
        or_dash(self.versions, |of| in_three(number(Some(of.p50)), number(of.p99), number(Some(of.max))))
    }

    /// "1.2 % of 3,000 stale, behind by 1.0 ms / 2.0 ms / 9.0 ms and 1 / 2 / 6 versions".
    pub fn in_words(&self) -> String {
        let share = format!("{} of {} stale", self.share_told(), units::thousands(self.reads));
        let behind = || format!("{share}, behind by {} and {} versions", self.time_told(), self.versions_told());
        if self.stale == 0 { share } else { behind() }
    }
}

fn in_three(p50: String, p99: String, worst: String) -> String {
    format!("{p50} / {p99} / {worst}")
}

#[cfg(test)]
mod tests {
    use super::super::histograms::tests::record;
    use super::*;
    use kvfair_core::record::Staleness;

    fn phase(reads: &[u64], stale: &[u64], behind: &[(u64, u64)]) -> Phase {
        let (mut versions, mut ns) = (Times::default(), Times::default());
        for (behind, behind_ns) in behind {
            versions.record(*behind);
            ns.record(*behind_ns);
        }
        let (reads, stale) = (reads.to_vec(), stale.to_vec());
        let staleness = Staleness { reads, stale, versions_behind: versions.into(), behind_ns: ns.into() };
        Phase { staleness: Some(staleness), ..Phase::default() }
    }

    #[test]
    fn stale_reads_are_a_share_of_what_replicas_answered() {
        let record = record("any", "finished", &[]);
        let phases = [
            phase(&[50, 60, 40], &[0, 2, 0], &[(1, 2_000_000), (3, 4_000_000)]),
            phase(&[50, 60, 40], &[0, 0, 0], &[]),
        ];
        let phases: Vec<(&Record, &Phase)> = phases.iter().map(|phase| (&record, phase)).collect();
        let stale = Stale::of(&phases).unwrap().expect("replicas were read");
        assert_eq!((stale.reads, stale.stale, stale.share_told().as_str()), (200, 2, "1.00 %"));
        assert_eq!(stale.versions_told(), "1 / - / 3");
        assert_eq!(stale.ns.map(|of| of.p99), Some(None));
        assert!(stale.time_told().ends_with("ms"), "{}", stale.time_told());
    }

    #[test]
    fn nothing_is_told_where_no_replica_was_read_or_none_was_behind() {
        let record = record("any", "finished", &[]);
        let of = |phase: Phase| Stale::of(&[(&record, &phase)]).unwrap();
        assert_eq!(of(Phase::default()), None);
        assert_eq!(of(phase(&[100, 0, 0], &[0, 0, 0], &[])), None);
        let fresh = of(phase(&[0, 9, 0], &[0, 0, 0], &[])).expect("replicas were read");
        assert_eq!((fresh.share_told().as_str(), fresh.time_told().as_str()), ("0 %", "-"));
    }
}
