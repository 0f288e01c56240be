//! Our codec of the protocol of MySQL and MariaDB: what its ops say and hear, hostile answers.

mod held;

use kvfair::model::op::{Fault, Op, Pairs, Reply};
use kvfair::protocol::mysql::{Greeting, Mysql, Wording};
use kvfair::protocol::{Codec, Credentials, Decoded};

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

/// The answers to a set of a new key and to a get of "abc".
pub const STORED: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
pub const FOUND_ABC: &[u8] = b"\x01\0\0\x01\x01\x05\0\0\x02\x03defx\x05\0\0\x03\xfe\0\0\x02\0\
                               \x06\0\0\x04\0\0\x03abc\x05\0\0\x05\xfe\0\0\x02\0";
/// How that begins: its column.
const HEAD_BYTES: usize = 23;

/// As the server numbers statements: in the order in which they are prepared.
const GET: u8 = 1;
const SET: u8 = 2;
const SET_IF_ABSENT: u8 = 3;
const DELETE: u8 = 4;
const DELETE_TALLY: u8 = 5;
const INCREMENT: u8 = 6;
const NUMBER: u8 = 7;
const ADD: u8 = 8;
const GET_VERSION: u8 = 9;
const CAS: u8 = 10;
const READ_TALLY: u8 = 11;
const SCAN: u8 = 12;
const GET_TWO: u8 = 13;
const NUMBER_TWO: u8 = 14;
const SET_TWO: u8 = 15;
const ADD_TWO: u8 = 16;

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[number], payload].concat()
}

