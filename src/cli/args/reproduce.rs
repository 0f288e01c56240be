//! What may be typed behind `kvfair reproduce`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Forms;
use crate::cli::points;

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair reproduce --list\n  \
    kvfair reproduce 000 002 --budget 10m --html posts.html\n  \
    kvfair reproduce --from kvfair-results/*-reproduce-*.jsonl\n\n\
    A store of a post that is not installed has a stand-in, which is named, or none. Exit codes: 0 the posts were \
    shown, whatever became of their sentences; 3 no store of them is installed; 4 wrong answers.")]
pub struct Reproduce {
    /// Numbers of posts, as in 000 002 [default: 000 to 004]
    pub posts: Vec<String>,
    /// The time that all of them have together, as in 90s or 20m [default: 4m for each]
    #[arg(long, value_name = "TIME", value_parser = points::duration)]
    pub budget: Option<Duration>,
    /// Print the posts, their commands and what is not installed, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Show results files of this command again, and run nothing
    #[arg(long, value_name = "FILES", num_args = 1.., conflicts_with_all = ["posts", "budget", "list"])]
    pub from: Vec<PathBuf>,
    #[command(flatten)]
    pub forms: Forms,
}
