//! Our codec of memcached's binary protocol: what its ops say and hear, hostile answers, many questions at once.

use kvfair::model::op::{Fault, Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::memcache::{Binary, noop};

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const ADD: u8 = 0x02;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const DECREMENT: u8 = 0x06;
const GET_QUIETLY: u8 = 0x09;
const NOOP: u8 = 0x0a;
const SET_QUIETLY: u8 = 0x11;
const INCREMENT_QUIETLY: u8 = 0x15;

pub fn codec() -> Box<dyn Codec> {
    Box::new(Binary::new("memcached"))
}

fn frame(magic: u8, command: u8, status: u16, number: u32, version: u64, parts: [&[u8]; 3]) -> Vec<u8> {
    let [extras, key, value] = parts;
    let body = (extras.len() + key.len() + value.len()) as u32;
    let mut bytes = vec![magic, command];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0]);
    bytes.extend(status.to_be_bytes());
    bytes.extend(body.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    [&bytes[..], extras, key, value].concat()
}

pub fn answer(command: u8, status: u16, number: u32, version: u64, extras: &[u8], value: &[u8]) -> Vec<u8> {
    frame(0x81, command, status, number, version, [extras, b"", value])
}

fn question(command: u8, number: u32, version: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    frame(0x80, command, 0, number, version, [extras, key, value])
}

/// The answer to a get-many of so many keys that are all there.
pub fn many(count: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..count).flat_map(|index| answer(GET_QUIETLY, 0, index, 0, b"\0\0\0\0", b"12345678")).collect();
    bytes.extend(answer(NOOP, 0, count, 0, b"", b""));
    bytes
}

/// The head of an answer to a get whose body has so many bytes.
pub fn head_of(body: u32) -> Vec<u8> {
    let mut bytes = answer(GET, 0, 0, 0, b"", b"");
    bytes[8..12].copy_from_slice(&body.to_be_bytes());
    bytes
}

