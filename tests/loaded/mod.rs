//! Tests that load the machine on purpose.
