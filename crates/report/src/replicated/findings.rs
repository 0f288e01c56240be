//! What a command finds that is no comparison of two targets' costs, and what another run of that command says to it.
//! A table has the commands: how each is read, and how each is judged.

use serde::{Deserialize, Serialize};

use super::PageRun;
use super::judge::{JudgedClaim, Judgement};
use crate::growth::{Grown, GrowthVerdict, power};
use crate::levers::LeverReport;
use crate::levers::text::{cell, listed};
use crate::limits;
use kvfair_core::promise::Found;
use kvfair_core::record::Record;
use kvfair_core::units;
use kvfair_stats::levers::{Confirmed, Gain, LeverEffect};

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageFinding {
    /// What it is about: the same in each run that looked at it.
    pub about: String,
    /// The answer, as a word that other runs have too; none where it is unclear, or is a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<FoundRate>,
    /// "redis: unix helps".
    pub words: String,
    /// "1.9x [1.8-2.0]", or why nothing is claimed.
    pub evidence: String,
}

/// The highest rate that keeps a promise, in requests a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundRate {
    pub kept: u64,
    /// The lowest rate above it that broke the promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails_at: Option<u64>,
}

impl FoundRate {
    fn fails_at(self) -> f64 {
        self.fails_at.unwrap_or(self.kept).max(self.kept) as f64
    }

    /// How many times as high the one is as the other, between the ends that are nearest; 1 where they meet.
    fn times(self, other: FoundRate) -> f64 {
        let (low, high) = if self.kept <= other.kept { (self, other) } else { (other, self) };
        (high.kept as f64 / low.fails_at().max(1.0)).max(1.0)
    }
}

impl PageFinding {
    pub fn is_claim(&self) -> bool {
        self.answer.is_some() || self.rate.is_some()
    }
}

/// What a page knows of a run.
pub struct SeenRun<'a> {
    pub records: &'a [Record],
    pub levers: Option<&'a LeverReport>,
    pub grown: Option<&'a [Grown]>,
}

/// A command whose findings can be held against those of another run.
pub struct FindingKind {
    pub command: &'static str,
    pub found: fn(&SeenRun<'_>) -> Vec<PageFinding>,
    /// A finding, those of the other run, and whether both ran on the same machine.
    pub judge: fn(&PageFinding, &[PageFinding], bool) -> JudgedClaim,
    /// Both runs must have the same size and data. Others choose sizes as they go.
    pub has_one_size: bool,
}

pub const KINDS: [FindingKind; 4] = [
    FindingKind { command: "levers", found: of_levers, judge: by_answer, has_one_size: true },
    FindingKind { command: "advise", found: of_levers, judge: by_answer, has_one_size: true },
    FindingKind { command: "growth", found: of_growth, judge: by_answer, has_one_size: false },
    FindingKind { command: "find-max", found: highest_rates, judge: by_rate, has_one_size: false },
];

/// None of a run of a job: what that claims are comparisons.
pub fn kind(run: &PageRun) -> Option<&'static FindingKind> {
    kind_of(run.made_by())
}

pub fn kind_of(command: &str) -> Option<&'static FindingKind> {
    KINDS.iter().find(|kind| kind.command == command)
}

/// Two searches on the same machine may find rates that differ by so much and say the same. From the second factor on
/// they say different things.
const NEAR: f64 = 1.25;
const FAR: f64 = 2.0;

/// The same answer reproduces a finding, and another one contradicts it.
fn by_answer(finding: &PageFinding, there: &[PageFinding], _: bool) -> JudgedClaim {
    let Some(other) = there.iter().find(|other| other.about == finding.about) else {
        return judged(Judgement::Untold, not_measured(finding, there));
    };
    match (&finding.answer, &other.answer) {
        (Some(one), Some(another)) if one == another => judged(Judgement::Reproduced, other.evidence.clone()),
        (Some(_), Some(_)) => judged(Judgement::Contradicted, format!("{}, {}", other.words, other.evidence)),
        _ => judged(Judgement::Untold, other.evidence.clone()),
    }
}

/// A pilot may have chosen another value of the same lever there: `via batch`, `?io-threads=2`.
fn not_measured(finding: &PageFinding, there: &[PageFinding]) -> String {
    let lever = |about: &str| about.rfind(['=', ' ']).map(|end| about[..=end].to_string());
    let is_of_lever = |other: &&PageFinding| lever(&other.about) == lever(&finding.about);
    match there.iter().find(is_of_lever) {
        Some(other) => format!("a pilot chose another value there: {}", other.about),
        None => "it was not measured there".to_string(),
    }
}

