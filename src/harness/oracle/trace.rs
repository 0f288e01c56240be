//! The expected state of `trace`: each key's last write, by a replay on a map that keeps everything, and what a store
//! may differ in: where it says that it has evicted records, or a time to live was passed to it, keys may be gone, and
//! a get may have set them again later.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::{BATCH_KEYS, Compared, Counts, Each, Replay, SHOWN_BYTES, Sample, Summary};
use crate::jobs::trace::forms::Operation;
use crate::jobs::trace::hash_of;
use crate::jobs::trace::recorded::{Recorded, RecordedRequest};
use crate::jobs::trace::values::{TraceValues, version_in};
use crate::jobs::{InputFault, Source};
use crate::model::op::{Fault, KeyList, Op, Reply, Wrong, readable};
use crate::model::record::{Checked, Traced, Verdict};
use crate::model::trial::{JobSettings, Verify};
use crate::model::units::thousands;
use crate::stores::{Session, Store};

/// Keys read back in one question bring no more bytes of values than that, or are one.
const BATCH_VALUE_BYTES: u64 = 1 << 20;
/// Stands for the number of misses where only a sample of the keys was replayed.
const UNKNOWN: u64 = u64::MAX;

#[derive(Default)]
pub struct Trace {
    entries: HashMap<Box<[u8]>, Entry, RandomState>,
    totals: Totals,
    gets: u64,
    longest_value: u64,
}

/// A key's last write.
#[derive(Clone, Copy)]
struct Entry {
    /// The number of the request that wrote it.
    version: u64,
    bytes: u32,
    /// It was written with a time to live, and may be gone where such things expire.
    may_expire: bool,
}

/// What the replay has counted, for the comparison.
#[derive(Clone, Copy, Default)]
struct Totals {
    /// Gets of keys that were not there.
    misses: u64,
    /// Sets with a time to live.
    expiring: u64,
}

impl Replay for Trace {
    fn replay(
        &mut self,
        source: &dyn Source,
        settings: &JobSettings,
        sample: &mut Sample,
    ) -> Result<Counts, InputFault> {
        let mut recorded = Recorded::open(settings, source).map_err(|error| InputFault::opening(source, &error))?;
        let (mut units, mut key) = (0, Vec::new());
        while recorded.read(|request| {
            request.key.write(&mut key);
            self.take(&key, request, sample);
        })? {
            units += 1;
            if sample.outgrown(self.entries.len()) {
                self.entries.retain(|key, _| sample.takes(key));
            }
        }
        let whole = sample.one_in == 1;
        self.totals.misses = if whole { self.totals.misses } else { UNKNOWN };
        let misses = whole.then_some(self.totals.misses);
        let traced = Some(Traced { gets: self.gets, misses, unasked: recorded.unasked() });
        let skipped_lines = recorded.skipped();
        let longest_value = self.longest_value;
        Ok(Counts { units, asking_units: units, ops: units, skipped_lines, longest_value, traced, ..Counts::default() })
    }

    fn entries(&self, _: Each<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Misses and expiring sets, then each key: its length in 4 bytes, itself, version, bytes, whether it may expire.
    fn write(&self, out: &Path, summary: &mut Summary) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
        file.write_all(&self.totals.misses.to_le_bytes())?;
        file.write_all(&self.totals.expiring.to_le_bytes())?;
        for (key, entry) in &self.entries {
            summary.keys += 1;
            summary.data_bytes += key.len() as u64 + u64::from(entry.bytes);
            summary.weight.add(key.len() as u64 + u64::from(entry.bytes), 1);
            file.write_all(&(key.len() as u32).to_le_bytes())?;
            file.write_all(key)?;
            file.write_all(&entry.version.to_le_bytes())?;
            file.write_all(&entry.bytes.to_le_bytes())?;
            file.write_all(&[u8::from(entry.may_expire)])?;
        }
        file.flush()
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }
}

