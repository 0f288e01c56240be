//! What stands in a CSV file of rows, points or trials: all that the JSON tells, a line each, numbers as they are.

use super::beside::Beside;
use super::cells::{Numbers, OpTimes, Row, Status};
use super::export::{Field, plain};
use super::rated::Rated;
use super::standing::Versus;
use super::sweep::{Point, Service, Statistic};
use super::trials::{Place, Trial, Uncounted};
use crate::words::load::Swept;

pub const ROWS: &[Field<Row>] = &[
    Field { name: "target", value: |row| row.target.clone() },
    Field { name: "store", value: |row| row.store.clone() },
    Field { name: "transport", value: |row| row.transport.to_string() },
    Field { name: "group", value: |row| row.group.clone() },
    Field { name: "control", value: |row| row.control.to_string() },
    Field { name: "rank_best", value: |row| plain(row.rank.map(|(best, _)| best)) },
    Field { name: "rank_worst", value: |row| plain(row.rank.map(|(_, worst)| worst)) },
    Field { name: "version", value: |row| row.version.clone() },
    Field { name: "mouth", value: |row| row.mouth.clone() },
    Field { name: "trials", value: |row| row.trials.to_string() },
    Field { name: "status", value: |row| kind(&row.status).to_string() },
    Field { name: "reason", value: |row| reason(&row.status) },
    Field { name: "seconds", value: |row| of(row, |numbers| Some(numbers.seconds)) },
    Field { name: "seconds_lowest", value: |row| of(row, |numbers| Some(numbers.seconds_lowest)) },
    Field { name: "seconds_highest", value: |row| of(row, |numbers| Some(numbers.seconds_highest)) },
    Field { name: "settle_s", value: |row| of(row, |numbers| Some(numbers.settle_s)) },
    Field { name: "vs_best", value: |row| of(row, |numbers| Some(numbers.vs_best?.ratio)) },
    Field { name: "vs_best_low", value: |row| of(row, |numbers| numbers.vs_best?.low) },
    Field { name: "vs_best_high", value: |row| of(row, |numbers| numbers.vs_best?.high) },
    Field { name: "vs_best_preliminary", value: |row| of(row, |numbers| preliminary(numbers.vs_best?)) },
    Field { name: "cpu_vs_least", value: |row| of(row, |numbers| Some(numbers.cpu_vs_least?.ratio)) },
    Field { name: "cpu_vs_least_low", value: |row| of(row, |numbers| numbers.cpu_vs_least?.low) },
    Field { name: "cpu_vs_least_high", value: |row| of(row, |numbers| numbers.cpu_vs_least?.high) },
    Field { name: "cpu_vs_least_preliminary", value: |row| of(row, |numbers| preliminary(numbers.cpu_vs_least?)) },
    Field { name: "units_per_s", value: |row| of(row, |numbers| Some(numbers.units_per_s)) },
    Field { name: "ops", value: |row| of(row, |numbers| Some(numbers.ops)) },
    Field { name: "commands", value: |row| of(row, |numbers| Some(numbers.commands)) },
    Field { name: "conflicts", value: |row| of(row, |numbers| Some(numbers.conflicts)) },
    Field { name: "misses", value: |row| of(row, |numbers| numbers.misses) },
    Field { name: "hit_share", value: |row| of(row, |numbers| numbers.hit_share) },
    Field { name: "waiting_share", value: |row| of(row, |numbers| Some(numbers.waiting_share)) },
    Field { name: "client_cpu_us_per_op", value: |row| of(row, |numbers| Some(numbers.client_cpu_us_per_op)) },
    Field { name: "server_cpu_us_per_op", value: |row| of(row, |numbers| numbers.server_cpu_us_per_op) },
    Field { name: "system_share", value: |row| of(row, |numbers| Some(numbers.system_share)) },
    Field { name: "anonymous_bytes", value: |row| of(row, |numbers| numbers.anonymous_bytes) },
    Field { name: "shared_bytes", value: |row| of(row, |numbers| numbers.shared_bytes) },
    Field { name: "file_bytes", value: |row| of(row, |numbers| numbers.file_bytes) },
    Field { name: "client_anonymous_bytes", value: |row| of(row, |numbers| numbers.client_anonymous_bytes) },
    Field { name: "bytes_on_disk", value: |row| of(row, |numbers| numbers.bytes_on_disk) },
    Field { name: "bytes_written", value: |row| of(row, |numbers| numbers.bytes_written) },
    Field { name: "cores_used", value: |row| of(row, |numbers| Some(numbers.cores_used)) },
    Field { name: "written_per_user_byte", value: |row| of(row, |numbers| numbers.written_per_user_byte) },
    Field { name: "allocated_per_user_byte", value: |row| of(row, |numbers| numbers.allocated_per_user_byte) },
    Field { name: "op_ns_p50", value: |row| op(row, |times| Some(times.op_ns_p50)) },
    Field { name: "op_ns_p99", value: |row| op(row, |times| times.op_ns_p99) },
    Field { name: "op_ns_p999", value: |row| op(row, |times| times.op_ns_p999) },
    Field { name: "op_ns_max", value: |row| op(row, |times| Some(times.op_ns_max)) },
    Field { name: "timed_one_in", value: |row| of(row, |numbers| Some(numbers.timed_one_in)) },
];

