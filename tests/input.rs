//! What comes in as data is hostile until checked: bad lines are named with their place and what is wrong, and never
//! guessed at.

use std::io::{self, BufRead, BufReader, Cursor, Write};

use kvfair::jobs::lines::{LINE_BYTES_MAX, Lines};
use kvfair::jobs::ngrams::NGRAMS;
use kvfair::jobs::people::{Profile, Profiles};
use kvfair::jobs::text::{Messages, Terms};
use kvfair::jobs::{Ask, Heard, Part, Source};
use kvfair::model::load::At;
use kvfair::model::op::Reply;
use kvfair::model::trial::{Data, JobSettings, NgramSettings, NgramUnit};

mod recorded;

#[test]
fn lines_end_as_they_may() {
    assert_eq!(lines(b"a\nb\r\n\n\r\nc\r\r\nd"), ["a", "b", "", "", "c\r", "d"]);
    assert_eq!(lines(b"a\r"), ["a\r"], "only an LF makes the CR before it part of a line end");
    assert_eq!(lines(b""), [""; 0]);
    assert_eq!(lines(b"\n"), [""]);
    // Longer than any buffer of a reader.
    let long = "x".repeat(100_000);
    assert_eq!(lines(format!("{long}\n{long}").as_bytes()), [long.as_str(), long.as_str()]);
}

#[test]
fn a_line_without_end_is_told_apart() {
    let mut lines = Lines::open(&Bytes(b"a\nb".to_vec())).unwrap();
    lines.read().unwrap();
    assert_eq!((lines.number(), lines.ended()), (1, true));
    lines.read().unwrap();
    assert_eq!((lines.number(), lines.ended()), (2, false));
    assert!(lines.read().unwrap().is_none());
}

#[test]
fn a_line_may_be_too_long() {
    let mut data = b"short\n".to_vec();
    data.resize(data.len() + LINE_BYTES_MAX, b'x');
    let mut lines = Lines::open(&Bytes(data.clone())).unwrap();
    lines.read().unwrap();
    assert_eq!(lines.read().unwrap().unwrap().len(), LINE_BYTES_MAX);
    data.push(b'x');
    let mut lines = Lines::open(&Bytes(data)).unwrap();
    lines.read().unwrap();
    assert_eq!(lines.read().unwrap_err().to_string(), "data:2: a line of more than 64 MiB");
}

#[test]
fn a_truncated_archive_is_no_short_file() {
    let mut archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    (0..1000).for_each(|number| writeln!(archive, "{number}\tpage {}", number * number).unwrap());
    let mut archive = archive.finish().unwrap();
    archive.truncate(archive.len() / 2);
    let fault = profiles("tsv", 5, None, Gzip(archive)).unwrap_err();
    let (place, what) = fault.rsplit_once(": cannot read on: ").unwrap();
    let line: u64 = place.strip_prefix("archive:").unwrap().parse().unwrap();
    assert!((2..1000).contains(&line) && !what.is_empty(), "{fault}");
}

#[test]
fn profiles_are_sorted_sets() {
    let json = r#"{"user": "1", "likes": ["b", "a", "b", "B", "\u00e4", "a b"]}"#;
    assert_eq!(good("jsonl", json), [["B", "a", "a b", "b", "ä"]]);
    assert_eq!(good("tsv", "1\tb\ta\tb\tB\tä\ta b"), [["B", "a", "a b", "b", "ä"]]);
}

