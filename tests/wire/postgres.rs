//! Our codec of PostgreSQL's protocol: what its ops say and hear, logins, hostile answers.

use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply};
use kvfair::protocol::postgres::{Greeting, Postgres, prepare_first};
use kvfair::protocol::{Codec, Credentials, Decoded};

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

/// The answers to a set and to a get of "abc", as a server of ours has sent them.
pub const STORED: &[u8] = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";
pub const FOUND_ABC: &[u8] = b"2\0\0\0\x04D\0\0\0\x0d\0\x01\0\0\0\x03abcC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

const READY: &[u8] = b"Z\0\0\0\x05I";
/// What a server may say at any time: a notice, and a parameter's new value.
const BESIDE: &[u8] = b"N\0\0\0\x0dMa hint\0\0S\0\0\0\x0bTZ\0UTC\0";
const OVERFLOW: &[u8] = b"E\0\0\0\x28VERROR\0C22003\0Mbigint out of range\0\0";

fn greeting(password: Option<&str>) -> Greeting {
    let [user, database, nonce] = ["me", "base", "rOprNGfwEbeRWgbNEkqO"].map(str::to_string);
    Greeting::new(Credentials { user, password: password.map(str::to_string), database, nonce }, false, String::new())
}

fn fresh(password: Option<&str>) -> Postgres {
    Postgres::new("postgres", |statement| format!("{statement:?}"), greeting(password))
}

/// With all statements prepared.
pub fn codec() -> Box<dyn Codec> {
    let (mut codec, mut out) = (fresh(None), Vec::new());
    for case in cases() {
        codec.say(&case.op, &mut out).expect("a question");
        hear_all(&mut codec, &[case.answers[0].0]).expect("an answer");
    }
    Box::new(codec)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn field(bytes: Option<&[u8]>) -> Vec<u8> {
    let length = bytes.map_or(u32::MAX, |bytes| bytes.len() as u32);
    [&length.to_be_bytes()[..], bytes.unwrap_or_default()].concat()
}

fn row(columns: &[Option<&[u8]>]) -> Vec<u8> {
    let fields: Vec<u8> = columns.iter().flat_map(|column| field(*column)).collect();
    message(b'D', &[&(columns.len() as u16).to_be_bytes()[..], &fields].concat())
}

fn leaked(parts: &[&[u8]]) -> &'static [u8] {
    parts.concat().leak()
}

/// What an op is asked by.
fn asked(letter: u8, parameters: &[&[u8]]) -> &'static [u8] {
    let fields: Vec<u8> = parameters.iter().flat_map(|parameter| field(Some(parameter))).collect();
    let count = (parameters.len() as u16).to_be_bytes();
    let bind = message(b'B', &[&[0, letter, 0, 0, 1, 0, 1], &count[..], &fields, b"\0\x01\0\x01"].concat());
    leaked(&[&bind, b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"])
}

/// An array of one dimension.
fn array(of_type: u8, elements: &[&[u8]]) -> Vec<u8> {
    let fields: Vec<u8> = elements.iter().flat_map(|element| field(Some(element))).collect();
    let [count, one] = [elements.len() as u32, 1].map(u32::to_be_bytes);
    [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, of_type][..], &count, &one, &fields].concat()
}

/// An answer of these rows.
fn rows(list: &[&[Option<&[u8]>]], tag: &str) -> &'static [u8] {
    let rows: Vec<u8> = list.iter().flat_map(|columns| row(columns)).collect();
    leaked(&[b"2\0\0\0\x04", &rows, &message(b'C', &[tag.as_bytes(), b"\0"].concat()), READY])
}

fn done(tag: &str) -> &'static [u8] {
    rows(&[], tag)
}

const FIVE: &[u8] = b"\0\0\0\0\0\0\0\x05";
const MINUS: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xfe";

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters(), lists()].concat()
}

