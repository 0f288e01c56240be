//! From the records of a run to one row a target: medians over its trials, and what became of those that did not
//! finish.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::costs::{BATCH_ENGINES, bytes_written, group, is_many};
use super::lookups::Lookups;
use super::queries::Queries;
use super::staleness::Stale;
use super::standing::{Counted, Standings};
use super::times;
use super::versus::Versus;
use kvfair_core::metrics::Metrics;
use kvfair_core::part::Part;
use kvfair_core::record::{Outcome, Phase, Record, TTLS_LEFT_OUT, Usage, Verdict};
use kvfair_core::trial::Transport;
use kvfair_core::units;
use kvfair_stats::parallel;
use kvfair_stats::sample::Sample;

/// One target's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub target: String,
    pub store: String,
    pub transport: Transport,
    /// What it may be ranked with: how the job asked, and whether from behind a cache. Empty for the usual way.
    pub group: String,
    pub baseline: bool,
    /// The round-trip time to its server that a proxy kept; none without a proxy.
    pub rtt_us: Option<u64>,
    /// The best and the worst place that it may have in its group; none where nothing is ranked.
    pub rank: Option<(usize, usize)>,
    /// The job is one of requests, each answered by itself: what counts is how many are served.
    pub of_requests: bool,
    /// The job replays recorded traffic: what counts besides is how often a get found nothing.
    pub of_trace: bool,
    /// The job reads what a store was filled with: what counts is how many it finds, and what each takes up.
    pub of_lookup: bool,
    /// A program of the user's was run, which is one op: what is told of an op is told of its run.
    pub of_program: bool,
    pub version: String,
    pub client_library: String,
    /// Finished trials with right answers.
    pub trials: usize,
    /// Times to live of a recording that the store was not given, for want of such: in one trial.
    pub ttls_left_out: u64,
    pub status: Status,
    /// Numbers only where the status allows them.
    pub numbers: Option<Numbers>,
}

/// Medians over a target's trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    pub seconds: f64,
    pub seconds_lowest: f64,
    pub seconds_highest: f64,
    /// Of it, for the final flush to the durability level.
    pub final_flush_s: f64,
    /// Times the seconds of its group's best target, whichever that is, by pairs of the same block; none for baselines.
    pub vs_best: Option<Versus>,
    /// Times the CPU of the job of whoever used least, `null` left out; only where it was asked for: see [`fill_in`].
    pub cpu_vs_least: Option<Versus>,
    pub units_per_s: f64,
    /// Of the first trial's run: all trials count the same, but for what depends on who is faster.
    pub run: Metrics,
    /// Of what a cache was asked, the share that it had; none without a cache.
    pub hit_share: Option<f64>,
    /// Of the clients' time, the share between a question and its answer.
    pub waiting_share: f64,
    /// See [`Record::ops_of_job`].
    pub ops_of_job: u64,
    pub client_cpu_us_per_op: f64,
    pub server_cpu_us_per_op: Option<f64>,
    /// Of the proxy that stands for the network; it is in no other number.
    pub proxy_cpu_us_per_op: Option<f64>,
    /// Of all the CPU time, the share in the kernel.
    pub system_share: f64,
    /// Of the server, or of the trial's process where the store lives in it; none of a server that could not be looked
    /// into.
    pub anonymous_bytes: Option<u64>,
    pub shared_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    /// Of the trial's process, or of the user's program, where the store is another one.
    pub client_anonymous_bytes: Option<u64>,
    pub bytes_on_disk: Option<u64>,
    pub bytes_written: Option<u64>,
    /// Processors that client and server kept busy at once, on average.
    pub cores_used: f64,
    /// Bytes that went towards a disk for each byte of keys and values that was handed over; above the filesystem,
    /// whose own journal is nobody's.
    pub written_per_user_byte: Option<f64>,
    /// Bytes allocated on disk for each byte of keys and values that the store held at the end.
    pub allocated_per_user_byte: Option<f64>,
    /// Of a job that reads what a store was filled with.
    pub lookups: Option<Lookups>,
    /// What was asked once everything was built, where anything was.
    pub queries: Option<Queries>,
    /// How old what replicas answered was; only where it was asked for: see [`fill_in`].
    pub stale: Option<Stale>,
    /// Only where they were asked for: see [`fill_in`].
    pub op_times: Option<OpTimes>,
    pub timed_one_in: u32,
}

