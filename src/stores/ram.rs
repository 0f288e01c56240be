//! `ram`: a hash map in this process. Its row shows what the job costs with no store around it.
//!
//! It must be hard to beat, or it would be no measure: one hash an op, one look at distant memory where a key is there
//! already (`records::table`), no allocation, and with a single client no lock and no copy. It knows no disk, no order
//! and no clock.

pub mod dict;
mod records;

use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, TryLockError};

use records::{Cell, FieldName, Map, decimal, hash, not, sum};

use super::{Adapter, Facts, Launch, Means, Role, Session, Store};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, ValueList};
use crate::model::trial::{Durability, Transport};

pub static RAM: Adapter = Adapter {
    name: "ram",
    about: "a hash map in this process: what the job costs with no store around it",
    role: Role::Baseline,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("memory only"),
        _ => Err("ram is gone with its process"),
    },
    stays: |_| false,
    lacks: |_| &[Means::Scan],
    open,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

/// Shards for each client that may ask at once, so that two seldom want the same one.
const SHARDS_PER_CLIENT: usize = 8;
const SHARDS_MAX: usize = 4096;

fn open(launch: &Launch) -> Result<Box<dyn Store>, Fault> {
    let shards = match launch.clients {
        0 | 1 => 1,
        clients => (clients as usize * SHARDS_PER_CLIENT).next_power_of_two().min(SHARDS_MAX),
    };
    Ok(Box::new(Ram { shards: (0..shards).map(|_| Shard::default()).collect() }))
}

/// One shard serves one client, who keeps it locked as long as the session lives; many shards serve many.
struct Ram {
    shards: Box<[Shard]>,
}

/// On cache lines of its own (two, because they are fetched in pairs), so that clients do not slow each other's locks.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Map>);

impl Shard {
    fn lock(&self) -> Result<MutexGuard<'_, Map>, Fault> {
        self.0.lock().map_err(|_| broken())
    }
}

fn broken() -> Fault {
    Fault::Refused("ram: a client panicked in the middle of a change".to_string())
}

impl Store for Ram {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        if self.shards.len() > 1 {
            return Ok(Box::new(Client::new(Many { shards: &self.shards })));
        }
        match self.shards[0].0.try_lock() {
            Ok(map) => Ok(Box::new(Client::new(One { map }))),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
            Err(TryLockError::WouldBlock) => {
                Err(Fault::Refused("ram was opened for one client, and its session is still open".to_string()))
            }
        }
    }

    fn facts(&self) -> Result<Facts, Fault> {
        let sharing = match self.shards.len() {
            1 => "one client, no locks".to_string(),
            shards => format!("{shards} shards, each with a lock"),
        };
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            client_library: "none".to_string(),
            increment: "one op".to_string(),
            settings: [("sharing".to_string(), sharing)].into(),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        let mut records = 0;
        for shard in &self.shards {
            match shard.0.try_lock() {
                Ok(map) => records += map.len() as u64,
                Err(TryLockError::Poisoned(_)) => return Err(broken()),
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
        }
        Ok(Some(records))
    }
}

/// How a session comes to the part of the data that has a key of that hash.
trait Reach {
    type Held<'a>: DerefMut<Target = Map>
    where
        Self: 'a;

    fn map(&mut self, hash: u64) -> Result<Self::Held<'_>, Fault>;

    /// Has a key's place fetched from memory, where that asks no lock.
    fn expect(&self, _key: &[u8]) {}

    /// The value and version of a key; what must be written to be lent goes to `text`.
    fn read<'s>(&'s mut self, key: &[u8], text: &'s mut Vec<u8>) -> Result<Option<(&'s [u8], u64)>, Fault>;
}

/// The only session there is holds the only lock for as long as it lives, so that asking costs none and values are lent
/// from where they lie.
struct One<'r> {
    map: MutexGuard<'r, Map>,
}

impl Reach for One<'_> {
    type Held<'a>
        = &'a mut Map
    where
        Self: 'a;

    #[inline]
    fn map(&mut self, _: u64) -> Result<&mut Map, Fault> {
        Ok(&mut self.map)
    }

    #[inline]
    fn expect(&self, key: &[u8]) {
        self.map.fetch(hash(key));
    }

    #[inline]
    fn read<'s>(&'s mut self, key: &[u8], text: &'s mut Vec<u8>) -> Result<Option<(&'s [u8], u64)>, Fault> {
        let Some((cell, version)) = self.map.find(hash(key), key) else { return Ok(None) };
        let value = cell.text(key, text)?;
        records::fetch(value);
        Ok(Some((value, version)))
    }
}

/// Sessions of several threads lock a shard for one op, and copy what they were told.
struct Many<'r> {
    shards: &'r [Shard],
}

impl Reach for Many<'_> {
    type Held<'a>
        = MutexGuard<'a, Map>
    where
        Self: 'a;

    #[inline]
    fn map(&mut self, hash: u64) -> Result<MutexGuard<'_, Map>, Fault> {
        // The table takes a record's home from the low bits: the shard takes others.
        let shard = (hash >> 32) as usize & (self.shards.len() - 1);
        self.shards[shard].lock()
    }

    fn read<'s>(&'s mut self, key: &[u8], text: &'s mut Vec<u8>) -> Result<Option<(&'s [u8], u64)>, Fault> {
        let hash = hash(key);
        let map = self.map(hash)?;
        let Some((cell, version)) = map.find(hash, key) else { return Ok(None) };
        match cell {
            Cell::Bytes(bytes) => {
                text.clear();
                text.extend_from_slice(bytes);
            }
            other => {
                other.text(key, text)?;
            }
        }
        Ok(Some((text, version)))
    }
}

