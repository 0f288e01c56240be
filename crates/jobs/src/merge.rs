//! The records of `fans`: adding one profile to a record by streaming over its old bytes, and reading a record.
//! It must not know who owns a page, nor where records are kept.
//!
//! A record is `{"fans":406,"also":{"Green Bay Packers":22,"Madonna":17}}`: names in the byte order of the unescaped
//! names, each once; of a name only `"`, `\` and bytes below 0x20 are escaped (as `\u00xx`, in lower case); counts
//! from 1.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use kvfair_core::op::{KeyList, Keys};

mod structure;

use structure::flags;

const HEAD: &[u8] = b"{\"fans\":";
const ALSO: &[u8] = b",\"also\":{";
const TAIL: &[u8] = b"}}";
/// What follows a name that a record did not have yet: it was seen once.
const ONCE: &[u8] = b"\":1,";
/// No bytes are read ahead of these many: see [`Structure`].
const BLOCK_BYTES: usize = 64;

/// Puts the record as it is after one more fan into `out`: 1 added to its fans and to every page of the profile but
/// the record's own, which is `pages.names().get(own)`. Says how many fans there are now. `out` means nothing after an
/// error.
///
/// What it changes is checked, and where names begin and end in what it steps over, which is copied as it is.
pub fn merge(old: Option<&[u8]>, own: usize, pages: &Pages, out: &mut Vec<u8>) -> Result<u64, Broken> {
    out.clear();
    let Some(old) = old else {
        fresh(own, pages, out);
        return Ok(1);
    };
    merge_into(old, own, pages, out).map_err(|broken| read(old).and_then(Entries::check).err().unwrap_or(broken))
}

/// The number of fans of a record, and its entries, each of which is checked when it is reached.
pub fn read(record: &[u8]) -> Result<(u64, Entries<'_>), Broken> {
    let outline = Outline::of(record)?;
    let entries = Entries { record, at: outline.entries.start, end: outline.entries.end, last: None };
    Ok((outline.fans, entries))
}

/// A record that nobody can have written who keeps to the format: where, in bytes from 0, and what is wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub at: usize,
    pub what: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Broken {}

/// The pages of one profile, prepared once for merging into the records of all of them.
#[derive(Default)]
pub struct Pages {
    names: KeyList,
    /// Every name as an entry that a record did not have yet, `"name":1,`, one after another, and where each ends.
    entries: Vec<u8>,
    ends: Vec<usize>,
    prefixes: Vec<u64>,
}

impl Pages {
    /// Takes other names in place of those it had; they are in byte order, each once. Memory is kept.
    pub fn set(&mut self, names: Keys<'_>) {
        self.names.clear();
        self.entries.clear();
        self.ends.clear();
        self.prefixes.clear();
        for name in names.iter() {
            self.names.push(name);
            self.entries.push(b'"');
            escape(name, &mut self.entries);
            self.entries.extend_from_slice(ONCE);
            self.ends.push(self.entries.len());
            self.prefixes.push(prefix(name.iter().copied()));
        }
    }

    pub fn names(&self) -> Keys<'_> {
        self.names.lend()
    }

    /// The first eight bytes of a name as a number: names are in the order of their prefixes, or these are the same.
    pub fn prefix(&self, index: usize) -> u64 {
        self.prefixes[index]
    }

    fn entries(&self, indices: Range<usize>) -> &[u8] {
        let start = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
        &self.entries[start(indices.start)..start(indices.end)]
    }
}

/// A name's prefix: what is shorter than eight bytes is filled with zeros.
fn prefix(name: impl Iterator<Item = u8>) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(name).for_each(|(byte, of_name)| *byte = of_name);
    u64::from_be_bytes(bytes)
}

/// The first record of a page.
fn fresh(own: usize, pages: &Pages, out: &mut Vec<u8>) {
    out.extend_from_slice(HEAD);
    out.push(b'1');
    out.extend_from_slice(ALSO);
    out.extend_from_slice(pages.entries(0..own));
    out.extend_from_slice(pages.entries(own + 1..pages.ends.len()));
    finish(out);
}

/// Ends a record whose entries all end with a comma.
fn finish(out: &mut Vec<u8>) {
    out.pop_if(|last| *last == b',');
    out.extend_from_slice(TAIL);
}

fn merge_into(old: &[u8], own: usize, pages: &Pages, out: &mut Vec<u8>) -> Result<u64, Broken> {
    let outline = Outline::of(old)?;
    let fans = outline.fans.checked_add(1).ok_or(Broken { at: HEAD.len(), what: "fans beyond 64 bits" })?;
    // A name is put in, or a count may grow by one digit, which is less; and so may the fans.
    out.reserve(old.len() + pages.entries.len() + 1);
    out.extend_from_slice(HEAD);
    decimal(fans, out);
    out.extend_from_slice(ALSO);

    let Range { start, end } = outline.entries;
    let mut seam = Seam { old, copied: start, pages, own, next: usize::from(own == 0), prefix: 0, out };
    seam.aim();
    let sound = structure::walk(&old[start..end], |openings, at| seam.pass(openings, start + at))?;
    seam.end(end);
    if sound { Ok(fans) } else { Err(Broken { at: start, what: "entries that are no entries" }) }
}

