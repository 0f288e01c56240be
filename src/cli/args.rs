//! What may be typed: names, defaults and help. It knows what words mean, not what is done about them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::exec::Exec;
use super::points::{self, Points, Rates, Replay, Sizes, Values};
use crate::report::compare::Limit;
use crate::report::sweep::Statistic;
use crate::words::effort::Effort;
use crate::words::load::{Arrivals, Keys, Only};
use crate::words::promise::Promise;
use crate::words::trial::{Configuration, Durability, Split, Verify, Via};

#[derive(Debug, Parser)]
#[command(
    name = "kvfair",
    version,
    about = "Which key/value store is right for this job, on this machine?",
    long_about = "Which key/value store is right for this job, on this machine?\n\n\
        kvfair runs a real job on every store the same way, starts the servers, checks every answer and counts every \
        resource. Without a command it takes a first look: the job `fans` on every store found here, in about a minute.",
    after_help = "`kvfair COMMAND --help` tells more.",
    after_long_help = "Examples:\n  \
        kvfair                                  a first look\n  \
        kvfair run fans lmdb redis redis+unix   the whole job on three targets\n  \
        kvfair run ngrams --durability crash    on all stores that keep what a killed process leaves\n  \
        kvfair check redis+unix                 whether it keeps and answers what it should\n\n\
        Exit codes: 0 ok, 1 error (a refused class, a limit, a time-out), 2 usage, 3 a store is not here or would not \
        start, 4 wrong answers or a broken promise, 5 compare --fail-if found it slower, 6 nothing can be said (the \
        machine was too loud, or a claim could not be tried), 130 interrupted (what was finished is kept and printed)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job on targets, block by block, and print a table
    Run(Box<Run>),
    /// Is this store, spoken to through this mouth, right? In seconds, for any target
    Check(Check),
    /// What can be measured here, and how to get what is missing
    Stores(Stores),
    /// What the jobs are, their settings and defaults
    Jobs,
    /// Write a job's data to standard output, to use elsewhere
    Data(DataOf),
    /// The fans answer out of a store: who else fans of a page are fans of
    Query(Query),
    /// The highest rate at which each target keeps a promise to its users
    FindMax(Box<FindMax>),
    /// What got faster and what slower: two results files, or two targets in one run
    Compare(Box<Compare>),
    /// Is it kept? Kill stores in the middle of their work, and count their syncs
    Crash(Crash),
    /// Print a results file again
    Show(Show),
    /// One trial, as told on standard input
    #[command(hide = true)]
    Trial,
    /// A check's probes, as told on standard input
    #[command(hide = true)]
    Probe,
    /// The clients of a store that is to be killed, as told on standard input
    #[command(hide = true)]
    Ledger,
    /// A store that is to lose its power, under a tracer
    #[command(hide = true)]
    Outage(super::crash::Outage),
    /// What a job's end state must be, as told on standard input
    #[command(hide = true)]
    Truth,
    /// The server of the control `array`, until it is killed
    #[command(hide = true)]
    Array(Array),
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair run fans ram lmdb redis redis+unix memcached+unix\n  \
    kvfair run ngrams --input messages.txt.gz --clients 4 redis memcached\n  \
    kvfair run getset redis+unix memcached+unix --clients 1,50,300 --depth 16\n  \
    kvfair run mixed memcached tokyotyrant mariadb --reads 9 --writes 1 --keys zipf:0.99\n  \
    kvfair run mixed redis+unix lmdb mariadb --rate 20%,50%,80%\n  \
    kvfair run trace --input cluster52.000.zst --format twitter redis memcached\n  \
    kvfair run fans redis://host:6379/9 'redis?name=mine' --blocks 5\n  \
    kvfair run --exec './mine.py -h {host} -p {port}' redis valkey memcached\n  \
    kvfair run fans lmdb --keep ./kept     then: kvfair query lmdb:./kept/lmdb 'Michael Jackson'")]
pub struct Run {
    /// The job: see `kvfair jobs`; with --exec a target
    #[arg(required_unless_present = "exec")]
    pub job: Option<String>,
    /// Stores by name (`redis`, `redis+unix`) or URL; every store found here if none is named
    ///
    /// A name starts a server of our own or opens a fresh directory. A URL is somebody else's store: it must be empty,
    /// and what the job wrote is deleted again. `TARGET?name=X` calls a target X in the table.
    pub targets: Vec<String>,
    #[command(flatten)]
    pub own: Exec,
    #[command(flatten)]
    pub how: How,
}

