//! A sweep over numbers of clients, rates or sizes: what each target came to at each point.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::Result;

use super::beside::{self, Beside};
use super::rated::{self, Rated};
use super::standing::Counted;
use super::{ceilings, cells, doubled, growth, times, unclear};
use crate::stats::sample::Sample;
use crate::words::disturbed::Disturbed;
use crate::words::load::{At, Load, Swept};
use crate::words::record::{CutOff, Outcome, Phase, Record};
use crate::words::units;

/// Which of several blocks' requests a second stand for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    #[default]
    Median,
    /// As in the posts, whose authors took the best of three.
    Best,
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "median" => Ok(Statistic::Median),
            "best" => Ok(Statistic::Best),
            _ => Err(format!("'{text}' is neither median nor best")),
        }
    }
}

/// One target at one number of clients in one part: medians over blocks, but for what `statistic` says.
#[derive(Clone, Debug, PartialEq)]
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
    /// Where a block was stopped at its time-out: how far the slowest one came. Then no number of it is shown.
    pub cut_off: Option<CutOff>,
    /// Where the machine disturbed most of its trials: then no number of it is shown either.
    pub unclear: Option<Disturbed>,
    pub target: String,
    pub control: bool,
    pub trials: usize,
    /// What `requests_per_s` is of the blocks.
    pub statistic: Statistic,
    pub requests_per_s: f64,
    pub requests_per_s_lowest: f64,
    pub requests_per_s_highest: f64,
    /// In which the median lies 95 times in 100; none below six blocks.
    pub requests_per_s_interval: Option<(f64, f64)>,
    pub client_cpu_us_per_request: f64,
    pub server_cpu_us_per_request: Option<f64>,
    /// Of what the same clients reach at a server of ours that only looks up an array; none for who is not reached by
    /// the same way.
    pub ceiling_share: Option<f64>,
    /// The generator's own limit is near: real differences between stores are compressed here, and none is ranked.
    pub client_limited: bool,
    /// What it may be ranked with.
    pub group: String,
    /// None for controls and what the client limits.
    pub beside: Option<Beside>,
    /// The same by CPU a request, beside the one that used least.
    pub cpu_beside: Option<Beside>,
    /// How many times as much twice the threads reached, where that was tried.
    pub doubled_rise: Option<f64>,
    /// Only where it was asked for: histograms take longer to read than all else in a record.
    pub service: Option<Service>,
}

/// Times of all blocks' requests together: with all clients asking as fast as they are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    pub service_ns_p50: u64,
    pub service_ns_p99: Option<u64>,
    pub service_ns_max: u64,
}

/// The phases of a trial that are points of a sweep, each with what it was asked.
pub(super) fn measured(record: &Record) -> impl Iterator<Item = (&Phase, At, Swept)> {
    let (points, swept) = asked(record);
    let phases = record.measured().filter(|phase| phase.name != "settle");
    phases.map(move |phase| (phase, at(&points, phase), swept))
}

/// What a trial was to ask, and what it swept over.
pub(super) fn asked(record: &Record) -> (Vec<At>, Swept) {
    let load = record.job.load.as_ref();
    (load.map_or_else(Vec::new, |load| load.points(record.job.units, 0)), load.map_or(Swept::Clients, Load::swept))
}

/// What a phase was asked.
pub(super) fn at(points: &[At], phase: &Phase) -> At {
    let at = points.iter().find(|at| at.number == phase.point).copied();
    // Phases did not tell their point when there were only clients to sweep over.
    at.unwrap_or_else(|| At::closed(phase.clients, phase.units))
}

/// The trials that have points: finished, right, counted and timed.
fn trials<'a>(records: &'a [Record], counted: &Counted) -> impl Iterator<Item = &'a Record> {
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right() && counted.has(record);
    records.iter().filter(right).filter(|record| !record.run.answers_only)
}

/// Whether there is more to show than one number of clients doing one thing.
pub fn is_swept(records: &[Record], counted: &Counted) -> bool {
    let mut first = None;
    let mut trials = trials(records, counted).peekable();
    // Only jobs of requests have several points; what one trial of another job is, all are.
    let several = trials.peek().is_some_and(|trial| trial.job.load.is_some());
    let looked_at = trials.take(if several { usize::MAX } else { 1 });
    looked_at.flat_map(measured).any(|(phase, at, swept)| {
        let this = (phase.name.as_str(), step(at, swept));
        phase.name != "run" || phase.open.is_some() || *first.get_or_insert(this) != this
    })
}

