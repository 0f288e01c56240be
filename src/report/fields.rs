//! The columns that other programs read: one table for rows of jobs, sweeps and rates, and one for single trials. CSV
//! and JSON have the same names, in the same order. A cell that does not apply is empty, or null.

use serde_json::Value;

use super::cells::{self, Numbers, OpTimes, Row, Status};
use super::export::Field;
use super::point::Beside;
use super::point::Rated;
use super::point::{Point, Service, Statistic};
use super::standing::{Standing, Standings};
use super::trials::{Trial, TrialPlace, Uncounted};
use super::versus::Versus;
use crate::model::load::Swept;

/// One target; in a sweep, or at rates, one target at one point.
#[derive(Clone, Debug)]
pub struct FieldLine {
    pub row: Row,
    /// Nothing for a whole job, and for a target that has no points.
    pub point: Option<Point>,
    /// The job's size, where a run has several.
    pub units: Option<u64>,
    /// The seconds grow with this power of the size.
    pub growth_exponent: Option<f64>,
    pub beside: Option<Beside>,
    pub cpu_beside: Option<Beside>,
}

/// Of whole jobs: each row beside the fastest of its group, and beside the one that used least CPU for an op.
pub fn lines(rows: &[Row], standings: &Standings<'_>) -> Vec<FieldLine> {
    let cpu = standings.cpu();
    let line = |row: &Row| {
        let numbers = row.numbers.as_ref();
        let standing = standings.groups.get(&row.group).filter(|_| !row.baseline);
        FieldLine {
            row: row.clone(),
            point: None,
            units: None,
            growth_exponent: None,
            beside: beside(row, numbers.and_then(|numbers| numbers.vs_best), best_of(rows, &row.group), standing),
            cpu_beside: beside(
                row,
                numbers.and_then(|numbers| numbers.cpu_vs_least),
                cells::least_cpu(rows),
                cpu.as_ref(),
            ),
        }
    };
    rows.iter().map(line).collect()
}

fn beside(row: &Row, versus: Option<Versus>, best: Option<&Row>, standing: Option<&Standing<'_>>) -> Option<Beside> {
    Some(Beside::of(standing?, &row.target, &best?.target, versus?))
}

/// Rows of a group stand by their seconds.
fn best_of<'a>(rows: &'a [Row], group: &str) -> Option<&'a Row> {
    rows.iter().find(|row| !row.baseline && row.group == group && row.numbers.is_some())
}

/// Of a sweep: its points, and below them the targets that have none.
pub fn swept_lines(points: &[Point], rows: &[Row]) -> Vec<FieldLine> {
    let line = |row: &Row, point: Option<&Point>| FieldLine {
        row: row.clone(),
        point: point.cloned(),
        units: None,
        growth_exponent: None,
        beside: point.and_then(|point| point.beside),
        cpu_beside: point.and_then(|point| point.cpu_beside),
    };
    let of = |point: &Point| Some(line(rows.iter().find(|row| row.target == point.target)?, Some(point)));
    let silent = rows.iter().filter(|row| !row.status.has_numbers()).map(|row| line(row, None));
    points.iter().filter_map(of).chain(silent).collect()
}