/// A rate is one of its machine: on another one it is reproduced, or nothing can be told.
fn by_rate(finding: &PageFinding, there: &[PageFinding], is_same_machine: bool) -> JudgedClaim {
    let Some(rate) = finding.rate else { return by_answer(finding, there, is_same_machine) };
    let Some(other) = there.iter().find(|other| other.about == finding.about) else {
        return judged(Judgement::Untold, "it was not measured there".to_string());
    };
    let Some(found) = other.rate else { return judged(Judgement::Untold, other.evidence.clone()) };
    let times = rate.times(found);
    match times {
        _ if times <= NEAR => judged(Judgement::Reproduced, other.evidence.clone()),
        _ if !is_same_machine => judged(Judgement::Untold, format!("{} on another machine", other.evidence)),
        _ if times >= FAR => judged(Judgement::Contradicted, other.evidence.clone()),
        _ => {
            let words = format!("{}: {times:.2} times apart, and below {FAR} two searches may differ", other.evidence);
            judged(Judgement::Untold, words)
        }
    }
}

fn judged(judgement: Judgement, words: String) -> JudgedClaim {
    JudgedClaim { judgement, words, seen: None }
}

/// Each lever alone, all together, and the sets that were tried in fresh blocks.
fn of_levers(seen: &SeenRun<'_>) -> Vec<PageFinding> {
    let Some(report) = seen.levers else { return Vec::new() };
    let base = &report.base;
    let of_gain = |what: &str, gain: Option<&Gain>| {
        let answer = gain.and_then(|gain| gain.effect).map(|effect| match effect {
            LeverEffect::Helps => "helps",
            LeverEffect::Hurts => "hurts",
        });
        let words = format!("{base}: {what} {}", answer.unwrap_or("is not told apart"));
        let (about, answer) = (format!("{base}: {what}"), answer.map(str::to_string));
        PageFinding { about, answer, rate: None, words, evidence: cell(gain) }
    };
    let mut found: Vec<PageFinding> =
        report.levers.iter().map(|lever| of_gain(&lever.change, lever.alone.as_ref())).collect();
    if report.is_advice {
        return found;
    }
    let together: Vec<String> =
        report.levers.iter().filter(|lever| lever.not_in_all.is_none()).map(|lever| lever.change.clone()).collect();
    if together.len() > 1 {
        found.push(of_gain(&format!("all together ({})", in_order(&together)), report.together.as_ref()));
    }
    found.extend(report.tried_sets.iter().map(|tried| {
        let what = format!("{base}: {}", in_order(&tried.levers));
        let (answer, evidence) = match tried.found {
            Some(Confirmed::Enough) => (Some("enough"), "all levers are no faster in fresh blocks"),
            Some(Confirmed::Short) => (Some("too few"), "all levers are faster in fresh blocks"),
            Some(Confirmed::Open) => (None, "all levers may be faster: fresh blocks do not tell"),
            None => (None, "there are no fresh blocks of it"),
        };
        let (verb, answer) = (if tried.levers.len() == 1 { "is" } else { "are" }, answer.map(str::to_string));
        let words = format!("{what} {verb} {}", answer.as_deref().unwrap_or("not told apart from all"));
        PageFinding { about: format!("{what} beside all"), answer, rate: None, words, evidence: evidence.to_string() }
    }));
    found
}

/// Levers are sorted by what they gain, which differs from run to run.
fn in_order(changes: &[String]) -> String {
    let mut sorted = changes.to_vec();
    sorted.sort();
    listed(&sorted)
}

fn of_growth(seen: &SeenRun<'_>) -> Vec<PageFinding> {
    let one = |grown: &Grown| {
        let what = format!("{}: the CPU of {}", grown.target, grown.over.what(grown.part));
        let fit = grown.fit.map_or_else(|| "no growth".to_string(), power);
        let (answer, evidence) = match &grown.verdict {
            GrowthVerdict::InProportion => (Some("in proportion"), fit),
            GrowthVerdict::OutOfProportion => (Some("out of proportion"), fit),
            GrowthVerdict::Unclear(why) | GrowthVerdict::Untried(why) => (None, why.clone()),
        };
        let words = format!("{what} grows {}", answer.unwrap_or("in an unknown way"));
        PageFinding { about: what, answer: answer.map(str::to_string), rate: None, words, evidence }
    };
    seen.grown.unwrap_or_default().iter().map(one).collect()
}

