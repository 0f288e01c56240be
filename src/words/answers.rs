//! Whether programs of the user's answered right: nobody has the truth, so every target must have given the same
//! answer, and each the same in all of its trials.

use std::collections::{BTreeMap, BTreeSet};

use super::op::Wrong;
use super::record::{Answered, Checked, Outcome, Record, Verdict};
use super::trial::Verify;

/// So much of a digest is told in words.
const SHOWN: usize = 16;

/// What one trial answered: its target, its block and the digest.
pub type Given<'a> = (&'a str, u32, &'a str);

/// The targets that were wrong, and why.
///
/// One that gave several answers is wrong whatever the others say. Of the rest more than half of all targets are
/// believed; where there is no such majority nobody knows who is right, and all are wrong.
pub fn wrong<'a>(given: &[Given<'a>]) -> BTreeMap<&'a str, Wrong> {
    let mut answers: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for &(target, block, digest) in given {
        let first = answers.entry(target).or_default().entry(digest).or_insert(block);
        *first = block.min(*first);
    }
    let mut votes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (target, digests) in &answers {
        if let (1, Some((digest, _))) = (digests.len(), digests.first_key_value()) {
            votes.entry(digest).or_default().insert(target);
        }
    }
    let believed = votes.iter().find(|(_, targets)| targets.len() * 2 > answers.len());
    let expected = match believed {
        Some((digest, targets)) => format!("{} as {} gave", short(digest), listed(targets)),
        None => {
            let sides = votes.iter().map(|(digest, targets)| format!("{} from {}", short(digest), listed(targets)));
            let sides: Vec<String> = sides.collect();
            format!("the same from all, and nobody knows who is right: {}", sides.join("; "))
        }
    };
    let judge = |(target, digests): (&'a str, &BTreeMap<&str, u32>)| {
        let is_believed = believed.is_some_and(|(_, targets)| targets.contains(target));
        let (expected, found) = match digests.len() {
            1 => (expected.clone(), digests.keys().map(|digest| short(digest)).collect()),
            _ => {
                let each = digests.iter().map(|(digest, block)| format!("{} in block {block}", short(digest)));
                ("the same in every block".to_string(), each.collect::<Vec<_>>().join(", "))
            }
        };
        (!is_believed).then(|| (target, Wrong { key: String::new(), expected, found }))
    };
    answers.iter().filter_map(|(target, digests)| judge((target, digests))).collect()
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
        Verdict::Answered(Answered { sha256: Some(digest), .. }) => Some((&record.target.label, record.block, digest)),
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
    Some(Checked { how: Verify::Full, keys: 0, keys_in_truth: 0, bytes: 0, extra_keys: None, answer, took_s: 0.0 })
}

fn short(digest: &str) -> String {
    format!("sha256 {}", digest.get(..SHOWN).unwrap_or(digest))
}

fn listed(targets: &BTreeSet<&str>) -> String {
    targets.iter().copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[Given<'static>]) -> Vec<&'static str> {
        wrong(given).into_keys().collect()
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
        let told = &wrong(&two_of_three)["b"];
        assert_eq!((told.expected.as_str(), told.found.as_str()), ("sha256 x as a, c gave", "sha256 y"));
        // However many trials they have: targets are counted.
        assert_eq!(names(&[("a", 1, "x"), ("b", 1, "y"), ("a", 2, "x"), ("a", 3, "x")]), ["a", "b"]);
        assert_eq!(names(&[("a", 1, "x"), ("b", 1, "x"), ("c", 1, "y"), ("d", 1, "y")]), ["a", "b", "c", "d"]);
        let told = &wrong(&[("a", 1, "x"), ("b", 1, "y")])["b"];
        assert!(told.expected.ends_with("nobody knows who is right: sha256 x from a; sha256 y from b"), "{told:?}");
    }

    #[test]
    fn who_answers_differently_from_block_to_block_is_wrong_and_has_no_vote() {
        let unlike = [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x"), ("c", 1, "x")];
        assert_eq!(names(&unlike), ["a"]);
        assert_eq!(wrong(&unlike)["a"].found, "sha256 x in block 1, sha256 y in block 2");
        assert_eq!(names(&[("a", 1, "x"), ("a", 2, "y")]), ["a"]);
        assert_eq!(names(&[("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x")]), ["a", "b"], "one of two is no majority");
    }
}
