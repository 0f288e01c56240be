//! What a job, or a way of asking, cannot do without, and not every store has.

/// An op by which targets are chosen before anything is started. A test of the contract holds each adapter to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Pairs in the order of their keys, from a key on.
    Scan,
    /// Versions of values, to check and set by.
    Versions,
    /// Fields of a record, which the store counts by itself.
    Tally,
}

impl Means {
    /// What a store without it cannot do.
    pub fn missing(self) -> &'static str {
        match self {
            Means::Scan => "cannot read keys in order",
            Means::Versions => "cannot set a value on condition that it is unchanged",
            Means::Tally => "cannot count a record's fields by itself",
        }
    }
}
