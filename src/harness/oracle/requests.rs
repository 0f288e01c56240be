//! The expected state of jobs of requests: the draws are made once more, and every key must hold some client's last
//! write of it.
//!
//! Which client came last is the store's to decide; that nothing older is left, and nothing else, is not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::{BATCH_KEYS, Compared, Counts, Drawn, Each, Replay, SHOWN_BYTES, Sample};
use crate::jobs::keyed::keytext::KeyText;
use crate::jobs::keyed::lengths::Lengths;
use crate::jobs::keyed::questions::{Asked, points_of};
use crate::jobs::keyed::values::{HEAD_BYTES, SEQUENCE_MAX, Values, version, version_in};
use crate::jobs::keyed::{doings, turns, values_of};
use crate::jobs::{InputFault, Part, Source, Writing, find};
use crate::model::load::{At, Load};
use crate::model::op::{KeyList, Op, Reply, Wrong, readable};
use crate::model::record::{Checked, Verdict};
use crate::model::trial::{JobSettings, Verify};
use crate::stores::room::Weight;
use crate::stores::{Session, Store};

/// So many questions of a part are hashed: enough to tell one drawing from another, and nothing beside asking them.
const HASHED_QUESTIONS: u64 = 100_000;
/// And the lengths of so many records are drawn.
const SEEN_RECORDS: u64 = 100_000;
/// Bytes of values that zstd is tried on, and its fastest level but the ones below zero.
const PACKED_BYTES: usize = 1 << 17;
const FASTEST: i32 = 1;

/// Counts what is asked; what must come out depends on the order of the points.
pub struct ExpectedRequests;

impl Replay for ExpectedRequests {
    fn replay(&mut self, _: &dyn Source, settings: &JobSettings, _: &mut Sample) -> Result<Counts, InputFault> {
        let asked = Asked::of(settings);
        let points = points_of(settings);
        // Points with rates of their own may have as many requests each.
        let (load, units) = (&asked.load, points.iter().map(|at| at.requests).max().unwrap_or_default());
        if load.read_only {
            // Keys and values are the store's.
            let weight = Weight::default();
            let drawn = Some(Drawn { sha256: String::new(), data_bytes: 0, weight, zstd_share: None });
            return Ok(Counts { units, asking_units: units, ops: units, drawn, ..Counts::default() });
        }
        let mut hash = Hashing(Sha256::new());
        let named = units.min(HASHED_QUESTIONS);
        asked.write(named, parts_of(settings), &mut hash).expect("a hash takes what is written");
        let largest = points.iter().map(|at| at.value_bytes).max().unwrap_or_default();
        let each = size_of::<KeyText>() as f64 + Lengths::new(largest, load.spread).mean();
        let data_bytes = (load.records as f64 * each) as u64;
        let zstd_share = Some(zstd_share(&values_of(settings, largest), load.records));
        let weight = weight(settings, load, &points);
        let drawn = Some(Drawn { sha256: hex::encode(hash.0.finalize()), data_bytes, weight, zstd_share });
        Ok(Counts { units, asking_units: units, ops: units, drawn, ..Counts::default() })
    }

    fn entries(&self, _: Each<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }
}

/// Records of each size that is swept over, since what held one size may not hold the next, and those that are
/// inserted, with a tenth more for chance.
fn weight(settings: &JobSettings, load: &Load, points: &[At]) -> Weight {
    let inserts = doings(settings).1 == Writing::Insert;
    let asked: u64 = points.iter().map(|at| at.requests).sum();
    let writes = asked as f64 * f64::from(load.writes) / f64::from((load.reads + load.writes).max(1));
    let records = load.records + if inserts { (writes * 1.1) as u64 + 100 } else { 0 };
    let mut weight = Weight::default();
    for value_bytes in points.iter().map(|at| at.value_bytes).collect::<BTreeSet<_>>() {
        let lengths = Lengths::new(value_bytes, load.spread);
        let seen = if lengths.are_same() { 1 } else { records.min(SEEN_RECORDS) };
        let times = records.div_ceil(seen.max(1));
        (0..seen).for_each(|record| weight.add((size_of::<KeyText>() + lengths.of(record)) as u64, times));
    }
    weight
}

/// What zstd leaves of the values that are loaded first, packed together as a page of a store would be.
fn zstd_share(values: &Values, records: u64) -> f64 {
    let (mut page, mut value) = (Vec::new(), values.blank());
    for record in 0..records {
        values.write(record, version(0, 0, 0), &mut value);
        page.extend_from_slice(&value);
        if page.len() >= PACKED_BYTES {
            break;
        }
    }
    let packed = zstd::bulk::compress(&page, FASTEST).expect("room for what is packed is made to measure");
    packed.len() as f64 / page.len().max(1) as f64
}

/// The parts of the job that these settings are of.
fn parts_of(settings: &JobSettings) -> &'static [Part] {
    find(&settings.name).map_or(&[], |job| (job.open)(settings).parts())
}

