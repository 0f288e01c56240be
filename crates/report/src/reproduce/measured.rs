//! What a cell of a post's table came to today: its costs block by block, and its figure.

use std::collections::BTreeMap;

use super::posts::{CostKind, Panel, Unit};
use crate::costs;
use crate::standing::{Counted, by_target};
use kvfair_core::disturbed::disturbed;
use kvfair_core::part::Part;
use kvfair_core::record::{Phase, Record};
use kvfair_stats::sample::Sample;

/// Fewer whole seconds tell nothing of how steady a store is.
const SECONDS_LEAST: usize = 3;

/// Numbers by block.
pub type ByBlock = BTreeMap<u32, f64>;

/// What a trial cost at the panel's point, or as a whole.
pub fn cost(record: &Record, kind: CostKind, panel: &Panel) -> Option<f64> {
    let cost = match (kind, at(record, panel)) {
        (CostKind::Memory, _) => resident_bytes(record),
        (CostKind::Unsteadiness, phase) => unsteadiness(phase.flatten().or_else(|| record.phase(Part::Run))?),
        (CostKind::Seconds, None) => record.cost(),
        (CostKind::Cpu, None) => costs::cpu_us_per_op(record),
        (CostKind::Seconds, Some(phase)) => Some(1.0 / phase?.units_per_s()),
        (CostKind::Cpu, Some(phase)) => Some(cpu_us(phase?)),
    };
    cost.filter(|cost| cost.is_finite() && *cost > 0.0)
}

/// All memory of the store, with the pages of mapped files: a post's "very little RAM" says nothing of which.
fn resident_bytes(record: &Record) -> Option<f64> {
    let memory = record.store_memory()?;
    Some((memory.held_bytes() + memory.file_bytes) as f64)
}

/// What stands in the table: seconds, or units a second.
pub fn figure(record: &Record, unit: Unit, panel: &Panel) -> Option<f64> {
    match (unit, at(record, panel)) {
        (Unit::Seconds, _) => record.took_s(),
        (_, Some(phase)) => Some(phase?.units_per_s()),
        (_, None) => Some(record.metrics().units as f64 / record.took_s().filter(|took_s| *took_s > 0.0)?),
    }
}

/// CPU of client and server an op, in microseconds.
pub fn cpu_us_per_op(record: &Record, panel: &Panel) -> Option<f64> {
    match at(record, panel) {
        Some(phase) => phase.map(cpu_us),
        None => costs::cpu_us_per_op(record),
    }
}

/// What the whole machine took up an op; nothing where it has no counter.
pub fn joules_per_op(record: &Record, panel: &Panel) -> Option<f64> {
    if let Some(phase) = at(record, panel) {
        let phase = phase?;
        return Some(phase.machine_joules? / phase.metrics.ops.max(1) as f64);
    }
    let joules: Option<f64> = record.measured().map(|phase| phase.machine_joules).sum();
    Some(joules? / record.ops_of_job() as f64)
}

/// The numbers of one target in the trials that count.
pub fn by_block(
    records: &[Record],
    counted: &Counted,
    target: &str,
    number: impl Fn(&Record) -> Option<f64> + Sync,
) -> ByBlock {
    by_target(records, counted, number, |label| label == target).remove(target).unwrap_or_default()
}

pub fn median(numbers: &ByBlock) -> Option<f64> {
    Some(Sample::new(numbers.values().copied().collect())?.median())
}

/// The phase of the panel's point, if the machine left it alone; nothing where the panel has no point.
fn at<'a>(record: &'a Record, panel: &Panel) -> Option<Option<&'a Phase>> {
    let (part, clients) = panel.point()?;
    let is_it = |phase: &&Phase| phase.part == part && phase.clients == clients && phase.cut_off.is_none();
    Some(record.measured().find(is_it).filter(|phase| disturbed(record, phase).is_none()))
}

fn cpu_us(phase: &Phase) -> f64 {
    phase.cpu_us_per_unit(phase.client.cpu_s() + phase.servers().map_or(0.0, |servers| servers.cpu_s()))
}

/// The last second is not a whole one.
fn unsteadiness(phase: &Phase) -> Option<f64> {
    let (_, whole) = phase.units_by_second.split_last()?;
    if whole.len() < SECONDS_LEAST {
        return None;
    }
    let mean = whole.iter().sum::<u64>() as f64 / whole.len() as f64;
    let squares: f64 = whole.iter().map(|units| (*units as f64 - mean).powi(2)).sum();
    Some((squares / (whole.len() - 1) as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steadiness_is_of_whole_seconds() {
        let of = |seconds: &[u64]| unsteadiness(&Phase { units_by_second: seconds.to_vec(), ..Phase::default() });
        assert_eq!(of(&[100, 100, 3]), None, "two whole seconds are too few");
        assert_eq!(of(&[100, 100, 100, 3]), Some(0.0));
        // 90, 100, 110: the standard deviation is 10.
        assert!((of(&[90, 100, 110, 3]).expect("a number") - 0.1).abs() < 1e-12);
    }
}
