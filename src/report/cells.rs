//! From the records of a run to one row a target: medians over its trials, and what became of those that did not
//! finish.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::stats::sample::Sample;
use crate::words::hist::Times;
use crate::words::record::{Outcome, Phase, Record, Usage, Verdict};
use crate::words::trial::Via;
use crate::words::units;

/// One target's row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub target: String,
    /// What it may be ranked with: how the job asked, and whether from behind a cache. Empty for the usual way.
    pub group: String,
    pub control: bool,
    /// The job is one of requests, each answered by itself: what counts is how many are served.
    pub of_requests: bool,
    /// The job replays recorded traffic: what counts besides is how often a get found nothing.
    pub of_trace: bool,
    pub version: String,
    pub mouth: String,
    /// Finished trials with right answers.
    pub trials: usize,
    pub status: Status,
    /// Numbers only where the status allows them.
    pub numbers: Option<Numbers>,
}

/// Medians over a target's trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbers {
    pub seconds: f64,
    pub seconds_lowest: f64,
    pub seconds_highest: f64,
    /// Of it, for settling to the class.
    pub settle_s: f64,
    /// Times the best ranked row's seconds of its group; none for controls.
    pub vs_best: Option<f64>,
    pub units_per_s: f64,
    pub ops: u64,
    pub commands: u64,
    pub conflicts: u64,
    /// Gets that found nothing and were followed by a set; none in a job that has no such.
    pub misses: Option<u64>,
    /// Of what a cache was asked, the share that it had; none without a cache.
    pub hit_share: Option<f64>,
    /// Of the clients' time, the share between a question and its answer.
    pub waiting_share: f64,
    pub client_cpu_us_per_op: f64,
    pub server_cpu_us_per_op: Option<f64>,
    /// Of all the CPU time, the share in the kernel.
    pub system_share: f64,
    /// Of the server, or of the trial's process where the store lives in it.
    pub anonymous_bytes: u64,
    pub file_bytes: u64,
    pub bytes_on_disk: Option<u64>,
    pub bytes_written: Option<u64>,
    /// Of all trials' ops together.
    pub op_ns_p50: u64,
    pub op_ns_p99: Option<u64>,
    pub op_ns_p999: Option<u64>,
    pub op_ns_max: u64,
    pub timed_one_in: u32,
}

/// What became of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Status {
    Right,
    /// Holds nothing to be checked.
    Control,
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
}

/// All rows: ranked ones by their groups and seconds, then controls by theirs, then what has no number.
pub fn rows(records: &[Record]) -> Vec<Row> {
    let mut targets: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        targets.entry(&record.target.label).or_default().push(record);
    }
    let mut rows: Vec<Row> = targets.into_values().map(|trials| row(&trials)).collect();
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.control) {
        if let Some(numbers) = &row.numbers {
            let best = best.entry(row.group.clone()).or_insert(numbers.seconds);
            *best = best.min(numbers.seconds);
        }
    }
    for row in rows.iter_mut().filter(|row| !row.control) {
        if let (Some(numbers), Some(best)) = (row.numbers.as_mut(), best.get(&row.group)) {
            numbers.vs_best = Some(numbers.seconds / best);
        }
    }
    rows.sort_by(|one, other| order(one).partial_cmp(&order(other)).expect("seconds are numbers"));
    rows
}

fn order(row: &Row) -> (bool, bool, &str, f64, &str) {
    let seconds = row.numbers.as_ref().map_or(0.0, |numbers| numbers.seconds);
    let group = if row.control { "" } else { row.group.as_str() };
    (row.numbers.is_none(), row.control, group, seconds, &row.target)
}

/// "via batch", "behind a cache": what is asked in another way, or answered from memory, is no rival of the rest.
fn group(trial: &Record) -> String {
    let via = (trial.job.via != Via::Portable).then(|| format!("via {}", trial.job.via));
    let cached = trial.target.cache.map(|_| "behind a cache in the client".to_string());
    via.into_iter().chain(cached).collect::<Vec<_>>().join(", ")
}

fn row(trials: &[&Record]) -> Row {
    let status = status(trials);
    let finished: Vec<&Record> =
        trials.iter().copied().filter(|trial| trial.took_s().is_some() && trial.is_right()).collect();
    let may_tell = matches!(status, Status::Right | Status::Control) && !trials[0].run.answers_only;
    let facts = trials.iter().find_map(|trial| trial.store.as_ref());
    Row {
        target: trials[0].target.label.clone(),
        group: group(trials[0]),
        control: trials[0].target.control,
        of_requests: trials[0].job.load.is_some(),
        of_trace: trials[0].stream.traced.is_some(),
        version: facts.map_or_else(String::new, |facts| facts.version.clone()),
        mouth: facts.map_or_else(String::new, |facts| facts.mouth.clone()),
        trials: finished.len(),
        numbers: if may_tell { numbers(&finished) } else { None },
        status,
    }
}