struct Hashing(Sha256);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a key was found to hold.
#[derive(Clone, Default)]
struct Found {
    /// Nothing at all, or bytes that are no value of this key.
    broken: Option<String>,
    /// The first bytes, where a version stands.
    head: [u8; 16],
    right: bool,
    /// Of key and value.
    bytes: u64,
}

impl Found {
    /// Whether it is this version of the record's value.
    fn is(&self, values: &Values, record: u64, version: u64) -> bool {
        let length = values.bytes(record).min(HEAD_BYTES);
        self.broken.is_none() && values.head(record, version)[..length] == self.head[..length]
    }
}

/// A part of a point that was gone through since all records were loaded last.
pub struct Played {
    pub part: Part,
    pub at: At,
    /// How many questions each client has asked; where nothing is said, its share.
    pub asked: Vec<u64>,
}

impl Played {
    fn asked_by(&self, asked: &Asked, part: Part, index: u32) -> u64 {
        self.asked.get(index as usize).copied().unwrap_or_else(|| asked.share(part, self.at, index))
    }
}

/// Reads back all keys of a trial that has gone through this, in this order.
pub fn compare(
    settings: &JobSettings,
    points: &[Played],
    store: &dyn Store,
    heard: impl Fn(u64),
) -> Result<Compared, String> {
    let began = Instant::now();
    let asked = Asked::of(settings);
    let value_bytes = points.last().map_or(asked.load.value_bytes, |point| point.at.value_bytes);
    let values = values_of(settings, value_bytes);
    let new = inserted(settings, &asked, points);
    let keys: Vec<u64> = (0..asked.load.records).chain(new.iter().map(|(record, _)| *record)).collect();
    let mut found = read_back(&keys, &values, store, heard)?;
    // Gets alone leave what was loaded.
    let writing = parts_of(settings).iter().copied().find(|part| matches!(part, Part::Set | Part::Run));
    let (loaded, made) = found.split_at_mut(asked.load.records as usize);
    judge(&asked, writing.filter(|_| new.is_empty()), points, &values, loaded);
    for (found, (record, version)) in made.iter_mut().zip(&new) {
        found.right = found.is(&values, *record, *version);
    }
    let records = found.len() as u64;
    let held = store.count().map_err(|fault| format!("counting records: {fault}"))?;
    let extra_keys = held.map(|held| held as i64 - records as i64);
    let checked = Checked {
        how: Verify::Full,
        keys: records,
        keys_expected: records,
        bytes: found.iter().map(|found| found.bytes).sum(),
        extra_keys,
        answer: BTreeMap::new(),
        took_s: began.elapsed().as_secs_f64(),
    };
    let wrong_keys = found.iter().filter(|found| !found.right).count() as u64;
    let first = first_wrong(&keys, &found).or_else(|| {
        extra_keys.filter(|&extra| extra != 0).map(|_| Wrong {
            key: "(count of records)".to_string(),
            expected: records.to_string(),
            found: held.unwrap_or(0).to_string(),
        })
    });
    let verdict = match first {
        None => Verdict::Right(checked),
        Some(first) => Verdict::Wrong { first, wrong_keys: wrong_keys.max(1), checked },
    };
    Ok(Compared { verdict, wrong_key: None })
}

/// What a job's clients insert: the records, in order, and the version that each must have.
fn inserted(settings: &JobSettings, asked: &Asked, points: &[Played]) -> Vec<(u64, u64)> {
    let (reading, writing) = doings(settings);
    let mut all = Vec::new();
    // Such a job has one point, so that no record is inserted twice.
    for point in points.iter().take(1).filter(|_| writing == Writing::Insert) {
        let at = point.at;
        for index in 0..at.clients {
            let Load { keys, records, .. } = asked.load;
            let part = turns::ClientRole { reading, writing, keys, records, of: at.clients, index };
            let mut questions = asked.questions(Part::Run, at, index);
            let numbers = (0..point.asked_by(asked, Part::Run, index)).filter(|_| questions.draw().set);
            all.extend((0..).zip(numbers).map(|(nth, number)| (part.inserted(nth), version(at.number, index, number))));
        }
    }
    all.sort_unstable();
    all
}

fn read_back(records: &[u64], values: &Values, store: &dyn Store, heard: impl Fn(u64)) -> Result<Vec<Found>, String> {
    let mut session = store.session().map_err(|fault| format!("no session to read back: {fault}"))?;
    let mut found: Vec<Found> = Vec::new();
    let (mut key, mut keys) = (KeyText::default(), KeyList::default());
    for batch in records.chunks(BATCH_KEYS) {
        keys.clear();
        batch.iter().for_each(|record| keys.push(key.of(*record)));
        let before = found.len();
        let mut take = |value: Option<&[u8]>| {
            // Answers beyond the questions are looked at as a missing key's: never right.
            let record = records.get(found.len()).copied().unwrap_or(u64::MAX);
            let bytes = value.map_or(0, |value| (key.of(record).len() + value.len()) as u64);
            found.push(Found { bytes, ..look(values, record, value) });
        };
        match session.ask(&Op::GetMany(keys.lend())) {
            Ok(Reply::Values(answers)) => answers.iter().for_each(take),
            _ => one_by_one(session.as_mut(), &keys, &mut take)?,
        }
        if found.len() - before != batch.len() {
            return Err(format!("reading back: {} values for {} keys", found.len() - before, batch.len()));
        }
        heard(found.len() as u64);
    }
    session.flush().map_err(|fault| format!("reading back: {fault}"))?;
    Ok(found)
}

