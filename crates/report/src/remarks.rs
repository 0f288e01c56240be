//! What is to be said of single points of a sweep.

use super::point::{Point, Statistic, called};
use super::swept::with;
use super::{ceilings, doubled, growth, rated, unclear};
use kvfair_core::record::CutOff;

/// Threads that are busier than this limit the rate themselves.
pub(super) const BUSY_SHARE: f64 = 0.9;

/// "redis, set with 300 clients: > 300 s, 34 % done", for each point that was stopped.
pub(super) fn cut_off(points: &[Point]) -> Vec<String> {
    let each = points.iter().filter(|point| point.unclear.is_none()).filter_map(|point| {
        let CutOff { after_s, done_share } = point.cut_off?;
        let (target, part, with) = (&point.target, called(point.part), with(point.swept, point.step()));
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
            "* limited by the client: more than {:.0} % of what the baseline beside it reaches in the same way, threads \
             busy for more than {:.0} % of the time, more than {:.0} % more with twice the threads, or requests sent \
             too late; not ranked",
            ceilings::LIMITED_SHARE * 100.0,
            BUSY_SHARE * 100.0,
            (doubled::RISE - 1.0) * 100.0
        ));
    }
    if points.iter().any(|point| point.statistic == Statistic::Best) {
        remarks.push(
            "requests per second are those of each target's best block: nothing is claimed from them".to_string(),
        );
    }
    let others = points.iter().filter(|point| !point.client_limited).filter_map(|point| point.ceiling_share);
    if let Some(most) = others.max_by(f64::total_cmp).filter(|share| *share > ceilings::NOTED_SHARE) {
        remarks.push(format!("without a star, at most {:.0} % of that", most * 100.0));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::super::grid::grids;
    use super::super::sweep::tests::point;
    use super::*;

    #[test]
    fn the_best_block_is_told_as_such() {
        let mut best = Point { requests_per_s_highest: 3_000.0, ..point("fast", 5, 2_000.0) };
        best.tell_best();
        let points = [best, point("slow", 5, 1_000.0)];
        assert!(format!("{:?}", grids(&points, false, 100)).contains("3.0 k"));
        assert!(remarks(&points).iter().any(|remark| remark.contains("best block")));
    }

    #[test]
    fn what_was_cut_off_has_no_number() {
        let cut_off = Some(CutOff { after_s: 300.0, done_share: 0.34 });
        let points = [Point { cut_off, ..point("slow", 5, 99_000.0) }, point("fast", 5, 2_000.0)];
        let tables = format!("{:?}", grids(&points, false, 100));
        assert!(tables.contains("> 300 s") && !tables.contains("99 k"), "{tables}");
        assert_eq!(remarks(&points), ["slow, set with 5 clients: > 300 s, 34 % done"]);
    }
}
