//! Our codec of Tokyo Tyrant's protocol: what its ops say and hear, hostile answers, statistics.

use kvfair::model::op::{Fault, Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::tyrant::{Tyrant, stats};

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

const NO_SUM: &str = "addint failed with code 1: what is there is no number of four bytes, or its sum is -2147483648, \
                      which the server takes for a failure";

pub fn codec() -> Box<dyn Codec> {
    Box::new(Tyrant::new("tokyotyrant"))
}

/// The answer to an mget of so many keys "k" that are all there.
pub fn many(count: u32) -> Vec<u8> {
    let record = b"\0\0\0\x01\0\0\0\x08k12345678".repeat(count as usize);
    [&[0][..], &count.to_be_bytes(), &record].concat()
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters()].concat()
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    let mget = b"\xC8\x31\0\0\0\x02\0\0\0\x03a b\0\0\0\x01b";
    vec![
        case(
            Op::Get(b"k\r\n"),
            b"\xC8\x30\0\0\0\x03k\r\n",
            vec![
                (b"\x01", Got::Missing),
                (b"\0\0\0\0\0", value(b"")),
                (b"\0\0\0\0\x03\0\x01\xC8", value(b"\0\x01\xC8")),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            mget,
            vec![
                (b"\0\0\0\0\0", Got::Values(vec![None, None])),
                (b"\0\0\0\0\x01\0\0\0\x01\0\0\0\x02b\0\x01", Got::Values(vec![None, Some(b"\0\x01".to_vec())])),
                (
                    b"\0\0\0\0\x02\0\0\0\x03\0\0\0\x01a bx\0\0\0\x01\0\0\0\0b",
                    Got::Values(vec![Some(b"x".to_vec()), Some(Vec::new())]),
                ),
                (b"\x01", refused("mget failed with code 1")),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            mget,
            vec![
                (b"\0\0\0\0\x01\0\0\0\x01\0\0\0\x04b\x09\0\0\0", Got::Numbers(vec![None, Some(9)])),
                (b"\0\0\0\0\x01\0\0\0\x01\0\0\0\x01bx", refused("the value 'x' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    let xy = keys(&[b"x", b""]);
    vec![
        case(
            Op::Set { key: b"k", value: b"v\0", ttl_s: None },
            b"\xC8\x10\0\0\0\x01\0\0\0\x02kv\0",
            vec![(b"\0", Got::Done), (b"\x01", refused("put failed with code 1"))],
        ),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            b"\xC8\x10\0\0\0\x03\0\0\0\x01a bx\xC8\x10\0\0\0\x01\0\0\0\0b",
            vec![
                (b"\0\0", Got::Done),
                (b"\x02\x01", refused("put failed with code 2")),
                (b"\0\x01", refused("put failed with code 1")),
            ],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            b"\xC8\x11\0\0\0\x01\0\0\0\x01kv",
            vec![(b"\0", Got::Done), (b"\x01", Got::Conflict)],
        ),
        case(Op::Delete(b"k"), b"\xC8\x20\0\0\0\x01k", vec![(b"\0", Got::Done), (b"\x01", Got::Missing)]),
    ]
}

fn counters() -> Vec<Case> {
    let ab = sums(&[("a", 1), ("bc", 2)]);
    vec![
        case(
            Op::Add { key: b"k", by: 5 },
            b"\xC8\x60\0\0\0\x01\0\0\0\x05k",
            vec![(b"\0\0\0\0\x05", Got::Done), (b"\x01", refused(NO_SUM))],
        ),
        case(
            Op::AddMany(ab.lend()),
            b"\xC8\x60\0\0\0\x01\0\0\0\x01a\xC8\x60\0\0\0\x02\0\0\0\x02bc",
            vec![
                (b"\0\0\0\0\x01\0\0\0\0\x02", Got::Done),
                (b"\x01\0\0\0\0\x02", refused(NO_SUM)),
                (
                    b"\0\0\0\0\x01\0\x80\0\0\x01",
                    refused(
                        "the counter went past 2147483647 and around to -2147483647: it has 32 bits and is wrong from \
                         now on",
                    ),
                ),
            ],
        ),
        case(
            Op::Increment { key: b"k", by: 5 },
            b"\xC8\x60\0\0\0\x01\0\0\0\x05k",
            vec![
                (b"\0\0\0\0\x05", Got::Number(5)),
                (b"\0\x7F\xFF\xFF\xFF", Got::Number(i64::from(i32::MAX))),
                (b"\0\xFF\xFF\xFF\xFE", Got::Number(-2)),
                (
                    b"\0\x80\0\0\x01",
                    refused(
                        "the counter went past 2147483647 and around to -2147483647: it has 32 bits and is wrong from \
                         now on",
                    ),
                ),
                (b"\x01", refused(NO_SUM)),
            ],
        ),
        case(
            Op::Increment { key: b"k", by: -1 },
            b"\xC8\x60\0\0\0\x01\xFF\xFF\xFF\xFFk",
            vec![
                (b"\0\x80\0\0\0", Got::Number(i64::from(i32::MIN))),
                (
                    b"\0\x7F\xFF\xFF\xFF",
                    refused(
                        "the counter went past -2147483648 and around to 2147483647: it has 32 bits and is wrong from \
                         now on",
                    ),
                ),
            ],
        ),
        case(
            Op::Number(b"k"),
            b"\xC8\x30\0\0\0\x01k",
            vec![
                (b"\0\0\0\0\x04\x0C\0\0\0", Got::Number(12)),
                (b"\0\0\0\0\x04\xFE\xFF\xFF\xFF", Got::Number(-2)),
                (b"\x01", Got::Missing),
                (b"\0\0\0\0\x0212", refused("the value '12' is no counter")),
            ],
        ),
    ]
}

#[test]
fn hostile_answers_of_tokyo_tyrant_are_named() {
    let ab = keys(&[b"a", b"b"]);
    let cases: Vec<(Op<'_>, &[u8], &str)> = vec![
        (Op::Get(b"k"), b"\0\xFF\xFF\xFF\xFF", "a length of at most"),
        (Op::Get(b"k"), b"\0\x10\0\0\x01", "a length of at most"),
        (Op::GetMany(ab.lend()), b"\0\0\0\0\x03", "at most 2 records"),
        (Op::GetMany(ab.lend()), b"\0\0\0\0\x01\0\0\0\x01\0\0\0\x01cx", "in its order"),
        (Op::GetMany(ab.lend()), b"\0\0\0\0\x01\0\0\0\x01\xFF\0\0\0a", "a length of at most"),
        (Op::GetMany(ab.lend()), b"\0\0\0\0\x01\xFF\0\0\0\0\0\0\0a", "a length of at most"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, &op, answer, named);
    }
    let backwards = b"\0\0\0\0\x02\0\0\0\x01\0\0\0\x01bx\0\0\0\x01\0\0\0\x01ax";
    let twice = b"\0\0\0\0\x02\0\0\0\x01\0\0\0\x01ax\0\0\0\x01\0\0\0\x01ax";
    for answer in [backwards, twice] {
        is_garbled(codec, &Op::GetMany(ab.lend()), answer, "in its order");
    }
}

#[test]
fn what_tokyo_tyrant_has_no_means_for_is_named() {
    let ops = [
        Op::Increment { key: b"k", by: 1 << 31 },
        Op::Increment { key: b"k", by: (-1 << 31) - 1 },
        Op::GetVersion(b"k"),
        Op::Cas { key: b"k", version: 1, value: b"" },
        Op::Set { key: b"k", value: b"", ttl_s: Some(1) },
        Op::ReadTally(b"k"),
    ];
    for op in ops {
        let mut out = Vec::new();
        match codec().say(&op, &mut out) {
            Err(Fault::Unsupported(what)) => {
                assert!(what.contains("tokyotyrant") && what.contains(op.name()), "{what}")
            }
            other => panic!("{other:?}"),
        }
        assert!(out.is_empty());
    }
    let mut codec = codec();
    codec.say(&Op::Increment { key: b"k", by: -1 << 31 }, &mut Vec::new()).unwrap();
    assert_eq!(hear_all(codec.as_mut(), &[b"\0\x80\0\0\0"]).unwrap(), [Got::Number(-1 << 31)]);
}

#[test]
fn the_longest_key_is_taken_and_no_longer_one() {
    // Zeros that nobody reads take no memory: what is added is looked at after the key, and refused.
    let key = vec![0; (256 << 20) + 1];
    for (size, named) in [(256 << 20, "its counters have 32 bits"), (key.len(), "and this one has 268435457")] {
        match codec().say(&Op::Increment { key: &key[..size], by: 1 << 40 }, &mut Vec::new()) {
            Err(Fault::Unsupported(what)) => assert!(what.contains(named), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn statistics_of_tokyo_tyrant_are_read() {
    let text = b"version\t1.1.41\nrnum\t12\nno tab\n";
    let bytes = [&[0][..], &(text.len() as u32).to_be_bytes(), text].concat();
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    let expected = vec![pair("version", "1.1.41"), pair("rnum", "12")];
    assert_eq!(stats(&bytes).unwrap(), Some((bytes.len(), expected)));
    (0..bytes.len()).for_each(|cut| assert_eq!(stats(&bytes[..cut]).unwrap(), None));
    assert!(matches!(stats(b"\x01"), Err(Fault::Garbled(_))));
    assert!(matches!(stats(b"\0\xFF\xFF\xFF\xFF"), Err(Fault::Garbled(_))));
    assert_eq!(stats(b"\0\0\x0F\xFF\xFB").unwrap(), None, "1 MiB with its head");
    assert!(matches!(stats(b"\0\0\x0F\xFF\xFC"), Err(Fault::Garbled(_))));
}
