//! The expected state of `ngrams`: how often each word and each pair of neighbouring words occurs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use super::sorted_runs::SortedRuns;
use super::{Counts, Each, Replay, Sample};
use crate::jobs::text::Messages;
use crate::jobs::{InputFault, Source};
use crate::model::trial::{JobSettings, NgramSettings, NgramUnit};

/// So many terms are told in the answer.
const TOP: usize = 20;

/// Memory of a term with its count, in bytes: 86 in a table that grows, 32 for the term itself, 32 in a sorted list,
/// and room to spare.
const BYTES_OF_A_TERM: u64 = 200;

pub struct Ngrams {
    pub(super) counts: HashMap<Box<[u8]>, u64, RandomState>,
    /// The counts in memory, in the order of their terms, once everything is counted.
    sorted: Vec<Term>,
    /// What did not fit into memory.
    runs: Option<SortedRuns>,
    /// Terms in memory at the most.
    most: usize,
}

/// A term and its count. Terms compare by their first bytes, and where these are equal by all.
struct Term {
    first: u64,
    term: Box<[u8]>,
    count: u64,
}

impl Default for Ngrams {
    fn default() -> Ngrams {
        Ngrams { counts: HashMap::default(), sorted: Vec::new(), runs: None, most: usize::MAX }
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
            let ops = self.add(&normalised(&message, settings.ngrams.unit), settings.ngrams, sample);
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
        self.sort();
        Ok(counts)
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        self.in_order(&mut |term, count| each(term, count.to_string().as_bytes()))
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        let (mut hash, mut terms, mut increments) = (Sha256::new(), 0_u64, 0_u64);
        let mut top: Vec<(u64, String)> = Vec::new();
        let mut line = Vec::new();
        self.in_order(&mut |term, count| {
            line.clear();
            line.extend_from_slice(term);
            writeln!(line, "\t{count}")?;
            hash.update(&line);
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
            ("sha256 terms".to_string(), hex::encode(hash.finalize())),
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
        let Some(runs) = &mut self.runs else { return Ok(()) };
        if self.counts.len() <= self.most {
            return Ok(());
        }
        let sorted = in_their_order(self.counts.drain());
        runs.add(&mut sorted.into_iter().map(|entry| (entry.term, entry.count)))
    }

    /// Sorts the counts in memory and frees the table. Nothing is counted after it.
    pub(super) fn sort(&mut self) {
        self.sorted = in_their_order(std::mem::take(&mut self.counts).into_iter());
    }

    /// Every term with its count, in the order of their bytes.
    fn in_order(&self, each: &mut dyn FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
        assert!(self.counts.is_empty(), "what is counted is sorted before it is read");
        let mut in_memory = self.sorted.iter().map(|entry| (entry.term.as_ref(), entry.count));
        match &self.runs {
            None => in_memory.try_for_each(|(term, count)| each(term, count)),
            Some(runs) => runs.merged(&mut in_memory, each),
        }
    }

    /// One normalised message: its words or characters, and the runs of them. Says how many that were.
    pub(super) fn add(&mut self, message: &str, settings: NgramSettings, sample: &Sample) -> u64 {
        let (units, between) = units_of(message, settings.unit);
        let (mut ops, mut term) = (0, String::new());
        for length in 1..=settings.order as usize {
            for run in units.windows(length) {
                term.clear();
                for (place, unit) in run.iter().enumerate() {
                    term.push_str(if place > 0 { between } else { "" });
                    term.push_str(unit);
                }
                self.count(term.as_bytes(), sample);
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

fn in_their_order(counts: impl Iterator<Item = (Box<[u8]>, u64)>) -> Vec<Term> {
    let mut sorted: Vec<Term> = counts.map(|(term, count)| Term { first: first_of(&term), term, count }).collect();
    sorted.sort_unstable_by(|one, other| one.first.cmp(&other.first).then_with(|| one.term.cmp(&other.term)));
    sorted
}

/// The first 8 bytes as a number that compares as they do. What is shorter has zeros at its end.
fn first_of(term: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = term.len().min(first.len());
    first[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(first)
}

/// A message in lower case. For characters each run of white space becomes one space.
pub(super) fn normalised(message: &str, unit: NgramUnit) -> String {
    let lower = message.to_ascii_lowercase();
    match unit {
        NgramUnit::Word => lower,
        NgramUnit::Char => lower.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// The words or characters of a normalised message, and what stands between two of them in a run.
pub(super) fn units_of(message: &str, unit: NgramUnit) -> (Vec<&str>, &'static str) {
    match unit {
        NgramUnit::Word => {
            let is_of_word = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '#' | '@' | '\'');
            (message.split(|letter| !is_of_word(letter)).filter(|word| !word.is_empty()).collect(), " ")
        }
        NgramUnit::Char => {
            let letters = message.char_indices();
            (letters.map(|(at, letter)| &message[at..at + letter.len_utf8()]).collect(), "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Text;
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
        (counts.ops, replay.answer().expect("it can be read"), entries)
    }

    #[test]
    fn terms_are_in_the_order_of_their_bytes() {
        let terms = [
            "b",
            "a",
            "",
            "a\0",
            "a\0b",
            "ä",
            "aaaaaaaa",
            "aaaaaaa",
            "aaaaaaab",
            "aaaaaaaa b",
            "aaaaaaaa a",
            "日本",
            "日",
        ];
        let counted = terms.iter().map(|term| (term.as_bytes().into(), 1));
        let in_order: Vec<Box<[u8]>> = in_their_order(counted).into_iter().map(|entry| entry.term).collect();
        let mut expected: Vec<Box<[u8]>> = terms.iter().map(|term| term.as_bytes().into()).collect();
        expected.sort();
        assert_eq!(in_order, expected);
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

    fn replayed(messages: &[String], order: u32, sample: &mut Sample) -> (Ngrams, Counts) {
        let job = crate::harness::plan::tests::plan(None).job;
        let ngrams = NgramSettings { order, ..job.ngrams };
        let (name, format) = ("ngrams".to_string(), "text".to_string());
        let settings = JobSettings { name, format, ngrams, ..job };
        let mut replay = Ngrams::default();
        let counts = replay.replay(&Text(messages.join("\n") + "\n"), &settings, sample).expect("good messages");
        (replay, counts)
    }

    #[test]
    fn messages_that_have_no_words_ask_nothing() {
        let messages = ["a b", "", "..."].map(String::from);
        let (_, counts) = replayed(&messages, 2, &mut Sample::new(Verify::Full));
        assert_eq!((counts.units, counts.asking_units, counts.ops), (3, 1, 3));
    }

    #[test]
    fn the_most_frequent_terms_come_first_and_of_equal_ones_the_first_in_their_order() {
        let mut counts: Vec<(u64, String)> = (0..40).map(|word| (1 + word % 25, format!("w{word:02}"))).collect();
        let messages: Vec<String> =
            counts.iter().map(|(count, word)| vec![word.as_str(); *count as usize].join(" ")).collect();
        let (replay, _) = replayed(&messages, 1, &mut Sample::new(Verify::Full));
        counts.sort_by_key(|(count, word)| (std::cmp::Reverse(*count), word.clone()));
        let top: Vec<String> = counts.iter().take(TOP).map(|(count, word)| format!("{word} {count}")).collect();
        assert_eq!(replay.answer().expect("memory takes it")["top 20"], top.join(", "));
    }

    #[test]
    fn a_sample_that_is_outgrown_keeps_fewer_terms() {
        let words: Vec<String> = (0..90).map(|word| format!("w{word}")).collect();
        let mut sample = Sample { one_in: 1, limit: 20 };
        let (replay, _) = replayed(&words, 1, &mut sample);
        let kept: Vec<&[u8]> = replay.sorted.iter().map(|entry| entry.term.as_ref()).collect();
        let mut expected: Vec<&[u8]> = words.iter().map(String::as_bytes).filter(|word| sample.takes(word)).collect();
        expected.sort_unstable();
        assert!(sample.one_in > 1 && kept == expected, "{} of 90", kept.len());
    }

    #[test]
    fn what_is_more_than_memory_takes_is_written_down() {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut ngrams = Ngrams::bounded(Some(400), &scratch.path().join("expected"));
        assert_eq!((ngrams.most, Ngrams::bounded(None, scratch.path()).most), (2, usize::MAX));
        let files = || std::fs::read_dir(scratch.path()).expect("it is there").count();
        for (term, counted, written) in [(b"a", 1, 0), (b"b", 2, 0), (b"c", 0, 1), (b"d", 1, 1)] {
            ngrams.count(term, &Sample::new(Verify::Full));
            ngrams.make_room().expect("there is room");
            assert_eq!((ngrams.counts.len(), files()), (counted, written));
        }
    }

    #[test]
    fn characters_are_units_too() {
        assert_eq!(normalised(" A\u{e9}  b\tC ", NgramUnit::Char), "a\u{e9} b c");
        assert_eq!(units_of("a\u{e9} b", NgramUnit::Char), (vec!["a", "\u{e9}", " ", "b"], ""));
        assert_eq!(units_of("a, b's #c", NgramUnit::Word), (vec!["a", "b's", "#c"], " "));
    }
}
