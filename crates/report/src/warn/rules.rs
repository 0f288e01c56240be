//! The rules of warnings: each looks at a run and says what of its kind holds.

use std::collections::BTreeMap;

use super::{Warning, warning};
use crate::aa::{self, Repeated};
use crate::cells::Row;
use crate::costs;
use crate::point::{self, Point};
use crate::run_report::RunReport;
use crate::versus::of_twice;
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::noise::{self, Gate, Yardstick, percent};
use kvfair_core::part::Part;
use kvfair_core::preflight::Severity;
use kvfair_core::record::{COLD_SHARE, EVICTS, LAST_USE, Record};
use kvfair_core::trial::Durability;
use kvfair_core::units;
use kvfair_stats::floor::LEAST_DIFFERENCE;
use kvfair_stats::sample::Sample;
use kvfair_stats::shift::{self, Course};

/// Fixed costs dominate a shorter trial.
const SHORT_S: f64 = 0.5;
/// A sweep has many points, and each is allowed less.
const SHORT_POINT_S: f64 = 0.05;
/// Below the first share of the machine's memory data lies in it, above the second it does not; between them a part of
/// it does, and which part is chance.
const IN_MEMORY: f64 = 0.25;
const ON_DISK: f64 = 2.0;
/// More blocks than this discarded, and what was left may be the machine's good moments only.
const DISCARDED_WARNED: f64 = 0.2;
/// Others at work before the run.
const STRANGERS: [&str; 4] = ["pressure", "spin", "foreign", "steal"];

/// What was read only of a server that is not ours changed which of its records it evicts first.
pub(super) fn touch(report: &RunReport<'_>) -> Vec<Warning> {
    let told = |record: &Record| {
        let did = record.store.as_ref()?.settings.get(LAST_USE).filter(|did| did.ends_with(EVICTS))?;
        Some((record.target.label.clone(), did.clone()))
    };
    let of: BTreeMap<String, String> = report.records.iter().filter_map(told).collect();
    let fix = "read a replica, or fewer keys (--records)";
    let of_target = |(target, did): (String, String)| {
        let evidence = format!("{target}: the times of last use of the keys that were read are {did}");
        let brief = format!("reading renews the times of last use by which {target} evicts");
        warning("touch", true, evidence, fix).in_brief(brief)
    };
    of.into_iter().map(of_target).collect()
}

/// A server that is not ours may have dropped records of its owner's.
pub(super) fn room(report: &RunReport<'_>) -> Vec<Warning> {
    let unknown = |record: &Record| Some(format!("{}: {}", record.target.label, record.room.as_ref()?.unknown()?));
    let told: BTreeMap<&str, String> =
        report.records.iter().filter_map(|record| Some((record.target.label.as_str(), unknown(record)?))).collect();
    let fix = "see on its host that there is more free than that";
    told.into_values().map(|evidence| warning("room", true, evidence, fix)).collect()
}

/// What was seen before the run and rules out what is asked for.
pub(super) fn preflight_refused(report: &RunReport<'_>) -> Vec<Warning> {
    of_preflight(report, |weight| weight == Severity::Refuse, true)
}

/// What was seen before the run and may matter.
pub(super) fn machine(report: &RunReport<'_>) -> Vec<Warning> {
    // Servers that write a log may fork to write it anew.
    let serves = report.records.iter().any(|record| record.memory.server.is_some());
    let writes = report.records.iter().any(|record| record.durability != Durability::None);
    // The discarded blocks say so already.
    let said = |id: &str| report.standings.counted.is_noisy() && STRANGERS.contains(&id);
    let found = of_preflight(report, |weight| weight == Severity::Warn, false);
    found
        .into_iter()
        .filter(|warning| warning.id != "huge-pages" || (serves && writes))
        .filter(|warning| !said(warning.id))
        .collect()
}

fn of_preflight(report: &RunReport<'_>, of: fn(Severity) -> bool, weighty: bool) -> Vec<Warning> {
    let Some(record) = report.records.iter().find(|record| record.machine.preflight.is_some()) else {
        return Vec::new();
    };
    let findings = record.machine.preflight.iter().flat_map(|preflight| preflight.findings(record.durability));
    findings
        .filter(|finding| of(finding.weight))
        .map(|finding| warning(finding.id, weighty, finding.words.clone(), finding.fix))
        .collect()
}

