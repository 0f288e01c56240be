//! Our codec of RESP: what its ops say and hear, versions by watches, the greeting, and hostile answers.

use kvfair::model::op::{Fault, Op, Pairs};
use kvfair::protocol::Codec;
use kvfair::protocol::resp::{Counters, Greeting, Resp, Value, command, pong, values};

use super::{Case, Got, case, hear_all, is_garbled, keys, refused, sums, value};

pub fn codec() -> Box<dyn Codec> {
    Box::new(Resp::new("redis", Greeting::default()))
}

pub fn cases() -> Vec<Case> {
    [reads(), writes(), counters(), versions(), tallies()].concat()
}

/// Whose counters are the fields of one hash.
pub fn in_a_hash() -> Box<dyn Codec> {
    Box::new(Resp::new("redis", Greeting::default()).with(Counters::Hash("h")))
}

pub fn cases_in_a_hash() -> Vec<Case> {
    let (ab, list) = (sums(&[("a", 1), ("b", -2)]), keys(&[b"a", b"b"]));
    let delete = "if redis.call('HDEL', KEYS[1], KEYS[2]) == 1 then return 1 end return redis.call('DEL', KEYS[2])";
    let delete = format!("*5\r\n$4\r\nEVAL\r\n${}\r\n{delete}\r\n$1\r\n2\r\n$1\r\nh\r\n$1\r\nk\r\n", delete.len());
    vec![
        case(
            Op::Increment { key: b"k", by: -5 },
            b"*4\r\n$7\r\nHINCRBY\r\n$1\r\nh\r\n$1\r\nk\r\n$2\r\n-5\r\n",
            vec![(b":-3\r\n", Got::Number(-3)), (b"-WRONGTYPE no hash\r\n", refused("WRONGTYPE no hash"))],
        ),
        case(
            Op::AddMany(ab.lend()),
            b"*4\r\n$7\r\nHINCRBY\r\n$1\r\nh\r\n$1\r\na\r\n$1\r\n1\r\n\
              *4\r\n$7\r\nHINCRBY\r\n$1\r\nh\r\n$1\r\nb\r\n$2\r\n-2\r\n",
            vec![(b":1\r\n:-2\r\n", Got::Done), (b":1\r\n-ERR other\r\n", refused("ERR other"))],
        ),
        case(
            Op::Number(b"k"),
            b"*3\r\n$4\r\nHGET\r\n$1\r\nh\r\n$1\r\nk\r\n",
            vec![(b"$2\r\n12\r\n", Got::Number(12)), (b"$-1\r\n", Got::Missing)],
        ),
        case(
            Op::NumberMany(list.lend()),
            b"*4\r\n$5\r\nHMGET\r\n$1\r\nh\r\n$1\r\na\r\n$1\r\nb\r\n",
            vec![(b"*2\r\n$2\r\n-7\r\n$-1\r\n", Got::Numbers(vec![Some(-7), None]))],
        ),
        case(
            Op::NumberMany(keys(&[b"a"]).lend()),
            b"*3\r\n$5\r\nHMGET\r\n$1\r\nh\r\n$1\r\na\r\n",
            vec![(b"*1\r\n$1\r\n7\r\n", Got::Numbers(vec![Some(7)]))],
        ),
        case(
            Op::Delete(b"k"),
            Box::leak(delete.into_boxed_str()).as_bytes(),
            vec![(b":1\r\n", Got::Done), (b":0\r\n", Got::Missing), (b"-NOPERM\r\n", refused("NOPERM"))],
        ),
        case(Op::Get(b"k"), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", vec![(b"$1\r\nv\r\n", value(b"v"))]),
    ]
}

fn reads() -> Vec<Case> {
    let ab = keys(&[b"a", b"b"]);
    vec![
        case(
            Op::Get(b"k\r\n"),
            b"*2\r\n$3\r\nGET\r\n$3\r\nk\r\n\r\n",
            vec![
                (b"$-1\r\n", Got::Missing),
                (b"$0\r\n\r\n", value(b"")),
                (b"$5\r\n$-1\r\n\r\n", value(b"$-1\r\n")),
                (b"-WRONGTYPE no string\r\n", refused("WRONGTYPE no string")),
            ],
        ),
        case(
            Op::GetMany(ab.lend()),
            b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
            vec![
                (b"*2\r\n$-1\r\n$2\r\n\r\n\r\n", Got::Values(vec![None, Some(b"\r\n".to_vec())])),
                (b"*2\r\n$1\r\nx\r\n$0\r\n\r\n", Got::Values(vec![Some(b"x".to_vec()), Some(Vec::new())])),
                (b"-OOM\r\n", refused("OOM")),
            ],
        ),
        case(
            Op::NumberMany(ab.lend()),
            b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
            vec![
                (b"*2\r\n$2\r\n-7\r\n$-1\r\n", Got::Numbers(vec![Some(-7), None])),
                (b"*2\r\n$1\r\nx\r\n$1\r\n1\r\n", refused("the value 'x' is no counter")),
            ],
        ),
    ]
}

fn writes() -> Vec<Case> {
    let ab = keys(&[b"a", b"b"]);
    let xy = keys(&[b"x", b""]);
    vec![
        case(
            Op::Set { key: b"k", value: b"v", ttl_s: None },
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
            vec![(b"+OK\r\n", Got::Done), (b"-OOM full\r\n", refused("OOM full"))],
        ),
        case(
            Op::Set { key: b"k", value: b"v", ttl_s: Some(60) },
            b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nEX\r\n$2\r\n60\r\n",
            vec![(b"+OK\r\n", Got::Done)],
        ),
        case(
            Op::SetMany(Pairs { keys: ab.lend(), values: xy.lend() }),
            b"*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\nx\r\n$1\r\nb\r\n$0\r\n\r\n",
            vec![(b"+OK\r\n", Got::Done)],
        ),
        case(
            Op::SetMany(Pairs { keys: keys(&[b"a"]).lend(), values: keys(&[b"x"]).lend() }),
            b"*3\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\nx\r\n",
            vec![(b"+OK\r\n", Got::Done)],
        ),
        case(
            Op::SetIfAbsent { key: b"k", value: b"v" },
            b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nNX\r\n",
            vec![(b"+OK\r\n", Got::Done), (b"$-1\r\n", Got::Conflict)],
        ),
        case(
            Op::Delete(b"k"),
            b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n",
            vec![(b":1\r\n", Got::Done), (b":0\r\n", Got::Missing)],
        ),
    ]
}

fn counters() -> Vec<Case> {
    let ab = sums(&[("a", 1), ("b", 23)]);
    vec![
        case(
            Op::Add { key: b"k", by: 5 },
            b"*3\r\n$6\r\nINCRBY\r\n$1\r\nk\r\n$1\r\n5\r\n",
            vec![(b":9\r\n", Got::Done), (b"-ERR no integer\r\n", refused("ERR no integer"))],
        ),
        case(
            Op::AddMany(ab.lend()),
            b"*3\r\n$6\r\nINCRBY\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$6\r\nINCRBY\r\n$1\r\nb\r\n$2\r\n23\r\n",
            vec![
                (b":1\r\n:23\r\n", Got::Done),
                (b"-ERR one\r\n:23\r\n", refused("ERR one")),
                (b":1\r\n-ERR other\r\n", refused("ERR other")),
            ],
        ),
        case(
            Op::Increment { key: b"k", by: -5 },
            b"*3\r\n$6\r\nDECRBY\r\n$1\r\nk\r\n$1\r\n5\r\n",
            vec![(b":-3\r\n", Got::Number(-3))],
        ),
        case(
            Op::Increment { key: b"k", by: i64::MIN },
            b"*3\r\n$6\r\nINCRBY\r\n$1\r\nk\r\n$20\r\n-9223372036854775808\r\n",
            vec![
                (b":-9223372036854775808\r\n", Got::Number(i64::MIN)),
                (b":9223372036854775807\r\n", Got::Number(i64::MAX)),
                (b"-ERR overflow\r\n", refused("ERR overflow")),
            ],
        ),
        case(
            Op::Number(b"k"),
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            vec![
                (b"$2\r\n12\r\n", Got::Number(12)),
                (b"$-1\r\n", Got::Missing),
                (b"$3\r\nabc\r\n", refused("the value 'abc' is no counter")),
            ],
        ),
    ]
}

fn versions() -> Vec<Case> {
    vec![
        case(
            Op::GetVersion(b"k"),
            b"*2\r\n$5\r\nWATCH\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            vec![
                (b"+OK\r\n$1\r\nv\r\n", Got::Versioned(b"v".to_vec(), 1)),
                (b"+OK\r\n$-1\r\n", Got::Missing),
                (b"-NOPERM watch\r\n$1\r\nv\r\n", refused("NOPERM watch")),
                (b"+OK\r\n-WRONGTYPE\r\n", refused("WRONGTYPE")),
            ],
        ),
        case(
            Op::Cas { key: b"k", version: 9, value: b"v" },
            b"*1\r\n$4\r\nPING\r\n",
            vec![(b"+PONG\r\n", Got::Conflict)],
        ),
    ]
}

