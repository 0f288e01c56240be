//! Requests that come at a rate: what users would have waited, and whether the rate was kept.

use serde::Serialize;

use super::sweep::{Measure, Point, called};
use super::table::{WIDTH, wrap};
use crate::stats::arrivals::{CRITICAL, a_squared};
use crate::words::hist::Times;
use crate::words::load::Arrivals;
use crate::words::record::{Open, Phase};
use crate::words::units;

/// One target at one rate: times of all blocks' requests together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rated {
    pub rate: u64,
    /// All requests were answered in the time that they came in, in every block.
    pub kept: bool,
    /// The most requests that were due and not answered when a block's rate was given up.
    pub late: Option<u64>,
    /// From when a request was due to its answer.
    pub response_ns_p50: u64,
    pub response_ns_p99: Option<u64>,
    pub response_ns_p999: Option<u64>,
    pub response_ns_max: u64,
    /// From when it was due to its sending.
    pub lag_ns_p50: u64,
    pub lag_ns_p99: Option<u64>,
    /// Of the sendings against independent ones, the worst block's; none for constant arrivals.
    pub arrivals_a_squared: Option<f64>,
}

/// A lag of the generator's own above so much is part of what is measured, and so is one above that share of the
/// response (method.md R2.12).
const LAG_NS: u64 = 100_000;
const LAG_SHARE: f64 = 0.1;
/// The phases of one target at one rate; nothing where there is none.
pub fn rated(phases: &[&Phase]) -> Option<Rated> {
    let open: Vec<(&Phase, &Open)> = phases.iter().filter_map(|phase| Some((*phase, phase.open.as_ref()?))).collect();
    let (_, first) = open.first()?;
    let (mut response, mut lag) = (Times::default(), Times::default());
    for (_, open) in &open {
        response.merge(&open.response_ns);
        lag.merge(&open.lag_ns);
    }
    Some(Rated {
        rate: first.rate,
        kept: open.iter().all(|(phase, open)| open.is_kept(phase.took_s)),
        late: open.iter().filter_map(|(_, open)| open.late).max(),
        response_ns_p50: response.median_ns(),
        response_ns_p99: response.quantile_ns(0.99),
        response_ns_p999: response.quantile_ns(0.999),
        response_ns_max: response.max_ns(),
        lag_ns_p50: lag.median_ns(),
        lag_ns_p99: lag.quantile_ns(0.99),
        arrivals_a_squared: open.iter().filter_map(|(_, open)| spread(open)).max_by(f64::total_cmp),
    })
}

fn spread(open: &Open) -> Option<f64> {
    let gaps: Vec<f64> = open.sends_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    if open.arrivals == Arrivals::Poisson { a_squared(&gaps) } else { None }
}

impl Rated {
    /// The generator's own lateness is a part of what was measured. Where each client has a thread of its own the lag
    /// is the wait for a free one, which is the store's.
    pub fn is_lag_limited(&self, phases: &[&Phase]) -> bool {
        let pipelined = phases.iter().all(|phase| phase.open.as_ref().is_some_and(|open| open.pipelined));
        let limit_ns = self.response_ns_p99.map(|response_ns| LAG_NS.max((response_ns as f64 * LAG_SHARE) as u64));
        pipelined && self.kept && self.lag_ns_p99.zip(limit_ns).is_some_and(|(lag_ns, limit_ns)| lag_ns > limit_ns)
    }

    /// Twice the 1 % point: half of what is above it would be there by chance once in many thousand runs (Lancet, ATC
    /// 2019).
    fn came_otherwise(&self) -> bool {
        self.arrivals_a_squared.is_some_and(|found| found > 2.0 * CRITICAL)
    }
}

fn of(point: &Point, cell: impl Fn(&Rated) -> String) -> String {
    let star = if point.client_limited { "*" } else { "" };
    match &point.rated {
        Some(rated) if rated.kept => format!("{}{star}", cell(rated)),
        Some(_) => "overload".to_string(),
        None => "-".to_string(),
    }
}

fn tail(time_ns: Option<u64>) -> String {
    time_ns.map_or_else(|| "-".to_string(), units::nanoseconds)
}

pub(super) const MEASURES: &[Measure] = &[
    Measure {
        words: |part| format!("response of a {part}, from when it was due to its answer: median"),
        cell: |point| of(point, |rated| units::nanoseconds(rated.response_ns_p50)),
    },
    Measure {
        words: |part| format!("response of a {part}: p99"),
        cell: |point| of(point, |rated| tail(rated.response_ns_p99)),
    },
];

pub(super) const WIDE: &[Measure] = &[
    Measure {
        words: |part| format!("response of a {part}: p99.9"),
        cell: |point| of(point, |rated| tail(rated.response_ns_p999)),
    },
    Measure {
        words: |part| format!("response of a {part}: longest"),
        cell: |point| of(point, |rated| units::nanoseconds(rated.response_ns_max)),
    },
    Measure {
        words: |part| format!("lag of a {part}, from when it was due to its sending: p99"),
        cell: |point| of(point, |rated| tail(rated.lag_ns_p99)),
    },
];

/// What became of rates that were not kept, and of arrivals that came otherwise than they were to come.
pub fn remarks(points: &[Point]) -> String {
    let mut text = String::new();
    for point in points {
        let Some(rated) = &point.rated else { continue };
        let rate = units::thousands(rated.rate);
        let (target, part) = (&point.target, called(&point.part));
        match rated.late {
            Some(late) => text.push_str(&format!(
                " {target} could not keep {rate} {part}s/s: {} late, ended\n",
                units::thousands(late)
            )),
            None if !rated.kept => text.push_str(&format!(
                " {target} could not keep {rate} {part}s/s: it came to {}/s\n",
                units::count(point.requests_per_s)
            )),
            None => {}
        }
    }
    let bunches = points.iter().filter(|point| point.rated.as_ref().is_some_and(Rated::came_otherwise));
    let mut named: Vec<&str> = bunches.map(|point| point.target.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    if !named.is_empty() {
        let what = format!("sent in bunches, not as independent requests come: {}", named.join(", "));
        wrap(&what, WIDTH - 1).iter().for_each(|line| text.push_str(&format!(" {line}\n")));
    }
    text
}

/// The highest rate that more than one target kept, and how long their users would have waited.
pub fn sentence(points: &[Point]) -> String {
    let stores = || points.iter().filter(|point| !point.control && point.part == points[0].part);
    let kept = || stores().filter_map(|point| Some((point, point.rated.as_ref().filter(|rated| rated.kept)?)));
    let keep = |rate: u64| kept().filter(move |(_, rated)| rated.rate == rate);
    let rates = kept().map(|(_, rated)| rated.rate);
    let Some(rate) = rates.max_by_key(|&rate| (keep(rate).count().min(2), rate)) else {
        return "No rate was kept.".to_string();
    };
    let mut best: Vec<(&Point, u64)> = keep(rate)
        .filter(|(point, _)| !point.client_limited)
        .map(|(point, rated)| (point, rated.response_ns_p99.unwrap_or(rated.response_ns_max)))
        .collect();
    if best.is_empty() {
        return format!("At {}/s every point is limited by the client: nothing is ranked.", units::thousands(rate));
    }
    best.sort_by_key(|(_, time_ns)| *time_ns);
    let each: Vec<String> =
        best.iter().map(|(point, time_ns)| format!("{} {}", point.target, units::nanoseconds(*time_ns))).collect();
    format!(
        "At {}/s, 99 % were answered within: {}. Seen here, not claimed: intervals come with more blocks.",
        units::thousands(rate),
        each.join(", ")
    )
}
