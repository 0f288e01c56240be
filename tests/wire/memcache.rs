//! Our codec of the memcached text protocol: what its ops say and hear, hostile answers, statistics and versions.

use kvfair::wire::Codec;
use kvfair::wire::memcache::{Memcache, stats, version};
use kvfair::words::op::{Fault, Op, Pairs};

use super::{Case, Got, case, is_garbled, keys, refused, value};

pub fn codec() -> Box<dyn Codec> {
    Box::new(Memcache::new("memcached"))
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters(), versions()].concat()
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
            vec![(b"STORED\r\n", Got::Done), (b"NOT_STORED\r\n", Got::Conflict), (b"ERROR\r\n", refused("ERROR"))],
        ),
        case(Op::Delete(b"k"), b"delete k\r\n", vec![(b"DELETED\r\n", Got::Done), (b"NOT_FOUND\r\n", Got::Missing)]),
    ]
}

fn counters() -> Vec<Case> {
    vec![
        case(
            Op::Increment { key: b"k", by: 5 },
            b"ma k N0 J5 D5 v\r\n",
            vec![
                (b"VA 1\r\n5\r\n", Got::Number(5)),
                (b"VA 19\r\n9223372036854775807\r\n", Got::Number(i64::MAX)),
                (
                    b"VA 19\r\n9223372036854775808\r\n",
                    refused(
                        "counters cannot be below 0 or above 9223372036854775807: this one would be \
                         -9223372036854775808",
                    ),
                ),
                (b"CLIENT_ERROR non-numeric\r\n", refused("CLIENT_ERROR non-numeric")),
            ],
        ),
        case(
            Op::Increment { key: b"k", by: -5 },
            b"ma k N0 J18446744073709551611 D18446744073709551611 v\r\n",
            vec![
                (b"VA 1\r\n0\r\n", Got::Number(0)),
                (
                    b"VA 20\r\n18446744073709551611\r\n",
                    refused("counters cannot be below 0 or above 9223372036854775807: this one would be -5"),
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
        (Op::Set { key: b"k", value: b"", ttl_s: None }, b"NOT_STORED\r\n", "STORED"),
        (Op::Delete(b"k"), b"STORED\r\n", "DELETED"),
        (Op::SetIfAbsent { key: b"k", value: b"" }, b"EXISTS\r\n", "NOT_STORED"),
        (Op::Cas { key: b"k", version: 1, value: b"" }, b"NOT_STORED\r\n", "EXISTS"),
        (Op::Increment { key: b"k", by: 1 }, b"5\r\n", "VA and a size"),
        (Op::Increment { key: b"k", by: 1 }, b"VA x\r\n", "VA and a size"),
        (Op::Increment { key: b"k", by: 1 }, b"VA -1\r\n", "the size of a number"),
        (Op::Increment { key: b"k", by: 1 }, b"VA 99999999\r\n", "the size of a number"),
        (Op::Increment { key: b"k", by: 1 }, b"VA 1\r\n55\r\n", "CRLF after 1 bytes"),
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
    assert_eq!(stats(bytes).unwrap(), Some((bytes.len(), expected)));
    for cut in 0..bytes.len() {
        assert_eq!(stats(&bytes[..cut]).unwrap(), None);
    }
    assert!(matches!(stats(b"ERROR\r\n"), Err(Fault::Refused(_))));
    assert!(matches!(stats(b"VALUE\r\n"), Err(Fault::Garbled(_))));
    assert_eq!(version(b"VERSION 1.6.18\r\n").unwrap(), Some((16, "1.6.18".to_string())));
    assert_eq!(version(b"VERSION 1.6.18").unwrap(), None);
    assert!(matches!(version(b"SERVER_ERROR x\r\n"), Err(Fault::Refused(_))));
    assert!(matches!(version(b"+OK\r\n"), Err(Fault::Garbled(_))));
}
