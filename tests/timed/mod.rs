//! Tests that measure time.

mod budgets;
mod look;
mod timing;
