//! What may be typed of a run: targets, data, size, blocks, time and how results are shown.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::agents::AgentArgs;
use super::exec::Exec;

use crate::cli::points::{self, Points, Rates, Replay, Rtts, SizeList, ValueLengths};
use crate::cli::{nearest, renamed};
use crate::jobs;
use crate::model::effort::{BLOCKS_MAX, Effort};
use crate::model::fans::Encoding;
use crate::model::load::{Arrivals, Keys, Only};
use crate::model::trial::{Configuration, Durability, LookupSettings, NgramSettings, NgramUnit, Split, Verify, Via};
use crate::report::point::Statistic;
use crate::report::render::OutputForm;
use crate::report::warn;

#[derive(Debug, Args)]
#[command(after_long_help = examples())]
pub struct RunArgs {
    /// The job: see `kvfair jobs`; with --exec a target
    #[arg(required_unless_present = "exec")]
    pub job: Option<String>,
    /// Stores by name (`redis`, `redis+unix`) or URL; every store found here if none is named
    ///
    /// A name starts a server of our own or opens a fresh directory. A URL is a store by URL: it must be empty
    /// and have memory left for what the job writes, which is deleted again; the first eviction stops the run. Its
    /// password may stand in KVFAIR_PASSWORD or in the variable of the store's own client (REDISCLI_AUTH), for URLs of
    /// one host; on a terminal it is asked for. `TARGET?name=X` calls a target X in the table.
    pub targets: Vec<String>,
    #[command(flatten)]
    pub own: Exec,
    #[command(flatten)]
    pub how: How,
}

impl RunArgs {
    /// The name of the job; none where a program is run.
    pub fn job(&self) -> &str {
        self.job.as_deref().unwrap_or_default()
    }
}

/// What stands below the options: commands, and what a line of a file must be.
fn examples() -> String {
    let files = jobs::ALL.iter().filter(|kind| kind.recognise.is_some());
    let files = files.map(|kind| format!("{} reads {}\n", kind.name, kind.expected));
    format!("{EXAMPLES}\n\nFiles (--input):\n{}", files.collect::<String>())
}

const EXAMPLES: &str = "Examples:\n  \
    kvfair run fans ram lmdb redis redis+unix memcached+unix\n  \
    kvfair run fans --input likes.csv --columns user,page redis lmdb\n  \
    kvfair run ngrams --input messages.txt.gz --clients 4 redis memcached\n  \
    kvfair run getset redis+unix memcached+unix --clients 1,50,300 --depth 16\n  \
    kvfair run mixed memcached tokyotyrant mariadb --reads 9 --writes 1 --keys zipf:0.99\n  \
    kvfair run mixed redis+unix lmdb mariadb --rate 20%,50%,80%\n  \
    kvfair run trace --input cluster52.000.zst --format twitter redis memcached\n  \
    kvfair run fans redis sqlite postgres --via portable,batch --rtt 0,0.2ms,1ms\n  \
    kvfair run fans redis://host:6379/9 'redis?name=mine' --blocks 5\n  \
    kvfair run --exec './mine.py -h {host} -p {port}' redis valkey memcached\n  \
    kvfair run fans lmdb --keep ./kept     then: kvfair query lmdb:./kept/lmdb 'Michael Jackson'";

