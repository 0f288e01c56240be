//! Every trial of a run in a line, in the order in which they were run; of a sweep every point of every trial.

use anyhow::Result;

use super::cells::{self, Status};
use super::grid;
use super::point::{measured, step};
use super::standing::Counted;
use super::table::{TableLine, both, disk, memories, percent, tail};
use super::times::times;
use crate::model::load::Swept;
use crate::model::record::{CutOff, Phase, Record};
use crate::model::units;

/// What one trial came to, or one point of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub block: u32,
    /// Its place in the block's order, from 1.
    pub position: u32,
    /// The job's size, where trials of a run differ in it.
    pub units: Option<u64>,
    pub target: String,
    pub baseline: bool,
    /// A program of the user's was run, which is one op.
    pub of_program: bool,
    /// Why no table counts it; nothing where it is counted.
    pub uncounted: Option<Uncounted>,
    pub status: Status,
    /// Where it stands in a sweep.
    pub point: Option<TrialPlace>,
    /// Of the whole job; numbers are only told of trials that finished and were right.
    pub seconds: Option<f64>,
    /// Of a point.
    pub requests_per_s: Option<f64>,
    /// Of a point that was stopped at its time-out: how far it came, of 1. Then it has no numbers.
    pub cut_off_done_share: Option<f64>,
    /// Where requests come at a rate, from when they were due; none where the rate was not kept.
    pub response_ns_p99: Option<u64>,
    pub client_cpu_us_per_op: Option<f64>,
    pub server_cpu_us_per_op: Option<f64>,
    /// Of the server, or of the trial's process where the store lives in it; of the whole trial.
    pub anonymous_bytes: Option<u64>,
    pub shared_bytes: Option<u64>,
    /// Of the trial's process where the store is a server.
    pub client_anonymous_bytes: Option<u64>,
    pub bytes_on_disk: Option<u64>,
    /// Of the machine when the trial began: the run queue's mean length over the last minute, and the share of the last
    /// ten seconds in which something waited for a processor.
    pub load_1m: f64,
    pub cpu_pressure_share: Option<f64>,
}

/// Why a trial is counted nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncounted {
    /// Block 0 warms the machine up.
    WarmUp,
    /// The reference a second time.
    AaControl,
    /// The machine was too noisy.
    Discarded,
    /// A larger job, once.
    Ahead,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialPlace {
    pub part: String,
    pub swept: Swept,
    pub step: u64,
}

/// All trials of a run, those of the larger job last. An error names the trial whose histogram is broken: at rates they
/// are read.
pub fn trials(records: &[Record], ahead: &[Record], is_swept: bool) -> Result<Vec<Trial>> {
    let counted = Counted::of(records);
    let mut trials = Vec::new();
    for record in records.iter().chain(ahead) {
        let is_of_several = !ahead.is_empty() || !record.run.sizes.is_empty();
        let units = is_of_several.then_some(record.stream.units);
        let trial = Trial { units, ..trial(record, &counted) };
        if !is_swept || trial.seconds.is_none() {
            trials.push(trial);
            continue;
        }
        for (phase, at, swept) in measured(record) {
            let place = TrialPlace { part: phase.name.clone(), swept, step: step(at, swept) };
            trials.push(point(record, phase, place, trial.clone())?);
        }
    }
    Ok(trials)
}

fn trial(record: &Record, counted: &Counted) -> Trial {
    let status = cells::status(&[record]);
    let has_numbers = status.has_numbers() && !record.run.answers_only;
    let numbers = || Some(record).filter(|_| has_numbers);
    let per_op = |cpu_s: Option<f64>| {
        let ops = record.metrics().ops.max(1) as f64;
        cpu_s.filter(|_| has_numbers).map(|cpu_s| cpu_s * 1e6 / ops)
    };
    let memory = numbers().and_then(Record::store_memory);
    Trial {
        block: record.block,
        position: record.position,
        units: None,
        target: record.target.label.clone(),
        baseline: record.target.baseline,
        of_program: record.job.program().is_some(),
        uncounted: match () {
            () if record.ahead => Some(Uncounted::Ahead),
            () if record.block == 0 => Some(Uncounted::WarmUp),
            () if counted.discarded.contains(&record.block) && !counted.blocks.contains(&record.block) => {
                Some(Uncounted::Discarded)
            }
            () if record.aa_control => Some(Uncounted::AaControl),
            () => None,
        },
        status,
        point: None,
        seconds: numbers().and_then(Record::took_s),
        requests_per_s: None,
        cut_off_done_share: None,
        response_ns_p99: None,
        client_cpu_us_per_op: per_op(Some(record.measured().map(|phase| phase.client.cpu_s()).sum())),
        server_cpu_us_per_op: per_op(record.measured().map(|phase| Some(phase.server?.cpu_s())).sum()),
        anonymous_bytes: memory.map(|memory| memory.anonymous_bytes),
        shared_bytes: memory.map(|memory| memory.shared_bytes),
        client_anonymous_bytes: numbers().and_then(cells::client_anonymous_bytes),
        bytes_on_disk: numbers().and_then(|record| record.bytes_on_disk),
        load_1m: record.machine.load_1m,
        cpu_pressure_share: record.machine.cpu_pressure_share,
    }
}

