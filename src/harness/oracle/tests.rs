//! Stores whose records are told beforehand, what comparing with them comes to, and what is told of small data.

use std::sync::Mutex;

use super::*;
use crate::model::load::Load;
use crate::model::op::{Pairs, ValueList};
use crate::model::trial::Data;
use crate::stores::Facts;

/// A store whose records are told beforehand.
#[derive(Default)]
pub struct KnownStore {
    pub records: BTreeMap<Vec<u8>, Vec<u8>>,
    /// It can be asked for one key at a time only.
    pub one_by_one: bool,
    /// It answers to many keys with one value too few.
    pub short: bool,
    /// How many records it says it holds, where that is not how many it holds.
    pub count: Option<Option<u64>>,
    /// How many keys it was asked for at once.
    pub asked: Mutex<Vec<usize>>,
}

impl KnownStore {
    pub fn of<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> KnownStore {
        let records = records.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        KnownStore { records, ..KnownStore::default() }
    }
}

impl Store for KnownStore {
    fn session(&self) -> Result<Box<dyn Session + '_>, Fault> {
        let (values, fields, counts) = (ValueList::default(), KeyList::default(), KeyList::default());
        Ok(Box::new(Asking { held: self, values, numbers: Vec::new(), fields, counts }))
    }

    fn facts(&self) -> Result<Facts, Fault> {
        Ok(Facts::default())
    }

    fn final_flush(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn count(&self) -> Result<Option<u64>, Fault> {
        Ok(self.count.unwrap_or(Some(self.records.len() as u64)))
    }
}

struct Asking<'a> {
    held: &'a KnownStore,
    values: ValueList,
    numbers: Vec<Option<i64>>,
    fields: KeyList,
    counts: KeyList,
}

impl Session for Asking<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        let held = self.held;
        let value = |key: &[u8]| held.records.get(key).map(Vec::as_slice);
        let number = |text: &[u8]| String::from_utf8_lossy(text).parse::<i64>().expect("a number");
        Ok(match *op {
            Op::GetMany(_) | Op::NumberMany(_) if held.one_by_one => return Err(Fault::unsupported("held", op)),
            Op::GetMany(keys) => {
                held.asked.lock().expect("nobody panics").push(keys.len());
                self.values.clear();
                keys.iter().skip(usize::from(held.short)).for_each(|key| self.values.push(value(key)));
                Reply::Values(self.values.lend())
            }
            Op::NumberMany(keys) => {
                let keys = keys.iter().skip(usize::from(held.short));
                self.numbers = keys.map(|key| value(key).map(number)).collect();
                Reply::Numbers(&self.numbers)
            }
            Op::Get(key) => value(key).map_or(Reply::Missing, Reply::Value),
            Op::Number(key) => value(key).map_or(Reply::Missing, |text| Reply::Number(number(text))),
            Op::ReadTally(key) => {
                let Some(tally) = value(key) else { return Ok(Reply::Missing) };
                self.fields.clear();
                self.counts.clear();
                for (field, count) in
                    std::str::from_utf8(tally).expect("text").lines().filter_map(|it| it.split_once('='))
                {
                    self.fields.push(field.as_bytes());
                    self.counts.push(count.as_bytes());
                }
                Reply::Rows(Pairs { keys: self.fields.lend(), values: self.counts.lend() })
            }
            _ => return Err(Fault::unsupported("held", op)),
        })
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// A verdict in one line.
pub fn in_words(compared: &Compared) -> String {
    let of = |checked: &Checked| {
        let Checked { keys, keys_expected, bytes, extra_keys, .. } = checked;
        let extra = extra_keys.map_or("?".to_string(), |extra| extra.to_string());
        format!("{keys} of {keys_expected} keys, {bytes} bytes, {extra} too many")
    };
    match &compared.verdict {
        Verdict::Right(checked) => of(checked),
        Verdict::Wrong { first: Wrong { key, expected, found }, wrong_keys, checked } => {
            format!("{key}: {found}, not {expected}; {wrong_keys} wrong; {}", of(checked))
        }
        other => panic!("{other:?}"),
    }
}

/// Keys and the values that they must hold.
struct Told(Vec<(Vec<u8>, Vec<u8>)>);

