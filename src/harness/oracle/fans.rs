//! The expected state of `fans`: every page's fans, and for every other page how many of them it shares.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::queries::drawn;
use super::{Counts, Each, Replay, Sample, Summary, answers_beside, sha256_of_sorted, write_pairs};
use crate::jobs::people::{Profile, Profiles};
use crate::jobs::{InputFault, Source};
use crate::model::op::Pairs;
use crate::model::trial::JobSettings;
use crate::model::units::thousands;

/// So many of the pages that share fans are in the answer to a query.
const NAMED: usize = 10;

#[derive(Default)]
pub struct Fans {
    /// Every page met so far, by its name.
    numbers: HashMap<Box<[u8]>, usize, RandomState>,
    pages: Vec<Page>,
    /// Entries in all `also`.
    entries: usize,
    /// The pages that are asked for at the end, in that order.
    queries: Vec<usize>,
}

struct Page {
    name: Box<[u8]>,
    /// Whether its record is kept; its name is needed all the same.
    kept: bool,
    fans: u64,
    also: HashMap<usize, u64, RandomState>,
}

impl Replay for Fans {
    fn replay(
        &mut self,
        source: &dyn Source,
        settings: &JobSettings,
        sample: &mut Sample,
    ) -> Result<Counts, InputFault> {
        let mut profiles = Profiles::open(settings, source).map_err(|error| InputFault::opening(source, &error))?;
        let mut profile = Profile::default();
        let mut counts = Counts::default();
        let mut numbers = Vec::new();
        while profiles.read(&mut profile)? {
            let names = profile.pages();
            counts.units += 1;
            counts.asking_units += u64::from(!names.is_empty());
            counts.ops += 2 * names.len() as u64;
            numbers.clear();
            numbers.extend(names.iter().map(|name| self.number(name, sample)));
            self.add(&numbers);
            if sample.outgrown(self.entries) {
                self.thin(sample);
            }
        }
        counts.skipped_lines = profiles.skipped();
        self.queries =
            self.draw(settings).map_err(|what| InputFault { source: source.name().to_string(), line: 0, what })?;
        Ok(counts)
    }

    /// The records as pairs, and beside them what is asked at the end with the answers: see `jobs::fans`.
    fn write(&self, out: &Path, summary: &mut Summary) -> io::Result<()> {
        write_pairs(self, out, summary)?;
        if self.queries.is_empty() {
            return Ok(());
        }
        let mut file = BufWriter::with_capacity(1 << 20, File::create(answers_beside(out))?);
        for &page in &self.queries {
            for text in [self.pages[page].name.as_ref(), &self.query(&self.pages[page])] {
                file.write_all(&(text.len() as u32).to_le_bytes())?;
                file.write_all(text)?;
            }
        }
        file.flush()
    }

    fn entries(&self, each: Each<'_>) -> io::Result<()> {
        let mut value = Vec::new();
        for page in self.pages.iter().filter(|page| page.kept) {
            self.write_record(page, &mut value);
            each(&page.name, &value)?;
        }
        Ok(())
    }

    fn fields(&self) -> u64 {
        (self.entries + self.pages.iter().filter(|page| page.kept).count()) as u64
    }

    fn answer(&self) -> io::Result<BTreeMap<String, String>> {
        let mut fans = Vec::with_capacity(self.pages.len());
        let mut also = Vec::with_capacity(self.entries);
        for page in &self.pages {
            fans.push([page.name.as_ref(), format!("\t{}\n", page.fans).as_bytes()].concat());
            for (name, count) in self.sorted_also(page) {
                also.push([page.name.as_ref(), b"\t", name, format!("\t{count}\n").as_bytes()].concat());
            }
        }
        let pairs = (self.entries / 2).to_string();
        let mut answer = BTreeMap::from([
            ("sha256 fans".to_string(), sha256_of_sorted(fans)),
            ("sha256 also".to_string(), sha256_of_sorted(also)),
            ("pages".to_string(), self.pages.len().to_string()),
            ("pairs".to_string(), pairs),
        ]);
        if let Some(top) =
            self.pages.iter().max_by(|one, other| one.fans.cmp(&other.fans).then(other.name.cmp(&one.name)))
        {
            answer.insert("top page".to_string(), self.in_words(top));
        }
        Ok(answer)
    }
}

