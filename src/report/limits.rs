//! The highest rate of each target that keeps a promise, a line each.

use anyhow::Result;

use super::columns::{Column, exported, us, value};
use super::exit::{Exit, worst};
use super::grid::Grid;
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use super::table::TableLine;
use crate::model::promise::{Found, NoRate, Promise};
use crate::model::units;

/// What a search found.
pub struct LimitsReport<'a> {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub headline: String,
    pub found: &'a [Found],
    pub promise: &'a Promise,
    /// How the trials ended.
    pub ran: Exit,
}

const COLUMNS: &[Column<Found>] = &[
    exported("target", |one| one.target.as_str().into()),
    exported("rate_per_s", |one| value(one.rate)),
    exported("fails_at_per_s", |one| value(one.fails_at)),
    exported("response_us", |one| value(us(one.response_ns))),
    exported("closed_per_s", |one| one.closed_per_s.into()),
    exported("steps", |one| one.steps.into()),
    exported("unclear", |one| one.unclear.is_some().into()),
    exported("reason", |one| value(Some(one.reason.as_str()).filter(|reason| !reason.is_empty()))),
];

impl Shown for LimitsReport<'_> {
    fn exit(&self) -> Exit {
        let failed = self.found.iter().any(|one| one.unclear.is_none() && !one.reason.is_empty());
        let unclear = self.found.iter().any(|one| one.unclear.is_some());
        let ends = [failed.then_some(Exit::Error), unclear.then_some(Exit::Inconclusive)].into_iter().flatten();
        worst(ends.chain([self.ran]))
    }

    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let sentence = sentence(self.found, self.promise);
        Ok(vec![Block::Headline(self.headline.clone()), Block::Table(self.table()), Block::Paragraph(sentence)])
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, self.found, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&self.command, exit, json::JsonTable { rows: self.found })
    }
}

impl LimitsReport<'_> {
    pub fn table(&self) -> Grid {
        let title = format!("the highest rate that keeps the promise: {}", self.promise);
        Grid { title, lines: lines(self.found) }
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
            format!("{}/s", units::count(one.closed_per_s)),
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

/// The best and the worst, in one sentence.
pub fn sentence(found: &[Found], promise: &Promise) -> String {
    let mut kept: Vec<(&str, u64)> = found.iter().filter_map(|one| Some((one.target.as_str(), one.rate?))).collect();
    kept.sort_by_key(|(_, rate)| std::cmp::Reverse(*rate));
    let each: Vec<String> =
        kept.iter().map(|(target, rate)| format!("{target} {}/s", units::thousands(*rate))).collect();
    let (over, unclear): (Vec<&Found>, Vec<&Found>) =
        found.iter().filter(|one| one.unclear.is_some()).partition(|one| one.unclear == Some(NoRate::TimeOver));
    let nothing = [("The machine disturbed each try", &unclear), ("The time was over", &over)].map(|(why, of)| {
        let of: Vec<&str> = of.iter().map(|one| one.target.as_str()).collect();
        if of.is_empty() { String::new() } else { format!("{why}: nothing is said of {}.", of.join(", ")) }
    });
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
    use crate::report::render::{OutputForm, printed};

    #[test]
    fn the_fastest_comes_first_and_reasons_last() {
        let of = |target: &str, rate, fails_at, (unclear, reason): (Option<NoRate>, &str)| Found {
            target: target.to_string(),
            closed_per_s: 120_000.0,
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
        let promise = "p99:1ms".parse().unwrap();
        let (command, headline) = (Vec::new(), String::new());
        let report = LimitsReport { command, headline, found: &found, promise: &promise, ran: Exit::Ok };
        assert_eq!(report.exit(), Exit::Error);
        let text = printed(&report, Exit::Ok, OutputForm::Text, 100).expect("text");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines[0].ends_with("p99 at most 1 ms"), "{text}");
        assert!(lines[2].starts_with("fast") && lines[2].contains("84,000/s (fails at 88,200/s)"), "{text}");
        assert!(lines[3].starts_with("slow") && text.contains("breaks the promise at 12/s already"), "{text}");
        assert!(text.contains("gone      closed"), "{text}");
        let said = sentence(&found, &promise);
        assert!(said.starts_with("With p99 at most 1 ms: fast 84,000/s, slow 8,000/s."), "{said}");
        let nothing = "The machine disturbed each try: nothing is said of alone.";
        let disturbed = (Some(NoRate::Disturbed), "unclear: other programs used 94 % of the CPU");
        let alone = of("alone", None, None, disturbed);
        assert_eq!(sentence(std::slice::from_ref(&alone), &promise), nothing);
        let over = (Some(NoRate::TimeOver), "unclear: the time was over after 3 steps: a longer --budget");
        let late = of("late", None, None, over);
        assert_eq!(sentence(&[late], &promise), "The time was over: nothing is said of late.");
        let said = sentence(&[alone, of("no", None, Some(12), (None, ""))], &promise);
        assert_eq!(said, format!("No target that was tried keeps p99 at most 1 ms at any of its rates. {nothing}"));
    }
}
