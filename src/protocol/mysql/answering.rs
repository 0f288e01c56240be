//! What has come of the answer to an op, packet by packet, and what it says.
//!
//! The packets: <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>.

use super::asking::Prepared;
use super::packets::{Done, ERROR, FULL, Payload, is_end, read, split_bytes};
use super::{Awaited, Mysql, PACKET_MAX};
use crate::model::op::{Fault, Pairs, Reply};
use crate::protocol::Decoded;
use crate::protocol::sql::no_counter;
use crate::protocol::text::garbled;

/// What has come of the answer to the op in front.
#[derive(Default)]
pub(super) struct Answer {
    /// Some packet of it has come.
    pub(super) is_begun: bool,
    /// Statements that are answered.
    statements: usize,
    stage: Stage,
    /// The number of the last packet.
    pub(super) packet: u8,
    /// The beginning of a payload that goes on in the next packet.
    payload: Vec<u8>,
    rows: usize,
    changed: u64,
    last_insert_id: u64,
    is_matched: bool,
    refusal: Option<String>,
    /// The number of its row; none for NULL.
    number: Option<i64>,
    /// Its row has NULL in place of a value.
    is_null: bool,
    /// The place of a key whose record is no counter.
    no_counter: Option<usize>,
}

/// Which part of the answer to a statement is next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Begin,
    /// Descriptions of so many columns, and their end; of a statement that is prepared maybe twice.
    Columns(usize),
    Rows,
}

impl Answer {
    /// Its columns are described, and no row has come.
    pub(super) fn is_before_rows(&self) -> bool {
        self.stage == Stage::Rows && self.rows == 0 && self.payload.is_empty()
    }
}

/// What one packet has come to.
pub(super) enum Step {
    /// More is to come.
    Again,
    /// What was no op.
    End(Decoded<'static>),
    /// All of an op's answer has come.
    Answered,
}

/// What was answered.
impl Mysql {
    pub(super) fn absorb(
        &mut self,
        awaited: Awaited,
        number: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if awaited == Awaited::Login {
            return Ok(match self.greeting.hear(number, payload, out)? {
                Decoded::Again => Step::Again,
                heard => Step::End(heard),
            });
        }
        let answer = &mut self.answer;
        answer.is_begun = true;
        // The first one follows the number of the last packet of the question.
        let is_first = answer.stage == Stage::Begin && answer.payload.is_empty();
        let expected = if is_first { number } else { answer.packet.wrapping_add(1) };
        if number != expected {
            return Err(garbled(&format!("packet {expected} of an answer"), &[&[number], payload].concat()));
        }
        answer.packet = number;
        if payload.len() < FULL && answer.payload.is_empty() {
            return self.absorb_payload(awaited, payload, out);
        }
        answer.payload.extend_from_slice(payload);
        if answer.payload.len() > PACKET_MAX {
            return Err(garbled("a packet of at most 1 GiB", payload));
        }
        if payload.len() == FULL {
            return Ok(Step::Again);
        }
        let whole = std::mem::take(&mut answer.payload);
        self.absorb_payload(awaited, &whole, out)
    }

    fn absorb_payload(&mut self, awaited: Awaited, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        match self.answer.stage {
            Stage::Begin => self.absorb_first(awaited, payload, out),
            Stage::Columns(left) => self.absorb_column(awaited, left, payload, out),
            Stage::Rows if is_end(payload) => Ok(self.statement_answered(awaited)),
            Stage::Rows => {
                // No row begins so.
                if payload.first() == Some(&ERROR) {
                    return self.absorb_first(awaited, payload, out);
                }
                self.absorb_row(awaited, payload).ok_or_else(|| garbled("a row of our own table", payload))?;
                self.answer.rows += 1;
                Ok(Step::Again)
            }
        }
    }

    fn absorb_first(&mut self, awaited: Awaited, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        // It begins like the end of a command, and has the number of a statement where that has its rows.
        if let (Awaited::Prepared(statement, rows), Some(&0)) = (awaited, payload.first()) {
            return self.absorb_prepared((statement, rows), payload, out);
        }
        match read(payload)? {
            Payload::Error(error) if error.is_end() => Err(error.lost()),
            Payload::Error(error) if matches!(awaited, Awaited::Prepared(..)) => {
                Err(Fault::Refused(format!("preparing a statement: {}", error.words)))
            }
            Payload::Error(error) => {
                self.answer.refusal.get_or_insert(error.words);
                Ok(self.statement_answered(awaited))
            }
            Payload::Done(done) if awaited.columns(self.answer.statements) == 0 => {
                self.absorb_done(&done);
                Ok(self.statement_answered(awaited))
            }
            Payload::Other(&[columns]) if usize::from(columns) == awaited.columns(self.answer.statements) => {
                self.answer.stage = Stage::Columns(usize::from(columns));
                Ok(Step::Again)
            }
            _ => Err(garbled("the answer to a prepared statement", payload)),
        }
    }

