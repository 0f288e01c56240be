//! The program as people use it, started by its command line against real servers and real files: what it answers to
//! bad input, and that it leaves nothing behind.

#[path = "../common/mod.rs"]
mod common;

mod desk;

mod accounts;
mod agents;
mod answers;
mod bad_data;
mod bad_servers;
mod bare;
mod batch;
mod browser;
mod budgets;
mod bundles;
mod check;
mod ci;
mod claims;
mod clean;
mod clean_up;
mod cold;
mod comment;
mod counters;
mod crash;
mod doubled;
mod dragonfly;
mod drawn;
mod exec;
mod failover;
mod faults;
mod forms;
mod gone;
mod grown;
mod growth;
mod guarded;
mod headlines;
mod helped;
mod history;
mod kept;
mod levers;
mod levers_page;
mod limits;
mod look;
mod lookup;
mod mistakes;
mod noise;
mod outages;
mod own_data;
mod own_files;
mod own_tables;
mod page;
mod page_choices;
mod pinned;
mod plain;
mod queries;
mod quick_start;
mod rates;
mod read_only;
mod reconnects;
mod regressions;
#[cfg(target_os = "linux")]
mod replicas;
mod reproduce;
mod reruns;
mod reruns_found;
mod results;
mod room;
#[cfg(target_os = "linux")]
mod rtt;
mod secrets;
mod seeds;
mod site;
mod sizes;
mod stalls;
mod store_stats;
mod strangers;
mod sweeps;
mod terminal;
mod traces;
mod ways;
mod writers;
mod ycsb;
