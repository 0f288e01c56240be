//! Change points tried on series whose true steps are known. A number is the ratio of a target to the baseline of its
//! own run: what a machine does to all of a run is in none of them. The sd is that of these ratios between runs.

use kvfair_stats::change::{Change, RunSeries, changes};

use super::each;
use super::noise::Random;

const RUNS: usize = 30;
/// A step is found in its place where it is told so many runs from it at most.
const NEAR: usize = 2;

/// Noise between runs: its standard deviation, and what of it the next run keeps.
#[derive(Clone, Copy)]
struct Between {
    sd: f64,
    kept: f64,
}

/// A series with a step of that size after so many runs.
fn series(between: Between, step: f64, after: usize, seed: u64) -> RunSeries {
    let mut random = Random::new(seed);
    let mut noise = between.sd * random.normal();
    let fresh = between.sd * (1.0 - between.kept * between.kept).sqrt();
    let numbers = (0..RUNS).map(|run| {
        let level = if run < after { 1.0 } else { 1.0 + step };
        let number = level * noise.exp();
        noise = between.kept * noise + fresh * random.normal();
        number
    });
    RunSeries { numbers: numbers.collect(), margin: 0.02 }
}

fn found(between: Between, step: f64, after: usize, seed: u64) -> Vec<Change> {
    changes(&[series(between, step, after, seed)]).remove(0)
}

/// In so many of 100 series the step is found: at all, and in its place.
fn shares(between: Between, step: f64, after: usize, all: u64) -> [f64; 2] {
    let seen = each(all, |seed| {
        let changes = found(between, step, after, seed);
        let is_up = |change: &&Change| change.ratio.estimate > 1.0;
        let is_near = |change: &Change| change.at.abs_diff(after) <= NEAR;
        (changes.iter().any(|change| is_up(&change)), changes.iter().filter(is_up).any(is_near))
    });
    let share = |is: fn(&(bool, bool)) -> bool| 100.0 * seen.iter().filter(|seen| is(seen)).count() as f64 / all as f64;
    [share(|seen| seen.0), share(|seen| seen.1)]
}

fn false_alarms(between: Between, all: u64) -> f64 {
    let alarmed = each(all, |seed| !found(between, 0.0, RUNS, seed).is_empty());
    100.0 * alarmed.iter().filter(|alarmed| **alarmed).count() as f64 / all as f64
}

/// What is promised: white noise of 5 %, a step of 10 % in the middle.
#[test]
fn a_step_of_10_percent_is_found_and_no_other() {
    let between = Between { sd: 0.05, kept: 0.0 };
    let ([at_all, in_place], alarms) = (shares(between, 0.1, 15, 200), false_alarms(between, 400));
    eprintln!(
        "history: white noise, sd 5 %, a step of 10 % after run 15 of 30: found in {at_all:.1} of 100 series, within {NEAR} runs in {in_place:.1}; false alarms in {alarms:.1} of 100"
    );
    assert!(at_all >= 90.0 && alarms <= 5.0, "found {at_all}, alarms {alarms}");
}

/// The table of docs/statistics.md.
#[test]
#[ignore = "a table of thousands of series"]
fn steps_by_size_place_and_noise() {
    const ALL: u64 = 1_000;
    for kept in [0.0, 0.3] {
        let name = if kept == 0.0 { "white noise" } else { "autocorrelation 0.3" };
        for sd in [0.01, 0.02, 0.03, 0.05] {
            let between = Between { sd, kept };
            let alarms = false_alarms(between, ALL);
            eprintln!("history: {name}, sd {:.0} %: false alarms in {alarms:.1} of 100 series", sd * 100.0);
            for step in [0.05, 0.1, 0.2] {
                let cells = [5, 10, 15, 20, 25].map(|after| {
                    let [at_all, in_place] = shares(between, step, after, ALL);
                    format!("{at_all:.1} ({in_place:.1})")
                });
                eprintln!(
                    "history: {name}, sd {:.0} %, a step of {:.0} % after run 5, 10, 15, 20, 25 of 30: {}",
                    sd * 100.0,
                    step * 100.0,
                    cells.join(", ")
                );
            }
            // Other noise has a level of its own, which is told and not promised.
            assert!(kept > 0.0 || alarms <= 5.0, "{name}, sd {sd}: {alarms}");
        }
    }
}
