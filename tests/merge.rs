//! Merging into records of `fans`: against a plain map, to the byte, and against records that are broken.

use std::collections::{BTreeMap, BTreeSet};

use kvfair::jobs::merge::{Broken, Pages, merge, read};
use kvfair::jobs::packed;
use kvfair::model::op::KeyList;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A record in the plainest form there is.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    fans: u64,
    also: BTreeMap<String, u64>,
}

impl Model {
    fn add(&mut self, own: &str, profile: &BTreeSet<String>) {
        self.fans += 1;
        profile.iter().filter(|page| *page != own).for_each(|page| *self.also.entry(page.clone()).or_default() += 1);
    }

    fn text(&self) -> String {
        let entries: Vec<String> =
            self.also.iter().map(|(name, count)| format!("\"{}\":{count}", escaped(name))).collect();
        format!("{{\"fans\":{},\"also\":{{{}}}}}", self.fans, entries.join(","))
    }
}

fn escaped(name: &str) -> String {
    let escape = |character: char| match character {
        '"' => "\\\"".to_string(),
        '\\' => "\\\\".to_string(),
        '\0'..' ' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    };
    name.chars().map(escape).collect()
}

fn pages(profile: &BTreeSet<String>) -> Pages {
    let mut pages = Pages::default();
    pages.set(profile.iter().map(String::as_bytes).collect::<KeyList>().lend());
    pages
}

