//! How the gap between embedded and served stores changes with the job's size: by the trials of a run, and by a few
//! trials each of a job some times as large.

use super::cells::Row;
use super::versus;
use kvfair_core::effort::Effort;
use kvfair_core::record::Record;
use kvfair_core::shell;
use kvfair_core::trial::Transport;
use kvfair_core::units;
use kvfair_stats::floor::AaNoise;
use kvfair_stats::sample::Sample;

/// The records of a run that count, and those of the larger job, which come last.
pub fn split(records: &[Record]) -> (&[Record], &[Record]) {
    records.split_at(records.iter().position(|record| record.ahead).unwrap_or(records.len()))
}

/// A target at both sizes: the medians of what it took, in seconds.
struct Seen<'a> {
    target: &'a str,
    is_served: bool,
    smaller_units: u64,
    took_s: [f64; 2],
}

/// A served store beside the embedded one, at both sizes: how many times as long it took.
#[derive(Debug)]
struct Gap<'a> {
    served: &'a str,
    smaller: f64,
    larger: f64,
}

/// How the gaps changed; then what is to be expected at the job's full size of `full` units, and the command that
/// measures it. A change counts where it is beyond the run's noise floor at both sizes. Nothing where no embedded or no
/// served store finished the larger job.
pub fn sentences(rows: &[Row], ahead: &[Record], full: u64, noise: &AaNoise) -> Vec<String> {
    let all: Vec<Seen<'_>> = rows.iter().filter_map(|row| seen(row, ahead)).collect();
    let Some(base) = all.iter().find(|one| !one.is_served) else { return Vec::new() };
    let gaps: Vec<Gap<'_>> = all
        .iter()
        .filter(|one| one.is_served)
        .map(|one| Gap {
            served: one.target,
            smaller: one.took_s[0] / base.took_s[0],
            larger: one.took_s[1] / base.took_s[1],
        })
        .collect();
    let (Some(first), Some(record)) = (gaps.first(), ahead.first()) else { return Vec::new() };
    let unit = format!("{}s", record.stream.unit);
    let larger = record.stream.units;
    let smaller = base.smaller_units;
    let times = ahead.iter().map(|record| record.block).max().unwrap_or(1);
    let mut changed = format!(
        "{} takes {}x as long as {} at {} {unit} and {}x at {}",
        first.served,
        digits(first.smaller),
        base.target,
        units::thousands(smaller),
        digits(first.larger),
        units::thousands(larger)
    );
    for gap in &gaps[1..] {
        changed += &format!(", {} {}x and {}x", gap.served, digits(gap.smaller), digits(gap.larger));
    }
    let seen = if times == 1 { "one trial there".to_string() } else { format!("the median of {times} trials there") };
    changed += &format!(" ({seen}): {}.", course(&gaps, noise.floor()));
    if larger >= full {
        return vec![changed];
    }
    let expected = forecasts(rows, ahead, full, noise.floor()).into_iter().filter(|_| may_foretell(noise));
    let expected: Vec<String> = expected
        .filter(|forecast| forecast.high <= forecast.low * TELLING)
        .map(|Forecast { served, low, high, .. }| format!("{}-{}x for {served}", digits(low), digits(high)))
        .collect();
    let expected = match expected.is_empty() {
        true => format!("The noise hides what to expect at {}", units::thousands(full)),
        false => format!("At {} expect {}", units::thousands(full), expected.join(", ")),
    };
    let served: Vec<&str> = all.iter().filter(|one| one.is_served).map(|one| one.target).collect();
    let sized = ["run", &record.job.name, &format!("--{unit}"), &full.to_string(), base.target];
    let command = shell::command(sized.iter().chain(&served));
    vec![changed, format!("{expected}; `{command}` measures it, in as many blocks as fit into {}.", minutes())]
}

/// Beyond this noise floor nothing is foretold, nor where most blocks were discarded: both sizes would carry the noise
/// into a size many times as large.
const NOISE_MAX: f64 = 0.1;

fn may_foretell(noise: &AaNoise) -> bool {
    !noise.most_discarded() && noise.floor() <= NOISE_MAX
}