impl Run {
    /// The name of the job; none where a program is run.
    pub fn job(&self) -> &str {
        self.job.as_deref().unwrap_or_default()
    }
}

/// How a job is run.
#[derive(Debug, Args)]
pub struct How {
    /// Read the job's data from a file instead of making it (plain, .gz or .zst)
    #[arg(long, short, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The form of the data, where the file's name does not tell: jsonl, tsv, text, twitter, libcachesim, oracle, arc
    #[arg(long, value_name = "FORM")]
    pub format: Option<String>,
    /// Pass over at most N bad lines of the input, and count them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_bad: u64,
    #[command(flatten)]
    pub size: Size,
    /// Clients that work at once; for a job of requests a list, with LO..HI:STEP for a range [default: 1; `getset`
    /// 1,5,10..100:10,200,300; `mixed` and `ycsb-*` 10]
    #[arg(long, short, value_name = "N", value_parser = points::parse)]
    pub clients: Option<Points>,
    /// How fast `trace` replays: `asap`, at the times that were `recorded`, or so many times as fast, as in 10x
    /// [default: asap]
    #[arg(long, value_name = "SPEED", value_parser = points::replay)]
    pub replay: Option<Replay>,
    #[command(flatten)]
    pub load: Requests,
    /// How `fans` asks: whole values one by one (portable), a profile's at once (batch), by the store's own means of
    /// counting (native), or by check-and-set (cas); several, as in portable,batch, stand side by side
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "portable")]
    pub via: Vec<Via>,
    /// How many clients share `fans`: each owns some pages, or takes whole profiles and meets the others
    #[arg(long, value_name = "HOW", default_value_t = Split::Pages)]
    pub split: Split,
    /// What must survive of acknowledged writes: nothing, a killed process, a power cut
    #[arg(long, value_name = "CLASS", default_value_t = Durability::None)]
    pub durability: Durability,
    /// Whose settings: `matched` is the same class and memory for all, `shipped` is as each store's makers ship it
    #[arg(long = "config", value_name = "WHOSE", default_value_t = Configuration::Matched)]
    pub configuration: Configuration,
    /// How sure to be: quick (2 minutes, intervals of 5 % to either side), normal (15 minutes, 3 %) or careful (as long
    /// as it takes, 1 %, for made data of three seeds) [default: quick]
    ///
    /// Blocks of trials are run until intervals against the first target are so narrow, 6 at least, or the time is
    /// over. A job of requests or of made data is sized to fit unless you size it.
    #[arg(long, value_name = "HOW")]
    pub effort: Option<Effort>,
    /// Exactly so many blocks of trials, each with one trial of every target in random order
    ///
    /// Below 4 nothing is claimed, from 6 on intervals are exact. From 4 on a block that is not counted comes first,
    /// and the first target is run twice in each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "effort")]
    pub blocks: Option<u32>,
    /// Fit the run into this time: pilots size the job unless you do, and no block starts that would not fit
    /// [default: the effort's]
    #[arg(long, value_name = "TIME", value_parser = points::duration)]
    pub budget: Option<Duration>,
    /// Give servers half of the processors, and clients, with embedded stores, the others (Linux)
    #[arg(long)]
    pub pin: bool,
    /// Run the first target but once in each block: then nobody knows how far the same store comes out from itself
    #[arg(long)]
    pub no_aa: bool,
    /// Cut a trial off after this time, or a point of a sweep; its row then says how far it came
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = points::duration)]
    pub timeout: Duration,
    /// Compare all of the end state with the truth, or a sample of keys (for jobs larger than memory)
    #[arg(long, value_name = "HOW", default_value = "full", value_parser = verify)]
    pub verify: Verify,
    /// Write the records to this file, which must not exist yet [default: ./kvfair-results/<UTC>-<job>.jsonl]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave every target's data in DIR, and print the command that queries it
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Check the answers and time nothing: one block, no seconds in the table
    #[arg(long)]
    pub answers_only: bool,
    /// Print the trials in their order, and stop
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub look: Look,
}

