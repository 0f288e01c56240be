//! What is right of a store that clients have written to, and what is not.

use super::*;
use crate::harness::oracle::tests::{KnownStore, in_words};
use crate::model::load::{Keys, Spread};

const RECORDS: u64 = 50;

fn settings(name: &str, value_bytes: u32) -> JobSettings {
    let load = Load { records: RECORDS, value_bytes, reads: 1, writes: 1, clients: vec![2], ..Load::default() };
    JobSettings { name: name.to_string(), ..crate::harness::plan::tests::plan(Some(load)).job }
}

fn point(part: Part, number: u32, requests: u64, value_bytes: u32) -> Played {
    Played { part, at: At { number, value_bytes, ..At::closed(2, requests) }, asked: Vec::new() }
}

/// Who set which record when: number of the point, record and version.
fn writes(settings: &JobSettings, points: &[Played]) -> Vec<(u32, u64, u64)> {
    let asked = Asked::of(settings);
    let mut writes = Vec::new();
    for Played { part, at, asked: by_client } in points {
        for index in 0..at.clients {
            let most = by_client.get(index as usize).copied().unwrap_or(asked.share(*part, *at, index));
            let mut questions = asked.questions(*part, *at, index);
            for (nth, question) in (0..most).map(|nth| (nth, questions.draw())).collect::<Vec<_>>() {
                if question.set {
                    writes.push((at.number, question.record, version(at.number, index, nth)));
                }
            }
        }
    }
    writes
}

fn set(held: &mut KnownStore, values: &Values, record: u64, version: u64) {
    let mut value = values.blank();
    values.write(record, version, &mut value);
    held.records.insert(KeyText::default().of(record).to_vec(), value);
}

/// A store that was loaded and then heard these writes, one after another.
fn held(settings: &JobSettings, value_bytes: u32, writes: &[(u32, u64, u64)]) -> (KnownStore, Values) {
    let (mut held, values) = (KnownStore::default(), values_of(settings, value_bytes));
    (0..RECORDS).for_each(|record| set(&mut held, &values, record, version(0, 0, 0)));
    writes.iter().for_each(|(_, record, version)| set(&mut held, &values, *record, *version));
    (held, values)
}

fn verdict(settings: &JobSettings, points: &[Played], held: &KnownStore) -> String {
    in_words(&compare(settings, points, held, |_| ()).expect("it is read"))
}

#[test]
fn every_key_holds_its_last_write_however_it_is_asked_for() {
    for (name, part) in [("getset", Part::Set), ("mixed", Part::Run)] {
        for bytes in [1, 15, 16, 64] {
            let settings = settings(name, bytes);
            for played in 0..=3 {
                // Gets alone leave what was there.
                let points = [point(part, 1, 100, bytes), point(part, 2, 30, bytes), point(Part::Get, 3, 30, bytes)];
                let points: Vec<Played> = points.into_iter().take(played).collect();
                let (held, _) = held(&settings, bytes, &writes(&settings, &points));
                let right = format!("50 of 50 keys, {} bytes, 0 too many", RECORDS * u64::from(16 + bytes));
                assert_eq!(verdict(&settings, &points, &held), right, "{name} of {bytes}");
                assert_eq!(verdict(&settings, &points, &KnownStore { one_by_one: true, ..held }), right);
            }
        }
    }
}

#[test]
fn any_clients_last_write_at_the_last_point_that_wrote_a_key_is_right_and_nothing_older() {
    for (name, part, bytes) in [("getset", Part::Set, 64), ("mixed", Part::Run, 64), ("getset", Part::Set, 8)] {
        let (settings, points) = (settings(name, bytes), [point(part, 1, 60, bytes), point(part, 2, 160, bytes)]);
        let writes = writes(&settings, &points);
        let (mut held, values) = held(&settings, bytes, &writes);
        let mut seen = [0, 0];
        for record in (0..RECORDS).step_by(4) {
            let own: Vec<_> = writes.iter().filter(|write| write.1 == record).collect();
            let last = own.iter().map(|write| write.0).max().unwrap_or(0);
            // Of the last point, the last write of each client; what was loaded where nobody wrote.
            let client = |version: u64| version / SEQUENCE_MAX;
            let is_last = |version: u64| {
                let later = own.iter().any(|write| client(write.2) == client(version) && write.2 > version);
                client(version) >> 14 == u64::from(last) && !later
            };
            let others = [version(last, 0, 999), version(last, 1, 999), version(3, 0, 1), version(last, 9, 1)];
            let own: Vec<u64> = own.iter().map(|write| write.2).chain([version(0, 0, 0)]).collect();
            let before = held.records.clone();
            for version in own.iter().copied().chain(others) {
                set(&mut held, &values, record, version);
                let right = own.contains(&version) && is_last(version);
                let said = verdict(&settings, &points, &held);
                assert_eq!(said.starts_with("50 of 50 keys"), right, "{record}, {version:x}: {said}");
                seen[usize::from(right)] += 1;
                if !right && bytes == 64 {
                    let told = format!(
                        "{}: an older value, version {version:x}, not some",
                        readable(KeyText::default().of(record), 99)
                    );
                    assert!(said.starts_with(&told) && said.contains("; 1 wrong; "), "{said}");
                }
            }
            held.records = before;
        }
        assert!(seen[0] > 50 && seen[1] > 13, "{seen:?}");
    }
}