/// How many times as long a served target is expected to take as the embedded one, at the full size.
#[derive(Debug)]
pub struct Forecast<'a> {
    pub embedded: &'a str,
    pub served: &'a str,
    pub low: f64,
    pub high: f64,
}

/// A forecast for each served target, told or not; none where no embedded store finished the larger job.
pub fn forecasts<'a>(rows: &'a [Row], ahead: &[Record], full: u64, noise_floor: f64) -> Vec<Forecast<'a>> {
    let all: Vec<Seen<'a>> = rows.iter().filter_map(|row| seen(row, ahead)).collect();
    let (Some(base), Some(record)) = (all.iter().find(|one| !one.is_served), ahead.first()) else { return Vec::new() };
    let sizes = [base.smaller_units, record.stream.units, full].map(|units| units as f64);
    let of = |one: &Seen<'a>| {
        let (low, high) = expected(base.took_s, one.took_s, sizes, noise_floor);
        Forecast { embedded: base.target, served: one.target, low, high }
    };
    all.iter().filter(|one| one.is_served).map(of).collect()
}

/// "2 minutes": what a run takes unless it is told otherwise.
fn minutes() -> String {
    let seconds = Effort::default().budget().map_or(0, |budget| budget.as_secs());
    format!("{} minutes", seconds / 60)
}

/// A range that is wider than so many times tells nothing.
const TELLING: f64 = 8.0;

/// What a row's target took at both sizes, if it finished both.
fn seen<'a>(row: &'a Row, ahead: &[Record]) -> Option<Seen<'a>> {
    let numbers = row.numbers.as_ref()?;
    let larger = ahead.iter().filter(|record| record.target.label == row.target && record.is_right());
    let larger_s = Sample::new(larger.filter_map(Record::took_s).collect())?.median();
    let is_served = row.transport != Transport::InProcess;
    let smaller_units = (numbers.units_per_s * numbers.seconds).round() as u64;
    Some(Seen { target: &row.target, is_served, smaller_units, took_s: [numbers.seconds, larger_s] })
}

/// Between which ratios a gap is expected to lie at the job's full size, of `smaller`, `larger` and `full` units: as it
/// is at the larger size; as it is if both costs go on with the power that they had between the two; as it is if the
/// cost of a unit goes on to rise by as much a unit; and as it is if a unit of the served store costs no more than at
/// the larger size, since most of it is waiting, while the embedded store's cost goes on with its power. `noise_floor`
/// widens both ends.
fn expected(base: [f64; 2], served: [f64; 2], sizes: [f64; 3], noise_floor: f64) -> (f64, f64) {
    let ways = [same_power, same_rise].map(|way| way(served, sizes) / way(base, sizes));
    let as_dear = served[1] * sizes[2] / sizes[1] / same_power(base, sizes);
    let ways = ways.into_iter().chain([as_dear]);
    let ends = ways.fold([served[1] / base[1]; 2], |[low, high], way| [low.min(way), high.max(way)]);
    (ends[0] / (1.0 + noise_floor), ends[1] * (1.0 + noise_floor))
}

/// The seconds at the full size of a cost `c * n^e`.
fn same_power([smaller_s, larger_s]: [f64; 2], [smaller, larger, full]: [f64; 3]) -> f64 {
    larger_s * libm::pow(full / larger, libm::log(larger_s / smaller_s) / libm::log(larger / smaller))
}

/// The seconds at the full size of a cost `a * n + b * n^2`, as of values that grow with the job; neither part is
/// below 0.
fn same_rise([smaller_s, larger_s]: [f64; 2], [smaller, larger, full]: [f64; 3]) -> f64 {
    let rise = (larger_s / larger - smaller_s / smaller) / (larger - smaller);
    let rise = rise.clamp(0.0, larger_s / larger.powi(2));
    (larger_s / larger + rise * (full - larger)) * full
}