impl Trace {
    fn take(&mut self, key: &[u8], request: RecordedRequest<'_>, sample: &Sample) {
        self.gets += u64::from(request.operation == Operation::Get);
        if request.operation != Operation::Delete {
            self.longest_value = self.longest_value.max(u64::from(request.value_bytes));
        }
        if !sample.takes(key) {
            return;
        }
        let may_expire = request.operation == Operation::Set && request.ttl_s > 0;
        let written = Entry { version: request.number, bytes: request.value_bytes, may_expire };
        self.totals.expiring += u64::from(may_expire);
        match (request.operation, self.entries.get_mut(key)) {
            (Operation::Delete, _) => drop(self.entries.remove(key)),
            (Operation::Set, Some(entry)) => *entry = written,
            (Operation::Get | Operation::Add, Some(_)) => {}
            (operation, None) => {
                self.totals.misses += u64::from(operation == Operation::Get);
                self.entries.insert(key.into(), written);
            }
        }
    }
}

/// What was seen of a trial that its end state must go with.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialCounts {
    /// Gets that found nothing.
    pub misses: u64,
    /// Records that the store says it has dropped to make room.
    pub evicted: u64,
    /// Whether times to live were passed to it.
    pub expires: bool,
}

/// Reads back what a store holds and compares it with the expected state at `path`.
pub fn compare(
    path: &Path,
    how: Verify,
    asked: TrialCounts,
    store: &dyn Store,
    heard: impl Fn(u64),
) -> Result<Compared, String> {
    let began = Instant::now();
    let reading = |fault: Fault| format!("reading back: {fault}");
    let unreadable = |error: io::Error| format!("the expected state in {}: {error}", path.display());
    let mut expected = BufReader::with_capacity(1 << 20, File::open(path).map_err(unreadable)?);
    let totals = Totals::read(&mut expected).map_err(unreadable)?;
    let mut session = store.session().map_err(reading)?;
    let mut comparison = Comparison {
        asked,
        values: TraceValues::default(),
        found: 0,
        bytes: 0,
        expiring: 0,
        missing: 0,
        wrong_keys: 0,
        first: None,
    };
    let (mut batch, mut keys) = (Batch::default(), 0);
    while batch.fill(&mut expected).map_err(unreadable)? {
        comparison.batch(&batch, session.as_mut()).map_err(reading)?;
        keys += batch.entries.len() as u64;
        heard(keys);
    }
    session.flush().map_err(reading)?;
    drop(session);
    let held = store.count().map_err(|fault| format!("counting records: {fault}"))?;
    let extra_keys = held.filter(|_| how == Verify::Full).map(|held| held as i64 - comparison.found as i64);
    let first = comparison.first.take().or_else(|| comparison.lost(totals)).or_else(|| {
        // What was there while it was read may have come to its end before it was counted.
        let gone = if asked.expires { comparison.expiring as i64 } else { 0 };
        extra_keys.filter(|extra| !(-gone..=0).contains(extra)).map(|_| Wrong {
            key: "(count of records)".to_string(),
            expected: comparison.found.to_string(),
            found: held.unwrap_or(0).to_string(),
        })
    });
    let took_s = began.elapsed().as_secs_f64();
    let checked = Checked {
        how,
        keys: comparison.found,
        keys_expected: keys,
        bytes: comparison.bytes,
        extra_keys,
        answer: BTreeMap::new(),
        took_s,
    };
    let verdict = match first {
        None => Verdict::Right(checked),
        Some(first) => Verdict::Wrong { first, wrong_keys: comparison.wrong_keys.max(1), checked },
    };
    Ok(Compared { verdict, wrong_key: None })
}

impl Totals {
    fn read(expected: &mut impl Read) -> io::Result<Totals> {
        Ok(Totals { misses: u64::from_le_bytes(bytes(expected)?), expiring: u64::from_le_bytes(bytes(expected)?) })
    }
}