/// How a job is run.
#[derive(Debug, Args)]
pub struct How {
    /// Read the job's data from a file instead of making it (plain, .gz or .zst); `-` is standard input
    #[arg(long, short, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The form of the data, where its first lines do not tell: jsonl, csv-pairs, csv-profiles, tsv-pairs,
    /// tsv-profiles; text, csv, tsv, jsonl; twitter, libcachesim, oracle, arc
    #[arg(long, value_name = "FORM")]
    pub format: Option<String>,
    /// Columns of CSV or TSV, by name or by number from 1: of `fans` the user and the page (user,page), of `ngrams` the
    /// message
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Field of JSON Lines: of `fans` a list of pages (liked, or liked.name of objects), of `ngrams` the message
    /// [default: likes; text]
    #[arg(long, value_name = "FIELD")]
    pub field: Option<String>,
    /// Skip at most N bad lines of the input, and count them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_bad: u64,
    /// What `ngrams` counts and `lookup` reads: runs of 1 to N neighbouring units, N up to 5; for `ngrams` a list, each
    /// compared by itself [default: 2]
    #[arg(long, value_name = "N", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=i64::from(NgramSettings::ORDER_MAX)))]
    pub order: Vec<u32>,
    /// What they are runs of: `word` or `char` [default: word]
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<NgramUnit>,
    /// Restart the store of `lookup` before it is read, and drop its files from the page cache (Linux)
    #[arg(long)]
    pub cold: bool,
    /// Processes that read the store of `lookup` at once, each as one client [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LookupSettings::READERS_MAX)))]
    pub readers: Option<u32>,
    /// Once `fans` has built its records: ask for the fans of N pages, half of them popular, and for the pages that
    /// share the most of them; every answer is checked, and timed apart
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub queries: Option<u64>,
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
    /// Refuse a store of `trace` that lets nothing expire, if the recording has times to live; without it they are left
    /// out and counted
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub load: RequestArgs,
    #[command(flatten)]
    pub agents: AgentArgs,
    /// How `fans` and `ngrams` send requests: one per key (portable) or per profile or message (batch), by the store's
    /// own counters (native), or by check-and-set (cas); a list, as in portable,batch, compares them
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "portable")]
    pub via: Vec<Via>,
    /// How the records of `fans` are written: json or binary; both, as in json,binary, stand side by side
    #[arg(long, value_name = "ENCODINGS", value_delimiter = ',', default_value = "json")]
    pub encoding: Vec<Encoding>,
    /// How many clients share `fans`: each writes its own pages, or takes whole profiles and shares all pages
    #[arg(long, value_name = "HOW", default_value_t = Split::Pages)]
    pub split: Split,
    /// What must survive of acknowledged writes: nothing, a killed process, a power cut
    #[arg(long, value_name = "LEVEL", default_value_t = Durability::None)]
    pub durability: Durability,
    /// Whose settings: `matched` is the same durability level and memory for all, `shipped` is as each store's makers
    /// ship it
    #[arg(long = "config", value_name = "WHOSE", default_value_t = Configuration::Matched)]
    pub configuration: Configuration,
    /// How certain results must be: quick (2 minutes, intervals of 5 % to either side), normal (15 minutes, 3 %) or
    /// careful (as long as it takes, 1 %, for made data of three seeds) [default: quick]
    ///
    /// Blocks of trials are run until intervals against the first target are so narrow, 6 at least, or the time is
    /// over. A job of requests or of made data is sized to fit unless you size it; then it may run a quarter longer,
    /// with fewer blocks where that must be.
    #[arg(long, value_name = "HOW")]
    pub effort: Option<Effort>,
    /// Exactly so many blocks of trials, each with one trial of every target in random order
    ///
    /// Below 4 nothing is claimed, from 6 on intervals are exact. From 4 on a warm-up comes first that is not counted,
    /// and one or two targets are run twice in each (A/A controls).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(BLOCKS_MAX)), conflicts_with = "effort")]
    pub blocks: Option<u32>,
    /// Fit the run into this time: pilots size the job unless you do, no block starts that would not fit, and a trial
    /// that is under way at its end is cut off [default: the effort's]
    #[arg(long, value_name = "TIME", value_parser = points::duration)]
    pub budget: Option<Duration>,
    /// Put a network between clients and servers: a proxy of kvfair's delays each way by half of this round trip, as in
    /// 0.2ms; a list, as in 0,0.2ms,1ms, tells in one table what a network changes (Linux)
    ///
    /// For servers that kvfair starts and for URLs, over TCP and Unix sockets. The proxy does not limit how many
    /// bytes pass. It uses the client's processors: a row at 0 goes through it too, and shows what that costs. A store
    /// in the client's own process has no network and is measured once. From 0.05ms to 1s.
    #[arg(long, value_name = "TIMES", value_parser = points::rtts)]
    pub rtt: Option<Rtts>,
    /// Give servers half of the processors, and clients, with embedded stores, the others (Linux)
    #[arg(long)]
    pub pin: bool,
    /// Run no target twice in a block: then the noise floor is unknown and no difference is claimed
    #[arg(long)]
    pub no_aa: bool,
    /// Run blocks until the time is over, however narrow intervals are: `compare --fail-if` does so
    #[arg(skip)]
    pub until_budget: bool,
    /// What was typed of the run that this is once more, by `kvfair rerun`
    #[arg(skip)]
    pub again: Option<Vec<String>>,
    /// Cut a trial off after this time, or a point of a sweep; its row then says how far it came
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = points::duration)]
    pub timeout: Duration,
    /// Compare all of the end state with the expected state, or a sample of keys (for jobs larger than memory)
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
    /// Write to a store by URL that cannot say whether it is empty (each key is asked for first), or how much memory it
    /// has left (it may drop its owner's records)
    #[arg(long)]
    pub accept_unchecked: bool,
    /// Show points and rates that noise disturbed, instead of "unclear", and do not exit with 6 for noise
    #[arg(long, env = "KVFAIR_ACCEPT_NOISE", value_parser = clap::builder::FalseyValueParser::new())]
    pub accept_noise: bool,
    /// Leave out targets whose store is not installed; without it they are an error
    #[arg(long)]
    pub skip_missing: bool,
    /// Print the trials in their order, and stop
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub look: Look,
}

impl How {
    /// How results are shown, and where they are.
    pub fn look(&self) -> Look {
        Look { file: self.output.clone(), ..self.look.clone() }
    }
}

