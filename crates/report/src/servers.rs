//! What each server of a store with replicas used: one trial of each target.

use std::collections::BTreeSet;

use super::formats::{disk, or_dash};
use super::grid::Grid;
use super::render::Block;
use super::table::TableLine;
use kvfair_core::record::{Outcome, Peak, Phase, Record, Usage};
use kvfair_core::units;

/// A row a server, of the first finished trial of each target that has replicas; nothing where none has.
pub fn table(records: &[Record]) -> Option<Block> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for record in records.iter().filter(|record| !record.replicas.is_empty()) {
        let is_first = record.outcome == Outcome::Finished && record.block > 0 && seen.insert(&record.target.label);
        if is_first {
            lines.push(TableLine::Words(format!("{}:", record.target.label)));
            lines.extend(of_a_trial(record));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let headings = ["server, in its first trial", "CPU s", "memory", "mapped", "disk", "written", "in sync after"];
    lines.insert(0, TableLine::Cells(headings.map(str::to_string).to_vec()));
    Some(Block::Table(Grid::of(lines)))
}

fn of_a_trial(record: &Record) -> Vec<TableLine> {
    let line = |name: &str, usage: Usage, memory: Peak, on_disk: Option<u64>, caught_up_s: Option<f64>| {
        let sync = or_dash(caught_up_s, |time_s| units::nanoseconds((time_s * 1e9) as u64));
        let (held, mapped) = (disk(Some(memory.held_bytes())), disk(Some(memory.file_bytes)));
        let (cpu, on_disk, written) = (units::seconds(usage.cpu_s()), disk(on_disk), disk(usage.bytes_written));
        TableLine::Cells(vec![format!("  {name}"), cpu, held, mapped, on_disk, written, sync])
    };
    let used = |of: &dyn Fn(&Phase) -> Option<Usage>| {
        let usages = record.measured().filter_map(of);
        usages.reduce(|sum, one| sum.and(&one)).unwrap_or_default()
    };
    let memory = record.memory.server.unwrap_or_default();
    let primary = line("primary", used(&|phase| phase.server), memory, record.bytes_on_disk, None);
    let replicas = record.replicas.iter().enumerate().map(|(place, replica)| {
        let usage = used(&|phase| phase.replicas.get(place).copied());
        line(&replica.name, usage, replica.memory, replica.bytes_on_disk, replica.caught_up_s)
    });
    std::iter::once(primary).chain(replicas).collect()
}
