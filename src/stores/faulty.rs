//! `faulty`: a store that forgets, garbles, stalls or dies on purpose, to prove that we would notice. It is never
//! offered.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use self::durable::LIES;
use self::growing::{GROWTHS, Grows, burn};
use self::settings::{AFTER, EVERY, FAULT};
use super::{Adapter, Facts, Launch, Means, Role, Session, Store};
use crate::model::op::{Fault, KeyList, Op, Pairs, Reply, ValueList};
use crate::model::trial::Transport;

mod durable;
mod growing;
mod settings;

pub static FAULTY: Adapter = Adapter {
    name: NAME,
    about: "misbehaves on purpose: proves that we notice",
    role: Role::Faulty,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[FAULT, AFTER, EVERY],
    keeps: |_| Ok("or so it says"),
    stays: |_| false,
    lacks: |_| &[Means::Tally],
    open,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

const NAME: &str = "faulty";

/// Some microseconds.
const SLOW_STEPS: u64 = 4_000;
/// The kernel's timer slack adds about 50 us.
const WAIT: Duration = Duration::from_micros(20);

/// What goes wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// A write is acknowledged and forgotten.
    Drop,
    /// A bit of a value is another than was written.
    Corrupt,
    /// A read answers with the value before the last one.
    Stale,
    /// A write leaves a key that nobody asked for.
    Extra,
    /// A write makes it forget another record, in silence.
    Evict,
    /// A read answers the question before it, whoever asked that.
    Stray,
    /// Each op takes some thousand steps of arithmetic more: right, and slower.
    Slow,
    /// Each op waits so much longer, without CPU: right, and slower.
    Wait,
    /// The store never answers again.
    Stall,
    /// The process is gone.
    Die,
    Refuse,
    Garble,
    /// A value is cut after 1,024 bytes.
    Cut1024,
    /// Of a value's length three digits are read: of 1,000 bytes 100 are kept.
    Digits,
    /// Ends of lines are lost.
    CrLf,
    /// A shorter value leaves the end of the longer one before it.
    Tail,
    /// A value of more than 65,536 bytes is acknowledged and not kept.
    Swallow,
    /// A key ends at its first zero byte.
    Nul,
    /// The ninth of many is missing.
    Ninth,
    /// Counters have 32 bits.
    Wrap,
    /// Counters stop at 2^53, as floating ones do.
    Clamp,
    /// The op after `after` is answered when nobody waits any more.
    Late,
    /// A read answers what another client asked for.
    Crossed,
    /// Nothing expires.
    Lasting,
    /// A check-and-set does not look at the version.
    BothWin,
    /// A delete is acknowledged and not done.
    Undelete,
    Grows(Grows),
}

const WRONGS: &[(&str, Wrong)] = &[
    ("none", Wrong::Nothing),
    ("drop", Wrong::Drop),
    ("corrupt", Wrong::Corrupt),
    ("stale", Wrong::Stale),
    ("extra", Wrong::Extra),
    ("evict", Wrong::Evict),
    ("stray", Wrong::Stray),
    ("slow", Wrong::Slow),
    ("wait", Wrong::Wait),
    ("stall", Wrong::Stall),
    ("die", Wrong::Die),
    ("refuse", Wrong::Refuse),
    ("garble", Wrong::Garble),
    ("cut1024", Wrong::Cut1024),
    ("digits", Wrong::Digits),
    ("crlf", Wrong::CrLf),
    ("tail", Wrong::Tail),
    ("swallow", Wrong::Swallow),
    ("nul", Wrong::Nul),
    ("ninth", Wrong::Ninth),
    ("wrap", Wrong::Wrap),
    ("clamp", Wrong::Clamp),
    ("late", Wrong::Late),
    ("crossed", Wrong::Crossed),
    ("lasting", Wrong::Lasting),
    ("both-win", Wrong::BothWin),
    ("undelete", Wrong::Undelete),
];

/// Longer than anybody waits for an answer, and shorter than a connection may be silent.
const LATE: Duration = Duration::from_secs(7);

