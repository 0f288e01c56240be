//! The question of the first post, about one page after another of the records that were built: how many fans it has,
//! and which pages share the most of them. Each answer is held against the one that is expected.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use super::{read_fault, shown, wrong};
use crate::merge::{self, Broken};
use crate::{Ask, Client, Heard, InputFault, Source, packed};
use kvfair_core::fans::Encoding;
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Op, Pairs, Reply, readable};

/// So many of the pages that share fans are in an answer.
const NAMED: usize = 10;
/// So much of an answer is shown.
const SHOWN_BYTES: usize = 400;

pub struct Asker {
    questions: Questions,
    form: Form,
    under_way: bool,
    /// The answer that was heard.
    found: Vec<u8>,
    misses: u64,
}

/// What a store holds of a page.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Record(Encoding),
    /// A tally of the store's own.
    Tally,
}

impl Asker {
    /// Client `index` of `of`.
    pub fn open(source: &dyn Source, (index, of): (u32, u32), form: Form) -> io::Result<Asker> {
        let (reader, source) = (source.expected()?, source.name().to_string());
        let (index, of) = (u64::from(index), u64::from(of));
        let questions = Questions { reader, source, index, of, read: 0, page: Vec::new(), expected: Vec::new() };
        Ok(Asker { questions, form, under_way: false, found: Vec::new(), misses: 0 })
    }

    /// What is wrong with a record, if anything is.
    fn take(&mut self, record: &[u8], encoding: Encoding) -> Result<(), Broken> {
        let (fans, most) = match encoding {
            Encoding::Json => {
                let (fans, entries) = merge::read(record)?;
                (fans, most_shared(entries)?)
            }
            Encoding::Binary => {
                let (fans, entries) = packed::read(record)?;
                let named = entries.map(|entry| entry.map(|(name, count)| (Cow::Borrowed(name), count)));
                (fans, most_shared(named)?)
            }
        };
        tell(fans, &most, &mut self.found);
        Ok(())
    }

    /// The same of a tally, in which the page's own name counts its fans.
    fn take_tally(&mut self, tally: Pairs<'_>) -> Result<(), Broken> {
        let page = &self.questions.page;
        let own = tally.iter().find(|(name, _)| name == page);
        let fans = own.map_or(Ok(0), |(_, count)| decimal(count))?;
        let others = tally.iter().filter(|(name, _)| name != page);
        let most = most_shared(others.map(|(name, count)| Ok((Cow::Borrowed(name), decimal(count)?))))?;
        tell(fans, &most, &mut self.found);
        Ok(())
    }

    fn heard(&self) -> Heard {
        let Questions { page, expected, .. } = &self.questions;
        match self.found == *expected {
            true => Heard::Unit { counted: 1 },
            false => wrong(page, &readable(expected, SHOWN_BYTES), readable(&self.found, SHOWN_BYTES)),
        }
    }
}

impl Client for Asker {
    fn ask(&mut self) -> Ask<'_> {
        if self.under_way {
            return Ask::Wait;
        }
        match self.questions.turn() {
            Ok(true) => {}
            Ok(false) => return Ask::End,
            Err(error) => {
                let what = format!("the expected answers cannot be read: {error}");
                return Ask::Fail(InputFault { source: self.questions.source.clone(), line: 0, what });
            }
        }
        self.under_way = true;
        let page = self.questions.page.as_slice();
        Ask::Op(if self.form == Form::Tally { Op::ReadTally(page) } else { Op::Get(page) })
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        self.under_way = false;
        let broken = match (*reply, self.form) {
            (Reply::Value(record), Form::Record(encoding)) => {
                self.take(record, encoding).map_err(|broken| read_fault(Some(record), &broken)).err()
            }
            (Reply::Rows(tally), Form::Tally) => self.take_tally(tally).map_err(|broken| broken.to_string()).err(),
            // Whether a page may be missing is for who knows the store.
            (Reply::Missing, _) => {
                self.misses += 1;
                return Heard::Unit { counted: 1 };
            }
            (other, _) => Some(shown(other)),
        };
        match broken {
            None => self.heard(),
            Some(found) => wrong(&self.questions.page, "a fans record", found),
        }
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }
}

/// A page, and the fans that it shares.
type Shared<'a> = (Cow<'a, [u8]>, u64);

/// The pages that share the most fans, those that share as many in the order of their names.
fn most_shared<'a>(entries: impl Iterator<Item = Result<Shared<'a>, Broken>>) -> Result<Vec<Shared<'a>>, Broken> {
    let mut most: Vec<Shared<'_>> = Vec::with_capacity(NAMED + 1);
    for entry in entries {
        let (name, count) = entry?;
        if most.len() == NAMED && count < most[NAMED - 1].1 {
            continue;
        }
        let place = most.partition_point(|(other, shared)| (*shared, &name) > (count, other));
        most.insert(place, (name, count));
        most.truncate(NAMED);
    }
    Ok(most)
}

/// "406 fans; Green Bay Packers 22, Madonna 17".
fn tell(fans: u64, most: &[Shared<'_>], out: &mut Vec<u8>) {
    out.clear();
    let told = "memory takes what is written";
    write!(out, "{fans} fans").expect(told);
    for (index, (name, count)) in most.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"; " } else { b", " });
        out.extend_from_slice(name);
        write!(out, " {count}").expect(told);
    }
}

fn decimal(count: &[u8]) -> Result<u64, Broken> {
    let number = str::from_utf8(count).ok().and_then(|count| count.parse().ok());
    number.ok_or(Broken { at: 0, what: "no count" })
}

/// The questions that one client asks, with the answers that it must hear: each `of`th of those that the expected state
/// has drawn. As bytes, of each question the page's name and the answer, both behind their length in 4, lowest first.
struct Questions {
    reader: Box<dyn BufRead>,
    source: String,
    index: u64,
    of: u64,
    /// Questions so far, of all clients.
    read: u64,
    page: Vec<u8>,
    expected: Vec<u8>,
}

impl Questions {
    /// Goes on to this client's next question; false when there is none.
    fn turn(&mut self) -> io::Result<bool> {
        loop {
            if self.reader.fill_buf()?.is_empty() {
                return Ok(false);
            }
            for text in [&mut self.page, &mut self.expected] {
                let mut length = [0; 4];
                self.reader.read_exact(&mut length)?;
                text.resize(u32::from_le_bytes(length) as usize, 0);
                self.reader.read_exact(text)?;
            }
            self.read += 1;
            if (self.read - 1) % self.of == self.index {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_shared_pages_come_first_and_equal_ones_by_name() {
        let names: Vec<String> = (0..30).map(|number| format!("page {:02}", number * 7 % 30)).collect();
        let counts = names.iter().enumerate().map(|(place, name)| (name.as_bytes(), place as u64 % 4 + 1));
        let most = most_shared(counts.clone().map(|(name, count)| Ok((Cow::Borrowed(name), count)))).expect("whole");
        let mut sorted: Vec<(&[u8], u64)> = counts.collect();
        sorted.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let most: Vec<(&[u8], u64)> = most.iter().map(|(name, count)| (name.as_ref(), *count)).collect();
        assert_eq!(most, sorted[..NAMED]);
        let mut told = Vec::new();
        tell(7, &[(Cow::Borrowed(b"Tea".as_slice()), 3), (Cow::Borrowed(b"Rain"), 1)], &mut told);
        assert_eq!(told, b"7 fans; Tea 3, Rain 1");
        tell(1, &[], &mut told);
        assert_eq!(told, b"1 fans");
    }
}