/// The highest rate of each target, and which of two targets has the higher one.
fn highest_rates(seen: &SeenRun<'_>) -> Vec<PageFinding> {
    let Some(promise) = limits::promise_of(seen.records) else { return Vec::new() };
    let mut searched = limits::searched(seen.records, promise);
    searched.sort_by(|one, other| one.target.cmp(&other.target));
    let rate = |one: &Found| one.rate.map(|kept| FoundRate { kept, fails_at: one.fails_at });
    let rates: Vec<(&str, Option<FoundRate>)> = searched.iter().map(|one| (one.target.as_str(), rate(one))).collect();
    let alone = rates.iter().map(|&(target, rate)| PageFinding {
        about: format!("{target}: the highest rate with {promise}"),
        answer: None,
        rate,
        words: format!("{target}: the highest rate with {promise} is {}", rate.map_or("unknown".to_string(), in_words)),
        evidence: rate.map_or("no rate was confirmed there".to_string(), in_words),
    });
    let pairs = rates.iter().enumerate().flat_map(|(place, one)| rates[place + 1..].iter().map(move |two| (one, two)));
    let pairs = pairs.filter_map(|(&(one, first), &(two, second))| {
        let (first, second) = (first?, second?);
        let (high, low) = if first.kept >= second.kept { (one, two) } else { (two, one) };
        let is_told = first.times(second) > NEAR;
        Some(PageFinding {
            about: format!("{one} and {two}: which keeps {promise} at the higher rate"),
            answer: is_told.then(|| high.to_string()),
            rate: None,
            words: format!("{high} keeps {promise} at a higher rate than {low}"),
            evidence: format!("{one} {}, {two} {}", in_words(first), in_words(second)),
        })
    });
    alone.chain(pairs).collect()
}

/// "84,000/s (fails at 88,200/s)".
fn in_words(rate: FoundRate) -> String {
    let fails = rate.fails_at.map_or_else(String::new, |at| format!(" (fails at {}/s)", units::thousands(at)));
    format!("{}/s{fails}", units::thousands(rate.kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(kept: u64, fails_at: u64) -> PageFinding {
        let rate = Some(FoundRate { kept, fails_at: Some(fails_at) });
        let (about, words) = ("r".to_string(), String::new());
        PageFinding { about, answer: None, rate, words, evidence: kept.to_string() }
    }

    #[test]
    fn rates_that_are_near_are_the_same_and_far_ones_contradict_on_the_same_machine() {
        let one = rate(1_000, 1_050);
        let told = |other: PageFinding, is_same: bool| by_rate(&one, &[other], is_same).judgement;
        assert_eq!(told(rate(1_040, 1_090), true), Judgement::Reproduced);
        assert_eq!(told(rate(1_312, 1_400), true), Judgement::Reproduced);
        assert_eq!(told(rate(800, 840), true), Judgement::Reproduced);
        assert_eq!(told(rate(600, 630), true), Judgement::Untold);
        assert_eq!(told(rate(2_099, 2_200), true), Judgement::Untold);
        assert_eq!(told(rate(2_100, 2_200), true), Judgement::Contradicted);
        assert_eq!(told(rate(400, 420), true), Judgement::Contradicted);
        assert_eq!(told(rate(400, 420), false), Judgement::Untold, "another machine");
        assert_eq!(told(PageFinding { rate: None, ..rate(1, 1) }, true), Judgement::Untold);
        assert_eq!(told(PageFinding { about: "other".to_string(), ..rate(1, 1) }, true), Judgement::Untold);
    }

    #[test]
    fn answers_are_the_same_or_others_or_none() {
        let of = |answer: Option<&str>| PageFinding { rate: None, answer: answer.map(str::to_string), ..rate(1, 1) };
        let told = |other: Option<&str>| by_answer(&of(Some("helps")), &[of(other)], true).judgement;
        assert_eq!(told(Some("helps")), Judgement::Reproduced);
        assert_eq!(told(Some("hurts")), Judgement::Contradicted);
        assert_eq!(told(None), Judgement::Untold);
        assert_eq!(by_answer(&of(Some("helps")), &[], true).judgement, Judgement::Untold);
    }
}
