//! The vocabulary: plain data that every other module uses. No clock, no I/O, no randomness.

pub mod agents;
pub mod answers;
pub mod check;
pub mod crash;
pub mod disturbed;
pub mod effort;
pub mod fans;
pub mod finding;
pub mod hist;
pub mod lazy_json;
pub mod levers;
pub mod load;
pub mod logins;
pub mod metrics;
pub mod names;
pub mod network;
pub mod noise;
pub mod op;
pub mod part;
pub mod plain;
pub mod preflight;
pub mod promise;
pub mod record;
pub mod room;
#[cfg(test)]
mod schema;
pub mod shell;
pub mod stream;
pub mod trial;
pub mod units;
