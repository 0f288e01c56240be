//! How the cost of a request grows: with the size of its values, the keys of a question, the keys held, the clients.

use std::collections::BTreeMap;

use serde::Serialize;

use super::point::{self, Point, called};
use kvfair_core::load::Swept;
use kvfair_core::noise::{Gate, Yardstick};
use kvfair_core::part::Part;
use kvfair_core::record::{Outcome, Phase, Record};
use kvfair_stats::growth::{self, Fit, exponent};
use kvfair_stats::paired::LEAST_BLOCKS;
use kvfair_stats::sample::{Sample, TAIL};

/// A cost that grows with a higher power of the size is out of proportion: what takes twice as long for twice as much
/// has the exponent 1, and measuring leaves some doubt.
const NOTABLE: f64 = 1.2;

/// A line for each target and part whose CPU grows out of proportion.
pub fn remarks(points: &[Point]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut seen: Vec<(Part, &str)> = Vec::new();
    let points: Vec<&Point> = points.iter().filter(|point| point.has_number()).collect();
    for point in points.iter().copied().filter(|point| matches!(point.swept, Swept::ValueBytes | Swept::Batch)) {
        let one = (point.part, point.target.as_str());
        if seen.contains(&one) {
            continue;
        }
        seen.push(one);
        let of_one = points.iter().filter(|point| (point.part, point.target.as_str()) == one);
        let costs: Vec<(f64, f64)> = of_one.map(|point| cost(point)).collect();
        if let Some(exponent) = exponent(&costs).filter(|exponent| *exponent > NOTABLE) {
            let (part, of) = match point.swept {
                Swept::Batch => ("question", "the number of its keys"),
                _ => (called(point.part), "the size of its value"),
            };
            remarks.push(format!(
                "{}: the CPU of a {part} grows with {of} to the power of {exponent:.1}: out of proportion",
                point.target
            ));
        }
    }
    remarks
}

/// A size, and the CPU of what has that size.
fn cost(point: &Point) -> (f64, f64) {
    let times = if point.swept == Swept::Batch { f64::from(point.batch) } else { 1.0 };
    (point.step() as f64, point.cpu_us_per_request() * times)
}

/// What there is more and more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    ValueBytes,
    /// Keys of a question.
    Batch,
    /// Keys that the store holds.
    Keys,
    Clients,
}

pub(super) const OVER: [Over; 4] = [Over::ValueBytes, Over::Batch, Over::Keys, Over::Clients];
pub(super) const PARTS: [Part; 2] = [Part::Set, Part::Get];

impl Over {
    fn of(record: &Record) -> Option<Over> {
        let load = record.job.load.as_ref()?;
        Some(match load.swept() {
            Swept::ValueBytes => Over::ValueBytes,
            Swept::Batch => Over::Batch,
            Swept::Clients if load.clients.len() > 1 => Over::Clients,
            Swept::Clients => Over::Keys,
            Swept::Rate => return None,
        })
    }

    /// "a get-many of n keys".
    pub(super) fn what(self, part: Part) -> String {
        match self {
            Over::ValueBytes => format!("a {part} of n bytes"),
            Over::Batch => format!("a {part}-many of n keys"),
            Over::Keys => format!("a {part} of each of n keys"),
            Over::Clients => format!("a {part} by each of n clients"),
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Over::ValueBytes => "bytes",
            Over::Batch | Over::Keys => "keys",
            Over::Clients => "clients",
        }
    }

    /// What n is, as an axis is called.
    pub(super) fn axis(self) -> &'static str {
        match self {
            Over::ValueBytes => "bytes of a value",
            Over::Batch => "keys at once",
            Over::Keys => "keys held",
            Over::Clients => "clients",
        }
    }

    /// What one n-th of the cost is, in microseconds, and how many of its units a microsecond has.
    pub(super) fn each(self, part: Part) -> (String, f64) {
        match self {
            Over::ValueBytes => (format!("CPU ns of a {part}, for each byte of its value"), 1e3),
            Over::Batch => (format!("CPU us of a {part}-many, for each of its keys"), 1.0),
            Over::Keys => (format!("CPU us of a {part}, by the keys held"), 1.0),
            Over::Clients => (format!("CPU us of a {part}, by the clients"), 1.0),
        }
    }
}

/// What is to be thought of a growth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrowthVerdict {
    InProportion,
    OutOfProportion,
    /// And why.
    Unclear(String),
    /// The store does not do it, and why.
    Untried(String),
}

/// Why nothing is said of a cost that was measured so many times.
fn too_few(repetitions: usize) -> String {
    format!("it was measured {repetitions} of {LEAST_BLOCKS} times within the budget")
}

/// What one n costs: CPU of client and server in microseconds, of the repetitions that the fit is of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrownSize {
    pub n: u64,
    pub cpu_us_median: f64,
    pub cpu_us_lowest: f64,
    pub cpu_us_highest: f64,
}

