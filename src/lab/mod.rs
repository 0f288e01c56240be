//! Processes, files and /proc: everything around a trial. It measures and never prints, and knows no statistics.

mod attend;
pub mod check;
mod child;
mod counts;
pub mod crash;
mod elsewhere;
pub mod files;
pub mod gates;
pub mod input;
pub mod kept;
mod lasting;
mod listeners;
pub mod load;
pub mod machine;
pub mod plan;
pub mod process;
pub mod program;
pub mod save;
pub mod scratch;
pub mod serve;
pub mod signals;
mod sweep;
pub mod timing;
pub mod trial;
pub mod truth;
pub mod watch;
pub mod worker;
