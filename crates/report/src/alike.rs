//! What records must have in common to stand in one table, or to be held against each other.

use std::collections::HashSet;

use super::costs::is_many;
use super::growth;
use kvfair_core::levers::LeverPart;
use kvfair_core::load::Load;
use kvfair_core::network;
use kvfair_core::op::readable;
use kvfair_core::record::Record;
use kvfair_core::trial::JobSettings;
use kvfair_stats::parallel;

/// What may move numbers and is not the store.
struct Matter {
    what: &'static str,
    same: fn(&Record, &Record) -> bool,
    told: fn(&Record) -> String,
    /// The steps of a search for the highest rate differ in it, being of one run, and so do the trials of growth.
    is_searched: bool,
}

/// Blocks of one kind of run may have data of different seeds, the same seed always the same.
fn same_data(one: &Record, other: &Record) -> bool {
    let is_in_turn = |record: &Record| record.run.seeds.data.contains(&record.job.seed());
    if one.ahead != other.ahead {
        // A larger job of the same recipe.
        return one.job.data == other.job.data;
    }
    if one.job.units != other.job.units && is_of_sizes(one, other) {
        return one.job.data == other.job.data || !one.run.seeds.data.is_empty();
    }
    let by_seed = one.job.seed() != other.job.seed() && is_in_turn(one) && is_in_turn(other);
    one.run.seeds.data == other.run.seeds.data && (by_seed || one.stream.sha256 == other.stream.sha256)
}

/// Both are of a run that has its job at several sizes.
fn is_of_sizes(one: &Record, other: &Record) -> bool {
    let is_one = |record: &Record| record.job.units.is_some_and(|units| record.run.sizes.contains(&units));
    one.run.sizes == other.run.sizes && is_one(one) && is_one(other)
}

/// So much of a command is told.
const SHOWN_BYTES: usize = 200;

const MATTERS: &[Matter] = &[
    Matter {
        what: "method",
        same: |one, other| one.method == other.method,
        told: |record| record.method.to_string(),
        is_searched: false,
    },
    Matter {
        what: "job",
        same: |one, other| {
            let same_load =
                one.job.load == other.job.load || (are_of_levers(one, other) && same_but_levers(one, other));
            // Of a run of several orders each is a part.
            let same_order = !one.run.orders.is_empty() || one.job.ngrams.order == other.job.ngrams.order;
            let same_orders = same_order && one.run.orders == other.run.orders;
            let (one, other) = (&one.job, &other.job);
            let told = |job: &JobSettings| (job.split, job.replay_percent, job.ngrams.unit, job.lookup);
            let is_told = (&one.name, &one.format, told(one)) == (&other.name, &other.format, told(other));
            is_told && same_load && same_orders
        },
        told: |record| record.job.name.clone(),
        is_searched: true,
    },
    Matter {
        what: "command",
        same: |one, other| one.job.program() == other.job.program(),
        told: |record| {
            let told = record.job.program().map(|(command, answer)| format!("`{command}`, answer {answer}"));
            readable(told.unwrap_or_else(|| record.job.name.clone()).as_bytes(), SHOWN_BYTES)
        },
        is_searched: false,
    },
    Matter { what: "data", same: same_data, told: |record| record.stream.sha256.clone(), is_searched: true },
    Matter {
        what: "size",
        same: |one, other| {
            one.ahead != other.ahead || is_of_sizes(one, other) || one.stream.units == other.stream.units
        },
        told: |record| record.stream.units.to_string(),
        is_searched: true,
    },
    Matter {
        what: "clients",
        same: |one, other| one.clients == other.clients || is_of_growth(one, other) || are_of_levers(one, other),
        told: |record| record.clients.to_string(),
        is_searched: false,
    },
    Matter {
        what: "durability",
        same: |one, other| one.durability == other.durability || is_of_durability(one, other),
        told: |record| record.durability.to_string(),
        is_searched: false,
    },
    Matter {
        what: "configuration",
        same: |one, other| one.configuration == other.configuration,
        told: |record| record.configuration.to_string(),
        is_searched: false,
    },
    Matter {
        what: "pinning",
        same: |one, other| one.run.pinned == other.run.pinned,
        told: |record| record.run.pinned.as_ref().map_or_else(|| "none".to_string(), |pinned| pinned.to_string()),
        is_searched: false,
    },
    Matter {
        what: "round-trip time",
        same: |one, other| one.run.rtts_us == other.run.rtts_us,
        told: |record| match record.run.rtts_us.as_slice() {
            [] => "no --rtt".to_string(),
            rtts_us => network::listed(rtts_us),
        },
        is_searched: false,
    },
    Matter {
        what: "machine",
        same: |one, other| {
            let (one, other) = (&one.machine, &other.machine);
            (&one.cpu, one.cpus, one.memory_bytes, &one.kernel, &one.filesystem)
                == (&other.cpu, other.cpus, other.memory_bytes, &other.kernel, &other.filesystem)
        },
        told: |record| {
            let machine = &record.machine;
            let (cpus, bytes) = (machine.cpus, machine.memory_bytes);
            format!("{}, {cpus} processors, {bytes} bytes, {}, {}", machine.cpu, machine.kernel, machine.filesystem)
        },
        is_searched: false,
    },
];

