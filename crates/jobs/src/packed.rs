//! The records of `fans` in few bytes: `--encoding binary`. The same contents as in JSON (see `merge`), and the same
//! merging by streaming over the old bytes. It must not know who owns a page, nor where records are kept.
//!
//! A record is the number of its fans, and behind it an entry for each page that shares any: the length of its name in
//! bytes, the name, and how many fans it shares. Entries are in the byte order of the names, each name once; counts are
//! from 1. A number is in 1 to 10 bytes (LEB128): 7 bits in each, the lowest first, and the highest bit set in all but
//! the last. It has no more bytes than it needs, so that the same contents are always the same bytes.

use super::merge::{Broken, Pages};

/// Puts the record as it is after one more fan into `out`: see [`super::merge::merge`]. Every entry is checked.
pub fn merge(old: Option<&[u8]>, own: usize, pages: &Pages, out: &mut Vec<u8>) -> Result<u64, Broken> {
    out.clear();
    let names = pages.names();
    let (fans, mut entries) = old.map_or(Ok((0, Entries { record: &[], at: 0, last: None })), read)?;
    let now = more(fans, 0)?;
    put(now, out);
    let mut coming = (0..names.len()).filter(|page| *page != own).map(|page| names.get(page)).peekable();
    // What is not changed is copied at once: `copied` is where it begins.
    let (record, mut copied) = (old.unwrap_or_default(), entries.at);
    loop {
        let begin = entries.at;
        let Some(entry) = entries.next() else { break };
        let (name, count) = entry?;
        while let Some(new) = coming.next_if(|new| *new < name) {
            out.extend_from_slice(&record[copied..begin]);
            copied = begin;
            once(new, out);
        }
        if coming.next_if(|new| *new == name).is_some() {
            out.extend_from_slice(&record[copied..begin]);
            copied = entries.at;
            put_entry(name, more(count, begin)?, out);
        }
    }
    out.extend_from_slice(&record[copied..]);
    coming.for_each(|new| once(new, out));
    Ok(now)
}

/// The number of fans of a record, and its entries, each of which is checked when it is reached.
pub fn read(record: &[u8]) -> Result<(u64, Entries<'_>), Broken> {
    let mut entries = Entries { record, at: 0, last: None };
    let fans = entries.number()?;
    Ok((fans, entries))
}

/// The entries of a record: names and counts. Ends after the first one that is broken.
pub struct Entries<'a> {
    record: &'a [u8],
    at: usize,
    last: Option<&'a [u8]>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], u64), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.record.len() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.at = self.record.len();
        }
        Some(entry)
    }
}

impl<'a> Entries<'a> {
    fn entry(&mut self) -> Result<(&'a [u8], u64), Broken> {
        let begin = self.at;
        let length = self.number()?;
        let rest = &self.record[self.at..];
        let name = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let name = name.ok_or(Broken { at: begin, what: "a name longer than the record" })?;
        if self.last.is_some_and(|last| last >= name) {
            return Err(Broken { at: begin, what: "a name that is not in its place" });
        }
        self.last = Some(name);
        self.at += name.len();
        Ok((name, self.number()?))
    }

    /// A number from 1 on. A name of no bytes is in no profile.
    fn number(&mut self) -> Result<u64, Broken> {
        let begin = self.at;
        let broken = |what| Broken { at: begin, what };
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.record.get(self.at).ok_or(broken("a number that is cut short"))?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(broken("a number of more than 64 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return match byte {
                    0 if shift > 0 => Err(broken("a number of more bytes than it needs")),
                    _ if number == 0 => Err(broken("a number below 1")),
                    _ => Ok(number),
                };
            }
        }
        Err(broken("a number of more than 64 bits"))
    }
}

fn more(count: u64, at: usize) -> Result<u64, Broken> {
    count.checked_add(1).ok_or(Broken { at, what: "a count that cannot grow" })
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_entry(name: &[u8], count: u64, out: &mut Vec<u8>) {
    put(name.len() as u64, out);
    out.extend_from_slice(name);
    put(count, out);
}

/// A page that the record did not have yet.
fn once(name: &[u8], out: &mut Vec<u8>) {
    put_entry(name, 1, out);
}