/// For a store that cannot be asked for many keys at once.
fn one_by_one(session: &mut dyn Session, keys: &KeyList, take: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), String> {
    for key in keys.lend().iter() {
        match session.ask(&Op::Get(key)).map_err(|fault| format!("reading back: {fault}"))? {
            Reply::Value(value) => take(Some(value)),
            Reply::Missing => take(None),
            other => return Err(format!("reading back: get answered by {other:?}")),
        }
    }
    Ok(())
}

fn look(values: &Values, record: u64, value: Option<&[u8]>) -> Found {
    let Some(value) = value else {
        return Found { broken: Some("nothing".to_string()), ..Found::default() };
    };
    let mut head = [0; 16];
    let length = value.len().min(head.len());
    head[..length].copy_from_slice(&value[..length]);
    let broken = (!values.belongs(record, value))
        .then(|| format!("{} bytes that are no value of this key: {}", value.len(), readable(value, SHOWN_BYTES)));
    Found { broken, head, right: false, bytes: 0 }
}

/// Goes backwards through the points: what a key was given at the last one that wrote it, it must hold.
fn judge(asked: &Asked, writing: Option<Part>, points: &[Played], values: &Values, found: &mut [Found]) {
    // The version that a key holds by its own word. A value too short to say so may be anybody's.
    let claims: Vec<Option<u64>> =
        (0..).zip(found.iter()).map(|(record, found)| claim(values, record, found)).collect();
    let mut settled = vec![false; found.len()];
    // A key's last write by one client, counted from 1.
    let mut last = vec![0_u64; found.len()];
    let mut touched = Vec::new();
    for point in points.iter().rev().filter(|point| Some(point.part) == writing) {
        let part = point.part;
        let mut written = settled.clone();
        let asked_by = |index| point.asked_by(asked, part, index);
        for (index, from) in begin_at(point.at, asked_by, &claims, &settled) {
            let mut questions = asked.questions(part, point.at, index);
            questions.pass_to(from);
            for nth in from + 1..=asked_by(index) {
                let question = questions.draw();
                let record = question.record as usize;
                if !question.set {
                    continue;
                }
                if std::mem::replace(&mut last[record], nth) == 0 {
                    touched.push(record);
                }
            }
            for record in touched.drain(..) {
                let by_this = version(point.at.number, index, std::mem::take(&mut last[record]) - 1);
                if !settled[record] && claims[record].is_none_or(|claim| claim == by_this) {
                    found[record].right = found[record].is(values, record as u64, by_this) || found[record].right;
                }
                written[record] = true;
            }
        }
        settled = written;
    }
    for (record, found) in found.iter_mut().enumerate().filter(|(record, _)| !settled[*record]) {
        found.right = found.is(values, record as u64, version(0, 0, 0));
    }
}

fn claim(values: &Values, record: u64, found: &Found) -> Option<u64> {
    version_in(&found.head).filter(|_| values.bytes(record) >= HEAD_BYTES)
}

/// From which of its questions on each client's drawing at a point must be looked at again. Where every key that is not
/// settled claims to be of this point, the earliest claim of a client's is early enough: nothing before it can be the
/// last write of anything. Of a long point that is a small part.
fn begin_at(at: At, asked_by: impl Fn(u32) -> u64, claims: &[Option<u64>], settled: &[bool]) -> Vec<(u32, u64)> {
    let mut from: Vec<(u32, u64)> = (0..at.clients).map(|index| (index, asked_by(index))).collect();
    for (claim, _) in claims.iter().zip(settled).filter(|(_, settled)| !**settled) {
        let owner = claim.and_then(|claim| {
            let index = ((claim ^ version(at.number, 0, 0)) / SEQUENCE_MAX) as usize;
            let (_, from) = from.get_mut(index)?;
            *from = (*from).min(claim % SEQUENCE_MAX);
            Some(())
        });
        if owner.is_none() {
            from.iter_mut().for_each(|(_, from)| *from = 0);
            break;
        }
    }
    from
}

fn first_wrong(records: &[u64], found: &[Found]) -> Option<Wrong> {
    let (record, wrong) = records.iter().zip(found).find(|(_, found)| !found.right)?;
    let told = match &wrong.broken {
        Some(what) => what.clone(),
        None => format!("an older value, version {:x}", version_in(&wrong.head).unwrap_or(0)),
    };
    let key = readable(KeyText::default().of(*record), SHOWN_BYTES);
    Some(Wrong { key, expected: "some client's last write of it".to_string(), found: told })
}

#[cfg(test)]
mod tests;
