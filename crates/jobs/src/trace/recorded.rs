//! The requests of one recorded trace, in its order, read at memory speed and in constant memory. It must not know
//! what is asked for them.

use std::io::{self, BufRead};

use super::forms::{FORMS, Form, Key, Operation, TraceRow};
use crate::lines::{BadRows, LINE_BYTES_MAX, past_mark};
use crate::{InputFault, Source};
use kvfair_core::trial::JobSettings;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedRequest<'a> {
    /// Its place among all requests that are asked, from 0.
    pub number: u64,
    /// When it was made, in seconds since the recording's own beginning; 0 in a form that has no times.
    pub time_s: u64,
    pub key: Key<'a>,
    pub value_bytes: u32,
    pub operation: Operation,
    /// 0 for a value that stays.
    pub ttl_s: u32,
}

pub struct Recorded {
    source: String,
    form: Form,
    reader: Box<dyn BufRead>,
    /// What was begun of a row, if anything, and behind it a copy of the reader's block. A row is then found without a
    /// call through a table, and no row is in two places.
    buffer: Vec<u8>,
    /// Bytes of the reader's block in the buffer; the reader is told of them when they are used.
    block: usize,
    /// Where the next row begins in the buffer.
    at: usize,
    /// Whether the input's end was met in the middle of a row, or of a line without its end.
    unended: bool,
    /// Rows so far, good and bad.
    rows: u64,
    bad: BadRows,
    requests: u64,
    requests_max: u64,
    unasked: u64,
    run: Run,
}

/// What is left of the last row with an object's number.
#[derive(Default)]
struct Run {
    object: u64,
    left: u32,
    time_s: u64,
    value_bytes: u32,
}

impl Recorded {
    pub fn open(settings: &JobSettings, source: &dyn Source) -> io::Result<Recorded> {
        let form = FORMS.iter().find(|(name, _)| *name == settings.format);
        let form = form.ok_or_else(|| io::Error::other(format!("no form '{}'", settings.format)))?.1;
        let reader = source.open()?;
        Ok(Recorded {
            source: source.name().to_string(),
            form,
            reader: if form.has_lines() { past_mark(reader)? } else { reader },
            buffer: Vec::new(),
            block: 0,
            at: 0,
            unended: false,
            rows: 0,
            bad: BadRows::new(settings),
            requests: 0,
            requests_max: settings.units.unwrap_or(u64::MAX),
            unasked: 0,
            run: Run::default(),
        })
    }

    /// Gives the next request to `take`; false when there are no more.
    #[inline]
    pub fn read(&mut self, mut take: impl FnMut(RecordedRequest<'_>)) -> Result<bool, InputFault> {
        loop {
            if self.requests == self.requests_max {
                self.give_back();
                return Ok(false);
            }
            if self.run.left > 0 {
                let number = self.requests;
                self.requests += 1;
                take(self.run.next(number));
                return Ok(true);
            }
            let Some((row, length)) = self.form.first(&self.buffer[self.at..]) else {
                if self.pass()? {
                    continue;
                }
                return self.end();
            };
            self.at += length;
            self.rows += 1;
            match row {
                TraceRow { operation: None, .. } => self.unasked += 1,
                TraceRow { key: Key::Object(object), count, time_s, value_bytes, .. } => {
                    self.run = Run { object, left: count, time_s, value_bytes };
                }
                TraceRow { key, operation: Some(operation), time_s, value_bytes, ttl_s, .. } => {
                    let number = self.requests;
                    self.requests += 1;
                    take(RecordedRequest { number, time_s, key, value_bytes, operation, ttl_s });
                    return Ok(true);
                }
            }
        }
    }

    /// Bad rows passed over so far.
    pub fn skipped(&self) -> u64 {
        self.bad.skipped()
    }

    /// Requests so far for which no store is asked.
    pub fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Goes past a row that is none, or has more of the input read where it is only begun; false at the end.
    #[cold]
    fn pass(&mut self) -> Result<bool, InputFault> {
        match self.form.length_of_first(&self.buffer[self.at..]) {
            Some(length) => self.pass_over(length).map(|()| true),
            None if self.fill()? => Ok(true),
            None if self.unended || self.buffer.is_empty() => Ok(false),
            None => {
                self.unended = true;
                match self.form.has_lines() {
                    true => self.buffer.push(b'\n'),
                    false => self.pass_over(self.buffer.len())?,
                }
                Ok(true)
            }
        }
    }

    fn pass_over(&mut self, length: usize) -> Result<(), InputFault> {
        self.rows += 1;
        let row = &self.buffer[self.at..self.at + length];
        self.at += length;
        let Some(what) = self.form.fault_of(row) else { return Ok(()) };
        let ended = !(self.unended && self.form.has_lines());
        self.bad.pass(what, ended).map_err(|what| self.fault(self.rows, what))
    }

    /// Puts the reader's next block behind what was begun of a row; false at the end of the input.
    #[inline(never)]
    fn fill(&mut self) -> Result<bool, InputFault> {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.reader.consume(std::mem::take(&mut self.block));
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(self.fault(self.rows + 1, format!("a line of more than {} MiB", LINE_BYTES_MAX >> 20)));
        }
        let filled = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                filled => break filled,
            }
        };
        match filled {
            Ok(block) => {
                self.buffer.extend_from_slice(block);
                self.block = block.len();
                Ok(self.block > 0)
            }
            Err(error) => Err(self.fault(self.rows + 1, format!("cannot read on: {error}"))),
        }
    }

    /// Tells the reader what was used of its block: who hashes what is read must not hash more.
    fn give_back(&mut self) {
        let unused = self.buffer.len() - self.at;
        self.reader.consume(self.block.saturating_sub(unused));
        (self.block, self.at) = (0, 0);
        self.buffer.clear();
    }

    /// An input without a single request is a mistake, such as an empty file, and no job that is quickly done.
    #[cold]
    fn end(&self) -> Result<bool, InputFault> {
        match self.requests {
            0 => Err(self.fault(0, "no request in it".to_string())),
            _ => Ok(false),
        }
    }

    #[cold]
    fn fault(&self, line: u64, what: String) -> InputFault {
        InputFault { source: self.source.clone(), line, what }
    }
}

impl Run {
    #[inline(always)]
    fn next(&mut self, number: u64) -> RecordedRequest<'static> {
        let Run { object, time_s, value_bytes, .. } = *self;
        self.object = object.wrapping_add(1);
        self.left -= 1;
        let (key, operation) = (Key::Object(object), Operation::Get);
        RecordedRequest { number, time_s, key, value_bytes, operation, ttl_s: 0 }
    }
}
