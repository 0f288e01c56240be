//! A sweep as lines: requests a second, or the response at a rate, and CPU a request, against what was swept.

use anyhow::{Result, bail};

use super::cells::Row;
use super::chart::axis::Axis;
use super::chart::palette::Inks;
use super::chart::{Chart, Plot, PlotAxis, PlotLine, PlotPoint, shortened};
use super::point::{Point, called};
use super::remarks::cut_off;
use super::{swept, unclear};
use kvfair_core::part::Part;
use kvfair_core::units;

/// What a plot shows of each point.
struct Measure {
    title: fn(part: &str) -> String,
    value: fn(&Point) -> f64,
    span: fn(&Point) -> Option<[f64; 2]>,
}

const CPU: Measure = Measure {
    title: |part| format!("CPU us per {part}, client + server"),
    value: Point::cpu_us_per_request,
    span: |_| None,
};

const CLOSED: [Measure; 2] = [
    Measure {
        title: |part| format!("{part}s per second"),
        value: |point| point.requests_per_s,
        span: |point| Some(band(point)),
    },
    CPU,
];

/// The interval of the median, or as far as the few blocks reached.
fn band(point: &Point) -> [f64; 2] {
    let (low, high) =
        point.requests_per_s_interval.unwrap_or((point.requests_per_s_lowest, point.requests_per_s_highest));
    [low, high]
}

const RATED: [Measure; 2] =
    [Measure { title: |part| format!("response of a {part}, p99 in us"), value: response_us, span: |_| None }, CPU];

/// The longest one where there are too few for more.
fn response_us(point: &Point) -> f64 {
    let rated = point.rated.as_ref();
    rated.map_or(0.0, |rated| rated.response_ns_p99.unwrap_or(rated.response_ns_max) as f64 / 1e3)
}

/// Two plots a part; notes tell why targets have no numbers. An error where there is nothing to draw a line through.
pub fn chart(points: &[Point], rows: &[Row]) -> Result<Chart> {
    // What was not kept has no response to draw, and what was cut off or is unclear no number at all.
    let whole = points.iter().filter(|point| point.has_number());
    let drawn: Vec<&Point> = whole.filter(|point| point.rated.as_ref().is_none_or(|rated| rated.kept)).collect();
    let measures = if drawn.iter().any(|point| point.rated.is_some()) { &RATED } else { &CLOSED };
    if drawn.iter().all(|point| point.step() == drawn[0].step()) {
        let hint = "hint: `kvfair run getset --clients 1,5,20,50` makes a sweep, and `--rate 1k,2k,5k`";
        bail!(
            "there is no sweep to draw: it takes right answers with two or more numbers of clients, or rates\n{hint}"
        );
    }
    let named = rows.iter().filter(|row| row.status.has_numbers()).map(|row| (row.target.as_str(), row.baseline));
    let inks = Inks::of(named.chain(drawn.iter().map(|point| (point.target.as_str(), point.baseline))));
    let mut plots = Vec::new();
    for part in Part::OF_POINTS {
        let of_part: Vec<&Point> = drawn.iter().copied().filter(|point| point.part == part).collect();
        if !of_part.is_empty() {
            plots.extend(measures.iter().map(|measure| plot(measure, &of_part, &inks)));
        }
    }
    let mut notes = notes(&drawn, rows);
    notes.extend([cut_off(points), unclear::remarks(points), broken(points)].concat());
    Ok(Chart { plots, notes, ..Chart::default() })
}

/// Of the points of one part, which are at least one.
fn plot(measure: &Measure, points: &[&Point], inks: &Inks<'_>) -> Plot {
    let mut steps: Vec<u64> = points.iter().map(|point| point.step()).collect();
    steps.sort_unstable();
    steps.dedup();
    let places: Vec<f64> = steps.iter().map(|step| *step as f64).collect();
    let reached = points.iter().flat_map(|point| (measure.span)(point).unwrap_or([(measure.value)(point); 2]));
    let up = Axis::of_measure(&reached.collect::<Vec<f64>>());
    let mut targets: Vec<&str> = Vec::new();
    for point in points {
        if !targets.contains(&point.target.as_str()) {
            targets.push(&point.target);
        }
    }
    let line = |target: &&str| PlotLine {
        target: target.to_string(),
        remark: String::new(),
        ink: inks.ink(target),
        points: steps
            .iter()
            .map(|step| {
                let point = points.iter().find(|point| point.target == *target && point.step() == *step)?;
                Some(PlotPoint {
                    number: (measure.value)(point),
                    span: (measure.span)(point),
                    doubt: if point.client_limited { "limited by the client" } else { "" },
                })
            })
            .collect(),
    };
    Plot {
        title: format!("{}{}", (measure.title)(called(points[0].part)), up.scale()),
        across: PlotAxis::ticked(
            swept::words(points[0].swept).axis,
            Axis::of_sweep(&places),
            steps.iter().map(|step| (*step as f64, units::thousands(*step))).collect(),
        ),
        up,
        lines: targets.iter().map(line).collect(),
        steps: None,
    }
}

/// Rates that were not kept, a line a target: they are not drawn.
fn broken(points: &[Point]) -> Vec<String> {
    let mut found: Vec<(&str, u64)> = Vec::new();
    for point in points.iter().filter(|point| point.has_number()) {
        let Some(rated) = point.rated.as_ref().filter(|rated| !rated.kept) else { continue };
        match found.iter_mut().find(|(target, _)| *target == point.target) {
            Some((_, rate)) => *rate = rated.rate.min(*rate),
            None => found.push((&point.target, rated.rate)),
        }
    }
    let lines = found.iter().map(|(target, rate)| {
        format!("{}: did not keep {} requests per second", shortened(target), units::thousands(*rate))
    });
    lines.collect()
}

