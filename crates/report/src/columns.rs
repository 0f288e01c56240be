//! What a column is, and the columns of rows: one table for all forms. CSV and JSON have its names in its order; a cell
//! that does not apply is empty, or null. Text and Markdown have views of it.

use serde_json::Value;

use super::cells::{self, Numbers, OpTimes, Row, Status};
use super::formats::{
    both, bytes, count, digits, disk, hundredths, memories, microseconds, one_in, per_second, plain, seconds, share,
};
use super::lookups::Lookups;
use super::point::{Beside, Point, Rated, Service, Statistic};
use super::queries::Queries;
use super::staleness::Stale;
use super::standing::{Standing, Standings};
use super::swept;
use super::versus::{Versus, versus};
use kvfair_core::units;

/// A column of a table: its value stands in CSV and JSON, the text that its format makes of it in text and Markdown.
pub struct Column<T> {
    /// In CSV, JSON and views; units last.
    pub name: &'static str,
    /// In text and Markdown.
    pub heading: &'static str,
    /// One of the module `formats`.
    pub format: fn(&Value) -> String,
    /// Not rounded; null where nothing is known.
    pub value: fn(&T) -> Value,
    /// CSV and JSON have it.
    pub is_exported: bool,
    /// Of these, CSV has it only where all columns are asked for.
    pub is_wide: bool,
}

/// A column of CSV and JSON alone.
pub const fn exported<T>(name: &'static str, value: fn(&T) -> Value) -> Column<T> {
    Column { name, heading: "", format: plain, value, is_exported: true, is_wide: false }
}

/// A column of JSON, and of CSV with `--wide`.
pub const fn exported_wide<T>(name: &'static str, value: fn(&T) -> Value) -> Column<T> {
    Column { is_wide: true, ..exported(name, value) }
}

/// A column of all forms.
pub const fn shown<T>(
    name: &'static str,
    heading: &'static str,
    format: fn(&Value) -> String,
    value: fn(&T) -> Value,
) -> Column<T> {
    Column { name, heading, format, value, is_exported: true, is_wide: false }
}

/// A column of text and Markdown alone: several numbers as one text.
pub const fn composed<T>(name: &'static str, heading: &'static str, value: fn(&T) -> Value) -> Column<T> {
    Column { name, heading, format: plain, value, is_exported: false, is_wide: false }
}

impl<T> Column<T> {
    /// What stands in text and Markdown.
    pub fn text(&self, of: &T) -> String {
        (self.format)(&(self.value)(of))
    }
}

/// The columns of a view, in its order.
pub(super) fn view<T>(all: &'static [Column<T>], names: &[&str]) -> Vec<&'static Column<T>> {
    let named = |name: &&str| all.iter().find(|column| column.name == *name).expect("a view has columns of its table");
    names.iter().map(named).collect()
}

/// Which part of a run that has several: the size of its job, its order of n-grams, or its round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartStep {
    pub units: Option<u64>,
    pub order: Option<u64>,
    pub rtt_us: Option<u64>,
}

/// One target; in a sweep, or at rates, one target at one point.
#[derive(Clone, Debug)]
pub struct FieldLine {
    pub row: Row,
    /// Nothing for a whole job, and for a target that has no points.
    pub point: Option<Point>,
    /// The job's size, where a run has several.
    pub units: Option<u64>,
    /// The order of its n-grams, where a run has several.
    pub order: Option<u64>,
    /// The seconds grow with this power of the size.
    pub growth_exponent: Option<f64>,
    /// The round-trip time of the table that it stands in, where a run has several: also of a row without a network.
    pub rtt_us: Option<u64>,
    /// Round trips that the job waits for, one after the other, where a run has several round-trip times.
    pub round_trips: Option<f64>,
    pub beside: Option<Beside>,
    pub cpu_beside: Option<Beside>,
}

impl FieldLine {
    /// A row of a whole job, beside no other.
    pub fn of(row: &Row) -> FieldLine {
        let row = row.clone();
        let (point, units, order, rtt_us) = (None, None, None, None);
        let (beside, cpu_beside) = (None, None);
        FieldLine { row, point, units, order, growth_exponent: None, rtt_us, round_trips: None, beside, cpu_beside }
    }
}

