//! What measures time or loads the machine: one test at a time, and nothing beside it.

mod common;

mod loaded;
mod timed;
mod warm;
