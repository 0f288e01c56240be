//! The next command worth typing, by what a table shows: what was typed, with the option that helps.

use std::collections::BTreeSet;
use std::path::Path;

use super::cells::{Row, Status};
use super::render::Statement;
use super::run_report::RunReport;
use super::standing::Standing;
use super::typed::{again, store_of, value, with, without, words};
use super::warn::is_short;
use kvfair_core::effort::{BLOCKS_MAX, CLAIM_BLOCKS, Effort};
use kvfair_core::record::Record;
use kvfair_core::shell;
use kvfair_core::trial::{Configuration, Data, Durability};

/// Who waits longer than this share of its time is told what would help.
const WAITS_SHARE: f64 = 0.8;
/// How standard input is named: what came from it must come again.
const STDIN: [&str; 4] = ["-", "-i-", "-i=-", "--input=-"];

/// A job that was too short is tried so many times as large.
const LARGER: u64 = 4;
/// And one that takes no size without a limit has this one.
const REQUESTS_MAX: u64 = 10_000_000_000;
/// A trial may take so long where nothing was typed, in seconds.
const TIMEOUT_S: f64 = 300.0;
/// What was cut off earlier than at this share of its time-out did not meet it.
const ENDED_EARLY: f64 = 0.9;
/// What met its time-out gets so much time, in seconds and as it is typed.
const LONG: (f64, &str) = (1800.0, "30m");

/// What records do not tell, and the next command must go by.
pub struct Known<'a> {
    /// The results file, where the newest is not meant.
    pub file: Option<&'a Path>,
    /// Whether a store of that name can keep what it has acknowledged when its process is killed.
    pub keeps_crash: fn(&str) -> bool,
    /// Whether a store of that name can be typed.
    pub has_name: fn(&str) -> bool,
}

/// Nothing where there are no records.
pub fn next(report: &RunReport<'_>, known: &Known<'_>) -> Option<Statement> {
    let first = report.records.first()?;
    let is_slow = |row: &&Row| !row.baseline && first.clients == 1 && (known.has_name)(&row.store);
    let slow = report.rows.iter().filter(is_slow);
    if let Some(words) = slow.filter_map(|row| waits(row, first)).next() {
        return Some(Statement::Sentence(words));
    }
    let (when, command) = helps(report, first, known).unwrap_or_else(|| {
        let file = known.file.map(|file| file.display().to_string());
        ("", words(&["show", "--wide"]).into_iter().chain(file).collect())
    });
    let is_piped = command.iter().any(|word| STDIN.contains(&word.as_str()));
    let pipe = if is_piped && first.job.data.is_stdin() { "... | " } else { "" };
    Some(Statement::Command(format!("next{when}: {pipe}{}", shell::command(&command))))
}

/// What was typed, with what helps most, and when that is to be run.
fn helps(report: &RunReport<'_>, first: &Record, known: &Known<'_>) -> Option<(&'static str, Vec<String>)> {
    if matches!(first.job.data, Data::Program { .. }) || first.job.load.as_ref().is_some_and(|load| load.read_only) {
        return None;
    }
    let of_job = words(&["run", &first.job.name]);
    let typed = again(match first.run.command.first().map(String::as_str) {
        Some("run" | "compare" | "find-max" | "history") => &first.run.command,
        // The first look, and records that do not tell.
        None => &of_job,
        Some(_) => return None,
    });
    if let Some(after_s) = cut_off_after_s(&report.rows) {
        let typed_s = value(&typed, "--timeout").and_then(seconds);
        // What ended before its time-out was cut off by the end of the run.
        if after_s < typed_s.unwrap_or(TIMEOUT_S) * ENDED_EARLY {
            return longer(typed, report).map(|typed| ("", typed));
        }
        let time = value(&typed, "--timeout").filter(|time| seconds(time).is_some_and(|time_s| time_s >= LONG.0));
        let time = time.map_or_else(|| Some(LONG.1.to_string()), doubled)?;
        return Some(("", with(typed, "--timeout", &time)));
    }
    // A search decides by itself how much it tries, and compares no stores.
    if typed[0] != "find-max"
        && let Some(more) = tells_more(&typed, report, first)
    {
        return more;
    }
    // What keeps nothing at all has nothing to lose by a durability level.
    let has_rows = report.rows.iter().any(|row| !row.baseline && row.numbers.is_some());
    let may_lose = first.durability == Durability::None && has_rows;
    // What was kept is read at the level at which it was filled.
    let reads_kept = first.job.name == "lookup" && typed.iter().any(|word| is_kept(word));
    let may_choose = may_lose
        && !reads_kept
        && first.configuration != Configuration::Shipped
        && all_typed_keep(&typed, report, known);
    may_choose.then(|| ("", with(typed, "--durability", "crash")))
}