/// Of whole jobs: each row beside the fastest of its group, and beside the one that used least CPU for an op.
pub fn lines(rows: &[Row], standings: &Standings<'_>) -> Vec<FieldLine> {
    let cpu = standings.cpu();
    let line = |row: &Row| {
        let numbers = row.numbers.as_ref();
        let standing = standings.groups.get(&row.group).filter(|_| !row.baseline);
        let (vs_best, vs_least) =
            (numbers.and_then(|numbers| numbers.vs_best), numbers.and_then(|numbers| numbers.cpu_vs_least));
        FieldLine {
            beside: beside(row, vs_best, cells::best_of(rows, &row.group), standing),
            cpu_beside: beside(row, vs_least, cells::least_cpu(rows), cpu.as_ref()),
            ..FieldLine::of(row)
        }
    };
    rows.iter().map(line).collect()
}

fn beside(row: &Row, versus: Option<Versus>, best: Option<&Row>, standing: Option<&Standing<'_>>) -> Option<Beside> {
    Beside::of(standing?, &row.target, &best?.target, versus?)
}

/// Of a sweep: its points, and below them the targets that have none.
pub fn swept_lines(points: &[Point], rows: &[Row]) -> Vec<FieldLine> {
    let of = |point: &Point| {
        let row = rows.iter().find(|row| row.target == point.target)?;
        let (beside, cpu_beside) = (point.beside, point.cpu_beside);
        Some(FieldLine { point: Some(point.clone()), beside, cpu_beside, ..FieldLine::of(row) })
    };
    let silent = rows.iter().filter(|row| !row.status.has_numbers()).map(FieldLine::of);
    points.iter().filter_map(of).chain(silent).collect()
}

