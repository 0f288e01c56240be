//! Processes, files and /proc: everything around a trial. It measures and never prints, and knows no statistics.

mod attend;
pub mod check;
pub mod child;
pub mod clean;
pub mod contact;
mod counts;
pub mod crash;
mod dataset;
pub mod files;
pub mod gates;
mod guest;
pub mod input;
pub mod kept_data;
mod listeners;
pub mod load;
pub mod machine;
pub mod oracle;
mod password;
pub mod pin;
pub mod plan;
pub mod process;
pub mod program;
mod remote_place;
pub mod save;
#[cfg(test)]
mod schema;
pub mod scratch;
pub mod serve;
pub mod signals;
mod sweep;
pub mod task;
pub mod timing;
pub mod trial;
mod ttl_shim;
pub mod visits;
pub mod watch;
pub mod worker;
