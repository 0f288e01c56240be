//! What each op promises to the session that asks it.

use std::thread;

use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply, readable};

use super::{Checked, Said, Talk, noise, say};

pub type Check = fn(&mut Talk<'_>) -> Checked;

pub const CHECKS: &[(&str, Check)] = &[
    ("missing keys", missing_keys),
    ("set and get", set_and_get),
    ("empty value", empty_value),
    ("every byte in a value", every_byte_in_a_value),
    ("every byte in a key", every_byte_in_a_key),
    ("megabyte", megabyte),
    ("overwrite", overwrite),
    ("delete", delete),
    ("get many", get_many),
    ("set many", set_many),
    ("set if absent", set_if_absent),
    ("increment", increment),
    ("number many", number_many),
    ("increment of text", increment_of_text),
    ("check and set", check_and_set),
    ("time to live", time_to_live),
    ("tally", tally),
    ("scan", scan),
    ("unflushed", unflushed),
    ("empty key", empty_key),
    ("key of 300 bytes", |talk| long_key(talk, 300)),
    ("key of 600 bytes", |talk| long_key(talk, 600)),
    ("key of 70000 bytes", |talk| long_key(talk, 70_000)),
];

fn missing_keys(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("none");
    talk.expect(Op::Get(&key), Reply::Missing)?;
    talk.expect(Op::Delete(&key), Reply::Missing)?;
    talk.expect(Op::Number(&key), Reply::Missing)?;
    talk.expect(Op::Get(&key), Reply::Missing)
}

fn set_and_get(talk: &mut Talk<'_>) -> Checked {
    let (one, two) = (talk.key("1"), talk.key("2"));
    talk.set(&one, b"eins")?;
    talk.set(&two, b"zwei")?;
    talk.expect(Op::Get(&one), Reply::Value(b"eins"))?;
    talk.flush()?;
    talk.expect(Op::Get(&two), Reply::Value(b"zwei"))?;
    talk.expect(Op::Get(&one), Reply::Value(b"eins"))
}

fn empty_value(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    talk.set(&key, b"")?;
    talk.expect(Op::Get(&key), Reply::Value(b""))?;
    talk.set(&key, b"full")?;
    talk.set(&key, b"")?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Value(b""))
}

fn every_byte_in_a_value(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    let value: Vec<u8> = (0..=255).chain(*b"\r\nEND\r\n").chain((0..=255).rev()).collect();
    talk.set(&key, &value)?;
    talk.expect(Op::Get(&key), Reply::Value(&value))?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Value(&value))
}

fn every_byte_in_a_key(talk: &mut Talk<'_>) -> Checked {
    for byte in 0..=255u8 {
        let key = talk.key([byte, b'x', byte]);
        talk.set(&key, &[byte])?;
    }
    talk.flush()?;
    for byte in 0..=255u8 {
        let key = talk.key([byte, b'x', byte]);
        talk.expect(Op::Get(&key), Reply::Value(&[byte]))?;
    }
    Ok(())
}

fn megabyte(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    // A little less than a mebibyte: with its key and header it is what memcached takes by default.
    let value = noise(1_000_000, 7);
    talk.set(&key, &value)?;
    talk.expect(Op::Get(&key), Reply::Value(&value))?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Value(&value))?;
    talk.expect(Op::Delete(&key), Reply::Done)
}

fn overwrite(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    for length in [10, 5_000, 3, 200_000, 100, 101, 99] {
        let value = noise(length, length as u64);
        talk.set(&key, &value)?;
        talk.expect(Op::Get(&key), Reply::Value(&value))?;
        talk.flush()?;
        talk.expect(Op::Get(&key), Reply::Value(&value))?;
    }
    Ok(())
}

fn delete(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    talk.set(&key, b"v")?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Get(&key), Reply::Missing)?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Missing)?;
    talk.expect(Op::Delete(&key), Reply::Missing)?;
    talk.set(&key, b"again")?;
    talk.expect(Op::Get(&key), Reply::Value(b"again"))
}