/// Times are in seconds, those of single requests in microseconds. `units_per_s` counts the job's units: requests in a
/// sweep. In a sweep an op is a request.
pub const ROWS: &[Column<FieldLine>] = &[
    exported("target", |line| line.row.target.as_str().into()),
    exported("store", |line| line.row.store.as_str().into()),
    exported("transport", |line| line.row.transport.to_string().into()),
    shown("version", "version", plain, |line| line.row.version.as_str().into()),
    shown("client", "client library", plain, |line| line.row.client_library.as_str().into()),
    exported("group", |line| line.row.group.as_str().into()),
    exported("baseline", |line| line.row.baseline.into()),
    exported("status", |line| status(line).into()),
    exported("reason", reason_of_line),
    shown("trials", "trials", plain, |line| line.point.as_ref().map_or(line.row.trials, |point| point.trials).into()),
    exported("units", |line| value(line.units)),
    exported("order", |line| value(line.order)),
    exported("rtt_us", |line| value(line.rtt_us.or(line.row.rtt_us))),
    exported("part", |line| value(line.point.as_ref().map(|point| point.part.name()))),
    exported("swept", |line| value(line.point.as_ref().map(|point| swept::words(point.swept).name))),
    exported("clients", |line| value(line.point.as_ref().map(|point| point.clients))),
    exported("rate_per_s", |line| value(line.point.as_ref().and_then(|point| Some(point.rated.as_ref()?.rate)))),
    exported("value_bytes", |line| value(line.point.as_ref().map(|point| point.value_bytes))),
    exported("batch", |line| value(line.point.as_ref().map(|point| point.batch))),
    composed("rank", "rank", |line| rank(&line.row).into()),
    exported("rank_best", |line| value(line.row.rank.filter(|_| line.point.is_none()).map(|rank| rank.0))),
    exported("rank_worst", |line| value(line.row.rank.filter(|_| line.point.is_none()).map(|rank| rank.1))),
    shown("took_s", "seconds", seconds, |line| job(line, |numbers| Some(numbers.seconds))),
    composed("took_s_spread", "lowest..highest", |line| job(line, |numbers| Some(spread(numbers)))),
    exported("took_s_lowest", |line| job(line, |numbers| Some(numbers.seconds_lowest))),
    exported("took_s_highest", |line| job(line, |numbers| Some(numbers.seconds_highest))),
    shown("final_flush_s", "final flush", seconds, |line| job(line, |numbers| Some(numbers.final_flush_s))),
    shown("units_per_s", "units/s", per_second, units_per_s),
    composed("requests_per_s", "requests/s", |line| per_second(&units_per_s(line)).into()),
    shown("lookups_per_s", "lookups/s", per_second, |line| lookup(line, |lookups| lookups.lookups_per_s)),
    shown("lookup_us", "us/lookup", digits, |line| lookup(line, |lookups| lookups.lookup_us)),
    shown("found_share", "found", share, |line| lookup(line, |lookups| lookups.found_share)),
    shown("fill_s", "filled in", seconds, |line| lookup(line, |lookups| lookups.fill_s)),
    shown("read_bytes", "read", bytes, |line| job(line, |numbers| numbers.lookups?.read_bytes)),
    shown("read_bytes_per_lookup", "read/lookup", digits, |line| {
        job(line, |numbers| numbers.lookups?.read_bytes_per_lookup)
    }),
    shown("entries", "entries", count, |line| job(line, |numbers| Some(numbers.lookups?.entries))),
    shown("ask_s", "asked in", seconds, |line| query(line, |queries| Some(queries.ask_s))),
    shown("ask_us_p50", "ask p50", microseconds, |line| query(line, |queries| us(queries.ns_p50))),
    shown("ask_us_p99", "ask p99", microseconds, |line| query(line, |queries| us(queries.ns_p99))),
    exported("units_per_s_lowest", |line| at(line, |point| Some(point.requests_per_s_lowest))),
    exported("units_per_s_highest", |line| at(line, |point| Some(point.requests_per_s_highest))),
    exported("units_per_s_low", |line| at(line, |point| Some(point.requests_per_s_interval?.0))),
    exported("units_per_s_high", |line| at(line, |point| Some(point.requests_per_s_interval?.1))),
    exported("statistic", |line| at(line, |point| Some(statistic(point.statistic)))),
    composed("vs_best_interval", "vs best", |line| job(line, |numbers| Some(ratio(numbers.vs_best)))),
    exported("vs_best", |line| next(line, |beside| Some(beside.vs_best.ratio))),
    exported("vs_best_low", |line| next(line, |beside| beside.vs_best.low)),
    exported("vs_best_high", |line| next(line, |beside| beside.vs_best.high)),
    exported("vs_best_preliminary", |line| next(line, |beside| preliminary(beside.vs_best))),
    exported("slower", |line| next(line, |beside| Some(beside.slower))),
    exported("noise_floor", |line| next(line, |beside| beside.noise_floor)),
    exported("noisy", |line| next(line, |beside| Some(beside.noisy))),
    composed("cpu_vs_least_interval", "CPU vs least", |line| job(line, |numbers| Some(ratio(numbers.cpu_vs_least)))),
    exported("cpu_vs_least", |line| cpu(line, |beside| Some(beside.vs_best.ratio))),
    exported("cpu_vs_least_low", |line| cpu(line, |beside| beside.vs_best.low)),
    exported("cpu_vs_least_high", |line| cpu(line, |beside| beside.vs_best.high)),
    exported("cpu_vs_least_preliminary", |line| cpu(line, |beside| preliminary(beside.vs_best))),
    exported("cpu_more", |line| cpu(line, |beside| Some(beside.slower))),
    exported("cpu_noise_floor", |line| cpu(line, |beside| beside.noise_floor)),
    exported("cpu_noisy", |line| cpu(line, |beside| Some(beside.noisy))),
    composed("cpu_us_per_op", "CPU us/op", |line| job(line, |numbers| Some(cpu_us_per_op(numbers)))),
    composed("cpu_s", "CPU s", |line| job(line, |numbers| Some(cpu_s(numbers)))),
    exported("client_cpu_us_per_op", |line| {
        let of_point = |point: &Point| Some(point.client_cpu_us_per_request);
        either(line, |numbers| Some(numbers.client_cpu_us_per_op), of_point)
    }),
    exported("server_cpu_us_per_op", |line| {
        either(line, |numbers| numbers.server_cpu_us_per_op, |point| point.server_cpu_us_per_request)
    }),
    exported("proxy_cpu_us_per_op", |line| job(line, |numbers| numbers.proxy_cpu_us_per_op)),
    shown("latency_us_p50", "op p50", microseconds, |line| {
        op(line, |times| Some(times.op_ns_p50), |of| Some(of.service_ns_p50))
    }),
    shown("latency_us_p99", "op p99", microseconds, |line| op(line, |times| times.op_ns_p99, |of| of.service_ns_p99)),
    shown("latency_us_p999", "op p99.9", microseconds, |line| op(line, |times| times.op_ns_p999, |_| None)),
    shown("latency_us_max", "op max", microseconds, |line| {
        op(line, |times| Some(times.op_ns_max), |of| Some(of.service_ns_max))
    }),
    shown("timed_one_in", "timed", one_in, |line| job(line, |numbers| Some(numbers.timed_one_in))),
    exported("rate_kept", |line| rate(line, |rated| Some(rated.kept))),
    exported("requests", |line| rate(line, |rated| Some(rated.requests))),
    exported("late_requests", |line| rate(line, |rated| rated.late)),
    exported("timed_out_requests", |line| rate(line, |rated| Some(rated.timed_out))),
    exported("response_us_p50", |line| rate(line, |rated| us(Some(rated.response_ns_p50)))),
    exported("response_us_p99", |line| rate(line, |rated| us(rated.response_ns_p99))),
    exported("response_us_p999", |line| rate(line, |rated| us(rated.response_ns_p999))),
    exported("response_us_max", |line| rate(line, |rated| us(Some(rated.response_ns_max)))),
    exported_wide("service_us_p50", |line| service(line, |of| Some(of.service_ns_p50))),
    exported_wide("service_us_p99", |line| service(line, |of| of.service_ns_p99)),
    exported_wide("service_us_max", |line| service(line, |of| Some(of.service_ns_max))),
    exported("lag_us_p50", |line| rate(line, |rated| us(Some(rated.lag_ns_p50)))),
    exported("lag_us_p99", |line| rate(line, |rated| us(rated.lag_ns_p99))),
    exported("arrivals_a_squared", |line| rate(line, |rated| rated.arrivals_a_squared)),
    exported("replica_reads", |line| stale(line, |stale| Some(stale.reads))),
    exported("stale_reads", |line| stale(line, |stale| Some(stale.stale))),
    exported("stale_share", |line| stale(line, |stale| Some(stale.share()))),
    exported("stale_ms_p50", |line| stale(line, |stale| ms(stale.ns?.p50))),
    exported("stale_ms_p99", |line| stale(line, |stale| ms(stale.ns?.p99?))),
    exported("stale_ms_max", |line| stale(line, |stale| ms(stale.ns?.max))),
    exported("stale_versions_p50", |line| stale(line, |stale| Some(stale.versions?.p50))),
    exported("stale_versions_p99", |line| stale(line, |stale| stale.versions?.p99)),
    exported("stale_versions_max", |line| stale(line, |stale| Some(stale.versions?.max))),
    exported("cut_off_after_s", |line| value(line.point.as_ref().and_then(|point| Some(point.cut_off?.after_s)))),
    exported("cut_off_done_share", |line| value(line.point.as_ref().and_then(|point| Some(point.cut_off?.done_share)))),
    exported("ceiling_share", |line| at(line, |point| point.ceiling_share)),
    exported("doubled_rise", |line| at(line, |point| point.doubled_rise)),
    exported("client_limited", |line| at(line, |point| Some(point.client_limited))),
    shown("ops", "ops", count, |line| job(line, |numbers| Some(numbers.run.ops))),
    shown("commands", "commands", count, |line| job(line, |numbers| Some(numbers.run.commands))),
    shown("conflicts", "conflicts", count, |line| job(line, |numbers| Some(numbers.run.conflicts))),
    exported("misses", |line| value(numbers(line).filter(|_| line.row.of_trace).map(|numbers| numbers.run.misses))),
    shown("hit_share", "hits", share, |line| job(line, |numbers| numbers.hit_share)),
    shown("waiting_share", "waiting", share, |line| job(line, |numbers| Some(numbers.waiting_share))),
    shown("system_share", "in kernel", share, |line| job(line, |numbers| Some(numbers.system_share))),
    shown("cores_used", "cores", hundredths, |line| job(line, |numbers| Some(numbers.cores_used))),
    composed("memory_bytes", "memory", |line| job(line, |numbers| Some(disk(numbers.memory_bytes())))),
    composed("both_memory_bytes", "memory", |line| job(line, |numbers| Some(memory_of_both(numbers)))),
    exported("anonymous_bytes", |line| job(line, |numbers| numbers.anonymous_bytes)),
    exported("shared_bytes", |line| job(line, |numbers| numbers.shared_bytes)),
    shown("file_bytes", "mapped", bytes, |line| job(line, |numbers| numbers.file_bytes)),
    exported("client_anonymous_bytes", |line| job(line, |numbers| numbers.client_anonymous_bytes)),
    shown("disk_bytes", "disk", bytes, |line| job(line, |numbers| numbers.bytes_on_disk)),
    shown("memory_bytes_per_entry", "memory/entry", digits, |line| {
        job(line, |numbers| numbers.per_entry(numbers.memory_bytes()))
    }),
    shown("disk_bytes_per_entry", "disk/entry", digits, |line| {
        job(line, |numbers| numbers.per_entry(numbers.bytes_on_disk))
    }),
    shown("written_bytes", "written", bytes, |line| job(line, |numbers| numbers.bytes_written)),
    shown("written_per_user_byte", "a user byte", digits, |line| job(line, |numbers| numbers.written_per_user_byte)),
    shown("allocated_per_user_byte", "disk/byte held", digits, |line| {
        job(line, |numbers| numbers.allocated_per_user_byte)
    }),
    exported("growth_exponent", |line| value(line.growth_exponent)),
    exported("round_trips", |line| value(line.round_trips)),
];