/// What a job of requests asks.
#[derive(Debug, Default, Args)]
pub struct Requests {
    /// Records that are loaded before a job of requests begins, and among which keys are drawn [default: 100000;
    /// `mixed` 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub records: Option<u64>,
    /// Bytes of each value of a job of requests; a range 16-4k or `etc` (as in Facebook's memcached) for lengths that
    /// differ from key to key; a list 32,1k,32k,1M to sweep over, with all records loaded anew for each [default:
    /// `getset` 32; `mixed` 2048; `ycsb-*` 1000]
    #[arg(long, value_name = "BYTES", value_parser = points::values)]
    pub values: Option<Values>,
    /// Of each value of a job of requests, the part in 100 that compresses to nothing [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub compressible: Option<u32>,
    /// Keys that `getset` asks for in one question; a list, as in 1,10,100, to sweep over [default: 1]
    #[arg(long, value_name = "N", value_parser = points::batches)]
    pub batch: Option<Sizes>,
    /// Requests that each client of a job of requests has under way, asked together when all before are answered
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub depth: Option<u32>,
    /// Requests a second of all clients together, each due whether those before it are answered or not: 20k; several,
    /// as in 5k,20k, or parts of what the slowest target can do, as in 20%,50%,80%
    #[arg(long, value_name = "RATES", value_parser = points::rates)]
    pub rate: Option<Rates>,
    /// How requests at a --rate are spread over time: poisson (as independent users come) or constant
    /// [default: poisson]
    #[arg(long, value_name = "HOW")]
    pub arrivals: Option<Arrivals>,
    /// Only the sets of `getset`, or only its gets
    #[arg(long, value_name = "WHICH")]
    pub only: Option<Only>,
    /// How a job of requests chooses its keys: uniform, sequential, zipf:0.99, latest, hotspot:20/80, ycsb-zipfian
    /// [default: uniform; `ycsb-*` ycsb-zipfian, `ycsb-d` latest]
    #[arg(long, value_name = "HOW")]
    pub keys: Option<Keys>,
    /// Gets of `mixed`, to so many --writes [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub reads: Option<u32>,
    /// Sets of `mixed`, to so many --reads [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub writes: Option<u32>,
    /// Open lost connections of a job of requests again, ask what was under way once more, and count them; without it
    /// the first one fails the trial
    #[arg(long)]
    pub reconnect: bool,
}

impl Requests {
    /// The options that were given, as they are typed.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.records.is_some(), "--records"),
            (self.values.is_some(), "--values"),
            (self.compressible.is_some(), "--compressible"),
            (self.batch.is_some(), "--batch"),
            (self.depth.is_some(), "--depth"),
            (self.rate.is_some(), "--rate"),
            (self.arrivals.is_some(), "--arrivals"),
            (self.only.is_some(), "--only"),
            (self.keys.is_some(), "--keys"),
            (self.reads.is_some(), "--reads"),
            (self.writes.is_some(), "--writes"),
            (self.reconnect, "--reconnect"),
        ];
        given.into_iter().filter(|(given, _)| *given).map(|(_, name)| name)
    }
}

