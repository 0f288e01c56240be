//! Whether programs of the user's answered right: there is no expected state, so every target must have given the
//! same answer, and each the same in all of its trials.

use std::collections::BTreeMap;

use super::op::Wrong;
use super::record::{Answered, Checked, Outcome, Record, Verdict};
use super::trial::Verify;

/// So much of a digest is told in words.
const SHOWN: usize = 16;

/// What one trial answered.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub target: &'a str,
    pub block: u32,
    pub digest: &'a str,
    /// The answer's last line, for who reads of it.
    pub ends: &'a str,
}

impl Given<'_> {
    /// "sha256 084c799cd551dd1d (42)".
    fn told(&self) -> String {
        let digest = self.digest.get(..SHOWN).unwrap_or(self.digest);
        if self.ends.is_empty() { format!("sha256 {digest}") } else { format!("sha256 {digest} ({})", self.ends) }
    }
}

/// The targets that were wrong, and why.
///
/// One that gave several answers is wrong whatever the others say. Of the rest more than half of all targets are
/// believed; where there is no such majority kvfair cannot tell which is right, and all are wrong.
pub fn wrong<'a>(given: &[Given<'a>]) -> BTreeMap<&'a str, Wrong> {
    let mut answers: BTreeMap<&'a str, BTreeMap<&str, Given<'a>>> = BTreeMap::new();
    for one in given {
        let first = answers.entry(one.target).or_default().entry(one.digest).or_insert(*one);
        *first = if one.block < first.block { *one } else { *first };
    }
    let mut votes: BTreeMap<&str, Vec<Given<'a>>> = BTreeMap::new();
    for digests in answers.values().filter(|digests| digests.len() == 1) {
        digests.iter().for_each(|(digest, one)| votes.entry(digest).or_default().push(*one));
    }
    let believed = votes.values().find(|alike| alike.len() * 2 > answers.len());
    let expected = match believed {
        Some(alike) => format!("{} as {} gave", alike[0].told(), listed(alike)),
        None => {
            let sides = votes.values().map(|alike| format!("{} from {}", alike[0].told(), listed(alike)));
            let sides: Vec<String> = sides.collect();
            format!("the same from all, so kvfair cannot tell which is right: {}", sides.join("; "))
        }
    };
    let judge = |digests: &BTreeMap<&str, Given<'a>>| {
        let mut all = digests.values();
        let (expected, found) = match (all.next(), digests.len()) {
            (Some(only), 1) => (expected.clone(), only.told()),
            _ => {
                let each = digests.values().map(|one| format!("{} in block {}", one.told(), one.block));
                ("the same in every block".to_string(), each.collect::<Vec<_>>().join(", "))
            }
        };
        Wrong { key: String::new(), expected, found }
    };
    let is_believed = |target: &str| believed.is_some_and(|alike| alike.iter().any(|one| one.target == target));
    let wrong = answers.iter().filter(|(target, _)| !is_believed(target));
    wrong.map(|(target, digests)| (*target, judge(digests))).collect()
}

/// Puts in the place of each answer whether it was right. What nobody wanted to know stays as it is.
pub fn note(records: &mut [Record]) {
    let finished = records.iter().filter(|record| record.outcome == Outcome::Finished);
    let given: Vec<Given<'_>> = finished.filter_map(given).collect();
    let wrong: BTreeMap<String, Wrong> =
        wrong(&given).into_iter().map(|(target, wrong)| (target.to_string(), wrong)).collect();
    for record in records {
        let Verdict::Answered(answered) = &record.verdict else { continue };
        let Some(checked) = checked(answered) else { continue };
        record.verdict = match wrong.get(&record.target.label) {
            // No key of the store's is known.
            Some(first) => Verdict::Wrong { first: first.clone(), wrong_keys: 0, checked },
            None => Verdict::Right(checked),
        };
    }
}

/// What a trial gave for an answer, if it gave one.
pub fn given(record: &Record) -> Option<Given<'_>> {
    match &record.verdict {
        Verdict::Answered(Answered { sha256: Some(digest), ends, .. }) => {
            Some(Given { target: &record.target.label, block: record.block, digest, ends })
        }
        _ => None,
    }
}

fn checked(answered: &Answered) -> Option<Checked> {
    let sha256 = answered.sha256.clone()?;
    let mut answer =
        BTreeMap::from([("sha256".to_string(), sha256), ("bytes".to_string(), answered.bytes.to_string())]);
    if !answered.ends.is_empty() {
        answer.insert("last line".to_string(), answered.ends.clone());
    }
    Some(Checked { how: Verify::Full, keys: 0, keys_expected: 0, bytes: 0, extra_keys: None, answer, took_s: 0.0 })
}

fn listed(alike: &[Given<'_>]) -> String {
    alike.iter().map(|one| one.target).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (&'static str, u32, &'static str);

    fn judged(told: &[Told]) -> BTreeMap<&'static str, Wrong> {
        let given = told.iter().map(|&(target, block, digest)| Given { target, block, digest, ends: "" });
        wrong(&given.collect::<Vec<_>>())
    }

    fn names(told: &[Told]) -> Vec<&'static str> {
        judged(told).into_keys().collect()
    }

    #[test]
    fn all_alike_are_right() {
        assert!(names(&[]).is_empty());
        assert!(names(&[("a", 1, "x")]).is_empty());
        assert!(names(&[("a", 1, "x"), ("b", 1, "x"), ("a", 2, "x"), ("b", 2, "x")]).is_empty());
    }

    #[test]
    fn more_than_half_of_the_targets_are_believed() {
        let two_of_three = [("a", 1, "x"), ("b", 1, "y"), ("c", 1, "x")];
        assert_eq!(names(&two_of_three), ["b"]);
        let told = &judged(&two_of_three)["b"];
        assert_eq!((told.expected.as_str(), told.found.as_str()), ("sha256 x as a, c gave", "sha256 y"));
        // However many trials they have: targets are counted.
        assert_eq!(names(&[("a", 1, "x"), ("b", 1, "y"), ("a", 2, "x"), ("a", 3, "x")]), ["a", "b"]);
        assert_eq!(names(&[("a", 1, "x"), ("b", 1, "x"), ("c", 1, "y"), ("d", 1, "y")]), ["a", "b", "c", "d"]);
        let told = &judged(&[("a", 1, "x"), ("b", 1, "y")])["b"];
        assert!(
            told.expected.ends_with("kvfair cannot tell which is right: sha256 x from a; sha256 y from b"),
            "{told:?}"
        );
    }

    #[test]
    fn who_answers_differently_from_block_to_block_is_wrong_and_has_no_vote() {
        let unlike = [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x"), ("c", 1, "x")];
        assert_eq!(names(&unlike), ["a"]);
        assert_eq!(judged(&unlike)["a"].found, "sha256 x in block 1, sha256 y in block 2");
        assert_eq!(names(&[("a", 1, "x"), ("a", 2, "y")]), ["a"]);
        assert_eq!(names(&[("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x")]), ["a", "b"], "one of two is no majority");
    }
}
