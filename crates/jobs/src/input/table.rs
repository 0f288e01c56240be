//! Rows of CSV and TSV, by the crate `csv`, and what their columns are. It must not know what a row stands for.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::{InputSample, TableForm};
use crate::lines::{past_mark, without_mark};
use crate::{InputFault, Source};

/// A longer row is none, and would be read into memory as a whole, with a number beside each of its commas.
const ROW_BYTES_MAX: usize = 16 << 20;

/// The rows of one input, one at a time in a buffer that is used again. Blank lines are none, nor are a spreadsheet's
/// rows without a cell that is filled.
pub struct Rows {
    source: String,
    reader: csv::Reader<Bounded<Box<dyn BufRead>>>,
    row: ByteRecord,
    read_bytes: Rc<Cell<usize>>,
}

impl Rows {
    pub fn open(separator: u8, source: &dyn Source) -> io::Result<Rows> {
        let read_bytes = Rc::new(Cell::new(0));
        let inner = past_mark(source.open()?)?;
        let bounded = Bounded { inner, read_bytes: Rc::clone(&read_bytes), after_cr: false, last: b'\n' };
        let reader = builder(separator).from_reader(bounded);
        Ok(Rows { source: source.name().to_string(), reader, row: ByteRecord::new(), read_bytes })
    }

    /// The next row; nothing at the end of the input.
    pub fn read(&mut self) -> Result<Option<&ByteRecord>, InputFault> {
        loop {
            self.read_bytes.set(0);
            let line = self.reader.position().line();
            match self.reader.read_byte_record(&mut self.row) {
                Ok(true) if is_blank(&self.row) => {}
                Ok(true) => return Ok(Some(&self.row)),
                Ok(false) => return Ok(None),
                Err(error) => {
                    let what = match error.into_kind() {
                        csv::ErrorKind::Io(error) => error.to_string(),
                        other => format!("{other:?}"),
                    };
                    return Err(self.fault(line, format!("cannot read on: {what}")));
                }
            }
        }
    }

    /// The line in which the row read last begins, from 1: what the crate calls so may be a blank line before it.
    pub fn line(&self) -> u64 {
        let within = memchr::memchr_iter(b'\n', self.row.as_slice()).count() as u64;
        (self.reader.position().line() - 1).saturating_sub(within).max(1)
    }

    pub fn fault(&self, line: u64, what: String) -> InputFault {
        InputFault { source: self.source.clone(), line, what }
    }
}

fn is_blank(row: &ByteRecord) -> bool {
    row.iter().all(|cell| cell.trim_ascii().is_empty())
}

/// In TSV a quote is a letter like any other.
fn builder(separator: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    let is_csv = separator != b'\t';
    builder.delimiter(separator).has_headers(false).flexible(true).quoting(is_csv);
    builder.trim(if is_csv { Trim::All } else { Trim::None }).buffer_capacity(1 << 16);
    builder
}

/// What the crate reads from. A quote that is never closed makes one row of all that follows: no row is read that is
/// longer than it may be. Every line ends in an LF, for whatever it ended in, the last one too: the crate counts lines
/// by these.
struct Bounded<R> {
    inner: R,
    read_bytes: Rc<Cell<usize>>,
    /// The last byte was a CR, which became an LF: another one after it is the same line end.
    after_cr: bool,
    /// The byte that was handed on last.
    last: u8,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (mut used, mut written) = (0, 0);
        let bytes = self.inner.fill_buf()?;
        if bytes.is_empty() && self.last != b'\n' {
            (self.last, out[0]) = (b'\n', b'\n');
            return Ok(1);
        }
        let is_over = bytes.is_empty();
        for &byte in bytes.iter().take(out.len()) {
            used += 1;
            if byte != b'\n' || !self.after_cr {
                out[written] = if byte == b'\r' { b'\n' } else { byte };
                written += 1;
            }
            self.after_cr = byte == b'\r';
        }
        self.inner.consume(used);
        if written == 0 {
            return if is_over { Ok(0) } else { self.read(out) };
        }
        self.last = out[written - 1];
        self.read_bytes.set(self.read_bytes.get() + written);
        match self.read_bytes.get() > ROW_BYTES_MAX {
            true => {
                Err(io::Error::other(format!("a row of more than {} MiB (is a quote left open?)", ROW_BYTES_MAX >> 20)))
            }
            false => Ok(written),
        }
    }
}

/// A cell that can be used: UTF-8, and something in it.
pub fn cell<'r>(row: &'r ByteRecord, column: usize, what: &str) -> Result<&'r str, String> {
    let Some(bytes) = row.get(column) else {
        let (found, plural) = (row.len(), if row.len() == 1 { "" } else { "s" });
        return Err(format!("{found} column{plural}, and no column {} for the {what}", column + 1));
    };
    match str::from_utf8(bytes) {
        Ok("") => Err(format!("an empty {what} in column {}", column + 1)),
        Ok(text) => Ok(text),
        Err(_) => Err(format!("not UTF-8 in column {}", column + 1)),
    }
}

/// A row that has as many columns as all of them, but for empty ones at its end.
pub fn has_width(row: &ByteRecord, table: TableForm) -> Result<(), String> {
    let filled = (0..row.len()).rev().find(|column| !row[*column].is_empty()).map_or(0, |last| last + 1);
    match table.width {
        Some(width) if row.len() != width && filled != width => {
            let (found, plural) = (row.len(), if row.len() == 1 { "" } else { "s" });
            Err(format!("{found} column{plural} instead of {width} (is a comma not quoted?)"))
        }
        _ => Ok(()),
    }
}

