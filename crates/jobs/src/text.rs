//! Messages and the terms in them: reading, tokenising, and the recipe `tweets2`. It must not know what is counted of
//! them.

use std::io::{self, BufWriter, Write};

use super::lines::UnitLines;
use super::{InputFault, Source};
use kvfair_core::trial::{JobSettings, NgramSettings, NgramUnit};
use kvfair_draw::{Alias, Rng, mix, zipf};

/// The messages of one input, in its order, one a line.
pub struct Messages {
    lines: UnitLines,
}

impl Messages {
    pub fn open(settings: &JobSettings, source: &dyn Source) -> io::Result<Messages> {
        Ok(Messages { lines: UnitLines::open("message", settings, source)? })
    }

    /// Gives the next message to `take`; false when there are no more.
    #[inline]
    pub fn read(&mut self, mut take: impl FnMut(&str)) -> Result<bool, InputFault> {
        self.lines.read(|line| match str::from_utf8(line) {
            Ok(message) => {
                take(message);
                Ok(())
            }
            Err(error) => Err(format!("not UTF-8 at byte {}", error.valid_up_to() + 1)),
        })
    }

    /// Messages given so far: before a reading, the number of the message to come, from 0.
    pub fn count(&self) -> u64 {
        self.lines.units()
    }

    /// Bad lines passed over so far.
    pub fn skipped(&self) -> u64 {
        self.lines.skipped()
    }
}

/// The n-grams of one message: runs of 1 to so many neighbouring words or characters, in the order in which they begin,
/// the shorter ones first: a, a b, b, b c, c.
///
/// The units lie in one buffer, words with one space between them, so that every run is a slice of it and none is
/// copied.
#[derive(Default)]
pub struct Terms {
    settings: NgramSettings,
    text: Vec<u8>,
    /// Where each unit begins, and where a further one would: of words two bytes behind the last one's last.
    starts: Vec<usize>,
    /// Where each run begins and ends.
    runs: Vec<(u32, u32)>,
    /// Words or characters of the message.
    units: usize,
}

impl Terms {
    pub fn of(settings: NgramSettings) -> Terms {
        Terms { settings, ..Terms::default() }
    }

    /// Puts the n-grams of `message` in place of what it held.
    pub fn read(&mut self, message: &str) {
        let (units, between) = match self.settings.unit {
            NgramUnit::Word => (self.read_words(message.as_bytes()), 1),
            NgramUnit::Char => (self.read_characters(message), 0),
        };
        let order = self.settings.order as usize;
        self.runs.clear();
        self.units = units;
        for first in 0..units {
            let ends = &self.starts[first + 1..(first + order).min(units) + 1];
            let begin = self.starts[first] as u32;
            self.runs.extend(ends.iter().map(|end| (begin, (end - between) as u32)));
        }
    }

    /// Words by the tokeniser `ascii`: A-Z become a-z, a word is a run of `[a-z0-9#@']`, and every other byte
    /// separates, those of letters with accents as well. How many there are.
    ///
    /// Every byte is written, and counts only where the place to write moves on: words end too often and too
    /// irregularly for a branch, which a processor would foretell wrongly once a word.
    fn read_words(&mut self, message: &[u8]) -> usize {
        self.make_room(message.len());
        let (text, starts) = (self.text.as_mut_slice(), self.starts.as_mut_slice());
        let (mut words, mut end, mut in_word) = (0, 0, false);
        let mut take = |byte: u8| {
            let lowered = ASCII[usize::from(byte)];
            let is_word = lowered != SEPARATOR;
            text[end] = lowered;
            end += usize::from(is_word | in_word);
            starts[words + 1] = end;
            words += usize::from(in_word & !is_word);
            in_word = is_word;
        };
        message.iter().for_each(|byte| take(*byte));
        take(SEPARATOR);
        words
    }

    /// Characters: A-Z become a-z, a run of white space is one space, and none stands at the ends. How many there are.
    fn read_characters(&mut self, message: &str) -> usize {
        self.text.clear();
        self.starts.clear();
        self.starts.push(0);
        for word in message.split_whitespace() {
            let space = if self.text.is_empty() { "" } else { " " };
            for character in space.chars().chain(word.chars()) {
                let mut bytes = [0; 4];
                self.text.extend_from_slice(character.to_ascii_lowercase().encode_utf8(&mut bytes).as_bytes());
                self.starts.push(self.text.len());
            }
        }
        self.starts.len() - 1
    }

    pub fn clear(&mut self) {
        self.runs.clear();
        self.units = 0;
    }

    /// Words or characters of the message.
    pub fn units(&self) -> usize {
        self.units
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let (begin, end) = self.runs[index];
        &self.text[begin as usize..end as usize]
    }

