//! The messages that PostgreSQL's protocol is made of. It knows no op.
//!
//! The format: <https://www.postgresql.org/docs/current/protocol-message-formats.html>. A message is a byte that says
//! its kind, its length in four bytes, and its body.

use std::io;

use crate::model::op::{Fault, readable};
use crate::protocol::sql::Columns;
use crate::protocol::text::{garbled, unsigned};

/// Every kind of message that a server may send to us.
const KINDS: &[u8] = b"123ACDEIKNRSTZntsv";
/// The longest row. <https://www.postgresql.org/docs/current/limits.html>
const ROW_MAX: usize = 1 << 30;
/// The longest message of another kind: an error may quote what it is about.
const OTHER_MAX: usize = 1 << 20;
/// So many bytes of an error are kept.
const WORDS_MAX: usize = 1_000;

pub(super) const READY: u8 = b'Z';
pub(super) const ERROR: u8 = b'E';

/// One message of the server.
#[derive(Clone, Copy)]
pub(super) struct Message<'b> {
    pub(super) kind: u8,
    pub(super) body: &'b [u8],
}

impl Message<'_> {
    /// What a server may say at any time: a notice, a parameter's new value, a notification.
    pub(super) fn is_asynchronous(&self) -> bool {
        matches!(self.kind, b'N' | b'S' | b'A')
    }
}

/// The first message and the bytes it took, once it is all there.
#[inline]
pub(super) fn message(bytes: &[u8]) -> Result<Option<(usize, Message<'_>)>, Fault> {
    let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
    if !KINDS.contains(&kind) {
        return Err(garbled("a message of PostgreSQL's protocol", bytes));
    }
    let Some((length, _)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    let most = if kind == b'D' { ROW_MAX } else { OTHER_MAX };
    if !(4..=most).contains(&length) {
        return Err(garbled(&format!("a message of at most {most} bytes"), bytes));
    }
    Ok(bytes.get(5..1 + length).map(|body| (1 + length, Message { kind, body })))
}

/// A row in the binary format.
pub(super) struct Row<'b> {
    /// Columns that are not read yet.
    left: u16,
    rest: &'b [u8],
}

impl<'b> Row<'b> {
    pub(super) fn of(body: &'b [u8]) -> Option<Row<'b>> {
        let (count, rest) = body.split_first_chunk::<2>()?;
        Some(Row { left: u16::from_be_bytes(*count), rest })
    }
}

impl<'b> Columns<'b> for Row<'b> {
    fn bytes(&mut self) -> Option<Option<&'b [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let (column, rest) = split_column(self.rest)?;
        self.rest = rest;
        Some(column)
    }

    fn number(&mut self) -> Option<Option<i64>> {
        match self.bytes()? {
            None => Some(None),
            Some(bytes) => Some(Some(i64::from_be_bytes(bytes.try_into().ok()?))),
        }
    }

    fn is_read(&self) -> bool {
        self.left == 0 && self.rest.is_empty()
    }
}

#[inline]
fn split_column(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    match i32::from_be_bytes(*length) {
        -1 => Some((None, rest)),
        length => rest.split_at_checked(usize::try_from(length).ok()?).map(|(column, rest)| (Some(column), rest)),
    }
}

/// How many rows a command has changed or found: "INSERT 0 5", "UPDATE 1", "SELECT 3". 0 for a command that says
/// nothing of rows.
pub(super) fn rows_of_command(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(b"\0").unwrap_or(body);
    tag.rsplit(|&byte| byte == b' ').next().and_then(unsigned).unwrap_or(0)
}

/// An error of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
    pub code: String,
    pub words: String,
    /// The server closes the connection.
    pub is_fatal: bool,
}

impl ServerError {
    /// The server was stopped, or is about to be, or has only begun to start (class 57, operator intervention).
    pub fn is_end(&self) -> bool {
        self.code.starts_with("57P")
    }

    pub(super) fn lost(self) -> Fault {
        Fault::Lost(io::Error::new(io::ErrorKind::ConnectionAborted, self.words))
    }
}

/// <https://www.postgresql.org/docs/current/protocol-error-fields.html>
pub(super) fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError::default();
    for field in body.split(|&byte| byte == 0) {
        let Some((&kind, text)) = field.split_first() else { break };
        match kind {
            b'C' => error.code = readable(text, 5),
            b'M' => error.words = readable(text, WORDS_MAX),
            b'V' => error.is_fatal = matches!(text, b"FATAL" | b"PANIC"),
            _ => {}
        }
    }
    error
}

/// A row as text, NULL as nothing.
pub type TextRow = Vec<Option<String>>;

/// What a question that is no op came to, and the bytes that the answer took.
pub type TextAnswer = (usize, Result<Vec<TextRow>, ServerError>);

/// Reads all that comes until the server is ready again: the rows, or its error. Nothing until all is there.
pub fn outcome(bytes: &[u8]) -> Result<Option<TextAnswer>, Fault> {
    let (mut used, mut rows, mut refusal) = (0, Vec::new(), None);
    while let Some((taken, Message { kind, body })) = message(&bytes[used..])? {
        used += taken;
        match kind {
            b'D' => rows.push(text_row(body).ok_or_else(|| garbled("a row", body))?),
            ERROR => {
                let error = server_error(body);
                if error.is_fatal {
                    return Ok(Some((used, Err(error))));
                }
                refusal = refusal.or(Some(error));
            }
            READY => return Ok(Some((used, refusal.map_or(Ok(rows), Err)))),
            _ => {}
        }
    }
    Ok(None)
}

