//! A sweep over numbers of clients or rates: a line a point, a column a target.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{Row, Status};
use super::growth;
use super::rated::{self, Rated};
use super::table::{Line, WIDTH, layout};
use crate::stats::sample::Sample;
use crate::words::hist::Times;
use crate::words::load::{At, Load, Swept};
use crate::words::record::{Outcome, Phase, Record};
use crate::words::trial::Transport;
use crate::words::units;

/// One target at one number of clients in one part: medians over blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// `set`, `get`, or `run` where both come mixed.
    pub part: String,
    pub clients: u32,
    pub value_bytes: u32,
    /// Keys of a question.
    pub batch: u32,
    /// What the points differ in.
    pub swept: Swept,
    /// Where requests come at a rate.
    pub rated: Option<Rated>,
    pub target: String,
    pub control: bool,
    pub trials: usize,
    pub requests_per_s: f64,
    pub requests_per_s_lowest: f64,
    pub requests_per_s_highest: f64,
    pub client_cpu_us_per_request: f64,
    pub server_cpu_us_per_request: Option<f64>,
    /// Of what the same clients reach at a server of ours that only looks up an array; none for who is not reached by
    /// the same way.
    pub ceiling_share: Option<f64>,
    /// The generator's own limit is near: real differences between stores are compressed here, and none is ranked.
    pub client_limited: bool,
    /// Of all blocks' requests together: with all clients asking as fast as they are answered.
    pub service_ns_p50: u64,
    pub service_ns_p99: Option<u64>,
    pub service_ns_max: u64,
}

/// All points of the trials that finished with right answers: by part, target as first measured, and clients.
pub fn points(records: &[Record]) -> Vec<Point> {
    let mut phases: BTreeMap<(bool, &str, &str, u64), Vec<&Phase>> = BTreeMap::new();
    let mut steps = BTreeMap::new();
    let mut controls = BTreeMap::new();
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right();
    for record in records.iter().filter(right).filter(|record| !record.run.answers_only) {
        for phase in record.phases.iter().filter(|phase| !matches!(phase.name.as_str(), "load" | "settle")) {
            let target = record.target.label.as_str();
            // Sets come before gets, as they were asked.
            let (at, swept) = at(record, phase);
            let key = (phase.name != "set", phase.name.as_str(), target, step(at, swept));
            steps.insert(key, (at, swept));
            phases.entry(key).or_default().push(phase);
            controls.insert(target, record.target.control);
        }
    }
    let points = phases.into_iter().filter_map(|(key, phases)| point(key.2, controls[key.2], steps[&key], &phases));
    beside_ceilings(points.collect(), records)
}

/// A store's rate is told as a share of its ceiling above so much, and not ranked above that much (method.md R2.11).
const NOTED_SHARE: f64 = 0.5;
const LIMITED_SHARE: f64 = 0.8;
/// Threads that are busier than this are what the rate is of (method.md R2.12).
const BUSY_SHARE: f64 = 0.9;

/// Puts the points of each way to a server (what is spoken, over what) beside the control that shows how far it goes.
fn beside_ceilings(mut points: Vec<Point>, records: &[Record]) -> Vec<Point> {
    let mut ways: BTreeMap<&str, (&str, Transport)> = BTreeMap::new();
    for record in records.iter().filter(|record| record.target.transport != Transport::InProcess) {
        if let Some(facts) = &record.store {
            ways.insert(&record.target.label, (&facts.mouth, record.target.transport));
        }
    }
    limit(&mut points, &ways);
    points
}

fn limit(points: &mut [Point], ways: &BTreeMap<&str, (&str, Transport)>) {
    let ceilings: Vec<Point> =
        points.iter().filter(|point| point.control && ways.contains_key(point.target.as_str())).cloned().collect();
    for point in points.iter_mut().filter(|point| !point.control) {
        let Some(way) = ways.get(point.target.as_str()) else { continue };
        let same = |ceiling: &&Point| {
            (&ceiling.part, ceiling.step(), ways.get(ceiling.target.as_str())) == (&point.part, point.step(), Some(way))
        };
        point.ceiling_share = ceilings.iter().find(same).map(|ceiling| point.requests_per_s / ceiling.requests_per_s);
        point.client_limited |= point.ceiling_share.is_some_and(|share| share > LIMITED_SHARE);
    }
}

