//! What is said below a table of single targets.

use super::point::{asked, at, called, step, with};
use super::table::{width, wrap};
use crate::model::op::readable;
use crate::model::record::{LOOKED_AT, Phase, Record};
use crate::model::units;

/// A line for each target that has something to say; `wide` tells where.
pub fn notes(records: &[Record], wide: bool) -> String {
    let mut targets: Vec<&str> = records.iter().map(|record| record.target.label.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let of_target = |target| [neighbour(records, target), reconnects(records, target, wide)];
    targets.into_iter().flat_map(of_target).flatten().collect()
}

/// A server of somebody else's that could be looked at.
fn neighbour(records: &[Record], target: &str) -> Option<String> {
    let is_it = |record: &&Record| record.target.label == target && record.target.is_guest();
    let record = records.iter().filter(is_it).find(|record| record.memory.server.is_some())?;
    let process = record.store.as_ref().and_then(|store| store.settings.get(LOOKED_AT));
    let it = process.map_or_else(|| "it".to_string(), |name| format!("its process {}", readable(name.as_bytes(), 40)));
    let words = format!("on this machine, not started by kvfair: memory and CPU are of all that {it} does");
    let lines = wrap(&format!("{target}: {words}"), width() - 1);
    Some(lines.iter().map(|line| format!(" {line}\n")).collect())
}

/// How many of a target's connections were lost.
fn reconnects(records: &[Record], target: &str, wide: bool) -> Option<String> {
    let of_target = records.iter().filter(|record| record.target.label == target);
    let lost: Vec<(&Record, &Phase)> = of_target
        .flat_map(|record| record.phases.iter().map(move |phase| (record, phase)))
        .filter(|(_, phase)| phase.metrics.reconnects > 0)
        .collect();
    let words = match lost.iter().map(|(_, phase)| phase.metrics.reconnects).sum::<u64>() {
        0 => return None,
        1 => "1 connection was lost and opened again".to_string(),
        count => format!("{} connections were lost and opened again", units::thousands(count)),
    };
    let places = lost.iter().map(|(record, phase)| {
        let (points, swept) = asked(record);
        let at = at(&points, phase);
        let what = if phase.name == "load" { "loading".to_string() } else { called(&phase.name).to_string() };
        let step = if phase.point == 0 { String::new() } else { format!(" {}", with(swept, step(at, swept))) };
        format!("{} in block {}, {what}{step}", units::thousands(phase.metrics.reconnects), record.block)
    });
    let places: Vec<String> = if wide { places.collect() } else { Vec::new() };
    let places = if wide { format!(" ({})", places.join("; ")) } else { String::new() };
    let lines = wrap(&format!("{target}: {words}{places}"), width() - 1);
    Some(lines.iter().map(|line| format!(" {line}\n")).collect())
}