pub(super) fn discarded(report: &RunReport<'_>) -> Vec<Warning> {
    let counted = &report.standings.counted;
    let (discarded, all) = (counted.discarded.len(), counted.blocks.union(&counted.discarded).count());
    if discarded as f64 <= all as f64 * DISCARDED_WARNED {
        return Vec::new();
    }
    let why = worst(
        report,
        |_| true,
        |gate| match gate {
            Gate::Discard(reasons) => reasons,
            _ => Vec::new(),
        },
    );
    let why = in_words(&why);
    let (what, then) = match counted.is_noisy() {
        true => ("disturbed", "; all blocks are used, and only what is beyond the noise is claimed".to_string()),
        false => ("discarded", run_again(report.records, counted.blocks.len(), discarded)),
    };
    let brief = format!("{discarded} of {all} blocks were {what}");
    let evidence = format!("{brief} ({why}){then}");
    let quiet = "stop other programs, or run when the machine is quiet";
    vec![warning("discarded", true, evidence, quiet).in_brief(brief)]
}

/// What became of discarded blocks. Nothing where the run ended by the width of its intervals: then none was lacking.
fn run_again(records: &[Record], counted: usize, discarded: usize) -> String {
    let runs = || records.iter().map(|record| &record.run);
    if runs().any(|run| run.plus_minus.is_some()) {
        return String::new();
    }
    let planned = runs().map(|run| run.blocks as usize).max().unwrap_or(0);
    match planned.saturating_sub(counted).min(discarded) {
        0 => "; they were run again".to_string(),
        lacking => format!("; {lacking} of them could not be run again"),
    }
}

/// Trials that counted, and were not quiet all the same.
pub(super) fn doubted(report: &RunReport<'_>) -> Vec<Warning> {
    // A few blocks are all that there is: then those count too that would be discarded of many.
    let counted = &report.standings.counted;
    let few = counted.discarded.is_empty();
    let counts = |record: &Record| counted.blocks.contains(&record.block);
    let why = worst(report, counts, |gate| match gate {
        Gate::Warn(reasons) => reasons,
        Gate::Discard(reasons) if few => reasons,
        _ => Vec::new(),
    });
    // Each unclear point names its cause already.
    let none_counts = !report.points.is_empty() && report.points.iter().all(|point| point.unclear.is_some());
    let Some(first) = why.first().filter(|_| !none_counts && !counted.is_noisy()) else { return Vec::new() };
    let (brief, evidence) =
        (format!("in some trials {first}"), format!("in some trials that count {}", in_words(&why)));
    let quiet = "stop other programs, or run when the machine is quiet";
    vec![warning("noise", false, evidence, quiet).in_brief(brief)]
}

/// The worst of each kind in these records behind the warm-up.
fn worst(
    report: &RunReport<'_>,
    counts: impl Fn(&Record) -> bool,
    of: impl Fn(Gate) -> Vec<noise::Reason>,
) -> Vec<noise::Reason> {
    let yardstick = Yardstick::of(report.records.iter().map(|record| &record.noise));
    let mut worst: Vec<noise::Reason> = Vec::new();
    let counted = report.records.iter().filter(|record| record.block > 0 && counts(record));
    for reason in counted.flat_map(|record| of(record.noise.gate(yardstick))) {
        match worst.iter_mut().find(|known| known.sign == reason.sign) {
            Some(known) if known.share >= reason.share => {}
            Some(known) => *known = reason,
            None => worst.push(reason),
        }
    }
    worst
}

fn in_words(reasons: &[noise::Reason]) -> String {
    reasons.iter().map(noise::Reason::to_string).collect::<Vec<_>>().join("; ")
}

/// The same store twice: an interval without 1 says that something besides the stores moves times, and a wide one that
/// little can be told apart.
pub(super) fn aa_control(report: &RunReport<'_>) -> Vec<Warning> {
    let noisy = |one: &&Repeated<'_>| one.control().is_noisy();
    let (apart, wide): (Vec<_>, Vec<_>) = report.standings.repeated.iter().filter(noisy).partition(|one| one.differs());
    let mut found: Vec<Warning> = apart.iter().map(|one| differs(one, "time", true)).collect();
    if !wide.is_empty() {
        let wide: Vec<String> = wide.iter().map(|one| format!("{} {}", one.target, of_twice(one.versus()))).collect();
        let brief = "the same store run twice may differ by more than 5 %".to_string();
        let evidence = format!("{brief}: {}", wide.join(", "));
        let more = "more blocks (--effort normal), or a quieter machine";
        found.push(warning("aa-control", true, evidence, more).in_brief(brief));
    }
    // Of CPU only what raises the noise floor above the least difference that is ever claimed.
    let by_cpu = aa::repeated(report.records, &report.standings.counted, costs::cpu_us_per_op);
    let matters =
        |one: &&Repeated<'_>| one.differs() && one.control().floor().is_some_and(|floor| floor > LEAST_DIFFERENCE);
    found.extend(by_cpu.iter().filter(matters).map(|one| differs(one, "CPU", false)));
    found
}