pub fn value<T: Into<Value>>(known: Option<T>) -> Value {
    known.map_or(Value::Null, Into::into)
}

pub(super) fn us(ns: Option<u64>) -> Option<f64> {
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

fn query(line: &FieldLine, number: fn(&Queries) -> Option<f64>) -> Value {
    value(numbers(line).and_then(|numbers| numbers.queries.as_ref()).and_then(number))
}

fn lookup(line: &FieldLine, number: fn(&Lookups) -> f64) -> Value {
    value(numbers(line).and_then(|numbers| numbers.lookups.as_ref()).map(number))
}

fn at<T: Into<Value>>(line: &FieldLine, number: fn(&Point) -> Option<T>) -> Value {
    value(point(line).and_then(number))
}

fn either(line: &FieldLine, of_job: fn(&Numbers) -> Option<f64>, of_point: impl Fn(&Point) -> Option<f64>) -> Value {
    value(numbers(line).and_then(of_job).or_else(|| point(line).and_then(of_point)))
}

/// At a rate this time leaves out how long a request waited until it was sent: it is no latency. See [`service`].
fn op(line: &FieldLine, of_job: fn(&OpTimes) -> Option<u64>, of_point: fn(&Service) -> Option<u64>) -> Value {
    let closed = || point(line).filter(|point| point.rated.is_none());
    let of_point = || closed().and_then(|point| of_point(point.service.as_ref()?));
    value(us(numbers(line).and_then(|numbers| of_job(numbers.op_times.as_ref()?)).or_else(of_point)))
}

fn rate<T: Into<Value>>(line: &FieldLine, number: fn(&Rated) -> Option<T>) -> Value {
    value(point(line).and_then(|point| number(point.rated.as_ref()?)))
}

/// At a rate: from the sending of a request to its answer.
fn service(line: &FieldLine, number: fn(&Service) -> Option<u64>) -> Value {
    let rated = point(line).filter(|point| point.rated.is_some());
    value(us(rated.and_then(|point| number(point.service.as_ref()?))))
}

fn stale<T: Into<Value>>(line: &FieldLine, number: fn(&Stale) -> Option<T>) -> Value {
    let of_job = numbers(line).and_then(|numbers| numbers.stale.as_ref());
    value(of_job.or_else(|| point(line)?.stale.as_ref()).and_then(number))
}

fn ms(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1e6)
}

