//! The highest rate of each target that keeps a promise, a line each: what the trials of `kvfair find-max` tell.

use std::collections::BTreeMap;

use anyhow::Result;

use super::columns::{Column, exported, us, value};
use super::exit::{Exit, worst};
use super::grid::Grid;
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use super::run_report::RunReport;
use super::table::TableLine;
use super::{exit, words};
use kvfair_core::promise::{self, CONFIRMATIONS, Found, Judged, NoRate, Promise};
use kvfair_core::record::Record;
use kvfair_core::units;
use kvfair_stats::sample::rank_bounds;

/// The command whose trials these are.
const NAME: &str = "find-max";

/// What a search found.
pub struct LimitsReport {
    /// What was typed behind `kvfair`.
    command: Vec<String>,
    headline: String,
    pub found: Vec<Found>,
    promise: Promise,
    /// How the trials ended.
    ran: Exit,
}

impl LimitsReport {
    /// None of the records of another command.
    pub fn of(records: &[Record]) -> Option<LimitsReport> {
        let promise = promise_of(records)?;
        Some(LimitsReport::new(records[0].run.command.clone(), promise, records))
    }

    pub fn new(command: Vec<String>, promise: Promise, records: &[Record]) -> LimitsReport {
        let run = RunReport::of_rows(records);
        LimitsReport {
            command,
            headline: words::headline(records, &run.standings),
            found: searched(records, promise),
            promise,
            ran: exit::of_rows(run.records, &run.rows),
        }
    }

    /// With what the search itself knows: how it ended for each target. Responses are those of the trials.
    pub fn with(self, known: &[Found]) -> LimitsReport {
        let response = |target: &str| self.found.iter().find(|one| one.target == target)?.response_ns;
        let mut found: Vec<Found> = known
            .iter()
            .map(|one| Found { response_ns: response(&one.target).filter(|_| one.rate.is_some()), ..one.clone() })
            .collect();
        let is_known = |one: &Found| known.iter().any(|known| known.target == one.target);
        found.extend(self.found.iter().filter(|one| !is_known(one)).cloned());
        LimitsReport { found, ..self }
    }
}

/// What was promised; nothing of the records of another command.
pub fn promise_of(records: &[Record]) -> Option<Promise> {
    let command = records.first().map(|first| first.run.command.as_slice())?;
    (command.first().is_some_and(|name| name == NAME)).then(|| promised(command)).flatten()
}

/// What the trials of a search tell of each target, in the order in which these were searched.
pub fn searched(records: &[Record], promise: Promise) -> Vec<Found> {
    let trials = || records.iter().filter(|record| !record.discarded && !record.target.baseline);
    let mut targets: Vec<&str> = Vec::new();
    for target in trials().map(|record| record.target.label.as_str()) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let of = |target: &str| trials().filter(|record| record.target.label == target).collect::<Vec<_>>();
    targets.into_iter().map(|target| of_target(target, &of(target), promise)).collect()
}

fn of_target(target: &str, records: &[&Record], promise: Promise) -> Found {
    let steps: Vec<Step> = records.iter().filter_map(|record| step(record, promise)).collect();
    let closed_per_s = records.iter().find_map(|record| record.run.closed_per_s);
    let found = Found { target: target.to_string(), closed_per_s, steps: steps.len() as u32, ..Found::default() };
    if let Some(reason) = records.iter().rev().find_map(|record| failure(record)) {
        return Found { reason, ..found };
    }
    if let Some((rate, fails_at)) = highest(&steps) {
        return Found { rate: Some(rate), fails_at, response_ns: response_at(rate, &steps), ..found };
    }
    match breaks_at(&steps, closed_per_s) {
        Some(rate) => Found { fails_at: Some(rate), ..found },
        None => {
            let steps = units::counted(found.steps.into(), "step");
            let reason = format!("unclear: the search ended after {steps}, before a rate was confirmed");
            Found { unclear: Some(NoRate::Untold), reason, ..found }
        }
    }
}

/// The lowest rate, where even that broke the promise and no lower one would have been tried.
fn breaks_at(steps: &[Step], closed_per_s: Option<f64>) -> Option<u64> {
    let lowest = steps.iter().map(|step| step.rate).min()?;
    let last = steps.iter().rfind(|step| step.rate == lowest)?;
    let is_least = closed_per_s.is_none_or(|per_s| lowest <= promise::lowest_rate(per_s));
    (is_least && last.judged != Judged::Kept).then_some(lowest)
}

