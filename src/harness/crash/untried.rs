//! Why a store could not be tried, or a step of trying it did not come to its end.

use crate::model::crash::NotTried;

/// Why there is nothing to say of a store.
#[derive(Debug)]
pub enum Untried {
    /// It is not on this machine, or would not start; and the command that gets it.
    Missing {
        reason: String,
        get_it: String,
    },
    /// It failed on a disk that is full.
    Full(String),
    /// It could not be tried for another reason.
    Failed(String),
    Interrupted,
}

impl From<Untried> for NotTried {
    fn from(untried: Untried) -> NotTried {
        NotTried { is_missing: matches!(untried, Untried::Missing { .. }), reason: untried.to_string() }
    }
}

/// Why a step did not come to its end.
pub(super) enum Stop {
    /// The store did not do what it must: after a kill its claim fails, and before it nothing is known.
    Store(String),
    Untried(Untried),
}

impl From<Untried> for Stop {
    fn from(untried: Untried) -> Stop {
        Stop::Untried(untried)
    }
}
