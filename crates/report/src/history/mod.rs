//! Results files of a directory over time: series of one number a run, and where they changed.
//!
//! A series is of one target under one set-up: what [`alike::unlike`] compares. Where the set-up changes the series
//! ends and another one begins. A change is only a reason to look: the paired run that it names decides.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use super::{alike, words};
use kvfair_core::record::Record;
use kvfair_stats::change::{self, Change, RunSeries};
use kvfair_stats::sample::Sample;

mod dots;
mod draw;
mod one_run;
#[cfg(test)]
mod tests;
mod text;

pub use dots::{COLUMNS, dots};
pub use draw::charts;
pub use one_run::no_run;
use one_run::{RunFacts, baseline, cost_of, dot, numbers};
pub use text::{blocks, heading, notes, tables};

/// What is followed over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryMeasure {
    /// Seconds as a ratio to a baseline of the same run.
    #[default]
    Ratio,
    Seconds,
    /// CPU of client and server for an op.
    Cpu,
}

impl FromStr for HistoryMeasure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ratio" => Ok(HistoryMeasure::Ratio),
            "seconds" => Ok(HistoryMeasure::Seconds),
            "cpu" => Ok(HistoryMeasure::Cpu),
            _ => Err("ratio, seconds or cpu".to_string()),
        }
    }
}

/// A results file of one run.
pub struct HistoryRun {
    pub path: String,
    /// At least one, of a run without parts.
    pub records: Vec<Record>,
}

/// The last run before a change, and the first one behind it: the trials of one target.
pub struct Sides<'a> {
    pub before: &'a Record,
    pub after: &'a Record,
    /// Their results files.
    pub paths: [&'a str; 2],
}

/// Everything that is told, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct HistoryReport {
    pub measure: HistoryMeasure,
    pub runs: usize,
    /// By their first run.
    pub setups: Vec<SetUp>,
    /// In the order of time. Lines break where one of these lies between two runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_methods: Vec<OtherMethodRun>,
}

/// A run by another method, whose numbers are never compared with those of this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OtherMethodRun {
    /// "2026-11-01 02:00".
    pub began: String,
    pub job: String,
    pub method: u32,
    pub file: String,
}

impl OtherMethodRun {
    /// `began` is as records have it.
    pub fn of(began: &str, job: &str, method: u32, file: &str) -> OtherMethodRun {
        OtherMethodRun { began: when(began), job: job.to_string(), method, file: file.to_string() }
    }
}

/// Runs that may be held against each other.
#[derive(Debug, Serialize)]
pub struct SetUp {
    pub job: String,
    /// What was run and how, in a line.
    pub subject: String,
    /// What differs from the set-up before it of the same job, in words and in short; nothing of the first one.
    pub differs: Option<String>,
    #[serde(skip)]
    pub differs_in: &'static str,
    pub runs: Vec<RunSeen>,
    pub series: Vec<SeriesSeen>,
}

/// A run as a place on the axis of time.
#[derive(Clone, Debug, Serialize)]
pub struct RunSeen {
    /// "2026-11-21 02:00".
    pub began: String,
    pub file: String,
}