/// Which point of which target: sets come before gets, as they were asked.
type Key<'a> = (bool, &'a str, &'a str, u64);

/// The phases of each point, of all trials that have points, and what each point was asked.
pub(super) fn grouped<'a>(
    records: &'a [Record],
    counted: &Counted,
) -> (BTreeMap<Key<'a>, unclear::Phases<'a>>, BTreeMap<Key<'a>, (At, Swept)>) {
    let (mut groups, mut steps) = (BTreeMap::<Key<'a>, unclear::Phases<'a>>::new(), BTreeMap::new());
    for record in trials(records, counted) {
        for (phase, at, swept) in measured(record) {
            let key = (phase.name != "set", phase.name.as_str(), record.target.label.as_str(), step(at, swept));
            steps.insert(key, (at, swept));
            groups.entry(key).or_default().push((record, phase));
        }
    }
    (groups, steps)
}

/// All points of the trials that finished with right answers: by part, target as first measured, and step. An error
/// names the trial whose histograms are broken: at rates all are read, else only for `detail`.
pub fn points(records: &[Record], detail: bool) -> Result<Vec<Point>> {
    let counted = Counted::of(records);
    let (groups, steps) = grouped(records, &counted);
    let mut points = Vec::new();
    for (key, phases) in &groups {
        let (phases, unclear) = unclear::sorted_out(phases);
        points.extend(point(steps[key], &phases, detail)?.map(|point| Point { unclear, ..point }));
    }
    let trials: Vec<&Record> = trials(records, &counted).collect();
    doubled::mark(&mut points, &doubled::rises(&trials));
    ceilings::mark(&mut points, &trials);
    points.iter_mut().for_each(|point| point.client_limited &= point.unclear.is_none());
    beside::compare(&mut points, records, &counted)?;
    Ok(points)
}

impl Point {
    /// Tells the most that any block came to. A claim would need the others too, so none is made. What comes at a rate
    /// has no most.
    pub fn tell_best(&mut self) {
        if self.rated.is_none() {
            (self.statistic, self.requests_per_s) = (Statistic::Best, self.requests_per_s_highest);
            (self.requests_per_s_interval, self.beside) = (None, None);
            self.cpu_beside = None;
        }
    }
}

/// Threads that are busier than this are what the rate is of (method.md R2.12).
const BUSY_SHARE: f64 = 0.9;

pub(super) fn step(at: At, swept: Swept) -> u64 {
    match swept {
        Swept::Clients => at.clients.into(),
        Swept::Rate => at.rate.unwrap_or_default(),
        Swept::ValueBytes => at.value_bytes.into(),
        Swept::Batch => at.batch.into(),
    }
}

/// "with 5 clients", "of 1,000 bytes": which of a sweep's points it is.
pub(super) fn with(swept: Swept, step: u64) -> String {
    let number = units::thousands(step);
    match swept {
        Swept::Clients if step == 1 => "with 1 client".to_string(),
        Swept::Clients => format!("with {number} clients"),
        Swept::Rate => format!("at {number}/s"),
        Swept::ValueBytes => format!("of {number} bytes"),
        Swept::Batch => format!("with {number} keys at once"),
    }
}