fn text_row(body: &[u8]) -> Option<TextRow> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = TextRow::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (column, behind) = split_column(rest)?;
        row.push(column.map(|column| String::from_utf8_lossy(column).into_owned()));
        rest = behind;
    }
    Some(row)
}

/// Asks by text, as one transaction.
pub fn query(sql: &str) -> Vec<u8> {
    let mut out = Vec::new();
    sent(b'Q', &mut out, |out| push_text(sql, out));
    out
}

/// Prepares a statement under a name of one letter.
pub(super) fn prepare(letter: u8, sql: &str, out: &mut Vec<u8>) {
    sent(b'P', out, |out| {
        out.extend_from_slice(&[letter, 0]);
        push_text(sql, out);
        // The types of its parameters are the server's to find.
        out.extend_from_slice(&[0, 0]);
    });
}

/// The end of an op, which is a transaction of its own.
pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";
/// What is said before a connection is closed.
pub(super) const TERMINATE: &[u8] = b"X\0\0\0\x04";

pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Appends a message, whose length must fit into 31 bits.
pub(super) fn sent(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    counted(out, true, write);
}

/// Appends the length of what `write` appends, and that itself; with `itself` the length counts its own four bytes.
pub(super) fn counted(out: &mut Vec<u8>, itself: bool, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let bytes = out.len() - start - if itself { 0 } else { 4 };
    out[start..start + 4].copy_from_slice(&(bytes as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_or_awaited_or_refused() {
        let ready = b"Z\0\0\0\x05I rest";
        for end in 0..6 {
            assert!(message(&ready[..end]).unwrap().is_none());
        }
        let (used, read) = message(ready).unwrap().expect("a message");
        assert_eq!((used, read.kind, read.body), (6, READY, &b"I"[..]));
        for strange in [&b"x"[..], b"HTTP/1.1 400", b"Z\0\0\0\x03", b"E\0\x10\0\x01", b"D\xff\xff\xff\xff"] {
            assert!(message(strange).is_err(), "{}", readable(strange, 20));
        }
        assert!(message(b"D\x40\0\0\0").unwrap().is_none(), "a row of 1 GiB is waited for");
    }

    #[test]
    fn a_row_has_the_columns_that_it_says() {
        /// Two columns of bytes, and whether that was all.
        fn two(body: &[u8]) -> Option<([Option<&[u8]>; 2], bool)> {
            let mut row = Row::of(body)?;
            Some(([row.bytes()?, row.bytes()?], row.is_read()))
        }
        let row = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(two(row), Some(([Some(&b"a"[..]), None], true)));
        for end in 0..row.len() {
            assert_eq!(two(&row[..end]), None);
        }
        assert!(two(&[&row[..], b"x"].concat()).is_some_and(|(_, is_read)| !is_read));
        assert!(two(b"\0\x03\0\0\0\0\0\0\0\0\0\0\0\0").is_some_and(|(_, is_read)| !is_read), "a third column");
        assert_eq!(two(b"\0\x01\0\0\0\0\0\0\0\0"), None, "one column");
        let number = |body| Row::of(body).and_then(|mut row| row.number());
        assert_eq!(number(b"\0\x01\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe"), Some(Some(-2)));
        assert_eq!(number(b"\0\x01\xff\xff\xff\xff"), Some(None));
        assert_eq!(number(b"\0\x01\0\0\0\x04\0\0\0\x05"), None, "four bytes");
        assert_eq!(number(b"\0\x01\xff\xff\xff\xfe"), None, "a length below -1");
        assert_eq!(number(b"\0\x01\x7f\xff\xff\xff"), None, "more than there is");
    }

    #[test]
    fn a_command_says_how_many_rows() {
        let rows = [&b"INSERT 0 5\0"[..], b"UPDATE 1\0", b"SELECT 0\0", b"CREATE TABLE\0", b""].map(rows_of_command);
        assert_eq!(rows, [5, 1, 0, 0, 0]);
    }

    #[test]
    fn an_outcome_is_rows_or_the_first_error() {
        let rows = b"T\0\0\0\x06\0\0D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        let (used, read) = outcome(rows).unwrap().expect("all of it");
        assert_eq!((used, read), (rows.len(), Ok(vec![vec![Some("x".to_string())]])));
        assert_eq!(outcome(&rows[..rows.len() - 1]).unwrap(), None);
        let refused = b"E\0\0\0\x1dVERROR\0C42P01\0Mno table\0\0Z\0\0\0\x05I";
        let (used, read) = outcome(refused).unwrap().expect("all of it");
        let error = ServerError { code: "42P01".to_string(), words: "no table".to_string(), is_fatal: false };
        assert_eq!((used, read), (refused.len(), Err(error)));
        let fatal = b"E\0\0\0\x19VFATAL\0C57P01\0Mover\0\0";
        let (_, read) = outcome(fatal).unwrap().expect("nothing follows");
        assert!(read.expect_err("it ends").is_fatal);
    }
}