fn keys_of(talk: &Talk<'_>, names: &[&str]) -> KeyList {
    let mut keys = KeyList::default();
    names.iter().for_each(|name| keys.push(&talk.key(name)));
    keys
}

fn get_many(talk: &mut Talk<'_>) -> Checked {
    let (a, c) = (talk.key("a"), talk.key("c"));
    talk.set(&a, b"1")?;
    talk.set(&c, b"")?;
    let keys = keys_of(talk, &["a", "b", "c", "d", "a"]);
    let expected: [Option<&[u8]>; 5] = [Some(b"1"), None, Some(b""), None, Some(b"1")];
    for _ in 0..2 {
        match talk.ask(Op::GetMany(keys.lend()))? {
            Reply::Values(found) if found.iter().eq(expected) => {}
            other => return Err(Said::Wrong(format!("get-many said {}", say(&other)))),
        }
        talk.flush()?;
    }
    match talk.ask(Op::GetMany(KeyList::default().lend()))? {
        Reply::Values(found) if found.is_empty() => Ok(()),
        other => Err(Said::Wrong(format!("get-many of nothing said {}", say(&other)))),
    }
}

fn set_many(talk: &mut Talk<'_>) -> Checked {
    let names: Vec<String> = (0..100).map(|index| format!("{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let keys = keys_of(talk, &names);
    let values: KeyList = names.iter().map(|name| name.as_bytes()).collect();
    let pairs = Pairs { keys: keys.lend(), values: values.lend() };
    talk.expect(Op::SetMany(pairs), Reply::Done)?;
    talk.flush()?;
    for (key, value) in pairs.iter() {
        talk.expect(Op::Get(key), Reply::Value(value))?;
    }
    Ok(())
}

fn set_if_absent(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    talk.expect(Op::SetIfAbsent { key: &key, value: b"first" }, Reply::Done)?;
    talk.expect(Op::SetIfAbsent { key: &key, value: b"second" }, Reply::Conflict)?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Value(b"first"))?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::SetIfAbsent { key: &key, value: b"third" }, Reply::Done)?;
    talk.expect(Op::Get(&key), Reply::Value(b"third"))
}

fn increment(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    let mut number = 0;
    // Past 2^31 and 2^32, where a store with small counters would wrap; then down again, and back past the middle.
    for by in [1, 1, 41, 1 << 31, 1 << 33, -(1 << 33), -(1 << 31), 7] {
        number += by;
        talk.expect(Op::Increment { key: &key, by }, Reply::Number(number))?;
        talk.expect(Op::Number(&key), Reply::Number(number))?;
    }
    talk.flush()?;
    talk.expect(Op::Number(&key), Reply::Number(50))?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Number(&key), Reply::Missing)?;
    talk.expect(Op::Increment { key: &key, by: 3 }, Reply::Number(3))?;
    below_zero(talk)
}

fn below_zero(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("below");
    talk.expect(Op::Increment { key: &key, by: 2 }, Reply::Number(2))?;
    talk.expect(Op::Increment { key: &key, by: -5 }, Reply::Number(-3))?;
    talk.expect(Op::Number(&key), Reply::Number(-3))
}

fn number_many(talk: &mut Talk<'_>) -> Checked {
    let (a, c) = (talk.key("a"), talk.key("c"));
    talk.expect(Op::Increment { key: &a, by: 5 }, Reply::Number(5))?;
    talk.expect(Op::Increment { key: &c, by: 1 << 40 }, Reply::Number(1 << 40))?;
    let keys = keys_of(talk, &["a", "b", "c"]);
    talk.expect(Op::NumberMany(keys.lend()), Reply::Numbers(&[Some(5), None, Some(1 << 40)]))?;
    talk.flush()?;
    talk.expect(Op::NumberMany(keys.lend()), Reply::Numbers(&[Some(5), None, Some(1 << 40)]))
}

