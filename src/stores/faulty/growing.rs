//! Costs that a faulty store lets grow out of proportion: its answers are right, and what `growth` must find.

use std::hint::black_box;

use crate::model::op::Op;

/// What grows with the square of something.
#[derive(Clone, Copy, PartialEq)]
pub enum Grows {
    /// Asking for many keys at once, with their number.
    Many,
    /// A set, with the size of its value.
    Value,
    /// A get of each key, with the number of keys: each looks at all of them.
    Keys,
    /// A request by each client, with the number of clients: each looks at all of them.
    Clients,
}

pub const GROWTHS: &[(&str, Grows)] = &[
    ("many-square", Grows::Many),
    ("value-square", Grows::Value),
    ("keys-square", Grows::Keys),
    ("clients-square", Grows::Clients),
];

impl Grows {
    /// Wastes what this request wastes, of a store with so many records and sessions.
    pub fn waste(self, op: &Op<'_>, records: usize, sessions: u64) {
        let steps = match (self, op) {
            (Grows::Many, Op::GetMany(keys)) => 32 * keys.len().pow(2) as u64,
            // Of 512 KiB some 4 million steps: milliseconds.
            (Grows::Value, Op::Set { value, .. }) => (value.len() as u64 >> 7).pow(2) / 4,
            (Grows::Keys, Op::Get(_)) => records as u64,
            (Grows::Clients, Op::Get(_) | Op::Set { .. }) => 8_000 * sessions,
            _ => 0,
        };
        burn(steps);
    }
}

/// So many steps of arithmetic.
pub fn burn(steps: u64) {
    black_box((0..steps).fold(0, |sum, step| black_box(sum ^ step) ^ step));
}