/// Times are in seconds, those of single requests in microseconds. `units_per_s` counts the job's units: requests in a
/// sweep. In a sweep an op is a request.
pub const ROWS: &[Field<FieldLine>] = &[
    Field { name: "target", value: |line| line.row.target.as_str().into() },
    Field { name: "store", value: |line| line.row.store.as_str().into() },
    Field { name: "transport", value: |line| line.row.transport.to_string().into() },
    Field { name: "version", value: |line| line.row.version.as_str().into() },
    Field { name: "client", value: |line| line.row.client_library.as_str().into() },
    Field { name: "group", value: |line| line.row.group.as_str().into() },
    Field { name: "baseline", value: |line| line.row.baseline.into() },
    Field { name: "status", value: |line| status(line).into() },
    Field { name: "reason", value: reason_of_line },
    Field { name: "trials", value: |line| line.point.as_ref().map_or(line.row.trials, |point| point.trials).into() },
    Field { name: "units", value: |line| value(line.units) },
    Field { name: "part", value: |line| value(line.point.as_ref().map(|point| point.part.as_str())) },
    Field { name: "swept", value: |line| value(line.point.as_ref().map(|point| swept(point.swept))) },
    Field { name: "clients", value: |line| value(line.point.as_ref().map(|point| point.clients)) },
    Field {
        name: "rate_per_s",
        value: |line| value(line.point.as_ref().and_then(|point| Some(point.rated.as_ref()?.rate))),
    },
    Field { name: "value_bytes", value: |line| value(line.point.as_ref().map(|point| point.value_bytes)) },
    Field { name: "batch", value: |line| value(line.point.as_ref().map(|point| point.batch)) },
    Field { name: "rank_best", value: |line| value(line.row.rank.filter(|_| line.point.is_none()).map(|rank| rank.0)) },
    Field {
        name: "rank_worst",
        value: |line| value(line.row.rank.filter(|_| line.point.is_none()).map(|rank| rank.1)),
    },
    Field { name: "took_s", value: |line| job(line, |numbers| Some(numbers.seconds)) },
    Field { name: "took_s_lowest", value: |line| job(line, |numbers| Some(numbers.seconds_lowest)) },
    Field { name: "took_s_highest", value: |line| job(line, |numbers| Some(numbers.seconds_highest)) },
    Field { name: "final_flush_s", value: |line| job(line, |numbers| Some(numbers.final_flush_s)) },
    Field {
        name: "units_per_s",
        value: |line| either(line, |numbers| Some(numbers.units_per_s), |point| Some(point.requests_per_s)),
    },
    Field { name: "units_per_s_lowest", value: |line| at(line, |point| Some(point.requests_per_s_lowest)) },
    Field { name: "units_per_s_highest", value: |line| at(line, |point| Some(point.requests_per_s_highest)) },
    Field { name: "units_per_s_low", value: |line| at(line, |point| Some(point.requests_per_s_interval?.0)) },
    Field { name: "units_per_s_high", value: |line| at(line, |point| Some(point.requests_per_s_interval?.1)) },
    Field { name: "statistic", value: |line| at(line, |point| Some(statistic(point.statistic))) },
    Field { name: "vs_best", value: |line| next(line, |beside| Some(beside.vs_best.ratio)) },
    Field { name: "vs_best_low", value: |line| next(line, |beside| beside.vs_best.low) },
    Field { name: "vs_best_high", value: |line| next(line, |beside| beside.vs_best.high) },
    Field { name: "vs_best_preliminary", value: |line| next(line, |beside| preliminary(beside.vs_best)) },
    Field { name: "slower", value: |line| next(line, |beside| Some(beside.slower)) },
    Field { name: "noise_floor", value: |line| next(line, |beside| beside.noise_floor) },
    Field { name: "noisy", value: |line| next(line, |beside| Some(beside.noisy)) },
    Field { name: "cpu_vs_least", value: |line| cpu(line, |beside| Some(beside.vs_best.ratio)) },
    Field { name: "cpu_vs_least_low", value: |line| cpu(line, |beside| beside.vs_best.low) },
    Field { name: "cpu_vs_least_high", value: |line| cpu(line, |beside| beside.vs_best.high) },
    Field { name: "cpu_vs_least_preliminary", value: |line| cpu(line, |beside| preliminary(beside.vs_best)) },
    Field { name: "cpu_more", value: |line| cpu(line, |beside| Some(beside.slower)) },
    Field { name: "cpu_noise_floor", value: |line| cpu(line, |beside| beside.noise_floor) },
    Field { name: "cpu_noisy", value: |line| cpu(line, |beside| Some(beside.noisy)) },
    Field {
        name: "client_cpu_us_per_op",
        value: |line| {
            let of_point = |point: &Point| Some(point.client_cpu_us_per_request);
            either(line, |numbers| Some(numbers.client_cpu_us_per_op), of_point)
        },
    },
    Field {
        name: "server_cpu_us_per_op",
        value: |line| either(line, |numbers| numbers.server_cpu_us_per_op, |point| point.server_cpu_us_per_request),
    },
    Field {
        name: "latency_us_p50",
        value: |line| op(line, |times| Some(times.op_ns_p50), |of| Some(of.service_ns_p50)),
    },
    Field { name: "latency_us_p99", value: |line| op(line, |times| times.op_ns_p99, |of| of.service_ns_p99) },
    Field { name: "latency_us_p999", value: |line| op(line, |times| times.op_ns_p999, |_| None) },
    Field {
        name: "latency_us_max",
        value: |line| op(line, |times| Some(times.op_ns_max), |of| Some(of.service_ns_max)),
    },
    Field { name: "timed_one_in", value: |line| job(line, |numbers| Some(numbers.timed_one_in)) },
    Field { name: "rate_kept", value: |line| rate(line, |rated| Some(rated.kept)) },
    Field { name: "requests", value: |line| rate(line, |rated| Some(rated.requests)) },
    Field { name: "late_requests", value: |line| rate(line, |rated| rated.late) },
    Field { name: "timed_out_requests", value: |line| rate(line, |rated| Some(rated.timed_out)) },
    Field { name: "response_us_p50", value: |line| rate(line, |rated| us(Some(rated.response_ns_p50))) },
    Field { name: "response_us_p99", value: |line| rate(line, |rated| us(rated.response_ns_p99)) },
    Field { name: "response_us_p999", value: |line| rate(line, |rated| us(rated.response_ns_p999)) },
    Field { name: "response_us_max", value: |line| rate(line, |rated| us(Some(rated.response_ns_max))) },
    Field { name: "lag_us_p50", value: |line| rate(line, |rated| us(Some(rated.lag_ns_p50))) },
    Field { name: "lag_us_p99", value: |line| rate(line, |rated| us(rated.lag_ns_p99)) },
    Field { name: "arrivals_a_squared", value: |line| rate(line, |rated| rated.arrivals_a_squared) },
    Field {
        name: "cut_off_after_s",
        value: |line| value(line.point.as_ref().and_then(|point| Some(point.cut_off?.after_s))),
    },
    Field {
        name: "cut_off_done_share",
        value: |line| value(line.point.as_ref().and_then(|point| Some(point.cut_off?.done_share))),
    },
    Field { name: "ceiling_share", value: |line| at(line, |point| point.ceiling_share) },
    Field { name: "doubled_rise", value: |line| at(line, |point| point.doubled_rise) },
    Field { name: "client_limited", value: |line| at(line, |point| Some(point.client_limited)) },
    Field { name: "ops", value: |line| job(line, |numbers| Some(numbers.ops)) },
    Field { name: "commands", value: |line| job(line, |numbers| Some(numbers.commands)) },
    Field { name: "conflicts", value: |line| job(line, |numbers| Some(numbers.conflicts)) },
    Field { name: "misses", value: |line| job(line, |numbers| numbers.misses) },
    Field { name: "hit_share", value: |line| job(line, |numbers| numbers.hit_share) },
    Field { name: "waiting_share", value: |line| job(line, |numbers| Some(numbers.waiting_share)) },
    Field { name: "system_share", value: |line| job(line, |numbers| Some(numbers.system_share)) },
    Field { name: "cores_used", value: |line| job(line, |numbers| Some(numbers.cores_used)) },
    Field { name: "anonymous_bytes", value: |line| job(line, |numbers| numbers.anonymous_bytes) },
    Field { name: "shared_bytes", value: |line| job(line, |numbers| numbers.shared_bytes) },
    Field { name: "file_bytes", value: |line| job(line, |numbers| numbers.file_bytes) },
    Field { name: "client_anonymous_bytes", value: |line| job(line, |numbers| numbers.client_anonymous_bytes) },
    Field { name: "disk_bytes", value: |line| job(line, |numbers| numbers.bytes_on_disk) },
    Field { name: "written_bytes", value: |line| job(line, |numbers| numbers.bytes_written) },
    Field { name: "written_per_user_byte", value: |line| job(line, |numbers| numbers.written_per_user_byte) },
    Field { name: "allocated_per_user_byte", value: |line| job(line, |numbers| numbers.allocated_per_user_byte) },
    Field { name: "growth_exponent", value: |line| value(line.growth_exponent) },
];

