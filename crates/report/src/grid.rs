//! A sweep as tables: one a part and measure, a line a step, a column a target.

use super::cells::Row;
use super::formats::{both, or_dash, tail};
use super::point::{Measure, Point, called};
use super::rated;
use super::staleness::Stale;
use super::swept;
use super::table::{TableLine, length};
use super::versus::versus;
use kvfair_core::part::Part;
use kvfair_core::record::CutOff;
use kvfair_core::units;

/// One table, with what it tells; nothing where it goes on with the targets that the one before had no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub title: String,
    pub lines: Vec<TableLine>,
}

impl Grid {
    /// A table without a title.
    pub fn of(lines: Vec<TableLine>) -> Grid {
        Grid { title: String::new(), lines }
    }
}

/// All tables of a sweep, none wider than this.
pub fn grids(points: &[Point], wide: bool, width: usize) -> Vec<Grid> {
    let is_rated = points.iter().any(|point| point.rated.is_some());
    let (usual, more) = if is_rated { (rated::MEASURES, rated::WIDE) } else { (MEASURES, WIDE) };
    let is_apart = |point: &Point| point.beside.is_some_and(|beside| beside.vs_best.low.is_some());
    let apart = if points.iter().any(is_apart) { &[APART][..] } else { &[] };
    let stale = if points.iter().any(|point| point.stale.is_some()) { STALE } else { &[] };
    let rest = if wide { more } else { &[] };
    let measures: Vec<&Measure> = usual.iter().chain(apart).chain(stale).chain(COMMON).chain(rest).collect();
    let mut grids = Vec::new();
    for part in Part::OF_POINTS {
        let points: Vec<&Point> = points.iter().filter(|point| point.part == part).collect();
        let is_batched = points.iter().any(|point| point.batch > 1);
        let called = called(part);
        let question = if is_batched { format!("question of {called}s") } else { called.to_string() };
        for measure in measures.iter().filter(|_| !points.is_empty()) {
            let mut title = (measure.words)(called, &question);
            grids.extend(table(&points, measure, width).into_iter().map(|lines| {
                let title = std::mem::take(&mut title);
                Grid { title, lines }
            }));
        }
    }
    grids
}

/// The targets that have no numbers, with the reason.
pub fn silent(rows: &[Row]) -> Vec<TableLine> {
    let silent = rows.iter().filter(|row| !row.status.has_numbers());
    silent.map(|row| TableLine::Reason(row.target.clone(), row.status.in_words())).collect()
}

const MEASURES: &[Measure] = &[Measure {
    words: |part, _| format!("{part}s per second"),
    cell: |point| format!("{}{}", units::count(point.requests_per_s), if point.client_limited { "*" } else { "" }),
}];

/// Below those.
const COMMON: &[Measure] = &[Measure { words: |part, _| format!("CPU us per {part}, client + server"), cell: cpu }];

/// And where blocks are enough for intervals.
const APART: Measure =
    Measure { words: |part, _| format!("time of a {part}, vs best (at rates its p99), with intervals"), cell: apart };

/// And where replicas were read.
const STALE: &[Measure] = &[
    Measure {
        words: |_, _| "reads from replicas that were stale".to_string(),
        cell: |point| stale(point, Stale::share_told),
    },
    Measure {
        words: |_, _| "stale reads: how far behind, p50 / p99 / worst".to_string(),
        cell: |point| stale(point, Stale::time_told),
    },
    Measure {
        words: |_, _| "stale reads: versions behind, p50 / p99 / worst".to_string(),
        cell: |point| stale(point, Stale::versions_told),
    },
];

fn stale(point: &Point, words: fn(&Stale) -> String) -> String {
    or_dash(point.stale.as_ref(), words)
}