/// One target under one set-up.
#[derive(Debug, Serialize)]
pub struct SeriesSeen {
    pub target: String,
    pub is_baseline: bool,
    /// "seconds, ratio to ram".
    pub counted: String,
    /// One for each run of the set-up.
    pub dots: Vec<Dot>,
    /// Runs that have a number and are not noisy.
    pub used: usize,
    pub median: Option<f64>,
    /// The standard deviation of logarithms around their level, as a share.
    pub sd: Option<f64>,
    pub changes: Vec<ChangeSeen>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Dot {
    /// "redis 7.0.15".
    pub version: Option<String>,
    #[serde(flatten)]
    pub seen: DotSeen,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DotSeen {
    Used {
        number: f64,
        low: Option<f64>,
        high: Option<f64>,
        /// How far the same target came out from itself in this run; nothing without an A/A control.
        floor: Option<f64>,
    },
    /// It has a number that counts for nothing.
    Noisy {
        number: f64,
        why: String,
    },
    Failed {
        why: String,
    },
    /// The target was not there, or its run has no baseline.
    Absent,
}

#[derive(Clone, Debug, Serialize)]
pub struct ChangeSeen {
    /// The place of the first run behind it, and that of the last one before it.
    pub at: usize,
    pub before: usize,
    /// "2026-11-12 03:00".
    pub since: String,
    pub change: Change,
    /// "redis 7.0.15 -> redis 8.2.3"; nothing where the store told the same version.
    pub versions: Option<String>,
    /// Why it says nothing of the store; nothing where it may.
    pub machine: Option<String>,
    /// The command that decides.
    pub decide: String,
}

/// So many targets that change together are no change of a store.
const TOGETHER: usize = 3;
/// Changes of one run are found up to so many runs apart.
const NEAR: usize = 2;

/// What the runs tell, in any order. `decide` makes the command that decides on a change.
pub fn history(runs: &[HistoryRun], measure: HistoryMeasure, decide: &dyn Fn(&Sides<'_>) -> String) -> HistoryReport {
    let mut ordered: Vec<&HistoryRun> = runs.iter().collect();
    ordered.sort_by_key(|run| (&run.records[0].run.began, &run.path));
    let mut grouped: Vec<Vec<&HistoryRun>> = Vec::new();
    for run in ordered {
        match grouped.iter_mut().find(|group| alike::unlike(&group[0].records[0], &run.records[0]).is_none()) {
            Some(group) => group.push(run),
            None => grouped.push(vec![run]),
        }
    }
    let setups: Vec<Gathered<'_>> = grouped.iter().map(|runs| Gathered::of(runs, measure)).collect();
    let series: Vec<RunSeries> =
        setups.iter().flat_map(|setup| setup.series.iter().map(GatheredSeries::numbers)).collect();
    let mut changes = change::changes(&series).into_iter();
    let found = setups.iter().enumerate().map(|(place, setup)| {
        let changes: Vec<Vec<Change>> = setup.series.iter().map(|_| changes.next().unwrap_or_default()).collect();
        let job = &setup.first().job.name;
        let before = setups[..place].iter().rfind(|before| before.first().job.name == *job);
        setup.seen(before.map(Gathered::first), &changes, decide)
    });
    HistoryReport { measure, runs: runs.len(), setups: found.collect(), other_methods: Vec::new() }
}

/// Runs of one set-up with all that is seen of each target.
struct Gathered<'a> {
    runs: &'a [&'a HistoryRun],
    series: Vec<GatheredSeries<'a>>,
    /// Seconds of the baselines, one for each run: whether the machine has changed they tell.
    baselines: Vec<(&'a str, Vec<Option<f64>>)>,
}

struct GatheredSeries<'a> {
    target: &'a str,
    is_baseline: bool,
    counted: String,
    dots: Vec<Dot>,
}

impl<'a> Gathered<'a> {
    fn of(runs: &'a [&'a HistoryRun], measure: HistoryMeasure) -> Gathered<'a> {
        let facts: Vec<RunFacts<'a>> = runs.iter().map(|run| RunFacts::of(run)).collect();
        let mut targets: Vec<(&str, bool)> = Vec::new();
        for record in runs.iter().flat_map(|run| &run.records) {
            let target = (record.target.label.as_str(), record.target.baseline);
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let baseline = baseline(&facts, &targets).filter(|_| measure == HistoryMeasure::Ratio);
        let series = targets.iter().map(|&(target, is_baseline)| {
            // A baseline is followed by itself: its ratio to itself says nothing.
            let to = baseline.filter(|to| *to != target);
            let counted = match (measure, to) {
                (HistoryMeasure::Ratio, Some(to)) => format!("seconds, ratio to {to}"),
                (HistoryMeasure::Ratio | HistoryMeasure::Seconds, _) => "seconds".to_string(),
                (HistoryMeasure::Cpu, _) => "CPU us/op".to_string(),
            };
            let dots = facts.iter().map(|run| dot(run, target, to, measure)).collect();
            GatheredSeries { target, is_baseline, counted, dots }
        });
        let of_baselines = targets.iter().filter(|(_, is_baseline)| *is_baseline).map(|(target, _)| {
            let number = |run: &RunFacts<'_>| numbers(run, target, None, cost_of(measure)).map(|(number, ..)| number);
            (*target, facts.iter().map(number).collect())
        });
        Gathered { runs, series: series.collect(), baselines: of_baselines.collect() }
    }

