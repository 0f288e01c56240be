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
    /// The op's name, as messages about it say it.
    pub fn name(self) -> &'static str {
        match self {
            Means::Scan => "scan",
            Means::Versions => "check-and-set",
            Means::Tally => "tally",
        }
    }
}
