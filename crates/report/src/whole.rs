//! Whether a results file tells that its run was cut off: by a kill, Ctrl-C, or the end of its time.

use std::collections::BTreeSet;

use super::levers;
use kvfair_core::levers::LeverPart;
use kvfair_core::record::{Outcome, Record};
use kvfair_stats::levers::{LeverSet, first_set};

/// "block 3 has 1 of 5 trials", second trials of an A/A control counted, where targets are missing from the last block
/// that had no reason to be. Nothing where nothing tells: a run may have fewer blocks than were planned, and targets
/// that failed are in no later block.
pub fn cut_off(records: &[Record]) -> Option<String> {
    let command = records.first()?.run.command.first().map(String::as_str);
    match command {
        _ if records[0].levers.is_some() => of_levers(records),
        None | Some("run" | "compare" | "history") => last_block(&records.iter().collect::<Vec<_>>()),
        Some(_) => None,
    }
}

/// The trials that are missing from the last of these blocks, which have the same targets.
fn last_block(records: &[&Record]) -> Option<String> {
    let counted: Vec<&Record> = records.iter().copied().filter(|record| is_of_a_block(record)).collect();
    // A block may have begun with the second trial of an A/A control.
    let is_run = |record: &&&Record| record.aa_control || is_of_a_block(record);
    let last = records.iter().filter(is_run).map(|record| record.block).max()?;
    let rtt_us = |record: &Record| record.network.map(|network| network.rtt_us);
    let of = |record: &Record| (record.target.label.clone(), record.job.units, record.durability, rtt_us(record));
    let with = |is: &dyn Fn(&Record) -> bool| -> BTreeSet<_> {
        counted.iter().filter(|record| is(record)).map(|record| of(record)).collect()
    };
    let before = with(&|record| record.block < last);
    let out = with(&|record| record.block < last && !is_good(record));
    let (due, there) = (before.difference(&out).count(), with(&|record| record.block == last).len());
    let twice = |block: u32| records.iter().filter(|record| record.aa_control && record.block == block).count();
    let before = counted.iter().map(|record| record.block).filter(|block| *block < last).max();
    let (more, due_more) = (twice(last), before.map_or(0, twice).max(twice(last)));
    (there < due).then(|| format!("block {last} has {} of {} trials", there + more, due + due_more))
}

fn is_of_a_block(record: &Record) -> bool {
    !record.aa_control && !record.ahead && !matches!(record.outcome, Outcome::LeftOut { .. })
}

fn is_good(record: &Record) -> bool {
    record.outcome == Outcome::Finished && record.is_right()
}

/// Of a run of levers each part has its blocks. What the blocks of gains chose is tried in fresh ones, and durability
/// levels come last: where no time was left for these, they have records that say so.
fn of_levers(records: &[Record]) -> Option<String> {
    let part = |record: &Record| record.levers.as_ref().map(|levers| levers.part);
    let last = part(records.last()?)?;
    let of_last: Vec<&Record> = records.iter().filter(|record| part(record) == Some(last)).collect();
    let levels = records[0].run.levers.as_ref().map_or(0, |run| run.levels.len());
    let (name, is_the_end) = match last {
        LeverPart::Gains => ("the blocks of gains", levels == 0 && !awaits_fresh_blocks(records)),
        LeverPart::Confirm { .. } => ("the fresh blocks", levels == 0),
        LeverPart::Synthetic => ("the blocks of set/get alone", levels == 0),
        LeverPart::Durability => ("the durability levels", true),
    };
    let missing =
        last_block(&of_last).or_else(|| levels_of_one_block(&of_last).filter(|_| last == LeverPart::Durability));
    match missing {
        Some(what) => Some(format!("{name}: {what}")),
        None => (!is_the_end).then(|| format!("nothing follows {name}")),
    }
}

