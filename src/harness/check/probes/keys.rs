//! Keys of awkward lengths and bytes. In a store by URL all of them are below our own name.

use super::super::talk::{ProbeSession, Probed, Stop};
use crate::model::op::{Fault, Op, Reply, readable};
use crate::model::units::thousands;

/// The longest key that is tried: 128 KiB, twice what the largest limit here allows.
const LONGEST: usize = 128 << 10;

/// The longest key that is taken, to the byte. A longer one must be refused, and two that differ in their last byte are
/// two.
pub fn longest(talk: &mut ProbeSession<'_>) -> Probed {
    let shortest = talk.key("")?.len() + 1;
    let (mut taken, mut refused) = (0, None);
    let lengths = [shortest, 64, 100, 128, 200, 250, 255].into_iter().chain((8..).map(|power| 1 << power));
    for length in lengths.take_while(|length| *length <= LONGEST) {
        match refusal(talk, length)? {
            None => taken = length,
            Some(words) => {
                refused = Some((length, words));
                break;
            }
        }
    }
    while let Some((length, _)) = &refused
        && taken > 0
        && length - taken > 1
    {
        let middle = taken + (length - taken) / 2;
        match refusal(talk, middle)? {
            None => taken = middle,
            Some(words) => refused = Some((middle, words)),
        }
    }
    talk.ground.learned().key_bytes = Some(taken);
    let limit = match refused {
        Some((length, words)) if taken == 0 => {
            let key = talk.key("l".repeat(length - shortest + 1))?;
            return Err(talk.refused(&Op::Set { key: &key, value: b"l", ttl_s: None }, words));
        }
        Some((_, words)) => format!("keys up to {} bytes; one byte more: {words}", thousands(taken as u64)),
        None => format!("keys of {} bytes, the longest that was tried", thousands(LONGEST as u64)),
    };
    talk.ground.learned().limits.push(limit);
    Ok(())
}

/// Sets two keys of that length: how the first was refused, or nothing where both are there.
fn refusal(talk: &mut ProbeSession<'_>, length: usize) -> Result<Option<String>, Stop> {
    let bare = talk.key("")?.len();
    let one = talk.key("l".repeat(length - bare))?;
    let other = talk.key(["l".repeat(length - bare - 1), "m".to_string()].concat())?;
    let set = Op::Set { key: &one, value: b"one", ttl_s: None };
    let words = match talk.try_ask(set)? {
        Ok(Reply::Done) => {
            talk.set(&other, b"other")?;
            talk.holds(&one, b"one")?;
            talk.holds(&other, b"other")?;
            talk.flush()?;
            // Long keys must not be in the way of others.
            talk.expect(Op::Delete(&one), Reply::Done)?;
            talk.holds(&other, b"other")?;
            talk.expect(Op::Delete(&other), Reply::Done)?;
            talk.flush()?;
            return Ok(None);
        }
        Ok(other) => {
            let came = format!("{other:?}");
            return Err(talk.wrong(&set, came));
        }
        Err(Fault::Unsupported(words) | Fault::Refused(words)) => words,
        Err(fault @ Fault::Lost(_)) => {
            let words = fault.to_string();
            talk.begin_again()?;
            words
        }
        Err(fault) => return Err(talk.failed(&set, &fault)),
    };
    match talk.try_ask(Op::Get(&one))? {
        Ok(Reply::Missing) | Err(Fault::Unsupported(_) | Fault::Refused(_)) => {}
        Ok(_) => return Err(talk.wrong(&Op::Get(&one), "it was refused, and then there was a value")),
        // As for the set.
        Err(_) => talk.begin_again()?,
    }
    talk.flush()?;
    Ok(Some(words))
}

