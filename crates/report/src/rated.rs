//! Requests that come at a rate: what users would have waited, and whether the rate was kept.

use anyhow::Result;

use super::beside;
use super::formats::tail;
use super::point::{Measure, Point, Rated, called};
use super::times::merged;
use kvfair_core::load::Arrivals;
use kvfair_core::record::{Open, Phase, Record};
use kvfair_core::units;
use kvfair_stats::arrivals::{CRITICAL, a_squared};

/// A lag of the generator's own above so much is part of what is measured, and so is one above that share of the
/// response.
const LAG_NS: u64 = 100_000;
const LAG_SHARE: f64 = 0.1;
/// A server that is at work for more of the time, on one processor, may itself be why a rate was not kept. It may be
/// able to use more of them, which is not ours to know.
const SERVER_BUSY: f64 = 0.9;

/// Clients give up waiting for an answer after a time-out; this is a usual one.
pub const TIMEOUT_NS: u64 = 10_000_000_000;

/// The phases of one target at one rate; nothing where there is none, and an error where a histogram is broken.
pub fn rated(phases: &[(&Record, &Phase)]) -> Result<Option<Rated>> {
    let open: Vec<(&Phase, &Open)> =
        phases.iter().filter_map(|(_, phase)| Some((*phase, phase.open.as_ref()?))).collect();
    let Some((_, first)) = open.first() else { return Ok(None) };
    let response = merged(phases, |phase| phase.open.as_ref().map(|open| &open.response_ns))?;
    let lag = merged(phases, |phase| phase.open.as_ref().map(|open| &open.lag_ns))?;
    Ok(Some(Rated {
        rate: first.rate,
        kept: open.iter().all(|(phase, open)| open.is_kept(phase.took_s)),
        late: open.iter().filter_map(|(_, open)| open.late).max(),
        response_ns_p50: response.median_ns(),
        response_ns_p99: response.quantile_ns(0.99),
        response_ns_p999: response.quantile_ns(0.999),
        response_ns_max: response.max_ns(),
        requests: response.count(),
        timed_out: response.from(TIMEOUT_NS),
        lag_ns_p50: lag.median_ns(),
        lag_ns_p99: lag.quantile_ns(0.99),
        arrivals_a_squared: open.iter().filter_map(|(_, open)| spread(open)).max_by(f64::total_cmp),
    }))
}

fn spread(open: &Open) -> Option<f64> {
    let gaps: Vec<f64> = open.sends_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    if open.arrivals == Arrivals::Poisson { a_squared(&gaps) } else { None }
}

impl Rated {
    /// The generator's own lateness is a part of what was measured, or why a rate was not kept while the server had
    /// time to spare. Where each client has a thread of its own the lag is the wait for a free one, which is the
    /// store's.
    pub fn is_lag_limited(&self, phases: &[(&Record, &Phase)]) -> bool {
        let phases = || phases.iter().map(|(_, phase)| *phase);
        let pipelined = phases().all(|phase| phase.open.as_ref().is_some_and(|open| open.pipelined));
        let mut unkept = phases().filter(|phase| phase.open.as_ref().is_some_and(|open| !open.is_kept(phase.took_s)));
        let has_time = |phase: &Phase| phase.server.is_some_and(|server| server.cpu_s() < SERVER_BUSY * phase.took_s);
        let limit_ns = self.response_ns_p99.map(|response_ns| LAG_NS.max((response_ns as f64 * LAG_SHARE) as u64));
        pipelined
            && unkept.all(has_time)
            && self.lag_ns_p99.zip(limit_ns).is_some_and(|(lag_ns, limit_ns)| lag_ns > limit_ns)
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
        Some(_) => format!("overload{star}"),
        None => "-".to_string(),
    }
}

pub(super) const MEASURES: &[Measure] = &[
    Measure {
        words: |part, _| format!("response of a {part}, from when it was due to its answer: median"),
        cell: |point| of(point, |rated| units::nanoseconds(rated.response_ns_p50)),
    },
    Measure {
        words: |part, _| format!("response of a {part}: p99"),
        cell: |point| of(point, |rated| tail(rated.response_ns_p99)),
    },
];

