//! Questions that are written many at once, by a codec's pattern, are those that would be said one by one.

use kvfair::jobs::getset::GETSET;
use kvfair::jobs::{Ask, Client, Part};
use kvfair::model::load::{At, Keys, Load};
use kvfair::model::op::{Alike, Op};
use kvfair::model::trial::{Data, JobSettings};
use kvfair::protocol::Codec;

use super::{Make, hear_all, memcache, mysql, postgres, resp};
use crate::common::nothing::Nothing;

const REQUESTS: u64 = 40;

fn client(part: Part, value_bytes: u32, keys: Keys) -> Box<dyn Client> {
    let settings = JobSettings {
        name: GETSET.name.to_string(),
        data: Data::Recipe { name: GETSET.recipe.to_string(), seed: 1 },
        format: String::new(),
        read_as: None,
        units: Some(REQUESTS),
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: Some(Load { records: 200_000_000, value_bytes, keys, ..Load::default() }),
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    let at = At { value_bytes, ..At::closed(1, REQUESTS) };
    (GETSET.open)(&settings).client(part, 0, at, &Nothing).expect("a client")
}

/// One after another, as many as there are.
fn said(client: &mut dyn Client, codec: &mut dyn Codec, most: u32, out: &mut Vec<u8>) -> u32 {
    let mut count = 0;
    while count < most {
        match client.ask() {
            Ask::Op(op) => codec.say(&op, out).expect("it can be said"),
            _ => break,
        }
        count += 1;
    }
    count
}

/// By the pattern, if there is one.
fn written(client: &mut dyn Client, codec: &mut dyn Codec, most: u32, out: &mut Vec<u8>) -> Option<u32> {
    let alike = client.alike(most)?;
    let (count, pattern) = (alike.count, codec.pattern(&alike)?);
    client.write(count, pattern, out);
    Some(count)
}

const MAKES: [(Make, &[u8]); 4] = [
    (resp::codec, b"+OK\r\n"),
    (memcache::codec, b"STORED\r\n"),
    (postgres::codec, postgres::STORED),
    (mysql::codec, mysql::STORED),
];

#[test]
fn what_is_written_is_what_would_be_said() {
    let mut patterns = 0;
    for (make, _) in MAKES {
        for part in [Part::Set, Part::Get] {
            for (bytes, keys) in [16, 17, 32, 33, 100, 256, 257, 15, 1]
                .into_iter()
                .flat_map(|bytes| [(bytes, Keys::Uniform), (bytes, Keys::Sequential)])
            {
                let (mut one, mut other) = (client(part, bytes, keys), client(part, bytes, keys));
                let (mut plain, mut codec) = (make(), make());
                for most in [1, 16, 3, 16, 16, 16] {
                    let (mut expected, mut found) = (b"before".to_vec(), b"before".to_vec());
                    let count = said(one.as_mut(), plain.as_mut(), most, &mut expected);
                    match written(other.as_mut(), codec.as_mut(), most, &mut found) {
                        Some(written) => {
                            patterns += 1;
                            assert_eq!(written, count);
                        }
                        None => assert_eq!(said(other.as_mut(), codec.as_mut(), most, &mut found), count),
                    }
                    assert!(found == expected, "{part:?} of {bytes} bytes, {keys:?}: {}", found.escape_ascii());
                    assert_eq!((codec.pending(), codec.commands()), (plain.pending(), plain.commands()));
                    assert_eq!(other.drawn(), one.drawn());
                }
                assert_eq!(one.drawn(), Some(REQUESTS), "they ended");
            }
        }
    }
    // Sets of 16 to 256 bytes by all, gets by all but one, five times each: the sixth time there is nothing left.
    assert_eq!(patterns, (4 * 6 + 3 * 9) * 2 * 5);
}

#[test]
fn sets_are_heard_as_done_up_to_the_first_that_is_not() {
    for (make, done) in MAKES {
        let three = done.repeat(3);
        for (bytes, expected) in [
            (three.clone(), 3),
            (done.repeat(9), 5),
            (three[..three.len() - 1].to_vec(), 2),
            ([done, b"-ERR x\r\n", done].concat(), 1),
            ([&done[..2], b"X", &done[3..]].concat(), 0),
            (Vec::new(), 0),
        ] {
            let (mut client, mut codec) = (client(Part::Set, 32, Keys::Uniform), make());
            assert_eq!(written(client.as_mut(), codec.as_mut(), 5, &mut Vec::new()), Some(5));
            assert!(client.sets_only());
            let heard = codec.hear_done(&bytes);
            assert_eq!(heard, (expected, expected as usize * done.len()), "{}", bytes.escape_ascii());
            assert_eq!((codec.pending(), client.done(heard.0)), (5 - expected as usize, u64::from(expected)));
            // What was not plain is heard as ever.
            let rest = done.repeat(5 - expected as usize);
            assert_eq!(hear_all(codec.as_mut(), &[&rest]).expect("right").len(), 5 - expected as usize);
        }
        let (mut client, mut codec) = (client(Part::Get, 32, Keys::Uniform), make());
        said(client.as_mut(), codec.as_mut(), 3, &mut Vec::new());
        assert!(!client.sets_only());
        assert_eq!(codec.hear_done(&three), (0, 0), "no client waits for these");
    }
}

/// What a pattern makes of an op: its bytes with key and value in their places.
fn filled(codec: &mut dyn Codec, op: Op<'_>) -> Option<Vec<u8>> {
    let pattern = codec.pattern(&Alike { count: 3, op })?;
    let mut bytes = pattern.bytes.to_vec();
    bytes[pattern.key_at..][..op.key().len()].copy_from_slice(op.key());
    if let Op::Set { value, .. } = op {
        bytes[pattern.value_at..][..value.len()].copy_from_slice(value);
    }
    Some(bytes)
}

#[test]
fn a_pattern_is_what_would_be_said_whatever_was_said_before() {
    let values = [&[b'v'; 256][..], &[b'w'; 256], b"x", b"yy"];
    for (make, _) in MAKES {
        let mut codec = make();
        let before = codec.commands();
        let sets = ["a", "b", "cc"].iter().flat_map(|key| values.map(|value| (*key, value)));
        let sets = sets.map(|(key, value)| Op::Set { key: key.as_bytes(), value, ttl_s: None });
        for (nth, op) in (1..).zip(sets) {
            let mut said = Vec::new();
            make().say(&op, &mut said).expect("it can be said");
            assert_eq!(filled(codec.as_mut(), op), Some(said), "{op:?}");
            assert_eq!((codec.pending(), codec.commands() - before), (3 * nth, 3 * nth as u64));
        }
        let large = Op::Set { key: b"a", value: &[b'v'; 257], ttl_s: None };
        assert_eq!(filled(codec.as_mut(), large), None, "what is large is not copied twice");
    }
    let mut codec = resp::codec();
    for key in ["a", "b", "cc", "d"] {
        let (op, mut said) = (Op::Get(key.as_bytes()), Vec::new());
        resp::codec().say(&op, &mut said).expect("it can be said");
        assert_eq!(filled(codec.as_mut(), op), Some(said), "{key}");
    }
}

#[test]
fn there_is_no_pattern_where_more_than_key_and_value_differs() {
    let set = |key| Op::Set { key, value: b"v", ttl_s: None };
    let cases = [
        // A set of a watched key would have to be noted.
        (resp::codec as Make, Op::GetVersion(b"k"), set(b"k")),
        // What may have to make a counter holds back what is said behind it.
        (memcache::codec, Op::Increment { key: b"k", by: 1 }, set(b"k")),
        // A key that is escaped is longer than it is, and an answer to a get repeats its key.
        (memcache::codec, set(b"k"), set(b"k k")),
        (memcache::codec, set(b"k"), Op::Get(b"k")),
    ];
    for (make, first, op) in cases {
        let mut codec = make();
        codec.say(&first, &mut Vec::new()).expect("it can be said");
        let before = (codec.pending(), codec.commands());
        assert_eq!(filled(codec.as_mut(), op), None, "{op:?} behind {first:?}");
        assert_eq!((codec.pending(), codec.commands()), before);
    }
}