/// Times of single ops, of all trials' ops together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpTimes {
    pub op_ns_p50: u64,
    pub op_ns_p99: Option<u64>,
    pub op_ns_p999: Option<u64>,
    pub op_ns_max: u64,
}

/// What became of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    Right,
    /// Nobody wanted to know.
    Unchecked,
    /// Holds nothing to be checked.
    Baseline,
    /// The answers were wrong: there is no number.
    Wrong {
        key: String,
        expected: String,
        found: String,
        wrong_keys: u64,
    },
    /// "> 300 s, 34 % done".
    TimedOut {
        after_s: f64,
        done_share: f64,
    },
    Refused {
        reason: String,
    },
    Failed {
        reason: String,
    },
    Missing {
        reason: String,
        get_it: String,
    },
    /// Not run, for want of time.
    LeftOut {
        reason: String,
    },
}

/// All rows: ranked ones by their groups and seconds, then baselines by theirs, then what has no number.
pub fn rows(records: &[Record], standings: &Standings<'_>) -> Vec<Row> {
    let mut targets: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        targets.entry(&record.target.label).or_default().push(record);
    }
    let targets: Vec<Vec<&Record>> = targets.into_values().collect();
    let mut rows = parallel::map(&targets, is_many(records), |trials| row(trials, &standings.counted));
    beside_the_best(&mut rows, standings);
    rows.sort_by(|one, other| order(one).partial_cmp(&order(other)).expect("seconds are numbers"));
    rows
}

/// Fills in what few ask for: CPU against who used least, and the times of single ops. Those are in histograms, which
/// take longer to read than all else in a record; an error names the trial whose are broken.
pub fn fill_in(rows: &mut [Row], records: &[Record], standings: &Standings<'_>) -> Result<()> {
    let vs_least = cpu_vs_least(rows, standings);
    for row in rows {
        let Some(numbers) = &mut row.numbers else { continue };
        numbers.cpu_vs_least = vs_least.get(row.target.as_str()).copied();
        // What a program asks of nobody has no times.
        if row.of_program || row.group == BATCH_ENGINES {
            continue;
        }
        let counted = |trial: &&Record| is_counted(trial, &standings.counted);
        let trials = records.iter().filter(|trial| trial.target.label == row.target).filter(counted);
        let trials: Vec<&Record> = trials.collect();
        if let Some(queries) = &mut numbers.queries {
            queries.fill_in(&trials)?;
        }
        let runs: Vec<_> = trials.into_iter().filter_map(|trial| Some((trial, trial.phase(Part::Run)?))).collect();
        numbers.stale = Stale::of(&runs)?;
        let times = times::merged(&runs, |run| Some(&run.times_ns))?;
        numbers.op_times = Some(OpTimes {
            op_ns_p50: times.median_ns(),
            op_ns_p99: times.quantile_ns(0.99),
            op_ns_p999: times.quantile_ns(0.999),
            op_ns_max: times.max_ns(),
        });
    }
    Ok(())
}

/// CPU of the job beside the least of the targets that [`least_cpu`] chooses from, by target.
fn cpu_vs_least(rows: &[Row], standings: &Standings<'_>) -> BTreeMap<String, Versus> {
    let (Some(cpu), Some(least)) = (standings.cpu(), least_cpu(rows)) else { return BTreeMap::new() };
    let is_in = |row: &&Row| row.numbers.is_some() && row.status.is_of_a_store() && row.baseline == least.baseline;
    let candidates: BTreeSet<&str> = rows.iter().filter(is_in).map(|row| row.target.as_str()).collect();
    let versus = cpu.versus_best(|target| candidates.contains(target)).into_iter();
    versus.map(|(target, versus)| (target.to_string(), versus)).collect()
}

/// The one that used least CPU for the job: a baseline only where there is nothing else, and never `null`, which uses
/// next to none.
pub fn least_cpu(rows: &[Row]) -> Option<&Row> {
    let cpu_us = |row: &Row| row.numbers.as_ref().map_or(f64::MAX, Numbers::cpu_us);
    let used = rows.iter().filter(|row| row.numbers.is_some() && row.status.is_of_a_store());
    used.min_by(|one, other| one.baseline.cmp(&other.baseline).then(cpu_us(one).total_cmp(&cpu_us(other))))
}

/// The fastest of a group: rows stand by their seconds.
pub fn best_of<'a>(rows: &'a [Row], group: &str) -> Option<&'a Row> {
    rows.iter().find(|row| !row.baseline && row.group == group && row.numbers.is_some())
}