/// "3,000/s: its answers were wrong".
fn failure(record: &Record) -> Option<String> {
    let why = promise::failure(record)?;
    let rate = record.job.load.as_ref().and_then(|load| load.rates.first());
    Some(rate.map_or_else(|| why.clone(), |rate| format!("{}/s: {why}", units::thousands(*rate))))
}

/// The worst response of the last trials in a row at this rate.
fn response_at(rate: u64, steps: &[Step]) -> Option<u64> {
    let last = steps.iter().rev().skip_while(|step| step.rate != rate).take_while(|step| step.rate == rate);
    last.map(|step| step.response_ns).max()
}

/// What was typed behind `--slo`.
fn promised(command: &[String]) -> Option<Promise> {
    let mut words = command.iter().skip_while(|word| *word != "--slo" && !word.starts_with("--slo="));
    let typed = match words.next() {
        Some(word) => word.strip_prefix("--slo=").or_else(|| words.next().map(String::as_str))?,
        None => promise::USUAL,
    };
    typed.parse().ok()
}

/// One trial of a search.
#[derive(Clone, Copy, Debug)]
struct Step {
    rate: u64,
    units: u64,
    judged: Judged,
    response_ns: u64,
}

/// Nothing of a trial that is no step: it failed, or has no rate.
fn step(record: &Record, promise: Promise) -> Option<Step> {
    let rate = *record.job.load.as_ref()?.rates.first()?;
    let open = record.phases.iter().filter_map(|phase| Some((phase, phase.open.as_ref()?)));
    let of_phase = open.map(|(phase, open)| {
        let response = open.response_ns.times().ok()?;
        let (lower, upper) = rank_bounds(response.count(), promise.quantile);
        let bounds = (response.at_rank(lower), response.at_rank(upper));
        let judged = promise.judged_at_rate(open.is_kept(phase.took_s), bounds);
        Some((judged, response.value_at(promise.quantile)))
    });
    let (judged, responses): (Vec<Judged>, Vec<u64>) = of_phase.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let (judged, response_ns) = (judged.into_iter().max()?, responses.into_iter().max()?);
    record.is_right().then_some(Step { rate, units: record.job.units.unwrap_or_default(), judged, response_ns })
}

/// As the search itself says it: the highest rate that the last trials in a row kept, as many and as long as a
/// confirmation has.
fn highest(steps: &[Step]) -> Option<(u64, Option<u64>)> {
    let mut by_rate: BTreeMap<u64, Vec<Step>> = BTreeMap::new();
    for step in steps {
        by_rate.entry(step.rate).or_default().push(*step);
    }
    let is_confirmed = |steps: &Vec<Step>| {
        let last: Vec<&Step> = steps.iter().rev().take(CONFIRMATIONS as usize).collect();
        last.len() == CONFIRMATIONS as usize
            && last.iter().all(|step| step.judged == Judged::Kept && step.units == last[0].units)
    };
    let (kept, _) = by_rate.iter().rev().find(|(_, steps)| is_confirmed(steps))?;
    let broke = |steps: &Vec<Step>| steps.last().is_some_and(|step| step.judged != Judged::Kept);
    let fails_at = by_rate.range(kept + 1..).find(|(_, steps)| broke(steps)).map(|(rate, _)| *rate);
    Some((*kept, fails_at))
}

const COLUMNS: &[Column<Found>] = &[
    exported("target", |one| one.target.as_str().into()),
    exported("rate_per_s", |one| value(one.rate)),
    exported("fails_at_per_s", |one| value(one.fails_at)),
    exported("response_us", |one| value(us(one.response_ns))),
    exported("closed_per_s", |one| value(one.closed_per_s)),
    exported("steps", |one| one.steps.into()),
    exported("unclear", |one| one.unclear.is_some().into()),
    exported("reason", |one| value(Some(one.reason.as_str()).filter(|reason| !reason.is_empty()))),
];

impl Shown for LimitsReport {
    fn exit(&self) -> Exit {
        let failed = self.found.iter().any(|one| one.unclear.is_none() && !one.reason.is_empty());
        let unclear = self.found.iter().any(|one| one.unclear.is_some());
        let ends = [failed.then_some(Exit::Error), unclear.then_some(Exit::Inconclusive)].into_iter().flatten();
        worst(ends.chain([self.ran]))
    }

    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let headline = Block::Headline(self.headline.clone());
        Ok(vec![headline, Block::Table(self.table()), Block::Paragraph(self.sentence())])
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.found, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&self.command, exit, json::JsonTable { rows: &self.found })
    }
}