fn wrongs() -> impl Iterator<Item = (&'static str, Wrong)> {
    let grows = GROWTHS.iter().map(|(name, grows)| (*name, Wrong::Grows(*grows)));
    WRONGS.iter().copied().chain(grows)
}

fn wrong_of(text: &str) -> Result<Wrong, String> {
    let found = wrongs().find(|(name, _)| *name == text);
    found.map(|(_, wrong)| wrong).ok_or_else(|| format!("'{text}' is no fault: {}", FAULT.about))
}

fn count_of(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no whole number"))
}

fn check_count(text: &str) -> Result<(), String> {
    count_of(text).map(|_| ())
}

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    if let Some((_, lie)) = LIES.iter().find(|(name, _)| *name == launch.setting(&FAULT)) {
        return durable::open(launch, *lie);
    }
    Ok(Box::new(Faulty {
        wrong: wrong_of(launch.setting(&FAULT)).map_err(Fault::Unsupported)?,
        after: count_of(launch.setting(&AFTER)).map_err(Fault::Unsupported)?,
        every: count_of(launch.setting(&EVERY)).map_err(Fault::Unsupported)?.max(1),
        data: Arc::default(),
    }))
}

struct Faulty {
    wrong: Wrong,
    after: u64,
    every: u64,
    data: Arc<Mutex<Data>>,
}

/// Records in the order of their keys, and how often which kind of op was asked.
#[derive(Default)]
struct Data {
    records: BTreeMap<Vec<u8>, Record>,
    ops: u64,
    /// Writes and reads since the faults began.
    writes: u64,
    reads: u64,
    changes: u64,
    /// What was read last, and by which session.
    read: Vec<u8>,
    reader: u64,
    /// Sessions so far, and those that are open.
    sessions: u64,
    open: u64,
}

#[derive(Clone, Default)]
struct Record {
    value: Vec<u8>,
    before: Vec<u8>,
    version: u64,
}

impl Faulty {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().expect("no client panics with this lock")
    }

    /// Counts an op, and goes wrong where that means not to answer it.
    fn begin(&self) -> Result<MutexGuard<'_, Data>, Fault> {
        let mut data = self.data();
        data.ops += 1;
        if data.ops <= self.after {
            return Ok(data);
        }
        match self.wrong {
            Wrong::Stall => {
                drop(data);
                loop {
                    std::thread::park();
                }
            }
            Wrong::Die => std::process::abort(),
            Wrong::Late if data.ops == self.after + 1 => {
                std::thread::sleep(LATE);
                Ok(data)
            }
            Wrong::Slow => {
                burn(SLOW_STEPS);
                Ok(data)
            }
            Wrong::Wait => {
                drop(data);
                std::thread::sleep(WAIT);
                Ok(self.data())
            }
            Wrong::Refuse if !(data.ops - self.after).is_multiple_of(self.every) => Ok(data),
            Wrong::Refuse => Err(Fault::Refused(format!("{NAME}: refuses op {}", data.ops))),
            Wrong::Garble => Err(Fault::Garbled(format!("{NAME}: garbles op {}", data.ops))),
            _ => Ok(data),
        }
    }

    fn put(&self, data: &mut Data, key: &[u8], value: &[u8]) {
        data.changes += 1;
        let version = data.changes;
        let wrong = if data.ops > self.after {
            data.writes += 1;
            data.writes.is_multiple_of(self.every).then_some(self.wrong)
        } else {
            None
        };
        if wrong == Some(Wrong::Drop) || (wrong == Some(Wrong::Swallow) && value.len() > 65_536) {
            return;
        }
        if wrong == Some(Wrong::Evict)
            && let Some(other) = data.records.keys().find(|other| *other != key).cloned()
        {
            data.records.remove(&other);
        }
        if wrong == Some(Wrong::Extra) {
            let extra = format!("faulty:{version}").into_bytes();
            data.records.insert(extra, Record::default());
        }
        let record = data.records.entry(key.to_vec()).or_default();
        let kept = mangled(wrong, value, &record.value);
        record.before = std::mem::replace(&mut record.value, kept);
        record.version = version;
        if wrong == Some(Wrong::Corrupt)
            && let Some(last) = record.value.last_mut()
        {
            *last ^= 1;
        }
    }

    /// Takes a record away after so long, unless it was changed since.
    fn expire(&self, key: &[u8], version: u64, ttl_s: u32) {
        let (data, key) = (self.data.clone(), key.to_vec());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(u64::from(ttl_s)));
            let mut data = data.lock().expect("no client panics with this lock");
            if data.records.get(&key).is_some_and(|record| record.version == version) {
                data.records.remove(&key);
            }
        });
    }

    fn get<'d>(&self, data: &'d mut Data, reader: u64, key: &[u8]) -> Option<(&'d [u8], u64)> {
        if data.ops > self.after {
            data.reads += 1;
        }
        let stale = self.wrong == Wrong::Stale && data.reads > 0 && data.reads.is_multiple_of(self.every);
        let strays = self.wrong == Wrong::Stray && data.reads > 0 && data.reads.is_multiple_of(self.every);
        let asked = std::mem::replace(&mut data.read, key.to_vec());
        let others = data.reader != 0 && data.reader != reader;
        let crossed = self.wrong == Wrong::Crossed && data.ops > self.after && others;
        data.reader = reader;
        let record = data.records.get(if strays || crossed { asked.as_slice() } else { key })?;
        Some((if stale { &record.before } else { &record.value }, record.version))
    }

    /// A counter is kept as decimal text; nothing is 0.
    fn number(&self, data: &mut Data, reader: u64, key: &[u8]) -> Result<Option<i64>, Fault> {
        let Some((value, _)) = self.get(data, reader, key) else { return Ok(None) };
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| Fault::Refused(format!("{NAME}: no number")))
    }
}