/// What is no number stays as it is, and so does what was written before in the same unit.
fn increment_of_text(talk: &mut Talk<'_>) -> Checked {
    let (key, other) = (talk.key("k"), talk.key("other"));
    talk.set(&other, b"kept")?;
    talk.set(&key, b"not a number")?;
    match talk.session.ask(&Op::Increment { key: &key, by: 1 }) {
        // Where counters have a table of their own, the text is not in their way.
        Err(Fault::Refused(_)) | Ok(Reply::Number(1)) => {}
        said => return Err(Said::Wrong(format!("increment of text said {said:?}"))),
    }
    talk.expect(Op::Get(&key), Reply::Value(b"not a number"))?;
    talk.expect(Op::Get(&other), Reply::Value(b"kept"))?;
    talk.flush()?;
    talk.expect(Op::Get(&other), Reply::Value(b"kept"))
}

fn version_of(talk: &mut Talk<'_>, key: &[u8], expected: &[u8]) -> Result<u64, Said> {
    match talk.ask(Op::GetVersion(key))? {
        Reply::Versioned(value, version) if value == expected => Ok(version),
        other => Err(Said::Wrong(format!("get-version said {}, not '{}'", say(&other), readable(expected, 60)))),
    }
}

fn check_and_set(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    talk.expect(Op::GetVersion(&key), Reply::Missing)?;
    talk.set(&key, b"one")?;
    let first = version_of(talk, &key, b"one")?;
    talk.expect(Op::Cas { key: &key, version: first, value: b"two" }, Reply::Done)?;
    talk.flush()?;
    talk.expect(Op::Cas { key: &key, version: first, value: b"three" }, Reply::Conflict)?;
    let second = version_of(talk, &key, b"two")?;
    talk.set(&key, b"someone else's")?;
    talk.expect(Op::Cas { key: &key, version: second, value: b"four" }, Reply::Conflict)?;
    talk.expect(Op::Get(&key), Reply::Value(b"someone else's"))?;
    let third = version_of(talk, &key, b"someone else's")?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Cas { key: &key, version: third, value: b"five" }, Reply::Conflict)?;
    talk.expect(Op::Get(&key), Reply::Missing)
}

fn time_to_live(talk: &mut Talk<'_>) -> Checked {
    let key = talk.key("k");
    talk.expect(Op::Set { key: &key, value: b"v", ttl_s: Some(1) }, Reply::Done)?;
    talk.expect(Op::Get(&key), Reply::Value(b"v"))?;
    talk.flush()?;
    // Servers count in whole seconds from a clock of their own.
    thread::sleep(std::time::Duration::from_millis(2_200));
    talk.expect(Op::Get(&key), Reply::Missing)
}

type Row = (Vec<u8>, Vec<u8>);

fn rows_of(talk: &mut Talk<'_>, op: Op<'_>) -> Result<Vec<Row>, Said> {
    match talk.ask(op)? {
        Reply::Rows(rows) => Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()),
        other => Err(Said::Wrong(format!("{} said {}", op.name(), say(&other)))),
    }
}

fn tally(talk: &mut Talk<'_>) -> Checked {
    let records = keys_of(talk, &["x", "y"]);
    let fields: KeyList =
        [b"x".as_slice(), "fünf Ä".as_bytes(), b"a field with more than twenty-two bytes"].into_iter().collect();
    let none = talk.key("none");
    talk.expect(Op::ReadTally(&none), Reply::Missing)?;
    talk.expect(Op::Tally { records: records.lend(), fields: fields.lend(), by: 1 }, Reply::Done)?;
    talk.flush()?;
    let only: KeyList = [b"x".as_slice()].into_iter().collect();
    let first = keys_of(talk, &["x"]);
    talk.expect(Op::Tally { records: first.lend(), fields: only.lend(), by: 41 }, Reply::Done)?;
    for (record, x) in [("x", "42"), ("y", "1")] {
        let key = talk.key(record);
        let mut found = rows_of(talk, Op::ReadTally(&key))?;
        let mut expected: Vec<_> = fields.lend().iter().map(|field| (field.to_vec(), b"1".to_vec())).collect();
        expected[0].1 = x.as_bytes().to_vec();
        found.sort();
        expected.sort();
        if found != expected {
            return Err(Said::Wrong(format!("read-tally of {record} said {found:?}, not {expected:?}")));
        }
    }
    Ok(())
}

