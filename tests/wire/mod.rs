//! All of our own codecs, byte by byte: what each op says, answers in every pair of pieces, and whatever else may
//! come.

mod alike;
mod arbitrary;
mod binary;
mod memcache;
mod meta;
mod mysql;
mod postgres;
mod resp;
mod tyrant;

use std::time::{Duration, Instant};

use kvfair::model::op::{Fault, KeyList, Op, Pairs, Reply, SumList, readable};
use kvfair::protocol::{Codec, Decoded};

/// What was heard, owned, so that it can be kept and compared.
#[derive(Clone, Debug, PartialEq)]
enum Got {
    Done,
    Value(Vec<u8>),
    Missing,
    Number(i64),
    Values(Vec<Option<Vec<u8>>>),
    Numbers(Vec<Option<i64>>),
    Versioned(Vec<u8>, u64),
    Conflict,
    Rows(Vec<(Vec<u8>, Vec<u8>)>),
    Refused(String),
    Greeted,
}

fn owned(heard: Decoded<'_>) -> Option<Got> {
    let reply = match heard {
        Decoded::Again => return None,
        Decoded::Refused(words) | Decoded::PasswordNeeded { words, .. } => return Some(Got::Refused(words)),
        Decoded::Greeted => return Some(Got::Greeted),
        Decoded::Reply(reply) => reply,
    };
    Some(match reply {
        Reply::Done => Got::Done,
        Reply::Value(value) => Got::Value(value.to_vec()),
        Reply::Missing => Got::Missing,
        Reply::Number(number) => Got::Number(number),
        Reply::Values(values) => Got::Values(values.iter().map(|value| value.map(<[u8]>::to_vec)).collect()),
        Reply::Numbers(numbers) => Got::Numbers(numbers.to_vec()),
        Reply::Versioned(value, version) => Got::Versioned(value.to_vec(), version),
        Reply::Conflict => Got::Conflict,
        Reply::Rows(rows) => Got::Rows(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()),
    })
}

/// Hears everything that `pieces` hold, as a connection would: what was not used is given again with the next piece.
fn hear_all(codec: &mut dyn Codec, pieces: &[&[u8]]) -> Result<Vec<Got>, Fault> {
    let (mut got, mut unread, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        unread.extend_from_slice(piece);
        while let Some((used, heard)) = codec.hear(&unread, &mut out)? {
            assert!(0 < used && used <= unread.len(), "used {used} of {}", unread.len());
            got.extend(owned(heard));
            unread.drain(..used);
        }
    }
    Ok(got)
}

/// An op, what it says, and what a server may answer to it.
#[derive(Clone)]
struct Case {
    op: Op<'static>,
    said: &'static [u8],
    answers: Vec<(&'static [u8], Got)>,
}

fn case(op: Op<'static>, said: &'static [u8], answers: Vec<(&'static [u8], Got)>) -> Case {
    Case { op, said, answers }
}

fn keys(list: &[&[u8]]) -> &'static KeyList {
    Box::leak(Box::new(list.iter().copied().collect()))
}

fn sums(list: &[(&str, i64)]) -> &'static SumList {
    let mut sums = SumList::default();
    list.iter().for_each(|(key, by)| sums.push(key.as_bytes(), *by));
    Box::leak(Box::new(sums))
}

fn refused(words: &str) -> Got {
    Got::Refused(words.to_string())
}

fn value(bytes: &[u8]) -> Got {
    Got::Value(bytes.to_vec())
}

type Make = fn() -> Box<dyn Codec>;
type Cases = fn() -> Vec<Case>;
/// Those that speak SQL are the last ones: their statements have a meaning for lists of nothing too.
const CODECS: [(Make, Cases); 12] = [
    (resp::codec, resp::cases),
    (memcache::codec, memcache::cases),
    (meta::codec, meta::cases),
    (binary::codec, binary::cases),
    (tyrant::codec, tyrant::cases),
    (|| plainly(resp::codec), resp::cases),
    (|| plainly(memcache::codec), memcache::cases),
    (resp::in_a_hash, resp::cases_in_a_hash),
    (postgres::codec, postgres::cases),
    (|| plainly(postgres::codec), postgres::cases),
    (mysql::codec, mysql::cases),
    (|| plainly(mysql::codec), mysql::cases),
];
const NO_SQL: usize = 8;
/// Those whose answers do not say which question they belong to.
const IN_ORDER: [(Make, Cases); 11] = [
    CODECS[0], CODECS[1], CODECS[2], CODECS[4], CODECS[5], CODECS[6], CODECS[7], CODECS[8], CODECS[9], CODECS[10],
    CODECS[11],
];

