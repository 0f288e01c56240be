//! The arguments of `kvfair history`.

use std::path::PathBuf;

use clap::Args;

use super::How;
use crate::report::history::HistoryMeasure;

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair history getset 'redis?program=./redis-6.2' 'redis?program=./redis-8' valkey --html versions.html\n  \
    kvfair history fans 'postgres?program=/opt/postgresql-18/bin/postgres' postgres --durability crash\n  \
    kvfair history                          the results in ./kvfair-results\n  \
    kvfair history nightly/*.jsonl --measure seconds --svg time.svg\n\n\
    Versions run in the same blocks: machine changes between days cancel out in ratios. A step is claimed between \
    neighbours alone. Over time a change is only a reason to look; the command beside it decides. Options of `run` are \
    for versions, and --budget too.")]
pub struct History {
    /// A job and the versions of a store, oldest first; or results files of `kvfair run` [default: those in
    /// ./kvfair-results]
    pub what: Vec<String>,
    /// What is followed over time: `ratio` to a baseline of the same run, `seconds`, or `cpu` an op
    #[arg(long, value_name = "WHAT", default_value = "ratio")]
    pub measure: HistoryMeasure,
    /// Write the picture into this file, which must be new
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub how: How,
}
