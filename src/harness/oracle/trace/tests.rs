//! What a replay leaves, and what a store may differ in.

use std::sync::LazyLock;

use super::*;
use crate::harness::oracle::tests::{KnownStore, in_words};
use crate::jobs::Text;

/// Time, key, its size, bytes of the value, client, operation, time to live.
const ROWS: &str = "0,a,1,100,1,get,0\n1,a,1,200,1,set,0\n2,b,1,50,1,set,60\n3,b,1,50,1,get,0\n4,c,1,700,1,add,0\n\
                    5,c,1,900,1,add,0\n6,d,1,10,1,set,0\n7,d,1,5000,1,delete,0\n8,e,1,30,1,incr,0\n\
                    9,f,1,12,1,get,60\n";
/// What is left: key, version, bytes.
const LEFT: [(&str, u64, usize); 4] = [("a", 1, 200), ("b", 2, 50), ("c", 4, 700), ("f", 8, 12)];

fn replayed(rows: &str, sample: &mut Sample) -> (Trace, Counts) {
    let job = crate::harness::plan::tests::plan(None).job;
    let settings = JobSettings { name: "trace".to_string(), format: "twitter".to_string(), ..job };
    let mut trace = Trace::default();
    let counts = trace.replay(&Text(rows.to_string()), &settings, sample).expect("good rows");
    (trace, counts)
}

/// They take long to make.
static VALUES: LazyLock<TraceValues> = LazyLock::new(TraceValues::default);

fn held(left: &[(&str, u64, usize)]) -> KnownStore {
    let mut held = KnownStore::default();
    for (key, version, bytes) in left {
        let mut value = Vec::new();
        VALUES.write(hash_of(key.as_bytes()), *version, *bytes, &mut value);
        held.records.insert(key.as_bytes().to_vec(), value);
    }
    held
}

fn verdict(asked: TrialCounts, how: Verify, held: &KnownStore) -> Result<String, String> {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("expected");
    let (trace, _) = replayed(ROWS, &mut Sample::new(Verify::Full));
    trace.write(&path, &mut Summary::default()).expect("there is room");
    compare(&path, how, asked, held, |keys| assert_eq!(keys, 4)).map(|compared| in_words(&compared))
}

const KEPT: TrialCounts = TrialCounts { misses: 2, evicted: 0, expires: false };
const EXPIRES: TrialCounts = TrialCounts { expires: true, ..KEPT };
const EVICTED: TrialCounts = TrialCounts { evicted: 1, ..KEPT };

#[test]
fn what_is_left_is_each_keys_last_write() {
    let (trace, counts) = replayed(ROWS, &mut Sample::new(Verify::Full));
    assert_eq!((counts.units, counts.asking_units, counts.ops, counts.longest_value), (9, 9, 9, 900));
    assert_eq!(counts.traced, Some(Traced { gets: 3, misses: Some(2), unasked: 1 }));
    assert_eq!(trace.totals.expiring, 1);
    let mut left: Vec<_> = trace.entries.iter().map(|(key, at)| (&key[..], at.version, at.bytes as usize)).collect();
    left.sort_unstable();
    assert_eq!(left, LEFT.map(|(key, version, bytes)| (key.as_bytes(), version, bytes)));
    assert!(trace.entries.iter().all(|(key, entry)| entry.may_expire == (**key == *b"b")));
    let scratch = tempfile::tempdir().expect("a directory");
    let mut summary = Summary::default();
    trace.write(&scratch.path().join("expected"), &mut summary).expect("there is room");
    assert_eq!((summary.keys, summary.data_bytes), (4, 4 + 962));
    let mut weight = crate::stores::room::Weight::default();
    LEFT.iter().for_each(|(key, _, bytes)| weight.add((key.len() + bytes) as u64, 1));
    assert_eq!(summary.weight, weight);
}