    /// The number of a statement; descriptions of its parameters and columns follow.
    fn absorb_prepared(&mut self, which: Prepared, payload: &[u8], out: &mut Vec<u8>) -> Result<Step, Fault> {
        let numbers = payload.strip_prefix(b"\0").and_then(|rest| rest.first_chunk::<8>());
        let Some(&[a, b, c, d, columns, more_columns, parameters, more_parameters]) = numbers else {
            return Err(garbled("the number of a prepared statement", payload));
        };
        // Each list that is not empty has an end.
        let counted = |low: u8, high: u8| match usize::from(u16::from_le_bytes([low, high])) {
            0 => 0,
            count => count + 1,
        };
        let left = counted(columns, more_columns) + counted(parameters, more_parameters);
        self.answer.number = Some(i64::from(u32::from_le_bytes([a, b, c, d])));
        self.answer.stage = Stage::Columns(left);
        if left == 0 { Ok(self.end_of_prepared(which, out)) } else { Ok(Step::Again) }
    }

    fn end_of_prepared(&mut self, which: Prepared, out: &mut Vec<u8>) -> Step {
        let id = self.answer.number.unwrap_or(0) as u32;
        self.prepared(which, id, out);
        Step::End(Decoded::Greeted)
    }

    fn statement_answered(&mut self, awaited: Awaited) -> Step {
        let answer = &mut self.answer;
        answer.statements += 1;
        answer.stage = Stage::Begin;
        if answer.statements == awaited.answers() { Step::Answered } else { Step::Again }
    }

    fn absorb_done(&mut self, done: &Done<'_>) {
        self.answer.changed = self.answer.changed.saturating_add(done.rows);
        self.answer.last_insert_id = done.last_insert_id;
        // A row that is set to what it was counts as found here only.
        self.answer.is_matched = done.info.windows(MATCHED.len()).any(|words| words == MATCHED);
    }

    fn absorb_column(
        &mut self,
        awaited: Awaited,
        left: usize,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        match (awaited, left) {
            (Awaited::Prepared(statement, rows), 0 | 1) => return Ok(self.end_of_prepared((statement, rows), out)),
            (_, 0) if is_end(payload) => self.answer.stage = Stage::Rows,
            (_, 0) => return Err(garbled("the end of the columns", payload)),
            (_, left) => self.answer.stage = Stage::Columns(left - 1),
        }
        Ok(Step::Again)
    }

    /// Keeps what a row says. Nothing where it is no row of such an answer.
    fn absorb_row(&mut self, awaited: Awaited, payload: &[u8]) -> Option<()> {
        let answer = &mut self.answer;
        let is_first = answer.rows == 0;
        let mut row = Row::of(payload)?;
        match awaited {
            Awaited::Value if is_first => {
                self.values.clear();
                self.values.push(Some(row.bytes()??));
            }
            Awaited::Version if is_first => {
                let value = row.bytes()?;
                self.values.clear();
                self.values.push(value);
                (answer.is_null, answer.number) = (value.is_none(), row.number()?);
            }
            Awaited::Number | Awaited::AddedNothing { .. } if is_first => answer.number = row.number()?,
            Awaited::Values { .. } | Awaited::Numbers { .. } => self.absorb_asked(awaited, &mut row)?,
            Awaited::Fields => {
                let (field, count) = (row.bytes()??, row.number()??);
                self.push_row(is_first, field, itoa::Buffer::new().format(count).as_bytes());
            }
            Awaited::Rows => self.push_row(is_first, row.bytes()??, row.bytes()??),
            _ => return None,
        }
        row.rest.is_empty().then_some(())
    }

    fn push_row(&mut self, is_first: bool, key: &[u8], value: &[u8]) {
        if is_first {
            self.rows.0.clear();
            self.rows.1.clear();
        }
        self.rows.0.push(key);
        self.rows.1.push(value);
    }

    /// A row of one of the keys that were asked for, which come in any order, and each once.
    fn absorb_asked(&mut self, awaited: Awaited, row: &mut Row<'_>) -> Option<()> {
        if self.answer.rows == 0 {
            self.begin_asked(awaited);
        }
        let places = self.asked.places(row.bytes()??);
        let first = *places.first()?;
        if let Awaited::Values { .. } = awaited {
            let value = row.bytes()?.filter(|_| self.values.lend().get(first).is_none())?;
            places.iter().for_each(|&place| self.values.put(place, value));
            return Some(());
        }
        match row.number()? {
            None => self.answer.no_counter = self.answer.no_counter.or(Some(first)),
            number if self.numbers[first].is_none() => places.iter().for_each(|&place| self.numbers[place] = number),
            Some(_) => return None,
        }
        Some(())
    }

