//! A sweep as a picture: requests a second and CPU a request against what was swept, a line a target, its name at its
//! end. From points to the text of an SVG file; how things look is in `palette`.

use anyhow::{Result, bail};
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;

use super::cells::Row;
use super::point::{Point, called};
use super::remarks::cut_off;
use super::table::wrap;
use super::unclear;
use crate::model::load::Swept;
use crate::model::units;

pub(super) mod axis;
mod labels;
pub(super) mod palette;
mod panel;
pub mod plot;

pub(super) use panel::shortened;

use palette::{GREY, LINES, MARKS, Mark, PAPER, Stroke, TEXT};
use panel::{Letters, Page, PanelSizes, write};

/// What was swept over, as its axis is called.
fn swept(points: &[&Point]) -> &'static str {
    match points.first().map(|point| point.swept) {
        Some(Swept::Rate) => "requests a second",
        Some(Swept::ValueBytes) => "bytes of a value",
        Some(Swept::Batch) => "keys of a question",
        Some(Swept::Clients) | None => "clients",
    }
}

fn step(point: &Point) -> f64 {
    point.step() as f64
}

/// What a panel shows of each point.
struct Measure {
    title: fn(part: &str) -> String,
    value: fn(&Point) -> f64,
    /// Lowest and highest of the blocks; the value twice where they are not known.
    span: fn(&Point) -> [f64; 2],
}

const CPU: Measure = Measure {
    title: |part| format!("CPU us a {part}, client + server"),
    value: Point::cpu_us_per_request,
    span: |point| [point.cpu_us_per_request(); 2],
};

const CLOSED: [Measure; 2] =
    [Measure { title: |part| format!("{part}s a second"), value: |point| point.requests_per_s, span: band }, CPU];

/// The interval of the median, or as far as the few blocks reached.
fn band(point: &Point) -> [f64; 2] {
    let (low, high) =
        point.requests_per_s_interval.unwrap_or((point.requests_per_s_lowest, point.requests_per_s_highest));
    [low, high]
}

const RATED: [Measure; 2] = [
    Measure {
        title: |part| format!("response of a {part}, p99 in us"),
        value: response_us,
        span: |point| [response_us(point); 2],
    },
    CPU,
];

/// The longest one where there are too few for more.
fn response_us(point: &Point) -> f64 {
    let rated = point.rated.as_ref();
    rated.map_or(0.0, |rated| rated.response_ns_p99.unwrap_or(rated.response_ns_max) as f64 / 1e3)
}

/// How a target is drawn, the same in all panels.
struct Line<'a> {
    target: &'a str,
    stroke: Stroke,
    mark: Mark,
    baseline: bool,
}

// Lengths in pixels, letters by their height.
const MARGIN: i32 = 16;
const HEADING: f64 = 14.0;
const HEADING_HEIGHT: i32 = 20;
const NOTE: f64 = 11.0;
const NOTE_HEIGHT: i32 = 17;

/// Two panels a part, the headline above and notes below, among them why targets have no numbers. An error where there
/// is nothing to draw a line through.
pub fn svg(points: &[Point], rows: &[Row], headline: &str) -> Result<String> {
    // What was not kept has no response to draw, and what was cut off or is unclear no number at all.
    let (cut_off, broken) = ([cut_off(points), unclear::remarks(points)].concat(), broken(points));
    let whole = points.iter().filter(|point| point.has_number());
    let points: Vec<Point> =
        whole.filter(|point| point.rated.as_ref().is_none_or(|rated| rated.kept)).cloned().collect();
    let points = points.as_slice();
    let is_rated = points.iter().any(|point| point.rated.is_some());
    let measures = if is_rated { &RATED } else { &CLOSED };
    let mut values: Vec<f64> = points.iter().map(step).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if values.len() < 2 {
        let hint = "hint: `kvfair run getset --clients 1,5,20,50` makes a sweep, and `--rate 1k,2k,5k`";
        bail!(
            "there is no sweep to draw: it takes right answers with two or more numbers of clients, or rates\n{hint}"
        );
    }
    let lines = lines(points);
    let parts = ["set", "get", "run"].into_iter().filter(|part| points.iter().any(|point| point.part == *part));
    let parts: Vec<&str> = parts.collect();
    let sizes = PanelSizes::of(&lines);
    let width = MARGIN + (sizes.width + MARGIN) * measures.len() as i32;
    let heading = wrap(headline, panel::letters_in(width - 2 * MARGIN, HEADING));
    let mut notes = notes(points, rows, panel::letters_in(width - 2 * MARGIN, NOTE));
    notes
        .extend(cut_off.iter().chain(&broken).flat_map(|what| wrap(what, panel::letters_in(width - 2 * MARGIN, NOTE))));
    let top = 2 * MARGIN + heading.len() as i32 * HEADING_HEIGHT;
    let bottom = top + (sizes.height + MARGIN) * parts.len() as i32;
    let height = bottom + notes.len() as i32 * NOTE_HEIGHT + MARGIN;

    let mut text = String::new();
    let page = SVGBackend::with_string(&mut text, (width as u32, height as u32)).into_drawing_area();
    page.fill(&PAPER.light)?;
    let letters = Letters { height: HEADING, stroke: TEXT, bold: false };
    paragraph(&page, &heading, (MARGIN, MARGIN + HEADING_HEIGHT / 2), HEADING_HEIGHT, &letters)?;
    for (row, part) in (0..).zip(&parts) {
        let points: Vec<&Point> = points.iter().filter(|point| point.part == *part).collect();
        for (column, measure) in (0..).zip(measures) {
            let corner = (MARGIN + column * (sizes.width + MARGIN), top + row * (sizes.height + MARGIN));
            panel::draw(&page, corner, &sizes, measure, &points, &lines)?;
        }
    }
    let letters = Letters { height: NOTE, stroke: GREY, bold: false };
    paragraph(&page, &notes, (MARGIN, bottom), NOTE_HEIGHT, &letters)?;
    page.present()?;
    drop(page);
    // Behind the line that opens the picture.
    Ok(text.replacen('\n', &format!("\n{}", palette::style_sheet()), 1))
}

