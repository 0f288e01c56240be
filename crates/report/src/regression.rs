//! Limits of a comparison (`--fail-if`): which regressions fail it, and what became of each limit.

use std::fmt;
use std::str::FromStr;

use super::compare::{ComparedCost, CostChange};

/// `slower:3%` of seconds, `cpu:3%` of CPU per op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionLimit {
    pub of_cpu: bool,
    pub percent: f64,
}

const PERCENT_MAX: f64 = 1000.0;

impl FromStr for RegressionLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}\nhint: slower:3% or cpu:3%");
        let (measure, limit) =
            text.split_once(':').ok_or_else(|| wrong("a limit is a measure, a colon and a share"))?;
        let of_cpu = match measure {
            "slower" => false,
            "cpu" => true,
            _ => return Err(wrong(&format!("no measure that can be limited is called '{measure}'"))),
        };
        let percent = limit.strip_suffix('%').ok_or_else(|| wrong("the share has no percent sign"))?;
        let percent: f64 = percent.trim().parse().map_err(|_| wrong(&format!("'{percent}' is no number")))?;
        if !(0.0..=PERCENT_MAX).contains(&percent) {
            return Err(wrong(&format!("a limit is 0% to {PERCENT_MAX}%")));
        }
        Ok(RegressionLimit { of_cpu, percent })
    }
}

/// As it is typed.
impl fmt::Display for RegressionLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}%", if self.of_cpu { "cpu" } else { "slower" }, self.percent)
    }
}

/// Two limits of one measure contradict each other, or one of them says nothing.
pub fn one_of_each_measure(limits: &[RegressionLimit]) -> Result<(), String> {
    let twice = |place: usize| limits[..place].iter().find(|before| before.of_cpu == limits[place].of_cpu);
    match (0..limits.len()).find_map(|place| Some((twice(place)?, &limits[place]))) {
        Some((one, other)) => {
            Err(format!("--fail-if {one} and {other}: both limit the same measure\nhint: keep the one that is meant"))
        }
        None => Ok(()),
    }
}

/// How a comparison ends: what its exit code tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparisonEnd {
    Good,
    /// A regression of that size cannot be ruled out, or nothing could be compared.
    Unclear,
    Regressed,
}

/// What became of one limit: the worst of all that was compared, and which those are.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedLimit<'a> {
    pub limit: RegressionLimit,
    pub end: ComparisonEnd,
    pub decided_by: Vec<&'a ComparedCost>,
}

pub fn judge(compared: &[ComparedCost], limit: RegressionLimit) -> JudgedLimit<'_> {
    let ends: Vec<ComparisonEnd> = compared.iter().map(|one| end_of(change(one, limit), limit)).collect();
    let end = ends.iter().copied().max().unwrap_or(ComparisonEnd::Unclear);
    let decided_by = compared.iter().zip(ends).filter(|(_, of_one)| *of_one == end).map(|(one, _)| one).collect();
    JudgedLimit { limit, end, decided_by }
}

/// The worst of all limits.
pub fn worst(judged: &[JudgedLimit<'_>]) -> Option<ComparisonEnd> {
    judged.iter().map(|one| one.end).max()
}

fn change(compared: &ComparedCost, limit: RegressionLimit) -> &CostChange {
    if limit.of_cpu { &compared.cpu } else { &compared.seconds }
}

/// A regression is one whose near end exceeds limit and noise floor both; one is ruled out where the far end stays
/// below the limit and the noise floor does not hide as much.
fn end_of(change: &CostChange, limit: RegressionLimit) -> ComparisonEnd {
    let share = limit.percent / 100.0;
    match change {
        CostChange::Less(_) => ComparisonEnd::Good,
        CostChange::More(difference) if difference.versus.near_end() > share.max(difference.noise_floor) => {
            ComparisonEnd::Regressed
        }
        CostChange::More(difference) | CostChange::NoDifference(difference) => {
            let ruled_out = difference.versus.high.is_some_and(|high| high - 1.0 < share);
            if ruled_out && difference.noise_floor <= share { ComparisonEnd::Good } else { ComparisonEnd::Unclear }
        }
        CostChange::NotComparable { .. } => ComparisonEnd::Unclear,
    }
}

/// What helps where a limit is unclear.
pub const CLEARER: &str = "a longer --budget, --effort normal, or a quieter machine";

impl JudgedLimit<'_> {
    /// "slower:3% is exceeded: slow against plain takes 1.29x [1.23-1.34]"; `named` writes a name for where it is read.
    pub fn in_words(&self, named: impl Fn(&ComparedCost) -> String) -> String {
        let limit = self.limit;
        let verb = if limit.of_cpu { "uses" } else { "takes" };
        let each = self.decided_by.iter().filter_map(|one| {
            let ratio = change(one, limit).ratio()?;
            Some(format!("{} {verb} {ratio}", named(one)))
        });
        let each: Vec<String> = each.collect();
        let each = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
        match self.end {
            ComparisonEnd::Good => format!("{limit} is kept{each}"),
            ComparisonEnd::Unclear => {
                format!("{limit}: a regression of that size can neither be shown nor ruled out{each}")
            }
            ComparisonEnd::Regressed => format!("{limit} is exceeded{each}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_back_as_they_are_typed() {
        for text in ["slower:3%", "cpu:0.1%", "slower:0%", "cpu:1000%"] {
            assert_eq!(text.parse::<RegressionLimit>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_limit_is_named() {
        let wrong = [
            ("slower", "a measure, a colon and a share"),
            ("", "a measure, a colon and a share"),
            ("time>5%", "a measure, a colon and a share"),
            ("memory:3%", "'memory'"),
            ("faster:3%", "'faster'"),
            ("slower:3", "no percent sign"),
            ("slower:-1%", "0% to 1000%"),
            ("slower:nan%", "0% to 1000%"),
            ("cpu:1001%", "0% to 1000%"),
            ("cpu:x%", "'x' is no number"),
        ];
        for (text, why) in wrong {
            let said = text.parse::<RegressionLimit>().expect_err(text);
            assert!(said.contains(why) && said.ends_with("\nhint: slower:3% or cpu:3%"), "{text}: {said}");
        }
    }

    #[test]
    fn each_measure_has_one_limit() {
        let limits = |texts: &[&str]| -> Vec<RegressionLimit> {
            texts.iter().map(|text| text.parse().expect("a limit")).collect()
        };
        assert_eq!(one_of_each_measure(&limits(&["slower:3%", "cpu:3%"])), Ok(()));
        assert_eq!(one_of_each_measure(&[]), Ok(()));
        let said = one_of_each_measure(&limits(&["slower:3%", "cpu:3%", "slower:5%"])).expect_err("two of time");
        assert!(said.starts_with("--fail-if slower:3% and slower:5%: ") && said.contains("\nhint: "), "{said}");
        assert!(one_of_each_measure(&limits(&["cpu:3%", "cpu:3%"])).is_err(), "the same one twice");
    }
}
