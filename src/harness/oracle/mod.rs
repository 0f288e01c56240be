//! The expected state: what every key must hold at a job's end, by replaying its input on a hash map, once a run.
//!
//! It shares no code with the jobs but the reading of their input, so that a fault in a job is not repeated here. It
//! is kept as (key, digest) pairs in a file that every trial streams through; the value of a key that turns out wrong
//! is computed once more, for the message alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::input::DataFile;
use crate::jobs::{self, EndState, InputFault, Source};
use crate::model::op::{Fault, KeyList, Op, Reply, Wrong, readable};
use crate::model::record::{Checked, Model, Stream, Traced, Verdict};
use crate::model::trial::{JobSettings, Verify};
use crate::stores::room::Weight;
use crate::stores::{Session, Store};

mod fans;
mod hashed;
mod lookup;
mod ngrams;
mod queries;
mod requests;
mod sorted_runs;
mod trace;

pub use fans::{record_of_packed, record_of_tally};
pub use hashed::Hashed;
pub use requests::{Played, compare as versions};
pub use trace::{TrialCounts, compare as recorded};

/// Keys read back in one question.
const BATCH_KEYS: usize = 200;
/// And no more bytes of keys than that.
const BATCH_BYTES: usize = 64 * 1024;
/// So much of a value is told in a message.
const SHOWN_BYTES: usize = 200;
/// A sample begins with one key in so many, and halves whenever its entries outgrow `SAMPLE_ENTRIES`.
const SAMPLE_ONE_IN: u64 = 16;
const SAMPLE_ENTRIES: usize = 2_000_000;

/// What the process of the expected state is asked.
#[derive(Serialize, Deserialize)]
pub struct OracleTask {
    pub job: JobSettings,
    pub input: PathBuf,
    pub verify: Verify,
    /// Where the pairs go.
    pub out: PathBuf,
    /// Instead of writing pairs, tell the value of this one key.
    pub explain: Option<Vec<u8>>,
    /// The process may have no more memory than this.
    pub memory_bytes: Option<u64>,
}

/// What it answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub stream: Stream,
    /// Units that ask something.
    pub asking_units: u64,
    /// Keys in the file of pairs.
    pub keys: u64,
    /// Bytes of all keys and values at the end, scaled up where only a sample was kept.
    pub data_bytes: u64,
    /// The same by size, for who must know beforehand what it takes.
    #[serde(default)]
    pub weight: Weight,
    /// Bytes of the largest value that any key held on the way there, where values may shrink or go: 0 elsewhere.
    #[serde(default)]
    pub longest_value: u64,
    /// Fields of all records, were each a tally.
    #[serde(default)]
    pub fields: u64,
    pub answer: BTreeMap<String, String>,
    /// The value that was asked for, if the key should be there.
    pub explained: Option<Vec<u8>>,
    pub took_s: f64,
}