/// Where a record's entries are, and what is before them.
struct Outline {
    fans: u64,
    entries: Range<usize>,
}

impl Outline {
    fn of(record: &[u8]) -> Result<Outline, Broken> {
        let rest = record.strip_prefix(HEAD).ok_or(Broken { at: 0, what: "no {\"fans\":" })?;
        let (fans, digits) = number(rest).map_err(|what| Broken { at: HEAD.len(), what })?;
        let also_at = HEAD.len() + digits;
        let rest = rest[digits..].strip_prefix(ALSO).ok_or(Broken { at: also_at, what: "no ,\"also\":{" })?;
        let entries = rest.strip_suffix(TAIL).ok_or(Broken { at: record.len(), what: "no }} at the end" })?;
        let start = also_at + ALSO.len();
        Ok(Outline { fans, entries: start..start + entries.len() })
    }
}

/// The place in the old record up to which the new one is written, and the page that is to be put in next.
struct Seam<'m> {
    old: &'m [u8],
    /// What is before has been copied.
    copied: usize,
    pages: &'m Pages,
    own: usize,
    next: usize,
    /// Of the next page's name; of no meaning when there is none.
    prefix: u64,
    out: &'m mut Vec<u8>,
}

impl Seam<'_> {
    /// Passes over a block of old bytes that begins at `at` and has names opening where `openings` has bits.
    ///
    /// A block whose last name is still before the next page is nearly every block, and costs one comparison.
    #[inline(always)]
    fn pass(&mut self, openings: u64, at: usize) -> Result<(), Broken> {
        if openings != 0 {
            let last = at + 63 - openings.leading_zeros() as usize;
            if self.prefix_at(last) >= self.prefix {
                return self.put_in(openings, at);
            }
        }
        Ok(())
    }

    /// Puts in all pages that have their place before or at the names of a block.
    #[inline(never)]
    fn put_in(&mut self, mut openings: u64, at: usize) -> Result<(), Broken> {
        while openings != 0 {
            let opening = at + openings.trailing_zeros() as usize;
            openings &= openings - 1;
            let prefix = self.prefix_at(opening);
            while self.next < self.pages.ends.len() {
                match prefix.cmp(&self.prefix).then_with(|| self.order_at(opening)) {
                    Ordering::Less => break,
                    Ordering::Equal => self.add_one(opening)?,
                    Ordering::Greater => {
                        self.copy_to(opening);
                        self.out.extend_from_slice(self.pages.entries(self.next..self.next + 1));
                    }
                }
                self.advance();
            }
        }
        Ok(())
    }

    /// The prefix of the old name that opens at `opening`: zeros from the quote on that closes it.
    #[inline(always)]
    fn prefix_at(&self, opening: usize) -> u64 {
        let name = &self.old[opening + 1..];
        let Some(bytes) = name.first_chunk() else {
            return prefix(Unescaped(name));
        };
        let bytes = u64::from_le_bytes(*bytes);
        let quotes = flags(bytes, b'"');
        let before_quote = ((quotes & quotes.wrapping_neg()) >> 7).wrapping_sub(1);
        if flags(bytes, b'\\') & before_quote != 0 {
            return prefix(Unescaped(name));
        }
        (bytes & before_quote).swap_bytes()
    }

    /// The order of the old name that opens at `opening` and the next page's, which have the same prefix.
    fn order_at(&self, opening: usize) -> Ordering {
        let (old, name) = (&self.old[opening + 1..], self.pages.names().get(self.next));
        match memchr::memchr2(b'"', b'\\', old) {
            Some(end) if old[end] == b'"' => old[..end].cmp(name),
            _ => Unescaped(old).cmp(name.iter().copied()),
        }
    }

    /// Adds 1 to the count of the old name that opens at `opening`, which is the next page's.
    fn add_one(&mut self, opening: usize) -> Result<(), Broken> {
        let entry = self.pages.entries(self.next..self.next + 1);
        let name = &entry[..entry.len() - b"1,".len()];
        let rest = self.old[opening..].strip_prefix(name);
        let rest = rest.ok_or(Broken { at: opening, what: "a name escaped in another way" })?;
        let count_at = opening + name.len();
        let (count, digits) = number(rest).map_err(|what| Broken { at: count_at, what })?;
        let count = count.checked_add(1).ok_or(Broken { at: count_at, what: "a count beyond 64 bits" })?;
        self.copy_to(count_at);
        decimal(count, self.out);
        self.copied = count_at + digits;
        Ok(())
    }

    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(&self.old[self.copied..end]);
        self.copied = end;
    }

    fn advance(&mut self) {
        self.next += 1;
        self.next += usize::from(self.next == self.own);
        self.aim();
    }

    /// With no page left there is no place to look for: the highest prefix makes that rare, and `put_in` looks no
    /// further.
    fn aim(&mut self) {
        self.prefix = self.pages.prefixes.get(self.next).copied().unwrap_or(u64::MAX);
    }

    /// Copies what is left of the old entries, which end at `end`, and puts the pages that are left behind them.
    fn end(&mut self, end: usize) {
        self.copy_to(end);
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        while self.next < self.pages.ends.len() {
            self.out.extend_from_slice(self.pages.entries(self.next..self.next + 1));
            self.advance();
        }
        finish(self.out);
    }
}

