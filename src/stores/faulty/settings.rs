//! What a target may set of it.

use super::super::{Price, Setting, SettingValues};
use super::durable::LIES;
use super::{check_count, count_of, wrong_of};

pub const FAULT: Setting = Setting {
    name: "fault",
    about: "none, or what goes wrong: drop, corrupt, stale, extra, evict, stray, slow, wait, stall, die, refuse, \
            garble; or a fault that only some requests meet: cut1024, digits, crlf, tail, swallow, nul, ninth, wrap, \
            clamp, late, crossed, lasting, both-win, undelete; or of what keeps a file: kept, unwritten, lazy, newest, \
            hole, torn, swapped; or of costs that grow: many-square, value-square, keys-square, clients-square",
    default: "none",
    values: SettingValues::Checked { check: check_fault, worth_trying: &[] },
    price: Price::Nothing,
};
pub const AFTER: Setting = Setting {
    name: "after",
    about: "ops that go well before the first wrong one",
    default: "0",
    values: SettingValues::Checked { check: check_count, worth_trying: &[] },
    price: Price::Nothing,
};
pub const EVERY: Setting = Setting {
    name: "every",
    about: "of the writes (reads for stale and stray, all ops for refuse) from then on, each such one goes wrong",
    default: "1",
    values: SettingValues::Checked { check: check_every, worth_trying: &[] },
    price: Price::Nothing,
};

fn check_fault(text: &str) -> Result<(), String> {
    if LIES.iter().any(|(name, _)| *name == text) { Ok(()) } else { wrong_of(text).map(|_| ()) }
}

fn check_every(text: &str) -> Result<(), String> {
    match count_of(text)? {
        0 => Err("'every' counts from 1".to_string()),
        _ => Ok(()),
    }
}