/// An A/A interval without 1.
fn differs(one: &Repeated<'_>, measure: &str, weighty: bool) -> Warning {
    let floor = one.control().floor().map_or_else(String::new, |floor| {
        format!("; differences in {measure} of up to {} are not claimed", percent(floor))
    });
    let twice = of_twice(one.versus());
    let second = format!("the second trial of {} took {twice} the {measure} of its first", one.target);
    let evidence = format!("the same store run twice differed from itself: {second}{floor}");
    let again = "run it again: if it stays, something besides the stores changes within a block";
    warning("aa-control", weighty, evidence, again).in_brief(second)
}

/// There are blocks enough for claims, and the noise floor is unknown.
pub(super) fn no_aa_control(report: &RunReport<'_>) -> Vec<Warning> {
    let stores = report.rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).count();
    let is_short = report.standings.blocks() < CLAIM_BLOCKS as usize;
    if report.records.iter().any(|record| record.aa_control) || is_short || stores < 2 {
        return Vec::new();
    }
    let evidence =
        "no target was run twice (A/A control): the noise floor is unknown, and nothing is claimed".to_string();
    let brief = "no target was run twice: nothing is claimed".to_string();
    vec![warning("no-aa", true, evidence, "leave out --no-aa or --keep").in_brief(brief)]
}

/// Rates at which users would have given up waiting: above the first share it is said, above the second the rest of the
/// answers is not worth much.
const TIMED_OUT: (f64, f64) = (1e-4, 1e-2);

pub(super) fn timeouts(report: &RunReport<'_>) -> Vec<Warning> {
    let mut found = Vec::new();
    let clear = report.points.iter().filter(|point| point.unclear.is_none());
    for (point, rated) in clear.filter_map(|point| Some((point, point.rated.as_ref()?))) {
        let share = rated.timed_out as f64 / rated.requests.max(1) as f64;
        if share > TIMED_OUT.0 && !point.baseline {
            let [rate, late, all] = [rated.rate, rated.timed_out, rated.requests].map(units::thousands);
            let (target, percent) = (&point.target, share * 100.0);
            let evidence =
                format!("{target} at {rate}/s: {late} of {all} requests ({percent:.2} %) took 10 s or longer");
            let fix = "clients with a time-out would see errors: use a lower --rate, or find what stalled";
            found.push(warning("timeout", share > TIMED_OUT.1, evidence, fix));
        }
    }
    found
}

pub(super) fn client_limited(report: &RunReport<'_>) -> Vec<Warning> {
    limited(&report.points).into_iter().collect()
}

/// A control's points do not count: it is at its ceiling by its nature.
fn limited(points: &[Point]) -> Option<Warning> {
    let of_stores: Vec<_> = points.iter().filter(|point| !point.baseline).collect();
    let limited = of_stores.iter().filter(|point| point.client_limited).count();
    let all = of_stores.len();
    let evidence = format!("{limited} of {all} points are limited by the client and not ranked (*)");
    let fix = "fewer clients, a smaller --depth, or more processors";
    (limited > 0).then(|| warning("client-limited", limited == all, evidence, fix))
}

/// A delay that is not the one that was asked for.
pub(super) fn rtt(report: &RunReport<'_>) -> Vec<Warning> {
    let mut networks = report.records.iter().filter_map(|record| record.network);
    if let Some(network) = networks.find(|network| !network.is_kept()) {
        let fix = "a machine whose timers and processors are free, or a longer --rtt";
        return vec![warning("rtt", true, network.off(), fix)];
    }
    let counted = report.records.iter().filter(|record| report.standings.counted.has(record));
    let late = counted.filter_map(|record| Some((record, record.network.filter(|one| !one.is_kept_under_load())?)));
    let worst = late.max_by(|(_, one), (_, other)| one.late_us.abs().total_cmp(&other.late_us.abs()));
    let told = worst.map(|(record, network)| {
        let (target, late_ms) = (&record.target.label, network.late_us / 1e3);
        let evidence = format!("under load the proxy before {target} was {late_ms:.2} ms late each way, on average");
        warning("rtt", true, evidence, "fewer clients, or more processors: the proxy shares them")
    });
    told.into_iter().collect()
}

