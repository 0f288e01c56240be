//! The expected state of `lookup`: the counts of all messages that are not scored, and of those that are, what a client
//! must hear of each n-gram and the score that follows, by the formula of docs/workloads.md written once more.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::ngrams::{Ngrams, normalised, units_of};
use super::{Counts, Each, Replay, Sample, Summary, answers_beside, write_pairs};
use crate::jobs::lookup::is_scored;
use crate::jobs::text::Messages;
use crate::jobs::{InputFault, Source};
use crate::model::record::Model;
use crate::model::trial::{JobSettings, NgramSettings};

/// What a step back to a shorter context costs.
const ALPHA: f64 = 0.4;

#[derive(Default)]
pub struct ExpectedScores {
    counted: Ngrams,
    /// Units that were counted.
    all: u64,
    scored: Vec<Scored>,
}

/// A message that is scored: its n-grams, each once, with their counts.
struct Scored {
    counts: Vec<u64>,
    log10: f64,
}

impl Replay for ExpectedScores {
    fn replay(
        &mut self,
        source: &dyn Source,
        settings: &JobSettings,
        sample: &mut Sample,
    ) -> Result<Counts, InputFault> {
        let mut messages = Messages::open(settings, source).map_err(|error| InputFault::opening(source, &error))?;
        let (mut counts, mut message, mut to_score) = (Counts::default(), String::new(), Vec::new());
        while messages.read(|text| text.clone_into(&mut message))? {
            let text = normalised(&message, settings.ngrams.unit);
            if is_scored(counts.units) {
                to_score.push(text);
            } else {
                self.all += units_of(&text, settings.ngrams.unit).0.len() as u64;
                self.counted.add(&text, settings.ngrams, sample);
            }
            counts.units += 1;
            if sample.outgrown(self.counted.counts.len()) {
                self.counted.counts.retain(|term, _| sample.takes(term));
            }
        }
        if self.all == 0 {
            let what = format!(
                "nothing to count in its {} messages: one in ten is scored, from the first on, and counted are \
                                the others",
                counts.units
            );
            return Err(InputFault { source: source.name().to_string(), line: 0, what });
        }
        self.scored = to_score.iter().map(|message| self.score(message, settings.ngrams)).collect();
        let lookups = || self.scored.iter().flat_map(|scored| &scored.counts);
        counts.skipped_lines = messages.skipped();
        counts.ops = lookups().count() as u64;
        counts.asking_units = self.scored.iter().filter(|scored| !scored.counts.is_empty()).count() as u64;
        counts.model = Some(Model {
            entries: self.counted.counts.len() as u64 * sample.one_in,
            scored: self.scored.len() as u64,
            lookups: counts.ops,
            found: lookups().filter(|count| **count > 0).count() as u64,
        });
        self.counted.sort();
        Ok(counts)
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        self.counted.entries(each)
    }

    /// The counts as pairs, and beside them what clients must hear: see `jobs::lookup`.
    fn write(&self, out: &Path, summary: &mut Summary) -> io::Result<()> {
        write_pairs(self, out, summary)?;
        let mut file = BufWriter::with_capacity(1 << 20, File::create(answers_beside(out))?);
        file.write_all(&self.all.to_le_bytes())?;
        for Scored { counts, log10 } in &self.scored {
            file.write_all(&(counts.len() as u32).to_le_bytes())?;
            counts.iter().try_for_each(|count| file.write_all(&count.to_le_bytes()))?;
            file.write_all(&log10.to_bits().to_le_bytes())?;
        }
        file.flush()
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        let mut answer = self.counted.answer()?;
        answer.remove("top 20");
        let mut hash = Sha256::new();
        self.scored.iter().for_each(|scored| hash.update(format!("{:.6}\n", scored.log10)));
        let sum = self.scored.iter().fold(0.0, |sum, scored| sum + scored.log10);
        answer.extend([
            ("sha256 scores".to_string(), hex::encode(hash.finalize())),
            ("scored".to_string(), format!("{} messages, log10 {sum:.6} of all together", self.scored.len())),
        ]);
        Ok(answer)
    }
}

impl ExpectedScores {
    /// The counts and the score of a normalised message.
    fn score(&self, message: &str, settings: NgramSettings) -> Scored {
        let (units, between) = units_of(message, settings.unit);
        let order = settings.order as usize;
        let (mut counts, mut known) = (Vec::new(), HashSet::new());
        for first in 0..units.len() {
            for run in (first + 1..=units.len().min(first + order)).map(|end| units[first..end].join(between)) {
                let count = self.count(&run);
                if known.insert(run) {
                    counts.push(count);
                }
            }
        }
        let log10 = (1..=units.len()).fold(0.0, |sum, end| {
            let context = &units[end.saturating_sub(order)..end];
            sum + libm::log10(self.share(context, between))
        });
        Scored { counts, log10 }
    }

