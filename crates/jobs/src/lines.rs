//! Lines of a job's input, read at memory speed and refused where they are bad. It must not know what a line means.

use std::io::{self, BufRead, Cursor, Read};

use super::{InputFault, Source};
use kvfair_core::trial::JobSettings;

/// A longer line is no profile and no message but another kind of file, and would be read into memory as a whole.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text behind a byte order mark, if it begins with one.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The same of what is still to be read.
pub fn past_mark(mut reader: Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>> {
    let mut first = Vec::new();
    reader.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut first)?;
    Ok(if first == BYTE_ORDER_MARK { reader } else { Box::new(Cursor::new(first).chain(reader)) })
}

/// The lines of one input, one at a time in a buffer that is used again.
pub struct Lines {
    source: String,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    ended: bool,
}

impl Lines {
    pub fn open(source: &dyn Source) -> io::Result<Lines> {
        let reader = source.open()?;
        Ok(Lines { source: source.name().to_string(), reader, line: Vec::new(), number: 0, ended: true })
    }

    /// The next line without its LF and one CR before it; nothing at the end of the input.
    pub fn read(&mut self) -> Result<Option<&[u8]>, InputFault> {
        self.line.clear();
        self.ended = false;
        while !self.ended {
            let read = match self.reader.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.fault(self.number + 1, format!("cannot read on: {error}"))),
            };
            if read.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', read);
            let part = &read[..end.unwrap_or(read.len())];
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                return Err(self.fault(self.number + 1, format!("a line of more than {} MiB", LINE_BYTES_MAX >> 20)));
            }
            self.line.extend_from_slice(part);
            self.ended = end.is_some();
            let used = part.len() + usize::from(self.ended);
            self.reader.consume(used);
        }
        if self.line.is_empty() && !self.ended {
            return Ok(None);
        }
        self.number += 1;
        if self.ended && self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }

    /// The number of the line read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the line read last had a line end: only an input's last line may have none.
    pub fn ended(&self) -> bool {
        self.ended
    }

    fn fault(&self, line: u64, what: String) -> InputFault {
        InputFault { source: self.source.clone(), line, what }
    }
}

/// Lines of which each is one unit of a job: passes over as many bad ones as the user allows, and stops at the limit
/// of units.
pub struct UnitLines {
    lines: Lines,
    unit: &'static str,
    units: u64,
    units_max: u64,
    bad: BadRows,
}

impl UnitLines {
    /// `unit` is what a line is, in the singular.
    pub fn open(unit: &'static str, settings: &JobSettings, source: &dyn Source) -> io::Result<UnitLines> {
        Ok(UnitLines {
            lines: Lines::open(source)?,
            unit,
            units: 0,
            units_max: settings.units.unwrap_or(u64::MAX),
            bad: BadRows::new(settings),
        })
    }

    /// Gives the next good line to `take`, which says what is wrong with a bad one; false at the end of the units.
    #[inline]
    pub fn read(&mut self, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, InputFault> {
        while self.units < self.units_max {
            let Some(line) = self.lines.read()? else {
                return self.end();
            };
            match take(line) {
                Ok(()) => {
                    self.units += 1;
                    return Ok(true);
                }
                Err(what) => self.skip(what)?,
            }
        }
        Ok(false)
    }

    /// Units given so far.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Bad lines passed over so far.
    pub fn skipped(&self) -> u64 {
        self.bad.skipped()
    }

    /// An input without a single unit is a mistake, such as an empty file, and no job that is quickly done.
    fn end(&self) -> Result<bool, InputFault> {
        match self.units {
            0 => Err(self.lines.fault(0, format!("no {} in it", self.unit))),
            _ => Ok(false),
        }
    }

    #[cold]
    fn skip(&mut self, what: String) -> Result<(), InputFault> {
        let passed = self.bad.pass(what, self.lines.ended());
        passed.map_err(|what| self.lines.fault(self.lines.number(), what))
    }
}

/// The bad rows of an input: as many as the user allows are passed over, and counted.
pub struct BadRows {
    skipped: u64,
    skipped_max: u64,
}

impl BadRows {
    pub fn new(settings: &JobSettings) -> BadRows {
        BadRows { skipped: 0, skipped_max: settings.skip_bad }
    }

    /// Rows passed over so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Passes over one more, or says what is wrong with it; `ended` is whether the row had the end that it should have.
    #[cold]
    pub fn pass(&mut self, mut what: String, ended: bool) -> Result<(), String> {
        if self.skipped < self.skipped_max {
            self.skipped += 1;
            return Ok(());
        }
        if !ended {
            what.push_str("; no line end follows, so the input may be cut short");
        }
        match self.skipped {
            0 => what.push_str(" (--skip-bad N passes over up to N bad lines)"),
            skipped => what.push_str(&format!(" ({skipped} bad lines before it were skipped)")),
        }
        Err(what)
    }
}
