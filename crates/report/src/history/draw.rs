//! A picture for each target of a job: its runs from left to right, across the set-ups that follow each other.

use super::text::day;
use super::{Dot, DotSeen, HistoryReport, OtherMethodRun, SeriesSeen, SetUp};
use crate::chart::palette::Inks;
use crate::chart::{Chart, Plot, PlotLevel, PlotLine, PlotPoint, PlotRule, PlotSteps, notes_of_steps};
use kvfair_stats::sample::Sample;

/// A page with more pictures is none that anybody looks through.
const CHARTS_MAX: usize = 24;

/// The pictures, those with changes first, and how many there is no room for.
pub fn charts(report: &HistoryReport) -> (Vec<Chart>, usize) {
    let mut tracks: Vec<Track<'_>> = Vec::new();
    for setup in &report.setups {
        for series in &setup.series {
            match tracks.iter_mut().find(|track| track.is_followed_by(setup, series)) {
                Some(track) => track.parts.push((setup, series)),
                None => tracks.push(Track { parts: vec![(setup, series)] }),
            }
        }
    }
    tracks.retain(|track| track.has_numbers());
    tracks.sort_by_key(|track| (!track.has_changes(), track.parts[0].1.is_baseline));
    let left_out = tracks.len().saturating_sub(CHARTS_MAX);
    let of_one = |track: &Track<'_>| tracks.iter().filter(|other| other.name() == track.name()).count();
    let chart = |track: &Track<'_>| {
        let chart = track.chart(&report.other_methods);
        // Two set-ups in turn have a picture each.
        let title =
            if of_one(track) > 1 { format!("{} · {}", track.name(), track.parts[0].0.subject) } else { track.name() };
        Chart { title, ..chart }
    };
    (tracks.iter().take(CHARTS_MAX).map(chart).collect(), left_out)
}

/// One target of a job under set-ups of which each begins when the one before it has ended.
struct Track<'a> {
    parts: Vec<(&'a SetUp, &'a SeriesSeen)>,
}

impl<'a> Track<'a> {
    fn is_followed_by(&self, setup: &SetUp, series: &SeriesSeen) -> bool {
        let (before, target) = self.parts[self.parts.len() - 1];
        let is_over = before.runs.last().map(|run| &run.began) < setup.runs.first().map(|run| &run.began);
        before.job == setup.job && target.target == series.target && target.counted == series.counted && is_over
    }

    fn name(&self) -> String {
        format!("{}, {}", self.parts[0].0.job, self.parts[0].1.target)
    }

    fn has_numbers(&self) -> bool {
        let mut seen = self.parts.iter().flat_map(|(_, series)| &series.dots);
        seen.any(|dot| matches!(dot.seen, DotSeen::Used { .. } | DotSeen::Noisy { .. }))
    }

    fn has_changes(&self) -> bool {
        self.parts.iter().any(|(_, series)| !series.changes.is_empty())
    }

    fn chart(&self, others: &[OtherMethodRun]) -> Chart {
        let series = self.parts[0].1;
        let mut steps = PlotSteps { is_joined: true, ..PlotSteps::default() };
        let (mut names, mut points) = (Vec::new(), Vec::new());
        for (place, (setup, series)) in self.parts.iter().enumerate() {
            let from = names.len();
            steps.rules.extend((place > 0).then(|| self.another_set_up(place, from)));
            names.extend(setup.runs.iter().map(|run| day(&run.began).to_string()));
            points.extend(series.dots.iter().map(point));
            let failed = series.dots.iter().enumerate().filter(|(_, dot)| matches!(dot.seen, DotSeen::Failed { .. }));
            steps.failed.extend(failed.map(|(place, _)| from + place));
            steps.rules.extend(new_versions(series, from));
            steps.levels.extend(levels(series, from));
        }
        for other in others.iter().filter(|other| other.job == self.parts[0].0.job) {
            self.break_at(&mut steps.rules, other);
        }
        let ink = Inks::of([(series.target.as_str(), false)].into_iter()).ink(&series.target);
        let line = PlotLine { target: series.target.clone(), remark: String::new(), ink, points };
        let plot = Plot::of_steps(&series.counted, "runs in the order of time", names, line, steps);
        let words = [
            "Dots: runs, with their 95 % intervals; thin lines join runs that follow each other.",
            "A step is only a reason to look: the paired run in the table decides.",
        ];
        let notes = notes_of_steps(&plot, &words);
        Chart { title: self.name(), plots: vec![plot], notes }
    }

    /// Before a set-up that follows another one. What differs is told of the set-up before it of the same job, which
    /// may be another one.
    fn another_set_up(&self, place: usize, from: usize) -> PlotRule {
        let (before, setup) = (self.parts[place - 1].0, self.parts[place].0);
        let words = match setup.differs_in.is_empty() {
            true => "another set-up".to_string(),
            false => format!("another {}", setup.differs_in),
        };
        let words = if before.subject == setup.subject { words } else { format!("{words}: {}", setup.subject) };
        PlotRule { before: from, words, is_break: true }
    }

    /// An upright line where a run by another method lies between two of these, before them or behind them.
    fn break_at(&self, rules: &mut Vec<PlotRule>, other: &OtherMethodRun) {
        let runs = self.parts.iter().flat_map(|(setup, _)| &setup.runs);
        let before = runs.filter(|run| run.began < other.began).count();
        let words = format!("method {}: not comparable", other.method);
        match rules.iter_mut().find(|rule| rule.is_break && rule.before == before) {
            Some(rule) if rule.words.contains(&words) => {}
            Some(rule) => rule.words = format!("{}; {words}", rule.words),
            None => rules.push(PlotRule { before, words, is_break: true }),
        }
    }
}

/// Of a run that has a number.
fn point(dot: &Dot) -> Option<PlotPoint> {
    match dot.seen {
        DotSeen::Used { number, low, high, .. } => {
            Some(PlotPoint { number, span: low.zip(high).map(|(low, high)| [low, high]), doubt: "" })
        }
        DotSeen::Noisy { number, .. } => Some(PlotPoint { number, span: None, doubt: "noisy" }),
        DotSeen::Failed { .. } | DotSeen::Absent => None,
    }
}

/// Where the store told another version than in the run before.
fn new_versions(series: &SeriesSeen, from: usize) -> Vec<PlotRule> {
    let told = series.dots.iter().enumerate().filter_map(|(place, dot)| Some((place, dot.version.as_ref()?)));
    let told: Vec<(usize, &String)> = told.collect();
    let new = told.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    new.map(|pair| PlotRule { before: from + pair[1].0, words: pair[1].1.clone(), is_break: false }).collect()
}

/// The median between changes; nothing where too few runs say anything.
fn levels(series: &SeriesSeen, from: usize) -> Vec<PlotLevel> {
    let starts: Vec<usize> = [0].into_iter().chain(series.changes.iter().map(|change| change.at)).collect();
    let ends = starts.iter().skip(1).copied().chain([series.dots.len()]);
    let level = |(first, end): (&usize, usize)| {
        let numbers = series.dots[*first..end].iter().filter_map(|dot| match dot.seen {
            DotSeen::Used { number, .. } => Some(number),
            _ => None,
        });
        let median = Sample::new(numbers.collect())?.median();
        Some(PlotLevel { first: from + first, last: from + end - 1, number: median })
    };
    if series.used < kvfair_stats::change::LEAST_RUNS {
        return Vec::new();
    }
    starts.iter().zip(ends).filter_map(level).collect()
}