/// A line of a sweep: a point, or a target that has none and why.
pub enum SweptLine {
    Point(Box<Point>),
    /// A point that has no numbers.
    Unclear(Box<Point>),
    Silent(Box<Row>),
}

pub const POINTS: &[Field<SweptLine>] = &[
    Field { name: "target", value: |one| target(one).to_string() },
    Field { name: "control", value: |one| control(one).to_string() },
    Field { name: "group", value: |one| group(one).to_string() },
    Field { name: "status", value: |one| status(one).to_string() },
    Field {
        name: "reason",
        value: |one| match one {
            SweptLine::Point(_) => String::new(),
            SweptLine::Unclear(point) => plain(point.unclear.as_ref()),
            SweptLine::Silent(row) => reason(&row.status),
        },
    },
    Field { name: "part", value: |one| which(one, |point| Some(point.part.clone())) },
    Field { name: "swept", value: |one| which(one, |point| Some(swept(point.swept))) },
    Field { name: "clients", value: |one| which(one, |point| Some(point.clients)) },
    Field { name: "rate_per_s", value: |one| which(one, |point| Some(point.rated.as_ref()?.rate)) },
    Field { name: "value_bytes", value: |one| which(one, |point| Some(point.value_bytes)) },
    Field { name: "batch", value: |one| which(one, |point| Some(point.batch)) },
    Field { name: "trials", value: |one| which(one, |point| Some(point.trials)) },
    Field { name: "cut_off_after_s", value: |one| at(one, |point| Some(point.cut_off?.after_s)) },
    Field { name: "cut_off_done_share", value: |one| at(one, |point| Some(point.cut_off?.done_share)) },
    Field { name: "statistic", value: |one| at(one, |point| Some(statistic(point.statistic))) },
    Field { name: "requests_per_s", value: |one| at(one, |point| Some(point.requests_per_s)) },
    Field { name: "requests_per_s_lowest", value: |one| at(one, |point| Some(point.requests_per_s_lowest)) },
    Field { name: "requests_per_s_highest", value: |one| at(one, |point| Some(point.requests_per_s_highest)) },
    Field { name: "requests_per_s_low", value: |one| at(one, |point| Some(point.requests_per_s_interval?.0)) },
    Field { name: "requests_per_s_high", value: |one| at(one, |point| Some(point.requests_per_s_interval?.1)) },
    Field { name: "client_cpu_us_per_request", value: |one| at(one, |point| Some(point.client_cpu_us_per_request)) },
    Field { name: "server_cpu_us_per_request", value: |one| at(one, |point| point.server_cpu_us_per_request) },
    Field { name: "ceiling_share", value: |one| at(one, |point| point.ceiling_share) },
    Field { name: "doubled_rise", value: |one| at(one, |point| point.doubled_rise) },
    Field { name: "client_limited", value: |one| at(one, |point| Some(point.client_limited)) },
    Field { name: "vs_best", value: |one| next(one, |beside| Some(beside.vs_best.ratio)) },
    Field { name: "vs_best_low", value: |one| next(one, |beside| beside.vs_best.low) },
    Field { name: "vs_best_high", value: |one| next(one, |beside| beside.vs_best.high) },
    Field { name: "vs_best_preliminary", value: |one| next(one, |beside| preliminary(beside.vs_best)) },
    Field { name: "slower", value: |one| next(one, |beside| Some(beside.slower)) },
    Field { name: "noise_floor", value: |one| next(one, |beside| beside.noise_floor) },
    Field { name: "noisy", value: |one| next(one, |beside| Some(beside.noisy)) },
    Field { name: "cpu_vs_least", value: |one| cpu(one, |beside| Some(beside.vs_best.ratio)) },
    Field { name: "cpu_vs_least_low", value: |one| cpu(one, |beside| beside.vs_best.low) },
    Field { name: "cpu_vs_least_high", value: |one| cpu(one, |beside| beside.vs_best.high) },
    Field { name: "cpu_vs_least_preliminary", value: |one| cpu(one, |beside| preliminary(beside.vs_best)) },
    Field { name: "cpu_more", value: |one| cpu(one, |beside| Some(beside.slower)) },
    Field { name: "cpu_noise_floor", value: |one| cpu(one, |beside| beside.noise_floor) },
    Field { name: "cpu_noisy", value: |one| cpu(one, |beside| Some(beside.noisy)) },
    Field { name: "service_ns_p50", value: |one| serve(one, |service| Some(service.service_ns_p50)) },
    Field { name: "service_ns_p99", value: |one| serve(one, |service| service.service_ns_p99) },
    Field { name: "service_ns_max", value: |one| serve(one, |service| Some(service.service_ns_max)) },
    Field { name: "rate_kept", value: |one| rate(one, |rated| Some(rated.kept)) },
    Field { name: "late", value: |one| rate(one, |rated| rated.late) },
    Field { name: "response_ns_p50", value: |one| rate(one, |rated| Some(rated.response_ns_p50)) },
    Field { name: "response_ns_p99", value: |one| rate(one, |rated| rated.response_ns_p99) },
    Field { name: "response_ns_p999", value: |one| rate(one, |rated| rated.response_ns_p999) },
    Field { name: "response_ns_max", value: |one| rate(one, |rated| Some(rated.response_ns_max)) },
    Field { name: "requests", value: |one| rate(one, |rated| Some(rated.requests)) },
    Field { name: "timed_out", value: |one| rate(one, |rated| Some(rated.timed_out)) },
    Field { name: "lag_ns_p50", value: |one| rate(one, |rated| Some(rated.lag_ns_p50)) },
    Field { name: "lag_ns_p99", value: |one| rate(one, |rated| rated.lag_ns_p99) },
    Field { name: "arrivals_a_squared", value: |one| rate(one, |rated| rated.arrivals_a_squared) },
];