fn point((at, swept): (At, Swept), phases: &[(&Record, &Phase)], detail: bool) -> Result<Option<Point>> {
    let of = |number: &dyn Fn(&Phase) -> Option<f64>| {
        Sample::new(phases.iter().filter_map(|(_, phase)| number(phase)).collect())
    };
    let per_request = |cpu_s: f64, phase: &Phase| cpu_s * 1e6 / phase.units.max(1) as f64;
    let rate = of(&|phase| Some(phase.units as f64 / phase.took_s.max(1e-9)));
    let client_cpu = of(&|phase| Some(per_request(phase.client.cpu_s(), phase)));
    let (Some(rate), Some(client_cpu)) = (rate, client_cpu) else { return Ok(None) };
    // Where the store is in the client its threads are busy with the store.
    let busy = |phase: &Phase| {
        phase.server.map(|_| phase.client.cpu_s() / (phase.took_s * f64::from(phase.threads.max(1))).max(1e-9))
    };
    let rated = rated::rated(phases)?;
    let is_lag_limited = rated.as_ref().is_some_and(|rated| rated.is_lag_limited(phases));
    let (record, first) = phases[0];
    Ok(Some(Point {
        part: first.name.clone(),
        clients: first.clients,
        value_bytes: at.value_bytes,
        batch: at.batch,
        swept,
        rated,
        unclear: None,
        cut_off: phases
            .iter()
            .filter_map(|(_, phase)| phase.cut_off)
            .min_by(|one, other| one.done_share.total_cmp(&other.done_share)),
        target: record.target.label.clone(),
        control: record.target.control,
        group: cells::group(record),
        beside: None,
        cpu_beside: None,
        trials: phases.len(),
        statistic: Statistic::Median,
        requests_per_s: rate.median(),
        requests_per_s_lowest: rate.lowest(),
        requests_per_s_highest: rate.highest(),
        requests_per_s_interval: rate.median_bounds(),
        client_cpu_us_per_request: client_cpu.median(),
        server_cpu_us_per_request: of(&|phase| Some(per_request(phase.server?.cpu_s(), phase)))
            .map(|sample| sample.median()),
        ceiling_share: None,
        doubled_rise: None,
        client_limited: is_lag_limited || of(&busy).is_some_and(|sample| sample.median() > BUSY_SHARE),
        service: if detail { Some(service(phases)?) } else { None },
    }))
}

