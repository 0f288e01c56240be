//! The pieces that RESP2 is made of: commands out, tokens and whole values in. It knows no op.

use crate::model::op::Fault;
use crate::protocol::text::{garbled, line, number, push_number, short_length};

/// The largest bulk string: Redis' own default for `proto-max-bulk-len`.
pub(super) const BULK_MAX: i64 = 512 << 20;
/// The longest status or error line that is waited for: Redis' own limit of an inline line.
pub(super) const LINE_MAX: usize = 64 << 10;
/// The longest line that holds one number: an i64 has at most 20 characters.
pub(super) const NUMBER_MAX: usize = 32;
/// How deep [`values`] follows arrays in arrays.
pub(super) const DEPTH_MAX: usize = 8;
/// The most elements of one answer, all arrays together: a cluster whose 16,384 slots are ranges of their own with a
/// few replicas each has some 350,000.
pub(super) const ELEMENTS_MAX: usize = 1 << 19;

/// Appends one command: its name and its arguments.
#[inline]
pub fn command(parts: &[&[u8]], out: &mut Vec<u8>) {
    array(parts.len(), out);
    parts.iter().for_each(|part| bulk(part, out));
}

#[inline]
pub(super) fn array(elements: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    push_number(elements, out);
    out.extend_from_slice(b"\r\n");
}

#[inline]
pub(super) fn bulk_head(length: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    push_number(length, out);
    out.extend_from_slice(b"\r\n");
}

#[inline]
pub(super) fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    bulk_head(bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The smallest thing that a server says: all of an answer, or the head of an array.
#[derive(Clone, Copy)]
pub(super) enum Token<'b> {
    Status(&'b [u8]),
    Error(&'b [u8]),
    Number(i64),
    Bulk(&'b [u8]),
    Nil,
    Array(usize),
    NilArray,
}

/// The first token and the bytes it took, once it is all there.
#[inline]
pub(super) fn token(bytes: &[u8]) -> Result<Option<(usize, Token<'_>)>, Fault> {
    if bytes.starts_with(b"+OK\r\n") {
        return Ok(Some((5, Token::Status(b"OK"))));
    }
    let Some((&mark, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let max = match mark {
        b'$' | b':' | b'*' => NUMBER_MAX,
        b'+' | b'-' => LINE_MAX,
        _ => return Err(garbled("one of + - : $ *", bytes)),
    };
    let Some(text) = line(rest, max)? else {
        return Ok(None);
    };
    let used = 1 + text.len() + 2;
    let token = match mark {
        b'+' => Token::Status(text),
        b'-' => Token::Error(text),
        mark => match (mark, number(text).ok_or_else(|| garbled("a number", bytes))?) {
            (b':', number) => Token::Number(number),
            (b'$', -1) => Token::Nil,
            (b'*', -1) => Token::NilArray,
            (b'*', elements @ 0..) => Token::Array(elements as usize),
            (b'$', length @ 0..=BULK_MAX) => return bulk_token(bytes, used, length as usize),
            _ => return Err(garbled(&format!("a length of at most {BULK_MAX}"), bytes)),
        },
    };
    Ok(Some((used, token)))
}

/// A bulk string that is all there, its length told in at most six digits, and the bytes it took. `None` is for
/// [`token`] to look at.
#[inline]
pub(super) fn short_bulk(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, taken) = short_length(bytes.strip_prefix(b"$")?)?;
    let (start, end) = (1 + taken, 1 + taken + length);
    (bytes.get(end..end + 2)? == b"\r\n").then(|| (end + 2, &bytes[start..end]))
}

#[inline]
pub(super) fn bulk_token(bytes: &[u8], start: usize, length: usize) -> Result<Option<(usize, Token<'_>)>, Fault> {
    let end = start + length;
    match bytes.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((end + 2, Token::Bulk(&bytes[start..end])))),
        Some(_) => Err(garbled(&format!("CRLF after {length} bytes"), &bytes[end..])),
    }
}

/// Any answer at all, as INFO and CONFIG GET have them: not for ops, since it copies what it reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status or a bulk string.
    Text(Vec<u8>),
    Error(String),
    Number(i64),
    Missing,
    List(Vec<Value>),
}

/// A question that touches no record, and whose answer [`pong`] reads.
pub const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// The bytes that an answer to PING took.
pub fn pong(bytes: &[u8]) -> Result<Option<(usize, ())>, Fault> {
    match token(bytes)? {
        None => Ok(None),
        Some((used, Token::Status(b"PONG"))) => Ok(Some((used, ()))),
        Some((_, Token::Error(words))) => Err(Fault::Refused(String::from_utf8_lossy(words).into_owned())),
        Some(_) => Err(garbled("+PONG", bytes)),
    }
}

/// Reads the first answer and the bytes it took, once it is all there. Every call gets the bytes of all calls before
/// and those that came since. It goes on where it stopped, so that the price of a byte does not grow with the answer.
pub fn values() -> impl FnMut(&[u8]) -> Result<Option<(usize, Value)>, Fault> {
    let mut reading = Reading::default();
    move |bytes| reading.go_on(bytes)
}

/// An answer of which the beginning was read.
#[derive(Default)]
struct Reading {
    used: usize,
    elements: usize,
    /// Lists that are not whole, the outer ones first: elements to come, and those that have come. A list grows with
    /// what came: its length is only what the server says.
    open: Vec<(usize, Vec<Value>)>,
}

impl Reading {
    fn go_on(&mut self, bytes: &[u8]) -> Result<Option<(usize, Value)>, Fault> {
        while let Some((taken, token)) = token(&bytes[self.used..])? {
            self.elements += 1;
            if self.elements > ELEMENTS_MAX {
                return Err(garbled(&format!("at most {ELEMENTS_MAX} elements"), &bytes[self.used..]));
            }
            let value = match token {
                Token::Status(text) | Token::Bulk(text) => Value::Text(text.to_vec()),
                Token::Error(words) => Value::Error(String::from_utf8_lossy(words).into_owned()),
                Token::Number(number) => Value::Number(number),
                Token::Nil | Token::NilArray => Value::Missing,
                Token::Array(_) if self.open.len() == DEPTH_MAX => {
                    return Err(garbled("fewer arrays in arrays", &bytes[self.used..]));
                }
                Token::Array(0) => Value::List(Vec::new()),
                Token::Array(elements) => {
                    self.used += taken;
                    self.open.push((elements, Vec::new()));
                    continue;
                }
            };
            self.used += taken;
            if let Some(whole) = self.put(value) {
                return Ok(Some((self.used, whole)));
            }
        }
        Ok(None)
    }

    /// Puts a value into the list that it belongs to, and each list that is whole by that into the one around it. The
    /// answer, once that is whole.
    fn put(&mut self, mut value: Value) -> Option<Value> {
        while let Some((to_come, mut list)) = self.open.pop() {
            list.push(value);
            if to_come > 1 {
                self.open.push((to_come - 1, list));
                return None;
            }
            value = Value::List(list);
        }
        Some(value)
    }
}