/// The record that a tally of fields and their counts stands for, whatever is in it: the page's own name counts its
/// fans.
pub fn record_of_tally(page: &[u8], tally: Pairs<'_>, out: &mut Vec<u8>) {
    let mut fans: &[u8] = b"0";
    let mut also: Vec<(&[u8], &[u8])> = Vec::with_capacity(tally.keys.len());
    for (name, count) in tally.iter() {
        if name == page { fans = count } else { also.push((name, count)) }
    }
    also.sort_unstable();
    write_record(fans, also.into_iter(), out);
}

/// Names with their counts as text.
type Also<'a> = Vec<(&'a [u8], String)>;

/// The record in JSON that a record in few bytes stands for: see `jobs::packed`. False where it is none.
pub fn record_of_packed(packed: &[u8], out: &mut Vec<u8>) -> bool {
    fn number(rest: &mut &[u8]) -> Option<u64> {
        let length = rest.iter().position(|byte| *byte < 128)? + 1;
        let (bytes, behind) = rest.split_at(length);
        *rest = behind;
        let number =
            bytes.iter().rev().try_fold(0_u128, |sum, byte| (length <= 10).then(|| sum << 7 | u128::from(byte % 128)));
        let is_shortest = length == 1 || bytes[length - 1] > 0;
        number.filter(|number| is_shortest && *number > 0).and_then(|number| u64::try_from(number).ok())
    }
    fn contents(mut rest: &[u8]) -> Option<(u64, Also<'_>)> {
        let fans = number(&mut rest)?;
        let mut also: Also<'_> = Vec::new();
        while !rest.is_empty() {
            let length = number(&mut rest)? as usize;
            let (name, behind) = rest.split_at_checked(length)?;
            rest = behind;
            also.push((name, number(&mut rest)?.to_string()));
        }
        also.is_sorted_by(|one, other| one.0 < other.0).then_some((fans, also))
    }
    let Some((fans, also)) = contents(packed) else { return false };
    write_record(fans.to_string().as_bytes(), also.into_iter(), out);
    true
}

fn write_record<'a>(fans: &[u8], sorted_also: impl Iterator<Item = (&'a [u8], impl AsRef<[u8]>)>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"{\"fans\":");
    out.extend_from_slice(fans);
    out.extend_from_slice(b",\"also\":{");
    for (index, (name, count)) in sorted_also.enumerate() {
        out.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
        for &byte in name {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => out.push(byte),
            }
        }
        out.extend_from_slice(b"\":");
        out.extend_from_slice(count.as_ref());
    }
    out.extend_from_slice(b"}}");
}

