//! Pure numbers: knows no store, no job and no unit.

pub mod arrivals;
pub mod growth;
pub mod sample;
