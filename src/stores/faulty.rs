//! `faulty`: a store that forgets, garbles, stalls or dies on purpose, to prove that we would notice. It is never
//! offered.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use super::{Adapter, Facts, Launch, Role, Session, Setting, Store};
use crate::words::op::{Fault, KeyList, Op, Pairs, Reply, ValueList};
use crate::words::trial::Transport;

pub static FAULTY: Adapter = Adapter {
    name: NAME,
    about: "misbehaves on purpose: proves that we notice",
    role: Role::Faulty,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[FAULT, AFTER, EVERY],
    keeps: |_| Ok("or so it says"),
    stays: |_| false,
    open,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

const NAME: &str = "faulty";

const FAULT: Setting = Setting {
    name: "fault",
    about: "none, or what goes wrong: drop, corrupt, stale, extra, stall, die, refuse, garble",
    default: "none",
    check: |text| wrong_of(text).map(|_| ()),
};
const AFTER: Setting =
    Setting { name: "after", about: "ops that go well before the first wrong one", default: "0", check: check_count };
const EVERY: Setting = Setting {
    name: "every",
    about: "of the writes (reads for stale, all ops for refuse) from then on, each such one goes wrong",
    default: "1",
    check: |text| match count_of(text)? {
        0 => Err("'every' counts from 1".to_string()),
        _ => Ok(()),
    },
};

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
    /// The store never answers again.
    Stall,
    /// The process is gone.
    Die,
    Refuse,
    Garble,
}

const WRONGS: &[(&str, Wrong)] = &[
    ("none", Wrong::Nothing),
    ("drop", Wrong::Drop),
    ("corrupt", Wrong::Corrupt),
    ("stale", Wrong::Stale),
    ("extra", Wrong::Extra),
    ("stall", Wrong::Stall),
    ("die", Wrong::Die),
    ("refuse", Wrong::Refuse),
    ("garble", Wrong::Garble),
];

fn wrong_of(text: &str) -> Result<Wrong, String> {
    let found = WRONGS.iter().find(|(name, _)| *name == text);
    found.map(|(_, wrong)| *wrong).ok_or_else(|| format!("'{text}' is no fault: {}", FAULT.about))
}

fn count_of(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no whole number"))
}

fn check_count(text: &str) -> Result<(), String> {
    count_of(text).map(|_| ())
}

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Faulty {
        wrong: wrong_of(launch.setting(&FAULT)).map_err(Fault::Unsupported)?,
        after: count_of(launch.setting(&AFTER)).map_err(Fault::Unsupported)?,
        every: count_of(launch.setting(&EVERY)).map_err(Fault::Unsupported)?.max(1),
        data: Mutex::new(Data::default()),
    }))
}

struct Faulty {
    wrong: Wrong,
    after: u64,
    every: u64,
    data: Mutex<Data>,
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
        if wrong == Some(Wrong::Drop) {
            return;
        }
        if wrong == Some(Wrong::Extra) {
            let extra = format!("faulty:{version}").into_bytes();
            data.records.insert(extra, Record::default());
        }
        let record = data.records.entry(key.to_vec()).or_default();
        record.before = std::mem::replace(&mut record.value, value.to_vec());
        record.version = version;
        if wrong == Some(Wrong::Corrupt)
            && let Some(last) = record.value.last_mut()
        {
            *last ^= 1;
        }
    }

    fn get<'d>(&self, data: &'d mut Data, key: &[u8]) -> Option<(&'d [u8], u64)> {
        if data.ops > self.after {
            data.reads += 1;
        }
        let stale = self.wrong == Wrong::Stale && data.reads > 0 && data.reads.is_multiple_of(self.every);
        let record = data.records.get(key)?;
        Some((if stale { &record.before } else { &record.value }, record.version))
    }

    /// A counter is kept as decimal text; nothing is 0.
    fn number(&self, data: &mut Data, key: &[u8]) -> Result<Option<i64>, Fault> {
        let Some((value, _)) = self.get(data, key) else { return Ok(None) };
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| Fault::Refused(format!("{NAME}: no number")))
    }
}

impl Store for Faulty {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client {
            store: self,
            value: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            rows: (KeyList::default(), KeyList::default()),
        }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let wrong = WRONGS.iter().find(|(_, wrong)| *wrong == self.wrong).map_or("", |(name, _)| name);
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            mouth: "none".to_string(),
            increment: "one op".to_string(),
            settings: [
                (FAULT.name.to_string(), wrong.to_string()),
                (AFTER.name.to_string(), self.after.to_string()),
                (EVERY.name.to_string(), self.every.to_string()),
            ]
            .into(),
            process_id: None,
            ..Facts::default()
        })
    }

    fn settle(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(self.data().records.len() as u64))
    }
}

struct Client<'s> {
    store: &'s Faulty,
    value: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    rows: (KeyList, KeyList),
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: Op<'_>) -> Result<Reply<'s>, Fault> {
        let store = self.store;
        let mut data = store.begin()?;
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
                for key in keys.iter() {
                    self.values.push(store.get(&mut data, key).map(|(value, _)| value));
                }
                Ok(Reply::Values(self.values.lend()))
            }
            Op::Number(key) => Ok(store.number(&mut data, key)?.map_or(Reply::Missing, Reply::Number)),
            Op::NumberMany(keys) => {
                self.numbers.clear();
                for key in keys.iter() {
                    self.numbers.push(store.number(&mut data, key)?);
                }
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::Scan { from, limit } => Ok(self.scan(&data, from, limit)),
            op => write(store, &mut data, op),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Client<'_> {
    fn read(&mut self, data: &mut Data, key: &[u8]) -> Option<u64> {
        let (value, version) = self.store.get(data, key)?;
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

fn write(store: &Faulty, data: &mut Data, op: Op<'_>) -> Result<Reply<'static>, Fault> {
    match op {
        Op::Set { key, value, ttl_s: None } => store.put(data, key, value),
        Op::SetMany(pairs) => pairs.iter().for_each(|(key, value)| store.put(data, key, value)),
        Op::SetIfAbsent { key, value } => {
            if data.records.contains_key(key) {
                return Ok(Reply::Conflict);
            }
            store.put(data, key, value);
        }
        Op::Cas { key, version, value } => {
            if data.records.get(key).map(|record| record.version) != Some(version) {
                return Ok(Reply::Conflict);
            }
            store.put(data, key, value);
        }
        Op::Delete(key) => {
            if data.records.remove(key).is_none() {
                return Ok(Reply::Missing);
            }
        }
        Op::Increment { key, by } => {
            let number = store.number(data, key)?.unwrap_or(0).wrapping_add(by);
            store.put(data, key, number.to_string().as_bytes());
            return Ok(Reply::Number(number));
        }
        op => return Err(Fault::unsupported(NAME, &op)),
    }
    Ok(Reply::Done)
}
