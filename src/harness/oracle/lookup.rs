//! The expected state of `lookup`: the counts of all messages that are not scored, and of those that are, what a client
//! must hear of each n-gram and the score that follows, by the formula of docs/workloads.md written once more.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::ngrams::{Ngrams, normalised, units_of};
use super::{Counts, Each, Replay, Sample, Summary, answers_beside, hex, write_pairs};
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
            ("sha256 scores".to_string(), hex(&hash.finalize())),
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