/// One client's session.
struct Client<R> {
    reach: R,
    /// A counter in decimal, or (with many clients) the copy of a value.
    text: Vec<u8>,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    hashes: Vec<u64>,
    fields: KeyList,
    counts: KeyList,
}

impl<R> Client<R> {
    fn new(reach: R) -> Client<R> {
        Client {
            reach,
            text: Vec::new(),
            values: ValueList::default(),
            numbers: Vec::new(),
            hashes: Vec::new(),
            fields: KeyList::default(),
            counts: KeyList::default(),
        }
    }
}

impl<R: Reach> Session for Client<R> {
    #[inline]
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::Increment { key, by } => {
                let hash = hash(key);
                self.reach.map(hash)?.add(hash, key, by).map(Reply::Number)
            }
            Op::Add { key, by } => {
                let hash = hash(key);
                self.reach.map(hash)?.add(hash, key, by).map(|_| Reply::Done)
            }
            Op::Get(key) => {
                let found = self.reach.read(key, &mut self.text)?;
                Ok(found.map_or(Reply::Missing, |(value, _)| Reply::Value(value)))
            }
            Op::Set { key, value, ttl_s: None } => {
                let hash = hash(key);
                self.reach.map(hash)?.set(hash, key, value);
                Ok(Reply::Done)
            }
            Op::Number(key) => {
                let hash = hash(key);
                let number = self.reach.map(hash)?.number(hash, key)?;
                Ok(number.map_or(Reply::Missing, Reply::Number))
            }
            Op::Set { ttl_s: Some(_), .. } | Op::Scan { .. } => Err(Fault::unsupported("ram", op)),
            _ => self.ask_seldom(op),
        }
    }

    #[inline]
    fn expect(&self, key: &[u8]) {
        self.reach.expect(key);
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl<R: Reach> Client<R> {
    fn ask_seldom<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::GetVersion(key) => {
                let found = self.reach.read(key, &mut self.text)?;
                Ok(found.map_or(Reply::Missing, |(value, version)| Reply::Versioned(value, version)))
            }
            Op::Cas { key, version, value } => {
                let hash = hash(key);
                Ok(done(self.reach.map(hash)?.replace(hash, key, version, value)))
            }
            Op::SetIfAbsent { key, value } => {
                let hash = hash(key);
                Ok(done(self.reach.map(hash)?.put_new(hash, key, value)))
            }
            Op::Delete(key) => {
                let hash = hash(key);
                Ok(if self.reach.map(hash)?.remove(hash, key) { Reply::Done } else { Reply::Missing })
            }
            Op::SetMany(pairs) => {
                for (key, value) in pairs.iter() {
                    let hash = hash(key);
                    self.reach.map(hash)?.set(hash, key, value);
                }
                Ok(Reply::Done)
            }
            Op::AddMany(sums) => {
                for (key, by) in sums.iter() {
                    let hash = hash(key);
                    self.reach.map(hash)?.add(hash, key, by)?;
                }
                Ok(Reply::Done)
            }
            Op::GetMany(keys) => self.get_many(keys),
            Op::NumberMany(keys) => self.number_many(keys),
            Op::Tally { records, fields, by } => self.tally(records, fields, by),
            Op::ReadTally(key) => self.read_tally(key),
            op => Err(Fault::unsupported("ram", &op)),
        }
    }

    fn get_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.values.clear();
        for key in keys.iter() {
            let found = self.reach.read(key, &mut self.text)?;
            self.values.push(found.map(|(value, _)| value));
        }
        Ok(Reply::Values(self.values.lend()))
    }

    fn number_many(&mut self, keys: Keys<'_>) -> Result<Reply<'_>, Fault> {
        self.numbers.clear();
        for key in keys.iter() {
            let hash = hash(key);
            let number = self.reach.map(hash)?.number(hash, key)?;
            self.numbers.push(number);
        }
        Ok(Reply::Numbers(&self.numbers))
    }

    /// Every field is hashed once, however many records it is counted in.
    fn tally(&mut self, records: Keys<'_>, fields: Keys<'_>, by: i64) -> Result<Reply<'_>, Fault> {
        self.hashes.clear();
        self.hashes.extend(fields.iter().map(hash));
        for key in records.iter() {
            let hash = hash(key);
            let mut map = self.reach.map(hash)?;
            let counts = map.counts(hash, key)?;
            for (field, &hash) in fields.iter().zip(&self.hashes) {
                let count = counts
                    .entry(hash, |(name, _)| name.is(field), |(name, _)| name.hash())
                    .or_insert_with(|| (FieldName::new(field), 0))
                    .into_mut();
                count.1 = sum(key, count.1, by)?;
            }
        }
        Ok(Reply::Done)
    }

    fn read_tally(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        let hash = hash(key);
        let map = self.reach.map(hash)?;
        let Some((cell, _)) = map.find(hash, key) else { return Ok(Reply::Missing) };
        let Cell::Counts(counts) = cell else { return Err(not(key, "tally")) };
        self.fields.clear();
        self.counts.clear();
        for (field, count) in counts.iter() {
            self.fields.push(field.bytes());
            self.counts.push(decimal(*count, &mut self.text));
        }
        Ok(Reply::Rows(Pairs { keys: self.fields.lend(), values: self.counts.lend() }))
    }
}

fn done(changed: bool) -> Reply<'static> {
    if changed { Reply::Done } else { Reply::Conflict }
}
