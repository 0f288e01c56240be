//! Values of awkward sizes and bytes.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::super::messages;
use super::super::talk::{ProbeSession, Probed, Stop};
use crate::model::op::{Fault, Op, Reply};
use crate::model::units::thousands;

/// The largest value that is tried: 64 MiB, more than any of these stores' users should want.
const LARGEST: usize = 64 << 20;
/// The same for a store by URL: in a cache that is full every byte of ours drops one of its owner's.
const LARGEST_OF_A_GUEST: usize = 2 << 20;
/// A limit is looked for to the byte for so long; then it is told as far as it is known.
const LOOKING: Duration = Duration::from_secs(6);
/// Values of one size begin at different places of the noise than those of another.
const PLACES: usize = 1 << 16;

/// Bytes without a pattern in which a wrong length or place could hide; the same for the same length, and another
/// beginning for another one.
pub fn noise(length: usize) -> &'static [u8] {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    let noise = NOISE.get_or_init(|| {
        let mut state = 7_u64;
        let words = (LARGEST + PLACES) / 8 + 1;
        let mut bytes = Vec::with_capacity(words * 8);
        for _ in 0..words {
            // Knuth's generator of MMIX, whose low bits are poor: they are mixed with its high ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&(state ^ (state >> 33)).to_le_bytes());
        }
        bytes
    });
    let place = length.wrapping_mul(31) % PLACES;
    &noise[place..place + length]
}

/// The largest value that is tried.
pub fn largest_tried(guest: bool) -> usize {
    if guest { LARGEST_OF_A_GUEST } else { LARGEST }
}

/// The largest size that is taken, to the byte. Larger ones must be refused, and nothing of them be kept.
pub fn largest(talk: &mut ProbeSession<'_>) -> Probed {
    let most = largest_tried(talk.ground.guest);
    let (key, began) = (talk.key("value")?, Instant::now());
    let (mut taken, mut refused) = (0, None);
    let sizes = [1, 100, 1 << 10, 1 << 16].into_iter().chain((20..).map(|power| 1 << power));
    for size in sizes.take_while(|size| *size <= most) {
        match refusal(talk, &key, size)? {
            None => taken = size,
            Some(words) => {
                refused = Some((size, words));
                break;
            }
        }
    }
    while let Some((size, _)) = &refused
        && size - taken > 1
        && began.elapsed() < LOOKING
    {
        let middle = taken + (size - taken) / 2;
        match refusal(talk, &key, middle)? {
            None => taken = middle,
            Some(words) => refused = Some((middle, words)),
        }
    }
    talk.ground.learned().value_bytes = Some(taken);
    // Nothing else should have to live beside it.
    talk.set(&key, b"")?;
    talk.flush()?;
    let limit = match refused {
        Some((size, words)) if taken == 0 => {
            return Err(talk.refused(&Op::Set { key: &key, value: noise(size), ttl_s: None }, words));
        }
        Some((size, words)) => {
            let more = if size - taken == 1 { "one byte more".to_string() } else { thousands(size as u64) };
            format!("values up to {} bytes; {more}: {words}", thousands(taken as u64))
        }
        None => format!("values of {} bytes, the largest that was tried", thousands(most as u64)),
    };
    talk.ground.learned().limits.push(limit);
    Ok(())
}

/// Sets a value of that size: how it was refused, or nothing where it is there whole.
fn refusal(talk: &mut ProbeSession<'_>, key: &[u8], size: usize) -> Result<Option<String>, Stop> {
    const BEFORE: &[u8] = b"before";
    let value = noise(size);
    talk.set(key, BEFORE)?;
    talk.flush()?;
    let set = Op::Set { key, value, ttl_s: None };
    let refused = match talk.try_ask(set)? {
        Ok(Reply::Done) => None,
        Ok(other) => {
            let came = format!("{other:?}");
            return Err(talk.wrong(&set, came));
        }
        Err(Fault::Unsupported(words) | Fault::Refused(words)) => Some(words),
        // A connection that ends is an error too, if no kind one.
        Err(fault @ Fault::Lost(_)) => {
            let words = fault.to_string();
            talk.begin_again()?;
            Some(words)
        }
        Err(fault) => return Err(talk.failed(&set, &fault)),
    };
    if refused.is_none() {
        talk.holds(key, value)?;
        talk.flush()?;
        return Ok(None);
    }
    // The old value, or none: memcached takes it away, so that nobody reads what should have been replaced.
    match talk.ask(Op::Get(key))? {
        Reply::Missing => {}
        Reply::Value(found) if found == BEFORE => {}
        other => {
            let came = format!("it was refused, and then there was {}", messages::answered(&other));
            return Err(talk.wrong(&Op::Get(key), came));
        }
    }
    talk.flush()?;
    Ok(refused)
}

