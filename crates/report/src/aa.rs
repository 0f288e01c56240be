//! The A/A controls of a run: targets that had two trials in each block, and how far these came out from each other.

use std::collections::{BTreeMap, BTreeSet};

use super::standing::Counted;
use super::versus::Versus;
use kvfair_core::record::Record;
use kvfair_stats::floor::{AaNoise, Control};
use kvfair_stats::paired::{LogRatios, Ratio};
use kvfair_stats::sample::Sample;

/// One target's second trials against its first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated<'a> {
    pub target: &'a str,
    ratio: Ratio,
    /// The median time of its trials, in seconds.
    pub length_s: f64,
}

impl Repeated<'_> {
    pub fn versus(&self) -> Versus {
        self.ratio.into()
    }

    /// The target differs from itself: its interval leaves out 1.
    pub fn differs(&self) -> bool {
        !self.ratio.interval.contains(1.0)
    }

    pub fn control(&self) -> Control {
        Control { interval: self.ratio.interval, length_s: self.length_s }
    }
}

/// The controls by any cost, the shortest first; those of which no block has both costs are left out.
pub fn repeated<'a>(
    records: &'a [Record],
    counted: &Counted,
    cost: impl Fn(&Record) -> Option<f64>,
) -> Vec<Repeated<'a>> {
    let labels: BTreeSet<&str> =
        records.iter().filter(|record| record.aa_control).map(|record| record.target.label.as_str()).collect();
    let mut all: Vec<Repeated<'a>> =
        labels.into_iter().filter_map(|label| one(records, counted, &cost, label)).collect();
    all.sort_by(|one, other| one.length_s.total_cmp(&other.length_s));
    all
}

/// What they say together, by any cost.
pub fn noise(records: &[Record], counted: &Counted, cost: impl Fn(&Record) -> Option<f64>) -> AaNoise {
    let controls = repeated(records, counted, cost);
    AaNoise::of(controls.iter().map(Repeated::control), counted.is_noisy())
}

fn one<'a>(
    records: &'a [Record],
    counted: &Counted,
    cost: impl Fn(&Record) -> Option<f64>,
    label: &'a str,
) -> Option<Repeated<'a>> {
    let is_right = |record: &&Record| counted.blocks.contains(&record.block) && record.is_right();
    let trials = || records.iter().filter(|record| record.target.label == label).filter(is_right);
    let of = |second: bool| -> BTreeMap<u32, f64> {
        let these = trials().filter(|record| record.aa_control == second);
        these.filter_map(|record| Some((record.block, cost(record)?))).collect()
    };
    let (first, second) = (of(false), of(true));
    let both = first.iter().filter_map(|(block, cost)| Some((*second.get(block)?, *cost)));
    let (second, first): (Vec<f64>, Vec<f64>) = both.unzip();
    let length_s = Sample::new(trials().filter_map(Record::took_s).collect())?.median();
    Some(Repeated { target: label, ratio: LogRatios::of(&second, &first)?.ratio(), length_s })
}
