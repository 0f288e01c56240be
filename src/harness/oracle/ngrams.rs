//! The expected state of `ngrams`: how often each word and each pair of neighbouring words occurs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use super::sorted_runs::SortedRuns;
use super::{Counts, Each, Replay, Sample, hex};
use crate::jobs::text::Messages;
use crate::jobs::{InputFault, Source};
use crate::model::trial::{JobSettings, NgramSettings, NgramUnit};

/// So many terms are told in the answer.
const TOP: usize = 20;

/// Memory of a term with its count, in bytes: 86 in a table that grows, 32 for the term itself, 24 in a sorted list,
/// and room to spare.
const BYTES_OF_A_TERM: u64 = 200;

pub struct Ngrams {
    pub(super) counts: HashMap<Box<[u8]>, u64, RandomState>,
    /// What did not fit into memory.
    runs: Option<SortedRuns>,
    /// Terms in memory at the most.
    most: usize,
}

impl Default for Ngrams {
    fn default() -> Ngrams {
        Ngrams { counts: HashMap::default(), runs: None, most: usize::MAX }
    }
}

impl Replay for Ngrams {
    fn replay(
        &mut self,
        source: &dyn Source,
        settings: &JobSettings,
        sample: &mut Sample,
    ) -> Result<Counts, InputFault> {
        let mut messages = Messages::open(settings, source).map_err(|error| InputFault::opening(source, &error))?;
        let mut counts = Counts::default();
        let mut message = String::new();
        while messages.read(|text| text.clone_into(&mut message))? {
            counts.units += 1;
            let ops = self.add(&message, settings.ngrams, sample);
            counts.ops += ops;
            counts.asking_units += u64::from(ops > 0);
            if sample.outgrown(self.counts.len()) {
                self.counts.retain(|term, _| sample.takes(term));
            }
            self.make_room().map_err(|error| InputFault {
                source: "the expected state on disk".to_string(),
                line: 0,
                what: error.to_string(),
            })?;
        }
        counts.skipped_lines = messages.skipped();
        Ok(counts)
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        match &self.runs {
            None => self.counts.iter().try_for_each(|(term, count)| each(term, count.to_string().as_bytes())),
            Some(_) => self.in_order(&mut |term, count| each(term, count.to_string().as_bytes())),
        }
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        let (mut hash, mut terms, mut increments) = (Sha256::new(), 0_u64, 0_u64);
        let mut top: Vec<(u64, String)> = Vec::new();
        self.in_order(&mut |term, count| {
            hash.update(term);
            hash.update(format!("\t{count}\n"));
            (terms, increments) = (terms + 1, increments + count);
            // Of terms with one count the first one in their order comes first.
            if top.len() < TOP || top.last().is_some_and(|least| count > least.0) {
                let place = top.partition_point(|other| other.0 >= count);
                top.insert(place, (count, String::from_utf8_lossy(term).into_owned()));
                top.truncate(TOP);
            }
            Ok(())
        })?;
        let top: Vec<String> = top.iter().map(|(count, term)| format!("{term} {count}")).collect();
        Ok(BTreeMap::from([
            ("sha256 terms".to_string(), hex(&hash.finalize())),
            ("terms".to_string(), terms.to_string()),
            ("increments".to_string(), increments.to_string()),
            ("top 20".to_string(), top.join(", ")),
        ]))
    }
}

impl Ngrams {
    /// One that needs no more memory than this. What does not fit lies in files beside `out`.
    pub fn bounded(memory_bytes: Option<u64>, out: &Path) -> Ngrams {
        let Some(bytes) = memory_bytes else { return Ngrams::default() };
        Ngrams { runs: Some(SortedRuns::beside(out)), most: (bytes / BYTES_OF_A_TERM) as usize, ..Ngrams::default() }
    }

