//! Pure numbers: knows no store, no job and no unit.

pub mod sample;