impl LimitsReport {
    pub fn sentence(&self) -> String {
        sentence(&self.found, &self.promise)
    }

    pub fn table(&self) -> Grid {
        let title = format!("the highest rate that keeps the promise: {}", self.promise);
        Grid { title, lines: lines(&self.found) }
    }
}

/// The fastest first; what has no rate says why.
fn lines(found: &[Found]) -> Vec<TableLine> {
    let mut found: Vec<&Found> = found.iter().collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.rate));
    let headings = ["target", "at most", "response there", "closed loop", "steps"];
    let mut lines = vec![TableLine::Cells(headings.map(str::to_string).to_vec())];
    lines.extend(found.into_iter().map(|one| match (one.rate, one.fails_at, one.reason.as_str()) {
        (Some(rate), fails_at, "") => TableLine::Cells(vec![
            one.target.clone(),
            at_most(rate, fails_at),
            one.response_ns.map_or_else(|| "-".to_string(), units::nanoseconds),
            one.closed_per_s.map_or_else(|| "-".to_string(), |per_s| format!("{}/s", units::count(per_s))),
            one.steps.to_string(),
        ]),
        (None, Some(fails_at), "") => {
            let what = format!("breaks the promise at {}/s already", units::thousands(fails_at));
            TableLine::Reason(one.target.clone(), what)
        }
        (_, _, reason) => TableLine::Reason(one.target.clone(), reason.to_string()),
    }));
    lines
}

/// "84,000/s (fails at 88,200/s)".
fn at_most(rate: u64, fails_at: Option<u64>) -> String {
    let fails = fails_at.map_or_else(String::new, |rate| format!(" (fails at {}/s)", units::thousands(rate)));
    format!("{}/s{fails}", units::thousands(rate))
}

/// Why nothing is said of a target.
const WHY_NO_RATE: [(NoRate, &str); 3] = [
    (NoRate::Disturbed, "The machine disturbed each try"),
    (NoRate::TimeOver, "The time was over"),
    (NoRate::Untold, "The trials do not tell how the search ended"),
];

