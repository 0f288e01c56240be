//! The expected state of `ngrams`: how often each word and each pair of neighbouring words occurs.

use std::collections::BTreeMap;
use std::io;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::{Counts, Each, Replay, Sample, sha256_of_sorted};
use crate::jobs::text::Messages;
use crate::jobs::{InputFault, Source};
use crate::model::trial::{JobSettings, NgramSettings, NgramUnit};

/// So many terms are told in the answer.
const TOP: usize = 20;

#[derive(Default)]
pub struct Ngrams {
    pub(super) counts: HashMap<Box<[u8]>, u64, RandomState>,
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
        }
        counts.skipped_lines = messages.skipped();
        Ok(counts)
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        self.counts.iter().try_for_each(|(term, count)| each(term, count.to_string().as_bytes()))
    }

    fn answer(&self) -> BTreeMap<String, String> {
        let lines = self.counts.iter().map(|(term, count)| [term.as_ref(), format!("\t{count}\n").as_bytes()].concat());
        let mut ranked: Vec<(&[u8], u64)> = self.counts.iter().map(|(term, &count)| (term.as_ref(), count)).collect();
        ranked.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let top = ranked.iter().take(TOP).map(|(term, count)| format!("{} {count}", String::from_utf8_lossy(term)));
        BTreeMap::from([
            ("sha256 terms".to_string(), sha256_of_sorted(lines.collect())),
            ("terms".to_string(), self.counts.len().to_string()),
            ("increments".to_string(), self.counts.values().sum::<u64>().to_string()),
            ("top 20".to_string(), top.collect::<Vec<_>>().join(", ")),
        ])
    }
}

impl Ngrams {
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