/// What a phase was asked, and what its trial swept over.
fn at(record: &Record, phase: &Phase) -> (At, Swept) {
    let points = record.job.load.as_ref().map_or_else(Vec::new, |load| load.points(record.job.units, 0));
    let at = points.into_iter().find(|at| at.number == phase.point);
    // Phases did not tell their point when there were only clients to sweep over.
    let at = at.unwrap_or_else(|| At::closed(phase.clients, phase.units));
    (at, record.job.load.as_ref().map_or(Swept::Clients, Load::swept))
}

fn step(at: At, swept: Swept) -> u64 {
    match swept {
        Swept::Clients => at.clients.into(),
        Swept::Rate => at.rate.unwrap_or_default(),
        Swept::ValueBytes => at.value_bytes.into(),
        Swept::Batch => at.batch.into(),
    }
}

fn point(target: &str, control: bool, (at, swept): (At, Swept), phases: &[&Phase]) -> Option<Point> {
    let of =
        |number: &dyn Fn(&Phase) -> Option<f64>| Sample::new(phases.iter().filter_map(|phase| number(phase)).collect());
    let rate = of(&|phase| Some(phase.units as f64 / phase.took_s.max(1e-9)))?;
    let per_request = |cpu_s: f64, phase: &Phase| cpu_s * 1e6 / phase.units.max(1) as f64;
    let mut times = Times::default();
    phases.iter().for_each(|phase| times.merge(&phase.times_ns));
    // Where the store is in the client its threads are busy with the store.
    let busy = |phase: &Phase| {
        phase.server.map(|_| phase.client.cpu_s() / (phase.took_s * f64::from(phase.threads.max(1))).max(1e-9))
    };
    let rated = rated::rated(phases);
    let is_lag_limited = rated.as_ref().is_some_and(|rated| rated.is_lag_limited(phases));
    Some(Point {
        part: phases[0].name.clone(),
        clients: phases[0].clients,
        value_bytes: at.value_bytes,
        batch: at.batch,
        swept,
        rated,
        target: target.to_string(),
        control,
        trials: phases.len(),
        requests_per_s: rate.median(),
        requests_per_s_lowest: rate.lowest(),
        requests_per_s_highest: rate.highest(),
        client_cpu_us_per_request: of(&|phase| Some(per_request(phase.client.cpu_s(), phase)))?.median(),
        server_cpu_us_per_request: of(&|phase| Some(per_request(phase.server?.cpu_s(), phase)))
            .map(|sample| sample.median()),
        ceiling_share: None,
        client_limited: is_lag_limited || of(&busy).is_some_and(|sample| sample.median() > BUSY_SHARE),
        service_ns_p50: times.median_ns(),
        service_ns_p99: times.quantile_ns(0.99),
        service_ns_max: times.max_ns(),
    })
}

impl Point {
    /// Where it stands among the others of its target.
    pub fn step(&self) -> u64 {
        match self.swept {
            Swept::Clients => self.clients.into(),
            Swept::Rate => self.rated.as_ref().map_or(0, |rated| rated.rate),
            Swept::ValueBytes => self.value_bytes.into(),
            Swept::Batch => self.batch.into(),
        }
    }

    /// CPU of client and server, in microseconds.
    pub fn cpu_us_per_request(&self) -> f64 {
        self.client_cpu_us_per_request + self.server_cpu_us_per_request.unwrap_or(0.0)
    }
}

/// Whether there is more to show than one number of clients doing one thing.
pub fn is_one(points: &[Point]) -> bool {
    points.iter().any(|point| (&point.part, point.step()) != (&points[0].part, points[0].step()))
        || points.first().is_some_and(|point| point.part != "run" || point.rated.is_some())
}

/// What is swept over, above its column.
fn heading(swept: Swept) -> &'static str {
    match swept {
        Swept::Clients => "clients",
        Swept::Rate => "a second",
        Swept::ValueBytes => "bytes",
        Swept::Batch => "batch",
    }
}

