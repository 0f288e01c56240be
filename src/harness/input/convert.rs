//! What people have, turned once a run into the form that a job reads: in bounded memory, and refused where it is no
//! data of that job. Trials then read what was made, so that taking a file apart is in nobody's seconds.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use csv::ByteRecord;
use hashbrown::HashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::sorted::Sorter;
use super::{BUFFER_BYTES, Interruptible};
use crate::harness::signals::Interrupt;
use crate::jobs::input::messages::TEXT;
use crate::jobs::input::table::{Rows, cell, has_width};
use crate::jobs::input::{Shape, TableForm, fields};
use crate::jobs::lines::{BadRows, LINE_BYTES_MAX, Lines};
use crate::jobs::people::{FIELD, LIKED};
use crate::jobs::{InputFault, Source};
use crate::model::trial::JobSettings;
use crate::model::units::{self, thousands};

/// Pairs that are sorted in memory; more of them go by way of files.
pub const SORTED_BYTES: usize = 64 << 20;
/// Pages are told apart by their hashes up to this number of them.
const PAGES_MAX: usize = 4 << 20;

/// Where an input comes from and where it goes.
pub struct Errand<'a> {
    pub source: &'a dyn Source,
    pub settings: &'a JobSettings,
    /// Where pairs are sorted that do not fit into memory.
    pub scratch: &'a Path,
    pub out: PathBuf,
    pub sorted_bytes: usize,
    pub interrupt: &'a Interrupt,
}

/// What was seen of an input.
#[derive(Default)]
pub struct InputSummary {
    /// Users, or messages.
    pub units: u64,
    pages: HashSet<u64>,
    /// Of a user and a page, each once.
    pairs: u64,
    /// Pairs that stood there once more, and were dropped.
    repeated: u64,
    /// The most pages of one user.
    most: u64,
    /// The pages of the unit that is being read: it may have one twice, or turn out to be bad.
    in_unit: Vec<u64>,
    /// Lines that could be used, and those that could not.
    used: u64,
    pub skipped: u64,
    /// The limit of units was met before the end.
    cut: bool,
}

/// Why an input cannot be used.
pub enum ConvertFault {
    At(InputFault),
    /// As a whole.
    Whole(String),
    Writing(io::Error),
}

impl From<InputFault> for ConvertFault {
    fn from(fault: InputFault) -> ConvertFault {
        ConvertFault::At(fault)
    }
}

impl From<io::Error> for ConvertFault {
    fn from(error: io::Error) -> ConvertFault {
        ConvertFault::Writing(error)
    }
}

/// Reads all of the input and writes what the job reads.
pub fn convert(errand: &Errand<'_>, shape: &Shape, explain: &dyn Fn(&str) -> String) -> Result<InputSummary> {
    let Errand { source, out, .. } = errand;
    let about = || format!("cannot keep {} in {}", source.name(), out.display());
    let file = Interruptible { file: File::create(out).with_context(about)?, interrupt: errand.interrupt };
    let to = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut work =
        Work { errand, to, bad: BadRows::new(errand.settings), seen: InputSummary::default(), line: Vec::new() };
    let done = work.carry_out(shape).and_then(|()| Ok(work.to.flush()?)).and_then(|()| work.judge(shape));
    match done {
        Ok(()) => Ok(work.seen),
        Err(ConvertFault::At(fault)) => Err(anyhow!(fault)),
        Err(ConvertFault::Whole(what)) => Err(anyhow!("{}: {}", source.name(), explain(&what))),
        Err(ConvertFault::Writing(error)) => Err(error).with_context(about),
    }
}

impl InputSummary {
    /// "1,892 users, 17,632 pages, 92,834 pairs".
    pub fn in_words(&self, shape: &Shape) -> String {
        if let Shape::Column { .. } | Shape::Texts { .. } = shape {
            return units::counted(self.units, "message");
        }
        let over = if self.pages.len() == PAGES_MAX { "at least " } else { "" };
        let pages = units::counted(self.pages.len() as u64, "page");
        let repeated = match self.repeated {
            0 => String::new(),
            repeated => format!(", {} dropped", units::counted(repeated, "duplicate pair")),
        };
        format!(
            "{}, {over}{pages}, {}{repeated}",
            units::counted(self.units, "user"),
            units::counted(self.pairs, "pair")
        )
    }