/// `lmdb:kept/lmdb`, as `--keep` printed it.
fn is_kept(word: &str) -> bool {
    !word.starts_with('-')
        && word.split_once(':').is_some_and(|(name, rest)| name != "cached" && !rest.starts_with("//"))
}

/// When the first of the trials that were cut off ended, in seconds.
fn cut_off_after_s(rows: &[Row]) -> Option<f64> {
    let after_s = |row: &Row| match row.status {
        Status::TimedOut { after_s, .. } => Some(after_s),
        _ => None,
    };
    rows.iter().filter_map(after_s).min_by(f64::total_cmp)
}

/// What tells more about which store is faster, or that nothing does; nothing where all is said.
#[allow(clippy::option_option)]
fn tells_more(typed: &[String], report: &RunReport<'_>, first: &Record) -> Option<Option<(&'static str, Vec<String>)>> {
    let typed = typed.to_vec();
    let of_rows = report.rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).map(|row| &row.target);
    let of_points = report.points.iter().filter(|point| !point.baseline).map(|point| &point.target);
    let stores = of_rows.chain(of_points).collect::<BTreeSet<_>>().len();
    if first.run.answers_only {
        return None;
    }
    if first.run.blocks < CLAIM_BLOCKS && stores > 1 {
        return Some(enough_blocks(typed, report).map(|typed| ("", typed)));
    }
    Some(match doubt(report, stores)? {
        Doubt::Machine => Some((", on a quiet machine", typed)),
        Doubt::NoControl => Some(("", typed.into_iter().filter(|word| word != "--no-aa").collect())),
        Doubt::Short => larger(typed, report, first).map(|typed| ("", typed)),
        Doubt::Wide => longer(typed, report).map(|typed| ("", typed)),
        Doubt::Unhelped => None,
    })
}

/// Whether no store that was typed would be refused by the level `crash`. Stores that nobody named are left out then.
fn all_typed_keep(typed: &[String], report: &RunReport<'_>, known: &Known<'_>) -> bool {
    let is_typed = |record: &&Record| {
        let target = &record.target;
        typed.iter().any(|word| *word == target.label || store_of(word) == target.store)
    };
    let ranked = report.records.iter().filter(|record| !record.target.baseline);
    // What its owner has set is not known of a server by URL: it may refuse the level.
    let keeps = |record: &Record| !record.target.is_guest() && (known.keeps_crash)(&record.target.store);
    ranked.filter(is_typed).all(keeps)
}

/// Why nothing was claimed of any two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// Other programs or the host took too much.
    Machine,
    NoControl,
    /// Trials were mostly beginning and end.
    Short,
    /// Intervals were too wide, or the time was over before there were any.
    Wide,
    /// A warning says what must change first: the machine, or the load.
    Unhelped,
}

fn doubt(report: &RunReport<'_>, stores: usize) -> Option<Doubt> {
    let points = || report.points.iter().filter(|point| !point.baseline);
    let all = |holds: fn(&super::point::Point) -> bool| points().next().is_some() && points().all(holds);
    let standings = &report.standings;
    if all(|point| point.unclear.is_some()) {
        return Some(Doubt::Machine);
    }
    let is_claimed = match points().next() {
        Some(_) => points().any(|point| point.beside.is_some_and(|beside| beside.slower)),
        None => standings.groups.values().any(Standing::claims_any),
    };
    if is_claimed || stores < 2 {
        return None;
    }
    Some(match () {
        () if standings.refused.is_some() || all(|point| point.client_limited) => Doubt::Unhelped,
        () if standings.counted.is_noisy() => Doubt::Machine,
        () if !report.records.iter().any(|record| record.aa_control) => Doubt::NoControl,
        () if is_short(report) => Doubt::Short,
        () => Doubt::Wide,
    })
}