/// What one request of a part is called.
pub(super) fn called(part: &str) -> &str {
    if part == "run" { "request" } else { part }
}

/// What a table of points tells of each, and what it says above.
pub(super) struct Measure {
    pub(super) words: fn(part: &str) -> String,
    pub(super) cell: fn(&Point) -> String,
}

const MEASURES: &[Measure] = &[Measure {
    words: |part| format!("{part}s a second"),
    cell: |point| format!("{}{}", units::count(point.requests_per_s), if point.client_limited { "*" } else { "" }),
}];

/// Below those.
const COMMON: &[Measure] = &[Measure { words: |part| format!("CPU us a {part}, client + server"), cell: cpu }];

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
    let is_rated = points.iter().any(|point| point.rated.is_some());
    let (usual, more) = if is_rated { (rated::MEASURES, rated::WIDE) } else { (MEASURES, WIDE) };
    let measures: Vec<&Measure> = usual.iter().chain(COMMON).chain(if wide { more } else { &[] }).collect();
    let mut text = String::new();
    for part in ["set", "get", "run"] {
        let points: Vec<&Point> = points.iter().filter(|point| point.part == part).collect();
        for measure in measures.iter().filter(|_| !points.is_empty()) {
            text.push_str(&format!(" {}\n", (measure.words)(called(part))));
            text.push_str(&table(&points, measure, if wide { usize::MAX } else { WIDTH }));
        }
    }
    text.push_str(&remarks(points));
    let silent = rows.iter().filter(|row| !matches!(row.status, Status::Right | Status::Control));
    let silent: Vec<Line> = silent.map(|row| Line::Reason(row.target.clone(), row.status.in_words())).collect();
    if !silent.is_empty() {
        text.push_str(&layout(&silent, WIDTH));
    }
    text
}

/// How near the generator's own limit was.
fn remarks(points: &[Point]) -> String {
    let mut text = rated::remarks(points);
    text.push_str(&growth::remarks(points));
    if points.iter().any(|point| point.client_limited) {
        text.push_str(&format!(
            " * limited by the client: more than {:.0} % of what the control beside it reaches in the same way, threads\n   \
             busy for more than {:.0} % of the time, or requests sent too late; not ranked\n",
            LIMITED_SHARE * 100.0,
            BUSY_SHARE * 100.0
        ));
    }
    let others = points.iter().filter(|point| !point.client_limited).filter_map(|point| point.ceiling_share);
    if let Some(most) = others.max_by(f64::total_cmp).filter(|share| *share > NOTED_SHARE) {
        text.push_str(&format!(" without a star, at most {:.0} % of that\n", most * 100.0));
    }
    text
}

