//! Recorded traffic: rows of every form as they are, whatever blocks they come in, and bad ones by what is wrong.

use kvfair::jobs::trace::forms::{NAMES, Operation, VALUE_BYTES_MAX};
use kvfair::jobs::trace::recorded::{Recorded, RecordedRequest};
use kvfair::model::trial::{Data, JobSettings};

use super::{Bytes, Gzip};
use crate::common::needs::{self, Need, needs};
use kvfair::jobs::Source;

/// Time, key, bytes, operation and time to live.
type Told = (u64, String, u32, Operation, u32);

fn settings(form: &str, units: Option<u64>, skip_bad: u64) -> JobSettings {
    JobSettings {
        name: "trace".to_string(),
        data: Data::File { path: "data".into() },
        format: form.to_string(),
        read_as: None,
        units,
        skip_bad,
        via: Default::default(),
        split: Default::default(),
        load: None,
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    }
}

fn read(settings: &JobSettings, source: &dyn Source) -> Result<(Vec<Told>, u64, u64), String> {
    let mut recorded = Recorded::open(settings, source).map_err(|error| error.to_string())?;
    let mut told = Vec::new();
    let mut take = |request: RecordedRequest<'_>| {
        assert_eq!(request.number, told.len() as u64);
        let mut key = Vec::new();
        request.key.write(&mut key);
        told.push((
            request.time_s,
            String::from_utf8(key).unwrap(),
            request.value_bytes,
            request.operation,
            request.ttl_s,
        ));
    };
    while recorded.read(&mut take).map_err(|fault| fault.to_string())? {}
    Ok((told, recorded.skipped(), recorded.unasked()))
}

fn rows(form: &str, data: impl Into<Vec<u8>>) -> Result<Vec<Told>, String> {
    read(&settings(form, None, 0), &Bytes(data.into())).map(|(told, _, _)| told)
}

fn get(time_s: u64, key: &str, bytes: u32) -> Told {
    (time_s, key.to_string(), bytes, Operation::Get, 0)
}

fn record(time_s: u32, object: u64, bytes: u32) -> Vec<u8> {
    [&time_s.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &(-1_i64).to_le_bytes()].concat()
}

#[test]
fn rows_of_every_form_are_read_as_they_are() {
    assert_eq!(
        rows(
            "libcachesim",
            "# time, object, size, next_access_vtime\n0, 42932745, 512, -1\n7,18446744073709551615,0,9\n"
        ),
        Ok(vec![get(0, "42932745", 512), get(7, "18446744073709551615", 0)])
    );
    assert_eq!(rows("oracle", [record(5, 7, 9), record(6, u64::MAX, 0)].concat()).unwrap()[1].1, u64::MAX.to_string());
    assert_eq!(
        rows("arc", "110765 2 0 0\n9 1 0 1\r\n"),
        Ok(vec![get(0, "110765", 512), get(0, "110766", 512), get(0, "9", 512)])
    );
    let twitter = "3,a b,3,20,1,gets,0\n4,c,1,0,1,cas,60\n5,c,1,1,1,replace,0\n6,c,1,1,1,append,0\n7,c,1,8,1,incr,0\n\
                   8,c,1,5,1,add,99\n9,c,1,5,1,set,86400000\n9,c,1,0,1,delete,0";
    let expected = [
        get(3, "a b", 20),
        (4, "c".to_string(), 0, Operation::Set, 60),
        (5, "c".to_string(), 1, Operation::Set, 0),
        (8, "c".to_string(), 5, Operation::Add, 99),
        (9, "c".to_string(), 5, Operation::Set, 30 * 24 * 3600),
        (9, "c".to_string(), 0, Operation::Delete, 0),
    ];
    let (told, skipped, unasked) = read(&settings("twitter", None, 0), &Bytes(twitter.into())).unwrap();
    assert_eq!((told.as_slice(), skipped, unasked), (&expected[..], 0, 2));
}

#[test]
fn ten_lines_of_twitters_own() {
    needs!(Need::published("twitter-7col.csv"));
    let told = rows("twitter", std::fs::read(needs::published("twitter-7col.csv")).unwrap()).unwrap();
    assert_eq!(told.len(), 10);
    assert_eq!(told[0].1.len(), 72);
    assert_eq!(told[1], get(0, "q:q:1:8WTwl7huJeQ", 249));
    assert_eq!(told[7], (0, "yDqF:vS:GKA9AK1xJxJ9nKA991".to_string(), 27, Operation::Add, 86_400));
    assert_eq!(told[8].3, Operation::Set);
    assert_eq!(told[9], (0, "q:q:1:FyQjIMHMee".to_string(), 0, Operation::Delete, 0));
}

