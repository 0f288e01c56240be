//! Why a block was discarded: the worst of what the machine did during its trials.

use std::cmp::Ordering;

use kvfair_core::noise::{Gate, Reason, Yardstick};
use kvfair_core::record::Record;

/// "other programs used 48 % of the CPU (redis)", of the trials of one block; nothing where none was disturbed.
pub fn disturbed(trials: &[&Record], yardstick: Yardstick) -> Option<String> {
    let found = trials.iter().filter_map(|record| match record.noise.gate(yardstick) {
        Gate::Discard(reasons) => Some((record, reasons.into_iter().max_by(by_share)?)),
        _ => None,
    });
    let worst = found.max_by(|(_, one), (_, other)| by_share(one, other));
    worst.map(|(record, reason)| format!("{reason} ({})", record.target.label))
}

fn by_share(one: &Reason, other: &Reason) -> Ordering {
    one.share.total_cmp(&other.share)
}