    /// Makes room for as many answers as there are keys.
    fn begin_asked(&mut self, awaited: Awaited) {
        self.asked.sort(awaited.keys());
        match awaited {
            Awaited::Values { keys, .. } => self.values.reset(keys),
            _ => {
                self.numbers.clear();
                self.numbers.resize(awaited.keys(), None);
            }
        }
    }

    /// What is awaited next.
    pub(super) fn end(&mut self, awaited: Awaited) -> Answer {
        self.waiting.pop();
        self.asked.pop(awaited.keys());
        std::mem::take(&mut self.answer)
    }

    /// The answer, all of which has come.
    pub(super) fn answered(&mut self, awaited: Awaited) -> Decoded<'_> {
        if self.answer.rows == 0 && matches!(awaited, Awaited::Values { .. } | Awaited::Numbers { .. }) {
            self.begin_asked(awaited);
        }
        let refusal = self.answer.refusal.take().or_else(|| self.refusal(awaited));
        let answer = self.end(awaited);
        match refusal {
            Some(words) => Decoded::Refused(words),
            None => Decoded::Reply(self.reply(awaited, &answer)),
        }
    }

    /// Why what came is no answer to the op, where it is none.
    fn refusal(&self, awaited: Awaited) -> Option<String> {
        let answer = &self.answer;
        let is_no_counter = match awaited {
            // Nothing has changed: what is there is a value.
            Awaited::Sum(_) | Awaited::Added => answer.changed == 0,
            Awaited::Number => answer.rows > 0 && answer.number.is_none(),
            Awaited::AddedNothing { .. } => answer.number.is_none(),
            Awaited::Numbers { .. } => answer.no_counter.is_some(),
            Awaited::Version if answer.is_null => {
                return Some(format!("{} has no get-version of a counter", self.store));
            }
            _ => false,
        };
        is_no_counter.then(|| no_counter(self.store, self.asked.get(answer.no_counter.unwrap_or(0))))
    }

    fn reply(&self, awaited: Awaited, answer: &Answer) -> Reply<'_> {
        let list = || Pairs { keys: self.rows.0.lend(), values: self.rows.1.lend() };
        let number = answer.number.unwrap_or(0);
        match awaited {
            Awaited::Value | Awaited::Version | Awaited::Number | Awaited::Fields if answer.rows == 0 => Reply::Missing,
            Awaited::Rows if answer.rows == 0 => Reply::Rows(Pairs::default()),
            Awaited::Value => Reply::Value(self.value()),
            Awaited::Version => Reply::Versioned(self.value(), number as u64),
            Awaited::Number | Awaited::AddedNothing { is_sum: true } => Reply::Number(number),
            // A row that was inserted has what was added; one that was updated counts twice, and tells its sum.
            Awaited::Sum(by) if answer.changed == 1 => Reply::Number(by),
            Awaited::Sum(_) => Reply::Number(answer.last_insert_id as i64),
            Awaited::Values { .. } => Reply::Values(self.values.lend()),
            Awaited::Numbers { .. } => Reply::Numbers(&self.numbers),
            Awaited::Fields | Awaited::Rows => Reply::Rows(list()),
            Awaited::Deleted if answer.changed == 0 => Reply::Missing,
            Awaited::Kept if answer.changed == 0 => Reply::Conflict,
            Awaited::Swapped if !answer.is_matched => Reply::Conflict,
            _ => Reply::Done,
        }
    }

    fn value(&self) -> &[u8] {
        self.values.lend().get(0).unwrap_or_default()
    }
}

/// A row in the binary format, read column by column.
struct Row<'b> {
    /// A bit for each column from the third bit on: whether it is NULL.
    nulls: u8,
    column: u8,
    rest: &'b [u8],
}

impl<'b> Row<'b> {
    /// Of at most six columns, whose bits fit into a byte.
    fn of(payload: &'b [u8]) -> Option<Row<'b>> {
        let (&nulls, rest) = payload.strip_prefix(b"\0")?.split_first()?;
        Some(Row { nulls, column: 0, rest })
    }

    fn is_null(&mut self) -> bool {
        self.column += 1;
        self.nulls & (2 << self.column) != 0
    }

    /// Bytes; nothing for NULL.
    fn bytes(&mut self) -> Option<Option<&'b [u8]>> {
        if self.is_null() {
            return Some(None);
        }
        let (bytes, rest) = split_bytes(self.rest)?;
        self.rest = rest;
        Some(Some(bytes))
    }

    /// A number of eight bytes; nothing for NULL.
    fn number(&mut self) -> Option<Option<i64>> {
        if self.is_null() {
            return Some(None);
        }
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(Some(i64::from_le_bytes(*number)))
    }
}

/// How the server says that an update has found its row, behind the length of what it says or not.
const MATCHED: &[u8] = b"Rows matched: 1";