/// As many targets side by side as there is room for, and the others below them.
fn table(points: &[&Point], measure: &Measure, width: usize) -> String {
    let mut targets: Vec<(bool, &str)> = points.iter().map(|point| (point.control, point.target.as_str())).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut steps: Vec<u64> = points.iter().map(|point| point.step()).collect();
    steps.sort_unstable();
    steps.dedup();
    let cell = |target: &str, step: u64| {
        let point = points.iter().find(|point| point.target == target && point.step() == step);
        point.map_or_else(|| "-".to_string(), |point| (measure.cell)(point))
    };
    let mut text = String::new();
    let mut rest = targets.as_slice();
    while !rest.is_empty() {
        let mut used = FIRST_COLUMN;
        let fits = rest.iter().take_while(|(_, target)| {
            let cells = steps.iter().map(|&step| cell(target, step).chars().count());
            used += 2 + cells.max().unwrap_or(0).max(target.chars().count());
            used <= width
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        let headings =
            std::iter::once(heading(points[0].swept)).chain(now.iter().map(|(_, target)| *target)).map(str::to_string);
        let mut lines = vec![Line::Cells(headings.collect())];
        for &step in &steps {
            let cells = now.iter().map(|(_, target)| cell(target, step));
            lines.push(Line::Cells(std::iter::once(units::thousands(step)).chain(cells).collect()));
        }
        text.push_str(&layout(&lines, width));
        rest = later;
    }
    text
}

/// A blank, and the column of the numbers of clients or of the rates.
const FIRST_COLUMN: usize = 11;

/// "2.3 + 1.9": client and server; one number where the store is in the client.
fn cpu(point: &Point) -> String {
    let client = units::digits(point.client_cpu_us_per_request);
    point.server_cpu_us_per_request.map_or(client.clone(), |server| format!("{client} + {}", units::digits(server)))
}

/// The most that each target answered in the first part, in one sentence.
pub fn sentence(points: &[Point]) -> String {
    let Some(first) = points.iter().find(|point| !point.control) else { return String::new() };
    if first.rated.is_some() {
        return rated::sentence(points);
    }
    // Of sizes the largest is what a store is told apart by.
    let largest = if first.swept == Swept::ValueBytes { points.iter().map(Point::step).max() } else { None };
    let mut best: Vec<&Point> = Vec::new();
    let ranked = points.iter().filter(|point| !point.control && !point.client_limited && point.part == first.part);
    for point in ranked.filter(|point| largest.is_none_or(|largest| point.step() == largest)) {
        match best.iter_mut().find(|found| found.target == point.target) {
            Some(found) if found.requests_per_s >= point.requests_per_s => {}
            Some(found) => *found = point,
            None => best.push(point),
        }
    }
    if best.is_empty() {
        return "Every point is limited by the client: nothing is ranked.".to_string();
    }
    best.sort_by(|one, other| other.requests_per_s.total_cmp(&one.requests_per_s));
    let each = best.iter().map(|point| {
        let step = units::thousands(point.step());
        let with = match point.swept {
            Swept::Clients if point.clients == 1 => "with 1 client".to_string(),
            Swept::Clients | Swept::Rate => format!("with {step} clients"),
            Swept::ValueBytes => format!("of {step} bytes"),
            Swept::Batch => format!("with {step} keys at once"),
        };
        format!("{} {} {with}", point.target, units::count(point.requests_per_s))
    });
    let each: Vec<String> = each.collect();
    format!(
        "Most {}s a second: {}. Seen here, not claimed: intervals come with more blocks.",
        called(&first.part),
        each.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(target: &str, clients: u32, requests_per_s: f64) -> Point {
        Point {
            part: "set".to_string(),
            clients,
            value_bytes: 32,
            batch: 1,
            swept: Swept::Clients,
            rated: None,
            target: target.to_string(),
            control: target.starts_with("ceiling"),
            trials: 1,
            requests_per_s,
            requests_per_s_lowest: requests_per_s,
            requests_per_s_highest: requests_per_s,
            client_cpu_us_per_request: 1.0,
            server_cpu_us_per_request: Some(1.0),
            ceiling_share: None,
            client_limited: false,
            service_ns_p50: 1,
            service_ns_p99: None,
            service_ns_max: 1,
        }
    }

    #[test]
    fn a_point_near_the_ceiling_of_its_way_is_not_ranked() {
        let ways = BTreeMap::from([
            ("ceiling", ("a", Transport::Tcp)),
            ("fast", ("a", Transport::Tcp)),
            ("slow", ("a", Transport::Tcp)),
            ("by another way", ("b", Transport::Tcp)),
        ]);
        let mut points = vec![
            point("ceiling", 1, 100_000.0),
            point("fast", 1, 90_000.0),
            point("slow", 1, 60_000.0),
            point("fast", 5, 90_000.0),
            point("by another way", 1, 99_000.0),
            point("in the client", 1, 900_000.0),
        ];
        limit(&mut points, &ways);
        let told: Vec<_> = points.iter().map(|point| (point.ceiling_share, point.client_limited)).collect();
        let none = (None, false);
        assert_eq!(told, [none, (Some(0.9), true), (Some(0.6), false), none, none, none]);
        let said = remarks(&points);
        assert!(said.contains("limited by the client") && said.contains("at most 60 % of that"), "{said}");
        let said = sentence(&points);
        assert!(said.contains("fast 90 k with 5 clients") && said.contains("in the client"), "{said}");
        assert_eq!(sentence(&points[..2]), "Every point is limited by the client: nothing is ranked.");
        assert_eq!(remarks(&points[..1]), "");
    }
}