/// A job done on a hash map.
trait Replay {
    /// Takes all of the input.
    fn replay(
        &mut self,
        source: &dyn Source,
        settings: &JobSettings,
        sample: &mut Sample,
    ) -> Result<Counts, InputFault>;
    /// Every key that the sample holds, with its value as the store must give it.
    fn entries(&self, each: Each<'_>) -> io::Result<()>;
    /// Puts what must come out where trials find it, as (key, digest) pairs unless it is told otherwise.
    fn write(&self, out: &Path, summary: &mut Summary) -> io::Result<()> {
        write_pairs(self, out, summary)
    }
    /// Fields of all records, were each a tally.
    fn fields(&self) -> u64 {
        0
    }
    /// The answer in short, by name. Only asked where the sample is everything.
    fn answer(&self) -> io::Result<BTreeMap<String, String>>;
}

/// Takes a key and the value that it must hold.
type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> io::Result<()>;

/// What a replay has counted.
#[derive(Default)]
struct Counts {
    units: u64,
    /// Units that ask something.
    asking_units: u64,
    ops: u64,
    skipped_lines: u64,
    /// Of the largest value that any key held, where values may shrink or go; of all keys, not of a sample.
    longest_value: u64,
    /// Of questions that are drawn and not read, and of what they leave behind.
    drawn: Option<Drawn>,
    /// Of recorded traffic.
    traced: Option<Traced>,
    /// Of a store that is filled to be read.
    model: Option<Model>,
}

/// What is known of a job that reads nothing.
struct Drawn {
    sha256: String,
    data_bytes: u64,
    weight: Weight,
    /// What zstd leaves of values.
    zstd_share: Option<f64>,
}

/// The same for a process that does nothing else: its memory is bounded.
pub fn answer(question: &OracleTask) -> Result<Summary, String> {
    if let Some(limit) = question.memory_bytes {
        // Where the system has no such limit it is not bounded.
        let _ = setrlimit(Resource::RLIMIT_DATA, limit, limit);
    }
    compute(question)
}

/// Replays a job's input and keeps what must come out.
pub fn compute(question: &OracleTask) -> Result<Summary, String> {
    let began = Instant::now();
    let source = Hashed::new(DataFile::new(&question.input, &question.job.data));
    let mut replay = replay_of(question)?;
    let mut sample = Sample::new(question.verify);
    let counts = replay.replay(&source, &question.job, &mut sample).map_err(|fault| fault.to_string())?;
    let mut summary = Summary {
        stream: Stream {
            sha256: match &counts.drawn {
                Some(drawn) => drawn.sha256.clone(),
                None => source.sha256(),
            },
            unit: jobs::find(&question.job.name).map_or("unit", |job| job.unit).to_string(),
            units: counts.units,
            ops: counts.ops,
            skipped_lines: counts.skipped_lines,
            traced: counts.traced,
            model: counts.model,
            zstd_share: counts.drawn.as_ref().and_then(|drawn| drawn.zstd_share),
        },
        asking_units: counts.asking_units,
        longest_value: counts.longest_value,
        ..Summary::default()
    };
    match &question.explain {
        Some(key) => replay.entries(&mut |entry, value| {
            if entry == key {
                summary.explained = Some(value.to_vec());
            }
            Ok(())
        }),
        None => replay.write(&question.out, &mut summary),
    }
    .map_err(|error| format!("the expected state could not be written to {}: {error}", question.out.display()))?;
    summary.data_bytes *= sample.one_in;
    summary.weight.scale(sample.one_in);
    summary.fields = replay.fields() * sample.one_in;
    if let Some(drawn) = counts.drawn {
        summary.data_bytes += drawn.data_bytes;
        summary.weight = drawn.weight;
    }
    if question.verify == Verify::Full && question.explain.is_none() {
        summary.answer = replay.answer().map_err(|error| format!("the expected state on disk: {error}"))?;
    }
    summary.took_s = began.elapsed().as_secs_f64();
    Ok(summary)
}

fn replay_of(question: &OracleTask) -> Result<Box<dyn Replay>, String> {
    match question.job.name.as_str() {
        "fans" => Ok(Box::<fans::Fans>::default()),
        // A sample fits into memory.
        "ngrams" if question.verify == Verify::Full => {
            Ok(Box::new(ngrams::Ngrams::bounded(question.memory_bytes, &question.out)))
        }
        "ngrams" => Ok(Box::<ngrams::Ngrams>::default()),
        "lookup" => Ok(Box::<lookup::ExpectedScores>::default()),
        "trace" => Ok(Box::<trace::Trace>::default()),
        name if jobs::find(name).is_some_and(|job| job.requests.is_some()) => Ok(Box::new(requests::ExpectedRequests)),
        other => Err(format!("no expected state is known of job {other}")),
    }
}

/// Where what clients must hear is told, beside the pairs.
pub fn answers_beside(pairs: &Path) -> PathBuf {
    let mut name = pairs.as_os_str().to_owned();
    name.push(".answers");
    PathBuf::from(name)
}

fn write_pairs<R: Replay + ?Sized>(replay: &R, out: &Path, summary: &mut Summary) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    replay.entries(&mut |key, value| {
        summary.keys += 1;
        summary.data_bytes += (key.len() + value.len()) as u64;
        summary.weight.add((key.len() + value.len()) as u64, 1);
        file.write_all(&(key.len() as u32).to_le_bytes())?;
        file.write_all(key)?;
        file.write_all(&xxh3_128(value).to_le_bytes())
    })?;
    file.flush()
}

/// Which keys are kept: all of them, or those whose hash is small.
struct Sample {
    one_in: u64,
    limit: usize,
}