    fn first(&self) -> &'a Record {
        &self.runs[0].records[0]
    }

    fn seen(&self, before: Option<&Record>, changes: &[Vec<Change>], decide: &dyn Fn(&Sides<'_>) -> String) -> SetUp {
        let first = self.first();
        let places: Vec<Vec<usize>> = self.series.iter().map(GatheredSeries::used).collect();
        let series = self.series.iter().enumerate().map(|(place, series)| {
            let found = changes[place].iter().enumerate();
            let found = found.map(|(which, one)| {
                let behind = changes[place].get(which + 1).map_or(places[place].len(), |next| next.at);
                let from = if which == 0 { 0 } else { changes[place][which - 1].at };
                let at = places[place][one.at];
                let sides = (places[place][from], at, places[place][behind - 1]);
                let machine = self.moved(sides, one).or_else(|| self.together(at, one, (changes, &places)));
                self.change(series, (places[place][one.at - 1], at), *one, machine, decide)
            });
            let changes: Vec<ChangeSeen> = found.collect();
            series.seen(changes)
        });
        SetUp {
            job: first.job.name.clone(),
            subject: words::subject(&self.runs[0].records),
            differs: before.and_then(|before| alike::unlike(before, first)),
            differs_in: before.and_then(|before| alike::what_differs(before, first)).unwrap_or_default(),
            runs: self.runs.iter().map(|run| run_seen(run)).collect(),
            series: series.collect(),
        }
    }

    /// A baseline moved between the same runs, counted from the change before it to the one behind it.
    fn moved(&self, (from, at, last): (usize, usize, usize), change: &Change) -> Option<String> {
        let margin = (change.ratio.interval.near_end()).unwrap_or(0.0).min(MOVED_AT_MOST);
        let is_moved = |numbers: &[Option<f64>]| {
            let of = |part: &[Option<f64>]| part.iter().flatten().copied().collect::<Vec<f64>>();
            change::moved(&of(&numbers[from..at]), &of(&numbers[at..=last]), margin)
        };
        let moved = self.baselines.iter().find(|(_, numbers)| is_moved(numbers))?.0;
        Some(format!("the machine changed: the baseline {moved} moved too"))
    }

    /// Three targets changed together, in the same direction.
    fn together(
        &self,
        at: usize,
        change: &Change,
        (changes, places): (&[Vec<Change>], &[Vec<usize>]),
    ) -> Option<String> {
        let is_up = |change: &Change| change.ratio.estimate > 1.0;
        let changed = self.series.iter().enumerate().filter(|(place, series)| {
            let is_near = |one: &Change| places[*place][one.at].abs_diff(at) <= NEAR && is_up(one) == is_up(change);
            !series.is_baseline && changes[*place].iter().any(is_near)
        });
        let count = changed.count();
        (count >= TOGETHER).then(|| format!("the machine changed: {count} targets moved together"))
    }

    fn change(
        &self,
        series: &GatheredSeries<'_>,
        (before, at): (usize, usize),
        change: Change,
        machine: Option<String>,
        decide: &dyn Fn(&Sides<'_>) -> String,
    ) -> ChangeSeen {
        let of = |place: usize| {
            let records = &self.runs[place].records;
            records.iter().find(|record| record.target.label == series.target && record.store.is_some())
        };
        let versions = series.dots[before].version.as_ref().zip(series.dots[at].version.as_ref());
        let sides = of(before).zip(of(at)).map(|(before_record, after)| Sides {
            before: before_record,
            after,
            paths: [&self.runs[before].path, &self.runs[at].path],
        });
        ChangeSeen {
            at,
            before,
            since: when(&self.runs[at].records[0].run.began),
            change,
            versions: versions.filter(|(one, other)| one != other).map(|(one, other)| format!("{one} -> {other}")),
            machine,
            decide: sides.map_or_else(String::new, |sides| decide(&sides)),
        }
    }
}

/// A baseline that moved by more than this moved in any case, as a share: a store's own step may be large.
const MOVED_AT_MOST: f64 = 0.05;

impl GatheredSeries<'_> {
    /// The places of the runs that count.
    fn used(&self) -> Vec<usize> {
        let dots = self.dots.iter().enumerate();
        dots.filter(|(_, dot)| matches!(dot.seen, DotSeen::Used { .. })).map(|(place, _)| place).collect()
    }

    fn used_numbers(&self) -> Vec<f64> {
        let number = |dot: &Dot| match dot.seen {
            DotSeen::Used { number, .. } => Some(number),
            _ => None,
        };
        self.dots.iter().filter_map(number).collect()
    }

    /// For the detector. The margin is that of a run in the middle: one noisy control decides nothing.
    fn numbers(&self) -> RunSeries {
        let floor = |dot: &Dot| match dot.seen {
            DotSeen::Used { floor, .. } => floor,
            _ => None,
        };
        let floors = Sample::new(self.dots.iter().filter_map(floor).collect());
        RunSeries { numbers: self.used_numbers(), margin: floors.map_or(0.0, |floors| floors.median()) }
    }

    fn seen(&self, changes: Vec<ChangeSeen>) -> SeriesSeen {
        let numbers = self.used_numbers();
        let used = self.used();
        let starts: BTreeSet<usize> = changes.iter().map(|change| change.at).collect();
        let mut levels: Vec<Vec<f64>> = vec![Vec::new()];
        for (place, number) in used.iter().zip(&numbers) {
            if starts.contains(place) {
                levels.push(Vec::new());
            }
            levels.last_mut().expect("there is one").push(libm::log(*number));
        }
        SeriesSeen {
            target: self.target.to_string(),
            is_baseline: self.is_baseline,
            counted: self.counted.clone(),
            dots: self.dots.clone(),
            used: used.len(),
            sd: sd(&levels),
            median: Sample::new(numbers).map(|numbers| numbers.median()),
            changes,
        }
    }
}

/// Around the mean of each level; none where no level has two numbers.
fn sd(levels: &[Vec<f64>]) -> Option<f64> {
    let freedom: usize = levels.iter().map(|level| level.len().saturating_sub(1)).sum();
    let squares = levels.iter().map(|level| {
        let mean = level.iter().sum::<f64>() / level.len().max(1) as f64;
        level.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>()
    });
    (freedom > 0).then(|| (squares.sum::<f64>() / freedom as f64).sqrt())
}

fn run_seen(run: &HistoryRun) -> RunSeen {
    RunSeen { began: when(&run.records[0].run.began), file: run.path.clone() }
}

/// "20261121T020000Z" as people write it.
pub fn when(began: &str) -> String {
    let is_time = began.is_ascii() && began.len() == 16 && began.chars().filter(char::is_ascii_digit).count() == 14;
    let part = |from: usize, to: usize| &began[from..to];
    match is_time {
        true => format!("{}-{}-{} {}:{}", part(0, 4), part(4, 6), part(6, 8), part(9, 11), part(11, 13)),
        false => began.to_string(),
    }
}
