//! Setting, deleting, and setting under conditions.

use std::thread;
use std::time::Duration;

use super::super::messages;
use super::super::talk::{ProbeSession, Probed, Stop, failed, wrong};
use super::values::noise;
use crate::model::op::{Op, Reply};

pub fn overwrite(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("k")?;
    for length in [10, 5_000, 3, 200_000, 100, 101, 99, 0, 1, 4_096, 4_095] {
        talk.set(&key, noise(length))?;
        talk.holds(&key, noise(length))?;
        talk.flush()?;
        talk.holds(&key, noise(length))?;
    }
    Ok(())
}

pub fn delete(talk: &mut ProbeSession<'_>) -> Probed {
    let (key, other) = (talk.key("k")?, talk.key("other")?);
    talk.expect(Op::Delete(&key), Reply::Missing)?;
    talk.given(&other, b"stays")?;
    for value in [&b"v"[..], noise(3_000)] {
        talk.given(&key, value)?;
        talk.flush()?;
        talk.expect(Op::Delete(&key), Reply::Done)?;
        talk.expect(Op::Get(&key), Reply::Missing)?;
        talk.flush()?;
        talk.expect(Op::Get(&key), Reply::Missing)?;
        talk.expect(Op::Delete(&key), Reply::Missing)?;
    }
    talk.set(&key, b"again")?;
    talk.holds(&key, b"again")?;
    talk.holds(&other, b"stays")
}

pub fn set_if_absent(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("k")?;
    talk.expect(Op::SetIfAbsent { key: &key, value: b"first" }, Reply::Done)?;
    talk.expect(Op::SetIfAbsent { key: &key, value: b"second" }, Reply::Conflict)?;
    talk.flush()?;
    talk.holds(&key, b"first")?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::SetIfAbsent { key: &key, value: b"third" }, Reply::Done)?;
    talk.holds(&key, b"third")
}

pub fn check_and_set(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("k")?;
    talk.expect(Op::GetVersion(&key), Reply::Missing)?;
    talk.given(&key, b"one")?;
    let first = talk.version(&key, b"one")?;
    talk.expect(Op::Cas { key: &key, version: first, value: b"two" }, Reply::Done)?;
    talk.flush()?;
    talk.expect(Op::Cas { key: &key, version: first, value: b"three" }, Reply::Conflict)?;
    let second = talk.version(&key, b"two")?;
    talk.given(&key, b"someone else's")?;
    talk.expect(Op::Cas { key: &key, version: second, value: b"four" }, Reply::Conflict)?;
    talk.holds(&key, b"someone else's")?;
    let third = talk.version(&key, b"someone else's")?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Cas { key: &key, version: third, value: b"five" }, Reply::Conflict)?;
    talk.expect(Op::Get(&key), Reply::Missing)
}

/// Servers count in whole seconds from a clock of their own, so that one of them may end in the middle of the second
/// after it.
const ONE_SECOND: Duration = Duration::from_millis(2_200);

pub fn time_to_live(talk: &mut ProbeSession<'_>) -> Probed {
    let (short, long, lasting) = (talk.key("short")?, talk.key("long")?, talk.key("lasting")?);
    let set = |talk: &mut ProbeSession<'_>, key: &[u8], ttl_s| {
        talk.expect(Op::Set { key, value: b"v", ttl_s: Some(ttl_s) }, Reply::Done)
    };
    set(talk, &long, 100)?;
    set(talk, &lasting, 1)?;
    // A set without a time to live takes the old one away.
    talk.set(&lasting, b"for ever")?;
    set(talk, &short, 1)?;
    talk.holds(&short, b"v")?;
    talk.flush()?;
    thread::sleep(ONE_SECOND);
    let late = |stop| match stop {
        Stop::Wrong(late) => wrong(format!("set to live for 1 s; 2.2 s later get {}", said_key(&short)), late.came),
        other => other,
    };
    talk.expect(Op::Get(&short), Reply::Missing).map_err(late)?;
    talk.holds(&long, b"v")?;
    talk.holds(&lasting, b"for ever")
}

fn said_key(key: &[u8]) -> String {
    messages::key(key)
}

/// New keys count once, and nothing else does. A store by URL may change while we look.
pub fn count(talk: &mut ProbeSession<'_>) -> Probed {
    if talk.ground.guest {
        return Err(Stop::NotOffered("the count of records: others may change it".to_string()));
    }
    let counted = |talk: &ProbeSession<'_>| {
        let store = talk.ground.store;
        // A cache hands on what it holds.
        let count = store.final_flush().and_then(|()| store.count());
        count.map_err(|fault| failed("flush; count".to_string(), &fault))
    };
    talk.flush()?;
    // A store that is one session's own at a time cannot say.
    let Some(before) = counted(talk)? else {
        return Err(Stop::NotOffered("it cannot say how many records it holds".to_string()));
    };
    for _ in 0..2 {
        for name in 0..10_u8 {
            let key = talk.key([b'a' + name])?;
            talk.given(&key, b"v")?;
        }
    }
    talk.flush()?;
    match counted(talk)? {
        Some(after) if after == before + 10 => Ok(()),
        other => {
            let came = format!("{} records, not {}", other.map_or("no".to_string(), |it| it.to_string()), before + 10);
            Err(wrong(format!("10 new keys to {before}; count"), came))
        }
    }
}
