//! Tests that load the machine on purpose.

mod growth;
mod regressions;
