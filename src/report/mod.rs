//! What records mean, as text: pure functions. Nothing here measures, and nothing here prints.

pub mod cells;
pub mod chart;
pub mod growth;
pub mod histograms;
pub mod limits;
pub mod rated;
pub mod sweep;
pub mod table;
pub mod words;
