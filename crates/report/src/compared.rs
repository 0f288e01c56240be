//! What `kvfair compare` shows: a line for each target, as a table, for programs, and as a comment on a change.

use anyhow::Result;
use serde_json::Value;

use super::columns::{Column, exported, value};
use super::comment::{ComparedRuns, comment};
use super::compare::{ComparedCost, CostChange, Difference, lines};
use super::exit::Exit;
use super::grid::Grid;
use super::regression::{ComparisonEnd, JudgedLimit, worst};
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};

/// Two runs, or two targets of one, held against each other.
pub struct ComparisonReport<'a> {
    /// What was typed behind `kvfair`.
    pub command: Vec<String>,
    pub compared: &'a [ComparedCost],
    pub limits: Vec<JudgedLimit<'a>>,
    pub runs: ComparedRuns<'a>,
    /// How the run ended that was compared. Without a limit it is the comparison's own end.
    pub ran: Exit,
}

const COLUMNS: &[Column<ComparedCost>] = &[
    exported("target", |one| one.target.as_str().into()),
    exported("seconds_change", |one| change(&one.seconds).into()),
    exported("seconds_ratio", |one| of(&one.seconds, |found| Some(found.versus.ratio))),
    exported("seconds_ratio_low", |one| of(&one.seconds, |found| found.versus.low)),
    exported("seconds_ratio_high", |one| of(&one.seconds, |found| found.versus.high)),
    exported("seconds_noise_floor", |one| of(&one.seconds, |found| Some(found.noise_floor))),
    exported("seconds_noisy", |one| of(&one.seconds, |found| Some(found.noisy))),
    exported("seconds_reason", |one| reason(&one.seconds)),
    exported("cpu_change", |one| change(&one.cpu).into()),
    exported("cpu_ratio", |one| of(&one.cpu, |found| Some(found.versus.ratio))),
    exported("cpu_ratio_low", |one| of(&one.cpu, |found| found.versus.low)),
    exported("cpu_ratio_high", |one| of(&one.cpu, |found| found.versus.high)),
    exported("cpu_noise_floor", |one| of(&one.cpu, |found| Some(found.noise_floor))),
    exported("cpu_noisy", |one| of(&one.cpu, |found| Some(found.noisy))),
    exported("cpu_reason", |one| reason(&one.cpu)),
];

fn of<T: Into<Value>>(change: &CostChange, what: fn(&Difference) -> Option<T>) -> Value {
    match change {
        CostChange::Less(found) | CostChange::More(found) | CostChange::NoDifference(found) => value(what(found)),
        CostChange::NotComparable { .. } => Value::Null,
    }
}

fn change(change: &CostChange) -> &'static str {
    match change {
        CostChange::Less(_) => "less",
        CostChange::More(_) => "more",
        CostChange::NoDifference(_) => "no_difference",
        CostChange::NotComparable { .. } => "not_comparable",
    }
}

fn reason(change: &CostChange) -> Value {
    match change {
        CostChange::NotComparable { reason } => reason.as_str().into(),
        _ => Value::Null,
    }
}

impl Shown for ComparisonReport<'_> {
    fn exit(&self) -> Exit {
        match worst(&self.limits) {
            None => self.ran,
            Some(ComparisonEnd::Good) => Exit::Ok,
            Some(ComparisonEnd::Regressed) => Exit::Regression,
            Some(ComparisonEnd::Unclear) => Exit::Inconclusive,
        }
    }

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        let table = Block::Table(Grid::of(lines(self.compared)));
        // A terminal has them where its complaints are.
        let limits = self.limits.iter().filter(|_| medium == Medium::Page);
        let limits = limits.map(|limit| limit.in_words(|one| one.target.clone())).collect();
        Ok(vec![table, Block::List(limits)])
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, self.compared, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&self.command, exit, json::JsonTable { rows: self.compared })
    }

    /// A comment on a change.
    fn markdown(&self) -> Result<String> {
        Ok(comment(self.compared, &self.limits, &self.runs))
    }
}