/// Ranks, and ratios to the best of each group.
fn beside_the_best(rows: &mut [Row], standings: &Standings<'_>) {
    let ranked = rows.iter().filter(|row| !row.baseline && row.numbers.is_some());
    let ranked: BTreeSet<String> = ranked.map(|row| row.target.clone()).collect();
    for (group, standing) in &standings.groups {
        let vs_best = standing.versus_best(|target| ranked.contains(target));
        for row in rows.iter_mut().filter(|row| !row.baseline && row.group == *group) {
            let Some(numbers) = row.numbers.as_mut() else { continue };
            numbers.vs_best = vs_best.get(row.target.as_str()).copied();
            row.rank = standing.rank(&row.target).filter(|_| standings.may_rank());
        }
    }
}

fn order(row: &Row) -> (bool, bool, &str, f64, &str) {
    let seconds = row.numbers.as_ref().map_or(0.0, |numbers| numbers.seconds);
    // Batch engines stand behind the baselines.
    let group = if row.baseline && row.group != BATCH_ENGINES { "" } else { row.group.as_str() };
    (row.numbers.is_none(), row.baseline, group, seconds, &row.target)
}

fn row(trials: &[&Record], counted: &Counted) -> Row {
    let status = status(trials);
    let finished: Vec<&Record> = trials.iter().copied().filter(|trial| is_counted(trial, counted)).collect();
    let may_tell = status.has_numbers() && !trials[0].run.answers_only;
    let facts = trials.iter().find_map(|trial| trial.store.as_ref());
    Row {
        target: trials[0].target.label.clone(),
        store: trials[0].target.store.clone(),
        transport: trials[0].target.transport,
        group: group(trials[0]),
        baseline: trials[0].target.baseline,
        rtt_us: trials[0].network.map(|network| network.rtt_us),
        rank: None,
        of_requests: trials[0].job.load.is_some(),
        of_trace: trials[0].stream.traced.is_some(),
        of_lookup: trials[0].stream.model.is_some(),
        of_program: trials[0].job.program().is_some(),
        version: facts.map_or_else(String::new, |facts| facts.version.clone()),
        client_library: facts.map_or_else(String::new, |facts| facts.client_library.clone()),
        trials: finished.len(),
        ttls_left_out: finished.first().and_then(|trial| trial.counters.get(TTLS_LEFT_OUT)).copied().unwrap_or(0),
        numbers: if may_tell { numbers(&finished) } else { None },
        status,
    }
}

/// The worst of a target's trials speaks for it: one wrong answer among three trials is a wrong store.
pub(super) fn status(trials: &[&Record]) -> Status {
    let told = trials.iter().map(|trial| match (&trial.verdict, &trial.outcome) {
        (Verdict::Wrong { first, wrong_keys, .. }, _) => Status::Wrong {
            key: first.key.clone(),
            expected: first.expected.clone(),
            found: first.found.clone(),
            wrong_keys: *wrong_keys,
        },
        (_, Outcome::Failed { reason }) => Status::Failed { reason: reason.clone() },
        (_, Outcome::TimedOut { after_s, done_share }) => {
            Status::TimedOut { after_s: *after_s, done_share: *done_share }
        }
        (_, Outcome::Refused { reason }) => Status::Refused { reason: reason.clone() },
        (_, Outcome::Missing { reason, get_it }) => Status::Missing { reason: reason.clone(), get_it: get_it.clone() },
        (_, Outcome::LeftOut { reason, .. }) => Status::LeftOut { reason: reason.clone() },
        (Verdict::Baseline, Outcome::Finished) => Status::Baseline,
        (Verdict::Right(_), Outcome::Finished) => Status::Right,
        (Verdict::Answered(_), Outcome::Finished) => Status::Unchecked,
        (Verdict::NotReached, Outcome::Finished) => {
            Status::Failed { reason: "its answers were not checked".to_string() }
        }
    });
    told.min_by_key(|status| match status {
        Status::Wrong { .. } => 0,
        Status::Failed { .. } => 1,
        Status::TimedOut { .. } => 2,
        Status::Refused { .. } => 3,
        Status::Missing { .. } => 4,
        Status::LeftOut { .. } => 5,
        Status::Right | Status::Unchecked | Status::Baseline => 6,
    })
    .expect("a row has a trial")
}

