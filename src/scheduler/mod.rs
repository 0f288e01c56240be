//! What runs next, decided from what was seen: blocks of trials, and the size that fits into a budget.

pub mod closed;
pub mod controls;
pub mod findmax;
pub mod gated;
pub mod growth;
pub mod pilot;
pub mod rounds;
mod size;
pub mod values;