/// A codec that hears answers as who is in a hurry does: plain ones first.
struct Plainly(Box<dyn Codec>);

fn plainly(make: Make) -> Box<dyn Codec> {
    Box::new(Plainly(make()))
}

impl Codec for Plainly {
    fn hello(&mut self, out: &mut Vec<u8>) {
        self.0.hello(out);
    }

    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.say(op, out)
    }

    fn hear<'b>(&'b mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        match self.0.hear_plain(bytes) {
            Some((used, reply)) => Ok(Some((used, Decoded::Reply(reply)))),
            None => self.0.hear(bytes, out),
        }
    }

    fn pending(&self) -> usize {
        self.0.pending()
    }

    fn commands(&self) -> u64 {
        self.0.commands()
    }
}

#[test]
fn plain_answers_are_heard_plainly_once_they_are_whole() {
    let set = Op::Set { key: b"k", value: b"v", ttl_s: None };
    let cases: [(Make, Op<'_>, &[u8]); 8] = [
        (mysql::codec, set, mysql::STORED),
        (mysql::codec, Op::Get(b"k"), mysql::FOUND_ABC),
        (postgres::codec, set, postgres::STORED),
        (postgres::codec, Op::Get(b"k"), postgres::FOUND_ABC),
        (resp::codec, set, b"+OK\r\n"),
        (resp::codec, Op::Get(b"k"), b"$3\r\nabc\r\n"),
        (memcache::codec, set, b"STORED\r\n"),
        (memcache::codec, Op::Get(b"k"), b"VALUE k 0 3\r\nabc\r\nEND\r\n"),
    ];
    for (make, op, answer) in cases {
        let mut codec = make();
        codec.say(&op, &mut Vec::new()).unwrap();
        for end in 0..answer.len() {
            assert_eq!(codec.hear_plain(&answer[..end]), None, "{} of {}", end, readable(answer, 40));
        }
        let expected = if matches!(op, Op::Set { .. }) { Reply::Done } else { Reply::Value(b"abc") };
        assert_eq!(codec.hear_plain(&[answer, answer].concat()), Some((answer.len(), expected)));
        assert_eq!((codec.hear_plain(answer), codec.pending()), (None, 0), "nothing is awaited any more");
    }
}

#[test]
fn every_op_says_its_bytes_and_hears_each_answer_in_every_two_pieces() {
    for (make, cases) in CODECS {
        for case in cases() {
            for (answer, expected) in &case.answers {
                for cut in 0..=answer.len() {
                    let (mut codec, mut out) = (make(), b"before".to_vec());
                    codec.say(&case.op, &mut out).unwrap();
                    assert_eq!(out.strip_prefix(b"before"), Some(case.said), "{}", case.op.name());
                    assert_eq!(codec.pending(), 1);
                    let got = hear_all(codec.as_mut(), &[&answer[..cut], &answer[cut..]]).unwrap();
                    assert_eq!(got, std::slice::from_ref(expected), "{} cut at {cut}", case.op.name());
                    assert_eq!(codec.pending(), 0);
                    // The connection is still good, whatever the answer was.
                    codec.say(&Op::Get(b"next"), &mut out).unwrap();
                    assert_eq!(codec.pending(), 1);
                }
            }
        }
    }
}

#[test]
fn all_ops_in_flight_at_once_are_answered_in_their_order_in_pieces_and_joined() {
    for (make, cases) in IN_ORDER {
        let most = cases().iter().map(|case| case.answers.len()).max().unwrap();
        for (which, piece) in (0..most).flat_map(|which| [1, 2, 3, 7, usize::MAX].map(|piece| (which, piece))) {
            let (mut codec, mut out) = (make(), Vec::new());
            let (mut answers, mut expected) = (Vec::new(), Vec::new());
            for case in cases() {
                // A watch that is in force would make the check-and-set after it a real one.
                if matches!(case.op, Op::GetVersion(_)) {
                    continue;
                }
                codec.say(&case.op, &mut out).unwrap();
                let (answer, got) = &case.answers[which % case.answers.len()];
                // Where other questions are under way, the text commands send an `add` ahead of every `incr`.
                if case.said.starts_with(b"incr ") && matches!(case.op, Op::Increment { by: 0.., .. }) {
                    answers.extend_from_slice(b"NOT_STORED\r\n");
                }
                answers.extend_from_slice(answer);
                expected.push(got.clone());
            }
            assert_eq!(codec.pending(), expected.len());
            let pieces: Vec<&[u8]> = answers.chunks(piece).collect();
            assert_eq!(hear_all(codec.as_mut(), &pieces).unwrap(), expected, "in pieces of {piece}");
            assert_eq!(codec.pending(), 0);
        }
    }
}

/// What each hostile answer to an op must name.
fn is_garbled(make: Make, op: &Op<'_>, answer: &[u8], named: &str) {
    for cut in 0..=answer.len() {
        let (mut codec, mut out) = (make(), Vec::new());
        codec.say(op, &mut out).unwrap();
        match hear_all(codec.as_mut(), &[&answer[..cut], &answer[cut..]]) {
            // With half of the answer it may be known already, and so far only half of it can be named.
            Err(Fault::Garbled(what)) => {
                assert!(what.contains(named) || 0 < cut && cut < answer.len(), "{what} does not name {named}")
            }
            other => panic!("{answer:?} gave {other:?}"),
        }
    }
}

#[test]
fn an_answer_to_nothing_is_garbled() {
    for (make, _) in CODECS {
        match make().hear(b"+OK\r\n", &mut Vec::new()) {
            Err(Fault::Garbled(what)) => {
                assert!(what.contains("nothing was asked") && what.contains("+OK"), "{what}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_a_protocol_cannot_say_leaves_nothing_behind() {
    let long = vec![b'k'; 251];
    let list = keys(&[b"fine", &long]);
    let (none, no_sums, some) = (KeyList::default(), SumList::default(), keys(&[b"k"]));
    let of_memcached = [
        Op::Get(&long),
        Op::Get(b""),
        Op::GetMany(list.lend()),
        Op::SetMany(Pairs { keys: list.lend(), values: list.lend() }),
        Op::Set { key: &long, value: b"", ttl_s: None },
        Op::Set { key: b"k", value: b"", ttl_s: Some(2_592_001) },
        Op::Set { key: b"k", value: b"", ttl_s: Some(0) },
        Op::ReadTally(b"k"),
        Op::Tally { records: list.lend(), fields: list.lend(), by: 1 },
    ];
    let of_all = [
        Op::Scan { from: b"", limit: 1 },
        Op::GetMany(none.lend()),
        Op::NumberMany(none.lend()),
        Op::SetMany(Pairs::default()),
        Op::AddMany(no_sums.lend()),
        Op::Tally { records: none.lend(), fields: some.lend(), by: 1 },
        Op::Tally { records: some.lend(), fields: none.lend(), by: 1 },
    ];
    let cases = of_all.iter().flat_map(|op| CODECS[..NO_SQL].iter().map(|(make, _)| (*make, *op)));
    let memcached: [Make; 3] = [memcache::codec, meta::codec, binary::codec];
    for (make, op) in cases.chain(of_memcached.iter().flat_map(|op| memcached.map(|make| (make, *op)))) {
        let (mut codec, mut out) = (make(), b"before".to_vec());
        assert!(matches!(codec.say(&op, &mut out), Err(Fault::Unsupported(_))), "{}", op.name());
        assert_eq!((out.as_slice(), codec.pending(), codec.commands()), (&b"before"[..], 0, 0), "{}", op.name());
        // Nor is a key left that a later answer would be compared with.
        codec.say(&Op::Get(b"k"), &mut out).unwrap();
        let answer = found_v(&out[b"before".len()..]);
        assert_eq!(hear_all(codec.as_mut(), &[&answer]).unwrap(), [value(b"v")]);
    }
}

#[test]
fn commands_are_counted_as_a_server_counts_them() {
    let (abc, added) = (keys(&[b"a", b"b", b"c"]), sums(&[("a", 1), ("b", 2), ("c", 3)]));
    let ops = [
        Op::Get(b"k"),
        Op::Set { key: b"k", value: b"v", ttl_s: None },
        Op::GetMany(abc.lend()),
        Op::NumberMany(abc.lend()),
        Op::SetMany(Pairs { keys: abc.lend(), values: abc.lend() }),
        Op::AddMany(added.lend()),
        Op::Increment { key: b"k", by: 1 },
        Op::Increment { key: b"k", by: -1 },
    ];
    let cases: [(Make, [u64; 8]); 7] = [
        (mysql::codec, [1; 8]),
        (resp::codec, [1, 1, 1, 1, 1, 3, 1, 1]),
        (postgres::codec, [1; 8]),
        // A counter is made before it is added to.
        (memcache::codec, [1, 1, 1, 1, 3, 6, 1, 2]),
        // What ends a row of quiet questions is one more.
        (meta::codec, [1, 1, 4, 4, 4, 4, 1, 2]),
        (binary::codec, [1, 1, 4, 4, 4, 4, 1, 2]),
        (tyrant::codec, [1, 1, 1, 1, 3, 3, 1, 1]),
    ];
    for (make, expected) in cases {
        let counted = ops.map(|op| {
            let mut codec = make();
            let before = codec.commands();
            codec.say(&op, &mut Vec::new()).unwrap();
            codec.commands() - before
        });
        assert_eq!(counted, expected);
    }
}

#[test]
fn a_value_of_the_largest_size_is_waited_for_and_no_larger_one() {
    type Head = fn(u32) -> Vec<u8>;
    let cases: [(Make, Head, u32); 6] = [
        (postgres::codec, |size| [&b"D"[..], &size.to_be_bytes()].concat(), 1 << 30),
        (resp::codec, |size| format!("${size}\r\n").into_bytes(), 512 << 20),
        (memcache::codec, |size| format!("VALUE k 0 {size}\r\n").into_bytes(), 1 << 30),
        (meta::codec, |size| format!("VA {size}\r\n").into_bytes(), 1 << 30),
        (binary::codec, binary::head_of, (1 << 30) + 1024),
        (tyrant::codec, |size| [&[0][..], &size.to_be_bytes()].concat(), 256 << 20),
    ];
    for (make, head, most) in cases {
        let (mut codec, mut out) = (make(), Vec::new());
        codec.say(&Op::Get(b"k"), &mut out).unwrap();
        assert_eq!(codec.hear(&head(most), &mut out).unwrap(), None, "{most}");
        assert!(matches!(codec.hear(&head(most + 1), &mut out), Err(Fault::Garbled(_))), "{most}");
    }
}

/// The answer "v" to a get of "k", in the protocol of the question.
fn found_v(asked: &[u8]) -> Vec<u8> {
    match asked {
        b"get k\r\n" => b"VALUE k 0 1\r\nv\r\nEND\r\n".to_vec(),
        b"mg k v\r\n" => b"VA 1\r\nv\r\n".to_vec(),
        [0x80, ..] => binary::answer(0x00, 0, 0, 0, b"\0\0\0\0", b"v"),
        [0xC8, ..] => b"\0\0\0\0\x01v".to_vec(),
        _ => b"$1\r\nv\r\n".to_vec(),
    }
}

/// Reading an answer of `size` bytes in pieces must not take time that grows with its square.
fn in_pieces(codec: &mut dyn Codec, answer: &[u8]) -> Duration {
    let (mut unread, mut start, mut out) = (Vec::new(), 0, Vec::new());
    let began = Instant::now();
    let mut replies = 0;
    for piece in answer.chunks(16 << 10) {
        unread.extend_from_slice(piece);
        while let Some((used, heard)) = codec.hear(&unread[start..], &mut out).unwrap() {
            start += used;
            replies += usize::from(matches!(heard, Decoded::Reply(_)));
        }
    }
    assert_eq!((replies, start), (1, answer.len()));
    began.elapsed()
}

#[test]
fn a_large_answer_in_pieces_is_read_once() {
    const LARGE: usize = 100 << 20;
    const MANY: usize = 1_000_000;
    let large = vec![b'v'; LARGE];
    let list: KeyList = (0..MANY).map(|_| &b"k"[..]).collect();
    let (distinct, rows) = postgres::many(MANY / 4);
    let bulk = [format!("${LARGE}\r\n").as_bytes(), &large, b"\r\n"].concat();
    let value = [format!("VALUE k 0 {LARGE}\r\n").as_bytes(), &large, b"\r\nEND\r\n"].concat();
    let bulks = [format!("*{MANY}\r\n").into_bytes(), b"$8\r\n12345678\r\n".repeat(MANY)].concat();
    let values = [b"VALUE k 0 8\r\n12345678\r\n".repeat(MANY), b"END\r\n".to_vec()].concat();
    let cases = [
        (resp::codec as Make, Op::Get(b"k"), bulk),
        (memcache::codec, Op::Get(b"k"), value),
        (resp::codec, Op::GetMany(list.lend()), bulks),
        (memcache::codec, Op::GetMany(list.lend()), values),
        (meta::codec, Op::GetMany(list.lend()), meta::many(MANY)),
        (binary::codec, Op::GetMany(list.lend()), binary::many(MANY as u32)),
        (tyrant::codec, Op::GetMany(list.lend()), tyrant::many(MANY as u32)),
        (postgres::codec, Op::Get(b"k"), postgres::found(&large)),
        (mysql::codec, Op::Get(b"k"), mysql::found(&large)),
        (postgres::codec, Op::GetMany(distinct.lend()), rows),
    ];
    for (make, op, answer) in cases {
        let mut codec = make();
        codec.say(&op, &mut Vec::new()).unwrap();
        let took = in_pieces(codec.as_mut(), &answer);
        // Some 0.1 s; a search from the start at each of its 6,400 pieces would take many minutes.
        assert!(took < Duration::from_secs(120), "{} took {took:?}", op.name());
    }
}