const WIDE: &[Measure] = &[
    Measure {
        words: |_, question| {
            format!("time of a {question} while all clients ask at once, median (not what users would wait)")
        },
        cell: |point| tail(point.service.map(|service| service.service_ns_p50)),
    },
    Measure {
        words: |_, question| format!("time of a {question} while all clients ask at once, p99"),
        cell: |point| tail(point.service.and_then(|service| service.service_ns_p99)),
    },
    Measure {
        words: |part, _| format!("{part}s per second, lowest..highest of the blocks"),
        cell: |point| {
            format!("{}..{}", units::count(point.requests_per_s_lowest), units::count(point.requests_per_s_highest))
        },
    },
];

/// What has nothing to tell.
const NOTHING: &str = "-";

/// As many targets side by side as there is room for, and the others in tables below; no baseline that has
/// nothing to tell.
fn table(points: &[&Point], measure: &Measure, width: usize) -> Vec<Vec<TableLine>> {
    let mut targets: Vec<(bool, &str)> = points.iter().map(|point| (point.baseline, point.target.as_str())).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut steps: Vec<u64> = points.iter().map(|point| point.step()).collect();
    steps.sort_unstable();
    steps.dedup();
    let cell = |target: &str, step: u64| {
        let point = points.iter().find(|point| point.target == target && point.step() == step);
        let shown = |point: &&Point| match point.cut_off {
            _ if point.unclear.is_some() => "unclear".to_string(),
            Some(CutOff { after_s, .. }) => format!("> {after_s} s"),
            None => (measure.cell)(point),
        };
        point.map_or_else(|| NOTHING.to_string(), shown)
    };
    targets.retain(|(is_baseline, target)| !is_baseline || steps.iter().any(|&step| cell(target, step) != NOTHING));
    let mut tables = Vec::new();
    let mut rest = targets.as_slice();
    while !rest.is_empty() {
        let mut used = FIRST_COLUMN;
        let fits = rest.iter().take_while(|(_, target)| {
            let cells = steps.iter().map(|&step| length(&cell(target, step)));
            used += 2 + cells.max().unwrap_or(0).max(length(target));
            used <= width
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        let headings = std::iter::once(swept::words(points[0].swept).heading)
            .chain(now.iter().map(|(_, target)| *target))
            .map(str::to_string);
        let mut lines = vec![TableLine::Cells(headings.collect())];
        for &step in &steps {
            let cells = now.iter().map(|(_, target)| cell(target, step));
            lines.push(TableLine::Cells(std::iter::once(units::thousands(step)).chain(cells).collect()));
        }
        tables.push(lines);
        rest = later;
    }
    tables
}

/// A blank, and the column of the numbers of clients or of the rates.
const FIRST_COLUMN: usize = 11;

/// "2.3 + 1.9": client and server; one number where the store is in the client.
fn cpu(point: &Point) -> String {
    both(point.client_cpu_us_per_request, point.server_cpu_us_per_request)
}

/// "1.35x [1.29-1.41]".
fn apart(point: &Point) -> String {
    point.beside.map_or_else(|| NOTHING.to_string(), |beside| versus(beside.vs_best))
}

#[cfg(test)]
mod tests {
    use super::super::point::Beside;
    use super::super::sweep::tests::point;
    use super::super::versus::Versus;
    use super::*;

    #[test]
    fn who_is_compared_with_nobody_has_no_column_there() {
        let vs_best = Versus { ratio: 1.5, low: Some(1.4), high: Some(1.6), preliminary: false };
        let beside = Some(Beside {
            blocks: 6,
            vs_best,
            versus: vs_best,
            is_best: false,
            slower: true,
            noise_floor: Some(0.02),
            noisy: false,
            tied: false,
        });
        let points = [point("ceiling", 5, 9_000.0), Point { beside, ..point("store", 5, 1_000.0) }];
        let headings: Vec<Vec<String>> = grids(&points, false, 100)
            .into_iter()
            .filter_map(|grid| match grid.lines.into_iter().next() {
                Some(TableLine::Cells(cells)) => Some(cells),
                _ => None,
            })
            .collect();
        assert_eq!(
            headings,
            [vec!["clients", "store", "ceiling"], vec!["clients", "store"], vec!["clients", "store", "ceiling"]]
        );
    }
}