/// Whether gaps shrink or grow with size, beyond what two ratios may be off.
fn course(gaps: &[Gap<'_>], noise_floor: f64) -> String {
    let same = (1.0 + noise_floor).powi(2);
    let shrinks = |gap: &Gap<'_>| gap.larger * same < gap.smaller;
    let grows = |gap: &Gap<'_>| gap.larger > gap.smaller * same;
    let (gap, s) = if gaps.len() == 1 { ("the gap", "s") } else { ("the gaps", "") };
    match gaps {
        _ if gaps.iter().all(shrinks) => format!("{gap} shrink{s} with size"),
        _ if gaps.iter().all(grows) => format!("{gap} grow{s} with size"),
        _ if gaps.iter().any(|gap| shrinks(gap) || grows(gap)) => "not all gaps change alike with size".to_string(),
        _ => format!("no change of {gap} with size beyond the noise"),
    }
}

/// As many as one look supports: two.
fn digits(ratio: f64) -> String {
    versus::digits(ratio, if ratio < 9.95 { 1 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvfair_stats::floor::Control;
    use kvfair_stats::paired::Interval;

    #[test]
    fn nothing_is_foretold_of_a_noisy_run() {
        let control = |low, high| Control { interval: Interval::Exact { low, high }, length_s: 1.0 };
        let may = |low, high, most_discarded| may_foretell(&AaNoise::of([control(low, high)], most_discarded));
        assert!(may(0.98, 1.03, false) && may(0.93, 1.06, false));
        assert!(!may(0.98, 1.03, true), "most blocks were discarded");
        assert!(!may(0.95, 1.12, false), "a control lies beyond 10 %");
    }

    fn gap(smaller: f64, larger: f64) -> Gap<'static> {
        Gap { served: "redis", smaller, larger }
    }

    #[test]
    fn a_gap_changes_by_more_than_the_noise() {
        assert_eq!(course(&[gap(46.0, 19.0)], 0.02), "the gap shrinks with size");
        assert_eq!(course(&[gap(46.0, 19.0), gap(5.0, 3.0)], 0.02), "the gaps shrink with size");
        assert_eq!(course(&[gap(5.0, 5.1)], 0.02), "no change of the gap with size beyond the noise");
        assert_eq!(course(&[gap(2.0, 5.0)], 0.02), "the gap grows with size");
        assert_eq!(course(&[gap(2.0, 5.0), gap(2.0, 1.0)], 0.02), "not all gaps change alike with size");
        assert_eq!(course(&[gap(46.0, 19.0)], 1.0), "no change of the gap with size beyond the noise");
    }

    /// By hand, of costs n and n^2 / 1000 (each a power), and n + n^2 / 1000.
    #[test]
    fn costs_go_on_as_they_were() {
        let sizes = [500.0, 2_000.0, 8_000.0];
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
        near(same_power([500.0, 2_000.0], sizes), 8_000.0);
        near(same_power([250.0, 4_000.0], sizes), 64_000.0);
        near(same_rise([500.0, 2_000.0], sizes), 8_000.0);
        near(same_rise([250.0, 4_000.0], sizes), 64_000.0);
        near(same_rise([750.0, 6_000.0], sizes), 72_000.0);
        near(same_rise([500.0, 1_000.0], sizes), 4_000.0);
    }

    /// What one machine took for 470 and 1,880 profiles, and then for 10,000: 9.8 and 10.6 times.
    #[test]
    fn what_is_expected_is_what_was_then_measured() {
        let sizes = [470.0, 1_880.0, 10_000.0];
        let embedded = [0.0153, 0.1059];
        let (low, high) = expected(embedded, [0.509, 2.272], sizes, 0.09);
        assert!(low < 9.8 && 9.8 < high && (low, high) > (9.0, 23.0), "{low} {high}");
        let (low, high) = expected(embedded, [0.5545, 2.452], sizes, 0.09);
        assert!(low < 10.6 && 10.6 < high && high < 26.0, "{low} {high}");
        assert_eq!(expected([1.0, 4.0], [2.0, 8.0], sizes, 0.0), (2.0, 2.0));
        // Another machine took 15.1 times as long at 10,000, after 0.0055 and 0.03843 s, and 0.22296 and 1.4272 s.
        let (low, high) = expected([0.0055, 0.03843], [0.22296, 1.4272], [250.0, 1_000.0, 10_000.0], 0.02);
        assert!(low < 15.1 && 15.1 < high && low > 14.0, "{low} {high}");
    }
}
