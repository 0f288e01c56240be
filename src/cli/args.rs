//! What may be typed: names, defaults and help. It knows what words mean, not what is done about them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, CommandFactory, Parser, Subcommand};

use super::points;
use crate::model::promise::{self, Promise};
use crate::model::trial::Durability;
use crate::report::exit;
use crate::report::regression::RegressionLimit;

mod agents;
mod bundle;
mod exec;
mod help;
mod history;
mod reproduce;
mod run;

pub use bundle::{Bundle, Rerun};
pub use exec::Exec;
pub use help::refused;
pub use history::History;
pub use reproduce::Reproduce;
pub use run::{Forms, How, Look, RequestArgs, RunArgs, Size};

#[derive(Debug, Parser)]
#[command(
    name = "kvfair",
    version,
    about = "Which key/value store is right for this job, on this machine?",
    long_about = "Which key/value store is right for this job, on this machine?\n\n\
        kvfair runs a real job on every store the same way, starts the servers, checks every answer and counts every \
        resource. Without a command it takes a first look: the job `fans` on every store found here, in at most 90 s.",
    after_help = "`kvfair COMMAND --help` tells more.",
    after_long_help = format!("Examples:\n  \
        kvfair                                  a first look\n  \
        kvfair run fans lmdb redis redis+unix   the whole job on three targets\n  \
        kvfair run ngrams --durability crash    on all stores that keep what a killed process leaves\n  \
        kvfair check redis+unix                 test whether a store is correct\n\n\
        Environment: KVFAIR_PASSWORD is the password for servers by URL that name none (REDISCLI_AUTH works too, for \
        Redis and Valkey), all on one host.\n\n\
        Exit codes: {}.", exit::listed())
)]
pub struct Cli {
    /// Colour on a terminal (auto), also elsewhere (always), or none (never); NO_COLOR in the environment means never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// All that may be typed.
pub fn command() -> clap::Command {
    help::laid_out(Cli::command())
}

/// The help of a command for one job, where that was typed: `kvfair help run mixed`.
pub fn help_of_a_job(words: &[String]) -> Option<String> {
    help::of_a_job(Cli::command(), words)
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job on targets, block by block, and print a table
    Run(Box<RunArgs>),
    /// Test whether a store, as kvfair speaks to it, is correct
    Check(Check),
    /// Delete from a store by URL what a killed run left there
    Clean(Clean),
    /// List the stores, or print all that is known of one (`kvfair stores redis`)
    Stores(Stores),
    /// List the jobs with their settings and defaults
    Jobs,
    /// Write a job's data to standard output, to use elsewhere
    Data(DataOf),
    /// Ask a store that holds the answer of `fans`: which pages share fans with a page
    Query(Query),
    /// Print how often words were counted, from a store that `ngrams` or `lookup` filled
    Lookup(Lookup),
    /// Find the highest rate at which each target keeps a latency promise (SLO)
    FindMax(Box<FindMax>),
    /// Compare two results files, or two targets in one run
    Compare(Box<Compare>),
    /// Test durability: kill stores while they write, count syncs, emulate losses of power
    Crash(Crash),
    /// Find costs that grow out of proportion with value size, batch, keys held or clients
    Growth(Growth),
    /// Find what to change at a store, and what each change gains
    Levers(Box<Levers>),
    /// Name at most five changes to a store that help, best first
    #[command(after_long_help = "Examples:\n  \
        kvfair advise fans redis\n  \
        kvfair advise ngrams berkeleydb --budget 5m\n\n\
        Each lever is measured alone; `kvfair levers` measures them together too. Exit codes: 0 it is clear what \
        helps, or that nothing does; 3 the store is not installed or did not start; 6 no verdict (a noisy machine, too \
        little time).")]
    Advise(Box<Levers>),
    /// Repeat the benchmarks of blog posts of 2009 and 2010, and compare
    Reproduce(Reproduce),
    /// Compare versions of a store in the same blocks, or follow results files over time
    History(Box<History>),
    /// Print a results file again, or join pages
    Show(Show),
    /// Write pages of several runs into a directory, with an index
    Site(SiteArgs),
    /// Pack a results file with all that a stranger needs to run it again
    Bundle(Bundle),
    /// Run what a bundle or a page holds, and judge each of its claims
    Rerun(Rerun),
    #[cfg(test)]
    /// Print the durability levels that a store claims
    Levels(Levels),
    /// Write man pages and completions of shells into a directory
    #[command(hide = true)]
    Manual {
        /// Where they go
        directory: PathBuf,
    },
    /// A child process of kvfair, with its task on standard input
    #[command(hide = true)]
    Child {
        /// The name of the task, for lists of processes
        task: String,
    },
    /// A part of the clients of a run that `--agents` shares; the run tells it what to do on its standard input
    #[command(hide = true)]
    Agent {
        /// The rank that it is to have, where the command that starts it knows
        #[arg(long)]
        rank: Option<u32>,
    },
    /// A store that is to lose its power, under a tracer
    #[command(hide = true)]
    Outage(OutageArgs),
    /// The server of the baseline `array`, until it is killed
    #[command(hide = true)]
    Array(Array),
}

/// The hidden command `outage`.
#[derive(Debug, Args)]
pub struct OutageArgs {
    /// The process for whom all this is
    #[arg(long)]
    pub owner: i32,
    /// The process that is traced, where this is the tracer
    #[arg(long)]
    pub of: Option<i32>,
    /// Where the store's files are
    pub data: PathBuf,
    /// Where the report goes
    pub report: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Array {
    /// What is spoken: resp or text
    #[arg(long)]
    pub protocol: String,
    /// Clients that may be connected at once
    #[arg(long, default_value_t = 1)]
    pub clients: u32,
    /// A Unix socket to listen on
    #[arg(long, conflicts_with = "tcp", required_unless_present = "tcp")]
    pub unix: Option<PathBuf>,
    /// An address and port to listen on
    #[arg(long)]
    pub tcp: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair check memcached 'memcached?protocol=binary'\n  \
    kvfair check redis://host:6379/2   by URL: writes only keys that begin with kvfair:check:, then deletes them\n\n\
    Exit codes: 0 all right, 1 could not be asked, 3 a store is not installed or did not start, 4 something was wrong.")]
pub struct Check {
    /// Stores by name (`redis`, `redis+unix`) or URL; every store found here if none is named
    ///
    /// Sizes and bytes of values and keys, counters, many keys, times to live, check-and-set, several clients, replies
    /// in pieces: each failed test prints what was sent and received; limits are listed as limits.
    pub targets: Vec<String>,
    /// Write to a server by URL that does not tell how much memory it has left: it may evict records of its owner
    #[arg(long)]
    pub accept_unchecked: bool,
    /// Leave out targets whose store is not installed; without it they are an error
    #[arg(long)]
    pub skip_missing: bool,
    #[command(flatten)]
    pub found: FindingArgs,
}

/// The file of what a command finds, and the form in which it is shown.
#[derive(Debug, Args)]
pub struct FindingArgs {
    /// Write what was found to this file, for `kvfair show` [default: a new file in ./kvfair-results]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub forms: Forms,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair clean redis://host:6379/5 --of kvfair-results/20261121T020000Z-fans.jsonl\n  \
    kvfair clean memcached://host --of out.jsonl --yes\n\n\
    A run takes back what it wrote to a store by URL, also after Ctrl-C. One that was killed (kill -9) cannot: what it \
    was about to write stands in a file beside its results (RESULTS.guest). From that and from the records the job is \
    replayed. Only keys that still hold a value that the run may have written are deleted; the others stay and are \
    counted. Each value is read and compared right before its deletion; only a write between the two is not seen. The \
    counters of `ngrams` do not tell who counted: one between 1 and its final count is taken for the run's.")]
pub struct Clean {
    /// The store, as the run named it
    pub url: String,
    /// The results file of that run
    #[arg(long, value_name = "RESULTS")]
    pub of: PathBuf,
    /// Delete without asking
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Stores {
    /// Stores by name, of which all is printed: durability levels and settings
    pub names: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DataOf {
    /// The job: see `kvfair jobs`
    pub job: String,
    #[command(flatten)]
    pub size: Size,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair query lmdb:./kept/lmdb 'Michael Jackson'\n  \
    kvfair query redis:./kept/redis 'Green Bay Packers' --json")]
pub struct Query {
    /// A store with a `fans` answer in it: a URL, or STORE:DIR as `kvfair run --keep` printed it
    pub target: String,
    /// The page's name
    pub page: String,
    /// Print all pages that share fans with it, as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair run lookup lmdb --keep ./kept\n  \
    kvfair lookup lmdb:./kept/lmdb ba be")]
pub struct Lookup {
    /// A store that `ngrams` or `lookup` filled: a URL, or STORE:DIR as `kvfair run --keep` printed it
    pub target: String,
    /// Prints the count of each of these words, and of each run of them as long as was counted
    #[arg(required = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair find-max mixed redis+unix memcached+unix --slo p99:1ms\n  \
    kvfair find-max ycsb-b redis mariadb --slo p99.9:20ms --clients 50 --durability power")]
pub struct FindMax {
    #[command(flatten)]
    pub run: RunArgs,
    /// The promise: a share of all requests answered within a time from when they were due
    #[arg(long, value_name = "PROMISE", default_value = promise::USUAL)]
    pub slo: Promise,
    /// How long each rate is kept, in whole seconds; three times as long where it must be certain
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub step: u32,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair compare fans --base redis --head redis+unix\n  \
    kvfair compare fans --base redis --head 'redis?program=./src/redis-server' --fail-if slower:3% \
    --fail-if cpu:5%\n  \
    kvfair compare fans --base redis --head redis+unix --markdown   a comment for a pull request\n  \
    kvfair compare monday.jsonl tuesday.jsonl")]
pub struct Compare {
    /// Two results files, the older first; or the job on which --base and --head are compared [default: fans]
    pub what: Vec<String>,
    /// The baseline target; it runs in the same blocks as --head, so the machine favours neither
    #[arg(long, value_name = "TARGET")]
    pub base: Option<String>,
    /// The changed target: another build (`redis?program=PATH`), another transport, other settings
    #[arg(long, value_name = "TARGET")]
    pub head: Option<String>,
    /// Exit with 5 where it takes so much more, and with 6 where that cannot be ruled out: slower:3% (seconds) or
    /// cpu:3%; once for each of them, and one that is exceeded is enough
    #[arg(long, value_name = "LIMIT")]
    pub fail_if: Vec<RegressionLimit>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair crash redis sqlite --kills 100\n  \
    kvfair crash --durability power\n  \
    kvfair crash --failover 'redis?replicas=2' 'redis?replicas=2&wait=1'\n\n\
    Exit codes: 0 every claim holds, 1 a store was named that claims no such level, 3 a store is not installed or did \
    not start, 4 a claim failed, 6 no verdict (no strace, data in memory). With --failover: 1 no replica could be \
    promoted, 4 a value was wrong, or a write was lost that waited for replicas.")]
pub struct Crash {
    /// Stores by name (`redis`, `lmdb`); every store found here that claims to keep anything if none is named
    ///
    /// Only stores that kvfair starts are killed: a URL is refused.
    pub targets: Vec<String>,
    /// The durability level to try: crash or power [default: each that a store claims]
    #[arg(long, value_name = "LEVEL")]
    pub durability: Option<Durability>,
    /// Kills of each store at each level, and as many losses of power [default: 20; 5 with --failover]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub kills: Option<u32>,
    /// Kill the primary of targets with replicas (`redis?replicas=2`), promote a replica, and count the writes that are
    /// lost
    #[arg(long)]
    pub failover: bool,
    /// Seed of the moments of the kills [default: another one each time; it is printed]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Leave out targets whose store is not installed; without it they are an error
    #[arg(long, hide_short_help = true)]
    pub skip_missing: bool,
    #[command(flatten)]
    pub found: FindingArgs,
    /// Try nothing: remove what is kept of that store from the verified durability levels, and print it
    #[arg(long, value_name = "STORE", hide_short_help = true)]
    #[arg(conflicts_with_all = ["targets", "durability", "kills", "failover", "seed", "output", "form", "html"])]
    pub forget: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair growth redis+unix lmdb\n  \
    kvfair growth 'redis?program=./src/redis-server' --budget 60s --html growth.html\n\n\
    Exit codes: 0 everything is clear, whatever grows out of proportion; 3 a store is not installed or did not start; \
    6 no verdict: something is unclear (a noisy machine, or too little time).")]
pub struct Growth {
    /// Stores by name (`redis`, `lmdb`), as they are started here; a URL is refused
    #[arg(required = true)]
    pub targets: Vec<String>,
    /// How long each store may take, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = points::duration)]
    pub budget: Duration,
    /// Seed of the requests and of the order of trials [default: another one each time; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Leave out targets whose store is not installed; without it they are an error
    #[arg(long)]
    pub skip_missing: bool,
    #[command(flatten)]
    pub found: FindingArgs,
    /// What was typed the first time, where it is run again
    #[arg(skip)]
    pub again: Option<Vec<String>>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair levers fans redis\n  \
    kvfair levers ngrams berkeleydb --levers type,cache --budget 5m\n  \
    kvfair levers getset memcached --clients 50\n  \
    kvfair levers --exec './mine {host} {port}' redis   what no change of the program needs\n\n\
    Exit codes: 0 it is clear which levers are enough, or that none helps; 3 the store is not installed or did not \
    start; 6 no verdict (a noisy machine, no time for fresh blocks).")]
pub struct Levers {
    /// The job: see `kvfair jobs`; with --exec the store
    pub job: String,
    /// The store by name, as it is now: `redis`, `redis+unix`, `'berkeleydb?type=btree'`; a URL is refused
    #[arg(required_unless_present = "exec")]
    pub store: Option<String>,
    /// Only these levers, by name: transport, via, cache (client-cache where the store has a cache of its own),
    /// clients, depth, processors, or a setting of the store (`kvfair stores`); or one value: depth=16 [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub levers: Vec<String>,
    #[command(flatten)]
    pub own: Exec,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair show --wide\n  \
    kvfair show mine.jsonl --markdown\n  \
    kvfair show --all --csv > trials.csv\n  \
    kvfair show --html page.html\n  \
    kvfair show here.html there.html --html both.html\n  \
    kvfair show --svg sweep.svg\n  \
    kvfair show mine.jsonl --histograms ./histograms")]
pub struct Show {
    /// A results file; the newest in ./kvfair-results if none is named
    ///
    /// Or pages of one job (A.html B.html), which are joined into the page of --html.
    pub results: Vec<PathBuf>,
    /// Draw what the job has into this file, which must not exist yet
    ///
    /// For a sweep: requests per second (at rates: p99 response time) and CPU per request, by the swept value. For a
    /// job of requests: latency by percentile. For trials of some seconds: CPU and memory of the store by second. For
    /// levers: the gain of each. For `kvfair growth`: how costs grow. For other runs: a comparison of the targets.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write all op times to DIR for other tools: an .hgrm file each, in microseconds, and histograms.hlog
    ///
    /// One histogram for each target, part of the job and point, all blocks together: HdrHistogram's
    /// percentile text, and all of them in one V2 interval log by their tags. No file is overwritten.
    #[arg(long, value_name = "DIR")]
    pub histograms: Option<PathBuf>,
    #[command(flatten)]
    pub look: Look,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair site ./site kvfair-results/*.jsonl\n  \
    kvfair site ./site monday.jsonl pages/tuesday.html")]
pub struct SiteArgs {
    /// The directory: new, empty, or made by `kvfair site`
    ///
    /// Pages of an earlier time that are not among RESULTS are deleted. A file that kvfair did not write there is never
    /// overwritten or deleted.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Results files, of which a page each is written, and pages (.html), which are copied
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
}

// The command of CONTRIBUTING.md.
#[cfg(test)]
#[derive(Debug, Args)]
pub struct Levels {
    /// The store by name
    pub store: String,
    #[command(flatten)]
    pub forms: Forms,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_every_option_has_help() {
        let mut command = command();
        command.build();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            for argument in sub.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", sub.get_name(), argument.get_id());
            }
        }
    }
}