pub const TRIALS: &[Field<Trial>] = &[
    Field { name: "block", value: |trial| trial.block.into() },
    Field { name: "position", value: |trial| trial.position.into() },
    Field { name: "target", value: |trial| trial.target.as_str().into() },
    Field { name: "baseline", value: |trial| trial.baseline.into() },
    Field { name: "uncounted", value: |trial| value(trial.uncounted.map(uncounted)) },
    Field { name: "status", value: |trial| kind(&trial.status).into() },
    Field { name: "reason", value: |trial| value(reason(&trial.status)) },
    Field { name: "units", value: |trial| value(trial.units) },
    Field { name: "part", value: |trial| place(trial, |place| place.part.as_str().into()) },
    Field { name: "swept", value: |trial| place(trial, |place| swept(place.swept).into()) },
    Field { name: "step", value: |trial| place(trial, |place| place.step.into()) },
    Field { name: "took_s", value: |trial| value(trial.seconds) },
    Field { name: "cut_off_done_share", value: |trial| value(trial.cut_off_done_share) },
    Field { name: "units_per_s", value: |trial| value(trial.requests_per_s) },
    Field { name: "response_us_p99", value: |trial| value(us(trial.response_ns_p99)) },
    Field { name: "client_cpu_us_per_op", value: |trial| value(trial.client_cpu_us_per_op) },
    Field { name: "server_cpu_us_per_op", value: |trial| value(trial.server_cpu_us_per_op) },
    Field { name: "anonymous_bytes", value: |trial| value(trial.anonymous_bytes) },
    Field { name: "shared_bytes", value: |trial| value(trial.shared_bytes) },
    Field { name: "client_anonymous_bytes", value: |trial| value(trial.client_anonymous_bytes) },
    Field { name: "disk_bytes", value: |trial| value(trial.bytes_on_disk) },
    Field { name: "load_1m", value: |trial| trial.load_1m.into() },
    Field { name: "cpu_pressure_share", value: |trial| value(trial.cpu_pressure_share) },
];