fn next<T: Into<Value>>(line: &FieldLine, number: fn(&Beside) -> Option<T>) -> Value {
    value(line.beside.as_ref().and_then(number))
}

fn cpu<T: Into<Value>>(line: &FieldLine, number: fn(&Beside) -> Option<T>) -> Value {
    value(line.cpu_beside.as_ref().and_then(number))
}

fn units_per_s(line: &FieldLine) -> Value {
    either(line, |numbers| Some(numbers.units_per_s), |point| Some(point.requests_per_s))
}

/// "1", or "3-4" where the data cannot say which place a target has.
pub(super) fn rank(row: &Row) -> String {
    match row.rank {
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}-{worst}"),
        None => String::new(),
    }
}

fn spread(numbers: &Numbers) -> String {
    format!("{}..{}", units::seconds(numbers.seconds_lowest), units::seconds(numbers.seconds_highest))
}

fn ratio(known: Option<Versus>) -> String {
    known.map_or_else(String::new, versus)
}

/// "15.1 + 20.3": of client and server; one number where the store is in the client.
pub(super) fn cpu_us_per_op(numbers: &Numbers) -> String {
    both(numbers.client_cpu_us_per_op, numbers.server_cpu_us_per_op)
}

/// Of a program, whose run is one op.
fn cpu_s(numbers: &Numbers) -> String {
    both(numbers.client_cpu_us_per_op / 1e6, numbers.server_cpu_us_per_op.map(|server| server / 1e6))
}

fn memory_of_both(numbers: &Numbers) -> String {
    memories(numbers.client_anonymous_bytes, numbers.memory_bytes())
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

pub(super) fn reason(status: &Status) -> Option<String> {
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

fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Median => "median",
        Statistic::Best => "best",
    }
}

// The column of CONTRIBUTING.md.
#[cfg(test)]
const _: Column<FieldLine> =
    shown("waiting_s", "waited", seconds, |line| job(line, |numbers| Some(numbers.run.waiting_s)));
