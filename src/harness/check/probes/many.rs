//! Many keys in one question.

use super::super::messages;
use super::super::talk::{ProbeSession, Probed, Stop};
use super::values::noise;
use crate::model::op::{KeyList, Op, Pairs, Reply, ValueList};

/// Numbers of keys around which somebody may count wrong.
const COUNTS: &[usize] = &[1, 2, 3, 7, 8, 9, 10, 11, 16, 17, 32, 33, 99, 100, 101, 127, 128, 129];

/// Two of three keys are there.
pub fn get(talk: &mut ProbeSession<'_>) -> Probed {
    let most = COUNTS.iter().copied().max().unwrap_or_default();
    let mut records = Vec::new();
    for place in 0..most {
        let key = talk.key(place.to_string())?;
        let value = (place % 3 != 2).then(|| noise(place % 40).to_vec());
        if let Some(value) = &value {
            talk.given(&key, value)?;
        }
        records.push((key, value));
    }
    talk.flush()?;
    for &count in COUNTS {
        all(talk, &records[..count])?;
        // Backwards, and the first one twice.
        let mut backwards: Vec<_> = records[..count].iter().rev().cloned().collect();
        backwards.push(backwards[0].clone());
        all(talk, &backwards)?;
    }
    // What comes after many must be one's own again.
    talk.holds(&records[0].0, noise(0))?;
    nothing(talk)
}

/// Of no keys there are no values; a protocol that cannot say it may refuse.
fn nothing(talk: &mut ProbeSession<'_>) -> Probed {
    let none = ValueList::default();
    match talk.expect(Op::GetMany(KeyList::default().lend()), Reply::Values(none.lend())) {
        Err(Stop::NotOffered(_)) => Ok(()),
        other => other,
    }
}

type Record = (Vec<u8>, Option<Vec<u8>>);

fn all(talk: &mut ProbeSession<'_>, records: &[Record]) -> Probed {
    let (mut keys, mut values) = (KeyList::default(), ValueList::default());
    for (key, value) in records {
        keys.push(key);
        values.push(value.as_deref());
    }
    talk.expect(Op::GetMany(keys.lend()), Reply::Values(values.lend()))
}

/// Values whose lengths have another number of digits each, side by side.
pub fn odd_sizes(talk: &mut ProbeSession<'_>) -> Probed {
    let mut records = Vec::new();
    for size in [0, 1, 9, 10, 99, 100, 999, 1_000, 1_023, 1_024, 1_025, 9_999, 10_000, 16_384, 65_536, 100_000] {
        let (there, missing) = (talk.key(size.to_string())?, talk.key(format!("not-{size}"))?);
        talk.given(&there, noise(size))?;
        records.extend([(there, Some(noise(size).to_vec())), (missing, None)]);
    }
    talk.flush()?;
    all(talk, &records)?;
    records.reverse();
    all(talk, &records)
}

pub fn set(talk: &mut ProbeSession<'_>) -> Probed {
    for count in [1, 2, 8, 9, 10, 11, 100] {
        let (mut keys, mut values) = (KeyList::default(), KeyList::default());
        for place in 0..count {
            keys.push(&talk.key(format!("{count}-{place}"))?);
            values.push(noise((place * count) % 50));
        }
        let pairs = Pairs { keys: keys.lend(), values: values.lend() };
        talk.expect(Op::SetMany(pairs), Reply::Done)?;
        talk.flush()?;
        for (key, value) in pairs.iter() {
            talk.holds(key, value)?;
        }
    }
    Ok(())
}

type Row = (Vec<u8>, Vec<u8>);

fn rows(talk: &mut ProbeSession<'_>, op: Op<'_>) -> Result<Vec<Row>, Stop> {
    let words = match talk.ask(op)? {
        Reply::Rows(rows) => return Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()),
        other => messages::answered(&other),
    };
    Err(talk.wrong(&op, words))
}

fn expect_rows(talk: &mut ProbeSession<'_>, op: Op<'_>, found: &[Row], expected: &[Row]) -> Probed {
    if found == expected {
        return Ok(());
    }
    let parts = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    let row = |rows: &[Row]| {
        rows.get(parts).map_or_else(
            || "no more".to_string(),
            |(key, value)| format!("{} with {}", messages::key(key), messages::bytes(value)),
        )
    };
    let (has, wants) = (found.len(), expected.len());
    Err(talk.wrong(&op, format!("{has} rows of {wants}; row {} is {}, not {}", parts + 1, row(found), row(expected))))
}

/// In the order of bytes, from the first key that is not less.
pub fn scan(talk: &mut ProbeSession<'_>) -> Probed {
    let names: [&[u8]; 6] = [b"a", b"a\x00", b"aa", b"b", b"\x80", b"\xff\xff"];
    for name in [3, 0, 5, 1, 4, 2].map(|place| names[place]) {
        let key = talk.key(name)?;
        talk.given(&key, name)?;
    }
    talk.flush()?;
    let mut expected = Vec::new();
    for name in names {
        expected.push((talk.key(name)?, name.to_vec()));
    }
    let asked = [("", 6, 0..6), ("", 2, 0..2), ("", 0, 0..0), ("aa", 4, 2..6), ("ab", 3, 3..6)];
    for (from, limit, range) in asked {
        let from = talk.key(from)?;
        let op = Op::Scan { from: &from, limit };
        let found = rows(talk, op)?;
        expect_rows(talk, op, &found, &expected[range])?;
    }
    Ok(())
}

pub fn tally(talk: &mut ProbeSession<'_>) -> Probed {
    let (x, y, none) = (talk.key("x")?, talk.key("y")?, talk.key("none")?);
    let fields: [&[u8]; 3] = [b"x", "fünf Ä".as_bytes(), b"a field with more than twenty-two bytes"];
    let (records, all): (KeyList, KeyList) = ([&x[..], &y].into_iter().collect(), fields.into_iter().collect());
    talk.expect(Op::ReadTally(&none), Reply::Missing)?;
    talk.expect(Op::Tally { records: records.lend(), fields: all.lend(), by: 1 }, Reply::Done)?;
    talk.flush()?;
    let (first, only): (KeyList, KeyList) = ([&x[..]].into_iter().collect(), [fields[0]].into_iter().collect());
    talk.expect(Op::Tally { records: first.lend(), fields: only.lend(), by: 41 }, Reply::Done)?;
    for (key, of_x) in [(&x, "42"), (&y, "1")] {
        let mut expected: Vec<Row> = fields.iter().map(|field| (field.to_vec(), b"1".to_vec())).collect();
        expected[0].1 = of_x.as_bytes().to_vec();
        expected.sort();
        let mut found = rows(talk, Op::ReadTally(key))?;
        found.sort();
        expect_rows(talk, Op::ReadTally(key), &found, &expected)?;
    }
    talk.expect(Op::Delete(&x), Reply::Done)?;
    talk.expect(Op::ReadTally(&x), Reply::Missing)
}
