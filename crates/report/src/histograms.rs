//! Full histograms of op times as other tools read them: HdrHistogram's percentile text (`.hgrm`, for its plotter) and
//! its interval log (`.hlog`, V2, compressed as its Java and Python readers want it).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::standing::Counted;
use super::times::times;
use kvfair_core::hist::{Packed, Times};
use kvfair_core::load::{Load, Swept};
use kvfair_core::names::file_name;
use kvfair_core::record::{Outcome, Phase, Record};
use kvfair_core::units;

/// The log with all histograms in it.
const LOG: &str = "histograms.hlog";
/// Rows of the percentile text on each half of the way that is left to 100 %, as HdrHistogram's own writers have it.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Values are written in microseconds with three places behind the point, so that no nanosecond is lost.
const NS_PER_US: f64 = 1000.0;

/// One target in one part with one number of clients or rate, all blocks together.
struct Merged {
    /// "redis+unix.set.50": the file's name without its ending, and the log's tag. No other histogram has it.
    name: String,
    times: Times,
    took_s: f64,
    blocks: usize,
    /// The fewest and the most ops of which one was timed.
    timed_one_in: (u32, u32),
}

/// What to write, as names of files and their text: one `.hgrm` a histogram, and `histograms.hlog`. Of trials that
/// finished with right answers and were timed; nothing where there are none.
pub fn files(records: &[Record]) -> Result<Vec<(String, String)>> {
    let merged = merged(records)?;
    if merged.is_empty() {
        return Ok(Vec::new());
    }
    let mut files: Vec<(String, String)> =
        merged.iter().map(|one| (format!("{}.hgrm", one.name), percentiles(one))).collect();
    files.push((LOG.to_string(), log(&merged)?));
    Ok(files)
}

fn merged(records: &[Record]) -> Result<Vec<Merged>> {
    let mut found: BTreeMap<(&str, String), Merged> = BTreeMap::new();
    let counted = Counted::of(records);
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right() && counted.has(record);
    for record in records.iter().filter(right).filter(|record| !record.run.answers_only) {
        for phase in record.measured() {
            if times(record, phase, &phase.times_ns)?.count() == 0 {
                continue;
            }
            for (named, packed) in histograms(record, phase) {
                let key = (record.target.label.as_str(), named);
                let one = found.entry(key).or_insert_with(|| Merged {
                    name: String::new(),
                    times: Times::default(),
                    took_s: 0.0,
                    blocks: 0,
                    timed_one_in: (phase.timed_one_in, phase.timed_one_in),
                });
                one.times.merge(&times(record, phase, packed)?);
                one.took_s += phase.took_s;
                one.blocks += 1;
                let (fewest, most) = one.timed_one_in;
                one.timed_one_in = (fewest.min(phase.timed_one_in), most.max(phase.timed_one_in));
            }
        }
    }
    let mut all: Vec<Merged> = Vec::new();
    for ((target, named), one) in found {
        let name = unlike(format!("{}.{named}", file_name(target)), &all);
        all.push(Merged { name, ..one });
    }
    Ok(all)
}

/// What a phase has, by name: "set.50", or at a rate "set.50.2000.response" with its service and its lag beside it.
fn histograms<'a>(record: &Record, phase: &'a Phase) -> Vec<(String, &'a Packed)> {
    // Phases did not tell it before there were sweeps.
    let clients = if phase.clients == 0 { record.clients } else { phase.clients };
    let points = record.job.load.as_ref().map_or_else(Vec::new, |load| load.points(record.job.units, 0));
    // What is the same at all points need not be told.
    let swept = record.job.load.as_ref().map_or(Swept::Clients, Load::swept);
    let at = points.iter().find(|at| at.number == phase.point);
    let name = match (swept, at) {
        (Swept::ValueBytes, Some(at)) => format!("{}.{clients}.{}-bytes", phase.part, at.value_bytes),
        (Swept::Batch, Some(at)) => format!("{}.{clients}.{}-keys", phase.part, at.batch),
        _ => format!("{}.{clients}", phase.part),
    };
    let Some(open) = &phase.open else { return vec![(name, &phase.times_ns)] };
    let all = [("response", &open.response_ns), ("service", &phase.times_ns), ("lag", &open.lag_ns)];
    all.map(|(kind, times)| (format!("{name}.{}.{kind}", open.rate), times)).to_vec()
}

/// The name, with a number behind it where different labels have become the same name.
fn unlike(name: String, taken: &[Merged]) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = |name: &String| !taken.iter().any(|other| other.name == *name);
    std::iter::once(name.clone()).chain(numbered).find(free).expect("numbers do not run out")
}

