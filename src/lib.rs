//! kvfair: which key/value store is right for this job, on this machine? The list of rooms; ARCHITECTURE.md is the map.

pub mod cli;
pub mod drive;
pub mod jobs;
pub mod lab;
pub mod report;
pub mod stats;
pub mod stores;
pub mod study;
pub mod wire;
pub mod words;
