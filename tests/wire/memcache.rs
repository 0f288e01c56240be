//! Our codec of the memcached text protocol: what its ops say and hear, hostile answers, statistics and versions.

use kvfair::model::op::{Fault, Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::memcache::{Dialect, Memcache, stats, version};
use proptest::prelude::*;

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

pub fn codec() -> Box<dyn Codec> {
    Box::new(Memcache::new("memcached"))
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), additions(), counters(), versions()].concat()
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    vec![
        case(
            Op::Get(b"k\r\n%"),
            b"get k%0D%0A%25\r\n",
            vec![
                (b"END\r\n", Got::Missing),
                (b"VALUE k%0D%0A%25 0 0\r\n\r\nEND\r\n", value(b"")),
                (b"VALUE k%0D%0A%25 7 5\r\nEND\r\n\r\nEND\r\n", value(b"END\r\n")),
                (b"SERVER_ERROR out of memory\r\n", refused("SERVER_ERROR out of memory")),
                (b"ERROR\r\n", refused("ERROR")),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            b"get a%20b b\r\n",
            vec![
                (b"END\r\n", Got::Values(vec![None, None])),
                (b"VALUE b 0 2\r\n\r\n\r\nEND\r\n", Got::Values(vec![None, Some(b"\r\n".to_vec())])),
                (
                    b"VALUE a%20b 0 1\r\nx\r\nVALUE b 0 0\r\n\r\nEND\r\n",
                    Got::Values(vec![Some(b"x".to_vec()), Some(Vec::new())]),
                ),
                (b"VALUE a%20b 0 1\r\nx\r\nSERVER_ERROR oom\r\n", refused("SERVER_ERROR oom")),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            b"get a%20b b\r\n",
            vec![
                (b"VALUE b 0 3\r\n9  \r\nEND\r\n", Got::Numbers(vec![None, Some(9)])),
                (b"VALUE a%20b 0 1\r\nx\r\nVALUE b 0 1\r\n9\r\nEND\r\n", refused("the value 'x' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    let xy = keys(&[b"x", b""]);
    vec![
        case(
            Op::Set { key: b"k", value: b"v\r\n", ttl_s: None },
            b"set k 0 0 3\r\nv\r\n\r\n",
            vec![
                (b"STORED\r\n", Got::Done),
                (
                    b"SERVER_ERROR out of memory storing object\r\n",
                    refused("SERVER_ERROR out of memory storing object"),
                ),
                (
                    b"SERVER_ERROR object too large for cache\r\n",
                    refused(
                        "SERVER_ERROR object too large for cache: a value of 3 bytes; items are limited to 1 MiB \
                         unless the server is started with -I",
                    ),
                ),
            ],
        ),
        case(
            Op::Set { key: b"k", value: b"", ttl_s: Some(60) },
            b"set k 0 60 0\r\n\r\n",
            vec![(b"STORED\r\n", Got::Done)],
        ),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            b"set a%20b 0 0 1\r\nx\r\nset b 0 0 0\r\n\r\n",
            vec![
                (b"STORED\r\nSTORED\r\n", Got::Done),
                (b"SERVER_ERROR 1st\r\nSTORED\r\n", refused("SERVER_ERROR 1st")),
                (b"STORED\r\nSERVER_ERROR 2nd\r\n", refused("SERVER_ERROR 2nd")),
            ],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            b"add k 0 0 1\r\nv\r\n",
            vec![
                (b"STORED\r\n", Got::Done),
                (b"NOT_STORED\r\n", Got::Conflict),
                (b"ERROR\r\n", refused("ERROR")),
                (
                    b"SERVER_ERROR object too large for cache\r\n",
                    refused(
                        "SERVER_ERROR object too large for cache: a value of 1 bytes; items are limited to 1 MiB \
                         unless the server is started with -I",
                    ),
                ),
            ],
        ),
        case(
            Op::Delete(b"k\x7f"),
            b"delete k%7F\r\n",
            vec![(b"DELETED\r\n", Got::Done), (b"NOT_FOUND\r\n", Got::Missing), (b"ERROR\r\n", refused("ERROR"))],
        ),
    ]
}

fn additions() -> Vec<Case> {
    let ab = sums(&[("a", 1), ("b c", 23)]);
    vec![
        case(
            Op::Add { key: b"k", by: 5 },
            b"add k 0 0 1\r\n0\r\nincr k 5\r\n",
            vec![
                (b"STORED\r\n5\r\n", Got::Done),
                (b"NOT_STORED\r\n12\r\n", Got::Done),
                (b"SERVER_ERROR out of memory\r\nNOT_FOUND\r\n", refused("SERVER_ERROR out of memory")),
                (b"STORED\r\nNOT_FOUND\r\n", refused("NOT_FOUND: the counter was dropped as soon as it was made")),
            ],
        ),
        case(
            Op::AddMany(ab.lend()),
            b"add a 0 0 1\r\n0\r\nincr a 1\r\nadd b%20c 0 0 1\r\n0\r\nincr b%20c 23\r\n",
            vec![
                (b"STORED\r\n1\r\nNOT_STORED\r\n40\r\n", Got::Done),
                (b"STORED\r\n1\r\nNOT_STORED\r\nCLIENT_ERROR no number\r\n", refused("CLIENT_ERROR no number")),
            ],
        ),
    ]
}

fn counters() -> Vec<Case> {
    vec![
        case(
            Op::Increment { key: b"k", by: 5 },
            b"incr k 5\r\n",
            vec![
                (b"5\r\n", Got::Number(5)),
                (b"9223372036854775807\r\n", Got::Number(i64::MAX)),
                (
                    b"9223372036854775808\r\n",
                    refused(
                        "counters cannot be below 0 or above 9223372036854775807: this one would be \
                         9223372036854775808",
                    ),
                ),
                (
                    b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
                    refused("CLIENT_ERROR cannot increment or decrement non-numeric value"),
                ),
            ],
        ),
        case(
            Op::Increment { key: b"a b", by: -5 },
            b"incr a%20b 0\r\ndecr a%20b 5\r\n",
            vec![
                (b"12\r\n7 \r\n", Got::Number(7)),
                (b"5\r\n0\r\n", Got::Number(0)),
                (
                    b"4\r\n0\r\n",
                    refused(
                        "counters cannot be below 0 or above 9223372036854775807: this one would be -1, and the \
                         server left 0",
                    ),
                ),
                (
                    b"NOT_FOUND\r\nNOT_FOUND\r\n",
                    refused("counters cannot be below 0 or above 9223372036854775807: this one would be -5"),
                ),
                (
                    b"CLIENT_ERROR cannot increment\r\nCLIENT_ERROR cannot decrement\r\n",
                    refused("CLIENT_ERROR cannot increment"),
                ),
            ],
        ),
        case(
            Op::Number(b"k"),
            b"get k\r\n",
            vec![
                (b"VALUE k 0 2\r\n12\r\nEND\r\n", Got::Number(12)),
                (b"VALUE k 0 3\r\n9  \r\nEND\r\n", Got::Number(9)),
                (b"END\r\n", Got::Missing),
                (b"VALUE k 0 1\r\n-\r\nEND\r\n", refused("the value '-' is no counter")),
            ],
        ),
    ]
}

fn versions() -> Vec<Case> {
    vec![
        case(
            Op::GetVersion(b"k"),
            b"gets k\r\n",
            vec![
                (b"VALUE k 0 1 18446744073709551615\r\nv\r\nEND\r\n", Got::Versioned(b"v".to_vec(), u64::MAX)),
                (b"END\r\n", Got::Missing),
            ],
        ),
        case(
            Op::Cas { key: b"k", version: 7, value: b"v" },
            b"cas k 0 0 1 7\r\nv\r\n",
            vec![(b"STORED\r\n", Got::Done), (b"EXISTS\r\n", Got::Conflict), (b"NOT_FOUND\r\n", Got::Conflict)],
        ),
    ]
}

#[test]
fn hostile_answers_of_memcached_are_named() {
    let ab = keys(&[b"a", b"b"]);
    let get = Op::Get(b"k");
    let long_line = [b"VALUE ".as_slice(), &[b'x'; 3000]].concat();
    let cases: Vec<(Op<'_>, &[u8], &str)> = vec![
        (get, b"hello\r\n", "hello"),
        (get, b"STORED\r\n", "VALUE or END"),
        (get, b"VALUE other 0 1\r\na\r\nEND\r\n", "the value of 'k'"),
        (get, b"VALUE k 0 1\r\na\r\nVALUE k 0 1\r\na\r\nEND\r\n", "END"),
        (get, b"VALUE k 0 1\r\na\r\nSTORED\r\n", "STORED"),
        (get, b"VALUE k 0 1\r\nabc", "CRLF after 1 bytes"),
        (get, b"VALUE k 0 1073741825\r\n", "1073741825"),
        (get, b"VALUE k 0 18446744073709551615\r\n", "18446744073709551615"),
        (get, b"VALUE k 0 99999999999999999999\r\n", "a size"),
        (get, b"VALUE k 0 -1\r\n", "a size"),
        (get, b"VALUE k x 1\r\n", "flags"),
        (get, b"VALUE k 0\r\n", "a size"),
        (get, b"VALUE k 0 1 2 3\r\n", "a size"),
        (get, b"VALUE k 0 1 x\r\n", "a version"),
        (get, b"VALUE \r\n", "a size"),
        (get, b"END\n", "CRLF"),
        (get, &long_line, "at most 2048 bytes"),
        (Op::GetVersion(b"k"), b"VALUE k 0 1\r\na\r\nEND\r\n", "its version"),
        (Op::GetMany(ab.lend()), b"VALUE b 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"VALUE c 0 1\r\nx\r\n", "in its order"),
        (Op::NumberMany(ab.lend()), b"VALUE a 0 1\r\n1\r\nVALUE a 0 1\r\n1\r\n", "in its order"),
        (Op::Set { key: b"k", value: b"", ttl_s: None }, b"NOT_STORED\r\n", "STORED"),
        (Op::Delete(b"k"), b"STORED\r\n", "DELETED"),
        (Op::SetIfAbsent { key: b"k", value: b"" }, b"EXISTS\r\n", "NOT_STORED"),
        (Op::Cas { key: b"k", version: 1, value: b"" }, b"NOT_STORED\r\n", "EXISTS"),
        (Op::Increment { key: b"k", by: 1 }, b"VA 1\r\n5\r\n", "a number or NOT_FOUND"),
        (Op::Increment { key: b"k", by: 1 }, b"-1\r\n", "a number or NOT_FOUND"),
        (Op::Increment { key: b"k", by: 1 }, b"STORED\r\n", "a number or NOT_FOUND"),
        (Op::Increment { key: b"k", by: 1 }, b"NOT_FOUND\r\n5\r\n", "STORED or NOT_STORED"),
        (Op::Increment { key: b"k", by: 1 }, b"NOT_FOUND\r\nSTORED\r\n99999999999999999999\r\n", "a number"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, &op, answer, named);
    }
}

#[test]
fn statistics_and_versions_are_read() {
    let bytes = b"STAT pid 12\r\nSTAT version 1.6 x\r\nSTAT empty\r\nEND\r\n";
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    let expected = vec![pair("pid", "12"), pair("version", "1.6 x"), pair("empty", "")];
    assert_eq!(stats()(bytes).unwrap(), Some((bytes.len(), expected)));
    for cut in 0..bytes.len() {
        assert_eq!(stats()(&bytes[..cut]).unwrap(), None);
    }
    assert!(matches!(stats()(b"ERROR\r\n"), Err(Fault::Refused(_))));
    assert!(matches!(stats()(b"VALUE\r\n"), Err(Fault::Garbled(_))));
    assert_eq!(version(b"VERSION 1.6.18\r\n").unwrap(), Some((16, "1.6.18".to_string())));
    assert_eq!(version(b"VERSION 1.6.18").unwrap(), None);
    assert!(matches!(version(b"SERVER_ERROR x\r\n"), Err(Fault::Refused(_))));
    assert!(matches!(version(b"+OK\r\n"), Err(Fault::Garbled(_))));
}

/// What was read may be anything by then: it is not looked at again.
#[test]
fn statistics_in_pieces_are_read_once() {
    let mut read = stats();
    assert_eq!(read(b"STAT pid 12\r\nSTAT vers").unwrap(), None);
    let bytes = b"????????????\r\nSTAT version 1\r\nEND\r\n";
    let bytes = &bytes[1..];
    let expected = [("pid", "12"), ("version", "1")].map(|(name, value)| (name.to_string(), value.to_string()));
    assert_eq!(read(bytes).unwrap(), Some((bytes.len(), expected.to_vec())));
}

/// A server of the text commands that keeps its records, one command after another.
#[derive(Default)]
struct Server {
    counters: std::collections::BTreeMap<Vec<u8>, u64>,
    heard: Vec<u8>,
}

impl Server {
    fn answer(&mut self, question: &[u8]) -> Vec<u8> {
        self.heard.extend_from_slice(question);
        let mut answers = Vec::new();
        while let Some(end) = self.heard.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).take(end - 1).collect();
            let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
            let key = words[1].to_vec();
            match words[0] {
                b"incr" => {
                    let step: u64 = std::str::from_utf8(words[2]).unwrap().parse().unwrap();
                    match self.counters.get_mut(&key) {
                        Some(counter) => {
                            *counter = counter.wrapping_add(step);
                            answers.extend(format!("{counter}\r\n").into_bytes());
                        }
                        None => answers.extend(b"NOT_FOUND\r\n"),
                    }
                }
                b"add" => {
                    let data: Vec<u8> = self.heard.drain(..3).collect();
                    assert_eq!(data, b"0\r\n");
                    let new = !self.counters.contains_key(&key);
                    self.counters.entry(key).or_insert(0);
                    answers.extend_from_slice(if new { b"STORED\r\n" } else { b"NOT_STORED\r\n" });
                }
                b"get" => {
                    if let Some(counter) = self.counters.get(&key) {
                        let data = counter.to_string();
                        answers.extend(
                            [b"VALUE ", &key[..], format!(" 0 {}\r\n{data}\r\n", data.len()).as_bytes()].concat(),
                        );
                    }
                    answers.extend(b"END\r\n");
                }
                b"delete" => {
                    let gone = self.counters.remove(&key).is_some();
                    answers.extend_from_slice(if gone { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
                }
                other => panic!("{other:?}"),
            }
        }
        answers
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever ops are under way at once, cut wherever: each hears what it would have heard alone, in their order.
    #[test]
    fn pipelined_increments_are_what_they_would_be_one_by_one(
        ops in prop::collection::vec((0..3_u8, 0..3_u8, 0..9_i64), 1..20),
        window in 1..6_usize,
        piece in 1..40_usize,
    ) {
        let keys: [&[u8]; 3] = [b"k", b"a b", b"%"];
        let ask = |&(kind, key, by): &(u8, u8, i64)| match kind {
            0 => Op::Increment { key: keys[usize::from(key)], by },
            1 => Op::Number(keys[usize::from(key)]),
            _ => Op::Delete(keys[usize::from(key)]),
        };
        let mut counters = std::collections::BTreeMap::new();
        let expected: Vec<Got> = ops.iter().map(|&(kind, key, by)| match kind {
            0 => Got::Number(*counters.entry(key).and_modify(|sum| *sum += by).or_insert(by)),
            1 => counters.get(&key).map_or(Got::Missing, |&sum| Got::Number(sum)),
            _ => counters.remove(&key).map_or(Got::Missing, |_| Got::Done),
        }).collect();

        let (mut codec, mut server, mut out) = (Memcache::new("memcached"), Server::default(), Vec::new());
        let (mut got, mut said, mut unread) = (Vec::new(), 0, Vec::new());
        while got.len() < ops.len() {
            while said < ops.len() && codec.pending() < window {
                codec.say(&ask(&ops[said]), &mut out).unwrap();
                said += 1;
            }
            let answers = server.answer(&std::mem::take(&mut out));
            prop_assert!(!answers.is_empty(), "no answer comes any more");
            for bytes in answers.chunks(piece) {
                unread.extend_from_slice(bytes);
                while let Some((used, heard)) = codec.hear(&unread, &mut out).unwrap() {
                    got.extend(super::owned(heard));
                    unread.drain(..used);
                }
            }
        }
        prop_assert_eq!(got, expected);
        prop_assert_eq!(codec.pending(), 0);
    }

    /// A key that had to be escaped is never another key, escaped or not.
    #[test]
    fn two_keys_are_never_sent_as_one(
        one in "[a%20 \r]{1,6}",
        other in "[a%20 \r]{1,6}",
    ) {
        let sent = |key: &str| {
            let mut out = Vec::new();
            codec().say(&Op::Get(key.as_bytes()), &mut out).unwrap();
            out
        };
        prop_assert_eq!(one == other, sent(&one) == sent(&other));
    }
}

#[test]
fn a_missing_counter_is_made_and_added_to_by_questions_that_go_out_together() {
    let (mut codec, mut out) = (Memcache::new("memcached"), Vec::new());
    codec.say(&Op::Increment { key: b"k", by: 7 }, &mut out).unwrap();
    assert_eq!(std::mem::take(&mut out), b"incr k 7\r\n");
    codec.say(&Op::Get(b"later"), &mut out).unwrap();
    assert!(out.is_empty(), "it would overtake what a missing counter takes");
    let (used, heard) = codec.hear(b"NOT_FOUND\r\n", &mut out).unwrap().unwrap();
    assert_eq!((used, super::owned(heard)), (11, None));
    assert_eq!(out, b"add k 0 0 1\r\n0\r\nincr k 7\r\nget later\r\n");
    assert_eq!((codec.pending(), codec.commands()), (2, 4));
    // Somebody else may have made it meanwhile.
    let answers = [&b"NOT_STORED\r\n8\r\nEND\r\n"[..]];
    assert_eq!(hear_all(&mut codec, &answers).unwrap(), [Got::Number(8), Got::Missing]);
    for (answers, expected) in [
        (&b"NOT_FOUND\r\nSTORED\r\n7\r\n"[..], Got::Number(7)),
        (b"NOT_FOUND\r\nSERVER_ERROR out of memory\r\nNOT_FOUND\r\n", refused("SERVER_ERROR out of memory")),
        (b"NOT_FOUND\r\nSTORED\r\nNOT_FOUND\r\n", refused("NOT_FOUND: the counter was dropped as soon as it was made")),
    ] {
        for cut in 0..answers.len() {
            codec.say(&Op::Increment { key: b"k", by: 7 }, &mut out).unwrap();
            let got = hear_all(&mut codec, &[&answers[..cut], &answers[cut..]]).unwrap();
            assert_eq!(got, std::slice::from_ref(&expected));
        }
    }
}

#[test]
fn who_borrowed_the_protocol_has_no_versions_no_lifetimes_and_no_way_down() {
    let mut codec = Memcache::speaking(Dialect::Borrowed, "memcachedb");
    let mut out = Vec::new();
    let ops = [
        Op::GetVersion(b"k"),
        Op::Cas { key: b"k", version: 1, value: b"v" },
        Op::Set { key: b"k", value: b"v", ttl_s: Some(1) },
        Op::Increment { key: b"k", by: -1 },
    ];
    for op in ops {
        match codec.say(&op, &mut out) {
            Err(Fault::Unsupported(what)) => {
                assert!(what.contains("memcachedb") && what.contains(op.name()), "{what}")
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((out.len(), codec.pending()), (0, 0));
    }
    for (by, said) in [(0, &b"incr k 0\r\n"[..]), (1, b"incr k 1\r\n")] {
        let (mut codec, mut out) = (Memcache::speaking(Dialect::Borrowed, "memcachedb"), Vec::new());
        codec.say(&Op::Increment { key: b"k", by }, &mut out).expect("that is no way down");
        assert_eq!(out, said);
    }
}