    /// S of the last unit of a run behind those before it.
    fn share(&self, run: &[&str], between: &str) -> f64 {
        let count = self.count(&run.join(between)) as f64;
        match run.len() {
            1 if count > 0.0 => count / self.all as f64,
            1 => ALPHA * (1.0 / self.all as f64),
            length if count > 0.0 => count / self.count(&run[..length - 1].join(between)) as f64,
            _ => ALPHA * self.share(&run[1..], between),
        }
    }

    fn count(&self, run: &str) -> u64 {
        self.counted.counts.get(run.as_bytes()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Text;
    use crate::model::trial::Verify;

    fn replayed(messages: &[&str], sample: &mut Sample) -> Result<(ExpectedScores, Counts), InputFault> {
        let job = crate::harness::plan::tests::plan(None).job;
        let settings = JobSettings { name: "lookup".to_string(), format: "text".to_string(), ..job };
        let mut replay = ExpectedScores::default();
        let counts = replay.replay(&Text(messages.join("\n") + "\n"), &settings, sample)?;
        Ok((replay, counts))
    }

    /// The first, the eleventh and the last one are scored.
    fn messages() -> Vec<&'static str> {
        [&["a b c"][..], &["a b"; 8], &["a c", "D a"], &["a"; 9], &["..."]].concat()
    }

    #[test]
    fn scores_follow_from_the_counts_of_the_messages_that_are_not_scored() {
        let (replay, counts) = replayed(&messages(), &mut Sample::new(Verify::Full)).expect("good messages");
        assert_eq!((counts.units, counts.asking_units, counts.ops, counts.skipped_lines), (21, 2, 8, 0));
        assert_eq!(counts.model, Some(Model { entries: 5, scored: 3, lookups: 8, found: 5 }));
        // a 18, b 8, c 1, "a b" 8, "a c" 1: 27 words.
        assert_eq!(replay.all, 27);
        let told: Vec<&[u64]> = replay.scored.iter().map(|scored| scored.counts.as_slice()).collect();
        assert_eq!(told, [&[18, 8, 8, 0, 1][..], &[0, 0, 18], &[]]);
        let shares = [&[18.0 / 27.0, 8.0 / 18.0, 0.4 / 27.0][..], &[0.4 / 27.0, 0.4 * 18.0 / 27.0], &[]];
        // c is known by itself, and steps back from "b c" once; d is not known at all.
        for (scored, shares) in replay.scored.iter().zip(shares) {
            let log10: f64 = shares.iter().map(|share| f64::log10(*share)).sum();
            assert!((scored.log10 - log10).abs() < 1e-9, "{} {log10}", scored.log10);
        }
        let answer = replay.answer().expect("memory takes it");
        let sum: f64 = replay.scored.iter().map(|scored| scored.log10).sum();
        assert_eq!(answer["scored"], format!("3 messages, log10 {sum:.6} of all together"));
        assert!(answer["terms"] == "5" && !answer.contains_key("top 20"));
    }

    #[test]
    fn what_clients_must_hear_lies_beside_the_counts() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (replay, _) = replayed(&messages(), &mut Sample::new(Verify::Full)).expect("good messages");
        let (out, mut summary) = (scratch.path().join("expected"), Summary::default());
        replay.write(&out, &mut summary).expect("there is room");
        assert_eq!(summary.keys, 5);
        let mut expected = 27_u64.to_le_bytes().to_vec();
        for Scored { counts, log10 } in &replay.scored {
            expected.extend((counts.len() as u32).to_le_bytes());
            expected.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
            expected.extend(log10.to_le_bytes());
        }
        assert_eq!(std::fs::read(answers_beside(&out)).expect("it was written"), expected);
    }

    #[test]
    fn an_n_gram_that_comes_twice_in_a_message_is_asked_for_once() {
        let (replay, _) = replayed(&["a a a", "a a"], &mut Sample::new(Verify::Full)).expect("good messages");
        assert_eq!(replay.scored[0].counts, [2, 1]);
    }

    #[test]
    fn what_has_nothing_to_count_is_refused() {
        for messages in [&["a b"][..], &["a", "...", ""]] {
            let fault = replayed(messages, &mut Sample::new(Verify::Full)).err().expect("no words").to_string();
            assert!(fault.contains(&format!("nothing to count in its {} messages", messages.len())), "{fault}");
        }
    }

    #[test]
    fn a_sample_that_is_outgrown_keeps_fewer_terms() {
        let words: Vec<String> = (0..90).map(|word| format!("w{word}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut sample = Sample { one_in: 1, limit: 20 };
        let (replay, counts) = replayed(&words, &mut sample).expect("good messages");
        assert!(sample.one_in > 1);
        let is_counted = |at: &usize| !is_scored(*at as u64) && sample.takes(words[*at].as_bytes());
        let kept = (0..90).filter(is_counted).count() as u64;
        assert_eq!(counts.model.map(|model| model.entries), Some(kept * sample.one_in));
        let mut terms = 0;
        let mut take = |term: &[u8], _: &[u8]| {
            terms += 1;
            assert!(sample.takes(term));
            Ok(())
        };
        replay.entries(&mut take).expect("memory takes it");
        assert_eq!(terms, kept);
    }
}