/// A statement has this number, and neither parameters nor columns that would be described.
fn prepared(id: u8) -> Vec<u8> {
    packet(1, &[0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn fresh() -> Mysql {
    let [user, database, nonce] = ["me", "base", ""].map(str::to_string);
    let greeting = Greeting::new(Credentials { user, password: None, database, nonce }, false, "mysql");
    let wording = Wording {
        statement: |statement, rows| format!("{statement:?} {rows}"),
        tally: "TALLY".to_string(),
        tally_end: " END".to_string(),
    };
    Mysql::new("mysql", greeting, wording)
}

/// With all statements prepared that the cases need, and the column of a get known.
fn ready() -> Mysql {
    let (mut codec, mut out) = (fresh(), Vec::new());
    codec.prepare_first(&mut out);
    let heard = hear_all(&mut codec, &[&[prepared(1), prepared(2)].concat()]).expect("two numbers");
    assert_eq!(heard, vec![Got::Greeted; 2]);
    let (two, added) = (keys(&[b"a", b"b"]), sums(&[("a", 1), ("b", 1)]));
    let (key, nothing) = (&b"k"[..], rows(&[]));
    let ops: [(Op<'_>, &[&[u8]]); 13] = [
        (Op::SetIfAbsent { key, value: b"" }, &[done(0)]),
        (Op::Delete(key), &[done(0), done(0)]),
        (Op::Increment { key, by: 0 }, &[done(0), rows_of(1, &[])]),
        (Op::Add { key, by: 1 }, &[done(1)]),
        (Op::GetVersion(key), &[nothing]),
        (Op::Cas { key, version: 1, value: b"" }, &[done(0)]),
        (Op::ReadTally(key), &[nothing]),
        (Op::Scan { from: key, limit: 1 }, &[nothing]),
        (Op::GetMany(two.lend()), &[nothing]),
        (Op::NumberMany(two.lend()), &[nothing]),
        (Op::SetMany(Pairs { keys: two.lend(), values: two.lend() }), &[done(0)]),
        (Op::AddMany(added.lend()), &[done(0)]),
        (Op::Get(key), &[FOUND_ABC]),
    ];
    let mut id = 3;
    for (op, answers) in ops {
        codec.say(&op, &mut out).expect("a question");
        while codec.pending() > 1 {
            hear_all(&mut codec, &[&prepared(id)]).expect("a number");
            id += 1;
        }
        hear_all(&mut codec, &[&answers.concat()]).expect("an answer");
        assert_eq!(codec.pending(), 0);
    }
    codec
}

pub fn codec() -> Box<dyn Codec> {
    Box::new(ready())
}

fn leaked(parts: &[&[u8]]) -> &'static [u8] {
    parts.concat().leak()
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Number(i64),
    Unsigned(u64),
    Null,
}

use Value::{Bytes, Null, Number, Unsigned};

impl Value<'_> {
    fn of_type(self) -> [u8; 2] {
        match self {
            Bytes(_) | Null => [0xfc, 0],
            Number(_) => [8, 0],
            Unsigned(_) => [8, 0x80],
        }
    }

    /// Of at most 250 bytes.
    fn bytes(self) -> Vec<u8> {
        match self {
            Bytes(bytes) => [&[bytes.len() as u8], bytes].concat(),
            Number(number) => number.to_le_bytes().to_vec(),
            Unsigned(number) => number.to_le_bytes().to_vec(),
            Null => Vec::new(),
        }
    }
}

fn executed(id: u8, parameters: &[Value<'_>]) -> Vec<u8> {
    let types: Vec<u8> = parameters.iter().flat_map(|parameter| parameter.of_type()).collect();
    let values: Vec<u8> = parameters.iter().flat_map(|parameter| parameter.bytes()).collect();
    let nulls = vec![0; parameters.len().div_ceil(8)];
    packet(0, &[&[0x17, id, 0, 0, 0, 0, 1, 0, 0, 0][..], &nulls, &[1], &types, &values].concat())
}

fn asked(id: u8, parameters: &[Value<'_>]) -> &'static [u8] {
    executed(id, parameters).leak()
}

/// Rows of one or two columns. Without any, two columns are described.
fn rows(list: &[&[Value<'_>]]) -> &'static [u8] {
    rows_of(list.first().map_or(2, |row| row.len()), list)
}

fn rows_of(columns: usize, list: &[&[Value<'_>]]) -> &'static [u8] {
    let end = b"\xfe\0\0\x02\0";
    let mut payloads = vec![vec![columns as u8]];
    payloads.extend(vec![b"\x03defx".to_vec(); columns]);
    payloads.push(end.to_vec());
    for row in list {
        let nulls = (0..).zip(*row).map(|(index, value)| u8::from(matches!(value, Null)) << (index + 2));
        let values: Vec<u8> = row.iter().flat_map(|value| value.bytes()).collect();
        payloads.push([&[0, nulls.sum()][..], &values].concat());
    }
    payloads.push(end.to_vec());
    (1..).zip(&payloads).flat_map(|(number, payload)| packet(number, payload)).collect::<Vec<u8>>().leak()
}

fn done_with(changed: u8, last_insert_id: &[u8], info: &[u8]) -> &'static [u8] {
    packet(1, &[&[0, changed], last_insert_id, b"\x02\0\0\0", info].concat()).leak()
}

fn done(changed: u8) -> &'static [u8] {
    done_with(changed, &[0], b"")
}

fn error(code: u16, words: &str) -> &'static [u8] {
    packet(1, &[&[0xff][..], &code.to_le_bytes(), b"#HY000", words.as_bytes()].concat()).leak()
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters(), lists()].concat()
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"b", b"a", b"b"]);
    vec![
        case(
            Op::Get(b"k"),
            b"\x10\0\0\0\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfc\0\x01k",
            vec![
                (FOUND_ABC, value(b"abc")),
                (rows(&[&[Bytes(b"")]]), value(b"")),
                (rows_of(1, &[]), Got::Missing),
                (error(1205, "Lock wait timeout"), refused("Lock wait timeout")),
                // In place of a row.
                (leaked(&[&FOUND_ABC[..HEAD_BYTES], b"\x0b\0\0\x04\xff\x25\x05#70100no"]), refused("no")),
            ],
        ),
        case(
            Op::GetVersion(b"k"),
            asked(GET_VERSION, &[Bytes(b"k")]),
            vec![
                (rows(&[&[Bytes(b"v"), Unsigned(u64::MAX)]]), Got::Versioned(b"v".to_vec(), u64::MAX)),
                (rows(&[&[Null, Null]]), refused("mysql has no get-version of a counter")),
                (rows(&[]), Got::Missing),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            asked(GET_TWO, &[Bytes(b"a"), Bytes(b"b")]),
            vec![
                (rows(&[]), Got::Values(vec![None, None, None])),
                (
                    rows(&[&[Bytes(b"b"), Bytes(b"")], &[Bytes(b"a"), Bytes(b"x")]]),
                    Got::Values(vec![Some(Vec::new()), Some(b"x".to_vec()), Some(Vec::new())]),
                ),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            asked(NUMBER_TWO, &[Bytes(b"a"), Bytes(b"b")]),
            vec![
                (rows(&[&[Bytes(b"b"), Number(-5)]]), Got::Numbers(vec![Some(-5), None, Some(-5)])),
                (rows(&[&[Bytes(b"a"), Null]]), refused("mysql: the record of key 'a' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let (ab, xy) = (keys(&[b"b", b"a"]), keys(&[b"x", b""]));
    let matched = |changed: u8| done_with(changed, &[0], b"\x28Rows matched: 1  Changed: 0  Warnings: 0");
    vec![
        case(
            Op::Set { key: b"k", value: b"vw", ttl_s: None },
            b"\x15\0\0\0\x17\x02\0\0\0\0\x01\0\0\0\0\x01\xfc\0\xfc\0\x01k\x02vw",
            vec![(STORED, Got::Done), (done(2), Got::Done), (error(1114, "full"), refused("full"))],
        ),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            asked(SET_TWO, &[Bytes(b"a"), Bytes(b""), Bytes(b"b"), Bytes(b"x")]),
            vec![(done_with(2, &[0], b"\x27Records: 2  Duplicates: 0  Warnings: 0"), Got::Done)],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            asked(SET_IF_ABSENT, &[Bytes(b"k"), Bytes(b"v")]),
            vec![(done(1), Got::Done), (done(0), Got::Conflict)],
        ),
        case(
            Op::Delete(b"k"),
            leaked(&[&executed(DELETE, &[Bytes(b"k")]), &executed(DELETE_TALLY, &[Bytes(b"k")])]),
            vec![
                (leaked(&[done(1), done(0)]), Got::Done),
                (leaked(&[done(0), done(3)]), Got::Done),
                (leaked(&[done(0), done(0)]), Got::Missing),
                (leaked(&[error(1205, "Lock wait timeout"), done(0)]), refused("Lock wait timeout")),
            ],
        ),
        case(
            Op::Cas { key: b"k", version: 5, value: b"v" },
            asked(CAS, &[Bytes(b"v"), Bytes(b"k"), Unsigned(5)]),
            vec![(matched(1), Got::Done), (matched(0), Got::Done), (done(0), Got::Conflict)],
        ),
    ]
}

fn counters() -> Vec<Case> {
    let both = sums(&[("b", -2), ("a", 5)]);
    let no_counter = refused("mysql: the record of key 'k' is no counter");
    let minus = b"\xfe\xfe\xff\xff\xff\xff\xff\xff\xff";
    let with_number = |id: u8| leaked(&[&executed(id, &[Bytes(b"k"), Number(0)]), &executed(NUMBER, &[Bytes(b"k")])]);
    vec![
        case(
            Op::Increment { key: b"k", by: -2 },
            asked(INCREMENT, &[Bytes(b"k"), Number(-2)]),
            vec![
                (done(1), Got::Number(-2)),
                (done_with(2, minus, b""), Got::Number(-2)),
                (done(0), no_counter.clone()),
                (error(1690, "BIGINT value is out of range"), refused("BIGINT value is out of range")),
            ],
        ),
        case(
            Op::Increment { key: b"k", by: 0 },
            with_number(INCREMENT),
            vec![
                (leaked(&[done(0), rows(&[&[Number(7)]])]), Got::Number(7)),
                (leaked(&[done(0), rows(&[&[Null]])]), no_counter.clone()),
            ],
        ),
        case(
            Op::Add { key: b"k", by: 5 },
            asked(ADD, &[Bytes(b"k"), Number(5)]),
            vec![(done(1), Got::Done), (done(2), Got::Done), (done(0), no_counter.clone())],
        ),
        case(
            Op::Add { key: b"k", by: 0 },
            with_number(ADD),
            vec![
                (leaked(&[done(1), rows(&[&[Number(0)]])]), Got::Done),
                (leaked(&[done(0), rows(&[&[Null]])]), no_counter.clone()),
            ],
        ),
        case(
            Op::AddMany(both.lend()),
            asked(ADD_TWO, &[Bytes(b"a"), Number(5), Bytes(b"b"), Number(-2)]),
            vec![(done(3), Got::Done)],
        ),
        case(
            Op::Number(b"k"),
            asked(NUMBER, &[Bytes(b"k")]),
            vec![
                (rows(&[&[Number(-2)]]), Got::Number(-2)),
                (rows(&[&[Null]]), no_counter),
                (rows_of(1, &[]), Got::Missing),
            ],
        ),
    ]
}

fn lists() -> Vec<Case> {
    let (records, fields) = (keys(&[b"r\xff"]), keys(&[b"f", b""]));
    vec![
        case(
            Op::Tally { records: records.lend(), fields: fields.lend(), by: -5 },
            packet(0, b"\x03TALLY (x'72ff', x'', -5), (x'72ff', x'66', -5) END").leak(),
            vec![(done(2), Got::Done)],
        ),
        case(
            Op::ReadTally(b"r"),
            asked(READ_TALLY, &[Bytes(b"r")]),
            vec![
                (
                    rows(&[&[Bytes(b"f"), Number(5)], &[Bytes(b""), Number(-2)]]),
                    Got::Rows(vec![(b"f".to_vec(), b"5".to_vec()), (Vec::new(), b"-2".to_vec())]),
                ),
                (rows(&[]), Got::Missing),
            ],
        ),
        case(
            Op::Scan { from: b"k", limit: 5 },
            asked(SCAN, &[Bytes(b"k"), Unsigned(5)]),
            vec![
                (rows(&[&[Bytes(b"k"), Bytes(b"v")]]), Got::Rows(vec![(b"k".to_vec(), b"v".to_vec())])),
                (rows(&[]), Got::Rows(Vec::new())),
            ],
        ),
    ]
}

/// An answer to a get of this value, which is longer than a packet.
pub fn found(value: &[u8]) -> Vec<u8> {
    const FULL: usize = 0xff_ffff;
    let length = (value.len() as u64).to_le_bytes();
    let row = [&[0, 0, 0xfe], &length[..], value].concat();
    let mut answer = FOUND_ABC[..HEAD_BYTES].to_vec();
    let parts: Vec<&[u8]> = row.chunks(FULL).collect();
    for (number, part) in (4..).zip(&parts) {
        answer.extend(packet(number, part));
    }
    answer.extend(packet(4 + parts.len() as u8, b"\xfe\0\0\x02\0"));
    answer
}

#[test]
fn limits_of_the_store_are_refused_before_anything_is_sent() {
    let (mut codec, mut out) = (ready(), b"before".to_vec());
    codec.limit_packets(1 << 20);
    let (commands, long, large) = (codec.commands(), vec![b'k'; 3073], vec![b'v'; 1 << 20]);
    let list = keys(&[b"k", &long]);
    for op in [
        Op::Get(&long),
        Op::GetMany(list.lend()),
        Op::ReadTally(&long[..1537]),
        Op::Set { key: b"k", value: &large, ttl_s: None },
        Op::Set { key: b"k", value: b"v", ttl_s: Some(1) },
    ] {
        assert!(matches!(codec.say(&op, &mut out), Err(Fault::Unsupported(_))), "{}", op.name());
        assert_eq!((out.as_slice(), codec.pending(), codec.commands()), (&b"before"[..], 0, commands), "{}", op.name());
    }
}

/// Longer than a packet of the protocol.
#[test]
fn a_long_value_goes_in_several_packets() {
    let value = vec![b'v'; (16 << 20) + 5];
    let (mut codec, mut out) = (ready(), Vec::new());
    codec.say(&Op::Set { key: b"k", value: &value, ttl_s: None }, &mut out).expect("a question");
    assert_eq!(out[..4], [0xff, 0xff, 0xff, 0]);
    let second = 4 + 0xff_ffff;
    let rest = out.len() - second - 4;
    assert_eq!(out[second..second + 4], [rest as u8, (rest >> 8) as u8, 0, 1]);
    assert_eq!(hear_all(&mut codec, &[STORED]).expect("an answer"), [Got::Done]);
}

#[test]
fn hostile_answers_are_garbled() {
    let (get, ab) = (Op::Get(b"k"), keys(&[b"a", b"b"]));
    let many = Op::GetMany(ab.lend());
    let cases: [(&Op<'_>, &[u8], &str); 9] = [
        (&get, STORED, "prepared statement"),
        (&get, rows(&[&[Bytes(b"1"), Bytes(b"2")]]), "prepared statement"),
        (&get, rows(&[&[Null]]), "a row"),
        (&get, rows(&[&[Bytes(b"1")], &[Bytes(b"2")]]), "a row"),
        (&get, b"\x01\0\0\x01\x01\x05\0\0\x03\x03defx", "packet 2"),
        (&Op::Number(b"k"), rows(&[&[Bytes(b"12")]]), "a row"),
        (&many, rows(&[&[Bytes(b"c"), Bytes(b"1")]]), "a row"),
        (&many, rows(&[&[Bytes(b"a"), Bytes(b"1")], &[Bytes(b"a"), Bytes(b"2")]]), "a row"),
        (&Op::Delete(b"k"), leaked(&[done(0), rows(&[])]), "prepared statement"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, op, answer, named);
    }
}

#[test]
fn a_server_that_is_stopped_loses_the_connection() {
    let instead_of_a_row = leaked(&[&FOUND_ABC[..HEAD_BYTES], b"\x12\0\0\x04\xff\x87\x07#70100is killed"]);
    for (is_asked, answer) in [
        (true, error(1053, "it is stopped")),
        (true, instead_of_a_row),
        // One on which nothing was asked for long.
        (false, error(4031, "it is closed")),
    ] {
        let mut codec = codec();
        if is_asked {
            codec.say(&Op::Get(b"k"), &mut Vec::new()).expect("a question");
        }
        // It may come in two pieces.
        let used = match codec.hear(&answer[..answer.len() - 1], &mut Vec::new()).expect("a part of it") {
            Some((used, Decoded::Again)) => used,
            None => 0,
            other => panic!("{other:?}"),
        };
        match codec.hear(&answer[used..], &mut Vec::new()) {
            Err(Fault::Lost(error)) => assert!(error.to_string().contains("is "), "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A refusal of one statement of an op must not be taken for the next op's.
#[test]
fn a_refusal_is_of_its_own_op() {
    let (mut codec, mut out) = (ready(), Vec::new());
    codec.say(&Op::Delete(b"k"), &mut out).expect("a question");
    codec.say(&Op::Set { key: b"k", value: b"v", ttl_s: None }, &mut out).expect("a question");
    assert!(matches!(codec.hear(error(1205, "no"), &mut out), Ok(Some((_, Decoded::Again)))));
    assert_eq!(codec.hear_plain(STORED), None);
    let heard = hear_all(&mut codec, &[done(0), STORED]).expect("two answers");
    assert_eq!(heard, [refused("no"), Got::Done]);
    codec.say(&Op::Get(b"k"), &mut out).expect("a question");
    assert_eq!(codec.hear_plain(FOUND_ABC), Some((FOUND_ABC.len(), Reply::Value(b"abc"))));
}