fn value<T: Into<Value>>(known: Option<T>) -> Value {
    known.map_or(Value::Null, Into::into)
}

fn us(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e3)
}

/// Numbers of a whole job say nothing of a point.
fn numbers(line: &FieldLine) -> Option<&Numbers> {
    line.row.numbers.as_ref().filter(|_| line.point.is_none())
}

/// A point that was cut off or that the machine disturbed has no number.
fn point(line: &FieldLine) -> Option<&Point> {
    line.point.as_ref().filter(|point| point.has_number())
}

fn job<T: Into<Value>>(line: &FieldLine, number: fn(&Numbers) -> Option<T>) -> Value {
    value(numbers(line).and_then(number))
}

fn at<T: Into<Value>>(line: &FieldLine, number: fn(&Point) -> Option<T>) -> Value {
    value(point(line).and_then(number))
}

fn either(line: &FieldLine, of_job: fn(&Numbers) -> Option<f64>, of_point: impl Fn(&Point) -> Option<f64>) -> Value {
    value(numbers(line).and_then(of_job).or_else(|| point(line).and_then(of_point)))
}

fn op(line: &FieldLine, of_job: fn(&OpTimes) -> Option<u64>, of_point: fn(&Service) -> Option<u64>) -> Value {
    let of_point = || point(line).and_then(|point| of_point(point.service.as_ref()?));
    value(us(numbers(line).and_then(|numbers| of_job(numbers.op_times.as_ref()?)).or_else(of_point)))
}

fn rate<T: Into<Value>>(line: &FieldLine, number: fn(&Rated) -> Option<T>) -> Value {
    value(point(line).and_then(|point| number(point.rated.as_ref()?)))
}

fn next<T: Into<Value>>(line: &FieldLine, number: fn(&Beside) -> Option<T>) -> Value {
    value(line.beside.as_ref().and_then(number))
}

fn cpu<T: Into<Value>>(line: &FieldLine, number: fn(&Beside) -> Option<T>) -> Value {
    value(line.cpu_beside.as_ref().and_then(number))
}

fn place(trial: &Trial, words: fn(&TrialPlace) -> Value) -> Value {
    trial.point.as_ref().map_or(Value::Null, words)
}

fn preliminary(versus: Versus) -> Option<bool> {
    versus.low.map(|_| versus.preliminary)
}

fn status(line: &FieldLine) -> &'static str {
    match &line.point {
        Some(point) if point.unclear.is_some() => "unclear",
        Some(point) if point.cut_off.is_some() => "timed_out",
        _ => kind(&line.row.status),
    }
}

/// Why there are no numbers; nothing where there are.
fn reason_of_line(line: &FieldLine) -> Value {
    match &line.point {
        Some(point) => value(point.unclear.as_ref().map(ToString::to_string)),
        None => value(reason(&line.row.status)),
    }
}

fn reason(status: &Status) -> Option<String> {
    (!status.has_numbers()).then(|| status.in_words())
}

/// What became of a target, in a word.
pub(super) fn kind(status: &Status) -> &'static str {
    match status {
        Status::Right => "right",
        Status::Unchecked => "unchecked",
        Status::Baseline => "baseline",
        Status::Wrong { .. } => "wrong",
        Status::TimedOut { .. } => "timed_out",
        Status::Refused { .. } => "refused",
        Status::Failed { .. } => "failed",
        Status::Missing { .. } => "missing",
        Status::LeftOut { .. } => "left_out",
    }
}

pub(super) fn swept(swept: Swept) -> &'static str {
    match swept {
        Swept::Clients => "clients",
        Swept::Rate => "rate",
        Swept::ValueBytes => "value_bytes",
        Swept::Batch => "batch",
    }
}

fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Median => "median",
        Statistic::Best => "best",
    }
}

fn uncounted(uncounted: Uncounted) -> &'static str {
    match uncounted {
        Uncounted::WarmUp => "warm_up",
        Uncounted::AaControl => "aa_control",
        Uncounted::Discarded => "discarded",
        Uncounted::Ahead => "larger",
    }
}

// The column of CONTRIBUTING.md.
#[cfg(test)]
const _: Field<FieldLine> =
    Field { name: "cpu_us_per_op", value: |line| job(line, |numbers| Some(numbers.cpu_us_per_op())) };