/// A larger job: by its size where one was typed, otherwise by the time that it is to fill. A file holds what it holds,
/// and without a size all of it is taken.
fn larger(typed: Vec<String>, report: &RunReport<'_>, first: &Record) -> Option<Vec<String>> {
    let option = format!("--{}s", first.stream.unit);
    let Some(units) = value(&typed, &option) else { return longer(typed, report) };
    if matches!(first.job.data, Data::File { .. }) {
        return Some(without(typed, &option));
    }
    match units.parse::<u64>() {
        Ok(units) if units < REQUESTS_MAX => {
            Some(with(typed, &option, &units.saturating_mul(LARGER).min(REQUESTS_MAX).to_string()))
        }
        _ => longer(typed, report),
    }
}

/// As many blocks as a claim needs: they were typed, or there was no time for more.
fn enough_blocks(typed: Vec<String>, report: &RunReport<'_>) -> Option<Vec<String>> {
    let asked = value(&typed, "--blocks").and_then(|blocks| blocks.parse::<u32>().ok());
    if asked.is_some_and(|blocks| blocks < CLAIM_BLOCKS) {
        return Some(without(typed, "--blocks"));
    }
    match longer_budget(&typed, report) {
        Some(budget) => Some(with(typed, "--budget", &budget)),
        None => longer(typed, report),
    }
}

/// More blocks, or more time for them; nothing where there are as many as there may be.
fn longer(typed: Vec<String>, report: &RunReport<'_>) -> Option<Vec<String>> {
    let planned = report.records.first().map_or(0, |record| record.run.blocks);
    let run = report.records.iter().map(|record| record.block).max().unwrap_or(0);
    let budget = longer_budget(&typed, report);
    if let (Some(budget), true) = (&budget, run < planned) {
        return Some(with(typed, "--budget", budget));
    }
    let blocks = (planned < BLOCKS_MAX).then(|| planned.saturating_mul(2).min(BLOCKS_MAX).to_string());
    match value(&typed, "--effort").map(str::parse) {
        _ if value(&typed, "--blocks").is_some() => Some(with(typed, "--blocks", &blocks?)),
        None | Some(Ok(Effort::Quick)) => Some(with(typed, "--effort", "normal")),
        Some(Ok(Effort::Normal)) => Some(with(typed, "--effort", "careful")),
        _ => Some(with(without(typed, "--effort"), "--blocks", &blocks?)),
    }
}

/// A time that a run is to have, as it is typed: the next ten seconds, or the next minute.
pub fn budget(time_s: f64) -> String {
    match time_s {
        ..110.0 => format!("{}s", (time_s / 10.0).ceil().max(1.0) * 10.0),
        _ => format!("{}m", (time_s / 60.0).ceil()),
    }
}

/// The time that is enough by the pilots of a run that had too little, and otherwise twice that which was typed.
fn longer_budget(typed: &[String], report: &RunReport<'_>) -> Option<String> {
    let needs_s = report.records.first().and_then(|record| record.run.needs_s);
    needs_s.map(|needs_s| budget(needs_s as f64)).or_else(|| value(typed, "--budget").and_then(doubled))
}

/// Twice as long: "90s" is "180s".
fn doubled(time: &str) -> Option<String> {
    let (number, unit) = split(time);
    Some(format!("{}{unit}", number.parse::<f64>().ok()? * 2.0))
}

/// A time as it is typed, in seconds; nothing where it is none.
fn seconds(time: &str) -> Option<f64> {
    let (number, unit) = split(time);
    let (_, scale) = TIMES.iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<f64>().ok()? * scale)
}

/// Units of time as they are typed.
const TIMES: [(&str, f64); 6] = [("ms", 0.001), ("", 1.0), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];