/// What a trial came to, number by number; nothing where there is none.
type Seen = [Option<f64>; 17];

/// All of it at once: a trial's parts lie far from each other in memory, and there may be thousands of trials.
fn seen(trial: &Record) -> Seen {
    let memory = trial.store_memory();
    let ops = trial.phase(Part::Run).map(|_| trial.ops_of_job() as f64);
    let per_op = |usage: &dyn Fn(&Phase) -> Option<Usage>| {
        let cpu_s: Option<f64> = trial.measured().map(|phase| usage(phase).map(|usage| usage.cpu_s())).sum();
        Some(cpu_s? * 1e6 / ops?)
    };
    [
        trial.took_s(),
        trial.phase(Part::FinalFlush).map(|flush| flush.took_s),
        hit_share(trial),
        waiting_share(trial),
        per_op(&|phase| Some(phase.client)),
        per_op(&|phase| phase.servers()),
        system_share(trial),
        memory.map(|memory| memory.anonymous_bytes as f64),
        memory.map(|memory| memory.file_bytes as f64),
        memory.map(|memory| memory.shared_bytes as f64),
        trial.disk_bytes().map(|bytes| bytes as f64),
        bytes_written(trial),
        cores_used(trial),
        written_per_user_byte(trial),
        allocated_per_user_byte(trial),
        client_anonymous_bytes(trial).map(|bytes| bytes as f64),
        per_op(&|phase| phase.proxy),
    ]
}

fn numbers(trials: &[&Record]) -> Option<Numbers> {
    let all: Vec<Seen> = trials.iter().map(|trial| seen(trial)).collect();
    let of = |place: usize| Sample::new(all.iter().filter_map(|seen| seen[place]).collect());
    let seconds = of(0)?;
    let medians: Seen = std::array::from_fn(|place| of(place).map(|sample| sample.median()));
    let [_, final_flush_s, hit_share, waiting, client_cpu, server_cpu, system, anonymous, file, shared, ..] = medians;
    let [.., on_disk, written, cores_used, _, _, _, _] = medians;
    let [.., written_per_user_byte, allocated_per_user_byte, client_anonymous, proxy_cpu] = medians;
    let run = trials[0].phase(Part::Run)?;
    Some(Numbers {
        seconds: seconds.median(),
        seconds_lowest: seconds.lowest(),
        seconds_highest: seconds.highest(),
        final_flush_s: final_flush_s.unwrap_or(0.0),
        vs_best: None,
        cpu_vs_least: None,
        units_per_s: run.metrics.units as f64 / seconds.median().max(1e-9),
        run: run.metrics,
        hit_share,
        waiting_share: waiting.unwrap_or(0.0),
        ops_of_job: trials[0].ops_of_job(),
        client_cpu_us_per_op: client_cpu.unwrap_or(0.0),
        server_cpu_us_per_op: server_cpu,
        proxy_cpu_us_per_op: proxy_cpu,
        system_share: system.unwrap_or(0.0),
        anonymous_bytes: anonymous.map(|bytes| bytes as u64),
        shared_bytes: shared.map(|bytes| bytes as u64),
        file_bytes: file.map(|bytes| bytes as u64),
        client_anonymous_bytes: client_anonymous.map(|bytes| bytes as u64),
        bytes_on_disk: on_disk.map(|bytes| bytes as u64),
        bytes_written: written.map(|bytes| bytes as u64),
        cores_used: cores_used.unwrap_or(0.0),
        written_per_user_byte,
        allocated_per_user_byte,
        lookups: Lookups::of(trials, seconds.median()),
        queries: Queries::of(trials),
        stale: None,
        op_times: None,
        timed_one_in: run.timed_one_in,
    })
}

/// Of the trial's process where the store is another one.
pub(super) fn client_anonymous_bytes(trial: &Record) -> Option<u64> {
    let is_apart = trial.memory.server.is_some() || trial.target.is_guest();
    is_apart.then_some(trial.memory.client.anonymous_bytes)
}

impl Numbers {
    /// Memory of the store that the kernel cannot take back.
    pub fn memory_bytes(&self) -> Option<u64> {
        Some(self.anonymous_bytes? + self.shared_bytes?)
    }

    /// So many of these for each counter that the store was filled with.
    pub fn per_entry(&self, bytes: Option<u64>) -> Option<f64> {
        let entries = self.lookups?.entries.max(1);
        Some(bytes? as f64 / entries as f64)
    }