#[test]
fn of_a_sample_the_misses_are_not_known() {
    let rows: String = (0..90).map(|key| format!("0,key {key},6,30,1,get,0\n")).collect();
    let mut sample = Sample { one_in: 1, limit: 20 };
    let (trace, counts) = replayed(&rows, &mut sample);
    assert_eq!(counts.traced, Some(Traced { gets: 90, misses: None, unasked: 0 }));
    let kept = (0..90).filter(|key| sample.takes(format!("key {key}").as_bytes())).count();
    assert!(sample.one_in > 1 && kept > 0 && trace.entries.len() == kept, "{kept}");
    assert_eq!(trace.totals.misses, UNKNOWN);
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("expected");
    trace.write(&path, &mut Summary::default()).expect("there is room");
    let names: Vec<String> = (0..90).map(|key| format!("key {key}")).collect();
    let left: Vec<_> = (0..).zip(&names).map(|(version, name)| (name.as_str(), version, 30)).collect();
    let compared = compare(&path, Verify::Sample, TrialCounts::default(), &held(&left), |_| ()).expect("it is read");
    assert!(in_words(&compared).starts_with(&format!("{kept} of {kept} keys, ")), "{}", in_words(&compared));
}

#[test]
fn of_several_wrong_keys_the_first_is_told() {
    let (asked, values) = (KEPT, TraceValues::default());
    let mut comparison =
        Comparison { asked, values, found: 0, bytes: 0, expiring: 0, missing: 0, wrong_keys: 0, first: None };
    for key in ["one", "other"] {
        comparison.key(key.as_bytes(), Entry { version: 0, bytes: 9, may_expire: false }, None);
    }
    assert_eq!((comparison.wrong_keys, comparison.missing), (2, 2));
    assert_eq!(comparison.first.map(|wrong| wrong.key).as_deref(), Some("one"));
}

#[test]
fn a_store_that_keeps_everything_holds_all_of_it() {
    let right = Ok("4 of 4 keys, 966 bytes, 0 too many".to_string());
    for one_by_one in [false, true] {
        assert_eq!(verdict(KEPT, Verify::Full, &KnownStore { one_by_one, ..held(&LEFT) }), right);
    }
    let gets = "(gets that found nothing, and keys that are missing)";
    for misses in [1, 3] {
        let said = verdict(TrialCounts { misses, ..KEPT }, Verify::Full, &held(&LEFT)).expect("it is read");
        assert_eq!(said, format!("{gets}: {misses}, not 2; 1 wrong; 4 of 4 keys, 966 bytes, 0 too many"));
    }
    let more = || held(&[&LEFT[..], &[("g", 9, 1)]].concat());
    let said = "(count of records): 5, not 4; 1 wrong; 4 of 4 keys, 966 bytes, 1 too many".to_string();
    assert_eq!(verdict(KEPT, Verify::Full, &more()), Ok(said.clone()));
    assert_eq!(verdict(EXPIRES, Verify::Full, &more()), Ok(said));
    assert_eq!(verdict(KEPT, Verify::Sample, &more()), Ok("4 of 4 keys, 966 bytes, ? too many".to_string()));
    let said = verdict(KEPT, Verify::Full, &KnownStore { short: true, ..held(&LEFT) }).expect_err("a value too few");
    assert!(said.contains("get-many answered by"), "{said}");
}

#[test]
fn what_may_be_gone_is_what_expires_or_was_evicted() {
    let without = |gone: &[&str]| held(&LEFT.into_iter().filter(|left| !gone.contains(&left.0)).collect::<Vec<_>>());
    let gets = "(gets that found nothing, and keys that are missing)";
    let cases: [(TrialCounts, &[&str], &str); 7] = [
        (KEPT, &["b"], "b: nothing, not 50 bytes, as request 3 set them; 1 wrong; 3 of 4 keys, 915 bytes, 0 too many"),
        (EXPIRES, &["b"], "3 of 4 keys, 915 bytes, 0 too many"),
        (
            EXPIRES,
            &["a"],
            "a: nothing, not 200 bytes, as request 2 set them; 1 wrong; 3 of 4 keys, 765 bytes, 0 too many",
        ),
        (EVICTED, &["a"], "3 of 4 keys, 765 bytes, 0 too many"),
        (TrialCounts { misses: 3, ..EVICTED }, &[], "4 of 4 keys, 966 bytes, 0 too many"),
        (TrialCounts { misses: 3, ..EXPIRES }, &[], "4 of 4 keys, 966 bytes, 0 too many"),
        (EVICTED, &["a", "c"], ": 4, not 2 to 3; 1 wrong; 2 of 4 keys, 64 bytes, 0 too many"),
    ];
    for (asked, gone, said) in cases {
        let said = if said.starts_with(':') { format!("{gets}{said}") } else { said.to_string() };
        assert_eq!(verdict(asked, Verify::Full, &without(gone)), Ok(said), "{asked:?} without {gone:?}");
    }
}

