//! `btree`: the standard library's ordered map behind one lock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::{Adapter, Facts, Launch, Means, Role, Session, Store};
use crate::model::op::{Fault, Op, Reply, readable};
use crate::model::trial::{Durability, Transport};

pub static BTREE: Adapter = Adapter {
    name: "btree",
    about: "the standard library's ordered map in this process",
    role: Role::Baseline,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: |level| match level {
        Durability::None => Ok("memory only"),
        _ => Err("btree is gone with its process"),
    },
    stays: |_| false,
    // The contract test compares this with what `ask` refuses.
    lacks: |_| &[Means::Scan, Means::Versions, Means::Tally],
    open,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

fn open(_: &Launch) -> Result<Box<dyn Store>, Fault> {
    Ok(Box::new(Btree::default()))
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Btree(Mutex<Map>);

impl Store for Btree {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        Ok(Box::new(Client { map: &self.0, value: Vec::new() }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").to_string(),
            client_library: "none".to_string(),
            increment: "one op".to_string(),
            settings: [("sharing".to_string(), "one lock".to_string())].into(),
            ..Facts::default()
        })
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(Some(locked(&self.0)?.len() as u64))
    }
}

/// One client's session.
struct Client<'a> {
    map: &'a Mutex<Map>,
    /// A copy of the last value: the reply outlives the lock.
    value: Vec<u8>,
}

impl Session for Client<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let mut map = locked(self.map)?;
        match *op {
            Op::Get(key) => match map.get(key) {
                Some(value) => {
                    self.value.clone_from(value);
                    Ok(Reply::Value(&self.value))
                }
                None => Ok(Reply::Missing),
            },
            Op::Set { key, value, ttl_s: None } => {
                map.insert(key.to_vec(), value.to_vec());
                Ok(Reply::Done)
            }
            Op::Delete(key) => Ok(map.remove(key).map_or(Reply::Missing, |_| Reply::Done)),
            Op::Increment { key, by } => {
                let sum = number(&map, key)?.unwrap_or(0).checked_add(by);
                let sum = sum.ok_or_else(|| Fault::refused("btree: the counter would leave 64 bits"))?;
                map.insert(key.to_vec(), sum.to_string().into_bytes());
                Ok(Reply::Number(sum))
            }
            Op::Number(key) => Ok(number(&map, key)?.map_or(Reply::Missing, Reply::Number)),
            // Any other op is refused by name and never imitated.
            _ => Err(Fault::unsupported("btree", op)),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

fn locked(map: &Mutex<Map>) -> Result<MutexGuard<'_, Map>, Fault> {
    map.lock().map_err(|_| Fault::refused("btree: a client panicked"))
}

/// The counter of a key, which is kept as decimal text.
fn number(map: &Map, key: &[u8]) -> Result<Option<i64>, Fault> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let number = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Fault::refused(format!("btree: '{}' is no counter", readable(key, 80))))
}