/// The first rows of a sample as text. One that may be cut off is left out.
pub fn rows_of(sample: &InputSample<'_>, separator: u8) -> Vec<Vec<String>> {
    const ROWS: usize = 200;
    let mut reader = builder(separator).from_reader(Cursor::new(without_mark(sample.bytes)));
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
    let rows = reader.byte_records().map_while(Result::ok).filter(|row| !is_blank(row)).take(ROWS + 1);
    let mut rows: Vec<Vec<String>> = rows.map(|row| row.iter().map(text).collect()).collect();
    if rows.len() > ROWS || (!sample.whole && rows.len() > 1) {
        rows.pop();
    }
    rows
}

/// Columns without the empty ones at the end, which a spreadsheet fills its rows up with.
pub fn filled(row: &[String]) -> usize {
    row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1)
}

/// Which of these separates columns: the first that makes several of most rows.
pub fn separator_of(sample: &InputSample<'_>, of: &[u8]) -> Option<u8> {
    let divides = |separator: &u8| {
        let rows = rows_of(sample, *separator);
        rows.iter().filter(|row| row.len() > 1).count() * 2 > rows.len()
    };
    of.iter().copied().find(divides)
}

/// The columns that were typed, by number from 1 or by a name in the first row, and whether any is named.
pub fn columns_of(typed: &[String], rows: &[Vec<String>]) -> Result<(Vec<usize>, bool), String> {
    let Some(first) = rows.first() else { return Err("no row in it".to_string()) };
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let (mut columns, mut named) = (Vec::new(), false);
    for name in typed {
        match name.parse::<usize>() {
            Ok(0) => return Err("--columns 0: columns are counted from 1".to_string()),
            Ok(number) if number > widest => {
                return Err(format!("--columns {number}: its lines have {widest} columns at most"));
            }
            Ok(number) => columns.push(number - 1),
            Err(_) => {
                let same = |cell: &String| cell.eq_ignore_ascii_case(name);
                let found = first.iter().position(|cell| cell == name).or_else(|| first.iter().position(same));
                let Some(column) = found else {
                    let names = super::readable(first.join(", ").as_bytes(), 200);
                    return Err(format!("--columns {name}: its first line names no such column, but {names}"));
                };
                columns.push(column);
                named = true;
            }
        }
    }
    Ok((columns, named))
}

/// Whether a cell of a header is one of these names, whatever its case and whether it is the name or the number of one:
/// "userID", "User Name", "users".
pub fn is_named(cell: &str, names: &[&str]) -> bool {
    let bare = bare(cell);
    names.contains(&bare.as_str()) || names.contains(&without_ends(&bare, &["id", "name", "s"]))
}

/// The same of a single one, "artist" or "artistID": "Books" is a page as well.
pub fn is_one_of(cell: &str, names: &[&str]) -> bool {
    names.contains(&bare(cell).as_str()) || is_key_of(cell, names)
}

/// Whether a cell is the number or the name of one of these, as "artistID" is, which is hardly data.
pub fn is_key_of(cell: &str, names: &[&str]) -> bool {
    let bare = bare(cell);
    let plain = without_ends(&bare, &["id", "name"]);
    plain != bare && names.contains(&plain)
}

fn bare(cell: &str) -> String {
    cell.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

fn without_ends<'a>(bare: &'a str, ends: &[&str]) -> &'a str {
    ends.iter().fold(bare, |bare, end| match bare.strip_suffix(end) {
        Some(rest) if rest.len() > 1 => rest,
        _ => bare,
    })
}

/// Whether a column has its first cell once more, which then is no name of it.
pub fn recurs(rows: &[Vec<String>], column: usize) -> bool {
    let first = rows[0].get(column).filter(|cell| !cell.is_empty());
    first.is_some() && rows[1..].iter().any(|row| row.get(column) == first)
}

/// Whether the first row names columns that hold numbers in all the others: two of these columns, or one where there
/// are many rows.
pub fn names_numbers(rows: &[Vec<String>], columns: impl Iterator<Item = usize>) -> bool {
    const MANY_ROWS: usize = 6;
    let Some((first, others)) = rows.split_first() else { return false };
    let is_number = |row: &Vec<String>, column: usize| row.get(column).is_some_and(|cell| cell.parse::<f64>().is_ok());
    let is_named = |column: &usize| !is_number(first, *column) && others.iter().all(|row| is_number(row, *column));
    let mut named = columns.filter(is_named);
    !others.is_empty() && named.next().is_some() && (rows.len() >= MANY_ROWS || named.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    #[test]
    fn each_row_is_named_by_the_line_in_which_it_begins() {
        for (text, expected) in [
            ("a,b\n\n\nc,d\n\"e\nf\",g\nh,i", &[(1, "a|b"), (4, "c|d"), (5, "e\nf|g"), (7, "h|i")][..]),
            ("a,b\r\n\r\nc,d\r\n\"e\r\nf\",g\r\nh,i\r\n", &[(1, "a|b"), (3, "c|d"), (4, "e\nf|g"), (6, "h|i")]),
            ("\u{feff}\n\na,b\rc\nd\r", &[(3, "a|b"), (4, "c"), (5, "d")]),
            ("", &[]),
        ] {
            let mut rows = Rows::open(b',', &Text(text.to_string())).unwrap();
            let mut found = Vec::new();
            while let Some(row) = rows.read().unwrap() {
                let cells: Vec<&str> = row.iter().map(|cell| str::from_utf8(cell).unwrap()).collect();
                let cells = cells.join("|");
                found.push((rows.line(), cells));
            }
            let found: Vec<(u64, &str)> = found.iter().map(|(line, cells)| (*line, cells.as_str())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