/// Why two records are never held against each other; none where they may be.
pub fn unlike(one: &Record, other: &Record) -> Option<String> {
    differing(one, other, |_| true)
}

/// The same in a word or two: "machine", "size".
pub fn what_differs(one: &Record, other: &Record) -> Option<&'static str> {
    MATTERS.iter().find(|matter| !(matter.same)(one, other)).map(|matter| matter.what)
}

fn differing(one: &Record, other: &Record, matters: impl Fn(&Matter) -> bool) -> Option<String> {
    let matter = MATTERS.iter().filter(|matter| matters(matter)).find(|matter| !(matter.same)(one, other))?;
    let (one, other) = ((matter.told)(one), (matter.told)(other));
    Some(match matter.what {
        "job" if one == other => format!("another job: {one} with other settings"),
        what => format!("another {what}: {one} and {other}"),
    })
}

/// Both are of a run of levers, of which the number of clients and the depth of their requests may be two.
fn are_of_levers(one: &Record, other: &Record) -> bool {
    one.levers.is_some() && other.levers.is_some()
}

fn same_but_levers(one: &Record, other: &Record) -> bool {
    let rest = |record: &Record| Some(Load { clients: Vec::new(), depth: 1, ..record.job.load.as_ref()?.clone() });
    rest(one) == rest(other)
}

/// Both are of the part of a run of levers that compares durability levels.
fn is_of_durability(one: &Record, other: &Record) -> bool {
    [one, other].iter().all(|record| record.levers.as_ref().is_some_and(|of| of.part == LeverPart::Durability))
}

/// Both are of `kvfair growth`, whose trials differ in what they ask and in the number of clients.
fn is_of_growth(one: &Record, other: &Record) -> bool {
    [one, other].into_iter().all(growth::is_of) && one.job.name == other.job.name
}

/// The first record of a file that may not be shown with the first one, counted from 0, and why. Targets and blocks of
/// one run differ, and so do the steps of a search. Two runs have no blocks in common, whatever their numbers.
pub fn mixed(records: &[Record]) -> Option<(usize, String)> {
    let first = records.first()?;
    // The parts of a run of levers have a job, a size of it and durability levels of their own.
    let part = |record: &Record| record.levers.as_ref().map(|levers| levers.part);
    let of_seed =
        |record: &Record| records.iter().find(|one| one.job.seed() == record.job.seed() && part(one) == part(record));
    let of_part = |record: &Record| records.iter().find(|one| part(one) == part(record));
    let reasons = parallel::map(records, is_many(records), |record| {
        // Where blocks have data of several seeds, the first is of one of them.
        let same_seed = if first.run.seeds.data.is_empty() { None } else { of_seed(record) };
        apart(of_part(record).unwrap_or(first), record).or_else(|| apart(same_seed?, record))
    });
    let mut seen = HashSet::with_capacity(records.len());
    records.iter().zip(reasons).enumerate().find_map(|(place, (record, reason))| {
        let trial = (record.block, record.position, record.target.label.as_str(), record.aa_control, record.ahead);
        // Of growth, two pilots of one kind differ in their requests alone.
        let trial = (trial, part(record), record.durability, record.job.units);
        let is_new = seen.insert(trial);
        let again = || format!("the same trial once more: {}, block {}", record.target.label, record.block);
        Some((place, reason.or_else(|| (!is_new).then(again))?))
    })
}

/// Why a record is not of the first one's run.
fn apart(first: &Record, record: &Record) -> Option<String> {
    let of_one_run = (&record.run.began, record.run.seeds.order) == (&first.run.began, first.run.seeds.order);
    let is_step = of_one_run && (is_step(first, record) || is_of_growth(first, record));
    let reason = differing(first, record, |matter| !(is_step && matter.is_searched));
    reason.or_else(|| (!of_one_run).then(|| format!("another run: {} and {}", told(first), told(record))))
}

fn told(record: &Record) -> String {
    format!("{}, seed {}", record.run.began, record.run.seeds.order)
}

/// Two trials of a search for the highest rate: all but the rate, and what follows from it, is the same.
fn is_step(one: &Record, other: &Record) -> bool {
    let but_rate = |record: &Record| {
        let load = record.job.load.as_ref().filter(|load| load.rates.len() <= 1)?;
        Some(Load { rates: Vec::new(), warm_up_s: 0, ..load.clone() })
    };
    one.job.name == other.job.name && but_rate(one).is_some_and(|load| but_rate(other) == Some(load))
}