pub const TRIALS: &[Field<Trial>] = &[
    Field { name: "block", value: |trial| trial.block.to_string() },
    Field { name: "position", value: |trial| trial.position.to_string() },
    Field { name: "target", value: |trial| trial.target.clone() },
    Field { name: "control", value: |trial| trial.control.to_string() },
    Field { name: "uncounted", value: |trial| plain(trial.uncounted.map(uncounted)) },
    Field { name: "status", value: |trial| kind(&trial.status).to_string() },
    Field { name: "reason", value: |trial| reason(&trial.status) },
    Field { name: "part", value: |trial| place(trial, |place| place.part.clone()) },
    Field { name: "swept", value: |trial| place(trial, |place| swept(place.swept).to_string()) },
    Field { name: "step", value: |trial| place(trial, |place| place.step.to_string()) },
    Field { name: "seconds", value: |trial| plain(trial.seconds) },
    Field { name: "cut_off_done_share", value: |trial| plain(trial.cut_off_done_share) },
    Field { name: "requests_per_s", value: |trial| plain(trial.requests_per_s) },
    Field { name: "response_ns_p99", value: |trial| plain(trial.response_ns_p99) },
    Field { name: "client_cpu_us_per_op", value: |trial| plain(trial.client_cpu_us_per_op) },
    Field { name: "server_cpu_us_per_op", value: |trial| plain(trial.server_cpu_us_per_op) },
    Field { name: "anonymous_bytes", value: |trial| plain(trial.anonymous_bytes) },
    Field { name: "shared_bytes", value: |trial| plain(trial.shared_bytes) },
    Field { name: "client_anonymous_bytes", value: |trial| plain(trial.client_anonymous_bytes) },
    Field { name: "bytes_on_disk", value: |trial| plain(trial.bytes_on_disk) },
    Field { name: "load_1m", value: |trial| trial.load_1m.to_string() },
    Field { name: "cpu_pressure_share", value: |trial| plain(trial.cpu_pressure_share) },
];

