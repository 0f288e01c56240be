//! Counters, past every border where one may wrap.

use super::super::messages;
use super::super::talk::{ProbeSession, Probed, Stop};
use crate::model::op::{Fault, KeyList, Op, Reply, SumList};
use crate::model::units::thousands;

fn add(talk: &mut ProbeSession<'_>, key: &[u8], by: i64, expected: i64) -> Probed {
    talk.expect(Op::Increment { key, by }, Reply::Number(expected))?;
    talk.expect(Op::Number(key), Reply::Number(expected))
}

pub fn missing(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("n")?;
    talk.expect(Op::Number(&key), Reply::Missing)?;
    add(talk, &key, 5, 5)?;
    talk.flush()?;
    add(talk, &key, 1, 6)?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Number(&key), Reply::Missing)?;
    add(talk, &key, 3, 3)
}

/// Each border of whole numbers, of floating ones, and of decimal places.
pub fn past_borders(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("n")?;
    let mut number = 0;
    let borders = [9, 99, 255, 32_767, 65_535, 999_999, (1 << 31) - 1, (1 << 32) - 1, (1 << 53), 1 << 62];
    for border in borders {
        for next in [border, border + 1, border + 2] {
            if let Some(words) = refusal(talk, &key, next - number, next, border >= (1 << 31) - 1)? {
                let limit = format!("counters up to {}; more: {words}", thousands(number.unsigned_abs()));
                talk.ground.learned().limits.push(limit);
                return Ok(());
            }
            number = next;
        }
        talk.flush()?;
    }
    Ok(())
}

pub fn below_zero(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("n")?;
    let mut number = 0_i64;
    for next in [2, -3, 1, 0, -1, 1 - (1 << 31), -(1 << 31), -(1 << 31) - 1, 5] {
        if let Some(words) = refusal(talk, &key, next - number, next, next < 0)? {
            let least = if number < 0 { format!("-{}", thousands(number.unsigned_abs())) } else { "0".to_string() };
            talk.ground.learned().limits.push(format!("counters of {least} and more; less: {words}"));
            return Ok(());
        }
        number = next;
    }
    Ok(())
}

/// Adds, and looks: how it was refused where a store may well have a limit, or nothing where it was done.
fn refusal(
    talk: &mut ProbeSession<'_>,
    key: &[u8],
    by: i64,
    expected: i64,
    may_refuse: bool,
) -> Result<Option<String>, Stop> {
    let up = Op::Increment { key, by };
    match talk.try_ask(up)? {
        Err(Fault::Unsupported(words) | Fault::Refused(words)) if may_refuse => return Ok(Some(words)),
        Err(Fault::Unsupported(words)) => return Err(Stop::NotOffered(words)),
        Err(fault) => return Err(talk.failed(&up, &fault)),
        Ok(Reply::Number(number)) if number == expected => {}
        Ok(other) => {
            let came = messages::instead(&other, &Reply::Number(expected));
            return Err(talk.wrong(&up, came));
        }
    }
    talk.expect(Op::Number(key), Reply::Number(expected))?;
    Ok(None)
}

/// Past the last number there is none: an error, and no other number.
pub fn last(talk: &mut ProbeSession<'_>) -> Probed {
    let key = talk.key("n")?;
    let up = Op::Increment { key: &key, by: i64::MAX };
    match talk.try_ask(up)? {
        Ok(Reply::Number(i64::MAX)) => {}
        Ok(other) => {
            let came = messages::instead(&other, &Reply::Number(i64::MAX));
            return Err(talk.wrong(&up, came));
        }
        Err(Fault::Unsupported(words) | Fault::Refused(words)) => {
            talk.ground.learned().limits.push(format!("no counter of 2^63 - 1: {words}"));
            return Ok(());
        }
        Err(fault) => return Err(talk.failed(&up, &fault)),
    }
    let one_more = Op::Increment { key: &key, by: 1 };
    match talk.try_ask(one_more)? {
        Err(Fault::Unsupported(_) | Fault::Refused(_)) => {}
        Err(fault) => return Err(talk.failed(&one_more, &fault)),
        Ok(reply) => {
            let came = format!("{}, where an error was due", messages::answered(&reply));
            return Err(talk.wrong(&one_more, came));
        }
    }
    match talk.try_ask(Op::Number(&key))? {
        Ok(Reply::Number(i64::MAX)) | Err(Fault::Unsupported(_) | Fault::Refused(_)) => Ok(()),
        Ok(reply) => {
            let came = format!("{}: it was changed by what was refused", messages::answered(&reply));
            Err(talk.wrong(&Op::Number(&key), came))
        }
        Err(fault) => Err(talk.failed(&Op::Number(&key), &fault)),
    }
}

