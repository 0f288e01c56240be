//! The packets that the protocol of MySQL and MariaDB is made of. It knows no op.
//!
//! The format: <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>,
//! <https://mariadb.com/kb/en/clientserver-protocol/>. A packet is its length in three bytes, its number within an
//! exchange, and a payload. A payload of 2^24 - 1 bytes goes on in the next packet.

use std::io;

use crate::model::op::{Fault, readable};
use crate::protocol::text::garbled;

/// The length of a packet whose payload goes on in the next one.
pub(super) const FULL: usize = 0xff_ffff;
/// What one of our packets begins with: its length and its number.
pub(super) const HEAD: usize = 4;
/// So many bytes of an error are kept.
const WORDS_MAX: usize = 1_000;
/// An end of columns or rows is shorter than so many bytes; what is longer and begins alike is something else.
const END_BYTES: usize = 9;

/// The most columns of a table, of either product.
const COLUMNS_MAX: usize = 4096;

const OK: u8 = 0x00;
const END: u8 = 0xfe;
pub(super) const ERROR: u8 = 0xff;
/// A column of a text row that is NULL.
const NULL: u8 = 0xfb;

/// The first packet's number and payload and the bytes that it took, once it is all there.
#[inline]
pub(super) fn packet(bytes: &[u8]) -> Option<(usize, u8, &[u8])> {
    let (&[low, middle, high, number], rest) = bytes.split_first_chunk::<HEAD>()?;
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
    rest.get(..length).map(|payload| (HEAD + length, number, payload))
}

/// What a payload says, but for rows and columns.
pub(super) enum Payload<'b> {
    Done(Done<'b>),
    End,
    Error(ServerError),
    Other(&'b [u8]),
}

/// What a command has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done<'b> {
    /// Rows that are not as they were; a row that was updated by an insert counts twice.
    pub(super) rows: u64,
    pub(super) last_insert_id: u64,
    /// "Rows matched: 1  Changed: 0  Warnings: 0" after an update.
    pub(super) info: &'b [u8],
}

/// An error of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
    pub code: u16,
    pub words: String,
}

impl ServerError {
    /// The server is stopped, or closes the connection.
    pub fn is_end(&self) -> bool {
        [SHUTDOWN, KILLED, TIMEOUT].contains(&self.code)
    }

    pub(super) fn lost(self) -> Fault {
        Fault::Lost(io::Error::new(io::ErrorKind::ConnectionAborted, self.words))
    }
}

/// ER_SERVER_SHUTDOWN, MariaDB's ER_CONNECTION_KILLED, ER_CLIENT_INTERACTION_TIMEOUT.
const SHUTDOWN: u16 = 1053;
const KILLED: u16 = 1927;
const TIMEOUT: u16 = 4031;

pub(super) fn read(payload: &[u8]) -> Result<Payload<'_>, Fault> {
    Ok(match payload.split_first() {
        Some((&OK, rest)) => Payload::Done(done(rest).ok_or_else(|| garbled("an OK packet", payload))?),
        Some((&END, _)) if payload.len() < END_BYTES => Payload::End,
        Some((&ERROR, rest)) => Payload::Error(error(rest).ok_or_else(|| garbled("an error packet", payload))?),
        _ => Payload::Other(payload),
    })
}

fn done(rest: &[u8]) -> Option<Done<'_>> {
    let (rows, rest) = split_number(rest)?;
    let (last_insert_id, rest) = split_number(rest)?;
    // Two bytes of flags, two of a count of warnings.
    Some(Done { rows, last_insert_id, info: rest.get(4..)? })
}

fn error(rest: &[u8]) -> Option<ServerError> {
    let (code, rest) = rest.split_first_chunk::<2>()?;
    // '#' and five letters of a state; none in an error before the login.
    let words = if rest.first() == Some(&b'#') { rest.get(6..)? } else { rest };
    Some(ServerError { code: u16::from_le_bytes(*code), words: readable(words, WORDS_MAX) })
}

/// Whether it is the end of columns or rows.
#[inline]
pub(super) fn is_end(payload: &[u8]) -> bool {
    payload.first() == Some(&END) && payload.len() < END_BYTES
}