/// How one cost of a target grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    pub target: String,
    pub part: Part,
    pub over: Over,
    /// The smallest and the largest number; 0 where nothing was measured.
    pub from: u64,
    pub to: u64,
    /// That the fit is of.
    pub repetitions: usize,
    /// In ascending order; none where nothing was measured.
    pub sizes: Vec<GrownSize>,
    /// The power that tells most; none where the cost does not grow.
    pub fit: Option<Fit>,
    pub verdict: GrowthVerdict,
}

/// Beyond its exponent, what grows out of proportion costs so many times as much a byte, a key or a client in the end:
/// caches that no longer hold everything and buffers that fill come to less. Where most repetitions are noisy all are
/// used, and it must be so many times.
const DEARER: f64 = 5.0;
const DEARER_NOISY: f64 = 7.0;
/// Powers that are fitted for one target: of two parts from each size on that has two more behind it, the smallest of
/// all excepted. Their intervals hold all together 95 times in 100 (Bonferroni).
const FITS: f64 = 20.0;

/// Above this the exponent is out of proportion, of sizes of which the last is `times` the first.
fn limit(times: f64, dearer: f64) -> f64 {
    NOTABLE.max(1.0 + libm::log(dearer) / libm::log(times))
}

/// Whether a record is of `kvfair growth`: what that command writes into it begins with its name.
pub fn is_of(record: &Record) -> bool {
    record.run.command.first().is_some_and(|name| name == NAME)
}

/// The command.
pub const NAME: &str = "growth";

/// All growths that a command's records tell of: by target as first measured, over what, set and get.
pub fn grown(records: &[Record]) -> Vec<Grown> {
    let mut targets: Vec<&str> = Vec::new();
    for record in records {
        if !targets.contains(&record.target.label.as_str()) {
            targets.push(&record.target.label);
        }
    }
    let each = targets.into_iter().flat_map(|target| {
        let of_it: Vec<&Record> = records.iter().filter(|record| record.target.label == target).collect();
        let yardstick = Yardstick::of(of_it.iter().map(|record| &record.noise));
        OVER.into_iter().flat_map(move |over| {
            let trials: Vec<&Record> = of_it.iter().copied().filter(|record| Over::of(record) == Some(over)).collect();
            PARTS.map(|part| one(target, part, over, &trials, yardstick))
        })
    });
    each.collect()
}

fn one(target: &str, part: Part, over: Over, trials: &[&Record], yardstick: Yardstick) -> Grown {
    let blank = |verdict| {
        let target = target.to_string();
        Grown { target, part, over, from: 0, to: 0, repetitions: 0, sizes: Vec::new(), fit: None, verdict }
    };
    if let Some(why) = trials.iter().find_map(|record| failure(record)) {
        return blank(GrowthVerdict::Untried(why));
    }
    let finished = trials.iter().copied().filter(|record| record.outcome == Outcome::Finished);
    let counted: Vec<&Record> = finished.filter(|record| record.block > 0).collect();
    let noise = |record: &Record| match record.noise.gate(yardstick) {
        Gate::Discard(reasons) => reasons.first().map(ToString::to_string),
        _ => None,
    };
    let quiet: Vec<&Record> = counted.iter().copied().filter(|record| noise(record).is_none()).collect();
    let all = repetitions(&counted, part, over);
    let sizes = all.first().map_or(0, Vec::len);
    let mut quiet = repetitions(&quiet, part, over);
    quiet.retain(|one| one.len() == sizes);
    let is_noisy = quiet.len() < LEAST_BLOCKS;
    let repetitions = if is_noisy { all } else { quiet };
    let Some((first, last)) = repetitions.first().and_then(|one| one.first().zip(one.last())) else {
        return blank(GrowthVerdict::Unclear(too_few(0)));
    };
    let fits = growth::fits(&repetitions, TAIL / FITS);
    let beyond = |fit: &Fit| fit.low - limit(fit.times, if is_noisy { DEARER_NOISY } else { DEARER });
    let worst = fits.iter().copied().max_by(|one, other| beyond(one).total_cmp(&beyond(other)));
    let found = worst.filter(|fit| beyond(fit) > 0.0);
    let fit = found.or(fits.first().copied());
    let may_be = fit.is_some_and(|fit| fit.high > limit(fit.times, DEARER));
    let why = counted.iter().find_map(|record| noise(record)).filter(|_| is_noisy);
    let verdict = if found.is_some() && over == Over::Clients && !counted.iter().all(|record| is_long(record, part)) {
        GrowthVerdict::Unclear(format!("less than {LEAST_CPU_MS} ms of CPU for each client fitted into the budget"))
    } else if found.is_some() {
        GrowthVerdict::OutOfProportion
    } else if repetitions.len() < LEAST_BLOCKS {
        GrowthVerdict::Unclear(too_few(repetitions.len()))
    } else if may_be || (fit.is_none() && is_noisy) {
        GrowthVerdict::Unclear(why.unwrap_or_else(|| "repetitions differ too much".to_string()))
    } else {
        GrowthVerdict::InProportion
    };
    let (from, to) = (first.0 as u64, last.0 as u64);
    Grown { from, to, repetitions: repetitions.len(), sizes: sizes_of(&repetitions), fit, ..blank(verdict) }
}