fn kept(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

fn one(op: Op<'static>, said: Vec<u8>, answers: Vec<(Vec<u8>, Got)>) -> Case {
    case(op, kept(said), answers.into_iter().map(|(answer, got)| (kept(answer), got)).collect())
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters()].concat()
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    let flags = b"\0\0\0\0";
    let found = |index, data: &[u8]| answer(GET_QUIETLY, 0, index, 9, flags, data);
    let end = answer(NOOP, 0, 2, 0, b"", b"");
    let asked = [
        question(GET_QUIETLY, 0, 0, b"", b"a b", b""),
        question(GET_QUIETLY, 1, 0, b"", b"b", b""),
        question(NOOP, 2, 0, b"", b"", b""),
    ]
    .concat();
    vec![
        one(
            Op::Get(b"k\r\n%"),
            question(GET, 0, 0, b"", b"k\r\n%", b""),
            vec![
                (answer(GET, 1, 0, 0, b"", b"Not found"), Got::Missing),
                (answer(GET, 0, 0, 5, flags, b""), value(b"")),
                (answer(GET, 0, 0, 5, flags, b"\x81\0"), value(b"\x81\0")),
                (answer(GET, 0x82, 0, 0, b"", b"Out of memory"), refused("Out of memory")),
                (answer(GET, 0x84, 0, 0, b"", b""), refused("status 132")),
            ],
        ),
        one(
            Op::GetVersion(b"k"),
            question(GET, 0, 0, b"", b"k", b""),
            vec![(answer(GET, 0, 0, u64::MAX, flags, b"v"), Got::Versioned(b"v".to_vec(), u64::MAX))],
        ),
        one(
            Op::GetMany(ab.lend()),
            asked.clone(),
            vec![
                (end.clone(), Got::Values(vec![None, None])),
                ([found(1, b"x"), end.clone()].concat(), Got::Values(vec![None, Some(b"x".to_vec())])),
                (
                    [found(0, b""), found(1, b"y"), end.clone()].concat(),
                    Got::Values(vec![Some(Vec::new()), Some(b"y".to_vec())]),
                ),
                (
                    [answer(GET_QUIETLY, 0x82, 0, 0, b"", b"Out of memory"), end.clone()].concat(),
                    refused("Out of memory"),
                ),
            ],
        ),
        one(
            Op::NumberMany(ab.lend()),
            asked,
            vec![
                ([found(1, b"9  "), end.clone()].concat(), Got::Numbers(vec![None, Some(9)])),
                ([found(0, b"x"), found(1, b"9"), end].concat(), refused("the value 'x' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    let xy = keys(&[b"x", b""]);
    let (none, minute) = (b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\x3C");
    let large = |size| {
        let limit = "items are limited to 1 MiB unless the server is started with -I";
        refused(&format!("Too large.: a value of {size} bytes; {limit}"))
    };
    let done = |command| (answer(command, 0, 0, 3, b"", b""), Got::Done);
    let end = answer(NOOP, 0, 2, 0, b"", b"");
    vec![
        one(
            Op::Set { key: b"k", value: b"vw", ttl_s: None },
            question(SET, 0, 0, none, b"k", b"vw"),
            vec![done(SET), (answer(SET, 3, 0, 0, b"", b"Too large."), large(2))],
        ),
        one(
            Op::Set { key: b"k", value: b"", ttl_s: Some(60) },
            question(SET, 0, 0, minute, b"k", b""),
            vec![done(SET)],
        ),
        one(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            [
                question(SET_QUIETLY, 0, 0, none, b"a b", b"x"),
                question(SET_QUIETLY, 1, 0, none, b"b", b""),
                question(NOOP, 2, 0, b"", b"", b""),
            ]
            .concat(),
            vec![
                (end.clone(), Got::Done),
                ([answer(SET_QUIETLY, 3, 1, 0, b"", b"Too large."), end].concat(), large(1)),
            ],
        ),
        one(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            question(ADD, 0, 0, none, b"k", b"v"),
            vec![done(ADD), (answer(ADD, 2, 0, 0, b"", b"Data exists for key."), Got::Conflict)],
        ),
        one(
            Op::Cas { key: b"k", version: 7, value: b"v" },
            question(SET, 0, 7, none, b"k", b"v"),
            vec![
                done(SET),
                (answer(SET, 2, 0, 0, b"", b"Data exists for key."), Got::Conflict),
                (answer(SET, 1, 0, 0, b"", b"Not found"), Got::Conflict),
            ],
        ),
        one(
            Op::Delete(b"k"),
            question(DELETE, 0, 0, b"", b"k", b""),
            vec![done(DELETE), (answer(DELETE, 1, 0, 0, b"", b"Not found"), Got::Missing)],
        ),
    ]
}

fn counters() -> Vec<Case> {
    let extras = |by: i64| [&by.to_be_bytes()[..], &by.to_be_bytes(), &[0; 4]].concat();
    let never_made = |by: i64| [&by.to_be_bytes()[..], &by.to_be_bytes(), &[0xff; 4]].concat();
    let sum = |sum: u64| answer(INCREMENT, 0, 0, 4, b"", &sum.to_be_bytes());
    let left = |left: u64| answer(DECREMENT, 0, 1, 4, b"", &left.to_be_bytes());
    vec![
        one(
            Op::Increment { key: b"k", by: 5 },
            question(INCREMENT, 0, 0, &extras(5), b"k", b""),
            vec![
                (sum(5), Got::Number(5)),
                (sum(i64::MAX as u64), Got::Number(i64::MAX)),
                (answer(INCREMENT, 6, 0, 0, b"", b"Non-numeric"), refused("Non-numeric")),
            ],
        ),
        one(
            Op::Increment { key: b"k", by: 0 },
            question(INCREMENT, 0, 0, &extras(0), b"k", b""),
            vec![(sum(7), Got::Number(7))],
        ),
        one(
            Op::Increment { key: b"k", by: -5 },
            [
                question(INCREMENT, 0, 0, &never_made(0), b"k", b""),
                question(DECREMENT, 1, 0, &never_made(5), b"k", b""),
            ]
            .concat(),
            vec![
                ([sum(12), left(7)].concat(), Got::Number(7)),
                ([sum(5), left(0)].concat(), Got::Number(0)),
                (
                    [answer(INCREMENT, 1, 0, 0, b"", b"Not found"), answer(DECREMENT, 1, 1, 0, b"", b"Not found")]
                        .concat(),
                    refused("counters cannot be below 0 or above 9223372036854775807: this one would be -5"),
                ),
            ],
        ),
        one(
            Op::Add { key: b"k", by: 5 },
            question(INCREMENT, 0, 0, &extras(5), b"k", b""),
            vec![(sum(9), Got::Done), (answer(INCREMENT, 6, 0, 0, b"", b"Non-numeric"), refused("Non-numeric"))],
        ),
        one(
            Op::AddMany(sums(&[("a", 1), ("bc", 2)]).lend()),
            [
                question(INCREMENT_QUIETLY, 0, 0, &extras(1), b"a", b""),
                question(INCREMENT_QUIETLY, 1, 0, &extras(2), b"bc", b""),
                question(NOOP, 2, 0, b"", b"", b""),
            ]
            .concat(),
            vec![
                (answer(NOOP, 0, 2, 0, b"", b""), Got::Done),
                (
                    [answer(INCREMENT_QUIETLY, 6, 1, 0, b"", b"Non-numeric"), answer(NOOP, 0, 2, 0, b"", b"")].concat(),
                    refused("Non-numeric"),
                ),
            ],
        ),
        one(
            Op::Number(b"k"),
            question(GET, 0, 0, b"", b"k", b""),
            vec![(answer(GET, 0, 0, 4, b"\0\0\0\0", b"12"), Got::Number(12))],
        ),
    ]
}

#[test]
fn hostile_answers_of_the_binary_protocol_are_named() {
    let ab = keys(&[b"a", b"b"]);
    let found = |number| answer(GET_QUIETLY, 0, number, 0, b"\0\0\0\0", b"x");
    let sum = |command, number| answer(command, 0, number, 0, b"", &[0; 8]);
    let lower = Op::Increment { key: b"k", by: -1 };
    let mut short = answer(GET, 0, 0, 0, b"\0\0\0\0", b"");
    short[8..12].copy_from_slice(&3_u32.to_be_bytes());
    let many = Op::GetMany(ab.lend());
    let cases: Vec<(Op<'_>, Vec<u8>, &str)> = vec![
        (Op::Get(b"k"), b"VALUE k 0 1\r\nv\r\nEND\r\n".to_vec(), "an answer's head"),
        (Op::Get(b"k"), answer(GET, 0, 1, 0, b"\0\0\0\0", b"x"), "the answer to question 0"),
        (Op::Get(b"k"), answer(SET, 0, 0, 0, b"", b""), "the answer to question 0"),
        (Op::Get(b"k"), head_of(u32::MAX), "a body of at most"),
        (Op::Get(b"k"), short, "a body of at most"),
        (Op::Increment { key: b"k", by: 1 }, answer(INCREMENT, 0, 0, 0, b"", b"1234567"), "eight bytes"),
        (lower, sum(INCREMENT, 1), "the answer to question 0"),
        (lower, sum(DECREMENT, 0), "the answer to question 0"),
        (lower, [sum(INCREMENT, 0), sum(DECREMENT, 2)].concat(), "the answer to question 1"),
        (lower, [sum(INCREMENT, 0), sum(INCREMENT, 1)].concat(), "the answer to question 1"),
        (many, [found(1), found(0)].concat(), "in its order"),
        (many, [found(0), found(0)].concat(), "in its order"),
        (many, found(2), "in its order"),
        (many, found(3), "in its order"),
        (many, answer(NOOP, 0, 1, 0, b"", b""), "in its order"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, &op, &answer, named);
    }
}

#[test]
fn questions_in_flight_are_told_apart_by_their_numbers() {
    let (ab, added) = (keys(&[b"a", b"b"]), sums(&[("a", 1), ("b", 2)]));
    let flags = b"\0\0\0\0";
    let (mut codec, mut out) = (codec(), Vec::new());
    let set_many = Op::SetMany(Pairs { keys: ab.lend(), values: ab.lend() });
    for _ in 0..1000 {
        let before = codec.commands() as u32;
        for op in [Op::Get(b"a"), Op::GetMany(ab.lend()), set_many, Op::AddMany(added.lend()), Op::Delete(b"b")] {
            codec.say(&op, &mut out).unwrap();
        }
        let answers = [
            answer(GET, 0, before, 1, flags, b"x"),
            answer(GET_QUIETLY, 0, before + 2, 1, flags, b"y"),
            answer(NOOP, 0, before + 3, 0, b"", b""),
            answer(NOOP, 0, before + 6, 0, b"", b""),
            answer(NOOP, 0, before + 9, 0, b"", b""),
            answer(DELETE, 1, before + 10, 0, b"", b"Not found"),
        ]
        .concat();
        let pieces: Vec<&[u8]> = answers.chunks(7).collect();
        let values = Got::Values(vec![None, Some(b"y".to_vec())]);
        let expected = [value(b"x"), values, Got::Done, Got::Done, Got::Missing];
        assert_eq!(hear_all(codec.as_mut(), &pieces).unwrap(), expected);
    }
    assert_eq!((codec.pending(), codec.commands()), (0, 11_000));
}

#[test]
fn the_answer_to_a_noop_is_read_once_it_is_whole_and_nothing_else_is() {
    let whole = answer(NOOP, 0, 0, 0, b"", b"");
    assert_eq!(noop(&[&whole[..], b"more"].concat()).unwrap(), Some((24, ())));
    (0..24).for_each(|cut| assert_eq!(noop(&whole[..cut]).unwrap(), None));
    let refusal = noop(&answer(NOOP, 0x20, 0, 0, b"", b"Auth failure."));
    assert!(matches!(refusal, Err(Fault::Refused(words)) if words == "Auth failure."));
    for garbled in [&answer(GET, 0, 0, 0, b"", b"")[..], b"ERROR\r\n"] {
        assert!(matches!(noop(garbled), Err(Fault::Garbled(_))));
    }
}
