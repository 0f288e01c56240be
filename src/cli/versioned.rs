//! The records of versions, as `kvfair history` and `kvfair show` have them.

use super::target;
use crate::model::record::Record;
use crate::report::chart::document;
use crate::report::versions::VersionsReport;

/// The command that such records tell of.
const NAME: &str = "history";

/// The labels of the targets that were typed, in their order; nothing of records of another command.
pub fn labels(records: &[Record]) -> Option<Vec<String>> {
    let command = &records.first()?.run.command;
    if command.first().is_none_or(|name| name != NAME) {
        return None;
    }
    // Options and their values name no store; what did would be no target that ran.
    let typed = command.iter().skip(2).filter_map(|word| target::parse(word).ok()).map(|chosen| chosen.target.label);
    Some(called(records, &typed.collect::<Vec<String>>()))
}

/// A server may say that it is another product than the one that was named: records have its name.
fn called(records: &[Record], labels: &[String]) -> Vec<String> {
    let mut seen: Vec<&str> = Vec::new();
    for record in records.iter().filter(|record| !record.target.baseline) {
        if !seen.contains(&record.target.label.as_str()) {
            seen.push(&record.target.label);
        }
    }
    // The way in which a target is asked stands behind its label.
    let is_of =
        |seen: &str, label: &str| seen.strip_prefix(label).is_some_and(|way| way.is_empty() || way.starts_with(' '));
    let mut renamed = seen.iter().filter(|seen| !labels.iter().any(|label| is_of(seen, label)));
    let all = || records.iter().map(|record| record.target.label.as_str());
    let known = |label: &String| all().find(|seen| is_of(seen, label)).or_else(|| renamed.next().copied());
    labels.iter().filter_map(known).map(str::to_string).collect()
}

/// As a file of its own.
pub fn drawn(report: &VersionsReport) -> String {
    document(&format!("{}: {}", report.job, report.heading()), &[report.chart()])
}
