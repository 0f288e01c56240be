//! Warnings as values: what changes the conclusion, the evidence, and the way out.

use serde::Serialize;

use super::render::OneLine;
use super::run_report::RunReport;
use kvfair_core::preflight;

mod agents;
mod rules;

pub use rules::{is_short, where_data_lies};

/// One thing that a reader must know before believing a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warning {
    /// What `--no-warn` calls it.
    pub id: &'static str,
    /// What is so, and how it was seen.
    pub evidence: String,
    /// What is so, in one line.
    #[serde(skip)]
    pub brief: String,
    pub fix: String,
    /// The conclusion does not stand with it; less weighty ones change how far it goes.
    pub weighty: bool,
}

/// What warnings are called, beside those of the machine before the run, and when they are shown.
const OWN: &[(&str, &str)] = &[
    ("touch", "reading changes when keys of a server by URL were last used, and it evicts by that"),
    ("discarded", "more than 20 % of the blocks were discarded as noisy"),
    ("noise", "trials that count were not quiet"),
    ("aa-control", "an A/A interval leaves out 1, or is wider than ± 5 %"),
    ("no-aa", "no target was run twice (`--no-aa`, `--keep`): nothing is claimed"),
    ("timeout", "more than 0.01 % of the requests at a rate took 10 s or longer"),
    ("client-limited", "the load generator limits points of a sweep or a rate: they are not ranked"),
    ("agents", "agents began more than 10 ms apart, had no time left, or had others at work beside them"),
    ("rtt", "the proxy did not keep the round-trip time of `--rtt`, by a ping before the run or under load"),
    ("cold", "more than 1 % of a store's files stayed in the page cache when `--cold` dropped them"),
    ("drift", "a target became slower or faster from block to block"),
    ("unsteady", "in most of a target's trials the last third was not as fast as the first"),
    ("short", "a target took less than 0.5 s, or a point of a sweep less than 0.05 s: fixed costs dominate"),
    (
        "memory",
        "the largest store's files had between a quarter of the machine's memory and twice that: what is cached is chance",
    ),
    ("debug-build", "kvfair was built without optimisation"),
];

/// What `--no-warn` may name, and when each is shown.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    OWN.iter().copied().chain(preflight::KINDS)
}

/// What `--no-warn` may name.
pub fn ids() -> impl Iterator<Item = &'static str> {
    kinds().map(|(id, _)| id)
}

type Rule = fn(&RunReport<'_>) -> Vec<Warning>;

/// The weightiest first.
const RULES: &[Rule] = &[
    rules::room,
    rules::touch,
    rules::preflight_refused,
    rules::discarded,
    rules::aa_control,
    rules::no_aa_control,
    rules::timeouts,
    rules::client_limited,
    agents::agents,
    rules::rtt,
    rules::cold,
    rules::drift,
    rules::unsteady,
    rules::doubted,
    rules::short,
    rules::memory,
];

/// All that holds of a run, the weightiest first.
pub fn warnings(report: &RunReport<'_>) -> Vec<Warning> {
    if report.records.first().is_none_or(|record| record.run.answers_only) {
        return Vec::new();
    }
    let mut all: Vec<Warning> = RULES.iter().flat_map(|rule| rule(report)).collect();
    all.extend(rules::machine(report));
    all.extend(rules::debug_build(report));
    all.sort_by_key(|warning| !warning.weighty);
    all
}

/// Those that were not silenced.
pub fn heard(warnings: &[Warning], silenced: &[String]) -> Vec<Warning> {
    warnings.iter().filter(|warning| !silenced.iter().any(|id| id == warning.id)).cloned().collect()
}

/// As they are printed with all that is known of them, a line each.
pub fn printed(warnings: &[Warning]) -> Vec<String> {
    let line = |warning: &Warning| format!("warning ({}): {}: {}", warning.id, warning.evidence, warning.fix);
    warnings.iter().map(line).collect()
}

impl Warning {
    /// The same, of one of several sizes.
    pub fn at(self, size: &str) -> Warning {
        let at = |text: &str| format!("at {size} {text}");
        Warning { evidence: at(&self.evidence), brief: at(&self.brief), ..self }
    }

    /// The same in fewer words.
    fn in_brief(self, brief: String) -> Warning {
        Warning { brief, ..self }
    }

    /// In one line of a terminal.
    pub fn line(&self) -> OneLine {
        OneLine { text: format!("warning ({}): {}", self.id, self.brief), more: format!(": {}", self.fix) }
    }
}

fn warning(id: &'static str, weighty: bool, evidence: String, fix: &str) -> Warning {
    assert!(ids().any(|known| known == id), "{id} cannot be silenced");
    Warning { id, brief: evidence.clone(), evidence, fix: fix.to_string(), weighty }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_silenced_are_left_out_and_a_size_stands_first() {
        let all: Vec<Warning> = ["discarded", "short"]
            .map(|id| warning(id, true, format!("{id} is so; much"), "do this").in_brief(format!("{id} is so")))
            .to_vec();
        assert_eq!(printed(&heard(&all, &["discarded".to_string()])), ["warning (short): short is so; much: do this"]);
        let line = all[1].clone().at("10 profiles").line();
        assert_eq!(line.whole(), "warning (short): at 10 profiles short is so: do this");
        assert_eq!(line.text, "warning (short): at 10 profiles short is so");
    }
}