/// The first block has each level.
fn levels_of_one_block(records: &[&Record]) -> Option<String> {
    let due = records.first()?.run.levers.as_ref()?.levels.len();
    let there = records.iter().map(|record| record.durability).collect::<BTreeSet<_>>().len();
    (there < due).then(|| format!("block 1 has {there} of {due} trials"))
}

/// Some levers of those that were measured together were chosen.
fn awaits_fresh_blocks(records: &[Record]) -> bool {
    let chosen = levers::seen(records).map(|seen| (first_set(seen.all, &seen.gains), seen.all));
    chosen.is_some_and(|(set, all)| set != LeverSet::BASE && set != all)
}

#[cfg(test)]
mod tests {
    use super::super::histograms::tests::record;
    use super::*;
    use kvfair_core::levers::{LeverRun, LeverTrial};
    use kvfair_core::trial::Durability;

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
        assert!(cut_off(&[&whole[..4], &[aa_control.clone()]].concat()).is_some(), "it stands for no first one");
        let begun = [&whole[..3], &[aa_control]].concat();
        assert_eq!(cut_off(&begun).as_deref(), Some("block 2 has 1 of 4 trials"), "it may be the first of its block");
        let searched = whole.clone().map(|mut record| {
            record.run.command = vec!["find-max".to_string()];
            record
        });
        assert_eq!(cut_off(&searched[..5]), None);
    }

    fn of_part(part: LeverPart, block: u32, label: &str) -> Record {
        let levers = Some(LeverTrial { part, changed: Vec::new() });
        let mut record = Record { levers, ..of(block, label) };
        record.run.command = vec!["levers".to_string()];
        record.run.levers = Some(LeverRun::default());
        record.run.blocks = 2;
        record
    }

    #[test]
    fn each_part_of_a_run_of_levers_has_its_blocks() {
        let gains = |block, label| of_part(LeverPart::Gains, block, label);
        let whole = [gains(1, "a"), gains(1, "b"), gains(2, "b"), gains(2, "a")];
        assert_eq!(cut_off(&whole), None);
        assert_eq!(cut_off(&whole[..3]).as_deref(), Some("the blocks of gains: block 2 has 1 of 2 trials"));
        assert_eq!(cut_off(&whole[..2]), None, "the time was over, perhaps");
        let fresh = |block, label| of_part(LeverPart::Confirm { attempt: 1 }, block, label);
        let all = [&whole[..], &[fresh(1, "a"), fresh(1, "b"), fresh(1, "c"), fresh(2, "c")]].concat();
        assert_eq!(cut_off(&all[..7]), None);
        assert_eq!(cut_off(&all).as_deref(), Some("the fresh blocks: block 2 has 1 of 3 trials"));
    }

    /// They are the last part of a run that has them, whether there was time for them or not.
    #[test]
    fn a_run_of_levers_ends_with_its_durability_levels() {
        let levels = [Durability::None, Durability::Power];
        let with_levels = |mut record: Record| {
            record.run.levers = Some(LeverRun { levels: levels.to_vec(), ..LeverRun::default() });
            record
        };
        let gains = |block| with_levels(of_part(LeverPart::Gains, block, "a"));
        let level = |block, place: usize| {
            let record = with_levels(of_part(LeverPart::Durability, block, "a"));
            Record { durability: levels[place], ..record }
        };
        let whole = [gains(1), gains(2), level(1, 0), level(1, 1), level(2, 1), level(2, 0)];
        let cut = |records: usize| cut_off(&whole[..records]);
        assert_eq!(cut(2).as_deref(), Some("nothing follows the blocks of gains"));
        assert_eq!(cut(3).as_deref(), Some("the durability levels: block 1 has 1 of 2 trials"));
        assert_eq!((cut(4), cut(6)), (None, None));
        assert_eq!(cut(5).as_deref(), Some("the durability levels: block 2 has 1 of 2 trials"));
        let mut no_time = whole[..4].to_vec();
        for record in &mut no_time[2..] {
            record.outcome = Outcome::left_out("the time of the run was over before its turn");
        }
        assert_eq!(cut_off(&no_time), None);
    }
}
