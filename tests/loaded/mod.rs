//! Tests that load the machine on purpose.

mod noise;
mod rates;
mod stalls;
mod terminal;