#[test]
fn profiles_may_be_empty_and_hold_more_than_is_read() {
    let empty: [&[&str]; 1] = [&[]];
    assert_eq!(good("jsonl", r#"{"likes": []}"#), empty);
    assert_eq!(good("tsv", "1"), empty);
    assert_eq!(good("jsonl", r#"{"likes": [7, "a", -8]}"#), [["-8", "7", "a"]]);
    assert_eq!(good("jsonl", r#" {"x": [{"likes": [""]}], "like\u0073": ["a"], "user": 7} "#), [["a"]]);
}

#[test]
fn bad_profiles_are_named() {
    let cut = "; no line end follows, so the input may be cut short (--skip-bad N passes over up to N bad lines)";
    let likes = "\"likes\"";
    for (format, line, what) in [
        ("jsonl", "", "an empty line"),
        ("tsv", "", "an empty line"),
        ("jsonl", "{", "not JSON: EOF while parsing an object, at column 1"),
        ("jsonl", "likes", "not JSON: expected value, at column 1"),
        ("jsonl", "{\"likes\": [\"a\", \"b", "not JSON: EOF while parsing a string, at column 18"),
        ("jsonl", "{\"likes\": []} {}", "not JSON: trailing characters, at column 15"),
        ("jsonl", "{\"user\": \"1\"}", &format!("not a profile: no {likes}, at column 13")),
        ("jsonl", "{\"likes\": [], \"likes\": []}", &format!("not a profile: {likes} twice, at column 21")),
        (
            "jsonl",
            "[]",
            &format!("not a profile: invalid type: sequence, expected an object with {likes}, at column 2"),
        ),
        (
            "jsonl",
            "{\"likes\": null}",
            &format!("not a profile: invalid type: null, expected a list of page names as {likes}, at column 14"),
        ),
        (
            "jsonl",
            "{\"likes\": [\"a\", true]}",
            "not a profile: invalid type: boolean `true`, expected a page name, at column 20",
        ),
        ("jsonl", "{\"likes\": [\"a\", \"\"]}", "an empty page name"),
        ("tsv", "1\ta\t\tb", "an empty page name"),
        ("tsv", "1\t", "an empty page name"),
    ] {
        let fault = profiles(format, 0, None, Bytes(line_after_good(format, line.as_bytes()))).unwrap_err();
        let after = if line.is_empty() { cut.split_once(" (").unwrap().1 } else { "" };
        let expected = match after {
            "" => format!("data:2: {what}{cut}"),
            after => format!("data:2: {what} ({after}"),
        };
        assert_eq!(fault, expected);
    }
    let fault = profiles("tsv", 0, None, Bytes(line_after_good("tsv", b"2\tab\xffc\n"))).unwrap_err();
    assert_eq!(fault, "data:2: not UTF-8 at byte 5 (--skip-bad N passes over up to N bad lines)");
}

#[test]
fn bad_lines_are_passed_over_as_allowed() {
    let data = b"1\ta\n\n2\t\n3\tc\n\n4\td\n".to_vec();
    let read = profiles("tsv", 3, None, Bytes(data.clone())).unwrap();
    assert_eq!((read.0.len(), read.1), (3, 3));
    let fault = profiles("tsv", 2, None, Bytes(data)).unwrap_err();
    assert_eq!(fault, "data:5: an empty line (2 bad lines before it were skipped)");
}

#[test]
fn units_are_limited_and_none_is_a_fault() {
    let data = b"1\ta\n\n2\tb\n3\tc\n".to_vec();
    assert_eq!(profiles("tsv", 1, Some(1), Bytes(data.clone())).unwrap(), (vec![vec!["a".to_string()]], 0));
    assert_eq!(profiles("tsv", 1, Some(2), Bytes(data)).unwrap().0.len(), 2, "bad lines are no units");
    assert_eq!(profiles("tsv", 0, None, Bytes(Vec::new())).unwrap_err(), "data: no profile in it");
    assert_eq!(profiles("jsonl", 9, None, Bytes(b"{}\n\n".to_vec())).unwrap_err(), "data: no profile in it");
    let mut messages = Messages::open(&settings("text", 0, None), &Bytes(Vec::new())).unwrap();
    assert_eq!(messages.read(|_| ()).unwrap_err().to_string(), "data: no message in it");
}

#[test]
fn an_unknown_form_is_refused() {
    let refused = Profiles::open(&settings("csv", 0, None), &Bytes(Vec::new())).err().unwrap();
    assert_eq!(refused.to_string(), "'csv' is no form of profiles: jsonl or tsv");
}

#[test]
fn terms_are_words_and_pairs() {
    let mut terms = Terms::default();
    for (message, expected) in [
        ("", &[][..]),
        (" ... \u{e9}\u{1f389}", &[]),
        ("A", &["a"]),
        ("It's #1, @Bob!", &["it's", "it's #1", "#1", "#1 @bob", "@bob"]),
        ("caf\u{e9}s", &["caf", "caf s", "s"]),
        ("a_b\tc", &["a", "a b", "b", "b c", "c"]),
        ("[`{/:\u{7f}\0", &[]),
    ] {
        terms.read(message);
        let found: Vec<&str> = (0..terms.len()).map(|index| str::from_utf8(terms.get(index)).unwrap()).collect();
        assert_eq!(found, expected, "{message}");
    }
}

fn runs(message: &str, order: u32, unit: NgramUnit) -> Vec<String> {
    let mut terms = Terms::of(NgramSettings { order, unit });
    // What was read before must not show.
    terms.read("some other words, of which there are more than in any of these messages");
    terms.read(message);
    (0..terms.len()).map(|index| String::from_utf8(terms.get(index).to_vec()).unwrap()).collect()
}

#[test]
fn runs_are_of_so_many_words_or_characters() {
    for (order, expected) in [
        (1, &["a", "b", "c"][..]),
        (3, &["a", "a b", "a b c", "b", "b c", "c"]),
        (5, &["a", "a b", "a b c", "b", "b c", "c"]),
    ] {
        assert_eq!(runs("A, b: c!", order, NgramUnit::Word), expected, "{order}");
    }
    assert_eq!(runs(" \u{c9}A \t b ", 2, NgramUnit::Char), ["\u{c9}", "\u{c9}a", "a", "a ", " ", " b", "b"]);
    assert_eq!(runs("ab", 1, NgramUnit::Char), ["a", "b"]);
    assert!(runs(" \n", 3, NgramUnit::Char).is_empty() && runs("", 1, NgramUnit::Word).is_empty());
}

proptest::proptest! {
    #[test]
    fn terms_are_those_of_a_plainer_tokeniser(message in "[ab #@'Z9.\u{e9}]{0,200}") {
        let lowered = message.to_ascii_lowercase();
        let words = lowered.split(|letter: char| !letter.is_ascii_alphanumeric() && !"#@'".contains(letter));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let mut expected: Vec<String> = words.windows(2).map(|pair| pair.join(" ")).collect();
        expected.extend(words.iter().map(|word| word.to_string()));
        let mut terms = Terms::default();
        terms.read(&message);
        let mut found: Vec<&str> = (0..terms.len()).map(|index| str::from_utf8(terms.get(index)).unwrap()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

/// Every byte but those of `[A-Za-z0-9#@']` separates.
#[test]
fn every_byte_is_of_a_word_or_not() {
    let mut terms = Terms::default();
    for byte in 0..=255u8 {
        terms.read(&char::from(byte).to_string());
        let word = byte.is_ascii_alphanumeric() || b"#@'".contains(&byte);
        assert_eq!(terms.len(), usize::from(word), "{byte}");
        assert!(!word || terms.get(0) == [byte.to_ascii_lowercase()]);
    }
}

#[test]
fn answers_that_cannot_be_are_wrong() {
    let job = (NGRAMS.open)(&settings("text", 0, None));
    for reply in [Reply::Number(0), Reply::Number(-3), Reply::Done, Reply::Missing, Reply::Value(b"1")] {
        let mut client = job.client(Part::Run, 0, At::closed(1, 0), &Bytes(b"One two\n".to_vec())).unwrap();
        assert!(matches!(client.ask(), Ask::Op(_)));
        let Heard::Wrong(wrong) = client.hear(&reply) else { panic!("{reply:?} was believed") };
        assert_eq!((wrong.key.as_str(), wrong.expected.as_str()), ("one", "a number of at least 1"));
    }
}

#[test]
fn messages_without_words_are_units_and_bad_ones_are_told_once() {
    let job = (NGRAMS.open)(&settings("text", 1, None));
    let source = Bytes(b"...\n\xff\nhi\n".to_vec());
    let mut first = job.client(Part::Run, 0, At::closed(2, 0), &source).unwrap();
    assert!(matches!(first.ask(), Ask::Unit));
    assert!(matches!(first.ask(), Ask::End) && matches!(first.ask(), Ask::End));
    let mut second = job.client(Part::Run, 1, At::closed(2, 0), &source).unwrap();
    assert!(matches!(second.ask(), Ask::Op(_)));
    assert!(matches!(second.ask(), Ask::Wait));
    assert_eq!(second.hear(&Reply::Number(1)), Heard::Unit { counted: 1 });
    assert!(matches!(second.ask(), Ask::End) && matches!(second.ask(), Ask::End));
    assert_eq!(first.skipped() + second.skipped(), 1);
    let mut strict = (NGRAMS.open)(&settings("text", 0, None)).client(Part::Run, 1, At::closed(2, 0), &source).unwrap();
    let Ask::Fail(fault) = strict.ask() else { panic!("a bad line was taken") };
    assert_eq!(fault.to_string(), "data:2: not UTF-8 at byte 1 (--skip-bad N passes over up to N bad lines)");
}

fn lines(data: &[u8]) -> Vec<String> {
    let mut lines = Lines::open(&Bytes(data.to_vec())).unwrap();
    let mut found = Vec::new();
    while let Some(line) = lines.read().unwrap() {
        found.push(String::from_utf8(line.to_vec()).unwrap());
    }
    found
}

fn line_after_good(format: &str, line: &[u8]) -> Vec<u8> {
    let good = if format == "tsv" { "1\ta\n" } else { "{\"likes\": [\"a\"]}\n" };
    let end = if line.is_empty() { "\n" } else { "" };
    [good.as_bytes(), line, end.as_bytes()].concat()
}

fn good(format: &str, line: &str) -> Vec<Vec<String>> {
    profiles(format, 0, None, Bytes(line.as_bytes().to_vec())).unwrap().0
}

/// All profiles and the number of lines passed over, or what is wrong.
fn profiles(
    format: &str,
    skip_bad: u64,
    units: Option<u64>,
    source: impl Source,
) -> Result<(Vec<Vec<String>>, u64), String> {
    let mut profiles = Profiles::open(&settings(format, skip_bad, units), &source).unwrap();
    let mut profile = Profile::default();
    let mut found = Vec::new();
    while profiles.read(&mut profile).map_err(|fault| fault.to_string())? {
        found.push(profile.pages().iter().map(|page| String::from_utf8(page.to_vec()).unwrap()).collect());
    }
    Ok((found, profiles.skipped()))
}

fn settings(format: &str, skip_bad: u64, units: Option<u64>) -> JobSettings {
    JobSettings {
        name: String::new(),
        data: Data::File { path: "data".into() },
        format: format.to_string(),
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

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn name(&self) -> &str {
        "data"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

struct Gzip(Vec<u8>);

impl Source for Gzip {
    fn name(&self) -> &str {
        "archive"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(Cursor::new(self.0.clone())))))
    }
}

/// Read in blocks of so many bytes.
struct Blocks {
    bytes: Vec<u8>,
    block: usize,
}

impl Source for Blocks {
    fn name(&self) -> &str {
        "blocks"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::with_capacity(self.block, Cursor::new(self.bytes.clone()))))
    }
}