fn service(phases: &[(&Record, &Phase)]) -> Result<Service> {
    let times = times::merged(phases, |phase| Some(&phase.times_ns))?;
    Ok(Service {
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

    /// It came to its end, and the machine left it alone.
    pub fn has_number(&self) -> bool {
        self.cut_off.is_none() && self.unclear.is_none()
    }

    /// CPU of client and server, in microseconds.
    pub fn cpu_us_per_request(&self) -> f64 {
        self.client_cpu_us_per_request + self.server_cpu_us_per_request.unwrap_or(0.0)
    }
}

/// What one request of a part is called.
pub(super) fn called(part: &str) -> &str {
    if part == "run" { "request" } else { part }
}

/// "redis, set with 300 clients: > 300 s, 34 % done", for each point that was stopped.
pub(super) fn cut_off(points: &[Point]) -> Vec<String> {
    let each = points.iter().filter(|point| point.unclear.is_none()).filter_map(|point| {
        let CutOff { after_s, done_share } = point.cut_off?;
        let (target, part, with) = (&point.target, called(&point.part), with(point.swept, point.step()));
        Some(format!("{target}, {part} {with}: > {after_s} s, {:.0} % done", done_share * 100.0))
    });
    each.collect()
}

/// What is to be said of single points, and how near the generator's own limit was.
pub fn remarks(points: &[Point]) -> Vec<String> {
    let mut remarks =
        [cut_off(points), unclear::remarks(points), rated::remarks(points), growth::remarks(points)].concat();
    if points.iter().any(|point| point.client_limited) {
        remarks.push(format!(
            "* limited by the client: more than {:.0} % of what the control beside it reaches in the same way, threads \
             busy for more than {:.0} % of the time, more than {:.0} % more with twice the threads, or requests sent \
             too late; not ranked",
            ceilings::LIMITED_SHARE * 100.0,
            BUSY_SHARE * 100.0,
            (doubled::RISE - 1.0) * 100.0
        ));
    }
    if points.iter().any(|point| point.statistic == Statistic::Best) {
        remarks
            .push("requests a second are those of each target's best block: nothing is claimed from them".to_string());
    }
    let others = points.iter().filter(|point| !point.client_limited).filter_map(|point| point.ceiling_share);
    if let Some(most) = others.max_by(f64::total_cmp).filter(|share| *share > ceilings::NOTED_SHARE) {
        remarks.push(format!("without a star, at most {:.0} % of that", most * 100.0));
    }
    remarks
}

/// The most that each target answered in the first part, as in the table above it, and what may be claimed.
pub fn sentence(points: &[Point]) -> String {
    let Some(first) = points.iter().find(|point| !point.control) else { return String::new() };
    if points.iter().all(|point| point.control || point.unclear.is_some()) {
        return "The machine disturbed every point: no point has a number. --accept-noise shows them all the same."
            .to_string();
    }
    if first.rated.is_some() {
        return rated::sentence(points);
    }
    // Of sizes the largest is what shows a store's difference.
    let largest = if first.swept == Swept::ValueBytes { points.iter().map(Point::step).max() } else { None };
    let mut best: Vec<&Point> = Vec::new();
    let whole = points.iter().filter(|point| point.has_number());
    let of_part = whole.filter(|point| !point.control && point.part == first.part);
    for point in of_part.filter(|point| largest.is_none_or(|largest| point.step() == largest)) {
        match best.iter_mut().find(|found| found.target == point.target) {
            Some(found) if found.requests_per_s >= point.requests_per_s => {}
            Some(found) => *found = point,
            None => best.push(point),
        }
    }
    if points.iter().all(|point| point.control || !point.has_number()) {
        return "No point came to its end within its time-out.".to_string();
    }
    best.sort_by(|one, other| other.requests_per_s.total_cmp(&one.requests_per_s));
    let each: Vec<String> = best.iter().map(|point| most(point)).collect();
    let most = format!("Most {}s a second: {}.", called(&first.part), each.join(", "));
    let ranked = points.iter().any(|point| !point.control && !point.client_limited && point.has_number());
    let said = match ranked {
        true => beside::sentence(points),
        false => "Every point is limited by the load generator: nothing is ranked.".to_string(),
    };
    [most, said, beside::cpu_sentence(points)].into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(" ")
}

/// "redis at least 70 k with 50 clients (limited by the load generator)".
fn most(point: &Point) -> String {
    let (target, with) = (&point.target, with(point.swept, point.step()));
    let rate = units::count(point.requests_per_s);
    match point.client_limited {
        true => format!("{target} at least {rate} {with} (limited by the load generator)"),
        false => format!("{target} {rate} {with}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::report) fn point(target: &str, clients: u32, requests_per_s: f64) -> Point {
        Point {
            part: "set".to_string(),
            clients,
            value_bytes: 32,
            batch: 1,
            swept: Swept::Clients,
            rated: None,
            cut_off: None,
            unclear: None,
            target: target.to_string(),
            control: target.starts_with("ceiling"),
            trials: 1,
            statistic: Statistic::Median,
            requests_per_s,
            requests_per_s_lowest: requests_per_s,
            requests_per_s_highest: requests_per_s,
            requests_per_s_interval: None,
            client_cpu_us_per_request: 1.0,
            server_cpu_us_per_request: Some(1.0),
            ceiling_share: None,
            client_limited: false,
            group: String::new(),
            beside: None,
            cpu_beside: None,
            doubled_rise: None,
            service: None,
        }
    }

    #[test]
    fn the_best_block_is_told_and_nothing_claimed_from_it() {
        let mut best = Point {
            requests_per_s_highest: 3_000.0,
            requests_per_s_interval: Some((1_500.0, 2_500.0)),
            ..point("fast", 5, 2_000.0)
        };
        best.tell_best();
        assert_eq!((best.requests_per_s, best.requests_per_s_interval), (3_000.0, None));
        let said = super::super::grid::tables(&[best, point("slow", 5, 1_000.0)], &[], false);
        assert!(said.contains("3.0 k") && said.contains("best block"), "{said}");
        assert_eq!("best".parse(), Ok(Statistic::Best));
        assert!("mean".parse::<Statistic>().is_err());
    }

    #[test]
    fn what_was_cut_off_has_no_number_and_no_rank() {
        let cut_off = Some(CutOff { after_s: 300.0, done_share: 0.34 });
        let points =
            [Point { cut_off, ..point("slow", 5, 99_000.0) }, point("slow", 1, 1_000.0), point("fast", 5, 2_000.0)];
        let said = super::super::grid::tables(&points, &[], false);
        assert!(said.contains("> 300 s") && !said.contains("99 k"), "{said}");
        assert!(said.contains(" slow, set with 5 clients: > 300 s, 34 % done\n"), "{said}");
        let said = sentence(&points);
        assert!(said.contains("fast 2.0 k with 5 clients, slow 1.0 k with 1 client"), "{said}");
        assert_eq!(sentence(&points[..1]), "No point came to its end within its time-out.");
    }
}