impl Sample {
    fn new(verify: Verify) -> Sample {
        match verify {
            Verify::Full => Sample { one_in: 1, limit: usize::MAX },
            Verify::Sample => Sample { one_in: SAMPLE_ONE_IN, limit: SAMPLE_ENTRIES },
        }
    }

    fn takes(&self, key: &[u8]) -> bool {
        self.one_in == 1 || xxh3_64(key) < u64::MAX / self.one_in
    }

    /// Whether `entries` have outgrown it. If so it takes half as many keys from now on, and the rest must be dropped.
    fn outgrown(&mut self, entries: usize) -> bool {
        let outgrown = entries > self.limit;
        if outgrown {
            self.one_in *= 2;
        }
        outgrown
    }
}

/// sha256 over lines, sorted by their bytes.
fn sha256_of_sorted(mut lines: Vec<Vec<u8>>) -> String {
    // Nearly sorted already, as a rule: then this is one pass.
    lines.sort();
    let mut hash = Sha256::new();
    lines.iter().for_each(|line| hash.update(line));
    hex::encode(hash.finalize())
}

/// What a comparison came to, and the first wrong key as it is, for the parent to ask what it should have held.
pub struct Compared {
    pub verdict: Verdict,
    pub wrong_key: Option<Vec<u8>>,
}

/// Reads back what a store holds and compares it with the expected state in `pairs`, telling `heard` how many keys are
/// done.
pub fn compare(
    pairs: &Path,
    how: Verify,
    end_state: EndState,
    store: &dyn Store,
    heard: impl Fn(u64),
) -> Result<Compared, String> {
    let began = Instant::now();
    let mut session = store.session().map_err(|fault| format!("no session to read back: {fault}"))?;
    let file = File::open(pairs).map_err(|error| format!("the expected state in {}: {error}", pairs.display()))?;
    let mut comparison =
        Comparison { end_state, wrong_keys: 0, first: None, wrong_key: None, keys: 0, bytes: 0, value: Vec::new() };
    let mut expected = BufReader::with_capacity(1 << 20, file);
    let mut batch = Batch::default();
    while batch.fill(&mut expected).map_err(|error| format!("the expected state in {}: {error}", pairs.display()))? {
        comparison.batch(&batch, session.as_mut()).map_err(|fault| format!("reading back: {fault}"))?;
        heard(comparison.keys);
    }
    session.flush().map_err(|fault| format!("reading back: {fault}"))?;
    drop(session);
    let held = store.count().map_err(|fault| format!("counting records: {fault}"))?;
    // A tally may take one record of the store or many.
    let countable = how == Verify::Full && end_state != EndState::Tallies;
    let extra_keys = held.filter(|_| countable).map(|held| held as i64 - comparison.keys as i64);
    let checked = Checked {
        how,
        keys: comparison.keys,
        keys_expected: comparison.keys,
        bytes: comparison.bytes,
        extra_keys,
        answer: BTreeMap::new(),
        took_s: began.elapsed().as_secs_f64(),
    };
    let first = comparison.first.or_else(|| {
        extra_keys.filter(|&extra| extra != 0).map(|_| Wrong {
            key: "(count of records)".to_string(),
            expected: comparison.keys.to_string(),
            found: held.unwrap_or(0).to_string(),
        })
    });
    let verdict = match first {
        None => Verdict::Right(checked),
        Some(first) => Verdict::Wrong { first, wrong_keys: comparison.wrong_keys.max(1), checked },
    };
    Ok(Compared { verdict, wrong_key: comparison.wrong_key })
}

/// Some keys and digests of the expected state.
#[derive(Default)]
struct Batch {
    keys: KeyList,
    digests: Vec<u128>,
    key: Vec<u8>,
}

impl Batch {
    /// Reads the next keys. False at the end.
    fn fill(&mut self, expected: &mut impl BufRead) -> io::Result<bool> {
        self.keys.clear();
        self.digests.clear();
        let mut bytes = 0;
        while self.digests.len() < BATCH_KEYS && bytes < BATCH_BYTES && !expected.fill_buf()?.is_empty() {
            let mut length = [0; 4];
            expected.read_exact(&mut length)?;
            self.key.resize(u32::from_le_bytes(length) as usize, 0);
            expected.read_exact(&mut self.key)?;
            let mut digest = [0; 16];
            expected.read_exact(&mut digest)?;
            bytes += self.key.len();
            self.keys.push(&self.key);
            self.digests.push(u128::from_le_bytes(digest));
        }
        Ok(!self.digests.is_empty())
    }
}

