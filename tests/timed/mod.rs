//! Tests that measure time.
