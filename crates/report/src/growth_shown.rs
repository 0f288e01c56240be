//! What is said of growth: a table of costs, and some sentences for each target.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::columns::{Column, composed, exported, shown, value};
use super::exit::{Exit, worst};
use super::formats::plain;
use super::grid::Grid;
use super::growth::{Grown, GrowthVerdict, grown, power};
use super::render::csv::csv;
use super::render::json;
use super::render::{Block, Medium, Shown};
use super::table::{TableLine, of_columns};
use kvfair_core::record::{Outcome, Record, Verdict};
use kvfair_core::units;
use kvfair_stats::growth::Fit;

/// The growths that the records of `kvfair growth` tell of.
pub struct GrowthReport<'a> {
    records: &'a [Record],
    grown: Vec<Grown>,
}

impl<'a> GrowthReport<'a> {
    /// Of at least one record.
    pub fn of(records: &'a [Record]) -> GrowthReport<'a> {
        GrowthReport { records, grown: grown(records) }
    }
}

const COLUMNS: &[Column<Grown>] = &[
    shown("target", "target", plain, |one| one.target.as_str().into()),
    shown("cpu_of", "CPU of", plain, |one| one.over.what(one.part).into()),
    exported("part", |one| one.part.name().into()),
    exported("over", |one| json::nested(&one.over)),
    composed("n", "n", |one| format!("{}-{}", units::thousands(one.from), units::thousands(one.to)).into()),
    exported("from", |one| one.from.into()),
    exported("to", |one| one.to.into()),
    shown("repetitions", "repetitions", plain, |one| one.repetitions.into()),
    composed("power", "grows with", |one| value(one.fit.map(power))),
    exported("exponent", |one| fitted(one, |fit| fit.exponent)),
    exported("exponent_low", |one| fitted(one, |fit| fit.low)),
    exported("exponent_high", |one| fitted(one, |fit| fit.high)),
    exported("verdict", |one| verdict(one).into()),
    exported("reason", |one| match &one.verdict {
        GrowthVerdict::Untried(why) | GrowthVerdict::Unclear(why) => why.as_str().into(),
        GrowthVerdict::OutOfProportion | GrowthVerdict::InProportion => Value::Null,
    }),
    composed("notable", "", |one| match one.verdict {
        GrowthVerdict::OutOfProportion => "out of proportion".into(),
        GrowthVerdict::Unclear(_) => "unclear".into(),
        GrowthVerdict::InProportion | GrowthVerdict::Untried(_) => "".into(),
    }),
];

const VIEW: &[&str] = &["target", "cpu_of", "n", "repetitions", "power", "notable"];

fn fitted(one: &Grown, number: fn(&Fit) -> f64) -> Value {
    value(one.fit.as_ref().map(number))
}

fn verdict(one: &Grown) -> &'static str {
    match one.verdict {
        GrowthVerdict::OutOfProportion => "out_of_proportion",
        GrowthVerdict::InProportion => "in_proportion",
        GrowthVerdict::Unclear(_) => "unclear",
        GrowthVerdict::Untried(_) => "untried",
    }
}

impl Shown for GrowthReport<'_> {
    /// What grows out of proportion is a result and no failure.
    fn exit(&self) -> Exit {
        let of_record = |record: &Record| match (&record.verdict, &record.outcome) {
            (Verdict::Wrong { .. }, _) => Exit::WrongAnswers,
            (_, Outcome::Missing { .. }) => Exit::Missing,
            _ => Exit::Ok,
        };
        let of_growth = |one: &Grown| match one.verdict {
            GrowthVerdict::Untried(_) => Exit::Error,
            GrowthVerdict::Unclear(_) => Exit::Inconclusive,
            _ => Exit::Ok,
        };
        worst(self.records.iter().map(of_record).chain(self.grown.iter().map(of_growth)))
    }

    fn blocks(&self, _: Medium) -> Result<Vec<Block>> {
        let said = sentences(&self.grown).into_iter().flat_map(|said| [said.clear, said.unclear].concat());
        Ok(vec![
            Block::Headline(headline(self.records)),
            Block::Table(Grid::of(lines(&self.grown))),
            Block::List(said.collect()),
        ])
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(COLUMNS, &self.grown, false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&self.records[0].run.command, exit, json::JsonTable { rows: &self.grown })
    }
}

/// What stands above the table.
pub fn headline(records: &[Record]) -> String {
    let seed = records.first().map_or(0, |record| record.run.seeds.order);
    format!("growth: the CPU of client and server as n grows, seed {seed}")
}

