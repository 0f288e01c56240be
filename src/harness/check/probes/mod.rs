//! The probes, as a table. Each asks one thing that a codec or a store may do wrong, under keys of its own, and ends at
//! the first answer that is not right. None knows which store it asks.

mod changes;
mod counters;
mod joined;
mod keys;
mod many;
pub mod moved;
pub mod reopened;
mod shared;
mod split;
mod values;

pub use values::largest_tried;

use super::talk::{ProbeSession, Probed};
use crate::model::op::Op;

/// Clients of the probes of several.
pub const CLIENTS: u32 = 4;

pub struct Probe {
    /// As messages call it.
    pub name: &'static str,
    /// What its keys begin with: the same every time, so that what a killed check left behind is met again by the next.
    pub keys: &'static str,
    pub ask: fn(&mut ProbeSession<'_>) -> Probed,
}

const fn probe(name: &'static str, keys: &'static str, ask: fn(&mut ProbeSession<'_>) -> Probed) -> Probe {
    Probe { name, keys, ask }
}

/// Of one client, in the order in which they are asked: limits first, for others keep to them.
pub const ALONE: &[Probe] = &[
    probe("the largest value", "largest", values::largest),
    probe("the longest key", "longest", keys::longest),
    probe("values of 0 and 1 bytes", "empty", values::empty),
    probe("values of 9 to 11 bytes", "10", |talk| values::around(talk, 10)),
    probe("values of 99 to 101 bytes", "100", |talk| values::around(talk, 100)),
    probe("values of 999 to 1,001 bytes", "1000", |talk| values::around(talk, 1_000)),
    probe("values of 1,023 to 1,025 bytes", "1024", |talk| values::around(talk, 1_024)),
    probe("values of 4,095 to 4,097 bytes", "4096", |talk| values::around(talk, 4_096)),
    probe("values of 8,191 to 8,193 bytes", "8192", |talk| values::around(talk, 8_192)),
    probe("values of 9,999 to 10,001 bytes", "10000", |talk| values::around(talk, 10_000)),
    probe("values of 16,383 to 16,385 bytes", "16384", |talk| values::around(talk, 16_384)),
    probe("values of 65,535 to 65,537 bytes", "65536", |talk| values::around(talk, 65_536)),
    probe("values of 99,999 to 100,001 bytes", "100000", |talk| values::around(talk, 100_000)),
    probe("values of about 1 MB", "1MB", values::around_a_megabyte),
    probe("values of every byte", "bytes", values::every_byte),
    probe("values with protocol text", "text", values::protocol_text),
    probe("keys of every byte", "key-bytes", keys::every_byte),
    probe("keys that look alike", "alike", keys::alike),
    probe("keys of 1 byte", "one", keys::one_byte),
    probe("the empty key", "none", keys::empty),
    probe("overwriting by shorter and longer", "overwrite", changes::overwrite),
    probe("delete, then get", "delete", changes::delete),
    probe("set-if-absent", "absent", changes::set_if_absent),
    probe("check-and-set, won and lost", "cas", changes::check_and_set),
    probe("time to live", "ttl", changes::time_to_live),
    probe("get-many with missing keys", "many", many::get),
    probe("get-many of odd sizes", "sizes", many::odd_sizes),
    probe("set-many", "set-many", many::set),
    probe("scan", "scan", many::scan),
    probe("tally", "tally", many::tally),
    probe("increment of a missing key", "missing", counters::missing),
    probe("counters past 2^31 and 2^53", "count-up", counters::past_borders),
    probe("counters below zero", "below", counters::below_zero),
    probe("counters at 2^63", "last", counters::last),
    probe("increment of text", "no-number", counters::of_text),
    probe("add, beside increment", "add", counters::add_alone),
    probe("add-many, half of the counters missing", "add-many", counters::add_many),
    probe("number-many with missing keys", "numbers", counters::many),
    probe("replies split at every byte", "split", split::small),
    probe("large replies split at borders", "split-large", split::large),
    probe("many replies in one piece", "joined", joined::joined),
];

/// Of several clients, of a store that was opened for as many.
pub const TOGETHER: &[Probe] = &[
    probe("the count of records", "count", changes::count),
    probe("several clients, each its own keys", "apart", shared::apart),
    probe("what one client sets another sees", "seen", shared::seen),
    probe("several clients on one counter", "sum", |talk| shared::sum(talk, |key| Op::Increment { key, by: 1 })),
    probe("several clients who add to one counter", "added", |talk| shared::sum(talk, |key| Op::Add { key, by: 1 })),
    probe("two clients' check-and-set", "race", shared::race),
];
