//! Every trial of a run in a line, in the order in which they were run; of a sweep every point of every trial.

use anyhow::Result;
use serde_json::Value;

use super::cells::{self, Status};
use super::columns::{Column, composed, exported, kind, reason, shown, us, value, view};
use super::formats::{
    both, bytes, count, digits, disk, memories, microseconds, per_second, percent, plain, seconds, share,
};
use super::point::{measured, step};
use super::standing::Counted;
use super::swept;
use super::table::TableLine;
use super::times::times;
use kvfair_core::load::Swept;
use kvfair_core::part::Part;
use kvfair_core::record::{CutOff, Phase, Record};

/// What one trial came to, or one point of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub block: u32,
    /// Its place in the block's order, from 1.
    pub position: u32,
    /// The job's size, where trials of a run differ in it.
    pub units: Option<u64>,
    /// The order of its n-grams, where a run has several.
    pub order: Option<u32>,
    /// The round-trip time that a proxy kept.
    pub rtt_us: Option<u64>,
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
    pub file_bytes: Option<u64>,
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
    pub part: Part,
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
            let place = TrialPlace { part: phase.part, swept, step: step(at, swept) };
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
        let ops = record.ops_of_job() as f64;
        cpu_s.filter(|_| has_numbers).map(|cpu_s| cpu_s * 1e6 / ops)
    };
    let memory = numbers().and_then(Record::store_memory);
    Trial {
        block: record.block,
        position: record.position,
        units: None,
        order: (!record.run.orders.is_empty()).then_some(record.job.ngrams.order),
        rtt_us: record.network.map(|network| network.rtt_us),
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
        server_cpu_us_per_op: per_op(record.measured().map(|phase| Some(phase.servers()?.cpu_s())).sum()),
        anonymous_bytes: memory.map(|memory| memory.anonymous_bytes),
        shared_bytes: memory.map(|memory| memory.shared_bytes),
        file_bytes: memory.map(|memory| memory.file_bytes),
        client_anonymous_bytes: numbers().and_then(cells::client_anonymous_bytes),
        bytes_on_disk: numbers().and_then(Record::disk_bytes),
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
        server_cpu_us_per_op: phase.servers().map(|servers| phase.cpu_us_per_unit(servers.cpu_s())),
        ..trial
    })
}

/// The columns of trials.
pub const TRIALS: &[Column<Trial>] = &[
    shown("block", "block", plain, |trial| trial.block.into()),
    shown("position", "place", plain, |trial| trial.position.into()),
    shown("target", "target", plain, |trial| trial.target.as_str().into()),
    exported("baseline", |trial| trial.baseline.into()),
    exported("uncounted", |trial| value(trial.uncounted.map(uncounted))),
    exported("status", |trial| kind(&trial.status).into()),
    exported("reason", |trial| value(reason(&trial.status))),
    shown("units", "size", count, |trial| value(trial.units)),
    shown("order", "order", plain, |trial| value(trial.order)),
    shown("rtt_us", "rtt us", plain, |trial| value(trial.rtt_us)),
    shown("part", "part", plain, |trial| place(trial, |place| place.part.name().into())),
    exported("swept", |trial| place(trial, |place| swept::words(place.swept).name.into())),
    // What is swept over stands above it.
    shown("step", "", count, |trial| place(trial, |place| place.step.into())),
    shown("took_s", "seconds", seconds, |trial| value(trial.seconds)),
    exported("cut_off_done_share", |trial| value(trial.cut_off_done_share)),
    shown("units_per_s", "requests/s", per_second, |trial| value(trial.requests_per_s)),
    shown("response_us_p99", "response p99", microseconds, |trial| value(us(trial.response_ns_p99))),
    composed("cpu_us_per_op", "CPU us/op", |trial| cpu(trial, 1.0)),
    composed("cpu_s", "CPU s", |trial| cpu(trial, 1e6)),
    exported("client_cpu_us_per_op", |trial| value(trial.client_cpu_us_per_op)),
    exported("server_cpu_us_per_op", |trial| value(trial.server_cpu_us_per_op)),
    composed("memory_bytes", "memory", |trial| disk(memory_bytes(trial)).into()),
    composed("both_memory_bytes", "memory", |trial| memories(trial.client_anonymous_bytes, memory_bytes(trial)).into()),
    exported("anonymous_bytes", |trial| value(trial.anonymous_bytes)),
    exported("shared_bytes", |trial| value(trial.shared_bytes)),
    shown("file_bytes", "mapped", bytes, |trial| value(trial.file_bytes)),
    exported("client_anonymous_bytes", |trial| value(trial.client_anonymous_bytes)),
    shown("disk_bytes", "disk", bytes, |trial| value(trial.bytes_on_disk)),
    shown("load_1m", "load", digits, |trial| trial.load_1m.into()),
    shown("cpu_pressure_share", "pressure", share, |trial| value(trial.cpu_pressure_share)),
    composed("note", "", |trial| note(trial).into()),
];