fn tallies() -> Vec<Case> {
    let ab = keys(&[b"a", b"b"]);
    vec![
        case(
            Op::Tally { records: ab.lend(), fields: keys(&[b"f"]).lend(), by: 2 },
            b"*4\r\n$7\r\nHINCRBY\r\n$1\r\na\r\n$1\r\nf\r\n$1\r\n2\r\n\
              *4\r\n$7\r\nHINCRBY\r\n$1\r\nb\r\n$1\r\nf\r\n$1\r\n2\r\n",
            vec![
                (b":2\r\n:4\r\n", Got::Done),
                (b"-first\r\n-second\r\n", refused("first")),
                (b":2\r\n-last\r\n", refused("last")),
            ],
        ),
        case(
            Op::ReadTally(b"r"),
            b"*2\r\n$7\r\nHGETALL\r\n$1\r\nr\r\n",
            vec![
                (b"*0\r\n", Got::Missing),
                (
                    b"*4\r\n$1\r\nf\r\n$1\r\n1\r\n$0\r\n\r\n$2\r\n22\r\n",
                    Got::Rows(vec![(b"f".to_vec(), b"1".to_vec()), (b"".to_vec(), b"22".to_vec())]),
                ),
                (b"-WRONGTYPE\r\n", refused("WRONGTYPE")),
            ],
        ),
    ]
}