impl Store for Faulty {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let mut data = self.data();
        data.sessions += 1;
        data.open += 1;
        Ok(Box::new(Client {
            store: self,
            number: data.sessions,
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let wrong = wrongs().find(|(_, wrong)| *wrong == self.wrong).map_or("", |(name, _)| name);
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            client_library: "none".to_string(),
            increment: "one op".to_string(),
            settings: [
                (FAULT.name.to_string(), wrong.to_string()),
                (AFTER.name.to_string(), self.after.to_string()),
                (EVERY.name.to_string(), self.every.to_string()),
            ]
            .into(),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(self.data().records.len() as u64))
    }
}

struct Client<'s> {
    store: &'s Faulty,
    /// Which session it is.
    number: u64,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.store.data().open -= 1;
    }
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let (store, number) = (self.store, self.number);
        let mut data = store.begin()?;
        if let Wrong::Grows(grows) = store.wrong {
            grows.waste(op, data.records.len(), data.open);
        }
        let nul;
        let op = match *op {
            Op::Get(key) | Op::Set { key, .. } if store.wrong == Wrong::Nul && key.contains(&0) => {
                nul = key.split(|byte| *byte == 0).next().unwrap_or_default();
                match *op {
                    Op::Set { value, ttl_s, .. } => Op::Set { key: nul, value, ttl_s },
                    _ => Op::Get(nul),
                }
            }
            op => op,
        };
        match op {
            Op::Get(key) => Ok(match self.read(&mut data, key) {
                Some(_) => Reply::Value(&self.value),
                None => Reply::Missing,
            }),
            Op::GetVersion(key) => Ok(match self.read(&mut data, key) {
                Some(version) => Reply::Versioned(&self.value, version),
                None => Reply::Missing,
            }),
            Op::GetMany(keys) => {
                self.values.clear();
                for (place, key) in (1..).zip(keys.iter()) {
                    let found = store.get(&mut data, number, key).filter(|_| store.wrong != Wrong::Ninth || place != 9);
                    self.values.push(found.map(|(value, _)| value));
                }
                Ok(Reply::Values(self.values.lend()))
            }
            Op::Number(key) => Ok(store.number(&mut data, number, key)?.map_or(Reply::Missing, Reply::Number)),
            Op::NumberMany(keys) => {
                self.numbers.clear();
                for key in keys.iter() {
                    self.numbers.push(store.number(&mut data, number, key)?);
                }
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::Scan { from, limit } => Ok(self.scan(&data, from, limit)),
            op => write(store, &mut data, number, op),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Client<'_> {
    fn read(&mut self, data: &mut Data, key: &[u8]) -> Option<u64> {
        let (value, version) = self.store.get(data, self.number, key)?;
        self.value.clear();
        self.value.extend_from_slice(value);
        Some(version)
    }

    fn scan(&mut self, data: &Data, from: &[u8], limit: u32) -> Reply<'_> {
        let (keys, values) = &mut self.rows;
        keys.clear();
        values.clear();
        let range = (Bound::Included(from), Bound::Unbounded);
        for (key, record) in data.records.range::<[u8], _>(range).take(limit as usize) {
            keys.push(key);
            values.push(&record.value);
        }
        Reply::Rows(Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() })
    }
}