/// What is no number stays as it is, and so does what was written before in the same unit.
pub fn of_text(talk: &mut ProbeSession<'_>) -> Probed {
    let (key, other) = (talk.key("k")?, talk.key("other")?);
    talk.given(&other, b"kept")?;
    talk.given(&key, b"not a number")?;
    let up = Op::Increment { key: &key, by: 1 };
    match talk.try_ask(up)? {
        // Where counters have a table of their own, the text is not in their way.
        Err(Fault::Refused(_)) | Ok(Reply::Number(1)) => {}
        Err(Fault::Unsupported(words)) => return Err(Stop::NotOffered(words)),
        said => {
            let came = format!("{said:?}");
            return Err(talk.wrong(&up, came));
        }
    }
    talk.holds(&key, b"not a number")?;
    talk.holds(&other, b"kept")?;
    talk.flush()?;
    talk.holds(&other, b"kept")?;
    for text in [&b"12 apples"[..], b"1.5", b" 1", b""] {
        near_a_number(talk, text)?;
    }
    Ok(())
}

/// What only begins like a number. Some stores take it for one, and say so; then it is theirs to change, and ours to
/// tell.
fn near_a_number(talk: &mut ProbeSession<'_>, text: &[u8]) -> Probed {
    let key = talk.key("near")?;
    talk.given(&key, text)?;
    let up = Op::Increment { key: &key, by: 1 };
    let taken = match talk.try_ask(up)? {
        Err(Fault::Refused(_) | Fault::Unsupported(_)) => None,
        Ok(Reply::Number(number)) => Some(number),
        said => {
            let came = format!("{said:?}");
            return Err(talk.wrong(&up, came));
        }
    };
    match (taken, talk.ask(Op::Get(&key))?) {
        (_, Reply::Value(found)) if found == text => {}
        (Some(number), Reply::Value(found)) => {
            let words = format!("increment takes {} for a number", messages::bytes(text));
            let limit = format!("{words}: it said {number} and left {}", messages::bytes(found));
            talk.ground.learned().limits.push(limit);
        }
        (_, found) => {
            let came = messages::instead(&found, &Reply::Value(text));
            return Err(talk.wrong(&Op::Get(&key), came));
        }
    }
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.flush()
}

pub fn many(talk: &mut ProbeSession<'_>) -> Probed {
    let (keys, numbers): (Vec<_>, Vec<_>) =
        (0..12_i64).map(|place| (place, (place % 3 != 1).then(|| 1 << place))).unzip();
    let mut list = KeyList::default();
    for (place, number) in keys.iter().zip(&numbers) {
        let key = talk.key(place.to_string())?;
        list.push(&key);
        if let Some(number) = number {
            talk.prepare(Op::Increment { key: &key, by: *number }, Reply::Number(*number))?;
        }
    }
    talk.expect(Op::NumberMany(list.lend()), Reply::Numbers(&numbers))?;
    talk.flush()?;
    talk.expect(Op::NumberMany(list.lend()), Reply::Numbers(&numbers))
}

/// An addition is read at once, by number and by increment, whether an add or an increment made the counter.
pub fn add_alone(talk: &mut ProbeSession<'_>) -> Probed {
    for (place, made_by_add) in [true, false].into_iter().enumerate() {
        let key = talk.key(format!("n{place}"))?;
        match made_by_add {
            true => talk.expect(Op::Add { key: &key, by: 2 }, Reply::Done)?,
            false => add(talk, &key, 2, 2)?,
        }
        talk.expect(Op::Number(&key), Reply::Number(2))?;
        add(talk, &key, 3, 5)?;
        talk.flush()?;
        talk.expect(Op::Add { key: &key, by: 1_000_000_000 }, Reply::Done)?;
        talk.expect(Op::Number(&key), Reply::Number(1_000_000_005))?;
        add(talk, &key, 1, 1_000_000_006)?;
        talk.expect(Op::Delete(&key), Reply::Done)?;
        talk.expect(Op::Number(&key), Reply::Missing)?;
    }
    Ok(())
}

/// Every second counter is there before.
pub fn add_many(talk: &mut ProbeSession<'_>) -> Probed {
    for count in [1_usize, 2, 9, 10, 11, 99, 100, 101] {
        let (mut keys, mut sums, mut numbers) = (KeyList::default(), SumList::default(), Vec::new());
        for place in 0..count {
            let key = talk.key(format!("{count}-{place}"))?;
            let (before, by) = ((place % 2) as i64 * 7, place as i64 + 1);
            if before > 0 {
                talk.prepare(Op::Increment { key: &key, by: before }, Reply::Number(before))?;
            }
            keys.push(&key);
            sums.push(&key, by);
            numbers.push(Some(before + by));
        }
        talk.expect(Op::AddMany(sums.lend()), Reply::Done)?;
        talk.flush()?;
        talk.expect(Op::NumberMany(keys.lend()), Reply::Numbers(&numbers))?;
    }
    Ok(())
}