    /// Writes down what was counted, once it is all that memory takes.
    fn make_room(&mut self) -> io::Result<()> {
        if self.counts.len() <= self.most {
            return Ok(());
        }
        if let Some(runs) = &mut self.runs {
            runs.add(&sorted(&self.counts))?;
            self.counts.clear();
        }
        Ok(())
    }

    /// Every term with its count, in the order of their bytes.
    fn in_order(&self, each: &mut dyn FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
        let in_memory = sorted(&self.counts);
        match &self.runs {
            None => in_memory.iter().try_for_each(|(term, count)| each(term, *count)),
            Some(runs) => runs.merged(&in_memory, each),
        }
    }

    /// One message: its words or characters, and the runs of them. Says how many that were.
    pub(super) fn add(&mut self, message: &str, settings: NgramSettings, sample: &Sample) -> u64 {
        let (units, between) = units_of(message, settings);
        let mut ops = 0;
        for length in 1..=settings.order as usize {
            for run in units.windows(length) {
                self.count(run.join(between).as_bytes(), sample);
                ops += 1;
            }
        }
        ops
    }

    fn count(&mut self, term: &[u8], sample: &Sample) {
        if !sample.takes(term) {
            return;
        }
        match self.counts.get_mut(term) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(term.into(), 1)),
        }
    }
}

fn sorted(counts: &HashMap<Box<[u8]>, u64, RandomState>) -> Vec<(&[u8], u64)> {
    let mut sorted: Vec<(&[u8], u64)> = counts.iter().map(|(term, &count)| (term.as_ref(), count)).collect();
    sorted.sort_unstable_by_key(|(term, _)| *term);
    sorted
}

/// The words or characters of a message, and what stands between two of them in a run.
pub(super) fn units_of(message: &str, settings: NgramSettings) -> (Vec<String>, &'static str) {
    let lower = message.to_ascii_lowercase();
    match settings.unit {
        NgramUnit::Word => {
            let is_of_word = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'#' | b'@' | b'\'');
            let words = lower.as_bytes().split(|byte| !is_of_word(byte)).filter(|word| !word.is_empty());
            (words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(), " ")
        }
        NgramUnit::Char => {
            let joined = lower.split_whitespace().collect::<Vec<_>>().join(" ");
            (joined.chars().map(String::from).collect(), "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::Text;
    use crate::model::trial::Verify;

    /// All that a replay tells, whose memory takes so many terms.
    fn told(most: usize, out: &Path) -> (u64, BTreeMap<String, String>, Vec<String>) {
        let job = crate::harness::plan::tests::plan(None).job;
        let settings = JobSettings { name: "ngrams".to_string(), load: None, ..job };
        let mut data = Vec::new();
        crate::jobs::text::tweets2(3, 200, &mut data).expect("memory takes it");
        let text = Text(String::from_utf8(data).expect("made of letters"));
        let mut replay = Ngrams { most, ..Ngrams::bounded(Some(u64::MAX), out) };
        let counts = replay.replay(&text, &settings, &mut Sample::new(Verify::Full)).expect("good messages");
        let mut entries = Vec::new();
        let mut take = |term: &[u8], count: &[u8]| {
            entries.push(String::from_utf8_lossy(&[term, b" ", count].concat()).into_owned());
            Ok(())
        };
        replay.entries(&mut take).expect("they can be read");
        entries.sort();
        (counts.ops, replay.answer().expect("it can be read"), entries)
    }

    #[test]
    fn what_does_not_fit_into_memory_is_counted_alike() {
        let scratch = tempfile::tempdir().expect("a directory");
        let whole = told(usize::MAX, &scratch.path().join("whole"));
        assert_eq!(whole.1["increments"], whole.0.to_string());
        assert_eq!(whole.1["top 20"].split(", ").count(), TOP);
        for most in [0, 100, 1_000] {
            let parts = told(most, &scratch.path().join("parts"));
            assert_eq!(parts, whole, "{most} terms in memory");
        }
    }
}