fn point(record: &Record, phase: &Phase, place: TrialPlace, trial: Trial) -> Result<Trial> {
    let trial = Trial { point: Some(place), ..trial };
    if let Some(CutOff { done_share, .. }) = phase.cut_off {
        let nothing = Trial { seconds: None, client_cpu_us_per_op: None, server_cpu_us_per_op: None, ..trial };
        return Ok(Trial { cut_off_done_share: Some(done_share), ..nothing });
    }
    let kept = phase.open.as_ref().filter(|open| open.is_kept(phase.took_s));
    let response = kept.map(|open| times(record, phase, &open.response_ns)).transpose()?;
    Ok(Trial {
        seconds: Some(phase.took_s),
        requests_per_s: Some(phase.units_per_s()),
        response_ns_p99: response.and_then(|response| response.quantile_ns(0.99)),
        client_cpu_us_per_op: Some(phase.cpu_us_per_unit(phase.client.cpu_s())),
        server_cpu_us_per_op: phase.server.map(|server| phase.cpu_us_per_unit(server.cpu_s())),
        ..trial
    })
}

/// One column, and how a trial fills it.
struct Column {
    heading: &'static str,
    cell: fn(&Trial) -> String,
}

const FIRST: &[Column] = &[
    Column { heading: "target", cell: |trial| trial.target.clone() },
    Column { heading: "block", cell: |trial| trial.block.to_string() },
    Column { heading: "place", cell: |trial| trial.position.to_string() },
];
const UNITS: Column = Column { heading: "size", cell: |trial| or_dash(trial.units, units::thousands) };
const SECONDS: Column = Column { heading: "seconds", cell: |trial| or_dash(trial.seconds, units::seconds) };
const OF_POINTS: &[Column] = &[
    Column { heading: "part", cell: |trial| of_place(trial, |place| place.part.clone()) },
    Column { heading: "", cell: |trial| of_place(trial, |place| units::thousands(place.step)) },
    SECONDS,
    Column { heading: "requests/s", cell: |trial| or_dash(trial.requests_per_s, units::count) },
];
const RESPONSE: Column = Column { heading: "response p99", cell: |trial| tail(trial.response_ns_p99) };
const CPU: Column = Column { heading: "CPU us/op", cell: cpu };
const MEMORY: Column = Column { heading: "memory", cell: |trial| disk(memory_bytes(trial)) };
const OF_JOBS: &[Column] = &[CPU, MEMORY];
const OF_PROGRAMS: &[Column] =
    &[Column { heading: "CPU s", cell: cpu_s }, Column { heading: "memory", cell: memory_of_both }];
const LAST: &[Column] = &[
    Column { heading: "disk", cell: |trial| disk(trial.bytes_on_disk) },
    Column { heading: "load", cell: |trial| units::digits(trial.load_1m) },
    Column { heading: "pressure", cell: |trial| or_dash(trial.cpu_pressure_share, percent) },
    Column { heading: "", cell: note },
];

/// A table of them, the headings first; a trial without numbers says why.
pub fn lines(trials: &[Trial]) -> Vec<TableLine> {
    let place = trials.iter().find_map(|trial| trial.point.as_ref());
    let has_response = trials.iter().any(|trial| trial.response_ns_p99.is_some());
    let middle = if place.is_some() { OF_POINTS } else { std::slice::from_ref(&SECONDS) };
    let response = has_response.then_some(&RESPONSE);
    let used = if trials.iter().any(|trial| trial.of_program) { OF_PROGRAMS } else { OF_JOBS };
    let units = trials.iter().any(|trial| trial.units.is_some()).then_some(&UNITS);
    let columns: Vec<&Column> =
        FIRST.iter().chain(units).chain(middle).chain(response).chain(used).chain(LAST).collect();
    // The column of what was swept over is called by that.
    let swept = place.map_or("", |place| grid::heading(place.swept));
    let headings = columns.iter().enumerate().map(|(index, column)| match column.heading {
        "" if index == FIRST.len() + 1 => swept.to_string(),
        heading => heading.to_string(),
    });
    let mut lines = vec![TableLine::Cells(headings.collect())];
    lines.extend(trials.iter().map(|trial| match trial.status {
        ref status if status.has_numbers() => {
            TableLine::Cells(columns.iter().map(|column| (column.cell)(trial)).collect())
        }
        _ => {
            let at = format!("block {}, place {}", trial.block, trial.position);
            TableLine::Reason(trial.target.clone(), format!("{at}: {}", trial.status.in_words()))
        }
    }));
    lines
}

fn or_dash<T>(number: Option<T>, words: fn(T) -> String) -> String {
    number.map_or_else(|| "-".to_string(), words)
}

fn of_place(trial: &Trial, words: fn(&TrialPlace) -> String) -> String {
    trial.point.as_ref().map_or_else(|| "-".to_string(), words)
}

fn cpu(trial: &Trial) -> String {
    trial.client_cpu_us_per_op.map_or_else(|| "-".to_string(), |client| both(client, trial.server_cpu_us_per_op))
}

fn cpu_s(trial: &Trial) -> String {
    let server_s = trial.server_cpu_us_per_op.map(|server_us| server_us / 1e6);
    trial.client_cpu_us_per_op.map_or_else(|| "-".to_string(), |client_us| both(client_us / 1e6, server_s))
}

fn memory_of_both(trial: &Trial) -> String {
    memories(trial.client_anonymous_bytes, memory_bytes(trial))
}

fn memory_bytes(trial: &Trial) -> Option<u64> {
    Some(trial.anonymous_bytes? + trial.shared_bytes?)
}

fn note(trial: &Trial) -> String {
    let cut_off = trial.cut_off_done_share.map(|share| format!("cut off, {} done", percent(share)));
    let uncounted = trial.uncounted.map(|uncounted| match uncounted {
        Uncounted::WarmUp => "warm-up",
        Uncounted::AaControl => "A/A control",
        Uncounted::Discarded => "discarded",
        Uncounted::Ahead => "larger",
    });
    cut_off.unwrap_or_else(|| uncounted.unwrap_or(if trial.baseline { "baseline" } else { "" }).to_string())
}