impl Replay for Told {
    fn replay(&mut self, _: &dyn Source, _: &JobSettings, _: &mut Sample) -> Result<Counts, InputFault> {
        Ok(Counts::default())
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        self.0.iter().try_for_each(|(key, value)| each(key, value))
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }
}

/// What comparing came to, and after how many keys each time it was told.
fn against(told: &Told, how: Verify, end_state: EndState, held: &KnownStore) -> (Result<Compared, String>, Vec<u64>) {
    let scratch = tempfile::tempdir().expect("a directory");
    let pairs = scratch.path().join("expected");
    write_pairs(told, &pairs, &mut Summary::default()).expect("there is room");
    let heard = Mutex::new(Vec::new());
    let compared = compare(&pairs, how, end_state, held, |keys| heard.lock().expect("nobody panics").push(keys));
    (compared, heard.into_inner().expect("nobody panics"))
}

fn verdict(told: &Told, how: Verify, end_state: EndState, held: &KnownStore) -> String {
    in_words(&against(told, how, end_state, held).0.expect("it can be read back"))
}

type Records<'a> = &'a [(&'a str, &'a str)];

fn told(records: Records<'_>) -> Told {
    Told(records.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect())
}

fn held(records: Records<'_>) -> KnownStore {
    KnownStore::of(records.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())))
}

#[test]
fn what_is_held_is_right_however_it_is_asked_for() {
    let record = "{\"fans\":2,\"also\":{\"b\":1}}";
    let cases: [(EndState, Records<'_>, Records<'_>, &str); 5] = [
        (EndState::Values, &[("a", "1"), ("b", ""), ("cc", "x y")], &[], "3 of 3 keys, 8 bytes, 0 too many"),
        (EndState::Decimals, &[("a", "10")], &[], "1 of 1 keys, 3 bytes, 0 too many"),
        (EndState::Counters, &[("a", "10"), ("b", "-7")], &[], "2 of 2 keys, 6 bytes, 0 too many"),
        // A tally may take one record of the store or many: they are not counted.
        (EndState::Tallies, &[("a", record)], &[("a", "b=1\na=2")], "1 of 1 keys, 26 bytes, ? too many"),
        (EndState::Packed, &[("a", record)], &[("a", "\x02\x01b\x01")], "1 of 1 keys, 5 bytes, 0 too many"),
    ];
    for (end_state, expected, records, right) in cases {
        for one_by_one in [false, true] {
            let held = KnownStore { one_by_one, ..held(if records.is_empty() { expected } else { records }) };
            assert_eq!(verdict(&told(expected), Verify::Full, end_state, &held), right);
        }
    }
}

#[test]
fn what_is_wrong_is_counted_and_the_first_of_it_is_told() {
    let expected = told(&[("a", "1"), ("b", "2"), ("c", "3")]);
    for (end_state, one_by_one) in
        [EndState::Values, EndState::Counters].into_iter().flat_map(|state| [(state, false), (state, true)])
    {
        let wrong = KnownStore { one_by_one, ..held(&[("a", "1"), ("b", "9")]) };
        let (compared, heard) = against(&expected, Verify::Full, end_state, &wrong);
        let compared = compared.expect("it can be read back");
        assert_eq!(in_words(&compared), "b: 9, not ; 2 wrong; 3 of 3 keys, 4 bytes, -1 too many");
        assert_eq!((compared.wrong_key, heard), (Some(b"b".to_vec()), vec![3]));
    }
    let missing = held(&[("b", "2"), ("c", "3"), ("d", "4")]);
    let said = "a: nothing, not ; 1 wrong; 3 of 3 keys, 4 bytes, 0 too many";
    assert_eq!(verdict(&expected, Verify::Full, EndState::Values, &missing), said);
    let packed = told(&[("a", "{\"fans\":2,\"also\":{\"b\":1}}")]);
    for broken in ["\x02\x01b", "\x02\x01b\x02"] {
        let said = verdict(&packed, Verify::Full, EndState::Packed, &held(&[("a", broken)]));
        assert!(said.contains("; 1 wrong; "), "{said}");
    }
}

