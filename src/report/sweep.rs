//! A sweep over numbers of clients: requests a second and CPU a request, a line a number of clients, a column a target.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{Row, Status};
use super::table::{Line, WIDTH, layout};
use crate::stats::sample::Sample;
use crate::words::hist::Times;
use crate::words::record::{Outcome, Phase, Record};
use crate::words::units;

/// One target at one number of clients in one part: medians over blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// `set`, `get`, or `run` where both come mixed.
    pub part: String,
    pub clients: u32,
    pub target: String,
    pub control: bool,
    pub trials: usize,
    pub requests_per_s: f64,
    pub requests_per_s_lowest: f64,
    pub requests_per_s_highest: f64,
    pub client_cpu_us_per_request: f64,
    pub server_cpu_us_per_request: Option<f64>,
    /// Of all blocks' requests together: with all clients asking as fast as they are answered.
    pub service_ns_p50: u64,
    pub service_ns_p99: Option<u64>,
    pub service_ns_max: u64,
}

/// All points of the trials that finished with right answers: by part, target as first measured, and clients.
pub fn points(records: &[Record]) -> Vec<Point> {
    let mut phases: BTreeMap<(bool, &str, &str, u32), Vec<&Phase>> = BTreeMap::new();
    let mut controls = BTreeMap::new();
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right();
    for record in records.iter().filter(right).filter(|record| !record.run.answers_only) {
        for phase in record.phases.iter().filter(|phase| !matches!(phase.name.as_str(), "load" | "settle")) {
            let target = record.target.label.as_str();
            // Sets come before gets, as they were asked.
            let key = (phase.name != "set", phase.name.as_str(), target, phase.clients);
            phases.entry(key).or_default().push(phase);
            controls.insert(target, record.target.control);
        }
    }
    phases.into_iter().filter_map(|((_, _, target, _), phases)| point(target, controls[target], &phases)).collect()
}

fn point(target: &str, control: bool, phases: &[&Phase]) -> Option<Point> {
    let of =
        |number: &dyn Fn(&Phase) -> Option<f64>| Sample::new(phases.iter().filter_map(|phase| number(phase)).collect());
    let rate = of(&|phase| Some(phase.units as f64 / phase.took_s.max(1e-9)))?;
    let per_request = |cpu_s: f64, phase: &Phase| cpu_s * 1e6 / phase.units.max(1) as f64;
    let mut times = Times::default();
    phases.iter().for_each(|phase| times.merge(&phase.times_ns));
    Some(Point {
        part: phases[0].name.clone(),
        clients: phases[0].clients,
        target: target.to_string(),
        control,
        trials: phases.len(),
        requests_per_s: rate.median(),
        requests_per_s_lowest: rate.lowest(),
        requests_per_s_highest: rate.highest(),
        client_cpu_us_per_request: of(&|phase| Some(per_request(phase.client.cpu_s(), phase)))?.median(),
        server_cpu_us_per_request: of(&|phase| Some(per_request(phase.server?.cpu_s(), phase)))
            .map(|sample| sample.median()),
        service_ns_p50: times.median_ns(),
        service_ns_p99: times.quantile_ns(0.99),
        service_ns_max: times.max_ns(),
    })
}

/// Whether there is more to show than one number of clients doing one thing.
pub fn is_one(points: &[Point]) -> bool {
    points.iter().any(|point| (&point.part, point.clients) != (&points[0].part, points[0].clients))
        || points.first().is_some_and(|point| point.part != "run")
}

/// What one request of a part is called.
fn called(part: &str) -> &str {
    if part == "run" { "request" } else { part }
}

/// What a table of points tells of each, and what it says above.
struct Measure {
    words: fn(part: &str) -> String,
    cell: fn(&Point) -> String,
}

const MEASURES: &[Measure] = &[
    Measure { words: |part| format!("{part}s a second"), cell: |point| units::count(point.requests_per_s) },
    Measure { words: |part| format!("CPU us a {part}, client + server"), cell: cpu },
];