/// Then only what was asked since the earliest of these writes is looked at again.
#[test]
fn a_point_that_wrote_every_key_is_judged_by_its_last_writes() {
    let settings = settings("getset", 64);
    let load = Load { keys: Keys::Sequential, ..settings.load.clone().unwrap_or_default() };
    let (settings, points) = (JobSettings { load: Some(load), ..settings }, [point(Part::Set, 1, 200, 64)]);
    let writes = writes(&settings, &points);
    let (mut held, values) = held(&settings, 64, &writes);
    assert!(verdict(&settings, &points, &held).starts_with("50 of 50 keys"));
    let of_three: Vec<u64> = writes.iter().filter(|write| write.1 == 3).map(|write| write.2).collect();
    set(&mut held, &values, 3, of_three[of_three.len() - 2]);
    assert!(verdict(&settings, &points, &held).contains("; 1 wrong; "));
    // As many records as clients, each of whom asks twice.
    let load = Load { records: 2, ..settings.load.clone().unwrap_or_default() };
    let (settings, points) = (JobSettings { load: Some(load), ..settings }, [point(Part::Set, 1, 4, 64)]);
    held.records.clear();
    (0..2).for_each(|client| set(&mut held, &values, client, version(1, client as u32, 1)));
    assert!(verdict(&settings, &points, &held).starts_with("2 of 2 keys"), "{}", verdict(&settings, &points, &held));
}

#[test]
fn what_was_not_asked_was_not_written() {
    let settings = settings("getset", 64);
    let fewer = |asked: &[u64]| [Played { asked: asked.to_vec(), ..point(Part::Set, 1, 100, 64) }];
    let (held, _) = held(&settings, 64, &writes(&settings, &fewer(&[11, 3])));
    assert!(verdict(&settings, &fewer(&[11, 3]), &held).starts_with("50 of 50 keys"));
    assert!(verdict(&settings, &fewer(&[10, 3]), &held).contains("; 1 wrong; "));
    assert!(verdict(&settings, &fewer(&[11, 2]), &held).contains("; 1 wrong; "));
}

#[test]
fn what_is_missing_or_strange_or_too_much_is_told() {
    let (settings, points) = (settings("getset", 64), [point(Part::Set, 1, 100, 64)]);
    let right = || held(&settings, 64, &writes(&settings, &points)).0;
    let key = KeyText::default().of(7).to_vec();
    let with = |value: &[u8]| {
        let mut held = right();
        held.records.insert(key.clone(), value.to_vec());
        held
    };
    let told =
        "key:000000000007: 3 bytes that are no value of this key: abc, not some client's last write of it; 1 wrong";
    assert!(verdict(&settings, &points, &with(b"abc")).starts_with(told));
    let mut changed = right().records[&key].clone();
    changed[63] ^= 1;
    let said = verdict(&settings, &points, &with(&changed));
    assert!(said.starts_with("key:000000000007: 64 bytes that are no value of this key: "), "{said}");
    let mut missing = right();
    missing.records.remove(&key);
    let said = verdict(&settings, &points, &missing);
    assert!(
        said.starts_with("key:000000000007: nothing, not some") && said.ends_with("3920 bytes, -1 too many"),
        "{said}"
    );
    let more = KnownStore { count: Some(Some(51)), ..right() };
    let said = "(count of records): 51, not 50; 1 wrong; 50 of 50 keys, 4000 bytes, 1 too many";
    assert_eq!(verdict(&settings, &points, &more), said);
    let silent = KnownStore { count: Some(None), ..right() };
    assert_eq!(verdict(&settings, &points, &silent), "50 of 50 keys, 4000 bytes, ? too many");
    let short = KnownStore { short: true, ..right() };
    let said = compare(&settings, &points, &short, |_| ()).err();
    assert_eq!(said.as_deref(), Some("reading back: 49 values for 50 keys"));
}