/// How large a job is and which data it gets. Each job has one of the sizes.
#[derive(Debug, Default, Args)]
pub struct Size {
    /// Profiles of the job `fans` [default: 10000, or all of the input]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub profiles: Option<u64>,
    /// Messages of the job `ngrams` [default: 45000, or all of the input]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: Option<u64>,
    /// Requests of `getset` (sets and gets each), `mixed` or `ycsb-*` at each number of clients or rate [default:
    /// 100000; `mixed` 200000; at a --rate 10 seconds' worth, and 10000 at least], or of `trace` [default: all of the
    /// input]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub requests: Option<u64>,
    /// Seed of the data and of the order of trials [default: the recipe's own, so that runs repeat; `--effort careful`
    /// has data of 0, 1 and 2]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Array {
    /// What is spoken: resp or text
    #[arg(long)]
    pub mouth: String,
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

/// How results are shown: as text unless another form is asked for.
#[derive(Clone, Debug, Default, Args)]
pub struct Look {
    /// Print the rows as JSON
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print the rows as CSV, with everything that was seen and numbers as they are
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Print the table as GitHub's Markdown
    #[arg(long, group = "form")]
    pub markdown: bool,
    /// All columns, however wide, and all warnings
    #[arg(long)]
    pub wide: bool,
    /// Of several blocks of a sweep, the requests a second that are told: median, or best (nothing is claimed from it)
    #[arg(long, value_name = "WHICH", default_value = "median")]
    pub stat: Statistic,
    /// A line for every trial, in the order in which they were run; of a sweep for every point of it
    #[arg(long)]
    pub all: bool,
    /// Leave out the warnings of that name; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub no_warn: Vec<String>,
}

impl Look {
    /// What only tables of runs have.
    pub fn not_everywhere(&self) -> Option<&'static str> {
        let given = [(self.csv, "--csv"), (self.markdown, "--markdown"), (self.all, "--all")];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair check memcached 'memcached?mouth=binary'\n  \
    kvfair check redis://host:6379/2   somebody else's: only keys below kvfair:check: are written, then deleted\n\n\
    Exit codes: 0 all right, 1 could not be asked, 3 not here or would not start, 4 something was wrong.")]
pub struct Check {
    /// Stores by name (`redis`, `redis+unix`) or URL; every store found here if none is named
    ///
    /// Sizes and bytes of values and keys, counters, many keys, times to live, check-and-set, several clients, replies
    /// in pieces: what was sent and what came is told of each that is wrong, limits as limits.
    pub targets: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Stores {
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
    kvfair find-max mixed redis+unix memcached+unix --slo p99:1ms\n  \
    kvfair find-max ycsb-b redis mariadb --slo p99.9:20ms --clients 50 --durability power")]
pub struct FindMax {
    #[command(flatten)]
    pub run: Run,
    /// The promise: a share of all requests answered within a time from when they were due
    #[arg(long, value_name = "PROMISE", default_value = "p99:1ms")]
    pub slo: Promise,
    /// How long each rate is kept, in whole seconds; three times as long where it must be certain
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub step: u32,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair compare fans --base redis --head redis+unix\n  \
    kvfair compare fans --base redis --head 'redis?program=./src/redis-server' --fail-if slower:3%\n  \
    kvfair compare monday.jsonl tuesday.jsonl")]
pub struct Compare {
    /// Two results files, the older first; or the job on which --base and --head are compared [default: fans]
    pub what: Vec<String>,
    /// The target as it was: run in the same blocks as --head, so that the machine can favour neither
    #[arg(long, value_name = "TARGET")]
    pub base: Option<String>,
    /// The target as it is: another build (`redis?program=PATH`), another transport, other settings
    #[arg(long, value_name = "TARGET")]
    pub head: Option<String>,
    /// Exit with 5 where it takes so much more, and with 6 where that cannot be ruled out: slower:3% (seconds) or
    /// cpu:3%
    #[arg(long, value_name = "LIMIT")]
    pub fail_if: Option<Limit>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair crash redis sqlite --kills 100\n  \
    kvfair crash --durability power\n\n\
    Exit codes: 0 every claim holds, 4 a claim failed, 6 a claim cannot be said here (no strace, data in memory).")]
pub struct Crash {
    /// Stores by name (`redis`, `lmdb`); every store found here that claims to keep anything if none is named
    ///
    /// Only stores that are started here: nobody else's store is killed, so a URL is refused.
    pub targets: Vec<String>,
    /// The class to try: crash or power [default: each that a store claims]
    #[arg(long, value_name = "CLASS")]
    pub durability: Option<Durability>,
    /// How often each store is killed at each class, and as often where that is a loss of power
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub kills: u32,
    /// Seed of the moments of the kills [default: another one each time; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what was seen as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    kvfair show --wide\n  \
    kvfair show mine.jsonl --markdown\n  \
    kvfair show --all --csv > trials.csv\n  \
    kvfair show --svg sweep.svg\n  \
    kvfair show mine.jsonl --histograms ./histograms")]
pub struct Show {
    /// A results file; the newest in ./kvfair-results if none is named
    pub results: Option<PathBuf>,
    /// Draw a sweep into this file, which must not exist yet
    ///
    /// Requests a second (at rates the response, p99) and CPU a request against what was swept over, for light and dark
    /// screens.
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

fn verify(text: &str) -> Result<Verify, String> {
    match text {
        "full" => Ok(Verify::Full),
        "sample" => Ok(Verify::Sample),
        _ => Err("full or sample".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed_and_every_option_has_help() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            for argument in sub.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", sub.get_name(), argument.get_id());
            }
        }
    }
}