fn merged(old: Option<&[u8]>, own: &str, profile: &BTreeSet<String>) -> Result<(u64, String), Broken> {
    let index = profile.iter().position(|page| page == own).expect("the own page is one of the profile");
    let mut out = b"what was there before".to_vec();
    let fans = merge(old, index, &pages(profile), &mut out)?;
    Ok((fans, String::from_utf8(out).expect("UTF-8 goes in, UTF-8 comes out")))
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// The fans of a record, and its names and counts.
type Contents = (u64, Vec<(Vec<u8>, u64)>);

fn contents(record: &[u8]) -> Result<Contents, Broken> {
    let (fans, entries) = read(record)?;
    let entries: Result<Vec<_>, Broken> =
        entries.map(|entry| entry.map(|(name, count)| (name.into_owned(), count))).collect();
    Ok((fans, entries?))
}

/// Names of few different letters, so that they meet, begin alike and have all that is hard: the quote and its lower
/// neighbours in the order of bytes, backslashes, control bytes, and what could be taken for the record's own signs.
fn name() -> impl Strategy<Value = String> {
    let hard = select(vec![
        "a", "b", " ", "!", "\"", "#", "\\", "u", "0", "\0", "\x1f", "\n", "\x7f", "é", "語", ",", ":", "{", "}", "1",
    ]);
    prop_oneof![
        4 => vec(hard, 1..5).prop_map(|parts| parts.concat()),
        3 => ("Page |The Band |\"Weird\" ", 0..60u32).prop_map(|(start, number)| format!("{start}{number}")),
        1 => "[ -~]{1,20}",
        1 => (select(vec!["x", "\\", "\"", "a,\":"]), 50..200usize).prop_map(|(part, count)| part.repeat(count)),
    ]
}

fn profile() -> impl Strategy<Value = BTreeSet<String>> {
    prop_oneof![btree_set(name(), 1..6), btree_set(name(), 1..60)]
}

/// A record of some number of profiles, with counts that are about to get another digit.
fn model() -> impl Strategy<Value = Model> {
    let count = || prop_oneof![1..12u64, select(vec![9, 99, 999_999, 10, u64::MAX - 1])];
    (count(), vec((name(), count()), 0..80)).prop_map(|(fans, also)| Model { fans, also: also.into_iter().collect() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn merging_is_adding_to_a_map(mut model in model(), profile in profile(), own in any::<Index>()) {
        let own = own.get(&profile.iter().cloned().collect::<Vec<_>>()).clone();
        model.also.remove(&own);
        let old = model.text();
        // Half of the profile is in the record already, so that most cases have both.
        for page in profile.iter().step_by(2).filter(|page| **page != own) {
            model.also.insert(page.clone(), 9);
        }
        let old_with_known = model.text();
        for old in [old, old_with_known] {
            let (fans, also) = contents(old.as_bytes()).unwrap();
            let named = also.into_iter().map(|(name, count)| (String::from_utf8(name).unwrap(), count));
            let mut model = Model { fans, also: named.collect() };
            model.add(&own, &profile);
            let (fans, new) = merged(Some(old.as_bytes()), &own, &profile).unwrap();
            prop_assert_eq!(&new, &model.text());
            prop_assert_eq!(fans, model.fans);
        }
    }

    #[test]
    fn records_are_json_that_reads_back(profiles in vec(profile(), 1..8), own in name()) {
        let mut model = Model::default();
        let mut record: Option<String> = None;
        for mut profile in profiles {
            profile.insert(own.clone());
            model.add(&own, &profile);
            record = Some(merged(record.as_deref().map(str::as_bytes), &own, &profile).unwrap().1);
        }
        let record = record.unwrap();
        prop_assert_eq!(&record, &model.text());
        let json: serde_json::Value = serde_json::from_str(&record).unwrap();
        prop_assert_eq!(json["fans"].as_u64(), Some(model.fans));
        let also: BTreeMap<String, u64> = serde_json::from_value(json["also"].clone()).unwrap();
        prop_assert_eq!(&also, &model.also);
        let named = model.also.into_iter().map(|(name, count)| (name.into_bytes(), count));
        let read: Vec<(Vec<u8>, u64)> = named.collect();
        prop_assert_eq!(contents(record.as_bytes()), Ok((model.fans, read)));
    }

    #[test]
    fn broken_records_never_panic(
        model in model(),
        profile in profile(),
        changes in vec((any::<Index>(), prop_oneof![select(b"\"\\,:{}0919u\0\xff".to_vec()), any::<u8>()], 0..3u8), 1..5),
    ) {
        let mut record = model.text().into_bytes();
        for (place, byte, change) in changes {
            if record.is_empty() {
                break;
            }
            let place = place.index(record.len());
            match change {
                0 => record[place] = byte,
                1 => record.insert(place, byte),
                _ => record.truncate(place),
            }
        }
        let own = profile.first().unwrap().clone();
        let index = 0;
        let mut out = Vec::new();
        let merging = merge(Some(&record), index, &pages(&profile), &mut out);
        // Whoever reads strictly finds no less than merging, and what was sound stays so, and is what the map has.
        if let Ok((fans, also)) = contents(&record) {
            let known: BTreeMap<Vec<u8>, u64> = also.into_iter().collect();
            let full = |page: &String| known.get(page.as_bytes()) == Some(&u64::MAX);
            if fans < u64::MAX && !profile.iter().any(full) {
                prop_assert_eq!(merging, Ok(fans + 1));
                let (new_fans, new) = contents(&out).unwrap();
                prop_assert_eq!(new_fans, fans + 1);
                let mut expected = known;
                for page in profile.iter().filter(|page| **page != own) {
                    *expected.entry(page.clone().into_bytes()).or_default() += 1;
                }
                prop_assert_eq!(new.into_iter().collect::<BTreeMap<_, _>>(), expected);
            }
        }
    }
}

#[test]
fn a_record_is_as_documented() {
    let record = br#"{"fans":406,"also":{"Green Bay Packers":22,"Madonna":17}}"#;
    let profile = set(&["Michael Jackson", "Madonna", "Abba"]);
    let (fans, new) = merged(Some(record), "Michael Jackson", &profile).unwrap();
    assert_eq!(new, r#"{"fans":407,"also":{"Abba":1,"Green Bay Packers":22,"Madonna":18}}"#);
    assert_eq!(fans, 407);
    let (fans, new) = merged(None, "Michael Jackson", &profile).unwrap();
    assert_eq!(new, r#"{"fans":1,"also":{"Abba":1,"Madonna":1}}"#);
    assert_eq!(fans, 1);
}

#[test]
fn a_lonely_page_has_no_others() {
    let profile = set(&["Abba"]);
    assert_eq!(merged(None, "Abba", &profile).unwrap().1, r#"{"fans":1,"also":{}}"#);
    assert_eq!(merged(Some(br#"{"fans":1,"also":{}}"#), "Abba", &profile).unwrap().1, r#"{"fans":2,"also":{}}"#);
    let both = set(&["Abba", "Blur"]);
    assert_eq!(merged(Some(br#"{"fans":9,"also":{}}"#), "Abba", &both).unwrap().1, r#"{"fans":10,"also":{"Blur":1}}"#);
}

#[test]
fn names_are_ordered_as_they_are_and_written_as_json_demands() {
    // Written, the quote would be behind "Foo!" and "Foo ", and the escapes behind all letters in capitals.
    let profile = set(&["Foo", "Foo ", "Foo!", "Foo\"", "Foo\\", "Foo\n", "Foo\x1f", "FooA", "Foo~", "own"]);
    let expected = concat!(
        r#"{"fans":1,"also":{"Foo":1,"Foo\u000a":1,"Foo\u001f":1,"Foo ":1,"Foo!":1,"Foo\"":1,"FooA":1,"#,
        r#""Foo\\":1,"Foo~":1}}"#
    );
    assert_eq!(merged(None, "own", &profile).unwrap().1, expected);
    let twice = merged(Some(expected.as_bytes()), "own", &profile).unwrap().1;
    assert_eq!(twice, expected.replace(":1,", ":2,").replace(":1}", ":2}"));
    let mut one_by_one = None;
    for page in profile.iter().filter(|page| *page != "own").rev() {
        one_by_one = Some(merged(one_by_one.as_deref().map(str::as_bytes), "own", &set(&[page, "own"])).unwrap().1);
    }
    assert_eq!(one_by_one.unwrap().replace("\"fans\":9", "\"fans\":1"), expected);
}

#[test]
fn what_is_broken_is_named() {
    let cases: &[(&str, usize, &str)] = &[
        ("", 0, "no {\"fans\":"),
        ("{}", 0, "no {\"fans\":"),
        (r#"{"fans":,"also":{}}"#, 8, "no number"),
        (r#"{"fans":07,"also":{}}"#, 8, "a number that begins with 0"),
        (r#"{"fans":18446744073709551616,"also":{}}"#, 8, "a number beyond 64 bits"),
        (r#"{"fans":18446744073709551615,"also":{}}"#, 8, "fans beyond 64 bits"),
        (r#"{"fans":1,"Also":{}}"#, 9, "no ,\"also\":{"),
        (r#"{"fans":1,"also":{"Z":1}"#, 24, "no }} at the end"),
        (r#"{"fans":1,"also":{"Z":1,}}"#, 24, "no quote before a name"),
        (r#"{"fans":1,"also":{"Z"}}"#, 21, "no colon after a name"),
        (r#"{"fans":1,"also":{"Z}}"#, 20, "no quote after a name"),
        (r#"{"fans":1,"also":{"Z":}}"#, 22, "no number"),
        (r#"{"fans":1,"also":{"Y":x,"Z":1}}"#, 22, "no number"),
        (r#"{"fans":1,"also":{"B":18446744073709551615}}"#, 22, "a count beyond 64 bits"),
        (r#"{"fans":1,"also":{"B":18446744073709551616}}"#, 22, "a number beyond 64 bits"),
        (r#"{"fans":1,"also":{"\u0042":1}}"#, 19, "no escape of this format"),
    ];
    for &(record, at, what) in cases {
        assert_eq!(merged(Some(record.as_bytes()), "A", &set(&["A", "B"])), Err(Broken { at, what }), "{record}");
    }
    // What is stepped over is left to those who read the record.
    let stepped_over: &[(&str, usize, &str)] = &[
        (r#"{"fans":1,"also":{"Y":,"Z":1}}"#, 22, "no number"),
        (r#"{"fans":1,"also":{"Y":1"Z":1}}"#, 23, "no comma after an entry"),
        (r#"{"fans":1,"also":{"Y":1,"Z":-1}}"#, 28, "no number"),
    ];
    for &(record, at, what) in stepped_over {
        assert_eq!(contents(record.as_bytes()), Err(Broken { at, what }), "{record}");
    }
    let names_out_of_place = br#"{"fans":1,"also":{"B":1,"A":1}}"#;
    assert_eq!(contents(names_out_of_place), Err(Broken { at: 24, what: "a name that is not in its place" }));
    assert_eq!(
        contents(b"{\"fans\":1,\"also\":{\"\n\":1}}"),
        Err(Broken { at: 19, what: "a control byte within a name" })
    );
    assert_eq!(Broken { at: 24, what: "no number" }.to_string(), "no number at byte 24");
}

#[test]
fn signs_within_names_are_no_structure() {
    let record = r#"{"fans":3,"also":{",":1,",\":":2,":1,":3,"a,":4,"{}":5}}"#;
    let (_, entries) = contents(record.as_bytes()).unwrap();
    assert_eq!(entries.len(), 5);
    let (_, new) = merged(Some(record.as_bytes()), "own", &set(&["a,", "a-", "own", ",\":"])).unwrap();
    assert_eq!(new, r#"{"fans":4,"also":{",":1,",\":":3,":1,":3,"a,":5,"a-":1,"{}":5}}"#);
}

/// The same of a record in few bytes.
fn packed_contents(record: &[u8]) -> Result<Contents, Broken> {
    let (fans, entries) = packed::read(record)?;
    let entries: Result<Vec<_>, Broken> =
        entries.map(|entry| entry.map(|(name, count)| (name.to_vec(), count))).collect();
    Ok((fans, entries?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn records_in_few_bytes_have_the_same_contents(profiles in vec(profile(), 1..12), own in name()) {
        let (mut text, mut packed): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
        for mut profile in profiles {
            profile.insert(own.clone());
            let index = profile.iter().position(|page| *page == own).unwrap();
            let (pages, mut new_text, mut new_packed) = (pages(&profile), Vec::new(), b"before".to_vec());
            let fans = merge(text.as_deref(), index, &pages, &mut new_text).unwrap();
            prop_assert_eq!(packed::merge(packed.as_deref(), index, &pages, &mut new_packed), Ok(fans));
            (text, packed) = (Some(new_text), Some(new_packed));
        }
        let (text, packed) = (text.unwrap(), packed.unwrap());
        prop_assert_eq!(packed_contents(&packed), Ok(contents(&text).unwrap()));
        prop_assert!(packed.len() < text.len());
    }

    #[test]
    fn broken_records_in_few_bytes_never_panic(
        profiles in vec(profile(), 1..6),
        changes in vec((any::<Index>(), any::<u8>(), 0..3u8), 1..5),
        noise in vec(any::<u8>(), 0..40),
    ) {
        let mut record = Vec::new();
        for profile in &profiles {
            let old = (!record.is_empty()).then(|| record.clone());
            packed::merge(old.as_deref(), 0, &pages(profile), &mut record).unwrap();
        }
        for (place, byte, change) in changes {
            let place = place.index(record.len().max(1));
            match change {
                0 if place < record.len() => record[place] = byte,
                1 => record.insert(place.min(record.len()), byte),
                _ => record.truncate(place),
            }
        }
        for record in [record, noise] {
            let mut out = Vec::new();
            let merged = packed::merge(Some(&record), 0, &pages(&profiles[0]), &mut out);
            match packed_contents(&record) {
                // What is sound stays so; only a count that is full may stop it.
                Ok((fans, _)) => {
                    prop_assert!(merged == Ok(fans + 1) || merged.unwrap_err().what == "a count that cannot grow");
                    prop_assert!(merged.is_err() || packed_contents(&out).is_ok());
                }
                Err(_) => prop_assert!(merged.is_err()),
            }
        }
    }
}

#[test]
fn a_record_in_few_bytes_is_as_documented() {
    let record = b"\x96\x03\x11Green Bay Packers\x16\x07Madonna\x11";
    let known = vec![(b"Green Bay Packers".to_vec(), 22), (b"Madonna".to_vec(), 17)];
    assert_eq!(packed_contents(record), Ok((406, known)));
    let profile = set(&["Michael Jackson", "Madonna", "Abba"]);
    let mut out = Vec::new();
    assert_eq!(packed::merge(Some(record), 2, &pages(&profile), &mut out), Ok(407));
    assert_eq!(out, b"\x97\x03\x04Abba\x01\x11Green Bay Packers\x16\x07Madonna\x12");
    assert_eq!(packed::merge(None, 0, &pages(&set(&["Abba"])), &mut out), Ok(1));
    assert_eq!(out, b"\x01");
    for (record, what) in [
        (&b""[..], "a number that is cut short"),
        (b"\x80", "a number that is cut short"),
        (b"\x00", "a number below 1"),
        (b"\x81\x00", "a number of more bytes than it needs"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number of more than 64 bits"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", "a number of more than 64 bits"),
        (b"\x01\x05Abba", "a name longer than the record"),
        (b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01Abba", "a name longer than the record"),
        (b"\x01\x04Abba", "a number that is cut short"),
        (b"\x01\x01b\x01\x01a\x01", "a name that is not in its place"),
        (b"\x01\x01a\x01\x01a\x01", "a name that is not in its place"),
    ] {
        assert_eq!(packed_contents(record).unwrap_err().what, what, "{record:?}");
        assert!(packed::merge(Some(record), 0, &pages(&profile), &mut out).is_err(), "{record:?}");
    }
    let full = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(packed::merge(Some(full), 0, &pages(&profile), &mut out).unwrap_err().what, "a count that cannot grow");
}