/// The points of a sweep, and below them the targets that have none.
pub fn swept_lines(points: &[Point], rows: &[Row]) -> Vec<SweptLine> {
    let silent = rows.iter().filter(|row| !row.status.has_numbers());
    let line = |point: &Point| match point.unclear {
        None => SweptLine::Point(Box::new(point.clone())),
        Some(_) => SweptLine::Unclear(Box::new(point.clone())),
    };
    let points = points.iter().map(line);
    points.chain(silent.map(|row| SweptLine::Silent(Box::new(row.clone())))).collect()
}

fn of<T: std::fmt::Display>(row: &Row, number: fn(&Numbers) -> Option<T>) -> String {
    plain(row.numbers.as_ref().and_then(number))
}

fn op(row: &Row, time: fn(&OpTimes) -> Option<u64>) -> String {
    plain(row.numbers.as_ref().and_then(|numbers| numbers.op_times.as_ref()).and_then(time))
}

/// What says which point it is.
fn which<T: std::fmt::Display>(one: &SweptLine, name: fn(&Point) -> Option<T>) -> String {
    match one {
        SweptLine::Point(point) | SweptLine::Unclear(point) => plain(name(point)),
        SweptLine::Silent(_) => String::new(),
    }
}

fn at<T: std::fmt::Display>(one: &SweptLine, number: fn(&Point) -> Option<T>) -> String {
    plain(point(one).and_then(number))
}

fn next<T: std::fmt::Display>(one: &SweptLine, number: fn(&Beside) -> Option<T>) -> String {
    plain(point(one).and_then(|point| number(point.beside.as_ref()?)))
}

fn cpu<T: std::fmt::Display>(one: &SweptLine, number: fn(&Beside) -> Option<T>) -> String {
    plain(point(one).and_then(|point| number(point.cpu_beside.as_ref()?)))
}

fn serve(one: &SweptLine, time: fn(&Service) -> Option<u64>) -> String {
    plain(point(one).and_then(|point| time(point.service.as_ref()?)))
}

fn rate<T: std::fmt::Display>(one: &SweptLine, number: fn(&Rated) -> Option<T>) -> String {
    plain(point(one).and_then(|point| number(point.rated.as_ref()?)))
}

fn point(one: &SweptLine) -> Option<&Point> {
    if let SweptLine::Point(point) = one { Some(point) } else { None }
}

fn place(trial: &Trial, words: fn(&Place) -> String) -> String {
    trial.point.as_ref().map_or_else(String::new, words)
}

fn target(one: &SweptLine) -> &str {
    match one {
        SweptLine::Point(point) | SweptLine::Unclear(point) => &point.target,
        SweptLine::Silent(row) => &row.target,
    }
}

fn control(one: &SweptLine) -> bool {
    match one {
        SweptLine::Point(point) | SweptLine::Unclear(point) => point.control,
        SweptLine::Silent(row) => row.control,
    }
}

fn group(one: &SweptLine) -> &str {
    match one {
        SweptLine::Point(point) | SweptLine::Unclear(point) => &point.group,
        SweptLine::Silent(row) => &row.group,
    }
}

fn status(one: &SweptLine) -> &'static str {
    match one {
        SweptLine::Point(point) if point.control => "control",
        SweptLine::Point(_) => "right",
        SweptLine::Unclear(_) => "unclear",
        SweptLine::Silent(row) => kind(&row.status),
    }
}

fn preliminary(versus: Versus) -> Option<bool> {
    versus.low.map(|_| versus.preliminary)
}

/// As the JSON has it.
fn kind(status: &Status) -> &'static str {
    match status {
        Status::Right => "right",
        Status::Unchecked => "unchecked",
        Status::Control => "control",
        Status::Wrong { .. } => "wrong",
        Status::TimedOut { .. } => "timed_out",
        Status::Refused { .. } => "refused",
        Status::Failed { .. } => "failed",
        Status::Missing { .. } => "missing",
        Status::LeftOut { .. } => "left_out",
    }
}

/// Why there are no numbers; nothing where there are.
fn reason(status: &Status) -> String {
    match status {
        status if status.has_numbers() => String::new(),
        status => status.in_words(),
    }
}

fn swept(swept: Swept) -> &'static str {
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
        Uncounted::Twin => "twin",
        Uncounted::Void => "void",
        Uncounted::Ahead => "larger",
    }
}