impl Fans {
    fn number(&mut self, name: &[u8], sample: &Sample) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.pages.len();
        self.pages.push(Page { name: name.into(), kept: sample.takes(name), fans: 0, also: HashMap::default() });
        self.numbers.insert(name.into(), number);
        number
    }

    /// One profile: each of its pages gains a fan, who is also a fan of each other page.
    fn add(&mut self, numbers: &[usize]) {
        for &number in numbers {
            let page = &mut self.pages[number];
            page.fans += 1;
            if !page.kept {
                continue;
            }
            let before = page.also.len();
            for &other in numbers.iter().filter(|&&other| other != number) {
                *page.also.entry(other).or_insert(0) += 1;
            }
            self.entries += page.also.len() - before;
        }
    }

    /// Drops what a smaller sample no longer takes.
    fn thin(&mut self, sample: &Sample) {
        for page in self.pages.iter_mut().filter(|page| page.kept && !sample.takes(&page.name)) {
            page.kept = false;
            self.entries -= page.also.len();
            page.also = HashMap::default();
        }
    }

    fn sorted_also<'a>(&'a self, page: &'a Page) -> Vec<(&'a [u8], u64)> {
        let named = page.also.iter().map(|(&number, &count)| (self.pages[number].name.as_ref(), count));
        let mut sorted: Vec<_> = named.collect();
        sorted.sort_unstable();
        sorted
    }

    fn write_record(&self, page: &Page, out: &mut Vec<u8>) {
        let also = self.sorted_also(page).into_iter().map(|(name, count)| (name, count.to_string()));
        write_record(page.fans.to_string().as_bytes(), also, out);
    }

    fn draw(&self, settings: &JobSettings) -> Result<Vec<usize>, String> {
        let (queries, pages) = (settings.fans.queries, self.pages.len());
        if queries > pages as u64 {
            let (asked, there) = (thousands(queries), thousands(pages as u64));
            let hint = format!("hint: --queries {pages} or fewer, or more profiles");
            return Err(format!("--queries {asked}: it has {there} pages, and each is asked for once at most\n{hint}"));
        }
        let mut ranked: Vec<usize> = (0..pages).collect();
        let by_fans = |page: &usize| (std::cmp::Reverse(self.pages[*page].fans), &self.pages[*page].name);
        ranked.sort_unstable_by(|one, other| by_fans(one).cmp(&by_fans(other)));
        Ok(drawn(ranked, queries as usize, settings.seed()))
    }

    /// What is to be heard of a page: "406 fans; Green Bay Packers 22, Madonna 17".
    fn query(&self, page: &Page) -> Vec<u8> {
        let mut also = self.sorted_also(page);
        also.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let named = also.iter().take(NAMED).map(|(name, count)| [name, format!(" {count}").as_bytes()].concat());
        let named = named.collect::<Vec<_>>().join(b", ".as_slice());
        let between: &[u8] = if named.is_empty() { b"" } else { b"; " };
        [format!("{} fans", page.fans).as_bytes(), between, &named].concat()
    }

    /// "Michael Jackson: 406 fans, 22 of them also of Green Bay Packers".
    fn in_words(&self, page: &Page) -> String {
        let name = String::from_utf8_lossy(&page.name);
        let also = self.sorted_also(page);
        let most = also.iter().max_by(|one, other| one.1.cmp(&other.1).then(other.0.cmp(one.0)));
        let shared = most.map_or_else(String::new, |(other, count)| {
            format!(", {count} of them also of {}", String::from_utf8_lossy(other))
        });
        format!("{name}: {} fans{shared}", page.fans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Text;
    use crate::model::fans::FansSettings;
    use crate::model::op::KeyList;
    use crate::model::trial::Verify;

    fn replayed(profiles: &str, queries: u64, sample: &mut Sample) -> Result<(Fans, Counts), InputFault> {
        let job = crate::harness::plan::tests::plan(None).job;
        let (name, format) = ("fans".to_string(), "tsv".to_string());
        let settings = JobSettings { name, format, fans: FansSettings { queries, ..job.fans }, ..job };
        let mut fans = Fans::default();
        let counts = fans.replay(&Text(profiles.to_string()), &settings, sample)?;
        Ok((fans, counts))
    }

    fn records(fans: &Fans) -> BTreeMap<String, String> {
        let mut records = BTreeMap::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fans.entries(&mut |page, record| {
            records.insert(text(page), text(record));
            Ok(())
        })
        .expect("memory takes it");
        records
    }

    const PROFILES: &str = "u1\tb\ta\nu2\ta\tc\td\nu3\nu4\ta\tb\nu5\te\n";

    #[test]
    fn a_page_has_its_fans_and_those_that_it_shares() {
        let (fans, counts) = replayed(PROFILES, 0, &mut Sample::new(Verify::Full)).expect("good profiles");
        assert_eq!((counts.units, counts.asking_units, counts.ops, counts.skipped_lines), (5, 4, 16, 0));
        let expected = [
            ("a", r#"{"fans":3,"also":{"b":2,"c":1,"d":1}}"#),
            ("b", r#"{"fans":2,"also":{"a":2}}"#),
            ("c", r#"{"fans":1,"also":{"a":1,"d":1}}"#),
            ("d", r#"{"fans":1,"also":{"a":1,"c":1}}"#),
            ("e", r#"{"fans":1,"also":{}}"#),
        ];
        assert_eq!(
            records(&fans),
            BTreeMap::from(expected.map(|(page, record)| (page.to_string(), record.to_string())))
        );
        // Eight entries, and a field for each page's own fans.
        assert_eq!(fans.fields(), 8 + 5);
        let sha256 = |lines: &[&str]| sha256_of_sorted(lines.iter().map(|line| line.as_bytes().to_vec()).collect());
        let answer = fans.answer().expect("memory takes it");
        assert_eq!(answer["sha256 fans"], sha256(&["a\t3\n", "b\t2\n", "c\t1\n", "d\t1\n", "e\t1\n"]));
        let also =
            ["a\tb\t2\n", "a\tc\t1\n", "a\td\t1\n", "b\ta\t2\n", "c\ta\t1\n", "c\td\t1\n", "d\ta\t1\n", "d\tc\t1\n"];
        assert_eq!(answer["sha256 also"], sha256(&also));
        assert_eq!((answer["pages"].as_str(), answer["pairs"].as_str()), ("5", "4"));
        assert_eq!(answer["top page"], "a: 3 fans, 2 of them also of b");
    }

    #[test]
    fn each_page_may_be_asked_for_once_and_its_answer_lies_beside_the_pairs() {
        let scratch = tempfile::tempdir().expect("a directory");
        let written = |queries, name: &str| {
            let (fans, _) = replayed(PROFILES, queries, &mut Sample::new(Verify::Full)).expect("good profiles");
            let (out, mut summary) = (scratch.path().join(name), Summary::default());
            fans.write(&out, &mut summary).expect("there is room");
            assert_eq!(summary.keys, 5);
            std::fs::read(answers_beside(&out)).ok()
        };
        assert_eq!(written(0, "none"), None);
        let answers = written(5, "all").expect("they are there");
        let (mut rest, mut texts) = (answers.as_slice(), Vec::new());
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (text, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            texts.push(String::from_utf8_lossy(text).into_owned());
            rest = behind;
        }
        let mut pairs: Vec<(&str, &str)> = texts.chunks(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        pairs.sort_unstable();
        let (c, d) = ("1 fans; a 1, d 1", "1 fans; a 1, c 1");
        assert_eq!(pairs, [("a", "3 fans; b 2, c 1, d 1"), ("b", "2 fans; a 2"), ("c", c), ("d", d), ("e", "1 fans")]);
        let fault = replayed(PROFILES, 6, &mut Sample::new(Verify::Full)).err().expect("too many").to_string();
        assert!(fault.contains("--queries 6: it has 5 pages"), "{fault}");
    }

    #[test]
    fn a_sample_that_is_outgrown_keeps_whole_records_of_fewer_pages() {
        let page = |user: usize, nth: usize| format!("page {}", (user * 7 + nth * nth) % 60);
        let line = |user| format!("u{}\n", (0..6).map(|nth| format!("\t{}", page(user, nth))).collect::<String>());
        let profiles: String = (0..80).map(line).collect();
        let (all, _) = replayed(&profiles, 0, &mut Sample::new(Verify::Full)).expect("good profiles");
        let mut sample = Sample { one_in: 1, limit: 150 };
        let (some, _) = replayed(&profiles, 0, &mut sample).expect("good profiles");
        assert!(sample.one_in > 1 && some.pages.len() == 60, "one in {}", sample.one_in);
        let mut expected = records(&all);
        expected.retain(|page, _| sample.takes(page.as_bytes()));
        assert!(!expected.is_empty());
        assert_eq!(records(&some), expected);
        assert_eq!(some.entries, some.pages.iter().map(|page| page.also.len()).sum::<usize>());
        assert!(some.pages.iter().all(|page| page.kept || page.also.is_empty()));
    }

    #[test]
    fn a_record_in_few_bytes_is_read_where_it_could_not_be_shorter() {
        let largest = [&[0xff; 9][..], &[1]].concat();
        let mut out = Vec::new();
        let cases: [(&[u8], &str); 5] = [
            (&[1], r#"{"fans":1,"also":{}}"#),
            (&[127], r#"{"fans":127,"also":{}}"#),
            (&[0x80, 1], r#"{"fans":128,"also":{}}"#),
            (&largest, r#"{"fans":18446744073709551615,"also":{}}"#),
            (b"\x03\x01b\xac\x02\x02cc\x01", r#"{"fans":3,"also":{"b":300,"cc":1}}"#),
        ];
        for (packed, record) in cases {
            assert!(record_of_packed(packed, &mut out), "{record}");
            assert_eq!(String::from_utf8_lossy(&out), record);
        }
        // Of the last one's 133 bits, those that do not fit into 128 are the only ones that say it is not 5.
        let endless = [&[0x85][..], &[0x80; 17], &[4]].concat();
        let strange: [&[u8]; 12] = [
            b"",
            &[0],
            &[0x80],
            &[0x83, 0],
            &[0x80, 0],
            b"\x01\x05a",
            b"\x01\x01b",
            b"\x01\x01b\x00",
            b"\x01\x00\x01",
            b"\x02\x01c\x01\x01b\x01",
            b"\x02\x01b\x01\x01b\x01",
            &endless,
        ];
        for packed in strange {
            assert!(!record_of_packed(packed, &mut out), "{packed:?}");
        }
    }

    #[test]
    fn a_tally_is_a_record_whose_fans_are_under_its_own_name() {
        let (mut names, mut counts, mut out) = (KeyList::default(), KeyList::default(), Vec::new());
        for (name, count) in [("z\"\\\n", "2"), ("own", "7"), ("a", "10")] {
            names.push(name.as_bytes());
            counts.push(count.as_bytes());
        }
        record_of_tally(b"own", Pairs { keys: names.lend(), values: counts.lend() }, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), r#"{"fans":7,"also":{"a":10,"z\"\\\u000a":2}}"#);
        record_of_tally(b"other", Pairs::default(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), r#"{"fans":0,"also":{}}"#);
    }
}