/// A reader's blocks may end anywhere in a row.
#[test]
fn rows_across_blocks_are_whole() {
    for (form, row) in
        [("twitter", &b"12,some key,8,345,6,set,7\n"[..]), ("arc", b"77 1 0 5\n"), ("oracle", &record(1, 2, 3))]
    {
        let all = row.repeat(20);
        let whole = rows(form, all.clone()).unwrap();
        assert_eq!(whole.len(), 20);
        for block in 1..60 {
            let source = super::Blocks { bytes: all.clone(), block };
            assert_eq!(read(&settings(form, None, 0), &source).unwrap().0, whole, "{form} in blocks of {block}");
        }
    }
}

#[test]
fn a_bad_row_is_named_with_what_is_wrong() {
    let good = "1,k,1,2,3,get,0\n";
    for (row, what) in [
        ("", "an empty line"),
        ("1,k,e,1,2,3,get,0", "8 fields instead of 7: timestamp, key, key size, value size, client id, operation, TTL"),
        ("1,k,1,2,3,get", "6 fields instead of 7"),
        ("x,k,1,2,3,get,0", "timestamp: 'x' is no whole number"),
        ("1,,1,2,3,get,0", "key: an empty key"),
        ("1,k,1,-2,3,get,0", "value size: '-2' is no whole number"),
        ("1,k,1,4294967296,3,get,0", "value size: a value of 4,294,967,296 bytes, of at most 536,870,912"),
        ("1,k,1,18446744073709551616,3,get,0", "value size: '18446744073709551616' is no whole number of 64 bits"),
        ("1,k,1,2,3,got,0", "operation: 'got' is none of get, set, gets, add, cas, replace, delete, incr"),
        ("1,k,1,2,3,get,", "TTL: '' is no whole number"),
        ("1,k,1,2,3,get,0 ", "TTL: '0 ' is no whole number"),
    ] {
        let told = rows("twitter", format!("{good}{row}\n{good}")).unwrap_err();
        assert!(told.starts_with(&format!("data:2: {what}")) && told.contains("--skip-bad"), "{told}");
        let (told, skipped, _) =
            read(&settings("twitter", None, 1), &Bytes(format!("{good}{row}\n{good}").into())).unwrap();
        assert_eq!((told.len(), skipped), (2, 1), "{row}");
    }
    let wrong = |form: &str, data: &[u8]| rows(form, data).unwrap_err();
    for blocks in [1_048_577_u64, 4_000_000_000, 4_294_967_296] {
        let told = wrong("arc", format!("1 {blocks} 0 0\n").as_bytes());
        assert!(told.starts_with("data:1: count: ") && told.contains("of at most 1,048,576"), "{told}");
    }
    assert!(wrong("arc", b"18446744073709551615 2 0 0\n").starts_with("data:1: blocks beyond 64 bits"));
    assert!(wrong("libcachesim", b"1, a, 2, -1\n").starts_with("data:1: object: 'a' is no whole number"));
    let large = [record(1, 1, 1), record(1, 1, VALUE_BYTES_MAX + 1)].concat();
    assert!(wrong("oracle", &large).starts_with("data:2: a value of 536,870,913 bytes, of at most 536,870,912"));
    let cut = [record(1, 1, 1), record(1, 1, 1)].concat();
    assert!(
        wrong("oracle", &cut[..40]).starts_with("data:2: only 16 of the 24 bytes of a record: the input is cut short")
    );
    for form in NAMES {
        assert_eq!(wrong(form, b""), "data: no request in it", "{form}");
    }
    assert_eq!(wrong("twitter", b"1,k,1,8,1,incr,0\n"), "data: no request in it");
    assert!(wrong("twitter", b"1,k,1,2,3,get,0\n1,k,1,2,3,g").contains("no line end follows"));
}

#[test]
fn what_is_asked_for_is_read_and_no_more() {
    let text = "1,k,1,2,3,get,0\n".repeat(9) + "bad\n";
    let (told, _, _) = read(&settings("twitter", Some(9), 0), &Bytes(text.clone().into())).unwrap();
    assert_eq!(told.len(), 9);
    let (told, _, _) = read(&settings("arc", Some(5), 0), &Bytes(b"3 4 0 0\n9 1048576 0 1\n".into())).unwrap();
    assert_eq!(told.last(), Some(&get(0, "9", 512)));
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packer, &text.as_bytes()[..text.len() - 4]).unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(read(&settings("twitter", None, 0), &Gzip(packed.clone())).unwrap().0.len(), 9);
    let cut = read(&settings("twitter", None, 0), &Gzip(packed[..packed.len() - 9].to_vec())).unwrap_err();
    assert!(cut.contains("cannot read on: "), "{cut}");
}
