//! kvfair: which key/value store is right for this job, on this machine? The list of modules; ARCHITECTURE.md is the
//! map.

pub mod cli;
pub mod harness;
pub mod loadgen;
pub mod protocol;
pub mod scheduler;
pub mod stores;

pub use kvfair_core as model;
pub use kvfair_draw as draw;
pub use kvfair_jobs as jobs;
pub use kvfair_report as report;
pub use kvfair_stats as stats;
