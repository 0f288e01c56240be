//! Counters by `incr`, and by `add` where there is none yet.

use super::super::super::Decoded;
use super::super::super::text::{garbled, line, push_number, unsigned};
use super::super::frames::{LINE_MAX, counter, escape, is_error, lowered};
use super::{Awaited, Dialect, Memcache};
use crate::model::op::{Fault, Op, Reply, Sums};

impl Memcache {
    /// Adds to a counter. A negative step is taken away by `decr`, as any server of the protocol understands it: not
    /// all wrap where its two's complement is added. `decr` stops at 0 and does not say so. Right before it the counter
    /// is asked for (`incr` by 0), so that a step below 0 is told; only another client between the two would hide it.
    pub(super) fn increment(&mut self, op: &Op<'_>, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if by < 0 && self.dialect == Dialect::Borrowed {
            let (store, name) = (self.limits.store, op.name());
            let what = format!("{store} has no {name} by {by}: a counter stops at 0, and does not say so");
            return Err(Fault::Unsupported(what));
        }
        self.limits.check_key(key)?;
        if by < 0 {
            let step = by.unsigned_abs();
            change(b"incr ", |out| escape(key, out), 0, out);
            change(b"decr ", |out| escape(key, out), step, out);
            return Ok(Awaited::Lowered { by: step });
        }
        let key = self.asked.push_written(|bytes| escape(key, bytes));
        let (added, step) = (!self.waiting.is_empty(), by.cast_unsigned());
        if added {
            add_zero(key, out);
        } else {
            self.step = step;
        }
        incr(key, step, out);
        Ok(Awaited::Sum { added })
    }

    /// Makes the counter where there is none, and adds to it: two commands on their way before the first answer is
    /// read, since most counters of a large count are new.
    pub(super) fn add(&self, op: &Op<'_>, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.limits.check_key(key)?;
        let step = self.limits.step_of(op, by)?;
        out.extend_from_slice(b"add ");
        escape(key, out);
        out.extend_from_slice(ZERO);
        change(b"incr ", |out| escape(key, out), step, out);
        Ok(())
    }

    pub(super) fn add_many(&self, op: &Op<'_>, sums: Sums<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if sums.is_empty() {
            return Err(self.limits.nothing(op));
        }
        let before = out.len();
        if let Err(fault) = sums.iter().try_for_each(|(key, by)| self.add(op, key, by, out)) {
            out.truncate(before);
            return Err(fault);
        }
        Ok(Awaited::Sums(sums.len()))
    }

    /// The answers to `add` and `incr` in turn: a line each.
    pub(super) fn hear_sums<'b>(
        &'b mut self,
        count: usize,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let mut used = 0;
        while self.parts < 2 * count {
            let rest = &bytes[used..];
            let Some(words) = line(rest, LINE_MAX)? else {
                return Ok((used > 0).then_some((used, Decoded::Again)));
            };
            match (self.parts % 2, words) {
                (0, b"STORED" | b"NOT_STORED") => {}
                (_, words) if is_error(words) => self.note(String::from_utf8_lossy(words).into_owned()),
                (1, b"NOT_FOUND") => self.note("NOT_FOUND: the counter was dropped as soon as it was made".to_string()),
                (1, number) => {
                    unsigned(number.trim_ascii_end()).ok_or_else(|| garbled("a number or NOT_FOUND", rest))?;
                    counter(number).err().into_iter().for_each(|words| self.note(words));
                }
                _ => return Err(garbled("STORED or NOT_STORED", rest)),
            }
            used += words.len() + 2;
            self.parts += 1;
        }
        if self.refusal.is_some() {
            return Ok(Some((used, self.refused(b"", 0))));
        }
        self.done(0);
        Ok(Some((used, Decoded::Reply(Reply::Done))))
    }

    #[cold]
    fn note(&mut self, words: String) {
        self.refusal.get_or_insert(words);
    }

    /// The answer to the `add` ahead of an `incr`: either way there is a counter now.
    pub(super) fn hear_added<'b>(&'b mut self, bytes: &'b [u8]) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some(words) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        match words {
            b"STORED" | b"NOT_STORED" => {}
            words if is_error(words) => self.refusal = Some(String::from_utf8_lossy(words).into_owned()),
            _ => return Err(garbled("STORED or NOT_STORED", bytes)),
        }
        self.parts = 1;
        Ok(Some((words.len() + 2, Decoded::Again)))
    }

    /// What a counter was, and then what is left of it.
    pub(super) fn hear_lowered<'b>(
        &'b mut self,
        by: u64,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some(words) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        let used = words.len() + 2;
        let number = match words {
            b"NOT_FOUND" => 0,
            words if is_error(words) => {
                self.refusal.get_or_insert_with(|| String::from_utf8_lossy(words).into_owned());
                0
            }
            number => unsigned(number.trim_ascii_end()).ok_or_else(|| garbled("a number or NOT_FOUND", bytes))?,
        };
        if self.parts == 0 {
            (self.parts, self.before) = (1, number);
            return Ok(Some((used, Decoded::Again)));
        }
        let left = self.refusal.take().map_or_else(|| lowered(self.before, by, number), Err);
        Ok(Some(match left {
            Ok(left) => {
                self.done(0);
                (used, Decoded::Reply(Reply::Number(left)))
            }
            Err(words) => (used, self.refused(words.as_bytes(), 0)),
        }))
    }

    /// A counter's new value, or `NOT_FOUND`, which asks on.
    #[inline]
    pub(super) fn hear_sum<'b>(
        &'b mut self,
        added: bool,
        bytes: &'b [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some(words) = line(bytes, LINE_MAX)? else {
            return Ok(None);
        };
        let used = words.len() + 2;
        let missing = words == b"NOT_FOUND";
        if missing && !added {
            add_zero(self.asked.get(0), out);
            incr(self.asked.get(0), self.step, out);
            out.append(&mut self.held);
            self.commands += 2;
            self.waiting.replace_front(Awaited::Sum { added: true });
            return Ok(Some((used, Decoded::Again)));
        }
        if !missing && !is_error(words) && unsigned(words.trim_ascii_end()).is_none() {
            return Err(garbled("a number or NOT_FOUND", bytes));
        }
        out.append(&mut self.held);
        let sum = match words {
            b"NOT_FOUND" => Err("NOT_FOUND: the counter was dropped as soon as it was made".to_string()),
            words if is_error(words) => Err(String::from_utf8_lossy(words).into_owned()),
            number => counter(number),
        };
        match sum {
            Ok(sum) => {
                self.done(1);
                Ok(Some((used, Decoded::Reply(Reply::Number(sum)))))
            }
            Err(words) => Ok(Some((used, self.refused(words.as_bytes(), 1)))),
        }
    }
}

/// What stands behind the key of an `add`: flags, time to live, length, and the value 0.
const ZERO: &[u8] = b" 0 0 1\r\n0\r\n";

/// Makes a counter where there is none.
fn add_zero(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"add ");
    out.extend_from_slice(key);
    out.extend_from_slice(ZERO);
}

fn incr(key: &[u8], step: u64, out: &mut Vec<u8>) {
    change(b"incr ", |out| out.extend_from_slice(key), step, out);
}

fn change(command: &[u8], key: impl FnOnce(&mut Vec<u8>), step: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(command);
    key(out);
    out.push(b' ');
    push_number(step, out);
    out.extend_from_slice(b"\r\n");
}