pub(super) const WIDE: &[Measure] = &[
    Measure {
        words: |part, _| format!("response of a {part}: p99.9"),
        cell: |point| of(point, |rated| tail(rated.response_ns_p999)),
    },
    Measure {
        words: |part, _| format!("response of a {part}: longest"),
        cell: |point| of(point, |rated| units::nanoseconds(rated.response_ns_max)),
    },
    Measure {
        words: |part, _| format!("{part}s that were answered after 10 s or later"),
        cell: |point| of(point, |rated| units::thousands(rated.timed_out)),
    },
    Measure {
        words: |part, _| format!("lag of a {part}, from when it was due to its sending: p99"),
        cell: |point| of(point, |rated| tail(rated.lag_ns_p99)),
    },
];

/// What became of rates that were not kept, and of arrivals that came otherwise than they were to come.
pub fn remarks(points: &[Point]) -> Vec<String> {
    let mut remarks = Vec::new();
    for point in points.iter().filter(|point| point.has_number()) {
        let Some(rated) = &point.rated else { continue };
        let rate = units::thousands(rated.rate);
        let (target, part) = (&point.target, called(point.part));
        match rated.late {
            Some(late) => remarks
                .push(format!("{target} could not keep {rate} {part}s/s: {} late, ended", units::thousands(late))),
            None if !rated.kept => remarks.push(format!(
                "{target} could not keep {rate} {part}s/s: it came to {}/s",
                units::count(point.requests_per_s)
            )),
            None => {}
        }
    }
    let clear = points.iter().filter(|point| point.unclear.is_none());
    let bunches = clear.filter(|point| point.rated.as_ref().is_some_and(Rated::came_otherwise));
    let mut named: Vec<&str> = bunches.map(|point| point.target.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    if !named.is_empty() {
        remarks.push(format!("requests were sent in bursts, not at independent times: {}", named.join(", ")));
    }
    remarks
}

/// The highest rate that more than one target kept, how long users would have waited there, and every other store.
pub fn sentences(points: &[Point]) -> Vec<String> {
    let Some((rate, best)) = kept_at(points) else { return vec!["No rate was kept.".to_string()] };
    let each = best.iter().map(|(point, time_ns)| match point.client_limited {
        // Its own response is no longer than what the generator's lag made of it.
        true => format!("{} at most {} (limited by the load generator)", point.target, units::nanoseconds(*time_ns)),
        false => format!("{} {}", point.target, units::nanoseconds(*time_ns)),
    });
    let each = each.collect::<Vec<_>>().join(", ");
    let is_unkept = |point: &&Point| point.rated.as_ref().is_some_and(|rated| rated.rate == rate && !rated.kept);
    let unkept: Vec<&str> = of_stores(points).filter(is_unkept).map(|point| point.target.as_str()).collect();
    let unkept = if unkept.is_empty() { String::new() } else { format!("; not kept by {}", unkept.join(", ")) };
    let told = format!("At {}/s, 99 % were answered within: {each}{unkept}.", units::thousands(rate));
    let said = match best.iter().all(|(point, _)| point.client_limited) {
        true => "Every point is limited by the load generator: nothing is ranked.".to_string(),
        false => beside::sentence(points),
    };
    [told, said, beside::cpu_sentence(points)].into_iter().filter(|said| !said.is_empty()).collect()
}

/// The first of them in a line: the two targets that answer soonest.
pub fn answer(points: &[Point]) -> Option<String> {
    let (rate, best) = kept_at(points)?;
    let next = best
        .get(1)
        .map_or_else(String::new, |(next, time_ns)| format!(", {} {}", next.target, units::nanoseconds(*time_ns)));
    let (point, time_ns) = best.first()?;
    let (rate, time) = (units::thousands(rate), units::nanoseconds(*time_ns));
    Some(format!("At {rate} requests/s, p99: {} {time}{next}.", point.target))
}

/// The stores of the first part that have numbers.
fn of_stores(points: &[Point]) -> impl Iterator<Item = &Point> + Clone {
    let has_number = points.iter().filter(|point| !point.baseline && point.has_number());
    has_number.filter(|point| point.part == points[0].part)
}

/// The highest rate that more than one target kept, or the highest that was kept, and the p99 of each there in
/// nanoseconds, the shortest first.
fn kept_at(points: &[Point]) -> Option<(u64, Vec<(&Point, u64)>)> {
    let rated = of_stores(points).filter_map(|point| Some((point, point.rated.as_ref()?)));
    let kept = rated.filter(|(_, rated)| rated.kept);
    let keep = |rate: u64| kept.clone().filter(move |(_, rated)| rated.rate == rate);
    let rates = kept.clone().map(|(_, rated)| rated.rate);
    let rate = rates.max_by_key(|&rate| (keep(rate).count().min(2), rate))?;
    let time_ns = |rated: &Rated| rated.response_ns_p99.unwrap_or(rated.response_ns_max);
    let mut best: Vec<(&Point, u64)> = keep(rate).map(|(point, rated)| (point, time_ns(rated))).collect();
    best.sort_by_key(|(_, time_ns)| *time_ns);
    Some((rate, best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histograms::tests::record;
    use kvfair_core::hist::Times;
    use kvfair_core::metrics::Metrics;
    use kvfair_core::record::Usage;

    /// Ten seconds at 1,000 a second: how long it took, all requests' lag, and what the server used, in seconds.
    fn phase(took_s: f64, lag_ns: u64, server_s: Option<f64>, pipelined: bool) -> Phase {
        let (mut response_ns, mut lag) = (Times::default(), Times::default());
        response_ns.record_many(10_000_000, 10_000);
        lag.record_many(lag_ns, 10_000);
        let (response_ns, lag_ns) = (response_ns.into(), lag.into());
        let open = Open { rate: 1_000, pipelined, response_ns, lag_ns, due_s: 10.0, ..Open::default() };
        let server = server_s.map(|user_s| Usage { user_s, ..Usage::default() });
        let metrics = Metrics { units: 10_000, ..Metrics::default() };
        Phase { took_s, metrics, open: Some(open), server, ..Phase::default() }
    }

    #[test]
    fn who_waits_for_10_s_or_longer_is_counted_with_his_own_time() {
        let mut slow = phase(10.0, 50_000, None, true);
        let open = slow.open.as_mut().unwrap();
        let mut response_ns = open.response_ns.times().unwrap();
        [9_900_000_000, 10_000_000_000, 25_000_000_000].iter().for_each(|time_ns| response_ns.record(*time_ns));
        open.response_ns = response_ns.into();
        let record = record("any", "finished", &[]);
        let rated = rated(&[(&record, &slow), (&record, &phase(10.0, 50_000, None, true))]).unwrap().unwrap();
        assert_eq!((rated.timed_out, rated.requests), (2, 20_003));
        assert!(rated.response_ns_max > 24_900_000_000);
    }

    fn is_limited(phases: &[Phase]) -> bool {
        let record = record("any", "finished", &[]);
        let phases: Vec<(&Record, &Phase)> = phases.iter().map(|phase| (&record, phase)).collect();
        rated(&phases).unwrap().unwrap().is_lag_limited(&phases)
    }

    #[test]
    fn a_generator_that_is_late_while_the_server_has_time_is_the_limit() {
        const LATE: u64 = 3_000_000;
        assert!(is_limited(&[phase(10.0, LATE, Some(9.9), true)]), "kept, but late");
        assert!(!is_limited(&[phase(10.0, 50_000, Some(1.0), true)]), "in time");
        // It took too long: whose fault is it?
        assert!(is_limited(&[phase(12.0, LATE, Some(6.0), true)]), "the server was idle for half of the time");
        assert!(!is_limited(&[phase(12.0, LATE, Some(11.5), true)]), "the server was busy");
        assert!(!is_limited(&[phase(12.0, LATE, Some(23.0), true)]), "on two processors");
        assert!(!is_limited(&[phase(12.0, 50_000, Some(1.0), true)]), "asked in time, it waited for something else");
        assert!(!is_limited(&[phase(12.0, LATE, Some(1.0), false)]), "with a thread a client the lag is no client's");
        assert!(!is_limited(&[phase(12.0, LATE, None, true)]), "nothing is known of the server");
        assert!(!is_limited(&[phase(12.0, LATE, Some(6.0), true), phase(12.0, LATE, Some(11.5), true)]), "in a block");
    }
}