#[test]
fn what_expires_between_being_read_and_counted_is_not_missing() {
    let counted = |asked, count| {
        verdict(asked, Verify::Full, &KnownStore { count: Some(Some(count)), ..held(&LEFT) }).expect("it is read")
    };
    let right = "4 of 4 keys, 966 bytes, -1 too many";
    assert_eq!(counted(EXPIRES, 3), right);
    assert!(counted(EXPIRES, 2).starts_with("(count of records): 2, not 4; 1 wrong; "), "one of them may expire");
    assert!(counted(KEPT, 3).starts_with("(count of records): 3, not 4; 1 wrong; "));
}

#[test]
fn a_value_is_of_its_last_write_or_of_a_later_one_where_it_was_gone() {
    let with = |key: &'static str, version, bytes| {
        held(&LEFT.map(|left| if left.0 == key { (key, version, bytes) } else { left }))
    };
    let (right, of_a) = ("keys, ", "not 200 bytes, as request 2 set them; 1 wrong; ");
    let cases = [
        (EVICTED, with("a", 8, 300), right, ""),
        (KEPT, with("a", 8, 300), "a: 300 bytes, as request 9 set them", of_a),
        (EVICTED, with("a", 0, 200), "a: 200 bytes, as request 1 set them", of_a),
        (EVICTED, with("a", 1, 100), "a: 100 bytes, as request 2 set them", of_a),
        // So short a value does not tell all of its version.
        (EVICTED, with("f", 3, 12), right, ""),
        (EVICTED, with("f", 3, 10), right, ""),
        (KEPT, with("f", 3, 12), "f: 12 bytes of another request", "not 12 bytes, as request 9 set them; 1 wrong; "),
    ];
    for (asked, held, found, expected) in cases {
        let said = verdict(asked, Verify::Full, &held).expect("it is read");
        let is_right = said.starts_with("4 of 4 keys");
        assert_eq!(is_right, found == right, "{said}");
        assert!(said.contains(found) && said.contains(expected), "{said}");
    }
    let mut strange = held(&LEFT);
    strange.records.insert(b"a".to_vec(), b"abc".to_vec());
    strange.records.insert(b"b".to_vec(), b"no value".to_vec());
    let said = verdict(EVICTED, Verify::Full, &strange).expect("it is read");
    assert!(said.contains("bytes that are no value of this key: ") && said.contains("; 2 wrong; "), "{said}");
}

#[test]
fn values_are_read_back_so_many_at_once_and_no_more_bytes_of_them() {
    let scratch = tempfile::tempdir().expect("a directory");
    let cases: [(u64, usize, &[usize]); 3] =
        [(450, 20, &[200, 200, 50]), (3, 600_000, &[2, 1]), (2, BATCH_VALUE_BYTES as usize, &[1, 1])];
    for (keys, bytes, asked) in cases {
        let names: Vec<String> = (0..keys).map(|key| format!("key {key}")).collect();
        let rows: String = names.iter().map(|name| format!("0,{name},6,{bytes},1,set,0\n")).collect();
        let left: Vec<(&str, u64, usize)> =
            (0..).zip(&names).map(|(version, name)| (name.as_str(), version, bytes)).collect();
        let (path, store) = (scratch.path().join("expected"), held(&left));
        let (trace, _) = replayed(&rows, &mut Sample::new(Verify::Full));
        trace.write(&path, &mut Summary::default()).expect("there is room");
        let heard = std::sync::Mutex::new(Vec::new());
        let tell = |keys| heard.lock().expect("nobody panics").push(keys as usize);
        let compared = compare(&path, Verify::Full, TrialCounts::default(), &store, tell).expect("it is read");
        assert!(in_words(&compared).starts_with(&format!("{keys} of {keys} keys, ")), "{}", in_words(&compared));
        assert_eq!(*store.asked.lock().expect("nobody panics"), asked);
        let sums = (1..=asked.len()).map(|batches| asked[..batches].iter().sum::<usize>());
        assert_eq!(*heard.lock().expect("nobody panics"), sums.collect::<Vec<_>>());
    }
}