/// HdrHistogram's percentile text, in microseconds. What it has no field for stands in comments below.
fn percentiles(one: &Merged) -> String {
    let times = one.times.histogram();
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut total = 0;
    for step in times.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let (value_us, quantile) = (step.value_iterated_to() as f64 / NS_PER_US, step.quantile_iterated_to());
        let _ = write!(text, "{value_us:12.3} {quantile:2.12} {total:10}");
        // At 100 % there is no such number, and the plotter knows the last line by its absence.
        if quantile < 1.0 {
            let _ = write!(text, " {:14.2}", 1.0 / (1.0 - quantile));
        }
        text.push('\n');
    }
    let (mean_us, deviation_us) = (times.mean() / NS_PER_US, times.stdev() / NS_PER_US);
    // So many sub-buckets hold the digits that are kept, as the format defines them.
    let sub_buckets = (2 * 10_u32.pow(times.sigfig().into())).next_power_of_two();
    let _ = writeln!(text, "#[Mean    = {mean_us:12.3}, StdDeviation   = {deviation_us:12.3}]");
    let _ = writeln!(text, "#[Max     = {:12.3}, Total count    = {:12}]", times.max() as f64 / NS_PER_US, times.len());
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {sub_buckets:12}]", times.buckets());
    let _ = writeln!(text, "#[{}]", about(one));
    text
}

/// "redis+unix.set.50: microseconds, 3 blocks, one op in 32 was timed".
fn about(one: &Merged) -> String {
    let timed = match one.timed_one_in {
        (_, 0..=1) => "every op was timed".to_string(),
        (fewest, most) if fewest == most => format!("one op in {most} was timed"),
        (fewest, most) => format!("one op in {fewest} to {most} was timed"),
    };
    format!("{}: microseconds, {}, {timed}", one.name, units::counted(one.blocks as u64, "block"))
}

/// All histograms in nanoseconds, a tag each, as if one had been measured after the other: when each began is not in
/// the records, and readers that draw over time must not lay one over the other.
fn log(merged: &[Merged]) -> Result<String> {
    let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[kvfair: nanoseconds; a tag is target.part.clients, at a rate with it and what is timed; times of the day are not known]")
        .begin_log_with(&mut bytes, &mut serializer)?;
    let mut began = Duration::ZERO;
    for one in merged {
        let took = Duration::try_from_secs_f64(one.took_s).context("a phase that took no time")?;
        writer.write_histogram(one.times.histogram(), began, took, Tag::new(&one.name))?;
        began += took;
    }
    Ok(String::from_utf8(bytes)?)
}

