//! Requests as a server hears them, in RESP2 and in memcached's text: for the server of ours that stands in where none
//! is to be measured.

use std::ops::Range;

use super::text::{garbled, line, short_length, unsigned};
use crate::model::op::Fault;

/// The longest line that is waited for: a command with many keys.
const LINE_MAX: usize = 1 << 20;
/// The most parts of a command, and the largest of them.
const PARTS_MAX: usize = 100_000;
const PART_MAX: usize = 512 << 20;

/// Where the parts of one command lie in the bytes that came: its name, its arguments, its value. Keeps its memory.
#[derive(Default)]
pub struct ServerRequest {
    parts: Vec<Range<usize>>,
}

impl ServerRequest {
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// A part out of the bytes that the request was read from; empty where there are fewer.
    pub fn part<'b>(&self, index: usize, bytes: &'b [u8]) -> &'b [u8] {
        self.parts.get(index).map_or(&[], |part| &bytes[part.clone()])
    }

    /// Reads an array of bulk strings, once it is all there: the bytes it took.
    pub fn read_resp(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        self.parts.clear();
        let Some((count, mut at)) = counted(bytes, b'*', PARTS_MAX)? else { return Ok(None) };
        for _ in 0..count {
            let Some((size, taken)) = counted(&bytes[at..], b'$', PART_MAX)? else { return Ok(None) };
            let part = at + taken..at + taken + size;
            match bytes.get(part.end..part.end + 2) {
                None => return Ok(None),
                Some(b"\r\n") => at = part.end + 2,
                Some(_) => return Err(garbled("CRLF after a bulk string", &bytes[part.end..])),
            }
            self.parts.push(part);
        }
        Ok(Some(at))
    }

    /// Reads a line of words, and the value that `set` announces, once all is there: the bytes they took.
    pub fn read_text(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        self.parts.clear();
        let Some(text) = line(bytes, LINE_MAX)? else { return Ok(None) };
        let mut at = 0;
        for word in text.split(|&byte| byte == b' ') {
            self.parts.push(at..at + word.len());
            at += word.len() + 1;
        }
        let mut used = text.len() + 2;
        if self.part(0, bytes) == b"set" {
            let size = unsigned(self.part(4, bytes)).map(|size| size as usize).filter(|&size| size <= PART_MAX);
            let size = size.ok_or_else(|| garbled("set, a key, flags, a time and a size", bytes))?;
            match bytes.get(used + size..used + size + 2) {
                None => return Ok(None),
                Some(b"\r\n") => self.parts.push(used..used + size),
                Some(_) => return Err(garbled("CRLF after a value", &bytes[used + size..])),
            }
            used += size + 2;
        }
        Ok(Some(used))
    }
}

/// A mark, a number and the end of its line, and the bytes they took.
fn counted(bytes: &[u8], mark: u8, most: usize) -> Result<Option<(usize, usize)>, Fault> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    if *first != mark {
        return Err(garbled("an array of bulk strings", bytes));
    }
    let (count, taken) = match short_length(rest) {
        Some((count, taken)) => (Some(count), taken + 1),
        None => {
            let Some(text) = line(rest, 32)? else { return Ok(None) };
            (unsigned(text).map(|count| count as usize), text.len() + 3)
        }
    };
    let count = count.filter(|&count| count <= most);
    Ok(Some((count.ok_or_else(|| garbled(&format!("a number up to {most}"), bytes))?, taken)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that a request took, and its parts.
    type Parts = (usize, Vec<Vec<u8>>);
    /// Whether it is RESP, its bytes, its parts.
    type Case<'a> = (bool, &'a [u8], &'a [&'a [u8]]);

    fn read(bytes: &[u8], resp: bool) -> Result<Option<Parts>, Fault> {
        let mut request = ServerRequest::default();
        let used = if resp { request.read_resp(bytes) } else { request.read_text(bytes) }?;
        let parts = (0..request.parts()).map(|index| request.part(index, bytes).to_vec()).collect();
        Ok(used.map(|used| (used, parts)))
    }

    #[test]
    fn a_request_is_read_once_it_is_whole() {
        let large = vec![b'v'; 1_234_567];
        let large_set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1234567\r\n", &large[..], b"\r\n"].concat();
        let cases: [Case<'_>; 6] = [
            (true, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &[b"GET", b"k"]),
            (true, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nbc\r\n", &[b"SET", b"k", b"a\r\nbc"]),
            (true, &large_set, &[b"SET", b"k", &large]),
            (false, b"get k\r\n", &[b"get", b"k"]),
            (false, b"get k l\r\n", &[b"get", b"k", b"l"]),
            (false, b"set k 0 0 5\r\na\r\nbc\r\n", &[b"set", b"k", b"0", b"0", b"5", b"a\r\nbc"]),
        ];
        for (resp, bytes, parts) in cases {
            let twice = [bytes, bytes].concat();
            let (used, read_parts) = read(&twice, resp).unwrap().unwrap();
            assert_eq!(used, bytes.len());
            assert!(read_parts.iter().map(Vec::as_slice).eq(parts.iter().copied()));
            for end in (0..bytes.len()).take(60).chain([bytes.len() - 1]) {
                assert!(read(&bytes[..end], resp).unwrap().is_none(), "{end} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for bytes in
            [&b"GET k\r\n"[..], b"*1\r\n+OK\r\n", b"*-1\r\n", b"*1\r\n$2\r\nabc\r\n", b"*99999999\r\n", b"*1\r\n$x\r\n"]
        {
            assert!(read(bytes, true).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        for bytes in [&b"get k\n"[..], b"set k\r\n", b"set k 0 0 x\r\n", b"set k 0 0 1\r\nabc\r\n"] {
            assert!(read(bytes, false).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        for bytes in [&b"$1\r\n$1\r\na\r\n"[..], b"*1\r\n*1\r\na\r\n"] {
            let said = read(bytes, true).expect_err("another mark is due").to_string();
            assert!(said.contains("an array of bulk strings"), "{said}");
        }
        for (bytes, resp) in [(&b"*1\r\n$1\r\nabc\r\n"[..], true), (b"set k 0 0 1\r\nabc\r\n", false)] {
            let said = read(bytes, resp).expect_err("too much came").to_string();
            assert!(said.contains("'bc") && !said.contains("abc"), "{said}");
        }
    }

    #[test]
    fn the_largest_part_and_the_most_parts_are_waited_for_and_no_more() {
        type Said = fn(usize) -> String;
        let cases: [(Said, usize, bool); 3] = [
            (|parts| format!("*{parts}\r\n"), PARTS_MAX, true),
            (|size| format!("*1\r\n${size}\r\n"), PART_MAX, true),
            (|size| format!("set k 0 0 {size}\r\n"), PART_MAX, false),
        ];
        for (said, most, resp) in cases {
            assert!(matches!(read(said(most).as_bytes(), resp), Ok(None)), "{}", said(most));
            assert!(read(said(most + 1).as_bytes(), resp).is_err(), "{}", said(most + 1));
        }
    }
}