const FIRST: &[&str] = &["target", "block", "position"];
const OF_POINTS: &[&str] = &["part", "step", "took_s", "units_per_s"];
const OF_JOBS: &[&str] = &["cpu_us_per_op", "memory_bytes", "file_bytes"];
const OF_PROGRAMS: &[&str] = &["cpu_s", "both_memory_bytes", "file_bytes"];
const LAST: &[&str] = &["disk_bytes", "load_1m", "cpu_pressure_share", "note"];

/// A table of them, the headings first; a trial without numbers says why.
pub fn lines(trials: &[Trial]) -> Vec<TableLine> {
    let place = trials.iter().find_map(|trial| trial.point.as_ref());
    let has_response = trials.iter().any(|trial| trial.response_ns_p99.is_some());
    let middle = if place.is_some() { OF_POINTS } else { &["took_s"] };
    let response = if has_response { &["response_us_p99"][..] } else { &[] };
    let used = if trials.iter().any(|trial| trial.of_program) { OF_PROGRAMS } else { OF_JOBS };
    let units = if trials.iter().any(|trial| trial.units.is_some()) { &["units"][..] } else { &[] };
    let rtt = if trials.iter().any(|trial| trial.rtt_us.is_some()) { &["rtt_us"][..] } else { &[] };
    let order = if trials.iter().any(|trial| trial.order.is_some()) { &["order"][..] } else { &[] };
    let columns = view(TRIALS, &[FIRST, units, order, rtt, middle, response, used, LAST].concat());
    let swept = place.map_or("", |place| swept::words(place.swept).heading);
    let headings = columns.iter().map(|column| if column.name == "step" { swept } else { column.heading });
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).collect())];
    lines.extend(trials.iter().map(|trial| match trial.status {
        ref status if status.has_numbers() => {
            TableLine::Cells(columns.iter().map(|column| column.text(trial)).collect())
        }
        _ => {
            let at = format!("block {}, place {}", trial.block, trial.position);
            TableLine::Reason(trial.target.clone(), format!("{at}: {}", trial.status.in_words()))
        }
    }));
    lines
}

fn place(trial: &Trial, words: fn(&TrialPlace) -> Value) -> Value {
    trial.point.as_ref().map_or(Value::Null, words)
}

fn uncounted(uncounted: Uncounted) -> &'static str {
    match uncounted {
        Uncounted::WarmUp => "warm_up",
        Uncounted::AaControl => "aa_control",
        Uncounted::Discarded => "discarded",
        Uncounted::Ahead => "larger",
    }
}

/// So many microseconds are one.
fn cpu(trial: &Trial, scale: f64) -> Value {
    let server = trial.server_cpu_us_per_op.map(|server_us| server_us / scale);
    value(trial.client_cpu_us_per_op.map(|client_us| both(client_us / scale, server)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_columns_of_their_table() {
        let views = [FIRST, OF_POINTS, OF_JOBS, OF_PROGRAMS, LAST];
        views.iter().for_each(|names| assert_eq!(view(TRIALS, names).len(), names.len()));
    }
}
