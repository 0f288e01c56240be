//! What a fresh start is worth, and how long a trial should be: trials that each start their server anew, beside slices
//! as long of one server that stays up.

use std::time::Instant;

use kvfair::model::record::Record;

use super::{Bench, Outcome};

const RUN: &[&str] = &["getset", "redis+unix", "--only", "set", "--clients", "50"];
/// Requests of a trial, about ten seconds of them, and the trials: two a block.
const REQUESTS: u64 = 2_500_000;
const BLOCKS: u64 = 6;
const TRIALS: u64 = 2 * BLOCKS;

/// Where slices are as far apart as trials are, a start changes nothing, and servers that take turns without being
/// started anew would tell as much in less time.
pub fn measure(bench: &Bench) -> Outcome {
    let run = |requests: u64, blocks: u64| {
        let (requests, blocks) = (requests.to_string(), blocks.to_string());
        let began = Instant::now();
        let records = bench.records(&[RUN, &["--requests", &requests, "--blocks", &blocks]].concat());
        let working_s: f64 = records.iter().filter_map(Record::took_s).sum();
        let besides_s = (began.elapsed().as_secs_f64() - working_s) / records.len() as f64;
        // A block that is not counted comes first where there are several.
        let last = records.len().saturating_sub(TRIALS as usize);
        (records[last..].iter().map(seconds).collect::<Vec<_>>(), besides_s)
    };
    let (trials, start_s) = run(REQUESTS, BLOCKS);
    let (running, _) = run(REQUESTS * TRIALS, 1);
    let length = mean(&trials.iter().map(|logs| logs.len() as f64).collect::<Vec<f64>>()) as usize;
    let of_trials: Vec<f64> = trials.iter().map(|logs| mean(logs)).collect();
    let of_slices: Vec<f64> = running[0].chunks_exact(length).map(mean).collect();
    // Kalibera and Jones, ISMM 2013: of what trials differ by, what their seconds alone would make them differ by is
    // taken off; the best length weighs what is left against the price of a start.
    let within = mean(&trials.iter().map(|logs| variance(logs)).collect::<Vec<f64>>());
    let between = variance(&of_trials) - within / length as f64;
    let best_s = if between > 0.0 { (start_s * within / between).sqrt().ceil().max(1.0) } else { f64::INFINITY };
    let (slices, trials) = (variance(&of_slices).sqrt(), variance(&of_trials).sqrt());
    let line = format!(
        "{TRIALS} trials of {length} s spread by {:.1} %, {} slices as long of one server by {:.1} %; seconds within a \
         trial by {:.1} %, and with {start_s:.1} s a trial besides Kalibera and Jones' best trial is {best_s:.0} s",
        trials * 100.0,
        of_slices.len(),
        slices * 100.0,
        within.sqrt() * 100.0,
    );
    Outcome { line, holds: trials > slices }
}

/// Logarithms of what each whole second of a trial did.
fn seconds(record: &Record) -> Vec<f64> {
    let run = record.measured().next().expect("a part");
    let (_, whole) = run.units_by_second.split_last().expect("seconds");
    whole.iter().map(|&units| (units as f64).ln()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let middle = mean(values);
    values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}
