//! Keys that a server holds, drawn by SCAN to be read, without a trace.

use crate::model::op::{Fault, KeyList, readable};
use crate::model::record::EVICTS;
use crate::protocol::resp::{Value, command, values};
use crate::stores::blocking::BlockingConnection;

/// So many keys are asked for at once. A server that does nothing else meanwhile does it in less than a millisecond.
const AT_ONCE: &[u8] = b"500";
/// Bytes of all keys: memory is not the server's to fill.
const KEYS_BYTES: usize = 256 << 20;

/// At most so many keys that hold strings. Neither SCAN nor its TYPE, which Redis has from version 6 on, counts as a
/// use of a key.
/// <https://redis.io/docs/latest/commands/scan/>
pub fn strings(connection: &mut BlockingConnection, most: usize) -> Result<KeyList, Fault> {
    let (mut keys, mut bytes, mut cursor) = (KeyList::default(), 0, b"0".to_vec());
    loop {
        let mut request = Vec::new();
        command(&[b"SCAN", &cursor, b"COUNT", AT_ONCE, b"TYPE", b"string"], &mut request);
        let (next, found) = match connection.exchange(&request, values())? {
            Value::Error(words) => {
                return Err(Fault::Unsupported(format!("{}: SCAN with TYPE: {words}", connection.name())));
            }
            Value::List(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([Value::Text(next), Value::List(found)]) => (next, found),
                other => return Err(strange(connection, &format!("{other:?}"))),
            },
            other => return Err(strange(connection, &format!("{other:?}"))),
        };
        for key in found {
            let Value::Text(key) = key else { return Err(strange(connection, &format!("{key:?}"))) };
            if keys.lend().len() >= most || bytes + key.len() > KEYS_BYTES {
                return Ok(keys);
            }
            bytes += key.len();
            keys.push(&key);
        }
        if next == b"0" {
            return Ok(keys);
        }
        cursor = next;
    }
}

/// Whether the server knows how to read without counting that as a use of a key: Redis does from version 7.2 on. It is
/// asked once, since each refusal counts among the errors that its owner watches.
pub fn knows_no_touch(connection: &mut BlockingConnection) -> Result<bool, Fault> {
    let mut request = Vec::new();
    command(&[b"COMMAND", b"INFO", b"client|no-touch"], &mut request);
    match connection.exchange(&request, values())? {
        Value::List(known) => Ok(known.iter().any(|command| *command != Value::Missing)),
        // A user who may not ask may still use it.
        _ => no_touch(connection),
    }
}

/// What reads do to the times of last use, by which some policies choose what to evict.
/// <https://redis.io/docs/latest/develop/reference/eviction/>
pub fn last_use(knows_no_touch: bool, policy: Option<&String>) -> String {
    // Dragonfly's one policy that drops keys is called `eviction`; a get moves its key behind others.
    let by_use = |policy: &&String| policy.ends_with("lru") || policy.ends_with("lfu") || *policy == "eviction";
    match (knows_no_touch, policy.filter(by_use)) {
        (true, _) => "kept by CLIENT NO-TOUCH".to_string(),
        (false, None) => "renewed by each get".to_string(),
        (false, Some(policy)) => format!("renewed by each get, and maxmemory-policy {policy} {EVICTS}"),
    }
}

/// Has what is asked on this connection not count as a use of a key, from now on. Whether the server does so.
/// <https://redis.io/docs/latest/commands/client-no-touch/>
pub fn no_touch(connection: &mut BlockingConnection) -> Result<bool, Fault> {
    let mut request = Vec::new();
    command(&[b"CLIENT", b"NO-TOUCH", b"ON"], &mut request);
    Ok(matches!(connection.exchange(&request, values())?, Value::Text(_)))
}

fn strange(connection: &BlockingConnection, answer: &str) -> Fault {
    Fault::Garbled(format!("{}: SCAN answered {}", connection.name(), readable(answer.as_bytes(), 120)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_policies_by_use_evict_by_times_of_last_use() {
        for (policy, is_by_use) in [
            ("allkeys-lru", true),
            ("volatile-lfu", true),
            ("eviction", true),
            ("noeviction", false),
            ("allkeys-random", false),
        ] {
            let said = last_use(false, Some(&policy.to_string()));
            assert_eq!(said.ends_with(EVICTS), is_by_use, "{policy}: {said}");
        }
        assert!(!last_use(true, Some(&"allkeys-lru".to_string())).ends_with(EVICTS), "no get counts as a use");
    }
}
