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
        (self.entries + self.pages.len()) as u64
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