/// The worst of a target's trials speaks for it: one wrong answer among three trials is a wrong store.
fn status(trials: &[&Record]) -> Status {
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
        (Verdict::Control, Outcome::Finished) => Status::Control,
        (Verdict::Right(_), Outcome::Finished) => Status::Right,
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
        Status::Right | Status::Control => 5,
    })
    .expect("a row has a trial")
}

fn numbers(trials: &[&Record]) -> Option<Numbers> {
    let of = |number: &dyn Fn(&Record) -> Option<f64>| {
        Sample::new(trials.iter().filter_map(|trial| number(trial)).collect())
    };
    let median = |number: &dyn Fn(&Record) -> Option<f64>| of(number).map(|sample| sample.median());
    let seconds = of(&|trial| trial.took_s())?;
    let run = trials[0].phase("run")?;
    let mut times = Times::default();
    trials.iter().filter_map(|trial| trial.phase("run")).for_each(|run| times.merge(&run.times_ns));
    let per_op = |usage: &dyn Fn(&Phase) -> Option<Usage>| {
        median(&|trial| {
            let cpu_s: Option<f64> = trial.measured().map(|phase| usage(phase).map(|usage| usage.cpu_s())).sum();
            Some(cpu_s? * 1e6 / trial.phase("run")?.ops.max(1) as f64)
        })
    };
    let memory = |kind: &dyn Fn(&Record) -> u64| median(&|trial| Some(kind(trial) as f64)).unwrap_or(0.0) as u64;
    Some(Numbers {
        seconds: seconds.median(),
        seconds_lowest: seconds.lowest(),
        seconds_highest: seconds.highest(),
        settle_s: median(&|trial| Some(trial.phase("settle")?.took_s)).unwrap_or(0.0),
        vs_best: None,
        units_per_s: run.units as f64 / seconds.median().max(1e-9),
        ops: run.ops,
        commands: run.commands,
        conflicts: run.conflicts,
        misses: trials[0].stream.traced.map(|_| run.misses),
        hit_share: median(&hit_share),
        waiting_share: median(&waiting_share).unwrap_or(0.0),
        client_cpu_us_per_op: per_op(&|phase| Some(phase.client)).unwrap_or(0.0),
        server_cpu_us_per_op: per_op(&|phase| phase.server),
        system_share: median(&system_share).unwrap_or(0.0),
        anonymous_bytes: memory(&|trial| trial.memory.server.unwrap_or(trial.memory.client).anonymous_bytes),
        file_bytes: memory(&|trial| trial.memory.server.unwrap_or(trial.memory.client).file_bytes),
        bytes_on_disk: median(&|trial| trial.bytes_on_disk.map(|bytes| bytes as f64)).map(|bytes| bytes as u64),
        bytes_written: median(&bytes_written).map(|bytes| bytes as u64),
        op_ns_p50: times.median_ns(),
        op_ns_p99: times.quantile_ns(0.99),
        op_ns_p999: times.quantile_ns(0.999),
        op_ns_max: times.max_ns(),
        timed_one_in: run.timed_one_in,
    })
}

fn waiting_share(trial: &Record) -> Option<f64> {
    let waiting_s: f64 = trial.measured().map(|phase| phase.waiting_s).sum();
    // Settling keeps one client waiting, the run all of them.
    let all_s: f64 = trial
        .measured()
        .map(|phase| phase.took_s * if phase.name == "run" { f64::from(trial.clients) } else { 1.0 })
        .sum();
    Some((waiting_s / all_s.max(1e-9)).min(1.0))
}

fn hit_share(trial: &Record) -> Option<f64> {
    let of = |name: &str| trial.counters.get(name).map(|&count| count as f64);
    let (hits, misses) = of("cache hits").zip(of("cache misses"))?;
    Some(hits / (hits + misses).max(1.0))
}

fn system_share(trial: &Record) -> Option<f64> {
    let usages = trial.measured().flat_map(|phase| std::iter::once(phase.client).chain(phase.server));
    let (system_s, cpu_s) = usages.fold((0.0, 0.0), |sum, usage| (sum.0 + usage.system_s, sum.1 + usage.cpu_s()));
    (cpu_s > 0.0).then_some(system_s / cpu_s)
}

fn bytes_written(trial: &Record) -> Option<f64> {
    let usages = trial.measured().map(|phase| phase.server.unwrap_or(phase.client).bytes_written);
    usages.sum::<Option<u64>>().map(|bytes| bytes as f64)
}

impl Status {
    /// What a row without numbers says in their place.
    pub fn in_words(&self) -> String {
        match self {
            Status::Right => "right".to_string(),
            Status::Control => "control: nothing to check".to_string(),
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
            Status::Missing { reason, get_it } if get_it.is_empty() => format!("would not start: {reason}"),
            Status::Missing { reason, get_it } => format!("not here: {reason}; get it: {get_it}"),
        }
    }
}
