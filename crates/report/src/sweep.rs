//! A sweep over numbers of clients, rates or sizes: what each target came to at each point.

use anyhow::Result;

use super::point::{Point, Service, Statistic, called, grouped, trials};
use super::remarks::BUSY_SHARE;
use super::staleness::Stale;
use super::standing::Counted;
use super::swept::with;
use super::{beside, ceilings, costs, doubled, rated, times, unclear};
use kvfair_core::load::{At, Swept};
use kvfair_core::record::{Phase, Record};
use kvfair_core::units;
use kvfair_stats::sample::Sample;

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

fn point((at, swept): (At, Swept), phases: &[(&Record, &Phase)], detail: bool) -> Result<Option<Point>> {
    let of = |number: &dyn Fn(&Phase) -> Option<f64>| {
        Sample::new(phases.iter().filter_map(|(_, phase)| number(phase)).collect())
    };
    let rate = of(&|phase| Some(phase.units_per_s()));
    let client_cpu = of(&|phase| Some(phase.cpu_us_per_unit(phase.client.cpu_s())));
    let (Some(rate), Some(client_cpu)) = (rate, client_cpu) else { return Ok(None) };
    // Where the store is in the client its threads are busy with the store.
    let busy = |phase: &Phase| {
        phase.server.map(|_| phase.client.cpu_s() / (phase.took_s * f64::from(phase.threads.max(1))).max(1e-9))
    };
    let rated = rated::rated(phases)?;
    let is_lag_limited = rated.as_ref().is_some_and(|rated| rated.is_lag_limited(phases));
    let (record, first) = phases[0];
    Ok(Some(Point {
        part: first.part,
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
        baseline: record.target.baseline,
        group: costs::group(record),
        beside: None,
        cpu_beside: None,
        trials: phases.len(),
        statistic: Statistic::Median,
        requests_per_s: rate.median(),
        requests_per_s_lowest: rate.lowest(),
        requests_per_s_highest: rate.highest(),
        requests_per_s_interval: rate.median_bounds(),
        client_cpu_us_per_request: client_cpu.median(),
        server_cpu_us_per_request: of(&|phase| Some(phase.cpu_us_per_unit(phase.servers()?.cpu_s())))
            .map(|sample| sample.median()),
        ceiling_share: None,
        doubled_rise: None,
        client_limited: is_lag_limited || of(&busy).is_some_and(|sample| sample.median() > BUSY_SHARE),
        service: if detail { Some(service(phases)?) } else { None },
        stale: Stale::of(phases)?,
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

/// The most that each target answered in the first part, as in the table above it, and what may be claimed.
pub fn sentences(points: &[Point]) -> Vec<String> {
    let Some(first) = points.iter().find(|point| !point.baseline) else { return Vec::new() };
    if points.iter().all(|point| point.baseline || point.unclear.is_some()) {
        let why = "The machine disturbed every point, so no point has a number. --accept-noise shows them anyway.";
        return vec![why.to_string()];
    }
    if first.rated.is_some() {
        return rated::sentences(points);
    }
    if points.iter().all(|point| point.baseline || !point.has_number()) {
        return vec!["No point came to its end within its time-out.".to_string()];
    }
    let best = best_of_each(first, points);
    let each: Vec<String> = best.iter().map(|point| most(point)).collect();
    let per_second = format!("{}s per second: {}.", called(first.part), each.join(", "));
    let most = match best.iter().map(|point| point.trials).max() {
        Some(1) => format!("Measured once, {per_second}"),
        _ => format!("Most {per_second}"),
    };
    let ranked = points.iter().any(|point| !point.baseline && !point.client_limited && point.has_number());
    let said = match ranked {
        true => beside::sentence(points),
        false => "Every point is limited by the load generator: nothing is ranked.".to_string(),
    };
    [most, said, beside::cpu_sentence(points)].into_iter().filter(|said| !said.is_empty()).collect()
}

/// The first of them in a line: the two targets that answered most.
pub fn answer(points: &[Point]) -> Option<String> {
    let first = points.iter().find(|point| !point.baseline)?;
    if first.rated.is_some() {
        return rated::answer(points);
    }
    let best = best_of_each(first, points);
    let rate = |point: &Point| units::count(point.requests_per_s);
    let next = best.get(1).map_or_else(String::new, |next| format!(", {} {}/s", next.target, rate(next)));
    let best = best.first()?;
    Some(format!("Highest {} rates measured: {} {}/s{next}.", called(best.part), best.target, rate(best)))
}

/// The point of each target that answered most in the part of the first one, the highest first.
fn best_of_each<'a>(first: &Point, points: &'a [Point]) -> Vec<&'a Point> {
    // Of sizes the largest is what shows a store's difference.
    let whole = || points.iter().filter(|point| point.has_number() && !point.baseline && point.part == first.part);
    let largest = if first.swept == Swept::ValueBytes { whole().map(Point::step).max() } else { None };
    let mut best: Vec<&Point> = Vec::new();
    for point in whole().filter(|point| largest.is_none_or(|largest| point.step() == largest)) {
        match best.iter_mut().find(|found| found.target == point.target) {
            Some(found) if found.requests_per_s >= point.requests_per_s => {}
            Some(found) => *found = point,
            None => best.push(point),
        }
    }
    best.sort_by(|one, other| other.requests_per_s.total_cmp(&one.requests_per_s));
    best
}

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
    use kvfair_core::part::Part;
    use kvfair_core::record::CutOff;

    pub(crate) fn point(target: &str, clients: u32, requests_per_s: f64) -> Point {
        Point {
            part: Part::Set,
            clients,
            value_bytes: 32,
            batch: 1,
            swept: Swept::Clients,
            rated: None,
            cut_off: None,
            unclear: None,
            target: target.to_string(),
            baseline: target.starts_with("ceiling"),
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
            stale: None,
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
        assert_eq!("best".parse(), Ok(Statistic::Best));
        assert!("mean".parse::<Statistic>().is_err());
    }

    #[test]
    fn a_single_block_proves_no_superlative() {
        let points = [point("fast", 5, 2_000.0), point("slow", 5, 1_000.0)];
        let said = sentences(&points).join(" ");
        let told = "sets per second: fast 2.0 k with 5 clients, slow 1.0 k with 5 clients.";
        assert_eq!(said, format!("Measured once, {told}"));
        let points = points.map(|point| Point { trials: 6, ..point });
        assert_eq!(sentences(&points).join(" "), format!("Most {told}"));
    }

    #[test]
    fn what_was_cut_off_has_no_number_and_no_rank() {
        let cut_off = Some(CutOff { after_s: 300.0, done_share: 0.34 });
        let points =
            [Point { cut_off, ..point("slow", 5, 99_000.0) }, point("slow", 1, 1_000.0), point("fast", 5, 2_000.0)];
        let said = sentences(&points).join(" ");
        assert!(said.contains("fast 2.0 k with 5 clients, slow 1.0 k with 1 client"), "{said}");
        assert_eq!(sentences(&points[..1]), ["No point came to its end within its time-out."]);
    }
}