struct Comparison {
    end_state: EndState,
    wrong_keys: u64,
    first: Option<Wrong>,
    wrong_key: Option<Vec<u8>>,
    keys: u64,
    bytes: u64,
    /// A value as the expected state writes it: a counter's is its decimal text.
    value: Vec<u8>,
}

impl Comparison {
    fn batch(&mut self, batch: &Batch, session: &mut dyn Session) -> Result<(), Fault> {
        let keys = batch.keys.lend();
        let many = match self.end_state {
            EndState::Counters => Op::NumberMany(keys),
            EndState::Tallies => return self.one_by_one(batch, session),
            _ => Op::GetMany(keys),
        };
        match session.ask(&many) {
            Ok(Reply::Values(values)) if values.len() == keys.len() => {
                for (index, value) in values.iter().enumerate() {
                    self.key(keys.get(index), value, batch.digests[index]);
                }
                Ok(())
            }
            Ok(Reply::Numbers(numbers)) if numbers.len() == keys.len() => {
                for (index, number) in numbers.iter().enumerate() {
                    self.number(keys.get(index), *number, batch.digests[index]);
                }
                Ok(())
            }
            Ok(other) => Err(Fault::Garbled(format!("{} answered by {other:?}", many.name()))),
            Err(Fault::Unsupported(_)) => self.one_by_one(batch, session),
            Err(fault) => Err(fault),
        }
    }

    /// For a store that cannot be asked for many keys at once.
    fn one_by_one(&mut self, batch: &Batch, session: &mut dyn Session) -> Result<(), Fault> {
        for (key, &digest) in batch.keys.lend().iter().zip(&batch.digests) {
            let one = match self.end_state {
                EndState::Counters => Op::Number(key),
                EndState::Tallies => Op::ReadTally(key),
                _ => Op::Get(key),
            };
            match session.ask(&one)? {
                Reply::Rows(tally) => {
                    let mut record = std::mem::take(&mut self.value);
                    fans::record_of_tally(key, tally, &mut record);
                    self.key(key, Some(&record), digest);
                    self.value = record;
                }
                Reply::Value(value) => self.key(key, Some(value), digest),
                Reply::Number(number) => self.number(key, Some(number), digest),
                Reply::Missing => self.key(key, None, digest),
                other => return Err(Fault::Garbled(format!("{} answered by {other:?}", one.name()))),
            }
        }
        Ok(())
    }

    fn number(&mut self, key: &[u8], number: Option<i64>, digest: u128) {
        let mut text = std::mem::take(&mut self.value);
        text.clear();
        if let Some(number) = number {
            write!(text, "{number}").expect("memory takes what is written");
        }
        self.key(key, number.map(|_| text.as_slice()), digest);
        self.value = text;
    }

    fn is_of(&mut self, value: &[u8], digest: u128) -> bool {
        match self.end_state {
            EndState::Packed => fans::record_of_packed(value, &mut self.value) && xxh3_128(&self.value) == digest,
            _ => xxh3_128(value) == digest,
        }
    }

    fn key(&mut self, key: &[u8], value: Option<&[u8]>, digest: u128) {
        self.keys += 1;
        self.bytes += value.map_or(0, |value| (key.len() + value.len()) as u64);
        if value.is_some_and(|value| self.is_of(value, digest)) {
            return;
        }
        self.wrong_keys += 1;
        if self.first.is_none() {
            let found = value.map_or_else(|| "nothing".to_string(), |value| readable(value, SHOWN_BYTES));
            // The parent replays the input once more to tell what was expected.
            self.first = Some(Wrong { key: readable(key, SHOWN_BYTES), expected: String::new(), found });
            self.wrong_key = Some(key.to_vec());
        }
    }
}

/// What the expected state would have of a wrong key, as a message tells it.
pub fn expected(summary: &Summary) -> String {
    summary.explained.as_deref().map_or_else(|| "nothing".to_string(), |value| readable(value, SHOWN_BYTES))
}

/// For a trial that heard a wrong answer before anything was read back.
pub fn nothing_checked(how: Verify) -> Checked {
    Checked { how, keys: 0, keys_expected: 0, bytes: 0, extra_keys: None, answer: BTreeMap::new(), took_s: 0.0 }
}

#[cfg(test)]
mod tests;
