//! Exit codes: what each means, and which one a report has. README and help print the same table.

use super::cells::{Row, Status};
use super::point;
use super::run_report::RunReport;
use super::standing::Standing;
use super::typed::{store_of, value};
use super::unclear;
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::record::{Record, Verdict};

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Error = 1,
    Usage = 2,
    Missing = 3,
    WrongAnswers = 4,
    /// Slower than it may be.
    Regression = 5,
    /// No verdict.
    Inconclusive = 6,
    Interrupted = 130,
}

impl Exit {
    pub fn meaning(self) -> &'static str {
        TABLE.iter().find(|(exit, _)| *exit == self).map_or("", |(_, meaning)| meaning)
    }
}

/// The exit codes in their order, and what they mean.
pub const TABLE: [(Exit, &str); 8] = [
    (Exit::Ok, "all right"),
    (Exit::Error, "an error, a refused durability level, a limit of the store, a time-out"),
    (Exit::Usage, "usage"),
    (Exit::Missing, "a store is not installed or did not start"),
    (Exit::WrongAnswers, "wrong answers, or a durability claim that failed"),
    (Exit::Regression, "`compare --fail-if`: slower; `rerun`: a claim is contradicted"),
    (Exit::Inconclusive, "no verdict: too much noise, too few blocks for a claim, or a test that could not run"),
    (Exit::Interrupted, "interrupted; what was finished is kept and printed"),
];

/// The table as README has it.
pub fn markdown() -> String {
    let lines = TABLE.map(|(exit, meaning)| format!("| {} | {meaning} |\n", exit as u8));
    format!("| code | meaning |\n|---|---|\n{}", lines.concat())
}

/// The table as help has it, in one sentence.
pub fn listed() -> String {
    TABLE.map(|(exit, meaning)| format!("{} {}", exit as u8, meaning.replace("; what", ": what"))).join("; ")
}

/// The most serious of several ends.
pub fn worst(ends: impl IntoIterator<Item = Exit>) -> Exit {
    const ORDER: [Exit; 7] = [
        Exit::Interrupted,
        Exit::WrongAnswers,
        Exit::Missing,
        Exit::Error,
        Exit::Regression,
        Exit::Inconclusive,
        Exit::Ok,
    ];
    let place = |end: &Exit| ORDER.iter().position(|one| one == end).unwrap_or(0);
    ends.into_iter().min_by_key(place).unwrap_or(Exit::Ok)
}

/// How a run ends: the same where it was just measured and where its file is shown.
pub fn of(report: &RunReport<'_>) -> Exit {
    let is_wrong = |record: &Record| matches!(record.verdict, Verdict::Wrong { .. });
    let ahead = if report.ahead.iter().any(is_wrong) { Exit::WrongAnswers } else { Exit::Ok };
    let verdict = if has_verdict(report) { Exit::Ok } else { Exit::Inconclusive };
    worst([of_rows(report.records, &report.rows), ahead, verdict])
}

/// What became of the targets: the most serious status decides.
pub fn of_rows(records: &[Record], rows: &[Row]) -> Exit {
    let is_cut_off = records.iter().flat_map(|record| &record.phases).any(|phase| phase.cut_off.is_some());
    let of_row = |row: &Row| match &row.status {
        Status::Wrong { .. } => Exit::WrongAnswers,
        Status::Missing { .. } => Exit::Missing,
        Status::LeftOut { .. } => Exit::Ok,
        status if status.has_numbers() => Exit::Ok,
        _ => Exit::Error,
    };
    worst(rows.iter().map(of_row).chain(is_cut_off.then_some(Exit::Error)))
}

/// Whether a run says what it was asked for: of each target that was named, of each point, and which target is faster.
fn has_verdict(report: &RunReport<'_>) -> bool {
    let RunReport { records, rows, standings, .. } = report;
    let Some(first) = records.first() else { return true };
    let is_left_out = |row: &Row| matches!(row.status, Status::LeftOut { .. }) && is_named(row, first);
    if standings.refused.is_some() || rows.iter().any(is_left_out) || unclear::is_any(records, &standings.counted) {
        return false;
    }
    let stores = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).count();
    if stores == 0 || !is_to_claim(first) {
        return true;
    }
    let has_blocks = stores == 1 || standings.blocks() >= CLAIM_BLOCKS as usize;
    // Each point of a sweep is judged by itself.
    let is_whole = !point::is_swept(records, &standings.counted);
    let is_disturbed = is_whole && standings.counted.is_noisy() && !first.run.accepts_noise;
    has_blocks && (!is_disturbed || standings.groups.values().any(Standing::claims_any))
}

/// Whether the target stands in the command. A program of the user's has named targets only.
fn is_named(row: &Row, first: &Record) -> bool {
    row.of_program || first.run.command.iter().any(|word| *word == row.target || store_of(word) == row.store)
}

/// Whether claims were asked for: by a command that compares, with enough blocks.
fn is_to_claim(first: &Record) -> bool {
    let typed = &first.run.command;
    let compares = matches!(typed.first().map(String::as_str), None | Some("run" | "compare" | "history"));
    let blocks = value(typed, "--blocks").and_then(|blocks| blocks.parse::<u32>().ok());
    compares && !first.run.answers_only && blocks.is_none_or(|blocks| blocks >= CLAIM_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::super::next::tests::{CLEAR, RUN, Run, records};
    use super::*;

    fn end(records: &[Record]) -> Exit {
        of(&RunReport::of_rows(records))
    }

    #[test]
    fn a_run_that_the_machine_disturbed_and_that_claims_nothing_has_no_verdict() {
        assert_eq!(end(&records(&RUN)), Exit::Ok, "a tie is a verdict");
        assert_eq!(end(&records(&CLEAR)), Exit::Ok);
        for typed in [&["run", "fans", "a", "b"][..], &["run", "--exec", "mine", "a", "b"], &[]] {
            let noisy = records(&Run { noisy: true, typed, ..RUN });
            assert_eq!(end(&noisy), Exit::Inconclusive, "{typed:?}");
            let accepted: Vec<Record> = noisy.into_iter().map(accepting).collect();
            assert_eq!(end(&accepted), Exit::Ok, "{typed:?}");
        }
    }

    fn accepting(mut record: Record) -> Record {
        record.run.accepts_noise = true;
        record
    }

    #[test]
    fn fewer_blocks_than_a_claim_needs_are_no_verdict_unless_they_were_asked_for() {
        let two = |typed| records(&Run { typed, ..CLEAR }).into_iter().filter(|record| record.block < 3).collect();
        let of = |typed| end(&Vec::<Record>::from_iter::<Vec<Record>>(two(typed)));
        assert_eq!(of(&["run", "fans", "a", "b"]), Exit::Inconclusive);
        assert_eq!(of(&[]), Exit::Inconclusive, "a first look");
        assert_eq!(of(&["run", "fans", "--blocks", "2", "a", "b"]), Exit::Ok);
        assert_eq!(of(&["run", "fans", "--blocks=6", "a", "b"]), Exit::Inconclusive);
        assert_eq!(of(&["reproduce", "2009"]), Exit::Ok, "it claims nothing by blocks");
    }

    #[test]
    fn the_most_serious_end_decides() {
        assert_eq!(worst([Exit::Ok, Exit::Inconclusive, Exit::Error]), Exit::Error);
        assert_eq!(worst([Exit::Error, Exit::Missing]), Exit::Missing);
        assert_eq!(worst([Exit::Missing, Exit::WrongAnswers, Exit::Ok]), Exit::WrongAnswers);
        assert_eq!(worst([]), Exit::Ok);
    }
}