#[test]
fn a_check_and_set_writes_in_its_own_epoch_only() {
    let exec = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$4\r\nEXEC\r\n";
    let answers: [(&[u8], Got); 5] = [
        (b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", Got::Done),
        (b"+OK\r\n+QUEUED\r\n*-1\r\n", Got::Conflict),
        (b"+OK\r\n+QUEUED\r\n$-1\r\n", Got::Conflict),
        (b"+OK\r\n-OOM full\r\n-EXECABORT discarded\r\n", refused("OOM full")),
        (b"+OK\r\n+QUEUED\r\n*1\r\n-ERR at run time\r\n", refused("ERR at run time")),
    ];
    for (answer, expected) in answers {
        for cut in 0..=answer.len() {
            let (mut codec, mut out) = (codec(), Vec::new());
            // A key that nobody watches is never written, whatever version comes with it.
            codec.say(&Op::Cas { key: b"k", version: 1, value: b"v" }, &mut out).unwrap();
            assert_eq!(out, b"*1\r\n$4\r\nPING\r\n");
            hear_all(codec.as_mut(), &[b"+PONG\r\n"]).unwrap();
            let cas = Op::Cas { key: b"k", version: 1, value: b"v" };
            codec.say(&Op::GetVersion(b"k"), &mut out).unwrap();
            let got = hear_all(codec.as_mut(), &[b"+OK\r\n$1\r\nx\r\n"]).unwrap();
            assert_eq!(got, [Got::Versioned(b"x".to_vec(), 1)]);
            out.clear();
            codec.say(&cas, &mut out).unwrap();
            assert_eq!(out, exec);
            let got = hear_all(codec.as_mut(), &[&answer[..cut], &answer[cut..]]).unwrap();
            assert_eq!(got, std::slice::from_ref(&expected));
            out.clear();
            codec.say(&cas, &mut out).unwrap();
            assert_eq!(out, b"*1\r\n$4\r\nPING\r\n", "the version is over");
        }
    }
}

/// Asks for a version, answers as a server would, and says whether all watches were let go first.
fn version_of(codec: &mut Resp, key: &[u8]) -> (u64, bool) {
    let mut out = Vec::new();
    codec.say(&Op::GetVersion(key), &mut out).unwrap();
    let anew = out.starts_with(b"*1\r\n$7\r\nUNWATCH\r\n");
    let answer: &[u8] = if anew { b"+OK\r\n+OK\r\n$1\r\nv\r\n" } else { b"+OK\r\n$1\r\nv\r\n" };
    match hear_all(codec, &[answer]).unwrap().as_slice() {
        [Got::Versioned(_, version)] => (*version, anew),
        other => panic!("get-version was answered {other:?}"),
    }
}

#[test]
fn watches_are_let_go_before_they_pile_up() {
    let mut codec = Resp::new("redis", Greeting::default());
    let versions: Vec<u64> = (0..300_u32)
        .map(|round| {
            let (version, anew) = version_of(&mut codec, &round.to_be_bytes());
            assert_eq!(anew, round > 0 && round % 128 == 0);
            version
        })
        .collect();
    assert!(versions[0] < versions[128] && versions[128] < versions[256]);
    assert_eq!(codec.commands(), 300 * 2 + 2);
}

#[test]
fn a_watch_that_cannot_succeed_any_more_is_let_go() {
    let ab = keys(&[b"a", b"b"]);
    let writes = [
        (Op::Set { key: b"a", value: b"", ttl_s: None }, &b"+OK\r\n"[..]),
        (Op::SetIfAbsent { key: b"a", value: b"" }, b"$-1\r\n"),
        (Op::Delete(b"a"), b":1\r\n"),
        (Op::Increment { key: b"a", by: 1 }, b":1\r\n"),
        (Op::SetMany(Pairs { keys: ab.lend(), values: ab.lend() }), b"+OK\r\n"),
        (Op::Tally { records: ab.lend(), fields: keys(&[b"f"]).lend(), by: 1 }, b":1\r\n:1\r\n"),
    ];
    for (write, answer) in writes {
        let mut codec = Resp::new("redis", Greeting::default());
        assert_eq!(version_of(&mut codec, b"a"), (1, false));
        assert_eq!(version_of(&mut codec, b"x"), (1, false));
        codec.say(&write, &mut Vec::new()).unwrap();
        hear_all(&mut codec, &[answer]).unwrap();
        // A write of a key that nobody watches changes nothing about it.
        for (other, answer) in
            [(Op::Set { key: b"o", value: b"", ttl_s: None }, &b"+OK\r\n"[..]), (Op::Delete(b"o"), &b":1\r\n"[..])]
        {
            codec.say(&other, &mut Vec::new()).unwrap();
            hear_all(&mut codec, &[answer]).unwrap();
        }
        assert_eq!(version_of(&mut codec, b"y"), (2, true), "after {}", write.name());
        codec.say(&write, &mut Vec::new()).unwrap();
        hear_all(&mut codec, &[answer]).unwrap();
        assert_eq!(version_of(&mut codec, b"z"), (2, false), "what was written is not watched any more");
        assert_eq!(version_of(&mut codec, b"z"), (3, true), "a watch again is not a new watch");
    }
}

#[test]
fn a_version_from_before_is_over_though_its_key_is_watched_again() {
    let mut codec = Resp::new("redis", Greeting::default());
    assert_eq!(version_of(&mut codec, b"k"), (1, false));
    assert_eq!(version_of(&mut codec, b"k"), (2, true));
    for (version, said) in [(1, &b"*1\r\n$4\r\nPING\r\n"[..]), (2, b"*1\r\n$5\r\nMULTI\r\n")] {
        let mut out = Vec::new();
        codec.say(&Op::Cas { key: b"k", version, value: b"v" }, &mut out).unwrap();
        assert!(out.starts_with(said), "version {version}: {}", out.escape_ascii());
    }
}

#[test]
fn a_command_for_a_slot_on_its_way_is_announced() {
    let (mut codec, mut out) = (Resp::new("redis", Greeting::default()), Vec::new());
    codec.asking(&mut out);
    codec.say(&Op::Get(b"k"), &mut out).unwrap();
    assert_eq!(out, b"*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    assert_eq!((codec.pending(), codec.commands()), (2, 2));
    let got = hear_all(&mut codec, &[b"+OK\r\n$1\r\nv\r\n"]).unwrap();
    assert_eq!(got, [Got::Greeted, value(b"v")]);
}

#[test]
fn the_greeting_logs_in_and_selects() {
    let greeting = |user: Option<&str>, password: Option<&str>, database| Greeting {
        user: user.map(str::to_string),
        password: password.map(str::to_string),
        database,
    };
    let cases: [(Greeting, &[u8], usize); 6] = [
        (greeting(None, None, None), b"", 0),
        (greeting(None, Some("pw"), None), b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n", 1),
        (greeting(Some("me"), Some("pw"), None), b"*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n", 1),
        (greeting(Some("me"), None, None), b"*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$0\r\n\r\n", 1),
        (greeting(None, None, Some(9)), b"*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n", 1),
        (greeting(None, Some("pw"), Some(9)), b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n", 2),
    ];
    for (greeting, said, answers) in cases {
        let (mut codec, mut out) = (Resp::new("redis", greeting), Vec::new());
        codec.hello(&mut out);
        assert_eq!((out.as_slice(), codec.pending(), codec.commands()), (said, answers, answers as u64));
        let oks = b"+OK\r\n".repeat(answers);
        assert_eq!(hear_all(&mut codec, &[&oks]).unwrap(), vec![Got::Greeted; answers]);
    }
    let mut codec = Resp::new("redis", greeting(None, Some("pw"), Some(99)));
    codec.hello(&mut Vec::new());
    let got = hear_all(&mut codec, &[b"-ERR 'AUTH' with 'pw'\r\n-ERR out of range\r\n"]).unwrap();
    assert_eq!(got, [refused("ERR 'AUTH' with '***'"), refused("SELECT: ERR out of range")]);
}

#[test]
fn hostile_answers_of_redis_are_named() {
    let ab = keys(&[b"a", b"b"]);
    let get = Op::Get(b"k");
    let long_line = [b"+".as_slice(), &[b'x'; 70_000]].concat();
    let long_number = [b"$".as_slice(), &[b'0'; 100]].concat();
    let cases: Vec<(Op<'_>, &[u8], &str)> = vec![
        (get, b"hello", "hello"),
        (get, b"+OK\r\n", "a bulk string"),
        (get, b"$536870913\r\n", "536870913"),
        (get, b"$9223372036854775807\r\n", "9223372036854775807"),
        (get, b"$99999999999999999999\r\n", "a number"),
        (get, b"$-2\r\n", "$-2"),
        (get, b"$+1\r\na\r\n", "a number"),
        (get, b"$1x\r\na\r\n", "$1x"),
        (get, b"$\r\n", "a number"),
        (get, b"$1\r\nabc", "CRLF after 1 bytes"),
        (get, b"$1\na\n", "CRLF"),
        (get, b"*1\r\n$1\r\na\r\n", "a bulk string"),
        (get, b"_\r\n", "_"),
        (get, &long_line, "at most 65536 bytes"),
        (get, &long_number, "at most 32 bytes"),
        (Op::Delete(b"k"), b":2\r\n", ":2"),
        (Op::Delete(b"k"), b":-1\r\n", ":-1"),
        (Op::Increment { key: b"k", by: 1 }, b"$1\r\n1\r\n", "a sum"),
        (Op::Increment { key: b"k", by: 1 }, b":1.5\r\n", "1.5"),
        (Op::Set { key: b"k", value: b"", ttl_s: None }, b"+QUEUED\r\n", "QUEUED"),
        (Op::GetMany(ab.lend()), b"*3\r\n", "as many values as there were keys"),
        (Op::GetMany(ab.lend()), b"*1\r\n", "as many values as there were keys"),
        (Op::GetMany(ab.lend()), b"*-1\r\n", "as many values as there were keys"),
        (Op::GetMany(ab.lend()), b"*-2\r\n", "*-2"),
        (Op::GetMany(ab.lend()), b"*2\r\n*1\r\n", "a bulk string"),
        (Op::GetMany(ab.lend()), b"*2\r\n$1\r\na\r\n:1\r\n", ":1"),
        (Op::ReadTally(b"r"), b"*3\r\n", "fields and counts"),
        (Op::ReadTally(b"r"), b"$1\r\na\r\n", "fields and counts"),
        (Op::GetVersion(b"k"), b"+NO\r\n", "+OK"),
        (Op::GetVersion(b"k"), b"+OK\r\n+OK\r\n", "a bulk string"),
        (Op::Cas { key: b"k", version: 9, value: b"" }, b"+OK\r\n", "+PONG"),
        (Op::Tally { records: ab.lend(), fields: ab.lend(), by: 1 }, b":1\r\n+OK\r\n", "a sum"),
    ];
    for (op, answer, named) in cases {
        is_garbled(codec, &op, answer, named);
    }
}

/// An answer whose bytes are all there at once.
fn read_value(bytes: &[u8]) -> Result<Option<(usize, Value)>, Fault> {
    values()(bytes)
}

/// What was read may be anything by then: it is not looked at again.
#[test]
fn an_answer_in_pieces_is_read_once() {
    let mut read = values();
    assert_eq!(read(b"*2\r\n*2\r\n$1\r\na\r\n$2\r\nb").unwrap(), None);
    let bytes = b"????????" as &[u8];
    let bytes = [bytes, b"???????", b"$2\r\nbb\r\n:7\r\n"].concat();
    let text = |text: &str| Value::Text(text.as_bytes().to_vec());
    let expected = Value::List(vec![Value::List(vec![text("a"), text("bb")]), Value::Number(7)]);
    assert_eq!(read(&bytes).unwrap(), Some((bytes.len(), expected)));
}

#[test]
fn an_answer_of_endless_elements_is_refused() {
    let mut bytes = b"*2000000000\r\n".to_vec();
    (0..600_000).for_each(|_| bytes.extend_from_slice(b":1\r\n"));
    let said = read_value(&bytes).expect_err("it is too long").to_string();
    assert!(said.contains("at most 524288 elements"), "{said}");
    // The array itself is one of them.
    let most = [b"*524287\r\n".to_vec(), b":1\r\n".repeat(524_287)].concat();
    assert_eq!(read_value(&most).unwrap().map(|(used, _)| used), Some(most.len()));
}

#[test]
fn any_answer_is_read_as_a_value() {
    let text = |text: &str| Value::Text(text.as_bytes().to_vec());
    let bytes = b"*5\r\n+OK\r\n$2\r\n\r\n\r\n:-3\r\n$-1\r\n*2\r\n-ERR no\r\n*0\r\nmore";
    let expected = Value::List(vec![
        text("OK"),
        text("\r\n"),
        Value::Number(-3),
        Value::Missing,
        Value::List(vec![Value::Error("ERR no".to_string()), Value::List(Vec::new())]),
    ]);
    let whole = bytes.len() - 4;
    assert_eq!(read_value(bytes).unwrap(), Some((whole, expected)));
    for cut in 0..whole {
        assert_eq!(read_value(&bytes[..cut]).unwrap(), None);
    }
    assert!(read_value(&b"*1\r\n".repeat(100_000)).is_err());
    assert_eq!(read_value(b"*9223372036854775807\r\n").unwrap(), None);
    let mut said = Vec::new();
    command(&[b"CONFIG", b"GET", b""], &mut said);
    assert_eq!(said, b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$0\r\n\r\n");
}

#[test]
fn a_pong_is_read_once_it_is_whole_and_nothing_else_is() {
    assert_eq!(pong(b"+PONG\r\n+OK").unwrap(), Some((7, ())));
    (0..7).for_each(|cut| assert_eq!(pong(&b"+PONG\r\n"[..cut]).unwrap(), None));
    let refusal = pong(b"-NOAUTH Authentication required.\r\n");
    assert!(matches!(refusal, Err(Fault::Refused(words)) if words == "NOAUTH Authentication required."));
    assert!(matches!(pong(b"+OK\r\n"), Err(Fault::Garbled(_))));
}