    /// The unit is good.
    fn unit(&mut self) {
        self.units += 1;
        self.in_unit.sort_unstable();
        self.in_unit.dedup();
        self.pairs += self.in_unit.len() as u64;
        self.most = self.most.max(self.in_unit.len() as u64);
        for page in self.in_unit.drain(..) {
            if self.pages.len() < PAGES_MAX {
                self.pages.insert(page);
            }
        }
    }
}

struct Work<'a> {
    errand: &'a Errand<'a>,
    to: BufWriter<Interruptible<'a>>,
    bad: BadRows,
    seen: InputSummary,
    /// What is being written of a unit.
    line: Vec<u8>,
}

impl Work<'_> {
    fn carry_out(&mut self, shape: &Shape) -> Result<(), ConvertFault> {
        match shape {
            Shape::Pairs { table, user, page } => self.pairs(*table, *user, *page),
            Shape::Profiles { table } => self.rows(*table, |work, row| work.profile(row, table.separator == b'\t')),
            Shape::Column { table, column } => self.rows(*table, |work, row| {
                let message = cell(row, *column, "message")?;
                work.message(message);
                Ok(())
            }),
            Shape::Lists { field } => self.lines(|work, line| work.list(line, field)),
            Shape::Texts { field } => self.lines(|work, line| {
                let mut message = String::new();
                fields::each_in(line, field, &TEXT, |text| message.push_str(&String::from_utf8_lossy(text)))?;
                work.message(&message);
                Ok(())
            }),
            Shape::AsItIs => Ok(()),
        }
    }

    /// What is wrong with an input that could be read.
    fn judge(&self, shape: &Shape) -> Result<(), ConvertFault> {
        let InputSummary { units, used, skipped, pairs, most, cut, .. } = self.seen;
        let whole = |what: String| Err(ConvertFault::Whole(what));
        if skipped > used {
            let all = thousands(skipped + used);
            return whole(format!("{} of its {all} lines cannot be used", thousands(skipped)));
        }
        if units == 0 {
            return whole("no line in it can be used".to_string());
        }
        if matches!(shape, Shape::Column { .. } | Shape::Texts { .. }) {
            return Ok(());
        }
        match (pairs, most) {
            _ if cut => Ok(()),
            (0, _) => whole("no user likes any page".to_string()),
            (_, 1) => {
                whole(format!("each of its {} users has one page, so that no two pages share a fan", thousands(units)))
            }
            _ => Ok(()),
        }
    }

    /// Gives each row behind the header to `take`, which says what is wrong with a bad one.
    fn each_row(
        &mut self,
        table: TableForm,
        mut take: impl FnMut(&mut Self, &ByteRecord) -> Result<Result<(), String>, ConvertFault>,
    ) -> Result<(), ConvertFault> {
        let source = self.errand.source;
        let mut rows = Rows::open(table.separator, source).map_err(|error| unreadable(source, &error))?;
        let mut is_header = table.header;
        while !self.is_full() {
            let Some(row) = rows.read()? else { return Ok(()) };
            if std::mem::take(&mut is_header) {
                continue;
            }
            let good = match has_width(row, table) {
                Ok(()) => take(self, row)?,
                Err(what) => Err(what),
            };
            match good {
                Ok(()) => self.seen.used += 1,
                Err(what) => {
                    self.bad.pass(what, true).map_err(|what| rows.fault(rows.line(), what))?;
                    self.seen.skipped += 1;
                }
            }
        }
        self.seen.cut = rows.read()?.is_some();
        Ok(())
    }

    fn rows(
        &mut self,
        table: TableForm,
        read: impl Fn(&mut Self, &ByteRecord) -> Result<(), String>,
    ) -> Result<(), ConvertFault> {
        self.each_row(table, |work, row| {
            work.clear();
            let good = read(work, row);
            if good.is_ok() {
                work.put_line()?;
            }
            Ok(good)
        })
    }

    /// The same for lines of JSON. A blank one is none.
    fn lines(&mut self, read: impl Fn(&mut Self, &str) -> Result<(), String>) -> Result<(), ConvertFault> {
        let source = self.errand.source;
        let mut lines = Lines::open(source).map_err(|error| unreadable(source, &error))?;
        while !self.is_full() {
            let Some(line) = lines.read()? else { return Ok(()) };
            let line =
                if self.seen.used + self.seen.skipped == 0 { crate::jobs::lines::without_mark(line) } else { line };
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.clear();
            let text = str::from_utf8(line).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1));
            match text.and_then(|text| read(self, text)) {
                Ok(()) => {
                    self.seen.used += 1;
                    self.put_line()?;
                }
                Err(what) => {
                    let (number, ended) = (lines.number(), lines.ended());
                    let fault = |what| InputFault { source: source.name().to_string(), line: number, what };
                    self.bad.pass(what, ended).map_err(fault)?;
                    self.seen.skipped += 1;
                }
            }
        }
        self.seen.cut = lines.read()?.is_some();
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.errand.settings.units.is_some_and(|units| self.seen.units >= units)
    }

    /// Forgets what was begun of a unit.
    fn clear(&mut self) {
        self.line.clear();
        self.seen.in_unit.clear();
    }

    /// One unit more.
    fn put_line(&mut self) -> io::Result<()> {
        self.seen.unit();
        self.line.push(b'\n');
        self.to.write_all(&self.line)
    }

    /// The sorter takes all rows whatever the limit: a user's pages may stand anywhere.
    fn pairs(&mut self, table: TableForm, user: usize, page: usize) -> Result<(), ConvertFault> {
        let mut sorter = Sorter::new(self.errand.scratch, self.errand.sorted_bytes);
        self.each_row(table, |work, row| {
            let pair = cell(row, user, "user").and_then(|user| Ok((user, cell(row, page, "page")?)));
            match pair {
                Ok((user, page)) => {
                    sorter.push(user.as_bytes(), page.as_bytes())?;
                    work.seen.repeated += 1;
                }
                Err(what) => return Ok(Err(what)),
            }
            if work.errand.interrupt.is_set() {
                return Err(ConvertFault::Writing(io::Error::other(crate::harness::signals::INTERRUPTED)));
            }
            Ok(Ok(()))
        })?;
        let (mut last, mut pages) = (None::<Vec<u8>>, 0);
        sorter.finish(|user, page| {
            if last.as_deref() != Some(user) {
                if last.is_some() {
                    self.line.extend_from_slice(b"]}");
                    self.put_line()?;
                }
                last = Some(user.to_vec());
                self.begin(user);
                pages = 0;
            }
            pages += 1;
            self.seen.repeated -= 1;
            self.add(page, pages)
        })?;
        if last.is_some() {
            self.line.extend_from_slice(b"]}");
            self.put_line()?;
        }
        Ok(())
    }

    /// As the recipe writes it: `{"user": "ann", "likes": ["Tea", "Rain"]}`.
    fn begin(&mut self, user: &[u8]) {
        self.clear();
        self.line.extend_from_slice(b"{\"user\": ");
        json(user, &mut self.line);
        self.line.extend_from_slice(format!(", \"{FIELD}\": [").as_bytes());
    }

    fn add(&mut self, page: &[u8], pages: u64) -> io::Result<()> {
        if pages > 1 {
            self.line.extend_from_slice(b", ");
        }
        json(page, &mut self.line);
        self.saw(page);
        match self.line.len() > LINE_BYTES_MAX - 64 {
            true => Err(io::Error::other(format!("a user with more than {} MiB of pages", LINE_BYTES_MAX >> 20))),
            false => Ok(()),
        }
    }

    fn saw(&mut self, page: &[u8]) {
        self.seen.in_unit.push(xxh3_64(page));
    }

    /// A user and their pages; empty cells are what a spreadsheet fills its rows up with.
    fn profile(&mut self, row: &ByteRecord, as_tabs: bool) -> Result<(), String> {
        let user = cell(row, 0, "user")?;
        let filled = (1..row.len()).filter(|column| !row[*column].is_empty());
        let pages = filled.map(|column| cell(row, column, "page")).collect::<Result<Vec<_>, _>>()?;
        if as_tabs {
            self.line.extend_from_slice(user.as_bytes());
            for page in pages {
                self.line.push(b'\t');
                self.line.extend_from_slice(page.as_bytes());
                self.saw(page.as_bytes());
            }
            return Ok(());
        }
        self.begin(user.as_bytes());
        for (page, number) in pages.iter().zip(1..) {
            self.add(page.as_bytes(), number).map_err(|error| error.to_string())?;
        }
        self.line.extend_from_slice(b"]}");
        Ok(())
    }

    /// The pages in a field of a line. What has the recipe's form stays as it is.
    fn list(&mut self, line: &str, field: &[String]) -> Result<(), String> {
        let is_recipes = field.len() == 1 && field[0] == FIELD;
        match is_recipes {
            true => self.line.extend_from_slice(line.as_bytes()),
            false => self.line.extend_from_slice(format!("{{\"{FIELD}\": [").as_bytes()),
        }
        let (mut pages, mut fault) = (0, None);
        fields::each_in(line, field, &LIKED, |page| {
            pages += 1;
            match (page.is_empty(), is_recipes) {
                (true, _) => fault = Some("an empty page name".to_string()),
                (false, true) => self.saw(page),
                (false, false) if fault.is_none() => fault = self.add(page, pages).err().map(|error| error.to_string()),
                (false, false) => {}
            }
        })?;
        if !is_recipes {
            self.line.extend_from_slice(b"]}");
        }
        fault.map_or(Ok(()), Err)
    }

    /// A line end within a message separates its words as a blank does.
    fn message(&mut self, text: &str) {
        self.line.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    }
}