#[test]
fn records_that_nobody_should_have_written_are_told_where_all_are_known() {
    let (expected, more) = (told(&[("a", "1")]), || held(&[("a", "1"), ("b", "2")]));
    let said = "(count of records): 2, not 1; 1 wrong; 1 of 1 keys, 2 bytes, 1 too many";
    assert_eq!(verdict(&expected, Verify::Full, EndState::Values, &more()), said);
    let unknown = "1 of 1 keys, 2 bytes, ? too many";
    assert_eq!(verdict(&expected, Verify::Sample, EndState::Values, &more()), unknown);
    let silent = KnownStore { count: Some(None), ..more() };
    assert_eq!(verdict(&expected, Verify::Full, EndState::Values, &silent), unknown);
}

/// A key of so many bytes.
fn long(key: usize, bytes: usize) -> String {
    format!("{key:03}{}", "k".repeat(bytes - 3))
}

#[test]
fn keys_are_read_back_so_many_at_once_and_no_more_bytes_of_them() {
    let cases: [(usize, usize, &[usize]); 4] =
        [(450, 3, &[200, 200, 50]), (5, 40_000, &[2, 2, 1]), (2, 65_536, &[1, 1]), (0, 3, &[])];
    for (keys, bytes, asked) in cases {
        let expected = Told((0..keys).map(|key| (long(key, bytes).into_bytes(), b"v".to_vec())).collect());
        let held = KnownStore::of(expected.0.iter().map(|(key, value)| (key.as_slice(), value.as_slice())));
        let (compared, heard) = against(&expected, Verify::Full, EndState::Values, &held);
        let right = format!("{keys} of {keys} keys, {} bytes, 0 too many", keys * (bytes + 1));
        assert_eq!(in_words(&compared.expect("it can be read back")), right);
        assert_eq!(*held.asked.lock().expect("nobody panics"), asked);
        let sums = asked.iter().scan(0, |sum, keys| {
            *sum += *keys as u64;
            Some(*sum)
        });
        assert_eq!(heard, sums.collect::<Vec<_>>());
    }
}

#[test]
fn an_answer_with_a_value_too_few_is_no_answer() {
    for (end_state, op) in [(EndState::Values, "get-many"), (EndState::Counters, "number-many")] {
        let short = KnownStore { short: true, ..held(&[("a", "1"), ("b", "2")]) };
        let said = against(&told(&[("a", "1"), ("b", "2")]), Verify::Full, end_state, &short).0.err();
        assert!(said.as_deref().is_some_and(|said| said.contains(&format!("{op} answered by"))), "{said:?}");
    }
}

/// What the process of the expected state answers for this data, and the size of the file of pairs.
fn summary(job: JobSettings, data: &str, verify: Verify, explain: Option<&str>) -> Result<(Summary, u64), String> {
    let scratch = tempfile::tempdir().expect("a directory");
    let (input, out) = (scratch.path().join("data"), scratch.path().join("expected"));
    std::fs::write(&input, data).expect("there is room");
    let job = JobSettings { data: Data::File { path: input.clone() }, ..job };
    let explain = explain.map(|key| key.as_bytes().to_vec());
    let told = compute(&OracleTask { job, input, verify, out: out.clone(), explain, memory_bytes: None })?;
    Ok((told, std::fs::metadata(out).map_or(0, |file| file.len())))
}

fn job(name: &str, format: &str, load: Option<Load>) -> JobSettings {
    let (name, format) = (name.to_string(), format.to_string());
    JobSettings { name, format, ..crate::harness::plan::tests::plan(load).job }
}