    /// Of client and server.
    pub fn cpu_us_per_op(&self) -> f64 {
        self.client_cpu_us_per_op + self.server_cpu_us_per_op.unwrap_or(0.0)
    }

    /// The same for all ops.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_us_per_op() * self.ops_of_job as f64
    }
}

fn is_counted(trial: &Record, counted: &Counted) -> bool {
    trial.took_s().is_some() && trial.is_right() && counted.has(trial)
}

/// The share of the time of all clients that they waited for the store.
pub(super) fn waiting_share(trial: &Record) -> Option<f64> {
    // The final flush keeps one client waiting, the run all of them.
    let all_s: f64 = trial
        .measured()
        .map(|phase| {
            phase.took_s
                * if phase.part == Part::Run { f64::from(trial.clients * trial.job.lookup.readers.max(1)) } else { 1.0 }
        })
        .sum();
    Some((trial.metrics().waiting_s / all_s.max(1e-9)).min(1.0))
}

fn hit_share(trial: &Record) -> Option<f64> {
    let of = |name: &str| trial.counters.get(name).map(|&count| count as f64);
    let (hits, misses) = of("cache hits").zip(of("cache misses"))?;
    Some(hits / (hits + misses).max(1.0))
}

fn system_share(trial: &Record) -> Option<f64> {
    let usages = trial.measured().flat_map(|phase| std::iter::once(phase.client).chain(phase.servers()));
    let (system_s, cpu_s) = usages.fold((0.0, 0.0), |sum, usage| (sum.0 + usage.system_s, sum.1 + usage.cpu_s()));
    (cpu_s > 0.0).then_some(system_s / cpu_s)
}

fn cores_used(trial: &Record) -> Option<f64> {
    let used = |phase: &Phase| phase.client.cpu_s() + phase.servers().map_or(0.0, |servers| servers.cpu_s());
    let took_s: f64 = trial.measured().map(|phase| phase.took_s).sum();
    Some(trial.measured().map(used).sum::<f64>() / took_s).filter(|_| took_s > 0.0)
}

fn written_per_user_byte(trial: &Record) -> Option<f64> {
    let bytes = trial.metrics().bytes_out;
    bytes_written(trial).filter(|_| bytes > 0).map(|written| written / bytes as f64)
}

fn allocated_per_user_byte(trial: &Record) -> Option<f64> {
    let (Verdict::Right(checked), Some(allocated)) = (&trial.verdict, trial.disk_bytes()) else { return None };
    // A sample of the keys stands for all of them.
    let held = checked.bytes as f64 / checked.keys.max(1) as f64 * checked.keys_expected as f64;
    (held > 0.0 && allocated > 0).then(|| allocated as f64 / held)
}

impl Status {
    /// Whether its row tells any.
    pub fn has_numbers(&self) -> bool {
        matches!(self, Status::Right | Status::Unchecked | Status::Baseline)
    }

    /// And of a store rather than of what holds nothing.
    pub fn is_of_a_store(&self) -> bool {
        self.has_numbers() && *self != Status::Baseline
    }

    /// What a row without numbers says in their place.
    pub fn in_words(&self) -> String {
        match self {
            Status::Right => "right".to_string(),
            Status::Unchecked => "answers not asked for".to_string(),
            Status::Baseline => "baseline: nothing to check".to_string(),
            // Of a program of the user's no key is known.
            Status::Wrong { expected, found, wrong_keys: 0, .. } => {
                format!("FAILED: another answer: {found}; expected {expected}")
            }
            Status::Wrong { key, expected, found, wrong_keys } => {
                let keys = if *wrong_keys == 1 { "key" } else { "keys" };
                format!(
                    "FAILED: wrong answers ({} {keys}); first \"{key}\": expected {expected}, found {found}",
                    units::thousands(*wrong_keys)
                )
            }
            Status::TimedOut { after_s, done_share } => {
                format!("> {after_s} s, {:.0} % done", done_share * 100.0)
            }
            Status::Refused { reason } => format!("refused: {reason}"),
            Status::Failed { reason } => format!("failed: {reason}"),
            Status::LeftOut { reason } => format!("not run: {reason}"),
            Status::Missing { reason, get_it } if get_it.is_empty() => format!("would not start: {reason}"),
            Status::Missing { reason, get_it } => format!("not here: {reason}; get it: {get_it}"),
        }
    }
}