fn unreadable(source: &dyn Source, error: &io::Error) -> InputFault {
    InputFault { source: source.name().to_string(), line: 1, what: format!("cannot read on: {error}") }
}

/// Text that is UTF-8, as JSON.
fn json(text: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    serde_json::to_writer(out, text.as_ref()).expect("memory takes what is written");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::harness::plan::tests::plan;
    use crate::jobs::Text;

    #[test]
    fn pairs_beyond_the_limit_become_the_same_profiles() {
        let row = |number: u64| format!("user {},\"page, {}\"\n", number * 7 % 31, number * 11 % 53);
        let source = Text((0..2_000).map(row).collect());
        let table = TableForm { separator: b',', header: false, width: Some(2) };
        let shape = Shape::Pairs { table, user: 0, page: 1 };
        let profiles = |sorted_bytes: usize| {
            let scratch = tempfile::tempdir().unwrap();
            let (settings, interrupt, out) = (plan(None).job, Interrupt::default(), scratch.path().join("out"));
            let (scratch, out) = (scratch.path(), out);
            let errand =
                Errand { source: &source, settings: &settings, scratch, out, sorted_bytes, interrupt: &interrupt };
            let seen = convert(&errand, &shape, &|what| what.to_string()).unwrap();
            assert_eq!(seen.in_words(&shape), "31 users, 53 pages, 1,643 pairs, 357 duplicate pairs dropped");
            assert_eq!(fs::read_dir(scratch).unwrap().count(), 1, "only what was made");
            fs::read_to_string(&errand.out).unwrap()
        };
        let whole = profiles(SORTED_BYTES);
        assert_eq!(whole.lines().count(), 31);
        assert!(whole.starts_with("{\"user\": \"user 0\", \"likes\": [\"page, 0\", \"page, 1\", "), "{whole}");
        assert_eq!(profiles(1_000), whole);
    }
}
