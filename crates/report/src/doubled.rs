//! What a sweep reached with twice the threads asking, where that was tried: if it is more, the generator was the
//! limit.

use std::collections::BTreeMap;

use super::point::{Point, asked, at, step};
use kvfair_core::part::Part;
use kvfair_core::record::{Phase, Record};
use kvfair_stats::sample::Sample;

/// A target's part of one point.
pub(super) type PointKey<'a> = (Part, &'a str, u64);

/// How many times as many requests a second twice the threads did: medians over blocks.
pub(super) fn rises<'a>(records: &[&'a Record]) -> BTreeMap<PointKey<'a>, f64> {
    let mut all: BTreeMap<PointKey<'a>, Vec<f64>> = BTreeMap::new();
    for record in records {
        let (points, swept) = asked(record);
        for phase in record.phases.iter().filter(|phase| phase.doubled) {
            let is_plain = |other: &&Phase| (other.part, other.point) == (phase.part, phase.point) && !other.doubled;
            let Some(plain) = record.phases.iter().find(is_plain) else { continue };
            let step = step(at(&points, phase), swept);
            let place = (phase.part, record.target.label.as_str(), step);
            all.entry(place).or_default().push(phase.units_per_s() / plain.units_per_s().max(1e-9));
        }
    }
    all.into_iter().filter_map(|(place, rises)| Some((place, Sample::new(rises)?.median()))).collect()
}

/// Twice the threads that reach more than so many times as much show that the threads were the limit.
pub(super) const RISE: f64 = 1.05;

/// Notes at each point what was reached there with twice the threads.
pub(super) fn mark(points: &mut [Point], rises: &BTreeMap<PointKey<'_>, f64>) {
    for point in points {
        let step = point.step();
        point.doubled_rise = rises.get(&(point.part, point.target.as_str(), step)).copied();
        point.client_limited |= point.doubled_rise.is_some_and(|rise| rise > RISE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::grids;
    use super::super::remarks::remarks;
    use super::super::sweep::tests::point;
    use super::*;

    #[test]
    fn a_point_where_twice_the_threads_reach_more_is_not_ranked() {
        let mut points = vec![point("fast", 5, 2_000.0), point("slow", 5, 1_000.0), point("fast", 1, 500.0)];
        let rises = BTreeMap::from([
            ((Part::Set, "fast", 5), 1.12),
            ((Part::Set, "slow", 5), 1.04),
            ((Part::Get, "fast", 1), 2.0),
        ]);
        mark(&mut points, &rises);
        let told: Vec<_> = points.iter().map(|point| (point.doubled_rise, point.client_limited)).collect();
        assert_eq!(told, [(Some(1.12), true), (Some(1.04), false), (None, false)]);
        let said = format!("{:?} {:?}", grids(&points, false, 100), remarks(&points));
        assert!(said.contains("2.0 k*") && said.contains("more than 5 % more with twice the threads"), "{said}");
    }
}
