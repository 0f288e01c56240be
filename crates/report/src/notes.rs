//! What is said below a table of single targets.

use std::collections::{BTreeMap, BTreeSet};

use super::contention;
use super::point::{asked, at, called, step};
use super::standing::Counted;
use super::swept::with;
use super::to_know::Fact;
use kvfair_core::agents::{AgentPhase, spread_s};
use kvfair_core::network::in_words;
use kvfair_core::op::readable;
use kvfair_core::part::Part;
use kvfair_core::record::{LOOKED_AT, NODES, Phase, Record, SLOTS_OF_NODES};
use kvfair_core::units;
use kvfair_stats::sample::Sample;

/// What is to be said of each target; `wide` tells where.
pub fn notes(records: &[Record], wide: bool) -> Vec<String> {
    let mut targets: Vec<&str> = records.iter().map(|record| record.target.label.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let of_target = |target| {
        let apart = reconnects(records, target, wide);
        [cluster(records, target), neighbour(records, target), apart, met(records, target)]
    };
    targets.into_iter().flat_map(of_target).flatten().chain(network(records)).chain(agents(records)).collect()
}

/// What clients lost or did in vain: connections, and work in which they met each other.
pub fn in_vain(records: &[Record]) -> Vec<Fact> {
    let targets: BTreeSet<&str> = records.iter().map(|record| record.target.label.as_str()).collect();
    let of_target = |target| {
        let lost = reconnects(records, target, false).map(|words| Fact::new("connections", words));
        lost.into_iter().chain(met(records, target).map(|words| Fact::new("contention", words)))
    };
    targets.into_iter().flat_map(of_target).collect()
}

/// What stands for the network, what that costs, and who has none.
fn network(records: &[Record]) -> Option<String> {
    let network = records.iter().find_map(|record| record.network)?;
    let mut cpu_us: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let counted = Counted::of(records).blocks;
    let counts = |record: &&Record| counted.contains(&record.block) && !record.aa_control && record.is_right();
    for record in records.iter().filter(counts) {
        let cpu_s: Option<f64> = record.measured().map(|phase| Some(phase.proxy?.cpu_s())).sum();
        let of_target = cpu_us.entry(&record.target.label).or_default();
        of_target.extend(cpu_s.map(|cpu_s| cpu_s * 1e6 / record.ops_of_job() as f64));
    }
    let (without, with): (Vec<_>, Vec<_>) = cpu_us.into_iter().partition(|(_, cpu_us)| cpu_us.is_empty());
    let each = with
        .into_iter()
        .filter_map(|(target, cpu_us)| Some(format!("{target} {}", units::digits(Sample::new(cpu_us)?.median()))));
    let without: Vec<&str> = without.into_iter().map(|(target, _)| target).collect();
    let without = match without.is_empty() {
        true => String::new(),
        false => format!(". No network: {}", without.join(", ")),
    };
    Some(format!(
        "network: a proxy of kvfair's on the client's processors. A ping through it took {:.2} ms at {}, and {:.2} ms \
         without a delay. Its CPU us/op, in no other number: {}{without}",
        network.ping_us / 1e3,
        in_words(network.rtt_us),
        network.own_us / 1e3,
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// Of a store of several servers: how many commands its questions became, and which share of the CPU each server took.
fn cluster(records: &[Record], target: &str) -> Option<String> {
    let is_it = |record: &&Record| record.target.label == target && record.is_right() && record.block > 0;
    let of_target: Vec<&Record> = records.iter().filter(is_it).collect();
    let settings = of_target.iter().find_map(|record| record.store.as_ref()).map(|store| &store.settings)?;
    let (nodes, slots) = (settings.get(NODES)?, settings.get(SLOTS_OF_NODES)?);
    let (mut questions, mut commands, mut cpu_s) = (0, 0, Vec::new());
    for record in of_target {
        let metrics = record.metrics();
        questions += metrics.ops;
        commands += metrics.commands;
        for phase in record.measured() {
            cpu_s.resize(phase.nodes.len().max(cpu_s.len()), 0.0);
            cpu_s.iter_mut().zip(&phase.nodes).for_each(|(sum, node)| *sum += node.cpu_s());
        }
    }
    let all_s: f64 = cpu_s.iter().sum();
    let shares: Vec<String> = cpu_s.iter().map(|cpu_s| format!("{:.0}", cpu_s / all_s * 100.0)).collect();
    let shares =
        if all_s > 0.0 { format!("; their shares of the CPU: {} %", shares.join(", ")) } else { String::new() };
    let each = commands as f64 / (questions as f64).max(1.0);
    Some(format!(
        "{target}: {} nodes with {} slots{shares}. Keys of one question are split by slot: {} commands a question (mean of {})",
        readable(nodes.as_bytes(), 10),
        readable(slots.as_bytes(), 100),
        units::digits(each),
        units::thousands(questions)
    ))
}

/// Who drove the clients, and how nearly at one time.
fn agents(records: &[Record]) -> Option<String> {
    let record = records.iter().find(|record| !record.agents.is_empty())?;
    let machines: BTreeSet<u32> = record.agents.iter().map(|agent| agent.machine).collect();
    let counted = records.iter().filter(|record| record.block > 0 && !record.discarded);
    let phases: Vec<&[AgentPhase]> = counted.flat_map(Record::measured).map(|phase| phase.agents.as_slice()).collect();
    let apart_s = phases.iter().map(|agents| spread_s(agents)).fold(0.0, f64::max);
    let bounds_us = phases.iter().flat_map(|agents| agents.iter()).map(|agent| agent.bound_us);
    let (apart_ms, bound_ms) = (apart_s * 1e3, bounds_us.reduce(f64::max).map(|bound_us| bound_us / 1e3));
    // Without a part that all of them drove nothing is known of that.
    let together = bound_ms.map_or_else(String::new, |bound_ms| {
        let [apart_ms, bound_ms] = [apart_ms, bound_ms].map(|ms| units::at_most(ms, 2));
        format!(". They began at most {apart_ms} ms apart, by clocks known to {bound_ms} ms")
    });
    let apart_ms: Vec<f64> = records.iter().flat_map(|record| record.agents_apart_ms.iter().copied()).collect();
    let again = apart_ms.iter().copied().reduce(f64::max).map_or_else(String::new, |most_ms| {
        let count = apart_ms.len();
        let trials = if count == 1 { "1 trial was".to_string() } else { format!("{count} trials were") };
        format!(". {trials} tried again: agents began up to {most_ms:.2} ms apart")
    });
    Some(format!(
        "agents: {} on {} drove the clients{together}{again}",
        record.agents.len(),
        if machines.len() == 1 { "one machine".to_string() } else { format!("{} machines", machines.len()) }
    ))
}

/// A server of somebody else's that could be looked at.
fn neighbour(records: &[Record], target: &str) -> Option<String> {
    let is_it = |record: &&Record| record.target.label == target && record.target.is_guest();
    let record = records.iter().filter(is_it).find(|record| record.memory.server.is_some())?;
    let process = record.store.as_ref().and_then(|store| store.settings.get(LOOKED_AT));
    let it = process.map_or_else(|| "it".to_string(), |name| format!("its process {}", readable(name.as_bytes(), 40)));
    Some(format!("{target}: on this machine, not started by kvfair: memory and CPU are of all that {it} does"))
}

/// What its clients cost each other.
fn met(records: &[Record], target: &str) -> Option<String> {
    Some(format!("{target}: {}", contention::words(records, target)?))
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
        let what = if phase.part == Part::Load { "loading".to_string() } else { called(phase.part).to_string() };
        let step = if phase.point == 0 { String::new() } else { format!(" {}", with(swept, step(at, swept))) };
        format!("{} in block {}, {what}{step}", units::thousands(phase.metrics.reconnects), record.block)
    });
    let places: Vec<String> = if wide { places.collect() } else { Vec::new() };
    let places = if wide { format!(" ({})", places.join("; ")) } else { String::new() };
    Some(format!("{target}: {words}{places}"))
}
