//! The next command worth typing, by what a table shows: what was typed, with the option that helps.

use std::collections::BTreeSet;

use super::cells::{Row, Status};
use super::standing::Standing;
use super::table::{width, wrap};
use super::warn::{Seen, is_short};
use crate::words::effort::{CLAIM_BLOCKS, Effort};
use crate::words::record::Record;
use crate::words::trial::{Data, Durability};

/// Who waits longer than this share of its time is told what would help.
const WAITS_SHARE: f64 = 0.8;
/// Options that name what must not exist yet: what was typed has made it.
const MADE: [&str; 3] = ["--output", "-o", "--keep"];

/// How standard input is named: what came from it must come again.
const STDIN: [&str; 4] = ["-", "-i-", "-i=-", "--input=-"];

/// A job that was too short is tried so many times as large.
const LARGER: u64 = 4;

/// A line, or nothing where there are no records.
pub fn next(seen: &Seen<'_>) -> String {
    let Some(first) = seen.records.first() else { return String::new() };
    let slow = seen.rows.iter().filter(|row| !row.control && first.clients == 1);
    if let Some(words) = slow.filter_map(|row| waits(row, first)).next() {
        return wrap(&words, width()).join("\n");
    }
    let (when, command) = helps(seen, first).unwrap_or_else(|| ("", words(&["show", "--wide"])));
    let is_piped = command.iter().any(|word| STDIN.contains(&word.as_str()));
    let pipe = if is_piped && first.job.data.is_stdin() { "... | " } else { "" };
    format!("next{when}: {pipe}kvfair {}", command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// What was typed, with what helps most, and when that is to be run.
fn helps(seen: &Seen<'_>, first: &Record) -> Option<(&'static str, Vec<String>)> {
    if matches!(first.job.data, Data::Program { .. }) || first.job.load.as_ref().is_some_and(|load| load.read_only) {
        return None;
    }
    let typed = match first.run.command.as_slice() {
        [run, ..] if run == "run" => first.run.command.clone(),
        // The first look, and records that do not tell.
        _ => words(&["run", &first.job.name]),
    };
    let typed = MADE.iter().fold(typed, |typed, option| without(typed, option));
    if seen.rows.iter().any(|row| matches!(row.status, Status::TimedOut { .. })) {
        return Some(("", with(typed, "--timeout", "30m")));
    }
    let of_rows = seen.rows.iter().filter(|row| !row.control && row.numbers.is_some()).map(|row| &row.target);
    let of_points = seen.points.iter().filter(|point| !point.control).map(|point| &point.target);
    let stores = of_rows.clone().chain(of_points).collect::<BTreeSet<_>>().len();
    if first.run.blocks < CLAIM_BLOCKS && stores > 1 && !first.run.answers_only {
        return Some(("", without(typed, "--blocks")));
    }
    match doubt(seen, stores).filter(|_| !first.run.answers_only) {
        Some(Doubt::Machine) => return Some((", on a quiet machine", typed)),
        Some(Doubt::NoControl) => return Some(("", typed.into_iter().filter(|word| word != "--no-aa").collect())),
        Some(Doubt::Short) => return Some(("", larger(typed, seen, first))),
        Some(Doubt::Wide) => return Some(("", longer(typed, seen))),
        Some(Doubt::Unhelped) => return None,
        None => {}
    }
    // What keeps nothing at all has nothing to lose by a class.
    let may_lose = first.durability == Durability::None && of_rows.count() > 0;
    may_lose.then(|| ("", with(typed, "--durability", "crash")))
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

fn doubt(seen: &Seen<'_>, stores: usize) -> Option<Doubt> {
    let points = || seen.points.iter().filter(|point| !point.control);
    let all = |holds: fn(&super::sweep::Point) -> bool| points().next().is_some() && points().all(holds);
    let standings = seen.standings;
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
        () if !seen.records.iter().any(|record| record.twin) => Doubt::NoControl,
        () if is_short(seen) => Doubt::Short,
        () => Doubt::Wide,
    })
}

/// A larger job: by its size where one was typed, otherwise by the time that it is to fill.
fn larger(typed: Vec<String>, seen: &Seen<'_>, first: &Record) -> Vec<String> {
    let option = format!("--{}s", first.stream.unit);
    let units = value(&typed, &option).and_then(|units| units.parse::<u64>().ok());
    match units {
        Some(units) => with(typed, &option, &(units * LARGER).to_string()),
        None => longer(typed, seen),
    }
}

/// More blocks, or more time for them.
fn longer(typed: Vec<String>, seen: &Seen<'_>) -> Vec<String> {
    let planned = seen.records.first().map_or(0, |record| record.run.blocks);
    let run = seen.records.iter().map(|record| record.block).max().unwrap_or(0);
    let budget = value(&typed, "--budget").and_then(doubled);
    if let (Some(budget), true) = (&budget, run < planned) {
        return with(typed, "--budget", budget);
    }
    match value(&typed, "--effort").map(str::parse) {
        _ if value(&typed, "--blocks").is_some() => with(typed, "--blocks", &(2 * planned).to_string()),
        None | Some(Ok(Effort::Quick)) => with(typed, "--effort", "normal"),
        Some(Ok(Effort::Normal)) => with(typed, "--effort", "careful"),
        _ => with(without(typed, "--effort"), "--blocks", &(2 * planned).to_string()),
    }
}

/// Twice as long: "90s" is "180s".
fn doubled(time: &str) -> Option<String> {
    let end = time.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(time.len());
    let (number, unit) = time.split_at(end);
    Some(format!("{}{unit}", number.parse::<f64>().ok()? * 2.0))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// What was typed behind that option.
fn value<'a>(typed: &'a [String], option: &str) -> Option<&'a str> {
    let of = |(place, word): (usize, &'a String)| match word.strip_prefix(option)? {
        "" => typed.get(place + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    };
    typed.iter().enumerate().find_map(of)
}

/// Without that option and its value.
fn without(typed: Vec<String>, option: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut typed = typed.into_iter();
    while let Some(word) = typed.next() {
        if word == option {
            typed.next();
        } else if !word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')) {
            kept.push(word);
        }
    }
    kept
}