/// What the drawing itself does not say.
fn notes(points: &[&Point], rows: &[Row]) -> Vec<String> {
    let medians = match points.iter().any(|point| point.requests_per_s_interval.is_some()) {
        true => "lines: medians of the blocks; bands: their 95 % intervals",
        false => "lines: medians of the blocks; bands: lowest to highest",
    };
    let said = [
        (points.iter().any(|point| point.client_limited), "hollow: limited by the client, not ranked"),
        (points.iter().any(|point| point.trials > 1), medians),
        (points.iter().any(|point| point.baseline), "thin and grey: baselines"),
    ];
    let said: Vec<&str> = said.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect();
    let silent = rows.iter().filter(|row| !row.status.has_numbers());
    let silent = silent.map(|row| format!("{}: {}", shortened(&row.target), row.status.in_words()));
    let said = if said.is_empty() { None } else { Some(said.join(" · ")) };
    said.into_iter().chain(silent).collect()
}

#[cfg(test)]
mod tests {
    use super::super::chart::document;
    use super::super::chart::palette::GREY;
    use super::super::sweep::tests::point;
    use super::*;
    use crate::cells::Status;
    use kvfair_core::trial::Transport;

    fn drawn(points: &[Point]) -> Chart {
        chart(points, &[]).expect("a sweep")
    }

    fn numbers(plot: &Plot, line: usize) -> Vec<f64> {
        plot.lines[line].points.iter().flatten().map(|point| point.number).collect()
    }

    #[test]
    fn each_part_has_its_rate_and_its_cpu() {
        let cpu = |point: Point| Point { server_cpu_us_per_request: Some(2.0 * f64::from(point.clients)), ..point };
        let points = [point("a", 1, 1000.0), point("a", 10, 3000.0), point("a", 100, 2000.0), point("b", 10, 5.0)];
        let chart = drawn(&points.map(cpu));
        let titles: Vec<&str> = chart.plots.iter().map(|plot| plot.title.as_str()).collect();
        assert_eq!(titles, ["sets per second (logarithmic)", "CPU us per set, client + server (logarithmic)"]);
        assert_eq!(chart.plots[0].across.title, "clients (logarithmic)");
        assert_eq!(numbers(&chart.plots[0], 0), [1000.0, 3000.0, 2000.0]);
        assert_eq!(numbers(&chart.plots[1], 0), [3.0, 21.0, 201.0], "1 us in the client");
        let of_b = &chart.plots[0].lines[1].points;
        assert!(of_b[0].is_none() && of_b[1].is_some() && of_b[2].is_none(), "{of_b:?}");
    }

    #[test]
    fn what_is_hollow_grey_or_a_band_is_said() {
        let mut points = vec![point("a", 1, 10.0), point("a", 2, 20.0)];
        assert_eq!(drawn(&points).notes, [""; 0]);
        points[0].client_limited = true;
        points[1] = Point { trials: 2, requests_per_s_lowest: 15.0, ..points[1].clone() };
        points.extend([point("ceiling", 1, 5.0), point("ceiling", 2, 5.0)]);
        let chart = drawn(&points);
        let said = "hollow: limited by the client, not ranked · lines: medians of the blocks; bands: lowest to highest \
                    · thin and grey: baselines";
        assert_eq!(chart.notes, [said]);
        for plot in &chart.plots {
            assert_eq!(plot.lines[0].points[0].expect("a point").doubt, "limited by the client");
            assert!(plot.lines[1].ink.is_baseline && plot.lines[1].ink.stroke == GREY);
        }
        let spans = |plot: &Plot| plot.lines[0].points[1].expect("a point").span;
        assert_eq!((spans(&chart.plots[0]), spans(&chart.plots[1])), (Some([15.0, 20.0]), None), "of the rates alone");
    }

    /// Names and reasons come from servers that anybody may have set up.
    #[test]
    fn hostile_text_stays_text() {
        let name = "<script>&\"\u{7}'\n]]>";
        let mut row = Row {
            rank: None,
            store: String::new(),
            transport: Transport::Unix,
            target: name.to_string(),
            group: String::new(),
            baseline: false,
            rtt_us: None,
            of_requests: true,
            of_trace: false,
            ttls_left_out: 0,
            of_lookup: false,
            of_program: false,
            version: String::new(),
            client_library: String::new(),
            trials: 0,
            status: Status::Refused { reason: "<image href='x'/>\u{1b}[31m".to_string() },
            numbers: None,
        };
        let points = [point(name, 1, 1.0), point(name, 2, 1.0)];
        let said = document("<b>", &[chart(&points, std::slice::from_ref(&row)).expect("a sweep")]);
        assert!(said.contains(">&lt;script&gt;&amp;&quot;\u{FFFD}'\u{FFFD}]]&gt;</text>"), "{said}");
        assert!(said.contains("refused: &lt;image href='x'/&gt;\\u001b[31m"), "{said}");
        for bad in ["<script", "<image", "<b>", "\u{7}", "\u{1b}"] {
            assert!(!said.contains(bad), "{bad:?}");
        }
        row.status = Status::Right;
        assert_eq!(chart(&points, &[row]).expect("a sweep").notes, [""; 0]);
        let long = "x".repeat(100_000);
        assert!(document("", &[drawn(&[point(&long, 1, 1.0), point(&long, 2, 1.0)])]).len() < 20_000);
    }

    #[test]
    fn what_is_no_sweep_is_not_drawn() {
        for points in [vec![], vec![point("a", 5, 1.0), point("b", 5, 2.0)]] {
            let error = chart(&points, &[]).err().expect("no sweep").to_string();
            assert!(error.contains("hint: `kvfair run getset --clients"), "{error}");
        }
    }
}