/// The entries of a record: names as they are, and counts. Ends after the first one that is broken.
pub struct Entries<'a> {
    record: &'a [u8],
    at: usize,
    end: usize,
    last: Option<Cow<'a, [u8]>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(Cow<'a, [u8]>, u64), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.at = self.end;
        }
        Some(entry)
    }
}

impl<'a> Entries<'a> {
    /// What is wrong with the first entry that is wrong.
    fn check((_, mut entries): (u64, Entries<'a>)) -> Result<(), Broken> {
        entries.try_for_each(|entry| entry.map(drop))
    }

    fn entry(&mut self) -> Result<(Cow<'a, [u8]>, u64), Broken> {
        if self.last.is_some() {
            self.expect(b',', "no comma after an entry")?;
        }
        let opening = self.at;
        let name = self.name()?;
        if self.last.as_ref().is_some_and(|last| *last >= name) {
            return Err(Broken { at: opening, what: "a name that is not in its place" });
        }
        self.last = Some(name.clone());
        self.expect(b':', "no colon after a name")?;
        let (count, digits) = number(self.rest()).map_err(|what| Broken { at: self.at, what })?;
        self.at += digits;
        Ok((name, count))
    }

    fn name(&mut self) -> Result<Cow<'a, [u8]>, Broken> {
        self.expect(b'"', "no quote before a name")?;
        let start = self.at;
        while let Some(&byte) = self.rest().first().filter(|byte| **byte != b'"') {
            self.at += match byte {
                b'\\' => escape_len(self.rest()).ok_or(Broken { at: self.at, what: "no escape of this format" })?,
                0..0x20 => return Err(Broken { at: self.at, what: "a control byte within a name" }),
                _ => 1,
            };
        }
        let name = &self.record[start..self.at];
        self.expect(b'"', "no quote after a name")?;
        Ok(match name.contains(&b'\\') {
            true => Unescaped(name).collect::<Vec<u8>>().into(),
            false => name.into(),
        })
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Broken> {
        let found = self.rest().first() == Some(&byte);
        self.at += usize::from(found);
        if found { Ok(()) } else { Err(Broken { at: self.at, what }) }
    }

    fn rest(&self) -> &'a [u8] {
        &self.record[self.at..self.end]
    }
}

/// How long the escape is that `bytes` begin with, if it is the one that this format writes.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\\', b'"' | b'\\', ..] => Some(2),
        [b'\\', b'u', b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f', ..] => Some(6),
        _ => None,
    }
}

/// A name as it is in a record, without what JSON demands.
fn escape(name: &[u8], out: &mut Vec<u8>) {
    for &byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend([byte >> 4, byte & 15].map(|half| b"0123456789abcdef"[usize::from(half)]));
            }
            _ => out.push(byte),
        }
    }
}

/// The bytes of a name up to its closing quote. Of what is no escape of this format it makes something, and never
/// fails.
struct Unescaped<'a>(&'a [u8]);

impl Iterator for Unescaped<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (byte, len) = match *self.0 {
            [] | [b'"', ..] => return None,
            [b'\\', b'u', _, _, high, low, ..] => (hex(high) << 4 | hex(low), 6),
            [b'\\', byte, ..] => (byte, 2),
            [byte, ..] => (byte, 1),
        };
        self.0 = &self.0[len..];
        Some(byte)
    }
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap_or(0) as u8
}

/// The number that `bytes` begin with, from 1, and of how many digits it is.
fn number(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut number: u64 = 0;
    let mut digits = 0;
    while let Some(byte) = bytes.get(digits).filter(|byte| byte.is_ascii_digit()) {
        let longer = number.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
        number = longer.ok_or("a number beyond 64 bits")?;
        digits += 1;
        if number == 0 {
            return Err("a number that begins with 0");
        }
    }
    if digits == 0 { Err("no number") } else { Ok((number, digits)) }
}

fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}