/// With that value of the option, in place of the one that was typed.
fn with(typed: Vec<String>, option: &str, value: &str) -> Vec<String> {
    let mut typed = without(typed, option);
    let place = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    typed.splice(place..place, words(&[option, value]));
    typed
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
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
        "fans" if is_usual => format!("see --via batch, --via native, cached:{}, --clients 8", row.target),
        _ => "see --clients 8".to_string(),
    };
    Some(format!("{waiting}: {help}."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sweep::{self, Point};
    use super::super::{cells, histograms, standing};
    use super::*;
    use crate::words::disturbed::Disturbed;
    use crate::words::hist::{Packed, Times};

    /// Six blocks of two stores, the first of which is run twice in each.
    struct Run {
        typed: &'static [&'static str],
        planned: u32,
        /// What a trial takes, and how many times as long one of the second store and each second trial of the first.
        took_s: f64,
        times: [f64; 2],
        /// In blocks with an even number it is the other way round.
        is_even: bool,
        /// The processor was slow in all blocks but the first.
        noisy: bool,
        twin: bool,
    }

    const RUN: Run = Run {
        typed: &["run", "fans", "a", "b"],
        planned: 10,
        took_s: 1.0,
        times: [1.4, 1.4],
        is_even: true,
        noisy: false,
        twin: true,
    };

    fn record(run: &Run, label: &str, block: u32, twin: bool) -> Record {
        let times = if twin {
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
        (record.block, record.twin, record.run.blocks) = (block, twin, run.planned);
        record.run.command = words(run.typed);
        record.job.name = "fans".to_string();
        record.stream.unit = "profile".to_string();
        record.noise.canary_ns = Some(if run.noisy && block > 1 { 2_000 } else { 1_000 });
        record
    }

    fn next_of(run: &Run, points: &[Point]) -> String {
        let trials: &[(&str, bool)] = &[("a", false), ("b", false), ("a", true)];
        let trials = &trials[..if run.twin { 3 } else { 2 }];
        let records: Vec<Record> =
            (1..=6).flat_map(|block| trials.iter().map(move |(of, twin)| record(run, of, block, *twin))).collect();
        let standings = standing::standings(&records);
        let rows = cells::rows(&records, &standings);
        next(&Seen { records: &records, ahead: &[], rows: &rows, points, standings: &standings })
    }

    #[test]
    fn where_nothing_is_claimed_the_next_command_is_what_may_settle_it() {
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

        let alone = Run { typed: &["run", "fans", "--no-aa", "a", "b"], twin: false, ..RUN };
        assert_eq!(next_of(&alone, &[]), "next: kvfair run fans a b");
        assert_eq!(next_of(&Run { noisy: true, ..RUN }, &[]), "next, on a quiet machine: kvfair run fans a b");
    }

    #[test]
    fn where_something_is_claimed_or_all_is_disturbed_more_blocks_do_not_help() {
        let clear = Run { times: [2.0, 1.0], is_even: false, ..RUN };
        assert_eq!(next_of(&clear, &[]), "next: kvfair run fans a b --durability crash");
        let unclear = Some(Disturbed { stalled: false, reasons: Vec::new() });
        let silent = ["a", "b"].map(|of| Point { unclear: unclear.clone(), ..sweep::tests::point(of, 1, 1.0) });
        assert_eq!(next_of(&clear, &silent), "next, on a quiet machine: kvfair run fans a b");
        let limited = ["a", "b"].map(|of| Point { client_limited: true, ..sweep::tests::point(of, 1, 1.0) });
        assert_eq!(next_of(&clear, &limited), "next: kvfair show --wide");
    }

    #[test]
    fn an_option_is_replaced_where_it_was_typed() {
        let typed = words(&["run", "mixed", "--rate", "2k", "redis", "--blocks=1", "-o", "x"]);
        let changed = without(with(typed, "--blocks", "6"), "-o");
        assert_eq!(changed, words(&["run", "mixed", "--rate", "2k", "redis", "--blocks", "6"]));
        let behind = with(words(&["run", "fans", "--", "redis"]), "--timeout", "30m");
        assert_eq!(behind, words(&["run", "fans", "--timeout", "30m", "--", "redis"]));
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        assert_eq!(quoted("redis+unix"), "redis+unix");
        assert_eq!(quoted("redis?name=it's"), "'redis?name=it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
