//! Whether a results file tells that its run was cut off: by a kill, Ctrl-C, or the end of its time.

use std::collections::BTreeSet;

use crate::model::record::{Outcome, Record};

/// "block 3 has 1 of 4 trials", where targets are missing from the last block that had no reason to be. Nothing where
/// nothing tells: a run may have fewer blocks than were planned, and targets that failed are in no later block.
pub fn cut_off(records: &[Record]) -> Option<String> {
    let has_blocks = |record: &&Record| {
        matches!(record.run.command.first().map(String::as_str), None | Some("run" | "compare"))
            && !record.aa_control
            && !record.ahead
            && !matches!(record.outcome, Outcome::LeftOut { .. })
    };
    let counted: Vec<&Record> = records.iter().filter(has_blocks).collect();
    let last = counted.iter().map(|record| record.block).max()?;
    let rtt_us = |record: &Record| record.network.map(|network| network.rtt_us);
    let of = |record: &Record| (record.target.label.clone(), record.job.units, rtt_us(record));
    let with = |is: &dyn Fn(&Record) -> bool| -> BTreeSet<_> {
        counted.iter().filter(|record| is(record)).map(|record| of(record)).collect()
    };
    let is_good = |record: &Record| record.outcome == Outcome::Finished && record.is_right();
    let before = with(&|record| record.block < last);
    let out = with(&|record| record.block < last && !is_good(record));
    let (due, there) = (before.difference(&out).count(), with(&|record| record.block == last).len());
    (there < due).then(|| format!("block {last} has {there} of {due} trials"))
}

#[cfg(test)]
mod tests {
    use super::super::histograms::tests::record;
    use super::*;

    fn of(block: u32, label: &str) -> Record {
        Record { block, ..record(label, "finished", &[]) }
    }

    #[test]
    fn only_who_is_missing_without_a_reason_tells_of_an_end_too_early() {
        let whole = [of(1, "a"), of(1, "b"), of(1, "c"), of(2, "c"), of(2, "a"), of(2, "b")];
        assert_eq!(cut_off(&whole), None);
        assert_eq!(cut_off(&whole[..3]), None, "one block has nothing beside it");
        assert_eq!(cut_off(&whole[..5]).as_deref(), Some("block 2 has 2 of 3 trials"));
        let mut failed = whole.to_vec();
        failed[1].outcome = Outcome::Failed { reason: "it died".to_string() };
        assert_eq!(cut_off(&failed[..5]), None, "b was out");
        assert_eq!(cut_off(&failed[..4]).as_deref(), Some("block 2 has 1 of 2 trials"));
        let mut aa_control = of(2, "a");
        aa_control.aa_control = true;
        assert!(cut_off(&[&whole[..4], &[aa_control]].concat()).is_some(), "a second trial stands for no first one");
        let searched = whole.clone().map(|mut record| {
            record.run.command = vec!["find-max".to_string()];
            record
        });
        assert_eq!(cut_off(&searched[..5]), None);
    }
}