#[test]
fn inserted_records_are_behind_the_loaded_ones_and_no_other_is_written() {
    let (settings, points) = (settings("ycsb-d", 64), [point(Part::Run, 1, 200, 64)]);
    let (asked, at) = (Asked::of(&settings), points[0].at);
    let (mut held, values) = held(&settings, 64, &[]);
    let mut inserts = Vec::new();
    for index in 0..2 {
        let mut questions = asked.questions(Part::Run, at, index);
        let numbers = (0..100).filter(|_| questions.draw().set);
        inserts.extend(
            (0..).zip(numbers).map(|(nth, number)| (RECORDS + 2 * nth + u64::from(index), version(1, index, number))),
        );
    }
    inserts.iter().for_each(|(record, version)| set(&mut held, &values, *record, *version));
    let keys = held.records.len();
    assert!(keys > 120, "{keys}");
    let right = format!("{keys} of {keys} keys, {} bytes, 0 too many", keys * 80);
    let heard = std::sync::Mutex::new(Vec::new());
    let compared = compare(&settings, &points, &held, |keys| heard.lock().expect("nobody panics").push(keys));
    assert_eq!(in_words(&compared.expect("it is read")), right);
    assert_eq!(*heard.lock().expect("nobody panics"), [keys as u64]);
    for (record, version) in [(inserts[3].0, inserts[4].1), (inserts[3].0, version(0, 0, 0)), (5, version(1, 0, 0))] {
        let before = held.records.clone();
        set(&mut held, &values, record, version);
        assert!(verdict(&settings, &points, &held).contains("; 1 wrong; "), "{record}");
        held.records = before;
    }
}

#[test]
fn many_keys_are_read_back_a_part_at_a_time() {
    let (settings, points) = (settings("getset", 64), [point(Part::Set, 1, 100, 64)]);
    let load = Load { records: 450, ..settings.load.clone().unwrap_or_default() };
    let settings = JobSettings { load: Some(load), ..settings };
    let (mut held, values) = held(&settings, 64, &[]);
    (RECORDS..450).for_each(|record| set(&mut held, &values, record, version(0, 0, 0)));
    writes(&settings, &points).iter().for_each(|(_, record, version)| set(&mut held, &values, *record, *version));
    assert!(verdict(&settings, &points, &held).starts_with("450 of 450 keys, 36000 bytes"));
    assert_eq!(*held.asked.lock().expect("nobody panics"), [200, 200, 50]);
}

#[test]
fn what_is_written_weighs_as_many_records_of_each_size_and_what_is_inserted() {
    let weighed = |name: &str, sizes: &[u32], spread: Option<Spread>| {
        let settings = settings(name, 64);
        let load = Load { spread, writes: 3, ..settings.load.clone().unwrap_or_default() };
        let points: Vec<At> = sizes.iter().map(|bytes| point(Part::Set, 1, 200, *bytes).at).collect();
        weight(&settings, &load, &points).entries().collect::<Vec<_>>()
    };
    assert_eq!(weighed("getset", &[64], None), [(80, 50)]);
    assert_eq!(weighed("getset", &[64, 112, 64], None), [(80, 50), (128, 50)]);
    // Three of four of 200 requests, a tenth more for chance, and 100.
    assert_eq!(weighed("ycsb-d", &[64], None), [(80, 50 + 265)]);
    let spread = weighed("getset", &[64], Some(Spread::Range { low: 1, high: 500 }));
    assert!(spread.len() > 5 && spread.iter().map(|(_, count)| count).sum::<u64>() == 50, "{spread:?}");
}

#[test]
fn values_are_packed_as_far_as_they_compress() {
    let share = |percent, records| {
        let settings = settings("getset", 1_000);
        let load = Load { compressible_percent: percent, ..settings.load.clone().unwrap_or_default() };
        zstd_share(&values_of(&JobSettings { load: Some(load), ..settings }, 1_000), records)
    };
    assert!((0.47..0.56).contains(&share(50, 100)), "{}", share(50, 100));
    // Of all that there may be, a page is looked at.
    assert!((0.44..0.56).contains(&share(50, u64::MAX)), "{}", share(50, u64::MAX));
    assert!((0.97..1.01).contains(&share(0, 100)), "{}", share(0, 100));
    assert!(share(100, 100) < 0.05, "{}", share(100, 100));
}

#[test]
fn of_a_store_that_is_only_read_nothing_is_drawn_beforehand() {
    let replayed = |read_only| {
        let settings = settings("getset", 64);
        let load = Load { read_only, ..settings.load.clone().unwrap_or_default() };
        let settings = JobSettings { load: Some(load), units: Some(30), ..settings };
        let source = crate::jobs::Text(String::new());
        let counts = ExpectedRequests.replay(&source, &settings, &mut Sample::new(Verify::Full)).expect("no input");
        assert_eq!((counts.units, counts.asking_units, counts.ops), (30, 30, 30));
        counts.drawn.expect("it is drawn")
    };
    let mut questions = Vec::new();
    let (one, parts) = (settings("getset", 64), [Part::Set, Part::Get]);
    Asked::of(&one).write(30, &parts, &mut questions).expect("memory takes it");
    let (written, read) = (replayed(false), replayed(true));
    assert_eq!((written.data_bytes, written.sha256), (RECORDS * 80, hex::encode(Sha256::digest(&questions))));
    assert_eq!((read.data_bytes, read.sha256.as_str(), read.zstd_share), (0, "", None));
}
