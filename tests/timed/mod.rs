//! Tests that measure time.

mod look;
mod timing;