const WIDE: &[Measure] = &[
    Measure {
        words: |part| format!("time of a {part} while all clients ask at once, median (not what users would wait)"),
        cell: |point| units::nanoseconds(point.service_ns_p50),
    },
    Measure {
        words: |part| format!("time of a {part} while all clients ask at once, p99"),
        cell: |point| point.service_ns_p99.map_or_else(|| "-".to_string(), units::nanoseconds),
    },
    Measure {
        words: |part| format!("{part}s a second, lowest..highest of the blocks"),
        cell: |point| {
            format!("{}..{}", units::count(point.requests_per_s_lowest), units::count(point.requests_per_s_highest))
        },
    },
];

/// One table a part and measure, and below them the targets that have no numbers, with the reason.
pub fn tables(points: &[Point], rows: &[Row], wide: bool) -> String {
    let measures: Vec<&Measure> = MEASURES.iter().chain(if wide { WIDE } else { &[] }).collect();
    let mut text = String::new();
    for part in ["set", "get", "run"] {
        let points: Vec<&Point> = points.iter().filter(|point| point.part == part).collect();
        for measure in measures.iter().filter(|_| !points.is_empty()) {
            text.push_str(&format!(" {}\n", (measure.words)(called(part))));
            text.push_str(&table(&points, measure, if wide { usize::MAX } else { WIDTH }));
        }
    }
    let silent = rows.iter().filter(|row| !matches!(row.status, Status::Right | Status::Control));
    let silent: Vec<Line> = silent.map(|row| Line::Reason(row.target.clone(), row.status.in_words())).collect();
    if !silent.is_empty() {
        text.push_str(&layout(&silent, WIDTH));
    }
    text
}

/// As many targets side by side as there is room for, and the others below them.
fn table(points: &[&Point], measure: &Measure, width: usize) -> String {
    let mut targets: Vec<(bool, &str)> = points.iter().map(|point| (point.control, point.target.as_str())).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut clients: Vec<u32> = points.iter().map(|point| point.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let cell = |target: &str, clients: u32| {
        let point = points.iter().find(|point| point.target == target && point.clients == clients);
        point.map_or_else(|| "-".to_string(), |point| (measure.cell)(point))
    };
    let mut text = String::new();
    let mut rest = targets.as_slice();
    while !rest.is_empty() {
        let mut used = FIRST_COLUMN;
        let fits = rest.iter().take_while(|(_, target)| {
            let cells = clients.iter().map(|&clients| cell(target, clients).chars().count());
            used += 2 + cells.max().unwrap_or(0).max(target.chars().count());
            used <= width
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        let headings = std::iter::once("clients").chain(now.iter().map(|(_, target)| *target)).map(str::to_string);
        let mut lines = vec![Line::Cells(headings.collect())];
        for &clients in &clients {
            let cells = now.iter().map(|(_, target)| cell(target, clients));
            lines.push(Line::Cells(std::iter::once(units::thousands(u64::from(clients))).chain(cells).collect()));
        }
        text.push_str(&layout(&lines, width));
        rest = later;
    }
    text
}

/// A blank, and the column of the numbers of clients.
const FIRST_COLUMN: usize = 9;

/// "2.3 + 1.9": client and server; one number where the store is in the client.
fn cpu(point: &Point) -> String {
    let client = units::digits(point.client_cpu_us_per_request);
    point.server_cpu_us_per_request.map_or(client.clone(), |server| format!("{client} + {}", units::digits(server)))
}

/// The most that each target answered in the first part, in one sentence.
pub fn sentence(points: &[Point]) -> String {
    let Some(first) = points.iter().find(|point| !point.control) else { return String::new() };
    let mut best: Vec<&Point> = Vec::new();
    for point in points.iter().filter(|point| !point.control && point.part == first.part) {
        match best.iter_mut().find(|found| found.target == point.target) {
            Some(found) if found.requests_per_s >= point.requests_per_s => {}
            Some(found) => *found = point,
            None => best.push(point),
        }
    }
    best.sort_by(|one, other| other.requests_per_s.total_cmp(&one.requests_per_s));
    let each = best.iter().map(|point| {
        let clients = if point.clients == 1 { "1 client".to_string() } else { format!("{} clients", point.clients) };
        format!("{} {} with {clients}", point.target, units::count(point.requests_per_s))
    });
    let each: Vec<String> = each.collect();
    format!(
        "Most {}s a second: {}. Seen here, not claimed: intervals come with more blocks.",
        called(&first.part),
        each.join(", ")
    )
}