fn bytes<const N: usize>(expected: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    expected.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Some keys of the expected state.
#[derive(Default)]
struct Batch {
    keys: KeyList,
    entries: Vec<Entry>,
    key: Vec<u8>,
}

impl Batch {
    /// Reads the next keys. False at the end.
    fn fill(&mut self, expected: &mut impl BufRead) -> io::Result<bool> {
        self.keys.clear();
        self.entries.clear();
        let mut value_bytes = 0;
        while self.entries.len() < BATCH_KEYS && value_bytes < BATCH_VALUE_BYTES && !expected.fill_buf()?.is_empty() {
            self.key.resize(u32::from_le_bytes(bytes(expected)?) as usize, 0);
            expected.read_exact(&mut self.key)?;
            self.keys.push(&self.key);
            let (version, bytes, [may_expire]) =
                (u64::from_le_bytes(bytes(expected)?), u32::from_le_bytes(bytes(expected)?), bytes(expected)?);
            self.entries.push(Entry { version, bytes, may_expire: may_expire > 0 });
            value_bytes += u64::from(bytes);
        }
        Ok(!self.entries.is_empty())
    }
}

struct Comparison {
    asked: TrialCounts,
    values: TraceValues,
    found: u64,
    bytes: u64,
    /// Of these, those that may be gone a moment later.
    expiring: u64,
    missing: u64,
    wrong_keys: u64,
    first: Option<Wrong>,
}

impl Comparison {
    fn batch(&mut self, batch: &Batch, session: &mut dyn Session) -> Result<(), Fault> {
        let keys = batch.keys.lend();
        match session.ask(&Op::GetMany(keys)) {
            Ok(Reply::Values(values)) if values.len() == keys.len() => {
                for ((key, entry), value) in keys.iter().zip(&batch.entries).zip(values.iter()) {
                    self.key(key, *entry, value);
                }
                return Ok(());
            }
            Ok(other) => return Err(Fault::Garbled(format!("get-many answered by {other:?}"))),
            Err(Fault::Unsupported(_)) => {}
            Err(fault) => return Err(fault),
        }
        for (key, entry) in keys.iter().zip(&batch.entries) {
            match session.ask(&Op::Get(key))? {
                Reply::Value(value) => self.key(key, *entry, Some(value)),
                Reply::Missing => self.key(key, *entry, None),
                other => return Err(Fault::Garbled(format!("get answered by {other:?}"))),
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &[u8], entry: Entry, value: Option<&[u8]>) {
        let may_be_gone = self.asked.evicted > 0 || (entry.may_expire && self.asked.expires);
        let hash = hash_of(key);
        let right = match value {
            None => may_be_gone,
            Some(value) if self.values.is(hash, entry.version, entry.bytes as usize, value) => true,
            // It was gone, and a later get or add has set it again. A value too short for a version may be of any.
            Some(value) => {
                may_be_gone
                    && self.values.belongs(hash, value)
                    && version_in(value).is_none_or(|version| version > entry.version)
            }
        };
        self.found += u64::from(value.is_some());
        self.bytes += value.map_or(0, |value| (key.len() + value.len()) as u64);
        self.missing += u64::from(value.is_none());
        self.expiring += u64::from(value.is_some() && entry.may_expire);
        self.wrong_keys += u64::from(!right);
        if !right && self.first.is_none() {
            self.first = Some(Wrong {
                key: readable(key, SHOWN_BYTES),
                expected: written(entry.version, u64::from(entry.bytes)),
                found: self.in_words(hash, value),
            });
        }
    }

    fn in_words(&self, key: u64, value: Option<&[u8]>) -> String {
        match value {
            None => "nothing".to_string(),
            Some(value) if !self.values.belongs(key, value) => {
                format!("{} bytes that are no value of this key: {}", value.len(), readable(value, SHOWN_BYTES))
            }
            Some(value) => match version_in(value) {
                Some(version) => written(version, value.len() as u64),
                None => format!("{} bytes of another request", value.len()),
            },
        }
    }

    /// What is gone must have been dropped by the store's own account, or may have expired: every get too many that
    /// found nothing, and every key that is missing now, is one that is gone.
    fn lost(&self, totals: Totals) -> Option<Wrong> {
        if totals.misses == UNKNOWN {
            return None;
        }
        let expired = if self.asked.expires { totals.expiring } else { 0 };
        let (least, most) = (totals.misses, totals.misses.saturating_add(self.asked.evicted).saturating_add(expired));
        let gone = self.asked.misses + self.missing;
        if self.asked.misses >= least && gone <= most {
            return None;
        }
        let range =
            if least == most { thousands(least) } else { format!("{} to {}", thousands(least), thousands(most)) };
        Some(Wrong {
            key: "(gets that found nothing, and keys that are missing)".to_string(),
            expected: range,
            found: thousands(gone),
        })
    }
}

/// "512 bytes, as request 18 set them": requests count from 1 where people read of them.
fn written(version: u64, bytes: u64) -> String {
    format!("{} bytes, as request {} set them", thousands(bytes), thousands(version.saturating_add(1)))
}

#[cfg(test)]
mod tests;
