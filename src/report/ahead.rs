//! How the gap between embedded and served stores changes with the job's size: by the trials of a run, and by one trial
//! each of a job some times as large.

use super::cells::Row;
use crate::words::record::Record;
use crate::words::units;

/// A ratio that changes by less than this, either way, says nothing: the larger job was seen but once.
const SAME: f64 = 1.5;

/// The records of a run that count, and those of the larger job, which come last.
pub fn split(records: &[Record]) -> (&[Record], &[Record]) {
    records.split_at(records.iter().position(|record| record.ahead).unwrap_or(records.len()))
}

/// A size, and what a target took there, in seconds.
type Seen = (u64, f64);

/// A served store beside the embedded one, at both sizes: how many times as long it took.
struct Gap<'a> {
    served: &'a str,
    smaller: f64,
    larger: f64,
}

/// How the gaps changed, and the command that tells how they are at the job's full size of `full` units. A change
/// counts where it is beyond what two ratios may be off by the run's noise floor, `noise_floor` as a share. What a gap
/// comes to at the full size is not foretold: two sizes do not tell, since values grow with a job and at some size no
/// longer fit into a cache. Nothing where no embedded or no served store finished the larger job.
pub fn sentence(rows: &[Row], ahead: &[Record], full: u64, noise_floor: f64) -> String {
    let same = SAME.max((1.0 + noise_floor).powi(2));
    let both = |record: &Record| -> Option<(String, bool, Seen, Seen)> {
        let row = rows.iter().find(|row| row.target == record.target.label)?;
        let numbers = row.numbers.as_ref()?;
        let smaller = (numbers.units_per_s * numbers.seconds).round() as u64;
        let (larger, took_s) = (record.stream.units, record.took_s().filter(|_| record.is_right())?);
        Some((row.target.clone(), record.memory.server.is_some(), (smaller, numbers.seconds), (larger, took_s)))
    };
    let all: Vec<_> = ahead.iter().filter_map(both).collect();
    let Some((base, _, smaller, larger)) = all.iter().find(|(_, is_served, ..)| !is_served) else {
        return String::new();
    };
    let gap = |one: &'_ (String, bool, Seen, Seen)| (one.2.1 / smaller.1, one.3.1 / larger.1);
    let gaps: Vec<Gap> = all
        .iter()
        .filter(|(_, is_served, ..)| *is_served)
        .map(|one| Gap { served: &one.0, smaller: gap(one).0, larger: gap(one).1 })
        .collect();
    let Some(first) = gaps.first() else { return String::new() };
    let job = ahead[0].job.name.as_str();
    let unit = format!("{}s", ahead[0].stream.unit);
    let (n1, n2, n3) = (units::thousands(smaller.0), units::thousands(larger.0), units::thousands(full));
    let mut told = format!(
        "{} takes {}x as long as {base} at {n1} {unit} and {}x at {n2}",
        first.served,
        digits(first.smaller),
        digits(first.larger)
    );
    for gap in &gaps[1..] {
        told += &format!(", {} {}x and {}x", gap.served, digits(gap.smaller), digits(gap.larger));
    }
    told += &format!(" (seen once): {}", course(&gaps, same));
    let served: Vec<&str> = gaps.iter().map(|gap| gap.served).collect();
    if larger.0 < full {
        told += &format!("; at {n3}: `kvfair run {job} --{unit} {full} {base} {}` takes 2 minutes", served.join(" "));
    }
    format!("{told}.")
}

/// Whether gaps shrink or grow with size, by more than `same` times.
fn course(gaps: &[Gap<'_>], same: f64) -> String {
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
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(smaller: f64, larger: f64) -> Gap<'static> {
        Gap { served: "redis", smaller, larger }
    }

    #[test]
    fn a_gap_changes_by_more_than_one_look_may_err() {
        assert_eq!(course(&[gap(46.0, 19.0)], SAME), "the gap shrinks with size");
        assert_eq!(course(&[gap(46.0, 19.0), gap(5.0, 3.0)], SAME), "the gaps shrink with size");
        assert_eq!(course(&[gap(5.0, 5.5)], SAME), "no change of the gap with size beyond the noise");
        assert_eq!(course(&[gap(2.0, 5.0)], SAME), "the gap grows with size");
        assert_eq!(course(&[gap(2.0, 5.0), gap(2.0, 1.0)], SAME), "not all gaps change alike with size");
        assert_eq!(course(&[gap(46.0, 19.0)], 3.0), "no change of the gap with size beyond the noise");
    }
}