/// All 256 at the beginning, in the middle and at the end of a name.
pub fn every_byte(talk: &mut ProbeSession<'_>) -> Probed {
    let names: Vec<[u8; 3]> = (0..=255).map(|byte| [byte, b'x', byte]).collect();
    for name in &names {
        let key = talk.key(name)?;
        talk.set(&key, name)?;
    }
    talk.flush()?;
    for name in &names {
        let key = talk.key(name)?;
        talk.holds(&key, name)?;
    }
    Ok(())
}

/// Names that become the same where somebody escapes, folds, trims or cuts them.
const ALIKE: &[&[u8]] = &[
    b"",
    b" ",
    b"  ",
    b"a",
    b"A",
    b"a ",
    b" a",
    b"a\x00",
    b"a\x00b",
    b"a b",
    b"a+b",
    b"a%20b",
    b"a%2520b",
    b"a\tb",
    b"a\nb",
    b"a\rb",
    b"a\r\nb",
    b"a\r\n",
    b"a\\r\\nb",
    b"%",
    b"%25",
    b"%2",
    b"%0d%0a",
    b"%0D%0A",
    b"\r\n",
    b"\r\nget other\r\n",
    b"'",
    b"''",
    b"\"",
    b"\\",
    b"\\\\",
    b"`",
    b"$1",
    b"?",
    b"*",
    b"a*",
    b"a/b",
    b"a.b",
    b"a:b",
    b"\x7f",
    b"\x80",
    b"\xc3",
    b"\xff",
    b"\xff\xfe",
    b"\xef\xbf\xbd",
    "ä".as_bytes(),
    "a\u{308}".as_bytes(),
    "Ä".as_bytes(),
    "ß".as_bytes(),
    b"ss",
    "\u{1f600}".as_bytes(),
    b"1",
    b"01",
    b"1.0",
    b"true",
    b"NULL",
];

pub fn alike(talk: &mut ProbeSession<'_>) -> Probed {
    for name in ALIKE {
        let key = talk.key(name)?;
        talk.set(&key, name)?;
    }
    talk.flush()?;
    for name in ALIKE {
        let key = talk.key(name)?;
        talk.holds(&key, name)?;
    }
    // One goes, and the others stay.
    for (place, name) in ALIKE.iter().enumerate() {
        let key = talk.key(name)?;
        talk.expect(Op::Delete(&key), Reply::Done)?;
        talk.expect(Op::Get(&key), Reply::Missing)?;
        if let Some(next) = ALIKE.get(place + 1) {
            let key = talk.key(next)?;
            talk.holds(&key, next)?;
        }
    }
    Ok(())
}

/// Only in a store of our own: such a key may be somebody's.
pub fn one_byte(talk: &mut ProbeSession<'_>) -> Probed {
    if talk.ground.guest {
        return Err(Stop::NotOffered("keys of 1 byte: they may have an owner".to_string()));
    }
    for byte in 0..=255 {
        talk.own(&[byte])?;
        talk.set(&[byte], &[byte])?;
    }
    talk.flush()?;
    for byte in 0..=255 {
        talk.holds(&[byte], &[byte])?;
    }
    Ok(())
}

pub fn empty(talk: &mut ProbeSession<'_>) -> Probed {
    if talk.ground.guest {
        return Err(Stop::NotOffered("the empty key: it may have an owner".to_string()));
    }
    talk.own(b"")?;
    let set = Op::Set { key: b"", value: b"nobody", ttl_s: None };
    match talk.try_ask(set)? {
        Ok(Reply::Done) => {}
        Err(Fault::Unsupported(words) | Fault::Refused(words)) => {
            let words = format!("no empty key: {}", readable(words.as_bytes(), 100));
            talk.ground.learned().limits.push(words);
            return Ok(());
        }
        Ok(other) => {
            let came = format!("{other:?}");
            return Err(talk.wrong(&set, came));
        }
        Err(fault) => return Err(talk.failed(&set, &fault)),
    }
    talk.holds(b"", b"nobody")?;
    talk.expect(Op::Delete(b""), Reply::Done)?;
    talk.expect(Op::Get(b""), Reply::Missing)
}