/// A number of one to nine bytes, and what follows.
#[inline]
pub(super) fn split_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let width = match first {
        0..=0xfa => return Some((u64::from(first), rest)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(width)?;
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(number);
    Some((u64::from_le_bytes(wide), rest))
}

/// Bytes behind their length, and what follows.
#[inline]
pub(super) fn split_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// Bytes up to a zero, and what follows that.
pub(super) fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[inline]
pub(super) fn push_number(number: usize, out: &mut Vec<u8>) {
    match number {
        0..=0xfa => out.push(number as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(number as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&(number as u64).to_le_bytes());
        }
    }
}

#[inline]
pub(super) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_number(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Appends what `write` appends as a payload: one packet, or as many as it takes. `number` is that of the first one.
pub(super) fn sent(number: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    write(out);
    let bytes = out.len() - start - HEAD;
    if bytes < FULL {
        out[start..start + HEAD].copy_from_slice(&head(bytes, number));
    } else {
        send_in_parts(number, out, start);
    }
}

fn head(bytes: usize, number: u8) -> [u8; HEAD] {
    let [low, middle, high, _] = (bytes as u32).to_le_bytes();
    [low, middle, high, number]
}

#[cold]
fn send_in_parts(number: u8, out: &mut Vec<u8>, start: usize) {
    let payload = out.split_off(start + HEAD);
    out.truncate(start);
    let parts = payload.chunks(FULL);
    // A payload that ends with a full packet is followed by an empty one.
    let empty = payload.len().is_multiple_of(FULL).then_some(&[][..]);
    for (index, part) in parts.chain(empty).enumerate() {
        out.extend_from_slice(&head(part.len(), number.wrapping_add(index as u8)));
        out.extend_from_slice(part);
    }
}

/// A row as text, NULL as nothing.
pub type TextRow = Vec<Option<String>>;

/// What a question that is no op came to, and the bytes that the answer took.
pub type TextAnswer = (usize, Result<Vec<TextRow>, ServerError>);

/// Reads the whole answer to a question by text: the rows, or its error. Nothing until all is there.
pub fn outcome(bytes: &[u8]) -> Result<Option<TextAnswer>, Fault> {
    let (mut used, mut rows, mut ends) = (0, Vec::new(), 0);
    while let Some((taken, _, payload)) = packet(&bytes[used..]) {
        let is_first = used == 0;
        used += taken;
        match read(payload) {
            Ok(Payload::Error(error)) => return Ok(Some((used, Err(error)))),
            Ok(Payload::Done(_)) if is_first => return Ok(Some((used, Ok(rows)))),
            Ok(Payload::End) => ends += 1,
            // A description of a column: the caller knows its columns.
            _ if ends == 0 => {}
            _ => rows.push(text_row(payload).ok_or_else(|| garbled("a row", payload))?),
        }
        if ends == 2 {
            return Ok(Some((used, Ok(rows))));
        }
    }
    Ok(None)
}

fn text_row(mut payload: &[u8]) -> Option<TextRow> {
    let mut row = TextRow::new();
    while let Some((&first, rest)) = payload.split_first() {
        if row.len() == COLUMNS_MAX {
            return None;
        }
        if first == NULL {
            row.push(None);
            payload = rest;
            continue;
        }
        let (column, rest) = split_bytes(payload)?;
        row.push(Some(String::from_utf8_lossy(column).into_owned()));
        payload = rest;
    }
    Some(row)
}

/// Asks by text.
pub fn query(sql: &str) -> Vec<u8> {
    let mut out = Vec::new();
    sent(0, &mut out, |out| {
        out.push(QUERY);
        out.extend_from_slice(sql.as_bytes());
    });
    out
}

pub(super) const QUERY: u8 = 0x03;
/// What is said before a connection is closed.
pub(super) const QUIT: &[u8] = b"\x01\0\0\0\x01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_are_read_as_they_were_written() {
        for number in [0, 1, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u32::MAX as usize + 1] {
            let mut bytes = Vec::new();
            push_number(number, &mut bytes);
            assert_eq!(split_number(&bytes), Some((number as u64, &[][..])));
            assert_eq!(split_number(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(split_number(&[NULL]), None);
        assert_eq!(split_number(&[ERROR, 1, 2, 3]), None);
    }

    #[test]
    fn a_long_payload_goes_in_parts() {
        for bytes in [0, 5, FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 7] {
            let mut out = b"before".to_vec();
            sent(3, &mut out, |out| out.resize(out.len() + bytes, b'x'));
            let (mut rest, mut total, mut numbers) = (&out[6..], 0, Vec::new());
            let mut last = FULL;
            while let Some((used, number, payload)) = packet(rest) {
                assert_eq!(last, FULL, "only full packets go on");
                (rest, total, last) = (&rest[used..], total + payload.len(), payload.len());
                numbers.push(number);
            }
            assert!(rest.is_empty() && last < FULL && total == bytes, "{bytes}");
            assert!(numbers.iter().copied().eq(3..3 + numbers.len() as u8));
        }
    }

    #[test]
    fn an_outcome_is_rows_or_an_error_or_nothing() {
        let column = b"\x03\0\0\x02abc".as_slice();
        let end = |number| [5, 0, 0, number, END, 0, 0, 2, 0];
        let answer = [&[1, 0, 0, 1, 1], column, &end(3), b"\x02\0\0\x04\x01x", b"\x01\0\0\x05\xfb", &end(6)].concat();
        let (used, rows) = outcome(&answer).unwrap().expect("all of it");
        assert_eq!((used, rows), (answer.len(), Ok(vec![vec![Some("x".to_string())], vec![None]])));
        assert_eq!(outcome(&answer[..answer.len() - 1]).unwrap(), None);
        let (used, rows) = outcome(b"\x07\0\0\x01\0\0\0\x02\0\0\0").unwrap().expect("all of it");
        assert_eq!((used, rows), (11, Ok(Vec::new())));
        let (_, refused) = outcome(b"\x0b\0\0\x01\xff\x7a\x04#42S02no").unwrap().expect("all of it");
        assert_eq!(refused, Err(ServerError { code: 1146, words: "no".to_string() }));
    }
}
