//! How costs grow, as lines: the CPU of each byte, key or request against how many there are. What is in proportion
//! stays level, and what is out of proportion rises.

use super::chart::axis::Axis;
use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint, first_lines};
use super::growth::{Grown, GrowthVerdict, OVER, Over, PARTS};
use kvfair_core::part::Part;
use kvfair_core::record::Record;
use kvfair_core::units;

/// A plot of what varies and each part, as far as anything was measured. `records` tell which targets are baselines.
pub fn chart(grown: &[Grown], records: &[Record]) -> Chart {
    let inks = Inks::of(records.iter().map(|record| (record.target.label.as_str(), record.target.baseline)));
    let mut chart = Chart::default();
    let mut left_out = None;
    for (over, part) in OVER.into_iter().flat_map(|over| PARTS.map(|part| (over, part))) {
        let is_it = |one: &&Grown| (one.over, one.part) == (over, part) && one.sizes.len() > 1;
        let ones: Vec<&Grown> = grown.iter().filter(is_it).collect();
        if !ones.is_empty() {
            let mut plot = plot(over, part, &ones, &inks);
            left_out = first_lines(&mut plot.lines, "the first ones that were named");
            chart.plots.push(plot);
        }
    }
    if !chart.plots.is_empty() {
        chart.notes = notes(&chart.plots);
        // Nearly the same targets in all plots.
        chart.notes.extend(left_out);
    }
    chart
}

/// Of at least one growth with sizes.
fn plot(over: Over, part: Part, ones: &[&Grown], inks: &Inks<'_>) -> Plot {
    let (title, worth) = over.each(part);
    let mut sizes: Vec<u64> = ones.iter().flat_map(|one| one.sizes.iter().map(|size| size.n)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let line = |one: &&Grown| PlotLine {
        target: one.target.clone(),
        remark: match one.verdict {
            GrowthVerdict::OutOfProportion => ", out of proportion",
            _ => "",
        }
        .to_string(),
        ink: inks.ink(&one.target),
        points: sizes.iter().map(|n| point(one, *n, worth)).collect(),
    };
    let lines: Vec<PlotLine> = ones.iter().map(line).collect();
    let reached = lines.iter().flat_map(|line| line.points.iter().flatten()).filter_map(|point| point.span).flatten();
    let up = Axis::of_measure(&reached.collect::<Vec<f64>>());
    Plot {
        title: format!("{title}{}", up.scale()),
        across: PlotAxis::ticked(
            over.axis(),
            Axis::of_sweep(&sizes.iter().map(|n| *n as f64).collect::<Vec<f64>>()),
            sizes.iter().map(|n| (*n as f64, units::thousands(*n))).collect(),
        ),
        up,
        lines,
        steps: None,
    }
}

fn point(one: &Grown, n: u64, worth: f64) -> Option<PlotPoint> {
    let size = one.sizes.iter().find(|size| size.n == n)?;
    let each = |cpu_us: f64| cpu_us * worth / n.max(1) as f64;
    Some(PlotPoint {
        number: each(size.cpu_us_median),
        span: Some([each(size.cpu_us_lowest), each(size.cpu_us_highest)]),
        doubt: if matches!(one.verdict, GrowthVerdict::Unclear(_)) { "unclear" } else { "" },
    })
}

/// What the drawing itself does not say.
fn notes(plots: &[Plot]) -> Vec<String> {
    let lines = || plots.iter().flat_map(|plot| &plot.lines);
    let is_unclear = lines().flat_map(|line| line.points.iter().flatten()).any(|point| !point.doubt.is_empty());
    let said = [
        (true, "a line that rises: each byte, key or request costs more, the more there are"),
        (true, "lines: medians of the repetitions; bands: lowest to highest"),
        (is_unclear, "hollow: unclear"),
        (lines().any(|line| line.ink.is_baseline), "thin and grey: baselines"),
    ];
    vec![said.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect::<Vec<_>>().join(" · ")]
}

#[cfg(test)]
mod tests {
    use super::super::growth::GrownSize;
    use super::*;

    fn grown(target: &str, over: Over, verdict: GrowthVerdict, costs: &[(u64, f64)]) -> Grown {
        let size = |(n, us): &(u64, f64)| GrownSize {
            n: *n,
            cpu_us_median: *us,
            cpu_us_lowest: us / 2.0,
            cpu_us_highest: us * 2.0,
        };
        Grown {
            target: target.to_string(),
            part: Part::Get,
            over,
            from: 1,
            to: 16,
            repetitions: 3,
            sizes: costs.iter().map(size).collect(),
            fit: None,
            verdict,
        }
    }

    fn numbers(line: &PlotLine) -> Vec<Option<f64>> {
        line.points.iter().map(|point| point.map(|point| point.number)).collect()
    }

    #[test]
    fn what_is_in_proportion_is_level_and_what_is_not_rises() {
        let chart = chart(
            &[
                grown("a", Over::Batch, GrowthVerdict::InProportion, &[(1, 2.0), (4, 8.0), (16, 32.0)]),
                grown("b", Over::Batch, GrowthVerdict::OutOfProportion, &[(1, 2.0), (4, 32.0)]),
                grown("a", Over::ValueBytes, GrowthVerdict::Unclear("few".to_string()), &[(100, 0.5), (1_000, 6.0)]),
                grown("b", Over::Keys, GrowthVerdict::Untried("no".to_string()), &[]),
            ],
            &[],
        );
        let titles: Vec<&str> = chart.plots.iter().map(|plot| plot.title.as_str()).collect();
        let expected = ["CPU ns of a get, for each byte of its value", "CPU us of a get-many, for each of its keys"];
        assert_eq!(titles, expected, "values first, and no plot of what was not measured");
        let [bytes, keys] = &chart.plots[..] else { panic!("{titles:?}") };
        assert_eq!(numbers(&keys.lines[0]), [Some(2.0); 3]);
        assert_eq!(numbers(&keys.lines[1]), [Some(2.0), Some(8.0), None], "16 keys were not asked for");
        assert_eq!(keys.lines[0].points[1].expect("a point").span, Some([1.0, 4.0]));
        assert_eq!((keys.lines[0].remark.as_str(), keys.lines[1].remark.as_str()), ("", ", out of proportion"));
        assert_eq!(numbers(&bytes.lines[0]), [Some(5.0), Some(6.0)]);
        assert_eq!(bytes.lines[0].points[0].expect("a point").doubt, "unclear");
        assert_eq!(keys.across.title, "keys at once (logarithmic)");
        assert!(chart.notes[0].ends_with("hollow: unclear · thin and grey: baselines"), "{:?}", chart.notes);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let one_size = grown("a", Over::Keys, GrowthVerdict::InProportion, &[(1, 2.0)]);
        let chart = chart(&[one_size], &[]);
        assert!(chart.plots.is_empty() && chart.notes.is_empty());
    }
}
