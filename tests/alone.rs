//! What measures time or loads the machine: one test at a time, and nothing beside it.

mod common;

mod sockets;
mod timing;
mod warm;
