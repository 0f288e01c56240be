//! What records mean, as text: pure functions. Nothing here measures, and nothing here prints.

pub mod alike;
pub mod beside;
mod ceilings;
pub mod cells;
pub mod chart;
pub mod check;
pub mod claims;
pub mod compare;
pub mod crash;
mod doubled;
pub mod export;
pub mod fields;
pub mod grid;
pub mod growth;
pub mod histograms;
pub mod limits;
pub mod notes;
pub mod rated;
pub mod said;
pub mod standing;
pub mod sweep;
pub mod table;
pub mod times;
pub mod trials;
pub mod verified;
pub mod warn;
pub mod words;