/// What a job of requests asks.
#[derive(Debug, Default, Args)]
pub struct RequestArgs {
    /// Records that are loaded before a job of requests begins, and among which keys are drawn [default: 100000;
    /// `mixed` 10000]
    #[arg(long, value_name = "N", value_parser = points::records)]
    pub records: Option<u64>,
    /// Bytes of each value of a job of requests; a range 16-4k or `etc` (as in Facebook's memcached) for lengths that
    /// differ from key to key; a list 32,1k,32k,1M to sweep over, with all records loaded anew for each [default:
    /// `getset` 32; `mixed` 2048; `ycsb-*` 1000]
    #[arg(long, value_name = "BYTES", value_parser = points::values)]
    pub values: Option<ValueLengths>,
    /// Percentage of each value that is compressible, for jobs of requests [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub compressible: Option<u32>,
    /// Keys that `getset` asks for in one question; a list, as in 1,10,100, to sweep over [default: 1]
    #[arg(long, value_name = "N", value_parser = points::batches)]
    pub batch: Option<SizeList>,
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
    /// Read what a store by URL holds, and write nothing: `getset --only get`, or the gets of `mixed` alone
    ///
    /// At most 100,000 keys of strings are drawn (--records: fewer). The database need not be empty. What the keys
    /// should hold is not known: answers are not checked, and a key that is gone counts as a miss. The load is as fast
    /// as the server answers: --rate limits it. A server that does not know CLIENT NO-TOUCH (Redis before 7.2) counts
    /// each get as a use of its key; a warning says so where it evicts by use.
    #[arg(long)]
    pub read_only: bool,
}

impl RequestArgs {
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
            (self.read_only, "--read-only"),
        ];
        given.into_iter().filter(|(given, _)| *given).map(|(_, name)| name)
    }
}

/// How large a job is and which data it gets. Each job has one of the sizes.
#[derive(Debug, Default, Args)]
pub struct Size {
    /// Profiles of the job `fans` [default: 10000, or all of the input]; several, as in 500,2000,10000, tell how times
    /// grow with size
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = points::count)]
    pub profiles: Vec<u64>,
    /// Messages of the jobs `ngrams` and `lookup` [default: 45000, or all of the input]; or several
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = points::count)]
    pub messages: Vec<u64>,
    /// Requests of `getset` (sets and gets each), `mixed` or `ycsb-*` at each number of clients or rate [default:
    /// 100000; `mixed` 200000; at a --rate 10 seconds' worth, and 10000 at least], or of `trace` [default: all of the
    /// input]
    #[arg(long, value_name = "N", value_parser = points::count)]
    pub requests: Option<u64>,
    /// Seed of the data and of the order of trials [default: the recipe's own, so that runs repeat; `--effort careful`
    /// has data of 0, 1 and 2]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// The forms of what a command shows: text unless another one is asked for.
#[derive(Clone, Debug, Default, Args)]
pub struct Forms {
    /// Print one JSON object (run, claims, rows, ...)
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print the rows as CSV, with everything that was seen
    ///
    /// Numbers are as they are, without rounding.
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Print the table as GitHub's Markdown
    #[arg(long, group = "form")]
    pub markdown: bool,
    /// Write an HTML page into this file, which must be new
    ///
    /// One HTML file that needs nothing else. That of a run has what may be said, a picture, tables, charts, every
    /// block, warnings, settings and versions. It tells no password, home directory or name of a host.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Forms {
    /// The form that is printed.
    pub fn form(&self) -> OutputForm {
        match self {
            Forms { json: true, .. } => OutputForm::Json,
            Forms { csv: true, .. } => OutputForm::Csv,
            Forms { markdown: true, .. } => OutputForm::Markdown,
            _ => OutputForm::Text,
        }
    }
}

/// How results are shown.
#[derive(Clone, Debug, Default, Args)]
pub struct Look {
    #[command(flatten)]
    pub forms: Forms,
    /// All columns, all warnings, and digests of the answers
    #[arg(long)]
    pub wide: bool,
    /// Requests per second to show for a sweep of several blocks: median, or best (nothing is claimed from it)
    #[arg(long, value_name = "WHICH", default_value = "median")]
    pub stat: Statistic,
    /// A line for every trial, in the order in which they were run; of a sweep for every point of it
    #[arg(long)]
    pub all: bool,
    /// Leave out the warnings of that name (repeatable)
    #[arg(long, value_name = "NAME", value_parser = warning)]
    pub no_warn: Vec<String>,
    /// The file that results lie in, where one was named: the next command names it too
    #[arg(skip)]
    pub file: Option<PathBuf>,
}

fn warning(text: &str) -> Result<String, String> {
    if warn::ids().any(|id| id == text) {
        return Ok(text.to_string());
    }
    Err(match renamed::new_name(renamed::WARNINGS, text) {
        Some(new) => format!("this warning is now called {new}"),
        None => match nearest(text, warn::ids()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("there are {}", warn::ids().collect::<Vec<_>>().join(", ")),
        },
    })
}

fn verify(text: &str) -> Result<Verify, String> {
    match text {
        "full" => Ok(Verify::Full),
        "sample" => Ok(Verify::Sample),
        _ => Err("full or sample".to_string()),
    }
}
