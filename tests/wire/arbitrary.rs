//! All codecs against whatever bytes, keys and values may come.

use kvfair::model::op::Op;
use kvfair::protocol::Codec;
use kvfair::protocol::memcache::{self, Memcache};
use kvfair::protocol::resp::{self, Greeting, Resp, Value};
use kvfair::protocol::tyrant;
use proptest::prelude::*;

use super::{CODECS, Got, hear_all, mysql, postgres, value};

/// Pieces of real answers and of nonsense, so that arbitrary bytes get past the first character.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        &b"\r\n"[..],
        b"+OK",
        b"$",
        b"*",
        b":",
        b"-",
        b"$-1\r\n",
        b"*2\r\n",
        b"$1\r\na\r\n",
        b"+OK\r\n",
        b":1\r\n",
        b"1",
        b"9999999999",
        b"END\r\n",
        b"STORED\r\n",
        b"VALUE k 0 1\r\n",
        b"VALUE a 0 1\r\nx\r\n",
        b"a\r\n",
        b" ",
        b"VA 1\r\n",
        b"-ERR no\r\n",
        b"ERROR\r\n",
        b"DELETED\r\n",
        b"*-1\r\n",
        b"+QUEUED\r\n",
        b"+PONG\r\n",
        b"-1",
        b"NOT_FOUND\r\n",
        b"7\r\n",
        b"MN\r\n",
        b"HD\r\n",
        b"VA 1 O1\r\nx\r\n",
        b"\0",
        b"\0\0\0\0\x01",
        b"\0\0\0\x01\0\0\0\x01bx",
        b"\x81",
        b"\x81\x09\0\0\x04\0\0\0\0\0\0\x05",
        b"\0\0\0\x01\0\0\0\0\0\0\0\0",
        b"2\0\0\0\x04",
        b"D\0\0\0\x0b\0\x01\0\0\0\x01x",
        b"D\0\0\0\x0c\0\x02\0\0\0\x01b\xff\xff\xff\xff",
        b"C\0\0\0\x0dSELECT 1\0",
        b"C\0\0\0\x0fINSERT 0 1\0",
        b"Z\0\0\0\x05I",
        b"E\0\0\0\x13VERROR\0C22003\0\0",
        b"N\0\0\0\x05\0",
        mysql::STORED,
        mysql::FOUND_ABC,
        b"\x01\0\0\x01\x02",
        b"\x05\0\0\x04\xfe\0\0\x02\0",
        b"\x07\0\0\x01\xff\x16\x04#xxxx",
        postgres::STORED,
        postgres::FOUND_ABC,
    ])
    .prop_map(<[u8]>::to_vec);
    let noise = prop::collection::vec(any::<u8>(), 0..8);
    prop::collection::vec(prop_oneof![4 => pieces, 1 => noise], 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever comes, in whatever pieces: no panic, no endless loop, and the same in one piece as in many.
    #[test]
    fn arbitrary_bytes_are_heard_or_refused(
        bytes in hostile_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        for (make, cases) in CODECS {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let cases = cases();
            for first in 0..cases.len() {
                let codec = || {
                    let mut codec = make();
                    // Every op gets to be the one in front.
                    for case in cases.iter().cycle().skip(first).take(cases.len()) {
                        codec.say(&case.op, &mut Vec::new()).unwrap();
                    }
                    codec
                };
                let (whole, cut) = (hear_all(codec().as_mut(), &[&bytes]), hear_all(codec().as_mut(), &pieces));
                match (whole, cut) {
                    (Ok(whole), Ok(cut)) => prop_assert_eq!(whole, cut),
                    (whole, cut) => prop_assert_eq!(whole.is_err(), cut.is_err()),
                }
            }
        }
        let _ = resp::values()(&bytes);
        let _ = memcache::stats()(&bytes);
        let _ = memcache::version(&bytes);
        let _ = memcache::noop(&bytes);
        let _ = resp::pong(&bytes);
        let _ = tyrant::stats(&bytes);
    }

    /// What goes out for a key and a value comes back as they were, through a server that knows nothing but the
    /// protocol.
    #[test]
    fn any_key_and_value_survive_the_round(
        key in prop::collection::vec(any::<u8>(), 1..80),
        data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (mut codec, mut said) = (Memcache::new("memcached"), Vec::new());
        codec.say(&Op::Set { key: &key, value: &data, ttl_s: None }, &mut said).unwrap();
        let line_end = said.iter().position(|&byte| byte == b'\n').unwrap();
        let line = String::from_utf8_lossy(&said[..line_end - 1]).into_owned();
        prop_assert_eq!(line.split(' ').count(), 5, "the key must stay one word: {}", line);
        prop_assert_eq!(&said[line_end + 1..said.len() - 2], &data[..]);
        hear_all(&mut codec, &[b"STORED\r\n"]).unwrap();
        let mut asked = Vec::new();
        codec.say(&Op::Get(&key), &mut asked).unwrap();
        let name = &asked[4..asked.len() - 2];
        let answer = [b"VALUE ", name, format!(" 0 {}\r\n", data.len()).as_bytes(), &data, b"\r\nEND\r\n"].concat();
        prop_assert_eq!(hear_all(&mut codec, &[&answer]).unwrap(), vec![value(&data)]);

        let (mut codec, mut said) = (Resp::new("redis", Greeting::default()), Vec::new());
        codec.say(&Op::Set { key: &key, value: &data, ttl_s: None }, &mut said).unwrap();
        let words = [b"SET".to_vec(), key.clone(), data.clone()].map(Value::Text).to_vec();
        prop_assert_eq!(resp::values()(&said).unwrap(), Some((said.len(), Value::List(words))));
        let mut out = Vec::new();
        codec.say(&Op::Get(&key), &mut out).unwrap();
        let answer = [b"+OK\r\n", format!("${}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat();
        prop_assert_eq!(hear_all(&mut codec, &[&answer]).unwrap(), vec![Got::Done, value(&data)]);
    }
}