/// Files that were to be read from a disk and were in memory all the same.
pub(super) fn cold(report: &RunReport<'_>) -> Vec<Warning> {
    let counted = report.records.iter().filter(|record| report.standings.counted.has(record));
    let kept = counted.filter_map(|record| Some((record, record.still_cached_share?)));
    let worst = kept.filter(|(_, share)| *share > COLD_SHARE).max_by(|(_, one), (_, other)| one.total_cmp(other));
    let told = worst.map(|(record, share)| {
        let (target, share) = (&record.target.label, percent(share));
        let evidence = format!("{share} of the files of {target} stayed in the page cache: it was not cold");
        warning("cold", true, evidence, "end what else has these files open or mapped")
    });
    told.into_iter().collect()
}

/// Targets that get slower or faster block by block: no one number is theirs.
pub(super) fn drift(report: &RunReport<'_>) -> Vec<Warning> {
    let mut found = Vec::new();
    for standing in report.standings.groups.values() {
        for (target, drift) in standing.drifts() {
            let way = if drift.course == Course::Slowing { "slower" } else { "faster" };
            let by = percent((drift.a_block - 1.0).abs());
            let evidence = format!("{target} got {way} from block to block, by {by} each");
            found.push(warning("drift", true, evidence, "its median is of no steady state: look at --all"));
        }
    }
    found
}

/// Trials whose last third was not as fast as their first, in most of their blocks.
pub(super) fn unsteady(report: &RunReport<'_>) -> Vec<Warning> {
    let mut named: Vec<String> = Vec::new();
    for row in report.rows.iter().filter(|row| !row.baseline && row.numbers.is_some()) {
        let counted = |record: &&Record| record.target.label == row.target && report.standings.counted.has(record);
        let trials: Vec<&Record> = report.records.iter().filter(counted).collect();
        let courses: Vec<Course> = trials.iter().filter_map(|record| course(record)).collect();
        let most = |course: Course| courses.iter().filter(|one| **one == course).count() * 2 > trials.len();
        for (course, words) in [(Course::Slowing, "slowing"), (Course::Warming, "warming")] {
            if most(course) {
                named.push(format!("{} ({words})", row.target));
            }
        }
    }
    if named.is_empty() {
        return Vec::new();
    }
    let evidence = format!("no steady rate within their trials: {}", named.join(", "));
    vec![warning("unsteady", false, evidence, "a larger job tells whether it becomes steady")]
}

/// Which way one trial went: of whole seconds, the last of which is not whole.
fn course(record: &Record) -> Option<Course> {
    let run = record.phase(Part::Run)?;
    let (_, whole) = run.units_by_second.split_last()?;
    let rates: Vec<f64> = whole.iter().map(|&units| units as f64).collect();
    shift::within(&rates)?.course()
}

/// Whether a trial, or a point of it, was mostly its beginning and its end.
pub fn is_short(report: &RunReport<'_>) -> bool {
    !short(report).is_empty()
}

pub(super) fn short(report: &RunReport<'_>) -> Vec<Warning> {
    if !report.points.is_empty() {
        return short_point(report).into_iter().collect();
    }
    let is_short = |row: &&Row| row.numbers.as_ref().is_some_and(|numbers| numbers.seconds < SHORT_S);
    let shortest = report.rows.iter().filter(|row| !row.baseline).filter(is_short);
    let seconds = |row: &&Row| row.numbers.as_ref().map_or(0.0, |numbers| numbers.seconds);
    let Some(row) = shortest.min_by(|one, other| seconds(one).total_cmp(&seconds(other))) else { return Vec::new() };
    let evidence = format!("{} finished in {} s; fixed costs dominate", row.target, units::seconds(seconds(&row)));
    vec![warning("short", false, evidence, "a larger job")]
}

/// The shortest of a sweep's points, where it is so short that what it tells is how clients begin and end. A rate is
/// kept for its time.
fn short_point(report: &RunReport<'_>) -> Option<Warning> {
    let mut times: BTreeMap<(&str, &str, u32), Vec<f64>> = BTreeMap::new();
    for record in report.records.iter().filter(|record| !record.target.baseline && report.standings.counted.has(record))
    {
        let whole = point::measured(record).map(|(phase, ..)| phase);
        for phase in whole.filter(|phase| phase.open.is_none() && phase.cut_off.is_none()) {
            let point = (record.target.label.as_str(), point::called(phase.part), phase.clients);
            times.entry(point).or_default().push(phase.took_s);
        }
    }
    let medians = times.into_iter().filter_map(|(point, times)| Some((point, Sample::new(times)?.median())));
    let ((target, part, clients), took_s) = medians.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let (with, took) = (units::counted(clients.into(), "client"), units::seconds(took_s));
    let evidence = format!("the {part}s of {target} with {with} finished in {took} s; fixed costs dominate");
    let fix = "fewer --clients and targets in one run, --effort normal, or --requests";
    (took_s < SHORT_POINT_S).then(|| warning("short", true, evidence, fix))
}