    /// A separator is taken at the end of every message; no two words are without one between them.
    fn make_room(&mut self, message_bytes: usize) {
        if self.text.len() < message_bytes + 1 {
            self.text.resize(message_bytes + 1, SEPARATOR);
            self.starts.resize(message_bytes / 2 + 3, 0);
        }
    }
}

const SEPARATOR: u8 = b' ';

/// What the tokeniser makes of every byte.
const ASCII: [u8; 256] = {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0;
    while byte < 128 {
        let lowered = (byte as u8).to_ascii_lowercase();
        if matches!(lowered, b'a'..=b'z' | b'0'..=b'9' | b'#' | b'@' | b'\'') {
            table[byte] = lowered;
        }
        byte += 1;
    }
    table
};

/// The seed of the default data: of the first 300, the one that comes nearest to the expected 750,128 increments of
/// 400,365 terms.
pub const TWEETS2_SEED: u64 = 26;

/// Words in a message: a discrete gamma law of this shape and mean, cut off where 140 characters end.
const WORDS_SHAPE: f64 = 8.0;
const WORDS_MEAN: f64 = 8.86;
const WORDS_MAX: u32 = 26;
/// Words by the law of Zipf and Mandelbrot.
const RANKS: u32 = 2_000_000;
const RANK_EXPONENT: f64 = 1.05;
const RANK_SHIFT: f64 = 2.7;
/// Every word has so many words that may follow it in a phrase, the first ones far more often than the last.
const SUCCESSORS: u32 = 1_000;
const SUCCESSOR_EXPONENT: f64 = 1.1;
/// One word in 2^2 follows the one before it as in a phrase.
const PHRASE_POWER: u32 = 2;

/// The recipe `tweets2`: `messages` lines of made-up words, whose counts and pairs are distributed as those of short
/// messages. The same seed gives the same bytes everywhere, and the first messages of a longer file are those of a
/// shorter one.
pub fn tweets2(seed: u64, messages: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut talk = Talk::new(seed);
    let mut message = Vec::new();
    for _ in 0..messages {
        talk.next(&mut message);
        out.write_all(&message)?;
    }
    out.flush()
}

/// Messages without end, as the seed has them.
struct Talk {
    rng: Rng,
    lengths: Alias,
    ranks: Alias,
    successors: Alias,
}

impl Talk {
    fn new(seed: u64) -> Talk {
        let length_weight =
            |words: f64| libm::pow(words, WORDS_SHAPE - 1.0) * libm::exp(-words * WORDS_SHAPE / WORDS_MEAN);
        Talk {
            rng: Rng::new(seed),
            lengths: Alias::new((1..=WORDS_MAX).map(|words| length_weight(f64::from(words))).collect()),
            ranks: Alias::new(zipf(RANKS, RANK_EXPONENT, RANK_SHIFT)),
            successors: Alias::new(zipf(SUCCESSORS, SUCCESSOR_EXPONENT, 0.0)),
        }
    }

    /// Puts the next message and its line end in place of what `message` held.
    fn next(&mut self, message: &mut Vec<u8>) {
        message.clear();
        let mut rank = 0;
        for index in 0..=self.lengths.pick(self.rng.draw()) {
            let in_phrase = index > 0 && self.rng.once_in(PHRASE_POWER);
            let drawn = self.rng.draw();
            let bits = if in_phrase { phrase_bits(rank, self.successors.pick(drawn) as u64) } else { drawn };
            rank = 1 + self.ranks.pick(bits) as u64;
            if index > 0 {
                message.push(b' ');
            }
            spell(rank, message);
        }
        message.push(b'\n');
    }
}

/// Which word it is that follows the word of that rank, as its successor of that number: the same whenever it is asked
/// for.
fn phrase_bits(rank: u64, successor: u64) -> u64 {
    mix(mix(rank).wrapping_add(successor))
}

const CONSONANTS: &[u8; 21] = b"bcdfghjklmnpqrstvwxyz";
const VOWELS: &[u8; 5] = b"aeiou";

/// A rank as a word: its digits to the bijective base 105, each a syllable, the last digit first. No two ranks have
/// one word.
fn spell(rank: u64, word: &mut Vec<u8>) {
    let syllables = (CONSONANTS.len() * VOWELS.len()) as u64;
    let mut left = rank;
    while left > 0 {
        let digit = ((left - 1) % syllables) as usize;
        word.extend([CONSONANTS[digit / VOWELS.len()], VOWELS[digit % VOWELS.len()]]);
        left = (left - 1) / syllables;
    }
}
