//! Our codec of memcached's meta commands: what its ops say and hear, and hostile answers.

use kvfair::model::op::{Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::memcache::Meta;

use super::{Case, Got, case, is_garbled, keys, refused, sums, value};

pub fn codec() -> Box<dyn Codec> {
    Box::new(Meta::new("memcached"))
}

/// The answer to a get-many of so many keys that are all there.
pub fn many(count: usize) -> Vec<u8> {
    let mut answer: Vec<u8> =
        (0..count).flat_map(|index| format!("VA 8 O{index}\r\n12345678\r\n").into_bytes()).collect();
    answer.extend(b"MN\r\n");
    answer
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters_and_versions()].concat()
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"a b", b"b"]);
    vec![
        case(
            Op::Get(b"k\r\n%"),
            b"mg k%0D%0A%25 v\r\n",
            vec![
                (b"EN\r\n", Got::Missing),
                (b"VA 0\r\n\r\n", value(b"")),
                (b"VA 4\r\nEN\r\n\r\n", value(b"EN\r\n")),
                (b"SERVER_ERROR out of memory\r\n", refused("SERVER_ERROR out of memory")),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            b"mg a%20b v q O0\r\nmg b v q O1\r\nmn\r\n",
            vec![
                (b"MN\r\n", Got::Values(vec![None, None])),
                (b"VA 2 O1\r\n\r\n\r\nMN\r\n", Got::Values(vec![None, Some(b"\r\n".to_vec())])),
                (b"VA 1 O0\r\nx\r\nVA 0 O1\r\n\r\nMN\r\n", Got::Values(vec![Some(b"x".to_vec()), Some(Vec::new())])),
                (b"VA 1 O0\r\nx\r\nSERVER_ERROR oom\r\nMN\r\n", refused("SERVER_ERROR oom")),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            b"mg a%20b v q O0\r\nmg b v q O1\r\nmn\r\n",
            vec![
                (b"VA 3 O1\r\n9  \r\nMN\r\n", Got::Numbers(vec![None, Some(9)])),
                (b"VA 1 O0\r\nx\r\nVA 1 O1\r\n9\r\nMN\r\n", refused("the value 'x' is no counter")),
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
            b"ms k 3\r\nv\r\n\r\n",
            vec![
                (b"HD\r\n", Got::Done),
                (
                    b"SERVER_ERROR object too large for cache\r\n",
                    refused(
                        "SERVER_ERROR object too large for cache: a value of 3 bytes; items are limited to 1 MiB \
                         unless the server is started with -I",
                    ),
                ),
            ],
        ),
        case(Op::Set { key: b"k", value: b"", ttl_s: Some(60) }, b"ms k 0 T60\r\n\r\n", vec![(b"HD\r\n", Got::Done)]),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            b"ms a%20b 1 q\r\nx\r\nms b 0 q\r\n\r\nmn\r\n",
            vec![
                (b"MN\r\n", Got::Done),
                (b"SERVER_ERROR 1st\r\nMN\r\n", refused("SERVER_ERROR 1st")),
                (b"SERVER_ERROR 1st\r\nSERVER_ERROR 2nd\r\nMN\r\n", refused("SERVER_ERROR 1st")),
            ],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            b"ms k 1 ME\r\nv\r\n",
            vec![(b"HD\r\n", Got::Done), (b"NS\r\n", Got::Conflict), (b"ERROR\r\n", refused("ERROR"))],
        ),
        case(Op::Delete(b"k"), b"md k\r\n", vec![(b"HD\r\n", Got::Done), (b"NF\r\n", Got::Missing)]),
    ]
}

fn counters_and_versions() -> Vec<Case> {
    let ab = sums(&[("a", 1), ("b c", 23)]);
    vec![
        case(
            Op::Add { key: b"k", by: 5 },
            b"ma k N0 J5 D5\r\n",
            vec![(b"HD\r\n", Got::Done), (b"CLIENT_ERROR non-numeric\r\n", refused("CLIENT_ERROR non-numeric"))],
        ),
        case(
            Op::AddMany(ab.lend()),
            b"ma a N0 J1 D1 q\r\nma b%20c N0 J23 D23 q\r\nmn\r\n",
            vec![(b"MN\r\n", Got::Done), (b"CLIENT_ERROR one\r\nMN\r\n", refused("CLIENT_ERROR one"))],
        ),
        case(
            Op::Increment { key: b"k", by: 5 },
            b"ma k N0 J5 D5 v\r\n",
            vec![
                (b"VA 1\r\n5\r\n", Got::Number(5)),
                (b"VA 19\r\n9223372036854775807\r\n", Got::Number(i64::MAX)),
                (b"CLIENT_ERROR non-numeric\r\n", refused("CLIENT_ERROR non-numeric")),
            ],
        ),
        case(Op::Increment { key: b"k", by: 0 }, b"ma k N0 J0 D0 v\r\n", vec![(b"VA 1\r\n7\r\n", Got::Number(7))]),
        case(
            Op::Increment { key: b"k", by: -5 },
            b"ma k D0 v\r\nma k MD D5 v\r\n",
            vec![
                (b"VA 2\r\n12\r\nVA 1\r\n7\r\n", Got::Number(7)),
                (b"VA 1\r\n5\r\nVA 1\r\n0\r\n", Got::Number(0)),
                (b"CLIENT_ERROR one\r\nCLIENT_ERROR other\r\n", refused("CLIENT_ERROR one")),
                (
                    b"NF\r\nNF\r\n",
                    refused("counters cannot be below 0 or above 9223372036854775807: this one would be -5"),
                ),
            ],
        ),
        case(Op::Number(b"k"), b"mg k v\r\n", vec![(b"VA 2\r\n12\r\n", Got::Number(12)), (b"EN\r\n", Got::Missing)]),
        case(
            Op::GetVersion(b"k"),
            b"mg k v c\r\n",
            vec![
                (b"VA 1 c18446744073709551615\r\nv\r\n", Got::Versioned(b"v".to_vec(), u64::MAX)),
                (b"EN\r\n", Got::Missing),
            ],
        ),
        case(
            Op::Cas { key: b"k", version: 7, value: b"v" },
            b"ms k 1 C7\r\nv\r\n",
            vec![(b"HD\r\n", Got::Done), (b"EX\r\n", Got::Conflict), (b"NF\r\n", Got::Conflict)],
        ),
    ]
}

#[test]
fn hostile_answers_to_meta_commands_are_named() {
    let ab = keys(&[b"a", b"b"]);
    let get = Op::Get(b"k");
    let long_line = [b"VA ".as_slice(), &[b'1'; 3000]].concat();
    let cases: Vec<(Op<'_>, &[u8], &str)> = vec![
        (get, b"HD\r\n", "VA or EN"),
        (get, b"VALUE k 0 1\r\na\r\nEND\r\n", "VA or EN"),
        (get, b"VA 1\r\nabc", "CRLF after 1 bytes"),
        (get, b"VA 1073741825\r\n", "1073741824"),
        (get, b"VA 99999999999999999999\r\n", "a size"),
        (get, b"VA -1\r\n", "a size"),
        (get, b"VA \r\n", "a size"),
        (get, &long_line, "at most 2048 bytes"),
        (Op::GetVersion(b"k"), b"VA 1 cx\r\na\r\n", "its version"),
        (Op::GetMany(ab.lend()), b"VA 1\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"VA 1 O2\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"VA 1 O1\r\nx\r\nVA 1 O0\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"VA 1 O0\r\nx\r\nVA 1 O0\r\nx\r\n", "in its order"),
        (Op::GetMany(ab.lend()), b"EN\r\n", "VA or MN"),
        (Op::SetMany(Pairs { keys: ab.lend(), values: ab.lend() }), b"HD\r\n", "MN"),
        (Op::Set { key: b"k", value: b"", ttl_s: None }, b"NS\r\n", "HD"),
        (Op::Delete(b"k"), b"EN\r\n", "HD or NF"),
        (Op::Increment { key: b"k", by: 1 }, b"5\r\n", "VA and a size"),
        (Op::Increment { key: b"k", by: -1 }, b"EN\r\n", "VA and a number"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, &op, answer, named);
    }
}