/// A line for each growth, below headings.
pub fn lines(grown: &[Grown]) -> Vec<TableLine> {
    of_columns(COLUMNS, VIEW, grown, |one| match &one.verdict {
        GrowthVerdict::Untried(why) => Some((one.target.clone(), format!("{}: {why}", one.over.what(one.part)))),
        _ => None,
    })
}

/// What is to be said of one target or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrowthSentences {
    /// What is out of proportion, a sentence each; or that nothing is.
    pub clear: Vec<String>,
    pub unclear: Vec<String>,
}

/// By target.
pub fn sentences(grown: &[Grown]) -> Vec<GrowthSentences> {
    let of_target = |ones: &[Grown]| {
        let mut said = GrowthSentences::default();
        let target = &ones[0].target;
        let is_out = |one: &&Grown| one.verdict == GrowthVerdict::OutOfProportion;
        let within = ones.iter().filter(|one| one.verdict == GrowthVerdict::InProportion).count();
        for (one, fit) in ones.iter().filter(is_out).filter_map(|one| Some((one, one.fit?))) {
            let (what, from, unit) = (one.over.what(one.part), units::thousands(fit.from as u64), one.over.unit());
            let what = format!("{target}: the CPU of {what} grows with {} from {from} {unit} on", power(fit));
            said.clear.push(format!("{what}: out of proportion."));
        }
        let mut unclear: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for one in ones {
            if let GrowthVerdict::Unclear(why) = &one.verdict {
                unclear.entry(why).or_default().push(one.over.what(one.part));
            }
        }
        for (why, what) in &unclear {
            let what = if what.len() == ones.len() { "everything".to_string() } else { what.join(", ") };
            said.unclear.push(format!("{target}: unclear: {what}: {why}."));
        }
        match (within, ones.iter().any(|one| is_out(&one))) {
            (all, _) if all == ones.len() => said.clear.push(format!("{target}: nothing grows out of proportion.")),
            (some, false) if some > 0 => {
                said.clear.push(format!("{target}: {some} of {} costs grow in proportion.", ones.len()));
            }
            _ => {}
        }
        said
    };
    grown.chunk_by(|one, other| one.target == other.target).map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::Over;
    use crate::table::layout;
    use kvfair_core::part::Part;

    fn fit(from: f64, times: f64, low: f64, high: f64) -> Fit {
        Fit { from, times, exponent: (low + high) / 2.0, low, high }
    }

    fn one(part: Part, over: Over, fit: Option<Fit>, verdict: GrowthVerdict) -> Grown {
        let (target, sizes) = ("some".to_string(), Vec::new());
        Grown { target, part, over, from: 1, to: 1_024, repetitions: 6, sizes, fit, verdict }
    }

    /// All sentences, one behind the other.
    fn all(grown: &[Grown]) -> String {
        let said = sentences(grown).into_iter().flat_map(|said| [said.clear, said.unclear].concat());
        said.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_clear_is_said_before_what_is_not() {
        let clear = || one(Part::Get, Over::Batch, None, GrowthVerdict::InProportion);
        let unclear = one(Part::Set, Over::Keys, None, GrowthVerdict::Unclear("few".to_string()));
        let said = sentences(&[clear(), clear(), clear(), unclear]);
        assert_eq!(said[0].clear, ["some: 3 of 4 costs grow in proportion."]);
        assert_eq!(said[0].unclear.len(), 1);
    }

    #[test]
    fn faults_are_sentences_and_the_rest_is_named_once() {
        let quadratic = fit(64.0, 16.0, 1.84, 1.96);
        let said = all(&[
            one(Part::Get, Over::Batch, Some(quadratic), GrowthVerdict::OutOfProportion),
            one(Part::Set, Over::Batch, None, GrowthVerdict::Unclear("few".to_string())),
            one(Part::Set, Over::Keys, None, GrowthVerdict::Unclear("few".to_string())),
        ]);
        assert_eq!(
            said,
            "some: the CPU of a get-many of n keys grows with n^1.9 [1.8-2.0] from 64 keys on: out of proportion. \
             some: unclear: a set-many of n keys, a set of each of n keys: few."
        );
        let fine = [one(Part::Get, Over::Clients, Some(fit(4.0, 16.0, 0.9, 1.1)), GrowthVerdict::InProportion)];
        assert_eq!(all(&fine), "some: nothing grows out of proportion.");
        let table = layout(&lines(&fine), 100);
        assert!(table.contains("a get by each of n clients") && table.contains("n^1.0 [0.9-1.1]"), "{table}");
        let unclear = [one(Part::Get, Over::Keys, None, GrowthVerdict::Unclear("few".to_string()))];
        assert_eq!(all(&unclear), "some: unclear: everything: few.");
    }
}
