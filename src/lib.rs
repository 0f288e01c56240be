//! kvfair: which key/value store is right for this job, on this machine? The list of modules; ARCHITECTURE.md is the
//! map.

pub mod cli;
pub mod harness;
pub mod jobs;
pub mod loadgen;
pub mod model;
pub mod protocol;
pub mod report;
pub mod scheduler;
pub mod stores;

pub use kvfair_draw as draw;
pub use kvfair_stats as stats;