/// The best and the worst, in one sentence.
fn sentence(found: &[Found], promise: &Promise) -> String {
    let mut kept: Vec<(&str, u64)> = found.iter().filter_map(|one| Some((one.target.as_str(), one.rate?))).collect();
    kept.sort_by_key(|(_, rate)| std::cmp::Reverse(*rate));
    let each: Vec<String> =
        kept.iter().map(|(target, rate)| format!("{target} {}/s", units::thousands(*rate))).collect();
    let nothing = WHY_NO_RATE.map(|(why, words)| {
        let of = found.iter().filter(|one| one.unclear == Some(why)).map(|one| one.target.as_str());
        let of: Vec<&str> = of.collect();
        if of.is_empty() { String::new() } else { format!("{words}: no result for {}.", of.join(", ")) }
    });
    let nothing: Vec<String> = nothing.into_iter().filter(|words| !words.is_empty()).collect();
    let kept = match each.is_empty() {
        true if found.iter().all(|one| one.unclear.is_some()) => String::new(),
        true => format!("No target that was tried keeps {promise} at any of its rates."),
        false => {
            format!("With {promise}: {}. No claim: each rate was confirmed three times, in one run.", each.join(", "))
        }
    };
    format!("{kept} {}", nothing.join(" ")).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{OutputForm, printed};

    #[test]
    fn the_fastest_comes_first_and_reasons_last() {
        let of = |target: &str, rate, fails_at, (unclear, reason): (Option<NoRate>, &str)| Found {
            target: target.to_string(),
            closed_per_s: Some(120_000.0),
            rate,
            fails_at,
            response_ns: Some(910_000),
            steps: 11,
            unclear,
            reason: reason.to_string(),
        };
        let found = [
            of("slow", Some(8_000), Some(8_400), (None, "")),
            of("no", None, Some(12), (None, "")),
            of("fast", Some(84_000), Some(88_200), (None, "")),
            of("gone", None, None, (None, "closed")),
        ];
        let old = Found { closed_per_s: None, ..found[0].clone() };
        assert!(matches!(&lines(&[old])[1], TableLine::Cells(cells) if cells[3] == "-"), "it is not known");
        let promise = "p99:1ms".parse().unwrap();
        let (command, headline) = (Vec::new(), String::new());
        let report = LimitsReport { command, headline, found: found.to_vec(), promise, ran: Exit::Ok };
        assert_eq!(report.exit(), Exit::Error);
        let text = printed(&report, Exit::Ok, OutputForm::Text, 100).expect("text");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines[0].ends_with("p99 at most 1 ms"), "{text}");
        assert!(lines[2].starts_with("fast") && lines[2].contains("84,000/s (fails at 88,200/s)"), "{text}");
        assert!(lines[3].starts_with("slow") && text.contains("breaks the promise at 12/s already"), "{text}");
        assert!(text.contains("gone      closed"), "{text}");
        let said = sentence(&found, &promise);
        assert!(said.starts_with("With p99 at most 1 ms: fast 84,000/s, slow 8,000/s."), "{said}");
        let nothing = "The machine disturbed each try: no result for alone.";
        let disturbed = (Some(NoRate::Disturbed), "unclear: other programs used 94 % of the CPU");
        let alone = of("alone", None, None, disturbed);
        assert_eq!(sentence(std::slice::from_ref(&alone), &promise), nothing);
        let over = (Some(NoRate::TimeOver), "unclear: the time was over after 3 steps: a longer --budget");
        let late = of("late", None, None, over);
        assert_eq!(sentence(&[late], &promise), "The time was over: no result for late.");
        let said = sentence(&[alone, of("no", None, Some(12), (None, ""))], &promise);
        assert_eq!(said, format!("No target that was tried keeps p99 at most 1 ms at any of its rates. {nothing}"));
    }

    #[test]
    fn the_highest_rate_is_the_one_whose_last_trials_kept_it() {
        let (kept, broken) = (Judged::Kept, Judged::Broken);
        let steps = |all: &[(u64, u64, Judged)]| {
            highest(
                &all.iter()
                    .map(|&(rate, units, judged)| Step { rate, units, judged, response_ns: rate })
                    .collect::<Vec<_>>(),
            )
        };
        let search = [(10, 1, kept), (90, 1, broken), (50, 1, kept), (70, 1, kept), (70, 3, kept), (70, 3, broken)];
        let end = [(60, 3, kept), (60, 3, kept), (60, 3, kept)];
        let found = steps(&[&search[..], &end[..]].concat());
        assert_eq!(found, Some((60, Some(70))));
        assert_eq!(steps(&search), None);
        assert_eq!(steps(&[(50, 1, kept), (50, 3, kept), (50, 3, kept)]), None, "cut off: the first one was short");
        let promise = |words: &[&str]| promised(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(promise(&["find-max", "mixed", "--slo", "p50:4ms"]), "p50:4ms".parse().ok());
        assert_eq!(promise(&["find-max", "mixed", "--slo=p50:4ms"]), "p50:4ms".parse().ok());
        assert_eq!(promise(&["find-max", "mixed"]), "p99:1ms".parse().ok());
        assert_eq!(promise(&["find-max", "mixed", "--slo"]), None);
    }

    #[test]
    fn a_search_that_broke_down_to_its_lowest_rate_did_end() {
        let step = |rate, judged| Step { rate, units: 1, judged, response_ns: 1 };
        let (kept, broken) = (Judged::Kept, Judged::Broken);
        let down = [step(10, kept), step(10, broken), step(5, broken), step(1, broken)];
        assert_eq!(breaks_at(&down, Some(80.0)), Some(1), "though a short step kept a higher rate");
        assert_eq!(breaks_at(&down[..3], Some(80.0)), None, "a lower one would have been tried");
        assert_eq!(breaks_at(&down[..3], None), Some(5), "a file from before tells no more");
        assert_eq!(breaks_at(&[step(1, broken), step(1, kept)], Some(80.0)), None);
    }

    #[test]
    fn what_the_search_knows_stands_before_what_its_trials_tell() {
        let of = |target: &str, rate, response_ns| Found {
            target: target.to_string(),
            rate,
            response_ns,
            ..Found::default()
        };
        let told = vec![of("b", Some(7), Some(3)), of("a", Some(9), Some(4))];
        let promise = "p99:1ms".parse().unwrap();
        let (command, headline) = (Vec::new(), String::new());
        let report = LimitsReport { command, headline, found: told, promise, ran: Exit::Ok };
        let over = Found { unclear: Some(NoRate::TimeOver), ..of("a", None, None) };
        let found = report.with(std::slice::from_ref(&over)).found;
        assert_eq!(found, [over, of("b", Some(7), Some(3))]);
    }
}
