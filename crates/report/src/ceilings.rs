//! Points beside the baseline that shows how far the same way to a server goes where no store is in it.

use std::collections::BTreeMap;

use super::point::Point;
use kvfair_core::record::Record;
use kvfair_core::trial::Transport;

/// A store's rate is told as a share of its ceiling above so much, and not ranked above that much: near the ceiling
/// differences between stores are compressed.
pub(super) const NOTED_SHARE: f64 = 0.5;
pub(super) const LIMITED_SHARE: f64 = 0.8;

/// Puts the points of each way to a server (what is spoken, over what) beside the baseline that shows how far it goes.
pub(super) fn mark(points: &mut [Point], records: &[&Record]) {
    let mut ways: BTreeMap<&str, (&str, Transport)> = BTreeMap::new();
    // Of a store with replicas each client has a thread of its own.
    let is_alike = |record: &&&Record| record.target.transport != Transport::InProcess && record.replicas.is_empty();
    for record in records.iter().filter(is_alike) {
        if let Some(facts) = &record.store {
            ways.insert(&record.target.label, (&facts.client_library, record.target.transport));
        }
    }
    limit(points, &ways);
}

fn limit(points: &mut [Point], ways: &BTreeMap<&str, (&str, Transport)>) {
    let ceilings: Vec<Point> = points
        .iter()
        .filter(|point| point.baseline && point.has_number() && ways.contains_key(point.target.as_str()))
        .cloned()
        .collect();
    for point in points.iter_mut().filter(|point| !point.baseline && point.has_number()) {
        let Some(way) = ways.get(point.target.as_str()) else { continue };
        let same = |ceiling: &&Point| {
            (ceiling.part, ceiling.step(), ways.get(ceiling.target.as_str())) == (point.part, point.step(), Some(way))
        };
        point.ceiling_share = ceilings.iter().find(same).map(|ceiling| point.requests_per_s / ceiling.requests_per_s);
        point.client_limited |= point.ceiling_share.is_some_and(|share| share > LIMITED_SHARE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::remarks::remarks;
    use super::super::sweep::sentences;
    use super::super::sweep::tests::point;
    use super::*;

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
        let said = remarks(&points).join("\n");
        assert!(said.contains("limited by the client") && said.contains("at most 60 % of that"), "{said}");
        let said = sentences(&points).join(" ");
        assert!(said.contains("fast at least 90 k with 1 client (limited by the load generator)"), "{said}");
        assert!(said.starts_with("Measured once, sets per second: in the client 900 k"), "as in the table: {said}");
        assert!(
            sentences(&points[..2])
                .join(" ")
                .ends_with("Every point is limited by the load generator: nothing is ranked.")
        );
        assert!(remarks(&points[..1]).is_empty());
    }
}