fn reads() -> Vec<Case> {
    let (ab, list) = (keys(&[b"a", b"b", b"a"]), array(17, &[b"a", b"b", b"a"]));
    let found = |columns: [Option<&[u8]>; 2]| rows(&[&columns], "SELECT 1");
    vec![
        case(
            Op::Get(b"k"),
            b"B\0\0\0\x16\0a\0\0\x01\0\x01\0\x01\0\0\0\x01k\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
            vec![
                (FOUND_ABC, value(b"abc")),
                (rows(&[&[Some(b"")]], "SELECT 1"), value(b"")),
                (done("SELECT 0"), Got::Missing),
                (leaked(&[BESIDE, FOUND_ABC, BESIDE]), value(b"abc")),
                (leaked(&[&FOUND_ABC[..5], BESIDE, &FOUND_ABC[5..]]), value(b"abc")),
            ],
        ),
        case(
            Op::GetVersion(b"k"),
            asked(b'l', &[b"k"]),
            vec![
                (found([Some(b"v"), Some(FIVE)]), Got::Versioned(b"v".to_vec(), 5)),
                (found([None, Some(FIVE)]), refused("postgres has no get-version of a counter")),
                (done("SELECT 0"), Got::Missing),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            asked(b'b', &[&list]),
            vec![
                (done("SELECT 0"), Got::Values(vec![None, None, None])),
                (
                    rows(&[&[Some(b"b"), Some(b"")], &[Some(b"a"), Some(b"x")]], "SELECT 2"),
                    Got::Values(vec![Some(b"x".to_vec()), Some(Vec::new()), Some(b"x".to_vec())]),
                ),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            asked(b'k', &[&list]),
            vec![
                (found([Some(b"a"), Some(FIVE)]), Got::Numbers(vec![Some(5), None, Some(5)])),
                (found([Some(b"b"), None]), refused("postgres: the record of key 'b' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let (ab, xy) = (keys(&[b"a", b"b"]), keys(&[b"x", b""]));
    let (list, values) = (array(17, &[b"a", b"b"]), array(17, &[b"x", b""]));
    let full = b"E\0\0\0\x19VERROR\0C53100\0Mfull\0\0";
    vec![
        case(
            Op::Set { key: b"k", value: b"vw", ttl_s: None },
            b"B\0\0\0\x1c\0c\0\0\x01\0\x01\0\x02\0\0\0\x01k\0\0\0\x02vw\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
            vec![
                (STORED, Got::Done),
                (leaked(&[b"2\0\0\0\x04", full, READY]), refused("full")),
                (leaked(&[full, READY]), refused("full")),
                (leaked(&[&STORED[..21], BESIDE, READY]), Got::Done),
            ],
        ),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            asked(b'd', &[&list, &values]),
            vec![(done("INSERT 0 2"), Got::Done)],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            asked(b'e', &[b"k", b"v"]),
            vec![(done("INSERT 0 1"), Got::Done), (done("INSERT 0 0"), Got::Conflict)],
        ),
        case(
            Op::Delete(b"k"),
            asked(b'f', &[b"k"]),
            vec![
                (rows(&[&[Some(b"\0\0\0\0\0\0\0\x01")]], "SELECT 1"), Got::Done),
                (rows(&[&[Some(b"\0\0\0\0\0\0\0\0")]], "SELECT 1"), Got::Missing),
            ],
        ),
        case(
            Op::Cas { key: b"k", version: 5, value: b"v" },
            asked(b'm', &[b"k", b"v", FIVE]),
            vec![(done("UPDATE 1"), Got::Done), (done("UPDATE 0"), Got::Conflict)],
        ),
    ]
}

fn counters() -> Vec<Case> {
    let both = sums(&[("a", 5), ("b", -2)]);
    let no_counter = refused("postgres: the record of key 'k' is no counter");
    let number = |column: Option<&[u8]>| rows(&[&[column]], "SELECT 1");
    vec![
        case(
            Op::Increment { key: b"k", by: -2 },
            asked(b'g', &[b"k", MINUS]),
            vec![
                (rows(&[&[Some(FIVE)]], "INSERT 0 1"), Got::Number(5)),
                (done("INSERT 0 0"), no_counter.clone()),
                (leaked(&[b"2\0\0\0\x04", OVERFLOW, READY]), refused("bigint out of range")),
            ],
        ),
        case(
            Op::Add { key: b"k", by: 5 },
            asked(b'h', &[b"k", FIVE]),
            vec![(done("INSERT 0 1"), Got::Done), (done("INSERT 0 0"), no_counter.clone())],
        ),
        case(
            Op::AddMany(both.lend()),
            asked(b'i', &[&array(17, &[b"a", b"b"]), &array(20, &[FIVE, MINUS])]),
            vec![
                (done("INSERT 0 2"), Got::Done),
                (done("INSERT 0 1"), refused("postgres: 1 of the records to add to are no counters")),
            ],
        ),
        case(
            Op::Number(b"k"),
            asked(b'j', &[b"k"]),
            vec![(number(Some(MINUS)), Got::Number(-2)), (number(None), no_counter), (done("SELECT 0"), Got::Missing)],
        ),
    ]
}

fn lists() -> Vec<Case> {
    let (records, fields) = (keys(&[b"r"]), keys(&[b"f", b""]));
    vec![
        case(
            Op::Tally { records: records.lend(), fields: fields.lend(), by: 5 },
            asked(b'n', &[&array(17, &[b"r"]), &array(17, &[b"f", b""]), FIVE]),
            vec![(done("INSERT 0 2"), Got::Done)],
        ),
        case(
            Op::ReadTally(b"r"),
            asked(b'o', &[b"r"]),
            vec![
                (
                    rows(&[&[Some(b"f"), Some(FIVE)], &[Some(b""), Some(MINUS)]], "SELECT 2"),
                    Got::Rows(vec![(b"f".to_vec(), b"5".to_vec()), (Vec::new(), b"-2".to_vec())]),
                ),
                (done("SELECT 0"), Got::Missing),
            ],
        ),
        case(
            Op::Scan { from: b"k", limit: 5 },
            asked(b'p', &[b"k", FIVE]),
            vec![
                (rows(&[&[Some(b"k"), Some(b"v")]], "SELECT 1"), Got::Rows(vec![(b"k".to_vec(), b"v".to_vec())])),
                (done("SELECT 0"), Got::Rows(Vec::new())),
            ],
        ),
    ]
}

/// An answer to a get of this value.
pub fn found(value: &[u8]) -> Vec<u8> {
    rows(&[&[Some(value)]], "SELECT 1").to_vec()
}

/// So many keys, and the answer where all of them are there.
pub fn many(count: usize) -> (KeyList, Vec<u8>) {
    let names: Vec<String> = (0..count).map(|index| format!("{index:07}")).collect();
    let list = names.iter().map(String::as_bytes).collect();
    let found: Vec<u8> = names.iter().rev().flat_map(|name| row(&[Some(name.as_bytes()), Some(b"12345678")])).collect();
    let end = message(b'C', format!("SELECT {count}\0").as_bytes());
    (list, [b"2\0\0\0\x04", &found[..], &end, READY].concat())
}

/// In the write of its first use, and never again.
#[test]
fn a_statement_is_prepared_when_it_is_first_used() {
    let first = prepare_first(|statement| format!("{statement:?}"));
    assert_eq!(first, b"P\0\0\0\x0ca\0Get\0\0\0P\0\0\0\x0cc\0Set\0\0\0S\0\0\0\x04");
    let mut codec = fresh(None);
    let mut letters = vec![b'a', b'c'];
    for case in cases() {
        let (mut out, mut again) = (Vec::new(), Vec::new());
        codec.say(&case.op, &mut out).expect("a question");
        let parsed = out.strip_suffix(case.said).expect("it ends as ever");
        if let [b'P', _, _, _, _, letter, 0, ..] = parsed {
            letters.push(*letter);
            assert!(parsed.ends_with(b"\0\0\0"), "{}", parsed.escape_ascii());
        }
        let answer = if parsed.is_empty() { case.answers[0].0 } else { leaked(&[b"1\0\0\0\x04", case.answers[0].0]) };
        assert_eq!(hear_all(&mut codec, &[answer]).expect("an answer"), [case.answers[0].1.clone()]);
        codec.say(&case.op, &mut again).expect("a question");
        assert_eq!(again, case.said);
        hear_all(&mut codec, &[case.answers[0].0]).expect("an answer");
    }
    letters.sort_unstable();
    assert_eq!(letters, (b'a'..=b'p').collect::<Vec<_>>());
}

/// The messages of a server of version 15 with the example of RFC 7677, and what the client says to each.
#[test]
fn a_login_is_proven_by_both() {
    let challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    let sasl = |kind: u32, text: &[u8]| message(b'R', &[&kind.to_be_bytes()[..], text].concat());
    let heard = [
        sasl(10, b"SCRAM-SHA-256\0\0"),
        sasl(11, challenge),
        sasl(0, b""),
        message(b'S', b"server_version\x0015.18\0"),
        message(b'K', b"12345678"),
        READY.to_vec(),
    ];
    let log_in = |password: &str, heard: &[Vec<u8>]| {
        let mut codec = fresh(Some(password));
        let mut out = Vec::new();
        codec.hello(&mut out);
        assert_eq!(codec.pending(), 1);
        let bytes = heard.concat();
        let mut used = 0;
        while let Some((taken, decoded)) = codec.hear(&bytes[used..], &mut out)? {
            used += taken;
            if decoded == Decoded::Greeted {
                return Ok((used == bytes.len(), out));
            }
        }
        Ok((false, out))
    };
    // A server that lets in without its own proof knows no password.
    let error: Fault = log_in("pencil", &heard).expect_err("nothing was proven");
    assert!(error.to_string().contains("the server's own proof"), "{error}");
    // By a program that is not ours, for the empty name that stands here.
    let proven = [&heard[..2], &[sasl(12, b"v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg=")], &heard[2..]].concat();
    assert!(log_in("pencil", &proven).expect("both have proven it").0);
    let forged = [&heard[..2], &[sasl(12, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")], &heard[2..]].concat();
    assert!(log_in("pencil", &forged).is_err(), "another name's signature");
    let (is_in, said) = log_in("pencil", &heard[..2]).expect("a proof");
    assert!(!is_in && said.windows(2).any(|pair| pair == b"p="), "{}", said.escape_ascii());
    assert!(!said.windows(6).any(|part| part == b"pencil"), "the password is not sent");
}

#[test]
fn a_server_that_wants_a_password_or_is_not_ready_says_so() {
    let hear = |bytes: &[u8]| {
        let (mut codec, mut out) = (fresh(None), Vec::new());
        codec.hello(&mut out);
        codec.hear(bytes, &mut out).map(|heard| heard.map(|(_, decoded)| format!("{decoded:?}")))
    };
    let error = |code: &str, words: &str| message(b'E', format!("VFATAL\0C{code}\0M{words}\0\0").as_bytes());
    for (bytes, named) in [
        (message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), "PasswordNeeded"),
        (message(b'R', b"\0\0\0\x05salt"), "PasswordNeeded"),
        (error("28P01", "password authentication failed"), "PasswordNeeded"),
        (message(b'R', b"\0\0\0\x03"), "clear text"),
        (message(b'R', b"\0\0\0\x07"), "number 7"),
        (error("3D000", "no such database"), "HOST/DATABASE"),
        (error("53300", "too many clients"), "too many clients"),
    ] {
        let heard = hear(&bytes).expect("words").expect("all of it");
        assert!(heard.contains(named), "{heard}");
    }
    match hear(&error("57P03", "the database system is starting up")) {
        Err(Fault::Lost(error)) => assert!(error.to_string().contains("starting up"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_is_stopped_loses_the_connection() {
    let stopped = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0");
    for is_asked in [false, true] {
        let mut codec = codec();
        if is_asked {
            codec.say(&Op::Get(b"k"), &mut Vec::new()).expect("a question");
        }
        match codec.hear(&stopped, &mut Vec::new()) {
            Err(Fault::Lost(error)) => assert!(error.to_string().contains("terminating"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    // A notice is no answer, and none is waited for.
    let mut codec = codec();
    assert_eq!(hear_all(codec.as_mut(), &[BESIDE]).expect("a notice"), []);
    codec.say(&Op::Get(b"k"), &mut Vec::new()).expect("a question");
    assert_eq!(hear_all(codec.as_mut(), &[FOUND_ABC]).expect("an answer"), [value(b"abc")]);
}

#[test]
fn hostile_answers_are_garbled() {
    let (get, ab) = (Op::Get(b"k"), keys(&[b"a", b"b"]));
    let many = Op::GetMany(ab.lend());
    let twice = rows(&[&[Some(b"a"), Some(b"1")], &[Some(b"a"), Some(b"2")]], "SELECT 2");
    let cases: [(&Op<'_>, &[u8], &str); 10] = [
        (&get, b"HTTP/1.1 400 Bad Request\r\n", "PostgreSQL's protocol"),
        (&get, b"D\0\0\0\x0d\0\x01\0\0\0\x03abc", "prepared statement"),
        (&get, READY, "the end of a command"),
        (&get, rows(&[&[Some(b"1")], &[Some(b"2")]], "SELECT 2"), "a row"),
        (&get, rows(&[&[None]], "SELECT 1"), "a row"),
        (&get, rows(&[&[Some(b"1"), Some(b"2")]], "SELECT 1"), "a row"),
        (&get, leaked(&[&FOUND_ABC[..FOUND_ABC.len() - 1], b"T"]), "no transaction"),
        (&many, rows(&[&[Some(b"c"), Some(b"1")]], "SELECT 1"), "a row"),
        (&many, twice, "a row"),
        (&Op::Number(b"k"), rows(&[&[Some(b"\0\0\0\x05")]], "SELECT 1"), "a row"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, op, answer, named);
    }
}

/// A set that was refused in pieces must not be taken for done when a plain answer follows.
#[test]
fn a_refusal_in_pieces_is_of_its_own_op() {
    let (mut codec, mut out) = (codec(), Vec::new());
    let set = Op::Set { key: b"k", value: b"v", ttl_s: None };
    codec.say(&set, &mut out).expect("a question");
    codec.say(&set, &mut out).expect("a question");
    assert!(matches!(codec.hear(OVERFLOW, &mut out), Ok(Some((_, Decoded::Again)))));
    assert_eq!(codec.hear_done(STORED), (0, 0));
    assert_eq!(codec.hear_plain(STORED), None);
    let heard = hear_all(codec.as_mut(), &[READY, STORED]).expect("two answers");
    assert_eq!(heard, [refused("bigint out of range"), Got::Done]);
}

#[test]
fn limits_of_the_store_are_refused_before_anything_is_sent() {
    let (mut codec, mut out) = (fresh(None), b"before".to_vec());
    let none = KeyList::default();
    let (long, half) = (vec![b'k'; 2693], vec![b'k'; 1341]);
    let list = keys(&[b"k", &long]);
    let halves: KeyList = [&half[..]].into_iter().collect();
    for op in [
        Op::Get(&long),
        Op::GetMany(list.lend()),
        Op::SetMany(Pairs { keys: list.lend(), values: list.lend() }),
        Op::Tally { records: halves.lend(), fields: list.lend(), by: 1 },
        Op::ReadTally(&half),
        Op::Set { key: b"k", value: b"v", ttl_s: Some(1) },
    ] {
        assert!(matches!(codec.say(&op, &mut out), Err(Fault::Unsupported(_))), "{}", op.name());
        assert_eq!((out.as_slice(), codec.pending(), codec.commands()), (&b"before"[..], 0, 0), "{}", op.name());
    }
    // A list of nothing is an array of no dimension.
    let mut empty = Vec::new();
    codec.say(&Op::GetMany(none.lend()), &mut empty).expect("a question");
    let array = b"\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\x11";
    assert!(empty.windows(array.len()).any(|part| part == array), "{}", empty.escape_ascii());
    assert_eq!(hear_all(&mut codec, &[done("SELECT 0")]).expect("an answer"), [Got::Values(Vec::new())]);
    let longest = vec![b'k'; 2692];
    codec.say(&Op::Get(&longest), &mut out).expect("it fits");
    assert_eq!(codec.hear_plain(FOUND_ABC), Some((FOUND_ABC.len(), Reply::Value(b"abc"))));
}