pub fn empty(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("k")?;
    for value in [&b""[..], b"x", b"", b"full", b""] {
        talk.set(&key, value)?;
        talk.holds(&key, value)?;
        talk.flush()?;
        talk.holds(&key, value)?;
    }
    Ok(())
}

/// One byte less than a border, the border, and one more.
pub fn around(talk: &mut ProbeSession<'_>, border: usize) -> Probed {
    each(talk, &[border - 1, border, border + 1])
}

/// A million bytes, and a mebibyte less what protocols and stores put around a value.
pub fn around_a_megabyte(talk: &mut ProbeSession<'_>) -> Probed {
    const MB: usize = 1 << 20;
    let less = [1024, 512, 256, 128, 100, 64, 50, 48, 32, 16, 8, 4, 2, 1, 0].map(|less| MB - less);
    let more = [1, 2, 4, 8, 16, 64, 128, 256, 512, 1024].map(|more| MB + more);
    each(talk, &[&[999_999, 1_000_000, 1_000_001], &less[..], &more[..]].concat())
}

/// After each size another key is read: what was left of the one answer must not be taken for the next.
fn each(talk: &mut ProbeSession<'_>, sizes: &[usize]) -> Probed {
    let limit = talk.ground.learned().value_bytes.unwrap_or(usize::MAX);
    let (next, key) = (talk.key("next")?, talk.key("k")?);
    talk.set(&next, b"the next answer")?;
    for size in sizes.iter().copied().filter(|size| *size <= limit) {
        talk.set(&key, noise(size))?;
        talk.holds(&next, b"the next answer")?;
        talk.holds(&key, noise(size))?;
        talk.holds(&next, b"the next answer")?;
        talk.flush()?;
        talk.holds(&key, noise(size))?;
    }
    Ok(())
}

/// All bytes in a row, and each by itself.
pub fn every_byte(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("k")?;
    let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    talk.set(&key, &all)?;
    talk.holds(&key, &all)?;
    for byte in 0..=255 {
        talk.set(&key, &[byte])?;
        talk.holds(&key, &[byte])?;
    }
    Ok(())
}

/// What ends answers, begins them, or stands for nothing in one protocol or another.
const TEXTS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"a line\r\n",
    b"\r\na line",
    b"two\r\n\r\nparts",
    b"END\r\n",
    b"VALUE k 0 3\r\nabc\r\nEND\r\n",
    b"STORED\r\n",
    b"NOT_FOUND\r\n",
    b"ERROR\r\n",
    b"SERVER_ERROR out of memory\r\n",
    b"EN\r\n",
    b"HD\r\n",
    b"VA 3\r\nabc\r\n",
    b"$-1\r\n",
    b"$3\r\nabc\r\n",
    b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":1\r\n",
    b"_\r\n",
    b"\x81\x00\x00\x00\x00\x00\x00\x00",
    b"\xc8\x30\x00\x00",
    b"\x00",
    b"\x00\x00\x00\x00",
    b"'; DROP TABLE x; --",
    b"\\x00\\",
    b"%00%0a",
    b"NULL",
    b"{\"$set\": 1}",
    b" ",
    b" a b ",
    b"12",
    b"-1",
    b"1e5",
];

pub fn protocol_text(talk: &mut ProbeSession<'_>) -> Probed {
    let (next, key) = (talk.key("next")?, talk.key("k")?);
    talk.set(&next, b"the next answer")?;
    for text in TEXTS {
        for value in [text.to_vec(), [noise(9), text].concat(), [text, noise(9)].concat()] {
            talk.set(&key, &value)?;
            talk.holds(&key, &value)?;
            talk.holds(&next, b"the next answer")?;
        }
    }
    Ok(())
}