/// Of repetitions that have the same sizes.
fn sizes_of(repetitions: &[Vec<(f64, f64)>]) -> Vec<GrownSize> {
    let first = repetitions.first().into_iter().flatten().enumerate();
    let each = first.filter_map(|(place, (n, _))| {
        let costs = Sample::new(repetitions.iter().map(|one| one[place].1).collect())?;
        Some(GrownSize {
            n: *n as u64,
            cpu_us_median: costs.median(),
            cpu_us_lowest: costs.lowest(),
            cpu_us_highest: costs.highest(),
        })
    });
    each.collect()
}

/// A client's thread and connection cost CPU once, some 0.1 ms on a quiet machine and more on a busy one. Requests that
/// cost a client's share less than this may cost less than that.
const LEAST_CPU_MS: f64 = 20.0;

/// Whether the requests of this part cost so much CPU for each client that their beginning does not matter.
fn is_long(record: &Record, part: Part) -> bool {
    let of_part = point::measured(record).filter(|(phase, ..)| phase.part == part);
    of_part
        .map(|(phase, ..)| phase)
        .all(|phase| cpu_us(phase) * phase.metrics.units as f64 >= least_cpu_us(phase.clients))
}

fn least_cpu_us(clients: u32) -> f64 {
    LEAST_CPU_MS * 1e3 * f64::from(clients)
}

/// Why the trial has no numbers.
fn failure(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Refused { reason } | Outcome::Failed { reason } | Outcome::Missing { reason, .. } => {
            Some(reason.clone())
        }
        Outcome::Finished if !record.is_right() => Some("its answers were wrong".to_string()),
        // What the budget has cut off is only one repetition less.
        Outcome::Finished | Outcome::TimedOut { .. } | Outcome::LeftOut { .. } => None,
    }
}

/// Of each repetition the sizes and what each cost, in ascending order; only whole repetitions.
fn repetitions(trials: &[&Record], part: Part, over: Over) -> Vec<Vec<(f64, f64)>> {
    let points = |record: &Record| -> BTreeMap<u64, f64> {
        let of_part = point::measured(record).filter(|(phase, ..)| phase.part == part && phase.cut_off.is_none());
        of_part
            .map(|(phase, at, swept)| {
                let number = if over == Over::Keys { records(record) } else { point::step(at, swept) };
                let times = if over == Over::ValueBytes { 1.0 } else { number as f64 };
                (number, cpu_us(phase) * times)
            })
            .collect()
    };
    let as_list = |points: BTreeMap<u64, f64>| points.into_iter().map(|(number, us)| (number as f64, us)).collect();
    if over != Over::Keys {
        let all: Vec<_> = trials.iter().map(|record| points(record)).collect();
        let whole = all.iter().map(BTreeMap::len).max().unwrap_or(0);
        return all.into_iter().filter(|one| one.len() == whole).map(as_list).collect();
    }
    // A trial has one number of keys: the first of each number are one repetition, the second of each another.
    let mut by_number: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (number, us) in trials.iter().flat_map(|record| points(record)) {
        by_number.entry(number).or_default().push(us);
    }
    let count = by_number.values().map(Vec::len).min().unwrap_or(0);
    let of = |place: usize| by_number.iter().map(|(number, us)| (*number, us[place])).collect();
    (0..count).map(|place| as_list(of(place))).collect()
}

fn records(record: &Record) -> u64 {
    record.job.load.as_ref().map_or(0, |load| load.records)
}

/// CPU of client and server a request, in microseconds.
fn cpu_us(phase: &Phase) -> f64 {
    let server_s = phase.server.map_or(0.0, |server| server.cpu_s());
    phase.cpu_us_per_unit(phase.client.cpu_s() + server_s)
}

/// "n^1.9 [1.8-2.0]".
pub(super) fn power(fit: Fit) -> String {
    format!("n^{:.1} [{:.1}-{:.1}]", fit.exponent, fit.low, fit.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_below_1_2_and_higher_over_a_short_way() {
        assert_eq!(limit(1e6, DEARER), NOTABLE);
        assert!((limit(16.0, DEARER) - 1.58).abs() < 0.01 && (limit(256.0, DEARER) - 1.29).abs() < 0.01);
        assert!(limit(16.0, DEARER_NOISY) > limit(16.0, DEARER));
    }

    #[test]
    fn each_size_has_the_middle_and_the_ends_of_its_repetitions() {
        let sizes =
            sizes_of(&[vec![(1.0, 2.0), (4.0, 9.0)], vec![(1.0, 4.0), (4.0, 8.0)], vec![(1.0, 3.0), (4.0, 7.0)]]);
        let told: Vec<_> =
            sizes.iter().map(|size| (size.n, size.cpu_us_lowest, size.cpu_us_median, size.cpu_us_highest)).collect();
        assert_eq!(told, [(1, 2.0, 3.0, 4.0), (4, 7.0, 8.0, 9.0)]);
        assert_eq!(sizes_of(&[]), []);
    }
}