#[test]
fn a_summary_tells_what_was_replayed() {
    let (fans, data) = (|| job("fans", "tsv", None), "u1\ta\tb\nu2\ta\nu3\n");
    let (all, file) = summary(fans(), data, Verify::Full, None).expect("good profiles");
    assert_eq!(all.stream.sha256, hex::encode(Sha256::digest(data)));
    assert_eq!((all.stream.unit.as_str(), all.stream.units, all.stream.ops, all.asking_units), ("profile", 3, 6, 2));
    // Two records of 25 bytes with keys of one.
    assert_eq!((all.keys, all.data_bytes, all.fields, all.longest_value), (2, 52, 4, 0));
    assert_eq!(all.weight.entries().collect::<Vec<_>>(), [(26, 2)]);
    assert_eq!((all.answer["pages"].as_str(), &all.explained, file), ("2", &None, 2 * (4 + 1 + 16)));
    let (explained, file) = summary(fans(), data, Verify::Full, Some("b")).expect("good profiles");
    assert_eq!(expected(&explained), "{\"fans\":1,\"also\":{\"a\":1}}");
    assert_eq!((explained.keys, explained.answer.len(), file), (0, 0, 0));
    let (counted, file) = summary(job("ngrams", "text", None), "a b\na\n", Verify::Full, None).expect("messages");
    // a, b and "a b", each with a digit.
    assert_eq!((counted.keys, counted.data_bytes, counted.fields, file), (3, 5 + 3, 0, 5 + 3 * (4 + 16)));
    let (unknown, _) = summary(fans(), data, Verify::Full, Some("c")).expect("good profiles");
    assert_eq!(expected(&unknown), "nothing");
    assert_eq!(
        summary(job("no such job", "tsv", None), data, Verify::Full, None).err().as_deref(),
        Some("no expected state is known of job no such job")
    );
}

#[test]
fn a_sample_stands_for_all_keys() {
    let data: String = (0..400).map(|user| format!("u\tpage {user}\n")).collect();
    let (some, _) = summary(job("fans", "tsv", None), &data, Verify::Sample, None).expect("good profiles");
    let sample = Sample::new(Verify::Sample);
    let kept: Vec<String> =
        (0..400).map(|user| format!("page {user}")).filter(|page| sample.takes(page.as_bytes())).collect();
    assert!((10..50).contains(&kept.len()), "{} of 400", kept.len());
    let bytes: usize = kept.iter().map(|page| page.len() + "{\"fans\":1,\"also\":{}}".len()).sum();
    assert_eq!((some.keys, some.data_bytes), (kept.len() as u64, 16 * bytes as u64));
    assert_eq!(some.weight.entries().map(|(_, count)| count).sum::<u64>(), 16 * kept.len() as u64);
    assert_eq!(some.fields, 16 * some.keys, "each page has one, and no other page beside it");
    assert!(some.answer.is_empty() && some.stream.units == 400);
}

#[test]
fn what_is_drawn_is_counted_though_it_is_not_read() {
    let load = Load { records: 10, value_bytes: 100, clients: vec![1], ..Load::default() };
    let (drawn, _) = summary(JobSettings { units: Some(5), ..job("getset", "", Some(load)) }, "", Verify::Full, None)
        .expect("it can be drawn");
    assert_eq!((drawn.data_bytes, drawn.stream.units, drawn.stream.ops, drawn.asking_units), (10 * 116, 5, 5, 5));
    assert_eq!((drawn.keys, drawn.stream.sha256.len()), (0, 64));
}

#[test]
fn a_sample_takes_one_key_in_so_many_and_half_as_many_once_it_is_outgrown() {
    let taken = |sample: &Sample| (0..8_000).filter(|key: &u64| sample.takes(&key.to_le_bytes())).count();
    let mut sample = Sample::new(Verify::Full);
    assert_eq!(taken(&sample), 8_000);
    assert!(!sample.outgrown(usize::MAX) && sample.one_in == 1);
    let mut sample = Sample { limit: 10, ..Sample::new(Verify::Sample) };
    assert!((400..600).contains(&taken(&sample)), "{}", taken(&sample));
    assert!(!sample.outgrown(9) && !sample.outgrown(10) && sample.one_in == 16);
    assert!(sample.outgrown(11) && sample.one_in == 32);
    assert!(sample.outgrown(30) && sample.one_in == 64);
    assert!((80..170).contains(&taken(&sample)), "{}", taken(&sample));
}

#[test]
fn lines_are_hashed_in_the_order_of_their_bytes() {
    let lines = ["b\n", "a\n", "\n"].map(|line| line.as_bytes().to_vec()).to_vec();
    assert_eq!(sha256_of_sorted(lines), hex::encode(Sha256::digest("\na\nb\n")));
}
