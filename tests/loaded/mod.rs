//! Tests that load the machine on purpose.

mod growth;
mod noise;
mod rates;
mod regressions;
mod stalls;
mod terminal;