fn write(store: &Faulty, data: &mut Data, writer: u64, op: Op<'_>) -> Result<Reply<'static>, Fault> {
    let goes_wrong = |wrong| store.wrong == wrong && data.ops > store.after;
    match op {
        Op::Set { key, value, ttl_s } => {
            let lasts = goes_wrong(Wrong::Lasting);
            store.put(data, key, value);
            if let Some(ttl_s) = ttl_s.filter(|_| !lasts) {
                store.expire(key, data.changes, ttl_s);
            }
        }
        Op::SetMany(pairs) => pairs.iter().for_each(|(key, value)| store.put(data, key, value)),
        Op::SetIfAbsent { key, value } => {
            if data.records.contains_key(key) {
                return Ok(Reply::Conflict);
            }
            store.put(data, key, value);
        }
        Op::Cas { key, version, value } => {
            let found = data.records.get(key).map(|record| record.version);
            if found != Some(version) && !(found.is_some() && goes_wrong(Wrong::BothWin)) {
                return Ok(Reply::Conflict);
            }
            store.put(data, key, value);
        }
        Op::Delete(key) => {
            let done = if goes_wrong(Wrong::Undelete) {
                data.records.contains_key(key)
            } else {
                data.records.remove(key).is_some()
            };
            return Ok(if done { Reply::Done } else { Reply::Missing });
        }
        Op::Increment { key, by } => return add(store, data, writer, key, by).map(Reply::Number),
        Op::Add { key, by } => drop(add(store, data, writer, key, by)?),
        Op::AddMany(sums) => sums.iter().try_for_each(|(key, by)| add(store, data, writer, key, by).map(drop))?,
        op => return Err(Fault::unsupported(NAME, &op)),
    }
    Ok(Reply::Done)
}

fn add(store: &Faulty, data: &mut Data, writer: u64, key: &[u8], by: i64) -> Result<i64, Fault> {
    let number = store.number(data, writer, key)?.unwrap_or(0).checked_add(by);
    let number = number.ok_or_else(|| Fault::Refused(format!("{NAME}: no counter goes past 64 bits")))?;
    let number = match store.wrong {
        Wrong::Wrap => i64::from(number as i32),
        Wrong::Clamp => number.min(1 << 53),
        _ => number,
    };
    store.put(data, key, number.to_string().as_bytes());
    Ok(number)
}

/// What is kept of a value, where there was another one before.
fn mangled(wrong: Option<Wrong>, value: &[u8], before: &[u8]) -> Vec<u8> {
    match wrong {
        Some(Wrong::Cut1024) => value[..value.len().min(1_024)].to_vec(),
        Some(Wrong::Digits) => {
            let digits = value.len().to_string();
            let length = digits[..digits.len().min(3)].parse().unwrap_or(value.len());
            value[..length].to_vec()
        }
        Some(Wrong::CrLf) => value.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect(),
        Some(Wrong::Tail) => [value, before.get(value.len()..).unwrap_or_default()].concat(),
        _ => value.to_vec(),
    }
}
