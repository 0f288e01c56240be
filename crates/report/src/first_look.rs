//! A first look on a terminal: the rows that fit on a screen, and the commands for what it has not measured.

use std::collections::BTreeSet;

use super::cells::{Row, Status};
use super::render::OneLine;
use super::run_report::RunReport;
use super::typed::words;
use kvfair_core::shell;
use kvfair_core::trial::Transport;

/// So many rows of each kind are shown where not all of them are.
const BEST: usize = 4;

/// The rows of the best embedded stores and of the best servers, which are sorted; and in a line each the others that
/// were measured, and those that were not. A store that failed keeps its row.
pub fn best_of_each_kind(rows: &[Row]) -> (Vec<Row>, Vec<OneLine>) {
    let (mut kept, mut counts) = (Vec::new(), [0, 0]);
    let (mut slower, mut left_out, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| !row.baseline) {
        let count = &mut counts[usize::from(row.transport == Transport::InProcess)];
        *count += usize::from(row.numbers.is_some());
        match (&row.numbers, &row.status) {
            (Some(_), _) if *count > BEST => slower.push(row.target.as_str()),
            (None, Status::LeftOut { .. }) => left_out.push(row.target.as_str()),
            (None, Status::Missing { .. }) => missing.push(row.target.as_str()),
            _ => kept.push(row.clone()),
        }
    }
    let named = |words: &str, names: Vec<&str>| {
        let text = format!("{words} (--wide): {}", names.join(", "));
        (!names.is_empty()).then(|| OneLine { text, more: String::new() })
    };
    let others = [("slower", slower), ("too slow for a first look", left_out), ("not here", missing)];
    (kept, others.into_iter().filter_map(|(words, names)| named(words, names)).collect())
}

/// What a first look has not measured, each with its command: a cache, and writes that survive. Nothing where too few
/// stores are here.
pub fn next(report: &RunReport<'_>, keeps_crash: fn(&str) -> bool) -> Option<String> {
    let stores: Vec<&Row> = report.rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    let mut seen = BTreeSet::new();
    let mut best = |rows: &[&Row]| {
        let of_stores = rows.iter().filter(|row| seen.insert(row.store.clone()));
        of_stores.map(|row| row.target.clone()).take(COMPARED).collect::<Vec<_>>()
    };
    let (embedded, servers): (Vec<&Row>, Vec<&Row>) =
        stores.into_iter().partition(|row| row.transport == Transport::InProcess);
    let keeps = |rows: &[&Row]| rows.iter().find(|row| keeps_crash(&row.store)).map(|row| row.target.clone());
    let durable: Vec<String> = [keeps(&embedded), keeps(&servers)].into_iter().flatten().collect();
    let cache = (!servers.is_empty()).then(|| ("a cache", [words(&["run", "getset"]), best(&servers)].concat()));
    let crash = words(&["--durability", "crash"]);
    let survive = (!durable.is_empty()).then(|| {
        ("writes that survive a crash", [words(&["run", &report.records[0].job.name]), durable, crash].concat())
    });
    let lines: Vec<String> = [cache, survive]
        .into_iter()
        .flatten()
        .map(|(what, command)| format!("next, {what}: {}", shell::command(&command)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// So many stores are compared in the next run.
const COMPARED: usize = 2;