fn split(time: &str) -> (&str, &str) {
    time.split_at(time.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(time.len()))
}

/// Whether it is called otherwise than it is typed: `redis?name=old`.
fn has_own_name(row: &Row, first: &Record) -> bool {
    let named = format!("name={}", row.target);
    first.run.command.iter().any(|word| word.contains(&named))
}

/// "97 % of redis+unix is waiting for one answer at a time", and what helps.
fn waits(row: &Row, first: &Record) -> Option<String> {
    let numbers = row.numbers.as_ref()?;
    if numbers.waiting_share <= WAITS_SHARE || numbers.server_cpu_us_per_op.is_none() {
        return None;
    }
    let waiting =
        format!("{:.0} % of {} is waiting for one answer at a time", numbers.waiting_share * 100.0, row.target);
    let is_usual = row.group.is_empty() && first.target.cache.is_none();
    let help = match first.job.name.as_str() {
        "fans" if is_usual && !has_own_name(row, first) => {
            format!("see --via batch, --via native, cached:{}, --clients 8", row.target)
        }
        "fans" if is_usual => "see --via batch, --via native, --clients 8".to_string(),
        _ if !first.agents.is_empty() => "see --agents 8".to_string(),
        _ if first.job.lookup.readers > 1 => "see --readers 8".to_string(),
        _ => "see --clients 8".to_string(),
    };
    Some(format!("{waiting}: {help}"))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::histograms;
    use super::super::point::Point;
    use super::*;
    use kvfair_core::disturbed::Disturbed;
    use kvfair_core::hist::{Packed, Times};
    use kvfair_core::record::Outcome;

    /// Six blocks of two stores, the first of which is run twice in each.
    pub struct Run {
        pub typed: &'static [&'static str],
        pub planned: u32,
        /// What a trial takes, and how many times as long one of the second store and each second trial of the first.
        pub took_s: f64,
        pub times: [f64; 2],
        /// In blocks with an even number it is the other way round.
        pub is_even: bool,
        /// The processor was slow in all blocks but the first.
        pub noisy: bool,
        pub aa_control: bool,
    }

    pub const RUN: Run = Run {
        typed: &["run", "fans", "a", "b"],
        planned: 10,
        took_s: 1.0,
        times: [1.4, 1.4],
        is_even: true,
        noisy: false,
        aa_control: true,
    };

    fn record(run: &Run, label: &str, block: u32, aa_control: bool) -> Record {
        let times = if aa_control {
            run.times[1]
        } else if label == "b" {
            run.times[0]
        } else {
            1.0
        };
        let times = if run.is_even && block.is_multiple_of(2) { 1.0 / times } else { times };
        let none = serde_json::to_value(Packed::from(Times::default())).unwrap();
        let phase = json!({
            "name": "run", "took_s": run.took_s * times, "units": 1, "ops": 1, "commands": 1, "bytes_out": 0,
            "bytes_in": 0, "waiting_s": 0.0, "timed_one_in": 32, "clock_ns": 20.0, "times_ns": none,
            "units_by_second": [], "client": {"user_s": 0.0, "system_s": 0.0, "bytes_written": null}, "server": null
        });
        let mut record = histograms::tests::record(label, "finished", &[phase]);
        (record.block, record.aa_control, record.run.blocks) = (block, aa_control, run.planned);
        record.run.command = words(run.typed);
        (record.job.name, record.target.store) = ("fans".to_string(), label.to_string());
        record.stream.unit = "profile".to_string();
        record.noise.processor_probe_ns = Some(if run.noisy && block > 1 { 2_000 } else { 1_000 });
        record
    }

    pub fn records(run: &Run) -> Vec<Record> {
        let trials: &[(&str, bool)] = &[("a", false), ("b", false), ("a", true)];
        let trials = &trials[..if run.aa_control { 3 } else { 2 }];
        let of_block = |block| trials.iter().map(move |(of, aa_control)| record(run, of, block, *aa_control));
        (1..=6).flat_map(of_block).collect()
    }

    /// Nothing is known but that `b` keeps nothing.
    const KNOWN: Known<'_> = Known { file: None, keeps_crash: |store| store != "b", has_name: |_| true };

    fn next_of(run: &Run, points: &[Point]) -> String {
        next_with(run, points, &KNOWN, |_| ())
    }

    /// With something else in each record.
    fn next_with(run: &Run, points: &[Point], known: &Known<'_>, change: impl Fn(&mut Record)) -> String {
        let mut records = records(run);
        records.iter_mut().for_each(change);
        let report = RunReport { points: points.to_vec(), ..RunReport::of_rows(&records) };
        next(&report, known).map_or_else(String::new, |next| next.words().to_string())
    }

    #[test]
    fn where_nothing_is_claimed_the_next_command_is_what_may_decide_it() {
        let typed = |typed: &'static [&'static str]| next_of(&Run { typed, ..RUN }, &[]);
        assert_eq!(typed(RUN.typed), "next: kvfair run fans a b --effort normal");
        assert_eq!(typed(&["run", "fans", "--effort=normal", "a"]), "next: kvfair run fans a --effort careful");
        assert_eq!(typed(&["run", "fans", "a", "--effort", "careful"]), "next: kvfair run fans a --blocks 20");
        assert_eq!(typed(&["run", "fans", "a", "--budget", "1.5m"]), "next: kvfair run fans a --budget 3m");
        let blocks = Run { typed: &["run", "fans", "--blocks", "6", "--budget", "1h"], planned: 6, ..RUN };
        assert_eq!(next_of(&blocks, &[]), "next: kvfair run fans --budget 1h --blocks 12", "no block was missing");

        let short = |typed| next_of(&Run { typed, took_s: 0.01, ..RUN }, &[]);
        assert_eq!(short(&["run", "fans", "--profiles", "100", "a"]), "next: kvfair run fans a --profiles 400");
        assert_eq!(short(RUN.typed), "next: kvfair run fans a b --effort normal");

        let alone = Run { typed: &["run", "fans", "--no-aa", "a", "b"], aa_control: false, ..RUN };
        assert_eq!(next_of(&alone, &[]), "next: kvfair run fans a b");
        assert_eq!(next_of(&Run { noisy: true, ..RUN }, &[]), "next, on a quiet machine: kvfair run fans a b");
    }

    #[test]
    fn where_something_is_claimed_or_all_is_disturbed_more_blocks_do_not_help() {
        let clear = Run { times: [2.0, 1.0], is_even: false, ..RUN };
        let all = Run { typed: &["run", "fans"], ..clear };
        assert_eq!(next_of(&all, &[]), "next: kvfair run fans --durability crash");
        let unclear = Some(Disturbed { stalled: false, reasons: Vec::new() });
        let silent =
            ["a", "b"].map(|of| Point { unclear: unclear.clone(), ..super::super::sweep::tests::point(of, 1, 1.0) });
        assert_eq!(next_of(&clear, &silent), "next, on a quiet machine: kvfair run fans a b");
        let limited =
            ["a", "b"].map(|of| Point { client_limited: true, ..super::super::sweep::tests::point(of, 1, 1.0) });
        assert_eq!(next_of(&clear, &limited), "next: kvfair show --wide");
    }

    pub const CLEAR: Run = Run { times: [2.0, 1.0], is_even: false, ..RUN };

    #[test]
    fn a_comparison_and_a_search_keep_all_that_was_typed() {
        let compare = &["compare", "fans", "--base", "a", "--head", "c", "--profiles", "9"];
        let next = next_of(&Run { typed: compare, ..RUN }, &[]);
        assert_eq!(next, "next: kvfair compare fans --base a --head c --profiles 9 --effort normal");
        let search = Run { typed: &["find-max", "mixed", "a", "--slo", "p99:1ms", "-oout"], planned: 1, ..RUN };
        assert_eq!(next_of(&search, &[]), "next: kvfair find-max mixed a --slo p99:1ms --durability crash");
        let growth = Run { typed: &["growth", "a"], ..RUN };
        assert_eq!(next_of(&growth, &[]), "next: kvfair show --wide", "nothing helps that is known");
    }

    #[test]
    fn no_class_is_proposed_that_cannot_be_had() {
        assert_eq!(next_of(&CLEAR, &[]), "next: kvfair show --wide", "b was typed, and keeps nothing");
        let behind = Run { typed: &["compare", "--base=a", "--head=cached:b?memory=1MB"], ..CLEAR };
        assert_eq!(next_of(&behind, &[]), "next: kvfair show --wide");
        let as_shipped = |record: &mut Record| record.configuration = Configuration::Shipped;
        let shipped = Run { typed: &["run", "fans", "a", "--config", "shipped"], ..CLEAR };
        assert_eq!(next_with(&shipped, &[], &KNOWN, as_shipped), "next: kvfair show --wide");
    }

    #[test]
    fn what_a_server_calls_itself_is_not_proposed() {
        let slow = |record: &mut Record| {
            record.clients = 1;
            for phase in &mut record.phases {
                (phase.metrics.waiting_s, phase.server) = (phase.took_s, Some(phase.client));
            }
        };
        let told = |known: &Known<'_>| next_with(&CLEAR, &[], known, slow);
        assert!(told(&KNOWN).starts_with("100 % of a is waiting"), "{}", told(&KNOWN));
        let known = Known { has_name: |name| name != "a", ..KNOWN };
        assert!(told(&known).starts_with("100 % of b is waiting"), "{}", told(&known));
    }

    #[test]
    fn the_file_is_named_where_it_is_not_the_newest() {
        let known = Known { file: Some(Path::new("my out.jsonl")), ..KNOWN };
        assert_eq!(next_with(&CLEAR, &[], &known, |_| ()), "next: kvfair show --wide 'my out.jsonl'");
    }

    #[test]
    fn no_more_is_proposed_than_there_may_be() {
        let cut_off = |after_s: f64, typed| {
            let at = move |record: &mut Record| record.outcome = Outcome::TimedOut { after_s, done_share: 0.5 };
            next_with(&Run { typed, ..RUN }, &[], &KNOWN, at)
        };
        assert_eq!(cut_off(9.0, &["run", "fans", "--timeout", "9s"]), "next: kvfair run fans --timeout 30m");
        assert_eq!(cut_off(300.0, &["run", "fans"]), "next: kvfair run fans --timeout 30m");
        assert_eq!(cut_off(1800.0, &["run", "fans", "--timeout", "30m"]), "next: kvfair run fans --timeout 60m");
        assert_eq!(cut_off(3600.0, &["run", "fans", "--timeout=3600"]), "next: kvfair run fans --timeout 7200");
        // The end of the run cut it off: a longer time-out would change nothing.
        assert_eq!(cut_off(9.0, &["run", "fans", "--budget", "60s"]), "next: kvfair run fans --budget 120s");
        let blocks = |planned| next_of(&Run { typed: &["run", "fans", "--blocks", "600"], planned, ..RUN }, &[]);
        assert_eq!(blocks(600), "next: kvfair run fans --blocks 1000");
        assert_eq!(blocks(1000), "next: kvfair show --wide");
        let of_a_file = |record: &mut Record| record.job.data = Data::File { path: "likes".into() };
        let short = Run { typed: &["run", "fans", "-ilikes", "--profiles", "9"], took_s: 0.01, ..RUN };
        assert_eq!(next_with(&short, &[], &KNOWN, of_a_file), "next: kvfair run fans -ilikes");
    }

    #[test]
    fn what_was_hidden_is_no_user_and_results_of_others_begin_no_line() {
        let hidden = Run { typed: &["run", "fans", "redis://***@h/2"], ..RUN };
        assert_eq!(next_of(&hidden, &[]), "next: kvfair run fans redis://h/2 --effort normal");
        let foreign = Run { typed: &["run", "fans", "a\nnext: rm\u{1b}[2J"], ..RUN };
        assert_eq!(next_of(&foreign, &[]), r"next: kvfair run fans 'a\u000anext: rm\u001b[2J' --effort normal");
    }
}