/// A picture of [`svg`] with its width and height in pixels.
pub fn sized(svg: &str) -> Option<(&str, f64, f64)> {
    let length = |name: &str| svg.split_once(name)?.1.split_once('"')?.0.parse().ok();
    Some((svg, length(" width=\"")?, length(" height=\"")?))
}

fn paragraph(page: &Page, lines: &[String], at: (i32, i32), line_height: i32, letters: &Letters) -> Result<()> {
    (0..).zip(lines).try_for_each(|(index, line)| write(page, line, (at.0, at.1 + index * line_height), letters))
}

/// Targets in the order of their points; baselines are grey.
fn lines(points: &[Point]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line> = Vec::new();
    for point in points {
        if lines.iter().any(|line| line.target == point.target) {
            continue;
        }
        let place = lines.iter().filter(|line| line.baseline == point.baseline).count();
        let stroke = if point.baseline { GREY } else { LINES[place % LINES.len()] };
        let mark = MARKS[place % MARKS.len()];
        lines.push(Line { target: &point.target, stroke, mark, baseline: point.baseline });
    }
    lines
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
        format!("{}: did not keep {} requests a second", panel::shortened(target), units::thousands(*rate))
    });
    lines.collect()
}

/// What the drawing itself does not say, wrapped to so many letters.
fn notes(points: &[Point], rows: &[Row], letters: usize) -> Vec<String> {
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
    let mut notes = if said.is_empty() { Vec::new() } else { wrap(&said.join(" · "), letters) };
    for row in rows.iter().filter(|row| !row.status.has_numbers()) {
        notes.extend(wrap(&format!("{}: {}", panel::shortened(&row.target), row.status.in_words()), letters));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trial::Transport;
    use crate::report::cells::Status;

    fn point(target: &str, clients: u32, requests_per_s: f64) -> Point {
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
            baseline: target == "baseline",
            trials: 1,
            statistic: Default::default(),
            requests_per_s,
            requests_per_s_lowest: requests_per_s,
            requests_per_s_highest: requests_per_s,
            requests_per_s_interval: None,
            client_cpu_us_per_request: 3.0,
            server_cpu_us_per_request: Some(2.0 * f64::from(clients)),
            ceiling_share: None,
            client_limited: false,
            group: String::new(),
            beside: None,
            cpu_beside: None,
            doubled_rise: None,
            service: None,
        }
    }

    fn drawn(points: &[Point]) -> String {
        svg(points, &[], "a job, <swept>").expect("a sweep")
    }

    /// All lines of a colour, as corners; the pieces before labels too.
    fn paths(svg: &str, colour: &str) -> Vec<Vec<(f64, f64)>> {
        let lines = svg.lines().filter(|line| line.starts_with("<polyline ") && line.contains(colour));
        let corners = lines.map(|line| line.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap());
        let corner = |text: &str| {
            let (x, y) = text.split_once(',').expect("x,y");
            (x.parse().unwrap(), y.parse().unwrap())
        };
        corners.map(|corners| corners.split_whitespace().map(corner).collect()).collect()
    }

    /// The heights at which a text stands.
    fn heights(svg: &str, text: &str) -> Vec<f64> {
        let lines: Vec<&str> = svg.lines().collect();
        let before = lines.windows(2).filter(|pair| pair[1] == text).map(|pair| pair[0]);
        let height = |line: &str| line.split(" y=\"").nth(1)?.split('"').next()?.parse().ok();
        before.map(|line| height(line).unwrap_or_else(|| panic!("no height: {line}"))).collect()
    }

    #[test]
    fn points_stand_where_their_numbers_are() {
        let svg = drawn(&[point("a", 1, 1000.0), point("a", 10, 3000.0), point("a", 100, 2000.0)]);
        assert_eq!(
            (heights(&svg, "sets a second").len(), heights(&svg, "CPU us a set, client + server").len()),
            (1, 1)
        );
        let floor = heights(&svg, "0")[0];
        let paths = paths(&svg, "#1B5E9E");
        let (rates, cpu) = (&paths[1], &paths[3]);
        let above: Vec<f64> = rates.iter().map(|(_, y)| floor - y).collect();
        assert!((above[1] / above[0] - 3.0).abs() < 0.05 && (above[2] / above[0] - 2.0).abs() < 0.05, "{rates:?}");
        assert!((rates[1].0 - (rates[0].0 + rates[2].0) / 2.0).abs() <= 1.0, "equal ratios: {rates:?}");
        // 3 us in the client and 2, 20, 200 us in the server.
        let above: Vec<f64> = cpu.iter().map(|(_, y)| floor - y).collect();
        assert!((above[2] / above[1] - 203.0 / 23.0).abs() < 0.4, "{cpu:?}");
    }

    #[test]
    fn names_stand_at_the_lines_and_apart() {
        let names: Vec<String> = (0..30).map(|number| format!("target {number}")).collect();
        let points = names.iter().flat_map(|name| [point(name, 1, 5.0), point(name, 9, 5.0)]);
        let svg = drawn(&points.collect::<Vec<Point>>());
        let mut places: Vec<f64> = names.iter().map(|name| heights(&svg, name)[0]).collect();
        assert!(names.iter().all(|name| heights(&svg, name).len() == 2), "one in each panel");
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 14.0), "{places:?}");
    }

    #[test]
    fn what_is_hollow_grey_or_a_band_is_said() {
        let mut points = vec![point("a", 1, 10.0), point("a", 2, 20.0)];
        let plain = drawn(&points);
        for word in ["hollow", "bands", "baselines", "opacity=\"0.15\""] {
            assert!(!plain.contains(word), "{word}");
        }
        let circles = |svg: &str| svg.matches("fill=\"#FFFFFF\" stroke=\"none\" stroke-width").count();
        assert_eq!(circles(&plain), 0);
        points[0].client_limited = true;
        points[1] = Point { trials: 2, requests_per_s_lowest: 15.0, ..points[1].clone() };
        points.extend([point("baseline", 1, 5.0), point("baseline", 2, 5.0)]);
        let svg = drawn(&points);
        assert!(svg.contains("hollow: limited by the client") && circles(&svg) == 2, "hollow in both panels");
        assert!(svg.contains("bands: lowest to highest"));
        assert_eq!(svg.matches("<polygon opacity=\"0.15\"").count(), 1, "of the rates alone");
        assert!(svg.contains("thin and grey: baselines"));
        assert!(paths(&svg, "stroke=\"#6B7075\" stroke-width=\"1\"").iter().any(|path| path.len() == 2));
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
            of_requests: true,
            of_trace: false,
            of_program: false,
            version: String::new(),
            client_library: String::new(),
            trials: 0,
            status: Status::Refused { reason: "<image href='x'/>\u{1b}[31m".to_string() },
            numbers: None,
        };
        let points = [point(name, 1, 1.0), point(name, 2, 1.0)];
        let said = svg(&points, std::slice::from_ref(&row), "<b>").expect("a sweep");
        assert!(said.contains("\n&lt;script&gt;&amp;&quot;\u{FFFD}&apos;\u{FFFD}]]&gt;\n"), "{said}");
        assert!(said.contains("refused: &lt;image href=&apos;x&apos;/&gt;\u{FFFD}[31m"), "{said}");
        for bad in ["<script", "<image", "<b>", "\u{7}", "\u{1b}"] {
            assert!(!said.contains(bad), "{bad:?}");
        }
        row.status = Status::Right;
        assert!(!svg(&points, &[row], "").expect("a sweep").contains("refused"));
        let long = "x".repeat(100_000);
        assert!(drawn(&[point(&long, 1, 1.0), point(&long, 2, 1.0)]).len() < 20_000);
    }

    #[test]
    fn what_is_no_sweep_is_not_drawn() {
        for points in [vec![], vec![point("a", 5, 1.0), point("b", 5, 2.0)]] {
            let error = svg(&points, &[], "").expect_err("no sweep").to_string();
            assert!(error.contains("hint: `kvfair run getset --clients"), "{error}");
        }
    }

    #[test]
    fn the_picture_knows_the_dark() {
        let svg = drawn(&[point("a", 1, 1.0), point("b", 2, 1.0)]);
        let (head, sheet) = svg.split_once("<style>").expect("a style sheet");
        assert_eq!(head.lines().count(), 1);
        assert!(sheet.contains("@media (prefers-color-scheme: dark)"));
        let (sheet, drawing) = sheet.split_once("</style>").expect("its end");
        for colour in drawing.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(sheet.contains(&format!("[fill=\"#{colour}\"]")), "{colour}");
        }
        assert!(svg.trim_end().ends_with("</svg>"));
    }
}
