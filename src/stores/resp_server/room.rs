//! What a server of RESP says of its memory: by INFO, or by CONFIG GET where INFO is denied.

use std::collections::BTreeMap;

use super::{ask, info, strange};
use crate::model::op::Fault;
use crate::protocol::resp::Value;
use crate::stores::blocking::BlockingConnection;
use crate::stores::room::{Limit, ServerMemory};

/// What the probes of a check take at most: values of 2 MiB, in buffers that grow by doubling. Measured on Redis and
/// Valkey: 4 to 8 MB.
const CHECK_BYTES: u64 = 16 << 20;
/// The one policy that drops nothing. All others do, `volatile-*` those keys that have a time to live, and
/// `eviction` in Dragonfly's cache mode.
/// <https://redis.io/docs/latest/develop/reference/eviction/>
const NO_EVICTION: &str = "noeviction";

pub fn room(connection: &mut BlockingConnection) -> Result<ServerMemory, Fault> {
    let (told, denied) = match info(connection, &[b"INFO"]) {
        Ok(told) => (told, String::new()),
        Err(Fault::Refused(why)) => (BTreeMap::new(), why),
        Err(fault) => return Err(fault),
    };
    let number = |name: &str| told.get(name).and_then(|text| text.parse::<u64>().ok());
    let limit = match number("maxmemory") {
        Some(limit) => Ok(limit),
        None => {
            setting(connection, "maxmemory")?.and_then(|text| text.parse().map_err(|_| format!("maxmemory {text}")))
        }
    };
    let policy = match told.get("maxmemory_policy") {
        Some(policy) => Some(policy.clone()),
        None => setting(connection, "maxmemory-policy")?.ok(),
    };
    Ok(ServerMemory {
        limit: match limit {
            Ok(0) => Limit::Host,
            Ok(limit) => Limit::Bytes(limit),
            Err(why) if denied.is_empty() => Limit::Unknown(why),
            Err(why) => Limit::Unknown(format!("{denied}; {why}")),
        },
        used_bytes: number("used_memory"),
        evicts: policy.as_deref() != Some(NO_EVICTION),
        policy,
        records: (!told.is_empty()).then(|| records(&told)),
        evicted: number("evicted_keys"),
        stays_taken: false,
        check_bytes: CHECK_BYTES,
    })
}

/// Of all databases: `db0:keys=5001,expires=0,avg_ttl=0`.
fn records(told: &BTreeMap<String, String>) -> u64 {
    let is_database = |name: &str| name.strip_prefix("db").is_some_and(|number| number.parse::<u32>().is_ok());
    let keys = |text: &str| text.strip_prefix("keys=")?.split(',').next()?.parse::<u64>().ok();
    told.iter().filter(|(name, _)| is_database(name)).filter_map(|(_, text)| keys(text)).fold(0, u64::saturating_add)
}

/// A setting, or why it is not told.
fn setting(connection: &mut BlockingConnection, name: &str) -> Result<Result<String, String>, Fault> {
    match ask(connection, &[b"CONFIG", b"GET", name.as_bytes()])? {
        Value::List(pair) => Ok(match pair.as_slice() {
            [Value::Text(_), Value::Text(setting)] => Ok(String::from_utf8_lossy(setting).into_owned()),
            _ => Err(format!("it knows no {name}")),
        }),
        Value::Error(words) => Ok(Err(format!("CONFIG GET: {words}"))),
        other => Err(strange(connection, "CONFIG GET", &other)),
    }
}

/// Keys that it has dropped to make room since it was started; nothing where it does not tell.
pub fn evicted(connection: &mut BlockingConnection) -> Result<Option<u64>, Fault> {
    match info(connection, &[b"INFO", b"stats"]) {
        Ok(told) => Ok(told.get("evicted_keys").and_then(|count| count.parse().ok())),
        Err(Fault::Refused(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_all_databases_are_counted() {
        let told = super::super::named_lines(
            "db0:keys=5001,expires=3,avg_ttl=9\r\ndb5:keys=2\r\ndbx:keys=7\r\nrole:master\r\n",
        );
        assert_eq!(records(&told), 5_003);
        assert_eq!(records(&BTreeMap::new()), 0);
    }
}
