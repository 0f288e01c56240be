//! Against real servers: the stores' adapters, and the program as people use it.

mod cli;
mod common;
mod servers;