#[cfg(test)]
pub(super) mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
    use serde_json::{Value, json};

    use super::*;
    use kvfair_core::record::Machine;

    /// Op times in nanoseconds as a skewed stream would have them.
    fn times(seed: u64, ops: u64) -> Times {
        let mut times = Times::default();
        for op in 0..ops {
            times.record(900 + (op * op * (seed + 17)) % 250_000);
        }
        times
    }

    fn phase(name: &str, clients: u32, times: &Times) -> Value {
        json!({
            "name": name, "clients": clients, "took_s": 1.5, "units": 1, "ops": 1, "commands": 1, "bytes_out": 0,
            "bytes_in": 0, "waiting_s": 0.0, "timed_one_in": 32, "clock_ns": 20.0, "times_ns": Packed::from(times.clone()),
            "units_by_second": [], "client": {"user_s": 0.0, "system_s": 0.0, "bytes_written": null}, "server": null
        })
    }

    pub(crate) fn record(label: &str, outcome: &str, phases: &[Value]) -> Record {
        let record = json!({
            "method": 1, "kvfair": "0", "run": {"began": "", "seeds": {"order": 1}, "blocks": 1, "answers_only": false},
            "block": 1, "position": 1,
            "target": {"label": label, "store": "", "transport": "unix", "settings": {}, "managed": true, "baseline": false},
            "durability": "none", "keeps": "", "clients": 7,
            "job": {"name": "", "data": {"recipe": {"name": "", "seed": 1}}, "format": "", "units": null, "skip_bad": 0},
            "stream": {"sha256": "", "unit": "", "units": 1, "ops": 1, "skipped_lines": 0}, "store": null,
            "outcome": {"kind": outcome, "reason": "broken"}, "verdict": {"kind": "baseline"}, "phases": phases,
            "memory": {"client": {"anonymous_bytes": 0, "file_bytes": 0}, "server": null}, "bytes_on_disk": null,
            "machine": Machine::default(),
        });
        serde_json::from_value(record).expect("a record")
    }

    fn text<'a>(files: &'a [(String, String)], name: &str) -> &'a str {
        let found = files.iter().find(|(other, _)| other == name);
        found.map(|(_, text)| text.as_str()).unwrap_or_else(|| {
            let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            panic!("no {name} but {names:?}")
        })
    }

    fn intervals(log: &str) -> Vec<IntervalLogHistogram<'_>> {
        let entries = IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.expect("an entry"));
        entries.filter_map(|entry| if let LogEntry::Interval(found) = entry { Some(found) } else { None }).collect()
    }

    fn decoded(interval: &IntervalLogHistogram) -> Histogram<u64> {
        let bytes = STANDARD.decode(interval.encoded_histogram()).expect("base64");
        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram")
    }

    /// Rows of value, percentile and total, as the plotter takes them: whatever does not begin with `#`.
    fn rows(text: &str) -> Vec<Vec<f64>> {
        let rows = text.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#'));
        rows.map(|row| row.split_whitespace().map(|number| number.parse().expect("a number")).collect()).collect()
    }

    #[test]
    fn blocks_are_merged_exactly_and_read_back_as_they_were() {
        let (first, second) = (times(1, 3000), times(2, 2000));
        let records = [
            record(
                "a",
                "finished",
                &[phase("load", 1, &first), phase("set", 5, &first), phase("final_flush", 0, &Times::default())],
            ),
            record("a", "finished", &[phase("set", 5, &second), phase("get", 5, &second)]),
            record("a", "failed", &[phase("set", 5, &second)]),
        ];
        let files = files(&records).expect("files");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.get.5.hgrm", "a.set.5.hgrm", "histograms.hlog"]);
        let mut both = first.clone();
        both.merge(&second);
        let both = both.histogram();

        let log = intervals(text(&files, LOG));
        let tags: Vec<&str> = log.iter().map(|interval| interval.tag().expect("a tag").as_str()).collect();
        assert_eq!(tags, ["a.get.5", "a.set.5"]);
        assert_eq!(decoded(&log[1]), *both);
        let starts: Vec<f64> = log.iter().map(|interval| interval.start_timestamp().as_secs_f64()).collect();
        assert_eq!((starts, log[1].duration().as_secs_f64()), (vec![0.0, 1.5], 3.0));

        let text = text(&files, "a.set.5.hgrm");
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{text}");
        let rows = rows(text);
        assert!(rows.len() > 40, "{text}");
        for row in &rows {
            assert_eq!(row.len(), if row[1] < 1.0 { 4 } else { 3 }, "{row:?}");
            let value_ns = (row[0] * 1000.0).round() as u64;
            assert_eq!(both.count_between(0, value_ns), row[2] as u64, "{row:?}");
            // So many ops are below the percentile's value, and so many with it.
            let (asked, below) = (row[1] * 5000.0, row[2] - both.count_at(value_ns) as f64);
            assert!(below <= asked + 1e-6 && row[2] >= asked - 1e-6, "{row:?}");
        }
        assert_eq!(rows[rows.len() - 1][1..], [1.0, 5000.0]);
        let ticks = rows.iter().filter(|row| (0.5..0.75).contains(&row[1])).count();
        assert_eq!(ticks, 5, "ticks on the second half of the way");
        for line in [
            format!("#[Mean    = {:12.3}, StdDeviation   = {:12.3}]", both.mean() / 1e3, both.stdev() / 1e3),
            format!("#[Max     = {:12.3}, Total count    =         5000]", both.max() as f64 / 1e3),
            "#[Buckets =           26, SubBuckets     =         2048]".to_string(),
            "#[a.set.5: microseconds, 2 blocks, one op in 32 was timed]".to_string(),
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn labels_make_names_that_lead_nowhere_else_and_are_not_shared() {
        let phases = [phase("run", 0, &times(1, 100))];
        let records = ["../a b", "../a,b", "x\n#y"].map(|label| record(label, "finished", &phases));
        let files = files(&records).expect("files");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        // A phase that does not tell its clients is of all that the trial had.
        assert_eq!(names, [".._a_b.run.7.hgrm", ".._a_b.run.7-2.hgrm", "x__y.run.7.hgrm", LOG]);
        assert_eq!(intervals(text(&files, LOG)).iter().filter(|interval| interval.tag().is_some()).count(), 3);
    }

    #[test]
    fn there_is_nothing_to_write_where_nothing_was_timed() {
        assert_eq!(files(&[record("a", "failed", &[phase("run", 1, &times(1, 9))])]).expect("files"), []);
        assert_eq!(files(&[record("a", "finished", &[phase("run", 1, &Times::default())])]).expect("files"), []);
        let mut only = record("a", "finished", &[phase("run", 1, &times(1, 9))]);
        only.run.answers_only = true;
        assert_eq!(files(&[only]).expect("files"), []);
    }
}
