//! kvfair: which key/value store is right for this job, on this machine? The list of rooms; ARCHITECTURE.md is the map.

pub mod jobs;
pub mod stores;
pub mod wire;
pub mod words;
