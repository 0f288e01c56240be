//! How much is done so that a difference may be claimed: blocks, the width of intervals, time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How sure a run is to be, and how long it may take for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    #[default]
    Quick,
    Normal,
    Careful,
}

/// What an effort stands for (docs/method.md, How many blocks).
struct Terms {
    name: &'static str,
    least: u32,
    most: u32,
    plus_minus: f64,
    budget: Option<Duration>,
    rated_s: u32,
    data_seeds: &'static [u64],
}

/// In the order of the efforts.
const TERMS: [Terms; 3] = [
    Terms {
        name: "quick",
        least: 6,
        most: 10,
        plus_minus: 0.05,
        budget: Some(Duration::from_secs(120)),
        rated_s: 2,
        data_seeds: &[],
    },
    Terms {
        name: "normal",
        least: 6,
        most: 30,
        plus_minus: 0.03,
        budget: Some(Duration::from_secs(900)),
        rated_s: 5,
        data_seeds: &[],
    },
    // Eleven blocks are what the method asks for: here the next number that gives each seed as many.
    Terms { name: "careful", least: 12, most: 60, plus_minus: 0.01, budget: None, rated_s: 20, data_seeds: &[0, 1, 2] },
];

/// A run with fewer blocks claims nothing: no interval holds what it promises.
pub const CLAIM_BLOCKS: u32 = 4;

/// And none has more.
pub const BLOCKS_MAX: u32 = 1_000;

impl Effort {
    pub const ALL: [Effort; 3] = [Effort::Quick, Effort::Normal, Effort::Careful];

    fn terms(self) -> &'static Terms {
        &TERMS[self as usize]
    }

    /// The blocks of a run; `needed` are those that its pairs of targets need before the exact test can tell any apart.
    pub fn blocks(self, needed: u32) -> Blocks {
        let terms = self.terms();
        // A quick look does without the exact test where it has many targets: Student's takes its place.
        let least = if self == Effort::Quick { terms.least } else { terms.least.max(needed).min(terms.most) };
        Blocks { least, most: terms.most, plus_minus: Some(terms.plus_minus) }
    }

    /// The time that a run of it should take; `None` for as long as it takes.
    pub fn budget(self) -> Option<Duration> {
        self.terms().budget
    }

    /// The seeds of made data that blocks have in turn, so that a claim is not one about chance data;
    /// none where all blocks have the same.
    pub fn data_seeds(self) -> &'static [u64] {
        self.terms().data_seeds
    }

    /// How long a rate is kept in each block, in seconds.
    pub fn rated_s(self) -> u32 {
        self.terms().rated_s
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.terms().name)
    }
}

impl FromStr for Effort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Effort::ALL.into_iter().find(|effort| effort.terms().name == text);
        found.ok_or_else(|| format!("'{text}' is no effort: quick, normal or careful"))
    }
}

/// How many blocks of trials a run has, besides one that is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blocks {
    /// It does not end before these, unless the time is over.
    pub least: u32,
    pub most: u32,
    /// Between the two it ends once all intervals against the reference are no wider than so much to either side, as a
    /// share; `None` where all blocks are run.
    pub plus_minus: Option<f64>,
}

impl Blocks {
    pub fn exactly(count: u32) -> Blocks {
        Blocks { least: count, most: count, plus_minus: None }
    }

    /// Differences may be claimed: then there is a block before the first that is not counted, and the reference is run
    /// twice in each.
    pub fn may_claim(&self) -> bool {
        self.most >= CLAIM_BLOCKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efforts_are_known_by_their_names() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse(), Ok(effort));
        }
        assert!("hard".parse::<Effort>().is_err());
    }

    #[test]
    fn many_targets_need_more_blocks_but_for_a_quick_look() {
        assert_eq!(Effort::Quick.blocks(12).least, 6);
        assert_eq!(Effort::Normal.blocks(12).least, 12);
        assert_eq!(Effort::Normal.blocks(7).least, 7);
        assert_eq!(Effort::Careful.blocks(7).least, 12);
        assert!(!Blocks::exactly(3).may_claim() && Blocks::exactly(4).may_claim());
    }
}