fn scan(talk: &mut Talk<'_>) -> Checked {
    let names: [&[u8]; 6] = [b"a", b"a\x00", b"aa", b"b", b"\x80", b"\xff\xff"];
    for name in [3, 0, 5, 1, 4, 2].map(|index| names[index]) {
        let key = talk.key(name);
        talk.set(&key, name)?;
    }
    let expected: Vec<_> = names.iter().map(|name| (talk.key(name), name.to_vec())).collect();
    let from = talk.key("");
    let check = |talk: &mut Talk<'_>, from: &[u8], limit, expected: &[Row]| -> Checked {
        let found = rows_of(talk, Op::Scan { from, limit })?;
        if found == expected { Ok(()) } else { Err(Said::Wrong(format!("scan said {found:?}, not {expected:?}"))) }
    };
    check(talk, &from, 6, &expected)?;
    talk.flush()?;
    check(talk, &from, 6, &expected)?;
    check(talk, &from, 2, &expected[..2])?;
    check(talk, &from, 0, &[])?;
    let (within, between, gone) = (talk.key("aa"), talk.key("ab"), talk.key("b"));
    check(talk, &within, 4, &expected[2..])?;
    check(talk, &between, 3, &expected[3..])?;
    talk.expect(Op::Delete(&gone), Reply::Done)?;
    check(talk, &between, 2, &expected[4..])?;
    let all = rows_of(talk, Op::Scan { from: b"", limit: 1 })?;
    if all.len() == 1 { Ok(()) } else { Err(Said::Wrong(format!("scan from the empty key said {all:?}"))) }
}

/// Reads within a unit see the unit's own writes, of every kind.
fn unflushed(talk: &mut Talk<'_>) -> Checked {
    let (key, counter) = (talk.key("k"), talk.key("n"));
    talk.set(&key, b"1")?;
    talk.expect(Op::Increment { key: &counter, by: 1 }, Reply::Number(1))?;
    talk.expect(Op::Get(&key), Reply::Value(b"1"))?;
    talk.expect(Op::Number(&counter), Reply::Number(1))?;
    talk.set(&key, b"2")?;
    talk.expect(Op::Get(&key), Reply::Value(b"2"))?;
    talk.expect(Op::Delete(&key), Reply::Done)?;
    talk.expect(Op::Get(&key), Reply::Missing)?;
    talk.set(&key, b"3")?;
    talk.flush()?;
    talk.expect(Op::Get(&key), Reply::Value(b"3"))?;
    talk.expect(Op::Number(&counter), Reply::Number(1))
}

fn empty_key(talk: &mut Talk<'_>) -> Checked {
    talk.set(b"", b"nobody")?;
    talk.expect(Op::Get(b""), Reply::Value(b"nobody"))?;
    talk.expect(Op::Delete(b""), Reply::Done)
}

/// A long key is kept whole or refused with the limit; two that differ in their last byte only are two.
fn long_key(talk: &mut Talk<'_>, length: usize) -> Checked {
    let mut key = talk.key("k");
    key.resize(length, b'l');
    let mut other = key.clone();
    *other.last_mut().expect("it is long") = b'm';
    talk.set(&key, b"l").map_err(|said| match said {
        Said::Unsupported(words) if !words.contains(&length.to_string()) => {
            Said::Wrong(format!("the limit is named without the key's {length} bytes: {words}"))
        }
        said => said,
    })?;
    talk.set(&other, b"m")?;
    talk.expect(Op::Get(&key), Reply::Value(b"l"))?;
    talk.expect(Op::Get(&other), Reply::Value(b"m"))
}