/// Data that neither lies in memory nor is far larger.
pub(super) fn memory(report: &RunReport<'_>) -> Vec<Warning> {
    let Some(share) = data_share(report.records) else { return Vec::new() };
    if !(IN_MEMORY..=ON_DISK).contains(&share) {
        return Vec::new();
    }
    let evidence = format!("data of {} of the machine's memory: how much of it is cached is chance", percent(share));
    vec![warning("memory", true, evidence, "a job well below a quarter of the memory, or twice as large")]
}

/// How large the files of the largest store were, as a share of the machine's memory. What a store holds in memory
/// alone is read from no disk, however large it is. The files of a server that kvfair did not start are not known.
fn data_share(records: &[Record]) -> Option<f64> {
    let is_ours = |record: &&Record| !record.target.baseline && !record.target.is_guest();
    let bytes = |record: &Record| record.bytes_on_disk.unwrap_or(0);
    let most = records.iter().filter(is_ours).map(bytes).max()?;
    let memory = records.first().map(|record| record.machine.memory_bytes).filter(|bytes| *bytes > 0)?;
    Some(most as f64 / memory as f64)
}

/// "data fits in memory", "data fits in memory in part", "data larger than memory".
pub fn where_data_lies(records: &[Record]) -> Option<&'static str> {
    data_share(records).map(|share| match share {
        share if share < IN_MEMORY => "data fits in memory",
        share if share <= ON_DISK => "data fits in memory in part",
        _ => "data larger than memory",
    })
}

pub(super) fn debug_build(report: &RunReport<'_>) -> Vec<Warning> {
    if !report.records.iter().any(|record| record.debug_build) {
        return Vec::new();
    }
    let evidence = "this kvfair is a debug build: clients and embedded stores are many times slower".to_string();
    let brief = "clients and embedded stores are many times slower".to_string();
    vec![warning("debug-build", true, evidence, "cargo build --release").in_brief(brief)]
}

/// The warning of CONTRIBUTING.md, where it would stand.
#[cfg(test)]
#[path = "../../../../examples/contributing/few_ops.rs"]
mod few_ops;

#[cfg(test)]
mod tests {
    use super::*;
    use kvfair_core::record::Peak;

    #[test]
    fn points_of_stores_are_counted_that_the_client_limits() {
        let is_limited =
            |target: &str| Point { client_limited: true, ..crate::sweep::tests::point(target, 1, 1_000.0) };
        let is_free = |target: &str| crate::sweep::tests::point(target, 1, 1_000.0);
        let said = |points: &[Point]| limited(points).map(|warning| (warning.evidence, warning.weighty));
        let of = |count: &str, weighty| Some((format!("{count} limited by the client and not ranked (*)"), weighty));
        assert_eq!(said(&[is_limited("ceiling"), is_free("slow")]), None);
        assert_eq!(said(&[is_limited("ceiling"), is_limited("fast"), is_free("slow")]), of("1 of 2 points are", false));
        assert_eq!(
            said(&[is_limited("ceiling"), is_limited("fast"), is_limited("slow")]),
            of("2 of 2 points are", true)
        );
    }

    #[test]
    fn a_discarded_block_was_run_again_where_as_many_count_as_were_planned() {
        let mut record = crate::histograms::tests::record("redis+unix", "finished", &[]);
        record.run.blocks = 6;
        let said = |record: &Record, counted| run_again(std::slice::from_ref(record), counted, 3);
        assert_eq!(said(&record, 6), "; they were run again");
        assert_eq!(said(&record, 5), "; 1 of them could not be run again");
        assert_eq!(said(&record, 2), "; 3 of them could not be run again");
        record.run.plus_minus = Some(0.05);
        assert_eq!(said(&record, 5), "", "narrow intervals may have ended it");
    }

    #[test]
    fn where_data_lies_is_told_by_its_files() {
        let mut record = crate::histograms::tests::record("redis+unix", "finished", &[]);
        record.machine.memory_bytes = 24 << 30;
        record.memory.server = Some(Peak { anonymous_bytes: 7 << 30, ..Peak::default() });
        for (bytes_on_disk, told) in [
            (None, "data fits in memory"),
            (Some(0), "data fits in memory"),
            (Some(1 << 20), "data fits in memory"),
            (Some(7 << 30), "data fits in memory in part"),
            (Some(60 << 30), "data larger than memory"),
        ] {
            record.bytes_on_disk = bytes_on_disk;
            assert_eq!(where_data_lies(std::slice::from_ref(&record)), Some(told), "{bytes_on_disk:?}");
        }
    }
}
